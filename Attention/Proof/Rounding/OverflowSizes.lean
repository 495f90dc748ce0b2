module

public import Attention.Proof.Rounding.OverflowSums
public import Attention.Proof.Rounding.Run
public import Attention.Proof.Rounding.Sum

public section

/-! # How large parts of a computation are at most

Bounds of their denominators, numerators and quotients, and of one weight. -/

namespace Attention.Proof.Overflow

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## Sizes -/

/-- How often a sum of unmasked keys' numbers `x` counts. -/
@[expose] def seen (x : ComputedKey R → R) (keys : List (ComputedKey R)) : R :=
  sumOver (fun key => ofUnmasked key.toBoundedKey (x key)) keys

/-- The growth of a part's denominator and numerator. -/
@[expose] def growth (p : Precision R) (a r : Nat) : R :=
  (1 + p.accumulation) ^ (a + r + 1)
    * ((1 + p.exponential) ^ (r + 1) * (1 + p.stored + p.storedTiny))

/-- The growth of a quotient of them. -/
@[expose] def ratio (p : Precision R) : R := (1 + p.accumulation) / (1 - p.accumulation)

/-- Not negative where the number is not. -/
theorem ofUnmasked_nonneg {key : BoundedKey R} {x : R} (hx : 0 ≤ x) :
    0 ≤ ofUnmasked key x := by
  rw [ofUnmasked]
  split
  · exact Std.le_refl _
  · exact hx

/-- A sum of numbers that are not negative. -/
theorem seen_nonneg {x : ComputedKey R → R} (hx : ∀ key, 0 ≤ x key)
    (keys : List (ComputedKey R)) : 0 ≤ seen x keys :=
  sumOver_nonneg fun key _ => ofUnmasked_nonneg (hx key)

/-- Of one key that is not masked. -/
theorem seen_single {x : ComputedKey R → R} {key : ComputedKey R} (h : key.score ≠ none) :
    seen x [key] = x key := by
  rw [seen, sumOver_cons, sumOver_nil, ofUnmasked]
  split
  · next e => exact absurd e h
  · grind

/-- The keys of parts are those of all. -/
theorem seen_flatMap (x : ComputedKey R → R) (parts : List (LimitedPart R)) :
    seen x (parts.flatMap (·.keys)) = sumOver (fun part => seen x part.keys) parts := by
  induction parts with
  | nil => rfl
  | cons part parts ih => simp only [List.flatMap_cons, seen, sumOver_append, sumOver_cons] at ih ⊢
                          rw [ih]

/-- One part has no more of them. -/
theorem seen_part_le {x : ComputedKey R → R} (hx : ∀ key, 0 ≤ x key)
    {parts : List (LimitedPart R)} {part : LimitedPart R} (h : part ∈ parts) :
    seen x part.keys ≤ seen x (parts.flatMap (·.keys)) := by
  rw [seen_flatMap]
  exact le_sumOver (f := fun part => seen x part.keys) (fun part _ => seen_nonneg hx part.keys) h

/-- A fold that only grows is at least its start and all that it takes up. -/
theorem le_foldl {α : Type v} {f : R → α → R} (h : ∀ x a, x ≤ f x a) {b : R}
    (xs : List α) : b ≤ xs.foldl f b ∧
      ∀ c : α → R, (∀ x a, c a ≤ f x a) → ∀ a ∈ xs, c a ≤ xs.foldl f b := by
  induction xs generalizing b with
  | nil => exact ⟨Std.le_refl _, fun _ _ _ h => nomatch h⟩
  | cons y ys ih =>
    obtain ⟨h₁, h₂⟩ := ih (b := f b y)
    refine ⟨Std.le_trans (h b y) h₁, fun c hc a ha => ?_⟩
    rcases List.mem_cons.mp ha with rfl | ha
    · exact Std.le_trans (hc b a) h₁
    · exact h₂ c hc a ha

/-- The larger of two numbers is at least both. -/
theorem le_max (x y : R) : x ≤ max x y ∧ y ≤ max x y := by
  rw [OrderedField.max_def]
  split
  · exact ⟨by assumption, Std.le_refl _⟩
  · exact ⟨Std.le_refl _, by grind⟩

section
variable {p : Precision R} (hp : Precise p)
include hp

/-- The errors of a precision. -/
theorem sizes : 0 ≤ p.unit ∧ 0 ≤ p.accumulation ∧ 0 ≤ p.exponential ∧ 0 ≤ p.stored ∧
    0 ≤ p.storedTiny ∧ p.exponential < 1 ∧ (0 : R) < 1 :=
  ⟨hp.unit, hp.accumulation, hp.exponential, hp.stored, hp.storedTiny, hp.exponential_lt,
    OrderedRing.zero_lt_one⟩

/-- Not negative. -/
theorem growth_nonneg (a r : Nat) : 0 ≤ growth p a r := by
  obtain ⟨-, h₁, h₂, h₃, h₄, -, h₅⟩ := sizes hp
  exact OrderedRing.mul_nonneg
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.accumulation) (by grind) _))
    (OrderedRing.mul_nonneg
      (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.exponential) (by grind) _)) (by grind))

