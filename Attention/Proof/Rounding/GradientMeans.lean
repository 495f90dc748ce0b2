module

public import Attention.Proof.Rounding.MeanLosses
public import Attention.Spec.Backward

public section

/-! # D, within its tolerance

The mean of dP over a query row, as a backward pass that rounds computes it: as a sum over keys, or
from an output that is stored.
The bounds are sums and products of what each number may be in size: `Majorants.lean`.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d d_v : Nat}

/-- Sums over components and keys, in either order. -/
theorem sum_exchange {q z : Fin n → R} {b : Fin d → R} {u : Fin n → Fin d → R} :
    sumOver (fun i => b i * sumOver (fun j => q j * (z j * u j i)) (List.finRange n))
        (List.finRange d)
      = sumOver (fun j => q j * (z j * sumOver (fun i => b i * u j i) (List.finRange d)))
        (List.finRange n) := by
  have h₁ : ∀ i ∈ List.finRange d,
      b i * sumOver (fun j => q j * (z j * u j i)) (List.finRange n)
        = sumOver (fun j => b i * (q j * (z j * u j i))) (List.finRange n) := fun i _ =>
    (sumOver_mul_left _ _ _).symm
  rw [sumOver_congr h₁, sumOver_comm]
  refine sumOver_congr fun j _ => ?_
  rw [← sumOver_mul_left, ← sumOver_mul_left]
  exact sumOver_congr fun i _ => by
    generalize u j i = x
    grind

private theorem sums_le {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc : numeral c.delta * p.accumulation < 1) {N : Nat} (hN : N ≤ c.delta) :
    (1 + p.accumulation) ^ N * ((1 + p.factors) * (1 + p.scores)) ≤ meanFactor p c ∧
      outputFactor p c N * (1 + p.output) ≤ meanFactor p c := by
  have hg := pow_le_gamma hp.accumulation hN hc
  have h₀ := OrderedField.one_le_pow (one_le_one_plus hp.accumulation) N
  have hf := one_le_one_plus hp.factors
  have hs := one_le_one_plus hp.scores
  have ho := one_le_one_plus hp.output
  have hI := one_le_rescalings hp.exponential hp.exponential_lt (c.rescalings + 1)
  rw [meanFactor, outputFactor, power_eq]
  generalize (1 + p.accumulation) ^ N = g at *
  generalize 1 + gamma c.delta p.accumulation = G at *
  generalize 1 + p.factors = f at *
  generalize 1 + p.scores = s at *
  generalize 1 + p.output = o at *
  rw [div_rescalings (G * f * s * o), div_rescalings (g * f)]
  generalize 1 / (1 - p.exponential) ^ (c.rescalings + 1) = I at *
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hg (nonneg_of_one_le hf)
  have n₀ := OrderedRing.mul_nonneg (nonneg_of_one_le h₀) (nonneg_of_one_le hf)
  have n₁ := OrderedRing.mul_nonneg n₀ (nonneg_of_one_le hs)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (nonneg_of_one_le hs)
  have h₃ := le_mul_of_one_le n₁ h₂ ho
  have h₄ := le_mul_of_one_le n₁ h₃ hI
  have h₅ := le_mul_of_one_le n₀ h₁ hs
  have n₂ := nonneg_of_one_le ho
  have n₃ := nonneg_of_one_le hI
  have h₆ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedRing.mul_le_mul_of_nonneg_right h₅ n₂) n₃
  refine ⟨?_, ?_⟩
  · rwa [← Semiring.mul_assoc]
  · rwa [show g * f * I * o = g * f * o * I by grind]

/-- What a weight may be as it meets its value, over what it is. -/
private def storedFactor (p : GradientPrecision R) (r : BackwardRow R n d_v) (j : Fin n) : R :=
  (1 + r.error j) * (1 + p.stored)

private theorem storedFactor_nonneg {p : GradientPrecision R} (hp : PreciseGradient p)
    {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) : 0 ≤ storedFactor p r j :=
  OrderedRing.mul_nonneg (nonneg_of_one_le (one_le_one_plus (hr.error j)))
    (nonneg_of_one_le (one_le_one_plus hp.stored))

