module

public import Attention.Kernel.Loads

public section

/-! # What the forward kernel computes for a row is its row of attention -/

namespace Attention.Kernel.Problem

open Spec Spec.Online Proof Flt

universe u

variable {R : Type u} [OrderedField R] {d d_v q_len kv_len : Nat}
variable {p : Problem R} {pid : Int} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
variable {V : Matrix R kv_len d_v} {sc : R}

/-- Key number y as row x sees it. -/
abbrev seen (p : Problem R) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (sc : R) (x : Fin q_len) : Nat → ScoredValue R R d_v :=
  keyOf sc p.mask.toScoreMod Q K V x

theorem seen_of_lt {x : Fin q_len} {y : Nat} (hy : y < kv_len) : p.seen Q K V sc x y
    = ⟨if p.mask x ⟨y, hy⟩ then some (sc * Vec.dot Q[x] K[y]) else none, V[y]⟩ := by
  simp only [seen, keyOf, hy, dif_pos]
  rfl

theorem seen_none {x : Fin q_len} {y : Nat} (hy : ¬ y < kv_len) :
    (p.seen Q K V sc x y).score = none := by
  simp only [seen, keyOf, hy, dif_neg, not_false_eq_true]

omit [OrderedField R] in
theorem mask_iff {x : Fin q_len} {y : Fin kv_len} : p.mask x y = true ↔
    (∀ l, p.left = some l → (x : Int) + p.shift - l ≤ y) ∧
      (∀ r, p.right = some r → (y : Int) ≤ x + p.shift + r) := by
  unfold mask
  cases p.left <;> cases p.right <;> simp

/-- The keys that a query sees lie in the tiles visited. -/
theorem Holds.seen_bounds (H : Holds p pid Q K V sc) {i : Nat} (hi : i < p.BM) {x : Fin q_len}
    (hx : p.row pid i = x) {y : Nat} (hy : (p.seen Q K V sc x y).score ≠ none) :
    y < kv_len ∧ p.firstKey pid ≤ y ∧ (y : Int) < p.stopKey pid := by
  by_cases h : y < kv_len
  · refine ⟨h, ?_⟩
    rw [seen_of_lt h] at hy
    have hm : p.mask x ⟨y, h⟩ = true := by
      refine Classical.byContradiction fun hn => hy ?_
      simp [hn]
    obtain ⟨hl, hr⟩ := mask_iff.mp hm
    have h₁ := H.kvLen
    have h₂ := H.qLen
    have h₃ := x.isLt
    exact p.seen_bounds pid hi (by omega) (by omega) (by omega) (hx ▸ hl) (hx ▸ hr)
  · exact absurd (seen_none h) hy

omit [OrderedField R] in
theorem keyAt_cast {t : Int} (ht : 0 ≤ t) (j : Nat) :
    p.keyAt t j = ((t.toNat * p.BN + j : Nat) : Int) := by
  rw [Int.natCast_add, Int.natCast_mul, Int.toNat_of_nonneg ht]
  rfl

variable [Exponential R R]

/-- One tile without mask code. -/
theorem Holds.whole (H : Holds p pid Q K V sc) {i : Nat} (hi : i < p.BM) {x : Fin q_len}
    (hx : p.row pid i = x) {t : Int} (h₁ : p.wholeFirst pid ≤ t) (h₂ : t < p.wholeStop pid)
    {st : Online.State R R d_v} {s : Problem.State R} (hs : (rowOf i s).Is st) :
    (rowOf i (p.wholeBody pid t s)).Is (stepBlock st (tileOf (p.seen Q K V sc x) p.BN t)) := by
  have ht : 0 ≤ t := by have := p.first_le pid H.BN; omega
  have hq : p.row pid i < p.qLen := by have := H.qLen; have := x.isLt; omega
  have hkv := H.kvLen
  have key : ∀ j < p.BN, ∃ h : t.toNat * p.BN + j < kv_len,
      p.mask x ⟨t.toNat * p.BN + j, h⟩ = true := by
    intro j hj
    obtain ⟨_, a, b, c⟩ := p.whole_seen pid H.BN (by omega) h₁ h₂ hi hq hj
    rw [keyAt_cast ht] at a b c
    exact ⟨by omega, mask_iff.mpr ⟨hx ▸ b, hx ▸ c⟩⟩
  have hdot : ∀ j < p.BN, ∀ h : t.toNat * p.BN + j < kv_len,
      p.wholeProduct pid t i j = num (Vec.dot Q[x] K[t.toNat * p.BN + j]) := fun j hj h =>
    dot_ext H.fits (fun n _ => H.queryTile hx n)
      (fun n hn => H.wholeKey (y := ⟨_, h⟩) (keyAt_cast ht j) hn)
  have hseen : ∀ j < p.BN, ∀ h : t.toNat * p.BN + j < kv_len,
      p.seen Q K V sc x (t.toNat * p.BN + j)
        = ⟨some (Vec.dot Q[x] K[t.toNat * p.BN + j] * sc), V[t.toNat * p.BN + j]⟩ := by
    intro j hj h
    rw [seen_of_lt h, if_pos (key j hj).2, Lean.Grind.CommSemiring.mul_comm]
  refine RowState.Is.step hs (fun j hj => ?_) ?_ fun j hj c hc => ?_
  · obtain ⟨h, _⟩ := key j hj
    rw [hdot j hj h, hseen j hj h, H.scale]
    rfl
  · obtain ⟨f, hf⟩ : ∃ f : Nat → R, ∀ j < p.BN, p.wholeProduct pid t i j = num (f j) ∧
        (p.seen Q K V sc x (t.toNat * p.BN + j)).score = some (f j * sc) :=
      ⟨fun j => if h : t.toNat * p.BN + j < kv_len then Vec.dot Q[x] K[t.toNat * p.BN + j] else 0,
        fun j hj => by
          obtain ⟨h, _⟩ := key j hj
          simp only [h, dif_pos, hdot j hj h, hseen j hj h, and_self]⟩
    rw [H.scale, mul_maxOver H.scale_nonneg H.BN fun j hj => (hf j hj).1]
    congr 2
    exact List.map_congr_left fun j hj => ((hf j (List.mem_range.mp hj)).2).symm
  · obtain ⟨h, _⟩ := key j hj
    refine ⟨_, H.wholeValue (y := ⟨_, h⟩) (keyAt_cast ht j) hc, fun _ => ?_⟩
    rw [hseen j hj h]
    rfl

