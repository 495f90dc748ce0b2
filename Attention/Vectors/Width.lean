module

public import Attention.Vectors.Natural

public section

/-! # The precision suffices

The widths of what the vectors by enclosure are made of, evaluated by the kernel: the intervals of
exponentials and of softmax weights are narrower than 2 ^ −60 of themselves, for scores from −100 to
100. -/

namespace Attention.Vectors

open Spec Model

/-- An interval of positive numbers that is at most 2 ^ −`bits` of its lower bound wide. -/
@[expose] def narrow {p : Nat} (bits : Nat) : Interval p → Bool
  | .all => false
  | .between lo hi => 0 < lo && (hi - lo) * 2 ^ bits ≤ lo

/-- The exponentials of scores from −100 to 100. -/
theorem narrow_exp :
    ([-100, -50, -1, 0, 1, 50, 100].all fun (x : Int) =>
      narrow 60 (exp (Interval.ofDyadic x 0 : Interval working) : Interval working)) = true := by
  decide +kernel

/-- The softmax weights of a row with scores from −100 to 100. -/
theorem narrow_softmax :
    ((softmax (([-100, 0, 1, 100] : List Int).map fun x =>
      some (Interval.ofDyadic x 0 : Interval working)) : List (Interval working)).all
        (narrow 60)) = true := by
  decide +kernel

/-- The bound bites: at a precision of 192 bits the least of these weights is not known so well. -/
theorem not_narrow_softmax :
    ((softmax (([-100, 100] : List Int).map fun x =>
      some (Interval.ofDyadic x 0 : Interval 192)) : List (Interval 192)).all
        (narrow 60)) = false := by
  decide +kernel

end Attention.Vectors
