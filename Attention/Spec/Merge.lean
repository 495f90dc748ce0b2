module

public import Attention.Spec.Online

public section

/-! # Trees of merges

The keys of a row may be split among processors in any way, and their states merged in any order:
a binary tree with a block of keys at each leaf.
Source: Dao et al. 2023, "Flash-Decoding for long-context inference" (one level of splits). -/

namespace Attention.Spec.Online

universe u v

variable {S : Type u} {R : Type v} {d : Nat}

/-- A state without a maximum holds nothing: l = 0 and o = 0. -/
@[expose] def State.WellFormed [OfNat R 0] (s : State S R d) : Prop :=
  s.m = none → s.l = 0 ∧ s.o = Vec.zero

/-- In which order states are merged: a binary tree with a block of keys at each leaf. -/
inductive MergeTree (S : Type u) (R : Type v) (d : Nat) where
  /-- The state of a block, computed from scratch. -/
  | leaf (block : List (ScoredValue S R d))
  /-- The merge of the states of two trees. -/
  | node (left right : MergeTree S R d)

/-- All keys of a tree, from left to right. -/
@[expose] def MergeTree.keys : MergeTree S R d → List (ScoredValue S R d)
  | leaf block => block
  | node left right => left.keys ++ right.keys

/-- The state at the root of a tree. -/
@[expose] def MergeTree.eval [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R] :
    MergeTree S R d → State S R d
  | leaf block => ofBlock block
  | node left right => merge left.eval right.eval

end Attention.Spec.Online
