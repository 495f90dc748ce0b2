module

public import Attention.Kernel.Ops

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel with a window, as Triton compiles it

Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- The kernel's arguments; of a pointer what lies behind it. The numbers that literals stand for
and the tile sizes are among them. -/
structure Window.Args (R : Type u) where
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
  left : Int
  right : Int
  shift : Int
  ln2 : R
  log2e : R
  ln : R → R
  BLOCK_M : Nat
  BLOCK_N : Nat
  BLOCK_D : Nat

/-- One thing for each pointer. -/
structure Window.Pointers (α : Type u) where
  query_ptr : α
  key_ptr : α
  value_ptr : α
  out_ptr : α
  lse_ptr : α

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] def Window.query_tiles_1 (a : Window.Args R) (pid : Int) : Int :=
  a.q_len + (a.BLOCK_M - 1 : Int)
@[expose] def Window.query_tiles (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.query_tiles_1 a pid) (a.BLOCK_M : Int)
@[expose] def Window.tile_1 (a : Window.Args R) (pid : Int) : Int :=
  (Window.query_tiles a pid) - (1 : Int)
@[expose] def Window.tile_2 (a : Window.Args R) (pid : Int) : Int :=
  Int.tmod pid (Window.query_tiles a pid)
@[expose] def Window.tile (a : Window.Args R) (pid : Int) : Int :=
  (Window.tile_1 a pid) - (Window.tile_2 a pid)
