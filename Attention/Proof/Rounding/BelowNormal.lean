module

public import Attention.Model.RoundedGradients
public import Attention.Proof.Rounding.Dot
public import Attention.Proof.Rounding.Majorants

public section

/-! # Numbers that are off and below the normal ones

What is stored of a number that is off is off by a share of itself more, and by an absolute error,
which is 0 where a weight of 0 multiplies the number.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {a b x x' y u η weight : R}

/-- Precise losses are so where they grow. -/
theorem grown_precise {p : GradientPrecision R} (hp : PreciseGradient p) :
    PreciseGradient p.grown :=
  have grow : ∀ {x : R}, 0 ≤ x → 0 ≤ p.growth * x := fun hx =>
    OrderedRing.mul_nonneg (nonneg_of_one_le hp.growth) hx
  { unit := hp.unit
    accumulation := hp.accumulation
    exponential := hp.exponential
    exponential_lt := hp.exponential_lt
    weights := hp.weights
    stored := hp.stored
    factors := hp.factors
    scores := hp.scores
    output := hp.output
    operands := hp.operands
    tiny := grow hp.tiny
    weightsTiny := hp.weightsTiny
    storedTiny := grow hp.storedTiny
    scoresTiny := hp.scoresTiny
    outputTiny := hp.outputTiny
    operandsTiny := hp.operandsTiny
    growth := hp.growth }

/-- No loss is smaller where it grows. -/
theorem le_grown {p : GradientPrecision R} (hp : PreciseGradient p) :
    p.tiny ≤ p.grown.tiny ∧ p.storedTiny ≤ p.grown.storedTiny := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hp.growth hp.tiny
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hp.growth hp.storedTiny
  rw [Semiring.one_mul] at h₁ h₂
  exact ⟨h₁, h₂⟩

/-- A factor of at least 1. -/
theorem le_mul_of_one_le {c : R} (ha : 0 ≤ a) (hab : a ≤ b) (hc : 1 ≤ c) :
    a ≤ b * c := by
  have h := OrderedField.mul_le_mul ha hab (c := 1) (d := c)
    (Std.le_of_lt OrderedRing.zero_lt_one) hc
  rwa [Semiring.mul_one] at h

/-- A number once for each of n. -/
theorem sumOver_numeral (n : Nat) (c : R) :
    sumOver (fun _ => c) (List.finRange n) = numeral n * c := by
  rw [sumOver_const, List.length_finRange, numeral_eq]

/-! ## Nothing of a weight that is 0 -/

/-- No error is negative. -/
theorem tinyOf_nonneg (h : 0 ≤ η) : 0 ≤ tinyOf weight η := by
  rw [tinyOf]
  split
  · exact Std.le_refl _
  · exact h

/-- Of a weight that is 0 there is none. -/
theorem tinyOf_zero (h : weight ≤ 0) : tinyOf weight η = 0 := by
  rw [tinyOf, ite_eq_left_iff]
  exact fun hn => absurd h hn

/-- Of any other it is what it is. -/
theorem tinyOf_pos (h : ¬ weight ≤ 0) : tinyOf weight η = η := by
  rw [tinyOf, ite_eq_right_iff]
  exact fun hn => absurd hn h

/-! ## Pairs of bounds -/

/-- An absolute error. -/
theorem Majorised.near (hx : Majorised a b x' x) (h : AtMost η (y - x')) :
    Majorised (a + η) b y x := by
  refine ⟨?_, hx.size⟩
  have := h.add hx.error
  rw [show y - x' + (x' - x) = y - x by grind] at this
  exact this.mono (by grind)

/-- Storing a number rounds it, and errs by a little. -/
theorem Majorised.below (hx : Majorised a b x' x) (h : StoredBelow u η x' y) :
    Majorised (a * (1 + u) + η) b y x := by
  obtain ⟨z, hz, hy, -⟩ := h
  exact (hx.rounded hz).near hy

