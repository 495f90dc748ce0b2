module

public import Attention.Algebra.SumExchange
public import Attention.Proof.Backward.Rates

public section

/-! # The backward passes of linear layers and feed-forward networks -/

namespace Attention.Proof

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {m n d d_in d_out d_ff : Nat}

/-! ## Residual connections -/

omit [OrderedField R] in
/-- A matrix is known by its entries. -/
theorem matrix_ext {A B : Matrix R m n} (h : ∀ (i : Fin m) (j : Fin n), A[i][j] = B[i][j]) :
    A = B :=
  Vector.ext fun i hi => Vector.ext fun j hj => h ⟨i, hi⟩ ⟨j, hj⟩

/-- The numbers of a sum are the sums of the numbers. -/
theorem addRows_primal (X Y : Matrix (Dual R) m n) :
    (addRows X Y).primal = addRows X.primal Y.primal :=
  matrix_ext fun i j => by
    simp only [addRows, Fin.getElem_fin, Matrix.getElem_primal, Vec.getElem_primal,
      Vec.getElem_ofFn, Vec.getElem_add, Dual.val_add]

/-- **residual-backward**: a residual connection passes the gradient on to both of its parts. -/
theorem addRows_adjoint (X Y : Matrix (Dual R) m n) (dY : Matrix R m n) :
    Matrix.rate dY (addRows X Y) = Matrix.rate dY X + Matrix.rate dY Y := by
  simp only [Matrix.rate, Vec.rate, ← sumOver_add]
  refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
  simp only [addRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_add, Dual.der_add,
    Semiring.left_distrib]

/-- Rows that are used twice get the sum of two gradients. -/
theorem addRows_rate (G H : Matrix R m n) (X : Matrix (Dual R) m n) :
    Matrix.rate (addRows G H) X = Matrix.rate G X + Matrix.rate H X := by
  simp only [Matrix.rate, Vec.rate, ← sumOver_add]
  refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
  simp only [addRows, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_add, Semiring.right_distrib]

/-! ## A gradient is known by the rates that it gives -/

/-- At whatever numbers: no two gradients by a matrix give the same rate for all rates of its
entries. -/
theorem rate_unique {G H X : Matrix R m n}
    (h : ∀ A : Matrix (Dual R) m n, A.primal = X → Matrix.rate G A = Matrix.rate H A) : G = H :=
  matrix_ext fun i j => by
    let A : Matrix (Dual R) m n := Vec.ofFn fun a => Vec.ofFn fun b =>
      ⟨X[a][b], if a = i then if b = j then 1 else 0 else 0⟩
    have hA : A.primal = X := matrix_ext fun a b => by
      simp only [A, Fin.getElem_fin, Matrix.getElem_primal, Vec.getElem_primal, Vec.getElem_ofFn]
    have e : ∀ F : Matrix R m n, Matrix.rate F A = F[i][j] := fun F => by
      have hr : ∀ a ∈ List.finRange m, Vec.rate F[a] A[a]
          = if a = i then Vec.rate F[a] A[i] else 0 := fun a _ => by
        split
        case isTrue ha => rw [ha]
        case isFalse ha =>
          refine sumOver_eq_zero fun b _ => ?_
          simp only [A, Fin.getElem_fin, Vec.getElem_ofFn, Fin.eta, if_neg ha, Semiring.mul_zero]
      rw [Matrix.rate, sumOver_congr hr, sumOver_ite_eq (fun a => Vec.rate F[a] A[i]) i]
      refine Eq.trans (sumOver_congr fun b _ => ?_) (sumOver_ite_eq (fun b => F[i][b]) j)
      simp only [A, Fin.getElem_fin, Vec.getElem_ofFn, Fin.eta, if_true]
      split
      · exact Semiring.mul_one _
      · exact Semiring.mul_zero _
    rw [← e G, ← e H, h A hA]

/-! ## Linear layers -/

/-- The numbers of a linear layer's rows are the layer's rows of the numbers. -/
theorem linear_primal (W : Linear (Dual R) d_in d_out) (X : Matrix (Dual R) m d_in) :
    (W.rows X).primal = (Linear.primal W).rows X.primal :=
  matrix_ext fun i j => by
    simp only [Linear.rows, Linear.row, Linear.primal, Vec.dot, Fin.getElem_fin, Vec.getElem_map,
      Matrix.getElem_primal, Vec.getElem_primal, Vec.getElem_ofFn, Dual.val_add, Dual.val_sumOver,
      Dual.val_mul]

