module

public import Attention.Model.RoundedGradients
public import Attention.Proof.Rounding.Dot
public import Attention.Proof.Rounding.Majorants
public import Attention.Spec.Backward

public section

/-! # No backward pass that rounds exceeds the tolerance of gradients

The bounds are sums and products of what each number may be in size: `Majorants.lean`.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-! ## One number -/

private theorem atMost_self {x : R} (h : 0 ≤ x) : AtMost x x := ⟨by grind, Std.le_refl _⟩

private theorem le_of_eq {x y : R} (h : x = y) : x ≤ y := h ▸ Std.le_refl x

private theorem pow_le_gamma {u : R} (hu : 0 ≤ u) {j k : Nat} (hj : j ≤ k)
    (hk : numeral k * u < 1) : (1 + u) ^ j ≤ 1 + gamma k u := by
  have := pow_sub_one_le_gamma hu hj hk
  grind

/-- A weight that is stored. -/
private theorem storedWeight_majorised {u weight error w : R} (hw : 0 ≤ weight)
    (h : StoredWeight u weight error w) :
    Majorised (weight * ((1 + error) * (1 + u))) weight w weight := by
  obtain ⟨x, hx, hw'⟩ := h
  have h₁ : Majorised (weight * (1 + error)) weight x weight := by
    refine ⟨?_, atMost_self hw⟩
    rwa [show weight * (1 + error) - weight = error * weight by grind]
  have h₂ := h₁.rounded hw'
  rwa [Semiring.mul_assoc] at h₂

/-- Larger factors of a majorant. -/
private theorem scale_le {A B C s : R} (hs : 0 ≤ s) (hC : 0 ≤ C) (h : A ≤ B) :
    s * A * C ≤ s * (B * C) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h hC
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ hs
  rwa [← Semiring.mul_assoc] at h₂

/-- dP, with any number of roundings. -/
private theorem product_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {factor : R} (hf : 0 ≤ factor) {dO v : Vec R d} {x : R}
    (h : ComputedProduct p c factor dO v x) :
    Majorised (factor * magnitude dO v
        * ((1 + p.accumulation) ^ c.products * ((1 + p.factors) * (1 + p.scores))))
      (factor * magnitude dO v) x (factor * Vec.dot dO v) := by
  obtain ⟨k, products, sum, t, hk, hproducts, hsum, ht, hx⟩ := h
  have hone : ∀ i ∈ List.finRange d,
      Majorised (absolute dO[i] * absolute v[i] * (1 + p.accumulation))
        (absolute dO[i] * absolute v[i]) (products i) (dO[i] * v[i]) := fun i _ =>
    (Majorised.exact ((atMost_absolute _).mul (atMost_absolute _))).rounded (hproducts i)
  have h₁ := Majorised.roundedSum hp.accumulation hsum hone
  have e : sumOver (fun i : Fin d => absolute dO[i] * absolute v[i]) (List.finRange d)
      = magnitude dO v := by
    rw [magnitude, Vec.dot]
    simp only [Fin.getElem_fin, Vec.getElem_map]
  rw [sumOver_mul_right, e, show sumOver (fun i : Fin d => dO[i] * v[i]) (List.finRange d)
    = Vec.dot dO v from rfl] at h₁
  have h₂ := (((Majorised.exact (atMost_self hf)).mul h₁).mul_factor ht).rounded hx
  refine h₂.mono ?_
  have hm : 0 ≤ factor * magnitude dO v :=
    OrderedRing.mul_nonneg hf (dot_atMost_magnitude dO v).nonneg
  have h₃ := OrderedField.pow_le_pow (x := 1 + p.accumulation)
    (by have := hp.accumulation; grind) hk
  have h₄ := scale_le hm (C := (1 + p.factors) * (1 + p.scores))
    (OrderedRing.mul_nonneg (by have := hp.factors; have := OrderedRing.zero_lt_one (R := R); grind)
      (by have := hp.scores; have := OrderedRing.zero_lt_one (R := R); grind)) h₃
  rw [Semiring.pow_succ] at h₄
  generalize (1 + p.accumulation) ^ c.products * ((1 + p.factors) * (1 + p.scores)) = y at *
  generalize magnitude dO v = m at *
  generalize (1 + p.accumulation) ^ k = z at *
  generalize 1 + p.accumulation = a at *
  generalize 1 + p.factors = f at *
  generalize 1 + p.scores = s at *
  clear h₁ h₂ h₃ e hone hsum hproducts
  grind

