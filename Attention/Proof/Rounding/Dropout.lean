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

/-- Which factor covers that of a rounded probability, and five roundings. -/
private theorem factors_le_one_div {u w z : R} (hu : 0 ≤ u) (hw : 1 ≤ w) (hz : w ≤ z)
    (h : (z + 5) * u < 1) :
    1 / (1 - u * (w - 1)) * (1 / (1 - u)) * (1 + u) ^ 5 ≤ 1 / (1 - (z + 5) * u) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hwz := OrderedRing.mul_le_mul_of_nonneg_right hz hu
  have hwu := OrderedRing.mul_nonneg (b := w - 1) hu (by grind)
  have e : u * (w - 1) + u + 5 * u = (w + 5) * u := by grind
  have hsum : (w + 5) * u ≤ (z + 5) * u := by grind
  clear hwz
  generalize u * (w - 1) = a at *
  generalize (z + 5) * u = c at *
  generalize (w + 5) * u = d at *
  have j₁ := one_div_mul_le hwu hu (by grind)
  have j₂ := pow_le_one_div hu (k := 5) (by rw [numeral_five]; grind)
  rw [numeral_five] at j₂
  have j₃ := one_div_mul_le (a := a + u) (b := 5 * u) (by grind) (by grind) (by grind)
  rw [e] at j₃
  have j₄ := OrderedField.div_le_div_left (a := 1) (b := 1 - c) (c := 1 - d) (Std.le_of_lt h₀)
    (by grind) (by grind)
  have p₁ : 0 ≤ 1 / (1 - a) := OrderedField.div_nonneg (Std.le_of_lt h₀) (by grind)
  have p₂ : 0 ≤ 1 / (1 - u) := OrderedField.div_nonneg (Std.le_of_lt h₀) (by grind)
  have p₃ : 0 ≤ (1 + u) ^ 5 := Std.le_of_lt (OrderedField.pow_pos (by grind) 5)
  exact Std.le_trans (OrderedField.mul_le_mul (OrderedRing.mul_nonneg p₁ p₂) j₁ p₃ j₂)
    (Std.le_trans j₃ j₄)

private theorem split_quotient {a s t w : R} (hs : s ≠ 0) (ht : t ≠ 0)
    (hw : a * w = 1) (τ v x : R) :
    1 / (a * s * t) * τ * v * x = w * v * (1 / s * (1 / t) * (τ * x)) := by
  have e : 1 / (a * s * t) = w * (1 / s * (1 / t)) := by grind
  rw [e]
  generalize 1 / s * (1 / t) = y
  grind

