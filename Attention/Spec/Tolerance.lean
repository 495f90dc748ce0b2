module

public import Attention.Spec.Softmax

public section

/-! # Tolerances

How far the result of an attention function that rounds may be from the exact one, for one component
of one row: a bound that is computed from the exact scores and values and from what the function
rounds. `Proof/Rounding/Basic.lean` proves that no function of `Model/Rounding.lean` exceeds it.
Source: docs/tolerances.md, sections 2 to 5; γ is of Higham 2002, "Accuracy and Stability of
Numerical Algorithms", equation (3.1). -/

namespace Attention.Spec

universe u

/-- Which weights the denominator of a function adds. -/
inductive Denominator where
  /-- The weights as they were computed. -/
  | unrounded
  /-- The weights as they are stored where they meet their values. -/
  | rounded

/-- The roundings of a function, and how coarse they are: bounds of errors, all relative but
`storedTiny`. -/
structure Precision (R : Type u) where
  /-- Of an operation on scores, weights and denominators: the unit roundoff of the accumulator. -/
  unit : R
  /-- Of an operation on the numerator of the output; larger where a matrix unit truncates. -/
  accumulation : R
  /-- Of an exponential. -/
  exponential : R
  /-- Of a weight's format where it meets its value; 0 if it is not stored anew. -/
  stored : R
  /-- Of storing a weight below the normal numbers of that format, where the largest weight is 1: an
  absolute error, η; 0 if no weight is too small. -/
  storedTiny : R
  /-- Which weights the denominator adds. -/
  denominator : Denominator

/-- One key as the tolerance sees it. -/
structure BoundedKey (R : Type u) where
  /-- The exact score of the key; `none` when the key is masked. -/
  score : Option R
  /-- How far the computed score may be from it, but for a constant that all keys share: δ. -/
  error : R
  /-- One component of the value. -/
  value : R

/-- The weight of one key in a function that rounds: between `weight / factor` and
`weight · factor`, but for a factor that all keys share. -/
structure BoundedWeight (R : Type u) where
  /-- exp (s − m), and 0 when the key is masked. -/
  weight : R
  /-- e^ε: how far off it may be. -/
  factor : R
  /-- One component of the value. -/
  value : R

/-- The terms of a tolerance. -/
structure ToleranceTerms (R : Type u) where
  /-- Errors of the weights, which numerator and denominator share. -/
  shared : R
  /-- Weights stored in a smaller format. -/
  stored : R
  /-- Sums. -/
  sums : R

variable {R : Type u} [Add R] [OfNat R 0] [OfNat R 1]

/-- The number `n`: Σ 1. -/
@[expose] def numeral (n : Nat) : R := sumOver (fun _ => 1) (List.range n)

variable [Sub R] [Mul R] [Div R] [Max R] [LE R] [DecidableLE R]

/-- |x|. -/
@[expose] def absolute (x : R) : R := max x (0 - x)

/-- The smaller of two numbers. -/
@[expose] def smaller (a b : R) : R := if a ≤ b then a else b

/-- γ: the relative error of `k` roundings of unit `u`, k · u / (1 − k · u). For k · u < 1. -/
@[expose] def gamma (k : Nat) (u : R) : R := numeral k * u / (1 - numeral k * u)

/-- xⁿ. -/
@[expose] def power (x : R) (n : Nat) : R := (List.range n).foldl (fun y _ => y * x) 1

/-- The largest of the errors of the unmasked scores, at least 0. -/
@[expose] def largestError (row : List (BoundedKey R)) : R :=
  row.foldl (fun δ key => match key.score with
    | none => δ
    | some _ => max δ key.error) 0

/-- The exact weight of a key in a row with the maximum `m` and the largest error `Δ`, and how far
off it may be after at most `rescalings` changes of the reference point:
ε = δ + u · (m − s + δ + Δ), and one exponential for the weight and one for each rescaling. -/
@[expose] def boundedWeight [Exp R R] (p : Precision R) (rescalings : Nat) (m : Option R) (Δ : R)
    (key : BoundedKey R) : BoundedWeight R :=
  match key.score, m with
  | some s, some m =>
    { weight := exp (s - m)
      factor := exp (key.error + p.unit * (m - s + key.error + Δ))
        / power (1 - p.exponential) (rescalings + 1)
      value := key.value }
  | _, _ => ⟨0, 1, key.value⟩

/-- The exact weights of a row, and how far off they may be. -/
@[expose] def boundedWeights [Exp R R] (p : Precision R) (rescalings : Nat)
    (row : List (BoundedKey R)) : List (BoundedWeight R) :=
  row.map (boundedWeight p rescalings (rowMax (row.map (·.score))) (largestError row))

/-- The exact output: the mean of the values by the exact weights. -/
@[expose] def exactOutput (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => k.weight * k.value) keys / sumOver (fun k => k.weight) keys

/-- Σ w / e^ε: the sum of the weights is no smaller, but for the factor that all share. -/
@[expose] def lowTotal (keys : List (BoundedWeight R)) : R :=
  sumOver (fun k => k.weight / k.factor) keys

