module

public import Attention.Model.RoundedGradients
public import Attention.Proof.Rounding.FlushedSums

public section

/-! # dP, within its tolerance

The gradient by a weight, as a backward pass that rounds computes it: a factor times ⟨dO, v⟩.
The bounds are sums and products of what each number may be in size: `Majorants.lean`.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {d : Nat}

private theorem product_bound {m f g G c a n N ν F S η : R} (hm : 0 ≤ m) (hf : 0 ≤ f)
    (hF : 0 ≤ F) (hS : 0 ≤ S) (hν : 0 ≤ ν) (hc : 0 ≤ c) (hn : 0 ≤ n) (hN : n + n ≤ N)
    (hg : c * a ≤ g) (hG : c ≤ G) :
    (f * (c * (m * a + n * ν + n * ν)) * F + ν) * S + η
      ≤ f * m * (g * (F * S)) + ((f * (G * (N * ν)) * F + ν) * S + η) := by
  have h₁ := OrderedField.mul_le_mul hc hG (OrderedRing.mul_nonneg (show 0 ≤ n + n by grind) hν)
    (OrderedRing.mul_le_mul_of_nonneg_right hN hν)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hg hm
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left
    (show c * ((n + n) * ν) + c * a * m ≤ G * (N * ν) + g * m by grind)
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hf hF) hS)
  clear h₁ h₂ hm hf hF hS hν hc hn hN hg hG
  grind

/-- dP, with any number of roundings. -/
theorem product_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc : numeral c.products * p.accumulation < 1) {factor : R}
    (hf : 0 ≤ factor) {dO v : Vec R d} {x : R} (h : ComputedProduct p c factor dO v x) :
    Majorised (factor * magnitude dO v
        * ((1 + p.accumulation) ^ c.products * ((1 + p.factors) * (1 + p.scores)))
        + productTiny p c factor)
      (factor * magnitude dO v) x (factor * Vec.dot dO v) := by
  obtain ⟨k, products, sum, t, y, hk, hd, hproducts, hsum, ht, hy, hx⟩ := h
  have hone : ∀ i ∈ List.finRange d,
      Majorised (absolute dO[i] * absolute v[i] * (1 + p.accumulation) + p.tiny)
        (absolute dO[i] * absolute v[i]) (products i) (dO[i] * v[i]) := fun i _ =>
    (Majorised.exact ((atMost_absolute _).mul (atMost_absolute _))).below (hproducts i)
  have h₁ := Majorised.flushedSum_each hp.accumulation hp.tiny hsum hone
  have e : sumOver (fun i : Fin d => absolute dO[i] * absolute v[i]) (List.finRange d)
      = magnitude dO v := by
    rw [magnitude, Vec.dot]
    simp only [Fin.getElem_fin, Vec.getElem_map]
  rw [sumOver_add, sumOver_add, sumOver_numeral, sumOver_mul_right, e,
    show sumOver (fun i : Fin d => dO[i] * v[i]) (List.finRange d) = Vec.dot dO v from rfl] at h₁
  have h₂ := ((((Majorised.exact (atMost_self hf)).mul h₁).mul_factor ht).near hy).below hx
  refine h₂.mono ?_
  have hu := one_le_one_plus hp.accumulation
  have h₃ := OrderedField.pow_le_pow (x := 1 + p.accumulation) hu hk
  rw [Semiring.pow_succ] at h₃
  exact product_bound (dot_atMost_magnitude dO v).nonneg hf
    (nonneg_of_one_le (one_le_one_plus hp.factors)) (nonneg_of_one_le (one_le_one_plus hp.scores))
    hp.tiny (nonneg_of_one_le (OrderedField.one_le_pow hu k)) (numeral_nonneg d)
    (numeral_twice_le hd) h₃ (pow_le_gamma hp.accumulation (by omega) hc)

theorem productTiny_nonneg {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc : numeral c.products * p.accumulation < 1) {factor : R} (hf : 0 ≤ factor) :
    0 ≤ productTiny p c factor := by
  have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (2 * c.products)) hp.tiny
  have h₂ := OrderedRing.mul_nonneg
    (nonneg_of_one_le (one_le_one_plus (gamma_nonneg hp.accumulation hc))) h₁
  have h₃ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hf h₂)
    (nonneg_of_one_le (one_le_one_plus hp.factors))
  have h₄ := hp.tiny
  have h₅ := OrderedRing.mul_nonneg (a := factor * ((1 + gamma c.products p.accumulation)
      * (numeral (2 * c.products) * p.tiny)) * (1 + p.factors) + p.tiny) (by grind)
    (nonneg_of_one_le (one_le_one_plus hp.scores))
  have h₆ := hp.scoresTiny
  show 0 ≤ (factor * ((1 + gamma c.products p.accumulation)
    * (numeral (2 * c.products) * p.tiny)) * (1 + p.factors) + p.tiny) * (1 + p.scores)
    + p.scoresTiny
  clear h₁ h₂ h₃ h₄
  grind

end Attention.Proof
