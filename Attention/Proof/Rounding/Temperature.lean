module

public import Attention.Algebra.SumExchange
public import Attention.Model.RoundedTemperature
public import Attention.Proof.Rounding.GradientMatrices
public import Attention.Spec.ScoreTemperature

public section

/-! # The gradients by queries and by their temperature, within their tolerance

Both are sums of products of the gradient by the queries times the temperature, which is stored.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-- A gradient that is stored. -/
theorem stored_gradient {u η : R} {e s x y z : R} (hy : AtMost e (y - x)) (hs : AtMost s x)
    (hz : StoredBelow u η y z) (other : R) :
    AtMost (storedGradientTerm u η x s e other).error (z - x) ∧
      AtMost (storedGradientTerm u η x s e other).size x := by
  refine ⟨?_, hs⟩
  obtain ⟨w, ⟨θ, hθ, rfl⟩, hw, -⟩ := hz
  have h := (hy.add (hθ.mul ((atMost_absolute x).add hy))).add hw
  show AtMost (e + u * (absolute x + e) + η) _
  rwa [show y - x + θ * (x + (y - x)) + (z - y * (1 + θ)) = z - x by clear h; grind] at h

/-- Σ x y over a list, where each x is off by an error of its own. -/
theorem rounded_sumOver {α : Type v} {a ν : R} (ha : 0 ≤ a) (hν : 0 ≤ ν) {roundings : Nat}
    (hc : numeral roundings * a < 1) {xs : List α} {z : R} {x y e : α → R}
    {t : α → GradientTerm R}
    (ht : ∀ i ∈ xs, AtMost (t i).error (x i - e i) ∧ AtMost (t i).size (e i) ∧ (t i).other = y i)
    (h : ComputedSumOver a ν roundings xs x y z) :
    AtMost (totalError a 0 ν 0 roundings (xs.map t)) (z - sumOver (fun i => e i * y i) xs) := by
  obtain ⟨k, products, hk, hn, hproducts, hz⟩ := h
  have hx : ∀ i ∈ xs, Majorised ((t i).size + (t i).error) (t i).size (x i) (e i) :=
    fun i hi => by
      refine ⟨?_, (ht i hi).2.1⟩
      rw [show (t i).size + (t i).error - (t i).size = (t i).error by grind]
      exact (ht i hi).1
  have h₁ := (Majorised.flushedSum_each ha hν hz fun i hi => ((hx i hi).mul
    (.exact (atMost_absolute (y i)))).below (hproducts i hi)).error
  rw [totalError, sumOver_map, Semiring.zero_mul, Semiring.add_comm 0, Semiring.add_zero]
  rw [sumOver_add, sumOver_add, sumOver_const, ← numeral_eq, Semiring.add_assoc] at h₁
  refine h₁.mono ?_
  have g₁ := OrderedField.one_le_pow (one_le_one_plus ha) k
  have g₂ := pow_le_gamma ha hk hc
  rw [Semiring.pow_succ] at g₂
  have lost := OrderedField.mul_le_mul (nonneg_of_one_le g₁)
    (pow_le_gamma ha (show k ≤ roundings by omega) hc)
    (show 0 ≤ numeral xs.length * ν + numeral xs.length * ν by
      have := OrderedRing.mul_nonneg (numeral_nonneg xs.length) hν
      clear h₁
      grind) (twice_lost_le hn hν)
  have h₂ : ∀ i ∈ xs, (1 + a) ^ k * (((t i).size + (t i).error) * absolute (y i) * (1 + a))
        - (t i).size * absolute (y i)
      ≤ ((t i).error + ((1 + 0) * (1 + gamma roundings a) - 1) * ((t i).size + (t i).error))
        * absolute (t i).other := fun i hi => by
    rw [(ht i hi).2.2]
    have i₁ := OrderedRing.mul_le_mul_of_nonneg_left g₂ (OrderedRing.mul_nonneg
      (hx i hi).computed.nonneg (absolute_nonneg (y i)))
    clear h₁ hz hproducts hx ht g₁ g₂ hc lost
    generalize 1 + gamma roundings a = g at *
    generalize (1 + a) ^ k = f at *
    generalize 1 + a = c at *
    generalize absolute (y i) = w at *
    generalize (t i).size = s at *
    generalize (t i).error = r at *
    grind
  have h₃ := sumOver_le_sumOver h₂
  rw [sumOver_sub, sumOver_mul_left] at h₃
  clear h₁ hz hproducts hx ht hc h₂ g₁ g₂
  generalize sumOver _ xs = x₁ at *
  generalize sumOver _ xs = x₂ at *
  generalize sumOver _ xs = x₃ at *
  generalize (1 + a) ^ k = f at *
  generalize 1 + gamma roundings a = g at *
  grind

