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

@[expose] noncomputable def Window.some_ (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((Left.first_3 a pid) < (Causal.stop_5 a pid))
@[expose] noncomputable def Window.select_1 (a : Forward.Args R) (pid : Int) : Int :=
  if (Window.some_ a pid) then (Left.divsi_1 a pid) else (0 : Int)
@[expose] noncomputable def Window.select_2 (a : Forward.Args R) (pid : Int) : Int :=
  if (Window.some_ a pid) then (Causal.divsi a pid) else (0 : Int)
@[expose] noncomputable def Window.whole_first_1 (a : Forward.Args R) (pid : Int) : Int :=
  max (Left.first a pid) (Window.select_1 a pid)
@[expose] noncomputable def Window.whole_first (a : Forward.Args R) (pid : Int) : Int :=
  min (Window.whole_first_1 a pid) (Window.select_2 a pid)
@[expose] noncomputable def Window.whole_stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  max (Causal.whole_stop_2 a pid) (Window.whole_first a pid)
@[expose] noncomputable def Window.whole_stop (a : Forward.Args R) (pid : Int) : Int :=
  min (Window.whole_stop_3 a pid) (Window.select_2 a pid)
@[expose] noncomputable def Window.loop1.inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => (Left.loop1.inside_1 a pid t s i) && (Causal.loop2.inside_2 a pid t s i)
@[expose] noncomputable def Window.loop1.k_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found_3 a pid t s i) && (Window.loop1.inside a pid t s j)
@[expose] noncomputable def Window.loop1.v_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found a pid t s j) && (Window.loop1.inside a pid t s i)
@[expose] noncomputable def Window.loop1.load_k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Window.loop1.k_inside a pid t s i j), (Full.loop1.key_ptrs a pid t s i j)⟩
@[expose] noncomputable def Window.loop1.k (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => (Window.loop1.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] noncomputable def Window.loop1.y_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (Full.q a pid i n)) (fun n => (Window.loop1.k a pid t s n
    j)) (Flt.num 0)
