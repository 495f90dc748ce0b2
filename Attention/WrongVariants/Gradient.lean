module

public import Attention.Proof.Backward.Gradient
public import Attention.Spec.Masks

public section

/-! # Wrong variants of the gradient as the derivative

Over every ordered field with a natural exponential. With one query and one key the output is the
value times its factor, whatever the score, and the log-sum-exp is the score; with a sink beside
the key the output is a share of the value. -/

namespace Attention.WrongVariants

open Spec Proof Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- One number as a matrix. -/
@[expose] def entry (x : R) : Matrix R 1 1 := #v[#v[x]]

/-- A score as it is. -/
@[expose] def unchanged {S : Type u} : ScoreMod S 1 1 := (Mask.full : Mask 1 1).toScoreMod

/-! ## One key -/

/-- The arguments of a rule for the gradient by the score: the weight, the product of the gradient
by the output with the value times its factor, that with the output, that with the output without
dropout, and the gradient by the log-sum-exp. -/
abbrev ScoreRule (R : Type u) : Type u := R → R → R → R → R → R

/-- The loss where the query is at time t the number t, key and value are 1, the factor of the only
weight is `z`, and the log-sum-exp, t, counts `dLse`. -/
@[expose] def oneKeyLoss (z dLse : R) (_ : Unit) (t : R) : R :=
  Matrix.inner (entry 1)
      (attentionDropout (1 : R) unchanged (entry t) (entry 1) (entry 1) fun _ _ => z) + dLse * t

/-- The gradient by the query, which is at 0, that a rule gives. -/
@[expose] def byQuery (rule : ScoreRule R) (z dLse : R) : R :=
  let P : Matrix R 1 1 := probabilities (1 : R) unchanged (entry 0) (entry 1)
  rule P[0][0] z
    (Matrix.inner (entry 1)
      (attentionDropout (1 : R) unchanged (entry 0) (entry 1) (entry 1) fun _ _ => z))
    (Matrix.inner (entry 1) (attention (1 : R) unchanged (entry 0) (entry 1) (entry 1))) dLse

/-- The claim of `vjpDropout_isDerivative` there. -/
abbrev IsGradient (rule : ScoreRule R) : Prop :=
  ∀ z dLse : R, IsTangent (oneKeyLoss z dLse) fun x => ⟨oneKeyLoss z dLse x 0, byQuery rule z dLse⟩

/-- p · (z·dP − D + dLse), with D from the output with dropout. -/
@[expose] def rightRule : ScoreRule R := fun p dP D _ dLse => p * (dP - D + dLse)

omit [NaturalExp R] in
private theorem score_one [Exponential R R] (t : R) (i j : Fin 1) :
    score (1 : R) unchanged (entry t) (entry 1) i j = some (1 * (t * 1 + 0)) := by
  obtain rfl : i = 0 := Subsingleton.elim ..
  obtain rfl : j = 0 := Subsingleton.elim ..
  rfl

private theorem probability_one (t : R) :
    (probabilities (1 : R) unchanged (entry t) (entry 1) : Matrix R 1 1)[(0 : Fin 1)][(0 : Fin 1)]
      = 1 := by
  have h : (probabilities (1 : R) unchanged (entry t) (entry 1)
      : Matrix R 1 1)[(0 : Fin 1)][(0 : Fin 1)] = _ :=
    getElem_probabilities (R := R) 1 unchanged (entry t) (entry 1) 0 0
  rw [h, score_one, show List.finRange 1 = [0] from rfl, List.map_cons, List.map_nil, score_one,
    denominator, sumOver_cons, sumOver_nil, weight]
  generalize 1 * (t * 1 + 0) = s
  have := exp_ne_zero (R := R) s
  rw [Semiring.add_zero]
  exact (Field.div_eq_mul_inv ..).trans (Field.mul_inv_cancel this)

