module

public import Attention.Spec.Cache
public import Attention.Proof.Cache.Invariant

public section

/-! # The cached state after any sequence of changes -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

private theorem perm_eraseIdx {α : Type u} : ∀ (row : List α) (i : Nat) (h : i < row.length),
    row.Perm (row[i] :: row.eraseIdx i)
  | _ :: _, 0, _ => .refl _
  | x :: row, i + 1, h => ((perm_eraseIdx row i (by simpa using h)).cons x).trans (.swap _ _ _)

private theorem perm_set {α : Type u} (new : α) : ∀ (row : List α) (i : Nat), i < row.length →
    (new :: row.eraseIdx i).Perm (row.set i new)
  | _ :: _, 0, _ => .refl _
  | x :: row, i + 1, h => .trans (.swap _ _ _) ((perm_set new row i (by simpa using h)).cons x)

/-- A change of the keys keeps the state standing for them. -/
theorem represents_edit {c : List (ScoredValue S R d) × State S R d}
    (h : Represents c.2 c.1) (e : Edit S R d) : Represents (edit c e).2 (edit c e).1 := by
  obtain ⟨row, s⟩ := c
  replace h : Represents s row := h
  cases e with
  | append key => exact h.step key
  | delete i =>
    simp only [edit]
    cases hi : row[i]? with
    | none => exact h
    | some key =>
      obtain ⟨hlt, rfl⟩ := List.getElem?_eq_some_iff.mp hi
      exact h.delete (perm_eraseIdx row i hlt)
  | replace i new =>
    simp only [edit]
    cases hi : row[i]? with
    | none => exact h
    | some old =>
      obtain ⟨hlt, rfl⟩ := List.getElem?_eq_some_iff.mp hi
      refine ((h.delete (perm_eraseIdx row i hlt)).step new).perm
        ((List.perm_append_singleton new _).trans (perm_set new row i hlt))

private theorem edit_keys (c : List (ScoredValue S R d) × State S R d) (e : Edit S R d) :
    (edit c e).1 = e.keys c.1 := by
  cases e with
  | append key => rfl
  | delete i =>
    simp only [edit, Edit.keys]
    cases hi : c.1[i]? with
    | none => exact (List.eraseIdx_of_length_le (List.getElem?_eq_none_iff.mp hi)).symm
    | some key => rfl
  | replace i new =>
    simp only [edit, Edit.keys]
    cases hi : c.1[i]? with
    | none => exact (List.set_eq_of_length_le (List.getElem?_eq_none_iff.mp hi)).symm
    | some old => rfl

/-- **kv-edits**: after any sequence of appended, deleted and replaced keys, from the start, the
kept keys are those that are there, and the kept state stands for them: if one of them is unmasked,
l is positive and the finished output is their attention; otherwise l and o are 0. -/
theorem kv_edits (edits : List (Edit S R d)) :
    let row := edits.foldl Edit.keys []
    let c := edits.foldl edit ([], empty)
    c.1 = row ∧ ((∃ k ∈ row, k.score ≠ none) → 0 < c.2.l ∧ finish c.2 = attend row)
      ∧ ((∀ k ∈ row, k.score = none) → c.2.l = 0 ∧ c.2.o = Vec.zero) := by
  have h : ∀ c : List (ScoredValue S R d) × State S R d, Represents c.2 c.1 →
      (edits.foldl edit c).1 = edits.foldl Edit.keys c.1 ∧
        Represents (edits.foldl edit c).2 (edits.foldl Edit.keys c.1) := by
    induction edits with
    | nil => exact fun c hc => ⟨rfl, hc⟩
    | cons e edits ih =>
      intro c hc
      rw [List.foldl_cons, List.foldl_cons, ← edit_keys]
      exact ih _ (represents_edit hc e)
  obtain ⟨h₁, h₂⟩ := h ([], empty) (represents_ofBlock [])
  exact ⟨h₁, fun hk => ⟨h₂.l_pos hk, h₂.finish_eq⟩, h₂.eq_zero⟩

end Attention.Proof
