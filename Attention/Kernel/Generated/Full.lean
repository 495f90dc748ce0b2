module

public import Attention.Kernel.Generated.Arguments

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: Full

Without a window. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev Full.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] noncomputable def Full.query_tiles_1 (a : Forward.Args R) (pid : Int) : Int :=
  a.q_len + (a.BLOCK_M - 1 : Int)
@[expose] noncomputable def Full.query_tiles (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (Full.query_tiles_1 a pid) (a.BLOCK_M : Int)
@[expose] noncomputable def Full.tile_1 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.query_tiles a pid) - (1 : Int)
@[expose] noncomputable def Full.tile_2 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tmod pid (Full.query_tiles a pid)
@[expose] noncomputable def Full.tile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.tile_1 a pid) - (Full.tile_2 a pid)
@[expose] noncomputable def Full.head_1 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv pid (Full.query_tiles a pid)
@[expose] noncomputable def Full.batch (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (Full.head_1 a pid) a.num_heads
@[expose] noncomputable def Full.head (a : Forward.Args R) (pid : Int) : Int :=
  Int.tmod (Full.head_1 a pid) a.num_heads
@[expose] noncomputable def Full.kv_head (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (Full.head a pid) a.group
@[expose] noncomputable def Full.row_first (a : Forward.Args R) (pid : Int) : Int :=
  (Full.tile a pid) * (a.BLOCK_M : Int)
@[expose] noncomputable def Full.queries (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (Full.row_first a pid) + (i : Int)
@[expose] noncomputable def Full.inside (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((Full.queries a pid i) < a.q_len)
@[expose] noncomputable def Full.found_1 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.batch a pid) * a.stride_qb
@[expose] noncomputable def Full.found_2 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.head a pid) * a.stride_qh
@[expose] noncomputable def Full.found_3 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.found_1 a pid) + (Full.found_2 a pid)
@[expose] noncomputable def Full.found_4 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (Full.found_3 a pid)
@[expose] noncomputable def Full.found_5 (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (Full.queries a pid i) * a.stride_qm
@[expose] noncomputable def Full.query_ptrs_1 (a : Forward.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Full.found_4 a pid) + (Full.found_5 a pid i)
@[expose] noncomputable def Full.query_ptrs (a : Forward.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Full.query_ptrs_1 a pid i 0) + (j : Int)
@[expose] noncomputable def Full.found_6 (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((i : Int) < a.head_dim)
@[expose] noncomputable def Full.loaded (a : Forward.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (Full.inside a pid i) && (Full.found_6 a pid j)
@[expose] noncomputable def Full.load_q (a : Forward.Args R) (pid : Int) : Nat → Nat → Access :=
  fun i j => ⟨(Full.loaded a pid i j), (Full.query_ptrs a pid i j)⟩
@[expose] noncomputable def Full.q (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => (Full.load_q a pid i j).read a.query_ptr (Flt.num 0)
@[expose] noncomputable def Full.found_7 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.batch a pid) * a.stride_kb
@[expose] noncomputable def Full.found_8 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.kv_head a pid) * a.stride_kh
@[expose] noncomputable def Full.found_9 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.batch a pid) * a.stride_vb
@[expose] noncomputable def Full.found_10 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.kv_head a pid) * a.stride_vh
@[expose] noncomputable def Full.some_ (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((0 : Int) < a.kv_len)
@[expose] noncomputable def Full.addi (a : Forward.Args R) (pid : Int) : Int :=
  a.kv_len + (a.BLOCK_N - 1 : Int)
@[expose] noncomputable def Full.divsi (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (Full.addi a pid) (a.BLOCK_N : Int)
@[expose] noncomputable def Full.select_1 (a : Forward.Args R) (pid : Int) : Int :=
  if (Full.some_ a pid) then (Full.divsi a pid) else (0 : Int)
@[expose] noncomputable def Full.whole_stop_1 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv a.kv_len (a.BLOCK_N : Int)
@[expose] noncomputable def Full.whole_stop_2 (a : Forward.Args R) (pid : Int) : Int :=
  min (Full.divsi a pid) (Full.whole_stop_1 a pid)
@[expose] noncomputable def Full.whole_first (a : Forward.Args R) (pid : Int) : Int :=
  min (Full.select_1 a pid) (0 : Int)
@[expose] noncomputable def Full.whole_stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  max (Full.whole_stop_2 a pid) (Full.whole_first a pid)
@[expose] noncomputable def Full.whole_stop (a : Forward.Args R) (pid : Int) : Int :=
  min (Full.whole_stop_3 a pid) (Full.select_1 a pid)
/-- What the loop carries. -/
abbrev Full.loop1.State (R : Type u) :=
  (Nat → Flt R) × (Nat → Flt R) × (Nat → Nat → Flt R)
@[expose] noncomputable def Full.loop1.begin (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  t * (a.BLOCK_N : Int)
@[expose] noncomputable def Full.loop1.key_base_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (Full.loop1.begin a pid t s) * a.stride_kn
@[expose] noncomputable def Full.loop1.key_base_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (Full.found_8 a pid) + (Full.loop1.key_base_1 a pid t s)
@[expose] noncomputable def Full.loop1.key_base_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (Full.found_7 a pid) + (Full.loop1.key_base_2 a pid t s)
@[expose] noncomputable def Full.loop1.key_base (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (0 : Int) + (Full.loop1.key_base_3 a pid t s)
@[expose] noncomputable def Full.loop1.value_base_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (Full.loop1.begin a pid t s) * a.stride_vn
@[expose] noncomputable def Full.loop1.value_base_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (Full.found_10 a pid) + (Full.loop1.value_base_1 a pid t s)
@[expose] noncomputable def Full.loop1.value_base_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (Full.found_9 a pid) + (Full.loop1.value_base_2 a pid t s)
@[expose] noncomputable def Full.loop1.value_base (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (0 : Int) + (Full.loop1.value_base_3 a pid t s)
@[expose] noncomputable def Full.loop1.found_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_kn
@[expose] noncomputable def Full.loop1.found (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Int :=
  fun i => (i : Int) * a.stride_vn
@[expose] noncomputable def Full.loop1.key_ptrs_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (i : Int) + (Full.loop1.found_1 a pid t s j)
@[expose] noncomputable def Full.loop1.key_ptrs (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Full.loop1.key_base a pid t s) + (Full.loop1.key_ptrs_1 a pid t s i j)
@[expose] noncomputable def Full.loop1.value_ptrs_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Full.loop1.found a pid t s i) + (j : Int)
@[expose] noncomputable def Full.loop1.value_ptrs (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (Full.loop1.value_base a pid t s) + (Full.loop1.value_ptrs_1 a pid t s i j)
@[expose] noncomputable def Full.loop1.load_k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (Full.loop1.key_ptrs a pid t s i j)⟩
@[expose] noncomputable def Full.loop1.k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.key_ptr (Full.loop1.load_k a pid t s i j).offset
@[expose] noncomputable def Full.loop1.y_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Full.q a pid i n)) (fun n => (Full.loop1.k a pid t s n j))
    (Flt.num 0)
@[expose] noncomputable def Full.loop1.load_v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (Full.loop1.value_ptrs a pid t s i j)⟩
@[expose] noncomputable def Full.loop1.v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.value_ptr (Full.loop1.load_v a pid t s i j).offset
@[expose] noncomputable def Full.loop1.largest_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Full.loop1.y_1 a pid t s i n)
@[expose] noncomputable def Full.loop1.largest (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Full.loop1.largest_1 a pid t s i) a.scale
@[expose] noncomputable def Full.loop1.s (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Full.loop1.y_1 a pid t s i j) a.scale
@[expose] noncomputable def Full.loop1.m_new (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Full.loop1.largest a pid t s i)
@[expose] noncomputable def Full.loop1.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Full.loop1.m_new a pid t s i) Flt.ninf
@[expose] noncomputable def Full.loop1.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (Full.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else (Full.loop1.m_new a pid t s
    i)
@[expose] noncomputable def Full.loop1.alpha_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Full.loop1.m_finite a pid t s i)
@[expose] noncomputable def Full.loop1.alpha (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Full.loop1.alpha_1 a pid t s i)
@[expose] noncomputable def Full.loop1.p_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Full.loop1.s a pid t s i j) (Full.loop1.m_finite a pid t s i)
@[expose] noncomputable def Full.loop1.p (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Full.loop1.p_1 a pid t s i j)
@[expose] noncomputable def Full.loop1.l_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.mul (Full.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] noncomputable def Full.loop1.l_2 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Full.loop1.p a pid t s i n)
@[expose] noncomputable def Full.loop1.l (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Full.loop1.l_1 a pid t s i) (Full.loop1.l_2 a pid t s i)
@[expose] noncomputable def Full.loop1.o (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Full.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] noncomputable def Full.loop1.y (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Full.loop1.p a pid t s i n)) (fun n => (Full.loop1.v a pid
    t s n j)) (Full.loop1.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] noncomputable def Full.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def Full.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.whole_stop a pid)
