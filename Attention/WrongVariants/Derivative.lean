module

public import Attention.Proof.Derivative.Basic
public import Attention.Proof.Softmax.Stability
public import Attention.Proof.Masks.Visible

public section

/-! # Wrong variants of the derivative of attention

No natural exponential has been constructed, so the wrong variants are refuted for every one: with
one query and one key the output is the value, whatever the score. -/

namespace Attention.WrongVariants

open Spec Proof Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R]

omit [NaturalExp R] in
private theorem atMost_one : AtMost (1 : R) 1 := by
  have h := OrderedRing.zero_lt_one (R := R)
  exact ⟨by grind, Std.le_refl _⟩

omit [NaturalExp R] in
private theorem atMost_zero : AtMost (1 : R) 0 := .zero (Std.le_of_lt OrderedRing.zero_lt_one)

/-- One query or key with one number. -/
abbrev Single (R : Type u) : Type u := Matrix R 1 1

/-- One pair without a bias. -/
@[expose] def noBias : Matrix (Option R) 1 1 := #v[#v[some 0]]

/-- The output of one query over one key, the scale 1. -/
@[expose] def output (B : Matrix (Option R) 1 1) (Q K V : Single R) : R :=
  (attention 1 (ScoreMod.bias B) Q K V)[0][0]

/-- The claim of `jvp_isDerivative` where nothing is larger than 1, for some constant, made of any
derivative. -/
abbrev IsDerivative (derivative : ∀ (_Q _dQ _K _dK _V _dV : Single R), R) : Prop :=
  ∀ Q dQ K dK V dV : Single R,
    (∀ A ∈ [Q, dQ, K, dK, V, dV], AtMost (1 : R) A[0][0]) →
    ∃ C : R, ∀ t : R, 0 ≤ t → t * 4 ≤ 1 / 2 →
      AtMost (C * (t * t)) (output (biasMoved noBias t zeroMatrix) (Q.moved t dQ) (K.moved t dK)
        (V.moved t dV) - output noBias Q K V - t * derivative Q dQ K dK V dV)

/-- Positive control: attention run over dual numbers. -/
theorem jvp_isDerivative_single : IsDerivative (R := R) fun Q dQ K dK V dV =>
    (jvp 1 (ScoreMod.bias (biasDual noBias zeroMatrix)) Q dQ K dK V dV)[0][0] := by
  intro Q dQ K dK V dV h
  have hone : ∀ A ∈ [Q, dQ, K, dK, V, dV], ∀ i j : Fin 1, AtMost (1 : R) A[i][j] :=
      fun A hA i j => by
    obtain rfl : i = 0 := Subsingleton.elim ..
    obtain rfl : j = 0 := Subsingleton.elim ..
    exact h A hA
  refine ⟨derivativeBound 1 1 1 1 1 0, fun t h₀ ht => ?_⟩
  have hreach : t * scoreReach 1 1 1 (1 : R) 1 0 = t * 4 := by
    simp only [scoreReach, rawReach, Semiring.natCast_one]
    grind
  exact Proof.jvp_isDerivative (c := 1) (M := 1) (G := 1) atMost_one isLift_one
    (movesBySlope_one _) noBias
    (hone Q (by simp)) (hone K (by simp)) (hone V (by simp)) (hone dQ (by simp))
    (hone dK (by simp)) (hone dV (by simp))
    (fun i k => by
      simp only [zeroMatrix, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero]
      exact AtMost.zero (by grind))
    (by grind) (by grind) (t := t) (τ := t) ⟨by grind, Std.le_refl _⟩ (by grind)
    (Std.le_refl _) (hreach ▸ ht) 0 0

