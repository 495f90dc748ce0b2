module

public import Attention.Spec.BackwardTiles
public import Attention.Spec.RingNet

public section

/-! # The backward pass of ring attention between devices that run by themselves

The devices keep their queries, with dO, D and the log-sum-exps. Keys and values go around once more
on channel 0. The sums of their gradients follow them on channel 1: in each round a device computes
the gradients of the keys that it holds by its own queries, waits for the sums of the devices
before it, adds them, and passes the sums on. After the last round each goes home to the owner of
the keys, on channel 2.
Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context", section 3; the terms are those of FlashAttention-2 (Dao 2023, algorithm 2). -/

namespace Attention.Spec

universe u v

/-- The content of a buffer of the backward pass. -/
inductive Parcel (S : Type u) (R : Type v) (d d_v : Nat) where
  /-- Keys with their values. -/
  | keys (held : List (KeyValue S R d d_v))
  /-- The gradients by keys and values, summed over some queries. -/
  | sums (held : KeySums R d d_v)

/-- The result of a device in the backward pass, so far. -/
structure BackwardState (R : Type v) (d d_v : Nat) where
  /-- The gradients by its queries. -/
  dQ : List (Vec R d)
  /-- The gradients by the keys and values of this round. -/
  sums : KeySums R d d_v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v n : Nat}

/-- The buffer of the keys and values that are held in round `t`: 0 or 1. -/
@[expose] def keySlot (t : Nat) : Fin 5 := ⟨t % 2, by omega⟩

/-- The buffer of the sums of gradients that go around, in round `t`: 2 or 3. -/
@[expose] def sumSlot (t : Nat) : Fin 5 := ⟨2 + t % 2, by omega⟩

/-- The buffer of the gradients that come home. -/
@[expose] def homeSlot : Fin 5 := 4

/-- Round `t` of device `i` in the backward pass: the keys go on; those that are held meet the
queries; what the devices before have added to the same keys is waited for and added, where there
are such; the sums go on, or, after the last round, home. -/
@[expose] def backwardRound (rounds : Nat) (i : Fin n) (t : Nat) : List (Instruction n 5 3) :=
  let compute : List (Instruction n 5 3) := .consume (keySlot t) (source i t) ::
    if t = 0 then [] else
      [.waitSends 1, .waitReceives 1, .consume (sumSlot t) (source i t)]
  if t + 1 < rounds then
    [.send 0 (keySlot t), .receive 0 (keySlot (t + 1))] ++ compute
      ++ [.store (sumSlot t), .send 1 (sumSlot t), .receive 1 (sumSlot (t + 1)), .waitSends 0,
        .waitReceives 0]
  else compute ++ if t = 0 then [.store homeSlot] else
    [.store (sumSlot t), .send 2 (sumSlot t), .receive 2 homeSlot, .waitSends 2, .waitReceives 2]

/-- The program of device `i` in the backward pass. -/
@[expose] def backwardProgram (rounds : Nat) (i : Fin n) : List (Instruction n 5 3) :=
  (List.range rounds).flatMap (backwardRound rounds i)

/-- The device that holds the keys of device `i` in round `t`. -/
@[expose] def holder (i : Fin n) : Nat → Fin n
  | 0 => i
  | t + 1 => following (holder i t)

/-- Keys and sums come from the device before; what comes home, from the device that held the keys
last. -/
@[expose] def backwardSender (rounds : Nat) (channel : Fin 3) (i : Fin n) : Fin n :=
  if channel = 2 then holder i (rounds - 1) else before i

section
variable [Add S] [Sub S] [Mul S] [OfNat S 0] [Add R] [Sub R] [Mul R] [OfNat R 0] [Exp S R]
variable (toValue : S → R) (scale : S) (modify : ScoreMod S q_len kv_len)
variable (slope : ScoreSlope S R q_len kv_len) (Q : Matrix S q_len d)
variable (Z : WeightFactor R q_len kv_len) (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v)
variable (delta : Vec R q_len)

