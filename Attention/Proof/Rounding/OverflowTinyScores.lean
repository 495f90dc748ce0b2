module

public import Attention.Model.UnderflowOverflowScores
public import Attention.Proof.Rounding.OverflowTinySums
public import Attention.Spec.OverflowUnderflowRows
import Attention.Proof.Rounding.Dot
import Attention.Proof.Rounding.Scores
import Attention.Proof.Rounding.Sum
import Attention.Proof.Softmax.Tanh

public section

/-! # Scores that underflow and stay in the range -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R} {ν : R}
variable {largest : Largest R}

/-- How large a stored number is. -/
theorem storedNear_size {s η b x y : R} (h : StoredNear s η x y) (hx : AtMost b x) :
    AtMost ((1 + s) * b + η) y := by
  obtain ⟨z, hz, hη⟩ := h
  have := (rounded_atMost hz hx).add hη
  rwa [show z + (y - z) = y by grind] at this

private theorem grow_operand {u f η K X n : R} (hu : 0 ≤ u) (hf : 0 ≤ f) (hη : 0 ≤ η)
    (hK : 1 ≤ K) :
    (1 + f) * ((1 + u) * (K * (X + n * η))) + η
      ≤ K * ((1 + u) * (1 + f)) * (X + (n + 1) * η) := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hK hη
  have h₂ := OrderedRing.mul_nonneg hu hf
  have h₃ := OrderedRing.mul_nonneg (show 0 ≤ (1 + u) * (1 + f) - 1 by grind)
    (OrderedRing.mul_nonneg (show 0 ≤ K by grind) hη)
  grind

/-- An operand that is multiplied, rounded and stored. -/
private theorem limited_operand (hu : 0 ≤ p.unit) (hf : PreciseFormats f) {k n : Nat} (hk : k ≤ n)
    {x : R} {y : Option R} (h : LimitedTinyStored p f largest k x y)
    (h₁ : ((1 + p.unit) * (1 + f.operands)) ^ n * (absolute x + numeral n * f.operandsTiny)
      ≤ largest.accumulator)
    (h₂ : ((1 + p.unit) * (1 + f.operands)) ^ n * (absolute x + numeral n * f.operandsTiny)
      ≤ largest.operands) :
    ∃ z, y = some z ∧ StoredTimes p f k x z ∧ AtMost (((1 + p.unit) * (1 + f.operands)) ^ k
      * (absolute x + numeral k * f.operandsTiny)) z := by
  have h₀ := absolute_nonneg x
  have one := OrderedRing.zero_lt_one (R := R)
  have base : 1 ≤ (1 + p.unit) * (1 + f.operands) := by
    have := OrderedRing.mul_nonneg hu hf.operands
    have := hf.operands
    grind
  induction k generalizing y with
  | zero =>
    refine ⟨x, h, rfl, ?_⟩
    rw [Semiring.pow_zero, Semiring.one_mul, show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul,
      Semiring.add_zero]
    exact atMost_absolute x
  | succ k ih =>
    obtain ⟨z, w, hz, hw, hy⟩ := h
    obtain ⟨z', rfl, h₃, h₄⟩ := ih (by omega) hz
    have n₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) hf.operandsTiny
    have K := OrderedField.one_le_pow base k
    have i₀ := grow_operand (X := absolute x) (n := numeral k) hu hf.operands hf.operandsTiny K
    rw [← Semiring.pow_succ, ← numeral_succ] at i₀
    have i₁ : ((1 + p.unit) * (1 + f.operands)) ^ (k + 1)
        * (absolute x + numeral (k + 1) * f.operandsTiny)
        ≤ ((1 + p.unit) * (1 + f.operands)) ^ n * (absolute x + numeral n * f.operandsTiny) := by
      have := OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral (R := R) hk)
        hf.operandsTiny
      have n₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (k + 1)) hf.operandsTiny
      have := OrderedField.one_le_pow base (k + 1)
      exact OrderedField.mul_le_mul (by grind) (OrderedField.pow_le_pow base hk) (by grind)
        (by grind)
    have b₀ := h₄.nonneg
    have b₁ := le_one_add_mul hu b₀
    have b₂ := le_one_add_mul hf.operands (Std.le_trans b₀ b₁)
    have b₃ := hf.operandsTiny
    generalize ((1 + p.unit) * (1 + f.operands)) ^ n * (absolute x + numeral n * f.operandsTiny)
      = N at *
    generalize ((1 + p.unit) * (1 + f.operands)) ^ (k + 1)
      * (absolute x + numeral (k + 1) * f.operandsTiny) = M at *
    generalize ((1 + p.unit) * (1 + f.operands)) ^ k * (absolute x + numeral k * f.operandsTiny)
      = B at *
    clear ih K n₁ base
    obtain ⟨w', rfl, h₅, h₆⟩ := limited_rounded (hw z' rfl) h₄ (by grind)
    obtain ⟨y', rfl, h₇⟩ := hy w' rfl (h₆.mono (by grind))
    exact ⟨y', rfl, ⟨z', w', h₃, h₅, h₇⟩, (storedNear_size h₇ h₆).mono i₀⟩

