module

public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.PackedCausal
public import Attention.Kernel.Generated.PackedFull

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: PackedWindow

With a window, sequences packed. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev PackedWindow.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] noncomputable def PackedWindow.first_12 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausal.seen_1 a pid) - a.left
@[expose] noncomputable def PackedWindow.first_13 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedWindow.first_12 a pid) (0 : Int)
@[expose] noncomputable def PackedWindow.some_ (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((PackedWindow.first_13 a pid) < (PackedCausal.stop_16 a pid))
@[expose] noncomputable def PackedWindow.divsi_1 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedWindow.first_13 a pid) (a.BLOCK_N : Int)
@[expose] noncomputable def PackedWindow.select_1 (a : Forward.Args R) (pid : Int) : Int :=
  if (PackedWindow.some_ a pid) then (PackedWindow.divsi_1 a pid) else (0 : Int)
@[expose] noncomputable def PackedWindow.select_2 (a : Forward.Args R) (pid : Int) : Int :=
  if (PackedWindow.some_ a pid) then (PackedCausal.divsi a pid) else (0 : Int)
@[expose] noncomputable def PackedWindow.first_14 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausal.stop_12 a pid) - a.left
@[expose] noncomputable def PackedWindow.first_15 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedWindow.first_14 a pid) (0 : Int)
@[expose] noncomputable def PackedWindow.first_16 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindow.first_15 a pid) + (a.BLOCK_N - 1 : Int)
@[expose] noncomputable def PackedWindow.first (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedWindow.first_16 a pid) (a.BLOCK_N : Int)
@[expose] noncomputable def PackedWindow.whole_first_1 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedWindow.first a pid) (PackedWindow.select_1 a pid)
@[expose] noncomputable def PackedWindow.whole_first (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedWindow.whole_first_1 a pid) (PackedWindow.select_2 a pid)
@[expose] noncomputable def PackedWindow.whole_stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedCausal.whole_stop_2 a pid) (PackedWindow.whole_first a pid)
@[expose] noncomputable def PackedWindow.whole_stop (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedWindow.whole_stop_3 a pid) (PackedWindow.select_2 a pid)
@[expose] noncomputable def PackedWindow.loop1.inside_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((PackedWindow.first_13 a pid) ≤ (Full.loop2.keys a pid t s i))
@[expose] noncomputable def PackedWindow.loop1.inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => (PackedWindow.loop1.inside_1 a pid t s i) && (PackedCausal.loop2.inside_2 a pid t s i)
@[expose] noncomputable def PackedWindow.loop1.k_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found_3 a pid t s i) && (PackedWindow.loop1.inside a pid t s j)
@[expose] noncomputable def PackedWindow.loop1.v_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found a pid t s j) && (PackedWindow.loop1.inside a pid t s i)
@[expose] noncomputable def PackedWindow.loop1.load_k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedWindow.loop1.k_inside a pid t s i j), (PackedFull.loop1.key_ptrs a pid t s i
    j)⟩
@[expose] noncomputable def PackedWindow.loop1.k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedWindow.loop1.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] noncomputable def PackedWindow.loop1.y_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (PackedFull.q a pid i n)) (fun n => (PackedWindow.loop1.k a
    pid t s n j)) (Flt.num 0)
@[expose] noncomputable def PackedWindow.loop1.s (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedWindow.loop1.y_1 a pid t s i j) a.scale
@[expose] noncomputable def PackedWindow.loop1.load_v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedWindow.loop1.v_inside a pid t s i j), (PackedFull.loop1.value_ptrs a pid t s i
    j)⟩
@[expose] noncomputable def PackedWindow.loop1.v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedWindow.loop1.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] noncomputable def PackedWindow.loop1.visible_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (PackedCausal.rows a pid i) - a.left
@[expose] noncomputable def PackedWindow.loop1.visible_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((PackedWindow.loop1.visible_1 a pid t s i 0) ≤ (Full.loop2.keys a pid t s j))
@[expose] noncomputable def PackedWindow.loop1.visible_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (PackedCausal.loop2.inside_2 a pid t s j) && (PackedWindow.loop1.visible_2 a pid t s i
    j)
