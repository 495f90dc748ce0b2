module

public import Attention.Model.RoundedStoredGradients

public section

/-! # Gradients of numbers that are stored with a factor

A backward pass may leave dropout's factor out of the weights that meet dO and multiply the sum by
it, or multiply dS by the scale before it stores it, or store dP before dropout's factor multiplies
it: then a number of another size is stored, and what storing loses counts more, or less. Or it
leaves that factor out of dP and of all that it makes of it, until dQ and dK are summed.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-- Nothing counts more than once. -/
@[expose] def notGrown (p : GradientPrecision R) : GradientPrecision R := { p with growth := 1 }

/-- `S` and `X` are what a function may compute for a query row, as in `BackwardRow.Computed`, where
each X is stored with a factor `τ`. It multiplies dS by `τ` times the slope, which product is off by
no more than the row says of the slope, as where that is 1. -/
@[expose] def BackwardRow.ScaledLast (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (τ : R) (S X : Fin n → R) : Prop :=
  ∃ D, ComputedMean p c r D ∧ ∀ j, ScoreGradientOf (notGrown p) c r (r.EarlyWeight p j)
    (fun σ => ∃ s, AtMost (r.slopeError j) (s - r.slope j) ∧ σ = τ * s) D j (S j) (X j)

/-- The errors of a pass that loses `ν` where `p` says `tiny`, and `η` where dP is stored. -/
@[expose] def withLosses (p : GradientPrecision R) (ν η : R) : GradientPrecision R :=
  { p with growth := 1, tiny := ν, scoresTiny := η }

/-- `S` and `X` are what a function may compute for a query row where it leaves a factor 1 / `σ` of
dropout's out of dP: it makes D as in `BackwardRow.Computed`, with the factor, multiplies it by `σ`,
and dL too, so that G and dS are without the factor, and multiplies dS by `κ` times the slope. Below
the normal numbers it loses `ν` wherever it computes from dP on, and `η` where it stores dP. -/
@[expose] def BackwardRow.WithoutFactor (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (ν η σ κ : R) (S X : Fin n → R) : Prop :=
  ∃ D D' L, ComputedMean p c r D ∧ StoredBelow p.unit ν (σ * D) D' ∧
    StoredBelow p.unit ν (σ * r.dL) L ∧ ∀ j, ∃ (a b : Nat) (x G w s y : R), a + b ≤ 2 ∧
      ComputedProduct (withLosses p ν η) c (σ * r.factor j) r.dO (r.value j) x ∧
      FlushedSum p.unit ν id 2 [x, -D', L] G ∧ r.EarlyWeight p j w ∧
      BelowTimes p.unit ν a (w * G) (S j) ∧ AtMost (r.slopeError j) (s - r.slope j) ∧
      BelowTimes p.unit ν b (S j * (κ * s)) y ∧ StoredBelow p.stored p.storedTiny y (X j)

/-- The same of a pass that multiplies dS by `τ` as in `ScaledLast`, or by a part of it, `κ`, having
left out the rest, a factor of dropout's, as in `WithoutFactor`. There the bound loses twice as much
below the normal numbers as the pass does, as often as what it computes is smaller. -/
@[expose] def BackwardRow.Scaled (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (τ : R) (S X : Fin n → R) : Prop :=
  r.ScaledLast p c τ S X ∨ ∃ ν η σ κ, 0 < σ ∧ σ ≤ 1 ∧ σ * κ = τ ∧ 0 ≤ ν ∧ 0 ≤ η ∧
    numeral 2 * ν ≤ σ * p.tiny ∧ η ≤ σ * p.scoresTiny ∧ r.WithoutFactor p c ν η σ κ S X

/-- `w` is what a function may compute for the weight of key `j` where it meets dO, as in
`BackwardRow.ComputedWeight`, with a factor `τ`: without a factor 1 / τ of dropout's. -/
@[expose] def BackwardRow.ScaledWeight (p : GradientPrecision R) (r : BackwardRow R n d_v) (τ : R)
    (j : Fin n) (w : R) : Prop :=
  { r with factor := fun j => τ * r.factor j }.ComputedWeight (notGrown p) j w

/-- `x` is what a function may compute for dP, as in `ComputedProduct`, where it is stored before
dropout's factor multiplies it, too, both times in a format of unit roundoff `u` with `η` below its
normal numbers. -/
@[expose] def TwiceStoredProduct (p : GradientPrecision R) (c : GradientCounts) (u η factor : R)
    (dO v : Vec R d) (x : R) : Prop :=
  ∃ (k : Nat) (products : Fin d → R) (sum sum' t y : R), k + 1 ≤ c.products ∧ d ≤ c.products ∧
    (∀ i : Fin d, StoredBelow p.accumulation p.tiny (dO[i] * v[i]) (products i)) ∧
    FlushedSum p.accumulation p.tiny products k (List.finRange d) sum ∧
    StoredBelow u η sum sum' ∧ AtMost p.factors (t - 1) ∧ AtMost p.tiny (y - factor * sum' * t) ∧
    StoredBelow u η y x

end Attention.Model
