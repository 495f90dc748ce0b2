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

/-- The roundings of a backward pass, and how coarse they are: bounds of relative errors, 0 where
nothing is rounded, and of the absolute errors of numbers below the normal ones. -/
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
  /-- How far off a product, a quotient, an exponential or the sum of two numbers may be besides,
  below the normal numbers of the format in which it is computed. -/
  tiny : R
  /-- How far off a P may be besides where it is stored before it multiplies G. -/
  weightsTiny : R
  /-- A P or dS where it is stored for values, keys and queries. -/
  storedTiny : R
  /-- A dP where it is stored. -/
  scoresTiny : R
  /-- A component of the output where it is stored, with its quotient. -/
  outputTiny : R
  /-- A key, a query or a sum where it is stored in the format of operands. -/
  operandsTiny : R
  /-- How many times a loss of P or dS counts where it is stored for what it meets in a gradient, if
  a smaller number is stored, P without dropout's factor or dS times the scale: as many times as it
  is smaller. 1 where none is. -/
  growth : R

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

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1] [LE R]
variable [DecidableLE R]

/-- The losses of what is multiplied last and stored before it meets keys, queries or dO, counted
as many times as they may be. -/
@[expose] def GradientPrecision.grown (p : GradientPrecision R) : GradientPrecision R :=
  { p with tiny := p.growth * p.tiny, storedTiny := p.growth * p.storedTiny }

/-! ## Weights that are computed again -/

/-- How far s − L may be off, where the score s is off by `ofScore`, the log-sum-exp L by `ofLse`,
and both are rounded three times more, factors of another base, and the difference: each time they
may be off by `ν` below the normal numbers. -/
@[expose] def exponentError (unit ν s L ofScore ofLse : R) : R :=
  let ofScore := ofScore + numeral 3 * ν
  let ofLse := ofLse + numeral 3 * ν
  ofScore + ofLse + gamma 3 unit * (absolute s + ofScore + (absolute L + ofLse))

/-- How far exp (s − L) may be off, as a share of itself. -/
@[expose] def recomputedError [Exp R R] (unit ν exponential s L ofScore ofLse : R) : R :=
  exp (exponentError unit ν s L ofScore ofLse) * (1 + exponential) - 1

/-! ## The slope of softcap -/

/-- How far 1 − t², the slope of softcap, may be off, where t = tanh (x / cap) is off by `ofTanh`:
the square and the difference are rounded, and none of them is far from the numbers up to 1; and the
square may be off by `tiny` below the normal numbers. -/
@[expose] def softcapSlopeError (unit tiny t ofTanh : R) : R :=
  smaller ((numeral 2 * absolute t + ofTanh) * ofTanh + numeral 2 * unit) (1 + numeral 2 * unit)
    + numeral 2 * tiny

/-! ## A query row -/

/-- A key from the gradient by the output and its value. -/
@[expose] def gradientKey {d : Nat} (weight error factor slope slopeError : R) (dO v : Vec R d) :
    GradientKey R :=
  ⟨weight, error, factor, factor * Vec.dot dO v, factor * magnitude dO v, slope, slopeError⟩

/-- An error of something that the weight multiplies: none of a masked key, whose weight is 0. -/
@[expose] def tinyOf (weight tiny : R) : R := if weight ≤ 0 then 0 else tiny

/-- The underflow of dP: of its products and their sums, of the product with dropout's factor, and
where it is stored. There are at most as many products as they are rounded times, and fewer
additions. -/
@[expose] def productTiny (p : GradientPrecision R) (c : GradientCounts) (factor : R) : R :=
  let sum := (1 + gamma c.products p.accumulation) * (numeral (2 * c.products) * p.tiny)
  (factor * sum * (1 + p.factors) + p.tiny) * (1 + p.scores) + p.scoresTiny

