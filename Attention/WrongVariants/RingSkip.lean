module

public import Attention.Proof.Ring.Skip
public import Attention.WrongVariants.RingNetBackward

public section

/-! # Wrong rules for what a ring leaves out

Three devices with twelve places, or six. Each rule leaves out something that a query sees, and is
refuted by a run; the rule of the Spec is right with the same shards. -/

namespace Attention.WrongVariants

open Spec Spec.Online ThreeNodes BackwardNodes

variable {len : Nat}

/-- Which devices need the keys of which, by the places of both. -/
abbrev Rule := Option Nat → Option Nat → List Nat → List Nat → Bool

/-- Whether devices need keys, for places with these owners. -/
@[expose] def Rule.meet (rule : Rule) (owner : Fin len → Fin 3) (left right : Option Nat)
    (i j : Fin 3) : Bool :=
  rule left right ((placesOf owner i).map (·.val)) ((placesOf owner j).map (·.val))

/-- Devices that compute with what they need by the rule. -/
@[expose] def rulesOf (rule : Rule) (owner : Fin len → Fin 3) (left right : Option Nat)
    (Q : Matrix Int len 1) : RingRules 3 1 (List (KeyValue Int Rat 1 1)) (List (State Int Rat 1)) :=
  let modify := (Mask.window .topLeft left right : Mask len len).toScoreMod
  { forwardRules 1 modify Q (placesOf owner) (placesOf owner) 0 with
    take := takeMet (rule.meet owner left right)
      (takeShard 1 modify Q (placesOf owner) (placesOf owner)) }

/-- The ring before any event. -/
@[expose] def startOf (rule : Rule) (owner : Fin len → Fin 3) (left right : Option Nat)
    (K : Matrix Int len 1) (V : Matrix Rat len 1) (spare : Fin 3 → List (KeyValue Int Rat 1 1)) :
    RingNet 3 2 1 (List (KeyValue Int Rat 1 1)) (List (State Int Rat 1)) :=
  ringStart (ringProgram (neededRounds (rule.meet owner left right))) K V (placesOf owner)
    (placesOf owner) spare

/-- The outputs of attention, by owner. -/
@[expose] def outputsBy (owner : Fin len → Fin 3) (left right : Option Nat) (Q K : Matrix Int len 1)
    (V : Matrix Rat len 1) : List (List (Vec Rat 1)) :=
  (List.finRange 3).map fun i => (placesOf owner i).map fun q =>
    (attention 1 (Mask.window .topLeft left right).toScoreMod Q K V)[q]

/-- The claim of `ring_net_skips_owned` for three devices, made of any rule. -/
abbrev SkipsComputeAttention (rule : Rule) (owner : Fin len → Fin 3) : Prop :=
  ∀ (left right : Option Nat) (Q K : Matrix Int len 1) (V : Matrix Rat len 1)
    (spare : Fin 3 → List (KeyValue Int Rat 1 1)) (events : List (RingEvent 3 1))
    (net : RingNet 3 2 1 (List (KeyValue Int Rat 1 1)) (List (State Int Rat 1))),
    (startOf rule owner left right K V spare).run (rulesOf rule owner left right Q) events
      = some net →
    (∀ event, net.after (rulesOf rule owner left right Q) event = none) →
    net.outputs = outputsBy owner left right Q K V

/-- The rule of the Spec. -/
@[expose] def byBounds : Rule := fun left right => meets 8 left right 0 none

/-- Positive control: it is right, whoever owns the places. -/
theorem byBounds_right (owner : Fin len → Fin 3) : SkipsComputeAttention byBounds owner := by
  intro left right Q K V spare events net run stuck
  refine Proof.ring_net_skips_owned (most := 8) (alignment := .topLeft) (left := left)
    (right := right) (documents := none) (scale := 1) (Q := Q) (K := K) (V := V) ?_ owner owner
    (by decide) (capacity := 0) run stuck
  intro q k s h
  have : Mask.window .topLeft left right q k = false := by
    simpa [Mask.inDocuments, Mask.and, oneDocument] using h
  simp [Mask.toScoreMod, this]

/-- Scores of 0. -/
@[expose] def equal : Matrix Int len 1 := Vec.ofFn fun _ => #v[0]

/-- Values that are all different, as are their means. -/
@[expose] def skipV : Matrix Rat len 1 := Vec.ofFn fun j => #v[2 ^ j.val]

/-- So many rounds, step by step. -/
@[expose] def inStep (rounds : Nat) : List (RingEvent 3 1) :=
  (List.range (rounds - 1)).flatMap (fun _ =>
    [x 0, x 0, x 0, x 1, x 1, x 1, x 2, x 2, x 2, l 0, l 1, l 2, a 0, a 1, a 2, x 0, x 0, x 1,
     x 1, x 2, x 2]) ++ [x 0, x 1, x 2]

