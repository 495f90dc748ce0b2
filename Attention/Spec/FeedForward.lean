module

public import Attention.Spec.Linear

public section

/-! # The position-wise feed-forward network

W₂ max(0, W₁ x + b₁) + b₂, for each row by itself.
Source: Vaswani et al. 2017, "Attention Is All You Need", equation (2). -/

namespace Attention.Spec

universe u

/-- The parameters of a feed-forward network of width `d` with `d_ff` hidden units. -/
structure FeedForward (R : Type u) (d d_ff : Nat) where
  /-- W₁ and b₁. -/
  hidden : Linear R d d_ff
  /-- W₂ and b₂. -/
  output : Linear R d_ff d

variable {R : Type u} {m d d_ff : Nat} [OfNat R 0] [Max R]

/-- The rectified linear unit: max(0, x). -/
@[expose] def relu (x : R) : R := max 0 x

variable [Add R] [Mul R]

/-- The feed-forward network on one row. -/
@[expose] def FeedForward.row (F : FeedForward R d d_ff) (x : Vec R d) : Vec R d :=
  F.output.row (Vec.map relu (F.hidden.row x))

/-- The feed-forward network on each row of a matrix. -/
@[expose] def FeedForward.rows (F : FeedForward R d d_ff) (X : Matrix R m d) : Matrix R m d :=
  Vec.map F.row X

end Attention.Spec
