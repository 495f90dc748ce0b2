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

universe u

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

/-- The name of the definition that is run. -/
def leanName (c : TangentCase) : String :=
  if c.inputs.sink.isSome then "Attention.Spec.jvpSink" else "Attention.Spec.jvp"

section
variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [IntCast R] [Exp R R]
variable (number : Rat → R)

/-- A number that changes. -/
@[expose] def dualOf (x dx : Rat) : Dual R := ⟨number x, number dx⟩

/-- The changes of a score that has a rate: softcap, ALiBi, bias, mask, in this order. -/
@[expose] def modify (c : TangentCase) (q_len kv_len : Nat) : ScoreMod (Dual R) q_len kv_len :=
  let same : ScoreMod (Dual R) q_len kv_len := fun _ _ s => some s
  let softcap := c.inputs.softcap.elim same fun cap => ScoreMod.softcap (.const (number cap))
  let alibi := c.inputs.alibi.elim same fun (alignment, slope) =>
    ScoreMod.alibi alignment (dualOf number slope c.dSlope)
  let bias := c.inputs.bias.elim same fun rows =>
    ScoreMod.bias (Vec.ofFn fun i => Vec.ofFn fun j =>
      ((rows[i.val]!)[j.val]!).map (dualOf number · ((c.dBias[i.val]!)[j.val]!)))
  softcap.andThen (alibi.andThen (bias.andThen c.inputs.mask.toMask.toScoreMod))

variable (c : TangentCase) {q_len kv_len : Nat} (scale : R)
variable (Q dQ : Matrix R q_len c.inputs.head_dim) (K dK : Matrix R kv_len c.inputs.head_dim)

/-- The scores of a query, with their rates, and that of the sink if there is one. -/
@[expose] def scores (i : Fin q_len) : List (Option (Dual R)) :=
  c.inputs.sink.toList.map (fun sink => some (dualOf number sink c.dSink)) ++
    (List.finRange kv_len).map
      (score (Dual.const scale) (c.modify number q_len kv_len) (Q.dual dQ) (K.dual dK) i)

/-- The rates of the output. -/
@[expose] def output (V dV : Matrix R kv_len c.inputs.value_dim) :
    Matrix R q_len c.inputs.value_dim :=
  match c.inputs.sink with
  | none => jvp scale (c.modify number q_len kv_len) Q dQ K dK V dV
  | some sink =>
    jvpSink scale (c.modify number q_len kv_len) (number sink) (number c.dSink) Q dQ K dK V dV

end

/-- Every number that is given. -/
@[expose] def numbers (c : TangentCase) : List Rat :=
  c.inputs.numbers ++ c.dq.flatten ++ c.dk.flatten ++ c.dv.flatten ++ c.dBias.flatten
    ++ [c.dSlope, c.dSink]

/-- The rate of the log-sum-exp of a row; none where every key is masked. -/
@[expose] def lseRate (scores : List (Option (Dual (Interval working)))) :
    Except String (Option (Int × Int)) :=
  if scores.all (·.isNone) then return none else some <$> toBounds (lseTangent scores)

/-- Runs the Spec over intervals: for each query the rates of the log-sum-exp and of the output. -/
@[expose] def run (c : TangentCase) : Except String (List EnclosedRow) := do
  checkExact c.numbers
  let i := c.inputs
  let Q ← toMatrix i.q.length i.head_dim (i.q.map (·.map ofRat))
  let dQ ← toMatrix i.q.length i.head_dim (c.dq.map (·.map ofRat))
  let K ← toMatrix i.k.length i.head_dim (i.k.map (·.map ofRat))
  let dK ← toMatrix i.k.length i.head_dim (c.dk.map (·.map ofRat))
  let V ← toMatrix i.k.length i.value_dim (i.v.map (·.map ofRat))
  let dV ← toMatrix i.k.length i.value_dim (c.dv.map (·.map ofRat))
  let scale := scaleOf i.scale i.head_dim
  let O := c.output ofRat scale Q dQ K dK V dV
  (List.finRange i.q.length).mapM fun n => do
    let lse ← lseRate (c.scores ofRat scale Q dQ K dK n)
    return { logSumExp := lse, output := ← O[n].toList.mapM toBounds }

end TangentCase

end Attention.Vectors
