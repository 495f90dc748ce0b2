module

public import Attention.Algebra.Vector

public section

/-! # Vectors and matrices put together and cut

As in `Vector.lean` everything goes through lists, so that the kernel can evaluate it. A matrix is a
vector of rows, so `append` and `first` of matrices are of their rows. -/

namespace Attention

universe u

namespace Vec

variable {R : Type u} {m n : Nat}

/-- The components of `a`, then those of `b`. -/
@[expose] def append (a : Vec R m) (b : Vec R n) : Vec R (m + n) :=
  ⟨(a.toList ++ b.toList).toArray, by simp⟩

/-- The first `m` components. -/
@[expose] def first (m : Nat) (a : Vec R (m + n)) : Vec R m :=
  ⟨(a.toList.take m).toArray, by simp⟩

@[simp] theorem toList_append (a : Vec R m) (b : Vec R n) :
    (append a b).toList = a.toList ++ b.toList := by
  simp [append]

@[simp] theorem toList_first (a : Vec R (m + n)) : (first m a).toList = a.toList.take m := by
  simp [first]

@[simp] theorem getElem_first (a : Vec R (m + n)) {i : Nat} (h : i < m) :
    (first m a)[i] = a[i] := by
  simp [first]

theorem getElem_append_left (a : Vec R m) (b : Vec R n) {i : Nat} (h : i < m) :
    (append a b)[i] = a[i] := by
  simp [append, h]

theorem getElem_append_right (a : Vec R m) (b : Vec R n) {i : Nat} (h : m ≤ i) (h' : i < m + n) :
    (append a b)[i] = b[i - m] := by
  simp [append, List.getElem_append_right, h]

end Vec

namespace Matrix

variable {R : Type u} {m n : Nat}

/-- A matrix with `p` more columns, all 0. -/
@[expose] def padCols [OfNat R 0] (p : Nat) (A : Matrix R m n) : Matrix R m (n + p) :=
  Vec.map (fun row => Vec.append row Vec.zero) A

end Matrix

end Attention
