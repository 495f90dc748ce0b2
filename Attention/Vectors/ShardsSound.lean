module

public import Attention.Proof.Ring.Skip
public import Attention.Vectors.CaseSound
public import Attention.Vectors.Shards

public section

/-! # What runs is what is proved: sequences in shards

`ShardsCase.run` makes the vectors of sequences in shards. It runs the devices as a ring, in one of
the orders of events that `ring_net_skips` speaks of, and refuses a ring that has not come to its
end. -/

namespace Attention.Vectors

open Spec Spec.Online Proof

variable {n q_len kv_len d d_v : Nat}

/-! ## One order of events -/

private theorem after_of_nextOf {b c : Nat} {α : Type} {β : Type} {rules : RingRules n c α β}
    {net next : RingNet n b c α β} (h : nextOf rules net = some next) :
    ∃ event, net.after rules event = some next := by
  obtain ⟨event, -, h⟩ := List.exists_of_findSome?_eq_some h
  exact ⟨event, h⟩

private theorem after_of_nextOf_none {b c : Nat} {α : Type} {β : Type}
    {rules : RingRules n c α β} {net : RingNet n b c α β} (h : nextOf rules net = none)
    (event : RingEvent n c) : net.after rules event = none := by
  refine List.findSome?_eq_none_iff.mp h event ?_
  cases event with
  | execute i => exact List.mem_flatMap.mpr ⟨i, List.mem_finRange i, List.mem_cons_self⟩
  | leave channel i =>
    exact List.mem_flatMap.mpr ⟨i, List.mem_finRange i, List.mem_cons_of_mem _
      (List.mem_flatMap.mpr ⟨channel, List.mem_finRange channel, by simp⟩)⟩
  | arrive channel i =>
    exact List.mem_flatMap.mpr ⟨i, List.mem_finRange i, List.mem_cons_of_mem _
      (List.mem_flatMap.mpr ⟨channel, List.mem_finRange channel, by simp⟩)⟩

private theorem run_settle {b c : Nat} {α : Type} {β : Type} {rules : RingRules n c α β}
    (events : Nat) (net : RingNet n b c α β) :
    ∃ done, net.run rules done = some (settle rules events net) := by
  induction events generalizing net with
  | zero => exact ⟨[], rfl⟩
  | succ events ih =>
    rw [settle]
    cases h : nextOf rules net with
    | none => exact ⟨[], rfl⟩
    | some next =>
      obtain ⟨event, h⟩ := after_of_nextOf h
      obtain ⟨done, hd⟩ := ih next
      refine ⟨event :: done, ?_⟩
      rw [RingNet.run, h]
      exact hd

private theorem hidden_of_toWindow {kind : MaskKind} {alignment : Alignment}
    {left right : Option Nat} (h : kind.toWindow = .ok (alignment, left, right))
    (i : Fin q_len) (j : Fin kv_len) (s : Int)
    (hidden : Mask.inDocuments alignment left right none i j = false) :
    (kind.toMask : Mask q_len kv_len).toScoreMod i j s = none := by
  have outside : Mask.window alignment left right i j = false := by
    simpa [Mask.inDocuments, Mask.and, oneDocument] using hidden
  have masked : (kind.toMask : Mask q_len kv_len) i j = false := by
    cases kind <;> simp only [MaskKind.toWindow, Except.ok.injEq, Prod.mk.injEq, reduceCtorEq] at h
    case none =>
      obtain ⟨rfl, rfl, rfl⟩ := h
      simp [Mask.window] at outside
    case causal =>
      obtain ⟨rfl, rfl, rfl⟩ := h
      simpa [Mask.window, Mask.causal, MaskKind.toMask] using outside
    case causalBottomRight =>
      obtain ⟨rfl, rfl, rfl⟩ := h
      simpa [Mask.window, Mask.causal, MaskKind.toMask] using outside
    case window =>
      obtain ⟨rfl, rfl, rfl⟩ := h
      exact outside
  simp [Mask.toScoreMod, masked]

