module

public import Attention.Spec.BackwardHeads
public import Attention.Spec.Slopes
public import Attention.WrongVariants.Backward

public section

/-! # Wrong variants of the backward pass of grouped-query attention -/

namespace Attention.WrongVariants

open Spec

attribute [local instance] floorExp

/-- A matrix of one number for each of four query heads. -/
abbrev QueryHeads : Type := Vector (Matrix Rat 1 1) (2 * 2)

/-- A matrix of one number for each of two heads of keys and values. -/
abbrev KvHeads : Type := Vector (Matrix Rat 1 1) 2

/-- A way to make the gradient of a shared head from those that its query heads have for it. -/
abbrev Combine : Type := (Fin (2 * 2) → Matrix Rat 1 1) → Fin 2 → Matrix Rat 1 1

/-- The rates of the outputs times the gradients by them, where only the values change. -/
@[expose] def valueRate (dO : QueryHeads) (V δV : KvHeads) : Rat :=
  let zeroQ : QueryHeads := Vec.ofFn fun _ => #v[#v[0]]
  let zeroK : KvHeads := Vec.ofFn fun _ => #v[#v[0]]
  let O := groupedQueryJvp 1 (fun _ => Mask.full.toScoreMod) zeroQ zeroQ zeroK zeroK V δV
  sumOver (fun h : Fin (2 * 2) => Matrix.inner dO[h] O[h]) (List.finRange (2 * 2))

/-- The rates of the values times the gradients by them. -/
@[expose] def combinedRate (combine : Combine) (dO : QueryHeads) (V δV : KvHeads) : Rat :=
  let each := fun h : Fin (2 * 2) =>
    vjp (1 : Rat) (Mask.full.toScoreMod : ScoreMod Rat 1 1) ScoreSlope.one #v[#v[0]] #v[#v[0]]
      V[kvHead h] (fun x => x) dO[h] Vec.zero
  sumOver (fun c : Fin 2 => Matrix.inner (combine (fun h => (each h).dV) c) δV[c])
    (List.finRange 2)

/-- The claim of `groupedQueryVjp_adjoint` where queries and keys are 0 and only the values change,
made of any way to combine the gradients of a group. -/
abbrev CombinesGroups (combine : Combine) : Prop :=
  ∀ (dO : QueryHeads) (V δV : KvHeads), combinedRate combine dO V δV = valueRate dO V δV

/-- Gradients 1, 2, 4 and 8 by the outputs. -/
@[expose] def powersOfTwo : QueryHeads := #v[#v[#v[1]], #v[#v[2]], #v[#v[4]], #v[#v[8]]]

/-- The first head changes. -/
@[expose] def firstHead : KvHeads := #v[#v[#v[1]], #v[#v[0]]]

/-- The right rate is 1 + 2: query heads 0 and 1 share the first head. -/
theorem CombinesGroups.firstHead {combine : Combine} (h : CombinesGroups combine) :
    combinedRate combine powersOfTwo firstHead firstHead = 3 :=
  (h ..).trans (by decide +kernel)

/-- Positive control: the sum over the group. -/
theorem sumMatrices_holds :
    combinedRate (fun X c => sumMatrices X (groupHeads 2 c)) powersOfTwo firstHead firstHead
      = 3 := by
  decide +kernel

/-- The sum over the group is dropped: one head's gradient for all. -/
theorem groupSumDropped_refuted :
    ¬ CombinesGroups fun X c => sumMatrices X ((groupHeads 2 c).take 1) :=
  fun h => absurd h.firstHead (by decide +kernel)

/-- The mean over the group for the sum. -/
theorem groupMean_refuted :
    ¬ CombinesGroups fun X c => Vec.map (Vec.map (· / 2)) (sumMatrices X (groupHeads 2 c)) :=
  fun h => absurd h.firstHead (by decide +kernel)

/-- Heads summed as if they had been repeated as a whole: query heads h with h % 2 = c. -/
theorem groupModulo_refuted : ¬ CombinesGroups fun X c =>
    sumMatrices X ((List.finRange (2 * 2)).filter fun h => h.val % 2 == c.val) :=
  fun h => absurd h.firstHead (by decide +kernel)

end Attention.WrongVariants
