module

public import Attention.Proof.Backward.Basic
public import Attention.Spec.BackwardHeads

public section

/-! # The backward pass of grouped-query attention is the adjoint of it over dual numbers -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {q_len kv_len d d_v num_kv_heads group : Nat}

/-- A sum over all query heads, of what depends on their head of keys and values too, may be taken
group by group. -/
theorem sumOver_groups (f : Fin (num_kv_heads * group) → Fin num_kv_heads → R) :
    sumOver (fun h => f h (kvHead h)) (List.finRange (num_kv_heads * group))
      = sumOver (fun c => sumOver (fun h => f h c) (groupHeads group c))
          (List.finRange num_kv_heads) := by
  have h₁ : ∀ c ∈ List.finRange num_kv_heads, sumOver (fun h => f h c) (groupHeads group c)
      = sumOver (fun h => if c = kvHead h then f h c else 0)
          (List.finRange (num_kv_heads * group)) := fun c _ => by
    rw [groupHeads, sumOver_filter]
    refine sumOver_congr fun h _ => ?_
    by_cases hc : c = kvHead h
    · rw [if_pos (by simp [hc]), if_pos hc]
    · rw [if_neg (by simp [Ne.symm hc]), if_neg hc]
  rw [sumOver_congr h₁, sumOver_comm]
  exact sumOver_congr fun h _ => (sumOver_ite_eq (fun c => f h c) (kvHead h)).symm

/-- The inner product with a sum of matrices is the sum of the inner products. -/
theorem inner_sumMatrices {α : Type} {m n : Nat} (X : α → Matrix R m n) (heads : List α)
    (A : Matrix R m n) :
    Matrix.inner (sumMatrices X heads) A = sumOver (fun h => Matrix.inner (X h) A) heads := by
  refine Eq.trans ?_ (sumOver_comm (fun h (i : Fin m) => Vec.dot (X h)[i] A[i]) heads _).symm
  refine sumOver_congr fun i _ => ?_
  refine Eq.trans ?_ (sumOver_comm (fun h (j : Fin n) => (X h)[i][j] * A[i][j]) heads _).symm
  refine sumOver_congr fun j _ => ?_
  rw [sumOver_mul_right]
  simp only [sumMatrices, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver]

variable [Exponential R R] {scale : R}
variable {modify : Fin (num_kv_heads * group) → ScoreMod R q_len kv_len}
variable {lifted : Fin (num_kv_heads * group) → ScoreMod (Dual R) q_len kv_len}
variable {slope : Fin (num_kv_heads * group) → ScoreSlope R R q_len kv_len}
variable (Q δQ : Vector (Matrix R q_len d) (num_kv_heads * group))
variable (K δK : Vector (Matrix R kv_len d) num_kv_heads)
variable (V δV : Vector (Matrix R kv_len d_v) num_kv_heads)
variable {δB : Vector (Matrix R q_len kv_len) (num_kv_heads * group)}

/-- The derivative of a head is that of its attention. -/
theorem getElem_groupedQueryJvp (h : Fin (num_kv_heads * group)) :
    (groupedQueryJvp scale lifted Q δQ K δK V δV)[h]
      = jvp scale (lifted h) Q[h] δQ[h] K[kvHead h] δK[kvHead h] V[kvHead h] δV[kvHead h] := by
  refine (Vec.getElem_ofFn _ h.isLt).trans (congrArg _ ((Vec.getElem_ofFn _ h.isLt).trans ?_))
  simp only [Fin.getElem_fin, Vec.getElem_ofFn]

