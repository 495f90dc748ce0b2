module

public import Attention.Spec.Cascade
public import Attention.Proof.Flash.Basic
public import Attention.Proof.Flash.Rows

public section

/-! # A shared prefix may be computed once -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len prefix_len d d_v : Nat}
variable (scale : S) (modify : Fin q_len → Nat → S → Option S) (Q : Matrix S q_len d)
variable (K : Matrix S prefix_len d) (V : Matrix R prefix_len d_v)

/-- One pass over the shared prefix leaves each query with the state of the prefix as it sees it. -/
theorem prefixStates_eq {block_n : Nat} (hn : 0 < block_n) :
    prefixStates scale modify Q K V block_n
      = (List.finRange q_len).map fun i =>
          ofBlock (scoredRows scale (modify i) Q[i] (keyValues K V)) := by
  simp only [prefixStates]
  rw [foldl_stepTile]
  refine List.map_congr_left fun i _ => ?_
  have h := online_eq_ofBlock ((tiles block_n (List.finRange prefix_len)).map
    (scored scale (fun i (j : Fin prefix_len) => modify i j) Q K V i))
  have hf : ((tiles block_n (List.finRange prefix_len)).map
      (scored scale (fun i (j : Fin prefix_len) => modify i j) Q K V i)).flatten
      = scored scale (fun i (j : Fin prefix_len) => modify i j) Q K V i
          (tiles block_n (List.finRange prefix_len)).flatten := List.map_flatten.symm
  rw [hf, tiles_flatten hn,
    scored_eq_scoredRows scale (fun i (j : Fin prefix_len) => modify i j) Q K V i
      (f := modify i) fun _ => rfl] at h
  exact h

/-- **cascade**: the prefix that several queries share is computed for all of them in one pass of
tiles, each suffix by itself, and the states are merged: each query gets its attention over the
prefix followed by its own suffix. The suffixes may have different lengths, and none. -/
theorem cascade_eq_attendRows (suffix : Fin q_len → List (KeyValue S R d d_v)) {block_n : Nat}
    (hn : 0 < block_n) :
    cascade scale modify Q K V suffix block_n
      = (List.finRange q_len).map fun i =>
          attendRows scale (modify i) Q[i] (keyValues K V ++ suffix i) := by
  simp only [cascade, prefixStates_eq scale modify Q K V hn, List.zipWith_map_right,
    List.zipWith_self]
  refine List.map_congr_left fun i _ => ?_
  rw [suffixState, online_eq_ofBlock, tiles_flatten hn, merge_homomorphism, finish_ofBlock,
    attendRows, scoredRows_append, length_keyValues]

end Attention.Proof
