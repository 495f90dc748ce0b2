module

public import Attention.Proof.Rounding.Dropout
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of dropout in a function that rounds

A function that does not divide the kept weights by 1 − q, and a bound that does not count the
roundings of the factor. Over every ordered field, for every exponential.
Source: docs/tolerances.md, "Dropout". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The claim of `rounded_dropout`, of any way to compute a value times its factor and of any
bound. -/
abbrev DropoutStays (computes : R → R → Bool → R → R → Prop := ComputedDropout)
    (bound : Precision R → R → Nat → Nat → R → List (BoundedKey R) → R := dropoutTolerance) :
    Prop :=
  ∀ p : Precision R, Precise p → ∀ (m : R) (part : Part R), Run p m part → ∀ q z : R, 0 ≤ q →
    q < 1 → 0 ≤ z → ∀ keys : List (DroppedKey R),
    (∀ k ∈ keys, dropoutFactor q k.keep ≤ z ∧
      computes p.accumulation q k.keep k.value k.used) →
    part.keys = keys.map (fun k => { k.toComputedKey with value := k.used }) →
    ∀ row : List (ScoredValue R R 1),
    keys.map (fun k => (k.score, dropoutFactor q k.keep * k.value))
      = row.map (fun k => (k.score, k.value[0])) →
    (∃ key ∈ keys, key.score ≠ none ∧ key.computed = m) → ∀ c : R,
    (∀ key ∈ keys, ∀ s, key.score = some s → AtMost key.error (key.computed - (s + c))) →
    ∀ roundings rescalings : Nat, part.rescalings ≤ rescalings →
    part.additions + part.rescalings ≤ roundings →
    (p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (keys.map fun k =>
        ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩)) ≤ 1) →
    (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1 →
    2 * numeral roundings * p.unit < 1 →
    ∀ o : R, RoundedTimes p.accumulation 5 (part.o / part.l) o → ∀ negligible : R,
    AtMost (bound p z roundings rescalings negligible
        (keys.map fun k => ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩))
      (o - (attend row)[0])

/-- Positive control: the functions and the bound of the theorem. -/
theorem computedDropout_stays : DropoutStays (R := R) :=
  fun _ hp _ _ run _ _ hq hq₁ hz _ factors computed _ same attained _ close _ _ hr ha third hN
      hD _ result =>
    Proof.rounded_dropout hp run hq hq₁ hz factors computed Nat.zero_lt_one same attained close hr
      ha third hN hD result

omit [Exponential R R] in
private theorem factor_half : dropoutFactor (1 / 2 : R) true = 2 := by
  show 1 / (1 - 1 / 2) = (2 : R)
  grind

private theorem attend_single (x : R) :
    (attend [(⟨some 0, #v[x]⟩ : ScoredValue R R 1)])[0] = x := by
  rw [Proof.getElem_attend]
  simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
    sumOver_nil, exp_zero]
  show (1 * x + 0) / (1 + 0) = x
  grind

/-- The claim for one key of value 1 that is kept, by a function that rounds nothing. -/
private theorem single {computes : R → R → Bool → R → R → Prop} (claim : DropoutStays computes)
    {y : R} (h : computes 0 (1 / 2) true 1 y) : y = 2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have run : Run (unitOnly 0) 0 (singlePart 0 y 1 y) :=
    (run_own (rules := rightRules) rfl (Std.le_refl 0) 0 y).run
  have e₁ : dropoutFactor (1 / 2 : R) true * 1 = 2 := by rw [factor_half, Semiring.mul_one]
  have h₁ := claim _ (unitOnly_precise (Std.le_refl 0)) 0 _ run (1 / 2) 2 (by grind) (by grind)
    (by grind) [⟨⟨⟨some 0, 0, 1⟩, 0⟩, true, y⟩] (fun k hk => by
      obtain rfl := List.mem_singleton.mp hk
      exact ⟨by rw [factor_half]; exact Std.le_refl _, h⟩) rfl [⟨some 0, #v[2]⟩] (by
      simp only [List.map_cons, List.map_nil, e₁]
      rfl) ⟨_, List.mem_singleton.mpr rfl, by simp, rfl⟩ 0 (fun key hk s hs => by
      obtain rfl := List.mem_singleton.mp hk
      obtain rfl : 0 = s := Option.some.inj hs
      exact exactKey_close 0 1) 0 0 (Nat.le_refl _) (Nat.le_refl _) nofun
    (by simp only [unitOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [unitOnly, Semiring.mul_zero]; exact h₀) _
    (roundedTimes_refl (Std.le_refl _) 5 _) 0
  have e₂ : moreRoundings (unitOnly 0 : Precision R) (0 + 6) (2 + numeral 5)
      = ⟨0, 0, 0, 0, 0, .unrounded⟩ := by
    simp only [moreRoundings, unitOnly, Precision.mk.injEq, and_true, true_and]
    rw [Semiring.zero_mul, Field.div_eq_mul_inv, Semiring.zero_mul]
  rw [dropoutTolerance, e₂, attend_single] at h₁
  obtain ⟨h₂, h₃⟩ := h₁.mono (Proof.tolerance_exact_le (fun key hk _ => by
    obtain ⟨key', hk', rfl⟩ := List.mem_map.mp hk
    obtain rfl := List.mem_singleton.mp hk'
    rfl) _ _ _)
  have e₃ : y / 1 - 2 = (0 : R) := Std.le_antisymm h₃ (by
    have : (-0 : R) ≤ y / 1 - 2 := h₂
    grind)
  clear claim h₁ h₂ h₃
  grind

/-- The weights that are kept are not divided by 1 − q. -/
@[expose] def keptAsTheyAre (_ _ : R) (keep : Bool) (v y : R) : Prop := y = if keep then v else 0

theorem keptAsTheyAre_refuted : ¬ DropoutStays (R := R) keptAsTheyAre := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := single claim (y := 1) rfl
  clear claim
  grind

/-! ## A bound -/

/-- A bound that does not count the roundings of the factor. -/
@[expose] def factorNotCounted (p : Precision R) (_ : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  tolerance p roundings rescalings negligible row

/-- The precision of a function that rounds its numerator only. -/
private def numeratorOnly (a : R) : Precision R := ⟨0, a, 0, 0, 0, .unrounded⟩

/-- One key of value 2 is allowed 2 γ(6). -/
private theorem one_key_allowed {a : R} (ha : 0 ≤ gamma 6 a) :
    tolerance (numeratorOnly a) 0 0 0 [(⟨some 0, 0, 2⟩ : BoundedKey R)] ≤ 2 * gamma 6 a := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hw : boundedWeights (numeratorOnly a) 0 [(⟨some 0, 0, 2⟩ : BoundedKey R)] = [⟨1, 1, 2⟩] := by
    have e₁ : (0 : R) + 0 * (0 - 0 + 0 + max 0 0) = 0 := by grind
    have e₂ : (1 : R) / 1 = 1 := by grind
    have e₃ : (1 : R) - 0 = 1 := by grind
    simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, rowMax, maxScore,
      largestError, List.foldl_cons, List.foldl_nil, numeratorOnly, e₁, e₃, exp_sub_self, exp_zero,
      Proof.power_eq, Semiring.one_pow, e₂]
  have smaller_le : ∀ x y : R, smaller x y ≤ x := fun x y => by
    rw [smaller]
    split
    · exact Std.le_refl _
    · grind
  have e₃ : smaller ((1 : R) * 1 / (1 / 1 + 0)) 1 = 1 := by
    rw [show (1 : R) * 1 / (1 / 1 + 0) = 1 by grind, smaller, if_pos (Std.le_refl _)]
  have e₄ : absolute (2 : R) = 2 := by
    rw [absolute, OrderedField.max_def]
    split <;> grind
  have three : ∀ x y z b : R, x ≤ 0 → y ≤ 0 → z ≤ b → x + y + z ≤ b := fun x y z b _ _ _ => by
    grind
  rw [tolerance, toleranceTerms, hw]
  have e₅ : smaller (1 : R) (max 0 0) = 0 := by
    rw [smaller, OrderedField.max_def]
    split <;> split <;> grind
  simp only [sumOver_cons, sumOver_nil, lowTotal, mostShare, tinyShare, storingError, e₃, e₄, e₅,
    gamma_zero, numeratorOnly, Nat.zero_add, Semiring.zero_mul]
  generalize hS : smaller (smaller (0 + 0 : R) _) _ = S
  have hS₀ : S ≤ 0 := hS ▸ Std.le_trans (smaller_le _ _) (Std.le_trans (smaller_le _ _) (by grind))
  clear hS
  refine three _ _ _ _ (Std.le_trans (smaller_le _ _) (by grind)) hS₀ ?_
  have sums : ∀ y : R, (gamma 6 a * (smaller (1 * 2 + 0) y + S) + 0) / (1 - 0) ≤ 2 * gamma 6 a :=
    fun y => by
      have h := OrderedRing.mul_le_mul_of_nonneg_left (smaller_le (1 * 2 + 0) y) ha
      have h' := OrderedRing.mul_le_mul_of_nonneg_left hS₀ ha
      generalize smaller (1 * 2 + 0) y = x at *
      rw [OrderedField.div_le_iff (by grind)]
      grind
  exact sums _

omit [Exponential R R] in
private theorem roundedTimes_up {a : R} (ha : 0 ≤ a) (k : Nat) (x : R) :
    RoundedTimes a k x (x * (1 + a) ^ k) := by
  induction k with
  | zero => rw [Semiring.pow_zero, Semiring.mul_one]; rfl
  | succ k ih =>
    refine ⟨_, ih, a, ⟨by grind, Std.le_refl _⟩, ?_⟩
    rw [Semiring.pow_succ, ← Semiring.mul_assoc]

theorem factorNotCounted_refuted :
    ¬ DropoutStays (R := R) ComputedDropout factorNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have ha : (0 : R) ≤ 1 / 100 := by grind
  have up : AtMost (1 / 100 : R) (1 / 100) := ⟨by grind, Std.le_refl _⟩
  have e₆ : (numeral 6 : R) = 6 := by
    simp only [Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  have e₅ : (numeral 5 : R) = 5 := by
    simp only [Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  have hγ : gamma 6 (1 / 100 : R) = 6 / 94 := by
    rw [gamma, e₆]
    grind
  have run : Run (numeratorOnly (1 / 100 : R)) 0 (singlePart 0 (1 / (1 / 2) * (1 + 1 / 100) ^ 4
      * 1 * (1 + 1 / 100)) 1 (1 * (1 / (1 / 2) * (1 + 1 / 100) ^ 4 * 1 * (1 + 1 / 100))
      * (1 + 1 / 100))) :=
    .key (x := 0 - 0) (w := 1) (w' := 1) (by simp [exactKey]) (Std.le_refl _)
      (rounded_refl (Std.le_refl _) _) (by rw [exp_sub_self]; exact rounded_refl (Std.le_refl _) _)
      (Proof.stored_refl (Std.le_refl _) _) ⟨1 / 100, up, rfl⟩
  have e₁ : dropoutFactor (1 / 2 : R) true * 1 = 2 := by rw [factor_half, Semiring.mul_one]
  have precise : Precise (numeratorOnly (1 / 100 : R)) :=
    ⟨Std.le_refl _, ha, Std.le_refl _, h₀, Std.le_refl _, Std.le_refl _⟩
  have h₁ := claim _ precise 0 _ run (1 / 2) 2 (by grind) (by grind) (by grind)
    [⟨⟨⟨some 0, 0, 1⟩, 0⟩, true, _⟩] (fun k hk => by
      obtain rfl := List.mem_singleton.mp hk
      refine ⟨by rw [factor_half]; exact Std.le_refl _, 1 / 2, 1 / 2, _, rounded_refl ha _, ?_,
        roundedTimes_up ha 4 _, 1 / 100, up, rfl⟩
      have e : (1 : R) - 1 / 2 = 1 / 2 := by grind
      rw [e]
      exact rounded_refl ha _) rfl [⟨some 0, #v[2]⟩] (by
      simp only [List.map_cons, List.map_nil, e₁]
      rfl) ⟨_, List.mem_singleton.mpr rfl, by simp, rfl⟩ 0 (fun key hk s hs => by
      obtain rfl := List.mem_singleton.mp hk
      obtain rfl : 0 = s := Option.some.inj hs
      exact exactKey_close 0 1) 0 0 (Nat.le_refl _) (Nat.le_refl _) nofun
    (by
      show (numeral 6 + (2 + numeral 5)) * (1 / 100) < (1 : R)
      rw [e₆, e₅]
      grind)
    (by simp only [numeratorOnly, Semiring.mul_zero]; exact h₀) _
    (roundedTimes_up ha 5 _) 0
  simp only [List.map_cons, List.map_nil, e₁] at h₁
  have h₂ := (h₁.mono (one_key_allowed (by rw [hγ]; grind))).2
  rw [attend_single, hγ] at h₂
  simp only [singlePart] at h₂
  clear claim h₁ run
  grind

end Attention.WrongVariants
