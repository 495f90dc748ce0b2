module

public import Attention.Kernel.Ops

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel with a right edge, as Triton compiles it

Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- The kernel's arguments; of a pointer what lies behind it. The numbers that literals stand for
and the tile sizes are among them. -/
structure Causal.Args (R : Type u) where
  query_ptr : Mem (Flt R)
  key_ptr : Mem (Flt R)
  value_ptr : Mem (Flt R)
  out_ptr : Mem (Flt R)
  lse_ptr : Mem (Flt R)
  stride_qb : Int
  stride_qh : Int
  stride_qm : Int
  stride_kb : Int
  stride_kh : Int
  stride_kn : Int
  stride_vb : Int
  stride_vh : Int
  stride_vn : Int
  stride_ob : Int
  stride_oh : Int
  stride_om : Int
  stride_lb : Int
  stride_lh : Int
  num_heads : Int
  group : Int
  q_len : Int
  kv_len : Int
  head_dim : Int
  value_dim : Int
  scale : Flt R
  right : Int
  shift : Int
  ln2 : R
  log2e : R
  ln : R → R
  BLOCK_M : Nat
  BLOCK_N : Nat
  BLOCK_D : Nat

/-- One thing for each pointer. -/
structure Causal.Pointers (α : Type u) where
  query_ptr : α
  key_ptr : α
  value_ptr : α
  out_ptr : α
  lse_ptr : α

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] def Causal.query_tiles_1 (a : Causal.Args R) (pid : Int) : Int :=
  a.q_len + (a.BLOCK_M - 1 : Int)
@[expose] def Causal.query_tiles (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv (Causal.query_tiles_1 a pid) (a.BLOCK_M : Int)
@[expose] def Causal.tile_1 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.query_tiles a pid) - (1 : Int)
@[expose] def Causal.tile_2 (a : Causal.Args R) (pid : Int) : Int :=
  Int.tmod pid (Causal.query_tiles a pid)
@[expose] def Causal.tile (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.tile_1 a pid) - (Causal.tile_2 a pid)
@[expose] def Causal.head_1 (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv pid (Causal.query_tiles a pid)
@[expose] def Causal.batch (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv (Causal.head_1 a pid) a.num_heads
@[expose] def Causal.head (a : Causal.Args R) (pid : Int) : Int :=
  Int.tmod (Causal.head_1 a pid) a.num_heads
@[expose] def Causal.kv_head (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv (Causal.head a pid) a.group
@[expose] def Causal.row_first (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.tile a pid) * (a.BLOCK_M : Int)
@[expose] def Causal.row_last_1 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.tile a pid) + (1 : Int)
@[expose] def Causal.row_last_2 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.row_last_1 a pid) * (a.BLOCK_M : Int)
@[expose] def Causal.row_last_3 (a : Causal.Args R) (pid : Int) : Int :=
  min (Causal.row_last_2 a pid) a.q_len
@[expose] def Causal.row_last (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.row_last_3 a pid) - (1 : Int)
@[expose] def Causal.queries (a : Causal.Args R) (pid : Int) : Nat → Int :=
  fun i => (Causal.row_first a pid) + (i : Int)
@[expose] def Causal.inside (a : Causal.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((Causal.queries a pid i) < a.q_len)
@[expose] def Causal.found_1 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.batch a pid) * a.stride_qb
@[expose] def Causal.found_2 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.head a pid) * a.stride_qh
@[expose] def Causal.found_3 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.found_1 a pid) + (Causal.found_2 a pid)
@[expose] def Causal.found_4 (a : Causal.Args R) (pid : Int) : Int :=
  (0 : Int) + (Causal.found_3 a pid)
@[expose] def Causal.found_5 (a : Causal.Args R) (pid : Int) : Nat → Int :=
  fun i => (Causal.queries a pid i) * a.stride_qm
