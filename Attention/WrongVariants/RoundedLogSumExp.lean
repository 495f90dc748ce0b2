module

public import Attention.Model.UnderflowLogSumExp
public import Attention.Proof.Rounding.LogSumExp
public import Attention.Proof.Rounding.UnderflowCosts
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of log-sum-exps that round

Results that are not the log-sum-exp, scores that are off by a constant, which an output forgives,
and a bound that has nothing for the logarithm and the sum. Source: docs/tolerances.md,
"Log-sum-exp". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

section

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The claim of `rounded_logSumExp`, of any result, of any bound, of scores that are off by any
constants, and of any runs. -/
abbrev LogSumExpStays (result : R → R → R → R → Prop := ComputedLogSumExp)
    (bound : Precision R → R → R → R → R → R := logSumExpTolerance)
    (constant : R → Prop := fun c => c = 0)
    (run : Precision R → R → Part R → Prop := Run) : Prop :=
  ∀ p : Precision R, Precise p → ∀ (m : R) (part : Part R), run p m part →
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) → ∀ c : R, constant c →
    (∀ key ∈ part.keys, ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c))) →
    ∀ roundings rescalings : Nat, part.rescalings ≤ rescalings →
    part.additions + part.rescalings ≤ roundings →
    numeral (roundings + 1) * p.unit < 1 →
    denominatorError p roundings rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) < 1 →
    numeral 4 * p.unit < 1 → ∀ L E M : R,
    IsLogSumExp R (some L) (part.keys.map (·.score)) →
    rowMax (part.keys.map (·.score)) = some M →
    logSumExpFactor p roundings rescalings (part.keys.map (·.toBoundedKey)) ≤ exp E →
    ∀ L' : R, result p.unit m part.l L' →
    AtMost (bound p E (L - M) M (largestError (part.keys.map (·.toBoundedKey)))) (L' - L)

/-- Positive control: the results and the bound of the theorem. -/
theorem computedLogSumExp_stays : LogSumExpStays (R := R) :=
  fun _ hp _ _ run attained c hc close _ _ hr ha hD hg h4 _ _ _ exact maximum errors _ result =>
    Proof.rounded_logSumExp hp run attained (fun key hk s hs => by
      have h := close key hk s hs
      rwa [hc, Semiring.add_zero] at h) hr ha hD hg h4 exact maximum errors result

/-! ## What counterexamples are made of -/

private theorem factor_single (u s : R) :
    logSumExpFactor (unitOnly u) 0 0 [⟨some s, 0, 0⟩] = 1 / (1 - gamma 1 u) := by
  have hw : boundedWeights (unitOnly u) 0 [⟨some s, 0, 0⟩] = [⟨1, 1, 0⟩] := by
    have e₀ : max (0 : R) 0 = 0 := by
      rw [OrderedField.max_def]
      split <;> rfl
    have e₁ : (0 : R) + u * (s - s + 0 + 0) = 0 := by grind
    have e₂ : (1 : R) / 1 = 1 := by grind
    have e₃ : (1 : R) - 0 = 1 := by grind
    simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, rowMax, maxScore,
      largestError, List.foldl_cons, List.foldl_nil, unitOnly, e₀, e₁, e₃, exp_sub_self, exp_zero,
      Proof.power_eq, Semiring.one_pow, e₂]
  rw [logSumExpFactor, hw]
  simp only [sumOver_cons, sumOver_nil, denominatorError, unitOnly, Nat.zero_add]
  have e : ((1 : R) * 1 + 0) / (1 + 0) = 1 := by grind
  rw [e]

