module

public import Attention.Model.RoundedScores
public import Attention.Spec.TangentTolerance

public section

/-! # Tangents in a function that rounds

What a function may compute for the rates of one row, from weights and rates of scores that are
close to the exact ones. The sums over keys may each have weights and rates of their own, as those
of a forward pass beside those of a pass that computes them again.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Model

open Spec

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}

/-- `z` is the sum of the list, in any order and by any parts, whose numbers go through at most `k`
additions, rescalings and divisions, each rounded with unit roundoff `a`, and at most `r` rescalings
by factors that are off by `e`. -/
inductive RescaledSum (a e : R) : Nat → Nat → List R → R → Prop
  /-- The empty sum is 0. -/
  | nil {k r : Nat} : RescaledSum a e k r [] 0
  /-- One number is not rounded. -/
  | one {k r : Nat} {x : R} : RescaledSum a e k r [x] x
  /-- Nothing is rounded where 0 is added, as of a masked key. -/
  | zero {k r : Nat} {xs : List R} {z : R} : RescaledSum a e k r xs z →
      RescaledSum a e k r (0 :: xs) z
  /-- Two sums are added; as in `RoundedSum` each has an error of its own. -/
  | add {k r : Nat} {xs ys : List R} {x x' y y' : R} : RescaledSum a e k r xs x →
      RescaledSum a e k r ys y → Rounded a x x' → Rounded a y y' →
      RescaledSum a e (k + 1) r (xs ++ ys) (x' + y')
  /-- In another order. -/
  | permute {k r : Nat} {xs ys : List R} {z : R} : RescaledSum a e k r xs z → xs.Perm ys →
      RescaledSum a e k r ys z
  /-- A sum is multiplied by a factor `c` that is computed. -/
  | rescale {k r : Nat} {xs : List R} {c c' z z' : R} : RescaledSum a e k r xs z →
      Rounded e c c' → Rounded a (c' * z) z' → RescaledSum a e (k + 1) (r + 1) (xs.map (c * ·)) z'
  /-- A sum is divided: of weights that are divided by `l` after the sum. -/
  | divide {k r : Nat} {xs : List R} {l z z' : R} : RescaledSum a e k r xs z →
      RoundedTimes a 5 (z / l) z' → RescaledSum a e (k + 5) r (xs.map (· / l)) z'

/-- Weights that the function computed, as they are stored where they meet values and rates. Where
it divides by the sum of weights at the end, these are its weights over that number. -/
@[expose] def ComputedWeights (cols : List α) (key : α → BoundedRate R) (w : α → R) : Prop :=
  ∀ j ∈ cols, ∃ x, AtMost ((key j).weight * (key j).weightError) (x - (key j).weight) ∧
    Rounded (key j).stored x (w j)

/-- Rates of the scores that the function computed. -/
@[expose] def ComputedRates (cols : List α) (key : α → BoundedRate R) (s : α → R) : Prop :=
  ∀ j ∈ cols, AtMost (key j).rateError (s j - (key j).rate)

/-- `y` is the product `x` of a weight and a rate: rounded, and stored as the weight is. -/
@[expose] def StoredProduct (p : Precision R) (k : BoundedRate R) (x y : R) : Prop :=
  ∃ z, Rounded p.unit x z ∧ Rounded k.stored z y

/-- `z` is the sum of the weights times the numbers `y`, each product rounded. -/
@[expose] def WeighedSum (p : Precision R) (k r : Nat) (cols : List α) (w y : α → R) (z : R) :
    Prop :=
  ∃ products : α → R, (∀ j ∈ cols, Rounded p.accumulation (w j * y j) (products j)) ∧
    RescaledSum p.accumulation p.exponential k r (cols.map products) z

/-- `μ` is the mean rate of the scores that a function may compute. -/
@[expose] def ComputedMeanRate (p : Precision R) (k r : Nat) (cols : List α)
    (key : α → BoundedRate R) (μ : R) : Prop :=
  ∃ w s x, ComputedWeights cols key w ∧ ComputedRates cols key s ∧
    (∀ j ∈ cols, StoredProduct p (key j) (w j * s j) (x j)) ∧
    RescaledSum p.accumulation p.exponential k r (cols.map x) μ

/-- `y` is the rate Σ p v̇ that a function may compute for the values. -/
@[expose] def ComputedByValues (p : Precision R) (k r : Nat) (cols : List α)
    (key : α → BoundedRate R) (y : R) : Prop :=
  ∃ w, ComputedWeights cols key w ∧ WeighedSum p k r cols w (fun j => (key j).valueRate) y

/-- `y` is the rate of a component of the output that a function may compute: its parts stored with
unit roundoff `apart`, then added in a tree of depth three at most. -/
inductive ComputedTangent (p : Precision R) (output apart : R) (k r : Nat) (cols : List α)
    (key : α → BoundedRate R) : R → Prop
  /-- As Σ p (ṡ − μ) v + Σ p v̇. -/
  | inside {μ a a' c c' y : R} {w s t x : α → R} : ComputedMeanRate p k r cols key μ →
      ComputedWeights cols key w → ComputedRates cols key s →
      (∀ j ∈ cols, Rounded p.unit (s j - μ) (t j)) →
      (∀ j ∈ cols, StoredProduct p (key j) (w j * t j) (x j)) →
      WeighedSum p k r cols x (fun j => (key j).value) a → ComputedByValues p k r cols key c →
      Rounded apart a a' → Rounded apart c c' → RoundedSum p.unit 3 [a', c'] y →
      ComputedTangent p output apart k r cols key y
  /-- As Σ p ṡ v − μ o + Σ p v̇, with o as it is stored. -/
  | outside {μ a a' o o' b b' c c' y : R} {w s x w' : α → R} : ComputedMeanRate p k r cols key μ →
      ComputedWeights cols key w → ComputedRates cols key s →
      (∀ j ∈ cols, StoredProduct p (key j) (w j * s j) (x j)) →
      WeighedSum p k r cols x (fun j => (key j).value) a → ComputedWeights cols key w' →
      WeighedSum p k r cols w' (fun j => (key j).value) o → Rounded output o o' →
      Rounded p.unit (μ * o') b → ComputedByValues p k r cols key c → Rounded apart a a' →
      Rounded apart b b' → Rounded apart c c' → RoundedSum p.unit 3 [a', -b', c'] y →
      ComputedTangent p output apart k r cols key y

/-! ## The rate of a score -/

variable {d : Nat}

/-- The scale is the product of σ₁, σ₂ and σ, rounded up to three times. But for these roundings,
what is left of it is at most max (1, |scale|), and so is its product with either part: as where
each of the three is 1, √scale or the scale. -/
structure RateScaledBy (p : Precision R) (scale σ₁ σ₂ σ : R) : Prop where
  /-- The product of the three. -/
  product : RoundedTimes p.unit 3 scale (σ₁ * σ₂ * σ)
  /-- It meets errors of both operands. -/
  both : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ
  /-- It meets errors of the second operand. -/
  first : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) (σ₁ * σ)
  /-- It meets errors of the first operand. -/
  second : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) (σ₂ * σ)

/-- The products of the numbers of `q` and `k`, each operand multiplied by its part of the scale,
rounded and stored as for a score; each is off by `ν` where it is below the normal numbers. -/
@[expose] def ComputedProducts (p : Precision R) (f : ScoreFormats R) (ν σ₁ σ₂ : R) (q k : Vec R d)
    (products : Fin d → R) : Prop :=
  ∃ (a b : Nat) (q' k' : Fin d → R), a + b ≤ f.roundings ∧
    (∀ i : Fin d, StoredTimes p f a (σ₁ * q[i]) (q' i)) ∧
    (∀ i : Fin d, StoredTimes p f b (σ₂ * k[i]) (k' i)) ∧
    (∀ i : Fin d, StoredNear p.accumulation ν (q' i * k' i) (products i))

/-- `z` is what a function may compute for σ₁ σ₂ (⟨q̇, k⟩ + ⟨q, k̇⟩). -/
inductive ComputedDots (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat) (σ₁ σ₂ : R)
    (q dq k dk : Vec R d) : R → Prop
  /-- As one sum of all products. -/
  | together {x y : Fin d → R} {z : R} : ComputedProducts p f ν σ₁ σ₂ dq k x →
      ComputedProducts p f ν σ₁ σ₂ q dk y →
      RoundedSum p.accumulation additions
        ((List.finRange d).map x ++ (List.finRange d).map y) z →
      ComputedDots p f ν additions σ₁ σ₂ q dq k dk z
  /-- As two inner products, each stored, and then added. -/
  | apart {x y : Fin d → R} {a a' a'' b b' b'' z : R} : ComputedProducts p f ν σ₁ σ₂ dq k x →
      ComputedProducts p f ν σ₁ σ₂ q dk y →
      RoundedSum p.accumulation additions ((List.finRange d).map x) a →
      RoundedSum p.accumulation additions ((List.finRange d).map y) b →
      StoredNear f.operands f.operandsTiny a a' → StoredNear f.scores f.scoresTiny a' a'' →
      StoredNear f.operands f.operandsTiny b b' → StoredNear f.scores f.scoresTiny b' b'' →
      Rounded p.unit (a'' + b'') z → ComputedDots p f ν additions σ₁ σ₂ q dq k dk z

/-- `z` is `x`, stored as a score is up to twice, each time off by η_s where it is below the normal
numbers. -/
@[expose] def StoredTwice (f : ScoreFormats R) (x z : R) : Prop :=
  ∃ y, StoredNear f.scores f.scoresTiny x y ∧ StoredNear f.scores f.scoresTiny y z

/-- `ScoreRateRun b y`: a function may compute `y` for the rate of `b`. It has the scale as the
product of σ₁, σ₂ and σ, rounded up to three times. -/
inductive ScoreRateRun (p : Precision R) (f : ScoreFormats R) (ν : R) :
    BoundedScoreRate R → R → Prop
  /-- Of a score that is not changed. -/
  | score {d additions : Nat} {scale σ₁ σ₂ σ z z' x y : R} {q dq k dk : Vec R d} :
      RateScaledBy p scale σ₁ σ₂ σ →
      ComputedDots p f ν additions σ₁ σ₂ q dq k dk z → StoredNear f.scores f.scoresTiny z z' →
      Rounded p.unit (σ * z') x → StoredNear f.scores f.scoresTiny x y →
      ScoreRateRun p f ν (boundedScoreRate p f ν additions scale q dq k dk) y
  /-- Through a change whose slope is `g`, computed as `g'`. -/
  | through {b : BoundedScoreRate R} {g γ g' x y z : R} : ScoreRateRun p f ν b x → 0 ≤ g →
      AtMost γ (g' - g) → RoundedTimes p.unit 2 (g' * x) y → StoredTwice f y z →
      ScoreRateRun p f ν (b.through p f g γ) z
  /-- With the rate of a number that is added: that rate rounded, which may be a product below the
  normal numbers; the sum; and what is stored of it. -/
  | plus {b : BoundedScoreRate R} {a a' x y z : R} : ScoreRateRun p f ν b x →
      StoredNear p.unit f.scoresTiny a a' → Rounded p.unit (x + a') y → StoredTwice f y z →
      ScoreRateRun p f ν (b.plus p f a) z

end Attention.Model