theorem key_size_nonneg {r : BackwardRow R n d_v} (hr : r.Valid) (j : Fin n) :
    0 ≤ r.factor j * magnitude r.dO (r.value j) :=
  OrderedRing.mul_nonneg (hr.factor j) (dot_atMost_magnitude _ _).nonneg

/-- One key of D, from its weight and dP. -/
private theorem key_bound {S L A q n m c a G F : R} (hS : 0 ≤ S) (hL : 0 ≤ L) (hA : 0 ≤ A)
    (hq : 0 ≤ q) (hn : 0 ≤ n) (hc : 0 ≤ c) (ha : 1 ≤ a) (h₁ : c * a * G ≤ F) (h₂ : c * a ≤ F)
    (hm : n + n ≤ m) :
    c * ((S + L) * (A * G + q) * a + n + n) ≤ S * A * F + F * (L * (A + q) + S * q + m) := by
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (OrderedRing.mul_nonneg (show 0 ≤ S + L by
    grind) hA)
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right h₂ (OrderedRing.mul_nonneg (show 0 ≤ S + L by
    grind) hq)
  have i₃ : c ≤ F := Std.le_trans (le_mul_of_one_le hc (Std.le_refl c) ha) h₂
  have i₄ := OrderedField.mul_le_mul hc i₃ (show 0 ≤ n + n by grind) hm
  clear h₁ h₂ hm hS hL hA hq hn hc ha i₃
  grind

/-- Σ |dO|, not negative. -/
private theorem rowReach_nonneg (r : BackwardRow R n d_v) : 0 ≤ r.reach :=
  sumOver_nonneg fun _ _ => absolute_nonneg _

/-- What D may be in size: what is off by a share, and what is lost. -/
private def meanMost (p : GradientPrecision R) (c : GradientCounts) (r : BackwardRow R n d_v) : R :=
  sumOver (fun j => r.weight j * storedFactor p r j
      * (r.factor j * magnitude r.dO (r.value j)) * meanFactor p c) (List.finRange n)
    + meanFactor p c * meanTiny p c r.reach r.keys

/-- One factor of errors, and no fewer for fewer roundings. -/
private theorem factor_facts {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc : numeral c.delta * p.accumulation < 1) {N : Nat} (hN : N ≤ c.delta) :
    (1 + p.accumulation) ^ N ≤ meanFactor p c := by
  refine Std.le_trans ?_ (sums_le hp hc hN).1
  have h₁ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) N)
  exact le_mul_of_one_le h₁ (Std.le_refl _)
    (Std.le_trans (one_le_one_plus hp.factors) (le_mul_of_one_le
      (nonneg_of_one_le (one_le_one_plus hp.factors)) (Std.le_refl _) (one_le_one_plus hp.scores)))

private theorem meanWeight_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {r : BackwardRow R n d_v} (hr : r.Valid) {j : Fin n} {w : R}
    (h : r.MeanWeight p c j w) :
    Majorised (r.weight j * storedFactor p r j + meanWeightTiny p c (r.key j)) (r.weight j) w
      (r.weight j) :=
  storedWeight_majorised hp.stored (hr.weight j) h

private theorem meanTiny_eq (p : GradientPrecision R) (c : GradientCounts)
    (r : BackwardRow R n d_v) :
    meanTiny p c r.reach r.keys = sumOver (fun j =>
      meanWeightTiny p c (r.key j) * (r.factor j * magnitude r.dO (r.value j)
          + productTiny p c (r.factor j))
        + r.weight j * storedFactor p r j * productTiny p c (r.factor j)
        + tinyOf (r.weight j) (meanLost p c (r.error j)) * (numeral 2 + r.reach))
      (List.finRange n) + (p.outputTiny * r.reach + numeral (2 * c.products) * p.tiny) := by
  rw [meanTiny, BackwardRow.keys, sumOver_map]
  rfl

