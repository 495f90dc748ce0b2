module

public import Attention.Proof.Rounding.OverflowTinyRun
public import Attention.Proof.Rounding.OverflowTinyScores
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the hypothesis that nothing overflows where numbers underflow

The tests for functions of which nothing underflows let a score and a denominator through that are
past the largest number, as a number below the normal ones may be off by more than its relative
error. Source: docs/rounding.md, "Overflow". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

/-- The test that decides whether the score of q and k fits, where products underflow by `ν`. -/
abbrev TinyScoreHypothesis := (p : Precision Rat) → ScoreFormats Rat → (ν : Rat) → Largest Rat →
  Nat → Rat → Rat → Rat → {d : Nat} → Vec Rat d → Vec Rat d → Bool

/-- The statement of `Proof.limitedTinyScore`: a score that fits is a number. -/
abbrev TinyScoresAreNumbers (fits : TinyScoreHypothesis) : Prop :=
  ∀ (p : Precision Rat) (f : ScoreFormats Rat) (ν : Rat) (largest : Largest Rat) (additions : Nat)
    (σ₁ σ₂ σ : Rat) (d : Nat) (q k : Vec Rat d) (score : Option Rat), Precise p →
    PreciseFormats f → 0 ≤ f.scores → 0 ≤ f.scoresTiny → 0 ≤ ν →
    fits p f ν largest additions σ₁ σ₂ σ q k →
    LimitedTinyScore p f ν largest additions σ₁ σ₂ σ q k score → score ≠ none

/-- Positive control: the hypothesis of the theorem. -/
theorem tinyScoreFits_right : TinyScoresAreNumbers tinyScoreFits :=
  fun _ _ _ _ _ _ _ _ _ _ _ _ hp ho hs hs' hν fits h e => by
    obtain ⟨s, e', -⟩ := Proof.limitedTinyScore hp ho hs hs' hν fits h
    rw [e] at e'
    cases e'

/-- A score of which nothing underflows. -/
@[expose] def scoreWithoutRoom : TinyScoreHypothesis :=
  fun p f _ largest additions σ₁ σ₂ σ _ q k => scoreFits p f largest additions σ₁ σ₂ σ q k

