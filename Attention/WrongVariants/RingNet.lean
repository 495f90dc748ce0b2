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

/-- The program of a device, by its number. -/
abbrev Programs (b c : Nat) := Fin 3 → List (Instruction 3 b c)

/-! ## Runs -/

section

variable {b c : Nat} {α β : Type}

/-- No event can happen. -/
@[expose] def stuckAt (rules : RingRules 3 c α β) (net : RingNet 3 b c α β) : Bool :=
  (List.finRange 3).all fun i => (net.after rules (.execute i)).isNone
    && (List.finRange c).all fun e =>
      (net.after rules (.leave e i)).isNone && (net.after rules (.arrive e i)).isNone

/-- So it is. -/
theorem stuckAt_iff {rules : RingRules 3 c α β} {net : RingNet 3 b c α β}
    (h : stuckAt rules net = true) (event : RingEvent 3 c) : net.after rules event = none := by
  simp only [stuckAt, List.all_eq_true, Bool.and_eq_true, Option.isNone_iff_eq_none,
    List.mem_finRange, forall_const] at h
  cases event with
  | execute i => exact (h i).1
  | leave e i => exact ((h i).2 e).1
  | arrive e i => exact ((h i).2 e).2

/-- The end of a run, if it is one and comes to a state where no event can happen. -/
@[expose] def endOf (rules : RingRules 3 c α β) (events : List (RingEvent 3 c))
    (net : RingNet 3 b c α β) : Option (RingNet 3 b c α β) :=
  match net.run rules events with
  | none => none
  | some last => if stuckAt rules last then some last else none

/-- So it does. -/
theorem endOf_some {rules : RingRules 3 c α β} {events : List (RingEvent 3 c)}
    {net last : RingNet 3 b c α β} (h : endOf rules events net = some last) :
    net.run rules events = some last ∧ ∀ event, last.after rules event = none := by
  unfold endOf at h
  split at h
  · cases h
  · split at h <;> cases h
    rename_i run hs
    exact ⟨run, stuckAt_iff hs⟩

end

/-- One row each. -/
@[expose] def oneEach (i : Fin 3) : List (Fin 3) := [i]

/-! ## The forward pass -/

/-- The rules of the forward pass. -/
@[expose] def forwardOf (Q : Matrix Int 3 1) (mask : Mask 3 3) (capacity : Nat) :
    RingRules 3 1 (List (KeyValue Int Rat 1 1)) (List (State Int Rat 1)) :=
  forwardRules 1 mask.toScoreMod Q oneEach oneEach capacity

/-- The claim of `ring_net_eq_attention` for three devices, made of any programs. -/
abbrev NetComputesAttention (programs : Programs 2 1) (capacity : Nat) : Prop :=
  ∀ (Q K : Matrix Int 3 1) (V : Matrix Rat 3 1) (mask : Mask 3 3)
    (spare : Fin 3 → List (KeyValue Int Rat 1 1)) (events : List (RingEvent 3 1))
    (net : RingNet 3 2 1 (List (KeyValue Int Rat 1 1)) (List (State Int Rat 1))),
    (ringStart programs K V oneEach oneEach spare).run (forwardOf Q mask capacity) events
      = some net →
    (∀ event, net.after (forwardOf Q mask capacity) event = none) →
    net.outputs = (List.finRange 3).map fun i => [(attention 1 mask.toScoreMod Q K V)[i]]

/-- Positive control: the program of the Spec is right. -/
theorem netComputesAttention (capacity : Nat) : NetComputesAttention (ringProgram 3) capacity := by
  intro Q K V mask spare events net run stuck
  have := (Proof.ring_net_eq_attention (fun _ _ => rfl) rfl (by decide) (by decide) (by decide)
    (fun _ _ h₁ h₂ => by omega) run).2 stuck
  simpa [oneEach] using this