/-- D as the sum of products. -/
private theorem mean_ofProducts {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {k : Nat} {w x y : Fin n → R} {D : R} (hw : ∀ j, r.MeanWeight p c j (w j))
    (hx : ∀ j, ComputedProduct p c (r.factor j) r.dO (r.value j) (x j))
    (hy : ∀ j, StoredBelow p.accumulation p.tiny (w j * x j) (y j))
    (hD : FlushedSum p.accumulation p.tiny y k (List.finRange n) D)
    (hk : c.products + k + 1 ≤ c.delta) :
    Majorised (meanMost p c r)
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
  have masked : ∀ j, r.weight j ≤ 0 → w j * x j = 0 := fun j hn => by
    rw [storedWeight_eq_zero (hr.weight j) hn (hw j), Semiring.zero_mul]
  have h₁ := Majorised.flushedSum hp.accumulation hp.tiny hD
    (t := fun j => tinyOf (r.weight j) p.tiny)
    (fun j _ => ((meanWeight_majorised hp hr (hw j)).mul
      (product_majorised hp hc₁ (hr.factor j) (hx j))).below_tinyOf hp.accumulation (masked j)
        (hy j))
    (fun j _ => tinyOf_nonneg hp.tiny) fun j _ hn => by
      have seen : ¬ r.weight j ≤ 0 := fun h => by
        obtain ⟨_, -, -, h₀⟩ := hy j
        exact hn (h₀ (masked j h))
      show p.tiny ≤ tinyOf (r.weight j) p.tiny
      rw [tinyOf_pos seen]
      exact Std.le_refl _
  refine h₁.mono ?_
  have one := one_le_one_plus hp.accumulation
  have f₁ : (1 + p.accumulation) ^ k * (1 + p.accumulation)
      * ((1 + p.accumulation) ^ c.products * ((1 + p.factors) * (1 + p.scores)))
      ≤ meanFactor p c := by
    refine Std.le_trans (le_of_eq ?_) (sums_le hp hc hk).1
    rw [Semiring.pow_succ, Semiring.pow_add]
    generalize (1 + p.accumulation) ^ k = a
    generalize (1 + p.accumulation) ^ c.products = b
    generalize (1 + p.factors) * (1 + p.scores) = f
    clear h₁ hD hy hx hw hc hp one
    grind
  have f₂ := factor_facts hp hc (N := k + 1) (by omega)
  rw [Semiring.pow_succ] at f₂
  have f₃ := nonneg_of_one_le (OrderedField.one_le_pow one k)
  have f₄ := rowReach_nonneg r
  have f₅ : 0 ≤ p.outputTiny * r.reach + numeral (2 * c.products) * p.tiny := by
    have := OrderedRing.mul_nonneg hp.outputTiny f₄
    have := OrderedRing.mul_nonneg (numeral_nonneg (2 * c.products)) hp.tiny
    grind
  have f₆ : 0 ≤ meanFactor p c :=
    Std.le_trans (OrderedRing.mul_nonneg f₃ (nonneg_of_one_le one)) f₂
  have f₇ := OrderedRing.mul_nonneg f₆ f₅
  have f₈ : sumOver (fun j => (1 + p.accumulation) ^ k
      * ((r.weight j * storedFactor p r j + meanWeightTiny p c (r.key j))
        * (r.factor j * magnitude r.dO (r.value j) * ((1 + p.accumulation) ^ c.products
          * ((1 + p.factors) * (1 + p.scores))) + productTiny p c (r.factor j))
        * (1 + p.accumulation) + tinyOf (r.weight j) p.tiny + tinyOf (r.weight j) p.tiny))
        (List.finRange n)
      ≤ sumOver (fun j => r.weight j * storedFactor p r j
          * (r.factor j * magnitude r.dO (r.value j)) * meanFactor p c
        + meanFactor p c * (meanWeightTiny p c (r.key j)
            * (r.factor j * magnitude r.dO (r.value j) + productTiny p c (r.factor j))
          + r.weight j * storedFactor p r j * productTiny p c (r.factor j)
          + tinyOf (r.weight j) (meanLost p c (r.error j)) * (numeral 2 + r.reach)))
        (List.finRange n) :=
    sumOver_le_sumOver fun j _ =>
      key_bound (OrderedRing.mul_nonneg (hr.weight j) (storedFactor_nonneg hp hr j))
        (meanWeightTiny_nonneg hp c hr j) (key_size_nonneg hr j)
        (productTiny_nonneg hp hc₁ (hr.factor j)) (tinyOf_nonneg hp.tiny) f₃ one f₁ f₂
        (rowTiny_le hp c (hr.error j) f₄)
  rw [sumOver_mul_left, sumOver_add (fun j => _ * meanFactor p c), sumOver_mul_left] at f₈
  refine Std.le_trans f₈ ?_
  rw [meanMost, meanTiny_eq]
  clear f₈ h₁ f₁ f₂ f₃ f₄ f₅ f₆ hD hy hx hw hc hp one
  generalize p.outputTiny * r.reach + numeral (2 * c.products) * p.tiny = z at *
  generalize meanFactor p c = F at *
  generalize sumOver _ (List.finRange n) = x₁
  generalize sumOver _ (List.finRange n) = x₂
  grind

/-- The part of one key of an output, in size: what is stored and what is lost. -/
private theorem part_bound {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {r : BackwardRow R n d_v} (hr : r.Valid) {T : R} (hT : 0 ≤ T) (j : Fin n)
    (i : Fin d_v) :
    (r.weight j * storedFactor p r j
          + tinyOf (r.weight j) (0 * (1 + p.stored) + p.storedTiny * meanGrowth p c (r.error j)))
        * (r.factor j * absolute (r.value j)[i]) * T + T * r.outputLost p c j i
      ≤ ((r.weight j * storedFactor p r j + meanWeightTiny p c (r.key j))
        * (r.factor j * absolute (r.value j)[i])
        + tinyOf (r.weight j) (meanLost p c (r.error j))) * T := by
  have h₁ := OrderedRing.mul_nonneg (hr.factor j) (absolute_nonneg (r.value j)[i])
  have h₂ := meanLost_nonneg hp c (hr.error j)
  have e : meanWeightTiny p c (r.key j) = tinyOf (r.weight j) (numeral 2
    * meanLost p c (r.error j) * (1 + p.stored) + p.storedTiny * meanGrowth p c (r.error j)) := rfl
  rw [e, BackwardRow.outputLost]
  generalize r.factor j * absolute (r.value j)[i] = x at *
  generalize meanLost p c (r.error j) = l at *
  generalize p.storedTiny * meanGrowth p c (r.error j) = η at *
  generalize r.weight j * storedFactor p r j = s at *
  by_cases hn : r.weight j ≤ 0
  · rw [tinyOf_zero hn, tinyOf_zero hn, tinyOf_zero hn, tinyOf_zero hn]
    exact le_of_eq (by grind)
  · rw [tinyOf_pos hn, tinyOf_pos hn, tinyOf_pos hn, tinyOf_pos hn]
    have h₃ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (OrderedRing.mul_nonneg
      (OrderedRing.mul_nonneg (numeral_nonneg (R := R) 2) h₂) hp.stored) h₁) hT
    generalize (numeral 2 : R) = m at *
    clear h₁ h₂ hT hn e
    grind

/-- One component of an output that is stored, times that of dO. -/
private theorem output_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} {r : BackwardRow R n d_v}
    (hr : r.Valid) {m : Nat} {i : Fin d_v} {o y : R} (hT : 0 ≤ outputFactor p c m)
    (ho : r.OutputComponent p c m i o) (hy : StoredBelow p.accumulation p.tiny (r.dO[i] * o) y) :
    let T := outputFactor p c m
    Majorised (T * (1 + p.output) * (1 + p.accumulation)
        * (absolute r.dO[i] * sumOver (fun j => (r.weight j * storedFactor p r j
            + meanWeightTiny p c (r.key j)) * (r.factor j * absolute (r.value j)[i]))
          (List.finRange n))
        + ((T * (1 + p.output) * (1 + p.accumulation)
            * sumOver (fun j => tinyOf (r.weight j) (meanLost p c (r.error j)))
              (List.finRange n) + p.outputTiny * (1 + p.accumulation)) * absolute r.dO[i]
          + p.tiny))
      (absolute r.dO[i] * sumOver (fun j => r.weight j
        * (r.factor j * absolute (r.value j)[i])) (List.finRange n)) y
      (r.dO[i] * sumOver (fun j => r.weight j * (r.factor j * (r.value j)[i]))
        (List.finRange n)) := by
  intro T
  obtain ⟨w, t, e, hw, ht, he, ho⟩ := ho
  have eT : (1 : R) + (T - 1) = T := by grind
  have h₁ := Majorised.sum (xs := List.finRange n) (a := fun j =>
    ((r.weight j * storedFactor p r j + meanWeightTiny p c (r.key j))
      * (r.factor j * absolute (r.value j)[i])
      + tinyOf (r.weight j) (meanLost p c (r.error j))) * T) fun j _ =>
    ((((storedWeight_majorised hp.stored (hr.weight j) (hw j)).mul (.exact
      ((atMost_self (hr.factor j)).mul (atMost_absolute (r.value j)[i])))).mul_factor
        (ht j)).near (y := w j * (r.factor j * (r.value j)[i]) * t j + e j) (by
          rw [show w j * (r.factor j * (r.value j)[i]) * t j + e j
            - w j * (r.factor j * (r.value j)[i]) * t j = e j by grind]
          exact he j)).mono (by
            rw [eT]
            exact part_bound hp hr hT j i)
  rw [sumOver_mul_right, sumOver_add] at h₁
  have h₂ := ((Majorised.exact (atMost_absolute r.dO[i])).mul (h₁.below ho)).below hy
  refine h₂.mono (le_of_eq ?_)
  generalize sumOver (fun j => (r.weight j * storedFactor p r j + meanWeightTiny p c (r.key j))
    * (r.factor j * absolute (r.value j)[i])) (List.finRange n) = x
  generalize sumOver (fun j => tinyOf (r.weight j) (meanLost p c (r.error j)))
    (List.finRange n) = z
  generalize 1 + p.output = a
  generalize 1 + p.accumulation = b
  generalize absolute r.dO[i] = f
  clear h₁ h₂ ho hy ht hw he hr hT eT
  grind

