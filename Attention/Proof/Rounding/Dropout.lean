module

public import Attention.Model.RoundedDropout
public import Attention.Spec.DropoutTolerance
public import Attention.Proof.Rounding.Basic
public import Attention.Proof.Rounding.Dot
public import Attention.Proof.Rounding.Factors

public section

/-! # Attention with dropout, within its tolerance

A factor that is rounded is off by what z + 5 roundings make of it, and so is the numerator.
Source: docs/tolerances.md, "Dropout". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

private theorem numeral_five : (numeral 5 : R) = 5 := by
  simp only [numeral_succ, show (numeral 0 : R) = 0 from rfl]
  grind

/-- How far a value is off that was multiplied by a computed factor. -/
theorem computedDropout_close {u q z : R} (hu : 0 ≤ u) (hq : 0 ≤ q) (hq₁ : q < 1) {keep : Bool}
    (hz : dropoutFactor q keep ≤ z) (hz₀ : 0 ≤ z) (h : (z + numeral 5) * u < 1) {v y : R}
    (computed : ComputedDropout u q keep v y) :
    AtMost ((1 / (1 - (z + numeral 5) * u) - 1) * absolute (dropoutFactor q keep * v))
      (y - dropoutFactor q keep * v) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [numeral_five] at h ⊢
  have hzu := OrderedRing.mul_nonneg hz₀ hu
  have hT := one_le_one_div (a := (z + 5) * u) (by grind) h
  cases keep with
  | false =>
    obtain rfl : y = 0 := computed
    have e : dropoutFactor q false * v = 0 := Semiring.zero_mul v
    rw [e]
    have e₁ : (0 : R) - 0 = 0 := by grind
    rw [e₁]
    exact .zero (OrderedRing.mul_nonneg (by grind) (absolute_nonneg _))
  | true =>
    obtain ⟨q', c, x, ⟨θ₀, hθ₀, rfl⟩, ⟨θ₁, hθ₁, rfl⟩, hx, ⟨θ₂, hθ₂, rfl⟩⟩ := computed
    obtain ⟨τ, rfl, hτ⟩ := roundedTimes_factor hx
    have hfactor : dropoutFactor q true = 1 / (1 - q) := rfl
    have hz₁ : 1 / (1 - q) ≤ z := hz
    rw [hfactor]
    have hq₂ : 1 - q ≠ 0 := by grind
    have hinv : (1 - q) * (1 / (1 - q)) = 1 := OrderedField.mul_div_cancel hq₂ 1
    have hge := one_le_one_div hq hq₁
    generalize 1 / (1 - q) = w at *
    -- 1 − q (1 + θ₀) = (1 − q) (1 − θ₀ (w − 1))
    have hsplit : 1 - q * (1 + θ₀) = (1 - q) * (1 + -(θ₀ * (w - 1))) := by grind
    have hw := OrderedRing.mul_le_mul_of_nonneg_right hz₁ hu
    have hθ₃ : AtMost (u * (w - 1)) (-(θ₀ * (w - 1))) := by
      have := AtMost.mul hθ₀ (⟨by grind, Std.le_refl _⟩ : AtMost (w - 1) (w - 1))
      exact ⟨by have := this.2; grind, by have := this.1; grind⟩
    have hu₁ : 0 ≤ u * (w - 1) := hθ₃.nonneg
    have i₁ := one_div_close hθ₃ (by grind)
    have i₂ := one_div_close hθ₁ (by grind)
    have i₃ : AtMost (1 + u - 1) (1 + θ₂ - 1) := ⟨by have := hθ₂.1; grind, by
      have := hθ₂.2; grind⟩
    have hall := factor_mul (factor_mul i₁ i₂) (factor_mul hτ i₃)
    have e₅ : (1 + u) ^ 4 * (1 + u) = (1 + u) ^ 5 := (Semiring.pow_succ _ _).symm
    rw [e₅] at hall
    have hbound : 1 / (1 - u * (w - 1)) * (1 / (1 - u)) * (1 + u) ^ 5
        ≤ 1 / (1 - (z + 5) * u) := by
      have j₁ := one_div_mul_le hu₁ hu (by grind)
      have j₂ := pow_le_one_div hu (k := 5) (by rw [numeral_five]; grind)
      rw [numeral_five] at j₂
      have j₃ := one_div_mul_le (a := u * (w - 1) + u) (b := 5 * u) (by grind) (by grind)
        (by grind)
      have j₄ := OrderedField.div_le_div_left (a := 1) (b := 1 - (z + 5) * u)
        (c := 1 - (u * (w - 1) + u + 5 * u)) (Std.le_of_lt h₀) (by grind) (by grind)
      have j₅ := OrderedField.mul_le_mul (a := 1 / (1 - u * (w - 1)) * (1 / (1 - u)))
        (b := 1 / (1 - (u * (w - 1) + u))) (c := (1 + u) ^ 5) (d := 1 / (1 - 5 * u))
        (OrderedRing.mul_nonneg (OrderedField.div_nonneg (Std.le_of_lt h₀) (by grind))
          (OrderedField.div_nonneg (Std.le_of_lt h₀) (by grind))) j₁
        (Std.le_of_lt (OrderedField.pow_pos (by grind) 5)) j₂
      exact Std.le_trans j₅ (Std.le_trans j₃ j₄)
    have n₁ : 1 + -(θ₀ * (w - 1)) ≠ 0 := by
      have := hθ₃.1
      grind
    have n₂ : 1 + θ₁ ≠ 0 := by
      have := hθ₁.1
      grind
    have hy : 1 / ((1 - q * (1 + θ₀)) * (1 + θ₁)) * τ * v * (1 + θ₂)
        = w * v * (1 / (1 + -(θ₀ * (w - 1))) * (1 / (1 + θ₁)) * (τ * (1 + θ₂))) := by
      rw [hsplit]
      clear hall hbound i₁ i₂ i₃ hτ hx hT hsplit
      generalize 1 + -(θ₀ * (w - 1)) = s at *
      generalize 1 + θ₁ = t at *
      grind
    rw [hy]
    have hfin := (atMost_absolute (w * v)).mul
      (hall.mono (b := 1 / (1 - (z + 5) * u) - 1) (by grind))
    generalize 1 / (1 + -(θ₀ * (w - 1))) * (1 / (1 + θ₁)) * (τ * (1 + θ₂)) = t at *
    generalize 1 / (1 - (z + 5) * u) - 1 = b at *
    have e₁ : absolute (w * v) * b = b * absolute (w * v) := Semiring.mul_comm _ _
    have e₂ : w * v * (t - 1) = w * v * t - w * v := by grind
    rwa [e₁, e₂] at hfin

