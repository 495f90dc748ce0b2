module

public import Attention.Spec.OverflowUnderflow

public section

/-! # Rows of which attention overflows nowhere, where numbers underflow

The tests of `OverflowBounds.lean` and `OverflowChanges.lean` with the bounds of
`OverflowUnderflow.lean`. `Proof/Rounding/OverflowTiny.lean` proves that of what fits no number
overflows.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]
variable [LE R] [DecidableLE R]

/-- The operands, the parts of the inner product and the score of `q` and `k` are in the range. -/
@[expose] def tinyScoreFits (p : Precision R) (f : ScoreFormats R) (ν : R) (largest : Largest R)
    (additions : Nat) (scaleQ scaleK scale : R) {d : Nat} (q k : Vec R d) : Bool :=
  let fits := fun x : R =>
    decide (tinyOperandSize p f x ≤ smaller largest.accumulator largest.operands)
  (List.finRange d).all (fun i => fits (scaleQ * q[i]) && fits (scaleK * k[i]))
    && decide (tinyProductSize p f ν additions scaleQ scaleK q k ≤ largest.accumulator)
    && decide (tinyScoreSize p f ν additions scaleQ scaleK scale q k
      ≤ smaller largest.accumulator largest.scores)

/-- All numbers of the changes of a score that is at most `size` before are in the range. -/
@[expose] def tinyChangeFits (p : Precision R) (f : ScoreFormats R) (ν : R) (largest : Largest R)
    (change : ScoreChange R) (size : R) : Bool :=
  decide (tinyChangedSize p f ν change size ≤ smaller largest.accumulator largest.scores)
    && match change.cap with
      | none => true
      | some cap =>
        decide (1 ≤ largest.accumulator)
          && decide (power (1 + p.unit) 3 * (size / cap + numeral 3 * ν) ≤ largest.accumulator)

/-! ## Rows -/

variable {q_len kv_len d d_v : Nat}

/-- The computed score of a column of query `i` is no larger. -/
@[expose] def ScoreChanges.tinySize (p : Precision R) (f : ScoreFormats R) (ν : R)
    (additions : Nat) (scaleQ scaleK scale : R) (changes : ScoreChanges R q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (col : Option (Fin kv_len)) :
    R :=
  match col with
  | none => match changes.sink with
    | none => 0
    | some sink => tinySinkSize p f ν sink
  | some j => tinyChangedSize p f ν (changes.pair i j)
    (tinyScoreSize p f ν additions scaleQ scaleK scale Q[i] K[j])

/-- All numbers from which the score of a column of query `i` is made are in the range. -/
@[expose] def ScoreChanges.tinyFits (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (additions : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (i : Fin q_len) (col : Option (Fin kv_len)) : Bool :=
  match col with
  | none => match changes.sink with
    | none => true
    | some sink => decide (tinySinkSize p f ν sink ≤ largest.accumulator)
  | some j =>
    tinyScoreFits p f ν largest additions scaleQ scaleK scale Q[i] K[j]
      && tinyChangeFits p f ν largest (changes.pair i j)
        (tinyScoreSize p f ν additions scaleQ scaleK scale Q[i] K[j])

/-- The largest size of a score of a column that query `i` sees. -/
@[expose] def ScoreChanges.tinyRowSize (p : Precision R) (f : ScoreFormats R) (ν : R)
    (additions : Nat) (scaleQ scaleK scale : R) (changes : ScoreChanges R q_len kv_len)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) :
    R :=
  changes.columns.foldl (fun x col => max x (if changes.sees mask i col
    then changes.tinySize p f ν additions scaleQ scaleK scale Q K i col else 0)) 0

/-- No number overflows of the row of query `i`, in which the weight of a column meets a value of
the size `value` at most. -/
@[expose] def ScoreChanges.tinyRowFits (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) (value : Option (Fin kv_len) → R) : Bool :=
  changes.columns.all (fun col => !changes.sees mask i col
      || changes.tinyFits p f ν largest additions scaleQ scaleK scale Q K i col)
    && tinySumsFit p ν largest roundings rescalings
      (changes.tinyRowSize p f ν additions scaleQ scaleK scale mask Q K i)
      (changes.boundedColumns mask i value)

/-- Of component `t` of the output of query `i` no number overflows. -/
@[expose] def ScoreChanges.tinyOutputFits (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v) : Bool :=
  changes.tinyRowFits p f ν largest additions roundings rescalings scaleQ scaleK scale mask Q K i
    (columnValue V t)

end Attention.Spec
