module

public import Attention.Spec.RingNet

public section

/-! # Every run of a ring of devices ends

Each event makes a number smaller, the number of those that can still happen. -/

namespace Attention.Proof

open Spec

universe u v

variable {n : Nat} {α : Type u} {β : Type v}

/-! ## Every run ends -/

private theorem sum_set {γ : Type u} (f : γ → Nat) (x : γ) : ∀ (xs : List γ) (i : Nat)
    (h : i < xs.length), ((xs.set i x).map f).sum + f xs[i] = (xs.map f).sum + f x
  | [], i, h => absurd h (by simp)
  | y :: ys, 0, _ => by simp; omega
  | y :: ys, i + 1, h => by
    have := sum_set f x ys i (by simpa using h)
    simp only [List.set_cons_succ, List.map_cons, List.sum_cons, List.getElem_cons_succ]
    omega

/-- How many events an instruction brings about at most: a send leaves and arrives. -/
private def cost : Instruction n → Nat
  | .send _ => 3
  | _ => 1

/-- How many events can still happen at most. -/
private def Node.steps (node : Node n α β) : Nat :=
  (node.rest.map cost).sum + 2 * node.sends.length

private def RingNet.steps (net : RingNet n α β) : Nat :=
  (net.nodes.toList.map Node.steps).sum + (net.channels.toList.map List.length).sum

private theorem nodes_set (nodes : Vector (Node n α β) n) (i : Fin n) (node : Node n α β) :
    ((nodes.set i node).toList.map Node.steps).sum + Node.steps nodes[i]
      = (nodes.toList.map Node.steps).sum + Node.steps node := by
  have := sum_set Node.steps node nodes.toList i (by simp)
  simpa [-List.map_set, Vector.toList_set] using this

private theorem channels_set (channels : Vector (List α) n) (i : Fin n) (xs : List α) :
    ((channels.set i xs).toList.map List.length).sum + channels[i].length
      = (channels.toList.map List.length).sum + xs.length := by
  have := sum_set List.length xs channels.toList i (by simp)
  simpa [-List.map_set, Vector.toList_set] using this

variable {take : Fin n → Fin n → β → α → β} {capacity : Nat}

private theorem steps_execute {i : Fin n} {node next : Node n α β}
    (h : node.execute take i = some next) : Node.steps next < Node.steps node := by
  unfold Node.execute at h
  unfold Node.steps
  split at h
  · cases h
  · rename_i e
    rw [e]
    split at h
    · cases h; simp [cost]; omega
    · cases h; simp [cost]
    · cases h; simp [cost]
    · split at h <;> cases h; simp [cost]
    · split at h <;> cases h; simp [cost]

private theorem steps_after {net next : RingNet n α β} {event : RingEvent n}
    (h : net.after take capacity event = some next) : RingNet.steps next < RingNet.steps net := by
  unfold RingNet.steps
  cases event with
  | execute i =>
    simp only [RingNet.after] at h
    split at h
    · cases h
    · rename_i node e
      cases h
      have := nodes_set net.nodes i node
      have := steps_execute e
      dsimp only
      omega
  | leave i =>
    simp only [RingNet.after] at h
    split at h
    · cases h
    · rename_i buffer sends e
      split at h <;> cases h
      have h₁ := nodes_set net.nodes (before i) { net.nodes[before i] with sends := sends }
      have h₂ := channels_set net.channels i
        (net.channels[i] ++ [net.nodes[before i].buffers[buffer]])
      simp only [Node.steps, e, List.length_cons, List.length_append, List.length_nil] at h₁ h₂ ⊢
      omega
  | arrive i =>
    simp only [RingNet.after] at h
    split at h
    · cases h
    · rename_i buffer receives e
      split at h
      · cases h
      · rename_i message messages e'
        cases h
        have h₁ := nodes_set net.nodes i { net.nodes[i] with
          receives := receives, buffers := net.nodes[i].buffers.set buffer message }
        have h₂ := channels_set net.channels i messages
        simp only [Node.steps, e', List.length_cons] at h₁ h₂ ⊢
        omega

private theorem length_run : ∀ (events : List (RingEvent n)) {net last : RingNet n α β},
    net.run take capacity events = some last →
      events.length + RingNet.steps last ≤ RingNet.steps net
  | [], _, _, h => by cases h; simp
  | event :: events, net, last, h => by
    simp only [RingNet.run] at h
    split at h
    · cases h
    · rename_i next e
      have := steps_after e
      have := length_run events h
      simp only [List.length_cons]; omega

private theorem sum_map_const {γ : Type u} (f : γ → Nat) (k : Nat) : ∀ (xs : List γ),
    (∀ x ∈ xs, f x = k) → (xs.map f).sum = xs.length * k
  | [], _ => by simp
  | x :: xs, h => by
    have := sum_map_const f k xs fun y hy => h y (by simp [hy])
    simp only [List.map_cons, List.sum_cons, List.length_cons, this, h x (by simp), Nat.succ_mul]
    omega

private theorem cost_rounds (i : Fin n) (rounds : Nat) : ∀ k t : Nat, t + k + 1 = rounds →
    (((List.range' t (k + 1)).flatMap (roundProgram rounds i)).map cost).sum = 7 * k + 1
  | 0, t, h => by simp [roundProgram, cost, ← h]
  | k + 1, t, h => by
    have := cost_rounds i rounds k (t + 1) (by omega)
    rw [List.range'_succ, List.flatMap_cons, List.map_append, List.sum_append_nat, this,
      roundProgram, if_pos (by omega)]
    simp [cost]
    omega

/-- **ring-net-ends**: no run of the devices of a ring has more events than these. -/
theorem ring_net_ends {rounds : Nat} {held spare : Fin n → α} {initial : Fin n → β}
    {events : List (RingEvent n)} {net : RingNet n α β} (hr : 0 < rounds)
    (h : (RingNet.start (ringProgram rounds) held spare initial).run take capacity events
      = some net) : events.length ≤ n * (7 * rounds - 6) := by
  have := length_run events h
  obtain ⟨k, rfl⟩ : ∃ k, rounds = k + 1 := ⟨rounds - 1, by omega⟩
  have e : RingNet.steps (RingNet.start (ringProgram (k + 1)) held spare initial)
      = n * (7 * k + 1) := by
    unfold RingNet.steps
    rw [sum_map_const _ (7 * k + 1), sum_map_const _ 0]
    · simp
    · intro xs hx
      simp [RingNet.start, Vec.ofFn] at hx
      obtain ⟨_, rfl⟩ := hx
      rfl
    · intro node hn
      simp [RingNet.start, Vec.ofFn] at hn
      obtain ⟨i, rfl⟩ := hn
      simp [Node.steps, ringProgram, List.range_eq_range', cost_rounds i (k + 1) k 0 (by omega)]
  have : 7 * (k + 1) - 6 = 7 * k + 1 := by omega
  rw [this]
  omega

end Attention.Proof
