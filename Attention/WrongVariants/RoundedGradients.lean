module

public import Attention.Proof.Rounding.GradientMatrices
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of gradients in a function that rounds

Backward passes that leave D out, or multiply by the scale twice, and bounds that leave the error of
D, the format of weights or the error of the log-sum-exp out.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-! ## The claims -/

/-- The claim of `rounded_scoreGradient`, of any backward pass of a row and of any bound. -/
abbrev ScoreGradientsStay
    (computes : GradientPrecision R → GradientCounts → BackwardRow R 1 1 → (Fin 1 → R) →
      (Fin 1 → R) → Prop := fun p c r => r.Computed p c)
    (bound : GradientPrecision R → GradientCounts → R → List (GradientKey R) → GradientKey R → R :=
      scoreGradientError) : Prop :=
  ∀ p : GradientPrecision R, PreciseGradient p → ∀ c : GradientCounts,
    numeral c.products * p.accumulation < 1 → numeral c.delta * p.accumulation < 1 →
    numeral 3 * p.unit < 1 → ∀ r : BackwardRow R 1 1, r.Valid → ∀ S X : Fin 1 → R,
    computes p c r S X → ∀ j, AtMost (bound p c r.dL r.keys (r.key j)) (S j - r.scoreGradient j)

/-- Positive control: the functions and the bound of the theorem. -/
theorem scoreGradients_stay : ScoreGradientsStay (R := R) :=
  fun _ hp _ hc₁ hc₂ hu _ hr _ _ h j => Proof.rounded_scoreGradient hp hc₁ hc₂ hu hr h j

/-- The claim of `rounded_gradient` for one product, of any way to compute it. -/
abbrev GradientsStay
    (computes : GradientPrecision R → Nat → Nat → R → (Fin 1 → R) → (Fin 1 → R) → R → Prop :=
      ComputedGradient) : Prop :=
  ∀ p : GradientPrecision R, PreciseGradient p → ∀ roundings stores : Nat,
    numeral roundings * p.accumulation < 1 → numeral 3 * p.unit < 1 →
    ∀ (scale z : R) (x y e : Fin 1 → R) (t : Fin 1 → GradientTerm R),
    (∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j) →
    computes p roundings stores scale x y z →
    AtMost (gradientError p roundings stores scale ((List.finRange 1).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange 1))

/-- Positive control. -/
theorem gradients_stay : GradientsStay (R := R) :=
  fun _ hp _ _ hc hu _ _ _ _ _ _ ht h => Proof.rounded_gradient hp hc hu ht h

/-! ## One key -/

/-- Nothing is rounded but where weights are stored. -/
private def weightsOnly (u : R) : GradientPrecision R := ⟨0, 0, 0, 0, u, 0, 0, 0, 0⟩

private theorem weightsOnly_precise {u : R} (hu : 0 ≤ u) : PreciseGradient (weightsOnly u) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _, hu,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _⟩

/-- One key of weight 1 and value 1, with dO = 1: dP = D = 1, so dS is 0. -/
private def oneKey : BackwardRow R 1 1 :=
  ⟨fun _ => 1, fun _ => 0, fun _ => 1, fun _ => 1, fun _ => 0, fun _ => #v[1], #v[1], 0⟩

private theorem oneKey_valid : (oneKey : BackwardRow R 1 1).Valid := by
  have := OrderedRing.zero_lt_one (R := R)
  exact ⟨fun _ => Std.le_of_lt this, fun _ => Std.le_of_lt this, fun _ => Std.le_refl _⟩

private def counts : GradientCounts := ⟨1, 2, 0⟩

private theorem absolute_of_zero : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

