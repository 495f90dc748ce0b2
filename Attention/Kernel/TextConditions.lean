module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
import Attention.Kernel.Unfolding
public import Attention.Kernel.Conditions
public import Attention.Kernel.PackedLaunched
public import Attention.Kernel.PackedSized

public section

/-! # What the texts' operations have to keep to is what `Problem` lists

`Attention.Kernel.Unfolding` has the proof. -/

namespace Attention.Kernel

universe u

variable {R : Type u} [OrderedField R] [Exp R R]

/-- The text lists what `Problem` does. -/
theorem Full.conditions_eq (a : Full.Args R) (pid : Int) :
    (Full.Accesses a pid, Full.Exponents a pid, Full.NoOverflow a pid) =
      (Full.problem a).conditions pid :=
  (texts_eq.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem Causal.conditions_eq (a : Causal.Args R) (pid : Int) :
    (Causal.Accesses a pid, Causal.Exponents a pid, Causal.NoOverflow a pid) =
      (Causal.problem a).conditions pid :=
  (texts_eq.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem Left.conditions_eq (a : Left.Args R) (pid : Int) :
    (Left.Accesses a pid, Left.Exponents a pid, Left.NoOverflow a pid) =
      (Left.problem a).conditions pid :=
  (texts_eq.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem Window.conditions_eq (a : Window.Args R) (pid : Int) :
    (Window.Accesses a pid, Window.Exponents a pid, Window.NoOverflow a pid) =
      (Window.problem a).conditions pid :=
  (texts_eq.2.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem PaddedFull.conditions_eq (a : PaddedFull.Args R) (pid : Int) :
    (PaddedFull.Accesses a pid, PaddedFull.Exponents a pid, PaddedFull.NoOverflow a pid) =
      (Forward.dense a none none false).conditions pid :=
  (texts_eq.2.2.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem PaddedCausal.conditions_eq (a : PaddedCausal.Args R) (pid : Int) :
    (PaddedCausal.Accesses a pid, PaddedCausal.Exponents a pid, PaddedCausal.NoOverflow a pid) =
      (Forward.dense a none (some a.right) false).conditions pid :=
  (texts_eq.2.2.2.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem PaddedWindow.conditions_eq (a : PaddedWindow.Args R) (pid : Int) :
    (PaddedWindow.Accesses a pid, PaddedWindow.Exponents a pid, PaddedWindow.NoOverflow a pid) =
      (Forward.dense a (some a.left) (some a.right) false).conditions pid :=
  (texts_eq.2.2.2.2.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem PackedFull.conditions_eq (a : PackedFull.Args R) (atEnd : Bool) (pid : Int) :
    (PackedFull.Accesses a pid, PackedFull.Exponents a pid, PackedFull.NoOverflow a pid) =
      (Forward.inSequence a none none atEnd pid).packedConditions pid
        (Forward.sequence a pid) a.stride_xb a.stride_yb
        [] :=
  (texts_eq.2.2.2.2.2.2.2.1 a atEnd pid).2.2

/-- The text lists what `Problem` does. -/
theorem PackedCausal.conditions_eq (a : PackedCausal.Args R) (pid : Int) :
    (PackedCausal.Accesses a pid, PackedCausal.Exponents a pid, PackedCausal.NoOverflow a pid) =
      (Forward.inSequence a none (some a.right) false pid).packedConditions pid
        (Forward.sequence a pid) a.stride_xb a.stride_yb
        [] :=
  (texts_eq.2.2.2.2.2.2.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem PackedCausalEnd.conditions_eq (a : PackedCausalEnd.Args R) (pid : Int) :
    (PackedCausalEnd.Accesses a pid, PackedCausalEnd.Exponents a pid,
      PackedCausalEnd.NoOverflow a pid) =
      (Forward.inSequence a none (some a.right) true pid).packedConditions pid
        (Forward.sequence a pid) a.stride_xb a.stride_yb
        ((Forward.inSequence a none (some a.right) true pid).shiftIntegers a.shift) :=
  (texts_eq.2.2.2.2.2.2.2.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem PackedWindow.conditions_eq (a : PackedWindow.Args R) (pid : Int) :
    (PackedWindow.Accesses a pid, PackedWindow.Exponents a pid, PackedWindow.NoOverflow a pid) =
      (Forward.inSequence a (some a.left) (some a.right) false pid).packedConditions pid
        (Forward.sequence a pid) a.stride_xb a.stride_yb
        [] :=
  (texts_eq.2.2.2.2.2.2.2.2.2.2.1 a pid).2.2

/-- The text lists what `Problem` does. -/
theorem PackedWindowEnd.conditions_eq (a : PackedWindowEnd.Args R) (pid : Int) :
    (PackedWindowEnd.Accesses a pid, PackedWindowEnd.Exponents a pid,
      PackedWindowEnd.NoOverflow a pid) =
      (Forward.inSequence a (some a.left) (some a.right) true pid).packedConditions pid
        (Forward.sequence a pid) a.stride_xb a.stride_yb
        ((Forward.inSequence a (some a.left) (some a.right) true pid).shiftIntegers a.shift) :=
  (texts_eq.2.2.2.2.2.2.2.2.2.2.2 a pid).2.2

/-! ## Several texts, of which the window says which one is launched -/

namespace Padded

/-- The condition on each access in the text that is launched for a window with these edges. -/
@[expose] def Accesses (a : Forward.Args R) (pid : Int) (P : Forward.Pointers (Access → Prop)) :
    Forward.Edges → Prop
  | .full => PaddedFull.Accesses a pid P
  | .causal _ => PaddedCausal.Accesses a pid P
  | .window _ _ => PaddedWindow.Accesses a pid P

/-- The condition on each argument of exp2 in this text. -/
@[expose] def Exponents (a : Forward.Args R) (pid : Int) (P : Flt R → Prop) : Forward.Edges → Prop
  | .full => PaddedFull.Exponents a pid P
  | .causal _ => PaddedCausal.Exponents a pid P
  | .window _ _ => PaddedWindow.Exponents a pid P

/-- No integer operation of this text overflows. -/
@[expose] def NoOverflow (a : Forward.Args R) (pid : Int) : Forward.Edges → Prop
  | .full => PaddedFull.NoOverflow a pid
  | .causal _ => PaddedCausal.NoOverflow a pid
  | .window _ _ => PaddedWindow.NoOverflow a pid

/-- The text, with its edges as they are given, lists what `Problem` does. -/
theorem conditions_eq {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a) (pid : Int) :
    ((fun P => Accesses a pid P e), (fun P => Exponents a pid P e), NoOverflow a pid e) =
      (problem a e).conditions pid := by
  cases e with
  | full => exact PaddedFull.conditions_eq a pid
  | causal r =>
    have he : a.right = r := he
    exact (PaddedCausal.conditions_eq a pid).trans (by rw [he]; rfl)
  | window l r =>
    obtain ⟨h₁, h₂⟩ : a.left = l ∧ a.right = r := he
    exact (PaddedWindow.conditions_eq a pid).trans (by rw [h₁, h₂]; rfl)

end Padded

namespace Packed

/-- The condition on each access in the text that is launched for this window. -/
@[expose] def Accesses (a : Forward.Args R) (pid : Int) (P : Forward.Pointers (Access → Prop)) :
    Spec.Alignment → Forward.Edges → Prop
  | _, .full => PackedFull.Accesses a pid P
  | .topLeft, .causal _ => PackedCausal.Accesses a pid P
  | .bottomRight, .causal _ => PackedCausalEnd.Accesses a pid P
  | .topLeft, .window _ _ => PackedWindow.Accesses a pid P
  | .bottomRight, .window _ _ => PackedWindowEnd.Accesses a pid P

/-- The condition on each argument of exp2 in this text. -/
@[expose] def Exponents (a : Forward.Args R) (pid : Int) (P : Flt R → Prop) :
    Spec.Alignment → Forward.Edges → Prop
  | _, .full => PackedFull.Exponents a pid P
  | .topLeft, .causal _ => PackedCausal.Exponents a pid P
  | .bottomRight, .causal _ => PackedCausalEnd.Exponents a pid P
  | .topLeft, .window _ _ => PackedWindow.Exponents a pid P
  | .bottomRight, .window _ _ => PackedWindowEnd.Exponents a pid P

/-- No integer operation of this text overflows. -/
@[expose] def NoOverflow (a : Forward.Args R) (pid : Int) : Spec.Alignment → Forward.Edges → Prop
  | _, .full => PackedFull.NoOverflow a pid
  | .topLeft, .causal _ => PackedCausal.NoOverflow a pid
  | .bottomRight, .causal _ => PackedCausalEnd.NoOverflow a pid
  | .topLeft, .window _ _ => PackedWindow.NoOverflow a pid
  | .bottomRight, .window _ _ => PackedWindowEnd.NoOverflow a pid

/-- The arguments of the text, for the sequence of program `pid`. -/
abbrev problem (a : Forward.Args R) (alignment : Spec.Alignment) (e : Forward.Edges) (pid : Int) :
    Problem R :=
  Forward.inSequence a (e.leftEdge.map Int.ofNat) (e.rightEdge.map Int.ofNat) (atEnd alignment) pid

/-- The shift as the text computes it. -/
@[expose] def shiftIntegers (a : Forward.Args R) (pid : Int) :
    Spec.Alignment → Forward.Edges → List Prop
  | _, .full => []
  | .topLeft, _ => []
  | .bottomRight, e => (problem a .bottomRight e pid).shiftIntegers a.shift

/-- The text, with its edges as they are given, lists what `Problem` does. -/
theorem conditions_eq {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (alignment : Spec.Alignment) (pid : Int) :
    ((fun P => Accesses a pid P alignment e), (fun P => Exponents a pid P alignment e),
      NoOverflow a pid alignment e) =
      (problem a alignment e pid).packedConditions pid (Forward.sequence a pid) a.stride_xb
        a.stride_yb (shiftIntegers a pid alignment e) := by
  cases e with
  | full => cases alignment <;> exact PackedFull.conditions_eq a _ pid
  | causal r =>
    have he : a.right = r := he
    cases alignment
    · exact (PackedCausal.conditions_eq a pid).trans (by rw [he]; rfl)
    · exact (PackedCausalEnd.conditions_eq a pid).trans (by rw [he]; rfl)
  | window l r =>
    obtain ⟨h₁, h₂⟩ : a.left = l ∧ a.right = r := he
    cases alignment
    · exact (PackedWindow.conditions_eq a pid).trans (by rw [h₁, h₂]; rfl)
    · exact (PackedWindowEnd.conditions_eq a pid).trans (by rw [h₁, h₂]; rfl)

end Packed

end Attention.Kernel
