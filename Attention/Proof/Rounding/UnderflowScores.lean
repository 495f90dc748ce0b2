module

public import Attention.Model.UnderflowScores
public import Attention.Proof.Rounding.ChangedMatrices
import Attention.Proof.Rounding.UnderflowTolerance
import Attention.Proof.Rounding.UnsplitScores

public section

/-! # Scores whose products underflow

They are scores of which nothing underflows in the accumulator, in a format whose smallest numbers
are larger. So all that is known of scores is known of them.
Source: docs/tolerances.md, section 1. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R} {ν : R}
variable {additions d : Nat} {scale cap : R}

private theorem numeral_le_three {k : Nat} (hk : k ≤ 3) : (numeral k : R) ≤ 3 := by
  have h : ((k : Nat) : R) ≤ ((3 : Nat) : R) := OrderedRing.natCast_le_natCast_of_le _ _ hk
  rw [numeral_eq, ← numeral_three, numeral_eq]
  exact h

/-- What is stored of a number that is off by `c` is stored of that number, with a larger error. -/
private theorem storedNear_shift {s η c b x x₀ y : R} (h : StoredNear s η x y)
    (hx : AtMost c (x - x₀)) (hc : c ≤ b) : StoredNear s (η + (1 + s) * b) x₀ y := by
  obtain ⟨z, ⟨θ, hθ, rfl⟩, hz⟩ := h
  refine ⟨x₀ * (1 + θ), ⟨θ, hθ, rfl⟩, ?_⟩
  have hθ' : AtMost (1 + s) (1 + θ) := ⟨by have := hθ.1; grind, by have := hθ.2; grind⟩
  have := hz.add ((hx.mono hc).mul hθ')
  rw [show y - x * (1 + θ) + (x - x₀) * (1 + θ) = y - x₀ * (1 + θ) by grind] at this
  exact this.mono (by grind)

/-- A factor that covers all roundings of what underflows, and numbers that are at most 3. -/
private theorem tiny_sum {X Y G a b c e : R} (hX : X ≤ G) (hY : Y ≤ G) (ha : 0 ≤ a) (hb : 0 ≤ b)
    (hG : 0 ≤ G) (hc : a ≤ c) (he : b ≤ e) : X * a + Y * b ≤ G * (c + e) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hX ha
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hY hb
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left (c := G) (a := a + b) (b := c + e) (by grind) hG
  grind

/-- What is known of the number of additions, where operands are stored too. -/
theorem score_depth (hp : Precise p) (hf : PreciseFormats f)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1) :
    10 * (numeral (additions + 4) * p.accumulation) ≤ 1 := by
  have h₁ : 1 ≤ operandFactor p f := by
    rw [operandFactor, power_eq]
    refine OrderedField.one_le_pow ?_ _
    have := OrderedRing.mul_nonneg hp.unit hf.operands
    have := hp.unit
    have := hf.operands
    grind
  grind

/-- What the growth of an error is at most. -/
private theorem tiny_growth (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) :
    (1 + p.unit) ^ 5 * (1 + p.accumulation) ^ additions
        ≤ 1 + gamma (additions + 6) p.accumulation ∧
      ∀ k, k ≤ 5 → (1 + p.unit) ^ k ≤ 1 + gamma (additions + 6) p.accumulation := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h := score_growth hp.unit hu hm
  have hu₁ : 1 ≤ 1 + p.unit := by have := hp.unit; grind
  have ha₁ : 1 ≤ 1 + p.accumulation := by have := hp.accumulation; grind
  have h₅ := OrderedField.one_le_pow hu₁ 5
  have hk := OrderedField.one_le_pow ha₁ additions
  have h₁ : (1 + p.unit) ^ 5 * (1 + p.accumulation) ^ additions
      ≤ 1 + gamma (additions + 6) p.accumulation := by
    refine Std.le_trans ?_ h
    rw [Semiring.pow_succ (1 + p.accumulation)]
    refine OrderedRing.mul_le_mul_of_nonneg_left ?_ (by grind)
    have := OrderedRing.mul_le_mul_of_nonneg_left ha₁
      (c := (1 + p.accumulation) ^ additions) (by grind)
    grind
  refine ⟨h₁, fun k hk₅ => ?_⟩
  have e : (1 + p.unit) ^ 5 = (1 + p.unit) ^ k * (1 + p.unit) ^ (5 - k) := by
    rw [← Semiring.pow_add, Nat.add_sub_of_le hk₅]
  have i₁ := OrderedField.one_le_pow hu₁ k
  have i₂ := OrderedField.one_le_pow hu₁ (5 - k)
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_left i₂ (c := (1 + p.unit) ^ k) (by grind)
  have i₄ := OrderedRing.mul_le_mul_of_nonneg_left hk (c := (1 + p.unit) ^ 5) (by grind)
  clear h
  generalize (1 + p.unit) ^ 5 = U at *
  generalize (1 + p.unit) ^ k = V at *
  generalize (1 + p.unit) ^ (5 - k) = W at *
  grind

