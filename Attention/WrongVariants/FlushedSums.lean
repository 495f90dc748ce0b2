module

public import Attention.WrongVariants.GradientStores
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of sums in gradients that are flushed to 0

Bounds that count no additions, and sums that lose more than additions may, or make something of
zeros. Source: docs/tolerances.md, "Gradients". -/

namespace Attention.WrongVariants

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-! ## Sums of products -/

/-- The claim of `rounded_presentSumOver` about two numbers, for any sum and any bound. -/
abbrev SumsOfTwoStay
    (sums : R → R → (Fin 2 → R) → Nat → List (Fin 2) → R → Prop := FlushedSum)
    (total : R → R → R → R → Nat → List (GradientTerm R) → R := totalError) : Prop :=
  ∀ (a ν : R) (roundings k : Nat), 0 ≤ a → 0 ≤ ν → numeral roundings * a < 1 →
    k + 1 ≤ roundings → 2 ≤ roundings → ∀ (x y e products : Fin 2 → R) (z : R)
      (t : Fin 2 → GradientTerm R),
    (∀ i, AtMost (t i).error (x i - e i) ∧ AtMost (t i).size (e i) ∧ (t i).other = y i) →
    (∀ i, StoredBelow a ν (x i * y i) (products i)) → sums a ν products k [0, 1] z →
    AtMost (presentError 1 (total a 0 ν 0 roundings [t 0, t 1]) [t 0, t 1])
      (z - sumOver (fun i => e i * y i) [0, 1])

/-- Positive control: the sums and the bound of the theorem. -/
theorem sumsOfTwo_stay : SumsOfTwoStay (R := R) :=
  fun _ _ _ k ha hν hc hk hn _ _ _ products _ t h hp hz =>
    Proof.rounded_presentSumOver ha hν hc (xs := [0, 1]) (t := t) (fun i _ => h i)
      ⟨k, products, hk, hn, fun i _ => hp i, hz⟩

private theorem size_of_one : AtMost (1 : R) 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨by grind, Std.le_refl _⟩

private theorem exact_number : AtMost (0 : R) (1 - 1) := ⟨by grind, by grind⟩

/-- 1 · 1 that is 1 off. -/
private theorem one_more : StoredBelow (0 : R) 1 (1 * 1) 2 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  exact ⟨1, ⟨0, .zero (Std.le_refl _), by grind⟩, ⟨by grind, by grind⟩, fun h => by grind⟩

/-- Two of them, of which the sum is 1 off, too. -/
private theorem sum_of_more : FlushedSum (0 : R) 1 (fun _ : Fin 2 => (2 : R)) 1 [0, 1] 5 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have two : (2 : R) ≠ 0 := by grind
  exact .tiny (xs := [0]) (ys := [1]) (x := 2) (y := 2) .one .one
    ⟨0, List.mem_singleton.mpr rfl, two⟩ ⟨1, List.mem_singleton.mpr rfl, two⟩
    (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _) ⟨by grind, by grind⟩

private theorem none_rounded (n : Nat) : numeral n * (0 : R) < 1 := by
  rw [Semiring.mul_zero]
  exact OrderedRing.zero_lt_one

/-- A bound that counts products, and no additions. -/
@[expose] def totalsWithoutAdditions (accumulation stored tiny storedTiny : R) (roundings : Nat)
    (terms : List (GradientTerm R)) : R :=
  totalError accumulation stored 0 storedTiny roundings terms
    + (1 + gamma roundings accumulation) * (numeral roundings * tiny)

theorem totalsWithoutAdditions_refuted :
    ¬ SumsOfTwoStay (R := R) (total := totalsWithoutAdditions) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim 0 1 2 1 (Std.le_refl _) (Std.le_of_lt h₀) (none_rounded _) (by decide)
    (by decide) (fun _ => 1) (fun _ => 1) (fun _ => 1) (fun _ => 2) 5 (fun _ => ⟨1, 0, 1⟩)
    (fun _ => ⟨exact_number, size_of_one, rfl⟩) (fun _ => one_more) sum_of_more).2
  have e : presentError 1 (totalsWithoutAdditions (0 : R) 0 1 0 2 [⟨1, 0, 1⟩, ⟨1, 0, 1⟩])
      [⟨1, 0, 1⟩, ⟨1, 0, 1⟩] ≤ 2 := by
    rw [presentError]
    split
    · grind
    · rw [totalsWithoutAdditions, totalError, gamma_zero]
      show (0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R)
        + ((0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R) + 0)
        + (1 + 0) * (0 * (absolute (1 : R) + (absolute 1 + 0)) + numeral 4 * 0)
        + (1 + 0) * (numeral 2 * 1) ≤ 2
      rw [Proof.numeral_two]
      grind
  have h₁ : (5 : R) - (1 * 1 + (1 * 1 + 0)) ≤ 2 := Std.le_trans h e
  clear claim h e
  grind

/-- Additions that may lose a hundred times as much. -/
@[expose] def losesHundred (u ν : R) (f : Fin 2 → R) (k : Nat) (xs : List (Fin 2)) (z : R) : Prop :=
  FlushedSum u (100 * ν) f k xs z

