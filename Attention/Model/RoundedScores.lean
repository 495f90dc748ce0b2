module

public import Attention.Model.Rounding
public import Attention.Spec.ScoreTolerance

public section

/-! # Scores that are rounded

What an attention function may compute for the score scale · ⟨q, k⟩: q or k or both multiplied by
the scale or a part of it, rounded and stored in a format of their own; products and additions in
any order, each rounded; the product with what is left of the scale; and the score stored in a
format of its own. The roundings of the scale are the same for all keys, so the rounded factors are
given here. Relative errors are factors, so that it does not matter in which order a score is
multiplied and changed in base. Scaled operands and scores may be below the normal numbers of the
formats in which they are stored. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {d : Nat}

/-- Nothing of the scores is stored in a format of its own, and no operand multiplied. -/
@[expose] def inAccumulator : ScoreFormats R := ⟨0, 0, 0, 0, 1, 0⟩

/-- Errors of formats that mean something. -/
structure PreciseFormats (f : ScoreFormats R) : Prop where
  /-- Not negative. -/
  operands : 0 ≤ f.operands
  /-- Not negative. -/
  operandsTiny : 0 ≤ f.operandsTiny

/-- The scale is the product of σ₁, σ₂ and σ, rounded up to three times. Where scaled operands may
be below the normal numbers, an error of one meets no more than `f.reach` of the scale, and a
product of two no more than 1, but for these roundings. -/
structure ScaledBy (p : Precision R) (f : ScoreFormats R) (scale σ₁ σ₂ σ : R) : Prop where
  /-- The product of the three. -/
  product : RoundedTimes p.unit 3 scale (σ₁ * σ₂ * σ)
  /-- Of errors of both operands. -/
  both : 0 < f.operandsTiny → AtMost ((1 + p.unit) ^ 3) σ
  /-- Of an error of k, which q meets. -/
  first : 0 < f.operandsTiny → AtMost ((1 + p.unit) ^ 3 * f.reach) (σ₁ * σ)
  /-- Of an error of q, which k meets. -/
  second : 0 < f.operandsTiny → AtMost ((1 + p.unit) ^ 3 * f.reach) (σ₂ * σ)

/-- `y` is the number `x` of an operand, already multiplied by its part of the scale, with the
roundings of `k` such products, each stored. None: as it is. -/
@[expose] def StoredTimes (p : Precision R) (f : ScoreFormats R) : Nat → R → R → Prop
  | 0, x, y => y = x
  | k + 1, x, y => ∃ z w, StoredTimes p f k x z ∧ Rounded p.unit z w ∧
    StoredNear f.operands f.operandsTiny w y

/-- `score` is what a function of precision `p` may compute for the score of `q` and `k`. It
multiplies q by `σ₁`, k by `σ₂` and their inner product by `σ`: by 1 where it does not. At most
`f.roundings` of the products with q and k are rounded; d products are rounded and added in a tree
of depth at most `additions`; that with `σ` is rounded, and once more where the base is changed;
and the score is stored. -/
@[expose] def ComputedScore (p : Precision R) (f : ScoreFormats R) (additions : Nat) (σ₁ σ₂ σ : R)
    (q k : Vec R d) (score : R) : Prop :=
  ∃ (a b : Nat) (q' k' products : Fin d → R) (sum x : R), a + b ≤ f.roundings ∧
    (∀ i : Fin d, StoredTimes p f a (σ₁ * q[i]) (q' i)) ∧
    (∀ i : Fin d, StoredTimes p f b (σ₂ * k[i]) (k' i)) ∧
    (∀ i : Fin d, Rounded p.accumulation (q' i * k' i) (products i)) ∧
    RoundedSum p.accumulation additions ((List.finRange d).map products) sum ∧
    RoundedTimes p.unit 2 (σ * sum) x ∧ StoredNear f.scores f.scoresTiny x score

/-- The keys `cols` as query `i` sees them, with the scores that the function computed. -/
@[expose] def computedKeys {q_len kv_len d_v : Nat} (p : Precision R) (f : ScoreFormats R)
    (additions : Nat) (scale : R) (mask : Mask q_len kv_len) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v)
    (cols : List (Fin kv_len)) (computed : Fin kv_len → R) : List (ComputedKey R) :=
  let m := rowMax (cols.map (score scale mask.toScoreMod Q K i))
  cols.map fun j => ⟨boundedKey p f additions scale mask Q K V i t m j, computed j⟩

end Attention.Model
