module

public import Attention.Model.RoundedGradients
public import Attention.Proof.Rounding.Dot
public import Attention.Proof.Rounding.Majorants
public import Attention.Spec.Backward

public section

/-! # dP, D and G, within their tolerance

What a backward pass that rounds computes for a query row before it multiplies by the weights: dP,
its mean D, however it is come by, and G = dP − D + dL.
The bounds are sums and products of what each number may be in size: `Majorants.lean`.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-! ## dP -/

private theorem le_of_eq {x y : R} (h : x = y) : x ≤ y := h ▸ Std.le_refl x

/-- A weight that is stored. -/
theorem storedWeight_majorised {u weight error w : R} (hw : 0 ≤ weight)
    (h : StoredWeight u weight error w) :
    Majorised (weight * ((1 + error) * (1 + u))) weight w weight := by
  obtain ⟨x, hx, hw'⟩ := h
  have h₁ : Majorised (weight * (1 + error)) weight x weight := by
    refine ⟨?_, atMost_self hw⟩
    rwa [show weight * (1 + error) - weight = error * weight by grind]
  have h₂ := h₁.rounded hw'
  rwa [Semiring.mul_assoc] at h₂

/-- Larger factors of a majorant. -/
private theorem scale_le {A B C s : R} (hs : 0 ≤ s) (hC : 0 ≤ C) (h : A ≤ B) :
    s * A * C ≤ s * (B * C) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h hC
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ hs
  rwa [← Semiring.mul_assoc] at h₂

/-- dP, with any number of roundings. -/
private theorem product_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {factor : R} (hf : 0 ≤ factor) {dO v : Vec R d} {x : R}
    (h : ComputedProduct p c factor dO v x) :
    Majorised (factor * magnitude dO v
        * ((1 + p.accumulation) ^ c.products * ((1 + p.factors) * (1 + p.scores))))
      (factor * magnitude dO v) x (factor * Vec.dot dO v) := by
  obtain ⟨k, products, sum, t, hk, hproducts, hsum, ht, hx⟩ := h
  have hone : ∀ i ∈ List.finRange d,
      Majorised (absolute dO[i] * absolute v[i] * (1 + p.accumulation))
        (absolute dO[i] * absolute v[i]) (products i) (dO[i] * v[i]) := fun i _ =>
    (Majorised.exact ((atMost_absolute _).mul (atMost_absolute _))).rounded (hproducts i)
  have h₁ := Majorised.roundedSum hp.accumulation hsum hone
  have e : sumOver (fun i : Fin d => absolute dO[i] * absolute v[i]) (List.finRange d)
      = magnitude dO v := by
    rw [magnitude, Vec.dot]
    simp only [Fin.getElem_fin, Vec.getElem_map]
  rw [sumOver_mul_right, e, show sumOver (fun i : Fin d => dO[i] * v[i]) (List.finRange d)
    = Vec.dot dO v from rfl] at h₁
  have h₂ := (((Majorised.exact (atMost_self hf)).mul h₁).mul_factor ht).rounded hx
  refine h₂.mono ?_
  have hm : 0 ≤ factor * magnitude dO v :=
    OrderedRing.mul_nonneg hf (dot_atMost_magnitude dO v).nonneg
  have h₃ := OrderedField.pow_le_pow (x := 1 + p.accumulation)
    (by have := hp.accumulation; grind) hk
  have h₄ := scale_le hm (C := (1 + p.factors) * (1 + p.scores))
    (OrderedRing.mul_nonneg (by have := hp.factors; have := OrderedRing.zero_lt_one (R := R); grind)
      (by have := hp.scores; have := OrderedRing.zero_lt_one (R := R); grind)) h₃
  rw [Semiring.pow_succ] at h₄
  generalize (1 + p.accumulation) ^ c.products * ((1 + p.factors) * (1 + p.scores)) = y at *
  generalize magnitude dO v = m at *
  generalize (1 + p.accumulation) ^ k = z at *
  generalize 1 + p.accumulation = a at *
  generalize 1 + p.factors = f at *
  generalize 1 + p.scores = s at *
  clear h₁ h₂ h₃ e hone hsum hproducts
  grind

/-! ## D -/