theorem losesHundred_refuted : ¬ SumsOfTwoStay (R := R) losesHundred := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have one : (1 : R) ≠ 0 := by grind
  have h := (claim 0 1 2 1 (Std.le_refl _) (Std.le_of_lt h₀) (none_rounded _) (by decide)
    (by decide) (fun _ => 1) (fun _ => 1) (fun _ => 1) (fun _ => 1) 102 (fun _ => ⟨1, 0, 1⟩)
    (fun _ => ⟨exact_number, size_of_one, rfl⟩)
    (fun _ => ⟨1, ⟨0, .zero (Std.le_refl _), by grind⟩, ⟨by grind, by grind⟩, fun h => by grind⟩)
    (.tiny (xs := [0]) (ys := [1]) (x := 1) (y := 1) .one .one ⟨0, List.mem_singleton.mpr rfl, one⟩
      ⟨1, List.mem_singleton.mpr rfl, one⟩ (rounded_refl (Std.le_refl _) _)
      (rounded_refl (Std.le_refl _) _) ⟨by grind, by grind⟩)).2
  have e : presentError 1 (totalError (0 : R) 0 1 0 2 [⟨1, 0, 1⟩, ⟨1, 0, 1⟩])
      [⟨1, 0, 1⟩, ⟨1, 0, 1⟩] ≤ 4 := by
    rw [presentError]
    split
    · grind
    · rw [totalError, gamma_zero]
      show (0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R)
        + ((0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R) + 0)
        + (1 + 0) * (0 * (absolute (1 : R) + (absolute 1 + 0)) + numeral 4 * 1) ≤ 4
      rw [Proof.numeral_four]
      grind
  have h₁ : (102 : R) - (1 * 1 + (1 * 1 + 0)) ≤ 4 := Std.le_trans h e
  clear claim h e
  grind

/-- Additions that make something of two zeros. -/
@[expose] def somethingOfZeros (u ν : R) (f : Fin 2 → R) : Nat → List (Fin 2) → R → Prop :=
  SumOf u ν (fun _ => False) f

theorem somethingOfZeros_refuted : ¬ SumsOfTwoStay (R := R) somethingOfZeros := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have zero : AtMost (0 : R) 0 := .zero (Std.le_refl _)
  have h := (claim 0 1 2 1 (Std.le_refl _) (Std.le_of_lt h₀) (none_rounded _) (by decide)
    (by decide) (fun _ => 0) (fun _ => 1) (fun _ => 0) (fun _ => 0) 1 (fun _ => ⟨0, 0, 1⟩)
    (fun _ => ⟨⟨by show -(0 : R) ≤ 0 - 0; grind, by show (0 : R) - 0 ≤ 0; grind⟩, zero, rfl⟩)
    (fun _ => ⟨0, ⟨0, .zero (Std.le_refl _), by grind⟩, ⟨by grind, by grind⟩, fun _ => rfl⟩)
    (.tiny (xs := [0]) (ys := [1]) (x := 0) (y := 0) .one .one ⟨0, List.mem_singleton.mpr rfl, id⟩
      ⟨1, List.mem_singleton.mpr rfl, id⟩ (rounded_refl (Std.le_refl _) _)
      (rounded_refl (Std.le_refl _) _) ⟨by grind, by grind⟩)).2
  rw [presentError, if_pos (by
    show absolute (1 : R) * ((0 + 0) * absolute 1 + ((0 + 0) * absolute 1 + 0)) ≤ 0
    grind)] at h
  have h₁ : (1 : R) - (0 * 1 + (0 * 1 + 0)) ≤ 0 := h
  clear claim h
  grind

/-! ## dP -/

/-- The claim of `product_majorised` about two components, for any bound of what is lost. -/
abbrev ProductsOfTwoStay (lost : GradientPrecision R → GradientCounts → R → R := productTiny) :
    Prop :=
  ∀ p : GradientPrecision R, PreciseGradient p → ∀ c : GradientCounts,
    numeral c.products * p.accumulation < 1 → ∀ factor : R, 0 ≤ factor → ∀ (dO v : Vec R 2) (x : R),
    ComputedProduct p c factor dO v x →
    AtMost (factor * magnitude dO v
        * ((1 + p.accumulation) ^ c.products * ((1 + p.factors) * (1 + p.scores))) + lost p c factor
      - factor * magnitude dO v) (x - factor * Vec.dot dO v)

/-- Positive control. -/
theorem productsOfTwo_stay : ProductsOfTwoStay (R := R) :=
  fun _ hp _ hc _ hf _ _ _ h => (Proof.product_majorised hp hc hf h).error

/-- Nothing is rounded, and up to 1 lost below the normal numbers. -/
private def losesOne : GradientPrecision R := ⟨0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1⟩

private theorem losesOne_precise : PreciseGradient (losesOne : GradientPrecision R) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, Std.le_refl _,
    Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _, Std.le_refl _,
    Std.le_of_lt OrderedRing.zero_lt_one, Std.le_refl _, Std.le_refl _, Std.le_refl _,
    Std.le_refl _, Std.le_refl _, Std.le_refl _⟩

