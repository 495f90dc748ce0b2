module

public import Attention.Kernel.Ops

public section

namespace Attention.Kernel.Causal

universe u

/-- The kernel's arguments; of a pointer what lies behind it. Tile sizes and the numbers
that literals stand for are among them. -/
structure Args (R : Type u) where
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
  stride_mb : Int
  stride_mh : Int
  stride_mm : Int
  stride_mn : Int
  stride_bb : Int
  stride_bh : Int
  stride_bm : Int
  stride_bn : Int
  stride_sb : Int
  stride_sh : Int
  stride_ih : Int
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

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] def query_tiles_1 (a : Args R) (pid : Int) : Int :=
  a.q_len + (a.BLOCK_M - 1 : Int)
@[expose] def query_tiles (a : Args R) (pid : Int) : Int :=
  Int.tdiv (query_tiles_1 a pid) (a.BLOCK_M : Int)
@[expose] def tile_1 (a : Args R) (pid : Int) : Int :=
  (query_tiles a pid) - (1 : Int)
@[expose] def tile_2 (a : Args R) (pid : Int) : Int :=
  Int.tmod pid (query_tiles a pid)
@[expose] def tile (a : Args R) (pid : Int) : Int :=
  (tile_1 a pid) - (tile_2 a pid)
@[expose] def head_1 (a : Args R) (pid : Int) : Int :=
  Int.tdiv pid (query_tiles a pid)
@[expose] def batch (a : Args R) (pid : Int) : Int :=
  Int.tdiv (head_1 a pid) a.num_heads
@[expose] def head (a : Args R) (pid : Int) : Int :=
  Int.tmod (head_1 a pid) a.num_heads
@[expose] def kv_head (a : Args R) (pid : Int) : Int :=
  Int.tdiv (head a pid) a.group
@[expose] def row_first (a : Args R) (pid : Int) : Int :=
  (tile a pid) * (a.BLOCK_M : Int)
@[expose] def row_last_1 (a : Args R) (pid : Int) : Int :=
  (tile a pid) + (1 : Int)
@[expose] def row_last_2 (a : Args R) (pid : Int) : Int :=
  (row_last_1 a pid) * (a.BLOCK_M : Int)
@[expose] def row_last_3 (a : Args R) (pid : Int) : Int :=
  min (row_last_2 a pid) a.q_len
@[expose] def row_last (a : Args R) (pid : Int) : Int :=
  (row_last_3 a pid) - (1 : Int)
@[expose] def queries (a : Args R) (pid : Int) : Nat → Int :=
  fun i => (row_first a pid) + (i : Int)
