module

public import Attention.Proof.Ring.Apart

public section

/-! # All runs end alike

Where no program touches a buffer in flight, two events that can happen can happen one after the
other, in both orders, with the same outcome. So one run to the end tells of all. -/

namespace Attention.Proof

open Spec

universe u v w

variable {n b c : Nat} {α : Type u} {β : Type v} {rules : RingRules n c α β}
variable {net : RingNet n b c α β} {i j : Fin n} {e f : Fin c}

/-! ## A ring with something set -/

private theorem net_ext {net net' : RingNet n b c α β}
    (h : ∀ i : Fin n, net.nodes[i] = net'.nodes[i])
    (h' : ∀ (i : Fin n) (e : Fin c), net.channels[i][e] = net'.channels[i][e]) : net = net' := by
  cases net; cases net'
  congr
  · exact Vector.ext fun i hi => h ⟨i, hi⟩
  · exact Vector.ext fun i hi => Vector.ext fun e he => h' ⟨i, hi⟩ ⟨e, he⟩

private theorem nodes_setNode (node : Node n b c α β) :
    (net.setNode i node).nodes[j] = if j = i then node else net.nodes[j] := by
  simp only [RingNet.setNode, Fin.getElem_fin, Vector.getElem_set, Fin.ext_iff, eq_comm]

private theorem nodes_setChannel (xs : List α) :
    (net.setChannel i e xs).nodes[j] = net.nodes[j] := rfl

private theorem channels_setNode (node : Node n b c α β) :
    (net.setNode i node).channels[j][e] = net.channels[j][e] := rfl

private theorem channels_setChannel (xs : List α) :
    (net.setChannel i e xs).channels[j][f]
      = if j = i ∧ f = e then xs else net.channels[j][f] := by
  by_cases hi : j = i
  · subst hi
    by_cases he : f = e
    · subst he; simp [RingNet.setChannel]
    · have : ¬ e.val = f.val := fun h => he (Fin.ext h.symm)
      simp [RingNet.setChannel, he, this]
  · have : ¬ i.val = j.val := fun h => hi (Fin.ext h.symm)
    simp [RingNet.setChannel, hi, this]

private theorem set_same {γ : Type w} (k i : Fin n) (x y z : γ) :
    (if k = i then x else if k = i then y else z) = if k = i then x else z := by
  by_cases h : k = i <;> simp only [h, if_true, if_false]

private theorem set_apart {γ : Type w} {i j : Fin n} (h : i ≠ j) (k : Fin n) (x y z : γ) :
    (if k = i then x else if k = j then y else z)
      = if k = j then y else if k = i then x else z := by
  by_cases hi : k = i
  · subst hi; simp only [h, if_true, if_false]
  · simp only [hi, if_false]

/-! ## Events -/

private theorem after_execute {a : RingNet n b c α β} :
    net.after rules (.execute i) = some a
      ↔ ∃ node, net.nodes[i].execute rules i = some node ∧ a = net.setNode i node := by
  simp only [RingNet.after]
  cases h : net.nodes[i].execute rules i <;> simp [eq_comm]

private theorem after_leave {a : RingNet n b c α β} :
    net.after rules (.leave e i) = some a
      ↔ net.channels[i][e].length < rules.capacity + net.nodes[i].receives[e].length ∧
        ∃ m node, net.nodes[rules.sender e i].leave e = some (m, node) ∧
          a = (net.setNode (rules.sender e i) node).setChannel i e (net.channels[i][e] ++ [m]) := by
  simp only [RingNet.after]
  split
  · rename_i room
    cases h : net.nodes[rules.sender e i].leave e with
    | none => simp
    | some found =>
      obtain ⟨m, node⟩ := found
      constructor
      · intro h; cases h; exact ⟨room, m, node, rfl, rfl⟩
      · rintro ⟨-, m, node, h, rfl⟩; cases h; rfl
  · rename_i room
    exact ⟨fun h => (nomatch h), fun h => absurd h.1 room⟩

private theorem after_arrive {a : RingNet n b c α β} :
    net.after rules (.arrive e i) = some a
      ↔ ∃ m ms node, net.channels[i][e] = m :: ms ∧ net.nodes[i].arrive e m = some node ∧
          a = (net.setNode i node).setChannel i e ms := by
  simp only [RingNet.after]
  cases h : net.channels[i][e] with
  | nil => simp
  | cons m ms =>
    dsimp only
    cases h' : net.nodes[i].arrive e m with
    | none =>
      refine ⟨fun h => (nomatch h), ?_⟩
      rintro ⟨m, ms, node, h, h'', rfl⟩
      cases h
      rw [h'] at h''
      cases h''
    | some node =>
      constructor
      · intro h; cases h; exact ⟨m, ms, node, rfl, h', rfl⟩
      · rintro ⟨m, ms, node, h, h'', rfl⟩
        cases h
        rw [h'] at h''
        cases h''
        rfl

/-- Every device leaves its buffers in flight alone. -/
@[expose] def NetApart (net : RingNet n b c α β) : Prop := ∀ i : Fin n, NodeApart net.nodes[i]

/-- So they do after any event. -/
theorem NetApart.after {a : RingNet n b c α β} {event : RingEvent n c} (h : NetApart net)
    (he : net.after rules event = some a) : NetApart a := by
  intro j
  cases event with
  | execute i =>
    obtain ⟨node, hx, rfl⟩ := after_execute.mp he
    rw [nodes_setNode]
    split
    · exact (h i).execute hx
    · exact h j
  | leave e i =>
    obtain ⟨-, m, node, hx, rfl⟩ := after_leave.mp he
    rw [nodes_setChannel, nodes_setNode]
    split
    · exact (h _).leave hx
    · exact h j
  | arrive e i =>
    obtain ⟨m, ms, node, -, hx, rfl⟩ := after_arrive.mp he
    rw [nodes_setChannel, nodes_setNode]
    split
    · exact (h i).arrive hx
    · exact h j

/-- Two events that can happen next can both happen, with one outcome. -/
private def Commute (rules : RingRules n c α β) (net : RingNet n b c α β)
    (x y : RingEvent n c) : Prop :=
  ∀ a a', net.after rules x = some a → net.after rules y = some a' →
    ∃ last, a.after rules y = some last ∧ a'.after rules x = some last

private theorem Commute.symm {x y : RingEvent n c} (h : Commute rules net x y) :
    Commute rules net y x := fun a a' hx hy =>
  let ⟨last, h₁, h₂⟩ := h a' a hy hx
  ⟨last, h₂, h₁⟩

private theorem receives_execute {node next : Node n b c α β}
    (h : node.execute rules i = some next) :
    node.receives[e].length ≤ next.receives[e].length := by
  unfold Node.execute at h
  split at h
  · cases h
  · split at h
    · cases h; exact Nat.le_refl _
    · cases h
      simp only [Fin.getElem_fin, Vector.getElem_set]
      split
      · rename_i h; simp [h]
      · exact Nat.le_refl _
    · cases h; exact Nat.le_refl _
    · cases h; exact Nat.le_refl _
    · split at h <;> cases h; exact Nat.le_refl _
    · split at h <;> cases h; exact Nat.le_refl _

private theorem receives_leave {m : α} {node next : Node n b c α β}
    (h : node.leave e = some (m, next)) : next.receives = node.receives := by
  unfold Node.leave at h
  split at h <;> cases h; rfl

private theorem receives_arrive {m : α} {node next : Node n b c α β}
    (h : node.arrive e m = some next) :
    next.receives[f].length = node.receives[f].length - if f = e then 1 else 0 := by
  unfold Node.arrive at h
  split at h
  · cases h
  · rename_i x xs hs
    cases h
    by_cases hf : f = e
    · subst hf; simp only [Fin.getElem_fin] at hs; simp [hs]
    · have : ¬ e.val = f.val := fun h => hf (Fin.ext h.symm)
      simp [hf, this]

private theorem execute_execute (h : i ≠ j) :
    Commute rules net (.execute i) (.execute j) := by
  intro a a' hx₀ hy₀
  obtain ⟨x, hx, rfl⟩ := after_execute.mp hx₀
  obtain ⟨y, hy, rfl⟩ := after_execute.mp hy₀
  refine ⟨(net.setNode i x).setNode j y, after_execute.mpr ⟨y, ?_, rfl⟩,
    after_execute.mpr ⟨x, ?_, net_ext (fun k => ?_) fun k g => rfl⟩⟩
  · rw [nodes_setNode, if_neg (Ne.symm h), hy]
  · rw [nodes_setNode, if_neg h, hx]
  · simp only [nodes_setNode]
    exact set_apart (Ne.symm h) ..

private theorem execute_leave' (ha : NetApart net) :
    Commute rules net (.execute i) (.leave e j) := by
  intro a a' hx₀ hy₀
  obtain ⟨x, hx, rfl⟩ := after_execute.mp hx₀
  obtain ⟨room, m, y, hy, rfl⟩ := after_leave.mp hy₀
  have room' : net.channels[j][e].length
      < rules.capacity + (net.setNode i x).nodes[j].receives[e].length := by
    rw [nodes_setNode]
    split
    · rename_i hj; subst hj
      have := receives_execute (e := e) hx
      omega
    · exact room
  by_cases hi : rules.sender e j = i
  · subst hi
    obtain ⟨last, h₁, h₂⟩ := execute_leave (ha _) hx hy
    refine ⟨_, after_leave.mpr ⟨room', m, last, ?_, rfl⟩, after_execute.mpr ⟨last, ?_, ?_⟩⟩
    · rw [nodes_setNode, if_pos rfl, h₁]
    · rw [nodes_setChannel, nodes_setNode, if_pos rfl, h₂]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel, set_same]
      · simp only [channels_setNode, channels_setChannel]
  · refine ⟨_, after_leave.mpr ⟨room', m, y, ?_, rfl⟩, after_execute.mpr ⟨x, ?_, ?_⟩⟩
    · rw [nodes_setNode, if_neg hi, hy]
    · rw [nodes_setChannel, nodes_setNode, if_neg (Ne.symm hi), hx]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel]
        exact set_apart hi ..
      · simp only [channels_setNode, channels_setChannel]

private theorem execute_arrive' (ha : NetApart net) :
    Commute rules net (.execute i) (.arrive e j) := by
  intro a a' hx₀ hy₀
  obtain ⟨x, hx, rfl⟩ := after_execute.mp hx₀
  obtain ⟨m, ms, y, hm, hy, rfl⟩ := after_arrive.mp hy₀
  by_cases hi : j = i
  · subst hi
    obtain ⟨last, h₁, h₂⟩ := execute_arrive (ha _) hx hy
    refine ⟨_, after_arrive.mpr ⟨m, ms, last, hm, ?_, rfl⟩, after_execute.mpr ⟨last, ?_, ?_⟩⟩
    · rw [nodes_setNode, if_pos rfl, h₁]
    · rw [nodes_setChannel, nodes_setNode, if_pos rfl, h₂]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel, set_same]
      · simp only [channels_setNode, channels_setChannel]
  · refine ⟨_, after_arrive.mpr ⟨m, ms, y, hm, ?_, rfl⟩, after_execute.mpr ⟨x, ?_, ?_⟩⟩
    · rw [nodes_setNode, if_neg hi, hy]
    · rw [nodes_setChannel, nodes_setNode, if_neg (Ne.symm hi), hx]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel]
        exact set_apart hi ..
      · simp only [channels_setNode, channels_setChannel]

