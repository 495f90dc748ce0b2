module

public import Attention.Model.Underflow
public import Attention.Spec.BackwardDropout
public import Attention.Spec.GradientTolerance

public section

/-! # Gradients that are rounded

What a backward pass that rounds may compute for one query row, and for the sums of products over
keys or queries. Products, quotients, exponentials, numbers that are stored, and sums and
differences may be below the normal numbers of their formats. Sums have such an error only where
they are flushed to 0: with gradual underflow they are exact there (`round-sums`).
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u v

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-- `y` is `x`, stored in a format of unit roundoff `u` whose numbers below the normal ones are off
by at most `η`, and in which 0 is 0. -/
@[expose] def StoredBelow (u η x y : R) : Prop :=
  ∃ z, Rounded u x z ∧ AtMost η (y - z) ∧ (x = 0 → y = 0)

/-- `y` is `x`, stored `k` times. -/
@[expose] def BelowTimes (u η : R) : Nat → R → R → Prop
  | 0, x, y => y = x
  | k + 1, x, y => ∃ z, BelowTimes u η k x z ∧ StoredBelow u η z y

/-- `z` is the sum of a number `f` of each of some things, added as in `RoundedSum`; the sum of two
numbers may be off by `ν` besides, as where it is flushed to 0. A sum of nothing but 0 is 0, and
where such a sum is added nothing is lost. -/
abbrev FlushedSum {α : Type v} (u ν : R) (f : α → R) : Nat → List α → R → Prop :=
  SumOf u ν (fun a => f a = 0) f

/-- Errors that mean something. -/
structure PreciseGradient (p : GradientPrecision R) : Prop where
  /-- Not negative. -/
  unit : 0 ≤ p.unit
  /-- Not negative. -/
  accumulation : 0 ≤ p.accumulation
  /-- Not negative. -/
  exponential : 0 ≤ p.exponential
  /-- A rounded exponential stays positive. -/
  exponential_lt : p.exponential < 1
  /-- Not negative. -/
  weights : 0 ≤ p.weights
  /-- Not negative. -/
  stored : 0 ≤ p.stored
  /-- Not negative. -/
  factors : 0 ≤ p.factors
  /-- Not negative. -/
  scores : 0 ≤ p.scores
  /-- Not negative. -/
  output : 0 ≤ p.output
  /-- Not negative. -/
  operands : 0 ≤ p.operands
  /-- Not negative. -/
  tiny : 0 ≤ p.tiny
  /-- Not negative. -/
  weightsTiny : 0 ≤ p.weightsTiny
  /-- Not negative. -/
  storedTiny : 0 ≤ p.storedTiny
  /-- Not negative. -/
  scoresTiny : 0 ≤ p.scoresTiny
  /-- Not negative. -/
  outputTiny : 0 ≤ p.outputTiny
  /-- Not negative. -/
  operandsTiny : 0 ≤ p.operandsTiny
  /-- No loss counts less than once. -/
  growth : 1 ≤ p.growth

/-- A query with its keys: what is exact, and how far off weights and slopes may be. -/
structure BackwardRow (R : Type u) (n d_v : Nat) where
  /-- The exact weights. -/
  weight : Fin n → R
  /-- How far off computed weights may be, as a share of them. -/
  error : Fin n → R
  /-- The factors of dropout; 1 without. -/
  factor : Fin n → R
  /-- The slopes of what becomes of scores. -/
  slope : Fin n → R
  /-- How far off computed slopes may be. -/
  slopeError : Fin n → R
  /-- The values. -/
  value : Fin n → Vec R d_v
  /-- The gradient by the output of this query. -/
  dO : Vec R d_v
  /-- The gradient by its log-sum-exp. -/
  dL : R

/-- One key as the tolerance sees it. -/
@[expose] def BackwardRow.key (r : BackwardRow R n d_v) (j : Fin n) : GradientKey R :=
  gradientKey (r.weight j) (r.error j) (r.factor j) (r.slope j) (r.slopeError j) r.dO (r.value j)

