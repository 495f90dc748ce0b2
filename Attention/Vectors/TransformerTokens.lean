module

public import Attention.Proof.Transformer.Basic
public import Attention.Vectors.TransformerSound

public section

/-! # The tokens in the transformer's vectors are those of the largest logits -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R]

/-- `largest` of bounds of some numbers is the place of the largest of them. -/
theorem argmax_of_largest {row : List (Int × Int)} {k n : Nat} {x : Vec R n}
    (h : largest row = .ok k) (hrow : Pointwise (fun b x =>
      (Interval.between b.1 b.2 : Interval published).Contains x) row x.toList) :
    ∃ j : Fin n, argmax x = some j ∧ j.val = k := by
  have len : row.length = n := by simpa using hrow.length_eq
  subst len
  simp only [largest] at h
  split at h
  · next best _ =>
    split at h
    · next hall =>
      cases h
      refine ⟨best, Proof.argmax_eq fun j hj => ?_, rfl⟩
      have hlt := List.all_eq_true.mp hall j (List.mem_finRange j)
      simp only [beq_iff_eq, hj, Bool.or_eq_true, decide_eq_true_eq, false_or] at hlt
      have h₁ := (hrow.getElem j.isLt (by simp)).2
      have h₂ := (hrow.getElem best.isLt (by simp)).1
      simp only [Vector.getElem_toList] at h₁ h₂
      have h₃ := Interval.intCast_le (R := R) (Int.add_one_le_of_lt hlt)
      rw [Ring.intCast_add, Ring.intCast_one] at h₃
      have h₄ := OrderedRing.zero_lt_one (R := R)
      refine Std.not_le.mp fun hn => ?_
      have h₅ := OrderedRing.mul_le_mul_of_nonneg_right hn
        (Std.le_of_lt (Interval.unit_pos (R := R) (p := published)))
      simp only [Fin.getElem_fin] at h₃ h₅
      grind
    · cases h
  · cases h

variable [NaturalExp R] {root : R → R} (hroot : Interval.IsSqrt root) {number : Rat → R}
include hroot

/-- **transformer-tokens-sound**: if the program yields tokens, they are at each place that of the
largest logit, over every ordered field with a natural exponential and square roots. -/
theorem transformer_tokens_sound (hnumber : IsNumber number) {c : TransformerCase}
    {out : TransformerResult} (h : c.run = .ok out) :
    Pointwise (fun token x => ∃ j : Fin c.t_vocab, argmax x = some j ∧ j.val = token) out.tokens
      ((mapTransformer number c.tie).logits root (number c.ε) (factorOf root number c.scale c.d)
        (c.position number) c.sourceMask.toMask c.mask.toMask c.contextMask.toMask c.sourceTokens
        c.targetTokens).toList := by
  have bounds := (transformer_vectors_sound hroot hnumber h).1
  have tokens : out.logits.mapM largest = .ok out.tokens := by
    simp only [TransformerCase.run, bind, Except.bind] at h
    repeat' split at h
    all_goals first
      | cases h
      | skip
    all_goals assumption
  have rows := pointwise_of_mapM tokens
  refine .of_getElem (rows.length_eq.trans bounds.length_eq) fun i hi hi' => ?_
  have hB : i < out.logits.length := rows.length_eq ▸ hi
  exact argmax_of_largest (rows.getElem hi hB) (bounds.getElem hB hi')

end Attention.Vectors
