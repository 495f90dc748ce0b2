module

public import Attention.Spec.RingNet

public section

/-! # Devices in lockstep

One run of a ring: all devices do their next instruction, or have a message leave and arrive, before
any goes on. Between these steps no message is on its way. -/

namespace Attention.Proof

open Spec

universe u v

variable {n b c : Nat} {α : Type u} {β : Type v} {rules : RingRules n c α β}

/-! ## Runs -/

/-- A run, and one that goes on from its end. -/
theorem run_append : ∀ (events events' : List (RingEvent n c)) (net : RingNet n b c α β),
    net.run rules (events ++ events') = (net.run rules events).bind fun next =>
      next.run rules events'
  | [], _, _ => rfl
  | event :: events, events', net => by
    simp only [List.cons_append, RingNet.run]
    split
    · rfl
    · exact run_append events events' _

private theorem run_finRange (event : Fin n → RingEvent n c) (net : Nat → RingNet n b c α β)
    (h : ∀ i : Fin n, (net i).after rules (event i) = some (net (i + 1))) :
    (net 0).run rules ((List.finRange n).map event) = some (net n) := by
  suffices ∀ k ≤ n, (net 0).run rules (((List.finRange n).take k).map event) = some (net k) by
    have := this n (Nat.le_refl n)
    rwa [List.take_of_length_le (by simp)] at this
  intro k hk
  induction k with
  | zero => rfl
  | succ k ih =>
    have hk' : k < (List.finRange n).length := by simpa using hk
    rw [← List.take_append_getElem hk', List.map_append, run_append, ih (by omega)]
    simp [RingNet.run, h ⟨k, hk⟩]

/-- The ring of these devices with no message on its way. -/
@[expose] def still (node : Fin n → Node n b c α β) : RingNet n b c α β :=
  { nodes := Vec.ofFn node, channels := Vec.ofFn fun _ => Vec.ofFn fun _ => [] }

private theorem vec_ext {γ : Type u} {m : Nat} {x y : Vector γ m}
    (h : ∀ i : Fin m, x[i] = y[i]) : x = y := Vector.ext fun i hi => h ⟨i, hi⟩

private theorem ofFn_set {γ : Type u} {m : Nat} (f : Fin m → γ) (i : Fin m) (x : γ) :
    (Vec.ofFn f : Vector γ m).set i x = Vec.ofFn fun j => if j = i then x else f j :=
  vec_ext fun j => by
    simp only [Fin.getElem_fin, Vector.getElem_set, Vec.getElem_ofFn, Fin.ext_iff, eq_comm]

/-- All devices do their next instruction. -/
theorem still_execute {node next : Fin n → Node n b c α β}
    (h : ∀ i, (node i).execute rules i = some (next i)) :
    (still node).run rules ((List.finRange n).map .execute) = some (still next) := by
  have e := run_finRange (rules := rules) RingEvent.execute
    (fun k => still fun i => if i.val < k then next i else node i) fun i => ?_
  · simpa using e
  · simp only [RingNet.after, still, Fin.getElem_fin, Vec.getElem_ofFn, Nat.lt_irrefl, if_false,
      h i, RingNet.setNode, ofFn_set]
    congr 3
    funext j
    have : j = i ↔ j.val = i.val := Fin.ext_iff
    grind

/-- On a channel a message leaves for every device, and arrives there. -/
theorem still_deliver {e : Fin c} {node gone next : Fin n → Node n b c α β} {message : Fin n → α}
    {to : Fin n → Fin n} (hr : ∀ j, rules.sender e (to j) = j)
    (hsr : ∀ i, to (rules.sender e i) = i)
    (hl : ∀ i, (node i).leave e = some (message i, gone i))
    (room : ∀ i, (gone i).receives = (node i).receives ∧ 0 < (node i).receives[e].length)
    (ha : ∀ i, (gone i).arrive e (message (rules.sender e i)) = some (next i)) :
    (still node).run rules ((List.finRange n).map (.leave e) ++ (List.finRange n).map (.arrive e))
      = some (still next) := by
  have l := run_finRange (rules := rules) (RingEvent.leave e)
    (fun k =>
      { nodes := Vec.ofFn fun j => if (to j).val < k then gone j else node j
        channels := Vec.ofFn fun i => Vec.ofFn fun f =>
          if i.val < k ∧ f = e then [message (rules.sender e i)] else [] })
    fun i => ?_
  · have a := run_finRange (rules := rules) (RingEvent.arrive e)
      (fun k =>
        { nodes := Vec.ofFn fun j => if j.val < k then next j else gone j
          channels := Vec.ofFn fun i => Vec.ofFn fun f =>
            if k ≤ i.val ∧ f = e then [message (rules.sender e i)] else [] })
      fun i => ?_
    · simp only [Nat.not_lt_zero, false_and, if_false, Fin.isLt, if_true, true_and, Nat.zero_le,
        Nat.not_le_of_lt] at l a
      rw [run_append, still, l, Option.bind_some, a, still]
    · simp only [RingNet.after, Fin.getElem_fin, Vec.getElem_ofFn, Nat.lt_irrefl, if_false,
        Nat.le_refl, true_and, if_true, Fin.eta, ha, RingNet.setNode, RingNet.setChannel, ofFn_set]
      congr 3
      · funext j
        have : j = i ↔ j.val = i.val := Fin.ext_iff
        grind
      · funext j
        refine vec_ext fun f => ?_
        have : j = i ↔ j.val = i.val := Fin.ext_iff
        by_cases hj : j = i <;> simp only [hj, if_true, if_false, Fin.getElem_fin, Vec.getElem_ofFn,
          Fin.eta] <;> grind
  · have hg : (if (to (rules.sender e i)).val < i.val then gone (rules.sender e i)
        else node (rules.sender e i)) = node (rules.sender e i) := by
      rw [hsr, if_neg (Nat.lt_irrefl _)]
    have hrec : (if (to i).val < i.val then gone i else node i).receives = (node i).receives := by
      split
      · exact (room i).1
      · rfl
    have enough : 0 < rules.capacity + (node i).receives[e].length := by have := (room i).2; omega
    simp only [RingNet.after, Fin.getElem_fin, Vec.getElem_ofFn, Nat.lt_irrefl, false_and, if_false,
      Fin.eta, hg, hrec, hl, List.length_nil, List.nil_append, RingNet.setNode, RingNet.setChannel,
      ofFn_set] at enough ⊢
    rw [if_pos enough]
    congr 3
    · funext j
      have : j = rules.sender e i ↔ (to j).val = i.val := by
        rw [← Fin.ext_iff]
        exact ⟨fun h => by rw [h, hsr], fun h => by rw [← h, hr]⟩
      by_cases hj : j = rules.sender e i
      · rw [if_pos hj, if_pos (by have := this.mp hj; omega), hj]
      · have : (to j).val < i.val + 1 ↔ (to j).val < i.val := by
          have := fun h => hj (this.mpr h)
          omega
        simp only [hj, if_false, this]
    · funext j
      refine vec_ext fun f => ?_
      have : j = i ↔ j.val = i.val := Fin.ext_iff
      by_cases hj : j = i <;> simp only [hj, if_true, if_false, Fin.getElem_fin, Vec.getElem_ofFn,
        Fin.eta] <;> grind

/-! ## Steps, and their number -/

/-- There is a run of `k` events from each device's state to another, for every one of the devices.
-/
@[expose] def Steps (rules : RingRules n c α β) (k : Nat) (node next : Fin n → Node n b c α β) :
    Prop :=
  ∃ events, events.length = n * k ∧ (still node).run rules events = some (still next)

/-- No event. -/
theorem Steps.refl (node : Fin n → Node n b c α β) : Steps rules 0 node node := ⟨[], by simp, rfl⟩

/-- One run after another. -/
theorem Steps.trans {k k' : Nat} {node next last : Fin n → Node n b c α β}
    (h : Steps rules k node next) (h' : Steps rules k' next last) :
    Steps rules (k + k') node last := by
  obtain ⟨events, l, e⟩ := h
  obtain ⟨events', l', e'⟩ := h'
  exact ⟨events ++ events', by rw [List.length_append, l, l', Nat.mul_add],
    by rw [run_append, e, Option.bind_some, e']⟩

/-- All devices do their next instruction, and go on. -/
theorem Steps.execute {k : Nat} {node next last : Fin n → Node n b c α β}
    (h : ∀ i, (node i).execute rules i = some (next i)) (h' : Steps rules k next last) :
    Steps rules (k + 1) node last := by
  rw [Nat.add_comm]
  exact Steps.trans ⟨_, by simp, still_execute h⟩ h'

/-- Every device gets a message on a channel, and goes on. -/
theorem Steps.deliver {k : Nat} (e : Fin c) {node gone next last : Fin n → Node n b c α β}
    {message : Fin n → α} {to : Fin n → Fin n} (hr : ∀ j, rules.sender e (to j) = j)
    (hsr : ∀ i, to (rules.sender e i) = i)
    (hl : ∀ i, (node i).leave e = some (message i, gone i))
    (room : ∀ i, (gone i).receives = (node i).receives ∧ 0 < (node i).receives[e].length)
    (ha : ∀ i, (gone i).arrive e (message (rules.sender e i)) = some (next i))
    (h' : Steps rules k next last) : Steps rules (k + 2) node last := by
  rw [Nat.add_comm]
  exact Steps.trans ⟨_, by simp; omega, still_deliver hr hsr hl room ha⟩ h'

end Attention.Proof