/-- Sums over components and keys, in either order. -/
theorem sum_exchange {q z : Fin n → R} {b : Fin d → R} {u : Fin n → Fin d → R} :
    sumOver (fun i => b i * sumOver (fun j => q j * (z j * u j i)) (List.finRange n))
        (List.finRange d)
      = sumOver (fun j => q j * (z j * sumOver (fun i => b i * u j i) (List.finRange d)))
        (List.finRange n) := by
  have h₁ : ∀ i ∈ List.finRange d,
      b i * sumOver (fun j => q j * (z j * u j i)) (List.finRange n)
        = sumOver (fun j => b i * (q j * (z j * u j i))) (List.finRange n) := fun i _ =>
    (sumOver_mul_left _ _ _).symm
  rw [sumOver_congr h₁, sumOver_comm]
  refine sumOver_congr fun j _ => ?_
  rw [← sumOver_mul_left, ← sumOver_mul_left]
  exact sumOver_congr fun i _ => by
    generalize u j i = x
    grind

private theorem le_mul_of_one_le {a b c : R} (ha : 0 ≤ a) (hab : a ≤ b) (hc : 1 ≤ c) :
    a ≤ b * c := by
  have h := OrderedField.mul_le_mul ha hab (c := 1) (d := c)
    (Std.le_of_lt OrderedRing.zero_lt_one) hc
  rwa [Semiring.mul_one] at h

private theorem one_le_rescalings {e : R} (h₀ : 0 ≤ e) (h : e < 1) (k : Nat) :
    1 ≤ 1 / (1 - e) ^ k := by
  have h₁ := OrderedField.pow_pos (x := 1 - e) (by grind) k
  have h₂ := OrderedField.pow_le_one (x := 1 - e) (by grind) (by grind) k
  rw [OrderedField.le_div_iff h₁]
  rwa [Semiring.mul_one]

private theorem div_rescalings (y e : R) (k : Nat) : y / (1 - e) ^ k = y * (1 / (1 - e) ^ k) := by
  generalize (1 - e) ^ k = x
  rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]

/-- What D may be off by in the sums, in the order in which it is bounded. -/
private def sums (p : GradientPrecision R) (c : GradientCounts) : R :=
  (1 + gamma c.delta p.accumulation) * (1 + p.factors) * (1 + p.scores) * (1 + p.output)
    / power (1 - p.exponential) c.rescalings

private theorem sums_le {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc : numeral c.delta * p.accumulation < 1) {N : Nat} (hN : N ≤ c.delta) :
    (1 + p.accumulation) ^ N * ((1 + p.factors) * (1 + p.scores)) ≤ sums p c ∧
      (1 + p.accumulation) ^ N * (1 + p.factors) / (1 - p.exponential) ^ c.rescalings
        * (1 + p.output) ≤ sums p c := by
  have hg := pow_le_gamma hp.accumulation hN hc
  have h₀ := OrderedField.one_le_pow (one_le_one_plus hp.accumulation) N
  have hf := one_le_one_plus hp.factors
  have hs := one_le_one_plus hp.scores
  have ho := one_le_one_plus hp.output
  have hI := one_le_rescalings hp.exponential hp.exponential_lt c.rescalings
  rw [sums, power_eq]
  generalize (1 + p.accumulation) ^ N = g at *
  generalize 1 + gamma c.delta p.accumulation = G at *
  generalize 1 + p.factors = f at *
  generalize 1 + p.scores = s at *
  generalize 1 + p.output = o at *
  rw [div_rescalings (G * f * s * o), div_rescalings (g * f)]
  generalize 1 / (1 - p.exponential) ^ c.rescalings = I at *
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hg (nonneg_of_one_le hf)
  have n₀ := OrderedRing.mul_nonneg (nonneg_of_one_le h₀) (nonneg_of_one_le hf)
  have n₁ := OrderedRing.mul_nonneg n₀ (nonneg_of_one_le hs)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (nonneg_of_one_le hs)
  have h₃ := le_mul_of_one_le n₁ h₂ ho
  have h₄ := le_mul_of_one_le n₁ h₃ hI
  have h₅ := le_mul_of_one_le n₀ h₁ hs
  have n₂ := nonneg_of_one_le ho
  have n₃ := nonneg_of_one_le hI
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedRing.mul_le_mul_of_nonneg_right h₅ n₂) n₃
  refine ⟨?_, ?_⟩
  · rwa [← Semiring.mul_assoc]
  · rwa [show g * f * I * o = g * f * o * I by grind]

