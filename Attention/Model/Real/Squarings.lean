module

public import Attention.Model.Real.Cauchy

public section

/-! # The rational numbers (1 + q / 2^k)^(2^k)

They are made by k squarings. For q between −B and B and k large they are bounded, they change by at
most a constant times what q changes, and, since
(1 + q / 2^(k+1))² = 1 + (q + q² / 2^(k+2)) / 2^k, they change little with k. -/

namespace Attention.Model

open Lean.Grind

/-- a^(2^k), by k squarings. -/
def squared : Nat → Rat → Rat
  | 0, a => a
  | k + 1, a => squared k a * squared k a

/-- Two to the power k, as a rational. -/
def twoPow : Nat → Rat
  | 0 => 1
  | k + 1 => 2 * twoPow k

/-- (1 + q / 2^k)^(2^k). -/
def expStep (k : Nat) (q : Rat) : Rat := squared k (1 + q / twoPow k)

/-! ## Powers of two -/

/-- 2^0 = 1. -/
theorem twoPow_zero : twoPow 0 = 1 := (rfl)

/-- The next power of two. -/
theorem twoPow_succ (k : Nat) : twoPow (k + 1) = 2 * twoPow k := (rfl)

/-- 2^k is at least k + 1. -/
theorem le_twoPow (k : Nat) : (k : Rat) + 1 ≤ twoPow k := by
  induction k with
  | zero => rw [twoPow]; grind
  | succ k ih => rw [twoPow]; grind

/-- 2^k is positive. -/
theorem twoPow_pos (k : Nat) : 0 < twoPow k := by
  have := le_twoPow k
  grind

/-- 2^k grows with k. -/
theorem twoPow_le {k n : Nat} (h : k ≤ n) : twoPow k ≤ twoPow n := by
  induction h with
  | refl => exact Std.le_refl _
  | step _ ih => rw [twoPow]; have := twoPow_pos k; grind

/-- 2^k exceeds every number from some k on. -/
theorem eventually_le_twoPow (q : Rat) : Eventually fun k => q ≤ twoPow k := by
  obtain ⟨N, hN⟩ := exists_le_natCast q
  refine ⟨N, fun k hk => ?_⟩
  have h₁ := le_twoPow N
  have h₂ := twoPow_le hk
  grind

/-- q / 2^k becomes as small as one likes. -/
theorem eventually_div_twoPow_le (q : Rat) {ε : Rat} (hε : 0 < ε) :
    Eventually fun k => q / twoPow k ≤ ε := (eventually_le_twoPow (q / ε)).mono fun k hk => by
  have h := (OrderedField.div_le_iff hε).mp hk
  exact (OrderedField.div_le_iff (twoPow_pos k)).mpr (by grind)

/-! ## Squarings -/

/-- A power of a product is a product of powers. -/
theorem squared_mul (k : Nat) (a b : Rat) : squared k (a * b) = squared k a * squared k b := by
  induction k with
  | zero => rfl
  | succ k ih => rw [squared, ih, squared, squared]; grind

/-- One squaring more may be done first. -/
theorem squared_succ (k : Nat) (a : Rat) : squared (k + 1) a = squared k (a * a) := by
  rw [squared_mul, squared]

/-- A power of a number that is not negative. -/
theorem squared_nonneg (k : Nat) {a : Rat} (ha : 0 ≤ a) : 0 ≤ squared k a := by
  cases k with
  | zero => exact ha
  | succ k => exact mul_self_nonneg _

/-- A power of a positive number. -/
theorem squared_pos (k : Nat) {a : Rat} (ha : 0 < a) : 0 < squared k a := by
  induction k with
  | zero => exact ha
  | succ k ih => exact OrderedRing.mul_pos ih ih

/-- A larger number has a larger power. -/
theorem squared_le (k : Nat) {a b : Rat} (ha : 0 ≤ a) (hab : a ≤ b) :
    squared k a ≤ squared k b := by
  induction k with
  | zero => exact hab
  | succ k ih =>
    have h := squared_nonneg k ha
    exact Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left ih h)
      (OrderedRing.mul_le_mul_of_nonneg_right ih (Std.le_trans h ih))

