module

public import Attention.Model.MemoryLoads

public section

/-! # Loading is counted

Every row that a program loads is among the elements that it has read. -/

namespace Attention.Model

universe u

variable {S R : Type u} {Δ : List Row} {ρ : Row}

/-- Two places with one number are one place. -/
theorem Place.eq_of_index {σ : Row} {Γ : List Row} (place : Place Γ ρ) :
    ∀ other : Place Γ σ, other.index = place.index → ∃ h : σ = ρ, h ▸ other = place := by
  induction place with
  | here =>
    intro other h
    cases other with
    | here => exact ⟨rfl, rfl⟩
    | there => simp [index] at h
  | there place ih =>
    intro other h
    cases other with
    | here => simp [index] at h
    | there other =>
      obtain ⟨e, h⟩ := ih other (by simpa [index] using h)
      subst e
      exact ⟨rfl, congrArg there h⟩

/-- Writing takes no row away. -/
theorem Memory.length_get_append {σ : Row} {Γ : List Row} (place : Place Γ ρ) :
    ∀ (other : Place Γ σ) (memory : Memory S R Γ) (rows : List (σ.Val S R)),
      (memory.get place).length ≤ ((memory.append rows other).get place).length := by
  induction place with
  | here =>
    intro other memory rows
    cases memory with
    | cons array rest =>
      cases other with
      | here => simp [append, get]
      | there => exact Nat.le_refl _
  | there place ih =>
    intro other memory rows
    cases memory with
    | cons array rest =>
      cases other with
      | here => exact Nat.le_refl _
      | there other => exact ih other rest rows

/-- No program takes a row of slow memory away. -/
theorem Program.length_get_run (place : Place Δ ρ) {Γ Γ' : List Row} (program : Program S R Δ Γ Γ')
    (machine : Machine S R Δ Γ) :
    (machine.slow.get place).length ≤ ((program.run machine).slow.get place).length := by
  induction program with
  | skip => exact Nat.le_refl _
  | seq first second ih₁ ih₂ => exact Nat.le_trans (ih₁ machine) (ih₂ _)
  | load array rows => exact Nat.le_refl _
  | compute ρ f => exact Nat.le_refl _
  | free =>
    obtain ⟨_, fast, _⟩ := machine
    cases fast
    exact Nat.le_refl _
  | freeSecond =>
    obtain ⟨_, fast, _⟩ := machine
    cases fast with
    | cons _ fast => cases fast; exact Nat.le_refl _
  | store array =>
    obtain ⟨_, fast, _⟩ := machine
    cases fast
    exact Memory.length_get_append place array _ _

private theorem countP_or (p q : Nat → Bool) (js : List Nat) :
    js.countP (fun j => p j || q j) ≤ js.countP p + js.countP q := by
  induction js with
  | nil => simp
  | cons j js ih =>
    simp only [List.countP_cons]
    cases p j <;> cases q j <;> simp <;> omega

/-- Of some different rows that an array has, those that are loaded are there after loading. -/
theorem countP_le_length_load {α : Type u} (array : List α) (rows : List Nat) {n : Nat}
    (hn : n ≤ array.length) :
    (List.range n).countP (rows.contains ·) ≤ (rows.filterMap fun i => array[i]?).length := by
  induction rows with
  | nil => simp
  | cons r rows ih =>
    have h₁ := countP_or (· == r) (rows.contains ·) (List.range n)
    have h₂ : (List.range n).countP (· == r) = if r ∈ List.range n then 1 else 0 :=
      List.nodup_range.count
    simp only [List.contains_cons]
    by_cases hr : r < n
    · have : array[r]? = some array[r] := List.getElem?_eq_getElem (by omega)
      rw [List.filterMap_cons, this]
      simp only [List.length_cons]
      simp only [List.mem_range, hr, if_true] at h₂
      omega
    · have h₃ : (rows.filterMap fun i => array[i]?).length
          ≤ ((r :: rows).filterMap fun i => array[i]?).length := by
        rw [List.filterMap_cons]
        split <;> simp
      simp only [List.mem_range, hr, if_false] at h₂
      omega

open Classical in
/-- **loads-counted**: a program has read at least the rows that it loads, of those that were there
at first; `c` elements each. -/
theorem Program.reads_run (place : Place Δ ρ) {c n : Nat} (hc : ∀ row : ρ.Val S R, ρ.size row = c)
    {Γ Γ' : List Row} (program : Program S R Δ Γ Γ') :
    ∀ machine : Machine S R Δ Γ, n ≤ (machine.slow.get place).length →
      machine.counts.reads + (List.range n).countP (program.Loads place.index ·) * c
        ≤ (program.run machine).counts.reads := by
  induction program with
  | skip => intro machine _; simp [run, Loads]
  | seq first second ih₁ ih₂ =>
    intro machine hn
    have h₁ := ih₁ machine hn
    have h₂ := ih₂ _ (Nat.le_trans hn (first.length_get_run place machine))
    have h₃ := Nat.mul_le_mul_right c
      (countP_or (first.Loads place.index ·) (second.Loads place.index ·) (List.range n))
    simp only [Loads, Bool.decide_or]
    rw [Nat.add_mul] at h₃
    simp only [run]
    omega
  | load array rows =>
    intro machine hn
    simp only [Loads, run]
    by_cases h : array.index = place.index
    · obtain ⟨e, h'⟩ := Place.eq_of_index place array h
      subst e
      simp only at h'
      subst h'
      have h₁ := Nat.mul_le_mul_right c
        (countP_le_length_load (machine.slow.get array) rows hn)
      have h₂ : Row.sizes _ (rows.filterMap fun i => (machine.slow.get array)[i]?)
          = (rows.filterMap fun i => (machine.slow.get array)[i]?).length * c := by
        simp only [Row.sizes]
        generalize (rows.filterMap fun i => (machine.slow.get array)[i]?) = loaded
        induction loaded with
        | nil => simp
        | cons row loaded ih =>
          simp only [List.map_cons, List.sum_cons, List.length_cons, hc, ih, Nat.add_mul]
          omega
      have h₃ : (fun j => @decide (array.index = array.index ∧ j ∈ rows)
          (Classical.propDecidable _)) = (rows.contains ·) := by
        funext j
        simp
      rw [h₂, h₃]
      omega
    · simp [h]
  | compute ρ f => intro machine _; simp [run, Loads]
  | free =>
    intro machine _
    obtain ⟨_, fast, _⟩ := machine
    cases fast
    simp [run, Loads]
  | freeSecond =>
    intro machine _
    obtain ⟨_, fast, _⟩ := machine
    cases fast with
    | cons _ fast => cases fast; simp [run, Loads]
  | store array =>
    intro machine _
    obtain ⟨_, fast, _⟩ := machine
    cases fast
    simp [run, Loads]

end Attention.Model
