module

public import Attention.Proof.Backward.Gradient
public import Attention.Proof.Derivative.Apart
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

/-! ## Along straight lines -/

section
variable {m n : Nat}

private theorem moved_tangent (A δA : Matrix Real m n) :
    MatrixTangent (fun (_ : Unit) t => A.moved t δA) fun _ => A.dual δA := by
  intro i hi j hj
  simp only [Matrix.moved, Matrix.dual, Fin.getElem_fin, Vec.getElem_ofFn]
  exact line_tangent ⟨_, _⟩

private theorem moved_zero (A δA : Matrix Real m n) : A.moved 0 δA = A := by
  refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
  simp only [Matrix.moved, Fin.getElem_fin, Vec.getElem_ofFn]
  generalize A[i][j] = a, δA[i][j] = b
  grind

private theorem rate_dual (G A δA : Matrix Real m n) :
    Matrix.rate G (A.dual δA) = Matrix.inner G δA := by
  refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
  simp only [Matrix.dual, Fin.getElem_fin, Vec.getElem_ofFn]

private theorem option_tangent (o : Option Real) (r : Real) :
    ScoreTangent (fun (_ : Unit) t => o.map (· + t * r)) fun _ => o.map fun b => ⟨b, r⟩ := by
  cases o with
  | none => exact .inl fun _ => ⟨rfl, fun _ => rfl⟩
  | some b => exact .inr ⟨_, _, line_tangent ⟨b, r⟩, fun _ => ⟨rfl, fun _ => rfl⟩⟩

private theorem biasMoved_tangent (B : Matrix (Option Real) q_len kv_len)
    (δB : Matrix Real q_len kv_len) :
    ModTangent (fun (_ : Unit) t => ScoreMod.bias (biasMoved B t δB))
      fun _ => ScoreMod.bias (biasDual B δB) := by
  refine bias_tangent fun i j => ?_
  simp only [biasMoved, biasDual, Fin.getElem_fin, Vec.getElem_ofFn]
  exact option_tangent ..

private theorem biasMoved_zero (B : Matrix (Option Real) q_len kv_len)
    (δB : Matrix Real q_len kv_len) : biasMoved B 0 δB = B := by
  refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
  simp only [biasMoved, Fin.getElem_fin, Vec.getElem_ofFn]
  generalize B[i][j] = o, δB[i][j] = r
  cases o with
  | none => rfl
  | some b =>
    rw [Option.map_some]
    congr 1
    grind

/-- **gradient-is-derivative-lines**: over the real numbers, where queries, keys, values and an
additive bias move by t times any rates, Σ dO · O + Σ dLse · L moves by t times what the gradients
of the backward pass give, up to a constant times t². -/
theorem vjp_isDerivative_lines (scale : Real) (B : Matrix (Option Real) q_len kv_len)
    (δB : Matrix Real q_len kv_len) (Q δQ : Matrix Real q_len d) (K δK : Matrix Real kv_len d)
    (V δV : Matrix Real kv_len d_v) (dO : Matrix Real q_len d_v) (dLse : Vec Real q_len) :
    ∃ L : Real → Fin q_len → Option Real,
      (∀ t i, IsLogSumExp Real (L t i) ((List.finRange kv_len).map
        (score scale (ScoreMod.bias (biasMoved B t δB)) (Q.moved t δQ) (K.moved t δK) i))) ∧
      let loss := fun t => Matrix.inner dO (attention scale (ScoreMod.bias (biasMoved B t δB))
          (Q.moved t δQ) (K.moved t δK) (V.moved t δV))
        + sumOver (fun i : Fin q_len => dLse[i] * (L t i).getD 0) (List.finRange q_len)
      let g := vjp scale (ScoreMod.bias B) ScoreSlope.one Q K V (fun y => y) dO dLse
      ∃ C τ : Real, 0 < τ ∧ ∀ t, AtMost τ t → AtMost (C * (t * t)) (loss t - loss 0
        - t * (Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
          + Matrix.inner g.dBias δB)) := by
  obtain ⟨L, hL, h⟩ := vjp_isDerivative_real (scale := scale) (biasMoved_tangent B δB)
    (slope := fun _ => ScoreSlope.one) (δB := fun _ => δB)
    (fun _ => by rw [biasMoved_zero]; exact isLift_bias B δB) (moved_tangent Q δQ)
    (moved_tangent K δK) (moved_tangent V δV) dO dLse
  refine ⟨L (), hL (), ?_⟩
  simp only [biasMoved_zero, moved_zero, rate_dual] at h
  obtain ⟨C, τ, hτ, h⟩ := h
  refine ⟨C, τ, hτ, fun t ht => ?_⟩
  have h := (h ()).2.2 t ht
  simp only [biasMoved_zero, moved_zero]
  exact h

end

end Attention.Proof