@[expose] def Causal.query_ptrs_1 (a : Causal.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Causal.found_4 a pid) + (Causal.found_5 a pid i)
@[expose] def Causal.query_ptrs (a : Causal.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Causal.query_ptrs_1 a pid i 0) + (j : Int)
@[expose] def Causal.found_6 (a : Causal.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((i : Int) < a.head_dim)
@[expose] def Causal.loaded (a : Causal.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (Causal.inside a pid i) && (Causal.found_6 a pid j)
@[expose] def Causal.load_q (a : Causal.Args R) (pid : Int) : Nat → Nat → Access :=
  fun i j => ⟨(Causal.loaded a pid i j), (Causal.query_ptrs a pid i j)⟩
@[expose] def Causal.q (a : Causal.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => (Causal.load_q a pid i j).read a.query_ptr (Flt.num 0)
@[expose] def Causal.rows (a : Causal.Args R) (pid : Int) : Nat → Int :=
  fun i => (Causal.queries a pid i) + a.shift
@[expose] def Causal.found_7 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.batch a pid) * a.stride_kb
@[expose] def Causal.found_8 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.kv_head a pid) * a.stride_kh
@[expose] def Causal.found_9 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.batch a pid) * a.stride_vb
@[expose] def Causal.found_10 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.kv_head a pid) * a.stride_vh
@[expose] def Causal.stop_1 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.row_last a pid) + a.shift
@[expose] def Causal.stop_2 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.stop_1 a pid) + a.right
@[expose] def Causal.stop_3 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.stop_2 a pid) + (1 : Int)
@[expose] def Causal.stop_4 (a : Causal.Args R) (pid : Int) : Int :=
  max (Causal.stop_3 a pid) (0 : Int)
@[expose] def Causal.stop_5 (a : Causal.Args R) (pid : Int) : Int :=
  min a.kv_len (Causal.stop_4 a pid)
@[expose] def Causal.some_ (a : Causal.Args R) (pid : Int) : Bool :=
  decide ((0 : Int) < (Causal.stop_5 a pid))
@[expose] def Causal.addi (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.stop_5 a pid) + (a.BLOCK_N - 1 : Int)
@[expose] def Causal.divsi (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv (Causal.addi a pid) (a.BLOCK_N : Int)
@[expose] def Causal.select_1 (a : Causal.Args R) (pid : Int) : Int :=
  if (Causal.some_ a pid) then (Causal.divsi a pid) else (0 : Int)
@[expose] def Causal.stop_6 (a : Causal.Args R) (pid : Int) : Int :=
  a.kv_len + (a.BLOCK_N - 1 : Int)
@[expose] def Causal.stop_7 (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv (Causal.stop_6 a pid) (a.BLOCK_N : Int)
@[expose] def Causal.seen_1 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.row_first a pid) + a.shift
@[expose] def Causal.seen_2 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.seen_1 a pid) + a.right
@[expose] def Causal.seen_3 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.seen_2 a pid) + (1 : Int)
@[expose] def Causal.seen (a : Causal.Args R) (pid : Int) : Int :=
  max (Causal.seen_3 a pid) (0 : Int)
@[expose] def Causal.stop_8 (a : Causal.Args R) (pid : Int) : Bool :=
  decide (a.kv_len ≤ (Causal.seen a pid))
