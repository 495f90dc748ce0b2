module

public import Attention.Model.ScaledGradients
public import Attention.Proof.Rounding.GradientStores

public section

/-! # Gradients of numbers that are stored with a factor, within their tolerance

Divided by the factor, what is stored is a number that the theorems without a factor suppose, whose
losses are larger as often as the factor is smaller than 1; and the bound of a sum of numbers with a
factor, by which its scale is divided, is no larger than that of one without.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n : Nat} {u η η' c : R}

/-! ## dP that is stored twice -/

/-- **twice-stored-product**: a dP that is stored before a factor up to `z` multiplies it, and again
after that, is one that is stored once, in a format in which more is lost. -/
theorem twiceStored_product {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {factor z : R} (hf : 0 ≤ factor) (hz : factor ≤ z)
    (hs : (1 + u) * (1 + u) - 1 ≤ p.scores)
    (ht : (z * (1 + p.factors) * η + p.tiny) * (1 + u) + η + p.tiny * (1 + p.scores)
      ≤ p.scoresTiny) {d : Nat} {dO v : Vec R d} {x : R}
    (h : TwiceStoredProduct p c u η factor dO v x) : ComputedProduct p c factor dO v x := by
  obtain ⟨k, products, sum, sum', t, y, hk, hd, hproducts, hsum, hsum', hfactors, hy, hx⟩ := h
  obtain ⟨s, ⟨a, ha, rfl⟩, he₁, zero₁⟩ := hsum'
  obtain ⟨w, ⟨b, hb, rfl⟩, he₂, zero₂⟩ := hx
  have one := OrderedRing.zero_lt_one (R := R)
  -- The product is off by what is left of it where it would be 0, and by nothing elsewhere.
  obtain ⟨e, he, hzero⟩ : ∃ e, AtMost p.tiny e ∧ (factor * sum * t + e = 0 → x = 0) := by
    by_cases h₀ : factor * sum * t = 0
    · by_cases h₁ : y = 0
      · exact ⟨0, .zero hp.tiny, fun _ => zero₂ h₁⟩
      · have product : factor * sum' * t = 0 := by
          rcases Field.of_mul_eq_zero h₀ with h | h
          · rcases Field.of_mul_eq_zero h with h | h
            · rw [h, Semiring.zero_mul, Semiring.zero_mul]
            · rw [zero₁ h, Semiring.mul_zero, Semiring.zero_mul]
          · rw [h, Semiring.mul_zero]
        refine ⟨y, ?_, fun h => absurd ?_ h₁⟩
        · rwa [product, show y - 0 = y by grind] at hy
        · rw [h₀] at h
          grind
    · exact ⟨0, .zero hp.tiny, fun h => absurd (by grind) h₀⟩
  refine ⟨k, products, sum, t, factor * sum * t + e, hk, hd, hproducts, hsum, hfactors, ?_,
    (factor * sum * t + e) * (1 + ((1 + a) * (1 + b) - 1)), ⟨_, ?_, rfl⟩, ?_, hzero⟩
  · rwa [show factor * sum * t + e - factor * sum * t = e by grind]
  · have h₁ := (ha.add (hb.add (ha.mul hb))).mono (b := p.scores) (by
      clear hsum hproducts ht
      grind)
    rwa [show a + (b + a * b) = (1 + a) * (1 + b) - 1 by grind] at h₁
  · have hF : AtMost (1 + p.factors) t := by
      obtain ⟨i₁, i₂⟩ := hfactors
      exact ⟨by grind, by grind⟩
    have hB : AtMost (1 + u) (1 + b) := by
      obtain ⟨i₁, i₂⟩ := hb
      exact ⟨by grind, by grind⟩
    have hS : AtMost (1 + p.scores) (1 + ((1 + a) * (1 + b) - 1)) := by
      have h₁ := (ha.add (hb.add (ha.mul hb))).mono (b := p.scores) (by
        clear hsum hproducts ht
        grind)
      obtain ⟨i₁, i₂⟩ := h₁
      exact ⟨by grind, by grind⟩
    have hz' : AtMost z factor := ⟨by grind, hz⟩
    have h₁ := (((((hz'.mul hF).mul he₁).add hy).mul hB).add he₂).sub (he.mul hS)
    refine AtMost.mono ?_ ht
    rwa [show (factor * t * (sum' - sum * (1 + a)) + (y - factor * sum' * t)) * (1 + b)
        + (x - y * (1 + b)) - e * (1 + ((1 + a) * (1 + b) - 1))
      = x - (factor * sum * t + e) * (1 + ((1 + a) * (1 + b) - 1)) by
        clear hsum hproducts ht h₁
        grind] at h₁

/-! ## Numbers times a factor -/

private theorem rounded_mul {x y : R} (c : R) (h : Rounded u x y) : Rounded u (c * x) (c * y) := by
  obtain ⟨θ, hθ, rfl⟩ := h
  exact ⟨θ, hθ, (Semiring.mul_assoc _ _ _).symm⟩

private theorem atMost_mul {x : R} (hη : absolute c * η ≤ η') (h : AtMost η x) :
    AtMost η' (c * x) :=
  ((atMost_absolute c).mul h).mono hη

/-- Both times a number that is not 0, and what is lost. -/
theorem storedBelow_mul {x y : R} (hη : absolute c * η ≤ η') (h : StoredBelow u η x y)
    (hc : c ≠ 0) : StoredBelow u η' (c * x) (c * y) := by
  obtain ⟨z, hz, hy, zero⟩ := h
  refine ⟨c * z, rounded_mul c hz, ?_, fun h₀ => ?_⟩
  · have := atMost_mul hη hy
    rwa [show c * (y - z) = c * y - c * z by grind] at this
  · rw [zero ((Field.of_mul_eq_zero h₀).resolve_left hc), Semiring.mul_zero]

/-- The same of a number that is stored several times. -/
theorem belowTimes_mul (hη : absolute c * η ≤ η') (hc : c ≠ 0) : ∀ {k : Nat} {x y : R},
    BelowTimes u η k x y → BelowTimes u η' k (c * x) (c * y)
  | 0, _, _, h => congrArg (c * ·) h
  | _ + 1, _, _, ⟨z, h, h'⟩ => ⟨c * z, belowTimes_mul hη hc h, storedBelow_mul hη h' hc⟩

/-! ## Sums and rows -/

/-- A number that is not 0 has an inverse that is not 0. -/
theorem inverse_ne_zero {τ : R} (hτ : τ ≠ 0) : τ⁻¹ ≠ 0 := fun h => by
  have := Field.mul_inv_cancel hτ
  rw [h, Semiring.mul_zero] at this
  exact Field.zero_ne_one this

/-- The bound of a sum of numbers with a factor, by which the scale is divided, is no larger than
that without. -/
private theorem scaled_bound {p : GradientPrecision R} (hp : PreciseGradient p) {τ rest scale : R}
    {reach reach' : R} (hscale : τ * rest = scale) (hreach : reach' ≤ reach)
    (hτ : absolute τ * reach' ≤ reach) {roundings stores tiles : Nat}
    (hc : numeral roundings * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {t : Fin n → GradientTerm R} (ht : ∀ j, 0 ≤ (t j).size ∧ 0 ≤ (t j).error) :
    let scaled := fun j =>
      (⟨absolute τ * (t j).size, absolute τ * (t j).error, (t j).other⟩ : GradientTerm R)
    (presentGradientTerm p roundings stores tiles rest reach'
      ((List.finRange n).map scaled)).error
      ≤ (presentGradientTerm p roundings stores tiles scale reach
        ((List.finRange n).map t)).error := by
  intro scaled
  have sum : ∀ f g : Fin n → R, (∀ j, f j = absolute τ * g j) → absolute rest
      * sumOver f (List.finRange n) = absolute scale * sumOver g (List.finRange n) :=
    fun f g h => by
      rw [sumOver_congr fun j _ => h j, sumOver_mul_left, ← hscale, absolute_mul]
      generalize sumOver g (List.finRange n) = x
      grind
  have same : absolute rest * sumOver (fun t => (t.size + t.error) * absolute t.other)
        ((List.finRange n).map scaled)
      = absolute scale * sumOver (fun t => (t.size + t.error) * absolute t.other)
        ((List.finRange n).map t) := by
    rw [sumOver_map, sumOver_map]
    exact sum _ _ fun j => by simp only [scaled]; grind
  show presentError rest (tiledGradientError p roundings stores tiles rest reach' _) _
    ≤ presentError scale (tiledGradientError p roundings stores tiles scale reach _) _
  rw [presentError, presentError, same]
  split
  · exact Std.le_refl _
  rw [tiledGradientError, tiledGradientError, sumOver_map, sumOver_map, sumOver_map, sumOver_map]
  have first := fun v : R => sum
    (fun j => ((scaled j).error + v * ((scaled j).size + (scaled j).error))
      * absolute (scaled j).other)
    (fun j => ((t j).error + v * ((t j).size + (t j).error)) * absolute (t j).other)
    fun j => by simp only [scaled]; grind
  have second : sumOver (fun j => (scaled j).size + (scaled j).error) (List.finRange n)
      = absolute τ * sumOver (fun j => (t j).size + (t j).error) (List.finRange n) := by
    rw [← sumOver_mul_left]
    exact sumOver_congr fun j _ => by simp only [scaled]; grind
  rw [first, second]
  have n₁ : 0 ≤ sumOver (fun j => (t j).size + (t j).error) (List.finRange n) :=
    sumOver_nonneg fun j _ => by
      obtain ⟨h₁, h₂⟩ := ht j
      grind
  have product : ∀ {x : R}, 0 ≤ x → ∀ k : Nat, 0 ≤ numeral k * x := fun hx k =>
    OrderedRing.mul_nonneg (numeral_nonneg k) hx
  have n₂ : 0 ≤ numeral 3 * p.tiny + numeral stores * p.operandsTiny := by
    have h₁ := product hp.tiny 3
    have h₂ := product hp.operandsTiny stores
    clear first second same sum product
    grind
  have n₃ : 0 ≤ numeral (2 * roundings + tiles) * p.tiny + numeral (2 * tiles) * p.outputTiny := by
    have h₁ := product hp.tiny (2 * roundings + tiles)
    have h₂ := product hp.outputTiny (2 * tiles)
    clear first second same sum product
    grind
  have n₄ := OrderedRing.mul_nonneg n₂ n₁
  have n₅ := OrderedRing.mul_nonneg n₂ (numeral_nonneg (R := R) (tiles + 1))
  have n₆ : 0 ≤ 1 + ((1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
      * power (1 + p.operands) stores * power (1 + p.output) tiles - 1) := by
    have h₁ := one_le_one_plus (gamma_nonneg (k := roundings) hp.accumulation hc)
    have h₂ := one_le_one_plus (gamma_nonneg (k := 3) hp.unit hu)
    have h₃ := OrderedField.one_le_pow (one_le_one_plus hp.operands) stores
    have h₄ := OrderedField.one_le_pow (one_le_one_plus hp.output) tiles
    rw [power_eq, power_eq]
    have h₅ := nonneg_of_one_le (one_le_mul (one_le_mul (one_le_mul h₁ h₂) h₃) h₄)
    clear first second same sum product
    grind
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hτ n₄
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right hreach n₅
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_right hreach n₃
  clear first second same sum product ht
  generalize sumOver (fun j => (t j).size + (t j).error) (List.finRange n) = X at *
  generalize sumOver _ (List.finRange n) = Y at *
  generalize numeral 3 * p.tiny + numeral stores * p.operandsTiny = l₁ at *
  generalize numeral (2 * roundings + tiles) * p.tiny + numeral (2 * tiles) * p.outputTiny = l₂
    at *
  generalize (numeral (tiles + 1) : R) = N at *
  generalize 1 + ((1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
      * power (1 + p.operands) stores * power (1 + p.output) tiles - 1) = F at *
  have i₄ := OrderedRing.mul_le_mul_of_nonneg_left
    (show reach' * (l₁ * (absolute τ * X + N) + l₂) ≤ reach * (l₁ * (X + N) + l₂) by
      clear n₁ n₂ n₃ n₄ n₅ n₆
      grind) n₆
  clear i₁ i₂ i₃ n₁ n₂ n₃ n₄ n₅ n₆
  grind

/-- A sum of numbers with a factor, by which the scale is divided, is off by no more than one of
numbers without it, of which `t` tells how far off they are. -/
theorem scaled_sum {p : GradientPrecision R} (hp : PreciseGradient p) {τ rest scale : R}
    (hτ : τ ≠ 0) {reach reach' : R} (hscale : τ * rest = scale) (one : 1 ≤ reach')
    (hreach : reach' ≤ reach) (hr : absolute τ * reach' ≤ reach) {roundings stores tiles : Nat}
    (hc : numeral roundings * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {t : Fin n → GradientTerm R} {x y e : Fin n → R} {z : R}
    (ht : ∀ j, AtMost (t j).error (τ⁻¹ * x j - e j) ∧ AtMost (t j).size (e j) ∧
      (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles rest reach' x y z) :
    AtMost (presentGradientTerm p roundings stores tiles scale reach
      ((List.finRange n).map t)).error
      (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  let scaled := fun j =>
    (⟨absolute τ * (t j).size, absolute τ * (t j).error, (t j).other⟩ : GradientTerm R)
  have h₁ := rounded_presentGradient hp hc hu one (t := scaled) (e := fun j => τ * e j)
    (fun j => by
      refine ⟨?_, (atMost_absolute τ).mul (ht j).2.1, (ht j).2.2⟩
      have h₂ := (atMost_absolute τ).mul (ht j).1
      have h₃ := Field.mul_inv_cancel hτ
      rwa [show τ * (τ⁻¹ * x j - e j) = x j - τ * e j by grind] at h₂) h
  rw [show rest * sumOver (fun j => τ * e j * y j) (List.finRange n)
      = scale * sumOver (fun j => e j * y j) (List.finRange n) by
    rw [← hscale, sumOver_congr (g := fun j => τ * (e j * y j)) fun j _ => by grind,
      sumOver_mul_left]
    generalize sumOver (fun j => e j * y j) (List.finRange n) = s
    grind] at h₁
  exact h₁.mono (scaled_bound hp hscale hreach hr hc hu fun j =>
    ⟨(ht j).2.1.nonneg, (ht j).1.nonneg⟩)

/-- A number that some multiple is at least 1 of has an inverse up to that. -/
private theorem inverse_le {τ κ : R} (hτ : τ ≠ 0) (h : 1 ≤ κ * absolute τ) : absolute τ⁻¹ ≤ κ := by
  have h₁ : absolute τ⁻¹ * absolute τ = 1 := by
    rw [← absolute_mul, CommSemiring.mul_comm, Field.mul_inv_cancel hτ]
    exact Std.le_antisymm (absolute_le (atMost_self (Std.le_of_lt OrderedRing.zero_lt_one)))
      (atMost_absolute 1).2
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h (absolute_nonneg τ⁻¹)
  rw [Semiring.mul_one, show absolute τ⁻¹ * (κ * absolute τ)
    = κ * (absolute τ⁻¹ * absolute τ) by grind, h₁, Semiring.mul_one] at h₂
  exact h₂

/-- **scaled-slope**: a slope of at most 1 that is off by `e`, times a part `τ` of the scale, and
rounded, is `τ` times a slope that is off by a rounding more, and by what is lost below the normal
numbers, as often as `τ` makes it smaller. -/
theorem scaled_slope {ν e τ κ s slope σ : R} (hτ : τ ≠ 0) (hν : 0 ≤ ν)
    (grows : 1 ≤ κ * absolute τ) (hs : AtMost e (s - slope)) (one : AtMost 1 slope)
    (h : StoredBelow u ν (τ * s) σ) :
    ∃ s', AtMost (e + u * (1 + e) + κ * ν) (s' - slope) ∧ σ = τ * s' := by
  obtain ⟨z, ⟨θ, hθ, rfl⟩, hσ, -⟩ := h
  have cancel := Field.mul_inv_cancel hτ
  refine ⟨τ⁻¹ * σ, ?_, by grind⟩
  have h₁ := (hs.add (hθ.mul (one.add hs))).add (((atMost_absolute τ⁻¹).mul hσ).mono
    (OrderedRing.mul_le_mul_of_nonneg_right (inverse_le hτ grows) hν))
  rwa [show s - slope + θ * (slope + (s - slope)) + τ⁻¹ * (σ - τ * s * (1 + θ))
    = τ⁻¹ * σ - slope by grind] at h₁

section
variable {p : GradientPrecision R} {τ : R} (hτ : τ ≠ 0) (grows : 1 ≤ p.growth * absolute τ)
include hτ grows

/-- Without the factor nothing loses more than what has grown. -/
theorem loses_grown {x : R} (hx : 0 ≤ x) : absolute τ⁻¹ * x ≤ p.growth * x :=
  OrderedRing.mul_le_mul_of_nonneg_right (inverse_le hτ grows) hx

variable (hp : PreciseGradient p) {d_v : Nat} {c : GradientCounts} {r : BackwardRow R n d_v}
include hp

/-- A row without the factor. -/
theorem scaled_row {S X : Fin n → R} (h : r.ScaledLast p c τ S X) :
    r.Computed p c S fun j => τ⁻¹ * X j := by
  have hτ' := inverse_ne_zero hτ
  have lost : ∀ {x : R}, 0 ≤ x → absolute τ⁻¹ * (1 * x) ≤ p.growth * x := fun hx => by
    rw [Semiring.one_mul]
    exact loses_grown hτ grows hx
  obtain ⟨D, hD, h⟩ := h
  refine ⟨D, hD, fun j => ?_⟩
  obtain ⟨a, b, x, G, w, σ, y, hab, hx, hG, hw, hS, ⟨s, hs, rfl⟩, hy, hX⟩ := h j
  refine ⟨a, b, x, G, w, s, τ⁻¹ * y, hab, hx, hG, hw, hS, hs, ?_,
    storedBelow_mul (lost hp.storedTiny) hX hτ'⟩
  have := belowTimes_mul (lost hp.tiny) hτ' hy
  rwa [show τ⁻¹ * (S j * (τ * s)) = S j * s by
    have := Field.mul_inv_cancel hτ
    grind] at this

/-- A weight without it. -/
theorem scaled_weight {j : Fin n} {w : R} (h : r.ScaledWeight p τ j w) :
    r.ComputedWeight p j (τ⁻¹ * w) := by
  have hτ' := inverse_ne_zero hτ
  have lost : ∀ {x : R}, 0 ≤ x → absolute τ⁻¹ * (1 * x) ≤ p.growth * x := fun hx => by
    rw [Semiring.one_mul]
    exact loses_grown hτ grows hx
  obtain ⟨x, t, y, hx, ht, hy, hw⟩ := h
  refine ⟨x, t, τ⁻¹ * y, hx, ht, ?_, storedBelow_mul (lost hp.storedTiny) hw hτ'⟩
  have h₁ : absolute τ⁻¹ * tinyOf (r.weight j) (1 * p.tiny) ≤ tinyOf (r.weight j)
      (p.growth * p.tiny) := by
    by_cases hn : r.weight j ≤ 0
    · rw [tinyOf_zero hn, tinyOf_zero hn, Semiring.mul_zero]
      exact Std.le_refl _
    · rw [tinyOf_pos hn, tinyOf_pos hn]
      exact lost hp.tiny
  have h₂ := atMost_mul h₁ hy
  rwa [show τ⁻¹ * (y - τ * r.factor j * x * t) = τ⁻¹ * y - r.factor j * x * t by
    have := Field.mul_inv_cancel hτ
    grind] at h₂

end

end Attention.Proof
