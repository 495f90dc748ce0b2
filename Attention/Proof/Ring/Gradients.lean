module

public import Attention.Algebra.SumExchange
public import Attention.Proof.Backward.Tiles
public import Attention.Proof.Ring.Backward
public import Attention.Proof.Ring.Sources

public section

/-! # Devices that run by themselves compute the gradients -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v w

/-! ## Sums over what a device meets -/

section Sums

variable {R : Type v} [OrderedField R] {m : Nat}

private theorem sumOver_mapped {γ : Type} {δ : Type w} (f : δ → Vec R m) (g : γ → δ) (xs : List γ) :
    Vec.sumOver f (xs.map g) = Vec.sumOver (fun x => f (g x)) xs :=
  Vector.ext fun c hc => by simp only [Vec.getElem_sumOver, sumOver_map]

private theorem add_sumOver {γ : Type} (f : γ → Vec R m) (xs ys : List γ) :
    Vec.add (Vec.sumOver f xs) (Vec.sumOver f ys) = Vec.sumOver f (xs ++ ys) :=
  Vector.ext fun c hc => by simp only [Vec.getElem_add, Vec.getElem_sumOver, sumOver_append]

private theorem smul_sumOver {γ : Type} (a : R) (f : γ → R) (x : γ → Vec R m) (xs : List γ) :
    Vec.sumOver (fun y => Vec.smul (a * f y) (x y)) xs
      = Vec.smul a (Vec.sumOver (fun y => Vec.smul (f y) (x y)) xs) :=
  Vector.ext fun c hc => by
    simp only [Vec.getElem_sumOver, Vec.getElem_smul, ← sumOver_mul_left, Semiring.mul_assoc]