variable [Exponential R R]

/-- **rounded-dropout**: every function that computes a row's attention with dropout by parts, in
any order, with every operation rounded, that of the factors too, is within its tolerance: each key
comes with the value that the function multiplies its weight by, `row` has the values multiplied by
the exact factors, none of them above `z`. -/
theorem rounded_dropout {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {q z : R} (hq : 0 ≤ q) (hq₁ : q < 1) (hz : 0 ≤ z)
    {keys : List (DroppedKey R)}
    (factors : ∀ k ∈ keys, dropoutFactor q k.keep ≤ z ∧
      ComputedDropout p.accumulation q k.keep k.value k.used)
    (computed : part.keys = keys.map fun k => { k.toComputedKey with value := k.used })
    {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : keys.map (fun k => (k.score, dropoutFactor q k.keep * k.value))
      = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hN : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1)
    (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (dropoutTolerance p z roundings rescalings negligible
        (keys.map fun k => ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩))
      (o - (attend row)[j]) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hu := hp.accumulation
  have hk : (0 : R) < numeral (roundings + 6) := by
    have := numeral_nonneg (R := R) (roundings + 5)
    rw [numeral_succ]
    grind
  have h5 : (0 : R) ≤ numeral 5 := numeral_nonneg 5
  have hzu := OrderedRing.mul_nonneg (a := z + numeral 5) (by grind) hu
  have hku := OrderedRing.mul_nonneg (Std.le_of_lt hk) hu
  have hT := one_le_one_div hzu (by grind)
  let exact : DroppedKey R → ComputedKey R := fun k =>
    { k.toComputedKey with value := dropoutFactor q k.keep * k.value }
  -- γ of the unit roundoff that counts for more
  have hγ : gamma (roundings + 6) (p.accumulation * (numeral (roundings + 6) + (z + numeral 5))
      / numeral (roundings + 6)) = 1 / (1 - (numeral (roundings + 6) * p.accumulation
        + (z + numeral 5) * p.accumulation)) - 1 := by
    rw [gamma, OrderedField.mul_div_cancel (by grind)]
    have : 1 - (numeral (roundings + 6) * p.accumulation + (z + numeral 5) * p.accumulation) ≠ 0 :=
      by grind
    generalize (numeral (roundings + 6) : R) = n at *
    generalize z + (numeral 5 : R) = x at *
    have e : p.accumulation * (n + x) = n * p.accumulation + x * p.accumulation := by grind
    rw [e]
    generalize n * p.accumulation + x * p.accumulation = y at *
    grind
  have hA : (1 + p.accumulation) ^ (roundings + 6) * (1 / (1 - (z + numeral 5) * p.accumulation))
      - 1 ≤ gamma (roundings + 6) (p.accumulation * (numeral (roundings + 6) + (z + numeral 5))
        / numeral (roundings + 6)) := by
    rw [hγ]
    have i₁ := pow_le_one_div hu (k := roundings + 6) (by grind)
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right i₁
      (c := 1 / (1 - (z + numeral 5) * p.accumulation)) (by grind)
    have i₃ := one_div_mul_le hku hzu (by grind)
    grind
  have hN₀ := one_le_one_div (a := numeral (roundings + 6) * p.accumulation
    + (z + numeral 5) * p.accumulation) (by grind) (by grind)
  have hmap : ∀ {α : Type u} (f : ComputedKey R → α),
      (keys.map fun k => (exact k, k.used)).map (fun k => f k.1) = keys.map fun k => f (exact k) :=
    fun f => by
      rw [List.map_map]
      rfl
  have := rounded_attention_of_values hp run hT (keys := keys.map fun k => (exact k, k.used)) (by
      rw [computed, List.map_map]
      rfl)
    (fun k hk => by
      obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hk
      obtain ⟨h₁, h₂⟩ := factors key hkey
      exact computedDropout_close hu hq hq₁ h₁ hz (by grind) h₂) hj (by
      rw [← same, List.map_map]
      rfl) (c := c)
    (by
      obtain ⟨key, hkey, hs, rfl⟩ := attained
      obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs
      refine ⟨_, List.mem_map_of_mem hkey, s, hs', ?_⟩
      have i₁ := (close key hkey s hs').2
      rw [hmap fun k => k.toBoundedKey]
      have i₂ := error_le_largestError (key := (exact key).toBoundedKey)
        (List.mem_map_of_mem (f := fun k => (exact k).toBoundedKey) hkey) hs
      have i₂ : key.error ≤ largestError (keys.map fun k => (exact k).toBoundedKey) := i₂
      grind)
    (fun k hk => by
      obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hk
      exact close key hkey) hr ha hA
    ⟨OrderedField.div_nonneg (OrderedRing.mul_nonneg hu (by grind)) hk, by rw [hγ]; grind⟩ hD
    result negligible
  rw [hmap fun k => k.toBoundedKey] at this
  exact this

end Attention.Proof
