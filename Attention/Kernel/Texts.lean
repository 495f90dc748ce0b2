module

meta import Lean.Elab.Tactic.ElabTerm
public import Attention.Kernel.Forward
public import Attention.Kernel.Generated.Causal
public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.Left
public import Attention.Kernel.Generated.PackedCausal
public import Attention.Kernel.Generated.PackedCausalEnd
public import Attention.Kernel.Generated.PackedFull
public import Attention.Kernel.Generated.PackedWindow
public import Attention.Kernel.Generated.PackedWindowEnd
public import Attention.Kernel.Generated.PaddedCausal
public import Attention.Kernel.Generated.PaddedFull
public import Attention.Kernel.Generated.PaddedWindow
public import Attention.Kernel.Generated.Window

public section

/-! # The texts of the forward kernel compute what `Problem` says

By unfolding. The bounds of the loops come first: a text with others fails there, before Lean's
kernel unfolds the loops, for which it may need more memory than there is. -/

namespace Attention.Kernel

open Lean Elab.Tactic Meta

-- Over twice what all equations need together where the texts are what `Problem` says (8,100).
set_option maxHeartbeats 20000

universe u

variable {R : Type u}

/-- What a text for dense tensors is given, with a window of these bounds; even: the sizes of heads
and values fill their tiles. -/
@[expose] def Forward.dense (a : Forward.Args R) (left right : Option Int) (even : Bool) :
    Problem R where
  query := a.query_ptr; key := a.key_ptr; value := a.value_ptr
  qb := a.stride_qb; qh := a.stride_qh; qm := a.stride_qm
  kb := a.stride_kb; kh := a.stride_kh; kn := a.stride_kn
  vb := a.stride_vb; vh := a.stride_vh; vn := a.stride_vn
  ob := a.stride_ob; oh := a.stride_oh; om := a.stride_om
  lb := a.stride_lb; lh := a.stride_lh
  heads := a.num_heads; group := a.group; tilesLen := a.q_len; packed := none
  qLen := a.q_len; kvLen := a.kv_len
  dim := a.head_dim; valueDim := a.value_dim; scale := a.scale
  left := left; right := right; shift := a.shift; even := even; evenValue := even
  BM := a.BLOCK_M; BN := a.BLOCK_N; BD := a.BLOCK_D; BV := a.BLOCK_V; ln2 := a.ln2; ln := a.ln

/-- The first row of a packed sequence, of `total` rows, and one past its last. -/
@[expose] def Forward.firstRow (cu : Mem Int) (stride total b : Int) : Int :=
  min (max (cu (0 + b * stride)) 0) total

@[expose, inherit_doc Forward.firstRow] def Forward.stopRow (cu : Mem Int)
    (stride total b : Int) : Int :=
  min (max (cu (0 + (b + 1) * stride)) (Forward.firstRow cu stride total b)) total

/-- What a text for packed sequences is given for sequence b, with a window of these bounds;
atEnd: aligned bottom-right. The sizes of heads and values fill their tiles. -/
@[expose] def Forward.packed (a : Forward.Args R) (left right : Option Int) (atEnd : Bool)
    (b : Int) : Problem R where
  query := a.query_ptr; key := a.key_ptr; value := a.value_ptr
  qb := 0; qh := a.stride_qh; qm := a.stride_qm
  kb := 0; kh := a.stride_kh; kn := a.stride_kn
  vb := 0; vh := a.stride_vh; vn := a.stride_vn
  ob := 0; oh := a.stride_oh; om := a.stride_om
  lb := 0; lh := a.stride_lh
  heads := a.num_heads; group := a.group; tilesLen := a.max_q_len
  packed := some (Forward.firstRow a.cu_q_ptr a.stride_xb a.q_len b,
    Forward.firstRow a.cu_k_ptr a.stride_yb a.kv_len b)
  qLen := Forward.stopRow a.cu_q_ptr a.stride_xb a.q_len b -
    Forward.firstRow a.cu_q_ptr a.stride_xb a.q_len b
  kvLen := Forward.stopRow a.cu_k_ptr a.stride_yb a.kv_len b -
    Forward.firstRow a.cu_k_ptr a.stride_yb a.kv_len b
  dim := a.head_dim; valueDim := a.value_dim; scale := a.scale
  left := left; right := right
  shift := match atEnd with
    | false => a.shift
    | true => a.shift + (Forward.stopRow a.cu_k_ptr a.stride_yb a.kv_len b -
        Forward.firstRow a.cu_k_ptr a.stride_yb a.kv_len b) -
      (Forward.stopRow a.cu_q_ptr a.stride_xb a.q_len b -
        Forward.firstRow a.cu_q_ptr a.stride_xb a.q_len b)
  even := true; evenValue := true
  BM := a.BLOCK_M; BN := a.BLOCK_N; BD := a.BLOCK_D; BV := a.BLOCK_V; ln2 := a.ln2; ln := a.ln

