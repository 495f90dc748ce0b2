module

public import Attention.Model.RoundedGradients
public import Attention.Proof.Rounding.Dot
public import Attention.Proof.Rounding.Majorants

public section

/-! # Sums of products of numbers that are off, within their tolerance

Over the keys of a row for dQ, over the queries for dK and dV, and over the heads that share keys.
The bounds are sums and products of what each number may be in size: `Majorants.lean`.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n : Nat}

private theorem absolute_mul (x y : R) : absolute (x * y) = absolute x * absolute y :=
  Std.le_antisymm (absolute_le ((atMost_absolute x).mul (atMost_absolute y)))
    (absolute_mul_le x y)

private theorem gradient_bound {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores k a b e f : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hk : k + 1 ≤ roundings) (hab : a + b ≤ stores)
    (hef : e + f ≤ 3) :
    (1 + p.accumulation) ^ (k + 1) * (1 + p.unit) ^ (e + f) * (1 + p.operands) ^ (a + b)
      ≤ (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
        * power (1 + p.operands) stores := by
  rw [power_eq]
  have n₁ := OrderedField.one_le_pow (one_le_one_plus hp.accumulation) (k + 1)
  have n₂ := OrderedField.one_le_pow (one_le_one_plus hp.unit) (e + f)
  have n₃ := OrderedField.one_le_pow (one_le_one_plus hp.operands) (a + b)
  exact OrderedField.mul_le_mul
    (OrderedRing.mul_nonneg (nonneg_of_one_le n₁) (nonneg_of_one_le n₂))
    (OrderedField.mul_le_mul (nonneg_of_one_le n₁) (pow_le_gamma hp.accumulation hk hc)
      (nonneg_of_one_le n₂) (pow_le_gamma hp.unit hef hu))
    (nonneg_of_one_le n₃) (OrderedField.pow_le_pow (one_le_one_plus hp.operands) hab)

/-- scale · Σ x y, where each x is off by an error of its own. -/
theorem rounded_gradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {scale z : R} {x y e : Fin n → R} {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedGradient p roundings stores scale x y z) :
    AtMost (gradientError p roundings stores scale ((List.finRange n).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨k, a, b, c, f, σ, σ', y', y'', products, sum, sum', hk, hab, hcf, rfl, hy, hy', hproducts,
    hsum, hsum', hz⟩ := h
  have hx : ∀ j, Majorised ((t j).size + (t j).error) (t j).size (x j) (e j) := fun j => by
    refine ⟨?_, (ht j).2.1⟩
    rw [show (t j).size + (t j).error - (t j).size = (t j).error by grind]
    exact (ht j).1
  have h₁ := Majorised.roundedSum hp.accumulation hsum (fun j _ => ((hx j).mul
    (((Majorised.exact ((atMost_absolute σ).mul (atMost_absolute (y j)))).roundedTimes
      (hy j)).roundedTimes (hy' j))).rounded (hproducts j))
  have h₂ := (((Majorised.exact (atMost_absolute σ')).mul (h₁.roundedTimes hsum')).roundedTimes
    hz).error
  have b₁ := gradient_bound hp hc hu hk hab hcf
  rw [gradientError, sumOver_map, absolute_mul]
  have other : ∀ j, (t j).other = y j := fun j => (ht j).2.2
  simp only [other]
  have s₁ : sumOver (fun j => ((t j).size + (t j).error)
        * (absolute σ * absolute (y j) * (1 + p.unit) ^ c * (1 + p.operands) ^ a)
        * (1 + p.accumulation)) (List.finRange n)
      = absolute σ * (1 + p.unit) ^ c * (1 + p.operands) ^ a * (1 + p.accumulation)
        * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) := by
    rw [← sumOver_mul_left]
    refine sumOver_congr fun j _ => ?_
    generalize (1 + p.operands) ^ a = q
    generalize (1 + p.unit) ^ c = q'
    generalize absolute (y j) = r
    generalize absolute σ = v
    grind
  have s₂ : sumOver (fun j => (t j).size * (absolute σ * absolute (y j))) (List.finRange n)
      = absolute σ * sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) := by
    rw [← sumOver_mul_left]
    refine sumOver_congr fun j _ => ?_
    generalize absolute (y j) = r
    generalize absolute σ = v
    grind
  have s₃ : sumOver (fun j => e j * (σ * y j)) (List.finRange n)
      = σ * sumOver (fun j => e j * y j) (List.finRange n) := by
    rw [← sumOver_mul_left]
    exact sumOver_congr fun j _ => by grind
  rw [s₁, s₂, s₃] at h₂
  have n₁ : 0 ≤ absolute σ * absolute σ'
      * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) :=
    OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (absolute_nonneg σ) (absolute_nonneg σ'))
      (sumOver_nonneg fun j _ => OrderedRing.mul_nonneg (hx j).computed.nonneg (absolute_nonneg _))
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left b₁ n₁
  have s₄ : ∀ v : R, sumOver (fun j => ((t j).error + (v - 1) * ((t j).size + (t j).error))
        * absolute (y j)) (List.finRange n)
      = v * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n)
        - sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) := fun v => by
    rw [← sumOver_mul_left, ← sumOver_sub]
    refine sumOver_congr fun j _ => ?_
    generalize absolute (y j) = r
    grind
  rw [s₄]
  rw [Semiring.pow_succ, Semiring.pow_add, Semiring.pow_add] at h₃
  clear s₁ s₂ s₃ s₄ n₁ b₁ h₁ hx other hy hy' hproducts hsum hsum' hz ht
  generalize sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) = A
    at *
  generalize sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) = B at *
  generalize sumOver (fun j => e j * y j) (List.finRange n) = E at *
  generalize (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
    * power (1 + p.operands) stores = F at *
  generalize (1 + p.accumulation) ^ k = f₁ at *
  generalize 1 + p.accumulation = f₂ at *
  generalize (1 + p.unit) ^ c = f₃ at *
  generalize (1 + p.unit) ^ f = f₆ at *
  generalize (1 + p.operands) ^ a = f₄ at *
  generalize (1 + p.operands) ^ b = f₅ at *
  generalize absolute σ = v at *
  generalize absolute σ' = v' at *
  have e₁ : σ' * (σ * E) = σ * σ' * E := by clear h₂ h₃; grind
  rw [e₁] at h₂
  refine h₂.mono ?_
  have e₂ : v' * (f₁ * (v * f₃ * f₄ * f₂ * A) * f₅) * f₆
      = v * v' * A * (f₁ * f₂ * (f₃ * f₆) * (f₄ * f₅)) := by
    clear h₂ h₃; grind
  rw [e₂]
  clear h₂ e₁ e₂
  generalize f₁ * f₂ * (f₃ * f₆) * (f₄ * f₅) = g at *
  grind

/-- **rounded-gradient-total**: a sum of products of numbers that are off by an error each and
stored, every operation rounded. -/
theorem rounded_total {a u : R} (ha : 0 ≤ a) (hu : 0 ≤ u) {roundings : Nat}
    (hc : numeral roundings * a < 1) {z : R} {x y e : Fin n → R} {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTotal a u roundings x y z) :
    AtMost (totalError a u roundings ((List.finRange n).map t))
      (z - sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨k, x', products, hk, hx', hproducts, hz⟩ := h
  have hx : ∀ j, Majorised ((t j).size + (t j).error) (t j).size (x j) (e j) := fun j => by
    refine ⟨?_, (ht j).2.1⟩
    rw [show (t j).size + (t j).error - (t j).size = (t j).error by grind]
    exact (ht j).1
  have h₁ := (Majorised.roundedSum ha hz fun j _ => (((hx j).rounded (hx' j)).mul
    (.exact (atMost_absolute (y j)))).rounded (hproducts j)).error
  have other : ∀ j, (t j).other = y j := fun j => (ht j).2.2
  rw [totalError, sumOver_map]
  simp only [other]
  refine h₁.mono ?_
  have b₁ := OrderedRing.mul_le_mul_of_nonneg_left (pow_le_gamma ha hk hc)
    (nonneg_of_one_le (one_le_one_plus hu))
  rw [Semiring.pow_succ] at b₁
  rw [← sumOver_mul_left, ← sumOver_sub]
  refine sumOver_le_sumOver fun j _ => ?_
  have n₁ : 0 ≤ ((t j).size + (t j).error) * absolute (y j) :=
    OrderedRing.mul_nonneg (hx j).computed.nonneg (absolute_nonneg _)
  have b₂ := OrderedRing.mul_le_mul_of_nonneg_left b₁ n₁
  clear h₁ hz hproducts hx' hx ht b₁ n₁ other hc
  generalize (1 + u) * (1 + gamma roundings a) = g at *
  generalize (1 + a) ^ k = f at *
  generalize 1 + a = c at *
  generalize 1 + u = v at *
  generalize absolute (y j) = w at *
  generalize (t j).size = s at *
  generalize (t j).error = r at *
  grind

end Attention.Proof
