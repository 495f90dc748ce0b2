module

public import Attention.Spec.Varlen

public section

/-! # Which packed position belongs to which sequence -/

namespace Attention.Proof

open Spec

universe u

/-! ## Prefix sums -/

private theorem cuSeqlens_eq_cons (lens : List Nat) (start : Nat) :
    ∃ tail, cuSeqlens lens start = start :: tail := by
  cases lens <;> exact ⟨_, rfl⟩

/-- One prefix sum more than there are sequences. -/
theorem length_cuSeqlens (lens : List Nat) :
    ∀ start, (cuSeqlens lens start).length = lens.length + 1 := by
  induction lens with
  | nil => intro _; rfl
  | cons n lens ih => intro start; simp [cuSeqlens, ih]

private theorem le_cuSeqlens (lens : List Nat) :
    ∀ start, ∀ e ∈ cuSeqlens lens start, start ≤ e := by
  induction lens with
  | nil => intro start e he; simp [cuSeqlens] at he; omega
  | cons n lens ih =>
    intro start e he
    rcases List.mem_cons.mp he with rfl | he
    · exact Nat.le_refl _
    · have := ih (start + n) e he
      omega

private theorem sequenceOf_cons (n : Nat) (lens : List Nat) (start i : Nat) :
    sequenceOf (cuSeqlens (n :: lens) start) i
      = if start + n ≤ i then sequenceOf (cuSeqlens lens (start + n)) i + 1 else 0 := by
  obtain ⟨tail, ht⟩ := cuSeqlens_eq_cons lens (start + n)
  have hle := le_cuSeqlens lens (start + n)
  simp only [sequenceOf, cuSeqlens, List.tail_cons]
  split
  · rw [ht, List.tail_cons, List.filter_cons, if_pos (by simpa), List.length_cons]
  · rw [List.length_eq_zero_iff, List.filter_eq_nil_iff]
    intro e he
    have := hle e he
    simp only [decide_eq_true_eq]
    omega

private theorem le_sequenceOf (pre post : List Nat) :
    ∀ start i, start + pre.sum ≤ i → pre.length ≤ sequenceOf (cuSeqlens (pre ++ post) start) i := by
  induction pre with
  | nil => intro start i _; exact Nat.zero_le _
  | cons n pre ih =>
    intro start i h
    rw [List.sum_cons] at h
    rw [List.cons_append, sequenceOf_cons, if_pos (by omega), List.length_cons]
    exact Nat.succ_le_succ (ih (start + n) i (by omega))

private theorem sequenceOf_lt (pre post : List Nat) :
    ∀ start i, start ≤ i → i < start + pre.sum →
      sequenceOf (cuSeqlens (pre ++ post) start) i < pre.length := by
  induction pre with
  | nil => intro start i _ _; simp at *; omega
  | cons n pre ih =>
    intro start i h₁ h₂
    rw [List.sum_cons] at h₂
    rw [List.cons_append, sequenceOf_cons, List.length_cons]
    split
    · exact Nat.succ_lt_succ (ih (start + n) i (by omega) (by omega))
    · omega

/-- A sequence starts after the rows of those before it. -/
theorem getD_cuSeqlens (pre post : List Nat) :
    ∀ start, (cuSeqlens (pre ++ post) start).getD pre.length 0 = start + pre.sum := by
  induction pre with
  | nil =>
    intro start
    obtain ⟨tail, ht⟩ := cuSeqlens_eq_cons post start
    simp [ht]
  | cons n pre ih =>
    intro start
    have := ih (start + n)
    simp only [List.cons_append, cuSeqlens, List.length_cons, List.getD_cons_succ, List.sum_cons]
    omega

