module

public import Attention.Claims.Approximation.Nearest

public section

/-! # A net of points in a box

The points of a box [a, b]ⁿ whose coordinates are among N + 1 numbers at equal distances from a to
b, (N + 1)ⁿ points: each point of the box has one of them within half that distance in every
coordinate. -/

namespace Attention.Claims

open Lean.Grind

universe v

attribute [local instance] Semiring.natCast

variable {R : Type v} {n N : Nat}

/-- x lies in the box [a, b]ⁿ. -/
@[expose] def InBox [LE R] (a b : R) (x : Vec R n) : Prop := ∀ k : Fin n, a ≤ x[k] ∧ x[k] ≤ b

/-- The point with number j of the net: its coordinate k is a + i (b − a) / N, where i is digit k of
j to the base N + 1. -/
@[expose] def netPoint [Add R] [Sub R] [Mul R] [Div R] [NatCast R] (a b : R) (N j : Nat) :
    Vec R n :=
  Vec.ofFn fun k => a + ((j / (N + 1) ^ k.val % (N + 1) : Nat) : R) * ((b - a) / (N : R))

/-- The (N + 1)ⁿ points of the net. -/
@[expose] def net [Add R] [Sub R] [Mul R] [Div R] [NatCast R] (a b : R) (N n : Nat) :
    Matrix R ((N + 1) ^ n) n :=
  Vec.ofFn fun j => netPoint a b N j

/-- There is a number with given digits. -/
private theorem exists_digits (d : Nat → Nat) (hd : ∀ k, d k ≤ N) (n : Nat) :
    ∃ j, j < (N + 1) ^ n ∧ ∀ k, k < n → j / (N + 1) ^ k % (N + 1) = d k := by
  induction n generalizing d with
  | zero => exact ⟨0, by simp, fun k hk => absurd hk (Nat.not_lt_zero k)⟩
  | succ n ih =>
    obtain ⟨j, hj, h⟩ := ih (fun k => d (k + 1)) fun k => hd (k + 1)
    have h₀ := hd 0
    have quotient : (d 0 + (N + 1) * j) / (N + 1) = j := by
      rw [Nat.add_mul_div_left _ _ (Nat.succ_pos N), Nat.div_eq_of_lt (by omega), Nat.zero_add]
    refine ⟨d 0 + (N + 1) * j, ?_, fun k hk => ?_⟩
    · have : (N + 1) * (j + 1) ≤ (N + 1) * (N + 1) ^ n := Nat.mul_le_mul_left _ hj
      rw [Nat.pow_succ, Nat.mul_comm _ (N + 1)]
      rw [Nat.mul_add] at this
      omega
    · cases k with
      | zero =>
        rw [Nat.pow_zero, Nat.div_one, Nat.add_mul_mod_self_left, Nat.mod_eq_of_lt (by omega)]
      | succ k =>
        rw [Nat.pow_succ, Nat.mul_comm _ (N + 1), ← Nat.div_div_eq_div_mul, quotient]
        exact h k (by omega)

variable [OrderedField R]

/-- A number between a and a + N h is within h / 2 of a + i h, for some i. -/
private theorem exists_near {a h x : R} (hh : 0 ≤ h) (ha : a ≤ x) :
    ∀ N : Nat, x ≤ a + (N : R) * h → ∃ i, i ≤ N ∧ AtMost h (2 * (x - (a + (i : R) * h)))
  | 0, hx => by
    refine ⟨0, Nat.le_refl 0, ?_⟩
    rw [Semiring.natCast_zero] at hx ⊢
    exact ⟨by grind, by grind⟩
  | N + 1, hx => by
    have e : ((N + 1 : Nat) : R) = (N : R) + 1 := by
      rw [Semiring.natCast_add, Semiring.natCast_one]
    rcases Std.le_total (a := x) (b := a + (N : R) * h) with hl | hl
    · obtain ⟨i, hi, hi'⟩ := exists_near hh ha N hl
      exact ⟨i, Nat.le_succ_of_le hi, hi'⟩
    · rcases Std.le_total (a := 2 * (x - (a + (N : R) * h))) (b := h) with hm | hm
      · exact ⟨N, Nat.le_succ N, by grind, hm⟩
      · refine ⟨N + 1, Nat.le_refl _, ?_⟩
        rw [e] at hx ⊢
        exact ⟨by grind, by grind⟩

/-- A natural number is not negative. -/
theorem natCast_nonneg (N : Nat) : 0 ≤ (N : R) := by
  induction N with
  | zero => rw [Semiring.natCast_zero]; exact Std.le_refl _
  | succ N ih =>
    have := OrderedRing.zero_lt_one (R := R)
    rw [Semiring.natCast_add, Semiring.natCast_one]
    grind

