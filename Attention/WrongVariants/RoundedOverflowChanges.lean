module

public import Attention.Proof.Rounding.OverflowDropout
public import Attention.Proof.Rounding.OverflowLogSumExp
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the hypothesis that changed scores, dropout and log-sum-exps do not overflow

Each leaves a number out that is past the largest, which is 1 here, where nothing is rounded.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- What `Proof.limitedChange` says: a score whose changes fit is a number after them. -/
abbrev ChangesAreNumbers
    (fits : Precision R → ScoreFormats R → Largest R → ScoreChange R → R → Bool) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (largest : Largest R) (change : ScoreChange R)
    (size x : R) (y : Option R), 0 ≤ p.unit → 0 ≤ f.scores → 0 ≤ f.scoresTiny →
    (∀ cap, change.cap = some cap → 0 < cap) → fits p f largest change size → AtMost size x →
    LimitedChange p f largest change x y → y ≠ none

/-- Positive control: the hypothesis of the theorem. -/
theorem changeFits_right : ChangesAreNumbers (R := R) changeFits :=
  fun _ _ _ _ _ _ _ hu hs hs' hcap fits hx h e => by
    obtain ⟨z, e', -⟩ := Proof.limitedChange hu hs hs' hcap fits hx h
    rw [e] at e'
    cases e'

private abbrev exactly : Precision R := ⟨0, 0, 0, 0, 0, .unrounded⟩

private abbrev one : Largest R := ⟨1, 1, 1, 1, 1⟩

omit [Exponential R R] in
private theorem smaller_one : smaller (1 : R) 1 = 1 := by
  rw [smaller]
  split <;> rfl

omit [Exponential R R] in
/-- A number past the largest may become none. -/
private theorem past {x : R} (h : 1 < x) (u : R) (k : Nat) :
    LimitedTimes 1 u (k + 1) x none := by
  induction k with
  | zero => exact ⟨some x, rfl, fun a ha h' => by
      obtain rfl := Option.some.inj ha
      exact absurd h'.2 (by grind)⟩
  | succ k ih => exact ⟨none, ih, nofun⟩

omit [Exponential R R] in
private theorem limited_refl {k : Nat} (x : R) : LimitedTimes 1 0 k x (some x) := by
  induction k with
  | zero => rfl
  | succ k ih =>
    refine ⟨some x, ih, fun a ha _ => ?_⟩
    obtain rfl := Option.some.inj ha
    exact ⟨x, rfl, rounded_refl (Std.le_refl _) x⟩

