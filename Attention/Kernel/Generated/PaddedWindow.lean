module

public import Attention.Kernel.Generated.Causal
public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.Left
public import Attention.Kernel.Generated.PaddedFull
public import Attention.Kernel.Generated.Window

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: PaddedWindow

With a window, heads padded. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev PaddedWindow.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

/-- The loop's first tile. -/
@[expose] noncomputable def PaddedWindow.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_1 a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PaddedWindow.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One iteration. -/
@[expose] noncomputable def PaddedWindow.loop1.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PaddedWindow.loop1.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] noncomputable def PaddedWindow.loop1.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PaddedWindow.loop1.firstTile a pid)
    (PaddedWindow.loop1.stopTile a pid)
    (PaddedWindow.loop1.body a pid) (PaddedWindow.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def PaddedWindow.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PaddedWindow.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One iteration. -/
@[expose] noncomputable def PaddedWindow.loop2.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PaddedFull.loop1.m_new a pid t s i), fun i => (PaddedFull.loop1.l a pid t s i), fun i j
    => (PaddedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PaddedWindow.loop2.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((PaddedWindow.loop1.result a pid).1 i), fun i => ((PaddedWindow.loop1.result a pid).2.1
    i), fun i j => ((PaddedWindow.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def PaddedWindow.loop2.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PaddedWindow.loop2.firstTile a pid)
    (PaddedWindow.loop2.stopTile a pid)
    (PaddedWindow.loop2.body a pid) (PaddedWindow.loop2.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def PaddedWindow.loop3.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PaddedWindow.loop3.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_2 a pid)
/-- One iteration. -/
@[expose] noncomputable def PaddedWindow.loop3.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PaddedWindow.loop3.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((PaddedWindow.loop2.result a pid).1 i), fun i => ((PaddedWindow.loop2.result a pid).2.1
    i), fun i j => ((PaddedWindow.loop2.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def PaddedWindow.loop3.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PaddedWindow.loop3.firstTile a pid)
    (PaddedWindow.loop3.stopTile a pid)
    (PaddedWindow.loop3.body a pid) (PaddedWindow.loop3.start a pid)
@[expose] noncomputable def PaddedWindow.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PaddedWindow.loop3.result a pid).2.1 i) (Flt.num 0)
@[expose] noncomputable def PaddedWindow.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PaddedWindow.none_ a pid i) then (Flt.num 1) else ((PaddedWindow.loop3.result a
    pid).2.1 i)
