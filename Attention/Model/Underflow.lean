module

public import Attention.Model.Rounding

public section

/-! # Attention functions whose numbers underflow

A function that rounds as `Run` has it, whose products, quotients and exponentials may also fall
below the normal numbers of the format in which it computes: there each is off by `ν` at most
instead of by a relative error, and never by more than it is. So they are where they are rounded to
the nearest number of a format, and where they are flushed to 0. Sums and differences have no such
error: of numbers of a format they are exact below the normal ones (`round-sums`). -/

namespace Attention.Model

open Spec

universe u v

variable {R : Type u} [OrderedField R]

/-- `y` is `x`, stored `k` times. -/
@[expose] def TinyTimes (u ν : R) : Nat → R → R → Prop
  | 0, x, y => y = x
  | k + 1, x, y => ∃ z, TinyTimes u ν k x z ∧ Stored u ν z y

/-- `o` is the product of a stored weight `w` with the number `x` of a key, where products underflow
by `ν`: at once, or that of the weight with a factor `f` first, and then with a value `v`. The first
is off by `ν`, and by no more than twice of what it is; its relative error is that of `f`. -/
@[expose] def TinyProduct (u ν w x o : R) : Prop :=
  ∃ f v y, x = f * v ∧ 1 ≤ 2 * f ∧ AtMost ν (y - w * f) ∧
    AtMost (2 * absolute (w * f)) (y - w * f) ∧ Stored u ν (y * v) o

/-- `z` is the sum of a number `f` of each of some things, added as `RoundedSum` adds. What costs no
addition is a thing that is `free`; a number that is 0 because it underflowed costs one. -/
inductive SumOf {α : Type v} (u : R) (free : α → Prop) (f : α → R) : Nat → List α → R → Prop
  /-- The empty sum is 0. -/
  | nil {k : Nat} : SumOf u free f k [] 0
  /-- One number is not rounded. -/
  | one {k : Nat} {a : α} : SumOf u free f k [a] (f a)
  /-- Nothing is rounded where a free one is added. -/
  | free {k : Nat} {a : α} {as : List α} {z : R} : free a → SumOf u free f k as z →
      SumOf u free f k (a :: as) z
  /-- Two sums are added. -/
  | add {k : Nat} {xs ys : List α} {x x' y y' : R} : SumOf u free f k xs x →
      SumOf u free f k ys y → Rounded u x x' → Rounded u y y' →
      SumOf u free f (k + 1) (xs ++ ys) (x' + y')
  /-- In another order. -/
  | permute {k : Nat} {xs ys : List α} {z : R} : SumOf u free f k xs z → xs.Perm ys →
      SumOf u free f k ys z

/-- The sum of a number of each of some parts, of which those are free that see no key. -/
abbrev PartSum (u : R) (f : Part R → R) : Nat → List (Part R) → R → Prop :=
  SumOf u (fun part => ∀ key ∈ part.keys, key.score = none) f

/-- `TinyRun p ν m part`: a function of precision `p` may compute `part` against the reference point
`m`, which no score in it exceeds, where products and exponentials may underflow by `ν`. -/
inductive TinyRun [Exp R R] (p : Precision R) (ν : R) : R → Part R → Prop
  /-- A masked key counts nothing. -/
  | masked {m : R} {key : ComputedKey R} : key.score = none → TinyRun p ν m ⟨[key], 0, 0, 0, 0⟩
  /-- The weight of one key, its stored weight, and the product of that with the value, and with a
  factor of dropout before. -/
  | key {m x w w' o : R} {key : ComputedKey R} : key.score ≠ none → key.computed ≤ m →
      Rounded p.unit (key.computed - m) x → Stored p.exponential ν (exp x) w →
      Stored p.stored p.storedTiny w w' → TinyProduct p.accumulation ν w' key.value o →
      TinyRun p ν m ⟨[key], added p.denominator w w', o, 0, 0⟩
  /-- Parts are put together; denominators and numerators need not be added in the same order. -/
  | join {m l o : R} {parts : List (Part R)} {a k r : Nat} :
      (∀ part ∈ parts, TinyRun p ν m part) →
      (∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r) →
      PartSum p.unit (·.l) k parts l → PartSum p.accumulation (·.o) k parts o →
      TinyRun p ν m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩
  /-- The reference point rises. -/
  | rescale {m m' x α l o : R} {part : Part R} : TinyRun p ν m part → m ≤ m' →
      Rounded p.unit (m - m') x → Stored p.exponential ν (exp x) α →
      Stored p.unit ν (α * part.l) l → Stored p.accumulation ν (α * part.o) o →
      TinyRun p ν m' { part with l := l, o := o, rescalings := part.rescalings + 1 }

end Attention.Model