/-- One tile with mask code. -/
theorem Holds.checked (H : Holds p pid Q K V sc) {i : Nat} (hi : i < p.BM) {x : Fin q_len}
    (hx : p.row pid i = x) {t : Int} (ht : 0 ≤ t)
    {st : Online.State R R d_v} {s : Problem.State R} (hs : (rowOf i s).Is st) :
    (rowOf i (p.checkedBody pid t s)).Is (stepBlock st (tileOf (p.seen Q K V sc x) p.BN t)) := by
  have hkv := H.kvLen
  have hstop := p.stopKey_le pid
  have hfirst : 0 ≤ p.firstKey pid := by unfold firstKey; split <;> omega
  have hinside : ∀ j, p.inside pid t j = true → ∃ h : t.toNat * p.BN + j < kv_len, True := by
    intro j h
    simp only [inside, Bool.and_eq_true, decide_eq_true_eq, keyAt_cast ht] at h
    exact ⟨by omega, trivial⟩
  have hscore : ∀ j < p.BN, p.checkedScore pid t i j
      = ofScore (p.seen Q K V sc x (t.toNat * p.BN + j)).score := by
    intro j hj
    simp only [checkedScore]
    by_cases hv : p.visible pid t i j = true
    · obtain ⟨a, b, c⟩ := (p.visible_iff pid t i j).mp hv
      rw [keyAt_cast ht] at a b c
      have h : t.toNat * p.BN + j < kv_len := by omega
      have hm : p.mask x ⟨_, h⟩ = true := mask_iff.mpr ⟨hx ▸ b, hx ▸ c⟩
      have hs : (p.seen Q K V sc x (t.toNat * p.BN + j)).score ≠ none := by
        rw [seen_of_lt h, if_pos hm]; simp
      obtain ⟨_, e₁, e₂⟩ := H.seen_bounds hi hx hs
      have hin : p.inside pid t j = true := by
        simp only [inside, Bool.and_eq_true, decide_eq_true_eq, keyAt_cast ht]
        exact ⟨e₁, e₂⟩
      rw [if_pos hv, dot_ext H.fits (fun n _ => H.queryTile hx n)
        (fun n _ => H.checkedKey (y := ⟨_, h⟩) (keyAt_cast ht j) hin n), H.scale, seen_of_lt h,
        if_pos hm, Lean.Grind.CommSemiring.mul_comm sc]
      rfl
    · rw [if_neg hv]
      refine (congrArg ofScore (Classical.byContradiction fun hs => hv ?_ :
        (p.seen Q K V sc x (t.toNat * p.BN + j)).score = none)).symm
      obtain ⟨h, e₁, e₂⟩ := H.seen_bounds hi hx hs
      have hm : p.mask x ⟨_, h⟩ = true := by
        rw [seen_of_lt h] at hs
        refine Classical.byContradiction fun hn => hs ?_
        simp [hn]
      obtain ⟨hl, hr⟩ := mask_iff.mp hm
      refine (p.visible_iff pid t i j).mpr ?_
      rw [keyAt_cast ht]
      exact ⟨e₂, hx.symm ▸ hl, hx.symm ▸ hr⟩
  refine RowState.Is.step hs hscore (maxOver_ofScore hscore) fun j hj c hc => ?_
  by_cases hin : p.inside pid t j = true
  · obtain ⟨h, _⟩ := hinside j hin
    refine ⟨_, H.checkedValue (y := ⟨_, h⟩) (keyAt_cast ht j) hin hc, fun _ => ?_⟩
    rw [seen_of_lt h]
    rfl
  · refine ⟨0, by simp [Problem.checkedValue, hin], fun hs => absurd ?_ hin⟩
    obtain ⟨_, e₁, e₂⟩ := H.seen_bounds hi hx hs
    simp only [inside, Bool.and_eq_true, decide_eq_true_eq, keyAt_cast ht]
    exact ⟨e₁, e₂⟩

