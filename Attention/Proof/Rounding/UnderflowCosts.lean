module

public import Attention.Proof.Rounding.UnderflowNumbers
import Attention.Proof.Rounding.Dot

public section

/-! # What a key costs where numbers underflow

The error that the underflow of its exponentials and products makes of a denominator or a numerator,
for one key, as it begins. UnderflowRescaling.lean has it where the reference point rises.
Source: docs/tolerances.md, section 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## Products of weights -/

/-- A product that is made at once. -/
theorem tinyProduct_of_stored {u ν w x o : R} (hν : 0 ≤ ν) (h : Stored u ν (w * x) o) :
    TinyProduct u ν w x o := by
  refine .inr ⟨x, ?_, h⟩
  rw [show x - x = 0 by grind]
  exact .zero hν

/-- A value `v` is multiplied by a factor of dropout `z`, and then by a weight. -/
theorem tinyProduct_of_value {u ν w z v y o : R} (hu : 0 ≤ u) (hν : 0 ≤ ν)
    (h₁ : Stored u ν (z * v) y) (h₂ : Stored u ν (w * y) o) :
    ∃ x, Rounded u (z * v) x ∧ TinyProduct u ν w x o := by
  obtain ⟨θ, hθ, h, -⟩ := stored_split hu hν h₁
  exact ⟨_, ⟨θ, hθ, rfl⟩, .inr ⟨y, h, h₂⟩⟩

/-- A weight is multiplied by a factor of dropout `z`, and then by a value `v`. -/
theorem tinyProduct_of_factor {u ν w z v y o : R} (hu : 0 ≤ u) (hu' : 2 * u ≤ 1) (hν : 0 ≤ ν)
    (hz : 1 ≤ 2 * ((1 - u) * z)) (h₁ : Stored u ν (w * z) y) (h₂ : Stored u ν (y * v) o) :
    ∃ x, Rounded u (z * v) x ∧ TinyProduct u ν w x o := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨θ, hθ, i₁, i₂⟩ := stored_split hu hν h₁
  obtain ⟨t₁, t₂⟩ := hθ
  have hz₀ : 0 ≤ z := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_nonneg (a := 1 - u) (b := -z) (by grind) (by grind)
    grind
  have hf := OrderedRing.mul_le_mul_of_nonneg_right (a := 1 - u) (b := 1 + θ) (by grind) hz₀
  have e : w * z * (1 + θ) = w * (z * (1 + θ)) := Semiring.mul_assoc _ _ _
  rw [e] at i₁ i₂
  refine ⟨z * v * (1 + θ), ⟨θ, ⟨t₁, t₂⟩, rfl⟩, .inl ⟨z * (1 + θ), v, y, by grind, by grind, i₁,
    i₂.mono ?_, h₂⟩⟩
  have h := absolute_mul_le (w * z) (1 + θ)
  have e' : absolute (1 + θ) = 1 + θ := absolute_of_nonneg (by grind)
  rw [e, e'] at h
  have j := OrderedRing.mul_le_mul_of_nonneg_left (a := 1) (b := 2 * (1 + θ)) (by grind)
    (absolute_nonneg (w * z))
  generalize absolute (w * z) = a at *
  generalize absolute (w * (z * (1 + θ))) = b at *
  clear i₁ i₂ hf hz
  grind

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
  | some _ => 2 * smaller (3 ^ (r + 2) * most p m r k)
      (numeral (r + 2) * (ν / (1 - p.exponential) ^ r)) * f k
      + numeral (r + 6) * (ν / (1 - p.exponential) ^ r)

/-- A bound of a stored weight times a number `f`. -/
@[expose] def size (p : Precision R) (m : R) (r : Nat) (f : ComputedKey R → R)
    (k : ComputedKey R) : R :=
  match k.score with
  | none => 0
  | some _ => 2 * most p m r k * f k

/-- An error of `x`, unless the key is masked. -/
@[expose] def tick (x : R) (k : ComputedKey R) : R :=
  match k.score with
  | none => 0
  | some _ => x

/-- `c` is what underflows of some keys at most, of which all but one have been added to another. -/
structure Spent (p : Precision R) (ν m : R) (r : Nat) (f : ComputedKey R → R)
    (keys : List (ComputedKey R)) (c : R) : Prop where
  /-- Not negative. -/
  nonneg : 0 ≤ c
  /-- Nothing underflows of keys that are masked. -/
  masked : (∀ k ∈ keys, k.score = none) → c = 0
  /-- It is less than the costs by one addition. -/
  counted : (∃ k ∈ keys, k.score ≠ none) →
    c + ν / (1 - p.exponential) ^ r ≤ sumOver (cost p ν m r f) keys

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
/-- 1 ≤ 3ʳ. -/
theorem three_pow (r : Nat) : (1 : R) ≤ 3 ^ r := OrderedField.one_le_pow (by
  have := OrderedRing.zero_lt_one (R := R)
  grind) r

omit [Exponential R R] in
private theorem units_mono (hp : Precise p) (hν : 0 ≤ ν) {n : Nat} (hr : r ≤ n) (a : Nat) :
    numeral (r + a) * (ν / (1 - p.exponential) ^ r)
      ≤ numeral (n + a) * (ν / (1 - p.exponential) ^ n) :=
  OrderedField.mul_le_mul (numeral_nonneg _) (numeral_le_numeral (Nat.add_le_add_right hr a))
    (share_nonneg hp hν r) (share_mono hp hν hr)

/-- A cost is not negative. -/
theorem cost_nonneg (hp : Precise p) (hν : 0 ≤ ν) {k : ComputedKey R} (hf : 0 ≤ f k) :
    0 ≤ cost p ν m r f k := by
  unfold cost
  split
  · exact Std.le_refl _
  have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 2)) (share_nonneg hp hν r)
  have h₂ := OrderedRing.mul_nonneg (a := (3 : R) ^ (r + 2)) (by
    have := three_pow (R := R) (r + 2)
    have := OrderedRing.zero_lt_one (R := R)
    grind) (Std.le_of_lt (most_pos (m := m) (r := r) hp k))
  have := OrderedRing.mul_nonneg (le_smaller h₂ h₁) hf
  have := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (r + 6)) (share_nonneg hp hν r)
  grind

