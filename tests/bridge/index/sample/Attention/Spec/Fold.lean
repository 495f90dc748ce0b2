module

public section

/-! # A library of two files, for the tests of the index -/

namespace Attention.Spec

universe u

/-- A total and how many it is of. -/
structure State (R : Type u) where
  /-- The total. -/
  total : R
  /-- How many numbers it is the total of. -/
  count : Nat
  deriving Inhabited

/-- What becomes of a number. -/
inductive Choice where
  /-- It is taken. -/
  | take
  | leave (reason : String)

variable {R : Type u} [Add R] [OfNat R 0]

/-- The state of no numbers. -/
@[expose] def empty : State R := ⟨0, 0⟩

/-- One more number. -/
@[expose] def step (s : State R) (x : R) : State R where
  total := s.total + x
  count := s.count + 1

section
variable (xs : List R)

/-- The total of a list, taken number by number. -/
@[expose] def total : R := (xs.foldl step empty).total

end

def Choice.text : Choice → String
  | .take => "-- taken /- "
  | .leave reason => reason

end Attention.Spec
