module

public import Attention.Model.RoundedChanges
public import Attention.Model.Underflow
public import Attention.Model.UnsplitScores

public section

/-! # Scores whose products underflow

What an attention function may compute for a score, and for its changes, where products, quotients
and sums in the accumulator may be below its normal numbers: each is off by `ν` at most there.
What is stored in formats of its own is so as in `Model/RoundedScores.lean`. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {d : Nat}

/-- `score` is what a function may compute for the score of `q` and `k`, as `ComputedScore` has it,
where products underflow by `ν`: that of two numbers, and that with the scale or of the base; and so
do sums of such products. A product costs no addition if it is 0 itself. -/
@[expose] def TinyScore (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (σ₁ σ₂ σ : R) (q k : Vec R d) (score : R) : Prop :=
  ∃ (a b : Nat) (q' k' products : Fin d → R) (sum x : R), a + b ≤ f.roundings ∧
    (∀ i : Fin d, StoredTimes p f a (σ₁ * q[i]) (q' i)) ∧
    (∀ i : Fin d, StoredTimes p f b (σ₂ * k[i]) (k' i)) ∧
    (∀ i : Fin d, Stored p.accumulation ν (q' i * k' i) (products i)) ∧
    SumOf p.accumulation ν (fun i => q' i * k' i = 0) products additions (List.finRange d) sum ∧
    TinyTimes p.unit ν 2 (σ * sum) x ∧ StoredNear f.scores f.scoresTiny x score

/-- A `TinyScore` that stores `a` products with q and `b` with k. -/
@[expose] def TinyStoredScore (p : Precision R) (f : ScoreFormats R) (ν : R) (additions a b : Nat)
    (σ₁ σ₂ σ : R) (q k : Vec R d) (score : R) : Prop :=
  ∃ (q' k' products : Fin d → R) (sum x : R),
    (∀ i : Fin d, StoredTimes p f a (σ₁ * q[i]) (q' i)) ∧
    (∀ i : Fin d, StoredTimes p f b (σ₂ * k[i]) (k' i)) ∧
    (∀ i : Fin d, Stored p.accumulation ν (q' i * k' i) (products i)) ∧
    SumOf p.accumulation ν (fun i => q' i * k' i = 0) products additions (List.finRange d) sum ∧
    TinyTimes p.unit ν 2 (σ * sum) x ∧ StoredNear f.scores f.scoresTiny x score

/-- `score` is what a function may compute for the score of `q` and `k`, as `UnsplitScore` has it,
where products and sums underflow by `ν`. -/
@[expose] def TinyUnsplitScore (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (place : ScalePlace) (σ : R) (q k : Vec R d) (score : R) : Prop :=
  match place with
  | .query => ∃ a ≤ f.roundings, TinyStoredScore p f ν additions a 0 σ 1 1 q k score
  | .key => ∃ b ≤ f.roundings, TinyStoredScore p f ν additions 0 b 1 σ 1 q k score
  | .product => TinyStoredScore p f ν additions 0 0 1 1 σ q k score

/-- `product` says of each query and key which scores a function may compute for them before the
changes, where products and sums underflow by `ν`. -/
inductive TinyProducts (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (scale : R) : (Vec R d → Vec R d → R → Prop) → Prop
  /-- The scale is split, and its part for the inner product is at most the scale or 1 in size, but
  for roundings. -/
  | split {σ₁ σ₂ σ : R} : ScaledBy p f scale σ₁ σ₂ σ →
      AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ →
      TinyProducts p f ν additions scale (TinyScore p f ν additions σ₁ σ₂ σ)
  /-- The whole scale, rounded up to three times, multiplies q alone, k alone or the inner product,
  however large it is. -/
  | unsplit {place : ScalePlace} {σ : R} : 1 ≤ f.reach → RoundedTimes p.unit 3 scale σ →
      TinyProducts p f ν additions scale (TinyUnsplitScore p f ν additions place σ)

/-- `y` is what a function may compute for cap · tanh (x / cap), as `ComputedSoftcap` has it, where
the quotient by the cap and the product with it underflow by `ν`. -/
@[expose] def TinySoftcap [Exp R R] (p : Precision R) (f : ScoreFormats R) (ν cap x y : R) : Prop :=
  ∃ (a b : Nat) (z t w : R), a + b ≤ 3 ∧ TinyTimes p.unit ν a (x / cap) z ∧
    AtMost (numeral 4 * p.unit) (t - tanh z) ∧ TinyTimes p.unit ν b (cap * t) w ∧
    StoredNear f.scores f.scoresTiny w y

/-- `y` is what a function may compute for x + a, as `ComputedSum` has it, where products underflow
by `ν`, that of slope and distance and those that change a base, and so does the sum. -/
@[expose] def TinySum (p : Precision R) (f : ScoreFormats R) (ν a x y : R) : Prop :=
  ∃ b c s w : R, TinyTimes p.unit ν 2 a b ∧ StoredNear f.scores f.scoresTiny b c ∧
    AtMost ν (s - (x + c)) ∧ TinyTimes p.unit ν 2 s w ∧ StoredNear f.scores f.scoresTiny w y

/-- `y` is what a function may compute for the score of a sink, as `ComputedSink` has it, where the
two products underflow by `ν`. -/
@[expose] def TinySink (p : Precision R) (f : ScoreFormats R) (ν sink y : R) : Prop :=
  ∃ w, TinyTimes p.unit ν 2 sink w ∧ AtMost f.scoresTiny (y - w)

/-- `y` is what a function may compute of the computed score `x` by the changes: softcap, then a
number that is added. -/
@[expose] def TinyChange [Exp R R] (p : Precision R) (f : ScoreFormats R) (ν : R)
    (change : ScoreChange R) (x y : R) : Prop :=
  ∃ z, (match change.cap with
      | none => z = x
      | some cap => TinySoftcap p f ν cap x z) ∧
    match change.added with
    | none => y = z
    | some a => TinySum p f ν a z y

variable {q_len kv_len d_v : Nat}

/-- `computed` are what a function may compute for the scores of the columns of query `i` that it
sees, as `ComputedScores` has it, where products, quotients and sums underflow by `ν`; with the
scale as `TinyProducts` has it, in the same way for all. -/
@[expose] def TinyScores [Exp R R] (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (computed : Option (Fin kv_len) → R) : Prop :=
  (∀ sink, changes.sink = some sink → TinySink p f ν sink (computed none)) ∧
    ∃ product, TinyProducts p f ν additions scale product ∧
      ∀ j, changes.score scale mask Q K i (some j) ≠ none → ∃ x, product Q[i] K[j] x ∧
        TinyChange p f ν (changes.pair i j) x (computed (some j))

end Attention.Model
