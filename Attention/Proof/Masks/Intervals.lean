module

public section

/-! # Which keys a run of consecutive rows sees through a window

Integers only: row i stands at i + s on the axis of the keys, and sees the keys from i + s − left to
i + s + right; `none` stands for no bound. -/

namespace Attention.Proof

variable {left right : Option Nat} {s : Int} {i i' j j' A B : Nat}

/-- Key j is not before the window of row i. -/
@[expose] def WindowLeft (left : Option Nat) (s : Int) (i j : Nat) : Prop :=
  ∀ l, left = some l → (i : Int) + s - (l : Nat) ≤ j

/-- Key j is not after the window of row i. -/
@[expose] def WindowRight (right : Option Nat) (s : Int) (i j : Nat) : Prop :=
  ∀ r, right = some r → (j : Int) ≤ i + s + (r : Nat)

/-- The left bound holds for earlier rows and later keys too. -/
theorem WindowLeft.mono (h : WindowLeft left s i j) (hi : i' ≤ i) (hj : j ≤ j') :
    WindowLeft left s i' j' := fun l hl => by
  have := h l hl
  omega

/-- The right bound holds for later rows and earlier keys too. -/
theorem WindowRight.mono (h : WindowRight right s i j) (hi : i ≤ i') (hj : j' ≤ j) :
    WindowRight right s i' j' := fun r hr => by
  have := h r hr
  omega

/-- The windows of consecutive rows leave no gap: a key not before the first one's window and not
after the last one's is in the window of a row between. -/
theorem exists_row (hA : A ≤ B) (hl : WindowLeft left s A j) (hr : WindowRight right s B j) :
    ∃ i, (A ≤ i ∧ i ≤ B) ∧ WindowLeft left s i j ∧ WindowRight right s i j := by
  by_cases h : WindowRight right s A j
  · exact ⟨A, ⟨Nat.le_refl A, hA⟩, hl, h⟩
  · cases right with
    | none => exact absurd (fun r hr => nomatch hr) h
    | some r =>
      have h₁ : ¬ (j : Int) ≤ A + s + r := fun h' => h fun r' hr' => by
        cases hr'
        exact h'
      have h₂ := hr r rfl
      obtain ⟨i, hi⟩ : ∃ i : Nat, (i : Int) = j - s - r := ⟨(j - s - r).toNat, by omega⟩
      refine ⟨i, by omega, fun l _ => by omega, fun r' hr' => ?_⟩
      cases hr'
      omega

end Attention.Proof
