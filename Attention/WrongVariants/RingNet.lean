module

public import Attention.Model.Exact
public import Attention.Proof.Ring.Attention
public import Attention.Spec.Masks
public import Attention.WrongVariants.Ring

public section

/-! # Wrong programs of the devices of a ring

Three devices, each with one query and one key. Each program is refuted by one run; in other runs
some are right. -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- What a device does, by its number. -/
abbrev Programs := Fin 3 → List (Instruction 3)

/-- A ring of three devices, each with one row of the queries, keys and values. -/
abbrev ThreeNodes := RingNet 3 (List (KeyValue Int Rat 1 1)) (List (State Int Rat 1))

/-- One row each. -/
@[expose] def oneEach (i : Fin 3) : List (Fin 3) := [i]

/-- How a device takes in keys and values. -/
@[expose] def takeOne (Q : Matrix Int 3 1) (mask : Mask 3 3) :
    Fin 3 → Fin 3 → List (State Int Rat 1) → List (KeyValue Int Rat 1 1) →
      List (State Int Rat 1) :=
  takeShard 1 mask.toScoreMod Q oneEach oneEach

/-- The claim of `ring_net_eq_attention` for three devices, made of any programs. -/
abbrev NetComputesAttention (programs : Programs) (capacity : Nat) : Prop :=
  ∀ (Q K : Matrix Int 3 1) (V : Matrix Rat 3 1) (mask : Mask 3 3)
    (spare : Fin 3 → List (KeyValue Int Rat 1 1)) (events : List (RingEvent 3)) (net : ThreeNodes),
    (ringStart programs K V oneEach oneEach spare).run (takeOne Q mask) capacity events = some net →
    (∀ event, net.after (takeOne Q mask) capacity event = none) →
    net.outputs = (List.finRange 3).map fun i => [(attention 1 mask.toScoreMod Q K V)[i]]

/-- Positive control: the program of the Spec is right. -/
theorem netComputesAttention (capacity : Nat) : NetComputesAttention (ringProgram 3) capacity := by
  intro Q K V mask spare events net run stuck
  have := (Proof.ring_net_eq_attention (by decide) (by decide) (by decide)
    (fun _ _ h₁ h₂ => by omega) run).2 stuck
  simpa [oneEach] using this

/-- No event can happen. -/
@[expose] def stuckAt (mask : Mask 3 3) (capacity : Nat) (net : ThreeNodes) : Bool :=
  (List.finRange 3).all fun i => [.execute i, .leave i, .arrive i].all fun event =>
    (net.after (takeOne ringQ mask) capacity event).isNone