/-- The ring of a case, where it has come to its end: each device has the attention of its queries
over all keys. -/
theorem shardsNet_sound {most : Nat} {kind : MaskKind} {alignment : Alignment}
    {left right : Option Nat} (hw : kind.toWindow = .ok (alignment, left, right)) (hn : 0 < n)
    {rows : Fin n → List (Fin q_len)} {cols : Fin n → List (Fin kv_len)}
    (hcols : ((List.finRange n).flatMap cols).Perm (List.finRange kv_len)) {scale : Int}
    {Q : Matrix Int q_len d} {K : Matrix Int kv_len d} {V : Matrix Rat kv_len d_v}
    {meet : Fin n → Fin n → Bool}
    (hmeet : meet = shardsMeet most alignment left right none rows cols)
    (ended : nextOf (shardsRules meet scale kind Q rows cols)
      (shardsNet meet scale kind Q K V rows cols) = none) :
    ∀ i : Fin n, (shardsNet meet scale kind Q K V rows cols).nodes[i].result.map finish
      = (rows i).map fun q => (attention scale kind.toMask.toScoreMod Q K V)[q] := by
  subst hmeet
  obtain ⟨done, run⟩ := run_settle (rules := shardsRules _ scale kind Q rows cols)
    (n * (7 * neededRounds (shardsMeet most alignment left right none rows cols)))
    (ringStart (ringProgram (neededRounds (shardsMeet most alignment left right none rows cols)))
      K V rows cols fun _ => [])
  have outputs := (ring_net_skips (hidden_of_toWindow hw) (fun _ _ => rfl) rfl hn hcols rfl run).2
    fun event => after_of_nextOf_none ended event
  intro i
  have h := congrArg (·[i.val]?) outputs
  simpa [RingNet.outputs, shardsNet] using h

/-! ## One shard alone -/

/-- The result from the state of a row. -/
theorem ofState_ofBlock (row : List (ScoredValue Int Rat d)) :
    RowResult.ofState (ofBlock row) = rowResult row (attend row) := by
  rw [RowResult.ofState, finish_ofBlock]
  rfl

/-- The states of a device's queries over the keys of one device alone, also where it leaves these
out. -/
theorem takeMet_shard {most : Nat} {kind : MaskKind} {alignment : Alignment}
    {left right : Option Nat} (hw : kind.toWindow = .ok (alignment, left, right))
    {rows : Fin n → List (Fin q_len)} {cols : Fin n → List (Fin kv_len)} {scale : Int}
    {Q : Matrix Int q_len d} {K : Matrix Int kv_len d} {V : Matrix Rat kv_len d_v}
    (i j : Fin n) :
    takeMet (shardsMeet most alignment left right none rows cols)
        (takeShard scale kind.toMask.toScoreMod Q rows cols) i j
        ((rows i).map fun _ => (empty : State Int Rat d_v)) (shard K V (cols j))
      = (rows i).map fun q =>
        ofBlock (scored scale kind.toMask.toScoreMod Q K V q (cols j)) := by
  rw [takeMet]
  split
  case isTrue =>
    rw [takeShard, List.zipWith_map_right, List.zipWith_self]
    refine List.map_congr_left fun q _ => ?_
    rw [← ofBlock_nil, stepBlock_ofBlock, List.nil_append, shard, List.zipWith_map_right,
      List.zipWith_self]
    rfl
  case isFalse h =>
    refine List.map_congr_left fun q hq => ?_
    refine ((ofBlock_invariant _).eq_empty ((ofBlock_invariant _).m_eq_none.mpr ?_)).symm
    intro key hkey
    obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hkey
    exact hidden_of_toWindow hw q k _ (meets_eq_false (Bool.eq_false_iff.mpr h) q.val
      (List.mem_map_of_mem hq) k.val (List.mem_map_of_mem hk))

/-! ## The program -/

private theorem indices_val {m : Nat} (xs : List (Fin m)) :
    indices m (xs.map (·.val)) = xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [indices] at ih ⊢
    simp [x.isLt, ih]

