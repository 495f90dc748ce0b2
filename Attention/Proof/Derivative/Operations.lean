module

public import Attention.Algebra.Tangent
public import Attention.Proof.Derivative.Exponential

public section

/-! # What operations on dual numbers compute are the derivatives of the operations

For sums, products, quotients, the exponential, the rectified linear unit and roots, along all paths
at once. -/

namespace Attention.Proof

open Exponential Lean.Grind

universe u v w

variable {R : Type u} [OrderedField R] {ι : Type v}

/-! ## One path -/

namespace Within

variable {B C τ : R} {f g : R → R} {a b : Dual R}

/-- A larger bound and a shorter time will do. -/
theorem mono {B' τ' : R} (h : TangentWithin B τ f a) (hB : B ≤ B') (hτ : τ' ≤ τ) :
    TangentWithin B' τ' f a := by
  obtain ⟨h₁, h₂, h₃⟩ := h
  refine ⟨h₁.mono hB, h₂.mono hB, fun t ht => (h₃ t (ht.mono hτ)).mono ?_⟩
  exact OrderedRing.mul_le_mul_of_nonneg_right hB (mul_self_nonneg t)

/-- |t|, and how far a path gets in time t. -/
theorem reach (h : TangentWithin B τ f a) (hτ : τ ≤ 1) {t : R} (ht : AtMost τ t) :
    ∃ s, AtMost s t ∧ s * s = t * t ∧ s ≤ τ ∧ AtMost ((B + B) * s) (f t - a.val) := by
  obtain ⟨s, hs, e, hsτ⟩ : ∃ s, AtMost s t ∧ s * s = t * t ∧ s ≤ τ := by
    rcases Std.le_total (a := 0) (b := t) with h | h
    · exact ⟨t, ⟨by grind, Std.le_refl _⟩, rfl, ht.2⟩
    · exact ⟨-t, ⟨by grind, by grind⟩, by grind, by have := ht.1; grind⟩
  refine ⟨s, hs, e, hsτ, ?_⟩
  obtain ⟨_, h₂, h₃⟩ := h
  have h₄ := (h₃ t ht).add (hs.mul h₂)
  have h₅ : s * s ≤ s := by
    have := OrderedRing.mul_le_mul_of_nonneg_left (Std.le_trans hsτ hτ) hs.nonneg
    rwa [Semiring.mul_one] at this
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left h₅ h₂.nonneg
  have e₁ : f t - a.val - t * a.der + t * a.der = f t - a.val := by grind
  rw [e₁, ← e] at h₄
  exact h₄.mono (by grind)

/-- The sum rule. -/
theorem add (hf : TangentWithin B τ f a) (hg : TangentWithin C τ g b) :
    TangentWithin (B + C) τ (fun t => f t + g t) (a + b) := by
  obtain ⟨h₁, h₂, h₃⟩ := hf
  obtain ⟨h₄, h₅, h₆⟩ := hg
  refine ⟨h₁.add h₄, h₂.add h₅, fun t ht => ?_⟩
  have h := (h₃ t ht).add (h₆ t ht)
  have e : f t - a.val - t * a.der + (g t - b.val - t * b.der)
      = f t + g t - (a + b).val - t * (a + b).der := by
    rw [Dual.val_add, Dual.der_add]
    grind
  rw [e, ← Semiring.right_distrib] at h
  exact h

/-- The rule for a difference. -/
theorem sub (hf : TangentWithin B τ f a) (hg : TangentWithin C τ g b) :
    TangentWithin (B + C) τ (fun t => f t - g t) (a - b) := by
  obtain ⟨h₁, h₂, h₃⟩ := hf
  obtain ⟨h₄, h₅, h₆⟩ := hg
  refine ⟨h₁.sub h₄, h₂.sub h₅, fun t ht => ?_⟩
  have h := (h₃ t ht).sub (h₆ t ht)
  have e : f t - a.val - t * a.der - (g t - b.val - t * b.der)
      = f t - g t - (a - b).val - t * (a - b).der := by
    rw [Dual.val_sub, Dual.der_sub]
    grind
  rw [e, ← Semiring.right_distrib] at h
  exact h

