module

public import Attention.Proof.Packed.CuSeqlens
public import Attention.Proof.Flash.Basic
public import Attention.Proof.Flash.Rows

public section

/-! # Packed sequences get what they get each by itself -/

namespace Attention.Proof

open Spec

universe u v w

variable {S : Type u} {R : Type v} {d d_v : Nat}

/-! ## The packed batch -/

private theorem length_flatMap {α : Type u} {β : Type w} (f : α → List β) (xs : List α) :
    (xs.flatMap f).length = (xs.map fun x => (f x).length).sum :=
  List.length_flatMap

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable (scale : S) (mods : Nat → Nat → Nat → S → Option S)

/-- One row of the packed attention: the query at position `i` of sequence `s`. -/
private theorem attendRows_packed (pre post : List (Sequence S R d d_v)) (s : Sequence S R d d_v)
    {i : Nat} (hi : i < s.queries.length) (q : Vec S d) :
    attendRows scale
        (packedMod (cuSeqlens ((pre ++ s :: post).map (·.queries.length)))
          (cuSeqlens ((pre ++ s :: post).map (·.keyValues.length))) mods
          ((pre.flatMap (·.queries)).length + i)) q ((pre ++ s :: post).flatMap (·.keyValues))
      = attendRows scale (mods pre.length i) q s.keyValues := by
  have hl : (pre.map (·.queries.length)).length = (pre.map (·.keyValues.length)).length := by simp
  simp only [List.map_append, List.map_cons, List.flatMap_append, List.flatMap_cons, attendRows,
    length_flatMap]
  rw [scoredRows_append, scoredRows_append, attend_masked_append, attend_append_masked]
  · congr 1
    refine scoredRows_congr scale _ _ fun j hj t => ?_
    rw [length_flatMap, packedMod_own mods _ _ _ _ _ _ hl hi hj, List.length_map]
  · refine scoredRows_masked scale _ _ fun j _ t => ?_
    rw [length_flatMap]
    exact packedMod_other mods _ _ _ _ _ _ hl hi (.inr (by omega)) t
  · refine scoredRows_masked scale _ _ fun j hj t => ?_
    rw [length_flatMap] at hj
    exact packedMod_other mods _ _ _ _ _ _ hl hi (.inl hj) t

/-- **varlen**: sequences of any lengths, empty ones too, packed one after another, with the keys of
other sequences masked by the prefix sums of the lengths: the output is the outputs of the sequences
one after another, each with its own score transformation in its own positions. -/
theorem varlen (seqs : List (Sequence S R d d_v)) :
    attentionVarlen scale mods (cuSeqlens (seqs.map (·.queries.length)))
        (cuSeqlens (seqs.map (·.keyValues.length))) (seqs.flatMap (·.queries))
        (seqs.flatMap (·.keyValues))
      = seqs.zipIdx.flatMap fun (s, b) =>
          attentionRows scale (mods b) s.queries s.keyValues := by
  suffices h : ∀ post pre : List (Sequence S R d d_v), seqs = pre ++ post →
      ((post.flatMap (·.queries)).zipIdx (pre.flatMap (·.queries)).length).map
        (fun (q, i) => attendRows scale
          (packedMod (cuSeqlens (seqs.map (·.queries.length)))
            (cuSeqlens (seqs.map (·.keyValues.length))) mods i) q (seqs.flatMap (·.keyValues)))
      = (post.zipIdx pre.length).flatMap fun (s, b) =>
          attentionRows scale (mods b) s.queries s.keyValues from
    h seqs [] rfl
  intro post
  induction post with
  | nil => intro pre _; rfl
  | cons s post ih =>
    intro pre hs
    have h₁ := ih (pre ++ [s]) (by rw [hs, List.append_assoc]; rfl)
    rw [List.flatMap_append, List.length_append, List.length_append, List.length_singleton,
      List.flatMap_singleton] at h₁
    rw [List.flatMap_cons, List.zipIdx_append, List.map_append, h₁, List.zipIdx_cons,
      List.flatMap_cons]
    congr 1
    refine List.ext_getElem (by simp [attentionRows]) fun i h₂ h₃ => ?_
    have hi : i < s.queries.length := by simpa using h₂
    simp only [attentionRows, List.getElem_map, List.getElem_zipIdx, Nat.zero_add]
    have h₄ := attendRows_packed scale mods pre post s hi s.queries[i]
    rwa [← hs] at h₄

