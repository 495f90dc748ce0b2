module

public import Attention.Proof.Flash.Basic
public import Attention.Proof.Dropout.KeepMask
public import Attention.Spec.Dropout

public section

/-! # The tile loop with dropout -/

namespace Attention.Proof

open Spec Spec.Online Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- A component of attention with dropout: Σ pⱼ · zⱼ · vⱼ. -/
theorem getElem_attentionDropout (Z : WeightFactor R q_len kv_len) (i : Fin q_len) (c : Fin d_v) :
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    (attentionDropout scale modify Q K V Z)[i][c]
      = sumOver (fun j => P[i][j] * Z i j * V[j][c]) (List.finRange kv_len) := by
  simp only [attentionDropout, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver,
    Vec.getElem_smul]

omit [Exponential S R] in
/-- Dropout changes no score. -/
theorem scoredDropout_scores (Z : WeightFactor R q_len kv_len) (i : Fin q_len)
    (cols : List (Fin kv_len)) : (scoredDropout scale modify Q K V Z i cols).map (·.score)
      = (scored scale modify Q K V i cols).map (·.score) := by
  simp only [scoredDropout, scored, dropKey, List.map_map]
  rfl

/-- To multiply the weights and to multiply the values as a query sees them is the same. -/
theorem attend_scoredDropout (Z : WeightFactor R q_len kv_len) (i : Fin q_len) :
    attend (scoredDropout scale modify Q K V Z i (List.finRange kv_len))
      = (attentionDropout scale modify Q K V Z)[i] := by
  refine Vector.ext fun c hc => ?_
  rw [getElem_attend, scoredDropout_scores]
  refine Eq.trans ?_ (getElem_attentionDropout scale modify Q K V Z i ⟨c, hc⟩).symm
  have hs : (scored scale modify Q K V i (List.finRange kv_len)).map (·.score)
      = (List.finRange kv_len).map (score scale modify Q K i) := by
    rw [scored, List.map_map]
    rfl
  rw [hs, numerator, scoredDropout, sumOver_map, Field.div_eq_mul_inv, CommSemiring.mul_comm,
    ← sumOver_mul_left]
  refine sumOver_congr fun j _ => ?_
  rw [getElem_probabilities, Field.div_eq_mul_inv]
  simp only [dropKey, Vec.getElem_smul, Fin.getElem_fin]
  grind

/-- **flash-dropout**: for all sizes, all tile sizes of at least 1, every score transformation, so
every mask, and any factors: the tile loop that multiplies a weight where it meets its value, and
leaves m and l as they are, computes (P ∘ Z) V. -/
theorem flashDropout_eq_attentionDropout (Z : WeightFactor R q_len kv_len) {block_m block_n : Nat}
    (hm : 0 < block_m) (hn : 0 < block_n) :
    flashDropout scale modify Q K V Z block_m block_n
      = (attentionDropout scale modify Q K V Z).toList := by
  rw [flashDropout, tileLoop_eq _ _ hm, List.map_map]
  refine List.ext_getElem (by simp) fun i h _ => ?_
  have hi : i < q_len := by simpa using h
  have hf := online_any_blocks
    ((tiles block_n (List.finRange kv_len)).map (scoredDropout scale modify Q K V Z ⟨i, hi⟩))
  have hj : ((tiles block_n (List.finRange kv_len)).map
      (scoredDropout scale modify Q K V Z ⟨i, hi⟩)).flatten
      = scoredDropout scale modify Q K V Z ⟨i, hi⟩ (tiles block_n (List.finRange kv_len)).flatten :=
    List.map_flatten.symm
  rw [hj, tiles_flatten hn, online, attend_scoredDropout] at hf
  simpa using hf