/-- A sum over the components is the sum of the inner products. -/
theorem sum_components {n q_len d : Nat} (D Q : Fin n → Matrix R q_len d) :
    sumOver (fun i => (D i.1)[i.2.1][i.2.2] * (Q i.1)[i.2.1][i.2.2]) (components n q_len d)
      = sumOver (fun b => Matrix.inner (D b) (Q b)) (List.finRange n) := by
  rw [components, sumOver_flatMap]
  refine sumOver_congr fun b _ => ?_
  rw [sumOver_flatMap]
  refine sumOver_congr fun i _ => ?_
  rw [sumOver_map]
  rfl

variable {n q_len d : Nat}

/-- **rounded-temperature**: of gradients by queries times their temperature that are off by an
error each and stored, the gradient by a query, a product with the temperature, and that by the
temperature, a sum over all components of all queries of all batches, every operation rounded and in
any order, are within their bounds, also where what is stored or the products underflow. -/
theorem rounded_temperature {a u ν η : R} (ha : 0 ≤ a) (hν : 0 ≤ ν) {roundings : Nat}
    (hc : numeral roundings * a < 1) {t : R} {D Q : Fin n → Matrix R q_len d}
    {size error z z' : Fin n × Fin q_len × Fin d → R}
    (hz : ∀ i, AtMost (error i) (z i - (D i.1)[i.2.1][i.2.2]))
    (hsize : ∀ i, AtMost (size i) (D i.1)[i.2.1][i.2.2]) 
    (hz' : ∀ i, StoredBelow u η (z i) (z' i)) :
    (∀ (i : Fin n × Fin q_len × Fin d) (w : R), 1 ≤ roundings → StoredBelow a ν (z' i * t) w →
      AtMost (totalError a 0 ν 0 roundings
          [storedGradientTerm u η (D i.1)[i.2.1][i.2.2] (size i) (error i) t])
        (w - (scaleRows t (D i.1))[i.2.1][i.2.2])) ∧
    ∀ w : R, ComputedSumOver a ν roundings (components n q_len d) z'
        (fun i => (Q i.1)[i.2.1][i.2.2]) w →
      AtMost (totalError a 0 ν 0 roundings ((components n q_len d).map fun i =>
          storedGradientTerm u η (D i.1)[i.2.1][i.2.2] (size i) (error i)
            (Q i.1)[i.2.1][i.2.2]))
        (w - sumOver (fun b => Matrix.inner (D b) (Q b)) (List.finRange n)) := by
  refine ⟨fun i w hr hw => ?_, fun w hw => ?_⟩
  · have h := rounded_sumOver ha hν hc (xs := [i]) (z := w) (x := z') (y := fun _ => t)
      (e := fun i => (D i.1)[i.2.1][i.2.2])
      (t := fun i => storedGradientTerm u η (D i.1)[i.2.1][i.2.2] (size i) (error i) t)
      (fun i _ => ⟨(stored_gradient (hz i) (hsize i) (hz' i) t).1, hsize i, rfl⟩)
      ⟨0, fun _ => w, hr, hr, fun j hj => by rw [List.mem_singleton.mp hj]; exact hw, .one⟩
    rw [sumOver_cons, sumOver_nil, Semiring.add_zero, CommSemiring.mul_comm] at h
    simp only [scaleRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul]
    exact h
  · rw [← sum_components]
    exact rounded_sumOver ha hν hc (fun i _ => ⟨(stored_gradient (hz i) (hsize i) (hz' i)
      (Q i.1)[i.2.1][i.2.2]).1, hsize i, rfl⟩) hw

/-! ## From the score gradients on -/

variable [Exponential R R] {kv_len d_v : Nat} (scale t : R)
variable (modify : Fin n → ScoreMod R q_len kv_len) (slope : Fin n → ScoreSlope R R q_len kv_len)
variable (Q : Fin n → Matrix R q_len d) (K : Fin n → Matrix R kv_len d)
variable (V : Fin n → Matrix R kv_len d_v)
variable (dO : Fin n → Matrix R q_len d_v) (dLse : Fin n → Vec R q_len)

omit [Exponential R R] in
/-- The gradient by a temperature is made of the queries as they are. -/
theorem inner_map_id (A B : Matrix R q_len d) :
    Matrix.inner A (Vec.ofFn fun i => Vec.map id B[i]) = Matrix.inner A B := by
  refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map, id]

omit [Exponential R R] in
/-- The size of a sum of products. -/
private theorem product_size {m : Nat} {x y : Fin m → R} {term : Fin m → GradientTerm R}
    (h : ∀ j, AtMost (term j).size (x j) ∧ (term j).other = y j) :
    AtMost (absolute scale * sumOver (fun j => (term j).size * absolute (y j)) (List.finRange m))
      (scale * sumOver (fun j => x j * y j) (List.finRange m)) :=
  (atMost_absolute scale).mul (sumOver_atMost fun j _ => (h j).1.mul (atMost_absolute (y j)))

/-- **rounded-temperature-gradients**: the gradients by queries, and by the temperature of a head
that all batches share, that a backward pass computes from queries times the temperature, with every
operation rounded, the gradient by these stored, and every weight off by a share of itself, are
within their bounds, also where numbers underflow; `η` is what storing the gradient by these queries
may lose. -/
theorem rounded_temperature_gradients {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {error slopeError : Fin n → Fin q_len → Fin kv_len → R} (he : ∀ b i j, 0 ≤ error b i j)
    {S X : Fin n → Fin q_len → Fin kv_len → R} {reach η : R}
    (hr : 1 ≤ reach) {roundings stores totals : Nat}
    (hc : numeral roundings * p.accumulation < 1) (hc' : numeral totals * p.accumulation < 1)
    {z z' : Fin n × Fin q_len × Fin d → R} :
    let row := fun b => backwardRow scale (modify b) (slope b) (scaleRows t (Q b)) (K b) (V b)
      (fun _ _ => 1) (dO b) (dLse b) (error b) (slopeError b)
    let g := fun b => temperatureVjp scale t (modify b) (slope b) (Q b) (K b) (V b) id (dO b)
      (dLse b)
    let terms := fun i : Fin n × Fin q_len × Fin d => (List.finRange kv_len).map fun j =>
      scoreGradientTerm p c (row i.1 i.2.1).reach (dLse i.1)[i.2.1] (row i.1 i.2.1).keys
        ((row i.1 i.2.1).key j) (K i.1)[j][i.2.2]
    let stored := fun i : Fin n × Fin q_len × Fin d => storedGradientTerm p.output η
      (vjp scale (modify i.1) (slope i.1) (scaleRows t (Q i.1)) (K i.1) (V i.1) id (dO i.1)
        (dLse i.1)).dQ[i.2.1][i.2.2]
      (absolute scale * sumOver (fun x => x.size * absolute x.other) (terms i))
      (gradientError p roundings stores scale reach (terms i))
    (∀ b i, (row b i).Computed p c (S b i) (X b i)) →
    (∀ i, ComputedGradient p roundings stores scale reach (X i.1 i.2.1)
      (fun j => (K i.1)[j][i.2.2]) (z i)) →
    (∀ i, StoredBelow p.output η (z i) (z' i)) →
    (∀ (i : Fin n × Fin q_len × Fin d) (w : R), 1 ≤ totals →
      StoredBelow p.accumulation p.tiny (z' i * t) w →
      AtMost (totalError p.accumulation 0 p.tiny 0 totals [stored i t])
        (w - (g i.1).inputs.dQ[i.2.1][i.2.2])) ∧
    ∀ w : R, ComputedSumOver p.accumulation p.tiny totals (components n q_len d) z'
        (fun i => (Q i.1)[i.2.1][i.2.2]) w →
      AtMost (totalError p.accumulation 0 p.tiny 0 totals ((components n q_len d).map fun i =>
          stored i (Q i.1)[i.2.1][i.2.2]))
        (w - sumOver (fun b => (g b).dTemperature) (List.finRange n)) := by
  intro row g terms stored computed hz hz'
  have one : ∀ i j, (0 : R) ≤ (fun _ _ => 1 : WeightFactor R q_len kv_len) i j := fun _ _ =>
    Std.le_of_lt OrderedRing.zero_lt_one
  have exact : ∀ b i j, (row b i).scoreGradient j = (vjp scale (modify b) (slope b)
      (scaleRows t (Q b)) (K b) (V b) id (dO b) (dLse b)).dBias[i][j] := fun b i j => by
    rw [← vjpDropout_one]
    exact scoreGradient_eq ..
  have hdQ : ∀ i : Fin n × Fin q_len × Fin d, (vjp scale (modify i.1) (slope i.1)
      (scaleRows t (Q i.1)) (K i.1) (V i.1) id (dO i.1) (dLse i.1)).dQ[i.2.1][i.2.2]
      = scale * sumOver (fun j => (row i.1 i.2.1).scoreGradient j * (row i.1 i.2.1).slope j
        * (K i.1)[j][i.2.2]) (List.finRange kv_len) := fun i => by
    simp only [exact]
    rw [← vjpDropout_one]
    exact (vjpDropout_formulas ..).2.2.1 i.2.1 i.2.2
  have off : ∀ i, AtMost (gradientError p roundings stores scale reach (terms i))
      (z i - (vjp scale (modify i.1) (slope i.1) (scaleRows t (Q i.1)) (K i.1) (V i.1) id
        (dO i.1) (dLse i.1)).dQ[i.2.1][i.2.2]) := fun i => by
    rw [← vjpDropout_one]
    exact ((rounded_gradients scale (modify i.1) (slope i.1) (scaleRows t (Q i.1)) (K i.1) (V i.1)
      (fun _ _ => 1) (dO i.1) (dLse i.1) hp hc₁ hc₂ hu one (he i.1) hr hc).1 (computed i.1)).2.1
        i.2.1 i.2.2 (z i) (hz i)
  have size : ∀ i, AtMost (absolute scale * sumOver (fun x => x.size * absolute x.other) (terms i))
      (vjp scale (modify i.1) (slope i.1) (scaleRows t (Q i.1)) (K i.1) (V i.1) id
        (dO i.1) (dLse i.1)).dQ[i.2.1][i.2.2] := fun i => by
    rw [hdQ, sumOver_map]
    exact product_size scale (term := fun j => scoreGradientTerm p c
      (row i.1 i.2.1).reach (dLse i.1)[i.2.1] (row i.1 i.2.1).keys ((row i.1 i.2.1).key j)
      (K i.1)[j][i.2.2]) fun j =>
        ⟨(rounded_scoreGradientTerm hp hc₁ hc₂ hu (backwardRow_valid scale (modify i.1) (slope i.1)
          (scaleRows t (Q i.1)) (K i.1) (V i.1) (fun _ _ => 1) (dO i.1) (dLse i.1) one (he i.1)
          i.2.1) (computed i.1 i.2.1) j _).2, rfl⟩
  have h := rounded_temperature hp.accumulation hp.tiny hc' (t := t) (Q := Q) (D := fun b =>
    (vjp scale (modify b) (slope b) (scaleRows t (Q b)) (K b) (V b) id (dO b) (dLse b)).dQ)
    off size hz'
  refine ⟨h.1, fun w hw => ?_⟩
  have e : sumOver (fun b => (g b).dTemperature) (List.finRange n)
      = sumOver (fun b => Matrix.inner (vjp scale (modify b) (slope b) (scaleRows t (Q b)) (K b)
        (V b) id (dO b) (dLse b)).dQ (Q b)) (List.finRange n) :=
    sumOver_congr fun b _ => inner_map_id _ _
  rw [e]
  exact h.2 w hw

end Attention.Proof
