module

public import Attention.Spec.Fold

public section

namespace Attention.Proof

open Spec

private theorem count_foldl (xs : List Nat) (s : State Nat) :
    (xs.foldl step s).count = s.count + xs.length := by
  induction xs generalizing s with
  | nil => rfl
  | cons x xs ih => simp [ih, step, Nat.add_comm, Nat.add_left_comm]

/-- **count**: the count is the number of numbers. -/
theorem count_eq_length (xs : List Nat) : (xs.foldl step empty).count = xs.length := by
  simp [count_foldl, empty]

-- Written without a line of its own for the value, and with a local definition.
theorem total_nil : let x := total ([] : List Nat); x = 0 := rfl

instance : Inhabited (Spec.Choice) := ⟨.take⟩

end Attention.Proof
