module

public import Attention.Model.LogSumExp
public import Attention.Spec.ScoreMods
public import Attention.Spec.Sink
public import Attention.Vectors.Case

public section

/-! # One case of the natural exponential: inputs, and bounds of what the Spec makes of them

The Spec is run over intervals (`Attention.Model.Interval`); the theorem `enclosure-sound` says that
the result contains the true one. -/

namespace Attention.Vectors

open Spec Model

/-- Inputs of attention, with the reason why they are worth testing. -/
structure NaturalCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score; none: 1 / √head_dim. -/
  scale : Option Rat := none
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- The rows of Q. -/
  q : List (List Rat)
  /-- The rows of K. -/
  k : List (List Rat)
  /-- The rows of V. -/
  v : List (List Rat)
  /-- Which keys each query may attend to. -/
  mask : MaskKind := .none
  /-- The bound of the scores; none: unbounded. -/
  softcap : Option Rat := none
  /-- Where query 0 stands, and how much a score loses with each step of distance. -/
  alibi : Option (Alignment × Rat) := none
  /-- A number to add to each score; none: masked. -/
  bias : Option (List (List (Option Rat))) := none
  /-- One more score in every softmax, without a value. -/
  sink : Option Rat := none

/-- The enclosed outcome for one query: bounds as integers over 2 ^ `published`. -/
structure EnclosedRow where
  /-- Bounds of the log-sum-exp; none where every key is masked. -/
  logSumExp : Option (Int × Int)
  /-- Bounds of the row of the output. -/
  output : List (Int × Int)

/-- The precision that is computed with: exponentials between exp (−100) and exp 100 have a relative
width of at most 2 ^ −110 in it. -/
@[expose] def working : Nat := 384

/-- The precision that bounds are written down with. -/
@[expose] def published : Nat := 128

/-- A dyadic number as an interval. -/
@[expose] def ofRat (x : Rat) : Interval working := Interval.ofDyadic x.num x.den.log2

/-- The bounds of an interval, rounded outward to the published precision. -/
@[expose] def toBounds : Interval working → Except String (Int × Int)
  | .all => .error "the precision does not suffice for a bound"
  | .between lo hi =>
    let unit : Int := 2 ^ (working - published)
    .ok (lo / unit, Interval.ceilDiv hi unit)

/-- The enclosed outcome of a row: its log-sum-exp beside an output that was computed. -/
def enclosedRow {d : Nat} (scores : List (Option (Interval working)))
    (output : Vec (Interval working) d) : Except String EnclosedRow := do
  let lse ← (Interval.logSumExp scores).mapM toBounds
  return { logSumExp := lse, output := ← output.toList.mapM toBounds }

/-- A scale; none: 1 / √head_dim. -/
@[expose] def scaleOf (scale : Option Rat) (head_dim : Nat) : Interval working :=
  scale.elim (Interval.invSqrt head_dim) ofRat

/-- What becomes of a score: softcap, ALiBi, bias, mask, in this order. -/
def modified {q_len kv_len : Nat} (softcap : Option Rat) (alibi : Option (Alignment × Rat))
    (bias : Option (List (List (Option Rat)))) (mask : MaskKind) :
    ScoreMod (Interval working) q_len kv_len :=
  let same : ScoreMod (Interval working) q_len kv_len := fun _ _ s => some s
  let softcap := softcap.elim same fun cap => ScoreMod.softcap (ofRat cap)
  let alibi := alibi.elim same fun (alignment, slope) => ScoreMod.alibi alignment (ofRat slope)
  let bias := bias.elim same fun rows =>
    ScoreMod.bias (Vec.ofFn fun i => Vec.ofFn fun j => ((rows[i.val]!)[j.val]!).map ofRat)
  softcap.andThen (alibi.andThen (bias.andThen mask.toMask.toScoreMod))

namespace NaturalCase

/-- The name of the definition that is run. -/
def leanName (c : NaturalCase) : String :=
  if c.sink.isSome then "Attention.Spec.attentionSink" else "Attention.Spec.attention"

/-- What becomes of a score. -/
def modify (c : NaturalCase) (q_len kv_len : Nat) : ScoreMod (Interval working) q_len kv_len :=
  modified c.softcap c.alibi c.bias c.mask

/-- Every number that is given. -/
def numbers (c : NaturalCase) : List Rat :=
  c.q.flatten ++ c.k.flatten ++ c.v.flatten ++ c.scale.toList ++ c.softcap.toList
    ++ c.alibi.toList.map (·.2) ++ (c.bias.getD []).flatten.filterMap id ++ c.sink.toList

/-- Runs the Spec over intervals. -/
def run (c : NaturalCase) : Except String (List EnclosedRow) := do
  checkExact c.numbers
  let Q ← toMatrix c.q.length c.head_dim (c.q.map (·.map ofRat))
  let K ← toMatrix c.k.length c.head_dim (c.k.map (·.map ofRat))
  let V ← toMatrix c.k.length c.value_dim (c.v.map (·.map ofRat))
  let scale := scaleOf c.scale c.head_dim
  let modify := c.modify c.q.length c.k.length
  let rows := (List.finRange c.q.length).map fun i =>
    scored (R := Interval working) scale modify Q K V i (List.finRange c.k.length)
  match c.sink.map ofRat with
  | none =>
    let O := attention scale modify Q K V
    (rows.zip O.toList).mapM fun (row, output) => enclosedRow (row.map (·.score)) output
  | some sink =>
    let O := attentionSink scale modify sink Q K V
    (rows.zip O.toList).mapM fun (row, output) =>
      enclosedRow ((withSink sink row).map (·.score)) output

end NaturalCase

end Attention.Vectors
