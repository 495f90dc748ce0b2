module

public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of the weights that a denominator adds

Functions whose denominator adds other weights than their precision says, judged by the tolerance of
that precision: neither tolerance is one of both. Over every ordered field, for every exponential.
Source: docs/tolerances.md, section 3. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The denominator adds the weights as they were, and nobody says so. -/
@[expose] def addsUnrounded (p : Precision R) : R → Part R → Prop :=
  Run { p with denominator := .unrounded }

/-- The denominator adds the weights as they are stored, and nobody says so. -/
@[expose] def addsRounded (p : Precision R) : R → Part R → Prop :=
  Run { p with denominator := .rounded }

/-! ## What counterexamples are made of -/

/-- The precision of a function that stores its weights, and rounds nothing else. -/
private def storedOnly (d : Denominator) : Precision R := ⟨0, 0, 0, 1 / 4, 0, d⟩

omit [Exponential R R] in
private theorem quarter : (0 : R) ≤ 1 / 4 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

omit [Exponential R R] in
private theorem storedOnly_precise (d : Denominator) : Precise (storedOnly d : Precision R) :=
  ⟨Std.le_refl _, Std.le_refl _, Std.le_refl _, OrderedRing.zero_lt_one, quarter, Std.le_refl _⟩

omit [Exponential R R] in
/-- Storing takes a quarter of a sum of weights at most. -/
private theorem storedOnly_third (d : Denominator) (keys : List (BoundedWeight R)) :
    3 * storingErrors (storedOnly d) 0 keys ≤ 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := Proof.storingErrors_le (storedOnly_precise d) 0 keys
  simp only [storedOnly, Semiring.mul_zero] at h ⊢
  grind

omit [Exponential R R] in
private theorem smaller_le (x y : R) : smaller x y ≤ x := by
  rw [smaller]
  split
  · exact Std.le_refl _
  · grind

omit [Exponential R R] in
private theorem absolute_zero : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

/-- One key of score 0, whose stored weight is off by the factor `t`. -/
private theorem run_stored (d : Denominator) {θ : R} (h : AtMost (1 / 4) θ) (v : R) :
    Run (storedOnly d) 0 (singlePart 0 v (added d 1 (1 * (1 + θ))) (1 * (1 + θ) * v)) :=
  .key (x := 0 - 0) (w := 1) (w' := 1 * (1 + θ)) (by simp [exactKey]) (Std.le_refl _)
    (rounded_refl (Std.le_refl _) _) (by rw [exp_sub_self]; exact rounded_refl (Std.le_refl _) _)
    (by
      have e : (1 : R) * (1 + θ) - 1 = θ := by grind
      rw [Stored, e, absolute_one]
      have h₀ := OrderedRing.zero_lt_one (R := R)
      exact ⟨h.mono (by
        show 1 / 4 ≤ max (1 / 4 * 1 : R) 0
        rw [OrderedField.max_def]
        split <;> grind), h.mono (by grind)⟩) (rounded_refl (Std.le_refl _) _)

private theorem boundedWeights_one (d : Denominator) :
    boundedWeights (storedOnly d) 0 [(⟨some 0, 0, 1⟩ : BoundedKey R)] = [⟨1, 1, 1⟩] := by
  have e₁ : (0 : R) + 0 * (0 - 0 + 0 + max 0 0) = 0 := by grind
  have e₂ : (1 : R) / 1 = 1 := by grind
  have e₃ : (1 : R) - 0 = 1 := by grind
  simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, rowMax, maxScore,
    largestError, List.foldl_cons, List.foldl_nil, storedOnly, e₁, e₃, exp_sub_self, exp_zero,
    Proof.power_eq, Semiring.one_pow, e₂]

