module

public import Attention.Algebra.Ordered

public section

/-! # Finite sums over a list -/

namespace Attention

universe u v w

/-- `sumOver f xs` is Σ f x for x in `xs`. -/
@[expose] def sumOver {α : Type u} {R : Type v} [Add R] [OfNat R 0] (f : α → R) : List α → R
  | [] => 0
  | x :: xs => f x + sumOver f xs

variable {α : Type u} {β : Type w} {R : Type v}

section
variable [Add R] [OfNat R 0]

@[simp] theorem sumOver_nil (f : α → R) : sumOver f [] = 0 := rfl

@[simp] theorem sumOver_cons (f : α → R) (x : α) (xs : List α) :
    sumOver f (x :: xs) = f x + sumOver f xs := rfl

/-- A sum over a mapped list. -/
theorem sumOver_map (f : β → R) (g : α → β) (xs : List α) :
    sumOver f (xs.map g) = sumOver (fun x => f (g x)) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [ih]

/-- Sums of functions that agree on the list agree. -/
theorem sumOver_congr {f g : α → R} {xs : List α} (h : ∀ x ∈ xs, f x = g x) :
    sumOver f xs = sumOver g xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => simp [h x (by simp), ih fun y hy => h y (by simp [hy])]

end

variable [OrderedField R]

/-- The sum over a concatenation is the sum of the sums. -/
theorem sumOver_append (f : α → R) (xs ys : List α) :
    sumOver f (xs ++ ys) = sumOver f xs + sumOver f ys := by
  induction xs with
  | nil => simp only [List.nil_append, sumOver_nil]; grind
  | cons x xs ih => simp only [List.cons_append, sumOver_cons, ih]; grind

/-- A constant factor moves out of a sum. -/
theorem sumOver_mul_left (c : R) (f : α → R) (xs : List α) :
    sumOver (fun x => c * f x) xs = c * sumOver f xs := by
  induction xs with
  | nil => simp only [sumOver_nil]; grind
  | cons x xs ih => simp only [sumOver_cons, ih]; grind

/-- A sum of negated terms. -/
theorem sumOver_neg (f : α → R) (xs : List α) : sumOver (fun x => -f x) xs = -sumOver f xs := by
  induction xs with
  | nil => simp only [sumOver_nil]; grind
  | cons x xs ih => simp only [sumOver_cons, ih]; grind

/-- A sum of zeros is zero. -/
theorem sumOver_eq_zero {f : α → R} {xs : List α} (h : ∀ x ∈ xs, f x = 0) : sumOver f xs = 0 := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    have := h x (by simp)
    have := ih fun y hy => h y (by simp [hy])
    simp only [sumOver_cons]
    grind

/-- A sum of non-negative terms is non-negative. -/
theorem sumOver_nonneg {f : α → R} {xs : List α} (h : ∀ x ∈ xs, 0 ≤ f x) : 0 ≤ sumOver f xs := by
  induction xs with
  | nil => exact Std.le_refl _
  | cons x xs ih =>
    have := h x (by simp)
    have := ih fun y hy => h y (by simp [hy])
    simp only [sumOver_cons]
    grind

/-- Larger terms give a larger sum. -/
theorem sumOver_le_sumOver {f g : α → R} {xs : List α} (h : ∀ x ∈ xs, f x ≤ g x) :
    sumOver f xs ≤ sumOver g xs := by
  induction xs with
  | nil => exact Std.le_refl _
  | cons x xs ih =>
    have := h x (by simp)
    have := ih fun y hy => h y (by simp [hy])
    simp only [sumOver_cons]
    grind

/-- One term of a sum of non-negative terms is at most the sum. -/
theorem le_sumOver {f : α → R} {xs : List α} (h : ∀ x ∈ xs, 0 ≤ f x) {x : α} (hx : x ∈ xs) :
    f x ≤ sumOver f xs := by
  induction xs with
  | nil => cases hx
  | cons y ys ih =>
    have hy := h y (by simp)
    have hys : ∀ z ∈ ys, 0 ≤ f z := fun z hz => h z (by simp [hz])
    have := sumOver_nonneg hys
    simp only [sumOver_cons]
    rcases List.mem_cons.mp hx with rfl | hx
    · grind
    · have := ih hys hx
      grind

/-- The order of the terms does not matter. -/
theorem sumOver_perm (f : α → R) {xs ys : List α} (h : xs.Perm ys) :
    sumOver f xs = sumOver f ys := by
  induction h with
  | nil => rfl
  | cons x _ ih => simp only [sumOver_cons, ih]
  | swap x y xs => simp only [sumOver_cons]; grind
  | trans _ _ h₁ h₂ => exact h₁.trans h₂

end Attention
