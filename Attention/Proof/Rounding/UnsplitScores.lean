module

public import Attention.Model.UnsplitScores
public import Attention.Proof.Rounding.Scores

public section

/-! # Scores whose scale is not split are scores whose scale is

An operand that is not stored may be multiplied by any number, by which the inner product is divided
again: then what underflows of the other meets no more of the scale than 1.
Source: docs/tolerances.md, section 1. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R}

private theorem rounded_scaled {u x y : R} (c : R) (h : Rounded u x y) :
    Rounded u (c * x) (c * y) := by
  obtain ⟨θ, hθ, rfl⟩ := h
  exact ⟨θ, hθ, by grind⟩

private theorem roundedSum_scaled {u z : R} {k : Nat} {xs : List R} (c : R)
    (h : RoundedSum u k xs z) : RoundedSum u k (xs.map (c * ·)) (c * z) := by
  induction h with
  | nil =>
    rw [Semiring.mul_zero]
    exact .nil
  | one => exact .one
  | zero _ ih =>
    rw [List.map_cons, Semiring.mul_zero]
    exact .zero ih
  | add _ _ hx hy ih₁ ih₂ =>
    rw [List.map_append, Semiring.left_distrib]
    exact .add ih₁ ih₂ (rounded_scaled c hx) (rounded_scaled c hy)
  | permute _ hp ih => exact .permute ih (hp.map _)

private theorem storedTimes_scaled {a : Nat} {σ x y c : R} (hc : a = 0 ∨ c = 1)
    (h : StoredTimes p f a (σ * x) y) : StoredTimes p f a (σ * c * x) (c * y) := by
  rcases hc with rfl | rfl
  · have h : y = σ * x := h
    show c * y = σ * c * x
    rw [h]
    grind
  · rwa [Semiring.mul_one, Semiring.one_mul]

/-- What is not stored may be multiplied by any number, by which the inner product is divided. -/
theorem storedScore_scaled {additions a b d : Nat} {σ₁ σ₂ σ c₁ c₂ : R} (h₁ : c₁ ≠ 0) (h₂ : c₂ ≠ 0)
    (ha : a = 0 ∨ c₁ = 1) (hb : b = 0 ∨ c₂ = 1) {q k : Vec R d} {score : R}
    (h : StoredScore p f additions a b σ₁ σ₂ σ q k score) :
    StoredScore p f additions a b (σ₁ * c₁) (σ₂ * c₂) (σ / (c₁ * c₂)) q k score := by
  obtain ⟨q', k', products, sum, x, hq, hk, hprod, hsum, hx, hs⟩ := h
  refine ⟨fun i => c₁ * q' i, fun i => c₂ * k' i, fun i => c₁ * c₂ * products i,
    c₁ * c₂ * sum, x, fun i => storedTimes_scaled ha (hq i), fun i => storedTimes_scaled hb (hk i),
    fun i => ?_, ?_, ?_, hs⟩
  · have := rounded_scaled (c₁ * c₂) (hprod i)
    rwa [show c₁ * c₂ * (q' i * k' i) = c₁ * q' i * (c₂ * k' i) by grind] at this
  · have := roundedSum_scaled (c₁ * c₂) hsum
    rwa [List.map_map] at this
  · have e : σ / (c₁ * c₂) * (c₁ * c₂ * sum) = σ * sum := by
      have : c₁ * c₂ ≠ 0 := by
        intro h
        have e : c₁ = 0 := by
          have := congrArg (· * (1 / c₂)) h
          grind
        exact h₁ e
      generalize c₁ * c₂ = c at *
      clear hx hsum hprod
      grind
    rwa [e]

private theorem computed_of_stored {additions a b d : Nat} {σ₁ σ₂ σ : R} {q k : Vec R d} {score : R}
    (hab : a + b ≤ f.roundings) (h : StoredScore p f additions a b σ₁ σ₂ σ q k score) :
    ComputedScore p f additions σ₁ σ₂ σ q k score := by
  obtain ⟨q', k', products, sum, x, h⟩ := h
  exact ⟨a, b, q', k', products, sum, x, hab, h⟩

/-- Numbers of at most 1 in size, which a part of the scale may be. -/
private theorem small_part {u r x : R} (hu : 0 ≤ u) (hr : 1 ≤ r) (h : AtMost 1 x) :
    AtMost ((1 + u) ^ 3) x ∧ AtMost ((1 + u) ^ 3 * r) x := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.one_le_pow (x := 1 + u) (by grind) 3
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left hr (c := (1 + u) ^ 3) (by grind)
  exact ⟨h.mono h₁, h.mono (by grind)⟩

private theorem part_one : AtMost (1 : R) 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨by grind, Std.le_refl _⟩

