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

/-- A scaled operand is off by a relative error of at most ((1 + u) (1 + u_op))ᵏ − 1. -/
theorem storedTimes_factor {p : Precision R} {f : ScoreFormats R} {k : Nat} {x y : R}
    (h : StoredTimes p f k x y) :
    ∃ t, y = x * t ∧ AtMost (((1 + p.unit) * (1 + f.operands)) ^ k - 1) (t - 1) := by
  induction k generalizing y with
  | zero =>
    refine ⟨1, ?_, ?_⟩
    · rw [Semiring.mul_one]
      exact h
    · rw [Semiring.pow_zero]
      exact ⟨by grind, by grind⟩
  | succ k ih =>
    obtain ⟨z, w, hz, hw, hy⟩ := h
    obtain ⟨t, rfl, ht⟩ := ih hz
    obtain ⟨t₁, rfl, ht₁⟩ := rounded_factor hw
    obtain ⟨t₂, rfl, ht₂⟩ := rounded_factor hy
    refine ⟨t * (t₁ * t₂), by grind, ?_⟩
    rw [Semiring.pow_succ]
    exact factor_mul ht (factor_mul ht₁ ht₂)

/-- The error of an inner product of numbers that are off by a relative error of at most B − 1
together: d products, added in any order in a tree of depth `n`. Higham 2002, section 3.1. -/
theorem rounded_dot {a B c : R} (ha : 0 ≤ a) {d n : Nat} {q k : Vec R d} {products : Fin d → R}
    {z : R} (hp : ∀ i : Fin d, ∃ t, products i = c * (q[i] * k[i]) * t ∧ AtMost (B - 1) (t - 1))
    (hz : RoundedSum a n ((List.finRange d).map products) z) :
    AtMost ((B * (1 + a) ^ n - 1) * (absolute c * magnitude q k)) (z - c * Vec.dot q k) := by
  have one : ∀ i : Fin d, AtMost (absolute c * (absolute q[i] * absolute k[i]))
      (c * (q[i] * k[i])) := fun i =>
    (atMost_absolute c).mul ((atMost_absolute q[i]).mul (atMost_absolute k[i]))
  have term : ∀ i ∈ List.finRange d,
      AtMost ((B - 1) * (absolute c * (absolute q[i] * absolute k[i])))
        (products i - c * (q[i] * k[i])) := fun i _ => by
    obtain ⟨t, h, ht⟩ := hp i
    rw [h, show c * (q[i] * k[i]) * t - c * (q[i] * k[i]) = (t - 1) * (c * (q[i] * k[i])) by grind]
    exact ht.mul (one i)
  have h := roundedSum_map_error ha hz term fun i _ => one i
  rw [sumOver_mul_left, sumOver_mul_left, show 1 + (B - 1) = B by grind] at h
  rw [magnitude, Vec.dot, Vec.dot]
  simpa only [Fin.getElem_fin, Vec.getElem_map] using h

end Attention.Proof