private theorem leave_leave' (hs : ∀ e i j, rules.sender e i = rules.sender e j → i = j)
    (hne : ¬ (i = j ∧ e = f)) : Commute rules net (.leave e i) (.leave f j) := by
  intro a a' hx₀ hy₀
  obtain ⟨room, m, x, hx, rfl⟩ := after_leave.mp hx₀
  obtain ⟨room', m', y, hy, rfl⟩ := after_leave.mp hy₀
  have r₁ : (net.setNode (rules.sender e i) x).nodes[j].receives = net.nodes[j].receives := by
    rw [nodes_setNode]
    split
    · rename_i h; rw [h, receives_leave hx]
    · rfl
  have r₂ : (net.setNode (rules.sender f j) y).nodes[i].receives = net.nodes[i].receives := by
    rw [nodes_setNode]
    split
    · rename_i h; rw [h, receives_leave hy]
    · rfl
  have c₁ : ¬ (j = i ∧ f = e) := fun h => hne ⟨h.1.symm, h.2.symm⟩
  by_cases same : rules.sender e i = rules.sender f j
  · have hef : e ≠ f := fun h => hne ⟨hs e i j (by rw [same, h]), h⟩
    rw [same] at hx r₁
    obtain ⟨last, h₁, h₂⟩ := leave_leave hef hx hy
    refine ⟨_, after_leave.mpr ⟨?_, m', last, ?_, rfl⟩, after_leave.mpr ⟨?_, m, last, ?_, ?_⟩⟩
    · rw [channels_setChannel, if_neg c₁, nodes_setChannel, same, r₁]; exact room'
    · rw [nodes_setChannel, nodes_setNode, if_pos same.symm, h₁]
    · rw [channels_setChannel, if_neg hne, nodes_setChannel, r₂]; exact room
    · rw [nodes_setChannel, nodes_setNode, if_pos same, h₂]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel, same, set_same]
      · simp only [channels_setNode, channels_setChannel]
        grind
  · refine ⟨_, after_leave.mpr ⟨?_, m', y, ?_, rfl⟩, after_leave.mpr ⟨?_, m, x, ?_, ?_⟩⟩
    · rw [channels_setChannel, if_neg c₁, nodes_setChannel, r₁]; exact room'
    · rw [nodes_setChannel, nodes_setNode, if_neg (Ne.symm same), hy]
    · rw [channels_setChannel, if_neg hne, nodes_setChannel, r₂]; exact room
    · rw [nodes_setChannel, nodes_setNode, if_neg same, hx]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel]
        exact set_apart (Ne.symm same) ..
      · simp only [channels_setNode, channels_setChannel]
        grind

