module

public import Attention.Model.RoundedOverflowChanges
public import Attention.Model.UnderflowLogSumExp
public import Attention.Model.UnderflowOverflow
public import Attention.Model.UnderflowScores

public section

/-! # Scores and log-sum-exps whose numbers underflow and may overflow

`Model/UnderflowScores.lean` and `Model/UnderflowLogSumExp.lean` with largest numbers; operands and
scores may be below the normal numbers where they are stored, too. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] {d : Nat}

/-- `StoredTimes` with largest numbers. -/
@[expose] def LimitedTinyStored (p : Precision R) (f : ScoreFormats R) (largest : Largest R) :
    Nat → R → Option R → Prop
  | 0, x, y => y = some x
  | k + 1, x, y => ∃ z w, LimitedTinyStored p f largest k x z ∧
      (∀ a ∈ z, Limited largest.accumulator (Rounded p.unit) a w) ∧
      ∀ a ∈ w, Limited largest.operands (StoredNear f.operands f.operandsTiny) a y

/-- `TinyScore` with largest numbers. -/
@[expose] def LimitedTinyScore (p : Precision R) (f : ScoreFormats R) (ν : R) (largest : Largest R)
    (additions : Nat) (σ₁ σ₂ σ : R) (q k : Vec R d) (score : Option R) : Prop :=
  ∃ (a b : Nat) (q' k' products : Fin d → Option R) (sum x : Option R), a + b ≤ f.roundings ∧
    (∀ i : Fin d, LimitedTinyStored p f largest a (σ₁ * q[i]) (q' i)) ∧
    (∀ i : Fin d, LimitedTinyStored p f largest b (σ₂ * k[i]) (k' i)) ∧
    (∀ i : Fin d, ∀ a ∈ q' i, ∀ b ∈ k' i,
      Limited largest.accumulator (Stored p.accumulation ν) (a * b) (products i)) ∧
    (∀ first second terms : Fin d → R, (∀ i, q' i = some (first i)) →
      (∀ i, k' i = some (second i)) → (∀ i, products i = some (terms i)) →
      LimitedSumOf largest.accumulator p.accumulation ν (fun i => first i * second i = 0) terms
        additions (List.finRange d) sum) ∧
    (∀ s ∈ sum, LimitedTinyTimes largest.accumulator p.unit ν 2 (σ * s) x) ∧
    ∀ a ∈ x, Limited largest.scores (StoredNear f.scores f.scoresTiny) a score

/-- `TinySoftcap` with largest numbers. -/
@[expose] def LimitedTinySoftcap [Exp R R] (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (cap x : R) (y : Option R) : Prop :=
  ∃ (a b : Nat) (z t w : Option R), a + b ≤ 3 ∧
    LimitedTinyTimes largest.accumulator p.unit ν a (x / cap) z ∧
    (∀ c ∈ z, Limited largest.accumulator
      (fun exact y => AtMost (numeral 4 * p.unit) (y - exact)) (tanh c) t) ∧
    (∀ c ∈ t, LimitedTinyTimes largest.accumulator p.unit ν b (cap * c) w) ∧
    ∀ c ∈ w, Limited largest.scores (StoredNear f.scores f.scoresTiny) c y

/-- `TinySum` with largest numbers. -/
@[expose] def LimitedTinySum (p : Precision R) (f : ScoreFormats R) (ν : R) (largest : Largest R)
    (a x : R) (y : Option R) : Prop :=
  ∃ b c s w : Option R, LimitedTinyTimes largest.accumulator p.unit ν 2 a b ∧
    (∀ r ∈ b, Limited largest.scores (StoredNear f.scores f.scoresTiny) r c) ∧
    (∀ r ∈ c, Limited largest.accumulator (fun exact s => AtMost ν (s - exact)) (x + r) s) ∧
    (∀ r ∈ s, LimitedTinyTimes largest.accumulator p.unit ν 2 r w) ∧
    ∀ r ∈ w, Limited largest.scores (StoredNear f.scores f.scoresTiny) r y

/-- `TinySink` with a largest number. -/
@[expose] def LimitedTinySink (p : Precision R) (f : ScoreFormats R) (ν : R) (largest : Largest R)
    (sink : R) (y : Option R) : Prop :=
  ∃ w : Option R, LimitedTinyTimes largest.accumulator p.unit ν 2 sink w ∧
    ∀ r ∈ w, Limited largest.accumulator (fun exact y => AtMost f.scoresTiny (y - exact)) r y

/-- `TinyChange` with largest numbers. -/
@[expose] def LimitedTinyChange [Exp R R] (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (change : ScoreChange R) (x : R) (y : Option R) : Prop :=
  ∃ z : Option R, (match change.cap with
      | none => z = some x
      | some cap => LimitedTinySoftcap p f ν largest cap x z) ∧
    match change.added with
    | none => y = z
    | some a => ∀ c ∈ z, LimitedTinySum p f ν largest a c y

variable {q_len kv_len d_v : Nat}

/-- `TinyScores` with largest numbers, of a scale that is split into `σ₁`, `σ₂` and `σ`. -/
@[expose] def LimitedTinyScores [Exp R R] (p : Precision R) (f : ScoreFormats R) (ν : R)
    (largest : Largest R) (additions : Nat) (σ₁ σ₂ σ : R) (changes : ScoreChanges R q_len kv_len)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (computed : Option (Fin kv_len) → Option R) : Prop :=
  (∀ sink, changes.sink = some sink → LimitedTinySink p f ν largest sink (computed none)) ∧
    ∀ j, changes.sees mask i (some j) → ∃ x,
      LimitedTinyScore p f ν largest additions σ₁ σ₂ σ Q[i] K[j] x ∧
      ∀ c ∈ x, LimitedTinyChange p f ν largest (changes.pair i j) c (computed (some j))

/-- `TinyLogSumExp` with a largest number. -/
@[expose] def LimitedTinyLogSumExp [Exp R R] (largest u ν m l : R) (L : Option R) : Prop :=
  ∃ (a b c k : Nat) (logl : R) (x y z s : Option R), a + k + c ≤ 4 ∧ b + c ≤ 4 ∧ exp logl = l ∧
    Limited largest (fun exact y => AtMost (numeral a * u * (absolute exact + 1)) (y - exact))
      logl y ∧
    (∀ r ∈ y, LimitedTinyTimes largest u ν k r z) ∧ LimitedTinyTimes largest u ν b m x ∧
    (∀ r ∈ x, ∀ t ∈ z, Limited largest (fun exact s => AtMost ν (s - exact)) (r + t) s) ∧
    ∀ r ∈ s, LimitedTinyTimes largest u ν c r L

end Attention.Model
