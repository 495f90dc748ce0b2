module

public import Attention.Proof.Rounding.FlushedSums

public section

/-! # Sums of products of numbers that are off, within their tolerance

Over the keys of a row for dQ, over the queries for dK and dV, and over the heads that share keys.
The bounds are sums and products of what each number may be in size: `Majorants.lean`.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n : Nat}

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

/-- What is lost on the way, E and H before the sum, E' and H' after it, meets no more than all
factors of errors. -/
private theorem lost_bound {f₁ f₂ f₃ f₄ f₅ f₆ v g S N E H E' H' : R} (h₁ : 1 ≤ f₁) (h₂ : 1 ≤ f₂)
    (h₃ : 1 ≤ f₃) (h₄ : 1 ≤ f₄) (h₅ : 1 ≤ f₅) (h₆ : 1 ≤ f₆) (hv : 0 ≤ v) (hg : v ≤ g) (h1 : 1 ≤ g)
    (hS : 0 ≤ S) (hN : 0 ≤ N) (hE : 0 ≤ E) (hH : 0 ≤ H) (hE' : 0 ≤ E') (hH' : 0 ≤ H') :
    f₆ * (v * (f₅ * (f₁ * (f₄ * (f₃ * E + H) * f₂ * S + N) + H')) + E')
      ≤ f₁ * f₂ * (f₃ * f₆) * (f₄ * f₅) * g * ((E + H) * S + (H' + E') + N) := by
  have n₁ := nonneg_of_one_le h₁
  have n₂ := nonneg_of_one_le h₂
  have n₃ := nonneg_of_one_le h₃
  have n₄ := nonneg_of_one_le h₄
  have n₅ := nonneg_of_one_le h₅
  have n₆ := nonneg_of_one_le h₆
  have i₁ : f₄ * (f₃ * E + H) * f₂ * S ≤ f₂ * f₃ * f₄ * ((E + H) * S) := by
    have j₁ := OrderedRing.mul_le_mul_of_nonneg_right h₃ hH
    have j₂ := OrderedRing.mul_le_mul_of_nonneg_right
      (show f₃ * E + H ≤ f₃ * (E + H) by grind)
      (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg n₄ n₂) hS)
    clear j₁ h₁ h₂ h₃ h₄ h₅ h₆
    grind
  have m₁ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg n₂ n₃) n₄
  have one₁ : 1 ≤ f₂ * f₃ * f₄ :=
    Std.le_trans h₄ (by
      have j₁ := le_mul_of_one_le n₂ (Std.le_refl f₂) h₃
      have j₂ := OrderedRing.mul_le_mul_of_nonneg_right (Std.le_trans h₂ j₁) n₄
      rwa [Semiring.one_mul] at j₂)
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right one₁ hN
  have i₃ : f₁ * (f₄ * (f₃ * E + H) * f₂ * S + N)
      ≤ f₁ * (f₂ * f₃ * f₄) * ((E + H) * S + N) := by
    have := OrderedRing.mul_le_mul_of_nonneg_left
      (show f₄ * (f₃ * E + H) * f₂ * S + N ≤ f₂ * f₃ * f₄ * ((E + H) * S + N) by grind) n₁
    rw [Semiring.mul_assoc f₁ (f₂ * f₃ * f₄)]
    exact this
  have m₂ := OrderedRing.mul_nonneg n₁ m₁
  have one₂ : 1 ≤ f₁ * (f₂ * f₃ * f₄) := Std.le_trans h₁ (le_mul_of_one_le n₁ (Std.le_refl _) one₁)
  have i₄ := OrderedRing.mul_le_mul_of_nonneg_right one₂ hH'
  generalize f₄ * (f₃ * E + H) * f₂ * S + N = x at *
  generalize e : f₁ * (f₂ * f₃ * f₄) = q at *
  rw [show f₁ * f₂ * (f₃ * f₆) * (f₄ * f₅) = q * f₅ * f₆ by rw [← e]; grind]
  have i₅ := OrderedRing.mul_le_mul_of_nonneg_left
    (show f₁ * x + H' ≤ q * ((E + H) * S + N + H') by grind) n₅
  have s₁ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg n₅ m₂)
    (show 0 ≤ (E + H) * S + N + H' by
      have := OrderedRing.mul_nonneg (show 0 ≤ E + H by grind) hS
      grind)
  have i₆ := Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left i₅ hv)
    (OrderedRing.mul_le_mul_of_nonneg_right hg (by
      rwa [Semiring.mul_assoc] at s₁))
  have one₃ : 1 ≤ g * (f₅ * q) := Std.le_trans h1 (le_mul_of_one_le (nonneg_of_one_le h1)
    (Std.le_refl _) (Std.le_trans h₅ (le_mul_of_one_le n₅ (Std.le_refl _) one₂)))
  have i₇ := OrderedRing.mul_le_mul_of_nonneg_right one₃ hE'
  have i₈ := OrderedRing.mul_le_mul_of_nonneg_left
    (show v * (f₅ * (f₁ * x + H')) + E' ≤ g * (f₅ * q) * ((E + H) * S + (H' + E') + N) by
      clear i₁ i₂ i₃ i₄ i₅ e s₁ one₁ one₂ one₃
      grind) n₆
  clear i₁ i₂ i₃ i₄ i₅ i₆ i₇ e s₁ one₁ one₂ one₃
  grind

private theorem lost_sizes {a b e f stores : Nat} {ν η : R} (hν : 0 ≤ ν) (hη : 0 ≤ η)
    (hab : a + b ≤ stores) (hef : e + f ≤ 3) :
    numeral e * ν + numeral a * η ≤ numeral 3 * ν + numeral stores * η ∧
      numeral b * η + numeral f * ν ≤ numeral 3 * ν + numeral stores * η := by
  have le : ∀ {m n : Nat} {x : R}, 0 ≤ x → m ≤ n → numeral m * x ≤ numeral n * x := fun hx h =>
    OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral h) hx
  have h₁ := le hν (show e ≤ 3 by omega)
  have h₂ := le hν (show f ≤ 3 by omega)
  have h₃ := le hη (show a ≤ stores by omega)
  have h₄ := le hη (show b ≤ stores by omega)
  clear le
  exact ⟨by grind, by grind⟩

/-- scale · Σ x y, where each x is off by an error of its own. -/
theorem rounded_gradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {scale reach z : R} (hg : 1 ≤ reach) {x y e : Fin n → R}
    {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedGradient p roundings stores scale reach x y z) :
    AtMost (gradientError p roundings stores scale reach ((List.finRange n).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨k, a, b, c, f, σ, σ', y', y'', products, sum, sum', h⟩ := h
  obtain ⟨hk, hn, hab, hcf, rfl, hσ', hy, hy', hproducts, hsum, hsum', hz⟩ := h
  have hx : ∀ j, Majorised ((t j).size + (t j).error) (t j).size (x j) (e j) := fun j => by
    refine ⟨?_, (ht j).2.1⟩
    rw [show (t j).size + (t j).error - (t j).size = (t j).error by grind]
    exact (ht j).1
  have h₁ := Majorised.flushedSum_each hp.accumulation hp.tiny hsum (fun j _ => ((hx j).mul
    (((Majorised.exact ((atMost_absolute σ).mul (atMost_absolute (y j)))).belowTimes hp.unit hp.tiny
      (hy j)).belowTimes hp.operands hp.operandsTiny (hy' j))).below (hproducts j))
  have h₂ := ((Majorised.exact (atMost_absolute σ')).mul (h₁.belowTimes hp.operands hp.operandsTiny
    hsum')).belowTimes hp.unit hp.tiny hz
  have b₁ := gradient_bound hp hc hu hk hab hcf
  rw [gradientError, sumOver_map, sumOver_map, absolute_mul]
  have other : ∀ j, (t j).other = y j := fun j => (ht j).2.2
  simp only [other]
  have s₁ : sumOver (fun j => ((t j).size + (t j).error)
        * ((1 + p.operands) ^ a * ((1 + p.unit) ^ c * (absolute σ * absolute (y j)
          + numeral c * p.tiny) + numeral a * p.operandsTiny))
        * (1 + p.accumulation) + p.tiny + p.tiny) (List.finRange n)
      = absolute σ * (1 + p.unit) ^ c * (1 + p.operands) ^ a * (1 + p.accumulation)
          * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n)
        + ((1 + p.operands) ^ a * ((1 + p.unit) ^ c * (numeral c * p.tiny)
          + numeral a * p.operandsTiny) * (1 + p.accumulation)
          * sumOver (fun j => (t j).size + (t j).error) (List.finRange n)
        + (numeral n * p.tiny + numeral n * p.tiny)) := by
    rw [← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_numeral n, ← sumOver_add, ← sumOver_add,
      ← sumOver_add]
    refine sumOver_congr fun j _ => ?_
    generalize (1 + p.operands) ^ a = q
    generalize (1 + p.unit) ^ c = q'
    generalize absolute (y j) = r
    generalize absolute σ = v
    generalize (numeral c : R) * p.tiny = m
    generalize (numeral a : R) * p.operandsTiny = m'
    clear h₁ h₂
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
  have h₂' := h₂.error
  rw [s₁, s₂, s₃] at h₂'
  have sizes : 0 ≤ sumOver (fun j => (t j).size + (t j).error) (List.finRange n) :=
    sumOver_nonneg fun j _ => (hx j).computed.nonneg
  have n₁ : 0 ≤ absolute σ * absolute σ'
      * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) :=
    OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (absolute_nonneg σ) (absolute_nonneg σ'))
      (sumOver_nonneg fun j _ => OrderedRing.mul_nonneg (hx j).computed.nonneg (absolute_nonneg _))
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left b₁ n₁
  have one : ∀ {u : R}, 0 ≤ u → ∀ k : Nat, 1 ≤ (1 + u) ^ k := fun hu k =>
    OrderedField.one_le_pow (one_le_one_plus hu) k
  have product : ∀ {x : R}, 0 ≤ x → ∀ k : Nat, 0 ≤ numeral k * x := fun hx k =>
    OrderedRing.mul_nonneg (numeral_nonneg k) hx
  have lost₀ : 0 ≤ numeral n * p.tiny + numeral n * p.tiny := by
    have := product hp.tiny n
    clear h₁ h₂ h₂' h₃ s₁ s₂ s₃ hx
    grind
  have h₄ := lost_bound (one hp.accumulation k) (one_le_one_plus hp.accumulation) (one hp.unit c)
    (one hp.operands a) (one hp.operands b) (one hp.unit f) (absolute_nonneg σ')
    (absolute_le hσ') hg sizes lost₀ (product hp.tiny c)
    (product hp.operandsTiny a) (product hp.tiny f) (product hp.operandsTiny b)
  have lost := lost_sizes hp.tiny hp.operandsTiny hab hcf
  have hn' := twice_lost_le hn hp.tiny
  have b₂ : (numeral c * p.tiny + numeral a * p.operandsTiny)
        * sumOver (fun j => (t j).size + (t j).error) (List.finRange n)
        + (numeral b * p.operandsTiny + numeral f * p.tiny)
        + (numeral n * p.tiny + numeral n * p.tiny)
      ≤ (numeral 3 * p.tiny + numeral stores * p.operandsTiny)
        * (sumOver (fun j => (t j).size + (t j).error) (List.finRange n) + 1)
        + numeral (2 * roundings) * p.tiny := by
    have := OrderedRing.mul_le_mul_of_nonneg_right lost.1 sizes
    have i₂ := lost.2
    clear lost h₁ h₂ h₂' h₃ h₄ s₁ s₂ s₃ hx other hy hy' hproducts hsum hsum' hz ht b₁ n₁
    grind
  have n₂ : 0 ≤ (1 + p.accumulation) ^ (k + 1) * (1 + p.unit) ^ (c + f)
      * (1 + p.operands) ^ (a + b) :=
    OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (nonneg_of_one_le (one hp.accumulation _))
      (nonneg_of_one_le (one hp.unit _))) (nonneg_of_one_le (one hp.operands _))
  have h₅ := OrderedField.mul_le_mul (OrderedRing.mul_nonneg n₂ (nonneg_of_one_le hg))
    (OrderedRing.mul_le_mul_of_nonneg_right b₁ (nonneg_of_one_le hg))
    (by
      have i₁ := OrderedRing.mul_nonneg (a := numeral c * p.tiny + numeral a * p.operandsTiny)
        (by
          have := product hp.tiny c
          have := product hp.operandsTiny a
          grind) sizes
      have i₂ := product hp.tiny f
      have i₃ := product hp.operandsTiny b
      have i₄ := lost₀
      clear lost h₁ h₂ h₂' h₃ h₄ s₁ s₂ s₃ hx other hy hy' hproducts hsum hsum' hz ht b₁ n₁ n₂ b₂
      grind) b₂
  have s₄ : ∀ v : R, sumOver (fun j => ((t j).error + (v - 1) * ((t j).size + (t j).error))
        * absolute (y j)) (List.finRange n)
      = v * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n)
        - sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) := fun v => by
    rw [← sumOver_mul_left, ← sumOver_sub]
    refine sumOver_congr fun j _ => ?_
    generalize absolute (y j) = r
    grind
  rw [s₄]
  rw [Semiring.pow_succ, Semiring.pow_add, Semiring.pow_add] at h₃ h₅
  clear s₁ s₂ s₃ s₄ n₁ b₁ h₁ h₂ hx other hy hy' hproducts hsum hsum' hz ht
  clear one product lost lost₀ b₂ n₂ hn' sizes
  generalize sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) = A
    at *
  generalize sumOver (fun j => (t j).size + (t j).error) (List.finRange n) = X at *
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
  generalize (numeral 3 * p.tiny + numeral stores * p.operandsTiny) * (X + 1)
    + numeral (2 * roundings) * p.tiny = Z at *
  generalize (numeral c : R) * p.tiny = l₁ at *
  generalize (numeral a : R) * p.operandsTiny = l₂ at *
  generalize (numeral f : R) * p.tiny = l₃ at *
  generalize (numeral b : R) * p.operandsTiny = l₄ at *
  generalize (numeral n : R) * p.tiny + numeral n * p.tiny = l₅ at *
  have e₁ : σ' * (σ * E) = σ * σ' * E := by clear h₂' h₃ h₄ h₅; grind
  rw [e₁] at h₂'
  refine h₂'.mono ?_
  have e₂ : f₆ * (v' * (f₅ * (f₁ * (v * f₃ * f₄ * f₂ * A + (f₄ * (f₃ * l₁ + l₂) * f₂ * X + l₅))
        + l₄)) + l₃)
      = v * v' * A * (f₁ * f₂ * (f₃ * f₆) * (f₄ * f₅))
        + f₆ * (v' * (f₅ * (f₁ * (f₄ * (f₃ * l₁ + l₂) * f₂ * X + l₅) + l₄)) + l₃) := by
    clear h₂' h₃ h₄ h₅; grind
  rw [e₂]
  have h₆ := Std.le_trans h₄ h₅
  clear h₂' e₁ e₂ h₄ h₅
  generalize f₆ * (v' * (f₅ * (f₁ * (f₄ * (f₃ * l₁ + l₂) * f₂ * X + l₅) + l₄)) + l₃) = w at *
  generalize f₁ * f₂ * (f₃ * f₆) * (f₄ * f₅) = g at *
  rw [show 1 + (F - 1) = F by grind]
  grind

/-- **rounded-gradient-total**: a sum of products of numbers that are off by an error each and
stored, every operation rounded. -/
theorem rounded_total {a u ν η : R} (ha : 0 ≤ a) (hu : 0 ≤ u) (hν : 0 ≤ ν) (hη : 0 ≤ η)
    {roundings : Nat} (hc : numeral roundings * a < 1) {z : R} {x y e : Fin n → R}
    {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTotal a u ν η roundings x y z) :
    AtMost (totalError a u ν η roundings ((List.finRange n).map t))
      (z - sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨k, x', products, hk, hn, hx', hproducts, hz⟩ := h
  have hx : ∀ j, Majorised ((t j).size + (t j).error) (t j).size (x j) (e j) := fun j => by
    refine ⟨?_, (ht j).2.1⟩
    rw [show (t j).size + (t j).error - (t j).size = (t j).error by grind]
    exact (ht j).1
  have h₁ := (Majorised.flushedSum_each ha hν hz fun j _ => (((hx j).below (hx' j)).mul
    (.exact (atMost_absolute (y j)))).below (hproducts j)).error
  have other : ∀ j, (t j).other = y j := fun j => (ht j).2.2
  rw [totalError, sumOver_map, sumOver_map]
  simp only [other]
  rw [sumOver_add, sumOver_add, sumOver_numeral, Semiring.add_assoc] at h₁
  refine h₁.mono ?_
  have g₁ := OrderedField.one_le_pow (one_le_one_plus ha) k
  have g₂ := pow_le_gamma ha hk hc
  have g₃ := pow_le_gamma ha (show k ≤ roundings by omega) hc
  rw [Semiring.pow_succ] at g₂
  have hν' := OrderedField.mul_le_mul (nonneg_of_one_le g₁) g₃
    (show 0 ≤ numeral n * ν + numeral n * ν by
      have := OrderedRing.mul_nonneg (numeral_nonneg n) hν
      clear h₁
      grind) (twice_lost_le hn hν)
  have h₂ : ∀ j, (1 + a) ^ k * ((((t j).size + (t j).error) * (1 + u) + η) * absolute (y j)
        * (1 + a)) - (t j).size * absolute (y j)
      ≤ ((t j).error + ((1 + u) * (1 + gamma roundings a) - 1) * ((t j).size + (t j).error))
          * absolute (y j) + (1 + gamma roundings a) * (η * absolute (y j)) := fun j => by
    have i₁ := OrderedRing.mul_nonneg ((hx j).computed.nonneg) (nonneg_of_one_le
      (one_le_one_plus hu))
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right g₂ (OrderedRing.mul_nonneg
      (show 0 ≤ ((t j).size + (t j).error) * (1 + u) + η by grind) (absolute_nonneg (y j)))
    clear h₁ hz hproducts hx' hx ht other hc i₁ hν' g₁ g₃ g₂
    generalize gamma roundings a = g at *
    generalize (1 + a) ^ k = f at *
    generalize absolute (y j) = w at *
    generalize (t j).size = s at *
    generalize (t j).error = r at *
    grind
  have h₃ := sumOver_le_sumOver (xs := List.finRange n) fun j _ => h₂ j
  rw [sumOver_sub, sumOver_add (fun j => ((t j).error + _ * _) * _), sumOver_mul_left,
    sumOver_mul_left, sumOver_mul_left] at h₃
  clear h₁ hz hproducts hx' hx ht other hc h₂ g₁ g₂ g₃
  generalize sumOver _ (List.finRange n) = x₁ at *
  generalize sumOver _ (List.finRange n) = x₂ at *
  generalize sumOver _ (List.finRange n) = x₃ at *
  generalize sumOver _ (List.finRange n) = x₄ at *
  generalize (1 + a) ^ k = f at *
  generalize 1 + gamma roundings a = g at *
  grind

end Attention.Proof