@[expose] noncomputable def PaddedWindow.divf (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PaddedWindow.loop3.result a pid).2.2 i j) (PaddedWindow.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] noncomputable def PaddedWindow.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Full.stored a pid i j), (Full.out_ptrs a pid i j)⟩, (PaddedWindow.divf a pid i j)⟩
@[expose] noncomputable def PaddedWindow.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PaddedWindow.loop3.result a pid).1 i) (Flt.num a.ln2)
@[expose] noncomputable def PaddedWindow.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PaddedWindow.select a pid i)
@[expose] noncomputable def PaddedWindow.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PaddedWindow.mulf a pid i) (PaddedWindow.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] noncomputable def PaddedWindow.store_lse_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Full.inside a pid i), (Full.addptr a pid i)⟩, (PaddedWindow.addf a pid i)⟩
/-- The state before iteration t. -/
@[expose] noncomputable def PaddedWindow.loop1.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PaddedWindow.loop1.firstTile a pid) t
    (PaddedWindow.loop1.body a pid) (PaddedWindow.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PaddedWindow.loop1.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Window.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (Window.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PaddedWindow.loop1.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Window.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Window.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PaddedWindow.loop1.NoOverflow (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    : Prop :=
  (FitsI32 (Full.loop1.begin a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop2.keys a pid t s i)) ∧
  (FitsI64 (Full.loop1.key_base_1 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_2 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_3 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_1 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_2 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_3 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Full.loop1.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Full.loop1.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI32 (Full.loop1.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (Full.loop1.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Left.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Causal.loop2.visible_1 a pid t s i j))
/-- The state before iteration t. -/
@[expose] noncomputable def PaddedWindow.loop2.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PaddedWindow.loop2.firstTile a pid) t
    (PaddedWindow.loop2.body a pid) (PaddedWindow.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PaddedWindow.loop2.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PaddedFull.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PaddedFull.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PaddedWindow.loop2.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PaddedFull.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PaddedFull.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PaddedWindow.loop2.NoOverflow (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    : Prop :=
  (FitsI32 (Full.loop1.begin a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_1 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_2 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_3 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_1 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_2 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_3 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Full.loop1.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Full.loop1.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI32 (Full.loop1.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (Full.loop1.value_ptrs a pid t s i j))
/-- The state before iteration t. -/
@[expose] noncomputable def PaddedWindow.loop3.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PaddedWindow.loop3.firstTile a pid) t
    (PaddedWindow.loop3.body a pid) (PaddedWindow.loop3.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PaddedWindow.loop3.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Window.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (Window.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PaddedWindow.loop3.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Window.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Window.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PaddedWindow.loop3.NoOverflow (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    : Prop :=
  (FitsI32 (Full.loop1.begin a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop2.keys a pid t s i)) ∧
  (FitsI64 (Full.loop1.key_base_1 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_2 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_3 a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_1 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_2 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_3 a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Full.loop1.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Full.loop1.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI32 (Full.loop1.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (Full.loop1.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Left.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Causal.loop2.visible_1 a pid t s i j))
/-- What `P` asks of each access. -/
@[expose] noncomputable def PaddedWindow.Accesses (a : Forward.Args R) (pid : Int)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr (Full.load_q a pid i j)) ∧
  (∀ t, PaddedWindow.loop1.firstTile a pid ≤ t → t < PaddedWindow.loop1.stopTile a pid →
    PaddedWindow.loop1.Accesses a pid t (PaddedWindow.loop1.before a pid t) P) ∧
  (∀ t, PaddedWindow.loop2.firstTile a pid ≤ t → t < PaddedWindow.loop2.stopTile a pid →
    PaddedWindow.loop2.Accesses a pid t (PaddedWindow.loop2.before a pid t) P) ∧
  (∀ t, PaddedWindow.loop3.firstTile a pid ≤ t → t < PaddedWindow.loop3.stopTile a pid →
    PaddedWindow.loop3.Accesses a pid t (PaddedWindow.loop3.before a pid t) P) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, P.out_ptr (PaddedWindow.store_out_ptr a pid i j).toAccess) ∧
  (∀ i < a.BLOCK_M, P.lse_ptr (PaddedWindow.store_lse_ptr a pid i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] noncomputable def PaddedWindow.Exponents (a : Forward.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  (∀ t, PaddedWindow.loop1.firstTile a pid ≤ t → t < PaddedWindow.loop1.stopTile a pid →
    PaddedWindow.loop1.Exponents a pid t (PaddedWindow.loop1.before a pid t) P) ∧
  (∀ t, PaddedWindow.loop2.firstTile a pid ≤ t → t < PaddedWindow.loop2.stopTile a pid →
    PaddedWindow.loop2.Exponents a pid t (PaddedWindow.loop2.before a pid t) P) ∧
  (∀ t, PaddedWindow.loop3.firstTile a pid ≤ t → t < PaddedWindow.loop3.stopTile a pid →
    PaddedWindow.loop3.Exponents a pid t (PaddedWindow.loop3.before a pid t) P)
/-- No integer operation overflows. -/
@[expose] noncomputable def PaddedWindow.NoOverflow (a : Forward.Args R) (pid : Int)
    : Prop :=
  (FitsI32 (Full.query_tiles_1 a pid)) ∧
  (FitsI32 (Full.query_tiles a pid)) ∧
  ((a.BLOCK_M : Int) ≠ 0) ∧
  (FitsI32 (Full.tile_1 a pid)) ∧
  (FitsI32 (Full.tile_2 a pid)) ∧
  ((Full.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (Int.tdiv pid (Full.query_tiles a pid))) ∧
  (FitsI32 (Full.tile a pid)) ∧
  (FitsI32 (Full.head_1 a pid)) ∧
  ((Full.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (Full.batch a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (Full.head a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (Int.tdiv (Full.head_1 a pid) a.num_heads)) ∧
  (FitsI64 (Full.kv_head a pid)) ∧
  (a.group ≠ 0) ∧
  (FitsI32 (Full.row_first a pid)) ∧
  (FitsI32 (Causal.row_last_1 a pid)) ∧
  (FitsI32 (Causal.row_last_2 a pid)) ∧
  (FitsI32 (Causal.row_last a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Full.queries a pid i)) ∧
  (FitsI64 (Full.found_1 a pid)) ∧
  (FitsI64 (Full.found_2 a pid)) ∧
  (FitsI64 (Full.found_3 a pid)) ∧
  (FitsI64 (Full.found_4 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Full.found_5 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Full.query_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64 (Full.query_ptrs a pid i j)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Causal.rows a pid i)) ∧
  (FitsI64 (Full.found_7 a pid)) ∧
  (FitsI64 (Full.found_8 a pid)) ∧
  (FitsI64 (Full.found_9 a pid)) ∧
  (FitsI64 (Full.found_10 a pid)) ∧
  (FitsI32 (Causal.seen_1 a pid)) ∧
  (FitsI32 (Left.first_2 a pid)) ∧
  (FitsI32 (Causal.stop_1 a pid)) ∧
  (FitsI32 (Causal.stop_2 a pid)) ∧
  (FitsI32 (Causal.stop_3 a pid)) ∧
  (FitsI32 (Left.divsi_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Causal.addi a pid)) ∧
  (FitsI32 (Causal.divsi a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Full.addi a pid)) ∧
  (FitsI32 (Full.divsi a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Left.first_5 a pid)) ∧
  (FitsI32 (Left.first_7 a pid)) ∧
  (FitsI32 (Left.first a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Causal.seen_2 a pid)) ∧
  (FitsI32 (Causal.seen_3 a pid)) ∧
  (FitsI32 (Causal.stop_9 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Full.whole_stop_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (∀ t, PaddedWindow.loop1.firstTile a pid ≤ t → t < PaddedWindow.loop1.stopTile a pid →
    PaddedWindow.loop1.NoOverflow a pid t (PaddedWindow.loop1.before a pid t)) ∧
  (∀ t, PaddedWindow.loop2.firstTile a pid ≤ t → t < PaddedWindow.loop2.stopTile a pid →
    PaddedWindow.loop2.NoOverflow a pid t (PaddedWindow.loop2.before a pid t)) ∧
  (∀ t, PaddedWindow.loop3.firstTile a pid ≤ t → t < PaddedWindow.loop3.stopTile a pid →
    PaddedWindow.loop3.NoOverflow a pid t (PaddedWindow.loop3.before a pid t)) ∧
  (FitsI64 (Full.found_11 a pid)) ∧
  (FitsI64 (Full.found_12 a pid)) ∧
  (FitsI64 (Full.found_13 a pid)) ∧
  (FitsI64 (Full.found_14 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Full.found_15 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Full.out_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, FitsI64 (Full.out_ptrs a pid i j)) ∧
  (FitsI64 (Full.found_17 a pid)) ∧
  (FitsI64 (Full.found_18 a pid)) ∧
  (FitsI64 (Full.found_19 a pid)) ∧
  (FitsI64 (Full.found a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Full.addptr a pid i))

end Attention.Kernel
