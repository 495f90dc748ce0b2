module

public import Attention.Spec.Paged

public section

/-! # What is written to pages is read back -/

namespace Attention.Proof

open Spec

universe u w

variable {α : Type w} {page_size num_pages : Nat}

/-! ## What is read from pages -/

private theorem getElem?_pages (pool : Pool α page_size num_pages) :
    ∀ (table : List (Fin num_pages)) (t : Nat),
      (table.flatMap fun p => pool[p].toList)[t]? = pool.read table t
  | [], t => by simp [Pool.read]
  | p :: table, t => by
    have ih := getElem?_pages pool table (t - page_size)
    rw [List.flatMap_cons, List.getElem?_append, Vector.length_toList, ih]
    by_cases ht : t < page_size
    · rw [if_pos ht]
      simp [Pool.read, Nat.div_eq_of_lt ht, Nat.mod_eq_of_lt ht]
    · rw [if_neg ht]
      rcases Nat.eq_zero_or_pos page_size with rfl | h₀
      · simp [Pool.read]
      · have h₁ : t / page_size = (t - page_size) / page_size + 1 :=
          Nat.div_eq_sub_div h₀ (by omega)
        simp [Pool.read, h₁, Nat.mod_eq_sub_mod (Nat.le_of_not_lt ht)]

private theorem filterMap_range_getElem? (xs : List α) :
    ∀ n, (List.range n).filterMap (xs[·]?) = xs.take n
  | 0 => rfl
  | n + 1 => by
    rw [List.range_succ, List.filterMap_append, filterMap_range_getElem? xs n, List.take_add_one]
    cases h : xs[n]? <;> simp [h]

/-- The tokens of a sequence are the slots of its pages in order, cut at its length. -/
theorem gather_eq_take (pool : Pool α page_size num_pages) (table : List (Fin num_pages))
    (len : Nat) : pool.gather table len = (table.flatMap fun p => pool[p].toList).take len := by
  rw [Pool.gather, ← filterMap_range_getElem?]
  simp only [getElem?_pages]

/-! ## What is written to pages -/

private theorem nodup_getElem?_eq {table : List (Fin num_pages)} (hn : table.Nodup) {i j : Nat}
    {p : Fin num_pages} (hi : table[i]? = some p) (hj : table[j]? = some p) : i = j := by
  obtain ⟨hi', hi⟩ := List.getElem?_eq_some_iff.mp hi
  obtain ⟨hj', hj⟩ := List.getElem?_eq_some_iff.mp hj
  have h := List.pairwise_iff_getElem.mp hn
  rcases Nat.lt_trichotomy i j with hij | hij | hij
  · exact absurd (hi.trans hj.symm) (h i j hi' hj' hij)
  · exact hij
  · exact absurd (hj.trans hi.symm) (h j i hj' hi' hij)

