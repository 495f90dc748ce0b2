module

public import Attention.Claims.Approximation.Basic

public section

/-! # Attention approximates every uniformly continuous function on a box

Over an Archimedean field, as the real numbers are, the numbers that `attention_approximates` asks
for exist: for each ε a net that is fine enough, and an inverse temperature. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

attribute [local instance] Semiring.natCast

variable {R : Type v} {n m : Nat}

section
variable [OrderedField R]

/-- A number whose square is at most that of δ ≥ 0 is at most δ. -/
theorem atMost_of_square {u δ : R} (hδ : 0 ≤ δ) (h : u * u ≤ δ * δ) : AtMost δ u := by
  constructor
  · refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos (a := -u - δ) (b := -u + δ) (by grind) (by grind)
    grind
  · refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos (a := u - δ) (b := u + δ) (by grind) (by grind)
    grind

private theorem close {δ k : R} (hk : 0 ≤ k) {u : R} (h : u ≤ k * (δ / (k + 1) * (δ / (k + 1)))) :
    u ≤ δ * δ := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have e := OrderedField.mul_div_cancel (b := k + 1) (by grind) δ
  generalize δ / (k + 1) = q at *
  subst e
  have h₂ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hk hk) (mul_self_nonneg q)
  have h₃ := OrderedRing.mul_nonneg hk (mul_self_nonneg q)
  have h₄ := mul_self_nonneg q
  grind

private theorem enough {N M l : R} (hl : 0 < l) (h : 0 ≤ N * M) :
    0 ≤ 4 * (N * M) / (3 * l) ∧ 4 * N * M ≤ 3 * (4 * (N * M) / (3 * l)) * l := by
  have hl' : 0 < 3 * l := by grind
  have e := OrderedField.mul_div_cancel (b := 3 * l) (by grind) (4 * (N * M))
  exact ⟨OrderedField.div_nonneg (by grind) hl', by grind⟩

end

/-- **universal-approximation**: over an Archimedean field, each uniformly continuous function on a
box is approximated there by softmax attention over a net: for each ε > 0 there are a number N and
an inverse temperature β such that the attention is within ε of the function. -/
theorem universal_approximation [OrderedField R] [NaturalExp R] (hn : 0 < n)
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {a b ε : R} (hε : 0 < ε)
    (f : Vec R n → Vec R m)
    (hf : ∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ x y, InBox a b x → InBox a b y →
      (∀ k : Fin n, AtMost δ (x[k] - y[k])) → ∀ c : Fin m, AtMost η ((f x)[c] - (f y)[c])) :
    ∃ (N : Nat) (β : R), ∀ (q_len : Nat) (X : Matrix R q_len n) (i : Fin q_len),
      InBox a b X[i] → ∀ c : Fin m,
      AtMost ε ((attention β Mask.full.toScoreMod (Vec.map pointQuery X)
        (Vec.map pointKey (net a b N n)) (Vec.map f (net a b N n)))[i][c] - (f X[i])[c]) := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨δ, hδ, close_values⟩ := hf (ε / 2) (by grind)
  have hn₀ := natCast_nonneg (R := R) n
  have hn₁ : 0 < (n : R) := by
    obtain ⟨k, rfl⟩ := Nat.exists_eq_succ_of_ne_zero (Nat.ne_of_gt hn)
    have := natCast_nonneg (R := R) k
    rw [Nat.succ_eq_add_one, Semiring.natCast_add, Semiring.natCast_one]
    grind
  have hq : 0 < δ / ((n : R) + 1) := by
    have e := OrderedField.mul_div_cancel (b := (n : R) + 1) (by grind) δ
    refine Classical.byContradiction fun h => ?_
    have := OrderedRing.mul_nonneg (a := (n : R) + 1) (b := -(δ / ((n : R) + 1))) (by grind)
      (by grind)
    grind
  generalize hq' : δ / ((n : R) + 1) = q at hq
  obtain ⟨N, hN⟩ := archimedean (b - a) q hq
  have hl : 0 < (n : R) * (q * q) := OrderedRing.mul_pos hn₁ (OrderedRing.mul_pos hq hq)
  have hM := OrderedRing.mul_nonneg (natCast_nonneg (R := R) N)
    (natCast_nonneg (R := R) ((N + 1) ^ n))
  obtain ⟨hβ₀, hβ⟩ := enough hl hM
  refine ⟨N, _, fun q_len X i hX c => attention_approximates (Std.le_of_lt hq) hN hβ₀ hβ f c
    (fun x y hx hy h => close_values x y hx hy (fun k => ?_) c) X i hX⟩
  refine atMost_of_square (Std.le_of_lt hδ) (close hn₀ (Std.le_trans ?_ (hq' ▸ h)))
  exact le_sumOver (f := fun k : Fin n => (x[k] - y[k]) * (x[k] - y[k]))
    (fun k _ => mul_self_nonneg _) (List.mem_finRange k)

end Attention.Claims
