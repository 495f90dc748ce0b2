module

public import Attention.Algebra.Floor
public import Attention.Model.Real.Field
import Attention.Model.Real.Exact

public section

/-! # Whole parts of rational and of real numbers -/

namespace Attention.Model

open Lean.Grind

attribute [local instance] Ring.intCast Semiring.natCast

/-- Whole parts of rational numbers are computed. -/
theorem isFloor_rat : IsFloor Rat.floor := fun x =>
  ⟨Rat.floor_le x, by
    have h := Rat.lt_floor_add_one x
    rw [Rat.intCast_add] at h
    exact h⟩

namespace Real

/-- Between two integers that a number lies between there is its whole part. -/
private theorem exists_floor_between (x : Real) (a : Int) (h : (a : Real) ≤ x) (k : Nat)
    (hk : x < ((a + k : Int) : Real)) : ∃ n : Int, (n : Real) ≤ x ∧ x < (n : Real) + 1 := by
  induction k with
  | zero =>
    rw [Int.natCast_zero, Int.add_zero] at hk
    grind
  | succ k ih =>
    by_cases hn : x < ((a + k : Int) : Real)
    · exact ih hn
    · refine ⟨a + k, by grind, ?_⟩
      rw [Int.natCast_succ, ← Int.add_assoc, Ring.intCast_add (a + k) 1, Ring.intCast_one] at hk
      exact hk

/-- Every real number has a whole part. -/
theorem exists_floor (x : Real) : ∃ n : Int, (n : Real) ≤ x ∧ x < (n : Real) + 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := Real)
  obtain ⟨N, hN⟩ := archimedean x 1 h₀
  obtain ⟨M, hM⟩ := archimedean (-x) 1 h₀
  have e : ∀ n : Nat, ((n : Int) : Real) = (n : Real) := fun n => Ring.intCast_natCast n
  refine exists_floor_between x (-(M : Int)) ?_ (M + N + 1) ?_
  · rw [Ring.intCast_neg, e]
    grind
  · rw [show (-(M : Int) + ((M + N + 1 : Nat) : Int)) = (N : Int) + 1 by omega,
      Ring.intCast_add, Ring.intCast_one, e]
    grind

/-- The whole part of a real number, which nothing computes. -/
noncomputable def floor (x : Real) : Int := (exists_floor x).choose

/-- It is one. -/
theorem isFloor : IsFloor floor := fun x => (exists_floor x).choose_spec

end Real

end Attention.Model