private theorem toList_write {pool : Pool α page_size num_pages} {table : List (Fin num_pages)}
    {t : Nat} {x : α} {p : Fin num_pages} (hp : table[t / page_size]? = some p)
    (p' : Fin num_pages) :
    (pool.write table t x)[p'].toList
      = if p' = p then pool[p'].toList.set (t % page_size) x else pool[p'].toList := by
  simp only [Pool.write, hp, Fin.getElem_fin, Vec.getElem_ofFn]
  split
  · refine List.ext_getElem (by simp) fun i h₁ h₂ => ?_
    simp [Vec.ofFn, List.getElem_set, eq_comm]
  · rfl

/-- A token that is written is read back, and no other token of the sequence changes, as long as no
page is twice in the table. -/
theorem read_write (pool : Pool α page_size num_pages) {table : List (Fin num_pages)}
    (hn : table.Nodup) {t : Nat} (ht : t < table.length * page_size) (x : α) (s : Nat) :
    (pool.write table t x).read table s = if s = t then some x else pool.read table s := by
  have h₀ : 0 < page_size := Nat.pos_of_ne_zero fun h => by simp [h] at ht
  have hlt : t / page_size < table.length := Nat.div_lt_of_lt_mul (by rwa [Nat.mul_comm])
  have hp := List.getElem?_eq_getElem hlt
  simp only [Pool.read]
  cases hs : table[s / page_size]? with
  | none =>
    have : s ≠ t := by
      rintro rfl
      rw [hs] at hp
      cases hp
    simp [this]
  | some p' =>
    simp only [Option.bind_some, toList_write hp]
    by_cases hpp : p' = table[t / page_size]
    · rw [if_pos hpp, List.getElem?_set, Vector.length_toList]
      rw [← hpp] at hp
      have h₁ := nodup_getElem?_eq hn hs hp
      by_cases h₂ : t % page_size = s % page_size
      · have : s = t := by
          rw [← Nat.div_add_mod s page_size, h₁, ← h₂, Nat.div_add_mod]
        simp [this, Nat.mod_lt _ h₀]
      · have : s ≠ t := by rintro rfl; exact h₂ rfl
        simp [this, h₂]
    · have : s ≠ t := by
        rintro rfl
        rw [hs] at hp
        exact hpp (Option.some.inj hp)
      rw [if_neg hpp, if_neg this]

private theorem filterMap_congr {β : Type u} {f g : β → Option α} :
    ∀ {xs : List β}, (∀ x ∈ xs, f x = g x) → xs.filterMap f = xs.filterMap g
  | [], _ => rfl
  | x :: xs, h => by
    rw [List.filterMap_cons, List.filterMap_cons, h x (by simp),
      filterMap_congr fun y hy => h y (by simp [hy])]

private theorem gather_succ_write (pool : Pool α page_size num_pages)
    {table : List (Fin num_pages)} (hn : table.Nodup) {t : Nat}
    (ht : t < table.length * page_size) (x : α) :
    (pool.write table t x).gather table (t + 1) = pool.gather table t ++ [x] := by
  rw [Pool.gather, List.range_succ, List.filterMap_append, Pool.gather]
  congr 1
  · refine filterMap_congr fun s hs => ?_
    rw [read_write pool hn ht, if_neg (by have := List.mem_range.mp hs; omega)]
  · simp [read_write pool hn ht]

/-- **paged-append**: tokens written to the pages of a sequence that has room for them come after
the tokens that are there, whatever the pages held beyond its length, as long as no page is twice in
its table. -/
theorem gather_store {table : List (Fin num_pages)} (hn : table.Nodup) (xs : List α) :
    ∀ (pool : Pool α page_size num_pages) (len : Nat),
      len + xs.length ≤ table.length * page_size →
      (pool.store table len xs).gather table (len + xs.length) = pool.gather table len ++ xs := by
  induction xs with
  | nil => intro pool len _; simp [Pool.store]
  | cons x xs ih =>
    intro pool len hl
    rw [List.length_cons] at hl
    have h := ih (pool.write table len x) (len + 1) (by omega)
    rw [Pool.store, List.length_cons, show len + (xs.length + 1) = len + 1 + xs.length by omega, h,
      gather_succ_write pool hn (by omega), List.append_assoc, List.singleton_append]

/-- **paged-isolated**: a token written to a page that is not in the table of another sequence
leaves that one as it is; they may share every other page. -/
theorem gather_write_other (pool : Pool α page_size num_pages) {table other : List (Fin num_pages)}
    {t : Nat} (x : α) (h : ∀ p, table[t / page_size]? = some p → p ∉ other) (len : Nat) :
    (pool.write table t x).gather other len = pool.gather other len := by
  cases hp : table[t / page_size]? with
  | none => simp only [Pool.write, hp]
  | some p =>
    rw [gather_eq_take, gather_eq_take]
    congr 1
    refine congrArg List.flatten (List.map_congr_left fun p' hp' => ?_)
    rw [toList_write hp, if_neg]
    rintro rfl
    exact h _ hp hp'

end Attention.Proof
