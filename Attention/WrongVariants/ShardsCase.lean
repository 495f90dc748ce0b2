module

public import Attention.Vectors.ShardsSound

public section

/-! # The program of the vectors in shards, with what its theorem does not let through -/

namespace Attention.WrongVariants

open Spec Vectors

/-- The ring of one device with one query and one key. -/
abbrev ringOfOne : RingNet 1 2 1 (List (KeyValue Int Rat 1 1)) (List (Online.State Int Rat 1)) :=
  ringStart (ringProgram 1) #v[#v[0]] #v[#v[1]] (fun _ => List.finRange 1)
    (fun _ => List.finRange 1) fun _ => []

/-- The rules of that ring. -/
abbrev rulesOfOne :
    RingRules 1 1 (List (KeyValue Int Rat 1 1)) (List (Online.State Int Rat 1)) :=
  shardsRules (fun _ _ => true) 1 .none (#v[#v[0]] : Matrix Int 1 1) (fun _ => List.finRange 1)
    fun _ => List.finRange 1

/-- What the program would give for that ring after so many events, without asking whether it has
come to its end, is attention. -/
abbrev GivesAttention (events : Nat) : Prop :=
  ((settle rulesOfOne events ringOfOne).outputs.map fun rows => rows.map (·.toList))
    = [[(attention (1 : Int) Mask.full.toScoreMod #v[#v[0]] #v[#v[0]]
        (#v[#v[1]] : Matrix Rat 1 1))[0].toList]]

/-- Positive control: after the one event that it has. -/
theorem ended_gives_attention : GivesAttention 1 := by decide +kernel

theorem notEnded_refuted : ¬ ∀ events, GivesAttention events :=
  fun h => absurd (h 0) (by decide +kernel)

end Attention.WrongVariants
