module

public import Attention.Algebra.Exponential

public section

/-! # Fixed-point intervals

Numbers that cannot be computed exactly, such as the natural exponential, are computed as intervals
of precision p, with bounds that are integers divided by 2^p. Every operation rounds outward, so
that the result contains what the operation gives for any numbers in its arguments
(`Attention.Model.IntervalSound`). The Spec definitions run over intervals as they do over numbers,
since they ask for operations only. -/

namespace Attention.Model

/-- `between lo hi` stands for the numbers x with lo ≤ x · 2^p ≤ hi; `all` for all numbers: nothing
is known. -/
inductive Interval (p : Nat) where
  | all
  | between (lo hi : Int)
  deriving DecidableEq, Inhabited

namespace Interval

variable {p : Nat}

/-- n / m rounded up; `n / m` itself rounds down, for m > 0. -/
@[expose] def ceilDiv (n m : Int) : Int := -(-n / m)

/-- The number n / 2^e, rounded outward where e exceeds the precision. -/
@[expose] def ofDyadic (n : Int) (e : Nat) : Interval p :=
  between (n * 2 ^ p / 2 ^ e) (ceilDiv (n * 2 ^ p) (2 ^ e))

instance (n : Nat) : OfNat (Interval p) n := ⟨between (n * 2 ^ p) (n * 2 ^ p)⟩

instance : IntCast (Interval p) := ⟨fun n => between (n * 2 ^ p) (n * 2 ^ p)⟩

@[expose] def add : Interval p → Interval p → Interval p
  | between a b, between c d => between (a + c) (b + d)
  | _, _ => all

@[expose] def neg : Interval p → Interval p
  | between a b => between (-b) (-a)
  | all => all

/-- The least product of a number from a to b with one from c to d. It is that of two bounds, and
their signs tell which. -/
@[expose] def leastProduct (a b c d : Int) : Int :=
  if 0 ≤ a then if 0 ≤ c then a * c else b * c
  else if b ≤ 0 then if d ≤ 0 then b * d else a * d
  else if 0 ≤ c then a * d
  else if d ≤ 0 then b * c
  else min (a * d) (b * c)

/-- The least product of numbers in both, and the greatest, which is the least of −x · y negated,
rounded outward: a shift by p divides by 2^p and rounds down. -/
@[expose] def mul : Interval p → Interval p → Interval p
  | between a b, between c d =>
    between (leastProduct a b c d >>> p) (-(leastProduct (-b) (-a) c d >>> p))
  | _, _ => all

/-- A lower bound of a number above a / 2^p, divided by a number between c / 2^p and d / 2^p; for
0 < c. -/
@[expose] def divLower (p : Nat) (a c d : Int) : Int :=
  if 0 ≤ a then a * 2 ^ p / d else a * 2 ^ p / c

/-- Division by an interval of positive numbers; `all` for any other. -/
@[expose] def div : Interval p → Interval p → Interval p
  | between a b, between c d =>
    if 0 < c then between (divLower p a c d) (-divLower p (-b) c d) else all
  | _, _ => all

/-- The larger of two numbers: the larger of the lower bounds, and of the upper ones. -/
@[expose] def larger : Interval p → Interval p → Interval p
  | between a b, between c d => between (max a c) (max b d)
  | _, _ => all

instance : Add (Interval p) := ⟨add⟩
instance : Neg (Interval p) := ⟨neg⟩
instance : Sub (Interval p) := ⟨fun I J => I + -J⟩
instance : Mul (Interval p) := ⟨mul⟩
instance : Div (Interval p) := ⟨div⟩
instance : Max (Interval p) := ⟨larger⟩

/-! ## The natural exponential

From 1 + x ≤ exp x alone: (1 + x / 2^k)^(2^k) ≤ exp x, by k squarings; and exp x = 1 / exp (−x). The
relative error is about x² / 2^k, and rounding errors of 2^−p grow with the squarings to about
2^(k−p): the width of a result near 1 is smallest for k = p / 2. -/

