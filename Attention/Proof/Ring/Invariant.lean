module

public import Attention.Spec.RingNet

public section

/-! # Where the devices of a ring can be

The state of the ring is determined by four numbers for each device: its round, how many
instructions of the round it has done, how many of its messages have left, and how many messages
have arrived at it. From this follows that no run is stuck before its end. -/

namespace Attention.Proof

open Spec

universe u v

variable {n : Nat} {α : Type u} {β : Type v}

/-! ## The ring -/

theorem before_injective {i j : Fin n} (h : before i = before j) : i = j := by
  simp only [before, Fin.mk.injEq] at h
  ext
  split at h <;> split at h <;> omega

/-- Every device is before one. -/
theorem before_surjective (j : Fin n) : ∃ i : Fin n, before i = j :=
  ⟨⟨if j.val + 1 = n then 0 else j.val + 1, by split <;> omega⟩, by
    simp only [before]; ext; simp only; split <;> split <;> omega⟩

private theorem slot_ne (t : Nat) : (slot t).val ≠ (slot (t + 1)).val := by
  simp only [slot]; omega

/-! ## The invariant -/

/-- How far a device is. -/
structure Progress where
  /-- Its round. -/
  round : Nat
  /-- How many instructions of the round it has done. -/
  phase : Nat
  /-- How many of its messages have left. -/
  left : Nat
  /-- How many messages have arrived in its buffers. -/
  got : Nat

variable (rounds : Nat)

/-- How many sends the device has posted. -/
@[expose] def Progress.posted (p : Progress) : Nat :=
  p.round + if p.round + 1 < rounds ∧ 1 ≤ p.phase then 1 else 0

/-- How many receives the device has posted. -/
@[expose] def Progress.asked (p : Progress) : Nat :=
  p.round + if p.round + 1 < rounds ∧ 2 ≤ p.phase then 1 else 0

/-- How many shards the device has computed with. -/
@[expose] def Progress.consumed (p : Progress) : Nat :=
  p.round + if (p.round + 1 < rounds ∧ 3 ≤ p.phase) ∨ (p.round + 1 = rounds ∧ 1 ≤ p.phase) then 1
    else 0

/-- The device is at its end. -/
@[expose] def Progress.Done (p : Progress) : Prop := p.round + 1 = rounds ∧ p.phase = 1

