module

public import Attention.Model.Real.Logarithm
public import Attention.Proof.Derivative.Changes
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

/-- **lse-exists-dual**: so has every row of real scores that change: what the adjoints of the
log-sum-exp, of sinks and of dropout suppose, there is. -/
theorem exists_isLogSumExp_dual (row : List (Option (Dual Real))) :
    ∃ L, IsLogSumExp (Dual Real) L row :=
  let ⟨_, hL, _⟩ := exists_isLogSumExp (row.map primal)
  ⟨_, isLogSumExp_dual hL⟩

end Attention.Proof
