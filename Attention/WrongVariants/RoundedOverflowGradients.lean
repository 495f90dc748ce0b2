module

public import Attention.Proof.Rounding.OverflowGradients
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the hypothesis that no gradient overflows

Each leaves a number out that is past the largest, which is 1 here, where nothing is rounded.
Source: docs/rounding.md, "Overflow". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

/-- A test of a query row: of its precision, its largest numbers, the bounds of weights' errors and
of slopes, and of its own. -/
abbrev RowHypothesis := (p : GradientPrecision Rat) → LargestGradient Rat → GradientCounts →
  (e slope : Rat) → {n d_v : Nat} → BackwardRow Rat n d_v → Bool

/-- What `Proof.limitedGradientRow` says of a row that fits: dS are numbers, and so are their
products with slopes. -/
abbrev ScoreGradientsAreNumbers (fits : RowHypothesis) : Prop :=
  ∀ (p : GradientPrecision Rat) (largest : LargestGradient Rat) (c : GradientCounts)
    (e slope : Rat) (n d_v : Nat) (r : BackwardRow Rat n d_v) (S X : Fin n → Option Rat),
    PreciseGradient p → r.Valid → sumOver r.weight (List.finRange n) ≤ 1 → 0 ≤ e →
    (∀ j, r.error j ≤ e) → (∀ j, absolute (r.slope j) + r.slopeError j ≤ slope) →
    fits p largest c e slope r → r.Limited p largest c S X → ∀ j, S j ≠ none ∧ X j ≠ none

/-- The test of the theorem. -/
@[expose] def wholeRow : RowHypothesis := fun p largest c e slope _ _ r =>
  gradientRowFits p largest c e slope r.factor r.value r.dO r.dL

