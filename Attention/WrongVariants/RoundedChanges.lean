module

public import Attention.Proof.Rounding.Changes
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of scores that are changed

Bounds that leave something out, and changes that are others in exact arithmetic: each lets a score
differ by more than the bound allows. Source: docs/tolerances.md, section 1. -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R]

private theorem roundsNothing : Precise (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _,
    Std.le_refl _⟩

private theorem same {s : R} (x : R) (h : 0 ≤ s := by exact Std.le_refl _) : Rounded s x x :=
  rounded_refl h x

/-- The same where it is stored. -/
private theorem kept {s η : R} (x : R) (h : 0 ≤ s := by exact Std.le_refl _)
    (hη : 0 ≤ η := by exact Std.le_refl _) : StoredNear s η x x :=
  Proof.storedNear_of_rounded (same x h) hη

private theorem sixteenth : (0 : R) ≤ 1 / 16 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

private theorem up : Rounded (1 / 16 : R) 1 (17 / 16) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨1 / 16, ⟨by grind, Std.le_refl _⟩, by grind⟩

private theorem absolute_zero : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

/-! ## Sums -/

/-- The claim of `rounded_sum` for any bound. -/
abbrev SumsStayClose (error : Precision R → ScoreFormats R → R → R → R → R := addedError) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (a s x y e : R), Precise p → 0 ≤ f.scores →
    AtMost e (x - s) → ComputedSum p f a x y → AtMost (error p f a s e) (y - (s + a))

/-- Positive control: the bound of the theorem. -/
theorem addedError_staysClose : SumsStayClose (R := R) :=
  fun _ _ _ _ _ _ _ _ _ hx h => Proof.rounded_sum hx h

/-- A bound in which the error of the score is not rounded with it: too small where score and number
cancel. -/
@[expose] def errorNotRounded (p : Precision R) (f : ScoreFormats R) (a s e : R) : R :=
  e + (numeral 2 * p.unit + f.scores) * (absolute a + absolute (s + a))

theorem errorNotRounded_refuted : ¬ SumsStayClose (R := R) errorNotRounded := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 1 / 16, 0, 1, 0⟩ 0 0 1 (17 / 16) 1
    roundsNothing sixteenth
    ⟨by grind, by grind⟩ ⟨0, 0, 1, roundedTimes_refl (Std.le_refl _) 2 0, kept 0 sixteenth, by
      rw [Semiring.add_zero]
      exact roundedTimes_refl (Std.le_refl _) 2 1,
    Proof.storedNear_of_rounded up (Std.le_refl _)⟩
  simp only [errorNotRounded, Semiring.add_zero, absolute_zero, Semiring.mul_zero] at h
  have := h.2
  clear claim h
  grind

/-! ## Sinks -/

/-- The claim of `rounded_sink` for any bound. -/
abbrev SinksStayClose (error : Precision R → ScoreFormats R → R → R := sinkError) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (sink y : R), Precise p → ComputedSink p f sink y →
    AtMost (error p f sink) (y - sink)

/-- Positive control: the bound of the theorem. -/
theorem sinkError_staysClose : SinksStayClose (R := R) := fun _ _ _ _ _ h => Proof.rounded_sink h

/-- A bound without the product of two errors. -/
@[expose] def twoRoundings (p : Precision R) (f : ScoreFormats R) (sink : R) : R :=
  numeral 2 * p.unit * absolute sink + f.scoresTiny

theorem twoRoundings_refuted : ¬ SinksStayClose (R := R) twoRoundings := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim ⟨1 / 16, 0, 0, 0, 0, .unrounded⟩ inAccumulator 1 (289 / 256)
    ⟨sixteenth, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
    ⟨289 / 256, ⟨17 / 16, ⟨1, rfl, up⟩, 1 / 16, ⟨by grind, Std.le_refl _⟩, by grind⟩,
      atMost_sub_self _⟩
  have e : (numeral 2 : R) = 2 := by
    rw [Proof.numeral_succ, Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  rw [twoRoundings, inAccumulator, absolute_one, e] at h
  have := h.2
  clear claim h
  grind

/-! ## Softcap -/

variable [NaturalExp R]

/-- The claim of `rounded_change` for any changes and any bound. -/
abbrev ChangesStayClose
    (computes : Precision R → ScoreFormats R → ScoreChange R → R → R → Prop := ComputedChange)
    (error : Precision R → ScoreFormats R → ScoreChange R → R → R → R := changedError) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (change : ScoreChange R) (s x y e : R), Precise p →
    p.unit ≤ 1 / 128 → 0 ≤ f.scores → f.scores ≤ 1 / 32 →
    (∀ cap, change.cap = some cap → 0 < cap) → AtMost e (x - s) → computes p f change x y →
    AtMost (error p f change s e) (y - change.apply s)

/-- Positive control: the changes and the bound of the theorem. -/
theorem computedChange_staysClose
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) : ChangesStayClose (R := R) :=
  fun _ _ _ _ _ _ _ hp hu hf₀ hf hcap hx h =>
    Proof.rounded_change archimedean hp hu hf₀ hf hcap hx h

private theorem tanh_zero : tanh (0 : R) = 0 := by
  have := Proof.tanh_neg (0 : R)
  rw [show (-0 : R) = 0 by grind] at this
  generalize (tanh (0 : R) : R) = t at this
  grind

private theorem tanh_one_pos : 0 < tanh (1 : R) := by
  have h := Proof.tanh_lt (OrderedRing.zero_lt_one (R := R))
  rwa [tanh_zero] at h

/-- The number is added first, and the sum squeezed. -/
@[expose] def addedBeforeSoftcap (p : Precision R) (f : ScoreFormats R) (change : ScoreChange R)
    (x y : R) : Prop :=
  ∃ z, ComputedChange p f { change with cap := none } x z ∧
    ComputedChange p f { change with added := none } z y

/-- The product with the cap is forgotten. -/
@[expose] def withoutCap (p : Precision R) (f : ScoreFormats R) (change : ScoreChange R)
    (x y : R) : Prop :=
  ∃ cap z, change.cap = some cap ∧ ComputedSoftcap p f cap x z ∧ y = z / cap

private theorem capped {cap x : R} :
    ComputedSoftcap ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 0⟩ cap x (cap * tanh (x / cap)) :=
  ⟨0, 0, x / cap, tanh (x / cap), cap * tanh (x / cap), by omega, rfl, ⟨by grind, by grind⟩, rfl,
    kept _⟩

theorem addedBeforeSoftcap_refuted : ¬ ChangesStayClose (R := R) addedBeforeSoftcap := by
  intro claim
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := Proof.tanh_lt_one (1 : R)
  have e : (1 : R) / 1 = 1 := by grind
  have e₀ : (0 : R) / 1 = 0 := by grind
  have c := capped (cap := (1 : R)) (x := 1)
  rw [e, Semiring.one_mul] at c
  have h := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 0⟩ ⟨some 1, some 1⟩ 0 0 (tanh 1) 0
    roundsNothing
    (by show (0 : R) ≤ 1 / 128; grind) (Std.le_refl _) (by show (0 : R) ≤ 1 / 32; grind)
    (fun cap h => by cases h; exact h₀) ⟨by grind, by grind⟩
    ⟨1, ⟨0, rfl, 1, 1, 1, roundedTimes_refl (Std.le_refl _) 2 1, kept 1, by
      rw [show (0 : R) + 1 = 1 by grind]
      exact roundedTimes_refl (Std.le_refl _) 2 1, kept 1⟩, ⟨tanh 1, c, rfl⟩⟩
  simp only [changedError, softcapError, addedError, ScoreChange.apply, e₀, tanh_zero] at h
  have := h.1
  clear claim h
  generalize (tanh (1 : R) : R) = t at *
  grind

theorem withoutCap_refuted : ¬ ChangesStayClose (R := R) withoutCap := by
  intro claim
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := tanh_one_pos (R := R)
  have e : (2 : R) / 2 = 1 := by grind
  have c := capped (cap := (2 : R)) (x := 2)
  rw [e] at c
  have h := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 0⟩ ⟨some 2, none⟩ 2 2
    (2 * tanh 1 / 2) 0 roundsNothing
    (by show (0 : R) ≤ 1 / 128; grind) (Std.le_refl _) (by show (0 : R) ≤ 1 / 32; grind)
    (fun cap h => by cases h; grind) ⟨by grind, by grind⟩ ⟨2, _, rfl, c, rfl⟩
  simp only [changedError, softcapError, ScoreChange.apply, e] at h
  have := h.1
  clear claim h
  generalize (tanh (1 : R) : R) = t at *
  grind

/-- A bound in proportion to the result. -/
@[expose] def errorOfResult (p : Precision R) (_ : ScoreFormats R) (change : ScoreChange R)
    (s e : R) : R :=
  e + numeral 8 * p.unit * absolute (change.apply s)

theorem errorOfResult_refuted :
    ¬ ChangesStayClose (R := R) (error := errorOfResult) := by
  intro claim
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₀ : (0 : R) / 1 = 0 := by grind
  have e : (numeral 4 : R) = 4 := by
    rw [Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_succ, Proof.numeral_succ,
      show (numeral 0 : R) = 0 from rfl]
    grind
  have h := claim ⟨1 / 128, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 0⟩ ⟨some 1, none⟩ 0 0 (1 / 32) 0
    ⟨by show (0 : R) ≤ 1 / 128; grind, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _,
      Std.le_refl _⟩
    (Std.le_refl _) (Std.le_refl _) (by show (0 : R) ≤ 1 / 32; grind)
    (fun cap h => by cases h; exact h₀) ⟨by grind, by grind⟩
    ⟨1 / 32, ⟨0, 0, 0, 1 / 32, 1 / 32, by omega, e₀.symm, by
      rw [e, tanh_zero]
      exact ⟨by grind, by grind⟩, (Semiring.one_mul _).symm, kept _⟩, rfl⟩
  simp only [errorOfResult, ScoreChange.apply, e₀, tanh_zero, Semiring.mul_zero, absolute_zero]
    at h
  have := h.2
  clear claim h
  grind

/-- A bound that has nothing for scores below the normal numbers of their format. -/
@[expose] def errorOfNormalChange (p : Precision R) (f : ScoreFormats R) (change : ScoreChange R)
    (s e : R) : R :=
  changedError p { f with scoresTiny := 0 } change s e

theorem errorOfNormalChange_refuted :
    ¬ ChangesStayClose (R := R) (error := errorOfNormalChange) := by
  intro claim
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : (0 : R) + 0 = 0 := by grind
  have h := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 1⟩ ⟨none, some 0⟩ 0 0 1 0
    roundsNothing (by show (0 : R) ≤ 1 / 128; grind) (Std.le_refl _)
    (by show (0 : R) ≤ 1 / 32; grind) nofun ⟨by grind, by grind⟩
    ⟨0, rfl, 0, 0, 0, roundedTimes_refl (Std.le_refl _) 2 0,
      Proof.storedNear_of_rounded (same 0) (Std.le_of_lt h₀), by
        rw [e]
        exact roundedTimes_refl (Std.le_refl _) 2 0, 0, same 0, by
        rw [show (1 : R) - 0 = 1 by grind]
        exact ⟨by show -(1 : R) ≤ 1; grind, Std.le_refl _⟩⟩
  simp only [errorOfNormalChange, changedError, addedError, ScoreChange.apply, e, absolute_zero,
    Semiring.mul_zero] at h
  have := h.2
  clear claim h
  grind

end Attention.WrongVariants
