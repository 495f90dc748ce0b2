module

public import Attention.Proof.Flash.Basic
public import Attention.Proof.Flash.Rows
public import Attention.Proof.Online.Merge
public import Attention.Proof.Ring.Forward
public import Attention.Proof.Ring.Sources

public section

/-! # Devices that run by themselves compute attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {n : Nat}

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (rows : Fin n → List (Fin q_len)) (cols : Fin n → List (Fin kv_len))

private theorem takeShard_shard (i j : Fin n) (states : List (State S R d_v)) :
    takeShard scale modify Q rows cols i j states (shard K V (cols j))
      = stepTile (scored scale modify Q K V) (rows i) states (cols j) := by
  simp only [takeShard, shard, stepTile, scored, score]
  congr 1
  funext q s
  congr 1
  rw [List.zipWith_map_right, List.zipWith_self]

variable {scale modify Q K V rows cols}

/-- The states of a device's queries that have taken the first `k` shards that it meets. -/
theorem resultAfter_takeShard {rules : RingRules n 1 (List (KeyValue S R d d_v))
      (List (State S R d_v))}
    (ht : rules.take = takeShard scale modify Q rows cols) (i : Fin n) (k : Nat) :
    resultAfter rules (fun j => shard K V (cols j)) (fun j => (rows j).map fun _ => empty) i k
      = (rows i).map fun q => online ((List.range k).map fun t =>
          scored scale modify Q K V q (cols (source i t))) := by
  rw [resultAfter, ht]
  simp only [takeShard_shard]
  rw [← List.foldl_map (f := fun t => cols (source i t))
    (g := stepTile (scored scale modify Q K V) (rows i)), foldl_stepTile]
  simp only [List.map_map, Function.comp_def, online]

/-- Devices that have taken the shards of so many rounds have attention, if no query sees a key of
a device that it does not meet. -/
theorem outputs_of_results {rounds : Nat} (hn : rounds ≤ n)
    (h : ((List.finRange n).flatMap cols).Perm (List.finRange kv_len))
    (skipped : ∀ i t, rounds ≤ t → t < n → ∀ q ∈ rows i, ∀ k ∈ cols (source i t),
      score scale modify Q K q k = none)
    {net : RingNet n 2 1 (List (KeyValue S R d d_v)) (List (State S R d_v))}
    (results : ∀ i : Fin n, net.nodes[i].result = (rows i).map fun q =>
      online ((List.range rounds).map fun t => scored scale modify Q K V q (cols (source i t)))) :
    net.outputs = (List.finRange n).map fun i =>
      (rows i).map fun q => (attention scale modify Q K V)[q] := by
  refine List.ext_getElem (by simp [RingNet.outputs]) fun i hi _ => ?_
  have hi : i < n := by simpa [RingNet.outputs] using hi
  have e := results ⟨i, hi⟩
  simp only [RingNet.outputs, List.getElem_map, Vector.getElem_toList, List.getElem_finRange]
  simp only [Fin.getElem_fin] at e
  rw [e, List.map_map]
  refine List.map_congr_left fun q hq => ?_
  have all := ((((sources_perm ⟨i, hi⟩).flatMap_right cols).trans h).map
    fun k => (⟨score scale modify Q K q k, V[k]⟩ : ScoredValue S R d_v))
  have split : List.range n = List.range rounds ++ List.range' rounds (n - rounds) := by
    have := List.range'_append_1 (s := 0) (m := rounds) (n := n - rounds)
    rw [Nat.zero_add, Nat.add_sub_cancel' hn] at this
    rw [List.range_eq_range', List.range_eq_range', this]
  rw [split, List.flatMap_map, List.flatMap_append, List.map_append] at all
  have := online_any_blocks (((List.range rounds).map fun t => cols (source ⟨i, hi⟩ t)).map
    (scored scale modify Q K V q))
  rw [flatten_map_scored, List.map_map] at this
  simp only [Function.comp_def] at this ⊢
  rw [this]
  simp only [attention, Fin.getElem_fin, Vec.getElem_ofFn, scored] at all ⊢
  rw [← attend_perm all, attend_append_masked]
  · rw [List.flatMap_def]
  · intro key hk
    simp only [List.mem_map, List.mem_flatMap, List.mem_range'_1] at hk
    obtain ⟨k, ⟨t, ht, hk⟩, rfl⟩ := hk
    exact skipped ⟨i, hi⟩ t ht.1 (by omega) q hq k hk

/-- **ring-net**: if every key is on exactly one device, and no query sees a key of a device that it
does not meet in these rounds, then every run of the devices ends, after at most these many events,
and where no event can happen, each device has the attention of its queries over all keys. -/
theorem ring_net_eq_attention {rounds : Nat}
    {rules : RingRules n 1 (List (KeyValue S R d d_v)) (List (State S R d_v))}
    (hs : ∀ e i, rules.sender e i = before i)
    (ht : rules.take = takeShard scale modify Q rows cols) (hr : 0 < rounds) (hn : rounds ≤ n)
    (h : ((List.finRange n).flatMap cols).Perm (List.finRange kv_len))
    (skipped : ∀ i t, rounds ≤ t → t < n → ∀ q ∈ rows i, ∀ k ∈ cols (source i t),
      score scale modify Q K q k = none)
    {spare : Fin n → List (KeyValue S R d d_v)} {events : List (RingEvent n 1)}
    {net : RingNet n 2 1 (List (KeyValue S R d d_v)) (List (State S R d_v))}
    (run : (ringStart (ringProgram rounds) K V rows cols spare).run rules events = some net) :
    events.length ≤ n * (7 * rounds - 6)
      ∧ ((∀ event, net.after rules event = none) →
        net.outputs = (List.finRange n).map fun i =>
          (rows i).map fun q => (attention scale modify Q K V)[q]) := by
  obtain ⟨length, ends⟩ := ring_net_consumes hs hr run
  refine ⟨length, fun stuck => outputs_of_results hn h skipped fun i => ?_⟩
  rw [(ends stuck i).2.2.2.2, resultAfter_takeShard ht]

end Attention.Proof
