module

public import Attention.Model.Memory

public section

/-! # What a program does not load has no influence

A program cannot know a row of slow memory in another way than by `load`, which counts it: if it
never loads the row, then it ends with the same fast memory, and the same slow memory but for that
row, whatever the row holds. -/

namespace Attention.Model

universe u

variable {S R : Type u} {Δ : List Row} {ρ : Row}

/-- The number of an array. -/
@[expose] def Place.index {ρ : Row} : {Γ : List Row} → Place Γ ρ → Nat
  | _, here => 0
  | _, there place => place.index + 1

/-- That a program loads row `j` of the array with a number, at some time. -/
@[expose] def Program.Loads (index j : Nat) :
    {Γ Γ' : List Row} → Program S R Δ Γ Γ' → Prop
  | _, _, skip => False
  | _, _, seq first second => first.Loads index j ∨ second.Loads index j
  | _, _, load array rows => array.index = index ∧ j ∈ rows
  | _, _, compute _ _ => False
  | _, _, free => False
  | _, _, freeSecond => False
  | _, _, store _ => False

/-- Two memories are the same but for row `j` of the array at a place. -/
inductive Memory.SameBut {ρ : Row} (j : Nat) :
    {Γ : List Row} → Place Γ ρ → Memory S R Γ → Memory S R Γ → Prop where
  /-- It is the first array. -/
  | here {Γ : List Row} {array array' : List (ρ.Val S R)} {rest : Memory S R Γ}
    (length : array.length = array'.length) (same : ∀ i : Nat, i ≠ j → array[i]? = array'[i]?) :
    SameBut j .here (.cons array rest) (.cons array' rest)
  /-- It is one after the first. -/
  | there {σ : Row} {Γ : List Row} {place : Place Γ ρ} {array : List (σ.Val S R)}
    {rest rest' : Memory S R Γ} (same : SameBut j place rest rest') :
    SameBut j (.there place) (.cons array rest) (.cons array rest')

namespace Memory

/-- Their other rows are the same. -/
theorem SameBut.getElem? {σ : Row} {j : Nat} {Γ : List Row} {place : Place Γ ρ}
    {memory memory' : Memory S R Γ} (h : SameBut j place memory memory') :
    ∀ (other : Place Γ σ) {i : Nat}, (other.index = place.index → i ≠ j) →
      (memory.get other)[i]? = (memory'.get other)[i]? := by
  induction h with
  | here _ same =>
    intro other i hi
    cases other with
    | here => exact same i (hi rfl)
    | there => rfl
  | there _ ih =>
    intro other i hi
    cases other with
    | here => rfl
    | there other => exact ih other fun e => hi (by simp only [Place.index, e])

/-- They stay the same but for that row when the same rows are written to both. -/
theorem SameBut.append {σ : Row} {j : Nat} {Γ : List Row} {place : Place Γ ρ}
    {memory memory' : Memory S R Γ} (h : SameBut j place memory memory') :
    ∀ (other : Place Γ σ) (rows : List (σ.Val S R)),
      SameBut j place (memory.append rows other) (memory'.append rows other) := by
  induction h with
  | here length same =>
    intro other rows
    cases other with
    | here =>
      refine .here (by simp [length]) fun i hi => ?_
      rw [List.getElem?_append, List.getElem?_append, length, same i hi]
    | there => exact .here length same
  | there same ih =>
    intro other rows
    cases other with
    | here => exact .there same
    | there other => exact .there (ih other rows)

end Memory

private theorem filterMap_eq {α : Type} {β : Type u} {f g : α → Option β} {xs : List α}
    (h : ∀ x ∈ xs, f x = g x) : xs.filterMap f = xs.filterMap g := by
  induction xs with
  | nil => rfl
  | cons x xs ih =>
    rw [List.filterMap_cons, List.filterMap_cons, h x (by simp), ih fun y hy => h y (by simp [hy])]

/-- **loads**: what a program does not load has no influence. -/
theorem Program.run_of_not_loads {j : Nat} {place : Place Δ ρ} {Γ Γ' : List Row}
    (program : Program S R Δ Γ Γ') (h : ¬ program.Loads place.index j)
    {machine machine' : Machine S R Δ Γ} (hf : machine.fast = machine'.fast)
    (hs : Memory.SameBut j place machine.slow machine'.slow) :
    (program.run machine).fast = (program.run machine').fast
      ∧ Memory.SameBut j place (program.run machine).slow (program.run machine').slow := by
  induction program with
  | skip => exact ⟨hf, hs⟩
  | seq first second ih₁ ih₂ =>
    have h₁ := ih₁ (fun h' => h (.inl h')) hf hs
    exact ih₂ (fun h' => h (.inr h')) h₁.1 h₁.2
  | load array rows =>
    refine ⟨?_, hs⟩
    have : (rows.filterMap fun i => (machine.slow.get array)[i]?)
        = rows.filterMap fun i => (machine'.slow.get array)[i]? :=
      filterMap_eq fun i hi => hs.getElem? array fun e hj => h ⟨e, hj ▸ hi⟩
    simp only [run, this, hf]
  | compute ρ f => exact ⟨by simp only [run, hf], hs⟩
  | free =>
    obtain ⟨_, fast, _⟩ := machine
    obtain ⟨_, _, _⟩ := machine'
    subst hf
    cases fast
    exact ⟨rfl, hs⟩
  | freeSecond =>
    obtain ⟨_, fast, _⟩ := machine
    obtain ⟨_, _, _⟩ := machine'
    subst hf
    cases fast with
    | cons _ fast => cases fast; exact ⟨rfl, hs⟩
  | store array =>
    obtain ⟨_, fast, _⟩ := machine
    obtain ⟨_, _, _⟩ := machine'
    subst hf
    cases fast
    exact ⟨rfl, hs.append array _⟩

end Attention.Model
