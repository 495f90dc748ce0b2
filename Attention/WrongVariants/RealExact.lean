module

public import Attention.Proof.Real.Backward
public import Attention.Proof.Real.States

public section

/-! # Wrong variants of the passage from the exact model to the real numbers -/

namespace Attention.WrongVariants

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

private theorem two_lt_exp_one : 2 < (exp (1 : Real) : Real) := by
  have h₁ := NaturalExp.one_add_le_exp (1 / 2 : Real)
  have h₂ := exp_add (R := Real) (1 / 2 : Real) (1 / 2)
  have e : (1 / 2 + 1 / 2 : Real) = 1 := by grind
  rw [e] at h₂
  generalize (exp (1 / 2 : Real) : Real) = r at h₁ h₂
  have h₃ := OrderedRing.mul_nonneg (a := r - 3 / 2) (b := r + 3 / 2) (by grind) (by grind)
  grind

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
  have h₄ := two_lt_exp_one
  generalize (exp (1 : Real) : Real) = a at h h₄
  have h₅ : a / (a + (1 + 0)) * Real.ofRat 1 + (1 / (a + (1 + 0)) * Real.ofRat 0 + 0) = 2 / 3 := h
  rw [v₁, v₀] at h₅
  grind

/-! ## Gradients -/

/-- The claim of `vjp_real` about the gradients by the queries, made of any factor. -/
abbrev TakesGradients (factor : Real) : Prop :=
  ∀ (scale : Int) (Q : Matrix Int 1 1) (K : Matrix Int 2 1) (V : Matrix Rat 2 1)
    (dO : Matrix Rat 1 1) (dLse : Vec Rat 1),
    (vjp (Real.ofInt scale * Real.log 2) (Mask.toScoreMod Mask.full) ScoreSlope.one
      (Vec.map (Vec.map Real.ofInt) Q) (Vec.map (Vec.map Real.ofInt) K)
      (Vec.map (Vec.map Real.ofRat) V) id (Vec.map (Vec.map Real.ofRat) dO)
      (Vec.map Real.ofRat dLse)).dQ
      = Vec.map (Vec.map fun x => Real.ofRat x * factor) (vjp scale (Mask.toScoreMod Mask.full)
        ScoreSlope.one Q K V (fun s : Int => (s : Rat)) dO dLse).dQ

/-- Positive control: multiplied by ln 2. -/
theorem log2_takesGradients : TakesGradients (Real.log 2) := fun scale Q K V dO dLse =>
  (Proof.vjp_real scale (Proof.related_mask Mask.full) Proof.related_slope_one Q K V dO
    dLse).1

/-- Taken over as they are: ln 2 is not 1. -/
theorem one_takesGradients_refuted : ¬ TakesGradients 1 := fun claim => by
  have h := (log2_takesGradients 1 #v[#v[1]] #v[#v[1], #v[0]] #v[#v[1], #v[0]] #v[#v[1]] #v[0]).symm
    |>.trans (claim 1 #v[#v[1]] #v[#v[1], #v[0]] #v[#v[1], #v[0]] #v[#v[1]] #v[0])
  have e : (vjp (1 : Int) (Mask.toScoreMod Mask.full) ScoreSlope.one #v[#v[1]] #v[#v[1], #v[0]]
      #v[#v[1], #v[0]] (fun s : Int => (s : Rat)) #v[#v[1]] #v[0]).dQ[0][0] = 2 / 9 := by
    decide +kernel
  have h₀ := congrArg (fun A : Matrix Real 1 1 => A[0][0]) h
  simp only [Vec.getElem_map, e] at h₀
  have h₁ : (exp (Real.log 2) : Real) = 2 := Real.exp_log (by
    have := OrderedRing.zero_lt_one (R := Real)
    grind)
  have h₂ : Real.ofRat (2 / 9) ≠ 0 := fun h₃ =>
    absurd (Real.ofRat_inj.mp (h₃.trans Real.zero_eq)) (by decide +kernel)
  have h₄ : Real.log 2 = 1 := by grind
  rw [h₄] at h₁
  have := two_lt_exp_one
  grind

/-! ## States -/

/-- The claim of `edits_real` about the reference point, made of any way to take it. -/
abbrev TakesReferencePoint (convert : Int → Real) : Prop :=
  ∀ edits : List (Online.Edit Int Rat 1),
    ((edits.map Proof.realEdit).foldl Online.edit ([], Proof.realState Online.empty)).2.m
      = (edits.foldl Online.edit ([], Online.empty)).2.m.map convert

/-- Positive control: multiplied by ln 2. -/
theorem realScore_takesReferencePoint : TakesReferencePoint Proof.realScore := fun edits =>
  congrArg (fun c => c.2.m) (Proof.edits_real [] Online.empty edits)

/-- As it is: a key of score 1 has the reference point ln 2. -/
theorem ofInt_takesReferencePoint_refuted : ¬ TakesReferencePoint Real.ofInt := fun claim => by
  have h := (realScore_takesReferencePoint [.append ⟨some 1, #v[0]⟩]).symm.trans
    (claim [.append ⟨some 1, #v[0]⟩])
  have h : some (Proof.realScore 1) = some (Real.ofInt 1) := h
  have h₁ := Real.exp_mul_log_two 1
  rw [show Real.ofInt 1 * Real.log 2 = Real.ofInt 1 from Option.some.inj h,
    show (exp (1 : Int) : Rat) = 2 by decide +kernel] at h₁
  have h₂ : (exp (1 : Real) : Real) = 2 := h₁
  have := two_lt_exp_one
  rw [h₂] at this
  grind

end Attention.WrongVariants
