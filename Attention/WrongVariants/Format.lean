module

public import Attention.Model.Real.Floor
public import Attention.Proof.Rounding.Format

public section

/-! # Wrong variants of rounding to a format

Other ways to round, fractions to half precision, each with the theorem that it contradicts. -/

namespace Attention.WrongVariants

open Spec Lean.Grind

attribute [local instance] Ring.intCast

/-- A way to round. -/
abbrev Rounding := Rat → Rat

/-- The statement of `Proof.round_nearest`: no number of the format is nearer. -/
@[expose] def RoundsToNearest (round : Rounding) : Prop :=
  ∀ x y c, binary16.IsNumber y → AtMost c (y - x) → AtMost c (round x - x)

/-- The statement of `Proof.isNumber_round`: the result is a number of the format. -/
@[expose] def RoundsToNumber (round : Rounding) : Prop := ∀ x, binary16.IsNumber (round x)

/-- The statement of `Proof.round_even`: halfway between two multiples of the last place the even
one. -/
@[expose] def TiesToEven (round : Rounding) : Prop :=
  ∀ (x : Rat) (n : Int),
    x + x = ((2 * n + 1 : Int) : Rat) * (2 : Rat) ^ binary16.lastPlace Rat.floor x →
    ∃ k : Int, round x = ((2 * k : Int) : Rat) * (2 : Rat) ^ binary16.lastPlace Rat.floor x

/-- The statement of `Proof.round_neg`: rounding commutes with the sign. -/
@[expose] def CommutesWithSign (round : Rounding) : Prop := ∀ x, round (-x) = -round x

/-- The statement of `Proof.round_number`: a number of the format is left as it is. -/
@[expose] def KeepsNumbers (round : Rounding) : Prop := ∀ x, binary16.IsNumber x → round x = x

/-- It is proved of the rounding of the Spec. -/
theorem round_right : RoundsToNearest (binary16.round Rat.floor) ∧
    RoundsToNumber (binary16.round Rat.floor) ∧ TiesToEven (binary16.round Rat.floor) ∧
    CommutesWithSign (binary16.round Rat.floor) ∧ KeepsNumbers (binary16.round Rat.floor) := by
  have hf := Model.isFloor_rat
  exact ⟨fun _ _ _ => Proof.round_nearest hf (by decide), Proof.isNumber_round hf (by decide),
    fun _ _ => Proof.round_even hf, Proof.round_neg hf,
    fun _ => Proof.round_number hf (by decide)⟩

/-- The same with another integer in the place of the nearest one. -/
@[expose] def roundBy (integer : Rat → Int) : Rounding := fun x =>
  if absolute x ≤ 0 then 0
  else
    let e := binary16.lastPlace Rat.floor x
    (integer (x / 2 ^ e) : Rat) * 2 ^ e

/-- Halfway up. -/
@[expose] def halfUp : Rounding := roundBy fun x => (x + 1 / 2).floor

/-- −1 − 2^−11 is halfway between −1 and −1 − 2^−10; it goes up to −1, and its negative does not go
down to 1. -/
theorem halfUp_refuted : ¬ CommutesWithSign halfUp := fun h =>
  absurd (h (1 + 1 / 2048)) (by decide +kernel)

/-- Halfway away from 0, as is taught at school. -/
@[expose] def halfAway : Rounding := roundBy fun x =>
  if 0 ≤ x then (x + 1 / 2).floor else -(1 / 2 - x).floor

theorem halfAway_refuted : ¬ TiesToEven halfAway := fun h => by
  obtain ⟨k, hk⟩ := h (1 + 1 / 2048) 1024 (by decide +kernel)
  have e : halfAway (1 + 1 / 2048) = ((1025 : Int) : Rat) * 2 ^ (-10 : Int) := by decide +kernel
  have e₂ : binary16.lastPlace Rat.floor (1 + 1 / 2048) = -10 := by decide +kernel
  rw [e, e₂] at hk
  have h₁ := two_zpow_pos (R := Rat) (-10)
  have h₂ : ((1025 : Int) : Rat) = ((2 * k : Int) : Rat) := by grind
  have := Rat.intCast_inj.mp h₂
  omega

/-- Truncated: towards 0. -/
@[expose] def truncated : Rounding := roundBy fun x => if 0 ≤ x then x.floor else -(-x).floor

/-- 1 + 3 · 2^−12 is nearer to 1 + 2^−10 than to 1. -/
theorem truncated_refuted : ¬ RoundsToNearest truncated := fun h => by
  have h₁ := h (1 + 3 / 4096) (1 + 1 / 1024) (1 / 4096)
    ⟨1025, -10, by decide, by decide, by decide +kernel⟩ ⟨by decide +kernel, by decide +kernel⟩
  exact absurd h₁.1 (by decide +kernel)

/-- Without a least exponent 2^−30 is left as it is, which half precision does not have. -/
theorem roundBits_refuted : ¬ RoundsToNumber (roundBits Rat.floor 11) := fun h =>
  absurd (Proof.round_number Model.isFloor_rat (by decide) (h (1 / 2 ^ 30))) (by decide +kernel)

/-- Numbers below the normal ones are flushed to 0. -/
@[expose] def flushed : Rounding := fun x =>
  if absolute x < binary16.smallestNormal Rat then 0 else binary16.round Rat.floor x

/-- 2^−15 is a number of half precision. -/
theorem flushed_refuted : ¬ KeepsNumbers flushed := fun h =>
  absurd (h (1 / 2 ^ 15) ⟨1, -15, by decide, by decide, by decide +kernel⟩) (by decide +kernel)

end Attention.WrongVariants