/-- **gqa-backward**: for all heads and group sizes, the gradients of grouped-query attention, those
of a shared head of keys and values summed over the query heads of its group, have with the rates of
the inputs the inner product that the gradients by the outputs and the log-sum-exps have with the
rates that dual numbers give these. -/
theorem groupedQueryVjp_adjoint (hlift : ∀ h, (lifted h).IsLift (modify h) (slope h) δB[h])
    (dO : Vector (Matrix R q_len d_v) (num_kv_heads * group))
    (dLse : Vector (Vec R q_len) (num_kv_heads * group))
    {L : Fin (num_kv_heads * group) → Fin q_len → Option (Dual R)}
    (hL : ∀ h i, dLse[h][i] = 0 ∨ IsLogSumExp (Dual R) (L h i) ((List.finRange kv_len).map
      (score (Dual.const scale) (lifted h) (Q[h].dual δQ[h]) (K[kvHead h].dual δK[kvHead h]) i))) :
    let g := groupedQueryVjp scale modify slope Q K V (fun x => x) dO dLse
    let dOut := groupedQueryJvp scale lifted Q δQ K δK V δV
    let heads := List.finRange (num_kv_heads * group)
    let kvHeads := List.finRange num_kv_heads
    let lseRate : Fin (num_kv_heads * group) → R := fun h =>
      sumOver (fun i : Fin q_len => dLse[h][i] * scoreTangent (L h i)) (List.finRange q_len)
    sumOver (fun h : Fin (num_kv_heads * group) => (Matrix.inner dO[h] dOut[h] : R) + lseRate h)
        heads
      = sumOver (fun h : Fin (num_kv_heads * group) => (Matrix.inner g.dQ[h] δQ[h] : R)) heads
        + sumOver (fun c : Fin num_kv_heads => (Matrix.inner g.dK[c] δK[c] : R)) kvHeads
        + sumOver (fun c : Fin num_kv_heads => (Matrix.inner g.dV[c] δV[c] : R)) kvHeads
        + sumOver (fun h : Fin (num_kv_heads * group) => (Matrix.inner g.dBias[h] δB[h] : R))
            heads := by
  intro g dOut heads kvHeads lseRate
  let each := fun h : Fin (num_kv_heads * group) =>
    vjp scale (modify h) (slope h) Q[h] K[kvHead h] V[kvHead h] (fun x => x) dO[h] dLse[h]
  have hQ : ∀ h : Fin (num_kv_heads * group), g.dQ[h] = (each h).dQ := fun h => by
    simp only [g, groupedQueryVjp, groupGradients, Fin.getElem_fin, Vec.getElem_ofFn, each]
  have hB : ∀ h : Fin (num_kv_heads * group), g.dBias[h] = (each h).dBias := fun h => by
    simp only [g, groupedQueryVjp, groupGradients, Fin.getElem_fin, Vec.getElem_ofFn, each]
  have hK : ∀ c : Fin num_kv_heads,
      g.dK[c] = sumMatrices (fun h => (each h).dK) (groupHeads group c) := fun c => by
    simp only [g, groupedQueryVjp, groupGradients, Fin.getElem_fin, Vec.getElem_ofFn, each]
  have hV : ∀ c : Fin num_kv_heads,
      g.dV[c] = sumMatrices (fun h => (each h).dV) (groupHeads group c) := fun c => by
    simp only [g, groupedQueryVjp, groupGradients, Fin.getElem_fin, Vec.getElem_ofFn, each]
  have hhead : ∀ h ∈ heads, Matrix.inner dO[h] dOut[h] + lseRate h
      = Matrix.inner (each h).dQ δQ[h] + Matrix.inner (each h).dK δK[kvHead h]
        + Matrix.inner (each h).dV δV[kvHead h] + Matrix.inner (each h).dBias δB[h] :=
    fun h _ => by
      have e := adjoint_meanTangent (scale := scale) Q[h] δQ[h] K[kvHead h] δK[kvHead h]
        V[kvHead h] δV[kvHead h] dO[h] dLse[h] (hlift h)
      rw [getElem_groupedQueryJvp]
      refine Eq.trans (congrArg (_ + ·) (sumOver_congr fun i _ => ?_)) e
      rcases hL h i with h₀ | h₁
      · rw [h₀, Semiring.zero_mul, Semiring.zero_mul]
      · rw [scoreTangent_logSumExp h₁]
  rw [sumOver_congr hhead, sumOver_add, sumOver_add, sumOver_add,
    sumOver_groups fun h c => Matrix.inner (each h).dK δK[c],
    sumOver_groups fun h c => Matrix.inner (each h).dV δV[c]]
  simp only [hQ, hB, hK, hV, inner_sumMatrices]
  rfl

end Attention.Proof
