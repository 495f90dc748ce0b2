module

public import Attention.Algebra.SumExchange
public import Attention.Algebra.Vector

public section

/-! # Heads whose scores are orthogonal

Claimed as an axiom: for different heads i and j the scores that they give to one key and query are
orthogonal. Scores are numbers, so their inner product is their product: one of the two is 0, for
each key and query. Heads without parameters are all the same, and then the axiom contradicts
itself. Of heads with projections it leaves at most one that gives any score but 0. -/

namespace Attention.Claims

open Lean.Grind

universe u

variable {S : Type u} {d num_heads : Nat}

/-- The axiom `OrthogonalHeads`: `alignment i k q` is the score that head i gives to key k and query
q. -/
@[expose] def OrthogonalHeads [Mul S] [OfNat S 0]
    (alignment : Fin num_heads → Vec S d → Vec S d → S) : Prop :=
  ∀ i j, i ≠ j → ∀ q k, alignment i k q * alignment j k q = 0

/-- A product of two numbers other than 0 is not 0. -/
private theorem mul_ne_zero [OrderedCommRing S] {a b : S} (ha : a ≠ 0) (hb : b ≠ 0) :
    a * b ≠ 0 := by
  rcases Std.le_total (a := 0) (b := a) with h | h <;>
    rcases Std.le_total (a := 0) (b := b) with h' | h'
  · have := OrderedRing.mul_pos (a := a) (b := b) (by grind) (by grind)
    grind
  · have := OrderedRing.mul_pos (a := a) (b := -b) (by grind) (by grind)
    grind
  · have := OrderedRing.mul_pos (a := -a) (b := b) (by grind) (by grind)
    grind
  · have := OrderedRing.mul_pos (a := -a) (b := -b) (by grind) (by grind)
    grind

/-- As the document has them, heads have no parameters: each scores by scale · ⟨k, q⟩. Then no two
heads obey the axiom, in any dimension but 0. -/
theorem orthogonalHeads_refuted [OrderedCommRing S] {scale : S} (hs : scale ≠ 0)
    (hh : 2 ≤ num_heads) (hd : 1 ≤ d) :
    ¬ OrthogonalHeads fun (_ : Fin num_heads) (k q : Vec S d) => scale * Vec.dot k q := by
  intro h
  have e := h ⟨0, by omega⟩ ⟨1, by omega⟩ (by simp [Fin.ext_iff]) (Vec.ofFn fun _ => 1)
    (Vec.ofFn fun _ => 1)
  have pos : (0 : S) < Vec.dot (Vec.ofFn fun _ : Fin d => (1 : S)) (Vec.ofFn fun _ => 1) := by
    have sums : ∀ xs : List (Fin d), xs ≠ [] → (0 : S) < sumOver (fun _ => (1 : S)) xs := by
      intro xs
      have h₁ := OrderedRing.zero_lt_one (R := S)
      induction xs with
      | nil => exact fun h => absurd rfl h
      | cons x xs ih =>
        intro _
        rw [sumOver_cons]
        by_cases hx : xs = []
        · subst hx
          rw [sumOver_nil]
          grind
        · have := ih hx
          grind
    have e : Vec.dot (Vec.ofFn fun _ : Fin d => (1 : S)) (Vec.ofFn fun _ => 1)
        = sumOver (fun _ => (1 : S)) (List.finRange d) := by
      rw [Vec.dot]
      exact sumOver_congr fun i _ => by
        simp only [Fin.getElem_fin, Vec.getElem_ofFn, Semiring.one_mul]
    rw [e]
    exact sums _ (by simp [List.ext_getElem_iff]; omega)
  have hne := mul_ne_zero hs (show Vec.dot _ _ ≠ (0 : S) from fun h => by rw [h] at pos; grind)
  exact mul_ne_zero hne hne e

/-- Two additive functions whose product is 0 everywhere: one of them is 0 everywhere. -/
private theorem additive_eq_zero [OrderedCommRing S] {f g : Vec S d → S}
    (hf : ∀ x y, f (Vec.add x y) = f x + f y) (hg : ∀ x y, g (Vec.add x y) = g x + g y)
    (h : ∀ x, f x * g x = 0) : (∀ x, f x = 0) ∨ ∀ x, g x = 0 := by
  refine Classical.byContradiction fun hn => ?_
  simp only [_root_.not_or, Classical.not_forall] at hn
  obtain ⟨⟨x, hx⟩, y, hy⟩ := hn
  have hgx : g x = 0 := Classical.byContradiction fun hg => mul_ne_zero hx hg (h x)
  have hfy : f y = 0 := Classical.byContradiction fun hf => mul_ne_zero hf hy (h y)
  have := h (Vec.add x y)
  rw [hf, hg, hgx, hfy] at this
  exact mul_ne_zero hx hy (by grind)

