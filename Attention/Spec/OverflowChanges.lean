module

public import Attention.Spec.OverflowBounds
public import Attention.Spec.ScoreChangeTolerance

public section

/-! # Inputs of which attention with changed scores and dropout overflows nowhere

Each change of a score has a bound of its result from a bound of its argument: softcap the cap, a
sum both sizes, so that bounds go through any changes in a row. A factor of a head's scores is a
part of the scale. A factor of dropout grows the value that it meets.
`Proof/Rounding/OverflowChanged.lean` proves that of what fits no number overflows.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-- A number of size `x`, rounded twice and stored as a score is, is no larger. -/
@[expose] def storedSize (p : Precision R) (f : ScoreFormats R) (x : R) : R :=
  (1 + f.scores) * (power (1 + p.unit) 2 * x)

/-- No score is larger after softcap: a tanh is at most 1, off by 4 roundings, and is multiplied by
the cap, rounded up to 3 times and stored. -/
@[expose] def cappedSize (p : Precision R) (f : ScoreFormats R) (cap : R) : R :=
  (1 + f.scores) * (power (1 + p.unit) 3 * (cap * (1 + numeral 4 * p.unit)))

/-- No score is larger after its changes, where it is at most `size` before. -/
@[expose] def changedSize (p : Precision R) (f : ScoreFormats R) (change : ScoreChange R)
    (size : R) : R :=
  let capped := match change.cap with
    | none => size
    | some cap => cappedSize p f cap
  match change.added with
  | none => capped
  | some a => storedSize p f (capped + storedSize p f (absolute a))

/-- The score of a sink, rounded twice, is no larger. -/
@[expose] def sinkSize (p : Precision R) (sink : R) : R := power (1 + p.unit) 2 * absolute sink

variable [LE R] [DecidableLE R]

