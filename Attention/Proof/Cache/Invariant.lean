module

public import Attention.Spec.Cache
public import Attention.Proof.Online.Attention
public import Attention.Proof.Flash.Rows

public section

/-! # The cached state follows the keys

A state need not be the one that `ofBlock` makes in order to be right: it is enough that m, whatever
it is, l and o belong together. This is `Represents`; every change of the keys keeps it. -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-- The state stands for the keys `row`: exp m · l is the denominator of their softmax and
exp m · o the numerator of their attention. Here m is any reference point, not always the maximum;
exp (−∞) = 0. -/
structure Represents (s : State S R d) (row : List (ScoredValue S R d)) : Prop where
  /-- exp m · l = Σ exp s. -/
  l_eq : (weight s.m : R) * s.l = denominator (row.map (·.score))
  /-- exp m · o = Σ exp s · v. -/
  o_eq : ∀ j (h : j < d), (weight s.m : R) * s.o[j] = numerator row j h
  /-- Without a reference point the state is empty. -/
  eq_empty : s.m = none → s = empty

private theorem weight_mul_rescale (s : Option S) {m : Option S} (h : ScoreLE s m) :
    (weight m : R) * rescale s m = weight s := by
  cases m with
  | none => cases s with
    | none => exact Semiring.zero_mul _
    | some s => cases h
  | some m => exact exp_mul_rescale s m

namespace Represents

variable {s : State S R d} {row : List (ScoredValue S R d)}

private theorem l_some (h : Represents s row) {m : S} (hm : s.m = some m) :
    (exp m : R) * s.l = denominator (row.map (·.score)) := by
  rw [← h.l_eq, hm, weight]

private theorem o_some (h : Represents s row) {m : S} (hm : s.m = some m) {j : Nat} (hj : j < d) :
    (exp m : R) * s.o[j] = numerator row j hj := by
  rw [← h.o_eq j hj, hm, weight]

/-- A state without a reference point stands for masked keys only. -/
theorem masked (h : Represents s row) (hm : s.m = none) : ∀ key ∈ row, key.score = none := by
  intro key hk
  have hl := h.l_eq
  rw [hm, weight, Semiring.zero_mul] at hl
  cases hs : key.score with
  | none => rfl
  | some x =>
    have := denominator_pos (R := R) (row := row.map (·.score)) (s := x)
      (List.mem_map.mpr ⟨key, hk, hs⟩)
    grind

/-- With an unmasked key the denominator is positive: the division at the end is a true one. -/
theorem l_pos (h : Represents s row) (hk : ∃ key ∈ row, key.score ≠ none) : 0 < s.l := by
  obtain ⟨key, hk, hs⟩ := hk
  obtain ⟨x, hx⟩ := Option.ne_none_iff_exists'.mp hs
  have hd := denominator_pos (R := R) (row := row.map (·.score)) (s := x)
    (List.mem_map.mpr ⟨key, hk, hx⟩)
  cases hm : s.m with
  | none => exact absurd (h.masked hm key hk) hs
  | some m =>
    rw [← h.l_some hm] at hd
    have := exp_pos (R := R) m
    have h₁ : 0 < (exp m : R)⁻¹ := Field.IsOrdered.inv_pos_iff.mpr this
    have h₂ := OrderedRing.mul_pos h₁ hd
    rwa [← Semiring.mul_assoc, Field.inv_mul_cancel (exp_ne_zero m), Semiring.one_mul] at h₂

/-- With every key masked, l and o are 0, whatever the reference point. -/
theorem eq_zero (h : Represents s row) (hr : ∀ key ∈ row, key.score = none) :
    s.l = 0 ∧ s.o = Vec.zero := by
  cases hm : s.m with
  | none => rw [h.eq_empty hm]; exact ⟨rfl, rfl⟩
  | some m =>
    have h₀ := exp_ne_zero (R := R) m
    have hl := h.l_some hm
    rw [denominator_masked hr] at hl
    refine ⟨by grind, Vector.ext fun j hj => ?_⟩
    have ho := h.o_some hm hj
    rw [numerator_masked hr] at ho
    rw [Vec.getElem_zero]
    grind

/-- The finished output is the attention of the keys. With every key masked this is 0 / 0, which is
0 in a field of Lean and not in floating point. -/
theorem finish_eq (h : Represents s row) : finish s = attend row := by
  cases hm : s.m with
  | none => rw [attend_masked (h.masked hm), finish, hm]
  | some m =>
    refine Vector.ext fun j hj => ?_
    rw [getElem_attend, ← h.l_some hm, ← h.o_some hm hj,
      OrderedField.mul_div_mul_left (exp_ne_zero m)]
    simp only [finish, hm, Vec.getElem_map]

