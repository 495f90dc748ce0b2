module

public import Attention.Kernel.Generated.Causal
public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.PaddedFull

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: PaddedCausal

With a right edge, heads padded. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev PaddedCausal.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

/-- The loop's first tile. -/
@[expose] def PaddedCausal.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Causal.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] def PaddedCausal.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Causal.whole_stop a pid)
/-- One iteration. -/
@[expose] def PaddedCausal.loop1.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PaddedFull.loop1.m_new a pid t s i), fun i => (PaddedFull.loop1.l a pid t s i), fun i j
    => (PaddedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PaddedCausal.loop1.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def PaddedCausal.loop1.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PaddedCausal.loop1.firstTile a pid)
    (PaddedCausal.loop1.stopTile a pid)
    (PaddedCausal.loop1.body a pid) (PaddedCausal.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] def PaddedCausal.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Causal.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] def PaddedCausal.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Causal.select_1 a pid)
/-- One iteration. -/
@[expose] def PaddedCausal.loop2.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Causal.loop2.m_new a pid t s i), fun i => (Causal.loop2.l a pid t s i), fun i j =>
    (Causal.loop2.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def PaddedCausal.loop2.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => ((PaddedCausal.loop1.result a pid).1 i), fun i => ((PaddedCausal.loop1.result a pid).2.1
    i), fun i j => ((PaddedCausal.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def PaddedCausal.loop2.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (PaddedCausal.loop2.firstTile a pid)
    (PaddedCausal.loop2.stopTile a pid)
    (PaddedCausal.loop2.body a pid) (PaddedCausal.loop2.start a pid)
@[expose] def PaddedCausal.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PaddedCausal.loop2.result a pid).2.1 i) (Flt.num 0)
@[expose] def PaddedCausal.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PaddedCausal.none_ a pid i) then (Flt.num 1) else ((PaddedCausal.loop2.result a
    pid).2.1 i)
@[expose] def PaddedCausal.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PaddedCausal.loop2.result a pid).2.2 i j) (PaddedCausal.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def PaddedCausal.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Full.stored a pid i j), (Full.out_ptrs a pid i j)⟩, (PaddedCausal.divf a pid i j)⟩
@[expose] def PaddedCausal.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PaddedCausal.loop2.result a pid).1 i) (Flt.num a.ln2)
@[expose] def PaddedCausal.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PaddedCausal.select a pid i)
@[expose] def PaddedCausal.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PaddedCausal.mulf a pid i) (PaddedCausal.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def PaddedCausal.store_lse_ptr (a : Forward.Args R) (pid : Int) : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Full.inside a pid i), (Full.addptr a pid i)⟩, (PaddedCausal.addf a pid i)⟩

end Attention.Kernel
