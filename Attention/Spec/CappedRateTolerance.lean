module

public import Attention.Spec.TangentTolerance

public section

/-! # How far the rate of a score may be off after softcap

The rate of cap · tanh (s / cap) is that of s times the slope 1 − tanh² (s / cap); by the rules of
derivatives it is computed as a quotient by the cap, a product with the slope and one with the cap.
`Proof/Rounding/CappedRates.lean` proves that no function of `Model/RoundedTangents.lean` exceeds
the bound. Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Max R] [OfNat R 0] [OfNat R 1]

/-- What three operations, a quotient and two products, and as many roundings to the format of
scores make of a rate. -/
@[expose] def cappedRateFactor (p : Precision R) (f : ScoreFormats R) : R :=
  power (1 + p.unit) 3 * power (1 + f.scores) 3

/-- The rate through softcap, whose derivative is `slope`, between 0 and 1, which may be off by
`slopeError`. Its size is no less than what is computed for the slope has it. What is lost below the
normal numbers meets the cap and the slope that is computed, or neither. -/
@[expose] def BoundedScoreRate.throughCap (p : Precision R) (f : ScoreFormats R)
    (cap slope slopeError : R) (b : BoundedScoreRate R) : BoundedScoreRate R :=
  { rate := slope * b.rate
    size := (slope + slopeError) * b.size
    error := (cappedRateFactor p f - 1) * ((slope + slopeError) * (b.size + b.error))
      + ((slope + slopeError) * b.error + slopeError * b.size)
      + cappedRateFactor p f
        * (numeral 3 * (max 1 cap * (1 + slopeError)) * f.scoresTiny) }

end Attention.Spec
