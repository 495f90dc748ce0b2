module

public import Attention.Kernel.Generated.Full
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
@[expose] def PaddedWindow.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_1 a pid)
/-- One past the loop's last tile. -/
@[expose] def PaddedWindow.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One iteration. -/
@[expose] def PaddedWindow.loop1.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PaddedWindow.loop1.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def PaddedWindow.loop1.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PaddedWindow.loop1.firstTile a pid)
    (PaddedWindow.loop1.stopTile a pid)
    (PaddedWindow.loop1.body a pid) (PaddedWindow.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] def PaddedWindow.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] def PaddedWindow.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One iteration. -/
@[expose] def PaddedWindow.loop2.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PaddedFull.loop1.m_new a pid t s i), fun i => (PaddedFull.loop1.l a pid t s i), fun i j
    => (PaddedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PaddedWindow.loop2.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => ((PaddedWindow.loop1.result a pid).1 i), fun i => ((PaddedWindow.loop1.result a pid).2.1
    i), fun i j => ((PaddedWindow.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def PaddedWindow.loop2.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PaddedWindow.loop2.firstTile a pid)
    (PaddedWindow.loop2.stopTile a pid)
    (PaddedWindow.loop2.body a pid) (PaddedWindow.loop2.start a pid)
/-- The loop's first tile. -/
@[expose] def PaddedWindow.loop3.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] def PaddedWindow.loop3.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_2 a pid)
/-- One iteration. -/
@[expose] def PaddedWindow.loop3.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PaddedWindow.loop3.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => ((PaddedWindow.loop2.result a pid).1 i), fun i => ((PaddedWindow.loop2.result a pid).2.1
    i), fun i j => ((PaddedWindow.loop2.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def PaddedWindow.loop3.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PaddedWindow.loop3.firstTile a pid)
    (PaddedWindow.loop3.stopTile a pid)
    (PaddedWindow.loop3.body a pid) (PaddedWindow.loop3.start a pid)
@[expose] def PaddedWindow.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PaddedWindow.loop3.result a pid).2.1 i) (Flt.num 0)
@[expose] def PaddedWindow.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PaddedWindow.none_ a pid i) then (Flt.num 1) else ((PaddedWindow.loop3.result a
    pid).2.1 i)
@[expose] def PaddedWindow.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PaddedWindow.loop3.result a pid).2.2 i j) (PaddedWindow.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def PaddedWindow.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Full.stored a pid i j), (Full.out_ptrs a pid i j)⟩, (PaddedWindow.divf a pid i j)⟩
@[expose] def PaddedWindow.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PaddedWindow.loop3.result a pid).1 i) (Flt.num a.ln2)
@[expose] def PaddedWindow.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PaddedWindow.select a pid i)
@[expose] def PaddedWindow.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PaddedWindow.mulf a pid i) (PaddedWindow.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def PaddedWindow.store_lse_ptr (a : Forward.Args R) (pid : Int) : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Full.inside a pid i), (Full.addptr a pid i)⟩, (PaddedWindow.addf a pid i)⟩

end Attention.Kernel
