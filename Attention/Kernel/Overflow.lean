module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
public import Attention.Kernel.Integers
public import Attention.Kernel.PackedSized
public import Attention.Kernel.Sized
public import Attention.Kernel.TextConditions

public section

/-! # No integer of the forward kernel overflows

`Full.NoOverflow` and its kin ask that the value of each integer operation of the text fits its
type, in every lane and in every iteration that is run, and that no divisor is 0. `Problem.Within`
and `Packed.Within` are what a launch guarantees for it. -/

namespace Attention.Kernel

open Spec

universe u

namespace Problem

variable {R : Type u} {d d_v q_len kv_len batches num_kv_heads group : Nat}

/-- The launcher sees to this, and Triton (`BM`, `BN`: a tile has at most 2²⁰ elements).
Source: `pyimpl/backends/kernels/parts/launch.py`. -/
structure Within (p : Problem R) (batches heads q_len : Nat) : Prop where
  BM : p.BM ≤ 2 ^ 20
  BN : p.BN ≤ 2 ^ 20
  /-- `MAX_HEAD_DIM`. -/
  BD : p.BD ≤ 256
  BV : p.BV ≤ 256
  /-- `check_length`. -/
  qLen : p.qLen < 2 ^ 29
  kvLen : p.kvLen < 2 ^ 29
  /-- `check_programs`. -/
  programs : numTiles q_len p.BM * (batches * heads) < 2 ^ 31
  /-- `is_far` is false. -/
  keys : p.BN * p.kn + 256 ≤ 2 ^ 31
  values : p.BN * p.vn + 256 ≤ 2 ^ 31
  /-- PyTorch has no strides below 0, and for one that passes 32 bits Triton makes another text. -/
  strides : ∀ s ∈ p.strides, 0 ≤ s ∧ s < 2 ^ 31
  /-- `window_arguments`; a bound that excludes nothing is not given. -/
  shift : -2 ^ 29 < p.shift ∧ p.shift < 2 ^ 29
  left : ∀ l, p.left = some l → 0 ≤ l ∧ 0 < p.qLen - 1 + p.shift - l
  right : ∀ r, p.right = some r → 0 ≤ r ∧ p.shift + r < p.kvLen - 1

variable {p : Problem R} {pid : Int}

private theorem Sized.noOverflow (S : p.Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : p.Within batches (num_kv_heads * group) q_len)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) :
    All (p.programIntegers pid ++ p.integers pid) := by
  have hq : 0 ≤ p.qLen ∧ p.qLen < 536870912 := ⟨S.qLen ▸ Int.natCast_nonneg _, W.qLen⟩
  have hkv : 0 ≤ p.kvLen ∧ p.kvLen < 536870912 := ⟨S.kvLen ▸ Int.natCast_nonneg _, W.kvLen⟩
  have eq : p.tilesLen = p.qLen := S.tilesLen.trans S.qLen.symm
  have F := started (pid := pid) ⟨S.BM, W.BM⟩ S.tilesLen (by have := S.qLen; omega) S.numHeads
    S.perHead W.programs hp.1 hp.2
  have hs : -536870912 < p.shift ∧ p.shift < 536870912 := W.shift
  have head := F.places
  refine all_iff.mpr (List.forall_mem_append.mpr ⟨F.program, Facts.integers
    { BM := F.BM, BN := ⟨S.BN, W.BN⟩, BD := W.BD, BV := W.BV, qLen := hq, kvLen := hkv
      tile := ⟨F.tile.1, Int.lt_trans F.tile.2 F.tiles.2⟩
      rowFirst := eq ▸ F.rowFirst
      head := ⟨head.2.1, by omega⟩, kvHead := F.kvHead, batch := fun _ => ⟨head.1, head.2.2⟩
      rows := fun q k h => by rw [S.packed] at h; cases h
      shift := by omega
      left := fun l hl => ?_, right := fun r hr => ?_
      keys := W.keys, values := W.values, strides := W.strides }⟩)
  · have := W.left l hl
    clear F head
    omega
  · have := W.right r hr
    clear F head
    omega

end Problem

namespace Packed

variable {R : Type u} {d d_v n q_len kv_len max_q_len num_kv_heads group : Nat}

