module

public import Attention.Proof.Rounding.UnderflowNumbers

public section

/-! # What a key costs where numbers underflow

The error that the underflow of its exponentials and products makes of a denominator or a numerator,
for one key, as it begins. UnderflowRescaling.lean has it where the reference point rises.
Source: docs/tolerances.md, section 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## What a key costs -/

variable [Exponential R R]

namespace Underflow

/-- The largest weight that a key may have after at most `r` rescalings. -/
@[expose] def most (p : Precision R) (m : R) (r : Nat) (k : ComputedKey R) : R :=
  exp (k.computed - m) * (exp (p.unit * (m - k.computed)) / (1 - p.exponential) ^ (r + 1))

/-- What underflows of a key whose weight meets a number `f`. -/
@[expose] def cost (p : Precision R) (ν m : R) (r : Nat) (f : ComputedKey R → R)
    (k : ComputedKey R) : R :=
  match k.score with
  | none => 0
  | some _ => 2 * smaller (3 ^ r * most p m r k) (numeral (r + 1) * (ν / (1 - p.exponential) ^ r))
      * f k + numeral (r + 1) * (ν / (1 - p.exponential) ^ r)

/-- A bound of a stored weight times a number `f`. -/
@[expose] def size (p : Precision R) (m : R) (r : Nat) (f : ComputedKey R → R)
    (k : ComputedKey R) : R :=
  match k.score with
  | none => 0
  | some _ => 2 * most p m r k * f k

/-- An error of `ν`, unless the key is masked. -/
@[expose] def tick (ν : R) (k : ComputedKey R) : R :=
  match k.score with
  | none => 0
  | some _ => ν

variable {p : Precision R} {ν m : R} {r : Nat} {f : ComputedKey R → R}

omit [Exponential R R] in
theorem remainder_pos (hp : Precise p) : 0 < 1 - p.exponential := by
  have := hp.exponential_lt
  grind

/-- It is positive. -/
theorem most_pos (hp : Precise p) (k : ComputedKey R) : 0 < most p m r k :=
  OrderedRing.mul_pos (exp_pos _)
    (OrderedField.div_pos (exp_pos _) (OrderedField.pow_pos (remainder_pos hp) _))

private theorem most_mono (hp : Precise p) {n : Nat} (hr : r ≤ n) (k : ComputedKey R) :
    most p m r k ≤ most p m n k := by
  have h₁ := hp.exponential
  have hq := remainder_pos hp
  exact OrderedRing.mul_le_mul_of_nonneg_left (OrderedField.div_le_div_left
    (Std.le_of_lt (exp_pos _)) (OrderedField.pow_pos hq _)
    (OrderedField.pow_le_pow_of_le_one hq (by grind) (Nat.succ_le_succ hr)))
    (Std.le_of_lt (exp_pos _))

omit [Exponential R R] in
private theorem share_nonneg (hp : Precise p) (hν : 0 ≤ ν) (r : Nat) :
    0 ≤ ν / (1 - p.exponential) ^ r :=
  OrderedField.div_nonneg hν (OrderedField.pow_pos (remainder_pos hp) _)

omit [Exponential R R] in
theorem share_mono (hp : Precise p) (hν : 0 ≤ ν) {n : Nat} (hr : r ≤ n) :
    ν / (1 - p.exponential) ^ r ≤ ν / (1 - p.exponential) ^ n :=
  OrderedField.div_le_div_left hν (OrderedField.pow_pos (remainder_pos hp) _)
    (OrderedField.pow_le_pow_of_le_one (remainder_pos hp) (by have := hp.exponential; grind) hr)

omit [Exponential R R] in
/-- Numerals are ordered as numbers are. -/
theorem numeral_mono {a b : Nat} (h : a ≤ b) : (numeral a : R) ≤ numeral b := by
  induction h with
  | refl => exact Std.le_refl _
  | step _ ih =>
    rw [numeral_succ]
    have := OrderedRing.zero_lt_one (R := R)
    grind

omit [Exponential R R] in
/-- 1 ≤ 3ʳ. -/
theorem three_pow (r : Nat) : (1 : R) ≤ 3 ^ r := OrderedField.one_le_pow (by
  have := OrderedRing.zero_lt_one (R := R)
  grind) r

omit [Exponential R R] in
private theorem units_mono (hp : Precise p) (hν : 0 ≤ ν) {n : Nat} (hr : r ≤ n) :
    numeral (r + 1) * (ν / (1 - p.exponential) ^ r)
      ≤ numeral (n + 1) * (ν / (1 - p.exponential) ^ n) :=
  OrderedField.mul_le_mul (numeral_nonneg _) (numeral_mono (Nat.succ_le_succ hr))
    (share_nonneg hp hν r) (share_mono hp hν hr)

