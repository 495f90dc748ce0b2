module

public import Attention.Algebra.CountPairs
public import Attention.Model.PebbleRuns

public section

/-! # Every play of the pebble game moves that many elements

A play is cut where it has moved M elements. Until the next cut it sees at most 2M elements that it
did not compute since: M that lay in fast memory, and M that it loaded. A score that is formed there
is made of such sums of its own, of which there are at most 2M, or else of a whole query and a whole
key: and of a rows and b rows with (a + b) · d ≤ 2M there are at most (M/d)² pairs.
Source: Hong & Kung 1981, for the cuts. -/

namespace Attention.Claims

open Model.Pebble

universe u

variable {q_len kv_len d : Nat} {α : Type u} [DecidableEq α] {M : Nat}

/-! ## What is seen between two cuts -/

/-- The queries' components among some elements. -/
private def queries : List (Element q_len kv_len d α) → List (Fin q_len × Fin d)
  | [] => []
  | .query i c :: seen => (i, c) :: queries seen
  | _ :: seen => queries seen

/-- The keys' components among some elements. -/
private def keys : List (Element q_len kv_len d α) → List (Fin kv_len × Fin d)
  | [] => []
  | .key j c :: seen => (j, c) :: keys seen
  | _ :: seen => keys seen

/-- The pairs whose sums are among some elements. -/
private def sums : List (Element q_len kv_len d α) → List (Fin q_len × Fin kv_len)
  | [] => []
  | .sum i j _ :: seen => (i, j) :: sums seen
  | _ :: seen => sums seen

omit [DecidableEq α] in
private theorem length_seen (seen : List (Element q_len kv_len d α)) :
    (queries seen).length + (keys seen).length + (sums seen).length ≤ seen.length := by
  induction seen with
  | nil => simp [queries, keys, sums]
  | cons x seen ih => cases x <;> simp [queries, keys, sums] <;> omega

omit [DecidableEq α] in
private theorem mem_queries {seen : List (Element q_len kv_len d α)} {i : Fin q_len} {c : Fin d}
    (h : .query i c ∈ seen) : (i, c) ∈ queries seen := by
  induction seen with
  | nil => simp at h
  | cons x seen ih => cases x <;> simp [queries] at h ⊢ <;> grind

omit [DecidableEq α] in
private theorem mem_keys {seen : List (Element q_len kv_len d α)} {j : Fin kv_len} {c : Fin d}
    (h : .key j c ∈ seen) : (j, c) ∈ keys seen := by
  induction seen with
  | nil => simp at h
  | cons x seen ih => cases x <;> simp [keys] at h ⊢ <;> grind

omit [DecidableEq α] in
private theorem mem_sums {seen : List (Element q_len kv_len d α)} {i : Fin q_len} {j : Fin kv_len}
    {products : Sum d} (h : .sum i j products ∈ seen) : (i, j) ∈ sums seen := by
  induction seen with
  | nil => simp at h
  | cons x seen ih => cases x <;> simp [sums] at h ⊢ <;> grind

/-- A sum that adds up is made of a sum that was seen, or of products whose factors were. -/
private theorem parts_of_addsUp {seen : List (Element q_len kv_len d α)} {i : Fin q_len}
    {j : Fin kv_len} {products : Sum d} (h : addsUp seen i j products) :
    (i, j) ∈ sums seen ∨ ∀ c, products.has c → (i, c) ∈ queries seen ∧ (j, c) ∈ keys seen := by
  induction products with
  | product c =>
    simp only [addsUp, Bool.or_eq_true, Bool.and_eq_true, decide_eq_true_eq] at h
    rcases h with h | ⟨hq, hk⟩
    · exact .inl (mem_sums h)
    · exact .inr fun c' hc => by
        simp only [Sum.has, decide_eq_true_eq] at hc
        exact hc ▸ ⟨mem_queries hq, mem_keys hk⟩
  | add left right ihl ihr =>
    simp only [addsUp, Bool.or_eq_true, Bool.and_eq_true, decide_eq_true_eq] at h
    rcases h with h | ⟨hl, hr⟩
    · exact .inl (mem_sums h)
    · rcases ihl hl with hl | hl
      · exact .inl hl
      rcases ihr hr with hr | hr
      · exact .inl hr
      exact .inr fun c hc => by
        simp only [Sum.has, Bool.or_eq_true] at hc
        exact hc.elim (hl c) (hr c)

