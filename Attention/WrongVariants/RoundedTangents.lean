module

public import Attention.Proof.Rounding.ScoreRates
public import Attention.Proof.Rounding.Scores
public import Attention.Proof.Rounding.Tangents
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of tangents in a function that rounds

A function that leaves out the mean rate of the scores, and bounds that leave out an error or what
is lost below the normal numbers. Over every ordered field, for every exponential.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The claim of `rounded_tangents`, of any way to compute the rate of an output and of any
bound. -/
abbrev TangentStays
    (computes : Precision R → R → R → R → R → Nat → Nat → Nat → List Unit → (Unit → BoundedRate R) →
      R → Prop := ComputedTangent)
    (bound : Precision R → R → R → R → R → R → Nat → Nat → Nat → List (BoundedRate R) → R :=
      storedTangentTolerance) : Prop :=
  ∀ p : Precision R, Precise p → ∀ ν output apart lost : R, 0 ≤ ν → 0 ≤ output → 0 ≤ apart →
    0 ≤ lost → ∀ (cols : List Unit) (x : Unit → ScoredValue (Dual R) (Dual R) 1)
    (ε τ t φ S δ : Unit → R),
    (∀ j ∈ cols, 0 ≤ τ j ∧ 0 ≤ t j ∧ 0 ≤ φ j) →
    (∀ j ∈ cols, AtMost (S j) (scoreTangent (x j).score)) →
    ∀ k r m roundings rescalings losses : Nat, k + 1 ≤ roundings → r ≤ rescalings →
    m + 1 ≤ losses → ∀ key : Unit → BoundedRate R,
    (key = fun j => boundedRate (cols.map x) 0 (ε j) (τ j) (t j) (φ j) (S j) (δ j) (x j)) →
    ∀ y : R, computes p ν output apart lost k r m cols key y → ∀ u η z : R, StoredNear u η y z →
    AtMost (bound p u η output apart lost roundings rescalings losses (cols.map key))
      (z - ((attend (cols.map x))[0]).der)

/-- Positive control: the functions and the bound of the theorem. -/
theorem computedTangent_stays : TangentStays (R := R) :=
  fun _ hp _ _ _ _ hν ho ha hl _ _ _ _ _ _ _ _ hτ sizes _ _ _ _ _ _ hk hr hm _ hkey _ computed _ _
      _ hz =>
    Proof.rounded_tangents hp hν ho ha hl (c := 0) hτ sizes hk hr hm hkey computed hz

/-! ## One key -/

/-- A key with score 0. -/
private def changingKey (s v w : R) : ScoredValue (Dual R) (Dual R) 1 :=
  ⟨some ⟨0, s⟩, #v[⟨v, w⟩]⟩

/-- The precision of a function that rounds nothing but weights, which each key has the format of.
-/
private def exactly : Precision R := ⟨0, 0, 0, 0, 0, .unrounded⟩

omit [Exponential R R] in
private theorem exactly_precise : Precise (exactly : Precision R) :=
  have h := Std.le_refl (0 : R)
  ⟨h, h, h, OrderedRing.zero_lt_one, h, h⟩

omit [Exponential R R] in
private theorem not_rounded {u : R} (hu : 0 ≤ u) (x : R) : Rounded u x x :=
  ⟨0, .zero hu, by grind⟩

omit [Exponential R R] in
private theorem stored_exactly (x : R) : StoredNear 0 0 x x :=
  Proof.storedNear_of_rounded (not_rounded (Std.le_refl _) x) (Std.le_refl _)

private theorem boundedRate_changingKey (s v w ε τ t φ S δ : R) :
    boundedRate [changingKey s v w] 0 ε τ t φ S δ (changingKey s v w)
      = ⟨1, ε, τ, t, φ, s, S, δ, v, w⟩ := by
  have e : (1 : R) / (1 + 0) = 1 := by grind
  simp only [boundedRate, changingKey, List.map_cons, List.map_nil, Option.map, denominator,
    sumOver_cons, sumOver_nil, weight, exp_zero, e]
  rfl

