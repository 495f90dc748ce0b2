module

public import Attention.Proof.Rounding.Overflow
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the hypothesis that nothing overflows

Each lets a score or a denominator through that is past the largest number, in fractions with the
largest number of half precision or with a smaller one. Source: docs/tolerances.md, "What is
proved". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

/-- The test that decides whether the score of q and k fits. -/
abbrev ScoreHypothesis := (p : Precision Rat) → ScoreFormats Rat → Largest Rat → Nat → Rat → Rat →
  Rat → {d : Nat} → Vec Rat d → Vec Rat d → Bool

/-- The statement of `Proof.limitedScore`: a score that fits is a number. -/
abbrev ScoresAreNumbers (fits : ScoreHypothesis) : Prop :=
  ∀ (p : Precision Rat) (f : ScoreFormats Rat) (largest : Largest Rat) (additions : Nat)
    (σ₁ σ₂ σ : Rat) (d : Nat) (q k : Vec Rat d) (score : Option Rat), Precise p →
    PreciseFormats f → 0 ≤ f.scores → 0 ≤ f.scoresTiny → fits p f largest additions σ₁ σ₂ σ q k →
    LimitedScore p f largest additions σ₁ σ₂ σ q k score → score ≠ none

/-- Positive control: the hypothesis of the theorem. -/
theorem scoreFits_right : ScoresAreNumbers scoreFits :=
  fun _ _ _ _ _ _ _ _ _ _ _ hp ho hs hs' fits h e => by
    obtain ⟨s, e', -⟩ := Proof.limitedScore hp ho hs hs' fits h
    rw [e] at e'
    cases e'

/-! ## What counterexamples are made of -/

/-- A number within the range. -/
@[expose] def within (largest x : Rat) : Option Rat := if absolute x ≤ largest then some x else none

/-- A sum, from the end. -/
@[expose] def sumWithin (largest : Rat) : List Rat → Option Rat
  | [] => some 0
  | x :: xs => match sumWithin largest xs with
    | none => none
    | some s => if absolute x + absolute s ≤ largest then some (x + s) else none

/-- A score of which nothing is rounded, and what is past the largest number is none. -/
@[expose] def scoreWithin (largest σ : Rat) {d : Nat} (q k : Vec Rat d) : Option Rat :=
  (sumWithin largest ((List.finRange d).map fun i => q[i] * k[i])).bind fun s =>
    within largest (σ * s)

/-- Nothing is rounded. -/
@[expose] def inFull : Precision Rat := ⟨0, 0, 0, 0, 0, .unrounded⟩

private theorem inFull_precise : Precise inFull :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, by decide +kernel, Std.le_refl _, Std.le_refl _⟩

private theorem limited_within {largest x : Rat} :
    Limited largest (Rounded 0) x (within largest x) := fun h =>
  ⟨x, by rw [within, if_pos (Proof.absolute_le h)], rounded_refl (Std.le_refl _) x⟩

private theorem sumWithin_limited (largest : Rat) (xs : List Rat) :
    LimitedSum largest 0 xs.length xs (sumWithin largest xs) := by
  induction xs with
  | nil => exact .nil
  | cons x xs ih =>
    refine .add (xs := [x]) .one ih fun a ha b hb h => ?_
    obtain rfl := Option.some.inj ha
    have hb : sumWithin largest xs = some b := hb
    refine ⟨x, b, rounded_refl (Std.le_refl _) x, rounded_refl (Std.le_refl _) b, ?_⟩
    simp only [sumWithin, hb, if_pos h]

private theorem scoreWithin_limited (largest σ : Rat) {d : Nat} (q k : Vec Rat d) :
    LimitedScore inFull inAccumulator ⟨largest, largest, largest, largest, largest⟩ d 1 1 σ q k
      (scoreWithin largest σ q k) := by
  refine ⟨0, 0, fun i => some (1 * q[i]), fun i => some (1 * k[i]),
    fun i => within largest (1 * q[i] * (1 * k[i])),
    sumWithin largest ((List.finRange d).map fun i => q[i] * k[i]), scoreWithin largest σ q k,
    Nat.le_refl _, fun _ => rfl, fun _ => rfl, fun i a ha b hb => ?_, fun terms h => ?_,
    fun s hs => ?_, fun a ha _ => ⟨a, ha, rounded_refl (Std.le_refl _) a⟩⟩
  · obtain rfl := Option.some.inj ha
    obtain rfl := Option.some.inj hb
    exact limited_within
  · have e : (List.finRange d).map terms = (List.finRange d).map fun i : Fin d => q[i] * k[i] :=
      List.map_congr_left fun i _ => by
        have : within largest (1 * q[i] * (1 * k[i])) = some (terms i) := h i
        rw [within] at this
        split at this
        · have := Option.some.inj this
          grind
        · cases this
    rw [e]
    have := sumWithin_limited largest ((List.finRange d).map fun i : Fin d => q[i] * k[i])
    rwa [List.length_map, List.length_finRange] at this
  · have hs : sumWithin largest ((List.finRange d).map fun i => q[i] * k[i]) = some s := hs
    have e : scoreWithin largest σ q k = within largest (σ * s) := by
      simp only [scoreWithin, hs, Option.bind_some]
    rw [e]
    refine ⟨within largest (σ * s), ⟨some (σ * s), rfl, fun a ha => ?_⟩, fun a ha h => ?_⟩
    · obtain rfl := Option.some.inj ha
      exact limited_within
    · exact ⟨a, ha, rounded_refl (Std.le_refl _) a⟩

