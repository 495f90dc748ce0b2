module

public import Attention.Proof.Rounding.ScaledGradients

public section

/-! # Gradients of a pass that leaves dropout's factor to the end, within their tolerance

FlashAttention-2 multiplies neither dP nor dS by dropout's factor: it multiplies D by 1 − p, and the
finished sums of dQ and dK by 1 / (1 − p). All that it computes from dP on is then smaller by that
factor, and what it loses below the normal numbers counts more.
Source: docs/tolerances.md, "Gradients"; Dao 2023, "FlashAttention-2", its published kernels. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d_v : Nat}

private theorem withLosses_precise {p : GradientPrecision R} (hp : PreciseGradient p) {ν η : R}
    (hν : 0 ≤ ν) (hη : 0 ≤ η) : PreciseGradient (withLosses p ν η) :=
  { hp with growth := Std.le_refl _, tiny := hν, scoresTiny := hη }

/-- It loses no more than the bound has. -/
private theorem losses_le {p : GradientPrecision R} (hp : PreciseGradient p) {ν τ : R}
    (hν : 0 ≤ ν) (hτ₁ : τ ≤ 1) (tiny : numeral 2 * ν ≤ τ * p.tiny) : ν ≤ p.tiny := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hτ₁ hp.tiny
  rw [numeral_two] at tiny
  grind

