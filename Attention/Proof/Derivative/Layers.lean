module

public import Attention.Proof.Derivative.Families
public import Attention.Proof.Derivative.Parameters

public section

/-! # Linear layers, layer normalisation and feed-forward networks along any paths

Rows and parameters may all change; what the layers compute over dual numbers are the rates at which
their results change. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {ι : Type v} {m n d d_in d_out d_ff : Nat}

/-- A product of two vectors that change. -/
theorem dot_tangent {v w : ι → R → Vec R d} {a b : ι → Vec (Dual R) d} (hv : VecTangent v a)
    (hw : VecTangent w b) :
    IsTangent (fun x t => Vec.dot (v x t) (w x t)) (fun x => Vec.dot (a x) (b x)) :=
  IsTangent.sumOver fun i _ => (hv i.val i.isLt).mul (hw i.val i.isLt)

/-- The sum of two matrices that change. -/
theorem addRows_tangent {X Y : ι → R → Matrix R m n} {X' Y' : ι → Matrix (Dual R) m n}
    (hX : MatrixTangent X X') (hY : MatrixTangent Y Y') :
    MatrixTangent (fun x t => addRows (X x t) (Y x t)) fun x => addRows (X' x) (Y' x) := by
  intro i hi j hj
  simp only [addRows, Vec.getElem_ofFn, Vec.getElem_add]
  exact (hX i hi j hj).add (hY i hi j hj)

/-! ## Linear layers -/

