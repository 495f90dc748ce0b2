module

public import Attention.Model.Exact
public import Attention.Proof.Online.Merge
public import Attention.WrongVariants.Online

public section

/-! # Wrong variants of merging -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- A state of the exact model, its values of one component. -/
abbrev ExactState := State Int Rat 1

/-- Of states that are not well formed, the identity law is false: merging forgets an `l` that
belongs to no key. -/
theorem merge_empty_raw_refuted : ¬ ∀ s : ExactState, merge s empty = s :=
  fun h => absurd (congrArg State.l (h ⟨none, 1, #v[0]⟩)) (by decide +kernel)

/-- A merge that keeps the first state's maximum is associative but depends on the order. -/
theorem mergeKeepsLeft_comm_refuted :
    ¬ ∀ a b : ExactState, mergeKeepsLeft a b = mergeKeepsLeft b a :=
  fun h => absurd (congrArg State.m (h ⟨some 0, 1, #v[0]⟩ ⟨some 1, 1, #v[0]⟩)) (by decide +kernel)

/-- A merge of divided states by their mean, whatever their denominators. -/
@[expose] def mergeMean (a b : ExactState) : ExactState :=
  ⟨maxScore a.m b.m, 1, Vec.smul (1 / 2) (Vec.add a.o b.o)⟩

/-- It does not depend on the order. -/
theorem mergeMean_comm (a b : ExactState) : mergeMean a b = mergeMean b a := by
  simp only [mergeMean, Proof.maxScore_comm b.m]
  congr 2
  exact Vector.ext fun j hj => by simp [Rat.add_comm]

theorem mergeMean_assoc_refuted :
    ¬ ∀ a b c : ExactState, mergeMean (mergeMean a b) c = mergeMean a (mergeMean b c) :=
  fun h => absurd (congrArg (·.o.toList)
    (h ⟨some 0, 1, #v[1]⟩ ⟨some 0, 1, #v[0]⟩ ⟨some 0, 1, #v[0]⟩)) (by decide +kernel)

/-- The tree evaluated with another merge. -/
@[expose] def evalWith (merge : ExactState → ExactState → ExactState) :
    MergeTree Int Rat 1 → ExactState
  | .leaf block => ofBlock block
  | .node left right => merge (evalWith merge left) (evalWith merge right)

/-- Positive control: with the right merge `evalWith` is `eval`. -/
theorem evalWith_merge (tree : MergeTree Int Rat 1) : evalWith merge tree = tree.eval := by
  induction tree with
  | leaf block => rfl
  | node left right hl hr => rw [evalWith, hl, hr, MergeTree.eval]

/-- The claim of `finish_eval`, made of any merge. -/
abbrev ComputesAttentionOnTrees (merge : ExactState → ExactState → ExactState) : Prop :=
  ∀ (tree : MergeTree Int Rat 1) (row : List (ScoredValue Int Rat 1)), row.Perm tree.keys →
    finish (evalWith merge tree) = attend row

/-- One output that is not attention refutes the claim. -/
theorem ComputesAttentionOnTrees.refute {merge} (tree : MergeTree Int Rat 1)
    (h : (finish (evalWith merge tree)).toList ≠ (attend tree.keys).toList) :
    ¬ ComputesAttentionOnTrees merge :=
  fun claim => h (congrArg Vector.toList (claim tree tree.keys (.refl _)))

/-- Three blocks of one key each; the scores rise from left to right. -/
@[expose] def risingLeaves : MergeTree Int Rat 1 :=
  .node (.node (.leaf [⟨some 0, #v[1]⟩]) (.leaf [⟨some 1, #v[0]⟩])) (.leaf [⟨some 2, #v[0]⟩])

/-- The same blocks, with the largest score first. -/
@[expose] def largestFirst : MergeTree Int Rat 1 :=
  .node (.leaf [⟨some 2, #v[0]⟩]) (.node (.leaf [⟨some 0, #v[1]⟩]) (.leaf [⟨some 1, #v[0]⟩]))

theorem mergeMean_tree_refuted : ¬ ComputesAttentionOnTrees mergeMean :=
  ComputesAttentionOnTrees.refute risingLeaves (by decide +kernel)

/-- A merge that takes the second state's maximum for the larger: only the first is rescaled. -/
@[expose] def mergeIntoRight (a b : ExactState) : ExactState :=
  let m := maxScore a.m b.m
  let α : Rat := rescale a.m m
  ⟨m, α * a.l + b.l, Vec.add (Vec.smul α a.o) b.o⟩

/-- It is right when the scores rise from left to right. -/
theorem mergeIntoRight_rising :
    (finish (evalWith mergeIntoRight risingLeaves)).toList = (attend risingLeaves.keys).toList := by
  decide +kernel

theorem mergeIntoRight_tree_refuted : ¬ ComputesAttentionOnTrees mergeIntoRight :=
  ComputesAttentionOnTrees.refute largestFirst (by decide +kernel)

end Attention.WrongVariants