/-- A cost is not negative. -/
theorem cost_nonneg (hp : Precise p) (hν : 0 ≤ ν) {k : ComputedKey R} (hf : 0 ≤ f k) :
    0 ≤ cost p ν m r f k := by
  unfold cost
  split
  · exact Std.le_refl _
  have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 1)) (share_nonneg hp hν r)
  have h₂ := OrderedRing.mul_nonneg (a := (3 : R) ^ r) (by
    have := three_pow (R := R) r
    have := OrderedRing.zero_lt_one (R := R)
    grind) (Std.le_of_lt (most_pos (m := m) (r := r) hp k))
  have := OrderedRing.mul_nonneg (le_smaller h₂ h₁) hf
  grind

/-- Nor is a size. -/
theorem size_nonneg (hp : Precise p) {k : ComputedKey R} (hf : 0 ≤ f k) :
    0 ≤ size p m r f k := by
  unfold size
  split
  · exact Std.le_refl _
  have := OrderedRing.mul_nonneg (Std.le_of_lt (most_pos (m := m) (r := r) hp k)) hf
  grind

/-- A cost grows with the rescalings. -/
theorem cost_mono (hp : Precise p) (hν : 0 ≤ ν) {n : Nat} (hr : r ≤ n)
    {k : ComputedKey R} (hf : 0 ≤ f k) : cost p ν m r f k ≤ cost p ν m n f k := by
  unfold cost
  split
  · exact Std.le_refl _
  have h₁ := units_mono hp hν hr
  have h₂ : (3 : R) ^ r * most p m r k ≤ 3 ^ n * most p m n k :=
    OrderedField.mul_le_mul (by
      have := three_pow (R := R) r
      have := OrderedRing.zero_lt_one (R := R)
      grind) (OrderedField.pow_le_pow (by
      have := OrderedRing.zero_lt_one (R := R)
      grind) hr) (Std.le_of_lt (most_pos hp k)) (most_mono hp hr k)
  have h₃ : smaller ((3 : R) ^ r * most p m r k) (numeral (r + 1) * (ν / (1 - p.exponential) ^ r))
      ≤ smaller (3 ^ n * most p m n k) (numeral (n + 1) * (ν / (1 - p.exponential) ^ n)) :=
    le_smaller (Std.le_trans (smaller_le _ _).1 h₂) (Std.le_trans (smaller_le _ _).2 h₁)
  have := OrderedRing.mul_le_mul_of_nonneg_right h₃ hf
  grind

/-- So does a size. -/
theorem size_mono (hp : Precise p) {n : Nat} (hr : r ≤ n) {k : ComputedKey R}
    (hf : 0 ≤ f k) : size p m r f k ≤ size p m n f k := by
  unfold size
  split
  · exact Std.le_refl _
  have := OrderedRing.mul_le_mul_of_nonneg_right (most_mono (m := m) hp hr k) hf
  grind

/-! ## A key -/

omit [Exponential R R] in
theorem weight_nonneg {q x w : R} (h : Stored q ν x w) (hx : 0 ≤ x) :
    0 ≤ w ∧ w ≤ 2 * x := by
  have := h.2
  rw [absolute_of_nonneg hx] at this
  obtain ⟨h₁, h₂⟩ := this
  exact ⟨by grind, by grind⟩