@[expose] def inside (a : Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((queries a pid i) < a.q_len)
@[expose] def query_ptrs_1 (a : Args R) (pid : Int) : Int :=
  (batch a pid) * a.stride_qb
@[expose] def query_ptrs_2 (a : Args R) (pid : Int) : Int :=
  (head a pid) * a.stride_qh
@[expose] def query_ptrs_3 (a : Args R) (pid : Int) : Int :=
  (query_ptrs_1 a pid) + (query_ptrs_2 a pid)
@[expose] def query_ptrs_4 (a : Args R) (pid : Int) : Int :=
  (0 : Int) + (query_ptrs_3 a pid)
@[expose] def query_ptrs_5 (a : Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (queries a pid i) * a.stride_qm
@[expose] def query_ptrs_6 (a : Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (query_ptrs_4 a pid) + (query_ptrs_5 a pid i j)
@[expose] def query_ptrs (a : Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (query_ptrs_6 a pid i 0) + (j : Int)
@[expose] def q_1 (a : Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => decide ((j : Int) < a.head_dim)
@[expose] def q_2 (a : Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (inside a pid i) && (q_1 a pid 0 j)
@[expose] def q (a : Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => if (q_2 a pid i j) then a.query_ptr (query_ptrs a pid i j) else (Flt.num 0)
@[expose] def rows (a : Args R) (pid : Int) : Nat → Int :=
  fun i => (queries a pid i) + a.shift
@[expose] def keys_1 (a : Args R) (pid : Int) : Int :=
  (batch a pid) * a.stride_kb
@[expose] def keys_2 (a : Args R) (pid : Int) : Int :=
  (kv_head a pid) * a.stride_kh
@[expose] def keys_3 (a : Args R) (pid : Int) : Int :=
  (batch a pid) * a.stride_vb
@[expose] def keys (a : Args R) (pid : Int) : Int :=
  (kv_head a pid) * a.stride_vh
@[expose] def stop_1 (a : Args R) (pid : Int) : Int :=
  (row_last a pid) + a.shift
@[expose] def stop_2 (a : Args R) (pid : Int) : Int :=
  (stop_1 a pid) + a.right
@[expose] def stop_3 (a : Args R) (pid : Int) : Int :=
  (stop_2 a pid) + (1 : Int)
@[expose] def stop_4 (a : Args R) (pid : Int) : Int :=
  max (stop_3 a pid) (0 : Int)
@[expose] def stop_5 (a : Args R) (pid : Int) : Int :=
  min a.kv_len (stop_4 a pid)
@[expose] def some (a : Args R) (pid : Int) : Bool :=
  decide ((0 : Int) < (stop_5 a pid))
@[expose] def addi (a : Args R) (pid : Int) : Int :=
  (stop_5 a pid) + (a.BLOCK_N - 1 : Int)
@[expose] def divsi (a : Args R) (pid : Int) : Int :=
  Int.tdiv (addi a pid) (a.BLOCK_N : Int)
@[expose] def select_1 (a : Args R) (pid : Int) : Int :=
  if (some a pid) then (divsi a pid) else (0 : Int)
@[expose] def stop_6 (a : Args R) (pid : Int) : Int :=
  a.kv_len + (a.BLOCK_N - 1 : Int)
@[expose] def stop_7 (a : Args R) (pid : Int) : Int :=
  Int.tdiv (stop_6 a pid) (a.BLOCK_N : Int)
@[expose] def seen_1 (a : Args R) (pid : Int) : Int :=
  (row_first a pid) + a.shift
@[expose] def seen_2 (a : Args R) (pid : Int) : Int :=
  (seen_1 a pid) + a.right
@[expose] def seen_3 (a : Args R) (pid : Int) : Int :=
  (seen_2 a pid) + (1 : Int)
@[expose] def seen (a : Args R) (pid : Int) : Int :=
  max (seen_3 a pid) (0 : Int)
@[expose] def stop_8 (a : Args R) (pid : Int) : Bool :=
  decide (a.kv_len ≤ (seen a pid))
@[expose] def stop_9 (a : Args R) (pid : Int) : Int :=
  Int.tdiv (seen a pid) (a.BLOCK_N : Int)
@[expose] def stop (a : Args R) (pid : Int) : Int :=
  if (stop_8 a pid) then (stop_7 a pid) else (stop_9 a pid)
@[expose] def whole_stop_1 (a : Args R) (pid : Int) : Int :=
  Int.tdiv a.kv_len (a.BLOCK_N : Int)
@[expose] def whole_stop_2 (a : Args R) (pid : Int) : Int :=
  min (stop a pid) (whole_stop_1 a pid)
@[expose] def whole_first (a : Args R) (pid : Int) : Int :=
  min (select_1 a pid) (0 : Int)
@[expose] def whole_stop_3 (a : Args R) (pid : Int) : Int :=
  max (whole_stop_2 a pid) (whole_first a pid)
@[expose] def whole_stop (a : Args R) (pid : Int) : Int :=
  min (whole_stop_3 a pid) (select_1 a pid)
/-- What the loop carries. -/
abbrev loop1.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] def loop1.begin (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  t * (a.BLOCK_N : Int)
@[expose] def loop1.key_base_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (loop1.begin a pid t s) * a.stride_kn
@[expose] def loop1.key_base_2 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (keys_2 a pid) + (loop1.key_base_1 a pid t s)
@[expose] def loop1.key_base_3 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (keys_1 a pid) + (loop1.key_base_2 a pid t s)
@[expose] def loop1.key_base (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (0 : Int) + (loop1.key_base_3 a pid t s)
@[expose] def loop1.value_base_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (loop1.begin a pid t s) * a.stride_vn
@[expose] def loop1.value_base_2 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (keys a pid) + (loop1.value_base_1 a pid t s)
@[expose] def loop1.value_base_3 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (keys_3 a pid) + (loop1.value_base_2 a pid t s)
@[expose] def loop1.value_base (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Int :=
  (0 : Int) + (loop1.value_base_3 a pid t s)
@[expose] def loop1.key_offsets_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Int :=
  fun i j => (j : Int) * a.stride_kn
@[expose] def loop1.key_offsets (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Int :=
  fun i j => (i : Int) + (loop1.key_offsets_1 a pid t s 0 j)
@[expose] def loop1.value_offsets_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Int :=
  fun i j => (i : Int) * a.stride_vn
@[expose] def loop1.value_offsets (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Int :=
  fun i j => (loop1.value_offsets_1 a pid t s i 0) + (j : Int)
@[expose] def loop1.key_ptrs (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Int :=
  fun i j => (loop1.key_base a pid t s) + (loop1.key_offsets a pid t s i j)
@[expose] def loop1.value_ptrs (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Int :=
  fun i j => (loop1.value_base a pid t s) + (loop1.value_offsets a pid t s i j)
@[expose] def loop1.k (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => a.key_ptr (loop1.key_ptrs a pid t s i j)
@[expose] def loop1.y_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (q a pid i n)) (fun n => (loop1.k a pid t s n j)) (Flt.num 0)
@[expose] def loop1.v (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => a.value_ptr (loop1.value_ptrs a pid t s i j)
@[expose] def loop1.largest_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (loop1.y_1 a pid t s i n)
@[expose] def loop1.largest (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.mul (loop1.largest_1 a pid t s i) a.scale
@[expose] def loop1.s (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.mul (loop1.y_1 a pid t s i j) a.scale
@[expose] def loop1.m_new (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (loop1.largest a pid t s i)
@[expose] def loop1.m_finite_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Bool :=
  fun i => Flt.oeq (loop1.m_new a pid t s i) Flt.ninf
@[expose] def loop1.m_finite (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => if (loop1.m_finite_1 a pid t s i) then (Flt.num 0) else (loop1.m_new a pid t s i)
@[expose] def loop1.alpha_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (loop1.m_finite a pid t s i)
@[expose] def loop1.alpha (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.exp2 (loop1.alpha_1 a pid t s i)
@[expose] def loop1.p_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.sub (loop1.s a pid t s i j) (loop1.m_finite a pid t s i)
@[expose] def loop1.p (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (loop1.p_1 a pid t s i j)
@[expose] def loop1.l_1 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.mul (loop1.alpha a pid t s i) (s.2.1 i)
@[expose] def loop1.l_2 (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (loop1.p a pid t s i n)
@[expose] def loop1.l (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Flt R :=
  fun i => Flt.add (loop1.l_1 a pid t s i) (loop1.l_2 a pid t s i)
@[expose] def loop1.o (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.mul (loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] def loop1.y (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (loop1.p a pid t s i n)) (fun n => (loop1.v a pid t s n j)) (loop1.o a pid t s i j)
@[expose] def loop1.firstTile (a : Args R) (pid : Int) : Int :=
  (whole_first a pid)
@[expose] def loop1.stopTile (a : Args R) (pid : Int) : Int :=
  (whole_stop a pid)
/-- One iteration. -/
@[expose] def loop1.body (a : Args R) (pid : Int) (t : Int) (s : loop1.State R) :
    loop1.State R :=
  (fun i => (loop1.m_new a pid t s i), fun i => (loop1.l a pid t s i), fun i j => (loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def loop1.start (a : Args R) (pid : Int) : loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def loop1.result (a : Args R) (pid : Int) : loop1.State R :=
  forRange (loop1.firstTile a pid) (loop1.stopTile a pid)
    (loop1.body a pid) (loop1.start a pid)
/-- What the loop carries. -/
abbrev loop2.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] def loop2.keys_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  t * (a.BLOCK_N : Int)
@[expose] def loop2.keys (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Int :=
  fun i => (loop2.keys_1 a pid t s) + (i : Int)
@[expose] def loop2.inside_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Bool :=
  fun i => decide ((0 : Int) ≤ (loop2.keys a pid t s i))
@[expose] def loop2.inside_2 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Bool :=
  fun i => decide ((loop2.keys a pid t s i) < (stop_5 a pid))
@[expose] def loop2.inside (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Bool :=
  fun i => (loop2.inside_1 a pid t s i) && (loop2.inside_2 a pid t s i)
@[expose] def loop2.key_base_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (loop2.keys_1 a pid t s) * a.stride_kn
@[expose] def loop2.key_base_2 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (keys_2 a pid) + (loop2.key_base_1 a pid t s)
@[expose] def loop2.key_base_3 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (keys_1 a pid) + (loop2.key_base_2 a pid t s)
@[expose] def loop2.key_base (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (0 : Int) + (loop2.key_base_3 a pid t s)
@[expose] def loop2.value_base_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (loop2.keys_1 a pid t s) * a.stride_vn
@[expose] def loop2.value_base_2 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (keys a pid) + (loop2.value_base_1 a pid t s)
@[expose] def loop2.value_base_3 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (keys_3 a pid) + (loop2.value_base_2 a pid t s)
@[expose] def loop2.value_base (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Int :=
  (0 : Int) + (loop2.value_base_3 a pid t s)
@[expose] def loop2.key_offsets_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Int :=
  fun i j => (j : Int) * a.stride_kn
@[expose] def loop2.key_offsets (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Int :=
  fun i j => (i : Int) + (loop2.key_offsets_1 a pid t s 0 j)
@[expose] def loop2.value_offsets_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Int :=
  fun i j => (i : Int) * a.stride_vn
@[expose] def loop2.value_offsets (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Int :=
  fun i j => (loop2.value_offsets_1 a pid t s i 0) + (j : Int)
@[expose] def loop2.key_ptrs (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Int :=
  fun i j => (loop2.key_base a pid t s) + (loop2.key_offsets a pid t s i j)
@[expose] def loop2.value_ptrs (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Int :=
  fun i j => (loop2.value_base a pid t s) + (loop2.value_offsets a pid t s i j)
@[expose] def loop2.k_inside_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Bool :=
  fun i j => decide ((i : Int) < a.head_dim)
@[expose] def loop2.v_inside_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Bool :=
  fun i j => decide ((j : Int) < a.value_dim)
@[expose] def loop2.k_inside (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Bool :=
  fun i j => (loop2.k_inside_1 a pid t s i 0) && (loop2.inside a pid t s j)
@[expose] def loop2.v_inside (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Bool :=
  fun i j => (loop2.v_inside_1 a pid t s 0 j) && (loop2.inside a pid t s i)
@[expose] def loop2.k (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => if (loop2.k_inside a pid t s i j) then a.key_ptr (loop2.key_ptrs a pid t s i j) else (Flt.num 0)
@[expose] def loop2.y_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (q a pid i n)) (fun n => (loop2.k a pid t s n j)) (Flt.num 0)
@[expose] def loop2.s (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.mul (loop2.y_1 a pid t s i j) a.scale
@[expose] def loop2.v (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => if (loop2.v_inside a pid t s i j) then a.value_ptr (loop2.value_ptrs a pid t s i j) else (Flt.num 0)
@[expose] def loop2.visible_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Int :=
  fun i j => (rows a pid i) + a.right
@[expose] def loop2.visible_2 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Bool :=
  fun i j => decide ((loop2.keys a pid t s j) ≤ (loop2.visible_1 a pid t s i 0))
@[expose] def loop2.visible (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Bool :=
  fun i j => (loop2.inside_2 a pid t s j) && (loop2.visible_2 a pid t s i j)
@[expose] def loop2.select (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => if (loop2.visible a pid t s i j) then (loop2.s a pid t s i j) else Flt.ninf
@[expose] def loop2.largest (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (loop2.select a pid t s i n)
@[expose] def loop2.m_new (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (loop2.largest a pid t s i)
@[expose] def loop2.m_finite_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Bool :=
  fun i => Flt.oeq (loop2.m_new a pid t s i) Flt.ninf
@[expose] def loop2.m_finite (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => if (loop2.m_finite_1 a pid t s i) then (Flt.num 0) else (loop2.m_new a pid t s i)
@[expose] def loop2.alpha_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (loop2.m_finite a pid t s i)
@[expose] def loop2.alpha (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => Flt.exp2 (loop2.alpha_1 a pid t s i)
@[expose] def loop2.p_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.sub (loop2.select a pid t s i j) (loop2.m_finite a pid t s i)
@[expose] def loop2.p (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (loop2.p_1 a pid t s i j)
@[expose] def loop2.l_1 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => Flt.mul (loop2.alpha a pid t s i) (s.2.1 i)
@[expose] def loop2.l_2 (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (loop2.p a pid t s i n)
@[expose] def loop2.l (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Flt R :=
  fun i => Flt.add (loop2.l_1 a pid t s i) (loop2.l_2 a pid t s i)
@[expose] def loop2.o (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.mul (loop2.alpha a pid t s i) (s.2.2 i j)
@[expose] def loop2.y (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (loop2.p a pid t s i n)) (fun n => (loop2.v a pid t s n j)) (loop2.o a pid t s i j)
@[expose] def loop2.firstTile (a : Args R) (pid : Int) : Int :=
  (whole_stop a pid)
@[expose] def loop2.stopTile (a : Args R) (pid : Int) : Int :=
  (select_1 a pid)
/-- One iteration. -/
@[expose] def loop2.body (a : Args R) (pid : Int) (t : Int) (s : loop2.State R) :
    loop2.State R :=
  (fun i => (loop2.m_new a pid t s i), fun i => (loop2.l a pid t s i), fun i j => (loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def loop2.start (a : Args R) (pid : Int) : loop2.State R :=
  (fun i => ((loop1.result a pid).1 i), fun i => ((loop1.result a pid).2.1 i), fun i j => ((loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def loop2.result (a : Args R) (pid : Int) : loop2.State R :=
  forRange (loop2.firstTile a pid) (loop2.stopTile a pid)
    (loop2.body a pid) (loop2.start a pid)
@[expose] def out_ptrs_1 (a : Args R) (pid : Int) : Int :=
  (batch a pid) * a.stride_ob
@[expose] def out_ptrs_2 (a : Args R) (pid : Int) : Int :=
  (head a pid) * a.stride_oh
@[expose] def out_ptrs_3 (a : Args R) (pid : Int) : Int :=
  (out_ptrs_1 a pid) + (out_ptrs_2 a pid)
@[expose] def out_ptrs_4 (a : Args R) (pid : Int) : Int :=
  (0 : Int) + (out_ptrs_3 a pid)
@[expose] def out_ptrs_5 (a : Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (queries a pid i) * a.stride_om
@[expose] def out_ptrs_6 (a : Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (out_ptrs_4 a pid) + (out_ptrs_5 a pid i j)
@[expose] def out_ptrs (a : Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (out_ptrs_6 a pid i 0) + (j : Int)
@[expose] def stored_1 (a : Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => decide ((j : Int) < a.value_dim)
@[expose] def stored (a : Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (inside a pid i) && (stored_1 a pid 0 j)
@[expose] def none (a : Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((loop2.result a pid).2.1 i) (Flt.num 0)
@[expose] def select (a : Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (none a pid i) then (Flt.num 1) else ((loop2.result a pid).2.1 i)
@[expose] def divf (a : Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((loop2.result a pid).2.2 i j) (select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def store_out_ptr (a : Args R) (pid : Int) : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(stored a pid i j), (out_ptrs a pid i j)⟩, (divf a pid i j)⟩
@[expose] def lse_ptrs_1 (a : Args R) (pid : Int) : Int :=
  (batch a pid) * a.stride_lb
@[expose] def lse_ptrs_2 (a : Args R) (pid : Int) : Int :=
  (head a pid) * a.stride_lh
@[expose] def lse_ptrs_3 (a : Args R) (pid : Int) : Int :=
  (lse_ptrs_1 a pid) + (lse_ptrs_2 a pid)
@[expose] def lse_ptrs_4 (a : Args R) (pid : Int) : Int :=
  (0 : Int) + (lse_ptrs_3 a pid)
@[expose] def lse_ptrs (a : Args R) (pid : Int) : Nat → Int :=
  fun i => (lse_ptrs_4 a pid) + (queries a pid i)
@[expose] def mulf (a : Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((loop2.result a pid).1 i) (Flt.num a.ln2)
@[expose] def log (a : Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (select a pid i)
@[expose] def addf (a : Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (mulf a pid i) (log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def store_lse_ptr (a : Args R) (pid : Int) : Nat → Store (Flt R) :=
  fun i => ⟨⟨(inside a pid i), (lse_ptrs a pid i)⟩, (addf a pid i)⟩

end Attention.Kernel.Causal
