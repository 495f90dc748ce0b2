module

public import Attention.Model.RoundedScores
public import Attention.Model.Underflow
public import Attention.Spec.CappedRateTolerance

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

/-- `y` is `x` in `k` operations in a row, each rounded with unit roundoff `u` and off by `η` below
the normal numbers. -/
@[expose] def StoredNearTimes (u η : R) : Nat → R → R → Prop
  | 0, x, y => y = x
  | k + 1, x, y => ∃ z, StoredNearTimes u η k x z ∧ StoredNear u η z y

/-- `z` is the sum of the first numbers of the list, in any order and by any parts, which go through
at most `k` additions, rescalings and divisions, each rounded with unit roundoff `a`, and at most
`r` rescalings by factors that are at most 1 and off by `e`, and by `ν` where they are below the
normal numbers, as a sum of two numbers may be. The second numbers say how far off products and
quotients of a sum may be there for each number in it, which `m` counts; they are at least `ν` and
`ν` times the number, but those of masked keys are 0. A part is divided by no less than 1/2, since
the largest weight of a sum is about 1. -/
inductive RescaledSum (a e ν : R) : Nat → Nat → Nat → List (R × R) → R → Prop
  /-- The empty sum is 0. -/
  | nil {k r m : Nat} : RescaledSum a e ν k r m [] 0
  /-- One number is not rounded. -/
  | one {k r m : Nat} {x t : R} : RescaledSum a e ν k r m [(x, t)] x
  /-- Nothing is rounded where 0 is added, as of a masked key. -/
  | zero {k r m : Nat} {xs : List (R × R)} {t z : R} : RescaledSum a e ν k r m xs z →
      RescaledSum a e ν k r m ((0, t) :: xs) z
  /-- Two sums are added; as in `RoundedSum` each has an error of its own. -/
  | add {k r m : Nat} {xs ys : List (R × R)} {x x' y y' : R} : RescaledSum a e ν k r m xs x →
      RescaledSum a e ν k r m ys y → Rounded a x x' → Rounded a y y' →
      RescaledSum a e ν (k + 1) r m (xs ++ ys) (x' + y')
  /-- Two sums, not of masked keys alone, are added, and the result is below the normal numbers. -/
  | tiny {k r m : Nat} {xs ys : List (R × R)} {x x' y y' z : R} : RescaledSum a e ν k r m xs x →
      RescaledSum a e ν k r m ys y → (∃ x ∈ xs, ν ≤ x.2) → (∃ y ∈ ys, ν ≤ y.2) → Rounded a x x' →
      Rounded a y y' → AtMost ν (z - (x' + y')) → RescaledSum a e ν (k + 1) r m (xs ++ ys) z
  /-- In another order. -/
  | permute {k r m : Nat} {xs ys : List (R × R)} {z : R} : RescaledSum a e ν k r m xs z →
      xs.Perm ys → RescaledSum a e ν k r m ys z
  /-- A sum is multiplied by a factor `c` that is computed, as `c'`, which may underflow. -/
  | rescale {k r m : Nat} {xs : List (R × R)} {c c' z z' : R} : RescaledSum a e ν k r m xs z →
      AtMost 1 c → AtMost (1 + e) c' → StoredNear e ν c c' → (∀ x ∈ xs, AtMost x.2 (ν * x.1)) →
      StoredNear a (sumOver (·.2) xs) (c' * z) z' →
      RescaledSum a e ν (k + 1) (r + 1) (m + 2) (xs.map fun x => (c * x.1, x.2)) z'
  /-- A sum is divided: of weights that are divided by `l` after the sum. -/
  | divide {k r m : Nat} {xs : List (R × R)} {l z z' : R} : RescaledSum a e ν k r m xs z →
      AtMost 2 (1 / l) → StoredNearTimes a (sumOver (·.2) xs) 5 (z / l) z' →
      RescaledSum a e ν (k + 5) r (2 * m + 6) (xs.map fun x => (x.1 / l, x.2)) z'

/-- Weights that the function computed, as they are stored where they meet values and rates. Where
it divides by the sum of weights at the end, these are its weights over that number. -/
@[expose] def ComputedWeights (cols : List α) (key : α → BoundedRate R) (w : α → R) : Prop :=
  ∀ j ∈ cols, ∃ x, AtMost ((key j).weight * (key j).weightError + (key j).tiny)
    (x - (key j).weight) ∧ StoredNear (key j).stored (key j).tiny x (w j)

/-- Rates of the scores that the function computed. -/
@[expose] def ComputedRates (cols : List α) (key : α → BoundedRate R) (s : α → R) : Prop :=
  ∀ j ∈ cols, AtMost (key j).rateError (s j - (key j).rate)

/-- `y` is the product `x` of a weight and a rate: rounded, and stored as the weight is. -/
@[expose] def StoredProduct (p : Precision R) (k : BoundedRate R) (x y : R) : Prop :=
  ∃ z, StoredNear p.unit k.tiny x z ∧ StoredNear k.stored k.tiny z y

/-- How far off sums with the product of a weight and `x`, their products, and that product where
they are rescaled may be below the normal numbers: a function's own weights are at most 1, but for
their roundings, before it divides by the sum of them. -/
@[expose] def sumLoss (k : BoundedRate R) (x : R) : R := k.flushed * (1 + 2 * absolute x)

/-- `z` is the sum of the products `x`, of weights and numbers `t`, times the numbers `y`, each
product rounded. -/
@[expose] def WeighedSum (p : Precision R) (ν : R) (k r m : Nat) (cols : List α)
    (key : α → BoundedRate R) (t x y : α → R) (z : R) : Prop :=
  ∃ products : α → R,
    (∀ j ∈ cols, StoredNear p.accumulation (key j).tiny (x j * y j) (products j)) ∧
    RescaledSum p.accumulation p.exponential ν k r m
      (cols.map fun j => (products j, sumLoss (key j) (t j * y j))) z

/-- `μ` is the mean rate of the scores that a function may compute. -/
@[expose] def ComputedMeanRate (p : Precision R) (ν : R) (k r m : Nat) (cols : List α)
    (key : α → BoundedRate R) (μ : R) : Prop :=
  ∃ w s x : α → R, ComputedWeights cols key w ∧ ComputedRates cols key s ∧
    (∀ j ∈ cols, StoredProduct p (key j) (w j * s j) (x j)) ∧
    RescaledSum p.accumulation p.exponential ν k r m
      (cols.map fun j => (x j, sumLoss (key j) (s j))) μ

/-- `y` is the rate Σ p v̇ that a function may compute for the values. -/
@[expose] def ComputedByValues (p : Precision R) (ν : R) (k r m : Nat) (cols : List α)
    (key : α → BoundedRate R) (y : R) : Prop :=
  ∃ w, ComputedWeights cols key w ∧
    WeighedSum p ν k r m cols key (fun _ => 1) w (fun j => (key j).valueRate) y

/-- `y` is the rate of a component of the output that a function may compute: its parts stored with
unit roundoff `apart`, then added in a tree of depth three at most. What is stored, the product
of μ and o, and the sum of two parts is off by `lost` below the normal numbers. -/
inductive ComputedTangent (p : Precision R) (ν output apart lost : R) (k r m : Nat) (cols : List α)
    (key : α → BoundedRate R) : R → Prop
  /-- As Σ p (ṡ − μ) v + Σ p v̇. -/
  | inside {μ a a' c c' y : R} {w s t x : α → R} : ComputedMeanRate p ν k r m cols key μ →
      ComputedWeights cols key w → ComputedRates cols key s →
      (∀ j ∈ cols, StoredNear p.unit (key j).flushed (s j - μ) (t j)) →
      (∀ j ∈ cols, StoredProduct p (key j) (w j * t j) (x j)) →
      WeighedSum p ν k r m cols key t x (fun j => (key j).value) a →
      ComputedByValues p ν k r m cols key c → StoredNear apart lost a a' →
      StoredNear apart lost c c' → SumOf p.unit lost (fun _ => False) id 3 [a', c'] y →
      ComputedTangent p ν output apart lost k r m cols key y
  /-- As Σ p ṡ v − μ o + Σ p v̇, with o as it is stored. -/
  | outside {μ a a' o o' b b' c c' y : R} {w s x w' : α → R} :
      ComputedMeanRate p ν k r m cols key μ →
      ComputedWeights cols key w → ComputedRates cols key s →
      (∀ j ∈ cols, StoredProduct p (key j) (w j * s j) (x j)) →
      WeighedSum p ν k r m cols key s x (fun j => (key j).value) a → ComputedWeights cols key w' →
      WeighedSum p ν k r m cols key (fun _ => 1) w' (fun j => (key j).value) o →
      StoredNear output lost o o' → StoredNear p.unit lost (μ * o') b →
      ComputedByValues p ν k r m cols key c → StoredNear apart lost a a' →
      StoredNear apart lost b b' → StoredNear apart lost c c' →
      SumOf p.unit lost (fun _ => False) id 3 [a', -b', c'] y →
      ComputedTangent p ν output apart lost k r m cols key y

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

/-- `z` is what a function may compute for σ₁ σ₂ (⟨q̇, k⟩ + ⟨q, k̇⟩); the sum of two numbers may be
off by `ν`, and that of two inner products as a stored score may, as where it is flushed to 0. -/
inductive ComputedDots (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat) (σ₁ σ₂ : R)
    (q dq k dk : Vec R d) : R → Prop
  /-- As one sum of all products. -/
  | together {x y : Fin d → R} {z : R} : ComputedProducts p f ν σ₁ σ₂ dq k x →
      ComputedProducts p f ν σ₁ σ₂ q dk y →
      SumOf p.accumulation ν (fun _ => False) id additions
        ((List.finRange d).map x ++ (List.finRange d).map y) z →
      ComputedDots p f ν additions σ₁ σ₂ q dq k dk z
  /-- As two inner products, each stored, and then added. -/
  | apart {x y : Fin d → R} {a a' a'' b b' b'' z : R} : ComputedProducts p f ν σ₁ σ₂ dq k x →
      ComputedProducts p f ν σ₁ σ₂ q dk y →
      SumOf p.accumulation ν (fun _ => False) id additions ((List.finRange d).map x) a →
      SumOf p.accumulation ν (fun _ => False) id additions ((List.finRange d).map y) b →
      StoredNear f.operands f.operandsTiny a a' → StoredNear f.scores f.scoresTiny a' a'' →
      StoredNear f.operands f.operandsTiny b b' → StoredNear f.scores f.scoresTiny b' b'' →
      StoredNear p.unit f.scoresTiny (a'' + b'') z → ComputedDots p f ν additions σ₁ σ₂ q dq k dk z

/-- `z` is what a function may compute for the rate of cap · tanh (s / cap) from the rate `x` of s
and the slope `g`: by their product, or by a quotient by the cap, the product of that with the slope
and that of the whole with the cap, each stored. -/
@[expose] def CappedRate (p : Precision R) (f : ScoreFormats R) (cap g x z : R) : Prop :=
  (∃ y, RoundedTimes p.unit 2 (g * x) y ∧ StoredNearTimes f.scores f.scoresTiny 2 y z) ∨
  ∃ a a' b b' c : R, Rounded p.unit (x / cap) a ∧ StoredNear f.scores f.scoresTiny a a' ∧
    Rounded p.unit (g * a') b ∧ StoredNear f.scores f.scoresTiny b b' ∧
    Rounded p.unit (cap * b') c ∧ StoredNear f.scores f.scoresTiny c z

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
      AtMost γ (g' - g) → RoundedTimes p.unit 2 (g' * x) y →
      StoredNearTimes f.scores f.scoresTiny 2 y z →
      ScoreRateRun p f ν (b.through p f g γ) z
  /-- Through softcap, whose slope `g` is computed as `g'`. -/
  | throughCap {b : BoundedScoreRate R} {cap g γ g' x z : R} : ScoreRateRun p f ν b x → 0 < cap →
      0 ≤ g → g ≤ 1 → AtMost γ (g' - g) → CappedRate p f cap g' x z →
      ScoreRateRun p f ν (b.throughCap p f cap g γ) z
  /-- With the rate of a number that is added: that rate rounded, which may be a product below the
  normal numbers; the sum, which may be below them too; and what is stored of it. -/
  | plus {b : BoundedScoreRate R} {a a' x y z : R} : ScoreRateRun p f ν b x →
      StoredNear p.unit f.scoresTiny a a' → StoredNear p.unit f.scoresTiny (x + a') y →
      StoredNearTimes f.scores f.scoresTiny 2 y z →
      ScoreRateRun p f ν (b.plus p f a) z

end Attention.Model
