module

public import Attention.Spec.Tangent
public import Attention.Spec.ScoreTolerance

public section

/-! # Tolerances of tangents

How far the rates at which a score, a component of one row of the output and the log-sum-exp of the
row change may be from the exact ones. Every bound is of one form: what is computed is at most M,
the terms of the exact number sum to at most S by their sizes, and the error is at most M − S.
Numbers below the normal ones are part of M.
`Proof/Rounding/Tangents.lean` and `ScoreRates.lean` prove that no function of
`Model/RoundedTangents.lean` exceeds it.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Spec

universe u

/-- A key of a row that changes, and one component of its value. -/
structure BoundedRate (R : Type u) where
  /-- Its exact weight p, 0 if it is masked. -/
  weight : R
  /-- How far the computed weight may be off, as a share of it: ε. -/
  weightError : R
  /-- Unit roundoff of the format in which its weight, and the product of that with a rate, are
  stored; 0 if they are not, as of a sink. -/
  stored : R
  /-- How far off numbers below the normal ones may be: the weight, as it is computed and as it is
  stored, and a product with it; 0 if it is masked. -/
  tiny : R
  /-- ν: how far off, below the normal numbers, a sum may be in which it is, the product of this sum
  with a number, and a factor by which the sum is rescaled; 0 if it is masked. -/
  flushed : R
  /-- The rate ṡ at which its score changes. -/
  rate : R
  /-- S: |ṡ| at least, where more is known of its terms their sizes. -/
  size : R
  /-- How far the computed rate may be off: δ. -/
  rateError : R
  /-- One component of its value. -/
  value : R
  /-- The rate at which that changes. -/
  valueRate : R

variable {R : Type u} [Add R] [Mul R] [OfNat R 0]

/-- Key `x` of a row that changes, and component `c` of its value; the other numbers are how far
what is computed may be off. -/
@[expose] def boundedRate [Div R] [Exp R R] {d : Nat} (row : List (ScoredValue (Dual R) (Dual R) d))
    (c : Fin d) (weightError stored tiny flushed size rateError : R)
    (x : ScoredValue (Dual R) (Dual R) d) : BoundedRate R :=
  { weight := Spec.weight (x.score.map (·.val))
      / denominator (row.map fun y => y.score.map (·.val))
    weightError := weightError
    stored := stored
    tiny := tiny
    flushed := flushed
    rate := scoreTangent x.score
    size := size
    rateError := rateError
    value := x.value[c].val
    valueRate := x.value[c].der }

variable [Sub R] [OfNat R 1]

/-- μ: the mean rate of the scores, by the weights. -/
@[expose] def meanRate (keys : List (BoundedRate R)) : R :=
  sumOver (fun k => k.weight * k.rate) keys

/-- ȯ: the rate of the component, Σ p ṡ v − μ Σ p v + Σ p v̇. -/
@[expose] def outputRate (keys : List (BoundedRate R)) : R :=
  sumOver (fun k => k.weight * k.rate * k.value) keys
    - meanRate keys * sumOver (fun k => k.weight * k.value) keys
    + sumOver (fun k => k.weight * k.valueRate) keys

/-- The roundings, as one factor, of the weight of a key on its way into a sum, beside its stores:
five operations on scores and weights, as a difference of rates and a product with a weight, and
`roundings` and `rescalings` of sums. -/
@[expose] def rateFactor (p : Precision R) (roundings rescalings : Nat) : R :=
  power (1 + p.unit) 5 * power (1 + p.accumulation) roundings * power (1 + p.exponential) rescalings

/-- The error that numbers below the normal ones add to a sum of weights times rates times `other`:
of a weight, of its product with a rate, and of that with `other`; and up to `losses` times ν, as of
sums and of products of sums, and ν times a term whose weight is 2, as of factors by which sums are
rescaled. -/
@[expose] def weighedLoss (losses : Nat) (size error other : BoundedRate R → R)
    (keys : List (BoundedRate R)) : R :=
  sumOver (fun k => power (1 + k.stored) 2
    * (k.tiny * (numeral 2 * (size k + error k) * other k + (numeral 2 * other k + 1))
      + numeral losses * (k.flushed * (1 + numeral 2 * ((size k + error k) * other k))))) keys

/-- How far Σ p x y may be off, where x is off by `error`, y is exact and each term is multiplied by
up to `factor` beside the error of its weight and what it is stored in twice:
Σ p ((1 + ε) (1 + stored)² factor (size + error) − size) |y|, and `weighedLoss`. -/
@[expose] def weighedError (factor : R) (losses : Nat) (size error other : BoundedRate R → R)
    (keys : List (BoundedRate R)) : R :=
  sumOver (fun k => k.weight * (((1 + k.weightError) * power (1 + k.stored) 2 * factor - 1)
    * (size k + error k) + error k) * other k) keys
    + factor * weighedLoss losses size error other keys

/-- How far a computed μ may be off, which is the rate of the log-sum-exp. -/
@[expose] def meanRateTolerance (p : Precision R) (roundings rescalings losses : Nat)
    (keys : List (BoundedRate R)) : R :=
  weighedError (rateFactor p roundings rescalings) losses (·.size) (·.rateError) (fun _ => 1) keys

variable [Max R]

