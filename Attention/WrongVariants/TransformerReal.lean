module

public import Attention.Claims.Approximation.TransformerReal

public section

/-! # That the set is closed is needed

1 / x is continuous on the numbers x with 0 < x ≤ 1, and not bounded there, as transformers are. -/

namespace Attention.WrongVariants

open Lean.Grind Model Claims

/-- The claim of `universal_approximation_transformer_real` on those sets of numbers that P names,
with 1 for the ε of the normalisations. -/
abbrev ApproximatedOnSets (P : (Vec Real 1 → Prop) → Prop) : Prop :=
  ∀ (S : Vec Real 1 → Prop) (f : Vec Real 1 → Vec Real 1) (ε : Real), P S → ContinuousOn S f →
    0 < ε → ∃ T, TransformerComputes Real.sqrt 1 1 1 T ∧ ∀ x, S x → Within ε (T x) (f x)

/-- Positive control: compact sets. -/
theorem compact_approximated : ApproximatedOnSets Compact := fun _ _ _ hS hf hε =>
  universal_approximation_transformer_real hS hf hε (Std.le_of_lt OrderedRing.zero_lt_one)

section
variable {t s i j η : Real} (hi : t * i = 1) (hj : s * j = 1)
include hi

private theorem product : i * (2 * i) * (η * (t * t) / 2) = η := by grind

include hj

private theorem difference : i * j * (t - s) = j - i := by grind

private theorem inverse_le (hi₀ : 0 ≤ i) (hj₀ : 0 ≤ j) (h : t ≤ 2 * s) : j ≤ 2 * i := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left h (OrderedRing.mul_nonneg hi₀ hj₀)
  have e₁ : i * j * t = j := by grind
  have e₂ : i * j * (2 * s) = 2 * i := by grind
  rwa [e₁, e₂] at h₁

private theorem inverses_near (hi₀ : 0 ≤ i) (hj₀ : 0 ≤ j) (h : t ≤ 2 * s)
    (near : AtMost (η * (t * t) / 2) (t - s)) : AtMost η (i - j) := by
  have h₁ := inverse_le hi hj hi₀ hj₀ h
  have h₂ := ((show AtMost i i from ⟨by grind, Std.le_refl _⟩).mul
    (show AtMost (2 * i) j from ⟨by grind, h₁⟩)).mul near
  rw [product hi, difference hi hj] at h₂
  exact ⟨by grind [AtMost], by grind [AtMost]⟩

end

private theorem inverse_near {t s η : Real} (ht : 0 < t) (hs : 0 < s)
    (h₁ : AtMost (t / 2) (t - s)) (h₂ : AtMost (η * (t * t) / 2) (t - s)) :
    AtMost η (1 / t - 1 / s) :=
  inverses_near (OrderedField.mul_div_cancel (by grind) 1)
    (OrderedField.mul_div_cancel (by grind) 1)
    (OrderedField.div_nonneg (Std.le_of_lt OrderedRing.zero_lt_one) ht)
    (OrderedField.div_nonneg (Std.le_of_lt OrderedRing.zero_lt_one) hs)
    (by have := h₁.2; grind) h₂

/-- Sets that lie in a box. -/
theorem bounded_approximated_refuted :
    ¬ ApproximatedOnSets fun S => ∃ a b, ∀ x, S x → InBox a b x := fun claim => by
  have one := OrderedRing.zero_lt_one (R := Real)
  have inside : ∀ x : Vec Real 1, (0 < x[(0 : Fin 1)] ∧ x[(0 : Fin 1)] ≤ 1) → InBox 0 1 x :=
    fun x hx k => by
      obtain rfl : k = 0 := Subsingleton.elim _ _
      exact ⟨Std.le_of_lt hx.1, hx.2⟩
  obtain ⟨T, hT, near⟩ := claim (fun x => 0 < x[(0 : Fin 1)] ∧ x[(0 : Fin 1)] ≤ 1)
    (fun x => #v[1 / x[(0 : Fin 1)]]) 1 ⟨0, 1, inside⟩ (fun x hx η hη => by
      have hδ : 0 < η * (x[(0 : Fin 1)] * x[(0 : Fin 1)]) / 2 := by
        have := OrderedRing.mul_pos hη (OrderedRing.mul_pos hx.1 hx.1)
        grind
      have ⟨δ, h₀, h₁, h₂⟩ : ∃ δ, 0 < δ ∧ δ ≤ x[(0 : Fin 1)] / 2
          ∧ δ ≤ η * (x[(0 : Fin 1)] * x[(0 : Fin 1)]) / 2 := by
        rcases Std.le_total (a := x[(0 : Fin 1)] / 2)
          (b := η * (x[(0 : Fin 1)] * x[(0 : Fin 1)]) / 2) with h | h
        · exact ⟨_, by have := hx.1; grind, Std.le_refl _, h⟩
        · exact ⟨_, hδ, h, Std.le_refl _⟩
      refine ⟨δ, h₀, fun y hy h c => ?_⟩
      obtain rfl : c = 0 := Subsingleton.elim _ _
      exact inverse_near hx.1 hy.1 ((h 0).mono h₁) ((h 0).mono h₂)) one
  obtain ⟨c, hc⟩ := hT.bounded (Real.sqrt_pos one) fun z hz =>
    Real.sqrt_le (Std.le_of_lt one) hz
  have hc₀ : 0 ≤ c := (hc (#v[1]) (inside _ ⟨one, Std.le_refl _⟩)).nonneg
  have pos : 0 < c + 2 := by grind
  have e := OrderedField.mul_div_cancel (b := c + 2) (by grind) 1
  have h₁ : 0 < 1 / (c + 2) := by
    have := OrderedField.div_nonneg (Std.le_of_lt one) pos
    grind
  have h₂ : 1 / (c + 2) ≤ 1 := (OrderedField.div_le_iff pos).mpr (by grind)
  have e' : 1 / (1 / (c + 2)) = c + 2 := by grind
  generalize 1 / (c + 2) = x at h₁ h₂ e'
  have far : -1 ≤ (T #v[x])[(0 : Fin 1)] - (c + 2) := by
    rw [← e']
    exact (near #v[x] ⟨h₁, h₂⟩ 0).1
  have bound := (hc #v[x] (inside _ ⟨h₁, h₂⟩)).2
  grind

end Attention.WrongVariants
