module

public import Attention.Proof.Derivative.Attention

public section

/-! # The derivative of attention, with its error -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R] {d d_v q_len kv_len : Nat}

/-- By its slope, which is at most `L`, a score transformation moves when a score moves by x, at
most `r`, up to E · x²; what it masks stays masked. -/
structure MovesBySlope (modify : ScoreMod R q_len kv_len) (slope : ScoreSlope R R q_len kv_len)
    (r L E : R) : Prop where
  /-- A bound of the slope. -/
  slope_atMost : ∀ i j s, AtMost L (slope i j s)
  /-- A bound is not negative. -/
  slope_nonneg : 0 ≤ L
  /-- Nor is the constant of the error. -/
  error_nonneg : 0 ≤ E
  /-- The move. -/
  moved : ∀ i j s {x η : R}, AtMost η x → η ≤ r → ∃ e, AtMost (E * (η * η)) e
    ∧ modify i j (s + x) = (modify i j s).map (· + (x * slope i j s + e))

omit [NaturalExp R] in
/-- Scores that are left as they are have slope 1, without error. -/
theorem movesBySlope_one (r : R) : MovesBySlope (R := R) (q_len := q_len) (kv_len := kv_len)
    (fun _ _ s => some s) ScoreSlope.one r 1 0 where
  slope_atMost _ _ _ := ⟨by rw [ScoreSlope.one]; grind, Std.le_refl _⟩
  slope_nonneg := by grind
  error_nonneg := Std.le_refl _
  moved i j s x η _ _ := by
    refine ⟨0, by rw [Semiring.zero_mul]; exact AtMost.zero (Std.le_refl _), ?_⟩
    rw [ScoreSlope.one, Semiring.mul_one, Semiring.add_zero, Option.map_some]

omit [NaturalExp R] in
/-- And nothing else over dual numbers. -/
theorem isLift_one : ScoreMod.IsLift (R := R) (q_len := q_len) (kv_len := kv_len)
    (fun _ _ s => some s) (fun _ _ s => some s) ScoreSlope.one zeroMatrix := by
  intro i j s
  simp only [zeroMatrix, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero, ScoreSlope.one,
    Option.map_some, Semiring.one_mul, Semiring.add_zero]

/-- At most so much does a score change in time 1 before it is transformed, where `scale` is at most
`c`, inputs at most `M` and their rates at most `G`. -/
@[expose] def rawReach (d : Nat) (c M G : R) : R :=
  c * ((d : R) * (G * M) + (d : R) * (M * G)) + c * ((d : R) * (G * G))

/-- At most so much does a score change in time 1 after a transformation of slope at most `L` and
error at most E · x², with a bias that changes at a rate of at most `G`. -/
@[expose] def scoreReach (d : Nat) (c M G L E : R) : R :=
  L * rawReach d c M G + E * (rawReach d c M G * rawReach d c M G) + G

/-- The constant of the error that is of the second order. -/
@[expose] def derivativeBound (d : Nat) (c M G L E : R) : R :=
  16 * (scoreReach d c M G L E * scoreReach d c M G L E) * M
    + 2 * (L * (c * ((d : R) * (G * G))) + E * (rawReach d c M G * rawReach d c M G)) * M
    + 10 * (scoreReach d c M G L E * G)

section Scores

variable (scale : R) {modify : ScoreMod R q_len kv_len} {slope : ScoreSlope R R q_len kv_len}
variable (B : Matrix (Option R) q_len kv_len) (δB : Matrix R q_len kv_len)
variable (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d) (t : R)

/-- By how much a score moves before it is transformed. -/
@[expose] def rawMove (i : Fin q_len) (k : Fin kv_len) : R :=
  t * rawTangent scale Q δQ K δK i k + t * t * (scale * Vec.dot δQ[i] δK[k])

omit [NaturalExp R] in
private theorem dot_moved (i : Fin q_len) (k : Fin kv_len) :
    scale * Vec.dot (Q.moved t δQ)[i] (K.moved t δK)[k]
      = scale * Vec.dot Q[i] K[k] + rawMove scale Q δQ K δK t i k := by
  have h : Vec.dot (Q.moved t δQ)[i] (K.moved t δK)[k] = Vec.dot Q[i] K[k]
      + t * (Vec.dot δQ[i] K[k] + Vec.dot Q[i] δK[k]) + t * t * Vec.dot δQ[i] δK[k] := by
    simp only [Vec.dot]
    rw [← sumOver_add, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add, ← sumOver_add]
    refine sumOver_congr fun x _ => ?_
    simp only [Matrix.moved, Fin.getElem_fin, Vec.getElem_ofFn]
    grind
  rw [h, rawMove, rawTangent]
  grind