/-- P: at most this share of the sum of the weights has a key, where that sum may be as small as
`low`. -/
@[expose] def mostShare (low : R) (k : BoundedWeight R) : R := smaller (k.weight * k.factor / low) 1

/-- η h: the error of storing a weight below the normal numbers, as a share of the sum of the
weights. In a function's own terms its largest weight is 1 but for the errors of exponentials and
rescalings, and so is the sum of the weights at least; and that is at least `lowTotal`. -/
@[expose] def tinyShare (p : Precision R) (rescalings : Nat) (keys : List (BoundedWeight R)) : R :=
  p.storedTiny * smaller (1 / power (1 - p.exponential) (2 * rescalings + 1))
    (keys.foldl (fun x k => max x (k.weight * k.factor)) 0 / lowTotal keys)

/-- e: the error of storing a weight that has at most this share of the sum of the weights, as a
share of that sum: in proportion to a normal number, at most `tiny` below these, and never more than
the weight. -/
@[expose] def storingError (p : Precision R) (tiny share : R) : R :=
  smaller share (max (p.stored * share) tiny)

/-- The errors of storing all weights of a row together, as a share of their sum: Σ e, or the error
of a weight that has all of it and those of weights below the normal numbers. -/
@[expose] def storingErrors (p : Precision R) (rescalings : Nat) (keys : List (BoundedWeight R)) :
    R :=
  let low := lowTotal keys
  let tiny := tinyShare p rescalings keys
  smaller (sumOver (fun k => storingError p tiny (mostShare low k)) keys)
    (p.stored + sumOver (fun k => smaller (mostShare low k) tiny) keys)

/-- The error that `x` becomes where the sum that divides is too small by up to the share `e` of
itself, and at most `most`. -/
@[expose] def overRemainder (x e most : R) : R :=
  if 1 ≤ e then most else smaller (x / (1 - e)) most

/-- The terms of the tolerance of one component of the output of one row with an unmasked key. A
key's part of the numerator and of the denominator goes through at most `roundings` roundings of
sums and rescalings, that of the numerator through `6` more: the product with the value, and the
division. Keys with a share of the sum of weights up to `negligible` are not counted among the
values that the average may reach; the bound holds whatever that number is. Weights that are stored
where they meet their values move the mean of the values by `stored`, and that of their sizes by
`growth`: in proportion to sizes if the denominator adds them as they were, and otherwise in
proportion to distances from the mean, over the sum of weights that storing leaves. -/
@[expose] def toleranceTerms [Exp R R] (p : Precision R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : ToleranceTerms R :=
  let keys := boundedWeights p rescalings row
  let output := exactOutput keys
  let far := fun k : BoundedWeight R => absolute (k.value - output)
  let low := lowTotal keys
  let share := fun k : BoundedWeight R => mostShare low k
  let excess := sumOver (fun k => k.weight * (k.factor - 1) * far k) keys
  let farthest := keys.foldl (fun x k => if share k ≤ negligible then x else max x (far k)) 0
    + sumOver (fun k => if share k ≤ negligible then share k * far k else 0) keys
  let shared := smaller (excess / low) farthest
  let largest := farthest + absolute output
  let size := smaller (sumOver (fun k => share k * absolute k.value) keys) largest
  let tiny := tinyShare p rescalings keys
  let error := fun k : BoundedWeight R => storingError p tiny (share k)
  let errors := storingErrors p rescalings keys
  let stored := match p.denominator with
    | .unrounded => smaller (smaller (sumOver (fun k => error k * absolute k.value) keys)
        (p.stored * size + sumOver (fun k => smaller (share k) tiny * absolute k.value) keys)) size
    | .rounded => overRemainder (sumOver (fun k => error k * far k) keys + errors * shared) errors
        (numeral 2 * largest)
  let growth := match p.denominator with
    | .unrounded => stored
    | .rounded => overRemainder (sumOver (fun k => error k * absolute k.value) keys + errors * size)
        errors (numeral 2 * largest)
  let numerator := gamma (roundings + 6) p.accumulation
  let denominator := gamma roundings p.unit
  { shared := shared
    stored := stored
    sums := (numerator * (size + growth) + denominator * (absolute output + shared + stored))
      / (1 - denominator) }

/-- How far the result of a function that rounds may be from the exact one: the sum of
`toleranceTerms`. -/
@[expose] def tolerance [Exp R R] (p : Precision R) (roundings rescalings : Nat) (negligible : R)
    (row : List (BoundedKey R)) : R :=
  let terms := toleranceTerms p roundings rescalings negligible row
  terms.shared + terms.stored + terms.sums

/-- The same where the result is stored in a format of unit roundoff `u`, which rounds it as a
whole, with what it is off by already, and whose numbers below the normal ones are off by `η` at
most. -/
@[expose] def storedTolerance [Exp R R] (p : Precision R) (u η : R) (roundings rescalings : Nat)
    (negligible : R) (row : List (BoundedKey R)) : R :=
  let error := tolerance p roundings rescalings negligible row
  error + u * (absolute (exactOutput (boundedWeights p rescalings row)) + error) + η

end Attention.Spec
