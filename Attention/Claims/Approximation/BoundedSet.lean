module

public import Attention.Claims.Approximation.Bounded
public import Attention.Claims.Approximation.Continuous

public section

/-! # Attention over points of a bounded set

A bounded set has, for each radius, finitely many points of its own such that each of its points is
near one of them. With the values of a uniformly continuous function at those, attention by distance
approximates the function on the set, at each inverse temperature from some number on. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe v

attribute [local instance] Semiring.natCast

variable {R : Type v} {n m : Nat} {S : Vec R n → Prop} {a b : R}

section
variable [OrderedField R]

/-- |x − y|² ≤ 2 |x − z|² + 2 |y − z|². -/
theorem sqDist_le_twice (x y z : Vec R n) : sqDist x y ≤ 2 * sqDist x z + 2 * sqDist y z := by
  rw [sqDist, sqDist, sqDist, ← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_add]
  refine sumOver_le_sumOver fun k _ => ?_
  have := mul_self_nonneg (x[k] - z[k] + (y[k] - z[k]))
  grind

/-- Finitely many points of a bounded set, one of them near each point of the set. -/
theorem exists_points (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y)
    (hS : ∀ x, S x → InBox a b x) {δ : R} (hδ : 0 < δ) :
    ∃ (kv_len : Nat) (C : Matrix R kv_len n), (∀ k : Fin kv_len, S C[k]) ∧
      ∀ x, S x → ∃ k : Fin kv_len, sqDist x C[k] ≤ (n : R) * (δ * δ) := by
  classical
  by_cases some_point : ∃ x, S x
  case neg => exact ⟨0, #v[], fun k => k.elim0, fun x hx => absurd ⟨x, hx⟩ some_point⟩
  obtain ⟨x₀, hx₀⟩ := some_point
  obtain ⟨N, hN⟩ := archimedean (b - a) δ hδ
  let Near (j : Fin ((N + 1) ^ n)) (y : Vec R n) : Prop :=
    S y ∧ 4 * sqDist y (net a b N n)[j] ≤ (n : R) * (δ * δ)
  let point (j : Fin ((N + 1) ^ n)) : Vec R n := if h : ∃ y, Near j y then h.choose else x₀
  refine ⟨_, Vec.ofFn point, fun k => ?_, fun x hx => ?_⟩
  · rw [Fin.getElem_fin, Vec.getElem_ofFn]
    show S (if h : ∃ y, Near k y then h.choose else x₀)
    split
    · rename_i h
      exact h.choose_spec.1
    · exact hx₀
  · obtain ⟨j, hj⟩ := exists_net_near (Std.le_of_lt hδ) hN (hS x hx)
    have h : ∃ y, Near j y := ⟨x, hx, hj⟩
    have e : point j = h.choose := dif_pos h
    refine ⟨j, ?_⟩
    rw [Fin.getElem_fin, Vec.getElem_ofFn]
    show sqDist x (point j) ≤ _
    have h₁ := h.choose_spec.2
    have h₂ := sqDist_le_twice x h.choose (net a b N n)[j]
    rw [e]
    grind

private theorem radius {δ k : R} (hδ : 0 < δ) (hk : 0 ≤ k) :
    ∃ q, 0 < q ∧ k * (q * q) + q * q ≤ δ * δ := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have e := OrderedField.mul_div_cancel (b := k + 1) (by grind) δ
  refine ⟨δ / (k + 1), ?_, ?_⟩
  · rw [Field.div_eq_mul_inv]
    exact OrderedRing.mul_pos hδ (Field.IsOrdered.inv_pos_iff.mpr (by grind))
  · generalize δ / (k + 1) = q at *
    subst e
    have h₂ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg hk hk) (mul_self_nonneg q)
    have h₃ := OrderedRing.mul_nonneg hk (mul_self_nonneg q)
    grind

private theorem exists_common_bound {k : Nat} (V : Matrix R k m) :
    ∃ B, 0 ≤ B ∧ ∀ (i : Fin k) (c : Fin m), AtMost B V[i][c] := by
  obtain ⟨B, h⟩ := Bounded.const (A := fun _ : Unit => True) V
  rcases Std.le_total (a := 0) (b := B) with hB | hB
  · exact ⟨B, hB, h () trivial⟩
  · exact ⟨0, Std.le_refl _, fun i c => (h () trivial i c).mono hB⟩

