module

public import Attention.Proof.Rounding.StoredGradients
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of gradients that are added up in a small format

Bounds that count no store, or one for all tiles, or nothing that a store loses, and a sum in which
a tile takes the place of those before it. Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n : Nat}

/-- The claim of `rounded_tiledGradient`, of any way to compute it and any bound. -/
abbrev StoredGradientsStay (n : Nat)
    (computes : GradientPrecision R → Nat → Nat → Nat → R → R → (Fin n → R) → (Fin n → R) → R →
      Prop := ComputedTiledGradient)
    (bound : GradientPrecision R → Nat → Nat → Nat → R → R → List (GradientTerm R) → R :=
      tiledGradientError) : Prop :=
  ∀ p : GradientPrecision R, PreciseGradient p → ∀ roundings stores tiles : Nat,
    numeral roundings * p.accumulation < 1 → numeral 3 * p.unit < 1 →
    ∀ (scale reach z : R) (x y e : Fin n → R) (t : Fin n → GradientTerm R), 1 ≤ reach →
    (∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j) →
    computes p roundings stores tiles scale reach x y z →
    AtMost (bound p roundings stores tiles scale reach ((List.finRange n).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange n))

/-- Positive control: the sums and the bound of the theorem. -/
theorem storedGradients_stay : StoredGradientsStay (R := R) n :=
  fun _ hp _ _ _ hc hu _ _ _ _ _ _ _ hg ht h => Proof.rounded_tiledGradient hp hc hu hg ht h

/-! ## One product -/

/-- Nothing is rounded, and nothing lost, but where it is stored in the format of the output. -/
private def outputOnly (u η : R) : GradientPrecision R :=
  ⟨0, 0, 0, 0, 0, 0, 0, u, 0, 0, 0, 0, 0, η, 0, 1⟩

private theorem outputOnly_precise {u η : R} (hu : 0 ≤ u) (hη : 0 ≤ η) :
    PreciseGradient (outputOnly u η) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, hu, Std.le_refl _, Std.le_refl _, Std.le_refl _,
    Std.le_refl _, Std.le_refl _, hη, Std.le_refl _, Std.le_refl _⟩

private theorem no_rounding (n : Nat) : numeral n * (0 : R) < 1 := by
  rw [Semiring.mul_zero]
  exact OrderedRing.zero_lt_one

/-- The number 1, exact. -/
private def one : GradientTerm R := ⟨1, 0, 1⟩

private theorem one_holds : AtMost (one : GradientTerm R).error (1 - 1 : R) ∧
    AtMost (one : GradientTerm R).size (1 : R) ∧ (one : GradientTerm R).other = 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ : AtMost (0 : R) (1 - 1) := ⟨by grind, by grind⟩
  have h₂ : AtMost (1 : R) 1 := ⟨by grind, Std.le_refl _⟩
  exact ⟨h₁, h₂, rfl⟩

private theorem same {u η : R} (x : R) (hu : 0 ≤ u) (hη : 0 ≤ η) : StoredBelow u η x x :=
  ⟨x, rounded_refl hu x, by rw [show x - x = 0 by grind]; exact .zero hη, id⟩

private theorem size_one : AtMost (1 : R) 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨by grind, Std.le_refl _⟩

/-- 1 · 1 in one tile, stored as often as `whole` says. -/
private theorem oneTile {tiles s : Nat} {u η whole : R} (hs : s ≤ 2 * tiles)
    (h : StoredSum (0 : R) 0 u η 0 tiles s [1] whole) :
    ComputedTiledGradient (n := 1) (outputOnly u η) 1 0 tiles 1 1 (fun _ => 1) (fun _ => 1)
      whole := by
  have e : (1 : R) * 1 = 1 := Semiring.mul_one 1
  refine ⟨[[0]], 0, 0, s, 0, 0, 0, 0, 0, 1, 1, 1, fun _ => 1, fun _ => 1, fun _ => 1, fun _ => 1,
    fun _ => 1, fun _ => 1, whole, .refl _, Nat.le_add_left 1 tiles, Nat.le_refl _, hs,
    Nat.le_refl _, Nat.le_refl _, Nat.zero_le _, by rw [e, e], by rw [e]; exact size_one, size_one,
    fun _ => e.symm, fun _ => rfl, fun _ => ?_, fun part hpart => ?_, fun _ _ => rfl,
    fun _ _ => e.symm, h, (Semiring.one_mul _).symm⟩
  · rw [e]
    exact same 1 (Std.le_refl _) (Std.le_refl _)
  · rw [List.mem_singleton.mp hpart]
    exact .one