/-! ## The slope of softcap -/

/-- **rounded-softcap-slope**: the slope 1 − t² of softcap, from a t that is off and at most 1, the
square and the difference rounded, is within its bound. -/
theorem rounded_softcapSlope {u t t' e y z : R} (hu : u ≤ 1) (ht : AtMost 1 t)
    (ht' : AtMost 1 t') (he : AtMost e (t' - t)) (hy : Rounded u (t' * t') y)
    (hz : Rounded u (1 - y) z) : AtMost (softcapSlopeError u t e) (z - (1 - t * t)) := by
  obtain ⟨θ, hθ, rfl⟩ := hy
  obtain ⟨τ, hτ, rfl⟩ := hz
  have h₁ : AtMost 1 (t' * t') := by
    have := ht'.mul ht'
    rwa [Semiring.mul_one] at this
  have h₂ := ht.mul ht
  rw [Semiring.mul_one] at h₂
  have n₁ := mul_self_nonneg t
  have n₂ := mul_self_nonneg t'
  have h₃ : AtMost ((numeral 2 * absolute t + e) * e) (t' * t' - t * t) := by
    have i₁ := (atMost_absolute t).add ((atMost_absolute t).add he)
    have i₂ := i₁.mul he
    have e₁ : (t + (t + (t' - t))) * (t' - t) = t' * t' - t * t := by grind
    have e₂ : numeral 2 * absolute t + e = absolute t + (absolute t + e) := by
      rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
      generalize absolute t = a
      grind
    rwa [e₁, ← e₂] at i₂
  have h₄ := h₁.mul hθ
  rw [Semiring.one_mul] at h₄
  have h₅ : AtMost 1 (1 - t' * t' * (1 + θ)) := by
    have i₁ := OrderedRing.mul_nonneg n₂ (b := 1 + θ) (by have := hθ.1; grind)
    have i₂ : t' * t' * θ ≤ u := h₄.2
    have i₃ := h₁.2
    generalize t' * t' = a at *
    clear h₂ n₁ h₃ h₄
    exact ⟨by grind, by grind⟩
  have h₆ := h₅.mul hτ
  rw [Semiring.one_mul] at h₆
  have e₂ : (numeral 2 : R) = 2 := by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  rw [softcapSlopeError, smaller, e₂]
  rw [e₂] at h₃
  generalize absolute t = a at *
  generalize (2 * a + e) * e = b at *
  have l₁ : (1 - t' * t' * (1 + θ)) * (1 + τ) - (1 - t * t)
      = (1 - t' * t' * (1 + θ)) * τ - t' * t' * θ - (t' * t' - t * t) := by
    clear h₁ h₂ h₃ h₄ h₅ h₆ n₁ n₂ ht ht' he hθ hτ
    grind
  rw [l₁]
  clear l₁ h₅ ht ht' he hθ hτ
  generalize (1 - t' * t' * (1 + θ)) * τ = v at *
  generalize t' * t' * θ = w at *
  generalize t' * t' = x at *
  generalize t * t = x' at *
  obtain ⟨i₁, i₂⟩ := h₃
  obtain ⟨i₃, i₄⟩ := h₄
  obtain ⟨i₅, i₆⟩ := h₆
  obtain ⟨i₇, i₈⟩ := h₁
  obtain ⟨i₉, i₀⟩ := h₂
  split
  · exact ⟨by grind, by grind⟩
  · exact ⟨by grind, by grind⟩

/-! ## D -/

/-- Sums over components and keys, in either order. -/
theorem sum_exchange {q z : Fin n → R} {b : Fin d → R} {u : Fin n → Fin d → R} :
    sumOver (fun i => b i * sumOver (fun j => q j * (z j * u j i)) (List.finRange n))
        (List.finRange d)
      = sumOver (fun j => q j * (z j * sumOver (fun i => b i * u j i) (List.finRange d)))
        (List.finRange n) := by
  have h₁ : ∀ i ∈ List.finRange d,
      b i * sumOver (fun j => q j * (z j * u j i)) (List.finRange n)
        = sumOver (fun j => b i * (q j * (z j * u j i))) (List.finRange n) := fun i _ =>
    (sumOver_mul_left _ _ _).symm
  rw [sumOver_congr h₁, sumOver_comm]
  refine sumOver_congr fun j _ => ?_
  rw [← sumOver_mul_left, ← sumOver_mul_left]
  exact sumOver_congr fun i _ => by
    generalize u j i = x
    grind

private theorem le_mul_of_one_le {a b c : R} (ha : 0 ≤ a) (hab : a ≤ b) (hc : 1 ≤ c) :
    a ≤ b * c := by
  have h := OrderedField.mul_le_mul ha hab (c := 1) (d := c)
    (Std.le_of_lt OrderedRing.zero_lt_one) hc
  rwa [Semiring.mul_one] at h

private theorem one_le {x : R} (h : 0 ≤ x) : 1 ≤ 1 + x := by grind

private theorem nonneg_of_one_le {x : R} (h : 1 ≤ x) : 0 ≤ x := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

private theorem one_le_rescalings {e : R} (h₀ : 0 ≤ e) (h : e < 1) (k : Nat) :
    1 ≤ 1 / (1 - e) ^ k := by
  have h₁ := OrderedField.pow_pos (x := 1 - e) (by grind) k
  have h₂ := OrderedField.pow_le_one (x := 1 - e) (by grind) (by grind) k
  rw [OrderedField.le_div_iff h₁]
  rwa [Semiring.mul_one]

private theorem div_rescalings (y e : R) (k : Nat) : y / (1 - e) ^ k = y * (1 / (1 - e) ^ k) := by
  generalize (1 - e) ^ k = x
  rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.one_mul]

/-- What D may be off by in the sums, in the order in which it is bounded. -/
private def sums (p : GradientPrecision R) (c : GradientCounts) : R :=
  (1 + gamma c.delta p.accumulation) * (1 + p.factors) * (1 + p.scores) * (1 + p.output)
    / power (1 - p.exponential) c.rescalings

private theorem sums_le {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc : numeral c.delta * p.accumulation < 1) {N : Nat} (hN : N ≤ c.delta) :
    (1 + p.accumulation) ^ N * ((1 + p.factors) * (1 + p.scores)) ≤ sums p c ∧
      (1 + p.accumulation) ^ N * (1 + p.factors) / (1 - p.exponential) ^ c.rescalings
        * (1 + p.output) ≤ sums p c := by
  have hg := pow_le_gamma hp.accumulation hN hc
  have h₀ := OrderedField.one_le_pow (one_le hp.accumulation) N
  have hf := one_le hp.factors
  have hs := one_le hp.scores
  have ho := one_le hp.output
  have hI := one_le_rescalings hp.exponential hp.exponential_lt c.rescalings
  rw [sums, power_eq]
  generalize (1 + p.accumulation) ^ N = g at *
  generalize 1 + gamma c.delta p.accumulation = G at *
  generalize 1 + p.factors = f at *
  generalize 1 + p.scores = s at *
  generalize 1 + p.output = o at *
  rw [div_rescalings (G * f * s * o), div_rescalings (g * f)]
  generalize 1 / (1 - p.exponential) ^ c.rescalings = I at *
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hg (nonneg_of_one_le hf)
  have n₀ := OrderedRing.mul_nonneg (nonneg_of_one_le h₀) (nonneg_of_one_le hf)
  have n₁ := OrderedRing.mul_nonneg n₀ (nonneg_of_one_le hs)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (nonneg_of_one_le hs)
  have h₃ := le_mul_of_one_le n₁ h₂ ho
  have h₄ := le_mul_of_one_le n₁ h₃ hI
  have h₅ := le_mul_of_one_le n₀ h₁ hs
  have n₂ := nonneg_of_one_le ho
  have n₃ := nonneg_of_one_le hI
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedRing.mul_le_mul_of_nonneg_right h₅ n₂) n₃
  refine ⟨?_, ?_⟩
  · rwa [← Semiring.mul_assoc]
  · rwa [show g * f * I * o = g * f * o * I by grind]

private theorem regroup {g P E A x u F : R} (h : P * E * A ≥ 0) (hF : g * x * u ≤ F) :
    g * (P * E * (A * x) * u) ≤ P * A * (E * F) := by
  have := OrderedRing.mul_le_mul_of_nonneg_left hF h
  have e₁ : P * E * A * (g * x * u) = g * (P * E * (A * x) * u) := by grind
  have e₂ : P * E * A * F = P * A * (E * F) := by grind
  rwa [e₁, e₂] at this

/-- What a weight may be as it meets its value, over what it is. -/
private def storedFactor (p : GradientPrecision R) (r : BackwardRow R n d_v) (j : Fin n) : R :=
  (1 + r.error j) * (1 + p.stored)

private theorem storedFactor_nonneg {p : GradientPrecision R} (hp : PreciseGradient p)
    {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) : 0 ≤ storedFactor p r j :=
  OrderedRing.mul_nonneg (nonneg_of_one_le (one_le (hr.error j)))
    (nonneg_of_one_le (one_le hp.stored))

private theorem key_size_nonneg {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) :
    0 ≤ r.factor j * magnitude r.dO (r.value j) :=
  OrderedRing.mul_nonneg (hr.factor j) (dot_atMost_magnitude _ _).nonneg

/-- D as the sum of products. -/
private theorem mean_ofProducts {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {k : Nat} {w x y : Fin n → R} {D : R}
    (hw : ∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j))
    (hx : ∀ j, ComputedProduct p c (r.factor j) r.dO (r.value j) (x j))
    (hy : ∀ j, Rounded p.accumulation (w j * x j) (y j))
    (hD : RoundedSum p.accumulation k ((List.finRange n).map y) D)
    (hk : c.products + k + 1 ≤ c.delta) :
    Majorised (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j))
        * (storedFactor p r j * sums p c)) (List.finRange n))
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
  have h₁ := Majorised.roundedSum hp.accumulation hD fun j _ =>
    ((storedWeight_majorised (hr.weight j) (hw j)).mul
      (product_majorised hp (hr.factor j) (hx j))).rounded (hy j)
  refine h₁.mono ?_
  rw [← sumOver_mul_left]
  refine sumOver_le_sumOver fun j _ => regroup (E := (1 + r.error j) * (1 + p.stored))
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (hr.weight j) (storedFactor_nonneg hp hr j))
      (key_size_nonneg hr j)) ?_
  refine Std.le_trans (le_of_eq ?_) (sums_le hp hc hk).1
  rw [Semiring.pow_succ, Semiring.pow_add]
  generalize (1 + p.accumulation) ^ k = a
  generalize (1 + p.accumulation) ^ c.products = b
  generalize (1 + p.factors) * (1 + p.scores) = f
  clear h₁ hD hy hx hw hc hp
  grind