/-- The powers of 1. -/
theorem squared_one (k : Nat) : squared k 1 = 1 := by
  induction k with
  | zero => rfl
  | succ k ih => rw [squared, ih]; grind

/-- How much a power changes with its base, below a bound c that is at least 1. -/
theorem squared_sub_le (k : Nat) {a b c : Rat} (ha : 0 ≤ a) (hab : a ≤ b) (hbc : b ≤ c)
    (hc : 1 ≤ c) : squared k b - squared k a ≤ twoPow k * (b - a) * squared k c := by
  induction k with
  | zero =>
    have := OrderedRing.mul_nonneg (a := b - a) (b := c - 1) (by grind) (by grind)
    simp only [squared, twoPow]
    grind
  | succ k ih =>
    have h₀ := squared_nonneg k ha
    have h₁ := squared_le k ha hab
    have h₂ := squared_le k (Std.le_trans ha hab) hbc
    simp only [squared, twoPow]
    generalize squared k a = x at *
    generalize squared k b = y at *
    generalize squared k c = z at *
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_right ih (c := y + x) (by grind)
    have h₄ := OrderedRing.mul_nonneg (a := twoPow k * (b - a) * z) (b := z + z - (y + x))
      (Std.le_trans (by grind : 0 ≤ y - x) ih) (by grind)
    have e : 2 * twoPow k * (b - a) = 2 * (twoPow k * (b - a)) := by grind
    rw [e]
    generalize twoPow k * (b - a) = t at *
    grind

/-! ## Steps -/

/-- The base of a step is not negative, if −2^k ≤ q. -/
theorem base_nonneg {k : Nat} {q : Rat} (h : -q ≤ twoPow k) : 0 ≤ 1 + q / twoPow k := by
  have h₁ := (OrderedField.div_le_iff (twoPow_pos k) (a := 1) (c := -q)).mpr (by grind)
  grind

/-- The base of a step grows with q. -/
theorem base_le (k : Nat) {p q : Rat} (h : p ≤ q) : 1 + p / twoPow k ≤ 1 + q / twoPow k := by
  have hT := twoPow_pos k
  have e := OrderedField.mul_div_cancel (b := twoPow k) (by grind) q
  have := (OrderedField.div_le_iff hT (c := p) (a := q / twoPow k)).mpr (by rwa [e])
  grind

/-- A step at 0. -/
theorem expStep_zero (k : Nat) : expStep k 0 = 1 := by
  have e : 1 + 0 / twoPow k = 1 := by grind
  rw [expStep, e, squared_one]

/-- The product of two steps is a step. -/
theorem expStep_mul (k : Nat) (p q : Rat) :
    expStep k p * expStep k q = expStep k (p + q + p * q / twoPow k) := by
  have := twoPow_pos k
  rw [expStep, expStep, expStep, ← squared_mul]
  congr 1
  grind

/-- The next step is a step from a little further on. -/
theorem expStep_succ (k : Nat) (q : Rat) :
    expStep (k + 1) q = expStep k (q + q * q / (4 * twoPow k)) := by
  have := twoPow_pos k
  rw [expStep, expStep, squared_succ, twoPow]
  congr 1
  grind

/-- A step is monotone. -/
theorem expStep_le {k : Nat} {p q : Rat} (hp : -p ≤ twoPow k) (hpq : p ≤ q) :
    expStep k p ≤ expStep k q :=
  squared_le k (base_nonneg hp) (base_le k hpq)

/-- The steps increase with k. -/
theorem expStep_le_expStep {k n : Nat} (hkn : k ≤ n) {q : Rat} (hq : -q ≤ twoPow k) :
    expStep k q ≤ expStep n q := by
  induction hkn with
  | refl => exact Std.le_refl _
  | @step n hkn ih =>
    refine Std.le_trans ih ?_
    rw [expStep_succ]
    refine expStep_le (Std.le_trans hq (twoPow_le hkn)) ?_
    have := OrderedField.div_nonneg (mul_self_nonneg q) (b := 4 * twoPow n)
      (by have := twoPow_pos n; grind)
    grind

