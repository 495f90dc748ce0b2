module

public import Attention.Proof.Rounding.GradientMatrices
public import Attention.Proof.Rounding.Tangents

public section

/-! # The weights of tangents, computed again

What `rounded_tangents` supposes of a weight holds where it is computed from a score and a
log-sum-exp that are off, as in a backward pass.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {d : Nat}

/-- **tangent-weight**: the weight of an unmasked key, from a score and a log-sum-exp that were
computed, below the normal numbers off by `t` as it is computed and as it is stored, is as
`rounded_tangents` supposes, with the error of weights that a backward pass computes again. -/
theorem computedWeight_of_recomputed {row : List (ScoredValue (Dual R) (Dual R) d)} {c : Fin d}
    {y : ScoredValue (Dual R) (Dual R) d} {s : Dual R} (hs : y.score = some s) {L : R}
    (hL : IsLogSumExp R (some L) (row.map fun y => y.score.map (·.val))) {u ν ue : R} (hu : 0 ≤ u)
    (hν : 0 ≤ ν) (h3 : numeral 3 * u < 1) {ofScore ofLse s' L' P w τ t φ S δ : R}
    (hs' : AtMost ofScore (s' - s.val)) (hL' : AtMost ofLse (L' - L))
    (h : RecomputedWeight u ν ue t s' L' P) (hw : StoredNear τ t P w) :
    ComputedWeights [()] (fun _ => boundedRate row c (recomputedError u ν ue s.val L ofScore ofLse)
      τ t φ S δ y) fun _ => w := fun _ _ => by
  refine ⟨P, ?_, hw⟩
  have e : (boundedRate row c (recomputedError u ν ue s.val L ofScore ofLse) τ t φ S δ y).weight
      = exp (s.val - L) := by
    have hL : (exp L : R) = denominator (row.map fun y => y.score.map (·.val)) := hL
    show weight (y.score.map (·.val)) / denominator (row.map fun y => y.score.map (·.val)) = _
    rw [← hL, hs]
    show exp s.val / exp L = _
    have h₁ := exp_sub_mul (R := R) s.val L
    have h₂ := exp_pos (R := R) L
    generalize (exp s.val : R) = a at *
    generalize (exp L : R) = b at *
    generalize (exp (s.val - L) : R) = x at *
    rw [← h₁]
    grind
  have h₁ := rounded_recomputed hu hν h3 hs' hL' h
  rw [e]
  rw [CommSemiring.mul_comm (recomputedError u ν ue s.val L ofScore ofLse)] at h₁
  exact h₁

end Attention.Proof
