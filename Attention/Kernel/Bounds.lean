module

public import Attention.Kernel.Forward

public section

/-! # Which tiles of keys the forward kernel visits -/

namespace Attention.Kernel.Problem

universe u

variable {R : Type u}

private theorem mul_le_of_lt_tdiv {x b t : Int} (hb : 0 < b) (hx : 0 ≤ x) (h : t < x.tdiv b) :
    (t + 1) * b ≤ x := by
  rw [Int.tdiv_eq_ediv_of_nonneg hx] at h
  exact (Int.le_ediv_iff_mul_le hb).mp h

private theorem le_tdiv_mul {s b : Int} (hb : 0 < b) (hs : 0 ≤ s) :
    s ≤ (s + (b - 1)).tdiv b * b := by
  rw [Int.tdiv_eq_ediv_of_nonneg (by omega)]
  have h := Int.lt_ediv_add_one_mul_self (s + (b - 1)) hb
  rw [Int.add_mul] at h
  omega

private theorem tdiv_mul_le {s b : Int} (hb : 0 < b) (hs : 0 ≤ s) : s.tdiv b * b ≤ s := by
  rw [Int.tdiv_eq_ediv_of_nonneg hs]
  exact Int.ediv_mul_le _ (by omega)

private theorem tdiv_le_tdiv_ceil {a s b : Int} (hb : 0 < b) (ha : 0 ≤ a) (h : a ≤ s) :
    a.tdiv b ≤ (s + (b - 1)).tdiv b := by
  rw [Int.tdiv_eq_ediv_of_nonneg ha, Int.tdiv_eq_ediv_of_nonneg (by omega)]
  exact Int.ediv_le_ediv hb (by omega)

private theorem le_mul_of_tdiv_ceil_le {s b t : Int} (hb : 0 < b) (hs : 0 ≤ s)
    (h : (s + (b - 1)).tdiv b ≤ t) : s ≤ t * b :=
  Int.le_trans (le_tdiv_mul hb hs) (Int.mul_le_mul_of_nonneg_right h (by omega))

/-- A tile below the end of those without mask code, from what that is the least of. -/
private theorem lt_of_lt_whole {t u v w s : Int} (h₀ : w ≤ t) (h : t < min (max (min u v) w) s) :
    t < u ∧ t < v := by
  have h₁ : t < min u v := Int.lt_of_not_ge fun g => Int.not_le.mpr
    (Int.lt_of_lt_of_le h (Int.min_le_left _ _)) (Int.max_le.mpr ⟨g, h₀⟩)
  exact ⟨Int.lt_of_lt_of_le h₁ (Int.min_le_left _ _), Int.lt_of_lt_of_le h₁ (Int.min_le_right _ _)⟩

private theorem succ_mul (t b : Int) : (t + 1) * b = t * b + b := by
  rw [Int.add_mul, Int.one_mul]

private theorem in_tile {t b x : Int} {j n : Nat} (hb : b = n) (h₀ : 0 ≤ t * b)
    (h : t * b + b ≤ x) (hj : j < n) : 0 ≤ t * b + j ∧ t * b + j < x := by
  omega

variable (p : Problem R) (pid : Int)

theorem firstKey_nonneg : 0 ≤ p.firstKey pid := by
  unfold firstKey
  split
  · exact Int.le_refl _
  · exact Int.le_max_right _ _

theorem stopKey_le : p.stopKey pid ≤ p.kvLen := by
  unfold stopKey
  split
  · exact Int.le_refl _
  · exact Int.min_le_left _ _

/-- The first tile, without a case of its own for a window that is open on the left. -/
theorem first_eq : p.first pid
    = if decide (p.firstKey pid < p.stopKey pid) then Int.tdiv (p.firstKey pid) p.BN else 0 := by
  unfold first firstKey
  split <;> simp_all

theorem wholeFirst_eq :
    p.wholeFirst pid = min (max (p.unmaskedFirst pid) (p.first pid)) (p.stop pid) := by
  unfold wholeFirst
  split
  · rename_i h
    simp only [unmaskedFirst, first, h]
    rw [Int.max_self, Int.min_comm]
  · rfl

