module

public import Attention.Model.RoundedSoftcap
public import Attention.Proof.Rounding.Changes
public import Attention.Proof.Rounding.GradientRows
import Attention.Proof.Rounding.UnderflowTolerance

public section

/-! # Softcap of scores that are far off, within its tolerance

However far off a score is, its tanh is off by at most 2.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R}

/-- The smaller of two bounds. -/
private theorem atMost_smaller {a b x : R} (ha : AtMost a x) (hb : AtMost b x) :
    AtMost (smaller a b) x := by
  rw [smaller]
  split
  · exact ha
  · exact hb

/-- Three roundings of the argument of tanh. -/
private theorem three_of_argument {u : R} (h₀ : 0 ≤ u) (hu : u ≤ 1 / 128) {a : Nat} (ha : a ≤ 3) :
    (1 + u) ^ a - 1 < 1 ∧ ((1 + u) ^ a - 1) / (1 - ((1 + u) ^ a - 1)) ≤ 4 * u := by
  have h₁ := OrderedField.pow_le_pow (x := 1 + u) (by grind) ha
  have h₂ := OrderedRing.mul_nonneg h₀ (b := 1 / 128 - u) (by grind)
  have h₃ := OrderedRing.mul_nonneg h₀ h₂
  have h₄ : (0 : R) < 1 := OrderedRing.zero_lt_one
  have h₅ : (1 + u) ^ a - 1 ≤ 3 * u + u / 8 := by
    rw [show (3 : Nat) = 2 + 1 from rfl, Semiring.pow_succ, Semiring.pow_two] at h₁
    generalize (1 + u) ^ a = x at *
    grind
  generalize (1 + u) ^ a - 1 = ρ at *
  clear h₁ h₃
  have h₆ : ρ ≤ 1 / 32 := by grind
  have h₇ := OrderedRing.mul_nonneg h₀ (b := 1 / 32 - ρ) (by grind)
  exact ⟨by grind, (OrderedField.div_le_iff (by grind)).mpr (by grind)⟩

variable [NaturalExp R]

/-- No two values of tanh are further than 2 apart. -/
private theorem tanh_apart (x y : R) : AtMost 2 (tanh y - tanh x) := by
  have h₁ := neg_one_lt_tanh x
  have h₂ := tanh_lt_one x
  have h₃ := neg_one_lt_tanh y
  have h₄ := tanh_lt_one y
  generalize (tanh x : R) = a at *
  generalize (tanh y : R) = b at *
  exact ⟨by grind, by grind⟩

/-- tanh of a quotient whose numerator is off. -/
private theorem tanh_quotient (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    {cap s x error : R} (hcap : 0 < cap) (hx : AtMost error (x - s)) :
    AtMost (smaller (error / cap) 2) (tanh (x / cap) - tanh (s / cap)) := by
  refine atMost_smaller (tanh_atMost archimedean ?_) (tanh_apart _ _)
  have hinv : (0 : R) ≤ cap⁻¹ := Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hcap)
  have k := hx.mul (b := cap⁻¹) (y := cap⁻¹) ⟨by grind, Std.le_refl _⟩
  rwa [← Field.div_eq_mul_inv, show (x - s) * cap⁻¹ = x / cap - s / cap by grind] at k