/-- The outputs of a run, if it is one and comes to a state where no event can happen. -/
@[expose] def outputsOf (programs : Programs 2 1) (capacity : Nat) (mask : Mask 3 3)
    (events : List (RingEvent 3 1)) : Option (List (List (List Rat))) :=
  (endOf (forwardOf ringQ mask capacity) events
    (ringStart programs ringQ ringV oneEach oneEach fun _ => [(#v[0], #v[0])])).map fun net =>
      net.outputs.map (·.map Vector.toList)

/-- The right outputs. -/
@[expose] def rightOutputs (mask : Mask 3 3) : List (List (List Rat)) :=
  (List.finRange 3).map fun i => [((attention 1 mask.toScoreMod ringQ ringQ ringV)[i]).toList]

/-- One run with other outputs refutes the claim. -/
theorem NetComputesAttention.refute {programs capacity} (mask : Mask 3 3)
    (events : List (RingEvent 3 1))
    (h : (outputsOf programs capacity mask events).any (· != rightOutputs mask)) :
    ¬ NetComputesAttention programs capacity := by
  intro claim
  unfold outputsOf at h
  rw [Option.any_map] at h
  obtain ⟨net, ended, h⟩ := Option.any_eq_true _ _ |>.mp h
  obtain ⟨run, stuck⟩ := endOf_some ended
  refine (bne_iff_ne.mp h) ?_
  rw [claim ringQ ringQ ringV mask _ events net run stuck]
  simp [rightOutputs]

/-! ## Short names of events -/

namespace ThreeNodes

/-- The device does its next instruction. -/
abbrev x {c : Nat} (i : Fin 3) : RingEvent 3 c := .execute i

/-- A message to the device leaves. -/
abbrev l (i : Fin 3) : RingEvent 3 1 := .leave 0 i

/-- A message to the device arrives. -/
abbrev a (i : Fin 3) : RingEvent 3 1 := .arrive 0 i

end ThreeNodes

open ThreeNodes

/-! ## A wait is left out -/

/-- The program without the instructions that are not kept. -/
@[expose] def ringWithout (keep : Instruction 3 2 1 → Bool) : Programs 2 1 :=
  fun i => (ringProgram 3 i).filter keep

/-- Sends are not waited for. -/
@[expose] def withoutWaitSends : Programs 2 1 := ringWithout fun
  | .waitSends _ => false
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
@[expose] def withoutWaitReceives : Programs 2 1 := ringWithout fun
  | .waitReceives _ => false
  | _ => true

theorem withoutWaitReceives_refuted : ¬ NetComputesAttention withoutWaitReceives 0 :=
  NetComputesAttention.refute Mask.full
    [x 0, x 0, x 0, x 1, x 1, x 1, x 2, x 2, x 2, l 0, x 2, x 2, x 2, x 2, l 1, x 0, x 0, x 0,
     x 0, l 0, x 2, x 2, l 2, x 1, x 1, x 1, x 1, l 1, x 0, x 0, l 2, x 1, x 1, a 0, a 0, a 1,
     a 1, a 2, a 2]
    (by decide +kernel)

/-! ## Other programs -/

/-- The send is waited for before the receive is posted. -/
@[expose] def sendsFirst : Programs 2 1 := fun i => (List.range 3).flatMap fun t =>
  if t + 1 < 3 then
    [.send 0 (slot t), .waitSends 0, .receive 0 (slot (t + 1)), .consume (slot t) (source i t),
      .waitReceives 0]
  else [.consume (slot t) (source i t)]

/-- Where no message leaves before it is asked for, all wait for each other. -/
theorem sendsFirst_refuted : ¬ NetComputesAttention sendsFirst 0 :=
  NetComputesAttention.refute Mask.full
    [x 0, x 1, x 2]
    (by decide +kernel)

/-- A message that arrives goes into the buffer that is held. -/
@[expose] def oneBuffer : Programs 2 1 := fun i => (List.range 3).flatMap fun t =>
  if t + 1 < 3 then
    [.send 0 0, .receive 0 0, .consume 0 (source i t), .waitSends 0, .waitReceives 0]
  else [.consume 0 (source i t)]

theorem oneBuffer_refuted : ¬ NetComputesAttention oneBuffer 0 :=
  NetComputesAttention.refute Mask.full
    [x 0, x 0, x 1, x 1, x 2, x 2, l 0, a 0, x 0, x 1, x 2, x 2, l 1, x 0, x 0, x 0, x 0, x 0,
     l 2, x 1, a 1, x 1, x 1, x 1, x 1, l 1, x 0, a 1, a 2, x 2, x 2, x 2, x 2, l 0, x 2, l 2,
     x 1, x 1, x 1, a 0, x 0, x 0, a 2, x 2, x 2]
    (by decide +kernel)

/-- Each device takes what it holds for its own keys. -/
@[expose] def ownPlaces : Programs 2 1 := fun i => (ringProgram 3 i).map fun
  | .consume buffer _ => .consume buffer i
  | other => other

theorem ownPlaces_refuted : ¬ NetComputesAttention ownPlaces 0 :=
  NetComputesAttention.refute (Mask.causal .topLeft)
    [x 0, x 0, x 0, x 1, x 1, x 1, x 2, x 2, x 2, l 0, x 2, l 1, x 0, l 2, x 1, a 0, x 0, x 0,
     x 0, x 0, a 1, x 1, x 1, x 1, x 1, l 1, x 0, a 1, a 2, x 2, x 2, x 2, x 2, l 0, x 2, l 2,
     x 1, x 1, x 1, a 0, x 0, x 0, a 2, x 2, x 2]
    (by decide +kernel)

end Attention.WrongVariants
