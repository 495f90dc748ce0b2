module

public import Attention.Algebra.Vector

public section

/-! # Linear layers

x ↦ W x + b, for one row and for each row of a matrix. W is stored as PyTorch's `nn.Linear` stores
it, a row for each output. -/

namespace Attention.Spec

universe u

/-- The parameters of a linear layer from vectors of length `d_in` to vectors of length `d_out`. -/
structure Linear (R : Type u) (d_in d_out : Nat) where
  /-- W: row j holds the coefficients of output j. -/
  weight : Matrix R d_out d_in
  /-- b. -/
  bias : Vec R d_out

variable {R : Type u} {m n d_in d_out : Nat}

/-- The sum of two matrices, as a residual connection takes it. -/
@[expose] def addRows [Add R] (X Y : Matrix R m n) : Matrix R m n :=
  Vec.ofFn fun i => Vec.add X[i] Y[i]

variable [Add R] [Mul R] [OfNat R 0]

/-- A linear layer on one row: W x + b. -/
@[expose] def Linear.row (W : Linear R d_in d_out) (x : Vec R d_in) : Vec R d_out :=
  Vec.ofFn fun j => Vec.dot W.weight[j] x + W.bias[j]

/-- A linear layer on each row of a matrix: X Wᵀ + b. -/
@[expose] def Linear.rows (W : Linear R d_in d_out) (X : Matrix R m d_in) : Matrix R m d_out :=
  Vec.map W.row X

end Attention.Spec
