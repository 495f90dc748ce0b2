module

public import Attention.Spec.Online

public section

/-! # The cached state of a row, as keys come and go

While tokens are generated the keys of a row change one at a time. The state (m, l, o) can follow:
a key is appended by `step`, and taken out again by subtracting its terms against the stored
maximum. The stored maximum itself stays: after a deletion it is a reference point, and need not be
the score of any key that is left. -/

namespace Attention.Spec.Online

universe u v

variable {S : Type u} {R : Type v} {d : Nat}

/-- Several more keys, one at a time. -/
@[expose] def append [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R]
    (s : State S R d) (keys : List (ScoredValue S R d)) : State S R d :=
  keys.foldl step s

/-- One key taken out: its terms are subtracted from l and o, against the stored m, which stays. -/
@[expose] def delete [Sub S] [Sub R] [Mul R] [OfNat R 0] [Exp S R] (s : State S R d)
    (key : ScoredValue S R d) : State S R d :=
  let p := rescale key.score s.m
  { m := s.m
    l := s.l - p
    o := Vec.ofFn fun j => s.o[j] - p * key.value[j] }

variable [Sub S] [LE S] [DecidableLE S] [Add R] [Sub R] [Mul R] [OfNat R 0] [Exp S R]

/-- One key taken out and another put in its place. -/
@[expose] def replace (s : State S R d) (old new : ScoredValue S R d) : State S R d :=
  step (delete s old) new

/-- One change of the keys that a row holds. -/
inductive Edit (S : Type u) (R : Type v) (d : Nat) where
  /-- One more key at the end. -/
  | append (key : ScoredValue S R d)
  /-- The key at a position is taken out; nothing happens beyond the end. -/
  | delete (i : Nat)
  /-- The key at a position is replaced; nothing happens beyond the end. -/
  | replace (i : Nat) (key : ScoredValue S R d)

/-- The keys of the row after a change. -/
@[expose] def Edit.keys (row : List (ScoredValue S R d)) : Edit S R d → List (ScoredValue S R d)
  | .append key => row ++ [key]
  | .delete i => row.eraseIdx i
  | .replace i key => row.set i key

/-- One change of a row's keys together with the state that is kept for them. -/
@[expose] def edit (c : List (ScoredValue S R d) × State S R d) (e : Edit S R d) :
    List (ScoredValue S R d) × State S R d :=
  match e with
  | .append key => (c.1 ++ [key], step c.2 key)
  | .delete i =>
    match c.1[i]? with
    | none => c
    | some key => (c.1.eraseIdx i, delete c.2 key)
  | .replace i new =>
    match c.1[i]? with
    | none => c
    | some old => (c.1.set i new, replace c.2 old new)

/-- One more key in a sliding window of `w` keys: the new one is appended, and the oldest deleted if
there are then more than `w`. -/
@[expose] def slide (w : Nat) (c : List (ScoredValue S R d) × State S R d)
    (key : ScoredValue S R d) : List (ScoredValue S R d) × State S R d :=
  let c := edit c (.append key)
  if w < c.1.length then edit c (.delete 0) else c

end Attention.Spec.Online
