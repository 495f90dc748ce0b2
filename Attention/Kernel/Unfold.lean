module

public meta import Lean.Elab.Tactic.ElabTerm

public section

/-! # Equations that hold by unfolding, which Lean's kernel alone is asked to do

`rfl` would have the elaborator unfold both sides too, by another strategy, which for texts of
hundreds of definitions takes a hundred times as long. -/

namespace Attention.Kernel

open Lean Elab.Tactic Meta

/-- Proves an equation whose sides unfold to the same; an error where they do not. -/
elab "unfolds" : tactic => liftMetaTactic fun goal => goal.withContext do
  let some (_, left, right) := (← goal.getType').eq? | throwTacticEx `unfolds goal "no equation"
  unless ← ofExceptKernelException (Kernel.isDefEq (← getEnv) (← getLCtx) left right) do
    throwTacticEx `unfolds goal "its sides do not unfold to the same"
  goal.assign (← mkEqRefl left)
  return []

/-- The same, without an error of its own: whether the sides unfold to the same is asked once, when
the proof is added. -/
elab "unfolds_once" : tactic => liftMetaTactic fun goal => goal.withContext do
  let some (_, left, _) := (← goal.getType').eq? | throwTacticEx `unfolds_once goal "no equation"
  goal.assign (← mkEqRefl left)
  return []

end Attention.Kernel
