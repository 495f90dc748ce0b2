module

public import Attention.Proof.Rounding.OverflowSums
import Attention.Proof.Rounding.Dot
import Attention.Proof.Rounding.Scores
import Attention.Proof.Rounding.Sum

public section

/-! # Scores that stay in the range -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

private theorem one_le_of {x y : R} (hx : 0 ≤ x) (hy : 0 ≤ y) : 1 ≤ (1 + x) * (1 + y) := by
  have := OrderedRing.mul_nonneg hx hy
  grind

/-- An operand that is multiplied, rounded and stored. -/
private theorem limitedStoredTimes {p : Precision R} {f : ScoreFormats R} {largest : Largest R}
    (hu : 0 ≤ p.unit) (hf : 0 ≤ f.operands) (hη : 0 ≤ f.operandsTiny) {k n : Nat} (hk : k ≤ n)
    {x : R} {y : Option R}
    (h : LimitedStoredTimes p f largest k x y)
    (h₁ : ((1 + p.unit) * (1 + f.operands)) ^ n * absolute x ≤ largest.accumulator)
    (h₂ : ((1 + p.unit) * (1 + f.operands)) ^ n * absolute x ≤ largest.operands) :
    ∃ z, y = some z ∧ StoredTimes p f k x z ∧
      AtMost (((1 + p.unit) * (1 + f.operands)) ^ k * absolute x) z := by
  have h₀ := absolute_nonneg x
  induction k generalizing y with
  | zero =>
    refine ⟨x, h, rfl, ?_⟩
    rw [Semiring.pow_zero, Semiring.one_mul]
    exact atMost_absolute x
  | succ k ih =>
    obtain ⟨z, w, hz, hw, hy⟩ := h
    obtain ⟨z', rfl, h₃, h₄⟩ := ih (by omega) hz
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedField.pow_le_pow (one_le_of hu hf) hk) h₀
    have one := OrderedRing.zero_lt_one (R := R)
    have h₆ := OrderedRing.mul_nonneg (Std.le_of_lt (OrderedField.pow_pos
      (x := (1 + p.unit) * (1 + f.operands)) (by have := one_le_of hu hf; grind) k)) h₀
    have e : ((1 + p.unit) * (1 + f.operands)) ^ (k + 1) * absolute x = (1 + f.operands) *
        ((1 + p.unit) * (((1 + p.unit) * (1 + f.operands)) ^ k * absolute x)) := by
      rw [Semiring.pow_succ]
      grind
    rw [e] at h₅ ⊢
    clear ih e
    generalize ((1 + p.unit) * (1 + f.operands)) ^ n * absolute x = N at *
    generalize ((1 + p.unit) * (1 + f.operands)) ^ k * absolute x = K at *
    have h₇ := le_one_add_mul hu h₆
    have h₈ := le_one_add_mul hf (Std.le_trans h₆ h₇)
    obtain ⟨w', rfl, h₉, i₁⟩ := limited_rounded (hw z' rfl) h₄ (by grind)
    obtain ⟨y', rfl, i₂, i₃⟩ := limited_rounded (hy w' rfl) i₁ (by grind)
    exact ⟨y', rfl, ⟨z', w', h₃, h₉, storedNear_of_rounded i₂ hη⟩, i₃⟩

/-- The sum of the sizes of the products of two operands that are stored. -/
private theorem products_le {u F a b x y : R} (hF : a * b ≤ F) (hu : 0 ≤ u)
    (hx : 0 ≤ x) (hy : 0 ≤ y) :
    (1 + u) * (a * x * (b * y)) ≤ (1 + u) * (F * (x * y)) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hF (OrderedRing.mul_nonneg hx hy)
  have one := OrderedRing.zero_lt_one (R := R)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left h₁ (c := 1 + u) (by grind)
  have e : a * x * (b * y) = a * b * (x * y) := by grind
  rwa [e]