private def code (i : Fin n) (t phase : Nat) : List (Instruction n) :=
  (roundProgram rounds i t).drop phase
    ++ (List.range' (t + 1) (rounds - (t + 1))).flatMap (roundProgram rounds i)

variable (take : Fin n → Fin n → β → α → β) (held : Fin n → α) (initial : Fin n → β)

/-- The result of a device that has taken the first `k` of the shards that it meets, each as it was
at first with its owner. -/
@[expose] def resultAfter (i : Fin n) (k : Nat) : β :=
  (List.range k).foldl (fun r t => take i (source i t) r (held (source i t))) (initial i)

/-- The device is as far as this. -/
private structure At (p : Progress) (i : Fin n) (node : Node n α β) : Prop where
  round_lt : p.round < rounds
  phase_le : p.phase ≤ if p.round + 1 < rounds then 4 else 1
  rest : node.rest = code rounds i p.round p.phase
  sends : node.sends = if p.left < p.posted rounds then [slot p.round] else []
  left_ge : p.round ≤ p.left
  left_le : p.left ≤ p.posted rounds
  waited : 4 ≤ p.phase → p.left = p.posted rounds
  receives : node.receives = if p.got < p.asked rounds then [slot (p.round + 1)] else []
  got_ge : p.round ≤ p.got
  got_le : p.got ≤ p.asked rounds
  now : node.buffers[slot p.round] = held (source i p.round)
  next : p.got = p.round + 1 → node.buffers[slot (p.round + 1)] = held (source i (p.round + 1))
  result : node.result = resultAfter take held initial i (p.consumed rounds)

/-- All devices are as far as this, and the messages on their way are those that have left and not
arrived. -/
private def Invariant (p : Fin n → Progress) (net : RingNet n α β) : Prop :=
  ∀ i, At rounds take held initial (p i) i net.nodes[i] ∧ (p i).got ≤ (p (before i)).left
    ∧ net.channels[i] = (List.range' (p i).got ((p (before i)).left - (p i).got)).map
        fun t => held (source (before i) t)

variable {rounds take held initial} {capacity : Nat} {i : Fin n} {p : Progress}

private theorem invariant_start (spare : Fin n → α) (h : 0 < rounds) :
    Invariant rounds take held initial (fun _ => ⟨0, 0, 0, 0⟩)
      (RingNet.start (ringProgram rounds) held spare initial) := by
  intro i
  refine ⟨⟨h, by simp, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_, ?_⟩, ?_, ?_⟩
  · obtain ⟨k, rfl⟩ : ∃ k, rounds = k + 1 := ⟨rounds - 1, by omega⟩
    simp [RingNet.start, ringProgram, code, List.range_eq_range', List.range'_succ]
  all_goals simp [RingNet.start, Progress.posted, Progress.asked, Progress.consumed, resultAfter,
    source, slot]

private theorem resultAfter_succ (k : Nat) : resultAfter take held initial i (k + 1)
    = take i (source i k) (resultAfter take held initial i k) (held (source i k)) := by
  simp [resultAfter, List.range_succ]

private theorem code_round {t : Nat} (h : t + 1 < rounds) (phase : Nat) :
    code rounds i t phase
      = [.send (slot t), .receive (slot (t + 1)), .consume (slot t) (source i t), .waitSends,
          .waitReceives].drop phase ++ code rounds i (t + 1) 0 := by
  have : rounds - (t + 1) = rounds - (t + 1 + 1) + 1 := by omega
  simp only [code, roundProgram, h, if_true, List.drop_zero]
  rw [this, List.range'_succ]
  simp [roundProgram]

private theorem code_last {t : Nat} (h : t + 1 = rounds) (phase : Nat) :
    code rounds i t phase = [.consume (slot t) (source i t)].drop phase := by
  subst h
  simp [code, roundProgram]

/-! ## The invariant is kept -/

private theorem at_execute {node next : Node n α β} (h : At rounds take held initial p i node)
    (e : node.execute take i = some next) :
    ∃ p' : Progress, p'.left = p.left ∧ p'.got = p.got ∧ At rounds take held initial p' i next := by
  obtain ⟨round, phase, left, got⟩ := p
  obtain ⟨h₁, h₂, h₃, h₄, h₅, h₆, h₇, h₈, h₉, h₁₀, h₁₁, h₁₂, h₁₃⟩ := h
  dsimp only [Progress.posted, Progress.asked, Progress.consumed] at *
  by_cases hr : round + 1 < rounds
  · have c := fun phase => code_round (i := i) hr phase
    have hn : ¬ round + 1 = rounds := by omega
    rw [c] at h₃
    simp only [hr, hn, if_true, true_and, false_and, or_false] at h₂ h₄ h₆ h₇ h₈ h₁₀ h₁₃
    obtain rfl | rfl | rfl | rfl | rfl : phase = 0 ∨ phase = 1 ∨ phase = 2 ∨ phase = 3
      ∨ phase = 4 := by omega
    · refine ⟨⟨round, 1, left, got⟩, rfl, rfl, ?_⟩
      simp [Node.execute, h₃] at e
      subst e
      constructor <;> simp [Progress.posted, Progress.asked, Progress.consumed, c, hr, hn] <;> grind
    · refine ⟨⟨round, 2, left, got⟩, rfl, rfl, ?_⟩
      simp [Node.execute, h₃] at e
      subst e
      constructor <;> simp [Progress.posted, Progress.asked, Progress.consumed, c, hr, hn] <;> grind
    · refine ⟨⟨round, 3, left, got⟩, rfl, rfl, ?_⟩
      simp [Node.execute, h₃] at e
      subst e
      constructor <;> simp [Progress.posted, Progress.asked, Progress.consumed, c, hr, hn] <;>
        grind [resultAfter_succ]
    · refine ⟨⟨round, 4, left, got⟩, rfl, rfl, ?_⟩
      simp [Node.execute, h₃] at e
      obtain ⟨e₁, e⟩ := e
      subst e
      constructor <;> simp [Progress.posted, Progress.asked, Progress.consumed, c, hr, hn] <;> grind
    · refine ⟨⟨round + 1, 0, left, got⟩, rfl, rfl, ?_⟩
      simp [Node.execute, h₃] at e
      obtain ⟨e₁, e⟩ := e
      subst e
      constructor <;> simp [Progress.posted, Progress.asked, Progress.consumed] <;> grind
  · have hr' : round + 1 = rounds := by omega
    have c := fun phase => code_last (i := i) hr' phase
    rw [c] at h₃
    rw [if_neg hr] at h₂
    obtain rfl | rfl : phase = 0 ∨ phase = 1 := by omega
    · refine ⟨⟨round, 1, left, got⟩, rfl, rfl, ?_⟩
      simp [Node.execute, h₃] at e
      subst e
      constructor <;> simp [Progress.posted, Progress.asked, Progress.consumed, c, hr'] <;>
        grind [resultAfter_succ]
    · simp [Node.execute, h₃] at e

private theorem at_leave {node : Node n α β} {b : Fin 2} {sends : List (Fin 2)}
    (h : At rounds take held initial p i node) (e : node.sends = b :: sends) :
    p.left < p.posted rounds ∧ node.buffers[b] = held (source i p.left) ∧
      At rounds take held initial { p with left := p.left + 1 } i { node with sends := sends } := by
  obtain ⟨h₁, h₂, h₃, h₄, h₅, h₆, h₇, h₈, h₉, h₁₀, h₁₁, h₁₂, h₁₃⟩ := h
  rw [e] at h₄
  have hl : p.left < p.posted rounds := by
    apply Decidable.byContradiction; intro hl; rw [if_neg hl] at h₄; cases h₄
  rw [if_pos hl] at h₄
  cases h₄
  have hl' : p.left = p.round ∧ p.posted rounds = p.round + 1 := by
    unfold Progress.posted at hl ⊢; split <;> grind
  refine ⟨hl, by rw [hl'.1]; exact h₁₁, ⟨h₁, h₂, h₃, ?_, by simp; omega, ?_, ?_, h₈, h₉, h₁₀, h₁₁,
    h₁₂, h₁₃⟩⟩
  all_goals simp only [Progress.posted] at *
  all_goals grind

private theorem at_arrive {node : Node n α β} {b : Fin 2} {receives : List (Fin 2)}
    (h : At rounds take held initial p i node) (e : node.receives = b :: receives) :
    At rounds take held initial { p with got := p.got + 1 } i
      { node with receives := receives,
                  buffers := node.buffers.set b (held (source (before i) p.got)) } := by
  obtain ⟨h₁, h₂, h₃, h₄, h₅, h₆, h₇, h₈, h₉, h₁₀, h₁₁, h₁₂, h₁₃⟩ := h
  rw [e] at h₈
  have hl : p.got < p.asked rounds := by
    apply Decidable.byContradiction; intro hl; rw [if_neg hl] at h₈; cases h₈
  rw [if_pos hl] at h₈
  cases h₈
  have hl' : p.got = p.round ∧ p.asked rounds = p.round + 1 := by
    unfold Progress.asked at hl ⊢; split <;> grind
  have hs := slot_ne p.round
  refine ⟨h₁, h₂, h₃, h₄, h₅, h₆, h₇, ?_, by simp; omega, ?_, ?_, ?_, h₁₃⟩
  · have : ¬ p.got + 1 < p.asked rounds := by omega
    exact (if_neg this).symm
  · have : p.got + 1 ≤ p.asked rounds := by omega
    exact this
  · simp only [Fin.getElem_fin] at h₁₁ ⊢
    rw [Vector.getElem_set_ne _ _ (Ne.symm hs)]
    exact h₁₁
  · intro _
    simp [hl'.1, source]

private theorem invariant_after {p : Fin n → Progress} {net next : RingNet n α β}
    {event : RingEvent n} (h : Invariant rounds take held initial p net)
    (e : net.after take capacity event = some next) :
    ∃ p', Invariant rounds take held initial p' next := by
  cases event with
  | execute i =>
    simp only [RingNet.after] at e
    split at e
    · cases e
    · rename_i node e'
      cases e
      obtain ⟨q, hl, hg, hq⟩ := at_execute (h i).1 e'
      refine ⟨fun j => if j = i then q else p j, fun j => ?_⟩
      obtain ⟨h₁, h₂, h₃⟩ := h j
      have l : (if before j = i then q else p (before j)).left = (p (before j)).left := by
        split <;> simp_all
      have g : (if j = i then q else p j).got = (p j).got := by split <;> simp_all
      rw [l, g]
      refine ⟨?_, h₂, h₃⟩
      by_cases hj : j = i
      · subst hj; simpa using hq
      · simpa [hj, Vector.getElem_set, Fin.val_inj, Ne.symm hj] using h₁
  | leave i =>
    simp only [RingNet.after] at e
    split at e
    · cases e
    · rename_i b sends e'
      split at e <;> cases e
      obtain ⟨hl, hb, hq⟩ := at_leave (h (before i)).1 e'
      refine ⟨fun j => if j = before i then { p j with left := (p j).left + 1 } else p j,
        fun j => ?_⟩
      obtain ⟨h₁, h₂, h₃⟩ := h j
      have g : (if j = before i then { p j with left := (p j).left + 1 } else p j).got
        = (p j).got := by split <;> rfl
      rw [g]
      refine ⟨?_, ?_, ?_⟩
      · by_cases hj : j = before i
        · subst hj; simpa using hq
        · simpa [hj, Vector.getElem_set, Fin.val_inj, Ne.symm hj] using h₁
      · dsimp only; split <;> (try dsimp only) <;> omega
      · by_cases hj : j = i
        · subst hj
          have : (p (before j)).left + 1 - (p j).got = (p (before j)).left - (p j).got + 1 := by
            omega
          have : (p j).got + ((p (before j)).left - (p j).got) = (p (before j)).left := by omega
          simp only [Fin.getElem_fin] at h₃ hb
          simp [*, List.range'_concat]
        · have : before j ≠ before i := fun h => hj (before_injective h)
          simpa [this, hj, Vector.getElem_set, Fin.val_inj, Ne.symm hj] using h₃
  | arrive i =>
    simp only [RingNet.after] at e
    split at e
    · cases e
    · rename_i b receives e'
      split at e
      · cases e
      · rename_i message messages e''
        cases e
        have hq := at_arrive (h i).1 e'
        obtain ⟨-, hl, hc⟩ := h i
        rw [e''] at hc
        obtain ⟨k, hk⟩ : ∃ k, (p (before i)).left - (p i).got = k + 1 := by
          cases hk : (p (before i)).left - (p i).got with
          | zero => simp [hk] at hc
          | succ k => exact ⟨k, rfl⟩
        simp only [hk, List.range'_succ, List.map_cons, List.cons.injEq] at hc
        obtain ⟨rfl, rfl⟩ := hc
        refine ⟨fun j => if j = i then { p j with got := (p j).got + 1 } else p j, fun j => ?_⟩
        obtain ⟨h₁, h₂, h₃⟩ := h j
        have l : (if before j = i then { p (before j) with got := (p (before j)).got + 1 }
          else p (before j)).left = (p (before j)).left := by split <;> rfl
        dsimp only at l ⊢
        rw [l]
        by_cases hj : j = i
        · subst hj
          have : (p (before j)).left - ((p j).got + 1) = k := by omega
          refine ⟨by simpa using hq, by simp; omega, by simp [this]⟩
        · refine ⟨?_, by simpa [hj] using h₂, ?_⟩
          · simpa [hj, Vector.getElem_set, Fin.val_inj, Ne.symm hj] using h₁
          · simpa [hj, Vector.getElem_set, Fin.val_inj, Ne.symm hj] using h₃

private theorem invariant_run : ∀ (events : List (RingEvent n)) {p : Fin n → Progress}
    {net last : RingNet n α β}, Invariant rounds take held initial p net →
      net.run take capacity events = some last →
        ∃ p', Invariant rounds take held initial p' last
  | [], p, _, _, h, e => by cases e; exact ⟨p, h⟩
  | event :: events, _, _, _, h, e => by
    simp only [RingNet.run] at e
    split at e
    · cases e
    · rename_i next e'
      obtain ⟨p, h⟩ := invariant_after h e'
      exact invariant_run events h e

/-! ## Only the end is stuck -/

private theorem stuck_execute {node : Node n α β} (h : At rounds take held initial p i node)
    (e : node.execute take i = none) :
    p.Done rounds ∨ (p.round + 1 < rounds ∧ p.phase = 3 ∧ p.left = p.round)
      ∨ (p.round + 1 < rounds ∧ p.phase = 4 ∧ p.got = p.round) := by
  obtain ⟨round, phase, left, got⟩ := p
  obtain ⟨h₁, h₂, h₃, h₄, h₅, h₆, h₇, h₈, h₉, h₁₀, -, -, -⟩ := h
  dsimp only [Progress.posted, Progress.asked, Progress.Done] at *
  by_cases hr : round + 1 < rounds
  · rw [code_round hr] at h₃
    simp only [hr, if_true, true_and] at h₂ h₄ h₆ h₇ h₈ h₁₀
    obtain rfl | rfl | rfl | rfl | rfl : phase = 0 ∨ phase = 1 ∨ phase = 2 ∨ phase = 3
      ∨ phase = 4 := by omega
    · simp [Node.execute, h₃] at e
    · simp [Node.execute, h₃] at e
    · simp [Node.execute, h₃] at e
    · simp [Node.execute, h₃] at e
      grind
    · simp [Node.execute, h₃] at e
      grind
  · have hr' : round + 1 = rounds := by omega
    rw [code_last hr'] at h₃
    rw [if_neg hr] at h₂
    obtain rfl | rfl : phase = 0 ∨ phase = 1 := by omega
    · simp [Node.execute, h₃] at e
    · exact .inl ⟨hr', rfl⟩

private theorem done_of_stuck {p : Fin n → Progress} {net : RingNet n α β}
    (h : Invariant rounds take held initial p net)
    (e : ∀ event, net.after take capacity event = none) (i : Fin n) : (p i).Done rounds := by
  have a (i) := stuck_execute (h i).1 (by
    have := e (.execute i)
    simp only [RingNet.after] at this
    split at this
    · assumption
    · cases this)
  have b (i : Fin n) : (p (before i)).left = (p (before i)).posted rounds
      ∨ capacity + ((p i).asked rounds - (p i).got) ≤ (p (before i)).left - (p i).got := by
    have := e (.leave i)
    simp only [RingNet.after] at this
    obtain ⟨hi, -, hc⟩ := h i
    have hb := (h (before i)).1
    have hs := hb.sends
    split at hs
    · rw [hs] at this
      simp only at this
      split at this
      · cases this
      · rename_i hl
        right
        have hr := hi.receives
        have : (p i).asked rounds ≤ (p i).got + 1 := by
          have := hi.got_ge
          unfold Progress.asked; split <;> omega
        rw [hc, hr] at hl
        split at hl <;> simp at hl <;> omega
    · left
      have := hb.left_le
      omega
  have c (i : Fin n) : (p i).got = (p i).asked rounds ∨ (p (before i)).left = (p i).got := by
    have ha := e (.arrive i)
    simp only [RingNet.after] at ha
    obtain ⟨hi, hl, hc⟩ := h i
    have hs := hi.receives
    have := hi.got_le
    split at hs
    · right
      rw [hs] at ha
      dsimp only at ha
      split at ha
      · rename_i hn
        have := congrArg List.length (hc.symm.trans hn)
        simp at this
        omega
      · cases ha
    · left; omega
  suffices ∀ t i, (p i).round = t → (p i).Done rounds from this _ i rfl
  intro t
  induction t using Nat.strongRecOn with
  | _ t ih =>
    intro j hj
    have go := fun i (hi : (p i).round < t) => ih _ hi i rfl
    unfold Progress.Done Progress.posted Progress.asked at *
    obtain h₁ | h₁ | h₁ := a j
    · exact h₁
    · exfalso
      obtain ⟨i, rfl⟩ := before_surjective j
      have := a i; have := b i; have := c i; have := go i
      have := (h i).2.1
      grind
    · exfalso
      have := a (before j); have := b j; have := c j; have := go (before j)
      grind

/-- **ring-net-consumes**: where no event can happen, every program is done, no message is on its
way, and each device has computed once with what each of the devices that it meets held at first, as
that device's. -/
theorem ring_net_consumes {spare : Fin n → α} {events : List (RingEvent n)} {net : RingNet n α β}
    (hr : 0 < rounds)
    (h : (RingNet.start (ringProgram rounds) held spare initial).run take capacity events
      = some net) (stuck : ∀ event, net.after take capacity event = none) (i : Fin n) :
    net.nodes[i].rest = [] ∧ net.nodes[i].sends = [] ∧ net.nodes[i].receives = []
      ∧ net.channels[i] = [] ∧ net.nodes[i].result = resultAfter take held initial i rounds := by
  obtain ⟨p, h⟩ := invariant_run events (invariant_start spare hr) h
  have d := done_of_stuck h stuck
  obtain ⟨hi, hl, hc⟩ := h i
  obtain ⟨d₁, d₂⟩ := d i
  obtain ⟨b₁, b₂⟩ := d (before i)
  have a₁ : (p i).posted rounds = (p i).round := by simp [Progress.posted, d₁]
  have a₂ : (p i).asked rounds = (p i).round := by simp [Progress.asked, d₁]
  have a₃ : (p (before i)).posted rounds = (p (before i)).round := by simp [Progress.posted, b₁]
  have hb := (h (before i)).1.left_le
  have := hi.left_ge
  have := hi.got_ge
  refine ⟨?_, ?_, ?_, ?_, ?_⟩
  · rw [hi.rest, code_last d₁, d₂]; rfl
  · rw [hi.sends, if_neg (by omega)]
  · rw [hi.receives, if_neg (by omega)]
  · rw [hc]
    have : (p (before i)).left - (p i).got = 0 := by omega
    simp [this]
  · rw [hi.result]
    simp [Progress.consumed, d₁, d₂]

end Attention.Proof