/-- All numbers of the changes of a score that is at most `size` before are in the range. -/
@[expose] def changeFits (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (change : ScoreChange R) (size : R) : Bool :=
  decide (changedSize p f change size ≤ smaller largest.accumulator largest.scores)
    && match change.cap with
      | none => true
      | some cap =>
        decide (1 ≤ largest.accumulator)
          && decide (power (1 + p.unit) 3 * (size / cap) ≤ largest.accumulator)

variable {q_len kv_len d d_v : Nat}

/-- Whether query `i` sees a column: a key, or (`none`) the sink. -/
@[expose] def ScoreChanges.sees (changes : ScoreChanges R q_len kv_len)
    (mask : Mask q_len kv_len) (i : Fin q_len) (col : Option (Fin kv_len)) : Bool :=
  match col with
  | none => changes.sink.isSome
  | some j => mask i j && match changes.added with
    | none => true
    | some B => B[i][j].isSome

/-- The computed score of a column of query `i` is no larger. -/
@[expose] def ScoreChanges.size (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (scaleQ scaleK scale : R) (changes : ScoreChanges R q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) (col : Option (Fin kv_len)) : R :=
  match col with
  | none => match changes.sink with
    | none => 0
    | some sink => sinkSize p sink
  | some j => changedSize p f (changes.pair i j)
    (scoreSize p f additions scaleQ scaleK scale Q[i] K[j])

/-- All numbers from which the score of a column of query `i` is made are in the range. -/
@[expose] def ScoreChanges.fits (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions : Nat) (scaleQ scaleK scale : R) (changes : ScoreChanges R q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (col : Option (Fin kv_len)) : Bool :=
  match col with
  | none => match changes.sink with
    | none => true
    | some sink => decide (sinkSize p sink ≤ largest.accumulator)
  | some j =>
    scoreFits p f largest additions scaleQ scaleK scale Q[i] K[j]
      && changeFits p f largest (changes.pair i j)
        (scoreSize p f additions scaleQ scaleK scale Q[i] K[j])

/-- The largest size of a score of a column that query `i` sees. -/
@[expose] def ScoreChanges.rowSize (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (scaleQ scaleK scale : R) (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) : R :=
  changes.columns.foldl (fun x col => max x (if changes.sees mask i col
    then changes.size p f additions scaleQ scaleK scale Q K i col else 0)) 0

/-- The columns of query `i` as `sumsFit` sees them, which of their scores only asks if they are
seen. -/
@[expose] def ScoreChanges.boundedColumns (changes : ScoreChanges R q_len kv_len)
    (mask : Mask q_len kv_len) (i : Fin q_len) (value : Option (Fin kv_len) → R) :
    List (BoundedKey R) :=
  changes.columns.map fun col => ⟨if changes.sees mask i col then some 0 else none, 0, value col⟩

/-- No number overflows of the row of query `i`, in which the weight of a column meets a value of
the size `value` at most, of a function whose scores are changed and are multiplied by the scale in
the parts `scaleQ`, on q, `scaleK`, on k, and `scale`. -/
@[expose] def ScoreChanges.rowFits (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) (value : Option (Fin kv_len) → R) : Bool :=
  changes.columns.all (fun col => !changes.sees mask i col
      || changes.fits p f largest additions scaleQ scaleK scale Q K i col)
    && sumsFit p largest roundings rescalings
      (changes.rowSize p f additions scaleQ scaleK scale mask Q K i)
      (changes.boundedColumns mask i value)

/-- Of component `t` of the output of query `i` no number overflows. -/
@[expose] def ScoreChanges.outputFits (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v) : Bool :=
  changes.rowFits p f largest additions roundings rescalings scaleQ scaleK scale mask Q K i
    (columnValue V t)

/-- The numbers of the log-sum-exp of query `i` are in the range, those of whose row are. -/
@[expose] def ScoreChanges.logSumExpFits (p : Precision R) (f : ScoreFormats R)
    (largest : Largest R) (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) : Bool :=
  Spec.logSumExpFits p largest roundings rescalings
    (changes.rowSize p f additions scaleQ scaleK scale mask Q K i)
    (changes.boundedColumns mask i fun _ => 0)

/-! ## Dropout -/

/-- No factor of dropout with probability `q` is larger: the probability, one minus it and, four
times, the quotient are rounded. -/
@[expose] def factorSize (p : Precision R) (q : R) : R :=
  power (1 + p.accumulation) 4 * (1 / ((1 - q * (1 + p.accumulation)) * (1 - p.accumulation)))

/-- No value `v` is larger, multiplied by its factor of dropout and rounded. -/
@[expose] def droppedSize (p : Precision R) (q : R) (keep : Bool) (v : R) : R :=
  if keep then (1 + p.accumulation) * (factorSize p q * absolute v) else 0

/-- A weight that is multiplied by its factor of dropout before it meets the value `v`, and their
product, are in the range. -/
@[expose] def droppedWeightFits (p : Precision R) (largest : Largest R) (rescalings : Nat) (q : R)
    (keep : Bool) (v : R) : Bool :=
  !decide (1 ≤ q * (1 + p.accumulation))
    && decide (1 ≤ largest.accumulator)
    && decide (factorSize p q ≤ largest.accumulator)
    && decide (droppedSize p q keep v ≤ largest.accumulator)
    && decide (weightSize p rescalings * factorSize p q
      ≤ smaller largest.accumulator largest.weights)
    && decide (weightSize p rescalings * droppedSize p q keep v ≤ largest.accumulator)

/-- With dropout of probability `q`, whose factors are multiplied with the values, no number
overflows of component `t` of the output of query `i`, or of the products with the values. -/
@[expose] def ScoreChanges.droppedFits (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions roundings rescalings : Nat) (scaleQ scaleK scale : R)
    (changes : ScoreChanges R q_len kv_len) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (q : R) (keep : Mask q_len kv_len)
    (i : Fin q_len) (t : Fin d_v) : Bool :=
  !decide (1 ≤ q * (1 + p.accumulation))
    && decide (factorSize p q ≤ largest.accumulator)
    && (List.finRange kv_len).all (fun j =>
      decide (droppedSize p q (keep i j) V[j][t] ≤ largest.accumulator))
    && changes.rowFits p f largest additions roundings rescalings scaleQ scaleK scale mask Q K i
      (fun col => match col with
        | none => 0
        | some j => droppedSize p q (keep i j) V[j][t])

end Attention.Spec
