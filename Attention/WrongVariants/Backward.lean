module

public import Attention.Model.Exact
public import Attention.Spec.Backward
public import Attention.Spec.Masks

public section

/-! # Wrong variants of the backward pass

The claim of `vjp_adjoint_lse`, where it can be computed: over rationals with 2 ^ ⌊x⌋ for the
exponential, which on the integers of the counterexamples is 2 ^ x. The adjoint asks of an
exponential only that it is its own derivative, as dual numbers take it to be. -/

namespace Attention.WrongVariants

open Spec

/-- 2 ^ ⌊x⌋. -/
@[expose, reducible] def floorExp : Exp Rat Rat := ⟨fun x => 2 ^ x.floor⟩

attribute [local instance] floorExp

/-- A backward pass over two queries and two keys, scores doubled after scaling: what it makes of
scale, queries, keys, values and the gradients by the output and the log-sum-exp. -/
abbrev BackwardPass : Type := Rat → Matrix Rat 2 1 → Matrix Rat 2 1 → Matrix Rat 2 1 →
  Matrix Rat 2 1 → Vec Rat 2 → Gradients Rat 2 2 1 1

/-- Scores are doubled, a transformation with slope 2, and the second key is masked for the first
query. -/
@[expose] def doubled {S : Type} [Add S] : ScoreMod S 2 2 := fun i j s =>
  if i.val < j.val then none else some (s + s)

/-- The slope of it. -/
@[expose] def slopeTwo : ScoreSlope Rat Rat 2 2 := fun _ _ _ => 2

/-- The rates by which the counterexamples are told. -/
structure Rates where
  /-- By the queries. -/
  dQ : Matrix Rat 2 1
  /-- By the keys. -/
  dK : Matrix Rat 2 1
  /-- By the values. -/
  dV : Matrix Rat 2 1

/-- Scores over dual numbers as a row, for the log-sum-exp. -/
@[expose] def dualScores (scale : Rat) (Q K : Matrix Rat 2 1) (r : Rates) (i : Fin 2) :
    List (Option (Dual Rat)) :=
  (List.finRange 2).map (score (Dual.const scale) doubled (Q.dual r.dQ) (K.dual r.dK) i)

/-- ⟨dO, rates of the output⟩ + ⟨dLse, rates of the log-sum-exp⟩, these given as Σ w s' / Σ w. -/
@[expose] def lossRate (scale : Rat) (Q K V dO : Matrix Rat 2 1) (dLse : Vec Rat 2) (r : Rates) :
    Rat :=
  Matrix.inner dO (jvp scale doubled Q r.dQ K r.dK V r.dV)
    + sumOver (fun i : Fin 2 =>
        let l : Dual Rat := denominator (dualScores scale Q K r i)
        dLse[i] * (l.der / l.val)) (List.finRange 2)

/-- The same from gradients. -/
@[expose] def gradientRate (g : Gradients Rat 2 2 1 1) (r : Rates) : Rat :=
  Matrix.inner g.dQ r.dQ + Matrix.inner g.dK r.dK + Matrix.inner g.dV r.dV

/-- The claim that a backward pass is the adjoint of attention over dual numbers. -/
abbrev IsAdjoint (back : BackwardPass) : Prop :=
  ∀ (scale : Rat) (Q K V dO : Matrix Rat 2 1) (dLse : Vec Rat 2) (r : Rates),
    gradientRate (back scale Q K V dO dLse) r = lossRate scale Q K V dO dLse r

/-- A column of two numbers. -/
@[expose] def column (a b : Rat) : Matrix Rat 2 1 := #v[#v[a], #v[b]]

