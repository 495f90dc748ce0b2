module

public import Attention.Model.Real.Order

public section

/-! # The real numbers are an ordered field

The inverse of a positive number is the sequence of the inverses, which are bounded; that of another
one is found by choice, since it is the only number whose product with it is 1. -/

namespace Attention.Model.Real

open Lean.Grind

attribute [local instance] Semiring.natCast

/-- Inverses of two numbers above δ are as close as the numbers are, divided by δ². -/
private theorem inv_sub_inv {δ ε a b : Rat} (hδ : 0 < δ) (hε : 0 < ε) (ha : δ ≤ a) (hb : δ ≤ b)
    (h : a - b ≤ δ * δ * ε) : b⁻¹ - a⁻¹ ≤ ε := by
  have e : b⁻¹ - a⁻¹ = (a - b) / (a * b) := by grind
  have hab : δ * δ ≤ a * b :=
    Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_left hb (Std.le_of_lt hδ))
      (OrderedRing.mul_le_mul_of_nonneg_right ha (by grind))
  have hδ₂ := OrderedRing.mul_pos hδ hδ
  rw [e]
  refine (OrderedField.div_le_iff (by grind)).mpr (Std.le_trans h ?_)
  exact OrderedRing.mul_le_mul_of_nonneg_right hab (Std.le_of_lt hε)

/-- A positive number has an inverse. -/
private theorem exists_inv_of_pos {x : Real} : 0 < x → ∃ y, x * y = 1 := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  rw [mk_pos]
  rintro ⟨δ, hδ, N, hN⟩
  have hinv : IsCauchy fun n => (f n)⁻¹ := fun ε hε => by
    obtain ⟨M, hM⟩ := hf (δ * δ * ε) (OrderedRing.mul_pos (OrderedRing.mul_pos hδ hδ) hε)
    refine ⟨max N M, fun m n hm hn => ?_⟩
    have ⟨h₁, h₂⟩ := hM m n (by omega) (by omega)
    have hm := hN m (by omega)
    have hn := hN n (by omega)
    have h₃ := inv_sub_inv hδ hε hn hm (by grind)
    have h₄ := inv_sub_inv hδ hε hm hn h₂
    exact ⟨by grind, h₃⟩
  refine ⟨mk _ hinv, ?_⟩
  rw [mk_mul, one_eq, ofRat, mk_eq]
  exact fun ε hε => ⟨N, fun n hn => by
    have := hN n hn
    have e : f n * (f n)⁻¹ = 1 := by grind
    exact ⟨by grind, by grind⟩⟩

/-- A number that is not 0 has an inverse. -/
theorem exists_inv {x : Real} (hx : x ≠ 0) : ∃ y, x * y = 1 := by
  by_cases h : 0 < x
  · exact exists_inv_of_pos h
  · obtain ⟨y, hy⟩ := exists_inv_of_pos (x := -x) (by grind)
    exact ⟨-y, by grind⟩

open Classical in
/-- The inverse; 0 for 0. -/
noncomputable def inv (x : Real) : Real := if h : ∃ y, x * y = 1 then h.choose else 0

noncomputable instance : Inv Real := ⟨inv⟩
noncomputable instance : Div Real := ⟨fun x y => x * y⁻¹⟩

private theorem mul_inv_cancel' {x : Real} (hx : x ≠ 0) : x * x⁻¹ = 1 := by
  have h := exists_inv hx
  have e : x⁻¹ = h.choose := dif_pos h
  rw [e]
  exact h.choose_spec

private theorem zero_ne_one' : (0 : Real) ≠ 1 := by
  have := OrderedRing.zero_lt_one (R := Real)
  grind

private theorem inv_zero' : (0 : Real)⁻¹ = 0 :=
  dif_neg fun ⟨y, hy⟩ => zero_ne_one' (by rw [← hy, Semiring.zero_mul])

private theorem inv_inv' (x : Real) : x⁻¹⁻¹ = x := by
  by_cases hx : x = 0
  · rw [hx, inv_zero', inv_zero']
  · have h₁ := mul_inv_cancel' hx
    have h₂ : x⁻¹ ≠ 0 := fun h => zero_ne_one' (by rw [← h₁, h, Semiring.mul_zero])
    have h₃ := mul_inv_cancel' h₂
    calc x⁻¹⁻¹ = x * x⁻¹ * x⁻¹⁻¹ := by rw [h₁, Semiring.one_mul]
      _ = x := by rw [Semiring.mul_assoc, h₃, Semiring.mul_one]

/-- A power with an integer for exponent. -/
noncomputable def zpow (x : Real) : Int → Real
  | .ofNat n => x ^ n
  | .negSucc n => (x ^ (n + 1))⁻¹

noncomputable instance : HPow Real Int Real := ⟨zpow⟩

private theorem inv_one' : (1 : Real)⁻¹ = 1 := by
  have := mul_inv_cancel' (x := 1) (by have := zero_ne_one'; grind)
  rwa [Semiring.one_mul] at this

/-- The real numbers are a field. -/
noncomputable instance : Field Real where
  div_eq_mul_inv _ _ := by rfl
  zero_ne_one := by exact zero_ne_one'
  inv_zero := by exact inv_zero'
  mul_inv_cancel h := by exact mul_inv_cancel' h
  zpow_zero x := by exact Semiring.pow_zero x
  zpow_succ x n := by exact Semiring.pow_succ x n
  zpow_neg x n := by
    match n with
    | .ofNat 0 =>
      show x ^ (0 : Nat) = (x ^ (0 : Nat))⁻¹
      rw [Semiring.pow_zero, inv_one']
    | .ofNat (n + 1) => rfl
    | .negSucc n => exact (inv_inv' _).symm

/-- The real numbers are an ordered field. -/
noncomputable instance : OrderedField Real where
  decLE := fun _ _ => Classical.propDecidable _

/-- **real-archimedean**: every real number is at most a multiple of a given positive one. -/
theorem archimedean (x y : Real) (hy : 0 < y) : ∃ N : Nat, x ≤ (N : Real) * y := by
  obtain ⟨N, hN⟩ := exists_natCast_le (x / y)
  refine ⟨N, ?_⟩
  have h := (OrderedField.div_le_iff hy).mp hN
  rw [natCast_eq, CommSemiring.mul_comm]
  exact h

end Attention.Model.Real