/-- One component of an output that is stored, times that of dO. -/
private theorem output_majorised {p : GradientPrecision R} {r : BackwardRow R n d_v}
    (hr : r.Valid) {T : R} {w : Fin n → R} {t : Fin n → R} {i : Fin d_v} {o y : R}
    (hw : ∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j))
    (ht : ∀ j, AtMost (T - 1) (t j - 1))
    (ho : Rounded p.output
      (sumOver (fun j => w j * (r.factor j * (r.value j)[i]) * t j) (List.finRange n)) o)
    (hy : Rounded p.accumulation (r.dO[i] * o) y) :
    Majorised (T * (1 + p.output) * (1 + p.accumulation)
        * (absolute r.dO[i] * sumOver (fun j => r.weight j * storedFactor p r j
          * (r.factor j * absolute (r.value j)[i])) (List.finRange n)))
      (absolute r.dO[i] * sumOver (fun j => r.weight j
        * (r.factor j * absolute (r.value j)[i])) (List.finRange n)) y
      (r.dO[i] * sumOver (fun j => r.weight j * (r.factor j * (r.value j)[i]))
        (List.finRange n)) := by
  have h₁ := Majorised.sum (xs := List.finRange n) fun j _ =>
    ((storedWeight_majorised (hr.weight j) (hw j)).mul (.exact
      ((atMost_self (hr.factor j)).mul (atMost_absolute (r.value j)[i])))).mul_factor (ht j)
  rw [sumOver_mul_right] at h₁
  have h₂ := ((Majorised.exact (atMost_absolute r.dO[i])).mul (h₁.rounded ho)).rounded hy
  refine h₂.mono (le_of_eq ?_)
  have e : (1 : R) + (T - 1) = T := by grind
  rw [e]
  simp only [storedFactor]
  generalize sumOver _ (List.finRange n) = x
  generalize 1 + p.output = a
  generalize 1 + p.accumulation = b
  generalize absolute r.dO[i] = f
  clear h₁ h₂ ho hy ht hw
  grind

