module

public import Attention.Model.RoundedOverflow
public import Attention.Model.Underflow

public section

/-! # Attention functions whose numbers underflow and may overflow

`Model/Underflow.lean` with largest numbers, as `Model/RoundedOverflow.lean` has them: an operation
whose exact result is past the largest number may give anything, a number or `none`. -/

namespace Attention.Model

open Spec

universe u v

variable {R : Type u} [OrderedField R]

/-- `TinyTimes` with a largest number. -/
@[expose] def LimitedTinyTimes (largest u ν : R) : Nat → R → Option R → Prop
  | 0, x, y => y = some x
  | k + 1, x, y => ∃ z, LimitedTinyTimes largest u ν k x z ∧
      ∀ a ∈ z, Limited largest (Stored u ν) a y

/-- `SumOf` with a largest number. Where the sizes of the two numbers of an addition come to more,
it may give anything. -/
inductive LimitedSumOf {α : Type v} (largest u ν : R) (free : α → Prop) (f : α → R) :
    Nat → List α → Option R → Prop
  /-- The empty sum is 0. -/
  | nil {k : Nat} : LimitedSumOf largest u ν free f k [] (some 0)
  /-- One number is not rounded. -/
  | one {k : Nat} {a : α} : LimitedSumOf largest u ν free f k [a] (some (f a))
  /-- Nothing is rounded where a free one is added. -/
  | free {k : Nat} {a : α} {as : List α} {z : Option R} : free a →
      LimitedSumOf largest u ν free f k as z → LimitedSumOf largest u ν free f k (a :: as) z
  /-- Two sums are added. -/
  | add {k : Nat} {xs ys : List α} {x y z : Option R} :
      LimitedSumOf largest u ν free f k xs x → LimitedSumOf largest u ν free f k ys y →
      (∀ a ∈ x, ∀ b ∈ y, absolute a + absolute b ≤ largest →
        ∃ a' b', Rounded u a a' ∧ Rounded u b b' ∧ z = some (a' + b')) →
      LimitedSumOf largest u ν free f (k + 1) (xs ++ ys) z
  /-- Two sums are added that are not free both, and the result is below the normal numbers. -/
  | tiny {k : Nat} {xs ys : List α} {x y z : Option R} :
      LimitedSumOf largest u ν free f k xs x → LimitedSumOf largest u ν free f k ys y →
      (∃ a ∈ xs, ¬free a) → (∃ a ∈ ys, ¬free a) →
      (∀ a ∈ x, ∀ b ∈ y, absolute a + absolute b ≤ largest →
        ∃ a' b' c, Rounded u a a' ∧ Rounded u b b' ∧ AtMost ν (c - (a' + b')) ∧ z = some c) →
      LimitedSumOf largest u ν free f (k + 1) (xs ++ ys) z
  /-- In another order. -/
  | permute {k : Nat} {xs ys : List α} {z : Option R} :
      LimitedSumOf largest u ν free f k xs z → xs.Perm ys →
      LimitedSumOf largest u ν free f k ys z

/-- The sum of a number of each of some parts, of which those are free that see no key; if one of
them has none, anything. -/
@[expose] def LimitedPartSum (largest u ν : R) (f : LimitedPart R → Option R) (k : Nat)
    (parts : List (LimitedPart R)) (z : Option R) : Prop :=
  (∀ part ∈ parts, f part ≠ none) → LimitedSumOf largest u ν
    (fun part : LimitedPart R => ∀ key ∈ part.keys, key.score = none)
    (fun part => (f part).getD 0) k parts z

/-- `TinyRun` with largest numbers, where reference points are at most `reference` in size, and a
weight meets a number that is off from the value by `ν`, as a value times its factor may be. -/
inductive LimitedTinyRun [Exp R R] (p : Precision R) (ν μ : R) (largest : Largest R)
    (reference : R) : R → LimitedPart R → Prop
  /-- A masked key counts nothing. -/
  | masked {m : R} {key : ComputedKey R} :
      key.score = none → LimitedTinyRun p ν μ largest reference m ⟨[key], some 0, some 0, 0, 0⟩
  /-- The weight of one key, its stored weight, and the product of that with the value. -/
  | key {m y : R} {x w w' l o : Option R} {key : ComputedKey R} :
      key.score ≠ none → key.computed ≤ m → AtMost reference m →
      Limited largest.accumulator (Difference p.unit μ) (key.computed - m) x →
      (∀ a ∈ x, Limited largest.accumulator (Stored p.exponential ν) (exp a) w) →
      (∀ a ∈ w, Limited largest.weights (Stored p.stored p.storedTiny) a w') →
      AtMost ν (y - key.value) →
      (∀ a ∈ w', Limited largest.accumulator (Stored p.accumulation ν) (a * y) o) →
      (∀ a ∈ w, ∀ b ∈ w', l = some (added p.denominator a b)) →
      LimitedTinyRun p ν μ largest reference m ⟨[key], l, o, 0, 0⟩
  /-- Parts are put together; denominators and numerators need not be added in the same order. -/
  | join {m : R} {l o : Option R} {parts : List (LimitedPart R)} {a k r : Nat} :
      (∀ part ∈ parts, LimitedTinyRun p ν μ largest reference m part) →
      (∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r) →
      LimitedPartSum largest.accumulator p.unit ν (·.l) k parts l →
      LimitedPartSum largest.accumulator p.accumulation ν (·.o) k parts o →
      LimitedTinyRun p ν μ largest reference m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩
  /-- The reference point rises. -/
  | rescale {m m' : R} {x α l o : Option R} {part : LimitedPart R} :
      LimitedTinyRun p ν μ largest reference m part → m ≤ m' → AtMost reference m →
      AtMost reference m' → Limited largest.accumulator (Difference p.unit μ) (m - m') x →
      (∀ a ∈ x, Limited largest.accumulator (Stored p.exponential ν) (exp a) α) →
      (∀ a ∈ α, ∀ b ∈ part.l, Limited largest.accumulator (Stored p.unit ν) (a * b) l) →
      (∀ a ∈ α, ∀ b ∈ part.o, Limited largest.accumulator (Stored p.accumulation ν) (a * b) o) →
      LimitedTinyRun p ν μ largest reference m'
        { part with l := l, o := o, rescalings := part.rescalings + 1 }

/-- `o` is the quotient of the part's numerator and denominator, rounded at most five times, with
quotients and products that may underflow. -/
@[expose] def LimitedTinyQuotient (p : Precision R) (ν : R) (largest : Largest R)
    (part : LimitedPart R) (o : Option R) : Prop :=
  ∀ a ∈ part.o, ∀ b ∈ part.l, b ≠ 0 →
    LimitedTinyTimes largest.accumulator p.accumulation ν 5 (a / b) o

end Attention.Model
