module

public import Attention.Spec.Allowance
public import Attention.Spec.Attention

public section

/-! # Error allowances of scores

How far a computed score scale · ⟨q, k⟩ may be from the exact one, but for a constant that all keys
of the row share. `Proof/RoundedScores.lean` proves that no score of `Model/RoundedScores.lean`
exceeds it.
Source: docs/allowances.md, section 1; for the inner product Higham 2002, "Accuracy and Stability of
Numerical Algorithms", section 3.1. -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1]

/-- |q|ᵀ|k| = Σ |qᵢ| · |kᵢ|. -/
@[expose] def magnitude {d : Nat} (q k : Vec R d) : R := Vec.dot (q.map absolute) (k.map absolute)

/-- How far the computed score may be from `s` = scale · ⟨q, k⟩, but for a constant of the row,
where m is the largest score of the row and `belowMax` is m − s:
γ(additions + 2) · |scale| · |q|ᵀ|k| + 2 u |s| + 3 u (m − s). A product qᵢ kᵢ goes through at most
`additions` additions: head_dim − 1, in whatever order they are added. Each score is rounded twice:
the product with the scale, and a change of base. The scale is rounded up to 3 times, alike for all
keys. -/
@[expose] def scoreError (p : Precision R) (additions : Nat) (scale magnitude s belowMax : R) : R :=
  gamma (additions + 2) p.accumulation * (absolute scale * magnitude)
    + numeral 2 * p.unit * absolute s + numeral 3 * p.unit * belowMax

variable [LE R] [DecidableLE R] {q_len kv_len d d_v : Nat}

/-- Key `j` as the allowance of component `t` of the output of query `i` sees it, where `m` is the
largest score of the row. -/
@[expose] def boundedKey (p : Precision R) (additions : Nat) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len)
    (t : Fin d_v) (m : Option R) (j : Fin kv_len) : BoundedKey R :=
  match score scale mask.toScoreMod Q K i j, m with
  | some s, some m =>
    { score := some s
      error := scoreError p additions scale (magnitude Q[i] K[j]) s (m - s)
      value := V[j][t] }
  | _, _ => ⟨none, 0, V[j][t]⟩

/-- The keys `cols` as the allowance of component `t` of the output of query `i` sees them. -/
@[expose] def boundedKeys (p : Precision R) (additions : Nat) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v) (cols : List (Fin kv_len)) :
    List (BoundedKey R) :=
  let m := rowMax (cols.map (score scale mask.toScoreMod Q K i))
  cols.map (boundedKey p additions scale mask Q K V i t m)

end Attention.Spec
