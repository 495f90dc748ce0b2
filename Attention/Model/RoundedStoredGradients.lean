module

public import Attention.Model.RoundedGradients
public import Attention.Spec.StoredGradientTolerance

public section

/-! # Gradients that are added up in a small format

What a backward pass may compute for a sum of products that it adds tile by tile, where what a tile
adds and the sums of it may be stored.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {n : Nat}

/-- `z` is the sum of the list, added in some order in a tree of depth at most `k` as in
`RoundedSum`, where the sum of two numbers may be off by `ν` besides, as in `FlushedSum`; any number
and any sum in it may be stored in a format of unit roundoff `σ`, with `η` below its normal numbers.
No number goes through more than `m` stores, and there are `s` of them. -/
inductive StoredSum (u ν σ η : R) : Nat → Nat → Nat → List R → R → Prop
  /-- The empty sum is 0. -/
  | nil {k m : Nat} : StoredSum u ν σ η k m 0 [] 0
  /-- One number is not rounded. -/
  | one {k m : Nat} {x : R} : StoredSum u ν σ η k m 0 [x] x
  /-- A sum is stored. -/
  | store {k m s : Nat} {xs : List R} {z z' : R} : StoredSum u ν σ η k m s xs z →
      StoredBelow σ η z z' → StoredSum u ν σ η k (m + 1) (s + 1) xs z'
  /-- Two sums are added. -/
  | add {k m s t : Nat} {xs ys : List R} {x x' y y' : R} : StoredSum u ν σ η k m s xs x →
      StoredSum u ν σ η k m t ys y → Rounded u x x' → Rounded u y y' →
      StoredSum u ν σ η (k + 1) m (s + t) (xs ++ ys) (x' + y')
  /-- Two sums are added of which neither is one of zeros, and the result is below the normal
  numbers. -/
  | tiny {k m s t : Nat} {xs ys : List R} {x x' y y' z : R} : StoredSum u ν σ η k m s xs x →
      StoredSum u ν σ η k m t ys y → (∃ a ∈ xs, a ≠ 0) → (∃ a ∈ ys, a ≠ 0) → Rounded u x x' →
      Rounded u y y' → AtMost ν (z - (x' + y')) → StoredSum u ν σ η (k + 1) m (s + t) (xs ++ ys) z
  /-- In another order. -/
  | permute {k m s : Nat} {xs ys : List R} {z : R} : StoredSum u ν σ η k m s xs z → xs.Perm ys →
      StoredSum u ν σ η k m s ys z

/-- `z` is what a function may compute for scale · Σ xⱼ yⱼ that adds it up in `parts`, `tiles` + 1
of them at most: each y is multiplied by a part of the scale and stored, as in `ComputedGradient`;
the products of a tile are added in any order; their sum may be stored, and is multiplied by a
second part of the scale; these are added in any order, any of them and any sum stored in the format
of the output, a product up to `tiles` times, with 2 `tiles` stores in all at most; and the whole is
multiplied by the third part of the scale. That part is `reach` at most, and so is its product with
the second. -/
@[expose] def ComputedTiledGradient (p : GradientPrecision R) (roundings stores tiles : Nat)
    (scale reach : R) (x y : Fin n → R) (z : R) : Prop :=
  ∃ (parts : List (List (Fin n))) (k l s a b e f g : Nat) (σ σ' σ'' : R)
    (y' y'' products : Fin n → R) (sum sum' added : List (Fin n) → R) (whole : R),
    parts.flatten.Perm (List.finRange n) ∧
    parts.length ≤ tiles + 1 ∧ n ≤ roundings ∧ s ≤ 2 * tiles ∧
    k + l + 1 ≤ roundings ∧ a + b ≤ stores ∧ e + f + g ≤ 3 ∧ σ * σ' * σ'' = scale ∧
    AtMost reach (σ' * σ'') ∧ AtMost reach σ'' ∧
    (∀ j, BelowTimes p.unit p.tiny e (σ * y j) (y' j)) ∧
    (∀ j, BelowTimes p.operands p.operandsTiny a (y' j) (y'' j)) ∧
    (∀ j, StoredBelow p.accumulation p.tiny (x j * y'' j) (products j)) ∧
    (∀ part ∈ parts, FlushedSum p.accumulation p.tiny products k part (sum part)) ∧
    (∀ part ∈ parts, BelowTimes p.operands p.operandsTiny b (sum part) (sum' part)) ∧
    (∀ part ∈ parts, BelowTimes p.unit p.tiny f (σ' * sum' part) (added part)) ∧
    StoredSum p.accumulation p.tiny p.output p.outputTiny l tiles s (parts.map added) whole ∧
    BelowTimes p.unit p.tiny g (σ'' * whole) z

/-- `w` is what a function may compute for a gradient by a key or a value from those of the heads
that share it, `z`: of several, the sum of what is stored of each. -/
@[expose] def ComputedShared (p : GradientPrecision R) (tiny : R) (roundings : Nat) (z : Fin n → R)
    (w : R) : Prop :=
  if n = 1 then ∀ h, w = z h
  else ComputedTotal p.accumulation p.output p.tiny tiny roundings z (fun _ => 1) w

end Attention.Model