@[expose] def Window.head_1 (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv pid (Window.query_tiles a pid)
@[expose] def Window.batch (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.head_1 a pid) a.num_heads
@[expose] def Window.head (a : Window.Args R) (pid : Int) : Int :=
  Int.tmod (Window.head_1 a pid) a.num_heads
@[expose] def Window.kv_head (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.head a pid) a.group
@[expose] def Window.row_first (a : Window.Args R) (pid : Int) : Int :=
  (Window.tile a pid) * (a.BLOCK_M : Int)
@[expose] def Window.row_last_1 (a : Window.Args R) (pid : Int) : Int :=
  (Window.tile a pid) + (1 : Int)
@[expose] def Window.row_last_2 (a : Window.Args R) (pid : Int) : Int :=
  (Window.row_last_1 a pid) * (a.BLOCK_M : Int)
@[expose] def Window.row_last_3 (a : Window.Args R) (pid : Int) : Int :=
  min (Window.row_last_2 a pid) a.q_len
@[expose] def Window.row_last (a : Window.Args R) (pid : Int) : Int :=
  (Window.row_last_3 a pid) - (1 : Int)
@[expose] def Window.queries (a : Window.Args R) (pid : Int) : Nat → Int :=
  fun i => (Window.row_first a pid) + (i : Int)
@[expose] def Window.inside (a : Window.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((Window.queries a pid i) < a.q_len)
@[expose] def Window.found_1 (a : Window.Args R) (pid : Int) : Int :=
  (Window.batch a pid) * a.stride_qb
@[expose] def Window.found_2 (a : Window.Args R) (pid : Int) : Int :=
  (Window.head a pid) * a.stride_qh
@[expose] def Window.found_3 (a : Window.Args R) (pid : Int) : Int :=
  (Window.found_1 a pid) + (Window.found_2 a pid)
@[expose] def Window.found_4 (a : Window.Args R) (pid : Int) : Int :=
  (0 : Int) + (Window.found_3 a pid)
@[expose] def Window.found_5 (a : Window.Args R) (pid : Int) : Nat → Int :=
  fun i => (Window.queries a pid i) * a.stride_qm
@[expose] def Window.query_ptrs_1 (a : Window.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Window.found_4 a pid) + (Window.found_5 a pid i)
@[expose] def Window.query_ptrs (a : Window.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Window.query_ptrs_1 a pid i 0) + (j : Int)
@[expose] def Window.found_6 (a : Window.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((i : Int) < a.head_dim)
@[expose] def Window.loaded (a : Window.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (Window.inside a pid i) && (Window.found_6 a pid j)
@[expose] def Window.load_q (a : Window.Args R) (pid : Int) : Nat → Nat → Access :=
  fun i j => ⟨(Window.loaded a pid i j), (Window.query_ptrs a pid i j)⟩
@[expose] def Window.q (a : Window.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => (Window.load_q a pid i j).read a.query_ptr (Flt.num 0)
@[expose] def Window.rows (a : Window.Args R) (pid : Int) : Nat → Int :=
  fun i => (Window.queries a pid i) + a.shift
@[expose] def Window.found_7 (a : Window.Args R) (pid : Int) : Int :=
  (Window.batch a pid) * a.stride_kb
@[expose] def Window.found_8 (a : Window.Args R) (pid : Int) : Int :=
  (Window.kv_head a pid) * a.stride_kh
@[expose] def Window.found_9 (a : Window.Args R) (pid : Int) : Int :=
  (Window.batch a pid) * a.stride_vb
@[expose] def Window.found_10 (a : Window.Args R) (pid : Int) : Int :=
  (Window.kv_head a pid) * a.stride_vh
@[expose] def Window.first_1 (a : Window.Args R) (pid : Int) : Int :=
  (Window.row_first a pid) + a.shift
@[expose] def Window.first_2 (a : Window.Args R) (pid : Int) : Int :=
  (Window.first_1 a pid) - a.left
@[expose] def Window.first_3 (a : Window.Args R) (pid : Int) : Int :=
  max (Window.first_2 a pid) (0 : Int)
@[expose] def Window.stop_1 (a : Window.Args R) (pid : Int) : Int :=
  (Window.row_last a pid) + a.shift
@[expose] def Window.stop_2 (a : Window.Args R) (pid : Int) : Int :=
  (Window.stop_1 a pid) + a.right
@[expose] def Window.stop_3 (a : Window.Args R) (pid : Int) : Int :=
  (Window.stop_2 a pid) + (1 : Int)
@[expose] def Window.stop_4 (a : Window.Args R) (pid : Int) : Int :=
  max (Window.stop_3 a pid) (0 : Int)
@[expose] def Window.stop_5 (a : Window.Args R) (pid : Int) : Int :=
  min a.kv_len (Window.stop_4 a pid)
@[expose] def Window.some_ (a : Window.Args R) (pid : Int) : Bool :=
  decide ((Window.first_3 a pid) < (Window.stop_5 a pid))
@[expose] def Window.divsi_1 (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.first_3 a pid) (a.BLOCK_N : Int)
@[expose] def Window.select_1 (a : Window.Args R) (pid : Int) : Int :=
  if (Window.some_ a pid) then (Window.divsi_1 a pid) else (0 : Int)
@[expose] def Window.addi (a : Window.Args R) (pid : Int) : Int :=
  (Window.stop_5 a pid) + (a.BLOCK_N - 1 : Int)
@[expose] def Window.divsi (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.addi a pid) (a.BLOCK_N : Int)
@[expose] def Window.select_2 (a : Window.Args R) (pid : Int) : Int :=
  if (Window.some_ a pid) then (Window.divsi a pid) else (0 : Int)
@[expose] def Window.stop_6 (a : Window.Args R) (pid : Int) : Int :=
  a.kv_len + (a.BLOCK_N - 1 : Int)
@[expose] def Window.stop_7 (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.stop_6 a pid) (a.BLOCK_N : Int)
@[expose] def Window.first_4 (a : Window.Args R) (pid : Int) : Int :=
  (Window.stop_1 a pid) - a.left
@[expose] def Window.first_5 (a : Window.Args R) (pid : Int) : Int :=
  max (Window.first_4 a pid) (0 : Int)
@[expose] def Window.first_6 (a : Window.Args R) (pid : Int) : Int :=
  (Window.first_5 a pid) + (a.BLOCK_N - 1 : Int)
@[expose] def Window.first (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.first_6 a pid) (a.BLOCK_N : Int)
@[expose] def Window.seen_1 (a : Window.Args R) (pid : Int) : Int :=
  (Window.first_1 a pid) + a.right
@[expose] def Window.seen_2 (a : Window.Args R) (pid : Int) : Int :=
  (Window.seen_1 a pid) + (1 : Int)
@[expose] def Window.seen (a : Window.Args R) (pid : Int) : Int :=
  max (Window.seen_2 a pid) (0 : Int)
@[expose] def Window.stop_8 (a : Window.Args R) (pid : Int) : Bool :=
  decide (a.kv_len ≤ (Window.seen a pid))
@[expose] def Window.stop_9 (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv (Window.seen a pid) (a.BLOCK_N : Int)
@[expose] def Window.stop (a : Window.Args R) (pid : Int) : Int :=
  if (Window.stop_8 a pid) then (Window.stop_7 a pid) else (Window.stop_9 a pid)
@[expose] def Window.whole_stop_1 (a : Window.Args R) (pid : Int) : Int :=
  Int.tdiv a.kv_len (a.BLOCK_N : Int)
@[expose] def Window.whole_stop_2 (a : Window.Args R) (pid : Int) : Int :=
  min (Window.stop a pid) (Window.whole_stop_1 a pid)
@[expose] def Window.whole_first_1 (a : Window.Args R) (pid : Int) : Int :=
  max (Window.first a pid) (Window.select_1 a pid)
@[expose] def Window.whole_first (a : Window.Args R) (pid : Int) : Int :=
  min (Window.whole_first_1 a pid) (Window.select_2 a pid)
@[expose] def Window.whole_stop_3 (a : Window.Args R) (pid : Int) : Int :=
  max (Window.whole_stop_2 a pid) (Window.whole_first a pid)
@[expose] def Window.whole_stop (a : Window.Args R) (pid : Int) : Int :=
  min (Window.whole_stop_3 a pid) (Window.select_2 a pid)
/-- What the loop carries. -/
abbrev Window.loop1.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] def Window.loop1.keys_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  t * (a.BLOCK_N : Int)
@[expose] def Window.loop1.keys (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Int :=
  fun i => (Window.loop1.keys_1 a pid t s) + (i : Int)
@[expose] def Window.loop1.inside_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((Window.first_3 a pid) ≤ (Window.loop1.keys a pid t s i))
@[expose] def Window.loop1.inside_2 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((Window.loop1.keys a pid t s i) < (Window.stop_5 a pid))
@[expose] def Window.loop1.inside (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Bool :=
  fun i => (Window.loop1.inside_1 a pid t s i) && (Window.loop1.inside_2 a pid t s i)
@[expose] def Window.loop1.key_base_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (Window.loop1.keys_1 a pid t s) * a.stride_kn
@[expose] def Window.loop1.key_base_2 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (Window.found_8 a pid) + (Window.loop1.key_base_1 a pid t s)
@[expose] def Window.loop1.key_base_3 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (Window.found_7 a pid) + (Window.loop1.key_base_2 a pid t s)
@[expose] def Window.loop1.key_base (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (0 : Int) + (Window.loop1.key_base_3 a pid t s)
@[expose] def Window.loop1.value_base_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (Window.loop1.keys_1 a pid t s) * a.stride_vn
@[expose] def Window.loop1.value_base_2 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (Window.found_10 a pid) + (Window.loop1.value_base_1 a pid t s)
@[expose] def Window.loop1.value_base_3 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (Window.found_9 a pid) + (Window.loop1.value_base_2 a pid t s)
@[expose] def Window.loop1.value_base (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Int :=
  (0 : Int) + (Window.loop1.value_base_3 a pid t s)
@[expose] def Window.loop1.found_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_kn
@[expose] def Window.loop1.found_2 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_vn
@[expose] def Window.loop1.key_ptrs_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (i : Int) + (Window.loop1.found_1 a pid t s j)
@[expose] def Window.loop1.key_ptrs (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop1.key_base a pid t s) + (Window.loop1.key_ptrs_1 a pid t s i j)
@[expose] def Window.loop1.value_ptrs_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop1.found_2 a pid t s i) + (j : Int)
@[expose] def Window.loop1.value_ptrs (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop1.value_base a pid t s) + (Window.loop1.value_ptrs_1 a pid t s i j)
@[expose] def Window.loop1.found_3 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.head_dim)
@[expose] def Window.loop1.found (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.value_dim)
@[expose] def Window.loop1.k_inside (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop1.found_3 a pid t s i) && (Window.loop1.inside a pid t s j)
@[expose] def Window.loop1.v_inside (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop1.found a pid t s j) && (Window.loop1.inside a pid t s i)
@[expose] def Window.loop1.load_k (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Window.loop1.k_inside a pid t s i j), (Window.loop1.key_ptrs a pid t s i j)⟩
@[expose] def Window.loop1.k (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Window.loop1.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] def Window.loop1.y_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Window.q a pid i n)) (fun n => (Window.loop1.k a pid t s n
    j)) (Flt.num 0)
@[expose] def Window.loop1.s (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop1.y_1 a pid t s i j) a.scale
@[expose] def Window.loop1.load_v (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Window.loop1.v_inside a pid t s i j), (Window.loop1.value_ptrs a pid t s i j)⟩
@[expose] def Window.loop1.v (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Window.loop1.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] def Window.loop1.visible_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.rows a pid i) - a.left
@[expose] def Window.loop1.visible_2 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((Window.loop1.visible_1 a pid t s i 0) ≤ (Window.loop1.keys a pid t s j))
@[expose] def Window.loop1.visible_3 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop1.inside_2 a pid t s j) && (Window.loop1.visible_2 a pid t s i j)
@[expose] def Window.loop1.visible_4 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.rows a pid i) + a.right
@[expose] def Window.loop1.visible_5 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((Window.loop1.keys a pid t s j) ≤ (Window.loop1.visible_4 a pid t s i 0))
@[expose] def Window.loop1.visible (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop1.visible_3 a pid t s i j) && (Window.loop1.visible_5 a pid t s i j)
@[expose] def Window.loop1.select (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Window.loop1.visible a pid t s i j) then (Window.loop1.s a pid t s i j) else
    Flt.ninf
@[expose] def Window.loop1.largest (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Window.loop1.select a pid t s i n)
@[expose] def Window.loop1.m_new (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Window.loop1.largest a pid t s i)
@[expose] def Window.loop1.m_finite_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Window.loop1.m_new a pid t s i) Flt.ninf
@[expose] def Window.loop1.m_finite (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => if (Window.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else (Window.loop1.m_new a pid
    t s i)
@[expose] def Window.loop1.alpha_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Window.loop1.m_finite a pid t s i)
@[expose] def Window.loop1.alpha (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Window.loop1.alpha_1 a pid t s i)
@[expose] def Window.loop1.p_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Window.loop1.select a pid t s i j) (Window.loop1.m_finite a pid t s i)
@[expose] def Window.loop1.p (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Window.loop1.p_1 a pid t s i j)
@[expose] def Window.loop1.l_1 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Window.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] def Window.loop1.l_2 (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Window.loop1.p a pid t s i n)
@[expose] def Window.loop1.l (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Window.loop1.l_1 a pid t s i) (Window.loop1.l_2 a pid t s i)
@[expose] def Window.loop1.o (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] def Window.loop1.y (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Window.loop1.p a pid t s i n)) (fun n => (Window.loop1.v a
    pid t s n j)) (Window.loop1.o a pid t s i j)