/-- The order of the tiles. -/
theorem first_le (hb : 0 < p.BN) : 0 ≤ p.first pid ∧
    p.first pid ≤ p.wholeFirst pid ∧ p.wholeFirst pid ≤ p.wholeStop pid ∧
    p.wholeStop pid ≤ p.stop pid := by
  have hb' : (0 : Int) < p.BN := by omega
  have h₀ := p.firstKey_nonneg pid
  have h₁ : 0 ≤ p.first pid ∧ p.first pid ≤ p.stop pid := by
    rw [first_eq]
    simp only [stop]
    split
    · rename_i h
      have h := of_decide_eq_true h
      exact ⟨Int.tdiv_nonneg h₀ (by omega), tdiv_le_tdiv_ceil hb' h₀ (by omega)⟩
    · omega
  have h₂ : p.first pid ≤ p.wholeFirst pid ∧ p.wholeFirst pid ≤ p.stop pid := by
    rw [wholeFirst_eq]; omega
  simp only [wholeStop]
  omega

/-- Every key that a query of the tile sees is in one of the tiles visited. -/
theorem visited (hb : 0 < p.BN) {y : Int} (h₁ : p.firstKey pid ≤ y) (h₂ : y < p.stopKey pid) :
    p.first pid * p.BN ≤ y ∧ y < p.stop pid * p.BN := by
  have hb' : (0 : Int) < p.BN := by omega
  have h₀ := p.firstKey_nonneg pid
  have h : decide (p.firstKey pid < p.stopKey pid) = true := decide_eq_true (by omega)
  rw [first_eq]
  simp only [stop, h, if_true]
  have := tdiv_mul_le (s := p.firstKey pid) hb' h₀
  have := le_tdiv_mul (s := p.stopKey pid) hb' (by omega)
  omega

/-- Rows of queries lie between the first and the last. -/
theorem row_bounds {i : Nat} (hi : i < p.BM) (hq : p.row pid i < p.qLen) :
    p.rowFirst pid ≤ p.row pid i ∧ p.row pid i ≤ p.rowLast pid := by
  have e : (p.tile pid + 1) * p.BM = p.rowFirst pid + p.BM := succ_mul _ _
  simp only [rowLast, e]
  simp only [row] at *
  omega

/-- The keys of the tiles taken without mask code are keys. -/
theorem whole_key (hb : 0 < p.BN) (hkv : 0 ≤ p.kvLen) {t : Int} (h₁ : p.wholeFirst pid ≤ t)
    (h₂ : t < p.wholeStop pid) {j : Nat} (hj : j < p.BN) :
    0 ≤ p.keyAt t j ∧ p.keyAt t j < p.kvLen := by
  obtain ⟨o₁, o₂, _⟩ := p.first_le pid hb
  have h₃ := mul_le_of_lt_tdiv (b := p.BN) (Int.natCast_pos.mpr hb) hkv (lt_of_lt_whole h₁ h₂).2
  rw [succ_mul] at h₃
  exact in_tile rfl (Int.mul_nonneg (Int.le_trans (Int.le_trans o₁ o₂) h₁) (Int.natCast_nonneg _))
    h₃ hj

/-- The mask code lets loads through of keys only. -/
theorem inside_key {t : Int} {j : Nat} (h : p.inside pid t j = true) :
    0 ≤ p.keyAt t j ∧ p.keyAt t j < p.kvLen := by
  simp only [inside, Bool.and_eq_true, decide_eq_true_eq] at h
  exact ⟨Int.le_trans (p.firstKey_nonneg pid) h.1, Int.lt_of_lt_of_le h.2 (p.stopKey_le pid)⟩

private theorem le_of_whole_le {u f s t : Int} (h : min (max u f) s ≤ t) (hs : t < s) : u ≤ t :=
  Int.not_lt.mp fun g => Int.not_le.mpr
    (Int.lt_min.mpr ⟨Int.lt_of_lt_of_le g (Int.le_max_left _ _), hs⟩) h

private theorem left_edge {x r m s l : Int} {j : Nat} (h : max (m + s - l) 0 ≤ x) (hr : r ≤ m) :
    r + s - l ≤ x + j :=
  Int.le_trans (Int.sub_le_sub_right (Int.add_le_add_right hr s) l)
    (Int.le_trans (Int.le_trans (Int.le_max_left _ _) h)
      (Int.le_add_of_nonneg_right (Int.natCast_nonneg j)))

