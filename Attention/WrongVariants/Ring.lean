module

public import Attention.Spec.Masks
public import Attention.Model.Exact
public import Attention.Proof.Online.Ring

public section

/-! # Wrong variants of ring attention -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- A ring in which each device holds the query and the key of one row of three. -/
abbrev ThreeDevices := List (Device Int Rat 3 3 1)

/-- The events of the devices until the outputs are read. -/
abbrev Rounds :=
  (Q K : Matrix Int 3 1) → (V : Matrix Rat 3 1) → Mask 3 3 → ThreeDevices → ThreeDevices

/-- The outputs of a ring of three devices after other rounds. -/
@[expose] def ringWith (rounds : Rounds) (Q K : Matrix Int 3 1) (V : Matrix Rat 3 1)
    (mask : Mask 3 3) : List (List (Vec Rat 1)) :=
  let start := (List.finRange 3).map fun i => ⟨[i], [i], [empty]⟩
  (rounds Q K V mask start).map fun dev => dev.states.map finish

/-- The claim of `ring_eq_attention` for three devices, made of any rounds. -/
abbrev RingComputesAttention (rounds : Rounds) : Prop :=
  ∀ (Q K : Matrix Int 3 1) (V : Matrix Rat 3 1) (mask : Mask 3 3),
    ringWith rounds Q K V mask
      = (List.finRange 3).map fun i => [(attention 1 mask.toScoreMod Q K V)[i]]

/-- Queries and keys that are all different. -/
@[expose] def ringQ : Matrix Int 3 1 := #v[#v[0], #v[1], #v[2]]

/-- Values that are all different. -/
@[expose] def ringV : Matrix Rat 3 1 := #v[#v[1], #v[2], #v[4]]

/-- One output that is not attention refutes the claim. -/
theorem RingComputesAttention.refute {rounds} (mask : Mask 3 3)
    (h : (ringWith rounds ringQ ringQ ringV mask).map (·.map Vector.toList)
      ≠ (List.finRange 3).map fun i =>
          [((attention 1 mask.toScoreMod ringQ ringQ ringV)[i]).toList]) :
    ¬ RingComputesAttention rounds := fun claim => h (by simp [claim])

/-- As many rounds as given. -/
@[expose] def roundsOf (n : Nat) : Rounds := fun Q K V mask => ringRounds 1 mask.toScoreMod Q K V n

/-- Positive control: three rounds are right. -/
theorem roundsOf_three : RingComputesAttention (roundsOf 3) := by
  intro Q K V mask
  have h := Proof.ring_eq_attention 1 mask.toScoreMod Q K V
    (shards := (List.finRange 3).map fun i => ([i], [i])) (by decide)
  simpa [ring, ringWith, roundsOf, Function.comp_def] using h

/-- One round too few: no device meets the keys of the one before it. -/
theorem roundsOf_two_refuted : ¬ RingComputesAttention (roundsOf 2) :=
  RingComputesAttention.refute Mask.full (by decide +kernel)

/-- One round too many: every device takes its own keys twice. -/
theorem roundsOf_four_refuted : ¬ RingComputesAttention (roundsOf 4) :=
  RingComputesAttention.refute Mask.full (by decide +kernel)

/-- The keys are passed on before the first round, which is then left out: no device takes its own
keys. -/
@[expose] def skipsOwn : Rounds := fun Q K V mask devices => roundsOf 2 Q K V mask (passOn devices)

theorem skipsOwn_refuted : ¬ RingComputesAttention skipsOwn :=
  RingComputesAttention.refute Mask.full (by decide +kernel)

/-- The first keys are not passed on in time: each device takes its own twice, and never those of
the one before it. The number of rounds is right. -/
@[expose] def ownTwice : Rounds := fun Q K V mask devices =>
  roundsOf 2 Q K V mask (devices.map (Device.compute 1 mask.toScoreMod Q K V))

theorem ownTwice_refuted : ¬ RingComputesAttention ownTwice :=
  RingComputesAttention.refute Mask.full (by decide +kernel)

/-- The mask takes the keys that a device holds for those that it held first, wherever they came
from. -/
@[expose] def localMask : Rounds := fun Q K V mask => roundsOf 3 Q K V fun i _ => mask i i

/-- Without a mask it is right. -/
theorem localMask_full (Q K : Matrix Int 3 1) (V : Matrix Rat 3 1) :
    ringWith localMask Q K V Mask.full
      = (List.finRange 3).map fun i => [(attention 1 Mask.full.toScoreMod Q K V)[i]] := by
  have h : localMask Q K V Mask.full = roundsOf 3 Q K V Mask.full := rfl
  rw [← roundsOf_three, ringWith, ringWith, h]

theorem localMask_refuted : ¬ RingComputesAttention localMask :=
  RingComputesAttention.refute (Mask.causal .topLeft) (by decide +kernel)

end Attention.WrongVariants
