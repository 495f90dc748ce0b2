module

public import Attention.Proof.Softmax.Stability
public import Attention.WrongVariants.Online
public import Attention.WrongVariants.Softmax

public section

/-! # Wrong variants of what keeps the numbers in range -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- Attention with the maximum not subtracted, and any function in the place of the exponential. -/
@[expose] def attendUnshifted (f : Int → Rat) (row : List (ScoredValue Int Rat 1)) : Vec Rat 1 :=
  have : Exp Int Rat := ⟨f⟩
  attend row

/-- The exponential as far as 0, and 0 beyond. -/
@[expose] def expUpToZero (x : Int) : Rat := if x ≤ 0 then exp x else 0

theorem attendUnshifted_refuted : ¬ ∀ f : Int → Rat, (∀ x : Int, x ≤ 0 → f x = exp x) →
    ∀ row, attendUnshifted f row = attend row :=
  fun h => absurd (congrArg Vector.toList (h expUpToZero (fun x hx => by simp [expUpToZero, hx])
    [⟨some 1, #v[1]⟩, ⟨some 0, #v[0]⟩])) (by decide +kernel)

/-- With the latest block's maximum as the reference point, l exceeds the number of keys. -/
theorem latestMax_l_refuted : ¬ ∀ blocks : List (List (ScoredValue Int Rat 1)),
    (blocks.foldl latestMax empty).l ≤ (blocks.flatten.length : Rat) :=
  fun h => absurd (h falling) (by decide +kernel)

/-- With `l` not rescaled, the output lies outside the values. -/
theorem lNotRescaled_constant_refuted : ¬ ∀ blocks : List (List (ScoredValue Int Rat 1)),
    (∃ key ∈ blocks.flatten, key.score ≠ none) →
    (∀ key ∈ blocks.flatten, key.score ≠ none → key.value[0] = 1) →
    (finish (blocks.foldl lNotRescaled empty))[0] = 1 :=
  fun h => absurd (h [[⟨some 0, #v[1]⟩], [⟨some 1, #v[1]⟩]] (by simp) (by simp))
    (by decide +kernel)

theorem softmaxUniform_dominance_refuted : ¬ ∀ (row : List (Option Int)) (x y Δ : Int),
    x + Δ ≤ y → ∀ p q : Rat, (some x, p) ∈ row.zip (softmaxUniform row) →
      (some y, q) ∈ row.zip (softmaxUniform row) → p ≤ exp (-Δ) * q :=
  fun h => absurd (h [some 0, some 1] 0 1 1 (by decide) (1/2) (1/2) (by decide +kernel)
    (by decide +kernel)) (by decide +kernel)

end Attention.WrongVariants
