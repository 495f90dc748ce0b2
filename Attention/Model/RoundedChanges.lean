module

public import Attention.Model.RoundedScores
public import Attention.Spec.ScoreChangeTolerance

public section

/-! # Changes of scores that are rounded

What an attention function may compute for softcap, for the sum of a score and a number, and for
all scores of a row. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- `y` is what a function may compute for cap · tanh (x / cap). The quotient by the cap is rounded
`a` times and the product with it `b` times, 3 times together, a change of base counted; its tanh is
off by at most 4 u; and the result is stored. -/
@[expose] def ComputedSoftcap [Exp R R] (p : Precision R) (f : ScoreFormats R) (cap x y : R) :
    Prop :=
  ∃ (a b : Nat) (z t w : R), a + b ≤ 3 ∧ RoundedTimes p.unit a (x / cap) z ∧
    AtMost (numeral 4 * p.unit) (t - tanh z) ∧ RoundedTimes p.unit b (cap * t) w ∧
    StoredNear f.scores f.scoresTiny w y

/-- `y` is what a function may compute for x + a. It rounds `a` twice, as a product of slope and
distance and where the base is changed, and stores it; so it does the sum. -/
@[expose] def ComputedSum (p : Precision R) (f : ScoreFormats R) (a x y : R) : Prop :=
  ∃ b c w : R, RoundedTimes p.unit 2 a b ∧ StoredNear f.scores f.scoresTiny b c ∧
    RoundedTimes p.unit 2 (x + c) w ∧ StoredNear f.scores f.scoresTiny w y

/-- `y` is what a function may compute of the computed score `x` by the changes: softcap, then a
number that is added. -/
@[expose] def ComputedChange [Exp R R] (p : Precision R) (f : ScoreFormats R)
    (change : ScoreChange R) (x y : R) : Prop :=
  ∃ z, (match change.cap with
      | none => z = x
      | some cap => ComputedSoftcap p f cap x z) ∧
    match change.added with
    | none => y = z
    | some a => ComputedSum p f a z y

/-- `y` is what a function may compute for the score of a sink: that number, rounded twice, and off
by what underflows of a score. -/
@[expose] def ComputedSink (p : Precision R) (f : ScoreFormats R) (sink y : R) : Prop :=
  ∃ w, RoundedTimes p.unit 2 sink w ∧ AtMost f.scoresTiny (y - w)

variable {q_len kv_len d d_v : Nat}

/-- `computed` are what a function may compute for the scores of the columns of query `i` that it
sees: the score of each product, changed, and that of the sink. -/
@[expose] def ComputedScores [Exp R R] (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (σ₁ σ₂ σ : R) (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (computed : Option (Fin kv_len) → R) : Prop :=
  (∀ sink, changes.sink = some sink → ComputedSink p f sink (computed none)) ∧
    ∀ j, changes.score scale mask Q K i (some j) ≠ none →
      ∃ x, ComputedScore p f additions σ₁ σ₂ σ Q[i] K[j] x ∧
        ComputedChange p f (changes.pair i j) x (computed (some j))

/-- The columns `cols` as query `i` sees them, with the scores that the function computed and the
values that it multiplies their weights by. -/
@[expose] def computedChangedKeys [Exp R R] (p : Precision R) (f : ScoreFormats R)
    (additions : Nat) (changes : ScoreChanges R q_len kv_len) (whole : Bool) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v) (cols : List (Option (Fin kv_len)))
    (computed used : Option (Fin kv_len) → R) : List (ComputedKey R) :=
  let m := rowMax (cols.map (changes.score scale mask Q K i))
  cols.map fun col =>
    { changedKey p f additions changes whole scale mask Q K V i t m col with
      value := used col
      computed := computed col }

end Attention.Model
