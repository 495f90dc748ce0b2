module

public import Attention.Spec.Philox

public section

/-! # Philox loses nothing of its counter -/

namespace Attention.Proof

open Spec

/-- All words are below 2 ^ 32. -/
@[expose] def Words.Valid (w : Words) : Prop :=
  w.c0 < 2 ^ 32 ∧ w.c1 < 2 ^ 32 ∧ w.c2 < 2 ^ 32 ∧ w.c3 < 2 ^ 32

/-- Both words are below 2 ^ 32. -/
@[expose] def PhiloxKey.Valid (key : PhiloxKey) : Prop := key.k0 < 2 ^ 32 ∧ key.k1 < 2 ^ 32

/-- The key of the next round is two words. -/
theorem nextKey_valid (key : PhiloxKey) : PhiloxKey.Valid (nextKey key) :=
  ⟨Nat.mod_lt _ (by decide), Nat.mod_lt _ (by decide)⟩

/-- A round makes words of words. -/
theorem philoxRound_valid {key : PhiloxKey} {w : Words} (hk : PhiloxKey.Valid key)
    (hw : Words.Valid w) : Words.Valid (philoxRound key w) := by
  obtain ⟨h₀, h₁, h₂, h₃⟩ := hw
  refine ⟨Nat.xor_lt_two_pow (Nat.xor_lt_two_pow ?_ h₁) hk.1, Nat.mod_lt _ (by decide),
    Nat.xor_lt_two_pow (Nat.xor_lt_two_pow ?_ h₃) hk.2, Nat.mod_lt _ (by decide)⟩ <;> omega

/-- Any number of rounds makes words of words. -/
theorem philox_valid (rounds : Nat) : ∀ {key : PhiloxKey} {w : Words}, PhiloxKey.Valid key →
    Words.Valid w → Words.Valid (philox rounds key w) := by
  induction rounds with
  | zero => exact fun _ hw => hw
  | succ n ih => exact fun hk hw => ih (nextKey_valid _) (philoxRound_valid hk hw)

/-- A factor with an inverse modulo 2 ^ 32 loses nothing. -/
private theorem mul_mod_inj {m inv a b : Nat} (h : m * inv % 2 ^ 32 = 1) (ha : a < 2 ^ 32)
    (hb : b < 2 ^ 32) (hab : m * a % 2 ^ 32 = m * b % 2 ^ 32) : a = b := by
  have back : ∀ x, x < 2 ^ 32 → m * x % 2 ^ 32 * inv % 2 ^ 32 = x := fun x hx => by
    rw [Nat.mod_mul_mod, Nat.mul_comm m x, Nat.mul_assoc, Nat.mul_mod, h, Nat.mul_one,
      Nat.mod_mod, Nat.mod_eq_of_lt hx]
  rw [← back a ha, hab, back b hb]

private theorem xor_cancel {x a b k : Nat} (h : x ^^^ a ^^^ k = x ^^^ b ^^^ k) : a = b := by
  have back : ∀ y, x ^^^ (x ^^^ y ^^^ k ^^^ k) = y := fun y => by
    rw [Nat.xor_assoc, Nat.xor_self, Nat.xor_zero, ← Nat.xor_assoc, Nat.xor_self, Nat.zero_xor]
  rw [← back a, h, back]

/-- A round is injective: the multipliers are odd, so the low halves determine two words, and with
them the high halves. -/
theorem philoxRound_injective (key : PhiloxKey) {a b : Words} (ha : Words.Valid a)
    (hb : Words.Valid b) (h : philoxRound key a = philoxRound key b) : a = b := by
  obtain ⟨a0, a1, a2, a3⟩ := a
  obtain ⟨b0, b1, b2, b3⟩ := b
  simp only [philoxRound, Words.mk.injEq] at h
  obtain ⟨h₁, h₂, h₃, h₄⟩ := h
  have e₀ : a0 = b0 := mul_mod_inj (inv := 2568649947) (by decide) ha.1 hb.1 h₄
  have e₂ : a2 = b2 := mul_mod_inj (inv := 1836887655) (by decide) ha.2.2.1 hb.2.2.1 h₂
  subst e₀ e₂
  rw [xor_cancel h₁, xor_cancel h₃]

/-- **philox-injective**: for each key and any number of rounds, Philox gives different words for
different counters; so it is a permutation of the 2 ^ 128 counters. -/
theorem philox_injective (rounds : Nat) : ∀ {key : PhiloxKey} {a b : Words},
    PhiloxKey.Valid key → Words.Valid a → Words.Valid b →
    philox rounds key a = philox rounds key b → a = b := by
  induction rounds with
  | zero => exact fun _ _ _ h => h
  | succ n ih =>
    exact fun hk ha hb h => philoxRound_injective _ ha hb
      (ih (nextKey_valid _) (philoxRound_valid hk ha) (philoxRound_valid hk hb) h)

end Attention.Proof
