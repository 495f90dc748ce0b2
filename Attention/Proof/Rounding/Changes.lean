module

public import Attention.Model.RoundedChanges
public import Attention.Proof.Rounding.Scores
public import Attention.Proof.Rounding.Tanh

public section

/-! # Scores that are changed are off by no more than their tolerance

Softcap, a number that is added, and the score of a sink, each rounded. Softcap is about numbers of
an Archimedean field with the exponential of slope 1 at 0, as the real numbers are. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R}

/-- A number that is rounded twice and stored. -/
private theorem twice_stored {u s η x w y : R} (h₁ : RoundedTimes u 2 x w)
    (h₂ : StoredNear s η w y) :
    ∃ t δ, y = x * t + δ ∧ AtMost ((1 + u) * (1 + u) * (1 + s) - 1) (t - 1) ∧ AtMost η δ := by
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor h₁
  obtain ⟨z, ⟨θ, hθ, rfl⟩, hδ⟩ := h₂
  refine ⟨t * (1 + θ), y - x * t * (1 + θ), by grind, ?_, hδ⟩
  have h := (ht.mul hθ).add (ht.add hθ)
  have e₁ : (t - 1) * θ + (t - 1 + θ) = t * (1 + θ) - 1 := by grind
  have e₂ : ((1 + u) ^ 2 - 1) * s + ((1 + u) ^ 2 - 1 + s) = (1 + u) * (1 + u) * (1 + s) - 1 := by
    rw [Semiring.pow_two]
    grind
  rwa [e₁, e₂] at h

/-- The score of a sink. -/
theorem rounded_sink {sink y : R} (h : ComputedSink p f sink y) :
    AtMost (sinkError p f sink) (y - sink) := by
  obtain ⟨w, h, hy⟩ := h
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor h
  have h₁ := (ht.mul (atMost_absolute sink)).add hy
  rw [Semiring.pow_two] at h₁
  rwa [sinkError, show y - sink = (t - 1) * sink + (y - sink * t) by grind]

/-- The sum of a score and a number. -/
theorem rounded_sum {a s x y error : R} (hx : AtMost error (x - s))
    (h : ComputedSum p f a x y) : AtMost (addedError p f a s error) (y - (s + a)) := by
  obtain ⟨b, c, w, h₁, h₂, h₃, h₄⟩ := h
  obtain ⟨t, δ, rfl, ht, hδ⟩ := twice_stored h₁ h₂
  obtain ⟨r, ε, rfl, hr, hε⟩ := twice_stored h₃ h₄
  rw [addedError]
  generalize (1 + p.unit) * (1 + p.unit) * (1 + f.scores) - 1 = ρ at *
  have k₁ := (hx.add (ht.mul (atMost_absolute a))).add hδ
  have k₂ : AtMost (1 + ρ) r := ⟨by have := hr.1; grind, by have := hr.2; grind⟩
  have k₃ := ((k₁.mul k₂).add (hr.mul (atMost_absolute (s + a)))).add hε
  rwa [show (x - s + (t - 1) * a + δ) * r + (r - 1) * (s + a) + ε
    = (x + (a * t + δ)) * r + ε - (s + a) by grind] at k₃

/-- Up to three roundings in a row. -/
private theorem pow_sub_one_le {u : R} (h₀ : 0 ≤ u) (hu : u ≤ 1 / 128) {k : Nat} (hk : k ≤ 3) :
    (1 + u) ^ k - 1 ≤ numeral k * u + u / 8 := by
  have h₁ := OrderedRing.mul_nonneg h₀ (b := 1 / 128 - u) (by grind)
  have h₂ := OrderedRing.mul_nonneg h₀ h₁
  have h₃ : (0 : R) < 1 := OrderedRing.zero_lt_one
  match k with
  | 0 => rw [Semiring.pow_zero, show (numeral 0 : R) = 0 from rfl]; grind
  | 1 => rw [Semiring.pow_one, numeral_succ, show (numeral 0 : R) = 0 from rfl]; grind
  | 2 => rw [Semiring.pow_two, numeral_two]; grind
  | 3 => rw [Semiring.pow_succ, Semiring.pow_two, numeral_succ, numeral_two]; grind

