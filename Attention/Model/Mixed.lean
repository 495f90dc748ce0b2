module

public import Attention.Model.RoundedScores
public import Attention.Spec.Format

public section

/-! # Attention in two precisions

One output of attention as kernels compute it: operands and results in a format of few bits, scores,
exponentials and sums in a format of more, the weights stored in a format of few bits where they
meet the values, and the denominator a sum of the weights as they were. In each format numbers may
be below its normal ones. Each result is the nearest one. Keys one after the other, the maximum
first. -/

namespace Attention.Model

open Spec

universe u

/-- How such a function rounds. -/
structure Mixed where
  /-- The format of scores, exponentials, sums and quotients. -/
  accumulator : Format
  /-- The format of a weight where it meets its value. -/
  weights : Format

variable {R : Type u} [OrderedField R] {q_len kv_len d d_v : Nat}

attribute [local instance] Lean.Grind.Ring.intCast

namespace Mixed

variable (R) in
/-- The relative errors of such a function, and that of a weight below the normal numbers. -/
@[expose] def precision (p : Mixed) : Precision R :=
  ⟨(2 : R) ^ (-(p.accumulator.precision : Int)), (2 : R) ^ (-(p.accumulator.precision : Int)),
    (2 : R) ^ (-(p.accumulator.precision : Int)), (2 : R) ^ (-(p.weights.precision : Int)),
    (2 : R) ^ (p.weights.least - 1), .unrounded⟩

variable (R) in
/-- ν: half of the accumulator's smallest positive number, the most that a product, a quotient or an
exponential is off below its normal numbers. -/
@[expose] def underflow (p : Mixed) : R := (2 : R) ^ (p.accumulator.least - 1)

/-- A sum, each addition rounded. -/
@[expose] def sum (floor : R → Int) (p : Mixed) (xs : List R) : R :=
  xs.foldr (fun x s => p.accumulator.round floor (x + s)) 0

/-- The score of a query and a key. -/
@[expose] def score (floor : R → Int) (p : Mixed) (scale : R) (q k : Vec R d) : R :=
  p.accumulator.round floor (scale * sum floor p ((List.finRange d).map fun t =>
    p.accumulator.round floor (q[t] * k[t])))

/-- The weight of a key with this score in a row with the maximum `m`; 0 if it is masked. -/
@[expose] def weight [Exp R R] (floor : R → Int) (p : Mixed) (m : R) (unmasked : Bool) (s : R) :
    R :=
  if unmasked then p.accumulator.round floor (exp (p.accumulator.round floor (s - m)))
  else 0

/-- The part of a key in the numerator: its weight, stored, times its value; 0 if it is masked. -/
@[expose] def product [Exp R R] (floor : R → Int) (p : Mixed) (m : R) (unmasked : Bool)
    (s value : R) : R :=
  if unmasked then
    p.accumulator.round floor
      (p.weights.round floor (weight floor p m unmasked s) * value)
  else 0

/-- Component `t` of the output of query `i`, not yet stored. -/
@[expose] def output [Exp R R] (floor : R → Int) (p : Mixed) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len)
    (t : Fin d_v) : R :=
  let s := fun j : Fin kv_len => score floor p scale Q[i] K[j]
  match rowMax ((List.finRange kv_len).map fun j => if mask i j then some (s j) else none) with
  | none => 0
  | some m =>
    let l := sum floor p ((List.finRange kv_len).map fun j => weight floor p m (mask i j) (s j))
    let o := sum floor p ((List.finRange kv_len).map fun j =>
      product floor p m (mask i j) (s j) V[j][t])
    p.accumulator.round floor (o / l)

end Mixed

end Attention.Model
