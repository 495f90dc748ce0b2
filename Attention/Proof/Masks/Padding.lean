module

public import Attention.Spec.Padding
public import Attention.Proof.Flash.Basic
public import Attention.Proof.Flash.Rows

public section

/-! # Padding changes no output -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-! ## Zero columns -/

private theorem dot_eq_sumOver_zip [Add S] [Mul S] [OfNat S 0] (a b : Vec S d) :
    Vec.dot a b = sumOver (fun x => x.1 * x.2) (a.toList.zip b.toList) := by
  have h : a.toList.zip b.toList = (List.finRange d).map fun i => (a[i], b[i]) :=
    List.ext_getElem (by simp) fun i _ _ => by simp
  rw [h, sumOver_map, Vec.dot]

private theorem sumOver_append_zero {α : Type v} [Semiring S] (f : α → S) (xs : List α)
    {ys : List α} (h : ∀ y ∈ ys, f y = 0) : sumOver f (xs ++ ys) = sumOver f xs := by
  induction xs with
  | nil =>
    induction ys with
    | nil => rfl
    | cons y ys ih =>
      have := ih fun z hz => h z (by simp [hz])
      rw [List.nil_append] at this ⊢
      rw [sumOver_cons, this, h y (by simp), sumOver_nil, Semiring.add_zero]
  | cons x xs ih => rw [List.cons_append, sumOver_cons, sumOver_cons, ih]

variable [OrderedCommRing S]

/-- Zeros at the end of two vectors leave their inner product unchanged. -/
theorem dot_append_zero {p : Nat} (a b : Vec S d) :
    Vec.dot (Vec.append a (Vec.zero : Vec S p)) (Vec.append b Vec.zero) = Vec.dot a b := by
  rw [dot_eq_sumOver_zip, Vec.toList_append, Vec.toList_append, List.zip_append (by simp),
    sumOver_append_zero, dot_eq_sumOver_zip]
  intro y hy
  have h₀ : y.1 = 0 := by
    have := (List.of_mem_zip (a := y.1) (b := y.2) hy).1
    simp only [Vec.zero, Vector.toList_replicate, List.mem_replicate] at this
    exact this.2
  rw [h₀, Semiring.zero_mul]

variable [OrderedField R] [Exponential S R]

private theorem attend_pad_values {p : Nat} (row : List (ScoredValue S R d_v)) :
    attend (row.map fun key => ⟨key.score, Vec.append key.value (Vec.zero : Vec R p)⟩)
      = Vec.append (attend row) Vec.zero := by
  refine Vector.ext fun j hj => ?_
  rw [getElem_attend, List.map_map]
  by_cases h : j < d_v
  · rw [Vec.getElem_append_left _ _ h, getElem_attend, numerator, sumOver_map]
    simp only [Vec.getElem_append_left _ _ h]
    rfl
  · have h₀ : j - d_v < p := by omega
    rw [Vec.getElem_append_right _ _ (by omega) hj, Vec.getElem_zero, numerator, sumOver_map,
      sumOver_eq_zero, Field.div_eq_mul_inv, Semiring.zero_mul]
    intro key _
    rw [Vec.getElem_append_right _ _ (by omega) hj, Vec.getElem_zero, Semiring.mul_zero]

variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- **pad-head-dim**: zero columns added to queries and keys, and any number of zero columns added
to the values, add that number of zero columns to the output and change nothing else. -/
theorem pad_head_dim (p p_v : Nat) :
    attention scale modify (Q.padCols p) (K.padCols p) (V.padCols p_v)
      = (attention scale modify Q K V).padCols p_v := by
  refine Vector.ext fun i hi => ?_
  simp only [attention, Matrix.padCols, Vec.getElem_ofFn, Vec.getElem_map]
  rw [← attend_pad_values, scored, scored, List.map_map]
  congr 1
  refine List.map_congr_left fun j _ => ?_
  simp [score, dot_append_zero]

/-! ## Keys and queries beyond the end -/

/-- Attention with keys that are masked for the first queries, and with queries beyond the end:
the first queries get what they get without. -/
theorem first_attention {r p : Nat} (modify' : ScoreMod S (q_len + r) (kv_len + p))
    (h_in : ∀ i j, modify' (Fin.castAdd r i) (Fin.castAdd p j) = modify i j)
    (h_out : ∀ i j s, modify' (Fin.castAdd r i) (Fin.natAdd kv_len j) s = none)
    (Q' : Matrix S r d) (K' : Matrix S p d) (V' : Matrix R p d_v) :
    Vec.first q_len (attention scale modify' (Vec.append Q Q') (Vec.append K K') (Vec.append V V'))
      = attention scale modify Q K V := by
  refine Vector.ext fun i hi => ?_
  have h₁ := getElem_attention scale modify' (Vec.append Q Q') (Vec.append K K') (Vec.append V V')
    (Fin.castAdd r ⟨i, hi⟩) (f := modify'.row (Fin.castAdd r ⟨i, hi⟩))
    fun j => by funext s; simp [ScoreMod.row]
  have h₂ := getElem_attention scale modify Q K V ⟨i, hi⟩ (f := modify.row ⟨i, hi⟩)
    fun j => by funext s; simp [ScoreMod.row]
  have hkv : keyValues (Vec.append K K') (Vec.append V V') = keyValues K V ++ keyValues K' V' := by
    simp [keyValues, List.zip_append]
  rw [Vec.getElem_first]
  refine h₁.trans (Eq.trans ?_ h₂.symm)
  have hq : (Vec.append Q Q')[Fin.castAdd r ⟨i, hi⟩] = Q[(⟨i, hi⟩ : Fin q_len)] :=
    Vec.getElem_append_left Q Q' hi
  rw [attendRows, attendRows, hkv, scoredRows_append, attend_append_masked, hq]
  · congr 1
    refine scoredRows_congr scale _ _ fun j hj s => ?_
    rw [length_keyValues] at hj
    have := congrFun (h_in ⟨i, hi⟩ ⟨j, hj⟩) s
    simp only [ScoreMod.row, hj, dite_true, ← this]
    rw [dif_pos (by omega)]
    rfl
  · refine scoredRows_masked scale _ _ fun j hj s => ?_
    rw [length_keyValues] at hj
    have := h_out ⟨i, hi⟩ ⟨j, hj⟩ s
    simp only [ScoreMod.row, length_keyValues]
    rw [dif_pos (by omega)]
    exact this

/-- **pad-kv**: any number of masked keys and values after the end, whatever they hold, and any
number of queries after the end, which are cut from the output, change nothing. -/
theorem pad_kv {r p : Nat} (Q' : Matrix S r d) (K' : Matrix S p d) (V' : Matrix R p d_v) :
    attentionPadded scale modify Q K V Q' K' V' = attention scale modify Q K V :=
  first_attention scale modify Q K V (modify.pad r p)
    (fun i j => by funext s; simp [ScoreMod.pad])
    (fun i j s => dif_neg fun h => absurd h.2 (by simp)) Q' K' V'

/-- **pad-tiles**: the tile loop over padded queries, keys and values, its rows beyond the end
thrown away, computes attention of what was padded. -/
theorem flash_padded {r p block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (Q' : Matrix S r d) (K' : Matrix S p d) (V' : Matrix R p d_v) :
    (flash scale (modify.pad r p) (Vec.append Q Q') (Vec.append K K') (Vec.append V V')
        block_m block_n).take q_len
      = (attention scale modify Q K V).toList := by
  rw [flash_eq_attention _ _ _ _ _ hm hn, ← pad_kv scale modify Q K V Q' K' V', attentionPadded,
    Vec.toList_first]

end Attention.Proof
