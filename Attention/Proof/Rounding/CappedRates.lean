module

public import Attention.Proof.Derivative.Slopes
public import Attention.Proof.Rounding.ScoreRates
public import Attention.Proof.Rounding.Softcap

public section

/-! # Rates of scores through softcap, within their tolerance

From the products of a query and a key on: the score that a function computes, the slope of softcap
that it makes of it, and the rate that it multiplies by that slope.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {p : Precision R} {f f' : ScoreFormats R}

/-- The rate of cap · tanh (s / cap), over dual numbers. -/
theorem softcap_rate {cap : R} (hcap : cap ≠ 0) (s : Dual R) :
    (Dual.const cap * tanh (s / Dual.const cap)).der
      = (1 - tanh (s.val / cap) * tanh (s.val / cap)) * s.der := by
  have h := isLift_softcap (q_len := 1) (kv_len := 1) hcap 0 0 s
  rw [ScoreMod.softcap, ScoreMod.softcap, Option.map_some, Option.some.injEq] at h
  rw [h, ScoreSlope.softcap]
  simp only [zeroMatrix, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero, Semiring.add_zero]

/-- 1 − tanh² lies between 0 and 1. -/
private theorem slope_range (x : R) :
    0 ≤ 1 - tanh x * tanh x ∧ 1 - tanh x * tanh x ≤ 1 := by
  have h₁ := neg_one_lt_tanh x
  have h₂ := tanh_lt_one x
  have h₃ := mul_self_nonneg (tanh x : R)
  generalize (tanh x : R) = t at *
  have h₄ := OrderedRing.mul_nonneg (a := 1 - t) (b := 1 + t) (by grind) (by grind)
  exact ⟨by grind, by grind⟩

/-- **rounded-capped-rates**: the rate of a score that is squeezed by softcap, from the rate of the
score, computed with any roundings that `rounded_score_rate` allows, and the slope of softcap, made
of a tanh of a score that is computed from its query and key, every operation rounded, is within the
bound that the tolerance of tangents takes, however far off the score is, also where the square of
tanh and what is stored underflow. -/
theorem rounded_capped_rate (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    {additions : Nat} {scale σ₁ σ₂ σ : R} (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hu' : p.unit ≤ 1 / 128) (ho : PreciseFormats f) (hf₀ : 0 ≤ f.scores)
    (hf : f.scores ≤ 1 / 32)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ) {cap : R} (hcap : 0 < cap)
    (ho' : PreciseFormats f') (hs' : 0 ≤ f'.scores) (hη' : 0 ≤ f'.scoresTiny) {d n : Nat}
    {q dq k dk : Vec R d} {ν ν' x g r z : R} (hν' : 0 ≤ ν')
    (score : ComputedScore p f additions σ₁ σ₂ σ q k x) (slope : ComputedSlope p.unit ν cap x g)
    (rate : ScoreRateRun p f' ν' (boundedScoreRate p f' ν' n scale q dq k dk) r)
    (capped : CappedRate p f' cap g r z) :
    let s := scale * Vec.dot q k
    let error := scoreError p f additions scale (magnitude q k)
      (operandUnderflow p f additions q k) s (absolute s)
    let b := (boundedScoreRate p f' ν' n scale q dq k dk).throughCap p f' cap
      (1 - tanh (s / cap) * tanh (s / cap)) (cappedSlopeError p.unit ν cap s error)
    b.rate = (Dual.const cap * tanh ((⟨s, scale * (Vec.dot dq k + Vec.dot q dk)⟩ : Dual R)
        / Dual.const cap)).der ∧
      ScoreRateRun p f' ν' b z ∧ AtMost b.size b.rate ∧ AtMost b.error (z - b.rate) := by
  intro s error b
  have h : AtMost error (x - s) :=
    rounded_changed_score archimedean hp hu hu' ho hf₀ hf hd hσ (change := ⟨none, none⟩) nofun
      score ⟨x, rfl, rfl⟩
  have hg := rounded_slope archimedean hp.unit hu' hcap h slope
  have run : ScoreRateRun p f' ν' b z :=
    .throughCap rate hcap (slope_range _).1 (slope_range _).2 hg capped
  have hne : cap ≠ 0 := by
    have := hcap
    clear archimedean hg h run
    grind
  refine ⟨?_, run, rounded_score_rate hp ho' hs' hη' hν' run⟩
  rw [softcap_rate hne]
  rfl

end Attention.Proof
