module

public import Attention.Proof.Derivative.Basic

public section

/-! # The derivative of attention, with some constant for all bounded inputs -/

namespace Attention.Proof

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R] {d d_v q_len kv_len : Nat}

/-- Attention under a mask and a bias, over dual numbers, computes its derivative: one
constant and one bound of the time serve all inputs and rates that are bounded. -/
theorem exists_derivative {c M G : R} (hM : 0 ≤ M) (hG : 0 ≤ G) :
    ∃ C τ : R, 0 < τ ∧ ∀ (scale : R) (B : Matrix (Option R) q_len kv_len)
      (δB : Matrix R q_len kv_len) (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d)
      (V δV : Matrix R kv_len d_v), AtMost c scale →
      (∀ (i : Fin q_len) (k : Fin kv_len), AtMost G δB[i][k]) →
      (∀ (i : Fin q_len) (x : Fin d), AtMost M Q[i][x] ∧ AtMost G δQ[i][x]) →
      (∀ (k : Fin kv_len) (x : Fin d), AtMost M K[k][x] ∧ AtMost G δK[k][x]) →
      (∀ (k : Fin kv_len) (j : Fin d_v), AtMost M V[k][j] ∧ AtMost G δV[k][j]) →
      ∀ t : R, AtMost τ t → ∀ (i : Fin q_len) (j : Fin d_v),
        AtMost (C * (t * t))
          ((attention scale (ScoreMod.bias (biasMoved B t δB)) (Q.moved t δQ) (K.moved t δK)
              (V.moved t δV))[i][j]
            - (attention scale (ScoreMod.bias B) Q K V)[i][j]
            - t * (jvp scale (ScoreMod.bias (biasDual B δB)) Q δQ K δK V δV)[i][j]) := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  let H := scoreReach d c M G 1 0
  have hH : 0 ≤ H * H := mul_self_nonneg H
  have hH' : H ≤ 1 + H * H := by
    have := mul_self_nonneg (H - 1)
    grind
  have pos : 0 < 2 * (1 + H * H) := by grind
  refine ⟨derivativeBound d c M G 1 0, 1 / (2 * (1 + H * H)), ?_, ?_⟩
  · rw [Field.div_eq_mul_inv, Semiring.one_mul]
    exact Field.IsOrdered.inv_pos_iff.mpr pos
  intro scale B δB Q δQ K δK V δV hscale hδB hQ hK hV t ht i j
  obtain ⟨s, hs, e, hsτ⟩ : ∃ s, AtMost s t ∧ s * s = t * t ∧ s ≤ 1 / (2 * (1 + H * H)) := by
    rcases Std.le_total (a := 0) (b := t) with h | h
    · exact ⟨t, ⟨by grind, Std.le_refl _⟩, rfl, ht.2⟩
    · exact ⟨-t, ⟨by grind, by grind⟩, by grind, by have := ht.1; grind⟩
  have h₂ : s * (2 * (1 + H * H)) ≤ 1 := by
    rw [CommSemiring.mul_comm]
    exact (OrderedField.le_div_iff pos).mp hsτ
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left hH' hs.nonneg
  have h₄ := OrderedRing.mul_nonneg hs.nonneg hH
  have hreach : s * H ≤ 1 / 2 := by grind
  have hs₁ : s ≤ 1 := by grind
  rw [← e]
  exact jvp_isDerivative hscale isLift_one (movesBySlope_one _) B (fun i x => (hQ i x).1)
    (fun k x => (hK k x).1) (fun k j => (hV k j).1) (fun i x => (hQ i x).2) (fun k x => (hK k x).2)
    (fun k j => (hV k j).2) hδB hM hG hs hs₁ (Std.le_refl _) hreach i j

end Attention.Proof