private theorem mul_le_sq {x y : Nat} (h : x + y ≤ 2 * M) : x * y ≤ M * M := by
  have key : ∀ {x y : Nat}, x ≤ y → x + y ≤ 2 * M → x * y ≤ M * M := by
    intro x y hxy h
    obtain ⟨k, rfl⟩ := Nat.le.dest hxy
    obtain ⟨m, rfl⟩ := Nat.le.dest (show x ≤ M by omega)
    have h₁ := Nat.mul_le_mul_left x (show k ≤ 2 * m by omega)
    have e : (x + m) * (x + m) = x * x + x * (2 * m) + m * m := by grind
    rw [e, Nat.mul_add]
    omega
  rcases Nat.le_total x y with hxy | hxy
  · exact key hxy h
  · rw [Nat.mul_comm]
    exact key hxy (by omega)

open Classical in
/-- The scores that a play forms. -/
private noncomputable def formed (M : Nat) (s : State q_len kv_len d α)
    (play : List (Move q_len kv_len d α)) : Nat :=
  countPairs fun i j => decide (Forms bySums M s play i j)

open Classical in
/-- Between two cuts at most (M/d)² + 2M scores are formed. -/
private theorem formed_le {s : State q_len kv_len d α} {play : List (Move q_len kv_len d α)}
    (hs : s.red.length ≤ M) (ht : transfers play ≤ M) :
    formed M s play * (d * d) ≤ (M + 2 * (d * d)) * M := by
  let seen := s.red ++ loaded play
  have hseen : seen.length ≤ 2 * M := by
    have := length_loaded play
    simp only [seen, List.length_append]
    omega
  let whole := fun i => decide (∀ c, (i, c) ∈ queries seen)
  let whole' := fun j => decide (∀ c, (j, c) ∈ keys seen)
  have h₁ : formed M s play ≤ countPairs fun i j =>
      whole i && whole' j || decide ((i, j) ∈ sums seen) := by
    refine countPairs_mono fun i j hf => ?_
    obtain ⟨before, s', products, hb, hr, hc, hm⟩ := of_decide_eq_true hf
    have hfrom : From seen (.sum i j products) := from_of_run (s := s)
      (fun x hx => .inl (List.mem_append_left _ hx))
      (fun x hx => List.mem_append_right _ (loaded_of_prefix hb x hx)) hr _ hm
    have hp : (i, j) ∈ sums seen
        ∨ ∀ c, products.has c → (i, c) ∈ queries seen ∧ (j, c) ∈ keys seen :=
      hfrom.elim (fun h => .inl (mem_sums h)) parts_of_addsUp
    rcases hp with hp | hp
    · simp [hp]
    · have hq : ∀ c, (i, c) ∈ queries seen := fun c => (hp c (hc c)).1
      have hk : ∀ c, (j, c) ∈ keys seen := fun c => (hp c (hc c)).2
      simp [whole, whole', hq, hk]
  have h₂ := countPairs_or (fun i j => whole i && whole' j) (fun i j => decide ((i, j) ∈ sums seen))
  have h₃ := countPairs_and whole whole'
  have h₄ := countPairs_mem_le (sums seen)
  have h₅ : (List.finRange q_len).countP whole * d ≤ (queries seen).length :=
    Nat.le_trans (countP_mul_le_countPairs fun i hi j => by
      exact decide_eq_true (of_decide_eq_true hi j)) (countPairs_mem_le (queries seen))
  have h₆ : (List.finRange kv_len).countP whole' * d ≤ (keys seen).length :=
    Nat.le_trans (countP_mul_le_countPairs fun i hi j => by
      exact decide_eq_true (of_decide_eq_true hi j)) (countPairs_mem_le (keys seen))
  have h₇ := length_seen seen
  generalize (List.finRange q_len).countP whole = a at *
  generalize (List.finRange kv_len).countP whole' = b at *
  have h₈ := mul_le_sq (M := M) (x := a * d) (y := b * d) (by omega)
  have h₉ : formed M s play ≤ a * b + 2 * M := by omega
  have h₁₀ := Nat.mul_le_mul_right (d * d) h₉
  have e₁ : (a * b + 2 * M) * (d * d) = a * d * (b * d) + 2 * M * (d * d) := by grind
  have e₂ : (M + 2 * (d * d)) * M = M * M + 2 * M * (d * d) := by grind
  omega

/-! ## The cuts -/

omit [DecidableEq α] in
private theorem cut {play : List (Move q_len kv_len d α)} :
    ∀ {M : Nat}, M ≤ transfers play →
      ∃ before after, play = before ++ after ∧ transfers before = M := by
  induction play with
  | nil => exact fun h => ⟨[], [], rfl, by simp_all [transfers]⟩
  | cons move play ih =>
    intro M h
    match M with
    | 0 => exact ⟨[], _, rfl, rfl⟩
    | M + 1 =>
      have e := transfers_append [move] play
      rw [List.singleton_append] at e
      by_cases hm : transfers [move] = 0
      · obtain ⟨before, after, rfl, hb⟩ := ih (M := M + 1) (by omega)
        refine ⟨move :: before, after, rfl, ?_⟩
        have := transfers_append [move] before
        rw [List.singleton_append] at this
        omega
      · have h₁ : transfers [move] ≤ 1 := List.countP_le_length
        obtain ⟨before, after, rfl, hb⟩ := ih (M := M) (by omega)
        refine ⟨move :: before, after, rfl, ?_⟩
        have := transfers_append [move] before
        rw [List.singleton_append] at this
        omega

open Classical in
private theorem formed_append {s s₁ : State q_len kv_len d α}
    {before after : List (Move q_len kv_len d α)} (h : run bySums M s before = some s₁) :
    formed M s (before ++ after) ≤ formed M s before + formed M s₁ after := by
  refine Nat.le_trans (countPairs_mono fun i j hf => ?_) (countPairs_or _ _)
  obtain ⟨first, s', products, hp, hr, hc, hm⟩ := of_decide_eq_true hf
  simp only [Bool.or_eq_true, decide_eq_true_eq]
  rcases Nat.le_total first.length before.length with hl | hl
  · have hp := List.prefix_of_prefix_length_le hp (List.prefix_append before after) hl
    exact .inl ⟨first, s', products, hp, hr, hc, hm⟩
  · obtain ⟨rest, rfl⟩ := List.prefix_of_prefix_length_le (List.prefix_append before after) hp hl
    have hp := (List.prefix_append_right_inj before).mp hp
    rw [run_append, h] at hr
    exact .inr ⟨rest, s', products, hp, hr, hc, hm⟩

private theorem formed_run (hM : 0 < M) {s s' : State q_len kv_len d α}
    {play : List (Move q_len kv_len d α)} (hs : s.red.length ≤ M)
    (h : run bySums M s play = some s') :
    formed M s play * (d * d) ≤ (M + 2 * (d * d)) * (transfers play + M) := by
  by_cases ht : transfers play ≤ M
  · exact Nat.le_trans (formed_le hs ht) (Nat.mul_le_mul_left _ (by omega))
  · obtain ⟨before, after, rfl, hb⟩ := cut (show M ≤ transfers play by omega)
    have e := transfers_append before after
    obtain ⟨s₁, h₁, h₂⟩ := Option.bind_eq_some_iff.mp (run_append before after s ▸ h)
    have h₃ := formed_run hM (length_of_run hs h₁) h₂
    have h₄ := formed_le hs (Nat.le_of_eq hb)
    have h₅ := Nat.mul_le_mul_right (d * d) (formed_append (after := after) h₁)
    rw [Nat.add_mul] at h₅
    rw [e, hb, Nat.add_assoc, Nat.mul_add]
    omega
termination_by transfers play
decreasing_by
  subst_vars
  rw [transfers_append]
  omega

/-! ## Each input is loaded -/

/-- A play that forms each score loads each component of each query and of each key. -/
theorem inputs_le_transfers (hq : 0 < q_len) (hk : 0 < kv_len)
    {play : List (Move q_len kv_len d α)} (forms : ∀ i j, Forms bySums M start play i j) :
    (q_len + kv_len) * d ≤ transfers play := by
  let seen := (loaded play).filter Element.isInput
  have factors : ∀ i j c, (i, c) ∈ queries seen ∧ (j, c) ∈ keys seen := by
    intro i j c
    obtain ⟨before, s', products, hp, hr, hc, hm⟩ := forms i j
    have hfrom : From seen (.sum i j products) := from_inputs_of_run (by simp [start])
      (fun x hx hi => List.mem_filter.mpr ⟨loaded_of_prefix hp x hx, hi⟩) hr _ hm
    have hs : ∀ products, .sum i j products ∉ seen := by simp [seen, Element.isInput]
    have none : (i, j) ∉ sums seen := by
      generalize seen = seen at hs
      induction seen with
      | nil => simp [sums]
      | cons x seen ih => cases x <;> simp [sums] at hs ⊢ <;> grind
    rcases hfrom with h | h
    · exact absurd h (hs products)
    · exact (parts_of_addsUp h).elim (absurd · none) (· c (hc c))
  have h₁ := countPairs_mem_le (queries seen)
  have h₂ := countPairs_mem_le (keys seen)
  simp only [fun i c => (factors i ⟨0, hk⟩ c).1, fun j c => (factors ⟨0, hq⟩ j c).2, decide_true,
    countPairs_true] at h₁ h₂
  have h₃ := length_seen seen
  have h₄ : seen.length ≤ (loaded play).length := List.length_filter_le _ _
  have h₅ := length_loaded play
  rw [Nat.add_mul]
  omega

/-! ## The bounds -/

open Classical in
/-- Whatever the sizes: a play with room for `M` elements that forms each score as a sum of its
products moves at least q_len·kv_len·d² / (M + 2d²) − M elements. -/
theorem lower_bound_any_size {play : List (Move q_len kv_len d α)}
    (legal : (run bySums M start play).isSome) (forms : ∀ i j, Forms bySums M start play i j) :
    q_len * kv_len * (d * d) ≤ (M + 2 * (d * d)) * (transfers play + M) := by
  obtain ⟨s, h⟩ := Option.isSome_iff_exists.mp legal
  have all : formed M start play = q_len * kv_len := by
    simp only [formed, forms, decide_true, countPairs_true]
  by_cases hn : q_len * kv_len = 0
  · simp [hn]
  have hq : 0 < q_len := Nat.pos_of_ne_zero fun e => hn (by simp [e])
  have hk : 0 < kv_len := Nat.pos_of_ne_zero fun e => hn (by simp [e])
  have hM : 0 < M := by
    obtain ⟨_, s', _, _, hr, _, hm⟩ := forms ⟨0, hq⟩ ⟨0, hk⟩
    have := length_of_run (M := M) (by simp [start]) hr
    have := List.length_pos_of_mem hm
    omega
  rw [← all]
  exact formed_run hM (by simp [start]) h

/-- **io-lower-bound**: let fast memory have room for `M` elements, with d² ≤ M. A play of the
pebble game that forms each score as a sum of its d products, in any order and with any brackets,
computing again what it likes, moves at least q_len·kv_len·d² / 6M elements. -/
theorem io_lower_bound {play : List (Move q_len kv_len d α)} (hd : d * d ≤ M)
    (legal : (run bySums M start play).isSome) (forms : ∀ i j, Forms bySums M start play i j) :
    q_len * kv_len * (d * d) ≤ 6 * M * transfers play := by
  have h₁ := lower_bound_any_size legal forms
  by_cases hn : q_len * kv_len = 0
  · simp [hn]
  have hq : 0 < q_len := Nat.pos_of_ne_zero fun e => hn (by simp [e])
  have hk : 0 < kv_len := Nat.pos_of_ne_zero fun e => hn (by simp [e])
  have h₂ := inputs_le_transfers hq hk forms
  generalize transfers play = t at *
  have e : q_len * kv_len * (d * d) = q_len * d * (kv_len * d) := by grind
  rw [Nat.add_mul] at h₂
  rw [e] at h₁ ⊢
  generalize q_len * d = x at *
  generalize kv_len * d = y at *
  by_cases hx : x ≤ 6 * M
  · exact Nat.mul_le_mul hx (by omega)
  by_cases hy : y ≤ 6 * M
  · rw [Nat.mul_comm]
    exact Nat.mul_le_mul hy (by omega)
  · have h₃ := Nat.mul_le_mul (show 6 * M ≤ x by omega) (show 6 * M ≤ y by omega)
    have h₄ := Nat.mul_le_mul_right (t + M) (show M + 2 * (d * d) ≤ 3 * M by omega)
    have e₁ : 3 * M * (t + M) = 3 * (M * t) + 3 * (M * M) := by grind
    have e₂ : 6 * M * (6 * M) = 36 * (M * M) := by grind
    have e₃ : 6 * M * t = 6 * (M * t) := by grind
    omega

end Attention.Claims