private theorem oneKey_key (j : Fin 1) : (oneKey : BackwardRow R 1 1).key j
    = ⟨1, 0, 1, 1, 1, 1, 0⟩ := by
  have e₁ : Vec.dot (#v[1] : Vec R 1) #v[1] = 1 := by
    show (1 : R) * 1 + 0 = 1
    grind
  have e₂ : magnitude (#v[1] : Vec R 1) #v[1] = 1 := by
    show absolute (1 : R) * absolute 1 + 0 = 1
    rw [absolute_one]
    grind
  rw [BackwardRow.key, gradientKey]
  show (⟨1, 0, 1, 1 * Vec.dot (#v[1] : Vec R 1) #v[1], 1 * magnitude (#v[1] : Vec R 1) #v[1], 1, 0⟩
    : GradientKey R) = _
  rw [e₁, e₂, Semiring.one_mul]

private theorem oneKey_keys : (oneKey : BackwardRow R 1 1).keys = [⟨1, 0, 1, 1, 1, 1, 0⟩] := by
  show [(oneKey : BackwardRow R 1 1).key 0] = _
  rw [oneKey_key]

private theorem oneKey_inner (j : Fin 1) : innerGradient (oneKey : BackwardRow R 1 1).dL
    oneKey.keys (oneKey.key j) = 0 := by
  rw [oneKey_keys, oneKey_key]
  show (1 : R) - (1 * 1 + 0) + 0 = 0
  grind

private theorem oneKey_gradient (j : Fin 1) : (oneKey : BackwardRow R 1 1).scoreGradient j = 0 := by
  rw [BackwardRow.scoreGradient, oneKey_inner, Semiring.mul_zero]

/-- Its bound is the error of D. -/
private theorem oneKey_bound (p : GradientPrecision R) (h : p.unit = 0) (h₁ : p.accumulation = 0)
    (h₂ : p.exponential = 0) (h₃ : p.weights = 0) (h₄ : p.factors = 0) (h₅ : p.scores = 0)
    (h₆ : p.output = 0) (j : Fin 1) :
    scoreGradientError p counts (oneKey : BackwardRow R 1 1).dL oneKey.keys (oneKey.key j)
      = p.stored := by
  have e₁ : ∀ x : R, x / power (1 - 0) 0 = x := fun x => by
    show x / 1 = x
    grind
  have e₂ : meanError p counts (oneKey : BackwardRow R 1 1).keys = p.stored := by
    rw [oneKey_keys, meanError, h₁, h₂, h₄, h₅, h₆, gamma_zero]
    show 1 * 1 * ((1 + 0) * (1 + p.stored)
      * ((1 + 0) * (1 + 0) * (1 + 0) * (1 + 0) / power (1 - 0) 0) - 1) + 0 = p.stored
    rw [e₁]
    grind
  have e₃ : innerError p counts (oneKey : BackwardRow R 1 1).dL oneKey.keys (oneKey.key j)
      = p.stored := by
    rw [innerError, e₂, h, h₁, h₄, h₅, gamma_zero, gamma_zero]
    grind
  rw [scoreGradientError, e₃, oneKey_inner, h, h₃, gamma_zero, oneKey_key]
  show 1 * (((1 + 0) * (1 + 0) * (1 + 0) - 1) * (absolute 0 + p.stored) + p.stored) = p.stored
  grind

private theorem small (n : Nat) : numeral n * (0 : R) < 1 := by
  rw [Semiring.mul_zero]
  exact OrderedRing.zero_lt_one

/-! ## Backward passes -/

/-- dS = P (dP + dL), nothing rounded: D is left out. -/
@[expose] def gradientWithoutMean (_ : GradientPrecision R) (_ : GradientCounts)
    (r : BackwardRow R 1 1) (S _ : Fin 1 → R) : Prop :=
  ∀ j, S j = r.weight j * ((r.key j).product + r.dL)

theorem gradientWithoutMean_refuted :
    ¬ ScoreGradientsStay (R := R) gradientWithoutMean := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (weightsOnly 0) (weightsOnly_precise (Std.le_refl _)) counts (small _) (small _)
    (small _) oneKey oneKey_valid (fun _ => 1) (fun _ => 1) (fun j => by
      rw [oneKey_key]
      show (1 : R) = 1 * (1 + 0)
      grind) 0
  rw [oneKey_gradient, oneKey_bound _ rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : (1 : R) - 0 ≤ 0 := h.2
  grind

/-- scale · scale · Σ x y, nothing rounded. -/
@[expose] def gradientScaleTwice (_ : GradientPrecision R) (_ _ : Nat) (scale : R) (x y : Fin 1 → R)
    (z : R) : Prop :=
  z = scale * scale * sumOver (fun j => x j * y j) (List.finRange 1)

theorem gradientScaleTwice_refuted : ¬ GradientsStay (R := R) gradientScaleTwice := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (weightsOnly 0) (weightsOnly_precise (Std.le_refl _)) 0 0 (small _) (small _) 2 4
    (fun _ => 1) (fun _ => 1) (fun _ => 1) (fun _ => ⟨1, 0, 1⟩) (fun _ => by
      refine ⟨?_, ⟨?_, Std.le_refl _⟩, rfl⟩
      · show AtMost (0 : R) (1 - 1)
        exact ⟨by grind, by grind⟩
      · show (-1 : R) ≤ 1
        grind) (by
      show (4 : R) = 2 * 2 * (1 * 1 + 0)
      grind)
  have e : gradientError (weightsOnly (0 : R)) 0 0 2 ((List.finRange 1).map fun _ => ⟨1, 0, 1⟩)
      = 0 := by
    rw [gradientError, show (weightsOnly (0 : R)).accumulation = 0 from rfl,
      show (weightsOnly (0 : R)).unit = 0 from rfl, gamma_zero, gamma_zero]
    show absolute 2 * ((0 + ((1 + 0) * (1 + 0) * 1 - 1) * (1 + 0)) * absolute (1 : R) + 0) = 0
    grind
  rw [e] at h
  have h₁ : (4 : R) - 2 * (1 * 1 + 0) ≤ 0 := h.2
  grind

/-! ## Bounds -/

/-- D of the one key from a weight that is stored half as large again. -/
private theorem oneKey_computed :
    (oneKey : BackwardRow R 1 1).Computed (weightsOnly (1 / 2)) counts (fun _ => -(1 / 2))
      (fun _ => -(1 / 2)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have same : ∀ {u x : R}, 0 ≤ u → Rounded u x x := fun hu => rounded_refl hu _
  have product : ComputedProduct (weightsOnly (1 / 2)) counts (1 : R) #v[1] #v[1] 1 :=
    ⟨0, fun _ => 1, 1, 1, Nat.le_refl _, fun i => by
        obtain rfl := Fin.fin_one_eq_zero i
        show Rounded 0 ((1 : R) * 1) 1
        rw [Semiring.mul_one]
        exact same (Std.le_refl _), .one, by
        show AtMost (0 : R) (1 - 1)
        exact ⟨by grind, by grind⟩, by
        show Rounded 0 ((1 : R) * 1 * 1) 1
        rw [Semiring.mul_one, Semiring.mul_one]
        exact same (Std.le_refl _)⟩
  have weight : ∀ {u w : R}, Rounded u 1 w → StoredWeight u 1 0 w := fun h =>
    ⟨1, ⟨by grind, by grind⟩, h⟩
  refine ⟨3 / 2, .ofProducts (k := 0) (w := fun _ => 3 / 2) (x := fun _ => 1)
    (y := fun _ => 3 / 2) (fun _ => weight ⟨1 / 2, ⟨?_, Std.le_refl _⟩, ?_⟩) (fun _ => product)
    (fun _ => ?_) .one (Nat.le_refl _), fun j => ⟨0, 0, 1, -(1 / 2), 1, 1, -(1 / 2),
      Nat.zero_le _, product, ?_, weight (same (Std.le_refl _)), ?_, ?_, ?_, ?_⟩⟩
  · show -(1 / 2 : R) ≤ 1 / 2
    grind
  · grind
  · show Rounded (0 : R) (3 / 2 * 1) (3 / 2)
    rw [Semiring.mul_one]
    exact same (Std.le_refl _)
  · show RoundedSum (0 : R) 3 [1, -(3 / 2), 0] (-(1 / 2))
    have h : RoundedSum (0 : R) 3 ([1] ++ [-(3 / 2)]) (1 + -(3 / 2)) :=
      .add (k := 2) .one .one (same (Std.le_refl _)) (same (Std.le_refl _))
    rw [show (1 : R) + -(3 / 2) = -(1 / 2) by grind] at h
    exact .permute (.zero h) (List.perm_append_comm (l₁ := [0]) (l₂ := [1, -(3 / 2)]))
  · show (-(1 / 2) : R) = 1 * -(1 / 2)
    grind
  · show AtMost (0 : R) (1 - 1)
    exact ⟨by grind, by grind⟩
  · show (-(1 / 2) : R) = -(1 / 2) * 1
    grind
  · show Rounded (1 / 2 : R) (-(1 / 2)) (-(1 / 2))
    exact same (by grind)

/-- A bound that does not count the format of weights in D. -/
@[expose] def gradientStoredNotCounted (p : GradientPrecision R) (c : GradientCounts) (dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  scoreGradientError { p with stored := 0 } c dL keys k

theorem gradientStoredNotCounted_refuted :
    ¬ ScoreGradientsStay (R := R) (bound := gradientStoredNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (weightsOnly (1 / 2)) (weightsOnly_precise (by grind)) counts (small _) (small _)
    (small _) oneKey oneKey_valid _ _ oneKey_computed 0
  rw [oneKey_gradient, gradientStoredNotCounted, oneKey_bound _ rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : (-0 : R) ≤ -(1 / 2) - 0 := h.1
  grind

/-- A bound without the error of D. -/
@[expose] def meanNotCounted (p : GradientPrecision R) (c : GradientCounts) (dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  let terms := ((1 + gamma c.products p.accumulation) * (1 + p.factors) * (1 + p.scores) - 1)
    * k.size
  let ofInner := terms + gamma 3 p.unit * (innerSize dL keys k + terms)
  let ofWeight := (1 + k.error) * (1 + p.weights) * (1 + gamma 2 p.unit) - 1
  k.weight * (ofWeight * (absolute (innerGradient dL keys k) + ofInner) + ofInner)

theorem meanNotCounted_refuted :
    ¬ ScoreGradientsStay (R := R) (bound := meanNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (weightsOnly (1 / 2)) (weightsOnly_precise (by grind)) counts (small _) (small _)
    (small _) oneKey oneKey_valid _ _ oneKey_computed 0
  have e : meanNotCounted (weightsOnly (1 / 2)) counts (oneKey : BackwardRow R 1 1).dL oneKey.keys
      (oneKey.key 0) = 0 := by
    rw [meanNotCounted, oneKey_inner, show (weightsOnly (1 / 2 : R)).accumulation = 0 from rfl,
      show (weightsOnly (1 / 2 : R)).unit = 0 from rfl, gamma_zero, gamma_zero, gamma_zero,
      absolute_of_zero, oneKey_key]
    show (1 : R) * (((1 + 0) * (1 + 0) * (1 + 0) - 1) * (0 + (((1 + 0) * (1 + 0) * (1 + 0) - 1) * 1
      + 0 * (_ + ((1 + 0) * (1 + 0) * (1 + 0) - 1) * 1))) + (((1 + 0) * (1 + 0) * (1 + 0) - 1) * 1
      + 0 * (_ + ((1 + 0) * (1 + 0) * (1 + 0) - 1) * 1))) = 0
    grind
  rw [oneKey_gradient, e] at h
  have h₁ : (-0 : R) ≤ -(1 / 2) - 0 := h.1
  grind

/-- A bound of weights that does not count the error of the log-sum-exp. -/
theorem logSumExp_not_counted_refuted [Exponential R R] :
    ¬ ∀ (u ue s L ofScore ofLse s' L' P : R), 0 ≤ u → numeral 3 * u < 1 →
      AtMost ofScore (s' - s) → AtMost ofLse (L' - L) → RecomputedWeight u ue s' L' P →
      AtMost (recomputedError u ue s L ofScore 0 * exp (s - L)) (P - exp (s - L)) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim 0 0 0 1 0 1 0 0 1 (Std.le_refl _) (small _) ⟨by grind, by grind⟩
    ⟨by grind, by grind⟩ ⟨0, 0, roundedTimes_refl (Std.le_refl _) 3 0,
      roundedTimes_refl (Std.le_refl _) 3 0, by
      rw [show (0 : R) - 0 = 0 by grind, exp_zero]
      exact rounded_refl (Std.le_refl _) _⟩
  have e : recomputedError (0 : R) 0 0 1 0 0 = 0 := by
    rw [recomputedError, exponentError, gamma_zero,
      show (0 : R) + 0 + 0 * (absolute 0 + 0 + (absolute 1 + 0)) = 0 by grind, exp_zero]
    grind
  rw [e] at h
  have h₁ := h.2
  have h₂ := exp_lt (R := R) (0 - 1 : R) 0 (by grind)
  rw [exp_zero] at h₂
  clear claim h e
  grind

end Attention.WrongVariants
