module

public import Attention.WrongVariants.RoundedTangents

public section

/-! # Wrong variants of tangents whose factors and sums underflow

Bounds in which no factor by which a sum is rescaled, or no sum of products, is flushed to 0. Over
every ordered field, for every exponential.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

private theorem flushed_kept {u : R} (hu : 0 ≤ u) (x : R) : Rounded u x x :=
  ⟨0, .zero hu, by grind⟩

private theorem flushed_stored {η : R} (hη : 0 ≤ η) (x : R) : StoredNear 0 η x x :=
  Proof.storedNear_of_rounded (flushed_kept (Std.le_refl _) x) hη

private theorem flushed_absolute : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

/-- A bound of sums and factors that are normal numbers all the way. -/
@[expose] def flushedNotCounted (p : Precision R) (u η output apart lost : R)
    (roundings rescalings losses : Nat) (keys : List (BoundedRate R)) : R :=
  storedTangentTolerance p u η output apart lost roundings rescalings losses
    (keys.map fun k => { k with flushed := 0 })

/-- Of one key with weight 1, whose value alone changes, it is 0. -/
private theorem one_key_flushedNotCounted :
    flushedNotCounted (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) 0 0 0 0 0 2 1 3
      [⟨1, 0, 0, 0, 1, 0, 0, 0, 0, 1⟩] = 0 := by
  simp only [flushedNotCounted, List.map_cons, List.map_nil, storedTangentTolerance,
    tangentTolerance, meanRateTolerance, weighedError, weighedLoss, rateFactor, sumOver_cons,
    sumOver_nil, Proof.power_eq, flushed_absolute, Semiring.add_zero, Semiring.one_pow,
    Semiring.zero_mul, Semiring.mul_zero, Semiring.mul_one]
  grind

