module

public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the bound of a result that is stored

Bounds that leave out what storing the result costs, or what it makes of the error that is there
already. Over every ordered field, for every exponential. Source: docs/tolerances.md, section 5. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The claim of `rounded_output`, of any bound. -/
abbrev StoredStaysAllowed
    (bound : Precision R → R → R → Nat → Nat → R → List (BoundedKey R) → R) : Prop :=
  ∀ p : Precision R, Precise p → ∀ (m : R) (part : Part R), Run p m part →
    ∀ row : List (ScoredValue R R 1),
    part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[0])) →
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) → ∀ c : R,
    (∀ key ∈ part.keys, ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c))) →
    ∀ roundings rescalings : Nat, part.rescalings ≤ rescalings →
    part.additions + part.rescalings ≤ roundings →
    (p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1) →
    numeral (roundings + 6) * p.accumulation < 1 → 2 * numeral roundings * p.unit < 1 →
    ∀ o : R, RoundedTimes p.accumulation 5 (part.o / part.l) o →
    ∀ u η o' : R, StoredNear u η o o' → ∀ negligible : R,
    AtMost (bound p u η roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o' - (attend row)[0])

/-- Positive control: the bound of the theorem. -/
theorem storedTolerance_stays : StoredStaysAllowed (R := R) storedTolerance :=
  fun _ hp _ _ run _ same attained _ close _ _ hr ha third hN hD _ result _ _ _ stored =>
    Proof.rounded_output hp run Nat.zero_lt_one same attained close hr ha third hN hD result stored

/-- The precision of a function that rounds its numerator only. -/
private def numeratorOnly (a : R) : Precision R := ⟨0, a, 0, 0, 0, .unrounded⟩

omit [Exponential R R] in
private theorem numeratorOnly_precise {a : R} (ha : 0 ≤ a) : Precise (numeratorOnly a) :=
  ⟨Std.le_refl _, ha, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _, Std.le_refl _⟩

omit [Exponential R R] in
private theorem rounded_upwards {a : R} (ha : 0 ≤ a) (x : R) : Rounded a x (x * (1 + a)) :=
  ⟨a, ⟨by grind, Std.le_refl _⟩, rfl⟩

omit [Exponential R R] in
private theorem roundedTimes_up {a : R} (ha : 0 ≤ a) (k : Nat) (x : R) :
    RoundedTimes a k x (x * (1 + a) ^ k) := by
  induction k with
  | zero => rw [Semiring.pow_zero, Semiring.mul_one]; rfl
  | succ k ih =>
    refine ⟨_, ih, ?_⟩
    rw [Semiring.pow_succ, ← Semiring.mul_assoc]
    exact rounded_upwards ha _

omit [Exponential R R] in
private theorem above {η : R} (hη : 0 ≤ η) (y : R) : AtMost η (y + η - y) := ⟨by grind, by grind⟩

/-- One key of value 1 whose product and division are rounded up, and the result once more, which is
too large by η besides. -/
private theorem one_key {bound : Precision R → R → R → Nat → Nat → R → List (BoundedKey R) → R}
    (claim : StoredStaysAllowed bound) {a u η : R} (ha : 0 ≤ a) (ha' : 6 * a < 1) (hu : 0 ≤ u)
    (hη : 0 ≤ η) :
    AtMost (bound (numeratorOnly a) u η 0 0 0 [⟨some 0, 0, 1⟩])
      (1 * (1 + a) * (1 + a) ^ 5 * (1 + u) + η - 1) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have run : Run (numeratorOnly a) 0 ⟨[exactKey 0 1], 1, 1 * (1 + a), 0, 0⟩ :=
    .key (x := 0 - 0) (w' := 1) (by simp [exactKey]) (Std.le_refl _)
      (rounded_refl (Std.le_refl _) _) (by rw [exp_sub_self]; exact rounded_refl (Std.le_refl _) _)
      (Proof.stored_refl (Std.le_refl _) _)
      (by simpa [exactKey, Semiring.mul_one] using rounded_upwards ha 1)
  have e₆ : (numeral (0 + 6) : R) = 6 := by
    simp only [Proof.numeral_succ, Proof.numeral_eq]
    grind
  have e₀ : (numeral 0 : R) = 0 := rfl
  have h := claim _ (numeratorOnly_precise ha) 0 _ run [⟨some 0, #v[1]⟩] rfl
    ⟨exactKey 0 1, by simp, by simp [exactKey], rfl⟩ 0 (fun key hk s hs => by
      obtain rfl := List.mem_singleton.mp hk
      obtain rfl : 0 = s := Option.some.inj hs
      exact exactKey_close ..)
    0 0 (Nat.le_refl _) (Nat.le_refl _) nofun (by rw [e₆]; exact ha')
    (by rw [e₀, Semiring.mul_zero, Semiring.zero_mul]; exact h₀) _ (roundedTimes_up ha 5 _) u η
    _ ⟨_, rounded_upwards hu _, above hη _⟩ 0
  have e₁ : (attend [(⟨some 0, #v[1]⟩ : ScoredValue R R 1)])[0] = 1 := by
    rw [Proof.getElem_attend]
    simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
      sumOver_nil, exp_zero]
    show (1 * 1 + 0) / (1 + 0) = (1 : R)
    clear claim h
    grind
  rw [e₁] at h
  have e₂ : (1 * (1 + a)) / 1 * (1 + a) ^ 5 * (1 + u) = 1 * (1 + a) * (1 + a) ^ 5 * (1 + u) := by
    clear claim h
    grind
  simp only [e₂] at h
  exact h

/-- The tolerance of it: γ(6). -/
private theorem one_key_allowed (a : R) :
    tolerance (numeratorOnly a) 0 0 0 [⟨some 0, 0, 1⟩] = gamma 6 a ∧
      exactOutput (boundedWeights (numeratorOnly a) 0 [⟨some 0, 0, 1⟩]) = 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hw : boundedWeights (numeratorOnly a) 0 [⟨some 0, 0, 1⟩] = [⟨1, 1, 1⟩] := by
    have e₁ : (0 : R) + 0 * (0 - 0 + 0 + max 0 0) = 0 := by grind
    have e₂ : (1 : R) / 1 = 1 := by grind
    have e₃ : (1 : R) - 0 = 1 := by grind
    simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, rowMax, maxScore,
      largestError, List.foldl_cons, List.foldl_nil, numeratorOnly, e₁, e₃, exp_sub_self, exp_zero,
      Proof.power_eq, Semiring.one_pow, e₂]
  have e₂ : absolute ((1 : R) - 1) = 0 := by
    rw [absolute, OrderedField.max_def]
    split <;> grind
  have ho : exactOutput [(⟨1, 1, 1⟩ : BoundedWeight R)] = 1 := by
    simp only [exactOutput, sumOver_cons, sumOver_nil]
    grind
  have e₃ : smaller ((1 : R) * 1 / (1 / 1 + 0)) 1 = 1 := by
    have : (1 : R) * 1 / (1 / 1 + 0) = 1 := by grind
    rw [this, smaller, if_pos (Std.le_refl _)]
  have e₅ : ¬ (1 : R) ≤ 0 := by grind
  have e₆ : max (0 : R) 0 = 0 := by
    rw [OrderedField.max_def]
    split <;> rfl
  have e₇ : smaller (((1 : R) * (1 - 1) * 0 + 0) / (1 / 1 + 0)) (0 + (0 + 0)) = 0 := by
    rw [smaller]
    split <;> grind
  have e₉ : smaller (1 : R) 0 = 0 := by
    rw [smaller]
    split <;> grind
  have e₁₀ : smaller (smaller (0 + 0 : R) (0 + (0 + 0))) 1 = 0 := by
    rw [smaller, smaller]
    split <;> split <;> grind
  have e₈ : smaller ((1 : R) * 1 + 0) (0 + (0 + 0) + 1) = 1 := by
    rw [smaller]
    split <;> grind
  refine ⟨?_, by rw [hw, ho]⟩
  rw [tolerance, toleranceTerms, hw]
  simp only [ho, sumOver_cons, sumOver_nil, List.foldl_cons, List.foldl_nil, absolute_one, e₂,
    lowTotal, mostShare, e₃, gamma_zero, e₅, e₆, e₇, e₈, if_false, numeratorOnly, Nat.zero_add,
    storingError, tinyShare, Semiring.zero_mul, e₉, e₁₀]
  grind

omit [Exponential R R] in
private theorem gamma_six : gamma 6 (1 / 100 : R) = 6 / 94 := by
  have e : (numeral 6 : R) = 6 := by
    simp only [Proof.numeral_succ, Proof.numeral_eq]
    grind
  rw [gamma, e]
  grind

/-- A bound that has nothing for the format of the result. -/
@[expose] def resultNotCounted (p : Precision R) (_ _ : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  tolerance p roundings rescalings negligible row

theorem resultNotCounted_refuted : ¬ StoredStaysAllowed (R := R) resultNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (one_key claim (a := 1 / 100) (u := 1) (η := 0) (by grind) (by grind) (by grind)
    (Std.le_refl _)).2
  rw [resultNotCounted, (one_key_allowed _).1, gamma_six] at h
  clear claim
  grind

/-- A bound in which storing the result rounds the exact output, and not what was computed. -/
@[expose] def exactResultStored (p : Precision R) (u η : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  tolerance p roundings rescalings negligible row
    + u * absolute (exactOutput (boundedWeights p rescalings row)) + η

theorem exactResultStored_refuted :
    ¬ StoredStaysAllowed (R := R) exactResultStored := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (one_key claim (a := 1 / 100) (u := 1) (η := 0) (by grind) (by grind) (by grind)
    (Std.le_refl _)).2
  rw [exactResultStored, (one_key_allowed _).1, (one_key_allowed _).2, gamma_six, absolute_one] at h
  clear claim
  grind

/-- A bound in which no result is below the normal numbers of its format. -/
@[expose] def resultNotTiny (p : Precision R) (u _ : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  storedTolerance p u 0 roundings rescalings negligible row

theorem resultNotTiny_refuted : ¬ StoredStaysAllowed (R := R) resultNotTiny := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (one_key claim (a := 1 / 100) (u := 0) (η := 1) (by grind) (by grind) (by grind)
    (by grind)).2
  rw [resultNotTiny, storedTolerance, (one_key_allowed _).1, gamma_six] at h
  clear claim
  grind

end Attention.WrongVariants
