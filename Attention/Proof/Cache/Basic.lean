module

public import Attention.Spec.Cache
public import Attention.Proof.Cache.Invariant

public section

/-! # The cached state follows the keys as they come and go -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

private theorem add_sub_self (a b : R) : a + b - a = b := by grind

omit [OrderedField R] [Exponential S R] in
private theorem maxScore_eq_right {a b : Option S} (h : ScoreLE a b) : maxScore a b = b := by
  cases a <;> cases b <;> simp_all [maxScore, ScoreLE]

/-- **kv-append**: the kept state of a row, after any more keys one at a time, is the state of the
longer row, and finished it is the attention of the longer row. -/
theorem kv_append (row keys : List (ScoredValue S R d)) :
    append (ofBlock row) keys = ofBlock (row ++ keys)
      ∧ finish (append (ofBlock row) keys) = attend (row ++ keys) := by
  have h : append (ofBlock row) keys = ofBlock (row ++ keys) := by
    simp only [append]
    induction keys generalizing row with
    | nil => rw [List.append_nil, List.foldl_nil]
    | cons key keys ih =>
      rw [List.foldl_cons, step_eq_stepBlock, stepBlock_ofBlock, ih, List.append_assoc,
        List.singleton_append]
  exact ⟨h, by rw [h, finish_ofBlock]⟩

omit [OrderedCommRing S] [OrderedField R] [Exponential S R] in
private theorem perm_middle (xs ys : List (ScoredValue S R d)) (key : ScoredValue S R d) :
    (xs ++ key :: ys).Perm (key :: (xs ++ ys)) :=
  List.perm_middle

/-- **kv-delete**: one key taken out of the state of a row. m stays what it was; exp m · l is the
denominator and exp m · o the numerator of the keys that are left. If one of them is unmasked, l is
positive and the finished output is their attention; otherwise l and o are 0. -/
theorem kv_delete (xs ys : List (ScoredValue S R d)) (key : ScoredValue S R d) :
    let s := delete (ofBlock (xs ++ key :: ys)) key
    s.m = rowMax ((xs ++ key :: ys).map (·.score))
      ∧ (∀ m, s.m = some m →
          (exp m : R) * s.l = denominator ((xs ++ ys).map (·.score))
          ∧ ∀ j (h : j < d), (exp m : R) * s.o[j] = numerator (xs ++ ys) j h)
      ∧ ((∃ k ∈ xs ++ ys, k.score ≠ none) → 0 < s.l ∧ finish s = attend (xs ++ ys))
      ∧ ((∀ k ∈ xs ++ ys, k.score = none) → s.l = 0 ∧ s.o = Vec.zero) := by
  intro s
  have h : Represents s (xs ++ ys) := (represents_ofBlock _).delete (perm_middle xs ys key)
  refine ⟨rfl, fun m hm => ⟨?_, fun j hj => ?_⟩, fun hk => ⟨h.l_pos hk, h.finish_eq⟩, h.eq_zero⟩
  · rw [← h.l_eq, hm, weight]
  · rw [← h.o_eq j hj, hm, weight]

/-- **kv-replace**: one key taken out and another put in its place: if one of the keys is then
unmasked, l is positive and the finished output is the attention of the row with the key
replaced. -/
theorem kv_replace (xs ys : List (ScoredValue S R d)) (old new : ScoredValue S R d)
    (hk : ∃ k ∈ xs ++ new :: ys, k.score ≠ none) :
    let s := replace (ofBlock (xs ++ old :: ys)) old new
    0 < s.l ∧ finish s = attend (xs ++ new :: ys) := by
  intro s
  have h : Represents s (xs ++ new :: ys) :=
    (((represents_ofBlock _).delete (perm_middle xs ys old)).step new).perm
      ((List.perm_append_singleton new _).trans (perm_middle xs ys new).symm)
  exact ⟨h.l_pos hk, h.finish_eq⟩

/-- **kv-delete-exact**: as long as a key that is left has a score at least that of the deleted one,
the state is the one of the keys that are left, maximum and all. -/
theorem delete_ofBlock (xs ys : List (ScoredValue S R d)) {key other : ScoredValue S R d}
    (ho : other ∈ xs ++ ys) (hle : ScoreLE key.score other.score) :
    delete (ofBlock (xs ++ key :: ys)) key = ofBlock (xs ++ ys) := by
  have hm : rowMax ((xs ++ key :: ys).map (·.score)) = rowMax ((xs ++ ys).map (·.score)) := by
    have h := hle.trans (score_le_rowMax _ _ ho)
    simp only [List.map_append, List.map_cons, rowMax_append, rowMax] at h ⊢
    rw [← maxScore_assoc, maxScore_comm _ key.score, maxScore_assoc]
    exact maxScore_eq_right h
  have hp := perm_middle xs ys key
  refine state_ext hm ?_ fun j hj => ?_
  · rw [delete, ofBlock, ofBlock, hm]
    exact (congrArg (· - _) (sumOver_perm _ hp)).trans (add_sub_self _ _)
  · rw [ofBlock_o, delete, Vec.getElem_ofFn, Fin.getElem_fin, ofBlock_o, ofBlock, hm]
    exact (congrArg (· - _) (sumOver_perm _ hp)).trans (add_sub_self _ _)

/-- A masked key leaves the state as it is when it is deleted. -/
theorem delete_masked (s : State S R d) (v : Vec R d) : delete s ⟨none, v⟩ = s := by
  refine state_ext rfl ?_ fun j hj => ?_
  · simp only [delete, rescale_none_left]; grind
  · simp only [delete, rescale_none_left, Vec.getElem_ofFn, Fin.getElem_fin, Semiring.zero_mul]
    grind

end Attention.Proof
