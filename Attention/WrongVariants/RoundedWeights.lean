module

public import Attention.Proof.Rounding.UnderflowSoftcap
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of weights that are computed again where numbers underflow

Bounds in which a product of a score does not underflow.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-! ## Scores -/

/-- The claim of `tiny_capped_score` for one product, in any formats. -/
abbrev TinyScoresStayClose
    (formats : Precision R → ScoreFormats R → R → Nat → Nat → R → R → ScoreFormats R :=
      underflowFormats) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (scale σ₁ σ₂ σ ν : R) (change : ScoreChange R)
    (q k : Vec R 1) (x y : R), Precise p → p.unit ≤ p.accumulation → p.unit ≤ 1 / 128 →
    PreciseFormats f → 0 ≤ f.scores → f.scores ≤ 1 / 32 → 0 ≤ ν →
    10 * (numeral (0 + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    ScaledBy p f scale σ₁ σ₂ σ → AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ →
    (∀ cap, change.cap = some cap → 0 < cap) →
    TinyScore p f ν 0 σ₁ σ₂ σ q k x → TinyChange p f ν change x y →
    let g := formats p f ν 0 1 scale (change.cap.getD 0)
    let s := scale * Vec.dot q k
    AtMost (cappedChangeError p g change s (scoreError p g 0 scale (magnitude q k)
      (operandUnderflow p g 0 q k) s (absolute s))) (y - change.apply s)

/-- Positive control: the formats of the theorem. -/
theorem tinyScores_stayClose (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    TinyScoresStayClose (R := R) :=
  fun _ _ _ _ _ _ _ _ _ _ _ _ hp hu hu' hf hf₀ hf₁ hν hd hσ hσ' hcap score changed =>
    (Proof.tiny_capped_score archimedean hp hu hu' hf hf₀ hf₁ hν hd hσ hσ' hcap score changed).1

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
/-- The product 1 · 1, flushed to 0. -/
private theorem flushed_score :
    TinyScore exactly asTheyAre (1 : R) 0 1 1 1 #v[1] #v[1] 0 := by
  have at₀ : ∀ i : Fin 1, (#v[(1 : R)] : Vec R 1)[i] = 1 := fun i => by
    obtain rfl : i = 0 := Subsingleton.elim _ _
    rfl
  refine ⟨0, 0, fun _ => 1, fun _ => 1, fun _ => 0, 0, 0, Nat.le_refl _, fun i => ?_, fun i => ?_,
    fun i => ?_, .one, ?_, ?_⟩
  · show (1 : R) = 1 * _
    rw [at₀, Semiring.mul_one]
  · show (1 : R) = 1 * _
    rw [at₀, Semiring.mul_one]
  · rw [Semiring.mul_one]
    exact one_lost
  · refine ⟨0, ⟨1 * 0, rfl, ?_⟩, kept_as_it_is _ _⟩
    rw [Semiring.mul_zero]
    exact kept_as_it_is _ _
  · refine ⟨0, rounded_refl (Std.le_refl _) _, ?_⟩
    show AtMost (0 : R) (0 - 0)
    exact ⟨by grind, by grind⟩

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
  have h := claim exactly asTheyAre 1 1 1 1 1 ⟨none, none⟩ #v[1] #v[1] 0 0
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 128; grind) ⟨Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 32; grind) (Std.le_of_lt h₀)
    (by
      rw [factor]
      show 10 * (numeral (0 + 4) * (0 : R)) + 4 * (1 - 1) ≤ 1
      rw [Semiring.mul_zero]
      grind)
    ⟨by
      show RoundedTimes (0 : R) 3 1 (1 * 1 * 1)
      rw [Semiring.mul_one, Semiring.mul_one]
      exact roundedTimes_refl (Std.le_refl _) 3 1, fun h => absurd h (by
        show ¬ (0 : R) < 0
        grind), fun h => absurd h (by show ¬ (0 : R) < 0; grind), fun h => absurd h (by
        show ¬ (0 : R) < 0
        grind)⟩
    one nofun flushed_score ⟨0, rfl, rfl⟩
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

end Attention.WrongVariants
