module

public import Attention.Claims.Memorise.Sparse
public import Attention.Proof.Heads.MultiHead

public section

/-! # Attention that adds nothing, and attention that adds a mean

With queries and keys that are 0 every row of multi-head attention is the mean of what it sees,
whatever the number of heads. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} [OrderedField R] {m n k d_model num_heads d : Nat}

/-- The linear layer that is 0. -/
@[expose] def zeroLinear (m n : Nat) : Linear R m n := ⟨Vec.ofFn fun _ => Vec.zero, Vec.zero⟩

/-- The linear layer that copies the first k components, as far as there are any. -/
@[expose] def copyLinear (k m n : Nat) : Linear R m n :=
  ⟨Vec.ofFn fun j => if j.val < k then unit m j.val else Vec.zero, Vec.zero⟩

private theorem dot_zero_left (x : Vec R m) : Vec.dot (Vec.zero : Vec R m) x = 0 :=
  sumOver_eq_zero fun i _ => by
    rw [Fin.getElem_fin, Vec.getElem_zero]
    grind

/-- It makes 0 of each row. -/
theorem zeroLinear_row (x : Vec R m) : (zeroLinear m n).row x = Vec.zero :=
  Vector.ext fun j hj => by
    rw [Linear.row, zeroLinear, Vec.getElem_ofFn, Vec.getElem_zero]
    simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero, dot_zero_left]
    grind

/-- The components that are copied, and those that are 0. -/
theorem copyLinear_row (x : Vec R m) {j : Nat} (hj : j < n) :
    ((copyLinear k m n).row x)[j] = if h : j < k ∧ j < m then x[j] else 0 := by
  rw [Linear.row, copyLinear, Vec.getElem_ofFn]
  simp only [Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero]
  by_cases h₁ : j < k
  · by_cases h₂ : j < m
    · rw [if_pos h₁, dot_unit h₂, dif_pos ⟨h₁, h₂⟩]
      grind
    · rw [if_pos h₁, dot_unit_beyond (by omega), dif_neg fun h => h₂ h.2]
      grind
  · rw [if_neg h₁, dot_zero_left, dif_neg fun h => h₁ h.1]
    grind

/-- Attention that adds nothing. -/
@[expose] def noAttention (d_model num_heads d : Nat) : MultiHead R d_model num_heads d :=
  ⟨zeroLinear _ _, zeroLinear _ _, zeroLinear _ _, zeroLinear _ _⟩

/-- Attention that gives every row the mean of the first k components of what it sees, whatever the
number of heads: all queries and keys are 0. -/
@[expose] def meanAttention (k d_model num_heads d : Nat) : MultiHead R d_model num_heads d :=
  ⟨zeroLinear _ _, zeroLinear _ _, copyLinear k _ _, copyLinear k _ _⟩

variable [Exp R R]

/-- It adds 0, whatever the mask and the scale. -/
theorem noAttention_rows (scale : R) (mask : Mask m k) (X : Matrix R m d_model)
    (Y : Matrix R k d_model) :
    (noAttention d_model num_heads d).rows scale mask X Y Y = Vec.ofFn fun _ => Vec.zero :=
  Vector.ext fun i hi => by
    rw [MultiHead.rows, MultiHead.attend, noAttention]
    have e := Proof.getElem_linear (zeroLinear (num_heads * d) d_model)
      (concatHeads (multiHead scale (fun _ => mask.toScoreMod)
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y))
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)))) ⟨i, hi⟩
    simp only [Fin.getElem_fin] at e
    rw [e, zeroLinear_row, Vec.getElem_ofFn]

/-- The weight of a key when all scores are 0: one share for each key that is seen. -/
@[expose] def keyShare (see : Fin n → Bool) (j : Fin n) : R :=
  if see j then exp (0 : R) / sumOver (fun j => if see j then exp (0 : R) else 0) (List.finRange n)
  else 0

section
variable (positive : (0 : R) < exp (0 : R))
include positive

/-- The share of a key that is seen is positive. -/
theorem keyShare_pos {see : Fin n → Bool} {j : Fin n} (h : see j = true) :
    (0 : R) < keyShare see j := by
  have := le_sumOver (f := fun j => if see j then (exp (0 : R) : R) else 0) (fun j _ => by
    show 0 ≤ if see j then (exp (0 : R) : R) else 0
    split <;> grind) (List.mem_finRange j)
  simp only [h, if_true] at this
  rw [keyShare, if_pos h, Field.div_eq_mul_inv]
  exact OrderedRing.mul_pos positive (Field.IsOrdered.inv_pos_iff.mpr (by grind))

/-- No share is negative. -/
theorem keyShare_nonneg (see : Fin n → Bool) (j : Fin n) : (0 : R) ≤ keyShare see j := by
  cases h : see j
  · rw [keyShare, if_neg (by simp [h])]
    exact Std.le_refl _
  · exact Std.le_of_lt (keyShare_pos positive h)

end

