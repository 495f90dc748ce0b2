module

public import Attention.Proof.Ring.Attention
public import Attention.Proof.Ring.Bounds
public import Attention.Proof.Ring.Gradients
public import Attention.Proof.Ring.Shards
public import Attention.Spec.RingSkip

public section

/-! # Devices that leave out what nobody sees compute attention and its gradients -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {n : Nat}

/-! ## Rounds -/

section

variable {meet : Fin n → Fin n → Bool}

private theorem neededWithin_le : ∀ k, neededWithin meet k ≤ k
  | 0 => Nat.le_refl 0
  | k + 1 => by
    rw [neededWithin]
    split
    · exact Nat.le_refl _
    · exact Nat.le_succ_of_le (neededWithin_le k)

private theorem neededWithin_pos : ∀ k, 0 < k → 0 < neededWithin meet k
  | k + 1, _ => by
    rw [neededWithin]
    split
    · exact Nat.succ_pos k
    · next h => exact neededWithin_pos k (by omega)

private theorem unmet_after : ∀ k t, neededWithin meet k ≤ t → t < k → ∀ i,
    meet i (source i t) = false
  | k + 1, t, h₁, h₂, i => by
    rw [neededWithin] at h₁
    split at h₁
    · omega
    · next h =>
      rw [not_or, List.any_eq_true] at h
      by_cases e : t = k
      · subst e
        exact Bool.eq_false_iff.mpr fun m => h.2 ⟨i, List.mem_finRange i, m⟩
      · exact unmet_after k t h₁ (by omega) i

private theorem met_last : ∀ k, 1 < neededWithin meet k →
    ∃ i, meet i (source i (neededWithin meet k - 1)) = true
  | k + 1, h => by
    rw [neededWithin] at h ⊢
    split at h
    · next hm =>
      rw [if_pos hm, Nat.add_sub_cancel]
      have hm := hm.resolve_left (by omega)
      obtain ⟨i, -, hi⟩ := List.any_eq_true.mp hm
      exact ⟨i, hi⟩
    · next hm =>
      rw [if_neg hm]
      exact met_last k h

/-- **needed-rounds**: so many rounds, at least one, are enough if and only if in none of those
after them a device holds keys that it needs. -/
theorem neededRounds_le_iff {rounds : Nat} (hr : 0 < rounds) :
    neededRounds meet ≤ rounds ↔
      ∀ t, rounds ≤ t → t < n → ∀ i, meet i (source i t) = false := by
  refine ⟨fun h t h₁ h₂ => unmet_after n t (Nat.le_trans h h₁) h₂, fun h => ?_⟩
  refine Nat.le_of_not_lt fun more => ?_
  rw [neededRounds] at more
  obtain ⟨i, hi⟩ := met_last (meet := meet) n (by omega)
  have := neededWithin_le (meet := meet) n
  rw [h _ (by omega) (by omega) i] at hi
  cases hi

end

/-! ## Forward -/

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat} {scale : S} {modify : ScoreMod S q_len kv_len}
variable {Q : Matrix S q_len d} {K : Matrix S kv_len d} {V : Matrix R kv_len d_v}
variable {rows : Fin n → List (Fin q_len)} {cols : Fin n → List (Fin kv_len)}

private theorem resultAfter_takeMet {meet : Fin n → Fin n → Bool}
    {rules : RingRules n 1 (List (KeyValue S R d d_v)) (List (State S R d_v))}
    (ht : rules.take = takeMet meet (takeShard scale modify Q rows cols))
    (unmet : ∀ i j, meet i j = false → ∀ q ∈ rows i, ∀ k ∈ cols j,
      score scale modify Q K q k = none) (i : Fin n) : ∀ k : Nat,
    resultAfter rules (fun j => shard K V (cols j)) (fun j => (rows j).map fun _ => empty) i k
      = (rows i).map fun q => online ((List.range k).map fun t =>
          scored scale modify Q K V q (cols (source i t)))
  | 0 => by simp [resultAfter, online]
  | k + 1 => by
    have next : ∀ rules : RingRules n 1 (List (KeyValue S R d d_v)) (List (State S R d_v)),
        resultAfter rules (fun j => shard K V (cols j)) (fun j => (rows j).map fun _ => empty) i
            (k + 1)
          = rules.take i (source i k) (resultAfter rules (fun j => shard K V (cols j))
              (fun j => (rows j).map fun _ => empty) i k) (shard K V (cols (source i k))) :=
      fun rules => by simp [resultAfter, List.range_succ]
    rw [next, resultAfter_takeMet ht unmet i k, ht, takeMet]
    split
    · have plain := fun k => resultAfter_takeShard (K := K) (V := V)
        (rules := forwardRules (d_v := d_v) (R := R) scale modify Q rows cols 0) rfl i k
      rw [← plain k, ← plain (k + 1), next]
      rfl
    · next h =>
      refine List.map_congr_left fun q hq => ?_
      rw [List.range_succ, List.map_append, List.map_singleton]
      rw [online_skip_masked _ [], List.append_nil]
      intro key hk
      simp only [scored, List.mem_map] at hk
      obtain ⟨j, hj, rfl⟩ := hk
      exact unmet i _ (Bool.eq_false_iff.mpr h) q hq j hj

