module

public import Attention.Proof.Online.Basic

public section

/-! # What the state of online softmax means -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-- The three parts of a state, for the keys `row` seen so far. -/
structure OnlineInvariant (s : State S R d) (row : List (ScoredValue S R d)) : Prop where
  /-- There is no maximum exactly when every key so far is masked. -/
  m_eq_none : s.m = none ↔ ∀ key ∈ row, key.score = none
  /-- The maximum is the score of one of the keys. -/
  m_mem : ∀ m, s.m = some m → ∃ key ∈ row, key.score = some m
  /-- No key has a larger score. -/
  le_m : ∀ m, s.m = some m → ∀ key ∈ row, ∀ x, key.score = some x → x ≤ m
  /-- l = Σ exp (s − m) over the unmasked keys. -/
  l_eq : ∀ m, s.m = some m → s.l = sumOver (fun key => match key.score with
    | none => 0
    | some x => exp (x - m)) row
  /-- o = Σ exp (s − m) · v over the unmasked keys. -/
  o_eq : ∀ m, s.m = some m → ∀ j (h : j < d), s.o[j] = sumOver (fun key => match key.score with
    | none => 0
    | some x => exp (x - m) * key.value[j]) row
  /-- With an unmasked key, l is at least 1. -/
  one_le_l : s.m ≠ none → 1 ≤ s.l
  /-- l is at most the number of unmasked keys. -/
  l_le : s.l ≤ sumOver (fun key => match key.score with
    | none => 0
    | some _ => 1) row
  /-- Before the first unmasked key the state is empty: −∞, 0, 0. -/
  eq_empty : s.m = none → s = empty

/-- The state of a row is what the invariant says. -/
theorem ofBlock_invariant (row : List (ScoredValue S R d)) : OnlineInvariant (ofBlock row) row where
  m_eq_none := by simp [ofBlock, rowMax_eq_none]
  m_mem m hm := by simpa using rowMax_mem hm
  le_m m hm key hk x hx := by
    have := score_le_rowMax row key hk
    simp only [ofBlock] at hm
    simpa [hm, hx, ScoreLE] using this
  l_eq m hm := by
    simp only [ofBlock] at hm ⊢
    rw [hm]
    exact sumOver_congr fun key _ => by cases key.score <;> rfl
  o_eq m hm j hj := by
    simp only [ofBlock] at hm
    rw [ofBlock_o, hm]
    refine sumOver_congr fun key _ => ?_
    cases key.score
    · simp only [rescale_none_left, Semiring.zero_mul]
    · rfl
  one_le_l hm := by
    obtain ⟨m, hm⟩ := Option.ne_none_iff_exists'.mp hm
    obtain ⟨key, hk, hs⟩ : ∃ key ∈ row, key.score = some m := by simpa using rowMax_mem hm
    simp only [ofBlock] at hm ⊢
    have h := le_sumOver (R := R) (f := fun key => rescale key.score (some m))
      (fun key _ => rescale_nonneg key.score (some m)) hk
    simp only [hs, rescale_self] at h
    rwa [hm]
  l_le := by
    have h := score_le_rowMax row
    simp only [ofBlock]
    generalize rowMax (row.map (·.score)) = m at h ⊢
    induction row with
    | nil => exact Std.le_refl _
    | cons key row ih =>
      have h₁ := ih fun key hk => h key (by simp [hk])
      have h₂ := h key (by simp)
      simp only [sumOver_cons]
      cases hs : key.score with
      | none => simp only [rescale_none_left]; grind
      | some x =>
        rw [hs] at h₂
        cases m with
        | none => cases h₂
        | some m => have := rescale_le_one (R := R) h₂; simp only; grind
  eq_empty hm := by
    simp only [ofBlock] at hm ⊢
    refine state_ext hm ?_ fun j hj => ?_
    · exact sumOver_eq_zero fun key _ => by rw [hm, rescale_none_right]
    · rw [Vec.getElem_sumOver]
      simp only [Vec.getElem_smul, hm, rescale_none_right, empty, Vec.getElem_zero]
      exact sumOver_eq_zero fun key _ => Semiring.zero_mul _

/-- **online-invariant**: after any blocks, m is the maximum of the unmasked scores so far, l = Σ
exp (s − m), o = Σ exp (s − m) · v; with an unmasked key 1 ≤ l ≤ their number, otherwise the state
is −∞, 0, 0. -/
theorem online_invariant (blocks : List (List (ScoredValue S R d))) :
    OnlineInvariant (online blocks) blocks.flatten :=
  online_eq_ofBlock blocks ▸ ofBlock_invariant blocks.flatten

end Attention.Proof
