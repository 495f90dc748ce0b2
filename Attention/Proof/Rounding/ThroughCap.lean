module

public import Attention.Proof.Rounding.Near

public section

/-! # One step through softcap, within its tolerance

From a rate and a slope that are off to the rate after softcap.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R}

/-- A factor of at least 1 before a number. -/
theorem capped_at_least {Φ L : R} (hΦ : 1 ≤ Φ) (hL : 0 ≤ L) : L ≤ Φ * L := by
  have := OrderedRing.mul_le_mul_of_nonneg_right hΦ hL
  grind

/-- Two stores in a row, and what is lost in them. -/
theorem capped_through_le {U V x η : R} (hU : 1 ≤ U) (hV : 1 ≤ V) (hη : 0 ≤ η) :
    V * (U * x + η) ≤ U * V * (x + η) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hU
    (OrderedRing.mul_nonneg (a := V) (by grind) hη)
  clear hU
  grind

/-- A product with the slope: `G` is the slope and its error, `L` at least 1 and `G`, `m` at least 1
and the cap. -/
private theorem capped_product_le {U V G L m M η : R} (hU : 1 ≤ U) (hV : 1 ≤ V) (hGM : 0 ≤ G * M)
    (hL : 1 ≤ L) (hm : 1 ≤ m) (hη : 0 ≤ η) :
    U * U * (V * V) * (G * M + 2 * η) ≤ U * U * U * (V * V * V) * (G * M + 3 * (m * L) * η) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hW := one_le_mul hU hV
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right (one_le_mul hm hL) hη
  have n₁ : 0 ≤ G * M + 2 * η := by grind
  have h₂ := capped_at_least hW n₁
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left
    (show G * M + 2 * η ≤ G * M + 3 * (m * L) * η by clear h₂ hW; grind)
    (c := U * V) (by grind)
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left (Std.le_trans h₂ h₃)
    (c := U * V * (U * V)) (OrderedRing.mul_nonneg (by grind) (by grind))
  clear h₁ h₂ h₃ hW n₁ hGM hL hm hη
  grind

/-- A quotient by the cap, a product with the slope and one with the cap. -/
private theorem capped_quotient_le {U V G L m M η cap inv : R} (hU : 1 ≤ U) (hV : 1 ≤ V)
    (hG : 0 ≤ G) (hGL : G ≤ L) (hL : 1 ≤ L) (hm : 1 ≤ m) (hcap : 0 ≤ cap) (hcm : cap ≤ m)
    (hη : 0 ≤ η) (hinv : cap * inv = 1) :
    V * (U * (cap * (V * (U * (G * (V * (U * (inv * M)) + η))) + η))) + η
      ≤ U * U * U * (V * V * V) * (G * M + 3 * (m * L) * η) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hW := one_le_mul hU hV
  have e : V * (U * (cap * (V * (U * (G * (V * (U * (inv * M)) + η))) + η))) + η
      = U * V * (U * V) * (U * V) * (cap * inv) * (G * M) + U * V * (U * V) * (cap * G * η)
        + U * V * (cap * η) + η := by
    grind
  rw [e, hinv, show U * U * U * (V * V * V) = U * V * (U * V) * (U * V) by grind,
    Semiring.mul_assoc 3 (m * L)]
  clear e hinv hU hV
  generalize U * V = W at *
  have nW : 0 ≤ W := by grind
  have hmL := one_le_mul hm hL
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedField.mul_le_mul hcap hcm hG hGL) hη
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedField.mul_le_mul hcap hcm (Std.le_of_lt h₀) hL) hη
  rw [Semiring.mul_one] at h₂
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hmL hη
  rw [Semiring.one_mul] at h₃
  clear hmL
  generalize m * L * η = K at *
  have nK : 0 ≤ K := Std.le_trans hη h₃
  have nWW : 0 ≤ W * W := OrderedRing.mul_nonneg nW nW
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left h₁ nWW
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_left h₂ nW
  have j₁ := capped_at_least hW (OrderedRing.mul_nonneg nWW nK)
  have j₂ := capped_at_least hW (OrderedRing.mul_nonneg nW nK)
  have j₃ := capped_at_least hW nK
  clear hW hG hGL hL hm hcap hcm h₁ h₂ nW nWW hη
  generalize G * M = X
  grind

private theorem capped_max (cap : R) : 1 ≤ max 1 cap ∧ cap ≤ max 1 cap := by
  rw [OrderedField.max_def]
  split
  · exact ⟨by assumption, Std.le_refl _⟩
  · exact ⟨Std.le_refl _, by grind⟩

