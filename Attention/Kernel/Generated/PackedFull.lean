module

public import Attention.Kernel.Generated.Full

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: PackedFull

Without a window, sequences packed. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev PackedFull.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] noncomputable def PackedFull.query_tiles_1 (a : Forward.Args R) (pid : Int) : Int :=
  a.max_q_len + (a.BLOCK_M - 1 : Int)
@[expose] noncomputable def PackedFull.query_tiles (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedFull.query_tiles_1 a pid) (a.BLOCK_M : Int)
@[expose] noncomputable def PackedFull.tile_1 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.query_tiles a pid) - (1 : Int)
@[expose] noncomputable def PackedFull.tile_2 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tmod pid (PackedFull.query_tiles a pid)
@[expose] noncomputable def PackedFull.tile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.tile_1 a pid) - (PackedFull.tile_2 a pid)
@[expose] noncomputable def PackedFull.head_1 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv pid (PackedFull.query_tiles a pid)
@[expose] noncomputable def PackedFull.batch (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedFull.head_1 a pid) a.num_heads
@[expose] noncomputable def PackedFull.head (a : Forward.Args R) (pid : Int) : Int :=
  Int.tmod (PackedFull.head_1 a pid) a.num_heads
@[expose] noncomputable def PackedFull.kv_head (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedFull.head a pid) a.group
@[expose] noncomputable def PackedFull.row_first (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.tile a pid) * (a.BLOCK_M : Int)
@[expose] noncomputable def PackedFull.first_1 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.batch a pid) * a.stride_xb
@[expose] noncomputable def PackedFull.first_2 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (PackedFull.first_1 a pid)
@[expose] noncomputable def PackedFull.load_first_3 (a : Forward.Args R) (pid : Int) : Access :=
  ⟨true, (PackedFull.first_2 a pid)⟩
@[expose] noncomputable def PackedFull.first_3 (a : Forward.Args R) (pid : Int) : Int :=
  a.cu_q_ptr (PackedFull.load_first_3 a pid).offset
@[expose] noncomputable def PackedFull.stop_1 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.batch a pid) + (1 : Int)
@[expose] noncomputable def PackedFull.stop_2 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.stop_1 a pid) * a.stride_xb
@[expose] noncomputable def PackedFull.stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (PackedFull.stop_2 a pid)
@[expose] noncomputable def PackedFull.load_stop_4 (a : Forward.Args R) (pid : Int) : Access :=
  ⟨true, (PackedFull.stop_3 a pid)⟩
@[expose] noncomputable def PackedFull.stop_4 (a : Forward.Args R) (pid : Int) : Int :=
  a.cu_q_ptr (PackedFull.load_stop_4 a pid).offset
@[expose] noncomputable def PackedFull.first_4 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedFull.first_3 a pid) (0 : Int)
@[expose] noncomputable def PackedFull.first_5 (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.first_4 a pid) a.q_len
@[expose] noncomputable def PackedFull.stop_5 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedFull.stop_4 a pid) (PackedFull.first_5 a pid)
@[expose] noncomputable def PackedFull.stop_6 (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.stop_5 a pid) a.q_len
@[expose] noncomputable def PackedFull.subi_1 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.stop_6 a pid) - (PackedFull.first_5 a pid)
@[expose] noncomputable def PackedFull.first_6 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.batch a pid) * a.stride_yb
@[expose] noncomputable def PackedFull.first_7 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (PackedFull.first_6 a pid)
@[expose] noncomputable def PackedFull.load_first_8 (a : Forward.Args R) (pid : Int) : Access :=
  ⟨true, (PackedFull.first_7 a pid)⟩
@[expose] noncomputable def PackedFull.first_8 (a : Forward.Args R) (pid : Int) : Int :=
  a.cu_k_ptr (PackedFull.load_first_8 a pid).offset
@[expose] noncomputable def PackedFull.stop_7 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.stop_1 a pid) * a.stride_yb
@[expose] noncomputable def PackedFull.stop_8 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (PackedFull.stop_7 a pid)
@[expose] noncomputable def PackedFull.load_stop_9 (a : Forward.Args R) (pid : Int) : Access :=
  ⟨true, (PackedFull.stop_8 a pid)⟩
@[expose] noncomputable def PackedFull.stop_9 (a : Forward.Args R) (pid : Int) : Int :=
  a.cu_k_ptr (PackedFull.load_stop_9 a pid).offset
