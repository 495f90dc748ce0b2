module

public import Attention.Proof.Online.Combine
public import Attention.WrongVariants.LogSumExp

public section

/-! # Wrong variants of combining splits -/

namespace Attention.WrongVariants

open Spec Spec.Online Lean.Grind

/-- A split's keys, and the log-sum-exp of their scores. -/
abbrev Split := List (ScoredValue Int Rat 1) × Option Int

/-- The right result of a split. -/
@[expose] def writes : Split → Partial Int Rat 1 := fun (row, lse) => ⟨attend row, lse⟩

/-- The claim of `combine_isPartial`, made of whatever a split writes and of however that is
combined. -/
abbrev CombinesSplits (writes : Split → Partial Int Rat 1)
    (combine : Option Int → List (Partial Int Rat 1) → Vec Rat 1) : Prop :=
  ∀ (splits : List Split) (L : Option Int),
    (∀ x ∈ splits, IsLogSumExp Rat x.2 (x.1.map (·.score))) →
    IsLogSumExp Rat L ((splits.map writes).map (·.lse)) →
    combine L (splits.map writes) = attend (splits.flatMap (·.1))

/-- Positive control. -/
theorem writes_combine : CombinesSplits writes combine := fun splits L h hL =>
  (Proof.combine_isPartial (part := writes) (row := (·.1)) (fun x hx => ⟨rfl, h x hx⟩)
    (by rwa [List.map_map] at hL)).1