/-- The largest number of half precision is 65504. -/
private theorem refute_scores {fits : ScoreHypothesis} {d : Nat} (σ : Rat) (q k : Vec Rat d)
    (h : fits inFull inAccumulator ⟨65504, 65504, 65504, 65504, 65504⟩ d 1 1 σ q k)
    (none : scoreWithin 65504 σ q k = none) : ¬ ScoresAreNumbers fits := fun claim =>
  claim inFull inAccumulator _ d 1 1 σ d q k _ inFull_precise Proof.inAccumulator_precise
    (Std.le_refl _) (Std.le_refl _) h
    (scoreWithin_limited 65504 σ q k) none

/-! ## Scores -/

/-- Nothing is asked. -/
@[expose] def noHypothesis : ScoreHypothesis := fun _ _ _ _ _ _ _ _ _ _ => true

/-- 256 · 256 = 65536. -/
theorem noHypothesis_refuted : ¬ ScoresAreNumbers noHypothesis :=
  refute_scores 1 #v[256] #v[256] rfl (by decide +kernel)

/-- Only the score is looked at, which a small scale makes small. -/
@[expose] def scoreAlone : ScoreHypothesis := fun p f largest additions σ₁ σ₂ σ _ q k =>
  decide (scoreSize p f additions σ₁ σ₂ σ q k ≤ smaller largest.accumulator largest.scores)

/-- The score 1/8 · (16 · 128²) = 32768 is within the range; the inner product is not. -/
theorem scoreAlone_refuted : ¬ ScoresAreNumbers scoreAlone :=
  refute_scores (1 / 8) (Vec.ofFn fun _ : Fin 16 => 128) (Vec.ofFn fun _ => 128) (by decide +kernel)
    (by decide +kernel)

/-- The inner product is looked at as a whole, in which terms cancel. -/
@[expose] def cancelled : ScoreHypothesis := fun _ _ largest _ σ₁ σ₂ σ _ q k =>
  decide (absolute (σ₁ * σ₂ * Vec.dot q k) ≤ largest.accumulator)
    && decide (absolute (σ * (σ₁ * σ₂ * Vec.dot q k)) ≤ smaller largest.accumulator largest.scores)

/-- 4 · 128² − 4 · 128² is 0, and its second half is not within the range. -/
theorem cancelled_refuted : ¬ ScoresAreNumbers cancelled :=
  refute_scores 1 (Vec.ofFn fun _ : Fin 8 => 128)
    (Vec.ofFn fun i => if i.val < 4 then 128 else -128) (by decide +kernel) (by decide +kernel)

/-- The same without the growth by roundings. -/
@[expose] def ungrown : ScoreHypothesis := fun _ _ largest _ σ₁ σ₂ σ _ q k =>
  scoreFits inFull inAccumulator largest 0 σ₁ σ₂ σ q k

private theorem half_rounded (x : Rat) : Rounded (1 / 2 : Rat) x (x * (1 + 1 / 2)) :=
  ⟨1 / 2, ⟨by decide +kernel, Std.le_refl _⟩, rfl⟩

private theorem half_unchanged (x : Rat) : Rounded (1 / 2 : Rat) x x :=
  rounded_refl (by decide +kernel) x

