module

public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.PackedCausal
public import Attention.Kernel.Generated.PackedCausalEnd
public import Attention.Kernel.Generated.PackedFull

public section

-- Each value takes what its scope has, whether it needs it or not.
set_option linter.unusedVariables false

/-! # The forward kernel as Triton compiles it: PackedWindowEnd

With a window, sequences packed, aligned bottom-right. What an earlier text
computes alike is that text's. Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- What the text is given: of these arguments those that it has. -/
abbrev PackedWindowEnd.Args (R : Type u) := Forward.Args R

variable {R : Type u} [OrderedField R] [Exp R R]

@[expose] noncomputable def PackedWindowEnd.first_12 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.seen_1 a pid) - a.left
@[expose] noncomputable def PackedWindowEnd.first_13 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedWindowEnd.first_12 a pid) (0 : Int)
@[expose] noncomputable def PackedWindowEnd.some_ (a : Forward.Args R) (pid : Int) : Bool :=
  decide ((PackedWindowEnd.first_13 a pid) < (PackedCausalEnd.stop_16 a pid))
@[expose] noncomputable def PackedWindowEnd.divsi_1 (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedWindowEnd.first_13 a pid) (a.BLOCK_N : Int)
@[expose] noncomputable def PackedWindowEnd.select_1 (a : Forward.Args R) (pid : Int) : Int :=
  if (PackedWindowEnd.some_ a pid) then (PackedWindowEnd.divsi_1 a pid) else (0 : Int)
@[expose] noncomputable def PackedWindowEnd.select_2 (a : Forward.Args R) (pid : Int) : Int :=
  if (PackedWindowEnd.some_ a pid) then (PackedCausalEnd.divsi a pid) else (0 : Int)
@[expose] noncomputable def PackedWindowEnd.first_14 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedCausalEnd.stop_12 a pid) - a.left
@[expose] noncomputable def PackedWindowEnd.first_15 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedWindowEnd.first_14 a pid) (0 : Int)
@[expose] noncomputable def PackedWindowEnd.first_16 (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindowEnd.first_15 a pid) + (a.BLOCK_N - 1 : Int)
@[expose] noncomputable def PackedWindowEnd.first (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (PackedWindowEnd.first_16 a pid) (a.BLOCK_N : Int)
@[expose] noncomputable def PackedWindowEnd.whole_first_1 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedWindowEnd.first a pid) (PackedWindowEnd.select_1 a pid)
@[expose] noncomputable def PackedWindowEnd.whole_first (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedWindowEnd.whole_first_1 a pid) (PackedWindowEnd.select_2 a pid)
@[expose] noncomputable def PackedWindowEnd.whole_stop_3 (a : Forward.Args R) (pid : Int) : Int :=
  max (PackedCausalEnd.whole_stop_2 a pid) (PackedWindowEnd.whole_first a pid)
@[expose] noncomputable def PackedWindowEnd.whole_stop (a : Forward.Args R) (pid : Int) : Int :=
  min (PackedWindowEnd.whole_stop_3 a pid) (PackedWindowEnd.select_2 a pid)
@[expose] noncomputable def PackedWindowEnd.loop1.inside_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => decide ((PackedWindowEnd.first_13 a pid) ≤ (Full.loop2.keys a pid t s i))
@[expose] noncomputable def PackedWindowEnd.loop1.inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => (PackedWindowEnd.loop1.inside_1 a pid t s i) && (PackedCausalEnd.loop2.inside_2 a pid t s
    i)
@[expose] noncomputable def PackedWindowEnd.loop1.k_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found_3 a pid t s i) && (PackedWindowEnd.loop1.inside a pid t s j)
@[expose] noncomputable def PackedWindowEnd.loop1.v_inside (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (Full.loop2.found a pid t s j) && (PackedWindowEnd.loop1.inside a pid t s i)
@[expose] noncomputable def PackedWindowEnd.loop1.load_k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedWindowEnd.loop1.k_inside a pid t s i j), (PackedFull.loop1.key_ptrs a pid t s i
    j)⟩
