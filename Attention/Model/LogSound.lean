module

public import Attention.Model.ExpSound

public section

/-! # The interval of logarithms contains what it stands for -/

namespace Attention.Model.Interval

open Lean.Grind Exponential

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p : Nat}

/-- **log-enclosed**: the interval of logarithms contains every L with exp L in the interval. -/
theorem contains_log [NaturalExp R] {I : Interval p} {L : R} (hL : I.Contains (exp L : R)) :
    (log I).Contains L := by
  have back : ∀ {x y : R}, (exp x : R) * unit R p ≤ exp y * unit R p → x ≤ y := fun {x y} h => by
    have h₁ : (exp x : R) ≤ exp y := le_of_mul_unit_le h
    refine Classical.byContradiction fun hn => ?_
    have := exp_lt (R := R) y x (by grind)
    grind
  have scaled : ∀ n : Int, (n : R) / unit R p * unit R p = (n : R) := fun n => by
    rw [CommSemiring.mul_comm]
    exact OrderedField.mul_div_cancel (by have := unit_pos (R := R) (p := p); grind) _
  have hU := Std.le_of_lt (unit_pos (R := R) (p := p))
  cases I with
  | all => trivial
  | between a b =>
    simp only [log]
    split
    · trivial
    · next lo' hm =>
      split
      · next h =>
        obtain ⟨h₁, h₂⟩ := hL
        refine ⟨?_, ?_⟩
        · rw [← scaled]
          refine OrderedRing.mul_le_mul_of_nonneg_right (back ?_) hU
          exact Std.le_trans (le_expUpper (by rw [scaled]; exact Std.le_refl _) hm)
            (Std.le_trans (intCast_le h.1) h₁)
        · rw [← scaled (_ + _)]
          refine OrderedRing.mul_le_mul_of_nonneg_right (back ?_) hU
          exact Std.le_trans h₂ (Std.le_trans (intCast_le h.2)
            (expLower_le (by rw [scaled]; exact Std.le_refl _)))
      · trivial

end Attention.Model.Interval