/-- A bound that counts what the products lose, and nothing of their sum. -/
@[expose] def sumOfProductNotCounted (p : GradientPrecision R) (c : GradientCounts) (factor : R) :
    R :=
  (factor * ((1 + gamma c.products p.accumulation) * (numeral c.products * p.tiny))
    * (1 + p.factors) + p.tiny) * (1 + p.scores) + p.scoresTiny

theorem sumOfProductNotCounted_refuted :
    ¬ ProductsOfTwoStay (R := R) sumOfProductNotCounted := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim losesOne losesOne_precise ⟨2, 0, 0⟩ (none_rounded _) 1 (Std.le_of_lt h₀)
    #v[1, 1] #v[1, 1] 6 ⟨1, fun _ => 2, 5, 1, 6, Nat.le_refl _, Nat.le_refl _, fun i => by
        have e : (#v[1, 1] : Vec R 2)[i] = 1 := by
          match i with
          | 0 => rfl
          | 1 => rfl
        rw [e]
        exact one_more, sum_of_more, by
        show AtMost (0 : R) (1 - 1)
        exact exact_number, by
        show AtMost (1 : R) (6 - 1 * 5 * 1)
        exact ⟨by grind, by grind⟩, ⟨6, rounded_refl (Std.le_refl _) _, by
          show AtMost (0 : R) (6 - 6)
          exact ⟨by grind, by grind⟩, id⟩⟩).2
  have e : magnitude (#v[1, 1] : Vec R 2) #v[1, 1] = 2 := by
    show absolute (1 : R) * absolute 1 + (absolute 1 * absolute 1 + 0) = 2
    rw [absolute_one]
    grind
  rw [e, sumOfProductNotCounted, show (losesOne : GradientPrecision R).accumulation = 0 from rfl,
    gamma_zero, Semiring.pow_two] at h
  have h₁ : (6 : R) - 1 * (1 * 1 + (1 * 1 + 0)) ≤ 1 * 2 * ((1 + 0) * (1 + 0) * ((1 + 0) * (1 + 0)))
      + ((1 * ((1 + 0) * (numeral 2 * 1)) * (1 + 0) + 1) * (1 + 0) + 0) - 1 * 2 := h
  rw [Proof.numeral_two] at h₁
  clear claim h e
  grind

/-! ## Heads that share a key -/

/-- A bound in which nothing is lost where heads are added. -/
@[expose] def headsLoseNothing (p : GradientPrecision R) (tiny : R) (roundings : Nat)
    (heads : List (GradientTerm R)) : R :=
  sharedGradientError { p with tiny := 0 } tiny roundings heads

theorem headsLoseNothing_refuted : ¬ SharedStay (R := R) (bound := headsLoseNothing) :=
    fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have one : (1 : R) ≠ 0 := by grind
  have kept : StoredBelow (0 : R) 0 1 1 :=
    ⟨1, rounded_refl (Std.le_refl _) _, ⟨by grind, by grind⟩, id⟩
  have h := (claim losesOne losesOne_precise 0 (Std.le_refl _) 2 (none_rounded _) (fun _ => 1)
    (fun _ => 1) (fun _ => ⟨1, 0, 1⟩) 3 (fun _ => ⟨exact_number, size_of_one, rfl⟩) (by
      rw [ComputedShared, if_neg (by decide)]
      refine ⟨1, fun _ => 1, fun _ => 1, Nat.le_refl _, Nat.le_refl _, fun _ => kept, fun _ =>
        ⟨1, ⟨0, .zero (Std.le_refl _), by grind⟩, ⟨?_, ?_⟩, fun h => by grind⟩,
        .tiny (xs := [0]) (ys := [1]) (x := 1) (y := 1) .one .one
          ⟨0, List.mem_singleton.mpr rfl, one⟩ ⟨1, List.mem_singleton.mpr rfl, one⟩
          (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _) ⟨?_, ?_⟩⟩
      · show -(1 : R) ≤ 1 - 1
        grind
      · show (1 : R) - 1 ≤ 1
        grind
      · show -(1 : R) ≤ 3 - (1 + 1)
        grind
      · show (3 : R) - (1 + 1) ≤ 1
        grind)).2
  have e : headsLoseNothing (losesOne : GradientPrecision R) 0 2
      ((List.finRange 2).map fun _ => ⟨1, 0, 1⟩) = 0 := by
    show presentError 1 (totalError (0 : R) 0 0 0 2 [⟨1, 0, 1⟩, ⟨1, 0, 1⟩]) [⟨1, 0, 1⟩, ⟨1, 0, 1⟩]
      = 0
    rw [presentError]
    split
    · rfl
    · rw [totalError, gamma_zero]
      show (0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R)
        + ((0 + ((1 + 0) * (1 + 0) - 1) * (1 + 0)) * absolute (1 : R) + 0)
        + (1 + 0) * (0 * (absolute (1 : R) + (absolute 1 + 0)) + numeral 4 * 0) = 0
      grind
  rw [e] at h
  clear claim e
  grind

end Attention.WrongVariants
