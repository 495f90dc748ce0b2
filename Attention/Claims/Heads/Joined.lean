module

public import Attention.Proof.Heads.MultiHead

public section

/-! # A row of the outputs of heads side by side

The document 003 writes (O₁ | O₂ | … | Oₕ) for the matrix whose row i is the rows i of the heads'
outputs, one after the other: `concatHeads`. Row i of it depends on the rows i alone: the lemma from
which every property of multi-head attention follows from that of its heads. The other way a row is
cut into heads, as implementations do with what one packed projection makes. -/

namespace Attention.Claims

open Spec

universe u

variable {α : Type u} {n h d : Nat}

/-- The vectors of all heads, one after the other. -/
@[expose] def joinRow (x : Fin h → Vec α d) : Vec α (h * d) :=
  Vec.ofFn fun c => (x (Proof.headOf c))[Proof.componentOf c]

/-- The part of a vector that belongs to head κ. -/
@[expose] def headPart (κ : Fin h) (x : Vec α (h * d)) : Vec α d :=
  Vec.ofFn fun t => x[headColumn κ t]

/-- The column of component t of head κ. -/
theorem getElem_joinRow (x : Fin h → Vec α d) (κ : Fin h) (t : Fin d) :
    (joinRow x)[headColumn κ t] = (x κ)[t] := by
  rw [joinRow, Fin.getElem_fin, Vec.getElem_ofFn]
  simp

/-- Row i of (O₁ | O₂ | … | Oₕ) is the rows i of the heads, one after the other. -/
theorem concatHeads_row (heads : Vector (Matrix α n d) h) (i : Fin n) :
    (concatHeads heads)[i] = joinRow fun κ => heads[κ][i] :=
  Vector.ext fun c hc => by
    rw [joinRow, Vec.getElem_ofFn]
    exact Proof.getElem_concatHeads_headOf heads i ⟨c, hc⟩

/-- Row i of head κ is its part of row i. -/
theorem splitHeads_row (X : Matrix α n (h * d)) (κ : Fin h) (i : Fin n) :
    (splitHeads X)[κ][i] = headPart κ X[i] :=
  Proof.getElem_splitHeads X κ i

/-- The part of a head of vectors put one after the other is the head's vector. -/
theorem headPart_joinRow (x : Fin h → Vec α d) (κ : Fin h) : headPart κ (joinRow x) = x κ :=
  Vector.ext fun t ht => by rw [headPart, Vec.getElem_ofFn, getElem_joinRow]; rfl

end Attention.Claims