private theorem product (x y x' y' t e e' : R) :
    (x + t * x' + e) * (y + t * y' + e') - x * y - t * (x' * y + x * y')
      = t * t * (x' * y') + (x + t * x') * e' + e * (y + t * y' + e') := by
  grind

/-- The product rule. -/
theorem mul (hτ : τ ≤ 1) (hf : TangentWithin B τ f a) (hg : TangentWithin B τ g b) :
    TangentWithin (6 * (B * B)) τ (fun t => f t * g t) (a * b) := by
  obtain ⟨h₁, h₂, h₃⟩ := hf
  obtain ⟨h₄, h₅, h₆⟩ := hg
  have hB := h₁.nonneg
  have hBB := OrderedRing.mul_nonneg hB hB
  refine ⟨(h₁.mul h₄).mono (by grind), ((h₂.mul h₄).add (h₁.mul h₅)).mono (by grind),
    fun t ht => ?_⟩
  have hf := h₃ t ht
  have hg := h₆ t ht
  have ht₁ := ht.mono hτ
  have htt : t * t ≤ 1 := by have := (ht₁.mul ht₁).2; grind
  have hBt : B * (t * t) ≤ B := by
    have := OrderedRing.mul_le_mul_of_nonneg_left htt hB
    rwa [Semiring.mul_one] at this
  have hsq : AtMost (t * t) (t * t) := ⟨by have := mul_self_nonneg t; grind, Std.le_refl _⟩
  have ha := h₁.add (ht₁.mul h₂)
  have hb := (h₄.add (ht₁.mul h₅)).add (hg.mono hBt)
  have h := ((hsq.mul (h₂.mul h₅)).add (ha.mul hg)).add (hf.mul hb)
  rw [← product, show a.val + t * a.der + (f t - a.val - t * a.der) = f t by grind,
    show b.val + t * b.der + (g t - b.val - t * b.der) = g t by grind] at h
  exact h.mono (by grind)

/-- 1 / b, changing at the rate −b' / b². -/
@[expose] def inverse (b : Dual R) : Dual R := ⟨b.val⁻¹, -(b.der * b.val⁻¹ * b.val⁻¹)⟩

/-- A quotient is a product with an inverse. -/
theorem div_eq (h : b.val ≠ 0) : a / b = a * inverse b := by
  refine Dual.ext ?_ ?_
  · rw [Dual.val_div, Dual.val_mul, inverse, Field.div_eq_mul_inv]
  · rw [Dual.der_div, Dual.der_mul, inverse]
    generalize b.val = y at h
    grind

private theorem reciprocal {y y' t z : R} (hy : y ≠ 0) (hz : z ≠ 0) :
    z⁻¹ - y⁻¹ - t * -(y' * y⁻¹ * y⁻¹)
      = (t * t * (y' * y') + t * y' * (z - y - t * y') - (z - y - t * y') * y)
          * z⁻¹ * y⁻¹ * y⁻¹ := by
  grind

/-- The inverse of a number that is at least 1 / n. -/
theorem inv_atMost {y n m : R} (hm : 0 < m) (hn : m * n = 1) (hy : m ≤ y) : AtMost n y⁻¹ := by
  have hy₀ : 0 < y := by grind
  have h₁ := (Field.IsOrdered.inv_pos_iff (a := y)).mpr hy₀
  have hn₀ : 0 < n := by
    have : n = m⁻¹ := by grind
    rw [this]
    exact Field.IsOrdered.inv_pos_iff.mpr hm
  refine ⟨by grind, ?_⟩
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hy (Std.le_of_lt (OrderedRing.mul_pos h₁ hn₀))
  have e₁ : m * (y⁻¹ * n) = y⁻¹ := by grind
  have e₂ : y * (y⁻¹ * n) = n := by grind
  rwa [e₁, e₂] at h₂

/-- The inverse of a path that is at least `m` at time 0, while it is at least m / 2. -/
theorem inv {m n : R} (hm : 0 < m) (hn : m * n = 1) (hτ : τ ≤ 1) (hτm : τ * (B + B) ≤ m / 2)
    (hg : TangentWithin B τ g b) (hb : m ≤ b.val) :
    TangentWithin (n + B * n * n + 6 * (B * B) * (n * n * n)) τ (fun t => (g t)⁻¹) (inverse b) := by
  have hi := inv_atMost hm hn hb
  have hn₀ := hi.nonneg
  have hB := hg.1.nonneg
  have p₁ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hB hn₀) hn₀
  have p₂ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hB hB)
    (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hn₀ hn₀) hn₀)
  have hd := (hg.2.1.mul hi).mul hi
  refine ⟨hi.mono (by grind), ?_, fun t ht => ?_⟩
  · exact AtMost.mono (a := B * n * n) ⟨by have := hd.2; simp only [inverse]; grind,
      by have := hd.1; simp only [inverse]; grind⟩ (by grind)
  obtain ⟨s, hs, e, hsτ, hr⟩ := reach hg hτ ht
  have hgt : m / 2 ≤ g t := by
    have := OrderedRing.mul_le_mul_of_nonneg_left hsτ (by grind : 0 ≤ B + B)
    have := hr.1
    grind
  have hj := inv_atMost (n := n + n) (m := m / 2) (by grind) (by grind) hgt
  have he := hg.2.2 t ht
  have hsq : AtMost (t * t) (t * t) := ⟨by have := mul_self_nonneg t; grind, Std.le_refl _⟩
  have h := (((((hsq.mul (hg.2.1.mul hg.2.1)).add (((ht.mono hτ).mul hg.2.1).mul he)).sub
    (he.mul hg.1)).mul hj).mul hi).mul hi
  rw [← reciprocal (by grind) (by grind)] at h
  refine h.mono ?_
  have p₃ := OrderedRing.mul_nonneg (Std.le_trans hn₀ (by grind : n ≤ n + B * n * n))
    (mul_self_nonneg t)
  grind

/-- The rectified linear unit, of a path that is at least `m` away from 0 at time 0. -/
theorem relu {m : R} (hm : 0 < m) (hτ : τ ≤ 1) (hτm : τ * (B + B) ≤ m / 2)
    (hf : TangentWithin B τ f a) (ha : m ≤ a.val ∨ a.val ≤ -m) :
    TangentWithin B τ (fun t => max 0 (f t)) (max 0 a) := by
  have hB := hf.1.nonneg
  have near : ∀ t, AtMost τ t → AtMost (m / 2) (f t - a.val) := fun t ht => by
    obtain ⟨s, _, _, hsτ, hr⟩ := reach hf hτ ht
    have := OrderedRing.mul_le_mul_of_nonneg_left hsτ (by grind : 0 ≤ B + B)
    exact hr.mono (by grind)
  rcases ha with ha | ha
  · have e : (max 0 a : Dual R) = a := if_neg (show ¬ a.val ≤ (0 : R) by grind)
    rw [e]
    refine ⟨hf.1, hf.2.1, fun t ht => ?_⟩
    have : (max 0 (f t) : R) = f t := by
      have := (near t ht).1
      rw [OrderedField.max_def, if_pos (by grind)]
    show AtMost _ (max 0 (f t) - a.val - t * a.der)
    rw [this]
    exact hf.2.2 t ht
  · have e : (max 0 a : Dual R) = 0 := if_pos (show a.val ≤ (0 : R) by grind)
    rw [e]
    refine ⟨AtMost.zero hB, AtMost.zero hB, fun t ht => ?_⟩
    have : (max 0 (f t) : R) = 0 := by
      have := (near t ht).2
      rw [OrderedField.max_def, if_neg (by grind)]
    show AtMost _ (max 0 (f t) - (0 : Dual R).val - t * (0 : Dual R).der)
    rw [this, Dual.val_zero, Dual.der_zero, Semiring.mul_zero, AddCommGroup.sub_self,
      AddCommGroup.sub_self]
    exact AtMost.zero (OrderedRing.mul_nonneg hB (mul_self_nonneg t))

private theorem rootError {r q t y' e i j : R} (hi : (r + q) * i = 1) (hj : (q + q) * j = 1)
    (h : r * r - q * q = t * y' + e) :
    r - q - t * (y' * j) = e * i - t * y' * (t * y' + e) * i * i * j := by
  have h₁ : r - q = (t * y' + e) * i := by
    rw [← h]
    grind
  have h₂ : t * y' * i - t * (y' * j) = -(t * y' * (r - q) * i * j) := by grind
  grind

/-- A square root, of a path that is at least k² at time 0. -/
theorem root {sqrt : R → R} (hsqrt : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) {k n : R}
    (hk : 0 < k) (hn : k * n = 1) (hτ : τ ≤ 1) (hτm : τ * (B + B) ≤ k * k / 2)
    (hf : TangentWithin B τ f a) (ha : k * k ≤ a.val) :
    TangentWithin (1 + B + B * n + B * n + (B + B) * B * n * n * n) τ (fun t => sqrt (f t))
      (Dual.root sqrt a) := by
  have hB := hf.1.nonneg
  have hkk := OrderedRing.mul_pos hk hk
  obtain ⟨hq₀, hq⟩ := hsqrt a.val (by grind)
  have hkq : k ≤ sqrt a.val := by
    refine Classical.byContradiction fun h => ?_
    have := OrderedRing.mul_le_mul_of_nonneg_left (by grind : sqrt a.val ≤ k) hq₀
    have := OrderedRing.mul_lt_mul_of_pos_left (by grind : sqrt a.val < k) hk
    grind
  have hj := inv_atMost hk hn (by grind : k ≤ sqrt a.val + sqrt a.val)
  have hn₀ := hj.nonneg
  have p₁ := OrderedRing.mul_nonneg hB hn₀
  have p₂ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg
    (OrderedRing.mul_nonneg (by grind : 0 ≤ B + B) hB) hn₀) hn₀) hn₀
  have hd := hf.2.1.mul hj
  have hone : sqrt a.val ≤ 1 + B := by
    have := mul_self_nonneg (sqrt a.val - 1)
    have := hf.1.2
    grind
  refine ⟨⟨?_, ?_⟩, ?_, fun t ht => ?_⟩
  · show _ ≤ sqrt a.val
    grind
  · show sqrt a.val ≤ _
    grind
  · show AtMost _ (a.der / (sqrt a.val + sqrt a.val))
    rw [Field.div_eq_mul_inv]
    exact hd.mono (by grind)
  obtain ⟨s, hs, e, hsτ, hr⟩ := reach hf hτ ht
  have hft : 0 ≤ f t := by
    have := OrderedRing.mul_le_mul_of_nonneg_left hsτ (by grind : 0 ≤ B + B)
    have := hr.1
    grind
  obtain ⟨hr₀, hrr⟩ := hsqrt (f t) hft
  have hi := inv_atMost hk hn (by grind : k ≤ sqrt (f t) + sqrt a.val)
  have he := hf.2.2 t ht
  have h := (he.mul hi).sub (((((hs.mul hf.2.1).mul hr).mul hi).mul hi).mul hj)
  have h₁ := rootError (r := sqrt (f t)) (q := sqrt a.val) (t := t) (y' := a.der)
    (e := f t - a.val - t * a.der) (i := (sqrt (f t) + sqrt a.val)⁻¹)
    (j := (sqrt a.val + sqrt a.val)⁻¹) (Field.mul_inv_cancel (by grind))
    (Field.mul_inv_cancel (by grind)) (by rw [hrr, hq]; grind)
  have h₂ : t * a.der + (f t - a.val - t * a.der) = f t - a.val := by grind
  rw [h₂] at h₁
  rw [← h₁] at h
  have e₁ : B * (t * t) * n + s * B * ((B + B) * s) * n * n * n
      = (B * n + (B + B) * B * n * n * n) * (t * t) := by
    rw [← e]
    grind
  rw [e₁] at h
  show AtMost _ (sqrt (f t) - sqrt a.val - t * (a.der / (sqrt a.val + sqrt a.val)))
  rw [Field.div_eq_mul_inv]
  exact h.mono (OrderedRing.mul_le_mul_of_nonneg_right (by grind) (mul_self_nonneg t))

variable [NaturalExp R]

/-- The exponential. -/
theorem exp (hτ : τ ≤ 1) (hτB : τ * (B + B) ≤ 1) (hf : TangentWithin B τ f a) :
    TangentWithin ((1 + B + 2 * ((B + B) * (B + B))) * Attention.exp B) τ
      (fun t => Attention.exp (f t)) (Attention.exp a) := by
  have hB := hf.1.nonneg
  have hBB := mul_self_nonneg (B + B)
  have hpos := exp_pos (R := R) a.val
  have hexp : AtMost (Attention.exp B) (Attention.exp a.val : R) :=
    ⟨by have := exp_pos (R := R) B; grind, exp_le hf.1.2⟩
  have p₁ := OrderedRing.mul_nonneg hB hexp.nonneg
  have p₂ := OrderedRing.mul_nonneg hBB hexp.nonneg
  have p₃ := hexp.nonneg
  refine ⟨?_, ?_, fun t ht => ?_⟩
  · rw [Dual.val_exp]
    exact hexp.mono (by grind)
  · rw [Dual.der_exp]
    exact (hexp.mul hf.2.1).mono (by grind)
  obtain ⟨s, hs, e, hsτ, hr⟩ := reach hf hτ ht
  have h₁ : AtMost 1 (f t - a.val) := by
    have := OrderedRing.mul_le_mul_of_nonneg_left hsτ (by grind : 0 ≤ B + B)
    exact hr.mono (by grind)
  have h₂ := exp_isDerivative a.val h₁
  have h₃ := (hr.mul hr).2
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₃ (Std.le_of_lt hpos)
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_left hexp.2
    (OrderedRing.mul_nonneg (a := (B + B) * s) (b := (B + B) * s)
      (OrderedRing.mul_nonneg (by grind) hs.nonneg) (OrderedRing.mul_nonneg (by grind) hs.nonneg))
  have h₆ := (h₂.mono (b := 2 * ((B + B) * (B + B)) * Attention.exp B * (t * t)) (by
    rw [← e]; grind)).add ((hf.2.2 t ht).mul hexp)
  have e₁ : a.val + (f t - a.val) = f t := by grind
  rw [e₁] at h₆
  rw [Dual.val_exp, Dual.der_exp]
  have e₂ : (Attention.exp (f t) : R) - Attention.exp a.val - (f t - a.val) * Attention.exp a.val
      + (f t - a.val - t * a.der) * Attention.exp a.val
      = Attention.exp (f t) - Attention.exp a.val - t * (Attention.exp a.val * a.der) := by grind
  rw [e₂] at h₆
  have p₄ := OrderedRing.mul_nonneg p₃ (mul_self_nonneg t)
  exact h₆.mono (by grind)

/-- A logarithm, of a path that is at least `m` at time 0. -/
theorem log {m n : R} (hm : 0 < m) (hn : m * n = 1) (hτ : τ ≤ 1) (hτm : τ * (B + B) ≤ m / 2)
    (hf : TangentWithin B τ f a) (ha : m ≤ a.val) (hg : ∀ t, Attention.exp (g t) = f t)
    (hb : Attention.exp b = a) :
    TangentWithin (B + n + B * n + 2 * ((B + B) * n * ((B + B) * n))) τ g b := by
  have hi := inv_atMost hm hn ha
  have hn₀ := hi.nonneg
  have hB := hf.1.nonneg
  have p₁ := OrderedRing.mul_nonneg hB hn₀
  have p₂ := mul_self_nonneg ((B + B) * n)
  have hv : Attention.exp b.val = a.val := congrArg Dual.val hb
  have hd : b.der = a.der * a.val⁻¹ := by
    have : Attention.exp b.val * b.der = a.der := congrArg Dual.der hb
    rw [hv] at this
    grind
  have hdd := hf.2.1.mul hi
  refine ⟨⟨?_, ?_⟩, by rw [hd]; exact hdd.mono (by grind), fun t ht => ?_⟩
  · have h₁ := NaturalExp.one_add_le_exp (-b.val)
    have h₂ : (Attention.exp (-b.val) : R) * a.val = 1 := by
      rw [← hv, ← exp_add, ← exp_zero (S := R)]
      congr 1
      grind
    have h₃ : (Attention.exp (-b.val) : R) = a.val⁻¹ := by grind
    rw [h₃] at h₁
    have := hi.2
    grind
  · have := NaturalExp.one_add_le_exp b.val
    rw [hv] at this
    have := hf.1.2
    grind
  obtain ⟨s, hs, e, hsτ, hr⟩ := reach hf hτ ht
  have hu := hr.mul hi
  have he := (hf.2.2 t ht).mul hi
  have hfar := (hr.mono (b := m / 2) (by
    have := OrderedRing.mul_le_mul_of_nonneg_left hsτ (by grind : 0 ≤ B + B)
    grind)).mul hi
  have h₁ : Attention.exp (g t - b.val) = 1 + (f t - a.val) * a.val⁻¹ := by
    have := exp_sub_mul (R := R) (g t) b.val
    rw [hv, hg] at this
    grind
  have h₂ := NaturalExp.one_add_le_exp (g t - b.val)
  have h₃ := NaturalExp.one_add_le_exp (-(g t - b.val))
  have h₄ : Attention.exp (-(g t - b.val)) * Attention.exp (g t - b.val) = (1 : R) := by
    rw [← exp_add, ← exp_zero (S := R)]
    congr 1
    grind
  rw [h₁] at h₂ h₄
  have e₁ : f t - a.val - t * a.der = (f t - a.val) - t * a.der := rfl
  have e₂ : (f t - a.val - t * a.der) * a.val⁻¹
      = (f t - a.val) * a.val⁻¹ - t * (a.der * a.val⁻¹) := by grind
  rw [e₂, ← hd] at he
  have hsq := (hu.mul hu).2
  have e₃ : (B + B) * s * n * ((B + B) * s * n) = (B + B) * n * ((B + B) * n) * (t * t) := by
    rw [← e]
    grind
  rw [e₃] at hsq
  generalize (f t - a.val) * a.val⁻¹ = u at *
  generalize g t - b.val = y at *
  have hu₁ : 1 / 2 ≤ 1 + u := by
    have := hfar.1
    grind
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right h₃ (by grind : 0 ≤ 1 + u)
  rw [h₄] at h₅
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_left hu₁ (by grind : 0 ≤ u - y)
  have h₇ : AtMost (2 * ((B + B) * n * ((B + B) * n) * (t * t))) (y - u) :=
    ⟨by grind, by have := mul_self_nonneg u; grind⟩
  have h₈ := h₇.add he
  have e₄ : y - u + (u - t * b.der) = y - t * b.der := by grind
  rw [e₄] at h₈
  refine h₈.mono ?_
  have := OrderedRing.mul_nonneg (by grind : 0 ≤ B + n) (mul_self_nonneg t)
  grind

end Within

end Attention.Proof
