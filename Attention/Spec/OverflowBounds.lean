module

public import Attention.Spec.ScoreTolerance

public section

/-! # Inputs of which attention overflows nowhere

Bounds of all numbers that an attention function forms, in whatever order it adds, from the sizes of
its inputs, how many roundings a number goes through and what it rounds. Where they are within the
range of its formats, and a query sees a key, it forms neither an infinity nor a NaN
(`Proof/Rounding/Overflow.lean`). No exponential is computed for them, as none of a number that is
not positive is larger than 1.
Source: docs/tolerances.md, "What is proved". -/

namespace Attention.Spec

universe u

/-- The largest numbers of the formats of a function. -/
structure Largest (R : Type u) where
  /-- Of scores, weights, sums and quotients. -/
  accumulator : R
  /-- Of operands that are multiplied by a part of the scale and stored. -/
  operands : R
  /-- Of scores where they are stored. -/
  scores : R
  /-- Of weights where they are stored for their values. -/
  weights : R
  /-- Of the result. -/
  output : R

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-- No part of the inner product of q and k, multiplied by `scaleQ` and `scaleK`, is larger, in
whatever order its terms are added: they may cancel in their sum and in no partial sum. -/
@[expose] def productSize (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (scaleQ scaleK : R) {d : Nat} (q k : Vec R d) : R :=
  power (1 + p.accumulation) (additions + 1) *
    (operandFactor p f * (absolute scaleQ * absolute scaleK * magnitude q k))

/-- No score is larger: the inner product times `scale`, rounded twice and stored. -/
@[expose] def scoreSize (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (scaleQ scaleK scale : R) {d : Nat} (q k : Vec R d) : R :=
  (1 + f.scores) *
    (power (1 + p.unit) 2 * (absolute scale * productSize p f additions scaleQ scaleK q k))

variable [LE R] [DecidableLE R]

/-- The operands, the parts of the inner product and the score of `q` and `k` are in the range. -/
@[expose] def scoreFits (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions : Nat) (scaleQ scaleK scale : R) {d : Nat} (q k : Vec R d) : Bool :=
  let fits := fun x : R =>
    decide (operandFactor p f * absolute x ≤ smaller largest.accumulator largest.operands)
  (List.finRange d).all (fun i => fits (scaleQ * q[i]) && fits (scaleK * k[i]))
    && decide (productSize p f additions scaleQ scaleK q k ≤ largest.accumulator)
    && decide (scoreSize p f additions scaleQ scaleK scale q k
      ≤ smaller largest.accumulator largest.scores)

/-- `x` for an unmasked key, and 0 for a masked one. -/
@[expose] def ofUnmasked (key : BoundedKey R) (x : R) : R :=
  match key.score with
  | none => 0
  | some _ => x

/-- No weight is larger, however often it is rescaled and where it is stored: a weight is an
exponential, off by its error, of a number that is not positive, and so is a rescaling. -/
@[expose] def weightSize (p : Precision R) (rescalings : Nat) : R :=
  power (1 + p.exponential) (rescalings + 1) * (1 + p.stored + p.storedTiny)

/-- The largest of the sizes of the values of unmasked keys. -/
@[expose] def valueSize (row : List (BoundedKey R)) : R :=
  row.foldl (fun x key => max x (ofUnmasked key (absolute key.value))) 0

/-- No quotient of a numerator and a denominator is larger. Storing a weight below the normal
numbers may double it, where the denominator adds it as it was. -/
@[expose] def quotientSize (p : Precision R) (roundings : Nat) (row : List (BoundedKey R)) : R :=
  numeral 2 * power ((1 + p.accumulation) / (1 - p.accumulation)) (roundings + 6) * valueSize row

/-- No denominator is larger: the weight of each key that is not masked, with all its growth. -/
@[expose] def denominatorSize (p : Precision R) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) : R :=
  power (1 + p.accumulation) (roundings + 1) * weightSize p rescalings
    * sumOver (fun key => ofUnmasked key 1) row

/-- The weights, sums, quotients and the result of a row are in the range, and so are differences of
scores and reference points that are at most `reference` in size. The order of the sums is not
known, so it is the sum of the sizes of the values that counts. -/
@[expose] def sumsFit (p : Precision R) (largest : Largest R) (roundings rescalings : Nat)
    (reference : R) (row : List (BoundedKey R)) : Bool :=
  let growth := power (1 + p.accumulation) (roundings + 1)
  let weight := weightSize p rescalings
  decide (numeral 2 * reference ≤ largest.accumulator)
    && decide (weight ≤ smaller largest.accumulator largest.weights)
    && decide (denominatorSize p roundings rescalings row ≤ largest.accumulator)
    && decide (growth * weight * sumOver (fun key => ofUnmasked key (absolute key.value)) row
      ≤ largest.accumulator)
    && decide (quotientSize p roundings row ≤ smaller largest.accumulator largest.output)

/-- No denominator of a row is smaller in which a score attains the reference point: its weight is
an exponential of 0, off by its error and where it is stored. -/
@[expose] def denominatorLeast (p : Precision R) (roundings rescalings : Nat) : R :=
  power (1 - p.accumulation) roundings * power (1 - p.exponential) rescalings
    * ((1 - p.exponential) * (1 - p.stored) - p.storedTiny)

/-- No number is larger of which a log-sum-exp m + ln l is made: ln l is at most l and at least
−1 / l, is off by 4 units, and up to 8 roundings grow it. -/
@[expose] def logSumExpSize (p : Precision R) (roundings rescalings : Nat) (reference : R)
    (row : List (BoundedKey R)) : R :=
  let log := max (denominatorSize p roundings rescalings row)
    (1 / denominatorLeast p roundings rescalings)
  power (1 + p.unit) 8 * (reference + (log + numeral 4 * p.unit * (log + 1)))

/-- The numbers of the log-sum-exp of a row are in the range, whose sums are. -/
@[expose] def logSumExpFits (p : Precision R) (largest : Largest R) (roundings rescalings : Nat)
    (reference : R) (row : List (BoundedKey R)) : Bool :=
  !decide (denominatorLeast p roundings rescalings ≤ 0)
    && decide (logSumExpSize p roundings rescalings reference row ≤ largest.accumulator)

variable {q_len kv_len d d_v : Nat}

/-- The largest size of a score of an unmasked key. -/
@[expose] def rowScoreSize (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (scaleQ scaleK scale : R) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) : R :=
  (List.finRange kv_len).foldl (fun x j =>
    max x (if mask i j then scoreSize p f additions scaleQ scaleK scale Q[i] K[j] else 0)) 0

/-- Of component `t` of the output of query `i` no number overflows that a function forms whose
scores are multiplied by the scale in the parts `scaleQ`, on q, `scaleK`, on k, and `scale`. -/
@[expose] def outputFits (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions roundings rescalings : Nat) (scaleQ scaleK scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len)
    (t : Fin d_v) : Bool :=
  (List.finRange kv_len).all (fun j =>
      !mask i j || scoreFits p f largest additions scaleQ scaleK scale Q[i] K[j])
    && sumsFit p largest roundings rescalings
      (rowScoreSize p f additions scaleQ scaleK scale mask Q K i)
      ((List.finRange kv_len).map fun j => ⟨if mask i j then some 0 else none, 0, V[j][t]⟩)

end Attention.Spec
