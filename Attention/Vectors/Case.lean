module

public import Attention.Spec.LogSumExp
public import Attention.Vectors.Algorithm

public section

/-! # One case: inputs, and what the Spec makes of them over the exact model -/

namespace Attention.Vectors

open Spec

universe u

/-- Inputs of attention, with the reason why they are worth testing. -/
structure Case where
  /-- Which fault this case shows. -/
  reason : String
  /-- The factor of every score. -/
  scale : Int := 1
  /-- Number of columns of Q and K. -/
  head_dim : Nat
  /-- Number of columns of V. -/
  value_dim : Nat
  /-- The rows of Q. -/
  q : List (List Int)
  /-- The rows of K. -/
  k : List (List Int)
  /-- The rows of V. -/
  v : List (List Rat)
  /-- Which keys each query may attend to. -/
  mask : MaskKind := .none
  /-- The definition that computes the output. -/
  algorithm : Algorithm := .attention
  /-- Every denominator is a power of two, so that the log-sum-exp is known exactly. -/
  exactLogSumExp : Bool := false

/-- The outcome for one query. -/
structure RowResult where
  /-- The largest unmasked score. -/
  max : Option Int
  /-- The softmax denominator against that maximum. -/
  denominator : Rat
  /-- The row of the output. -/
  output : List Rat
  /-- The log-sum-exp, where that is asked for and an integer. -/
  logSumExp : Option Int := none

/-- Rows as a matrix; a row or column that is missing or too many is an error. -/
@[expose] def toMatrix {α : Type} [Inhabited α] (m n : Nat) (rows : List (List α)) :
    Except String (Matrix α m n) :=
  if rows.length = m ∧ rows.all (·.length = n) then
    .ok (Vec.ofFn fun i => Vec.ofFn fun j => (rows[i.val]!)[j.val]!)
  else
    .error s!"expected {m} rows of {n} numbers"

/-- The rows of a matrix. -/
@[expose] def rowsOf {α : Type u} {m n : Nat} (A : Matrix α m n) : List (List α) :=
  A.toList.map (·.toList)

/-- A number without so many of its factors 2. -/
@[expose] def withoutTwos : Nat → Nat → Nat
  | 0, n => n
  | twos + 1, n => if n % 2 = 0 then withoutTwos twos (n / 2) else n

/-- A number is exact in bfloat16: a power of two times an integer of fewer than 9 bits. -/
@[expose] def exactInBf16 (x : Rat) : Bool :=
  withoutTwos 64 x.num.natAbs < 256 && x.den ∣ 2 ^ 64

/-- The results of the Spec for one row: `Online.ofBlock` for maximum and denominator, beside an
output that was computed. -/
@[expose] def rowResult {d : Nat} (row : List (ScoredValue Int Rat d)) (output : Vec Rat d) :
    RowResult :=
  let state := Online.ofBlock row
  { max := state.m, denominator := state.l, output := output.toList }

/-- The row with its log-sum-exp, found by its denominator, and checked by the relation
`IsLogSumExp`; a row without a key has none. -/
@[expose] def RowResult.withLogSumExp (r : RowResult) (scores : List (Option Int)) :
    Except String RowResult :=
  let L : Option Int := r.max.map (· + (r.denominator.num.natAbs.log2 : Int))
  if IsLogSumExp Rat L scores then .ok { r with logSumExp := L }
  else .error "a denominator is no power of two"

/-- An error unless every number is exact in bfloat16. -/
@[expose] def checkExact (numbers : List Rat) : Except String Unit :=
  unless numbers.all exactInBf16 do throw "an input is not exact in bfloat16"

/-- Integers as rationals. -/
@[expose] def rats (rows : List (List Int)) : List (List Rat) :=
  rows.map fun row => row.map fun (x : Int) => (x : Rat)

/-- The keys as a query of a case sees them, with the sink if there is one. -/
@[expose] def Case.row (c : Case) (Q : Matrix Int c.q.length c.head_dim)
    (K : Matrix Int c.k.length c.head_dim) (V : Matrix Rat c.k.length c.value_dim)
    (i : Fin c.q.length) : List (ScoredValue Int Rat c.value_dim) :=
  let keys := scored c.scale c.mask.toMask.toScoreMod Q K V i (List.finRange c.k.length)
  match c.algorithm.sink with
  | none => keys
  | some sink => withSink sink keys

/-- Runs the Spec over the exact model. -/
@[expose] def Case.run (c : Case) : Except String (List RowResult) := do
  checkExact ((rats c.q).flatten ++ (rats c.k).flatten ++ c.v.flatten)
  let Q ← toMatrix c.q.length c.head_dim c.q
  let K ← toMatrix c.k.length c.head_dim c.k
  let V ← toMatrix c.k.length c.value_dim c.v
  unless c.algorithm.Fits c.q.length c.k.length do
    throw "a tile holds nothing, or the devices do not have each query and each key once"
  let outputs ← c.algorithm.run c.scale c.mask Q K V
  unless outputs.length = c.q.length do throw "not one output for each query"
  ((List.finRange c.q.length).zip outputs).mapM fun (i, output) =>
    let row := c.row Q K V i
    let result := rowResult row output
    if c.exactLogSumExp then result.withLogSumExp (row.map (·.score)) else .ok result

end Attention.Vectors
