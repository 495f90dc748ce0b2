module

public import Attention.Proof.Derivative.Tangent
public import Attention.Proof.Rounding.Near

public section

/-! # Rates of outputs and of log-sum-exps, within their tolerance

Every number is near to the exact one in the sense of `Near`; what is left is to compare the factors
that it has gone through with those that the tolerance counts.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}

/-! ## Weights and the sums of what they multiply -/

/-- How large the weight of a key is at most, with what it and its product are stored in. -/
private abbrev grownWeight (k : BoundedRate R) : R :=
  (1 + k.stored) * (1 + k.stored) * (k.weight + k.weight * k.weightError)

private theorem tangent_le {a b : R} (h : a = b) : a ≤ b := h ▸ Std.le_refl _

private theorem tangent_one_le {x : R} (h : 0 ≤ x) : 1 ≤ 1 + x := by grind

variable {p : Precision R} {cols : List α} {key : α → BoundedRate R}

/-- Weights, and the unit roundoffs that they are stored with, are not negative. -/
abbrev NotNegativeRates (cols : List α) (key : α → BoundedRate R) : Prop :=
  ∀ j ∈ cols, 0 ≤ (key j).weight ∧ 0 ≤ (key j).stored

private theorem tangent_weight_near (nonneg : NotNegativeRates cols key) {w : α → R}
    (h : ComputedWeights cols key w) : ∀ j ∈ cols,
      Near ((1 + (key j).stored) * ((key j).weight + (key j).weight * (key j).weightError))
        (key j).weight (key j).weight (w j) := fun j hj => by
  obtain ⟨x, hx, hw⟩ := h j hj
  have hn := (nonneg j hj).1
  exact (Near.of_error ⟨by grind, Std.le_refl _⟩ hx).rounded hw

private theorem grown_nonneg (nonneg : NotNegativeRates cols key) {w : α → R}
    (h : ComputedWeights cols key w) : ∀ j ∈ cols, 0 ≤ grownWeight (key j) := fun j hj => by
  obtain ⟨x, hx, -⟩ := h j hj
  have h₁ := hx.nonneg
  obtain ⟨h₂, h₃⟩ := nonneg j hj
  have one := tangent_one_le h₃
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (by grind) (by grind)) (by grind)

/-- A weight that is not multiplied is stored once. -/
private theorem weight_near_grown (nonneg : NotNegativeRates cols key)
    {w : α → R} (h : ComputedWeights cols key w) : ∀ j ∈ cols,
      Near (grownWeight (key j)) (key j).weight (key j).weight (w j) := fun j hj => by
  have h₁ := tangent_weight_near nonneg h j hj
  refine h₁.mono ?_
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (tangent_one_le (nonneg j hj).2) h₁.nonneg
  simp only [grownWeight]
  rwa [Semiring.one_mul, ← Semiring.mul_assoc] at h₂

private theorem tangent_rate_near (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate) {s : α → R}
    (h : ComputedRates cols key s) : ∀ j ∈ cols,
      Near ((key j).size + (key j).rateError) (key j).size (key j).rate (s j) := fun j hj =>
  .of_error (sizes j hj) (h j hj)

/-- A weight times a number that is near to an exact one. -/
private theorem storedProduct_near (nonneg : NotNegativeRates cols key)
    {w : α → R} (hw : ComputedWeights cols key w) {j : α} (hj : j ∈ cols) {M S e x y : R}
    (h : Near M S e x) (hy : StoredProduct p (key j) (w j * x) y) :
    Near ((1 + p.unit) * (grownWeight (key j) * M)) ((key j).weight * S)
      ((key j).weight * e) y := by
  obtain ⟨z, hz, hy⟩ := hy
  have h₁ := (((tangent_weight_near nonneg hw j hj).mul h).rounded hz).rounded hy
  refine h₁.mono (tangent_le ?_)
  simp only [grownWeight]
  generalize (key j).weight + (key j).weight * (key j).weightError = g
  clear h₁ hz hy h
  grind

/-- The factor of a sum over keys comes out of it. -/
private theorem sum_factor (T F : R) (f : α → R) :
    T * sumOver (fun j => F * f j) cols = T * F * sumOver f cols := by
  rw [sumOver_mul_left]
  generalize sumOver f cols = s
  grind