/-- The outputs of a run, if it is one and comes to a state where no event can happen. -/
@[expose] def outputsOf (programs : Programs) (capacity : Nat) (mask : Mask 3 3)
    (events : List (RingEvent 3)) : Option (List (List (List Rat))) :=
  let spare := fun _ => [(#v[0], #v[0])]
  match (ringStart programs ringQ ringV oneEach oneEach spare).run (takeOne ringQ mask) capacity
    events with
  | none => none
  | some net =>
    if stuckAt mask capacity net then some (net.outputs.map (·.map Vector.toList)) else none

/-- The right outputs. -/
@[expose] def rightOutputs (mask : Mask 3 3) : List (List (List Rat)) :=
  (List.finRange 3).map fun i => [((attention 1 mask.toScoreMod ringQ ringQ ringV)[i]).toList]

/-- One run with other outputs refutes the claim. -/
theorem NetComputesAttention.refute {programs capacity} (mask : Mask 3 3)
    (events : List (RingEvent 3))
    (h : (outputsOf programs capacity mask events).any (· != rightOutputs mask)) :
    ¬ NetComputesAttention programs capacity := by
  intro claim
  unfold outputsOf at h
  dsimp only at h
  split at h
  · simp at h
  · rename_i net run
    split at h
    · rename_i hs
      refine (bne_iff_ne.mp (Option.any_some ▸ h)) ?_
      rw [claim ringQ ringQ ringV mask _ events net run fun event => ?_]
      · simp [rightOutputs]
      · have all := List.all_eq_true.mp hs
        cases event with
        | execute i =>
          have := List.all_eq_true.mp (all i (List.mem_finRange i)) (.execute i) (by simp)
          simpa using this
        | leave i =>
          have := List.all_eq_true.mp (all i (List.mem_finRange i)) (.leave i) (by simp)
          simpa using this
        | arrive i =>
          have := List.all_eq_true.mp (all i (List.mem_finRange i)) (.arrive i) (by simp)
          simpa using this
    · simp at h

/-! ## Short names of events -/

namespace ThreeNodes

/-- The device does its next instruction. -/
abbrev x (i : Fin 3) : RingEvent 3 := .execute i

/-- A message to the device leaves. -/
abbrev l (i : Fin 3) : RingEvent 3 := .leave i

/-- A message to the device arrives. -/
abbrev a (i : Fin 3) : RingEvent 3 := .arrive i

end ThreeNodes

open ThreeNodes

/-! ## A wait is left out -/

/-- The program without the instructions that are not kept. -/
@[expose] def ringWithout (keep : Instruction 3 → Bool) : Programs :=
  fun i => (ringProgram 3 i).filter keep

/-- Sends are not waited for. -/
@[expose] def withoutWaitSends : Programs := ringWithout fun
  | .waitSends => false
  | _ => true

/-- In this run each message leaves in time, and the outputs are right. -/
theorem withoutWaitSends_inTime : outputsOf withoutWaitSends 0 Mask.full
    [x 0, x 0, x 0, x 1, x 1, x 1, x 2, x 2, x 2, l 0, l 1, l 2, a 0, x 0, x 0, x 0, x 0, a 1,
     x 1, x 1, x 1, x 1, l 1, a 1, x 1, x 1, a 2, x 2, x 2, x 2, x 2, l 0, l 2, a 0, x 0, x 0,
     a 2, x 2, x 2]
      = some (rightOutputs Mask.full) := by
  decide +kernel

/-- The first message of device 0 leaves late: what comes in the second round has overwritten its
buffer. -/
theorem withoutWaitSends_refuted : ¬ NetComputesAttention withoutWaitSends 0 :=
  NetComputesAttention.refute Mask.full
    [x 0, x 0, x 0, x 2, x 2, x 2, x 1, x 1, x 1, l 0, a 0, x 0, x 0, x 0, x 0, l 2, a 2, x 2,
     x 2, x 2, x 2, l 0, a 0, x 0, x 0, l 1, a 1, x 1, x 1, x 1, x 1, l 2, a 2, x 2, x 2, l 1,
     a 1, x 1, x 1]
    (by decide +kernel)

/-- Receives are not waited for. -/
@[expose] def withoutWaitReceives : Programs := ringWithout fun
  | .waitReceives => false
  | _ => true

theorem withoutWaitReceives_refuted : ¬ NetComputesAttention withoutWaitReceives 0 :=
  NetComputesAttention.refute Mask.full
    [x 0, x 0, x 0, x 1, x 1, x 1, x 2, x 2, x 2, l 0, x 2, x 2, x 2, x 2, l 1, x 0, x 0, x 0,
     x 0, l 0, x 2, x 2, l 2, x 1, x 1, x 1, x 1, l 1, x 0, x 0, l 2, x 1, x 1, a 0, a 0, a 1,
     a 1, a 2, a 2]
    (by decide +kernel)

/-! ## Other programs -/

/-- The send is waited for before the receive is posted. -/
@[expose] def sendsFirst : Programs := fun i => (List.range 3).flatMap fun t =>
  if t + 1 < 3 then
    [.send (slot t), .waitSends, .receive (slot (t + 1)), .consume (slot t) (source i t),
      .waitReceives]
  else [.consume (slot t) (source i t)]

/-- Where no message leaves before it is asked for, all wait for each other. -/
theorem sendsFirst_refuted : ¬ NetComputesAttention sendsFirst 0 :=
  NetComputesAttention.refute Mask.full
    [x 0, x 1, x 2]
    (by decide +kernel)

/-- What arrives goes into the buffer that is held. -/
@[expose] def oneBuffer : Programs := fun i => (List.range 3).flatMap fun t =>
  if t + 1 < 3 then
    [.send 0, .receive 0, .consume 0 (source i t), .waitSends, .waitReceives]
  else [.consume 0 (source i t)]

theorem oneBuffer_refuted : ¬ NetComputesAttention oneBuffer 0 :=
  NetComputesAttention.refute Mask.full
    [x 0, x 0, x 1, x 1, x 2, x 2, l 0, a 0, x 0, x 1, x 2, x 2, l 1, x 0, x 0, x 0, x 0, x 0,
     l 2, x 1, a 1, x 1, x 1, x 1, x 1, l 1, x 0, a 1, a 2, x 2, x 2, x 2, x 2, l 0, x 2, l 2,
     x 1, x 1, x 1, a 0, x 0, x 0, a 2, x 2, x 2]
    (by decide +kernel)

/-- Each device takes what it holds for its own keys. -/
@[expose] def ownPlaces : Programs := fun i => (ringProgram 3 i).map fun
  | .consume buffer _ => .consume buffer i
  | other => other

theorem ownPlaces_refuted : ¬ NetComputesAttention ownPlaces 0 :=
  NetComputesAttention.refute (Mask.causal .topLeft)
    [x 0, x 0, x 0, x 1, x 1, x 1, x 2, x 2, x 2, l 0, x 2, l 1, x 0, l 2, x 1, a 0, x 0, x 0,
     x 0, x 0, a 1, x 1, x 1, x 1, x 1, l 1, x 0, a 1, a 2, x 2, x 2, x 2, x 2, l 0, x 2, l 2,
     x 1, x 1, x 1, a 0, x 0, x 0, a 2, x 2, x 2]
    (by decide +kernel)

end Attention.WrongVariants
