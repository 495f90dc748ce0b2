module

public import Attention.Vectors.NaturalSampledSound

public section

/-! # Wrong variants of the numbers of a rule -/

namespace Attention.WrongVariants

open Spec Model Vectors

/-- The hypothesis of `natural-sampled-vectors-sound` about the numbers of a rule, of any check of
the rule and any way to make intervals of its numbers: what the check lets through lies in its
interval. -/
abbrev SoundRules (check : Rule → Except String Unit)
    (interval : Nat → Int → Interval working) : Prop :=
  ∀ r : Rule, check r = .ok () → ∀ x : Int, (interval r.over x).Contains (mkRat x r.over)

attribute [local instance] Lean.Grind.Ring.intCast

/-- A fraction is its own number. -/
theorem isNumber_rat : IsNumber fun q : Rat => q := fun q => by
  show q * ((q.den : Int) : Rat) = (q.num : Rat)
  have h := Rat.num_divInt_den q
  have h₀ : ((q.den : Int) : Rat) ≠ 0 := fun h₀ =>
    q.den_nz (Int.natCast_eq_zero.mp (Rat.intCast_eq_zero_iff.mp h₀))
  rw [Rat.divInt_eq_div] at h
  grind

/-- Positive control: the program's. -/
theorem run_soundRules : SoundRules Rule.check (NaturalSampledCase.quotient ofRat) :=
  fun _ h x => contains_ofRule isNumber_rat h x

/-- The check without the demand for a power of two below the fraction. -/
@[expose] def checkAnyOver (r : Rule) : Except String Unit := do
  unless r.bound ≤ 2 ^ 24 ∧ 0 < r.oneIn ∧ r.kinds * r.oneIn ≤ 2 ^ 31 do
    throw s!"the rule of {r.name} is not one that readers know"

/-- Thirds: the interval of 1 / 3 is that of 1 / 2. -/
theorem checkAnyOver_refuted :
    ¬ SoundRules checkAnyOver (NaturalSampledCase.quotient ofRat) := fun h =>
  absurd (h { name := "", bound := 1, over := 3 }
    (by rw [checkAnyOver, if_pos (by decide +kernel)]; rfl) 1).1 (by decide +kernel)

/-- Intervals at a precision of 16 bits, rounded inward, as integers of the precision that is
computed with. -/
@[expose] def inward (over : Nat) (x : Int) : Interval working :=
  let unit : Int := 2 ^ (working - 16)
  .between (Interval.ceilDiv (x * 2 ^ 16) over * unit) (x * 2 ^ 16 / over * unit)

/-- Numbers of 17 bits after the point. -/
theorem inward_refuted : ¬ SoundRules Rule.check inward := fun h =>
  absurd (h { name := "", bound := 1, over := 2 ^ 17 }
    (by rw [Rule.check, if_pos (by decide +kernel)]; rfl) 1).1 (by decide +kernel)

end Attention.WrongVariants
