module

public import Attention.Algebra.SumExchange
public import Attention.Model.RoundedStoredGradients
public import Attention.Proof.Rounding.GradientSums

public section

/-! # Gradients that are added up in a small format, within their tolerance

Each store on the way of a product to the whole is one factor more of its error.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {n : Nat}

private theorem sum_of_sizes (xs : List R) : AtMost (sumOver absolute xs) (sumOver id xs) :=
  sumOver_atMost fun x _ => atMost_absolute x

private theorem stored_growth {u σ : R} (hu : 0 ≤ u) (hσ : 0 ≤ σ) (k m : Nat) :
    1 ≤ (1 + u) ^ k * (1 + σ) ^ m := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀)
    (OrderedField.one_le_pow (one_le_one_plus hu) k) (c := 1) (Std.le_of_lt h₀)
    (OrderedField.one_le_pow (one_le_one_plus hσ) m)
  rwa [Semiring.one_mul] at this

/-- A sum that is stored on the way is off by the factors of its additions and stores. -/
theorem storedSum_majorised {u σ : R} (hu : 0 ≤ u) (hσ : 0 ≤ σ) {k m : Nat} {xs : List R} {z : R}
    (h : StoredSum u σ k m xs z) :
    Majorised ((1 + u) ^ k * (1 + σ) ^ m * sumOver absolute xs) (sumOver absolute xs) z
      (sumOver id xs) := by
  induction h with
  | @nil k m =>
    rw [sumOver_nil, sumOver_nil, Semiring.mul_zero]
    exact .exact (.zero (Std.le_refl _))
  | @one k m x =>
    have e : sumOver id [x] = x := by
      rw [sumOver_cons, sumOver_nil, id]
      grind
    have h₁ := sum_of_sizes [x]
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (stored_growth hu hσ k m) h₁.nonneg
    rw [Semiring.one_mul] at h₂
    have h₃ := (Majorised.exact h₁).mono h₂
    rwa [e] at h₃ ⊢
  | @store k m xs z z' _ hz ih =>
    have h₁ := ih.rounded hz
    rw [Semiring.pow_succ]
    refine h₁.mono ?_
    generalize sumOver absolute xs = s
    generalize (1 + u) ^ k = a
    generalize (1 + σ) ^ m = b
    clear ih h₁
    grind
  | @add k m xs ys x x' y y' _ _ hx' hy' hx hy =>
    have h₁ := hx.rounded hx'
    have h₂ := hy.rounded hy'
    rw [sumOver_append, sumOver_append, Semiring.pow_succ]
    refine ⟨?_, hx.size.add hy.size⟩
    have h₃ := h₁.error.add h₂.error
    clear hx hy h₁ h₂ hx' hy'
    generalize sumOver absolute xs = s at *
    generalize sumOver absolute ys = t at *
    generalize sumOver id xs = v at *
    generalize sumOver id ys = w at *
    generalize (1 + u) ^ k = a at *
    generalize (1 + σ) ^ m = b at *
    rwa [show a * b * s * (1 + u) - s + (a * b * t * (1 + u) - t)
        = a * (1 + u) * b * (s + t) - (s + t) by clear h₃; grind,
      show x' - v + (y' - w) = x' + y' - (v + w) by clear h₃; grind] at h₃
  | @permute k m xs ys z _ hp ih => rwa [← sumOver_perm _ hp, ← sumOver_perm _ hp]

/-- The same of numbers that are off themselves. -/
theorem Majorised.storedSum {α : Type v} {u σ z : R} (hu : 0 ≤ u) (hσ : 0 ≤ σ) {k m : Nat}
    {a b f g : α → R} {xs : List α} (hz : StoredSum u σ k m (xs.map f) z)
    (h : ∀ x ∈ xs, Majorised (a x) (b x) (f x) (g x)) :
    Majorised ((1 + u) ^ k * (1 + σ) ^ m * sumOver a xs) (sumOver b xs) z (sumOver g xs) := by
  have hs := Majorised.sum h
  refine ⟨?_, hs.size⟩
  have h₁ := (storedSum_majorised hu hσ hz).error
  rw [sumOver_map, sumOver_map] at h₁
  have h₂ : sumOver (fun x => absolute (f x)) xs ≤ sumOver a xs :=
    sumOver_le_sumOver fun x hx => absolute_le (h x hx).computed
  have h₃ := stored_growth hu hσ k m
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := (1 + u) ^ k * (1 + σ) ^ m - 1)
    (by grind)
  generalize (1 + u) ^ k * (1 + σ) ^ m = F at *
  generalize sumOver (fun x => absolute (f x)) xs = S at *
  have h₅ := (h₁.mono (b := (F - 1) * sumOver a xs) (by grind)).add hs.error
  simp only [id] at h₅
  generalize sumOver f xs = s at *
  generalize sumOver a xs = A at *
  rwa [show (F - 1) * A + (A - sumOver b xs) = F * A - sumOver b xs by grind,
    show z - s + (s - sumOver g xs) = z - sumOver g xs by grind] at h₅

