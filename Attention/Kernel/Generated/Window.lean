module

public import Attention.Kernel.Generated.Causal
public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.Left

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: Window

With a window. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev Window.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] def Window.some_ (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((Left.first_3 a pid) < (Causal.stop_5 a pid))
@[expose] def Window.select_1 (a : Forward.Args R) (pid : Int) : Int :=
  if (Window.some_ a pid) then (Left.divsi_1 a pid) else (0 : Int)
@[expose] def Window.select_2 (a : Forward.Args R) (pid : Int) : Int :=
  if (Window.some_ a pid) then (Causal.divsi a pid) else (0 : Int)
@[expose] def Window.whole_first_1 (a : Forward.Args R) (pid : Int) : Int :=
  max (Left.first a pid) (Window.select_1 a pid)
@[expose] def Window.whole_first (a : Forward.Args R) (pid : Int) : Int :=
  min (Window.whole_first_1 a pid) (Window.select_2 a pid)
@[expose] def Window.whole_stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  max (Causal.whole_stop_2 a pid) (Window.whole_first a pid)
@[expose] def Window.whole_stop (a : Forward.Args R) (pid : Int) : Int :=
  min (Window.whole_stop_3 a pid) (Window.select_2 a pid)
@[expose] def Window.loop1.inside (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Bool :=
  fun i => (Left.loop1.inside_1 a pid t s i) && (Causal.loop2.inside_2 a pid t s i)
@[expose] def Window.loop1.k_inside (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found_3 a pid t s i) && (Window.loop1.inside a pid t s j)
@[expose] def Window.loop1.v_inside (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found a pid t s j) && (Window.loop1.inside a pid t s i)
@[expose] def Window.loop1.k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Window.loop1.k_inside a pid t s i j) then a.key_ptr (Full.loop1.key_ptrs a pid t s
    i j) else (Flt.num 0)
@[expose] def Window.loop1.y_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Full.q a pid i n)) (fun n => (Window.loop1.k a pid t s n
    j)) (Flt.num 0)
@[expose] def Window.loop1.s (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop1.y_1 a pid t s i j) a.scale
@[expose] def Window.loop1.v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Window.loop1.v_inside a pid t s i j) then a.value_ptr (Full.loop1.value_ptrs a pid
    t s i j) else (Flt.num 0)
@[expose] def Window.loop1.visible_3 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Causal.loop2.inside_2 a pid t s j) && (Left.loop1.visible_2 a pid t s i j)
@[expose] def Window.loop1.visible (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop1.visible_3 a pid t s i j) && (Causal.loop2.visible_2 a pid t s i j)
@[expose] def Window.loop1.select (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Window.loop1.visible a pid t s i j) then (Window.loop1.s a pid t s i j) else
    Flt.ninf
@[expose] def Window.loop1.largest (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Window.loop1.select a pid t s i n)
@[expose] def Window.loop1.m_new (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Window.loop1.largest a pid t s i)
@[expose] def Window.loop1.m_finite_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Window.loop1.m_new a pid t s i) Flt.ninf
@[expose] def Window.loop1.m_finite (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (Window.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else (Window.loop1.m_new a pid
    t s i)
@[expose] def Window.loop1.alpha_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Window.loop1.m_finite a pid t s i)
@[expose] def Window.loop1.alpha (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Window.loop1.alpha_1 a pid t s i)
@[expose] def Window.loop1.p_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Window.loop1.select a pid t s i j) (Window.loop1.m_finite a pid t s i)
@[expose] def Window.loop1.p (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Window.loop1.p_1 a pid t s i j)
@[expose] def Window.loop1.l_1 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Window.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] def Window.loop1.l_2 (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Window.loop1.p a pid t s i n)
@[expose] def Window.loop1.l (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (Window.loop1.l_1 a pid t s i) (Window.loop1.l_2 a pid t s i)
@[expose] def Window.loop1.o (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] def Window.loop1.y (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Window.loop1.p a pid t s i n)) (fun n => (Window.loop1.v a
    pid t s n j)) (Window.loop1.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] def Window.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_1 a pid)
/-- One past the loop's last tile. -/
@[expose] def Window.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One iteration. -/
@[expose] def Window.loop1.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Window.loop1.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] def Window.loop1.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (Window.loop1.firstTile a pid)
    (Window.loop1.stopTile a pid)
    (Window.loop1.body a pid) (Window.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] def Window.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] def Window.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One iteration. -/
@[expose] def Window.loop2.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Full.loop1.m_new a pid t s i), fun i => (Full.loop1.l a pid t s i), fun i j =>
    (Full.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Window.loop2.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => ((Window.loop1.result a pid).1 i), fun i => ((Window.loop1.result a pid).2.1 i), fun i j
    => ((Window.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def Window.loop2.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (Window.loop2.firstTile a pid)
    (Window.loop2.stopTile a pid)
    (Window.loop2.body a pid) (Window.loop2.start a pid)
/-- The loop's first tile. -/
@[expose] def Window.loop3.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] def Window.loop3.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_2 a pid)
/-- One iteration. -/
@[expose] def Window.loop3.body (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] def Window.loop3.start (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  (fun i => ((Window.loop2.result a pid).1 i), fun i => ((Window.loop2.result a pid).2.1 i), fun i j
    => ((Window.loop2.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] def Window.loop3.result (a : Forward.Args R) (pid : Int) : Full.loop1.State R :=
  forRange (Window.loop3.firstTile a pid)
    (Window.loop3.stopTile a pid)
    (Window.loop3.body a pid) (Window.loop3.start a pid)
@[expose] def Window.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((Window.loop3.result a pid).2.1 i) (Flt.num 0)
@[expose] def Window.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (Window.none_ a pid i) then (Flt.num 1) else ((Window.loop3.result a pid).2.1 i)
@[expose] def Window.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((Window.loop3.result a pid).2.2 i j) (Window.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] def Window.store_out_ptr (a : Forward.Args R) (pid : Int) : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Full.stored a pid i j), (Full.out_ptrs a pid i j)⟩, (Window.divf a pid i j)⟩
@[expose] def Window.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((Window.loop3.result a pid).1 i) (Flt.num a.ln2)
@[expose] def Window.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (Window.select a pid i)
@[expose] def Window.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (Window.mulf a pid i) (Window.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] def Window.store_lse_ptr (a : Forward.Args R) (pid : Int) : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Full.inside a pid i), (Full.addptr a pid i)⟩, (Window.addf a pid i)⟩

end Attention.Kernel
