module

public import Attention.Kernel.Float
public import Attention.Proof.Masks.Visible
public import Attention.Proof.Softmax.LogSumExp

public section

/-! # One row of a kernel's tile of queries is online softmax

The state of a loop over tiles of keys is three tensors. A row of them takes each tile as
`RowState.step` does, whatever the tensors are named and however the scores come about; that is the
Spec's `Online.stepBlock`. -/

namespace Attention.Kernel

open Spec Spec.Online Proof Flt

universe u v

variable {R : Type u} [OrderedField R]

/-- Row `i` of the state of the loop: its maximum, its denominator and its output. -/
structure RowState (R : Type u) where
  /-- The largest score. -/
  m : Flt R
  /-- The denominator. -/
  l : Flt R
  /-- The output before the division. -/
  o : Nat → Flt R

namespace RowState

/-- The largest of the old maximum and of the tile's, `largest`. -/
@[expose] def newMax (s : RowState R) (largest : Flt R) : Flt R := max s.m largest

/-- The number that is subtracted from scores: the maximum, or 0 if that is −∞. -/
@[expose] def reference (s : RowState R) (largest : Flt R) : Flt R :=
  if oeq (s.newMax largest) ninf then num 0 else s.newMax largest

/-- A row takes a tile of n keys with these scores and values. -/
@[expose] def step [Exp R R] (n : Nat) (s : RowState R) (largest : Flt R) (score : Nat → Flt R)
    (value : Nat → Nat → Flt R) : RowState R where
  m := s.newMax largest
  l := add (mul (exp2 (sub s.m (s.reference largest))) s.l)
    (sum n fun j => exp2 (sub (score j) (s.reference largest)))
  o c := dot n (fun j => exp2 (sub (score j) (s.reference largest))) (fun j => value j c)
    (mul (exp2 (sub s.m (s.reference largest))) (s.o c))

/-- The row is the Spec's state, in its first d components. -/
structure Is {d : Nat} (s : RowState R) (st : State R R d) : Prop where
  m : s.m = ofScore st.m
  l : s.l = num st.l
  o : ∀ c (h : c < d), s.o c = num st.o[c]

/-- Before any key. -/
theorem is_empty {d : Nat} {s : RowState R} (hm : s.m = ninf) (hl : s.l = num 0)
    (ho : ∀ c, s.o c = num 0) : s.Is (empty : State R R d) :=
  ⟨hm, hl, fun c hc => by simp [ho, empty]⟩

variable [Exponential R R] {d : Nat}

/-- A row's step for a tile is the Spec's update by a block. Values are numbers; those of masked
keys may be any. -/
theorem Is.step {s : RowState R} {st : State R R d} (hs : s.Is st) {n : Nat}
    {largest : Flt R} {score : Nat → Flt R} {value : Nat → Nat → Flt R}
    {key : Nat → ScoredValue R R d} (hscore : ∀ j < n, score j = ofScore (key j).score)
    (hlargest : largest = ofScore (rowMax ((List.range n).map fun j => (key j).score)))
    (hvalue : ∀ j < n, ∀ c (h : c < d), ∃ w, value j c = num w ∧
      ((key j).score ≠ none → w = (key j).value[c])) :
    (s.step n largest score value).Is (stepBlock st ((List.range n).map key)) := by
  obtain ⟨hm, hl, ho⟩ := hs
  have hscores : ((List.range n).map key).map (·.score)
      = (List.range n).map fun j => (key j).score :=
    List.map_map ..
  obtain ⟨M, hM⟩ : ∃ M, M = maxScore st.m (rowMax (((List.range n).map key).map (·.score))) :=
    ⟨_, rfl⟩
  have hnew : s.newMax largest = ofScore M := by
    rw [newMax, hm, hlargest, max_ofScore, hM, hscores]
  have href : s.reference largest = if oeq (ofScore M) ninf then num 0 else ofScore M := by
    rw [reference, hnew]
  have hα : exp2 (sub s.m (s.reference largest)) = num (rescale st.m M) := by
    rw [href, hm]
    exact exp2_sub (hM ▸ le_maxScore_left ..)
  have hp : ∀ j < n,
      exp2 (sub (score j) (s.reference largest)) = num (rescale (key j).score M) := by
    intro j hj
    rw [href, hscore j hj]
    refine exp2_sub (hM ▸ ScoreLE.trans (le_rowMax ?_) (le_maxScore_right ..))
    rw [hscores]
    exact List.mem_map_of_mem (List.mem_range.mpr hj)
  refine ⟨?_, ?_, fun c hc => ?_⟩
  · show s.newMax largest = ofScore (maxScore _ _)
    rw [hnew, hM]
  · simp only [RowState.step, stepBlock, hα, hl, sum_num hp, ← hM, sumOver_map]
    rfl
  · obtain ⟨w, hw⟩ : ∃ w : Nat → R, ∀ j < n, value j c = num (w j) ∧
        ((key j).score ≠ none → w j = (key j).value[c]) :=
      ⟨fun j => if h : j < n then (hvalue j h c hc).choose else 0, fun j hj => by
        simp only [hj, dif_pos]; exact (hvalue j hj c hc).choose_spec⟩
    simp only [RowState.step, stepBlock, hα, ho c hc]
    rw [dot_num (c := mul (num (rescale st.m M)) (num st.o[c])) (z := rescale st.m M * st.o[c]) hp
      (fun j hj => (hw j hj).1) rfl]
    simp only [← hM, Vec.getElem_add, Vec.getElem_smul, Vec.getElem_sumOver, sumOver_map]
    congr 2
    refine sumOver_congr fun j hj => ?_
    have h := (hw j (List.mem_range.mp hj)).2
    cases hk : (key j).score with
    | none => simp only [rescale_none_left, Lean.Grind.Semiring.zero_mul]
    | some x => rw [h (by simp [hk])]

