module

public import Attention.Vectors.AlgorithmSound

public section

/-! # The program of the exact vectors, with what its theorem does not let through -/

namespace Attention.WrongVariants

open Spec Vectors

/-- Tiles of no keys: the loop ends with 0. -/
theorem run_emptyTiles_refuted : ¬ ∀ (algorithm : Algorithm) (rows : List (Vec Rat 1)),
    algorithm.run (q_len := 1) (d := 1) 1 .none #v[#v[0]] #v[#v[0]] #v[#v[1]] = .ok rows →
    rows = (match algorithm.sink with
      | none => Spec.attention (1 : Int) Mask.full.toScoreMod #v[#v[0]] #v[#v[0]]
          (#v[#v[1]] : Matrix Rat 1 1)
      | some sink => Spec.attentionSink (1 : Int) Mask.full.toScoreMod sink #v[#v[0]] #v[#v[0]]
          (#v[#v[1]] : Matrix Rat 1 1)).toList :=
  fun h => absurd (congrArg (List.map Vector.toList) (h (.flash 1 0) _ rfl)) (by decide +kernel)

end Attention.WrongVariants