/-- Nor is a size. -/
theorem size_nonneg (hp : Precise p) {k : ComputedKey R} (hf : 0 ≤ f k) :
    0 ≤ size p m r f k := by
  unfold size
  split
  · exact Std.le_refl _
  have := OrderedRing.mul_nonneg (Std.le_of_lt (most_pos (m := m) (r := r) hp k)) hf
  grind

/-- A cost grows with the rescalings, by one addition's growth at least. -/
theorem cost_step (hp : Precise p) (hν : 0 ≤ ν) {n : Nat} (hr : r ≤ n)
    {k : ComputedKey R} (hf : 0 ≤ f k) :
    cost p ν m r f k + tick (ν / (1 - p.exponential) ^ n - ν / (1 - p.exponential) ^ r) k
      ≤ cost p ν m n f k := by
  cases hs : k.score with
  | none =>
    simp only [cost, tick, hs]
    grind
  | some s =>
  simp only [cost, tick, hs]
  have h₁ := units_mono hp hν hr 2
  have h₅ := units_mono hp hν hr 5
  rw [show r + 6 = r + 5 + 1 by omega, show n + 6 = n + 5 + 1 by omega, numeral_succ (r + 5),
    numeral_succ (n + 5)]
  have h₂ : (3 : R) ^ (r + 2) * most p m r k ≤ 3 ^ (n + 2) * most p m n k :=
    OrderedField.mul_le_mul (by
      have := three_pow (R := R) (r + 2)
      have := OrderedRing.zero_lt_one (R := R)
      grind) (OrderedField.pow_le_pow (by
      have := OrderedRing.zero_lt_one (R := R)
      grind) (Nat.add_le_add_right hr 2)) (Std.le_of_lt (most_pos hp k)) (most_mono hp hr k)
  have h₃ : smaller ((3 : R) ^ (r + 2) * most p m r k)
        (numeral (r + 2) * (ν / (1 - p.exponential) ^ r))
      ≤ smaller (3 ^ (n + 2) * most p m n k) (numeral (n + 2) * (ν / (1 - p.exponential) ^ n)) :=
    le_smaller (Std.le_trans (smaller_le _ _).1 h₂) (Std.le_trans (smaller_le _ _).2 h₁)
  have := OrderedRing.mul_le_mul_of_nonneg_right h₃ hf
  clear h₁ h₂ h₃
  generalize smaller ((3 : R) ^ (r + 2) * most p m r k)
    (numeral (r + 2) * (ν / (1 - p.exponential) ^ r)) = x at *
  generalize smaller ((3 : R) ^ (n + 2) * most p m n k)
    (numeral (n + 2) * (ν / (1 - p.exponential) ^ n)) = y at *
  generalize ν / (1 - p.exponential) ^ r = t at *
  generalize ν / (1 - p.exponential) ^ n = t' at *
  grind

