module

public import Attention.Proof.Online.Merge
public import Attention.Proof.Rounding.Rows
public import Attention.Spec.UnderflowTolerance
public import Attention.Spec.WeightTolerance

public section

/-! # Of a row neither order nor values matter to its log-sum-exp

The runs of a forward pass over the keys of a query, one for each component of the output and one
for the log-sum-exp, see them in any order and with values of their own. What the tolerance of a
log-sum-exp takes of the row is the same for all of them.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

omit [Exponential R R] in
private theorem max_right_comm (a b c : R) : max (max a b) c = max (max a c) b := by
  simp only [OrderedField.max_def]
  grind

/-- Two rows have the same scores with the same errors, in any order. -/
@[expose] def SameScores (row row' : List (BoundedKey R)) : Prop :=
  (row.map fun k => (k.score, k.error)).Perm (row'.map fun k => (k.score, k.error))

variable {row row' : List (BoundedKey R)}

omit [Exponential R R] in
theorem SameScores.rowMax (h : SameScores row row') :
    rowMax (row.map (·.score)) = Spec.rowMax (row'.map (·.score)) := by
  have := rowMax_perm (h.map (·.1))
  rwa [List.map_map, List.map_map] at this

omit [Exponential R R] in
/-- Which is the largest error. -/
theorem SameScores.largestError (h : SameScores row row') :
    largestError row = Spec.largestError row' := by
  have e : ∀ row : List (BoundedKey R), Spec.largestError row
      = (row.map fun k => (k.score, k.error)).foldl (fun δ k => match k.1 with
        | none => δ
        | some _ => max δ k.2) 0 := fun row => by
    rw [List.foldl_map]
    rfl
  rw [e, e]
  refine List.Perm.foldl_eq' h (fun x _ y _ δ => ?_) 0
  obtain ⟨_ | s, a⟩ := x <;> obtain ⟨_ | t, b⟩ := y <;> simp only
  exact max_right_comm δ a b

/-! ## Weights -/

/-- A weight without its value. -/
private def bare (k : BoundedWeight R) : R × R := (k.weight, k.factor)

omit [Exponential R R] in
private theorem sum_bare {keys keys' : List (BoundedWeight R)}
    (h : (keys.map bare).Perm (keys'.map bare)) (f : R × R → R) :
    sumOver (fun k => f (bare k)) keys = sumOver (fun k => f (bare k)) keys' := by
  have e := sumOver_perm f h
  rwa [sumOver_map, sumOver_map] at e

private theorem SameScores.weights (h : SameScores row row') (p : Precision R) (rescalings : Nat) :
    ((boundedWeights p rescalings row).map bare).Perm
      ((boundedWeights p rescalings row').map bare) := by
  have e : ∀ row : List (BoundedKey R), (boundedWeights p rescalings row).map bare
      = (row.map fun k => (k.score, k.error)).map fun k => bare (boundedWeight p rescalings
        (Spec.rowMax (row.map (·.score))) (Spec.largestError row) ⟨k.1, k.2, 0⟩) := fun row => by
    rw [boundedWeights, List.map_map, List.map_map]
    refine List.map_congr_left fun k _ => ?_
    show bare (boundedWeight p rescalings _ _ k) = bare (boundedWeight p rescalings _ _ _)
    simp only [boundedWeight]
    split <;> rfl
  rw [e, e, h.rowMax, h.largestError]
  exact h.map _

omit [Exponential R R] in
private theorem lowTotal_bare {keys keys' : List (BoundedWeight R)}
    (h : (keys.map bare).Perm (keys'.map bare)) : lowTotal keys = lowTotal keys' :=
  sum_bare h fun k => k.1 / k.2

omit [Exponential R R] in
private theorem tinyShare_bare {keys keys' : List (BoundedWeight R)}
    (h : (keys.map bare).Perm (keys'.map bare)) (p : Precision R) (rescalings : Nat) :
    tinyShare p rescalings keys = tinyShare p rescalings keys' := by
  have e : ∀ keys : List (BoundedWeight R), keys.foldl (fun x k => max x (k.weight * k.factor)) 0
      = (keys.map bare).foldl (fun x k => max x (k.1 * k.2)) 0 := fun keys => by
    rw [List.foldl_map]
    rfl
  rw [tinyShare, tinyShare, lowTotal_bare h, e, e,
    List.Perm.foldl_eq' h (fun x _ y _ z => max_right_comm z (x.1 * x.2) (y.1 * y.2)) 0]

omit [Exponential R R] in
private theorem storingErrors_bare {keys keys' : List (BoundedWeight R)}
    (h : (keys.map bare).Perm (keys'.map bare)) (p : Precision R) (rescalings : Nat) :
    storingErrors p rescalings keys = storingErrors p rescalings keys' := by
  have h₁ := sum_bare h fun k => storingError p (tinyShare p rescalings keys')
    (smaller (k.1 * k.2 / lowTotal keys') 1)
  have h₂ := sum_bare h fun k => smaller (smaller (k.1 * k.2 / lowTotal keys') 1)
    (tinyShare p rescalings keys')
  simp only [bare] at h₁ h₂
  simp only [storingErrors, lowTotal_bare h, tinyShare_bare h, mostShare, h₁, h₂]

/-! ## What a log-sum-exp's tolerance takes of a row -/

/-- What is left of a denominator. -/
theorem SameScores.left (h : SameScores row row') (p : Precision R) (ν : R)
    (roundings rescalings : Nat) :
    underflowLeft p ν roundings rescalings row = underflowLeft p ν roundings rescalings row' := by
  have hw := h.weights p rescalings
  have keys : sumOver (fun k : BoundedKey R => match k.score with
        | none => 0
        | some _ => numeral (rescalings + 6) * underflowShare p ν rescalings
          (boundedWeights p rescalings row')) row
      = sumOver (fun k => match k.score with
        | none => 0
        | some _ => numeral (rescalings + 6) * underflowShare p ν rescalings
          (boundedWeights p rescalings row')) row' := by
    have e := sumOver_perm (fun k : Option R × R => match k.1 with
      | none => 0
      | some _ => numeral (rescalings + 6) * underflowShare p ν rescalings
        (boundedWeights p rescalings row')) h
    rwa [sumOver_map, sumOver_map] at e
  have share : underflowShare p ν rescalings (boundedWeights p rescalings row)
      = underflowShare p ν rescalings (boundedWeights p rescalings row') := tinyShare_bare hw _ _
  have cost : underflowCost p ν rescalings row (fun _ => 1)
      = underflowCost p ν rescalings row' fun _ => 1 := by
    have e := sum_bare hw fun k => lostShare rescalings
      (lowTotal (boundedWeights p rescalings row')) (underflowShare p ν rescalings
        (boundedWeights p rescalings row')) ⟨k.1, k.2, 0⟩ * 1
    simp only [underflowCost, share, lowTotal_bare hw]
    exact congr (congrArg HAdd.hAdd e) keys
  have denominators : denominatorError p roundings rescalings (boundedWeights p rescalings row)
      = denominatorError p roundings rescalings (boundedWeights p rescalings row') := by
    simp only [denominatorError, storingErrors_bare hw]
  rw [underflowLeft, underflowLeft, cost, denominators]

/-- By which factor the sum of the exponentials may be off. -/
theorem SameScores.logSumExpFactor (h : SameScores row row') (p : Precision R) (ν : R)
    (roundings rescalings : Nat) :
    underflowLogSumExpFactor p ν roundings rescalings row
      = underflowLogSumExpFactor p ν roundings rescalings row' := by
  have hw := h.weights p rescalings
  have h₁ := sum_bare hw fun k => k.1 * k.2
  have h₂ := sum_bare hw fun k => k.1
  simp only [bare] at h₁ h₂
  simp only [underflowLogSumExpFactor, h.left, h₁, h₂]

end Attention.Proof