/-- One iteration. -/
@[expose] noncomputable def Full.loop1.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Full.loop1.m_new a pid t s i), fun i => (Full.loop1.l a pid t s i), fun i j =>
    (Full.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def Full.loop1.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] noncomputable def Full.loop1.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (Full.loop1.firstTile a pid)
    (Full.loop1.stopTile a pid)
    (Full.loop1.body a pid) (Full.loop1.start a pid)
@[expose] noncomputable def Full.loop2.keys (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Int :=
  fun i => (Full.loop1.begin a pid t s) + (i : Int)
@[expose] noncomputable def Full.loop2.inside_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((0 : Int) ≤ (Full.loop2.keys a pid t s i))
@[expose] noncomputable def Full.loop2.inside_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((Full.loop2.keys a pid t s i) < a.kv_len)
@[expose] noncomputable def Full.loop2.inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => (Full.loop2.inside_1 a pid t s i) && (Full.loop2.inside_2 a pid t s i)
@[expose] noncomputable def Full.loop2.found_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.head_dim)
@[expose] noncomputable def Full.loop2.found (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((i : Int) < a.value_dim)
@[expose] noncomputable def Full.loop2.k_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found_3 a pid t s i) && (Full.loop2.inside a pid t s j)
@[expose] noncomputable def Full.loop2.v_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found a pid t s j) && (Full.loop2.inside a pid t s i)
@[expose] noncomputable def Full.loop2.load_k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Full.loop2.k_inside a pid t s i j), (Full.loop1.key_ptrs a pid t s i j)⟩
@[expose] noncomputable def Full.loop2.k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Full.loop2.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] noncomputable def Full.loop2.y_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Full.q a pid i n)) (fun n => (Full.loop2.k a pid t s n j))
    (Flt.num 0)
