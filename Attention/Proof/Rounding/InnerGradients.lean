module

public import Attention.Proof.Rounding.GradientMeans

public section

/-! # G, within its tolerance

What a backward pass that rounds computes for a query row before it multiplies by the weights:
G = dP − D + dL.
The bounds are sums and products of what each number may be in size: `Majorants.lean`.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d_v : Nat}

/-- Larger factors of a majorant. -/
private theorem scale_le {A B C s : R} (hs : 0 ≤ s) (hC : 0 ≤ C) (h : A ≤ B) :
    s * A * C ≤ s * (B * C) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h hC
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ hs
  rwa [← Semiring.mul_assoc] at h₂

private theorem mean_keys {r : BackwardRow R n d_v} {p : GradientPrecision R}
    (hp : PreciseGradient p) {c : GradientCounts} (hr : r.Valid) {j : Fin n} {x : R}
    (hc : numeral c.products * p.accumulation < 1)
    (hx : ComputedProduct p c (r.factor j) r.dO (r.value j) x) :
    Majorised ((r.key j).size * ((1 + gamma c.products p.accumulation) * (1 + p.factors)
      * (1 + p.scores)) + productTiny p c (r.key j).factor) (r.key j).size x (r.key j).product := by
  refine (product_majorised hp hc (hr.factor j) hx).mono ?_
  have h₁ := pow_le_gamma hp.accumulation (Nat.le_refl c.products) hc
  have h₂ := scale_le (key_size_nonneg hr j) (C := (1 + p.factors) * (1 + p.scores))
    (OrderedRing.mul_nonneg (nonneg_of_one_le (one_le_one_plus hp.factors))
      (nonneg_of_one_le (one_le_one_plus hp.scores))) h₁
  rw [← Semiring.mul_assoc] at h₂ ⊢
  rw [Semiring.mul_assoc, Semiring.mul_assoc, ← Semiring.mul_assoc (1 + gamma _ _),
    ← Semiring.mul_assoc] at h₂
  exact OrderedAdd.add_le_left h₂ _

private theorem three_terms {A D L x y z x' y' a b : R} (h₁ : Majorised a A x' x)
    (h₂ : Majorised b D y' y) (h₃ : Majorised L L z z) :
    ∀ t ∈ [(a, A, x', x), (b, D, -y', -y), (L, L, z, z)],
      Majorised t.1 t.2.1 t.2.2.1 t.2.2.2 := fun t ht => by
  have h₄ : Majorised b D (-y') (-y) := by
    obtain ⟨⟨i₁, i₂⟩, i₃, i₄⟩ := h₂
    exact ⟨⟨by grind, by grind⟩, by grind, by grind⟩
  rcases List.mem_cons.mp ht with rfl | ht
  · exact h₁
  rcases List.mem_cons.mp ht with rfl | ht
  · exact h₄
  obtain rfl := List.mem_singleton.mp ht
  exact h₃

/-- G. -/
theorem rounded_innerGradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {D x G : R} {j : Fin n} (hD : ComputedMean p c r D)
    (hx : ComputedProduct p c (r.factor j) r.dO (r.value j) x)
    (hG : FlushedSum p.unit p.tiny id 3 [x, -D, r.dL] G) :
    AtMost (innerError p c r.reach r.dL r.keys (r.key j))
      (G - innerGradient r.dL r.keys (r.key j)) := by
  have terms := three_terms (mean_keys hp hr hc₁ hx) (mean_majorised hp hc₁ hc₂ hr hD)
    (.exact (atMost_absolute r.dL))
  obtain ⟨G₀, l, hG₀, hl, hl'⟩ := sumOf_near hp.unit hp.tiny hG fun _ _ h => h
  rw [List.map_id] at hG₀
  have h₁ := ((Majorised.roundedSum hp.unit (xs := [(_, _, x, (r.key j).product),
    (_, _, -D, -meanProduct r.keys), (_, _, r.dL, r.dL)]) (f := fun t => t.2.2.1) hG₀ terms).near
      hl').error
  have h₀ : l ≤ numeral 2 * p.tiny := hl.le_length hp.tiny
  have n₀ := hl.nonneg
  have hf := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.unit) 3)
  have h₂ := pow_le_gamma hp.unit (Nat.le_refl 3) hu
  have h₃ := (Majorised.sum terms).computed.nonneg
  rw [innerError, innerGradient, innerSize]
  simp only [sumOver_cons, sumOver_nil] at h₁ h₃
  clear terms hG hG₀ hl hl' hx hD hc₁ hc₂ hu hp hr
  generalize (1 + gamma c.products p.accumulation) * (1 + p.factors) * (1 + p.scores) = E at *
  generalize meanError p c r.reach r.keys = e at *
  generalize productTiny p c (r.key j).factor = q at *
  generalize meanSize r.keys = W at *
  generalize meanProduct r.keys = M at *
  generalize (r.key j).size = A at *
  generalize (r.key j).product = P at *
  generalize absolute r.dL = L at *
  generalize gamma 3 p.unit = g at *
  generalize (1 + p.unit) ^ 3 = f at *
  generalize numeral 2 * p.tiny = N at *
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₂ h₃
  have h₆ := OrderedField.mul_le_mul hf h₂ n₀ h₀
  have h₅ := h₁.mono (show f * (A * E + q + (W + e + (L + 0))) + f * l - (A + (W + (L + 0)))
    ≤ (1 + g) * (A * E + q + (W + e + (L + 0)) + N) - (A + (W + (L + 0))) by
      clear h₁ h₂ h₃
      grind)
  rwa [show G - (P + (-M + (r.dL + 0))) = G - (P - M + r.dL) by grind,
    show (1 + g) * (A * E + q + (W + e + (L + 0)) + N) - (A + (W + (L + 0)))
      = (E - 1) * A + q + e + N + g * (A + W + L + ((E - 1) * A + q + e + N)) by
        clear h₅ h₁ h₂ h₃ h₄ h₆
        grind] at h₅

end Attention.Proof