/-- Rounded by up to a half of itself 1 + 1 is 3, to which 2 is added where the largest is 4. -/
theorem ungrown_refuted : ¬ ScoresAreNumbers ungrown := fun claim => by
  have sum : LimitedSum (4 : Rat) (1 / 2) 2 [1, 1, 2] none :=
    .add (xs := [1, 1]) (ys := [2]) (x := some (1 * (1 + 1 / 2) + 1 * (1 + 1 / 2)))
      (y := some 2)
      (.add (xs := [1]) (ys := [1]) .one .one fun a ha b hb _ => by
        obtain rfl := Option.some.inj ha
        obtain rfl := Option.some.inj hb
        exact ⟨_, _, half_rounded 1, half_rounded 1, rfl⟩)
      .one fun a ha b hb h => by
        obtain rfl := Option.some.inj ha
        obtain rfl := Option.some.inj hb
        exact absurd h (by decide +kernel)
  refine claim ⟨1 / 2, 1 / 2, 0, 0, 0, .unrounded⟩ inAccumulator ⟨4, 4, 4, 4, 4⟩ 2 1 1 1 3
    #v[1, 1, 2] #v[1, 1, 1] none ?_ Proof.inAccumulator_precise (Std.le_refl _)
    (Std.le_refl _) (by decide +kernel) ?_ rfl
  · exact ⟨by decide +kernel, by decide +kernel, Std.le_refl _, by decide +kernel,
      Std.le_refl _, Std.le_refl _⟩
  refine ⟨0, 0, fun i => some (1 * (#v[1, 1, 2] : Vec Rat 3)[i]),
    fun i => some (1 * (#v[1, 1, 1] : Vec Rat 3)[i]), fun i => some (#v[1, 1, 2] : Vec Rat 3)[i],
    none, none, Nat.le_refl _, fun _ => rfl, fun _ => rfl, fun i a ha b hb _ => ?_,
    fun terms h => ?_, nofun, nofun⟩
  · obtain rfl := Option.some.inj ha
    obtain rfl := Option.some.inj hb
    refine ⟨_, rfl, ?_⟩
    have e : ∀ i : Fin 3, 1 * (#v[1, 1, 2] : Vec Rat 3)[i] * (1 * (#v[1, 1, 1] : Vec Rat 3)[i])
        = (#v[1, 1, 2] : Vec Rat 3)[i] := by decide +kernel
    rw [e]
    exact half_unchanged _
  · have e : (List.finRange 3).map terms = [1, 1, 2] := by
      have h₀ := Option.some.inj (h 0)
      have h₁ := Option.some.inj (h 1)
      have h₂ := Option.some.inj (h 2)
      show [terms 0, terms 1, terms 2] = [1, 1, 2]
      rw [← h₀, ← h₁, ← h₂]
      rfl
    rw [e]
    exact sum

/-! ## Sums of weights -/

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The statement of `Proof.limitedRun` about a denominator: if the sums of its row fit, it is a
number. -/
abbrev DenominatorsAreNumbers
    (fits : Precision R → Largest R → Nat → Nat → R → List (BoundedKey R) → Bool) : Prop :=
  ∀ (p : Precision R) (largest : Largest R) (reference : R) (roundings rescalings : Nat) (m : R)
    (part : LimitedPart R), Precise p → p.unit ≤ p.accumulation → p.accumulation < 1 →
    p.stored < 1 → p.storedTiny < 1 - p.exponential → LimitedRun p largest reference m part →
    part.rescalings ≤ rescalings → part.additions + part.rescalings ≤ roundings →
    fits p largest roundings rescalings reference (part.keys.map (·.toBoundedKey)) →
    (∀ key ∈ part.keys, key.score ≠ none → AtMost reference key.computed) →
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) → part.l ≠ none

/-- Positive control: the hypothesis of the theorem. -/
theorem sumsFit_right : DenominatorsAreNumbers (R := R) sumsFit :=
  fun _ _ _ _ _ _ _ hp hu ha hσ hη run hr hd fits scores attained e => by
    obtain ⟨l, o, e', -⟩ :=
      Proof.limitedRun hp hu ha hσ hη run hr hd fits scores attained
    rw [e] at e'
    cases e'

/-- Each weight is looked at, and the sum of the values' sizes, but not how many keys there are. -/
@[expose] def weightsAlone (p : Precision R) (largest : Largest R) (roundings rescalings : Nat)
    (reference : R) (row : List (BoundedKey R)) : Bool :=
  decide (numeral 2 * reference ≤ largest.accumulator)
    && decide (weightSize p rescalings ≤ smaller largest.accumulator largest.weights)
    && decide (power (1 + p.accumulation) (roundings + 1) * weightSize p rescalings
      * sumOver (fun key => ofUnmasked key (absolute key.value)) row ≤ largest.accumulator)
    && decide (quotientSize p roundings row ≤ smaller largest.accumulator largest.output)

private theorem limited_key : LimitedRun (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R)
    ⟨1, 1, 1, 1, 1⟩ 0 0 ⟨[exactKey 0 0], some 1, some 0, 0, 0⟩ := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine .key (x := some (0 - 0)) (w := some 1) (w' := some 1) (by simp [exactKey])
    (Std.le_refl _) (.zero (Std.le_refl _)) (fun _ => ⟨_, rfl, rounded_refl (Std.le_refl _) _⟩)
    (fun a ha _ => ?_) (fun a ha _ => ?_) (fun a ha _ => ?_) (fun a ha b hb => ?_)
  · obtain rfl := Option.some.inj ha
    refine ⟨1, rfl, ?_⟩
    rw [exp_sub_self]
    exact rounded_refl (Std.le_refl _) 1
  · obtain rfl := Option.some.inj ha
    exact ⟨1, rfl, Proof.stored_refl (Std.le_refl _) 1⟩
  · obtain rfl := Option.some.inj ha
    refine ⟨0, rfl, ?_⟩
    have e : (1 : R) * (exactKey 0 0 : ComputedKey R).value = 0 := by
      show (1 : R) * 0 = 0
      exact Semiring.mul_zero 1
    rw [e]
    exact rounded_refl (Std.le_refl _) 0
  · obtain rfl := Option.some.inj ha
    rfl

/-- The weights of two keys with the score 0 are 1 each, and so is the largest number. -/
theorem weightsAlone_refuted : ¬ DenominatorsAreNumbers (R := R) weightsAlone := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have run : LimitedRun (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) ⟨1, 1, 1, 1, 1⟩ 0 0
      ⟨[exactKey 0 0, exactKey 0 0], none, some 0, 1, 0⟩ :=
    .join (a := 0) (k := 1) (r := 0)
      (parts := [⟨[exactKey 0 0], some 1, some 0, 0, 0⟩, ⟨[exactKey 0 0], some 1, some 0, 0, 0⟩])
      (fun part h => by
        simp only [List.mem_cons, List.not_mem_nil, or_false, or_self] at h
        subst h
        exact limited_key)
      (fun part h => by
        simp only [List.mem_cons, List.not_mem_nil, or_false, or_self] at h
        subst h
        exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
      (fun ls h => by
        have e : ls = [1, 1] := by
          match ls, h with
          | [a, b], h =>
            simp only [List.map_cons, List.map_nil, List.cons.injEq, Option.some.injEq,
              and_true] at h
            rw [← h.1, ← h.2]
        subst e
        refine .add (xs := [1]) (ys := [1]) .one .one fun a ha b hb h => ?_
        obtain rfl := Option.some.inj ha
        obtain rfl := Option.some.inj hb
        rw [Proof.absolute_of_nonneg (Std.le_of_lt h₀)] at h
        clear claim
        grind)
      (fun os h => by
        have e : os = [0, 0] := by
          match os, h with
          | [a, b], h =>
            simp only [List.map_cons, List.map_nil, List.cons.injEq, Option.some.injEq,
              and_true] at h
            rw [← h.1, ← h.2]
        subst e
        exact .zero .one)
  refine claim _ _ 0 1 0 0 _ ?_ (Std.le_refl _) h₀ h₀ (by show (0 : R) < 1 - 0; clear claim; grind)
    run (Nat.le_refl _) (Nat.le_refl _) ?_ (fun key h _ => ?_) ⟨exactKey 0 0, by simp,
      by simp [exactKey], rfl⟩ rfl
  · exact ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
  · have e₁ : ∀ x : R, smaller x x = x := fun x => by
      rw [smaller]
      split <;> rfl
    have e₂ : absolute (0 : R) = 0 := Proof.absolute_of_nonneg (Std.le_refl _)
    have e₃ : max (0 : R) 0 = 0 := by
      rw [OrderedField.max_def]
      split <;> rfl
    have e₄ : (1 : R) + 0 = 1 := by clear claim; grind
    have e₅ : (0 : R) ≤ 1 := Std.le_of_lt h₀
    simp only [weightsAlone, weightSize, quotientSize, valueSize, exactKey, ofUnmasked,
      List.map_cons, List.map_nil, sumOver_cons, sumOver_nil, List.foldl_cons, List.foldl_nil,
      Proof.power_eq, e₁, e₂, e₃, e₄, Semiring.one_pow, Semiring.mul_zero, Semiring.mul_one,
      Semiring.add_zero, Bool.and_eq_true, decide_eq_true_eq, e₅, Std.le_refl, and_self]
  · have : key = exactKey 0 0 := by simpa using h
    rw [this]
    exact .zero (Std.le_refl _)

end Attention.WrongVariants
