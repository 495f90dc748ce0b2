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

universe u

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

namespace NaturalGradientCase

/-- The name of the definition that is run. -/
def leanName (c : NaturalGradientCase) : String :=
  if c.sinks.isSome then "Attention.Spec.sinkVjp" else "Attention.Spec.groupedQueryVjp"

/-- The bias of a head, a row for each query. -/
@[expose] def biasOf (c : NaturalGradientCase) (head : Nat) : Option (List (List (Option Rat))) :=
  c.bias.map fun heads =>
    let rows := heads[if heads.length = 1 then 0 else head]!
    if rows.length = 1 then List.replicate c.q_len rows[0]! else rows

/-- Every number that is given. -/
@[expose] def numbers (c : NaturalGradientCase) : List Rat :=
  (c.q ++ c.k ++ c.v ++ c.dO).flatten.flatten ++ c.dLse.flatten ++ c.scale.toList
    ++ c.softcap.toList ++ (c.alibi.map (·.2)).getD []
    ++ (c.bias.getD []).flatten.flatten.filterMap id ++ c.sinks.getD []

section
variable {R : Type u}

/-- The heads' numbers beside the formulas. -/
inductive Variant (R : Type u) (q_len kv_len heads : Nat) where
  /-- Nothing. -/
  | plain
  /-- A sink for each query head. -/
  | sinks (each : Vec R heads)
  /-- The factors of the weights of each query head. -/
  | dropout (factors : Nat → WeightFactor R q_len kv_len)
  /-- The temperature of each query head. -/
  | temperatures (each : Vec R heads)

variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [IntCast R] [Exp R R]
variable (number : Rat → R) (c : NaturalGradientCase)

/-- The bias of a head, for one look at each number. -/
@[expose] def biasArray (head : Nat) : Array (Array (Option R)) :=
  ((c.biasOf head).getD []).toArray.map fun row => row.toArray.map (·.map number)

/-- The changes of the scores of a head: softcap, ALiBi, bias, mask, in this order. -/
@[expose] def modify (bias : Array (Array (Option R))) (mask : Mask c.q_len c.kv_len) (head : Nat) :
    ScoreMod R c.q_len c.kv_len :=
  let changed := modified number c.softcap
    (c.alibi.map fun (alignment, slopes) => (alignment, slopes[head]!)) none .none
  let biased : ScoreMod R c.q_len c.kv_len := fun i j s =>
    if c.bias.isNone then some s else ((bias[i.val]!)[j.val]!).map (s + ·)
  changed.andThen (biased.andThen mask.toScoreMod)

/-- The slope of what becomes of a score. -/
@[expose] def slope : ScoreSlope R R c.q_len c.kv_len :=
  c.softcap.elim ScoreSlope.one fun cap => ScoreSlope.softcap (number cap)

/-- The gradients of grouped heads, and those by what each head has of its own. -/
structure Found (R : Type u) (q_len kv_len d d_v heads num_kv_heads : Nat) where
  /-- By the inputs. -/
  inputs : GroupedGradients R q_len kv_len d d_v heads num_kv_heads
  /-- By the sinks. -/
  sinks : List R
  /-- By the temperatures. -/
  temperatures : List R

