module

public import Attention.Model.RoundedGradients
public import Attention.Model.UnderflowOverflow
public import Attention.Spec.OverflowGradients

public section

/-! # Gradients that round and may overflow

`Model/RoundedGradients.lean` with largest numbers. An operation whose exact result is past its
largest number may give anything: a number, or `none`, which is an infinity or a NaN. So may an
operation on what is no number. The inputs, slopes and, where D is computed from it, the output are
numbers.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.Model

open Spec

universe u v

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-- `BelowTimes` with a largest number. -/
@[expose] def LimitedBelowTimes (largest u η : R) : Nat → R → Option R → Prop
  | 0, x, y => y = some x
  | k + 1, x, y => ∃ z, LimitedBelowTimes largest u η k x z ∧
      ∀ a ∈ z, Limited largest (StoredBelow u η) a y

/-- `FlushedSum` with a largest number. Where the sizes of the two numbers of an addition come to
more, it may give anything. -/
abbrev LimitedFlushedSum {α : Type v} (largest u ν : R) (f : α → R) :
    Nat → List α → Option R → Prop :=
  LimitedSumOf largest u ν (fun a => f a = 0) f

/-- `StoredWeight` with largest numbers, of the format in which a weight is computed and of that in
which it is stored. If it may be larger than the first, it may be anything. -/
@[expose] def LimitedWeight (accumulator largest u η weight error lost : R) (w : Option R) : Prop :=
  ∃ x : Option R, ((1 + error) * weight + tinyOf weight lost ≤ accumulator →
      ∃ a, x = some a ∧ AtMost (error * weight + tinyOf weight lost) (a - weight)) ∧
    ∀ a ∈ x, Limited largest (StoredBelow u η) a w

