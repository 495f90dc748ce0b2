module

public import Attention.Model.RoundedScores
public import Attention.Proof.Rounding.Gamma

public section

/-! # Inner products that round

The error of an inner product of operands that may each have been multiplied by a part of the scale,
rounded and stored in a format of their own.
Source: docs/tolerances.md, section 1; Higham 2002, "Accuracy and Stability of Numerical
Algorithms", section 3.1. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- `magnitude` bounds the inner product. -/
theorem dot_atMost_magnitude {d : Nat} (q k : Vec R d) : AtMost (magnitude q k) (Vec.dot q k) := by
  refine sumOver_atMost fun i _ => ?_
  simp only [Fin.getElem_fin, Vec.getElem_map]
  exact (atMost_absolute _).mul (atMost_absolute _)

/-- |x y| = |x| |y|, one way. -/
theorem absolute_mul_le (x y : R) : absolute x * absolute y ≤ absolute (x * y) := by
  have h₁ := atMost_absolute (x * y)
  have h₂ : absolute x = x ∨ absolute x = -x := by
    rw [absolute, OrderedField.max_def]
    split <;> grind
  have h₃ : absolute y = y ∨ absolute y = -y := by
    rw [absolute, OrderedField.max_def]
    split <;> grind
  obtain ⟨h₄, h₅⟩ := h₁
  rcases h₂ with h₂ | h₂ <;> rcases h₃ with h₃ | h₃ <;> rw [h₂, h₃] <;> grind

/-- |x y| = |x| |y|. -/
theorem absolute_mul (x y : R) : absolute (x * y) = absolute x * absolute y :=
  Std.le_antisymm (absolute_le ((atMost_absolute x).mul (atMost_absolute y)))
    (absolute_mul_le x y)

/-- The sizes of products of two vectors. -/
theorem magnitude_eq_sum {d : Nat} (x y : Vec R d) :
    magnitude x y = sumOver (fun i : Fin d => absolute x[i] * absolute y[i]) (List.finRange d) := by
  rw [magnitude, Vec.dot]
  exact sumOver_congr fun i _ => by simp

/-- Two relative errors in a row. -/
theorem factor_mul {A B s t : R} (hs : AtMost (A - 1) (s - 1))
    (ht : AtMost (B - 1) (t - 1)) : AtMost (A * B - 1) (s * t - 1) := by
  have h₁ := (AtMost.mul hs ht).add (hs.add ht)
  have e₁ : (s - 1) * (t - 1) + (s - 1 + (t - 1)) = s * t - 1 := by grind
  have e₂ : (A - 1) * (B - 1) + (A - 1 + (B - 1)) = A * B - 1 := by grind
  rwa [e₁, e₂] at h₁

/-- One rounding is a factor. -/
theorem rounded_factor {u x y : R} (h : Rounded u x y) :
    ∃ t, y = x * t ∧ AtMost (1 + u - 1) (t - 1) := by
  obtain ⟨θ, hθ, rfl⟩ := h
  have e₁ : 1 + u - 1 = u := by grind
  have e₂ : 1 + θ - 1 = θ := by grind
  exact ⟨1 + θ, rfl, by rwa [e₁, e₂]⟩

/-- Numerals are added as the numbers are. -/
theorem numeral_add (m n : Nat) : (numeral (m + n) : R) = numeral m + numeral n := by
  induction n with
  | zero => rw [Nat.add_zero, show (numeral 0 : R) = 0 from rfl, Semiring.add_zero]
  | succ n ih =>
    rw [← Nat.add_assoc, numeral_succ, numeral_succ, ih]
    grind

/-- Numerals are ordered as their numbers are. -/
theorem numeral_le_numeral {n r : Nat} (h : n ≤ r) : (numeral n : R) ≤ numeral r := by
  induction h with
  | refl => exact Std.le_refl _
  | step _ ih =>
    rw [numeral_succ]
    have := OrderedRing.zero_lt_one (R := R)
    grind

private theorem absolute_factor_le {A t : R} (h : AtMost (A - 1) (t - 1)) :
    AtMost A t := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨by have := h.1; grind, by have := h.2; grind⟩

