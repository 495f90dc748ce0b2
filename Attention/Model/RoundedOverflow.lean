module

public import Attention.Model.RoundedLogSumExp
public import Attention.Model.RoundedScores
public import Attention.Spec.OverflowBounds

public section

/-! # Attention functions that round and may overflow

The functions of `Model/Rounding.lean` and `Model/RoundedScores.lean` whose numbers have a largest
one. An operation whose exact result is past it may give anything: a number, or `none`, which is an
infinity or a NaN. So may an operation on what is no number, and a division by 0. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- `y` is what `rounds` makes of `x`, if `x` is within the range; else anything. -/
@[expose] def Limited (largest : R) (rounds : R → R → Prop) (x : R) (y : Option R) : Prop :=
  AtMost largest x → ∃ z, y = some z ∧ rounds x z

/-- `y` is `x`, rounded `k` times. -/
@[expose] def LimitedTimes (largest u : R) : Nat → R → Option R → Prop
  | 0, x, y => y = some x
  | k + 1, x, y => ∃ z, LimitedTimes largest u k x z ∧ ∀ a ∈ z, Limited largest (Rounded u) a y

/-- `RoundedSum` with a largest number. Where the sizes of the two numbers of an addition come to
more, it may give anything. -/
inductive LimitedSum (largest u : R) : Nat → List R → Option R → Prop
  /-- The empty sum is 0. -/
  | nil {k : Nat} : LimitedSum largest u k [] (some 0)
  /-- One number is not rounded. -/
  | one {k : Nat} {x : R} : LimitedSum largest u k [x] (some x)
  /-- Nothing is rounded where 0 is added, as of a masked key. -/
  | zero {k : Nat} {xs : List R} {z : Option R} :
      LimitedSum largest u k xs z → LimitedSum largest u k (0 :: xs) z
  /-- Two sums are added. -/
  | add {k : Nat} {xs ys : List R} {x y z : Option R} :
      LimitedSum largest u k xs x → LimitedSum largest u k ys y →
      (∀ a ∈ x, ∀ b ∈ y, absolute a + absolute b ≤ largest →
        ∃ a' b', Rounded u a a' ∧ Rounded u b b' ∧ z = some (a' + b')) →
      LimitedSum largest u (k + 1) (xs ++ ys) z
  /-- In another order. -/
  | permute {k : Nat} {xs ys : List R} {z : Option R} :
      LimitedSum largest u k xs z → xs.Perm ys → LimitedSum largest u k ys z

/-! ## Scores -/

/-- `StoredTimes` with largest numbers, where nothing is below the normal ones. -/
@[expose] def LimitedStoredTimes (p : Precision R) (f : ScoreFormats R) (largest : Largest R) :
    Nat → R → Option R → Prop
  | 0, x, y => y = some x
  | k + 1, x, y => ∃ z w, LimitedStoredTimes p f largest k x z ∧
      (∀ a ∈ z, Limited largest.accumulator (Rounded p.unit) a w) ∧
      ∀ a ∈ w, Limited largest.operands (Rounded f.operands) a y

