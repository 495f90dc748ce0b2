module

public import Attention.Algebra.Sum

public section

/-! # Vectors and matrices

Fixed-length vectors over core Lean's array-backed `Vector`, so that definitions over them run. A
matrix is a vector of rows. The operations go through lists, since the kernel can evaluate lists but
not core's array loops, whose bodies other modules cannot see; counterexamples are evaluated by the
kernel. -/

namespace Attention

universe u v

/-- An index of type `Fin n` brings its own bound, and that of a numeral can be computed. Looked for
first: what Lean tries otherwise takes longer than most proofs here. -/
macro_rules
  | `(tactic| get_elem_tactic_extensible) => `(tactic| first | exact Fin.isLt _ | decide)

/-- A vector of `d` numbers. -/
abbrev Vec (R : Type u) (d : Nat) := Vector R d

/-- A matrix of `m` rows and `n` columns, stored by rows. -/
abbrev Matrix (R : Type u) (m n : Nat) := Vector (Vec R n) m

namespace Vec

variable {R : Type u} {d : Nat}

/-- The vector with components `f i`. -/
@[expose] def ofFn (f : Fin d → R) : Vec R d := ⟨(List.ofFn f).toArray, by simp⟩

/-- `f` applied to each component. -/
@[expose] def map {R' : Type v} (f : R → R') (a : Vec R d) : Vec R' d :=
  ⟨(a.toList.map f).toArray, by simp⟩

/-- The zero vector. -/
@[expose] def zero [OfNat R 0] : Vec R d := Vector.replicate d 0

/-- The sum of two vectors. -/
@[expose] def add [Add R] (a b : Vec R d) : Vec R d :=
  ⟨(List.zipWith (· + ·) a.toList b.toList).toArray, by simp⟩

/-- A vector multiplied by a number. -/
@[expose] def smul [Mul R] (c : R) (a : Vec R d) : Vec R d := a.map (c * ·)

/-- The inner product ⟨a, b⟩ = Σ aᵢ bᵢ. -/
@[expose] def dot [Add R] [Mul R] [OfNat R 0] (a b : Vec R d) : R :=
  sumOver (fun i => a[i] * b[i]) (List.finRange d)

/-- `sumOver f xs` is Σ f x for x in `xs`, a vector. -/
@[expose] def sumOver {α : Type v} [Add R] [OfNat R 0] (f : α → Vec R d) : List α → Vec R d
  | [] => zero
  | x :: xs => add (f x) (sumOver f xs)

@[simp] theorem getElem_ofFn (f : Fin d → R) {j : Nat} (h : j < d) : (ofFn f)[j] = f ⟨j, h⟩ := by
  simp [ofFn]

@[simp] theorem getElem_map {R' : Type v} (f : R → R') (a : Vec R d) {j : Nat} (h : j < d) :
    (a.map f)[j] = f a[j] := by
  simp [map]

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
