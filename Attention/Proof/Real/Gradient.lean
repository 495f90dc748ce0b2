module

public import Attention.Proof.Backward.Gradient
public import Attention.Proof.Real.LogSumExp

public section

/-! # The gradient of attention, over the real numbers

Log-sum-exps are there, so that of the suppositions of `Backward/Gradient` only the paths remain. -/

namespace Attention.Proof

open Spec Model

universe v

variable {ι : Type v} {d d_v q_len kv_len num_kv_heads group : Nat} {scale : Real}

section
variable {modify : ι → Real → ScoreMod Real q_len kv_len}
variable {modify' : ι → ScoreMod (Dual Real) q_len kv_len} (hmodify : ModTangent modify modify')
variable {slope : ι → ScoreSlope Real Real q_len kv_len} {δB : ι → Matrix Real q_len kv_len}
variable (hlift : ∀ x, (modify' x).IsLift (modify x 0) (slope x) (δB x))
variable {Q : ι → Real → Matrix Real q_len d} {Q' : ι → Matrix (Dual Real) q_len d}
variable {K : ι → Real → Matrix Real kv_len d} {K' : ι → Matrix (Dual Real) kv_len d}
variable {V : ι → Real → Matrix Real kv_len d_v} {V' : ι → Matrix (Dual Real) kv_len d_v}
variable (hQ : MatrixTangent Q Q') (hK : MatrixTangent K K') (hV : MatrixTangent V V')
variable (dO : Matrix Real q_len d_v) (dLse : Vec Real q_len)
include hmodify hlift hQ hK hV

/-- **gradient-is-derivative-real**: over the real numbers each row has a log-sum-exp, and
Σ dO · O + Σ dLse · L changes at the rate that the gradients of the backward pass give. -/
theorem vjp_isDerivative_real :
    ∃ L : ι → Real → Fin q_len → Option Real,
      (∀ x t (i : Fin q_len), IsLogSumExp Real (L x t i)
        ((List.finRange kv_len).map (score scale (modify x t) (Q x t) (K x t) i))) ∧
      let loss := fun x t => Matrix.inner dO (attention scale (modify x t) (Q x t) (K x t) (V x t))
        + sumOver (fun i : Fin q_len => dLse[i] * (L x t i).getD 0) (List.finRange q_len)
      let g := fun x =>
        vjp scale (modify x 0) (slope x) (Q x 0) (K x 0) (V x 0) (fun y => y) dO dLse
      IsTangent loss fun x => ⟨loss x 0, Matrix.rate (g x).dQ (Q' x) + Matrix.rate (g x).dK (K' x)
        + Matrix.rate (g x).dV (V' x) + Matrix.inner (g x).dBias (δB x)⟩ := by
  obtain ⟨L, hL⟩ := Classical.axiomOfChoice fun p : ι × Real × Fin q_len =>
    have ⟨L, hL, _⟩ := exists_isLogSumExp ((List.finRange kv_len).map
      (score scale (modify p.1 p.2.1) (Q p.1 p.2.1) (K p.1 p.2.1) p.2.2))
    ⟨L, hL⟩
  exact ⟨fun x t i => L (x, t, i), fun x t i => hL (x, t, i),
    vjp_isDerivative hmodify hlift hQ hK hV dO dLse fun x t i => .inr (hL (x, t, i))⟩

/-- **gradient-is-derivative-dropout-real**: so with dropout, whatever the factors. -/
theorem vjpDropout_isDerivative_real (Z : WeightFactor Real q_len kv_len) :
    ∃ L : ι → Real → Fin q_len → Option Real,
      (∀ x t (i : Fin q_len), IsLogSumExp Real (L x t i)
        ((List.finRange kv_len).map (score scale (modify x t) (Q x t) (K x t) i))) ∧
      let loss := fun x t =>
        Matrix.inner dO (attentionDropout scale (modify x t) (Q x t) (K x t) (V x t) Z)
          + sumOver (fun i : Fin q_len => dLse[i] * (L x t i).getD 0) (List.finRange q_len)
      let g := fun x =>
        vjpDropout scale (modify x 0) (slope x) (Q x 0) (K x 0) (V x 0) Z (fun y => y) dO dLse
      IsTangent loss fun x => ⟨loss x 0, Matrix.rate (g x).dQ (Q' x) + Matrix.rate (g x).dK (K' x)
        + Matrix.rate (g x).dV (V' x) + Matrix.inner (g x).dBias (δB x)⟩ := by
  obtain ⟨L, hL⟩ := Classical.axiomOfChoice fun p : ι × Real × Fin q_len =>
    have ⟨L, hL, _⟩ := exists_isLogSumExp ((List.finRange kv_len).map
      (score scale (modify p.1 p.2.1) (Q p.1 p.2.1) (K p.1 p.2.1) p.2.2))
    ⟨L, hL⟩
  exact ⟨fun x t i => L (x, t, i), fun x t i => hL (x, t, i),
    vjpDropout_isDerivative hmodify hlift hQ hK hV dO dLse Z fun x t i => .inr (hL (x, t, i))⟩

end

section
variable {modify : ι → Real → Fin (num_kv_heads * group) → ScoreMod Real q_len kv_len}
variable {modify' : ι → Fin (num_kv_heads * group) → ScoreMod (Dual Real) q_len kv_len}
variable {slope : ι → Fin (num_kv_heads * group) → ScoreSlope Real Real q_len kv_len}
variable {δB : ι → Vector (Matrix Real q_len kv_len) (num_kv_heads * group)}
variable {Q : ι → Real → Vector (Matrix Real q_len d) (num_kv_heads * group)}
variable {Q' : ι → Vector (Matrix (Dual Real) q_len d) (num_kv_heads * group)}
variable {K : ι → Real → Vector (Matrix Real kv_len d) num_kv_heads}
variable {K' : ι → Vector (Matrix (Dual Real) kv_len d) num_kv_heads}
variable {V : ι → Real → Vector (Matrix Real kv_len d_v) num_kv_heads}
variable {V' : ι → Vector (Matrix (Dual Real) kv_len d_v) num_kv_heads}

/-- **gradient-is-derivative-sink-real**: so with heads, and a sink in each query head. -/
theorem sinkVjp_isDerivative_real
    (hmodify : ∀ h, ModTangent (fun x t => modify x t h) fun x => modify' x h)
    (hlift : ∀ x h, (modify' x h).IsLift (modify x 0 h) (slope x h) (δB x)[h])
    (hQ : HeadsTangent Q Q') (hK : HeadsTangent K K') (hV : HeadsTangent V V')
    {sinks : ι → Real → Vec Real (num_kv_heads * group)}
    {sinks' : ι → Vec (Dual Real) (num_kv_heads * group)} (hsinks : VecTangent sinks sinks')
    (dO : Vector (Matrix Real q_len d_v) (num_kv_heads * group))
    (dLse : Vector (Vec Real q_len) (num_kv_heads * group)) :
    ∃ L : ι → Real → Fin (num_kv_heads * group) → Fin q_len → Option Real,
      (∀ x t (h : Fin (num_kv_heads * group)) (i : Fin q_len), IsLogSumExp Real (L x t h i)
        (some (sinks x t)[h] :: (List.finRange kv_len).map
          (score scale (modify x t h) (Q x t)[h] (K x t)[kvHead h] i))) ∧
      let loss := fun x t => sumOver (fun h : Fin (num_kv_heads * group) =>
        Matrix.inner dO[h] (attentionSink scale (modify x t h) (sinks x t)[h] (Q x t)[h]
            (K x t)[kvHead h] (V x t)[kvHead h])
          + sumOver (fun i : Fin q_len => dLse[h][i] * (L x t h i).getD 0) (List.finRange q_len))
        (List.finRange (num_kv_heads * group))
      let g := fun x => sinkVjp scale (modify x 0) (slope x) (sinks x 0) (Q x 0) (K x 0) (V x 0)
        (fun y => y) dO dLse
      IsTangent loss fun x => ⟨loss x 0, headsRate (g x).inputs.dQ (Q' x)
        + headsRate (g x).inputs.dK (K' x) + headsRate (g x).inputs.dV (V' x)
        + sumOver (fun h : Fin (num_kv_heads * group) =>
            (Matrix.inner (g x).inputs.dBias[h] (δB x)[h] : Real)) (List.finRange _)
        + Vec.rate (g x).dSinks (sinks' x)⟩ := by
  obtain ⟨L, hL⟩ := Classical.axiomOfChoice
    fun p : ι × Real × Fin (num_kv_heads * group) × Fin q_len =>
      have ⟨L, hL, _⟩ := exists_isLogSumExp (some (sinks p.1 p.2.1)[p.2.2.1]
        :: (List.finRange kv_len).map (score scale (modify p.1 p.2.1 p.2.2.1)
          (Q p.1 p.2.1)[p.2.2.1] (K p.1 p.2.1)[kvHead p.2.2.1] p.2.2.2))
      ⟨L, hL⟩
  exact ⟨fun x t h i => L (x, t, h, i), fun x t h i => hL (x, t, h, i),
    sinkVjp_isDerivative hmodify hlift hQ hK hV hsinks dO dLse fun x t h i =>
      .inr (hL (x, t, h, i))⟩

end

end Attention.Proof
