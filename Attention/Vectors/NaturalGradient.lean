module

public import Attention.Spec.BackwardDropout
public import Attention.Spec.BackwardOptions
public import Attention.Spec.ScoreTemperature
public import Attention.Vectors.Heads
public import Attention.Vectors.Natural

public section

/-! # A case of the backward pass with the natural exponential: inputs, and bounds of the gradients

The Spec's backward pass is run over intervals (`Attention.Model.Interval`); the theorems
`gradient-enclosed` and `gradient-sink-enclosed` say that the result contains the true gradients. -/

namespace Attention.Vectors

open Spec Model

/-- Inputs of the backward pass of attention with several heads, with the reason why they are worth
testing. -/
structure NaturalGradientCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score; none: 1 / √head_dim. -/
  scale : Option Rat := none
  /-- Number of heads of K and V. -/
  num_kv_heads : Nat
  /-- How many query heads share one of them. -/
  group : Nat
  /-- Number of queries of each head. -/
  q_len : Nat
  /-- Number of keys of each head. -/
  kv_len : Nat
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- The rows of Q, head by head. -/
  q : List (List (List Rat))
  /-- The rows of K, head by head. -/
  k : List (List (List Rat))
  /-- The rows of V, head by head. -/
  v : List (List (List Rat))
  /-- Which keys each query may attend to, the same in every head. -/
  mask : MaskKind := .none
  /-- The bound of the scores; none: unbounded. -/
  softcap : Option Rat := none
  /-- Where query 0 stands, and for each head how much a score loses with each step of distance. -/
  alibi : Option (Alignment × List Rat) := none
  /-- Numbers to add to the scores, none: masked; one matrix for each head or one for all, a row for
  each query or one for all. -/
  bias : Option (List (List (List (Option Rat)))) := none
  /-- For each head one more score in every softmax, without a value. -/
  sinks : Option (List Rat) := none
  /-- The gradients of a loss by the output, head by head. -/
  dO : List (List (List Rat))
  /-- By the log-sum-exp, head by head. -/
  dLse : List (List Rat)

/-- The enclosed gradients, head by head: bounds as integers over 2 ^ `published`. -/
structure EnclosedGradients where
  /-- By the queries. -/
  dQ : List (List (List (Int × Int)))
  /-- By the keys. -/
  dK : List (List (List (Int × Int)))
  /-- By the values. -/
  dV : List (List (List (Int × Int)))
  /-- By the bias, of its shape; without one by a bias of 0 of each head. -/
  dBias : List (List (List (Int × Int)))
  /-- By the slope of each head; empty without slopes. -/
  slopes : List (Int × Int)
  /-- By the sink of each head; empty without sinks. -/
  sinks : List (Int × Int)
  /-- By the temperature of each head; empty without temperatures. -/
  temperatures : List (Int × Int)

/-- The bounds of a matrix. -/
@[expose] def boundsOf {m n : Nat} (A : Matrix (Interval working) m n) :
    Except String (List (List (Int × Int))) :=
  A.toList.mapM fun row => row.toList.mapM toBounds

namespace NaturalGradientCase

/-- The name of the definition that is run. -/
def leanName (c : NaturalGradientCase) : String :=
  if c.sinks.isSome then "Attention.Spec.sinkVjp" else "Attention.Spec.groupedQueryVjp"

/-- The bias of a head, a row for each query. -/
def biasOf (c : NaturalGradientCase) (head : Nat) : Option (List (List (Option Rat))) :=
  c.bias.map fun heads =>
    let rows := heads[if heads.length = 1 then 0 else head]!
    if rows.length = 1 then List.replicate c.q_len rows[0]! else rows

/-- The gradient by the bias, of its shape, from that by the bias of each head and query. -/
def biasGradient {q_len kv_len heads : Nat} (c : NaturalGradientCase)
    (dS : Vector (Matrix (Interval working) q_len kv_len) heads) :
    Except String (List (List (List (Int × Int)))) := do
  let some bias := c.bias | dS.toList.mapM boundsOf
  let byHead := if bias.length = heads then dS.toList else
    [sumMatrices (fun h : Fin heads => dS[h]) (List.finRange heads)]
  if bias.all (·.length = q_len) then byHead.mapM boundsOf
  else byHead.mapM fun dB => boundsOf (sumRows dB)

/-- Every number that is given. -/
def numbers (c : NaturalGradientCase) : List Rat :=
  (c.q ++ c.k ++ c.v ++ c.dO).flatten.flatten ++ c.dLse.flatten ++ c.scale.toList
    ++ c.softcap.toList ++ (c.alibi.map (·.2)).getD []
    ++ (c.bias.getD []).flatten.flatten.filterMap id ++ c.sinks.getD []

