module

public import Attention.Algebra.Exponential

public section

/-! # Maxima of scores, and weights against them

A score is `some s`, or `none` when the key is masked: −∞, and never a number. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v}

/-- The larger of two scores; `none` stands for −∞. -/
@[expose] def maxScore [LE S] [DecidableLE S] : Option S → Option S → Option S
  | none, b => b
  | a, none => a
  | some a, some b => some (if a ≤ b then b else a)

/-- The largest unmasked score of a row; `none` when every key is masked. -/
@[expose] def rowMax [LE S] [DecidableLE S] : List (Option S) → Option S
  | [] => none
  | s :: row => maxScore s (rowMax row)

/-- exp (s − m): the weight of `s` against the reference point `m`, and 0 when `s` is −∞. -/
@[expose] def rescale [Sub S] [OfNat R 0] [Exp S R] : Option S → Option S → R
  | some s, some m => exp (s - m)
  | _, _ => 0

end Attention.Spec