@[expose] noncomputable def PackedFull.first_9 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedFull.first_8 a pid) (0 : Int)
@[expose] noncomputable def PackedFull.first (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.first_9 a pid) a.kv_len
@[expose] noncomputable def PackedFull.stop_10 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedFull.stop_9 a pid) (PackedFull.first a pid)
@[expose] noncomputable def PackedFull.stop (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.stop_10 a pid) a.kv_len
@[expose] noncomputable def PackedFull.subi (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.stop a pid) - (PackedFull.first a pid)
@[expose] noncomputable def PackedFull.cmpi (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((PackedFull.subi_1 a pid) ≤ (PackedFull.row_first a pid))
@[expose] noncomputable def PackedFull.queries (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (PackedFull.row_first a pid) + (i : Int)
@[expose] noncomputable def PackedFull.inside (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => decide ((PackedFull.queries a pid i) < (PackedFull.subi_1 a pid))
@[expose] noncomputable def PackedFull.found_1 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.head a pid) * a.stride_qh
@[expose] noncomputable def PackedFull.found_2 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.first_5 a pid) * a.stride_qm
@[expose] noncomputable def PackedFull.found_3 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.found_1 a pid) + (PackedFull.found_2 a pid)
@[expose] noncomputable def PackedFull.found_4 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (PackedFull.found_3 a pid)
@[expose] noncomputable def PackedFull.found_5 (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (PackedFull.queries a pid i) * a.stride_qm
@[expose] noncomputable def PackedFull.query_ptrs_1 (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Int :=
  fun i j => (PackedFull.found_4 a pid) + (PackedFull.found_5 a pid i)
@[expose] noncomputable def PackedFull.query_ptrs (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Int :=
  fun i j => (PackedFull.query_ptrs_1 a pid i 0) + (j : Int)
@[expose] noncomputable def PackedFull.loaded (a : Forward.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (PackedFull.inside a pid i) && (Full.found_6 a pid j)
@[expose] noncomputable def PackedFull.load_q (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedFull.loaded a pid i j), (PackedFull.query_ptrs a pid i j)⟩
@[expose] noncomputable def PackedFull.q (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => (PackedFull.load_q a pid i j).read a.query_ptr (Flt.num 0)
@[expose] noncomputable def PackedFull.found_7 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.kv_head a pid) * a.stride_kh
@[expose] noncomputable def PackedFull.found_8 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.first a pid) * a.stride_kn
@[expose] noncomputable def PackedFull.found_9 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.kv_head a pid) * a.stride_vh
@[expose] noncomputable def PackedFull.found_10 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.first a pid) * a.stride_vn
@[expose] noncomputable def PackedFull.some_ (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((0 : Int) < (PackedFull.subi a pid))
@[expose] noncomputable def PackedFull.addi (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.subi a pid) + (a.BLOCK_N - 1 : Int)
@[expose] noncomputable def PackedFull.divsi (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedFull.addi a pid) (a.BLOCK_N : Int)
@[expose] noncomputable def PackedFull.select_1 (a : Forward.Args R) (pid : Int) : Int :=
  if (PackedFull.some_ a pid) then (PackedFull.divsi a pid) else (0 : Int)
@[expose] noncomputable def PackedFull.whole_stop_1 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedFull.subi a pid) (a.BLOCK_N : Int)
@[expose] noncomputable def PackedFull.whole_stop_2 (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.divsi a pid) (PackedFull.whole_stop_1 a pid)
@[expose] noncomputable def PackedFull.whole_first (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.select_1 a pid) (0 : Int)
@[expose] noncomputable def PackedFull.whole_stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedFull.whole_stop_2 a pid) (PackedFull.whole_first a pid)
@[expose] noncomputable def PackedFull.whole_stop (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.whole_stop_3 a pid) (PackedFull.select_1 a pid)
@[expose] noncomputable def PackedFull.loop1.key_base_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (PackedFull.found_8 a pid) + (Full.loop1.key_base_1 a pid t s)
@[expose] noncomputable def PackedFull.loop1.key_base_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (PackedFull.found_7 a pid) + (PackedFull.loop1.key_base_2 a pid t s)
@[expose] noncomputable def PackedFull.loop1.key_base (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (0 : Int) + (PackedFull.loop1.key_base_3 a pid t s)
@[expose] noncomputable def PackedFull.loop1.value_base_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (PackedFull.found_10 a pid) + (Full.loop1.value_base_1 a pid t s)
@[expose] noncomputable def PackedFull.loop1.value_base_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (PackedFull.found_9 a pid) + (PackedFull.loop1.value_base_2 a pid t s)
@[expose] noncomputable def PackedFull.loop1.value_base (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Int :=
  (0 : Int) + (PackedFull.loop1.value_base_3 a pid t s)
@[expose] noncomputable def PackedFull.loop1.key_ptrs (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (PackedFull.loop1.key_base a pid t s) + (Full.loop1.key_ptrs_1 a pid t s i j)
@[expose] noncomputable def PackedFull.loop1.value_ptrs (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (PackedFull.loop1.value_base a pid t s) + (Full.loop1.value_ptrs_1 a pid t s i j)
@[expose] noncomputable def PackedFull.loop1.load_k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (PackedFull.loop1.key_ptrs a pid t s i j)⟩
@[expose] noncomputable def PackedFull.loop1.k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.key_ptr (PackedFull.loop1.load_k a pid t s i j).offset
@[expose] noncomputable def PackedFull.loop1.y_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (PackedFull.q a pid i n)) (fun n => (PackedFull.loop1.k a
    pid t s n j)) (Flt.num 0)
@[expose] noncomputable def PackedFull.loop1.load_v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨true, (PackedFull.loop1.value_ptrs a pid t s i j)⟩
@[expose] noncomputable def PackedFull.loop1.v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => a.value_ptr (PackedFull.loop1.load_v a pid t s i j).offset
@[expose] noncomputable def PackedFull.loop1.largest_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (PackedFull.loop1.y_1 a pid t s i n)
@[expose] noncomputable def PackedFull.loop1.largest (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PackedFull.loop1.largest_1 a pid t s i) a.scale
@[expose] noncomputable def PackedFull.loop1.s (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedFull.loop1.y_1 a pid t s i j) a.scale
@[expose] noncomputable def PackedFull.loop1.m_new (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (PackedFull.loop1.largest a pid t s i)
@[expose] noncomputable def PackedFull.loop1.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (PackedFull.loop1.m_new a pid t s i) Flt.ninf
@[expose] noncomputable def PackedFull.loop1.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (PackedFull.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else
    (PackedFull.loop1.m_new a pid t s i)
@[expose] noncomputable def PackedFull.loop1.alpha_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (PackedFull.loop1.m_finite a pid t s i)
@[expose] noncomputable def PackedFull.loop1.alpha (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (PackedFull.loop1.alpha_1 a pid t s i)
@[expose] noncomputable def PackedFull.loop1.p_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (PackedFull.loop1.s a pid t s i j) (PackedFull.loop1.m_finite a pid t s i)
@[expose] noncomputable def PackedFull.loop1.p (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (PackedFull.loop1.p_1 a pid t s i j)
@[expose] noncomputable def PackedFull.loop1.l_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PackedFull.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] noncomputable def PackedFull.loop1.l_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (PackedFull.loop1.p a pid t s i n)
@[expose] noncomputable def PackedFull.loop1.l (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (PackedFull.loop1.l_1 a pid t s i) (PackedFull.loop1.l_2 a pid t s i)
@[expose] noncomputable def PackedFull.loop1.o (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedFull.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] noncomputable def PackedFull.loop1.y (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (PackedFull.loop1.p a pid t s i n)) (fun n =>
    (PackedFull.loop1.v a pid t s n j)) (PackedFull.loop1.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedFull.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedFull.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.whole_stop a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedFull.loop1.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedFull.loop1.m_new a pid t s i), fun i => (PackedFull.loop1.l a pid t s i), fun i j
    => (PackedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedFull.loop1.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] noncomputable def PackedFull.loop1.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedFull.loop1.firstTile a pid)
    (PackedFull.loop1.stopTile a pid)
    (PackedFull.loop1.body a pid) (PackedFull.loop1.start a pid)
@[expose] noncomputable def PackedFull.loop2.inside_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((Full.loop2.keys a pid t s i) < (PackedFull.subi a pid))
@[expose] noncomputable def PackedFull.loop2.inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => (Full.loop2.inside_1 a pid t s i) && (PackedFull.loop2.inside_2 a pid t s i)
@[expose] noncomputable def PackedFull.loop2.k_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found_3 a pid t s i) && (PackedFull.loop2.inside a pid t s j)
@[expose] noncomputable def PackedFull.loop2.v_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found a pid t s j) && (PackedFull.loop2.inside a pid t s i)
@[expose] noncomputable def PackedFull.loop2.load_k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedFull.loop2.k_inside a pid t s i j), (PackedFull.loop1.key_ptrs a pid t s i j)⟩
@[expose] noncomputable def PackedFull.loop2.k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedFull.loop2.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] noncomputable def PackedFull.loop2.y_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (PackedFull.q a pid i n)) (fun n => (PackedFull.loop2.k a
    pid t s n j)) (Flt.num 0)
@[expose] noncomputable def PackedFull.loop2.s (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedFull.loop2.y_1 a pid t s i j) a.scale
@[expose] noncomputable def PackedFull.loop2.load_v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedFull.loop2.v_inside a pid t s i j), (PackedFull.loop1.value_ptrs a pid t s i
    j)⟩