/-- m and l after any blocks depend on the scores alone. -/
private theorem online_scores {blocks blocks' : List (List (ScoredValue S R d_v))}
    (h : blocks.flatten.map (·.score) = blocks'.flatten.map (·.score)) :
    (online blocks).m = (online blocks').m ∧ (online blocks).l = (online blocks').l := by
  have hl : ∀ row : List (ScoredValue S R d_v), (ofBlock row : State S R d_v).l
      = sumOver (fun s => rescale s (rowMax (row.map (·.score)))) (row.map (·.score)) :=
    fun row => by rw [sumOver_map]; rfl
  rw [online_eq_ofBlock, online_eq_ofBlock, hl, hl, h]
  exact ⟨by simp only [ofBlock, h], rfl⟩

/-- **dropout-lse**: the tile loop with dropout ends, for each query, with the maximum and the
denominator of the tile loop without; so with the same log-sum-exp. -/
theorem dropout_keeps_m_l (Z : WeightFactor R q_len kv_len) {block_m : Nat} (hm : 0 < block_m)
    (block_n : Nat) :
    (tileLoop empty (scoredDropout scale modify Q K V Z) block_m block_n).map (fun s => (s.m, s.l))
      = (tileLoop empty (scored scale modify Q K V) block_m block_n).map fun s => (s.m, s.l) := by
  rw [tileLoop_eq _ _ hm, tileLoop_eq _ _ hm, List.map_map, List.map_map]
  refine List.map_congr_left fun i _ => ?_
  have h := online_scores
    (blocks := (tiles block_n (List.finRange kv_len)).map (scoredDropout scale modify Q K V Z i))
    (blocks' := (tiles block_n (List.finRange kv_len)).map (scored scale modify Q K V i)) (by
      rw [List.map_flatten, List.map_flatten, List.map_map, List.map_map]
      exact congrArg List.flatten (List.map_congr_left fun cols _ =>
        scoredDropout_scores scale modify Q K V Z i cols))
  exact Prod.ext h.1 h.2

/-! ## The same mask, drawn in any tiles -/

omit [Exponential S R] in
/-- Keys that follow one another and draw for themselves which weights are kept, seen as the whole
mask has it. -/
theorem scoredDrawn_eq (p : R) (threshold seed head : Nat) (i : Fin q_len) {start : Nat}
    (cols : List (Fin kv_len)) (hc : ∀ c (h : c < cols.length), cols[c].val = start + c) :
    scoredDrawn scale modify Q K V p threshold seed head i cols
      = scoredDropout scale modify Q K V (.dropout p (keepMask threshold seed head)) i cols := by
  cases cols with
  | nil => rfl
  | cons first rest =>
    have hfirst : first.val = start := hc 0 (by simp)
    simp only [scoredDrawn, keepsFrom_eq, hfirst]
    refine List.ext_getElem (by simp [scored, scoredDropout]) fun c h _ => ?_
    have h' : c < (first :: rest).length := by simpa [scored] using h
    simp only [List.getElem_zipWith, List.getElem_map, List.getElem_range, scored, scoredDropout,
      WeightFactor.dropout, keepMask, hc c h']

/-- **dropout-replay**: for all tile sizes of at least 1, the tile loop in which each pair of tiles
draws for itself which weights are kept computes attention with dropout by the mask of the seed: the
mask does not depend on the tiles, so what draws it again in other tiles draws the same. -/
theorem flashDrawn_eq_attentionDropout (p : R) (threshold seed head : Nat) {block_m block_n : Nat}
    (hm : 0 < block_m) (hn : 0 < block_n) :
    flashDrawn scale modify Q K V p threshold seed head block_m block_n
      = (attentionDropout scale modify Q K V
          (.dropout p (keepMask threshold seed head))).toList := by
  rw [← flashDropout_eq_attentionDropout scale modify Q K V _ hm hn, flashDrawn, flashDropout,
    tileLoop_eq _ _ hm, tileLoop_eq _ _ hm]
  refine congrArg (List.map finish) (List.map_congr_left fun i _ => ?_)
  refine congrArg (List.foldl stepBlock empty) (List.map_congr_left fun cols hcols => ?_)
  obtain ⟨t, _, rfl⟩ := List.mem_map.mp hcols
  exact scoredDrawn_eq scale modify Q K V p threshold seed head i (start := t * block_n) _
    fun c h => by simp

end Attention.Proof
