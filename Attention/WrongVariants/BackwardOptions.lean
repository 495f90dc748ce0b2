module

public import Attention.Spec.BackwardOptions
public import Attention.WrongVariants.Backward

public section

/-! # Wrong variants of the gradients by slopes and sinks

As in `WrongVariants.Backward`: the claims of `slopeGradient_adjoint` and `sinkVjp_adjoint` where
they can be computed, over rationals with 2 ^ ⌊x⌋. -/

namespace Attention.WrongVariants

open Spec

attribute [local instance] floorExp

/-! ## Slopes -/

/-- The claim that a function of dS is the gradient by the slope of linear biases. -/
abbrev IsSlopeGradient (gradient : Matrix Rat 2 2 → Rat) : Prop :=
  ∀ (slope δ : Rat) (Q K V dO : Matrix Rat 2 1),
    Matrix.inner dO (jvp 1 (.alibi .topLeft ⟨slope, δ⟩) Q (column 0 0) K (column 0 0) V
        (column 0 0))
      = gradient (vjp 1 (.alibi .topLeft slope) ScoreSlope.one Q K V (fun x => x) dO
          Vec.zero).dBias * δ

/-- dS where slope, queries and keys are 0, so that every weight is 1 / 2. -/
@[expose] def dSOfSlope : Matrix Rat 2 2 :=
  (vjp 1 (.alibi .topLeft 0) ScoreSlope.one (column 0 0) (column 0 0) (column 1 3) (fun x => x)
    (column 1 3) Vec.zero).dBias

/-- The right gradient there is 1. -/
theorem IsSlopeGradient.at {gradient : Matrix Rat 2 2 → Rat} (h : IsSlopeGradient gradient) :
    gradient dSOfSlope * 1 = 1 :=
  (h 0 1 (column 0 0) (column 0 0) (column 1 3) (column 1 3)).symm.trans (by decide +kernel)

/-- Positive control: the Spec's gradient satisfies the equation where the counterexamples
stand. -/
theorem slopeGradient_holds : slopeGradient .topLeft dSOfSlope * 1 = 1 := by decide +kernel

/-- The sum of dS times a number for each pair. -/
@[expose] def weighted (number : Int → Int → Rat) (dS : Matrix Rat 2 2) : Rat :=
  sumOver (fun i : Fin 2 =>
    sumOver (fun j : Fin 2 => dS[i][j] * number i.val j.val) (List.finRange 2)) (List.finRange 2)

/-- The other sign. -/
theorem slopePositive_refuted : ¬ IsSlopeGradient (weighted fun i j => (i - j).natAbs) :=
  fun h => absurd h.at (by decide +kernel)

/-- A distance with its sign. -/
theorem slopeSigned_refuted : ¬ IsSlopeGradient (weighted fun i j => (j - i : Int)) :=
  fun h => absurd h.at (by decide +kernel)

/-- Only keys before the query count. -/
theorem slopeOneSided_refuted : ¬ IsSlopeGradient (weighted fun i j => -((i - j).toNat : Int)) :=
  fun h => absurd h.at (by decide +kernel)

/-! ## Sinks -/

/-- ⟨dO, rates of the output⟩ + ⟨dLse, rates of the log-sum-exp⟩ where the sink changes alone. -/
@[expose] def sinkRate (sink δ : Rat) (Q K V dO : Matrix Rat 2 1) (dLse : Vec Rat 2) : Rat :=
  let still (A : Matrix Rat 2 1) := A.dual (column 0 0)
  let full : ScoreMod (Dual Rat) 2 2 := fun _ _ s => some s
  Matrix.inner dO (Matrix.tangent (attentionSink (Dual.const 1) full (⟨sink, δ⟩ : Dual Rat)
      (still Q) (still K) (still V)))
    + sumOver (fun i : Fin 2 =>
        let l : Dual Rat := denominator (some ⟨sink, δ⟩ ::
          (List.finRange 2).map (score (Dual.const 1) full (still Q) (still K) i))
        dLse[i] * (l.der / l.val)) (List.finRange 2)