omit [Exponential R R] in
theorem tick_nonneg {x : R} (hx : 0 ≤ x) (k : ComputedKey R) : 0 ≤ tick x k := by
  unfold tick
  split
  · exact Std.le_refl _
  · exact hx

omit [Exponential R R] in
theorem tick_eq {x : R} {k : ComputedKey R} (hk : k.score ≠ none) : tick x k = x := by
  unfold tick
  split
  · next h => exact absurd h hk
  · rfl

/-- What is lost is no more than the costs. -/
theorem Spent.le (hp : Precise p) (hν : 0 ≤ ν) (hf : ∀ k, 0 ≤ f k) {keys : List (ComputedKey R)}
    {c : R} (h : Spent p ν m r f keys c) : c ≤ sumOver (cost p ν m r f) keys := by
  by_cases seen : ∃ k ∈ keys, k.score ≠ none
  · have := h.counted seen
    have := share_nonneg hp hν r
    grind
  · rw [h.masked fun k hk => Classical.byContradiction fun hs => seen ⟨k, hk, hs⟩]
    exact sumOver_nonneg fun k _ => cost_nonneg hp hν (hf k)

/-- It is so with more rescalings. -/
theorem Spent.mono (hp : Precise p) (hν : 0 ≤ ν) (hf : ∀ k, 0 ≤ f k) {n : Nat} (hr : r ≤ n)
    {keys : List (ComputedKey R)} {c : R} (h : Spent p ν m r f keys c) :
    Spent p ν m n f keys c := by
  refine ⟨h.nonneg, h.masked, fun seen => ?_⟩
  have h₁ := h.counted seen
  obtain ⟨k, hk, hs⟩ := seen
  have h₂ := share_mono hp hν hr
  have h₃ := le_sumOver (f := tick (ν / (1 - p.exponential) ^ n - ν / (1 - p.exponential) ^ r))
    (fun k _ => tick_nonneg (by grind) k) hk
  rw [tick_eq hs] at h₃
  have h₄ := sumOver_le_sumOver (xs := keys) fun k _ => cost_step (m := m) hp hν hr (hf k)
  rw [sumOver_add] at h₄
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

