module

public import Attention.Algebra.Magnitude
public import Attention.Spec.Tolerance

public section

/-! # Attention functions that round

What is known of floating-point numbers that neither overflow nor underflow: the result of an
operation is the exact one times 1 + θ, with a θ that may be another each time. A weight may
underflow where it is stored for its product with the value. A part of attention's computation is a
maximum, a denominator and a numerator of some keys, made from parts of fewer keys in any of the
ways that attention functions use: key by key, tile by tile, by splits that are merged, in any tree,
sums in any order. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- Relative errors of a precision that means something. -/
structure Precise (p : Precision R) : Prop where
  /-- Not negative. -/
  unit : 0 ≤ p.unit
  /-- Not negative. -/
  accumulation : 0 ≤ p.accumulation
  /-- Not negative. -/
  exponential : 0 ≤ p.exponential
  /-- A rounded exponential stays positive. -/
  exponential_lt : p.exponential < 1
  /-- Not negative. -/
  stored : 0 ≤ p.stored
  /-- Not negative. -/
  storedTiny : 0 ≤ p.storedTiny

/-- `y` is `x`, rounded once with unit roundoff `u`. -/
@[expose] def Rounded (u x y : R) : Prop := ∃ θ, AtMost u θ ∧ y = x * (1 + θ)

/-- `y` is `x`, rounded `k` times. -/
@[expose] def RoundedTimes (u : R) : Nat → R → R → Prop
  | 0, x, y => y = x
  | k + 1, x, y => ∃ z, RoundedTimes u k x z ∧ Rounded u z y

/-- `y` is `x`, stored in a format of unit roundoff `u` whose numbers below the normal ones are off
by at most `η`. -/
@[expose] def StoredNear (u η x y : R) : Prop := ∃ z, Rounded u x z ∧ AtMost η (y - z)

/-- `w` is stored as `w'` in a format of unit roundoff `σ`: off by `η` at most below its normal
numbers, and never by more than `w` is. So it is where it is rounded to the nearest number, and
where it is flushed to 0. -/
@[expose] def Stored (σ η w w' : R) : Prop :=
  AtMost (max (σ * absolute w) η) (w' - w) ∧ AtMost (absolute w) (w' - w)

/-- `z` is the sum of the list, added in some order, each addition rounded, in a tree of depth at
most `k`. The two numbers of an addition have an error each: one that both share is a rounding of
their sum, two are what a matrix unit makes, which aligns and truncates before it adds. -/
inductive RoundedSum (u : R) : Nat → List R → R → Prop
  /-- The empty sum is 0. -/
  | nil {k : Nat} : RoundedSum u k [] 0
  /-- One number is not rounded. -/
  | one {k : Nat} {x : R} : RoundedSum u k [x] x
  /-- Nothing is rounded where 0 is added, as of a masked key. -/
  | zero {k : Nat} {xs : List R} {z : R} : RoundedSum u k xs z → RoundedSum u k (0 :: xs) z
  /-- Two sums are added. -/
  | add {k : Nat} {xs ys : List R} {x x' y y' : R} : RoundedSum u k xs x → RoundedSum u k ys y →
      Rounded u x x' → Rounded u y y' → RoundedSum u (k + 1) (xs ++ ys) (x' + y')
  /-- In another order. -/
  | permute {k : Nat} {xs ys : List R} {z : R} : RoundedSum u k xs z → xs.Perm ys →
      RoundedSum u k ys z

/-- A key and its score as the function computed it. -/
structure ComputedKey (R : Type u) extends BoundedKey R where
  /-- The computed score; of no meaning when the key is masked. -/
  computed : R

/-- The numbers that a function has computed of some keys, against some reference point. -/
structure Part (R : Type u) where
  /-- The keys. -/
  keys : List (ComputedKey R)
  /-- The denominator, Σ exp (s − m). -/
  l : R
  /-- One component of the output, not yet divided: Σ exp (s − m) · v. -/
  o : R
  /-- How many roundings of sums a key's part has gone through at most. -/
  additions : Nat
  /-- How often it has been rescaled at most. -/
  rescalings : Nat

/-- The number that the denominator adds of a weight `w` that is stored as `w'`. -/
@[expose] def added (d : Denominator) (w w' : R) : R :=
  match d with
  | .unrounded => w
  | .rounded => w'

/-- `Run p m part`: a function of precision `p` may compute `part` against the reference point `m`,
which no score in it exceeds. -/
inductive Run [Exp R R] (p : Precision R) : R → Part R → Prop
  /-- A masked key counts nothing. -/
  | masked {m : R} {key : ComputedKey R} : key.score = none → Run p m ⟨[key], 0, 0, 0, 0⟩
  /-- The weight of one key, its stored weight, and the product of that with the value. -/
  | key {m x w w' o : R} {key : ComputedKey R} : key.score ≠ none → key.computed ≤ m →
      Rounded p.unit (key.computed - m) x → Rounded p.exponential (exp x) w →
      Stored p.stored p.storedTiny w w' → Rounded p.accumulation (w' * key.value) o →
      Run p m ⟨[key], added p.denominator w w', o, 0, 0⟩
  /-- Parts are put together; denominators and numerators need not be added in the same order. -/
  | join {m l o : R} {parts : List (Part R)} {a k r : Nat} :
      (∀ part ∈ parts, Run p m part) →
      (∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r) →
      RoundedSum p.unit k (parts.map (·.l)) l → RoundedSum p.accumulation k (parts.map (·.o)) o →
      Run p m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩
  /-- The reference point rises. -/
  | rescale {m m' x α l o : R} {part : Part R} : Run p m part → m ≤ m' →
      Rounded p.unit (m - m') x → Rounded p.exponential (exp x) α →
      Rounded p.unit (α * part.l) l → Rounded p.accumulation (α * part.o) o →
      Run p m' { part with l := l, o := o, rescalings := part.rescalings + 1 }

end Attention.Model
