module

public import Attention.Spec.RingNet

public section

/-! # Programs that leave buffers in flight alone

A program that writes into no buffer of a posted send, and neither reads nor writes one of a posted
receive, until it has waited for the channel. Then what a device does and what becomes of its
messages do not depend on each other's order. -/

namespace Attention.Proof

open Spec

universe u v

variable {n b c : Nat} {α : Type u} {β : Type v}

/-- A program that leaves buffers in flight alone, where these are those of the posted sends `sent`
and of the posted receives `asked`, channel by channel. -/
@[expose] def Apart : (sent asked : Fin c → Fin b → Prop) → List (Instruction n b c) → Prop
  | _, _, [] => True
  | sent, asked, .send channel buffer :: rest =>
    (∀ e, ¬ asked e buffer)
      ∧ Apart (fun e x => sent e x ∨ (e = channel ∧ x = buffer)) asked rest
  | sent, asked, .receive channel buffer :: rest =>
    (∀ e, ¬ sent e buffer) ∧ (∀ e, ¬ asked e buffer)
      ∧ Apart sent (fun e x => asked e x ∨ (e = channel ∧ x = buffer)) rest
  | sent, asked, .consume buffer _ :: rest => (∀ e, ¬ asked e buffer) ∧ Apart sent asked rest
  | sent, asked, .store buffer :: rest =>
    (∀ e, ¬ sent e buffer) ∧ (∀ e, ¬ asked e buffer) ∧ Apart sent asked rest
  | sent, asked, .waitSends channel :: rest =>
    Apart (fun e x => sent e x ∧ e ≠ channel) asked rest
  | sent, asked, .waitReceives channel :: rest =>
    Apart sent (fun e x => asked e x ∧ e ≠ channel) rest

/-- With fewer buffers in flight it leaves those alone, too. -/
theorem Apart.mono : ∀ {program : List (Instruction n b c)} {sent asked sent' asked'},
    Apart sent asked program → (∀ e x, sent' e x → sent e x) → (∀ e x, asked' e x → asked e x) →
      Apart sent' asked' program := by
  intro program
  induction program with
  | nil => intros; trivial
  | cons first rest ih =>
    intro sent asked sent' asked' h hs ha
    cases first with
    | send channel buffer =>
      exact ⟨fun e he => h.1 e (ha _ _ he), ih h.2 (fun e x hx => hx.imp_left (hs e x)) ha⟩
    | receive channel buffer =>
      exact ⟨fun e he => h.1 e (hs _ _ he), fun e he => h.2.1 e (ha _ _ he),
        ih h.2.2 hs fun e x hx => hx.imp_left (ha e x)⟩
    | consume buffer source => exact ⟨fun e he => h.1 e (ha _ _ he), ih h.2 hs ha⟩
    | store buffer =>
      exact ⟨fun e he => h.1 e (hs _ _ he), fun e he => h.2.1 e (ha _ _ he), ih h.2.2 hs ha⟩
    | waitSends channel => exact ih h (fun e x hx => ⟨hs e x hx.1, hx.2⟩) ha
    | waitReceives channel => exact ih h hs fun e x hx => ⟨ha e x hx.1, hx.2⟩

/-- A device that leaves its buffers in flight alone, and has none in flight twice. -/
structure NodeApart (node : Node n b c α β) : Prop where
  rest : Apart (fun e x => x ∈ node.sends[e]) (fun e x => x ∈ node.receives[e]) node.rest
  disjoint : ∀ (e f : Fin c) (x : Fin b), x ∈ node.sends[e] → x ∉ node.receives[f]
  once : ∀ (e f : Fin c) (x : Fin b), x ∈ node.receives[e] → x ∈ node.receives[f] → e = f

/-- The members of the lists of which one is replaced. -/
theorem mem_set {xss : Vector (List (Fin b)) c} {e f : Fin c} {xs : List (Fin b)} {x : Fin b} :
    x ∈ (xss.set e xs)[f] ↔ (f = e ∧ x ∈ xs) ∨ (f ≠ e ∧ x ∈ xss[f]) := by
  simp only [Fin.getElem_fin, Vector.getElem_set]
  split
  · rename_i h
    have : f = e := Fin.ext h.symm
    simp [this]
  · rename_i h
    have : f ≠ e := fun h' => h (by rw [h'])
    simp [this]

