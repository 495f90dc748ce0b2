module

public import Attention.Proof.Cache.Edits

public section

/-! # The cache of a sliding window -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-- One more key in a sliding window keeps the state standing for its keys. -/
theorem represents_slide (w : Nat) {c : List (ScoredValue S R d) × State S R d}
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
  have hle : row.length - w ≤ row.length := Nat.sub_le _ _
  simp only [slide, edit, List.length_append, List.length_singleton]
  split
  · next hw =>
    have hw : w ≤ row.length :=
      Nat.le_trans (Nat.le_of_lt_succ hw) (hl ▸ Nat.sub_le _ _)
    have h₁ := List.getElem?_eq_getElem (l := c.1 ++ [key]) (i := 0)
      (by rw [List.length_append]; exact Nat.succ_pos _)
    rw [h₁]
    show (c.1 ++ [key]).eraseIdx 0 = _
    rw [List.eraseIdx_zero, ← List.drop_one, h, ← List.drop_append_of_le_length hle,
      List.drop_drop, ← Nat.sub_add_comm hw]
  · next hw =>
    show c.1 ++ [key] = _
    have h₁ : row.length - w = row.length + 1 - w := by clear h hle; omega
    rw [h, ← List.drop_append_of_le_length hle, h₁]

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