/-- A single key costs nothing by storing its weight where the denominator adds it. -/
private theorem one_key_allowed :
    tolerance (storedOnly .rounded) 0 0 0 [(⟨some 0, 0, 1⟩ : BoundedKey R)] ≤ 0 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have ho : exactOutput [(⟨1, 1, 1⟩ : BoundedWeight R)] = 1 := by
    simp only [exactOutput, sumOver_cons, sumOver_nil]
    grind
  have e₂ : absolute ((1 : R) - 1) = 0 := by
    rw [show (1 : R) - 1 = 0 by grind, absolute_zero]
  have e₃ : smaller ((1 : R) * 1 / (1 / 1 + 0)) 1 = 1 := by
    rw [show (1 : R) * 1 / (1 / 1 + 0) = 1 by grind, smaller, if_pos (Std.le_refl _)]
  have e₅ : ¬ (1 : R) ≤ 0 := by grind
  have e₆ : max (0 : R) 0 = 0 := by
    rw [OrderedField.max_def]
    split <;> rfl
  have e₇ : smaller (((1 : R) * (1 - 1) * 0 + 0) / (1 / 1 + 0)) (0 + (0 + 0)) = 0 := by
    rw [smaller]
    split <;> grind
  have both : ∀ x y z : R, x ≤ 0 → y ≤ 0 → z ≤ 0 → x + y + z ≤ 0 := fun x y z _ _ _ => by grind
  have e₈ : max (1 / 4 * 1 : R) 0 = 1 / 4 := by
    rw [OrderedField.max_def]
    split <;> grind
  have e₉ : smaller (1 : R) (1 / 4) = 1 / 4 := by
    rw [smaller]
    split <;> grind
  have e₁₀ : smaller (1 : R) 0 = 0 := by
    rw [smaller]
    split <;> grind
  have e₁₁ : smaller (1 / 4 + 0 : R) (1 / 4 + (0 + 0)) = 1 / 4 := by
    rw [smaller]
    split <;> grind
  rw [tolerance, toleranceTerms, boundedWeights_one]
  simp only [ho, sumOver_cons, sumOver_nil, List.foldl_cons, List.foldl_nil, e₂, lowTotal,
    mostShare, e₃, gamma_zero, e₅, e₆, e₇, if_false, storedOnly, storingErrors, storingError,
    tinyShare, Semiring.zero_mul, e₈, e₉, e₁₀, e₁₁]
  refine both _ _ _ (Std.le_refl _) ?_ ?_
  · rw [overRemainder, if_neg (by grind)]
    refine Std.le_trans (smaller_le _ _) ?_
    grind
  · grind

