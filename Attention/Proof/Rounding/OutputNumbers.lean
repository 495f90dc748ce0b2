module

public import Attention.Proof.Rounding.Majorants

public section

/-! # Numbers that are off by factors, and shares of a sum

What the parts of an output are made of: errors that are known of a sum become errors of its terms.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v w

variable {R : Type u} [OrderedField R]

/-- A positive number is not 0. -/
theorem ne_zero_of_pos {x : R} (h : 0 < x) : x ≠ 0 := by grind

/-- A number that may be off by two factors is one that is off by the first, times the second. -/
theorem two_factors {E U P w : R} (hE : 0 < E) (hU : 1 ≤ U) (hP : 1 ≤ P)
    (h₁ : w ≤ E * (U * P)) (h₂ : E ≤ w * (U * P)) :
    ∃ G ρ, w = G * ρ ∧ 0 < ρ ∧ G ≤ E * U ∧ E ≤ G * U ∧ ρ ≤ P ∧ 1 ≤ ρ * P := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hU₀ : 0 < U := by grind
  have hP₀ : 0 < P := by grind
  have hUP := OrderedRing.mul_pos hU₀ hP₀
  have hw : 0 < w := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_nonneg (a := -w) (b := U * P) (by grind) (Std.le_of_lt hUP)
    grind
  have hEU := OrderedRing.mul_pos hE hU₀
  have hU₁ := OrderedRing.mul_le_mul_of_nonneg_left hU (Std.le_of_lt hU₀)
  by_cases a : w ≤ E * U
  · by_cases b : E ≤ w * U
    · exact ⟨w, 1, by grind, h₀, a, b, hP, by grind⟩
    · have d : U * (E / U) = E := OrderedField.mul_div_cancel (ne_zero_of_pos hU₀) E
      have d' : E * (w * U / E) = w * U := OrderedField.mul_div_cancel (ne_zero_of_pos hE) (w * U)
      refine ⟨E / U, w * U / E, ?_, OrderedField.div_pos (OrderedRing.mul_pos hw hU₀) hE, ?_, ?_,
        Std.le_trans ?_ hP, ?_⟩
      · generalize E / U = x at *
        generalize w * U / E = y at *
        clear h₁ h₂ hU₁ hEU a b hUP hE hP hP₀ hU
        have h : U * (x * y - w) = 0 := by grind
        rcases Field.of_mul_eq_zero h with h | h
        · exact absurd h (ne_zero_of_pos hU₀)
        · grind
      · rw [OrderedField.div_le_iff hU₀]
        have := OrderedRing.mul_le_mul_of_nonneg_left
          (Std.le_trans (b := U) hU (by grind) : 1 ≤ U * U) (Std.le_of_lt hE)
        clear h₁ h₂
        grind
      · rw [CommSemiring.mul_comm, d]
        exact Std.le_refl _
      · rw [OrderedField.div_le_iff hE]
        grind
      · have e : w * U / E * P = w * (U * P) / E := by
          rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]
          generalize E⁻¹ = i
          clear h₁ h₂ hU₁ hEU a b hUP d d'
          grind
        rw [e, OrderedField.le_div_iff hE, Semiring.mul_one]
        exact h₂
  · refine ⟨E * U, w / (E * U), (OrderedField.mul_div_cancel (ne_zero_of_pos hEU) w).symm,
      OrderedField.div_pos hw hEU, Std.le_refl _, ?_, ?_, ?_⟩
    · have := OrderedRing.mul_le_mul_of_nonneg_left
        (Std.le_trans (b := U) hU (by grind) : 1 ≤ U * U) (Std.le_of_lt hE)
      clear h₁ h₂
      grind
    · rw [OrderedField.div_le_iff hEU]
      grind
    · have i : 1 ≤ w / (E * U) := by
        rw [OrderedField.le_div_iff hEU]
        grind
      have j := OrderedRing.mul_le_mul_of_nonneg_left hP (a := 1) (c := w / (E * U)) (by grind)
      clear h₁ h₂
      grind

/-- A number between 1 / P and P is off from 1 by P − 1 at most. -/
theorem factor_atMost {P ρ : R} (hP : 1 ≤ P) (h₁ : ρ ≤ P) (h₂ : 1 ≤ ρ * P) :
    AtMost (P - 1) (ρ - 1) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  refine ⟨?_, by grind⟩
  refine Classical.byContradiction fun hn => ?_
  have i₁ := mul_self_nonneg (P - 1)
  have i₂ := OrderedRing.mul_lt_mul_of_pos_left (a := ρ) (b := 2 - P) (c := P) (by grind) (by grind)
  grind

/-- A number no larger than a sum is a sum of numbers no larger than its terms. -/
theorem exists_shares {α : Type v} {b : α → R} {xs : List α} {x : R}
    (h : AtMost (sumOver b xs) x) : ∃ μ, AtMost 1 μ ∧ x = sumOver (fun a => μ * b a) xs := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hS := h.nonneg
  simp only [sumOver_mul_left]
  generalize sumOver b xs = S at *
  obtain ⟨h₁, h₂⟩ := h
  by_cases e : S = 0
  · exact ⟨0, .zero (by grind), by grind⟩
  · have hS₀ : 0 < S := by grind
    have d := OrderedField.mul_div_cancel e x
    refine ⟨x / S, ⟨?_, ?_⟩, by grind⟩
    · rw [OrderedField.le_div_iff hS₀]
      grind
    · rw [OrderedField.div_le_iff hS₀]
      grind

/-- A size is the number with a sign. -/
theorem exists_sign (v : R) : ∃ σ, AtMost 1 σ ∧ absolute v = σ * v := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  by_cases h : 0 ≤ v
  · exact ⟨1, ⟨by grind, by grind⟩, by rw [absolute_of_nonneg h]; grind⟩
  · refine ⟨-1, ⟨by grind, by grind⟩, ?_⟩
    rw [absolute, OrderedField.max_def]
    split <;> grind

/-- A list whose images are those of numbers that differ is the list of what belongs to each. -/
theorem exists_map {α : Type v} {β : Type w} {γ : Type u} [DecidableEq α] (from_ : α → γ)
    {f : γ → β} {g : α → β} {cols : List α} {ws : List γ} (hn : cols.Nodup)
    (h : ws.map f = cols.map g) :
    ∃ s : α → γ, ws = cols.map s ∧ ∀ c ∈ cols, f (s c) = g c := by
  induction cols generalizing ws with
  | nil =>
    rw [List.map_nil, List.map_eq_nil_iff] at h
    exact ⟨from_, by rw [h, List.map_nil], nofun⟩
  | cons c cols ih =>
    cases ws with
    | nil => simp at h
    | cons w ws =>
      rw [List.map_cons, List.map_cons, List.cons.injEq] at h
      rw [List.nodup_cons] at hn
      obtain ⟨s, hs, hf⟩ := ih hn.2 h.2
      refine ⟨fun x => if x = c then w else s x, ?_, fun x hx => ?_⟩
      · rw [List.map_cons, if_pos rfl, hs]
        congr 1
        refine List.map_congr_left fun x hx => ?_
        exact (if_neg fun e : x = c => hn.1 (e ▸ hx)).symm
      · by_cases e : x = c
        · simp only [e, ↓reduceIte, h.1]
        · simp only [if_neg e]
          exact hf x (by
            rw [List.mem_cons] at hx
            exact hx.resolve_left e)

end Attention.Proof