/-- The positions from the start of a sequence on belong to it. -/
private theorem sequenceOf_eq (pre post : List Nat) (n : Nat) {t : Nat} (ht : t < n) :
    sequenceOf (cuSeqlens (pre ++ n :: post)) (pre.sum + t) = pre.length := by
  have h₁ := le_sequenceOf pre (n :: post) 0 (pre.sum + t) (by omega)
  have h₂ := sequenceOf_lt (pre ++ [n]) post 0 (pre.sum + t) (by omega) (by simp; omega)
  simp only [List.append_assoc, List.singleton_append, List.length_append, List.length_singleton]
    at h₂
  omega

/-- Those before it and after it do not. -/
private theorem sequenceOf_ne (pre post : List Nat) (n : Nat) {j : Nat}
    (hj : j < pre.sum ∨ pre.sum + n ≤ j) :
    sequenceOf (cuSeqlens (pre ++ n :: post)) j ≠ pre.length := by
  rcases hj with hj | hj
  · have := sequenceOf_lt pre (n :: post) 0 j (by omega) (by omega)
    omega
  · have := le_sequenceOf (pre ++ [n]) post 0 j (by simp; omega)
    simp only [List.append_assoc, List.singleton_append, List.length_append,
      List.length_singleton] at this
    omega

variable {S : Type u}

/-- The score transformation of the packed batch within a sequence. -/
theorem packedMod_own (mods : Nat → Nat → Nat → S → Option S)
    (pre_q post_q pre_k post_k : List Nat) (n_q n_k : Nat) (hpre : pre_q.length = pre_k.length)
    {i j : Nat} (hi : i < n_q) (hj : j < n_k) (s : S) :
    packedMod (cuSeqlens (pre_q ++ n_q :: post_q)) (cuSeqlens (pre_k ++ n_k :: post_k)) mods
      (pre_q.sum + i) (pre_k.sum + j) s = mods pre_q.length i j s := by
  have h₁ := getD_cuSeqlens pre_q (n_q :: post_q) 0
  have h₂ := getD_cuSeqlens pre_k (n_k :: post_k) 0
  simp only [packedMod, sequenceOf_eq _ _ _ hi, sequenceOf_eq _ _ _ hj, hpre, if_true] at h₁ h₂ ⊢
  rw [h₁, h₂]
  congr 1 <;> omega

/-- It masks the keys of every other sequence. -/
theorem packedMod_other (mods : Nat → Nat → Nat → S → Option S)
    (pre_q post_q pre_k post_k : List Nat) (n_q n_k : Nat) (hpre : pre_q.length = pre_k.length)
    {i j : Nat} (hi : i < n_q) (hj : j < pre_k.sum ∨ pre_k.sum + n_k ≤ j) (s : S) :
    packedMod (cuSeqlens (pre_q ++ n_q :: post_q)) (cuSeqlens (pre_k ++ n_k :: post_k)) mods
      (pre_q.sum + i) j s = none := by
  have h : sequenceOf (cuSeqlens (pre_k ++ n_k :: post_k)) j ≠ pre_q.length :=
    hpre ▸ sequenceOf_ne pre_k post_k n_k hj
  simp only [packedMod, sequenceOf_eq _ _ _ hi, h, if_false]

/-- It masks the keys of a sequence for the queries of every other. -/
theorem packedMod_otherQuery (mods : Nat → Nat → Nat → S → Option S)
    (pre_q post_q pre_k post_k : List Nat) (n_q n_k : Nat) (hpre : pre_q.length = pre_k.length)
    {i j : Nat} (hj : j < n_k) (hi : i < pre_q.sum ∨ pre_q.sum + n_q ≤ i) (s : S) :
    packedMod (cuSeqlens (pre_q ++ n_q :: post_q)) (cuSeqlens (pre_k ++ n_k :: post_k)) mods i
      (pre_k.sum + j) s = none := by
  have h : pre_k.length ≠ sequenceOf (cuSeqlens (pre_q ++ n_q :: post_q)) i :=
    hpre ▸ (sequenceOf_ne pre_q post_q n_q hi).symm
  simp only [packedMod, sequenceOf_eq _ _ _ hj, h, if_false]

end Attention.Proof