/-- A sum over the tiles of the sums over each, each times a factor. -/
private theorem sum_of_parts {parts : List (List (Fin n))}
    (h : parts.flatten.Perm (List.finRange n)) (c : R) (f : Fin n → R) :
    sumOver (fun part => c * sumOver f part) parts = c * sumOver f (List.finRange n) := by
  rw [sumOver_mul_left, ← sumOver_perm f h, ← List.flatMap_id, sumOver_flatMap]
  rfl

private theorem size_mul (x y : R) : absolute (x * y) = absolute x * absolute y :=
  Std.le_antisymm (absolute_le ((atMost_absolute x).mul (atMost_absolute y)))
    (absolute_mul_le x y)

private theorem tiled_bound {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores k a e : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hk : k ≤ roundings) (ha : a ≤ stores) (he : e ≤ 3)
    (tiles : Nat) :
    (1 + p.accumulation) ^ k * (1 + p.unit) ^ e * (1 + p.operands) ^ a * (1 + p.output) ^ tiles
      ≤ (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
        * power (1 + p.operands) stores * power (1 + p.output) tiles := by
  rw [power_eq, power_eq]
  have n₁ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) k)
  have n₂ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.unit) e)
  have n₃ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.operands) a)
  have n₄ := nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hp.output) tiles)
  exact OrderedRing.mul_le_mul_of_nonneg_right (OrderedField.mul_le_mul
    (OrderedRing.mul_nonneg n₁ n₂)
    (OrderedField.mul_le_mul n₁ (pow_le_gamma hp.accumulation hk hc) n₂
      (pow_le_gamma hp.unit he hu))
    n₃ (OrderedField.pow_le_pow (one_le_one_plus hp.operands) ha)) n₄

