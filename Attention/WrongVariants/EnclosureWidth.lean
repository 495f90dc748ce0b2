module

public import Attention.Model.LogSumExp
public import Attention.Spec.BackwardOptions
public import Attention.Spec.Combine
public import Attention.Spec.ScoreMods
public import Attention.Spec.Sink

public section

/-! # Intervals that say something

The interval of all numbers contains everything, so an arithmetic that always gives it would satisfy
every theorem of enclosure. These intervals are narrow, and lie where the numbers do: at precision
96 they give 5 decimal places. -/

namespace Attention.WrongVariants

open Spec Model Interval

/-- The interval is bounded, and lies between n − 1 and n + 1 units of the fifth decimal place. -/
@[expose] def near {p : Nat} (n : Int) : Interval p → Bool
  | all => false
  | between lo hi =>
    decide (lo ≤ hi ∧ (n - 1) * 2 ^ p ≤ lo * 10 ^ 5 ∧ hi * 10 ^ 5 ≤ (n + 1) * 2 ^ p)

/-- An arithmetic that always gives `all` would fail. -/
theorem near_all (p : Nat) (n : Int) : near n (all : Interval p) = false := rfl

/-- e = 2.71828… -/
theorem near_exp : near 271828 (exp (1 : Interval 96) : Interval 96) = true := by
  decide +kernel

/-- One query, (1, 2). -/
@[expose] def widthQ : Matrix (Interval 96) 1 2 := #v[#v[1, 2]]

/-- Three keys, so that the scores are 1, 2 and 3 times the scale. -/
@[expose] def widthK : Matrix (Interval 96) 3 2 := #v[#v[1, 0], #v[0, 1], #v[1, 1]]

/-- Their values. -/
@[expose] def widthV : Matrix (Interval 96) 3 1 := #v[#v[1], #v[2], #v[4]]

/-- Attention with the scale 1 / √2. -/
theorem near_attention : near 301192 (attention (invSqrt 2) Mask.full.toScoreMod widthQ widthK
    widthV)[0][0] = true := by
  decide +kernel

/-- The same with scores softcapped to (−2, 2). -/
theorem near_softcap : near 275332 (attention (invSqrt 2) (.softcap 2) widthQ widthK
    widthV)[0][0] = true := by
  decide +kernel

/-- Attention with a sink of 1. -/
theorem near_sink : near 253597 (attentionSink (invSqrt 2) Mask.full.toScoreMod 1 widthQ widthK
    widthV)[0][0] = true := by
  decide +kernel

/-- The backward pass with softcap and a sink, for a gradient of 1 by the output: the bounds of a
component of dQ and of the gradient by the sink. -/
theorem near_gradient :
    let g := sinkVjp (num_kv_heads := 1) (group := 1) (invSqrt 2) (fun _ => .softcap 2)
      (fun _ => .softcap 2) #v[1] #v[widthQ] #v[widthK] #v[widthV] (fun x => x) #v[#v[#v[1]]]
      #v[#v[(0 : Interval 96)]]
    near 7239 g.inputs.dQ[0][0][0] = true ∧ near (-45831) g.dSinks[0] = true := by
  decide +kernel

/-- ln (1 + e), beside a masked score. -/
theorem near_logSumExp :
    (logSumExp [some (0 : Interval 96), none, some 1]).map (near 131326) = some true := by
  decide +kernel

/-- Two splits, with outputs 1 and 3 and log-sum-exps 0 and 1, against 1. -/
theorem near_combine : near 336788 (combine (some 1)
    [(⟨#v[1], some 0⟩ : Partial (Interval 96) (Interval 96) 1), ⟨#v[3], some 1⟩])[0] = true := by
  decide +kernel

end Attention.WrongVariants