/-- The sequence of program `pid`. -/
@[expose] def Forward.sequence (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (Int.tdiv pid (Int.tdiv (a.max_q_len + (a.BLOCK_M - 1 : Int)) a.BLOCK_M)) a.num_heads

/-- What the text without a window is given. -/
abbrev Full.problem (a : Full.Args R) : Problem R := Forward.dense a none none true

/-- What the text with a right edge (causal, or a window that is open on the left) is given. -/
abbrev Causal.problem (a : Causal.Args R) : Problem R := Forward.dense a none (some a.right) true

/-- What the text with a left edge is given. -/
abbrev Left.problem (a : Left.Args R) : Problem R := Forward.dense a (some a.left) none true

/-- What the text with a window is given. -/
abbrev Window.problem (a : Window.Args R) : Problem R :=
  Forward.dense a (some a.left) (some a.right) true

variable [OrderedField R] [Exp R R]

/-- These stores are what `Problem` says, and so is where the tiles without mask code begin and end,
and where all tiles end. -/
private abbrev Problem.IsStored (p : Problem R) (pid : Int) (bounds : Int × Int × Int)
    (out : Nat → Nat → Store (Flt R)) (lse : Nat → Store (Flt R)) : Prop :=
  bounds = (p.wholeFirst pid, p.wholeStop pid, p.stop pid) ∧
    (out, lse) = (p.storeOut pid, p.storeLse pid)

/-- By unfolding: of all texts in one proof, for which Lean compiles the tactic once. Each equation
is a lemma of its own, and `maxHeartbeats` is what all of them have together: sides that are not the
same may take for ever to unfold. -/
private theorem stores_eq :
    (∀ (a : Full.Args R) (pid : Int),
      (Full.problem a).IsStored pid
      (Full.loop1.firstTile a pid, Full.loop1.stopTile a pid, Full.loop2.stopTile a pid)
      (Full.store_out_ptr a pid) (Full.store_lse_ptr a pid)) ∧
    (∀ (a : Causal.Args R) (pid : Int),
      (Causal.problem a).IsStored pid
      (Causal.loop1.firstTile a pid, Causal.loop1.stopTile a pid, Causal.loop2.stopTile a pid)
      (Causal.store_out_ptr a pid) (Causal.store_lse_ptr a pid)) ∧
    (∀ (a : Left.Args R) (pid : Int),
      (Left.problem a).IsStored pid
      (Left.loop2.firstTile a pid, Left.loop2.stopTile a pid, Left.loop3.stopTile a pid)
      (Left.store_out_ptr a pid) (Left.store_lse_ptr a pid)) ∧
    (∀ (a : Window.Args R) (pid : Int),
      (Window.problem a).IsStored pid
      (Window.loop2.firstTile a pid, Window.loop2.stopTile a pid, Window.loop3.stopTile a pid)
      (Window.store_out_ptr a pid) (Window.store_lse_ptr a pid)) ∧
    (∀ (a : PaddedFull.Args R) (pid : Int),
      (Forward.dense a none none false).IsStored pid
      (PaddedFull.loop1.firstTile a pid, PaddedFull.loop1.stopTile a pid,
        PaddedFull.loop2.stopTile a pid)
      (PaddedFull.store_out_ptr a pid) (PaddedFull.store_lse_ptr a pid)) ∧
    (∀ (a : PaddedCausal.Args R) (pid : Int),
      (Forward.dense a none (some a.right) false).IsStored pid
      (PaddedCausal.loop1.firstTile a pid, PaddedCausal.loop1.stopTile a pid,
        PaddedCausal.loop2.stopTile a pid)
      (PaddedCausal.store_out_ptr a pid) (PaddedCausal.store_lse_ptr a pid)) ∧
    (∀ (a : PaddedWindow.Args R) (pid : Int),
      (Forward.dense a (some a.left) (some a.right) false).IsStored pid
      (PaddedWindow.loop2.firstTile a pid, PaddedWindow.loop2.stopTile a pid,
        PaddedWindow.loop3.stopTile a pid)
      (PaddedWindow.store_out_ptr a pid) (PaddedWindow.store_lse_ptr a pid)) ∧
    (∀ (a : PackedFull.Args R) (atEnd : Bool) (pid : Int),
      (Forward.packed a none none atEnd (Forward.sequence a pid)).IsStored pid
      (PackedFull.loop1.firstTile a pid, PackedFull.loop1.stopTile a pid,
        PackedFull.loop2.stopTile a pid)
      (PackedFull.store_out_ptr a pid) (PackedFull.store_lse_ptr a pid)) ∧
    (∀ (a : PackedCausal.Args R) (pid : Int),
      (Forward.packed a none (some a.right) false (Forward.sequence a pid)).IsStored pid
      (PackedCausal.loop1.firstTile a pid, PackedCausal.loop1.stopTile a pid,
        PackedCausal.loop2.stopTile a pid)
      (PackedCausal.store_out_ptr a pid) (PackedCausal.store_lse_ptr a pid)) ∧
    (∀ (a : PackedCausalEnd.Args R) (pid : Int),
      (Forward.packed a none (some a.right) true (Forward.sequence a pid)).IsStored pid
      (PackedCausalEnd.loop1.firstTile a pid, PackedCausalEnd.loop1.stopTile a pid,
        PackedCausalEnd.loop2.stopTile a pid)
      (PackedCausalEnd.store_out_ptr a pid) (PackedCausalEnd.store_lse_ptr a pid)) ∧
    (∀ (a : PackedWindow.Args R) (pid : Int),
      (Forward.packed a (some a.left) (some a.right) false (Forward.sequence a pid)).IsStored pid
      (PackedWindow.loop2.firstTile a pid, PackedWindow.loop2.stopTile a pid,
        PackedWindow.loop3.stopTile a pid)
      (PackedWindow.store_out_ptr a pid) (PackedWindow.store_lse_ptr a pid)) ∧
    (∀ (a : PackedWindowEnd.Args R) (pid : Int),
      (Forward.packed a (some a.left) (some a.right) true (Forward.sequence a pid)).IsStored pid
      (PackedWindowEnd.loop2.firstTile a pid, PackedWindowEnd.loop2.stopTile a pid,
        PackedWindowEnd.loop3.stopTile a pid)
      (PackedWindowEnd.store_out_ptr a pid) (PackedWindowEnd.store_lse_ptr a pid)) := by
  refine ⟨fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩,
    fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩, fun _ _ _ => ⟨?_, ?_⟩,
    fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩, fun _ _ => ⟨?_, ?_⟩⟩
  run_tac for goal in ← getGoals do goal.withContext do
    let type ← instantiateMVars (← goal.getType)
    let some (_, text, _) := type.eq? | unreachable!
    goal.assign (← mkAuxTheorem type (← mkEqRefl text))

/-- The text's stores of output. -/
theorem Full.storeOut_eq (a : Full.Args R) (pid : Int) (i c : Nat) :
    Full.store_out_ptr a pid i c =
      (Full.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Full.storeLse_eq (a : Full.Args R) (pid : Int) (i : Nat) :
    Full.store_lse_ptr a pid i =
      (Full.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem Causal.storeOut_eq (a : Causal.Args R) (pid : Int) (i c : Nat) :
    Causal.store_out_ptr a pid i c =
      (Causal.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Causal.storeLse_eq (a : Causal.Args R) (pid : Int) (i : Nat) :
    Causal.store_lse_ptr a pid i =
      (Causal.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem Left.storeOut_eq (a : Left.Args R) (pid : Int) (i c : Nat) :
    Left.store_out_ptr a pid i c =
      (Left.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Left.storeLse_eq (a : Left.Args R) (pid : Int) (i : Nat) :
    Left.store_lse_ptr a pid i =
      (Left.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem Window.storeOut_eq (a : Window.Args R) (pid : Int) (i c : Nat) :
    Window.store_out_ptr a pid i c =
      (Window.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Window.storeLse_eq (a : Window.Args R) (pid : Int) (i : Nat) :
    Window.store_lse_ptr a pid i =
      (Window.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem PaddedFull.storeOut_eq (a : PaddedFull.Args R) (pid : Int) (i c : Nat) :
    PaddedFull.store_out_ptr a pid i c =
      (Forward.dense a none none false).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PaddedFull.storeLse_eq (a : PaddedFull.Args R) (pid : Int) (i : Nat) :
    PaddedFull.store_lse_ptr a pid i =
      (Forward.dense a none none false).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem PaddedCausal.storeOut_eq (a : PaddedCausal.Args R) (pid : Int) (i c : Nat) :
    PaddedCausal.store_out_ptr a pid i c =
      (Forward.dense a none (some a.right) false).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PaddedCausal.storeLse_eq (a : PaddedCausal.Args R) (pid : Int) (i : Nat) :
    PaddedCausal.store_lse_ptr a pid i =
      (Forward.dense a none (some a.right) false).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem PaddedWindow.storeOut_eq (a : PaddedWindow.Args R) (pid : Int) (i c : Nat) :
    PaddedWindow.store_out_ptr a pid i c =
      (Forward.dense a (some a.left) (some a.right) false).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PaddedWindow.storeLse_eq (a : PaddedWindow.Args R) (pid : Int) (i : Nat) :
    PaddedWindow.store_lse_ptr a pid i =
      (Forward.dense a (some a.left) (some a.right) false).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem PackedFull.storeOut_eq (a : PackedFull.Args R) (atEnd : Bool) (pid : Int) (i c : Nat) :
    PackedFull.store_out_ptr a pid i c =
      (Forward.packed a none none atEnd (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.1 a atEnd pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedFull.storeLse_eq (a : PackedFull.Args R) (atEnd : Bool) (pid : Int) (i : Nat) :
    PackedFull.store_lse_ptr a pid i =
      (Forward.packed a none none atEnd (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.1 a atEnd pid).2).2 i

/-- The text's stores of output. -/
theorem PackedCausal.storeOut_eq (a : PackedCausal.Args R) (pid : Int) (i c : Nat) :
    PackedCausal.store_out_ptr a pid i c =
      (Forward.packed a none (some a.right) false (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedCausal.storeLse_eq (a : PackedCausal.Args R) (pid : Int) (i : Nat) :
    PackedCausal.store_lse_ptr a pid i =
      (Forward.packed a none (some a.right) false (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem PackedCausalEnd.storeOut_eq (a : PackedCausalEnd.Args R) (pid : Int) (i c : Nat) :
    PackedCausalEnd.store_out_ptr a pid i c =
      (Forward.packed a none (some a.right) true (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedCausalEnd.storeLse_eq (a : PackedCausalEnd.Args R) (pid : Int) (i : Nat) :
    PackedCausalEnd.store_lse_ptr a pid i =
      (Forward.packed a none (some a.right) true (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem PackedWindow.storeOut_eq (a : PackedWindow.Args R) (pid : Int) (i c : Nat) :
    PackedWindow.store_out_ptr a pid i c =
      (Forward.packed a (some a.left) (some a.right) false
        (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.2.2.1 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedWindow.storeLse_eq (a : PackedWindow.Args R) (pid : Int) (i : Nat) :
    PackedWindow.store_lse_ptr a pid i =
      (Forward.packed a (some a.left) (some a.right) false
        (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.2.2.1 a pid).2).2 i

/-- The text's stores of output. -/
theorem PackedWindowEnd.storeOut_eq (a : PackedWindowEnd.Args R) (pid : Int) (i c : Nat) :
    PackedWindowEnd.store_out_ptr a pid i c =
      (Forward.packed a (some a.left) (some a.right) true
        (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.2.2.2 a pid).2).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedWindowEnd.storeLse_eq (a : PackedWindowEnd.Args R) (pid : Int) (i : Nat) :
    PackedWindowEnd.store_lse_ptr a pid i =
      (Forward.packed a (some a.left) (some a.right) true
        (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (stores_eq.2.2.2.2.2.2.2.2.2.2.2 a pid).2).2 i

end Attention.Kernel