/-- No query of a device sees a key of one that it does not meet. -/
private theorem unseen {most : Nat} {alignment : Alignment} {left right : Option Nat}
    {documents : Option (List Nat)}
    (hidden : ∀ q k s, Mask.inDocuments alignment left right documents q k = false →
      modify q k s = none) {i j : Fin n}
    (h : shardsMeet most alignment left right documents rows cols i j = false) :
    ∀ q ∈ rows i, ∀ k ∈ cols j, score scale modify Q K q k = none := fun q hq k hk =>
  hidden q k _ (meets_eq_false h q.val (List.mem_map_of_mem hq) k.val (List.mem_map_of_mem hk))

/-- **ring-net-skips**: if every key is on exactly one device and modify masks what is outside of
the window and of the documents, devices that compute with the keys alone which they need by the
bounds of their shards, in the rounds alone that some device needs, end after at most these many
events, and where no event can happen, each device has the attention of its queries over all keys.
-/
theorem ring_net_skips {most : Nat} {alignment : Alignment} {left right : Option Nat}
    {documents : Option (List Nat)}
    (hidden : ∀ q k s, Mask.inDocuments alignment left right documents q k = false →
      modify q k s = none)
    {rules : RingRules n 1 (List (KeyValue S R d d_v)) (List (State S R d_v))}
    (hs : ∀ e i, rules.sender e i = before i)
    (ht : rules.take = takeMet (shardsMeet most alignment left right documents rows cols)
      (takeShard scale modify Q rows cols))
    (hn : 0 < n) (h : ((List.finRange n).flatMap cols).Perm (List.finRange kv_len))
    {rounds : Nat}
    (hr : rounds = neededRounds (shardsMeet most alignment left right documents rows cols))
    {spare : Fin n → List (KeyValue S R d d_v)} {events : List (RingEvent n 1)}
    {net : RingNet n 2 1 (List (KeyValue S R d d_v)) (List (State S R d_v))}
    (run : (ringStart (ringProgram rounds) K V rows cols spare).run rules events = some net) :
    events.length ≤ n * (7 * rounds - 6)
      ∧ ((∀ event, net.after rules event = none) →
        net.outputs = (List.finRange n).map fun i =>
          (rows i).map fun q => (attention scale modify Q K V)[q]) := by
  have pos : 0 < rounds := hr ▸ neededWithin_pos n hn
  obtain ⟨length, ends⟩ := ring_net_consumes hs pos run
  refine ⟨length, fun stuck => ?_⟩
  have le : rounds ≤ n := hr ▸ neededWithin_le n
  refine outputs_of_results le h (fun i t h₁ h₂ => ?_) fun i => ?_
  · exact unseen hidden (unmet_after n t (hr ▸ h₁) h₂ i)
  · rw [(ends stuck i).2.2.2.2]
    exact resultAfter_takeMet ht (fun _ _ h => unseen hidden h) i rounds

/-- In particular where each place has an owner: contiguous, zigzag, striped and uneven shards. -/
theorem ring_net_skips_owned {most : Nat} {alignment : Alignment} {left right : Option Nat}
    {documents : Option (List Nat)}
    (hidden : ∀ q k s, Mask.inDocuments alignment left right documents q k = false →
      modify q k s = none) (owner : Fin q_len → Fin n) (keyOwner : Fin kv_len → Fin n)
    (hn : 0 < n) {capacity : Nat} :
    let meet := shardsMeet most alignment left right documents (placesOf owner) (placesOf keyOwner)
    let rules : RingRules n 1 (List (KeyValue S R d d_v)) (List (State S R d_v)) :=
      { forwardRules scale modify Q (placesOf owner) (placesOf keyOwner) capacity with
        take := takeMet meet (takeShard scale modify Q (placesOf owner) (placesOf keyOwner)) }
    ∀ {spare : Fin n → List (KeyValue S R d d_v)} {events : List (RingEvent n 1)}
      {net : RingNet n 2 1 (List (KeyValue S R d d_v)) (List (State S R d_v))},
    (ringStart (ringProgram (neededRounds meet)) K V (placesOf owner) (placesOf keyOwner)
      spare).run rules events = some net →
    (∀ event, net.after rules event = none) →
      net.outputs = (List.finRange n).map fun i =>
        (placesOf owner i).map fun q => (attention scale modify Q K V)[q] :=
  fun run => (ring_net_skips hidden (fun _ _ => rfl) rfl hn (placesOf_perm keyOwner) rfl run).2

/-! ## Backward -/

variable {toValue : S → R} {slope : ScoreSlope S R q_len kv_len}
variable {Z : WeightFactor R q_len kv_len} {L : Vector (Option S) q_len} {dO : Matrix R q_len d_v}