private theorem regroup {g P E A x u F : R} (h : P * E * A ≥ 0) (hF : g * x * u ≤ F) :
    g * (P * E * (A * x) * u) ≤ P * A * (E * F) := by
  have := OrderedRing.mul_le_mul_of_nonneg_left hF h
  have e₁ : P * E * A * (g * x * u) = g * (P * E * (A * x) * u) := by grind
  have e₂ : P * E * A * F = P * A * (E * F) := by grind
  rwa [e₁, e₂] at this

/-- What a weight may be as it meets its value, over what it is. -/
private def storedFactor (p : GradientPrecision R) (r : BackwardRow R n d_v) (j : Fin n) : R :=
  (1 + r.error j) * (1 + p.stored)

private theorem storedFactor_nonneg {p : GradientPrecision R} (hp : PreciseGradient p)
    {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) : 0 ≤ storedFactor p r j :=
  OrderedRing.mul_nonneg (nonneg_of_one_le (one_le_one_plus (hr.error j)))
    (nonneg_of_one_le (one_le_one_plus hp.stored))

private theorem key_size_nonneg {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) :
    0 ≤ r.factor j * magnitude r.dO (r.value j) :=
  OrderedRing.mul_nonneg (hr.factor j) (dot_atMost_magnitude _ _).nonneg

/-- D as the sum of products. -/
private theorem mean_ofProducts {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {k : Nat} {w x y : Fin n → R} {D : R}
    (hw : ∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j))
    (hx : ∀ j, ComputedProduct p c (r.factor j) r.dO (r.value j) (x j))
    (hy : ∀ j, Rounded p.accumulation (w j * x j) (y j))
    (hD : RoundedSum p.accumulation k ((List.finRange n).map y) D)
    (hk : c.products + k + 1 ≤ c.delta) :
    Majorised (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j))
        * (storedFactor p r j * sums p c)) (List.finRange n))
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
  have h₁ := Majorised.roundedSum hp.accumulation hD fun j _ =>
    ((storedWeight_majorised (hr.weight j) (hw j)).mul
      (product_majorised hp (hr.factor j) (hx j))).rounded (hy j)
  refine h₁.mono ?_
  rw [← sumOver_mul_left]
  refine sumOver_le_sumOver fun j _ => regroup (E := (1 + r.error j) * (1 + p.stored))
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (hr.weight j) (storedFactor_nonneg hp hr j))
      (key_size_nonneg hr j)) ?_
  refine Std.le_trans (le_of_eq ?_) (sums_le hp hc hk).1
  rw [Semiring.pow_succ, Semiring.pow_add]
  generalize (1 + p.accumulation) ^ k = a
  generalize (1 + p.accumulation) ^ c.products = b
  generalize (1 + p.factors) * (1 + p.scores) = f
  clear h₁ hD hy hx hw hc hp
  grind

/-- One component of an output that is stored, times that of dO. -/
private theorem output_majorised {p : GradientPrecision R} {r : BackwardRow R n d_v}
    (hr : r.Valid) {T : R} {w : Fin n → R} {t : Fin n → R} {i : Fin d_v} {o y : R}
    (hw : ∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j))
    (ht : ∀ j, AtMost (T - 1) (t j - 1))
    (ho : Rounded p.output
      (sumOver (fun j => w j * (r.factor j * (r.value j)[i]) * t j) (List.finRange n)) o)
    (hy : Rounded p.accumulation (r.dO[i] * o) y) :
    Majorised (T * (1 + p.output) * (1 + p.accumulation)
        * (absolute r.dO[i] * sumOver (fun j => r.weight j * storedFactor p r j
          * (r.factor j * absolute (r.value j)[i])) (List.finRange n)))
      (absolute r.dO[i] * sumOver (fun j => r.weight j
        * (r.factor j * absolute (r.value j)[i])) (List.finRange n)) y
      (r.dO[i] * sumOver (fun j => r.weight j * (r.factor j * (r.value j)[i]))
        (List.finRange n)) := by
  have h₁ := Majorised.sum (xs := List.finRange n) fun j _ =>
    ((storedWeight_majorised (hr.weight j) (hw j)).mul (.exact
      ((atMost_self (hr.factor j)).mul (atMost_absolute (r.value j)[i])))).mul_factor (ht j)
  rw [sumOver_mul_right] at h₁
  have h₂ := ((Majorised.exact (atMost_absolute r.dO[i])).mul (h₁.rounded ho)).rounded hy
  refine h₂.mono (le_of_eq ?_)
  have e : (1 : R) + (T - 1) = T := by grind
  rw [e]
  simp only [storedFactor]
  generalize sumOver _ (List.finRange n) = x
  generalize 1 + p.output = a
  generalize 1 + p.accumulation = b
  generalize absolute r.dO[i] = f
  clear h₁ h₂ ho hy ht hw
  grind

