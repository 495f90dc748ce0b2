module

public import Attention.Algebra.Power
public import Attention.Model.Rounding

public section

/-! # One rounding, a sum of rounded additions, and a rounded exponential

Source: docs/tolerances.md, section 1; Higham 2002, "Accuracy and Stability of Numerical
Algorithms", section 4.2. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## One rounding -/

/-- No number is larger than its absolute value. -/
theorem atMost_absolute (x : R) : AtMost (absolute x) x := by
  rw [absolute, OrderedField.max_def]
  split
  · exact ⟨by grind, by grind⟩
  · exact ⟨by grind, by grind⟩

/-- The absolute value is the least bound. -/
theorem absolute_le {c x : R} (h : AtMost c x) : absolute x ≤ c := by
  obtain ⟨h₁, h₂⟩ := h
  rw [absolute, OrderedField.max_def]
  split <;> grind

/-- A relative error `c` and one rounding more. -/
theorem rounded_error {u c b x y e : R} (hy : Rounded u x y) (hx : AtMost (c * b) (x - e))
    (he : AtMost b e) : AtMost (((1 + c) * (1 + u) - 1) * b) (y - e) := by
  obtain ⟨θ, hθ, rfl⟩ := hy
  have h := hx.add ((hx.add he).mul hθ)
  have e₁ : x - e + (x - e + e) * θ = x * (1 + θ) - e := by grind
  have e₂ : c * b + (c * b + b) * u = ((1 + c) * (1 + u) - 1) * b := by grind
  rwa [e₁, e₂] at h

/-! ## Rounded sums -/

/-- |Σ f x| ≤ Σ b x, where |f x| ≤ b x. -/
theorem sumOver_atMost {α : Type v} {b f : α → R} {xs : List α} (h : ∀ x ∈ xs, AtMost (b x) (f x)) :
    AtMost (sumOver b xs) (sumOver f xs) := by
  induction xs with
  | nil => exact AtMost.zero (Std.le_refl _)
  | cons x xs ih => exact (h x (by simp)).add (ih fun y hy => h y (by simp [hy]))

/-- The terms of a sum may be off one by one. -/
theorem sumOver_error {α : Type v} {b f g : α → R} {xs : List α}
    (h : ∀ x ∈ xs, AtMost (b x) (f x - g x)) :
    AtMost (sumOver b xs) (sumOver f xs - sumOver g xs) := by
  rw [← sumOver_sub]
  exact sumOver_atMost h

/-- Sizes together bound a sum. -/
theorem sum_absolute (xs : List R) : AtMost (sumOver absolute xs) (sumOver id xs) :=
  sumOver_atMost fun x _ => atMost_absolute x

/-- Sizes together are not negative. -/
theorem sum_absolute_nonneg (xs : List R) : 0 ≤ sumOver absolute xs :=
  (sum_absolute xs).nonneg

private theorem growth_nonneg {u : R} (hu : 0 ≤ u) (k : Nat) : 0 ≤ (1 + u) ^ k - 1 := by
  have := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  grind

/-- An addition whose result is rounded: one error that both numbers share. -/
theorem roundedSum_add {u : R} {k : Nat} {xs ys : List R} {x y z : R} (hx : RoundedSum u k xs x)
    (hy : RoundedSum u k ys y) (hz : Rounded u (x + y) z) : RoundedSum u (k + 1) (xs ++ ys) z := by
  obtain ⟨θ, hθ, rfl⟩ := hz
  rw [Semiring.right_distrib]
  exact .add hx hy ⟨θ, hθ, rfl⟩ ⟨θ, hθ, rfl⟩

