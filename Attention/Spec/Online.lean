module

public import Attention.Spec.Attention

public section

/-! # Online softmax

The running state (m, l, o) of attention over the keys seen so far, and its updates. Division is
deferred to `finish`.
Source: Milakov & Gimelshein 2018, Algorithm 3; Dao 2023, "FlashAttention-2", Algorithm 1, lines
8–10; Dao et al. 2022, "FlashAttention", Algorithm 1, lines 10–12 (`stepBlockDivided`). -/

namespace Attention.Spec.Online

universe u v

/-- The running state of online softmax. -/
structure State (S : Type u) (R : Type v) (d : Nat) where
  /-- The largest unmasked score so far; `none` (−∞) before the first. -/
  m : Option S
  /-- The denominator so far, Σ exp (s − m). -/
  l : R
  /-- The output so far, not yet divided: Σ exp (s − m) · v. -/
  o : Vec R d

variable {S : Type u} {R : Type v} {d : Nat}

/-- The state of no keys. -/
@[expose] def empty [OfNat R 0] : State S R d := ⟨none, 0, Vec.zero⟩

/-- The output of a state: o / l, and 0 where every key was masked. -/
@[expose] def finish [Div R] [OfNat R 0] (s : State S R d) : Vec R d :=
  match s.m with
  | none => Vec.zero
  | some _ => Vec.map (· / s.l) s.o

section
variable [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R]

/-- One more key. -/
@[expose] def step (s : State S R d) (key : ScoredValue S R d) : State S R d :=
  let m := maxScore s.m key.score
  let α := rescale s.m m
  let p := rescale key.score m
  { m := m
    l := α * s.l + p
    o := Vec.add (Vec.smul α s.o) (Vec.smul p key.value) }

/-- The state of one block of keys, computed from scratch. -/
@[expose] def ofBlock (block : List (ScoredValue S R d)) : State S R d :=
  let m := rowMax (block.map (·.score))
  { m := m
    l := sumOver (fun key => rescale key.score m) block
    o := Vec.sumOver (fun key => Vec.smul (rescale key.score m) key.value) block }

/-- One more block of keys, as the inner loop of FlashAttention-2 takes it. -/
@[expose] def stepBlock (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  let m := maxScore s.m (rowMax (block.map (·.score)))
  let α := rescale s.m m
  { m := m
    l := α * s.l + sumOver (fun key => rescale key.score m) block
    o := Vec.add (Vec.smul α s.o)
      (Vec.sumOver (fun key => Vec.smul (rescale key.score m) key.value) block) }

/-- The state of two disjoint sets of keys from the states of each. -/
@[expose] def merge (a b : State S R d) : State S R d :=
  let m := maxScore a.m b.m
  let α := rescale a.m m
  let β := rescale b.m m
  { m := m
    l := α * a.l + β * b.l
    o := Vec.add (Vec.smul α a.o) (Vec.smul β b.o) }

/-- The state after all blocks, taken one after the other. -/
@[expose] def online (blocks : List (List (ScoredValue S R d))) : State S R d :=
  blocks.foldl stepBlock empty

/-- FlashAttention-1's update, where `o` is divided already: multiply back, take the block, divide
again. (The paper takes the block's weights against its own maximum first; here, as in `stepBlock`,
they are taken against the new one.) -/
@[expose] def stepBlockDivided [Div R] (s : State S R d) (block : List (ScoredValue S R d)) :
    State S R d :=
  let s' := stepBlock { s with o := Vec.smul s.l s.o } block
  { s' with o := finish s' }

end

end Attention.Spec.Online