/-- Nothing else of a format counts where operands are stored. -/
private theorem storedTimes_formats {b : R} {k : Nat} {x y : R} (h : StoredTimes p f k x y) :
    StoredTimes p { f with scoresTiny := b } k x y := by
  induction k generalizing y with
  | zero => exact h
  | succ k ih =>
    obtain ⟨z, w, h₁, h₂, h₃⟩ := h
    exact ⟨z, w, ih h₁, h₂, h₃⟩

private theorem mul_sub_swap (a b σ : R) : (a - b) * σ = σ * a - σ * b := by grind

private theorem reorder (U A n ν V g : R) : U * (A * (n * ν) * (V * g)) = U * V * A * (n * ν * g) :=
  by grind

private theorem spread_out (ν n g cap : R) : ν * (n * g + 3 * (1 + cap))
    = n * ν * g + ν * (3 * (1 + cap)) := by grind

private theorem twice_as_many {u c : R} (hu : 0 ≤ u) (hc : c ≤ numeral d * ν) :
    (1 + u) ^ additions * (numeral d * ν + c) ≤ (1 + u) ^ additions * (numeral (2 * d) * ν) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.one_le_pow (x := 1 + u) (by grind) additions
  refine OrderedRing.mul_le_mul_of_nonneg_left ?_ (by grind)
  have e : (numeral (2 * d) : R) = numeral d + numeral d := by
    rw [numeral_eq, numeral_eq, Nat.two_mul, Semiring.natCast_add]
  rw [e]
  grind

private theorem two_le {cap ν : R} (hν : 0 ≤ ν) (hcap : 0 ≤ cap) : 2 * ν ≤ ν * (3 * (1 + cap)) := by
  have := OrderedRing.mul_nonneg hν hcap
  grind