/-- Positive control: the hypothesis of the theorem. -/
theorem gradientRowFits_right : ScoreGradientsAreNumbers wholeRow :=
  fun _ _ _ _ _ _ _ _ _ _ hp hr hsum he₀ he hs fits h j => by
    obtain ⟨S', X', e, e', -⟩ := Proof.limitedGradientRow hp hr hsum he₀ he hs fits h
    rw [e, e']
    exact ⟨nofun, nofun⟩

/-! ## What counterexamples are made of -/

/-- Nothing is rounded, and `ν` may be lost below the normal numbers. -/
private abbrev losing (ν : Rat) : GradientPrecision Rat :=
  ⟨0, 0, 0, 0, 0, 0, 0, 0, 0, ν, 0, 0, 0, 0, 0, 1⟩

private abbrev exactly : GradientPrecision Rat := losing 0

private abbrev ones : LargestGradient Rat := ⟨1, 1, 1, 1, 1, 1⟩

private abbrev few : GradientCounts := ⟨3, 4, 0⟩

private theorem losing_precise {ν : Rat} (h : 0 ≤ ν) : PreciseGradient (losing ν) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, by show (0 : Rat) < 1; decide +kernel,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, h,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _⟩

private theorem off_nothing (x : Rat) : AtMost 0 (x - x) := by
  rw [show x - x = 0 by grind]
  exact .zero (Std.le_refl _)

private theorem one_atMost : AtMost (1 : Rat) 1 := ⟨by decide +kernel, Std.le_refl _⟩

private theorem below_refl {ν : Rat} (h : 0 ≤ ν) (x : Rat) : StoredBelow 0 ν x x :=
  ⟨x, rounded_refl (Std.le_refl _) x, by rw [show x - x = 0 by grind]; exact .zero h, id⟩

private theorem limited_refl (largest x : Rat) : Limited largest (StoredBelow 0 0) x (some x) :=
  fun _ => ⟨x, rfl, below_refl (Std.le_refl _) x⟩

/-- What is past the largest number may be anything. -/
private theorem limited_past {largest x : Rat} {rounds : Rat → Rat → Prop} {y : Option Rat}
    (h : largest < absolute x) : Limited largest rounds x y := fun hx => by
  have := Proof.absolute_le hx
  grind

/-- A sum of one number. -/
private theorem sum_one {ν x : Rat} {terms : Fin 1 → Rat} {k : Nat} (h : some x = some (terms 0)) :
    LimitedFlushedSum 1 0 ν terms k (List.finRange 1) (some x) := by
  rw [show List.finRange 1 = [0] by decide, h]
  exact .one

/-- A sum of two numbers that is past the range. -/
private theorem sum_two {ν x y : Rat} {terms : Fin 2 → Rat} {z : Option Rat}
    (hx : some x = some (terms 0)) (hy : some y = some (terms 1))
    (h : 1 < absolute x + absolute y) :
    LimitedFlushedSum 1 0 ν terms 1 (List.finRange 2) z := by
  rw [show List.finRange 2 = [0] ++ [1] by decide]
  refine .add .one .one fun a ha b hb h' => ?_
  rw [← Option.some.inj ha, ← Option.some.inj hb, ← Option.some.inj hx, ← Option.some.inj hy] at h'
  grind

/-- A row of one key. -/
private abbrev oneKey {d_v : Nat} (weight error factor slope dL : Rat) (value dO : Vec Rat d_v) :
    BackwardRow Rat 1 d_v :=
  ⟨fun _ => weight, fun _ => error, fun _ => factor, fun _ => slope, fun _ => 0, fun _ => value, dO,
    dL⟩

private theorem limited_weight {weight η lost : Rat} (hη : 0 ≤ η) (h : 0 ≤ lost) :
    LimitedWeight 1 1 0 η weight 0 lost (some weight) := by
  refine ⟨some weight, fun _ => ⟨weight, rfl, ?_⟩, fun a ha => ?_⟩
  · rw [show weight - weight = 0 by grind]
    refine .zero ?_
    rw [tinyOf]
    split <;> grind
  · obtain rfl := Option.some.inj ha
    exact fun _ => ⟨weight, rfl, below_refl hη weight⟩

/-- Nothing is lost where a weight of D is stored, and as much of it as an error has it. -/
private theorem mean_nonneg {ν e : Rat} (hν : 0 ≤ ν) (he : 0 ≤ e) :
    0 ≤ (losing ν).storedTiny * meanGrowth (losing ν) few e ∧
      0 ≤ numeral 2 * meanLost (losing ν) few e := by
  have h := Proof.nonneg_of_one_le (Proof.one_le_meanGrowth (losing_precise hν) few he)
  exact ⟨Rat.mul_nonneg (Std.le_refl _) h,
    Rat.mul_nonneg (Proof.numeral_nonneg _) (Rat.mul_nonneg
      (Rat.mul_nonneg (Proof.numeral_nonneg _) hν) h)⟩

/-- A weight of which D is made. -/
private theorem limited_meanWeight {ν : Rat} (hν : 0 ≤ ν) {d_v : Nat} {weight factor slope dL : Rat}
    {value dO : Vec Rat d_v} (j : Fin 1) :
    (oneKey weight 0 factor slope dL value dO).LimitedMeanWeight (losing ν) ones few j
      (some weight) :=
  limited_weight (mean_nonneg hν (Std.le_refl _)).1 (mean_nonneg hν (Std.le_refl _)).2

/-- A dP of one component. -/
private theorem limited_product (dO v : Rat) :
    LimitedProduct exactly ones few 1 #v[dO] #v[v] (some (dO * v)) := by
  refine ⟨0, fun _ => some (dO * v), some (dO * v), some (dO * v), by decide, by decide,
    fun i => ?_, fun terms h => sum_one (h 0), fun s hs _ => ?_, fun a ha => ?_⟩
  · have e : i = 0 := by omega
    subst e
    exact limited_refl 1 _
  · obtain rfl := Option.some.inj hs
    refine ⟨1, dO * v, rfl, off_nothing 1, ?_⟩
    rw [show dO * v - 1 * (dO * v) * 1 = 0 by grind]
    exact .zero (Std.le_refl _)
  · obtain rfl := Option.some.inj ha
    exact limited_refl 1 _

/-- D of one key. -/
private theorem limited_mean (weight slope dL dO v : Rat) :
    LimitedMean exactly ones few (oneKey weight 0 1 slope dL #v[v] #v[dO])
      (some (weight * (dO * v))) := by
  refine .ofProducts (k := 0) (w := fun _ => some weight) (x := fun _ => some (dO * v))
    (y := fun _ => some (weight * (dO * v))) (limited_meanWeight (Std.le_refl _))
    (fun j => limited_product dO v) (fun j a ha b hb => ?_) (fun terms h => sum_one (h 0))
    (by decide)
  obtain rfl := Option.some.inj ha
  obtain rfl := Option.some.inj hb
  exact limited_refl 1 _

/-- A row whose G is past the range. -/
private theorem limited_inner {weight dL dO v : Rat} (h : 1 < absolute (dO * v)
    + absolute (-(weight * (dO * v)) + dL)) :
    (oneKey weight 0 1 1 dL #v[v] #v[dO]).Limited exactly ones few (fun _ => none)
      (fun _ => none) := by
  refine ⟨_, limited_mean weight 1 dL dO v, fun j => ⟨0, 0, some (dO * v), none, some weight,
    none, 1, by decide, limited_product dO v, fun a ha b hb => ?_,
    limited_weight (Std.le_refl _) (Std.le_refl _), nofun, off_nothing 1, nofun, nofun⟩⟩
  obtain rfl := Option.some.inj ha
  obtain rfl := Option.some.inj hb
  refine .add (k := 2) (xs := [dO * v]) (ys := [-(weight * (dO * v)), dL]) .one
    (.add (k := 1) (xs := [-(weight * (dO * v))]) (ys := [dL])
      (z := some (-(weight * (dO * v)) + dL)) .one .one fun a ha b hb _ => ?_)
    fun a ha b hb h' => ?_
  · obtain rfl := Option.some.inj ha
    obtain rfl := Option.some.inj hb
    exact ⟨_, _, rounded_refl (Std.le_refl _) _, rounded_refl (Std.le_refl _) _, rfl⟩
  · rw [← Option.some.inj ha, ← Option.some.inj hb] at h'
    simp only [id] at h'
    grind

/-- A row whose dP is past the range. -/
private theorem limited_outer {ν : Rat} (hν : 0 ≤ ν) {d_v : Nat} {weight factor dL : Rat}
    {value dO : Vec Rat d_v} (h : LimitedProduct (losing ν) ones few factor dO value none) :
    (oneKey weight 0 factor 1 dL value dO).Limited (losing ν) ones few (fun _ => none)
      (fun _ => none) := by
  refine ⟨none, .ofProducts (k := 0) (w := fun _ => some weight) (x := fun _ => none)
    (y := fun _ => none) (limited_meanWeight hν)
    (fun _ => h) (fun _ _ _ _ hb => (nomatch hb)) (fun terms h' => (nomatch h' 0)) (by decide),
    fun j => ⟨0, 0, none, none, some weight, none, 1, by decide, h, nofun,
      limited_weight (Std.le_refl _) hν,
      fun _ _ _ hb => (nomatch hb), off_nothing 1, nofun, nofun⟩⟩

/-- A dP of one component whose product with the factor is past the range, or its product. -/
private theorem limited_past_product {factor dO v : Rat}
    (h : 1 < absolute (dO * v) ∨ 1 < absolute (factor * (dO * v))) :
    LimitedProduct exactly ones few factor #v[dO] #v[v] none := by
  by_cases h₁ : 1 < absolute (dO * v)
  · refine ⟨0, fun _ => none, none, none, by decide, by decide, fun i => ?_,
      fun terms h => (nomatch h 0), nofun, nofun⟩
    have e : i = 0 := by omega
    subst e
    exact limited_past h₁
  · refine ⟨0, fun _ => some (dO * v), some (dO * v), none, by decide, by decide, fun i => ?_,
      fun terms h => sum_one (h 0), fun s hs h₂ => ?_, nofun⟩
    · have e : i = 0 := by omega
      subst e
      exact limited_refl 1 _
    · obtain rfl := Option.some.inj hs
      have e : absolute (factor * (dO * v)) * (1 + (exactly).factors)
          = absolute (factor * (dO * v)) := by
        show _ * (1 + (0 : Rat)) = _
        grind
      rw [e] at h₂
      exact absurd h₂ (by grind)

private theorem refute_rows {fits : RowHypothesis} {ν : Rat} (hν : 0 ≤ ν) {d_v : Nat}
    {weight error factor slope dL : Rat} {value dO : Vec Rat d_v} (hw : 0 ≤ weight ∧ weight ≤ 1)
    (hf : 0 ≤ error ∧ 0 ≤ factor)
    (h : fits (losing ν) ones few error (absolute slope)
      (oneKey weight error factor slope dL value dO)) {S : Fin 1 → Option Rat}
    (limited : (oneKey weight error factor slope dL value dO).Limited (losing ν) ones few S
      (fun _ => none)) : ¬ ScoreGradientsAreNumbers fits := fun claim =>
  (claim (losing ν) ones few error (absolute slope) 1 d_v _ _ _ (losing_precise hν)
    ⟨fun _ => hw.1, fun _ => hf.2, fun _ => hf.1⟩
    (by
      show weight + 0 ≤ 1
      have := hw.2
      grind) hf.1 (fun _ => Std.le_refl _) (fun _ => by
      show absolute slope + 0 ≤ absolute slope
      grind) h limited 0).2 rfl

/-! ## Rows -/

/-- dS is looked at as it comes out, from G, and not what it is made of. -/
@[expose] def scoreGradientAlone : RowHypothesis := fun _ largest _ _ _ _ _ r =>
  (List.finRange _).all fun j => decide (absolute (r.scoreGradient j) ≤ largest.accumulator)

/-- dP = 2 · 1 is past 1, and its weight is 0. -/
theorem scoreGradientAlone_refuted : ¬ ScoreGradientsAreNumbers scoreGradientAlone :=
  refute_rows (ν := 0) (weight := 0) (error := 0) (factor := 1)
    (slope := 1) (dL := 0) (value := #v[1]) (dO := #v[2])
    (by decide +kernel) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (limited_outer (by decide +kernel) (limited_past_product (by decide +kernel)))

/-- dP is looked at as it comes out, of products that may cancel. -/
@[expose] def cancelledProducts : RowHypothesis := fun _ largest _ _ _ _ _ r =>
  (List.finRange _).all fun j =>
    decide (absolute (r.factor j * Vec.dot r.dO (r.value j)) ≤ largest.accumulator)
      && decide (absolute r.dL ≤ largest.accumulator)

/-- 1 · 1 − 1 · 1 is 0, and the sizes of its two terms are 2 together. -/
theorem cancelledProducts_refuted : ¬ ScoreGradientsAreNumbers cancelledProducts :=
  refute_rows (ν := 0) (weight := 1) (error := 0) (factor := 1)
    (slope := 1) (dL := 0) (value := #v[1, -1]) (dO := #v[1, 1])
    (by decide +kernel) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (limited_outer (by decide +kernel) ⟨1, fun i => some (#v[1, -1] : Vec Rat 2)[i], none, none,
      by decide, by decide, fun i _ => ⟨_, rfl, by
        have e : ∀ i : Fin 2, (#v[1, 1] : Vec Rat 2)[i] * (#v[1, -1] : Vec Rat 2)[i]
            = (#v[1, -1] : Vec Rat 2)[i] := by
          decide +kernel
        rw [e]
        exact below_refl (Std.le_refl _) _⟩,
      fun terms h => sum_two (h 0) (h 1) (by decide +kernel), nofun, nofun⟩)

/-- The factor of dropout is left out. -/
@[expose] def withoutFactor : RowHypothesis := fun p largest c e slope _ _ r =>
  gradientRowFits p largest c e slope (fun _ => 1) r.value r.dO r.dL

/-- 8 · 1/2 · 1/2 is past 1. -/
theorem withoutFactor_refuted : ¬ ScoreGradientsAreNumbers withoutFactor :=
  refute_rows (ν := 0) (weight := 1) (error := 0) (factor := 8)
    (slope := 1) (dL := 0) (value := #v[1 / 2])
    (dO := #v[1 / 2]) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (by decide +kernel) (limited_outer (by decide +kernel)
      (limited_past_product (by decide +kernel)))

/-- Only what comes of dP is looked at, times the factor of dropout. -/
@[expose] def droppedProducts : RowHypothesis := fun p largest c e _ _ _ r =>
  decide (scoreGradientSize p e (rowInnerSize p c e r.factor r.value r.dO r.dL) 1
    ≤ largest.accumulator)

/-- The product 2 of a dropped key is past 1, and its factor is 0. -/
theorem droppedProducts_refuted : ¬ ScoreGradientsAreNumbers droppedProducts :=
  refute_rows (ν := 0) (weight := 1) (error := 0) (factor := 0)
    (slope := 1) (dL := 0) (value := #v[1]) (dO := #v[2])
    (by decide +kernel) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (limited_outer (by decide +kernel) (limited_past_product (by decide +kernel)))

/-- Sums lose nothing, as with gradual underflow. -/
@[expose] def gradualSums : RowHypothesis := fun p largest c e _ n _ r =>
  ((List.finRange n).all fun j => decide (power (1 + p.accumulation) c.products
      * (magnitude r.dO (r.value j) + numeral c.products * p.tiny) ≤ largest.accumulator))
    && decide (scoreGradientSize p e (rowInnerSize p c e r.factor r.value r.dO r.dL) 1
      ≤ largest.accumulator)

/-- Three products of a dropped key that are 3 · 1/100 less than 1 together: each of them is 1/100
more, and so is the sum of the first two. -/
theorem gradualSums_refuted : ¬ ScoreGradientsAreNumbers gradualSums :=
  have product : ∀ i : Fin 3, (#v[1, 1, 1] : Vec Rat 3)[i]
      * (#v[97 / 300, 97 / 300, 97 / 300] : Vec Rat 3)[i] = 97 / 300 := by
    decide +kernel
  refute_rows (ν := 1 / 100) (weight := 1) (error := 0) (factor := 0)
    (slope := 1) (dL := 0)
    (value := #v[97 / 300, 97 / 300, 97 / 300]) (dO := #v[1, 1, 1]) (by decide +kernel)
    (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (limited_outer (by decide +kernel) ⟨2, fun _ => some (1 / 3), none, none, by decide, by decide,
      fun i _ => ⟨1 / 3, rfl, 97 / 300, by
        rw [product i]
        exact rounded_refl (Std.le_refl _) _, ⟨by decide +kernel, by decide +kernel⟩,
        fun h => by
          rw [product i] at h
          exact absurd h (by decide +kernel)⟩, fun terms h => by
        have h₀ := Option.some.inj (h 0)
        have h₁ := Option.some.inj (h 1)
        have h₂ := Option.some.inj (h 2)
        rw [show List.finRange 3 = ([0] ++ [1]) ++ [2] by decide]
        refine .add (k := 1) (.tiny (k := 0) (z := some (1 / 3 + 1 / 3 + 1 / 100)) .one .one
          ⟨0, by simp, by rw [← h₀]; decide +kernel⟩ ⟨1, by simp, by rw [← h₁]; decide +kernel⟩
          fun a ha b hb _ => ?_) .one fun a ha b hb h' => ?_
        · rw [← Option.some.inj ha, ← Option.some.inj hb, ← h₀, ← h₁]
          exact ⟨_, _, _, rounded_refl (Std.le_refl _) _, rounded_refl (Std.le_refl _) _,
            ⟨by decide +kernel, by decide +kernel⟩, rfl⟩
        · rw [← Option.some.inj ha, ← Option.some.inj hb, ← h₂] at h'
          exact absurd h' (by decide +kernel), nofun, nofun⟩)

/-- The difference of dP and D is taken to be no larger than dP. -/
@[expose] def withoutDelta : RowHypothesis := fun p largest c _ _ _ _ r =>
  decide (power (1 + p.unit) 3 * (rowOuterSize p c r.factor r.value r.dO + absolute r.dL)
    ≤ largest.accumulator)

/-- dP and D are 1, and their sizes 2 together. -/
theorem withoutDelta_refuted : ¬ ScoreGradientsAreNumbers withoutDelta :=
  refute_rows (ν := 0) (weight := 1) (error := 0) (factor := 1)
    (slope := 1) (dL := 0) (value := #v[1]) (dO := #v[1])
    (by decide +kernel) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (limited_inner (by decide +kernel))

/-- The gradient by the log-sum-exp is left out. -/
@[expose] def withoutLse : RowHypothesis := fun p largest c e slope _ _ r =>
  gradientRowFits p largest c e slope r.factor r.value r.dO 0

/-- dP and D are 0, and 2 is past 1. -/
theorem withoutLse_refuted : ¬ ScoreGradientsAreNumbers withoutLse :=
  refute_rows (ν := 0) (weight := 1) (error := 0) (factor := 1)
    (slope := 1) (dL := 2) (value := #v[0]) (dO := #v[0])
    (by decide +kernel) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (limited_inner (by decide +kernel))

/-- The sizes of weights are left out, but for their products with G. -/
@[expose] def withoutWeights : RowHypothesis := fun p largest c e _ n _ r =>
  ((List.finRange n).all fun j => outerFits p largest c (r.factor j) r.dO (r.value j))
    && decide (scoreGradientSize p e (rowInnerSize p c e r.factor r.value r.dO r.dL) 1
      ≤ largest.accumulator)

/-- A weight of 1 that is off by as much as it is may be 2, which meets 0. -/
theorem withoutWeights_refuted : ¬ ScoreGradientsAreNumbers withoutWeights :=
  refute_rows (ν := 0) (weight := 1) (error := 1) (factor := 1) (slope := 1) (dL := 0)
    (value := #v[0]) (dO := #v[0]) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (by decide +kernel) (S := fun _ => none) (by
      have weight : ∀ {η lost : Rat}, 0 ≤ lost → LimitedWeight 1 1 0 η 1 1 lost none := fun h =>
        ⟨none, fun h' => by
          rw [Proof.tinyOf_pos (by decide +kernel)] at h'
          grind, nofun⟩
      exact ⟨none, .ofProducts (k := 0) (w := fun _ => none) (x := fun _ => some (0 * 0))
        (y := fun _ => none) (fun _ => weight (mean_nonneg (Std.le_refl _)
          (by show (0 : Rat) ≤ 1; decide +kernel)).2)
        (fun _ => limited_product 0 0)
        (fun _ _ hw => (nomatch hw)) (fun _ h => (nomatch h 0)) (by decide), fun _ =>
        ⟨0, 0, some (0 * 0), none, none, none, 1, by decide, limited_product 0 0,
          fun _ _ _ h => (nomatch h), weight (Std.le_refl _), nofun, off_nothing 1, nofun, nofun⟩⟩)

/-- The product with a slope is left out. -/
@[expose] def withoutSlope : RowHypothesis := fun p largest c e _ _ _ r =>
  gradientRowFits p largest c e 1 r.factor r.value r.dO r.dL

/-- dS is 1, and 2 · 1 is past 1. -/
theorem withoutSlope_refuted : ¬ ScoreGradientsAreNumbers withoutSlope :=
  refute_rows (ν := 0) (weight := 1) (error := 0) (factor := 1) (slope := 2) (dL := 1)
    (value := #v[0]) (dO := #v[0]) (by decide +kernel) (by decide +kernel) (by decide +kernel)
    (by decide +kernel) (S := fun _ => some (1 * 1)) ⟨_, limited_mean 1 2 1 0 0, fun _ =>
      ⟨0, 1, some (0 * 0), some 1, some 1, none, 2, by decide, limited_product 0 0,
        fun a ha b hb => by
          rw [← Option.some.inj ha, ← Option.some.inj hb]
          exact .free (by decide +kernel) (.free (by decide +kernel) .one),
        limited_weight (Std.le_refl _) (Std.le_refl _), fun a ha b hb => by
          rw [← Option.some.inj ha, ← Option.some.inj hb]
          rfl, off_nothing 2, fun a ha => by
          rw [← Option.some.inj ha]
          exact ⟨_, rfl, fun b hb => by
            rw [← Option.some.inj hb]
            exact limited_past (by decide +kernel)⟩, nofun⟩⟩

/-! ## Sums -/

/-- A test of a sum over keys or queries. -/
abbrev SumHypothesis := (p : GradientPrecision Rat) → LargestGradient Rat →
  (roundings stores : Nat) → (part rest : Rat) → {n : Nat} → (y : Fin n → Rat) → Rat → Bool

/-- What `Proof.limitedGradient` says: a sum that fits is a number, no larger than that of the
result's format. -/
abbrev GradientsAreNumbers (fits : SumHypothesis) : Prop :=
  ∀ (p : GradientPrecision Rat) (largest : LargestGradient Rat) (roundings stores : Nat)
    (part rest total : Rat) (n : Nat) (b x' y : Fin n → Rat) (z : Option Rat),
    PreciseGradient p → (∀ j, AtMost (b j) (x' j)) →
    sumOver (fun j => b j * operandSize p stores part (y j)) (List.finRange n) ≤ total →
    fits p largest roundings stores part rest y total →
    LimitedGradient p largest roundings stores part rest (fun j => some (x' j)) y z →
    ∃ w, z = some w ∧ AtMost largest.output w

/-- The test of the theorem. -/
@[expose] def wholeSum : SumHypothesis := fun p largest roundings stores part rest _ y total =>
  gradientSumFits p largest roundings stores part rest y total

/-- Positive control: the hypothesis of the theorem. -/
theorem gradientSumFits_right : GradientsAreNumbers wholeSum :=
  fun _ _ _ _ _ rest _ _ _ _ _ _ hp hx ht fits h => by
    obtain ⟨w, e, -, h'⟩ := Proof.limitedGradient hp rfl (Proof.atMost_absolute rest) hx ht fits
      (fun _ => rfl) h
    exact ⟨w, e, h'⟩

/-- Only the gradient is looked at, which the scale may make small. -/
@[expose] def gradientAlone : SumHypothesis :=
  fun p largest roundings stores _ rest _ _ total =>
    decide (gradientSize p roundings stores rest total ≤ smaller largest.accumulator largest.output)

/-- (1 + 1) / 2 is 1, and the sum is past it. -/
theorem gradientAlone_refuted : ¬ GradientsAreNumbers gradientAlone := fun claim => by
  obtain ⟨_, e, -⟩ := claim exactly ones 2 0 1 (1 / 2) 2 2 (fun _ => 1) (fun _ => 1) (fun _ => 1)
    none (losing_precise (by decide +kernel)) (fun _ => one_atMost) (by decide +kernel)
    (by decide +kernel) ⟨1, 0, 0, 0, 0, fun _ => some (1 * 1), fun _ => some (1 * 1),
      fun _ => some (1 * (1 * 1)), none, none, by decide, by decide, by decide, by decide,
      fun _ => rfl, fun _ c hc => hc, fun _ c hc d hd => by
        obtain rfl := Option.some.inj hc
        obtain rfl := Option.some.inj hd
        exact limited_refl 1 _,
      fun terms h => sum_two (h 0) (h 1) (by decide +kernel), nofun, nofun⟩
  cases e

/-- What is multiplied is not looked at, only the sum and the gradient. -/
@[expose] def withoutOperands : SumHypothesis :=
  fun p largest roundings stores _ rest _ _ total =>
    decide (totalSize p roundings stores total ≤ smaller largest.accumulator largest.operands)
      && decide (gradientSize p roundings stores rest total
        ≤ smaller largest.accumulator largest.output)

/-- 2 · 1 is past 1, and meets 0. -/
theorem withoutOperands_refuted : ¬ GradientsAreNumbers withoutOperands := fun claim => by
  obtain ⟨_, e, -⟩ := claim exactly ones 1 0 2 1 0 1 (fun _ => 0) (fun _ => 0) (fun _ => 1) none
    (losing_precise (by decide +kernel)) (fun _ => .zero (Std.le_refl _)) (by decide +kernel)
    (by decide +kernel) ⟨0, 0, 0, 1, 0, fun _ => none, fun _ => none, fun _ => none, none, none,
      by decide, by decide, by decide, by decide, fun _ => ⟨_, rfl, fun a ha => by
        rw [← Option.some.inj ha]
        exact limited_past (by show (1 : Rat) < absolute (2 * 1); decide +kernel)⟩,
      nofun, nofun, fun _ h => (nomatch h 0), nofun, nofun⟩
  cases e

/-- The largest number of the result's format is left out. -/
@[expose] def withoutOutput : SumHypothesis :=
  fun p largest roundings stores part rest _ y total =>
    gradientSumFits p { largest with output := largest.accumulator } roundings stores part rest y
      total

/-- 1 · 1 is past 1/2. -/
theorem withoutOutput_refuted : ¬ GradientsAreNumbers withoutOutput := fun claim => by
  obtain ⟨w, e, h⟩ := claim exactly ⟨1, 1, 1, 1, 1, 1 / 2⟩ 1 0 1 1 1 1 (fun _ => 1) (fun _ => 1)
    (fun _ => 1) (some (1 * (1 * (1 * 1)))) (losing_precise (by decide +kernel))
    (fun _ => one_atMost) (by decide +kernel) (by decide +kernel)
    ⟨0, 0, 0, 0, 0, fun _ => some (1 * 1), fun _ => some (1 * 1), fun _ => some (1 * (1 * 1)),
      some (1 * (1 * 1)), some (1 * (1 * 1)), by decide, by decide, by decide, by decide,
      fun _ => rfl, fun _ c hc => hc, fun _ c hc d hd => by
        obtain rfl := Option.some.inj hc
        obtain rfl := Option.some.inj hd
        exact limited_refl 1 _,
      fun terms h => sum_one (h 0), fun s hs => hs, fun s hs => by
        rw [← Option.some.inj hs]
        rfl⟩
  rw [← Option.some.inj e] at h
  exact absurd h.2 (by decide +kernel)

end Attention.WrongVariants
