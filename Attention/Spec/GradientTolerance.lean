module

public import Attention.Spec.ScoreTolerance

public section

/-! # How far gradients may be from the exact ones

The backward pass of one query row computes the weights P again from the log-sum-exp, dP = dO Vᵀ, a
mean D of dP, G = dP − D + dL and dS = P ∘ G, and sums products of dS and P: over the keys of a row
for dQ, over the queries for dK and dV. `Proof/Rounding/GradientRows.lean` and `GradientSums.lean`
prove that no function of `Model/RoundedGradients.lean` exceeds these bounds.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Spec

universe u

/-- What a backward pass rounds, and how coarsely: bounds of relative errors, 0 where nothing is
rounded. -/
structure GradientPrecision (R : Type u) where
  /-- Of an operation on scores, weights and their gradients. -/
  unit : R
  /-- Of an operation inside a matrix product. -/
  accumulation : R
  /-- Of an exponential. -/
  exponential : R
  /-- Of the format in which P is stored before it multiplies G. -/
  weights : R
  /-- Of the format in which P and dS are stored where they meet values, keys and queries. -/
  stored : R
  /-- Of dropout's factor, with its product. -/
  factors : R
  /-- Of the format in which dP is stored. -/
  scores : R
  /-- Of the format of the output, from which D may be computed. -/
  output : R
  /-- Of the format in which keys and queries are stored where they meet dS. -/
  operands : R

/-- How many roundings there are at most. -/
structure GradientCounts where
  /-- Of a product dO · v in dP. -/
  products : Nat
  /-- Of a product P · dO · v in D, in the sums over keys and over components together. -/
  delta : Nat
  /-- How often the output, from which D may be computed, was rescaled. -/
  rescalings : Nat

/-- One key of a query as the gradients see it. -/
structure GradientKey (R : Type u) where
  /-- The exact weight P. -/
  weight : R
  /-- How far off the weight that was computed again may be, as a share of it. -/
  error : R
  /-- By what dropout multiplies the weight; 1 without. -/
  factor : R
  /-- The factor times ⟨dO, v⟩: dP. -/
  product : R
  /-- The factor times |dO|ᵀ|v|: A. -/
  size : R
  /-- The slope of what becomes of the score. -/
  slope : R
  /-- How far off the computed slope may be. -/
  slopeError : R

/-- One product of a sum that a gradient is. -/
structure GradientTerm (R : Type u) where
  /-- At least the size of the gradient or weight that is multiplied. -/
  size : R
  /-- How far off it may be. -/
  error : R
  /-- By what it is multiplied. -/
  other : R

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-! ## Weights that are computed again -/

/-- How far s − L may be off, where the score s is off by `ofScore`, the log-sum-exp L by `ofLse`,
and both are rounded three times more: factors of another base, and the difference. -/
@[expose] def exponentError (unit s L ofScore ofLse : R) : R :=
  ofScore + ofLse + gamma 3 unit * (absolute s + ofScore + (absolute L + ofLse))

/-- How far exp (s − L) may be off, as a share of itself. -/
@[expose] def recomputedError [Exp R R] (unit exponential s L ofScore ofLse : R) : R :=
  exp (exponentError unit s L ofScore ofLse) * (1 + exponential) - 1

/-! ## The slope of softcap -/

/-- How far 1 − t², the slope of softcap, may be off, where t = tanh (x / cap) is off by `ofTanh`:
the square and the difference are rounded, and none of them is far from the numbers up to 1. -/
@[expose] def softcapSlopeError [LE R] [DecidableLE R] (unit t ofTanh : R) : R :=
  smaller ((numeral 2 * absolute t + ofTanh) * ofTanh + numeral 2 * unit) (1 + numeral 2 * unit)

/-! ## A query row -/

/-- A key from the gradient by the output and its value. -/
@[expose] def gradientKey {d : Nat} (weight error factor slope slopeError : R) (dO v : Vec R d) :
    GradientKey R :=
  ⟨weight, error, factor, factor * Vec.dot dO v, factor * magnitude dO v, slope, slopeError⟩

