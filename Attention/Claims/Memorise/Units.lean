module

public import Attention.Algebra.Magnitude
public import Attention.Spec.FeedForward

public section

/-! # A feed-forward network through finitely many points

Where a linear function is larger at one of finitely many vectors than at all others, a hidden unit
can be positive there and 0 at the others; of vectors of the same length the inner product with it
is such a function for each. One unit for each vector makes the network take any values at them. -/

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

/-- The numbers that a unit adds to a row. -/
@[expose] def HiddenUnit.apply (u : HiddenUnit R n) (x : Vec R n) : Vec R n :=
  Vec.smul (relu (Vec.dot u.weight x + u.bias)) u.out

/-- The network of a list of hidden units. -/
@[expose] def unitsNetwork (units : List (HiddenUnit R n)) : FeedForward R n units.length where
  hidden := ⟨Vec.ofFn fun i => units[i].weight, Vec.ofFn fun i => units[i].bias⟩
  output := ⟨Vec.ofFn fun k => Vec.ofFn fun i => units[i].out[k], Vec.zero⟩

private theorem unitsNetwork_hidden (units : List (HiddenUnit R n)) (x : Vec R n)
    (i : Fin units.length) :
    ((unitsNetwork units).hidden.row x)[i] = Vec.dot units[i].weight x + units[i].bias := by
  rw [Linear.row, Fin.getElem_fin, Vec.getElem_ofFn, unitsNetwork]
  rw [Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_ofFn]

/-- It adds up what the units add. -/
theorem unitsNetwork_row (units : List (HiddenUnit R n)) (x : Vec R n) :
    (unitsNetwork units).row x = Vec.sumOver (fun u => u.apply x) units := by
  have h : units = (List.finRange units.length).map fun i => units[i] :=
    List.ext_getElem (by simp) fun i _ _ => by simp
  refine Vector.ext fun k hk => ?_
  have e : (Vec.sumOver (fun u => u.apply x) units)[k]
      = sumOver (fun i : Fin units.length => (units[i].apply x)[k])
        (List.finRange units.length) := by
    rw [Vec.getElem_sumOver]
    exact (congrArg (sumOver _) h).trans (sumOver_map _ _ _)
  have o : ∀ i : Fin units.length, (unitsNetwork units).output.weight[k][i] = units[i].out[k] :=
    fun i => by rw [unitsNetwork, Vec.getElem_ofFn, Fin.getElem_fin, Vec.getElem_ofFn]; rfl
  rw [e, FeedForward.row, Linear.row, Vec.getElem_ofFn]
  refine Eq.trans (congrArg (_ + ·) (Vec.getElem_zero hk)) ((Semiring.add_zero _).trans ?_)
  refine sumOver_congr fun i _ => ?_
  have r : (Vec.map relu ((unitsNetwork units).hidden.row x))[i]
      = relu (Vec.dot units[i].weight x + units[i].bias) := by
    rw [Fin.getElem_fin, Vec.getElem_map]
    exact congrArg relu (unitsNetwork_hidden units x i)
  rw [HiddenUnit.apply, Vec.getElem_smul, r]
  exact (congrArg (· * _) (o i)).trans (CommSemiring.mul_comm _ _)

/-- A unit that does nothing. -/
private theorem idle (units : List (HiddenUnit R n)) (x : Vec R n) :
    Vec.sumOver (fun u => u.apply x) ((⟨Vec.zero, 0, Vec.zero⟩ : HiddenUnit R n) :: units)
      = Vec.sumOver (fun u => u.apply x) units :=
  Vector.ext fun k hk => by
    rw [Vec.sumOver, Vec.getElem_add, HiddenUnit.apply, Vec.getElem_smul, Vec.getElem_zero,
      Semiring.mul_zero]
    grind

private theorem active {w x : Vec R n} {θ : R} (hθ : θ < Vec.dot w x) (y : Vec R n)
    (units : List (HiddenUnit R n)) :
    Vec.sumOver (fun u => u.apply x) ((⟨w, -θ, Vec.ofFn fun k => (y[k]
      - (Vec.sumOver (fun u => u.apply x) units)[k]) / (Vec.dot w x - θ)⟩ : HiddenUnit R n)
        :: units) = y := by
  refine Vector.ext fun k hk => ?_
  have e : Vec.dot w x + -θ = Vec.dot w x - θ := by grind
  have pos : 0 < Vec.dot w x - θ := by grind
  rw [Vec.sumOver, Vec.getElem_add, HiddenUnit.apply, Vec.getElem_smul, Vec.getElem_ofFn, e,
    relu_of_nonneg (Std.le_of_lt pos), OrderedField.mul_div_cancel (by grind)]
  simp only [Fin.getElem_fin]
  grind