/-- D from an output that is stored. -/
private theorem mean_ofOutput {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {m k : Nat} {w : Fin n → R} {t : Fin n → Fin d_v → R} {o y : Fin d_v → R} {D : R}
    (hw : ∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j))
    (ht : ∀ j i, AtMost ((1 + p.accumulation) ^ m * (1 + p.factors)
        / (1 - p.exponential) ^ c.rescalings - 1) (t j i - 1))
    (ho : ∀ i : Fin d_v, Rounded p.output
        (sumOver (fun j => w j * (r.factor j * (r.value j)[i]) * t j i) (List.finRange n)) (o i))
    (hy : ∀ i : Fin d_v, Rounded p.accumulation (r.dO[i] * o i) (y i))
    (hD : RoundedSum p.accumulation k ((List.finRange d_v).map y) D)
    (hk : m + k + 1 ≤ c.delta) :
    Majorised (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j))
        * (storedFactor p r j * sums p c)) (List.finRange n))
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
  have h₁ := Majorised.roundedSum hp.accumulation hD fun i _ =>
    output_majorised hr hw (fun j => ht j i) (ho i) (hy i)
  rw [sumOver_mul_left, sum_exchange, sum_exchange, sum_exchange] at h₁
  have e : ∀ j, sumOver (fun i : Fin d_v => absolute r.dO[i] * absolute (r.value j)[i])
      (List.finRange d_v) = magnitude r.dO (r.value j) := fun j => by
    rw [magnitude, Vec.dot]
    simp only [Fin.getElem_fin, Vec.getElem_map]
  simp only [e] at h₁
  refine h₁.mono ?_
  rw [← sumOver_mul_left, ← sumOver_mul_left]
  refine sumOver_le_sumOver fun j _ => ?_
  have n₁ : 0 ≤ r.weight j * storedFactor p r j * (r.factor j * magnitude r.dO (r.value j)) :=
    OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (hr.weight j) (storedFactor_nonneg hp hr j))
      (key_size_nonneg hr j)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (sums_le hp hc hk).2 n₁
  rw [Semiring.pow_succ, Semiring.pow_add] at h₂
  clear h₁ hD hy ho ht hw hc hp e n₁
  generalize sums p c = F at *
  generalize storedFactor p r j = E at *
  generalize r.factor j * magnitude r.dO (r.value j) = A at *
  rw [div_rescalings] at h₂ ⊢
  generalize 1 / (1 - p.exponential) ^ c.rescalings = I at *
  generalize (1 + p.accumulation) ^ k = a at *
  generalize (1 + p.accumulation) ^ m = b at *
  generalize 1 + p.accumulation = u at *
  generalize 1 + p.factors = f at *
  generalize 1 + p.output = q at *
  refine Std.le_trans (le_of_eq ?_) (Std.le_trans h₂ (le_of_eq ?_))
  · clear h₂
    grind
  · clear h₂
    grind

