module

public import Attention.Proof.Backward.Tiles

public section

/-! # Masked pairs have gradient 0, and the gradient by a bias, pair by pair -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat} (toValue : S → R) {scale : S}
variable {modify : ScoreMod S q_len kv_len} (slope : ScoreSlope S R q_len kv_len)
variable {Q : Matrix S q_len d} {K : Matrix S kv_len d} (V : Matrix R kv_len d_v)
variable (dO : Matrix R q_len d_v) (dLse : Vec R q_len)

/-- A masked pair has weight 0. -/
theorem probabilities_masked {i : Fin q_len} {j : Fin kv_len}
    (h : score scale modify Q K i j = none) :
    (probabilities scale modify Q K : Matrix R q_len kv_len)[i][j] = 0 := by
  rw [getElem_probabilities, h, weight, Field.div_eq_mul_inv, Semiring.zero_mul]

/-- The gradient by the score, so by a bias, of a masked pair is 0. -/
theorem scoreGradients_masked {i : Fin q_len} {j : Fin kv_len}
    (h : score scale modify Q K i j = none) :
    (scoreGradients scale modify Q K V dO dLse)[i][j] = 0 := by
  have hP := probabilities_masked (R := R) h
  rw [getElem_scoreGradients, hP, Semiring.zero_mul]

/-- **backward-masked-row**: a query that may attend to no key gets gradient 0, and so does its
bias, whatever the gradients by its output and its log-sum-exp; and these change no other gradient.
-/
theorem vjp_masked_row {i : Fin q_len} (h : ∀ j, score scale modify Q K i j = none)
    {dO' : Matrix R q_len d_v} {dLse' : Vec R q_len}
    (hO : ∀ i' : Fin q_len, i' ≠ i → dO'[i'] = dO[i'])
    (hLse : ∀ i' : Fin q_len, i' ≠ i → dLse'[i'] = dLse[i']) :
    let g := vjp scale modify slope Q K V toValue dO dLse
    g.dQ[i] = Vec.zero ∧ g.dBias[i] = Vec.zero
      ∧ vjp scale modify slope Q K V toValue dO' dLse' = g := by
  intro g
  have hS : ∀ (dO : Matrix R q_len d_v) (dLse : Vec R q_len) (j : Fin kv_len),
      (scoreGradients scale modify Q K V dO dLse)[i][j] = 0 := fun dO dLse j =>
    scoreGradients_masked V dO dLse (h j)
  have hB : g.dBias[i] = Vec.zero := Vector.ext fun j hj => by
    rw [Vec.getElem_zero]
    exact hS dO dLse ⟨j, hj⟩
  have hdS : scoreGradients scale modify Q K V dO' dLse'
      = scoreGradients scale modify Q K V dO dLse := by
    refine Vector.ext fun i' hi' => Vector.ext fun j hj => ?_
    by_cases hi : (⟨i', hi'⟩ : Fin q_len) = i
    · subst hi
      exact (hS dO' dLse' ⟨j, hj⟩).trans (hS dO dLse ⟨j, hj⟩).symm
    · have h₁ := getElem_scoreGradients (R := R) scale modify Q K V dO' dLse' ⟨i', hi'⟩ ⟨j, hj⟩
      have h₂ := getElem_scoreGradients (R := R) scale modify Q K V dO dLse ⟨i', hi'⟩ ⟨j, hj⟩
      rw [hO _ hi, hLse _ hi] at h₁
      exact h₁.trans h₂.symm
  have hV : ∀ j : Fin kv_len, Vec.sumOver (fun i' : Fin q_len => Vec.smul
        (probabilities scale modify Q K : Matrix R q_len kv_len)[i'][j] dO'[i'])
          (List.finRange q_len)
      = Vec.sumOver (fun i' : Fin q_len => Vec.smul
        (probabilities scale modify Q K : Matrix R q_len kv_len)[i'][j] dO[i'])
          (List.finRange q_len) := fun j => by
    refine Vector.ext fun c hc => ?_
    rw [Vec.getElem_sumOver, Vec.getElem_sumOver]
    refine sumOver_congr fun i' _ => ?_
    by_cases hi : i' = i
    · subst hi
      have hP := probabilities_masked (R := R) (h j)
      rw [hP, zero_smul, zero_smul]
    · rw [hO _ hi]
  refine ⟨Vector.ext fun x hx => ?_, hB, ?_⟩
  · have hz : ∀ j : Fin kv_len, (scoreGradients scale modify Q K V dO dLse)[i.val][j.val] = 0 :=
      hS dO dLse
    simp only [g, vjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_smul, Vec.getElem_sumOver, hz,
      Semiring.zero_mul]
    rw [sumOver_eq_zero fun _ _ => rfl, Semiring.mul_zero, Vec.getElem_zero]
  · simp only [g, vjp, hdS, hV]

/-- **bias-gradient**: what a tile loop has for each pair, P computed again from the log-sum-exp, is
the gradient by the bias. -/
theorem biasGradient_again {L : Vector (Option S) q_len} {i : Fin q_len}
    (hL : IsLogSumExp R L[i] ((List.finRange kv_len).map (score scale modify Q K i)))
    (j : Fin kv_len) :
    scoreGradient (probabilityAgain scale modify Q K L i j) dO[i] V[j]
        (rowDelta (attention scale modify Q K V) dO dLse)[i]
      = (vjp scale modify slope Q K V toValue dO dLse).dBias[i][j] := by
  rw [probabilityAgain_eq scale modify Q K hL]
  simp only [vjp, scoreGradients, Fin.getElem_fin, Vec.getElem_ofFn]

end Attention.Proof
