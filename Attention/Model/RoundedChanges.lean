module

public import Attention.Model.RoundedScores
public import Attention.Spec.ScoreChangeTolerance

public section

/-! # Changes of scores that are rounded

What an attention function may compute for softcap, and for the sum of a score and a number. -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R]

/-- `y` is what a function may compute for cap · tanh (x / cap). The quotient by the cap is rounded
`a` times and the product with it `b` times, 3 times together, a change of base counted; its tanh is
off by at most 4 u; and the result is stored. -/
@[expose] def ComputedSoftcap [Exp R R] (p : Precision R) (f : ScoreFormats R) (cap x y : R) :
    Prop :=
  ∃ (a b : Nat) (z t w : R), a + b ≤ 3 ∧ RoundedTimes p.unit a (x / cap) z ∧
    AtMost (numeral 4 * p.unit) (t - tanh z) ∧ RoundedTimes p.unit b (cap * t) w ∧
    Rounded f.scores w y

/-- `y` is what a function may compute for x + a. It rounds `a` twice, as a product of slope and
distance and where the base is changed, and stores it; so it does the sum. -/
@[expose] def ComputedSum (p : Precision R) (f : ScoreFormats R) (a x y : R) : Prop :=
  ∃ b c w : R, RoundedTimes p.unit 2 a b ∧ Rounded f.scores b c ∧
    RoundedTimes p.unit 2 (x + c) w ∧ Rounded f.scores w y

/-- `y` is what a function may compute of the computed score `x` by the changes: softcap, then a
number that is added. -/
@[expose] def ComputedChange [Exp R R] (p : Precision R) (f : ScoreFormats R)
    (change : ScoreChange R) (x y : R) : Prop :=
  ∃ z, (match change.cap with
      | none => z = x
      | some cap => ComputedSoftcap p f cap x z) ∧
    match change.added with
    | none => y = z
    | some a => ComputedSum p f a z y

end Attention.Model