/-- More roundings and rescalings grow more. -/
theorem growth_le {a r roundings rescalings : Nat} (h : a + r ≤ roundings)
    (hr : r ≤ rescalings) :
    growth p a r ≤ (1 + p.accumulation) ^ (roundings + 1) * weightSize p rescalings := by
  obtain ⟨-, h₁, h₂, h₃, h₄, -, h₅⟩ := sizes hp
  rw [growth, weightSize, power_eq]
  refine OrderedField.mul_le_mul
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.accumulation) (by grind) _))
    (OrderedField.pow_le_pow (by grind) (by omega))
    (OrderedRing.mul_nonneg
      (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.exponential) (by grind) _)) (by grind))
    (OrderedRing.mul_le_mul_of_nonneg_right (OrderedField.pow_le_pow (by grind) (by omega))
      (by grind))

/-- More roundings and rescalings grow more. -/
theorem growth_mono {a r a' r' : Nat} (ha : a ≤ a') (hr : r ≤ r') :
    growth p a r ≤ growth p a' r' := by
  have h := growth_le hp (a := a) (r := r) (roundings := a' + r') (rescalings := r') (by omega) hr
  rwa [weightSize, power_eq] at h

/-- No weight is larger. -/
theorem one_add_le_weightSize (rescalings : Nat) :
    1 + p.exponential ≤ weightSize p rescalings ∧
      (1 + p.exponential) * (1 + p.stored + p.storedTiny) ≤ weightSize p rescalings := by
  obtain ⟨-, h₁, h₂, h₃, h₄, -, h₅⟩ := sizes hp
  have h₆ := OrderedField.pow_le_pow (x := 1 + p.exponential) (by grind)
    (show 1 ≤ rescalings + 1 by omega)
  rw [Semiring.pow_one] at h₆
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_right h₆ (c := 1 + p.stored + p.storedTiny)
    (by grind)
  have h₈ := OrderedRing.mul_nonneg (a := 1 + p.exponential) (b := p.stored + p.storedTiny)
    (by grind) (by grind)
  rw [weightSize, power_eq]
  exact ⟨by grind, h₇⟩

end

/-- Parts are added. -/
theorem growth_join (p : Precision R) (a k r : Nat) :
    (1 + p.accumulation) ^ k * growth p a r = growth p (a + k) r := by
  rw [growth, growth, show a + k + r + 1 = k + (a + r + 1) by omega, Semiring.pow_add]
  grind

/-- A part is rescaled. -/
theorem growth_rescale (p : Precision R) (a r : Nat) :
    (1 + p.accumulation) * ((1 + p.exponential) * growth p a r) = growth p a (r + 1) := by
  rw [growth, growth, show a + (r + 1) + 1 = (a + r + 1) + 1 by omega, Semiring.pow_succ,
    Semiring.pow_succ (1 + p.exponential) (r + 1)]
  grind

/-- Powers of a larger number. -/
theorem pow_le_left {x y : R} (hx : 0 ≤ x) (h : x ≤ y) (k : Nat) :
    0 ≤ x ^ k ∧ x ^ k ≤ y ^ k := by
  induction k with
  | zero =>
    rw [Semiring.pow_zero, Semiring.pow_zero]
    exact ⟨Std.le_of_lt OrderedRing.zero_lt_one, Std.le_refl _⟩
  | succ k ih =>
    rw [Semiring.pow_succ, Semiring.pow_succ]
    exact ⟨OrderedRing.mul_nonneg ih.1 hx, OrderedField.mul_le_mul ih.1 ih.2 hx h⟩

section
variable {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
include hp ha

/-- One rounding. -/
theorem one_add_le_ratio : 1 + p.accumulation ≤ ratio p := by
  obtain ⟨-, h₁, -, -, -, -, h₅⟩ := sizes hp
  rw [ratio, OrderedField.le_div_iff (by grind)]
  have := OrderedRing.mul_nonneg (a := 1 + p.accumulation) (by grind) h₁
  grind

omit hp in
/-- A quotient of powers. -/
theorem ratio_pow (k : Nat) :
    ratio p ^ k * (1 - p.accumulation) ^ k = (1 + p.accumulation) ^ k := by
  have e : ratio p * (1 - p.accumulation) = 1 + p.accumulation := by
    have := OrderedField.mul_div_cancel (b := 1 - p.accumulation) (by grind) (1 + p.accumulation)
    rw [ratio]
    grind
  induction k with
  | zero => simp only [Semiring.pow_zero, Semiring.one_mul]
  | succ k ih =>
    rw [Semiring.pow_succ, Semiring.pow_succ, Semiring.pow_succ, ← ih, ← e]
    grind

/-- Positive. -/
theorem ratio_pos (k : Nat) : 0 < ratio p ^ k := by
  have := one_add_le_ratio hp ha
  obtain ⟨-, h₁, -, -, -, -, h₅⟩ := sizes hp
  exact OrderedField.pow_pos (by grind) k

/-- More roundings. -/
theorem ratio_mono {k n : Nat} (h : k ≤ n) : ratio p ^ k ≤ ratio p ^ n := by
  have := one_add_le_ratio hp ha
  obtain ⟨-, h₁, -, -, -, -, h₅⟩ := sizes hp
  exact OrderedField.pow_le_pow (by grind) h

end

/-- A quotient is off by one more rounding, `g`, where its part is rescaled by `b`. -/
theorem quotient_step {a g G V b l l' : R} (h : g * (1 - a) = 1 + a)
    (h' : 2 * G * V * (g * ((1 - a) * (b * l))) ≤ 2 * G * V * (g * l')) :
    (1 + a) * (b * (2 * G * V * l)) ≤ 2 * (G * g) * V * l' := by
  rw [← h]
  grind

/-- A quotient is off by as many more roundings, `g`, as its parts are added with. -/
theorem quotient_sum {g G V h S l : R}
    (h' : 2 * G * V * (g * (h * S)) ≤ 2 * G * V * (g * l)) :
    g * h * (2 * G * V * S) ≤ 2 * (G * g) * V * l := by
  grind

/-! ## One exponential and one weight -/

/-- A weight as it is stored. -/
theorem stored_le {σ η e w w' : R} (hσ : 0 ≤ σ) (hη : 0 ≤ η) (he : 0 ≤ e) (hw : 0 ≤ w)
    (hw₁ : w ≤ 1 + e) (h : Stored σ η w w') :
    0 ≤ w' ∧ w' ≤ 2 * w ∧ w' ≤ (1 + e) * (1 + σ + η) := by
  obtain ⟨⟨h₁, h₂⟩, ⟨h₃, h₄⟩⟩ := h
  rw [absolute_of_nonneg hw] at h₁ h₂ h₃ h₄
  have h₅ := OrderedRing.mul_nonneg hσ hw
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left hw₁ hσ
  have h₇ := OrderedRing.mul_nonneg he hη
  have h₈ : max (σ * w) η ≤ σ * w + η := by
    rw [OrderedField.max_def]
    split <;> grind
  exact ⟨by grind, by grind, by grind⟩

/-- A weight of 1, off by its error, is not lost where it is stored. -/
theorem stored_pos {σ η e w w' : R} (hσ : σ < 1) (he : e < 1) (hη : η < 1 - e)
    (hw : 1 - e ≤ w) (h : Stored σ η w w') : 0 < w' := by
  obtain ⟨⟨h₁, -⟩, -⟩ := h
  rw [absolute_of_nonneg (show 0 ≤ w by grind)] at h₁
  have h₂ := OrderedRing.mul_pos (a := 1 - σ) (b := w) (by grind) (by grind)
  have h₃ : max (σ * w) η < w := by
    rw [OrderedField.max_def]
    split <;> grind
  grind

variable [Exponential R R]

/-- The exponential of a difference that is not positive is in the range. -/
theorem limited_exp {u ue largest a b : R} (hu : u ≤ 1) (he₁ : ue < 1)
    (h₁ : 1 ≤ largest) (hab : a ≤ b) (hd : AtMost largest (a - b)) {x w : Option R}
    (hx : Limited largest (Rounded u) (a - b) x)
    (hw : ∀ y ∈ x, Limited largest (Rounded ue) (exp y) w) :
    ∃ y z, x = some y ∧ w = some z ∧ Rounded u (a - b) y ∧ Rounded ue (exp y) z ∧
      0 < z ∧ z ≤ 1 + ue ∧ (a = b → 1 - ue ≤ z) := by
  obtain ⟨y, rfl, hy⟩ := hx hd
  have one := OrderedRing.zero_lt_one (R := R)
  have hy₀ : y ≤ 0 := by
    obtain ⟨θ, ⟨hθ, -⟩, rfl⟩ := hy
    have := OrderedRing.mul_nonneg (a := b - a) (b := 1 + θ) (by grind) (by grind)
    grind
  have pos := exp_pos (R := R) y
  have most : (exp y : R) ≤ 1 := by
    have := exp_le (R := R) hy₀
    rwa [exp_zero] at this
  obtain ⟨z, rfl, hz⟩ := hw y rfl ⟨by grind, by grind⟩
  refine ⟨y, z, rfl, rfl, hy, hz, (rounded_exp he₁ hab hy hz).1, ?_, fun e => ?_⟩
  · have h₂ := (rounded_atMost hz (b := 1) ⟨by grind, most⟩).2
    rwa [Semiring.mul_one] at h₂
  · have e₁ : y = 0 := by
      obtain ⟨θ, -, rfl⟩ := hy
      grind
    obtain ⟨θ, ⟨hθ, -⟩, rfl⟩ := hz
    rw [e₁, exp_zero]
    grind

end Attention.Proof.Overflow