/-- All factors of a product on its way to the whole. -/
private theorem tiled_majorised {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores tiles : Nat} {scale z : R} {x y e : Fin n → R} {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles scale x y z) :
    ∃ k a c : Nat, k ≤ roundings ∧ a ≤ stores ∧ c ≤ 3 ∧
      AtMost ((1 + p.accumulation) ^ k * (1 + p.unit) ^ c * (1 + p.operands) ^ a
          * (1 + p.output) ^ tiles * (absolute scale
            * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n))
          - absolute scale * sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n))
        (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨parts, k, l, a, b, c, f, g, σ, σ', σ'', y', y'', products, sum, sum', added, whole,
    hparts, hkl, hab, hcfg, rfl, hy, hy', hproducts, hsum, hsum', hadded, hwhole, hz⟩ := h
  refine ⟨k + l + 1, a + b, c + f + g, hkl, hab, hcfg, ?_⟩
  have hx : ∀ j, Majorised ((t j).size + (t j).error) (t j).size (x j) (e j) := fun j => by
    refine ⟨?_, (ht j).2.1⟩
    rw [show (t j).size + (t j).error - (t j).size = (t j).error by grind]
    exact (ht j).1
  have h₁ : ∀ j, Majorised (absolute σ * (1 + p.unit) ^ c * (1 + p.operands) ^ a
        * (1 + p.accumulation) * (((t j).size + (t j).error) * absolute (y j)))
      (absolute σ * ((t j).size * absolute (y j))) (products j) (σ * (e j * y j)) := fun j => by
    have h := ((hx j).mul (((Majorised.exact ((atMost_absolute σ).mul
      (atMost_absolute (y j)))).roundedTimes (hy j)).roundedTimes (hy' j))).rounded (hproducts j)
    generalize (1 + p.unit) ^ c = q at *
    generalize (1 + p.operands) ^ a = r at *
    generalize absolute σ = v at *
    generalize absolute (y j) = w at *
    generalize (t j).size = s at *
    generalize (t j).error = d at *
    rw [show v * q * r * (1 + p.accumulation) * ((s + d) * w)
        = (s + d) * (v * w * q * r) * (1 + p.accumulation) by clear h; grind,
      show v * (s * w) = s * (v * w) by clear h; grind,
      show σ * (e j * y j) = e j * (σ * y j) by clear h; grind]
    exact h
  have h₂ : ∀ part ∈ parts, Majorised
      (absolute σ' * ((1 + p.accumulation) ^ k * (absolute σ * (1 + p.unit) ^ c
        * (1 + p.operands) ^ a * (1 + p.accumulation)) * (1 + p.operands) ^ b) * (1 + p.unit) ^ f
        * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) part)
      (absolute σ' * absolute σ * sumOver (fun j => (t j).size * absolute (y j)) part) (added part)
      (σ' * σ * sumOver (fun j => e j * y j) part) := fun part hpart => by
    have h := ((Majorised.exact (atMost_absolute σ')).mul ((Majorised.roundedSum hp.accumulation
      (hsum part hpart) fun j _ => h₁ j).roundedTimes (hsum' part hpart))).roundedTimes
        (hadded part hpart)
    rw [sumOver_mul_left, sumOver_mul_left, sumOver_mul_left] at h
    clear h₁ hx ht
    generalize sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) part = A at *
    generalize sumOver (fun j => (t j).size * absolute (y j)) part = B at *
    generalize sumOver (fun j => e j * y j) part = E at *
    generalize absolute σ * (1 + p.unit) ^ c * (1 + p.operands) ^ a * (1 + p.accumulation) = r at *
    generalize (1 + p.accumulation) ^ k = q at *
    generalize (1 + p.operands) ^ b = s at *
    generalize (1 + p.unit) ^ f = v at *
    generalize absolute σ = w at *
    generalize absolute σ' = w' at *
    rwa [show w' * (q * (r * A) * s) * v = w' * (q * r * s) * v * A by clear h; grind,
      show w' * (w * B) = w' * w * B by clear h; grind,
      show σ' * (σ * E) = σ' * σ * E by clear h; grind] at h
  have h₃ := (((Majorised.exact (atMost_absolute σ'')).mul (Majorised.storedSum hp.accumulation
    hp.output hwhole h₂)).roundedTimes hz).error
  rw [sum_of_parts hparts, sum_of_parts hparts, sum_of_parts hparts] at h₃
  rw [size_mul, size_mul, Semiring.pow_succ, Semiring.pow_add, Semiring.pow_add, Semiring.pow_add,
    Semiring.pow_add]
  clear h₁ h₂ hx ht hy hy' hproducts hsum hsum' hadded hwhole hz hparts hkl hab hcfg
  generalize sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) = A
    at *
  generalize sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) = B at *
  generalize sumOver (fun j => e j * y j) (List.finRange n) = E at *
  generalize (1 + p.accumulation) ^ k = a₁ at *
  generalize (1 + p.accumulation) ^ l = a₂ at *
  generalize 1 + p.accumulation = a₃ at *
  generalize (1 + p.unit) ^ c = b₁ at *
  generalize (1 + p.unit) ^ f = b₂ at *
  generalize (1 + p.unit) ^ g = b₃ at *
  generalize (1 + p.operands) ^ a = c₁ at *
  generalize (1 + p.operands) ^ b = c₂ at *
  generalize (1 + p.output) ^ tiles = d at *
  generalize absolute σ = w at *
  generalize absolute σ' = w' at *
  generalize absolute σ'' = w'' at *
  have e₁ : w'' * (a₂ * d * (w' * (a₁ * (w * b₁ * c₁ * a₃) * c₂) * b₂ * A)) * b₃
      = a₁ * a₂ * a₃ * (b₁ * b₂ * b₃) * (c₁ * c₂) * d * (w * w' * w'' * A) := by
    clear h₃; grind
  have e₂ : w'' * (w' * w * B) = w * w' * w'' * B := by clear h₃ e₁; grind
  have e₃ : σ'' * (σ' * σ * E) = σ * σ' * σ'' * E := by clear h₃ e₁ e₂; grind
  rwa [e₁, e₂, e₃] at h₃

/-- **rounded-stored-gradient**: a sum of products of numbers that are off by an error each, added
up tile by tile, where what a tile adds and every sum of it may be stored in the format of the
output, each operation rounded, is within its bound. -/
theorem rounded_tiledGradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores tiles : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {scale z : R} {x y e : Fin n → R} {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles scale x y z) :
    AtMost (tiledGradientError p roundings stores tiles scale ((List.finRange n).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  obtain ⟨k, a, c, hk, ha, hc', h₁⟩ := tiled_majorised hp ht h
  have b₁ := tiled_bound hp hc hu hk ha hc' tiles
  have other : ∀ j, (t j).other = y j := fun j => (ht j).2.2
  rw [tiledGradientError, sumOver_map]
  simp only [other]
  have n₁ : 0 ≤ absolute scale
      * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) :=
    OrderedRing.mul_nonneg (absolute_nonneg scale) (sumOver_nonneg fun j _ =>
      OrderedRing.mul_nonneg (by
        have h₁ := (ht j).1.nonneg
        have h₂ := (ht j).2.1.nonneg
        grind) (absolute_nonneg _))
  have b₂ := OrderedRing.mul_le_mul_of_nonneg_right b₁ n₁
  have s : ∀ v : R, sumOver (fun j => ((t j).error + (v - 1) * ((t j).size + (t j).error))
        * absolute (y j)) (List.finRange n)
      = v * sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n)
        - sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) := fun v => by
    rw [← sumOver_mul_left, ← sumOver_sub]
    refine sumOver_congr fun j _ => ?_
    generalize absolute (y j) = r
    grind
  rw [s]
  refine h₁.mono ?_
  clear h₁ b₁ s other ht h n₁
  generalize sumOver (fun j => ((t j).size + (t j).error) * absolute (y j)) (List.finRange n) = A
    at *
  generalize sumOver (fun j => (t j).size * absolute (y j)) (List.finRange n) = B at *
  generalize absolute scale = w at *
  generalize (1 + p.accumulation) ^ k * (1 + p.unit) ^ c * (1 + p.operands) ^ a
    * (1 + p.output) ^ tiles = F at *
  generalize (1 + gamma roundings p.accumulation) * (1 + gamma 3 p.unit)
    * power (1 + p.operands) stores * power (1 + p.output) tiles = G at *
  grind

end Attention.Proof