/-- The same of a score that stores what it is said to. -/
private theorem tiny_stored (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) (hν : 0 ≤ ν) (hcap : 0 ≤ cap)
    {a b : Nat} {σ₁ σ₂ σ : R} (hσ : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ)
    {q k : Vec R d} {y : R} (h : TinyStoredScore p f ν additions a b σ₁ σ₂ σ q k y) :
    StoredScore p (underflowFormats p f ν additions d scale cap) additions a b σ₁ σ₂ σ q k y := by
  obtain ⟨q', k', products, sum, x, hq, hk, hprod, hsum, hx, hy⟩ := h
  obtain ⟨θ, hθ⟩ := Classical.skolem.mp fun i => stored_split hp.accumulation hν (hprod i)
  obtain ⟨sum₀, c, h₁, h₀, h₂⟩ := sumOf_companion (g := fun i => q' i * k' i * (1 + θ i))
    (e := fun _ => ν) hp.accumulation hν hsum (fun i _ => (hθ i).2.1)
    (fun i _ h => by
      show q' i * k' i * (1 + θ i) = 0
      rw [h, Semiring.zero_mul])
  rw [sumOver_const, List.length_finRange, ← numeral_eq] at h₂
  have hc : c ≤ numeral d * ν := by
    have := h₀.le hν (t := fun _ => ν) (fun _ _ => hν) fun _ _ _ => Std.le_refl _
    rwa [sumOver_const, List.length_finRange, ← numeral_eq] at this
  have h₃ := (h₂.mono (twice_as_many hp.accumulation hc)).mul hσ
  rw [mul_sub_swap] at h₃
  obtain ⟨x₀, h₄, h₅⟩ := storedTimes_companion hp.unit hν hx h₃
  refine ⟨q', k', fun i => q' i * k' i * (1 + θ i), sum₀, x₀,
    fun i => storedTimes_formats (hq i), fun i => storedTimes_formats (hk i),
    fun i => ⟨θ i, (hθ i).1, rfl⟩, h₁, h₄, storedNear_shift hy h₅ ?_⟩
  obtain ⟨i₁, i₂⟩ := tiny_growth hp hu hm
  have i₃ := i₂ 2 (by omega)
  have hg : 0 ≤ max 1 (absolute scale) := by
    have := OrderedRing.zero_lt_one (R := R)
    rw [OrderedField.max_def]
    split <;> grind
  have hn := numeral_nonneg (R := R) (2 * d)
  have hG : 0 ≤ 1 + gamma (additions + 6) p.accumulation := by
    have := i₂ 0 (by omega)
    have := OrderedRing.zero_lt_one (R := R)
    rw [Semiring.pow_zero] at *
    grind
  rw [reorder, ← Semiring.pow_add, numeral_three, spread_out]
  have e₂ : (numeral 2 : R) = 2 := by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  rw [e₂]
  exact tiny_sum i₁ i₃ (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hn hν) hg) (by grind) hG
    (Std.le_refl _) (two_le hν hcap)

/-- **tiny-score**: a score whose products and sums underflow in the accumulator is one of which
nothing does, in formats with the errors that the Spec has for it. -/
theorem tiny_score (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) (hν : 0 ≤ ν) (hcap : 0 ≤ cap)
    {σ₁ σ₂ σ : R} (hσ : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ) {q k : Vec R d}
    {y : R} (h : TinyScore p f ν additions σ₁ σ₂ σ q k y) :
    ComputedScore p (underflowFormats p f ν additions d scale cap) additions σ₁ σ₂ σ q k y := by
  obtain ⟨a, b, q', k', products, sum, x, hab, h⟩ := h
  obtain ⟨q', k', products, sum, x, h⟩ := tiny_stored (cap := cap) hp hu hm hν hcap hσ
    (a := a) (b := b) ⟨q', k', products, sum, x, h⟩
  exact ⟨a, b, q', k', products, sum, x, hab, h⟩

/-- A scale that is not split is no larger than it may be, but for its roundings, nor is 1. -/
private theorem unsplit_part (hp : Precise p) {σ : R} (hσ : RoundedTimes p.unit 3 scale σ) :
    AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) 1 ∧
      AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.one_le_pow (x := 1 + p.unit) (by have := hp.unit; grind) 3
  have h₂ : 1 ≤ max 1 (absolute scale) ∧ absolute scale ≤ max 1 (absolute scale) := by
    rw [OrderedField.max_def]
    split <;> grind
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor hσ
  have ht' : AtMost ((1 + p.unit) ^ 3) t := ⟨by have := ht.1; grind, by have := ht.2; grind⟩
  have h₃ := (atMost_absolute scale).mul ht'
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₂.1 (c := (1 + p.unit) ^ 3) (by grind)
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_left h₂.2 (c := (1 + p.unit) ^ 3) (by grind)
  have one : AtMost (1 : R) 1 := ⟨by grind, Std.le_refl _⟩
  rw [Semiring.mul_one] at h₄
  exact ⟨one.mono (Std.le_trans h₁ h₄), h₃.mono (by grind)⟩

