module

public import Attention.Spec.OverflowUnderflowRows

public section

/-! # Log-sum-exps and dropout that overflow nowhere, where numbers underflow

`Proof/Rounding/OverflowTinyOptions.lean` proves that of what fits no number overflows.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-- No number is larger of which a log-sum-exp is made: `logSumExpSize` of the bounds of a
denominator that underflows, with up to eight products and a sum that underflow by `ν`. -/
@[expose] def tinyLogSumExpSize (p : Precision R) (ν : R) (roundings rescalings : Nat)
    (reference : R) (row : List (BoundedKey R)) : R :=
  let log := max (denominatorSize (roomForWeights p ν) roundings rescalings row)
    (1 / tinyDenominatorLeast p ν roundings rescalings row)
  power (1 + p.unit) 8
    * (reference + (log + numeral 4 * p.unit * (log + 1)) + numeral 9 * ν)

variable [LE R] [DecidableLE R] {q_len kv_len d d_v : Nat}

/-- The numbers of the log-sum-exp of query `i` are in the range, those of whose row are. -/
@[expose] def ScoreChanges.tinyLogSumExpFits (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) : Bool :=
  decide (tinyLogSumExpSize p ν roundings rescalings
    (changes.tinyRowSize p f ν additions scaleQ scaleK scale mask Q K i)
    (changes.boundedColumns mask i fun _ => 0) ≤ largest.accumulator)

/-- With dropout of probability `q`, whose factors are multiplied with the values, no number
overflows of component `t` of the output of query `i`, or of the products with the values. -/
@[expose] def ScoreChanges.tinyDroppedFits (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (q : R) (keep : Mask q_len kv_len)
    (i : Fin q_len) (t : Fin d_v) : Bool :=
  !decide (1 ≤ q * (1 + p.accumulation))
    && decide (factorSize p q ≤ largest.accumulator)
    && (List.finRange kv_len).all (fun j =>
      decide (droppedSize p q (keep i j) V[j][t] ≤ largest.accumulator))
    && changes.tinyRowFits p f ν largest additions roundings rescalings scaleQ scaleK scale mask Q
      K i (fun col => match col with
        | none => 0
        | some j => droppedSize p q (keep i j) V[j][t])

end Attention.Spec