private theorem found_takeParcelMet {meet : Fin n → Fin n → Bool} {delta : Vec R q_len}
    {rounds : Nat} {rules : RingRules n 3 (Parcel S R d d_v) (BackwardState R d d_v)}
    (ht : rules.take = takeParcelMet meet (takeParcel toValue scale modify slope Q Z L dO delta
      rows cols))
    (hg : rules.give = fun state => .sums state.sums)
    (unmet : ∀ i j, meet i j = false → ∀ q ∈ rows i, ∀ k ∈ cols j,
      score scale modify Q K q k = none) : ∀ (t : Nat) (i : Fin n),
    found rules (fun i => .keys (shard K V (cols i)))
        (fun i => ⟨(rows i).map fun _ => Vec.zero, ⟨[], []⟩⟩) t i
      = found (backwardRules toValue scale modify slope Q Z L dO delta rounds rows cols 0)
        (fun i => .keys (shard K V (cols i)))
        (fun i => ⟨(rows i).map fun _ => Vec.zero, ⟨[], []⟩⟩) t i := by
  have keys : ∀ (i j : Fin n) (dQ : Fin q_len → Vec R d) (sums : KeySums R d d_v),
      takeParcelMet meet (takeParcel toValue scale modify slope Q Z L dO delta rows cols) i j
          ⟨(rows i).map dQ, sums⟩ (.keys (shard K V (cols j)))
        = takeParcel toValue scale modify slope Q Z L dO delta rows cols i j
          ⟨(rows i).map dQ, sums⟩ (.keys (shard K V (cols j))) := fun i j dQ sums => by
    rw [takeParcelMet]
    split
    · rfl
    · next h => rw [takeParcel_unseen (unmet i j (Bool.eq_false_iff.mpr h))]
  intro t
  induction t with
  | zero =>
    intro i
    rw [found, found, ht, keys]
    rfl
  | succ t ih =>
    intro i
    obtain ⟨dQ, sums, e⟩ := found_queries (toValue := toValue) (scale := scale) (modify := modify)
      (slope := slope) (Q := Q) (K := K) (V := V) (Z := Z) (L := L) (dO := dO) (delta := delta)
      (rows := rows) (cols := cols) (rounds := rounds) (capacity := 0) t i
    rw [found, found, ih, ih, ht, e, keys, hg]
    rfl

/-- **ring-net-backward-skips**: under the same assumptions, with every query on one device and the
log-sum-exps, the backward pass of devices that leave out the same rounds and shards, which get
zeros, ends after at most these many events, and where no event can happen, each device has the
gradients of the backward pass of the whole. -/
theorem ring_net_backward_skips {most : Nat} {alignment : Alignment} {left right : Option Nat}
    {documents : Option (List Nat)}
    (hidden : ∀ q k s, Mask.inDocuments alignment left right documents q k = false →
      modify q k s = none)
    {rounds : Nat} {rules : RingRules n 3 (Parcel S R d d_v) (BackwardState R d d_v)}
    (dLse : Vec R q_len) (hs : rules.sender = backwardSender rounds)
    (ht : rules.take = takeParcelMet (shardsMeet most alignment left right documents rows cols)
      (takeParcel toValue scale modify slope Q Z L dO
        (rowDelta (attentionDropout scale modify Q K V Z) dO dLse) rows cols))
    (hg : rules.give = fun state => .sums state.sums) (hn : 0 < n)
    (hcols : ((List.finRange n).flatMap cols).Perm (List.finRange kv_len))
    (hrows : ((List.finRange n).flatMap rows).Perm (List.finRange q_len))
    (hr : rounds = neededRounds (shardsMeet most alignment left right documents rows cols))
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale modify Q K i)))
    {spare : Fin n → Vector (Parcel S R d d_v) 4} {events : List (RingEvent n 3)}
    {net : RingNet n 5 3 (Parcel S R d d_v) (BackwardState R d d_v)}
    (run : (backwardStart (backwardProgram rounds) K V rows cols spare).run rules events
      = some net) :
    let g := vjpDropout scale modify slope Q K V Z toValue dO dLse
    events.length ≤ n * (15 * rounds - 7)
      ∧ ((∀ event, net.after rules event = none) →
        net.gradients = (List.finRange n).map fun i =>
          ((rows i).map fun q => g.dQ[q],
            .sums ⟨(cols i).map fun j => g.dK[j], (cols i).map fun j => g.dV[j]⟩)) := by
  have pos : 0 < rounds := hr ▸ neededWithin_pos n hn
  have le : rounds ≤ n := hr ▸ neededWithin_le n
  refine backward_of_found dLse hs hg ?_ pos le hcols hrows (fun i t h₁ h₂ => ?_) hL run
  · exact found_takeParcelMet ht hg fun _ _ h => unseen hidden h
  · exact unseen hidden (unmet_after n t (hr ▸ h₁) h₂ i)

end Attention.Proof
