module

public import Attention.Model.DyadicSound
public import Attention.Vectors.Natural

public section

/-! # What goes into the vectors by enclosure, and what comes out

Between the two stands `enclosure-sound` with its likes. -/

namespace Attention.Vectors

open Model Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R]

/-- The interval of an input contains it: the number x with x · den = num, for a denominator that is
a power of two. -/
theorem contains_ofRat {q : Rat} (hq : q.den = 2 ^ q.den.log2) {x : R}
    (hx : x * ((q.den : Int) : R) = (q.num : R)) : (ofRat q).Contains x := by
  refine Interval.contains_ofDyadic ?_
  rw [← hx]
  congr 2
  exact_mod_cast hq.symm

/-- Published bounds are bounds of what the interval contains. -/
theorem contains_toBounds {I : Interval working} {lo hi : Int} {x : R}
    (h : toBounds I = .ok (lo, hi)) (hx : I.Contains x) :
    (Interval.between lo hi : Interval published).Contains x := by
  cases I with
  | all => simp [toBounds] at h
  | between a b =>
    simp only [toBounds, Except.ok.injEq, Prod.mk.injEq] at h
    obtain ⟨rfl, rfl⟩ := h
    exact Interval.contains_rounded (p := published) (q := working - published) hx

end Attention.Vectors