@[expose] noncomputable def Window.loop1.s (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop1.y_1 a pid t s i j) a.scale
@[expose] noncomputable def Window.loop1.load_v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(Window.loop1.v_inside a pid t s i j), (Full.loop1.value_ptrs a pid t s i j)⟩
@[expose] noncomputable def Window.loop1.v (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => (Window.loop1.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] noncomputable def Window.loop1.visible_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Causal.loop2.inside_2 a pid t s j) && (Left.loop1.visible_2 a pid t s i j)
@[expose] noncomputable def Window.loop1.visible (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Window.loop1.visible_3 a pid t s i j) && (Causal.loop2.visible_2 a pid t s i j)
@[expose] noncomputable def Window.loop1.select (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (Window.loop1.visible a pid t s i j) then (Window.loop1.s a pid t s i j) else
    Flt.ninf
@[expose] noncomputable def Window.loop1.largest (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (Window.loop1.select a pid t s i n)
@[expose] noncomputable def Window.loop1.m_new (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (Window.loop1.largest a pid t s i)
@[expose] noncomputable def Window.loop1.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (Window.loop1.m_new a pid t s i) Flt.ninf
@[expose] noncomputable def Window.loop1.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (Window.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else (Window.loop1.m_new a pid
    t s i)
@[expose] noncomputable def Window.loop1.alpha_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (Window.loop1.m_finite a pid t s i)
@[expose] noncomputable def Window.loop1.alpha (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (Window.loop1.alpha_1 a pid t s i)
@[expose] noncomputable def Window.loop1.p_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (Window.loop1.select a pid t s i j) (Window.loop1.m_finite a pid t s i)
@[expose] noncomputable def Window.loop1.p (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (Window.loop1.p_1 a pid t s i j)
@[expose] noncomputable def Window.loop1.l_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (Window.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] noncomputable def Window.loop1.l_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (Window.loop1.p a pid t s i n)
@[expose] noncomputable def Window.loop1.l (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Flt R :=
  fun i => Flt.add (Window.loop1.l_1 a pid t s i) (Window.loop1.l_2 a pid t s i)
@[expose] noncomputable def Window.loop1.o (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (Window.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] noncomputable def Window.loop1.y (a : Forward.Args R) (pid t : Int) (s : Full.loop1.State
    R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (Window.loop1.p a pid t s i n)) (fun n => (Window.loop1.v a
    pid t s n j)) (Window.loop1.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] noncomputable def Window.loop1.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_1 a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def Window.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One iteration. -/
@[expose] noncomputable def Window.loop1.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def Window.loop1.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] noncomputable def Window.loop1.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (Window.loop1.firstTile a pid)
    (Window.loop1.stopTile a pid)
    (Window.loop1.body a pid) (Window.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def Window.loop2.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def Window.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One iteration. -/
@[expose] noncomputable def Window.loop2.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Full.loop1.m_new a pid t s i), fun i => (Full.loop1.l a pid t s i), fun i j =>
    (Full.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def Window.loop2.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((Window.loop1.result a pid).1 i), fun i => ((Window.loop1.result a pid).2.1 i), fun i j
    => ((Window.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def Window.loop2.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (Window.loop2.firstTile a pid)
    (Window.loop2.stopTile a pid)
    (Window.loop2.body a pid) (Window.loop2.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def Window.loop3.firstTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def Window.loop3.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (Window.select_2 a pid)
/-- One iteration. -/
@[expose] noncomputable def Window.loop3.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (Window.loop1.m_new a pid t s i), fun i => (Window.loop1.l a pid t s i), fun i j =>
    (Window.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def Window.loop3.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((Window.loop2.result a pid).1 i), fun i => ((Window.loop2.result a pid).2.1 i), fun i j
    => ((Window.loop2.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def Window.loop3.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (Window.loop3.firstTile a pid)
    (Window.loop3.stopTile a pid)
    (Window.loop3.body a pid) (Window.loop3.start a pid)
@[expose] noncomputable def Window.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((Window.loop3.result a pid).2.1 i) (Flt.num 0)
@[expose] noncomputable def Window.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (Window.none_ a pid i) then (Flt.num 1) else ((Window.loop3.result a pid).2.1 i)
@[expose] noncomputable def Window.divf (a : Forward.Args R) (pid : Int) : Nat → Nat → Flt R :=
  fun i j => Flt.div ((Window.loop3.result a pid).2.2 i j) (Window.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] noncomputable def Window.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨(Full.stored a pid i j), (Full.out_ptrs a pid i j)⟩, (Window.divf a pid i j)⟩
@[expose] noncomputable def Window.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((Window.loop3.result a pid).1 i) (Flt.num a.ln2)
@[expose] noncomputable def Window.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (Window.select a pid i)
@[expose] noncomputable def Window.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (Window.mulf a pid i) (Window.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] noncomputable def Window.store_lse_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Store (Flt R) :=
  fun i => ⟨⟨(Full.inside a pid i), (Full.addptr a pid i)⟩, (Window.addf a pid i)⟩
/-- The state before iteration t. -/
@[expose] noncomputable def Window.loop1.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (Window.loop1.firstTile a pid) t
    (Window.loop1.body a pid) (Window.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def Window.loop1.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Window.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (Window.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def Window.loop1.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Window.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Window.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def Window.loop1.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (Full.loop1.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Left.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Causal.loop2.visible_1 a pid t s i j))
/-- The state before iteration t. -/
@[expose] noncomputable def Window.loop2.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (Window.loop2.firstTile a pid) t
    (Window.loop2.body a pid) (Window.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def Window.loop2.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Full.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (Full.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def Window.loop2.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Full.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Full.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def Window.loop2.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
@[expose] noncomputable def Window.loop3.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (Window.loop3.firstTile a pid) t
    (Window.loop3.body a pid) (Window.loop3.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def Window.loop3.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (Window.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (Window.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def Window.loop3.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (Window.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (Window.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def Window.loop3.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, FitsI64 (Full.loop1.value_ptrs a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Left.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (Causal.loop2.visible_1 a pid t s i j))
/-- What `P` asks of each access. -/
@[expose] noncomputable def Window.Accesses (a : Forward.Args R) (pid : Int)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr (Full.load_q a pid i j)) ∧
  (∀ t, Window.loop1.firstTile a pid ≤ t → t < Window.loop1.stopTile a pid → Window.loop1.Accesses a
    pid t (Window.loop1.before a pid t) P) ∧
  (∀ t, Window.loop2.firstTile a pid ≤ t → t < Window.loop2.stopTile a pid → Window.loop2.Accesses a
    pid t (Window.loop2.before a pid t) P) ∧
  (∀ t, Window.loop3.firstTile a pid ≤ t → t < Window.loop3.stopTile a pid → Window.loop3.Accesses a
    pid t (Window.loop3.before a pid t) P) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, P.out_ptr (Window.store_out_ptr a pid i j).toAccess) ∧
  (∀ i < a.BLOCK_M, P.lse_ptr (Window.store_lse_ptr a pid i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] noncomputable def Window.Exponents (a : Forward.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  (∀ t, Window.loop1.firstTile a pid ≤ t → t < Window.loop1.stopTile a pid → Window.loop1.Exponents
    a pid t (Window.loop1.before a pid t) P) ∧
  (∀ t, Window.loop2.firstTile a pid ≤ t → t < Window.loop2.stopTile a pid → Window.loop2.Exponents
    a pid t (Window.loop2.before a pid t) P) ∧
  (∀ t, Window.loop3.firstTile a pid ≤ t → t < Window.loop3.stopTile a pid → Window.loop3.Exponents
    a pid t (Window.loop3.before a pid t) P)
/-- No integer operation overflows. -/
@[expose] noncomputable def Window.NoOverflow (a : Forward.Args R) (pid : Int)
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
  (FitsI32 (Causal.row_last_1 a pid)) ∧
  (FitsI32 (Causal.row_last_2 a pid)) ∧
  (FitsI32 (Causal.row_last a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Full.queries a pid i)) ∧
  (FitsI64 (Full.found_1 a pid)) ∧
  (FitsI64 (Full.found_2 a pid)) ∧
  (FitsI64 (Full.found_3 a pid)) ∧
  (FitsI64 (Full.found_4 a pid)) ∧
  (∀ i < a.BLOCK_M, FitsI64 (Full.found_5 a pid i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI64 (Full.query_ptrs_1 a pid i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, FitsI64 (Full.query_ptrs a pid i j)) ∧
  (∀ i < a.BLOCK_M, FitsI32 (Causal.rows a pid i)) ∧
  (FitsI64 (Full.found_7 a pid)) ∧
  (FitsI64 (Full.found_8 a pid)) ∧
  (FitsI64 (Full.found_9 a pid)) ∧
  (FitsI64 (Full.found_10 a pid)) ∧
  (FitsI32 (Causal.seen_1 a pid)) ∧
  (FitsI32 (Left.first_2 a pid)) ∧
  (FitsI32 (Causal.stop_1 a pid)) ∧
  (FitsI32 (Causal.stop_2 a pid)) ∧
  (FitsI32 (Causal.stop_3 a pid)) ∧
  (FitsI32 (Left.divsi_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Causal.addi a pid)) ∧
  (FitsI32 (Causal.divsi a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Full.addi a pid)) ∧
  (FitsI32 (Full.divsi a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Left.first_5 a pid)) ∧
  (FitsI32 (Left.first_7 a pid)) ∧
  (FitsI32 (Left.first a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Causal.seen_2 a pid)) ∧
  (FitsI32 (Causal.seen_3 a pid)) ∧
  (FitsI32 (Causal.stop_9 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (FitsI32 (Full.whole_stop_1 a pid)) ∧
  ((a.BLOCK_N : Int) ≠ 0) ∧
  (∀ t, Window.loop1.firstTile a pid ≤ t → t < Window.loop1.stopTile a pid → Window.loop1.NoOverflow
    a pid t (Window.loop1.before a pid t)) ∧
  (∀ t, Window.loop2.firstTile a pid ≤ t → t < Window.loop2.stopTile a pid → Window.loop2.NoOverflow
    a pid t (Window.loop2.before a pid t)) ∧
  (∀ t, Window.loop3.firstTile a pid ≤ t → t < Window.loop3.stopTile a pid → Window.loop3.NoOverflow
    a pid t (Window.loop3.before a pid t)) ∧
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