/-- A sum in a tree of depth `k`, each addition rounded, is off by at most (1 + u)ᵏ − 1 times the
sum of the absolute values, whatever the order. Higham 2002, section 4.2. -/
theorem roundedSum_error {u : R} (hu : 0 ≤ u) {k : Nat} {xs : List R} {z : R}
    (h : RoundedSum u k xs z) :
    AtMost (((1 + u) ^ k - 1) * sumOver absolute xs) (z - sumOver id xs) := by
  induction h with
  | @nil k =>
    have e₁ : (0 : R) - sumOver id [] = 0 := by rw [sumOver_nil]; grind
    rw [e₁]
    exact AtMost.zero (OrderedRing.mul_nonneg (growth_nonneg hu k) (sum_absolute_nonneg []))
  | @one k x =>
    have e₁ : x - sumOver id [x] = 0 := by
      rw [sumOver_cons, sumOver_nil, id]
      grind
    rw [e₁]
    exact AtMost.zero (OrderedRing.mul_nonneg (growth_nonneg hu k) (sum_absolute_nonneg [x]))
  | @zero k xs z _ ih =>
    have e₁ : absolute (0 : R) = 0 := by
      rw [absolute, OrderedField.max_def]
      split <;> grind
    have e₂ : (id 0 : R) + sumOver id xs = sumOver id xs := by
      rw [id]
      grind
    have e₃ : (0 : R) + sumOver absolute xs = sumOver absolute xs := by grind
    rwa [sumOver_cons, sumOver_cons, e₁, e₂, e₃]
  | @add k xs ys x x' y y' _ _ hx' hy' hx hy =>
    have h₁ := (rounded_error hx' hx (sum_absolute xs)).add
      (rounded_error hy' hy (sum_absolute ys))
    have e₁ : (1 + ((1 + u) ^ k - 1)) * (1 + u) - 1 = (1 + u) ^ (k + 1) - 1 := by
      rw [Semiring.pow_succ]
      grind
    have e₂ : ((1 + u) ^ (k + 1) - 1) * sumOver absolute xs
        + ((1 + u) ^ (k + 1) - 1) * sumOver absolute ys
        = ((1 + u) ^ (k + 1) - 1) * sumOver absolute (xs ++ ys) := by
      rw [sumOver_append]
      grind
    have e₃ : x' - sumOver id xs + (y' - sumOver id ys) = x' + y' - sumOver id (xs ++ ys) := by
      rw [sumOver_append]
      grind
    rwa [e₁, e₂, e₃] at h₁
  | @permute k xs ys z _ hp ih => rwa [← sumOver_perm _ hp, ← sumOver_perm _ hp]

/-- A rounded sum of numbers that have a relative error already: of `c` in their bounds `b`. -/
theorem roundedSum_map_error {α : Type v} {u c z : R} (hu : 0 ≤ u) {k : Nat}
    {xs : List α} {f e b : α → R} (h : RoundedSum u k (xs.map f) z)
    (hf : ∀ x ∈ xs, AtMost (c * b x) (f x - e x)) (he : ∀ x ∈ xs, AtMost (b x) (e x)) :
    AtMost (((1 + c) * (1 + u) ^ k - 1) * sumOver b xs) (z - sumOver e xs) := by
  have h₁ := roundedSum_error hu h
  have h₂ := sumOver_error hf
  rw [sumOver_mul_left] at h₂
  have h₃ : sumOver absolute (xs.map f) ≤ (1 + c) * sumOver b xs := by
    rw [sumOver_map, ← sumOver_mul_left]
    refine sumOver_le_sumOver fun x hx => absolute_le ?_
    have h₄ := (hf x hx).add (he x hx)
    have e₁ : f x - e x + e x = f x := by grind
    have e₂ : c * b x + b x = (1 + c) * b x := by grind
    rwa [e₁, e₂] at h₄
  have h₄ := (h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left h₃ (growth_nonneg hu k))).add h₂
  rw [sumOver_map] at h₄
  have e₁ : z - sumOver (fun x => id (f x)) xs + (sumOver f xs - sumOver e xs)
      = z - sumOver e xs := by
    simp only [id]
    grind
  have e₂ : ((1 + u) ^ k - 1) * ((1 + c) * sumOver b xs) + c * sumOver b xs
      = ((1 + c) * (1 + u) ^ k - 1) * sumOver b xs := by grind
  rwa [e₁, e₂] at h₄

/-! ## One exponential -/

variable [Exponential R R]

/-- The exponential of a difference, both rounded, for the weight of a key or a rescaling: how far
off it may be as a factor. -/
theorem rounded_exp {u ue a b x w : R} (hue : ue < 1) (hab : a ≤ b)
    (hx : Rounded u (a - b) x) (hw : Rounded ue (exp x) w) :
    0 < w ∧ w ≤ exp (a - b) * (exp (u * (b - a)) / (1 - ue)) ∧
      exp (a - b) ≤ w * (exp (u * (b - a)) / (1 - ue)) := by
  obtain ⟨θ, hθ, rfl⟩ := hx
  obtain ⟨τ, ⟨hτ₁, hτ₂⟩, rfl⟩ := hw
  obtain ⟨h₁, h₂⟩ := AtMost.mul (a := b - a) (x := a - b) ⟨by grind, by grind⟩ hθ
  have h₃ : (exp ((a - b) * (1 + θ)) : R) ≤ exp (a - b) * exp (u * (b - a)) := by
    rw [← exp_add]
    exact exp_le (by grind)
  have h₄ : (exp (a - b) : R) ≤ exp ((a - b) * (1 + θ)) * exp (u * (b - a)) := by
    rw [← exp_add]
    exact exp_le (by grind)
  have hpos := exp_pos (R := R) ((a - b) * (1 + θ))
  have hE := exp_pos (R := R) (u * (b - a))
  have hg := exp_pos (R := R) (a - b)
  generalize (exp ((a - b) * (1 + θ)) : R) = X at *
  generalize (exp (u * (b - a)) : R) = E at *
  generalize (exp (a - b) : R) = g at *
  have hq : 0 < 1 - ue := by grind
  have e₁ : g * (E / (1 - ue)) = g * E / (1 - ue) := by grind
  have e₂ : X * (1 + τ) * (E / (1 - ue)) = X * (1 + τ) * E / (1 - ue) := by grind
  have h₅ : X * (1 - ue) ≤ X * (1 + τ) :=
    OrderedRing.mul_le_mul_of_nonneg_left (by grind) (Std.le_of_lt hpos)
  refine ⟨OrderedRing.mul_pos hpos (by grind), ?_, ?_⟩
  · rw [e₁, OrderedField.le_div_iff hq]
    have h₆ : (1 - ue) * (1 + τ) ≤ (1 - ue) * (1 + ue) :=
      OrderedRing.mul_le_mul_of_nonneg_left (by grind) (Std.le_of_lt hq)
    have h₇ := mul_self_nonneg ue
    have h₈ : X * ((1 - ue) * (1 + τ)) ≤ X * 1 :=
      OrderedRing.mul_le_mul_of_nonneg_left (by grind) (Std.le_of_lt hpos)
    grind
  · rw [e₂, OrderedField.le_div_iff hq]
    have h₆ := OrderedRing.mul_le_mul_of_nonneg_right h₅ (Std.le_of_lt hE)
    have h₇ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (Std.le_of_lt hq)
    grind

end Attention.Proof