omit [NaturalExp R] in
/-- Three quotients below the normal numbers. -/
private theorem three_tiny {u ν : R} (h₀ : 0 ≤ u) (hu : u ≤ 1 / 128) (hν : 0 ≤ ν) {a : Nat}
    (ha : a ≤ 3) : (1 + u) ^ a * 0 + (1 + u) ^ a * (numeral a * ν) ≤ 4 * ν := by
  have h₁ := OrderedField.pow_le_pow (x := 1 + u) (by grind) ha
  have h₂ := OrderedRing.mul_nonneg h₀ (b := 1 / 128 - u) (by grind)
  have h₃ := OrderedRing.mul_nonneg h₀ h₂
  have h₄ : (0 : R) < 1 := OrderedRing.zero_lt_one
  have h₅ : (1 + u) ^ a ≤ 4 / 3 := by
    rw [show (3 : Nat) = 2 + 1 from rfl, Semiring.pow_succ, Semiring.pow_two] at h₁
    generalize (1 + u) ^ a = x at *
    grind
  have h₆ : (numeral a : R) ≤ 3 := by
    have h := numeral_le_numeral (R := R) ha
    rwa [numeral_three] at h
  have h₇ := OrderedField.mul_le_mul (OrderedRing.mul_nonneg (numeral_nonneg (R := R) a) hν)
    (OrderedRing.mul_le_mul_of_nonneg_right h₆ hν) (a := numeral a * ν) (b := 3 * ν)
    (c := (1 + u) ^ a) (d := 4 / 3) (by
      have := OrderedField.one_le_pow (x := 1 + u) (by grind) a
      grind) h₅
  clear h₁ h₂ h₃ h₅ h₆
  grind