/-- All of them. -/
@[expose] def BackwardRow.keys (r : BackwardRow R n d_v) : List (GradientKey R) :=
  (List.finRange n).map r.key

/-- Σ |dO|. -/
@[expose] def BackwardRow.reach (r : BackwardRow R n d_v) : R :=
  sumOver (fun i : Fin d_v => absolute r.dO[i]) (List.finRange d_v)

/-- Weights, factors and the errors of weights are not negative. -/
structure BackwardRow.Valid (r : BackwardRow R n d_v) : Prop where
  /-- Not negative. -/
  weight : ∀ j, 0 ≤ r.weight j
  /-- Not negative. -/
  factor : ∀ j, 0 ≤ r.factor j
  /-- Not negative. -/
  error : ∀ j, 0 ≤ r.error j

/-- The exact gradient by a score, dS = P (dP − D + dL). -/
@[expose] def BackwardRow.scoreGradient (r : BackwardRow R n d_v) (j : Fin n) : R :=
  r.weight j * innerGradient r.dL r.keys (r.key j)

/-- `P` is what a function may compute again for the weight exp (s − L), from a score and a
log-sum-exp that it computed: each is rounded up to three times, for factors of another base and for
the difference, and is off by `ν` besides where it is below the normal numbers then. -/
@[expose] def RecomputedWeight [Exp R R] (unit ν exponential tiny s L P : R) : Prop :=
  ∃ x y, BelowTimes unit ν 3 s x ∧ BelowTimes unit ν 3 L y ∧
    StoredBelow exponential tiny (exp (x - y)) P

/-- `w` is a computed weight, off by a share of itself and by what underflowed, `lost`, and stored
in a format of unit roundoff `u` and with `η` below its normal numbers. A masked key has weight 0,
of which nothing is lost. -/
@[expose] def StoredWeight (u η weight error lost w : R) : Prop :=
  ∃ x, AtMost (error * weight + tinyOf weight lost) (x - weight) ∧ StoredBelow u η x w

/-- `x` is what a function may compute for dP, factor · ⟨dO, v⟩: products, a sum in any order, the
product with a factor that is off itself, and storing. -/
@[expose] def ComputedProduct (p : GradientPrecision R) (c : GradientCounts) (factor : R)
    (dO v : Vec R d) (x : R) : Prop :=
  ∃ (k : Nat) (products : Fin d → R) (sum t y : R), k + 1 ≤ c.products ∧ d ≤ c.products ∧
    (∀ i : Fin d, StoredBelow p.accumulation p.tiny (dO[i] * v[i]) (products i)) ∧
    FlushedSum p.accumulation p.tiny products k (List.finRange d) sum ∧
    AtMost p.factors (t - 1) ∧ AtMost p.tiny (y - factor * sum * t) ∧
    StoredBelow p.scores p.scoresTiny y x

