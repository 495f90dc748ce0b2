module

public import Attention.Spec.Flash

public section

/-! # Ring attention

The queries and the keys are spread over a ring of devices. In every round each device takes the
keys that it holds into the states of its queries, and passes them on to its neighbour; after as
many rounds as there are devices, every query has met every key.
Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context", Algorithm 1. -/

namespace Attention.Spec

open Online

universe u v

/-- A device of the ring. -/
structure Device (S : Type u) (R : Type v) (q_len kv_len d_v : Nat) where
  /-- The queries that stay on the device. -/
  rows : List (Fin q_len)
  /-- The keys that it holds in this round. -/
  cols : List (Fin kv_len)
  /-- The state of each of its queries. -/
  states : List (State S R d_v)

/-- Each passes its keys to the device before it, the first to the last. -/
@[expose] def rotate {α : Type u} : List α → List α
  | [] => []
  | x :: xs => xs ++ [x]

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- Every device passes on the keys that it holds. -/
@[expose] def passOn (devices : List (Device S R q_len kv_len d_v)) :
    List (Device S R q_len kv_len d_v) :=
  List.zipWith (fun dev cols => { dev with cols := cols }) devices (rotate (devices.map (·.cols)))

variable [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- The device takes the keys that it holds into the states of its queries. -/
@[expose] def Device.compute (dev : Device S R q_len kv_len d_v) : Device S R q_len kv_len d_v :=
  { dev with states := stepTile (scored scale modify Q K V) dev.rows dev.states dev.cols }

/-- The ring after `n` rounds. -/
@[expose] def ringRounds : Nat → List (Device S R q_len kv_len d_v) →
    List (Device S R q_len kv_len d_v)
  | 0, devices => devices
  | n + 1, devices => ringRounds n (passOn (devices.map (Device.compute scale modify Q K V)))

/-- The outputs of each device, in the order of its queries. A shard is what a device starts with:
its queries, and the keys that it holds first. -/
@[expose] def ring [Div R] (shards : List (List (Fin q_len) × List (Fin kv_len))) :
    List (List (Vec R d_v)) :=
  let start := shards.map fun (rows, cols) => ⟨rows, cols, rows.map fun _ => empty⟩
  (ringRounds scale modify Q K V shards.length start).map fun dev => dev.states.map finish

end Attention.Spec
