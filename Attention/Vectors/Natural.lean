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

universe u

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

/-- Bounds of a matrix, as integers over 2 ^ `published`. -/
abbrev RowBounds := List (List (Int × Int))

/-- The bounds of a matrix. -/
@[expose] def boundsOf {m n : Nat} (A : Matrix (Interval working) m n) :
    Except String RowBounds :=
  A.toList.mapM fun row => row.toList.mapM toBounds

/-- The enclosed outcome of a row: its log-sum-exp beside an output that was computed. -/
@[expose] def enclosedRow {d : Nat} (scores : List (Option (Interval working)))
    (output : Vec (Interval working) d) : Except String EnclosedRow := do
  let lse ← (Interval.logSumExp scores).mapM toBounds
  return { logSumExp := lse, output := ← output.toList.mapM toBounds }

/-- A scale; none: 1 / √head_dim. -/
@[expose] def scaleOf (scale : Option Rat) (head_dim : Nat) : Interval working :=
  scale.elim (Interval.invSqrt head_dim) ofRat

section
variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [IntCast R] [Exp R R]
variable (number : Rat → R)

/-- The changes of a score: softcap, ALiBi, bias, mask, in this order. `number`: a fraction as one
of the numbers that are computed with. -/
@[expose] def modified {q_len kv_len : Nat} (softcap : Option Rat)
    (alibi : Option (Alignment × Rat)) (bias : Option (List (List (Option Rat))))
    (mask : MaskKind) : ScoreMod R q_len kv_len :=
  let same : ScoreMod R q_len kv_len := fun _ _ s => some s
  let softcap := softcap.elim same fun cap => ScoreMod.softcap (number cap)
  let alibi := alibi.elim same fun (alignment, slope) => ScoreMod.alibi alignment (number slope)
  let bias := bias.elim same fun rows =>
    ScoreMod.bias (Vec.ofFn fun i => Vec.ofFn fun j => ((rows[i.val]!)[j.val]!).map number)
  softcap.andThen (alibi.andThen (bias.andThen mask.toMask.toScoreMod))

namespace NaturalCase

/-- The changes of a score. -/
@[expose] def modify (c : NaturalCase) (q_len kv_len : Nat) : ScoreMod R q_len kv_len :=
  modified number c.softcap c.alibi c.bias c.mask

/-- The keys as a query of a case sees them, with the sink if there is one. -/
@[expose] def row (c : NaturalCase) {q_len kv_len : Nat} (scale : R)
    (Q : Matrix R q_len c.head_dim) (K : Matrix R kv_len c.head_dim)
    (V : Matrix R kv_len c.value_dim) (i : Fin q_len) : List (ScoredValue R R c.value_dim) :=
  let keys := scored scale (c.modify number q_len kv_len) Q K V i (List.finRange kv_len)
  match c.sink with
  | none => keys
  | some sink => withSink (number sink) keys

/-- The output of a case: attention, or attention with the sink if there is one. -/
@[expose] def output (c : NaturalCase) {q_len kv_len : Nat} (scale : R)
    (Q : Matrix R q_len c.head_dim) (K : Matrix R kv_len c.head_dim)
    (V : Matrix R kv_len c.value_dim) : Matrix R q_len c.value_dim :=
  let modify := c.modify number q_len kv_len
  match c.sink with
  | none => attention scale modify Q K V
  | some sink => attentionSink scale modify (number sink) Q K V

end NaturalCase

end

namespace NaturalCase

/-- The name of the definition that is run. -/
def leanName (c : NaturalCase) : String :=
  if c.sink.isSome then "Attention.Spec.attentionSink" else "Attention.Spec.attention"

/-- Every number that is given. -/
@[expose] def numbers (c : NaturalCase) : List Rat :=
  c.q.flatten ++ c.k.flatten ++ c.v.flatten ++ c.scale.toList ++ c.softcap.toList
    ++ c.alibi.toList.map (·.2) ++ (c.bias.getD []).flatten.filterMap id ++ c.sink.toList

/-- Runs the Spec over intervals. -/
@[expose] def run (c : NaturalCase) : Except String (List EnclosedRow) := do
  checkExact c.numbers
  let Q ← toMatrix c.q.length c.head_dim (c.q.map (·.map ofRat))
  let K ← toMatrix c.k.length c.head_dim (c.k.map (·.map ofRat))
  let V ← toMatrix c.k.length c.value_dim (c.v.map (·.map ofRat))
  let scale := scaleOf c.scale c.head_dim
  let O := c.output ofRat scale Q K V
  (List.finRange c.q.length).mapM fun i =>
    enclosedRow ((c.row ofRat scale Q K V i).map (·.score)) O[i]

end NaturalCase

end Attention.Vectors
