import Attention.Algebra.Vector
import Mathlib

/-! # Attention in Mathlib's words

`softmax (scale • Q Kᵀ) V` of matrices over ℝ: `Matrix`, `Real.exp` and `∑` are Mathlib's, and
`attention` uses no definition of the library. Source: Vaswani et al. 2017, "Attention Is All You
Need", equation (1), where the scale is 1 / √d. -/

namespace AttentionMathlib

open Matrix

variable {m n d e : ℕ}

/-- Softmax of one row: exp sⱼ / Σₖ exp sₖ. -/
noncomputable def softmax (s : Fin n → ℝ) (j : Fin n) : ℝ := Real.exp (s j) / ∑ k, Real.exp (s k)

/-- Softmax of each row of a matrix. -/
noncomputable def softmaxRows (S : Matrix (Fin m) (Fin n) ℝ) : Matrix (Fin m) (Fin n) ℝ :=
  Matrix.of fun i => softmax (S i)

/-- Attention: softmax (scale · Q Kᵀ) V. -/
noncomputable def attention (scale : ℝ) (Q : Matrix (Fin m) (Fin d) ℝ)
    (K : Matrix (Fin n) (Fin d) ℝ) (V : Matrix (Fin n) (Fin e) ℝ) : Matrix (Fin m) (Fin e) ℝ :=
  softmaxRows (scale • (Q * Kᵀ)) * V

/-- A component of attention as one quotient of sums. -/
theorem attention_apply (scale : ℝ) (Q : Matrix (Fin m) (Fin d) ℝ) (K : Matrix (Fin n) (Fin d) ℝ)
    (V : Matrix (Fin n) (Fin e) ℝ) (i : Fin m) (j : Fin e) :
    attention scale Q K V i j
      = (∑ k, Real.exp (scale * ∑ t, Q i t * K k t) * V k j)
        / ∑ k, Real.exp (scale * ∑ t, Q i t * K k t) := by
  simp only [attention, softmaxRows, softmax, Matrix.mul_apply, Matrix.of_apply, Matrix.smul_apply,
    Matrix.transpose_apply, smul_eq_mul]
  rw [Finset.sum_div]
  exact Finset.sum_congr rfl fun k _ => div_mul_eq_mul_div _ _ _

/-- The library's matrix, a vector of rows, as Mathlib's. -/
def toMatrix {α : Type*} (A : Attention.Matrix α m n) : Matrix (Fin m) (Fin n) α :=
  Matrix.of fun i j => A[i][j]

/-- The library's sums over all indices are Mathlib's. -/
theorem sumOver_finRange (f : Fin n → ℝ) :
    Attention.sumOver f (List.finRange n) = ∑ i, f i := by
  rw [Fin.sum_univ_def]
  generalize List.finRange n = xs
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.map_cons, List.sum_cons, ← ih, Attention.sumOver_cons]

end AttentionMathlib
