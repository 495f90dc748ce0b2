module

public import Attention.Spec.RingSkip
public import Attention.Spec.Shards
public import Attention.Vectors.Case

public section

/-! # One case of a sequence in shards

Devices hold parts of the queries and of the keys, and run as a ring in small steps. There are
results of every device for the keys of each other that arrive, alone, and for all of them. -/

namespace Attention.Vectors

open Spec Online

/-- How a sequence is shared out. -/
inductive Layout where
  /-- A stretch for each device. -/
  | contiguous
  /-- Two stretches for each device, from both ends. -/
  | zigzag
  /-- Every n-th place. -/
  | striped
  /-- The places of each device's queries, and of its keys. -/
  | places (queries keys : List (List Nat))

/-- The name of the layout. -/
def Layout.name : Layout → String
  | .contiguous => "contiguous"
  | .zigzag => "zigzag"
  | .striped => "striped"
  | .places .. => "places"

/-- The places of a sequence that each device holds; `listed`: those that a layout may list. -/
@[expose] def Layout.placesOn {n len : Nat} (layout : Layout) (h : 0 < n)
    (listed : List (List Nat)) : Fin n → List (Fin len) :=
  match layout with
  | .contiguous => placesOf (contiguousOwner h)
  | .zigzag => placesOf (zigzagOwner h)
  | .striped => placesOf (stripedOwner h)
  | .places .. => fun i => indices len (listed.getD i.val [])

/-- The places that a layout lists of the queries, and of the keys. -/
def Layout.listed : Layout → List (List Nat) × List (List Nat)
  | .places queries keys => (queries, keys)
  | _ => ([], [])

/-- Inputs in shards, with the reason why they are worth testing. -/
structure ShardsCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score. -/
  scale : Int := 1
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- The rows of Q, of the whole sequence. -/
  q : List (List Int)
  /-- The rows of K. -/
  k : List (List Int)
  /-- The rows of V. -/
  v : List (List Rat)
  /-- Which keys each query may attend to, by their places: everything, or a window. -/
  mask : MaskKind := .none
  /-- The number of devices. -/
  devices : Nat
  /-- Which places each holds. -/
  layout : Layout

/-- The outcome for one device. -/
structure DeviceResult where
  /-- The places of its queries. -/
  queries : List Nat
  /-- The places of its keys. -/
  keys : List Nat
  /-- Whose keys it computes with, in order of their arrival. -/
  arrivals : List Nat
  /-- For each of these, the results of its queries over those keys alone. -/
  partials : List (List RowResult)
  /-- The results of its queries over all keys. -/
  merged : List RowResult

/-- The result of a query from its state. -/
@[expose] def RowResult.ofState {d : Nat} (s : State Int Rat d) : RowResult :=
  { max := s.m, denominator := s.l, output := (finish s).toList }

/-- A mask as the bounds of a window. -/
@[expose] def MaskKind.toWindow : MaskKind → Except String (Alignment × Option Nat × Option Nat)
  | .none => .ok (.topLeft, Option.none, Option.none)
  | .causal => .ok (.topLeft, Option.none, some 0)
  | .causalBottomRight => .ok (.bottomRight, Option.none, some 0)
  | .window alignment left right => .ok (alignment, left, right)
  | _ => .error "the mask of a sequence in shards has to be a window"

section

variable {n b c : Nat} {α : Type} {β : Type}

/-- The ring after the first event that can happen, of the devices in their order; `none`: no event
can. -/
@[expose] def nextOf (rules : RingRules n c α β) (net : RingNet n b c α β) :
    Option (RingNet n b c α β) :=
  ((List.finRange n).flatMap fun i => .execute i
    :: (List.finRange c).flatMap fun channel => [.leave channel i, .arrive channel i]).findSome?
    fun event => net.after rules event

/-- The ring after so many events, or at its end. -/
@[expose] def settle (rules : RingRules n c α β) : Nat → RingNet n b c α β → RingNet n b c α β
  | 0, net => net
  | events + 1, net =>
    match nextOf rules net with
    | none => net
    | some next => settle rules events next

end

section

variable {n q_len kv_len d d_v : Nat}

/-- The rules of the ring of a case: a device computes with the keys alone that it needs. -/
@[expose] def shardsRules (meet : Fin n → Fin n → Bool) (scale : Int) (kind : MaskKind)
    (Q : Matrix Int q_len d) (rows : Fin n → List (Fin q_len)) (cols : Fin n → List (Fin kv_len)) :
    RingRules n 1 (List (KeyValue Int Rat d d_v)) (List (State Int Rat d_v)) :=
  { forwardRules scale kind.toMask.toScoreMod Q rows cols 0 with
    take := takeMet meet (takeShard scale kind.toMask.toScoreMod Q rows cols) }

/-- The ring of a case, after as many events as it can have. -/
@[expose] def shardsNet (meet : Fin n → Fin n → Bool) (scale : Int) (kind : MaskKind)
    (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v)
    (rows : Fin n → List (Fin q_len)) (cols : Fin n → List (Fin kv_len)) :
    RingNet n 2 1 (List (KeyValue Int Rat d d_v)) (List (State Int Rat d_v)) :=
  let rounds := neededRounds meet
  settle (shardsRules meet scale kind Q rows cols) (n * (7 * rounds))
    (ringStart (ringProgram rounds) K V rows cols fun _ => [])

end

/-- Shards of more stretches than this are taken place by place. -/
@[expose] def mostStretches : Nat := 8

namespace ShardsCase

/-- Runs the Spec over the exact model: the devices as a ring, to its end. -/
@[expose] def run (c : ShardsCase) : Except String (List DeviceResult) := do
  checkExact ((rats c.q).flatten ++ (rats c.k).flatten ++ c.v.flatten)
  let Q ← toMatrix c.q.length c.head_dim c.q
  let K ← toMatrix c.k.length c.head_dim c.k
  let V ← toMatrix c.k.length c.value_dim c.v
  let (alignment, left, right) ← c.mask.toWindow
  if h : 0 < c.devices then
    let rows : Fin c.devices → List (Fin c.q.length) := c.layout.placesOn h c.layout.listed.1
    let cols : Fin c.devices → List (Fin c.k.length) := c.layout.placesOn h c.layout.listed.2
    let all := List.finRange c.devices
    if (all.flatMap rows).isPerm (List.finRange c.q.length) ∧
        (all.flatMap cols).isPerm (List.finRange c.k.length) then
      let meet := shardsMeet mostStretches alignment left right none rows cols
      let rules := shardsRules meet c.scale c.mask Q rows cols
      let net := shardsNet meet c.scale c.mask Q K V rows cols
      if (nextOf rules net).isSome then throw "the ring has not come to its end"
      else return all.map fun i =>
        let sources := (List.range (neededRounds meet)).map (source i)
        { queries := (rows i).map (·.val), keys := (cols i).map (·.val)
          arrivals := sources.map (·.val)
          partials := sources.map fun j =>
            (rules.take i j ((rows i).map fun _ => empty) (shard K V (cols j))).map .ofState
          merged := net.nodes[i].result.map .ofState }
    else throw "the devices do not have each place once"
  else throw "there is no device"

end ShardsCase

end Attention.Vectors