/-- The outputs of a run, if it is one and comes to a state where no event can happen. -/
@[expose] def skippedOutputs (rule : Rule) (owner : Fin len → Fin 3) (left right : Option Nat)
    (rounds : Nat) : Option (List (List (List Rat))) :=
  (endOf (rulesOf rule owner left right equal) (inStep rounds)
    (startOf rule owner left right equal skipV fun _ => [])).map fun net =>
      net.outputs.map (·.map Vector.toList)

/-- One run with other outputs refutes the claim. -/
theorem SkipsComputeAttention.refute {rule} {owner : Fin len → Fin 3} (left right : Option Nat)
    (rounds : Nat)
    (h : (skippedOutputs rule owner left right rounds).any
      (· != (outputsBy owner left right equal equal skipV).map (·.map Vector.toList))) :
    ¬ SkipsComputeAttention rule owner := by
  intro claim
  unfold skippedOutputs at h
  rw [Option.any_map] at h
  obtain ⟨net, ended, h⟩ := Option.any_eq_true _ _ |>.mp h
  obtain ⟨run, stuck⟩ := endOf_some ended
  refine (bne_iff_ne.mp h) ?_
  rw [claim left right equal equal skipV _ _ net run stuck]

/-! ## Shards -/

/-- Device 0 holds the places 0, 1, 10 and 11, device 1 2, 3, 8 and 9, device 2 those from 4 to
7. -/
@[expose] def inZigzag : Fin 12 → Fin 3 := zigzagOwner (by decide)

/-- Device i holds four places, one after the other. -/
@[expose] def inStretches : Fin 12 → Fin 3 := contiguousOwner (by decide)

/-- Device i holds the places i and i + 3. -/
@[expose] def inStripes : Fin 6 → Fin 3 := stripedOwner (by decide)

/-- Device 0 holds the places 0 to 7, device 1 none, device 2 the last four. -/
@[expose] def uneven : Fin 12 → Fin 3 := fun j => if j.val < 8 then 0 else 2

/-- In contiguous shards a query that sees itself and one key more needs its neighbour alone: one
round less. In zigzag the queries of device 0 need the keys of device 1, two rounds on. -/
theorem rounds_of_window :
    neededRounds (byBounds.meet inStretches (some 1) (some 0)) = 2
      ∧ neededRounds (byBounds.meet inZigzag (some 1) (some 0)) = 3
      ∧ neededRounds (byBounds.meet inStripes (some 0) (some 0)) = 1
      ∧ neededRounds (byBounds.meet uneven (some 0) (some 0)) = 1 := by
  decide +kernel

/-- With these shards runs of the rule of the Spec that leave something out are right. -/
theorem byBounds_runs :
    skippedOutputs byBounds inZigzag (some 1) (some 0) 3
        = some ((outputsBy inZigzag (some 1) (some 0) equal equal skipV).map (·.map Vector.toList))
      ∧ skippedOutputs byBounds inStretches (some 1) (some 0) 2
        = some ((outputsBy inStretches (some 1) (some 0) equal equal skipV).map
          (·.map Vector.toList)) := by
  decide +kernel

/-! ## Rules -/

/-- A rule by the runs of two shards. -/
@[expose] def byRuns (sees : Option Nat → Option Nat → Stretch → Stretch → Bool) : Rule :=
  fun left right queries keys =>
    match runsOf 8 queries, runsOf 8 keys with
    | some ours, some theirs =>
      ours.any fun run => theirs.any fun other => sees left right run other
    | _, _ => true

/-- By bounds in which the last key of a run that its first query sees counts as unseen: off by
one. -/
@[expose] def offByOne : Rule := byRuns fun left right queries keys =>
  let distance : Int := (queries.first : Int) - keys.first
  let least := leastApart left (max queries.step keys.step) distance
  queries.sees left right 0 (max queries.step keys.step) keys &&
    least.all fun first => decide (first < (keys.size : Int) - 1)

/-- In zigzag query 10 lacks key 9, with which the second half of device 1 ends, and so on: each
device computes with its own keys alone, and there is one round. -/
theorem offByOne_refuted : ¬ SkipsComputeAttention offByOne inZigzag :=
  SkipsComputeAttention.refute (some 1) (some 0) 1 (by decide +kernel)

/-- As if the second half of zigzag followed the first. -/
@[expose] def asOneStretch : Rule := fun left right queries keys =>
  (Stretch.mk (queries.getD 0 0) queries.length 1).sees left right 0 1
    (Stretch.mk (keys.getD 0 0) keys.length 1)

/-- Under causality query 10, which stands at 2 then, lacks the keys from 4 to 7. -/
theorem asOneStretch_refuted : ¬ SkipsComputeAttention asOneStretch inZigzag :=
  SkipsComputeAttention.refute none (some 0) 3 (by decide +kernel)

/-- The window is not divided by the step of the runs. -/
@[expose] def undivided : Rule := byRuns fun left right queries keys =>
  queries.sees left right 0 1 keys

