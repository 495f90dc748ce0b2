module

public import Attention.Kernel.Started

public section

/-! # The forward kernel's integers fit their types

Those that are computed after a program may return, once for all texts: from bounds of what they are
made of, `Facts`. -/

namespace Attention.Kernel.Problem

universe u

variable {R : Type u} {p : Problem R} {pid : Int}

/-- All strides. -/
@[expose] def strides (p : Problem R) : List Int :=
  [p.qb, p.qh, p.qm, p.kb, p.kh, p.kn, p.vb, p.vh, p.vn, p.ob, p.oh, p.om, p.lb, p.lh]

/-- Bounds of what the other integers are made of, in a program that has a query. -/
structure Facts (p : Problem R) (pid : Int) : Prop where
  BM : 0 < p.BM ∧ p.BM ≤ 1048576
  BN : 0 < p.BN ∧ p.BN ≤ 1048576
  BD : p.BD ≤ 256
  BV : p.BV ≤ 256
  qLen : 0 ≤ p.qLen ∧ p.qLen < 536870912
  kvLen : 0 ≤ p.kvLen ∧ p.kvLen < 536870912
  tile : 0 ≤ p.tile pid ∧ p.tile pid < 1073741824
  rowFirst : 0 ≤ p.rowFirst pid ∧ p.rowFirst pid < p.qLen
  head : 0 ≤ p.head pid ∧ p.head pid < 2147483648
  kvHead : 0 ≤ p.kvHead pid ∧ p.kvHead pid ≤ p.head pid
  batch : p.packed = none → 0 ≤ p.batch pid ∧ p.batch pid + p.head pid < 2147483648
  rows : ∀ q k, p.packed = some (q, k) → (0 ≤ q ∧ q < 536870912) ∧ 0 ≤ k ∧ k < 536870912
  shift : -1073741824 < p.shift ∧ p.shift < 1073741824
  left : ∀ l, p.left = some l → 0 ≤ l ∧ -1610612736 < p.shift - l
  right : ∀ r, p.right = some r → 0 ≤ r ∧ p.qLen + p.shift + r < 1610612736
  keys : p.BN * p.kn + 256 ≤ 2147483648
  values : p.BN * p.vn + 256 ≤ 2147483648
  strides : ∀ s ∈ p.strides, 0 ≤ s ∧ s < 2147483648

namespace Facts

variable (F : Facts p pid)

include F

omit F in
private theorem rowNext : (p.tile pid + 1) * p.BM = p.rowFirst pid + p.BM := by
  rw [Int.add_mul, Int.one_mul]
  rfl

private theorem rowLast : 0 ≤ p.rowLast pid ∧ p.rowLast pid < p.qLen := by
  have h := rowNext (p := p) (pid := pid)
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := Int.add_lt_add_of_le_of_lt h₁.1 (Int.natCast_pos.mpr h₂.1)
  rw [Problem.rowLast, h]
  exact ⟨Int.le_sub_one_of_lt (Int.lt_min.mpr ⟨h₃, Int.lt_of_le_of_lt h₁.1 h₁.2⟩),
    Int.lt_of_le_of_lt (Int.sub_le_sub_right (Int.min_le_right _ _) 1)
      (Int.sub_lt_self _ (by decide))⟩

private theorem row {i : Nat} (hi : i < p.BM) :
    0 ≤ p.row pid i ∧ p.row pid i < p.qLen + 1048576 := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  exact ⟨Int.add_nonneg h₁.1 (Int.natCast_nonneg _),
    Int.add_lt_add h₁.2 (Int.lt_of_lt_of_le (Int.ofNat_lt.mpr hi) (Int.ofNat_le.mpr h₂.2))⟩

private theorem stopKey : 0 ≤ p.stopKey pid ∧ p.stopKey pid < 536870912 := by
  have h := F.kvLen
  refine ⟨?_, Int.lt_of_le_of_lt (p.stopKey_le pid) h.2⟩
  unfold Problem.stopKey
  split
  · exact h.1
  · exact Int.le_min.mpr ⟨h.1, Int.le_max_right _ _⟩

