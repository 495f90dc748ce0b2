module

public import Attention.Kernel.Generated.Full

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: PaddedFull

Without a window, heads padded. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev PaddedFull.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] def PaddedFull.loop1.load_k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Full.loop2.found_3 a pid t s i), (Full.loop1.key_ptrs a pid t s i j)⟩
@[expose] def PaddedFull.loop1.k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PaddedFull.loop1.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] def PaddedFull.loop1.y_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Full.q a pid i n)) (fun n => (PaddedFull.loop1.k a pid t s
    n j)) (Flt.num 0)
@[expose] def PaddedFull.loop1.load_v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Full.loop2.found a pid t s j), (Full.loop1.value_ptrs a pid t s i j)⟩
@[expose] def PaddedFull.loop1.v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PaddedFull.loop1.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] def PaddedFull.loop1.largest_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (PaddedFull.loop1.y_1 a pid t s i n)
@[expose] def PaddedFull.loop1.largest (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PaddedFull.loop1.largest_1 a pid t s i) a.scale
@[expose] def PaddedFull.loop1.s (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PaddedFull.loop1.y_1 a pid t s i j) a.scale
@[expose] def PaddedFull.loop1.m_new (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (PaddedFull.loop1.largest a pid t s i)
@[expose] def PaddedFull.loop1.m_finite_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Bool :=
  fun i => Flt.oeq (PaddedFull.loop1.m_new a pid t s i) Flt.ninf
@[expose] def PaddedFull.loop1.m_finite (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (PaddedFull.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else
    (PaddedFull.loop1.m_new a pid t s i)
@[expose] def PaddedFull.loop1.alpha_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (PaddedFull.loop1.m_finite a pid t s i)
@[expose] def PaddedFull.loop1.alpha (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (PaddedFull.loop1.alpha_1 a pid t s i)
@[expose] def PaddedFull.loop1.p_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (PaddedFull.loop1.s a pid t s i j) (PaddedFull.loop1.m_finite a pid t s i)
@[expose] def PaddedFull.loop1.p (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (PaddedFull.loop1.p_1 a pid t s i j)
@[expose] def PaddedFull.loop1.l_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PaddedFull.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] def PaddedFull.loop1.l_2 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (PaddedFull.loop1.p a pid t s i n)
@[expose] def PaddedFull.loop1.l (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (PaddedFull.loop1.l_1 a pid t s i) (PaddedFull.loop1.l_2 a pid t s i)
@[expose] def PaddedFull.loop1.o (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PaddedFull.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] def PaddedFull.loop1.y (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (PaddedFull.loop1.p a pid t s i n)) (fun n =>
    (PaddedFull.loop1.v a pid t s n j)) (PaddedFull.loop1.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] def PaddedFull.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] def PaddedFull.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.whole_stop a pid)
/-- One iteration. -/
@[expose] def PaddedFull.loop1.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PaddedFull.loop1.m_new a pid t s i), fun i => (PaddedFull.loop1.l a pid t s i), fun i j
    => (PaddedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PaddedFull.loop1.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def PaddedFull.loop1.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PaddedFull.loop1.firstTile a pid)
    (PaddedFull.loop1.stopTile a pid)
    (PaddedFull.loop1.body a pid) (PaddedFull.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] def PaddedFull.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] def PaddedFull.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Full.select_1 a pid)
/-- One iteration. -/
@[expose] def PaddedFull.loop2.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Full.loop2.m_new a pid t s i), fun i => (Full.loop2.l a pid t s i), fun i j =>
    (Full.loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PaddedFull.loop2.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => ((PaddedFull.loop1.result a pid).1 i), fun i => ((PaddedFull.loop1.result a pid).2.1 i),
    fun i j => ((PaddedFull.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def PaddedFull.loop2.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PaddedFull.loop2.firstTile a pid)
    (PaddedFull.loop2.stopTile a pid)
    (PaddedFull.loop2.body a pid) (PaddedFull.loop2.start a pid)
@[expose] def PaddedFull.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PaddedFull.loop2.result a pid).2.1 i) (Flt.num 0)
@[expose] def PaddedFull.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PaddedFull.none_ a pid i) then (Flt.num 1) else ((PaddedFull.loop2.result a pid).2.1
    i)
@[expose] def PaddedFull.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PaddedFull.loop2.result a pid).2.2 i j) (PaddedFull.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def PaddedFull.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Full.stored a pid i j), (Full.out_ptrs a pid i j)⟩, (PaddedFull.divf a pid i j)⟩
@[expose] def PaddedFull.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PaddedFull.loop2.result a pid).1 i) (Flt.num a.ln2)
@[expose] def PaddedFull.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PaddedFull.select a pid i)
@[expose] def PaddedFull.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PaddedFull.mulf a pid i) (PaddedFull.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def PaddedFull.store_lse_ptr (a : Forward.Args R) (pid : Int) : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Full.inside a pid i), (Full.addptr a pid i)⟩, (PaddedFull.addf a pid i)⟩

end Attention.Kernel
