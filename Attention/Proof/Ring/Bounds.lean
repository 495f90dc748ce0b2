module

public import Attention.Spec.ShardBounds

public section

/-! # Shards that do not see each other, by their bounds -/

namespace Attention.Proof

open Spec

/-! ## Runs -/

private theorem mem_places {run : Stretch} {p : Nat} :
    p ∈ run.places ↔ ∃ k, k < run.size ∧ run.first + run.step * k = p := by
  simp [Stretch.places]

private theorem places_stretch (first size : Nat) :
    Stretch.places ⟨first, size + 1, 1⟩ = first :: Stretch.places ⟨first + 1, size, 1⟩ := by
  simp only [Stretch.places, List.range_succ_eq_map, List.map_cons, List.map_map, Nat.mul_zero,
    Nat.add_zero]
  congr 1
  exact List.map_congr_left fun k _ => by simp; omega

private theorem stretches_step (places : List Nat) : ∀ run ∈ stretches places, run.step = 1 := by
  induction places with
  | nil => simp [stretches]
  | cons place places ih =>
    rw [stretches]
    cases h : stretches places with
    | nil => simp
    | cons run runs =>
      rw [h] at ih
      have := ih run (by simp)
      dsimp only
      split <;> grind

/-- The stretches of a shard have its places, in their order. -/
private theorem flatMap_stretches (places : List Nat) :
    (stretches places).flatMap Stretch.places = places := by
  induction places with
  | nil => rfl
  | cons place places ih =>
    have one := stretches_step places
    rw [stretches]
    cases h : stretches places with
    | nil =>
      rw [h] at ih
      rw [← ih]
      simp [Stretch.places]
    | cons run runs =>
      rw [h] at ih one
      have step := one run (by simp)
      obtain ⟨first, size, step'⟩ := run
      cases step
      dsimp only
      rw [← ih]
      split
      · next h => rw [List.flatMap_cons, places_stretch, ← h, List.cons_append, List.flatMap_cons]
      · rw [List.flatMap_cons]
        simp [Stretch.places]

/-- Runs of step 1, or one of another. -/
private def OfOneStep (runs : List Stretch) : Prop :=
  (∀ run ∈ runs, run.step = 1) ∨ ∃ run, runs = [run] ∧ 1 < run.step

private theorem runsOf_some {most : Nat} {places : List Nat} {runs : List Stretch}
    (h : runsOf most places = some runs) :
    runs.flatMap Stretch.places = places ∧ OfOneStep runs := by
  simp only [runsOf] at h
  split at h
  · next hr =>
    cases h
    refine ⟨?_, .inr ⟨_, rfl, hr.1⟩⟩
    rw [List.flatMap_cons, List.flatMap_nil, List.append_nil]
    exact hr.2
  · split at h <;> cases h
    exact ⟨flatMap_stretches places, .inl (stretches_step places)⟩

private theorem size_le {runs : List Stretch} {run : Stretch} (h : run ∈ runs) :
    run.size ≤ (runs.flatMap Stretch.places).length := by
  have : run.places.length = run.size := by simp [Stretch.places]
  rw [← this]
  exact (List.sublist_flatten_of_mem (List.mem_map_of_mem h)).length_le

private theorem foldl_step {runs : List Stretch} (h : ∀ run ∈ runs, run.step = 1) :
    runs.foldl (fun step run => max step run.step) 1 = 1 := by
  induction runs with
  | nil => rfl
  | cons run runs ih =>
    rw [List.foldl_cons, h run (by simp)]
    exact ih fun run hr => h run (by simp [hr])

private theorem stepOf_none {runs : List Stretch} (h : stepOf runs = none) :
    ∀ run ∈ runs, run.size ≤ 1 := fun run hr => by
  rw [stepOf] at h
  split at h
  · have := size_le hr
    omega
  · cases h

private theorem stepOf_some {runs : List Stretch} {step : Nat} (one : OfOneStep runs)
    (h : stepOf runs = some step) : 0 < step ∧ ∀ run ∈ runs, run.step = step := by
  rw [stepOf] at h
  split at h <;> cases h
  rcases one with one | ⟨run, rfl, hs⟩
  · rw [foldl_step one]
    exact ⟨Nat.one_pos, one⟩
  · simp only [List.foldl_cons, List.foldl_nil, List.mem_singleton, forall_eq]
    omega

/-- A run whose step is this, or does not matter. -/
private def HasStep (step : Nat) (run : Stretch) : Prop := run.step = step ∨ run.size ≤ 1