/-- A scaled operand is off by a relative error of at most ((1 + u) (1 + u_op))ᵏ − 1, and by k η_op
times as much. -/
theorem storedTimes_near {p : Precision R} {f : ScoreFormats R}
    (hB : 1 ≤ (1 + p.unit) * (1 + f.operands)) (hη : 0 ≤ f.operandsTiny) {k : Nat} {x y : R}
    (h : StoredTimes p f k x y) :
    ∃ t δ, y = x * t + δ ∧ AtMost (((1 + p.unit) * (1 + f.operands)) ^ k - 1) (t - 1) ∧
      AtMost (numeral k * f.operandsTiny * ((1 + p.unit) * (1 + f.operands)) ^ k) δ := by
  induction k generalizing y with
  | zero =>
    refine ⟨1, 0, ?_, ?_, ?_⟩
    · rw [Semiring.mul_one, Semiring.add_zero]
      exact h
    · rw [Semiring.pow_zero]
      exact ⟨by grind, by grind⟩
    · rw [show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul, Semiring.zero_mul]
      exact .zero (Std.le_refl _)
  | succ k ih =>
    obtain ⟨z, w, hz, hw, v, hv, hy⟩ := h
    obtain ⟨t, δ, rfl, ht, hδ⟩ := ih hz
    obtain ⟨t₁, rfl, ht₁⟩ := rounded_factor hw
    obtain ⟨t₂, rfl, ht₂⟩ := rounded_factor hv
    have hf := factor_mul ht₁ ht₂
    have hP := OrderedField.one_le_pow hB k
    refine ⟨t * (t₁ * t₂), δ * (t₁ * t₂) + (y - (x * t + δ) * t₁ * t₂), by grind, ?_, ?_⟩
    · rw [Semiring.pow_succ]
      exact factor_mul ht hf
    · have h₁ := (hδ.mul (absolute_factor_le hf)).add hy
      refine h₁.mono ?_
      rw [numeral_succ, Semiring.pow_succ]
      generalize ((1 + p.unit) * (1 + f.operands)) ^ k = P at *
      generalize (1 + p.unit) * (1 + f.operands) = B at *
      have h₂ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt OrderedRing.zero_lt_one) hP
        (c := 1) (Std.le_of_lt OrderedRing.zero_lt_one) hB
      have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₂ hη
      grind

/-- Where no scaled operand is below the normal numbers, its error is a relative one. -/
theorem storedTimes_factor {p : Precision R} {f : ScoreFormats R}
    (hB : 1 ≤ (1 + p.unit) * (1 + f.operands)) (hη : f.operandsTiny = 0) {k : Nat} {x y : R}
    (h : StoredTimes p f k x y) :
    ∃ t, y = x * t ∧ AtMost (((1 + p.unit) * (1 + f.operands)) ^ k - 1) (t - 1) := by
  obtain ⟨t, δ, e, ht, hδ⟩ := storedTimes_near hB (by rw [hη]; exact Std.le_refl _) h
  rw [hη, Semiring.mul_zero, Semiring.zero_mul] at hδ
  exact ⟨t, by have := hδ.1; have := hδ.2; grind, ht⟩

/-- The product of two scaled operands. -/
theorem storedTimes_product {p : Precision R} {f : ScoreFormats R}
    (hB : 1 ≤ (1 + p.unit) * (1 + f.operands)) (hη : 0 ≤ f.operandsTiny) {a b r : Nat}
    (hab : a + b ≤ r) {x y x' y' : R} (hx : StoredTimes p f a x x') (hy : StoredTimes p f b y y') :
    ∃ t δ, x' * y' = x * y * t + δ ∧ AtMost (((1 + p.unit) * (1 + f.operands)) ^ r - 1) (t - 1) ∧
      AtMost (((1 + p.unit) * (1 + f.operands)) ^ r * (numeral r * f.operandsTiny
        * (absolute x + absolute y + numeral r * f.operandsTiny))) δ := by
  obtain ⟨t, δ, rfl, ht, hδ⟩ := storedTimes_near hB hη hx
  obtain ⟨s, ε, rfl, hs, hε⟩ := storedTimes_near hB hη hy
  have counts : ∀ n : Nat, n ≤ r → numeral n * f.operandsTiny ≤ numeral r * f.operandsTiny :=
    fun n hn => OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral hn) hη
  have hA := OrderedField.one_le_pow hB a
  have hB' := OrderedField.one_le_pow hB b
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hδ := hδ.mono (OrderedRing.mul_le_mul_of_nonneg_right (counts a (by omega))
    (c := ((1 + p.unit) * (1 + f.operands)) ^ a) (by grind))
  have hε := hε.mono (OrderedRing.mul_le_mul_of_nonneg_right (counts b (by omega))
    (c := ((1 + p.unit) * (1 + f.operands)) ^ b) (by grind))
  have hr := OrderedField.pow_le_pow hB hab
  rw [Semiring.pow_add] at hr
  have hτ : 0 ≤ numeral r * f.operandsTiny := OrderedRing.mul_nonneg (numeral_nonneg (R := R) r) hη
  have ht' := absolute_factor_le ht
  have hs' := absolute_factor_le hs
  refine ⟨t * s, x * t * ε + δ * (y * s) + δ * ε, by grind,
    (factor_mul ht hs).mono (by grind), ?_⟩
  have h₁ := ((((atMost_absolute x).mul ht').mul hε).add (hδ.mul ((atMost_absolute y).mul hs'))).add
    (hδ.mul hε)
  refine h₁.mono ?_
  have hx₀ := absolute_nonneg x
  have hy₀ := absolute_nonneg y
  clear h₁ hδ hε ht hs ht' hs' counts
  generalize numeral r * f.operandsTiny = τ at *
  generalize absolute x = X at *
  generalize absolute y = Y at *
  generalize ((1 + p.unit) * (1 + f.operands)) ^ a = A at *
  generalize ((1 + p.unit) * (1 + f.operands)) ^ b = B at *
  generalize ((1 + p.unit) * (1 + f.operands)) ^ r = C at *
  have h₂ := OrderedRing.mul_nonneg hτ (b := X + Y + τ) (by grind)
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hr h₂
  grind

