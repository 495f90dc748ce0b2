module

public import Attention.Vectors.SampledGradientSound
public import Attention.WrongVariants.SampledCase

public section

/-! # Wrong variants of what the program of gradients past the tiles checks -/

namespace Attention.WrongVariants

open Spec Model Vectors

/-- The hypothesis of `sampled-gradient-vectors-sound` about the numbers that are given, of any
check of a case: a scale, a softcap, slopes, sinks and a probability that it lets through lie in
their intervals. -/
abbrev SoundGiven (check : SampledGradientCase → Except String Unit) : Prop :=
  ∀ c : SampledGradientCase, check c = .ok () →
    ∀ x ∈ c.without.scale.toList ++ c.without.softcap.toList
      ++ (c.without.alibi.map (·.2)).getD [] ++ c.without.sinks.getD []
      ++ c.dropout.toList.map (·.1), (ofRat x).Contains x

/-- Positive control: the program's. -/
theorem check_soundGiven : SoundGiven SampledGradientCase.check := fun _ h =>
  SampledGradientCase.given_contained isNumber_rat h

/-- The check of the rules alone. -/
@[expose] def checkRules (c : SampledGradientCase) : Except String Unit := do
  let _ ← ([c.q, c.k, c.v, c.dO, c.dLse] ++ c.bias.toList).mapM Rule.check

/-- The check without that of the probability. -/
@[expose] def checkScores (c : SampledGradientCase) : Except String Unit := do
  let f := c.without
  let _ ← ([c.q, c.k, c.v, c.dO, c.dLse] ++ c.bias.toList).mapM Rule.check
  checkExact (f.scale.toList ++ f.softcap.toList ++ (f.alibi.map (·.2)).getD []
    ++ f.sinks.getD [])

/-- A case of nothing, with a scale and dropout. -/
@[expose] def thirds (scale : Option Rat) (dropout : Option (Rat × Nat)) : SampledGradientCase :=
  let rule : Rule := { name := "", bound := 0 }
  { without := { reason := "", scale, num_kv_heads := 0, group := 0, q_len := 0, kv_len := 0
                 head_dim := 0, value_dim := 0, q := [], k := [], v := [], dO := [], dLse := [] }
    dropout, q := rule, k := rule, v := rule, dO := rule, dLse := rule, rows := [], keys := [] }

/-- A scale of 1 / 3, whose interval would be that of 1 / 2. -/
theorem checkRules_refuted : ¬ SoundGiven checkRules := fun h =>
  absurd (h (thirds (some (1 / 3)) none) (by rfl) (1 / 3) (by decide +kernel)).1
    (by decide +kernel)

/-- A probability of 1 / 3. -/
theorem checkScores_refuted : ¬ SoundGiven checkScores := fun h =>
  absurd (h (thirds none (some (1 / 3, 0))) (by rfl) (1 / 3) (by decide +kernel)).1
    (by decide +kernel)

end Attention.WrongVariants
