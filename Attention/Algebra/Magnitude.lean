module

public import Attention.Algebra.SumExchange
public import Attention.Algebra.Vector

public section

/-! # How large a number is at most -/

namespace Attention

open Lean.Grind

universe u v

variable {R : Type v} [OrderedField R]

/-- A square is not negative. -/
theorem mul_self_nonneg (x : R) : 0 ≤ x * x := by
  rcases Std.le_total (a := 0) (b := x) with h | h
  · exact OrderedRing.mul_nonneg h h
  · have := OrderedRing.mul_nonneg (a := -x) (b := -x) (by grind) (by grind)
    grind

/-- A square is positive, unless it is that of 0. -/
theorem mul_self_pos {x : R} (h : x ≠ 0) : 0 < x * x :=
  Std.lt_of_le_of_ne (mul_self_nonneg x) fun e => h (by grind)

/-- |x| ≤ c. -/
@[expose] def AtMost (c x : R) : Prop := -c ≤ x ∧ x ≤ c

namespace AtMost

variable {a b c x y : R}

/-- A bound is not negative. -/
theorem nonneg (h : AtMost c x) : 0 ≤ c := by
  obtain ⟨h₁, h₂⟩ := h
  have := Std.le_trans h₁ h₂
  grind

/-- A larger bound is a bound. -/
theorem mono (h : AtMost a x) (hab : a ≤ b) : AtMost b x := by
  obtain ⟨h₁, h₂⟩ := h
  exact ⟨by grind, Std.le_trans h₂ hab⟩

/-- |x + y| ≤ |x| + |y|. -/
theorem add (hx : AtMost a x) (hy : AtMost b y) : AtMost (a + b) (x + y) := by
  obtain ⟨h₁, h₂⟩ := hx
  obtain ⟨h₃, h₄⟩ := hy
  exact ⟨by grind, OrderedAdd.add_le_add h₂ h₄⟩

/-- |x − y| ≤ |x| + |y|. -/
theorem sub (hx : AtMost a x) (hy : AtMost b y) : AtMost (a + b) (x - y) := by
  obtain ⟨h₁, h₂⟩ := hx
  obtain ⟨h₃, h₄⟩ := hy
  exact ⟨by grind, by grind⟩

/-- |x · y| = |x| · |y|. -/
theorem mul (hx : AtMost a x) (hy : AtMost b y) : AtMost (a * b) (x * y) := by
  obtain ⟨h₁, h₂⟩ := hx
  obtain ⟨h₃, h₄⟩ := hy
  have e₁ := OrderedRing.mul_nonneg (a := a - x) (b := b + y) (by grind) (by grind)
  have e₂ := OrderedRing.mul_nonneg (a := a + x) (b := b - y) (by grind) (by grind)
  have e₃ := OrderedRing.mul_nonneg (a := a - x) (b := b - y) (by grind) (by grind)
  have e₄ := OrderedRing.mul_nonneg (a := a + x) (b := b + y) (by grind) (by grind)
  have s₁ := OrderedAdd.add_le_add e₁ e₂
  have s₂ := OrderedAdd.add_le_add e₃ e₄
  clear e₁ e₂ e₃ e₄ h₁ h₂ h₃ h₄
  exact ⟨by grind, by grind⟩

/-- |0| = 0. -/
theorem zero (h : 0 ≤ c) : AtMost c (0 : R) := ⟨by grind, h⟩

/-- A mean of numbers, by weights that sum to at most 1, is no larger than they are. -/
theorem mean {α : Type u} {p f : α → R} {xs : List α} (hp : ∀ x ∈ xs, 0 ≤ p x)
    (hsum : sumOver p xs ≤ 1) (hc : 0 ≤ c) (hf : ∀ x ∈ xs, AtMost c (f x)) :
    AtMost c (sumOver (fun x => p x * f x) xs) := by
  have h₁ : sumOver (fun x => p x * f x) xs ≤ sumOver (fun x => p x * c) xs :=
    sumOver_le_sumOver fun x hx => OrderedRing.mul_le_mul_of_nonneg_left (hf x hx).2 (hp x hx)
  have h₂ : sumOver (fun x => p x * -c) xs ≤ sumOver (fun x => p x * f x) xs :=
    sumOver_le_sumOver fun x hx => OrderedRing.mul_le_mul_of_nonneg_left (hf x hx).1 (hp x hx)
  rw [sumOver_mul_right] at h₁ h₂
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hsum hc
  refine ⟨?_, ?_⟩
  · rw [Semiring.one_mul] at h₃
    rw [Ring.mul_neg] at h₂
    grind
  · rw [Semiring.one_mul] at h₃
    exact Std.le_trans h₁ h₃

end AtMost

attribute [local instance] Semiring.natCast

/-- A sum of one and the same number. -/
theorem sumOver_const {α : Type u} (c : R) (xs : List α) :
    sumOver (fun _ => c) xs = (xs.length : R) * c := by
  induction xs with
  | nil => rw [sumOver_nil, List.length_nil, Semiring.natCast_zero, Semiring.zero_mul]
  | cons x xs ih =>
    rw [sumOver_cons, ih, List.length_cons, Semiring.natCast_add, Semiring.natCast_one]
    grind

/-- An inner product of `d` terms is at most d times the largest of them. -/
theorem AtMost.dot {d : Nat} {a b : R} {x y : Vec R d} (hx : ∀ t : Fin d, AtMost a x[t])
    (hy : ∀ t : Fin d, AtMost b y[t]) : AtMost ((d : R) * (a * b)) (Vec.dot x y) := by
  have h : ∀ t ∈ List.finRange d, AtMost (a * b) (x[t] * y[t]) := fun t _ => (hx t).mul (hy t)
  have h₁ : sumOver (fun t : Fin d => x[t] * y[t]) (List.finRange d)
      ≤ sumOver (fun _ => a * b) (List.finRange d) := sumOver_le_sumOver fun t ht => (h t ht).2
  have h₂ : sumOver (fun _ => -(a * b)) (List.finRange d)
      ≤ sumOver (fun t : Fin d => x[t] * y[t]) (List.finRange d) :=
    sumOver_le_sumOver fun t ht => (h t ht).1
  rw [sumOver_const, List.length_finRange] at h₁ h₂
  rw [Ring.mul_neg] at h₂
  exact ⟨h₂, h₁⟩

end Attention
