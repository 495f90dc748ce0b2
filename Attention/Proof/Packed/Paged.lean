module

public import Attention.Proof.Online.Attention
public import Attention.Proof.Packed.Pages
public import Attention.Proof.Flash.Rows

public section

/-! # A cache in pages gives the same attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {page_size num_pages q_len kv_len d d_v : Nat} (scale : S)

omit [OrderedField R] [Exponential S R] in
private theorem flatten_scoredPages (modify : Nat → S → Option S) (q : Vec S d) (len : Nat)
    (pool : Pool (KeyValue S R d d_v) page_size num_pages) :
    ∀ (table : List (Fin num_pages)) (t : Nat),
      ((table.zipIdx t).map fun (p, t) => scoredPage scale modify q len t pool[p]).flatten
        = scoredRows scale
            (fun j s => if t * page_size + j < len then modify (t * page_size + j) s else none) q
            (table.flatMap fun p => pool[p].toList)
  | [], t => rfl
  | p :: table, t => by
    rw [List.zipIdx_cons, List.map_cons, List.flatten_cons, flatten_scoredPages,
      List.flatMap_cons, scoredRows_append, Vector.length_toList]
    simp only [Nat.add_mul, Nat.one_mul, Nat.add_assoc]
    rfl

/-- Attention page by page, the slots beyond the length masked, is attention over the tokens that
the table lists, whatever lies in those slots. -/
theorem attendPaged_eq (modify : Nat → S → Option S) (q : Vec S d)
    (pool : Pool (KeyValue S R d d_v) page_size num_pages) (table : List (Fin num_pages))
    (len : Nat) :
    attendPaged scale modify q pool table len
      = attendRows scale modify q (pool.gather table len) := by
  rw [attendPaged, online_any_blocks, flatten_scoredPages, gather_eq_take]
  generalize (table.flatMap fun p => pool[p].toList) = kvs
  have h : kvs = kvs.take len ++ kvs.drop len := (List.take_append_drop len kvs).symm
  conv => lhs; rw [h]
  rw [scoredRows_append, attend_append_masked, attendRows]
  · congr 1
    refine scoredRows_congr scale _ _ fun j hj s => ?_
    rw [List.length_take] at hj
    rw [Nat.zero_mul, Nat.zero_add, if_pos (by omega)]
  · refine scoredRows_masked scale _ _ fun j hj s => ?_
    rw [List.length_drop] at hj
    rw [List.length_take, Nat.zero_mul, Nat.zero_add, if_neg (by omega)]

/-- **paged**: keys and values stored in pages and read page by page through the page table give the
output of attention, for every page size, every pool whatever it held, and every table that has room
and no page twice. -/
theorem paged (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (pool : Pool (KeyValue S R d d_v) page_size num_pages)
    {table : List (Fin num_pages)} (hn : table.Nodup) (hl : kv_len ≤ table.length * page_size)
    (i : Fin q_len) :
    attendPaged scale (modify.row i) Q[i] (pool.store table 0 (keyValues K V)) table kv_len
      = (attention scale modify Q K V)[i] := by
  have h := gather_store hn (keyValues K V) pool 0 (by simpa using hl)
  rw [Nat.zero_add, length_keyValues] at h
  rw [attendPaged_eq, h, getElem_attention scale modify Q K V i (f := modify.row i)
    fun j => by funext s; simp [ScoreMod.row]]
  simp [Pool.gather]

/-- Two tables, of two pools with pages of two sizes, that list the same keys in any order, each
with its score and value, give the same attention. -/
theorem attendPaged_perm {page_size' num_pages' : Nat} (modify modify' : Nat → S → Option S)
    (q : Vec S d) (pool : Pool (KeyValue S R d d_v) page_size num_pages)
    (table : List (Fin num_pages)) (pool' : Pool (KeyValue S R d d_v) page_size' num_pages')
    (table' : List (Fin num_pages')) (len len' : Nat)
    (h : (scoredRows scale modify q (pool.gather table len)).Perm
      (scoredRows scale modify' q (pool'.gather table' len'))) :
    attendPaged scale modify q pool table len = attendPaged scale modify' q pool' table' len' := by
  rw [attendPaged_eq, attendPaged_eq]
  exact attend_perm h

/-- **paged-any-order**: two tables, of two pools with pages of two sizes, that list the same keys
and values in any order give the same attention, when what is done to a score does not depend on the
position. -/
theorem paged_any_order {page_size' num_pages' : Nat} (modify : S → Option S) (q : Vec S d)
    (pool : Pool (KeyValue S R d d_v) page_size num_pages) (table : List (Fin num_pages))
    (pool' : Pool (KeyValue S R d d_v) page_size' num_pages') (table' : List (Fin num_pages'))
    (len len' : Nat) (h : (pool.gather table len).Perm (pool'.gather table' len')) :
    attendPaged scale (fun _ => modify) q pool table len
      = attendPaged scale (fun _ => modify) q pool' table' len' := by
  have hr : ∀ kvs : List (KeyValue S R d d_v), scoredRows scale (fun _ => modify) q kvs
      = kvs.map fun kv => ⟨modify (scale * Vec.dot q kv.1), kv.2⟩ := fun kvs =>
    List.ext_getElem (by simp) fun j _ _ => by simp [scoredRows]
  refine attendPaged_perm scale _ _ q pool table pool' table' len len' ?_
  rw [hr, hr]
  exact h.map _

end Attention.Proof