/-- A number that is rounded `k` times and stored as a score is. -/
private theorem limited_near (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    (hν : 0 ≤ ν) {k n : Nat} (hk : k ≤ n) {b x : R} {w y : Option R} (hx : AtMost b x)
    (hw : LimitedTinyTimes largest.accumulator p.unit ν k x w)
    (hy : ∀ r ∈ w, Limited largest.scores (StoredNear f.scores f.scoresTiny) r y)
    (h₁ : tinyStoredSize p f ν n b ≤ largest.accumulator)
    (h₂ : tinyStoredSize p f ν n b ≤ largest.scores) :
    ∃ v z, w = some v ∧ y = some z ∧ TinyTimes p.unit ν k x v ∧
      StoredNear f.scores f.scoresTiny v z ∧ AtMost (tinyStoredSize p f ν n b) z := by
  have one := OrderedRing.zero_lt_one (R := R)
  have b₀ := hx.nonneg
  have n₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) hν
  have n₂ := OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral (R := R) hk) hν
  simp only [tinyStoredSize, power_eq] at h₁ h₂ ⊢
  have h₃ := OrderedField.mul_le_mul (c := b + numeral k * ν) (d := b + numeral n * ν)
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.unit) (by grind) k))
    (OrderedField.pow_le_pow (by grind) hk) (by grind) (by grind)
  have h₄ := OrderedRing.mul_nonneg
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.unit) (by grind) n))
    (show 0 ≤ b + numeral n * ν by grind)
  have h₅ := le_one_add_mul hs h₄
  generalize (1 + p.unit) ^ n * (b + numeral n * ν) = N at *
  obtain ⟨v, rfl, h₆, h₇⟩ := limitedTinyTimes hu hν hw hx (Std.le_trans h₃ (by grind))
  obtain ⟨z, rfl, h₈⟩ := hy v rfl (h₇.mono (Std.le_trans h₃ (by grind)))
  exact ⟨v, z, rfl, rfl, h₆, h₈, storedNear_size h₈ (h₇.mono h₃)⟩

/-- A bound grows. -/
theorem tinyStoredSize_le (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    (hν : 0 ≤ ν) (k : Nat) {x y : R} (hx : 0 ≤ x) (hxy : x ≤ y) :
    x ≤ tinyStoredSize p f ν k y := by
  have one := OrderedRing.zero_lt_one (R := R)
  have n := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) hν
  simp only [tinyStoredSize, power_eq]
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedField.one_le_pow (x := 1 + p.unit) (by grind) k) (show 0 ≤ y + numeral k * ν by grind)
  have h₂ := le_one_add_mul hs (b := (1 + p.unit) ^ k * (y + numeral k * ν)) (by grind)
  grind

