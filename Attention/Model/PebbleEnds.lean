module

public import Attention.Model.PebbleRuns

public section

/-! # From one content of fast memory to another

A play that is written down by parts is run by parts: `Ends X moves Y` says that from fast memory
with the elements of X, in whatever order, the moves are allowed, and end with those of Y. -/

namespace Attention.Model.Pebble

universe u v

variable {q_len kv_len d : Nat} {α : Type u} [DecidableEq α]
variable {rule : Rule q_len kv_len d α} {M : Nat}
variable {X Y Z base : List (Element q_len kv_len d α)} {moves more : List (Move q_len kv_len d α)}

/-- Moves from fast memory with the elements of `X` to fast memory with those of `Y`. -/
@[expose] def Ends (rule : Rule q_len kv_len d α) (M : Nat) (X : List (Element q_len kv_len d α))
    (moves : List (Move q_len kv_len d α)) (Y : List (Element q_len kv_len d α)) : Prop :=
  ∀ s : State q_len kv_len d α, s.red.Perm X →
    ∃ s', run rule M s moves = some s' ∧ s'.red.Perm Y

/-- No move. -/
theorem Ends.nil : Ends rule M X [] X := fun s h => ⟨s, rfl, h⟩

/-- Moves, then more. -/
theorem Ends.append (h : Ends rule M X moves Y) (h' : Ends rule M Y more Z) :
    Ends rule M X (moves ++ more) Z := by
  intro s hs
  obtain ⟨s₁, e₁, h₁⟩ := h s hs
  obtain ⟨s₂, e₂, h₂⟩ := h' s₁ h₁
  exact ⟨s₂, by rw [run_append, e₁]; exact e₂, h₂⟩

/-- A move, then more. -/
theorem Ends.cons {move : Move q_len kv_len d α} (h : Ends rule M X [move] Y)
    (h' : Ends rule M Y more Z) : Ends rule M X (move :: more) Z :=
  Ends.append h h'

/-- The order of what lies in fast memory does not matter. -/
theorem Ends.perm {X' Y' : List (Element q_len kv_len d α)} (h : Ends rule M X moves Y)
    (hX : X'.Perm X) (hY : Y.Perm Y') : Ends rule M X' moves Y' := fun s hs =>
  have ⟨s', e, h'⟩ := h s (hs.trans hX)
  ⟨s', e, h'.trans hY⟩

/-- One move, then others. -/
private theorem ends_single {move : Move q_len kv_len d α}
    (h : ∀ s : State q_len kv_len d α, s.red.Perm X →
      ∃ s', step rule M s move = some s' ∧ s'.red.Perm Y) : Ends rule M X [move] Y := by
  intro s hs
  obtain ⟨s', e, h'⟩ := h s hs
  exact ⟨s', by simp [run, e], h'⟩

/-- An input is loaded, where there is room. -/
theorem ends_load {x : Element q_len kv_len d α} (hx : x.isInput) (hM : X.length < M) :
    Ends rule M X [.load x] (x :: X) :=
  ends_single fun s hs => ⟨{ s with red := x :: s.red }, by simp [step, hx, hs.length_eq, hM],
    hs.cons x⟩

/-- An element is computed from those that lie there, where there is room. -/
theorem ends_compute {x : Element q_len kv_len d α}
    (hx : ∀ red, (∀ y ∈ X, y ∈ red) → rule red x) (hM : X.length < M) :
    Ends rule M X [.compute x] (x :: X) :=
  ends_single fun s hs => ⟨{ s with red := x :: s.red },
    by simp [step, hx s.red fun y hy => hs.mem_iff.mpr hy, hs.length_eq, hM], hs.cons x⟩

/-- An element is deleted. -/
theorem ends_delete {x : Element q_len kv_len d α} : Ends rule M (x :: X) [.delete x] X :=
  ends_single fun s hs => ⟨{ s with red := s.red.erase x }, rfl, by simpa using hs.erase x⟩

/-- An element is stored; it stays. -/
theorem ends_store {x : Element q_len kv_len d α} (hx : x ∈ X) : Ends rule M X [.store x] X :=
  ends_single fun s hs => ⟨{ s with blue := x :: s.blue }, by simp [step, hs.mem_iff, hx], hs⟩

/-- Some elements are deleted. -/
theorem ends_deletes (xs : List (Element q_len kv_len d α)) :
    Ends rule M (xs ++ X) (xs.map .delete) X := by
  induction xs with
  | nil => exact .nil
  | cons x xs ih => exact .cons ends_delete ih

/-- Some elements are stored. -/
theorem ends_stores {xs : List (Element q_len kv_len d α)} (h : ∀ x ∈ xs, x ∈ X) :
    Ends rule M X (xs.map .store) X := by
  induction xs with
  | nil => exact .nil
  | cons x xs ih =>
    exact .cons (ends_store (h x (by simp))) (ih fun y hy => h y (by simp [hy]))

/-! ## Moves that add elements -/

/-- Where the elements of `base` lie in fast memory, and `slack` elements of room are left at the
end, the moves add those of `new`. -/
@[expose] def Adds (rule : Rule q_len kv_len d α) (M : Nat)
    (base : List (Element q_len kv_len d α)) (slack : Nat) (moves : List (Move q_len kv_len d α))
    (new : List (Element q_len kv_len d α)) : Prop :=
  ∀ X, (∀ x ∈ base, x ∈ X) → X.length + new.length + slack ≤ M → Ends rule M X moves (new ++ X)

/-- The same for each of some things, one after the other. -/
theorem adds_flatMap {β : Type v} {slack : Nat} {play : β → List (Move q_len kv_len d α)}
    {new : β → List (Element q_len kv_len d α)} {xs : List β}
    (h : ∀ x ∈ xs, Adds rule M base slack (play x) (new x)) :
    Adds rule M base slack (xs.flatMap play) (xs.flatMap new) := by
  induction xs with
  | nil => exact fun X _ _ => .nil
  | cons x xs ih =>
    intro X hb hM
    simp only [List.flatMap_cons, List.length_append] at hM ⊢
    have h₁ := h x (by simp) X hb (by omega)
    have h₂ := ih (fun y hy => h y (by simp [hy])) (new x ++ X)
      (fun y hy => List.mem_append_right _ (hb y hy)) (by simp only [List.length_append]; omega)
    refine (h₁.append h₂).perm (.refl _) ?_
    rw [← List.append_assoc]
    exact List.perm_append_comm.append_right X

/-- Inputs are loaded. -/
theorem adds_loads {xs : List (Element q_len kv_len d α)} (h : ∀ x ∈ xs, x.isInput) :
    Adds rule M [] 0 (xs.map .load) xs := by
  have := adds_flatMap (rule := rule) (M := M) (base := []) (slack := 0) (xs := xs)
    (play := fun x => [.load x]) (new := fun x => [x]) fun x hx X _ hM =>
      ends_load (h x hx) (by simpa using hM)
  simpa [← List.map_eq_flatMap] using this

/-- Elements that are neither queries, keys nor sums are loaded. -/
theorem adds_loadOthers (names : List α) :
    Adds rule M [] 0 (names.map fun name => .load (.other name)) (names.map .other) := by
  have := adds_loads (rule := rule) (M := M) (xs := names.map .other) (by simp [Element.isInput])
  simpa [Function.comp_def] using this

/-- Such elements are deleted. -/
theorem ends_deleteOthers (names : List α) :
    Ends rule M (names.map .other ++ X) (names.map fun name => .delete (.other name)) X := by
  simpa [Function.comp_def] using ends_deletes (rule := rule) (M := M) (X := X) (names.map .other)

/-- Such elements are stored. -/
theorem ends_storeOthers {names : List α} (h : ∀ name ∈ names, .other name ∈ X) :
    Ends rule M X (names.map fun name => .store (.other name)) X := by
  have := ends_stores (rule := rule) (M := M) (X := X) (xs := names.map .other) (by simpa using h)
  simpa [Function.comp_def] using this

/-- Such elements are computed. -/
theorem adds_computeOthers (names : List α) :
    Adds bySums M ([] : List (Element q_len kv_len d α)) 0
      (names.map fun name => .compute (.other name)) (names.map .other) := by
  have := adds_flatMap (rule := bySums (q_len := q_len) (kv_len := kv_len) (d := d)) (M := M)
    (base := []) (slack := 0) (xs := names) (play := fun x => [.compute (.other x)])
    (new := fun x => [.other x]) fun x hx X _ hM =>
      ends_compute (fun _ _ => rfl) (by simpa using hM)
  simpa [← List.map_eq_flatMap] using this

/-! ## Scores -/

/-- Add products to a sum, one by one. -/
@[expose] def addPlay (i : Fin q_len) (j : Fin kv_len) (s : Sum d) :
    List (Fin d) → List (Move q_len kv_len d α)
  | [] => []
  | c :: cs =>
    .compute (.sum i j (.product c)) :: .compute (.sum i j (.add s (.product c)))
      :: .delete (.sum i j (.product c)) :: .delete (.sum i j s)
      :: addPlay i j (.add s (.product c)) cs

/-- Form a score: its products are computed and added one by one. -/
@[expose] def scorePlay (i : Fin q_len) (j : Fin kv_len) : List (Move q_len kv_len d α) :=
  match List.finRange d with
  | [] => []
  | c :: cs => .compute (.sum i j (.product c)) :: addPlay i j (.product c) cs

/-- The sum that it forms; none where there are no products. -/
@[expose] def scoreSum (i : Fin q_len) (j : Fin kv_len) : List (Element q_len kv_len d α) :=
  match List.finRange d with
  | [] => []
  | c :: cs => [.sum i j (cs.foldl (fun s c => .add s (.product c)) (.product c))]

private theorem ends_addPlay {i : Fin q_len} {j : Fin kv_len}
    (hq : ∀ c, .query i c ∈ X) (hk : ∀ c, .key j c ∈ X) (hM : X.length + 3 ≤ M)
    (cs : List (Fin d)) :
    ∀ s, Ends bySums M (.sum i j s :: X) (addPlay i j s cs)
      (.sum i j (cs.foldl (fun s c => .add s (.product c)) s) :: X) := by
  induction cs with
  | nil => exact fun s => .nil
  | cons c cs ih =>
    intro s
    refine .cons (ends_compute (fun red h => ?_) (by simp; omega)) <|
      .cons (ends_compute (fun red h => ?_) (by simp; omega)) <|
      .cons (Y := .sum i j (.add s (.product c)) :: .sum i j s :: X)
        (ends_delete.perm (.swap ..) (.refl _)) <|
      .cons (Y := .sum i j (.add s (.product c)) :: X)
        (ends_delete.perm (.swap ..) (.refl _)) (ih _)
    · have h₁ := h (.query i c) (by simp [hq])
      have h₂ := h (.key j c) (by simp [hk])
      simp [bySums, addsUp, h₁, h₂]
    · have h₁ := h (.sum i j (.product c)) (by simp)
      have h₂ := h (.sum i j s) (by simp)
      have h₃ : addsUp red i j s := by cases s <;> simp [addsUp, h₂]
      simp [bySums, addsUp, h₁, h₃]

/-- With room for two elements besides, a score is formed of a query and a key. -/
theorem adds_scorePlay {i : Fin q_len} {j : Fin kv_len} (hq : ∀ c, .query i c ∈ base)
    (hk : ∀ c, .key j c ∈ base) : Adds bySums M base 2 (scorePlay i j) (scoreSum i j) := by
  intro X hb hM
  unfold scorePlay scoreSum at *
  split
  · exact .nil
  next c cs e =>
    simp only [e, List.length_singleton] at hM
    have h₁ := hb _ (hq c)
    have h₂ := hb _ (hk c)
    refine .cons (ends_compute (fun red h => ?_) (by omega))
      (ends_addPlay (fun c => hb _ (hq c)) (fun c => hb _ (hk c)) (by omega) cs _)
    simp [bySums, addsUp, h _ h₁, h _ h₂]

/-! ## What a play passes -/

/-- At some time fast memory has an element. -/
@[expose] def Passes (rule : Rule q_len kv_len d α) (M : Nat) (X : List (Element q_len kv_len d α))
    (moves : List (Move q_len kv_len d α)) (x : Element q_len kv_len d α) : Prop :=
  ∃ before Y, before <+: moves ∧ Ends rule M X before Y ∧ x ∈ Y

variable {x : Element q_len kv_len d α}

/-- At the end of some moves. -/
theorem Ends.passes (h : Ends rule M X moves Y) (hx : x ∈ Y) : Passes rule M X moves x :=
  ⟨moves, Y, List.prefix_rfl, h, hx⟩

/-- During the first of two plays. -/
theorem Passes.append (h : Passes rule M X moves x) : Passes rule M X (moves ++ more) x :=
  have ⟨before, Y, hp, hE, hx⟩ := h
  ⟨before, Y, hp.trans (List.prefix_append ..), hE, hx⟩

/-- During the second of two plays. -/
theorem Ends.append_passes (h : Ends rule M X moves Y) (h' : Passes rule M Y more x) :
    Passes rule M X (moves ++ more) x :=
  have ⟨before, Z, hp, hE, hx⟩ := h'
  ⟨moves ++ before, Z, (List.prefix_append_right_inj moves).mpr hp, h.append hE, hx⟩

/-- Some plays one after the other, each of which ends as it began. -/
theorem ends_flatMap {β : Type v} {play : β → List (Move q_len kv_len d α)} {xs : List β}
    (h : ∀ y ∈ xs, Ends rule M X (play y) X) : Ends rule M X (xs.flatMap play) X := by
  induction xs with
  | nil => exact .nil
  | cons y ys ih => exact (h y (by simp)).append (ih fun z hz => h z (by simp [hz]))

/-- During one of some plays, each of which ends as it began. -/
theorem passes_flatMap {β : Type v} {play : β → List (Move q_len kv_len d α)} {xs : List β}
    (h : ∀ y ∈ xs, Ends rule M X (play y) X) {y : β} (hy : y ∈ xs)
    (hp : Passes rule M X (play y) x) : Passes rule M X (xs.flatMap play) x := by
  induction xs with
  | nil => simp at hy
  | cons z zs ih =>
    rcases List.mem_cons.mp hy with rfl | hy
    · exact hp.append
    · exact (h z (by simp)).append_passes (ih (fun w hw => h w (by simp [hw])) hy)

/-- A play that passes a score forms it. -/
theorem Passes.forms {i : Fin q_len} {j : Fin kv_len} {products : Sum d}
    (h : Passes rule M [] moves (.sum i j products)) (hc : ∀ c, products.has c) :
    Forms rule M start moves i j := by
  obtain ⟨before, Y, hp, hE, hx⟩ := h
  obtain ⟨s', e, h'⟩ := hE start (.refl _)
  exact ⟨before, s', products, hp, e, hc, h'.mem_iff.mpr hx⟩

omit [DecidableEq α] in
/-- The sum of a score has all its products. -/
theorem exists_scoreSum (hd : 0 < d) (i : Fin q_len) (j : Fin kv_len) :
    ∃ products : Sum d, .sum i j products ∈ scoreSum (α := α) i j ∧ ∀ c, products.has c := by
  have key : ∀ (cs : List (Fin d)) (s : Sum d) c, s.has c ∨ c ∈ cs →
      (cs.foldl (fun s c => .add s (.product c)) s).has c := by
    intro cs
    induction cs with
    | nil => simp
    | cons c cs ih =>
      intro s c' h
      refine ih _ c' ?_
      simp only [Sum.has, Bool.or_eq_true, decide_eq_true_eq]
      grind
  unfold scoreSum
  have all : ∀ c, c ∈ List.finRange d := List.mem_finRange
  split
  next e =>
    have := all ⟨0, hd⟩
    simp [e] at this
  next c cs e =>
    refine ⟨_, List.mem_singleton.mpr rfl, fun c' => key cs _ c' ?_⟩
    have := all c'
    simp only [e, List.mem_cons] at this
    simp only [Sum.has, decide_eq_true_eq]
    grind

end Attention.Model.Pebble