private theorem up : StoredBelow (1 / 2 : R) 0 1 (3 / 2) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨_, ⟨1 / 2, ⟨by grind, Std.le_refl _⟩, rfl⟩, ⟨by grind, by grind⟩, fun h => by grind⟩

private theorem up_twice : StoredBelow (1 / 2 : R) 0 (3 / 2) (9 / 4) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨_, ⟨1 / 2, ⟨by grind, Std.le_refl _⟩, rfl⟩, ⟨by grind, by grind⟩, fun h => by grind⟩

private theorem up_below : StoredBelow (0 : R) (1 / 2) 1 (3 / 2) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨1, rounded_refl (Std.le_refl _) 1, ⟨by grind, by grind⟩, fun h => by grind⟩

private theorem half_nonneg : (0 : R) ≤ 1 / 2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

private theorem exactSum : (1 : R) * sumOver (fun _ : Fin 1 => (1 : R) * 1) (List.finRange 1)
    = 1 := by
  show (1 : R) * (1 * 1 + 0) = 1
  grind

/-- The bound of one product, with as many stores. -/
private theorem bound_one (u : R) (tiles : Nat) :
    tiledGradientError (outputOnly u 0) 1 0 tiles 1 1 ((List.finRange 1).map fun _ => one)
      = (1 + u) ^ tiles - 1 := by
  rw [tiledGradientError, show (outputOnly u 0).accumulation = 0 from rfl,
    show (outputOnly u 0).unit = 0 from rfl, gamma_zero, gamma_zero, Proof.power_eq,
    Proof.power_eq, show (outputOnly u 0).output = u from rfl, Semiring.pow_zero]
  show (absolute 1 : R) * ((0 + ((1 + 0) * (1 + 0) * 1 * (1 + u) ^ tiles - 1) * (1 + 0))
    * absolute 1 + 0) + (1 + ((1 + 0) * (1 + 0) * 1 * (1 + u) ^ tiles - 1)) * 1
    * ((numeral 3 * 0 + numeral 0 * 0) * (1 + 0 + 0 + numeral (tiles + 1))
      + (numeral (2 * 1 + tiles) * 0 + numeral (2 * tiles) * 0)) = _
  rw [absolute_one]
  generalize (1 + u) ^ tiles = x
  generalize (numeral (tiles + 1) : R) = y
  generalize (numeral (2 * tiles) : R) = z
  generalize (numeral (2 * 1 + tiles) : R) = w
  grind

/-! ## Bounds -/

/-- A bound in which no tile is stored. -/
@[expose] def tilesNotStored (p : GradientPrecision R) (roundings stores _ : Nat)
    (scale reach : R) (terms : List (GradientTerm R)) : R :=
  tiledGradientError p roundings stores 0 scale reach terms

theorem tilesNotStored_refuted :
    ¬ StoredGradientsStay (R := R) 1 (bound := tilesNotStored) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (outputOnly (1 / 2) 0) (outputOnly_precise half_nonneg (Std.le_refl _)) 1 0 1
    (no_rounding _) (no_rounding _) 1 1 (3 / 2) _ _ (fun _ => 1) (fun _ => one) (Std.le_refl _)
    (fun _ => one_holds) (oneTile (by decide) (.store .one up))
  rw [exactSum, tilesNotStored, bound_one, Semiring.pow_zero] at h
  have := h.2
  clear claim h
  grind

/-- A bound in which all tiles are stored once together. -/
@[expose] def tilesStoredOnce (p : GradientPrecision R) (roundings stores _ : Nat)
    (scale reach : R) (terms : List (GradientTerm R)) : R :=
  tiledGradientError p roundings stores 1 scale reach terms