/-- `w` is the weight of key `j` of which D is made. -/
@[expose] def BackwardRow.MeanWeight (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (j : Fin n) (w : R) : Prop :=
  StoredWeight p.stored (p.storedTiny * meanGrowth p c (r.error j)) (r.weight j) (r.error j)
    (numeral 2 * meanLost p c (r.error j)) w

/-- `w` is the weight of key `j` in an output, of which nothing underflowed but as it was stored. -/
@[expose] def BackwardRow.OutputWeight (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (j : Fin n) (w : R) : Prop :=
  StoredWeight p.stored (p.storedTiny * meanGrowth p c (r.error j)) (r.weight j) (r.error j) 0 w

/-- The part of a key of an output, its weight times its value, is off by this factor at most where
it has gone through `m` roundings, the exponentials of its weight and of all rescalings, and
dropout's factor. -/
@[expose] def outputFactor (p : GradientPrecision R) (c : GradientCounts) (m : Nat) : R :=
  (1 + p.accumulation) ^ m * (1 + p.factors) / (1 - p.exponential) ^ (c.rescalings + 1)

/-- What underflows of the part of key `j` of component `i` of an output, of its weight and of its
products. -/
@[expose] def BackwardRow.outputLost (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (j : Fin n) (i : Fin d_v) : R :=
  tinyOf (r.weight j) (meanLost p c (r.error j)
    * (numeral 2 * (r.factor j * absolute (r.value j)[i]) + 1))

/-- `o` is component `i` of an output of which D may be made, stored: the part of a key, its weight
times its value, is off by a factor `t` and by `e`, which underflowed, where it has gone through `m`
roundings. A forward pass makes such an output (`tiny_output`). -/
@[expose] def BackwardRow.OutputComponent (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (m : Nat) (i : Fin d_v) (o : R) : Prop :=
  ∃ w t e : Fin n → R, (∀ j, r.OutputWeight p c j (w j)) ∧
    (∀ j, AtMost (outputFactor p c m - 1) (t j - 1)) ∧
    (∀ j, AtMost (outputFactor p c m * r.outputLost p c j i) (e j)) ∧
    StoredBelow p.output p.outputTiny
      (sumOver (fun j => w j * (r.factor j * (r.value j)[i]) * t j + e j) (List.finRange n)) o

/-- `D` is what a function may compute for Σ P dP of weights of which `weight` holds, or of an
output of whose components `component` holds, `m` roundings having been in each. -/
inductive MeanOf (p : GradientPrecision R) (c : GradientCounts) (r : BackwardRow R n d_v)
    (weight : Fin n → R → Prop) (component : Nat → Fin d_v → R → Prop) : R → Prop
  /-- As it stands, of weights that are stored once more. -/
  | ofProducts {k : Nat} {w x y : Fin n → R} {D : R} : (∀ j, weight j (w j)) →
      (∀ j, ComputedProduct p c (r.factor j) r.dO (r.value j) (x j)) →
      (∀ j, StoredBelow p.accumulation p.tiny (w j * x j) (y j)) →
      FlushedSum p.accumulation p.tiny y k (List.finRange n) D → c.products + k + 1 ≤ c.delta →
      MeanOf p c r weight component D
  /-- As ⟨dO, O⟩. -/
  | ofOutput {m k : Nat} {o y : Fin d_v → R} {D : R} : (∀ i, component m i (o i)) →
      (∀ i : Fin d_v, StoredBelow p.accumulation p.tiny (r.dO[i] * o i) (y i)) →
      FlushedSum p.accumulation p.tiny y k (List.finRange d_v) D → m + k + 1 ≤ c.delta →
      d_v ≤ c.products → MeanOf p c r weight component D

/-- `D` is what a function may compute for Σ P dP, of weights and outputs that are off by no more
than the row says. -/
abbrev ComputedMean (p : GradientPrecision R) (c : GradientCounts) (r : BackwardRow R n d_v) :
    R → Prop :=
  MeanOf p c r (r.MeanWeight p c) (r.OutputComponent p c)

/-- `S` is what a function may compute for dS of key `j` from its `D`, and `X` what of S times the
slope meets keys and queries, from a weight and a slope of which `weight` and `slope` hold. Products
with G and with the slope are rounded twice together. -/
@[expose] def ScoreGradientOf (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (weight slope : R → Prop) (D : R) (j : Fin n) (S X : R) : Prop :=
  ∃ (a b : Nat) (x G w σ y : R), a + b ≤ 2 ∧
    ComputedProduct p c (r.factor j) r.dO (r.value j) x ∧
    FlushedSum p.unit p.tiny id 3 [x, -D, r.dL] G ∧ weight w ∧
    BelowTimes p.unit p.tiny a (w * G) S ∧ slope σ ∧
    BelowTimes p.unit p.grown.tiny b (S * σ) y ∧ StoredBelow p.stored p.grown.storedTiny y X

/-- `w` is what a function may compute for the weight of key `j` before it is stored for values, in
a row that says how far off it is. -/
@[expose] def BackwardRow.EarlyWeight (p : GradientPrecision R) (r : BackwardRow R n d_v)
    (j : Fin n) (w : R) : Prop :=
  StoredWeight p.weights p.weightsTiny (r.weight j) (r.error j) p.tiny w

/-- The same of a weight and a slope that are off by no more than the row says. -/
abbrev ComputedScoreGradient (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (D : R) (j : Fin n) (S X : R) : Prop :=
  ScoreGradientOf p c r (r.EarlyWeight p j) (fun σ => AtMost (r.slopeError j) (σ - r.slope j))
    D j S X

/-- `S` and `X` are what a function may compute for a query row. -/
@[expose] def BackwardRow.Computed (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (S X : Fin n → R) : Prop :=
  ∃ D, ComputedMean p c r D ∧ ∀ j, ComputedScoreGradient p c r D j (S j) (X j)

/-- `w` is what a function may compute for the weight of key `j` where it meets dO, from one of
which `weight` holds. -/
@[expose] def BackwardRow.WeightOf (p : GradientPrecision R) (r : BackwardRow R n d_v)
    (weight : R → Prop) (j : Fin n) (w : R) : Prop :=
  ∃ x t y, weight x ∧ AtMost p.factors (t - 1) ∧
    AtMost (tinyOf (r.weight j) p.grown.tiny) (y - r.factor j * x * t) ∧
    StoredBelow p.stored p.grown.storedTiny y w

/-- The same of a weight that is off by no more than the row says. -/
abbrev BackwardRow.ComputedWeight (p : GradientPrecision R) (r : BackwardRow R n d_v) (j : Fin n)
    (w : R) : Prop :=
  r.WeightOf p (r.EarlyWeight p j) j w

/-- `z` is what a function may compute for scale · Σ xⱼ yⱼ: each y is multiplied by a part of the
scale and stored, the products are added in any order, and the sum is multiplied by the rest of the
scale; it may be stored before that, too. The products with the two parts of the scale are rounded
three times together. The part that multiplies the sum is `reach` at most. -/
@[expose] def ComputedGradient (p : GradientPrecision R) (roundings stores : Nat) (scale reach : R)
    (x y : Fin n → R) (z : R) : Prop :=
  ∃ (k a b e f : Nat) (σ σ' : R) (y' y'' products : Fin n → R) (sum sum' : R), k + 1 ≤ roundings ∧
    n ≤ roundings ∧ a + b ≤ stores ∧ e + f ≤ 3 ∧ σ * σ' = scale ∧ AtMost reach σ' ∧
    (∀ j, BelowTimes p.unit p.tiny e (σ * y j) (y' j)) ∧
    (∀ j, BelowTimes p.operands p.operandsTiny a (y' j) (y'' j)) ∧
    (∀ j, StoredBelow p.accumulation p.tiny (x j * y'' j) (products j)) ∧
    FlushedSum p.accumulation p.tiny products k (List.finRange n) sum ∧
    BelowTimes p.operands p.operandsTiny b sum sum' ∧
    BelowTimes p.unit p.tiny f (σ' * sum') z

/-- `z` is what a function may compute for Σ xⱼ yⱼ of numbers that it stores first. -/
@[expose] def ComputedTotal (accumulation stored tiny storedTiny : R) (roundings : Nat)
    (x y : Fin n → R) (z : R) : Prop :=
  ∃ (k : Nat) (x' products : Fin n → R), k + 1 ≤ roundings ∧ n ≤ roundings ∧
    (∀ j, StoredBelow stored storedTiny (x j) (x' j)) ∧
    (∀ j, StoredBelow accumulation tiny (x' j * y j) (products j)) ∧
    FlushedSum accumulation tiny products k (List.finRange n) z

/-- Query `i` of attention with dropout with its keys. -/
@[expose] def backwardRow [Exp R R] {q_len kv_len : Nat} (scale : R)
    (modify : ScoreMod R q_len kv_len) (slope : ScoreSlope R R q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v)
    (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)
    (error slopeError : Fin q_len → Fin kv_len → R) (i : Fin q_len) : BackwardRow R kv_len d_v :=
  { weight := fun j => (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j]
    error := error i
    factor := Z i
    slope := fun j => slope i j (scale * Vec.dot Q[i] K[j])
    slopeError := slopeError i
    value := fun j => V[j]
    dO := dO[i]
    dL := dLse[i] }

end Attention.Model