/-- **score-finite**: a score of inputs that fit is a number, and one that a function without a
largest number may compute. -/
theorem limitedScore {p : Precision R} {f : ScoreFormats R} {largest : Largest R}
    (hp : Precise p) (hf' : PreciseFormats f) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    {additions : Nat}
    {σ₁ σ₂ σ : R} {d : Nat} {q k : Vec R d} (fits : scoreFits p f largest additions σ₁ σ₂ σ q k)
    {score : Option R} (h : LimitedScore p f largest additions σ₁ σ₂ σ q k score) :
    ∃ s, score = some s ∧ ComputedScore p f additions σ₁ σ₂ σ q k s ∧
      AtMost (scoreSize p f additions σ₁ σ₂ σ q k) s := by
  obtain ⟨a, b, q', k', products, sum, x, hab, hq, hk, hprod, hsum, hx, hscore⟩ := h
  simp only [scoreFits, Bool.and_eq_true, decide_eq_true_eq, List.all_eq_true] at fits
  obtain ⟨⟨hop, hinner⟩, hsize⟩ := fits
  have one := OrderedRing.zero_lt_one (R := R)
  have hu := hp.unit
  have ha := hp.accumulation
  have hf := hf'.operands
  have hη := hf'.operandsTiny
  have hF : operandFactor p f = ((1 + p.unit) * (1 + f.operands)) ^ f.roundings := power_eq _ _
  have op : ∀ i : Fin d, ∃ y z, q' i = some y ∧ k' i = some z ∧
      StoredTimes p f a (σ₁ * q[i]) y ∧ StoredTimes p f b (σ₂ * k[i]) z ∧
      AtMost (((1 + p.unit) * (1 + f.operands)) ^ a * absolute (σ₁ * q[i])) y ∧
      AtMost (((1 + p.unit) * (1 + f.operands)) ^ b * absolute (σ₂ * k[i])) z := fun i => by
    obtain ⟨h₁, h₂⟩ := hop i (List.mem_finRange i)
    obtain ⟨h₁, h₃⟩ := le_of_le_smaller h₁
    obtain ⟨h₂, h₄⟩ := le_of_le_smaller h₂
    rw [hF] at h₁ h₂ h₃ h₄
    obtain ⟨y, e₁, h₅, h₆⟩ := limitedStoredTimes hu hf hη (show a ≤ f.roundings by omega) (hq i) h₁
      h₃
    obtain ⟨z, e₂, h₇, h₈⟩ := limitedStoredTimes hu hf hη (show b ≤ f.roundings by omega) (hk i) h₂
      h₄
    exact ⟨y, z, e₁, e₂, h₅, h₇, h₆, h₈⟩
  -- What the inner product is bounded by.
  let term := fun i : Fin d => (1 + p.accumulation) *
    (operandFactor p f * (absolute (σ₁ * q[i]) * absolute (σ₂ * k[i])))
  have hterm : ∀ i, 0 ≤ term i := fun i => by
    have h₁ := OrderedField.one_le_pow (one_le_of hu hf) f.roundings
    rw [← hF] at h₁
    exact OrderedRing.mul_nonneg (by grind) (OrderedRing.mul_nonneg (by grind)
      (OrderedRing.mul_nonneg (absolute_nonneg _) (absolute_nonneg _)))
  have total : (1 + p.accumulation) ^ additions * sumOver term (List.finRange d)
      = productSize p f additions σ₁ σ₂ q k := by
    rw [productSize, power_eq, magnitude_eq_sum, Semiring.pow_succ]
    have e : sumOver term (List.finRange d) = (1 + p.accumulation) * (operandFactor p f *
        (absolute σ₁ * absolute σ₂ * sumOver (fun i : Fin d => absolute q[i] * absolute k[i])
          (List.finRange d))) := by
      rw [← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_mul_left]
      refine sumOver_congr fun i _ => ?_
      simp only [term, absolute_mul]
      grind
    rw [e]
    grind
  have each : ∀ i : Fin d, term i ≤ largest.accumulator := fun i => by
    have h₁ := le_sumOver (f := term) (xs := List.finRange d) (fun i _ => hterm i)
      (List.mem_finRange i)
    have h₂ := sumOver_nonneg (f := term) (xs := List.finRange d) fun i _ => hterm i
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedField.one_le_pow (x := 1 + p.accumulation) (by grind) additions) h₂
    rw [total] at h₃
    grind
  have prod : ∀ i : Fin d, ∃ y z w, q' i = some y ∧ k' i = some z ∧ products i = some w ∧
      StoredTimes p f a (σ₁ * q[i]) y ∧ StoredTimes p f b (σ₂ * k[i]) z ∧
      Rounded p.accumulation (y * z) w ∧ AtMost (term i) w := fun i => by
    obtain ⟨y, z, e₁, e₂, h₁, h₂, h₃, h₄⟩ := op i
    have h₅ : ((1 + p.unit) * (1 + f.operands)) ^ a * ((1 + p.unit) * (1 + f.operands)) ^ b
        ≤ operandFactor p f := by
      rw [hF, ← Semiring.pow_add]
      exact OrderedField.pow_le_pow (one_le_of hu hf) hab
    have h₆ := products_le h₅ ha (absolute_nonneg (σ₁ * q[i])) (absolute_nonneg (σ₂ * k[i]))
    have h₇ := h₃.mul h₄
    have h₈ := le_one_add_mul ha h₇.nonneg
    obtain ⟨w, e₃, h₉, i₁⟩ := limited_rounded (hprod i y e₁ z e₂) h₇
      (Std.le_trans (Std.le_trans h₈ h₆) (each i))
    exact ⟨y, z, w, e₁, e₂, e₃, h₁, h₂, h₉, i₁.mono h₆⟩
  let y := fun i => (q' i).getD 0
  let z := fun i => (k' i).getD 0
  let w := fun i => (products i).getD 0
  have parts : ∀ i : Fin d, q' i = some (y i) ∧ k' i = some (z i) ∧ products i = some (w i) ∧
      StoredTimes p f a (σ₁ * q[i]) (y i) ∧ StoredTimes p f b (σ₂ * k[i]) (z i) ∧
      Rounded p.accumulation (y i * z i) (w i) ∧ AtMost (term i) (w i) := fun i => by
    obtain ⟨y', z', w', e₁, e₂, e₃, h⟩ := prod i
    simp only [y, z, w, e₁, e₂, e₃, Option.getD_some, true_and]
    exact h
  obtain ⟨s, rfl, h₁, h₂⟩ := limitedSum_map (f := w) (b := term) ha
    (hsum w fun i => (parts i).2.2.1) (fun i _ => (parts i).2.2.2.2.2.2)
    (by rw [total]; exact Std.le_refl _) hinner
  have h₃ := (atMost_absolute σ).mul h₂
  obtain ⟨h₄, h₅⟩ := le_of_le_smaller hsize
  rw [scoreSize, power_eq] at h₄ h₅ ⊢
  have h₆ := OrderedRing.mul_nonneg (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.unit)
    (by grind) 2)) h₃.nonneg
  have h₇ := le_one_add_mul hs h₆
  obtain ⟨x', rfl, h₈, h₉⟩ := limitedTimes hu (hx s rfl) h₃ (Std.le_trans h₇ h₄)
  obtain ⟨r, e, i₁, i₂⟩ := limited_rounded (hscore x' rfl) h₉ (Std.le_trans h₇ h₅)
  exact ⟨r, e, ⟨a, b, y, z, w, s, x', hab, fun i => (parts i).2.2.2.1,
    fun i => (parts i).2.2.2.2.1, fun i => (parts i).2.2.2.2.2.1, h₁, h₈,
    storedNear_of_rounded i₁ hs'⟩, i₂⟩

end Attention.Proof
