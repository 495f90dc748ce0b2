module

public import Attention.Proof.AttentionDerivative

public section

/-! # The derivative of attention, with its error -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {d d_v q_len kv_len : Nat}

/-- At most so much does a score change in time 1, where `scale` is at most `c`, inputs at most `M`
and their rates at most `G`. -/
@[expose] def scoreReach (d : Nat) (c M G : R) : R :=
  c * ((d : R) * (G * M) + (d : R) * (M * G)) + G + c * ((d : R) * (G * G))

/-- The constant of the error that is of the second order. -/
@[expose] def derivativeBound (d : Nat) (c M G : R) : R :=
  16 * (scoreReach d c M G * scoreReach d c M G) * M + 2 * (c * ((d : R) * (G * G))) * M
    + 10 * (scoreReach d c M G * G)

section Scores

variable (scale : R) (B : Matrix (Option R) q_len kv_len) (δB : Matrix R q_len kv_len)
variable (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (t : R)

omit [NaturalExp R] in
private theorem dot_moved (i : Fin q_len) (k : Fin kv_len) :
    Vec.dot (Q.moved t δQ)[i] (K.moved t δK)[k] = Vec.dot Q[i] K[k]
      + t * (Vec.dot δQ[i] K[k] + Vec.dot Q[i] δK[k]) + t * t * Vec.dot δQ[i] δK[k] := by
  simp only [Vec.dot]
  rw [← sumOver_add, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add, ← sumOver_add]
  refine sumOver_congr fun x _ => ?_
  simp only [Matrix.moved, Fin.getElem_fin, Vec.getElem_ofFn]
  grind

omit [NaturalExp R] in
/-- A score with a bias, after queries, keys and the bias have moved. -/
theorem score_moved (i : Fin q_len) (k : Fin kv_len) :
    score scale (ScoreMod.bias (biasMoved B t δB)) (Q.moved t δQ) (K.moved t δK) i k
      = (score scale (ScoreMod.bias B) Q K i k).map (· +
          (t * (rawTangent scale Q δQ K δK i k + δB[i][k])
            + t * t * (scale * Vec.dot δQ[i] δK[k]))) := by
  have hB : (biasMoved B t δB)[i][k] = B[i][k].map (· + t * δB[i][k]) := by
    simp only [biasMoved, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [score, score, ScoreMod.bias, ScoreMod.bias, hB, Option.map_map, Option.map_map, dot_moved,
    rawTangent]
  congr 1
  funext b
  simp only [Function.comp_def]
  grind

end Scores

omit [NaturalExp R] in
private theorem bound_le {H X M G τ : R} (hτ : 0 ≤ τ) (hG : 0 ≤ G) (hε : 0 ≤ τ * H)
    (hreach : τ * H ≤ 1 / 2) :
    16 * (τ * H * (τ * H)) * M + (τ * τ * X + τ * τ * X) * M
        + (τ * H + τ * H + 16 * (τ * H * (τ * H))) * (τ * G)
      ≤ (16 * (H * H) * M + 2 * X * M + 10 * (H * G)) * (τ * τ) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left hreach hε
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (OrderedRing.mul_nonneg hτ hG)
  have e₁ : (16 * (H * H) * M + 2 * X * M + 10 * (H * G)) * (τ * τ)
      = 16 * (τ * H * (τ * H)) * M + (τ * τ * X + τ * τ * X) * M + 10 * (τ * H * (τ * G)) := by
    grind
  have e₂ : (τ * H + τ * H + 16 * (τ * H * (τ * H))) * (τ * G)
      = 2 * (τ * H * (τ * G)) + 16 * (τ * H * (τ * H) * (τ * G)) := by grind
  have e₃ : τ * H * (1 / 2) * (τ * G) = τ * H * (τ * G) / 2 := by grind
  rw [e₁, e₂]
  rw [e₃] at h₂
  refine OrderedAdd.add_le_add (Std.le_refl _) ?_
  generalize τ * H * (τ * H) * (τ * G) = x at h₂ ⊢
  generalize τ * H * (τ * G) = y at h₂ ⊢
  clear e₁ e₂ e₃ h₁
  grind

/-- **derivative-is-true**: what attention over dual numbers computes is the derivative of
attention. Under any mask and bias (a masked entry is `none`), where the scale is at most `c`,
queries, keys and values are at most `M` and the rates at which these and the bias change at most
`G`: after a time `t` so short that no score changes by more than 1/2, attention is what it was plus
`t` times the derivative, up to a constant times t². -/
theorem jvp_isDerivative {scale c M G : R} (hscale : AtMost c scale)
    (B : Matrix (Option R) q_len kv_len) {δB : Matrix R q_len kv_len}
    {Q δQ : Matrix R q_len d} {K δK : Matrix R kv_len d} {V δV : Matrix R kv_len d_v}
    (hQ : ∀ (i : Fin q_len) (x : Fin d), AtMost M Q[i][x])
    (hK : ∀ (k : Fin kv_len) (x : Fin d), AtMost M K[k][x])
    (hV : ∀ (k : Fin kv_len) (j : Fin d_v), AtMost M V[k][j])
    (hδQ : ∀ (i : Fin q_len) (x : Fin d), AtMost G δQ[i][x])
    (hδK : ∀ (k : Fin kv_len) (x : Fin d), AtMost G δK[k][x])
    (hδV : ∀ (k : Fin kv_len) (j : Fin d_v), AtMost G δV[k][j])
    (hδB : ∀ (i : Fin q_len) (k : Fin kv_len), AtMost G δB[i][k])
    (hM : 0 ≤ M) (hG : 0 ≤ G) {t τ : R} (ht : AtMost τ t) (hτ : τ ≤ 1)
    (hreach : τ * scoreReach d c M G ≤ 1 / 2) (i : Fin q_len) (j : Fin d_v) :
    AtMost (derivativeBound d c M G * (τ * τ))
      ((attention scale (ScoreMod.bias (biasMoved B t δB)) (Q.moved t δQ) (K.moved t δK)
          (V.moved t δV))[i][j]
        - (attention scale (ScoreMod.bias B) Q K V)[i][j]
        - t * (jvp scale (ScoreMod.bias (biasDual B δB)) Q δQ K δK V δV)[i][j]) := by
  let X := c * ((d : R) * (G * G))
  let H := scoreReach d c M G
  have hX : ∀ k : Fin kv_len, AtMost X (scale * Vec.dot δQ[i] δK[k]) := fun k =>
    hscale.mul (AtMost.dot (fun x => hδQ i x) fun x => hδK k x)
  have hσ : ∀ k : Fin kv_len, AtMost (c * ((d : R) * (G * M) + (d : R) * (M * G)) + G)
      (rawTangent scale Q δQ K δK i k + δB[i][k]) := fun k =>
    (hscale.mul ((AtMost.dot (fun x => hδQ i x) fun x => hK k x).add
      (AtMost.dot (fun x => hQ i x) fun x => hδK k x))).add (hδB i k)
  have hτ₀ := ht.nonneg
  have hdot : ∀ a b : R, 0 ≤ a → 0 ≤ b → 0 ≤ (d : R) * (a * b) := fun a b ha hb =>
    (AtMost.dot (x := (Vec.zero : Vec R d)) (y := Vec.zero)
      (fun x => by rw [Fin.getElem_fin, Vec.getElem_zero]; exact AtMost.zero ha)
      fun x => by rw [Fin.getElem_fin, Vec.getElem_zero]; exact AtMost.zero hb).nonneg
  have hX₀ : 0 ≤ X := OrderedRing.mul_nonneg hscale.nonneg (hdot G G hG hG)
  have hA₀ : 0 ≤ c * ((d : R) * (G * M) + (d : R) * (M * G)) + G := by
    have := OrderedRing.mul_nonneg hscale.nonneg
      (((AtMost.zero (hdot G M hG hM)).add (AtMost.zero (hdot M G hM hG))).nonneg)
    exact ((AtMost.zero this).add (AtMost.zero hG)).nonneg
  have hH₀ : 0 ≤ H := ((AtMost.zero hA₀).add (AtMost.zero hX₀)).nonneg
  have hε₀ : 0 ≤ τ * H := OrderedRing.mul_nonneg hτ₀ hH₀
  have hττ : 0 ≤ τ * τ * X := OrderedRing.mul_nonneg (mul_self_nonneg τ) hX₀
  have hττX : τ * τ * X ≤ τ * X := by
    have := OrderedRing.mul_le_mul_of_nonneg_right hτ (OrderedRing.mul_nonneg hτ₀ hX₀)
    rw [Semiring.one_mul, ← Semiring.mul_assoc] at this
    exact this
  have hh : ∀ k : Fin kv_len, AtMost (τ * H) (t * (rawTangent scale Q δQ K δK i k + δB[i][k])
      + t * t * (scale * Vec.dot δQ[i] δK[k])) := fun k => by
    refine ((ht.mul (hσ k)).add ((ht.mul ht).mul (hX k))).mono ?_
    have e : τ * H = τ * (c * ((d : R) * (G * M) + (d : R) * (M * G)) + G) + τ * X :=
      Semiring.left_distrib ..
    rw [e]
    exact OrderedAdd.add_le_add (Std.le_refl _) hττX
  have hT : ∀ k : Fin kv_len, AtMost (τ * τ * X) (t * (rawTangent scale Q δQ K δK i k + δB[i][k])
      + t * t * (scale * Vec.dot δQ[i] δK[k]) - t * (ScoreSlope.one i k (scale * Vec.dot Q[i] K[k])
        * rawTangent scale Q δQ K δK i k + δB[i][k])) := fun k => by
    have e : ∀ a b : R, t * a + b - t * a = b := fun a b => by grind
    rw [ScoreSlope.one, Semiring.one_mul, e]
    exact (ht.mul ht).mul (hX k)
  have h := attention_moved (isLift_bias B δB) δQ δK V δV (score_moved scale B δB Q δQ K δK t i)
    hreach hε₀ hh hττ hT hM hG ht j (fun k => hV k j) fun k => hδV k j
  refine h.mono ?_
  exact bound_le hτ₀ hG hε₀ hreach

end Attention.Proof
