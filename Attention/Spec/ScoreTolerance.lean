module

public import Attention.Spec.Tolerance
public import Attention.Spec.Attention

public section

/-! # Tolerances of scores

How far a computed score scale · ⟨q, k⟩ may be from the exact one, but for a constant that all keys
of the row share. `Proof/Rounding/Scores.lean` proves that no score of `Model/RoundedScores.lean`
exceeds it.
Source: docs/tolerances.md, section 1; for the inner product Higham 2002, "Accuracy and Stability of
Numerical Algorithms", section 3.1. -/

namespace Attention.Spec

universe u

/-- In which formats of their own scaled operands and scores are stored: bounds of relative errors,
and of absolute ones below the normal numbers of the format; 0 for what stays in the accumulator. -/
structure ScoreFormats (R : Type u) where
  /-- Of a format in which q or k, multiplied by the scale or a part of it, is stored. -/
  operands : R
  /-- How many of the two operands are multiplied before the inner product: 0, 1 or 2. -/
  roundings : Nat
  /-- Of a format in which scores are stored. -/
  scores : R
  /-- Of storing such a product below the normal numbers of its format: an absolute error, η_op. -/
  operandsTiny : R
  /-- At most this part of the scale multiplies that error: √|scale| where both operands are
  multiplied by it, and at least 1. -/
  reach : R
  /-- Of storing a score below the normal numbers of its format: an absolute error, η_s. -/
  scoresTiny : R

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-- |q|ᵀ|k| = Σ |qᵢ| · |kᵢ|. -/
@[expose] def magnitude {d : Nat} (q k : Vec R d) : R := Vec.dot (q.map absolute) (k.map absolute)

/-- The relative error of the scaled operands of an inner product, each product with the scale
rounded and stored, is at most this less 1: ((1 + u) (1 + u_op))^r. -/
@[expose] def operandFactor (p : Precision R) (f : ScoreFormats R) : R :=
  power ((1 + p.unit) * (1 + f.operands)) f.roundings

/-- How far scaled operands below the normal numbers of their format move their inner product, where
each is off by τ = r η_op at most and meets the other and `reach`:
(1 + γ(additions + 6)) ((1 + u) (1 + u_op))^r τ Σ (reach (|qᵢ| + |kᵢ|) + τ). These errors are
rounded with the products and sums, with the scale and with the score. -/
@[expose] def operandUnderflow {d : Nat} (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (q k : Vec R d) : R :=
  let tiny := numeral f.roundings * f.operandsTiny
  (1 + gamma (additions + 6) p.accumulation) * operandFactor p f
    * (tiny * sumOver (fun i : Fin d => f.reach * (absolute q[i] + absolute k[i]) + tiny)
      (List.finRange d))

/-- The formats of scores where products in the accumulator may be below its normal numbers too,
each off by `ν` at most, and so may sums be. These errors are rounded with the others: of the `d`
products and fewer sums of them, which meet the scale or what is left of it, and of up to three
products, quotients and sums of a score, or with its cap, 0 if it has none. It counts where scores
are stored: (1 + u_s) (1 + γ(additions + 6)) ν (2 d max (1, |scale|) + 3 (1 + cap)). -/
@[expose] def underflowFormats (p : Precision R) (f : ScoreFormats R) (ν : R) (additions d : Nat)
    (scale cap : R) : ScoreFormats R :=
  { f with
    scoresTiny := f.scoresTiny + (1 + f.scores) * ((1 + gamma (additions + 6) p.accumulation)
      * (ν * (numeral (2 * d) * max 1 (absolute scale) + numeral 3 * (1 + cap)))) }

/-- How far the computed score may be from `s` = scale · ⟨q, k⟩, but for a constant of the row,
where m is the largest score of the row and `belowMax` is m − s:
((1 + γ(additions + 2)) · ((1 + u) (1 + u_op))^r − 1) · |scale| · |q|ᵀ|k| + 2 u |s| + 3 u (m − s),
`underflow` of the operands, u_s times all that the score may be, and η_s. A product qᵢ kᵢ goes
through at most `additions` additions: head_dim − 1, in whatever order they are added. Each score is
rounded twice: the product with the scale, and a change of base. The scale is rounded up to 3 times,
alike for all keys; the rounding of a score that is stored is in proportion to the whole score, of
which nothing cancels. -/
@[expose] def scoreError (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (scale magnitude underflow s belowMax : R) : R :=
  let relative := (1 + gamma (additions + 2) p.accumulation) * operandFactor p f - 1
  let own := relative * (absolute scale * magnitude) + underflow + numeral 2 * p.unit * absolute s
  own + numeral 3 * p.unit * belowMax
    + (f.scores * (absolute s + own + numeral 3 * p.unit * absolute s) + f.scoresTiny)

variable [LE R] [DecidableLE R] {q_len kv_len d d_v : Nat}

/-- Key `j` as the tolerance of component `t` of the output of query `i` sees it, where `m` is the
largest score of the row. -/
@[expose] def boundedKey (p : Precision R) (f : ScoreFormats R) (additions : Nat) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v) (m : Option R) (j : Fin kv_len) :
    BoundedKey R :=
  match score scale mask.toScoreMod Q K i j, m with
  | some s, some m =>
    { score := some s
      error := scoreError p f additions scale (magnitude Q[i] K[j])
        (operandUnderflow p f additions Q[i] K[j]) s (m - s)
      value := V[j][t] }
  | _, _ => ⟨none, 0, V[j][t]⟩

/-- The keys `cols` as the tolerance of component `t` of the output of query `i` sees them. -/
@[expose] def boundedKeys (p : Precision R) (f : ScoreFormats R) (additions : Nat) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v) (cols : List (Fin kv_len)) :
    List (BoundedKey R) :=
  let m := rowMax (cols.map (score scale mask.toScoreMod Q K i))
  cols.map (boundedKey p f additions scale mask Q K V i t m)

end Attention.Spec
