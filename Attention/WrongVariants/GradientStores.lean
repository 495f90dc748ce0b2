module

public import Attention.Proof.Rounding.TotalStores
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of gradients that are stored at the end

Bounds that do not count the last store, or what it loses below the normal numbers, or that it
rounds an error too, or that are 0 where more than nothing is known; a store that makes a number of
0, and one of the wrong gradient. Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- The claim of `rounded_gradientStore`, of any way to store and any bound. -/
abbrev LastStoresStay (stores : R → R → R → R → Prop := StoredBelow)
    (bound : R → R → R → R → R := storedGradientError) : Prop :=
  ∀ u η exact error z z' : R, AtMost error (z - exact) → stores u η z z' →
    AtMost (bound u η exact error) (z' - exact)

/-- Positive control: the store and the bound of the theorem. -/
theorem lastStores_stay : LastStoresStay (R := R) :=
  fun _ _ _ _ _ _ hz h => Proof.rounded_gradientStore hz h

private theorem last_exact (x : R) : AtMost (0 : R) (x - x) := ⟨by grind, by grind⟩

private theorem last_up : StoredBelow (1 / 2 : R) 0 1 (3 / 2) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨_, ⟨1 / 2, ⟨by grind, Std.le_refl _⟩, rfl⟩, ⟨by grind, by grind⟩, fun h => by grind⟩

/-- 1 where all numbers up to 1 are stored as up to 2. -/
private theorem last_below : StoredBelow (0 : R) 1 1 2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨1, rounded_refl (Std.le_refl _) 1, ⟨by grind, by grind⟩, fun h => by grind⟩

private theorem bound_of_one (u η error : R) (h : 0 ≤ error) :
    storedGradientError u η 1 error = error + u * (1 + error) + η := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [storedGradientError, absolute_one, if_neg (by grind)]

/-! ## Bounds -/

/-- A bound that does not count the last store. -/
@[expose] def lastStoreNotCounted (_ _ _ error : R) : R := error

theorem lastStoreNotCounted_refuted :
    ¬ LastStoresStay (R := R) (bound := lastStoreNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim (1 / 2) 0 1 0 1 (3 / 2) (last_exact 1) last_up).2
  rw [lastStoreNotCounted] at h
  clear claim
  grind

/-- A bound in which the last store loses nothing below the normal numbers. -/
@[expose] def lastStoreLosesNothing (u _ exact error : R) : R := storedGradientError u 0 exact error

theorem lastStoreLosesNothing_refuted :
    ¬ LastStoresStay (R := R) (bound := lastStoreLosesNothing) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim 0 1 1 0 1 2 (last_exact 1) last_below).2
  rw [lastStoreLosesNothing, bound_of_one _ _ _ (Std.le_refl _)] at h
  clear claim
  grind

/-- A bound in which the last store rounds the exact gradient, and not what is computed. -/
@[expose] def exactStored (u η exact error : R) : R :=
  if absolute exact + error ≤ 0 then 0 else error + u * absolute exact + η

theorem exactStored_refuted : ¬ LastStoresStay (R := R) (bound := exactStored) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim (1 / 2) 0 1 1 2 3 ⟨by grind, by grind⟩
    ⟨3, ⟨1 / 2, ⟨by grind, Std.le_refl _⟩, by grind⟩, ⟨by grind, by grind⟩, fun h => by grind⟩).2
  rw [exactStored, absolute_one, if_neg (by grind)] at h
  clear claim
  grind

/-- A bound that is 0 wherever the exact gradient is. -/
@[expose] def nothingWhereExact (u η exact error : R) : R :=
  if absolute exact ≤ 0 then 0 else storedGradientError u η exact error

theorem nothingWhereExact_refuted :
    ¬ LastStoresStay (R := R) (bound := nothingWhereExact) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e : absolute (0 : R) = 0 := by
    have h₁ := Proof.absolute_nonneg (0 : R)
    have h₂ := Proof.absolute_le (AtMost.zero (Std.le_refl (0 : R)))
    grind
  have h := (claim 0 0 0 1 1 1 ⟨by grind, by grind⟩ ⟨1, rounded_refl (Std.le_refl _) 1,
    ⟨by grind, by grind⟩, id⟩).2
  rw [nothingWhereExact, e, if_pos (Std.le_refl _)] at h
  clear claim
  grind

/-! ## Functions -/

/-- A store that makes the smallest number of the format of 0. -/
@[expose] def raisedZero (u η z z' : R) : Prop := ∃ y, Rounded u z y ∧ AtMost η (z' - y)