private theorem leave_arrive' (ha : NetApart net) :
    Commute rules net (.leave e i) (.arrive f j) := by
  intro a a' hx₀ hy₀
  obtain ⟨room, m, x, hx, rfl⟩ := after_leave.mp hx₀
  obtain ⟨m', ms, y, hm, hy, rfl⟩ := after_arrive.mp hy₀
  have hm' : ∃ ms', (net.setChannel i e (net.channels[i][e] ++ [m])).channels[j][f] = m' :: ms'
      ∧ ms' = if j = i ∧ f = e then ms ++ [m] else ms := by
    rw [channels_setChannel]
    split
    · rename_i h; obtain ⟨rfl, rfl⟩ := h; rw [hm]; exact ⟨_, rfl, rfl⟩
    · exact ⟨_, hm, rfl⟩
  obtain ⟨ms', hm', e'⟩ := hm'
  have room' : ((net.setNode j y).setChannel j f ms).channels[i][e].length
      < rules.capacity + (net.setNode j y).nodes[i].receives[e].length := by
    rw [channels_setChannel, nodes_setNode]
    split
    · rename_i h
      obtain ⟨rfl, rfl⟩ := h
      rw [if_pos rfl, receives_arrive hy, if_pos rfl]
      rw [hm] at room
      simp only [List.length_cons] at room
      omega
    · rename_i h
      rw [channels_setNode]
      split
      · rename_i h'
        subst h'
        rw [receives_arrive hy, if_neg fun h'' => h ⟨rfl, h''⟩]
        exact room
      · exact room
  have channels (k : Fin n) (g : Fin c) :
      (if k = j ∧ g = f then ms' else
        if k = i ∧ g = e then net.channels[i][e] ++ [m] else net.channels[k][g])
      = if k = i ∧ g = e then ((net.setNode j y).setChannel j f ms).channels[i][e] ++ [m] else
        if k = j ∧ g = f then ms else net.channels[k][g] := by
    rw [channels_setChannel, channels_setNode]
    grind
  by_cases same : rules.sender e i = j
  · subst same
    obtain ⟨last, h₁, h₂⟩ := leave_arrive (ha _) hx hy
    refine ⟨_, after_arrive.mpr ⟨m', ms', last, hm', ?_, rfl⟩,
      after_leave.mpr ⟨room', m, last, ?_, ?_⟩⟩
    · rw [nodes_setChannel, nodes_setNode, if_pos rfl, h₁]
    · rw [nodes_setChannel, nodes_setNode, if_pos rfl, h₂]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel, set_same]
      · simpa only [channels_setNode, channels_setChannel] using channels k g
  · refine ⟨_, after_arrive.mpr ⟨m', ms', y, hm', ?_, rfl⟩,
      after_leave.mpr ⟨room', m, x, ?_, ?_⟩⟩
    · rw [nodes_setChannel, nodes_setNode, if_neg (Ne.symm same), hy]
    · rw [nodes_setChannel, nodes_setNode, if_neg same, hx]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel]
        exact set_apart (Ne.symm same) ..
      · simpa only [channels_setNode, channels_setChannel] using channels k g