/-- The distance of neighbours is at most δ, and N of it are b − a. -/
private theorem spacing {a b δ : R} (hab : a ≤ b) (hδ : 0 ≤ δ) (h : b - a ≤ (N : R) * δ) :
    0 ≤ (b - a) / (N : R) ∧ (b - a) / (N : R) ≤ δ ∧ a + (N : R) * ((b - a) / (N : R)) = b := by
  by_cases hN : (N : R) = 0
  · rw [hN] at h ⊢
    have e : (b - a) / (0 : R) = 0 := by grind
    rw [e]
    exact ⟨Std.le_refl _, hδ, by grind⟩
  · have h₀ := natCast_nonneg (R := R) N
    have pos : 0 < (N : R) := by grind
    have e := OrderedField.mul_div_cancel hN (b - a)
    exact ⟨OrderedField.div_nonneg (by grind) pos, (OrderedField.div_le_iff pos).mpr h, by grind⟩

/-- The points of the net lie in the box. -/
theorem net_inBox {a b δ : R} (hab : a ≤ b) (hδ : 0 ≤ δ) (h : b - a ≤ (N : R) * δ)
    (j : Fin ((N + 1) ^ n)) : InBox a b (net a b N n)[j] := by
  intro k
  obtain ⟨h₀, -, h₂⟩ := spacing hab hδ h
  simp only [net, netPoint, Fin.getElem_fin, Vec.getElem_ofFn]
  have hi : j.val / (N + 1) ^ k.val % (N + 1) ≤ N :=
    Nat.le_of_lt_succ (Nat.mod_lt _ (Nat.succ_pos N))
  generalize j.val / (N + 1) ^ k.val % (N + 1) = i at hi
  generalize (b - a) / (N : R) = s at h₀ h₂
  obtain ⟨i', rfl⟩ := Nat.exists_eq_add_of_le hi
  rw [Semiring.natCast_add] at h₂
  have h₃ := OrderedRing.mul_nonneg (natCast_nonneg (R := R) i) h₀
  have h₄ := OrderedRing.mul_nonneg (natCast_nonneg (R := R) i') h₀
  exact ⟨by grind, by grind⟩

/-- Each point of the box has a point of the net near it: the square of the distance is at most
n δ² / 4, where b − a ≤ N δ. -/
theorem exists_net_near {a b δ : R} (hδ : 0 ≤ δ) (h : b - a ≤ (N : R) * δ) {x : Vec R n}
    (hx : InBox a b x) :
    ∃ j : Fin ((N + 1) ^ n), 4 * sqDist x (net a b N n)[j] ≤ (n : R) * (δ * δ) := by
  have near : ∀ k : Fin n, ∃ i, i ≤ N ∧
      AtMost δ (2 * (x[k] - (a + (i : R) * ((b - a) / (N : R))))) := fun k => by
      obtain ⟨ha, hb⟩ := hx k
      obtain ⟨h₀, h₁, h₂⟩ := spacing (Std.le_trans ha hb) hδ h
      obtain ⟨i, hi, hi'⟩ := exists_near h₀ ha N (by rw [h₂]; exact hb)
      exact ⟨i, hi, hi'.mono h₁⟩
  let d : Nat → Nat := fun k => if hk : k < n then (near ⟨k, hk⟩).choose else 0
  have hd : ∀ k : Fin n, d k = (near k).choose := fun k => dif_pos k.isLt
  obtain ⟨j, hj, hjd⟩ := exists_digits (N := N) d (fun k => by
    by_cases hk : k < n
    · rw [show d k = _ from hd ⟨k, hk⟩]
      exact (near ⟨k, hk⟩).choose_spec.1
    · simp [d, hk]) n
  refine ⟨⟨j, hj⟩, ?_⟩
  rw [sqDist, ← sumOver_mul_left]
  have bound : sumOver (fun k : Fin n => 4 * ((x[k] - (net a b N n)[(⟨j, hj⟩ : Fin _)][k])
        * (x[k] - (net a b N n)[(⟨j, hj⟩ : Fin _)][k]))) (List.finRange n)
      ≤ sumOver (fun _ => δ * δ) (List.finRange n) := sumOver_le_sumOver fun k _ => by
    have e : (net a b N n)[(⟨j, hj⟩ : Fin _)][k]
        = a + (((near k).choose : Nat) : R) * ((b - a) / (N : R)) := by
      simp only [net, netPoint, Fin.getElem_fin, Vec.getElem_ofFn, hjd k k.isLt, hd]
    have := (near k).choose_spec.2
    rw [← e] at this
    have := (this.mul this).2
    grind
  rwa [sumOver_const, List.length_finRange] at bound

end Attention.Claims