private theorem inactive {w x : Vec R n} {θ : R} (hθ : Vec.dot w x ≤ θ) (y : Vec R n)
    (units : List (HiddenUnit R n)) :
    Vec.sumOver (fun u => u.apply x) ((⟨w, -θ, y⟩ : HiddenUnit R n) :: units)
      = Vec.sumOver (fun u => u.apply x) units := by
  refine Vector.ext fun k hk => ?_
  rw [Vec.sumOver, Vec.getElem_add, HiddenUnit.apply, Vec.getElem_smul,
    relu_of_nonpos (by grind), Semiring.zero_mul]
  grind

private theorem exists_units {xs : List α} {x y : α → Vec R n}
    (exposed : ∀ a ∈ xs, ∃ w, ∀ b ∈ xs, x a ≠ x b → Vec.dot w (x b) < Vec.dot w (x a))
    (same : ∀ a b, x a = x b → y a = y b) :
    ∃ units : List (HiddenUnit R n), units.length = xs.length ∧
      ∀ a ∈ xs, Vec.sumOver (fun u => u.apply (x a)) units = y a := by
  induction xs with
  | nil => exact ⟨[], rfl, fun a ha => by cases ha⟩
  | cons a xs ih =>
    obtain ⟨units, hlen, hunits⟩ := ih fun b hb =>
      have ⟨w, hw⟩ := exposed b (by simp [hb])
      ⟨w, fun c hc => hw c (by simp [hc])⟩
    by_cases known : ∃ b ∈ xs, x b = x a
    · refine ⟨⟨Vec.zero, 0, Vec.zero⟩ :: units, by simp [hlen], fun b hb => ?_⟩
      rw [idle]
      rcases List.mem_cons.mp hb with rfl | hb
      · obtain ⟨b', hb', hx⟩ := known
        rw [← hx, hunits b' hb', same _ _ hx]
      · exact hunits b hb
    · obtain ⟨w, hw⟩ := exposed a (by simp)
      obtain ⟨θ, hθ, bound⟩ := exists_bound (fun b => Vec.dot w (x b)) (Vec.dot w (x a)) (xs := xs)
        fun b hb => hw b (by simp [hb]) fun h => known ⟨b, hb, h.symm⟩
      refine ⟨⟨w, -θ, Vec.ofFn fun k => ((y a)[k]
        - (Vec.sumOver (fun u => u.apply (x a)) units)[k]) / (Vec.dot w (x a) - θ)⟩ :: units,
        by simp [hlen], fun b hb => ?_⟩
      rcases List.mem_cons.mp hb with rfl | hb
      · exact active hθ _ _
      · rw [inactive (bound b hb), hunits b hb]

/-- For finitely many vectors, each of which is told from the others by a linear function that is
largest at it, and any values for them, there is a network with one hidden unit for each vector, or
more, that takes these values there. -/
theorem exists_feedForward {xs : List α} {x y : α → Vec R n} (enough : xs.length ≤ d_ff)
    (exposed : ∀ a ∈ xs, ∃ w, ∀ b ∈ xs, x a ≠ x b → Vec.dot w (x b) < Vec.dot w (x a))
    (same : ∀ a b, x a = x b → y a = y b) :
    ∃ F : FeedForward R n d_ff, ∀ a ∈ xs, F.row (x a) = y a := by
  obtain ⟨units, hlen, hunits⟩ := exists_units exposed same
  have e : (List.replicate (d_ff - xs.length) (⟨Vec.zero, 0, Vec.zero⟩ : HiddenUnit R n)
      ++ units).length = d_ff := by
    rw [List.length_append, List.length_replicate, hlen]
    omega
  generalize hall : List.replicate (d_ff - xs.length) (⟨Vec.zero, 0, Vec.zero⟩ : HiddenUnit R n)
    ++ units = all at e
  subst e
  refine ⟨unitsNetwork all, fun a ha => ?_⟩
  rw [unitsNetwork_row, ← hall, ← hunits a ha]
  generalize all.length - xs.length = k
  induction k with
  | zero => rfl
  | succ k ih => rw [List.replicate_succ, List.cons_append, idle, ih]

/-- With what is added to it, the network can make anything of each of the vectors. -/
theorem exists_residual {xs : List α} {x z : α → Vec R n} (enough : xs.length ≤ d_ff)
    (exposed : ∀ a ∈ xs, ∃ w, ∀ b ∈ xs, x a ≠ x b → Vec.dot w (x b) < Vec.dot w (x a))
    (same : ∀ a b, x a = x b → z a = z b) :
    ∃ F : FeedForward R n d_ff, ∀ a ∈ xs, Vec.add (x a) (F.row (x a)) = z a := by
  obtain ⟨F, h⟩ := exists_feedForward (y := fun a => Vec.ofFn fun k => (z a)[k] - (x a)[k]) enough
    exposed fun a b e => by simp only [e, same a b e]
  refine ⟨F, fun a ha => Vector.ext fun k hk => ?_⟩
  rw [Vec.getElem_add, h a ha, Vec.getElem_ofFn, Fin.getElem_fin, Fin.getElem_fin]
  grind

end Attention.Claims