/-- The sizes of D from an output: X of the weights and values, E of what is lost of products. -/
private theorem output_bound {X E U a c T o F η ν ρ N n W : R} (hX : 0 ≤ X) (hE : 0 ≤ E)
    (hη : 0 ≤ η) (hν : 0 ≤ ν) (hρ : 0 ≤ ρ) (hn : 0 ≤ n) (hc : 0 ≤ c) (ha : 1 ≤ a)
    (hN : n + n ≤ N) (hW : 1 ≤ W) (h₁ : c * (T * o * a) ≤ F) (h₂ : c * a ≤ F) (hU : X ≤ U) :
    c * (T * o * a * X + ((T * o * a * E + η * a) * ρ + n * ν) + n * ν)
      ≤ F * (U + (E * (W + ρ) + (η * ρ + N * ν))) := by
  have i₀ : c ≤ F := Std.le_trans (le_mul_of_one_le hc (Std.le_refl c) ha) h₂
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hX
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ (OrderedRing.mul_nonneg hE hρ)
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_right h₂ (OrderedRing.mul_nonneg hη hρ)
  have i₄ := OrderedField.mul_le_mul hc i₀ (OrderedRing.mul_nonneg (show 0 ≤ n + n by grind) hν)
    (OrderedRing.mul_le_mul_of_nonneg_right hN hν)
  have i₅ := OrderedRing.mul_le_mul_of_nonneg_left hU (Std.le_trans hc i₀)
  have i₆ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (Std.le_trans hc i₀) hE)
    (nonneg_of_one_le hW)
  clear h₁ h₂ hU hX hE hη hν hρ hn hc ha hN i₀
  grind