/-- Nothing is lost of what is 0 with the weight. -/
theorem Majorised.below_tinyOf (hu : 0 ≤ u) (hx : Majorised a b x' x) (hw : weight ≤ 0 → x' = 0)
    (h : StoredBelow u η x' y) : Majorised (a * (1 + u) + tinyOf weight η) b y x := by
  by_cases hn : weight ≤ 0
  · obtain rfl := hw hn
    obtain ⟨z, -, -, h₀⟩ := h
    obtain rfl := h₀ rfl
    refine hx.mono ?_
    rw [tinyOf_zero hn]
    have := OrderedRing.mul_nonneg hx.computed.nonneg hu
    grind
  · rw [tinyOf_pos hn]
    exact hx.below h

/-- A larger underflow. -/
theorem tinyOf_mono {η' : R} (h : η ≤ η') : tinyOf weight η ≤ tinyOf weight η' := by
  rw [tinyOf, tinyOf]
  split
  · exact Std.le_refl _
  · exact h

/-- A larger error below the normal numbers. -/
theorem storedBelow_mono {η' : R} (h : StoredBelow u η x y) (hη : η ≤ η') :
    StoredBelow u η' x y := by
  obtain ⟨z, h₁, h₂, h₃⟩ := h
  exact ⟨z, h₁, h₂.mono hη, h₃⟩

/-- The same of a number that is stored several times. -/
theorem belowTimes_mono {η' : R} (hη : η ≤ η') : ∀ {k : Nat} {x y : R}, BelowTimes u η k x y →
    BelowTimes u η' k x y
  | 0, _, _, h => h
  | _ + 1, _, _, ⟨z, h, h'⟩ => ⟨z, belowTimes_mono hη h, storedBelow_mono h' hη⟩

/-- Nothing comes of 0. -/
theorem belowTimes_zero : ∀ {k : Nat} {y : R}, BelowTimes u η k 0 y → y = 0
  | 0, _, h => h
  | _ + 1, _, ⟨_, hz, _, _, _, h⟩ => h (belowTimes_zero hz)

/-- Storing a number several times errs by a factor, and by a little for each time. -/
theorem belowTimes_factor (hu : 0 ≤ u) (hη : 0 ≤ η) :
    ∀ {k : Nat} {x y : R}, BelowTimes u η k x y → ∃ t, AtMost ((1 + u) ^ k - 1) (t - 1) ∧
      AtMost ((1 + u) ^ k * (numeral k * η)) (y - x * t)
  | 0, x, y, h => by
    obtain rfl : y = x := h
    refine ⟨1, ?_, ?_⟩
    · rw [Semiring.pow_zero]
      exact ⟨by grind, by grind⟩
    · rw [Semiring.pow_zero, show (numeral 0 : R) = 0 from rfl]
      exact ⟨by grind, by grind⟩
  | k + 1, x, y, h => by
    obtain ⟨z, hz, w, ⟨θ, hθ, rfl⟩, hy, -⟩ := h
    obtain ⟨t, ht, hzt⟩ := belowTimes_factor hu hη hz
    refine ⟨t * (1 + θ), ?_, ?_⟩
    · have h₁ := factor_mul ht (t := 1 + θ) (B := 1 + u)
        (by rwa [show 1 + u - 1 = u by grind, show 1 + θ - 1 = θ by grind])
      rwa [Semiring.pow_succ]
    · have hθ' : AtMost (1 + u) (1 + θ) := ⟨by have := hθ.1; grind, by have := hθ.2; grind⟩
      have h₁ := hy.add (hzt.mul hθ')
      rw [show y - z * (1 + θ) + (z - x * t) * (1 + θ) = y - x * (t * (1 + θ)) by
        clear h₁ hy hzt ht hz; grind] at h₁
      refine h₁.mono ?_
      have h₂ := OrderedRing.mul_le_mul_of_nonneg_right
        (OrderedField.one_le_pow (x := 1 + u) (by grind) (k + 1)) hη
      rw [Semiring.pow_succ] at *
      rw [numeral_succ]
      generalize (1 + u) ^ k = g at *
      generalize (numeral k : R) = m at *
      clear h₁ hy hzt ht hz hθ hθ'
      grind

/-- So is what was off before. -/
theorem Majorised.belowTimes (hu : 0 ≤ u) (hη : 0 ≤ η) {k : Nat} (hx : Majorised a b x' x)
    (h : BelowTimes u η k x' y) : Majorised ((1 + u) ^ k * (a + numeral k * η)) b y x := by
  obtain ⟨t, ht, hy⟩ := belowTimes_factor hu hη h
  refine ((hx.mul_factor ht).near hy).mono (le_of_eq ?_)
  generalize (1 + u) ^ k = g
  generalize (numeral k : R) * η = m
  grind

/-- A weight that is stored. -/
theorem storedWeight_majorised {error lost w : R} (hu : 0 ≤ u) (hw : 0 ≤ weight)
    (h : StoredWeight u η weight error lost w) :
    Majorised (weight * ((1 + error) * (1 + u)) + tinyOf weight (lost * (1 + u) + η)) weight w
      weight := by
  obtain ⟨x, hx, hw'⟩ := h
  have h₁ : Majorised (weight * (1 + error) + tinyOf weight lost) weight x weight := by
    refine ⟨?_, atMost_self hw⟩
    rwa [show weight * (1 + error) + tinyOf weight lost - weight
      = error * weight + tinyOf weight lost by grind]
  have h₂ := h₁.below_tinyOf (weight := weight) hu (fun hn => ?_) hw'
  · refine h₂.mono (le_of_eq ?_)
    by_cases hn : weight ≤ 0
    · rw [tinyOf_zero hn, tinyOf_zero hn, tinyOf_zero hn]
      grind
    · rw [tinyOf_pos hn, tinyOf_pos hn, tinyOf_pos hn]
      grind
  · have e : weight = 0 := Std.le_antisymm hn hw
    rw [tinyOf_zero hn, e] at hx
    obtain ⟨i₁, i₂⟩ := hx
    grind

/-- A weight of 0 is stored as 0. -/
theorem storedWeight_eq_zero {error lost w : R} (hw : 0 ≤ weight) (hn : weight ≤ 0)
    (h : StoredWeight u η weight error lost w) : w = 0 := by
  obtain ⟨x, hx, _, -, -, hw'⟩ := h
  have e : weight = 0 := Std.le_antisymm hn hw
  rw [tinyOf_zero hn, e] at hx
  obtain ⟨i₁, i₂⟩ := hx
  exact hw' (by grind)

end Attention.Proof