/-- A rate 1 of a value whose weight is 1, which comes to 0 where the factor 1 by which the sum is
rescaled may be off by 1. -/
theorem flushedNotCounted_refuted [Exponential R R] :
    ¬ TangentStays (R := R) ComputedTangent flushedNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have o := Std.le_of_lt h₀
  let key : Unit → BoundedRate R := fun _ => ⟨1, 0, 0, 0, 1, 0, absolute 0, 0, 0, 1⟩
  have weights : ComputedWeights [()] key fun _ => 1 := fun _ _ => ⟨1, by
    show AtMost (1 * 0 + 0) ((1 : R) - 1)
    exact ⟨by grind, by grind⟩, flushed_stored z 1⟩
  have rates : ComputedRates [()] key fun _ => 0 := fun _ _ => ⟨by
    show -(0 : R) ≤ 0 - 0
    grind, by
    show (0 : R) - 0 ≤ 0
    grind⟩
  have product : ∀ x : R, StoredProduct ⟨0, 0, 0, 0, 0, .unrounded⟩ (key ()) x x := fun x =>
    ⟨x, flushed_stored z x, flushed_stored z x⟩
  have whole : (1 : R) * (1 * 1) = 1 * 1 := by grind
  have lost : AtMost (sumLoss (key ()) (1 * 1)) ((1 : R) * (1 * 1)) := by
    show AtMost ((1 : R) * (1 + 2 * absolute (1 * 1))) (1 * (1 * 1))
    have := Proof.absolute_nonneg (1 * 1 : R)
    exact ⟨by grind, by grind⟩
  have values : ComputedByValues ⟨0, 0, 0, 0, 0, .unrounded⟩ 1 1 1 2 [()] key (0 : R) := by
    refine ⟨_, weights, fun _ => 1 * (1 * 1), fun _ _ => ?_, ?_⟩
    · show StoredNear (0 : R) 0 (1 * 1) (1 * (1 * 1))
      rw [whole]
      exact flushed_stored z _
    · show RescaledSum (0 : R) 0 1 1 1 2
        ([((1 : R) * 1, sumLoss (key ()) (1 * 1))].map fun x => ((1 : R) * x.1, x.2)) 0
      exact .rescale (c := 1) (c' := 0) (z := 1 * 1) (xs := [(1 * 1, sumLoss (key ()) (1 * 1))])
        .one ⟨by grind, Std.le_refl _⟩ ⟨by grind, by grind⟩
        ⟨1, flushed_kept z 1, ⟨by grind, by grind⟩⟩
        (fun x hx => by
          rw [List.mem_singleton] at hx
          subst hx
          exact lost)
        (by
          rw [show (0 : R) * (1 * 1) = 0 by grind]
          refine flushed_stored ?_ 0
          rw [sumOver_cons, sumOver_nil, Semiring.add_zero]
          exact lost.nonneg)
  have h : AtMost (flushedNotCounted (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) 0 0 0 0 0 2 1 3
      [⟨1, 0, 0, 0, 1, 0, absolute 0, 0, 0, 1⟩]) (0 - 1) :=
    claim.one_key (ν := 1) (y := 0) o z z o (k := 1) (r := 1) (m := 2)
    (.inside (w := fun _ => 1) (s := fun _ => 0) (t := fun _ => 0 - 1 * 0)
      (x := fun _ => 1 * (0 - 1 * 0)) (a := 1 * (0 - 1 * 0) * 0) (c := 0)
      ⟨_, _, _, weights, rates, fun _ _ => product _, .one⟩ weights rates
      (fun _ _ => flushed_stored o _) (fun _ _ => product _)
      ⟨fun _ => 1 * (0 - 1 * 0) * 0, fun _ _ => flushed_stored z _, .one⟩ values
      (flushed_stored z _) (flushed_stored z _) (by
        have h : SumOf (0 : R) 0 (fun _ => False) id 3 [1 * (0 - 1 * 0) * 0, 0]
            (1 * (0 - 1 * 0) * 0 + 0) :=
          .add (xs := [1 * (0 - 1 * 0) * 0]) (ys := [0]) .one .one (flushed_kept z _)
            (flushed_kept z _)
        rwa [show (1 : R) * (0 - 1 * 0) * 0 + 0 = 0 by grind] at h))
  rw [flushed_absolute, one_key_flushedNotCounted] at h
  have := h.1
  clear claim h weights rates product lost values whole
  grind

/-- The bound of `rounded_score_rate` with ν once for each product, and none for the sums. -/
@[expose] def productsAlone {d : Nat} (p : Precision R) (f : ScoreFormats R) (ν : R)
    (additions : Nat) (scale : R) (q dq k dk : Vec R d) : R :=
  (boundedScoreRate p f (ν / 2) additions scale q dq k dk).error

private theorem flushed_product (q k : Vec R 1) :
    rateUnderflow (numeral 0 * 0) (1 / 2) q k = 1 := by
  have e : (numeral 2 : R) = 2 := by
    rw [Proof.numeral_succ, Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  rw [rateUnderflow, show List.finRange 1 = [0] from rfl, sumOver_cons, sumOver_nil, e,
    show (numeral 0 : R) = 0 from rfl]
  generalize absolute q[(0 : Fin 1)] + absolute k[(0 : Fin 1)] + 0 * 0 = a
  grind

/-- Two products of 0 that come to 1 each, and their sum, which comes to 3. -/
theorem productsAlone_refuted : ¬ ∀ (p : Precision R) (f : ScoreFormats R), Precise p →
    PreciseFormats f → 0 ≤ f.scores → 0 ≤ f.scoresTiny → ∀ ν : R, 0 ≤ ν →
    ∀ (d additions : Nat) (scale : R) (q dq k dk : Vec R d) (y : R),
    ScoreRateRun p f ν (boundedScoreRate p f ν additions scale q dq k dk) y →
    AtMost (productsAlone p f ν additions scale q dq k dk)
      (y - (boundedScoreRate p f ν additions scale q dq k dk).rate) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have z := Std.le_refl (0 : R)
  have o := Std.le_of_lt h₀
  have product : ComputedProducts (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 1 1
      1 #v[0] #v[0] fun _ => 1 :=
    ⟨0, 0, fun _ => 1 * 0, fun _ => 1 * 0, Nat.le_refl _, fun i => by
      obtain rfl : i = 0 := Subsingleton.elim ..
      rfl, fun i => by
      obtain rfl : i = 0 := Subsingleton.elim ..
      rfl, fun _ => ⟨_, flushed_kept z _, ⟨by grind, by grind⟩⟩⟩
  have one : max (1 : R) (absolute 1) = 1 := by
    rw [Proof.absolute_of_nonneg o, OrderedField.max_def]
    split <;> rfl
  have scaled : RateScaledBy (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) 1 1 1 1 := by
    have h : AtMost ((1 + 0) ^ 3 * max 1 (absolute (1 : R))) 1 := by
      rw [one, Semiring.add_zero, Semiring.one_pow]
      exact ⟨by grind, by grind⟩
    have h' : AtMost ((1 + 0) ^ 3 * max 1 (absolute (1 : R))) (1 * 1) := by
      rwa [Semiring.mul_one]
    refine ⟨?_, h, h', h'⟩
    rw [show (1 : R) * 1 * 1 = 1 by grind]
    exact ⟨1, ⟨1, ⟨1, rfl, flushed_kept z 1⟩, flushed_kept z 1⟩, flushed_kept z 1⟩
  have run : ScoreRateRun (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 1
      (boundedScoreRate _ _ 1 1 1 #v[0] #v[0] #v[0] #v[0]) (1 * 3) :=
    .score scaled (.together product product (.tiny (k := 0) (xs := [1]) (ys := [1]) .one .one
      ⟨1, List.mem_singleton.mpr rfl, id⟩ ⟨1, List.mem_singleton.mpr rfl, id⟩ (flushed_kept z _)
      (flushed_kept z _) (z := 3) (by
        show AtMost (1 : R) (3 - (1 + 1))
        exact ⟨by grind, by grind⟩))) (flushed_stored z _) (flushed_kept z _) (flushed_stored z _)
  have h := (claim _ _ ⟨z, z, z, h₀, z, z⟩ ⟨z, z⟩ z z 1 o 1 1 1 _ _ _ _ _ run).2
  have rate : (boundedScoreRate (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 1 1 1
      #v[0] #v[0] #v[0] #v[0]).rate = 0 := by
    show (1 : R) * ((0 * 0 + 0) + (0 * 0 + 0)) = 0
    grind
  have bound : productsAlone (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 1 1 1
      #v[0] #v[0] #v[0] #v[0] = 2 := by
    have hF : scoreRateFactor (⟨0, 0, 0, 0, 0, .unrounded⟩ : Precision R) ⟨0, 0, 0, 0, 1, 0⟩ 1
        = 1 := by
      simp only [scoreRateFactor, operandFactor, Proof.power_eq, Semiring.add_zero,
        Semiring.one_pow, Semiring.mul_one]
    simp only [productsAlone, boundedScoreRate]
    rw [hF, flushed_product, one]
    generalize absolute (1 : R) * (magnitude #v[(0 : R)] #v[0] + magnitude #v[0] #v[0]) = S
    clear claim run product scaled rate hF one
    grind
  rw [rate, bound] at h
  clear claim run product scaled rate bound one
  grind

end Attention.WrongVariants
