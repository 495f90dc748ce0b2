module

public import Attention.Proof.Ring.Ends

public section

/-! # The program of ring attention, over any payload -/

namespace Attention.Proof

open Spec

universe u v

variable {n : Nat} {α : Type u} {β : Type v} {rules : RingRules n 1 α β}

private theorem apart_rounds (rounds : Nat) (i : Fin n) : ∀ k t : Nat,
    Apart (fun _ _ => False) (fun _ _ => False)
      ((List.range' t k).flatMap (roundProgram rounds i))
  | 0, _ => trivial
  | k + 1, t => by
    rw [List.range'_succ, List.flatMap_cons, roundProgram]
    have rest := apart_rounds rounds i k (t + 1)
    have := slot_ne t
    split
    · refine ⟨by simp, by simp [this.symm], by simp, by simp [this], ?_⟩
      exact rest.mono (fun e x h => by simp at h; omega) fun e x h => by simp at h; omega
    · exact ⟨by simp, rest⟩

/-- A round: each device takes in what it holds, and then holds what the one before it held. -/
private theorem steps_round {rounds t : Nat} (ht : t + 1 < rounds)
    (hs : ∀ e i, rules.sender e i = before i) (more : Fin n → List (Instruction n 2 1))
    (B : Fin n → Vector α 2) (r : Fin n → β) :
    Steps rules 7 (fun i => ready (roundProgram rounds i t ++ more i) (B i) (r i))
      (fun i => ready (more i) ((B i).set (slot (t + 1)) (B (before i))[slot t])
        (rules.take i (source i t) (r i) (B i)[slot t])) := by
  have e : (Vec.ofFn fun _ => [] : Vector (List (Fin 2)) 1) = #v[[]] := by
    apply Vector.ext; intro j hj; simp
  simp only [roundProgram, if_pos ht, ready, List.cons_append, List.nil_append, e]
  refine .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .deliver 0 (to := following) (fun j => by rw [hs, before_following])
      (fun i => by rw [hs, following_before]) (fun i => rfl) (fun i => ⟨rfl, Nat.succ_pos _⟩)
      (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) ?_
  simp only [hs]
  exact .refl _

variable (rules) (held : Fin n → α) (initial : Fin n → β)

/-- The result of a device that has taken the first `k` of the shards that it meets, each as it was
at first with its owner. -/
@[expose] def resultAfter (i : Fin n) (k : Nat) : β :=
  (List.range k).foldl (fun r t => rules.take i (source i t) r (held (source i t))) (initial i)

variable {rules held initial}

private theorem resultAfter_succ (i : Fin n) (k : Nat) : resultAfter rules held initial i (k + 1)
    = rules.take i (source i k) (resultAfter rules held initial i k) (held (source i k)) := by
  simp [resultAfter, List.range_succ]

private theorem steps_rounds {rounds : Nat} (hs : ∀ e i, rules.sender e i = before i) :
    ∀ k t : Nat, t + k + 1 = rounds → ∀ B : Fin n → Vector α 2,
      (∀ i, (B i)[slot t] = held (source i t)) →
      ∃ last : Fin n → Vector α 2, Steps rules (7 * k + 1)
        (fun i => ready ((List.range' t (k + 1)).flatMap (roundProgram rounds i)) (B i)
          (resultAfter rules held initial i t))
        (fun i => ready [] (last i) (resultAfter rules held initial i rounds))
  | 0, t, h, B, hB => ⟨B, by
    refine .execute (fun i => ?_) (.refl _)
    have : ¬ t + 1 < rounds := by omega
    have hB := hB i
    simp only [Fin.getElem_fin] at hB
    subst h
    simp [roundProgram, ready, Node.execute, resultAfter_succ, hB]⟩
  | k + 1, t, h, B, hB => by
    obtain ⟨last, rest⟩ := steps_rounds (rounds := rounds) hs k (t + 1) (by omega)
      (fun i => (B i).set (slot (t + 1)) (B (before i))[slot t]) fun i => by
        simpa [source] using hB (before i)
    refine ⟨last, ?_⟩
    have first := steps_round (t := t) (by omega : t + 1 < rounds) hs
      (fun i => (List.range' (t + 1) (k + 1)).flatMap (roundProgram rounds i)) B
      (fun i => resultAfter rules held initial i t)
    simp only [hB, ← resultAfter_succ] at first
    simp only [hB] at rest
    have := first.trans rest
    have e : 7 + (7 * k + 1) = 7 * (k + 1) + 1 := by omega
    rw [e] at this
    simpa only [List.range'_succ, List.flatMap_cons] using this

/-- **ring-net-consumes**: every run of the devices has at most these many events, and where no
event can happen, every program is done, no message is on its way, and each device has computed once
with what each of the devices that it meets held at first, as that device's. -/
theorem ring_net_consumes {rounds : Nat} (hs : ∀ e i, rules.sender e i = before i)
    {spare : Fin n → α} {events : List (RingEvent n 1)} {net : RingNet n 2 1 α β}
    (hr : 0 < rounds)
    (run : (RingNet.start (ringProgram rounds) (fun i => #v[held i, spare i]) initial).run rules
      events = some net) :
    events.length ≤ n * (7 * rounds - 6)
      ∧ ((∀ event, net.after rules event = none) → ∀ i : Fin n,
        net.nodes[i].rest = [] ∧ net.nodes[i].sends[(0 : Fin 1)] = []
          ∧ net.nodes[i].receives[(0 : Fin 1)] = [] ∧ net.channels[i][(0 : Fin 1)] = []
          ∧ net.nodes[i].result = resultAfter rules held initial i rounds) := by
  obtain ⟨k, rfl⟩ : ∃ k, rounds = k + 1 := ⟨rounds - 1, by omega⟩
  obtain ⟨last, steps⟩ := steps_rounds (rounds := k + 1) (held := held) (initial := initial) hs
    k 0 (by omega) (fun i => #v[held i, spare i]) fun i => rfl
  have := ends_of_steps (fun e i j h => before_injective (by rwa [hs, hs] at h))
    (fun i => by
      rw [ringProgram, List.range_eq_range']
      exact apart_rounds (k + 1) i (k + 1) 0) (by
        simpa only [ringProgram, List.range_eq_range'] using steps)
    (fun i => ⟨rfl, fun e => by simp [ready]⟩) run
  have e : 7 * (k + 1) - 6 = 7 * k + 1 := by omega
  rw [e]
  refine ⟨this.1, fun stuck i => ?_⟩
  rw [(this.2 stuck).2]
  simp [still, ready]

end Attention.Proof