@[expose] def Causal.stop_9 (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv (Causal.seen a pid) (a.BLOCK_N : Int)
@[expose] def Causal.stop (a : Causal.Args R) (pid : Int) : Int :=
  if (Causal.stop_8 a pid) then (Causal.stop_7 a pid) else (Causal.stop_9 a pid)
@[expose] def Causal.whole_stop_1 (a : Causal.Args R) (pid : Int) : Int :=
  Int.tdiv a.kv_len (a.BLOCK_N : Int)
@[expose] def Causal.whole_stop_2 (a : Causal.Args R) (pid : Int) : Int :=
  min (Causal.stop a pid) (Causal.whole_stop_1 a pid)
@[expose] def Causal.whole_first (a : Causal.Args R) (pid : Int) : Int :=
  min (Causal.select_1 a pid) (0 : Int)
@[expose] def Causal.whole_stop_3 (a : Causal.Args R) (pid : Int) : Int :=
  max (Causal.whole_stop_2 a pid) (Causal.whole_first a pid)
@[expose] def Causal.whole_stop (a : Causal.Args R) (pid : Int) : Int :=
  min (Causal.whole_stop_3 a pid) (Causal.select_1 a pid)
/-- What the loop carries. -/
abbrev Causal.loop1.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] def Causal.loop1.begin (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  t * (a.BLOCK_N : Int)
@[expose] def Causal.loop1.key_base_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (Causal.loop1.begin a pid t s) * a.stride_kn
@[expose] def Causal.loop1.key_base_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (Causal.found_8 a pid) + (Causal.loop1.key_base_1 a pid t s)
@[expose] def Causal.loop1.key_base_3 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (Causal.found_7 a pid) + (Causal.loop1.key_base_2 a pid t s)
@[expose] def Causal.loop1.key_base (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (0 : Int) + (Causal.loop1.key_base_3 a pid t s)
@[expose] def Causal.loop1.value_base_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (Causal.loop1.begin a pid t s) * a.stride_vn
@[expose] def Causal.loop1.value_base_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (Causal.found_10 a pid) + (Causal.loop1.value_base_1 a pid t s)
@[expose] def Causal.loop1.value_base_3 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (Causal.found_9 a pid) + (Causal.loop1.value_base_2 a pid t s)
@[expose] def Causal.loop1.value_base (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Int :=
  (0 : Int) + (Causal.loop1.value_base_3 a pid t s)
@[expose] def Causal.loop1.found_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_kn
@[expose] def Causal.loop1.found (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_vn
@[expose] def Causal.loop1.key_ptrs_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (i : Int) + (Causal.loop1.found_1 a pid t s j)
@[expose] def Causal.loop1.key_ptrs (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Causal.loop1.key_base a pid t s) + (Causal.loop1.key_ptrs_1 a pid t s i j)
@[expose] def Causal.loop1.value_ptrs_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Causal.loop1.found a pid t s i) + (j : Int)
@[expose] def Causal.loop1.value_ptrs (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Causal.loop1.value_base a pid t s) + (Causal.loop1.value_ptrs_1 a pid t s i j)
@[expose] def Causal.loop1.load_k (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (Causal.loop1.key_ptrs a pid t s i j)⟩
@[expose] def Causal.loop1.k (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.key_ptr (Causal.loop1.load_k a pid t s i j).offset
@[expose] def Causal.loop1.y_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Causal.q a pid i n)) (fun n => (Causal.loop1.k a pid t s n
    j)) (Flt.num 0)
@[expose] def Causal.loop1.load_v (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (Causal.loop1.value_ptrs a pid t s i j)⟩
@[expose] def Causal.loop1.v (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.value_ptr (Causal.loop1.load_v a pid t s i j).offset
@[expose] def Causal.loop1.largest_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Causal.loop1.y_1 a pid t s i n)
@[expose] def Causal.loop1.largest (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Causal.loop1.largest_1 a pid t s i) a.scale
@[expose] def Causal.loop1.s (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Causal.loop1.y_1 a pid t s i j) a.scale
@[expose] def Causal.loop1.m_new (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Causal.loop1.largest a pid t s i)
@[expose] def Causal.loop1.m_finite_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Causal.loop1.m_new a pid t s i) Flt.ninf
@[expose] def Causal.loop1.m_finite (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => if (Causal.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else (Causal.loop1.m_new a pid
    t s i)
@[expose] def Causal.loop1.alpha_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Causal.loop1.m_finite a pid t s i)
@[expose] def Causal.loop1.alpha (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Causal.loop1.alpha_1 a pid t s i)
@[expose] def Causal.loop1.p_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Causal.loop1.s a pid t s i j) (Causal.loop1.m_finite a pid t s i)
@[expose] def Causal.loop1.p (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Causal.loop1.p_1 a pid t s i j)
@[expose] def Causal.loop1.l_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Causal.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] def Causal.loop1.l_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Causal.loop1.p a pid t s i n)
@[expose] def Causal.loop1.l (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Causal.loop1.l_1 a pid t s i) (Causal.loop1.l_2 a pid t s i)
@[expose] def Causal.loop1.o (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Causal.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] def Causal.loop1.y (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Causal.loop1.p a pid t s i n)) (fun n => (Causal.loop1.v a
    pid t s n j)) (Causal.loop1.o a pid t s i j)