private theorem far {B ε u v t : R} (hu : AtMost B u) (hv : AtMost B v)
    (ht : AtMost (ε / 2) (v - t)) : AtMost (2 * B + ε / 2) (u - t) := by
  obtain ⟨h₁, h₂⟩ := hu
  obtain ⟨h₃, h₄⟩ := hv
  obtain ⟨h₅, h₆⟩ := ht
  exact ⟨by grind, by grind⟩

private theorem enough_points {ε q D β E : R} (hε : 0 < ε) (hq : 0 < q)
    (hβ : 2 * D / (ε * (q * q)) ≤ β) (hE : 1 + β * (q * q) ≤ E) : D ≤ ε / 2 * E := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have h₂ := (OrderedField.div_le_iff (OrderedRing.mul_pos hε (OrderedRing.mul_pos hq hq))).mp hβ
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left hE (Std.le_of_lt hε)
  grind

end

variable [OrderedField R] [NaturalExp R]

/-- For each ε > 0 and each uniformly continuous function f on a
bounded set, over an Archimedean field, there are points C of the set and a number β₀ such that
attention by distance over C with the values of f there is within ε of f on the set, at each inverse
temperature of at least β₀. -/
theorem attention_approximates_on_sets
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hS : ∀ x, S x → InBox a b x)
    {ε : R} (hε : 0 < ε) (f : Vec R n → Vec R m)
    (hf : ∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ x y, S x → S y →
      (∀ k : Fin n, AtMost δ (x[k] - y[k])) → ∀ c : Fin m, AtMost η ((f x)[c] - (f y)[c])) :
    ∃ (kv_len : Nat) (C : Matrix R kv_len n) (β₀ : R), 0 ≤ β₀ ∧ (∀ k : Fin kv_len, S C[k]) ∧
      ∀ (β : R), β₀ ≤ β → ∀ (q_len : Nat) (X : Matrix R q_len n) (i : Fin q_len), S X[i] →
        ∀ c : Fin m, AtMost ε ((attendPoints β X C (Vec.map f C))[i][c] - (f X[i])[c]) := by
  obtain ⟨δ, hδ, close⟩ := hf (ε / 2) (by grind)
  obtain ⟨q, hq, hqδ⟩ := radius hδ (natCast_nonneg (R := R) n)
  obtain ⟨kv_len, C, inside, near⟩ := exists_points archimedean hS hq
  obtain ⟨B, hB, bound⟩ := exists_common_bound (Vec.map f C)
  have hD : 0 ≤ 2 * B + ε / 2 := by grind
  have hM := OrderedRing.mul_nonneg (natCast_nonneg (R := R) kv_len) hD
  have hε₂ : 0 ≤ ε / 2 := by grind
  refine ⟨kv_len, C, 2 * ((kv_len : R) * (2 * B + ε / 2)) / (ε * (q * q)),
    OrderedField.div_nonneg (by grind) (OrderedRing.mul_pos hε (OrderedRing.mul_pos hq hq)), inside,
    fun β hβ q_len X i hX c => ?_⟩
  have hβ₀ : 0 ≤ β := Std.le_trans (OrderedField.div_nonneg (by grind)
    (OrderedRing.mul_pos hε (OrderedRing.mul_pos hq hq))) hβ
  obtain ⟨k₀, hk₀⟩ := near _ hX
  have value : ∀ k : Fin kv_len, (Vec.map f C)[k][c] = (f C[k])[c] := fun k => by
    simp only [Fin.getElem_fin, Vec.getElem_map]
  have within : ∀ k : Fin kv_len, sqDist X[i] C[k] ≤ δ * δ →
      AtMost (ε / 2) ((Vec.map f C)[k][c] - (f X[i])[c]) := fun k h => by
    rw [value]
    refine close _ _ (inside k) hX (fun t => ?_) c
    refine atMost_of_square (Std.le_of_lt hδ) (Std.le_trans ?_ h)
    have := le_sumOver (f := fun t : Fin n => (X[i][t] - C[k][t]) * (X[i][t] - C[k][t]))
      (fun t _ => mul_self_nonneg _) (List.mem_finRange t)
    rw [sqDist]
    grind
  have total : ε / 2 + ε / 2 = ε := by grind
  rw [← total]
  refine attendPoints_near (k₀ := k₀) (g := q * q) (D := 2 * B + ε / 2) hβ₀ X C _ hε₂ hD
    (enough_points hε hq hβ (NaturalExp.one_add_le_exp _)) fun k => ?_
  by_cases h : sqDist X[i] C[k] ≤ δ * δ
  · exact .inl (within k h)
  · exact .inr ⟨far (bound k c) (bound k₀ c) (within k₀ (by have := mul_self_nonneg q; grind)),
      by grind⟩

end Attention.Claims