/-- How far a value is off that was multiplied by a computed factor. -/
theorem computedDropout_close {u q z : R} (hu : 0 ≤ u) (hq : 0 ≤ q) (hq₁ : q < 1) {keep : Bool}
    (hz : dropoutFactor q keep ≤ z) (hz₀ : 0 ≤ z) (h : (z + numeral 5) * u < 1) {v y : R}
    (computed : ComputedDropout u q keep v y) :
    AtMost ((1 / (1 - (z + numeral 5) * u) - 1) * absolute (dropoutFactor q keep * v))
      (y - dropoutFactor q keep * v) := by
  rw [numeral_five] at h ⊢
  have hzu : 0 ≤ (z + 5) * u := OrderedRing.mul_nonneg (by grind) hu
  have hT := one_le_one_div hzu h
  cases keep with
  | false =>
    obtain rfl : y = 0 := computed
    have e : dropoutFactor q false * v = 0 := Semiring.zero_mul v
    have e₁ : (0 : R) - 0 = 0 := by grind
    rw [e, e₁]
    exact .zero (OrderedRing.mul_nonneg (by grind) (absolute_nonneg _))
  | true =>
    obtain ⟨q', c, x, ⟨θ₀, hθ₀, rfl⟩, ⟨θ₁, hθ₁, rfl⟩, hx, ⟨θ₂, hθ₂, rfl⟩⟩ := computed
    obtain ⟨τ, rfl, hτ⟩ := roundedTimes_factor hx
    have hz₁ : 1 / (1 - q) ≤ z := hz
    show AtMost (_ * absolute (1 / (1 - q) * v)) (_ - 1 / (1 - q) * v)
    have hq₂ : 1 - q ≠ 0 := by grind
    have hinv : (1 - q) * (1 / (1 - q)) = 1 := OrderedField.mul_div_cancel hq₂ 1
    have hw := one_le_one_div hq hq₁
    clear hz hx
    generalize 1 / (1 - q) = w at *
    -- 1 − q (1 + θ₀) = (1 − q) (1 − θ₀ (w − 1))
    have hsplit : 1 - q * (1 + θ₀) = (1 - q) * (1 + -(θ₀ * (w - 1))) := by
      clear hT hzu h hτ hθ₀ hθ₁ hθ₂ hz₁
      grind
    have hall := factors_le_one_div hu hw hz₁ h
    have hwz := OrderedRing.mul_le_mul_of_nonneg_right hz₁ hu
    have hθ₃ : AtMost (u * (w - 1)) (-(θ₀ * (w - 1))) := by
      have h₁ := AtMost.mul hθ₀ (⟨by grind, Std.le_refl _⟩ : AtMost (w - 1) (w - 1))
      obtain ⟨h₂, h₃⟩ := h₁
      generalize θ₀ * (w - 1) = x at *
      generalize u * (w - 1) = y at *
      clear hsplit hall hinv
      exact ⟨by grind, by grind⟩
    have l₁ : u * (w - 1) < 1 := by
      clear hsplit hall hinv hT
      grind
    have l₂ : u < 1 := by
      have h₁ := hθ₃.nonneg
      have e : u * (w - 1) = w * u - u := by grind
      clear hsplit hall hinv hT
      grind
    rw [hsplit]
    have n₁ : 1 + -(θ₀ * (w - 1)) ≠ 0 := by
      have h₁ := hθ₃.1
      generalize -(θ₀ * (w - 1)) = x at *
      clear hsplit hall hinv hT
      grind
    have n₂ : 1 + θ₁ ≠ 0 := by
      have h₁ := hθ₁.1
      clear hsplit hall hinv hT
      grind
    rw [split_quotient n₁ n₂ hinv]
    have i₁ := one_div_close hθ₃ l₁
    have i₂ := one_div_close hθ₁ l₂
    have i₃ : AtMost (1 + u - 1) (1 + θ₂ - 1) := by
      have e₁ : 1 + u - 1 = u := by grind
      have e₂ : 1 + θ₂ - 1 = θ₂ := by grind
      rw [e₁, e₂]
      exact hθ₂
    have hfactor := factor_mul (factor_mul i₁ i₂) (factor_mul hτ i₃)
    rw [← Semiring.pow_succ] at hfactor
    have hfin := (atMost_absolute (w * v)).mul
      (hfactor.mono (b := 1 / (1 - (z + 5) * u) - 1) (by
        generalize 1 / (1 - u * (w - 1)) * (1 / (1 - u)) * (1 + u) ^ (4 + 1) = x at *
        generalize 1 / (1 - (z + 5) * u) = y at *
        clear hsplit hfactor i₁ i₂ i₃
        grind))
    generalize 1 / (1 + -(θ₀ * (w - 1))) * (1 / (1 + θ₁)) * (τ * (1 + θ₂)) = t at *
    generalize 1 / (1 - (z + 5) * u) - 1 = b at *
    have e₁ : absolute (w * v) * b = b * absolute (w * v) := CommSemiring.mul_comm _ _
    have e₂ : w * v * (t - 1) = w * v * t - w * v := by
      clear hsplit hall hinv hfactor hfin
      grind
    rwa [e₁, e₂] at hfin

private theorem gamma_moreRoundings {n x u : R} (hn : 0 < n) (h : (n + x) * u < 1) :
    n * (u * (n + x) / n) / (1 - n * (u * (n + x) / n)) = 1 / (1 - (n * u + x * u)) - 1 := by
  have e : u * (n + x) = n * u + x * u := by grind
  have h₁ : 1 - (n * u + x * u) ≠ 0 := by grind
  rw [OrderedField.mul_div_cancel (by grind), e]
  generalize n * u + x * u = y at *
  grind

