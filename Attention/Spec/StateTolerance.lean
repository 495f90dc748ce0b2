module

public import Attention.Spec.Cache
public import Attention.Spec.Tolerance

public section

/-! # How far the state of a cache may be from the exact one

A key is appended to the state (m, l, o) of a row, or its terms are subtracted again; a deletion
keeps the roundings of the state before it, so the bound follows the changes. One column at a time:
l, with the value 1 for each key, or a component of o. `Proof/Rounding/States.lean` proves that no
function of `Model/RoundedStates.lean` exceeds it.
Source: docs/tolerances.md, "States of a cache". -/

namespace Attention.Spec

universe u

/-- A column of a state, and how far a computed one may be from it. -/
structure BoundedColumn (R : Type u) where
  /-- The reference point, `none` before the first unmasked key. -/
  m : Option R
  /-- Σ exp (s − m) · v. -/
  value : R
  /-- The largest error. -/
  error : R

variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [Max R] [LE R] [DecidableLE R]
  [OfNat R 0] [OfNat R 1]

/-- The factor that allows for products of two errors: 1.02. -/
@[expose] def secondOrder : R := numeral 51 / numeral 50

/-- How far a weight exp (s − m) is off, as a share of itself, where each score is rounded twice and
their difference once, or flushed to 0 where it is `ν` at most: 4 u for the exponential,
u (2 |s| + 2 |m| + |s − m|), and ν. -/
@[expose] def weightError (u ν : R) (s m : Option R) : R :=
  match s, m with
  | some s, some m => numeral 4 * u
    + (u * (numeral 2 * absolute s + numeral 2 * absolute m + absolute (s - m)) + ν)
  | _, _ => 0

/-- One more key, with score `s` and value `v`. Weights, products and sums below the normal numbers
are off by `ν` at most: those of the new key and of what was there. -/
@[expose] def BoundedColumn.append [Exp R R] (u ν : R) (c : BoundedColumn R) (s : Option R)
    (v : R) : BoundedColumn R :=
  let m := maxScore c.m s
  let α : R := rescale c.m m
  let p : R := rescale s m
  { m := m
    value := α * c.value + p * v
    error := α * c.error
      + secondOrder * ((weightError u ν c.m m + numeral 2 * u) * (α * (absolute c.value + c.error))
        + (weightError u ν s m + numeral 2 * u) * (p * absolute v)
        + ν * (absolute c.value + c.error + absolute v + numeral 3)) }

/-- The terms of a key, with score `s` and value `v`, subtracted. -/
@[expose] def BoundedColumn.delete [Exp R R] (u ν : R) (c : BoundedColumn R) (s : Option R)
    (v : R) : BoundedColumn R :=
  let p : R := rescale s c.m
  { m := c.m
    value := c.value - p * v
    error := c.error + secondOrder * (u * (absolute c.value + c.error)
      + (weightError u ν s c.m + numeral 2 * u) * (p * absolute v) + ν * (absolute v + numeral 2)) }

end Attention.Spec
