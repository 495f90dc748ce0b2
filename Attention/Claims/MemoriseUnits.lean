module

public import Attention.Algebra.Magnitude
public import Attention.Spec.FeedForward

public section

/-! # A feed-forward network through finitely many points of one length

Of finitely many vectors of the same length none is a mean of others, so a hidden unit can be
positive at one of them and 0 at the others. One unit for each makes the network take any values at
them. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {α : Type u} {R : Type v} [OrderedField R] {n d_ff : Nat}

private theorem relu_of_nonneg {x : R} (h : 0 ≤ x) : relu x = x :=
  (OrderedField.max_def 0 x).trans (if_pos h)

private theorem relu_of_nonpos {x : R} (h : x ≤ 0) : relu x = 0 := by
  refine (OrderedField.max_def 0 x).trans ?_
  split
  · exact Std.le_antisymm h (by assumption)
  · rfl

/-- The inner product of two different vectors of the same length is less than its square. -/
theorem dot_lt {x y : Vec R n} {Q : R} (hx : Vec.dot x x = Q) (hy : Vec.dot y y = Q) (hne : x ≠ y) :
    Vec.dot x y < Q := by
  have ⟨k, hk⟩ : ∃ k : Fin n, x[k] ≠ y[k] := Classical.byContradiction fun hn =>
    hne (Vector.ext fun k hk => Classical.byContradiction fun h => hn ⟨⟨k, hk⟩, h⟩)
  have pos := le_sumOver (f := fun k : Fin n => (x[k] - y[k]) * (x[k] - y[k]))
    (fun k _ => mul_self_nonneg _) (List.mem_finRange k)
  have e : sumOver (fun k : Fin n => (x[k] - y[k]) * (x[k] - y[k])) (List.finRange n)
      = Vec.dot x x + Vec.dot y y - 2 * Vec.dot x y := by
    simp only [Vec.dot]
    rw [← sumOver_mul_left, ← sumOver_add, ← sumOver_sub]
    exact sumOver_congr fun k _ => by grind
  have h₁ := mul_self_nonneg (x[k] - y[k])
  have h₂ : (x[k] - y[k]) * (x[k] - y[k]) ≠ 0 := fun h => hk (by
    rcases Field.of_mul_eq_zero h with h | h <;> grind)
  rw [e, hx, hy] at pos
  grind

private theorem exists_bound (f : α → R) (Q : R) {xs : List α} (h : ∀ x ∈ xs, f x < Q) :
    ∃ θ, θ < Q ∧ ∀ x ∈ xs, f x ≤ θ := by
  induction xs with
  | nil =>
    have := OrderedRing.zero_lt_one (R := R)
    exact ⟨Q - 1, by grind, fun x hx => by cases hx⟩
  | cons x xs ih =>
    obtain ⟨θ, hθ, hxs⟩ := ih fun y hy => h y (by simp [hy])
    have hx := h x (by simp)
    by_cases hle : f x ≤ θ
    · exact ⟨θ, hθ, fun y hy => by
        rcases List.mem_cons.mp hy with rfl | hy
        · exact hle
        · exact hxs y hy⟩
    · exact ⟨f x, hx, fun y hy => by
        rcases List.mem_cons.mp hy with rfl | hy
        · exact Std.le_refl _
        · exact Std.le_trans (hxs y hy) (Std.le_of_lt (Std.not_le.mp hle))⟩

/-- A hidden unit: its weights, its bias, and what its output is multiplied by. -/
structure HiddenUnit (R : Type v) (n : Nat) where
  /-- Its row of W₁. -/
  weight : Vec R n
  /-- Its component of b₁. -/
  bias : R
  /-- Its column of W₂. -/
  out : Vec R n

/-- What a unit adds to a row. -/
@[expose] def HiddenUnit.apply (u : HiddenUnit R n) (x : Vec R n) : Vec R n :=
  Vec.smul (relu (Vec.dot u.weight x + u.bias)) u.out

/-- The network of a list of hidden units. -/
@[expose] def unitsNetwork (units : List (HiddenUnit R n)) : FeedForward R n units.length where
  hidden := ⟨Vec.ofFn fun i => units[i].weight, Vec.ofFn fun i => units[i].bias⟩
  output := ⟨Vec.ofFn fun k => Vec.ofFn fun i => units[i].out[k], Vec.zero⟩

/-- It adds up what the units add. -/
theorem unitsNetwork_row (units : List (HiddenUnit R n)) (x : Vec R n) :
    (unitsNetwork units).row x = Vec.sumOver (fun u => u.apply x) units := by
  refine Vector.ext fun k hk => ?_
  have h : units = (List.finRange units.length).map fun i => units[i] :=
    List.ext_getElem (by simp) fun i _ _ => by simp
  have e : sumOver (fun u : HiddenUnit R n => (u.apply x)[k]) units
      = sumOver (fun i : Fin units.length => (units[i].apply x)[k]) (List.finRange units.length) := by
    conv => lhs; rw [h]
    rw [sumOver_map]
  rw [Vec.getElem_sumOver, e]
  simp only [FeedForward.row, Linear.row, unitsNetwork, Vec.getElem_ofFn, Vec.getElem_zero, Vec.dot,
    Fin.getElem_fin, Vec.getElem_map, HiddenUnit.apply, Vec.getElem_smul]
  rw [Semiring.add_zero]
  exact sumOver_congr fun i _ => by grind

