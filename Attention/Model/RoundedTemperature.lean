module

public import Attention.Model.RoundedGradients
public import Attention.Spec.TemperatureTolerance

public section

/-! # Sums over components that are rounded

What a backward pass may compute for the gradient by a temperature from those by the queries.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u v

variable {R : Type u} [OrderedField R]

/-- All components of the queries of `n` batches, which share the temperature of a head. -/
@[expose] def components (n q_len d : Nat) : List (Fin n × Fin q_len × Fin d) :=
  (List.finRange n).flatMap fun b => (List.finRange q_len).flatMap fun i =>
    (List.finRange d).map fun c => (b, i, c)

/-- `z` is what a function may compute for Σ x y over a list: each product is rounded, and off by up
to `tiny` below the normal numbers, and they are added in any order, in a tree that makes of a
product at most `roundings` roundings with its own; each sum may be off by `tiny`, too. There are no
more products than `roundings`. -/
@[expose] def ComputedSumOver {α : Type v} (accumulation tiny : R) (roundings : Nat) (xs : List α)
    (x y : α → R) (z : R) : Prop :=
  ∃ (k : Nat) (products : α → R), k + 1 ≤ roundings ∧ xs.length ≤ roundings ∧
    (∀ i ∈ xs, StoredBelow accumulation tiny (x i * y i) (products i)) ∧
    FlushedSum accumulation tiny products k xs z

end Attention.Model
