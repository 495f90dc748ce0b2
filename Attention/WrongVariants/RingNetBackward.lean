module

public import Attention.Proof.Ring.Gradients
public import Attention.WrongVariants.RingNet

public section

/-! # Wrong programs of the backward pass of a ring

Three devices, each with one query and one key. Each program is refuted by one run; in other runs
some are right. -/

namespace Attention.WrongVariants

open Spec

/-- The rules of the backward pass. -/
@[expose] def backwardOf (Q : Matrix Int 3 1) (L : Vector (Option Int) 3) (dO : Matrix Rat 3 1)
    (delta : Vec Rat 3) (capacity : Nat) :
    RingRules 3 3 (Parcel Int Rat 1 1) (BackwardState Rat 1 1) :=
  backwardRules (fun x : Int => (x : Rat)) 1 Mask.full.toScoreMod (fun _ _ _ => 1) Q
    (fun _ _ => 1) L dO delta 3 oneEach oneEach capacity

/-- The gradients of each device as the claim has them: by its query, by its key and its value. -/
@[expose] def rightGradients (Q K : Matrix Int 3 1) (V dO : Matrix Rat 3 1) (dLse : Vec Rat 3) :
    List (List (Vec Rat 1) × Parcel Int Rat 1 1) :=
  let g := vjpDropout 1 Mask.full.toScoreMod (fun _ _ _ => 1) Q K V (fun _ _ => 1)
    (fun x : Int => (x : Rat)) dO dLse
  (List.finRange 3).map fun i => ([g.dQ[i]], .sums ⟨[g.dK[i]], [g.dV[i]]⟩)

/-- The gradients D of the rows. -/
@[expose] def rowDeltas (Q K : Matrix Int 3 1) (V dO : Matrix Rat 3 1) (dLse : Vec Rat 3) :
    Vec Rat 3 :=
  rowDelta (attentionDropout 1 Mask.full.toScoreMod Q K V fun _ _ => 1) dO dLse

/-- The claim of `ring_net_backward` for three devices, made of any programs. -/
abbrev NetComputesGradients (programs : Programs 5 3) (capacity : Nat) : Prop :=
  ∀ (Q K : Matrix Int 3 1) (V dO : Matrix Rat 3 1) (L : Vector (Option Int) 3) (dLse : Vec Rat 3)
    (spare : Fin 3 → Vector (Parcel Int Rat 1 1) 4) (events : List (RingEvent 3 3))
    (net : RingNet 3 5 3 (Parcel Int Rat 1 1) (BackwardState Rat 1 1)),
    (∀ i : Fin 3, IsLogSumExp Rat L[i]
      ((List.finRange 3).map (score 1 Mask.full.toScoreMod Q K i))) →
    (backwardStart programs K V oneEach oneEach spare).run
      (backwardOf Q L dO (rowDeltas Q K V dO dLse) capacity) events = some net →
    (∀ event, net.after (backwardOf Q L dO (rowDeltas Q K V dO dLse) capacity) event = none) →
    net.gradients = rightGradients Q K V dO dLse

/-- Positive control: the program of the Spec is right. -/
theorem netComputesGradients (capacity : Nat) :
    NetComputesGradients (backwardProgram 3) capacity := by
  intro Q K V dO L dLse spare events net hL run stuck
  have := (Proof.ring_net_backward dLse rfl rfl rfl (by decide) (by decide) (by decide) (by decide)
    (fun _ _ h₁ h₂ => by omega) hL run).2 stuck
  simpa [oneEach, rightGradients] using this

/-! ## One ring -/

/-- Keys with 2^0 + 2^0 + 2^1 = 2^2. -/
@[expose] def backwardK : Matrix Int 3 1 := #v[#v[0], #v[0], #v[1]]

/-- Queries. -/
@[expose] def backwardQ : Matrix Int 3 1 := #v[#v[1], #v[1], #v[1]]

/-- Values. -/
@[expose] def backwardV : Matrix Rat 3 1 := #v[#v[1], #v[2], #v[4]]

/-- Gradients by the outputs. -/
@[expose] def backwardDO : Matrix Rat 3 1 := #v[#v[1], #v[10], #v[100]]

/-- The log-sum-exps. -/
@[expose] def backwardL : Vector (Option Int) 3 := #v[some 2, some 2, some 2]

