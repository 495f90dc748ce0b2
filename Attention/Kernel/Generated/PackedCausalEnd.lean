module

public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.PackedCausal
public import Attention.Kernel.Generated.PackedFull

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: PackedCausalEnd

With a right edge, sequences packed, aligned bottom-right. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev PackedCausalEnd.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] def PackedCausalEnd.shift_1 (a : Forward.Args R) (pid : Int) : Int :=
  a.shift + (PackedFull.subi a pid)
@[expose] def PackedCausalEnd.shift (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.shift_1 a pid) - (PackedFull.subi_1 a pid)
@[expose] def PackedCausalEnd.rows (a : Forward.Args R) (pid : Int) : Nat → Int :=
  fun i => (PackedFull.queries a pid i) + (PackedCausalEnd.shift a pid)
@[expose] def PackedCausalEnd.stop_12 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausal.row_last a pid) + (PackedCausalEnd.shift a pid)
@[expose] def PackedCausalEnd.stop_13 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.stop_12 a pid) + a.right
@[expose] def PackedCausalEnd.stop_14 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.stop_13 a pid) + (1 : Int)
@[expose] def PackedCausalEnd.stop_15 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedCausalEnd.stop_14 a pid) (0 : Int)
@[expose] def PackedCausalEnd.stop_16 (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedFull.subi a pid) (PackedCausalEnd.stop_15 a pid)
@[expose] def PackedCausalEnd.some_ (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((0 : Int) < (PackedCausalEnd.stop_16 a pid))
@[expose] def PackedCausalEnd.addi (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.stop_16 a pid) + (a.BLOCK_N - 1 : Int)
@[expose] def PackedCausalEnd.divsi (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedCausalEnd.addi a pid) (a.BLOCK_N : Int)
@[expose] def PackedCausalEnd.select_1 (a : Forward.Args R) (pid : Int) : Int :=
  if (PackedCausalEnd.some_ a pid) then (PackedCausalEnd.divsi a pid) else (0 : Int)
@[expose] def PackedCausalEnd.seen_1 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedFull.row_first a pid) + (PackedCausalEnd.shift a pid)
@[expose] def PackedCausalEnd.seen_2 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.seen_1 a pid) + a.right
@[expose] def PackedCausalEnd.seen_3 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.seen_2 a pid) + (1 : Int)
@[expose] def PackedCausalEnd.seen (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedCausalEnd.seen_3 a pid) (0 : Int)
@[expose] def PackedCausalEnd.stop_19 (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((PackedFull.subi a pid) ≤ (PackedCausalEnd.seen a pid))
@[expose] def PackedCausalEnd.stop_20 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedCausalEnd.seen a pid) (a.BLOCK_N : Int)
@[expose] def PackedCausalEnd.stop (a : Forward.Args R) (pid : Int) : Int :=
  if (PackedCausalEnd.stop_19 a pid) then (PackedFull.divsi a pid) else (PackedCausalEnd.stop_20 a
    pid)
@[expose] def PackedCausalEnd.whole_stop_2 (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedCausalEnd.stop a pid) (PackedFull.whole_stop_1 a pid)
@[expose] def PackedCausalEnd.whole_first (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedCausalEnd.select_1 a pid) (0 : Int)
@[expose] def PackedCausalEnd.whole_stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedCausalEnd.whole_stop_2 a pid) (PackedCausalEnd.whole_first a pid)
@[expose] def PackedCausalEnd.whole_stop (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedCausalEnd.whole_stop_3 a pid) (PackedCausalEnd.select_1 a pid)
/-- The loop's first tile. -/
@[expose] def PackedCausalEnd.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] def PackedCausalEnd.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.whole_stop a pid)
/-- One iteration. -/
@[expose] def PackedCausalEnd.loop1.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedFull.loop1.m_new a pid t s i), fun i => (PackedFull.loop1.l a pid t s i), fun i j
    => (PackedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PackedCausalEnd.loop1.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def PackedCausalEnd.loop1.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PackedCausalEnd.loop1.firstTile a pid)
    (PackedCausalEnd.loop1.stopTile a pid)
    (PackedCausalEnd.loop1.body a pid) (PackedCausalEnd.loop1.start a pid)
@[expose] def PackedCausalEnd.loop2.inside_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((Full.loop2.keys a pid t s i) < (PackedCausalEnd.stop_16 a pid))
@[expose] def PackedCausalEnd.loop2.inside (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Bool :=
  fun i => (Full.loop2.inside_1 a pid t s i) && (PackedCausalEnd.loop2.inside_2 a pid t s i)
@[expose] def PackedCausalEnd.loop2.k_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found_3 a pid t s i) && (PackedCausalEnd.loop2.inside a pid t s j)
@[expose] def PackedCausalEnd.loop2.v_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found a pid t s j) && (PackedCausalEnd.loop2.inside a pid t s i)
@[expose] def PackedCausalEnd.loop2.load_k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedCausalEnd.loop2.k_inside a pid t s i j), (PackedFull.loop1.key_ptrs a pid t s i
    j)⟩
@[expose] def PackedCausalEnd.loop2.k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedCausalEnd.loop2.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] def PackedCausalEnd.loop2.y_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (PackedFull.q a pid i n)) (fun n =>
    (PackedCausalEnd.loop2.k a pid t s n j)) (Flt.num 0)