/-- The product 1/2 · 1/2, off by as much as it is where ν is 1/4, is 1/2; twice that is past
3/4. -/
theorem scoreWithoutRoom_refuted : ¬ TinyScoresAreNumbers scoreWithoutRoom := fun claim => by
  refine claim ⟨0, 0, 0, 0, 0, .unrounded⟩ inAccumulator (1 / 4) ⟨3 / 4, 3 / 4, 3 / 4, 3 / 4, 3 / 4⟩
    1 1 1 1 2 #v[1 / 2, 1 / 2] #v[1 / 2, 1 / 2] none
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, by decide +kernel, Std.le_refl _, Std.le_refl _⟩
    Proof.inAccumulator_precise (Std.le_refl _) (Std.le_refl _) (by decide +kernel)
    (by decide +kernel) ?_ rfl
  refine ⟨0, 0, fun i => some (1 * (#v[1 / 2, 1 / 2] : Vec Rat 2)[i]),
    fun i => some (1 * (#v[1 / 2, 1 / 2] : Vec Rat 2)[i]), fun _ => some (1 / 2), none, none,
    Nat.le_refl _, fun _ => rfl, fun _ => rfl, fun i a ha b hb _ => ?_,
    fun first second terms _ _ h => ?_, nofun, nofun⟩
  · obtain rfl := Option.some.inj ha
    obtain rfl := Option.some.inj hb
    refine ⟨_, rfl, ?_⟩
    have e : ∀ i : Fin 2, 1 * (#v[1 / 2, 1 / 2] : Vec Rat 2)[i]
        * (1 * (#v[1 / 2, 1 / 2] : Vec Rat 2)[i]) = 1 / 4 := by decide +kernel
    rw [e]
    exact ⟨⟨by decide +kernel, by decide +kernel⟩, by decide +kernel, by decide +kernel⟩
  · have h₀ := Option.some.inj (h 0)
    have h₁ := Option.some.inj (h 1)
    refine .add (xs := [0]) (ys := [1]) .one .one fun a ha b hb hab => ?_
    obtain rfl := Option.some.inj ha
    obtain rfl := Option.some.inj hb
    rw [← h₀, ← h₁] at hab
    exact absurd hab (by decide +kernel)

/-! ## Sums of weights -/

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The statement of `Proof.limitedTinyRun` about a denominator: if the sums of its row fit, it is a
number. -/
abbrev TinyDenominatorsAreNumbers
    (fits : Precision R → R → Largest R → Nat → Nat → R → List (BoundedKey R) → Bool) : Prop :=
  ∀ (p : Precision R) (ν : R) (largest : Largest R) (reference : R) (roundings rescalings : Nat)
    (m : R) (part : LimitedPart R), Precise p → 0 ≤ ν → p.exponential + 2 * ν < 1 →
    p.unit ≤ p.accumulation → p.accumulation < 1 → p.stored < 1 →
    LimitedTinyRun p ν ν largest reference m part → (part.rescalings ≠ 0 → ν ≤ p.exponential) →
    part.rescalings ≤ rescalings → part.additions + part.rescalings ≤ roundings →
    fits p ν largest roundings rescalings reference (part.keys.map (·.toBoundedKey)) →
    (∀ key ∈ part.keys, key.score ≠ none → AtMost reference key.computed) →
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) → part.l ≠ none

/-- Positive control: the hypothesis of the theorem. -/
theorem tinySumsFit_right : TinyDenominatorsAreNumbers (R := R) tinySumsFit :=
  fun _ _ _ _ _ _ _ _ hp hν hν' hu ha hσ run hq hr hd fits scores attained e => by
    obtain ⟨l, o, e', -⟩ :=
      Proof.limitedTinyRun hp hν hν hν' hu ha hσ run hq hr hd fits scores attained
    rw [e] at e'
    cases e'

/-- Sums of weights of which nothing underflows. -/
@[expose] def sumsWithoutRoom (p : Precision R) (_ν : R) (largest : Largest R)
    (roundings rescalings : Nat) (reference : R) (row : List (BoundedKey R)) : Bool :=
  sumsFit p largest roundings rescalings reference row

/-- exp 0, off by 1/4 as where it underflows, is past the largest number 1 of stored weights. -/
theorem sumsWithoutRoom_refuted : ¬ TinyDenominatorsAreNumbers (R := R) sumsWithoutRoom :=
    fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨ν, hν⟩ : ∃ ν : R, 4 * ν = 1 := ⟨1 / 4, by clear claim; grind⟩
  have hν₀ : 0 < ν := by clear claim; grind
  have run : LimitedTinyRun (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) ν ν ⟨2, 2, 2, 1, 2⟩ 0 0
      ⟨[exactKey 0 0], none, some 0, 0, 0⟩ := by
    refine .key (x := some (0 - 0)) (w := some (1 + ν)) (w' := none) (y := 0) (by simp [exactKey])
      (Std.le_refl _) (.zero (Std.le_refl _)) (fun _ => ⟨_, rfl, .inl (rounded_refl
        (Std.le_refl _) _)⟩) (fun a ha _ => ?_) (fun a ha h => ?_) ?_ nofun
      (fun a _ b hb => nomatch hb)
    · obtain rfl := Option.some.inj ha
      refine ⟨_, rfl, ?_⟩
      rw [exp_sub_self]
      have e : (1 : R) + ν - 1 = ν := by clear claim; grind
      rw [Stored, e, Proof.absolute_of_nonneg (Std.le_of_lt h₀), Semiring.zero_mul,
        OrderedField.max_def]
      refine ⟨?_, by clear claim; grind, by clear claim; grind⟩
      split <;> exact ⟨by clear claim; grind, by clear claim; grind⟩
    · obtain rfl := Option.some.inj ha
      have := h.2
      clear claim
      grind
    · show AtMost ν (0 - (exactKey 0 0 : ComputedKey R).value)
      have e : (0 : R) - (exactKey 0 0 : ComputedKey R).value = 0 := by
        show (0 : R) - 0 = 0
        clear claim
        grind
      rw [e]
      exact .zero (Std.le_of_lt hν₀)
  refine claim _ ν _ 0 0 0 0 _ ?_ (Std.le_of_lt hν₀) (by show 0 + 2 * ν < 1; clear claim; grind)
    (Std.le_refl _) h₀ h₀ run (fun h => absurd rfl h) (Nat.le_refl _) (Nat.le_refl _) ?_
    (fun key h _ => ?_) ⟨exactKey 0 0, by simp, by simp [exactKey], rfl⟩ rfl
  · exact ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
  · have e₁ : smaller (2 : R) 1 = 1 := by
      rw [smaller, if_neg]
      clear claim
      grind
    have e₂ : smaller (2 : R) 2 = 2 := by
      rw [smaller]
      split <;> rfl
    have e₃ : absolute (0 : R) = 0 := Proof.absolute_of_nonneg (Std.le_refl _)
    have e₄ : max (0 : R) 0 = 0 := by
      rw [OrderedField.max_def]
      split <;> rfl
    have e₅ : (1 : R) + 0 = 1 := by clear claim; grind
    have e₆ : (0 : R) ≤ 2 := by clear claim; grind
    have e₇ : (1 : R) ≤ 2 := by clear claim; grind
    simp only [sumsWithoutRoom, sumsFit, denominatorSize, weightSize, quotientSize, valueSize,
      exactKey, ofUnmasked, List.map_cons, List.map_nil, sumOver_cons, sumOver_nil, List.foldl_cons,
      List.foldl_nil, Proof.power_eq, e₁, e₂, e₃, e₄, e₅, Semiring.one_pow, Semiring.mul_zero,
      Semiring.mul_one, Semiring.add_zero, Bool.and_eq_true, decide_eq_true_eq, e₆, e₇,
      Std.le_refl, and_self]
  · have : key = exactKey 0 0 := by simpa using h
    rw [this]
    exact .zero (Std.le_refl _)

end Attention.WrongVariants