/-- **tiny-score-finite**: a score of inputs that fit, with room for what underflows of operands,
products, sums and the score, is a number, and one that a function without a largest number may
compute. -/
theorem limitedTinyScore (hp : Precise p) (hf : PreciseFormats f) (hs : 0 ≤ f.scores)
    (hs' : 0 ≤ f.scoresTiny) (hν : 0 ≤ ν) {additions : Nat} {σ₁ σ₂ σ : R} {d : Nat} {q k : Vec R d}
    (fits : tinyScoreFits p f ν largest additions σ₁ σ₂ σ q k) {score : Option R}
    (h : LimitedTinyScore p f ν largest additions σ₁ σ₂ σ q k score) :
    ∃ s, score = some s ∧ TinyScore p f ν additions σ₁ σ₂ σ q k s ∧
      AtMost (tinyScoreSize p f ν additions σ₁ σ₂ σ q k) s := by
  obtain ⟨a, b, q', k', products, sum, x, hab, hq, hk, hprod, hsum, hx, hscore⟩ := h
  simp only [tinyScoreFits, Bool.and_eq_true, decide_eq_true_eq, List.all_eq_true] at fits
  obtain ⟨⟨hop, hinner⟩, hsize⟩ := fits
  have one := OrderedRing.zero_lt_one (R := R)
  have hu := hp.unit
  have ha := hp.accumulation
  have hη := hf.operandsTiny
  have base : 1 ≤ (1 + p.unit) * (1 + f.operands) := by
    have := OrderedRing.mul_nonneg hu hf.operands
    have := hf.operands
    grind
  have hF : operandFactor p f = ((1 + p.unit) * (1 + f.operands)) ^ f.roundings := power_eq _ _
  have hF₁ := OrderedField.one_le_pow base f.roundings
  rw [← hF] at hF₁
  obtain ⟨τ, hτ⟩ : ∃ τ, τ = numeral f.roundings * f.operandsTiny := ⟨_, rfl⟩
  have hτ₀ : 0 ≤ τ := by
    rw [hτ]
    exact OrderedRing.mul_nonneg (numeral_nonneg _) hη
  have small : ∀ {n : Nat} {x : R}, n ≤ f.roundings →
      ((1 + p.unit) * (1 + f.operands)) ^ n * (absolute x + numeral n * f.operandsTiny)
        ≤ ((1 + p.unit) * (1 + f.operands)) ^ n * (absolute x + τ) := fun {n x} hn => by
    have := OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral (R := R) hn) hη
    have := OrderedField.one_le_pow base n
    exact OrderedRing.mul_le_mul_of_nonneg_left (by rw [hτ]; grind) (by grind)
  have op : ∀ i : Fin d, ∃ y z, q' i = some y ∧ k' i = some z ∧
      StoredTimes p f a (σ₁ * q[i]) y ∧ StoredTimes p f b (σ₂ * k[i]) z ∧
      AtMost (((1 + p.unit) * (1 + f.operands)) ^ a * (absolute (σ₁ * q[i]) + τ)) y ∧
      AtMost (((1 + p.unit) * (1 + f.operands)) ^ b * (absolute (σ₂ * k[i]) + τ)) z := fun i => by
    obtain ⟨h₁, h₂⟩ := hop i (List.mem_finRange i)
    simp only [tinyOperandSize, hF] at h₁ h₂
    obtain ⟨h₁, h₃⟩ := le_of_le_smaller h₁
    obtain ⟨h₂, h₄⟩ := le_of_le_smaller h₂
    obtain ⟨y, e₁, h₅, h₆⟩ := limited_operand hu hf (show a ≤ f.roundings by omega) (hq i) h₁ h₃
    obtain ⟨z, e₂, h₇, h₈⟩ := limited_operand hu hf (show b ≤ f.roundings by omega) (hk i) h₂ h₄
    exact ⟨y, z, e₁, e₂, h₅, h₇, h₆.mono (small (by omega)), h₈.mono (small (by omega))⟩
  -- What the inner product is bounded by.
  let product := fun i : Fin d => operandFactor p f
    * ((absolute (σ₁ * q[i]) + τ) * (absolute (σ₂ * k[i]) + τ))
  have hproduct : ∀ i, 0 ≤ product i := fun i => by
    have := absolute_nonneg (σ₁ * q[i])
    have := absolute_nonneg (σ₂ * k[i])
    exact OrderedRing.mul_nonneg (by grind) (OrderedRing.mul_nonneg (by grind) (by grind))
  let term := fun i : Fin d => (1 + p.accumulation) * (product i + 2 * ν)
  have hterm : ∀ i, 0 ≤ term i := fun i => by
    have := hproduct i
    exact OrderedRing.mul_nonneg (by grind) (by grind)
  have total : (1 + p.accumulation) ^ additions * sumOver term (List.finRange d)
      = tinyProductSize p f ν additions σ₁ σ₂ q k := by
    simp only [tinyProductSize, power_eq, term, sumOver_mul_left, Semiring.pow_succ, numeral_two,
      ← hτ]
    rw [Semiring.mul_assoc]
  have each : ∀ i : Fin d, term i ≤ largest.accumulator := fun i => by
    have h₁ := le_sumOver (f := term) (xs := List.finRange d) (fun i _ => hterm i)
      (List.mem_finRange i)
    have h₂ := sumOver_nonneg (f := term) (xs := List.finRange d) fun i _ => hterm i
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedField.one_le_pow (x := 1 + p.accumulation) (by grind) additions) h₂
    rw [total] at h₃
    grind
  have room : ∀ i, product i ≤ term i ∧ (1 + p.accumulation) * product i + ν ≤ term i - ν :=
    fun i => by
      have h₁ := OrderedRing.mul_nonneg ha (hproduct i)
      have h₂ := OrderedRing.mul_nonneg ha hν
      show product i ≤ (1 + p.accumulation) * (product i + 2 * ν) ∧ (1 + p.accumulation)
        * product i + ν ≤ (1 + p.accumulation) * (product i + 2 * ν) - ν
      exact ⟨by grind, by grind⟩
  have prod : ∀ i : Fin d, ∃ y z w, q' i = some y ∧ k' i = some z ∧ products i = some w ∧
      StoredTimes p f a (σ₁ * q[i]) y ∧ StoredTimes p f b (σ₂ * k[i]) z ∧
      Stored p.accumulation ν (y * z) w ∧ AtMost (term i - ν) w := fun i => by
    obtain ⟨y, z, e₁, e₂, h₁, h₂, h₃, h₄⟩ := op i
    have h₅ : ((1 + p.unit) * (1 + f.operands)) ^ a * ((1 + p.unit) * (1 + f.operands)) ^ b
        ≤ operandFactor p f := by
      rw [hF, ← Semiring.pow_add]
      exact OrderedField.pow_le_pow base hab
    have h₆ := OrderedRing.mul_le_mul_of_nonneg_right h₅ (OrderedRing.mul_nonneg
      (show 0 ≤ absolute (σ₁ * q[i]) + τ by have := absolute_nonneg (σ₁ * q[i]); grind)
      (show 0 ≤ absolute (σ₂ * k[i]) + τ by have := absolute_nonneg (σ₂ * k[i]); grind))
    have h₇ : AtMost (product i) (y * z) := (h₃.mul h₄).mono (by
      show _ ≤ operandFactor p f * ((absolute (σ₁ * q[i]) + τ) * (absolute (σ₂ * k[i]) + τ))
      rw [show ∀ a b c d : R, a * b * (c * d) = a * c * (b * d) from fun a b c d => by grind]
      exact h₆)
    obtain ⟨h₈, h₉⟩ := room i
    obtain ⟨w, e₃, i₁, i₂⟩ := limited_store ha hν (hprod i y e₁ z e₂) h₇ (Std.le_trans h₈ (each i))
    exact ⟨y, z, w, e₁, e₂, e₃, h₁, h₂, i₁, i₂.mono h₉⟩
  let y := fun i => (q' i).getD 0
  let z := fun i => (k' i).getD 0
  let w := fun i => (products i).getD 0
  have parts : ∀ i : Fin d, q' i = some (y i) ∧ k' i = some (z i) ∧ products i = some (w i) ∧
      StoredTimes p f a (σ₁ * q[i]) (y i) ∧ StoredTimes p f b (σ₂ * k[i]) (z i) ∧
      Stored p.accumulation ν (y i * z i) (w i) ∧ AtMost (term i - ν) (w i) := fun i => by
    obtain ⟨y', z', w', e₁, e₂, e₃, h⟩ := prod i
    simp only [y, z, w, e₁, e₂, e₃, Option.getD_some, true_and]
    exact h
  have nothing : ∀ i ∈ List.finRange d, y i * z i = 0 → w i = 0 := fun i _ e => by
    have h := (parts i).2.2.2.2.2.1.2
    rw [e, absolute_of_nonneg (Std.le_refl (0 : R))] at h
    obtain ⟨h₁, h₂⟩ := h
    grind
  obtain ⟨s, rfl, h₁⟩ := limitedSumOf (t := term) ha hν (hsum y z w (fun i => (parts i).1)
    (fun i => (parts i).2.1) fun i => (parts i).2.2.1) nothing (fun i _ => hterm i)
    (fun i _ _ => (parts i).2.2.2.2.2.2) (by rw [total]; exact hinner)
  have h₂ := sumOf_atMost (t := term) ha hν h₁ nothing (fun i _ => hterm i)
    fun i _ _ => (parts i).2.2.2.2.2.2
  rw [total] at h₂
  have h₃ := (atMost_absolute σ).mul h₂
  obtain ⟨h₄, h₅⟩ := le_of_le_smaller hsize
  obtain ⟨x', r, rfl, e, h₆, h₇, h₈⟩ := limited_near hu hs hs' hν (Nat.le_refl 2) h₃ (hx s rfl)
    hscore h₄ h₅
  exact ⟨r, e, ⟨a, b, y, z, w, s, x', hab, fun i => (parts i).2.2.2.1,
    fun i => (parts i).2.2.2.2.1, fun i => (parts i).2.2.2.2.2.1, h₁, h₆, h₇⟩, h₈⟩

/-! ## Changes -/

/-- A number that is added. -/
private theorem limited_tiny_sum (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    (hν : 0 ≤ ν) {a size x : R} {y : Option R} (hx : AtMost size x)
    (h : LimitedTinySum p f ν largest a x y)
    (h₁ : tinyStoredSize p f ν 2 (size + tinyStoredSize p f ν 2 (absolute a) + ν)
      ≤ largest.accumulator)
    (h₂ : tinyStoredSize p f ν 2 (size + tinyStoredSize p f ν 2 (absolute a) + ν)
      ≤ largest.scores) :
    ∃ z, y = some z ∧ TinySum p f ν a x z ∧
      AtMost (tinyStoredSize p f ν 2 (size + tinyStoredSize p f ν 2 (absolute a) + ν)) z := by
  obtain ⟨b, c, s, w, hb, hc, hsum, hw, hy⟩ := h
  have b₀ := hx.nonneg
  have a₀ := Std.le_trans (absolute_nonneg a)
    (tinyStoredSize_le hu hs hs' hν 2 (absolute_nonneg a) (Std.le_refl _))
  have i₁ := tinyStoredSize_le (p := p) (f := f) hu hs hs' hν 2 a₀
    (show _ ≤ size + tinyStoredSize p f ν 2 (absolute a) + ν by grind)
  have i₂ := tinyStoredSize_le (p := p) (f := f) hu hs hs' hν 2
    (show 0 ≤ size + tinyStoredSize p f ν 2 (absolute a) by grind)
    (show _ ≤ size + tinyStoredSize p f ν 2 (absolute a) + ν by grind)
  obtain ⟨b', c', rfl, rfl, j₁, j₂, j₃⟩ := limited_near hu hs hs' hν (Nat.le_refl 2)
    (atMost_absolute a) hb hc (Std.le_trans i₁ h₁) (Std.le_trans i₁ h₂)
  have j₄ := hx.add j₃
  obtain ⟨s', rfl, j₅⟩ := hsum c' rfl (j₄.mono (Std.le_trans i₂ h₁))
  have j₆ := j₄.add j₅
  rw [show x + c' + (s' - (x + c')) = s' by grind] at j₆
  obtain ⟨w', y', rfl, rfl, j₇, j₈, j₉⟩ := limited_near hu hs hs' hν (Nat.le_refl 2) j₆ (hw s' rfl)
    hy h₁ h₂
  exact ⟨y', rfl, ⟨b', c', s', w', j₁, j₂, j₅, j₇, j₈⟩, j₉⟩

/-- The score of a sink. -/
theorem limitedTinySink (hu : 0 ≤ p.unit) (hs' : 0 ≤ f.scoresTiny) (hν : 0 ≤ ν) {sink : R}
    {y : Option R} (h : LimitedTinySink p f ν largest sink y)
    (fits : tinySinkSize p f ν sink ≤ largest.accumulator) :
    ∃ z, y = some z ∧ TinySink p f ν sink z ∧ AtMost (tinySinkSize p f ν sink) z := by
  obtain ⟨w, hw, hy⟩ := h
  simp only [tinySinkSize, power_eq] at fits ⊢
  obtain ⟨v, rfl, h₁, h₂⟩ := limitedTinyTimes hu hν hw (atMost_absolute sink)
    (Std.le_trans (by grind) fits)
  obtain ⟨z, rfl, h₃⟩ := hy v rfl (h₂.mono (Std.le_trans (by grind) fits))
  have h₄ := h₂.add h₃
  rw [show v + (z - v) = z by grind] at h₄
  exact ⟨z, rfl, ⟨v, h₁, h₃⟩, h₄⟩

section
variable [Exponential R R]

/-- Softcap. -/
private theorem limited_tiny_softcap (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores)
    (hs' : 0 ≤ f.scoresTiny) (hν : 0 ≤ ν) {cap size x : R} (hcap : 0 < cap) {y : Option R}
    (hx : AtMost size x) (h : LimitedTinySoftcap p f ν largest cap x y)
    (hone : 1 ≤ largest.accumulator)
    (hquotient : power (1 + p.unit) 3 * (size / cap + numeral 3 * ν) ≤ largest.accumulator)
    (h₁ : tinyStoredSize p f ν 3 (cap * (1 + numeral 4 * p.unit)) ≤ largest.accumulator)
    (h₂ : tinyStoredSize p f ν 3 (cap * (1 + numeral 4 * p.unit)) ≤ largest.scores) :
    ∃ z, y = some z ∧ TinySoftcap p f ν cap x z ∧
      AtMost (tinyStoredSize p f ν 3 (cap * (1 + numeral 4 * p.unit))) z := by
  obtain ⟨a, b, z, t, w, hab, hz, ht, hw, hy⟩ := h
  rw [power_eq] at hquotient
  have one := OrderedRing.zero_lt_one (R := R)
  have inv : (0 : R) ≤ cap⁻¹ := Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hcap)
  have hx' : AtMost (size / cap) (x / cap) := by
    have := hx.mul (b := cap⁻¹) (y := cap⁻¹) ⟨by grind, Std.le_refl _⟩
    rwa [← Field.div_eq_mul_inv, ← Field.div_eq_mul_inv] at this
  have n := OrderedRing.mul_nonneg (numeral_nonneg (R := R) a) hν
  have n' := OrderedRing.mul_le_mul_of_nonneg_right
    (numeral_le_numeral (R := R) (show a ≤ 3 by omega)) hν
  have x₀ := hx'.nonneg
  have g := OrderedField.mul_le_mul (c := size / cap + numeral a * ν)
    (d := size / cap + numeral 3 * ν)
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.unit) (by grind) a))
    (OrderedField.pow_le_pow (by grind) (show a ≤ 3 by omega)) (by grind) (by grind)
  obtain ⟨z', rfl, h₃, -⟩ := limitedTinyTimes hu hν hz hx' (Std.le_trans g hquotient)
  have htanh : AtMost 1 (tanh z') :=
    ⟨Std.le_of_lt (neg_one_lt_tanh _), Std.le_of_lt (tanh_lt_one _)⟩
  obtain ⟨t', rfl, h₄⟩ := ht z' rfl (htanh.mono hone)
  have h₅ : AtMost (1 + numeral 4 * p.unit) t' := by
    have := htanh.add h₄
    rwa [show tanh z' + (t' - tanh z') = t' by grind] at this
  have h₆ := (show AtMost cap cap from ⟨by grind, Std.le_refl _⟩).mul h₅
  obtain ⟨w', y', rfl, rfl, i₁, i₂, i₃⟩ := limited_near hu hs hs' hν (show b ≤ 3 by omega) h₆
    (hw t' rfl) hy h₁ h₂
  exact ⟨y', rfl, ⟨a, b, z', t', w', hab, h₃, h₄, i₁, i₂⟩, i₃⟩

/-- **tiny-change-finite**: a score that is changed, and whose changes fit, is a number, and one
that a function without a largest number may compute, where what it is made of may underflow. -/
theorem limitedTinyChange (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    (hν : 0 ≤ ν) {change : ScoreChange R} (hcap : ∀ cap, change.cap = some cap → 0 < cap)
    {size x : R} (fits : tinyChangeFits p f ν largest change size) (hx : AtMost size x)
    {y : Option R} (h : LimitedTinyChange p f ν largest change x y) :
    ∃ z, y = some z ∧ TinyChange p f ν change x z ∧
      AtMost (tinyChangedSize p f ν change size) z := by
  obtain ⟨z, h₁, h₂⟩ := h
  simp only [tinyChangeFits, Bool.and_eq_true, decide_eq_true_eq] at fits
  obtain ⟨most, fits⟩ := fits
  obtain ⟨m₁, m₂⟩ := le_of_le_smaller most
  obtain ⟨cap, added⟩ := change
  -- What is added, if anything is.
  have sum : ∀ {size x : R}, 0 ≤ size → AtMost size x → (match (generalizing := false) added with
      | none => y = some x
      | some a => ∀ c ∈ some x, LimitedTinySum p f ν largest a c y) → ∀ {m : R},
      m = (match (generalizing := false) added with
        | none => size
        | some a => tinyStoredSize p f ν 2 (size + tinyStoredSize p f ν 2 (absolute a) + ν)) →
      m ≤ largest.accumulator → m ≤ largest.scores → size ≤ m ∧
      ∃ z, y = some z ∧ AtMost m z ∧ (match (generalizing := false) added with
        | none => z = x
        | some a => TinySum p f ν a x z) := by
    intro size x size₀ hx h m e m₁ m₂
    cases added with
    | none =>
      subst e
      exact ⟨Std.le_refl _, x, h, hx, rfl⟩
    | some a =>
      subst e
      have a₀ := Std.le_trans (absolute_nonneg a)
        (tinyStoredSize_le (p := p) (f := f) hu hs hs' hν 2 (absolute_nonneg a) (Std.le_refl _))
      obtain ⟨z, e, k₁, k₂⟩ := limited_tiny_sum hu hs hs' hν hx (h x rfl) m₁ m₂
      exact ⟨tinyStoredSize_le hu hs hs' hν 2 size₀ (by grind), z, e, k₂, k₁⟩
  cases cap with
  | none =>
    subst h₁
    obtain ⟨-, r, e, k₁, k₂⟩ := sum hx.nonneg hx h₂ rfl m₁ m₂
    exact ⟨r, e, ⟨x, rfl, k₂⟩, k₁⟩
  | some cap =>
    simp only [Bool.and_eq_true, decide_eq_true_eq] at fits
    obtain ⟨f₁, f₂⟩ := fits
    have hc := hcap cap rfl
    have n := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 4) hu
    have one := OrderedRing.zero_lt_one (R := R)
    have c₀ : 0 ≤ cap * (1 + numeral 4 * p.unit) :=
      OrderedRing.mul_nonneg (Std.le_of_lt hc) (by grind)
    have s₀ := Std.le_trans c₀ (tinyStoredSize_le (p := p) (f := f) hu hs hs' hν 3 c₀
      (Std.le_refl _))
    have below : tinyStoredSize p f ν 3 (cap * (1 + numeral 4 * p.unit))
        ≤ tinyChangedSize p f ν ⟨some cap, added⟩ size := by
      cases added with
      | none => exact Std.le_refl _
      | some a =>
        have a₀ := Std.le_trans (absolute_nonneg a)
          (tinyStoredSize_le (p := p) (f := f) hu hs hs' hν 2 (absolute_nonneg a) (Std.le_refl _))
        exact tinyStoredSize_le hu hs hs' hν 2 s₀ (by grind)
    obtain ⟨z', rfl, k₁, k₂⟩ := limited_tiny_softcap hu hs hs' hν hc hx h₁ f₁ f₂
      (Std.le_trans below m₁) (Std.le_trans below m₂)
    obtain ⟨-, r, e, k₃, k₄⟩ := sum s₀ k₂ h₂ rfl m₁ m₂
    exact ⟨r, e, ⟨z', k₁, k₄⟩, k₃⟩

end

end Attention.Proof
