module

public import Attention.Spec.Tangent
public import Attention.Vectors.Natural

public section

/-! # A case of the derivative forwards: inputs with their rates, and bounds of the outputs' rates

The Spec's `jvp` is run over intervals (`Attention.Model.Interval`), as dual numbers of them; the
theorems `tangent-enclosed`, `tangent-sink-enclosed` and `tangent-lse-enclosed` say that the result
contains the true rates. -/

namespace Attention.Vectors

open Spec Model

/-- Inputs of attention with the natural exponential, and the rates at which they change; the scale
and the softcap do not. -/
structure TangentCase where
  /-- The inputs. -/
  inputs : NaturalCase
  /-- The rates of the rows of Q. -/
  dq : List (List Rat)
  /-- The rates of the rows of K. -/
  dk : List (List Rat)
  /-- The rates of the rows of V. -/
  dv : List (List Rat)
  /-- The rate of the slope; 0 without one. -/
  dSlope : Rat := 0
  /-- The rates of the bias; none without one. A pair that the bias masks stays masked. -/
  dBias : List (List Rat) := []
  /-- The rate of the sink; 0 without one. -/
  dSink : Rat := 0

namespace TangentCase

/-- A number of the working precision that changes. -/
def dualOf (x dx : Rat) : Dual (Interval working) := ⟨ofRat x, ofRat dx⟩

/-- The name of the definition that is run. -/
def leanName (c : TangentCase) : String :=
  if c.inputs.sink.isSome then "Attention.Spec.jvpSink" else "Attention.Spec.jvp"

/-- What becomes of a score that changes: softcap, ALiBi, bias, mask, in this order. -/
def modify (c : TangentCase) (q_len kv_len : Nat) :
    ScoreMod (Dual (Interval working)) q_len kv_len :=
  let same : ScoreMod (Dual (Interval working)) q_len kv_len := fun _ _ s => some s
  let softcap := c.inputs.softcap.elim same fun cap => ScoreMod.softcap (.const (ofRat cap))
  let alibi := c.inputs.alibi.elim same fun (alignment, slope) =>
    ScoreMod.alibi alignment (dualOf slope c.dSlope)
  let bias := c.inputs.bias.elim same fun rows =>
    ScoreMod.bias (Vec.ofFn fun i => Vec.ofFn fun j =>
      ((rows[i.val]!)[j.val]!).map (dualOf · ((c.dBias[i.val]!)[j.val]!)))
  softcap.andThen (alibi.andThen (bias.andThen c.inputs.mask.toMask.toScoreMod))

/-- Every number that is given. -/
def numbers (c : TangentCase) : List Rat :=
  c.inputs.numbers ++ c.dq.flatten ++ c.dk.flatten ++ c.dv.flatten ++ c.dBias.flatten
    ++ [c.dSlope, c.dSink]

/-- The rate of the log-sum-exp of a row; none where every key is masked. -/
def lseRate (scores : List (Option (Dual (Interval working)))) :
    Except String (Option (Int × Int)) :=
  if scores.all (·.isNone) then return none else some <$> toBounds (lseTangent scores)

/-- Runs the Spec over intervals: for each query the rates of the log-sum-exp and of the output. -/
def run (c : TangentCase) : Except String (List EnclosedRow) := do
  checkExact c.numbers
  let i := c.inputs
  let rows (m n : Nat) (x : List (List Rat)) : Except String (Matrix (Interval working) m n) :=
    toMatrix m n (x.map (·.map ofRat))
  let q_len := i.q.length
  let kv_len := i.k.length
  let Q ← rows q_len i.head_dim i.q
  let dQ ← rows q_len i.head_dim c.dq
  let K ← rows kv_len i.head_dim i.k
  let dK ← rows kv_len i.head_dim c.dk
  let V ← rows kv_len i.value_dim i.v
  let dV ← rows kv_len i.value_dim c.dv
  let scale := scaleOf i.scale i.head_dim
  let modify := c.modify q_len kv_len
  let O := match i.sink with
    | none => jvp scale modify Q dQ K dK V dV
    | some sink => jvpSink scale modify (ofRat sink) (ofRat c.dSink) Q dQ K dK V dV
  let beside := i.sink.toList.map fun sink => some (dualOf sink c.dSink)
  (List.finRange q_len).mapM fun n => do
    let scores := (List.finRange kv_len).map
      (score (Dual.const scale) modify (Q.dual dQ) (K.dual dK) n)
    return { logSumExp := ← lseRate (beside ++ scores), output := ← O[n].toList.mapM toBounds }

end TangentCase

end Attention.Vectors