/-- The output is the factor. -/
private theorem output_one (z t : R) :
    Matrix.inner (entry (1 : R))
      (attentionDropout (1 : R) unchanged (entry t) (entry 1) (entry 1) fun _ _ => z) = z := by
  have h : Matrix.inner (entry (1 : R))
      (attentionDropout (1 : R) unchanged (entry t) (entry 1) (entry 1) fun _ _ => z)
      = (1 : R) * ((probabilities (1 : R) unchanged (entry t) (entry 1)
          : Matrix R 1 1)[(0 : Fin 1)][(0 : Fin 1)] * z * 1 + 0) + 0 + 0 := rfl
  rw [h, probability_one]
  grind

private theorem plainOutput_one (t : R) :
    Matrix.inner (entry (1 : R)) (attention (1 : R) unchanged (entry t) (entry 1) (entry 1))
      = 1 := by
  have h : Matrix.inner (entry (1 : R)) (attention (1 : R) unchanged (entry t) (entry 1) (entry 1))
      = (1 : R) * (attention (1 : R) unchanged (entry t) (entry 1) (entry (1 : R)))[(0 : Fin 1)][
        (0 : Fin 1)] + 0 + 0 := rfl
  have h' : (attention (1 : R) unchanged (entry t) (entry 1) (entry (1 : R)))[(0 : Fin 1)][
      (0 : Fin 1)] = _ :=
    attention_eq_probabilities (1 : R) unchanged (entry t) (entry 1) (entry 1) 0 0
  rw [h, h', show List.finRange 1 = [0] from rfl, sumOver_cons, sumOver_nil, probability_one]
  show (1 : R) * (1 * 1 + 0) + 0 + 0 = 1
  grind

/-- So the loss changes at the rate `dLse`. -/
private theorem loss_one (z dLse : R) :
    IsTangent (oneKeyLoss z dLse) fun _ => (⟨z, dLse⟩ : Dual R) := by
  refine ⟨1 + z * z + dLse * dLse, 1, OrderedRing.zero_lt_one, fun _ => ?_⟩
  have h := OrderedRing.zero_lt_one (R := R)
  have h₁ := mul_self_nonneg z
  have h₂ := mul_self_nonneg dLse
  have h₃ := mul_self_nonneg (z - 1)
  have h₄ := mul_self_nonneg (z + 1)
  have h₅ := mul_self_nonneg (dLse - 1)
  have h₆ := mul_self_nonneg (dLse + 1)
  have hB : 0 ≤ 1 + z * z + dLse * dLse := by grind
  refine ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩, fun t _ => ?_⟩
  have e : oneKeyLoss z dLse () t - z - t * dLse = 0 := by rw [oneKeyLoss, output_one]; grind
  rw [e]
  exact AtMost.zero (OrderedRing.mul_nonneg hB (mul_self_nonneg t))

/-- A rule that gives the derivative gives `dLse`. -/
private theorem IsGradient.rate {rule : ScoreRule R} (claim : IsGradient rule) (z dLse : R) :
    rule 1 z z 1 dLse = dLse := by
  have h := congrArg Dual.der ((claim z dLse).unique (loss_one z dLse) ())
  have e : byQuery rule z dLse = rule 1 z z 1 dLse := by
    rw [byQuery, output_one, plainOutput_one]
    exact congrArg (fun p => rule p z z 1 dLse) (probability_one 0)
  rw [← e]
  exact h

/-- Positive control: the rule of the Spec's backward pass. -/
theorem rightRule_isGradient : IsGradient (rightRule (R := R)) := fun z dLse => by
  have e : (fun x => (⟨oneKeyLoss z dLse x 0, byQuery rightRule z dLse⟩ : Dual R))
      = fun _ => ⟨z, dLse⟩ := funext fun x => by
    refine Dual.ext ?_ ?_
    · show oneKeyLoss z dLse x 0 = z
      rw [oneKeyLoss, output_one]
      grind
    · show byQuery rightRule z dLse = dLse
      rw [byQuery, output_one, plainOutput_one, rightRule]
      have := probability_one (R := R) 0
      grind
  rw [e]
  exact loss_one z dLse

/-- D is left out. -/
theorem withoutD_notGradient :
    ¬ IsGradient fun (p dP _ _ dLse : R) => p * (dP + dLse) := fun claim => by
  have := claim.rate 1 0
  have := OrderedRing.zero_lt_one (R := R)
  grind

/-- The gradient by the log-sum-exp is subtracted. -/
theorem lseSubtracted_notGradient :
    ¬ IsGradient fun (p dP D _ dLse : R) => p * (dP - D - dLse) := fun claim => by
  have := claim.rate 1 1
  have := OrderedRing.zero_lt_one (R := R)
  grind

/-- The gradient by the log-sum-exp is left out. -/
theorem lseLeftOut_notGradient :
    ¬ IsGradient fun (p dP D _ _ : R) => p * (dP - D) := fun claim => by
  have := claim.rate 1 1
  have := OrderedRing.zero_lt_one (R := R)
  grind

/-- D is taken from the output without dropout. -/
theorem deltaNotDropped_notGradient :
    ¬ IsGradient fun (p dP _ D dLse : R) => p * (dP - D + dLse) := fun claim => by
  have := claim.rate 2 0
  have := OrderedRing.zero_lt_one (R := R)
  grind

/-! ## The Spec's backward pass, with and without a sink -/

omit [NaturalExp R] in
/-- A number on a path, as a matrix. -/
private theorem entry_tangent {f : Unit → R → R} {a : Unit → Dual R} (h : IsTangent f a) :
    MatrixTangent (fun x t => entry (f x t)) fun x => entry (a x) := by
  intro i hi j hj
  obtain rfl : i = 0 := by omega
  obtain rfl : j = 0 := by omega
  exact h

omit [NaturalExp R] in
private theorem line_tangent : IsTangent (fun (_ : Unit) (t : R) => t) fun _ => ⟨0, 1⟩ := by
  have h := OrderedRing.zero_lt_one (R := R)
  refine ⟨1, 1, h, fun _ => ⟨.zero (Std.le_of_lt h), ⟨by grind, Std.le_refl _⟩, fun t _ => ?_⟩⟩
  have e : t - 0 - t * 1 = 0 := by grind
  rw [e]
  exact AtMost.zero (OrderedRing.mul_nonneg (Std.le_of_lt h) (mul_self_nonneg t))

omit [NaturalExp R] in
private theorem isLift_unchanged :
    ScoreMod.IsLift (R := R) unchanged unchanged ScoreSlope.one (zeroMatrix : Matrix R 1 1) :=
  isLift_mask _

omit [NaturalExp R] in
private theorem same_path {f g : Unit → R → R} {a b : Unit → Dual R} (h : IsTangent f a)
    (hf : ∀ x t, f x t = g x t) (ha : ∀ x, a x = b x) : IsTangent g b := by
  obtain rfl : f = g := funext fun x => funext (hf x)
  obtain rfl : a = b := funext ha
  exact h

omit [NaturalExp R] in
private theorem only_query (q a b c : R) : q * 1 + 0 + 0 + (a * 0 + 0 + 0) + (b * 0 + 0 + 0)
    + (c * 0 + 0 + 0) = q := by grind

omit [NaturalExp R] in
private theorem only_sink (q a b c s : R) : q * 0 + 0 + 0 + 0 + (a * 0 + 0 + 0 + 0)
    + (b * 0 + 0 + 0 + 0) + (c * 0 + 0 + 0 + 0) + (s * 1 + 0) = s := by grind

omit [NaturalExp R] in
private theorem share_ne_zero {p q a b : R} (ha : 0 < a) (hb : 0 < b)
    (hp : p = a / (a + (b + 0))) (hq : q = b / (a + (b + 0))) :
    p * (1 * 0 + 0 - (1 * (p * 0 + (q * 1 + 0)) + 0 - 0)) + 0 ≠ 0 := by
  have h : a + (b + 0) ≠ 0 := by grind
  generalize a + (b + 0) = W at *
  rw [Field.div_eq_mul_inv] at hp hq
  have hi : W * W⁻¹ = 1 := Field.mul_inv_cancel h
  intro h₀
  have h₁ : p * q = 0 := by grind
  have h₂ : p * q * (W * W) = a * b := by
    rw [hp, hq]
    grind
  have := OrderedRing.mul_pos ha hb
  rw [h₁] at h₂
  grind

/-- Positive control: the sum of `vjpDropout_isDerivative` there is `dLse`. -/
theorem vjpDropout_rate (z dLse : R) :
    let g : Gradients R 1 1 1 1 := vjpDropout (1 : R) unchanged ScoreSlope.one (entry 0) (entry 1)
      (entry 1) (fun _ _ => z) (fun x => x) (entry 1) #v[dLse]
    g.dQ[0][0] = dLse := by
  intro g
  have hline : IsTangent (fun (_ : Unit) (t : R) => t) fun _ => ⟨0, 1⟩ := line_tangent
  have h := vjpDropout_isDerivative (scale := (1 : R)) (mask_tangent (Mask.full : Mask 1 1))
    (fun _ => isLift_unchanged) (entry_tangent hline) (entry_tangent (.const 1))
    (entry_tangent (.const 1)) (entry 1) #v[dLse] (fun _ _ => z) (L := fun _ t _ => some t)
    fun _ t i => .inr <| by
      rw [show List.finRange 1 = [0] from rfl, List.map_cons, List.map_nil, ← unchanged, score_one,
        IsLogSumExp, denominator, sumOver_cons, sumOver_nil, Semiring.add_zero]
      have e : 1 * (t * 1 + 0) = t := by grind
      rw [e]
  have e : (fun x t => Matrix.inner (entry (1 : R))
        (attentionDropout (1 : R) unchanged (entry t) (entry 1) (entry 1) fun _ _ => z)
        + sumOver (fun i : Fin 1 => #v[dLse][i] * (some t).getD 0) (List.finRange 1))
      = oneKeyLoss z dLse := funext fun _ => funext fun t => by
    show _ + (dLse * t + 0) = _
    rw [Semiring.add_zero]
    rfl
  have h : IsTangent (fun (_ : Unit) t => Matrix.inner (entry (1 : R))
        (attentionDropout (1 : R) unchanged (entry t) (entry 1) (entry 1) fun _ _ => z)
        + sumOver (fun i : Fin 1 => #v[dLse][i] * (some t).getD 0) (List.finRange 1)) _ := h
  rw [e] at h
  exact (only_query ..).symm.trans (congrArg Dual.der (h.unique (loss_one z dLse) ()))

/-- The loss where query and key are such that their score is 0, the value is 1, and the sink is at
time t the number t. -/
@[expose] def sinkLoss (_ : Unit) (t : R) : R :=
  Matrix.inner (entry 1) (attentionSink (1 : R) unchanged t (entry 0) (entry 1) (entry 1))

/-- The gradient by the sink that the Spec's backward pass gives. -/
@[expose] def bySink (R : Type u) [OrderedField R] [NaturalExp R] : R :=
  (sinkVjp (num_kv_heads := 1) (group := 1) (1 : R) (fun _ => unchanged) (fun _ => ScoreSlope.one)
    #v[0] #v[entry 0] #v[entry 1] #v[entry 1] (fun x => x) #v[entry 1] #v[#v[0]]).dSinks[0]

/-- The claim of `sinkVjp_isDerivative` there, for a gradient by the sink. -/
abbrev IsSinkDerivative (g : R) : Prop := IsTangent sinkLoss fun x => ⟨sinkLoss x 0, g⟩

/-- Positive control: the Spec's. -/
theorem bySink_isDerivative : IsSinkDerivative (bySink R) := by
  have hQ : HeadsTangent (heads := 1) (fun (_ : Unit) (_ : R) => #v[entry 0])
      fun _ => #v[entry (Dual.const 0)] := fun h => by
    obtain rfl : h = 0 := Subsingleton.elim ..
    exact entry_tangent (.const 0)
  have hK : HeadsTangent (heads := 1) (fun (_ : Unit) (_ : R) => #v[entry 1])
      fun _ => #v[entry (Dual.const 1)] := fun h => by
    obtain rfl : h = 0 := Subsingleton.elim ..
    exact entry_tangent (.const 1)
  have h := sinkVjp_isDerivative (scale := (1 : R)) (num_kv_heads := 1) (group := 1)
    (modify := fun _ _ _ => unchanged) (modify' := fun _ _ => unchanged)
    (slope := fun _ _ => ScoreSlope.one) (δB := fun _ => #v[zeroMatrix])
    (fun _ => mask_tangent (Mask.full : Mask 1 1)) (fun _ h => by
      obtain rfl : h = (0 : Fin 1) := Subsingleton.elim (α := Fin 1) ..
      exact isLift_unchanged) hQ hK hK (sinks := fun _ t => #v[t]) (sinks' := fun _ => #v[⟨0, 1⟩])
    (fun j hj => by
      obtain rfl : j = 0 := by omega
      exact line_tangent) #v[entry 1] #v[#v[0]] (L := fun _ _ _ _ => none) fun _ _ h i => by
      obtain rfl : h = (0 : Fin 1) := Subsingleton.elim (α := Fin 1) ..
      obtain rfl : i = 0 := Subsingleton.elim ..
      exact .inl rfl
  refine same_path h (fun x t => ?_) fun x => ?_
  · show Matrix.inner (entry 1) (attentionSink (1 : R) unchanged t (entry 0) (entry 1) (entry 1))
      + (0 * 0 + 0) + 0 = sinkLoss x t
    rw [sinkLoss]
    grind
  · refine Dual.ext ?_ ?_
    · show Matrix.inner (entry 1) (attentionSink (1 : R) unchanged 0 (entry 0) (entry 1) (entry 1))
        + (0 * 0 + 0) + 0 = sinkLoss x 0
      rw [sinkLoss]
      grind
    · exact only_sink ..

/-- It is minus the weight of the sink times that of the key. -/
private theorem bySink_ne_zero : bySink R ≠ 0 := by
  let M : ScoreMod R 1 2 := unchanged.behindSink 0
  let A : Matrix R 2 1 := rowsBehindSink (entry 1)
  let P : Matrix R 1 2 := probabilities (1 : R) M (entry 0) A
  have hg : bySink R = (scoreGradients (1 : R) M (entry 0) A A (entry 1) #v[0])[(0 : Fin 1)][
      (0 : Fin 2)] + 0 := rfl
  have hd : (scoreGradients (1 : R) M (entry 0) A A (entry 1) #v[0])[(0 : Fin 1)][(0 : Fin 2)]
      = P[(0 : Fin 1)][(0 : Fin 2)] * (1 * 0 + 0
        - (1 * (attention (1 : R) M (entry 0) A A)[(0 : Fin 1)][(0 : Fin 1)] + 0 - 0)) :=
    getElem_scoreGradients (1 : R) M (entry 0) A A (entry 1) #v[0] 0 0
  have hO : (attention (1 : R) M (entry 0) A A)[(0 : Fin 1)][(0 : Fin 1)]
      = P[(0 : Fin 1)][(0 : Fin 2)] * 0 + (P[(0 : Fin 1)][(1 : Fin 2)] * 1 + 0) :=
    attention_eq_probabilities (1 : R) M (entry 0) A A 0 0
  have hP : ∀ j : Fin 2, P[(0 : Fin 1)][j] = weight (score (1 : R) M (entry 0) A 0 j)
      / (weight (some (0 : R)) + (weight (some (1 * (0 * 1 + 0) : R)) + 0)) :=
    getElem_probabilities (1 : R) M (entry 0) A 0
  rw [hg, hd, hO]
  exact share_ne_zero (exp_pos (0 : R)) (exp_pos (1 * (0 * 1 + 0) : R)) (hP 0) (hP 1)

/-- The other sign. -/
theorem sinkPositive_notDerivative : ¬ IsSinkDerivative (-bySink R) := fun claim => by
  have h : -bySink R = bySink R := congrArg Dual.der (claim.unique bySink_isDerivative ())
  have h₀ := bySink_ne_zero (R := R)
  grind

end Attention.WrongVariants