@[expose] def Window.loop1.firstTile (a : Window.Args R) (pid : Int) : Int :=
  (Window.select_1 a pid)
@[expose] def Window.loop1.stopTile (a : Window.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One iteration. -/
@[expose] def Window.loop1.body (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R) :
    Window.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Window.loop1.start (a : Window.Args R) (pid : Int) : Window.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def Window.loop1.result (a : Window.Args R) (pid : Int) : Window.loop1.State R :=
  forRange (Window.loop1.firstTile a pid)
    (Window.loop1.stopTile a pid)
    (Window.loop1.body a pid) (Window.loop1.start a pid)
/-- The state before iteration t. -/
@[expose] def Window.loop1.before (a : Window.Args R) (pid : Int) (t : Int)
    : Window.loop1.State R :=
  forRange (Window.loop1.firstTile a pid) t
    (Window.loop1.body a pid) (Window.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] def Window.loop1.Accesses (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    (P : Window.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Window.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, P.value_ptr (Window.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] def Window.loop1.Exponents (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Window.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Window.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] def Window.loop1.NoOverflow (a : Window.Args R) (pid t : Int) (s : Window.loop1.State R)
    : Prop :=
  (FitsI32 (Window.loop1.keys_1 a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop1.keys a pid t s i)) ∧
  (FitsI64 (Window.loop1.key_base_1 a pid t s)) ∧
  (FitsI64 (Window.loop1.key_base_2 a pid t s)) ∧
  (FitsI64 (Window.loop1.key_base_3 a pid t s)) ∧
  (FitsI64 (Window.loop1.key_base a pid t s)) ∧
  (FitsI64 (Window.loop1.value_base_1 a pid t s)) ∧
  (FitsI64 (Window.loop1.value_base_2 a pid t s)) ∧
  (FitsI64 (Window.loop1.value_base_3 a pid t s)) ∧
  (FitsI64 (Window.loop1.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop1.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop1.found_2 a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Window.loop1.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Window.loop1.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI32 (Window.loop1.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI64 (Window.loop1.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Window.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Window.loop1.visible_4 a pid t s i j))
/-- What the loop carries. -/
abbrev Window.loop2.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] def Window.loop2.begin (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  t * (a.BLOCK_N : Int)
@[expose] def Window.loop2.key_base_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (Window.loop2.begin a pid t s) * a.stride_kn
@[expose] def Window.loop2.key_base_2 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (Window.found_8 a pid) + (Window.loop2.key_base_1 a pid t s)
@[expose] def Window.loop2.key_base_3 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (Window.found_7 a pid) + (Window.loop2.key_base_2 a pid t s)
@[expose] def Window.loop2.key_base (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (0 : Int) + (Window.loop2.key_base_3 a pid t s)
@[expose] def Window.loop2.value_base_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (Window.loop2.begin a pid t s) * a.stride_vn
@[expose] def Window.loop2.value_base_2 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (Window.found_10 a pid) + (Window.loop2.value_base_1 a pid t s)
@[expose] def Window.loop2.value_base_3 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (Window.found_9 a pid) + (Window.loop2.value_base_2 a pid t s)
@[expose] def Window.loop2.value_base (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Int :=
  (0 : Int) + (Window.loop2.value_base_3 a pid t s)
@[expose] def Window.loop2.found_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_kn
@[expose] def Window.loop2.found (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_vn
@[expose] def Window.loop2.key_ptrs_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (i : Int) + (Window.loop2.found_1 a pid t s j)
@[expose] def Window.loop2.key_ptrs (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop2.key_base a pid t s) + (Window.loop2.key_ptrs_1 a pid t s i j)
@[expose] def Window.loop2.value_ptrs_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop2.found a pid t s i) + (j : Int)
@[expose] def Window.loop2.value_ptrs (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop2.value_base a pid t s) + (Window.loop2.value_ptrs_1 a pid t s i j)
@[expose] def Window.loop2.load_k (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (Window.loop2.key_ptrs a pid t s i j)⟩
@[expose] def Window.loop2.k (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.key_ptr (Window.loop2.load_k a pid t s i j).offset
@[expose] def Window.loop2.y_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Window.q a pid i n)) (fun n => (Window.loop2.k a pid t s n
    j)) (Flt.num 0)
@[expose] def Window.loop2.load_v (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (Window.loop2.value_ptrs a pid t s i j)⟩
@[expose] def Window.loop2.v (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.value_ptr (Window.loop2.load_v a pid t s i j).offset
@[expose] def Window.loop2.largest_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Window.loop2.y_1 a pid t s i n)
@[expose] def Window.loop2.largest (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Window.loop2.largest_1 a pid t s i) a.scale
@[expose] def Window.loop2.s (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop2.y_1 a pid t s i j) a.scale
@[expose] def Window.loop2.m_new (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Window.loop2.largest a pid t s i)
@[expose] def Window.loop2.m_finite_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Window.loop2.m_new a pid t s i) Flt.ninf
@[expose] def Window.loop2.m_finite (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => if (Window.loop2.m_finite_1 a pid t s i) then (Flt.num 0) else (Window.loop2.m_new a pid
    t s i)
@[expose] def Window.loop2.alpha_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Window.loop2.m_finite a pid t s i)
@[expose] def Window.loop2.alpha (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Window.loop2.alpha_1 a pid t s i)
@[expose] def Window.loop2.p_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Window.loop2.s a pid t s i j) (Window.loop2.m_finite a pid t s i)
@[expose] def Window.loop2.p (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Window.loop2.p_1 a pid t s i j)
@[expose] def Window.loop2.l_1 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Window.loop2.alpha a pid t s i) (s.2.1 i)
@[expose] def Window.loop2.l_2 (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Window.loop2.p a pid t s i n)
@[expose] def Window.loop2.l (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Window.loop2.l_1 a pid t s i) (Window.loop2.l_2 a pid t s i)
@[expose] def Window.loop2.o (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop2.alpha a pid t s i) (s.2.2 i j)
@[expose] def Window.loop2.y (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Window.loop2.p a pid t s i n)) (fun n => (Window.loop2.v a
    pid t s n j)) (Window.loop2.o a pid t s i j)
@[expose] def Window.loop2.firstTile (a : Window.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
@[expose] def Window.loop2.stopTile (a : Window.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One iteration. -/
@[expose] def Window.loop2.body (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R) :
    Window.loop2.State R :=
  (fun i => (Window.loop2.m_new a pid t s i), fun i => (Window.loop2.l a pid t s i), fun i j =>
    (Window.loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Window.loop2.start (a : Window.Args R) (pid : Int) : Window.loop2.State R :=
  (fun i => ((Window.loop1.result a pid).1 i), fun i => ((Window.loop1.result a pid).2.1 i), fun i j
    => ((Window.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def Window.loop2.result (a : Window.Args R) (pid : Int) : Window.loop2.State R :=
  forRange (Window.loop2.firstTile a pid)
    (Window.loop2.stopTile a pid)
    (Window.loop2.body a pid) (Window.loop2.start a pid)
/-- The state before iteration t. -/
@[expose] def Window.loop2.before (a : Window.Args R) (pid : Int) (t : Int)
    : Window.loop2.State R :=
  forRange (Window.loop2.firstTile a pid) t
    (Window.loop2.body a pid) (Window.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] def Window.loop2.Accesses (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    (P : Window.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Window.loop2.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, P.value_ptr (Window.loop2.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] def Window.loop2.Exponents (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Window.loop2.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Window.loop2.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] def Window.loop2.NoOverflow (a : Window.Args R) (pid t : Int) (s : Window.loop2.State R)
    : Prop :=
  (FitsI32 (Window.loop2.begin a pid t s)) ∧
  (FitsI64 (Window.loop2.key_base_1 a pid t s)) ∧
  (FitsI64 (Window.loop2.key_base_2 a pid t s)) ∧
  (FitsI64 (Window.loop2.key_base_3 a pid t s)) ∧
  (FitsI64 (Window.loop2.key_base a pid t s)) ∧
  (FitsI64 (Window.loop2.value_base_1 a pid t s)) ∧
  (FitsI64 (Window.loop2.value_base_2 a pid t s)) ∧
  (FitsI64 (Window.loop2.value_base_3 a pid t s)) ∧
  (FitsI64 (Window.loop2.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop2.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop2.found a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Window.loop2.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Window.loop2.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI32 (Window.loop2.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI64 (Window.loop2.value_ptrs a pid t s i j))
/-- What the loop carries. -/
abbrev Window.loop3.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] def Window.loop3.keys_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  t * (a.BLOCK_N : Int)
@[expose] def Window.loop3.keys (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Int :=
  fun i => (Window.loop3.keys_1 a pid t s) + (i : Int)
@[expose] def Window.loop3.inside_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Bool :=
  fun i => decide ((Window.first_3 a pid) ≤ (Window.loop3.keys a pid t s i))
@[expose] def Window.loop3.inside_2 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Bool :=
  fun i => decide ((Window.loop3.keys a pid t s i) < (Window.stop_5 a pid))
@[expose] def Window.loop3.inside (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Bool :=
  fun i => (Window.loop3.inside_1 a pid t s i) && (Window.loop3.inside_2 a pid t s i)
@[expose] def Window.loop3.key_base_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (Window.loop3.keys_1 a pid t s) * a.stride_kn
@[expose] def Window.loop3.key_base_2 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (Window.found_8 a pid) + (Window.loop3.key_base_1 a pid t s)
@[expose] def Window.loop3.key_base_3 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (Window.found_7 a pid) + (Window.loop3.key_base_2 a pid t s)
@[expose] def Window.loop3.key_base (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (0 : Int) + (Window.loop3.key_base_3 a pid t s)
@[expose] def Window.loop3.value_base_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (Window.loop3.keys_1 a pid t s) * a.stride_vn
@[expose] def Window.loop3.value_base_2 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (Window.found_10 a pid) + (Window.loop3.value_base_1 a pid t s)
@[expose] def Window.loop3.value_base_3 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (Window.found_9 a pid) + (Window.loop3.value_base_2 a pid t s)
@[expose] def Window.loop3.value_base (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Int :=
  (0 : Int) + (Window.loop3.value_base_3 a pid t s)
@[expose] def Window.loop3.found_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_kn
@[expose] def Window.loop3.found_2 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_vn
@[expose] def Window.loop3.key_ptrs_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Int :=
  fun i j => (i : Int) + (Window.loop3.found_1 a pid t s j)
@[expose] def Window.loop3.key_ptrs (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop3.key_base a pid t s) + (Window.loop3.key_ptrs_1 a pid t s i j)
@[expose] def Window.loop3.value_ptrs_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop3.found_2 a pid t s i) + (j : Int)
@[expose] def Window.loop3.value_ptrs (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.loop3.value_base a pid t s) + (Window.loop3.value_ptrs_1 a pid t s i j)
@[expose] def Window.loop3.found_3 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.head_dim)
@[expose] def Window.loop3.found (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.value_dim)
@[expose] def Window.loop3.k_inside (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop3.found_3 a pid t s i) && (Window.loop3.inside a pid t s j)
@[expose] def Window.loop3.v_inside (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop3.found a pid t s j) && (Window.loop3.inside a pid t s i)
@[expose] def Window.loop3.load_k (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Window.loop3.k_inside a pid t s i j), (Window.loop3.key_ptrs a pid t s i j)⟩
@[expose] def Window.loop3.k (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Window.loop3.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] def Window.loop3.y_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Window.q a pid i n)) (fun n => (Window.loop3.k a pid t s n
    j)) (Flt.num 0)
@[expose] def Window.loop3.s (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop3.y_1 a pid t s i j) a.scale
@[expose] def Window.loop3.load_v (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Window.loop3.v_inside a pid t s i j), (Window.loop3.value_ptrs a pid t s i j)⟩
@[expose] def Window.loop3.v (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Window.loop3.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] def Window.loop3.visible_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.rows a pid i) - a.left
@[expose] def Window.loop3.visible_2 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((Window.loop3.visible_1 a pid t s i 0) ≤ (Window.loop3.keys a pid t s j))
@[expose] def Window.loop3.visible_3 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop3.inside_2 a pid t s j) && (Window.loop3.visible_2 a pid t s i j)
@[expose] def Window.loop3.visible_4 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Int :=
  fun i j => (Window.rows a pid i) + a.right
@[expose] def Window.loop3.visible_5 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((Window.loop3.keys a pid t s j) ≤ (Window.loop3.visible_4 a pid t s i 0))
@[expose] def Window.loop3.visible (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop3.visible_3 a pid t s i j) && (Window.loop3.visible_5 a pid t s i j)
@[expose] def Window.loop3.select (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Window.loop3.visible a pid t s i j) then (Window.loop3.s a pid t s i j) else
    Flt.ninf
@[expose] def Window.loop3.largest (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Window.loop3.select a pid t s i n)
@[expose] def Window.loop3.m_new (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Window.loop3.largest a pid t s i)
@[expose] def Window.loop3.m_finite_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Window.loop3.m_new a pid t s i) Flt.ninf
@[expose] def Window.loop3.m_finite (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => if (Window.loop3.m_finite_1 a pid t s i) then (Flt.num 0) else (Window.loop3.m_new a pid
    t s i)
@[expose] def Window.loop3.alpha_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Window.loop3.m_finite a pid t s i)
@[expose] def Window.loop3.alpha (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Window.loop3.alpha_1 a pid t s i)
@[expose] def Window.loop3.p_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Window.loop3.select a pid t s i j) (Window.loop3.m_finite a pid t s i)
@[expose] def Window.loop3.p (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Window.loop3.p_1 a pid t s i j)
@[expose] def Window.loop3.l_1 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Window.loop3.alpha a pid t s i) (s.2.1 i)
@[expose] def Window.loop3.l_2 (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Window.loop3.p a pid t s i n)
@[expose] def Window.loop3.l (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Window.loop3.l_1 a pid t s i) (Window.loop3.l_2 a pid t s i)
@[expose] def Window.loop3.o (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop3.alpha a pid t s i) (s.2.2 i j)
@[expose] def Window.loop3.y (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Window.loop3.p a pid t s i n)) (fun n => (Window.loop3.v a
    pid t s n j)) (Window.loop3.o a pid t s i j)
@[expose] def Window.loop3.firstTile (a : Window.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
@[expose] def Window.loop3.stopTile (a : Window.Args R) (pid : Int) : Int :=
  (Window.select_2 a pid)
/-- One iteration. -/
@[expose] def Window.loop3.body (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R) :
    Window.loop3.State R :=
  (fun i => (Window.loop3.m_new a pid t s i), fun i => (Window.loop3.l a pid t s i), fun i j =>
    (Window.loop3.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Window.loop3.start (a : Window.Args R) (pid : Int) : Window.loop3.State R :=
  (fun i => ((Window.loop2.result a pid).1 i), fun i => ((Window.loop2.result a pid).2.1 i), fun i j
    => ((Window.loop2.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def Window.loop3.result (a : Window.Args R) (pid : Int) : Window.loop3.State R :=
  forRange (Window.loop3.firstTile a pid)
    (Window.loop3.stopTile a pid)
    (Window.loop3.body a pid) (Window.loop3.start a pid)
/-- The state before iteration t. -/
@[expose] def Window.loop3.before (a : Window.Args R) (pid : Int) (t : Int)
    : Window.loop3.State R :=
  forRange (Window.loop3.firstTile a pid) t
    (Window.loop3.body a pid) (Window.loop3.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] def Window.loop3.Accesses (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    (P : Window.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Window.loop3.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, P.value_ptr (Window.loop3.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] def Window.loop3.Exponents (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Window.loop3.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Window.loop3.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] def Window.loop3.NoOverflow (a : Window.Args R) (pid t : Int) (s : Window.loop3.State R)
    : Prop :=
  (FitsI32 (Window.loop3.keys_1 a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop3.keys a pid t s i)) ∧
  (FitsI64 (Window.loop3.key_base_1 a pid t s)) ∧
  (FitsI64 (Window.loop3.key_base_2 a pid t s)) ∧
  (FitsI64 (Window.loop3.key_base_3 a pid t s)) ∧
  (FitsI64 (Window.loop3.key_base a pid t s)) ∧
  (FitsI64 (Window.loop3.value_base_1 a pid t s)) ∧
  (FitsI64 (Window.loop3.value_base_2 a pid t s)) ∧
  (FitsI64 (Window.loop3.value_base_3 a pid t s)) ∧
  (FitsI64 (Window.loop3.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop3.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Window.loop3.found_2 a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Window.loop3.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (Window.loop3.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI32 (Window.loop3.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_D, FitsI64 (Window.loop3.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Window.loop3.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Window.loop3.visible_4 a pid t s i j))
@[expose] def Window.found_11 (a : Window.Args R) (pid : Int) : Int :=
  (Window.batch a pid) * a.stride_ob
@[expose] def Window.found_12 (a : Window.Args R) (pid : Int) : Int :=
  (Window.head a pid) * a.stride_oh
@[expose] def Window.found_13 (a : Window.Args R) (pid : Int) : Int :=
  (Window.found_11 a pid) + (Window.found_12 a pid)
@[expose] def Window.found_14 (a : Window.Args R) (pid : Int) : Int :=
  (0 : Int) + (Window.found_13 a pid)
@[expose] def Window.found_15 (a : Window.Args R) (pid : Int) : Nat → Int :=
  fun i => (Window.queries a pid i) * a.stride_om
@[expose] def Window.out_ptrs_1 (a : Window.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Window.found_14 a pid) + (Window.found_15 a pid i)
@[expose] def Window.out_ptrs (a : Window.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Window.out_ptrs_1 a pid i 0) + (j : Int)
@[expose] def Window.found_16 (a : Window.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((i : Int) < a.value_dim)
@[expose] def Window.stored (a : Window.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (Window.inside a pid i) && (Window.found_16 a pid j)
@[expose] def Window.none_ (a : Window.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((Window.loop3.result a pid).2.1 i) (Flt.num 0)
@[expose] def Window.select (a : Window.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (Window.none_ a pid i) then (Flt.num 1) else ((Window.loop3.result a pid).2.1 i)
@[expose] def Window.divf (a : Window.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((Window.loop3.result a pid).2.2 i j) (Window.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def Window.store_out_ptr (a : Window.Args R) (pid : Int) : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Window.stored a pid i j), (Window.out_ptrs a pid i j)⟩, (Window.divf a pid i j)⟩
@[expose] def Window.found_17 (a : Window.Args R) (pid : Int) : Int :=
  (Window.batch a pid) * a.stride_lb
@[expose] def Window.found_18 (a : Window.Args R) (pid : Int) : Int :=
  (Window.head a pid) * a.stride_lh
@[expose] def Window.found_19 (a : Window.Args R) (pid : Int) : Int :=
  (Window.found_17 a pid) + (Window.found_18 a pid)
@[expose] def Window.found (a : Window.Args R) (pid : Int) : Int :=
  (0 : Int) + (Window.found_19 a pid)
@[expose] def Window.addptr (a : Window.Args R) (pid : Int) : Nat → Int :=
  fun i => (Window.found a pid) + (Window.queries a pid i)
@[expose] def Window.mulf (a : Window.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((Window.loop3.result a pid).1 i) (Flt.num a.ln2)
@[expose] def Window.log (a : Window.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (Window.select a pid i)
@[expose] def Window.addf (a : Window.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (Window.mulf a pid i) (Window.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def Window.store_lse_ptr (a : Window.Args R) (pid : Int) : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Window.inside a pid i), (Window.addptr a pid i)⟩, (Window.addf a pid i)⟩
/-- What `P` asks of each access. -/
@[expose] def Window.Accesses (a : Window.Args R) (pid : Int)
    (P : Window.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr (Window.load_q a pid i j)) ∧
  (∀ t, Window.loop1.firstTile a pid ≤ t → t < Window.loop1.stopTile a pid → Window.loop1.Accesses a
    pid t (Window.loop1.before a pid t) P) ∧
  (∀ t, Window.loop2.firstTile a pid ≤ t → t < Window.loop2.stopTile a pid → Window.loop2.Accesses a
    pid t (Window.loop2.before a pid t) P) ∧
  (∀ t, Window.loop3.firstTile a pid ≤ t → t < Window.loop3.stopTile a pid → Window.loop3.Accesses a
    pid t (Window.loop3.before a pid t) P) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.out_ptr (Window.store_out_ptr a pid i j).toAccess) ∧
  (∀ i < a.BLOCK_M, P.lse_ptr (Window.store_lse_ptr a pid i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] def Window.Exponents (a : Window.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  (∀ t, Window.loop1.firstTile a pid ≤ t → t < Window.loop1.stopTile a pid → Window.loop1.Exponents
    a pid t (Window.loop1.before a pid t) P) ∧
  (∀ t, Window.loop2.firstTile a pid ≤ t → t < Window.loop2.stopTile a pid → Window.loop2.Exponents
    a pid t (Window.loop2.before a pid t) P) ∧
  (∀ t, Window.loop3.firstTile a pid ≤ t → t < Window.loop3.stopTile a pid → Window.loop3.Exponents
    a pid t (Window.loop3.before a pid t) P)
/-- No integer operation overflows. -/
@[expose] def Window.NoOverflow (a : Window.Args R) (pid : Int)
    : Prop :=
  (FitsI32 (Window.query_tiles_1 a pid)) ∧
  (FitsI32 (Window.query_tiles a pid)) ∧
  ((a.BLOCK_M : Int) ≠ 0) ∧
  (FitsI32 (Window.tile_1 a pid)) ∧
  (FitsI32 (Window.tile_2 a pid)) ∧
  ((Window.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (Int.tdiv pid (Window.query_tiles a pid))) ∧
  (FitsI32 (Window.tile a pid)) ∧
  (FitsI32 (Window.head_1 a pid)) ∧
  ((Window.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (Window.batch a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (Window.head a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (Int.tdiv (Window.head_1 a pid) a.num_heads)) ∧
  (FitsI64 (Window.kv_head a pid)) ∧
  (a.group ≠ 0) ∧
  (FitsI32 (Window.row_first a pid)) ∧
  (FitsI32 (Window.row_last_1 a pid)) ∧
  (FitsI32 (Window.row_last_2 a pid)) ∧
  (FitsI32 (Window.row_last a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Window.queries a pid i)) ∧
  (FitsI64 (Window.found_1 a pid)) ∧
  (FitsI64 (Window.found_2 a pid)) ∧
  (FitsI64 (Window.found_3 a pid)) ∧
  (FitsI64 (Window.found_4 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Window.found_5 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Window.query_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64 (Window.query_ptrs a pid i j)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Window.rows a pid i)) ∧
  (FitsI64 (Window.found_7 a pid)) ∧
  (FitsI64 (Window.found_8 a pid)) ∧
  (FitsI64 (Window.found_9 a pid)) ∧
  (FitsI64 (Window.found_10 a pid)) ∧
  (FitsI32 (Window.first_1 a pid)) ∧
  (FitsI32 (Window.first_2 a pid)) ∧
  (FitsI32 (Window.stop_1 a pid)) ∧
  (FitsI32 (Window.stop_2 a pid)) ∧
  (FitsI32 (Window.stop_3 a pid)) ∧
  (FitsI32 (Window.divsi_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Window.addi a pid)) ∧
  (FitsI32 (Window.divsi a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Window.stop_6 a pid)) ∧
  (FitsI32 (Window.stop_7 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Window.first_4 a pid)) ∧
  (FitsI32 (Window.first_6 a pid)) ∧
  (FitsI32 (Window.first a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Window.seen_1 a pid)) ∧
  (FitsI32 (Window.seen_2 a pid)) ∧
  (FitsI32 (Window.stop_9 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Window.whole_stop_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (∀ t, Window.loop1.firstTile a pid ≤ t → t < Window.loop1.stopTile a pid → Window.loop1.NoOverflow
    a pid t (Window.loop1.before a pid t)) ∧
  (∀ t, Window.loop2.firstTile a pid ≤ t → t < Window.loop2.stopTile a pid → Window.loop2.NoOverflow
    a pid t (Window.loop2.before a pid t)) ∧
  (∀ t, Window.loop3.firstTile a pid ≤ t → t < Window.loop3.stopTile a pid → Window.loop3.NoOverflow
    a pid t (Window.loop3.before a pid t)) ∧
  (FitsI64 (Window.found_11 a pid)) ∧
  (FitsI64 (Window.found_12 a pid)) ∧
  (FitsI64 (Window.found_13 a pid)) ∧
  (FitsI64 (Window.found_14 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Window.found_15 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Window.out_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64 (Window.out_ptrs a pid i j)) ∧
  (FitsI64 (Window.found_17 a pid)) ∧
  (FitsI64 (Window.found_18 a pid)) ∧
  (FitsI64 (Window.found_19 a pid)) ∧
  (FitsI64 (Window.found a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Window.addptr a pid i))

end Attention.Kernel
