module

public import Attention.Model.FloatingPoint
public import Attention.Model.Real.Exponential
public import Attention.Model.Real.Floor
public import Attention.Model.RoundedScores
public import Attention.Proof.Rounding.Format
public import Attention.Spec.Flash
public import Attention.Spec.Masks
import Attention.Proof.Rounding.Matrices

public section

/-! # Numbers of p bits

There are numbers that round as `FloatingPoint` asks for: those of p bits and of any size, the
exponential rounded to them like every other result. A format with a least exponent rounds in the
same way wherever the result is normal, and in sums and differences of its numbers. So the theorems
about numbers that round speak of such a format as long as no product, quotient or exponential falls
below its normal numbers, and none is past the largest. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

attribute [local instance] Ring.intCast Semiring.natCast

/-- Numbers of `precision` bits; every result is the nearest one, exponentials included. -/
@[expose] def nearestPoint [Exp R R] {floor : R → Int} (hf : IsFloor floor) (precision : Nat) :
    FloatingPoint R where
  unit := (2 : R) ^ (-(precision : Int))
  exponential := (2 : R) ^ (-(precision : Int))
  round := roundBits floor precision
  roundedExp x := roundBits floor precision (exp x)
  round_rounded x := roundBits_rounded hf precision x
  exp_rounded x := roundBits_rounded hf precision (exp x)

/-- **rounding-exists**: over the real numbers, with e^x, there are numbers that round with a
relative error of 2^−p in every operation and every exponential, for each p. A format of that
precision rounds alike each number from its smallest normal one on, and each sum and difference of
its numbers, however small. -/
theorem exists_floatingPoint (p : Nat) :
    ∃ F : FloatingPoint Real, F.unit = (2 : Real) ^ (-(p : Int)) ∧
      F.exponential = (2 : Real) ^ (-(p : Int)) ∧
      ∀ f : Format, f.precision = p →
        (∀ x, f.smallestNormal Real ≤ absolute x → F.round x = f.round Real.floor x) ∧
        (∀ x, f.smallestNormal Real ≤ exp x → F.roundedExp x = f.round Real.floor (exp x)) ∧
        ∀ a b, f.IsNumber a → f.IsNumber b →
          F.round (a + b) = f.round Real.floor (a + b) ∧
            F.round (a - b) = f.round Real.floor (a - b) := by
  refine ⟨nearestPoint Real.isFloor p, rfl, rfl, fun f hp => ?_⟩
  subst hp
  exact ⟨fun x h => (round_eq_roundBits Real.isFloor h).symm,
    fun x h => (round_eq_roundBits Real.isFloor
      (Std.le_trans h (atMost_absolute (exp x)).2)).symm,
    fun a b ha hb => ⟨(round_add Real.isFloor ha hb).symm, (round_sub Real.isFloor ha hb).symm⟩⟩

/-- **round-exp**: the exponential, rounded to the nearest number of a format, is not negative, and
off by at most 2^−precision of itself and half of the format's smallest positive number. -/
theorem round_exp [Exponential R R] {floor : R → Int} (hf : IsFloor floor) {f : Format}
    (hp : 0 < f.precision) (x : R) :
    0 ≤ f.round floor (exp x) ∧
      AtMost ((2 : R) ^ (-(f.precision : Int)) * exp x + (2 : R) ^ (f.least - 1))
        (f.round floor (exp x) - exp x) := by
  have pos : (0 : R) < exp x := Exponential.exp_pos x
  constructor
  · have h := round_mono hf hp (Std.le_of_lt pos)
    have e : f.round floor (0 : R) = 0 := round_number hf hp
      ⟨0, f.least, Nat.two_pow_pos _, Int.le_refl _, by
        rw [Ring.intCast_zero, Semiring.zero_mul]⟩
    rwa [e] at h
  · obtain ⟨θ, δ, hθ, hδ, -, -, e⟩ := round_error (f := f) hf (exp x)
    have h := (hθ.mul (y := exp x) (b := exp x) ⟨by grind, Std.le_refl _⟩).add hδ
    rw [e]
    have e₁ : exp x * (1 + θ) + δ - exp x = θ * exp x + δ := by grind
    rwa [e₁]

/-! ## The tile loop -/