@[expose] def PackedCausalEnd.loop2.s (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedCausalEnd.loop2.y_1 a pid t s i j) a.scale
@[expose] def PackedCausalEnd.loop2.load_v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedCausalEnd.loop2.v_inside a pid t s i j), (PackedFull.loop1.value_ptrs a pid t s
    i j)⟩
@[expose] def PackedCausalEnd.loop2.v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedCausalEnd.loop2.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] def PackedCausalEnd.loop2.visible_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (PackedCausalEnd.rows a pid i) + a.right
@[expose] def PackedCausalEnd.loop2.visible_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((Full.loop2.keys a pid t s j) ≤ (PackedCausalEnd.loop2.visible_1 a pid t s i
    0))
@[expose] def PackedCausalEnd.loop2.visible (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Bool :=
  fun i j => (PackedCausalEnd.loop2.inside_2 a pid t s j) && (PackedCausalEnd.loop2.visible_2 a pid
    t s i j)
@[expose] def PackedCausalEnd.loop2.select (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => if (PackedCausalEnd.loop2.visible a pid t s i j) then (PackedCausalEnd.loop2.s a pid t
    s i j) else Flt.ninf
@[expose] def PackedCausalEnd.loop2.largest (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (PackedCausalEnd.loop2.select a pid t s i n)
@[expose] def PackedCausalEnd.loop2.m_new (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (PackedCausalEnd.loop2.largest a pid t s i)
@[expose] def PackedCausalEnd.loop2.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (PackedCausalEnd.loop2.m_new a pid t s i) Flt.ninf
@[expose] def PackedCausalEnd.loop2.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (PackedCausalEnd.loop2.m_finite_1 a pid t s i) then (Flt.num 0) else
    (PackedCausalEnd.loop2.m_new a pid t s i)
@[expose] def PackedCausalEnd.loop2.alpha_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (PackedCausalEnd.loop2.m_finite a pid t s i)
@[expose] def PackedCausalEnd.loop2.alpha (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (PackedCausalEnd.loop2.alpha_1 a pid t s i)
@[expose] def PackedCausalEnd.loop2.p_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (PackedCausalEnd.loop2.select a pid t s i j) (PackedCausalEnd.loop2.m_finite a
    pid t s i)
@[expose] def PackedCausalEnd.loop2.p (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (PackedCausalEnd.loop2.p_1 a pid t s i j)
@[expose] def PackedCausalEnd.loop2.l_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PackedCausalEnd.loop2.alpha a pid t s i) (s.2.1 i)
@[expose] def PackedCausalEnd.loop2.l_2 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (PackedCausalEnd.loop2.p a pid t s i n)
@[expose] def PackedCausalEnd.loop2.l (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (PackedCausalEnd.loop2.l_1 a pid t s i) (PackedCausalEnd.loop2.l_2 a pid t s i)
@[expose] def PackedCausalEnd.loop2.o (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedCausalEnd.loop2.alpha a pid t s i) (s.2.2 i j)
@[expose] def PackedCausalEnd.loop2.y (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (PackedCausalEnd.loop2.p a pid t s i n)) (fun n =>
    (PackedCausalEnd.loop2.v a pid t s n j)) (PackedCausalEnd.loop2.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] def PackedCausalEnd.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] def PackedCausalEnd.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.select_1 a pid)
/-- One iteration. -/
@[expose] def PackedCausalEnd.loop2.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedCausalEnd.loop2.m_new a pid t s i), fun i => (PackedCausalEnd.loop2.l a pid t s
    i), fun i j => (PackedCausalEnd.loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PackedCausalEnd.loop2.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => ((PackedCausalEnd.loop1.result a pid).1 i), fun i => ((PackedCausalEnd.loop1.result a
    pid).2.1 i), fun i j => ((PackedCausalEnd.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def PackedCausalEnd.loop2.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PackedCausalEnd.loop2.firstTile a pid)
    (PackedCausalEnd.loop2.stopTile a pid)
    (PackedCausalEnd.loop2.body a pid) (PackedCausalEnd.loop2.start a pid)
@[expose] def PackedCausalEnd.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PackedCausalEnd.loop2.result a pid).2.1 i) (Flt.num 0)
@[expose] def PackedCausalEnd.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PackedCausalEnd.none_ a pid i) then (Flt.num 1) else ((PackedCausalEnd.loop2.result a
    pid).2.1 i)
@[expose] def PackedCausalEnd.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PackedCausalEnd.loop2.result a pid).2.2 i j) (PackedCausalEnd.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def PackedCausalEnd.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.stored a pid i j), (PackedFull.out_ptrs a pid
    i j)⟩, (PackedCausalEnd.divf a pid i j)⟩
@[expose] def PackedCausalEnd.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PackedCausalEnd.loop2.result a pid).1 i) (Flt.num a.ln2)
@[expose] def PackedCausalEnd.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PackedCausalEnd.select a pid i)
@[expose] def PackedCausalEnd.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PackedCausalEnd.mulf a pid i) (PackedCausalEnd.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def PackedCausalEnd.store_lse_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Store (Flt R) :=
  fun i => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.inside a pid i), (PackedFull.addptr a pid i)⟩,
    (PackedCausalEnd.addf a pid i)⟩

end Attention.Kernel
