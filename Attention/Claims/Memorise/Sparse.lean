module

public import Attention.Algebra.Magnitude

public section

/-! # Vectors of few components

The rows of a transformer that memorises are 0 but for a few components: their sums and their inner
products. -/

namespace Attention.Claims

open Lean.Grind

universe v

variable {R : Type v} [OrderedField R] {n : Nat}

/-- The sum of the weights that a list of places and weights has for place i. -/
@[expose] def weightAt (ps : List (Nat × R)) (i : Nat) : R :=
  sumOver (fun p => if i = p.1 then p.2 else 0) ps

/-- The vector with the components that a list of places and weights gives. -/
@[expose] def sparse (n : Nat) (ps : List (Nat × R)) : Vec R n :=
  Vec.ofFn fun i => weightAt ps i.val

/-- The vector that is 1 at place k and 0 elsewhere. -/
@[expose] def unit (n k : Nat) : Vec R n := sparse n [(k, 1)]

/-- A component is what the list gives for its place. -/
theorem getElem_sparse (ps : List (Nat × R)) {i : Nat} (h : i < n) :
    (sparse n ps)[i] = weightAt ps i := by
  rw [sparse, Vec.getElem_ofFn]

/-- Lists that are put together give the sum. -/
theorem add_sparse (ps qs : List (Nat × R)) :
    Vec.add (sparse n ps) (sparse n qs) = sparse n (ps ++ qs) :=
  Vector.ext fun i hi => by
    rw [Vec.getElem_add, getElem_sparse, getElem_sparse, getElem_sparse, weightAt, weightAt,
      weightAt, sumOver_append]

private theorem sumOver_weightAt (f : Nat → R) {ps : List (Nat × R)} (h : ∀ p ∈ ps, p.1 < n) :
    sumOver (fun i : Fin n => weightAt ps i.val * f i.val) (List.finRange n)
      = sumOver (fun p => p.2 * f p.1) ps := by
  induction ps with
  | nil => exact sumOver_eq_zero fun i _ => by simp only [weightAt, sumOver_nil]; grind
  | cons p ps ih =>
    have hp : p.1 < n := h p (by simp)
    rw [sumOver_cons, ← ih fun q hq => h q (by simp [hq]),
      ← sumOver_ite_eq (fun i : Fin n => p.2 * f i.val) ⟨p.1, hp⟩, ← sumOver_add]
    refine sumOver_congr fun i _ => ?_
    simp only [weightAt, sumOver_cons, Fin.ext_iff]
    split <;> grind

/-- The sum of the components is the sum of the weights. -/
theorem sum_sparse {ps : List (Nat × R)} (h : ∀ p ∈ ps, p.1 < n) :
    sumOver (fun i : Fin n => (sparse n ps)[i]) (List.finRange n) = sumOver (fun p => p.2) ps := by
  have e := sumOver_weightAt (fun _ => (1 : R)) h
  simp only [Semiring.mul_one] at e
  rw [← e]
  exact sumOver_congr fun i _ => getElem_sparse ps i.isLt

/-- The inner product of two vectors of few components. -/
theorem dot_sparse {ps : List (Nat × R)} (qs : List (Nat × R)) (h : ∀ p ∈ ps, p.1 < n) :
    Vec.dot (sparse n ps) (sparse n qs) = sumOver (fun p => p.2 * weightAt qs p.1) ps := by
  rw [← sumOver_weightAt (weightAt qs) h, Vec.dot]
  refine sumOver_congr fun i _ => ?_
  rw [Fin.getElem_fin, Fin.getElem_fin, getElem_sparse, getElem_sparse]

/-- The inner product with a vector that is 1 at place k and 0 elsewhere is component k. -/
theorem dot_unit {k : Nat} (h : k < n) (x : Vec R n) : Vec.dot (unit n k) x = x[k] := by
  refine Eq.trans (sumOver_congr fun i _ => ?_)
    (sumOver_ite_eq (fun i : Fin n => x[i]) ⟨k, h⟩)
  rw [Fin.getElem_fin, unit, getElem_sparse]
  simp only [weightAt, sumOver_cons, sumOver_nil, Fin.ext_iff]
  split <;> grind

/-- A vector that would be 1 beyond its end is 0. -/
theorem dot_unit_beyond {k : Nat} (h : n ≤ k) (x : Vec R n) : Vec.dot (unit n k) x = 0 := by
  refine sumOver_eq_zero fun i _ => ?_
  have hi : i.val ≠ k := by have := i.isLt; omega
  rw [Fin.getElem_fin, unit, getElem_sparse]
  simp only [weightAt, sumOver_cons, sumOver_nil, if_neg hi]
  grind

/-- The components of such a vector sum to 1. -/
theorem sum_unit {k : Nat} (hk : k < n) :
    sumOver (fun i : Fin n => (unit n k : Vec R n)[i]) (List.finRange n) = 1 := by
  rw [unit, sum_sparse fun x hx => by rw [List.mem_singleton.mp hx]; exact hk]
  simp only [sumOver_cons, sumOver_nil]
  grind

/-- Its components. -/
theorem getElem_unit {k i : Nat} (hi : i < n) :
    (unit n k : Vec R n)[i] = if i = k then 1 else 0 := by
  rw [unit, getElem_sparse]
  simp only [weightAt, sumOver_cons, sumOver_nil]
  split <;> grind

/-- Their squares sum to 1. -/
theorem dot_unit_self {k : Nat} (hk : k < n) :
    Vec.dot (unit n k : Vec R n) (unit n k) = 1 := by
  rw [dot_unit hk, getElem_unit, if_pos rfl]

end Attention.Claims
