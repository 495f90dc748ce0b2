module

public import Attention.Model.RoundedScores

public section

/-! # Scores whose scale is not split

What an attention function may compute for the score scale · ⟨q, k⟩ where the whole scale multiplies
q alone, k alone, or their inner product. An operand that is not multiplied is as it is. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {d : Nat}

/-- A `ComputedScore` that stores `a` products with q and `b` with k. -/
@[expose] def StoredScore (p : Precision R) (f : ScoreFormats R) (additions a b : Nat)
    (σ₁ σ₂ σ : R) (q k : Vec R d) (score : R) : Prop :=
  ∃ (q' k' products : Fin d → R) (sum x : R),
    (∀ i : Fin d, StoredTimes p f a (σ₁ * q[i]) (q' i)) ∧
    (∀ i : Fin d, StoredTimes p f b (σ₂ * k[i]) (k' i)) ∧
    (∀ i : Fin d, Rounded p.accumulation (q' i * k' i) (products i)) ∧
    RoundedSum p.accumulation additions ((List.finRange d).map products) sum ∧
    RoundedTimes p.unit 2 (σ * sum) x ∧ StoredNear f.scores f.scoresTiny x score

/-- Where the whole scale stands. -/
inductive ScalePlace where
  /-- On q. -/
  | query
  /-- On k. -/
  | key
  /-- On their inner product. -/
  | product

/-- `score` is what a function may compute for the score of `q` and `k` that multiplies one of them
by `σ`, the scale as it is rounded, or their inner product: what it multiplies is stored, up to
`f.roundings` times, and the other is not. -/
@[expose] def UnsplitScore (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (place : ScalePlace) (σ : R) (q k : Vec R d) (score : R) : Prop :=
  match place with
  | .query => ∃ a ≤ f.roundings, StoredScore p f additions a 0 σ 1 1 q k score
  | .key => ∃ b ≤ f.roundings, StoredScore p f additions 0 b 1 σ 1 q k score
  | .product => StoredScore p f additions 0 0 1 1 σ q k score

end Attention.Model
