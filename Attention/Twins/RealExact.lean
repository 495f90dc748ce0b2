module

public import Attention.Proof.RealExact

public section

/-! # Wrong twins of the passage from the exact model to the real numbers -/

namespace Attention.Twins

open Spec Model Lean.Grind Exponential

/-- The claim of `attend_real`, made of any way to take a score of the exact model for a real
one. -/
abbrev TakesToReal (convert : Int → Real) : Prop :=
  ∀ row : List (ScoredValue Int Rat 1),
    attend (row.map fun k => (⟨k.score.map convert, Vec.map Real.ofRat k.value⟩ :
      ScoredValue Real Real 1)) = Vec.map Real.ofRat (attend row)

/-- Positive control: multiplied by ln 2. -/
theorem realScore_takes : TakesToReal Proof.realScore := fun row => by
  have h := Proof.attend_real id row
  rwa [List.map_id] at h

/-- Two keys, of which one has score 1 and value 1. -/
@[expose] def oneOfTwo : List (ScoredValue Int Rat 1) := [⟨some 1, #v[1]⟩, ⟨some 0, #v[0]⟩]

/-- The scale is not multiplied by ln 2: the natural exponential of 1 is not 2. -/
theorem ofInt_refuted : ¬ TakesToReal Real.ofInt := fun claim => by
  have e : (attend oneOfTwo)[0] = 2 / 3 := by decide +kernel
  have h : (attend (oneOfTwo.map fun k => (⟨k.score.map Real.ofInt, Vec.map Real.ofRat k.value⟩ :
      ScoredValue Real Real 1)))[0] = Real.ofRat (2 / 3) := by
    rw [claim oneOfTwo, Vec.getElem_map, e]
  rw [Proof.getElem_attend_map] at h
  have e₁ : Real.ofInt 1 = 1 := rfl
  have e₀ : Real.ofInt 0 = 0 := rfl
  have v₁ : Real.ofRat 1 = 1 := rfl
  have v₀ : Real.ofRat 0 = 0 := rfl
  have two : Real.ofRat (2 / 3) = 2 / 3 := Real.ofRat_div 2 3
  simp only [oneOfTwo, denominator, weight, Proof.weightOver, List.map_cons, List.map_nil,
    Option.map_some, sumOver_cons, sumOver_nil, Vec.getElem_map, e₁, e₀, exp_zero, two] at h
  have h₁ := NaturalExp.one_add_le_exp (1 / 2 : Real)
  have h₂ := exp_add (R := Real) (1 / 2 : Real) (1 / 2)
  have e₂ : (1 / 2 + 1 / 2 : Real) = 1 := by grind
  rw [e₂] at h₂
  generalize (exp (1 / 2 : Real) : Real) = r at h₁ h₂
  have h₃ := OrderedRing.mul_nonneg (a := r - 3 / 2) (b := r + 3 / 2) (by grind) (by grind)
  have h₄ : 2 < (exp (1 : Real) : Real) := by grind
  generalize (exp (1 : Real) : Real) = a at h h₄
  have h₅ : a / (a + (1 + 0)) * Real.ofRat 1 + (1 / (a + (1 + 0)) * Real.ofRat 0 + 0) = 2 / 3 := h
  rw [v₁, v₀] at h₅
  grind

end Attention.Twins