/-- n · 2^−p ≤ 1 for n ≤ 2^p. -/
theorem numeral_mul_le {n p : Nat} (h : n ≤ 2 ^ p) :
    (numeral n : R) * (2 : R) ^ (-(p : Int)) ≤ 1 := by
  have h₁ := two_zpow_add (R := R) p (-(p : Int))
  rw [Int.add_right_neg, Field.zpow_zero, two_zpow_natCast] at h₁
  have h₂ : ((n : Int) : R) ≤ ((2 ^ p : Int) : R) := by
    rw [intCast_le_iff]
    exact_mod_cast h
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₂
    (Std.le_of_lt (two_zpow_pos (R := R) (-(p : Int))))
  rwa [← h₁, Ring.intCast_natCast, ← numeral_eq] at h₃

/-- A product of numerals. -/
theorem numeral_mul (k n : Nat) : (numeral (k * n) : R) = numeral k * numeral n := by
  rw [numeral_eq, numeral_eq, numeral_eq, Semiring.natCast_mul]

/-- **bits-within-allowance**: the tile loop over real numbers of p bits, every result the nearest
one, is within the tolerance of exact attention: of the roundoff nothing is supposed but that 2^p
is large for the sizes. -/
theorem bits_within_tolerance {p q_len kv_len d d_v : Nat}
    {mask : Mask q_len kv_len} {σ : (nearestPoint Real.isFloor p).Number}
    {Q : Matrix (nearestPoint Real.isFloor p).Number q_len d}
    {K : Matrix (nearestPoint Real.isFloor p).Number kv_len d}
    {V : Matrix (nearestPoint Real.isFloor p).Number kv_len d_v} {i : Fin q_len}
    {roundings rescalings : Nat} (unmasked : ∃ k, mask i k = true) (hd : 10 * (d + 4) ≤ 2 ^ p)
    (hN : roundings + 7 ≤ 2 ^ p) (hD : 2 * roundings + 1 ≤ 2 ^ p)
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) (negligible : Real)
    (ha : block_n + numTiles kv_len block_n + (numTiles kv_len block_n - 1) ≤ roundings)
    (hr : numTiles kv_len block_n - 1 ≤ rescalings) :
    let q : Matrix Real q_len d := Vec.map (Vec.map (·.val)) Q
    let k : Matrix Real kv_len d := Vec.map (Vec.map (·.val)) K
    let v : Matrix Real kv_len d_v := Vec.map (Vec.map (·.val)) V
    ∃ o, (flash σ mask.toScoreMod Q K V block_m block_n)[i.val]? = some o ∧ ∀ t : Fin d_v,
      AtMost (tolerance (nearestPoint Real.isFloor p).precision roundings rescalings negligible
          (boundedKeys (nearestPoint Real.isFloor p).precision inAccumulator d σ.val mask q k v i t
            (List.finRange kv_len)))
        (o[t].val - (attention σ.val mask.toScoreMod q k v)[i][t]) := by
  let u := (2 : Real) ^ (-(p : Int))
  have pos : 0 < u := two_zpow_pos _
  have self : Rounded u σ.val σ.val := ⟨0, .zero (Std.le_of_lt pos), by grind⟩
  have h₁ := numeral_mul_le (R := Real) (p := p) (n := 2) (by omega)
  have h₂ := numeral_mul_le (R := Real) (p := p) hN
  have h₃ := numeral_mul_le (R := Real) (p := p) hD
  have h₄ := numeral_mul_le (R := Real) (p := p) hd
  have two : (numeral 2 : Real) = 2 := by
    rw [numeral_eq]
    exact (Semiring.ofNat_eq_natCast 2).symm
  have ten : (numeral 10 : Real) = 10 := by
    rw [numeral_eq]
    exact (Semiring.ofNat_eq_natCast 10).symm
  rw [two] at h₁
  rw [numeral_succ] at h₂
  rw [numeral_succ, numeral_mul, two] at h₃
  rw [numeral_mul, ten] at h₄
  refine flash_within_tolerance (show u < 1 by grind)
    ⟨σ.val, ⟨σ.val, ⟨σ.val, rfl, self⟩, self⟩, self⟩ unmasked
    (show 10 * (numeral (d + 4) * u) ≤ 1 by grind)
    (show numeral (roundings + 6) * u < 1 by grind)
    (show 2 * numeral roundings * u < 1 by grind) hm hn negligible ha hr

end Attention.Proof
