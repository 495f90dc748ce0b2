module

public import Attention.Model.Rounding
public import Attention.Spec.UnderflowTolerance

public section

/-! # Attention functions whose numbers underflow

A function that rounds as `Run` has it, whose products, quotients and exponentials may also fall
below the normal numbers of the format in which it computes: there each is off by `ν` at most
instead of by a relative error, and never by more than it is. So they are where they are rounded to
the nearest number of a format, and where they are flushed to 0. Sums may be off by `ν` too, as
where they are flushed to 0; with gradual underflow they are not, since sums of numbers of a format
are exact below the normal ones (`round-sums`). -/

namespace Attention.Model

open Spec

universe u v

variable {R : Type u} [OrderedField R]

/-- `y` is `x`, stored `k` times. -/
@[expose] def TinyTimes (u ν : R) : Nat → R → R → Prop
  | 0, x, y => y = x
  | k + 1, x, y => ∃ z, TinyTimes u ν k x z ∧ Stored u ν z y

/-- `o` is the product of a stored weight `w` with the number `x` of a key, where products underflow
by `ν`: of the weight with a factor `f` first, and then with a value `v`, or of the weight with a
number that is off from `x` by `ν`, as a value times its factor may be. The product with `f` is off
by `ν` too, and by no more than twice of what it is; its relative error is that of `f`. -/
@[expose] def TinyProduct (u ν w x o : R) : Prop :=
  (∃ f v y, x = f * v ∧ 1 ≤ 2 * f ∧ AtMost ν (y - w * f) ∧
    AtMost (2 * absolute (w * f)) (y - w * f) ∧ Stored u ν (y * v) o) ∨
  ∃ y, AtMost ν (y - x) ∧ Stored u ν (w * y) o

/-- A computed key whose score is further off, as `BoundedKey.flushed` has it. -/
@[expose] def ComputedKey.flushed (ν : R) (rescalings : Nat) (key : ComputedKey R) :
    ComputedKey R :=
  { key with toBoundedKey := key.toBoundedKey.flushed ν rescalings }

/-- `x` is the difference `d` of two numbers, rounded, or flushed to 0 where it is `μ` at most. -/
@[expose] def Difference (u μ d x : R) : Prop := Rounded u d x ∨ AtMost μ d ∧ x = 0

/-- `z` is a sum of a number `f` of each of some things, added as `RoundedSum` adds; the sum of two
numbers may be off by `ν` besides, as where it is flushed to 0. A thing that is `free` costs no
addition; a number that is 0 because it underflowed costs one. -/
inductive SumOf {α : Type v} (u ν : R) (free : α → Prop) (f : α → R) : Nat → List α → R → Prop
  /-- The empty sum is 0. -/
  | nil {k : Nat} : SumOf u ν free f k [] 0
  /-- One number is not rounded. -/
  | one {k : Nat} {a : α} : SumOf u ν free f k [a] (f a)
  /-- Nothing is rounded where a free one is added. -/
  | free {k : Nat} {a : α} {as : List α} {z : R} : free a → SumOf u ν free f k as z →
      SumOf u ν free f k (a :: as) z
  /-- Two sums are added. -/
  | add {k : Nat} {xs ys : List α} {x x' y y' : R} : SumOf u ν free f k xs x →
      SumOf u ν free f k ys y → Rounded u x x' → Rounded u y y' →
      SumOf u ν free f (k + 1) (xs ++ ys) (x' + y')
  /-- Two sums are added that are not free both, and the result is below the normal numbers. -/
  | tiny {k : Nat} {xs ys : List α} {x x' y y' z : R} : SumOf u ν free f k xs x →
      SumOf u ν free f k ys y → (∃ a ∈ xs, ¬free a) → (∃ a ∈ ys, ¬free a) → Rounded u x x' →
      Rounded u y y' → AtMost ν (z - (x' + y')) → SumOf u ν free f (k + 1) (xs ++ ys) z
  /-- In another order. -/
  | permute {k : Nat} {xs ys : List α} {z : R} : SumOf u ν free f k xs z → xs.Perm ys →
      SumOf u ν free f k ys z

/-- The sum of a number of each of some parts, of which those are free that see no key. -/
abbrev PartSum (u ν : R) (f : Part R → R) : Nat → List (Part R) → R → Prop :=
  SumOf u ν (fun part => ∀ key ∈ part.keys, key.score = none) f

/-- `TinyRun p ν μ m part`: a function of precision `p` may compute `part` against the reference
point `m`, which no score in it exceeds, where products, exponentials and sums may underflow by `ν`,
and differences of `μ` at most are flushed to 0. -/
inductive TinyRun [Exp R R] (p : Precision R) (ν μ : R) : R → Part R → Prop
  /-- A masked key counts nothing. -/
  | masked {m : R} {key : ComputedKey R} : key.score = none → TinyRun p ν μ m ⟨[key], 0, 0, 0, 0⟩
  /-- The weight of one key, its stored weight, and the product of that with the value, one of them
  multiplied by a factor of dropout before. -/
  | key {m x w w' o : R} {key : ComputedKey R} : key.score ≠ none → key.computed ≤ m →
      Difference p.unit μ (key.computed - m) x → Stored p.exponential ν (exp x) w →
      Stored p.stored p.storedTiny w w' → TinyProduct p.accumulation ν w' key.value o →
      TinyRun p ν μ m ⟨[key], added p.denominator w w', o, 0, 0⟩
  /-- Parts are put together; denominators and numerators need not be added in the same order. -/
  | join {m l o : R} {parts : List (Part R)} {a k r : Nat} :
      (∀ part ∈ parts, TinyRun p ν μ m part) →
      (∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r) →
      PartSum p.unit ν (·.l) k parts l → PartSum p.accumulation ν (·.o) k parts o →
      TinyRun p ν μ m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩
  /-- The reference point rises. -/
  | rescale {m m' x α l o : R} {part : Part R} : TinyRun p ν μ m part → m ≤ m' →
      Difference p.unit μ (m - m') x → Stored p.exponential ν (exp x) α →
      Stored p.unit ν (α * part.l) l → Stored p.accumulation ν (α * part.o) o →
      TinyRun p ν μ m' { part with l := l, o := o, rescalings := part.rescalings + 1 }

end Attention.Model