private theorem capped_rate_near (hp : Precise p) (hs : 0 ≤ f.scores) (hη : 0 ≤ f.scoresTiny)
    {M S e cap g γ g' x z : R} (hx : Near M S e x) (hcap : 0 < cap) (hg : 0 ≤ g) (hg' : g ≤ 1)
    (hγ : AtMost γ (g' - g)) (h : CappedRate p f cap g' x z) :
    Near ((1 + p.unit) ^ 3 * (1 + f.scores) ^ 3
        * ((g + γ) * M + numeral 3 * (max 1 cap * (1 + γ)) * f.scoresTiny))
      (g * S) (g * e) z := by
  have hU := one_le_one_plus hp.unit
  have hV := one_le_one_plus hs
  have n := hγ.nonneg
  have hL : 1 ≤ 1 + γ := by grind
  obtain ⟨hm, hcm⟩ := capped_max cap
  have slope := Near.of_error (S := g) (e := g) ⟨by grind, Std.le_refl _⟩ hγ
  have cubes : ∀ a : R, a ^ 3 = a * a * a := fun a => by
    rw [show (3 : Nat) = 2 + 1 from rfl, Semiring.pow_succ, Semiring.pow_two]
  rw [cubes, cubes, numeral_three]
  generalize max 1 cap = m at *
  cases h with
  | inl h =>
    obtain ⟨y, hy, hz⟩ := h
    have h₁ := ((slope.mul hx).roundedTimes hy).storedNearTimes hs hη hz
    rw [numeral_two, Semiring.pow_two, Semiring.pow_two] at h₁
    have n₁ := OrderedRing.mul_nonneg (show 0 ≤ g + γ by grind) hx.nonneg
    exact h₁.mono (Std.le_trans (capped_through_le (one_le_mul hU hU) (one_le_mul hV hV)
      (η := 2 * f.scoresTiny) (by grind)) (capped_product_le hU hV n₁ hL hm hη))
  | inr h =>
    obtain ⟨a, a', b, b', c, ha, ha', hb, hb', hc, hz⟩ := h
    have hne : cap ≠ 0 := by grind
    have hinv : cap * cap⁻¹ = 1 := by grind
    have pos : (0 : R) ≤ cap⁻¹ := Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hcap)
    have quotient : Near (cap⁻¹ * M) (cap⁻¹ * S) (cap⁻¹ * e) (x / cap) := by
      have := (Near.refl (S := cap⁻¹) (e := cap⁻¹) ⟨by grind, Std.le_refl _⟩).mul hx
      rwa [show cap⁻¹ * x = x / cap by rw [Field.div_eq_mul_inv, CommSemiring.mul_comm]] at this
    have h₁ := (slope.mul ((quotient.rounded ha).storedNear ha')).rounded hb
    have h₂ := (((Near.refl (S := cap) (e := cap) ⟨by grind, Std.le_refl _⟩).mul
      (h₁.storedNear hb')).rounded hc).storedNear hz
    rw [show cap * (g * (cap⁻¹ * S)) = cap * cap⁻¹ * (g * S) by grind,
      show cap * (g * (cap⁻¹ * e)) = cap * cap⁻¹ * (g * e) by grind, hinv, Semiring.one_mul,
      Semiring.one_mul] at h₂
    exact h₂.mono (capped_quotient_le hU hV (show 0 ≤ g + γ by grind) (by grind) hL hm
      (Std.le_of_lt hcap) hcm hη hinv)

/-- The rate of a score through softcap, from a rate and a slope that are off. -/
theorem rounded_throughCap (hp : Precise p) (hs : 0 ≤ f.scores) (hη : 0 ≤ f.scoresTiny)
    {b : BoundedScoreRate R} {cap g γ g' x z : R} (hsize : AtMost b.size b.rate)
    (herror : AtMost b.error (x - b.rate)) (hcap : 0 < cap) (hg : 0 ≤ g) (hg' : g ≤ 1)
    (hγ : AtMost γ (g' - g)) (h : CappedRate p f cap g' x z) :
    AtMost (b.throughCap p f cap g γ).size (b.throughCap p f cap g γ).rate ∧
      AtMost (b.throughCap p f cap g γ).error (z - (b.throughCap p f cap g γ).rate) := by
  have h₁ := capped_rate_near hp hs hη (Near.of_error hsize herror) hcap hg hg' hγ h
  have n := hγ.nonneg
  refine ⟨h₁.exact.mono ?_, h₁.error.mono (le_of_eq ?_)⟩
  · show g * b.size ≤ (g + γ) * b.size
    have := OrderedRing.mul_nonneg n hsize.nonneg
    grind
  · simp only [BoundedScoreRate.throughCap, cappedRateFactor, power_eq]
    generalize (1 + p.unit) ^ 3 * (1 + f.scores) ^ 3 = W
    generalize numeral 3 * (max 1 cap * (1 + γ)) * f.scoresTiny = L
    clear h₁ h hγ
    grind

end Attention.Proof