/-- The launcher sees to this of packed sequences, and Triton: as `Problem.Within`.
Source: `pyimpl/backends/kernels/parts/launch.py` and `sequences.py`. -/
structure Within (a : Forward.Args R) (n heads max_q_len : Nat) (alignment : Alignment)
    (e : Forward.Edges) : Prop where
  BM : a.BLOCK_M ≤ 2 ^ 20
  BN : a.BLOCK_N ≤ 2 ^ 20
  BD : a.BLOCK_D ≤ 256
  BV : a.BLOCK_V ≤ 256
  /-- Of all sequences together. -/
  qLen : a.q_len < 2 ^ 29
  kvLen : a.kv_len < 2 ^ 29
  maxLen : a.max_q_len ≤ a.q_len
  programs : numTiles max_q_len a.BLOCK_M * (n * heads) < 2 ^ 31
  keys : a.BLOCK_N * a.stride_kn + 256 ≤ 2 ^ 31
  values : a.BLOCK_N * a.stride_vn + 256 ≤ 2 ^ 31
  /-- There are none from batch to batch. -/
  strides : ∀ s ∈ [a.stride_qh, a.stride_qm, a.stride_kh, a.stride_kn, a.stride_vh, a.stride_vn,
    a.stride_oh, a.stride_om, a.stride_lh, a.stride_xb, a.stride_yb], 0 ≤ s ∧ s < 2 ^ 31
  shift : -2 ^ 29 < a.shift ∧ a.shift < 2 ^ 29
  /-- `window_arguments` by the highest shift that a sequence may have, and by the lowest. -/
  left : ∀ l, e.leftEdge = some l →
    0 < a.q_len - 1 + a.shift + (if atEnd alignment then a.kv_len else 0) - l
  right : ∀ r, e.rightEdge = some r →
    a.shift - (if atEnd alignment then a.q_len else 0) + r < a.kv_len - 1

variable {a : Forward.Args R} {pid : Int}

private theorem shift_eq (alignment : Alignment) (e : Forward.Edges) :
    (problem a alignment e pid).shift = if atEnd alignment then a.shift +
      (problem a alignment e pid).kvLen - (problem a alignment e pid).qLen else a.shift := by
  cases alignment <;> rfl

/-- The bounds of the window, of each sequence. -/
private theorem Within.window {heads : Nat} {alignment : Alignment} {e : Forward.Edges}
    (W : Within a n heads max_q_len alignment e)
    (hq : 0 ≤ (problem a alignment e pid).qLen ∧ (problem a alignment e pid).qLen ≤ a.q_len)
    (hk : 0 ≤ (problem a alignment e pid).kvLen ∧ (problem a alignment e pid).kvLen ≤ a.kv_len) :
    (-1073741824 < (problem a alignment e pid).shift ∧
      (problem a alignment e pid).shift < 1073741824) ∧
    (∀ l, (problem a alignment e pid).left = some l →
      0 ≤ l ∧ -1610612736 < (problem a alignment e pid).shift - l) ∧
    ∀ r, (problem a alignment e pid).right = some r → 0 ≤ r ∧ (problem a alignment e pid).qLen +
      (problem a alignment e pid).shift + r < 1610612736 := by
  have tq : a.q_len < 536870912 := W.qLen
  have tk : a.kv_len < 536870912 := W.kvLen
  have hs : -536870912 < a.shift ∧ a.shift < 536870912 := W.shift
  rw [shift_eq]
  refine ⟨by split <;> omega, fun x hx => ?_, fun x hx => ?_⟩
  · obtain ⟨l, hl, rfl⟩ := Option.map_eq_some_iff.mp hx
    have := W.left l hl
    refine ⟨Int.natCast_nonneg l, ?_⟩
    simp only [Int.ofNat_eq_natCast]
    by_cases h : atEnd alignment = true
    · rw [if_pos h] at this ⊢; omega
    · rw [if_neg h] at this ⊢; omega
  · obtain ⟨r, hr, rfl⟩ := Option.map_eq_some_iff.mp hx
    have := W.right r hr
    refine ⟨Int.natCast_nonneg r, ?_⟩
    simp only [Int.ofNat_eq_natCast]
    by_cases h : atEnd alignment = true
    · rw [if_pos h] at this ⊢; omega
    · rw [if_neg h] at this ⊢; omega

