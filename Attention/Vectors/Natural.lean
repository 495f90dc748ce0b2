module

public import Attention.Model.Interval
public import Attention.Vectors.Case

public section

/-! # One case of the natural exponential: inputs, and bounds of what the Spec makes of them

`attention` is run over intervals (`Attention.Model.Interval`); the theorem `enclosure-sound` says
that its result contains the true one. -/

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

/-- The enclosed outcome for one query: bounds as integers over 2 ^ `published`. -/
structure EnclosedRow where
  /-- Bounds of the log-sum-exp; none where every key is masked. -/
  logSumExp : Option (Int × Int)
  /-- Bounds of the row of the output. -/
  output : List (Int × Int)

/-- The precision that is computed with: exponentials between exp (−100) and exp 100 have a relative
width of at most 2 ^ −110 in it. -/
def working : Nat := 384

/-- The precision that bounds are written down with. -/
def published : Nat := 128

/-- A dyadic number as an interval. -/
def ofRat (x : Rat) : Interval working := Interval.ofDyadic x.num x.den.log2

/-- The bounds of an interval, rounded outward to the published precision. -/
def toBounds : Interval working → Except String (Int × Int)
  | .all => .error "the precision does not suffice for a bound"
  | .between lo hi =>
    let unit : Int := 2 ^ (working - published)
    .ok (lo / unit, Interval.ceilDiv hi unit)

/-- Bounds of each of a list of intervals. -/
def allBounds : List (Interval working) → Except String (List (Int × Int))
  | [] => .ok []
  | I :: rest => do return (← toBounds I) :: (← allBounds rest)

namespace NaturalCase

/-- Runs the Spec over intervals: `attention` for the outputs, `denominator` for the log-sum-exp. -/
def run (c : NaturalCase) : Except String (List EnclosedRow) := do
  unless (c.q.flatten ++ c.k.flatten ++ c.v.flatten).all exactInBf16 do
    throw "an input is not exact in bfloat16"
  unless c.scale.all exactInBf16 do
    throw "the scale is not exact in bfloat16"
  let Q ← toMatrix c.q.length c.head_dim (c.q.map (·.map ofRat))
  let K ← toMatrix c.k.length c.head_dim (c.k.map (·.map ofRat))
  let V ← toMatrix c.k.length c.value_dim (c.v.map (·.map ofRat))
  let scale : Interval working := match c.scale with
    | none => Interval.invSqrt c.head_dim
    | some s => ofRat s
  let modify : ScoreMod (Interval working) c.q.length c.k.length := c.mask.toMask.toScoreMod
  let O : Matrix (Interval working) _ _ := attention scale modify Q K V
  rows (List.finRange c.q.length) fun i => do
    let keys := scored scale modify Q K V i (List.finRange c.k.length)
    let scores := keys.map (·.score)
    let lse ← if scores.all (·.isNone) then pure none else
      some <$> toBounds (Interval.log (denominator scores))
    return { logSumExp := lse, output := ← allBounds O[i].toList }
where
  /-- The outcomes of some queries. -/
  rows {n : Nat} (queries : List (Fin n)) (row : Fin n → Except String EnclosedRow) :
      Except String (List EnclosedRow) :=
    match queries with
    | [] => .ok []
    | i :: rest => do return (← row i) :: (← rows rest row)

end NaturalCase

end Attention.Vectors