private theorem attend_changingKey (s v w : R) :
    ((attend [changingKey s v w])[0]).der = w := by
  have h := Proof.outputRate_eq_attend (cols := [()]) (x := fun _ => changingKey s v w)
    (ε := fun _ => 0) (τ := fun _ => 0) (t := fun _ => 0) (φ := fun _ => 0)
    (S := fun _ => 0) (δ := fun _ => 0)
    (c := 0)
  simp only [List.map_cons, List.map_nil, boundedRate_changingKey, outputRate, meanRate,
    sumOver_cons, sumOver_nil] at h
  rw [show ((attend [changingKey s v w])[0]).der = _ from h.symm]
  grind

/-- The claim for one key whose rate is known but for `δ`, where weights are off by `t`, and
sums and factors by `φ`, below the normal numbers. -/
theorem TangentStays.one_key
    {computes : Precision R → R → R → R → R → Nat → Nat → Nat → List Unit → (Unit → BoundedRate R) →
      R → Prop}
    {bound : Precision R → R → R → R → R → R → Nat → Nat → Nat → List (BoundedRate R) → R}
    (claim : TangentStays computes bound) {ν σ t φ s v w δ y : R} (hν : 0 ≤ ν) (hσ : 0 ≤ σ)
    (ht : 0 ≤ t) (hφ : 0 ≤ φ) {k r m : Nat}
    (h : computes ⟨0, 0, 0, 0, 0, .unrounded⟩ ν 0 0 0 k r m [()]
      (fun _ => ⟨1, 0, σ, t, φ, s, absolute s, δ, v, w⟩) y) :
    AtMost (bound ⟨0, 0, 0, 0, 0, .unrounded⟩ 0 0 0 0 0 (k + 1) r (m + 1)
      [⟨1, 0, σ, t, φ, s, absolute s, δ, v, w⟩]) (y - w) := by
  have z := Std.le_refl (0 : R)
  have h₁ := claim _ exactly_precise ν 0 0 0 hν z z z [()]
    (fun _ => changingKey s v w) (fun _ => 0) (fun _ => σ) (fun _ => t) (fun _ => φ)
    (fun _ => absolute s) (fun _ => δ) (fun _ _ => ⟨hσ, ht, hφ⟩)
    (fun _ _ => Proof.atMost_absolute s) k r m (k + 1) r (m + 1)
    (Nat.le_refl _) (Nat.le_refl _) (Nat.le_refl _)
    (fun _ => ⟨1, 0, σ, t, φ, s, absolute s, δ, v, w⟩)
    (by simp only [List.map_cons, List.map_nil, boundedRate_changingKey]) y h 0 0 y
    (stored_exactly y)
  simp only [List.map_cons, List.map_nil, attend_changingKey] at h₁
  exact h₁

private theorem of_one_key
    {computes : Precision R → R → R → R → R → Nat → Nat → Nat → List Unit → (Unit → BoundedRate R) →
      R → Prop}
    {bound : Precision R → R → R → R → R → R → Nat → Nat → Nat → List (BoundedRate R) → R}
    (claim : TangentStays computes bound) {σ t s v w δ y : R} (hσ : 0 ≤ σ) (ht : 0 ≤ t)
    (h : computes exactly 0 0 0 0 0 0 0 [()]
      (fun _ => ⟨1, 0, σ, t, 0, s, absolute s, δ, v, w⟩) y) :
    AtMost (bound exactly 0 0 0 0 0 1 0 1 [⟨1, 0, σ, t, 0, s, absolute s, δ, v, w⟩]) (y - w) :=
  claim.one_key (Std.le_refl _) hσ ht (Std.le_refl _) h

/-! ## A function -/

/-- The rate Σ p ṡ v + Σ p v̇, without μ o. -/
@[expose] def withoutMean (p : Precision R) (ν _ apart lost : R) (k r m : Nat) (cols : List Unit)
    (key : Unit → BoundedRate R) (y : R) : Prop :=
  ∃ w s x a a' c c', ComputedWeights cols key w ∧ ComputedRates cols key s ∧
    (∀ j ∈ cols, StoredProduct p (key j) (w j * s j) (x j)) ∧
    WeighedSum p ν k r m cols key s x (fun j => (key j).value) a ∧
    ComputedByValues p ν k r m cols key c ∧
    StoredNear apart lost a a' ∧ StoredNear apart lost c c' ∧
    SumOf p.unit lost (fun _ => False) id 3 [a', c'] y

