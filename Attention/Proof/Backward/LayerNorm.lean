module

public import Attention.Algebra.Tangent
public import Attention.Proof.Backward.Layers

public section

/-! # The backward pass of layer normalisation -/

namespace Attention.Proof

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {m d : Nat}

/-! ## Rows that change -/

/-- The number of a mean. -/
theorem mean_val (r : Vec (Dual R) d) : (mean r).val = mean r.primal := by
  simp only [mean, Dual.val_div, Dual.val_sumOver, Dual.val_one, Fin.getElem_fin,
    Vec.getElem_primal]

private theorem mean_der (r : Vec (Dual R) d) : (mean r).der
    = sumOver (fun k : Fin d => r[k].der) (List.finRange d)
      / sumOver (fun _ => 1) (List.finRange d) := by
  simp only [mean, Dual.der_div, Dual.der_sumOver, Dual.val_sumOver, Dual.der_one, Dual.val_one]
  rw [sumOver_eq_zero (f := fun _ : Fin d => (0 : R)) fun _ _ => rfl]
  generalize sumOver (fun _ : Fin d => (1 : R)) _ = N
  by_cases hN : N = 0
  · subst hN
    simp only [Field.div_eq_mul_inv, Semiring.mul_zero, Field.inv_zero]
  · grind

/-- The numbers of centred components. -/
theorem centred_primal (r : Vec (Dual R) d) : (centred r).primal = centred r.primal :=
  Vector.ext fun k hk => by
    simp only [centred, Vec.getElem_primal, Vec.getElem_map, Dual.val_sub, mean_val]

/-- The number of a variance. -/
theorem variance_val (r : Vec (Dual R) d) : (variance r).val = variance r.primal := by
  rw [variance, variance, mean_val, ← centred_primal]
  refine congrArg mean (Vector.ext fun k hk => ?_)
  simp only [Vec.getElem_primal, Vec.getElem_map, Dual.val_mul]

/-- Centred components sum to 0. -/
private theorem sumOver_centred (x : Fin d → R) :
    sumOver (fun k => x k - sumOver x (List.finRange d) / sumOver (fun _ => 1) (List.finRange d))
      (List.finRange d) = 0 := by
  rw [sumOver_sub]
  have h : ∀ c : R, sumOver (fun _ : Fin d => c) (List.finRange d)
      = sumOver (fun _ => 1) (List.finRange d) * c := fun c => by
    rw [← sumOver_mul_right]
    exact sumOver_congr fun _ _ => (Semiring.one_mul c).symm
  rw [h]
  by_cases hN : sumOver (fun _ : Fin d => (1 : R)) (List.finRange d) = 0
  · have hx : List.finRange d = [] := by
      refine List.eq_nil_iff_forall_not_mem.mpr fun k hk => ?_
      have h₁ := OrderedRing.zero_lt_one (R := R)
      have := le_sumOver (f := fun _ : Fin d => (1 : R)) (fun _ _ => Std.le_of_lt h₁) hk
      grind
    rw [hx, sumOver_nil, sumOver_nil, Semiring.zero_mul]
    exact AddCommGroup.sub_self _
  · generalize sumOver (fun _ : Fin d => (1 : R)) _ = N at hN ⊢
    grind