private theorem lastIntegers : ∀ P ∈ p.lastIntegers pid, P := by
  have h₁ := F.rowFirst
  have h₂ := F.BM
  have h₃ := F.tile
  have h₄ := F.rowLast
  have h₅ := F.qLen
  simp only [Problem.lastIntegers, rowNext]
  exact all_iff.mp (show _ ∧ _ ∧ _ from
    ⟨fits32 (Int.add_nonneg h₃.1 (by decide))
      (Int.lt_trans (Int.add_lt_add_right h₃.2 1) (by decide)),
    fits32 (Int.add_nonneg h₁.1 (Int.natCast_nonneg _)) (by clear h₃ h₄; omega),
    fits32 h₄.1 (Int.lt_trans h₄.2 (Int.lt_trans h₅.2 (by decide)))⟩)

private theorem rowIntegers : ∀ P ∈ p.rowIntegers pid, P := by
  have h := F.qLen
  exact all_iff.mp fun i hi => fits32 (F.row hi).1
    (Int.lt_trans (F.row hi).2 (Int.lt_trans (Int.add_lt_add_right h.2 _) (by decide)))

private theorem shiftedIntegers : ∀ P ∈ p.shiftedIntegers pid, P := by
  have h := F.qLen
  have h₄ := F.shift
  refine all_iff.mp fun i hi => ?_
  have h₁ := F.row hi
  simp only [fitsI32_iff]
  omega

omit F in
/-- The sum of two products with strides. -/
private theorem sum_bounds {x y sx sy : Int} (hx : 0 ≤ x) (hy : 0 ≤ y) (h : x + y < 2684354560)
    (hs : (0 ≤ sx ∧ sx < 2147483648) ∧ 0 ≤ sy ∧ sy < 2147483648) :
    0 ≤ x * sx ∧ 0 ≤ y * sy ∧ x * sx + y * sy ≤ 5764607523034234880 := by
  have b₁ := mul_bounds hx hs.1
  have b₂ := mul_bounds hy hs.2
  exact ⟨b₁.1, b₂.1, by omega⟩