/-- The claim for one key with the score `s`, computed as s + c. -/
private theorem single {result : R → R → R → R → Prop}
    {bound : Precision R → R → R → R → R → R} {constant : R → Prop}
    (claim : LogSumExpStays result bound constant) {u c E : R} (s : R) (hu : 0 ≤ u)
    (hc : constant c) (h4 : numeral 4 * u < 1) (hE : 1 / (1 - gamma 1 u) ≤ exp E) {L : R}
    (h : result u (s + c) 1 L) : AtMost (bound (unitOnly u) E 0 s 0) (L - s) := by
  have e₀ : max (0 : R) 0 = 0 := by
    rw [OrderedField.max_def]
    split <;> rfl
  have e₂ : (numeral (0 + 1) : R) = 1 := by
    simp only [Proof.numeral_succ, Proof.numeral_eq]
    grind
  have h2 : 2 * (1 : R) * u < 1 := by
    have h4 := h4
    rw [Proof.numeral_four] at h4
    clear claim h hE
    grind
  have h1 : (1 : R) * u < 1 := by
    clear claim h hE h4 e₂ e₀
    grind
  have run : Run (unitOnly u) (s + c) ⟨[⟨⟨some s, 0, 0⟩, s + c⟩], 1, 0, 0, 0⟩ :=
    .key (x := s + c - (s + c)) (w' := 1) (by simp) (Std.le_refl _) (rounded_refl hu _)
      (by rw [exp_sub_self]; exact rounded_refl (Std.le_refl _) _)
      (Proof.stored_refl (Std.le_refl _) _)
      (by rw [Semiring.one_mul]; exact rounded_refl (Std.le_refl _) _)
  have h₁ := claim _ (unitOnly_precise hu) _ _ run ⟨_, List.mem_singleton.mpr rfl, by simp, rfl⟩ c
    hc (fun key hk t ht => by
      obtain rfl := List.mem_singleton.mp hk
      obtain rfl : s = t := Option.some.inj ht
      exact atMost_sub_self (s + c))
    0 0 (Nat.le_refl _) (Nat.le_refl _) (by rw [e₂]; exact h1)
    (Proof.gamma_lt_one (by rw [e₂]; exact h2) (by rw [e₂]; exact h1)) h4 s E s
    (by
      show (exp s : R) = exp s + 0
      rw [Semiring.add_zero]) rfl (by simpa [factor_single] using hE) L h
  have e₃ : s - s = 0 := by clear claim h h₁ run; grind
  simpa [largestError, e₀, e₃] using h₁

/-- The claim for the same where nothing is rounded. -/
private theorem single_exact {result : R → R → R → R → Prop} {constant : R → Prop}
    (claim : LogSumExpStays result logSumExpTolerance constant) {c s L : R} (hc : constant c)
    (h : result 0 (s + c) 1 L) : L = s := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := single claim (E := 0) s (Std.le_refl 0) hc (by rw [Semiring.mul_zero]; exact h₀)
    (by rw [gamma_zero, exp_zero]; clear claim h; grind) h
  rw [logSumExpTolerance] at h₁
  simp only [unitOnly, gamma_zero] at h₁
  obtain ⟨h₂, h₃⟩ := h₁
  clear claim h
  grind

/-! ## Results and scores -/

/-- The logarithm of the denominator alone, without the maximum. -/
@[expose] def maximumLeftOut (_ _ l L : R) : Prop := exp L = l

theorem maximumLeftOut_refuted : ¬ LogSumExpStays (R := R) maximumLeftOut := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := single_exact claim (c := 0) (s := 1) (L := 0) rfl exp_zero
  clear claim
  grind

/-- The denominator where its logarithm belongs. -/
@[expose] def noLogarithm (_ m l L : R) : Prop := L = m + l

theorem noLogarithm_refuted : ¬ LogSumExpStays (R := R) noLogarithm := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := single_exact claim (c := 0) (s := 0) (L := 0 + 0 + 1) rfl rfl
  clear claim
  grind

/-- Products that change a base underflow by 1, and nobody counts it. -/
@[expose] def baseUnderflows (u m l L : R) : Prop := TinyLogSumExp u 1 m l L

theorem baseUnderflows_refuted : ¬ LogSumExpStays (R := R) baseUnderflows := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : absolute (1 + 0 : R) = 1 := by
    rw [Semiring.add_zero]
    exact Proof.absolute_of_nonneg (Std.le_of_lt h₀)
  have flushed : Stored 0 1 (1 + 0 : R) 0 := by
    rw [Stored, e, Semiring.zero_mul, OrderedField.max_def, if_pos (Std.le_of_lt h₀)]
    exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩
  have h := single_exact claim (c := 0) (s := 1) (L := 0) rfl
    ⟨0, 1, 0, 0, 0, 0, 0, 0, 0, by omega, by omega, exp_zero, by
      rw [Semiring.mul_zero, Semiring.zero_mul]
      exact atMost_sub_self 0, rfl, ⟨_, rfl, flushed⟩,
      ⟨by clear claim; grind, by clear claim; grind⟩, rfl⟩
  clear claim flushed e
  grind

/-- A sum m + ln l of up to 1 is flushed to 0, and nobody counts it. -/
@[expose] def sumFlushed (u m l L : R) : Prop :=
  ∃ s, ComputedLogSumExp u m l s ∧ AtMost 1 s ∧ L = 0

theorem sumFlushed_refuted : ¬ LogSumExpStays (R := R) sumFlushed := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := single_exact claim (c := 0) (s := 1) (L := 0) rfl
    ⟨1 + 0 + 0, ⟨0, 0, 0, 0, 0, 1 + 0, 0, 0, by omega, by omega, exp_zero, by
      rw [Semiring.mul_zero, Semiring.zero_mul]
      exact ⟨by grind, by grind⟩, rfl, rfl, rfl⟩, ⟨by grind, by grind⟩, rfl⟩
  clear claim
  grind

/-- The weight of a key underflows, and the bound counts nothing below the normal numbers. -/
@[expose] def weightUnderflows (p : Precision R) (m : R) (part : Part R) : Prop :=
  ∃ ν, TinyRun p ν 0 m part

theorem weightUnderflows_refuted : ¬ LogSumExpStays (R := R) (run := weightUnderflows) :=
  fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₀ : max (0 : R) 0 = 0 := by
    rw [OrderedField.max_def]
    split <;> rfl
  have e₂ : (0 : R) - 0 = 0 := by grind
  have below : Stored 0 1 (exp (0 - 0 : R) : R) (exp (0 - 1 : R)) := by
    have h₁ := exp_lt (R := R) (0 - 1 : R) (0 - 0) (by grind)
    have h₂ := exp_pos (R := R) (0 - 1 : R)
    rw [e₂, exp_zero] at h₁ ⊢
    generalize (exp (0 - 1 : R) : R) = w at *
    rw [Stored, Proof.absolute_of_nonneg (Std.le_of_lt h₀), Semiring.zero_mul,
      OrderedField.max_def, if_pos (Std.le_of_lt h₀)]
    clear claim
    exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩
  have run : TinyRun (unitOnly (0 : R)) 1 0 0
      ⟨[⟨⟨some 0, 0, 0⟩, 0⟩], exp (0 - 1 : R), exp (0 - 1 : R) * 0, 0, 0⟩ :=
    .key (x := 0 - 0) (w := exp (0 - 1 : R)) (w' := exp (0 - 1 : R)) (by simp) (Std.le_refl _)
      (.inl (rounded_refl (Std.le_refl _) _)) below (Proof.stored_refl (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored (Std.le_of_lt h₀) (Proof.stored_refl (Std.le_refl _) _))
  have h := claim _ (unitOnly_precise (Std.le_refl _)) _ _ ⟨_, run⟩
    ⟨_, List.mem_singleton.mpr rfl, by simp, rfl⟩ 0 rfl
    (fun key hk t ht => by
      obtain rfl := List.mem_singleton.mp hk
      obtain rfl : (0 : R) = t := Option.some.inj ht
      show AtMost (0 : R) (0 - (0 + 0))
      rw [Semiring.add_zero]
      exact atMost_sub_self (0 : R))
    0 0 (Nat.le_refl _) (Nat.le_refl _) (by
      show numeral (0 + 1) * (0 : R) < 1
      rw [Semiring.mul_zero]
      exact h₀)
    (by
      show gamma (0 + 1) (0 : R) < 1
      rw [gamma_zero]
      exact h₀) (by show numeral 4 * (0 : R) < 1; rw [Semiring.mul_zero]; exact h₀) 0 0 0
    (by
      show (exp (0 : R) : R) = exp (0 : R) + 0
      rw [Semiring.add_zero]) rfl (by
      show logSumExpFactor (unitOnly (0 : R)) 0 0 [⟨some 0, 0, 0⟩] ≤ (exp (0 : R) : R)
      rw [factor_single, gamma_zero, exp_zero]
      clear claim
      grind) (0 - 1)
    ⟨0, 0, 0, 0, 0 - 1, 0, 0 - 1, 0 - 1, by omega, by omega, rfl, by
      rw [show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul, Semiring.zero_mul]
      exact atMost_sub_self _, rfl, rfl, by
      show (0 - 1 : R) = 0 + (0 - 1)
      clear claim
      grind⟩
  rw [logSumExpTolerance] at h
  have h₁ := h.1
  simp only [unitOnly, gamma_zero] at h₁
  clear claim h below run
  grind

/-- The claim of scores that are off by a constant that all keys share: it cancels from an output,
and not from a log-sum-exp. -/
theorem constantForgiven_refuted :
    ¬ LogSumExpStays (R := R) ComputedLogSumExp logSumExpTolerance (fun _ => True) :=
  fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := single_exact claim (c := 1) (s := 0) (L := 0 + 1 + 0) trivial
    ⟨0, 0, 0, 0, 0, 0 + 1, 0, 0, by omega, by omega, exp_zero,
      by rw [Semiring.mul_zero, Semiring.zero_mul]; exact ⟨by grind, by grind⟩, rfl, rfl, rfl⟩
  clear claim
  grind

end

/-! ## The bound -/

section

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- A bound that has nothing for the logarithm, changes of base and the sum. -/
@[expose] def logarithmNotCounted (_ : Precision R) (E _ _ _ : R) : R := E

theorem logarithmNotCounted_refuted :
    ¬ LogSumExpStays (R := R) ComputedLogSumExp logarithmNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₁ : (numeral 1 : R) = 1 := by
    simp only [Proof.numeral_succ, Proof.numeral_eq]
    grind
  have h₁ := NaturalExp.one_add_le_exp (1 / 98 : R)
  have h := single claim (u := 1 / 100) (c := 0) (E := 1 / 98) 1000 (L := 1010) (by grind) rfl
    (by rw [Proof.numeral_four]; grind) (by
      rw [gamma, e₁]
      refine Std.le_trans ?_ h₁
      grind)
    ⟨0, 0, 1, 0, 0, 1000 + 0, 0, 0, by omega, by omega, exp_zero,
      by rw [show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul, Semiring.zero_mul]
         exact ⟨by grind, by grind⟩, rfl, rfl, _, rfl, 1 / 100, ⟨by grind, by grind⟩, by grind⟩
  obtain ⟨h₂, h₃⟩ := h
  rw [logarithmNotCounted] at h₃
  clear claim
  grind

end

end Attention.WrongVariants
