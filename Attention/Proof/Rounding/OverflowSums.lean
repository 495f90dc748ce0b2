module

public import Attention.Model.RoundedOverflow
public import Attention.Proof.Rounding.Weights
import Attention.Proof.Rounding.Sum

public section

/-! # Sums that stay in the range

A number that is no larger than the largest is rounded as if there were none, and so are sums in
whatever order, if the sum of the sizes is. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-- A number that is at most the smaller of two is at most both. -/
theorem le_of_le_smaller {a b c : R} (h : a ≤ smaller b c) : a ≤ b ∧ a ≤ c := by
  rw [smaller] at h
  split at h
  · next hbc => exact ⟨h, Std.le_trans h hbc⟩
  · next hbc => exact ⟨by grind, h⟩

/-- A factor grows a bound. -/
theorem le_one_add_mul {u b : R} (hu : 0 ≤ u) (hb : 0 ≤ b) : b ≤ (1 + u) * b := by
  have := OrderedRing.mul_nonneg hu hb
  grind

/-- How large a rounded number is. -/
theorem rounded_atMost {u b x y : R} (h : Rounded u x y) (hx : AtMost b x) :
    AtMost ((1 + u) * b) y := by
  obtain ⟨θ, hθ, rfl⟩ := h
  have h := hx.add (hx.mul hθ)
  rw [show x + x * θ = x * (1 + θ) by grind] at h
  exact h.mono (by grind)

/-- A number within the range is rounded. -/
theorem limited_rounded {largest u b x : R} {y : Option R} (h : Limited largest (Rounded u) x y)
    (hx : AtMost b x) (hb : b ≤ largest) :
    ∃ z, y = some z ∧ Rounded u x z ∧ AtMost ((1 + u) * b) z := by
  obtain ⟨z, e, hz⟩ := h (hx.mono hb)
  exact ⟨z, e, hz, rounded_atMost hz hx⟩

/-- So is a number that is rounded often. -/
theorem limitedTimes {largest u b x : R} (hu : 0 ≤ u) {k : Nat} {y : Option R}
    (h : LimitedTimes largest u k x y) (hx : AtMost b x) (hb : (1 + u) ^ k * b ≤ largest) :
    ∃ z, y = some z ∧ RoundedTimes u k x z ∧ AtMost ((1 + u) ^ k * b) z := by
  have h₀ := hx.nonneg
  induction k generalizing y with
  | zero => exact ⟨x, h, rfl, by rw [Semiring.pow_zero, Semiring.one_mul]; exact hx⟩
  | succ k ih =>
    obtain ⟨w, hw, hy⟩ := h
    have e : (1 + u) ^ (k + 1) * b = (1 + u) * ((1 + u) ^ k * b) := by
      rw [Semiring.pow_succ]
      grind
    have hb' : (1 + u) ^ k * b ≤ largest := by
      have := OrderedRing.mul_nonneg
        (Std.le_of_lt (OrderedField.pow_pos (x := 1 + u)
          (by have := OrderedRing.zero_lt_one (R := R); grind) k)) h₀
      have := le_one_add_mul hu this
      grind
    obtain ⟨w', rfl, h₁, h₂⟩ := ih hw hb'
    obtain ⟨z, e', h₃, h₄⟩ := limited_rounded (hy w' rfl) h₂ hb'
    exact ⟨z, e', ⟨w', h₁, h₃⟩, by rwa [e]⟩

private theorem growth_pos {u : R} (hu : 0 ≤ u) (k : Nat) : 0 < (1 + u) ^ k :=
  OrderedField.pow_pos (by have := OrderedRing.zero_lt_one (R := R); grind) k

/-- A sum, in whatever order, whose sizes stay within the range as they grow, is a rounded sum, and
within the range itself. -/
theorem limitedSum {largest u : R} (hu : 0 ≤ u) {k : Nat} {xs : List R} {z : Option R}
    (h : LimitedSum largest u k xs z) (fits : (1 + u) ^ k * sumOver absolute xs ≤ largest) :
    ∃ y, z = some y ∧ RoundedSum u k xs y ∧ AtMost ((1 + u) ^ k * sumOver absolute xs) y := by
  induction h with
  | @nil k =>
    refine ⟨0, rfl, .nil, .zero ?_⟩
    exact OrderedRing.mul_nonneg (Std.le_of_lt (growth_pos hu k)) (sum_absolute_nonneg [])
  | @one k x =>
    refine ⟨x, rfl, .one, (atMost_absolute x).mono ?_⟩
    have h₁ := OrderedField.one_le_pow (x := 1 + u) (by grind) k
    have := OrderedRing.mul_le_mul_of_nonneg_right h₁ (absolute_nonneg x)
    simp only [sumOver_cons, sumOver_nil]
    grind
  | @zero k xs z _ ih =>
    have e₁ : absolute (0 : R) = 0 := absolute_of_nonneg (Std.le_refl _)
    have e₂ : sumOver absolute (0 :: xs) = sumOver absolute xs := by
      rw [sumOver_cons, e₁]
      grind
    rw [e₂] at fits ⊢
    obtain ⟨y, e, h₁, h₂⟩ := ih fits
    exact ⟨y, e, .zero h₁, h₂⟩
  | @add k xs ys x y z _ _ hz ihx ihy =>
    have h₁ := sum_absolute_nonneg xs
    have h₂ := sum_absolute_nonneg ys
    have pos := Std.le_of_lt (growth_pos hu k)
    have h₃ := OrderedRing.mul_nonneg pos h₁
    have h₄ := OrderedRing.mul_nonneg pos h₂
    have e : (1 + u) ^ (k + 1) * sumOver absolute (xs ++ ys)
        = (1 + u) * ((1 + u) ^ k * sumOver absolute xs)
          + (1 + u) * ((1 + u) ^ k * sumOver absolute ys) := by
      rw [sumOver_append, Semiring.pow_succ]
      grind
    rw [e] at fits ⊢
    have h₅ := le_one_add_mul hu h₃
    have h₆ := le_one_add_mul hu h₄
    generalize (1 + u) ^ k * sumOver absolute xs = X at *
    generalize (1 + u) ^ k * sumOver absolute ys = Y at *
    obtain ⟨a, rfl, hx, ha⟩ := ihx (by grind)
    obtain ⟨b, rfl, hy, hb⟩ := ihy (by grind)
    have h₇ := absolute_le ha
    have h₈ := absolute_le hb
    obtain ⟨a', b', ha', hb', rfl⟩ := hz a rfl b rfl (by grind)
    exact ⟨_, rfl, .add hx hy ha' hb', (rounded_atMost ha' ha).add (rounded_atMost hb' hb)⟩
  | @permute k xs ys z _ hp ih =>
    rw [← sumOver_perm _ hp] at fits ⊢
    obtain ⟨y, e, h₁, h₂⟩ := ih fits
    exact ⟨y, e, .permute h₁ hp, h₂⟩