@[expose] noncomputable def Full.loop2.s (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Full.loop2.y_1 a pid t s i j) a.scale
@[expose] noncomputable def Full.loop2.load_v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Full.loop2.v_inside a pid t s i j), (Full.loop1.value_ptrs a pid t s i j)⟩
@[expose] noncomputable def Full.loop2.v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (Full.loop2.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] noncomputable def Full.loop2.select (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Full.loop2.inside_2 a pid t s j) then (Full.loop2.s a pid t s i j) else Flt.ninf
@[expose] noncomputable def Full.loop2.largest (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Full.loop2.select a pid t s i n)
@[expose] noncomputable def Full.loop2.m_new (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Full.loop2.largest a pid t s i)
@[expose] noncomputable def Full.loop2.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Full.loop2.m_new a pid t s i) Flt.ninf
@[expose] noncomputable def Full.loop2.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (Full.loop2.m_finite_1 a pid t s i) then (Flt.num 0) else (Full.loop2.m_new a pid t s
    i)
@[expose] noncomputable def Full.loop2.alpha_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Full.loop2.m_finite a pid t s i)
@[expose] noncomputable def Full.loop2.alpha (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Full.loop2.alpha_1 a pid t s i)
@[expose] noncomputable def Full.loop2.p_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Full.loop2.select a pid t s i j) (Full.loop2.m_finite a pid t s i)
@[expose] noncomputable def Full.loop2.p (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Full.loop2.p_1 a pid t s i j)
@[expose] noncomputable def Full.loop2.l_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.mul (Full.loop2.alpha a pid t s i) (s.2.1 i)
@[expose] noncomputable def Full.loop2.l_2 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Full.loop2.p a pid t s i n)
@[expose] noncomputable def Full.loop2.l (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Full.loop2.l_1 a pid t s i) (Full.loop2.l_2 a pid t s i)
@[expose] noncomputable def Full.loop2.o (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Full.loop2.alpha a pid t s i) (s.2.2 i j)
@[expose] noncomputable def Full.loop2.y (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Full.loop2.p a pid t s i n)) (fun n => (Full.loop2.v a pid
    t s n j)) (Full.loop2.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] noncomputable def Full.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def Full.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.select_1 a pid)
