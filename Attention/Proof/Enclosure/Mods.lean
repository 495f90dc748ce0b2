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

/-! ## Masks, biases -/

/-- A mask does the same to intervals as to numbers. -/
theorem mask_enclosed (mask : Mask q_len kv_len) :
    ModContains (p := p) (R := R) mask.toScoreMod mask.toScoreMod := by
  intro i j I x hx
  rw [Mask.toScoreMod, Mask.toScoreMod]
  cases mask i j
  · trivial
  · exact hx

/-- A step from a score to a score, made of both unless both are masked. -/
private theorem ScoreContains.bind {s' : Option (Interval p)} {s : Option R}
    (h : ScoreContains s' s) {f' : Interval p → Option (Interval p)} {f : R → Option R}
    (hf : ∀ I x, I.Contains x → ScoreContains (f' I) (f x)) :
    ScoreContains (s'.bind f') (s.bind f) := by
  cases s' <;> cases s
  · trivial
  · cases h
  · cases h
  · exact hf _ _ h

/-- One transformation after the other. -/
theorem andThen_enclosed {f' g' : ScoreMod (Interval p) q_len kv_len}
    {f g : ScoreMod R q_len kv_len} (hf : ModContains f' f) (hg : ModContains g' g) :
    ModContains (f'.andThen g') (f.andThen g) :=
  fun i j I x hx => (hf i j I x hx).bind (hg i j)

/-- **bias-enclosed**: the additive bias of intervals that contain the entries of a matrix, `none`
where that is `none`, contains the additive bias of the matrix. -/
theorem bias_enclosed {B' : Matrix (Option (Interval p)) q_len kv_len}
    {B : Matrix (Option R) q_len kv_len}
    (hB : ∀ (i : Fin q_len) (j : Fin kv_len), ScoreContains B'[i][j] B[i][j]) :
    ModContains (.bias B') (.bias B) := by
  intro i j I x hx
  simp only [ScoreMod.bias, Option.map_eq_bind]
  exact (hB i j).bind fun _ _ hb => Interval.contains_add hx hb

/-- **alibi-enclosed**: linear biases with an interval for the slope contain those with the
slope. -/
theorem alibi_enclosed (alignment : Alignment) {slope' : Interval p} {slope : R}
    (h : slope'.Contains slope) :
    ModContains (q_len := q_len) (kv_len := kv_len) (.alibi alignment slope')
      (.alibi alignment slope) :=
  fun _ _ _ _ hx =>
    Interval.contains_add hx (Interval.contains_mul h (Interval.contains_intCast _))

/-! ## Softcap -/

/-- 1 contains 1. -/
theorem contains_one : (1 : Interval p).Contains (1 : R) :=
  Interval.contains_ofNat 1 Ring.intCast_one.symm

/-- The quotient by which tanh is computed. -/
theorem contains_tanh_of_exp {I : Interval p} {e : R} (h : I.Contains e) :
    ((I - 1) / (I + 1)).Contains ((e - 1) / (e + 1)) :=
  Interval.contains_div (Interval.contains_sub h contains_one)
    (Interval.contains_add h contains_one)

variable [NaturalExp R]

/-- The interval of hyperbolic tangents contains tanh x for every x in the interval. -/
theorem contains_tanh {I : Interval p} {x : R} (hx : I.Contains x) :
    (tanh I).Contains (tanh x) :=
  contains_tanh_of_exp (Interval.contains_exp (Interval.contains_add hx hx))

/-- **softcap-enclosed**: softcap with an interval for the cap contains softcap with the cap. -/
theorem softcap_enclosed {cap' : Interval p} {cap : R} (h : cap'.Contains cap) :
    ModContains (q_len := q_len) (kv_len := kv_len) (.softcap cap') (.softcap cap) :=
  fun _ _ _ _ hx =>
    Interval.contains_mul h (contains_tanh (Interval.contains_div hx h))

end Attention.Proof
