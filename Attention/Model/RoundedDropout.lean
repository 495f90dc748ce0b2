module

public import Attention.Model.Rounding
public import Attention.Spec.Dropout

public section

/-! # Dropout in a function that rounds

Source: docs/tolerances.md, "Dropout". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- A key under dropout: its value is the exact one. -/
structure DroppedKey (R : Type u) extends ComputedKey R where
  /-- Whether its weight is kept. -/
  keep : Bool
  /-- The factor of its weight in the function, in place of the value times the factor. -/
  used : R

/-- `y` is the value `v` of a key, multiplied by the factor of dropout with probability `q` as a
function of unit roundoff `u` computes it: it rounds the probability, one minus it, the quotient,
which takes up to four roundings, and the product. Where it multiplies the weight instead, that
product is rounded like this one. -/
@[expose] def ComputedDropout (u q : R) (keep : Bool) (v y : R) : Prop :=
  if keep then
    ∃ q' c z, Rounded u q q' ∧ Rounded u (1 - q') c ∧ RoundedTimes u 4 (1 / c) z ∧
      Rounded u (z * v) y
  else y = 0

end Attention.Model