private theorem attend_zero (see : Fin n → Bool) (f : Fin n → Vec R d) :
    attend ((List.finRange n).map fun j => ⟨if see j then some (0 : R) else none, f j⟩)
      = Vec.sumOver (fun j => Vec.smul (keyShare see j : R) (f j)) (List.finRange n) := by
  have e : softmax (((List.finRange n).map fun j =>
      (⟨if see j then some (0 : R) else none, f j⟩ : ScoredValue R R d)).map (·.score))
      = (List.finRange n).map fun j => (keyShare see j : R) := by
    simp only [softmax, denominator, List.map_map, sumOver_map]
    refine List.map_congr_left fun j _ => ?_
    have w : ∀ j, (weight (if see j then some (0 : R) else none) : R)
        = if see j then exp (0 : R) else 0 := fun j => by split <;> rfl
    simp only [Function.comp, w, keyShare]
    cases see j <;> simp
  refine Vector.ext fun c hc => ?_
  rw [attend, e, List.map_map, List.zip_map', Vec.getElem_sumOver, Vec.getElem_sumOver, sumOver_map]
  rfl

/-- With queries and keys that are 0, each component of the heads' outputs is a mean. -/
private theorem meanHeads (scale : R) (mask : Mask m k) (X : Matrix R m d_model)
    (Y : Matrix R k d_model) (V : Matrix R k (num_heads * d)) (i : Fin m)
    (col : Fin (num_heads * d)) :
    (concatHeads (multiHead scale (fun _ => mask.toScoreMod)
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)) (splitHeads V)))[i][col]
      = sumOver (fun j : Fin k => keyShare (mask i) j * V[j][col]) (List.finRange k) := by
  obtain ⟨h, c, rfl⟩ : ∃ h c, col = headColumn h c := ⟨_, _, (Proof.headColumn_headOf col).symm⟩
  have zero : ∀ {p : Nat} (Z : Matrix R p d_model) (j : Fin p),
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Z))[h][j] = (Vec.zero : Vec R d) :=
    fun Z j => by
      rw [Proof.getElem_splitHeads, Proof.getElem_linear, zeroLinear_row]
      refine Vector.ext fun a ha => ?_
      rw [Vec.getElem_ofFn, Fin.getElem_fin, Vec.getElem_zero, Vec.getElem_zero]
  have score : ∀ j : Fin k, score scale mask.toScoreMod
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))[h]
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y))[h] i j
      = if mask i j then some (0 : R) else none := fun j => by
    rw [score, zero, zero, dot_zero_left, Semiring.mul_zero]
    rfl
  have row : (multiHead scale (fun _ => mask.toScoreMod)
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)) (splitHeads V))[h][i]
      = Vec.sumOver (fun j => Vec.smul (keyShare (mask i) j : R) (splitHeads V)[h][j])
        (List.finRange k) := by
    have head : (multiHead scale (fun _ => mask.toScoreMod)
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
        (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y)) (splitHeads V))[h]
        = attention scale mask.toScoreMod
          (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))[h]
          (splitHeads ((zeroLinear d_model (num_heads * d)).rows Y))[h] (splitHeads V)[h] := by
      rw [multiHead, Fin.getElem_fin, Vec.getElem_ofFn]
    have row : ∀ (Q : Matrix R m d) (K V : Matrix R k d),
        (attention scale mask.toScoreMod Q K V)[i]
          = attend (scored scale mask.toScoreMod Q K V i (List.finRange k)) := fun Q K V => by
      rw [attention, Fin.getElem_fin, Vec.getElem_ofFn]
    rw [head, row, ← attend_zero, scored]
    simp only [score]
  rw [Proof.getElem_concatHeads, row, Fin.getElem_fin, Vec.getElem_sumOver]
  refine sumOver_congr fun j _ => ?_
  rw [Vec.getElem_smul, Proof.getElem_splitHeads, Vec.getElem_ofFn]

/-- Rows that are 1 at one place and 0 elsewhere, as far as the first `width` components go, have
for mean a row of few components. -/
theorem meanAttention_rows {width : Nat} (scale : R) (mask : Mask m k) (X : Matrix R m d_model)
    (f : Fin k → Vec R d_model) (place : Fin k → Nat) (enough : width ≤ num_heads * d)
    (h : ∀ j, place j < width ∧ ∀ (a : Nat) (ha : a < d_model), a < width →
      (f j)[a] = if a = place j then 1 else 0) :
    (meanAttention width d_model num_heads d).rows scale mask X (Vec.ofFn f) (Vec.ofFn f)
      = Vec.ofFn fun i : Fin m => (sparse d_model
        ((List.finRange k).map fun j => (place j, keyShare (mask i) j)) : Vec R d_model) := by
  refine Vector.ext fun i hi => ?_
  have e := Proof.getElem_linear (R := R) (copyLinear width (num_heads * d) d_model)
    (concatHeads (multiHead scale (fun _ => mask.toScoreMod)
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows X))
      (splitHeads ((zeroLinear d_model (num_heads * d)).rows (Vec.ofFn f)))
      (splitHeads ((copyLinear width d_model (num_heads * d)).rows (Vec.ofFn f))))) ⟨i, hi⟩
  refine Eq.trans e (Vector.ext fun a ha => ?_)
  rw [Vec.getElem_ofFn, copyLinear_row, getElem_sparse, weightAt, sumOver_map]
  split
  · rename_i ha'
    refine Eq.trans (meanHeads scale mask X _ _ ⟨i, hi⟩ ⟨a, ha'.2⟩) (sumOver_congr fun j _ => ?_)
    rw [Proof.getElem_linear, Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn, copyLinear_row,
      dif_pos ⟨ha'.1, ha⟩, (h j).2 a ha ha'.1]
    split <;> grind
  · exact (sumOver_eq_zero fun j _ => if_neg (by have := (h j).1; omega)).symm

end Attention.Claims