private theorem arrive_arrive' (ha : NetApart net) (hne : ¬ (i = j ∧ e = f)) :
    Commute rules net (.arrive e i) (.arrive f j) := by
  intro a a' hx₀ hy₀
  obtain ⟨m, ms, x, hm, hx, rfl⟩ := after_arrive.mp hx₀
  obtain ⟨m', ms', y, hm', hy, rfl⟩ := after_arrive.mp hy₀
  have c₁ : ¬ (j = i ∧ f = e) := fun h => hne ⟨h.1.symm, h.2.symm⟩
  by_cases same : i = j
  · subst same
    obtain ⟨last, h₁, h₂⟩ := arrive_arrive (ha _) (fun h => hne ⟨rfl, h⟩) hx hy
    refine ⟨_, after_arrive.mpr ⟨m', ms', last, ?_, ?_, rfl⟩,
      after_arrive.mpr ⟨m, ms, last, ?_, ?_, ?_⟩⟩
    · rw [channels_setChannel, if_neg c₁]; exact hm'
    · rw [nodes_setChannel, nodes_setNode, if_pos rfl, h₁]
    · rw [channels_setChannel, if_neg hne]; exact hm
    · rw [nodes_setChannel, nodes_setNode, if_pos rfl, h₂]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel, set_same]
      · simp only [channels_setNode, channels_setChannel]
        grind
  · refine ⟨_, after_arrive.mpr ⟨m', ms', y, ?_, ?_, rfl⟩,
      after_arrive.mpr ⟨m, ms, x, ?_, ?_, ?_⟩⟩
    · rw [channels_setChannel, if_neg c₁]; exact hm'
    · rw [nodes_setChannel, nodes_setNode, if_neg (Ne.symm same), hy]
    · rw [channels_setChannel, if_neg hne]; exact hm
    · rw [nodes_setChannel, nodes_setNode, if_neg same, hx]
    · refine net_ext (fun k => ?_) fun k g => ?_
      · simp only [nodes_setNode, nodes_setChannel]
        exact set_apart (Ne.symm same) ..
      · simp only [channels_setNode, channels_setChannel]
        grind