private theorem exists_units {Q : R} {xs : List α} {x y : α → Vec R n}
    (length : ∀ a ∈ xs, Vec.dot (x a) (x a) = Q) (same : ∀ a b, x a = x b → y a = y b) :
    ∃ units : List (HiddenUnit R n), units.length = xs.length ∧
      ∀ a ∈ xs, Vec.sumOver (fun u => u.apply (x a)) units = y a := by
  induction xs with
  | nil => exact ⟨[], rfl, fun a ha => by cases ha⟩
  | cons a xs ih =>
    obtain ⟨units, hlen, hunits⟩ := ih fun b hb => length b (by simp [hb])
    by_cases known : ∃ b ∈ xs, x b = x a
    · refine ⟨⟨Vec.zero, 0, Vec.zero⟩ :: units, by simp [hlen], fun b hb => ?_⟩
      have e : ∀ z : Vec R n, Vec.sumOver (fun u => u.apply z)
          ((⟨Vec.zero, 0, Vec.zero⟩ : HiddenUnit R n) :: units)
          = Vec.sumOver (fun u => u.apply z) units := fun z => Vector.ext fun k hk => by
        rw [Vec.sumOver, Vec.getElem_add, HiddenUnit.apply, Vec.getElem_smul, Vec.getElem_zero]
        grind
      rw [e]
      rcases List.mem_cons.mp hb with rfl | hb
      · obtain ⟨b', hb', hx⟩ := known
        rw [← hx, hunits b' hb', same _ _ hx]
      · exact hunits b hb
    · have ha := length a (by simp)
      obtain ⟨θ, hθ, bound⟩ := exists_bound (fun b => Vec.dot (x a) (x b)) Q (xs := xs)
        fun b hb => dot_lt ha (length b (by simp [hb])) fun h => known ⟨b, hb, h.symm⟩
      have pos : 0 < Q - θ := by grind
      let old := Vec.sumOver (fun u => u.apply (x a)) units
      let new : HiddenUnit R n :=
        ⟨x a, -θ, Vec.ofFn fun k => ((y a)[k] - old[k]) / (Q - θ)⟩
      refine ⟨new :: units, by simp [hlen], fun b hb => Vector.ext fun k hk => ?_⟩
      rw [Vec.sumOver, Vec.getElem_add, HiddenUnit.apply, Vec.getElem_smul]
      simp only [new, Vec.getElem_ofFn, Fin.getElem_fin]
      rcases List.mem_cons.mp hb with rfl | hb
      · have e := OrderedField.mul_div_cancel (b := Q - θ) (by grind) ((y b)[k] - old[k])
        have e' : Q + -θ = Q - θ := by grind
        rw [ha, e', relu_of_nonneg (Std.le_of_lt pos), e]
        simp only [old]
        grind
      · have := bound b hb
        rw [relu_of_nonpos (by grind), hunits b hb]
        grind

/-- For any finitely many vectors of the same length, and any values for them, there is a network
with one hidden unit for each vector, or more, that takes these values there. -/
theorem exists_feedForward {Q : R} {xs : List α} {x y : α → Vec R n} (enough : xs.length ≤ d_ff)
    (length : ∀ a ∈ xs, Vec.dot (x a) (x a) = Q) (same : ∀ a b, x a = x b → y a = y b) :
    ∃ F : FeedForward R n d_ff, ∀ a ∈ xs, F.row (x a) = y a := by
  cases xs with
  | nil => exact ⟨⟨⟨Vec.ofFn fun _ => Vec.zero, Vec.zero⟩, ⟨Vec.ofFn fun _ => Vec.zero, Vec.zero⟩⟩,
      fun a ha => by cases ha⟩
  | cons a₀ xs =>
    obtain ⟨units, hlen, hunits⟩ := exists_units
      (xs := List.replicate (d_ff - (a₀ :: xs).length) a₀ ++ a₀ :: xs) (Q := Q) (x := x) (y := y)
      (fun a ha => length a (by
        rcases List.mem_append.mp ha with ha | ha
        · rw [List.eq_of_mem_replicate ha]
          simp
        · exact ha)) same
    have e : units.length = d_ff := by
      rw [hlen, List.length_append, List.length_replicate]
      omega
    subst e
    exact ⟨unitsNetwork units, fun a ha => by
      rw [unitsNetwork_row]
      exact hunits a (List.mem_append_right _ ha)⟩

/-- With what is added to it, the network can make anything of each of the vectors. -/
theorem exists_residual {Q : R} {xs : List α} {x z : α → Vec R n} (enough : xs.length ≤ d_ff)
    (length : ∀ a ∈ xs, Vec.dot (x a) (x a) = Q) (same : ∀ a b, x a = x b → z a = z b) :
    ∃ F : FeedForward R n d_ff, ∀ a ∈ xs, Vec.add (x a) (F.row (x a)) = z a := by
  obtain ⟨F, h⟩ := exists_feedForward (y := fun a => Vec.ofFn fun k => (z a)[k] - (x a)[k]) enough
    length fun a b e => by simp only [e, same a b e]
  refine ⟨F, fun a ha => Vector.ext fun k hk => ?_⟩
  rw [Vec.getElem_add, h a ha, Vec.getElem_ofFn, Fin.getElem_fin, Fin.getElem_fin]
  grind

end Attention.Claims
