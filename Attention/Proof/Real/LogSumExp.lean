module

public import Attention.Model.Real.Logarithm
public import Attention.Proof.Softmax.LogSumExp

public section

/-! # Over the real numbers every row has a log-sum-exp -/

namespace Attention.Proof

open Spec Model

/-- **lse-exists**: over the real numbers every row of scores has one log-sum-exp, and no other. -/
theorem exists_isLogSumExp (row : List (Option Real)) :
    ∃ L, IsLogSumExp Real L row ∧ ∀ L', IsLogSumExp Real L' row → L' = L := by
  have h : ∃ L, IsLogSumExp Real L row := by
    by_cases hrow : ∃ s, some s ∈ row
    · obtain ⟨s, hs⟩ := hrow
      obtain ⟨L, hL⟩ := Real.exists_log (denominator_pos hs)
      exact ⟨some L, hL⟩
    · refine ⟨none, isLogSumExp_none.mpr fun s hs => ?_⟩
      cases s with
      | none => rfl
      | some s => exact absurd ⟨s, hs⟩ hrow
  obtain ⟨L, hL⟩ := h
  exact ⟨L, hL, fun L' hL' => isLogSumExp_unique hL' hL⟩

end Attention.Proof
