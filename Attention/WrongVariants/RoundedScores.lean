module

public import Attention.Model.UnderflowScores
public import Attention.Proof.Rounding.Scores
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of scores that round

Scores that are wrong in exact arithmetic, roundings of formats that are not counted, and a bound
that forgets them: each lets two scores of one and the same key differ by more than it allows.
Over every ordered field. Source: docs/tolerances.md, section 1. -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- The claim of `rounded_scores` for vectors of one number, of any scores and of any bound; the
constant that the keys share may even be of any size. -/
abbrev ScoresStayClose
    (computes : Precision R → ScoreFormats R → R → R → R → Vec R 1 → Vec R 1 → R → Prop :=
      fun p f => ComputedScore p f 0)
    (error : Precision R → ScoreFormats R → R → R → R → R → R → R :=
      fun p f => scoreError p f 0) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (scale σ₁ σ₂ σ m : R), Precise p →
    p.unit ≤ p.accumulation → PreciseFormats f →
    10 * (numeral (0 + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    ScaledBy p f scale σ₁ σ₂ σ →
    ∃ c, ∀ (q k : Vec R 1) (belowMax computed : R),
      AtMost belowMax (scale * Vec.dot q k - m) → computes p f σ₁ σ₂ σ q k computed →
      AtMost (error p f scale (magnitude q k) (operandUnderflow p f 0 q k) (scale * Vec.dot q k)
          belowMax)
        (computed - (scale * Vec.dot q k + c))

/-- Positive control: the scores and the bound of the theorem. -/
theorem computedScore_staysClose : ScoresStayClose (R := R) :=
  fun _ _ _ _ _ _ m hp hu hf hd hσ => by
    obtain ⟨c, -, h⟩ := Proof.rounded_scores hp hu hf hd hσ m
    exact ⟨c, fun q k => h 1 q k⟩

/-! ## What counterexamples are made of -/

private theorem roundsNothing : Precise (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _,
    Std.le_refl _⟩

private theorem dot_one (q k : R) : Vec.dot (#v[q] : Vec R 1) #v[k] = q * k := by
  have h : Vec.dot (#v[q] : Vec R 1) #v[k] = q * k + 0 := rfl
  rw [h, Semiring.add_zero]

private theorem unrounded {s x y : R} (e : y = x) (h : 0 ≤ s := by exact Std.le_refl _) :
    Rounded s x y :=
  e ▸ rounded_refl h x

private theorem two_mul_two : (2 : R) * 2 = 4 := by grind

private theorem sixteenth : (0 : R) ≤ 1 / 16 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

private theorem differ : (1 : R) ≠ 17 / 16 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

private theorem factor_one : 4 * ((1 : R) - 1) ≤ 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

private theorem noError (o scale A s b : R) :
    scoreError ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨o, 0, 0, 0, 1, 0⟩ 0 scale A 0 s b = 0 := by
  rw [scoreError, gamma, operandFactor, Proof.power_eq, Semiring.pow_zero, Semiring.mul_zero]
  grind

private theorem oneOperand_noError (e g scale A s b : R) :
    scoreError ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 1, 0, e, g, 0⟩ 0 scale A 0 s b = 0 := by
  rw [scoreError, gamma, operandFactor, Proof.power_eq, Semiring.pow_succ, Semiring.pow_zero,
    Semiring.mul_zero]
  grind

private theorem noUnderflow (o s e : R) (r : Nat) (q k : Vec R 1) :
    operandUnderflow ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨o, r, s, 0, 1, e⟩ 0 q k = 0 := by
  simp only [operandUnderflow, Semiring.mul_zero, Semiring.zero_mul]

private theorem precise {f : ScoreFormats R} (h : 0 ≤ f.operands)
    (h' : 0 ≤ f.operandsTiny := by exact Std.le_refl _) : PreciseFormats f := ⟨h, h'⟩

/-- A scale of 1. -/
private theorem scaledByOne {f : ScoreFormats R} (h : f.reach = 1) :
    ScaledBy ⟨0, 0, 0, 0, 0, .unrounded⟩ f 1 1 1 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : AtMost ((1 + (0 : R)) ^ 3) 1 := ⟨by grind, by grind⟩
  have e' : AtMost ((1 + (0 : R)) ^ 3 * f.reach) (1 * 1) := by
    rw [h]
    exact ⟨by grind, by grind⟩
  refine ⟨?_, fun _ => e, fun _ => e', fun _ => e'⟩
  rw [Semiring.mul_one, Semiring.mul_one]
  exact roundedTimes_refl (Std.le_refl _) 3 1

/-- A score of which nothing but operands and the score itself are rounded. -/
private theorem computes {f : ScoreFormats R} {a b : Nat} (hab : a + b ≤ f.roundings)
    {σ₁ σ₂ σ q k y z score : R} (hq : StoredTimes ⟨0, 0, 0, 0, 0, .unrounded⟩ f a (σ₁ * q) y)
    (hk : StoredTimes ⟨0, 0, 0, 0, 0, .unrounded⟩ f b (σ₂ * k) z)
    (hs : Rounded f.scores (σ * (y * z)) score)
    (hη : 0 ≤ f.scoresTiny := by exact Std.le_refl _) :
    ComputedScore ⟨0, 0, 0, 0, 0, .unrounded⟩ f 0 σ₁ σ₂ σ #v[q] #v[k] score := by
  refine ⟨a, b, fun _ => y, fun _ => z, fun _ => y * z, y * z, σ * (y * z), hab, fun i => ?_,
    fun i => ?_, fun i => rounded_refl (Std.le_refl _) _, .one,
    roundedTimes_refl (Std.le_refl _) 2 _, Proof.storedNear_of_rounded hs hη⟩
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact hq
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact hk

/-- Two scores of one key, of which nothing is forgiven. -/
private theorem refute_scores
    {compute : Precision R → ScoreFormats R → R → R → R → Vec R 1 → Vec R 1 → R → Prop}
    {error : Precision R → ScoreFormats R → R → R → R → R → R → R} {f : ScoreFormats R} {x y : R}
    (hf : 0 ≤ f.operands) (hρ : 4 * (operandFactor ⟨0, 0, 0, 0, 0, .unrounded⟩ f - 1) ≤ 1)
    (herror : error ⟨0, 0, 0, 0, 0, .unrounded⟩ f 1 (magnitude #v[1] #v[1])
      (operandUnderflow ⟨0, 0, 0, 0, 0, .unrounded⟩ f 0 #v[1] #v[1]) 1 0 = 0)
    (hx : compute ⟨0, 0, 0, 0, 0, .unrounded⟩ f 1 1 1 #v[1] #v[1] x)
    (hy : compute ⟨0, 0, 0, 0, 0, .unrounded⟩ f 1 1 1 #v[1] #v[1] y) (hxy : x ≠ y)
    (hη : 0 ≤ f.operandsTiny := by exact Std.le_refl _) (hg : f.reach = 1 := by rfl) :
    ¬ ScoresStayClose compute error := fun claim => by
  have e : (1 : R) * Vec.dot (#v[1] : Vec R 1) #v[1] = 1 := by
    rw [dot_one, Semiring.mul_one, Semiring.mul_one]
  obtain ⟨c, h⟩ := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ f 1 1 1 1 1 roundsNothing (Std.le_refl _)
    ⟨hf, hη⟩ (by rw [Semiring.mul_zero]; clear claim; grind) (scaledByOne hg)
  have h₁ := h #v[1] #v[1] 0 x (by rw [e]; exact atMost_sub_self 1) hx
  have h₂ := h #v[1] #v[1] 0 y (by rw [e]; exact atMost_sub_self 1) hy
  rw [e, herror] at h₁ h₂
  obtain ⟨h₃, h₄⟩ := h₁
  obtain ⟨h₅, h₆⟩ := h₂
  grind

private theorem operandFactor_none (o s : R) :
    operandFactor ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨o, 0, s, 0, 1, 0⟩ = 1 := by
  rw [operandFactor, Proof.power_eq, Semiring.pow_zero]

/-! ## Scores -/

/-- The scale multiplies q and k, each by the whole of it. -/
@[expose] def scaledTwice (p : Precision R) (f : ScoreFormats R) (σ₁ σ₂ σ : R) (q k : Vec R 1)
    (score : R) : Prop :=
  ComputedScore p f 0 (σ₁ * σ₂ * σ) (σ₁ * σ₂ * σ) 1 q k score

theorem scaledTwice_refuted : ¬ ScoresStayClose (R := R) scaledTwice := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨c, h⟩ := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 0⟩ 2 2 1 1 2 roundsNothing
    (Std.le_refl _) (precise (Std.le_refl _))
    (by rw [Semiring.mul_zero, operandFactor_none]; clear claim; grind)
    (Proof.scaledBy_normal rfl (by
      rw [Semiring.mul_one, Semiring.mul_one]
      exact roundedTimes_refl (Std.le_refl _) 3 2))
  have h₁ := h #v[1] #v[1] 0 4 (by
    rw [dot_one, Semiring.mul_one, Semiring.mul_one]; exact atMost_sub_self 2)
    (computes (a := 0) (b := 0) (Nat.le_refl _) rfl rfl (unrounded (by
      simp only [Semiring.one_mul, Semiring.mul_one]; exact two_mul_two.symm)))
  have h₂ := h #v[1] #v[0] 2 0 (by rw [dot_one]; exact ⟨by grind, by grind⟩)
    (computes (a := 0) (b := 0) (Nat.le_refl _) rfl rfl (unrounded (by
      simp only [Semiring.mul_zero])))
  simp only [dot_one, noUnderflow, noError] at h₁ h₂
  obtain ⟨h₃, h₄⟩ := h₁
  obtain ⟨h₅, h₆⟩ := h₂
  grind

/-- Operands are stored, and nobody counts how often. -/
@[expose] def storingNotCounted (p : Precision R) (f : ScoreFormats R) (σ₁ σ₂ σ : R)
    (q k : Vec R 1) (score : R) : Prop :=
  ∃ r, ComputedScore p { f with roundings := r } 0 σ₁ σ₂ σ q k score

/-- One number of an operand, stored. -/
private theorem stored_once {f : ScoreFormats R} {x y : R} (h : Rounded f.operands x y)
    (hη : 0 ≤ f.operandsTiny := by exact Std.le_refl _) :
    StoredTimes ⟨0, 0, 0, 0, 0, .unrounded⟩ f 1 (1 * x) y :=
  ⟨1 * x, x, rfl, unrounded (Semiring.one_mul x).symm, Proof.storedNear_of_rounded h hη⟩

private theorem stored_up : Rounded (1 / 16 : R) 1 (17 / 16) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨1 / 16, ⟨by grind, Std.le_refl _⟩, by grind⟩

theorem storingNotCounted_refuted : ¬ ScoresStayClose (R := R) storingNotCounted := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine refute_scores (f := ⟨1 / 16, 0, 0, 0, 1, 0⟩) (x := 1) (y := 17 / 16) sixteenth
    (by rw [operandFactor_none]; exact factor_one) (by rw [noUnderflow]; exact noError ..)
    ⟨0, ?_⟩ ⟨1, ?_⟩ differ
  · exact computes (a := 0) (b := 0) (Nat.le_refl _) rfl rfl
      (unrounded (by simp only [Semiring.mul_one]))
  · exact computes (a := 1) (b := 0) (Nat.le_refl _) (stored_once stored_up) rfl
      (unrounded (by simp only [Semiring.one_mul, Semiring.mul_one]))

/-- Products underflow by 1, and nobody counts it. -/
@[expose] def productsUnderflow (p : Precision R) (f : ScoreFormats R) (σ₁ σ₂ σ : R) (q k : Vec R 1)
    (score : R) : Prop :=
  TinyScore p f 1 0 σ₁ σ₂ σ q k score

/-- The product of 1 and 1, kept or flushed. -/
private theorem one_flushed {y : R} (h : y = 0 ∨ y = 1) :
    productsUnderflow ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨0, 0, 0, 0, 1, 0⟩ 1 1 1 #v[1] #v[1] y := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have same : ∀ x : R, Stored 0 1 x x := fun x => Proof.stored_refl (Std.le_refl _) x
  refine ⟨0, 0, fun _ => 1, fun _ => 1, fun _ => y, y, y, Nat.le_refl _, fun i => ?_, fun i => ?_,
    fun _ => ?_, .one, ⟨_, ⟨_, (Semiring.one_mul y).symm, same _⟩, same _⟩,
    Proof.storedNear_of_rounded (unrounded rfl) (Std.le_refl _)⟩
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact (Semiring.one_mul 1).symm
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact (Semiring.one_mul 1).symm
  · rw [Semiring.mul_one, Stored, Proof.absolute_of_nonneg (Std.le_of_lt h₀), Semiring.zero_mul,
      OrderedField.max_def, if_pos (Std.le_of_lt h₀)]
    rcases h with rfl | rfl <;> exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩

theorem productsUnderflow_refuted : ¬ ScoresStayClose (R := R) productsUnderflow := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact refute_scores (f := ⟨0, 0, 0, 0, 1, 0⟩) (x := 0) (y := 1) (Std.le_refl _)
    (by rw [operandFactor_none]; exact factor_one) (by rw [noUnderflow]; exact noError ..)
    (one_flushed (.inl rfl)) (one_flushed (.inr rfl)) (by grind)

/-! ## Bounds -/

/-- A bound in which the operands' format is missing. -/
@[expose] def errorWithoutOperands (p : Precision R) (f : ScoreFormats R)
    (scale magnitude underflow s belowMax : R) : R :=
  scoreError p { f with roundings := 0 } 0 scale magnitude underflow s belowMax

theorem errorWithoutOperands_refuted :
    ¬ ScoresStayClose (R := R) (fun p f => ComputedScore p f 0) errorWithoutOperands := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine refute_scores (f := ⟨1 / 16, 1, 0, 0, 1, 0⟩) (x := 1) (y := 17 / 16) sixteenth ?_
    (by rw [noUnderflow]; exact noError ..) ?_ ?_ differ
  · rw [operandFactor, Proof.power_eq, Semiring.pow_succ, Semiring.pow_zero]
    grind
  · exact computes (a := 0) (b := 0) (Nat.zero_le _) rfl rfl
      (unrounded (by simp only [Semiring.mul_one]))
  · exact computes (a := 1) (b := 0) (Nat.le_refl _) (stored_once stored_up) rfl
      (unrounded (by simp only [Semiring.one_mul, Semiring.mul_one]))

/-- A bound in which one rounding counts where q and k are both stored. -/
@[expose] def errorOfOneOperand (p : Precision R) (f : ScoreFormats R)
    (scale magnitude underflow s belowMax : R) : R :=
  scoreError p { f with roundings := min f.roundings 1 } 0 scale magnitude underflow s belowMax

theorem errorOfOneOperand_refuted :
    ¬ ScoresStayClose (R := R) (fun p f => ComputedScore p f 0) errorOfOneOperand := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₀ : operandFactor ⟨0, 0, 0, 0, 0, .unrounded⟩ (⟨1 / 16, 2, 0, 0, 1, 0⟩ : ScoreFormats R)
      = 289 / 256 := by
    rw [operandFactor, Proof.power_eq, Semiring.pow_succ, Semiring.pow_succ, Semiring.pow_zero]
    grind
  have e₁ : errorOfOneOperand ⟨0, 0, 0, 0, 0, .unrounded⟩
      (⟨1 / 16, 2, 0, 0, 1, 0⟩ : ScoreFormats R) 1 (magnitude #v[1] #v[1]) 0 1 0 = 1 / 16 := by
    have e₂ : magnitude (#v[1] : Vec R 1) #v[1] = 1 := by
      have : magnitude (#v[1] : Vec R 1) #v[1] = absolute 1 * absolute 1 + 0 := rfl
      rw [this, absolute_one, Semiring.mul_one, Semiring.add_zero]
    rw [errorOfOneOperand, scoreError, gamma, operandFactor, Proof.power_eq, e₂, absolute_one]
    show ((1 + numeral (0 + 2) * 0 / (1 - numeral (0 + 2) * 0))
      * ((1 + 0) * (1 + 1 / 16)) ^ 1 - 1) * (1 * 1) + 0 + numeral 2 * 0 * 1 + numeral 3 * 0 * 0
        + (0 * (1 + (((1 + numeral (0 + 2) * 0 / (1 - numeral (0 + 2) * 0))
      * ((1 + 0) * (1 + 1 / 16)) ^ 1 - 1) * (1 * 1) + 0 + numeral 2 * 0 * 1)
        + numeral 3 * 0 * 1) + 0)
        = (1 / 16 : R)
    rw [Semiring.pow_succ, Semiring.pow_zero]
    grind
  have e : (1 : R) * Vec.dot (#v[1] : Vec R 1) #v[1] = 1 := by
    rw [dot_one, Semiring.mul_one, Semiring.mul_one]
  obtain ⟨c, h⟩ := claim ⟨0, 0, 0, 0, 0, .unrounded⟩ ⟨1 / 16, 2, 0, 0, 1, 0⟩ 1 1 1 1 1
    roundsNothing (Std.le_refl _) (precise sixteenth)
    (by rw [e₀, Semiring.mul_zero]; clear claim e₁; grind) (scaledByOne rfl)
  have stored_down : Rounded (1 / 16 : R) 1 (15 / 16) := ⟨-(1 / 16), ⟨by grind, by grind⟩, by grind⟩
  have h₁ := h #v[1] #v[1] 0 (289 / 256) (by rw [e]; exact atMost_sub_self 1)
    (computes (a := 1) (b := 1) (Nat.le_refl _) (stored_once stored_up) (stored_once stored_up)
      (unrounded (by grind)))
  have h₂ := h #v[1] #v[1] 0 (225 / 256) (by rw [e]; exact atMost_sub_self 1)
    (computes (a := 1) (b := 1) (Nat.le_refl _) (stored_once stored_down) (stored_once stored_down)
      (unrounded (by grind)))
  rw [e, noUnderflow, e₁] at h₁ h₂
  obtain ⟨h₃, h₄⟩ := h₁
  obtain ⟨h₅, h₆⟩ := h₂
  grind

/-- A bound in which the rounding of a score that is stored is in proportion to m − s, as is that of
the scale: as if it were the same for all keys. -/
@[expose] def errorOfDifference (p : Precision R) (f : ScoreFormats R)
    (scale magnitude underflow s belowMax : R) : R :=
  scoreError p { f with scores := 0 } 0 scale magnitude underflow s belowMax + f.scores * belowMax

theorem errorOfDifference_refuted :
    ¬ ScoresStayClose (R := R) (fun p f => ComputedScore p f 0) errorOfDifference := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine refute_scores (f := ⟨0, 0, 1 / 16, 0, 1, 0⟩) (x := 1) (y := 17 / 16) (Std.le_refl _)
    (by rw [operandFactor_none]; exact factor_one) ?_ ?_ ?_ differ
  · rw [errorOfDifference, noUnderflow, noError, Semiring.mul_zero, Semiring.add_zero]
  · exact computes (a := 0) (b := 0) (Nat.le_refl _) rfl rfl (unrounded
      (by simp only [Semiring.one_mul]) sixteenth)
  · exact computes (a := 0) (b := 0) (Nat.le_refl _) rfl rfl (by
      rw [Semiring.one_mul, Semiring.one_mul, Semiring.one_mul]; exact stored_up)

/-! ## Numbers below the normal ones -/

/-- An operand that is flushed to 0, or is off otherwise by what the formats do not say. -/
@[expose] def flushedUnsaid (p : Precision R) (f : ScoreFormats R) (σ₁ σ₂ σ : R)
    (q k : Vec R 1) (score : R) : Prop :=
  ∃ η, ComputedScore p { f with operandsTiny := η } 0 σ₁ σ₂ σ q k score

/-- An operand of 1 that is flushed to 0. -/
private theorem flushed {f : ScoreFormats R} (h : 1 ≤ f.operandsTiny) (hf : 0 ≤ f.operands) :
    StoredTimes ⟨0, 0, 0, 0, 0, .unrounded⟩ f 1 (1 * 1) (0 : R) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine ⟨1 * 1, 1, rfl, unrounded (Semiring.one_mul 1).symm, 1, rounded_refl hf _, ?_⟩
  exact ⟨by grind, by grind⟩

theorem flushedUnsaid_refuted : ¬ ScoresStayClose (R := R) flushedUnsaid := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine refute_scores (f := ⟨0, 1, 0, 0, 1, 0⟩) (x := 1) (y := 0) (Std.le_refl _) ?_
    (by rw [noUnderflow]; exact oneOperand_noError ..) ⟨0, ?_⟩ ⟨1, ?_⟩ (by grind)
  · rw [operandFactor, Proof.power_eq, Semiring.pow_succ, Semiring.pow_zero]
    grind
  · exact computes (a := 0) (b := 0) (Nat.zero_le _) rfl rfl
      (unrounded (by simp only [Semiring.mul_one]))
  · exact computes (a := 1) (b := 0) (Nat.le_refl _) (flushed (Std.le_refl _) (Std.le_refl _)) rfl
      (unrounded (by grind))

/-- A bound that has nothing for operands below the normal numbers. -/
@[expose] def errorOfNormalOperands (p : Precision R) (f : ScoreFormats R)
    (scale magnitude _underflow s belowMax : R) : R :=
  scoreError p f 0 scale magnitude 0 s belowMax

theorem errorOfNormalOperands_refuted :
    ¬ ScoresStayClose (R := R) (fun p f => ComputedScore p f 0) errorOfNormalOperands := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine refute_scores (f := ⟨0, 1, 0, 1, 1, 0⟩) (x := 1) (y := 0) (Std.le_refl _) ?_
    (oneOperand_noError ..) ?_ ?_ (by grind) (Std.le_of_lt h₀)
  · rw [operandFactor, Proof.power_eq, Semiring.pow_succ, Semiring.pow_zero]
    grind
  · exact computes (a := 0) (b := 0) (Nat.zero_le _) rfl rfl
      (unrounded (by simp only [Semiring.mul_one]))
  · exact computes (a := 1) (b := 0) (Nat.le_refl _) (flushed (Std.le_refl _) (Std.le_refl _)) rfl
      (unrounded (by grind))

/-- A bound that has nothing for scores below the normal numbers. -/
@[expose] def errorOfNormalScores (p : Precision R) (f : ScoreFormats R)
    (scale magnitude underflow s belowMax : R) : R :=
  scoreError p { f with scoresTiny := 0 } 0 scale magnitude underflow s belowMax

theorem errorOfNormalScores_refuted :
    ¬ ScoresStayClose (R := R) (fun p f => ComputedScore p f 0) errorOfNormalScores := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine refute_scores (f := ⟨0, 0, 0, 0, 1, 1⟩) (x := 1) (y := 0) (Std.le_refl _)
    (by rw [operandFactor, Proof.power_eq, Semiring.pow_zero]; exact factor_one)
    (by rw [noUnderflow]; exact noError ..) ?_ ?_ (by grind)
  · exact computes (a := 0) (b := 0) (Nat.le_refl _) rfl rfl
      (unrounded (by simp only [Semiring.mul_one])) (Std.le_of_lt h₀)
  · refine ⟨0, 0, fun _ => 1, fun _ => 1, fun _ => 1, 1, 1, Nat.le_refl _, fun i => ?_, fun i => ?_,
      fun i => ?_, .one, ?_, 1, rounded_refl (Std.le_refl _) _, ⟨?_, ?_⟩⟩
    · obtain rfl : i = 0 := Subsingleton.elim _ _
      exact (Semiring.one_mul 1).symm
    · obtain rfl : i = 0 := Subsingleton.elim _ _
      exact (Semiring.one_mul 1).symm
    · rw [Semiring.mul_one]
      exact rounded_refl (Std.le_refl _) _
    · rw [Semiring.one_mul]
      exact roundedTimes_refl (Std.le_refl _) 2 _
    · show -(1 : R) ≤ 0 - 1
      grind
    · show (0 : R) - 1 ≤ 1
      grind

end Attention.WrongVariants