omit F in
private theorem of_sum {a b : Int} (ha : 0 ≤ a) (hb : 0 ≤ b) (h : a + b ≤ 5764607523034234880) :
    FitsI64 a ∧ FitsI64 b ∧ FitsI64 (a + b) :=
  have h' := Int.lt_of_le_of_lt h (show _ < (9223372036854775808 : Int) by decide)
  ⟨fits64 ha (Int.lt_of_le_of_lt (Int.le_add_of_nonneg_right hb) h'),
    fits64 hb (Int.lt_of_le_of_lt (Int.le_add_of_nonneg_left ha) h'),
    fits64 (Int.add_nonneg ha hb) h'⟩

omit F in
private theorem beside {a b x : Int} (ha : 0 ≤ a) (hb : 0 ≤ b) (h : a + b ≤ 5764607523034234880)
    (hx : 0 ≤ x) (hx' : x ≤ 1155173304420532480) : FitsI64 (a + b + x) :=
  fits64 (Int.add_nonneg (Int.add_nonneg ha hb) hx)
    (Int.lt_of_le_of_lt (Int.add_le_add h hx') (by decide))

omit F in
private theorem row_mul {r q s : Int} (hr : 0 ≤ r ∧ r < q + 1048576) (hq : q < 536870912)
    (hs : 0 ≤ s ∧ s < 2147483648) : 0 ≤ r * s ∧ r * s ≤ 1155173304420532224 := by
  have := mul_bounds hr.1 hs
  omega

omit F in
private theorem component {x : Int} {n w : Nat} (hx : 0 ≤ x ∧ x ≤ 1155173304420532224)
    (hn : n < w) (hw : w ≤ 256) : 0 ≤ x + n ∧ x + n ≤ 1155173304420532480 :=
  ⟨Int.add_nonneg hx.1 (Int.natCast_nonneg n), Int.add_le_add hx.2
    (Int.ofNat_le.mpr (Nat.le_trans (Nat.le_of_lt hn) hw))⟩

private theorem rowOffsets {x y sx sy sm : Int} {width : Nat} (hw : width ≤ 256) (hx : 0 ≤ x)
    (hy : 0 ≤ y) (h : x + y < 2684354560)
    (hs : (0 ≤ sx ∧ sx < 2147483648) ∧ 0 ≤ sy ∧ sy < 2147483648)
    (hm : 0 ≤ sm ∧ sm < 2147483648) : ∀ P ∈ p.rowOffsets pid x sx y sy sm width, P := by
  obtain ⟨c₁, c₂, c₃⟩ := sum_bounds hx hy h hs
  have hq := F.qLen
  have b₃ : ∀ i < p.BM, 0 ≤ p.row pid i * sm ∧ p.row pid i * sm ≤ 1155173304420532224 :=
    fun i hi => row_mul (F.row hi) hq.2 hm
  obtain ⟨f₁, f₂, f₃⟩ := of_sum c₁ c₂ c₃
  simp only [Problem.rowOffsets, Int.zero_add]
  refine all_iff.mp (show _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ from
    ⟨f₁, f₂, f₃, f₃, fun i hi => fits64 (b₃ i hi).1 (Int.lt_of_le_of_lt (b₃ i hi).2 (by decide)),
    fun i hi _ _ => beside c₁ c₂ c₃ (b₃ i hi).1 (Int.le_trans (b₃ i hi).2 (by decide)),
    fun i hi n hn => ?_⟩)
  rw [Int.add_assoc (x * sx + y * sy)]
  exact beside c₁ c₂ c₃ (component (b₃ i hi) hn hw).1 (component (b₃ i hi) hn hw).2

/-- The stride of this number among all. -/
private theorem stride (n : Nat) : 0 ≤ p.strides.getD n 0 ∧ p.strides.getD n 0 < 2147483648 := by
  rcases Nat.lt_or_ge n p.strides.length with h | h
  · rw [List.getD_eq_getElem?_getD, List.getElem?_eq_getElem h, Option.getD_some]
    exact F.strides _ (List.getElem_mem h)
  · rw [List.getD_eq_getElem?_getD, List.getElem?_eq_none h]
    exact ⟨Int.le_refl 0, by decide⟩

private theorem queryIntegers : ∀ P ∈ p.queryIntegers pid, P := by
  have hh := F.head
  unfold Problem.queryIntegers
  split
  · rename_i h
    have hb := F.batch h
    exact F.rowOffsets F.BD hb.1 hh.1 (Int.lt_trans hb.2 (by decide)) ⟨F.stride 0, F.stride 1⟩
      (F.stride 2)
  · rename_i h
    have hr := (F.rows _ _ h).1
    exact F.rowOffsets F.BD hh.1 hr.1 (Int.add_lt_add hh.2 hr.2) ⟨F.stride 1, F.stride 2⟩
      (F.stride 2)

private theorem outIntegers : ∀ P ∈ p.outIntegers pid, P := by
  have hh := F.head
  unfold Problem.outIntegers
  split
  · rename_i h
    have hb := F.batch h
    exact F.rowOffsets F.BV hb.1 hh.1 (Int.lt_trans hb.2 (by decide)) ⟨F.stride 9, F.stride 10⟩
      (F.stride 11)
  · rename_i h
    have hr := (F.rows _ _ h).1
    exact F.rowOffsets F.BV hh.1 hr.1 (Int.add_lt_add hh.2 hr.2) ⟨F.stride 10, F.stride 11⟩
      (F.stride 11)

omit F in
private theorem head_row {h x q : Int} (hh : 0 ≤ h ∧ h < 2147483648)
    (hx : 0 ≤ x ∧ x ≤ h * 2147483648) (hq : 0 ≤ q ∧ q < 536870912) :
    0 ≤ x ∧ x + q ≤ 5764607523034234880 := by
  omega

private theorem lseIntegers : ∀ P ∈ p.lseIntegers pid, P := by
  have hh := F.head
  have hq := F.qLen
  have sh : 0 ≤ p.lh ∧ p.lh < 2147483648 := F.stride 13
  have row_le : ∀ {i}, i < p.BM → p.row pid i ≤ 1155173304420532480 := fun hi =>
    Int.le_of_lt (Int.lt_trans (F.row hi).2
      (Int.lt_trans (Int.add_lt_add_right hq.2 _) (by decide)))
  unfold Problem.lseIntegers
  simp only [Int.zero_add]
  split
  · rename_i h
    have hb := F.batch h
    obtain ⟨c₁, c₂, c₃⟩ := sum_bounds hb.1 hh.1 (Int.lt_trans hb.2 (by decide))
      ⟨F.stride 12, sh⟩ (sx := p.lb)
    obtain ⟨f₁, f₂, f₃⟩ := of_sum c₁ c₂ c₃
    exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ ∧ _ from ⟨f₁, f₂, f₃, f₃, fun i hi =>
      beside c₁ c₂ c₃ (F.row hi).1 (row_le hi)⟩)
  · rename_i h
    have hr := (F.rows _ _ h).1
    have c := head_row hh (mul_bounds hh.1 sh) hr
    obtain ⟨f₁, _, f₃⟩ := of_sum c.1 hr.1 c.2
    exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ from ⟨f₁, f₃, f₃, fun i hi =>
      beside c.1 hr.1 c.2 (F.row hi).1 (row_le hi)⟩)

private theorem headIntegers : ∀ P ∈ p.headIntegers pid, P := by
  have hh := F.head
  have hk := F.kvHead
  have hk' := Int.lt_of_le_of_lt hk.2 hh.2
  have fits : ∀ {x s : Int}, 0 ≤ x → x < 2147483648 → 0 ≤ s ∧ s < 2147483648 →
      FitsI64 (x * s) := fun h h' hs =>
    (of_sum (mul_bounds h hs).1 (Int.le_refl 0)
      (head_row ⟨h, h'⟩ (mul_bounds h hs) ⟨Int.le_refl 0, by decide⟩).2).1
  unfold Problem.headIntegers
  split
  · rename_i h
    have hb := F.batch h
    have hb' := Int.lt_of_le_of_lt (Int.le_add_of_nonneg_right hh.1) hb.2
    exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ from
      ⟨fits hb.1 hb' (F.stride 3), fits hk.1 hk' (F.stride 4), fits hb.1 hb' (F.stride 6),
      fits hk.1 hk' (F.stride 7)⟩)
  · rename_i h
    have hr := (F.rows _ _ h).2
    have hr' := Int.lt_trans hr.2 (show (536870912 : Int) < 2147483648 by decide)
    exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ from
      ⟨fits hk.1 hk' (F.stride 4), fits hr.1 hr' (F.stride 5), fits hk.1 hk' (F.stride 7),
      fits hr.1 hr' (F.stride 8)⟩)

/-! ### Which tiles -/

private theorem floorIntegers {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 2147483648) :
    ∀ P ∈ p.floorIntegers x, P := by
  have h₂ : (0 : Int) < p.BN := Int.natCast_pos.mpr F.BN.1
  have h₃ := tdiv_bounds h₂ h₀
  exact all_iff.mp (show _ ∧ _ from
    ⟨fits32 h₃.1 (Int.lt_of_le_of_lt h₃.2.1 h₁), Int.ne_of_gt h₂⟩)

private theorem ceilIntegers {x : Int} (h₀ : 0 ≤ x) (h₁ : x < 2146435072) :
    ∀ P ∈ p.ceilIntegers x, P := by
  have h₂ := F.BN
  have h₃ : (0 : Int) < p.BN := Int.natCast_pos.mpr h₂.1
  have h₄ : 0 ≤ x + (p.BN - 1 : Int) ∧ x + (p.BN - 1 : Int) < 2147483648 := by omega
  have h₅ := tdiv_bounds h₃ h₄.1
  exact all_iff.mp (show _ ∧ _ ∧ _ from ⟨fits32 h₄.1 h₄.2,
    fits32 h₅.1 (Int.lt_of_le_of_lt h₅.2.1 h₄.2), Int.ne_of_gt h₃⟩)

/-- The first row, and the last, on the axis of the keys, and the edges from there. -/
private theorem edge {x : Int} (hx : 0 ≤ x ∧ x < p.qLen) : FitsI32 (x + p.shift) ∧
    (∀ l, p.left = some l → FitsI32 (x + p.shift - l) ∧ x + p.shift - l < 1610612736) ∧
    ∀ r, p.right = some r → FitsI32 (x + p.shift + r) ∧ FitsI32 (x + p.shift + r + 1) := by
  have hq := F.qLen
  have hs := F.shift
  simp only [fitsI32_iff]
  refine ⟨by omega, fun l hl => ?_, fun r hr => ?_⟩
  · have := F.left l hl; omega
  · have := F.right r hr; omega

omit F in
private theorem cut {x : Int} (h : FitsI32 x) : 0 ≤ max x 0 ∧ max x 0 < 2147483648 := by
  exact ⟨Int.le_max_right _ _, Int.max_lt.mpr ⟨(fitsI32_iff.mp h).2, by decide⟩⟩

omit F in
private theorem cut' {x : Int} (h : x < 1610612736) : 0 ≤ max x 0 ∧ max x 0 < 2146435072 :=
  ⟨Int.le_max_right _ _, Int.max_lt.mpr ⟨Int.lt_trans h (by decide), by decide⟩⟩

private theorem tileIntegers : ∀ P ∈ p.tileIntegers pid, P := by
  have hk := F.kvLen
  have hk' : p.kvLen < 2146435072 := Int.lt_trans hk.2 (by decide)
  have hs := F.stopKey
  obtain ⟨f₁, f₂, f₃⟩ := F.edge F.rowFirst
  obtain ⟨l₁, l₂, l₃⟩ := F.edge F.rowLast
  have ceil := F.ceilIntegers hk.1 hk'
  have floor := F.floorIntegers hk.1 (Int.lt_trans hk.2 (by decide))
  have stop := F.ceilIntegers hs.1 (Int.lt_trans hs.2 (by decide))
  unfold Problem.tileIntegers
  split <;> rename_i hl hr <;> simp only [List.forall_mem_append, and_assoc]
  · exact ⟨ceil, floor⟩
  · have f₄ := f₃ _ hr
    have l₄ := l₃ _ hr
    exact ⟨all_iff.mp (show _ ∧ _ ∧ _ from ⟨l₁, l₄.1, l₄.2⟩), stop, ceil,
      all_iff.mp (show _ ∧ _ ∧ _ from ⟨f₁, f₄.1, f₄.2⟩),
      F.floorIntegers (cut f₄.2).1 (cut f₄.2).2, floor⟩
  · have f₅ := f₂ _ hl
    have l₅ := l₂ _ hl
    exact ⟨all_iff.mp (show _ ∧ _ from ⟨f₁, f₅.1⟩), F.floorIntegers (cut f₅.1).1 (cut f₅.1).2,
      ceil, all_iff.mp (show _ ∧ _ from ⟨l₁, l₅.1⟩),
      F.ceilIntegers (cut' l₅.2).1 (cut' l₅.2).2, floor⟩
  · have f₄ := f₃ _ hr
    have l₄ := l₃ _ hr
    have f₅ := f₂ _ hl
    have l₅ := l₂ _ hl
    exact ⟨all_iff.mp (show _ ∧ _ from ⟨f₁, f₅.1⟩),
      all_iff.mp (show _ ∧ _ ∧ _ from ⟨l₁, l₄.1, l₄.2⟩),
      F.floorIntegers (cut f₅.1).1 (cut f₅.1).2, stop, ceil, all_iff.mp l₅.1,
      F.ceilIntegers (cut' l₅.2).1 (cut' l₅.2).2, all_iff.mp (show _ ∧ _ from ⟨f₄.1, f₄.2⟩),
      F.floorIntegers (cut f₄.2).1 (cut f₄.2).2, floor⟩

/-! ### The tiles of keys -/

/-- A tile that is visited begins at a key. -/
private theorem tileBegin {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    0 ≤ t * (p.BN : Int) ∧ t * (p.BN : Int) < 536870912 := by
  have hb := F.BN
  have h₀ := (p.first_le pid hb.1).1
  have hs := F.stopKey
  have h₃ := Int.le_trans h₀ h₁
  refine ⟨Int.mul_nonneg h₃ (Int.natCast_nonneg _), ?_⟩
  simp only [stop] at h₂
  split at h₂
  · exact Int.lt_trans (tile_bounds (Int.natCast_pos.mpr hb.1) ⟨h₃, h₂⟩ hs.1).2 hs.2
  · exact absurd h₃ (Int.not_le.mpr h₂)

omit F in
private theorem offset_bounds {x y z sx sy sn : Int} (hx : 0 ≤ x) (hy : 0 ≤ y)
    (h : x + y < 2684354560) (hs : (0 ≤ sx ∧ sx < 2147483648) ∧ 0 ≤ sy ∧ sy < 2147483648)
    (hz : 0 ≤ z ∧ z < 536870912) (hn : 0 ≤ sn ∧ sn < 2147483648) :
    0 ≤ x * sx ∧ 0 ≤ y * sy ∧ 0 ≤ z * sn ∧
      x * sx + (y * sy + z * sn) ≤ 6917529027641081856 := by
  obtain ⟨c₁, c₂, c₃⟩ := sum_bounds hx hy h hs
  have c₄ := mul_bounds hz.1 hn
  exact ⟨c₁, c₂, c₄.1, by omega⟩

omit F in
private theorem near {a b c x : Int}
    (h : 0 ≤ a ∧ 0 ≤ b ∧ 0 ≤ c ∧ a + (b + c) ≤ 6917529027641081856) (h₀ : 0 ≤ x)
    (h₁ : x < 2147483648) : FitsI64 (a + (b + c) + x) :=
  fits64 (Int.add_nonneg (Int.add_nonneg h.1 (Int.add_nonneg h.2.1 h.2.2.1)) h₀)
    (Int.lt_trans (Int.add_lt_add_of_le_of_lt h.2.2.2 h₁) (by decide))

omit F in
private theorem tileOffsets {x y t sx sy sn : Int} (h : 0 ≤ x * sx ∧ 0 ≤ y * sy ∧
    0 ≤ t * p.BN * sn ∧ x * sx + (y * sy + t * p.BN * sn) ≤ 6917529027641081856) :
    ∀ P ∈ p.tileOffsets t x sx y sy sn, P := by
  simp only [Problem.tileOffsets, Int.zero_add]
  obtain ⟨h₁, h₂, h₃, h₄⟩ := h
  have h₅ := Int.add_nonneg h₂ h₃
  have h₆ := Int.lt_of_le_of_lt h₄ (show _ < (9223372036854775808 : Int) by decide)
  have h₇ := Int.lt_of_le_of_lt (Int.le_add_of_nonneg_left h₁) h₆
  exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ from
    ⟨fits64 h₃ (Int.lt_of_le_of_lt (Int.le_add_of_nonneg_left h₂) h₇), fits64 h₅ h₇,
      fits64 (Int.add_nonneg h₁ h₅) h₆, fits64 (Int.add_nonneg h₁ h₅) h₆⟩)

omit F in
private theorem lane_bounds {n i : Nat} {s : Int} (hi : i < n) (h₀ : 0 ≤ s)
    (h : n * s + 256 ≤ 2147483648) : 0 ≤ (i : Int) * s ∧ (i : Int) * s ≤ 2147483648 - 256 := by
  have h₁ : (i : Int) * s ≤ n * s :=
    Int.mul_le_mul_of_nonneg_right (Int.ofNat_le.mpr (Nat.le_of_lt hi)) h₀
  exact ⟨Int.mul_nonneg (Int.natCast_nonneg i) h₀, Int.le_trans h₁ (Int.le_sub_right_of_add_le h)⟩

/-- Where the tile begins in the tensors of keys and values, and that an element lies not far from
there. -/
private theorem bases {t : Int} (ht : 0 ≤ t * (p.BN : Int) ∧ t * (p.BN : Int) < 536870912) :
    (∀ P ∈ p.tileBases pid t, P) ∧
    (∀ {n j : Nat} {x : Int}, x = n + j * p.kn → 0 ≤ x → x < 2147483648 →
      FitsI64 (p.keyPtr pid t n j)) ∧
    ∀ {j c : Nat} {x : Int}, x = j * p.vn + c → 0 ≤ x → x < 2147483648 →
      FitsI64 (p.valuePtr pid t j c) := by
  have hh := F.head
  have hk := F.kvHead
  have kn : 0 ≤ p.kn ∧ p.kn < 2147483648 := F.stride 5
  have vn : 0 ≤ p.vn ∧ p.vn < 2147483648 := F.stride 8
  have kh : 0 ≤ p.kh ∧ p.kh < 2147483648 := F.stride 4
  have vh : 0 ≤ p.vh ∧ p.vh < 2147483648 := F.stride 7
  unfold Problem.tileBases
  split <;> rename_i h
  · have hb := F.batch h
    have hs := Int.lt_trans (Int.lt_of_le_of_lt (Int.add_le_add_left hk.2 _) hb.2)
      (show (2147483648 : Int) < 2684354560 by decide)
    have b₁ := offset_bounds (sx := p.kb) hb.1 hk.1 hs ⟨F.stride 3, kh⟩ ht kn
    have b₂ := offset_bounds (sx := p.vb) hb.1 hk.1 hs ⟨F.stride 6, vh⟩ ht vn
    refine ⟨List.forall_mem_append.mpr ⟨tileOffsets b₁, tileOffsets b₂⟩, fun hx h₀ h₁ => ?_,
      fun hx h₀ h₁ => ?_⟩
    · simp only [Problem.keyPtr, h, ← hx, Int.zero_add]
      exact near b₁ h₀ h₁
    · simp only [Problem.valuePtr, h, ← hx, Int.zero_add]
      exact near b₂ h₀ h₁
  · have hr := (F.rows _ _ h).2
    have hs := Int.add_lt_add (Int.lt_of_le_of_lt hk.2 hh.2) hr.2
    have b₁ := offset_bounds hk.1 hr.1 hs ⟨kh, kn⟩ ht kn
    have b₂ := offset_bounds hk.1 hr.1 hs ⟨vh, vn⟩ ht vn
    refine ⟨List.forall_mem_append.mpr ⟨tileOffsets b₁, tileOffsets b₂⟩, fun hx h₀ h₁ => ?_,
      fun hx h₀ h₁ => ?_⟩
    · simp only [Problem.keyPtr, h, ← hx, Int.zero_add]
      exact near b₁ h₀ h₁
    · simp only [Problem.valuePtr, h, ← hx, Int.zero_add]
      exact near b₂ h₀ h₁

omit F in
private theorem lane_fits {n w : Nat} {x : Int} (hn : n < w) (hw : w ≤ 256)
    (hx : 0 ≤ x ∧ x ≤ 2147483648 - 256) : 0 ≤ x + n ∧ x + n < 2147483648 := by
  omega

private theorem laneIntegers {t : Int}
    (ht : 0 ≤ t * (p.BN : Int) ∧ t * (p.BN : Int) < 536870912) :
    ∀ P ∈ p.laneIntegers pid t, P := by
  obtain ⟨_, bk, bv⟩ := F.bases ht
  have kn : 0 ≤ p.kn ∧ p.kn < 2147483648 := F.stride 5
  have vn : 0 ≤ p.vn ∧ p.vn < 2147483648 := F.stride 8
  have lk := fun {j : Nat} (hj : j < p.BN) => lane_bounds hj kn.1 F.keys
  have lv := fun {j : Nat} (hj : j < p.BN) => lane_bounds hj vn.1 F.values
  have ck : ∀ {n j : Nat}, n < p.BD → j < p.BN →
      0 ≤ (n + j * p.kn : Int) ∧ (n + j * p.kn : Int) < 2147483648 := fun hn hj =>
    Int.add_comm _ _ ▸ lane_fits hn F.BD (lk hj)
  have cv : ∀ {j c : Nat}, c < p.BV → j < p.BN →
      0 ≤ (j * p.vn + c : Int) ∧ (j * p.vn + c : Int) < 2147483648 := fun hc hj =>
    lane_fits hc F.BV (lv hj)
  exact all_iff.mp (show _ ∧ _ ∧ _ ∧ _ ∧ _ ∧ _ from
    ⟨fun j hj => fits32 (lk hj).1 (Int.lt_of_le_of_lt (lk hj).2 (by decide)),
    fun j hj => fits32 (lv hj).1 (Int.lt_of_le_of_lt (lv hj).2 (by decide)),
    fun n hn j hj => fits32 (ck hn hj).1 (ck hn hj).2,
    fun n hn j hj => bk rfl (ck hn hj).1 (ck hn hj).2,
    fun j hj c hc => fits32 (cv hc hj).1 (cv hc hj).2,
    fun j hj c hc => bv rfl (cv hc hj).1 (cv hc hj).2⟩)

private theorem edgeIntegers : ∀ P ∈ p.edgeIntegers pid, P := by
  have hq := F.qLen
  have hs := F.shift
  refine List.forall_mem_append.mpr ⟨?_, ?_⟩ <;> split <;> rename_i h
  · exact List.forall_mem_nil _
  · have hl := F.left _ h
    refine all_iff.mp fun i hi _ _ => ?_
    have hr := F.row hi
    simp only [fitsI32_iff]
    omega
  · exact List.forall_mem_nil _
  · have hl := F.right _ h
    refine all_iff.mp fun i hi _ _ => ?_
    have hr := F.row hi
    simp only [fitsI32_iff]
    omega

private theorem wholeIntegers {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    ∀ P ∈ p.wholeIntegers pid t, P := by
  have ht := F.tileBegin h₁ h₂
  exact List.forall_mem_cons.mpr ⟨fits32 ht.1 (Int.lt_trans ht.2 (by decide)),
    List.forall_mem_append.mpr ⟨(F.bases ht).1, F.laneIntegers ht⟩⟩

private theorem checkedIntegers {t : Int} (h₁ : p.first pid ≤ t) (h₂ : t < p.stop pid) :
    ∀ P ∈ p.checkedIntegers pid t, P := by
  have ht := F.tileBegin h₁ h₂
  have hb := F.BN
  exact List.forall_mem_cons.mpr ⟨fits32 ht.1 (Int.lt_trans ht.2 (by decide)),
    List.forall_mem_cons.mpr ⟨fun j hj => fits32 (Int.add_nonneg ht.1 (Int.natCast_nonneg _))
      (by clear h₁ h₂; omega),
    List.forall_mem_append.mpr ⟨List.forall_mem_append.mpr ⟨(F.bases ht).1, F.laneIntegers ht⟩,
      F.edgeIntegers⟩⟩⟩

/-- **All integers after the early return fit their types.** -/
theorem integers : ∀ P ∈ p.integers pid, P := by
  have o := p.first_le pid F.BN.1
  simp only [Problem.integers, List.forall_mem_append]
  refine ⟨⟨⟨⟨⟨?_, F.headIntegers⟩, F.tileIntegers⟩, all_loops F.BN.1
    (fun t h h' => all_iff.mpr (F.wholeIntegers (Int.le_trans o.2.1 h)
      (Int.lt_of_lt_of_le h' o.2.2.2)))
    fun t h h' => all_iff.mpr (F.checkedIntegers h h')⟩, F.outIntegers⟩, F.lseIntegers⟩
  split
  · exact List.forall_mem_append.mpr ⟨F.rowIntegers, F.queryIntegers⟩
  · simp only [List.forall_mem_append]
    exact ⟨⟨⟨F.lastIntegers, F.rowIntegers⟩, F.queryIntegers⟩, F.shiftedIntegers⟩

end Facts

end Attention.Kernel.Problem