/-- tanh (s / cap), from a score that is off. -/
theorem rounded_tanh (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {u ν : R}
    (h₀ : 0 ≤ u) (hu : u ≤ 1 / 128) (hν : 0 ≤ ν) {cap s x t error : R} (hcap : 0 < cap)
    (hx : AtMost error (x - s)) (h : ComputedTanh u ν cap x t) :
    AtMost (tanhError u ν cap error) (t - tanh (s / cap)) := by
  obtain ⟨a, z, ha, hz, ht, -⟩ := h
  obtain ⟨z₀, hz, lost⟩ := storedTimes_companion h₀ hν hz (c := 0) (x₀ := x / cap)
    ⟨by grind, by grind⟩
  replace lost := tanh_atMost archimedean (lost.mono (three_tiny h₀ hu hν ha))
  obtain ⟨τ, rfl, hτ⟩ := roundedTimes_factor hz
  obtain ⟨h₁, h₂⟩ := three_of_argument h₀ hu ha
  have h₃ := ((ht.add lost).add ((tanh_mul_sub archimedean hτ h₁ (x / cap)).mono h₂)).add
    (tanh_quotient archimedean hcap hx)
  rw [tanhError, numeral_eight, numeral_two]
  rw [numeral_four] at h₃ ⊢
  clear archimedean lost ht
  generalize (tanh z : R) = e at *
  generalize smaller (error / cap) 2 = m at *
  generalize (tanh (x / cap * τ) : R) = b at *
  generalize (tanh (x / cap) : R) = c at *
  generalize (tanh (s / cap) : R) = d at *
  rwa [show t - e + (e - b) + (b - c) + (c - d) = t - d by grind,
    show 4 * u + 4 * ν + 4 * u + m = m + 8 * u + 4 * ν by grind] at h₃

/-- **rounded-capped-slope**: the slope of softcap that is computed from a score that is off by any
error, by a tanh of at most 1 in size, each operation rounded, is within its bound, also where the
quotient or the square of tanh underflows. -/
theorem rounded_slope (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {u ν : R}
    (h₀ : 0 ≤ u) (hu : u ≤ 1 / 128) {cap s x z error : R} (hcap : 0 < cap)
    (hx : AtMost error (x - s)) (h : ComputedSlope u ν cap x z) :
    AtMost (cappedSlopeError u ν cap s error) (z - (1 - tanh (s / cap) * tanh (s / cap))) := by
  obtain ⟨t, y, ht, hy, hz⟩ := h
  have h₁ := rounded_tanh archimedean h₀ hu hy.choose_spec.2.1.nonneg hcap hx ht
  obtain ⟨-, -, -, -, -, one⟩ := ht
  have := OrderedRing.zero_lt_one (R := R)
  exact rounded_softcapSlope (by grind)
    ⟨Std.le_of_lt (neg_one_lt_tanh _), Std.le_of_lt (tanh_lt_one _)⟩ one h₁ hy hz

/-- The score after softcap. -/
theorem rounded_capped (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ 1 / 128) (hf₀ : 0 ≤ f.scores) (hf : f.scores ≤ 1 / 32)
    {cap s x y error : R} (hcap : 0 < cap) (hx : AtMost error (x - s))
    (h : ComputedSoftcap p f cap x y) :
    AtMost (cappedError p f cap error) (y - cap * tanh (s / cap)) := by
  have h₁ := rounded_softcap archimedean hp hu hf₀ hf hcap (s := x) (error := 0)
    ⟨by grind, by grind⟩ h
  have h₂ := rounded_softcap archimedean hp hu hf₀ hf hcap hx h
  have h₃ := h₁.add ((atMost_self (Std.le_of_lt hcap)).mul (tanh_apart (s / cap) (x / cap)))
  rw [cappedError, smaller, numeral_two]
  rw [softcapError] at h₁ h₂ h₃
  clear archimedean
  generalize (tanh (x / cap) : R) = a at *
  generalize (tanh (s / cap) : R) = b at *
  split
  · exact h₂
  · rwa [show y - cap * a + cap * (a - b) = y - cap * b by grind,
      show 0 + (numeral 8 * p.unit + f.scores) * cap + f.scoresTiny + cap * 2
        = 2 * cap + (numeral 8 * p.unit + f.scores) * cap + f.scoresTiny by grind] at h₃

/-- A score of which no more is known than a bound of its error, after its changes. -/
theorem rounded_capped_change (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ 1 / 128) (hf₀ : 0 ≤ f.scores) (hf : f.scores ≤ 1 / 32)
    {change : ScoreChange R} (hcap : ∀ cap, change.cap = some cap → 0 < cap) {s x y error : R}
    (hx : AtMost error (x - s)) (h : ComputedChange p f change x y) :
    AtMost (cappedChangeError p f change s error) (y - change.apply s) := by
  obtain ⟨cap, added⟩ := change
  cases cap with
  | none => exact rounded_change archimedean hp hu hf₀ hf hcap hx h
  | some cap =>
    obtain ⟨z, h₁, h₂⟩ := h
    have capped := rounded_capped archimedean hp hu hf₀ hf (hcap cap rfl) hx h₁
    cases added with
    | none =>
      subst h₂
      exact capped
    | some a => exact rounded_sum capped h₂

/-- **rounded-capped-scores**: the score of a query and a key that a backward pass computes again,
by rounded products and a rounded scale, is off by no more than its bound after softcap and a number
that is added, and the slope of that softcap by no more than its own, also where its quotient or the
square of tanh underflows, however far off the score is before them. -/
theorem rounded_capped_score (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    {additions : Nat} {scale σ₁ σ₂ σ : R} (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hu' : p.unit ≤ 1 / 128) (ho : PreciseFormats f) (hf₀ : 0 ≤ f.scores)
    (hf : f.scores ≤ 1 / 32)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ) {change : ScoreChange R}
    (hcap : ∀ cap, change.cap = some cap → 0 < cap) {d : Nat} {q k : Vec R d} {x y : R}
    (score : ComputedScore p f additions σ₁ σ₂ σ q k x) (changed : ComputedChange p f change x y) :
    let s := scale * Vec.dot q k
    let error := scoreError p f additions scale (magnitude q k)
      (operandUnderflow p f additions q k) s (absolute s)
    AtMost (cappedChangeError p f change s error) (y - change.apply s) ∧
      ∀ ν cap z, change.cap = some cap → ComputedSlope p.unit ν cap x z →
        AtMost (cappedSlopeError p.unit ν cap s error)
          (z - (1 - tanh (s / cap) * tanh (s / cap))) := by
  intro s error
  have h : AtMost error (x - s) :=
    rounded_changed_score archimedean hp hu hu' ho hf₀ hf hd hσ (change := ⟨none, none⟩) nofun
      score ⟨x, rfl, rfl⟩
  exact ⟨rounded_capped_change archimedean hp hu' hf₀ hf hcap h changed, fun _ cap z hc hz =>
    rounded_slope archimedean hp.unit hu' (hcap cap hc) h hz⟩

end Attention.Proof