private theorem Sized.noOverflow (S : Sized a n num_kv_heads group max_q_len q_len kv_len d d_v)
    {alignment : Alignment} {e : Forward.Edges}
    (W : Within a n (num_kv_heads * group) max_q_len alignment e) (h₀ : 0 ≤ pid)
    (h₁ : pid < (numTiles max_q_len a.BLOCK_M * (n * (num_kv_heads * group)) : Nat)) :
    All ((problem a alignment e pid).programIntegers pid ++
      (problem a alignment e pid).sequenceIntegers (Forward.sequence a pid) a.stride_xb
        a.stride_yb ++
      (shiftIntegers a pid alignment e ++ (problem a alignment e pid).integers pid).map
        ((problem a alignment e pid).live pid)) := by
  have rq := rows_inside (total := q_len) a.cu_q_ptr a.stride_xb (Forward.sequence a pid)
  have rk := rows_inside (total := kv_len) a.cu_k_ptr a.stride_yb (Forward.sequence a pid)
  rw [← S.qLen] at rq
  rw [← S.kvLen] at rk
  have tq : a.q_len < 536870912 := W.qLen
  have tk : a.kv_len < 536870912 := W.kvLen
  have eq : (problem a alignment e pid).qLen =
      Forward.stopRow a.cu_q_ptr a.stride_xb a.q_len (Forward.sequence a pid) -
        Forward.firstRow a.cu_q_ptr a.stride_xb a.q_len (Forward.sequence a pid) := rfl
  have ek : (problem a alignment e pid).kvLen =
      Forward.stopRow a.cu_k_ptr a.stride_yb a.kv_len (Forward.sequence a pid) -
        Forward.firstRow a.cu_k_ptr a.stride_yb a.kv_len (Forward.sequence a pid) := rfl
  have F := Problem.started (p := problem a alignment e pid) (pid := pid) ⟨S.BM, W.BM⟩ S.maxLen
    (by have := S.maxLen; have := W.maxLen; omega) S.numHeads S.perHead W.programs h₀ h₁
  have places : 0 ≤ Forward.sequence a pid ∧ 0 ≤ (problem a alignment e pid).head pid ∧
    Forward.sequence a pid + (problem a alignment e pid).head pid < 2147483648 := F.places
  have hq : 0 ≤ (problem a alignment e pid).qLen ∧ (problem a alignment e pid).qLen ≤ a.q_len := by
    rw [eq]
    exact ⟨Int.sub_nonneg_of_le rq.2.1, Int.le_trans (Int.sub_le_self _ rq.1) rq.2.2⟩
  have hkv : 0 ≤ (problem a alignment e pid).kvLen ∧
      (problem a alignment e pid).kvLen ≤ a.kv_len := by
    rw [ek]
    exact ⟨Int.sub_nonneg_of_le rk.2.1, Int.le_trans (Int.sub_le_self _ rk.1) rk.2.2⟩
  have qLen := And.intro hq.1 (Int.lt_of_le_of_lt hq.2 tq)
  have kvLen := And.intro hkv.1 (Int.lt_of_le_of_lt hkv.2 tk)
  obtain ⟨ws, wl, wr⟩ := W.window hq hkv
  have hs : -536870912 < a.shift ∧ a.shift < 536870912 := W.shift
  have stride : ∀ {s}, s ∈ [a.stride_qh, a.stride_qm, a.stride_kh, a.stride_kn, a.stride_vh,
    a.stride_vn, a.stride_oh, a.stride_om, a.stride_lh, a.stride_xb, a.stride_yb] →
    0 ≤ s ∧ s < 2147483648 := fun h => W.strides _ h
  refine all_iff.mpr (List.forall_mem_append.mpr ⟨List.forall_mem_append.mpr ⟨F.program,
    Problem.sequence ⟨places.1, Int.lt_of_le_of_lt (Int.le_add_of_nonneg_right places.2.1)
      places.2.2⟩ (stride (by simp)) (stride (by simp)) qLen kvLen⟩,
    Problem.all_live fun hrow => List.forall_mem_append.mpr ⟨?_, Problem.Facts.integers
      { BM := F.BM, BN := ⟨S.BN, W.BN⟩, BD := W.BD, BV := W.BV
        qLen := qLen, kvLen := kvLen
        tile := ⟨F.tile.1, Int.lt_trans F.tile.2 F.tiles.2⟩
        rowFirst := ⟨F.rowFirst.1, hrow⟩
        head := ⟨places.2.1,
          Int.lt_of_le_of_lt (Int.le_add_of_nonneg_left places.1) places.2.2⟩
        kvHead := F.kvHead
        batch := fun h => by cases h
        rows := fun q k h => ?_
        shift := ws, left := wl, right := wr
        keys := W.keys, values := W.values, strides := fun s hs => ?_ }⟩⟩)
  · unfold shiftIntegers
    split
    · exact List.forall_mem_nil _
    · exact List.forall_mem_nil _
    · refine all_iff.mp (show FitsI32 _ ∧ FitsI32 _ from ?_)
      simp only [Problem.fitsI32_iff]
      omega
  · obtain ⟨rfl, rfl⟩ := Prod.mk.inj (Option.some.inj h)
    exact ⟨⟨rq.1, Int.lt_of_le_of_lt (Int.le_trans rq.2.1 rq.2.2) tq⟩, rk.1,
      Int.lt_of_le_of_lt (Int.le_trans rk.2.1 rk.2.2) tk⟩
  · have zero : (0 : Int) ≤ 0 ∧ (0 : Int) < 2147483648 := by decide
    have all : ∀ s ∈ [0, a.stride_qh, a.stride_qm, 0, a.stride_kh, a.stride_kn, 0, a.stride_vh,
        a.stride_vn, 0, a.stride_oh, a.stride_om, 0, a.stride_lh], 0 ≤ s ∧ s < 2147483648 := by
      simp only [List.forall_mem_cons]
      exact ⟨zero, stride (by simp), stride (by simp), zero, stride (by simp), stride (by simp),
        zero, stride (by simp), stride (by simp), zero, stride (by simp), stride (by simp), zero,
        stride (by simp), List.forall_mem_nil _⟩
    exact all s hs