/-- How an error grows that a forward pass makes of a weight: rescalings may enlarge it, and the
denominator by which it is divided at the end may be smaller than 1 by its own errors. A weight
that is computed again has `error` as its own, of which the denominator's is a part. -/
@[expose] def meanGrowth (p : GradientPrecision R) (c : GradientCounts) (error : R) : R :=
  (1 + error) / power (1 - p.exponential) (3 * c.rescalings + 2)

/-- The underflow of the exponentials of a weight of the output, its own and those of rescalings, of
its product with dropout's factor, and of sums; and as much once more is that of as many products
with its value. -/
@[expose] def meanLost (p : GradientPrecision R) (c : GradientCounts) (error : R) : R :=
  numeral (c.rescalings + 6) * p.tiny * meanGrowth p c error

/-- The underflow of a weight of which D is made: what it may lose, or double, and then it is
stored. -/
@[expose] def meanWeightTiny (p : GradientPrecision R) (c : GradientCounts) (k : GradientKey R) :
    R :=
  tinyOf k.weight (numeral 2 * meanLost p c k.error * (1 + p.stored)
    + p.storedTiny * meanGrowth p c k.error)

/-- D = Σ P dP. -/
@[expose] def meanProduct (keys : List (GradientKey R)) : R :=
  sumOver (fun k => k.weight * k.product) keys

/-- W = Σ P A. -/
@[expose] def meanSize (keys : List (GradientKey R)) : R :=
  sumOver (fun k => k.weight * k.size) keys

/-- The relative error of D by its sums, as a factor F, whichever way D is computed: as the sum
Σ P dP, or as ⟨dO, O⟩ from an output that was stored. -/
@[expose] def meanFactor (p : GradientPrecision R) (c : GradientCounts) : R :=
  (1 + gamma c.delta p.accumulation) * (1 + p.factors) * (1 + p.scores) * (1 + p.output)
    / power (1 - p.exponential) (c.rescalings + 1)

/-- The underflow of D in either way, before its sums are rounded: of each key that of its weight,
of its dP, and of its products with dP, as they are made and added, or with its value and in
rescalings; then that of the output where it is stored, and of its products with dO and their sums.
`reach` is Σ |dO|. -/
@[expose] def meanTiny (p : GradientPrecision R) (c : GradientCounts) (reach : R)
    (keys : List (GradientKey R)) : R :=
  sumOver (fun k => meanWeightTiny p c k * (k.size + productTiny p c k.factor)
      + k.weight * ((1 + k.error) * (1 + p.stored)) * productTiny p c k.factor
      + tinyOf k.weight (meanLost p c k.error) * (numeral 2 + reach)) keys
    + (p.outputTiny * reach + numeral (2 * c.products) * p.tiny)

/-- The error of D: Σ P A ((1 + ε) (1 + u_P) F − 1), and F times what underflows. -/
@[expose] def meanError (p : GradientPrecision R) (c : GradientCounts) (reach : R)
    (keys : List (GradientKey R)) : R :=
  sumOver (fun k => k.weight * k.size
      * ((1 + k.error) * (1 + p.stored) * meanFactor p c - 1)) keys
    + meanFactor p c * meanTiny p c reach keys

