module

public import Attention.Proof.Ring.Ends
public import Attention.Spec.RingNetBackward

public section

/-! # The program of the backward pass, over any payload -/

namespace Attention.Proof

open Spec

universe u v

variable {n : Nat} {α : Type u} {β : Type v}

/-! ## Buffers -/

private theorem keySlot_ne (t : Nat) : keySlot t ≠ keySlot (t + 1) := by
  simp only [keySlot, ne_eq, Fin.mk.injEq]; omega

private theorem sumSlot_ne (t : Nat) : sumSlot t ≠ sumSlot (t + 1) := by
  simp only [sumSlot, ne_eq, Fin.mk.injEq]; omega

private theorem sumSlot_add_two (t : Nat) : sumSlot (t + 2) = sumSlot t := by
  simp only [sumSlot, Fin.mk.injEq]; omega

private theorem sumSlot_ne_keySlot (s t : Nat) : sumSlot s ≠ keySlot t := by
  simp only [sumSlot, keySlot, ne_eq, Fin.mk.injEq]; omega

private theorem homeSlot_ne_sumSlot (t : Nat) : homeSlot ≠ sumSlot t := fun h => by
  have : 4 = 2 + t % 2 := congrArg Fin.val h
  omega

private theorem apart_backwardRounds (rounds : Nat) (i : Fin n) : ∀ k t : Nat, t + 1 + k = rounds →
    Apart (fun e x => e = 1 ∧ x = sumSlot t) (fun e x => e = 1 ∧ x = sumSlot (t + 1))
      ((List.range' (t + 1) k).flatMap (backwardRound rounds i))
  | 0, _, _ => trivial
  | k + 1, t, h => by
    rw [List.range'_succ, List.flatMap_cons, backwardRound]
    have rest := apart_backwardRounds rounds i k (t + 1) (by omega)
    have h₁ := keySlot_ne (t + 1)
    have h₂ := sumSlot_ne (t + 1)
    have h₃ := fun s t => sumSlot_ne_keySlot s t
    have h₄ := fun t => homeSlot_ne_sumSlot t
    have h₅ := fun s t => (sumSlot_ne_keySlot s t).symm
    split
    · simp only [Nat.add_one_ne_zero, if_false, List.cons_append, List.nil_append]
      refine ⟨?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_,
        rest.mono (fun e x h => by simp at h; grind) fun e x h => by simp at h; grind⟩
      all_goals simp <;> grind
    · have : k = 0 := by omega
      subst this
      simp only [Nat.add_one_ne_zero, if_false, List.cons_append, List.nil_append]
      refine ⟨?_, ?_, ?_, ?_, ?_, ?_, ?_, trivial⟩
      all_goals simp <;> grind

private theorem apart_backwardProgram (rounds : Nat) (i : Fin n) :
    Apart (fun _ _ => False) (fun _ _ => False) (backwardProgram rounds i) := by
  obtain rfl | ⟨k, rfl⟩ : rounds = 0 ∨ ∃ k, rounds = k + 1 := by
    cases rounds <;> simp
  · trivial
  · rw [backwardProgram, List.range_eq_range', List.range'_succ, List.flatMap_cons, backwardRound]
    have rest := apart_backwardRounds (k + 1) i k 0 (by omega)
    have h₁ := keySlot_ne 0
    have h₂ := sumSlot_ne 0
    have h₃ := fun s t => sumSlot_ne_keySlot s t
    have h₅ := fun s t => (sumSlot_ne_keySlot s t).symm
    split
    · simp only [if_true, List.cons_append, List.nil_append]
      refine ⟨?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_,
        rest.mono (fun e x h => by simp at h; grind) fun e x h => by simp at h; grind⟩
      all_goals simp <;> grind
    · have : k = 0 := by omega
      subst this
      simp only [if_true, List.cons_append, List.nil_append]
      exact ⟨by simp, by simp, by simp, trivial⟩

/-! ## Rounds -/

variable (rules : RingRules n 3 α β) (held : Fin n → α) (initial : Fin n → β)

/-- The result of a device after round `t`: it has taken in the keys that it holds, and then what
the device before it had found of them. -/
@[expose] def found : Nat → Fin n → β
  | 0, i => rules.take i i (initial i) (held i)
  | t + 1, i => rules.take i (source i (t + 1))
      (rules.take i (source i (t + 1)) (found t i) (held (source i (t + 1))))
      (rules.give (found t (before i)))

variable {rules held initial}

/-- It depends on the computations of the rules alone. -/
theorem found_congr {other : RingRules n 3 α β} (ht : rules.take = other.take)
    (hg : rules.give = other.give) :
    ∀ (t : Nat) (i : Fin n), found rules held initial t i = found other held initial t i
  | 0, i => by rw [found, found, ht]
  | t + 1, i => by
    rw [found, found, found_congr ht hg t i, found_congr ht hg t (before i), ht, hg]

/-- A device whose sums of round `t` are on their way. -/
private def pending (rest : List (Instruction n 5 3)) (t : Nat) (buffers : Vector α 5)
    (result : β) : Node n 5 3 α β :=
  ⟨rest, buffers, #v[[], [sumSlot t], []], #v[[], [sumSlot (t + 1)], []], result⟩

/-- After round `t` each device holds the keys of the next round, and what it passes on. -/
private structure Held (rules : RingRules n 3 α β) (held : Fin n → α) (initial : Fin n → β)
    (t : Nat) (B : Fin n → Vector α 5) : Prop where
  keys : ∀ i, (B i)[keySlot (t + 1)] = held (source i (t + 1))
  sums : ∀ i, (B i)[sumSlot t] = rules.give (found rules held initial t i)

private theorem get_set {γ : Type u} {m : Nat} (x : Vector γ m) (i j : Fin m) (y : γ) :
    (x.set i y)[j] = if j = i then y else x[j] := by
  simp only [Fin.getElem_fin, Vector.getElem_set, Fin.ext_iff, eq_comm]

private theorem nothing_posted :
    (Vec.ofFn fun _ => [] : Vector (List (Fin 5)) 3) = #v[[], [], []] := by
  apply Vector.ext; intro j hj; simp; grind

private theorem steps_firstRound {rounds : Nat} (hr : 0 + 1 < rounds)
    (hs : ∀ i, rules.sender 0 i = before i) (more : Fin n → List (Instruction n 5 3))
    (B : Fin n → Vector α 5) (hB : ∀ i, (B i)[keySlot 0] = held i) :
    ∃ (B' : Fin n → Vector α 5) (r' : Fin n → β),
    Steps rules 10 (fun i => ready (backwardRound rounds i 0 ++ more i) (B i) (initial i))
        (fun i => pending (more i) 0 (B' i) (r' i))
      ∧ (∀ i, r' i = found rules held initial 0 i) ∧ Held rules held initial 0 B' := by
  simp only [backwardRound, if_pos hr, if_true, ready, List.cons_append, List.nil_append,
    nothing_posted, pending]
  have h₁ := sumSlot_ne_keySlot
  have h₂ := fun s t => (sumSlot_ne_keySlot s t).symm
  have h₃ := keySlot_ne 0
  refine ⟨_, _, .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .deliver 0 (to := following) (fun j => by rw [hs, before_following])
      (fun i => by rw [hs, following_before]) (fun i => rfl) (fun i => ⟨rfl, Nat.succ_pos _⟩)
      (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .refl _, fun i => ?_, fun i => ?_,
    fun i => ?_⟩
  · simp [hB, found, source]
  · simp [-Fin.getElem_fin, get_set, hs, h₂, hB, source]
  · simp [-Fin.getElem_fin, get_set, h₁, hB, found, source]

private theorem steps_backwardRound {rounds t : Nat} (hr : t + 1 + 1 < rounds)
    (hs : ∀ i, rules.sender 0 i = before i) (hs' : ∀ i, rules.sender 1 i = before i)
    (more : Fin n → List (Instruction n 5 3)) (B : Fin n → Vector α 5)
    (hB : Held rules held initial t B) : ∃ (B' : Fin n → Vector α 5) (r' : Fin n → β),
    Steps rules 15 (fun i => pending (backwardRound rounds i (t + 1) ++ more i) t (B i)
          (found rules held initial t i))
        (fun i => pending (more i) (t + 1) (B' i) (r' i))
      ∧ (∀ i, r' i = found rules held initial (t + 1) i)
      ∧ Held rules held initial (t + 1) B' := by
  simp only [backwardRound, if_pos hr, Nat.add_one_ne_zero, if_false, List.cons_append,
    List.nil_append, pending]
  have h₁ := sumSlot_ne_keySlot
  have h₂ := fun s t => (sumSlot_ne_keySlot s t).symm
  have h₃ := keySlot_ne (t + 1)
  refine ⟨_, _, .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .deliver 1 (to := following) (fun j => by rw [hs', before_following])
      (fun i => by rw [hs', following_before]) (fun i => rfl) (fun i => ⟨rfl, Nat.succ_pos _⟩)
      (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .deliver 0 (to := following) (fun j => by rw [hs, before_following])
      (fun i => by rw [hs, following_before]) (fun i => rfl) (fun i => ⟨rfl, Nat.succ_pos _⟩)
      (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .refl _, fun i => ?_, fun i => ?_,
    fun i => ?_⟩
  · simp [-Fin.getElem_fin, get_set, hs', hB.keys, hB.sums, found]
  · simp [-Fin.getElem_fin, get_set, hs, h₂, hB.keys, source]
  · simp [-Fin.getElem_fin, get_set, h₁, hs', hB.keys, hB.sums, found]

private theorem steps_lastRound {rounds t : Nat} (hr : t + 1 + 1 = rounds) {home : Fin n → Fin n}
    (hs : ∀ i, rules.sender 1 i = before i) (hs' : ∀ i, rules.sender 2 (home i) = i)
    (hs'' : ∀ i, home (rules.sender 2 i) = i) (B : Fin n → Vector α 5)
    (hB : Held rules held initial t B) : ∃ (B' : Fin n → Vector α 5) (r' : Fin n → β),
    Steps rules 13 (fun i => pending (backwardRound rounds i (t + 1)) t (B i)
          (found rules held initial t i))
        (fun i => ready [] (B' i) (r' i))
      ∧ (∀ i, r' i = found rules held initial (t + 1) i)
      ∧ ∀ i, (B' i)[homeSlot]
        = rules.give (found rules held initial (t + 1) (rules.sender 2 i)) := by
  have hr' : ¬ t + 1 + 1 < rounds := by omega
  simp only [backwardRound, if_neg hr', Nat.add_one_ne_zero, if_false, List.cons_append,
    List.nil_append, ready, nothing_posted, pending]
  refine ⟨_, _, .execute (fun i => rfl) <|
    .deliver 1 (to := following) (fun j => by rw [hs, before_following])
      (fun i => by rw [hs, following_before]) (fun i => rfl) (fun i => ⟨rfl, Nat.succ_pos _⟩)
      (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .execute (fun i => rfl) <|
    .deliver 2 (to := home) hs' hs'' (fun i => rfl) (fun i => ⟨rfl, Nat.succ_pos _⟩)
      (fun i => rfl) <|
    .execute (fun i => rfl) <| .execute (fun i => rfl) <| .refl _, fun i => ?_, fun i => ?_⟩
  · simp [-Fin.getElem_fin, get_set, hs, hB.keys, hB.sums, found]
  · simp [-Fin.getElem_fin, get_set, hs, hB.keys, hB.sums, found]

private theorem steps_backwardRounds {rounds : Nat} {home : Fin n → Fin n}
    (hs : ∀ i, rules.sender 0 i = before i) (hs' : ∀ i, rules.sender 1 i = before i)
    (hh : ∀ i, rules.sender 2 (home i) = i) (hh' : ∀ i, home (rules.sender 2 i) = i) :
    ∀ k t : Nat, t + k + 2 = rounds → ∀ B : Fin n → Vector α 5, Held rules held initial t B →
      ∃ last : Fin n → Vector α 5, Steps rules (15 * k + 13)
          (fun i => pending ((List.range' (t + 1) (k + 1)).flatMap (backwardRound rounds i)) t (B i)
            (found rules held initial t i))
          (fun i => ready [] (last i) (found rules held initial (rounds - 1) i))
        ∧ ∀ i, (last i)[homeSlot]
          = rules.give (found rules held initial (rounds - 1) (rules.sender 2 i))
  | 0, t, h, B, hB => by
    obtain ⟨B', r', steps, hr, hB'⟩ := steps_lastRound (by omega) hs' hh hh' B hB
    have : rounds - 1 = t + 1 := by omega
    obtain rfl : r' = found rules held initial (t + 1) := funext hr
    exact ⟨B', by simpa [this] using steps, by rw [this]; exact hB'⟩
  | k + 1, t, h, B, hB => by
    obtain ⟨B', r', steps, hr, hB'⟩ := steps_backwardRound (rounds := rounds) (by omega) hs hs'
      (fun i => (List.range' (t + 1 + 1) (k + 1)).flatMap (backwardRound rounds i)) B hB
    obtain rfl : r' = found rules held initial (t + 1) := funext hr
    obtain ⟨last, rest, home⟩ := steps_backwardRounds (rounds := rounds) hs hs' hh hh' k
      (t + 1) (by omega) B' hB'
    refine ⟨last, ?_, home⟩
    have := steps.trans rest
    have e : 15 + (15 * k + 13) = 15 * (k + 1) + 13 := by omega
    rw [e] at this
    simpa only [List.range'_succ, List.flatMap_cons] using this

/-- **ring-net-backward-consumes**: every run of the backward pass has at most these many events,
and where no event can happen, every program is done, no message is on its way, each device has
taken in the keys of each device that it meets once, and what comes home is what the device that met
the keys last had found of them, with all that those before it had. -/
theorem ring_net_backward_consumes {rounds : Nat} (hr : 0 < rounds) {home : Fin n → Fin n}
    (hs : ∀ i, rules.sender 0 i = before i) (hs' : ∀ i, rules.sender 1 i = before i)
    (hh : ∀ i, rules.sender 2 (home i) = i) (hh' : ∀ i, home (rules.sender 2 i) = i)
    (alone : rounds = 1 → ∀ i, rules.sender 2 i = i)
    {buffers : Fin n → Vector α 5} (own : ∀ i, (buffers i)[keySlot 0] = held i)
    {events : List (RingEvent n 3)} {net : RingNet n 5 3 α β}
    (run : (RingNet.start (backwardProgram rounds) buffers initial).run rules events = some net) :
    events.length ≤ n * (15 * rounds - 7)
      ∧ ((∀ event, net.after rules event = none) → ∀ i : Fin n,
        net.nodes[i].rest = [] ∧ (∀ e : Fin 3, net.nodes[i].sends[e] = []
            ∧ net.nodes[i].receives[e] = [] ∧ net.channels[i][e] = [])
          ∧ net.nodes[i].result = found rules held initial (rounds - 1) i
          ∧ net.nodes[i].buffers[homeSlot]
            = rules.give (found rules held initial (rounds - 1) (rules.sender 2 i))) := by
  suffices ∃ (k : Nat) (last : Fin n → Vector α 5), k ≤ 15 * rounds - 7 ∧ Steps rules k
      (fun i => ready (backwardProgram rounds i) (buffers i) (initial i))
      (fun i => ready [] (last i) (found rules held initial (rounds - 1) i))
      ∧ ∀ i, (last i)[homeSlot]
        = rules.give (found rules held initial (rounds - 1) (rules.sender 2 i)) by
    obtain ⟨k, last, hk, steps, hl⟩ := this
    have injective : ∀ e i j, rules.sender e i = rules.sender e j → i = j := by
      intro e i j h
      obtain rfl | rfl | rfl : e = 0 ∨ e = 1 ∨ e = 2 := by omega
      · exact before_injective (by rwa [hs, hs] at h)
      · exact before_injective (by rwa [hs', hs'] at h)
      · rw [← hh' i, h, hh']
    have := ends_of_steps injective (apart_backwardProgram rounds) steps
      (fun i => ⟨rfl, fun e => by simp [ready]⟩) run
    refine ⟨Nat.le_trans this.1 (Nat.mul_le_mul_left n hk), fun stuck i => ?_⟩
    rw [(this.2 stuck).2]
    have := hl i
    simp only [Fin.getElem_fin] at this
    simp [still, ready, this]
  obtain rfl | ⟨k, rfl⟩ : rounds = 1 ∨ ∃ k, rounds = k + 2 := by
    rcases rounds with _ | _ | k
    · omega
    · exact .inl rfl
    · exact .inr ⟨k, rfl⟩
  · refine ⟨2, fun i => (buffers i).set homeSlot (rules.give (found rules held initial 0 i)),
      by omega, ?_, fun i => ?_⟩
    · have e : ∀ i : Fin n, backwardProgram 1 i = [.consume (keySlot 0) i, .store homeSlot] :=
        fun i => rfl
      simp only [e, found, ← own]
      exact .execute (fun i => rfl) <| .execute (fun i => rfl) <| .refl _
    · simp [alone rfl]
  · obtain ⟨B, r, steps, hr, hB⟩ := steps_firstRound (rounds := k + 2) (rules := rules)
      (held := held) (initial := initial) (by omega) hs
      (fun i => (List.range' (0 + 1) (k + 1)).flatMap (backwardRound (k + 2) i)) buffers own
    obtain rfl : r = found rules held initial 0 := funext hr
    obtain ⟨last, rest, hl⟩ := steps_backwardRounds (rounds := k + 2) hs hs' hh hh' k 0
      (by omega) B hB
    refine ⟨10 + (15 * k + 13), last, by omega, ?_, hl⟩
    have := steps.trans rest
    simpa only [backwardProgram, List.range_eq_range', List.range'_succ, List.flatMap_cons]
      using this

end Attention.Proof