private theorem commonStep_some {queries keys : List Stretch} {step : Nat} (hq : OfOneStep queries)
    (hk : OfOneStep keys) (h : commonStep queries keys = some step) :
    0 < step ∧ (∀ run ∈ queries, HasStep step run) ∧ ∀ run ∈ keys, HasStep step run := by
  rw [commonStep] at h
  split at h
  · next h₁ h₂ =>
    cases h
    exact ⟨Nat.one_pos, fun r hr => .inr (stepOf_none h₁ r hr),
      fun r hr => .inr (stepOf_none h₂ r hr)⟩
  · next h₁ h₂ =>
    cases h
    have := stepOf_some hk h₂
    exact ⟨this.1, fun r hr => .inr (stepOf_none h₁ r hr), fun r hr => .inl (this.2 r hr)⟩
  · next h₁ h₂ =>
    cases h
    have := stepOf_some hq h₁
    exact ⟨this.1, fun r hr => .inl (this.2 r hr), fun r hr => .inr (stepOf_none h₂ r hr)⟩
  · next h₁ h₂ =>
    split at h <;> cases h
    next e =>
    have q := stepOf_some hq h₁
    have k := stepOf_some hk h₂
    exact ⟨q.1, fun r hr => .inl (q.2 r hr), fun r hr => .inl (e ▸ k.2 r hr)⟩

private theorem mem_of_hasStep {step : Nat} {run : Stretch} (h : HasStep step run) {p : Nat} :
    p ∈ run.places ↔ ∃ k, k < run.size ∧ run.first + step * k = p := by
  rw [mem_places]
  refine exists_congr fun k => and_congr_right fun hk => ?_
  rcases h with h | h
  · rw [h]
  · have : k = 0 := by omega
    rw [this, Nat.mul_zero, Nat.mul_zero]

private theorem mem_part {run : Stretch} (h : HasStep 1 run) {first stop p : Nat} :
    p ∈ (run.part first stop).places ↔ p ∈ run.places ∧ first ≤ p ∧ p < stop := by
  rw [mem_of_hasStep h, mem_places]
  simp only [Stretch.part, Nat.one_mul]
  constructor
  · rintro ⟨k, hk, rfl⟩
    exact ⟨⟨max run.first first + k - run.first, by omega, by omega⟩, by omega, by omega⟩
  · rintro ⟨⟨k, hk, rfl⟩, h₁, h₂⟩
    exact ⟨run.first + k - max run.first first, by omega, by omega⟩

/-! ## Two runs -/

/-- **shard-window**: under a window, query number i of a run sees key number j of another of the
same step if and only if j − i is between these bounds. -/
theorem seesPlace_iff {left right : Option Nat} {shift : Int} {step : Nat} (hs : 0 < step)
    {a b i j : Nat} :
    seesPlace left right shift none (a + step * i) (b + step * j) = true ↔
      (∀ x, leastApart left step (a + shift - b) = some x → x ≤ (j : Int) - i) ∧
        ∀ x, mostApart right step (a + shift - b) = some x → (j : Int) - i ≤ x := by
  have hs : (0 : Int) < step := by omega
  have e : ((j : Int) - i) * step = (step * j : Nat) - (step * i : Nat) := by
    rw [Int.sub_mul, Int.natCast_mul, Int.natCast_mul, Int.mul_comm, Int.mul_comm (i : Int)]
  have neg : ∀ x y : Int, -x ≤ y ↔ -y ≤ x := fun x y => by omega
  simp only [seesPlace, oneDocument, Bool.and_true, Bool.and_eq_true]
  refine and_congr ?_ ?_
  · cases left with
    | none => simp [leastApart]
    | some l =>
      simp only [leastApart, Option.all_some, decide_eq_true_eq, Option.some.injEq, forall_eq',
        neg _ ((j : Int) - i), Int.le_ediv_iff_mul_le hs, Int.neg_mul, e]
      omega
  · cases right with
    | none => simp [mostApart]
    | some r =>
      simp only [mostApart, Option.all_some, decide_eq_true_eq, Option.some.injEq, forall_eq',
        Int.le_ediv_iff_mul_le hs, e]
      omega

private theorem option_all {γ : Type} {x : Option γ} {p : γ → Bool} :
    x.all p = true ↔ ∀ y, x = some y → p y = true := by
  cases x <;> simp