/-- All roundings of softcap together. -/
private theorem softcap_growth {u s A α β : R} (h₀ : 0 ≤ u) (hu : u ≤ 1 / 128) (hs₀ : 0 ≤ s)
    (hs : s ≤ 1 / 32) (hα : 0 ≤ α) (hβ : 0 ≤ β) (hαβ : α + β ≤ 3 * u) (hA : A ≤ α + u / 4) :
    (4 * u + A) * ((1 + (β + u / 8)) * (1 + s)) + ((1 + (β + u / 8)) * (1 + s) - 1)
      ≤ 8 * u + s := by
  have h₁ : (0 : R) < 1 := OrderedRing.zero_lt_one
  have h₂ : 0 ≤ β + u / 8 := by grind
  have h₃ : β + u / 8 ≤ 1 / 32 := by grind
  have h₄ := OrderedRing.mul_nonneg h₂ (b := 1 / 32 - s) (by grind)
  have h₅ := OrderedRing.mul_nonneg h₂ hs₀
  have e : (1 + (β + u / 8)) * (1 + s) = 1 + (β + u / 8 + s + (β + u / 8) * s) := by grind
  have h₆ : β + u / 8 + s + (β + u / 8) * s ≤ 1 / 15 := by grind
  rw [e]
  generalize hG : β + u / 8 + s + (β + u / 8) * s = G at *
  have h₇ := OrderedRing.mul_nonneg (a := α + u / 4 - A) (b := 1 + G) (by grind) (by grind)
  have h₈ := OrderedRing.mul_nonneg (a := 4 * u + (α + u / 4)) (b := 1 / 15 - G) (by grind)
    (by grind)
  grind

variable [NaturalExp R]

/-- The score after softcap. -/
theorem rounded_softcap (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ 1 / 128) (hf₀ : 0 ≤ f.scores) (hf : f.scores ≤ 1 / 32)
    {cap s x y error : R} (hcap : 0 < cap) (hx : AtMost error (x - s))
    (h : ComputedSoftcap p f cap x y) :
    AtMost (softcapError p f cap error) (y - cap * tanh (s / cap)) := by
  obtain ⟨a, b, z, t, w, hab, hz, ht, hw, w', ⟨θ, hθ, rfl⟩, hy⟩ := h
  obtain ⟨τ, rfl, hτ⟩ := roundedTimes_factor hz
  obtain ⟨β, rfl, hβ⟩ := roundedTimes_factor hw
  have h₀ : (0 : R) < 1 := OrderedRing.zero_lt_one
  have hu₀ := hp.unit
  have ha : numeral a * p.unit + numeral b * p.unit ≤ 3 * p.unit := by
    have : (numeral a : R) + numeral b ≤ 3 := by
      have h : ((a + b : Nat) : R) ≤ ((3 : Nat) : R) := OrderedRing.natCast_le_natCast_of_le _ _ hab
      rw [numeral_eq, numeral_eq, ← Semiring.natCast_add]
      refine Std.le_trans h ?_
      rw [← numeral_eq, numeral_succ, numeral_two]
      grind
    have := OrderedRing.mul_le_mul_of_nonneg_right this hu₀
    grind
  have hα := OrderedRing.mul_nonneg (numeral_nonneg (R := R) a) hu₀
  have hβ₀ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) b) hu₀
  have pa := pow_sub_one_le hu₀ hu (k := a) (by omega)
  have pb := pow_sub_one_le hu₀ hu (k := b) (by omega)
  generalize (1 + p.unit) ^ a - 1 = ρ at *
  have hβ := hβ.mono pb
  have hA := tanh_mul_sub archimedean hτ (by grind) (x / cap)
  have hρ : ρ / (1 - ρ) ≤ numeral a * p.unit + p.unit / 4 := by
    have := OrderedRing.mul_nonneg (a := numeral a * p.unit + p.unit / 4) (b := 1 / 32 - ρ)
      (by grind) (by grind)
    exact (OrderedField.div_le_iff (by grind)).mpr (by grind)
  have growth := softcap_growth hu₀ hu hf₀ hf hα hβ₀ ha hρ
  have hT : AtMost (error / cap) (tanh (x / cap) - tanh (s / cap)) :=
    tanh_atMost archimedean (by
      have hinv : (0 : R) ≤ cap⁻¹ := Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hcap)
      have k := hx.mul (b := cap⁻¹) (y := cap⁻¹) ⟨by grind, Std.le_refl _⟩
      rwa [← Field.div_eq_mul_inv, show (x - s) * cap⁻¹ = x / cap - s / cap by grind] at k)
  have one : AtMost 1 (tanh (x / cap)) :=
    ⟨Std.le_of_lt (neg_one_lt_tanh _), Std.le_of_lt (tanh_lt_one _)⟩
  have hr : AtMost ((1 + (numeral b * p.unit + p.unit / 8)) * (1 + f.scores) - 1)
      (β * (1 + θ) - 1) := by
    have := (hβ.mul hθ).add (hβ.add hθ)
    rw [show (β - 1) * θ + (β - 1 + θ) = β * (1 + θ) - 1 by grind] at this
    exact this.mono (by grind)
  have hc : AtMost cap cap := ⟨by grind, Std.le_refl _⟩
  have off := hc.mul ((((ht.add hA).mul
    (b := (1 + (numeral b * p.unit + p.unit / 8)) * (1 + f.scores)) (y := β * (1 + θ))
    ⟨by have := hr.1; grind, by have := hr.2; grind⟩).add (one.mul hr)).add hT)
  rw [softcapError, numeral_eight]
  rw [numeral_four] at off
  have e₁ : cap * ((t - tanh (x / cap * τ) + (tanh (x / cap * τ) - tanh (x / cap)))
      * (β * (1 + θ)) + tanh (x / cap) * (β * (1 + θ) - 1)
      + (tanh (x / cap) - tanh (s / cap))) = cap * t * β * (1 + θ) - cap * tanh (s / cap) := by
    grind
  rw [e₁] at off
  have off := off.add hy
  rw [show cap * t * β * (1 + θ) - cap * tanh (s / cap) + (y - cap * t * β * (1 + θ))
    = y - cap * tanh (s / cap) by grind] at off
  refine off.mono ?_
  have := OrderedRing.mul_le_mul_of_nonneg_left growth (Std.le_of_lt hcap)
  have e₂ : cap * (error / cap) = error := by grind
  grind