omit [NaturalExp R] in
/-- A transformed score with a bias, after queries, keys and the bias have moved; `e` is the error
of the slope. -/
theorem score_moved (i : Fin q_len) (k : Fin kv_len) {e : R}
    (he : modify i k (scale * Vec.dot Q[i] K[k] + rawMove scale Q δQ K δK t i k)
      = (modify i k (scale * Vec.dot Q[i] K[k])).map
        (· + (rawMove scale Q δQ K δK t i k * slope i k (scale * Vec.dot Q[i] K[k]) + e))) :
    score scale (modify.andThen (ScoreMod.bias (biasMoved B t δB))) (Q.moved t δQ) (K.moved t δK)
        i k
      = (score scale (modify.andThen (ScoreMod.bias B)) Q K i k).map (· +
          (rawMove scale Q δQ K δK t i k * slope i k (scale * Vec.dot Q[i] K[k]) + e
            + t * δB[i][k])) := by
  have hB : (biasMoved B t δB)[i][k] = B[i][k].map (· + t * δB[i][k]) := by
    simp only [biasMoved, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [score, score, ScoreMod.andThen, ScoreMod.andThen, dot_moved, he]
  cases modify i k (scale * Vec.dot Q[i] K[k]) with
  | none => rfl
  | some s =>
    simp only [Option.map_some, Option.bind_some, ScoreMod.bias, hB, Option.map_map]
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
attention. Under any mask and bias (a masked entry is `none`), after any score transformation that
moves by its slope, at most `L`, up to E · x², where the scale is at most `c`, queries, keys and
values are at most `M` and the rates at which these and the bias change at most `G`: after a time
`t` so short that no score changes by more than 1/2, nor before its transformation by more than `r`,
attention is what it was plus `t` times the derivative, up to a constant times t². -/
theorem jvp_isDerivative {scale c M G r L E : R} (hscale : AtMost c scale)
    {modify : ScoreMod R q_len kv_len} {lifted : ScoreMod (Dual R) q_len kv_len}
    {slope : ScoreSlope R R q_len kv_len} (hlift : lifted.IsLift modify slope zeroMatrix)
    (hmoves : MovesBySlope modify slope r L E)
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
    (hr : τ * rawReach d c M G ≤ r) (hreach : τ * scoreReach d c M G L E ≤ 1 / 2) (i : Fin q_len)
    (j : Fin d_v) :
    AtMost (derivativeBound d c M G L E * (τ * τ))
      ((attention scale (modify.andThen (ScoreMod.bias (biasMoved B t δB))) (Q.moved t δQ)
          (K.moved t δK) (V.moved t δV))[i][j]
        - (attention scale (modify.andThen (ScoreMod.bias B)) Q K V)[i][j]
        - t * (jvp scale (lifted.andThen (ScoreMod.bias (biasDual B δB))) Q δQ K δK V
            δV)[i][j]) := by
  let X := c * ((d : R) * (G * G))
  let A := c * ((d : R) * (G * M) + (d : R) * (M * G))
  let Y := rawReach d c M G
  let H := scoreReach d c M G L E
  have hX : ∀ k : Fin kv_len, AtMost X (scale * Vec.dot δQ[i] δK[k]) := fun k =>
    hscale.mul (AtMost.dot (fun x => hδQ i x) fun x => hδK k x)
  have hA : ∀ k : Fin kv_len, AtMost A (rawTangent scale Q δQ K δK i k) := fun k =>
    hscale.mul ((AtMost.dot (fun x => hδQ i x) fun x => hK k x).add
      (AtMost.dot (fun x => hQ i x) fun x => hδK k x))
  have hτ₀ := ht.nonneg
  have hdot : ∀ a b : R, 0 ≤ a → 0 ≤ b → 0 ≤ (d : R) * (a * b) := fun a b ha hb =>
    (AtMost.dot (x := (Vec.zero : Vec R d)) (y := Vec.zero)
      (fun x => by rw [Fin.getElem_fin, Vec.getElem_zero]; exact AtMost.zero ha)
      fun x => by rw [Fin.getElem_fin, Vec.getElem_zero]; exact AtMost.zero hb).nonneg
  have hX₀ : 0 ≤ X := OrderedRing.mul_nonneg hscale.nonneg (hdot G G hG hG)
  have hA₀ : 0 ≤ A := OrderedRing.mul_nonneg hscale.nonneg
    (((AtMost.zero (hdot G M hG hM)).add (AtMost.zero (hdot M G hM hG))).nonneg)
  have hY₀ : 0 ≤ Y := ((AtMost.zero hA₀).add (AtMost.zero hX₀)).nonneg
  have hL₀ := hmoves.slope_nonneg
  have hY₂ : 0 ≤ E * (Y * Y) := OrderedRing.mul_nonneg hmoves.error_nonneg (mul_self_nonneg Y)
  have hT₀ : 0 ≤ L * X + E * (Y * Y) :=
    ((AtMost.zero (OrderedRing.mul_nonneg hL₀ hX₀)).add (AtMost.zero hY₂)).nonneg
  have hH₀ : 0 ≤ H :=
    (((AtMost.zero (OrderedRing.mul_nonneg hL₀ hY₀)).add (AtMost.zero hY₂)).add
      (AtMost.zero hG)).nonneg
  have hε₀ : 0 ≤ τ * H := OrderedRing.mul_nonneg hτ₀ hH₀
  have hsquare : ∀ {x : R}, 0 ≤ x → τ * τ * x ≤ τ * x := fun {x} hx => by
    have := OrderedRing.mul_le_mul_of_nonneg_right hτ (OrderedRing.mul_nonneg hτ₀ hx)
    rw [Semiring.one_mul, ← Semiring.mul_assoc] at this
    exact this
  have hraw : ∀ k : Fin kv_len, AtMost (τ * Y) (rawMove scale Q δQ K δK t i k) := fun k => by
    refine ((ht.mul (hA k)).add ((ht.mul ht).mul (hX k))).mono ?_
    rw [show τ * Y = τ * A + τ * X from Semiring.left_distrib ..]
    exact OrderedAdd.add_le_add (Std.le_refl _) (hsquare hX₀)
  obtain ⟨e, he⟩ := Classical.axiomOfChoice fun k : Fin kv_len =>
    hmoves.moved i k (scale * Vec.dot Q[i] K[k]) (hraw k) hr
  have hσ := fun k : Fin kv_len => hmoves.slope_atMost i k (scale * Vec.dot Q[i] K[k])
  have hee : E * (τ * Y * (τ * Y)) = τ * τ * (E * (Y * Y)) := by grind
  have hh : ∀ k : Fin kv_len, AtMost (τ * H) (rawMove scale Q δQ K δK t i k
      * slope i k (scale * Vec.dot Q[i] K[k]) + e k + t * δB[i][k]) := fun k => by
    refine ((((hraw k).mul (hσ k)).add (he k).1).add (ht.mul (hδB i k))).mono ?_
    rw [show τ * H = τ * (L * Y) + τ * (E * (Y * Y)) + τ * G by
      rw [← Semiring.left_distrib, ← Semiring.left_distrib]; rfl, hee]
    refine OrderedAdd.add_le_add (OrderedAdd.add_le_add ?_ (hsquare hY₂)) (Std.le_refl _)
    rw [Semiring.mul_assoc, CommSemiring.mul_comm Y]
    exact Std.le_refl _
  have hT : ∀ k : Fin kv_len, AtMost (τ * τ * (L * X + E * (Y * Y)))
      (rawMove scale Q δQ K δK t i k * slope i k (scale * Vec.dot Q[i] K[k]) + e k + t * δB[i][k]
        - t * (slope i k (scale * Vec.dot Q[i] K[k]) * rawTangent scale Q δQ K δK i k
          + δB[i][k])) := fun k => by
    have h := ((((ht.mul ht).mul (hX k)).mul (hσ k)).add (he k).1)
    have h₁ : τ * τ * X * L + E * (τ * Y * (τ * Y)) = τ * τ * (L * X + E * (Y * Y)) := by grind
    rw [h₁] at h
    rw [rawMove]
    have h₂ : ∀ a x σ e b : R, (t * a + t * t * x) * σ + e + t * b - t * (σ * a + b)
        = t * t * x * σ + e := fun a x σ e b => by grind
    rw [h₂]
    exact h
  have hδ : (Vec.ofFn fun i => Vec.add (zeroMatrix : Matrix R q_len kv_len)[i] δB[i]) = δB := by
    refine Vector.ext fun i hi => Vector.ext fun k hk => ?_
    simp only [zeroMatrix, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_add, Vec.getElem_zero,
      AddCommMonoid.zero_add]
  have h := attention_moved (hδ ▸ IsLift.andThen_bias hlift B δB) δQ δK V δV
    (fun k => score_moved scale B δB Q δQ K δK t i k (he k).2) hreach hε₀ hh
    (OrderedRing.mul_nonneg (mul_self_nonneg τ) hT₀) hT hM hG ht j (fun k => hV k j)
    fun k => hδV k j
  refine h.mono ?_
  exact bound_le hτ₀ hG hε₀ hreach

end Attention.Proof
