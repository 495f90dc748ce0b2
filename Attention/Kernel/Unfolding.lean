module

meta import Lean.Elab.Tactic.ElabTerm
public import Attention.Kernel.Conditions
public import Attention.Kernel.Generated.PackedCausal
public import Attention.Kernel.Generated.PackedCausalEnd
public import Attention.Kernel.Generated.PackedFull
public import Attention.Kernel.Generated.PackedWindow
public import Attention.Kernel.Generated.PackedWindowEnd
public import Attention.Kernel.Generated.PaddedCausal
public import Attention.Kernel.Generated.PaddedFull
public import Attention.Kernel.Generated.PaddedWindow
public import Attention.Kernel.Problems

public section

/-! # The texts of the forward kernel agree with `Problem`

By unfolding; `Texts` and `TextConditions` say it of each text. The tactic uses Lean's own modules.
Modules that need this one, directly or not, import them too, without any use for them: the embedded
Lean would load them for each all the same, and never free them; those that a module imports
directly it keeps for the next one (`Bridge.Build`). -/

namespace Attention.Kernel

open Lean Elab.Tactic Meta

universe u

variable {R : Type u} [OrderedField R] [Exp R R]

/-- A text's lists: of its accesses, of the arguments of its exponentials, and of its integers. -/
abbrev Lists (R : Type u) :=
  (Forward.Pointers (Access → Prop) → Prop) × ((Flt R → Prop) → Prop) × Prop

/-- A text agrees with `Problem`: on where the tiles without mask code begin and end, and where all
tiles end; on its stores; on its lists. -/
abbrev Problem.IsText (p : Problem R) (pid : Int) (bounds : Int × Int × Int)
    (out : Nat → Nat → Store (Flt R)) (lse : Nat → Store (Flt R)) (lists : Lists R) : Prop :=
  bounds = (p.wholeFirst pid, p.wholeStop pid, p.stop pid) ∧
    (out, lse) = (p.storeOut pid, p.storeLse pid) ∧ lists = p.conditions pid

/-- The same of a text for packed sequences. shift: the integers that it computes for the shift. -/
abbrev Problem.IsPackedText (p : Problem R) (pid : Int) (a : Forward.Args R) (shift : List Prop)
    (bounds : Int × Int × Int) (out : Nat → Nat → Store (Flt R)) (lse : Nat → Store (Flt R))
    (lists : Lists R) : Prop :=
  bounds = (p.wholeFirst pid, p.wholeStop pid, p.stop pid) ∧
    (out, lse) = (p.storeOut pid, p.storeLse pid) ∧
    lists = p.packedConditions pid (Forward.sequence a pid) a.stride_xb a.stride_yb shift