/-- In stripes query 3 lacks key 2. -/
theorem undivided_refuted : ¬ SkipsComputeAttention undivided inStripes :=
  SkipsComputeAttention.refute (some 1) (some 0) 3 (by decide +kernel)

/-! ## Rounds -/

/-- A device stops as soon as it has met what it needs, and the next gets nothing more: the rounds
are those that device 0 needs. -/
theorem firstDevice_refuted : ¬ ∀ meet : Fin 3 → Fin 3 → Bool, ∀ rounds, 0 < rounds →
    (∀ t, rounds ≤ t → t < 3 → meet 0 (source 0 t) = false) → neededRounds meet ≤ rounds := by
  intro claim
  have := claim (fun i j => decide (j ≤ i)) 1 (by decide) fun t h₁ h₂ => by
    obtain rfl | rfl : t = 1 ∨ t = 2 := by omega
    all_goals decide
  revert this
  decide

/-! ## Backward -/

/-- Under causality device i needs the keys of the devices up to it. -/
@[expose] def upTo (i j : Fin 3) : Bool := decide (j ≤ i)

/-- The backward pass of three devices under causality, of any computation with what is held. -/
@[expose] def causalBackward (take : Fin 3 → Fin 3 → BackwardState Rat 1 1 →
    Parcel Int Rat 1 1 → BackwardState Rat 1 1) :
    RingRules 3 3 (Parcel Int Rat 1 1) (BackwardState Rat 1 1) :=
  { sender := backwardSender 3, take := take, give := fun state => .sums state.sums, capacity := 0 }

/-- The causal mask. -/
@[expose] def causalMod : ScoreMod Int 3 3 := (Mask.causal .topLeft).toScoreMod

/-- Keys whose log-sum-exps are whole under causality: 2^0, 2^0 + 2^0, 2^0 + 2^0 + 2^1. -/
@[expose] def causalL : Vector (Option Int) 3 := #v[some 0, some 1, some 2]

/-- The computation of the Spec with what is held. -/
@[expose] def causalTake (i source : Fin 3) (state : BackwardState Rat 1 1)
    (held : Parcel Int Rat 1 1) : BackwardState Rat 1 1 :=
  takeParcel (fun x : Int => (x : Rat)) 1 causalMod (fun _ _ _ => 1) backwardQ (fun _ _ => 1)
    causalL backwardDO
    (rowDelta (attentionDropout 1 causalMod backwardQ backwardK backwardV fun _ _ => 1) backwardDO
      Vec.zero) oneEach oneEach i source state held

/-- Three rounds, step by step. -/
@[expose] def backwardInStep : List (RingEvent 3 3) :=
  let all (k : Nat) : List (RingEvent 3 3) :=
    (List.finRange 3).flatMap fun i => List.replicate k (.execute i)
  let pass (e : Fin 3) : List (RingEvent 3 3) :=
    (List.finRange 3).map (.leave e) ++ (List.finRange 3).map (.arrive e)
  all 6 ++ pass 0 ++ all 2
    ++ all 3 ++ pass 1 ++ all 3 ++ all 3 ++ pass 0 ++ all 2
    ++ all 1 ++ pass 1 ++ all 3 ++ all 3 ++ pass 2 ++ all 2

/-- The gradients of that run, if it is one and comes to a state where no event can happen. -/
@[expose] def causalGradients (take : Fin 3 → Fin 3 → BackwardState Rat 1 1 →
    Parcel Int Rat 1 1 → BackwardState Rat 1 1) :
    Option (List (List (List Rat) × Option (List (List Rat) × List (List Rat)))) :=
  (endOf (causalBackward take) backwardInStep
    (backwardStart (backwardProgram 3) backwardK backwardV oneEach oneEach fun _ =>
      Vector.replicate 4 (.sums ⟨[#v[0]], [#v[0]]⟩))).map fun net => shown net.gradients

/-- The gradients of the whole. -/
@[expose] def causalRight : List (List (List Rat) × Option (List (List Rat) × List (List Rat))) :=
  let g := vjpDropout 1 causalMod (fun _ _ _ => 1) backwardQ backwardK backwardV (fun _ _ => 1)
    (fun x : Int => (x : Rat)) backwardDO Vec.zero
  shown ((List.finRange 3).map fun i => ([g.dQ[i]], .sums ⟨[g.dK[i]], [g.dV[i]]⟩))

/-- Positive control: with zeros for keys that nobody sees they are right. -/
theorem zeros_right :
    (causalGradients (takeParcelMet upTo causalTake)).any (· == causalRight) := by
  decide +kernel

/-- Without the zeros a device passes on the sums of the round before, of other keys, once more. -/
theorem withoutZeros_wrong :
    (causalGradients (takeMet upTo causalTake)).any (· != causalRight) := by
  decide +kernel

end Attention.WrongVariants