private theorem weighed_near (hp : Precise p) {F : R} {B b y v x : α → R} {k r : Nat} {z : R}
    (hx : ∀ j ∈ cols, Near (F * (grownWeight (key j) * B j)) ((key j).weight * b j)
      ((key j).weight * y j) (x j)) (hz : WeighedSum p k r cols x v z) :
    Near ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r * F
        * sumOver (fun j => grownWeight (key j) * B j * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * b j * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * y j * v j) cols) z := by
  obtain ⟨products, h₁, h₂⟩ := hz
  have h := Near.rescaled hp.accumulation hp.exponential (fun j hj =>
    ((hx j hj).mul (Near.refl (atMost_absolute (v j)))).rounded (h₁ j hj)) h₂
  refine h.mono (tangent_le ?_)
  have e : (fun j => (1 + p.accumulation) * (F * (grownWeight (key j) * B j) * absolute (v j)))
      = fun j => (1 + p.accumulation) * F * (grownWeight (key j) * B j * absolute (v j)) := by
    funext j
    generalize grownWeight (key j) = g
    generalize absolute (v j) = c
    grind
  rw [e, sum_factor, Semiring.pow_succ]
  generalize sumOver (fun j => grownWeight (key j) * B j * absolute (v j)) cols = s
  generalize (1 + p.accumulation) ^ k = A
  generalize (1 + p.exponential) ^ r = E
  grind

/-! ## Factors -/

