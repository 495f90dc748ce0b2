module

public import Attention.Spec.OverflowChanges

public section

/-! # Inputs of which attention overflows nowhere, where numbers underflow

A number below the normal ones may be off by more than its relative error, by `ν` in the accumulator
and by the errors of `ScoreFormats` where operands and scores are stored. So may it grow, and all
bounds of `OverflowBounds.lean` and `OverflowChanges.lean` have room for that; with errors of 0
there they are these. `Proof/Rounding/OverflowTiny.lean` proves that of what fits no number
overflows.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-! ## Scores -/

/-- No operand `x` is larger, multiplied by its part of the scale, where it is stored. -/
@[expose] def tinyOperandSize (p : Precision R) (f : ScoreFormats R) (x : R) : R :=
  operandFactor p f * (absolute x + numeral f.roundings * f.operandsTiny)

/-- No part of the inner product is larger: each product and each addition may be off by `ν`. -/
@[expose] def tinyProductSize (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (scaleQ scaleK : R) {d : Nat} (q k : Vec R d) : R :=
  let tiny := numeral f.roundings * f.operandsTiny
  power (1 + p.accumulation) (additions + 1) * sumOver (fun i : Fin d => operandFactor p f
    * ((absolute (scaleQ * q[i]) + tiny) * (absolute (scaleK * k[i]) + tiny)) + numeral 2 * ν)
    (List.finRange d)

/-- A number of size `x`, rounded `k` times where it may be below the normal numbers, and stored as
a score is, is no larger. -/
@[expose] def tinyStoredSize (p : Precision R) (f : ScoreFormats R) (ν : R) (k : Nat) (x : R) : R :=
  (1 + f.scores) * (power (1 + p.unit) k * (x + numeral k * ν)) + f.scoresTiny

/-- No score is larger. -/
@[expose] def tinyScoreSize (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (scaleQ scaleK scale : R) {d : Nat} (q k : Vec R d) : R :=
  tinyStoredSize p f ν 2 (absolute scale * tinyProductSize p f ν additions scaleQ scaleK q k)

/-- No score is larger after its changes, where it is at most `size` before. -/
@[expose] def tinyChangedSize (p : Precision R) (f : ScoreFormats R) (ν : R)
    (change : ScoreChange R) (size : R) : R :=
  let capped := match change.cap with
    | none => size
    | some cap => tinyStoredSize p f ν 3 (cap * (1 + numeral 4 * p.unit))
  match change.added with
  | none => capped
  | some a => tinyStoredSize p f ν 2 (capped + tinyStoredSize p f ν 2 (absolute a) + ν)

/-- The score of a sink is no larger. -/
@[expose] def tinySinkSize (p : Precision R) (f : ScoreFormats R) (ν sink : R) : R :=
  power (1 + p.unit) 2 * (absolute sink + numeral 2 * ν) + f.scoresTiny

/-! ## Sums of weights -/

/-- A precision whose exponentials have room for what underflows of a weight: of its exponential,
and of an addition or a rescaling. -/
@[expose] def roomForWeights (p : Precision R) (ν : R) : Precision R :=
  { p with exponential := p.exponential + numeral 2 * ν }

/-- A key whose value has room for what underflows where a weight meets it, in an addition and in
each rescaling. -/
@[expose] def roomForValue (ν : R) (rescalings : Nat) (key : BoundedKey R) : BoundedKey R :=
  { key with value := absolute key.value + numeral (rescalings + 3) * ν }

/-- No denominator loses more by underflow, and no numerator of values of at most 1: what a key
loses in exponentials, products and sums, of which rescalings make up to 1 / (1 − e) each. -/
@[expose] def lostSize (p : Precision R) (ν : R) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) : R :=
  power (1 + p.accumulation) (roundings + 1)
    * (numeral (3 * rescalings + 10) * (ν / power (1 - p.exponential) rescalings)
      * sumOver (fun key => ofUnmasked key 1) row)

/-- No denominator of a row is smaller in which a score attains the reference point. -/
@[expose] def tinyDenominatorLeast (p : Precision R) (ν : R) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) : R :=
  denominatorLeast p roundings rescalings - lostSize p ν roundings rescalings row

variable [LE R] [DecidableLE R]

/-- No quotient of a numerator and a denominator is larger: `quotientSize`, with what both lose as a
share of the least denominator, and with five roundings of the quotient. -/
@[expose] def tinyQuotientSize (p : Precision R) (ν : R) (roundings rescalings : Nat)
    (row : List (BoundedKey R)) : R :=
  let value := valueSize row
  numeral 2 * power ((1 + p.accumulation) / (1 - p.accumulation)) (roundings + 6)
    * (value + lostSize p ν roundings rescalings row * (numeral 2 * value + 1)
        / tinyDenominatorLeast p ν roundings rescalings row + numeral 5 * ν)

/-- `sumsFit` where numbers underflow. -/
@[expose] def tinySumsFit (p : Precision R) (ν : R) (largest : Largest R)
    (roundings rescalings : Nat) (reference : R) (row : List (BoundedKey R)) : Bool :=
  sumsFit (roomForWeights p ν) largest roundings rescalings reference
      (row.map (roomForValue ν rescalings))
    && !decide (tinyDenominatorLeast p ν roundings rescalings row ≤ 0)
    && decide (tinyQuotientSize p ν roundings rescalings row
      ≤ smaller largest.accumulator largest.output)

end Attention.Spec
