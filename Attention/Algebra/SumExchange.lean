module

public import Attention.Algebra.Sum
import Attention.Algebra.FinRange

public section

/-! # Sums of sums -/

namespace Attention

universe u v w

variable {α : Type u} {β : Type w} {R : Type v} [OrderedField R]

/-- A sum of sums of two terms. -/
theorem sumOver_add (f g : α → R) (xs : List α) :
    sumOver (fun x => f x + g x) xs = sumOver f xs + sumOver g xs := by
  induction xs with
  | nil => simp only [sumOver_nil]; grind
  | cons x xs ih => simp only [sumOver_cons, ih]; grind

/-- A sum of differences. -/
theorem sumOver_sub (f g : α → R) (xs : List α) :
    sumOver (fun x => f x - g x) xs = sumOver f xs - sumOver g xs := by
  induction xs with
  | nil => simp only [sumOver_nil]; grind
  | cons x xs ih => simp only [sumOver_cons, ih]; grind

/-- A constant factor on the right moves out of a sum. -/
theorem sumOver_mul_right (c : R) (f : α → R) (xs : List α) :
    sumOver (fun x => f x * c) xs = sumOver f xs * c := by
  induction xs with
  | nil => simp only [sumOver_nil]; grind
  | cons x xs ih => simp only [sumOver_cons, ih]; grind

/-- The order of two sums does not matter. -/
theorem sumOver_comm (f : α → β → R) (xs : List α) (ys : List β) :
    sumOver (fun x => sumOver (f x) ys) xs = sumOver (fun y => sumOver (fun x => f x y) xs) ys := by
  induction xs with
  | nil => exact (sumOver_eq_zero fun _ _ => rfl).symm
  | cons x xs ih => simp only [sumOver_cons, ih, sumOver_add]

/-- A sum over what satisfies a condition is the sum over all, of what counts 0 elsewhere. -/
theorem sumOver_filter (p : α → Bool) (f : α → R) (xs : List α) :
    sumOver f (xs.filter p) = sumOver (fun x => if p x then f x else 0) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    cases hp : p x
    · rw [List.filter_cons_of_neg (by simp [hp]), ih, sumOver_cons, hp]
      simp only [Bool.false_eq_true, if_false]
      grind
    · rw [List.filter_cons_of_pos hp, sumOver_cons, ih, sumOver_cons, hp, if_pos rfl]

/-- A sum over lists put together is the sum of the sums over each. -/
theorem sumOver_flatMap (f : β → R) (g : α → List β) (xs : List α) :
    sumOver f (xs.flatMap g) = sumOver (fun x => sumOver f (g x)) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.flatMap_cons, sumOver_append, ih, sumOver_cons]

/-- Of terms that are 0 except for one number, the sum is that one. -/
theorem sumOver_ite_eq {n : Nat} (f : Fin n → R) (k : Fin n) :
    sumOver (fun i => if i = k then f i else 0) (List.finRange n) = f k := by
  suffices h : ∀ xs : List (Fin n), xs.Nodup → sumOver (fun i => if i = k then f i else 0) xs
      = if k ∈ xs then f k else 0 by
    exact (h _ (nodup_finRange n)).trans (if_pos (List.mem_finRange k))
  intro xs hxs
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    obtain ⟨hx, hxs⟩ := List.nodup_cons.mp hxs
    rw [sumOver_cons, ih hxs]
    by_cases h : x = k
    · subst h
      rw [if_pos rfl, if_neg hx, if_pos (by simp)]
      grind
    · have : k ∈ x :: xs ↔ k ∈ xs := by simp [Ne.symm h]
      simp only [if_neg h, this]
      grind

end Attention
