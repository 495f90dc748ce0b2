module

public import Attention.Algebra.Sum
public import Attention.Spec.Embedding

public section

/-! # Encodings of places by sines and cosines

What they are good for: how alike two of them are depends on the distance of the places alone. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u

variable {R : Type u} {half : Nat} {sin cos : R → R} {angle : Nat → Fin half → R}

private theorem finRange_add (m n : Nat) : List.finRange (m + n)
    = (List.finRange m).map (Fin.castAdd n) ++ (List.finRange n).map (Fin.natAdd m) := by
  apply List.ext_getElem
  · simp
  · intro i h₁ h₂
    by_cases h : i < m
    · rw [List.getElem_append_left (by simpa using h)]
      apply Fin.ext
      simp
    · rw [List.getElem_append_right (by simpa using h)]
      apply Fin.ext
      simp
      omega

/-- The first half of an encoding are the sines. -/
theorem sinusoids_castAdd (p : Nat) (i : Fin half) :
    (sinusoids sin cos angle p)[Fin.castAdd half i] = sin (angle p i) := by
  simp [sinusoids]

/-- The second half of an encoding are the cosines. -/
theorem sinusoids_natAdd (p : Nat) (i : Fin half) :
    (sinusoids sin cos angle p)[Fin.natAdd half i] = cos (angle p i) := by
  simp [sinusoids]

/-- **The likeness of two places**: the inner product of their encodings is the sum of the cosines
of the differences of their angles, for sines and cosines that obey the formula for a difference.
With angles in proportion to the place it depends on the distance of the places alone. -/
theorem dot_sinusoids [OrderedField R]
    (hcos : ∀ x y, cos (x - y) = cos x * cos y + sin x * sin y) (p q : Nat) :
    Vec.dot (sinusoids sin cos angle p) (sinusoids sin cos angle q)
      = sumOver (fun i => cos (angle p i - angle q i)) (List.finRange half) := by
  rw [Vec.dot, finRange_add, sumOver_append, sumOver_map, sumOver_map]
  simp only [sinusoids_castAdd, sinusoids_natAdd, hcos]
  generalize List.finRange half = places
  induction places with
  | nil => simp only [sumOver_nil]; grind
  | cons i places ih => simp only [sumOver_cons]; grind

end Attention.Proof