end Packed

/-! ## The texts -/

variable {R : Type u} [OrderedField R] [Exp R R]
variable {d d_v q_len kv_len batches num_kv_heads group : Nat} {pid : Int}

/-- **No integer overflows** in the text without a window: in every program of a launch the value of
each integer operation fits its type. -/
theorem Full.noOverflow {a : Full.Args R}
    (S : (Full.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (Full.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Full.NoOverflow a pid :=
  (Prod.mk.inj (Prod.mk.inj (Full.conditions_eq a pid)).2).2.mpr (S.noOverflow W hp)

/-- **No integer overflows** in the text with a right edge: in every program of a launch the value
of each integer operation fits its type. -/
theorem Causal.noOverflow {a : Causal.Args R}
    (S : (Causal.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (Causal.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Causal.NoOverflow a pid :=
  (Prod.mk.inj (Prod.mk.inj (Causal.conditions_eq a pid)).2).2.mpr (S.noOverflow W hp)

/-- **No integer overflows** in the text with a left edge: in every program of a launch the value of
each integer operation fits its type. -/
theorem Left.noOverflow {a : Left.Args R}
    (S : (Left.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (Left.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Left.NoOverflow a pid :=
  (Prod.mk.inj (Prod.mk.inj (Left.conditions_eq a pid)).2).2.mpr (S.noOverflow W hp)

/-- **No integer overflows** in the text with both edges: in every program of a launch the value of
each integer operation fits its type. -/
theorem Window.noOverflow {a : Window.Args R}
    (S : (Window.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (Window.problem a).Within batches (num_kv_heads * group) q_len)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Window.NoOverflow a pid :=
  (Prod.mk.inj (Prod.mk.inj (Window.conditions_eq a pid)).2).2.mpr (S.noOverflow W hp)

/-- **No integer overflows** in the texts for sizes that do not fill their tiles: in every program
of a launch the value of each integer operation fits its type. -/
theorem Padded.noOverflow {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (S : (problem a e).Sized batches num_kv_heads group q_len kv_len d d_v)
    (W : (problem a e).Within batches (num_kv_heads * group) q_len) (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    NoOverflow a pid e :=
  (Prod.mk.inj (Prod.mk.inj (conditions_eq he pid)).2).2.mpr (S.noOverflow W hp)

/-- **No integer overflows** in the texts for packed sequences: in every program of a launch the
value of each integer operation fits its type, whatever the numbers are that say where sequences
begin. -/
theorem Packed.noOverflow {n max_q_len : Nat} {a : Forward.Args R} {e : Forward.Edges}
    (he : e.Given a) (S : Sized a n num_kv_heads group max_q_len q_len kv_len d d_v)
    {alignment : Alignment} (W : Within a n (num_kv_heads * group) max_q_len alignment e)
    (hp : 0 ≤ pid ∧
      pid < (numTiles max_q_len a.BLOCK_M * (n * (num_kv_heads * group)) : Nat)) :
    NoOverflow a pid alignment e :=
  (Prod.mk.inj (Prod.mk.inj (conditions_eq he alignment pid)).2).2.mpr
    (S.noOverflow W hp.1 hp.2)

end Attention.Kernel
