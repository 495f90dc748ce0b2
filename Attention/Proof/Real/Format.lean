module

public import Attention.Model.Real.Floor
public import Attention.Spec.Format
import Attention.Model.Real.Exact
import Attention.Proof.Rounding.Nearest

public section

/-! # Rounding fractions is rounding real numbers -/

namespace Attention.Proof

open Spec Model Model.Real Lean.Grind

attribute [local instance] Ring.intCast Semiring.natCast

private theorem ofRat_intCast (n : Int) : ofRat (n : Rat) = (n : Real) := (rfl)

private theorem ofRat_two_pow (n : Nat) :
    ofRat ((2 : Rat) ^ (n : Int)) = (2 : Real) ^ (n : Int) := by
  rw [two_zpow_natCast (R := Real)]
  exact congrArg ofRat (two_zpow_natCast (R := Rat) n)

private theorem ofRat_two_zpow (e : Int) : ofRat ((2 : Rat) ^ e) = (2 : Real) ^ e := by
  rcases Int.le_total 0 e with h | h
  · have := ofRat_two_pow e.toNat
    rwa [Int.toNat_of_nonneg h] at this
  · have h₁ := ofRat_two_pow (-e).toNat
    rw [Int.toNat_of_nonneg (by omega)] at h₁
    have h₂ : (2 : Rat) ^ e * 2 ^ (-e) = 1 := by
      rw [← two_zpow_add, Int.add_right_neg]
      exact Field.zpow_zero _
    have h₃ : (2 : Real) ^ e * 2 ^ (-e) = 1 := by
      rw [← two_zpow_add, Int.add_right_neg]
      exact Field.zpow_zero _
    have h₄ := congrArg ofRat h₂
    rw [ofRat_mul, h₁] at h₄
    have h₅ := two_zpow_pos (R := Real) (-e)
    have h₆ : ofRat 1 = 1 := rfl
    rw [h₆] at h₄
    grind

private theorem floor_ofRat (x : Rat) : Real.floor (ofRat x) = x.floor := by
  have ⟨h₁, h₂⟩ := isFloor_rat x
  refine Real.isFloor.eq_of (ofRat_le.mpr h₁) ?_
  have := ofRat_lt.mpr h₂
  rw [ofRat_add] at this
  exact this

private theorem absolute_ofRat (x : Rat) : absolute (ofRat x) = ofRat (absolute x) := by
  have e : (0 : Real) - ofRat x = ofRat (0 - x) := by rw [ofRat_sub]; rfl
  have h := ofRat_le (p := x) (q := 0 - x)
  simp only [absolute, OrderedField.max_def, e]
  split <;> split <;> first | rfl | (exfalso; grind)

private theorem nearest_ofRat (x : Rat) : nearest Real.floor (ofRat x) = nearest Rat.floor x := by
  have e : ofRat x - (x.floor : Real) + (ofRat x - (x.floor : Real))
      = ofRat (x - (x.floor : Rat) + (x - (x.floor : Rat))) := by
    rw [ofRat_add, ofRat_sub, ofRat_intCast]
  have h₁ := ofRat_le (p := x - (x.floor : Rat) + (x - (x.floor : Rat))) (q := 1)
  have h₂ := ofRat_le (p := 1) (q := x - (x.floor : Rat) + (x - (x.floor : Rat)))
  simp only [nearest, floor_ofRat, e]
  exact ite_congr (propext h₁) (fun _ => ite_congr (propext h₂) (fun _ => rfl) fun _ => rfl)
    fun _ => rfl

private theorem exponent_ofRat {x : Rat} (hx : 0 < x) :
    exponent Real.floor (ofRat x) = exponent Rat.floor x := by
  have ⟨h₁, h₂⟩ := exponent_spec isFloor_rat hx
  refine exponent_eq Real.isFloor ?_ ?_
  · rw [← ofRat_two_zpow]
    exact ofRat_le.mpr h₁
  · rw [← ofRat_two_zpow]
    exact ofRat_lt.mpr h₂

private theorem roundAt_ofRat (e : Int) (x : Rat) :
    roundAt Real.floor e (ofRat x) = ofRat (roundAt Rat.floor e x) := by
  rw [roundAt, roundAt, ofRat_mul, ofRat_two_zpow, ofRat_intCast, ← nearest_ofRat, ofRat_div,
    ofRat_two_zpow]

/-- **round-real**: a fraction, rounded to a format as a real number, is the fraction that it is
rounded to: what is computed is the rounding that the theorems over the real numbers speak of. -/
theorem round_ofRat (f : Format) (x : Rat) :
    f.round Real.floor (ofRat x) = ofRat (f.round Rat.floor x) := by
  have h : absolute (ofRat x) ≤ 0 ↔ absolute x ≤ 0 := by
    rw [absolute_ofRat]
    exact ofRat_le
  by_cases hx : absolute x ≤ 0
  · rw [Format.round, Format.round, if_pos (h.mpr hx), if_pos hx]
    rfl
  · rw [Format.round, Format.round, if_neg (fun h' => hx (h.mp h')), if_neg hx, roundAt_ofRat,
      Format.lastPlace, Format.lastPlace, absolute_ofRat, exponent_ofRat (by grind)]

end Attention.Proof
