module

public import Attention.Proof.Rounding.UnsplitScores
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of scores whose scale is not split

An operand is stored as it is, and the scale, which multiplies the inner product, multiplies what
underflows of it too. Over every ordered field. Source: docs/tolerances.md, section 1. -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- The claim of `rounded_scores` for vectors of one number and scores whose scale is not split;
`reach` is any number whose square is at least the scale. -/
abbrev UnsplitStaysClose
    (computes : Precision R → ScoreFormats R → ScalePlace → R → Vec R 1 → Vec R 1 → R → Prop :=
      fun p f => UnsplitScore p f 0) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (place : ScalePlace) (scale σ m : R), Precise p →
    p.unit ≤ p.accumulation → PreciseFormats f →
    10 * (numeral (0 + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    1 ≤ f.reach → absolute scale ≤ f.reach * f.reach → RoundedTimes p.unit 3 scale σ →
    ∃ c, ∀ (q k : Vec R 1) (belowMax computed : R),
      AtMost belowMax (scale * Vec.dot q k - m) → computes p f place σ q k computed →
      AtMost (scoreError p f 0 scale (magnitude q k) (operandUnderflow p f 0 q k)
          (scale * Vec.dot q k) belowMax)
        (computed - (scale * Vec.dot q k + c))

/-- Positive control: the scores of the theorem. -/
theorem unsplitScore_staysClose : UnsplitStaysClose (R := R) :=
  fun _ _ place _ _ m hp hu hf hd hr _ hσ => by
    obtain ⟨σ₁, σ₂, σ₃, scaled, h⟩ := Proof.unsplit_scores hp.unit hr place hσ
    obtain ⟨c, -, close⟩ := Proof.rounded_scores hp hu hf hd scaled m
    exact ⟨c, fun q k belowMax _ hb hc => close 1 q k belowMax _ hb (h 0 1 q k _ hc)⟩

/-- Operands are stored that nothing multiplies. -/
@[expose] def unscaledStored (p : Precision R) (f : ScoreFormats R) (_place : ScalePlace) (σ : R)
    (q k : Vec R 1) (score : R) : Prop :=
  ∃ a b, a + b ≤ f.roundings ∧ StoredScore p f 0 a b 1 1 σ q k score

private abbrev exactly : Precision R := ⟨0, 0, 0, 0, 0, .unrounded⟩

/-- One operand is stored, and off by 1 at most. -/
private abbrev coarse : ScoreFormats R := ⟨0, 1, 0, 1, 10, 0⟩

private theorem unsplit_numeral : (numeral 1 : R) = 1 := by
  simp only [Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
  grind

private theorem unsplit_factor : operandFactor (exactly : Precision R) coarse = 1 := by
  rw [operandFactor, Proof.power_eq, Semiring.pow_succ, Semiring.pow_zero]
  grind

/-- What is allowed of the operands 1 and 1. -/
private theorem unsplit_allowed (A s b : R) : scoreError exactly coarse 0 100 A
    (operandUnderflow (exactly : Precision R) coarse 0 #v[1] #v[1]) s b = 21 := by
  have h : operandUnderflow (exactly : Precision R) coarse 0 #v[1] #v[1]
      = (1 + gamma (0 + 6) (0 : R)) * operandFactor (exactly : Precision R) coarse
        * (numeral 1 * 1 * (10 * (absolute 1 + absolute 1) + numeral 1 * 1 + 0)) := rfl
  rw [h, unsplit_factor, unsplit_numeral, gamma_zero, absolute_one, scoreError, unsplit_factor,
    gamma_zero]
  grind

private theorem unsplit_dot : (100 : R) * Vec.dot (#v[1] : Vec R 1) #v[1] = 100 := by
  have h : Vec.dot (#v[1] : Vec R 1) #v[1] = 1 * 1 + (0 : R) := rfl
  rw [h]
  grind

/-- A score of the operands 1 and 1, of which the first is stored as `y`. -/
private theorem unsplit_score {y : R} (h : AtMost 1 (y - 1)) :
    StoredScore (exactly : Precision R) coarse 0 1 0 1 1 100 #v[1] #v[1] (100 * y) := by
  refine ⟨fun _ => y, fun _ => 1, fun _ => y, y, 100 * y, fun i => ?_, fun i => ?_, fun i => ?_,
    .one, roundedTimes_refl (Std.le_refl _) 2 _, 100 * y, rounded_refl (Std.le_refl _) _,
    atMost_sub_self _⟩
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact ⟨1 * 1, 1 * 1, rfl, rounded_refl (Std.le_refl _) _, 1 * 1, rounded_refl (Std.le_refl _) _,
      by rwa [Semiring.one_mul]⟩
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact (Semiring.one_mul 1).symm
  · rw [Semiring.mul_one]
    exact rounded_refl (Std.le_refl _) _

theorem unscaledStored_refuted : ¬ UnsplitStaysClose (R := R) unscaledStored := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨c, h⟩ := claim exactly coarse .product 100 100 100
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) ⟨Std.le_refl _, Std.le_of_lt h₀⟩
    (by rw [unsplit_factor, Semiring.mul_zero]; clear claim; grind)
    (by show (1 : R) ≤ 10; clear claim; grind) (by
      rw [Proof.absolute_of_nonneg (by clear claim; grind)]
      show (100 : R) ≤ 10 * 10
      clear claim
      grind) (roundedTimes_refl (Std.le_refl _) 3 _)
  have hb : AtMost 0 ((100 : R) * Vec.dot (#v[1] : Vec R 1) #v[1] - 100) := by
    rw [unsplit_dot]
    exact atMost_sub_self 100
  have h₁ := h #v[1] #v[1] 0 _ hb ⟨1, 0, Nat.le_refl _, unsplit_score (y := 1) (by
    clear claim h hb
    exact ⟨by grind, by grind⟩)⟩
  have h₂ := h #v[1] #v[1] 0 _ hb ⟨1, 0, Nat.le_refl _, unsplit_score (y := 0) (by
    clear claim h h₁ hb
    exact ⟨by grind, by grind⟩)⟩
  rw [unsplit_allowed, unsplit_dot] at h₁ h₂
  obtain ⟨h₃, h₄⟩ := h₁
  obtain ⟨h₅, h₆⟩ := h₂
  clear claim h hb
  grind

end Attention.WrongVariants
