module

public import Attention.Model.LogSound
public import Attention.Model.ProductSound
public import Attention.Model.QuotientSound
public import Attention.Proof.Enclosure.Related

public section

/-! # The definitions of the Spec, run over intervals, contain what they give for numbers

Scores, softmax and attention ask for operations only, so the same definitions run over
`Attention.Model.Interval`. Whatever natural exponential there is, the result contains the true
one. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {p : Nat}

/-- Both masked, or the interval contains the score. -/
abbrev ScoreContains : Option (Interval p) → Option R → Prop := ScoreRelated Interval.Contains

/-- The score transformation of intervals makes, of what contains a score, what contains the
transformed score; and it masks the same pairs. -/
abbrev ModContains {q_len kv_len : Nat} (modify' : ScoreMod (Interval p) q_len kv_len)
    (modify : ScoreMod R q_len kv_len) : Prop :=
  ModRelated Interval.Contains modify' modify

/-- The vector of intervals contains the vector of numbers, component by component. -/
abbrev VecContains {d : Nat} (I : Vec (Interval p) d) (x : Vec R d) : Prop :=
  VecRelated Interval.Contains I x

/-- The matrix of intervals contains the matrix of numbers, entry by entry. -/
abbrev MatrixContains {m n : Nat} (I : Matrix (Interval p) m n) (x : Matrix R m n) : Prop :=
  VecRelated VecContains I x

/-- 0 contains 0. -/
theorem contains_zero : (0 : Interval p).Contains (0 : R) :=
  Interval.contains_ofNat 0 Ring.intCast_zero.symm

/-- 1 contains 1. -/
theorem contains_one : (1 : Interval p).Contains (1 : R) :=
  Interval.contains_ofNat 1 Ring.intCast_one.symm

/-- Operations with intervals contain those with numbers. -/
instance keptByField_contains : KeptByField (Interval.Contains (R := R) (p := p)) where
  zero := contains_zero
  one := contains_one
  add := Interval.contains_add
  sub := Interval.contains_sub
  mul := Interval.contains_mul
  div := Interval.contains_div

variable [NaturalExp R]

/-- And so does the exponential. -/
instance keptByExp_contains : KeptByExp (Interval.Contains (R := R) (p := p))
    (Interval.Contains (R := R) (p := p)) :=
  ⟨Interval.contains_exp⟩

/-- The logarithm of the enclosed denominator contains every L with
exp L = Σ exp s. -/
theorem contains_log_denominator {α : Type} {keys : List α} {s' : α → Option (Interval p)}
    {s : α → Option R} (hs : ∀ k ∈ keys, ScoreContains (s' k) (s k)) {L : R}
    (hL : exp L = (denominator (keys.map s) : R)) :
    (Interval.log (denominator (keys.map s') : Interval p)).Contains L :=
  Interval.contains_log (hL ▸ related_denominator hs)

/-! ## Attention of whole matrices -/

/-- **enclosure-sound**: attention computed with intervals of any precision, over inputs, a scale
and a score transformation that contain the true ones, contains the true attention, whatever natural
exponential it is taken with. -/
theorem enclosure_sound {q_len kv_len d d_v : Nat} {scale' : Interval p} {scale : R}
    {modify' : ScoreMod (Interval p) q_len kv_len} {modify : ScoreMod R q_len kv_len}
    {Q' : Matrix (Interval p) q_len d} {Q : Matrix R q_len d}
    {K' : Matrix (Interval p) kv_len d} {K : Matrix R kv_len d}
    {V' : Matrix (Interval p) kv_len d_v} {V : Matrix R kv_len d_v}
    (hscale : scale'.Contains scale)
    (hmodify : ModContains modify' modify)
    (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K) (hV : MatrixContains V' V) :
    MatrixContains (attention scale' modify' Q' K' V') (attention scale modify Q K V) :=
  related_attention hscale hmodify hQ hK hV

end Attention.Proof
