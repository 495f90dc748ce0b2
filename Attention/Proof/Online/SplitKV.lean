module

public import Attention.Spec.SplitKV
public import Attention.Proof.Flash.Basic
public import Attention.Proof.Online.Merge

public section

/-! # Decoding with the keys split computes attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat}
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- The merged state of a query is the state of all keys as it sees them. -/
theorem foldl_merge_splitStates {split_len block_n : Nat} (hs : 0 < split_len) (hn : 0 < block_n)
    (i : Fin q_len) :
    (splitStates scale modify Q K V split_len block_n i).foldl merge empty
      = ofBlock (scored scale modify Q K V i (List.finRange kv_len)) := by
  have h : splitStates scale modify Q K V split_len block_n i
      = ((tiles split_len (List.finRange kv_len)).map
          (scored scale modify Q K V i)).map ofBlock := by
    rw [splitStates, List.map_map]
    refine List.map_congr_left fun cols _ => ?_
    rw [online_eq_ofBlock, flatten_map_scored, tiles_flatten hn]
    rfl
  rw [h, foldl_merge, online_eq_ofBlock, flatten_map_scored, tiles_flatten hs]

/-- **split-kv-eq-attention**: for all sizes, splits and tiles of at least one key (ragged last ones
included) and every mask or score transformation, merging the states of the splits computes
attention. -/
theorem splitKV_eq_attention {split_len block_n : Nat} (hs : 0 < split_len) (hn : 0 < block_n) :
    splitKV scale modify Q K V split_len block_n = (attention scale modify Q K V).toList := by
  simp only [splitKV, foldl_merge_splitStates scale modify Q K V hs hn, finish_ofBlock]
  exact List.ext_getElem (by simp) fun i _ _ => by simp [attention]

end Attention.Proof
