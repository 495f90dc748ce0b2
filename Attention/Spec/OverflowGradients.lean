module

public import Attention.Spec.BackwardDropout
public import Attention.Spec.GradientTolerance

public section

/-! # Inputs of whose gradients none overflows

Bounds of all numbers that a backward pass forms, in whatever order it adds, from the sizes of its
inputs, how many roundings a number goes through, and what it rounds. The weights of a row are not
negative and are 1 together at most, so they need no exponential.
`Proof/Rounding/OverflowGradients.lean` proves that of what fits no number overflows.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Spec

universe u

/-- The largest numbers of the formats of a backward pass. -/
structure LargestGradient (R : Type u) where
  /-- Of sums, products and gradients. -/
  accumulator : R
  /-- Of weights where they are stored before they multiply G. -/
  weights : R
  /-- Of weights and dS where they are stored for values, keys and queries. -/
  stored : R
  /-- Of dP where it is stored. -/
  scores : R
  /-- Of keys, queries and sums where they are stored in the format of operands. -/
  operands : R
  /-- Of the gradients that are the result. -/
  output : R

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1] [LE R]
variable [DecidableLE R]

/-- No number is larger that was `x` in size and is rounded or stored up to `k` times. -/
@[expose] def belowSize (u η : R) (k : Nat) (x : R) : R := power (1 + u) k * (x + numeral k * η)

/-- No sum of up to `k` products is larger, nor a part of it, in whatever order they are added,
where their sizes are `total` together and none goes through more than `k` roundings. Each product
and each addition may lose `p.tiny`. -/
@[expose] def sumSize (p : GradientPrecision R) (k : Nat) (total : R) : R :=
  power (1 + p.accumulation) k * (total + numeral (2 * k) * p.tiny)

/-! ## A query row -/

/-- No part of ⟨dO, v⟩ is larger, in whatever order its terms are added. -/
@[expose] def dotSize (p : GradientPrecision R) (c : GradientCounts) {d : Nat} (dO v : Vec R d) :
    R :=
  sumSize p c.products (magnitude dO v)

/-- No dP is larger before it is stored: the product with dropout's factor. -/
@[expose] def factoredSize (p : GradientPrecision R) (c : GradientCounts) (factor : R) {d : Nat}
    (dO v : Vec R d) : R :=
  factor * dotSize p c dO v * (1 + p.factors) + p.tiny

/-- No dP is larger. -/
@[expose] def outerSize (p : GradientPrecision R) (c : GradientCounts) (factor : R) {d : Nat}
    (dO v : Vec R d) : R :=
  belowSize p.scores p.scoresTiny 1 (factoredSize p c factor dO v)

/-- The numbers of which a dP is made are in the range. -/
@[expose] def outerFits (p : GradientPrecision R) (largest : LargestGradient R)
    (c : GradientCounts) (factor : R) {d : Nat} (dO v : Vec R d) : Bool :=
  decide (dotSize p c dO v ≤ largest.accumulator)
    && decide (factoredSize p c factor dO v ≤ smaller largest.accumulator largest.scores)

/-- No weight of which D is made is larger, which is `weight` in exact arithmetic. -/
@[expose] def meanWeightSize (p : GradientPrecision R) (c : GradientCounts) (error weight : R) :
    R :=
  belowSize p.stored (p.storedTiny * meanGrowth p c error) 1
    ((1 + error) * weight + numeral 2 * meanLost p c error)

/-- No part of D is larger, the mean of `n` numbers dP of the size `outer`, in whatever order and in
whichever way it is computed. `reach` is Σ |dO|. -/
@[expose] def deltaSize (p : GradientPrecision R) (c : GradientCounts) (n : Nat)
    (error reach outer : R) : R :=
  power (1 + p.accumulation) c.delta
    * ((1 + p.factors) * (1 + p.output) / power (1 - p.exponential) (c.rescalings + 1))
    * (((1 + p.stored) * (1 + error) + numeral n * meanWeightSize p c error 0) * outer
      + numeral n * meanLost p c error * (numeral 2 + reach)
      + (p.outputTiny * reach + numeral (2 * c.products) * p.tiny))