private theorem attend_one : (attend [(⟨some 0, #v[1]⟩ : ScoredValue R R 1)])[0] = 1 := by
  rw [Proof.getElem_attend]
  simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
    sumOver_nil, exp_zero]
  show (1 * 1 + 0) / (1 + 0) = (1 : R)
  grind

theorem addsUnrounded_refuted : ¬ StaysAllowed (R := R) addsUnrounded := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := (claim _ (storedOnly_precise .rounded) 0 _
    (run_stored .unrounded (θ := 1 / 4) ⟨by grind, Std.le_refl _⟩ 1) [⟨some 0, #v[1]⟩] rfl
    ⟨exactKey 0 1, by simp [singlePart], by simp [exactKey], rfl⟩ 0 (fun key hk s hs => by
      obtain rfl := List.mem_singleton.mp hk
      obtain rfl : 0 = s := Option.some.inj hs
      exact exactKey_close ..)
    0 0 (Nat.le_refl _) (Nat.le_refl _) (fun _ => storedOnly_third _ _)
    (by simp only [storedOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [storedOnly, Semiring.mul_zero]; exact h₀) _
    (roundedTimes_refl (Std.le_refl _) 5 _) 0).mono one_key_allowed
  rw [attend_one] at h
  have h₁ : (1 : R) * (1 + 1 / 4) * 1 / 1 - 1 ≤ 0 := h.2
  clear claim h
  grind

/-! ## Three keys of the same score -/

private theorem boundedWeights_three (d : Denominator) (x y z : R) :
    boundedWeights (storedOnly d) 0 [⟨some 0, 0, x⟩, ⟨some 0, 0, y⟩, ⟨some 0, 0, z⟩]
      = [⟨1, 1, x⟩, ⟨1, 1, y⟩, ⟨1, 1, z⟩] := by
  have h₁ : rowMax [some (0 : R), some 0, some 0] = some 0 := by
    simp [rowMax, maxScore]
  have e₁ : ∀ Δ : R, (0 : R) + 0 * (0 - 0 + 0 + Δ) = 0 := fun Δ => by grind
  have e₂ : (1 : R) / 1 = 1 := by grind
  have e₃ : (1 : R) - 0 = 1 := by grind
  simp only [boundedWeights, boundedWeight, List.map_cons, List.map_nil, h₁, storedOnly, e₁, e₃,
    exp_sub_self, exp_zero, Proof.power_eq, Semiring.one_pow, e₂]

/-- Of the values 0, 0 and 1 a denominator of weights as they were allows for a third of what the
weights are off by. -/
private theorem three_keys_allowed :
    tolerance (storedOnly .unrounded) 2 0 0
      [(⟨some 0, 0, 0⟩ : BoundedKey R), ⟨some 0, 0, 0⟩, ⟨some 0, 0, 1⟩] ≤ 1 / 12 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₃ : smaller ((1 : R) * 1 / (1 / 1 + (1 / 1 + (1 / 1 + 0)))) 1 = 1 / 3 := by
    rw [show (1 : R) * 1 / (1 / 1 + (1 / 1 + (1 / 1 + 0))) = 1 / 3 by grind, smaller,
      if_pos (by grind)]
  have both : ∀ x y z : R, x ≤ 0 → y ≤ 1 / 12 → z ≤ 0 → x + y + z ≤ 1 / 12 :=
    fun x y z _ _ _ => by grind
  have e₄ : smaller (1 / 3 : R) (max (1 / 4 * (1 / 3)) 0) ≤ 1 / 12 := by
    rw [smaller, OrderedField.max_def]
    split <;> split <;> grind
  rw [tolerance, toleranceTerms, boundedWeights_three]
  simp only [sumOver_cons, sumOver_nil, lowTotal, mostShare, e₃, gamma_zero, storedOnly,
    absolute_zero, absolute_one, storingError, tinyShare, Semiring.zero_mul]
  refine both _ _ _ (Std.le_trans (smaller_le _ _) ?_) ?_ ?_
  · grind
  · refine Std.le_trans (smaller_le _ _) (Std.le_trans (smaller_le _ _) ?_)
    grind
  · grind

private theorem attend_three : (attend [(⟨some 0, #v[0]⟩ : ScoredValue R R 1), ⟨some 0, #v[0]⟩,
    ⟨some 0, #v[1]⟩])[0] = 1 / 3 := by
  rw [Proof.getElem_attend]
  simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
    sumOver_nil, exp_zero]
  show (1 * 0 + (1 * 0 + (1 * 1 + 0))) / (1 + (1 + (1 + 0))) = (1 / 3 : R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  grind

omit [Exponential R R] in
private theorem sum_three (x y z : R) : RoundedSum 0 2 [x, y, z] (x + (y + z)) :=
  .add (xs := [x]) (ys := [y, z]) .one (roundedSum_pair (Std.le_refl _) y z)
    (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _)

private theorem run_three {l₁ l₂ l₃ o₁ o₂ o₃ x y z : R} {p : Precision R} (hu : p.unit = 0)
    (ha : p.accumulation = 0) (h₁ : Run p 0 (singlePart 0 x l₁ o₁))
    (h₂ : Run p 0 (singlePart 0 y l₂ o₂)) (h₃ : Run p 0 (singlePart 0 z l₃ o₃)) :
    Run p 0 ⟨[exactKey 0 x, exactKey 0 y, exactKey 0 z], l₁ + (l₂ + l₃), o₁ + (o₂ + o₃), 2, 0⟩ := by
  have h := Run.join (p := p) (m := 0) (a := 0) (k := 2) (r := 0)
    (parts := [singlePart 0 x l₁ o₁, singlePart 0 y l₂ o₂, singlePart 0 z l₃ o₃])
    (l := l₁ + (l₂ + l₃)) (o := o₁ + (o₂ + o₃)) (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl | rfl
      · exact h₁
      · exact h₂
      · exact h₃)
    (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl | rfl <;> exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
    (hu ▸ sum_three _ _ _) (ha ▸ sum_three _ _ _)
  exact h

theorem addsRounded_refuted : ¬ StaysAllowed (R := R) addsRounded := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have down : AtMost (1 / 4 : R) (-(1 / 4)) := ⟨Std.le_refl _, by grind⟩
  have up : AtMost (1 / 4 : R) (1 / 4) := ⟨by grind, Std.le_refl _⟩
  have run := run_three (p := storedOnly .rounded) rfl rfl (run_stored _ down (0 : R))
    (run_stored _ down 0) (run_stored _ up 1)
  have h := (claim _ (storedOnly_precise .unrounded) 0 _ run
    [⟨some 0, #v[0]⟩, ⟨some 0, #v[0]⟩, ⟨some 0, #v[1]⟩] rfl
    ⟨exactKey 0 1, by simp, by simp [exactKey], rfl⟩ 0 (fun key hk s hs => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hk
      rcases hk with rfl | rfl | rfl <;>
      · obtain rfl : 0 = s := Option.some.inj hs
        exact exactKey_close ..)
    2 0 (Nat.le_refl _) (Nat.le_refl _) (fun _ => storedOnly_third _ _)
    (by simp only [storedOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [storedOnly, Semiring.mul_zero]; exact h₀) _
    (roundedTimes_refl (Std.le_refl _) 5 _) 0).mono three_keys_allowed
  rw [attend_three] at h
  have h₁ : (1 * (1 + -(1 / 4)) * 0 + (1 * (1 + -(1 / 4)) * 0 + 1 * (1 + 1 / 4) * 1))
      / (1 * (1 + -(1 / 4)) + (1 * (1 + -(1 / 4)) + 1 * (1 + 1 / 4))) - 1 / 3 ≤ (1 / 12 : R) := h.2
  clear claim h run down up
  grind

end Attention.WrongVariants