/-- A linear layer on a row. -/
theorem linear_row_tangent {W : ι → R → Linear R d_in d_out} {W' : ι → Linear (Dual R) d_in d_out}
    (hW : LinearTangent W W') {r : ι → R → Vec R d_in} {r' : ι → Vec (Dual R) d_in}
    (hr : VecTangent r r') :
    VecTangent (fun x t => (W x t).row (r x t)) fun x => (W' x).row (r' x) := by
  intro j hj
  simp only [Linear.row, Vec.getElem_ofFn]
  exact (dot_tangent (hW.1 j hj) hr).add (hW.2 j hj)

/-- **linear-derivative**: a linear layer on rows, all of which may change. -/
theorem linear_tangent {W : ι → R → Linear R d_in d_out} {W' : ι → Linear (Dual R) d_in d_out}
    (hW : LinearTangent W W') {X : ι → R → Matrix R m d_in} {X' : ι → Matrix (Dual R) m d_in}
    (hX : MatrixTangent X X') :
    MatrixTangent (fun x t => (W x t).rows (X x t)) fun x => (W' x).rows (X' x) := by
  intro i hi
  simp only [Linear.rows, Vec.getElem_map]
  exact linear_row_tangent hW (hX i hi)

/-! ## Layer normalisation -/

private theorem sumOver_one_pos (hd : 0 < d) :
    (0 : R) < sumOver (fun _ => 1) (List.finRange d) := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have := le_sumOver (f := fun _ : Fin d => (1 : R)) (xs := List.finRange d)
    (fun _ _ => Std.le_of_lt h₁) (List.mem_finRange ⟨0, hd⟩)
  grind

/-- The mean of components that change. -/
theorem mean_tangent {r : ι → R → Vec R d} {r' : ι → Vec (Dual R) d} (hd : 0 < d)
    (hr : VecTangent r r') : IsTangent (fun x t => mean (r x t)) fun x => mean (r' x) := by
  refine IsTangent.div (IsTangent.sumOver fun i _ => hr i.val i.isLt)
    (IsTangent.sumOver fun _ _ => .one) (sumOver_one_pos hd) fun x => ?_
  rw [Dual.val_sumOver]
  exact Std.le_refl _

/-- The components less their mean. -/
theorem centred_tangent {r : ι → R → Vec R d} {r' : ι → Vec (Dual R) d} (hr : VecTangent r r') :
    VecTangent (fun x t => centred (r x t)) fun x => centred (r' x) := by
  intro j hj
  simp only [centred, Vec.getElem_map]
  exact (hr j hj).sub (mean_tangent (by omega) hr)

/-- Their mean square. -/
theorem variance_tangent {r : ι → R → Vec R d} {r' : ι → Vec (Dual R) d} (hd : 0 < d)
    (hr : VecTangent r r') : IsTangent (fun x t => variance (r x t)) fun x => variance (r' x) := by
  refine mean_tangent hd fun j hj => ?_
  simp only [Vec.getElem_map]
  exact (centred_tangent hr j hj).mul (centred_tangent hr j hj)

/-- It is not negative. -/
private theorem variance_nonneg (hd : 0 < d) (r : Vec (Dual R) d) : 0 ≤ (variance r).val := by
  rw [variance, mean, Dual.val_div, Dual.val_sumOver, Dual.val_sumOver]
  refine OrderedField.div_nonneg (sumOver_nonneg fun i _ => ?_) (sumOver_one_pos hd)
  simp only [Fin.getElem_fin, Vec.getElem_map, Dual.val_mul]
  exact mul_self_nonneg _

variable {sqrt : R → R} (hsqrt : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) {ε : R} (hε : 0 < ε)
include hsqrt hε

/-- Layer normalisation of a row. -/
theorem layerNorm_row_tangent {N : ι → R → LayerNorm R d} {N' : ι → LayerNorm (Dual R) d}
    (hN : LayerNormTangent N N') {r : ι → R → Vec R d} {r' : ι → Vec (Dual R) d}
    (hr : VecTangent r r') :
    VecTangent (fun x t => (N x t).row sqrt ε (r x t))
      fun x => (N' x).row (Dual.root sqrt) (Dual.const ε) (r' x) := by
  intro j hj
  have hd : 0 < d := by omega
  have hv : ∀ x, ε ≤ (variance (r' x) + Dual.const ε).val := fun x => by
    have := variance_nonneg hd (r' x)
    rw [Dual.val_add, Dual.val_const]
    grind
  obtain ⟨k, hk, hkε, hk₁⟩ := exists_below hε (OrderedRing.zero_lt_one (R := R))
  have hroot : ∀ x, k ≤ (Dual.root sqrt (variance (r' x) + Dual.const ε)).val := fun x => by
    show k ≤ sqrt (variance (r' x) + Dual.const ε).val
    have h₁ := hv x
    generalize (variance (r' x) + Dual.const ε).val = y at h₁
    obtain ⟨h₂, h₃⟩ := hsqrt y (by grind)
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_left hk₁ (Std.le_of_lt hk)
    refine Classical.byContradiction fun h => ?_
    have := OrderedRing.mul_le_mul_of_nonneg_left (by grind : sqrt y ≤ k) h₂
    have := OrderedRing.mul_lt_mul_of_pos_left (by grind : sqrt y < k) hk
    grind
  simp only [LayerNorm.row, Vec.getElem_ofFn]
  exact (((centred_tangent hr j hj).div
    (((variance_tangent hd hr).add (.const ε)).root hsqrt hε hv) hk hroot).mul (hN.1 j hj)).add
      (hN.2 j hj)

/-- **layer-norm-derivative**: layer normalisation of rows, with a positive ε that stays. -/
theorem layerNorm_tangent {N : ι → R → LayerNorm R d} {N' : ι → LayerNorm (Dual R) d}
    (hN : LayerNormTangent N N') {X : ι → R → Matrix R m d} {X' : ι → Matrix (Dual R) m d}
    (hX : MatrixTangent X X') :
    MatrixTangent (fun x t => (N x t).rows sqrt ε (X x t))
      fun x => (N' x).rows (Dual.root sqrt) (Dual.const ε) (X' x) := by
  intro i hi
  simp only [LayerNorm.rows, Vec.getElem_map]
  exact layerNorm_row_tangent hsqrt hε hN (hX i hi)

/-! ## Feed-forward networks -/

omit hsqrt hε

/-- A feed-forward network on a row. -/
theorem feedForward_row_tangent {F : ι → R → FeedForward R d d_ff}
    {F' : ι → FeedForward (Dual R) d d_ff} (hF : FeedForwardTangent F F')
    {r : ι → R → Vec R d} {r' : ι → Vec (Dual R) d} (hr : VecTangent r r') {κ : R} (hκ : 0 < κ)
    (hbent : ∀ x, FeedForwardApart κ (F x 0) (r x 0)) :
    VecTangent (fun x t => (F x t).row (r x t)) fun x => (F' x).row (r' x) := by
  refine linear_row_tangent hF.2 fun j hj => ?_
  have h := linear_row_tangent hF.1 hr j hj
  simp only [Vec.getElem_map]
  refine h.relu hκ fun x => ?_
  have := hbent x ⟨j, hj⟩
  rwa [← h.val_eq x]

/-- **feed-forward-derivative**: a feed-forward network on rows of which no hidden unit is less than
κ away from 0 before it is rectified. -/
theorem feedForward_tangent {F : ι → R → FeedForward R d d_ff}
    {F' : ι → FeedForward (Dual R) d d_ff} (hF : FeedForwardTangent F F')
    {X : ι → R → Matrix R m d} {X' : ι → Matrix (Dual R) m d} (hX : MatrixTangent X X') {κ : R}
    (hκ : 0 < κ) (hbent : ∀ x i, FeedForwardApart κ (F x 0) (X x 0)[(i : Fin m)]) :
    MatrixTangent (fun x t => (F x t).rows (X x t)) fun x => (F' x).rows (X' x) := by
  intro i hi
  simp only [FeedForward.rows, Vec.getElem_map]
  exact feedForward_row_tangent hF (hX i hi) hκ fun x => hbent x ⟨i, hi⟩

end Attention.Proof
