module

public import Attention.Spec.Cache
public import Attention.Spec.Merge
public import Attention.Vectors.Case

public section

/-! # Cases of states: trees of merges, and the edits of a cache -/

namespace Attention.Vectors

open Spec Online

/-- A key with its score, none: masked, and its value. -/
structure Key where
  /-- The score. -/
  score : Option Int
  /-- The value. -/
  value : List Rat
  deriving Inhabited

/-- The key as the Spec takes it. -/
@[expose] def Key.toSpec (value_dim : Nat) (key : Key) :
    Except String (ScoredValue Int Rat value_dim) := do
  checkExact (key.value ++ key.score.toList.map fun (s : Int) => (s : Rat))
  let V ← toMatrix 1 value_dim [key.value]
  return ⟨key.score, V[0]⟩

/-- A binary tree with the number of a block at each leaf. -/
inductive Tree where
  /-- A block. -/
  | leaf (block : Nat)
  /-- Two trees, merged. -/
  | node (left right : Tree)

/-- Blocks of keys and the order in which their states are merged, with the reason why they are
worth testing. -/
structure MergeCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- Number of columns of the values. -/
  value_dim : Nat
  /-- The blocks; a block may be empty. -/
  blocks : List (List Key)
  /-- The order. -/
  tree : Tree

/-- The tree as the Spec takes it. -/
@[expose] def MergeCase.toSpec (c : MergeCase) :
    Tree → Except String (MergeTree Int Rat c.value_dim)
  | .leaf n =>
    match c.blocks[n]? with
    | none => .error "there is no such block"
    | some block => return .leaf (← block.mapM (Key.toSpec c.value_dim))
  | .node left right => return .node (← c.toSpec left) (← c.toSpec right)

/-- A state of any width. -/
structure StateResult where
  /-- The reference point. -/
  m : Option Int
  /-- The denominator against it. -/
  l : Rat
  /-- The output before the division. -/
  o : List Rat

/-- A state of the Spec as a result. -/
@[expose] def toResult {d : Nat} (s : State Int Rat d) : StateResult := ⟨s.m, s.l, s.o.toList⟩

/-- Runs the Spec over the exact model: the state at the root. -/
@[expose] def MergeCase.run (c : MergeCase) : Except String StateResult := do
  return toResult (← c.toSpec c.tree).eval

/-- One change of the keys of a row. -/
inductive CacheEdit where
  /-- One more key at the end. -/
  | append (key : Key)
  /-- The key at a position is taken out. -/
  | delete (i : Nat)
  /-- The key at a position is replaced. -/
  | replace (i : Nat) (key : Key)
  /-- One more key at the end of a window of `w` keys. -/
  | slide (w : Nat) (key : Key)

/-- The keys of a row and what becomes of them, with the reason why that is worth testing. -/
structure CacheCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- Number of columns of the values. -/
  value_dim : Nat
  /-- The keys at the beginning. -/
  keys : List Key
  /-- The changes, in order. -/
  edits : List CacheEdit

/-- An edit of a key that is there. -/
@[expose] def CacheEdit.check {d : Nat} (now : List (ScoredValue Int Rat d) × State Int Rat d)
    (i : Nat) (e : Edit Int Rat d) :
    Except String (List (ScoredValue Int Rat d) × State Int Rat d) :=
  if i < now.1.length then .ok (edit now e) else .error "there is no key at that position"

/-- Makes a change of the keys of a row, whose state is kept. -/
@[expose] def CacheEdit.run {d : Nat} (now : List (ScoredValue Int Rat d) × State Int Rat d) :
    CacheEdit → Except String (List (ScoredValue Int Rat d) × State Int Rat d)
  | .append key => return edit now (.append (← key.toSpec d))
  | .delete i => check now i (.delete i)
  | .replace i key => do check now i (.replace i (← key.toSpec d))
  | .slide w key => return Online.slide w now (← key.toSpec d)

namespace CacheCase

/-- The name of the definition that is run. -/
def leanName (c : CacheCase) : String :=
  if c.edits.any (· matches .slide ..) then "Attention.Spec.Online.slide"
  else "Attention.Spec.Online.edit"

/-- Keys and state as they are, and after each change. -/
@[expose] def follow {d : Nat} (now : List (ScoredValue Int Rat d) × State Int Rat d) :
    List CacheEdit → Except String (List (List (ScoredValue Int Rat d) × State Int Rat d))
  | [] => return [now]
  | e :: edits => return now :: (← follow (← e.run now) edits)

/-- Runs the Spec over the exact model: the state at the beginning and after each change. -/
@[expose] def run (c : CacheCase) : Except String (List StateResult) := do
  let keys ← c.keys.mapM (Key.toSpec c.value_dim)
  return (← follow (keys, append empty keys) c.edits).map fun (_, state) => toResult state

end CacheCase

end Attention.Vectors
