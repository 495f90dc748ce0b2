module

public import Attention.Model.RoundedScores
public import Attention.Proof.Rounding.Nearest

public section

/-! # Rounding to a format -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {floor : R → Int} {f : Format} {x y a b c : R}

attribute [local instance] Ring.intCast Semiring.natCast

/-! ## Parts -/

private theorem absolute_cases (x : R) : absolute x = x ∧ 0 ≤ x ∨ absolute x = -x ∧ x ≤ 0 := by
  simp only [absolute, OrderedField.max_def]
  split
  · exact .inr ⟨by grind, by grind⟩
  · exact .inl ⟨rfl, by grind⟩

private theorem absolute_neg (x : R) : absolute (-x) = absolute x := by
  rcases absolute_cases x with h | h <;> rcases absolute_cases (-x) with h' | h' <;> grind

/-- A number that is not 0 lies between powers of 2. -/
private theorem bounds (hf : IsFloor floor) (hx : ¬ absolute x ≤ 0) :
    (2 : R) ^ exponent floor (absolute x) ≤ absolute x ∧
      absolute x < (2 : R) ^ (exponent floor (absolute x) + 1) :=
  exponent_spec hf (by grind)

private theorem eq_zero (hx : absolute x ≤ 0) : x = 0 := by
  rcases absolute_cases x with h | h <;> grind

/-- A multiple of a power of 2 is one of each smaller power. -/
private theorem multiple_of_le (n : Int) {e q : Int} (h : q ≤ e) :
    (n : R) * (2 : R) ^ e = ((n * 2 ^ (e - q).toNat : Int) : R) * (2 : R) ^ q := by
  have h₁ := two_zpow_natCast (R := R) (e - q).toNat
  rw [Int.toNat_of_nonneg (by omega)] at h₁
  have h₂ := two_zpow_add (R := R) (e - q) q
  rw [show e - q + q = e by omega] at h₂
  rw [Ring.intCast_mul, h₂, h₁, Semiring.mul_assoc]

/-- |n| < 2^p, of their images. -/
private theorem natAbs_bounds {n : Int} {p : Nat} (h : n.natAbs < 2 ^ p) :
    -(2 : R) ^ (p : Int) < (n : R) ∧ (n : R) < (2 : R) ^ (p : Int) := by
  have h₁ : (n.natAbs : Int) < (2 ^ p : Int) := by exact_mod_cast h
  rw [two_zpow_natCast, ← Ring.intCast_neg, intCast_lt_iff, intCast_lt_iff]
  exact ⟨by omega, by omega⟩

/-! ## The nearest number -/

/-- **round-nearest**: no number of the format is nearer. -/
theorem round_nearest (hf : IsFloor floor) (hp : 0 < f.precision) (hy : f.IsNumber y)
    (h : AtMost c (y - x)) : AtMost c (f.round floor x - x) := by
  obtain ⟨n, e, hn, he, rfl⟩ := hy
  simp only [Format.round]
  split
  · next hx =>
    rw [eq_zero hx]
    exact ⟨by have := h.nonneg; grind, by have := h.nonneg; grind⟩
  next hx =>
  by_cases hq : f.lastPlace floor x ≤ e
  · rw [multiple_of_le n hq] at h
    exact roundAt_nearest hf h
  obtain ⟨h₁, -⟩ := bounds hf hx
  obtain ⟨h₂, h₃⟩ := natAbs_bounds (R := R) hn
  -- Numbers with a smaller last place are smaller than 2^E, which has the last place of x.
  have hE : f.lastPlace floor x = exponent floor (absolute x) - f.precision + 1 := by
    simp only [Format.lastPlace] at hq ⊢
    omega
  have small := two_zpow_le (R := R) (a := f.precision + e) (b := exponent floor (absolute x))
    (by omega)
  have pos := two_zpow_pos (R := R) e
  rw [two_zpow_add] at small
  have below := OrderedRing.mul_lt_mul_of_pos_right h₃ pos
  have above := OrderedRing.mul_lt_mul_of_pos_right h₂ pos
  rw [Ring.neg_mul] at above
  have power : ∀ s : Int, (s : R) * (2 : R) ^ exponent floor (absolute x)
      = ((s * 2 ^ (exponent floor (absolute x) - f.lastPlace floor x).toNat : Int) : R)
        * (2 : R) ^ f.lastPlace floor x := fun s => multiple_of_le s (by omega)
  obtain ⟨h₄, h₅⟩ := h
  rcases absolute_cases x with ⟨hx, -⟩ | ⟨hx, -⟩
  · refine roundAt_nearest hf
      (n := 1 * 2 ^ (exponent floor (absolute x) - f.lastPlace floor x).toNat) ?_
    rw [← power, Ring.intCast_one, Semiring.one_mul]
    exact ⟨by grind, by grind⟩
  · refine roundAt_nearest hf
      (n := -1 * 2 ^ (exponent floor (absolute x) - f.lastPlace floor x).toNat) ?_
    rw [← power, Ring.intCast_neg, Ring.intCast_one, Ring.neg_mul, Semiring.one_mul]
    exact ⟨by grind, by grind⟩