/-- The claim that a function of a query's weight of the sink, D and the gradient by its
log-sum-exp, summed over the queries, is the gradient by the sink. -/
abbrev IsSinkGradient (gradient : Rat → Rat → Rat → Rat) : Prop :=
  ∀ (sink δ : Rat) (Q K V dO : Matrix Rat 2 1) (dLse : Vec Rat 2),
    sumOver (fun i : Fin 2 =>
        let l : Rat := denominator (some sink ::
          (List.finRange 2).map (score 1 (fun _ _ s => some s) Q K i))
        let O := attentionSink 1 (fun _ _ s => some s) sink Q K V
        gradient (exp sink / l) (Vec.dot dO[i] O[i]) dLse[i]) (List.finRange 2) * δ
      = sinkRate sink δ Q K V dO dLse

/-- Where sink, queries and keys are 0, each weight is 1 / 3 and the outputs are 2, the claim comes
to this. -/
theorem IsSinkGradient.at {gradient : Rat → Rat → Rat → Rat} (h : IsSinkGradient gradient) :
    (gradient (1 / 3) 2 3 + (gradient (1 / 3) 6 0 + 0)) * 1 = -5 / 3 :=
  Eq.trans (by
    have h₁ : (exp (0 : Rat) / (denominator (some 0 :: (List.finRange 2).map
        (score 1 (fun _ _ s => some s) (column 0 0) (column 0 0) (0 : Fin 2))) : Rat)) = 1 / 3 := by
      decide +kernel
    have h₂ : (exp (0 : Rat) / (denominator (some 0 :: (List.finRange 2).map
        (score 1 (fun _ _ s => some s) (column 0 0) (column 0 0) (1 : Fin 2))) : Rat)) = 1 / 3 := by
      decide +kernel
    have h₃ : Vec.dot (column 1 3)[(0 : Fin 2)] (attentionSink (1 : Rat) (fun _ _ s => some s) 0
        (column 0 0) (column 0 0) (column 2 4))[(0 : Fin 2)] = 2 := by decide +kernel
    have h₄ : Vec.dot (column 1 3)[(1 : Fin 2)] (attentionSink (1 : Rat) (fun _ _ s => some s) 0
        (column 0 0) (column 0 0) (column 2 4))[(1 : Fin 2)] = 6 := by decide +kernel
    rw [show List.finRange 2 = [0, 1] from rfl] at *
    simp only [sumOver, h₁, h₂, h₃, h₄]
    rfl) ((h 0 1 (column 0 0) (column 0 0) (column 2 4) (column 1 3) #v[3, 0]).trans
      (by decide +kernel))

/-- Positive control: minus the weight, times D less the gradient by the log-sum-exp. -/
theorem sinkGradient_holds :
    let gradient : Rat → Rat → Rat → Rat := fun p D e => -(p * (D - e))
    (gradient (1 / 3) 2 3 + (gradient (1 / 3) 6 0 + 0)) * 1 = -5 / 3 := by decide +kernel

/-- The gradients of the Spec's backward pass there. -/
@[expose] def specSink : Rat := (sinkVjp (num_kv_heads := 1) (group := 1) (1 : Rat)
  (fun _ _ _ s => some s) (fun _ => ScoreSlope.one) #v[0] #v[column 0 0] #v[column 0 0]
  #v[column 2 4] (fun x => x) #v[column 1 3] #v[#v[3, 0]]).dSinks[0]

/-- Positive control: the Spec's backward pass gives the same. -/
theorem sinkVjp_holds : specSink = -5 / 3 := by
  decide +kernel

/-- The other sign. -/
theorem sinkPositive_refuted : ¬ IsSinkGradient fun p D e => p * (D - e) :=
  fun h => absurd h.at (by decide +kernel)

/-- The gradient by the log-sum-exp is left out. -/
theorem sinkLseLeftOut_refuted : ¬ IsSinkGradient fun p D _ => -(p * D) :=
  fun h => absurd h.at (by decide +kernel)

/-- The sink has a weight of its own, not that in the softmax. -/
theorem sinkUnweighted_refuted : ¬ IsSinkGradient fun _ D e => -(D - e) :=
  fun h => absurd h.at (by decide +kernel)

end Attention.WrongVariants
