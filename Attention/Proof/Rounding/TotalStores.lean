module

public import Attention.Proof.Rounding.GradientStores

public section

/-! # Gradients by biases, slopes, sinks and temperatures that are stored at the end

They are sums of gradients by scores, or by queries times their temperature.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {n d_v : Nat}

/-- **rounded-score-totals**: a sum of gradients by scores of any queries, each times a number, that
a backward pass computes which rounds every operation, adds them in any order and stores the result
at the end, is within its bound, also where numbers underflow: that by a bias, where each number is
1, by a slope of ALiBi, where it is the distance, or by a sink, which is one more key of each row.
-/
theorem rounded_scoreTotals {α : Type v} {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {row : α → BackwardRow R n d_v} (valid : ∀ i, (row i).Valid) {S X : α → Fin n → R}
    (computed : ∀ i, (row i).Computed p c (S i) (X i)) {roundings : Nat}
    (hc : numeral roundings * p.accumulation < 1) {pairs : List (α × Fin n)} {y : α × Fin n → R}
    {u η z z' : R}
    (hz : ComputedSumOver p.accumulation p.tiny roundings pairs (fun i => S i.1 i.2) y z)
    (hz' : StoredBelow u η z z') :
    let exact := sumOver (fun i => (row i.1).scoreGradient i.2 * y i) pairs
    let terms := pairs.map fun i =>
      let r := row i.1
      let key := r.key i.2
      (⟨key.weight * innerSize r.dL r.keys key, scoreGradientError p c r.reach r.dL r.keys key, y i⟩
        : GradientTerm R)
    AtMost (storedGradientError u η exact
      (presentError 1 (totalError p.accumulation 0 p.tiny 0 roundings terms) terms))
      (z' - exact) :=
  rounded_totalStore hp.accumulation hp.tiny hc (fun i _ =>
    ⟨rounded_scoreGradient hp hc₁ hc₂ hu (valid i.1) (computed i.1) i.2,
      (atMost_self ((valid i.1).weight i.2)).mul (innerGradient_size (valid i.1) i.2), rfl⟩) hz hz'

/-! ## Temperatures -/

variable [Exponential R R] {q_len kv_len d : Nat} (scale t : R)
variable (modify : Fin n → ScoreMod R q_len kv_len) (slope : Fin n → ScoreSlope R R q_len kv_len)
variable (Q : Fin n → Matrix R q_len d) (K : Fin n → Matrix R kv_len d)
variable (V : Fin n → Matrix R kv_len d_v)
variable (dO : Fin n → Matrix R q_len d_v) (dLse : Fin n → Vec R q_len)

/-- **rounded-temperature-stored**: as rounded-temperature-gradients, of gradients by the queries
times their temperature that are added up tile by tile, with the gradients by the queries and by the
temperature stored at the end. -/
theorem rounded_temperature_stored {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {error slopeError : Fin n → Fin q_len → Fin kv_len → R} (he : ∀ b i j, 0 ≤ error b i j)
    {S X : Fin n → Fin q_len → Fin kv_len → R} {reach lost : R}
    (hr : 1 ≤ reach) {roundings stores tiles totals : Nat}
    (hc : numeral roundings * p.accumulation < 1) (hc' : numeral totals * p.accumulation < 1)
    {z z' : Fin n × Fin q_len × Fin d → R} {u η : R} :
    let row := fun b => backwardRow scale (modify b) (slope b) (scaleRows t (Q b)) (K b) (V b)
      (fun _ _ => 1) (dO b) (dLse b) (error b) (slopeError b)
    let scaled := fun b => vjp scale (modify b) (slope b) (scaleRows t (Q b)) (K b) (V b) id (dO b)
      (dLse b)
    let g := fun b => temperatureVjp scale t (modify b) (slope b) (Q b) (K b) (V b) id (dO b)
      (dLse b)
    let term := fun i : Fin n × Fin q_len × Fin d =>
      presentGradientTerm p roundings stores tiles scale reach ((List.finRange kv_len).map fun j =>
        scoreGradientTerm p c (row i.1 i.2.1).reach (dLse i.1)[i.2.1] (row i.1 i.2.1).keys
          ((row i.1 i.2.1).key j) (K i.1)[j][i.2.2])
    let stored := fun i : Fin n × Fin q_len × Fin d => storedGradientTerm p.output lost
      (scaled i.1).dQ[i.2.1][i.2.2] (term i).size (term i).error
    let total := fun terms =>
      presentError 1 (totalError p.accumulation 0 p.tiny 0 totals terms) terms
    (∀ b i, (row b i).Computed p c (S b i) (X b i)) →
    (∀ i, ComputedTiledGradient p roundings stores tiles scale reach (X i.1 i.2.1)
      (fun j => (K i.1)[j][i.2.2]) (z i)) →
    (∀ i, StoredBelow p.output lost (z i) (z' i)) →
    (∀ (i : Fin n × Fin q_len × Fin d) (w w' : R), 1 ≤ totals →
      StoredBelow p.accumulation p.tiny (z' i * t) w → StoredBelow u η w w' →
      let exact := (g i.1).inputs.dQ[i.2.1][i.2.2]
      AtMost (storedGradientError u η exact (total [stored i t])) (w' - exact)) ∧
    ∀ w w' : R, ComputedSumOver p.accumulation p.tiny totals (components n q_len d) z'
        (fun i => (Q i.1)[i.2.1][i.2.2]) w → StoredBelow u η w w' →
      let exact := sumOver (fun b => (g b).dTemperature) (List.finRange n)
      AtMost (storedGradientError u η exact
        (total ((components n q_len d).map fun i => stored i (Q i.1)[i.2.1][i.2.2])))
        (w' - exact) := by
  intro row scaled g term stored total computed hz hz'
  have one : ∀ i j, (0 : R) ≤ (fun _ _ => 1 : WeightFactor R q_len kv_len) i j := fun _ _ =>
    Std.le_of_lt OrderedRing.zero_lt_one
  have off : ∀ i, AtMost (term i).error (z i - (scaled i.1).dQ[i.2.1][i.2.2]) ∧
      AtMost (term i).size (scaled i.1).dQ[i.2.1][i.2.2] := fun i => by
    have h := ((rounded_presentGradients (tiles := tiles) (stores := stores) (z := z i) scale
      (modify i.1) (slope i.1) (scaleRows t (Q i.1)) (K i.1) (V i.1) (fun _ _ => 1) (dO i.1)
      (dLse i.1) hp hc₁ hc₂ hu one (he i.1) (slopeError := slopeError i.1) (S := S i.1)
      (X := X i.1) hr hc).1 (computed i.1)).1 i.2.1 i.2.2 (hz i)
    rw [vjpDropout_one] at h
    exact h
  have off' : ∀ i x, AtMost (stored i x).error (z' i - (scaled i.1).dQ[i.2.1][i.2.2]) ∧
      AtMost (stored i x).size (scaled i.1).dQ[i.2.1][i.2.2] := fun i x =>
    stored_gradient (off i).1 (off i).2 (hz' i) x
  have other : ∀ i x, (stored i x).other = x := fun _ _ => rfl
  clear_value stored
  have whole : ∀ (xs : List (Fin n × Fin q_len × Fin d)) (y : Fin n × Fin q_len × Fin d → R)
      (w w' : R), ComputedSumOver p.accumulation p.tiny totals xs z' y w → StoredBelow u η w w' →
      AtMost (storedGradientError u η
          (sumOver (fun i => (scaled i.1).dQ[i.2.1][i.2.2] * y i) xs)
          (total (xs.map fun i => stored i (y i))))
        (w' - sumOver (fun i => (scaled i.1).dQ[i.2.1][i.2.2] * y i) xs) :=
    fun xs y w w' hw hw' => rounded_totalStore hp.accumulation hp.tiny hc'
      (fun i _ => ⟨(off' i (y i)).1, (off' i (y i)).2, other i (y i)⟩) hw hw'
  refine ⟨fun i w w' hn hw hw' => ?_, fun w w' hw hw' => ?_⟩
  · have h := whole [i] (fun _ => t) w w'
      ⟨0, fun _ => w, hn, hn, fun j hj => by rw [List.mem_singleton.mp hj]; exact hw, .one⟩ hw'
    have e : sumOver (fun i : Fin n × Fin q_len × Fin d => (scaled i.1).dQ[i.2.1][i.2.2] * t) [i]
        = (g i.1).inputs.dQ[i.2.1][i.2.2] := by
      rw [sumOver_cons, sumOver_nil, Semiring.add_zero, CommSemiring.mul_comm]
      simp only [g, temperatureVjp, scaleRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul]
      rfl
    rw [e] at h
    exact h
  · have h := whole _ _ w w' hw hw'
    have e : sumOver (fun b => (g b).dTemperature) (List.finRange n)
        = sumOver (fun b => Matrix.inner (scaled b).dQ (Q b)) (List.finRange n) :=
      sumOver_congr fun b _ => inner_map_id _ _
    rw [show sumOver (fun i : Fin n × Fin q_len × Fin d => (scaled i.1).dQ[i.2.1][i.2.2]
        * (Q i.1)[i.2.1][i.2.2]) (components n q_len d)
        = sumOver (fun b => (g b).dTemperature) (List.finRange n) from
      (sum_components (fun b => (scaled b).dQ) Q).trans e.symm] at h
    exact h

end Attention.Proof
