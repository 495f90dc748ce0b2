module

public import Attention.Spec.Merge
public import Attention.Proof.Online.Attention

public section

/-! # Merging is algebra: the well-formed states are a commutative monoid -/

namespace Attention.Proof

open Spec Spec.Online Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-! ## Every update makes a well-formed state -/

omit [OrderedField R] [Exponential S R] in
private theorem maxScore_eq_none {a b : Option S} : maxScore a b = none ↔ a = none ∧ b = none := by
  cases a <;> cases b <;> simp [maxScore]

omit [OrderedCommRing S] [Exponential S R] in
/-- The state of no keys is well formed. -/
theorem empty_wellFormed : (empty : State S R d).WellFormed := fun _ => ⟨rfl, rfl⟩

/-- The state of a block is well formed. -/
theorem ofBlock_wellFormed (block : List (ScoredValue S R d)) : (ofBlock block).WellFormed := by
  intro h
  have h := (ofBlock_invariant block).eq_empty h
  exact ⟨congrArg State.l h, congrArg State.o h⟩

/-- A merge is well formed, whatever was merged. -/
theorem merge_wellFormed (a b : State S R d) : (merge a b).WellFormed := by
  intro h
  obtain ⟨ha, hb⟩ := maxScore_eq_none.mp h
  simp only [merge, ha, hb, rescale_none_left, Semiring.zero_mul, Semiring.add_zero, true_and]
  refine Vector.ext fun j hj => ?_
  simp only [Vec.getElem_add, Vec.getElem_smul, Vec.getElem_zero, Semiring.zero_mul,
    Semiring.add_zero]

