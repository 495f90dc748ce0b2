module

public import Attention.Spec.Dropout
public import Attention.Vectors.Heads

public section

/-! # Cases of dropout and of its generator -/

namespace Attention.Vectors

open Spec

/-- The definitions of the Spec that compute attention with dropout. -/
inductive DropoutAlgorithm where
  /-- The formula. -/
  | formula
  /-- The tile loop. -/
  | tiles (block_m block_n : Nat)
  /-- The tile loop in which each tile draws for itself. -/
  | drawn (block_m block_n : Nat)

/-- The name of the definition. -/
def DropoutAlgorithm.leanName : DropoutAlgorithm → String
  | .formula => "Attention.Spec.attentionDropout"
  | .tiles .. => "Attention.Spec.flashDropout"
  | .drawn .. => "Attention.Spec.flashDrawn"

/-- Tiles hold something. -/
@[expose] def DropoutAlgorithm.Fits : DropoutAlgorithm → Prop
  | .formula => True
  | .tiles block_m block_n | .drawn block_m block_n => 0 < block_m ∧ 0 < block_n

instance (algorithm : DropoutAlgorithm) : Decidable algorithm.Fits := by
  cases algorithm <;> dsimp only [DropoutAlgorithm.Fits] <;> infer_instance

/-- The rows of the output of a head. -/
@[expose] def DropoutAlgorithm.run {q_len kv_len d d_v : Nat} (algorithm : DropoutAlgorithm)
    (scale : Int) (modify : ScoreMod Int q_len kv_len) (Q : Matrix Int q_len d)
    (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v) (p : Rat) (threshold seed head : Nat) :
    List (Vec Rat d_v) :=
  let Z : WeightFactor Rat q_len kv_len := .dropout p (keepMask threshold seed head)
  match algorithm with
  | .formula => (attentionDropout scale modify Q K V Z).toList
  | .tiles block_m block_n => flashDropout scale modify Q K V Z block_m block_n
  | .drawn block_m block_n =>
    flashDrawn scale modify Q K V p threshold seed head block_m block_n

/-- Inputs of attention with dropout: those of attention with several heads, of all sequences of a
batch, sequence by sequence. -/
structure DropoutCase where
  /-- Number of sequences, all with as many heads. -/
  batch : Nat := 1
  /-- The inputs of attention, the heads of all sequences one after the other. -/
  forward : HeadsCase
  /-- The probability to drop a weight. -/
  p : Rat
  /-- The seed, below 2 ^ 63. -/
  seed : Nat
  /-- The definition that computes the output. -/
  algorithm : DropoutAlgorithm

/-- How many words keep a weight, with a probability from 0 to 1. -/
@[expose] def thresholdOf (p : Rat) : Except String Nat :=
  if 0 ≤ p ∧ p ≤ 1 then .ok (keepThreshold p.num.toNat p.den)
  else .error "a probability is not between 0 and 1"

/-- Which weights of a head are kept. -/
@[expose] def keptRows (q_len kv_len threshold seed head : Nat) : List (List Bool) :=
  let keep : Mask q_len kv_len := keepMask threshold seed head
  (List.finRange q_len).map fun i => (List.finRange kv_len).map (keep i)

/-- Which weights are kept, head by head, and the rows of each query head. -/
structure DropoutResult where
  /-- Which weights are kept. -/
  keep : List (List (List Bool))
  /-- The rows; maximum and denominator are those without dropout. -/
  rows : List (List RowResult)

/-- Runs the Spec over the exact model. -/
@[expose] def DropoutCase.run (c : DropoutCase) : Except String DropoutResult := do
  let f := c.forward
  checkExact ((rats f.q.flatten).flatten ++ (rats f.k.flatten).flatten ++ f.v.flatten.flatten)
  let Q ← toHeads (f.num_kv_heads * f.group) f.q_len f.head_dim f.q
  let K ← toHeads f.num_kv_heads f.kv_len f.head_dim f.k
  let V ← toHeads f.num_kv_heads f.kv_len f.value_dim f.v
  let threshold ← thresholdOf c.p
  unless c.seed < 2 ^ 63 do throw "a seed is not below 2 ^ 63"
  unless c.algorithm.Fits do throw "a tile holds nothing"
  unless c.batch ∣ f.num_kv_heads do throw "the sequences have not as many heads"
  let modify : ScoreMod Int f.q_len f.kv_len := f.mask.toMask.toScoreMod
  let heads := List.finRange (f.num_kv_heads * f.group)
  let output (h : Fin (f.num_kv_heads * f.group)) : List (Vec Rat f.value_dim) :=
    c.algorithm.run f.scale modify Q[h] K[kvHead h] V[kvHead h] c.p threshold c.seed h.val
  return {
    keep := heads.map fun h => keptRows f.q_len f.kv_len threshold c.seed h.val
    rows := heads.map fun h => ((List.finRange f.q_len).zip (output h)).map fun (i, o) =>
      rowResult (scored f.scale modify Q[h] K[kvHead h] V[kvHead h] i (List.finRange f.kv_len)) o }

/-- Inputs of the generator. -/
structure PhiloxCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The number of rounds. -/
  rounds : Nat := 10
  /-- The key. -/
  key : PhiloxKey
  /-- The counters. -/
  counters : List Words

/-- The words of each counter. -/
def PhiloxCase.run (c : PhiloxCase) : List Words := c.counters.map (philox c.rounds c.key)

end Attention.Vectors
