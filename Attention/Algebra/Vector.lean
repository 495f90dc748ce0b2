module

public import Attention.Algebra.Sum

public section

/-! # Vectors and matrices

Fixed-length vectors over core Lean's array-backed `Vector`, so that definitions over them run. A matrix is a vector of rows. -/

namespace Attention

universe u v

/-- A vector of `d` numbers. -/
abbrev Vec (R : Type u) (d : Nat) := Vector R d

/-- A matrix of `m` rows and `n` columns, stored by rows. -/
abbrev Matrix (R : Type u) (m n : Nat) := Vector (Vec R n) m

namespace Vec

variable {R : Type u} {d : Nat}

/-- The zero vector. -/
@[expose] def zero [OfNat R 0] : Vec R d := Vector.replicate d 0

/-- The sum of two vectors. -/
@[expose] def add [Add R] (a b : Vec R d) : Vec R d := Vector.zipWith (· + ·) a b

/-- A vector multiplied by a number. -/
@[expose] def smul [Mul R] (c : R) (a : Vec R d) : Vec R d := a.map (c * ·)

/-- The inner product ⟨a, b⟩ = Σ aᵢ bᵢ. -/
@[expose] def dot [Add R] [Mul R] [OfNat R 0] (a b : Vec R d) : R :=
  sumOver (fun i => a[i] * b[i]) (List.finRange d)

/-- `sumOver f xs` is Σ f x for x in `xs`, a vector. -/
@[expose] def sumOver {α : Type v} [Add R] [OfNat R 0] (f : α → Vec R d) : List α → Vec R d
  | [] => zero
  | x :: xs => add (f x) (sumOver f xs)

@[simp] theorem getElem_zero [OfNat R 0] {j : Nat} (h : j < d) : (zero : Vec R d)[j] = 0 := by
  simp [zero]

@[simp] theorem getElem_add [Add R] (a b : Vec R d) {j : Nat} (h : j < d) :
    (add a b)[j] = a[j] + b[j] := by
  simp [add]

@[simp] theorem getElem_smul [Mul R] (c : R) (a : Vec R d) {j : Nat} (h : j < d) :
    (smul c a)[j] = c * a[j] := by
  simp [smul]

/-- A component of a sum of vectors is the sum of the components. -/
@[simp] theorem getElem_sumOver {α : Type v} [Add R] [OfNat R 0] (f : α → Vec R d) (xs : List α)
    {j : Nat} (h : j < d) :
    (sumOver f xs)[j] = Attention.sumOver (fun x => (f x)[j]) xs := by
  induction xs with
  | nil => simp [sumOver]
  | cons x xs ih => simp [sumOver, ih]

end Vec

end Attention