/-- One iteration. -/
@[expose] noncomputable def Full.loop2.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Full.loop2.m_new a pid t s i), fun i => (Full.loop2.l a pid t s i), fun i j =>
    (Full.loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def Full.loop2.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((Full.loop1.result a pid).1 i), fun i => ((Full.loop1.result a pid).2.1 i), fun i j =>
    ((Full.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def Full.loop2.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (Full.loop2.firstTile a pid)
    (Full.loop2.stopTile a pid)
    (Full.loop2.body a pid) (Full.loop2.start a pid)
@[expose] noncomputable def Full.found_11 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.batch a pid) * a.stride_ob
@[expose] noncomputable def Full.found_12 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.head a pid) * a.stride_oh
@[expose] noncomputable def Full.found_13 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.found_11 a pid) + (Full.found_12 a pid)
@[expose] noncomputable def Full.found_14 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (Full.found_13 a pid)
@[expose] noncomputable def Full.found_15 (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (Full.queries a pid i) * a.stride_om
@[expose] noncomputable def Full.out_ptrs_1 (a : Forward.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Full.found_14 a pid) + (Full.found_15 a pid i)
@[expose] noncomputable def Full.out_ptrs (a : Forward.Args R) (pid : Int) : Nat → Nat → Int :=
  fun i j => (Full.out_ptrs_1 a pid i 0) + (j : Int)
@[expose] noncomputable def Full.found_16 (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((i : Int) < a.value_dim)
@[expose] noncomputable def Full.stored (a : Forward.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (Full.inside a pid i) && (Full.found_16 a pid j)
@[expose] noncomputable def Full.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((Full.loop2.result a pid).2.1 i) (Flt.num 0)
@[expose] noncomputable def Full.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (Full.none_ a pid i) then (Flt.num 1) else ((Full.loop2.result a pid).2.1 i)
@[expose] noncomputable def Full.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((Full.loop2.result a pid).2.2 i j) (Full.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] noncomputable def Full.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Full.stored a pid i j), (Full.out_ptrs a pid i j)⟩, (Full.divf a pid i j)⟩
@[expose] noncomputable def Full.found_17 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.batch a pid) * a.stride_lb
@[expose] noncomputable def Full.found_18 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.head a pid) * a.stride_lh
@[expose] noncomputable def Full.found_19 (a : Forward.Args R) (pid : Int) : Int :=
  (Full.found_17 a pid) + (Full.found_18 a pid)