/-- Zero queries, keys 1 and 2; the queries change. -/
@[expose] def ofQueries (back : BackwardPass) : Rat :=
  gradientRate (back 2 (column 0 0) (column 1 2) (column 1 3) (column 1 2) #v[0, 1])
    ⟨column 1 1, column 0 0, column 0 0⟩

/-- Queries 1 and 2, zero keys; the first key changes. -/
@[expose] def ofKeys (back : BackwardPass) : Rat :=
  gradientRate (back 2 (column 1 2) (column 0 0) (column 1 3) (column 1 2) #v[0, 1])
    ⟨column 0 0, column 1 0, column 0 0⟩

/-- Zero queries and keys; the first value changes. -/
@[expose] def ofValues (back : BackwardPass) : Rat :=
  gradientRate (back 2 (column 0 0) (column 0 0) (column 1 3) (column 1 2) #v[0, 1])
    ⟨column 0 0, column 0 0, column 1 0⟩

/-- The right rate where the queries change is 10. -/
theorem IsAdjoint.ofQueries {back : BackwardPass} (h : IsAdjoint back) : ofQueries back = 10 :=
  (h ..).trans (by decide +kernel)

/-- The right rate where a key changes is −4. -/
theorem IsAdjoint.ofKeys {back : BackwardPass} (h : IsAdjoint back) : ofKeys back = -4 :=
  (h ..).trans (by decide +kernel)

/-- The right rate where a value changes is 2. -/
theorem IsAdjoint.ofValues {back : BackwardPass} (h : IsAdjoint back) : ofValues back = 2 :=
  (h ..).trans (by decide +kernel)

/-- The backward pass with another gradient by the scores, from P, dP, D and the gradient by the
log-sum-exp, another factor, another slope, and another weight of query i and key j in dV. -/
@[expose] def backWith (dScore : Rat → Rat → Rat → Rat → Rat) (factor : Rat → Rat) (slope : Rat)
    (weightV : Matrix Rat 2 2 → Fin 2 → Fin 2 → Rat) : BackwardPass :=
  fun scale Q K V dO dLse =>
    let P : Matrix Rat 2 2 := probabilities scale doubled Q K
    let O := attention scale doubled Q K V
    let dS : Matrix Rat 2 2 := Vec.ofFn fun i => Vec.ofFn fun j =>
      dScore P[i][j] (Vec.dot dO[i] V[j]) (Vec.dot dO[i] O[i]) dLse[i]
    { dQ := Vec.ofFn fun i => Vec.smul (factor scale * slope)
        (Vec.sumOver (fun j => Vec.smul dS[i][j] K[j]) (List.finRange 2))
      dK := Vec.ofFn fun j => Vec.smul (factor scale * slope)
        (Vec.sumOver (fun i => Vec.smul dS[i][j] Q[i]) (List.finRange 2))
      dV := Vec.ofFn fun j =>
        Vec.sumOver (fun i => Vec.smul (weightV P i j) dO[i]) (List.finRange 2)
      dBias := dS }

/-- dS = P ∘ (dP − D + dLse). -/
@[expose] def rightScore (p dP D dLse : Rat) : Rat := p * (dP - D + dLse)

/-- Weight of query i and key j in dV: P itself, summed over the queries. -/
@[expose] def rightWeight (P : Matrix Rat 2 2) (i j : Fin 2) : Rat := P[i][j]

/-- The Spec's backward pass. -/
@[expose] def rightBack : BackwardPass := fun scale Q K V dO dLse =>
  vjp scale doubled slopeTwo Q K V (fun x => x) dO dLse

/-- Positive control: the Spec's backward pass satisfies the equation wherever a counterexample
stands. -/
theorem rightBack_holds :
    ofQueries rightBack = 10 ∧ ofKeys rightBack = -4 ∧ ofValues rightBack = 2 := by
  decide +kernel

/-- Positive control: with the right parts `backWith` does so too. -/
theorem backWith_holds : ofQueries (backWith rightScore (fun s => s) 2 rightWeight) = 10
    ∧ ofKeys (backWith rightScore (fun s => s) 2 rightWeight) = -4
    ∧ ofValues (backWith rightScore (fun s => s) 2 rightWeight) = 2 := by
  decide +kernel

/-- D is missing. -/
theorem withoutD_refuted :
    ¬ IsAdjoint (backWith (fun p dP _ dLse => p * (dP + dLse)) (fun s => s) 2 rightWeight) :=
  fun h => absurd h.ofQueries (by decide +kernel)

/-- D is not weighted: subtracted after P has been multiplied. -/
theorem unweightedD_refuted :
    ¬ IsAdjoint (backWith (fun p dP D dLse => p * (dP + dLse) - D) (fun s => s) 2 rightWeight) :=
  fun h => absurd h.ofQueries (by decide +kernel)

/-- The gradient by the log-sum-exp is subtracted. -/
theorem lseSubtracted_refuted :
    ¬ IsAdjoint (backWith (fun p dP D dLse => p * (dP - D - dLse)) (fun s => s) 2 rightWeight) :=
  fun h => absurd h.ofQueries (by decide +kernel)

/-- The gradient by the log-sum-exp is left out. -/
theorem lseLeftOut_refuted :
    ¬ IsAdjoint (backWith (fun p dP D _ => p * (dP - D)) (fun s => s) 2 rightWeight) :=
  fun h => absurd h.ofKeys (by decide +kernel)

/-- The gradient through softmax taken as if it were done elementwise: p (1 − p) dP. -/
theorem elementwise_refuted :
    ¬ IsAdjoint (backWith (fun p dP _ dLse => p * (1 - p) * dP + p * dLse) (fun s => s) 2
      rightWeight) :=
  fun h => absurd h.ofQueries (by decide +kernel)

/-- The scale is taken twice. -/
theorem backwardScaleTwice_refuted :
    ¬ IsAdjoint (backWith rightScore (fun s => s * s) 2 rightWeight) :=
  fun h => absurd h.ofKeys (by decide +kernel)

/-- The scale is left out. -/
theorem backwardScaleLeftOut_refuted :
    ¬ IsAdjoint (backWith rightScore (fun _ => 1) 2 rightWeight) :=
  fun h => absurd h.ofQueries (by decide +kernel)

/-- The slope of the score transformation is left out. -/
theorem slopeLeftOut_refuted :
    ¬ IsAdjoint (backWith rightScore (fun s => s) 1 rightWeight) :=
  fun h => absurd h.ofQueries (by decide +kernel)

/-- dV = P dO, not Pᵀ dO. -/
theorem notTransposed_refuted :
    ¬ IsAdjoint (backWith rightScore (fun s => s) 2 fun P i j => P[j][i]) :=
  fun h => absurd h.ofValues (by decide +kernel)

end Attention.WrongVariants
