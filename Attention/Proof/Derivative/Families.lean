module

public import Attention.Proof.Derivative.Operations

public section

/-! # The rules of differentiation, for families of paths -/

namespace Attention

open Lean.Grind Proof

universe u v w

variable {R : Type u} [OrderedField R] {ι : Type v}

/-- Below two positive numbers there is a third. -/
theorem exists_below {x y : R} (hx : 0 < x) (hy : 0 < y) : ∃ s : R, 0 < s ∧ s ≤ x ∧ s ≤ y := by
  rcases Std.le_total (a := x) (b := y) with h | h
  · exact ⟨x, hx, Std.le_refl _, h⟩
  · exact ⟨y, hy, h, Std.le_refl _⟩

namespace IsTangent

variable {f g : ι → R → R} {a b : ι → Dual R}

/-- The time may be short, so that no path gets farther than `κ`. -/
theorem within (h : IsTangent f a) {κ : R} (hκ : 0 < κ) : ∃ B τ : R, 0 < τ ∧ τ ≤ 1 ∧ 0 ≤ B
    ∧ τ * (B + B) ≤ κ ∧ ∀ x, TangentWithin B τ (f x) (a x) := by
  obtain ⟨B, τ, hτ, h⟩ := h
  have hB := mul_self_nonneg B
  have hB' : B ≤ 1 + B * B := by
    have := mul_self_nonneg (B - 1)
    grind
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have pos : 0 < 1 + B * B + (1 + B * B) := by grind
  obtain ⟨s, hs, hsτ, hs₁⟩ := exists_below hτ h₁
  obtain ⟨r, hr, hrs, hrκ⟩ := exists_below (y := κ / (1 + B * B + (1 + B * B))) hs (by
    rw [Field.div_eq_mul_inv]
    exact OrderedRing.mul_pos hκ (Field.IsOrdered.inv_pos_iff.mpr pos))
  refine ⟨1 + B * B, r, hr, Std.le_trans hrs hs₁, by grind, ?_, fun x =>
    Within.mono (h x) hB' (Std.le_trans hrs hsτ)⟩
  rw [CommSemiring.mul_comm]
  exact (OrderedField.le_div_iff pos).mp hrκ

/-- At time 0 each path is at its number. -/
theorem val_eq (h : IsTangent f a) (x : ι) : f x 0 = (a x).val := by
  obtain ⟨B, τ, hτ, h⟩ := h
  obtain ⟨h₁, h₂⟩ := (h x).2.2 0 (AtMost.zero (Std.le_of_lt hτ))
  grind