@[expose] noncomputable def Full.found (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (Full.found_19 a pid)
@[expose] noncomputable def Full.addptr (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (Full.found a pid) + (Full.queries a pid i)
@[expose] noncomputable def Full.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((Full.loop2.result a pid).1 i) (Flt.num a.ln2)
@[expose] noncomputable def Full.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (Full.select a pid i)
@[expose] noncomputable def Full.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (Full.mulf a pid i) (Full.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] noncomputable def Full.store_lse_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Full.inside a pid i), (Full.addptr a pid i)⟩, (Full.addf a pid i)⟩
/-- The state before iteration t. -/
@[expose] noncomputable def Full.loop1.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (Full.loop1.firstTile a pid) t
    (Full.loop1.body a pid) (Full.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def Full.loop1.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Full.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (Full.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def Full.loop1.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Full.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Full.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def Full.loop1.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
@[expose] noncomputable def Full.loop2.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (Full.loop2.firstTile a pid) t
    (Full.loop2.body a pid) (Full.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def Full.loop2.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Full.loop2.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (Full.loop2.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def Full.loop2.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Full.loop2.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Full.loop2.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def Full.loop2.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (Full.loop1.value_ptrs a pid t s i j))
/-- What `P` asks of each access. -/
@[expose] noncomputable def Full.Accesses (a : Forward.Args R) (pid : Int)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr (Full.load_q a pid i j)) ∧
  (∀ t, Full.loop1.firstTile a pid ≤ t → t < Full.loop1.stopTile a pid → Full.loop1.Accesses a pid t
    (Full.loop1.before a pid t) P) ∧
  (∀ t, Full.loop2.firstTile a pid ≤ t → t < Full.loop2.stopTile a pid → Full.loop2.Accesses a pid t
    (Full.loop2.before a pid t) P) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, P.out_ptr (Full.store_out_ptr a pid i j).toAccess) ∧
  (∀ i < a.BLOCK_M, P.lse_ptr (Full.store_lse_ptr a pid i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] noncomputable def Full.Exponents (a : Forward.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  (∀ t, Full.loop1.firstTile a pid ≤ t → t < Full.loop1.stopTile a pid → Full.loop1.Exponents a pid
    t (Full.loop1.before a pid t) P) ∧
  (∀ t, Full.loop2.firstTile a pid ≤ t → t < Full.loop2.stopTile a pid → Full.loop2.Exponents a pid
    t (Full.loop2.before a pid t) P)
/-- No integer operation overflows. -/
@[expose] noncomputable def Full.NoOverflow (a : Forward.Args R) (pid : Int)
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
  (∀ i < a.BLOCK_M, FitsI32 (Full.queries a pid i)) ∧
  (FitsI64 (Full.found_1 a pid)) ∧
  (FitsI64 (Full.found_2 a pid)) ∧
  (FitsI64 (Full.found_3 a pid)) ∧
  (FitsI64 (Full.found_4 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Full.found_5 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Full.query_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64 (Full.query_ptrs a pid i j)) ∧
  (FitsI64 (Full.found_7 a pid)) ∧
  (FitsI64 (Full.found_8 a pid)) ∧
  (FitsI64 (Full.found_9 a pid)) ∧
  (FitsI64 (Full.found_10 a pid)) ∧
  (FitsI32 (Full.addi a pid)) ∧
  (FitsI32 (Full.divsi a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Full.whole_stop_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (∀ t, Full.loop1.firstTile a pid ≤ t → t < Full.loop1.stopTile a pid → Full.loop1.NoOverflow a pid
    t (Full.loop1.before a pid t)) ∧
  (∀ t, Full.loop2.firstTile a pid ≤ t → t < Full.loop2.stopTile a pid → Full.loop2.NoOverflow a pid
    t (Full.loop2.before a pid t)) ∧
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
