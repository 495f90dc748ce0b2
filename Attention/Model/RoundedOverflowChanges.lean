module

public import Attention.Model.RoundedChanges
public import Attention.Model.RoundedDropout
public import Attention.Model.RoundedOverflow
public import Attention.Spec.OverflowChanges

public section

/-! # Changes of scores and dropout that round and may overflow

`Model/RoundedChanges.lean` and `Model/RoundedDropout.lean` with largest numbers, where no score is
below the normal ones. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- `ComputedSoftcap` with largest numbers. -/
@[expose] def LimitedSoftcap [Exp R R] (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (cap x : R) (y : Option R) : Prop :=
  ∃ (a b : Nat) (z t w : Option R), a + b ≤ 3 ∧
    LimitedTimes largest.accumulator p.unit a (x / cap) z ∧
    (∀ c ∈ z, Limited largest.accumulator
      (fun exact y => AtMost (numeral 4 * p.unit) (y - exact)) (tanh c) t) ∧
    (∀ c ∈ t, LimitedTimes largest.accumulator p.unit b (cap * c) w) ∧
    ∀ c ∈ w, Limited largest.scores (Rounded f.scores) c y

/-- `ComputedSum` with largest numbers. -/
@[expose] def LimitedAdded (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (a x : R) (y : Option R) : Prop :=
  ∃ b c w : Option R, LimitedTimes largest.accumulator p.unit 2 a b ∧
    (∀ r ∈ b, Limited largest.scores (Rounded f.scores) r c) ∧
    (∀ r ∈ c, LimitedTimes largest.accumulator p.unit 2 (x + r) w) ∧
    ∀ r ∈ w, Limited largest.scores (Rounded f.scores) r y

/-- `ComputedChange` with largest numbers. -/
@[expose] def LimitedChange [Exp R R] (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (change : ScoreChange R) (x : R) (y : Option R) : Prop :=
  ∃ z : Option R, (match change.cap with
      | none => z = some x
      | some cap => LimitedSoftcap p f largest cap x z) ∧
    match change.added with
    | none => y = z
    | some a => ∀ c ∈ z, LimitedAdded p f largest a c y

variable {q_len kv_len d d_v : Nat}

/-- `ComputedScores` with largest numbers. -/
@[expose] def LimitedScores [Exp R R] (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions : Nat) (σ₁ σ₂ σ : R) (changes : ScoreChanges R q_len kv_len)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (computed : Option (Fin kv_len) → Option R) : Prop :=
  (∀ sink, changes.sink = some sink →
    LimitedTimes largest.accumulator p.unit 2 sink (computed none)) ∧
    ∀ j, changes.sees mask i (some j) → ∃ x,
      LimitedScore p f largest additions σ₁ σ₂ σ Q[i] K[j] x ∧
      ∀ c ∈ x, LimitedChange p f largest (changes.pair i j) c (computed (some j))

/-- `ComputedDropout` with a largest number. -/
@[expose] def LimitedDropout (largest u q : R) (keep : Bool) (v : R) (y : Option R) : Prop :=
  if keep then
    ∃ q' c z : Option R, Limited largest (Rounded u) q q' ∧
      (∀ a ∈ q', Limited largest (Rounded u) (1 - a) c) ∧
      (∀ a ∈ c, a ≠ 0 → LimitedTimes largest u 4 (1 / a) z) ∧
      ∀ a ∈ z, Limited largest (Rounded u) (a * v) y
  else y = some 0

/-- `y` is what a function may compute for the product of the weight `w`, a factor of dropout and
the value `v`, where it multiplies the weight by the factor, with largest numbers. -/
@[expose] def LimitedDroppedWeight (largest : Largest R) (u q : R) (keep : Bool) (w v : R)
    (y : Option R) : Prop :=
  if keep then
    ∃ q' c z x : Option R, Limited largest.accumulator (Rounded u) q q' ∧
      (∀ a ∈ q', Limited largest.accumulator (Rounded u) (1 - a) c) ∧
      (∀ a ∈ c, a ≠ 0 → LimitedTimes largest.accumulator u 4 (1 / a) z) ∧
      (∀ a ∈ z, Limited (smaller largest.accumulator largest.weights) (Rounded u) (w * a) x) ∧
      ∀ a ∈ x, Limited largest.accumulator (Rounded u) (a * v) y
  else y = some 0

end Attention.Model