/-- **varlen-tiles**: the tile loop of FlashAttention-2 over the packed rows, in tiles that need not
end where a sequence ends, gives the outputs of the sequences one after another. -/
theorem flash_varlen {total_q total_k block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (seqs : List (Sequence S R d d_v)) (Q : Matrix S total_q d) (K : Matrix S total_k d)
    (V : Matrix R total_k d_v) (hQ : Q.toList = seqs.flatMap (·.queries))
    (hkv : keyValues K V = seqs.flatMap (·.keyValues)) :
    flash scale (fun i j => packedMod (cuSeqlens (seqs.map (·.queries.length)))
        (cuSeqlens (seqs.map (·.keyValues.length))) mods i j) Q K V block_m block_n
      = seqs.zipIdx.flatMap fun (s, b) =>
          attentionRows scale (mods b) s.queries s.keyValues := by
  rw [flash_eq_attention _ _ _ _ _ hm hn, toList_attention scale (packedMod _ _ mods), hQ, hkv]
  exact varlen scale mods seqs

/-! ## Slice by slice -/

/-- Slices of the parts put together are the parts. -/
private theorem slice_flatMap {α : Type u} {β : Type w} (f : α → List β) (pre post : List α)
    (x : α) :
    slice (cuSeqlens ((pre ++ x :: post).map fun x => (f x).length)) pre.length
      ((pre ++ x :: post).flatMap f) = f x := by
  have h₁ := getD_cuSeqlens (pre.map fun x => (f x).length)
    ((x :: post).map fun x => (f x).length) 0
  have h₂ := getD_cuSeqlens ((pre ++ [x]).map fun x => (f x).length)
    (post.map fun x => (f x).length) 0
  rw [← List.map_append, List.length_map] at h₁ h₂
  rw [List.append_assoc, List.singleton_append, List.length_append, List.length_singleton] at h₂
  rw [slice, h₁, h₂, List.map_append, List.sum_append_nat, ← length_flatMap, List.flatMap_append,
    Nat.zero_add, Nat.zero_add, List.drop_left, List.flatMap_cons]
  simp

/-- **varlen-sliced**: the same output comes of one attention for each slice between two prefix
sums. -/
theorem varlen_sliced (seqs : List (Sequence S R d d_v)) :
    attentionSliced scale mods (cuSeqlens (seqs.map (·.queries.length)))
        (cuSeqlens (seqs.map (·.keyValues.length))) (seqs.flatMap (·.queries))
        (seqs.flatMap (·.keyValues))
      = seqs.zipIdx.flatMap fun (s, b) =>
          attentionRows scale (mods b) s.queries s.keyValues := by
  rw [attentionSliced, length_cuSeqlens, List.length_map, Nat.add_sub_cancel]
  refine congrArg List.flatten (List.ext_getElem (by simp) fun b h₁ h₂ => ?_)
  have hb : b < seqs.length := by simpa using h₁
  have hs : seqs = seqs.take b ++ seqs[b] :: seqs.drop (b + 1) := by
    rw [List.getElem_cons_drop, List.take_append_drop]
  have hl : (seqs.take b).length = b := by rw [List.length_take]; omega
  have hq := slice_flatMap (fun s : Sequence S R d d_v => s.queries) (seqs.take b)
    (seqs.drop (b + 1)) seqs[b]
  have hk := slice_flatMap (fun s : Sequence S R d d_v => s.keyValues) (seqs.take b)
    (seqs.drop (b + 1)) seqs[b]
  rw [← hs, hl] at hq hk
  simp only [List.getElem_map, List.getElem_range, List.getElem_zipIdx, Nat.zero_add, hq, hk]

end Attention.Proof