/-- Numbers that can be compared. -/
@[expose] def shown (found : List (List (Vec Rat 1) × Parcel Int Rat 1 1)) :
    List (List (List Rat) × Option (List (List Rat) × List (List Rat))) :=
  found.map fun (dQ, home) => (dQ.map Vector.toList,
    match home with
    | .keys _ => none
    | .sums sums => some (sums.dK.map Vector.toList, sums.dV.map Vector.toList))

/-- The gradients of a run, if it is one and comes to a state where no event can happen. -/
@[expose] def gradientsOf (programs : Programs 5 3) (capacity : Nat)
    (events : List (RingEvent 3 3)) :
    Option (List (List (List Rat) × Option (List (List Rat) × List (List Rat)))) :=
  let delta := rowDeltas backwardQ backwardK backwardV backwardDO Vec.zero
  (endOf (backwardOf backwardQ backwardL backwardDO delta capacity) events
    (backwardStart programs backwardK backwardV oneEach oneEach fun _ =>
      Vector.replicate 4 (.sums ⟨[#v[0]], [#v[0]]⟩))).map fun net => shown net.gradients

/-- One run with other gradients refutes the claim. -/
theorem NetComputesGradients.refute {programs capacity} (events : List (RingEvent 3 3))
    (h : (gradientsOf programs capacity events).any
      (· != shown (rightGradients backwardQ backwardK backwardV backwardDO Vec.zero))) :
    ¬ NetComputesGradients programs capacity := by
  intro claim
  unfold gradientsOf at h
  dsimp only at h
  rw [Option.any_map] at h
  obtain ⟨net, ended, h⟩ := Option.any_eq_true _ _ |>.mp h
  obtain ⟨run, stuck⟩ := endOf_some ended
  refine (bne_iff_ne.mp h) ?_
  rw [claim backwardQ backwardK backwardV backwardDO backwardL Vec.zero _ events net
    (by decide +kernel) run stuck]

/-! ## Short names of events -/

namespace BackwardNodes

/-- A message with keys and values leaves. -/
abbrev l₀ (i : Fin 3) : RingEvent 3 3 := .leave 0 i

/-- It arrives. -/
abbrev a₀ (i : Fin 3) : RingEvent 3 3 := .arrive 0 i

/-- A message with sums leaves for the next device. -/
abbrev l₁ (i : Fin 3) : RingEvent 3 3 := .leave 1 i

/-- It arrives. -/
abbrev a₁ (i : Fin 3) : RingEvent 3 3 := .arrive 1 i

/-- A message with sums leaves for their owner. -/
abbrev l₂ (i : Fin 3) : RingEvent 3 3 := .leave 2 i

/-- It arrives. -/
abbrev a₂ (i : Fin 3) : RingEvent 3 3 := .arrive 2 i

end BackwardNodes

open ThreeNodes (x)
open BackwardNodes

/-! ## A wait is left out -/

/-- The program without the instructions that are not kept. -/
@[expose] def backwardWithout (keep : Instruction 3 5 3 → Bool) : Programs 5 3 :=
  fun i => (backwardProgram 3 i).filter keep

/-- Sends of sums are not waited for. -/
@[expose] def withoutWaitSumsSent : Programs 5 3 := backwardWithout fun
  | .waitSends e => e != 1
  | _ => true

/-- In this run each message comes in time, and the gradients are right. -/
theorem withoutWaitSumsSent_inTime : (gradientsOf withoutWaitSumsSent 0
    [x 2, x 2, x 2, x 2, x 1, l₀ 2, a₀ 2, x 1, x 1, x 2, x 2, x 1, x 1, l₁ 2, a₁ 2, x 1, x 1,
     x 0, x 0, l₀ 0, a₀ 0, x 2, x 2, x 2, x 2, x 2, x 0, x 2, x 2, x 2, x 2, x 2, l₀ 1, x 0,
     x 0, l₁ 1, x 0, a₁ 1, a₀ 1, x 1, l₁ 0, x 1, a₁ 0, x 1, x 1, x 0, l₀ 2, a₀ 2, x 1, x 1,
     x 1, x 1, l₁ 2, a₁ 2, x 1, x 1, x 0, x 0, l₀ 1, a₀ 1, x 1, x 1, x 0, l₀ 0, a₀ 0, x 0, x 2,
     x 2, x 2, x 2, x 2, x 2, x 2, x 2, x 0, x 0, x 0, x 0, l₁ 1, a₁ 1, x 1, x 1, x 1, x 1,
     x 1, l₂ 2, a₂ 2, x 1, x 0, l₁ 0, a₁ 0, x 0, x 0, x 0, x 0, x 0, x 0, x 0, l₂ 1, a₂ 1, x 1,
     x 0, l₂ 0, x 2, x 0, x 2, a₂ 0, x 0]).any
      (· == shown (rightGradients backwardQ backwardK backwardV backwardDO Vec.zero)) := by
  decide +kernel

/-- A message with sums leaves late: sums that come in a later round have overwritten its buffer. -/
theorem withoutWaitSumsSent_refuted : ¬ NetComputesGradients withoutWaitSumsSent 0 :=
  NetComputesGradients.refute
    [x 1, x 1, x 1, x 1, x 1, x 0, x 2, x 0, x 1, x 2, l₀ 2, a₀ 2, x 0, l₀ 1, x 0, x 1, a₀ 1,
     x 0, l₁ 1, l₀ 0, x 0, x 1, x 0, x 1, x 1, x 1, a₁ 1, x 1, x 1, x 1, x 1, x 1, a₀ 0, x 0,
     x 0, x 0, x 0, x 2, x 2, l₀ 1, a₀ 1, x 2, l₁ 0, a₁ 0, x 0, x 0, x 0, x 0, l₁ 1, a₁ 1, x 0,
     x 0, x 2, l₁ 2, x 2, x 2, a₁ 2, x 2, l₀ 0, x 2, l₀ 2, x 1, x 1, a₀ 2, x 1, x 2, x 1, x 1,
     a₀ 0, x 0, x 0, x 1, x 1, x 2, x 1, x 2, x 2, x 2, x 2, x 2, l₁ 2, a₁ 2, x 2, l₁ 0, a₁ 0,
     x 0, x 0, x 0, x 0, x 0, l₂ 1, a₂ 1, x 0, x 2, x 2, x 2, x 2, x 2, l₂ 0, a₂ 0, x 2, l₂ 2,
     a₂ 2, x 0, x 1, x 1, x 2, x 2]
    (by decide +kernel)

/-- Sums are not waited for: what is added may be stale. -/
@[expose] def withoutWaitSumsReceived : Programs 5 3 := backwardWithout fun
  | .waitReceives e => e != 1
  | _ => true

/-- In this run each message comes in time, and the gradients are right. -/
theorem withoutWaitSumsReceived_inTime : (gradientsOf withoutWaitSumsReceived 0
    [x 2, x 2, x 1, x 2, x 2, x 0, x 1, x 1, x 1, x 0, x 2, l₀ 0, x 1, x 2, x 0, x 0, x 2, x 0,
     x 0, x 1, l₀ 2, x 1, l₀ 1, l₁ 0, x 0, a₁ 0, l₁ 2, a₁ 2, a₀ 2, x 2, x 2, l₁ 1, x 2, x 2,
     x 2, x 2, x 2, x 2, x 2, a₁ 1, a₀ 0, x 0, x 0, x 0, l₀ 0, x 2, x 0, x 0, x 0, x 0, x 0,
     a₀ 1, x 0, x 1, x 1, x 1, x 1, x 1, x 1, x 1, x 1, x 1, l₀ 2, x 1, l₁ 0, l₁ 2, a₁ 2, l₀ 1,
     x 0, a₁ 0, a₀ 0, x 0, x 0, l₁ 1, x 0, x 0, x 0, x 0, x 0, a₀ 1, x 1, x 1, a₁ 1, x 1, x 1,
     x 1, x 1, x 1, l₂ 1, x 0, a₂ 1, a₀ 2, x 2, x 2, x 2, x 2, x 2, x 2, x 2, l₂ 2, x 1, a₂ 2,
     x 1, l₂ 0, x 2, a₂ 0, x 0, x 2]).any
      (· == shown (rightGradients backwardQ backwardK backwardV backwardDO Vec.zero)) := by
  decide +kernel

/-- Sums are added before they have come. -/
theorem withoutWaitSumsReceived_refuted : ¬ NetComputesGradients withoutWaitSumsReceived 0 :=
  NetComputesGradients.refute
    [x 1, x 1, x 1, x 1, x 1, x 0, x 2, x 0, x 1, x 2, l₀ 2, a₀ 2, x 0, l₀ 1, x 0, x 1, a₀ 1,
     x 0, l₁ 1, l₀ 0, x 0, x 1, x 0, x 1, x 1, x 1, a₁ 1, x 2, a₀ 0, x 0, x 2, x 0, x 0, x 2,
     x 0, x 0, x 0, x 0, x 0, x 0, x 2, x 2, l₁ 0, a₁ 0, l₀ 1, x 0, a₀ 1, l₁ 2, x 1, x 2, a₁ 2,
     x 1, x 1, x 1, x 1, l₁ 1, x 2, l₀ 0, a₁ 1, x 2, l₀ 2, x 1, x 1, a₀ 2, x 1, a₀ 0, x 0, x 0,
     x 2, x 0, x 0, x 0, x 0, x 2, x 0, x 2, x 2, x 2, x 2, x 2, l₁ 2, x 1, a₁ 2, x 1, x 2,
     x 1, x 1, x 1, l₂ 1, a₂ 1, x 0, x 2, l₁ 0, x 2, a₁ 0, x 2, x 2, x 2, l₂ 0, a₂ 0, x 2,
     l₂ 2, a₂ 2, x 0, x 1, x 1, x 2, x 2]
    (by decide +kernel)

/-- Keys and values are not waited for: gradients may be of the keys of a round before. -/
@[expose] def withoutWaitKeysReceived : Programs 5 3 := backwardWithout fun
  | .waitReceives e => e != 0
  | _ => true

/-- Keys are computed with before they have come. -/
theorem withoutWaitKeysReceived_refuted : ¬ NetComputesGradients withoutWaitKeysReceived 0 :=
  NetComputesGradients.refute
    [x 1, x 1, x 1, x 1, x 1, x 0, x 2, x 0, x 1, x 2, l₀ 2, a₀ 2, x 0, l₀ 1, x 0, x 1, a₀ 1,
     x 0, l₁ 1, l₀ 0, x 0, x 1, x 0, x 0, x 1, x 1, x 0, x 0, x 0, l₀ 1, a₀ 1, a₀ 0, a₁ 1, x 2,
     x 2, x 2, l₁ 0, a₁ 0, x 0, x 0, x 0, x 0, x 0, x 0, x 0, x 2, x 2, l₁ 2, x 1, x 2, x 1,
     x 1, x 1, x 1, x 1, l₁ 1, x 0, a₁ 1, x 2, a₁ 2, l₀ 2, x 1, x 1, a₀ 2, x 2, l₀ 0, a₀ 0,
     x 2, x 2, x 2, x 2, x 2, x 2, l₁ 0, l₁ 2, a₁ 0, x 1, x 1, x 0, x 0, x 0, x 2, x 1, x 2,
     x 0, x 0, x 1, x 1, x 1, l₂ 1, x 0, a₂ 1, a₁ 2, x 2, x 2, x 2, x 2, x 2, l₂ 0, a₂ 0, x 2,
     l₂ 2, a₂ 2, x 0, x 1, x 1, x 2, x 2]
    (by decide +kernel)

/-! ## Other programs -/

/-- After the last round each device keeps the sums that it has. -/
@[expose] def keptByNeighbour : Programs 5 3 := fun i => (backwardProgram 3 i).filterMap fun
  | .send e x => if e = 2 then none else some (.send e x)
  | .receive e x => if e = 2 then some (.store homeSlot) else some (.receive e x)
  | other => some other

theorem keptByNeighbour_refuted : ¬ NetComputesGradients keptByNeighbour 0 :=
  NetComputesGradients.refute
    [x 1, x 1, x 1, x 1, x 1, x 0, x 2, x 0, x 1, x 2, l₀ 2, a₀ 2, x 0, l₀ 1, x 0, x 1, a₀ 1,
     x 0, l₁ 1, l₀ 0, x 0, x 1, x 0, x 1, x 1, x 1, a₁ 1, x 2, a₀ 0, x 0, x 2, x 0, x 0, x 2,
     x 0, x 0, x 2, l₁ 2, x 1, x 1, x 1, x 1, x 1, a₁ 2, x 1, x 2, x 2, l₀ 1, a₀ 1, x 2, l₀ 0,
     a₀ 0, l₁ 0, a₁ 0, x 0, x 0, x 0, x 0, l₁ 1, x 0, a₁ 1, x 0, x 0, x 0, x 2, l₀ 2, x 1, x 0,
     a₀ 2, x 1, x 1, x 2, x 2, x 2, x 2, x 2, x 2, l₁ 0, a₁ 0, x 0, x 0, x 0, x 0, x 0, x 0,
     x 2, l₁ 2, x 1, x 1, x 1, x 1, x 1, x 2, x 1, a₁ 2, x 1, x 2, x 2, x 2, x 2, x 2, x 2,
     x 2, x 2, x 2]
    (by decide +kernel)

/-- The keys are a step ahead of their gradients: they are passed on before they are computed with,
and the last time in the last round. -/
@[expose] def keysAhead : Programs 5 3 := fun i => (List.range 3).flatMap fun t =>
  [.send 0 (keySlot t), .receive 0 (keySlot (t + 1)), .waitSends 0, .waitReceives 0,
      .consume (keySlot (t + 1)) (source i (t + 1))]
    ++ (if t = 0 then [] else
      [.waitSends 1, .waitReceives 1, .consume (sumSlot t) (source i (t + 1))])
    ++ if t + 1 < 3 then
      [.store (sumSlot t), .send 1 (sumSlot t), .receive 1 (sumSlot (t + 1))]
    else
      [.store (sumSlot t), .send 2 (sumSlot t), .receive 2 homeSlot, .waitSends 2, .waitReceives 2]

theorem keysAhead_refuted : ¬ NetComputesGradients keysAhead 0 :=
  NetComputesGradients.refute
    [x 1, x 1, x 0, x 0, x 2, x 2, l₀ 2, x 1, a₀ 2, l₀ 1, a₀ 1, x 0, x 1, l₀ 0, x 2, x 1, x 1,
     x 1, x 1, x 1, x 1, a₀ 0, x 0, x 0, x 0, x 0, l₁ 1, x 0, x 0, l₀ 1, x 2, x 0, x 0, x 2,
     a₀ 1, x 2, a₁ 1, x 2, x 2, x 2, x 2, l₀ 2, l₁ 2, x 1, l₀ 0, a₁ 2, x 1, x 1, x 2, x 1,
     l₁ 0, x 1, a₁ 0, a₀ 2, x 1, x 1, x 1, x 1, x 1, x 1, x 2, x 2, a₀ 0, x 0, x 2, x 0, x 0,
     x 0, x 2, x 0, x 0, x 0, l₁ 1, x 0, x 2, x 0, x 0, x 2, a₁ 1, l₀ 1, a₀ 1, x 0, x 2, l₁ 0,
     a₁ 0, x 2, l₁ 2, a₁ 2, x 2, l₀ 0, a₀ 0, x 0, x 0, x 2, x 0, x 0, l₀ 2, x 1, a₀ 2, x 0,
     x 1, x 0, x 2, x 0, x 0, x 1, x 1, x 1, x 1, x 1, x 1, x 1, l₂ 1, x 0, a₂ 1, x 2, x 2,
     x 2, x 2, x 2, x 2, x 2, l₂ 0, a₂ 0, x 0, x 2, l₂ 2, a₂ 2, x 1, x 1, x 2, x 2]
    (by decide +kernel)

/-- Each device passes on its own sums, without those that have come to it. -/
@[expose] def nothingAdded : Programs 5 3 := fun i => (backwardProgram 3 i).filter fun
  | .consume buffer _ => buffer.val < 2
  | _ => true

theorem nothingAdded_refuted : ¬ NetComputesGradients nothingAdded 0 :=
  NetComputesGradients.refute
    [x 1, x 1, x 1, x 1, x 1, x 0, x 2, x 0, x 1, x 2, l₀ 2, a₀ 2, x 0, l₀ 1, x 0, x 1, a₀ 1,
     x 0, l₁ 1, l₀ 0, x 0, x 1, x 0, x 1, x 1, x 1, a₁ 1, x 2, a₀ 0, x 0, x 2, x 0, x 0, x 2,
     x 0, x 0, x 2, l₁ 2, x 1, x 1, x 1, x 1, x 1, a₁ 2, l₁ 0, a₁ 0, x 0, l₀ 1, x 0, x 0, l₁ 1,
     x 0, x 0, a₀ 1, a₁ 1, x 2, x 2, x 2, l₀ 0, x 2, l₀ 2, x 1, x 1, a₀ 2, x 1, a₀ 0, x 0, x 0,
     x 2, x 0, x 2, x 2, x 2, x 2, l₁ 0, a₁ 0, x 2, x 0, x 2, x 0, x 0, x 0, l₁ 2, x 1, a₁ 2,
     x 1, x 1, x 1, x 1, l₂ 1, a₂ 1, x 0, x 2, x 2, x 2, x 2, x 2, x 2, l₂ 0, a₂ 0, x 2, l₂ 2,
     a₂ 2, x 0, x 1, x 1, x 2, x 2]
    (by decide +kernel)

end Attention.WrongVariants