/-- γ of a precision that counts for more covers the roundings and the others. -/
theorem factors_le_gamma {u x : R} (hu : 0 ≤ u) (hx : 0 ≤ x) {k : Nat}
    (hk : (0 : R) < numeral k) (h : (numeral k + x) * u < 1) :
    (1 + u) ^ k * (1 / (1 - x * u)) - 1 ≤ gamma k (u * (numeral k + x) / numeral k) ∧
      0 ≤ gamma k (u * (numeral k + x) / numeral k) ∧ 1 ≤ 1 / (1 - x * u) := by
  have hxu := OrderedRing.mul_nonneg hx hu
  have hku := OrderedRing.mul_nonneg (Std.le_of_lt hk) hu
  rw [gamma, gamma_moreRoundings hk h]
  have e : (numeral k + x) * u = numeral k * u + x * u := by grind
  rw [e] at h
  have hT := one_le_one_div hxu (by grind)
  have i₁ := pow_le_one_div hu (k := k) (by grind)
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right i₁ (c := 1 / (1 - x * u))
    (by have := OrderedRing.zero_lt_one (R := R); grind)
  have i₃ := one_div_mul_le hku hxu h
  have i₄ := one_le_one_div (e := numeral k * u + x * u) (by grind) h
  have i₅ := Std.le_trans i₂ i₃
  generalize (1 + u) ^ k * (1 / (1 - x * u)) = y at *
  generalize 1 / (1 - (numeral k * u + x * u)) = t at *
  clear i₁ i₂ i₃ e h hku hxu hk
  exact ⟨by grind, by grind, hT⟩

variable [Exponential R R]

omit [Exponential R R] in
private theorem numeral_add_nonneg {n x : R} (hx : 0 ≤ x) (hn : 0 < n) : 0 ≤ n + x := by grind

omit [Exponential R R] in
private theorem below {m s c e Δ : R} (h₁ : m - (s + c) ≤ e) (h₂ : e ≤ Δ) : m ≤ s + c + Δ := by
  grind

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
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (keys.map fun k =>
        ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩)) ≤ 1)
    (hN : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1)
    (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (dropoutTolerance p z roundings rescalings negligible
        (keys.map fun k => ⟨k.score, k.error, dropoutFactor q k.keep * k.value⟩))
      (o - (attend row)[j]) := by
  have hu := hp.accumulation
  have hk : (0 : R) < numeral (roundings + 6) := by
    have h₀ := OrderedRing.zero_lt_one (R := R)
    have h₁ := numeral_nonneg (R := R) (roundings + 5)
    rw [numeral_succ]
    generalize (numeral (roundings + 5) : R) = x at *
    clear factors close
    grind
  have h5 : (0 : R) ≤ z + numeral 5 := by
    have := numeral_nonneg (R := R) 5
    clear factors close hN hD
    grind
  obtain ⟨hA, hγ, hT⟩ := factors_le_gamma hu h5 hk hN
  have hx : (z + numeral 5) * p.accumulation < 1 := by
    have h₁ := OrderedRing.mul_nonneg (Std.le_of_lt hk) hu
    have e : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation
        = numeral (roundings + 6) * p.accumulation + (z + numeral 5) * p.accumulation :=
      Semiring.right_distrib _ _ _
    rw [e] at hN
    clear factors close hA hγ hT
    grind
  let exact : DroppedKey R → ComputedKey R := fun k =>
    { k.toComputedKey with value := dropoutFactor q k.keep * k.value }
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
      exact computedDropout_close hu hq hq₁ h₁ hz hx h₂) hj (by
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
      exact below i₁ i₂)
    (fun _ => by
      obtain ⟨key, hkey, h⟩ := attained
      exact ⟨_, List.mem_map_of_mem hkey, h⟩)
    (fun k hk => by
      obtain ⟨key, hkey, rfl⟩ := List.mem_map.mp hk
      exact close key hkey) hr ha (by
      rw [hmap fun k => k.toBoundedKey]
      exact third) hA
    ⟨OrderedField.div_nonneg (OrderedRing.mul_nonneg hu (numeral_add_nonneg h5 hk)) hk, hγ⟩ hD
    result negligible
  rw [hmap fun k => k.toBoundedKey] at this
  exact this

end Attention.Proof