/-- The state of a row after the loops is online softmax over its tiles. -/
theorem Holds.result (H : Holds p pid Q K V sc) {i : Nat} (hi : i < p.BM) {x : Fin q_len}
    (hx : p.row pid i = x) : (rowOf i (p.result pid)).Is
      (online (tilesOf (p.seen Q K V sc x) p.BN (p.first pid) (p.stop pid))) := by
  obtain ⟨o₁, o₂, o₃, o₄⟩ := p.first_le pid H.BN
  have h₀ : ∀ t, (rowOf i (init : Problem.State R)).Is
      (online (tilesOf (p.seen Q K V sc x) p.BN t t)) := by
    intro t
    simp only [tilesOf, show (t - t).toNat = 0 by omega, List.range_zero, List.map_nil]
    exact RowState.is_empty rfl rfl fun _ => rfl
  have h₁ : (rowOf i (p.afterLeft pid)).Is
      (online (tilesOf (p.seen Q K V sc x) p.BN (p.first pid) (p.wholeFirst pid))) := by
    unfold afterLeft
    split
    · rename_i h
      have e : p.wholeFirst pid = p.first pid := by
        simp only [p.wholeFirst_eq, unmaskedFirst, h]
        omega
      rw [e]
      exact h₀ _
    · exact is_forRange (Int.le_refl _) o₂ (h₀ _) fun t ht _ st s hs =>
        H.checked hi hx (by omega) hs
  exact is_forRange (by omega) o₄
    (is_forRange o₂ o₃ h₁ fun t ht ht' st s hs => H.whole hi hx ht ht' hs)
    fun t ht _ st s hs => H.checked hi hx (by omega) hs

omit [Exponential R R] in
private theorem Holds.tiles_seen (H : Holds p pid Q K V sc) {i : Nat} (hi : i < p.BM)
    {x : Fin q_len} (hx : p.row pid i = x) (y : Nat)
    (hy : (keyOf sc p.mask.toScoreMod Q K V x y).score ≠ none) :
    p.first pid * p.BN ≤ y ∧ y < p.stop pid * p.BN := by
  obtain ⟨_, e₁, e₂⟩ := H.seen_bounds hi hx hy
  exact p.visited pid H.BN e₁ e₂

/-- The stored row i, of query x, is its row of attention. -/
theorem Holds.output (H : Holds p pid Q K V sc) {i : Nat} (hi : i < p.BM) {x : Fin q_len}
    (hx : p.row pid i = x) {c : Nat} (hc : c < d_v) : (p.storeOut pid i c).value
      = num (attention sc p.mask.toScoreMod Q K V)[x][c] := by
  obtain ⟨o₁, o₂, o₃, o₄⟩ := p.first_le pid H.BN
  have h := (H.result hi hx).finish hc
  rw [attend_tilesOf o₁ (by omega) (H.tiles_seen hi hx)] at h
  exact h

/-- And its log-sum-exp. -/
theorem Holds.logSumExp (H : Holds p pid Q K V sc) {log2e : R} (h₂ : 0 < p.ln2)
    (h : p.ln2 * log2e = 1) (hln : ∀ x, 0 < x → (exp (log2e * p.ln x) : R) = x) {i : Nat}
    (hi : i < p.BM) {x : Fin q_len} (hx : p.row pid i = x) : ∃ L : Option R,
      (p.storeLse pid i).value = ofScore L ∧ IsLogSumExp R (L.map (log2e * ·))
        ((List.finRange kv_len).map (Spec.score sc p.mask.toScoreMod Q K x)) := by
  obtain ⟨o₁, o₂, o₃, o₄⟩ := p.first_le pid H.BN
  obtain ⟨L, e, hL⟩ := (H.result hi hx).lse h₂ h hln
  exact ⟨L, e, (lse_tilesOf o₁ (by omega) (H.tiles_seen hi hx)).mp hL⟩

end Attention.Kernel.Problem
