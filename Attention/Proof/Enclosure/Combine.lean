module

public import Attention.Proof.Online.Combine
public import Attention.Proof.Enclosure.LogSumExp

public section

/-! # Splits, combined over intervals, contain what they combine to for numbers -/

namespace Attention.Proof

open Spec Model

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R] {p d : Nat} {α : Type}

/-- The weight of an enclosed score against an enclosed reference point is enclosed. -/
theorem contains_rescale {s' m' : Option (Interval p)} {s m : Option R} (hs : ScoreContains s' s)
    (hm : ScoreContains m' m) : (rescale s' m' : Interval p).Contains (rescale s m : R) := by
  cases s' <;> cases s
  · rw [rescale_none_left]
    exact contains_zero
  · cases hs
  · cases hs
  · cases m' <;> cases m
    · exact contains_zero
    · cases hm
    · cases hm
    · exact Interval.contains_exp (Interval.contains_sub hs hm)

/-- Over outputs, log-sum-exps and any L that contain the true ones, −∞ where those are −∞, what
intervals combine to contains what the true ones combine to. -/
theorem contains_combine {splits : List α} {part' : α → Partial (Interval p) (Interval p) d}
    {part : α → Partial R R d} (ho : ∀ x ∈ splits, VecContains (part' x).o (part x).o)
    (hlse : ∀ x ∈ splits, ScoreContains (part' x).lse (part x).lse) {L' : Option (Interval p)}
    {L : Option R} (hL : ScoreContains L' L) :
    VecContains (combine L' (splits.map part')) (combine L (splits.map part)) := by
  intro j hj
  simp only [combine, Vec.getElem_sumOver, Vec.getElem_smul, sumOver_map]
  exact related_sumOver fun x hx =>
    Interval.contains_mul (contains_rescale (hlse x hx) hL) (ho x hx j hj)

/-- **combine-enclosed**: over outputs and log-sum-exps that contain the true ones, −∞ where those
are −∞, the splits combined with intervals, by the log-sum-exp that intervals give, contain what the
true ones combine to by theirs. -/
theorem combine_enclosed {splits : List α} {part' : α → Partial (Interval p) (Interval p) d}
    {part : α → Partial R R d} (ho : ∀ x ∈ splits, VecContains (part' x).o (part x).o)
    (hlse : ∀ x ∈ splits, ScoreContains (part' x).lse (part x).lse) {L : Option R}
    (hL : IsLogSumExp R L (splits.map fun x => (part x).lse)) :
    VecContains
      (combine (Interval.logSumExp (splits.map fun x => (part' x).lse)) (splits.map part'))
      (combine L (splits.map part)) :=
  contains_combine ho hlse (logsumexp_enclosed hlse hL)

/-- If the outputs and log-sum-exps are those of splits of a row, the result contains the attention
of the row. -/
theorem combine_attention_enclosed {splits : List α}
    {part' : α → Partial (Interval p) (Interval p) d} {part : α → Partial R R d}
    {row : α → List (ScoredValue R R d)} (hrow : ∀ x ∈ splits, IsPartial (part x) (row x))
    (ho : ∀ x ∈ splits, VecContains (part' x).o (part x).o)
    (hlse : ∀ x ∈ splits, ScoreContains (part' x).lse (part x).lse) {L : Option R}
    (hL : IsLogSumExp R L (splits.map fun x => (part x).lse)) :
    VecContains
      (combine (Interval.logSumExp (splits.map fun x => (part' x).lse)) (splits.map part'))
      (attend (splits.flatMap row)) := by
  have h : combine L (splits.map part) = attend (splits.flatMap row) :=
    (combine_isPartial hrow hL).1
  rw [← h]
  exact combine_enclosed ho hlse hL

end Attention.Proof