/-- **round-to-number**: what is rounded is a number of the format. -/
theorem isNumber_round (hf : IsFloor floor) (hp : 0 < f.precision) (x : R) :
    f.IsNumber (f.round floor x) := by
  simp only [Format.round]
  split
  · refine ⟨0, f.least, Nat.two_pow_pos _, Int.le_refl _, ?_⟩
    rw [Ring.intCast_zero, Semiring.zero_mul]
  next hx =>
  obtain ⟨-, h₁⟩ := bounds hf hx
  have hle : f.least ≤ f.lastPlace floor x := by simp only [Format.lastPlace]; omega
  have hq : exponent floor (absolute x) + 1 ≤ f.precision + f.lastPlace floor x := by
    simp only [Format.lastPlace]
    omega
  have h₂ := Std.lt_of_lt_of_le h₁ (two_zpow_le (R := R) hq)
  rw [two_zpow_add] at h₂
  generalize f.lastPlace floor x = q at *
  have pos := two_zpow_pos (R := R) q
  have ⟨h₃, h₄⟩ := nearest_close hf (x / (2 : R) ^ q)
  have e₁ : x / (2 : R) ^ q * (2 : R) ^ q = x := by grind
  have h₅ : AtMost ((2 : R) ^ (f.precision : Int)) (x / (2 : R) ^ q) := by
    rcases absolute_cases x with ⟨hx, -⟩ | ⟨hx, -⟩ <;>
      exact ⟨le_of_mul_le_mul_right pos (by grind), le_of_mul_le_mul_right pos (by grind)⟩
  rw [roundAt]
  generalize nearest floor (x / (2 : R) ^ q) = n at *
  obtain ⟨h₆, h₇⟩ := h₅
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hn : n ≤ 2 ^ f.precision ∧ -(2 ^ f.precision) ≤ n := by
    rw [two_zpow_natCast] at h₆ h₇
    have h₈ : (n : R) < ((2 ^ f.precision + 1 : Int) : R) := by
      rw [Ring.intCast_add, Ring.intCast_one]
      grind
    have h₉ : ((-(2 ^ f.precision) - 1 : Int) : R) < (n : R) := by
      rw [Ring.intCast_sub, Ring.intCast_neg, Ring.intCast_one]
      grind
    have := intCast_lt_iff.mp h₈
    have := intCast_lt_iff.mp h₉
    exact ⟨by omega, by omega⟩
  obtain ⟨p, hp'⟩ : ∃ p, f.precision = p + 1 := ⟨f.precision - 1, by omega⟩
  rw [hp'] at hn
  rw [Format.IsNumber, hp']
  have e₂ : ((2 ^ (p + 1) : Nat) : Int) = (2 ^ (p + 1) : Int) := by norm_cast
  have e₃ : ((2 ^ p : Nat) : Int) = (2 ^ p : Int) := by norm_cast
  have e₄ : (2 ^ (p + 1) : Int) = 2 * 2 ^ p := by rw [Int.pow_succ]; omega
  have e₅ : (0 : Int) < 2 ^ p := Int.pow_pos (by omega)
  by_cases h : n.natAbs < 2 ^ (p + 1)
  · exact ⟨n, q, h, hle, rfl⟩
  have e₆ : n = 2 * 2 ^ p ∨ n = -(2 * 2 ^ p) := by omega
  rcases e₆ with h | h
  · refine ⟨2 ^ p, q + 1, by omega, by omega, ?_⟩
    rw [two_zpow_succ, h, Ring.intCast_mul, Ring.intCast_ofNat]
    grind
  · refine ⟨-(2 ^ p), q + 1, by omega, by omega, ?_⟩
    rw [two_zpow_succ, h, Ring.intCast_neg, Ring.intCast_neg, Ring.intCast_mul, Ring.intCast_ofNat]
    grind

/-- **round-number**: a number of the format is left as it is. -/
theorem round_number (hf : IsFloor floor) (hp : 0 < f.precision) (hx : f.IsNumber x) :
    f.round floor x = x := by
  have h : AtMost 0 (x - x) := ⟨by grind, by grind⟩
  obtain ⟨h₁, h₂⟩ := round_nearest hf hp hx h
  grind

/-- Rounding is idempotent. -/
theorem round_round (hf : IsFloor floor) (hp : 0 < f.precision) (x : R) :
    f.round floor (f.round floor x) = f.round floor x :=
  round_number hf hp (isNumber_round hf hp x)

/-- **round-monotone**: a larger number is not rounded to a smaller one. -/
theorem round_mono (hf : IsFloor floor) (hp : 0 < f.precision) (h : x ≤ y) :
    f.round floor x ≤ f.round floor y := by
  by_cases e : x = y
  · rw [e]
    exact Std.le_refl _
  refine Classical.byContradiction fun hn => ?_
  have h₁ := round_nearest (x := x) (y := f.round floor y) hf hp (isNumber_round hf hp y)
    (c := absolute (f.round floor y - x)) (atMost_absolute _)
  have h₂ := round_nearest (x := y) (y := f.round floor x) hf hp (isNumber_round hf hp x)
    (c := absolute (f.round floor x - y)) (atMost_absolute _)
  generalize f.round floor x = x', f.round floor y = y' at *
  obtain ⟨h₃, h₄⟩ := h₁
  obtain ⟨h₅, h₆⟩ := h₂
  rcases absolute_cases (y' - x) with h₇ | h₇ <;> rcases absolute_cases (x' - y) with h₈ | h₈ <;>
    grind

/-- **round-sign**: rounding commutes with the sign. -/
theorem round_neg (hf : IsFloor floor) (x : R) : f.round floor (-x) = -f.round floor x := by
  simp only [Format.round, Format.lastPlace, absolute_neg]
  split
  · grind
  · exact roundAt_neg hf _ _

/-- **round-ties-even**: halfway between two multiples of its last place a number is rounded to the
one that is even. -/
theorem round_even (hf : IsFloor floor) {n : Int}
    (h : x + x = ((2 * n + 1 : Int) : R) * (2 : R) ^ f.lastPlace floor x) :
    ∃ k : Int, f.round floor x = ((2 * k : Int) : R) * (2 : R) ^ f.lastPlace floor x := by
  simp only [Format.round]
  split
  · refine ⟨0, ?_⟩
    rw [Int.mul_zero, Ring.intCast_zero, Semiring.zero_mul]
  generalize f.lastPlace floor x = q at *
  have := two_zpow_pos (R := R) q
  have e₁ : x / (2 : R) ^ q * (2 : R) ^ q = x := by grind
  have e₂ : x / (2 : R) ^ q + x / (2 : R) ^ q = (n : R) + n + 1 := by
    have e₃ : ((2 * n + 1 : Int) : R) = (n : R) + n + 1 := by
      rw [Ring.intCast_add, Ring.intCast_mul, Ring.intCast_ofNat, Ring.intCast_one]
      grind
    rw [e₃] at h
    grind
  refine ⟨nearest floor (x / (2 : R) ^ q) / 2, ?_⟩
  rw [nearest_even hf e₂, roundAt]

/-! ## Errors -/

/-- Rounding errs by at most half of the last place. -/
theorem round_close (hf : IsFloor floor) (hx : x ≠ 0) :
    AtMost ((2 : R) ^ (f.lastPlace floor x - 1)) (f.round floor x - x) := by
  have h : ¬ absolute x ≤ 0 := fun h => hx (eq_zero h)
  rw [Format.round, if_neg h]
  have := roundAt_close hf (f.lastPlace floor x - 1) x
  rwa [show f.lastPlace floor x - 1 + 1 = f.lastPlace floor x by omega] at this

/-- An error of at most u · |x| is a relative error of at most u. -/
private theorem rounded_of_close {u : R} (hx : ¬ absolute x ≤ 0)
    (h : AtMost (u * absolute x) (y - x)) : Rounded u x y := by
  have hx₀ : x ≠ 0 := fun e => hx (by rcases absolute_cases x with h | h <;> grind)
  refine ⟨(y - x) / x, ?_, by grind⟩
  have e : (y - x) / x * x = y - x := by grind
  generalize (y - x) / x = θ at *
  have pos : 0 < absolute x := by grind
  obtain ⟨h₁, h₂⟩ := h
  rcases absolute_cases x with ⟨hx, -⟩ | ⟨hx, -⟩ <;> rw [hx] at h₁ h₂ pos <;>
    exact ⟨le_of_mul_le_mul_right pos (by grind), le_of_mul_le_mul_right pos (by grind)⟩

/-- **round-bits**: rounded to p bits a number of any size has a relative error of at most 2^−p. -/
theorem roundBits_rounded (hf : IsFloor floor) (p : Nat) (x : R) :
    Rounded ((2 : R) ^ (-(p : Int))) x (roundBits floor p x) := by
  simp only [roundBits]
  split
  · next hx =>
    rw [eq_zero hx]
    exact ⟨0, .zero (Std.le_of_lt (two_zpow_pos _)), by grind⟩
  next hx =>
  refine rounded_of_close hx ?_
  have h := roundAt_close hf (exponent floor (absolute x) - p) x
  refine h.mono ?_
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left (bounds hf hx).1
    (Std.le_of_lt (two_zpow_pos (R := R) (-(p : Int))))
  rw [← two_zpow_add] at h₁
  rwa [show -(p : Int) + exponent floor (absolute x) = exponent floor (absolute x) - p by omega]
    at h₁

/-- In the range of the normal numbers the format rounds as if there were no least exponent. -/
theorem round_eq_roundBits (hf : IsFloor floor) (hx : f.smallestNormal R ≤ absolute x) :
    f.round floor x = roundBits floor f.precision x := by
  simp only [Format.round, roundBits, Format.lastPlace]
  split
  · rfl
  next h =>
  have := lt_of_two_zpow_lt (Std.lt_of_le_of_lt hx (bounds hf h).2)
  rw [Int.max_eq_left (by omega)]

/-- So it does where there is nothing below its last place, as of sums of its numbers. -/
theorem round_multiple (hf : IsFloor floor) (n : Int) :
    f.round floor ((n : R) * (2 : R) ^ f.least)
      = roundBits floor f.precision ((n : R) * (2 : R) ^ f.least) := by
  simp only [Format.round, roundBits, Format.lastPlace]
  split
  · rfl
  generalize exponent floor (absolute ((n : R) * (2 : R) ^ f.least)) - f.precision + 1 = e
  by_cases h : f.least ≤ e
  · rw [Int.max_eq_left h]
  · rw [Int.max_eq_right (by omega), roundAt_multiple hf, multiple_of_le n (q := e) (by omega),
      roundAt_multiple hf]

/-- A number of the format is a multiple of its smallest positive one. -/
theorem IsNumber.multiple (hx : f.IsNumber x) : ∃ n : Int, x = (n : R) * (2 : R) ^ f.least := by
  obtain ⟨n, e, -, he, rfl⟩ := hx
  exact ⟨_, multiple_of_le n he⟩

/-- A sum of numbers of the format is rounded as if there were no least exponent. -/
theorem round_add (hf : IsFloor floor) (ha : f.IsNumber a) (hb : f.IsNumber b) :
    f.round floor (a + b) = roundBits floor f.precision (a + b) := by
  obtain ⟨n, rfl⟩ := IsNumber.multiple ha
  obtain ⟨m, rfl⟩ := IsNumber.multiple hb
  have e : (n : R) * (2 : R) ^ f.least + (m : R) * (2 : R) ^ f.least
      = ((n + m : Int) : R) * (2 : R) ^ f.least := by
    rw [Ring.intCast_add]
    grind
  rw [e, round_multiple hf]

/-- So is a difference. -/
theorem round_sub (hf : IsFloor floor) (ha : f.IsNumber a) (hb : f.IsNumber b) :
    f.round floor (a - b) = roundBits floor f.precision (a - b) := by
  obtain ⟨n, rfl⟩ := IsNumber.multiple ha
  obtain ⟨m, rfl⟩ := IsNumber.multiple hb
  have e : (n : R) * (2 : R) ^ f.least - (m : R) * (2 : R) ^ f.least
      = ((n - m : Int) : R) * (2 : R) ^ f.least := by
    rw [Ring.intCast_sub]
    grind
  rw [e, round_multiple hf]

/-- **round-sums**: sums and differences of numbers of the format have a relative error of at most
2^−precision, however small they are. -/
theorem round_sums (hf : IsFloor floor) (ha : f.IsNumber a) (hb : f.IsNumber b) :
    Rounded ((2 : R) ^ (-(f.precision : Int))) (a + b) (f.round floor (a + b)) ∧
      Rounded ((2 : R) ^ (-(f.precision : Int))) (a - b) (f.round floor (a - b)) := by
  rw [round_add hf ha hb, round_sub hf ha hb]
  exact ⟨roundBits_rounded hf _ _, roundBits_rounded hf _ _⟩

/-- **round-error**: a rounded number is x (1 + θ) + δ, with |θ| at most 2^−precision, |δ| at most
half of the smallest positive number, and one of them 0: δ for normal numbers, θ below them. -/
theorem round_error (hf : IsFloor floor) (x : R) :
    ∃ θ δ, AtMost ((2 : R) ^ (-(f.precision : Int))) θ ∧ AtMost ((2 : R) ^ (f.least - 1)) δ ∧
      (f.smallestNormal R ≤ absolute x → δ = 0) ∧ (absolute x < f.smallestNormal R → θ = 0) ∧
      f.round floor x = x * (1 + θ) + δ := by
  have h₀ := Std.le_of_lt (two_zpow_pos (R := R) (-(f.precision : Int)))
  have h₁ := Std.le_of_lt (two_zpow_pos (R := R) (f.least - 1))
  by_cases hx : f.smallestNormal R ≤ absolute x
  · obtain ⟨θ, hθ, e⟩ := roundBits_rounded hf f.precision x
    rw [← round_eq_roundBits hf hx] at e
    exact ⟨θ, 0, hθ, .zero h₁, fun _ => rfl, fun h => by grind, by grind⟩
  refine ⟨0, f.round floor x - x, .zero h₀, ?_, fun h => absurd h hx, fun _ => rfl, by grind⟩
  by_cases h : x = 0
  · have e : absolute x ≤ 0 := by rcases absolute_cases x with h | h <;> grind
    rw [Format.round, if_pos e, h]
    exact ⟨by grind, by grind⟩
  have h₂ := bounds (x := x) hf fun h' => h (eq_zero h')
  have h₃ : (2 : R) ^ exponent floor (absolute x) < (2 : R) ^ (f.least + f.precision - 1) := by
    have : absolute x < f.smallestNormal R := by grind
    exact Std.lt_of_le_of_lt h₂.1 this
  have := lt_of_two_zpow_lt h₃
  have h₄ := round_close (f := f) hf h
  have e : f.lastPlace floor x = f.least := by
    simp only [Format.lastPlace]
    omega
  rwa [e] at h₄

/-- **format-weight**: a number that is rounded to a format is stored as the tolerance of attention
has it of weights: with a relative error of at most 2^−precision or one of at most half of the
smallest positive number, and never off by more than itself. -/
theorem round_stored (hf : IsFloor floor) (hp : 0 < f.precision) (x : R) :
    Stored ((2 : R) ^ (-(f.precision : Int))) ((2 : R) ^ (f.least - 1)) x (f.round floor x) := by
  constructor
  · obtain ⟨θ, δ, hθ, hδ, h₁, h₂, e⟩ := round_error (f := f) hf x
    rw [e, OrderedField.max_def]
    by_cases hx : f.smallestNormal R ≤ absolute x
    · have h := (atMost_absolute x).mul hθ
      rw [h₁ hx, show x * (1 + θ) + 0 - x = x * θ by grind]
      split <;> exact h.mono (by grind)
    · rw [h₂ (by grind), show x * (1 + 0) + δ - x = δ by grind]
      split <;> exact hδ.mono (by grind)
  · refine round_nearest hf hp (y := 0) ⟨0, f.least, ?_, Int.le_refl _, ?_⟩ ?_
    · simpa using Nat.two_pow_pos f.precision
    · rw [Ring.intCast_zero, Semiring.zero_mul]
    · have := atMost_absolute x
      exact ⟨by have := this.2; grind, by have := this.1; grind⟩

/-- **format-score**: and so as it has it of scaled operands and of scores. -/
theorem round_storedNear (hf : IsFloor floor) (x : R) :
    StoredNear ((2 : R) ^ (-(f.precision : Int))) ((2 : R) ^ (f.least - 1)) x
      (f.round floor x) := by
  obtain ⟨θ, δ, hθ, hδ, -, -, e⟩ := round_error (f := f) hf x
  refine ⟨x * (1 + θ), ⟨θ, hθ, rfl⟩, ?_⟩
  rw [e, show x * (1 + θ) + δ - x * (1 + θ) = δ by grind]
  exact hδ

/-- **format-score-flushed**: with the smallest normal number where what is smaller is flushed
to 0. -/
theorem flushed_storedNear (hf : IsFloor floor) (x : R) :
    StoredNear ((2 : R) ^ (-(f.precision : Int))) (f.smallestNormal R) x
      (if f.smallestNormal R ≤ absolute x then f.round floor x else 0) := by
  obtain ⟨θ, δ, hθ, hδ, h₁, h₂, e⟩ := round_error (f := f) hf x
  have hn : 0 ≤ f.smallestNormal R := Std.le_of_lt (two_zpow_pos _)
  refine ⟨x * (1 + θ), ⟨θ, hθ, rfl⟩, ?_⟩
  by_cases hx : f.smallestNormal R ≤ absolute x
  · rw [if_pos hx, e, h₁ hx, show x * (1 + θ) + 0 - x * (1 + θ) = 0 by grind]
    exact .zero hn
  · rw [if_neg hx, h₂ (by grind), show 0 - x * (1 + 0) = -x by grind]
    have h := atMost_absolute x
    exact ⟨by have := h.2; grind, by have := h.1; grind⟩

/-! ## Overflow -/

/-- A number that is not past the largest is not rounded past it. -/
theorem round_le_largest (hf : IsFloor floor) (hp : 0 < f.precision)
    (hr : f.least + f.precision ≤ f.top) (hx : absolute x ≤ f.largest R) :
    absolute (f.round floor x) ≤ f.largest R := by
  have e : f.largest R = ((2 ^ f.precision - 1 : Int) : R) * (2 : R) ^ (f.top - f.precision) := by
    have h := two_zpow_add (R := R) f.precision (f.top - f.precision)
    rw [show (f.precision : Int) + (f.top - f.precision) = f.top by omega] at h
    rw [Format.largest, h, two_zpow_natCast, Ring.intCast_sub, Ring.intCast_one]
    grind
  have h₁ : f.IsNumber (f.largest R) := by
    have e₂ : ((2 ^ f.precision : Nat) : Int) = (2 ^ f.precision : Int) := by norm_cast
    have e₃ : (0 : Int) < 2 ^ f.precision := Int.pow_pos (by omega)
    exact ⟨_, _, by omega, by omega, e⟩
  have e₁ := round_number hf hp h₁
  have e₂ := round_neg (f := f) hf (f.largest R)
  have h₂ := atMost_absolute x
  refine absolute_le ⟨?_, ?_⟩
  · have := round_mono (f := f) hf hp (x := -f.largest R) (y := x) (by obtain ⟨h₃, h₄⟩ := h₂; grind)
    grind
  · have := round_mono (f := f) hf hp (x := x) (y := f.largest R) (by obtain ⟨h₃, h₄⟩ := h₂; grind)
    grind

/-- **round-finite**: a number that is not past the largest is not rounded to infinity. -/
theorem not_overflows (hf : IsFloor floor) (hp : 0 < f.precision)
    (hr : f.least + f.precision ≤ f.top) (hx : absolute x ≤ f.largest R) :
    ¬ f.Overflows floor x := fun h => by
  have h₁ := Std.le_trans h (round_le_largest hf hp hr hx)
  have := two_zpow_pos (R := R) (f.top - f.precision)
  rw [Format.largest] at h₁
  grind

end Attention.Proof