/-- The number that is added is left out. -/
@[expose] def scoreBeforeIt (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (change : ScoreChange R) (size : R) : Bool :=
  changeFits p f largest { change with added := none } size

/-- 1 + 1 is past 1. -/
theorem scoreBeforeIt_refuted : ¬ ChangesAreNumbers (R := R) scoreBeforeIt := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine claim exactly inAccumulator one ⟨none, some 1⟩ 1 1 none (Std.le_refl _) (Std.le_refl _)
    (Std.le_refl _) nofun ?_ ⟨by clear claim; grind, Std.le_refl _⟩ ?_ rfl
  · simp [scoreBeforeIt, changeFits, changedSize, smaller_one, Std.le_refl]
  · refine ⟨some 1, rfl, fun c hc => ?_⟩
    obtain rfl := Option.some.inj hc
    refine ⟨some 1, some 1, none, limited_refl 1, fun r hr _ => ?_, fun r hr => ?_, nofun⟩
    · obtain rfl := Option.some.inj hr
      exact ⟨1, rfl, rounded_refl (Std.le_refl _) 1⟩
    · obtain rfl := Option.some.inj hr
      exact past (by clear claim; grind) 0 1

/-- The quotient by the cap is left out. -/
@[expose] def withoutQuotient (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (change : ScoreChange R) (size : R) : Bool :=
  decide (changedSize p f change size ≤ smaller largest.accumulator largest.scores)

omit [Exponential R R] in
private theorem half_pos : (0 : R) < 1 / 2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

/-- With a cap of 1/2 the score 1 is divided into 2, which is past 1, though 1/2 is not. -/
theorem withoutQuotient_refuted : ¬ ChangesAreNumbers (R := R) withoutQuotient := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine claim exactly inAccumulator one ⟨some (1 / 2), none⟩ 1 1 none (Std.le_refl _)
    (Std.le_refl _) (Std.le_refl _) (fun cap h => ?_) ?_ ⟨by clear claim; grind, Std.le_refl _⟩ ?_
    rfl
  · obtain rfl := Option.some.inj h
    exact half_pos
  · simp only [withoutQuotient, changedSize, cappedSize, smaller_one, decide_eq_true_eq,
      Proof.power_eq, inAccumulator]
    have e : (1 + 0 : R) * ((1 + 0) ^ 3 * (1 / 2 * (1 + numeral 4 * 0))) = 1 / 2 := by
      clear claim
      rw [show (1 + 0 : R) = 1 by grind, Semiring.one_pow]
      grind
    rw [e]
    clear claim
    grind
  · refine ⟨none, ?_, rfl⟩
    exact ⟨3, 0, none, none, none, Nat.le_refl _, past (by clear claim; grind) 0 2, nofun, nofun,
      nofun⟩

/-! ## The inner product -/

/-- What the theorems say of the score of a query and a key: it is a number after its changes. -/
abbrev ChangedScoresAreNumbers (fits : (p : Precision R) → ScoreFormats R → Largest R → Nat → R →
    R → R → ScoreChange R → {d : Nat} → Vec R d → Vec R d → Bool) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R) (largest : Largest R) (additions : Nat) (σ₁ σ₂ σ : R)
    (change : ScoreChange R) (d : Nat) (q k : Vec R d) (x y : Option R), Precise p →
    PreciseFormats f → 0 ≤ f.scores → 0 ≤ f.scoresTiny →
    (∀ cap, change.cap = some cap → 0 < cap) →
    fits p f largest additions σ₁ σ₂ σ change q k →
    LimitedScore p f largest additions σ₁ σ₂ σ q k x →
    (∀ c ∈ x, LimitedChange p f largest change c y) → y ≠ none

/-- Positive control: the score fits, and so do its changes. -/
theorem changedScores_right : ChangedScoresAreNumbers (R := R)
    (fun p f largest additions σ₁ σ₂ σ change _ q k =>
      scoreFits p f largest additions σ₁ σ₂ σ q k
        && changeFits p f largest change (scoreSize p f additions σ₁ σ₂ σ q k)) :=
  fun p f largest additions σ₁ σ₂ σ change d q k x y hp hf hs hs' hcap fits hx hy e => by
    simp only [Bool.and_eq_true] at fits
    obtain ⟨s, rfl, -, h⟩ := Proof.limitedScore hp hf hs hs' fits.1 hx
    obtain ⟨z, e', -⟩ := Proof.limitedChange hp.unit hs hs' hcap fits.2 h (hy s rfl)
    rw [e] at e'
    cases e'

/-- Softcap bounds the score by the cap, so nothing is asked of the product. -/
@[expose] def capAlone (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions : Nat) (σ₁ σ₂ σ : R) (change : ScoreChange R) {d : Nat} (q k : Vec R d) : Bool :=
  match change.cap, change.added with
  | some cap, none => decide (cappedSize p f cap ≤ smaller largest.accumulator largest.scores)
  | _, _ => scoreFits p f largest additions σ₁ σ₂ σ q k
    && changeFits p f largest change (scoreSize p f additions σ₁ σ₂ σ q k)

/-- 2 · 1 is past 1, before it is squeezed into (−1, 1). -/
theorem capAlone_refuted : ¬ ChangedScoresAreNumbers (R := R) capAlone := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine claim exactly inAccumulator one 0 1 1 1 ⟨some 1, none⟩ 1 #v[2] #v[1] none none ?_
    Proof.inAccumulator_precise (Std.le_refl _) (Std.le_refl _) (fun cap h => ?_) ?_ ?_ nofun rfl
  · exact ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
  · obtain rfl := Option.some.inj h
    exact h₀
  · simp only [capAlone, cappedSize, smaller_one, decide_eq_true_eq, Proof.power_eq, inAccumulator]
    have e : (1 + 0 : R) * ((1 + 0) ^ 3 * (1 * (1 + numeral 4 * 0))) = 1 := by
      clear claim
      rw [show (1 + 0 : R) = 1 by grind, Semiring.one_pow]
      grind
    rw [e]
    exact Std.le_refl _
  · refine ⟨0, 0, fun _ => some (1 * 2), fun _ => some (1 * 1), fun _ => none, none, none,
      Nat.le_refl _, fun i => ?_, fun i => ?_, fun i a ha b hb h => ?_, fun terms h => ?_, nofun,
      nofun⟩
    · have : i = 0 := by omega
      subst this
      rfl
    · have : i = 0 := by omega
      subst this
      rfl
    · obtain rfl := Option.some.inj ha
      obtain rfl := Option.some.inj hb
      have := h.2
      clear claim
      grind
    · exact nomatch h 0

/-! ## Dropout -/

omit [Exponential R R] in
/-- What `Proof.limitedDropout` says: a value times its factor of dropout is a number. -/
abbrev DroppedAreNumbers (fits : Precision R → R → R → Bool → R → Bool) : Prop :=
  ∀ (p : Precision R) (q largest : R) (keep : Bool) (v : R) (y : Option R), Precise p →
    p.accumulation < 1 → 0 ≤ q → 1 ≤ largest → fits p largest q keep v →
    LimitedDropout largest p.accumulation q keep v y → y ≠ none

omit [Exponential R R] in
/-- Positive control: the hypothesis of the theorem. -/
theorem droppedFits_right : DroppedAreNumbers (R := R) (fun p largest q keep v =>
    !decide (1 ≤ q * (1 + p.accumulation)) && decide (factorSize p q ≤ largest)
      && decide (droppedSize p q keep v ≤ largest)) :=
  fun p q largest keep v y hp ha hq hone fits h e => by
    simp only [Bool.and_eq_true, Bool.not_eq_true', decide_eq_false_iff_not,
      decide_eq_true_eq] at fits
    obtain ⟨z, e', -⟩ := Proof.limitedDropout hp ha hq (by grind) hone fits.1.2 fits.2 h
    rw [e] at e'
    cases e'

/-- The value is looked at without its factor. -/
@[expose] def valueAlone (p : Precision R) (largest q : R) (_keep : Bool) (v : R) : Bool :=
  !decide (1 ≤ q * (1 + p.accumulation)) && decide (absolute v ≤ largest)

omit [Exponential R R] in
/-- With probability 1/2 the factor is 2, which is past 1, and so is its product with 1. -/
theorem valueAlone_refuted : ¬ DroppedAreNumbers (R := R) valueAlone := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine claim exactly (1 / 2) 1 true 1 none
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩ h₀
    (Std.le_of_lt half_pos) (Std.le_refl _) ?_ ?_ rfl
  · have e₁ : (1 / 2 : R) * (1 + 0) = 1 / 2 := by clear claim; grind
    have e₃ : absolute (1 : R) = 1 := Proof.absolute_of_nonneg (Std.le_of_lt h₀)
    simp only [valueAlone, e₁, e₃, Bool.and_eq_true,
      Bool.not_eq_true', decide_eq_false_iff_not, decide_eq_true_eq]
    clear claim
    exact ⟨by grind, Std.le_refl _⟩
  · have same : ∀ x : R, Limited 1 (Rounded 0) x (some x) := fun x _ =>
      ⟨x, rfl, rounded_refl (Std.le_refl _) x⟩
    refine ⟨some (1 / 2), some (1 - 1 / 2), none, same _, fun a ha => ?_, fun a ha _ => ?_, nofun⟩
    · obtain rfl := Option.some.inj ha
      exact same _
    · obtain rfl := Option.some.inj ha
      exact past (by clear claim; grind) 0 3

omit [Exponential R R] in
/-- What `Proof.limitedDroppedWeight` says: so is a weight times its factor, times a value. -/
abbrev DroppedWeightsAreNumbers (fits : Precision R → Largest R → Nat → R → Bool → R → Bool) :
    Prop :=
  ∀ (p : Precision R) (largest : Largest R) (rescalings : Nat) (q : R) (keep : Bool) (w v : R)
    (y : Option R), Precise p → p.accumulation < 1 → 0 ≤ q →
    fits p largest rescalings q keep v → AtMost (weightSize p rescalings) w →
    LimitedDroppedWeight largest p.accumulation q keep w v y → y ≠ none

omit [Exponential R R] in
/-- Positive control: the hypothesis of the theorem. -/
theorem droppedWeightFits_right : DroppedWeightsAreNumbers (R := R) droppedWeightFits :=
  fun _ _ _ _ _ _ _ _ hp ha hq fits hw h =>
    let ⟨_, _, _, h⟩ := Proof.limitedDroppedWeight hp ha hq fits hw h
    h

/-- The product with the value is looked at, and that with the weight is not. -/
@[expose] def droppedValueAlone (p : Precision R) (largest : Largest R) (rescalings : Nat) (q : R)
    (keep : Bool) (v : R) : Bool :=
  !decide (1 ≤ q * (1 + p.accumulation))
    && decide (1 ≤ largest.accumulator)
    && decide (factorSize p q ≤ largest.accumulator)
    && decide (droppedSize p q keep v ≤ largest.accumulator)
    && decide (weightSize p rescalings * droppedSize p q keep v ≤ largest.accumulator)

omit [Exponential R R] in
/-- The weight 1, doubled, is past 1, the largest number of weights, be the value 0. -/
theorem droppedValueAlone_refuted : ¬ DroppedWeightsAreNumbers (R := R) droppedValueAlone :=
    fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₁ : (1 / 2 : R) * (1 + 0) = 1 / 2 := by clear claim; grind
  have e₂ : (1 + 0 : R) ^ 4 * (1 / ((1 - 1 / 2) * (1 - 0))) = 2 := by
    clear claim
    rw [show (1 + 0 : R) = 1 by grind, Semiring.one_pow]
    grind
  have e₃ : absolute (0 : R) = 0 := Proof.absolute_of_nonneg (Std.le_refl _)
  have e₄ : weightSize (exactly : Precision R) 0 = 1 := by
    simp only [weightSize, Proof.power_eq]
    clear claim
    rw [show (1 + 0 : R) = 1 by grind, Semiring.one_pow]
    grind
  refine claim exactly ⟨2, 2, 2, 1, 2⟩ 0 (1 / 2) true 1 0 none
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩ h₀
    (Std.le_of_lt half_pos) ?_ ?_ ?_ rfl
  · simp only [droppedValueAlone, droppedSize, factorSize, Proof.power_eq, e₁, e₂, e₃, e₄,
      Bool.and_eq_true, Bool.not_eq_true', decide_eq_false_iff_not, decide_eq_true_eq, ↓reduceIte,
      Semiring.mul_zero]
    clear claim
    exact ⟨⟨⟨⟨by grind, by grind⟩, Std.le_refl _⟩, by grind⟩, by grind⟩
  · rw [e₄]
    exact ⟨by clear claim; grind, Std.le_refl _⟩
  · have same : ∀ x : R, Limited 2 (Rounded 0) x (some x) := fun x _ =>
      ⟨x, rfl, rounded_refl (Std.le_refl _) x⟩
    have two : ∀ k, LimitedTimes (2 : R) 0 k (1 / (1 - 1 / 2)) (some (1 / (1 - 1 / 2))) := by
      intro k
      induction k with
      | zero => rfl
      | succ k ih =>
        refine ⟨_, ih, fun a ha => ?_⟩
        obtain rfl := Option.some.inj ha
        exact same _
    refine ⟨some (1 / 2), some (1 - 1 / 2), some (1 / (1 - 1 / 2)), none, same _, fun a ha => ?_,
      fun a ha _ => ?_, fun a ha h => ?_, nofun⟩
    · obtain rfl := Option.some.inj ha
      exact same _
    · obtain rfl := Option.some.inj ha
      exact two 4
    · obtain rfl := Option.some.inj ha
      have k₁ := h.2
      have k₂ : smaller (2 : R) 1 = 1 := by
        rw [smaller, if_neg (by clear claim k₁ h; grind)]
      have k₃ : (1 : R) ≤ 1 := Std.le_refl _
      rw [show (⟨2, 2, 2, 1, 2⟩ : Largest R).accumulator = 2 from rfl,
        show (⟨2, 2, 2, 1, 2⟩ : Largest R).weights = 1 from rfl, k₂] at k₁
      clear claim
      grind

/-! ## Log-sum-exps -/

/-- What `Proof.limitedLogSumExp` says: a log-sum-exp whose numbers fit is a number. -/
abbrev LogSumExpsAreNumbers (fits : Precision R → Largest R → Nat → Nat → R → List (BoundedKey R) →
    Bool) : Prop :=
  ∀ (p : Precision R) (largest : Largest R) (reference : R) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) (m : R) (part : Part R) (L : Option R), Precise p →
    p.unit ≤ p.accumulation → p.accumulation < 1 → p.stored < 1 → Run p m part →
    part.rescalings ≤ rescalings → part.additions + part.rescalings ≤ roundings →
    part.l ≤ denominatorSize p roundings rescalings row →
    fits p largest roundings rescalings reference row → AtMost reference m →
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) →
    LimitedLogSumExp largest.accumulator p.unit m part.l L → L ≠ none