theorem raisedZero_refuted : ¬ LastStoresStay (R := R) raisedZero := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim 0 1 0 0 0 1 (last_exact 0) ⟨0, rounded_refl (Std.le_refl _) 0,
    ⟨by grind, by grind⟩⟩).2
  have e : absolute (0 : R) = 0 := by
    have h₁ := Proof.absolute_nonneg (0 : R)
    have h₂ := Proof.absolute_le (AtMost.zero (Std.le_refl (0 : R)))
    grind
  rw [storedGradientError, e, if_pos (by grind)] at h
  clear claim
  grind

/-- A gradient that is added to what was stored before it, as one that was not set to 0. -/
@[expose] def addedToStored (u η z z' : R) : Prop := StoredBelow u η (z + z) z'

theorem addedToStored_refuted : ¬ LastStoresStay (R := R) addedToStored := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim 0 0 1 0 1 2 (last_exact 1) ⟨2, ⟨0, .zero (Std.le_refl _), by grind⟩,
    ⟨by grind, by grind⟩, fun h => by grind⟩).2
  rw [bound_of_one _ _ _ (Std.le_refl _)] at h
  clear claim
  grind

/-! ## Heads that share a key -/

/-- The claim of `rounded_gradients_stored` about the sum over two heads, each of gradient 1 and
computed as such, for any sum and any bound. -/
abbrev SharedStay
    (computes : GradientPrecision R → R → Nat → (Fin 2 → R) → R → Prop := ComputedShared)
    (bound : GradientPrecision R → R → Nat → List (GradientTerm R) → R := sharedGradientError) :
    Prop :=
  ∀ (p : GradientPrecision R), PreciseGradient p → ∀ (tiny : R), 0 ≤ tiny → ∀ roundings : Nat,
    numeral roundings * p.accumulation < 1 → ∀ (z e : Fin 2 → R) (t : Fin 2 → GradientTerm R)
      (w : R), (∀ h, AtMost (t h).error (z h - e h) ∧ AtMost (t h).size (e h) ∧ (t h).other = 1) →
    computes p tiny roundings z w →
    AtMost (bound p tiny roundings ((List.finRange 2).map t)) (w - (e 0 + e 1))

/-- Positive control. -/
theorem shared_stay : SharedStay (R := R) := fun _ hp _ ht _ hc _ e _ _ h hw => by
  have h₁ := Proof.rounded_shared hp ht hc h hw
  have e₁ : sumOver e (List.finRange 2) = e 0 + e 1 := by
    show e 0 + (e 1 + 0) = _
    rw [Semiring.add_zero]
  rwa [e₁] at h₁

private def sharedPrecise (u : R) : GradientPrecision R :=
  ⟨0, 0, 0, 0, 0, 0, 0, u, 0, 0, 0, 0, 0, 0, 0, 1⟩

private theorem sharedPrecise_precise {u : R} (hu : 0 ≤ u) : PreciseGradient (sharedPrecise u) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, hu, Std.le_refl _, Std.le_refl _, Std.le_refl _,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _⟩

private theorem shared_count (n : Nat) : numeral n * (0 : R) < 1 := by
  rw [Semiring.mul_zero]
  exact OrderedRing.zero_lt_one

private def sharedOne : GradientTerm R := ⟨1, 0, 1⟩

private theorem sharedOne_holds : AtMost (sharedOne : GradientTerm R).error (1 - 1 : R) ∧
    AtMost (sharedOne : GradientTerm R).size (1 : R) ∧ (sharedOne : GradientTerm R).other = 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₂ : AtMost (1 : R) 1 := ⟨by grind, Std.le_refl _⟩
  exact ⟨last_exact 1, h₂, rfl⟩

/-- Two heads, each stored up. -/
private theorem shared_up : ComputedShared (n := 2) (sharedPrecise (1 / 2 : R)) 0 2 (fun _ => 1)
    3 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [ComputedShared, if_neg (by decide)]
  refine ⟨1, fun _ => 3 / 2, fun _ => 3 / 2, Nat.le_refl _, Nat.le_refl _, fun _ => last_up,
    fun _ => ⟨3 / 2, ⟨0, .zero (Std.le_refl _), by grind⟩, by
      show AtMost (0 : R) (3 / 2 - 3 / 2)
      exact ⟨by grind, by grind⟩, fun h => by grind⟩, ?_⟩
  have h : FlushedSum (0 : R) 0 (fun _ : Fin 2 => (3 / 2 : R)) 1 ([0] ++ [1]) (3 / 2 + 3 / 2) :=
    .add .one .one (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _)
  rwa [show (3 / 2 : R) + 3 / 2 = 3 by grind] at h

/-- A bound in which nothing is stored before the heads are added. -/
@[expose] def headsNotStored (p : GradientPrecision R) (_ : R) (roundings : Nat)
    (heads : List (GradientTerm R)) : R :=
  sharedGradientError { p with output := 0 } 0 roundings heads