/-- The gradients by the Spec, over any numbers. -/
@[expose] def find {q_len kv_len d d_v num_kv_heads group : Nat} (scale : R)
    (modify : Fin (num_kv_heads * group) → ScoreMod R q_len kv_len)
    (slope : ScoreSlope R R q_len kv_len)
    (variant : Variant R q_len kv_len (num_kv_heads * group))
    (Q : Vector (Matrix R q_len d) (num_kv_heads * group))
    (K : Vector (Matrix R kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads)
    (dO : Vector (Matrix R q_len d_v) (num_kv_heads * group))
    (dLse : Vector (Vec R q_len) (num_kv_heads * group)) :
    Found R q_len kv_len d d_v (num_kv_heads * group) num_kv_heads :=
  match variant with
  | .plain => ⟨groupedQueryVjp scale modify (fun _ => slope) Q K V (fun x => x) dO dLse, [], []⟩
  | .sinks each =>
    let g := sinkVjp scale modify (fun _ => slope) each Q K V (fun x => x) dO dLse
    ⟨g.inputs, g.dSinks.toList, []⟩
  | .dropout factors =>
    let each := Vec.ofFn fun h : Fin (num_kv_heads * group) =>
      -- Drawn once, and not for each use.
      let Z : Matrix R q_len kv_len := Vec.ofFn fun i => Vec.ofFn fun j => factors h i j
      vjpDropout scale (modify h) slope Q[h] K[kvHead h] V[kvHead h] (fun i j => Z[i][j])
        (fun x => x) dO[h] dLse[h]
    ⟨groupGradients each, [], []⟩
  | .temperatures ts =>
    let each := Vec.ofFn fun h : Fin (num_kv_heads * group) =>
      temperatureVjp scale ts[h] (modify h) slope Q[h] K[kvHead h] V[kvHead h] (fun x => x) dO[h]
        dLse[h]
    ⟨groupGradients (Vec.ofFn fun h => each[h].inputs), [], each.toList.map (·.dTemperature)⟩

/-- The gradient by the bias, of its shape, from that by the bias of each head and query. -/
@[expose] def biasGradient {q_len kv_len heads : Nat}
    (dS : Vector (Matrix R q_len kv_len) heads) : List (List (List R)) :=
  match c.bias with
  | none => dS.toList.map rowsOf
  | some bias =>
    let byHead := if bias.length = heads then dS.toList else
      [sumMatrices (fun h : Fin heads => dS[h]) (List.finRange heads)]
    if bias.all (·.length = q_len) then byHead.map rowsOf
    else byHead.map fun dB => rowsOf (sumRows dB)

/-- The gradients by the slopes. -/
@[expose] def slopeGradients {q_len kv_len heads : Nat}
    (dS : Vector (Matrix R q_len kv_len) heads) : List R :=
  c.alibi.elim [] fun (alignment, _) => dS.toList.map (slopeGradient alignment)

end

/-- A number for each query head. -/
@[expose] def perHead (heads : Nat) (xs : List Rat) :
    Except String (Vec (Interval working) heads) := do
  let A ← toMatrix 1 heads ([xs].map (·.map ofRat))
  return A[0]

/-- Runs the Spec over intervals, for numbers of any precision. maskOf: the mask of a query head, by
its number. -/
@[expose] def compute (c : NaturalGradientCase) (maskOf : Nat → Mask c.q_len c.kv_len)
    (variant : Variant (Interval working) c.q_len c.kv_len (c.num_kv_heads * c.group)) :
    Except String EnclosedGradients := do
  let heads := c.num_kv_heads * c.group
  let Q ← toHeads heads c.q_len c.head_dim (c.q.map (·.map (·.map ofRat)))
  let K ← toHeads c.num_kv_heads c.kv_len c.head_dim (c.k.map (·.map (·.map ofRat)))
  let V ← toHeads c.num_kv_heads c.kv_len c.value_dim (c.v.map (·.map (·.map ofRat)))
  let dO ← toHeads heads c.q_len c.value_dim (c.dO.map (·.map (·.map ofRat)))
  let dLse ← toMatrix heads c.q_len (c.dLse.map (·.map ofRat))
  -- Made once, and not for each score.
  let biases := Vec.ofFn fun h : Fin heads => c.biasArray ofRat h.val
  let g := find (scaleOf c.scale c.head_dim)
    (fun h => c.modify ofRat biases[h] (maskOf h.val) h.val) (c.slope ofRat) variant Q K V dO dLse
  let dQ ← g.inputs.dQ.toList.mapM boundsOf
  let dK ← g.inputs.dK.toList.mapM boundsOf
  let dV ← g.inputs.dV.toList.mapM boundsOf
  let dBias ← (c.biasGradient g.inputs.dBias).mapM (·.mapM (·.mapM toBounds))
  let slopes ← (c.slopeGradients g.inputs.dBias).mapM toBounds
  let sinks ← g.sinks.mapM toBounds
  let temperatures ← g.temperatures.mapM toBounds
  return { dQ, dK, dV, dBias, slopes, sinks, temperatures }

/-- The heads' numbers, over intervals, where there is neither dropout nor a temperature. -/
@[expose] def sinkVariant (c : NaturalGradientCase) :
    Except String (Variant (Interval working) c.q_len c.kv_len (c.num_kv_heads * c.group)) :=
  match c.sinks with
  | none => .ok .plain
  | some sinks => return .sinks (← perHead _ sinks)

/-- Runs the Spec over intervals. -/
@[expose] def run (c : NaturalGradientCase) : Except String EnclosedGradients := do
  checkExact c.numbers
  c.compute (fun _ => c.mask.toMask) (← c.sinkVariant)

end NaturalGradientCase

end Attention.Vectors