omit [Exponential R R] in
/-- What a factor of dropout loses of a weight. -/
private theorem factor_lost {M w f v y x : R} (hν : 0 ≤ ν) (hw : 0 ≤ w) (hM : w ≤ 4 * M)
    (hx : x = f * v) (hf : 1 ≤ 2 * f) (hy : AtMost ν (y - w * f))
    (hy' : AtMost (2 * absolute (w * f)) (y - w * f)) :
    AtMost (2 * smaller (4 * M) ν * absolute x) (y * v - w * x) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hf₀ : 0 ≤ f := by grind
  have hx₁ : f * absolute v ≤ absolute x := by
    have h₁ := absolute_mul_le f v
    rwa [absolute_of_nonneg hf₀, ← hx] at h₁
  have e : (y - w * f) * v = y * v - w * x := by
    rw [hx]
    grind
  rw [absolute_of_nonneg (OrderedRing.mul_nonneg hw hf₀)] at hy'
  have hv := absolute_nonneg v
  have a₁ := hy.mul (atMost_absolute v)
  have a₂ := hy'.mul (atMost_absolute v)
  rw [e] at a₁ a₂
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right hf (OrderedRing.mul_nonneg hν hv)
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right hM (OrderedRing.mul_nonneg hf₀ hv)
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_left hx₁ hν
  have i₄ := OrderedRing.mul_le_mul_of_nonneg_left hx₁ (c := 4 * M) (by grind)
  clear hx hx₁ e hy hy'
  generalize absolute v = a at *
  generalize absolute x = b at *
  rw [smaller]
  split
  · exact a₂.mono (by grind)
  · exact a₁.mono (by grind)

omit [Exponential R R] in
/-- Both products, one with a factor first or with a value that is off. -/
private theorem product_lost {u M w x o : R} (hν : 0 ≤ ν) (hw : 0 ≤ w) (hM : w ≤ 4 * M)
    (hw₄ : w ≤ 4) (ho : TinyProduct u ν w x o) : ∃ P, Stored u ν P o ∧
      AtMost (2 * smaller (4 * M) ν * absolute x + 4 * ν) (P - w * x) := by
  have hs := OrderedRing.mul_nonneg (le_smaller (x := 4 * M) (z := 0) (by grind) hν)
    (absolute_nonneg x)
  rcases ho with ⟨f, v, y, hx, hf, hy, hy', ho⟩ | ⟨y, hy, ho⟩
  · exact ⟨_, ho, (factor_lost hν hw hM hx hf hy hy').mono (by grind)⟩
  · refine ⟨_, ho, ?_⟩
    have h := atMost_mul_left hw hy
    rw [show w * (y - x) = w * y - w * x by grind] at h
    have := OrderedRing.mul_le_mul_of_nonneg_right hw₄ hν
    exact h.mono (by grind)

omit [Exponential R R] in
/-- Both errors of a weight are within what it costs. -/
private theorem costs_add {M : R} (hν : 0 ≤ ν) (hM : 0 ≤ M) :
    smaller M ν ≤ smaller (9 * M) (2 * ν) ∧
      smaller (4 * M) ν + smaller M ν ≤ smaller (9 * M) (2 * ν) := by
  have h₁ := smaller_le M ν
  have h₂ := smaller_le (4 * M) ν
  exact ⟨le_smaller (by grind) (by grind), le_smaller (by grind) (by grind)⟩

/-- An exponential of a score below the reference point is at most 1. -/
theorem exp_le_one {u a b x : R} (hu : u ≤ 1) (h : a ≤ b)
    (hx : Rounded u (a - b) x) : exp x ≤ (1 : R) := by
  rw [← exp_zero (S := R) (R := R)]
  refine exp_le ?_
  obtain ⟨τ, hτ, rfl⟩ := hx
  have := OrderedRing.mul_nonneg (a := b - a) (b := 1 + τ) (by grind) (by have := hτ.1; grind)
  grind

/-- A key whose exponential and product underflow is one whose do not, but for its cost. -/
theorem key_companion (hp : Precise p) (hν : 0 ≤ ν) (hu : p.unit ≤ 1) {x w w' o : R}
    {key : ComputedKey R} (hk : key.score ≠ none) (hm : key.computed ≤ m)
    (hx : Rounded p.unit (key.computed - m) x)
    (hw : Stored p.exponential ν (exp x) w) (hw' : Stored p.stored p.storedTiny w w')
    (ho : TinyProduct p.accumulation ν w' key.value o) :
    ∃ l₀ o₀, Run p m ⟨[key], l₀, o₀, 0, 0⟩ ∧
      AtMost (cost p ν m 0 (fun _ => 1) key - ν) (added p.denominator w w' - l₀) ∧
      AtMost ((1 + p.accumulation) * (cost p ν m 0 (fun k => absolute k.value) key - ν))
        (o - o₀) ∧
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
  have hsize := weight_nonneg hs (Std.le_of_lt pos)
  have e₁ : (numeral (0 + 2) * (ν / (1 - p.exponential) ^ 0) : R) = 2 * ν := by
    rw [numeral_succ, numeral_succ, Semiring.pow_zero, numeral_eq, Semiring.natCast_zero]
    grind
  have e₂ : (numeral (0 + 6) * (ν / (1 - p.exponential) ^ 0) : R) = 6 * ν := by
    simp only [Nat.zero_add, numeral_succ, show (numeral 0 : R) = 0 from rfl, Semiring.pow_zero]
    grind
  have e₃ : (3 : R) ^ (0 + 2) = 9 := by
    rw [Semiring.pow_succ, Semiring.pow_succ, Semiring.pow_zero]
    grind
  have hcost : ∀ g : ComputedKey R → R, cost p ν m 0 g key
      = 2 * smaller (9 * most p m 0 key) (2 * ν) * g key + 6 * ν := fun g => by
    unfold cost
    split
    · next h => exact absurd h hk
    · rw [e₁, e₂, e₃]
  have hmost₀ := most_pos (m := m) (r := 0) hp key
  have hw₁ : 0 ≤ w' ∧ w' ≤ 4 * most p m 0 key := by
    have i₁ := weight_nonneg hw' hw₀
    have i₂ := hd'.2
    have i₃ := (smaller_le (most p m 0 key) ν).1
    clear h₁ h₂ ho
    exact ⟨i₁.1, by grind⟩
  have hw₄ : w' ≤ 4 := by
    have i₁ := weight_nonneg hw' hw₀
    have i₂ := weight_nonneg hw (Std.le_of_lt hE)
    have i₃ := exp_le_one hu hm hx
    clear h₁ h₂ ho
    grind
  obtain ⟨P, ho', hfactor⟩ := product_lost hν hw₁.1 hw₁.2 hw₄ ho
  obtain ⟨τ, hτ, hδ, -⟩ := stored_split hp.accumulation hν ho'
  obtain ⟨c₁, c₂⟩ := costs_add hν (Std.le_of_lt hmost₀)
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
    have h₃ := ((hfactor.add (hd'.mul (atMost_absolute key.value))).mul hτ').add hδ
    have e₄ : (P - w' * key.value + (w' - w₀') * key.value) * (1 + τ)
        + (o - P * (1 + τ)) = o - w₀' * key.value * (1 + τ) := by grind
    rw [e₄] at h₃
    refine h₃.mono ?_
    have i₁ := OrderedRing.mul_nonneg hp.accumulation hν
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_right c₂ (absolute_nonneg key.value)
    have i₃ := OrderedRing.mul_le_mul_of_nonneg_right i₂ (c := 1 + p.accumulation) (by
      have := hp.accumulation
      have := OrderedRing.zero_lt_one (R := R)
      grind)
    generalize smaller (9 * most p m 0 key) (2 * ν) = S at *
    generalize smaller (most p m 0 key) ν = s at *
    generalize smaller (4 * most p m 0 key) ν = t at *
    generalize absolute key.value = a at *
    clear h₃ hδ hd' hd h₁ h₂ e₄ hfactor ho ho' hcost hw₁
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
