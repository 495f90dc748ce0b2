module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
import Attention.Kernel.Unfolding
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
public import Attention.Kernel.Problems

public section

/-! # The texts of the forward kernel compute what `Problem` says -/

namespace Attention.Kernel

universe u

variable {R : Type u} [OrderedField R] [Exp R R]

/-- The text's stores of output. -/
theorem Full.storeOut_eq (a : Full.Args R) (pid : Int) (i c : Nat) :
    Full.store_out_ptr a pid i c =
      (Full.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Full.storeLse_eq (a : Full.Args R) (pid : Int) (i : Nat) :
    Full.store_lse_ptr a pid i =
      (Full.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem Causal.storeOut_eq (a : Causal.Args R) (pid : Int) (i c : Nat) :
    Causal.store_out_ptr a pid i c =
      (Causal.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Causal.storeLse_eq (a : Causal.Args R) (pid : Int) (i : Nat) :
    Causal.store_lse_ptr a pid i =
      (Causal.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem Left.storeOut_eq (a : Left.Args R) (pid : Int) (i c : Nat) :
    Left.store_out_ptr a pid i c =
      (Left.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Left.storeLse_eq (a : Left.Args R) (pid : Int) (i : Nat) :
    Left.store_lse_ptr a pid i =
      (Left.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem Window.storeOut_eq (a : Window.Args R) (pid : Int) (i c : Nat) :
    Window.store_out_ptr a pid i c =
      (Window.problem a).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem Window.storeLse_eq (a : Window.Args R) (pid : Int) (i : Nat) :
    Window.store_lse_ptr a pid i =
      (Window.problem a).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem PaddedFull.storeOut_eq (a : PaddedFull.Args R) (pid : Int) (i c : Nat) :
    PaddedFull.store_out_ptr a pid i c =
      (Forward.dense a none none false).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PaddedFull.storeLse_eq (a : PaddedFull.Args R) (pid : Int) (i : Nat) :
    PaddedFull.store_lse_ptr a pid i =
      (Forward.dense a none none false).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem PaddedCausal.storeOut_eq (a : PaddedCausal.Args R) (pid : Int) (i c : Nat) :
    PaddedCausal.store_out_ptr a pid i c =
      (Forward.dense a none (some a.right) false).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PaddedCausal.storeLse_eq (a : PaddedCausal.Args R) (pid : Int) (i : Nat) :
    PaddedCausal.store_lse_ptr a pid i =
      (Forward.dense a none (some a.right) false).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem PaddedWindow.storeOut_eq (a : PaddedWindow.Args R) (pid : Int) (i c : Nat) :
    PaddedWindow.store_out_ptr a pid i c =
      (Forward.dense a (some a.left) (some a.right) false).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PaddedWindow.storeLse_eq (a : PaddedWindow.Args R) (pid : Int) (i : Nat) :
    PaddedWindow.store_lse_ptr a pid i =
      (Forward.dense a (some a.left) (some a.right) false).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem PackedFull.storeOut_eq (a : PackedFull.Args R) (atEnd : Bool) (pid : Int) (i c : Nat) :
    PackedFull.store_out_ptr a pid i c =
      (Forward.packed a none none atEnd (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.1 a atEnd pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedFull.storeLse_eq (a : PackedFull.Args R) (atEnd : Bool) (pid : Int) (i : Nat) :
    PackedFull.store_lse_ptr a pid i =
      (Forward.packed a none none atEnd (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.1 a atEnd pid).2.1).2 i

/-- The text's stores of output. -/
theorem PackedCausal.storeOut_eq (a : PackedCausal.Args R) (pid : Int) (i c : Nat) :
    PackedCausal.store_out_ptr a pid i c =
      (Forward.packed a none (some a.right) false (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedCausal.storeLse_eq (a : PackedCausal.Args R) (pid : Int) (i : Nat) :
    PackedCausal.store_lse_ptr a pid i =
      (Forward.packed a none (some a.right) false (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem PackedCausalEnd.storeOut_eq (a : PackedCausalEnd.Args R) (pid : Int) (i c : Nat) :
    PackedCausalEnd.store_out_ptr a pid i c =
      (Forward.packed a none (some a.right) true (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedCausalEnd.storeLse_eq (a : PackedCausalEnd.Args R) (pid : Int) (i : Nat) :
    PackedCausalEnd.store_lse_ptr a pid i =
      (Forward.packed a none (some a.right) true (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem PackedWindow.storeOut_eq (a : PackedWindow.Args R) (pid : Int) (i c : Nat) :
    PackedWindow.store_out_ptr a pid i c =
      (Forward.packed a (some a.left) (some a.right) false
        (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.2.2.1 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedWindow.storeLse_eq (a : PackedWindow.Args R) (pid : Int) (i : Nat) :
    PackedWindow.store_lse_ptr a pid i =
      (Forward.packed a (some a.left) (some a.right) false
        (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.2.2.1 a pid).2.1).2 i

/-- The text's stores of output. -/
theorem PackedWindowEnd.storeOut_eq (a : PackedWindowEnd.Args R) (pid : Int) (i c : Nat) :
    PackedWindowEnd.store_out_ptr a pid i c =
      (Forward.packed a (some a.left) (some a.right) true
        (Forward.sequence a pid)).storeOut pid i c :=
  congrFun (congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.2.2.2 a pid).2.1).1 i) c

/-- The text's stores of log-sum-exps. -/
theorem PackedWindowEnd.storeLse_eq (a : PackedWindowEnd.Args R) (pid : Int) (i : Nat) :
    PackedWindowEnd.store_lse_ptr a pid i =
      (Forward.packed a (some a.left) (some a.right) true
        (Forward.sequence a pid)).storeLse pid i :=
  congrFun (Prod.mk.inj (texts_eq.2.2.2.2.2.2.2.2.2.2.2 a pid).2.1).2 i

end Attention.Kernel