/-- Two runs of one step see each other if and only if some place of one sees some of the other. -/
private theorem sees_iff {left right : Option Nat} {shift : Int} {step : Nat} (hs : 0 < step)
    {a b : Stretch} (ha : HasStep step a) (hb : HasStep step b) :
    a.sees left right shift step b = true ↔
      ∃ i ∈ a.places, ∃ j ∈ b.places, seesPlace left right shift none i j = true := by
  have pairs : (∃ i ∈ a.places, ∃ j ∈ b.places, seesPlace left right shift none i j = true) ↔
      ∃ i j : Nat, i < a.size ∧ j < b.size
        ∧ (∀ x, leastApart left step (a.first + shift - b.first) = some x → x ≤ (j : Int) - i)
        ∧ ∀ x, mostApart right step (a.first + shift - b.first) = some x → (j : Int) - i ≤ x := by
    simp only [mem_of_hasStep ha, mem_of_hasStep hb]
    constructor
    · rintro ⟨_, ⟨i, hi, rfl⟩, _, ⟨j, hj, rfl⟩, h⟩
      exact ⟨i, j, hi, hj, (seesPlace_iff hs).mp h⟩
    · rintro ⟨i, j, hi, hj, h⟩
      exact ⟨_, ⟨i, hi, rfl⟩, _, ⟨j, hj, rfl⟩, (seesPlace_iff hs).mpr h⟩
  rw [pairs]
  simp only [Stretch.sees, Bool.and_eq_true, decide_eq_true_eq, option_all]
  generalize leastApart left step _ = least
  generalize mostApart right step _ = most
  constructor
  · rintro ⟨⟨⟨h₁, h₂⟩, h₃⟩, h₄⟩
    obtain ⟨x, hx, hx', hl, hm⟩ : ∃ x : Int, 1 - (a.size : Int) ≤ x ∧ x ≤ b.size - 1
        ∧ (∀ y, least = some y → y ≤ x) ∧ ∀ y, most = some y → x ≤ y := by
      cases least with
      | none => exact ⟨1 - a.size, by omega, by omega, by simp, h₄⟩
      | some l =>
        have h₃ := h₃ l rfl
        refine ⟨max (1 - a.size) l, by omega, by omega, by simp; omega, fun y hy => ?_⟩
        have := h₄ y hy
        have := h₃.2 y hy
        omega
    refine ⟨(-x).toNat, x.toNat, by omega, by omega, fun y hy => ?_, fun y hy => ?_⟩
    · have := hl y hy
      omega
    · have := hm y hy
      omega
  · rintro ⟨i, j, hi, hj, hl, hm⟩
    refine ⟨⟨⟨by omega, by omega⟩, fun x hx => ⟨?_, fun y hy => ?_⟩⟩, fun y hy => ?_⟩
    · have := hl x hx
      omega
    · have := hl x hx
      have := hm y hy
      omega
    · have := hm y hy
      omega

/-! ## Two shards -/