/-- The parts of a scale of which no number that is stored meets more than 1. -/
private theorem scaled_parts {scale σ₁ σ₂ σ : R} (hu : 0 ≤ p.unit) (hr : 1 ≤ f.reach)
    (h : RoundedTimes p.unit 3 scale (σ₁ * σ₂ * σ)) (h₁ : AtMost 1 σ) (h₂ : AtMost 1 (σ₁ * σ))
    (h₃ : AtMost 1 (σ₂ * σ)) : ScaledBy p f scale σ₁ σ₂ σ :=
  ⟨h, fun _ => (small_part hu hr h₁).1, fun _ => (small_part hu hr h₂).2,
    fun _ => (small_part hu hr h₃).2⟩

private theorem part_le {σ g : R} (hg : 1 ≤ g) (h : AtMost g σ) :
    AtMost 1 (1 / g) ∧ AtMost 1 (σ / g) ∧ AtMost 1 (σ / g / g) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have pos : 0 < g := by grind
  obtain ⟨a₁, a₂⟩ := h
  have e₁ := OrderedField.mul_div_cancel (b := g) (by grind) (1 : R)
  have e₂ := OrderedField.mul_div_cancel (b := g) (by grind) σ
  have e₃ := OrderedField.mul_div_cancel (b := g) (by grind) (σ / g)
  have down : ∀ {x y : R}, g * y = x → -g ≤ x → x ≤ g → AtMost 1 y := fun {x y} e i₁ i₂ => by
    refine ⟨?_, ?_⟩
    · refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_pos pos (b := -1 - y) (by grind)
      grind
    · refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_pos pos (b := y - 1) (by grind)
      grind
  have i := down e₂ a₁ a₂
  exact ⟨down e₁ (by grind) hg, i, down e₃ (by have := i.1; grind) (by have := i.2; grind)⟩

/-- **unsplit-scale**: scores of a function that multiplies q alone, k alone, or their inner product
by the whole scale, however large, are scores as `ComputedScore` has them, with parts of the scale
of which nothing that is stored meets more than 1. -/
theorem unsplit_scores (hu : 0 ≤ p.unit) (hr : 1 ≤ f.reach) (place : ScalePlace) {scale σ : R}
    (hσ : RoundedTimes p.unit 3 scale σ) :
    ∃ σ₁ σ₂ σ₃, ScaledBy p f scale σ₁ σ₂ σ₃ ∧
      ∀ (additions d : Nat) (q k : Vec R d) (score : R),
        UnsplitScore p f additions place σ q k score →
        ComputedScore p f additions σ₁ σ₂ σ₃ q k score := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨g, hg, hσg⟩ : ∃ g : R, 1 ≤ g ∧ AtMost g σ := by
    refine ⟨1 + absolute σ, ?_, (atMost_absolute σ).mono ?_⟩ <;>
    · have := (atMost_absolute σ).nonneg
      grind
  have pos : g ≠ 0 := by grind
  have one : (1 : R) ≠ 0 := by grind
  obtain ⟨i₁, i₂, i₃⟩ := part_le hg hσg
  cases place with
  | query =>
    refine ⟨σ * 1, 1 * g, 1 / (1 * g), scaled_parts hu hr ?_ ?_ ?_ ?_,
      fun additions d q k s h => ?_⟩
    · rwa [show σ * 1 * (1 * g) * (1 / (1 * g)) = σ by grind]
    · rwa [Semiring.one_mul]
    · rwa [show σ * 1 * (1 / (1 * g)) = σ / g by grind]
    · rw [show 1 * g * (1 / (1 * g)) = 1 by grind]
      exact part_one
    · obtain ⟨a, ha, h⟩ := h
      exact computed_of_stored ha (storedScore_scaled one pos (.inr rfl) (.inl rfl) h)
  | key =>
    refine ⟨1 * g, σ * 1, 1 / (g * 1), scaled_parts hu hr ?_ ?_ ?_ ?_,
      fun additions d q k s h => ?_⟩
    · rwa [show 1 * g * (σ * 1) * (1 / (g * 1)) = σ by grind]
    · rwa [Semiring.mul_one]
    · rw [show 1 * g * (1 / (g * 1)) = 1 by grind]
      exact part_one
    · rwa [show σ * 1 * (1 / (g * 1)) = σ / g by grind]
    · obtain ⟨b, hb, h⟩ := h
      exact computed_of_stored (by omega) (storedScore_scaled pos one (.inl rfl) (.inr rfl) h)
  | product =>
    refine ⟨1 * g, 1 * g, σ / (g * g), scaled_parts hu hr ?_ ?_ ?_ ?_,
      fun additions d q k s h => ?_⟩
    · rwa [show 1 * g * (1 * g) * (σ / (g * g)) = σ by grind]
    · rwa [show σ / (g * g) = σ / g / g by grind]
    · rwa [show 1 * g * (σ / (g * g)) = σ / g by grind]
    · rwa [show 1 * g * (σ / (g * g)) = σ / g by grind]
    · exact computed_of_stored (Nat.zero_le _) (storedScore_scaled pos pos (.inl rfl) (.inl rfl) h)

end Attention.Proof
