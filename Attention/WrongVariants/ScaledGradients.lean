module

public import Attention.Proof.Rounding.ScaledMatrices

public section

/-! # Wrong variants of gradients of numbers that are stored with a factor

Losses that count once although a smaller number is stored, of a weight that meets dO, of a dS and
of a dP, or is computed, without dropout's factor, and a sum whose losses meet a factor, or escape
a temperature, that the bound does not know of. Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model

/-! ## The claims -/

/-- The claim of `scaled_weight`, of any hypothesis about growth and factor. -/
abbrev ScaledWeightsStay (hypothesis : GradientPrecision Rat → Rat → Prop :=
    fun p τ => 1 ≤ p.growth * absolute τ) : Prop :=
  ∀ p : GradientPrecision Rat, PreciseGradient p → ∀ τ : Rat, τ ≠ 0 → hypothesis p τ →
    ∀ r : BackwardRow Rat 1 1, r.Valid → ∀ w, r.ScaledWeight p τ 0 w →
    AtMost (weightTerm p (r.key 0) 1).error (τ⁻¹ * w - r.factor 0 * r.weight 0)

/-- Positive control: the hypothesis of the theorem. -/
theorem scaledWeights_stay : ScaledWeightsStay :=
  fun _ hp _ hτ grows _ hr _ h =>
    (Proof.rounded_weightTerm hp hr (Proof.scaled_weight hτ grows hp h) 1).1

/-- The claim of `scaled_row`, of any hypothesis about growth and factor. -/
abbrev ScaledRowsStay (hypothesis : GradientPrecision Rat → Rat → Prop :=
    fun p τ => 1 ≤ p.growth * absolute τ) : Prop :=
  ∀ p : GradientPrecision Rat, PreciseGradient p → ∀ c : GradientCounts,
    numeral c.products * p.accumulation < 1 → numeral c.delta * p.accumulation < 1 →
    numeral 3 * p.unit < 1 → ∀ τ : Rat, τ ≠ 0 → hypothesis p τ →
    ∀ r : BackwardRow Rat 1 1, r.Valid → ∀ S X, r.ScaledLast p c τ S X →
    AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key 0) 1).error
      (τ⁻¹ * X 0 - r.scoreGradient 0 * r.slope 0)

/-- Positive control: the hypothesis of the theorem. -/
theorem scaledRows_stay : ScaledRowsStay :=
  fun _ hp _ hc₁ hc₂ hu _ hτ grows _ hr _ _ h =>
    (Proof.rounded_scoreGradientTerm hp hc₁ hc₂ hu hr (Proof.scaled_row hτ grows hp h) 0 1).1