/-- The softmax weight of query `q` and a key with its value, as those at place `j`. -/
@[expose] def heldProbability (q : Fin q_len) (j : Fin kv_len) (kv : KeyValue S R d d_v) : R :=
  rescale (modify q j (scale * Vec.dot Q[q] kv.1)) L[q]

/-- The gradient by their score before it was transformed, times the scale. -/
@[expose] def heldGradient (q : Fin q_len) (j : Fin kv_len) (kv : KeyValue S R d d_v) : R :=
  toValue scale * (scoreGradient (heldProbability scale modify Q L q j kv) dO[q]
    (Vec.smul (Z q j) kv.2) delta[q] * slope q j (scale * Vec.dot Q[q] kv.1))

/-- Device `i` computes with the keys and values that it holds, as those at the places of device
`source`: it adds to the gradients by its queries, and begins the sums of this round. Sums that it
holds it adds to those of this round. -/
@[expose] def takeParcel (rows : Fin n → List (Fin q_len)) (cols : Fin n → List (Fin kv_len))
    (i source : Fin n) (state : BackwardState R d d_v) (held : Parcel S R d d_v) :
    BackwardState R d d_v :=
  match held with
  | .keys kvs =>
    let placed := (cols source).zip kvs
    { dQ := List.zipWith (fun q sum => Vec.add sum (Vec.sumOver (fun p => Vec.smul
        (heldGradient toValue scale modify slope Q Z L dO delta q p.1 p.2)
        (Vec.map toValue p.2.1)) placed)) (rows i) state.dQ
      sums :=
        { dK := placed.map fun p => Vec.sumOver (fun q => Vec.smul
            (heldGradient toValue scale modify slope Q Z L dO delta q p.1 p.2)
            (Vec.map toValue Q[q])) (rows i)
          dV := placed.map fun p => Vec.sumOver (fun q => Vec.smul
            (heldProbability scale modify Q L q p.1 p.2 * Z q p.1) dO[q]) (rows i) } }
  | .sums sums => { state with
      sums :=
        { dK := List.zipWith Vec.add state.sums.dK sums.dK
          dV := List.zipWith Vec.add state.sums.dV sums.dV } }

/-- The rules of the backward pass. -/
@[expose] def backwardRules (rounds : Nat) (rows : Fin n → List (Fin q_len))
    (cols : Fin n → List (Fin kv_len)) (capacity : Nat) :
    RingRules n 3 (Parcel S R d d_v) (BackwardState R d d_v) :=
  { sender := backwardSender rounds
    take := takeParcel toValue scale modify slope Q Z L dO delta rows cols
    give := fun state => .sums state.sums
    capacity := capacity }

end

/-- A ring before the backward pass: device `i` holds the keys `cols i` with their values; `spare`
is in its other buffers. -/
@[expose] def backwardStart [OfNat R 0] (program : Fin n → List (Instruction n 5 3))
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (rows : Fin n → List (Fin q_len))
    (cols : Fin n → List (Fin kv_len)) (spare : Fin n → Vector (Parcel S R d d_v) 4) :
    RingNet n 5 3 (Parcel S R d d_v) (BackwardState R d d_v) :=
  RingNet.start program
    (fun i => #v[.keys (shard K V (cols i)), (spare i)[0], (spare i)[1], (spare i)[2],
      (spare i)[3]])
    fun i => ⟨(rows i).map fun _ => Vec.zero, ⟨[], []⟩⟩

/-- The gradients of each device: by its queries, and what is in the buffer in which those by its
keys and values come home. -/
@[expose] def RingNet.gradients
    (net : RingNet n 5 3 (Parcel S R d d_v) (BackwardState R d d_v)) :
    List (List (Vec R d) × Parcel S R d d_v) :=
  net.nodes.toList.map fun node => (node.result.dQ, node.buffers[homeSlot])

end Attention.Spec