/-- **tiny-unsplit-scale**: scores whose products and sums underflow in the accumulator, of a scale
that is split or not, are scores of which nothing does, with parts of the scale as `ScaledBy` has
them, in formats with the errors that the Spec has. -/
theorem tiny_products (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) (hν : 0 ≤ ν) (hcap : 0 ≤ cap)
    {product : Vec R d → Vec R d → R → Prop} (h : TinyProducts p f ν additions scale product) :
    ∃ σ₁ σ₂ σ, ScaledBy p (underflowFormats p f ν additions d scale cap) scale σ₁ σ₂ σ ∧
      ∀ q k y, product q k y →
        ComputedScore p (underflowFormats p f ν additions d scale cap) additions σ₁ σ₂ σ q k y := by
  cases h with
  | split hσ hσ' =>
    exact ⟨_, _, _, ⟨hσ.product, hσ.both, hσ.first, hσ.second⟩, fun q k y h =>
      tiny_score hp hu hm hν hcap hσ' h⟩
  | @unsplit place σ hr hσ =>
    obtain ⟨σ₁, σ₂, σ₃, h₁, h₂⟩ := unsplit_scores
      (f := underflowFormats p f ν additions d scale cap) hp.unit hr place hσ
    obtain ⟨one, whole⟩ := unsplit_part hp hσ
    refine ⟨σ₁, σ₂, σ₃, h₁, fun q k y h => h₂ additions d q k y ?_⟩
    cases place with
    | query =>
      obtain ⟨a, ha, h⟩ := h
      exact ⟨a, ha, tiny_stored hp hu hm hν hcap one h⟩
    | key =>
      obtain ⟨b, hb, h⟩ := h
      exact ⟨b, hb, tiny_stored hp hu hm hν hcap one h⟩
    | product => exact tiny_stored hp hu hm hν hcap whole h

/-- Two roundings of a number that is off by `c`. -/
private theorem tiny_twice {c : R} (hc₀ : 0 ≤ c) (hc : c ≤ ν) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1)
    (hν : 0 ≤ ν) (hcap : 0 ≤ cap) :
    (1 + p.unit) ^ 2 * c + (1 + p.unit) ^ 2 * (numeral 2 * ν)
      ≤ (1 + gamma (additions + 6) p.accumulation)
        * (ν * (numeral (2 * d) * max 1 (absolute scale) + numeral 3 * (1 + cap))) := by
  have i := (tiny_growth hp hu hm).2 2 (by omega)
  have hG := Std.le_trans (OrderedField.one_le_pow (x := 1 + p.unit) (by
    have := hp.unit
    grind) 2) i
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hg : 0 ≤ numeral (2 * d) * max 1 (absolute scale) :=
    OrderedRing.mul_nonneg (numeral_nonneg (2 * d)) (by
      rw [OrderedField.max_def]
      split <;> grind)
  have e₂ : (numeral 2 : R) = 2 := by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  rw [numeral_three, e₂]
  have h₃ := OrderedRing.mul_nonneg hν hcap
  refine Std.le_trans (tiny_sum (c := ν) (e := 2 * ν + 3 * (ν * cap)) i i hc₀ (by grind) (by grind)
    hc (by grind)) ?_
  refine OrderedRing.mul_le_mul_of_nonneg_left ?_ (by grind)
  have := OrderedRing.mul_nonneg hν hg
  grind

/-- A sum of a score and a number. -/
theorem tiny_added (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) (hν : 0 ≤ ν) (hcap : 0 ≤ cap)
    {a x y : R} (h : TinySum p f ν a x y) :
    ComputedSum p (underflowFormats p f ν additions d scale cap) a x y := by
  obtain ⟨b, c, s, w, h₁, h₂, hs, h₃, h₄⟩ := h
  obtain ⟨b₀, i₁, i₂⟩ := storedTimes_companion hp.unit hν h₁ (c := 0) (x₀ := a)
    ⟨by grind, by grind⟩
  obtain ⟨w₀, j₁, j₂⟩ := storedTimes_companion hp.unit hν h₃ hs
  exact ⟨b₀, c, w₀, i₁,
    storedNear_shift h₂ i₂ (tiny_twice (Std.le_refl _) hν hp hu hm hν hcap), j₁,
    storedNear_shift h₄ j₂ (tiny_twice hν (Std.le_refl _) hp hu hm hν hcap)⟩

private theorem add_growing {s t b : R} (hs : 0 ≤ s) (hb : 0 ≤ b) : t + b ≤ t + (1 + s) * b := by
  have := OrderedRing.mul_nonneg hs hb
  grind