variable {rules : RingRules n c α β} {i : Fin n} {node next : Node n b c α β} {e f : Fin c}

/-- So it stays by an instruction, -/
theorem NodeApart.execute (h : NodeApart node) (he : node.execute rules i = some next) :
    NodeApart next := by
  obtain ⟨hr, hd, ho⟩ := h
  unfold Node.execute at he
  split at he
  · cases he
  · rename_i first rest hrest
    rw [hrest] at hr
    split at he
    · cases he
      refine ⟨hr.2.mono (fun e x hx => ?_) fun _ _ hx => hx, fun e f x hx hx' => ?_, ho⟩
      · rcases mem_set.mp hx with ⟨rfl, new⟩ | ⟨_, old⟩
        · simpa using new
        · exact .inl old
      · rcases mem_set.mp hx with ⟨rfl, new⟩ | ⟨_, old⟩
        · rcases List.mem_append.mp new with old | new
          · exact hd _ _ _ old hx'
          · rw [List.mem_singleton.mp new] at hx'; exact hr.1 _ hx'
        · exact hd _ _ _ old hx'
    · rename_i channel buffer
      cases he
      have split : ∀ (e : Fin c) (x : Fin b),
          x ∈ (node.receives.set channel (node.receives[channel] ++ [buffer]))[e] →
            x ∈ node.receives[e] ∨ (e = channel ∧ x = buffer) := fun e x hx => by
        rcases mem_set.mp hx with ⟨rfl, new⟩ | ⟨_, old⟩
        · simpa using new
        · exact .inl old
      refine ⟨hr.2.2.mono (fun _ _ hx => hx) split, fun e f x hx hx' => ?_, fun e f x hx hx' => ?_⟩
      · rcases split _ _ hx' with hx' | ⟨-, rfl⟩
        · exact hd _ _ _ hx hx'
        · exact hr.1 _ hx
      · rcases split _ _ hx with old | ⟨e₁, e₂⟩ <;> rcases split _ _ hx' with old' | ⟨e₃, e₄⟩
        · exact ho _ _ _ old old'
        · exact absurd (e₄ ▸ old) (hr.2.1 _)
        · exact absurd (e₂ ▸ old') (hr.2.1 _)
        · rw [e₁, e₃]
    · cases he; exact ⟨hr.2, hd, ho⟩
    · cases he; exact ⟨hr.2.2, hd, ho⟩
    · rename_i channel
      split at he <;> cases he
      rename_i empty
      refine ⟨Apart.mono hr (fun e x hx => ⟨hx, fun h => ?_⟩) fun _ _ hx => hx, hd, ho⟩
      rw [h] at hx
      rw [List.eq_nil_of_length_eq_zero empty] at hx
      exact nomatch hx
    · rename_i channel
      split at he <;> cases he
      rename_i empty
      refine ⟨Apart.mono hr (fun _ _ hx => hx) (fun e x hx => ⟨hx, fun h => ?_⟩), hd, ho⟩
      rw [h] at hx
      rw [List.eq_nil_of_length_eq_zero empty] at hx
      exact nomatch hx

/-- by a message that leaves, -/
theorem NodeApart.leave {m : α} (h : NodeApart node) (he : node.leave e = some (m, next)) :
    NodeApart next := by
  obtain ⟨hr, hd, ho⟩ := h
  unfold Node.leave at he
  split at he
  · cases he
  · rename_i buffer sends hs
    cases he
    have fewer : ∀ (f : Fin c) (x : Fin b), x ∈ (node.sends.set e sends)[f] → x ∈ node.sends[f] :=
      fun f x hx => by
        rcases mem_set.mp hx with ⟨rfl, new⟩ | ⟨_, old⟩
        · rw [hs]; exact List.mem_cons_of_mem _ new
        · exact old
    exact ⟨hr.mono fewer fun _ _ hx => hx, fun e f x hx => hd e f x (fewer _ _ hx), ho⟩

/-- and by one that arrives. -/
theorem NodeApart.arrive {m : α} (h : NodeApart node) (he : node.arrive e m = some next) :
    NodeApart next := by
  obtain ⟨hr, hd, ho⟩ := h
  unfold Node.arrive at he
  split at he
  · cases he
  · rename_i buffer receives hs
    cases he
    have fewer : ∀ (f : Fin c) (x : Fin b),
        x ∈ (node.receives.set e receives)[f] → x ∈ node.receives[f] :=
      fun f x hx => by
        rcases mem_set.mp hx with ⟨rfl, new⟩ | ⟨_, old⟩
        · rw [hs]; exact List.mem_cons_of_mem _ new
        · exact old
    exact ⟨hr.mono (fun _ _ hx => hx) fewer, fun e f x hx hx' => hd e f x hx (fewer _ _ hx'),
      fun e f x hx hx' => ho e f x (fewer _ _ hx) (fewer _ _ hx')⟩

