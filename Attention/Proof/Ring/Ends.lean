module

public import Attention.Proof.Ring.Confluence
public import Attention.Proof.Ring.Lockstep

public section

/-! # From one run of a ring to every run -/

namespace Attention.Proof

open Spec

universe u v

variable {n b c : Nat} {α : Type u} {β : Type v} {rules : RingRules n c α β}

/-- A device with nothing posted. -/
@[expose] def ready (rest : List (Instruction n b c)) (buffers : Vector α b) (result : β) :
    Node n b c α β :=
  ⟨rest, buffers, Vec.ofFn fun _ => [], Vec.ofFn fun _ => [], result⟩

private theorem start_apart {program : Fin n → List (Instruction n b c)}
    {buffers : Fin n → Vector α b} {result : Fin n → β}
    (h : ∀ i, Apart (fun _ _ => False) (fun _ _ => False) (program i)) :
    NetApart (RingNet.start program buffers result) := by
  intro i
  simp only [RingNet.start, Fin.getElem_fin, Vec.getElem_ofFn]
  constructor
  · exact (h i).mono (fun e x hx => by simp at hx) fun e x hx => by simp at hx
  · intro e f x hx; simp at hx
  · intro e f x hx; simp at hx

private theorem still_stuck {node : Fin n → Node n b c α β}
    (h : ∀ i, (node i).rest = [] ∧ ∀ e : Fin c, (node i).sends[e] = [])
    (event : RingEvent n c) : (still node).after rules event = none := by
  cases event with
  | execute i => simp [RingNet.after, still, Node.execute, (h i).1]
  | leave e i =>
    have := (h (rules.sender e i)).2 e
    simp only [Fin.getElem_fin] at this
    simp [RingNet.after, still, Node.leave, this]
  | arrive e i => simp [RingNet.after, still]

/-- Where no program touches a buffer in flight and the lockstep comes to the end of all programs in
`k` events for each device, every run has at most as many, and ends there. -/
theorem ends_of_steps (hs : ∀ e i j, rules.sender e i = rules.sender e j → i = j)
    {program : Fin n → List (Instruction n b c)} {buffers : Fin n → Vector α b}
    {result : Fin n → β} {last : Fin n → Node n b c α β} {k : Nat}
    (apart : ∀ i, Apart (fun _ _ => False) (fun _ _ => False) (program i))
    (steps : Steps rules k (fun i => ready (program i) (buffers i) (result i)) last)
    (done : ∀ i, (last i).rest = [] ∧ ∀ e : Fin c, (last i).sends[e] = [])
    {events : List (RingEvent n c)} {net : RingNet n b c α β}
    (run : (RingNet.start program buffers result).run rules events = some net) :
    events.length ≤ n * k
      ∧ ((∀ event, net.after rules event = none) → events.length = n * k ∧ net = still last) := by
  obtain ⟨one, length, one_run⟩ := steps
  obtain ⟨more, rest, total⟩ := ring_net_confluent hs (start_apart apart) one_run
    (still_stuck done) run
  refine ⟨by omega, fun stuck => ?_⟩
  cases more with
  | nil => cases rest; exact ⟨by simpa [length] using total, rfl⟩
  | cons x more => simp [RingNet.run, stuck x] at rest

/-! ## The ring -/

/-- The device before the following one. -/
theorem before_following (i : Fin n) : before (following i) = i := by
  simp only [before, following]; ext; simp only; split <;> split <;> omega

/-- The device that follows the one before. -/
theorem following_before (i : Fin n) : following (before i) = i := by
  simp only [before, following]; ext; simp only; split <;> split <;> omega

/-- No two devices have the same one before them. -/
theorem before_injective {i j : Fin n} (h : before i = before j) : i = j := by
  rw [← following_before i, h, following_before]

/-- The buffers of two rounds that follow each other. -/
theorem slot_ne (t : Nat) : slot t ≠ slot (t + 1) := by
  simp only [slot, ne_eq, Fin.mk.injEq]; omega

end Attention.Proof
