module

public import Attention.Model.Underflow
public import Attention.Spec.Format

public section

/-! # Attention in one format

The steps of a function that computes denominators and numerators in one binary format, each
operation rounded to its nearest number: key by key, tile by tile, by splits that are merged. What
it has computed of some keys is a part as in `Model.Run`. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

attribute [local instance] Lean.Grind.Ring.intCast

variable (R) in
/-- The precision of such a function. -/
@[expose] def formatPrecision (f : Format) : Precision R :=
  ⟨(2 : R) ^ (-(f.precision : Int)), (2 : R) ^ (-(f.precision : Int)),
    (2 : R) ^ (-(f.precision : Int)), 0, 0, .unrounded⟩

/-- The exponential of a difference, both rounded. -/
@[expose] def formatExp [Exp R R] (floor : R → Int) (f : Format) (a b : R) : R :=
  f.round floor (exp (f.round floor (a - b)))

/-- `FormatRun floor f m part`: such a function has computed `part` against the reference point `m`,
which no score in it exceeds. Scores and reference points are numbers of the format. -/
inductive FormatRun [Exp R R] (floor : R → Int) (f : Format) : R → Part R → Prop
  /-- A masked key counts nothing. -/
  | masked {m : R} {key : ComputedKey R} : key.score = none →
      FormatRun floor f m ⟨[key], 0, 0, 0, 0⟩
  /-- The weight of one key, and its product with the value. -/
  | key {m : R} {key : ComputedKey R} : key.score ≠ none → key.computed ≤ m →
      f.IsNumber key.computed → f.IsNumber m →
      FormatRun floor f m ⟨[key], formatExp floor f key.computed m,
        f.round floor (formatExp floor f key.computed m * key.value), 0, 0⟩
  /-- Two parts are put together. -/
  | add {m : R} {a b : Part R} : FormatRun floor f m a → FormatRun floor f m b →
      FormatRun floor f m ⟨a.keys ++ b.keys, f.round floor (a.l + b.l), f.round floor (a.o + b.o),
        max a.additions b.additions + 1, max a.rescalings b.rescalings⟩
  /-- The reference point rises. -/
  | rescale {m m' : R} {part : Part R} : FormatRun floor f m part → m ≤ m' → f.IsNumber m →
      f.IsNumber m' → FormatRun floor f m' { part with
        l := f.round floor (formatExp floor f m m' * part.l)
        o := f.round floor (formatExp floor f m m' * part.o)
        rescalings := part.rescalings + 1 }

end Attention.Model
