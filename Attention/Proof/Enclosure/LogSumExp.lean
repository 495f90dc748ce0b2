module

public import Attention.Model.LogSumExp
public import Attention.Proof.Enclosure.Basic
public import Attention.Proof.Softmax.LogSumExp

public section

/-! # The log-sum-exp, computed over intervals, contains the true one -/

namespace Attention.Proof

open Spec Model

universe u

variable {R : Type u} [OrderedField R] {p : Nat} {α : Type}

/-- **logsumexp-enclosed**: over scores that contain the true ones the log-sum-exp of intervals
contains the log-sum-exp, and is −∞ if and only if that is. -/
theorem logsumexp_enclosed [NaturalExp R] {keys : List α} {s' : α → Option (Interval p)}
    {s : α → Option R} (hs : ∀ k ∈ keys, ScoreContains (s' k) (s k)) {L : Option R}
    (hL : IsLogSumExp R L (keys.map s)) :
    ScoreContains (Interval.logSumExp (keys.map s')) L := by
  have hmasked : (keys.map s').all (·.isNone) = true ↔ IsLogSumExp R none (keys.map s) := by
    rw [List.all_map, List.all_eq_true, isLogSumExp_none, List.forall_mem_map]
    exact forall₂_congr fun k hk => (hs k hk).isNone_iff
  rw [Interval.logSumExp]
  cases L with
  | none => rw [if_pos (hmasked.mpr hL)]; trivial
  | some L =>
    rw [if_neg fun h => nomatch isLogSumExp_unique (hmasked.mp h) hL]
    exact contains_log_denominator hs hL

end Attention.Proof