/-- How far a computed ȯ may be off, before it is stored. `output` is the unit roundoff of a format
in which o is stored before it meets μ, `apart` of one in which the three parts of the sum are
stored, each 0 if there is none; below the normal numbers each of the four, the product of μ and
o, and each addition of the parts is off by `lost`, and a difference ṡ − μ by ν. -/
@[expose] def tangentTolerance (p : Precision R) (output apart lost : R)
    (roundings rescalings losses : Nat) (keys : List (BoundedRate R)) : R :=
  let factor := rateFactor p roundings rescalings * (1 + apart)
  let value := fun k : BoundedRate R => absolute k.value
  let mean := meanRateTolerance p roundings rescalings losses keys
  let unstored := weighedError factor losses (fun _ => 1) (fun _ => 0) value keys
  let outputError := unstored
    + output * (absolute (sumOver (fun k => k.weight * k.value) keys) + unstored) + factor * lost
  weighedError factor losses (·.size) (fun k => k.rateError + k.flushed) value keys
    + (mean * (sumOver (fun k => k.weight * value k) keys + outputError)
      + sumOver (fun k => k.weight * k.size) keys * outputError)
    + weighedError factor losses (fun _ => 1) (fun _ => 0) (fun k => absolute k.valueRate) keys
    + factor * (numeral 6 * lost)

/-- The same where the result is stored in a format of unit roundoff `u`, which rounds it as a
whole, with what it is off by already, and is off by `η` below its normal numbers. -/
@[expose] def storedTangentTolerance (p : Precision R) (u η output apart lost : R)
    (roundings rescalings losses : Nat) (keys : List (BoundedRate R)) : R :=
  let error := tangentTolerance p output apart lost roundings rescalings losses keys
  error + u * (absolute (outputRate keys) + error) + η

/-! ## The rate of a score -/

/-- The rate of a score, and how far a computed one may be from it. -/
structure BoundedScoreRate (R : Type u) where
  /-- ṡ. -/
  rate : R
  /-- S: the sizes of its terms. -/
  size : R
  /-- δ. -/
  error : R

variable [Div R] {d : Nat}

/-- The roundings, as one factor, of a term of the rate of a score before it is changed: a product
and `additions` additions; the products of the operands with the scale, as `operandFactor` has them,
and one rounding more to their format; the scale, which is rounded three times, the product with it
and the sum of two inner products; and to the format of scores each of these, their sum and the
result. -/
@[expose] def scoreRateFactor (p : Precision R) (f : ScoreFormats R) (additions : Nat) : R :=
  power (1 + p.accumulation) (additions + 1) * (operandFactor p f * (1 + f.operands))
    * power (1 + p.unit) 5 * power (1 + f.scores) 3

/-- The error that numbers below the normal ones add to an inner product of operands that are each
off by τ, which meet each other, and of products and sums that are off by ν:
Σ (τ (|qᵢ| + |kᵢ| + τ) + 2 ν). -/
@[expose] def rateUnderflow (τ ν : R) (q k : Vec R d) : R :=
  sumOver (fun i : Fin d => τ * (absolute q[i] + absolute k[i] + τ) + numeral 2 * ν)
    (List.finRange d)

/-- ṡ = scale (⟨q̇, k⟩ + ⟨q, k̇⟩). Below the normal numbers each product of two numbers and each
sum is off by `ν`, scaled operands by r η_op, the inner products by η_op where they are stored as
operands are, and their sum and all that is stored as a score by η_s. Of the scale at most
max (1, |scale|) multiplies any of these. -/
@[expose] def boundedScoreRate (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (scale : R) (q dq k dk : Vec R d) : BoundedScoreRate R :=
  let size := absolute scale * (magnitude dq k + magnitude q dk)
  let τ := numeral f.roundings * f.operandsTiny
  let lost := max 1 (absolute scale) * (rateUnderflow τ ν dq k + rateUnderflow τ ν q dk
    + (numeral 2 * f.operandsTiny + numeral 4 * f.scoresTiny)) + f.scoresTiny
  { rate := scale * (Vec.dot dq k + Vec.dot q dk)
    size := size
    error := (scoreRateFactor p f additions - 1) * size + scoreRateFactor p f additions * lost }

/-- The error of a rate after two operations and as many roundings to the format of scores. -/
@[expose] def changeFactor (p : Precision R) (f : ScoreFormats R) : R :=
  power (1 + p.unit) 2 * power (1 + f.scores) 2

/-- The rate through a change of the score, as softcap, whose derivative is `slope`, which is at
least 0 and may be off by `slopeError`. Its size is no less than what is computed for the slope has
it. -/
@[expose] def BoundedScoreRate.through (p : Precision R) (f : ScoreFormats R)
    (slope slopeError : R) (b : BoundedScoreRate R) : BoundedScoreRate R :=
  { rate := slope * b.rate
    size := (slope + slopeError) * b.size
    error := (changeFactor p f - 1) * ((slope + slopeError) * (b.size + b.error))
      + ((slope + slopeError) * b.error + slopeError * b.size)
      + changeFactor p f * (numeral 2 * f.scoresTiny) }

/-- The rate with that of a number `a` that is added. -/
@[expose] def BoundedScoreRate.plus (p : Precision R) (f : ScoreFormats R) (a : R)
    (b : BoundedScoreRate R) : BoundedScoreRate R :=
  { rate := b.rate + a
    size := b.size + absolute a
    error := (changeFactor p f - 1) * (b.size + absolute a + b.error) + b.error
      + changeFactor p f * (numeral 4 * f.scoresTiny) }

end Attention.Spec