/-- D = Σ P dP. -/
@[expose] def meanProduct (keys : List (GradientKey R)) : R :=
  sumOver (fun k => k.weight * k.product) keys

/-- W = Σ P A. -/
@[expose] def meanSize (keys : List (GradientKey R)) : R :=
  sumOver (fun k => k.weight * k.size) keys

/-- The error of D: Σ P A ((1 + ε) (1 + u_P) F − 1). F stands for whatever way D is come by: the sum
Σ P dP, or ⟨dO, O⟩ from an output that was stored. -/
@[expose] def meanError (p : GradientPrecision R) (c : GradientCounts)
    (keys : List (GradientKey R)) : R :=
  let sums := (1 + gamma c.delta p.accumulation) * (1 + p.factors) * (1 + p.scores)
    * (1 + p.output) / power (1 - p.exponential) c.rescalings
  sumOver (fun k => k.weight * k.size * ((1 + k.error) * (1 + p.stored) * sums - 1)) keys

/-- G = dP − D + dL, where dL is the gradient by the log-sum-exp. -/
@[expose] def innerGradient (dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  k.product - meanProduct keys + dL

/-- The sizes of its terms: A + W + |dL|. -/
@[expose] def innerSize (dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  k.size + meanSize keys + absolute dL

/-- The error of G, whose three terms are rounded up to three times. -/
@[expose] def innerError (p : GradientPrecision R) (c : GradientCounts) (dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  let terms := ((1 + gamma c.products p.accumulation) * (1 + p.factors) * (1 + p.scores) - 1)
    * k.size + meanError p c keys
  terms + gamma 3 p.unit * (innerSize dL keys k + terms)

/-- The error of dS = P G, the gradient by a score and by a bias. -/
@[expose] def scoreGradientError (p : GradientPrecision R) (c : GradientCounts) (dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  let ofInner := innerError p c dL keys k
  let ofWeight := (1 + k.error) * (1 + p.weights) * (1 + gamma 2 p.unit) - 1
  k.weight * (ofWeight * (absolute (innerGradient dL keys k) + ofInner) + ofInner)

/-- What dS times the slope adds to dQ and dK, `other` being a component of the key or the query:
its error where it is stored for that product. -/
@[expose] def scoreGradientTerm (p : GradientPrecision R) (c : GradientCounts) (dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) (other : R) : GradientTerm R :=
  let dS := k.weight * innerGradient dL keys k
  let largest := absolute k.slope + k.slopeError
  let error := scoreGradientError p c dL keys k * largest + absolute dS * k.slopeError
  ⟨k.weight * innerSize dL keys k * largest,
    error + p.stored * (absolute dS * absolute k.slope + error), other⟩

/-- What a weight adds to dV. -/
@[expose] def weightTerm (p : GradientPrecision R) (k : GradientKey R) (other : R) :
    GradientTerm R :=
  let size := k.factor * k.weight
  ⟨size, size * ((1 + k.error) * (1 + p.weights) * (1 + p.factors) * (1 + p.stored) - 1), other⟩

/-- The error of scale · Σ x · y, where each y is stored up to `stores` times, a product goes
through at most `roundings` roundings, and the sum is multiplied by the scale in up to three. -/
@[expose] def gradientError (p : GradientPrecision R) (roundings stores : Nat) (scale : R)
    (terms : List (GradientTerm R)) : R :=
  let sums := (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
    * power (1 + p.operands) stores - 1
  absolute scale
    * sumOver (fun t => (t.error + sums * (t.size + t.error)) * absolute t.other) terms

/-- The error of Σ x · y, where each x is stored once more, and a product goes through at most
`roundings` roundings: a sum over the heads that share keys, over what a bias is broadcast over, or
over the queries of a sink. -/
@[expose] def totalError (accumulation stored : R) (roundings : Nat)
    (terms : List (GradientTerm R)) : R :=
  let sums := (1 + stored) * (1 + gamma roundings accumulation) - 1
  sumOver (fun t => (t.error + sums * (t.size + t.error)) * absolute t.other) terms

end Attention.Spec