/-- A score of which no more is known than a bound of its error, changed by softcap and by a number
that is added, each operation rounded and each result stored. -/
theorem rounded_change (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ 1 / 128) (hf₀ : 0 ≤ f.scores) (hf : f.scores ≤ 1 / 32)
    {change : ScoreChange R} (hcap : ∀ cap, change.cap = some cap → 0 < cap) {s x y error : R}
    (hx : AtMost error (x - s)) (h : ComputedChange p f change x y) :
    AtMost (changedError p f change s error) (y - change.apply s) := by
  obtain ⟨cap, added⟩ := change
  obtain ⟨z, h₁, h₂⟩ := h
  cases cap with
  | none =>
    subst h₁
    cases added with
    | none =>
      subst h₂
      exact hx
    | some a => exact rounded_sum hx h₂
  | some cap =>
    have capped := rounded_softcap archimedean hp hu hf₀ hf (hcap cap rfl) hx h₁
    cases added with
    | none =>
      subst h₂
      exact capped
    | some a => exact rounded_sum capped h₂

/-- **rounded-changes**: the score of a query and a key, computed by rounded products and a rounded
scale, changed by softcap and then by a number that is added, each operation rounded and each result
stored, is off by no more than the tolerance has for it, with no constant that keys share. -/
theorem rounded_changed_score (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    {additions : Nat} {scale σ₁ σ₂ σ : R} (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hu' : p.unit ≤ 1 / 128) (ho : PreciseFormats f) (hf₀ : 0 ≤ f.scores)
    (hf : f.scores ≤ 1 / 32)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ) {change : ScoreChange R}
    (hcap : ∀ cap, change.cap = some cap → 0 < cap) {d : Nat} {q k : Vec R d} {x y : R}
    (score : ComputedScore p f additions σ₁ σ₂ σ q k x) (changed : ComputedChange p f change x y) :
    let s := scale * Vec.dot q k
    AtMost (changedError p f change s
        (scoreError p f additions scale (magnitude q k) (operandUnderflow p f additions q k) s
          (absolute s)))
      (y - change.apply s) := by
  intro s
  obtain ⟨c, ⟨h₁, h₂⟩, h⟩ := rounded_scores hp hu ho hd hσ 0
  have e : (absolute (0 : R)) = 0 := by
    rw [absolute, OrderedField.max_def]
    split <;> grind
  rw [e, Semiring.mul_zero] at h₁ h₂
  have hc : s + c = s := by grind
  have h₃ := h d q k (absolute s) x (by
    rw [show scale * Vec.dot q k - 0 = s by grind]
    exact atMost_absolute s) score
  rw [hc] at h₃
  exact rounded_change archimedean hp hu' hf₀ hf hcap h₃ changed

end Attention.Proof
