module

public import Attention.Proof.Backward.Row
public import Attention.Proof.Derivative.Slopes
public import Attention.Proof.Derivative.Softmax

public section

/-! # What attention over dual numbers computes is the derivative of attention -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R] {d d_v q_len kv_len : Nat}

section Moved

variable {scale : R} {modify modify' : ScoreMod R q_len kv_len}
variable {Q Q' : Matrix R q_len d} {K K' : Matrix R kv_len d} {i : Fin q_len} {h : Fin kv_len → R}

omit [NaturalExp R] in
private theorem weight_moved [Exponential R R] (s : Option R) (x : R) :
    (weight (s.map (· + x)) : R) = weight s * exp x := by
  cases s with
  | none => rw [Option.map_none, weight, Semiring.zero_mul]
  | some s => rw [Option.map_some, weight, weight, exp_add]

omit [NaturalExp R] in
private theorem div_mul_div (w W e Z : R) : w * e / (W * Z) = w / W * (e / Z) := by
  rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Field.div_eq_mul_inv, Field.inv_mul]
  grind

/-- The weights of a row whose scores have moved by h: p exp h / Σ p exp h. -/
theorem probabilities_moved
    (hscore : ∀ k, score scale modify' Q' K' i k = (score scale modify Q K i k).map (· + h k))
    (k : Fin kv_len) :
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    let P' : Matrix R q_len kv_len := probabilities scale modify' Q' K'
    P'[i][k] = P[i][k] * (exp (h k) / sumOver (fun k => P[i][k] * exp (h k))
      (List.finRange kv_len)) := by
  intro P P'
  let W : R := denominator ((List.finRange kv_len).map (score scale modify Q K i))
  have hP : ∀ k : Fin kv_len, P[i][k] = weight (score scale modify Q K i k) / W :=
    getElem_probabilities scale modify Q K i
  have hP' : P'[i][k] = weight (score scale modify' Q' K' i k)
      / denominator (R := R) ((List.finRange kv_len).map (score scale modify' Q' K' i)) :=
    getElem_probabilities scale modify' Q' K' i k
  have hW : denominator (R := R) ((List.finRange kv_len).map (score scale modify' Q' K' i))
      = sumOver (fun k => (weight (score scale modify Q K i k) : R) * exp (h k))
          (List.finRange kv_len) := by
    rw [denominator, sumOver_map]
    exact sumOver_congr fun k _ => by rw [hscore, weight_moved]
  by_cases h₀ : W = 0
  · have hw : ∀ k, (weight (score scale modify Q K i k) : R) = 0 := fun k => by
      rw [denominator_eq_zero.mp h₀ _ (List.mem_map_of_mem (List.mem_finRange k)), weight]
    rw [hP', hP, hscore, weight_moved, hw, Semiring.zero_mul, Field.div_eq_mul_inv,
      Field.div_eq_mul_inv, Semiring.zero_mul, Semiring.zero_mul, Semiring.zero_mul]
  · have hZ : sumOver (fun k => (weight (score scale modify Q K i k) : R) * exp (h k))
          (List.finRange kv_len)
        = W * sumOver (fun k => P[i][k] * exp (h k)) (List.finRange kv_len) := by
      rw [← sumOver_mul_left]
      refine sumOver_congr fun k _ => ?_
      rw [hP, ← Semiring.mul_assoc, OrderedField.mul_div_cancel h₀]
    rw [hP', hW, hZ, hscore, weight_moved, hP k, div_mul_div]

/-- The weights of a row are not negative, and sum to 1 or are all 0. -/
theorem probabilities_sum (i : Fin q_len) :
    let P : Matrix R q_len kv_len := probabilities scale modify Q K
    (∀ k : Fin kv_len, 0 ≤ P[i][k])
      ∧ (sumOver (fun k : Fin kv_len => P[i][k]) (List.finRange kv_len) = 1
        ∨ ∀ k : Fin kv_len, P[i][k] = 0) := by
  intro P
  let W : R := denominator ((List.finRange kv_len).map (score scale modify Q K i))
  have hP : ∀ k : Fin kv_len, P[i][k] = weight (score scale modify Q K i k) / W :=
    getElem_probabilities scale modify Q K i
  have hW : W = sumOver (fun k => (weight (score scale modify Q K i k) : R))
      (List.finRange kv_len) := sumOver_map ..
  have hW₀ : 0 ≤ W := by rw [hW]; exact sumOver_nonneg fun k _ => weight_nonneg _
  by_cases h₀ : W = 0
  · have hz : ∀ k : Fin kv_len, P[i][k] = 0 := fun k => by
      rw [hP, h₀, Field.div_eq_mul_inv, Field.inv_zero, Semiring.mul_zero]
    exact ⟨fun k => by rw [hz k]; exact Std.le_refl _, .inr hz⟩
  · refine ⟨fun k => ?_, .inl ?_⟩
    · rw [hP]
      exact OrderedField.div_nonneg (weight_nonneg _) (by grind)
    · simp only [hP, Field.div_eq_mul_inv]
      rw [sumOver_mul_right, ← hW]
      exact Field.mul_inv_cancel h₀

end Moved

/-- Attention whose scores have moved by h, at most ε and up to `T` by t times their rates, and
whose values have moved at their rates, differs from attention plus t times its derivative by what
is of the second order. -/
theorem attention_moved {scale : R} {modify modify' : ScoreMod R q_len kv_len}
    {lifted : ScoreMod (Dual R) q_len kv_len} {slope : ScoreSlope R R q_len kv_len}
    {δB : Matrix R q_len kv_len} (hlift : lifted.IsLift modify slope δB)
    {Q Q' : Matrix R q_len d} (δQ : Matrix R q_len d) {K K' : Matrix R kv_len d}
    (δK : Matrix R kv_len d) (V δV : Matrix R kv_len d_v) {t τ ε T B G : R} {i : Fin q_len}
    {h : Fin kv_len → R}
    (hscore : ∀ k, score scale modify' Q' K' i k = (score scale modify Q K i k).map (· + h k))
    (hε : ε ≤ 1 / 2) (h₀ : 0 ≤ ε) (hh : ∀ k, AtMost ε (h k)) (hT : 0 ≤ T)
    (hσ : ∀ k, AtMost T (h k - t * (slope i k (scale * Vec.dot Q[i] K[k])
      * rawTangent scale Q δQ K δK i k + δB[i][k])))
    (hB : 0 ≤ B) (hG : 0 ≤ G) (ht : AtMost τ t) (c : Fin d_v)
    (hv : ∀ k : Fin kv_len, AtMost B V[k][c]) (hγ : ∀ k : Fin kv_len, AtMost G δV[k][c]) :
    AtMost (16 * (ε * ε) * B + (T + T) * B + (ε + ε + 16 * (ε * ε)) * (τ * G))
      ((attention scale modify' Q' K' (V.moved t δV))[i][c]
        - (attention scale modify Q K V)[i][c] - t * (jvp scale lifted Q δQ K δK V δV)[i][c]) := by
  let P : Matrix R q_len kv_len := probabilities scale modify Q K
  let σ := fun k => slope i k (scale * Vec.dot Q[i] K[k]) * rawTangent scale Q δQ K δK i k
    + δB[i][k]
  have hP' := probabilities_moved (i := i) hscore
  obtain ⟨hp, hsum⟩ := probabilities_sum (scale := scale) (modify := modify) (Q := Q) (K := K) i
  have hV : ∀ k : Fin kv_len, (V.moved t δV)[k][c] = V[k][c] + t * δV[k][c] := fun k => by
    simp only [Matrix.moved, Fin.getElem_fin, Vec.getElem_ofFn]
  have hs : ∀ k, P[i][k]
        * scoreTangent (score (Dual.const scale) lifted (Q.dual δQ) (K.dual δK) i k)
      = P[i][k] * σ k := fun k => by
    cases hm : score scale modify Q K i k with
    | some s =>
      rw [score_dual hlift, hm]
      rfl
    | none =>
      have hP : P[i][k] = 0 := by
        rw [getElem_probabilities, hm, weight, Field.div_eq_mul_inv, Semiring.zero_mul]
      rw [hP, Semiring.zero_mul, Semiring.zero_mul]
  have hμ := (meanTangent_eq (scale := scale) Q δQ K δK hlift i).trans
    (sumOver_congr fun k _ => hs k)
  have hj : (jvp scale lifted Q δQ K δK V δV)[i][c] = sumOver (fun k =>
      P[i][k] * (σ k - sumOver (fun k => P[i][k] * σ k) (List.finRange kv_len)) * V[k][c]
        + P[i][k] * δV[k][c]) (List.finRange kv_len) := by
    refine (getElem_jvp hlift Q δQ K δK V δV i c).trans (sumOver_congr fun k _ => ?_)
    rw [hμ, Ring.sub_eq_add_neg, Semiring.left_distrib, hs, ← Semiring.left_distrib,
      ← Ring.sub_eq_add_neg]
  have hO : (attention scale modify Q K V)[i][c]
      = sumOver (fun k => P[i][k] * V[k][c]) (List.finRange kv_len) :=
    attention_eq_probabilities scale modify Q K V i c
  have hO' : (attention scale modify' Q' K' (V.moved t δV))[i][c] = sumOver (fun k =>
      P[i][k] * (exp (h k) / sumOver (fun k => P[i][k] * exp (h k)) (List.finRange kv_len))
        * (V[k][c] + t * δV[k][c])) (List.finRange kv_len) := by
    refine (attention_eq_probabilities scale modify' Q' K' _ i c).trans
      (sumOver_congr fun k _ => ?_)
    rw [hP' k, hV]
  rw [hO, hO', hj]
  rcases hsum with hsum | hzero
  · exact moved_mean (fun k _ => hp k) hsum hε (fun k _ => hh k) h₀ (fun k _ => hσ k) hT
      (fun k _ => hv k) hB (fun k _ => hγ k) hG ht
  · have hz : ∀ k : Fin kv_len, P[i][k] = 0 := hzero
    have e := OrderedRing.mul_nonneg (a := (16 : R)) (by grind) (mul_self_nonneg ε)
    have hT := AtMost.zero hT
    have hB := AtMost.zero hB
    have h₀ := AtMost.zero h₀
    have hc := ((((AtMost.zero e).mul hB).add ((hT.add hT).mul hB)).add
      (((h₀.add h₀).add (AtMost.zero e)).mul (ht.mul (AtMost.zero hG)))).nonneg
    have e₁ : ∀ f : Fin kv_len → R,
        sumOver (fun k => P[i][k] * f k) (List.finRange kv_len) = 0 := fun f =>
      sumOver_eq_zero fun k _ => by rw [hz k, Semiring.zero_mul]
    have e₂ := e₁ fun k => V[k][c]
    rw [e₂, sumOver_eq_zero fun k _ => by rw [hz k, Semiring.zero_mul, Semiring.zero_mul],
      sumOver_eq_zero (f := fun k => P[i][k] * (σ k - sumOver (fun k => P[i][k] * σ k)
        (List.finRange kv_len)) * V[k][c] + P[i][k] * δV[k][c]) fun k _ => by
          simp only [hz k, Semiring.zero_mul, Semiring.add_zero],
      Semiring.mul_zero, AddCommGroup.sub_self, AddCommGroup.sub_self]
    exact AtMost.zero hc

end Attention.Proof
