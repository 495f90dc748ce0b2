module

public import Attention.Claims.Masking.Deletion

public section

/-! # Rows taken by a product with a matrix

The proofs of the document write deletions and permutations of rows as products: with the unit
matrix without a row, or with a permutation matrix. -/

namespace Attention.Claims

open Lean.Grind

universe u

variable {R : Type u} {m n d : Nat}

/-- The matrix whose row i has 1 in column τ i and 0 elsewhere: for τ = id the unit matrix I, for
τ = skip s the unit matrix without row s, for a permutation its matrix. -/
@[expose] def selection [OfNat R 0] [OfNat R 1] (τ : Fin m → Fin n) : Matrix R m n :=
  Vec.ofFn fun i => Vec.ofFn fun j => if j = τ i then 1 else 0

variable [OrderedField R]

/-- Its product with a matrix is the rows τ of the matrix. -/
theorem selection_mul (τ : Fin m → Fin n) (A : Matrix R n d) :
    Vec.map (affine A Vec.zero) (selection τ) = reindex τ A := by
  refine Vector.ext fun i hi => Vector.ext fun t ht => ?_
  rw [Vec.getElem_map, getElem_reindex, affine, Vec.getElem_ofFn, Fin.getElem_fin, Vec.getElem_zero,
    Semiring.add_zero]
  refine Eq.trans (sumOver_congr fun k _ => ?_)
    (sumOver_ite_eq (fun k : Fin n => A[k][t]) (τ ⟨i, hi⟩))
  simp only [selection, Vec.getElem_ofFn, Fin.getElem_fin, Fin.eta]
  by_cases h : k = τ ⟨i, hi⟩
  · rw [if_pos h, if_pos h, Semiring.one_mul]
  · rw [if_neg h, if_neg h, Semiring.zero_mul]

/-- For a permutation σ the transposed matrix is the inverse: Σᵢ Rᵢⱼ Rᵢₖ is 1 for j = k, else 0. -/
theorem selection_orthogonal {σ : Fin n → Fin n} (hσ : IsPermutation σ) (j k : Fin n) :
    let P : Matrix R n n := selection σ
    sumOver (fun i : Fin n => P[i][j] * P[i][k]) (List.finRange n) = if j = k then 1 else 0 := by
  intro P
  have e : sumOver (fun l => if j = l then (if k = l then (1 : R) else 0) else 0)
        ((List.finRange n).map σ)
      = if j = k then 1 else 0 := by
    rw [sumOver_perm _ hσ]
    refine Eq.trans (sumOver_congr fun l _ => ?_)
      (sumOver_ite_eq (fun l : Fin n => if l = k then (1 : R) else 0) j)
    by_cases h : l = j
    · subst h
      by_cases h' : l = k
      · rw [if_pos rfl, if_pos h'.symm, if_pos rfl, if_pos h']
      · rw [if_pos rfl, if_neg fun e => h' e.symm, if_pos rfl, if_neg h']
    · rw [if_neg h, if_neg fun e => h e.symm]
  rw [← e, sumOver_map]
  refine sumOver_congr fun i _ => ?_
  simp only [P, selection, Vec.getElem_ofFn, Fin.getElem_fin, Fin.eta]
  by_cases h : j = σ i
  · rw [if_pos h, if_pos h, Semiring.one_mul]
  · rw [if_neg h, if_neg h, Semiring.zero_mul]

end Attention.Claims
