module

import Attention.Algebra.FinRange

public section

/-! # Counting pairs -/

namespace Attention

variable {n m : Nat}

/-- The number of pairs of an index below `n` and one below `m` that have a property. -/
@[expose] def countPairs (p : Fin n → Fin m → Bool) : Nat :=
  ((List.finRange n).map fun i => (List.finRange m).countP (p i)).sum

private theorem sum_map_le {α : Type} {f g : α → Nat} {xs : List α} (h : ∀ x ∈ xs, f x ≤ g x) :
    (xs.map f).sum ≤ (xs.map g).sum := by
  induction xs with
  | nil => simp
  | cons x xs ih =>
    have h₁ := h x (by simp)
    have h₂ := ih fun y hy => h y (by simp [hy])
    simp only [List.map_cons, List.sum_cons]
    omega

/-- More pairs have a weaker property. -/
theorem countPairs_mono {p q : Fin n → Fin m → Bool} (h : ∀ i j, p i j → q i j) :
    countPairs p ≤ countPairs q :=
  sum_map_le fun i _ => List.countP_mono_left fun j _ => h i j

private theorem countP_or {α : Type} (p q : α → Bool) (xs : List α) :
    xs.countP (fun x => p x || q x) ≤ xs.countP p + xs.countP q := by
  induction xs with
  | nil => simp
  | cons x xs ih =>
    simp only [List.countP_cons]
    cases p x <;> cases q x <;> simp <;> omega

/-- Pairs with one of two properties. -/
theorem countPairs_or (p q : Fin n → Fin m → Bool) :
    countPairs (fun i j => p i j || q i j) ≤ countPairs p + countPairs q := by
  unfold countPairs
  induction List.finRange n with
  | nil => simp
  | cons i is ih =>
    have := countP_or (p i) (q i) (List.finRange m)
    simp only [List.map_cons, List.sum_cons] at ih ⊢
    omega

/-- Pairs of two things with a property each. -/
theorem countPairs_and (a : Fin n → Bool) (b : Fin m → Bool) :
    countPairs (fun i j => a i && b j)
      = (List.finRange n).countP a * (List.finRange m).countP b := by
  unfold countPairs
  induction List.finRange n with
  | nil => simp
  | cons i is ih =>
    simp only [List.map_cons, List.sum_cons, List.countP_cons, ih]
    cases a i <;> simp [Nat.add_mul, Nat.add_comm]

/-- All pairs. -/
theorem countPairs_true : countPairs (fun (_ : Fin n) (_ : Fin m) => true) = n * m := by
  have h := countPairs_and (fun _ : Fin n => true) (fun _ : Fin m => true)
  simp only [Bool.and_self, List.countP_true, List.length_finRange] at h
  exact h

/-- No pair. -/
theorem countPairs_false : countPairs (fun (_ : Fin n) (_ : Fin m) => false) = 0 := by
  have h := countPairs_and (fun _ : Fin n => false) (fun _ : Fin m => false)
  simpa using h

/-- If all pairs with some first things have a property, then that many pairs have it. -/
theorem countP_mul_le_countPairs {a : Fin n → Bool} {p : Fin n → Fin m → Bool}
    (h : ∀ i, a i → ∀ j, p i j) : (List.finRange n).countP a * m ≤ countPairs p := by
  have h₁ := countPairs_and a (fun _ : Fin m => true)
  simp only [List.countP_true, List.length_finRange] at h₁
  rw [← h₁]
  exact countPairs_mono fun i j hij => h i (by simpa using hij) j

private theorem countP_eq_le_one (k : Fin n) :
    (List.finRange n).countP (fun i => decide (i = k)) ≤ 1 :=
  Nat.le_of_eq (count_finRange k)

private theorem countPairs_eq_le_one (x : Fin n × Fin m) :
    countPairs (fun i j => decide ((i, j) = x)) ≤ 1 := by
  have h := countPairs_and (fun i => decide (i = x.1)) (fun j => decide (j = x.2))
  have h₃ := countPairs_mono (p := fun i j => decide ((i, j) = x))
    (q := fun i j => decide (i = x.1) && decide (j = x.2)) (by
      intro i j hij
      simp only [decide_eq_true_eq] at hij
      simp [← hij])
  have := Nat.mul_le_mul (countP_eq_le_one x.1) (countP_eq_le_one x.2)
  omega

/-- At most as many pairs are in a list as it is long. -/
theorem countPairs_mem_le (xs : List (Fin n × Fin m)) :
    countPairs (fun i j => decide ((i, j) ∈ xs)) ≤ xs.length := by
  induction xs with
  | nil => simp [countPairs_false]
  | cons x xs ih =>
    have h₁ := countPairs_or (fun i j => decide ((i, j) = x)) (fun i j => decide ((i, j) ∈ xs))
    have h₂ := countPairs_eq_le_one x
    have h₃ := countPairs_mono (p := fun i j => decide ((i, j) ∈ x :: xs))
      (q := fun i j => decide ((i, j) = x) || decide ((i, j) ∈ xs)) (by simp)
    simp only [List.length_cons]
    omega

end Attention