private theorem runsSee_iff {left right : Option Nat} {shift : Int}
    {documents : Option (List Nat)} {step : Nat} (hs : 0 < step) {queries keys : List Stretch}
    (hq : ∀ run ∈ queries, HasStep step run) (hk : ∀ run ∈ keys, HasStep step run)
    (hd : documents = none ∨ step = 1) :
    runsSee left right shift documents step queries keys = true ↔
      ∃ i ∈ queries.flatMap Stretch.places, ∃ j ∈ keys.flatMap Stretch.places,
        seesPlace left right shift documents i j = true := by
  cases documents with
  | none =>
    simp only [runsSee, List.any_eq_true, List.mem_flatMap]
    constructor
    · rintro ⟨a, ha, b, hb, h⟩
      obtain ⟨i, hi, j, hj, h⟩ := (sees_iff hs (hq a ha) (hk b hb)).mp h
      exact ⟨i, ⟨a, ha, hi⟩, j, ⟨b, hb, hj⟩, h⟩
    · rintro ⟨i, ⟨a, ha, hi⟩, j, ⟨b, hb, hj⟩, h⟩
      exact ⟨a, ha, b, hb, (sees_iff hs (hq a ha) (hk b hb)).mpr ⟨i, hi, j, hj, h⟩⟩
  | some sums =>
    obtain rfl : step = 1 := by simpa using hd
    have split : ∀ i j, seesPlace left right shift (some sums) i j = true ↔
        ∃ x ∈ sums.zip sums.tail, (x.1 ≤ i ∧ i < x.2) ∧ (x.1 ≤ j ∧ j < x.2)
          ∧ seesPlace left right shift none i j = true := fun i j => by
      simp only [seesPlace, oneDocument, Bool.and_eq_true, Bool.and_true, List.any_eq_true,
        decide_eq_true_eq]
      grind
    have parts : ∀ x : Nat × Nat, ∀ a b : Stretch,
        (a.part x.1 x.2).sees left right shift 1 (b.part x.1 x.2) = true ↔
          ∃ i ∈ (a.part x.1 x.2).places, ∃ j ∈ (b.part x.1 x.2).places,
            seesPlace left right shift none i j = true := fun x a b =>
      sees_iff Nat.one_pos (.inl rfl) (.inl rfl)
    simp only [runsSee, List.any_eq_true, List.mem_flatMap, split, parts]
    constructor
    · rintro ⟨x, hx, a, ha, b, hb, i, hi, j, hj, h⟩
      rw [mem_part (hq a ha)] at hi
      rw [mem_part (hk b hb)] at hj
      exact ⟨i, ⟨a, ha, hi.1⟩, j, ⟨b, hb, hj.1⟩, x, hx, hi.2, hj.2, h⟩
    · rintro ⟨i, ⟨a, ha, hi⟩, j, ⟨b, hb, hj⟩, x, hx, h₁, h₂, h⟩
      exact ⟨x, hx, a, ha, b, hb, i, (mem_part (hq a ha)).mpr ⟨hi, h₁⟩, j,
        (mem_part (hk b hb)).mpr ⟨hj, h₂⟩, h⟩

/-- **shard-bounds**: two shards that are runs of one step, and of step 1 where there are several
documents, meet by their bounds if and only if some query of one sees some key of the other. -/
theorem meets_iff {most : Nat} {left right : Option Nat} {shift : Int}
    {documents : Option (List Nat)} {queries keys : List Nat} {ours theirs : List Stretch}
    {step : Nat}
    (hq : runsOf most queries = some ours) (hk : runsOf most keys = some theirs)
    (hs : commonStep ours theirs = some step) (hd : documents = none ∨ step = 1) :
    meets most left right shift documents queries keys = true ↔
      ∃ i ∈ queries, ∃ j ∈ keys, seesPlace left right shift documents i j = true := by
  have q := runsOf_some hq
  have k := runsOf_some hk
  obtain ⟨h, hq', hk'⟩ := commonStep_some q.2 k.2 hs
  have hd' : documents.all (fun _ => decide (step = 1)) = true := by
    rcases hd with rfl | rfl
    · rfl
    · cases documents <;> simp
  simp only [meets, hq, hk, hs, hd', if_true]
  rw [runsSee_iff h hq' hk' hd, q.1, k.1]

/-- **shard-skipped**: if two shards do not meet by their bounds, no query of one sees a key of the
other, whatever the places of both are. -/
theorem meets_eq_false {most : Nat} {left right : Option Nat} {shift : Int}
    {documents : Option (List Nat)} {queries keys : List Nat}
    (h : meets most left right shift documents queries keys = false) :
    ∀ i ∈ queries, ∀ j ∈ keys, seesPlace left right shift documents i j = false := by
  intro i hi j hj
  have both : (decide (0 < queries.length) && decide (0 < keys.length)) = true := by
    simp only [Bool.and_eq_true, decide_eq_true_eq]
    exact ⟨List.length_pos_of_mem hi, List.length_pos_of_mem hj⟩
  refine Bool.eq_false_iff.mpr fun seen => ?_
  cases hq : runsOf most queries with
  | none => simp [meets, hq, both] at h
  | some ours =>
    cases hk : runsOf most keys with
    | none => simp [meets, hq, hk, both] at h
    | some theirs =>
      cases hs : commonStep ours theirs with
      | none => simp [meets, hq, hk, hs, both] at h
      | some step =>
        by_cases hd : documents = none ∨ step = 1
        · have := (meets_iff (left := left) (right := right) (shift := shift) hq hk hs hd).mpr
            ⟨i, hi, j, hj, seen⟩
          rw [h] at this
          cases this
        · have hd' : documents.all (fun _ => decide (step = 1)) = false := by
            rw [not_or] at hd
            cases documents with
            | none => exact absurd rfl hd.1
            | some sums => simp [hd.2]
          simp [meets, hq, hk, hs, hd', both] at h

end Attention.Proof
