module

public import Attention.Vectors.LargeFamilies
public import Attention.Vectors.NaturalFamilies
public import Attention.Vectors.Tangent

public section

/-! # The families of the derivative forwards -/

namespace Attention.Vectors

open Spec

/-- Which inputs change. -/
inductive Changing where
  | all | queries | keys | values

/-- The same in words. -/
def Changing.text : Changing → String
  | .all => "all inputs change"
  | .queries => "the queries alone change"
  | .keys => "the keys alone change"
  | .values => "the values alone change"

instance : ToString Changing := ⟨Changing.text⟩

/-- The rates if these inputs change, else as many zeros. -/
def rates (changes : Bool) (rows : Gen (List (List Rat))) : Gen (List (List Rat)) := do
  let drawn ← rows
  return if changes then drawn else drawn.map (·.map fun _ => 0)

/-- Multiples of 1/16 between −2 and 2. -/
def sixteenths (m n : Nat) : Gen (List (List Rat)) :=
  draws (draws (return mkRat (← between (-32) 32) 16) n) m

/-- Random inputs with random rates. -/
def tangentCase (reason : String) (q_len kv_len : Nat) (mask : MaskKind := .none)
    (scale : Option Rat := none) (head_dim : Nat := 4) (changing : Changing := .all) :
    Gen TangentCase := do
  let value_dim := 2
  let c ← naturalCase s!"{reason}; {maskText mask}; {sizes q_len kv_len head_dim}" q_len kv_len
    head_dim value_dim scale mask (bound := 2)
  let is (input : Changing → Bool) := input changing
  return {
    inputs := c
    dq := ← rates (is fun | .all | .queries => true | _ => false) (sixteenths q_len head_dim)
    dk := ← rates (is fun | .all | .keys => true | _ => false) (sixteenths kv_len head_dim)
    dv := ← rates (is fun | .all | .values => true | _ => false) (valueRows kv_len value_dim) }

/-- The derivative forwards, by queries, keys and values. -/
def tangents : Family TangentCase where
  name := "tangent"
  about := "The derivative of output and log-sum-exp along rates of queries, keys and values \
    (torch.func.jvp): rates of 0, the mean rate of the scores not taken off, the scale left out or \
    applied twice, or the rate of one input lost, they show."
  theoremId := "tangent-enclosed"
  cases :=
    let alone := each "alone" [Changing.queries, .keys, .values] fun changing =>
      tangentCase changing.text 3 5 (changing := changing)
    let masked := each "masked"
      [(1, 1, .none), (2, 3, .none), (4, 4, .causal), (3, 6, .causalBottomRight),
       (6, 3, .causalBottomRight), (6, 6, .window .topLeft (some 1) (some 1)),
       (4, 7, .window .bottomRight (some 2) (some 0)), (4, 5, maskWhere 4 5 fun i j =>
         i != 1 && (i + j) % 4 != 3), (3, 4, .keyLength 0), (3, 6, .keyLength 4)]
      fun (q_len, kv_len, mask) => tangentCase "all inputs change" q_len kv_len mask
    let scaled := each "scaled" [(1, 3, 5), (-1 / 2, 4, 4), (1 / 8, 2, 9), (2, 2, 6)]
      fun ((scale : Rat), q_len, kv_len) =>
        tangentCase s!"scale {scale}" q_len kv_len (scale := some scale)
    let long := each "long" [(17, 3, 4), (2, 18, 8), (3, 33, 16)] fun (q_len, kv_len, head_dim) =>
      tangentCase "several tiles" q_len kv_len (head_dim := head_dim)
    alone ++ masked ++ scaled ++ long

/-- The derivative forwards with changes of the scores that change. -/
def tangentsScoreMods : Family TangentCase where
  name := "tangent-score-mods"
  about := "The derivative forwards through softcap, and along rates of ALiBi's slope, of a bias \
    and of a sink: without the factor 1 - tanh^2, with the other sign of the slope, or with the \
    rate of one of them lost, they show."
  theoremId := "tangent-sink-enclosed"
  cases :=
    let softcap := each "softcap" [(2, 3, 4, .none), (1 / 2, 4, 4, .causal), (30, 2, 18, .none)]
      fun ((cap : Rat), q_len, kv_len, mask) => do
        let c ← tangentCase s!"cap {cap}" q_len kv_len mask
        return { c with inputs := { c.inputs with softcap := some cap } }
    let alibi := each "alibi"
      [(.topLeft, 4, 4, .causal), (.bottomRight, 3, 7, .none),
       (.bottomRight, 2, 18, .causalBottomRight)]
      fun ((alignment : Alignment), q_len, kv_len, mask) => do
        let c ← tangentCase s!"a slope that changes, {alignmentName alignment}" q_len kv_len mask
        let slope := mkRat (1 + (← below 8)) 8
        return { c with inputs := { c.inputs with alibi := some (alignment, slope) }
                        dSlope := mkRat (1 + (← below 16)) 8 }
    let bias := each "bias" [(2, 3, 0, .none), (3, 6, 3, .none), (4, 5, 1, .causal)]
      fun (q_len, kv_len, masked, mask) => do
        let c ← tangentCase s!"a bias that changes, {masked} of 8 pairs masked" q_len kv_len mask
        return { c with inputs := { c.inputs with bias := some (← biasRows q_len kv_len masked) }
                        dBias := ← sixteenths q_len kv_len }
    let sink := each "sink"
      [(0, 3, 5, .none), (-2, 4, 4, .causal), (1, 3, 4, maskWhere 3 4 fun i _ => i != 1),
       (1 / 2, 2, 18, .none), (4, 1, 1, .none), (-8, 2, 5, .none),
       (1, 3, 4, .keyLength 0)]
      fun ((sink : Rat), q_len, kv_len, mask) => do
        let c ← tangentCase s!"a sink that changes, {sink}" q_len kv_len mask
        return { c with inputs := { c.inputs with sink := some sink }
                        dSink := mkRat (1 + (← below 32)) 16 }
    let together := each "together" [(3, 5, none), (2, 17, some (1 / 2)), (5, 5, some (-1))]
      fun (q_len, kv_len, (scale : Option Rat)) => do
        let c ← tangentCase "all together" q_len kv_len .causalBottomRight scale
        let bias ← biasRows q_len kv_len 1
        return { c with inputs := { c.inputs with
                          softcap := some 4, alibi := some (.bottomRight, 1 / 8),
                          bias := some bias, sink := some (1 / 2) }
                        dSlope := 3 / 8, dBias := ← sixteenths q_len kv_len, dSink := -5 / 4 }
    softcap ++ alibi ++ bias ++ sink ++ together

end Attention.Vectors