/-- k squarings of a / 2^p, rounded down. -/
@[expose] def squarings (p : Nat) : Nat → Int → Int
  | 0, a => a
  | k + 1, a => squarings p k ((a * a) >>> p)

/-- A lower bound of 2^p · exp (n / 2^p), by k squarings. -/
@[expose] def expLower (p k : Nat) (n : Int) : Int :=
  squarings p k (max 0 (2 ^ p + n >>> k))

/-- An upper bound of 2^p · exp (n / 2^p); none where the precision does not suffice for one. -/
@[expose] def expUpper (p k : Nat) (n : Int) : Option Int :=
  let c := expLower p k (-n)
  if 0 < c then some (ceilDiv (2 ^ p * 2 ^ p) c) else none

/-- The number of squarings: rounding errors stay far below the bound's own error. -/
@[expose] def numSquarings (p : Nat) : Nat := p / 3

/-- The exponentials of an interval. -/
@[expose] def exponential : Interval p → Interval p
  | all => all
  | between a b =>
    match expUpper p (numSquarings p) b with
    | none => all
    | some hi => between (expLower p (numSquarings p) a) hi

instance : Exp (Interval p) (Interval p) := ⟨exponential⟩

/-! ## Roots and logarithms

A candidate is computed in any way and then checked, so nothing has to be known of how it was
found. -/

/-- Newton's iteration for √n, from above. -/
@[expose] def sqrtCandidate (n : Int) : Nat → Int → Int
  | 0, r => r
  | fuel + 1, r =>
    let r' := (r + n / r) / 2
    if r' < r then sqrtCandidate n fuel r' else r

/-- 1 / √d: the number s ≥ 0 with d · s² = 1. -/
@[expose] def invSqrt (d : Nat) : Interval p :=
  let r := sqrtCandidate (2 ^ p * 2 ^ p / d) (2 * p) (2 ^ p)
  if 0 ≤ r ∧ r * r * d ≤ 2 ^ p * 2 ^ p ∧ 2 ^ p * 2 ^ p ≤ (r + 1) * (r + 1) * d then
    between r (r + 1)
  else all

/-- The integer part of √n, for n ≥ 0: Newton's iteration from a power of 2 above it. -/
@[expose] def sqrtFloor (n : Int) : Int :=
  sqrtCandidate n (n.natAbs.log2 + 4) (2 ^ (n.natAbs.log2 / 2 + 1))

/-- The square roots of an interval of numbers that are not negative: every r ≥ 0 with r² in it;
`all` for any other. -/
@[expose] def sqrt : Interval p → Interval p
  | between a b =>
    let lo := sqrtFloor (a * 2 ^ p)
    let r := sqrtFloor (b * 2 ^ p)
    let hi := if b * 2 ^ p ≤ r * r then r else r + 1
    if 0 ≤ a ∧ 0 ≤ hi ∧ lo * lo ≤ a * 2 ^ p ∧ b * 2 ^ p ≤ hi * hi then between lo hi else all
  | all => all

/-- Newton's iteration L ← L + x / exp L − 1 for the logarithm of x. -/
@[expose] def logCandidate (p : Nat) (x : Int) : Nat → Int → Int
  | 0, L => L
  | steps + 1, L =>
    logCandidate p x steps (L + x * expLower p (numSquarings p) (-L) / 2 ^ p - 2 ^ p)

/-- The logarithms of an interval of positive numbers: every L with exp L in it. -/
@[expose] def log : Interval p → Interval p
  | between a b =>
    let start : Int := ((a.natAbs.log2 : Int) - p) * 2 ^ p * 710 / 1024
    let slack : Int := 2 ^ (p - p / 4)
    let lo := logCandidate p a 12 start - slack
    let hi := logCandidate p b 12 start + slack
    match expUpper p (numSquarings p) lo with
    | none => all
    | some least => if least ≤ a ∧ b ≤ expLower p (numSquarings p) hi then between lo hi else all
  | all => all

end Interval

end Attention.Model
