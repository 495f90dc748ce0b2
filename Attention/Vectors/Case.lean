module

public import Attention.Model.Exact
public import Attention.Spec.Masks
public import Attention.Spec.Online

public section

/-! # One case: inputs, and what the Spec makes of them over the exact model -/

namespace Attention.Vectors

open Spec

/-- How the mask of a case is written down. -/
inductive MaskKind where
  /-- Every query attends to every key. -/
  | none
  /-- Query `i` attends to key `j` if and only if j ≤ i. -/
  | causal
  /-- Causal, aligned bottom-right: the last query stands at the last key. -/
  | causalBottomRight
  /-- The sliding window, with inclusive bounds; none: no bound on that side. -/
  | window (alignment : Alignment) (left right : Option Nat)
  /-- Every query attends to the first `length` keys. -/
  | keyLength (length : Nat)
  /-- The document of each query and of each key: a query attends to the keys of its own. -/
  | document (queries keys : List Nat)
  /-- One Boolean for each query and key; true means the query may attend. -/
  | boolean (rows : List (List Bool))

/-- The mask as the Spec takes it. -/
def MaskKind.toMask {q_len kv_len : Nat} : MaskKind → Mask q_len kv_len
  | .none => Mask.full
  | .causal => Mask.causal .topLeft
  | .causalBottomRight => Mask.causal .bottomRight
  | .window alignment left right => Mask.window alignment left right
  | .keyLength length => Mask.keyLength length
  | .document queries keys => Mask.document (Vec.ofFn fun i => queries[i.val]!)
      (Vec.ofFn fun j => keys[j.val]!)
  | .boolean rows => fun i j => (rows[i.val]!)[j.val]!

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

/-- The outcome for one query. -/
structure RowResult where
  /-- The largest unmasked score. -/
  max : Option Int
  /-- The softmax denominator against that maximum. -/
  denominator : Rat
  /-- The row of the output. -/
  output : List Rat

/-- Rows as a matrix; a row or column that is missing or too many is an error. -/
def toMatrix {α : Type} [Inhabited α] (m n : Nat) (rows : List (List α)) :
    Except String (Matrix α m n) :=
  if rows.length = m ∧ rows.all (·.length = n) then
    .ok (Vec.ofFn fun i => Vec.ofFn fun j => (rows[i.val]!)[j.val]!)
  else
    .error s!"expected {m} rows of {n} numbers"

/-- A number is exact in bfloat16: a power of two times an integer of fewer than 9 bits. -/
def exactInBf16 (x : Rat) : Bool := Id.run do
  let mut n := x.num.natAbs
  for _ in [0:64] do
    if n % 2 = 0 then n := n / 2
  return n < 256 && x.den ∣ 2 ^ 64

namespace Case

/-- Runs the Spec over the exact model: `attention` for the outputs, `Online.ofBlock` for maximum
and denominator. -/
def run (c : Case) : Except String (List RowResult) := do
  let Q ← toMatrix c.q.length c.head_dim c.q
  let K ← toMatrix c.k.length c.head_dim c.k
  let V ← toMatrix c.k.length c.value_dim c.v
  let numbers := (c.q.flatten ++ c.k.flatten).map (fun (x : Int) => (x : Rat)) ++ c.v.flatten
  unless numbers.all exactInBf16 do
    throw "an input is not exact in bfloat16"
  let modify : ScoreMod Int c.q.length c.k.length := c.mask.toMask.toScoreMod
  let O : Matrix Rat _ _ := attention c.scale modify Q K V
  return (List.finRange c.q.length).map fun i =>
    let state : Online.State Int Rat _ :=
      Online.ofBlock (scored c.scale modify Q K V i (List.finRange c.k.length))
    { max := state.m, denominator := state.l, output := O[i].toList }

end Case

end Attention.Vectors
