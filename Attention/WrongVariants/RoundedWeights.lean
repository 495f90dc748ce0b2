module

public import Attention.Proof.Rounding.UnderflowSoftcap
public import Attention.Proof.Rounding.UnderflowWeights
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of weights that are computed again where numbers underflow

Bounds in which a product of a score does not underflow, or one that changes the base of a score or
of a log-sum-exp where they meet.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-! ## Scores -/

/-- The claim of `tiny_capped_score` for one product, in any formats. -/
abbrev TinyScoresStayClose
    (formats : Precision R → ScoreFormats R → R → Nat → Nat → R → R → ScoreFormats R :=
      underflowFormats) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (scale ν : R) (change : ScoreChange R)
    (product : Vec R 1 → Vec R 1 → R → Prop) (q k : Vec R 1) (x y : R), Precise p →
    p.unit ≤ p.accumulation → p.unit ≤ 1 / 128 → PreciseFormats f → 0 ≤ f.scores →
    f.scores ≤ 1 / 32 → 0 ≤ ν →
    10 * (numeral (0 + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    TinyProducts p f ν 0 scale product → (∀ cap, change.cap = some cap → 0 < cap) →
    product q k x → TinyChange p f ν change x y →
    let g := formats p f ν 0 1 scale (change.cap.getD 0)
    let s := scale * Vec.dot q k
    AtMost (cappedChangeError p g change s (scoreError p g 0 scale (magnitude q k)
      (operandUnderflow p g 0 q k) s (absolute s))) (y - change.apply s)

/-- Positive control: the formats of the theorem. -/
theorem tinyScores_stayClose (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    TinyScoresStayClose (R := R) :=
  fun _ _ _ _ _ _ _ _ _ _ hp hu hu' hf hf₀ hf₁ hν hd products hcap score changed =>
    (Proof.tiny_capped_score archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap products score changed).1

/-- Formats in which products do not underflow. -/
@[expose] def productsNotCounted (_ : Precision R) (f : ScoreFormats R) (_ : R) (_ _ : Nat)
    (_ _ : R) : ScoreFormats R := f

/-- Nothing is rounded, and nothing stored. -/
private def exactly : Precision R := ⟨0, 0, 0, 0, 0, .unrounded⟩

private def asTheyAre : ScoreFormats R := ⟨0, 0, 0, 0, 1, 0⟩

omit [NaturalExp R] in
private theorem kept_as_it_is (ν x : R) : Stored 0 ν x x := Proof.stored_refl (Std.le_refl _) x

omit [NaturalExp R] in
/-- 1 is flushed to 0 where the smallest normal number is above it. -/
private theorem one_lost : Stored (0 : R) 1 1 0 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [Stored, absolute_one, Semiring.zero_mul, OrderedField.max_def, if_pos (Std.le_of_lt h₀)]
  exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩

omit [NaturalExp R] in
/-- The product 1 · 1, flushed to 0 before the scale multiplies it. -/
private theorem flushed_product (σ : R) :
    TinyStoredScore exactly asTheyAre (1 : R) 0 0 0 1 1 σ #v[1] #v[1] 0 := by
  have at₀ : ∀ i : Fin 1, (#v[(1 : R)] : Vec R 1)[i] = 1 := fun i => by
    obtain rfl : i = 0 := Subsingleton.elim _ _
    rfl
  refine ⟨fun _ => 1, fun _ => 1, fun _ => 0, 0, 0, fun i => ?_, fun i => ?_, fun i => ?_, .one, ?_,
    ?_⟩
  · show (1 : R) = 1 * _
    rw [at₀, Semiring.mul_one]
  · show (1 : R) = 1 * _
    rw [at₀, Semiring.mul_one]
  · rw [Semiring.mul_one]
    exact one_lost
  · rw [Semiring.mul_zero]
    exact ⟨0, ⟨0, rfl, kept_as_it_is _ _⟩, kept_as_it_is _ _⟩
  · refine ⟨0, rounded_refl (Std.le_refl _) _, ?_⟩
    show AtMost (0 : R) (0 - 0)
    exact ⟨by grind, by grind⟩

omit [NaturalExp R] in
private theorem flushed_score :
    TinyScore exactly asTheyAre (1 : R) 0 1 1 1 #v[1] #v[1] 0 := by
  obtain ⟨q', k', products, sum, x, h⟩ := flushed_product (R := R) 1
  exact ⟨0, 0, q', k', products, sum, x, Nat.le_refl _, h⟩

theorem productsNotCounted_refuted : ¬ TinyScoresStayClose (R := R) productsNotCounted :=
  fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (1 : R) * Vec.dot (#v[1] : Vec R 1) #v[1] = 1 := by
    show (1 : R) * (1 * 1 + 0) = 1
    grind
  have factor : operandFactor (exactly (R := R)) asTheyAre = 1 := by
    rw [operandFactor, Proof.power_eq]
    exact Semiring.pow_zero _
  have one : AtMost ((1 + (0 : R)) ^ 3 * max 1 (absolute 1)) 1 := by
    rw [absolute_one, OrderedField.max_def, if_pos (Std.le_refl _)]
    exact ⟨by grind, by grind⟩
  have h := claim exactly asTheyAre 1 1 ⟨none, none⟩ _ #v[1] #v[1] 0 0
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 128; grind) ⟨Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 32; grind) (Std.le_of_lt h₀)
    (by
      rw [factor]
      show 10 * (numeral (0 + 4) * (0 : R)) + 4 * (1 - 1) ≤ 1
      rw [Semiring.mul_zero]
      grind)
    (.split ⟨by
      show RoundedTimes (0 : R) 3 1 (1 * 1 * 1)
      rw [Semiring.mul_one, Semiring.mul_one]
      exact roundedTimes_refl (Std.le_refl _) 3 1, fun h => absurd h (by
        show ¬ (0 : R) < 0
        grind), fun h => absurd h (by show ¬ (0 : R) < 0; grind), fun h => absurd h (by
        show ¬ (0 : R) < 0
        grind)⟩ one) nofun flushed_score ⟨0, rfl, rfl⟩
  have e₁ : ∀ s a : R, scoreError exactly asTheyAre 0 1 a 0 s (absolute s) = 0 := fun s a => by
    rw [scoreError, factor]
    simp only [exactly, asTheyAre, gamma_zero]
    grind
  have e₂ : operandUnderflow (exactly (R := R)) asTheyAre 0 #v[1] #v[1] = 0 := by
    simp only [operandUnderflow, asTheyAre, Semiring.mul_zero, Semiring.zero_mul]
  rw [e] at h
  simp only [productsNotCounted, e₁, e₂, cappedChangeError, ScoreChange.apply] at h
  have := h.1
  grind

/-- Formats in which what underflows does not meet the scale. -/
@[expose] def scaleNotCounted (p : Precision R) (f : ScoreFormats R) (ν : R) (additions d : Nat)
    (_ cap : R) : ScoreFormats R := underflowFormats p f ν additions d 1 cap

omit [NaturalExp R] in
private theorem numerals : (numeral 2 : R) = 2 ∧ (numeral 3 : R) = 3 := by
  simp only [Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
  constructor <;> grind

omit [NaturalExp R] in
/-- The allowed error of a score whose product is lost, whatever the scale: 2 + 3. -/
private theorem allowed_unscaled (a s : R) :
    scoreError exactly (scaleNotCounted exactly asTheyAre 1 0 1 100 0) 0 100 a 0 s (absolute s)
      = 5 := by
  have factor : operandFactor (exactly (R := R)) (scaleNotCounted exactly asTheyAre 1 0 1 100 0)
      = 1 := by
    rw [operandFactor, Proof.power_eq]
    exact Semiring.pow_zero _
  rw [scoreError, factor]
  simp only [scaleNotCounted, underflowFormats, exactly, asTheyAre, gamma_zero, absolute_one,
    numerals.1, numerals.2, OrderedField.max_def, if_pos (Std.le_refl (1 : R))]
  grind

theorem scaleNotCounted_refuted : ¬ TinyScoresStayClose (R := R) scaleNotCounted :=
  fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (100 : R) * Vec.dot (#v[1] : Vec R 1) #v[1] = 100 := by
    show (100 : R) * (1 * 1 + 0) = 100
    grind
  have factor : operandFactor (exactly (R := R)) asTheyAre = 1 := by
    rw [operandFactor, Proof.power_eq]
    exact Semiring.pow_zero _
  have h := claim exactly asTheyAre 100 1 ⟨none, none⟩ _ #v[1] #v[1] 0 0
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 128; grind) ⟨Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 32; grind) (Std.le_of_lt h₀)
    (by
      rw [factor]
      show 10 * (numeral (0 + 4) * (0 : R)) + 4 * (1 - 1) ≤ 1
      rw [Semiring.mul_zero]
      grind)
    (.unsplit (place := .product) (Std.le_refl _) (roundedTimes_refl (Std.le_refl _) 3 100)) nofun
    (flushed_product 100) ⟨0, rfl, rfl⟩
  have e₂ : operandUnderflow (exactly (R := R)) (scaleNotCounted exactly asTheyAre 1 0 1 100 0) 0
      #v[1] #v[1] = 0 := by
    simp only [operandUnderflow, scaleNotCounted, underflowFormats, asTheyAre, Semiring.mul_zero,
      Semiring.zero_mul]
  rw [e] at h
  simp only [e₂, cappedChangeError, ScoreChange.apply, Option.getD_none, allowed_unscaled] at h
  have := h.1
  clear claim
  grind

/-! ## Weights -/

/-- The claim of `rounded_recomputed` for any bound. -/
abbrev RecomputedStayClose
    (bound : R → R → R → R → R → R → R → R := recomputedError) : Prop :=
  ∀ u ν ue η s L ofScore ofLse s' L' P : R, 0 ≤ u → 0 ≤ ν → numeral 3 * u < 1 →
    AtMost ofScore (s' - s) → AtMost ofLse (L' - L) → RecomputedWeight u ν ue η s' L' P →
    AtMost (bound u ν ue s L ofScore ofLse * exp (s - L) + η) (P - exp (s - L))

/-- Positive control: the bound of the theorem. -/
theorem recomputed_stayClose : RecomputedStayClose (R := R) :=
  fun _ _ _ _ _ _ _ _ _ _ _ hu hν h3 hs hL h => Proof.rounded_recomputed hu hν h3 hs hL h

/-- A bound in which a change of base does not underflow. -/
@[expose] def basesNotCounted (unit _ exponential s L ofScore ofLse : R) : R :=
  recomputedError unit 0 exponential s L ofScore ofLse

omit [NaturalExp R] in
private theorem off_by {ν x y : R} (hx : x ≠ 0) (h : AtMost ν (y - x)) : StoredBelow 0 ν x y :=
  ⟨x, rounded_refl (Std.le_refl _) x, h, fun e => absurd e hx⟩

omit [NaturalExp R] in
private theorem exactly_so {ν : R} (hν : 0 ≤ ν) (x : R) : StoredBelow 0 ν x x :=
  ⟨x, rounded_refl (Std.le_refl _) x, ⟨by grind, by grind⟩, id⟩

private theorem bound_of_bases (ν E : R) :
    recomputedError 0 ν 0 0 0 0 E = exp (numeral 3 * ν + (E + numeral 3 * ν)) - 1 := by
  simp only [recomputedError, exponentError, gamma_zero, Semiring.zero_mul, Semiring.add_zero,
    Semiring.mul_one]
  congr 2
  grind

theorem basesNotCounted_refuted : ¬ RecomputedStayClose (R := R) basesNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 1 0 0 1 1 0 0 1 1 (exp (0 - 1)) (Std.le_refl _) (Std.le_of_lt h₀)
    (by rw [Semiring.mul_zero]; exact h₀) ⟨by grind, by grind⟩ ⟨by grind, by grind⟩
    ⟨0, 1, ⟨0, ⟨0, ⟨1, rfl, off_by (by grind) ⟨by grind, by grind⟩⟩,
      exactly_so (Std.le_of_lt h₀) 0⟩, exactly_so (Std.le_of_lt h₀) 0⟩,
      ⟨1, ⟨1, ⟨1, rfl, exactly_so (Std.le_of_lt h₀) 1⟩, exactly_so (Std.le_of_lt h₀) 1⟩,
        exactly_so (Std.le_of_lt h₀) 1⟩, exactly_so (Std.le_refl _) _⟩
  have e : basesNotCounted (0 : R) 1 0 1 1 0 0 = 0 := by
    simp only [basesNotCounted, recomputedError, exponentError, gamma_zero, Semiring.zero_mul,
      Semiring.mul_zero, Semiring.add_zero, exp_zero]
    grind
  rw [e, show (1 : R) - 1 = 0 by grind, exp_zero] at h
  have h₁ := h.1
  have h₂ := exp_lt (R := R) (0 - 1 : R) 0 (by grind)
  rw [exp_zero] at h₂
  clear claim h e
  grind

/-- The claim of `tiny_weight` for one query and one key, and any bound of the log-sum-exp. -/
abbrev TinyWeightsStayClose
    (factor : Precision R → R → Nat → Nat → List (BoundedKey R) → R := underflowLogSumExpFactor)
    (tolerance : Precision R → R → R → R → R → R → R := underflowLogSumExpTolerance) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (ν η scale : R) (additions : Nat)
    (changes : ScoreChanges R 1 1) (mask : Mask 1 1) (Q K : Matrix R 1 1)
    (values : Option (Fin 1) → R) (cols : List (Option (Fin 1))) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) (L E M s P : R) (col : Option (Fin 1)), Precise p →
    p.unit ≤ p.accumulation → p.unit ≤ 1 / 128 → PreciseFormats f → 0 ≤ f.scores →
    f.scores ≤ 1 / 32 → 0 ≤ ν →
    10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    (∀ cap, changes.cap = some cap → 0 < cap) →
    (row = cols.map fun col => (cappedKey p (changes.formats p f ν additions 1 scale) additions
      changes scale mask Q K 0 (values col) col).flushed ν rescalings) →
    numeral (roundings + 1) * p.unit < 1 → 0 < underflowLeft p ν roundings rescalings row →
    numeral 4 * p.unit < 1 → IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K 0)) →
    rowMax (cols.map (changes.score scale mask Q K 0)) = some M →
    factor p ν roundings rescalings row ≤ exp E → changes.score scale mask Q K 0 col = some s →
    TinyWeight p f ν η additions changes scale mask Q K 0 values cols roundings rescalings col P →
    AtMost (recomputedError p.unit ν p.exponential s L
        (changes.cappedError p (changes.formats p f ν additions 1 scale) additions scale Q K 0 col)
        (tolerance p ν E (L - M) M (largestError row)) * exp (s - L) + η) (P - exp (s - L))

/-- Positive control: the bound of the theorem. -/
theorem tinyWeights_stayClose (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    TinyWeightsStayClose (R := R) :=
  fun _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ hp hu hu' hf hf₀ hf₁ hν hd hcap hrow hD left h4
    exact maximum errors hs computed =>
    Proof.tiny_weight archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hrow hD left h4 exact maximum
      errors hs computed

end Attention.WrongVariants
