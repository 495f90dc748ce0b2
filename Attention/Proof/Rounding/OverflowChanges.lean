module

public import Attention.Model.RoundedOverflowChanges
public import Attention.Proof.Rounding.OverflowScores
public import Attention.Proof.Softmax.Tanh
import Attention.Proof.Rounding.Dot
import Attention.Proof.Rounding.Scores
import Attention.Proof.Rounding.Sum

public section

/-! # Changes of scores that stay in the range -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {p : Precision R} {f : ScoreFormats R} {largest : Largest R}

/-- A number that is rounded and stored as a score is. -/
private theorem limited_stored (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    {k : Nat} {b x : R} {w y : Option R} (hx : AtMost b x)
    (hw : LimitedTimes largest.accumulator p.unit k x w)
    (hy : ∀ r ∈ w, Limited largest.scores (Rounded f.scores) r y)
    (h₁ : (1 + f.scores) * ((1 + p.unit) ^ k * b) ≤ largest.accumulator)
    (h₂ : (1 + f.scores) * ((1 + p.unit) ^ k * b) ≤ largest.scores) :
    ∃ v z, w = some v ∧ y = some z ∧ RoundedTimes p.unit k x v ∧
      StoredNear f.scores f.scoresTiny v z ∧
      AtMost ((1 + f.scores) * ((1 + p.unit) ^ k * b)) z := by
  have one := OrderedRing.zero_lt_one (R := R)
  have h₃ := OrderedRing.mul_nonneg
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.unit) (by grind) k)) hx.nonneg
  have h₄ := le_one_add_mul hs h₃
  obtain ⟨v, rfl, h₅, h₆⟩ := limitedTimes hu hw hx (Std.le_trans h₄ h₁)
  obtain ⟨z, rfl, h₇, h₈⟩ := limited_rounded (hy v rfl) h₆ (Std.le_trans h₄ h₂)
  exact ⟨v, z, rfl, rfl, h₅, storedNear_of_rounded h₇ hs', h₈⟩

/-- A number that is added. -/
private theorem limited_added (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    {a size x : R} {y : Option R} (hx : AtMost size x)
    (h : LimitedAdded p f largest a x y)
    (h₁ : storedSize p f (size + storedSize p f (absolute a)) ≤ largest.accumulator)
    (h₂ : storedSize p f (size + storedSize p f (absolute a)) ≤ largest.scores) :
    ∃ z, y = some z ∧ ComputedSum p f a x z ∧
      AtMost (storedSize p f (size + storedSize p f (absolute a))) z := by
  obtain ⟨b, c, w, hb, hc, hw, hy⟩ := h
  simp only [storedSize, power_eq] at h₁ h₂ ⊢
  have one := OrderedRing.zero_lt_one (R := R)
  have pos := Std.le_of_lt (OrderedField.pow_pos (x := 1 + p.unit) (by grind) 2)
  have h₀ := OrderedRing.mul_nonneg (a := 1 + f.scores) (by grind)
    (OrderedRing.mul_nonneg pos (absolute_nonneg a))
  have h₃ := OrderedRing.mul_nonneg pos (b := size
    + (1 + f.scores) * ((1 + p.unit) ^ 2 * absolute a)) (by have := hx.nonneg; grind)
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedField.one_le_pow (x := 1 + p.unit) (by grind) 2) (c := size
    + (1 + f.scores) * ((1 + p.unit) ^ 2 * absolute a)) (by have := hx.nonneg; grind)
  have h₅ := le_one_add_mul hs h₃
  have h₆ : (1 + f.scores) * ((1 + p.unit) ^ 2 * absolute a)
      ≤ (1 + f.scores) * ((1 + p.unit) ^ 2
        * (size + (1 + f.scores) * ((1 + p.unit) ^ 2 * absolute a))) := by
    have := hx.nonneg
    grind
  obtain ⟨b', c', rfl, rfl, i₁, i₂, i₃⟩ := limited_stored hu hs hs' (atMost_absolute a) hb hc
    (Std.le_trans h₆ h₁) (Std.le_trans h₆ h₂)
  obtain ⟨w', y', rfl, rfl, i₄, i₅, i₆⟩ := limited_stored hu hs hs' (hx.add i₃) (hw c' rfl) hy
    h₁ h₂
  exact ⟨y', rfl, ⟨b', c', w', i₁, i₂, i₄, i₅⟩, i₆⟩