/-- The keys met in the first rounds are all that count, if the terms of the others are 0. -/
private theorem sumOver_met {γ : Type} {n rounds : Nat} (hn : rounds ≤ n) (f : γ → Vec R m)
    (parts : Nat → List γ) {all : List γ} (h : ((List.range n).flatMap parts).Perm all)
    (zero : ∀ t, rounds ≤ t → t < n → ∀ x ∈ parts t, f x = Vec.zero) :
    Vec.sumOver f ((List.range rounds).flatMap parts) = Vec.sumOver f all := by
  have split : List.range n = List.range rounds ++ List.range' rounds (n - rounds) := by
    have := List.range'_append_1 (s := 0) (m := rounds) (n := n - rounds)
    rw [Nat.zero_add, Nat.add_sub_cancel' hn] at this
    rw [List.range_eq_range', List.range_eq_range', this]
  rw [split, List.flatMap_append] at h
  refine Vector.ext fun c hc => ?_
  rw [Vec.getElem_sumOver, Vec.getElem_sumOver, ← sumOver_perm _ h, sumOver_append,
    sumOver_eq_zero (xs := (List.range' rounds (n - rounds)).flatMap parts) fun x hx => ?_,
    Semiring.add_zero]
  obtain ⟨t, ht, hx⟩ := List.mem_flatMap.mp hx
  rw [List.mem_range'_1] at ht
  rw [zero t ht.1 (by omega) x hx, Vec.getElem_zero]

end Sums

/-! ## The gradients of held keys -/

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {n q_len kv_len d d_v : Nat} {toValue : S → R} {scale : S}
variable {modify : ScoreMod S q_len kv_len} {slope : ScoreSlope S R q_len kv_len}
variable {Q : Matrix S q_len d} {K : Matrix S kv_len d} {V : Matrix R kv_len d_v}
variable {Z : WeightFactor R q_len kv_len} {L : Vector (Option S) q_len} {dO : Matrix R q_len d_v}
variable {delta : Vec R q_len}
variable {rows : Fin n → List (Fin q_len)} {cols : Fin n → List (Fin kv_len)}

variable (toValue scale modify slope Q K V Z L dO delta) in
/-- The term of a pair in the gradient by its query. -/
private def queryTerm (q : Fin q_len) (j : Fin kv_len) : Vec R d :=
  Vec.smul (toValue scale * rawGradient scale modify slope Q K V Z L dO delta q j)
    (Vec.map toValue K[j])

variable (toValue scale modify slope Q K V Z L dO delta) in
/-- The term of a pair in the gradient by its key. -/
private def keyTerm (j : Fin kv_len) (q : Fin q_len) : Vec R d :=
  Vec.smul (toValue scale * rawGradient scale modify slope Q K V Z L dO delta q j)
    (Vec.map toValue Q[q])

variable (scale modify Q K Z L dO) in
/-- The term of a pair in the gradient by its value. -/
private def valueTerm (j : Fin kv_len) (q : Fin q_len) : Vec R d_v :=
  Vec.smul (droppedAgain scale modify Q K Z L q j) dO[q]

private theorem takeParcel_keys (i s : Fin n) (dQ : Fin q_len → Vec R d) (sums : KeySums R d d_v) :
    takeParcel toValue scale modify slope Q Z L dO delta rows cols i s ⟨(rows i).map dQ, sums⟩
        (.keys (shard K V (cols s)))
      = ⟨(rows i).map fun q => Vec.add (dQ q) (Vec.sumOver
            (queryTerm toValue scale modify slope Q K V Z L dO delta q) (cols s)),
          (cols s).map fun j => Vec.sumOver
            (keyTerm toValue scale modify slope Q K V Z L dO delta j) (rows i),
          (cols s).map fun j => Vec.sumOver (valueTerm scale modify Q K Z L dO j) (rows i)⟩ := by
  have placed : (cols s).zip (shard K V (cols s)) = (cols s).map fun j => (j, K[j], V[j]) := by
    rw [shard, List.zip, List.zipWith_map_right, List.zipWith_self]
  simp only [takeParcel, placed, List.map_map, sumOver_mapped, List.zipWith_map_right,
    List.zipWith_self]
  rfl

private theorem found_eq {capacity rounds : Nat} : ∀ (t : Nat) (i : Fin n),
    found (backwardRules toValue scale modify slope Q Z L dO delta rounds rows cols capacity)
        (fun i => .keys (shard K V (cols i))) (fun i => ⟨(rows i).map fun _ => Vec.zero, ⟨[], []⟩⟩)
        t i
      = ⟨(rows i).map fun q => Vec.sumOver
            (queryTerm toValue scale modify slope Q K V Z L dO delta q)
            ((List.range (t + 1)).flatMap fun u => cols (source i u)),
          (cols (source i t)).map fun j => Vec.sumOver
            (keyTerm toValue scale modify slope Q K V Z L dO delta j)
            ((List.range (t + 1)).flatMap fun u => rows (source i u)),
          (cols (source i t)).map fun j => Vec.sumOver (valueTerm scale modify Q K Z L dO j)
            ((List.range (t + 1)).flatMap fun u => rows (source i u))⟩
  | 0, i => by
    have zero_add : ∀ x : Vec R d, Vec.add Vec.zero x = x := fun x =>
      Vector.ext fun c hc => by rw [Vec.getElem_add, Vec.getElem_zero, AddCommMonoid.zero_add]
    simp only [found, backwardRules, takeParcel_keys, zero_add]
    simp [source]
  | t + 1, i => by
    have range : ∀ {γ : Type} (f : Nat → List γ), (List.range (t + 1 + 1)).flatMap f
        = f 0 ++ (List.range (t + 1)).flatMap fun u => f (u + 1) := fun f => by
      rw [List.range_succ_eq_map, List.flatMap_cons, List.flatMap_map]
    have h₁ := found_eq (capacity := capacity) (rounds := rounds) t i
    have h₂ := found_eq (capacity := capacity) (rounds := rounds) t (before i)
    simp only [backwardRules] at h₁ h₂ ⊢
    rw [found, h₁, h₂]
    dsimp only
    rw [takeParcel_keys]
    simp only [takeParcel, source, List.zipWith_map_right, List.zipWith_map_left,
      List.zipWith_self, add_sumOver]
    rw [range fun u => rows (source i u)]
    simp only [source, List.range_succ (n := t + 1), List.flatMap_append, List.flatMap_cons,
      List.flatMap_nil, List.append_nil]

private theorem probability_none {q : Fin q_len} {j : Fin kv_len}
    (h : score scale modify Q K q j = none) :
    (probabilityAgain scale modify Q K L q j : R) = 0 := by
  rw [probabilityAgain, h, rescale_none_left]

private theorem queryTerm_none {q : Fin q_len} {j : Fin kv_len}
    (h : score scale modify Q K q j = none) :
    queryTerm toValue scale modify slope Q K V Z L dO delta q j = Vec.zero := by
  rw [queryTerm, rawGradient, scoreGradient, probability_none h, Semiring.zero_mul,
    Semiring.zero_mul, Semiring.mul_zero, zero_smul]

private theorem keyTerm_none {q : Fin q_len} {j : Fin kv_len}
    (h : score scale modify Q K q j = none) :
    keyTerm toValue scale modify slope Q K V Z L dO delta j q = Vec.zero := by
  rw [keyTerm, rawGradient, scoreGradient, probability_none h, Semiring.zero_mul,
    Semiring.zero_mul, Semiring.mul_zero, zero_smul]

private theorem valueTerm_none {q : Fin q_len} {j : Fin kv_len}
    (h : score scale modify Q K q j = none) :
    valueTerm scale modify Q K Z L dO j q = Vec.zero := by
  rw [valueTerm, droppedAgain, probability_none h, Semiring.zero_mul, zero_smul]

/-- A ring whose devices find what those of the backward pass find has the gradients, if no query
sees a key of a device that it does not meet. -/
theorem backward_of_found {rounds : Nat}
    {rules : RingRules n 3 (Parcel S R d d_v) (BackwardState R d d_v)} (dLse : Vec R q_len)
    (hs : rules.sender = backwardSender rounds) (hg : rules.give = fun state => .sums state.sums)
    (same : ∀ t i, found rules (fun i => .keys (shard K V (cols i)))
        (fun i => ⟨(rows i).map fun _ => Vec.zero, ⟨[], []⟩⟩) t i
      = found (backwardRules toValue scale modify slope Q Z L dO
          (rowDelta (attentionDropout scale modify Q K V Z) dO dLse) rounds rows cols 0)
          (fun i => .keys (shard K V (cols i)))
          (fun i => ⟨(rows i).map fun _ => Vec.zero, ⟨[], []⟩⟩) t i)
    (hr : 0 < rounds) (hn : rounds ≤ n)
    (hcols : ((List.finRange n).flatMap cols).Perm (List.finRange kv_len))
    (hrows : ((List.finRange n).flatMap rows).Perm (List.finRange q_len))
    (skipped : ∀ i t, rounds ≤ t → t < n → ∀ q ∈ rows i, ∀ k ∈ cols (source i t),
      score scale modify Q K q k = none)
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
  intro g
  obtain ⟨hdQ, hdK, hdV⟩ := vjpDropout_sums toValue scale modify slope Q K V Z L dO dLse
    fun i j => probabilityAgain_eq (R := R) scale modify Q K (hL i) j
  obtain ⟨length, ends⟩ := ring_net_backward_consumes
    (held := fun i => .keys (shard K V (cols i))) hr
    (home := fun i => source i (rounds - 1)) (fun i => by rw [hs]; rfl) (fun i => by rw [hs]; rfl)
    (fun i => by rw [hs]; exact holder_source (rounds - 1) i)
    (fun i => by rw [hs]; exact source_holder i (rounds - 1))
    (fun h i => by subst h; rw [hs]; rfl) (fun i => rfl) run
  refine ⟨length, fun stuck => ?_⟩
  refine List.ext_getElem (by simp [RingNet.gradients]) fun i hi _ => ?_
  have hi : i < n := by simpa [RingNet.gradients] using hi
  obtain ⟨-, -, e₁, e₂⟩ := ends stuck ⟨i, hi⟩
  have around := fun (h : Fin n) => ((sources_perm h).flatMap_right rows).trans hrows
  have keys := fun (h : Fin n) => ((sources_perm h).flatMap_right cols).trans hcols
  simp only [List.flatMap_map] at around keys
  simp only [RingNet.gradients, List.getElem_map, Vector.getElem_toList, List.getElem_finRange]
  simp only [Fin.getElem_fin] at e₁ e₂
  simp only [Fin.getElem_fin, Fin.cast_mk, e₁, e₂, same, hs, hg, found_eq]
  have he : rounds - 1 + 1 = rounds := by omega
  rw [he]
  have last : backwardSender rounds 2 (⟨i, hi⟩ : Fin n) = holder ⟨i, hi⟩ (rounds - 1) := rfl
  rw [last]
  generalize hh : holder (⟨i, hi⟩ : Fin n) (rounds - 1) = h
  have hsh : source h (rounds - 1) = ⟨i, hi⟩ := by rw [← hh, source_holder]
  have unmet : ∀ t, rounds ≤ t → t < n → ∀ q ∈ rows (source h t), ∀ j ∈ cols ⟨i, hi⟩,
      score scale modify Q K q j = none := fun t h₁ h₂ q hq j hj => by
    refine skipped (source h t) (rounds - 1 + n - t) (by omega) (by omega) q hq j ?_
    have : t + (rounds - 1 + n - t) = n + (rounds - 1) := by omega
    rw [source_add, this, ← source_add, source_around, hsh]
    exact hj
  refine Prod.ext ?_ ?_
  · refine List.map_congr_left fun q hq => ?_
    dsimp only
    rw [sumOver_met hn _ (fun u => cols (source ⟨i, hi⟩ u)) (keys _)
      fun t h₁ h₂ k hk => queryTerm_none (skipped _ t h₁ h₂ q hq k hk)]
    simp only [queryTerm, smul_sumOver]
    simp only [g, ← hdQ, Vec.getElem_ofFn, Fin.getElem_fin]
  · dsimp only
    simp only [hsh]
    congr 2
    · refine List.map_congr_left fun j hj => ?_
      rw [sumOver_met hn _ (fun u => rows (source h u)) (around h)
        fun t h₁ h₂ q hq => keyTerm_none (unmet t h₁ h₂ q hq j hj)]
      simp only [keyTerm, smul_sumOver]
      simp only [g, ← hdK, Vec.getElem_ofFn, Fin.getElem_fin]
    · refine List.map_congr_left fun j hj => ?_
      rw [sumOver_met hn _ (fun u => rows (source h u)) (around h)
        fun t h₁ h₂ q hq => valueTerm_none (unmet t h₁ h₂ q hq j hj)]
      simp only [valueTerm]
      simp only [g, ← hdV, Vec.getElem_ofFn, Fin.getElem_fin]

private theorem sumOver_zero {γ : Type} {m : Nat} {f : γ → Vec R m} {xs : List γ}
    (h : ∀ x ∈ xs, f x = Vec.zero) : Vec.sumOver f xs = Vec.zero :=
  Vector.ext fun c hc => by
    rw [Vec.getElem_sumOver, Vec.getElem_zero, sumOver_eq_zero fun x hx => ?_]
    rw [h x hx, Vec.getElem_zero]

/-- Keys that no query of a device sees leave its gradients as they are, and get zeros. -/
theorem takeParcel_unseen {i s : Fin n} {dQ : Fin q_len → Vec R d} {sums : KeySums R d d_v}
    (h : ∀ q ∈ rows i, ∀ k ∈ cols s, score scale modify Q K q k = none) :
    takeParcel toValue scale modify slope Q Z L dO delta rows cols i s ⟨(rows i).map dQ, sums⟩
        (.keys (shard K V (cols s)))
      = ⟨(rows i).map dQ, (shard K V (cols s)).map fun _ => Vec.zero,
          (shard K V (cols s)).map fun _ => Vec.zero⟩ := by
  have add_zero : ∀ x : Vec R d, Vec.add x Vec.zero = x := fun x =>
    Vector.ext fun c hc => by rw [Vec.getElem_add, Vec.getElem_zero, Semiring.add_zero]
  have zeros : ∀ {m : Nat} (f : Fin kv_len → Vec R m), (∀ k ∈ cols s, f k = Vec.zero) →
      (cols s).map f = (shard K V (cols s)).map fun _ => Vec.zero := fun f hf => by
    rw [shard, List.map_map]
    exact List.map_congr_left hf
  rw [takeParcel_keys]
  congr 1
  · refine List.map_congr_left fun q hq => ?_
    rw [sumOver_zero fun k hk => queryTerm_none (h q hq k hk), add_zero]
  · congr 1
    · exact zeros _ fun k hk => sumOver_zero fun q hq => keyTerm_none (h q hq k hk)
    · exact zeros _ fun k hk => sumOver_zero fun q hq => valueTerm_none (h q hq k hk)

/-- The gradients by its queries that a device of the backward pass has found, one for each. -/
theorem found_queries {rounds capacity : Nat} (t : Nat) (i : Fin n) :
    ∃ (dQ : Fin q_len → Vec R d) (sums : KeySums R d d_v),
      found (backwardRules toValue scale modify slope Q Z L dO delta rounds rows cols capacity)
        (fun i => .keys (shard K V (cols i))) (fun i => ⟨(rows i).map fun _ => Vec.zero, ⟨[], []⟩⟩)
        t i = ⟨(rows i).map dQ, sums⟩ :=
  ⟨_, _, found_eq t i⟩

/-- **ring-net-backward**: if every key and every query is on exactly one device, no query sees a
key of a device that it does not meet in these rounds, and the devices have the log-sum-exps of
their queries, then every run of the backward pass ends, after at most these many events, and where
no event can happen, each device has the gradients by its queries, and home have come to it the
gradients by its keys and values, summed over the queries of all: those of the backward pass of the
whole. -/
theorem ring_net_backward {rounds : Nat}
    {rules : RingRules n 3 (Parcel S R d d_v) (BackwardState R d d_v)} (dLse : Vec R q_len)
    (hs : rules.sender = backwardSender rounds)
    (ht : rules.take = takeParcel toValue scale modify slope Q Z L dO
      (rowDelta (attentionDropout scale modify Q K V Z) dO dLse) rows cols)
    (hg : rules.give = fun state => .sums state.sums) (hr : 0 < rounds) (hn : rounds ≤ n)
    (hcols : ((List.finRange n).flatMap cols).Perm (List.finRange kv_len))
    (hrows : ((List.finRange n).flatMap rows).Perm (List.finRange q_len))
    (skipped : ∀ i t, rounds ≤ t → t < n → ∀ q ∈ rows i, ∀ k ∈ cols (source i t),
      score scale modify Q K q k = none)
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
  refine backward_of_found dLse hs hg (fun t i => ?_) hr hn hcols hrows skipped hL run
  exact found_congr (by rw [ht]; rfl) (by rw [hg]; rfl) t i

end Attention.Proof
