module

public import Attention.Model.Underflow
public import Attention.Spec.StateTolerance

public section

/-! # States of a cache in a function that rounds

Source: docs/tolerances.md, "States of a cache". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- A score, or no score, that is rounded twice. -/
@[expose] def ComputedPoint (u : R) (s y : Option R) : Prop :=
  match s, y with
  | none, none => True
  | some s, some y => RoundedTimes u 2 s y
  | _, _ => False

/-- The weight exp (s − m) of a computed score against a computed reference point: the difference is
rounded, or flushed to 0 where it is `ν` at most, and the exponential is off by four units, or by
`ν` below the normal numbers; 0 where either is none. -/
@[expose] def ComputedWeight [Exp R R] (u ν : R) (s m : Option R) (w : R) : Prop :=
  match s, m with
  | some s, some m => ∃ x, Difference u ν (s - m) x ∧ Stored (numeral 4 * u) ν (exp x) w
  | _, _ => w = 0

/-- `StateRun u ν c m x`: a function of unit roundoff `u`, whose exponentials, products and sums may
underflow by `ν` at most, may have `m` and `x` for the reference point and the value of the column
`c`, after some changes. Weights are off by a hundredth of themselves at most, but for that. Scores
are not below the normal numbers. -/
inductive StateRun [Exp R R] (u ν : R) : BoundedColumn R → Option R → R → Prop
  /-- Before the first key. -/
  | empty : StateRun u ν ⟨none, 0, 0⟩ none 0
  /-- One more key; the new reference point is the larger score, rounded as the scores are. -/
  | append {c : BoundedColumn R} {m m' s s' : Option R} {x v α p y z x' : R} :
      StateRun u ν c m x → ComputedPoint u s s' → ComputedPoint u (maxScore c.m s) m' →
      numeral 100 * (weightError u ν c.m (maxScore c.m s) + numeral 2 * u) ≤ 1 →
      numeral 100 * (weightError u ν s (maxScore c.m s) + numeral 2 * u) ≤ 1 →
      ComputedWeight u ν m m' α → ComputedWeight u ν s' m' p →
      Stored u ν (α * x) y → Stored u ν (p * v) z → StoredNear u ν (y + z) x' →
      StateRun u ν (c.append u ν s v) m' x'
  /-- The terms of a key subtracted. -/
  | delete {c : BoundedColumn R} {m s s' : Option R} {x v p z x' : R} :
      StateRun u ν c m x → ComputedPoint u s s' →
      numeral 100 * (weightError u ν s c.m + numeral 2 * u) ≤ 1 →
      ComputedWeight u ν s' m p → Stored u ν (p * v) z → StoredNear u ν (x - z) x' →
      StateRun u ν (c.delete u ν s v) m x'

end Attention.Model
