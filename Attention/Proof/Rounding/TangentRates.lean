module

public import Attention.Proof.Rounding.MeanRates

public section

/-! # Rates of outputs, within their tolerance

The parts of the rate, each a sum over weights that `MeanRates.lean` bounds, and how they are put
together.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}
variable {p : Precision R} {cols : List α} {key : α → BoundedRate R}

/-! ## The parts of the rate of the output -/

private theorem tangent_two_near {u η M S e z M' S' e' z' y : R} (hu : 0 ≤ u) (hη : 0 ≤ η)
    (h : Near M S e z) (h' : Near M' S' e' z')
    (hy : SumOf u η (fun _ => False) id 3 [z, z'] y) :
    Near ((1 + u) ^ 3 * (M + M' + 2 * η)) (S + S') (e + e') y := by
  obtain ⟨c, h₁, -, -, h₂⟩ := Near.sumOf (xs := [true, false]) (M := fun b => cond b M M')
    (S := fun b => cond b S S') (y := fun b => cond b e e') (x := fun b => cond b z z') hu hη
    (fun b _ => by cases b <;> assumption) hy
  have h₂ := h₂ nofun
  simp only [sumOver_cons, sumOver_nil, Semiring.add_zero, cond_true, cond_false] at h₁ h₂
  refine h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left (by grind) ?_)
  exact Std.le_trans (Std.le_of_lt OrderedRing.zero_lt_one)
    (OrderedField.one_le_pow (one_le_one_plus hu) 3)

private theorem tangent_three_near {u η M S e z M' S' e' z' M'' S'' e'' z'' y : R} (hu : 0 ≤ u)
    (hη : 0 ≤ η) (h : Near M S e z) (h' : Near M' S' e' z') (h'' : Near M'' S'' e'' z'')
    (hy : SumOf u η (fun _ => False) id 3 [z, z', z''] y) :
    Near ((1 + u) ^ 3 * (M + M' + M'' + 2 * η)) (S + S' + S'') (e + e' + e'') y := by
  obtain ⟨c, h₁, -, -, h₂⟩ := Near.sumOf (xs := [some true, some false, none])
    (M := fun b => b.elim M'' fun b => cond b M M')
    (S := fun b => b.elim S'' fun b => cond b S S')
    (y := fun b => b.elim e'' fun b => cond b e e')
    (x := fun b => b.elim z'' fun b => cond b z z') hu hη
    (fun b _ => by rcases b with - | (- | -) <;> assumption) hy
  have h₂ := h₂ nofun
  simp only [sumOver_cons, sumOver_nil, Semiring.add_zero, cond_true, cond_false,
    Option.elim_some, Option.elim_none, ← Semiring.add_assoc] at h₁ h₂
  refine h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left (by grind) ?_)
  exact Std.le_trans (Std.le_of_lt OrderedRing.zero_lt_one)
    (OrderedField.one_le_pow (one_le_one_plus hu) 3)

/-- Σ p x v of products that are stored, where x is near to an exact number. -/
private theorem tangent_products (hp : Precise p) {ν : R} (hν : 0 ≤ ν)
    (nonneg : NotNegativeRates cols key) {w t x v B b y : α → R} (hw : ComputedWeights cols key w)
    (ht : ∀ j ∈ cols, Near (B j) (b j) (y j) (t j))
    (hx : ∀ j ∈ cols, StoredProduct p (key j) (w j * t j) (x j)) {k r m losses : Nat}
    (hm : m + 1 ≤ losses) {z : R} (hz : WeighedSum p ν k r m cols key t x v z) :
    Near ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r * (1 + p.unit)
        * sumOver (fun j => grownTerm (numeral losses) (key j) (B j) (absolute (v j))) cols)
      (sumOver (fun j => (key j).weight * b j * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * y j * v j) cols) z :=
  weighed_near hp hν nonneg (one_le_one_plus hp.unit) hm (fun j hj => absolute_le (ht j hj).most)
    (fun j hj => storedProduct_near hp nonneg hw hj (ht j hj) (hx j hj)) hz

/-- Σ p v. -/
private theorem tangent_values_near (hp : Precise p) {ν : R} (hν : 0 ≤ ν)
    (nonneg : NotNegativeRates cols key) {w v : α → R}
    (hw : ComputedWeights cols key w) {k r m losses : Nat} (hm : m + 1 ≤ losses)
    {z : R} (hz : WeighedSum p ν k r m cols key (fun _ => 1) w v z) :
    Near ((1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r
        * sumOver (fun j => grownTerm (numeral losses) (key j) 1 (absolute (v j))) cols)
      (sumOver (fun j => (key j).weight * absolute (v j)) cols)
      (sumOver (fun j => (key j).weight * v j) cols) z := by
  have h := weighed_near (key := key) hp hν nonneg (F := 1) (Std.le_refl _) hm (B := fun _ => 1)
    (b := fun _ => 1) (y := fun _ => 1)
    (fun _ _ => le_of_eq (absolute_of_nonneg (Std.le_of_lt OrderedRing.zero_lt_one)))
    (fun j hj => by
      simp only [Semiring.mul_one, Semiring.one_mul]
      obtain ⟨-, hτ, ht, -⟩ := nonneg j hj
      have h₀ := OrderedRing.zero_lt_one (R := R)
      have h₁ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := 1 + (key j).stored)
        (b := 1 + (key j).stored) (by grind) (by grind)) (b := 2 * (key j).tiny) (by grind)
      exact (weight_near_grown nonneg hw j hj).mono (by
        generalize grownWeight (key j) = g
        grind)) hz
  simp only [Semiring.mul_one] at h
  exact h

private theorem tangent_scaled_le {a x f K A : R} (h : a * f ≤ K) (hx : 0 ≤ x) (hA : 0 ≤ A) :
    a * (x * (f * A)) ≤ K * x * A := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h (OrderedRing.mul_nonneg hx hA)
  rwa [show a * f * (x * A) = a * (x * (f * A)) by grind,
    show K * (x * A) = K * x * A by grind] at h₁

private theorem tangent_inside_le {a x f f' K A B C M X η : R} (h : a * f ≤ K) (h' : a * f' ≤ K)
    (hX : K * x * B ≤ X) (hx : 1 ≤ x) (hK : 0 ≤ K) (haK : a ≤ K) (hA : 0 ≤ A) (hB : 0 ≤ B)
    (hC : 0 ≤ C) (hM : 0 ≤ M) (hη : 0 ≤ η) :
    a * (x * (f * (A + M * B)) + η + (x * (f' * C) + η) + 2 * η)
      ≤ K * x * A + M * X + K * x * C + K * x * (6 * η) := by
  have hx₀ : 0 ≤ x := Std.le_trans (Std.le_of_lt OrderedRing.zero_lt_one) hx
  have h₁ := tangent_scaled_le h hx₀ hA
  have h₂ := tangent_scaled_le h hx₀ (OrderedRing.mul_nonneg hM hB)
  have h₃ := tangent_scaled_le h' hx₀ hC
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left hX hM
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right haK hη
  have h₆ := OrderedRing.mul_nonneg hK hη
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_right hx h₆
  clear h h' hX hx hA hB hC haK
  grind

private theorem tangent_outside_le {a x f f' K A C M X Y u η : R} (h : a * f ≤ K) (h' : a * f' ≤ K)
    (hX : a * x * (u * Y) ≤ X) (hx : 1 ≤ x) (hK : 0 ≤ K) (haK : a ≤ K) (hA : 0 ≤ A) (hC : 0 ≤ C)
    (hM : 0 ≤ M) (hη : 0 ≤ η) :
    a * (x * (f * A) + η + (x * (u * (M * Y) + η) + η) + (x * (f' * C) + η) + 2 * η)
      ≤ K * x * A + M * X + K * x * C + K * x * (6 * η) := by
  have hx₀ : 0 ≤ x := Std.le_trans (Std.le_of_lt OrderedRing.zero_lt_one) hx
  have h₁ := tangent_scaled_le h hx₀ hA
  have h₃ := tangent_scaled_le h' hx₀ hC
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left hX hM
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right haK hη
  have h₆ := OrderedRing.mul_nonneg hK hη
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_right hx h₆
  have h₈ := OrderedRing.mul_le_mul_of_nonneg_right h₅ hx₀
  clear h h' hX hx hA hC haK hx₀
  grind

/-- Roundings after a number is stored, against the same before. -/
private theorem tangent_stored {y m S e o out η η' : R} (hy : 1 ≤ y) (hm : y * m ≤ S + e)
    (ho : o ≤ S) (hout : 0 ≤ out) (hη : y * η ≤ η') :
    y * (m + out * (o + (m - S)) + η) ≤ S + (e + out * (o + e) + η') := by
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
  refine ⟨Std.le_trans (le_of_eq ?_) h₁, Std.le_trans (le_of_eq ?_) h₂,
    Std.le_trans (le_of_eq ?_) h₂, Std.le_trans (le_of_eq ?_) h₄⟩ <;> grind

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

private theorem tangent_more {a b c : R} (h : 0 ≤ c) : a + b ≤ a + (b + c) := by grind

private theorem grown_split (X a L φ z : R) :
    X * (a + L * (φ * (1 + z))) = X * a + X * (L * φ) * (1 + z) := by grind

private theorem inside_le {g b x m y φ l P : R} (hg : 0 ≤ g) (hx : 1 ≤ x) (hm : 0 ≤ m)
    (hy : 0 ≤ y) (hφ : 0 ≤ φ) (hl : 0 ≤ l) (hP : 0 ≤ P) :
    g * (x * (b + m) + φ) * y + (l + P * (1 + 2 * ((x * (b + m) + φ) * y)))
      ≤ x * (g * (b + φ) * y + (l + P * (1 + 2 * ((b + φ) * y)))
        + m * (g * 1 * y + (l + P * (1 + 2 * (1 * y))))) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hx' : 0 ≤ x - 1 := by grind
  have h₁ := OrderedRing.mul_nonneg hx' (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hg hφ) hy)
  have h₂ := OrderedRing.mul_nonneg hx' hl
  have h₃ := OrderedRing.mul_nonneg hx' hP
  have h₄ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := x) (by grind) hm) hl
  have h₅ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := x) (by grind) hm) hP
  have h₆ := OrderedRing.mul_nonneg hx' (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hP hφ) hy)
  clear hg hx hm hy hφ hl hP hx'
  grind

private theorem inside_grown_le (nonneg : NotNegativeRates cols key) {w : α → R}
    (hw : ComputedWeights cols key w) {x m : R} (hx : 1 ≤ x) (hm : 0 ≤ m) (losses : Nat)
    (s d v : α → R) :
    sumOver (fun j => grownTerm (numeral losses) (key j) (x * (s j + d j + m) + (key j).flushed)
        (absolute (v j))) cols
      ≤ x * (sumOver (fun j => grownTerm (numeral losses) (key j) (s j + (d j + (key j).flushed))
          (absolute (v j))) cols
        + m * sumOver (fun j => grownTerm (numeral losses) (key j) 1 (absolute (v j))) cols) := by
  rw [← sumOver_mul_left (c := m), ← sumOver_add, ← sumOver_mul_left]
  refine sumOver_le_sumOver fun j hj => ?_
  obtain ⟨-, hτ, ht, hφ⟩ := nonneg j hj
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hg := (weight_near_grown nonneg hw j hj).nonneg
  have hy := absolute_nonneg (v j)
  have hX := OrderedRing.mul_nonneg (a := 1 + (key j).stored) (b := 1 + (key j).stored)
    (by grind) (by grind)
  have hl := OrderedRing.mul_nonneg hX (OrderedRing.mul_nonneg ht
    (b := 2 * absolute (v j) + 1) (by grind))
  have hP := OrderedRing.mul_nonneg hX (OrderedRing.mul_nonneg (numeral_nonneg (R := R) losses) hφ)
  have h := inside_le (b := s j + d j) hg hx hm hy hφ hl hP
  rw [Semiring.add_assoc (s j) (d j) (key j).flushed] at h
  simp only [grownTerm, grown_split]
  exact h

private theorem grown_factor_nonneg (hp : Precise p) (k r : Nat) :
    0 ≤ (1 + p.accumulation) ^ (k + 1) * (1 + p.exponential) ^ r * (1 + p.unit) := by
  have h₀ := Std.le_of_lt (OrderedRing.zero_lt_one (R := R))
  exact OrderedRing.mul_nonneg (OrderedRing.mul_nonneg
    (Std.le_trans h₀ (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) (k + 1)))
    (Std.le_trans h₀ (OrderedField.one_le_pow (one_le_one_plus hp.exponential) r)))
    (Std.le_trans h₀ (one_le_one_plus hp.unit))

private theorem one_le_rateFactor (hp : Precise p) (roundings rescalings : Nat) :
    1 ≤ rateFactor p roundings rescalings := by
  have h := rateFactor_le hp (i := 0) (Nat.zero_le _) (Nat.zero_le roundings)
    (Nat.zero_le rescalings)
  simp only [Semiring.pow_zero, Semiring.mul_one] at h
  exact h

/-- How far o may be off before it meets μ, as it is stored. -/
private abbrev tangentUnstored (p : Precision R) (apart : R) (roundings rescalings losses : Nat)
    (key : α → BoundedRate R) (cols : List α) : R :=
  rateFactor p roundings rescalings * (1 + apart)
      * sumOver (fun j => grownTerm (numeral losses) (key j) 1 (absolute (key j).value)) cols
    - sumOver (fun j => (key j).weight * absolute (key j).value) cols

private abbrev tangentOutputError (p : Precision R) (output apart lost : R)
    (roundings rescalings losses : Nat) (key : α → BoundedRate R) (cols : List α) : R :=
  tangentUnstored p apart roundings rescalings losses key cols
    + output * (absolute (sumOver (fun j => (key j).weight * (key j).value) cols)
      + tangentUnstored p apart roundings rescalings losses key cols)
    + rateFactor p roundings rescalings * (1 + apart) * lost

private theorem tangent_before_stored {S e out o η : R} (ho : 0 ≤ out) (hn : 0 ≤ o + e)
    (hη : 0 ≤ η) : S + e ≤ S + (e + out * (o + e) + η) := by
  have := OrderedRing.mul_nonneg ho hn
  grind

private theorem tangent_remainder (M S : R) : M = S + (M - S) := by grind

private theorem unstored_nonneg (hp : Precise p) {apart : R} (ha : 1 ≤ 1 + apart)
    (nonneg : NotNegativeRates cols key) {w : α → R} (hw : ComputedWeights cols key w)
    (roundings rescalings losses : Nat) (o : R) :
    0 ≤ absolute o + tangentUnstored p apart roundings rescalings losses key cols := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ : sumOver (fun j => (key j).weight * absolute (key j).value) cols
      ≤ sumOver (fun j => grownTerm (numeral losses) (key j) 1 (absolute (key j).value)) cols :=
    sumOver_le_sumOver fun j hj => by
      have i₁ := OrderedRing.mul_le_mul_of_nonneg_right (weight_near_grown nonneg hw j hj).le
        (absolute_nonneg (key j).value)
      have i₂ := grown_le_grownTerm nonneg hj (Std.le_of_lt h₀) (absolute_nonneg (key j).value)
        losses
      rw [Semiring.mul_one] at i₂
      exact Std.le_trans i₁ i₂
  have h₂ : 0 ≤ sumOver (fun j => (key j).weight * absolute (key j).value) cols :=
    sumOver_nonneg fun j hj => OrderedRing.mul_nonneg (nonneg j hj).1 (absolute_nonneg _)
  have h₃ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀)
    (one_le_rateFactor hp roundings rescalings) (c := 1) (Std.le_of_lt h₀) ha
  have h₄ := absolute_nonneg o
  rw [tangentUnstored]
  generalize sumOver (fun j => (key j).weight * absolute (key j).value) cols = S at *
  generalize sumOver (fun j =>
    grownTerm (numeral losses) (key j) 1 (absolute (key j).value)) cols = B at *
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

private theorem stored_equal (a x u Y : R) : a * x * (u * Y) = a * x * u * Y := by grind

private theorem tangent_six : (numeral 6 : R) = 6 := by
  rw [numeral_succ, numeral_succ, numeral_succ, numeral_succ, numeral_two]
  grind

/-- A computed ȯ is near to the exact one. -/
private theorem tangent_near (hp : Precise p) {ν output apart lost : R} (hν : 0 ≤ ν)
    (ho : 0 ≤ output) (ha : 0 ≤ apart) (hl : 0 ≤ lost)
    (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate)
    {k r m roundings rescalings losses : Nat} (hk : k + 1 ≤ roundings) (hr : r ≤ rescalings)
    (hm : m + 1 ≤ losses) {y : R} (h : ComputedTangent p ν output apart lost k r m cols key y) :
    Near (rateFactor p roundings rescalings * (1 + apart) * sumOver (fun j =>
            grownTerm (numeral losses) (key j)
              ((key j).size + ((key j).rateError + (key j).flushed)) (absolute (key j).value)) cols
        + rateFactor p roundings rescalings * sumOver (fun j =>
            grownTerm (numeral losses) (key j) ((key j).size + (key j).rateError) 1) cols
          * (sumOver (fun j => (key j).weight * absolute (key j).value) cols
            + tangentOutputError p output apart lost roundings rescalings losses key cols)
        + rateFactor p roundings rescalings * (1 + apart) * sumOver (fun j =>
            grownTerm (numeral losses) (key j) 1 (absolute (key j).valueRate)) cols
        + rateFactor p roundings rescalings * (1 + apart) * (6 * lost))
      (sumOver (fun j => (key j).weight * (key j).size * absolute (key j).value) cols
        + sumOver (fun j => (key j).weight * (key j).size) cols
          * sumOver (fun j => (key j).weight * absolute (key j).value) cols
        + sumOver (fun j => (key j).weight * absolute (key j).valueRate) cols)
      (sumOver (fun j => (key j).weight * (key j).rate * (key j).value) cols
        - sumOver (fun j => (key j).weight * (key j).rate) cols
          * sumOver (fun j => (key j).weight * (key j).value) cols
        + sumOver (fun j => (key j).weight * (key j).valueRate) cols) y := by
  have h₀ := Std.le_of_lt (OrderedRing.zero_lt_one (R := R))
  obtain ⟨f₁, f₂, f₃, f₄⟩ := factors_counted hp hk hr
  have one := one_le_one_plus ha
  have ha' : 0 ≤ 1 + apart := Std.le_trans h₀ one
  have hU := OrderedField.one_le_pow (one_le_one_plus hp.unit) 3
  have hU₀ : 0 ≤ (1 + p.unit) ^ 3 := Std.le_trans h₀ hU
  have counted : ∀ i : Nat, i ≤ 5 → (1 + p.unit) ^ i ≤ rateFactor p roundings rescalings :=
    fun i hi => by
      have h := rateFactor_le hp hi (Nat.zero_le roundings) (Nat.zero_le rescalings)
      rwa [Semiring.pow_zero, Semiring.pow_zero, Semiring.mul_one, Semiring.mul_one] at h
  have c₃ := counted 3 (by decide)
  have c₄ := counted 4 (by decide)
  have hK := Std.le_trans hU₀ c₃
  have hKx := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hK ha') hl
  have products : ∀ {w : α → R}, ComputedWeights cols key w → ∀ f : α → R,
      0 ≤ sumOver (fun j => grownTerm (numeral losses) (key j) 1 (absolute (f j))) cols :=
    fun hw f => sumOver_nonneg fun j hj =>
      grown_term_nonneg nonneg hw hj h₀ (absolute_nonneg _) _
  have rates : ∀ {w s : α → R}, ComputedWeights cols key w → ComputedRates cols key s →
      0 ≤ sumOver (fun j => grownTerm (numeral losses) (key j)
        ((key j).size + ((key j).rateError + (key j).flushed)) (absolute (key j).value)) cols :=
    fun hw hs => sumOver_nonneg fun j hj => grown_term_nonneg nonneg hw hj
      (Std.le_trans (tangent_rate_near sizes hs j hj).nonneg (tangent_more (nonneg j hj).2.2.2))
      (absolute_nonneg _) _
  cases h with
  | @inside μ a a' c c' _ w s t x hμ hw hs ht hx hA hC hA' hC' hy =>
    have hn := meanRate_near hp hν nonneg sizes (Nat.le_of_succ_le hk) hr hm hμ
    have hrate := tangent_rate_near sizes hs
    obtain ⟨w', hw', hC⟩ := hC
    have i₁ := tangent_products hp hν nonneg hw
      (fun j hj => ((hrate j hj).sub hn).storedNear (ht j hj)) hx hm hA
    have i₂ := tangent_values_near hp hν nonneg hw' hm hC
    rw [inside_sum, inside_difference] at i₁
    have i₁ := i₁.mono (OrderedRing.mul_le_mul_of_nonneg_left (inside_grown_le nonneg hw
      (one_le_one_plus hp.unit) hn.nonneg losses _ _ _) (grown_factor_nonneg hp k r))
    rw [← Semiring.mul_assoc] at i₁
    have i₃ := tangent_two_near hp.unit hl (i₁.storedNear hA') (i₂.storedNear hC') hy
    have hX : rateFactor p roundings rescalings * (1 + apart) * sumOver (fun j =>
          grownTerm (numeral losses) (key j) 1 (absolute (key j).value)) cols
        ≤ sumOver (fun j => (key j).weight * absolute (key j).value) cols
          + tangentOutputError p output apart lost roundings rescalings losses key cols := by
      refine Std.le_trans (le_of_eq ?_) (tangent_before_stored ho
        (unstored_nonneg hp one nonneg hw roundings rescalings losses _) hKx)
      exact tangent_remainder ..
    exact i₃.mono (tangent_inside_le f₁ f₄ hX one hK c₃ (rates hw hs) (products hw _)
      (products hw _) hn.nonneg hl)
  | @outside μ a a' o o' b b' c c' _ w s x w' hμ hw hs hx hA hw' hO hO' hB hC hA' hB' hC' hy =>
    have hn := meanRate_near hp hν nonneg sizes (Nat.le_of_succ_le hk) hr hm hμ
    have hrate := fun j (hj : j ∈ cols) => (tangent_rate_near sizes hs j hj).mono
      (tangent_more (nonneg j hj).2.2.2)
    obtain ⟨w'', hw'', hC⟩ := hC
    have i₁ := tangent_products hp hν nonneg hw hrate hx hm hA
    have i₂ := tangent_values_near hp hν nonneg hw'' hm hC
    have i₃ := tangent_values_near hp hν nonneg hw' hm hO
    obtain ⟨o'', hO', hO''⟩ := hO'
    have i₄ := ((hn.mul ((i₃.stored hO').off hO'')).storedNear hB).storedNear hB'
    have i₅ := tangent_three_near hp.unit hl (i₁.storedNear hA') i₄.neg (i₂.storedNear hC') hy
    rw [tangent_difference] at i₅
    refine i₅.mono (tangent_outside_le f₂ f₄ ?_ one hK c₃ (rates hw hs) (products hw _) hn.nonneg
      hl)
    rw [stored_equal]
    refine tangent_stored (tangent_ones hU one (one_le_one_plus hp.unit)) ?_ (absolute_le i₃.exact)
      ho ?_
    · rw [tangent_regrouped]
      have := OrderedRing.mul_le_mul_of_nonneg_right
        (OrderedRing.mul_le_mul_of_nonneg_right f₃ ha') (products hw' fun j => (key j).value)
      exact Std.le_trans this (le_of_eq (tangent_remainder ..))
    · rw [show (4 : Nat) = 3 + 1 from rfl, Semiring.pow_succ] at c₄
      have := OrderedRing.mul_le_mul_of_nonneg_right c₄ (OrderedRing.mul_nonneg ha' hl)
      clear i₁ i₂ i₃ i₄ i₅ hx hA hO hB hC hA' hB' hC' hy hO' hO'' hw hw' hw'' hs hrate hn hμ
      clear products rates counted sizes nonneg f₁ f₂ f₃ f₄
      generalize rateFactor p roundings rescalings = K at *
      grind

private theorem tangent_whole (X M A D V E S₁ S₂ S₃ l : R) :
    X * A + M * (V + E) + X * D + X * (6 * l) - (S₁ + S₂ * V + S₃)
      = X * A - S₁ + ((M - S₂) * (V + E) + S₂ * E) + (X * D - S₃) + X * (6 * l) := by
  grind

/-- A rate of a component of the output, not yet stored, is within its tolerance. -/
theorem rounded_outputRate (hp : Precise p) {ν output apart lost : R} (hν : 0 ≤ ν)
    (ho : 0 ≤ output) (ha : 0 ≤ apart) (hl : 0 ≤ lost) (nonneg : NotNegativeRates cols key)
    (sizes : ∀ j ∈ cols, AtMost (key j).size (key j).rate)
    {k r m roundings rescalings losses : Nat} (hk : k + 1 ≤ roundings) (hr : r ≤ rescalings)
    (hm : m + 1 ≤ losses) {y : R} (h : ComputedTangent p ν output apart lost k r m cols key y) :
    AtMost (tangentTolerance p output apart lost roundings rescalings losses (cols.map key))
      (y - outputRate (cols.map key)) := by
  have h := (tangent_near hp hν ho ha hl nonneg sizes hk hr hm h).error
  simp only [tangentTolerance, meanRateTolerance, outputRate, meanRate, weighedError_eq,
    sumOver_map, Semiring.mul_one, Semiring.add_zero, tangent_six]
  exact h.mono (le_of_eq (tangent_whole ..))

end Attention.Proof
