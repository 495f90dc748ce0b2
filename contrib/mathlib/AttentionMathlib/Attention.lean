import Attention.Proof.Flash.Basic
import AttentionMathlib.Definition
import AttentionMathlib.Real

/-! # The library's attention, and its tile loop, are softmax (scale · Q Kᵀ) V -/

namespace AttentionMathlib

variable {m n d e : ℕ}

/-- The library's definition of attention, without a mask, is Mathlib's matrices' softmax (scale ·
Q Kᵀ) V. -/
theorem attention_eq (scale : ℝ) (Q : Attention.Matrix ℝ m d) (K : Attention.Matrix ℝ n d)
    (V : Attention.Matrix ℝ n e) :
    toMatrix (Attention.Spec.attention scale (fun _ _ s => some s) Q K V)
      = attention scale (toMatrix Q) (toMatrix K) (toMatrix V) := by
  ext i j
  let S (k : Fin n) : ℝ :=
    scale * Attention.sumOver (fun t => toMatrix Q i t * toMatrix K k t) (List.finRange d)
  have h : toMatrix (Attention.Spec.attention scale (fun _ _ s => some s) Q K V) i j
      = Attention.sumOver (fun k => Real.exp (S k) * toMatrix V k j) (List.finRange n)
        / Attention.sumOver (fun k => Real.exp (S k)) (List.finRange n) :=
    Attention.Proof.attention_formula scale (fun _ _ s => some s) Q K V i j
  have hS : ∀ k, S k = scale * ∑ t, toMatrix Q i t * toMatrix K k t := fun k =>
    congrArg (scale * ·) (sumOver_finRange fun t => toMatrix Q i t * toMatrix K k t)
  have hV : Attention.sumOver (fun k => Real.exp (S k) * toMatrix V k j) (List.finRange n)
      = ∑ k, Real.exp (S k) * toMatrix V k j := sumOver_finRange _
  have hW : Attention.sumOver (fun k => Real.exp (S k)) (List.finRange n)
      = ∑ k, Real.exp (S k) := sumOver_finRange _
  rw [h, hV, hW, attention_apply]
  simp only [hS]

/-- The tile loop of FlashAttention-2, for all tile sizes of at least 1, computes it too. -/
theorem flash_eq (scale : ℝ) (Q : Attention.Matrix ℝ m d) (K : Attention.Matrix ℝ n d)
    (V : Attention.Matrix ℝ n e) {block_m block_n : ℕ} (hm : 0 < block_m) (hn : 0 < block_n)
    (i : Fin m) (j : Fin e) :
    ((Attention.Spec.flash scale (fun _ _ s => some s) Q K V block_m block_n)[i.val]?).map
      (fun row => row[j])
      = some (attention scale (toMatrix Q) (toMatrix K) (toMatrix V) i j) := by
  rw [Attention.Proof.flash_eq_attention scale _ Q K V hm hn, ← attention_eq,
    Vector.getElem?_toList]
  simp [toMatrix]

end AttentionMathlib
