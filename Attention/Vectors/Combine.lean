module

public import Attention.Spec.Combine
public import Attention.Vectors.Natural

public section

/-! # One case of outputs and log-sum-exps of splits, to be combined -/

namespace Attention.Vectors

open Spec Model

/-- The result of a split. -/
structure PartialResult where
  /-- The output of the split. -/
  output : List Rat
  /-- Its log-sum-exp; none: nothing was visible. -/
  logSumExp : Option Rat

/-- Results of splits, with the reason why they are worth testing. -/
structure CombineCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- Number of columns of the outputs. -/
  value_dim : Nat
  /-- The splits. -/
  parts : List PartialResult

/-- A split as the Spec takes it, over intervals. -/
@[expose] def PartialResult.toSpec (value_dim : Nat) (part : PartialResult) :
    Except String (Partial (Interval working) (Interval working) value_dim) := do
  let O ← toMatrix 1 value_dim ([part.output].map (·.map ofRat))
  return ⟨O[0], part.logSumExp.map ofRat⟩

/-- Runs the Spec over intervals. -/
@[expose] def CombineCase.run (c : CombineCase) : Except String EnclosedRow := do
  checkExact (c.parts.flatMap fun part => part.output ++ part.logSumExp.toList)
  let parts ← c.parts.mapM (PartialResult.toSpec c.value_dim)
  let lses := parts.map (·.lse)
  enclosedRow lses (combine (Interval.logSumExp lses) parts)

end Attention.Vectors
