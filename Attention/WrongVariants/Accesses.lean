module

public import Attention.Kernel.Accesses

public section

/-! # Wrong variants of a kernel's accesses

Of one head of keys of one component: two sequences packed in a tensor of five rows, the first of
them with rows 0 and 1. -/

namespace Attention.WrongVariants

open Kernel

/-- The claim of `Packed.accesses` about the first sequence, made of any condition under which the
key in row m of the tensor is loaded. -/
abbrev LoadsOwnRows (loaded : Nat → Bool) : Prop :=
  ∀ m < 16, Access.InRows 1 5 1 0 2 5 1 ⟨loaded m, m⟩

/-- The claim of `Full.accesses`, that the load is inside the tensor. -/
abbrev LoadsInside (loaded : Nat → Bool) : Prop :=
  ∀ m < 16, Access.Inside 1 1 5 1 0 5 1 ⟨loaded m, m⟩

/-- Positive control: up to the sequence's last key. -/
theorem ownRows_loaded : LoadsOwnRows fun m => decide (m < 2) := fun m _ h =>
  have h : m < 2 := of_decide_eq_true h
  ⟨0, ⟨m, by omega⟩, 0, by simp only; omega, by simp only; omega, by simp⟩

/-- One key too many: inside the tensor, but the next sequence's. -/
theorem pastLastKey_refuted : ¬ LoadsOwnRows fun m => decide (m ≤ 2) := fun claim => by
  obtain ⟨h, m, n, h₁, h₂, e⟩ := claim 2 (by decide) (by decide)
  simp only [Fin.fin_one_eq_zero, Fin.val_zero] at e
  omega

/-- The weaker claim does not see it. -/
theorem pastLastKey_inside : LoadsInside fun m => decide (m ≤ 2) := fun m _ h =>
  have h : m ≤ 2 := of_decide_eq_true h
  ⟨0, 0, ⟨m, by omega⟩, 0, by simp⟩

/-- Without a check of where the tensor ends. -/
theorem pastTheEnd_refuted : ¬ LoadsInside fun _ => true := fun claim => by
  obtain ⟨b, h, m, n, e⟩ := claim 5 (by decide) rfl
  simp only [Fin.fin_one_eq_zero, Fin.val_zero] at e
  omega

end Attention.WrongVariants