/-! ## Two events of one device -/

/-- An instruction and a message that leaves. -/
theorem execute_leave {m : α} {next' : Node n b c α β} (h : NodeApart node)
    (hx : node.execute rules i = some next) (hl : node.leave e = some (m, next')) :
    ∃ last, next.leave e = some (m, last) ∧ next'.execute rules i = some last := by
  obtain ⟨hr, hd, ho⟩ := h
  unfold Node.leave at hl
  split at hl
  · cases hl
  · rename_i buffer sends hs
    cases hl
    have here : buffer ∈ node.sends[e] := by rw [hs]; exact List.mem_cons_self
    unfold Node.execute at hx ⊢
    dsimp only
    split at hx
    · cases hx
    · rename_i first rest hrest
      rw [hrest] at hr
      split at hx
      · rename_i channel buffer'
        cases hx
        by_cases hc : channel = e
        · subst hc
          simp [Node.leave, hs]
        · have hc' : ¬ channel.val = e.val := fun h => hc (Fin.ext h)
          simp only [Fin.getElem_fin] at hs
          simp [Node.leave, hs, hc', Ne.symm hc']
          exact Vector.set_comm _ _ (Ne.symm hc')
      · cases hx; simp only [Fin.getElem_fin] at hs; simp [Node.leave, hs]
      · cases hx; simp only [Fin.getElem_fin] at hs; simp [Node.leave, hs]
      · rename_i buffer'
        cases hx
        have : buffer'.val ≠ buffer.val := fun h =>
          hr.1 e (by rw [Fin.ext h]; exact here)
        simp only [Fin.getElem_fin] at hs
        simp [Node.leave, hs, this]
      · rename_i channel
        split at hx <;> cases hx
        rename_i empty
        have : channel ≠ e := fun h => by subst h; rw [hs] at empty; exact nomatch empty
        have hc : ¬ channel.val = e.val := fun h => this (Fin.ext h)
        simp only [Fin.getElem_fin] at hs empty
        simp [Node.leave, hs, Ne.symm hc, empty]
      · rename_i channel
        split at hx <;> cases hx
        rename_i empty
        simp only [Fin.getElem_fin] at hs empty
        simp [Node.leave, hs, empty]

/-- An instruction and a message that arrives. -/
theorem execute_arrive {m : α} {next' : Node n b c α β} (h : NodeApart node)
    (hx : node.execute rules i = some next) (hl : node.arrive e m = some next') :
    ∃ last, next.arrive e m = some last ∧ next'.execute rules i = some last := by
  obtain ⟨hr, hd, ho⟩ := h
  unfold Node.arrive at hl
  split at hl
  · cases hl
  · rename_i buffer receives hs
    cases hl
    have here : buffer ∈ node.receives[e] := by rw [hs]; exact List.mem_cons_self
    unfold Node.execute at hx ⊢
    dsimp only
    split at hx
    · cases hx
    · rename_i first rest hrest
      rw [hrest] at hr
      split at hx
      · cases hx; simp only [Fin.getElem_fin] at hs; simp [Node.arrive, hs]
      · rename_i channel buffer'
        cases hx
        by_cases hc : channel = e
        · subst hc
          simp [Node.arrive, hs]
        · have hc' : ¬ channel.val = e.val := fun h => hc (Fin.ext h)
          simp only [Fin.getElem_fin] at hs
          simp [Node.arrive, hs, hc', Ne.symm hc']
          exact Vector.set_comm _ _ (Ne.symm hc')
      · rename_i buffer' source
        cases hx
        have : buffer.val ≠ buffer'.val := fun h => hr.1 e (Fin.ext h ▸ here)
        simp only [Fin.getElem_fin] at hs
        simp [Node.arrive, hs, this]
      · rename_i buffer'
        cases hx
        have : buffer'.val ≠ buffer.val := fun h => hr.2.1 e (Fin.ext h ▸ here)
        simp only [Fin.getElem_fin] at hs
        simp [Node.arrive, hs]
        exact Vector.set_comm _ _ (Ne.symm this)
      · rename_i channel
        split at hx <;> cases hx
        rename_i empty
        simp only [Fin.getElem_fin] at hs empty
        simp [Node.arrive, hs, empty]
      · rename_i channel
        split at hx <;> cases hx
        rename_i empty
        have : channel ≠ e := fun h => by subst h; rw [hs] at empty; exact nomatch empty
        have hc : ¬ channel.val = e.val := fun h => this (Fin.ext h)
        simp only [Fin.getElem_fin] at hs empty
        simp [Node.arrive, hs, Ne.symm hc, empty]

/-- A message that leaves and one that arrives. -/
theorem leave_arrive {m m' : α} {next' : Node n b c α β} (h : NodeApart node)
    (hl : node.leave e = some (m, next)) (ha : node.arrive f m' = some next') :
    ∃ last, next.arrive f m' = some last ∧ next'.leave e = some (m, last) := by
  unfold Node.leave at hl
  split at hl
  · cases hl
  · rename_i buffer sends hs
    cases hl
    unfold Node.arrive at ha
    split at ha
    · cases ha
    · rename_i buffer' receives hs'
      cases ha
      have : buffer'.val ≠ buffer.val := fun h' => h.disjoint e f buffer
        (by rw [hs]; exact List.mem_cons_self)
        (by rw [← Fin.ext h', hs']; exact List.mem_cons_self)
      simp only [Fin.getElem_fin] at hs hs'
      simp [Node.leave, Node.arrive, hs, hs', this]

/-- Two messages that leave. -/
theorem leave_leave {m m' : α} {next' : Node n b c α β} (hne : e ≠ f)
    (hl : node.leave e = some (m, next)) (ha : node.leave f = some (m', next')) :
    ∃ last, next.leave f = some (m', last) ∧ next'.leave e = some (m, last) := by
  have hc : ¬ e.val = f.val := fun h => hne (Fin.ext h)
  unfold Node.leave at hl
  split at hl
  · cases hl
  · rename_i buffer sends hs
    cases hl
    unfold Node.leave at ha
    split at ha
    · cases ha
    · rename_i buffer' sends' hs'
      cases ha
      simp only [Fin.getElem_fin] at hs hs'
      simp [Node.leave, hs, hs', hc, Ne.symm hc]
      exact Vector.set_comm _ _ (Ne.symm hc)

/-- Two messages that arrive. -/
theorem arrive_arrive {m m' : α} {next' : Node n b c α β} (h : NodeApart node) (hne : e ≠ f)
    (hl : node.arrive e m = some next) (ha : node.arrive f m' = some next') :
    ∃ last, next.arrive f m' = some last ∧ next'.arrive e m = some last := by
  have hc : ¬ e.val = f.val := fun h => hne (Fin.ext h)
  unfold Node.arrive at hl
  split at hl
  · cases hl
  · rename_i buffer receives hs
    cases hl
    unfold Node.arrive at ha
    split at ha
    · cases ha
    · rename_i buffer' receives' hs'
      cases ha
      have : buffer.val ≠ buffer'.val := fun h' => hne (h.once e f buffer
        (by rw [hs]; exact List.mem_cons_self)
        (by rw [Fin.ext h', hs']; exact List.mem_cons_self))
      simp only [Fin.getElem_fin] at hs hs'
      simp [Node.arrive, hs, hs', hc, Ne.symm hc]
      exact ⟨Vector.set_comm _ _ (Ne.symm this), Vector.set_comm _ _ (Ne.symm hc)⟩

end Attention.Proof
