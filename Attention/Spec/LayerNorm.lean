module

public import Attention.Algebra.Vector

public section

/-! # Layer normalisation

((x − μ) / √(σ² + ε)) · gain + bias, component by component, with μ the mean of the components of x
and σ² the mean of their squared distances from μ. The root is an argument: no number type here has
one that is exact.
Source: Ba et al. 2016, "Layer Normalization", equation (4); ε as in PyTorch's `nn.LayerNorm`. -/

namespace Attention.Spec

universe u

/-- The parameters of a layer normalisation of vectors of length `d`. -/
structure LayerNorm (R : Type u) (d : Nat) where
  /-- The factor of each normalised component. -/
  gain : Vec R d
  /-- The number that is added to it then. -/
  bias : Vec R d

variable {R : Type u} {m d : Nat}
variable [Add R] [Div R] [OfNat R 0] [OfNat R 1]

/-- The mean of the components: Σ xᵢ / Σ 1. -/
@[expose] def mean (x : Vec R d) : R :=
  sumOver (fun i => x[i]) (List.finRange d) / sumOver (fun _ => 1) (List.finRange d)

variable [Sub R] [Mul R]

/-- The components less their mean. -/
@[expose] def centred (x : Vec R d) : Vec R d :=
  let m := mean x
  x.map fun c => c - m

/-- The mean of the squared distances from the mean: σ², with the divisor d. -/
@[expose] def variance (x : Vec R d) : R :=
  mean (Vec.map (fun c => c * c) (centred x))

/-- Layer normalisation of one row. -/
@[expose] def LayerNorm.row (sqrt : R → R) (ε : R) (N : LayerNorm R d) (x : Vec R d) : Vec R d :=
  let root := sqrt (variance x + ε)
  let c := centred x
  Vec.ofFn fun i => c[i] / root * N.gain[i] + N.bias[i]

/-- Layer normalisation of each row of a matrix. -/
@[expose] def LayerNorm.rows (sqrt : R → R) (ε : R) (N : LayerNorm R d) (X : Matrix R m d) :
    Matrix R m d :=
  Vec.map (N.row sqrt ε) X

end Attention.Spec