@[expose] noncomputable def PackedWindow.loop1.visible (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (PackedWindow.loop1.visible_3 a pid t s i j) && (PackedCausal.loop2.visible_2 a pid t s
    i j)
@[expose] noncomputable def PackedWindow.loop1.select (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (PackedWindow.loop1.visible a pid t s i j) then (PackedWindow.loop1.s a pid t s i j)
    else Flt.ninf
@[expose] noncomputable def PackedWindow.loop1.largest (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (PackedWindow.loop1.select a pid t s i n)
@[expose] noncomputable def PackedWindow.loop1.m_new (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (PackedWindow.loop1.largest a pid t s i)
@[expose] noncomputable def PackedWindow.loop1.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (PackedWindow.loop1.m_new a pid t s i) Flt.ninf
@[expose] noncomputable def PackedWindow.loop1.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (PackedWindow.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else
    (PackedWindow.loop1.m_new a pid t s i)
@[expose] noncomputable def PackedWindow.loop1.alpha_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (PackedWindow.loop1.m_finite a pid t s i)
@[expose] noncomputable def PackedWindow.loop1.alpha (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (PackedWindow.loop1.alpha_1 a pid t s i)
@[expose] noncomputable def PackedWindow.loop1.p_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (PackedWindow.loop1.select a pid t s i j) (PackedWindow.loop1.m_finite a pid t
    s i)
@[expose] noncomputable def PackedWindow.loop1.p (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (PackedWindow.loop1.p_1 a pid t s i j)
@[expose] noncomputable def PackedWindow.loop1.l_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PackedWindow.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] noncomputable def PackedWindow.loop1.l_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (PackedWindow.loop1.p a pid t s i n)
@[expose] noncomputable def PackedWindow.loop1.l (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (PackedWindow.loop1.l_1 a pid t s i) (PackedWindow.loop1.l_2 a pid t s i)
@[expose] noncomputable def PackedWindow.loop1.o (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedWindow.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] noncomputable def PackedWindow.loop1.y (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (PackedWindow.loop1.p a pid t s i n)) (fun n =>
    (PackedWindow.loop1.v a pid t s n j)) (PackedWindow.loop1.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedWindow.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindow.select_1 a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedWindow.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindow.whole_first a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedWindow.loop1.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedWindow.loop1.m_new a pid t s i), fun i => (PackedWindow.loop1.l a pid t s i), fun
    i j => (PackedWindow.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedWindow.loop1.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] noncomputable def PackedWindow.loop1.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedWindow.loop1.firstTile a pid)
    (PackedWindow.loop1.stopTile a pid)
    (PackedWindow.loop1.body a pid) (PackedWindow.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedWindow.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindow.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedWindow.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindow.whole_stop a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedWindow.loop2.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedFull.loop1.m_new a pid t s i), fun i => (PackedFull.loop1.l a pid t s i), fun i j
    => (PackedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedWindow.loop2.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((PackedWindow.loop1.result a pid).1 i), fun i => ((PackedWindow.loop1.result a pid).2.1
    i), fun i j => ((PackedWindow.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def PackedWindow.loop2.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedWindow.loop2.firstTile a pid)
    (PackedWindow.loop2.stopTile a pid)
    (PackedWindow.loop2.body a pid) (PackedWindow.loop2.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedWindow.loop3.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindow.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedWindow.loop3.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindow.select_2 a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedWindow.loop3.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedWindow.loop1.m_new a pid t s i), fun i => (PackedWindow.loop1.l a pid t s i), fun
    i j => (PackedWindow.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedWindow.loop3.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((PackedWindow.loop2.result a pid).1 i), fun i => ((PackedWindow.loop2.result a pid).2.1
    i), fun i j => ((PackedWindow.loop2.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def PackedWindow.loop3.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedWindow.loop3.firstTile a pid)
    (PackedWindow.loop3.stopTile a pid)
    (PackedWindow.loop3.body a pid) (PackedWindow.loop3.start a pid)
@[expose] noncomputable def PackedWindow.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PackedWindow.loop3.result a pid).2.1 i) (Flt.num 0)
@[expose] noncomputable def PackedWindow.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PackedWindow.none_ a pid i) then (Flt.num 1) else ((PackedWindow.loop3.result a
    pid).2.1 i)
@[expose] noncomputable def PackedWindow.divf (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PackedWindow.loop3.result a pid).2.2 i j) (PackedWindow.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] noncomputable def PackedWindow.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.stored a pid i j), (PackedFull.out_ptrs a pid
    i j)⟩, (PackedWindow.divf a pid i j)⟩
@[expose] noncomputable def PackedWindow.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PackedWindow.loop3.result a pid).1 i) (Flt.num a.ln2)
@[expose] noncomputable def PackedWindow.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PackedWindow.select a pid i)
@[expose] noncomputable def PackedWindow.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PackedWindow.mulf a pid i) (PackedWindow.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] noncomputable def PackedWindow.store_lse_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Store (Flt R) :=
  fun i => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.inside a pid i), (PackedFull.addptr a pid i)⟩,
    (PackedWindow.addf a pid i)⟩