/-- The order of the keys does not matter. -/
theorem perm (h : Represents s row) {row' : List (ScoredValue S R d)} (hp : row.Perm row') :
    Represents s row' where
  l_eq := by rw [h.l_eq, denominator, denominator, sumOver_perm _ (hp.map _)]
  o_eq j hj := by rw [h.o_eq j hj, numerator, numerator, sumOver_perm _ hp]
  eq_empty := h.eq_empty

/-- One more key. -/
theorem step (h : Represents s row) (key : ScoredValue S R d) :
    Represents (step s key) (row ++ [key]) where
  l_eq := by
    simp only [Online.step, Semiring.left_distrib, ← Semiring.mul_assoc,
      weight_mul_rescale _ (le_maxScore_left s.m key.score),
      weight_mul_rescale _ (le_maxScore_right s.m key.score), h.l_eq, List.map_append,
      denominator_append]
    simp only [denominator, List.map_cons, List.map_nil, sumOver_cons, sumOver_nil,
      Semiring.add_zero]
  o_eq j hj := by
    simp only [Online.step, Vec.getElem_add, Vec.getElem_smul, Semiring.left_distrib,
      ← Semiring.mul_assoc, weight_mul_rescale _ (le_maxScore_left s.m key.score),
      weight_mul_rescale _ (le_maxScore_right s.m key.score), h.o_eq, numerator_append]
    simp only [numerator, sumOver_cons, sumOver_nil, Semiring.add_zero]
  eq_empty hm := by
    simp only [Online.step] at hm ⊢
    refine state_ext hm ?_ fun j hj => ?_
    · simp only [hm, rescale_none_right, Semiring.zero_mul, Semiring.add_zero, empty]
    · simp only [hm, rescale_none_right, Vec.getElem_add, Vec.getElem_smul, Semiring.zero_mul,
        Semiring.add_zero, empty, Vec.getElem_zero]

/-- One key fewer: `rest` are the keys without `key`, in any order. -/
theorem delete (h : Represents s row) {key : ScoredValue S R d} {rest : List (ScoredValue S R d)}
    (hp : row.Perm (key :: rest)) : Represents (delete s key) rest := by
  have h' := h.perm hp
  have hk : (weight s.m : R) * rescale key.score s.m = weight key.score := by
    cases hm : s.m with
    | none => rw [h'.masked hm key (by simp)]; exact Semiring.zero_mul _
    | some m => exact exp_mul_rescale key.score m
  refine ⟨?_, fun j hj => ?_, fun hm => ?_⟩
  · have hl := h'.l_eq
    simp only [denominator, List.map_cons, sumOver_cons] at hl
    simp only [Online.delete, Ring.sub_eq_add_neg, Semiring.left_distrib, Ring.mul_neg, hk, hl,
      denominator]
    grind
  · have ho := h'.o_eq j hj
    simp only [numerator, sumOver_cons] at ho
    simp only [Online.delete, Vec.getElem_ofFn, Fin.getElem_fin, Ring.sub_eq_add_neg,
      Semiring.left_distrib, Ring.mul_neg, ← Semiring.mul_assoc, hk, ho, numerator]
    grind
  · have hs := h.eq_empty hm
    simp only [Online.delete] at hm ⊢
    refine state_ext hm ?_ fun j hj => ?_
    · simp only [rescale_none_right, hs, empty]; grind
    · simp only [rescale_none_right, Vec.getElem_ofFn, Fin.getElem_fin, hs, empty,
        Vec.getElem_zero, Semiring.zero_mul]
      grind

end Represents

/-- The state of a row stands for it. -/
theorem represents_ofBlock (row : List (ScoredValue S R d)) : Represents (ofBlock row) row := by
  have h := ofBlock_invariant row
  cases hm : (ofBlock row).m with
  | none =>
    have hr := h.m_eq_none.mp hm
    refine ⟨?_, fun j hj => ?_, fun _ => h.eq_empty hm⟩
    · rw [hm, denominator_masked hr, weight, Semiring.zero_mul]
    · rw [hm, numerator_masked hr, weight, Semiring.zero_mul]
  | some m =>
    refine ⟨?_, fun j hj => ?_, fun h' => by rw [hm] at h'; cases h'⟩
    · rw [hm, weight, h.l_eq m hm, denominator, sumOver_map, ← sumOver_mul_left]
      refine sumOver_congr fun key _ => ?_
      rw [← exp_mul_rescale key.score m]
      cases key.score <;> rfl
    · rw [hm, weight, h.o_eq m hm j hj, numerator, ← sumOver_mul_left]
      refine sumOver_congr fun key _ => ?_
      rw [← exp_mul_rescale key.score m, Semiring.mul_assoc]
      cases key.score with
      | none => simp only [rescale_none_left, Semiring.zero_mul]
      | some x => rfl

end Attention.Proof