/-- The stored output: o / l, or 0 / 1 where no key was seen. -/
theorem Is.finish {s : RowState R} {blocks : List (List (ScoredValue R R d))}
    (hs : s.Is (online blocks)) {c : Nat} (hc : c < d) :
    div (s.o c) (if oeq s.l (num 0) then num 1 else s.l) = num (attend blocks.flatten)[c] := by
  have hinv := online_invariant blocks
  rw [hs.l, hs.o c hc, ← online_any_blocks]
  cases hm : (online blocks).m with
  | none =>
    have h₁ : (0 : R) ≤ 0 := Std.le_refl _
    have h₂ : ¬ ((1 : R) ≤ 0) := Std.not_le.mpr Lean.Grind.OrderedRing.zero_lt_one
    have h₃ : (0 : R) / 1 = 0 := by grind
    have e : oeq (num (0 : R)) (num 0) = true := decide_eq_true ⟨h₁, h₁⟩
    rw [hinv.eq_empty hm]
    show div (num (Vec.zero : Vec R d)[c]) (if oeq (num (0 : R)) (num 0) then num 1 else num 0)
      = num (Vec.zero : Vec R d)[c]
    rw [if_pos e, Vec.getElem_zero]
    show (if (1 : R) ≤ 0 ∧ (0 : R) ≤ 1 then undef else num ((0 : R) / 1)) = num 0
    rw [if_neg fun h => h₂ h.1, h₃]
  | some m =>
    have h₁ := hinv.one_le_l (by simp [hm])
    have h₂ : ¬ ((online blocks).l ≤ 0) :=
      Std.not_le.mpr (Std.lt_of_lt_of_le Lean.Grind.OrderedRing.zero_lt_one h₁)
    have e : oeq (num (online blocks).l) (num 0) = false := decide_eq_false fun h => h₂ h.1
    rw [e, Online.finish, hm]
    simp only [Vec.getElem_map]
    exact if_neg fun h => h₂ h.1

/-- The stored log-sum-exp, m · ln 2 + ln l: −∞ or a number. It is that of the natural
exponential, if multiplied by log₂ e it has this sum for its power of 2; `ln` is a natural logarithm
if 2 ^ (log₂ e · ln x) = x. -/
theorem Is.lse {s : RowState R} {blocks : List (List (ScoredValue R R d))}
    (hs : s.Is (online blocks)) {ln2 log2e : R} (h₂ : 0 < ln2) (h : ln2 * log2e = 1) {ln : R → R}
    (hln : ∀ x, 0 < x → (exp (log2e * ln x) : R) = x) :
    ∃ L : Option R, add (mul s.m (num ln2)) (log ln (if oeq s.l (num 0) then num 1 else s.l))
        = ofScore L ∧
      IsLogSumExp R (L.map (log2e * ·)) (blocks.flatten.map (·.score)) := by
  have hinv := online_invariant blocks
  rw [hs.m, hs.l]
  cases hm : (online blocks).m with
  | none =>
    refine ⟨none, ?_, ?_⟩
    · have h₁ : (0 : R) ≤ 0 := Std.le_refl _
      have h₃ : ¬ ((1 : R) ≤ 0) := Std.not_le.mpr Lean.Grind.OrderedRing.zero_lt_one
      have h₄ : ¬ (ln2 ≤ 0) := Std.not_le.mpr h₂
      have e : oeq (num (0 : R)) (num 0) = true := decide_eq_true ⟨h₁, h₁⟩
      rw [hinv.eq_empty hm]
      show add (mul ninf (num ln2)) (log ln (if oeq (num (0 : R)) (num 0) then num 1 else num 0))
        = ninf
      rw [if_pos e]
      show add (if ln2 ≤ 0 then undef else ninf) (if (1 : R) ≤ 0 then undef else num (ln 1)) = ninf
      rw [if_neg h₄, if_neg h₃]
      rfl
    · rw [Option.map_none, isLogSumExp_none]
      intro x hx
      obtain ⟨key, hk, rfl⟩ := List.mem_map.mp hx
      exact (hinv.m_eq_none.mp hm) key hk
  | some m =>
    have h₁ := hinv.one_le_l (by simp [hm])
    have h₀ : 0 < (online blocks).l :=
      Std.lt_of_lt_of_le Lean.Grind.OrderedRing.zero_lt_one h₁
    have h₃ : ¬ ((online blocks).l ≤ 0) := Std.not_le.mpr h₀
    refine ⟨some (m * ln2 + ln (online blocks).l), ?_, ?_⟩
    · have e : oeq (num (online blocks).l) (num 0) = false := decide_eq_false fun h => h₃ h.1
      rw [e]
      show add (num (m * ln2)) (if (online blocks).l ≤ 0 then undef else num (ln (online blocks).l))
        = num (m * ln2 + ln (online blocks).l)
      rw [if_neg h₃]
      rfl
    · have e : log2e * (m * ln2 + ln (online blocks).l) - m = log2e * ln (online blocks).l := by
        grind
      rw [Option.map_some, online_lse_iff blocks hm, e, hln _ h₀]

end RowState

end Attention.Kernel
