module

public import Attention.Model.RoundedStoredGradients

public section

/-! # Gradients of numbers that are stored with a factor

A backward pass may leave dropout's factor out of the weights that meet dO and multiply the sum by
it, or multiply dS by the scale before it stores it, or store dP before dropout's factor multiplies
it: then a number of another size is stored, and what storing loses counts more, or less.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-- Nothing counts more than once. -/
@[expose] def notGrown (p : GradientPrecision R) : GradientPrecision R := { p with growth := 1 }

/-- `S` and `X` are what a function may compute for a query row, as in `BackwardRow.Computed`, where
each X is stored with a factor `τ`. It multiplies dS by `τ` times the slope, which product is exact,
as where the slope is 1. -/
@[expose] def BackwardRow.Scaled (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) (τ : R) (S X : Fin n → R) : Prop :=
  ∃ D, ComputedMean p c r D ∧ ∀ j, ScoreGradientOf (notGrown p) c r (r.EarlyWeight p j)
    (fun σ => ∃ s, AtMost (r.slopeError j) (s - r.slope j) ∧ σ = τ * s) D j (S j) (X j)

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
