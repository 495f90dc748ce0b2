module

public import Attention.Model.Exact
public import Attention.Proof.Softmax.Basic

public section

/-! # Wrong variants of softmax -/

namespace Attention.WrongVariants

open Spec

/-- Uniform weights on the unmasked keys, whatever the scores. -/
@[expose] def softmaxUniform (row : List (Option Int)) : List Rat :=
  row.map fun | none => 0 | some _ => 1 / sumOver (fun s => if s.isSome then 1 else 0) row

/-- It is shift-invariant, sums to 1 and is non-negative all the same. -/
theorem softmaxUniform_shift (c : Int) (row : List (Option Int)) :
    softmaxUniform (row.map (Option.map (· + c))) = softmaxUniform row := by
  simp only [softmaxUniform, sumOver_map, List.map_map]
  refine List.map_congr_left fun s _ => ?_
  cases s <;> simp [Function.comp]

theorem softmaxUniform_refuted : ¬ ∀ row : List (Option Int),
    ∀ x ∈ row.zip (softmaxUniform row), ∀ y ∈ row.zip (softmaxUniform row),
      x.2 * weight y.1 = y.2 * weight x.1 :=
  fun h => absurd (h [some 0, some 1] (some 0, 1/2) (by decide +kernel) (some 1, 1/2)
    (by decide +kernel)) (by decide +kernel)

/-- Masked keys count in the denominator as scores 0. -/
@[expose] def softmaxMaskedCounted (row : List (Option Int)) : List Rat :=
  let l : Rat := sumOver (fun s => exp (s.getD 0)) row
  row.map fun | none => 0 | some s => exp s / l

theorem softmaxMaskedCounted_refuted : ¬ ∀ row : List (Option Int), (∃ s, some s ∈ row) →
    sumOver (fun p => p) (softmaxMaskedCounted row) = 1 :=
  fun h => absurd (h [some 0, none] ⟨0, by simp⟩) (by decide +kernel)

/-- Scores over their sum, the exponential left out. -/
@[expose] def softmaxLinear (row : List (Option Int)) : List Rat :=
  row.map fun | none => 0 | some s => s / sumOver (fun s => ((s.getD 0 : Int) : Rat)) row

theorem softmaxLinear_nonneg_refuted : ¬ ∀ row, ∀ p ∈ softmaxLinear row, 0 ≤ p :=
  fun h => absurd (h [some 2, some (-1)] (-1) (by decide +kernel)) (by decide +kernel)

theorem softmaxLinear_shift_refuted : ¬ ∀ (c : Int) row,
    softmaxLinear (row.map (Option.map (· + c))) = softmaxLinear row :=
  fun h => absurd (h 1 [some 0, some 1]) (by decide +kernel)

/-- The maximum is subtracted in the numerator only. -/
@[expose] def safeSoftmaxNumeratorOnly (row : List (Option Int)) : List Rat :=
  row.map fun | none => 0 | some s => rescale (some s) (rowMax row) / denominator row

theorem safeSoftmaxNumeratorOnly_refuted : ¬ ∀ row,
    safeSoftmaxNumeratorOnly row = softmax row :=
  fun h => absurd (h [some 1]) (by decide +kernel)

end Attention.WrongVariants