/-- No weight that multiplies G or meets dO is larger, which is `weight` in exact arithmetic. -/
@[expose] def recomputedSize (p : GradientPrecision R) (error weight : R) : R :=
  belowSize p.weights p.weightsTiny 1 ((1 + error) * weight + p.tiny)

/-- No dS is larger whose G is at most `inner`. -/
@[expose] def scoreGradientSize (p : GradientPrecision R) (error inner weight : R) : R :=
  belowSize p.unit p.tiny 2 (recomputedSize p error weight * inner)

/-- Nor is dS times a slope, which is at most `slope`, where it is stored. -/
@[expose] def slopedSize (p : GradientPrecision R) (error slope inner weight : R) : R :=
  belowSize p.stored p.storedTiny 1
    (belowSize p.unit p.tiny 2 (scoreGradientSize p error inner weight * slope))

/-- No weight is larger where it meets dO, multiplied by dropout's factor and stored. -/
@[expose] def weightTermSize (p : GradientPrecision R) (error factor : R) : R :=
  belowSize p.stored p.storedTiny 1
    (factor * recomputedSize p error 1 * (1 + p.factors) + p.tiny)

variable {n d d_v q_len kv_len : Nat}

/-- The largest size of a dP of a row. -/
@[expose] def rowOuterSize (p : GradientPrecision R) (c : GradientCounts) (factor : Fin n → R)
    (value : Fin n → Vec R d_v) (dO : Vec R d_v) : R :=
  (List.finRange n).foldl (fun x j => max x (outerSize p c (factor j) dO (value j))) 0

/-- The size of a D of a row. -/
@[expose] def rowDeltaSize (p : GradientPrecision R) (c : GradientCounts) (error : R)
    (factor : Fin n → R) (value : Fin n → Vec R d_v) (dO : Vec R d_v) : R :=
  deltaSize p c n error (sumOver (fun i : Fin d_v => absolute dO[i]) (List.finRange d_v))
    (rowOuterSize p c factor value dO)

/-- The size of a G of a row, and of its parts: dP − D + dL, in whatever order. -/
@[expose] def rowInnerSize (p : GradientPrecision R) (c : GradientCounts) (error : R)
    (factor : Fin n → R) (value : Fin n → Vec R d_v) (dO : Vec R d_v) (dL : R) : R :=
  power (1 + p.unit) 3 * (rowOuterSize p c factor value dO
    + rowDeltaSize p c error factor value dO + absolute dL + numeral 3 * p.tiny)

/-- All numbers of a query row are in the range: dP, D, G, dS and its product with a slope. No D and
no G is larger than dS may be. Masked keys count as others do, since a function may compute a dP of
them, too. No weight is off by more than `error`, as a share of itself, and no computed slope is
larger than `slope`. -/
@[expose] def gradientRowFits (p : GradientPrecision R) (largest : LargestGradient R)
    (c : GradientCounts) (error slope : R) (factor : Fin n → R) (value : Fin n → Vec R d_v)
    (dO : Vec R d_v) (dL : R) : Bool :=
  let inner := rowInnerSize p c error factor value dO dL
  (List.finRange n).all (fun j => outerFits p largest c (factor j) dO (value j))
    && decide (meanWeightSize p c error 1 ≤ smaller largest.accumulator largest.stored)
    && decide (recomputedSize p error 1 ≤ smaller largest.accumulator largest.weights)
    && decide (scoreGradientSize p error inner 1 ≤ largest.accumulator)
    && decide (slopedSize p error slope inner 1 ≤ smaller largest.accumulator largest.stored)

/-! ## Sums over keys and queries -/

/-- No number that meets dS or a weight is larger: `y` times a part of the scale, stored. -/
@[expose] def operandSize (p : GradientPrecision R) (stores : Nat) (part y : R) : R :=
  belowSize p.operands p.operandsTiny stores
    (belowSize p.unit p.tiny 3 (absolute part * absolute y))

/-- No sum of products is larger whose sizes are `total` together, nor where it is stored. -/
@[expose] def totalSize (p : GradientPrecision R) (roundings stores : Nat) (total : R) : R :=
  belowSize p.operands p.operandsTiny stores (sumSize p roundings total)

