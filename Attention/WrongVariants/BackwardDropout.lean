module

public import Attention.Model.Exact
public import Attention.Proof.Backward.Dropout
public import Attention.Spec.Masks
public import Attention.Spec.Slopes

public section

/-! # Wrong variants of the backward pass with dropout -/

namespace Attention.WrongVariants

open Spec

/-- One query. -/
@[expose] def query : Matrix Int 1 1 := #v[#v[0]]

/-- Two keys with score 0. -/
@[expose] def equalKeys : Matrix Int 2 1 := #v[#v[0], #v[0]]

/-- Their values. -/
@[expose] def twoValues : Matrix Rat 2 1 := #v[#v[1], #v[3]]

/-- The gradient by the output. -/
@[expose] def byOutput : Matrix Rat 1 1 := #v[#v[1]]

/-- The factors with p = 1/2. -/
@[expose] def halfDropped (keep : Mask 1 2) : WeightFactor Rat 1 2 := .dropout (1 / 2) keep

/-- The weights. -/
@[expose] def weights : Matrix Rat 1 2 :=
  probabilities (1 : Int) Mask.full.toScoreMod query equalKeys

/-- D of an output, without a gradient by the log-sum-exp. -/
@[expose] def deltaOf (O : Matrix Rat 1 1) : Vec Rat 1 := rowDelta O byOutput #v[0]

/-- The backward pass with given factors. -/
@[expose] def backwardWith (Z : WeightFactor Rat 1 2) : Gradients Rat 1 2 1 1 :=
  vjpDropout (1 : Int) Mask.full.toScoreMod ScoreSlope.one query equalKeys twoValues Z Int.cast
    byOutput #v[0]

/-- The claim of `vjpDropout_formulas` of dV and of the bias, for these inputs. -/
abbrev HasFormulas (back : Mask 1 2 → Gradients Rat 1 2 1 1) : Prop := ∀ keep : Mask 1 2,
  let D := deltaOf (attentionDropout (1 : Int) Mask.full.toScoreMod query equalKeys twoValues
    (halfDropped keep))
  (∀ (i : Fin 1) (j : Fin 2), (back keep).dBias[i][j]
      = weights[i][j] * (halfDropped keep i j * Vec.dot byOutput[i] twoValues[j] - D[i]))
    ∧ ∀ (j : Fin 2) (c : Fin 1), (back keep).dV[j][c]
      = sumOver (fun i : Fin 1 => weights[i][j] * halfDropped keep i j * byOutput[i][c])
          (List.finRange 1)

/-- Positive control: the mask of the forward pass. -/
theorem replayed_hasFormulas : HasFormulas fun keep => backwardWith (halfDropped keep) :=
  fun keep =>
  have h := Proof.vjpDropout_formulas (1 : Int) Mask.full.toScoreMod ScoreSlope.one query equalKeys
    twoValues (halfDropped keep) Int.cast byOutput #v[0]
  ⟨h.1, h.2.1⟩

/-- The first key is kept. -/
@[expose] def keepFirst : Mask 1 2 := fun _ j => decide (j.val = 0)

/-- Another mask than that of the forward pass. -/
theorem otherMask_refuted : ¬ HasFormulas fun keep =>
    backwardWith (halfDropped fun i j => !keep i j) :=
  fun h => absurd ((h keepFirst).2 0 0) (by decide +kernel)

/-- Nothing is dropped in the backward pass. -/
theorem notDropped_refuted : ¬ HasFormulas fun _ => backwardWith fun _ _ => 1 :=
  fun h => absurd ((h keepFirst).2 0 0) (by decide +kernel)

/-- D from the output without dropout. -/
theorem deltaNotDropped_refuted : ¬ HasFormulas fun keep =>
    let D := deltaOf (attention (1 : Int) Mask.full.toScoreMod query equalKeys twoValues)
    { backwardWith (halfDropped keep) with
      dBias := Vec.ofFn fun i => Vec.ofFn fun j =>
        weights[i][j] * (halfDropped keep i j * Vec.dot byOutput[i] twoValues[j] - D[i]) } :=
  fun h => absurd ((h keepFirst).1 0 0) (by decide +kernel)

/-- dP without the factors: the values as they are, not as the query sees them. -/
theorem productNotDropped_refuted : ¬ HasFormulas fun keep =>
    let D := deltaOf (attentionDropout (1 : Int) Mask.full.toScoreMod query equalKeys twoValues
      (halfDropped keep))
    { backwardWith (halfDropped keep) with
      dBias := Vec.ofFn fun i => Vec.ofFn fun j =>
        scoreGradient weights[i][j] byOutput[i] twoValues[j] D[i] } :=
  fun h => absurd ((h keepFirst).1 0 1) (by decide +kernel)

end Attention.WrongVariants
