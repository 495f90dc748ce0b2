module

public import Attention.Model.Rounding
public import Attention.Spec.ScoreAllowance

public section

/-! # Scores that are rounded

What an attention function may compute for the score scale · ⟨q, k⟩: products and additions in any
order, each rounded, then the product with a scale that is itself rounded. The roundings of the
scale are the same for all keys, so the rounded scale is given here. Not covered: a scale that is
applied to q or k before the inner product, and scores that are stored in a smaller format. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {d : Nat}

/-- `score` is what a function of precision `p` may compute for the score of `q` and `k`, where `σ`
is the scale that it computed: d rounded products, added in a tree of depth at most `additions`,
times `σ`, rounded, and once more where the base is changed later. -/
@[expose] def ComputedScore (p : Precision R) (additions : Nat) (σ : R) (q k : Vec R d)
    (score : R) : Prop :=
  ∃ (products : Fin d → R) (sum : R),
    (∀ i : Fin d, Rounded p.accumulation (q[i] * k[i]) (products i)) ∧
    RoundedSum p.accumulation additions ((List.finRange d).map products) sum ∧
    RoundedTimes p.unit 2 (σ * sum) score

/-- The keys `cols` as query `i` sees them, with the scores that the function computed. -/
@[expose] def computedKeys {q_len kv_len d_v : Nat} (p : Precision R) (additions : Nat) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v) (cols : List (Fin kv_len))
    (computed : Fin kv_len → R) : List (ComputedKey R) :=
  let m := rowMax (cols.map (score scale mask.toScoreMod Q K i))
  cols.map fun j => ⟨boundedKey p additions scale mask Q K V i t m j, computed j⟩

end Attention.Model