/-- The same with a bound for each number. -/
theorem limitedSum_map {α : Type v} {largest u B : R} (hu : 0 ≤ u) {k : Nat} {xs : List α}
    {f b : α → R} {z : Option R} (h : LimitedSum largest u k (xs.map f) z)
    (hf : ∀ x ∈ xs, AtMost (b x) (f x)) (hB : (1 + u) ^ k * sumOver b xs ≤ B)
    (fits : B ≤ largest) :
    ∃ y, z = some y ∧ RoundedSum u k (xs.map f) y ∧ AtMost B y := by
  have h₁ : sumOver absolute (xs.map f) ≤ sumOver b xs := by
    rw [sumOver_map]
    exact sumOver_le_sumOver fun x hx => absolute_le (hf x hx)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ (Std.le_of_lt (growth_pos hu k))
  obtain ⟨y, e, h₃, h₄⟩ := limitedSum hu h (Std.le_trans (Std.le_trans h₂ hB) fits)
  exact ⟨y, e, h₃, h₄.mono (Std.le_trans h₂ hB)⟩

/-- A sum of numbers that are not negative is not much smaller than it should be. -/
theorem le_roundedSum {u : R} (hu₀ : 0 ≤ u) (hu : u ≤ 1) {k : Nat} {xs : List R} {z : R}
    (h : RoundedSum u k xs z) (pos : ∀ x ∈ xs, 0 ≤ x) :
    (1 - u) ^ k * sumOver id xs ≤ z := by
  have one := OrderedRing.zero_lt_one (R := R)
  have grow : ∀ {x x' : R} {k : Nat} {S : R}, 0 ≤ x → Rounded u x x' → (1 - u) ^ k * S ≤ x →
      (1 - u) ^ (k + 1) * S ≤ x' := fun {x x' k S} hx hx' hS => by
    obtain ⟨θ, ⟨h₁, -⟩, rfl⟩ := hx'
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_left hS (c := 1 - u) (by grind)
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 - u) (b := 1 + θ) (by grind) hx
    rw [Semiring.pow_succ]
    grind
  have nonneg : ∀ k : Nat, 0 ≤ (1 - u) ^ k := fun k => by
    induction k with
    | zero => rw [Semiring.pow_zero]; exact Std.le_of_lt one
    | succ k ih =>
      rw [Semiring.pow_succ]
      exact OrderedRing.mul_nonneg ih (by grind)
  have sums : ∀ xs : List R, (∀ x ∈ xs, 0 ≤ x) → 0 ≤ sumOver id xs := fun xs h =>
    sumOver_nonneg fun x hx => h x hx
  induction h with
  | nil =>
    rw [sumOver_nil, Semiring.mul_zero]
    exact Std.le_refl _
  | @one k x =>
    have hx := pos x (by simp)
    have : (1 - u) ^ k ≤ 1 := by
      clear pos grow sums
      induction k with
      | zero => rw [Semiring.pow_zero]; exact Std.le_refl _
      | succ k ih =>
        have := OrderedRing.mul_nonneg (nonneg k) hu₀
        rw [Semiring.pow_succ]
        grind
    have := OrderedRing.mul_le_mul_of_nonneg_right this hx
    simp only [sumOver_cons, sumOver_nil, id]
    grind
  | @zero k xs z _ ih =>
    have := ih fun x hx => pos x (by simp [hx])
    simp only [sumOver_cons, id] at this ⊢
    rwa [show 0 + sumOver id xs = sumOver id xs by grind]
  | @add k xs ys x x' y y' _ _ hx' hy' ihx ihy =>
    have h₁ := ihx fun x hx => pos x (by simp [hx])
    have h₂ := ihy fun x hx => pos x (by simp [hx])
    have h₃ := OrderedRing.mul_nonneg (nonneg k) (sums xs fun x hx => pos x (by simp [hx]))
    have h₄ := OrderedRing.mul_nonneg (nonneg k) (sums ys fun x hx => pos x (by simp [hx]))
    have := grow (Std.le_trans h₃ h₁) hx' h₁
    have := grow (Std.le_trans h₄ h₂) hy' h₂
    rw [sumOver_append, Semiring.left_distrib]
    exact OrderedAdd.add_le_add ‹_› ‹_›
  | @permute k xs ys z _ hp ih =>
    rw [← sumOver_perm _ hp]
    exact ih fun x hx => pos x (hp.mem_iff.mp hx)

end Attention.Proof
