module

public import Attention.Vectors.Natural

public section

/-! # The precision suffices

The widths of what the vectors by enclosure are made of: exponentials and softmax weights of scores
from −100 to 100 are known to 2 ^ −60 of themselves. The program that writes the vectors looks at
this first. -/

namespace Attention.Vectors

open Spec Model

/-- An interval of positive numbers that is at most 2 ^ −`bits` of its lower bound wide. -/
def narrow {p : Nat} (bits : Nat) : Interval p → Bool
  | .all => false
  | .between lo hi => 0 < lo && (hi - lo) * 2 ^ bits ≤ lo

/-- Scores from −100 to 100. -/
def widthScores : List Int := [-100, -75, -50, -10, -3, -1, 0, 1, 3, 10, 50, 75, 99, 100]

/-- At precision `p` the exponentials of these scores, and their softmax weights, are known to
2 ^ −`bits` of themselves. -/
def precise (p bits : Nat) : Bool :=
  let scores : List (Interval p) := widthScores.map (Interval.ofDyadic · 0)
  let weights : List (Interval p) := softmax (scores.map some)
  scores.all (fun s => narrow bits (exp s : Interval p)) && weights.all (narrow bits)

/-- The precision that is computed with suffices for 60 bits; half of it does not, so this check can
fail. -/
def checkWidths : Except String Unit :=
  if precise working 60 && !precise (working / 2) 60 then .ok ()
  else .error "intervals of the working precision are wider than 2^-60 of themselves"

end Attention.Vectors