private theorem tangent_three_le {a b c a' b' c' : R} (ha : 1 ≤ a) (hb : 1 ≤ b) (hc : 1 ≤ c)
    (h₁ : a ≤ a') (h₂ : b ≤ b') (h₃ : c ≤ c') : a * b * c ≤ a' * b' * c' := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have i₁ := OrderedField.mul_le_mul (a := a) (by grind) h₁ (c := b) (by grind) h₂
  have n₁ := OrderedRing.mul_nonneg (a := a) (b := b) (by grind) (by grind)
  exact OrderedField.mul_le_mul n₁ i₁ (by grind) h₃

/-- What a number goes through, against what the tolerance counts. -/
private theorem rateFactor_le (hp : Precise p) {i k r roundings rescalings : Nat} (hi : i ≤ 5)
    (hk : k ≤ roundings) (hr : r ≤ rescalings) :
    (1 + p.unit) ^ i * (1 + p.accumulation) ^ k * (1 + p.exponential) ^ r
      ≤ rateFactor p roundings rescalings := by
  have h₁ := tangent_one_le hp.unit
  have h₃ := tangent_one_le hp.accumulation
  have h₄ := tangent_one_le hp.exponential
  rw [rateFactor, power_eq, power_eq, power_eq]
  exact tangent_three_le (OrderedField.one_le_pow h₁ i) (OrderedField.one_le_pow h₃ k)
    (OrderedField.one_le_pow h₄ r) (OrderedField.pow_le_pow h₁ hi) (OrderedField.pow_le_pow h₃ hk)
    (OrderedField.pow_le_pow h₄ hr)

/-! ## The tolerance is M − S -/

private theorem weighedError_eq (factor : R) (size error other : BoundedRate R → R) :
    weighedError factor size error other (cols.map key)
      = factor * sumOver (fun j => grownWeight (key j) * (size (key j) + error (key j))
          * other (key j)) cols
        - sumOver (fun j => (key j).weight * size (key j) * other (key j)) cols := by
  rw [weighedError, sumOver_map, ← sumOver_mul_left, ← sumOver_sub]
  refine sumOver_congr fun j _ => ?_
  rw [power_eq, Semiring.pow_two]
  simp only [grownWeight]
  generalize size (key j) = s
  generalize error (key j) = d
  generalize other (key j) = y
  grind

/-- A computed μ is near to the exact one. -/
private theorem mean_near (hp : Precise p) (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate) {k r roundings rescalings : Nat}
    (hk : k ≤ roundings) (hr : r ≤ rescalings) {μ : R} (h : ComputedMeanRate p k r cols key μ) :
    Near (rateFactor p roundings rescalings
        * sumOver (fun j => grownWeight (key j) * ((key j).size + (key j).rateError)) cols)
      (sumOver (fun j => (key j).weight * (key j).size) cols)
      (sumOver (fun j => (key j).weight * (key j).rate) cols) μ := by
  obtain ⟨w, s, x, hw, hs, hx, hμ⟩ := h
  have h := Near.rescaled hp.accumulation hp.exponential (fun j hj =>
    storedProduct_near nonneg hw hj (tangent_rate_near sizes hs j hj) (hx j hj)) hμ
  have hn : 0 ≤ sumOver (fun j => grownWeight (key j) * ((key j).size + (key j).rateError)) cols :=
    sumOver_nonneg fun j hj => OrderedRing.mul_nonneg (grown_nonneg nonneg hw j hj)
      (tangent_rate_near sizes hs j hj).nonneg
  refine h.mono ?_
  rw [sum_factor]
  refine OrderedRing.mul_le_mul_of_nonneg_right ?_ hn
  refine Std.le_trans (tangent_le ?_) (rateFactor_le hp (i := 1) (by decide) hk hr)
  rw [Semiring.pow_one]
  generalize (1 + p.accumulation) ^ k = A
  generalize (1 + p.exponential) ^ r = E
  grind

/-- A mean rate, in whatever order, is within its tolerance. -/
theorem rounded_meanRate (hp : Precise p) (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate) {k r roundings rescalings : Nat}
    (hk : k ≤ roundings) (hr : r ≤ rescalings) {μ : R} (h : ComputedMeanRate p k r cols key μ) :
    AtMost (meanRateTolerance p roundings rescalings (cols.map key))
      (μ - meanRate (cols.map key)) := by
  have h := (mean_near hp nonneg sizes hk hr h).error
  rw [meanRateTolerance, weighedError_eq, meanRate, sumOver_map]
  simp only [Semiring.mul_one]
  exact h

/-! ## The parts of the rate of the output -/

private theorem tangent_two_near {u M S e z M' S' e' z' y : R} (hu : 0 ≤ u) (h : Near M S e z)
    (h' : Near M' S' e' z') (hy : RoundedSum u 3 [z, z'] y) :
    Near ((1 + u) ^ 3 * (M + M')) (S + S') (e + e') y := by
  have h₁ := roundedSum_error hu hy
  have e₁ : sumOver id [z, z'] = z + z' := by
    simp only [sumOver_cons, sumOver_nil, id, Semiring.add_zero]
  have e₂ : sumOver absolute [z, z'] = absolute z + absolute z' := by
    simp only [sumOver_cons, sumOver_nil, Semiring.add_zero]
  rw [e₁, e₂] at h₁
  refine (h.add h').trans (h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left
    (OrderedAdd.add_le_add (absolute_le h.most) (absolute_le h'.most)) ?_))
  have := OrderedField.one_le_pow (tangent_one_le hu) 3
  grind

private theorem tangent_three_near {u M S e z M' S' e' z' M'' S'' e'' z'' y : R} (hu : 0 ≤ u)
    (h : Near M S e z) (h' : Near M' S' e' z') (h'' : Near M'' S'' e'' z'')
    (hy : RoundedSum u 3 [z, z', z''] y) :
    Near ((1 + u) ^ 3 * (M + M' + M'')) (S + S' + S'') (e + e' + e'') y := by
  have h₁ := roundedSum_error hu hy
  have e₁ : sumOver id [z, z', z''] = z + z' + z'' := by
    simp only [sumOver_cons, sumOver_nil, id, Semiring.add_zero, Semiring.add_assoc]
  have e₂ : sumOver absolute [z, z', z''] = absolute z + absolute z' + absolute z'' := by
    simp only [sumOver_cons, sumOver_nil, Semiring.add_zero, Semiring.add_assoc]
  rw [e₁, e₂] at h₁
  refine ((h.add h').add h'').trans (h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left
    (OrderedAdd.add_le_add (OrderedAdd.add_le_add (absolute_le h.most) (absolute_le h'.most))
      (absolute_le h''.most)) ?_))
  have := OrderedField.one_le_pow (tangent_one_le hu) 3
  grind

/-- Σ p x v of products that are stored, where x is near to an exact number. -/
private theorem tangent_products (hp : Precise p) (nonneg : NotNegativeRates cols key)
    {w t x v B b y : α → R} (hw : ComputedWeights cols key w)
    (ht : ∀ j ∈ cols, Near (B j) (b j) (y j) (t j))
    (hx : ∀ j ∈ cols, StoredProduct p (key j) (w j * t j) (x j)) {k r : Nat} {z : R}
    (hz : WeighedSum p k r cols x v z) :
    Near ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r
        * (1 + p.unit) * sumOver (fun j => grownWeight (key j) * B j * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * b j * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * y j * v j) cols) z :=
  weighed_near hp (fun j hj => storedProduct_near nonneg hw hj (ht j hj) (hx j hj)) hz

/-- Σ p v. -/
private theorem tangent_values_near (hp : Precise p) (nonneg : NotNegativeRates cols key)
    {w v : α → R} (hw : ComputedWeights cols key w) {k r : Nat} {z : R}
    (hz : WeighedSum p k r cols w v z) :
    Near ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r
        * sumOver (fun j => grownWeight (key j) * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * v j) cols) z := by
  have h := weighed_near (key := key) hp (F := 1) (B := fun _ => 1) (b := fun _ => 1)
    (y := fun _ => 1) (fun j hj => by
      simp only [Semiring.mul_one, Semiring.one_mul]
      exact weight_near_grown nonneg hw j hj) hz
  simp only [Semiring.mul_one] at h
  exact h

private theorem tangent_scaled_le {a x f K A : R} (h : a * f ≤ K) (hx : 0 ≤ x) (hA : 0 ≤ A) :
    a * (x * (f * A)) ≤ K * x * A := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h (OrderedRing.mul_nonneg hx hA)
  rwa [show a * f * (x * A) = a * (x * (f * A)) by grind,
    show K * (x * A) = K * x * A by grind] at h₁

private theorem tangent_inside_le {a x f f' K A B C M X : R} (h : a * f ≤ K) (h' : a * f' ≤ K)
    (hX : K * x * B ≤ X) (hx : 0 ≤ x) (hA : 0 ≤ A) (hB : 0 ≤ B) (hC : 0 ≤ C) (hM : 0 ≤ M) :
    a * (x * (f * (A + M * B)) + x * (f' * C)) ≤ K * x * A + M * X + K * x * C := by
  have h₁ := tangent_scaled_le h hx hA
  have h₂ := tangent_scaled_le h hx (OrderedRing.mul_nonneg hM hB)
  have h₃ := tangent_scaled_le h' hx hC
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left hX hM
  clear h h' hX
  grind

private theorem tangent_outside_le {a x f f' K A C M X Y : R} (h : a * f ≤ K) (h' : a * f' ≤ K)
    (hX : a * x * Y ≤ X) (hx : 0 ≤ x) (hA : 0 ≤ A) (hC : 0 ≤ C) (hM : 0 ≤ M) :
    a * (x * (f * A) + x * (M * Y) + x * (f' * C)) ≤ K * x * A + M * X + K * x * C := by
  have h₁ := tangent_scaled_le h hx hA
  have h₃ := tangent_scaled_le h' hx hC
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left hX hM
  clear h h' hX hx hA hC hM
  grind

/-- Roundings after a number is stored, against the same before. -/
private theorem tangent_stored {y m S e o out : R} (hy : 1 ≤ y) (hm : y * m ≤ S + e) (ho : o ≤ S)
    (hout : 0 ≤ out) : y * (m + out * (o + (m - S))) ≤ S + (e + out * (o + e)) := by
  have h₁ := OrderedRing.mul_nonneg (a := y - 1) (b := S - o) (by grind) (by grind)
  have h₂ : y * (o + (m - S)) ≤ o + e := by grind
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left h₂ hout
  grind

/-- What the parts of a sum go through. -/
private theorem factors_counted (hp : Precise p) {k r roundings rescalings : Nat}
    (hk : k + 1 ≤ roundings) (hr : r ≤ rescalings) :
    (1 + p.unit) ^ 3 * ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r
        * (1 + p.unit) * (1 + p.unit)) ≤ rateFactor p roundings rescalings ∧
    (1 + p.unit) ^ 3 * ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r
        * (1 + p.unit)) ≤ rateFactor p roundings rescalings ∧
    (1 + p.unit) ^ 3 * ((1 + p.unit) * ((1 + p.accumulation) ^ (k + 1)
        * (1 + p.exponential) ^ r)) ≤ rateFactor p roundings rescalings ∧
    (1 + p.unit) ^ 3 * ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r)
      ≤ rateFactor p roundings rescalings := by
  have h₁ := rateFactor_le hp (i := 5) (by decide) hk hr
  have h₂ := rateFactor_le hp (i := 4) (by decide) hk hr
  have h₄ := rateFactor_le hp (i := 3) (by decide) hk hr
  rw [show (5 : Nat) = 3 + 1 + 1 from rfl, Semiring.pow_succ, Semiring.pow_succ] at h₁
  rw [show (4 : Nat) = 3 + 1 from rfl, Semiring.pow_succ] at h₂
  generalize (1 + p.accumulation) ^ (k + 1) = A at *
  generalize (1 + p.exponential) ^ r = E at *
  generalize (1 + p.unit) ^ 3 = U at *
  generalize rateFactor p roundings rescalings = K at *
  generalize 1 + p.unit = x at *
  clear hp hk hr
  refine ⟨Std.le_trans (tangent_le ?_) h₁, Std.le_trans (tangent_le ?_) h₂,
    Std.le_trans (tangent_le ?_) h₂, Std.le_trans (tangent_le ?_) h₄⟩ <;> grind

/-- Σ (p x) (s + m) v, in two sums. -/
private theorem inside_sum (g s v : α → R) (m : R) :
    sumOver (fun j => g j * (s j + m) * v j) cols
      = sumOver (fun j => g j * s j * v j) cols + m * sumOver (fun j => g j * v j) cols := by
  rw [← sumOver_mul_left, ← sumOver_add]
  exact sumOver_congr fun j _ => by
    generalize g j = a
    generalize v j = b
    generalize s j = c
    grind

private theorem inside_difference (g s v : α → R) (m : R) :
    sumOver (fun j => g j * (s j - m) * v j) cols
      = sumOver (fun j => g j * s j * v j) cols - m * sumOver (fun j => g j * v j) cols := by
  rw [← sumOver_mul_left, ← sumOver_sub]
  exact sumOver_congr fun j _ => by
    generalize g j = a
    generalize v j = b
    generalize s j = c
    grind

private theorem inside_factor (g s v : α → R) (x : R) :
    sumOver (fun j => g j * (x * s j) * v j) cols
      = x * sumOver (fun j => g j * s j * v j) cols := by
  rw [← sumOver_mul_left]
  exact sumOver_congr fun j _ => by
    generalize g j = a
    generalize v j = b
    generalize s j = c
    grind

private theorem one_le_rateFactor (hp : Precise p) (roundings rescalings : Nat) :
    1 ≤ rateFactor p roundings rescalings := by
  have h := rateFactor_le hp (i := 0) (Nat.zero_le _) (Nat.zero_le roundings)
    (Nat.zero_le rescalings)
  simp only [Semiring.pow_zero, Semiring.mul_one] at h
  exact h

private theorem outside_equal (a x f A u M Y f' C : R) :
    a * (x * (f * A) + x * (u * (M * Y)) + x * (f' * C))
      = a * (x * (f * A) + x * (M * (u * Y)) + x * (f' * C)) := by
  grind

private theorem stored_equal (a x u Y : R) : a * x * (u * Y) = a * x * u * Y := by grind

/-- How far o may be off before it meets μ, as it is stored. -/
private abbrev tangentUnstored (p : Precision R) (apart : R) (roundings rescalings : Nat)
    (key : α → BoundedRate R) (cols : List α) : R :=
  rateFactor p roundings rescalings * (1 + apart)
      * sumOver (fun j => grownWeight (key j) * absolute (key j).value) cols
    - sumOver (fun j => (key j).weight * absolute (key j).value) cols

private abbrev tangentOutputError (p : Precision R) (output apart : R) (roundings rescalings : Nat)
    (key : α → BoundedRate R) (cols : List α) : R :=
  tangentUnstored p apart roundings rescalings key cols
    + output * (absolute (sumOver (fun j => (key j).weight * (key j).value) cols)
      + tangentUnstored p apart roundings rescalings key cols)

private theorem tangent_before_stored {S e out o : R} (ho : 0 ≤ out) (hn : 0 ≤ o + e) :
    S + e ≤ S + (e + out * (o + e)) := by
  have := OrderedRing.mul_nonneg ho hn
  grind

private theorem tangent_remainder (M S : R) : M = S + (M - S) := by grind

private theorem unstored_nonneg (hp : Precise p) {apart : R} (ha : 1 ≤ 1 + apart)
    (nonneg : NotNegativeRates cols key) {w : α → R} (hw : ComputedWeights cols key w)
    (roundings rescalings : Nat) (o : R) :
    0 ≤ absolute o + tangentUnstored p apart roundings rescalings key cols := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ : sumOver (fun j => (key j).weight * absolute (key j).value) cols
      ≤ sumOver (fun j => grownWeight (key j) * absolute (key j).value) cols :=
    sumOver_le_sumOver fun j hj => by
      exact OrderedRing.mul_le_mul_of_nonneg_right (weight_near_grown nonneg hw j hj).le
        (absolute_nonneg _)
  have h₂ : 0 ≤ sumOver (fun j => (key j).weight * absolute (key j).value) cols :=
    sumOver_nonneg fun j hj => OrderedRing.mul_nonneg (nonneg j hj).1 (absolute_nonneg _)
  have h₃ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀)
    (one_le_rateFactor hp roundings rescalings) (c := 1) (Std.le_of_lt h₀) ha
  have h₄ := absolute_nonneg o
  rw [tangentUnstored]
  generalize sumOver (fun j => (key j).weight * absolute (key j).value) cols = S at *
  generalize sumOver (fun j => grownWeight (key j) * absolute (key j).value) cols = B at *
  generalize rateFactor p roundings rescalings * (1 + apart) = K at *
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right (a := 1) (b := K) (c := B) (by grind) (by grind)
  clear hw nonneg
  grind

private theorem tangent_ones {a x u : R} (ha : 1 ≤ a) (hx : 1 ≤ x) (hu : 1 ≤ u) :
    1 ≤ a * x * u := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) ha (c := 1)
    (Std.le_of_lt h₀) hx
  have h₂ := OrderedField.mul_le_mul (a := (1 * 1 : R)) (by grind) h₁ (c := 1)
    (Std.le_of_lt h₀) hu
  grind

private theorem tangent_regrouped (a x u g B : R) :
    a * x * u * (g * B) = a * (u * g) * x * B := by grind

private theorem tangent_difference (a b c : R) : a + -b + c = a - b + c := by grind

/-- A computed ȯ is near to the exact one. -/
private theorem tangent_near (hp : Precise p) {output apart : R} (ho : 0 ≤ output)
    (ha : 0 ≤ apart) (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate) {k r roundings rescalings : Nat}
    (hk : k + 1 ≤ roundings) (hr : r ≤ rescalings) {y : R}
    (h : ComputedTangent p output apart k r cols key y) :
    Near (rateFactor p roundings rescalings * (1 + apart) * sumOver (fun j => grownWeight (key j)
          * ((key j).size + (key j).rateError) * absolute (key j).value) cols
        + rateFactor p roundings rescalings
            * sumOver (fun j => grownWeight (key j) * ((key j).size + (key j).rateError)) cols
          * (sumOver (fun j => (key j).weight * absolute (key j).value) cols
            + tangentOutputError p output apart roundings rescalings key cols)
        + rateFactor p roundings rescalings * (1 + apart)
          * sumOver (fun j => grownWeight (key j) * absolute (key j).valueRate) cols)
      (sumOver (fun j => (key j).weight * (key j).size * absolute (key j).value) cols
        + sumOver (fun j => (key j).weight * (key j).size) cols
          * sumOver (fun j => (key j).weight * absolute (key j).value) cols
        + sumOver (fun j => (key j).weight * absolute (key j).valueRate) cols)
      (sumOver (fun j => (key j).weight * (key j).rate * (key j).value) cols
        - sumOver (fun j => (key j).weight * (key j).rate) cols
          * sumOver (fun j => (key j).weight * (key j).value) cols
        + sumOver (fun j => (key j).weight * (key j).valueRate) cols) y := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨f₁, f₂, f₃, f₄⟩ := factors_counted hp hk hr
  have one := tangent_one_le ha
  have ha' : 0 ≤ 1 + apart := Std.le_trans (Std.le_of_lt h₀) one
  have products : ∀ {w : α → R}, ComputedWeights cols key w → ∀ f : α → R,
      (∀ j ∈ cols, 0 ≤ f j) →
      0 ≤ sumOver (fun j => grownWeight (key j) * f j) cols := fun hw f hf =>
    sumOver_nonneg fun j hj => OrderedRing.mul_nonneg (grown_nonneg nonneg hw j hj) (hf j hj)
  have rates : ∀ {w s : α → R}, ComputedWeights cols key w → ComputedRates cols key s →
      0 ≤ sumOver (fun j => grownWeight (key j) * ((key j).size + (key j).rateError)
        * absolute (key j).value) cols := fun hw hs =>
    sumOver_nonneg fun j hj => OrderedRing.mul_nonneg (OrderedRing.mul_nonneg
      (grown_nonneg nonneg hw j hj) (tangent_rate_near sizes hs j hj).nonneg) (absolute_nonneg _)
  cases h with
  | @inside μ a a' c c' _ w s t x hμ hw hs ht hx hA hC hA' hC' hy =>
    have hm := mean_near hp nonneg sizes (Nat.le_of_succ_le hk) hr hμ
    have hrate := tangent_rate_near sizes hs
    obtain ⟨w', hw', hC⟩ := hC
    have i₁ := tangent_products hp nonneg hw
      (fun j hj => ((hrate j hj).sub hm).rounded (ht j hj)) hx
      hA
    have i₂ := tangent_values_near hp nonneg hw' hC
    rw [inside_factor, inside_sum, inside_sum, inside_difference, ← Semiring.mul_assoc] at i₁
    have i₃ := tangent_two_near hp.unit (i₁.rounded hA') (i₂.rounded hC') hy
    have hX : rateFactor p roundings rescalings * (1 + apart)
        * sumOver (fun j => grownWeight (key j) * absolute (key j).value) cols
        ≤ sumOver (fun j => (key j).weight * absolute (key j).value) cols
          + tangentOutputError p output apart roundings rescalings key cols := by
      refine Std.le_trans (tangent_le ?_) (tangent_before_stored ho
        (unstored_nonneg hp one nonneg hw roundings rescalings _))
      exact tangent_remainder ..
    exact i₃.mono (tangent_inside_le f₁ f₄ hX ha' (rates hw hs)
      (products hw _ fun j _ => absolute_nonneg _) (products hw _ fun j _ => absolute_nonneg _)
      hm.nonneg)
  | @outside μ a a' o o' b b' c c' _ w s x w' hμ hw hs hx hA hw' hO hO' hB hC hA' hB' hC' hy =>
    have hm := mean_near hp nonneg sizes (Nat.le_of_succ_le hk) hr hμ
    have hrate := tangent_rate_near sizes hs
    obtain ⟨w'', hw'', hC⟩ := hC
    have i₁ := tangent_products hp nonneg hw hrate hx hA
    have i₂ := tangent_values_near hp nonneg hw'' hC
    have i₃ := tangent_values_near hp nonneg hw' hO
    have i₄ := ((hm.mul (i₃.stored hO')).rounded hB).rounded hB'
    have i₅ := tangent_three_near hp.unit (i₁.rounded hA') i₄.neg (i₂.rounded hC') hy
    rw [tangent_difference] at i₅
    refine i₅.mono (Std.le_trans (tangent_le (outside_equal ..)) (tangent_outside_le f₂ f₄ ?_ ha'
      (rates hw hs) (products hw _ fun j _ => absolute_nonneg _) hm.nonneg))
    rw [stored_equal]
    refine tangent_stored (tangent_ones (OrderedField.one_le_pow (tangent_one_le hp.unit) 3) one
      (tangent_one_le hp.unit)) ?_ (absolute_le i₃.exact) ho
    rw [tangent_regrouped]
    have := OrderedRing.mul_le_mul_of_nonneg_right (OrderedRing.mul_le_mul_of_nonneg_right f₃ ha')
      (products hw' _ fun j _ => absolute_nonneg (key j).value)
    exact Std.le_trans this (tangent_le (tangent_remainder ..))

/-- So is a rate of a component of the output, not yet stored. -/
theorem rounded_outputRate (hp : Precise p) {output apart : R} (ho : 0 ≤ output) (ha : 0 ≤ apart)
    (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate) {k r roundings rescalings : Nat}
    (hk : k + 1 ≤ roundings) (hr : r ≤ rescalings) {y : R}
    (h : ComputedTangent p output apart k r cols key y) :
    AtMost (tangentTolerance p output apart roundings rescalings (cols.map key))
      (y - outputRate (cols.map key)) := by
  have h := (tangent_near hp ho ha nonneg sizes hk hr h).error
  simp only [tangentTolerance, meanRateTolerance, outputRate, meanRate, weighedError_eq,
    sumOver_map, Semiring.mul_one, Semiring.add_zero]
  refine h.mono (tangent_le ?_)
  grind

end Attention.Proof