@[expose] noncomputable def PackedFull.loop2.v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedFull.loop2.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] noncomputable def PackedFull.loop2.select (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (PackedFull.loop2.inside_2 a pid t s j) then (PackedFull.loop2.s a pid t s i j) else
    Flt.ninf
@[expose] noncomputable def PackedFull.loop2.largest (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (PackedFull.loop2.select a pid t s i n)
@[expose] noncomputable def PackedFull.loop2.m_new (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (PackedFull.loop2.largest a pid t s i)
@[expose] noncomputable def PackedFull.loop2.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (PackedFull.loop2.m_new a pid t s i) Flt.ninf
@[expose] noncomputable def PackedFull.loop2.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (PackedFull.loop2.m_finite_1 a pid t s i) then (Flt.num 0) else
    (PackedFull.loop2.m_new a pid t s i)
@[expose] noncomputable def PackedFull.loop2.alpha_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (PackedFull.loop2.m_finite a pid t s i)
@[expose] noncomputable def PackedFull.loop2.alpha (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (PackedFull.loop2.alpha_1 a pid t s i)
@[expose] noncomputable def PackedFull.loop2.p_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (PackedFull.loop2.select a pid t s i j) (PackedFull.loop2.m_finite a pid t s i)
@[expose] noncomputable def PackedFull.loop2.p (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (PackedFull.loop2.p_1 a pid t s i j)
@[expose] noncomputable def PackedFull.loop2.l_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PackedFull.loop2.alpha a pid t s i) (s.2.1 i)
@[expose] noncomputable def PackedFull.loop2.l_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (PackedFull.loop2.p a pid t s i n)
@[expose] noncomputable def PackedFull.loop2.l (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (PackedFull.loop2.l_1 a pid t s i) (PackedFull.loop2.l_2 a pid t s i)
@[expose] noncomputable def PackedFull.loop2.o (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedFull.loop2.alpha a pid t s i) (s.2.2 i j)
@[expose] noncomputable def PackedFull.loop2.y (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (PackedFull.loop2.p a pid t s i n)) (fun n =>
    (PackedFull.loop2.v a pid t s n j)) (PackedFull.loop2.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedFull.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedFull.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.select_1 a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedFull.loop2.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedFull.loop2.m_new a pid t s i), fun i => (PackedFull.loop2.l a pid t s i), fun i j
    => (PackedFull.loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedFull.loop2.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((PackedFull.loop1.result a pid).1 i), fun i => ((PackedFull.loop1.result a pid).2.1 i),
    fun i j => ((PackedFull.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def PackedFull.loop2.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedFull.loop2.firstTile a pid)
    (PackedFull.loop2.stopTile a pid)
    (PackedFull.loop2.body a pid) (PackedFull.loop2.start a pid)
@[expose] noncomputable def PackedFull.found_11 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.head a pid) * a.stride_oh
@[expose] noncomputable def PackedFull.found_12 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.first_5 a pid) * a.stride_om
@[expose] noncomputable def PackedFull.found_13 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.found_11 a pid) + (PackedFull.found_12 a pid)
@[expose] noncomputable def PackedFull.found_14 (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (PackedFull.found_13 a pid)
@[expose] noncomputable def PackedFull.found_15 (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (PackedFull.queries a pid i) * a.stride_om
@[expose] noncomputable def PackedFull.out_ptrs_1 (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Int :=
  fun i j => (PackedFull.found_14 a pid) + (PackedFull.found_15 a pid i)
@[expose] noncomputable def PackedFull.out_ptrs (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Int :=
  fun i j => (PackedFull.out_ptrs_1 a pid i 0) + (j : Int)
@[expose] noncomputable def PackedFull.stored (a : Forward.Args R) (pid : Int) : Nat → Nat → Bool :=
  fun i j => (PackedFull.inside a pid i) && (Full.found_16 a pid j)
@[expose] noncomputable def PackedFull.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PackedFull.loop2.result a pid).2.1 i) (Flt.num 0)
@[expose] noncomputable def PackedFull.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PackedFull.none_ a pid i) then (Flt.num 1) else ((PackedFull.loop2.result a pid).2.1
    i)
@[expose] noncomputable def PackedFull.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PackedFull.loop2.result a pid).2.2 i j) (PackedFull.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] noncomputable def PackedFull.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.stored a pid i j), (PackedFull.out_ptrs a pid
    i j)⟩, (PackedFull.divf a pid i j)⟩
@[expose] noncomputable def PackedFull.found_17 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.head a pid) * a.stride_lh
@[expose] noncomputable def PackedFull.found_18 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.found_17 a pid) + (PackedFull.first_5 a pid)
@[expose] noncomputable def PackedFull.found (a : Forward.Args R) (pid : Int) : Int :=
  (0 : Int) + (PackedFull.found_18 a pid)
