module

public import Attention.Model.Exact
public import Attention.Proof.Flash.Schedule

public section

/-! # Wrong variants of tile schedules: tiles skipped, or taken without mask code, that must not be
-/

namespace Attention.WrongVariants

open Spec

/-- The tile loop over two queries and two keys, which make one pair of tiles, taken as `kind`
says. -/
@[expose] def flashOneTile (mask : Mask 2 2) (Q K : Matrix Int 2 1) (V : Matrix Rat 2 1)
    (kind : TileKind) : List (Vec Rat 1) :=
  flashSchedule 1 Mask.full.toScoreMod mask Q K V (fun _ => ⟨0, 1⟩) (fun _ _ => kind) 2 2

/-- The claim that a pair of tiles whose mask meets a condition may be taken otherwise than with
mask code. -/
abbrev MayBeTaken (otherwise : TileKind) (condition : Mask 2 2 → Prop) : Prop :=
  ∀ (mask : Mask 2 2) (Q K : Matrix Int 2 1) (V : Matrix Rat 2 1), condition mask →
    flashOneTile mask Q K V otherwise = flashOneTile mask Q K V .masked

/-- A mask that meets the condition, and with which another output comes out, refutes the claim. -/
theorem MayBeTaken.refute {otherwise condition} (mask : Mask 2 2) (hc : condition mask)
    (h : (flashOneTile mask #v[#v[0], #v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]] otherwise).map
        Vector.toList
      ≠ (flashOneTile mask #v[#v[0], #v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]] .masked).map
          Vector.toList) :
    ¬ MayBeTaken otherwise condition :=
  fun claim => h (congrArg (List.map Vector.toList) (claim mask _ _ _ hc))

/-! ## Skipped -/

/-- Positive control: every pair is masked. -/
theorem skip_allMasked : MayBeTaken .skip fun mask => ∀ i j, mask i j = false :=
  fun mask Q K V h => by
    refine Proof.flashSchedule_skip 1 Mask.full.toScoreMod Q K V fun t u => ?_
    simp only [Proof.taken]
    split
    · exact .inr ⟨rfl, rfl, fun i _ j _ => h i j⟩
    · exact .inl rfl

/-- One pair is masked. -/
theorem skip_onePairMasked_refuted : ¬ MayBeTaken .skip fun mask => ∃ i j, mask i j = false :=
  MayBeTaken.refute (fun i j => i != 0 || j != 1) ⟨0, 1, rfl⟩ (by decide +kernel)

/-- The first query sees nothing, and the others are not looked at. -/
theorem skip_firstRow_refuted : ¬ MayBeTaken .skip fun mask => ∀ j, mask 0 j = false :=
  MayBeTaken.refute (fun i _ => i == 1) (fun _ => rfl) (by decide +kernel)

/-- The last query does not see the first key: enough under a causal mask, not under every mask. -/
theorem skip_corner_refuted : ¬ MayBeTaken .skip fun mask => mask 1 0 = false :=
  MayBeTaken.refute (fun i j => i != 1 || j != 0) rfl (by decide +kernel)

/-! ## Without mask code -/

/-- Positive control: no pair is masked. -/
theorem unmasked_noneMasked : MayBeTaken .unmasked fun mask => ∀ i j, mask i j = true :=
  fun _ Q K V h => Proof.flashSchedule_unmasked 1 Mask.full.toScoreMod Q K V
    fun _ _ => .inr ⟨rfl, rfl, fun i _ j _ => h i j⟩

/-- One pair is visible. -/
theorem unmasked_onePairVisible_refuted :
    ¬ MayBeTaken .unmasked fun mask => ∃ i j, mask i j = true :=
  MayBeTaken.refute (fun i j => i == 0 && j == 1) ⟨0, 1, rfl⟩ (by decide +kernel)

/-- The last query sees everything, and the others are not looked at. -/
theorem unmasked_lastRow_refuted : ¬ MayBeTaken .unmasked fun mask => ∀ j, mask 1 j = true :=
  MayBeTaken.refute (Mask.causal .topLeft) (by decide) (by decide +kernel)

/-- The first query sees the last key: enough under a causal mask, not under every mask. -/
theorem unmasked_corner_refuted : ¬ MayBeTaken .unmasked fun mask => mask 0 1 = true :=
  MayBeTaken.refute (fun i j => i == 0 && j == 1) rfl (by decide +kernel)

end Attention.WrongVariants