/-- D, however it is come by. -/
private theorem mean_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {D : R} (h : ComputedMean p c r D) :
    Majorised (meanSize r.keys + meanError p c r.keys) (meanSize r.keys) D
      (meanProduct r.keys) := by
  have h₁ : Majorised (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j))
        * (storedFactor p r j * sums p c)) (List.finRange n))
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
    cases h with
    | ofProducts hw hx hy hD hk => exact mean_ofProducts hp hc hr hw hx hy hD hk
    | ofOutput hw ht ho hy hD hk => exact mean_ofOutput hp hc hr hw ht ho hy hD hk
  simp only [meanSize, meanError, meanProduct, BackwardRow.keys, sumOver_map, BackwardRow.key,
    gradientKey]
  refine h₁.mono (le_of_eq ?_)
  rw [← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  show _ * _ * (_ * sums p c) = _ + _ * _ * (_ * _ * sums p c - 1)
  rw [storedFactor]
  clear h₁ h hc hr hp
  generalize sums p c = F
  generalize magnitude r.dO (r.value j) = A
  grind

/-! ## G -/

private theorem mean_keys {r : BackwardRow R n d_v} {p : GradientPrecision R}
    (hp : PreciseGradient p) {c : GradientCounts} (hr : r.Valid) {j : Fin n} {x : R}
    (hc : numeral c.products * p.accumulation < 1)
    (hx : ComputedProduct p c (r.factor j) r.dO (r.value j) x) :
    Majorised ((r.key j).size * ((1 + gamma c.products p.accumulation) * (1 + p.factors)
      * (1 + p.scores))) (r.key j).size x (r.key j).product := by
  refine (product_majorised hp (hr.factor j) hx).mono ?_
  have h₁ := pow_le_gamma hp.accumulation (Nat.le_refl c.products) hc
  have h₂ := scale_le (key_size_nonneg hr j) (C := (1 + p.factors) * (1 + p.scores))
    (OrderedRing.mul_nonneg (nonneg_of_one_le (one_le_one_plus hp.factors))
      (nonneg_of_one_le (one_le_one_plus hp.scores))) h₁
  rw [← Semiring.mul_assoc] at h₂ ⊢
  rwa [Semiring.mul_assoc, Semiring.mul_assoc, ← Semiring.mul_assoc (1 + gamma _ _),
    ← Semiring.mul_assoc] at h₂

private theorem three_terms {A D L x y z x' y' a b : R} (h₁ : Majorised a A x' x)
    (h₂ : Majorised b D y' y) (h₃ : Majorised L L z z) :
    ∀ t ∈ [(a, A, x', x), (b, D, -y', -y), (L, L, z, z)],
      Majorised t.1 t.2.1 t.2.2.1 t.2.2.2 := fun t ht => by
  have h₄ : Majorised b D (-y') (-y) := by
    obtain ⟨⟨i₁, i₂⟩, i₃, i₄⟩ := h₂
    exact ⟨⟨by grind, by grind⟩, by grind, by grind⟩
  rcases List.mem_cons.mp ht with rfl | ht
  · exact h₁
  rcases List.mem_cons.mp ht with rfl | ht
  · exact h₄
  obtain rfl := List.mem_singleton.mp ht
  exact h₃

/-- G. -/
theorem rounded_innerGradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {D x G : R} {j : Fin n} (hD : ComputedMean p c r D)
    (hx : ComputedProduct p c (r.factor j) r.dO (r.value j) x)
    (hG : RoundedSum p.unit 3 [x, -D, r.dL] G) :
    AtMost (innerError p c r.dL r.keys (r.key j))
      (G - innerGradient r.dL r.keys (r.key j)) := by
  have terms := three_terms (mean_keys hp hr hc₁ hx) (mean_majorised hp hc₂ hr hD)
    (.exact (atMost_absolute r.dL))
  have h₁ := (Majorised.roundedSum hp.unit (xs := [(_, _, x, (r.key j).product),
    (_, _, -D, -meanProduct r.keys), (_, _, r.dL, r.dL)]) (f := fun t => t.2.2.1) hG terms).error
  have h₂ := pow_le_gamma hp.unit (Nat.le_refl 3) hu
  have h₃ := (Majorised.sum terms).computed.nonneg
  rw [innerError, innerGradient, innerSize]
  simp only [sumOver_cons, sumOver_nil] at h₁ h₃
  clear terms hG hx hD hc₁ hc₂ hu hp hr
  generalize (1 + gamma c.products p.accumulation) * (1 + p.factors) * (1 + p.scores) = E at *
  generalize meanError p c r.keys = e at *
  generalize meanSize r.keys = W at *
  generalize meanProduct r.keys = M at *
  generalize (r.key j).size = A at *
  generalize (r.key j).product = P at *
  generalize absolute r.dL = L at *
  generalize gamma 3 p.unit = g at *
  generalize (1 + p.unit) ^ 3 = f at *
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₂ h₃
  have h₅ := h₁.mono (show f * (A * E + (W + e + (L + 0))) - (A + (W + (L + 0)))
    ≤ (1 + g) * (A * E + (W + e + (L + 0))) - (A + (W + (L + 0))) by
      clear h₁ h₂ h₃
      grind)
  rwa [show G - (P + (-M + (r.dL + 0))) = G - (P - M + r.dL) by grind,
    show (1 + g) * (A * E + (W + e + (L + 0))) - (A + (W + (L + 0)))
      = (E - 1) * A + e + g * (A + W + L + ((E - 1) * A + e)) by clear h₅ h₁ h₂ h₃ h₄; grind] at h₅

end Attention.Proof