/-- A key whose exponential and product underflow is one whose do not, but for its cost. -/
theorem key_companion (hp : Precise p) (hν : 0 ≤ ν) {x w w' o : R} {key : ComputedKey R}
    (hk : key.score ≠ none) (hm : key.computed ≤ m) (hx : Rounded p.unit (key.computed - m) x)
    (hw : Stored p.exponential ν (exp x) w) (hw' : Stored p.stored p.storedTiny w w')
    (ho : Stored p.accumulation ν (w' * key.value) o) :
    ∃ l₀ o₀, Run p m ⟨[key], l₀, o₀, 0, 0⟩ ∧
      AtMost (cost p ν m 0 (fun _ => 1) key) (added p.denominator w w' - l₀) ∧
      AtMost ((1 + p.accumulation) * cost p ν m 0 (fun k => absolute k.value) key) (o - o₀) ∧
      AtMost (size p m 0 (fun _ => 1) key) l₀ ∧
      AtMost ((1 + p.accumulation) * size p m 0 (fun k => absolute k.value) key) o₀ := by
  have hE := exp_pos (R := R) x
  obtain ⟨hw₀, -⟩ := weight_nonneg hw (Std.le_of_lt hE)
  obtain ⟨θ, hθ, h₁, h₂⟩ := stored_split hp.exponential hν hw
  rw [absolute_of_nonneg (Std.le_of_lt hE)] at h₂
  have hr : Rounded p.exponential (exp x) (exp x * (1 + θ)) := ⟨θ, hθ, rfl⟩
  obtain ⟨pos, up, -⟩ := rounded_exp hp.exponential_lt hm hx hr
  obtain ⟨-, upE, -⟩ := rounded_exp (w := exp x) hp.exponential_lt hm hx
    ⟨0, .zero hp.exponential, by grind⟩
  have hmost : most p m 0 key
      = exp (key.computed - m) * (exp (p.unit * (m - key.computed)) / (1 - p.exponential)) := by
    rw [most, Nat.zero_add, Semiring.pow_succ, Semiring.pow_zero, Semiring.one_mul]
  rw [← hmost] at up upE
  have hd : AtMost (smaller (most p m 0 key) ν) (w - exp x * (1 + θ)) :=
    ⟨by
      have := le_smaller (x := most p m 0 key) (y := ν) (z := -(w - exp x * (1 + θ)))
        (by have := h₂.1; grind) (by have := h₁.1; grind)
      grind,
     le_smaller (by have := h₂.2; grind) h₁.2⟩
  obtain ⟨w₀', hs, hd'⟩ := stored_shift hp.stored hp.storedTiny hw₀ (Std.le_of_lt pos) hd hw'
  obtain ⟨τ, hτ, hδ, -⟩ := stored_split hp.accumulation hν ho
  have hsize := weight_nonneg hs (Std.le_of_lt pos)
  have e₁ : (numeral (0 + 1) * (ν / (1 - p.exponential) ^ 0) : R) = ν := by
    rw [numeral_succ, Semiring.pow_zero, numeral_eq, Semiring.natCast_zero]
    grind
  have hcost : ∀ g : ComputedKey R → R, cost p ν m 0 g key
      = 2 * smaller (most p m 0 key) ν * g key + ν := fun g => by
    unfold cost
    split
    · next h => exact absurd h hk
    · rw [e₁, Semiring.pow_zero, Semiring.one_mul]
  have hsz : ∀ g : ComputedKey R → R, size p m 0 g key = 2 * most p m 0 key * g key := fun g => by
    unfold size
    split
    · next h => exact absurd h hk
    · rfl
  have hd₀ := hd.nonneg
  refine ⟨added p.denominator (exp x * (1 + θ)) w₀', w₀' * key.value * (1 + τ),
    .key hk hm hx hr hs ⟨τ, hτ, rfl⟩, ?_, ?_, ?_, ?_⟩
  · rw [hcost]
    cases p.denominator with
    | unrounded => exact hd.mono (by grind)
    | rounded => exact hd'.mono (by grind)
  · rw [hcost]
    have hτ' : AtMost (1 + p.accumulation) (1 + τ) :=
      ⟨by have := hτ.1; grind, by have := hτ.2; grind⟩
    have h₃ := ((hd'.mul (atMost_absolute key.value)).mul hτ').add hδ
    have e₂ : (w' - w₀') * key.value * (1 + τ) + (o - w' * key.value * (1 + τ))
        = o - w₀' * key.value * (1 + τ) := by grind
    rw [e₂] at h₃
    refine h₃.mono ?_
    have := OrderedRing.mul_nonneg hp.accumulation hν
    clear h₃ hδ hd' hd h₁ h₂ e₂
    grind
  · rw [hsz, Semiring.mul_one]
    cases p.denominator with
    | unrounded => exact ⟨by simp only [added]; grind, by simp only [added]; grind⟩
    | rounded => exact ⟨by simp only [added]; grind, by simp only [added]; grind⟩
  · rw [hsz]
    have hτ' : AtMost (1 + p.accumulation) (1 + τ) :=
      ⟨by have := hτ.1; grind, by have := hτ.2; grind⟩
    have h₃ : AtMost (2 * most p m 0 key) w₀' := ⟨by grind, by grind⟩
    have h₄ := (h₃.mul (atMost_absolute key.value)).mul hτ'
    refine h₄.mono ?_
    rw [CommSemiring.mul_comm]
    exact Std.le_refl _

end Underflow

end Attention.Proof