/-- The score of a sink. -/
theorem tiny_sink (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) (hf₀ : 0 ≤ f.scores) (hν : 0 ≤ ν)
    (hcap : 0 ≤ cap) {sink y : R} (h : TinySink p f ν sink y) :
    ComputedSink p (underflowFormats p f ν additions d scale cap) sink y := by
  obtain ⟨w, h₁, h₂⟩ := h
  obtain ⟨w₀, i₁, i₂⟩ := storedTimes_companion hp.unit hν h₁ (c := 0) (x₀ := sink)
    ⟨by grind, by grind⟩
  have i₃ := i₂.mono (tiny_twice (d := d) (scale := scale) (Std.le_refl _) hν hp hu hm hν hcap)
  refine ⟨w₀, i₁, ?_⟩
  have h₃ := h₂.add i₃
  rw [show y - w + (w - w₀) = y - w₀ by grind] at h₃
  have h₄ := h₃.mono (add_growing hf₀ i₃.nonneg)
  exact h₄

private theorem capped_bound {G ν n a b cap : R} {X Y Z : R} (hX : Y * Z ≤ G) (hY : Y ≤ G)
    (hG : 0 ≤ G) (hν : 0 ≤ ν) (hn : 0 ≤ n) (hcap : 0 ≤ cap) (ha : 0 ≤ a) (ha₃ : a ≤ 3) (hb : 0 ≤ b)
    (hb₃ : b ≤ 3) (hX₀ : X = Z * 0 + Z * (a * ν)) :
    Y * (cap * X) + Y * (b * ν) ≤ G * (ν * (n + 3 * (1 + cap))) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right ha₃ (OrderedRing.mul_nonneg hcap hν)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hb₃ hν
  have h₃ := OrderedRing.mul_nonneg hν hn
  have h := tiny_sum hX hY (a := a * (cap * ν)) (b := b * ν)
    (OrderedRing.mul_nonneg ha (OrderedRing.mul_nonneg hcap hν)) (OrderedRing.mul_nonneg hb hν) hG
    h₁ (e := ν * n + 3 * ν) (by grind)
  have e₁ : Y * (cap * X) = Y * Z * (a * (cap * ν)) := by
    rw [hX₀]
    grind
  have e₂ : ν * (n + 3 * (1 + cap)) = 3 * (cap * ν) + (ν * n + 3 * ν) := by grind
  rw [e₁, e₂]
  exact h

variable [NaturalExp R]

/-- A score after softcap. -/
private theorem tiny_softcap (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) (hν : 0 ≤ ν) (hcap : 0 < cap)
    {x y : R} (h : TinySoftcap p f ν cap x y) :
    ComputedSoftcap p (underflowFormats p f ν additions d scale cap) cap x y := by
  obtain ⟨a, b, z, t, w, hab, hz, ht, hw, hy⟩ := h
  obtain ⟨z₀, h₁, h₂⟩ := storedTimes_companion hp.unit hν hz (c := 0) (x₀ := x / cap)
    ⟨by grind, by grind⟩
  have h₃ := (tanh_atMost archimedean h₂).mul (⟨by grind, Std.le_refl _⟩ : AtMost cap cap)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨w₀, h₄, h₅⟩ := storedTimes_companion hp.unit hν hw
    (x₀ := cap * (t - (tanh z - tanh z₀))) (c := cap * ((1 + p.unit) ^ a * 0
      + (1 + p.unit) ^ a * (numeral a * ν))) (by
      rw [show cap * t - cap * (t - (tanh z - tanh z₀)) = (tanh z - tanh z₀) * cap by grind,
        CommSemiring.mul_comm cap]
      exact h₃)
  refine ⟨a, b, z₀, t - (tanh z - tanh z₀), w₀, hab, h₁, ?_, h₄, storedNear_shift hy h₅ ?_⟩
  · rwa [show t - (tanh z - tanh z₀) - tanh z₀ = t - tanh z by grind]
  obtain ⟨-, i⟩ := tiny_growth hp hu hm
  have i₁ := i (b + a) (by omega)
  rw [Semiring.pow_add] at i₁
  have i₂ := i b (by omega)
  have hG := i 0 (by omega)
  rw [Semiring.pow_zero] at hG
  rw [numeral_three]
  exact capped_bound i₁ i₂ (Std.le_trans (Std.le_of_lt h₀) hG) hν
    (OrderedRing.mul_nonneg (numeral_nonneg (2 * d)) (by
      rw [OrderedField.max_def]
      split <;> grind)) (Std.le_of_lt hcap)
    (numeral_nonneg a) (numeral_le_three (by omega)) (numeral_nonneg b)
    (numeral_le_three (by omega)) rfl

