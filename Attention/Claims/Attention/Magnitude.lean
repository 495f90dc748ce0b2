module

public import Attention.Algebra.Magnitude

public section

/-! # How large a score is

Claimed under the name that the inner product preserves magnitude: |⟨k, q⟩| ≤ |q| · |k|. That is the
inequality of Cauchy and Schwarz, proved here squared, so that no root is needed. -/

namespace Attention.Claims

open Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {d : Nat}

/-- **cauchy-schwarz**: ⟨k, q⟩² ≤ ⟨k, k⟩ · ⟨q, q⟩. -/
theorem dot_mul_dot_le (k q : Vec R d) :
    Vec.dot k q * Vec.dot k q ≤ Vec.dot k k * Vec.dot q q := by
  -- 0 ≤ Σ (a qᵢ − b kᵢ)² = a² c − 2 a b b + b² a = a (a c − b²), with a = ⟨k, k⟩, b = ⟨k, q⟩
  have square : ∀ a b : R, 0 ≤ a * a * Vec.dot q q - 2 * a * b * Vec.dot k q
      + b * b * Vec.dot k k := fun a b => by
    have h : 0 ≤ sumOver (fun i : Fin d => (a * q[i] - b * k[i]) * (a * q[i] - b * k[i]))
        (List.finRange d) := sumOver_nonneg fun i _ => mul_self_nonneg _
    have e : sumOver (fun i : Fin d => (a * q[i] - b * k[i]) * (a * q[i] - b * k[i]))
        (List.finRange d) = a * a * Vec.dot q q - 2 * a * b * Vec.dot k q
          + b * b * Vec.dot k k := by
      simp only [Vec.dot]
      rw [← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_sub, ← sumOver_add]
      exact sumOver_congr fun i _ => by grind
    rwa [e] at h
  have ha : 0 ≤ Vec.dot k k := sumOver_nonneg fun i _ => mul_self_nonneg _
  have hc : 0 ≤ Vec.dot q q := sumOver_nonneg fun i _ => mul_self_nonneg _
  generalize Vec.dot k k = a at *
  generalize Vec.dot k q = b at *
  generalize Vec.dot q q = c at *
  by_cases h : a = 0
  · subst h
    -- with (t, 1) for (a, b): 0 ≤ t² c − 2 t b for every t
    by_cases hb : b = 0
    · subst hb; grind
    · exfalso
      by_cases hc' : c = 0
      · have := square 1 b
        have h₁ := mul_self_pos hb
        grind
      · -- 0 ≤ (b / c)² c − 2 (b / c) b = − b² / c
        have h₁ := square b c
        have h₂ := mul_self_pos hb
        have h₃ := OrderedRing.mul_pos h₂ (show 0 < c by grind)
        grind
  · have pos : 0 < a := by grind
    have h₁ := square a b
    refine Classical.byContradiction fun hn => ?_
    have h₂ := OrderedRing.mul_pos pos (show 0 < b * b - a * c by grind)
    grind

/-- The score scale · ⟨k, q⟩ obeys it too, if scale² ≤ 1, as 1/√d does. -/
theorem scale_mul_dot_le {scale : R} (hs : scale * scale ≤ 1) (k q : Vec R d) :
    scale * Vec.dot k q * (scale * Vec.dot k q) ≤ Vec.dot k k * Vec.dot q q := by
  have h := dot_mul_dot_le k q
  have h₀ := mul_self_nonneg (Vec.dot k q)
  have := OrderedRing.mul_le_mul_of_nonneg_right hs h₀
  grind

/-- Magnitude is not preserved: the inner product of (1, 0) and (0, 1), each of length 1, is 0. -/
theorem magnitude_preserved_refuted :
    ¬ ∀ k q : Vec Rat 2, Vec.dot k q * Vec.dot k q = Vec.dot k k * Vec.dot q q :=
  fun h => absurd (h #v[1, 0] #v[0, 1]) (by decide +kernel)

end Attention.Claims