omit [Exponential R R] in
private theorem one_weight {σ θ s S δ v w : R} (hθ : AtMost σ θ) :
    ComputedWeights [()] (fun _ => ⟨1, 0, σ, 0, 0, s, S, δ, v, w⟩) fun _ => 1 + θ :=
  fun _ _ => ⟨1, by
    show AtMost (1 * 0 + 0) ((1 : R) - 1)
    exact ⟨by grind, by grind⟩,
    Proof.storedNear_of_rounded ⟨θ, hθ, by grind⟩ (Std.le_refl _)⟩

omit [Exponential R R] in
private theorem one_rate {σ t s S δ v w s' : R} (h : AtMost δ (s' - s)) :
    ComputedRates [()] (fun _ => (⟨1, 0, σ, t, 0, s, S, δ, v, w⟩ : BoundedRate R)) fun _ => s' :=
  fun _ _ => h

omit [Exponential R R] in
private theorem one_near {σ t x : R} (hσ : 0 ≤ σ) (ht : 0 ≤ t) : StoredNear σ t x x :=
  Proof.storedNear_of_rounded (not_rounded hσ x) ht

omit [Exponential R R] in
private theorem one_product {σ t s S δ v w x : R} (hσ : 0 ≤ σ) (ht : 0 ≤ t) :
    StoredProduct exactly ⟨1, 0, σ, t, 0, s, S, δ, v, w⟩ x x :=
  ⟨x, one_near (Std.le_refl _) ht, one_near hσ ht⟩

