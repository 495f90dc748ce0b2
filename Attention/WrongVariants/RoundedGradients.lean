module

public import Attention.Proof.Rounding.GradientMatrices
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of gradients in a function that rounds

Backward passes that leave D out, or multiply by the scale twice, and bounds that leave the error of
D, the format of weights, the error of the log-sum-exp or what underflows out.
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
    (bound : GradientPrecision R → GradientCounts → R → R → List (GradientKey R) →
      GradientKey R → R := scoreGradientError) : Prop :=
  ∀ p : GradientPrecision R, PreciseGradient p → ∀ c : GradientCounts,
    numeral c.products * p.accumulation < 1 → numeral c.delta * p.accumulation < 1 →
    numeral 3 * p.unit < 1 → ∀ r : BackwardRow R 1 1, r.Valid → ∀ S X : Fin 1 → R,
    computes p c r S X → ∀ j,
    AtMost (bound p c r.reach r.dL r.keys (r.key j)) (S j - r.scoreGradient j)

/-- Positive control: the functions and the bound of the theorem. -/
theorem scoreGradients_stay : ScoreGradientsStay (R := R) :=
  fun _ hp _ hc₁ hc₂ hu _ hr _ _ h j => Proof.rounded_scoreGradient hp hc₁ hc₂ hu hr h j

/-- The claim of `rounded_gradient` for one product, of any way to compute it. -/
abbrev GradientsStay
    (computes : GradientPrecision R → Nat → Nat → R → R → (Fin 1 → R) → (Fin 1 → R) → R → Prop :=
      ComputedGradient)
    (bound : GradientPrecision R → Nat → Nat → R → R → List (GradientTerm R) → R :=
      gradientError) : Prop :=
  ∀ p : GradientPrecision R, PreciseGradient p → ∀ roundings stores : Nat,
    numeral roundings * p.accumulation < 1 → numeral 3 * p.unit < 1 →
    ∀ (scale reach z : R) (x y e : Fin 1 → R) (t : Fin 1 → GradientTerm R), 1 ≤ reach →
    (∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j) →
    computes p roundings stores scale reach x y z →
    AtMost (bound p roundings stores scale reach ((List.finRange 1).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange 1))

/-- Positive control. -/
theorem gradients_stay : GradientsStay (R := R) :=
  fun _ hp _ _ hc hu _ _ _ _ _ _ _ hr ht h => Proof.rounded_gradient hp hc hu hr ht h

/-! ## One key -/

/-- Nothing is rounded but where weights are stored. -/
private def weightsOnly (u : R) : GradientPrecision R :=
  ⟨0, 0, 0, 0, u, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1⟩

private theorem weightsOnly_precise {u : R} (hu : 0 ≤ u) : PreciseGradient (weightsOnly u) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _, hu,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _⟩

/-- One key of weight 1 and value 1, with dO = 1: dP = D = 1, so dS is dL. -/
private def oneKey (dL : R) : BackwardRow R 1 1 :=
  ⟨fun _ => 1, fun _ => 0, fun _ => 1, fun _ => 1, fun _ => 0, fun _ => #v[1], #v[1], dL⟩

private theorem oneKey_valid (dL : R) : (oneKey dL).Valid := by
  have := OrderedRing.zero_lt_one (R := R)
  exact ⟨fun _ => Std.le_of_lt this, fun _ => Std.le_of_lt this, fun _ => Std.le_refl _⟩

private def counts : GradientCounts := ⟨1, 2, 0⟩

private theorem absolute_of_zero : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

private theorem oneKey_key (dL : R) (j : Fin 1) : (oneKey dL).key j = ⟨1, 0, 1, 1, 1, 1, 0⟩ := by
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

private theorem oneKey_keys (dL : R) : (oneKey dL).keys = [⟨1, 0, 1, 1, 1, 1, 0⟩] := by
  show [(oneKey dL).key 0] = _
  rw [oneKey_key]

private theorem oneKey_inner (dL : R) (j : Fin 1) :
    innerGradient (oneKey dL).dL (oneKey dL).keys ((oneKey dL).key j) = dL := by
  rw [oneKey_keys, oneKey_key]
  show (1 : R) - (1 * 1 + 0) + dL = dL
  grind