/-- Nor is the gradient that it becomes, multiplied by the rest of the scale. -/
@[expose] def gradientSize (p : GradientPrecision R) (roundings stores : Nat) (rest total : R) :
    R :=
  belowSize p.unit p.tiny 3 (absolute rest * totalSize p roundings stores total)

/-- All numbers of scale · Σ xⱼ yⱼ are in the range, of which each y is multiplied by `part` and the
sum by `rest`, and where the sizes of x and `part` y come to `total`. -/
@[expose] def gradientSumFits (p : GradientPrecision R) (largest : LargestGradient R)
    (roundings stores : Nat) (part rest : R) (y : Fin n → R) (total : R) : Bool :=
  (List.finRange n).all (fun j =>
      decide (operandSize p stores part (y j) ≤ smaller largest.accumulator largest.operands))
    && decide (totalSize p roundings stores total ≤ smaller largest.accumulator largest.operands)
    && decide (gradientSize p roundings stores rest total
      ≤ smaller largest.accumulator largest.output)

/-- The sizes of dS and of what it meets, over the keys of a row. As the weights of a row are 1
together at most, it is the largest of the keys that counts, and of all what may underflow. -/
@[expose] def rowTotal (p : GradientPrecision R) (stores : Nat) (part error slope inner : R)
    (y : Fin n → R) : R :=
  (slopedSize p error slope inner 1 - slopedSize p error slope inner 0)
      * (List.finRange n).foldl (fun x j => max x (operandSize p stores part (y j))) 0
    + slopedSize p error slope inner 0
      * sumOver (fun j => operandSize p stores part (y j)) (List.finRange n)

/-- Of component `t` of dQ of query `i` no number overflows. -/
@[expose] def queryGradientFits (p : GradientPrecision R) (largest : LargestGradient R)
    (c : GradientCounts) (roundings stores : Nat) (error slope part rest : R)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len)
    (dO : Matrix R q_len d_v) (dLse : Vec R q_len) (i : Fin q_len) (t : Fin d) : Bool :=
  let inner := rowInnerSize p c error (Z i) (fun j : Fin kv_len => V[j]) dO[i] dLse[i]
  gradientRowFits p largest c error slope (Z i) (fun j : Fin kv_len => V[j]) dO[i] dLse[i]
    && gradientSumFits p largest roundings stores part rest (fun j : Fin kv_len => K[j][t])
      (rowTotal p stores part error slope inner (fun j : Fin kv_len => K[j][t]))

/-- Of component `t` of dK of a key no number overflows. -/
@[expose] def keyGradientFits (p : GradientPrecision R) (largest : LargestGradient R)
    (c : GradientCounts) (roundings stores : Nat) (error slope part rest : R)
    (Q : Matrix R q_len d) (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len)
    (dO : Matrix R q_len d_v) (dLse : Vec R q_len) (t : Fin d) : Bool :=
  let inner := fun i : Fin q_len =>
    rowInnerSize p c error (Z i) (fun j : Fin kv_len => V[j]) dO[i] dLse[i]
  (List.finRange q_len).all (fun i =>
      gradientRowFits p largest c error slope (Z i) (fun j : Fin kv_len => V[j]) dO[i] dLse[i])
    && gradientSumFits p largest roundings stores part rest (fun i : Fin q_len => Q[i][t])
      (sumOver (fun i : Fin q_len =>
        slopedSize p error slope (inner i) 1 * operandSize p stores part Q[i][t])
        (List.finRange q_len))

/-- Of component `t` of dV of key `j` no number overflows. -/
@[expose] def valueGradientFits (p : GradientPrecision R) (largest : LargestGradient R)
    (roundings stores : Nat) (error : R) (Z : WeightFactor R q_len kv_len)
    (dO : Matrix R q_len d_v) (j : Fin kv_len) (t : Fin d_v) : Bool :=
  decide (recomputedSize p error 1 ≤ smaller largest.accumulator largest.weights)
    && (List.finRange q_len).all (fun i =>
      decide (weightTermSize p error (Z i j) ≤ smaller largest.accumulator largest.stored))
    && gradientSumFits p largest roundings stores 1 1 (fun i : Fin q_len => dO[i][t])
      (sumOver (fun i : Fin q_len =>
        weightTermSize p error (Z i j) * operandSize p stores 1 dO[i][t]) (List.finRange q_len))

end Attention.Spec