/-- FlashAttention-2's update is a merge with the state of the block, whatever it is applied to. -/
theorem stepBlock_eq_merge (s : State S R d) (block : List (ScoredValue S R d)) :
    stepBlock s block = merge s (ofBlock block) := by
  have h := score_le_rowMax block
  refine state_ext rfl ?_ fun j hj => ?_
  · simp only [stepBlock, merge, ofBlock, rescale_sumOver' h]
  · simp only [stepBlock, merge, ofBlock, Vec.getElem_add, Vec.getElem_smul, Vec.getElem_sumOver,
      rescale_sumOver h]

/-- A state that has taken a block is well formed. -/
theorem stepBlock_wellFormed (s : State S R d) (block : List (ScoredValue S R d)) :
    (stepBlock s block).WellFormed :=
  stepBlock_eq_merge s block ▸ merge_wellFormed s _

/-- A state that has taken a key is well formed. -/
theorem step_wellFormed (s : State S R d) (key : ScoredValue S R d) : (step s key).WellFormed :=
  step_eq_stepBlock s key ▸ stepBlock_wellFormed s _

/-- The state after any blocks is well formed. -/
theorem online_wellFormed (blocks : List (List (ScoredValue S R d))) :
    (online blocks).WellFormed :=
  online_eq_ofBlock blocks ▸ ofBlock_wellFormed _

/-- The state at the root of a tree is well formed. -/
theorem eval_wellFormed : ∀ tree : MergeTree S R d, tree.eval.WellFormed
  | .leaf block => ofBlock_wellFormed block
  | .node _ _ => merge_wellFormed _ _

/-! ## Laws -/

private theorem rescale_merge (a b m : Option S) (x y : R) :
    rescale (maxScore a b) m * (rescale a (maxScore a b) * x + rescale b (maxScore a b) * y)
      = rescale a m * x + rescale b m * y := by
  rw [Semiring.left_distrib, ← Semiring.mul_assoc, ← Semiring.mul_assoc,
    rescale_mul_rescale (le_maxScore_left a b), rescale_mul_rescale (le_maxScore_right a b)]

/-- **merge-assoc**: merging does not depend on grouping, for any three states. -/
theorem merge_assoc (a b c : State S R d) : merge (merge a b) c = merge a (merge b c) := by
  refine state_ext ?_ ?_ fun j hj => ?_
  · simp only [merge, maxScore_assoc]
  · simp only [merge, rescale_merge, maxScore_assoc, Semiring.add_assoc]
  · simp only [merge, Vec.getElem_add, Vec.getElem_smul, rescale_merge, maxScore_assoc,
      Semiring.add_assoc]

/-- **merge-empty**: merging with the state of no keys leaves a state as it is if, and only if, the
state is well formed. -/
theorem merge_empty_iff (s : State S R d) : merge s empty = s ↔ s.WellFormed := by
  refine ⟨fun h => h ▸ merge_wellFormed s empty, fun h => ?_⟩
  cases hm : s.m with
  | none =>
    obtain ⟨hl, ho⟩ := h hm
    refine state_ext ?_ ?_ fun j hj => ?_
    · simp only [merge, empty, hm, maxScore_none_left]
    · simp only [merge, empty, hl, Semiring.mul_zero, Semiring.add_zero]
    · simp only [merge, empty, ho, Vec.getElem_add, Vec.getElem_smul, Vec.getElem_zero,
        Semiring.mul_zero, Semiring.add_zero]
  | some m =>
    refine state_ext ?_ ?_ fun j hj => ?_
    · simp only [merge, empty, maxScore_none_right]
    · simp only [merge, empty, hm, maxScore_none_right, rescale_self, Semiring.mul_zero,
        Semiring.add_zero, Semiring.one_mul]
    · simp only [merge, empty, hm, maxScore_none_right, rescale_self, Vec.getElem_add,
        Vec.getElem_smul, Vec.getElem_zero, Semiring.mul_zero, Semiring.add_zero, Semiring.one_mul]

/-- Merging the states of blocks one after the other is online softmax. -/
theorem foldl_merge (blocks : List (List (ScoredValue S R d))) :
    (blocks.map ofBlock).foldl merge empty = online blocks := by
  have h : stepBlock = fun (s : State S R d) block => merge s (ofBlock block) :=
    funext fun s => funext fun block => stepBlock_eq_merge s block
  rw [List.foldl_map, online, h]

instance : Std.Associative (merge (S := S) (R := R) (d := d)) := ⟨merge_assoc⟩

instance : Std.Commutative (merge (S := S) (R := R) (d := d)) := ⟨merge_comm⟩

/-! ## The commutative monoid -/

variable (S R d) in
/-- The well-formed states. -/
abbrev WellFormedState := { s : State S R d // s.WellFormed }

namespace WellFormedState

/-- The merge of two well-formed states. -/
@[expose] def merge (a b : WellFormedState S R d) : WellFormedState S R d :=
  ⟨Online.merge a.1 b.1, merge_wellFormed _ _⟩

/-- The state of no keys. -/
@[expose] def empty : WellFormedState S R d := ⟨Online.empty, empty_wellFormed⟩

instance : Std.Associative (merge (S := S) (R := R) (d := d)) :=
  ⟨fun a b c => Subtype.ext (merge_assoc a.1 b.1 c.1)⟩

instance : Std.Commutative (merge (S := S) (R := R) (d := d)) :=
  ⟨fun a b => Subtype.ext (merge_comm a.1 b.1)⟩

instance : Std.LawfulIdentity (merge (S := S) (R := R) (d := d)) empty where
  left_id a := Subtype.ext ((merge_comm _ _).trans ((merge_empty_iff a.1).mpr a.2))
  right_id a := Subtype.ext ((merge_empty_iff a.1).mpr a.2)

end WellFormedState

/-! ## Trees -/

omit [OrderedField R] [Exponential S R] in
/-- The order of scores does not matter to the largest. -/
theorem rowMax_perm {row row' : List (Option S)} (h : row.Perm row') :
    rowMax row = rowMax row' := by
  induction h with
  | nil => rfl
  | cons s _ ih => simp only [rowMax, ih]
  | swap s s' row => simp only [rowMax, ← maxScore_assoc, maxScore_comm s]
  | trans _ _ h₁ h₂ => exact h₁.trans h₂

/-- The order of the keys, with their values, does not matter to the state. -/
theorem ofBlock_perm {row row' : List (ScoredValue S R d)} (h : row.Perm row') :
    ofBlock row = ofBlock row' := by
  have hm := rowMax_perm (h.map (·.score))
  refine state_ext hm ?_ fun j hj => ?_
  · simp only [ofBlock, hm, sumOver_perm _ h]
  · simp only [ofBlock_o, hm, sumOver_perm _ h]

/-- Whatever tree of merges the keys of a row are spread over, in whatever order, the root has the
state of the row. -/
theorem eval_eq_ofBlock (tree : MergeTree S R d) {row : List (ScoredValue S R d)}
    (h : row.Perm tree.keys) : tree.eval = ofBlock row := by
  rw [ofBlock_perm h]
  clear h
  induction tree with
  | leaf block => rfl
  | node left right hl hr => rw [MergeTree.eval, hl, hr, merge_homomorphism, MergeTree.keys]

/-- **any-tree**: whatever tree of merges the keys of a row are spread over, in whatever order, the
finished root is the attention of the row. -/
theorem finish_eval (tree : MergeTree S R d) {row : List (ScoredValue S R d)}
    (h : row.Perm tree.keys) : finish tree.eval = attend row := by
  rw [eval_eq_ofBlock tree h, finish_ofBlock]

end Attention.Proof
