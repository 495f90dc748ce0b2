module

public import Attention.Spec.Cache
public import Attention.Proof.CacheInvariant

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

private theorem represents_edit {c : List (ScoredValue S R d) × State S R d}
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

private theorem represents_slide (w : Nat) {c : List (ScoredValue S R d) × State S R d}
    (h : Represents c.2 c.1) (key : ScoredValue S R d) :
    Represents (slide w c key).2 (slide w c key).1 := by
  simp only [slide]
  split
  · exact represents_edit (represents_edit h _) _
  · exact represents_edit h _

private theorem slide_keys (w : Nat) {c : List (ScoredValue S R d) × State S R d}
    {row : List (ScoredValue S R d)} (h : c.1 = row.drop (row.length - w))
    (key : ScoredValue S R d) :
    (slide w c key).1 = (row ++ [key]).drop ((row ++ [key]).length - w) := by
  have hl : c.1.length = row.length - (row.length - w) := by rw [h, List.length_drop]
  simp only [slide, edit, List.length_append, List.length_singleton]
  split
  · have h₁ : (c.1 ++ [key])[0]? = some (c.1 ++ [key])[0] := List.getElem?_eq_getElem _
    rw [h₁]
    show (c.1 ++ [key]).eraseIdx 0 = _
    rw [List.eraseIdx_zero, ← List.drop_one, h, ← List.drop_append_of_le_length (by omega),
      List.drop_drop, show row.length - w + 1 = row.length + 1 - w by omega]
  · show c.1 ++ [key] = _
    rw [h, ← List.drop_append_of_le_length (by omega),
      show row.length - w = row.length + 1 - w by omega]

/-- **kv-window**: after any keys, the cache kept for a sliding window of `w` keys holds the last
`w` of them, and its state gives their attention; if one of these is unmasked, l is positive. -/
theorem kv_window (w : Nat) (keys : List (ScoredValue S R d)) :
    let c := keys.foldl (slide w) ([], empty)
    let row := keys.drop (keys.length - w)
    c.1 = row ∧ ((∃ k ∈ row, k.score ≠ none) → 0 < c.2.l ∧ finish c.2 = attend row)
      ∧ ((∀ k ∈ row, k.score = none) → c.2.l = 0 ∧ c.2.o = Vec.zero) := by
  suffices h : ∀ (pre : List (ScoredValue S R d)) (c : List (ScoredValue S R d) × State S R d),
      c.1 = pre.drop (pre.length - w) → Represents c.2 c.1 →
      (keys.foldl (slide w) c).1 = (pre ++ keys).drop ((pre ++ keys).length - w) ∧
        Represents (keys.foldl (slide w) c).2
          ((pre ++ keys).drop ((pre ++ keys).length - w)) by
    obtain ⟨h₁, h₂⟩ := h [] ([], empty) (by simp) (represents_ofBlock [])
    exact ⟨h₁, fun hk => ⟨h₂.l_pos hk, h₂.finish_eq⟩, h₂.eq_zero⟩
  induction keys with
  | nil => intro pre c hc h; rw [List.append_nil, ← hc]; exact ⟨rfl, h⟩
  | cons key keys ih =>
    intro pre c hc h
    have := ih (pre ++ [key]) (slide w c key) (slide_keys w hc key) (represents_slide w h key)
    rwa [List.append_assoc, List.singleton_append] at this

end Attention.Proof
