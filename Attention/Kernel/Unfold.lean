module

public meta import Lean.Elab.Tactic.ElabTerm

public section

/-! # Equations that hold by unfolding, which Lean's kernel alone is asked to do

`rfl` would have the elaborator unfold both sides too, by another strategy, which for texts of
hundreds of definitions takes a hundred times as long. -/

namespace Attention.Kernel

open Lean Elab.Tactic Meta

/-- Proves an equation whose sides unfold to the same, as a lemma of its own. The kernel is given as
long for it as `maxHeartbeats` says: sides that are not the same may take for ever to unfold. -/
elab "unfolds" : tactic => liftMetaTactic fun goal => goal.withContext do
  let type ← instantiateMVars (← goal.getType)
  let some (_, left, _) := type.eq? | throwTacticEx `unfolds goal "no equation"
  goal.assign (← mkAuxTheorem type (← mkEqRefl left))
  return []

end Attention.Kernel