@[expose] def Causal.loop1.firstTile (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.whole_first a pid)
@[expose] def Causal.loop1.stopTile (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.whole_stop a pid)
/-- One iteration. -/
@[expose] def Causal.loop1.body (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R) :
    Causal.loop1.State R :=
  (fun i => (Causal.loop1.m_new a pid t s i), fun i => (Causal.loop1.l a pid t s i), fun i j =>
    (Causal.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Causal.loop1.start (a : Causal.Args R) (pid : Int) : Causal.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def Causal.loop1.result (a : Causal.Args R) (pid : Int) : Causal.loop1.State R :=
  forRange (Causal.loop1.firstTile a pid)
    (Causal.loop1.stopTile a pid)
    (Causal.loop1.body a pid) (Causal.loop1.start a pid)
/-- The state before iteration t. -/
@[expose] def Causal.loop1.before (a : Causal.Args R) (pid : Int) (t : Int)
    : Causal.loop1.State R :=
  forRange (Causal.loop1.firstTile a pid) t
    (Causal.loop1.body a pid) (Causal.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] def Causal.loop1.Accesses (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    (P : Causal.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Causal.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, P.value_ptr (Causal.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] def Causal.loop1.Exponents (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Causal.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Causal.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] def Causal.loop1.NoOverflow (a : Causal.Args R) (pid t : Int) (s : Causal.loop1.State R)
    : Prop :=
  (FitsI32 (Causal.loop1.begin a pid t s)) ∧
  (FitsI64 (Causal.loop1.key_base_1 a pid t s)) ∧
  (FitsI64 (Causal.loop1.key_base_2 a pid t s)) ∧
  (FitsI64 (Causal.loop1.key_base_3 a pid t s)) ∧
  (FitsI64 (Causal.loop1.key_base a pid t s)) ∧
  (FitsI64 (Causal.loop1.value_base_1 a pid t s)) ∧
  (FitsI64 (Causal.loop1.value_base_2 a pid t s)) ∧
  (FitsI64 (Causal.loop1.value_base_3 a pid t s)) ∧
  (FitsI64 (Causal.loop1.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Causal.loop1.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Causal.loop1.found a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Causal.loop1.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Causal.loop1.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI32 (Causal.loop1.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI64 (Causal.loop1.value_ptrs a pid t s i j))
/-- What the loop carries. -/
abbrev Causal.loop2.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] def Causal.loop2.keys_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  t * (a.BLOCK_N : Int)
@[expose] def Causal.loop2.keys (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Int :=
  fun i => (Causal.loop2.keys_1 a pid t s) + (i : Int)
@[expose] def Causal.loop2.inside_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Bool :=
  fun i => decide ((0 : Int) ≤ (Causal.loop2.keys a pid t s i))
@[expose] def Causal.loop2.inside_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Bool :=
  fun i => decide ((Causal.loop2.keys a pid t s i) < (Causal.stop_5 a pid))
@[expose] def Causal.loop2.inside (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Bool :=
  fun i => (Causal.loop2.inside_1 a pid t s i) && (Causal.loop2.inside_2 a pid t s i)
@[expose] def Causal.loop2.key_base_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (Causal.loop2.keys_1 a pid t s) * a.stride_kn
@[expose] def Causal.loop2.key_base_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (Causal.found_8 a pid) + (Causal.loop2.key_base_1 a pid t s)
@[expose] def Causal.loop2.key_base_3 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (Causal.found_7 a pid) + (Causal.loop2.key_base_2 a pid t s)
@[expose] def Causal.loop2.key_base (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (0 : Int) + (Causal.loop2.key_base_3 a pid t s)
@[expose] def Causal.loop2.value_base_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (Causal.loop2.keys_1 a pid t s) * a.stride_vn
@[expose] def Causal.loop2.value_base_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (Causal.found_10 a pid) + (Causal.loop2.value_base_1 a pid t s)
@[expose] def Causal.loop2.value_base_3 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (Causal.found_9 a pid) + (Causal.loop2.value_base_2 a pid t s)
@[expose] def Causal.loop2.value_base (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Int :=
  (0 : Int) + (Causal.loop2.value_base_3 a pid t s)
@[expose] def Causal.loop2.found_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_kn
@[expose] def Causal.loop2.found_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_vn
@[expose] def Causal.loop2.key_ptrs_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (i : Int) + (Causal.loop2.found_1 a pid t s j)
@[expose] def Causal.loop2.key_ptrs (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (Causal.loop2.key_base a pid t s) + (Causal.loop2.key_ptrs_1 a pid t s i j)
@[expose] def Causal.loop2.value_ptrs_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (Causal.loop2.found_2 a pid t s i) + (j : Int)
@[expose] def Causal.loop2.value_ptrs (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (Causal.loop2.value_base a pid t s) + (Causal.loop2.value_ptrs_1 a pid t s i j)
@[expose] def Causal.loop2.found_3 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.head_dim)
@[expose] def Causal.loop2.found (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.value_dim)
@[expose] def Causal.loop2.k_inside (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Bool :=
  fun i j => (Causal.loop2.found_3 a pid t s i) && (Causal.loop2.inside a pid t s j)
@[expose] def Causal.loop2.v_inside (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Bool :=
  fun i j => (Causal.loop2.found a pid t s j) && (Causal.loop2.inside a pid t s i)
@[expose] def Causal.loop2.load_k (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Causal.loop2.k_inside a pid t s i j), (Causal.loop2.key_ptrs a pid t s i j)⟩
@[expose] def Causal.loop2.k (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Causal.loop2.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] def Causal.loop2.y_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Causal.q a pid i n)) (fun n => (Causal.loop2.k a pid t s n
    j)) (Flt.num 0)
@[expose] def Causal.loop2.s (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Causal.loop2.y_1 a pid t s i j) a.scale
@[expose] def Causal.loop2.load_v (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Causal.loop2.v_inside a pid t s i j), (Causal.loop2.value_ptrs a pid t s i j)⟩
@[expose] def Causal.loop2.v (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Causal.loop2.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] def Causal.loop2.visible_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (Causal.rows a pid i) + a.right
@[expose] def Causal.loop2.visible_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((Causal.loop2.keys a pid t s j) ≤ (Causal.loop2.visible_1 a pid t s i 0))
@[expose] def Causal.loop2.visible (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Bool :=
  fun i j => (Causal.loop2.inside_2 a pid t s j) && (Causal.loop2.visible_2 a pid t s i j)
@[expose] def Causal.loop2.select (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Causal.loop2.visible a pid t s i j) then (Causal.loop2.s a pid t s i j) else
    Flt.ninf
@[expose] def Causal.loop2.largest (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Causal.loop2.select a pid t s i n)
@[expose] def Causal.loop2.m_new (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Causal.loop2.largest a pid t s i)
@[expose] def Causal.loop2.m_finite_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Causal.loop2.m_new a pid t s i) Flt.ninf
@[expose] def Causal.loop2.m_finite (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => if (Causal.loop2.m_finite_1 a pid t s i) then (Flt.num 0) else (Causal.loop2.m_new a pid
    t s i)
@[expose] def Causal.loop2.alpha_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Causal.loop2.m_finite a pid t s i)
@[expose] def Causal.loop2.alpha (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Causal.loop2.alpha_1 a pid t s i)
@[expose] def Causal.loop2.p_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Causal.loop2.select a pid t s i j) (Causal.loop2.m_finite a pid t s i)
@[expose] def Causal.loop2.p (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Causal.loop2.p_1 a pid t s i j)
@[expose] def Causal.loop2.l_1 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Causal.loop2.alpha a pid t s i) (s.2.1 i)
@[expose] def Causal.loop2.l_2 (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Causal.loop2.p a pid t s i n)
@[expose] def Causal.loop2.l (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Causal.loop2.l_1 a pid t s i) (Causal.loop2.l_2 a pid t s i)
@[expose] def Causal.loop2.o (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Causal.loop2.alpha a pid t s i) (s.2.2 i j)
@[expose] def Causal.loop2.y (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Causal.loop2.p a pid t s i n)) (fun n => (Causal.loop2.v a
    pid t s n j)) (Causal.loop2.o a pid t s i j)
@[expose] def Causal.loop2.firstTile (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.whole_stop a pid)
@[expose] def Causal.loop2.stopTile (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.select_1 a pid)
/-- One iteration. -/
@[expose] def Causal.loop2.body (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R) :
    Causal.loop2.State R :=
  (fun i => (Causal.loop2.m_new a pid t s i), fun i => (Causal.loop2.l a pid t s i), fun i j =>
    (Causal.loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Causal.loop2.start (a : Causal.Args R) (pid : Int) : Causal.loop2.State R :=
  (fun i => ((Causal.loop1.result a pid).1 i), fun i => ((Causal.loop1.result a pid).2.1 i), fun i j
    => ((Causal.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def Causal.loop2.result (a : Causal.Args R) (pid : Int) : Causal.loop2.State R :=
  forRange (Causal.loop2.firstTile a pid)
    (Causal.loop2.stopTile a pid)
    (Causal.loop2.body a pid) (Causal.loop2.start a pid)
/-- The state before iteration t. -/
@[expose] def Causal.loop2.before (a : Causal.Args R) (pid : Int) (t : Int)
    : Causal.loop2.State R :=
  forRange (Causal.loop2.firstTile a pid) t
    (Causal.loop2.body a pid) (Causal.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] def Causal.loop2.Accesses (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    (P : Causal.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Causal.loop2.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, P.value_ptr (Causal.loop2.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] def Causal.loop2.Exponents (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Causal.loop2.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Causal.loop2.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] def Causal.loop2.NoOverflow (a : Causal.Args R) (pid t : Int) (s : Causal.loop2.State R)
    : Prop :=
  (FitsI32 (Causal.loop2.keys_1 a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Causal.loop2.keys a pid t s i)) ∧
  (FitsI64 (Causal.loop2.key_base_1 a pid t s)) ∧
  (FitsI64 (Causal.loop2.key_base_2 a pid t s)) ∧
  (FitsI64 (Causal.loop2.key_base_3 a pid t s)) ∧
  (FitsI64 (Causal.loop2.key_base a pid t s)) ∧
  (FitsI64 (Causal.loop2.value_base_1 a pid t s)) ∧
  (FitsI64 (Causal.loop2.value_base_2 a pid t s)) ∧
  (FitsI64 (Causal.loop2.value_base_3 a pid t s)) ∧
  (FitsI64 (Causal.loop2.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Causal.loop2.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Causal.loop2.found_2 a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Causal.loop2.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Causal.loop2.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI32 (Causal.loop2.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI64 (Causal.loop2.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Causal.loop2.visible_1 a pid t s i j))
@[expose] def Causal.found_11 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.batch a pid) * a.stride_ob
@[expose] def Causal.found_12 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.head a pid) * a.stride_oh
@[expose] def Causal.found_13 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.found_11 a pid) + (Causal.found_12 a pid)
@[expose] def Causal.found_14 (a : Causal.Args R) (pid : Int) : Int :=
  (0 : Int) + (Causal.found_13 a pid)
@[expose] def Causal.found_15 (a : Causal.Args R) (pid : Int) : Nat → Int :=
  fun i => (Causal.queries a pid i) * a.stride_om
@[expose] def Causal.out_ptrs_1 (a : Causal.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Causal.found_14 a pid) + (Causal.found_15 a pid i)
@[expose] def Causal.out_ptrs (a : Causal.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Causal.out_ptrs_1 a pid i 0) + (j : Int)
@[expose] def Causal.found_16 (a : Causal.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((i : Int) < a.value_dim)
@[expose] def Causal.stored (a : Causal.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (Causal.inside a pid i) && (Causal.found_16 a pid j)
@[expose] def Causal.none_ (a : Causal.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((Causal.loop2.result a pid).2.1 i) (Flt.num 0)
@[expose] def Causal.select (a : Causal.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (Causal.none_ a pid i) then (Flt.num 1) else ((Causal.loop2.result a pid).2.1 i)
@[expose] def Causal.divf (a : Causal.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((Causal.loop2.result a pid).2.2 i j) (Causal.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def Causal.store_out_ptr (a : Causal.Args R) (pid : Int) : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Causal.stored a pid i j), (Causal.out_ptrs a pid i j)⟩, (Causal.divf a pid i j)⟩
@[expose] def Causal.found_17 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.batch a pid) * a.stride_lb
@[expose] def Causal.found_18 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.head a pid) * a.stride_lh
@[expose] def Causal.found_19 (a : Causal.Args R) (pid : Int) : Int :=
  (Causal.found_17 a pid) + (Causal.found_18 a pid)
@[expose] def Causal.found (a : Causal.Args R) (pid : Int) : Int :=
  (0 : Int) + (Causal.found_19 a pid)
@[expose] def Causal.addptr (a : Causal.Args R) (pid : Int) : Nat → Int :=
  fun i => (Causal.found a pid) + (Causal.queries a pid i)
@[expose] def Causal.mulf (a : Causal.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((Causal.loop2.result a pid).1 i) (Flt.num a.ln2)
@[expose] def Causal.log (a : Causal.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (Causal.select a pid i)
@[expose] def Causal.addf (a : Causal.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (Causal.mulf a pid i) (Causal.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def Causal.store_lse_ptr (a : Causal.Args R) (pid : Int) : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Causal.inside a pid i), (Causal.addptr a pid i)⟩, (Causal.addf a pid i)⟩
/-- What `P` asks of each access. -/
@[expose] def Causal.Accesses (a : Causal.Args R) (pid : Int)
    (P : Causal.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr (Causal.load_q a pid i j)) ∧
  (∀ t, Causal.loop1.firstTile a pid ≤ t → t < Causal.loop1.stopTile a pid → Causal.loop1.Accesses a
    pid t (Causal.loop1.before a pid t) P) ∧
  (∀ t, Causal.loop2.firstTile a pid ≤ t → t < Causal.loop2.stopTile a pid → Causal.loop2.Accesses a
    pid t (Causal.loop2.before a pid t) P) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.out_ptr (Causal.store_out_ptr a pid i j).toAccess) ∧
  (∀ i < a.BLOCK_M, P.lse_ptr (Causal.store_lse_ptr a pid i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] def Causal.Exponents (a : Causal.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  (∀ t, Causal.loop1.firstTile a pid ≤ t → t < Causal.loop1.stopTile a pid → Causal.loop1.Exponents
    a pid t (Causal.loop1.before a pid t) P) ∧
  (∀ t, Causal.loop2.firstTile a pid ≤ t → t < Causal.loop2.stopTile a pid → Causal.loop2.Exponents
    a pid t (Causal.loop2.before a pid t) P)
/-- No integer operation overflows. -/
@[expose] def Causal.NoOverflow (a : Causal.Args R) (pid : Int)
    : Prop :=
  (FitsI32 (Causal.query_tiles_1 a pid)) ∧
  (FitsI32 (Causal.query_tiles a pid)) ∧
  ((a.BLOCK_M : Int) ≠ 0) ∧
  (FitsI32 (Causal.tile_1 a pid)) ∧
  (FitsI32 (Causal.tile_2 a pid)) ∧
  ((Causal.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (Int.tdiv pid (Causal.query_tiles a pid))) ∧
  (FitsI32 (Causal.tile a pid)) ∧
  (FitsI32 (Causal.head_1 a pid)) ∧
  ((Causal.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (Causal.batch a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (Causal.head a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (Int.tdiv (Causal.head_1 a pid) a.num_heads)) ∧
  (FitsI64 (Causal.kv_head a pid)) ∧
  (a.group ≠ 0) ∧
  (FitsI32 (Causal.row_first a pid)) ∧
  (FitsI32 (Causal.row_last_1 a pid)) ∧
  (FitsI32 (Causal.row_last_2 a pid)) ∧
  (FitsI32 (Causal.row_last a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Causal.queries a pid i)) ∧
  (FitsI64 (Causal.found_1 a pid)) ∧
  (FitsI64 (Causal.found_2 a pid)) ∧
  (FitsI64 (Causal.found_3 a pid)) ∧
  (FitsI64 (Causal.found_4 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Causal.found_5 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Causal.query_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64 (Causal.query_ptrs a pid i j)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Causal.rows a pid i)) ∧
  (FitsI64 (Causal.found_7 a pid)) ∧
  (FitsI64 (Causal.found_8 a pid)) ∧
  (FitsI64 (Causal.found_9 a pid)) ∧
  (FitsI64 (Causal.found_10 a pid)) ∧
  (FitsI32 (Causal.stop_1 a pid)) ∧
  (FitsI32 (Causal.stop_2 a pid)) ∧
  (FitsI32 (Causal.stop_3 a pid)) ∧
  (FitsI32 (Causal.addi a pid)) ∧
  (FitsI32 (Causal.divsi a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Causal.stop_6 a pid)) ∧
  (FitsI32 (Causal.stop_7 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Causal.seen_1 a pid)) ∧
  (FitsI32 (Causal.seen_2 a pid)) ∧
  (FitsI32 (Causal.seen_3 a pid)) ∧
  (FitsI32 (Causal.stop_9 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Causal.whole_stop_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (∀ t, Causal.loop1.firstTile a pid ≤ t → t < Causal.loop1.stopTile a pid → Causal.loop1.NoOverflow
    a pid t (Causal.loop1.before a pid t)) ∧
  (∀ t, Causal.loop2.firstTile a pid ≤ t → t < Causal.loop2.stopTile a pid → Causal.loop2.NoOverflow
    a pid t (Causal.loop2.before a pid t)) ∧
  (FitsI64 (Causal.found_11 a pid)) ∧
  (FitsI64 (Causal.found_12 a pid)) ∧
  (FitsI64 (Causal.found_13 a pid)) ∧
  (FitsI64 (Causal.found_14 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Causal.found_15 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Causal.out_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64 (Causal.out_ptrs a pid i j)) ∧
  (FitsI64 (Causal.found_17 a pid)) ∧
  (FitsI64 (Causal.found_18 a pid)) ∧
  (FitsI64 (Causal.found_19 a pid)) ∧
  (FitsI64 (Causal.found a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Causal.addptr a pid i))

end Attention.Kernel