/-- The claim of `scaled_sum`, of any hypothesis about the parts of the scale that multiply sums,
and the number that the bound has for them. -/
abbrev ScaledSumsStay (hypothesis : Rat → Rat → Prop := fun reach' reach => reach' ≤ reach) :
    Prop :=
  ∀ p : GradientPrecision Rat, PreciseGradient p → ∀ τ rest scale reach reach' : Rat, τ ≠ 0 →
    τ * rest = scale → 1 ≤ reach' → hypothesis reach' reach → absolute τ * reach' ≤ reach →
    ∀ roundings : Nat, numeral roundings * p.accumulation < 1 → numeral 3 * p.unit < 1 →
    ∀ (t : Fin 1 → GradientTerm Rat) (x y e : Fin 1 → Rat) (z : Rat),
    (∀ j, AtMost (t j).error (τ⁻¹ * x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j) →
    ComputedTiledGradient p roundings 0 0 rest reach' x y z →
    AtMost (presentGradientTerm p roundings 0 0 scale reach ((List.finRange 1).map t)).error
      (z - scale * sumOver (fun j => e j * y j) (List.finRange 1))

/-- Positive control: the hypothesis of the theorem. -/
theorem scaledSums_stay : ScaledSumsStay :=
  fun _ hp _ _ _ _ _ hτ hscale one hreach hr _ hc hu _ _ _ _ _ ht h =>
    Proof.scaled_sum hp hτ hscale one hreach hr hc hu ht h

/-- The claim of `twiceStored_product`, of any hypothesis about what the format of dP loses. -/
abbrev StoredProductsStay (hypothesis : GradientPrecision Rat → Rat → Rat → Rat → Prop :=
    fun p z u η => (z * (1 + p.factors) * η + p.tiny) * (1 + u) + η + p.tiny * (1 + p.scores)
      ≤ p.scoresTiny) : Prop :=
  ∀ p : GradientPrecision Rat, PreciseGradient p → ∀ (c : GradientCounts) (factor z u η : Rat),
    0 ≤ factor → factor ≤ z → 0 ≤ u → 0 ≤ η → (1 + u) * (1 + u) - 1 ≤ p.scores →
    hypothesis p z u η → ∀ (dO v : Vec Rat 1) (x : Rat), TwiceStoredProduct p c u η factor dO v x →
    ComputedProduct p c factor dO v x

/-- Positive control: the hypothesis of the theorem. -/
theorem storedProducts_stay : StoredProductsStay :=
  fun _ hp _ _ _ _ _ hf hz _ _ hs ht _ _ _ h => Proof.twiceStored_product hp hf hz hs ht h

/-- The claim of `withoutFactor_term`, of any hypothesis about what the bound loses, what is lost,
and the factor that is left out. -/
abbrev LateFactorsStay (hypothesis : GradientPrecision Rat → Rat → Rat → Prop :=
    fun p ν τ => numeral 2 * ν ≤ τ * p.tiny) : Prop :=
  ∀ p : GradientPrecision Rat, PreciseGradient p → ∀ c : GradientCounts,
    numeral c.products * p.accumulation < 1 → numeral c.delta * p.accumulation < 1 →
    numeral 3 * p.unit < 1 → ∀ ν τ κ : Rat, 0 < τ → τ ≤ 1 → κ ≠ 0 → 0 ≤ ν → hypothesis p ν τ →
    1 ≤ p.growth * absolute (τ * κ) → ∀ r : BackwardRow Rat 1 1, r.Valid → ∀ S X,
    r.WithoutFactor p c ν 0 τ κ S X →
    AtMost (scoreGradientTerm p c r.reach r.dL r.keys (r.key 0) 1).error
      ((τ * κ)⁻¹ * X 0 - r.scoreGradient 0 * r.slope 0)

/-- Positive control: the hypothesis of the theorem. -/
theorem lateFactors_stay : LateFactorsStay :=
  fun _ hp _ hc₁ hc₂ hu _ _ _ hτ hτ₁ hκ hν tiny grows _ hr _ _ h =>
    (Proof.withoutFactor_term hp hτ hτ₁ hκ hν (Std.le_refl _) tiny
      (Lean.Grind.OrderedRing.mul_nonneg (Std.le_of_lt hτ) hp.scoresTiny) grows hc₁ hc₂ hu hr h 0
      1).1

/-- The claim of `temperature_sum`, of any hypothesis about the parts of the scale that multiply
sums, the temperature, and the number that the bound has for them. -/
abbrev TemperatureSumsStay (hypothesis : Rat → Rat → Rat → Prop :=
    fun reach' t reach => reach' ≤ absolute t * reach) : Prop :=
  ∀ p : GradientPrecision Rat, PreciseGradient p → ∀ τ rest scale t reach reach' : Rat, τ ≠ 0 →
    t ≠ 0 → τ * rest = scale * t → 1 ≤ reach' → hypothesis reach' t reach →
    hypothesis (absolute τ * reach') t reach → ∀ roundings : Nat,
    numeral roundings * p.accumulation < 1 → numeral 3 * p.unit < 1 →
    ∀ (term : Fin 1 → GradientTerm Rat) (x y e : Fin 1 → Rat) (z : Rat),
    (∀ j, AtMost (term j).error (τ⁻¹ * x j - e j) ∧ AtMost (term j).size (e j) ∧
      (term j).other = y j) →
    ComputedTiledGradient p roundings 0 0 rest reach' x y z →
    AtMost (absolute t * (presentGradientTerm p roundings 0 0 scale reach
      ((List.finRange 1).map term)).error)
      (z - scale * t * sumOver (fun j => e j * y j) (List.finRange 1))

/-- Positive control: the hypothesis of the theorem. -/
theorem temperatureSums_stay : TemperatureSumsStay :=
  fun _ hp _ _ _ _ _ _ hτ ht hscale one hreach hr _ hc hu _ _ _ _ _ h hz =>
    Proof.temperature_sum hp hτ ht hscale one hreach hr hc hu h hz

/-! ## Losses that count once -/

private instance (c x : Rat) : Decidable (AtMost c x) := inferInstanceAs (Decidable (_ ∧ _))

/-- Nothing is rounded; `ν` may be lost by an operation, and `η` by a store, which count once. -/
private abbrev losing (ν η : Rat) : GradientPrecision Rat :=
  ⟨0, 0, 0, 0, 0, 0, 0, 0, 0, ν, 0, η, 0, 0, 0, 1⟩

private theorem losing_precise {ν η : Rat} (hν : 0 ≤ ν) (hη : 0 ≤ η) :
    PreciseGradient (losing ν η) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, by show (0 : Rat) < 1; decide +kernel,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, hν,
    Std.le_refl _, hη, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _⟩

/-- One key of weight 1, which dropout multiplies by 2; its value is 0, so that dS is dL. -/
private abbrev kept : BackwardRow Rat 1 1 :=
  ⟨fun _ => 1, fun _ => 0, fun _ => 2, fun _ => 1, fun _ => 0, fun _ => #v[0], #v[0], 1⟩

private theorem kept_valid : kept.Valid :=
  ⟨fun _ => by show (0 : Rat) ≤ 1; decide +kernel, fun _ => by show (0 : Rat) ≤ 2; decide +kernel,
    fun _ => Std.le_refl _⟩

private theorem itself (x η : Rat) (hη : 0 ≤ η) : StoredBelow 0 η x x :=
  ⟨x, ⟨0, by decide +kernel, by grind⟩, by rw [show x - x = 0 by grind]; exact .zero hη, id⟩

/-- 1 and 1/2, of which 1/2 is lost. -/
private theorem one_up : StoredBelow (0 : Rat) (1 * (1 / 2)) 1 (3 / 2) :=
  ⟨1, ⟨0, by decide +kernel, by decide +kernel⟩, by decide +kernel, fun h => by grind⟩

private theorem half_up : StoredBelow (0 : Rat) (1 * (1 / 2)) (1 / 2) 1 :=
  ⟨1 / 2, ⟨0, by decide +kernel, by decide +kernel⟩, by decide +kernel, fun h => by grind⟩

private theorem weight_one {η lost : Rat} (hη : 0 ≤ η) (hl : 0 ≤ lost) :
    StoredWeight 0 η 1 0 lost (1 : Rat) := by
  refine ⟨1, ?_, itself 1 η hη⟩
  have := Proof.tinyOf_nonneg (weight := (1 : Rat)) hl
  exact ⟨by grind, by grind⟩

/-- A loss of a weight that is stored without dropout's factor counts once, and not as often as the
factor says. -/
theorem lossOfWeightOnce_refuted : ¬ ScaledWeightsStay fun p _ => 1 ≤ p.growth := fun claim => by
  have h := (claim (losing 0 (1 / 2)) (losing_precise (by decide +kernel) (by decide +kernel))
    (1 / 2) (by decide +kernel) (Std.le_refl _) kept kept_valid (3 / 2)
    ⟨1, 1, 1, weight_one (Std.le_refl _) (Std.le_refl _), by decide +kernel, by decide +kernel,
      one_up⟩).2
  exact absurd h (by decide +kernel)

/-- A loss of a dS that is multiplied by a scale of 1/2 before it is stored counts once, and not
twice. -/
theorem lossOfScoreGradientOnce_refuted : ¬ ScaledRowsStay fun p _ => 1 ≤ p.growth :=
  fun claim => by
    have h₀ : (0 : Rat) ≤ 0 := Std.le_refl _
    have hη : (0 : Rat) ≤ 1 / 2 * meanGrowth (losing 0 (1 / 2)) ⟨1, 2, 0⟩ 0 := by decide +kernel
    have lost : (0 : Rat) ≤ numeral 2 * meanLost (losing 0 (1 / 2)) ⟨1, 2, 0⟩ 0 := by
      decide +kernel
    have zero : ∀ x : Rat, x = 0 → StoredBelow 0 0 x 0 := fun x hx => by
      rw [hx]
      exact itself 0 0 h₀
    have product : ComputedProduct (losing 0 (1 / 2)) ⟨1, 2, 0⟩ 2 (#v[0] : Vec Rat 1) #v[0] 0 :=
      ⟨0, fun _ => 0, 0, 1, 0, Nat.le_refl _, Nat.le_refl _, fun i => zero _ (by
        rw [show i = 0 from Subsingleton.elim _ _]
        decide +kernel), .one, by decide +kernel, by decide +kernel, zero _ rfl⟩
    have h := (claim (losing 0 (1 / 2)) (losing_precise h₀ (by decide +kernel)) ⟨1, 2, 0⟩
      (by decide +kernel) (by decide +kernel) (by decide +kernel) (1 / 2) (by decide +kernel)
      (Std.le_refl _) kept kept_valid (fun _ => 1) (fun _ => 1)
      ⟨0, .ofProducts (k := 0) (w := fun _ => 1) (x := fun _ => 0) (y := fun _ => 0)
          (fun _ => weight_one hη lost) (fun _ => product)
          (fun _ => zero (1 * 0) (by decide +kernel)) .one (by decide),
        fun _ => ⟨0, 0, 0, 1, 1, 1 / 2 * 1, 1 / 2, by decide, product,
          .free rfl (.free (by decide +kernel) .one), weight_one h₀ h₀,
          (by decide +kernel : (1 : Rat) = 1 * 1),
          ⟨1, (by decide +kernel : AtMost (0 : Rat) (1 - 1)), rfl⟩,
          (by decide +kernel : (1 / 2 : Rat) = 1 * (1 / 2 * 1)), half_up⟩⟩).2
    exact absurd h (by decide +kernel)

/-- A loss of a dP that is stored before dropout's factor of 2 multiplies it counts once. -/
theorem lossOfProductOnce_refuted : ¬ StoredProductsStay fun p _ _ η => η ≤ p.scoresTiny :=
  fun claim => by
    let p : GradientPrecision Rat := ⟨0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 / 2, 0, 0, 1⟩
    have h₀ : (0 : Rat) ≤ 0 := Std.le_refl _
    have hη : (0 : Rat) ≤ 1 / 2 := by decide +kernel
    have hp : PreciseGradient p := ⟨h₀, h₀, h₀, by show (0 : Rat) < 1; decide +kernel, h₀, h₀, h₀,
      h₀, h₀, h₀, h₀, h₀, h₀, hη, h₀, h₀, Std.le_refl _⟩
    have h := (Proof.product_majorised hp (c := ⟨1, 2, 0⟩) (by decide +kernel)
      (by decide +kernel : (0 : Rat) ≤ 2) (claim p hp ⟨1, 2, 0⟩ 2 2 0 (1 / 2) (by decide +kernel)
        (Std.le_refl _) h₀ hη (by decide +kernel) (Std.le_refl _) #v[1] #v[1] 3
        ⟨0, fun _ => 1, 1, 3 / 2, 1, 3, Nat.le_refl _, Nat.le_refl _, fun i => by
            rw [show i = 0 from Subsingleton.elim _ _]
            show StoredBelow 0 0 (1 * 1 : Rat) 1
            rw [Lean.Grind.Semiring.mul_one]
            exact itself 1 0 h₀,
          .one, ⟨1, ⟨0, by decide +kernel, by decide +kernel⟩, by decide +kernel,
            fun h => by grind⟩, by decide +kernel, by decide +kernel, itself 3 _ hη⟩)).error.2
    exact absurd h (by decide +kernel)

/-- One key of weight 1, which dropout drops; dS is dL. -/
private abbrev dropped : BackwardRow Rat 1 1 :=
  ⟨fun _ => 1, fun _ => 0, fun _ => 0, fun _ => 1, fun _ => 0, fun _ => #v[0], #v[0], 1⟩

/-- What a pass loses that leaves dropout's factor of 100 out counts once: a hundredth of dL is off
by a tenth of itself. -/
theorem lossWithoutFactorOnce_refuted : ¬ LateFactorsStay fun p ν _ => numeral 2 * ν ≤ p.tiny :=
  fun claim => by
    let ν : Rat := 1 / 1000
    let p := losing (2 * ν) 0
    have h₀ : (0 : Rat) ≤ 0 := Std.le_refl _
    have hν : (0 : Rat) ≤ ν := by decide +kernel
    have hη : (0 : Rat) ≤ 0 * meanGrowth p ⟨1, 2, 0⟩ 0 := by decide +kernel
    have lost : (0 : Rat) ≤ numeral 2 * meanLost p ⟨1, 2, 0⟩ 0 := by decide +kernel
    have zero : ∀ x η : Rat, 0 ≤ η → x = 0 → StoredBelow 0 η x 0 := fun x η hη hx => by
      rw [hx]
      exact itself 0 η hη
    have product : ∀ q : GradientPrecision Rat, q.accumulation = 0 → q.scores = 0 →
        q.factors = 0 → 0 ≤ q.tiny → 0 ≤ q.scoresTiny → ∀ f : Rat, f = 0 →
        ComputedProduct q ⟨1, 2, 0⟩ f (#v[0] : Vec Rat 1) #v[0] 0 :=
      fun q ha hs hf hq hq' f h => ⟨0, fun _ => 0, 0, 1, 0, Nat.le_refl _, Nat.le_refl _,
        fun i => by
          rw [show i = 0 from Subsingleton.elim _ _, ha]
          exact zero _ _ hq (by decide +kernel), .one, by rw [hf]; decide +kernel, by
          rw [h]
          exact ⟨by grind, by grind⟩, by
          rw [hs]
          exact zero _ _ hq' rfl⟩
    have hp : PreciseGradient p := losing_precise (by decide +kernel) h₀
    have h := (claim p hp ⟨1, 2, 0⟩ (by decide +kernel) (by decide +kernel) (by decide +kernel) ν
      (1 / 100) 100 (by decide +kernel) (by decide +kernel) (by decide +kernel) hν
      (by decide +kernel) (by decide +kernel) dropped
      ⟨fun _ => by show (0 : Rat) ≤ 1; decide +kernel, fun _ => h₀, fun _ => h₀⟩
      (fun _ => 11 / 1000) (fun _ => 11 / 10)
      ⟨0, 0, 11 / 1000, .ofProducts (k := 0) (w := fun _ => 1) (x := fun _ => 0)
          (y := fun _ => 0) (fun _ => weight_one hη lost)
          (fun _ => product p rfl rfl rfl (by decide +kernel) h₀ 0 rfl)
          (fun _ => zero (1 * 0) _ (by decide +kernel) (by decide +kernel)) .one (by decide),
        zero _ _ hν (by decide +kernel),
        ⟨1 / 100, ⟨0, by decide +kernel, by decide +kernel⟩, by decide +kernel,
          fun h => absurd h (by decide +kernel)⟩,
        fun _ => ⟨0, 0, 0, 11 / 1000, 1, 1, 11 / 10, by decide,
          product (withLosses p ν 0) rfl rfl rfl hν h₀ _ (by
            show (1 / 100 : Rat) * 0 = 0
            decide +kernel),
          .free rfl (.free (by decide +kernel) .one), weight_one h₀ (by decide +kernel),
          (by decide +kernel : (11 / 1000 : Rat) = 1 * (11 / 1000)),
          (by decide +kernel : AtMost (0 : Rat) (1 - 1)),
          (by decide +kernel : (11 / 10 : Rat) = 11 / 1000 * (100 * 1)), itself _ _ h₀⟩⟩).2
    exact absurd h (by decide +kernel)

/-! ## A factor that the bound does not have -/

/-- A sum of numbers without a factor of 16, by which it is multiplied, with a bound that has
nothing of it: of 1/16 up to 1 is lost. -/
theorem factorOfSumLeftOut_refuted : ¬ ScaledSumsStay fun _ _ => True := fun claim => by
  have h := (claim (losing 1 0) (losing_precise (by decide +kernel) (Std.le_refl _)) (1 / 16) 16 1
    1 16 (by decide +kernel) (by decide +kernel) (by decide +kernel) trivial (by decide +kernel) 1
    (by decide +kernel) (by decide +kernel) (fun _ => ⟨1, 0, 1⟩) (fun _ => 1 / 16) (fun _ => 1)
    (fun _ => 1) 17 (fun _ => ⟨(by decide +kernel : AtMost (0 : Rat) ((1 / 16)⁻¹ * (1 / 16) - 1)),
      (by decide +kernel : AtMost (1 : Rat) 1), rfl⟩)
    ⟨[[0]], 0, 0, 0, 0, 0, 0, 0, 0, 1, 16, 1, fun _ => 1, fun _ => 1, fun _ => 17 / 16,
      fun _ => 17 / 16, fun _ => 17 / 16, fun _ => 17, 17, .refl _, Nat.le_refl _, Nat.le_refl _,
      Nat.le_refl _, Nat.le_refl _, Nat.le_refl _, by decide, by decide +kernel, by decide +kernel,
      by decide +kernel, fun _ => (by decide +kernel : (1 : Rat) = 1 * 1),
      fun _ => rfl, fun _ => ⟨1 / 16, ⟨0, by decide +kernel,
          (by decide +kernel : (1 / 16 : Rat) = 1 / 16 * 1 * (1 + 0))⟩,
        (by decide +kernel : AtMost (1 : Rat) (17 / 16 - 1 / 16)),
        fun h => absurd h (by decide +kernel : ¬(1 / 16 * 1 : Rat) = 0)⟩,
      fun part hpart => by rw [List.mem_singleton.mp hpart]; exact .one, fun _ _ => rfl,
      fun _ _ => (by decide +kernel : (17 : Rat) = 16 * (17 / 16)), .one,
      (by decide +kernel : (17 : Rat) = 1 * 17)⟩).2
  exact absurd h (by decide +kernel)

/-- A sum of numbers times a temperature of 1/16, with a bound of which only a 16th is left: of 1/16
up to 1 is lost. -/
theorem temperatureOfSumLeftOut_refuted :
    ¬ TemperatureSumsStay fun reach' _ reach => reach' ≤ reach := fun claim => by
  have h := (claim (losing 1 0) (losing_precise (by decide +kernel) (Std.le_refl _)) (1 / 16) 1 1
    (1 / 16) 1 1 (by decide +kernel) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (by decide +kernel) (by decide +kernel) 1 (by decide +kernel) (by decide +kernel)
    (fun _ => ⟨1, 0, 1⟩) (fun _ => 1 / 16) (fun _ => 1) (fun _ => 1) (17 / 16)
    (fun _ => ⟨(by decide +kernel : AtMost (0 : Rat) ((1 / 16)⁻¹ * (1 / 16) - 1)),
      (by decide +kernel : AtMost (1 : Rat) 1), rfl⟩)
    ⟨[[0]], 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, fun _ => 1, fun _ => 1, fun _ => 17 / 16,
      fun _ => 17 / 16, fun _ => 17 / 16, fun _ => 17 / 16, 17 / 16, .refl _, Nat.le_refl _,
      Nat.le_refl _, Nat.le_refl _, Nat.le_refl _, Nat.le_refl _, by decide, by decide +kernel,
      by decide +kernel, by decide +kernel, fun _ => (by decide +kernel : (1 : Rat) = 1 * 1),
      fun _ => rfl, fun _ => ⟨1 / 16, ⟨0, by decide +kernel,
          (by decide +kernel : (1 / 16 : Rat) = 1 / 16 * 1 * (1 + 0))⟩,
        (by decide +kernel : AtMost (1 : Rat) (17 / 16 - 1 / 16)),
        fun h => absurd h (by decide +kernel : ¬(1 / 16 * 1 : Rat) = 0)⟩,
      fun part hpart => by rw [List.mem_singleton.mp hpart]; exact .one, fun _ _ => rfl,
      fun _ _ => (by decide +kernel : (17 / 16 : Rat) = 1 * (17 / 16)), .one,
      (by decide +kernel : (17 / 16 : Rat) = 1 * (17 / 16))⟩).2
  exact absurd h (by decide +kernel)

end Attention.WrongVariants