/-- Heads whose scores are additive in the key and in the query, such as those of projected keys and
queries: the axiom leaves at most one of any two that gives any score but 0. -/
theorem orthogonalHeads_vanish [OrderedCommRing S]
    {alignment : Fin num_heads → Vec S d → Vec S d → S}
    (hk : ∀ i k k' q, alignment i (Vec.add k k') q = alignment i k q + alignment i k' q)
    (hq : ∀ i k q q', alignment i k (Vec.add q q') = alignment i k q + alignment i k q')
    (h : OrthogonalHeads alignment) {i j : Fin num_heads} (hij : i ≠ j) :
    (∀ k q, alignment i k q = 0) ∨ ∀ k q, alignment j k q = 0 := by
  have one : ∀ q, (∀ k, alignment i k q = 0) ∨ ∀ k, alignment j k q = 0 := fun q =>
    additive_eq_zero (fun k k' => hk i k k' q) (fun k k' => hk j k k' q) fun k => h i j hij q k
  refine Classical.byContradiction fun hn => ?_
  simp only [_root_.not_or, Classical.not_forall] at hn
  obtain ⟨⟨k, q, hi⟩, k', q', hj⟩ := hn
  have hj₀ : ∀ k, alignment j k q = 0 := (one q).resolve_left fun h => hi (h k)
  have hi₀ : ∀ k, alignment i k q' = 0 := (one q').resolve_right fun h => hj (h k')
  rcases one (Vec.add q q') with h | h
  · have := h k
    rw [hq, hi₀] at this
    exact hi (by grind)
  · have := h k'
    rw [hq, hj₀] at this
    exact hj (by grind)

/-- The axiom leaves one head, at most, that gives any score but 0. -/
theorem orthogonalHeads_all_but_one [OrderedCommRing S]
    {alignment : Fin num_heads → Vec S d → Vec S d → S} (hpos : 0 < num_heads)
    (hk : ∀ i k k' q, alignment i (Vec.add k k') q = alignment i k q + alignment i k' q)
    (hq : ∀ i k q q', alignment i k (Vec.add q q') = alignment i k q + alignment i k q')
    (h : OrthogonalHeads alignment) : ∃ i, ∀ j, j ≠ i → ∀ k q, alignment j k q = 0 := by
  by_cases all : ∀ j k q, alignment j k q = 0
  · exact ⟨⟨0, hpos⟩, fun j _ => all j⟩
  · simp only [Classical.not_forall] at all
    obtain ⟨i, k, q, hi⟩ := all
    exact ⟨i, fun j hj => (orthogonalHeads_vanish hk hq h hj).resolve_right fun h => hi (h k q)⟩

/-- An additive map of keys or queries, as every projection by a matrix is one. -/
@[expose] def IsAdditive {d' : Nat} [Add S] (W : Vec S d → Vec S d') : Prop :=
  ∀ x y, W (Vec.add x y) = Vec.add (W x) (W y)

/-- So it is of heads that project keys and queries: the axiom leaves one, at most, that gives any
score but 0. -/
theorem orthogonalHeads_projected [OrderedField S] {d' : Nat} (hpos : 0 < num_heads) (scale : S)
    (wQ wK : Fin num_heads → Vec S d → Vec S d') (hQ : ∀ i, IsAdditive (wQ i))
    (hK : ∀ i, IsAdditive (wK i))
    (h : OrthogonalHeads fun i k q => scale * Vec.dot (wQ i q) (wK i k)) :
    ∃ i, ∀ j, j ≠ i → ∀ k q, scale * Vec.dot (wQ j q) (wK j k) = 0 := by
  refine orthogonalHeads_all_but_one hpos (fun i k k' q => ?_) (fun i k q q' => ?_) h
  · rw [hK, ← Semiring.left_distrib]
    refine congrArg (scale * ·) ?_
    rw [Vec.dot, Vec.dot, Vec.dot, ← sumOver_add]
    exact sumOver_congr fun t _ => by simp only [Fin.getElem_fin, Vec.getElem_add]; grind
  · rw [hQ, ← Semiring.left_distrib]
    refine congrArg (scale * ·) ?_
    rw [Vec.dot, Vec.dot, Vec.dot, ← sumOver_add]
    exact sumOver_congr fun t _ => by simp only [Fin.getElem_fin, Vec.getElem_add]; grind

end Attention.Claims
