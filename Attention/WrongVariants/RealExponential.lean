module

public import Attention.Model.Real.Exponential

public section

/-! # Wrong variants of what is proved of the real exponential -/

namespace Attention.WrongVariants

open Model Lean.Grind Exponential

/-- x ↦ e^(2x). -/
@[expose, reducible] noncomputable def squareExp : Exponential Real Real where
  exp x := exp (x + x)
  exp_add x y := by
    rw [← exp_add]
    congr 1
    grind
  exp_pos x := exp_pos (x + x)
  exp_lt x y h := exp_lt (x + x) (y + y) (by grind)

/-- The claim of `Real.exp_unique`, made of any exponentials. -/
abbrev OnlyOne (natural : Exponential Real Real → Prop) : Prop :=
  ∀ e : Exponential Real Real, natural e → ∀ x : Real, e.exp x = Real.expo x

/-- Positive control: with 1 + x ≤ exp x. -/
theorem natural_onlyOne : OnlyOne fun e => ∀ x : Real, 1 + x ≤ e.exp x := fun e h x =>
  Real.exp_unique { e with one_add_le_exp := h } x

/-- Without that law there are others. -/
theorem any_onlyOne_refuted : ¬ OnlyOne fun _ => True := fun h => by
  have h₁ : (exp (1 + 1 : Real) : Real) = exp (1 : Real) :=
    (h squareExp trivial 1).trans (Real.exp_unique inferInstance 1).symm
  have h₂ := (exp_inj (R := Real)).mp h₁
  have := OrderedRing.zero_lt_one (R := Real)
  grind

end Attention.WrongVariants
