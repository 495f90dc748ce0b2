module

public import Attention.Model.Exact
public import Attention.Proof.ScoreMods
public import Attention.Proof.Sink
public import Attention.Proof.TileBounds

public section

/-! # Wrong twins of masks -/

namespace Attention.Twins

open Spec

example : (Lean.Grind.Ring.intCast : IntCast Int) = inferInstanceAs (IntCast Int) := rfl
example : (Lean.Grind.Ring.intCast : IntCast Rat) = inferInstanceAs (IntCast Rat) := rfl

end Attention.Twins
