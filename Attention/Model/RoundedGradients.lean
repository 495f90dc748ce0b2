module

public import Attention.Model.Rounding
public import Attention.Spec.BackwardDropout
public import Attention.Spec.GradientTolerance

public section

/-! # Gradients that are rounded

What a backward pass that rounds may compute for one query row, and for the sums of products over
keys or queries.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-- Relative errors that mean something. -/
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
the difference. -/
@[expose] def RecomputedWeight [Exp R R] (unit exponential s L P : R) : Prop :=
  ∃ x y, RoundedTimes unit 3 s x ∧ RoundedTimes unit 3 L y ∧ Rounded exponential (exp (x - y)) P

/-- `w` is a computed weight, stored in a format of unit roundoff `u`. -/
@[expose] def StoredWeight (u weight error w : R) : Prop :=
  ∃ x, AtMost (error * weight) (x - weight) ∧ Rounded u x w

/-- `x` is what a function may compute for dP, factor · ⟨dO, v⟩: products, a sum in any order, the
product with a factor that is off itself, and storing. -/
@[expose] def ComputedProduct (p : GradientPrecision R) (c : GradientCounts) (factor : R)
    (dO v : Vec R d) (x : R) : Prop :=
  ∃ (k : Nat) (products : Fin d → R) (sum t : R), k + 1 ≤ c.products ∧
    (∀ i : Fin d, Rounded p.accumulation (dO[i] * v[i]) (products i)) ∧
    RoundedSum p.accumulation k ((List.finRange d).map products) sum ∧
    AtMost p.factors (t - 1) ∧ Rounded p.scores (factor * sum * t) x

/-- `D` is what a function may compute for Σ P dP. -/
inductive ComputedMean (p : GradientPrecision R) (c : GradientCounts) (r : BackwardRow R n d_v) :
    R → Prop
  /-- As it stands, of weights that are stored once more. -/
  | ofProducts {k : Nat} {w x y : Fin n → R} {D : R} :
      (∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j)) →
      (∀ j, ComputedProduct p c (r.factor j) r.dO (r.value j) (x j)) →
      (∀ j, Rounded p.accumulation (w j * x j) (y j)) →
      RoundedSum p.accumulation k ((List.finRange n).map y) D → c.products + k + 1 ≤ c.delta →
      ComputedMean p c r D
  /-- As ⟨dO, O⟩, of an output that is stored. Of a component of O the part of a key, its weight
  times its value, has gone through at most `m` roundings, the exponentials of all rescalings, and
  dropout's factor: it is off by a factor `t`. -/
  | ofOutput {m k : Nat} {w : Fin n → R} {t : Fin n → Fin d_v → R} {o y : Fin d_v → R} {D : R} :
      (∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j)) →
      (∀ j i, AtMost ((1 + p.accumulation) ^ m * (1 + p.factors)
        / (1 - p.exponential) ^ c.rescalings - 1) (t j i - 1)) →
      (∀ i : Fin d_v, Rounded p.output
        (sumOver (fun j => w j * (r.factor j * (r.value j)[i]) * t j i) (List.finRange n)) (o i)) →
      (∀ i : Fin d_v, Rounded p.accumulation (r.dO[i] * o i) (y i)) →
      RoundedSum p.accumulation k ((List.finRange d_v).map y) D → m + k + 1 ≤ c.delta →
      ComputedMean p c r D

/-- `S` is what a function may compute for dS of key `j` from its `D`, and `X` what of S times the
slope meets keys and queries. Products with G and with the slope are rounded twice together. -/
@[expose] def ComputedScoreGradient (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (D : R) (j : Fin n) (S X : R) : Prop :=
  ∃ (a b : Nat) (x G w slope y : R), a + b ≤ 2 ∧
    ComputedProduct p c (r.factor j) r.dO (r.value j) x ∧ RoundedSum p.unit 3 [x, -D, r.dL] G ∧
    StoredWeight p.weights (r.weight j) (r.error j) w ∧ RoundedTimes p.unit a (w * G) S ∧
    AtMost (r.slopeError j) (slope - r.slope j) ∧ RoundedTimes p.unit b (S * slope) y ∧
    Rounded p.stored y X

/-- `S` and `X` are what a function may compute for a query row. -/
@[expose] def BackwardRow.Computed (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (S X : Fin n → R) : Prop :=
  ∃ D, ComputedMean p c r D ∧ ∀ j, ComputedScoreGradient p c r D j (S j) (X j)

/-- `w` is what a function may compute for the weight of key `j` where it meets dO. -/
@[expose] def BackwardRow.ComputedWeight (p : GradientPrecision R) (r : BackwardRow R n d_v)
    (j : Fin n) (w : R) : Prop :=
  ∃ x t, StoredWeight p.weights (r.weight j) (r.error j) x ∧ AtMost p.factors (t - 1) ∧
    Rounded p.stored (r.factor j * x * t) w

/-- `z` is what a function may compute for scale · Σ xⱼ yⱼ: each y is multiplied by a part of the
scale and stored, the products are added in any order, and the sum is multiplied by the rest of the
scale; it may be stored before that, too. The products with the two parts of the scale are rounded
three times together. -/
@[expose] def ComputedGradient (p : GradientPrecision R) (roundings stores : Nat) (scale : R)
    (x y : Fin n → R) (z : R) : Prop :=
  ∃ (k a b e f : Nat) (σ σ' : R) (y' y'' products : Fin n → R) (sum sum' : R), k + 1 ≤ roundings ∧
    a + b ≤ stores ∧ e + f ≤ 3 ∧ σ * σ' = scale ∧
    (∀ j, RoundedTimes p.unit e (σ * y j) (y' j)) ∧
    (∀ j, RoundedTimes p.operands a (y' j) (y'' j)) ∧
    (∀ j, Rounded p.accumulation (x j * y'' j) (products j)) ∧
    RoundedSum p.accumulation k ((List.finRange n).map products) sum ∧
    RoundedTimes p.operands b sum sum' ∧ RoundedTimes p.unit f (σ' * sum') z

/-- `z` is what a function may compute for Σ xⱼ yⱼ of numbers that it stores first. -/
@[expose] def ComputedTotal (accumulation stored : R) (roundings : Nat) (x y : Fin n → R) (z : R) :
    Prop :=
  ∃ (k : Nat) (x' products : Fin n → R), k + 1 ≤ roundings ∧ (∀ j, Rounded stored (x j) (x' j)) ∧
    (∀ j, Rounded accumulation (x' j * y j) (products j)) ∧
    RoundedSum accumulation k ((List.finRange n).map products) z

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