omit [Exponential R R] in
private theorem one_sum {σ t s S δ v w' w y : R} {b : Unit → R} (ht : 0 ≤ t) :
    WeighedSum exactly 0 0 0 0 [()]
    (fun _ => ⟨1, 0, σ, t, 0, s, S, δ, v, w'⟩) b (fun _ => w) (fun _ => y) (w * y) :=
  ⟨fun _ => w * y, fun _ _ => one_near (Std.le_refl _) ht, .one⟩

omit [Exponential R R] in
private theorem sum_of_two (x y : R) : SumOf 0 0 (fun _ => False) id 3 [x, y] (x + y) :=
  .add (xs := [x]) (ys := [y]) .one .one (not_rounded (Std.le_refl _) x)
    (not_rounded (Std.le_refl _) y)

omit [Exponential R R] in
private theorem sum_of_three (x y z : R) : SumOf 0 0 (fun _ => False) id 3 [x, y, z] (x + y + z) :=
  .add (k := 2) (xs := [x, y]) (ys := [z])
    (.add (xs := [x]) (ys := [y]) .one .one (not_rounded (Std.le_refl _) x)
      (not_rounded (Std.le_refl _) y)) .one (not_rounded (Std.le_refl _) _)
    (not_rounded (Std.le_refl _) z)

omit [Exponential R R] in
/-- Of one key the tolerance is that of these numbers. -/
private theorem one_key_tolerance (σ s S δ v w : R) (hv : absolute v = v) (hw : absolute w = w) :
    storedTangentTolerance exactly 0 0 0 0 0 1 0 1 [⟨1, 0, σ, 0, 0, s, S, δ, v, w⟩]
      = ((1 + σ) ^ 2 * (S + δ) - S) * v
        + (((1 + σ) ^ 2 * (S + δ) - S) * ((1 + σ) ^ 2 * v) + S * (((1 + σ) ^ 2 - 1) * v))
        + ((1 + σ) ^ 2 - 1) * w := by
  simp only [storedTangentTolerance, tangentTolerance, meanRateTolerance, weighedError, weighedLoss,
    rateFactor, sumOver_cons, sumOver_nil, Proof.power_eq, exactly, hv, hw, Semiring.add_zero,
    Semiring.one_pow, Semiring.zero_mul, Semiring.mul_zero]
  generalize (1 + σ) ^ 2 = F
  grind

omit [Exponential R R] in
private theorem absolute_of_zero : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

theorem withoutMean_refuted : ¬ TangentStays (R := R) withoutMean := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have h := of_one_key claim (σ := 0) (t := 0) (s := 1) (v := 1) (w := 0) (δ := 0) (y := 1) z z
    ⟨fun _ => 1 + 0, fun _ => 1, fun _ => (1 + 0) * 1, _, _, _, _, one_weight (.zero z),
      one_rate ⟨by grind, by grind⟩, fun _ _ => one_product z z, one_sum z,
      ⟨_, one_weight (.zero z), one_sum z⟩, stored_exactly _, stored_exactly _, by
        have := sum_of_two ((1 + 0) * 1 * 1 : R) ((1 + 0) * 0)
        rwa [show (1 + 0) * 1 * 1 + (1 + 0) * 0 = (1 : R) by grind] at this⟩
  rw [one_key_tolerance _ _ _ _ _ _ absolute_one absolute_of_zero, absolute_one] at h
  have := h.2
  clear claim h
  grind

/-! ## Bounds -/

/-- A bound that does not count weights that are stored. -/
@[expose] def storedNotCounted (p : Precision R) (u η output apart lost : R)
    (roundings rescalings losses : Nat) (keys : List (BoundedRate R)) : R :=
  storedTangentTolerance p u η output apart lost roundings rescalings losses
    (keys.map fun k => { k with stored := 0 })

theorem storedNotCounted_refuted :
    ¬ TangentStays (R := R) ComputedTangent storedNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have o := Std.le_of_lt h₀
  have h := of_one_key claim (σ := 1) (t := 0) (s := 0) (v := 0) (w := 1) (δ := 0) (y := 2) o z
    (.inside (w := fun _ => 1 + 0) (s := fun _ => 0) (t := fun _ => 0 - (1 + 0) * 0)
      (x := fun _ => (1 + 0) * (0 - (1 + 0) * 0))
      ⟨_, _, _, one_weight (.zero o), one_rate (s' := 0) ⟨by grind, by grind⟩,
        fun _ _ => one_product o z, .one⟩
      (one_weight (.zero o)) (one_rate ⟨by grind, by grind⟩) (fun _ _ => stored_exactly _)
      (fun _ _ => one_product o z) (one_sum z)
      ⟨_, one_weight (θ := 1) ⟨by grind, by grind⟩, one_sum z⟩ (stored_exactly _)
      (stored_exactly _)
      (by
        have := sum_of_two ((1 + 0) * (0 - (1 + 0) * 0) * 0 : R) ((1 + 1) * 1)
        rwa [show (1 + 0) * (0 - (1 + 0) * 0) * 0 + (1 + 1) * 1 = (2 : R) by grind] at this))
  rw [storedNotCounted, List.map_cons, List.map_nil,
    one_key_tolerance _ _ _ _ _ _ absolute_of_zero absolute_one, absolute_of_zero] at h
  have := h.2
  clear claim h
  grind

/-- A bound that takes the mean rate to be exact. -/
@[expose] def meanExact (p : Precision R) (_ _ output apart _ : R)
    (roundings rescalings losses : Nat) (keys : List (BoundedRate R)) : R :=
  let factor := rateFactor p roundings rescalings * (1 + apart)
  let value := fun k : BoundedRate R => absolute k.value
  let unstored := weighedError factor losses (fun _ => 1) (fun _ => 0) value keys
  let outputError := unstored
    + output * (absolute (sumOver (fun k => k.weight * k.value) keys) + unstored)
  weighedError factor losses (·.size) (·.rateError) value keys
    + sumOver (fun k => k.weight * k.size) keys * outputError
    + weighedError factor losses (fun _ => 1) (fun _ => 0) (fun k => absolute k.valueRate) keys

omit [Exponential R R] in
/-- Of one key with value 1 whose rate 0 is known but for 1, it is 1. -/
private theorem one_key_meanExact :
    meanExact (exactly : Precision R) 0 0 0 0 0 1 0 1 [⟨1, 0, 0, 0, 0, 0, 0, 1, 1, 0⟩] = 1 := by
  simp only [meanExact, weighedError, weighedLoss, rateFactor, sumOver_cons, sumOver_nil,
    Proof.power_eq, exactly, absolute_one, absolute_of_zero, Semiring.add_zero, Semiring.one_pow,
    Semiring.zero_mul, Semiring.mul_one, Semiring.mul_zero]
  grind

theorem meanExact_refuted : ¬ TangentStays (R := R) ComputedTangent meanExact := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have h := of_one_key claim (σ := 0) (t := 0) (s := 0) (v := 1) (w := 0) (δ := 1) (y := 2) z z
    (.outside (w := fun _ => 1 + 0) (s := fun _ => 1) (x := fun _ => (1 + 0) * 1)
      (w' := fun _ => 1 + 0)
      ⟨_, _, _, one_weight (.zero z), one_rate (s' := -1) ⟨by grind, by grind⟩,
        fun _ _ => one_product z z, .one⟩
      (one_weight (.zero z)) (one_rate ⟨by grind, by grind⟩) (fun _ _ => one_product z z)
      (one_sum z) (one_weight (.zero z)) (one_sum z) (stored_exactly _) (stored_exactly _)
      ⟨_, one_weight (.zero z), one_sum z⟩ (stored_exactly _) (stored_exactly _)
      (stored_exactly _) (by
        have := sum_of_three ((1 + 0) * 1 * 1 : R) (-((1 + 0) * -1 * ((1 + 0) * 1)))
          ((1 + 0) * 0)
        rwa [show (1 + 0) * 1 * 1 + -((1 + 0) * -1 * ((1 + 0) * 1)) + (1 + 0) * 0 = (2 : R) by
          grind] at this))
  rw [absolute_of_zero, one_key_meanExact] at h
  have := h.2
  clear claim h
  grind

/-- A bound of weights and products that are normal numbers all the way. -/
@[expose] def tinyNotCounted (p : Precision R) (u η output apart lost : R)
    (roundings rescalings losses : Nat) (keys : List (BoundedRate R)) : R :=
  storedTangentTolerance p u η output apart lost roundings rescalings losses
    (keys.map fun k => { k with tiny := 0 })

/-- A weight 1 that comes to 2 where it may be off by 1 below the normal numbers. -/
theorem tinyNotCounted_refuted :
    ¬ TangentStays (R := R) ComputedTangent tinyNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have o := Std.le_of_lt h₀
  have weights : ∀ a : R, AtMost 1 (a - 1) → ComputedWeights [()]
      (fun _ => (⟨1, 0, 0, 1, 0, 0, absolute 0, 0, 0, 1⟩ : BoundedRate R)) fun _ => a :=
    fun a ha _ _ => ⟨a, by
      show AtMost (1 * 0 + 1) (a - 1)
      exact ha.mono (by grind), one_near z o⟩
  have h := of_one_key claim (σ := 0) (t := 1) (s := 0) (v := 0) (w := 1) (δ := 0) (y := 2) z o
    (.inside (w := fun _ => 1) (s := fun _ => 0) (t := fun _ => 0 - 1 * 0)
      (x := fun _ => 1 * (0 - 1 * 0))
      ⟨_, _, _, weights 1 ⟨by grind, by grind⟩, one_rate (s' := 0) ⟨by grind, by grind⟩,
        fun _ _ => one_product z o, .one⟩
      (weights 1 ⟨by grind, by grind⟩) (one_rate ⟨by grind, by grind⟩)
      (fun _ _ => stored_exactly _) (fun _ _ => one_product z o) (one_sum o)
      ⟨_, weights 2 ⟨by grind, by grind⟩, one_sum o⟩ (stored_exactly _) (stored_exactly _)
      (by
        have := sum_of_two (1 * (0 - 1 * 0) * 0 : R) (2 * 1)
        rwa [show 1 * (0 - 1 * 0) * 0 + 2 * 1 = (2 : R) by grind] at this))
  rw [tinyNotCounted, List.map_cons, List.map_nil,
    one_key_tolerance _ _ _ _ _ _ absolute_of_zero absolute_one, absolute_of_zero] at h
  have := h.2
  clear claim h weights
  grind

/-! ## Rates of scores -/

/-- The claim of `rounded_score_rate`, of any bound of the rate of a score that is not changed, from
precision, formats, additions and what is known of the rate. -/
abbrev ScoreRateStays (R : Type u) [OrderedField R]
    (bound : Precision R → ScoreFormats R → Nat → BoundedScoreRate R → R) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R), Precise p → PreciseFormats f → 0 ≤ f.scores →
    0 ≤ f.scoresTiny → ∀ ν : R, 0 ≤ ν →
    ∀ (d additions : Nat) (scale : R) (q dq k dk : Vec R d) (y : R),
    ScoreRateRun p f ν (boundedScoreRate p f ν additions scale q dq k dk) y →
    AtMost (bound p f additions (boundedScoreRate p f ν additions scale q dq k dk))
      (y - (boundedScoreRate p f ν additions scale q dq k dk).rate)

omit [Exponential R R] in
/-- Positive control: the bound of the theorem. -/
theorem scoreRateError_stays : ScoreRateStays R fun _ _ _ b => b.error :=
  fun _ _ hp hf hs hη _ hν _ _ _ _ _ _ _ _ run =>
    (Proof.rounded_score_rate hp hf hs hη hν run).2

omit [Exponential R R] in
/-- A scale of 1 that nothing is multiplied by. -/
private theorem unscaled {p : Precision R} (hp : Precise p) : RateScaledBy p 1 1 1 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have u := hp.unit
  have one : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute (1 : R))) (1 : R) := by
    rw [absolute_one, show max (1 : R) 1 = 1 by rw [OrderedField.max_def]; split <;> rfl,
      Semiring.mul_one]
    have := OrderedField.one_le_pow (x := 1 + p.unit) (by grind) 3
    exact ⟨by grind, this⟩
  have one' : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute (1 : R))) (1 * 1 : R) := by
    rwa [Semiring.mul_one]
  refine ⟨?_, one, one', one'⟩
  rw [show (1 : R) * 1 * 1 = 1 by grind]
  exact ⟨1, ⟨1, ⟨1, rfl, not_rounded u 1⟩, not_rounded u 1⟩, not_rounded u 1⟩

/-- A bound in proportion to the rate, of which terms may cancel. -/
@[expose] def inProportion (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (b : BoundedScoreRate R) : R :=
  (scoreRateFactor p f additions - 1) * absolute b.rate

omit [Exponential R R] in
theorem inProportion_refuted : ¬ ScoreRateStays R inProportion := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have precise : Precise (⟨0, 1, 0, 0, 0, .unrounded⟩ : Precision R) :=
    ⟨z, Std.le_of_lt h₀, z, h₀, z, z⟩
  have rate : (boundedScoreRate (⟨0, 1, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 0 1
      1 #v[-1] #v[1] #v[1] #v[1]).rate = 0 := by
    show (1 : R) * ((1 * 1 + 0) + (-1 * 1 + 0)) = 0
    grind
  have products : ∀ a b c : R, Rounded 1 (1 * a * (1 * b)) c →
      ComputedProducts (⟨0, 1, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 0 1 1 #v[a]
        #v[b] fun _ => c := fun a b c h =>
    ⟨0, 0, fun _ => 1 * a, fun _ => 1 * b, Nat.le_refl _, fun i => by
      obtain rfl : i = 0 := Subsingleton.elim ..
      rfl, fun i => by
      obtain rfl : i = 0 := Subsingleton.elim ..
      rfl, fun _ => Proof.storedNear_of_rounded h z⟩
  have run : ScoreRateRun (⟨0, 1, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 0
      (boundedScoreRate _ _ 0 1 1 #v[-1] #v[1] #v[1] #v[1]) (1 * (2 + -1)) :=
    .score (σ₁ := 1) (σ₂ := 1) (σ := 1) (z := 2 + -1) (z' := 2 + -1) (x := 1 * (2 + -1))
      (unscaled precise)
      (.together (x := fun _ => 2) (y := fun _ => -1)
        (products 1 1 2 ⟨1, ⟨by grind, Std.le_refl _⟩, by grind⟩)
        (products (-1) 1 (-1) ⟨0, .zero (Std.le_of_lt h₀), by grind⟩)
        (.add (k := 0) (xs := [2]) (ys := [-1]) .one .one
          (not_rounded (Std.le_of_lt h₀) _) (not_rounded (Std.le_of_lt h₀) _)))
      (stored_exactly _) (not_rounded z _) (stored_exactly _)
  have h := (claim _ _ precise ⟨z, z⟩ z z 0 z 1 1 1 _ _ _ _ _ run).2
  rw [inProportion, rate, absolute_of_zero] at h
  clear claim run products rate precise
  grind

/-- A bound of rates that are normal numbers all the way. -/
@[expose] def withoutUnderflow (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (b : BoundedScoreRate R) : R :=
  (scoreRateFactor p f additions - 1) * b.size

omit [Exponential R R] in
/-- A rate of 0 as an operand of 0 that is stored as 1 makes it. -/
theorem withoutUnderflow_refuted : ¬ ScoreRateStays R withoutUnderflow := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have precise := exactly_precise (R := R)
  have products : ∀ x : Nat → R, StoredTimes exactly ⟨0, 1, 0, 1, 1, 0⟩ 1 (1 * 0 : R) (x 0) →
      ComputedProducts (exactly : Precision R) ⟨0, 1, 0, 1, 1, 0⟩ 0 1 1 #v[0]
        #v[1] fun _ => x 0 * (1 * 1) := fun x h =>
    ⟨1, 0, fun _ => x 0, fun _ => 1 * 1, Nat.le_refl _, fun i => by
      obtain rfl : i = 0 := Subsingleton.elim ..
      exact h, fun i => by
      obtain rfl : i = 0 := Subsingleton.elim ..
      rfl, fun _ => stored_exactly _⟩
  have stored : ∀ c : R, AtMost 1 c → StoredTimes exactly ⟨0, 1, 0, 1, 1, 0⟩ 1 (1 * 0 : R) c :=
    fun c h => ⟨1 * 0, 1 * 0, rfl, not_rounded z _, 1 * 0, not_rounded z _, by
      rwa [show c - 1 * 0 = c by grind]⟩
  have run : ScoreRateRun (exactly : Precision R) ⟨0, 1, 0, 1, 1, 0⟩ 0
      (boundedScoreRate _ _ 0 1 1 #v[0] #v[0] #v[1] #v[1]) (1 * (1 * (1 * 1) + 0 * (1 * 1))) :=
    .score (σ₁ := 1) (σ₂ := 1) (σ := 1) (unscaled precise)
      (.together (x := fun _ => 1 * (1 * 1)) (y := fun _ => 0 * (1 * 1))
        (products (fun _ => 1) (stored 1 ⟨by grind, Std.le_refl _⟩))
        (products (fun _ => 0) (stored 0 ⟨by grind, by grind⟩))
        (.add (k := 0) (xs := [1 * (1 * 1)]) (ys := [0 * (1 * 1)]) .one .one
          (not_rounded z _) (not_rounded z _)))
      (stored_exactly _) (not_rounded z _) (stored_exactly _)
  have h := (claim _ _ precise ⟨z, Std.le_of_lt h₀⟩ z z 0 z 1 1 1 _ _ _ _ _ run).2
  have rate : (boundedScoreRate (exactly : Precision R) ⟨0, 1, 0, 1, 1, 0⟩ 0 1 1 #v[0] #v[0] #v[1]
      #v[1]).rate = 0 := by
    show (1 : R) * ((0 * 1 + 0) + (0 * 1 + 0)) = 0
    grind
  have size : (boundedScoreRate (exactly : Precision R) ⟨0, 1, 0, 1, 1, 0⟩ 0 1 1 #v[0] #v[0] #v[1]
      #v[1]).size = 0 := by
    show absolute (1 : R) * ((absolute 0 * absolute 1 + 0) + (absolute 0 * absolute 1 + 0)) = 0
    rw [absolute_of_zero]
    generalize absolute (1 : R) = x
    grind
  rw [withoutUnderflow, rate, size] at h
  clear claim run products rate size precise stored
  grind

end Attention.WrongVariants