private theorem one_le_two : (1 : R) ≤ numeral 2 := by
  have := OrderedRing.zero_lt_one (R := R)
  rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
  grind

/-- D from an output that is stored. -/
private theorem mean_ofOutput {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {m k : Nat} {o y : Fin d_v → R} {D : R}
    (ho : ∀ i, r.OutputComponent p c m i (o i))
    (hy : ∀ i : Fin d_v, StoredBelow p.accumulation p.tiny (r.dO[i] * o i) (y i))
    (hD : FlushedSum p.accumulation p.tiny y k (List.finRange d_v) D)
    (hk : m + k + 1 ≤ c.delta) (hd : d_v ≤ c.products) :
    Majorised (meanMost p c r)
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
  have hT : 0 ≤ outputFactor p c m := OrderedField.div_nonneg (OrderedRing.mul_nonneg
    (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) m))
    (nonneg_of_one_le (one_le_one_plus hp.factors)))
    (OrderedField.pow_pos (by have := hp.exponential_lt; grind) _)
  have h₁ := Majorised.flushedSum_each hp.accumulation hp.tiny hD fun i _ =>
    output_majorised hp hr hT (ho i) (hy i)
  rw [sumOver_add, sumOver_add, sumOver_add, sumOver_numeral,
    sumOver_mul_left, sumOver_mul_left, sum_exchange, sum_exchange, sum_exchange] at h₁
  have e₁ : ∀ j, sumOver (fun i : Fin d_v => absolute r.dO[i] * absolute (r.value j)[i])
      (List.finRange d_v) = magnitude r.dO (r.value j) := fun j => by
    rw [magnitude, Vec.dot]
    simp only [Fin.getElem_fin, Vec.getElem_map]
  simp only [e₁] at h₁
  refine h₁.mono ?_
  have one := one_le_one_plus hp.accumulation
  have f₁ := (sums_le hp hc hk).2
  have f₂ := factor_facts hp hc (N := k + 1) (by omega)
  have f₃ := nonneg_of_one_le (OrderedField.one_le_pow one k)
  have f₄ : (1 + p.accumulation) ^ k * (outputFactor p c m * (1 + p.output)
      * (1 + p.accumulation)) ≤ meanFactor p c := by
    refine Std.le_trans (le_of_eq ?_) f₁
    rw [outputFactor, outputFactor, Semiring.pow_succ _ (m + k), Semiring.pow_add _ m k,
      Field.div_eq_mul_inv, Field.div_eq_mul_inv]
    generalize ((1 - p.exponential) ^ (c.rescalings + 1))⁻¹ = I
    generalize (1 + p.accumulation) ^ k = a
    generalize (1 + p.accumulation) ^ m = b
    generalize 1 + p.accumulation = u
    generalize 1 + p.factors = f
    generalize 1 + p.output = q
    clear h₁ hD hy ho hc hp hT f₁ f₂ f₃ one
    grind
  rw [Semiring.pow_succ] at f₂
  have f₅ : 0 ≤ meanFactor p c :=
    Std.le_trans (OrderedRing.mul_nonneg f₃ (nonneg_of_one_le one)) f₂
  have keys : ∀ j, 0 ≤ (r.weight j * storedFactor p r j + meanWeightTiny p c (r.key j))
      * (r.factor j * magnitude r.dO (r.value j)) := fun j => by
    have i₁ := OrderedRing.mul_nonneg (hr.weight j) (storedFactor_nonneg hp hr j)
    have i₂ := meanWeightTiny_nonneg hp c hr j
    exact OrderedRing.mul_nonneg (by grind) (key_size_nonneg hr j)
  have h₂ := output_bound (sumOver_nonneg (xs := List.finRange n) fun j _ => keys j)
    (sumOver_nonneg (xs := List.finRange n) fun j _ =>
      tinyOf_nonneg (weight := r.weight j) (meanLost_nonneg hp c (hr.error j))) hp.outputTiny
    hp.tiny
    (rowReach_nonneg r) (numeral_nonneg d_v) f₃ one (numeral_twice_le hd)
    one_le_two f₄ f₂
    (U := sumOver (fun j => r.weight j * storedFactor p r j
        * (r.factor j * magnitude r.dO (r.value j))
        + (meanWeightTiny p c (r.key j) * (r.factor j * magnitude r.dO (r.value j)
            + productTiny p c (r.factor j))
          + r.weight j * storedFactor p r j * productTiny p c (r.factor j))) (List.finRange n))
    (sumOver_le_sumOver fun j _ => by
      have i₁ := OrderedRing.mul_nonneg (hr.weight j) (storedFactor_nonneg hp hr j)
      have i₂ := meanWeightTiny_nonneg hp c hr j
      have i₃ := productTiny_nonneg hp hc₁ (hr.factor j)
      have i₄ := OrderedRing.mul_nonneg i₁ i₃
      have i₅ := OrderedRing.mul_nonneg i₂ i₃
      clear h₁ hD hy ho hc hp f₁ f₂ f₃ one keys i₁ i₂ i₃ hr
      generalize r.weight j * storedFactor p r j = a at *
      generalize meanWeightTiny p c (r.key j) = b at *
      generalize productTiny p c (r.factor j) = q at *
      generalize r.factor j * magnitude r.dO (r.value j) = A at *
      grind)
  refine Std.le_trans h₂ (le_of_eq ?_)
  clear h₁ h₂ hD hy ho hc hp f₁ f₂ f₃ f₄ f₅ one keys hr
  rw [meanMost, meanTiny_eq]
  simp only [sumOver_add, sumOver_mul_right]
  generalize sumOver (fun j => r.weight j * storedFactor p r j
    * (r.factor j * magnitude r.dO (r.value j))) (List.finRange n) = x₁
  generalize sumOver (fun j => meanWeightTiny p c (r.key j)
    * (r.factor j * magnitude r.dO (r.value j) + productTiny p c (r.factor j))) (List.finRange n)
    = x₂
  generalize sumOver (fun j => r.weight j * storedFactor p r j * productTiny p c (r.factor j))
    (List.finRange n) = x₃
  generalize sumOver (fun j => tinyOf (r.weight j) (meanLost p c (r.error j)))
    (List.finRange n) = x₄
  generalize meanFactor p c = F
  generalize p.outputTiny * r.reach + numeral (2 * c.products) * p.tiny = z
  grind