section
variable [Exponential R R]

/-- Softcap. -/
private theorem limited_softcap (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    {cap size x : R} (hcap : 0 < cap) {y : Option R} (hx : AtMost size x)
    (h : LimitedSoftcap p f largest cap x y)
    (hone : 1 ≤ largest.accumulator)
    (hquotient : (1 + p.unit) ^ 3 * (size / cap) ≤ largest.accumulator)
    (h₁ : cappedSize p f cap ≤ largest.accumulator) (h₂ : cappedSize p f cap ≤ largest.scores) :
    ∃ z, y = some z ∧ ComputedSoftcap p f cap x z ∧ AtMost (cappedSize p f cap) z := by
  obtain ⟨a, b, z, t, w, hab, hz, ht, hw, hy⟩ := h
  simp only [cappedSize, power_eq] at h₁ h₂ ⊢
  have one := OrderedRing.zero_lt_one (R := R)
  have inv : (0 : R) ≤ cap⁻¹ := Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hcap)
  have hx' : AtMost (size / cap) (x / cap) := by
    have := hx.mul (b := cap⁻¹) (y := cap⁻¹) ⟨by grind, Std.le_refl _⟩
    rwa [← Field.div_eq_mul_inv, ← Field.div_eq_mul_inv] at this
  have grow : ∀ k ≤ 3, (1 + p.unit) ^ k ≤ (1 + p.unit) ^ 3 := fun k hk =>
    OrderedField.pow_le_pow (by grind) hk
  obtain ⟨z', rfl, h₃, -⟩ := limitedTimes hu hz hx' (Std.le_trans
    (OrderedRing.mul_le_mul_of_nonneg_right (grow a (by omega)) hx'.nonneg) hquotient)
  have htanh : AtMost 1 (tanh z') :=
    ⟨Std.le_of_lt (neg_one_lt_tanh _), Std.le_of_lt (tanh_lt_one _)⟩
  obtain ⟨t', rfl, h₄⟩ := ht z' rfl (htanh.mono hone)
  have h₅ : AtMost (1 + numeral 4 * p.unit) t' := by
    have := htanh.add h₄
    rwa [show tanh z' + (t' - tanh z') = t' by grind] at this
  have h₆ := (show AtMost cap cap from ⟨by grind, Std.le_refl _⟩).mul h₅
  have h₇ := OrderedRing.mul_le_mul_of_nonneg_left (OrderedRing.mul_le_mul_of_nonneg_right
    (grow b (by omega)) h₆.nonneg) (c := 1 + f.scores) (by grind)
  obtain ⟨w', y', rfl, rfl, i₁, i₂, i₃⟩ := limited_stored hu hs hs' h₆ (hw t' rfl) hy
    (Std.le_trans h₇ h₁) (Std.le_trans h₇ h₂)
  exact ⟨y', rfl, ⟨a, b, z', t', w', hab, h₃, h₄, i₁, i₂⟩, i₃.mono h₇⟩

omit [Exponential R R] in
/-- A number that is added, where there is one. -/
private theorem limited_sum (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    {added : Option R} {size x c : R} {y : Option R}
    (hc : c = match (generalizing := false) added with
      | none => size
      | some a => storedSize p f (size + storedSize p f (absolute a)))
    (hx : AtMost size x)
    (h : match (generalizing := false) added with
      | none => y = some x
      | some a => ∀ r ∈ some x, LimitedAdded p f largest a r y)
    (h₁ : c ≤ largest.accumulator) (h₂ : c ≤ largest.scores) :
    ∃ z, y = some z ∧ AtMost c z ∧ match (generalizing := false) added with
      | none => z = x
      | some a => ComputedSum p f a x z := by
  subst hc
  cases added with
  | none => exact ⟨x, h, hx, rfl⟩
  | some a =>
    obtain ⟨z, e, k₁, k₂⟩ := limited_added hu hs hs' hx (h x rfl) h₁ h₂
    exact ⟨z, e, k₂, k₁⟩

omit [Exponential R R] in
private theorem le_storedSize (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) {b : R} (hb : 0 ≤ b) (a : R) :
    b ≤ storedSize p f (b + storedSize p f (absolute a)) := by
  simp only [storedSize, power_eq]
  have one := OrderedRing.zero_lt_one (R := R)
  have pos := OrderedField.one_le_pow (x := 1 + p.unit) (by grind) 2
  have k₁ := OrderedRing.mul_nonneg (a := 1 + f.scores) (by grind)
    (OrderedRing.mul_nonneg (a := (1 + p.unit) ^ 2) (by grind) (absolute_nonneg a))
  have k₂ := OrderedRing.mul_le_mul_of_nonneg_right pos (c := b
    + (1 + f.scores) * ((1 + p.unit) ^ 2 * absolute a)) (by grind)
  have k₃ := le_one_add_mul hs (b := (1 + p.unit) ^ 2 * (b
    + (1 + f.scores) * ((1 + p.unit) ^ 2 * absolute a))) (by grind)
  grind

omit [Exponential R R] in
private theorem cappedSize_nonneg (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) {cap : R} (hc : 0 < cap) :
    0 ≤ cappedSize p f cap := by
  simp only [cappedSize, power_eq]
  have one := OrderedRing.zero_lt_one (R := R)
  have n := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 4) hu
  exact OrderedRing.mul_nonneg (by grind) (OrderedRing.mul_nonneg
    (Std.le_of_lt (OrderedField.pow_pos (by grind) 3))
    (OrderedRing.mul_nonneg (Std.le_of_lt hc) (by grind)))

/-- **change-finite**: a score that is changed, and whose changes fit, is a number, and one that a
function without a largest number may compute. -/
theorem limitedChange (hu : 0 ≤ p.unit) (hs : 0 ≤ f.scores) (hs' : 0 ≤ f.scoresTiny)
    {change : ScoreChange R} (hcap : ∀ cap, change.cap = some cap → 0 < cap) {size x : R}
    (fits : changeFits p f largest change size) (hx : AtMost size x) {y : Option R}
    (h : LimitedChange p f largest change x y) :
    ∃ z, y = some z ∧ ComputedChange p f change x z ∧
      AtMost (changedSize p f change size) z := by
  obtain ⟨z, h₁, h₂⟩ := h
  simp only [changeFits, Bool.and_eq_true, decide_eq_true_eq] at fits
  obtain ⟨most, fits⟩ := fits
  obtain ⟨m₁, m₂⟩ := le_of_le_smaller most
  rw [changedSize] at m₁ m₂ ⊢
  cases hcase : change.cap with
  | none =>
    simp only [hcase] at h₁ m₁ m₂ ⊢
    subst h₁
    obtain ⟨r, e, k₁, k₂⟩ := limited_sum hu hs hs' rfl hx h₂ m₁ m₂
    exact ⟨r, e, ⟨x, by simp only [hcase], k₂⟩, k₁⟩
  | some cap =>
    simp only [hcase] at h₁ m₁ m₂ fits ⊢
    simp only [Bool.and_eq_true, decide_eq_true_eq, power_eq] at fits
    obtain ⟨f₁, f₂⟩ := fits
    have hc := hcap cap hcase
    have nonneg := cappedSize_nonneg hu hs hc
    have below : ∀ b : R, (match change.added with
        | none => cappedSize p f cap
        | some a => storedSize p f (cappedSize p f cap + storedSize p f (absolute a))) ≤ b →
        cappedSize p f cap ≤ b := fun b hb => by
      cases e : change.added with
      | none => simpa only [e] using hb
      | some a =>
        simp only [e] at hb
        exact Std.le_trans (le_storedSize hu hs nonneg a) hb
    obtain ⟨z', rfl, k₁, k₂⟩ := limited_softcap hu hs hs' hc hx h₁ f₁ f₂ (below _ m₁) (below _ m₂)
    obtain ⟨r, e, k₃, k₄⟩ := limited_sum hu hs hs' rfl k₂ h₂ m₁ m₂
    exact ⟨r, e, ⟨z', by simpa only [hcase] using k₁, k₄⟩, k₃⟩

end

end Attention.Proof
