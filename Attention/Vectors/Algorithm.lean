module

public import Attention.Model.Exact
public import Attention.Spec.Padding
public import Attention.Spec.Ring
public import Attention.Spec.Sink
public import Attention.Spec.SplitKV
public import Attention.Spec.TileBounds
public import Attention.Vectors.MaskKind

public section

/-! # The definitions of the Spec that compute attention over the exact model

Each is proved to give what `attention` gives, or `attentionSink`; so is what `Algorithm.run` makes
of them (`AlgorithmSound`). -/

namespace Attention.Vectors

open Spec

/-- A definition of the Spec that computes attention, with what it takes besides the inputs. -/
inductive Algorithm where
  /-- Attention itself. -/
  | attention
  /-- The tile loop. -/
  | flash (block_m block_n : Nat)
  /-- The tile loop by the bounds of a window. -/
  | flashWindow (block_m block_n : Nat)
  /-- The tile loop that skips tiles without a visible pair, and takes those without a hidden one
  without mask code. -/
  | flashSchedule (block_m block_n : Nat)
  /-- The keys split, the states of the splits merged. -/
  | splitKV (split_len block_n : Nat)
  /-- A ring of devices: the queries and the keys that each starts with. -/
  | ring (shards : List (List Nat × List Nat))
  /-- More rows of Q, more keys and more columns of Q and K. -/
  | padded (rows keys columns : Nat)
  /-- The softmax alone: its weights are the output if the values are the unit vectors. -/
  | safeSoftmax
  /-- FlashAttention-1's update, which divides after each tile of keys. -/
  | divided (block_n : Nat)
  /-- Tile after tile of keys, from the state of a sink with score 0. -/
  | onlineSink (block_n : Nat)
  /-- The tile loop from the state of a sink with score 0. -/
  | flashSink (block_m block_n : Nat)

/-- The name of the definition. -/
def Algorithm.leanName : Algorithm → String
  | .attention => "Attention.Spec.attention"
  | .flash .. => "Attention.Spec.flash"
  | .flashWindow .. => "Attention.Spec.flashWindow"
  | .flashSchedule .. => "Attention.Spec.flashSchedule"
  | .splitKV .. => "Attention.Spec.splitKV"
  | .ring .. => "Attention.Spec.ring"
  | .padded .. => "Attention.Spec.attentionPadded"
  | .safeSoftmax => "Attention.Spec.safeSoftmax"
  | .divided .. => "Attention.Spec.Online.stepBlockDivided"
  | .onlineSink .. => "Attention.Spec.onlineSink"
  | .flashSink .. => "Attention.Spec.flashSink"

/-- The sink of each row. A kernel is given a sink beside the scores, times ln 2: 0 alone is exact
then. -/
@[expose] def Algorithm.sink : Algorithm → Option Int
  | .onlineSink .. | .flashSink .. => some 0
  | _ => none

variable {q_len kv_len d d_v : Nat}

/-- How the pair of tiles `t` and `u` may be taken under a mask. -/
@[expose] def tileKind (mask : Mask q_len kv_len) (block_m block_n t u : Nat) : TileKind :=
  let pairs := (tile block_m (List.finRange q_len) t).flatMap fun i =>
    (tile block_n (List.finRange kv_len) u).map (mask i)
  if pairs.all (!·) then .skip else if pairs.all (·) then .unmasked else .masked

/-- The numbers of a list that are below `n`. -/
@[expose] def indices (n : Nat) (xs : List Nat) : List (Fin n) :=
  xs.filterMap fun x => if h : x < n then some ⟨x, h⟩ else none

/-- The arguments of an algorithm make sense: tiles hold something, and a ring each query and each
key once. -/
@[expose] def Algorithm.Fits (q_len kv_len : Nat) : Algorithm → Prop
  | .flash block_m block_n | .flashWindow block_m block_n | .flashSchedule block_m block_n
  | .flashSink block_m block_n => 0 < block_m ∧ 0 < block_n
  | .splitKV split_len block_n => 0 < split_len ∧ 0 < block_n
  | .divided block_n | .onlineSink block_n => 0 < block_n
  | .ring shards => (shards.flatMap fun s => indices q_len s.1).Perm (List.finRange q_len)
      ∧ (shards.flatMap fun s => indices kv_len s.2).Perm (List.finRange kv_len)
  | .attention | .padded .. | .safeSoftmax => True

instance (q_len kv_len : Nat) (algorithm : Algorithm) :
    Decidable (algorithm.Fits q_len kv_len) := by
  cases algorithm <;> dsimp only [Algorithm.Fits] <;> infer_instance

/-- The rows of the output, in order. Padding holds large numbers, which must have no influence. -/
@[expose] def Algorithm.run (algorithm : Algorithm) (scale : Int) (kind : MaskKind)
    (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v) :
    Except String (List (Vec Rat d_v)) :=
  let mask : Mask q_len kv_len := kind.toMask
  let modify : ScoreMod Int q_len kv_len := mask.toScoreMod
  let rows := (List.finRange q_len).map fun i => scored scale modify Q K V i (List.finRange kv_len)
  match algorithm with
  | .attention => .ok (Spec.attention scale modify Q K V).toList
  | .flash block_m block_n => .ok (Spec.flash scale modify Q K V block_m block_n)
  | .flashWindow block_m block_n =>
    match kind with
    | .window alignment left right => .ok (Spec.flashWindow scale (fun _ _ s => some s) alignment
        left right Q K V block_m block_n)
    | _ => .error "the tile loop by the bounds of a window needs a window"
  | .flashSchedule block_m block_n => .ok (Spec.flashSchedule scale (fun _ _ s => some s) mask Q K V
      (fun _ => ⟨0, numTiles kv_len block_n⟩) (tileKind mask block_m block_n) block_m block_n)
  | .splitKV split_len block_n => .ok (Spec.splitKV scale modify Q K V split_len block_n)
  | .ring shards =>
    let shards := shards.map fun (rows, cols) => (indices q_len rows, indices kv_len cols)
    let outputs := (Spec.ring scale modify Q K V shards).flatten
    let owners := shards.flatMap (·.1)
    if outputs.length = q_len ∧ owners.length = q_len then
      .ok ((List.finRange q_len).flatMap fun i =>
        (owners.zip outputs).filterMap fun (j, row) => if i = j then some row else none)
    else .error "the devices do not have each query once"
  | .padded rows keys columns =>
    .ok (attentionPadded (r := rows) (p := keys) scale modify (Matrix.padCols columns Q)
      (Matrix.padCols columns K) V
      (Vec.ofFn fun _ => Vec.ofFn fun _ => 9) (Vec.ofFn fun _ => Vec.ofFn fun _ => 9)
      (Vec.ofFn fun _ => Vec.ofFn fun _ => 1000)).toList
  | .safeSoftmax =>
    let unit : Matrix Rat kv_len d_v :=
      Vec.ofFn fun j => Vec.ofFn fun c => if j.val = c.val then 1 else 0
    if kv_len = d_v ∧ V = unit then
      .ok (rows.map fun row =>
        let weights := Spec.safeSoftmax (row.map (·.score))
        Vec.ofFn fun c => weights.getD c 0)
    else .error "the weights are the output only if the values are the unit vectors"
  | .divided block_n =>
    .ok (rows.map fun row => ((tiles block_n row).foldl Online.stepBlockDivided Online.empty).o)
  | .onlineSink block_n =>
    .ok (rows.map fun row => Online.finish (Spec.onlineSink 0 (tiles block_n row)))
  | .flashSink block_m block_n => .ok (Spec.flashSink scale modify 0 Q K V block_m block_n)

end Attention.Vectors