@[expose] noncomputable def PackedWindowEnd.loop1.k (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedWindowEnd.loop1.load_k a pid t s i j).read a.key_ptr (Flt.num 0)
@[expose] noncomputable def PackedWindowEnd.loop1.y_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_D (fun n => (PackedFull.q a pid i n)) (fun n =>
    (PackedWindowEnd.loop1.k a pid t s n j)) (Flt.num 0)
@[expose] noncomputable def PackedWindowEnd.loop1.s (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedWindowEnd.loop1.y_1 a pid t s i j) a.scale
@[expose] noncomputable def PackedWindowEnd.loop1.load_v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Access :=
  fun i j => ⟨(PackedWindowEnd.loop1.v_inside a pid t s i j), (PackedFull.loop1.value_ptrs a pid t s
    i j)⟩
@[expose] noncomputable def PackedWindowEnd.loop1.v (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => (PackedWindowEnd.loop1.load_v a pid t s i j).read a.value_ptr (Flt.num 0)
@[expose] noncomputable def PackedWindowEnd.loop1.visible_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Int :=
  fun i j => (PackedCausalEnd.rows a pid i) - a.left
@[expose] noncomputable def PackedWindowEnd.loop1.visible_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => decide ((PackedWindowEnd.loop1.visible_1 a pid t s i 0) ≤ (Full.loop2.keys a pid t s
    j))
@[expose] noncomputable def PackedWindowEnd.loop1.visible_3 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (PackedCausalEnd.loop2.inside_2 a pid t s j) && (PackedWindowEnd.loop1.visible_2 a pid
    t s i j)
@[expose] noncomputable def PackedWindowEnd.loop1.visible (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Bool :=
  fun i j => (PackedWindowEnd.loop1.visible_3 a pid t s i j) && (PackedCausalEnd.loop2.visible_2 a
    pid t s i j)
@[expose] noncomputable def PackedWindowEnd.loop1.select (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => if (PackedWindowEnd.loop1.visible a pid t s i j) then (PackedWindowEnd.loop1.s a pid t
    s i j) else Flt.ninf
@[expose] noncomputable def PackedWindowEnd.loop1.largest (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.maxOver a.BLOCK_N fun n => (PackedWindowEnd.loop1.select a pid t s i n)
@[expose] noncomputable def PackedWindowEnd.loop1.m_new (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.max (s.1 i) (PackedWindowEnd.loop1.largest a pid t s i)
@[expose] noncomputable def PackedWindowEnd.loop1.m_finite_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Bool :=
  fun i => Flt.oeq (PackedWindowEnd.loop1.m_new a pid t s i) Flt.ninf
@[expose] noncomputable def PackedWindowEnd.loop1.m_finite (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => if (PackedWindowEnd.loop1.m_finite_1 a pid t s i) then (Flt.num 0) else
    (PackedWindowEnd.loop1.m_new a pid t s i)
@[expose] noncomputable def PackedWindowEnd.loop1.alpha_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sub (s.1 i) (PackedWindowEnd.loop1.m_finite a pid t s i)
@[expose] noncomputable def PackedWindowEnd.loop1.alpha (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.exp2 (PackedWindowEnd.loop1.alpha_1 a pid t s i)
@[expose] noncomputable def PackedWindowEnd.loop1.p_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.sub (PackedWindowEnd.loop1.select a pid t s i j) (PackedWindowEnd.loop1.m_finite a
    pid t s i)
@[expose] noncomputable def PackedWindowEnd.loop1.p (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.exp2 (PackedWindowEnd.loop1.p_1 a pid t s i j)
@[expose] noncomputable def PackedWindowEnd.loop1.l_1 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.mul (PackedWindowEnd.loop1.alpha a pid t s i) (s.2.1 i)
@[expose] noncomputable def PackedWindowEnd.loop1.l_2 (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.sum a.BLOCK_N fun n => (PackedWindowEnd.loop1.p a pid t s i n)
@[expose] noncomputable def PackedWindowEnd.loop1.l (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Flt R :=
  fun i => Flt.add (PackedWindowEnd.loop1.l_1 a pid t s i) (PackedWindowEnd.loop1.l_2 a pid t s i)
@[expose] noncomputable def PackedWindowEnd.loop1.o (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.mul (PackedWindowEnd.loop1.alpha a pid t s i) (s.2.2 i j)
@[expose] noncomputable def PackedWindowEnd.loop1.y (a : Forward.Args R) (pid t : Int) (s :
    Full.loop1.State R)
    : Nat → Nat → Flt R :=
  fun i j => Flt.dot a.BLOCK_N (fun n => (PackedWindowEnd.loop1.p a pid t s i n)) (fun n =>
    (PackedWindowEnd.loop1.v a pid t s n j)) (PackedWindowEnd.loop1.o a pid t s i j)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedWindowEnd.loop1.firstTile (a : Forward.Args R) (pid : Int)
    : Int :=
  (PackedWindowEnd.select_1 a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedWindowEnd.loop1.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindowEnd.whole_first a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop1.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedWindowEnd.loop1.m_new a pid t s i), fun i => (PackedWindowEnd.loop1.l a pid t s
    i), fun i j => (PackedWindowEnd.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedWindowEnd.loop1.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => Flt.ninf, fun i => (Flt.num 0), fun i j => (Flt.num 0))
/-- The state after the loop. -/
@[expose] noncomputable def PackedWindowEnd.loop1.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedWindowEnd.loop1.firstTile a pid)
    (PackedWindowEnd.loop1.stopTile a pid)
    (PackedWindowEnd.loop1.body a pid) (PackedWindowEnd.loop1.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedWindowEnd.loop2.firstTile (a : Forward.Args R) (pid : Int)
    : Int :=
  (PackedWindowEnd.whole_first a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedWindowEnd.loop2.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindowEnd.whole_stop a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop2.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedFull.loop1.m_new a pid t s i), fun i => (PackedFull.loop1.l a pid t s i), fun i j
    => (PackedFull.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedWindowEnd.loop2.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((PackedWindowEnd.loop1.result a pid).1 i), fun i => ((PackedWindowEnd.loop1.result a
    pid).2.1 i), fun i j => ((PackedWindowEnd.loop1.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def PackedWindowEnd.loop2.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedWindowEnd.loop2.firstTile a pid)
    (PackedWindowEnd.loop2.stopTile a pid)
    (PackedWindowEnd.loop2.body a pid) (PackedWindowEnd.loop2.start a pid)
/-- The loop's first tile. -/
@[expose] noncomputable def PackedWindowEnd.loop3.firstTile (a : Forward.Args R) (pid : Int)
    : Int :=
  (PackedWindowEnd.whole_stop a pid)
/-- One past the loop's last tile. -/
@[expose] noncomputable def PackedWindowEnd.loop3.stopTile (a : Forward.Args R) (pid : Int) : Int :=
  (PackedWindowEnd.select_2 a pid)
/-- One iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop3.body (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R) :
    Full.loop1.State R :=
  (fun i => (PackedWindowEnd.loop1.m_new a pid t s i), fun i => (PackedWindowEnd.loop1.l a pid t s
    i), fun i j => (PackedWindowEnd.loop1.y a pid t s i j))
/-- The state before the loop. -/
@[expose] noncomputable def PackedWindowEnd.loop3.start (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  (fun i => ((PackedWindowEnd.loop2.result a pid).1 i), fun i => ((PackedWindowEnd.loop2.result a
    pid).2.1 i), fun i j => ((PackedWindowEnd.loop2.result a pid).2.2 i j))
/-- The state after the loop. -/
@[expose] noncomputable def PackedWindowEnd.loop3.result (a : Forward.Args R) (pid : Int)
    : Full.loop1.State R :=
  forRange (PackedWindowEnd.loop3.firstTile a pid)
    (PackedWindowEnd.loop3.stopTile a pid)
    (PackedWindowEnd.loop3.body a pid) (PackedWindowEnd.loop3.start a pid)
@[expose] noncomputable def PackedWindowEnd.none_ (a : Forward.Args R) (pid : Int) : Nat → Bool :=
  fun i => Flt.oeq ((PackedWindowEnd.loop3.result a pid).2.1 i) (Flt.num 0)
@[expose] noncomputable def PackedWindowEnd.select (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => if (PackedWindowEnd.none_ a pid i) then (Flt.num 1) else ((PackedWindowEnd.loop3.result a
    pid).2.1 i)
@[expose] noncomputable def PackedWindowEnd.divf (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Flt R :=
  fun i j => Flt.div ((PackedWindowEnd.loop3.result a pid).2.2 i j) (PackedWindowEnd.select a pid i)
/-- What is stored behind `out_ptr`. -/
@[expose] noncomputable def PackedWindowEnd.store_out_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Nat → Store (Flt R) :=
  fun i j => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.stored a pid i j), (PackedFull.out_ptrs a pid
    i j)⟩, (PackedWindowEnd.divf a pid i j)⟩
@[expose] noncomputable def PackedWindowEnd.mulf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.mul ((PackedWindowEnd.loop3.result a pid).1 i) (Flt.num a.ln2)
@[expose] noncomputable def PackedWindowEnd.log (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.log a.ln (PackedWindowEnd.select a pid i)
@[expose] noncomputable def PackedWindowEnd.addf (a : Forward.Args R) (pid : Int) : Nat → Flt R :=
  fun i => Flt.add (PackedWindowEnd.mulf a pid i) (PackedWindowEnd.log a pid i)
/-- What is stored behind `lse_ptr`. -/
@[expose] noncomputable def PackedWindowEnd.store_lse_ptr (a : Forward.Args R) (pid : Int)
    : Nat → Store (Flt R) :=
  fun i => ⟨⟨!(PackedFull.cmpi a pid) && (PackedFull.inside a pid i), (PackedFull.addptr a pid i)⟩,
    (PackedWindowEnd.addf a pid i)⟩
/-- The state before iteration t. -/
@[expose] noncomputable def PackedWindowEnd.loop1.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedWindowEnd.loop1.firstTile a pid) t
    (PackedWindowEnd.loop1.body a pid) (PackedWindowEnd.loop1.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop1.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedWindowEnd.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedWindowEnd.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop1.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedWindowEnd.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedWindowEnd.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedWindowEnd.loop1.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedWindowEnd.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedCausalEnd.loop2.visible_1 a pid t s i j))
/-- The state before iteration t. -/
@[expose] noncomputable def PackedWindowEnd.loop2.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedWindowEnd.loop2.firstTile a pid) t
    (PackedWindowEnd.loop2.body a pid) (PackedWindowEnd.loop2.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop2.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedFull.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedFull.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop2.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedFull.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedFull.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedWindowEnd.loop2.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
@[expose] noncomputable def PackedWindowEnd.loop3.before (a : Forward.Args R) (pid : Int) (t : Int)
    : Full.loop1.State R :=
  forRange (PackedWindowEnd.loop3.firstTile a pid) t
    (PackedWindowEnd.loop3.body a pid) (PackedWindowEnd.loop3.start a pid)
/-- What `P` asks of each access of an iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop3.Accesses (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (∀ i < a.BLOCK_D, ∀ j < a.BLOCK_N, P.key_ptr (PackedWindowEnd.loop1.load_k a pid t s i j)) ∧
  (∀ i < a.BLOCK_N, ∀ j < a.BLOCK_V, P.value_ptr (PackedWindowEnd.loop1.load_v a pid t s i j))
/-- `P` of each argument of exp2 of an iteration. -/
@[expose] noncomputable def PackedWindowEnd.loop3.Exponents (a : Forward.Args R) (pid t : Int) (s
    : Full.loop1.State R)
    (P : Flt R → Prop) : Prop :=
  (∀ i < a.BLOCK_M, P (PackedWindowEnd.loop1.alpha_1 a pid t s i)) ∧
  (∀ i < a.BLOCK_M, ∀ j < a.BLOCK_N, P (PackedWindowEnd.loop1.p_1 a pid t s i j))
/-- No integer operation of an iteration overflows. -/
@[expose] noncomputable def PackedWindowEnd.loop3.NoOverflow (a : Forward.Args R) (pid t : Int) (s
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
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedWindowEnd.loop1.visible_1 a pid t s i j)) ∧
  (∀ i < a.BLOCK_M, ∀ j < 1, FitsI32 (PackedCausalEnd.loop2.visible_1 a pid t s i j))
/-- What `P` asks of each access. -/
@[expose] noncomputable def PackedWindowEnd.Accesses (a : Forward.Args R) (pid : Int)
    (P : Forward.Pointers (Access → Prop)) : Prop :=
  (P.cu_q_ptr (PackedFull.load_first_3 a pid)) ∧
  (P.cu_q_ptr (PackedFull.load_stop_4 a pid)) ∧
  (P.cu_k_ptr (PackedFull.load_first_8 a pid)) ∧
  (P.cu_k_ptr (PackedFull.load_stop_9 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_D, P.query_ptr
    (PackedFull.load_q a pid i j)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop1.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop1.stopTile a pid → PackedWindowEnd.loop1.Accesses a pid t
    (PackedWindowEnd.loop1.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop2.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop2.stopTile a pid → PackedWindowEnd.loop2.Accesses a pid t
    (PackedWindowEnd.loop2.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop3.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop3.stopTile a pid → PackedWindowEnd.loop3.Accesses a pid t
    (PackedWindowEnd.loop3.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, ∀ j < a.BLOCK_V, P.out_ptr
    (PackedWindowEnd.store_out_ptr a pid i j).toAccess) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, P.lse_ptr (PackedWindowEnd.store_lse_ptr a
    pid i).toAccess)
/-- `P` of each argument of exp2. -/
@[expose] noncomputable def PackedWindowEnd.Exponents (a : Forward.Args R) (pid : Int)
    (P : Flt R → Prop) : Prop :=
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop1.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop1.stopTile a pid → PackedWindowEnd.loop1.Exponents a pid t
    (PackedWindowEnd.loop1.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop2.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop2.stopTile a pid → PackedWindowEnd.loop2.Exponents a pid t
    (PackedWindowEnd.loop2.before a pid t) P) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop3.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop3.stopTile a pid → PackedWindowEnd.loop3.Exponents a pid t
    (PackedWindowEnd.loop3.before a pid t) P)
/-- No integer operation overflows. -/
@[expose] noncomputable def PackedWindowEnd.NoOverflow (a : Forward.Args R) (pid : Int)
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
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.shift_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.shift a pid)) ∧
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
  ((!(PackedFull.cmpi a pid)) = true → ∀ i < a.BLOCK_M, FitsI32 (PackedCausalEnd.rows a pid i)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_7 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_8 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_9 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI64 (PackedFull.found_10 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.seen_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindowEnd.first_12 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.stop_12 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.stop_13 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.stop_14 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindowEnd.divsi_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.addi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.divsi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.addi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.divsi a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindowEnd.first_14 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindowEnd.first_16 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedWindowEnd.first a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.seen_2 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.seen_3 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedCausalEnd.stop_20 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → FitsI32 (PackedFull.whole_stop_1 a pid)) ∧
  ((!(PackedFull.cmpi a pid)) = true → (a.BLOCK_N : Int) ≠ 0) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop1.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop1.stopTile a pid → PackedWindowEnd.loop1.NoOverflow a pid t
    (PackedWindowEnd.loop1.before a pid t)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop2.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop2.stopTile a pid → PackedWindowEnd.loop2.NoOverflow a pid t
    (PackedWindowEnd.loop2.before a pid t)) ∧
  ((!(PackedFull.cmpi a pid)) = true → ∀ t, PackedWindowEnd.loop3.firstTile a pid ≤ t → t <
    PackedWindowEnd.loop3.stopTile a pid → PackedWindowEnd.loop3.NoOverflow a pid t
    (PackedWindowEnd.loop3.before a pid t)) ∧
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