/-- G = dP − D + dL, where dL is the gradient by the log-sum-exp. -/
@[expose] def innerGradient (dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  k.product - meanProduct keys + dL

/-- The sizes of its terms: A + W + |dL|. -/
@[expose] def innerSize (dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  k.size + meanSize keys + absolute dL

/-- The error of G, whose three terms are rounded up to three times, and added twice. -/
@[expose] def innerError (p : GradientPrecision R) (c : GradientCounts) (reach dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  let terms := ((1 + gamma c.products p.accumulation) * (1 + p.factors) * (1 + p.scores) - 1)
    * k.size + productTiny p c k.factor + meanError p c reach keys + numeral 2 * p.tiny
  terms + gamma 3 p.unit * (innerSize dL keys k + terms)

/-- The underflow of a weight that multiplies G or meets dO, where it is computed again and
stored. -/
@[expose] def weightTiny (p : GradientPrecision R) (k : GradientKey R) : R :=
  tinyOf k.weight (p.tiny * (1 + p.weights) + p.weightsTiny)

/-- The underflow of up to two products that the weight takes part in, with G and the slope. -/
@[expose] def timesTiny (p : GradientPrecision R) (k : GradientKey R) : R :=
  (1 + gamma 2 p.unit) * (numeral 2 * tinyOf k.weight p.tiny)

/-- The error of dS = P G, the gradient by a score and by a bias. -/
@[expose] def scoreGradientError (p : GradientPrecision R) (c : GradientCounts) (reach dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  let ofInner := innerError p c reach dL keys k
  let ofWeight := (1 + k.error) * (1 + p.weights) * (1 + gamma 2 p.unit) - 1
  let largest := absolute (innerGradient dL keys k) + ofInner
  k.weight * (ofWeight * largest + ofInner)
    + ((1 + gamma 2 p.unit) * weightTiny p k * largest + timesTiny p k)

/-- The error that dS times the slope adds to dQ and dK, `other` being a component of the key or the
query: its error where it is stored for that product. -/
@[expose] def scoreGradientTerm (p : GradientPrecision R) (c : GradientCounts) (reach dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) (other : R) : GradientTerm R :=
  let dS := k.weight * innerGradient dL keys k
  let largest := absolute k.slope + k.slopeError
  let error := scoreGradientError p c reach dL keys k * largest + absolute dS * k.slopeError
    + timesTiny p.grown k
  ⟨k.weight * innerSize dL keys k * largest,
    error + p.stored * (absolute dS * absolute k.slope + error)
      + tinyOf k.weight p.grown.storedTiny,
    other⟩

/-- The error that a weight adds to dV. -/
@[expose] def weightTerm (p : GradientPrecision R) (k : GradientKey R) (other : R) :
    GradientTerm R :=
  let size := k.factor * k.weight
  ⟨size, size * ((1 + k.error) * (1 + p.weights) * (1 + p.factors) * (1 + p.stored) - 1)
    + ((k.factor * weightTiny p k * (1 + p.factors) + tinyOf k.weight p.grown.tiny)
      * (1 + p.stored) + tinyOf k.weight p.grown.storedTiny), other⟩

/-- The error of scale · Σ x · y, where each y is stored up to `stores` times, a product goes
through at most `roundings` roundings, there are no more products than that, and fewer additions,
and the sum is multiplied by the scale in up to three. No part of the scale that multiplies the sum
is larger than `reach`, nor is 1. -/
@[expose] def gradientError (p : GradientPrecision R) (roundings stores : Nat) (scale reach : R)
    (terms : List (GradientTerm R)) : R :=
  let sums := (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
    * power (1 + p.operands) stores - 1
  let lost := numeral 3 * p.tiny + numeral stores * p.operandsTiny
  absolute scale
      * sumOver (fun t => (t.error + sums * (t.size + t.error)) * absolute t.other) terms
    + (1 + sums) * reach * (lost * (sumOver (fun t => t.size + t.error) terms + 1)
      + numeral (2 * roundings) * p.tiny)

/-- The error of Σ x · y, where each x is stored once more, and a product goes through at most
`roundings` roundings, of which there are no fewer than products: a sum over the heads that share
keys, over what a bias is broadcast over, or over the queries of a sink. A product and the sum of
two numbers may be off by `tiny` besides, a number that is stored by `storedTiny`. -/
@[expose] def totalError (accumulation stored tiny storedTiny : R) (roundings : Nat)
    (terms : List (GradientTerm R)) : R :=
  let sums := (1 + stored) * (1 + gamma roundings accumulation) - 1
  sumOver (fun t => (t.error + sums * (t.size + t.error)) * absolute t.other) terms
    + (1 + gamma roundings accumulation)
      * (storedTiny * sumOver (fun t => absolute t.other) terms + numeral (2 * roundings) * tiny)

end Attention.Spec