omit [NaturalExp R] in
private theorem score_single (b : R) (Q K : Single R) (j : Fin 1) :
    score 1 (ScoreMod.bias #v[#v[some b]]) Q K 0 j
      = some (1 * Vec.dot Q[(0 : Fin 1)] K[(0 : Fin 1)] + b) := by
  obtain rfl : j = 0 := Subsingleton.elim ..
  rfl

/-- The weight of a single key is 1. -/
private theorem probability_single (Q K : Single R) :
    (probabilities 1 (ScoreMod.bias noBias) Q K : Single R)[0][0] = 1 := by
  have h₁ : (probabilities 1 (ScoreMod.bias noBias) Q K : Single R)[0][0]
      = weight (score 1 (ScoreMod.bias noBias) Q K 0 0)
        / denominator [score 1 (ScoreMod.bias noBias) Q K 0 0] :=
    getElem_probabilities (R := R) 1 (ScoreMod.bias noBias) Q K 0 0
  rw [noBias, score_single, denominator, sumOver_cons, sumOver_nil, Semiring.add_zero,
    Semiring.add_zero, weight] at h₁
  have := exp_ne_zero (R := R) (1 * Vec.dot Q[(0 : Fin 1)] K[(0 : Fin 1)])
  rw [noBias, h₁]
  exact (Field.div_eq_mul_inv ..).trans (Field.mul_inv_cancel this)

/-- The output is the value. -/
private theorem output_single (b : R) (Q K V : Single R) :
    output #v[#v[some b]] Q K V = V[0][0] := by
  show (attention 1 (ScoreMod.bias #v[#v[some b]]) Q K V)[(0 : Fin 1)][0] = _
  rw [attention_row]
  refine attend_constant ⟨_, List.mem_map_of_mem (List.mem_finRange 0), ?_⟩ _ fun key hk _ => ?_
  · rw [score_single]
    exact Option.some_ne_none _
  · obtain ⟨j, _, rfl⟩ := List.mem_map.mp hk
    obtain rfl : j = 0 := Subsingleton.elim ..
    rfl

omit [NaturalExp R] in
/-- A number that is at most C t for all short t is not positive. -/
theorem not_pos_of_short {x C : R} (hC : 0 ≤ C)
    (h : ∀ t : R, 0 < t → t * 4 ≤ 1 / 2 → t * x ≤ C * (t * t)) : ¬ 0 < x := fun hx => by
  have hd : 0 < 8 * x + 2 * C := by grind
  have ht : x / (8 * x + 2 * C) * (8 * x + 2 * C) = x := by
    rw [CommSemiring.mul_comm]
    exact OrderedField.mul_div_cancel (by grind) x
  generalize x / (8 * x + 2 * C) = t at ht
  have hpos : 0 < t := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_nonneg (a := -t) (b := 8 * x + 2 * C) (by grind) (by grind)
    grind
  have h₁ : t * 4 ≤ 1 / 2 := by
    have := OrderedRing.mul_nonneg (Std.le_of_lt hpos) hC
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos (a := t * 4 - 1 / 2) (b := x) (by grind) hx
    grind
  have h₂ := h t hpos h₁
  have h₃ : x ≤ C * t := by
    refine (Field.IsOrdered.mul_le_mul_iff_of_pos_right hpos).mp ?_
    rw [CommSemiring.mul_comm x, Semiring.mul_assoc]
    exact h₂
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₃ (Std.le_of_lt hd)
  have h₅ : C * t * (8 * x + 2 * C) = C * x := by rw [Semiring.mul_assoc, ht]
  have h₆ := OrderedRing.mul_pos hx hx
  have h₇ := OrderedRing.mul_nonneg hC (Std.le_of_lt hx)
  rw [h₅] at h₄
  clear h h₂ h₃ ht
  grind

omit [NaturalExp R] in
private theorem eighth : (0 : R) ≤ 1 / 8 ∧ (1 / 8 : R) * 4 ≤ 1 / 2 := by
  have h := OrderedRing.zero_lt_one (R := R)
  exact ⟨by grind, by grind⟩

/-- Where queries, keys and values are 1, the first two change at the rate `a` and the values at the
rate `v`, the derivative is `v`. -/
theorem IsDerivative.single {derivative : ∀ (_Q _dQ _K _dK _V _dV : Single R), R}
    (claim : IsDerivative derivative) {a v : R} (ha : AtMost 1 a) (hv : AtMost 1 v) :
    derivative #v[#v[1]] #v[#v[a]] #v[#v[1]] #v[#v[a]] #v[#v[1]] #v[#v[v]] = v := by
  have h1 := atMost_one (R := R)
  obtain ⟨C, hC⟩ := claim #v[#v[1]] #v[#v[a]] #v[#v[1]] #v[#v[a]] #v[#v[1]] #v[#v[v]] (by
    intro A hA
    simp only [List.mem_cons, List.not_mem_nil, or_false] at hA
    rcases hA with rfl | rfl | rfl | rfl | rfl | rfl <;> assumption)
  generalize derivative _ _ _ _ _ _ = D at hC
  have hstep : ∀ t : R, 0 ≤ t → t * 4 ≤ 1 / 2 → AtMost (C * (t * t)) (t * (v - D)) :=
    fun t h₀ ht => by
      have h := hC t h₀ ht
      have e : output (biasMoved noBias t zeroMatrix) (Matrix.moved #v[#v[1]] t #v[#v[a]])
          (Matrix.moved #v[#v[1]] t #v[#v[a]]) (Matrix.moved #v[#v[1]] t #v[#v[v]])
          = 1 + t * v := output_single (0 + t * 0) ..
      have e' : output noBias #v[#v[1]] #v[#v[1]] #v[#v[1]] = (1 : R) := output_single 0 ..
      have e'' : 1 + t * v - 1 - t * D = t * (v - D) := by clear claim hC h e e'; grind
      rwa [e, e', e''] at h
  have hC₀ : 0 ≤ C := by
    have := (hstep (1 / 8) eighth.1 eighth.2).nonneg
    clear claim hC hstep
    grind
  have hn₁ := not_pos_of_short hC₀ (x := v - D) fun t h₀ ht => (hstep t (Std.le_of_lt h₀) ht).2
  have hn₂ := not_pos_of_short hC₀ (x := D - v) fun t h₀ ht => by
    have := (hstep t (Std.le_of_lt h₀) ht).1
    clear claim hC hstep hn₁
    grind
  clear claim hC hstep
  grind

/-- The weights taken for constants: the rate of a score changes its own weight only, p s' v. -/
theorem meanLeftOut_refuted : ¬ IsDerivative (R := R) fun Q dQ K dK V dV =>
    let p : R := (probabilities 1 (ScoreMod.bias noBias) Q K : Single R)[0][0]
    p * rawTangent 1 Q dQ K dK 0 0 * V[0][0] + p * dV[0][0] := fun claim => by
  have h := claim.single (a := 1) (v := 0) atMost_one atMost_zero
  rw [probability_single] at h
  have hr : rawTangent 1 (#v[#v[1]] : Single R) #v[#v[1]] #v[#v[1]] #v[#v[1]] 0 0 = 2 := by
    show (1 : R) * (1 * 1 + 0 + (1 * 1 + 0)) = 2
    grind
  rw [hr] at h
  have h : (1 : R) * 2 * 1 + 1 * 0 = 0 := h
  clear claim
  grind

/-- The rates of the values left out. -/
theorem valuesLeftOut_refuted : ¬ IsDerivative (R := R) fun _ _ _ _ _ _ => 0 := fun claim => by
  have h := claim.single (a := 0) (v := 1) atMost_zero atMost_one
  clear claim
  grind

end Attention.WrongVariants