/-- dP without the factor. -/
private theorem product_withoutFactor {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {ν η τ : R} (hτ : 0 < τ) (hτ₁ : τ ≤ 1) (hν : 0 ≤ ν) (hη : 0 ≤ η)
    (tiny : numeral 2 * ν ≤ τ * p.tiny) (scores : η ≤ τ * p.scoresTiny)
    (hc : numeral c.products * p.accumulation < 1) {d : Nat} {dO v : Vec R d} {factor x : R}
    (hf : 0 ≤ factor) (h : ComputedProduct (withLosses p ν η) c (τ * factor) dO v x) :
    Majorised (τ * (factor * magnitude dO v * ((1 + gamma c.products p.accumulation)
      * (1 + p.factors) * (1 + p.scores)) + productTiny p c factor))
      (τ * (factor * magnitude dO v)) x (τ * (factor * Vec.dot dO v)) := by
  have h₁ := product_majorised (withLosses_precise hp hν hη) hc
    (OrderedRing.mul_nonneg (Std.le_of_lt hτ) hf) h
  rw [show τ * factor * magnitude dO v = τ * (factor * magnitude dO v) by grind,
    show τ * factor * Vec.dot dO v = τ * (factor * Vec.dot dO v) by grind] at h₁
  refine h₁.mono ?_
  have hτ₀ := Std.le_of_lt hτ
  have less := losses_le hp hν hτ₁ tiny
  have n₁ := OrderedRing.mul_nonneg hτ₀ (OrderedRing.mul_nonneg hf
    (dot_atMost_magnitude dO v).nonneg)
  have n₂ := nonneg_of_one_le (one_le_one_plus hp.factors)
  have n₃ := nonneg_of_one_le (one_le_one_plus hp.scores)
  have n₄ := nonneg_of_one_le (one_le_one_plus (gamma_nonneg (k := c.products)
    hp.accumulation hc))
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left (OrderedRing.mul_le_mul_of_nonneg_right
    (pow_le_gamma hp.accumulation (Nat.le_refl c.products) hc)
    (OrderedRing.mul_nonneg n₂ n₃)) n₁
  have i₂ : τ * factor * ((1 + gamma c.products p.accumulation)
      * (numeral (2 * c.products) * ν)) * (1 + p.factors)
      ≤ τ * factor * ((1 + gamma c.products p.accumulation)
        * (numeral (2 * c.products) * p.tiny)) * (1 + p.factors) :=
    OrderedRing.mul_le_mul_of_nonneg_right (OrderedRing.mul_le_mul_of_nonneg_left
      (OrderedRing.mul_le_mul_of_nonneg_left (OrderedRing.mul_le_mul_of_nonneg_left less
        (numeral_nonneg _)) n₄) (OrderedRing.mul_nonneg hτ₀ hf)) n₂
  have i₃ : ν ≤ τ * p.tiny := by
    rw [numeral_two] at tiny
    grind
  have i₄ := OrderedRing.mul_le_mul_of_nonneg_right (OrderedAdd.add_le_add i₂ i₃) n₃
  show τ * (factor * magnitude dO v) * ((1 + p.accumulation) ^ c.products
      * ((1 + p.factors) * (1 + p.scores)))
    + ((τ * factor * ((1 + gamma c.products p.accumulation) * (numeral (2 * c.products) * ν))
      * (1 + p.factors) + ν) * (1 + p.scores) + η) ≤ _
  rw [productTiny]
  generalize (1 + gamma c.products p.accumulation) = g at *
  generalize (1 + p.accumulation) ^ c.products = f at *
  generalize factor * magnitude dO v = A at *
  generalize g * (numeral (2 * c.products) * p.tiny) = m at *
  generalize g * (numeral (2 * c.products) * ν) = m' at *
  generalize 1 + p.factors = φ at *
  generalize 1 + p.scores = s at *
  clear h h₁ n₁ n₂ n₃ n₄ i₂ i₃ tiny less
  grind

private theorem sum_bound {τ A E q W e B l f g t ν : R} (hf : 1 ≤ f) (hg : f ^ 3 ≤ 1 + g)
    (hX : 0 ≤ τ * (A * E + q)) (hY : 0 ≤ τ * (W + e)) (hZ : 0 ≤ τ * B) (hν : 0 ≤ ν)
    (hl : l ≤ 2 * ν) (ht : 2 * ν ≤ τ * t) :
    f ^ 2 * (τ * (A * E + q) + (τ * (W + e) * f + ν + (τ * B * f + ν + 0))) + f ^ 2 * l
      - (τ * A + (τ * W + (τ * B + 0)))
      ≤ τ * ((E - 1) * A + q + e + 2 * t + g * (A + W + B + ((E - 1) * A + q + e + 2 * t))) := by
  have n : 0 ≤ 2 * (τ * t) := by grind
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hf hX
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hf n
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left
    (show τ * (A * E + q) + (τ * (W + e) * f + ν + (τ * B * f + ν + 0)) + l
      ≤ f * (τ * (A * E + q) + τ * (W + e) + τ * B + 2 * (τ * t)) by grind)
    (nonneg_of_one_le (OrderedField.one_le_pow hf 2))
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right hg
    (show 0 ≤ τ * (A * E + q) + τ * (W + e) + τ * B + 2 * (τ * t) by grind)
  rw [Semiring.pow_succ] at h₄
  generalize f ^ 2 = f₂ at *
  clear hf hg hX hY hZ hν hl ht n h₁ h₂
  grind

/-- G without the factor. -/
private theorem inner_withoutFactor {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {ν η τ : R} (hτ : 0 < τ) (hτ₁ : τ ≤ 1) (hν : 0 ≤ ν) (hη : 0 ≤ η)
    (tiny : numeral 2 * ν ≤ τ * p.tiny) (scores : η ≤ τ * p.scoresTiny)
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {r : BackwardRow R n d_v} (hr : r.Valid) {D D' L x G : R}
    {j : Fin n} (hD : ComputedMean p c r D) (hD' : StoredBelow p.unit ν (τ * D) D')
    (hL : StoredBelow p.unit ν (τ * r.dL) L)
    (hx : ComputedProduct (withLosses p ν η) c (τ * r.factor j) r.dO (r.value j) x)
    (hG : FlushedSum p.unit ν id 2 [x, -D', L] G) :
    AtMost (τ * innerError p c r.reach r.dL r.keys (r.key j))
      (G - τ * innerGradient r.dL r.keys (r.key j)) := by
  have hτ₀ := Std.le_of_lt hτ
  have exact : Majorised τ τ τ τ := .exact (atMost_self hτ₀)
  have m₁ := product_withoutFactor hp hτ hτ₁ hν hη tiny scores hc₁ (hr.factor j) hx
  have m₂ := (exact.mul (mean_majorised hp hc₁ hc₂ hr hD)).below hD'
  have m₃ := (exact.mul (.exact (atMost_absolute r.dL))).below hL
  have m₂' : Majorised (τ * (meanSize r.keys + meanError p c r.reach r.keys) * (1 + p.unit) + ν)
      (τ * meanSize r.keys) (-D') (-(τ * meanProduct r.keys)) := by
    obtain ⟨⟨i₁, i₂⟩, i₃, i₄⟩ := m₂
    exact ⟨⟨by grind, by grind⟩, by grind, by grind⟩
  obtain ⟨G₀, l, hG₀, hl, hl'⟩ := sumOf_near hp.unit hν hG fun _ _ h => h
  rw [List.map_id] at hG₀
  let t₁ := (τ * ((r.key j).size * ((1 + gamma c.products p.accumulation) * (1 + p.factors)
    * (1 + p.scores)) + productTiny p c (r.key j).factor), τ * (r.key j).size, x,
    τ * (r.key j).product)
  let t₂ := (τ * (meanSize r.keys + meanError p c r.reach r.keys) * (1 + p.unit) + ν,
    τ * meanSize r.keys, -D', -(τ * meanProduct r.keys))
  let t₃ := (τ * absolute r.dL * (1 + p.unit) + ν, τ * absolute r.dL, L, τ * r.dL)
  have terms : ∀ t ∈ [t₁, t₂, t₃], Majorised t.1 t.2.1 t.2.2.1 t.2.2.2 := fun t ht => by
    rcases List.mem_cons.mp ht with rfl | ht
    · exact m₁
    rcases List.mem_cons.mp ht with rfl | ht
    · exact m₂'
    obtain rfl := List.mem_singleton.mp ht
    exact m₃
  have h₁ := ((Majorised.roundedSum hp.unit (xs := [t₁, t₂, t₃]) (f := fun t => t.2.2.1) hG₀
    terms).near hl').error
  have h₀ : l ≤ numeral 2 * ν := hl.le_length hν
  have n₀ := hl.nonneg
  have h₂ := pow_le_gamma hp.unit (Nat.le_refl 3) hu
  have n₁ := one_le_one_plus hp.unit
  have n₂ : 0 ≤ τ * ((r.key j).size * ((1 + gamma c.products p.accumulation) * (1 + p.factors)
    * (1 + p.scores)) + productTiny p c (r.key j).factor) := m₁.computed.nonneg
  have n₅ := (exact.mul (mean_majorised hp hc₁ hc₂ hr hD)).computed.nonneg
  have n₆ := OrderedRing.mul_nonneg hτ₀ (absolute_nonneg r.dL)
  rw [innerError, innerGradient, innerSize]
  simp only [sumOver_cons, sumOver_nil, t₁, t₂, t₃] at h₁
  clear terms hG hG₀ hl hl' hx hD hD' hL hc₁ hc₂ hu hr m₁ m₂ m₂' m₃ exact t₁ t₂ t₃ scores
  rw [numeral_two] at *
  replace h₁ := h₁.mono (sum_bound n₁ h₂ n₂ n₅ n₆ hν h₀ tiny)
  rwa [show G - (τ * (r.key j).product + (-(τ * meanProduct r.keys) + (τ * r.dL + 0)))
    = G - τ * ((r.key j).product - meanProduct r.keys + r.dL) by
      clear h₁ h₂ n₂ n₅ n₆
      grind] at h₁

/-- What a pass without the factor multiplies with keys and queries, with the factor again. -/
theorem withoutFactor_term {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    {ν η τ κ : R} (hτ : 0 < τ) (hτ₁ : τ ≤ 1) (hκ : κ ≠ 0) (hν : 0 ≤ ν) (hη : 0 ≤ η)
    (tiny : numeral 2 * ν ≤ τ * p.tiny) (scores : η ≤ τ * p.scoresTiny)
    (grows : 1 ≤ p.growth * absolute (τ * κ)) (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {S X : Fin n → R}
    (h : r.WithoutFactor p c ν η τ κ S X) (j : Fin n) (other : R) :
    AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).error
        ((τ * κ)⁻¹ * X j - r.scoreGradient j * r.slope j) ∧
      AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).size
        (r.scoreGradient j * r.slope j) := by
  obtain ⟨D, D', L, hD, hD', hL, h⟩ := h
  obtain ⟨a, b, x, G, w, s, y, hab, hx, hG, hw, hS, hs, hy, hX⟩ := h j
  have hτ₀ : τ ≠ 0 := fun h₀ => by
    rw [h₀] at hτ
    grind
  have hτκ : τ * κ ≠ 0 := fun h₀ => (Field.of_mul_eq_zero h₀).elim hτ₀ hκ
  have cancel := Field.mul_inv_cancel hτ₀
  have cancel' := Field.mul_inv_cancel hτκ
  have n := Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hτ)
  have less := losses_le hp hν hτ₁ tiny
  have ofInner := (atMost_self n).mul
    (inner_withoutFactor hp hτ hτ₁ hν hη tiny scores hc₁ hc₂ hu hr hD hD' hL hx hG)
  rw [show τ⁻¹ * (τ * innerError p c r.reach r.dL r.keys (r.key j))
      = innerError p c r.reach r.dL r.keys (r.key j) by grind,
    show τ⁻¹ * (G - τ * innerGradient r.dL r.keys (r.key j))
      = τ⁻¹ * G - innerGradient r.dL r.keys (r.key j) by grind] at ofInner
  have ofScore := belowTimes_mul (c := τ⁻¹) (η' := p.tiny) (by
    rw [absolute_of_nonneg n]
    have h₁ := OrderedRing.mul_le_mul_of_nonneg_left tiny n
    rw [numeral_two, show τ⁻¹ * (τ * p.tiny) = p.tiny by grind] at h₁
    have h₂ := OrderedRing.mul_nonneg n hν
    grind) (inverse_ne_zero hτ₀) hS
  rw [show τ⁻¹ * (w * G) = w * (τ⁻¹ * G) by grind] at ofScore
  have grown := Std.le_trans (loses_grown hτκ grows hν)
    (OrderedRing.mul_le_mul_of_nonneg_left less (Std.le_trans
      (Std.le_of_lt OrderedRing.zero_lt_one) hp.growth))
  have ofSlope := belowTimes_mul (η' := p.grown.tiny) grown (inverse_ne_zero hτκ) hy
  rw [show (τ * κ)⁻¹ * (S j * (κ * s)) = τ⁻¹ * S j * s by
    rw [show S j * (κ * s) = τ * κ * (τ⁻¹ * S j * s) by grind]
    generalize τ⁻¹ * S j * s = z
    grind] at ofSlope
  exact scoreGradientTerm_close hp hu hr hab ofInner hw ofScore hs ofSlope
    (storedBelow_mul (η' := p.grown.storedTiny) (loses_grown hτκ grows hp.storedTiny) hX
      (inverse_ne_zero hτκ)) other

/-- What any pass that scales dS multiplies with keys and queries, without its factor. -/
theorem scaled_term {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts} {τ : R}
    (hτ : τ ≠ 0) (grows : 1 ≤ p.growth * absolute τ)
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {r : BackwardRow R n d_v} (hr : r.Valid) {S X : Fin n → R}
    (h : r.Scaled p c τ S X) (j : Fin n) (other : R) :
    AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).error
        (τ⁻¹ * X j - r.scoreGradient j * r.slope j) ∧
      AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key j) other).size
        (r.scoreGradient j * r.slope j) := by
  rcases h with h | ⟨ν, η, σ, κ, hσ, hσ₁, rfl, hν, hη, tiny, scores, h⟩
  · exact rounded_scoreGradientTerm hp hc₁ hc₂ hu hr (scaled_row hτ grows hp h) j other
  · exact withoutFactor_term hp hσ hσ₁ (fun h₀ => hτ (by rw [h₀, Semiring.mul_zero])) hν hη tiny
      scores grows hc₁ hc₂ hu hr h j other

end Attention.Proof