/-- D from an output that is stored. -/
private theorem mean_ofOutput {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {m k : Nat} {w : Fin n → R} {t : Fin n → Fin d_v → R} {o y : Fin d_v → R} {D : R}
    (hw : ∀ j, StoredWeight p.stored (r.weight j) (r.error j) (w j))
    (ht : ∀ j i, AtMost ((1 + p.accumulation) ^ m * (1 + p.factors)
        / (1 - p.exponential) ^ c.rescalings - 1) (t j i - 1))
    (ho : ∀ i : Fin d_v, Rounded p.output
        (sumOver (fun j => w j * (r.factor j * (r.value j)[i]) * t j i) (List.finRange n)) (o i))
    (hy : ∀ i : Fin d_v, Rounded p.accumulation (r.dO[i] * o i) (y i))
    (hD : RoundedSum p.accumulation k ((List.finRange d_v).map y) D)
    (hk : m + k + 1 ≤ c.delta) :
    Majorised (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j))
        * (storedFactor p r j * sums p c)) (List.finRange n))
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
  have h₁ := Majorised.roundedSum hp.accumulation hD fun i _ =>
    output_majorised hr hw (fun j => ht j i) (ho i) (hy i)
  rw [sumOver_mul_left, sum_exchange, sum_exchange, sum_exchange] at h₁
  have e : ∀ j, sumOver (fun i : Fin d_v => absolute r.dO[i] * absolute (r.value j)[i])
      (List.finRange d_v) = magnitude r.dO (r.value j) := fun j => by
    rw [magnitude, Vec.dot]
    simp only [Fin.getElem_fin, Vec.getElem_map]
  simp only [e] at h₁
  refine h₁.mono ?_
  rw [← sumOver_mul_left, ← sumOver_mul_left]
  refine sumOver_le_sumOver fun j _ => ?_
  have n₁ : 0 ≤ r.weight j * storedFactor p r j * (r.factor j * magnitude r.dO (r.value j)) :=
    OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (hr.weight j) (storedFactor_nonneg hp hr j))
      (key_size_nonneg hr j)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (sums_le hp hc hk).2 n₁
  rw [Semiring.pow_succ, Semiring.pow_add] at h₂
  clear h₁ hD hy ho ht hw hc hp e n₁
  generalize sums p c = F at *
  generalize storedFactor p r j = E at *
  generalize r.factor j * magnitude r.dO (r.value j) = A at *
  rw [div_rescalings] at h₂ ⊢
  generalize 1 / (1 - p.exponential) ^ c.rescalings = I at *
  generalize (1 + p.accumulation) ^ k = a at *
  generalize (1 + p.accumulation) ^ m = b at *
  generalize 1 + p.accumulation = u at *
  generalize 1 + p.factors = f at *
  generalize 1 + p.output = q at *
  refine Std.le_trans (le_of_eq ?_) (Std.le_trans h₂ (le_of_eq ?_))
  · clear h₂
    grind
  · clear h₂
    grind

