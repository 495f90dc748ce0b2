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
`RoundedSum`; any number and any sum in it may be stored in a format of unit roundoff `σ`, and no
number goes through more than `m` stores. -/
inductive StoredSum (u σ : R) : Nat → Nat → List R → R → Prop
  /-- The empty sum is 0. -/
  | nil {k m : Nat} : StoredSum u σ k m [] 0
  /-- One number is not rounded. -/
  | one {k m : Nat} {x : R} : StoredSum u σ k m [x] x
  /-- A sum is stored. -/
  | store {k m : Nat} {xs : List R} {z z' : R} : StoredSum u σ k m xs z → Rounded σ z z' →
      StoredSum u σ k (m + 1) xs z'
  /-- Two sums are added. -/
  | add {k m : Nat} {xs ys : List R} {x x' y y' : R} : StoredSum u σ k m xs x →
      StoredSum u σ k m ys y → Rounded u x x' → Rounded u y y' →
      StoredSum u σ (k + 1) m (xs ++ ys) (x' + y')
  /-- In another order. -/
  | permute {k m : Nat} {xs ys : List R} {z : R} : StoredSum u σ k m xs z → xs.Perm ys →
      StoredSum u σ k m ys z

/-- `z` is what a function may compute for scale · Σ xⱼ yⱼ that adds it up in `parts`: each y is
multiplied by a part of the scale and stored, as in `ComputedGradient`; the products of a tile are
added in any order; their sum may be stored, and is multiplied by a second part of the scale; these
are added in any order, any of them and any sum stored in the format of the output, a product up to
`tiles` times; and the whole is multiplied by the third part of the scale. -/
@[expose] def ComputedTiledGradient (p : GradientPrecision R) (roundings stores tiles : Nat)
    (scale : R) (x y : Fin n → R) (z : R) : Prop :=
  ∃ (parts : List (List (Fin n))) (k l a b e f g : Nat) (σ σ' σ'' : R) (y' y'' products : Fin n → R)
    (sum sum' added : List (Fin n) → R) (whole : R), parts.flatten.Perm (List.finRange n) ∧
    k + l + 1 ≤ roundings ∧ a + b ≤ stores ∧ e + f + g ≤ 3 ∧ σ * σ' * σ'' = scale ∧
    (∀ j, RoundedTimes p.unit e (σ * y j) (y' j)) ∧
    (∀ j, RoundedTimes p.operands a (y' j) (y'' j)) ∧
    (∀ j, Rounded p.accumulation (x j * y'' j) (products j)) ∧
    (∀ part ∈ parts, RoundedSum p.accumulation k (part.map products) (sum part)) ∧
    (∀ part ∈ parts, RoundedTimes p.operands b (sum part) (sum' part)) ∧
    (∀ part ∈ parts, RoundedTimes p.unit f (σ' * sum' part) (added part)) ∧
    StoredSum p.accumulation p.output l tiles (parts.map added) whole ∧
    RoundedTimes p.unit g (σ'' * whole) z

end Attention.Model
