module

public import Attention.Proof.Backward.Row
public import Attention.Spec.LogSumExp

public section

/-! # The backward pass is the adjoint of attention over dual numbers

That the rates of output and log-sum-exp are their derivatives, where the exponential is natural, is
proved in `Derivative`; `Backward/Gradient` has both together. -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {d d_v q_len kv_len : Nat}
variable {scale : R} {modify : ScoreMod R q_len kv_len} {lifted : ScoreMod (Dual R) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len} {δB : Matrix R q_len kv_len}
variable (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v)
variable (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

/-- The adjoint, with the rate of the log-sum-exp written out as a mean of rates. -/
theorem adjoint_meanTangent (hlift : lifted.IsLift modify slope δB) :
    let s := score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK)
    let g := vjp scale modify slope Q K V (fun x => x) dO dLse
    Matrix.inner dO (jvp scale lifted Q δQ K δK V δV)
        + sumOver (fun i => dLse[i] * meanTangent ((List.finRange kv_len).map (s i)))
            (List.finRange q_len)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + Matrix.inner g.dBias δB := by
  intro s g
  let P : Matrix R q_len kv_len := probabilities scale modify Q K
  let dS := scoreGradients scale modify Q K V dO dLse
  let dZ := fun i j => dS[i][j] * slope i j (scale * Vec.dot Q[i] K[j])
  have hV : Matrix.inner g.dV δV = sumOver (fun i => sumOver (fun j =>
      sumOver (fun c => P[i][j] * dO[i][c] * δV[j][c]) (List.finRange d_v)) (List.finRange kv_len))
      (List.finRange q_len) := by
    rw [sumOver_comm]
    refine sumOver_congr fun j _ => ?_
    rw [sumOver_comm]
    refine sumOver_congr fun c _ => ?_
    rw [sumOver_mul_right]
    simp only [g, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul, P]
  have hQ : Matrix.inner g.dQ δQ = sumOver (fun i => sumOver (fun j =>
      dZ i j * (scale * Vec.dot δQ[i] K[j])) (List.finRange kv_len)) (List.finRange q_len) := by
    refine sumOver_congr fun i _ => ?_
    refine Eq.trans ?_ (sumOver_pull (List.finRange kv_len) (List.finRange d) scale (dZ i)
      (fun j t => K[j][t]) fun t => δQ[i][t])
    refine sumOver_congr fun t _ => ?_
    simp only [g, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul,
      Vec.getElem_map, dZ, dS]
  have hK : Matrix.inner g.dK δK = sumOver (fun i => sumOver (fun j =>
      dZ i j * (scale * Vec.dot Q[i] δK[j])) (List.finRange kv_len)) (List.finRange q_len) := by
    rw [sumOver_comm]
    refine sumOver_congr fun j _ => ?_
    refine Eq.trans ?_ ((sumOver_pull (List.finRange q_len) (List.finRange d) scale (dZ · j)
      (fun i t => Q[i][t]) fun t => δK[j][t]).trans (sumOver_congr fun i _ => ?_))
    · refine sumOver_congr fun t _ => ?_
      simp only [g, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver, Vec.getElem_smul,
        Vec.getElem_map, dZ, dS]
    · rw [Vec.dot, sumOver_congr fun t _ => CommSemiring.mul_comm δK[j][t] Q[i][t]]
  have hB : Matrix.inner g.dBias δB = sumOver (fun i => sumOver (fun j =>
      dS[i][j] * δB[i][j]) (List.finRange kv_len)) (List.finRange q_len) := rfl
  rw [hQ, hK, hV, hB, Matrix.inner, ← sumOver_add, ← sumOver_add, ← sumOver_add, ← sumOver_add]
  refine sumOver_congr fun i _ => ?_
  rw [row_vjp Q δQ K δK V δV dO dLse hlift i, ← sumOver_add, ← sumOver_add, ← sumOver_add,
    ← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  simp only [rawTangent, dZ]
  generalize sumOver _ (List.finRange d_v) = x
  generalize dS[i][j] = y
  grind

/-- **vjp-adjoint**: for all queries, keys, values and a bias, all rates at which they change, every
score transformation with a slope, so every mask, and every gradient `dO` by the output: the
backward pass gives the gradients whose inner product with the rates is that of `dO` with the rate
of attention's output, as dual numbers give it. -/
theorem vjp_adjoint (hlift : lifted.IsLift modify slope δB) :
    let g := vjp scale modify slope Q K V (fun x => x) dO Vec.zero
    Matrix.inner dO (jvp scale lifted Q δQ K δK V δV)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + Matrix.inner g.dBias δB := by
  intro g
  rw [← adjoint_meanTangent Q δQ K δK V δV dO Vec.zero hlift]
  have h : sumOver (fun i : Fin q_len => (Vec.zero : Vec R q_len)[i] * meanTangent
      ((List.finRange kv_len).map (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i)))
      (List.finRange q_len) = 0 := sumOver_eq_zero fun i _ => by
    rw [Fin.getElem_fin, Vec.getElem_zero, Semiring.zero_mul]
  rw [h, Semiring.add_zero]

/-- The log-sum-exp of scores that change changes at the mean of their rates. -/
theorem scoreTangent_logSumExp {L : Option (Dual R)} {row : List (Option (Dual R))}
    (h : IsLogSumExp (Dual R) L row) : scoreTangent L = meanTangent row := by
  rw [IsLogSumExp, weight_dual, denominator_dual] at h
  obtain ⟨h₁, h₂⟩ := Dual.mk.inj h
  have hm : meanTangent row = sumOver (fun s => weight (primal s) * scoreTangent s) row
      * (denominator (row.map primal))⁻¹ := by
    rw [meanTangent, ← sumOver_mul_right]
    exact sumOver_congr fun s _ => by rw [Field.div_eq_mul_inv]; grind
  rw [hm, ← h₂, ← h₁]
  cases L with
  | none =>
    simp only [primal, Option.map, weight, scoreTangent, Semiring.zero_mul]
  | some L =>
    have := exp_ne_zero (R := R) L.val
    simp only [primal, Option.map, weight, scoreTangent]
    grind

/-- **vjp-adjoint-lse**: where the log-sum-exp of each row is given out as well, `dLse` the gradient
by it and `L`, where that is not 0, a log-sum-exp over dual numbers, what it is and at which rate
they let it change, the same holds of both together: it adds to dS alone, and a row that sees no key
gets nothing from it. -/
theorem vjp_adjoint_lse (hlift : lifted.IsLift modify slope δB) {L : Fin q_len → Option (Dual R)}
    (hL : ∀ i, dLse[i] = 0 ∨ IsLogSumExp (Dual R) (L i) ((List.finRange kv_len).map
      (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i))) :
    let g := vjp scale modify slope Q K V (fun x => x) dO dLse
    Matrix.inner dO (jvp scale lifted Q δQ K δK V δV)
        + sumOver (fun i => dLse[i] * scoreTangent (L i)) (List.finRange q_len)
      = Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
        + Matrix.inner g.dBias δB := by
  intro g
  rw [← adjoint_meanTangent Q δQ K δK V δV dO dLse hlift]
  refine congrArg (_ + ·) (sumOver_congr fun i _ => ?_)
  rcases hL i with h | h
  · rw [h, Semiring.zero_mul, Semiring.zero_mul]
  · rw [scoreTangent_logSumExp h]

end Attention.Proof
