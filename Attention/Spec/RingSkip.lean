module

public import Attention.Spec.Masks
public import Attention.Spec.RingNetBackward
public import Attention.Spec.ShardBounds

public section

/-! # Ring attention that leaves out what nobody sees

A ring ends after the last round in which some device holds keys that it needs, and in a round
before, a device does not compute with keys that none of its queries sees: it passes them on, and
backward zeros as their gradients. Which these are is found from the shards by `meets`, before
anything is sent, the same on every device.
Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context", for the ring; the bounds are those of `ShardBounds`. -/

namespace Attention.Spec

universe u v

variable {n : Nat} {α : Type u} {β : Type v}

/-- After how many of the first rounds of a ring no device holds keys that it needs; `meet i j`:
device i needs those of device j. The first round is never left out. -/
@[expose] def neededWithin (meet : Fin n → Fin n → Bool) : Nat → Nat
  | 0 => 0
  | t + 1 =>
    if t = 0 ∨ ((List.finRange n).any fun i => meet i (source i t)) = true then t + 1
    else neededWithin meet t

/-- The number of rounds of a ring of n devices. -/
@[expose] def neededRounds (meet : Fin n → Fin n → Bool) : Nat := neededWithin meet n

/-- A device computes only with the keys that it needs. -/
@[expose] def takeMet (meet : Fin n → Fin n → Bool) (take : Fin n → Fin n → β → α → β) :
    Fin n → Fin n → β → α → β :=
  fun i source result held => if meet i source then take i source result held else result

variable {S : Type u} {R : Type v} {d d_v q_len kv_len : Nat}

/-- The same backward, where the gradients of the other keys are zeros. -/
@[expose] def takeParcelMet [OfNat R 0] (meet : Fin n → Fin n → Bool)
    (take : Fin n → Fin n → BackwardState R d d_v → Parcel S R d d_v → BackwardState R d d_v)
    (i source : Fin n) (state : BackwardState R d d_v) (held : Parcel S R d d_v) :
    BackwardState R d d_v :=
  match held with
  | .keys kvs =>
    if meet i source then take i source state held
    else { state with sums := ⟨kvs.map fun _ => Vec.zero, kvs.map fun _ => Vec.zero⟩ }
  | .sums _ => take i source state held

/-- Which devices need the keys of which, by the places of their queries and keys. -/
@[expose] def shardsMeet (most : Nat) (alignment : Alignment) (left right : Option Nat)
    (documents : Option (List Nat)) (rows : Fin n → List (Fin q_len))
    (cols : Fin n → List (Fin kv_len)) (i j : Fin n) : Bool :=
  meets most left right (alignment.shift q_len kv_len) documents
    ((rows i).map fun q => q.val) ((cols j).map fun k => k.val)

/-- The mask of a sequence in shards: a window, and documents that do not see each other. -/
@[expose] def Mask.inDocuments (alignment : Alignment) (left right : Option Nat)
    (documents : Option (List Nat)) : Mask q_len kv_len :=
  (Mask.window alignment left right).and fun i j => oneDocument documents i.val j.val

end Attention.Spec
