module

public import Attention.Claims.Order
public import Attention.Proof.MultiHead
public import Attention.Spec.Heads

public section

/-! # The outputs of heads side by side

The document 003 writes (O₁ | O₂ | … | Oₕ) for the matrix whose row i is the rows i of the heads'
outputs, one after the other. Row i of it depends on the rows i alone: the lemma from which every
property of multi-head attention follows from that of its heads. The other way a matrix is cut into
heads, as implementations do with what one packed projection makes. -/

namespace Attention.Claims

open Spec

universe u

variable {α : Type u} {m n h d : Nat}

/-- The head to which column c belongs, d columns for each: c / d, rounded down. -/
@[expose] def headOf (c : Fin (h * d)) : Fin h :=
  ⟨c.val / d, Nat.div_lt_of_lt_mul (Nat.lt_of_lt_of_eq c.isLt (Nat.mul_comm _ _))⟩

/-- Which of its head's components column c is: c % d. -/
@[expose] def componentOf (c : Fin (h * d)) : Fin d :=
  ⟨c.val % d, Nat.mod_lt _ (Nat.pos_of_ne_zero fun h₀ => by have := c.isLt; simp [h₀] at this)⟩

/-- A column of head κ belongs to head κ. -/
@[simp] theorem headOf_headColumn (κ : Fin h) (t : Fin d) : headOf (headColumn κ t) = κ := by
  have h₀ : 0 < d := Nat.lt_of_le_of_lt (Nat.zero_le _) t.isLt
  apply Fin.ext
  simp only [headOf, headColumn]
  rw [Nat.mul_comm, Nat.mul_add_div h₀, Nat.div_eq_of_lt t.isLt, Nat.add_zero]

/-- The column of component t is that of component t. -/
@[simp] theorem componentOf_headColumn (κ : Fin h) (t : Fin d) :
    componentOf (headColumn κ t) = t := by
  apply Fin.ext
  simp only [componentOf, headColumn, Nat.mul_add_mod_self_right]
  exact Nat.mod_eq_of_lt t.isLt

/-- Head and component determine the column. -/
@[simp] theorem headColumn_headOf (c : Fin (h * d)) :
    headColumn (headOf c) (componentOf c) = c := by
  apply Fin.ext
  simp only [headOf, headColumn, componentOf]
  exact Nat.div_add_mod' _ _

/-- The vectors of all heads, one after the other. -/
@[expose] def joinRow (x : Fin h → Vec α d) : Vec α (h * d) :=
  Vec.ofFn fun c => (x (headOf c))[componentOf c]

/-- (O₁ | O₂ | … | Oₕ). -/
@[expose] def joinHeads (heads : Vector (Matrix α n d) h) : Matrix α n (h * d) :=
  Vec.ofFn fun i => joinRow fun κ => heads[κ][i]

/-- The part of a vector that belongs to head κ. -/
@[expose] def headPart (κ : Fin h) (x : Vec α (h * d)) : Vec α d :=
  Vec.ofFn fun t => x[headColumn κ t]

/-- What stands in the column of component t of head κ. -/
theorem getElem_joinRow (x : Fin h → Vec α d) (κ : Fin h) (t : Fin d) :
    (joinRow x)[headColumn κ t] = (x κ)[t] := by
  rw [joinRow, Fin.getElem_fin, Vec.getElem_ofFn]
  simp

/-- Row i is the rows i of the heads, one after the other. -/
theorem getElem_joinHeads (heads : Vector (Matrix α n d) h) (i : Fin n) :
    (joinHeads heads)[i] = joinRow fun κ => heads[κ][i] := by
  rw [joinHeads, Fin.getElem_fin, Vec.getElem_ofFn]

/-- **Row by row**: a row of the heads' outputs side by side is made of the heads' rows of its
number, and of nothing else. -/
theorem joinHeads_row {heads : Vector (Matrix α n d) h} {heads' : Vector (Matrix α m d) h}
    {i : Fin n} {i' : Fin m} (hrow : ∀ κ : Fin h, heads'[κ][i'] = heads[κ][i]) :
    (joinHeads heads')[i'] = (joinHeads heads)[i] := by
  rw [getElem_joinHeads, getElem_joinHeads]
  exact congrArg joinRow (funext hrow)

/-- Row i of head κ is its part of row i. -/
theorem getElem_splitHeads (X : Matrix α n (h * d)) (κ : Fin h) (i : Fin n) :
    (splitHeads X)[κ][i] = headPart κ X[i] :=
  Proof.getElem_splitHeads X κ i

/-- A vector is its parts, one after the other. -/
theorem joinRow_headPart (x : Vec α (h * d)) : (joinRow fun κ => headPart κ x) = x := by
  have same : ∀ c c' : Fin (h * d), c = c' → x[c] = x[c'] := fun c c' e => by rw [e]
  refine Vector.ext fun c hc => ?_
  rw [joinRow, Vec.getElem_ofFn, headPart, Fin.getElem_fin, Vec.getElem_ofFn]
  exact same _ ⟨c, hc⟩ (headColumn_headOf ⟨c, hc⟩)

/-- The part of a head of vectors put one after the other is the head's vector. -/
theorem headPart_joinRow (x : Fin h → Vec α d) (κ : Fin h) : headPart κ (joinRow x) = x κ :=
  Vector.ext fun t ht => by rw [headPart, Vec.getElem_ofFn, getElem_joinRow]; rfl

/-- What is cut into heads and put together again is what it was. -/
theorem joinHeads_splitHeads (X : Matrix α n (h * d)) : joinHeads (splitHeads X) = X := by
  refine Vector.ext fun i hi => ?_
  have e := getElem_joinHeads (splitHeads X) ⟨i, hi⟩
  simp only [getElem_splitHeads, joinRow_headPart] at e
  exact e

/-- Heads that are put together and cut again are what they were. -/
theorem splitHeads_joinHeads (heads : Vector (Matrix α n d) h) :
    splitHeads (joinHeads heads) = heads := by
  refine Vector.ext fun κ hκ => Vector.ext fun i hi => ?_
  have e := getElem_splitHeads (joinHeads heads) ⟨κ, hκ⟩ ⟨i, hi⟩
  rw [getElem_joinHeads, headPart_joinRow] at e
  exact e

end Attention.Claims