/-- **shards-vectors-sound**: if the program gives results for a sequence in shards, each query is
on exactly one device, and the outputs that it gives for a device are the rows of attention over all
keys. -/
theorem ShardsCase.run_sound {c : ShardsCase} {results : List DeviceResult}
    (h : c.run = .ok results) :
    ∃ (Q : Matrix Int c.q.length c.head_dim) (K : Matrix Int c.k.length c.head_dim)
      (V : Matrix Rat c.k.length c.value_dim),
      toMatrix _ _ c.q = .ok Q ∧ toMatrix _ _ c.k = .ok K ∧ toMatrix _ _ c.v = .ok V ∧
      (results.flatMap fun r => indices c.q.length r.queries).Perm (List.finRange c.q.length) ∧
      ∀ r ∈ results, r.merged.map (·.output) = (indices c.q.length r.queries).map fun q =>
        (attention c.scale c.mask.toMask.toScoreMod Q K V)[q].toList := by
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain ⟨⟨alignment, left, right⟩, hw, h⟩ := bind_ok h
  refine ⟨Q, K, V, hQ, hK, hV, ?_⟩
  simp only at h
  split at h
  case isFalse => cases h
  case isTrue hn =>
  split at h
  case isFalse => cases h
  case isTrue perm =>
  split at h
  case isTrue => cases h
  case isFalse ended =>
  obtain rfl := Except.ok.inj h
  have hrows := List.isPerm_iff.mp perm.1
  refine ⟨?_, ?_⟩
  · rw [List.flatMap_map]
    simp only [indices_val]
    exact hrows
  · intro r hr
    obtain ⟨i, -, rfl⟩ := List.mem_map.mp hr
    have row := shardsNet_sound hw hn (List.isPerm_iff.mp perm.2) (Q := Q) (K := K) (V := V)
      (scale := c.scale) rfl (Option.not_isSome_iff_eq_none.mp ended) i
    have e : ∀ states : List (State Int Rat c.value_dim),
        (states.map RowResult.ofState).map (·.output) = (states.map finish).map (·.toList) :=
      fun states => by
        rw [List.map_map, List.map_map]
        rfl
    simp only [indices_val]
    rw [e, row, List.map_map]
    rfl

/-- **shards-partials-sound**: if the program gives results for a sequence in shards, then for each
arrival of a device its partial results are, for each of its queries, those of attention over the
keys of the device that they come from alone: the output, the largest score and the denominator
against it. -/
theorem ShardsCase.partials_sound {c : ShardsCase} {results : List DeviceResult}
    (h : c.run = .ok results) :
    ∃ (Q : Matrix Int c.q.length c.head_dim) (K : Matrix Int c.k.length c.head_dim)
      (V : Matrix Rat c.k.length c.value_dim),
      rowsOf Q = c.q ∧ rowsOf K = c.k ∧ rowsOf V = c.v ∧
      ∀ r ∈ results, r.partials.length = r.arrivals.length ∧
        ∀ (t j : Nat) (part : List RowResult), r.arrivals[t]? = some j →
          r.partials[t]? = some part → ∃ source : DeviceResult, results[j]? = some source ∧
            part.map (·.output) = ((indices c.q.length r.queries).map fun q =>
              (attend (scored c.scale c.mask.toMask.toScoreMod Q K V q
                (indices c.k.length source.keys))).toList) ∧
            ∀ (a : Nat) (q : Fin c.q.length) (p : RowResult),
              (indices c.q.length r.queries)[a]? = some q → part[a]? = some p →
              p.Describes (scored c.scale c.mask.toMask.toScoreMod Q K V q
                (indices c.k.length source.keys)) := by
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain ⟨⟨alignment, left, right⟩, hw, h⟩ := bind_ok h
  refine ⟨Q, K, V, toMatrix_rows hQ, toMatrix_rows hK, toMatrix_rows hV, ?_⟩
  simp only at h
  split at h
  case isFalse => cases h
  case isTrue hn =>
  split at h
  case isFalse => cases h
  case isTrue perm =>
  split at h
  case isTrue => cases h
  case isFalse ended =>
  obtain rfl := Except.ok.inj h
  intro r hr
  obtain ⟨i, -, rfl⟩ := List.mem_map.mp hr
  refine ⟨by simp, fun t j part hj hpart => ?_⟩
  dsimp only at hj hpart
  generalize (List.range _).map (source i) = sources at hj hpart
  rw [List.getElem?_map, Option.map_eq_some_iff] at hj hpart
  obtain ⟨s, hs, rfl⟩ := hj
  obtain ⟨s', hs', rfl⟩ := hpart
  obtain rfl : s = s' := Option.some.inj (hs.symm.trans hs')
  refine ⟨_, by simp; rfl, ?_, fun a q p hq hp => ?_⟩
  · simp only [indices_val, shardsRules, takeMet_shard hw, List.map_map]
    refine List.map_congr_left fun q _ => ?_
    simp only [Function.comp, ofState_ofBlock]
    rfl
  · simp only [indices_val, shardsRules, takeMet_shard hw, List.map_map] at hq hp ⊢
    rw [List.getElem?_map, hq, Option.map_some, Option.some.injEq] at hp
    simp only [Function.comp, ofState_ofBlock] at hp
    exact hp ▸ rowResult_describes _ _

end Attention.Vectors