/-- Of all texts in one proof, for which Lean compiles the tactic once. Each equation is a lemma of
its own, with heartbeats of its own: sides that are not the same may take for ever to unfold, and
all the memory that there is. The bounds of the loops come first: a text with others fails there. -/
theorem texts_eq :
    (∀ (a : Full.Args R) (pid : Int),
      (Full.problem a).IsText pid
      (Full.loop1.firstTile a pid, Full.loop1.stopTile a pid, Full.loop2.stopTile a pid)
      (Full.store_out_ptr a pid) (Full.store_lse_ptr a pid)
      (Full.Accesses a pid, Full.Exponents a pid, Full.NoOverflow a pid)) ∧
    (∀ (a : Causal.Args R) (pid : Int),
      (Causal.problem a).IsText pid
      (Causal.loop1.firstTile a pid, Causal.loop1.stopTile a pid, Causal.loop2.stopTile a pid)
      (Causal.store_out_ptr a pid) (Causal.store_lse_ptr a pid)
      (Causal.Accesses a pid, Causal.Exponents a pid, Causal.NoOverflow a pid)) ∧
    (∀ (a : Left.Args R) (pid : Int),
      (Left.problem a).IsText pid
      (Left.loop2.firstTile a pid, Left.loop2.stopTile a pid, Left.loop3.stopTile a pid)
      (Left.store_out_ptr a pid) (Left.store_lse_ptr a pid)
      (Left.Accesses a pid, Left.Exponents a pid, Left.NoOverflow a pid)) ∧
    (∀ (a : Window.Args R) (pid : Int),
      (Window.problem a).IsText pid
      (Window.loop2.firstTile a pid, Window.loop2.stopTile a pid, Window.loop3.stopTile a pid)
      (Window.store_out_ptr a pid) (Window.store_lse_ptr a pid)
      (Window.Accesses a pid, Window.Exponents a pid, Window.NoOverflow a pid)) ∧
    (∀ (a : PaddedFull.Args R) (pid : Int),
      (Forward.dense a none none false).IsText pid
      (PaddedFull.loop1.firstTile a pid, PaddedFull.loop1.stopTile a pid,
        PaddedFull.loop2.stopTile a pid)
      (PaddedFull.store_out_ptr a pid) (PaddedFull.store_lse_ptr a pid)
      (PaddedFull.Accesses a pid, PaddedFull.Exponents a pid, PaddedFull.NoOverflow a pid)) ∧
    (∀ (a : PaddedCausal.Args R) (pid : Int),
      (Forward.dense a none (some a.right) false).IsText pid
      (PaddedCausal.loop1.firstTile a pid, PaddedCausal.loop1.stopTile a pid,
        PaddedCausal.loop2.stopTile a pid)
      (PaddedCausal.store_out_ptr a pid) (PaddedCausal.store_lse_ptr a pid)
      (PaddedCausal.Accesses a pid, PaddedCausal.Exponents a pid, PaddedCausal.NoOverflow a pid)) ∧
    (∀ (a : PaddedWindow.Args R) (pid : Int),
      (Forward.dense a (some a.left) (some a.right) false).IsText pid
      (PaddedWindow.loop2.firstTile a pid, PaddedWindow.loop2.stopTile a pid,
        PaddedWindow.loop3.stopTile a pid)
      (PaddedWindow.store_out_ptr a pid) (PaddedWindow.store_lse_ptr a pid)
      (PaddedWindow.Accesses a pid, PaddedWindow.Exponents a pid, PaddedWindow.NoOverflow a pid)) ∧
    (∀ (a : PackedFull.Args R) (atEnd : Bool) (pid : Int),
      (Forward.inSequence a none none atEnd pid).IsPackedText pid a []
      (PackedFull.loop1.firstTile a pid, PackedFull.loop1.stopTile a pid,
        PackedFull.loop2.stopTile a pid)
      (PackedFull.store_out_ptr a pid) (PackedFull.store_lse_ptr a pid)
      (PackedFull.Accesses a pid, PackedFull.Exponents a pid, PackedFull.NoOverflow a pid)) ∧
    (∀ (a : PackedCausal.Args R) (pid : Int),
      (Forward.inSequence a none (some a.right) false pid).IsPackedText pid a []
      (PackedCausal.loop1.firstTile a pid, PackedCausal.loop1.stopTile a pid,
        PackedCausal.loop2.stopTile a pid)
      (PackedCausal.store_out_ptr a pid) (PackedCausal.store_lse_ptr a pid)
      (PackedCausal.Accesses a pid, PackedCausal.Exponents a pid, PackedCausal.NoOverflow a pid)) ∧
    (∀ (a : PackedCausalEnd.Args R) (pid : Int),
      (Forward.inSequence a none (some a.right) true pid).IsPackedText pid a
      ((Forward.inSequence a none (some a.right) true pid).shiftIntegers a.shift)
      (PackedCausalEnd.loop1.firstTile a pid, PackedCausalEnd.loop1.stopTile a pid,
        PackedCausalEnd.loop2.stopTile a pid)
      (PackedCausalEnd.store_out_ptr a pid) (PackedCausalEnd.store_lse_ptr a pid)
      (PackedCausalEnd.Accesses a pid, PackedCausalEnd.Exponents a pid,
        PackedCausalEnd.NoOverflow a pid)) ∧
    (∀ (a : PackedWindow.Args R) (pid : Int),
      (Forward.inSequence a (some a.left) (some a.right) false pid).IsPackedText pid a []
      (PackedWindow.loop2.firstTile a pid, PackedWindow.loop2.stopTile a pid,
        PackedWindow.loop3.stopTile a pid)
      (PackedWindow.store_out_ptr a pid) (PackedWindow.store_lse_ptr a pid)
      (PackedWindow.Accesses a pid, PackedWindow.Exponents a pid, PackedWindow.NoOverflow a pid)) ∧
    (∀ (a : PackedWindowEnd.Args R) (pid : Int),
      (Forward.inSequence a (some a.left) (some a.right) true pid).IsPackedText pid a
      ((Forward.inSequence a (some a.left) (some a.right) true pid).shiftIntegers a.shift)
      (PackedWindowEnd.loop2.firstTile a pid, PackedWindowEnd.loop2.stopTile a pid,
        PackedWindowEnd.loop3.stopTile a pid)
      (PackedWindowEnd.store_out_ptr a pid) (PackedWindowEnd.store_lse_ptr a pid)
      (PackedWindowEnd.Accesses a pid, PackedWindowEnd.Exponents a pid,
        PackedWindowEnd.NoOverflow a pid)) := by
  refine ⟨fun _ _ => ⟨?_, ?_, ?_⟩, fun _ _ => ⟨?_, ?_, ?_⟩, fun _ _ => ⟨?_, ?_, ?_⟩,
    fun _ _ => ⟨?_, ?_, ?_⟩, fun _ _ => ⟨?_, ?_, ?_⟩, fun _ _ => ⟨?_, ?_, ?_⟩,
    fun _ _ => ⟨?_, ?_, ?_⟩, fun _ _ _ => ⟨?_, ?_, ?_⟩, fun _ _ => ⟨?_, ?_, ?_⟩,
    fun _ _ => ⟨?_, ?_, ?_⟩, fun _ _ => ⟨?_, ?_, ?_⟩, fun _ _ => ⟨?_, ?_, ?_⟩⟩
  -- An equation that holds needs 630 at most.
  set_option maxHeartbeats 2000 in
  run_tac for goal in ← getGoals do goal.withContext do
    let type ← instantiateMVars (← goal.getType)
    let some (_, text, _) := type.eq? | unreachable!
    IO.setNumHeartbeats 0
    try goal.assign (← mkAuxTheorem type (← mkEqRefl text))
    catch error => throwError "not so by unfolding:{indentExpr type}\n{error.toMessageData}"

end Attention.Kernel