/-- D, however it is come by. -/
private theorem mean_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {D : R} (h : ComputedMean p c r D) :
    Majorised (meanSize r.keys + meanError p c r.keys) (meanSize r.keys) D
      (meanProduct r.keys) := by
  have h₁ : Majorised (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j))
        * (storedFactor p r j * sums p c)) (List.finRange n))
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
    cases h with
    | ofProducts hw hx hy hD hk => exact mean_ofProducts hp hc hr hw hx hy hD hk
    | ofOutput hw ht ho hy hD hk => exact mean_ofOutput hp hc hr hw ht ho hy hD hk
  simp only [meanSize, meanError, meanProduct, BackwardRow.keys, sumOver_map, BackwardRow.key,
    gradientKey]
  refine h₁.mono (le_of_eq ?_)
  rw [← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  show _ * _ * (_ * sums p c) = _ + _ * _ * (_ * _ * sums p c - 1)
  rw [storedFactor]
  clear h₁ h hc hr hp
  generalize sums p c = F
  generalize magnitude r.dO (r.value j) = A
  grind

/-! ## dS -/

private theorem mean_keys {r : BackwardRow R n d_v} {p : GradientPrecision R}
    (hp : PreciseGradient p) {c : GradientCounts} (hr : r.Valid) {j : Fin n} {x : R}
    (hc : numeral c.products * p.accumulation < 1)
    (hx : ComputedProduct p c (r.factor j) r.dO (r.value j) x) :
    Majorised ((r.key j).size * ((1 + gamma c.products p.accumulation) * (1 + p.factors)
      * (1 + p.scores))) (r.key j).size x (r.key j).product := by
  refine (product_majorised hp (hr.factor j) hx).mono ?_
  have h₁ := pow_le_gamma hp.accumulation (Nat.le_refl c.products) hc
  have h₂ := scale_le (key_size_nonneg hr j) (C := (1 + p.factors) * (1 + p.scores))
    (OrderedRing.mul_nonneg (nonneg_of_one_le (one_le hp.factors))
      (nonneg_of_one_le (one_le hp.scores))) h₁
  rw [← Semiring.mul_assoc] at h₂ ⊢
  rwa [Semiring.mul_assoc, Semiring.mul_assoc, ← Semiring.mul_assoc (1 + gamma _ _),
    ← Semiring.mul_assoc] at h₂

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
private theorem inner_error {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {D x G : R} {j : Fin n} (hD : ComputedMean p c r D)
    (hx : ComputedProduct p c (r.factor j) r.dO (r.value j) x)
    (hG : RoundedSum p.unit 3 [x, -D, r.dL] G) :
    AtMost (innerError p c r.dL r.keys (r.key j))
      (G - innerGradient r.dL r.keys (r.key j)) := by
  have terms := three_terms (mean_keys hp hr hc₁ hx) (mean_majorised hp hc₂ hr hD)
    (.exact (atMost_absolute r.dL))
  have h₁ := (Majorised.roundedSum hp.unit (xs := [(_, _, x, (r.key j).product),
    (_, _, -D, -meanProduct r.keys), (_, _, r.dL, r.dL)]) (f := fun t => t.2.2.1) hG terms).error
  have h₂ := pow_le_gamma hp.unit (Nat.le_refl 3) hu
  have h₃ := (Majorised.sum terms).computed.nonneg
  rw [innerError, innerGradient, innerSize]
  simp only [sumOver_cons, sumOver_nil] at h₁ h₃
  clear terms hG hx hD hc₁ hc₂ hu hp hr
  generalize (1 + gamma c.products p.accumulation) * (1 + p.factors) * (1 + p.scores) = E at *
  generalize meanError p c r.keys = e at *
  generalize meanSize r.keys = W at *
  generalize meanProduct r.keys = M at *
  generalize (r.key j).size = A at *
  generalize (r.key j).product = P at *
  generalize absolute r.dL = L at *
  generalize gamma 3 p.unit = g at *
  generalize (1 + p.unit) ^ 3 = f at *
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₂ h₃
  have h₅ := h₁.mono (show f * (A * E + (W + e + (L + 0))) - (A + (W + (L + 0)))
    ≤ (1 + g) * (A * E + (W + e + (L + 0))) - (A + (W + (L + 0))) by
      clear h₁ h₂ h₃
      grind)
  rwa [show G - (P + (-M + (r.dL + 0))) = G - (P - M + r.dL) by grind,
    show (1 + g) * (A * E + (W + e + (L + 0))) - (A + (W + (L + 0)))
      = (E - 1) * A + e + g * (A + W + L + ((E - 1) * A + e)) by clear h₅ h₁ h₂ h₃ h₄; grind] at h₅

private theorem absolute_mul (x y : R) : absolute (x * y) = absolute x * absolute y :=
  Std.le_antisymm (absolute_le ((atMost_absolute x).mul (atMost_absolute y)))
    (absolute_mul_le x y)

private theorem majorised_of_error {e x y : R} (h : AtMost e (y - x)) :
    Majorised (absolute x + e) (absolute x) y x :=
  ⟨by rwa [show absolute x + e - absolute x = e by grind], atMost_absolute x⟩

/-- dS, with roundings that come to a factor `t`. -/
private theorem scoreGradient_close {p : GradientPrecision R} {c : GradientCounts} {dL : R}
    {keys : List (GradientKey R)} {k : GradientKey R} (hw : 0 ≤ k.weight) {G w t : R}
    (hG : AtMost (innerError p c dL keys k) (G - innerGradient dL keys k))
    (hs : StoredWeight p.weights k.weight k.error w) (ht : AtMost (gamma 2 p.unit) (t - 1)) :
    AtMost (scoreGradientError p c dL keys k) (w * G * t - k.weight * innerGradient dL keys k) := by
  have h := (((storedWeight_majorised hw hs).mul (majorised_of_error hG)).mul_factor ht).error
  rw [scoreGradientError]
  clear hG hs ht hw
  generalize innerError p c dL keys k = e at *
  generalize innerGradient dL keys k = I at *
  generalize absolute I = A at *
  generalize gamma 2 p.unit = g at *
  generalize k.weight = P at *
  generalize 1 + p.weights = u at *
  generalize 1 + k.error = v at *
  rwa [show P * (v * u) * (A + e) * (1 + g) - P * A = P * ((v * u * (1 + g) - 1) * (A + e) + e) by
    clear h; grind] at h

/-- |G| ≤ A + W + |dL|. -/
private theorem inner_size {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) :
    AtMost (innerSize r.dL r.keys (r.key j)) (innerGradient r.dL r.keys (r.key j)) := by
  have one : ∀ i, AtMost (r.key i).size (r.key i).product := fun i =>
    (atMost_self (hr.factor i)).mul (dot_atMost_magnitude r.dO (r.value i))
  have mean : AtMost (meanSize r.keys) (meanProduct r.keys) := by
    refine sumOver_atMost fun k hk => ?_
    obtain ⟨i, -, rfl⟩ := List.mem_map.mp hk
    exact (atMost_self (hr.weight i)).mul (one i)
  exact ((one j).sub mean).add (atMost_absolute r.dL)

/-- **rounded-score-gradients**: dS of a query row, with every operation rounded, and the weights
computed again with relative errors, is within its bound, however D was come by. -/
theorem rounded_scoreGradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {S X : Fin n → R} (h : r.Computed p c S X)
    (j : Fin n) :
    AtMost (scoreGradientError p c r.dL r.keys (r.key j)) (S j - r.scoreGradient j) := by
  obtain ⟨D, hD, hj⟩ := h
  obtain ⟨a, b, x, G, w, slope, y, hab, hx, hG, hw, hS, -, -, -⟩ := hj j
  have h₁ := inner_error hp hc₁ hc₂ hu hr hD hx hG
  obtain ⟨t, hS', ht⟩ := roundedTimes_factor hS
  have h2 : numeral 2 * p.unit < 1 := by
    have := hp.unit
    rw [numeral_succ] at hu
    grind
  have h₂ := pow_sub_one_le_gamma hp.unit (show a ≤ 2 by omega) h2
  rw [hS']
  exact scoreGradient_close (hr.weight j) h₁ hw (ht.mono h₂)

/-- What dS times the slope is off by where it meets keys and queries, and its size. -/
theorem rounded_scoreGradientTerm {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc₂ : numeral c.delta * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {r : BackwardRow R n d_v} (hr : r.Valid) {S X : Fin n → R} (h : r.Computed p c S X)
    (j : Fin n) (other : R) :
    AtMost (scoreGradientTerm p c r.dL r.keys (r.key j) other).error
        (X j - r.scoreGradient j * r.slope j) ∧
      AtMost (scoreGradientTerm p c r.dL r.keys (r.key j) other).size
        (r.scoreGradient j * r.slope j) := by
  obtain ⟨D, hD, hj⟩ := h
  obtain ⟨a, b, x, G, w, slope, y, hab, hx, hG, hw, hS, hslope, hy, hX⟩ := hj j
  have h₁ := inner_error hp hc₁ hc₂ hu hr hD hx hG
  obtain ⟨t, hS', ht⟩ := roundedTimes_factor hS
  obtain ⟨t', hy', ht'⟩ := roundedTimes_factor hy
  have h2 : numeral 2 * p.unit < 1 := by
    have := hp.unit
    rw [numeral_succ] at hu
    grind
  have h₂ := factor_mul ht ht'
  rw [← Semiring.pow_add] at h₂
  have h₃ := scoreGradient_close (hr.weight j) h₁ hw
    (h₂.mono (pow_sub_one_le_gamma hp.unit hab h2))
  have h₄ := ((majorised_of_error h₃).mul (majorised_of_error hslope)).rounded
    (u := p.stored) (y := X j) (by
      rw [hy', hS'] at hX
      rwa [show w * G * (t * t') * slope = w * G * t * slope * t' by
        clear h₁ h₂ h₃ hX hS' hy' hS hy ht ht' hG; grind])
  have h₅ := h₄.error
  have n₁ := h₃.nonneg
  have n₂ := hslope.nonneg
  refine ⟨?_, ?_⟩
  · rw [scoreGradientTerm]
    show AtMost _ (X j - (r.key j).weight * innerGradient r.dL r.keys (r.key j) * r.slope j)
    clear h₁ h₂ h₃ h₄ hX hS hy hS' hy' ht ht' hG hD hx hw hslope
    show AtMost (scoreGradientError p c r.dL r.keys (r.key j) * (absolute (r.slope j)
      + r.slopeError j) + absolute ((r.key j).weight * innerGradient r.dL r.keys (r.key j))
        * r.slopeError j + p.stored * (absolute ((r.key j).weight
          * innerGradient r.dL r.keys (r.key j)) * absolute (r.slope j)
          + (scoreGradientError p c r.dL r.keys (r.key j) * (absolute (r.slope j)
            + r.slopeError j) + absolute ((r.key j).weight
              * innerGradient r.dL r.keys (r.key j)) * r.slopeError j))) _
    generalize scoreGradientError p c r.dL r.keys (r.key j) = e at *
    generalize (r.key j).weight * innerGradient r.dL r.keys (r.key j) = s at *
    generalize absolute s = A at *
    generalize absolute (r.slope j) = B at *
    generalize r.slopeError j = f at *
    rwa [show (A + e) * (B + f) * (1 + p.stored) - A * B
      = e * (B + f) + A * f + p.stored * (A * B + (e * (B + f) + A * f)) by
        clear h₅; grind] at h₅
  · have h₆ := ((atMost_self (hr.weight j)).mul (inner_size hr j)).mul
      ((atMost_absolute (r.slope j)).mono (b := absolute (r.slope j) + r.slopeError j) (by
        clear h₁ h₂ h₃ h₄ h₅; grind))
    exact h₆

/-- What a weight is off by where it meets dO, and its size. -/
theorem rounded_weightTerm {p : GradientPrecision R} {r : BackwardRow R n d_v} (hr : r.Valid)
    {j : Fin n} {w : R} (h : r.ComputedWeight p j w) (other : R) :
    AtMost (weightTerm p (r.key j) other).error (w - r.factor j * r.weight j) ∧
      AtMost (weightTerm p (r.key j) other).size (r.factor j * r.weight j) := by
  obtain ⟨x, t, hx, ht, hw⟩ := h
  have hf := atMost_self (hr.factor j)
  refine ⟨?_, hf.mul (atMost_self (hr.weight j))⟩
  have h₁ := ((((Majorised.exact hf).mul (storedWeight_majorised (hr.weight j) hx)).mul_factor
    ht).rounded hw).error
  show AtMost (r.factor j * r.weight j
    * ((1 + r.error j) * (1 + p.weights) * (1 + p.factors) * (1 + p.stored) - 1)) _
  generalize 1 + r.error j = a at *
  generalize 1 + p.weights = b at *
  generalize 1 + p.factors = e at *
  generalize 1 + p.stored = f at *
  generalize r.factor j = z at *
  generalize r.weight j = y at *
  rwa [show z * (y * (a * b)) * e * f - z * y = z * y * (a * b * e * f - 1) by
    clear h₁; grind] at h₁

/-! ## Sums of products -/

private theorem gradient_bound {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores k a b e f : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hk : k + 1 ≤ roundings) (hab : a + b ≤ stores)
    (hef : e + f ≤ 3) :
    (1 + p.accumulation) ^ (k + 1) * (1 + p.unit) ^ (e + f) * (1 + p.operands) ^ (a + b)
      ≤ (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
        * power (1 + p.operands) stores := by
  rw [power_eq]
  have n₁ := OrderedField.one_le_pow (one_le hp.accumulation) (k + 1)
  have n₂ := OrderedField.one_le_pow (one_le hp.unit) (e + f)
  have n₃ := OrderedField.one_le_pow (one_le hp.operands) (a + b)
  exact OrderedField.mul_le_mul
    (OrderedRing.mul_nonneg (nonneg_of_one_le n₁) (nonneg_of_one_le n₂))
    (OrderedField.mul_le_mul (nonneg_of_one_le n₁) (pow_le_gamma hp.accumulation hk hc)
      (nonneg_of_one_le n₂) (pow_le_gamma hp.unit hef hu))
    (nonneg_of_one_le n₃) (OrderedField.pow_le_pow (one_le hp.operands) hab)

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
    (nonneg_of_one_le (one_le hu))
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