/-- **linear-backward**: dW = dYᵀ X, db = Σ dY and dX = dY W give the rate that the gradient dY by a
linear layer's rows gives, at whatever rates the parameters and the input change. -/
theorem linear_adjoint (W : Linear (Dual R) d_in d_out) (X : Matrix (Dual R) m d_in)
    (dY : Matrix R m d_out) :
    let g := (Linear.primal W).rowsVjp X.primal dY
    Matrix.rate dY (W.rows X) = Linear.rate g.1 W + Matrix.rate g.2 X := by
  intro g
  have hW : Matrix.rate g.1.weight W.weight = sumOver (fun i : Fin m =>
      sumOver (fun j : Fin d_out => sumOver (fun k : Fin d_in =>
        dY[i][j] * X[i][k].val * W.weight[j][k].der) (List.finRange d_in)) (List.finRange d_out))
          (List.finRange m) := by
    rw [sumOver_comm]
    refine sumOver_congr fun j _ => ?_
    rw [sumOver_comm]
    refine sumOver_congr fun k _ => ?_
    rw [sumOver_mul_right]
    simp only [g, Linear.rowsVjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver,
      Vec.getElem_smul, Matrix.getElem_primal, Vec.getElem_primal]
  have hb : Vec.rate g.1.bias W.bias = sumOver (fun i : Fin m => sumOver (fun j : Fin d_out =>
      dY[i][j] * W.bias[j].der) (List.finRange d_out)) (List.finRange m) := by
    rw [sumOver_comm]
    refine sumOver_congr fun j _ => ?_
    rw [sumOver_mul_right]
    simp only [g, Linear.rowsVjp, Fin.getElem_fin, Vec.getElem_sumOver]
  have hX : Matrix.rate g.2 X = sumOver (fun i : Fin m => sumOver (fun j : Fin d_out =>
      sumOver (fun k : Fin d_in => dY[i][j] * W.weight[j][k].val * X[i][k].der)
        (List.finRange d_in)) (List.finRange d_out)) (List.finRange m) := by
    refine sumOver_congr fun i _ => ?_
    rw [sumOver_comm]
    refine sumOver_congr fun k _ => ?_
    rw [sumOver_mul_right]
    simp only [g, Linear.rowsVjp, Linear.primal, Fin.getElem_fin, Vec.getElem_ofFn,
      Vec.getElem_sumOver, Vec.getElem_smul, Matrix.getElem_primal, Vec.getElem_primal]
  rw [Linear.rate, hW, hb, hX]
  simp only [Matrix.rate, Vec.rate, ← sumOver_add]
  refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
  simp only [Linear.rows, Linear.row, Vec.dot, Fin.getElem_fin, Vec.getElem_map, Vec.getElem_ofFn,
    Dual.der_add, Dual.der_sumOver, Dual.der_mul, Semiring.left_distrib, sumOver_add,
    ← sumOver_mul_left]
  have e : ∀ k : Fin d_in, dY[i.val][j.val] * (W.weight[j.val][k.val].der * X[i.val][k.val].val)
      = dY[i.val][j.val] * X[i.val][k.val].val * W.weight[j.val][k.val].der := fun k => by grind
  simp only [e, ← Semiring.mul_assoc]
  grind

/-! ## Feed-forward networks -/

/-- The number of a rectified dual number. -/
theorem relu_val (x : Dual R) : (relu x).val = relu x.val := by
  rw [relu, relu, OrderedField.max_def]
  show (if x.val ≤ (0 : R) then (0 : Dual R) else x).val = _
  split <;> split
  · rw [Dual.val_zero]; grind
  · rfl
  · rfl
  · grind

/-- Its rate: that of x where x is positive. -/
theorem relu_der (x : Dual R) (dy : R) : dy * (relu x).der = reluVjp x.val dy * x.der := by
  rw [relu, reluVjp]
  show dy * (if x.val ≤ (0 : R) then (0 : Dual R) else x).der = _
  split
  · rw [Dual.der_zero, Semiring.mul_zero, Semiring.zero_mul]
  · rfl

private theorem feedForward_rows {N : Type u} [OfNat N 0] [Max N] [Add N] [Mul N]
    (F : FeedForward N d d_ff) (X : Matrix N m d) :
    F.rows X = F.output.rows (Vec.map (Vec.map relu) (F.hidden.rows X)) :=
  Vector.ext fun i hi => by
    simp only [FeedForward.rows, FeedForward.row, Linear.rows, Vec.getElem_map]

private theorem reluRows_primal (H : Matrix (Dual R) m d_ff) :
    Matrix.primal (Vec.map (Vec.map relu) H : Matrix (Dual R) m d_ff)
      = Vec.map (Vec.map relu) H.primal :=
  matrix_ext fun i j => by
    simp only [Fin.getElem_fin, Matrix.getElem_primal, Vec.getElem_primal, Vec.getElem_map,
      relu_val]

/-- The numbers of a feed-forward network's rows are the network's rows of the numbers. -/
theorem feedForward_primal (F : FeedForward (Dual R) d d_ff) (X : Matrix (Dual R) m d) :
    (F.rows X).primal = (FeedForward.primal F).rows X.primal := by
  rw [feedForward_rows, feedForward_rows, linear_primal, reluRows_primal, linear_primal]
  rfl

/-- **feed-forward-backward**: so does the backward pass of a feed-forward network, where dual
numbers give a rectified linear unit at 0 the rate 0. -/
theorem feedForward_adjoint (F : FeedForward (Dual R) d d_ff) (X : Matrix (Dual R) m d)
    (dY : Matrix R m d) :
    let g := (FeedForward.primal F).rowsVjp X.primal dY
    Matrix.rate dY (F.rows X) = FeedForward.rate g.1 F + Matrix.rate g.2 X := by
  intro g
  have hH := linear_primal F.hidden X
  let dA := ((Linear.primal F.output).rowsVjp
    (Vec.map (Vec.map relu) (F.hidden.rows X).primal) dY).2
  let dH : Matrix R m d_ff := Vec.ofFn fun i => Vec.ofFn fun j =>
    reluVjp (F.hidden.rows X).primal[i][j] dA[i][j]
  have h : Matrix.rate dA (Vec.map (Vec.map relu) (F.hidden.rows X) : Matrix (Dual R) m d_ff)
      = Matrix.rate dH (F.hidden.rows X) := by
    refine sumOver_congr fun i _ => sumOver_congr fun j _ => ?_
    simp only [dH, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map, Matrix.getElem_primal,
      Vec.getElem_primal]
    exact relu_der _ _
  rw [feedForward_rows, linear_adjoint, reluRows_primal]
  show _ + Matrix.rate dA _ = _
  rw [h, linear_adjoint]
  simp only [g, FeedForward.rate, FeedForward.rowsVjp, FeedForward.primal, ← hH, dH, dA]
  grind

end Attention.Proof
