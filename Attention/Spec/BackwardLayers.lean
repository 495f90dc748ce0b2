module

public import Attention.Spec.FeedForward
public import Attention.Spec.LayerNorm

public section

/-! # The backward passes of linear layers, layer normalisation and feed-forward networks

Each takes what the layer took, and the gradient of a loss by the layer's output; it gives the
gradients by the layer's parameters, which are of the parameters' own type, and by its input.
Source: PyTorch, `linear_backward`, `native_layer_norm_backward` and `threshold_backward`; Ba et al.
2016, "Layer Normalization", equation (4), differentiated.
-/

namespace Attention.Spec

universe u

variable {R : Type u} {m d d_in d_out d_ff : Nat}

section
variable [Add R] [Mul R] [OfNat R 0]

/-- The backward pass of a linear layer: dW = dYᵀ X, db = Σ dY over the rows, and dX = dY W. -/
@[expose] def Linear.rowsVjp (W : Linear R d_in d_out) (X : Matrix R m d_in)
    (dY : Matrix R m d_out) : Linear R d_in d_out × Matrix R m d_in :=
  ({ weight := Vec.ofFn fun j =>
       Vec.sumOver (fun i : Fin m => Vec.smul dY[i][j] X[i]) (List.finRange m)
     bias := Vec.sumOver (fun i : Fin m => dY[i]) (List.finRange m) },
   Vec.ofFn fun i =>
     Vec.sumOver (fun j : Fin d_out => Vec.smul dY[i][j] W.weight[j]) (List.finRange d_out))

end

/-! ## Layer normalisation -/

section
variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] (sqrt : R → R) (ε : R)

/-- The normalised components of a row, before gain and bias: n = (x − μ) / √(σ² + ε). -/
@[expose] def normalised (x : Vec R d) : Vec R d :=
  let root := sqrt (variance x + ε)
  Vec.map (fun c => c / root) (centred x)

/-- The gradient by a row that is normalised, from that by its normalised components:
(dn − mean dn − n · mean (dn ∘ n)) / √(σ² + ε). The two means are there because μ and σ depend on
the row too. -/
@[expose] def normalisedVjp (x dn : Vec R d) : Vec R d :=
  let root := sqrt (variance x + ε)
  let n := normalised sqrt ε x
  let a := mean dn
  let b := mean (Vec.ofFn fun k : Fin d => dn[k] * n[k])
  Vec.ofFn fun k => (dn[k] - a - n[k] * b) / root

/-- The backward pass of layer normalisation: over the rows, the gradient by the gain is Σ of dY
times the normalised components, that by the bias Σ dY; the normalised components get dY ∘ gain. -/
@[expose] def LayerNorm.rowsVjp (N : LayerNorm R d) (X dY : Matrix R m d) :
    LayerNorm R d × Matrix R m d :=
  ({ gain := Vec.sumOver (fun i : Fin m =>
       let n := normalised sqrt ε X[i]
       Vec.ofFn fun k : Fin d => dY[i][k] * n[k]) (List.finRange m)
     bias := Vec.sumOver (fun i : Fin m => dY[i]) (List.finRange m) },
   Vec.ofFn fun i => normalisedVjp sqrt ε X[i] (Vec.ofFn fun k : Fin d => dY[i][k] * N.gain[k]))

end

/-! ## Feed-forward networks -/

section
variable [OfNat R 0] [LE R] [DecidableLE R]

/-- The gradient by what is rectified: that by the result where the number is positive, and
otherwise 0, at 0 too, where max(0, x) has no derivative. -/
@[expose] def reluVjp (x dy : R) : R := if x ≤ 0 then 0 else dy

variable [Max R] [Add R] [Mul R]

/-- The backward pass of a feed-forward network: of its output layer, of the rectified linear units,
of its hidden layer. -/
@[expose] def FeedForward.rowsVjp (F : FeedForward R d d_ff) (X dY : Matrix R m d) :
    FeedForward R d d_ff × Matrix R m d :=
  let H := F.hidden.rows X
  let output := F.output.rowsVjp (Vec.map (Vec.map relu) H) dY
  let dH : Matrix R m d_ff := Vec.ofFn fun i => Vec.ofFn fun j => reluVjp H[i][j] output.2[i][j]
  let hidden := F.hidden.rowsVjp X dH
  ({ hidden := hidden.1, output := output.1 }, hidden.2)

end

end Attention.Spec