/-- `ComputedScore` with largest numbers, where neither operands nor scores are below the normal
ones. -/
@[expose] def LimitedScore (p : Precision R) (f : ScoreFormats R) (largest : Largest R)
    (additions : Nat) (σ₁ σ₂ σ : R) {d : Nat} (q k : Vec R d) (score : Option R) : Prop :=
  ∃ (a b : Nat) (q' k' products : Fin d → Option R) (sum x : Option R), a + b ≤ f.roundings ∧
    (∀ i : Fin d, LimitedStoredTimes p f largest a (σ₁ * q[i]) (q' i)) ∧
    (∀ i : Fin d, LimitedStoredTimes p f largest b (σ₂ * k[i]) (k' i)) ∧
    (∀ i : Fin d, ∀ a ∈ q' i, ∀ b ∈ k' i,
      Limited largest.accumulator (Rounded p.accumulation) (a * b) (products i)) ∧
    (∀ terms : Fin d → R, (∀ i, products i = some (terms i)) →
      LimitedSum largest.accumulator p.accumulation additions
        ((List.finRange d).map terms) sum) ∧
    (∀ s ∈ sum, LimitedTimes largest.accumulator p.unit 2 (σ * s) x) ∧
    ∀ a ∈ x, Limited largest.scores (Rounded f.scores) a score

/-! ## Parts -/

/-- The numbers that a function has computed of some keys: `Part`, of which denominator and
numerator may be no numbers. -/
structure LimitedPart (R : Type u) where
  /-- The keys. -/
  keys : List (ComputedKey R)
  /-- The denominator. -/
  l : Option R
  /-- One component of the numerator. -/
  o : Option R
  /-- How many roundings of sums a key's part has gone through at most. -/
  additions : Nat
  /-- How often it has been rescaled at most. -/
  rescalings : Nat

/-- `Run` with largest numbers, where reference points are at most `reference` in size. -/
inductive LimitedRun [Exp R R] (p : Precision R) (largest : Largest R) (reference : R) :
    R → LimitedPart R → Prop
  /-- A masked key counts nothing. -/
  | masked {m : R} {key : ComputedKey R} :
      key.score = none → LimitedRun p largest reference m ⟨[key], some 0, some 0, 0, 0⟩
  /-- The weight of one key, its stored weight, and the product of that with the value. -/
  | key {m : R} {x w w' l o : Option R} {key : ComputedKey R} :
      key.score ≠ none → key.computed ≤ m → AtMost reference m →
      Limited largest.accumulator (Rounded p.unit) (key.computed - m) x →
      (∀ a ∈ x, Limited largest.accumulator (Rounded p.exponential) (exp a) w) →
      (∀ a ∈ w, Limited largest.weights (Stored p.stored p.storedTiny) a w') →
      (∀ a ∈ w', Limited largest.accumulator (Rounded p.accumulation) (a * key.value) o) →
      (∀ a ∈ w, ∀ b ∈ w', l = some (added p.denominator a b)) →
      LimitedRun p largest reference m ⟨[key], l, o, 0, 0⟩
  /-- Parts are put together; denominators and numerators need not be added in the same order. -/
  | join {m : R} {l o : Option R} {parts : List (LimitedPart R)} {a k r : Nat} :
      (∀ part ∈ parts, LimitedRun p largest reference m part) →
      (∀ part ∈ parts, part.additions ≤ a ∧ part.rescalings ≤ r) →
      (∀ ls : List R, parts.map (·.l) = ls.map some →
        LimitedSum largest.accumulator p.unit k ls l) →
      (∀ os : List R, parts.map (·.o) = os.map some →
        LimitedSum largest.accumulator p.accumulation k os o) →
      LimitedRun p largest reference m ⟨parts.flatMap (·.keys), l, o, a + k, r⟩
  /-- The reference point rises. -/
  | rescale {m m' : R} {x α l o : Option R} {part : LimitedPart R} :
      LimitedRun p largest reference m part → m ≤ m' → AtMost reference m → AtMost reference m' →
      Limited largest.accumulator (Rounded p.unit) (m - m') x →
      (∀ a ∈ x, Limited largest.accumulator (Rounded p.exponential) (exp a) α) →
      (∀ a ∈ α, ∀ b ∈ part.l, Limited largest.accumulator (Rounded p.unit) (a * b) l) →
      (∀ a ∈ α, ∀ b ∈ part.o, Limited largest.accumulator (Rounded p.accumulation) (a * b) o) →
      LimitedRun p largest reference m'
        { part with l := l, o := o, rescalings := part.rescalings + 1 }

/-- `o` is the quotient of the part's numerator and denominator, rounded at most five times. -/
@[expose] def LimitedQuotient (p : Precision R) (largest : Largest R) (part : LimitedPart R)
    (o : Option R) : Prop :=
  ∀ a ∈ part.o, ∀ b ∈ part.l, b ≠ 0 →
    LimitedTimes largest.accumulator p.accumulation 5 (a / b) o

/-- `ComputedLogSumExp` with a largest number. -/
@[expose] def LimitedLogSumExp [Exp R R] (largest u m l : R) (L : Option R) : Prop :=
  ∃ (a b c k : Nat) (logl : R) (x y z : Option R), a + k + c ≤ 4 ∧ b + c ≤ 4 ∧ exp logl = l ∧
    Limited largest (fun exact y => AtMost (numeral a * u * (absolute exact + 1)) (y - exact))
      logl y ∧
    (∀ r ∈ y, LimitedTimes largest u k r z) ∧ LimitedTimes largest u b m x ∧
    ∀ r ∈ x, ∀ s ∈ z, LimitedTimes largest u c (r + s) L

end Attention.Model