/-- The two means of the backward pass come from the rates of mean and root. -/
private theorem normalised_algebra (x σ dn : Fin d → R) (ρ N μ μ' v' : R) (c : Fin d → R)
    (hN : N = sumOver (fun _ : Fin d => 1) (List.finRange d))
    (hμ : μ = sumOver x (List.finRange d) / N) (hμ' : μ' = sumOver σ (List.finRange d) / N)
    (hc : ∀ k, c k = x k - μ)
    (hv' : v' = sumOver (fun k => (σ k - μ') * c k + c k * (σ k - μ')) (List.finRange d) / N) :
    sumOver (fun k => dn k * (((σ k - μ') * ρ - c k * (v' / (ρ + ρ))) / (ρ * ρ))) (List.finRange d)
      = sumOver (fun k => (dn k - sumOver dn (List.finRange d) / N - c k / ρ
          * (sumOver (fun k => dn k * (c k / ρ)) (List.finRange d) / N)) / ρ * σ k)
            (List.finRange d) := by
  have hzero : sumOver c (List.finRange d) = 0 := by
    rw [sumOver_congr fun k _ => hc k, hμ, hN]
    exact sumOver_centred x
  have hvar : v' = (sumOver (fun k => c k * σ k) (List.finRange d)
      + sumOver (fun k => c k * σ k) (List.finRange d)) * N⁻¹ := by
    have e : ∀ k ∈ List.finRange d, (σ k - μ') * c k + c k * (σ k - μ')
        = c k * σ k + c k * σ k - c k * (μ' + μ') := fun k _ => by grind
    rw [hv', sumOver_congr e, sumOver_sub, sumOver_add, sumOver_mul_right, hzero,
      Field.div_eq_mul_inv]
    grind
  have hE : sumOver (fun k => dn k * (c k / ρ)) (List.finRange d)
      = sumOver (fun k => dn k * c k) (List.finRange d) * ρ⁻¹ := by
    rw [← sumOver_mul_right]
    exact sumOver_congr fun k _ => by rw [Field.div_eq_mul_inv]; grind
  by_cases hρ : ρ = 0
  · subst hρ
    simp only [Field.div_eq_mul_inv, Semiring.mul_zero, Field.inv_zero, Semiring.zero_mul]
  have hi : ρ * ρ⁻¹ = 1 := Field.mul_inv_cancel hρ
  have hl : ∀ k ∈ List.finRange d,
      dn k * (((σ k - μ') * ρ - c k * (v' / (ρ + ρ))) / (ρ * ρ))
        = dn k * σ k * ρ⁻¹ - dn k * (μ' * ρ⁻¹) - dn k * c k * (v' / (ρ + ρ) * (ρ⁻¹ * ρ⁻¹)) :=
    fun k _ => by grind
  have hr : ∀ (D E : R), ∀ k ∈ List.finRange d, (dn k - D - c k / ρ * E) / ρ * σ k
      = dn k * σ k * ρ⁻¹ - σ k * (D * ρ⁻¹) - c k * σ k * (E * (ρ⁻¹ * ρ⁻¹)) :=
    fun D E k _ => by grind
  have hhalf : v' / (ρ + ρ) = sumOver (fun k => c k * σ k) (List.finRange d) * N⁻¹ * ρ⁻¹ := by
    rw [hvar]
    grind
  rw [sumOver_congr hl, sumOver_congr (hr _ _), hE, hhalf, hμ']
  simp only [sumOver_sub, sumOver_mul_right, Field.div_eq_mul_inv]
  generalize sumOver σ _ = X
  generalize sumOver dn _ = D
  generalize sumOver (fun k => c k * σ k) _ = F
  generalize sumOver (fun k => dn k * c k) _ = E
  grind

variable (sqrt : R → R) (ε : R)

private theorem normalised_val (r : Vec (Dual R) d) (k : Fin d) :
    (normalised (Dual.root sqrt) (Dual.const ε) r)[k].val = (normalised sqrt ε r.primal)[k] := by
  simp only [normalised, Fin.getElem_fin, Vec.getElem_map, Dual.val_div, ← centred_primal,
    Vec.getElem_primal, Dual.root, Dual.val_add, Dual.val_const, variance_val]

/-- The gradient by a row that is normalised. -/
theorem normalised_adjoint (r : Vec (Dual R) d) (dn : Vec R d) :
    Vec.rate dn (normalised (Dual.root sqrt) (Dual.const ε) r)
      = Vec.rate (normalisedVjp sqrt ε r.primal dn) r := by
  have hc : ∀ k : Fin d, (centred r.primal)[k] = r[k].val - mean r.primal := fun k => by
    simp only [centred, Fin.getElem_fin, Vec.getElem_map, Vec.getElem_primal]
  have hc' : ∀ k : Fin d, (centred r)[k].der = r[k].der - (mean r).der := fun k => by
    simp only [centred, Fin.getElem_fin, Vec.getElem_map, Dual.der_sub]
  have hcv : ∀ k : Fin d, (centred r)[k].val = (centred r.primal)[k] := fun k => by
    rw [← centred_primal, Fin.getElem_fin, Fin.getElem_fin, Vec.getElem_primal]
  have h := normalised_algebra (fun k => r[k].val) (fun k => r[k].der) (fun k => dn[k])
    (sqrt (variance r.primal + ε)) _ (mean r.primal) (mean r).der (variance r).der
    (fun k => (centred r.primal)[k]) rfl
    (by simp only [mean, Fin.getElem_fin, Vec.getElem_primal]) (mean_der r) hc (by
      rw [variance, mean_der]
      refine congrArg (· / _) (sumOver_congr fun k _ => ?_)
      show _ = (r[k].der - (mean r).der) * (centred r.primal)[k]
        + (centred r.primal)[k] * (r[k].der - (mean r).der)
      rw [← hc', ← hcv, Fin.getElem_fin, Vec.getElem_map, Dual.der_mul]
      rfl)
  refine Eq.trans (sumOver_congr fun k _ => ?_) (h.trans (sumOver_congr fun k _ => ?_))
  · show _ = dn[k] * (((r[k].der - (mean r).der) * _ - (centred r.primal)[k] * _) / _)
    rw [← hc', ← hcv]
    simp only [normalised, Fin.getElem_fin, Vec.getElem_map, Dual.der_div, Dual.root,
      Dual.val_add, Dual.der_add, Dual.val_const, Dual.der_const, variance_val, Semiring.add_zero]
  · simp only [normalisedVjp, normalised, mean, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map]

/-! ## Layers -/

private theorem getElem_layerNorm {N : Type u} [Add N] [Div N] [OfNat N 0] [OfNat N 1] [Sub N]
    [Mul N] (sqrt : N → N) (ε : N) (L : LayerNorm N d) (X : Matrix N m d) (i : Fin m) (k : Fin d) :
    (L.rows sqrt ε X)[i][k] = (normalised sqrt ε X[i])[k] * L.gain[k] + L.bias[k] := by
  simp only [LayerNorm.rows, LayerNorm.row, normalised, Fin.getElem_fin, Vec.getElem_map,
    Vec.getElem_ofFn]

/-- The numbers of rows that are normalised. -/
theorem layerNorm_primal (N : LayerNorm (Dual R) d) (X : Matrix (Dual R) m d) :
    (N.rows (Dual.root sqrt) (Dual.const ε) X).primal
      = (LayerNorm.primal N).rows sqrt ε X.primal :=
  matrix_ext fun i k => by
    rw [getElem_layerNorm, Fin.getElem_fin X.primal, Matrix.getElem_primal, ← Fin.getElem_fin X,
      ← normalised_val, Fin.getElem_fin (Matrix.primal _), Matrix.getElem_primal,
      Fin.getElem_fin (Vec.primal _), Vec.getElem_primal]
    refine (congrArg Dual.val (getElem_layerNorm (Dual.root sqrt) (Dual.const ε) N X i k)).trans ?_
    simp only [LayerNorm.primal, Fin.getElem_fin, Vec.getElem_primal, Dual.val_add, Dual.val_mul]

/-- **layer-norm-backward**: the backward pass of layer normalisation, mean and root depending on
the row, gives the rate that the gradient by its rows gives, at whatever rates gain, bias and input
change. -/
theorem layerNorm_adjoint (N : LayerNorm (Dual R) d) (X : Matrix (Dual R) m d)
    (dY : Matrix R m d) :
    let g := (LayerNorm.primal N).rowsVjp sqrt ε X.primal dY
    Matrix.rate dY (N.rows (Dual.root sqrt) (Dual.const ε) X)
      = LayerNorm.rate g.1 N + Matrix.rate g.2 X := by
  intro g
  have hgain : Vec.rate g.1.gain N.gain = sumOver (fun i : Fin m => sumOver (fun k : Fin d =>
      dY[i][k] * (normalised sqrt ε X[i].primal)[k] * N.gain[k].der) (List.finRange d))
      (List.finRange m) := by
    rw [sumOver_comm]
    refine sumOver_congr fun k _ => ?_
    rw [sumOver_mul_right]
    simp only [g, LayerNorm.rowsVjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver,
      Matrix.getElem_primal]
  have hbias : Vec.rate g.1.bias N.bias = sumOver (fun i : Fin m => sumOver (fun k : Fin d =>
      dY[i][k] * N.bias[k].der) (List.finRange d)) (List.finRange m) := by
    rw [sumOver_comm]
    refine sumOver_congr fun k _ => ?_
    rw [sumOver_mul_right]
    simp only [g, LayerNorm.rowsVjp, Fin.getElem_fin, Vec.getElem_sumOver]
  have hX : Matrix.rate g.2 X = sumOver (fun i : Fin m => sumOver (fun k : Fin d =>
      dY[i][k] * N.gain[k].val * (normalised (Dual.root sqrt) (Dual.const ε) X[i])[k].der)
        (List.finRange d)) (List.finRange m) := by
    refine sumOver_congr fun i _ => ?_
    refine Eq.trans ?_ ((normalised_adjoint sqrt ε X[i]
      (Vec.ofFn fun k => dY[i][k] * N.gain[k].val)).symm.trans (sumOver_congr fun k _ => ?_))
    · simp only [g, LayerNorm.rowsVjp, LayerNorm.primal, Fin.getElem_fin, Vec.getElem_ofFn,
        Matrix.getElem_primal, Vec.getElem_primal]
    · rw [Fin.getElem_fin (Vec.ofFn _), Vec.getElem_ofFn]
  rw [LayerNorm.rate, hgain, hbias, hX]
  simp only [Matrix.rate, Vec.rate, ← sumOver_add]
  refine sumOver_congr fun i _ => sumOver_congr fun k _ => ?_
  rw [getElem_layerNorm, Dual.der_add, Dual.der_mul, normalised_val]
  grind

end Attention.Proof