theorem headsNotStored_refuted : ¬ SharedStay (R := R) (bound := headsNotStored) :=
    fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim (sharedPrecise (1 / 2)) (sharedPrecise_precise (by grind)) 0 (Std.le_refl _) 2
    (shared_count _) (fun _ => 1) (fun _ => 1) (fun _ => sharedOne) 3 (fun _ => sharedOne_holds)
    shared_up).2
  have e : headsNotStored (sharedPrecise (1 / 2 : R)) 0 2 ((List.finRange 2).map fun _ => sharedOne)
      = 0 := by
    show presentError 1 (totalError (0 : R) 0 0 0 2 [sharedOne, sharedOne]) [sharedOne, sharedOne]
      = 0
    rw [presentError]
    split
    · rfl
    · rw [totalError, gamma_zero]
      show (0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R)
        + ((0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R) + 0)
        + (1 + 0) * (0 * (absolute (1 : R) + (absolute 1 + 0)) + numeral 4 * 0) = 0
      grind
  rw [e] at h
  clear claim e
  grind

/-- One head alone, in place of the sum. -/
@[expose] def oneHead (_ : GradientPrecision R) (_ : R) (_ : Nat) (z : Fin 2 → R) (w : R) : Prop :=
  w = z 0

theorem oneHead_refuted : ¬ SharedStay (R := R) oneHead := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim (sharedPrecise 0) (sharedPrecise_precise (Std.le_refl _)) 0 (Std.le_refl _) 2
    (shared_count _) (fun _ => 1) (fun _ => 1) (fun _ => sharedOne) 1 (fun _ => sharedOne_holds)
    rfl).1
  have e : sharedGradientError (sharedPrecise (0 : R)) 0 2
      ((List.finRange 2).map fun _ => sharedOne) = 0 := by
    show presentError 1 (totalError (0 : R) 0 0 0 2 [sharedOne, sharedOne]) [sharedOne, sharedOne]
      = 0
    rw [presentError]
    split
    · rfl
    · rw [totalError, gamma_zero]
      show (0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R)
        + ((0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R) + 0)
        + (1 + 0) * (0 * (absolute (1 : R) + (absolute 1 + 0)) + numeral 4 * 0) = 0
      grind
  rw [e] at h
  clear claim e
  grind

/-! ## Products of which all are 0 -/

/-- The claim of `rounded_presentSumOver` about one product, for any bound. -/
abbrev PresentStay (bound : R → R → List (GradientTerm R) → R := presentError) : Prop :=
  ∀ (a ν : R) (roundings : Nat), 0 ≤ a → 0 ≤ ν → numeral roundings * a < 1 →
    ∀ (x y e z : R) (t : GradientTerm R),
    AtMost t.error (x - e) → AtMost t.size e → t.other = y →
    ComputedSumOver a ν roundings [()] (fun _ => x) (fun _ => y) z →
    AtMost (bound 1 (totalError a 0 ν 0 roundings [t]) [t]) (z - e * y)

/-- Positive control. -/
theorem present_stay : PresentStay (R := R) := fun _ _ _ ha hν hc _ y e _ t h₁ h₂ h₃ hz => by
  have h := Proof.rounded_presentSumOver ha hν hc (xs := [()]) (y := fun _ => y) (e := fun _ => e)
    (t := fun _ => t) (fun _ _ => ⟨h₁, h₂, h₃⟩) hz
  have e₁ : sumOver (fun _ : Unit => e * y) [()] = e * y := by
    show e * y + 0 = _
    rw [Semiring.add_zero]
  rwa [e₁] at h

/-- A bound that is 0 where all sizes are, though computed numbers may not be 0. -/
@[expose] def nothingBySizes (scale error : R) (terms : List (GradientTerm R)) : R :=
  if absolute scale * sumOver (fun t => t.size * absolute t.other) terms ≤ 0 then 0 else error

theorem nothingBySizes_refuted : ¬ PresentStay (R := R) nothingBySizes := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim 0 0 1 (Std.le_refl _) (Std.le_refl _) (shared_count _) 1 1 0 1 ⟨0, 1, 1⟩
    (show AtMost (1 : R) (1 - 0) from ⟨by grind, by grind⟩)
    (show AtMost (0 : R) 0 from .zero (Std.le_refl _)) rfl
    ⟨0, fun _ => 1, Nat.le_refl _, Nat.le_refl _, fun _ _ => ⟨1, ⟨0, .zero (Std.le_refl _),
      by grind⟩, ⟨by grind, by grind⟩, fun h => by grind⟩, .one⟩).2
  rw [nothingBySizes, if_pos (by
    show absolute (1 : R) * (0 * absolute (1 : R) + 0) ≤ 0
    grind)] at h
  clear claim
  grind

end Attention.WrongVariants