@[expose] noncomputable def PackedFull.addptr (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (PackedFull.found a pid) + (PackedFull.queries a pid i)
@[expose] noncomputable def PackedFull.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PackedFull.loop2.result a pid).1 i) (Flt.num a.ln2)
@[expose] noncomputable def PackedFull.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PackedFull.select a pid i)
@[expose] noncomputable def PackedFull.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PackedFull.mulf a pid i) (PackedFull.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] noncomputable def PackedFull.store_lse_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Store (Flt R) :=
  fun i => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.inside a pid i), (PackedFull.addptr a pid i)⟩,
    (PackedFull.addf a pid i)⟩
/-- The state before iteration t. -/
@[expose] noncomputable def PackedFull.loop1.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedFull.loop1.firstTile a pid) t
    (PackedFull.loop1.body a pid) (PackedFull.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedFull.loop1.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedFull.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedFull.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedFull.loop1.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedFull.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedFull.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedFull.loop1.NoOverflow (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    : Prop :=
  (FitsI32 (Full.loop1.begin a pid t s)) ∧
  (FitsI64 (Full.loop1.key_base_1 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.key_base_2 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.key_base_3 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.key_base a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_1 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.value_base_2 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.value_base_3 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Full.loop1.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (PackedFull.loop1.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI32 (Full.loop1.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (PackedFull.loop1.value_ptrs a pid t s i j))
/-- The state before iteration t. -/
@[expose] noncomputable def PackedFull.loop2.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedFull.loop2.firstTile a pid) t
    (PackedFull.loop2.body a pid) (PackedFull.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedFull.loop2.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedFull.loop2.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedFull.loop2.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedFull.loop2.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedFull.loop2.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedFull.loop2.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedFull.loop2.NoOverflow (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    : Prop :=
  (FitsI32 (Full.loop1.begin a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop2.keys a pid t s i)) ∧
  (FitsI64 (Full.loop1.key_base_1 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.key_base_2 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.key_base_3 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.key_base a pid t s)) ∧
  (FitsI64 (Full.loop1.value_base_1 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.value_base_2 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.value_base_3 a pid t s)) ∧
  (FitsI64 (PackedFull.loop1.value_base a pid t s)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_N, FitsI32 (Full.loop1.found a pid t s i)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI32 (Full.loop1.key_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, FitsI64 (PackedFull.loop1.key_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI32 (Full.loop1.value_ptrs_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (PackedFull.loop1.value_ptrs a pid t s i j))
/-- What `P` asks of each access. -/
@[expose] noncomputable def PackedFull.Accesses (a : Forward.Args R) (pid : Int)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (P.cu_q_ptr (PackedFull.load_first_3 a pid)) ∧
  (P.cu_q_ptr (PackedFull.load_stop_4 a pid)) ∧
  (P.cu_k_ptr (PackedFull.load_first_8 a pid)) ∧
  (P.cu_k_ptr (PackedFull.load_stop_9 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr
    (PackedFull.load_q a pid i j)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedFull.loop1.firstTile a pid ≤ t → t <
    PackedFull.loop1.stopTile a pid → PackedFull.loop1.Accesses a pid t (PackedFull.loop1.before a
    pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedFull.loop2.firstTile a pid ≤ t → t <
    PackedFull.loop2.stopTile a pid → PackedFull.loop2.Accesses a pid t (PackedFull.loop2.before a
    pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, P.out_ptr
    (PackedFull.store_out_ptr a pid i j).toAccess) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, P.lse_ptr (PackedFull.store_lse_ptr a pid
    i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] noncomputable def PackedFull.Exponents (a : Forward.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedFull.loop1.firstTile a pid ≤ t → t <
    PackedFull.loop1.stopTile a pid → PackedFull.loop1.Exponents a pid t (PackedFull.loop1.before a
    pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedFull.loop2.firstTile a pid ≤ t → t <
    PackedFull.loop2.stopTile a pid → PackedFull.loop2.Exponents a pid t (PackedFull.loop2.before a
    pid t) P)
/-- No integer operation overflows. -/
@[expose] noncomputable def PackedFull.NoOverflow (a : Forward.Args R) (pid : Int)
    : Prop :=
  (FitsI32 (PackedFull.query_tiles_1 a pid)) ∧
  (FitsI32 (PackedFull.query_tiles a pid)) ∧
  ((a.BLOCK_M : Int) ≠ 0) ∧
  (FitsI32 (PackedFull.tile_1 a pid)) ∧
  (FitsI32 (PackedFull.tile_2 a pid)) ∧
  ((PackedFull.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (Int.tdiv pid (PackedFull.query_tiles a pid))) ∧
  (FitsI32 (PackedFull.tile a pid)) ∧
  (FitsI32 (PackedFull.head_1 a pid)) ∧
  ((PackedFull.query_tiles a pid) ≠ 0) ∧
  (FitsI32 (PackedFull.batch a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (PackedFull.head a pid)) ∧
  (a.num_heads ≠ 0) ∧
  (FitsI32 (Int.tdiv (PackedFull.head_1 a pid) a.num_heads)) ∧
  (FitsI64 (PackedFull.kv_head a pid)) ∧
  (a.group ≠ 0) ∧
  (FitsI32 (PackedFull.row_first a pid)) ∧
  (FitsI64 (PackedFull.first_1 a pid)) ∧
  (FitsI64 (PackedFull.first_2 a pid)) ∧
  (FitsI64 (PackedFull.stop_1 a pid)) ∧
  (FitsI64 (PackedFull.stop_2 a pid)) ∧
  (FitsI64 (PackedFull.stop_3 a pid)) ∧
  (FitsI32 (PackedFull.subi_1 a pid)) ∧
  (FitsI64 (PackedFull.first_6 a pid)) ∧
  (FitsI64 (PackedFull.first_7 a pid)) ∧
  (FitsI64 (PackedFull.stop_7 a pid)) ∧
  (FitsI64 (PackedFull.stop_8 a pid)) ∧
  (FitsI32 (PackedFull.subi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, FitsI32 (PackedFull.queries a pid i)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_2 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_3 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_4 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, FitsI64 (PackedFull.found_5 a pid i)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (PackedFull.query_ptrs_1 a
    pid i j)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64
    (PackedFull.query_ptrs a pid i j)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_7 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_8 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_9 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_10 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.addi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.divsi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.whole_stop_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedFull.loop1.firstTile a pid ≤ t → t <
    PackedFull.loop1.stopTile a pid → PackedFull.loop1.NoOverflow a pid t (PackedFull.loop1.before a
    pid t)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedFull.loop2.firstTile a pid ≤ t → t <
    PackedFull.loop2.stopTile a pid → PackedFull.loop2.NoOverflow a pid t (PackedFull.loop2.before a
    pid t)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_11 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_12 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_13 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_14 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, FitsI64 (PackedFull.found_15 a pid i)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (PackedFull.out_ptrs_1 a
    pid i j)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, FitsI64
    (PackedFull.out_ptrs a pid i j)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_17 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_18 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, FitsI64 (PackedFull.addptr a pid i))

end Attention.Kernel
