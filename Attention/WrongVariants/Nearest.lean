module

public import Attention.Claims.Memorise.Basic

public section

/-! # Wrong variants of attention by distance -/

namespace Attention.WrongVariants

open Spec Claims

/-- The statement of `attention_memorises` about inputs of one token, for other queries and keys
than those of `pointQuery` and `pointKey`. -/
@[expose] def Memorises (query key : Vec Int 1 → Vec Int 2) : Prop :=
  ∀ (count t_vocab s_vocab : Nat) (β : Int) (inputs : Vector (Vector (Fin s_vocab) 1) count)
    (targets : Vector (Fin t_vocab) count), 0 ≤ β →
    (∀ i j : Fin count, inputs[i] = inputs[j] → i = j) → 2 * (count : Rat) < exp β →
    ∀ i : Fin count,
      argmax (attention β Mask.full.toScoreMod
          (Vec.map query (#v[tokenPoint inputs[i]] : Matrix Int 1 1))
          (Vec.map key (Vec.map tokenPoint inputs)) (Vec.map oneHot targets)
          : Matrix Rat 1 t_vocab)[0]
        = some targets[i]

/-- The queries and keys that it is proved of do. -/
theorem memorises_points : Memorises pointQuery pointKey :=
  fun count t_vocab s_vocab β inputs targets hβ different large i => by
    have h := attention_memorises (R := Rat) hβ (Vec.map (fun y => (#v[y] : Vector _ 1)) targets)
      different large i 0
    simpa [Vec.map, Function.comp_def] using h

/-- The inputs 0, 1 and 2. -/
@[expose] def threeInputs : Vector (Vector (Fin 3) 1) 3 := #v[#v[0], #v[1], #v[2]]

private theorem different (i j : Fin 3) (e : threeInputs[i] = threeInputs[j]) : i = j := by
  have h : ∀ i j : Fin 3, threeInputs[i][0] = threeInputs[j][0] → i = j := by decide +kernel
  exact h i j (congrArg (fun v : Vector (Fin 3) 1 => v[0]) e)

/-- Keys without −|c|²: (0, c). Inputs 0, 1, 2: the score of 2 is largest for 1. -/
theorem memorises_withoutNorm_refuted : ¬ Memorises pointQuery fun c => #v[0, c[0]] :=
  fun h => absurd (h 3 3 3 3 threeInputs #v[0, 1, 2] (by decide +kernel) different
    (by decide +kernel) 1) (by decide +kernel)

/-- Queries without the factor 2: (1, x). The nearest input to x / 2 is found. -/
theorem memorises_withoutFactor_refuted : ¬ Memorises (fun x => #v[1, x[0]]) pointKey :=
  fun h => absurd (h 3 3 3 3 threeInputs #v[0, 1, 2] (by decide +kernel) different
    (by decide +kernel) 2) (by decide +kernel)

/-- Keys with +|c|²: the farthest input is found. -/
theorem memorises_plusNorm_refuted :
    ¬ Memorises pointQuery fun c => #v[c[0] * c[0], -c[0]] :=
  fun h => absurd (h 3 3 3 3 threeInputs #v[0, 1, 2] (by decide +kernel) different
    (by decide +kernel) 0) (by decide +kernel)

end Attention.WrongVariants
