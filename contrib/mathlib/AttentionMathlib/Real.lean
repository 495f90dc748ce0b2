import Attention.Algebra.Exponential
import Mathlib

/-! # Mathlib's real numbers are numbers of the library

Every theorem of the library that holds over an ordered field with an exponential, or with the
natural one, so is about ℝ and `Real.exp`. -/

namespace AttentionMathlib

/-- ℝ is an ordered field, with Mathlib's operations and Mathlib's order. -/
noncomputable instance : Attention.OrderedField ℝ where
  decLE := fun _ _ => Classical.propDecidable _

/-- `Real.exp` is the natural exponential. -/
noncomputable instance : Attention.NaturalExp ℝ where
  exp := Real.exp
  exp_add := Real.exp_add
  exp_pos := Real.exp_pos
  exp_lt := fun _ _ h => Real.exp_lt_exp.mpr h
  one_add_le_exp := fun x => by
    have h := Real.add_one_le_exp x
    rw [add_comm] at h
    exact h

end AttentionMathlib