/-- Every step but the first lies above the tangent at 0. -/
theorem one_add_le_expStep {k : Nat} (hk : 1 ≤ k) (q : Rat) : 1 + q ≤ expStep k q := by
  by_cases hq : -q ≤ 1
  · have h := expStep_le_expStep (Nat.zero_le k) (q := q) hq
    have e : expStep 0 q = 1 + q := by
      simp only [expStep, squared, twoPow]
      grind
    rwa [e] at h
  · obtain ⟨k, rfl⟩ := Nat.exists_eq_succ_of_ne_zero (Nat.ne_of_gt hk)
    have h : 0 ≤ expStep (k + 1) q := mul_self_nonneg _
    exact Std.le_trans (by grind) h

/-- For each B, the steps from −B to B have one bound, from some k on. -/
theorem expStep_bounded (B : Rat) : ∃ C, 0 ≤ C ∧ Eventually fun k => expStep k B ≤ C := by
  obtain ⟨N, hN⟩ := (eventually_le_twoPow (2 * B)).and (eventually_le_twoPow (-B))
  have hbase : 0 < 1 + -B / twoPow N := by
    have h₁ := (OrderedField.div_le_iff (twoPow_pos N) (a := 1 / 2) (c := B)).mpr
      (by have := (hN N (Nat.le_refl N)).1; grind)
    grind
  have hc : 0 < expStep N (-B) := squared_pos N hbase
  refine ⟨1 / expStep N (-B), OrderedField.div_nonneg (by grind) hc, N, fun k hk => ?_⟩
  refine (OrderedField.le_div_iff hc).mpr ?_
  have h₁ : expStep N (-B) ≤ expStep k (-B) :=
    expStep_le_expStep hk (by have := (hN N (Nat.le_refl N)).1; have := twoPow_pos N; grind)
  have h₂ : 0 ≤ expStep k B := squared_nonneg k (base_nonneg (hN k hk).2)
  refine Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right h₁ h₂) ?_
  have h₃ : expStep k (-B) * expStep k B ≤ expStep k 0 := by
    rw [expStep_mul]
    have h₄ := OrderedField.div_nonneg (mul_self_nonneg B) (twoPow_pos k)
    have h₅ : B * B / twoPow k ≤ twoPow k := by
      refine (OrderedField.div_le_iff (twoPow_pos k)).mpr ?_
      have := hN k hk
      have := OrderedRing.mul_nonneg (a := twoPow k - B) (b := twoPow k + B) (by grind) (by grind)
      grind
    exact expStep_le (by grind) (by grind)
  rwa [expStep_zero] at h₃

/-- How much a step changes with q, between −B and B. -/
theorem expStep_sub_le {k : Nat} {B C p q δ : Rat} (hB : 0 ≤ B) (hk : B ≤ twoPow k)
    (hC : expStep k B ≤ C) (hp : AtMost B p) (hq : AtMost B q) (hδ : 0 ≤ δ) (h : q - p ≤ δ) :
    expStep k q - expStep k p ≤ C * δ := by
  have hT := twoPow_pos k
  have hC₀ : 0 ≤ C := Std.le_trans (squared_nonneg k (base_nonneg (by grind))) hC
  obtain ⟨hp₁, hp₂⟩ := hp
  obtain ⟨hq₁, hq₂⟩ := hq
  rcases Std.le_total (a := p) (b := q) with hpq | hqp
  · have h₁ := squared_sub_le k (base_nonneg (by grind : -p ≤ twoPow k)) (base_le k hpq)
      (base_le k hq₂)
      (by have := OrderedField.div_nonneg hB hT; grind)
    have e : twoPow k * (1 + q / twoPow k - (1 + p / twoPow k)) = q - p := by grind
    rw [e] at h₁
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_left hC (c := q - p) (by grind)
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_left h hC₀
    simp only [expStep] at *
    grind
  · have h₁ := expStep_le (k := k) (by grind : -q ≤ twoPow k) hqp
    have h₂ := OrderedRing.mul_nonneg hC₀ hδ
    grind

end Attention.Model