/-- What there is one of for all heads, of which the backward pass is a definition of its own. -/
inductive Variant (q_len kv_len : Nat) where
  /-- The formulas, with sinks where there are some. -/
  | plain
  /-- What the weights of each query head are multiplied by. -/
  | dropout (factors : Nat → WeightFactor (Interval working) q_len kv_len)
  /-- The temperature of each query head. -/
  | temperatures (each : List Rat)

/-- Runs the Spec over intervals, for numbers of any precision. maskOf: the mask of a query head, by
its number. -/
def compute (c : NaturalGradientCase)
    (maskOf : Nat → Mask c.q_len c.kv_len := fun _ => c.mask.toMask)
    (variant : Variant c.q_len c.kv_len := .plain) : Except String EnclosedGradients := do
  let heads := c.num_kv_heads * c.group
  let intervals := fun (x : List (List (List Rat))) => x.map (·.map (·.map ofRat))
  let Q ← toHeads heads c.q_len c.head_dim (intervals c.q)
  let K ← toHeads c.num_kv_heads c.kv_len c.head_dim (intervals c.k)
  let V ← toHeads c.num_kv_heads c.kv_len c.value_dim (intervals c.v)
  let dO ← toHeads heads c.q_len c.value_dim (intervals c.dO)
  let dLse ← toMatrix heads c.q_len (c.dLse.map (·.map ofRat))
  -- Made once, and not for each score.
  let biases := (List.range heads).toArray.map fun h =>
    ((c.biasOf h).getD []).toArray.map fun row => row.toArray.map (·.map ofRat)
  let modify := fun h : Fin heads =>
    let changed := modified (q_len := c.q_len) (kv_len := c.kv_len) c.softcap
      (c.alibi.map fun (alignment, slopes) => (alignment, slopes[h.val]!)) none .none
    let biased : ScoreMod (Interval working) c.q_len c.kv_len := fun i j s =>
      if c.bias.isNone then some s else (((biases[h.val]!)[i.val]!)[j.val]!).map (s + ·)
    changed.andThen (biased.andThen (maskOf h).toScoreMod)
  let slope := fun _ : Fin heads => c.softcap.elim ScoreSlope.one fun cap =>
    (ScoreSlope.softcap (ofRat cap) : ScoreSlope (Interval working) _ c.q_len c.kv_len)
  let scale := scaleOf c.scale c.head_dim
  let perHead := fun (xs : List Rat) => do
    let [xs] ← (·.toList) <$> toMatrix 1 heads [xs.map ofRat] | throw "not one for each head"
    return xs
  let (g, dSinks, dTemperatures) ← match variant, c.sinks with
    | .plain, none => pure (groupedQueryVjp scale modify slope Q K V (fun x => x) dO dLse, [], [])
    | .plain, some sinks =>
      let g := sinkVjp scale modify slope (← perHead sinks) Q K V (fun x => x) dO dLse
      pure (g.inputs, g.dSinks.toList, [])
    | .dropout factors, none =>
      let each := Vec.ofFn fun h : Fin heads =>
        -- Drawn once, and not for each use.
        let Z : Matrix (Interval working) c.q_len c.kv_len :=
          Vec.ofFn fun i => Vec.ofFn fun j => factors h i j
        vjpDropout scale (modify h) (slope h) Q[h] K[kvHead h] V[kvHead h] (fun i j => Z[i][j])
          (fun x => x) dO[h] dLse[h]
      pure (groupGradients each, [], [])
    | .temperatures given, none =>
      let ts ← perHead given
      let each := Vec.ofFn fun h : Fin heads => temperatureVjp scale ts[h] (modify h) (slope h) Q[h]
        K[kvHead h] V[kvHead h] (fun x => x) dO[h] dLse[h]
      pure (groupGradients (Vec.ofFn fun h => each[h].inputs), [],
        each.toList.map (·.dTemperature))
    | _, some _ => throw "there is no definition for sinks with dropout or temperatures"
  let dSlopes := c.alibi.elim [] fun (alignment, _) =>
    g.dBias.toList.map (slopeGradient alignment)
  return { dQ := ← g.dQ.toList.mapM boundsOf, dK := ← g.dK.toList.mapM boundsOf
           dV := ← g.dV.toList.mapM boundsOf, dBias := ← c.biasGradient g.dBias
           slopes := ← dSlopes.mapM toBounds, sinks := ← dSinks.mapM toBounds
           temperatures := ← dTemperatures.mapM toBounds }

/-- Runs the Spec over intervals. -/
def run (c : NaturalGradientCase) : Except String EnclosedGradients := do
  checkExact c.numbers
  c.compute

end NaturalGradientCase

end Attention.Vectors
