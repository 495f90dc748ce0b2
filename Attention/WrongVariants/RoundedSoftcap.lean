module

public import Attention.Proof.Rounding.Softcap
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of softcap where scores are far off

Bounds in which tanh is off by at most 1, in which its error is not divided by the cap, or in which
its square does not underflow, and slopes of something else.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-! ## The claims -/

/-- The claim of `rounded_tanh` for any bound. -/
abbrev TanhsStayClose (bound : R → R → R → R → R := tanhError) : Prop :=
  ∀ u tiny cap s x t error : R, 0 ≤ u → u ≤ 1 / 128 → 0 ≤ tiny → 0 < cap →
    AtMost error (x - s) → ComputedTanh u tiny cap x t →
    AtMost (bound u tiny cap error) (t - tanh (s / cap))

/-- Positive control: the bound of the theorem. -/
theorem tanhs_stayClose (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    TanhsStayClose (R := R) :=
  fun _ _ _ _ _ _ _ h₀ hu hν hcap hx h => Proof.rounded_tanh archimedean h₀ hu hν hcap hx h

/-- The claim of `rounded_slope` for any function and any bound. -/
abbrev SlopesStayClose (computes : R → R → R → R → R → Prop := ComputedSlope)
    (bound : R → R → R → R → R → R := cappedSlopeError) : Prop :=
  ∀ u tiny cap s x z error : R, 0 ≤ u → u ≤ 1 / 128 → 0 < cap → AtMost error (x - s) →
    computes u tiny cap x z →
    AtMost (bound u tiny cap s error) (z - (1 - tanh (s / cap) * tanh (s / cap)))

/-- Positive control: the functions and the bound of the theorem. -/
theorem slopes_stayClose (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    SlopesStayClose (R := R) :=
  fun _ _ _ _ _ _ _ h₀ hu hcap hx h => Proof.rounded_slope archimedean h₀ hu hcap hx h

/-- The claim of `rounded_capped` for any bound. -/
abbrev CappedStayClose (bound : Precision R → ScoreFormats R → R → R → R := cappedError) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (cap s x y error : R), Precise p → p.unit ≤ 1 / 128 →
    0 ≤ f.scores → f.scores ≤ 1 / 32 → 0 < cap → AtMost error (x - s) →
    ComputedSoftcap p f cap x y → AtMost (bound p f cap error) (y - cap * tanh (s / cap))

/-- Positive control: the bound of the theorem. -/
theorem capped_stayClose (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) :
    CappedStayClose (R := R) :=
  fun _ _ _ _ _ _ _ hp hu hf₀ hf hcap hx h =>
    Proof.rounded_capped archimedean hp hu hf₀ hf hcap hx h

/-! ## Numbers -/

private theorem tanh_at_zero : tanh (0 : R) = 0 := by
  have := Proof.tanh_neg (0 : R)
  rw [show (-0 : R) = 0 by grind] at this
  generalize (tanh (0 : R) : R) = t at this
  grind

/-- tanh 1 > 1/4, and so it is further on. -/
private theorem quarter_lt_tanh_one : 1 / 4 < tanh (1 : R) := by
  have h₁ := NaturalExp.one_add_le_exp (1 + 1 : R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [tanh]
  generalize (exp (1 + 1 : R) : R) = e at *
  have h₂ := (OrderedField.le_div_iff (a := 1 / 2) (b := e + 1) (c := e - 1) (by grind)).mpr
    (by grind)
  grind

/-- tanh 2 > 1/2. -/
private theorem half_lt_tanh_two : 1 / 2 < tanh (2 : R) := by
  have h₁ := NaturalExp.one_add_le_exp (2 + 2 : R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [tanh]
  generalize (exp (2 + 2 : R) : R) = e at *
  have h₂ := (OrderedField.le_div_iff (a := 3 / 5) (b := e + 1) (c := e - 1) (by grind)).mpr
    (by grind)
  grind

/-- A tanh that is exact. -/
private theorem exactTanh {η : R} (cap x : R) : ComputedTanh 0 η cap x (tanh (x / cap)) :=
  ⟨0, x / cap, by omega, rfl, ⟨by grind, by grind⟩, Std.le_of_lt (Proof.neg_one_lt_tanh _),
    Std.le_of_lt (Proof.tanh_lt_one _)⟩

omit [NaturalExp R] in
/-- A square that is exact. -/
private theorem exactBelow (x : R) : StoredBelow 0 0 x x :=
  ⟨x, rounded_refl (Std.le_refl _) x, ⟨by grind, by grind⟩, id⟩

omit [NaturalExp R] in
private theorem tiny : (0 : R) ≤ 1 / 128 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

/-! ## Bounds -/

/-- A bound in which tanh is off by at most 1. -/
@[expose] def tanhOffByOne (unit tiny cap error : R) : R :=
  smaller (error / cap) 1 + numeral 8 * unit + numeral 4 * tiny

omit [NaturalExp R] in
private theorem smaller_four : smaller (4 / 1 : R) 1 = 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [smaller, if_neg (by grind)]

theorem tanhOffByOne_refuted : ¬ TanhsStayClose (R := R) tanhOffByOne := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 1 (-2) 2 (tanh (2 / 1)) 4 (Std.le_refl _) tiny (Std.le_refl _) h₀
    ⟨by grind, by grind⟩ (exactTanh 1 2)
  have h₁ := half_lt_tanh_two (R := R)
  rw [tanhOffByOne, smaller_four, show (-2 : R) / 1 = -2 by grind, show (2 : R) / 1 = 2 by grind,
    Proof.tanh_neg] at h
  have := h.2
  clear claim h
  generalize (tanh (2 : R) : R) = t at *
  grind

/-- A bound in which the error of the score is not divided by the cap. -/
@[expose] def tanhOfWholeError (unit tiny _ error : R) : R :=
  smaller error (numeral 2) + numeral 8 * unit + numeral 4 * tiny

theorem tanhOfWholeError_refuted : ¬ TanhsStayClose (R := R) tanhOfWholeError := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 (1 / 4) 0 (1 / 4) (tanh (1 / 4 / (1 / 4))) (1 / 4) (Std.le_refl _) tiny
    (Std.le_refl _) (by grind) ⟨by grind, by grind⟩ (exactTanh _ _)
  have h₁ := quarter_lt_tanh_one (R := R)
  have e : smaller (1 / 4 : R) (numeral 2) ≤ 1 / 4 := by
    rw [smaller]
    split
    · exact Std.le_refl _
    · grind
  rw [tanhOfWholeError, show (1 / 4 : R) / (1 / 4) = 1 by grind,
    show (0 : R) / (1 / 4) = 0 by grind, tanh_at_zero] at h
  have := h.2
  clear claim h
  generalize (tanh (1 : R) : R) = t at *
  generalize smaller (1 / 4 : R) (numeral 2) = m at *
  grind

/-- A bound in which the quotient by the cap does not underflow. -/
@[expose] def quotientUnderflowNotCounted (unit _ cap error : R) : R :=
  tanhError unit 0 cap error

theorem quotientUnderflowNotCounted_refuted :
    ¬ TanhsStayClose (R := R) quotientUnderflowNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (1 : R) / 1 = 1 := by grind
  have flushed : Stored 0 1 (1 / 1 : R) 0 := by
    rw [e, Stored, Proof.absolute_of_nonneg (Std.le_of_lt h₀), Semiring.zero_mul,
      OrderedField.max_def, if_pos (Std.le_of_lt h₀)]
    exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩
  have h := claim 0 1 1 1 1 (tanh 0) 0 (Std.le_refl _) tiny (Std.le_of_lt h₀) h₀
    ⟨by grind, by grind⟩ ⟨1, 0, by omega, ⟨_, rfl, flushed⟩, ⟨by grind, by grind⟩,
      Std.le_of_lt (Proof.neg_one_lt_tanh _), Std.le_of_lt (Proof.tanh_lt_one _)⟩
  have h₁ := quarter_lt_tanh_one (R := R)
  have e₂ : smaller (0 / 1 : R) (numeral 2) = 0 := by
    have := Proof.numeral_nonneg (R := R) 2
    rw [smaller, show (0 : R) / 1 = 0 by grind, if_pos this]
  rw [quotientUnderflowNotCounted, tanhError, e₂, e, tanh_at_zero] at h
  have := h.1
  clear claim h flushed
  generalize (tanh (1 : R) : R) = t at *
  grind

/-- A bound in which a score is off by at most the cap. -/
@[expose] def cappedOffByCap (p : Precision R) (f : ScoreFormats R) (cap error : R) : R :=
  smaller error cap + (numeral 8 * p.unit + f.scores) * cap + f.scoresTiny

theorem cappedOffByCap_refuted : ¬ CappedStayClose (R := R) cappedOffByCap := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 0⟩ 1 (-2) 2 (1 * tanh (2 / 1)) 4
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩ tiny
    (Std.le_refl _) (by show (0 : R) ≤ 1 / 32; grind) h₀ ⟨by grind, by grind⟩
    ⟨0, 0, 2 / 1, tanh (2 / 1), 1 * tanh (2 / 1), by omega, rfl, ⟨by grind, by grind⟩, rfl,
      Proof.storedNear_of_rounded (rounded_refl (Std.le_refl _) _) (Std.le_refl _)⟩
  have h₁ := half_lt_tanh_two (R := R)
  have e : smaller (4 : R) 1 = 1 := by
    rw [smaller, if_neg (by grind)]
  rw [cappedOffByCap, e, show (-2 : R) / 1 = -2 by grind, show (2 : R) / 1 = 2 by grind,
    Proof.tanh_neg] at h
  have h₂ := h.2
  clear claim h
  have h₃ : 1 * tanh (2 : R) - 1 * -tanh (2 : R) ≤ 1 + (numeral 8 * (0 : R) + 0) * 1 + 0 := h₂
  clear h₂
  generalize (tanh (2 : R) : R) = t at *
  grind

/-! ## Slopes -/

/-- The slope where the score is not divided by the cap. -/
@[expose] def slopeOfScore (unit tiny _ x z : R) : Prop := ComputedSlope unit tiny 1 x z

/-- A slope without the square. -/
@[expose] def slopeWithoutSquare (unit _ cap x z : R) : Prop :=
  ∃ t : R, ComputedTanh unit 0 cap x t ∧ Rounded unit (1 - t) z

omit [NaturalExp R] in
/-- Nothing is allowed where nothing is rounded. -/
private theorem cappedSlopeError_zero [Exp R R] {cap s : R} :
    cappedSlopeError 0 0 cap s 0 = 0 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (numeral 2 : R) = 2 := by
    rw [Proof.numeral_succ, Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  have e₁ : tanhError 0 0 cap 0 = 0 := by
    rw [tanhError, smaller, e, if_pos (by grind)]
    grind
  rw [cappedSlopeError, e₁, softcapSlopeError, smaller, if_pos (by grind)]
  grind

theorem slopeOfScore_refuted : ¬ SlopesStayClose (R := R) slopeOfScore := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (1 : R) / 1 = 1 := by grind
  have c := exactTanh (η := 0) (1 : R) 1
  rw [e] at c
  have h := claim 0 0 (1 / 2) 1 1 (1 - tanh 1 * tanh 1) 0 (Std.le_refl _) tiny (by grind)
    ⟨by grind, by grind⟩ ⟨tanh 1, _, c, exactBelow _,
      rounded_refl (Std.le_refl _) _⟩
  rw [cappedSlopeError_zero, show (1 : R) / (1 / 2) = 2 by grind] at h
  have h₁ := Proof.tanh_lt (show (1 : R) < 2 by grind)
  have h₂ := quarter_lt_tanh_one (R := R)
  have h₃ := h.2
  clear claim h c
  generalize (tanh (1 : R) : R) = a at *
  generalize (tanh (2 : R) : R) = b at *
  have := OrderedRing.mul_pos (a := b - a) (b := b + a) (by grind) (by grind)
  grind

theorem slopeWithoutSquare_refuted : ¬ SlopesStayClose (R := R) slopeWithoutSquare :=
    fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (1 : R) / 1 = 1 := by grind
  have c := exactTanh (η := 0) (1 : R) 1
  rw [e] at c
  have h := claim 0 0 1 1 1 (1 - tanh 1) 0 (Std.le_refl _) tiny h₀ ⟨by grind, by grind⟩
    ⟨tanh 1, c, rounded_refl (Std.le_refl _) _⟩
  rw [cappedSlopeError_zero, e] at h
  have h₁ := Proof.tanh_lt_one (1 : R)
  have h₂ := quarter_lt_tanh_one (R := R)
  have h₃ := h.1
  clear claim h c
  generalize (tanh (1 : R) : R) = a at *
  have := OrderedRing.mul_pos (a := a) (b := 1 - a) (by grind) (by grind)
  grind

/-- A bound that does not count what the square of tanh loses. -/
@[expose] def squareUnderflowNotCounted (unit _ cap s error : R) : R :=
  cappedSlopeError unit 0 cap s error

theorem squareUnderflowNotCounted_refuted :
    ¬ SlopesStayClose (R := R) (bound := squareUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (1 : R) / 1 = 1 := by grind
  have c := exactTanh (η := 1 / 2) (1 : R) 1
  rw [e] at c
  have h₂ := quarter_lt_tanh_one (R := R)
  have h := claim 0 (1 / 2) 1 1 1 (1 - (tanh 1 * tanh 1 + 1 / 2)) 0 (Std.le_refl _) tiny h₀
    ⟨by grind, by grind⟩ ⟨tanh 1, tanh 1 * tanh 1 + 1 / 2, c,
      ⟨_, rounded_refl (Std.le_refl _) _, by
        rw [show tanh (1 : R) * tanh 1 + 1 / 2 - tanh 1 * tanh 1 = 1 / 2 by
          clear c h₂; generalize (tanh (1 : R) : R) = a; grind]
        exact ⟨by grind, Std.le_refl _⟩, fun h => by
        clear claim c
        generalize (tanh (1 : R) : R) = a at *
        have := OrderedRing.mul_pos (a := a) (b := a) (by grind) (by grind)
        grind⟩, rounded_refl (Std.le_refl _) _⟩
  rw [squareUnderflowNotCounted, cappedSlopeError_zero, e] at h
  have h₃ := h.1
  clear claim h c h₂
  generalize (tanh (1 : R) : R) = a at *
  grind

end Attention.WrongVariants