private theorem oneKey_gradient (dL : R) (j : Fin 1) : (oneKey dL).scoreGradient j = dL := by
  rw [BackwardRow.scoreGradient, oneKey_inner]
  show 1 * dL = dL
  grind

private theorem tinyOf_one (x : R) : tinyOf (1 : R) x = x :=
  Proof.tinyOf_pos (by have := OrderedRing.zero_lt_one (R := R); grind)

/-- Its bound is the error of D, and that of the weight for G. -/
private theorem oneKey_bound (p : GradientPrecision R) (dL : R) (h : p.unit = 0)
    (h₁ : p.accumulation = 0) (h₂ : p.exponential = 0) (h₃ : p.weights = 0) (h₄ : p.factors = 0)
    (h₅ : p.scores = 0) (h₆ : p.output = 0) (h₇ : p.tiny = 0) (h₈ : p.scoresTiny = 0) (j : Fin 1) :
    scoreGradientError p counts (oneKey dL).reach (oneKey dL).dL (oneKey dL).keys
        ((oneKey dL).key j)
      = p.stored + p.storedTiny + p.outputTiny
        + p.weightsTiny * (absolute dL + (p.stored + p.storedTiny + p.outputTiny)) := by
  have e₁ : ∀ (x : R) (n : Nat), x / power (1 - 0) n = x := fun x n => by
    rw [Proof.power_eq, show (1 : R) - 0 = 1 by grind, Semiring.one_pow]
    grind
  have e₄ : meanFactor p counts = 1 := by
    rw [meanFactor, h₁, h₂, h₄, h₅, h₆, gamma_zero]
    show (1 + 0) * (1 + 0) * (1 + 0) * (1 + 0) / power (1 - 0) 1 = (1 : R)
    rw [e₁]
    grind
  have e₅ : productTiny p counts (1 : R) = 0 := by
    rw [productTiny, h₁, h₄, h₅, h₇, h₈, gamma_zero]
    grind
  have e₆ : (oneKey dL).reach = 1 := by
    show absolute (1 : R) + 0 = 1
    rw [absolute_one]
    grind
  have e₇ : meanTiny p counts (oneKey dL).reach (oneKey dL).keys = p.storedTiny + p.outputTiny := by
    rw [oneKey_keys, meanTiny, e₆]
    show tinyOf (1 : R) (numeral 2 * meanLost p counts 0 * (1 + p.stored)
        + p.storedTiny * meanGrowth p counts 0) * (1 + productTiny p counts 1)
        + 1 * ((1 + 0) * (1 + p.stored)) * productTiny p counts 1
        + tinyOf (1 : R) (meanLost p counts 0) * (numeral 2 + 1) + 0
        + (p.outputTiny * 1 + numeral 2 * p.tiny) = _
    rw [e₅, tinyOf_one, tinyOf_one, meanLost, meanGrowth, h₂, h₇, e₁]
    grind
  have e₂ : meanError p counts (oneKey dL).reach (oneKey dL).keys
      = p.stored + p.storedTiny + p.outputTiny := by
    rw [meanError, e₄, e₇, oneKey_keys]
    show 1 * 1 * ((1 + 0) * (1 + p.stored) * 1 - 1) + 0 + 1 * (p.storedTiny + p.outputTiny) = _
    grind
  have e₃ : innerError p counts (oneKey dL).reach (oneKey dL).dL (oneKey dL).keys
      ((oneKey dL).key j) = p.stored + p.storedTiny + p.outputTiny := by
    rw [innerError, e₂, h, h₁, h₄, h₅, h₇, gamma_zero, gamma_zero, oneKey_key, e₅]
    grind
  rw [scoreGradientError, e₃, oneKey_inner, h, h₃, gamma_zero, oneKey_key, weightTiny, timesTiny, h,
    gamma_zero, h₃, h₇, tinyOf_one, tinyOf_one]
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
    (small _) (oneKey 0) (oneKey_valid 0) (fun _ => 1) (fun _ => 1) (fun j => by
      rw [oneKey_key]
      show (1 : R) = 1 * (1 + 0)
      grind) 0
  rw [oneKey_gradient, oneKey_bound _ _ rfl rfl rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : (1 : R) - 0 ≤ 0 + 0 + 0 + 0 * (absolute 0 + (0 + 0 + 0)) := h.2
  grind

/-- scale · scale · Σ x y, nothing rounded. -/
@[expose] def gradientScaleTwice (_ : GradientPrecision R) (_ _ : Nat) (scale _ : R)
    (x y : Fin 1 → R) (z : R) : Prop :=
  z = scale * scale * sumOver (fun j => x j * y j) (List.finRange 1)

theorem gradientScaleTwice_refuted : ¬ GradientsStay (R := R) gradientScaleTwice := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (weightsOnly 0) (weightsOnly_precise (Std.le_refl _)) 0 0 (small _) (small _) 2 1
    4 (fun _ => 1) (fun _ => 1) (fun _ => 1) (fun _ => ⟨1, 0, 1⟩) (Std.le_refl _) (fun _ => by
      refine ⟨?_, ⟨?_, Std.le_refl _⟩, rfl⟩
      · show AtMost (0 : R) (1 - 1)
        exact ⟨by grind, by grind⟩
      · show (-1 : R) ≤ 1
        grind) (by
      show (4 : R) = 2 * 2 * (1 * 1 + 0)
      grind)
  have e : gradientError (weightsOnly (0 : R)) 0 0 2 1 ((List.finRange 1).map fun _ => ⟨1, 0, 1⟩)
      = 0 := by
    rw [gradientError, show (weightsOnly (0 : R)).accumulation = 0 from rfl,
      show (weightsOnly (0 : R)).unit = 0 from rfl, gamma_zero, gamma_zero]
    show absolute 2 * ((0 + ((1 + 0) * (1 + 0) * 1 - 1) * (1 + 0)) * absolute (1 : R) + 0)
      + (1 + ((1 + 0) * (1 + 0) * 1 - 1)) * 1 * ((numeral 3 * 0 + numeral 0 * 0) * (1 + 0 + 0 + 1)
        + numeral 0 * 0) = 0
    grind
  rw [e] at h
  have h₁ : (4 : R) - 2 * (1 * 1 + 0) ≤ 0 := h.2
  grind

/-! ## Bounds -/

private theorem below_refl {u η : R} (hu : 0 ≤ u) (hη : 0 ≤ η) (x : R) : StoredBelow u η x x :=
  ⟨x, rounded_refl hu x, by rw [show x - x = 0 by grind]; exact .zero hη, id⟩

/-- Another number by an error of its own. -/
private theorem below_near {u η x y : R} (hu : 0 ≤ u) (h : AtMost η (y - x)) (hx : x ≠ 0) :
    StoredBelow u η x y := ⟨x, rounded_refl hu x, h, fun e => absurd e hx⟩

private theorem one_ne_zero : (1 : R) ≠ 0 := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

private theorem oneKey_product {p : GradientPrecision R} (hp : PreciseGradient p) :
    ComputedProduct p counts (1 : R) #v[1] #v[1] 1 :=
  ⟨0, fun _ => 1, 1, 1, 1, Nat.le_refl _, Nat.le_refl _, fun i => by
      obtain rfl := Fin.fin_one_eq_zero i
      show StoredBelow p.accumulation p.tiny ((1 : R) * 1) 1
      rw [Semiring.mul_one]
      exact below_refl hp.accumulation hp.tiny _, .one, by
      rw [show (1 : R) - 1 = 0 by grind]
      exact .zero hp.factors, by
      rw [show (1 : R) - 1 * 1 * 1 = 0 by grind]
      exact .zero hp.tiny, below_refl hp.scores hp.scoresTiny _⟩

private theorem weight_of {u η lost w : R} (hl : 0 ≤ lost) (h : StoredBelow u η 1 w) :
    StoredWeight u η 1 0 lost w := ⟨1, by
  rw [tinyOf_one]
  exact ⟨by grind, by grind⟩, h⟩

/-- D of the one key is the weight that is stored. -/
private theorem oneKey_mean {p : GradientPrecision R} (hp : PreciseGradient p) (dL : R) {w : R}
    (h : StoredBelow p.stored p.storedTiny 1 w) : ComputedMean p counts (oneKey dL) w :=
  .ofProducts (k := 0) (w := fun _ => w) (x := fun _ => 1) (y := fun _ => w)
    (fun _ => Proof.meanWeight_of_stored hp (oneKey_valid dL) (weight_of hp.tiny h))
    (fun _ => oneKey_product hp) (fun _ => by
      show StoredBelow p.accumulation p.tiny (w * 1) w
      rw [Semiring.mul_one]
      exact below_refl hp.accumulation hp.tiny w) .one (Nat.le_refl _)

/-- dS of the one key from any D and any weight that it may have. -/
private theorem oneKey_run {p : GradientPrecision R} (hp : PreciseGradient p) {dL D w S : R}
    (hD : ComputedMean p counts (oneKey dL) D) (hw : StoredBelow p.weights p.weightsTiny 1 w)
    (hS : StoredBelow p.unit p.tiny (w * (1 + -D + dL)) S) :
    (oneKey dL).Computed p counts (fun _ => S) (fun _ => S) := by
  refine ⟨D, hD, fun j => ⟨1, 0, 1, 1 + -D + dL, w, 1, S, by decide, oneKey_product hp, ?_,
    weight_of hp.tiny hw, ⟨_, rfl, hS⟩, ?_, ?_, below_refl hp.stored hp.storedTiny _⟩⟩
  · exact .add (xs := [1, -D]) (.add (k := 1) (xs := [1]) .one .one (rounded_refl hp.unit _)
      (rounded_refl hp.unit _)) .one (rounded_refl hp.unit _) (rounded_refl hp.unit _)
  · show AtMost (0 : R) (1 - 1)
    exact ⟨by grind, by grind⟩
  · show S = S * 1
    grind

/-- D of the one key from a weight that is stored half as large again. -/
private theorem oneKey_computed :
    (oneKey (0 : R)).Computed (weightsOnly (1 / 2)) counts (fun _ => -(1 / 2))
      (fun _ => -(1 / 2)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hp := weightsOnly_precise (R := R) (u := 1 / 2) (by grind)
  refine oneKey_run hp (w := 1) (oneKey_mean hp 0 (w := 3 / 2)
    ⟨3 / 2, ⟨1 / 2, ⟨?_, Std.le_refl _⟩, ?_⟩, ?_, fun h => absurd h one_ne_zero⟩)
    (below_refl (Std.le_refl _) (Std.le_refl _) _) ?_
  · show -(1 / 2 : R) ≤ 1 / 2
    grind
  · grind
  · rw [show (3 / 2 : R) - 3 / 2 = 0 by grind]
    exact .zero (Std.le_refl _)
  · rw [show (1 : R) * (1 + -(3 / 2) + 0) = -(1 / 2) by grind]
    exact below_refl (Std.le_refl _) (Std.le_refl _) _

/-- A bound that does not count the format of weights in D. -/
@[expose] def gradientStoredNotCounted (p : GradientPrecision R) (c : GradientCounts)
    (reach dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  scoreGradientError { p with stored := 0 } c reach dL keys k

theorem gradientStoredNotCounted_refuted :
    ¬ ScoreGradientsStay (R := R) (bound := gradientStoredNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := claim (weightsOnly (1 / 2)) (weightsOnly_precise (by grind)) counts (small _) (small _)
    (small _) (oneKey 0) (oneKey_valid 0) _ _ oneKey_computed 0
  rw [oneKey_gradient, gradientStoredNotCounted,
    oneKey_bound _ _ rfl rfl rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : -(0 + 0 + 0 + 0 * (absolute 0 + (0 + 0 + 0)) : R) ≤ -(1 / 2) - 0 := h.1
  grind

/-- A bound without the error of D. -/
@[expose] def meanNotCounted (p : GradientPrecision R) (c : GradientCounts) (_ dL : R)
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
    (small _) (oneKey 0) (oneKey_valid 0) _ _ oneKey_computed 0
  have e : meanNotCounted (weightsOnly (1 / 2)) counts (oneKey (0 : R)).reach (oneKey 0).dL
      (oneKey 0).keys ((oneKey 0).key 0) = 0 := by
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
    ¬ ∀ (u ue s L δ Λ s' L' P : R), 0 ≤ u → numeral 3 * u < 1 → AtMost δ (s' - s) →
      AtMost Λ (L' - L) → RecomputedWeight u 0 ue 0 s' L' P →
      AtMost (recomputedError u 0 ue s L δ 0 * exp (s - L)) (P - exp (s - L)) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have zero := below_refl (R := R) (Std.le_refl 0) (Std.le_refl 0) 0
  have h := claim 0 0 0 1 0 1 0 0 1 (Std.le_refl _) (small _) ⟨by grind, by grind⟩
    ⟨by grind, by grind⟩ ⟨0, 0, ⟨0, ⟨0, ⟨0, rfl, zero⟩, zero⟩, zero⟩,
      ⟨0, ⟨0, ⟨0, rfl, zero⟩, zero⟩, zero⟩, by
      rw [show (0 : R) - 0 = 0 by grind, exp_zero]
      exact below_refl (Std.le_refl _) (Std.le_refl _) _⟩
  have e : recomputedError (0 : R) 0 0 0 1 0 0 = 0 := by
    simp only [recomputedError, exponentError, gamma_zero, Semiring.mul_zero, Semiring.zero_mul,
      Semiring.add_zero, exp_zero]
    grind
  rw [e] at h
  have h₁ := h.2
  have h₂ := exp_lt (R := R) (0 - 1 : R) 0 (by grind)
  rw [exp_zero] at h₂
  clear claim h e
  grind

/-! ## Numbers below the normal ones -/

/-- A bound that does not count what a weight of D loses where it is stored. -/
@[expose] def meanUnderflowNotCounted (p : GradientPrecision R) (c : GradientCounts) (reach dL : R)
    (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  scoreGradientError { p with storedTiny := 0 } c reach dL keys k

theorem meanUnderflowNotCounted_refuted :
    ¬ ScoreGradientsStay (R := R) (bound := meanUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hp : PreciseGradient { weightsOnly (0 : R) with storedTiny := 1 / 2 } :=
    { weightsOnly_precise (Std.le_refl _) with storedTiny := by show (0 : R) ≤ 1 / 2; grind }
  have h := claim _ hp counts (small _) (small _) (small _) (oneKey 0) (oneKey_valid 0) _ _
    (oneKey_run hp (w := 1) (S := -(1 / 2)) (oneKey_mean hp 0 (w := 3 / 2)
      (below_near (Std.le_refl _) ⟨by show -(1 / 2 : R) ≤ 3 / 2 - 1; grind,
        by show (3 / 2 : R) - 1 ≤ 1 / 2; grind⟩ one_ne_zero))
      (below_refl (Std.le_refl _) (Std.le_refl _) _) (by
        rw [show (1 : R) * (1 + -(3 / 2) + 0) = -(1 / 2) by grind]
        exact below_refl (Std.le_refl _) (Std.le_refl _) _)) 0
  rw [oneKey_gradient, meanUnderflowNotCounted,
    oneKey_bound _ _ rfl rfl rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : -(0 + 0 + 0 + 0 * (absolute 0 + (0 + 0 + 0)) : R) ≤ -(1 / 2) - 0 := h.1
  grind

/-- A bound that does not count what a weight loses where it is stored before it multiplies G. -/
@[expose] def weightUnderflowNotCounted (p : GradientPrecision R) (c : GradientCounts)
    (reach dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  scoreGradientError { p with weightsTiny := 0 } c reach dL keys k

theorem weightUnderflowNotCounted_refuted :
    ¬ ScoreGradientsStay (R := R) (bound := weightUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hp : PreciseGradient { weightsOnly (0 : R) with weightsTiny := 1 / 2 } :=
    { weightsOnly_precise (Std.le_refl _) with weightsTiny := by show (0 : R) ≤ 1 / 2; grind }
  have h := claim _ hp counts (small _) (small _) (small _) (oneKey 1) (oneKey_valid 1) _ _
    (oneKey_run hp (w := 3 / 2) (S := 3 / 2) (oneKey_mean hp 1 (w := 1)
      (below_refl (Std.le_refl _) (Std.le_refl _) _))
      (below_near (Std.le_refl _) ⟨by show -(1 / 2 : R) ≤ 3 / 2 - 1; grind,
        by show (3 / 2 : R) - 1 ≤ 1 / 2; grind⟩ one_ne_zero) (by
        rw [show (3 / 2 : R) * (1 + -1 + 1) = 3 / 2 by grind]
        exact below_refl (Std.le_refl _) (Std.le_refl _) _)) 0
  rw [oneKey_gradient, weightUnderflowNotCounted,
    oneKey_bound _ _ rfl rfl rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : (3 / 2 - 1 : R) ≤ 0 + 0 + 0 + 0 * (absolute 1 + (0 + 0 + 0)) := h.2
  grind

/-- A bound that does not count what underflows in products and exponentials. -/
@[expose] def productUnderflowNotCounted (p : GradientPrecision R) (c : GradientCounts)
    (reach dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  scoreGradientError { p with tiny := 0 } c reach dL keys k

theorem productUnderflowNotCounted_refuted :
    ¬ ScoreGradientsStay (R := R) (bound := productUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have half : (0 : R) ≤ 1 / 2 := by grind
  have hp : PreciseGradient { weightsOnly (0 : R) with tiny := 1 / 2 } :=
    { weightsOnly_precise (Std.le_refl _) with tiny := half }
  have h := claim _ hp counts (small _) (small _) (small _) (oneKey 1) (oneKey_valid 1) _ _
    (oneKey_run hp (w := 1) (S := 3 / 2) (oneKey_mean hp 1 (w := 1)
      (below_refl (Std.le_refl _) (Std.le_refl _) _))
      (below_refl (Std.le_refl _) (Std.le_refl _) _)
      (below_near (Std.le_refl _) ⟨by show -(1 / 2 : R) ≤ 3 / 2 - 1 * (1 + -1 + 1); grind,
        by show (3 / 2 : R) - 1 * (1 + -1 + 1) ≤ 1 / 2; grind⟩ (by
          rw [show (1 : R) * (1 + -1 + 1) = 1 by grind]
          exact one_ne_zero))) 0
  rw [oneKey_gradient, productUnderflowNotCounted,
    oneKey_bound _ _ rfl rfl rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : (3 / 2 - 1 : R) ≤ 0 + 0 + 0 + 0 * (absolute 1 + (0 + 0 + 0)) := h.2
  grind

/-- A bound that does not count what the output loses from which D is computed. -/
@[expose] def outputUnderflowNotCounted (p : GradientPrecision R) (c : GradientCounts)
    (reach dL : R) (keys : List (GradientKey R)) (k : GradientKey R) : R :=
  scoreGradientError { p with outputTiny := 0 } c reach dL keys k

theorem outputUnderflowNotCounted_refuted :
    ¬ ScoreGradientsStay (R := R) (bound := outputUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hp : PreciseGradient { weightsOnly (0 : R) with outputTiny := 1 / 2 } :=
    { weightsOnly_precise (Std.le_refl _) with outputTiny := by show (0 : R) ≤ 1 / 2; grind }
  have factor : outputFactor { weightsOnly (0 : R) with outputTiny := 1 / 2 } counts 0 = 1 := by
    show (1 + 0) ^ 0 * (1 + 0) / (1 - 0) ^ 1 = (1 : R)
    rw [show (1 : R) - 0 = 1 by grind, Semiring.one_pow, Semiring.pow_zero]
    grind
  have mean : ComputedMean { weightsOnly (0 : R) with outputTiny := 1 / 2 } counts (oneKey 0)
      (3 / 2) :=
    .ofOutput (m := 0) (k := 0) (o := fun _ => 3 / 2) (y := fun _ => 3 / 2)
      (fun i => ⟨fun _ => 1, fun _ => 1, fun _ => 0, fun _ => weight_of (Std.le_refl _)
        (below_refl (Std.le_refl _) (show (0 : R) ≤ 0 * _ by grind) _),
      fun _ => by rw [factor]; exact ⟨by grind, by grind⟩,
      fun _ => .zero (by
        rw [factor, Semiring.one_mul]
        exact Proof.tinyOf_nonneg (show (0 : R) ≤ numeral (counts.rescalings + 6) * 0 * _ * _ by
          grind)), by
        obtain rfl := Fin.fin_one_eq_zero i
        show StoredBelow 0 (1 / 2) (1 * (1 * 1) * 1 + 0 + 0 : R) (3 / 2)
        rw [show (1 * (1 * 1) * 1 + 0 + 0 : R) = 1 by grind]
        exact below_near (Std.le_refl _) ⟨by grind, by grind⟩ one_ne_zero⟩)
      (fun i => by
        obtain rfl := Fin.fin_one_eq_zero i
        show StoredBelow (0 : R) 0 (1 * (3 / 2)) (3 / 2)
        rw [Semiring.one_mul]
        exact below_refl (Std.le_refl _) (Std.le_refl _) _)
      .one (by decide) (Nat.le_refl _)
  have h := claim _ hp counts (small _) (small _) (small _) (oneKey 0) (oneKey_valid 0) _ _
    (oneKey_run hp (w := 1) (S := -(1 / 2)) mean (below_refl (Std.le_refl _) (Std.le_refl _) _) (by
        rw [show (1 : R) * (1 + -(3 / 2) + 0) = -(1 / 2) by grind]
        exact below_refl (Std.le_refl _) (Std.le_refl _) _)) 0
  rw [oneKey_gradient, outputUnderflowNotCounted,
    oneKey_bound _ _ rfl rfl rfl rfl rfl rfl rfl rfl rfl] at h
  have h₁ : -(0 + 0 + 0 + 0 * (absolute 0 + (0 + 0 + 0)) : R) ≤ -(1 / 2) - 0 := h.1
  grind

/-- A bound of sums that does not count what stored keys and queries lose. -/
@[expose] def operandUnderflowNotCounted (p : GradientPrecision R) (roundings stores : Nat)
    (scale reach : R) (terms : List (GradientTerm R)) : R :=
  gradientError { p with operandsTiny := 0 } roundings stores scale reach terms

theorem operandUnderflowNotCounted_refuted :
    ¬ GradientsStay (R := R) (bound := operandUnderflowNotCounted) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have half : (0 : R) ≤ 1 / 2 := by grind
  have same := fun x : R => below_refl (Std.le_refl (0 : R)) (Std.le_refl (0 : R)) x
  have h := claim { weightsOnly (0 : R) with operandsTiny := 1 / 2 }
    { weightsOnly_precise (Std.le_refl _) with operandsTiny := half } 1 1 (small _) (small _) 1 1
    (3 / 2) (fun _ => 1) (fun _ => 1) (fun _ => 1) (fun _ => ⟨1, 0, 1⟩) (Std.le_refl _) (fun _ => by
      refine ⟨?_, ⟨?_, Std.le_refl _⟩, rfl⟩
      · show AtMost (0 : R) (1 - 1)
        exact ⟨by grind, by grind⟩
      · show (-1 : R) ≤ 1
        grind)
    ⟨0, 1, 0, 0, 0, 1, 1, fun _ => 1, fun _ => 3 / 2, fun _ => 3 / 2, 3 / 2, 3 / 2, Nat.le_refl _,
      Nat.le_refl _, Nat.le_refl _, by decide, Semiring.one_mul 1, ⟨by grind, Std.le_refl _⟩,
      fun _ => (Semiring.one_mul (1 : R)).symm, fun _ => ⟨1, rfl, below_near (Std.le_refl _)
        ⟨by show -(1 / 2 : R) ≤ 3 / 2 - 1; grind, by show (3 / 2 : R) - 1 ≤ 1 / 2; grind⟩
        one_ne_zero⟩, fun _ => by
        show StoredBelow (0 : R) 0 (1 * (3 / 2)) (3 / 2)
        rw [Semiring.one_mul]
        exact same _, .one, rfl, (Semiring.one_mul (3 / 2 : R)).symm⟩
  have e : operandUnderflowNotCounted { weightsOnly (0 : R) with operandsTiny := 1 / 2 } 1 1 1 1
      ((List.finRange 1).map fun _ => ⟨1, 0, 1⟩) = 0 := by
    rw [operandUnderflowNotCounted, gradientError]
    show absolute 1 * ((0 + ((1 + gamma 1 0) * (1 + gamma 3 0) * (1 * (1 + 0)) - 1) * (1 + 0))
        * absolute (1 : R) + 0)
      + (1 + ((1 + gamma 1 0) * (1 + gamma 3 0) * (1 * (1 + 0)) - 1)) * 1
        * ((numeral 3 * 0 + numeral 1 * 0) * (1 + 0 + 0 + 1) + numeral 2 * 0) = 0
    rw [gamma_zero, gamma_zero]
    grind
  rw [e] at h
  have h₁ : (3 / 2 : R) - 1 * (1 * 1 + 0) ≤ 0 := h.2
  grind

end Attention.WrongVariants