/-- The state before iteration t. -/
@[expose] noncomputable def PackedWindow.loop1.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedWindow.loop1.firstTile a pid) t
    (PackedWindow.loop1.body a pid) (PackedWindow.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedWindow.loop1.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedWindow.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedWindow.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedWindow.loop1.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedWindow.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedWindow.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedWindow.loop1.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (PackedFull.loop1.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedWindow.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedCausal.loop2.visible_1 a pid t s i j))
/-- The state before iteration t. -/
@[expose] noncomputable def PackedWindow.loop2.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedWindow.loop2.firstTile a pid) t
    (PackedWindow.loop2.body a pid) (PackedWindow.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedWindow.loop2.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedFull.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedFull.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedWindow.loop2.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedFull.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedFull.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedWindow.loop2.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
@[expose] noncomputable def PackedWindow.loop3.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedWindow.loop3.firstTile a pid) t
    (PackedWindow.loop3.body a pid) (PackedWindow.loop3.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedWindow.loop3.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedWindow.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedWindow.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedWindow.loop3.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedWindow.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedWindow.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedWindow.loop3.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (PackedFull.loop1.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedWindow.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedCausal.loop2.visible_1 a pid t s i j))
/-- What `P` asks of each access. -/
@[expose] noncomputable def PackedWindow.Accesses (a : Forward.Args R) (pid : Int)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (P.cu_q_ptr (PackedFull.load_first_3 a pid)) ∧
  (P.cu_q_ptr (PackedFull.load_stop_4 a pid)) ∧
  (P.cu_k_ptr (PackedFull.load_first_8 a pid)) ∧
  (P.cu_k_ptr (PackedFull.load_stop_9 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr
    (PackedFull.load_q a pid i j)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop1.firstTile a pid ≤ t → t <
    PackedWindow.loop1.stopTile a pid → PackedWindow.loop1.Accesses a pid t
    (PackedWindow.loop1.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop2.firstTile a pid ≤ t → t <
    PackedWindow.loop2.stopTile a pid → PackedWindow.loop2.Accesses a pid t
    (PackedWindow.loop2.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop3.firstTile a pid ≤ t → t <
    PackedWindow.loop3.stopTile a pid → PackedWindow.loop3.Accesses a pid t
    (PackedWindow.loop3.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, P.out_ptr
    (PackedWindow.store_out_ptr a pid i j).toAccess) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, P.lse_ptr (PackedWindow.store_lse_ptr a pid
    i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] noncomputable def PackedWindow.Exponents (a : Forward.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop1.firstTile a pid ≤ t → t <
    PackedWindow.loop1.stopTile a pid → PackedWindow.loop1.Exponents a pid t
    (PackedWindow.loop1.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop2.firstTile a pid ≤ t → t <
    PackedWindow.loop2.stopTile a pid → PackedWindow.loop2.Exponents a pid t
    (PackedWindow.loop2.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop3.firstTile a pid ≤ t → t <
    PackedWindow.loop3.stopTile a pid → PackedWindow.loop3.Exponents a pid t
    (PackedWindow.loop3.before a pid t) P)
/-- No integer operation overflows. -/
@[expose] noncomputable def PackedWindow.NoOverflow (a : Forward.Args R) (pid : Int)
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
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.row_last_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.row_last_2 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.row_last a pid)) ∧
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
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, FitsI32 (PackedCausal.rows a pid i)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_7 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_8 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_9 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_10 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.seen_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindow.first_12 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.stop_12 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.stop_13 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.stop_14 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindow.divsi_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.addi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.divsi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.addi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.divsi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindow.first_14 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindow.first_16 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindow.first a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.seen_2 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.seen_3 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausal.stop_20 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.whole_stop_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop1.firstTile a pid ≤ t → t <
    PackedWindow.loop1.stopTile a pid → PackedWindow.loop1.NoOverflow a pid t
    (PackedWindow.loop1.before a pid t)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop2.firstTile a pid ≤ t → t <
    PackedWindow.loop2.stopTile a pid → PackedWindow.loop2.NoOverflow a pid t
    (PackedWindow.loop2.before a pid t)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindow.loop3.firstTile a pid ≤ t → t <
    PackedWindow.loop3.stopTile a pid → PackedWindow.loop3.NoOverflow a pid t
    (PackedWindow.loop3.before a pid t)) ∧
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
