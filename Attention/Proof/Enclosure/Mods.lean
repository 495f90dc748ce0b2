module

public import Attention.Proof.Enclosure.Basic
public import Attention.Spec.ScoreMods

public section

/-! # Score transformations, run over intervals, contain what they give for numbers

With `enclosure_sound` this makes the attention that is computed with any of them, or with several
one after the other, contain the true one. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p q_len kv_len : Nat}

/-- **bias-enclosed**: the additive bias of intervals that contain the entries of a matrix, `none`
where that is `none`, contains the additive bias of the matrix. -/
theorem bias_enclosed {B' : Matrix (Option (Interval p)) q_len kv_len}
    {B : Matrix (Option R) q_len kv_len}
    (hB : ∀ (i : Fin q_len) (j : Fin kv_len), ScoreContains B'[i][j] B[i][j]) :
    ModContains (.bias B') (.bias B) :=
  related_bias hB

/-- **alibi-enclosed**: linear biases with an interval for the slope contain those with the
slope. -/
theorem alibi_enclosed (alignment : Alignment) {slope' : Interval p} {slope : R}
    (h : slope'.Contains slope) :
    ModContains (q_len := q_len) (kv_len := kv_len) (.alibi alignment slope')
      (.alibi alignment slope) :=
  related_alibi Interval.contains_intCast alignment h

/-- The quotient by which tanh is computed. -/
theorem contains_tanh_of_exp {I : Interval p} {e : R} (h : I.Contains e) :
    ((I - 1) / (I + 1)).Contains ((e - 1) / (e + 1)) := by enclose

variable [NaturalExp R]

/-- The interval of hyperbolic tangents contains tanh x for every x in the interval. -/
theorem contains_tanh {I : Interval p} {x : R} (hx : I.Contains x) :
    (tanh I).Contains (tanh x) := related_tanh hx

/-- **softcap-enclosed**: softcap with an interval for the cap contains softcap with the cap. -/
theorem softcap_enclosed {cap' : Interval p} {cap : R} (h : cap'.Contains cap) :
    ModContains (q_len := q_len) (kv_len := kv_len) (.softcap cap') (.softcap cap) :=
  related_softcap h

end Attention.Proof
