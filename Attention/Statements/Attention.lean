module

public import Attention.Spec.Flash1
public import Attention.Spec.Merge
public import Attention.Spec.LogSumExp
public import Attention.Spec.TileBounds
import Attention.Proof.Flash.TileBounds
import Attention.Proof.Online.Flash1
import Attention.Proof.Online.Merge
import Attention.Proof.Softmax.LogSumExp

public section

/-! # Attention, online softmax and the tile loop -/

namespace Attention.Statements

open Spec Spec.Online

universe u v

/-- Attention is the formula: component j of row i is Σₖ wₖ·vₖⱼ / Σₖ wₖ, with wₖ the exponential of
the transformed score, and 0 where that is masked. -/
theorem attention_formula {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (i : Fin q_len) (j : Fin d_v) :
    let w : Fin kv_len → R := fun k =>
      match modify i k (scale * sumOver (fun t => Q[i][t] * K[k][t]) (List.finRange d)) with
      | none => 0
      | some s => exp s
    (attention scale modify Q K V)[i][j]
      = sumOver (fun k => w k * V[k][j]) (List.finRange kv_len)
        / sumOver w (List.finRange kv_len) :=
  Proof.attention_formula scale modify Q K V i j

/-- The maximum may be subtracted first. -/
theorem safe_softmax {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] (row : List (Option S)) : safeSoftmax (R := R) row = softmax row :=
  Proof.safeSoftmax_eq_softmax row

/-- Online softmax over any blocks is attention. -/
theorem online_any_blocks {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d : Nat} (blocks : List (List (ScoredValue S R d))) :
    finish (online blocks) = attend blocks.flatten :=
  Proof.online_any_blocks blocks

/-- FlashAttention-1's update, as its paper has it, computes attention. -/
theorem flash_1 {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d : Nat} (blocks : List (List (ScoredValue S R d))) :
    (blocks.foldl stepBlockFlash1 empty).o = attend blocks.flatten :=
  Proof.flash1_any_blocks blocks

/-- The number m + ln l that a kernel writes is the log-sum-exp, and nothing else is. -/
theorem lse_spec {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d : Nat} (blocks : List (List (ScoredValue S R d))) {L : Option S} :
    (online blocks).HasLogSumExp L ↔ IsLogSumExp R L (blocks.flatten.map (·.score)) :=
  Proof.online_hasLogSumExp blocks

/-- Every tree of merges, of the keys in any order, gives attention. -/
theorem any_tree {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d : Nat} (tree : MergeTree S R d) {row : List (ScoredValue S R d)}
    (h : row.Perm tree.keys) : finish tree.eval = attend row :=
  Proof.finish_eval tree h

/-- The tile loop of FlashAttention-2 computes attention. -/
theorem flash_eq_attention {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    flash scale modify Q K V block_m block_n = (attention scale modify Q K V).toList :=
  Proof.flash_eq_attention scale modify Q K V hm hn

/-- Masked tiles may be skipped, and unmasked ones need no mask code. -/
theorem tile_schedule {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (mask : Mask q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) {visit : Nat → TileRange} {kind : Nat → Nat → TileKind}
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n)
    (skip : ∀ t u, (visit t).contains u = false ∨ kind t u = .skip →
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        mask i j = false)
    (unmasked : ∀ t u, (visit t).contains u = true → kind t u = .unmasked →
      ∀ i ∈ tile block_m (List.finRange q_len) t, ∀ j ∈ tile block_n (List.finRange kv_len) u,
        mask i j = true) :
    flashSchedule scale modify mask Q K V visit kind block_m block_n
      = (attention scale (modify.andThen mask.toScoreMod) Q K V).toList :=
  Proof.flashSchedule_eq_attention scale modify Q K V hm hn ⟨skip, unmasked⟩

/-- A kernel's integer bounds visit exactly the tiles that hold a visible pair. -/
theorem tile_bounds {q_len kv_len block_m block_n t u : Nat} (alignment : Alignment)
    (left right : Option Nat) (hm : 0 < block_m) (hn : 0 < block_n)
    (ht : t < numTiles q_len block_m) (hu : u < numTiles kv_len block_n) :
    (visitedTiles alignment left right q_len kv_len block_m block_n t).contains u = true ↔
      ∃ i ∈ tile block_m (List.finRange q_len) t, ∃ j ∈ tile block_n (List.finRange kv_len) u,
        Mask.window alignment left right i j = true :=
  Proof.visitedTiles_iff alignment left right hm hn ht hu

end Attention.Statements
