module

public import Attention.Spec.Cache
public import Attention.Spec.Cascade
public import Attention.Spec.Combine
public import Attention.Spec.Heads
public import Attention.Spec.Padding
public import Attention.Spec.Paged
public import Attention.Spec.Ring
public import Attention.Spec.SplitKV
public import Attention.Spec.Varlen
import Attention.Proof.Cache.Edits
import Attention.Proof.Heads.Basic
import Attention.Proof.Masks.Padding
import Attention.Proof.Online.Cascade
import Attention.Proof.Online.Combine
import Attention.Proof.Online.Ring
import Attention.Proof.Online.SplitKV
import Attention.Proof.Packed.Paged
import Attention.Proof.Packed.Varlen

public section

/-! # Keys that are split, packed, paged, shared and cached -/

namespace Attention.Statements

open Spec Spec.Online

universe u v w

/-- The keys may be split, and the states of the splits merged. -/
theorem split_kv_eq_attention {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    {split_len block_n : Nat} (hs : 0 < split_len) (hn : 0 < block_n) :
    splitKV scale modify Q K V split_len block_n = (attention scale modify Q K V).toList :=
  Proof.splitKV_eq_attention scale modify Q K V hs hn

/-- Outputs of splits combined by their log-sum-exps are the output of all keys, and the
log-sum-exp of these is that of all scores. -/
theorem split_kv {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d : Nat} {α : Type w} {splits : List α} {part : α → Partial S R d}
    {row : α → List (ScoredValue S R d)}
    (h : ∀ x ∈ splits, (part x).o = attend (row x)
      ∧ IsLogSumExp R (part x).lse ((row x).map (·.score)))
    {L : Option S} (hL : IsLogSumExp R L (splits.map fun x => (part x).lse)) :
    combine L (splits.map part) = attend (splits.flatMap row)
      ∧ IsLogSumExp R L ((splits.flatMap row).map (·.score)) :=
  Proof.combine_isPartial h hL

/-- Ring attention computes attention, wherever the keys begin. -/
theorem ring {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    {shards : List (List (Fin q_len) × List (Fin kv_len))}
    (h : (shards.map (·.2)).flatten.Perm (List.finRange kv_len)) :
    Spec.ring scale modify Q K V shards
      = shards.map fun (rows, _) => rows.map fun i => (attention scale modify Q K V)[i] :=
  Proof.ring_eq_attention scale modify Q K V h

/-- A prefix that all queries share may be computed once. -/
theorem cascade {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len prefix_len d d_v : Nat} (scale : S)
    (modify : Fin q_len → Nat → S → Option S) (Q : Matrix S q_len d)
    (K : Matrix S prefix_len d) (V : Matrix R prefix_len d_v)
    (suffix : Fin q_len → List (KeyValue S R d d_v)) {block_n : Nat} (hn : 0 < block_n) :
    Spec.cascade scale modify Q K V suffix block_n
      = (List.finRange q_len).map fun i =>
          attendRows scale (modify i) Q[i] (keyValues K V ++ suffix i) :=
  Proof.cascade_eq_attendRows scale modify Q K V suffix hn

/-- Packed sequences get the outputs that each gets by itself. -/
theorem varlen {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d d_v : Nat} (scale : S) (mods : Nat → Nat → Nat → S → Option S)
    (seqs : List (Sequence S R d d_v)) :
    attentionVarlen scale mods (cuSeqlens (seqs.map (·.queries.length)))
        (cuSeqlens (seqs.map (·.keyValues.length))) (seqs.flatMap (·.queries))
        (seqs.flatMap (·.keyValues))
      = seqs.zipIdx.flatMap fun (s, b) =>
          attentionRows scale (mods b) s.queries s.keyValues :=
  Proof.varlen scale mods seqs

/-- Keys and values stored in pages and read through a table give attention, whatever the pages held
before. -/
theorem paged {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {page_size num_pages q_len kv_len d d_v : Nat} (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (pool : Pool (KeyValue S R d d_v) page_size num_pages)
    {table : List (Fin num_pages)} (hn : table.Nodup) (hl : kv_len ≤ table.length * page_size)
    (i : Fin q_len) :
    attendPaged scale (modify.row i) Q[i] (pool.store table 0 (keyValues K V)) table kv_len
      = (attention scale modify Q K V)[i] :=
  Proof.paged scale modify Q K V pool hn hl i

/-- Query heads that share a head of keys may be stacked in one matrix. -/
theorem gqa_packed {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v num_kv_heads group : Nat} (scale : S)
    (modify : Fin (num_kv_heads * group) → ScoreMod S q_len kv_len)
    (Q : Vector (Matrix S q_len d) (num_kv_heads * group))
    (K : Vector (Matrix S kv_len d) num_kv_heads) (V : Vector (Matrix R kv_len d_v) num_kv_heads) :
    groupedQueryPacked scale modify Q K V = groupedQuery scale modify Q K V :=
  Proof.gqa_packed scale modify Q K V

/-- Padding changes nothing, whatever it holds. -/
theorem pad_kv {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v r p : Nat} (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (Q' : Matrix S r d) (K' : Matrix S p d) (V' : Matrix R p d_v) :
    attentionPadded scale modify Q K V Q' K' V' = attention scale modify Q K V :=
  Proof.pad_kv scale modify Q K V Q' K' V'

/-- A state that follows appended, deleted and replaced keys gives the attention of the keys that
are there. -/
theorem kv_edits {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {d : Nat} (edits : List (Edit S R d)) :
    let row := edits.foldl Edit.keys []
    let c := edits.foldl edit ([], empty)
    c.1 = row ∧ ((∃ k ∈ row, k.score ≠ none) → 0 < c.2.l ∧ finish c.2 = attend row)
      ∧ ((∀ k ∈ row, k.score = none) → c.2.l = 0 ∧ c.2.o = Vec.zero) :=
  Proof.kv_edits edits

end Attention.Statements