/-- D, however it is come by. -/
theorem mean_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {c : GradientCounts} (hc₁ : numeral c.products * p.accumulation < 1)
    (hc : numeral c.delta * p.accumulation < 1) {r : BackwardRow R n d_v}
    (hr : r.Valid) {D : R} (h : ComputedMean p c r D) :
    Majorised (meanSize r.keys + meanError p c r.reach r.keys) (meanSize r.keys) D
      (meanProduct r.keys) := by
  have h₁ : Majorised (meanMost p c r)
      (sumOver (fun j => r.weight j * (r.factor j * magnitude r.dO (r.value j)))
        (List.finRange n)) D
      (sumOver (fun j => r.weight j * (r.factor j * Vec.dot r.dO (r.value j)))
        (List.finRange n)) := by
    cases h with
    | ofProducts hw hx hy hD hk => exact mean_ofProducts hp hc₁ hc hr hw hx hy hD hk
    | ofOutput ho hy hD hk hd => exact mean_ofOutput hp hc₁ hc hr ho hy hD hk hd
  rw [meanError, ← Semiring.add_assoc]
  simp only [meanMost] at h₁
  generalize meanFactor p c * meanTiny p c r.reach r.keys = z at *
  simp only [meanSize, meanProduct, BackwardRow.keys, sumOver_map, BackwardRow.key,
    gradientKey]
  refine h₁.mono (le_of_eq ?_)
  refine congrArg (· + z) ?_
  rw [← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  show _ * _ * _ * meanFactor p c = _ + _ * _ * (_ * _ * meanFactor p c - 1)
  rw [storedFactor]
  clear h₁ h hc hr hp
  generalize meanFactor p c = F
  generalize magnitude r.dO (r.value j) = A
  grind

end Attention.Proof
