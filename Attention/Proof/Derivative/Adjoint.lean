module

public import Attention.Algebra.SumExchange

public section

/-! # The algebra of an adjoint: sums exchanged -/

namespace Attention.Proof

open Lean.Grind

universe u v w

variable {κ : Type v} {γ : Type w} {R : Type u} [OrderedField R]

private theorem mul_sumOver_comm (ks : List κ) (cs : List γ) (g : γ → R) (X : κ → γ → R) :
    sumOver (fun c => g c * sumOver (fun k => X k c) ks) cs
      = sumOver (fun k => sumOver (fun c => g c * X k c) cs) ks := by
  rw [sumOver_comm]
  exact sumOver_congr fun c _ => (sumOver_mul_left _ _ _).symm

private theorem sum_weighted (ks : List κ) (p σ dP : κ → R) (D e m : R)
    (hD : D = sumOver (fun k => p k * dP k) ks) (hm : m = sumOver (fun k => p k * σ k) ks) :
    sumOver (fun k => p k * (σ k - m) * dP k) ks + e * m
      = sumOver (fun k => p k * (dP k - (D - e)) * σ k) ks := by
  have h₁ : sumOver (fun k => p k * (σ k - m) * dP k) ks
      = sumOver (fun k => p k * σ k * dP k) ks - m * D := by
    rw [hD, ← sumOver_mul_left, ← sumOver_sub]
    exact sumOver_congr fun k _ => by grind
  have h₂ : sumOver (fun k => p k * (dP k - (D - e)) * σ k) ks
      = sumOver (fun k => p k * σ k * dP k) ks - (D - e) * m := by
    rw [hm, ← sumOver_mul_left, ← sumOver_sub]
    exact sumOver_congr fun k _ => by grind
  rw [h₁, h₂]
  grind

/-- The adjoint of one row, for any weights p, rates σ of the scores, values V with rates δV, and
gradients g by the output and e by the log-sum-exp. -/
theorem row_adjoint (ks : List κ) (cs : List γ) (p σ : κ → R) (V δV : κ → γ → R) (g : γ → R)
    (e m : R) (hm : m = sumOver (fun k => p k * σ k) ks) :
    sumOver (fun c => g c * sumOver (fun k => p k * (σ k - m) * V k c + p k * δV k c) ks) cs + e * m
      = sumOver (fun k => sumOver (fun c => p k * g c * δV k c) cs) ks
        + sumOver (fun k => p k * (sumOver (fun c => g c * V k c) cs
            - (sumOver (fun c => g c * sumOver (fun k => p k * V k c) ks) cs - e)) * σ k) ks := by
  have hD : sumOver (fun c => g c * sumOver (fun k => p k * V k c) ks) cs
      = sumOver (fun k => p k * sumOver (fun c => g c * V k c) cs) ks := by
    rw [mul_sumOver_comm]
    refine sumOver_congr fun k _ => ?_
    rw [← sumOver_mul_left]
    exact sumOver_congr fun c _ => by grind
  have h := sum_weighted ks p σ (fun k => sumOver (fun c => g c * V k c) cs) _ e m hD hm
  rw [← h, mul_sumOver_comm, ← Semiring.add_assoc, ← sumOver_add]
  refine congrArg (· + e * m) (sumOver_congr fun k _ => ?_)
  rw [← sumOver_mul_left, ← sumOver_add]
  exact sumOver_congr fun c _ => by grind

/-- A factor, a sum and rates: which of the two sums is taken first does not matter. -/
theorem sumOver_pull (ks : List κ) (cs : List γ) (a : R) (z : κ → R) (K : κ → γ → R) (δ : γ → R) :
    sumOver (fun c => a * sumOver (fun k => z k * K k c) ks * δ c) cs
      = sumOver (fun k => z k * (a * sumOver (fun c => δ c * K k c) cs)) ks := by
  have h : ∀ c ∈ cs, a * sumOver (fun k => z k * K k c) ks * δ c
      = sumOver (fun k => z k * (a * (δ c * K k c))) ks := fun c _ => by
    rw [← sumOver_mul_left, ← sumOver_mul_right]
    exact sumOver_congr fun k _ => by grind
  rw [sumOver_congr h, sumOver_comm]
  refine sumOver_congr fun k _ => ?_
  rw [sumOver_mul_left, sumOver_mul_left]

end Attention.Proof