private theorem not_pos {c D s : R} (hs : 0 < s) (hD : 0 ≤ D)
    (h : ∀ r, 0 < r → r ≤ s → r * c ≤ D * (r * r)) : ¬ 0 < c := fun hc => by
  have hD' : 0 < D + 1 := by grind
  obtain ⟨r, hr, hrs, hrc⟩ := exists_below (y := c / (D + 1)) hs (by
    rw [Field.div_eq_mul_inv]
    exact OrderedRing.mul_pos hc (Field.IsOrdered.inv_pos_iff.mpr hD'))
  have h₁ := (OrderedField.le_div_iff hD').mp hrc
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ (Std.le_of_lt hr)
  have h₃ := h r hr hrs
  have h₄ := OrderedRing.mul_pos hr hr
  grind

/-- **tangent-unique**: a family of paths has no other numbers and rates. -/
theorem unique (ha : IsTangent f a) (hb : IsTangent f b) (x : ι) : a x = b x := by
  have hval := (ha.val_eq x).symm.trans (hb.val_eq x)
  refine Dual.ext hval ?_
  obtain ⟨B, σ, hσ, _, hB, _, ha⟩ := ha.within OrderedRing.zero_lt_one
  obtain ⟨C, τ, hτ, _, hC, _, hb⟩ := hb.within OrderedRing.zero_lt_one
  obtain ⟨s, hs, hsσ, hsτ⟩ := exists_below hσ hτ
  have h : ∀ r, 0 < r → r ≤ s → AtMost ((C + B) * (r * r)) (r * ((a x).der - (b x).der)) :=
    fun r hr hrs => by
      have hrt : ∀ {c : R}, r ≤ c → AtMost c r := fun h => ⟨by grind, h⟩
      have h := ((hb x).2.2 r (hrt (Std.le_trans hrs hsτ))).sub
        ((ha x).2.2 r (hrt (Std.le_trans hrs hsσ)))
      rw [hval, ← Semiring.right_distrib] at h
      have e : f x r - (b x).val - r * (b x).der - (f x r - (b x).val - r * (a x).der)
          = r * ((a x).der - (b x).der) := by grind
      rwa [e] at h
  have h₁ := not_pos hs (by grind : 0 ≤ C + B) fun r hr hrs => (h r hr hrs).2
  have h₂ := not_pos (c := (b x).der - (a x).der) hs (by grind : 0 ≤ C + B) fun r hr hrs => by
    have := (h r hr hrs).1
    grind
  grind

/-- One bound and one time for two families. -/
theorem both (hf : IsTangent f a) (hg : IsTangent g b) : ∃ B τ : R, 0 < τ ∧ τ ≤ 1
    ∧ ∀ x, TangentWithin B τ (f x) (a x) ∧ TangentWithin B τ (g x) (b x) := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨B, σ, hσ, hσ₁, hB, -, hf⟩ := hf.within h₁
  obtain ⟨C, τ, hτ, -, hC, -, hg⟩ := hg.within h₁
  obtain ⟨s, hs, hsσ, hsτ⟩ := exists_below hσ hτ
  exact ⟨B + C, s, hs, Std.le_trans hsσ hσ₁, fun x => ⟨Within.mono (hf x) (by grind) hsσ,
    Within.mono (hg x) (by grind) hsτ⟩⟩

/-- Numbers that do not change, and are bounded. -/
theorem const_of_atMost {c : ι → R} {B : R} (hc : ∀ x, AtMost B (c x)) :
    IsTangent (fun x _ => c x) (fun x => Dual.const (c x)) := by
  refine ⟨B, 1, OrderedRing.zero_lt_one, fun x => ⟨hc x, ?_, fun t _ => ?_⟩⟩
  · exact AtMost.zero (hc x).nonneg
  · have h := AtMost.zero (OrderedRing.mul_nonneg (hc x).nonneg (mul_self_nonneg t))
    have e : c x - (Dual.const (c x)).val - t * (Dual.const (c x)).der = 0 := by
      rw [Dual.val_const, Dual.der_const, Semiring.mul_zero, AddCommGroup.sub_self,
        AddCommGroup.sub_self]
    show AtMost _ (c x - (Dual.const (c x)).val - t * (Dual.const (c x)).der)
    rw [e]
    exact h

/-- A number that does not change. -/
theorem const (c : R) : IsTangent (fun (_ : ι) _ => c) (fun _ => Dual.const c) :=
  const_of_atMost (B := 1 + c * c) fun _ => by
    have := mul_self_nonneg (c - 1)
    have := mul_self_nonneg (c + 1)
    have := mul_self_nonneg c
    exact ⟨by grind, by grind⟩

/-- 0. -/
theorem zero : IsTangent (fun (_ : ι) _ => (0 : R)) (fun _ => 0) := const 0

/-- 1. -/
theorem one : IsTangent (fun (_ : ι) _ => (1 : R)) (fun _ => 1) := const 1

/-- The sum rule. -/
theorem add (hf : IsTangent f a) (hg : IsTangent g b) :
    IsTangent (fun x t => f x t + g x t) (fun x => a x + b x) := by
  obtain ⟨B, τ, hτ, _, h⟩ := hf.both hg
  exact ⟨B + B, τ, hτ, fun x => Within.add (h x).1 (h x).2⟩

/-- The rule for differences. -/
theorem sub (hf : IsTangent f a) (hg : IsTangent g b) :
    IsTangent (fun x t => f x t - g x t) (fun x => a x - b x) := by
  obtain ⟨B, τ, hτ, _, h⟩ := hf.both hg
  exact ⟨B + B, τ, hτ, fun x => Within.sub (h x).1 (h x).2⟩

/-- The product rule. -/
theorem mul (hf : IsTangent f a) (hg : IsTangent g b) :
    IsTangent (fun x t => f x t * g x t) (fun x => a x * b x) := by
  obtain ⟨B, τ, hτ, h₁, h⟩ := hf.both hg
  exact ⟨6 * (B * B), τ, hτ, fun x => Within.mul h₁ (h x).1 (h x).2⟩

/-- The quotient rule, for divisors that are at least `m` at time 0. -/
theorem div (hf : IsTangent f a) (hg : IsTangent g b) {m : R} (hm : 0 < m)
    (hb : ∀ x, m ≤ (b x).val) : IsTangent (fun x t => f x t / g x t) (fun x => a x / b x) := by
  obtain ⟨B, τ, hτ, h₁, _, hκ, h⟩ := hg.within (κ := m / 2) (by grind)
  have hi : IsTangent (fun x t => (g x t)⁻¹) (fun x => Within.inverse (b x)) :=
    ⟨_, τ, hτ, fun x => Within.inv hm (Field.mul_inv_cancel (by grind)) h₁ hκ (h x) (hb x)⟩
  have := hf.mul hi
  have e : (fun x => a x / b x) = fun x => a x * Within.inverse (b x) :=
    funext fun x => Within.div_eq (by have := hb x; grind)
  rw [e]
  simp only [Field.div_eq_mul_inv]
  exact this

/-- The rectified linear unit, of what is at least `m` away from 0 at time 0. -/
theorem relu (hf : IsTangent f a) {m : R} (hm : 0 < m)
    (ha : ∀ x, m ≤ (a x).val ∨ (a x).val ≤ -m) :
    IsTangent (fun x t => max 0 (f x t)) (fun x => max 0 (a x)) := by
  obtain ⟨B, τ, hτ, h₁, _, hκ, h⟩ := hf.within (κ := m / 2) (by grind)
  exact ⟨B, τ, hτ, fun x => Within.relu hm h₁ hκ (h x) (ha x)⟩

/-- A square root, of what is at least `m` at time 0. -/
theorem root (hf : IsTangent f a) {sqrt : R → R}
    (hsqrt : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) {m : R} (hm : 0 < m)
    (ha : ∀ x, m ≤ (a x).val) :
    IsTangent (fun x t => sqrt (f x t)) (fun x => Dual.root sqrt (a x)) := by
  obtain ⟨k, hk, hkm, hk₁⟩ := exists_below hm (OrderedRing.zero_lt_one (R := R))
  have hkk := OrderedRing.mul_pos hk hk
  have hkk' := OrderedRing.mul_le_mul_of_nonneg_left hk₁ (Std.le_of_lt hk)
  obtain ⟨B, τ, hτ, h₁, _, hκ, h⟩ := hf.within (κ := k * k / 2) (by grind)
  exact ⟨_, τ, hτ, fun x => Within.root hsqrt hk (Field.mul_inv_cancel (by grind)) h₁ hκ (h x)
    (by have := ha x; grind)⟩

/-- The exponential. -/
theorem exp [NaturalExp R] (hf : IsTangent f a) :
    IsTangent (fun x t => Attention.exp (f x t)) (fun x => Attention.exp (a x)) := by
  obtain ⟨B, τ, hτ, h₁, _, hκ, h⟩ := hf.within OrderedRing.zero_lt_one
  exact ⟨_, τ, hτ, fun x => Within.exp h₁ hκ (h x)⟩

/-- A logarithm, of what is at least `m` at time 0. -/
theorem log [NaturalExp R] (hf : IsTangent f a) {m : R} (hm : 0 < m) (ha : ∀ x, m ≤ (a x).val)
    (hg : ∀ x t, Attention.exp (g x t) = f x t) (hb : ∀ x, Attention.exp (b x) = a x) :
    IsTangent g b := by
  obtain ⟨B, τ, hτ, h₁, _, hκ, h⟩ := hf.within (κ := m / 2) (by grind)
  exact ⟨_, τ, hτ, fun x => Within.log hm (Field.mul_inv_cancel (by grind)) h₁ hκ (h x) (ha x)
    (hg x) (hb x)⟩

/-- A sum of finitely many. -/
theorem sumOver {α : Type w} {f : α → ι → R → R} {a : α → ι → Dual R} {xs : List α}
    (h : ∀ k ∈ xs, IsTangent (f k) (a k)) :
    IsTangent (fun x t => Attention.sumOver (fun k => f k x t) xs)
      (fun x => Attention.sumOver (fun k => a k x) xs) := by
  induction xs with
  | nil => exact zero
  | cons k xs ih => exact (h k (by simp)).add (ih fun j hj => h j (by simp [hj]))

end IsTangent

end Attention
