module

public import Attention.Vectors.RealSound

public section

/-! # Wrong variants of the numbers of a rule, and of the lists that are let through -/

namespace Attention.WrongVariants

open Spec Model Vectors

/-- What `natural-sampled-vectors-sound` needs of the numbers of a rule, of any check of the rule
and any way to make intervals of its numbers: what the check lets through lies in its interval. -/
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

/-! ## A number for each head -/

/-- What `natural-sampled-vectors-sound` says of sinks, of any program. -/
abbrev SinkForEachHead (run : NaturalSampledCase → Except String (List (List EnclosedRow))) :
    Prop :=
  ∀ given results, run given = .ok results →
    ∀ sinks ∈ given.inputs.sinks, sinks.length = given.inputs.heads

/-- Positive control: the program. -/
theorem run_sinkForEachHead : SinkForEachHead NaturalSampledCase.run := fun _ _ h =>
  (NaturalSampledCase.run_sound isSqrt_real isNumber_real h).2.1

open NaturalSampledCase in
/-- The program without the demand for a slope and a sink for each head: those that a list lacks are
read as 0. -/
@[expose] def runAnyLength (given : NaturalSampledCase) :
    Except String (List (List EnclosedRow)) := do
  let c := given.inputs
  checkExact (c.scale.toList ++ c.sinks.getD [])
  let heads ← c.seen (scaleOf c.scale c.head_dim) (quotient ofRat) (quotient ofRat)
    (changes ofRat c (added c))
  (heads.zipIdx).mapM fun (rows, n) => rows.mapM fun row =>
    let row := sinkRow ofRat c n row
    enclosedRow (row.map (·.score)) (attend row)

/-- Two heads and one sink, in no sequence. -/
@[expose] def oneSink : NaturalSampledCase where
  inputs :=
    { reason := "", scale := some 1, batch := 0, group := 2, q_len := 1, kv_len := 1,
      head_dim := 1, value_dim := 1, q := { name := "q", bound := 1 },
      k := { name := "k", bound := 1 }, v := { name := "v", bound := 1 }, rows := [0],
      sinks := some [0] }

theorem runAnyLength_refuted : ¬ SinkForEachHead runAnyLength := fun h =>
  absurd (h oneSink [] rfl [0] rfl) (by decide)

end Attention.WrongVariants
