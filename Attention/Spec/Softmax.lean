module

public import Attention.Algebra.Sum
public import Attention.Spec.Maximum

public section

/-! # Softmax of one row of scores

A score is `some s`, or `none` when the key is masked: masked is not a number. A masked key has
weight 0, and a row with every key masked has softmax 0 everywhere; no division by zero is ever
made.
Source: Milakov & Gimelshein 2018, "Online normalizer calculation for softmax", Algorithms 1 and 2.
-/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v}

/-- The unnormalised weight of a score: exp s, and 0 for a masked one. -/
@[expose] def weight [OfNat R 0] [Exp S R] : Option S → R
  | none => 0
  | some s => exp s

/-- The softmax denominator Σ exp s over the unmasked scores. -/
@[expose] def denominator [Add R] [OfNat R 0] [Exp S R] (row : List (Option S)) : R :=
  sumOver weight row

/-- Softmax: pⱼ = exp sⱼ / Σ exp s, and 0 for a masked key. -/
@[expose] def softmax [Add R] [Div R] [OfNat R 0] [Exp S R] (row : List (Option S)) : List R :=
  let l := denominator row
  row.map fun
    | none => 0
    | some s => exp s / l

/-- Softmax as every kernel computes it, the maximum subtracted first:
pⱼ = exp (sⱼ − m) / Σ exp (s − m). -/
@[expose] def safeSoftmax [Sub S] [LE S] [DecidableLE S] [Add R] [Div R] [OfNat R 0] [Exp S R]
    (row : List (Option S)) : List R :=
  let m := rowMax row
  let l := sumOver (fun s => rescale s m) row
  row.map fun
    | none => 0
    | some s => rescale (some s) m / l

end Attention.Spec