private theorem right_edge {f m s r k : Int} (h : k < max (f + s + r + 1) 0) (hk : 0 ≤ k)
    (hr : f ≤ m) : k ≤ m + s + r :=
  Int.le_trans
    (Int.le_of_lt_add_one (Int.lt_of_not_ge fun g => Int.not_le.mpr h (Int.max_le.mpr ⟨g, hk⟩)))
    (Int.add_le_add_right (Int.add_le_add_right hr s) r)

/-- In the tiles taken without mask code every row sees every key. -/
theorem whole_seen (hb : 0 < p.BN) (hkv : 0 ≤ p.kvLen) {t : Int} (h₁ : p.wholeFirst pid ≤ t)
    (h₂ : t < p.wholeStop pid) {i j : Nat} (hi : i < p.BM) (hq : p.row pid i < p.qLen)
    (hj : j < p.BN) : 0 ≤ p.keyAt t j ∧ p.keyAt t j < p.kvLen ∧
      (∀ l, p.left = some l → p.row pid i + p.shift - l ≤ p.keyAt t j) ∧
      (∀ r, p.right = some r → p.keyAt t j ≤ p.row pid i + p.shift + r) := by
  have hb' : (0 : Int) < p.BN := Int.natCast_pos.mpr hb
  obtain ⟨r₁, r₂⟩ := p.row_bounds pid hi hq
  have k := p.whole_key pid hb hkv h₁ h₂ hj
  have hfirst := le_of_whole_le (p.wholeFirst_eq pid ▸ h₁)
    (Int.lt_of_lt_of_le h₂ (Int.min_le_right _ _))
  have h₅ := (lt_of_lt_whole h₁ h₂).1
  clear h₁ h₂ hb hq hi
  refine ⟨k.1, k.2, fun l hl => ?_, fun r hr => ?_⟩
  · simp only [unmaskedFirst, hl] at hfirst
    have := le_mul_of_tdiv_ceil_le hb' (Int.le_max_right _ _) hfirst
    exact left_edge this r₂
  · simp only [unmaskedStop, hr] at h₅
    split at h₅
    · rename_i h
      exact right_edge (Int.lt_of_lt_of_le k.2 (of_decide_eq_true h)) k.1 r₁
    · have := mul_le_of_lt_tdiv hb' (Int.le_max_right _ _) h₅
      rw [succ_mul] at this
      exact right_edge (Int.lt_of_lt_of_le
        (Int.add_lt_add_left (Int.ofNat_lt.mpr hj) _) this) k.1 r₁

/-- The mask code lets through what the window shows, of the keys up to the last one that some query
sees. -/
theorem visible_iff (t : Int) (i j : Nat) : p.visible pid t i j = true ↔
    p.keyAt t j < p.stopKey pid ∧
      (∀ l, p.left = some l → p.row pid i + p.shift - l ≤ p.keyAt t j) ∧
      (∀ r, p.right = some r → p.keyAt t j ≤ p.row pid i + p.shift + r) := by
  unfold visible
  cases p.left <;> cases p.right <;> simp [and_assoc]

/-- A key within the window of a query is one of those that some query of the tile sees. -/
theorem seen_bounds {i : Nat} (hi : i < p.BM) (hq : p.row pid i < p.qLen) {y : Int} (h₀ : 0 ≤ y)
    (hy : y < p.kvLen) (hl : ∀ l, p.left = some l → p.row pid i + p.shift - l ≤ y)
    (hr : ∀ r, p.right = some r → y ≤ p.row pid i + p.shift + r) :
    p.firstKey pid ≤ y ∧ y < p.stopKey pid := by
  obtain ⟨r₁, r₂⟩ := p.row_bounds pid hi hq
  constructor
  · unfold firstKey
    cases h : p.left with
    | none => exact h₀
    | some l =>
      show max _ _ ≤ y
      exact Int.max_le.mpr
        ⟨Int.le_trans (Int.sub_le_sub_right (Int.add_le_add_right r₁ _) l) (hl l h), h₀⟩
  · unfold stopKey
    cases h : p.right with
    | none => exact hy
    | some r =>
      show y < min _ _
      exact Int.lt_min.mpr ⟨hy, Int.lt_of_lt_of_le (Int.lt_add_one_of_le
        (Int.le_trans (hr r h) (Int.add_le_add_right (Int.add_le_add_right r₂ _) r)))
        (Int.le_max_left _ _)⟩

end Attention.Kernel.Problem