/-- `ComputedProduct` with largest numbers. If the product with the factor may be past the range,
with the error of the factor, it may be anything. -/
@[expose] def LimitedProduct (p : GradientPrecision R) (largest : LargestGradient R)
    (c : GradientCounts) (factor : R) (dO v : Vec R d) (x : Option R) : Prop :=
  ∃ (k : Nat) (products : Fin d → Option R) (sum y : Option R), k + 1 ≤ c.products ∧
    d ≤ c.products ∧
    (∀ i : Fin d, Limited largest.accumulator (StoredBelow p.accumulation p.tiny) (dO[i] * v[i])
      (products i)) ∧
    (∀ terms : Fin d → R, (∀ i, products i = some (terms i)) →
      LimitedFlushedSum largest.accumulator p.accumulation p.tiny terms k (List.finRange d) sum) ∧
    (∀ s ∈ sum, absolute (factor * s) * (1 + p.factors) ≤ largest.accumulator →
      ∃ t y', y = some y' ∧ AtMost p.factors (t - 1) ∧ AtMost p.tiny (y' - factor * s * t)) ∧
    ∀ a ∈ y, Limited largest.scores (StoredBelow p.scores p.scoresTiny) a x

/-- `MeanWeight` with largest numbers. -/
@[expose] def BackwardRow.LimitedMeanWeight (p : GradientPrecision R)
    (largest : LargestGradient R) (c : GradientCounts) (r : BackwardRow R n d_v) (j : Fin n)
    (w : Option R) : Prop :=
  LimitedWeight largest.accumulator largest.stored p.stored
    (p.storedTiny * meanGrowth p c (r.error j)) (r.weight j) (r.error j)
    (numeral 2 * meanLost p c (r.error j)) w

/-- `ComputedMean` with largest numbers. -/
inductive LimitedMean (p : GradientPrecision R) (largest : LargestGradient R) (c : GradientCounts)
    (r : BackwardRow R n d_v) : Option R → Prop
  /-- As the sum of P dP. -/
  | ofProducts {k : Nat} {w x y : Fin n → Option R} {D : Option R} :
      (∀ j, r.LimitedMeanWeight p largest c j (w j)) →
      (∀ j, LimitedProduct p largest c (r.factor j) r.dO (r.value j) (x j)) →
      (∀ j, ∀ a ∈ w j, ∀ b ∈ x j,
        Limited largest.accumulator (StoredBelow p.accumulation p.tiny) (a * b) (y j)) →
      (∀ terms : Fin n → R, (∀ j, y j = some (terms j)) →
        LimitedFlushedSum largest.accumulator p.accumulation p.tiny terms k (List.finRange n) D) →
      c.products + k + 1 ≤ c.delta → LimitedMean p largest c r D
  /-- As ⟨dO, O⟩, of an output that is stored, and is numbers. -/
  | ofOutput {m k : Nat} {o : Fin d_v → R} {y : Fin d_v → Option R} {D : Option R} :
      (∀ i, r.OutputComponent p c m i (o i)) →
      (∀ i : Fin d_v, Limited largest.accumulator (StoredBelow p.accumulation p.tiny)
        (r.dO[i] * o i) (y i)) →
      (∀ terms : Fin d_v → R, (∀ i, y i = some (terms i)) →
        LimitedFlushedSum largest.accumulator p.accumulation p.tiny terms k (List.finRange d_v) D) →
      m + k + 1 ≤ c.delta → d_v ≤ c.products → LimitedMean p largest c r D

/-- `ComputedScoreGradient` with largest numbers. -/
@[expose] def LimitedScoreGradient (p : GradientPrecision R) (largest : LargestGradient R)
    (c : GradientCounts) (r : BackwardRow R n d_v) (D : Option R) (j : Fin n) (S X : Option R) :
    Prop :=
  ∃ (a b : Nat) (x G w y : Option R) (slope : R), a + b ≤ 2 ∧
    LimitedProduct p largest c (r.factor j) r.dO (r.value j) x ∧
    (∀ e ∈ x, ∀ f ∈ D, LimitedFlushedSum largest.accumulator p.unit p.tiny id 3 [e, -f, r.dL] G) ∧
    LimitedWeight largest.accumulator largest.weights p.weights p.weightsTiny (r.weight j)
      (r.error j) p.tiny w ∧
    (∀ e ∈ w, ∀ f ∈ G, LimitedBelowTimes largest.accumulator p.unit p.tiny a (e * f) S) ∧
    AtMost (r.slopeError j) (slope - r.slope j) ∧
    (∀ e ∈ S, LimitedBelowTimes largest.accumulator p.unit p.tiny b (e * slope) y) ∧
    ∀ e ∈ y, Limited largest.stored (StoredBelow p.stored p.storedTiny) e X

/-- `Computed` with largest numbers: `S` and `X` are what a function may compute for a query row,
numbers or not. -/
@[expose] def BackwardRow.Limited (p : GradientPrecision R) (largest : LargestGradient R)
    (c : GradientCounts) (r : BackwardRow R n d_v) (S X : Fin n → Option R) : Prop :=
  ∃ D, LimitedMean p largest c r D ∧ ∀ j, LimitedScoreGradient p largest c r D j (S j) (X j)

/-- `ComputedWeight` with largest numbers. -/
@[expose] def BackwardRow.LimitedWeight (p : GradientPrecision R) (largest : LargestGradient R)
    (r : BackwardRow R n d_v) (j : Fin n) (w : Option R) : Prop :=
  ∃ x y : Option R,
    Model.LimitedWeight largest.accumulator largest.weights p.weights p.weightsTiny (r.weight j)
      (r.error j) p.tiny x ∧
    (∀ a ∈ x, absolute (r.factor j * a) * (1 + p.factors) ≤ largest.accumulator →
      ∃ t y', y = some y' ∧ AtMost p.factors (t - 1) ∧
        AtMost (tinyOf (r.weight j) p.tiny) (y' - r.factor j * a * t)) ∧
    ∀ a ∈ y, Model.Limited largest.stored (StoredBelow p.stored p.storedTiny) a w

/-- `ComputedGradient` with largest numbers: `part` is the part of the scale that multiplies each y,
and `rest` that which multiplies the sum. -/
@[expose] def LimitedGradient (p : GradientPrecision R) (largest : LargestGradient R)
    (roundings stores : Nat) (part rest : R) (x : Fin n → Option R) (y : Fin n → R)
    (z : Option R) : Prop :=
  ∃ (k a b e f : Nat) (y' y'' products : Fin n → Option R) (sum sum' : Option R),
    k + 1 ≤ roundings ∧ n ≤ roundings ∧ a + b ≤ stores ∧ e + f ≤ 3 ∧
    (∀ j, LimitedBelowTimes largest.accumulator p.unit p.tiny e (part * y j) (y' j)) ∧
    (∀ j, ∀ c ∈ y' j,
      LimitedBelowTimes largest.operands p.operands p.operandsTiny a c (y'' j)) ∧
    (∀ j, ∀ c ∈ x j, ∀ d ∈ y'' j,
      Limited largest.accumulator (StoredBelow p.accumulation p.tiny) (c * d) (products j)) ∧
    (∀ terms : Fin n → R, (∀ j, products j = some (terms j)) →
      LimitedFlushedSum largest.accumulator p.accumulation p.tiny terms k (List.finRange n) sum) ∧
    (∀ s ∈ sum, LimitedBelowTimes largest.operands p.operands p.operandsTiny b s sum') ∧
    ∀ s ∈ sum', LimitedBelowTimes largest.accumulator p.unit p.tiny f (rest * s) z

end Attention.Model
