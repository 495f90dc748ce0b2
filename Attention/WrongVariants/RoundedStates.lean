module

public import Attention.Proof.Rounding.States
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of states of a cache whose numbers underflow

A function whose weights and products underflow further than it says. Over every ordered field with
the exponential of slope 1 at 0. Source: docs/tolerances.md, "States of a cache". -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- The claim of `rounded_state` for the first key, of any way to compute a column of it. -/
abbrev FirstKeyStays (computes : R → R → R → R → R → Prop) : Prop :=
  ∀ u ν s v x : R, 0 ≤ u → 0 ≤ ν →
    numeral 100 * (weightError u ν (some s) (some s) + numeral 2 * u) ≤ 1 → computes u ν s v x →
    AtMost ((⟨none, 0, 0⟩ : BoundedColumn R).append u ν (some s) v).error
      (x - ((⟨none, 0, 0⟩ : BoundedColumn R).append u ν (some s) v).value)

/-- The column of the first key, whose score is the reference point. -/
@[expose] def firstKey (u ν s v x : R) : Prop :=
  ∃ s' p z : R, RoundedTimes u 2 s s' ∧ ComputedWeight u ν (some s') (some s') p ∧
    Stored u ν (p * v) z ∧ StoredNear u ν (0 + z) x

omit [NaturalExp R] in
private theorem small_none {u e : R} (he : 0 ≤ e) (h : numeral 100 * (e + numeral 2 * u) ≤ 1) :
    numeral 100 * ((0 : R) + numeral 2 * u) ≤ 1 := by
  have := OrderedRing.mul_nonneg (Proof.numeral_nonneg (R := R) 100) he
  grind

omit [NaturalExp R] in
private theorem weightError_same {u ν s : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) :
    0 ≤ weightError u ν (some s) (some s) := by
  have h₁ := Proof.absolute_nonneg s
  have h₂ := Proof.absolute_nonneg (s - s)
  have h₃ := OrderedRing.mul_nonneg (Proof.numeral_nonneg (R := R) 4) hu
  have h₄ := OrderedRing.mul_nonneg (Proof.numeral_nonneg (R := R) 2) h₁
  have h₅ := OrderedRing.mul_nonneg hu (b := numeral 2 * absolute s + numeral 2 * absolute s
    + absolute (s - s)) (by grind)
  show 0 ≤ numeral 4 * u
    + (u * (numeral 2 * absolute s + numeral 2 * absolute s + absolute (s - s)) + ν)
  grind

/-- Positive control: a key of which no more underflows than is said. -/
theorem firstKey_stays : FirstKeyStays (R := R) firstKey := fun u ν s v x hu hν small h => by
  obtain ⟨s', p, z, hs, hp, hz, hx⟩ := h
  have run : StateRun u ν ((⟨none, 0, 0⟩ : BoundedColumn R).append u ν (some s) v) (some s') x :=
    .append (s' := some s') (α := 0) (p := p) (y := 0) (z := z) .empty hs hs
      (small_none (weightError_same (s := s) hu hν) small) small rfl hp
      (by
        rw [Semiring.zero_mul]
        exact Proof.stored_refl hu 0) hz hx
  exact (Proof.rounded_state hu hν run).2

/-- Weights and products a hundred times as large as is said are flushed to 0. -/
@[expose] def firstKeyHundredfold (u ν s v x : R) : Prop := firstKey u (100 * ν) s v x

theorem firstKeyHundredfold_refuted : ¬ FirstKeyStays (R := R) firstKeyHundredfold :=
  fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₁ : absolute (1 : R) = 1 := Proof.absolute_of_nonneg (Std.le_of_lt h₀)
  have e₀ : absolute (0 : R) = 0 := Proof.absolute_of_nonneg (Std.le_refl _)
  have flushed : Stored 0 (100 * (1 / 100)) (1 : R) 0 := by
    rw [Stored, e₁, show (100 : R) * (1 / 100) = 1 by grind, Semiring.zero_mul,
      OrderedField.max_def, if_pos (Std.le_of_lt h₀)]
    exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩
  have n₂ : (numeral 2 : R) = 2 := by
    rw [Proof.numeral_eq, ← Semiring.ofNat_eq_natCast]
  have n₃ : (numeral 3 : R) = 3 := by
    rw [Proof.numeral_eq, ← Semiring.ofNat_eq_natCast]
  have n₄ : (numeral 4 : R) = 4 := by
    rw [Proof.numeral_eq, ← Semiring.ofNat_eq_natCast]
  have n₅₁ : (secondOrder : R) = 51 / 50 := by
    rw [secondOrder, Proof.numeral_eq, Proof.numeral_eq, ← Semiring.ofNat_eq_natCast,
      ← Semiring.ofNat_eq_natCast]
  have h := claim 0 (1 / 100) 0 1 0 (Std.le_refl _) (by grind)
    (by
      show numeral 100 * (numeral 4 * 0 + (0 * _ + 1 / 100) + numeral 2 * 0) ≤ (1 : R)
      rw [show (numeral 100 : R) = 100 by rw [Proof.numeral_eq, ← Semiring.ofNat_eq_natCast]]
      grind)
    ⟨0, 0, 0, roundedTimes_refl (Std.le_refl _) 2 0,
      ⟨0 - 0, .inl (rounded_refl (Std.le_refl _) _), by
        rw [exp_sub_self, Semiring.mul_zero]
        exact flushed⟩,
      by
        rw [Semiring.zero_mul]
        exact Proof.stored_refl (Std.le_refl _) 0,
      by
        rw [Semiring.add_zero]
        exact ⟨0, rounded_refl (Std.le_refl _) 0, by grind, by grind⟩⟩
  have h := h.1
  simp only [BoundedColumn.append, rescale, maxScore, weightError, exp_sub_self, n₅₁, n₂, n₃, n₄,
    e₀, e₁] at h
  clear claim flushed
  grind

end Attention.WrongVariants
