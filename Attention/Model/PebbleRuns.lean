module

public import Attention.Model.Pebble

public section

/-! # Plays of the pebble game, move by move

All that a play has in fast memory comes from elements that lay there at first and from elements
that it loads. -/

namespace Attention.Model.Pebble

universe u

variable {q_len kv_len d : Nat} {α : Type u} [DecidableEq α] {M : Nat}

/-! ## What fast memory can hold -/

/-- An element is among some, or computed from them. -/
@[expose] def From (seen : List (Element q_len kv_len d α)) (x : Element q_len kv_len d α) : Prop :=
  x ∈ seen ∨ bySums seen x

/-- A sum that adds up from such elements adds up from those that were seen. -/
theorem addsUp_of_from {seen red : List (Element q_len kv_len d α)} {i : Fin q_len}
    {j : Fin kv_len} (h : ∀ x ∈ red, From seen x) {products : Sum d}
    (hs : addsUp red i j products) : addsUp seen i j products := by
  have key : ∀ {products}, .sum i j products ∈ red → addsUp seen i j products := by
    intro products hm
    rcases h _ hm with h | h
    · cases products <;> simp [addsUp, h]
    · exact h
  induction products with
  | product c =>
    simp only [addsUp, Bool.or_eq_true, Bool.and_eq_true, decide_eq_true_eq] at hs
    rcases hs with hs | ⟨hq, hk⟩
    · exact key hs
    · have hq := h _ hq
      have hk := h _ hk
      simp only [From, bySums, Bool.false_eq_true, or_false] at hq hk
      simp [addsUp, hq, hk]
  | add left right ihl ihr =>
    simp only [addsUp, Bool.or_eq_true, Bool.and_eq_true, decide_eq_true_eq] at hs
    rcases hs with hs | ⟨hl, hr⟩
    · exact key hs
    · simp [addsUp, ihl hl, ihr hr]

/-- Elements computed from such elements come from those that were seen. -/
theorem from_of_bySums {seen red : List (Element q_len kv_len d α)}
    (h : ∀ x ∈ red, From seen x) {x : Element q_len kv_len d α} (hx : bySums red x) :
    From seen x := by
  cases x with
  | query => simp [bySums] at hx
  | key => simp [bySums] at hx
  | sum i j products => exact .inr (addsUp_of_from h hx)
  | other => exact .inr rfl

/-- The elements that a play loads. -/
@[expose] def loaded : List (Move q_len kv_len d α) → List (Element q_len kv_len d α)
  | [] => []
  | .load x :: play => x :: loaded play
  | _ :: play => loaded play

omit [DecidableEq α] in
/-- Loads are counted. -/
theorem length_loaded (play : List (Move q_len kv_len d α)) :
    (loaded play).length ≤ transfers play := by
  induction play with
  | nil => simp [loaded]
  | cons move play ih =>
    cases move <;> simp_all [loaded, transfers, Move.isTransfer]
    omega

omit [DecidableEq α] in
/-- A part of a play loads no more than the whole. -/
theorem loaded_of_prefix {before play : List (Move q_len kv_len d α)}
    (h : before <+: play) : ∀ x ∈ loaded before, x ∈ loaded play := by
  obtain ⟨after, rfl⟩ := h
  induction before with
  | nil => simp [loaded]
  | cons move before ih =>
    cases move <;> simp only [loaded, List.cons_append, List.mem_cons] <;> grind

omit [DecidableEq α] in
/-- Transfers add up. -/
theorem transfers_append (before after : List (Move q_len kv_len d α)) :
    transfers (before ++ after) = transfers before + transfers after :=
  List.countP_append

/-! ## The game, move by move -/

section
variable {rule : Rule q_len kv_len d α} {s s' : State q_len kv_len d α}

/-- After a move fast memory has what it had, what is loaded, and what can be computed. -/
theorem mem_of_step {move : Move q_len kv_len d α} (h : step rule M s move = some s') :
    ∀ x ∈ s'.red, x ∈ s.red ∨ x ∈ loaded [move] ∨ rule s.red x := by
  have erase : ∀ {x y}, x ∈ s.red.erase y → x ∈ s.red := List.mem_of_mem_erase
  cases move <;> simp only [step, loaded] at h ⊢ <;> grind

/-- A move leaves fast memory no more than full. -/
theorem length_of_step {move : Move q_len kv_len d α} (hs : s.red.length ≤ M)
    (h : step rule M s move = some s') : s'.red.length ≤ M := by
  have erase : ∀ y, (s.red.erase y).length ≤ s.red.length := fun y => List.erase_sublist.length_le
  cases move <;> simp only [step] at h <;> grind [List.length_erase_of_mem, List.length_pos_of_mem]

/-- A play is run by parts. -/
theorem run_append (before after : List (Move q_len kv_len d α)) :
    ∀ s, run rule M s (before ++ after) = (run rule M s before).bind (run rule M · after) := by
  induction before with
  | nil => simp [run]
  | cons move before ih => simp [run, ih, Option.bind_assoc]

/-- Fast memory is never over full. -/
theorem length_of_run {play : List (Move q_len kv_len d α)} :
    ∀ {s}, s.red.length ≤ M → run rule M s play = some s' → s'.red.length ≤ M := by
  induction play with
  | nil => grind [run]
  | cons move play ih =>
    intro s hs h
    obtain ⟨s₁, h₁, h₂⟩ := Option.bind_eq_some_iff.mp h
    exact ih (length_of_step hs h₁) h₂

end

/-- All that a play computes in a row comes from what was there at first, and what it loads. -/
theorem from_of_run {seen : List (Element q_len kv_len d α)} {s' : State q_len kv_len d α}
    {play : List (Move q_len kv_len d α)} : ∀ {s},
    (∀ x ∈ s.red, From seen x) → (∀ x ∈ loaded play, x ∈ seen) →
    run bySums M s play = some s' → ∀ x ∈ s'.red, From seen x := by
  induction play with
  | nil => grind [run]
  | cons move play ih =>
    intro s hs hl h
    obtain ⟨s₁, h₁, h₂⟩ := Option.bind_eq_some_iff.mp h
    refine ih (s := s₁) (fun x hx => ?_) (by cases move <;> simp_all [loaded]) h₂
    rcases mem_of_step h₁ x hx with h | h | h
    · exact hs x h
    · exact .inl (hl x (by cases move <;> simp_all [loaded]))
    · exact from_of_bySums hs h

/-- All that a play computes comes from the inputs that it loads. -/
theorem from_inputs_of_run {seen : List (Element q_len kv_len d α)}
    {s' : State q_len kv_len d α} {play : List (Move q_len kv_len d α)} : ∀ {s},
    (∀ x ∈ s.red ++ s.blue, From seen x) → (∀ x ∈ loaded play, x.isInput → x ∈ seen) →
    run bySums M s play = some s' → ∀ x ∈ s'.red, From seen x := by
  induction play with
  | nil => grind [run]
  | cons move play ih =>
    intro s hs hl h
    obtain ⟨s₁, h₁, h₂⟩ := Option.bind_eq_some_iff.mp h
    have erase : ∀ {x y}, x ∈ s.red.erase y → x ∈ s.red := List.mem_of_mem_erase
    have made : ∀ {x}, bySums s.red x → From seen x := fun hx =>
      from_of_bySums (fun y hy => hs y (List.mem_append_left _ hy)) hx
    refine ih (s := s₁) (fun x hx => ?_) (by cases move <;> simp_all [loaded]) h₂
    cases move <;> simp only [step, loaded] at h₁ hl <;> grind [From]

end Attention.Model.Pebble