/-- The error of an inner product of numbers that are off by a relative error of at most B − 1
together, and by `g` besides: d products, added in any order in a tree of depth `n`. Higham 2002,
section 3.1. -/
theorem rounded_dot {a B c : R} (ha : 0 ≤ a) {d n : Nat} {q k : Vec R d} {products g : Fin d → R}
    {z : R} (hp : ∀ i : Fin d, ∃ t δ, products i = c * (q[i] * k[i]) * t + δ ∧
      AtMost (B - 1) (t - 1) ∧ AtMost (g i) δ)
    (hz : RoundedSum a n ((List.finRange d).map products) z) :
    AtMost ((B * (1 + a) ^ n - 1) * (absolute c * magnitude q k)
        + (1 + a) ^ n * sumOver g (List.finRange d)) (z - c * Vec.dot q k) := by
  have one : ∀ i : Fin d, AtMost (absolute c * (absolute q[i] * absolute k[i]))
      (c * (q[i] * k[i])) := fun i =>
    (atMost_absolute c).mul ((atMost_absolute q[i]).mul (atMost_absolute k[i]))
  have term : ∀ i : Fin d,
      AtMost ((B - 1) * (absolute c * (absolute q[i] * absolute k[i])) + g i)
        (products i - c * (q[i] * k[i])) := fun i => by
    obtain ⟨t, δ, h, ht, hδ⟩ := hp i
    rw [h, show c * (q[i] * k[i]) * t + δ - c * (q[i] * k[i])
      = (t - 1) * (c * (q[i] * k[i])) + δ by grind]
    exact (ht.mul (one i)).add hδ
  have off : AtMost ((B - 1) * (absolute c * magnitude q k) + sumOver g (List.finRange d))
      (sumOver products (List.finRange d) - c * Vec.dot q k) := by
    have h := sumOver_error (xs := List.finRange d) fun i _ => term i
    rw [sumOver_add, sumOver_mul_left, sumOver_mul_left, sumOver_mul_left] at h
    rw [magnitude, Vec.dot, Vec.dot]
    simpa only [Fin.getElem_fin, Vec.getElem_map] using h
  have size : sumOver absolute ((List.finRange d).map products)
      ≤ B * (absolute c * magnitude q k) + sumOver g (List.finRange d) := by
    have h := sumOver_le_sumOver (xs := List.finRange d) (f := fun i => absolute (products i))
      (g := fun i => B * (absolute c * (absolute q[i] * absolute k[i])) + g i) fun i _ => by
        have h₁ := absolute_le ((term i).add (one i))
        have e : products i - c * (q[i] * k[i]) + c * (q[i] * k[i]) = products i := by grind
        rw [e] at h₁
        have e' : ∀ x y : R, (B - 1) * x + y + x = B * x + y := fun x y => by grind
        rw [e'] at h₁
        exact h₁
    rw [sumOver_add, sumOver_mul_left, sumOver_mul_left] at h
    rw [sumOver_map, magnitude, Vec.dot]
    simpa only [Fin.getElem_fin, Vec.getElem_map] using h
  have h := (roundedSum_error ha hz).add off
  have e : sumOver id ((List.finRange d).map products) = sumOver products (List.finRange d) :=
    sumOver_map ..
  rw [e, show z - sumOver products (List.finRange d)
    + (sumOver products (List.finRange d) - c * Vec.dot q k) = z - c * Vec.dot q k by grind] at h
  refine h.mono ?_
  have hA : 0 ≤ (1 + a) ^ n - 1 := by
    have := OrderedField.one_le_pow (x := 1 + a) (by grind) n
    grind
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left size hA
  clear h e off size hp hz one term
  generalize (1 + a) ^ n = A at *
  generalize absolute c * magnitude q k = M at *
  grind

end Attention.Proof