end Attention.WrongVariants

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- Positive control: the hypothesis of the theorem. -/
theorem logSumExpFits_right : LogSumExpsAreNumbers (R := R) logSumExpFits :=
  fun _ _ _ _ _ _ _ _ _ hp hu ha hσ run hr hd most fits hm attained h e => by
    obtain ⟨L', e', -⟩ := Proof.limitedLogSumExp hp hu ha hσ run hr hd most fits hm attained h
    rw [e] at e'
    cases e'

/-- The sum is looked at, and the maximum is not. -/
@[expose] def logarithmAlone (p : Precision R) (largest : Largest R) (roundings rescalings : Nat)
    (_reference : R) (row : List (BoundedKey R)) : Bool :=
  decide (denominatorSize p roundings rescalings row ≤ largest.accumulator)

/-- One key with the score 2 has the log-sum-exp 2 + ln 1, which is past 1. -/
theorem logarithmAlone_refuted : ¬ LogSumExpsAreNumbers (R := R) logarithmAlone := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have run : Run (exactly : Precision R) 2 ⟨[exactKey 2 0], 1, 0, 0, 0⟩ := by
    have h := Run.key (p := (exactly : Precision R)) (m := 2) (x := 0) (w := 1) (w' := 1) (o := 0)
      (key := exactKey 2 0) (by simp [exactKey]) (Std.le_refl _)
      (by
        have e : (2 : R) - 2 = 0 := by clear claim; grind
        show Rounded (0 : R) (2 - 2) 0
        rw [e]
        exact rounded_refl (Std.le_refl _) 0) (by
        rw [exp_zero]
        exact rounded_refl (Std.le_refl _) 1) (Proof.stored_refl (Std.le_refl _) 1) (by
        have e : (1 : R) * (exactKey 2 0 : ComputedKey R).value = 0 := Semiring.mul_zero 1
        rw [e]
        exact rounded_refl (Std.le_refl _) 0)
    exact h
  have e : denominatorSize (exactly : Precision R) 0 0 [⟨some 0, 0, 0⟩] = 1 := by
    simp only [denominatorSize, weightSize, ofUnmasked, sumOver_cons, sumOver_nil, Proof.power_eq]
    clear claim run
    rw [show (1 + 0 : R) = 1 by grind, Semiring.one_pow]
    grind
  refine claim exactly one 2 0 0 [⟨some 0, 0, 0⟩] 2 _ none
    ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
    (Std.le_refl _) h₀ h₀ run (Nat.le_refl _) (Nat.le_refl _) ?_ ?_
    ⟨by clear claim; grind, Std.le_refl _⟩ ⟨exactKey 2 0, by simp, by simp [exactKey], rfl⟩ ?_ rfl
  · rw [e]
    exact Std.le_refl _
  · simp only [logarithmAlone, e, decide_eq_true_eq]
    exact Std.le_refl _
  · refine ⟨0, 1, 0, 0, 0, none, some 0, some 0, by omega, by omega, exp_zero,
      fun _ => ⟨0, rfl, ?_⟩, fun r hr => ?_, past (by clear claim; grind) 0 0, nofun⟩
    · have e : (0 : R) - 0 = 0 := by clear claim; grind
      show AtMost (numeral 0 * (0 : R) * (absolute (0 : R) + 1)) ((0 : R) - 0)
      rw [e, Semiring.mul_zero, Semiring.zero_mul]
      exact .zero (Std.le_refl _)
    · obtain rfl := Option.some.inj hr
      rfl

end Attention.WrongVariants