private theorem commute (hs : ∀ e i j, rules.sender e i = rules.sender e j → i = j)
    (ha : NetApart net) {x y : RingEvent n c} (hne : x ≠ y) : Commute rules net x y := by
  cases x with
  | execute i =>
    cases y with
    | execute j => exact execute_execute fun h => hne (by rw [h])
    | leave f j => exact execute_leave' ha
    | arrive f j => exact execute_arrive' ha
  | leave e i =>
    cases y with
    | execute j => exact (execute_leave' ha).symm
    | leave f j => exact leave_leave' hs fun h => hne (by rw [h.1, h.2])
    | arrive f j => exact leave_arrive' ha
  | arrive e i =>
    cases y with
    | execute j => exact (execute_arrive' ha).symm
    | leave f j => exact (leave_arrive' ha).symm
    | arrive f j => exact arrive_arrive' ha fun h => hne (by rw [h.1, h.2])

/-! ## Runs -/

private theorem run_after (hs : ∀ e i j, rules.sender e i = rules.sender e j → i = j)
    {last : RingNet n b c α β} (stuck : ∀ event, last.after rules event = none) :
    ∀ (events : List (RingEvent n c)) {net next : RingNet n b c α β} {x : RingEvent n c},
      NetApart net → net.run rules events = some last → net.after rules x = some next →
        ∃ events', next.run rules events' = some last ∧ events'.length + 1 = events.length
  | [], net, _, x, _, hr, hx => by
    cases hr
    rw [stuck x] at hx
    cases hx
  | y :: events, net, next, x, ha, hr, hx => by
    simp only [RingNet.run] at hr
    split at hr
    · cases hr
    · rename_i a hy
      by_cases hxy : x = y
      · subst hxy
        rw [hx] at hy
        cases hy
        exact ⟨events, hr, rfl⟩
      · obtain ⟨d, h₁, h₂⟩ := commute hs ha hxy _ _ hx hy
        obtain ⟨events', h₃, h₄⟩ := run_after hs stuck events (ha.after hy) hr h₂
        exact ⟨y :: events', by rw [RingNet.run, h₁]; exact h₃, by simp [h₄]⟩

/-- **ring-net-confluent**: on channels that each bring a device's messages to one device, where no
program touches a buffer in flight: if one run comes to a state where no event can happen, every run
can be prolonged to it, by as many events as it has fewer; so where no event can happen, it is
there. -/
theorem ring_net_confluent (hs : ∀ e i j, rules.sender e i = rules.sender e j → i = j)
    {net last : RingNet n b c α β} (ha : NetApart net) {one : List (RingEvent n c)}
    (hone : net.run rules one = some last) (stuck : ∀ event, last.after rules event = none)
    {events : List (RingEvent n c)} {next : RingNet n b c α β}
    (run : net.run rules events = some next) :
    ∃ more, next.run rules more = some last ∧ events.length + more.length = one.length := by
  induction events generalizing net one with
  | nil => cases run; exact ⟨one, hone, by simp⟩
  | cons x events ih =>
    simp only [RingNet.run] at run
    split at run
    · cases run
    · rename_i a hx
      obtain ⟨one', h₁, h₂⟩ := run_after hs stuck one ha hone hx
      obtain ⟨more, h₃, h₄⟩ := ih (ha.after hx) h₁ run
      exact ⟨more, h₃, by simp only [List.length_cons]; omega⟩

end Attention.Proof