/-- Splits with weights 4, 4 and 8, one without keys, and one with its only key masked. -/
@[expose] def emptySplits : List Split :=
  [([⟨some 1, #v[1]⟩, ⟨some 1, #v[2]⟩], some 2), ([], none), ([⟨some 2, #v[4]⟩], some 2),
   ([⟨none, #v[16]⟩], none), ([⟨some 3, #v[8]⟩], some 3)]

/-- The hypotheses of the claim can be met, and its conclusion is then a number: 43/8. -/
theorem emptySplits_combine :
    (∀ x ∈ emptySplits, IsLogSumExp Rat x.2 (x.1.map (·.score))) ∧
    IsLogSumExp Rat (some 4) ((emptySplits.map writes).map (·.lse)) ∧
    (combine (some 4) (emptySplits.map writes)).toList = [43 / 8] ∧
    (attend (emptySplits.flatMap (·.1))).toList = [43 / 8] := by
  decide +kernel

/-- One output that is not attention refutes the claim. -/
theorem CombinesSplits.refute {writes combine} (splits : List Split) (L : Option Int)
    (h : ∀ x ∈ splits, IsLogSumExp Rat x.2 (x.1.map (·.score)))
    (hL : IsLogSumExp Rat L ((splits.map writes).map (·.lse)))
    (hc : (combine L (splits.map writes)).toList ≠ (attend (splits.flatMap (·.1))).toList) :
    ¬ CombinesSplits writes combine :=
  fun claim => hc (congrArg Vector.toList (claim splits L h hL))

/-! ## Something else is written -/

/-- A split without keys writes a number for −∞ (in floating point +∞ or a finite constant). -/
@[expose] def writesFinite (floor : Int) : Split → Partial Int Rat 1 := fun (row, lse) =>
  ⟨attend row, some (lse.getD floor)⟩

/-- Whatever the number: there are scores that it spoils. -/
theorem writesFinite_refuted (floor : Int) : ¬ CombinesSplits (writesFinite floor) combine := by
  intro claim
  have h₁ : (exp (floor + 1) : Rat) = exp floor + exp floor := by
    have : (exp (1 : Int) : Rat) = 2 := by decide +kernel
    rw [Exponential.exp_add, this]
    grind
  have h₂ : (exp (floor - (floor + 1)) : Rat) = 1 / 2 := by
    have : floor - (floor + 1) = -1 := by omega
    rw [this]
    decide +kernel
  have h := claim [([⟨some floor, #v[1]⟩], some floor), ([], none)] (some (floor + 1)) (by
    simp only [List.mem_cons, forall_eq_or_imp, IsLogSumExp, denominator, weight, List.map_cons,
      List.map_nil, sumOver_cons, sumOver_nil, Semiring.add_zero]
    simp) (by
    simp only [IsLogSumExp, denominator, weight, writesFinite, h₁, List.map_cons, List.map_nil,
      sumOver_cons, sumOver_nil, Semiring.add_zero, Option.getD])
  have h := congrArg (·[0]) h
  simp only [combine, writesFinite, List.map_cons, List.map_nil, List.flatMap_cons,
    List.flatMap_nil, List.append_nil, Option.getD, Vec.getElem_sumOver, sumOver_cons, sumOver_nil,
    Vec.getElem_smul, Proof.getElem_attend, Proof.numerator, denominator, weight, rescale, h₂] at h
  have h₃ := Exponential.exp_ne_zero (R := Rat) floor
  simp at h
  grind

/-- The maximum is written for the log-sum-exp. -/
@[expose] def writesMax : Split → Partial Int Rat 1 := fun (row, _) =>
  ⟨attend row, rowMax (row.map (·.score))⟩

/-- Three keys with score 0, two of them in the first split. -/
@[expose] def unevenSplits : List Split :=
  [([⟨some 0, #v[1]⟩, ⟨some 0, #v[1]⟩], some 1), ([⟨some 0, #v[4]⟩], some 0)]

theorem writesMax_refuted : ¬ CombinesSplits writesMax combine :=
  CombinesSplits.refute unevenSplits (some 1) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-- The output is written before the division by `l`. -/
@[expose] def writesUndivided : Split → Partial Int Rat 1 := fun (row, lse) =>
  ⟨(ofBlock row).o, lse⟩

/-- Two splits of equal weight: two keys with score 0, and one with score 1. -/
@[expose] def evenSplits : List Split :=
  [([⟨some 0, #v[1]⟩, ⟨some 0, #v[1]⟩], some 1), ([⟨some 1, #v[4]⟩], some 1)]

theorem writesUndivided_refuted : ¬ CombinesSplits writesUndivided combine :=
  CombinesSplits.refute evenSplits (some 2) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-! ## It is combined otherwise -/

/-- Three splits; the last has the weight of the other two together. -/
@[expose] def unequalSplits : List Split :=
  [([⟨some 0, #v[1]⟩, ⟨some 0, #v[1]⟩, ⟨some 1, #v[1]⟩], some 2),
   ([⟨some 1, #v[4]⟩, ⟨some 1, #v[4]⟩], some 2), ([⟨some 3, #v[0]⟩], some 3)]

/-- The log-sum-exps are read in a base that they are not in: exp (lse − L) as 4 ^ (lse − L). -/
@[expose] def combineOtherBase (L : Option Int) (parts : List (Partial Int Rat 1)) : Vec Rat 1 :=
  Vec.sumOver (fun part => Vec.smul (@rescale Int Rat _ _ base4 part.lse L) part.o) parts

theorem combineOtherBase_refuted : ¬ CombinesSplits writes combineOtherBase :=
  CombinesSplits.refute unequalSplits (some 4) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-- The mean of the outputs, whatever the log-sum-exps. -/
@[expose] def combineMean (_ : Option Int) (parts : List (Partial Int Rat 1)) : Vec Rat 1 :=
  Vec.smul (1 / parts.length) (Vec.sumOver (·.o) parts)

theorem combineMean_refuted : ¬ CombinesSplits writes combineMean :=
  CombinesSplits.refute unequalSplits (some 4) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-- The weights are taken against the largest log-sum-exp, and not divided by their sum. -/
@[expose] def combineMax (_ : Option Int) (parts : List (Partial Int Rat 1)) : Vec Rat 1 :=
  combine (rowMax (parts.map (·.lse))) parts

theorem combineMax_refuted : ¬ CombinesSplits writes combineMax :=
  CombinesSplits.refute unequalSplits (some 4) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-- The outputs of the splits, weighted by the number of their unmasked keys. -/
@[expose] def combineByCount (splits : List (List (ScoredValue Int Rat 1))) : Vec Rat 1 :=
  let count (row : List (ScoredValue Int Rat 1)) : Rat :=
    sumOver (fun key => if key.score.isSome then 1 else 0) row
  Vec.sumOver (fun row => Vec.smul (count row / sumOver count splits) (attend row)) splits

/-- It is right where all scores are equal. -/
theorem combineByCount_equal : (combineByCount (unevenSplits.map (·.1))).toList
    = (attend (unevenSplits.flatMap (·.1))).toList := by
  decide +kernel

theorem combineByCount_refuted : ¬ ∀ splits : List (List (ScoredValue Int Rat 1)),
    combineByCount splits = attend splits.flatten :=
  fun h => absurd (congrArg Vector.toList (h (evenSplits.map (·.1)))) (by decide +kernel)

end Attention.WrongVariants