/-- What becomes of a score, where `c` is its cap. -/
theorem tiny_change (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1) (hν : 0 ≤ ν)
    {change : ScoreChange R} {c : R} (hc : 0 ≤ c)
    (hcap : ∀ cap, change.cap = some cap → 0 < cap ∧ c = cap) {x y : R}
    (h : TinyChange p f ν change x y) :
    ComputedChange p (underflowFormats p f ν additions d scale c) change x y := by
  obtain ⟨cap, added⟩ := change
  obtain ⟨z, hz, hy⟩ := h
  refine ⟨z, ?_, ?_⟩
  · cases cap with
    | none => exact hz
    | some cap =>
      obtain ⟨h₁, rfl⟩ := hcap cap rfl
      exact tiny_softcap archimedean hp hu hm hν h₁ hz
  · cases added with
    | none => exact hy
    | some a => exact tiny_added hp hu hm hν hc hy

/-- Scores of which products and sums underflow in the accumulator, and quotients by a cap, are
scores of which nothing does, with some parts of the scale, in formats with the errors that the Spec
has for it. -/
theorem tiny_scores (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hm : 10 * (numeral (additions + 4) * p.accumulation) ≤ 1)
    (hf₀ : 0 ≤ f.scores) (hν : 0 ≤ ν) {q_len kv_len : Nat}
    {changes : ScoreChanges R q_len kv_len} (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    {mask : Mask q_len kv_len} {Q : Matrix R q_len d} {K : Matrix R kv_len d} {i : Fin q_len}
    {computed : Option (Fin kv_len) → R}
    (h : TinyScores p f ν additions changes scale mask Q K i computed) :
    ∃ σ₁ σ₂ σ, ScaledBy p (changes.formats p f ν additions d scale) scale σ₁ σ₂ σ ∧
      ComputedScores p (changes.formats p f ν additions d scale) additions σ₁ σ₂ σ changes scale
        mask Q K i computed := by
  obtain ⟨sinks, product, products, scores⟩ := h
  have key : ∀ c, 0 ≤ c → (∀ cap, changes.cap = some cap → 0 < cap ∧ c = cap) →
      ∃ σ₁ σ₂ σ, ScaledBy p (underflowFormats p f ν additions d scale c) scale σ₁ σ₂ σ ∧
        ComputedScores p (underflowFormats p f ν additions d scale c) additions σ₁ σ₂ σ changes
          scale mask Q K i computed := fun c hc hc' => by
    obtain ⟨σ₁, σ₂, σ, hσ, computes⟩ := tiny_products (cap := c) hp hu hm hν hc products
    refine ⟨σ₁, σ₂, σ, hσ, fun sink hs => tiny_sink hp hu hm hf₀ hν hc (sinks sink hs),
      fun j hj => ?_⟩
    obtain ⟨x, hx, hy⟩ := scores j hj
    exact ⟨x, computes _ _ _ hx, tiny_change archimedean hp hu hm hν hc hc' hy⟩
  rw [ScoreChanges.formats]
  cases e : changes.cap with
  | none => exact key 0 (Std.le_refl _) fun cap h => by simp [e] at h
  | some cap =>
    refine key cap (Std.le_of_lt (hcap cap e)) fun cap' h => ?_
    obtain rfl := Option.some.inj (e.symm.trans h)
    exact ⟨hcap _ e, rfl⟩

end Attention.Proof