theorem tilesStoredOnce_refuted :
    ¬ StoredGradientsStay (R := R) 1 (bound := tilesStoredOnce) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (outputOnly (1 / 2) 0) (outputOnly_precise half_nonneg (Std.le_refl _)) 1 0 2
    (no_rounding _) (no_rounding _) 1 1 (9 / 4) _ _ (fun _ => 1) (fun _ => one) (Std.le_refl _)
    (fun _ => one_holds) (oneTile (by decide) (.store (.store .one up) up_twice))
  rw [exactSum, tilesStoredOnce, bound_one, Semiring.pow_one] at h
  have := h.2
  clear claim h
  grind

/-- A bound in which nothing is lost where a tile is stored. -/
@[expose] def tilesLoseNothing (p : GradientPrecision R) (roundings stores tiles : Nat)
    (scale reach : R) (terms : List (GradientTerm R)) : R :=
  tiledGradientError { p with outputTiny := 0 } roundings stores tiles scale reach terms

theorem tilesLoseNothing_refuted :
    ¬ StoredGradientsStay (R := R) 1 (bound := tilesLoseNothing) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (outputOnly 0 (1 / 2)) (outputOnly_precise (Std.le_refl _) half_nonneg) 1 0 1
    (no_rounding _) (no_rounding _) 1 1 (3 / 2) _ _ (fun _ => 1) (fun _ => one) (Std.le_refl _)
    (fun _ => one_holds) (oneTile (by decide) (.store .one up_below))
  rw [exactSum, tilesLoseNothing,
    show ({ outputOnly (0 : R) (1 / 2) with outputTiny := 0 } : GradientPrecision R)
      = outputOnly 0 0 from rfl, bound_one, Semiring.pow_one] at h
  have := h.2
  clear claim h
  grind

/-! ## Sums -/

/-- The sum of a tile takes the place of the one stored before it; nothing is rounded. -/
@[expose] def lastTile (_ : GradientPrecision R) (_ _ _ : Nat) (scale _ : R) (x y : Fin 2 → R)
    (z : R) : Prop :=
  z = scale * (x 1 * y 1)

theorem lastTile_refuted : ¬ StoredGradientsStay (R := R) 2 lastTile := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (outputOnly 0 0) (outputOnly_precise (Std.le_refl _) (Std.le_refl _)) 1 0 2
    (no_rounding _) (no_rounding _) 1 1 (1 * (1 * 1)) (fun _ => 1) (fun _ => 1) (fun _ => 1)
    (fun _ => one) (Std.le_refl _) (fun _ => one_holds) rfl
  have e : tiledGradientError (outputOnly (0 : R) 0) 1 0 2 1 1 ((List.finRange 2).map fun _ => one)
      = 0 := by
    rw [tiledGradientError, show (outputOnly (0 : R) 0).accumulation = 0 from rfl,
      show (outputOnly (0 : R) 0).unit = 0 from rfl, gamma_zero, gamma_zero, Proof.power_eq,
      Proof.power_eq, show (outputOnly (0 : R) 0).output = 0 from rfl, Semiring.pow_zero,
      Semiring.pow_two]
    show absolute (1 : R) * ((0 + ((1 + 0) * (1 + 0) * 1 * ((1 + 0) * (1 + 0)) - 1) * (1 + 0))
      * absolute 1 + ((0 + ((1 + 0) * (1 + 0) * 1 * ((1 + 0) * (1 + 0)) - 1) * (1 + 0))
      * absolute 1 + 0)) + (1 + ((1 + 0) * (1 + 0) * 1 * ((1 + 0) * (1 + 0)) - 1)) * 1
      * ((numeral 3 * 0 + numeral 0 * 0) * (1 + 0 + (1 + 0 + 0) + numeral 3)
        + (numeral 4 * 0 + numeral 4 * 0)) = 0
    rw [absolute_one]
    generalize (numeral 3 : R) = y
    generalize (numeral 4 : R) = z
    grind
  rw [e] at h
  have h₁ : -(0 : R) ≤ 1 * (1 * 1) - 1 * (1 * 1 + (1 * 1 + 0)) := h.1
  clear claim h e
  grind

end Attention.WrongVariants
