module

public import Attention.Proof.Backward.Basic
public import Attention.Proof.Backward.Layers
public import Attention.Proof.Derivative.Slopes
public import Attention.Proof.Heads.MultiHead

public section

/-! # The backward pass of multi-head attention with its projections -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {m n d d_v q_len kv_len num_heads d_model : Nat}

/-! ## Attention that changes -/

omit [OrderedField R] in
/-- A matrix of dual numbers is its numbers, changing at its rates. -/
theorem dual_primal_tangent (A : Matrix (Dual R) m n) : A.primal.dual A.tangent = A :=
  matrix_ext fun i j => by
    simp only [Matrix.dual, Matrix.tangent, Fin.getElem_fin, Vec.getElem_ofFn,
      Matrix.getElem_primal, Vec.getElem_primal]

/-- The rate from a gradient is its inner product with the rates. -/
theorem inner_tangent (G : Matrix R m n) (A : Matrix (Dual R) m n) :
    Matrix.inner G A.tangent = Matrix.rate G A :=
  sumOver_congr fun i _ => sumOver_congr fun j _ => by
    simp only [Matrix.tangent, Fin.getElem_fin, Vec.getElem_ofFn]

variable [Exponential R R] (scale : R) (mask : Mask q_len kv_len)

/-- The numbers of attention that changes are attention of the numbers. -/
theorem attention_primal (Q : Matrix (Dual R) q_len d) (K : Matrix (Dual R) kv_len d)
    (V : Matrix (Dual R) kv_len d_v) :
    Matrix.primal (attention (Dual.const scale) mask.toScoreMod Q K V : Matrix (Dual R) q_len d_v)
      = attention scale mask.toScoreMod Q.primal K.primal V.primal :=
  matrix_ext fun i c => by
    have hp : ∀ j, primal (score (Dual.const scale) mask.toScoreMod Q K i j)
        = score scale mask.toScoreMod Q.primal K.primal i j := fun j => by
      have h := primal_score (scale := scale) (isLift_mask mask) Q.primal Q.tangent K.primal
        K.tangent i j
      rwa [dual_primal_tangent, dual_primal_tangent] at h
    have hrow : ((List.finRange kv_len).map (score (Dual.const scale) mask.toScoreMod Q K i)).map
        primal = (List.finRange kv_len).map (score scale mask.toScoreMod Q.primal K.primal i) := by
      rw [List.map_map]
      exact List.map_congr_left fun j _ => hp j
    have hs : (scored (Dual.const scale) mask.toScoreMod Q K V i (List.finRange kv_len)).map
        (·.score)
        = (List.finRange kv_len).map (score (Dual.const scale) mask.toScoreMod Q K i) := by
      rw [scored, List.map_map]
      rfl
    refine Eq.trans ?_ (attention_eq_probabilities scale mask.toScoreMod Q.primal K.primal
      V.primal i c).symm
    have h : (attention (Dual.const scale) mask.toScoreMod Q K V : Matrix (Dual R) q_len d_v)[i][c]
        = (attend (scored (Dual.const scale) mask.toScoreMod Q K V i
            (List.finRange kv_len)))[c] := by
      simp only [attention, Fin.getElem_fin, Vec.getElem_ofFn]
    rw [Fin.getElem_fin (Matrix.primal _), Matrix.getElem_primal, Fin.getElem_fin (Vec.primal _),
      Vec.getElem_primal]
    refine (congrArg Dual.val h).trans ?_
    rw [Fin.getElem_fin, getElem_attend_dual, Dual.val_sumOver, hs, hrow, scored, sumOver_map]
    refine sumOver_congr fun j _ => ?_
    rw [Dual.val_mul, hp, ← getElem_probabilities]
    simp only [Fin.getElem_fin, Matrix.getElem_primal, Vec.getElem_primal]

/-- The backward pass of one head. -/
theorem attention_adjoint (Q : Matrix (Dual R) q_len d) (K : Matrix (Dual R) kv_len d)
    (V : Matrix (Dual R) kv_len d_v) (dO : Matrix R q_len d_v) :
    let g := vjp scale mask.toScoreMod ScoreSlope.one Q.primal K.primal V.primal (fun x => x) dO
      Vec.zero
    Matrix.rate dO (attention (Dual.const scale) mask.toScoreMod Q K V)
      = Matrix.rate g.dQ Q + Matrix.rate g.dK K + Matrix.rate g.dV V := by
  intro g
  have h := vjp_adjoint Q.primal Q.tangent K.primal K.tangent V.primal V.tangent dO
    (scale := scale) (isLift_mask mask)
  have hz : Matrix.inner g.dBias (zeroMatrix : Matrix R q_len kv_len) = 0 :=
    sumOver_eq_zero fun i _ => sumOver_eq_zero fun j _ => by
      simp only [zeroMatrix, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero,
        Semiring.mul_zero]
  dsimp only at h
  rw [hz, Semiring.add_zero, jvp, dual_primal_tangent, dual_primal_tangent, dual_primal_tangent,
    inner_tangent, inner_tangent, inner_tangent, inner_tangent] at h
  exact h

/-! ## Heads side by side -/

omit [Exponential R R] in
/-- A sum over the columns of all heads, head by head. -/
theorem sumOver_columns (f : Fin (num_heads * d) → R) :
    sumOver f (List.finRange (num_heads * d)) = sumOver (fun h =>
      sumOver (fun c => f (headColumn h c)) (List.finRange d)) (List.finRange num_heads) := by
  have e : ∀ (j : Fin (num_heads * d)) (h : Fin num_heads), sumOver (fun c =>
      if j = headColumn h c then f j else 0) (List.finRange d)
        = if h = headOf j then f j else 0 := fun j h => by
    split
    case isTrue hj =>
      refine (sumOver_congr fun c _ => ?_).trans (sumOver_ite_eq (fun _ => f j) (componentOf j))
      by_cases hc : c = componentOf j
      · rw [if_pos hc, if_pos (by rw [hc, hj, headColumn_headOf])]
      · rw [if_neg hc, if_neg fun e => hc (by rw [e, componentOf_headColumn])]
    case isFalse hj =>
      refine sumOver_eq_zero fun c _ => if_neg fun hc => hj ?_
      rw [hc, headOf_headColumn]
  have h : ∀ j ∈ List.finRange (num_heads * d), f j = sumOver (fun h => sumOver (fun c =>
      if j = headColumn h c then f j else 0) (List.finRange d)) (List.finRange num_heads) :=
    fun j _ => by
      rw [sumOver_congr fun h _ => e j h]
      exact (sumOver_ite_eq (fun _ => f j) (headOf j)).symm
  rw [sumOver_congr h, sumOver_comm]
  refine sumOver_congr fun h _ => ?_
  rw [sumOver_comm]
  exact sumOver_congr fun c _ => sumOver_ite_eq f (headColumn h c)

omit [OrderedField R] [Exponential R R] in
private theorem splitHeads_primal (X : Matrix (Dual R) n (num_heads * d)) (h : Fin num_heads) :
    (splitHeads X)[h].primal = (splitHeads X.primal)[h] :=
  matrix_ext fun i c => by
    simp only [splitHeads, Fin.getElem_fin, Vec.getElem_ofFn, Matrix.getElem_primal,
      Vec.getElem_primal]

omit [OrderedField R] [Exponential R R] in
private theorem concatHeads_primal (heads : Vector (Matrix (Dual R) n d) num_heads) :
    Matrix.primal (concatHeads heads)
      = concatHeads (Vec.ofFn fun h : Fin num_heads => heads[h].primal) :=
  matrix_ext fun i c => by
    rw [getElem_concatHeads_headOf, Fin.getElem_fin (Matrix.primal _), Matrix.getElem_primal,
      Fin.getElem_fin (Vec.primal _), Vec.getElem_primal]
    refine (congrArg Dual.val (getElem_concatHeads_headOf heads i c)).trans ?_
    simp only [Fin.getElem_fin, Vec.getElem_ofFn, Matrix.getElem_primal, Vec.getElem_primal]

omit [Exponential R R] in
/-- Heads that are put side by side get the columns of the gradient that are theirs. -/
theorem concatHeads_adjoint (heads : Vector (Matrix (Dual R) n d) num_heads)
    (G : Matrix R n (num_heads * d)) :
    Matrix.rate G (concatHeads heads) = sumOver (fun h : Fin num_heads =>
      Matrix.rate (splitHeads G)[h] heads[h]) (List.finRange num_heads) := by
  refine Eq.trans (sumOver_congr fun i _ => ?_)
    (sumOver_comm (fun i h => Vec.rate (splitHeads G)[h][i] heads[h][i]) _ _)
  rw [Vec.rate, sumOver_columns]
  refine sumOver_congr fun h _ => sumOver_congr fun c _ => ?_
  rw [getElem_concatHeads]
  simp only [splitHeads, Fin.getElem_fin, Vec.getElem_ofFn]

omit [Exponential R R] in
/-- A matrix that is split to heads gets their gradients side by side. -/
theorem splitHeads_adjoint (X : Matrix (Dual R) n (num_heads * d))
    (G : Vector (Matrix R n d) num_heads) :
    sumOver (fun h : Fin num_heads => Matrix.rate G[h] (splitHeads X)[h]) (List.finRange num_heads)
      = Matrix.rate (concatHeads G) X := by
  refine (sumOver_comm (fun h i => Vec.rate G[h][i] (splitHeads X)[h][i]) _ _).trans
    (sumOver_congr fun i _ => ?_)
  rw [Vec.rate, sumOver_columns]
  refine sumOver_congr fun h _ => sumOver_congr fun c _ => ?_
  rw [getElem_concatHeads]
  simp only [splitHeads, Fin.getElem_fin, Vec.getElem_ofFn]

/-! ## All of it -/

private theorem heads_primal (Q : Matrix (Dual R) q_len (num_heads * d))
    (K V : Matrix (Dual R) kv_len (num_heads * d)) :
    Matrix.primal (concatHeads (multiHead (Dual.const scale) (fun _ => mask.toScoreMod)
        (splitHeads Q) (splitHeads K) (splitHeads V)))
      = concatHeads (multiHead scale (fun _ => mask.toScoreMod) (splitHeads Q.primal)
        (splitHeads K.primal) (splitHeads V.primal)) := by
  rw [concatHeads_primal]
  refine congrArg concatHeads (Vector.ext fun h hh => ?_)
  have e := attention_primal scale mask (splitHeads Q)[h] (splitHeads K)[h] (splitHeads V)[h]
  have s := fun (l : Nat) (X : Matrix (Dual R) l (num_heads * d)) => splitHeads_primal X ⟨h, hh⟩
  simp only [Fin.getElem_fin] at s
  simp only [multiHead, Fin.getElem_fin, Vec.getElem_ofFn]
  rw [e, s, s, s]

/-- The numbers of multi-head attention that changes are multi-head attention of the numbers. -/
theorem multiHead_primal (W : MultiHead (Dual R) d_model num_heads d)
    (Q : Matrix (Dual R) q_len d_model) (K V : Matrix (Dual R) kv_len d_model) :
    (W.rows (Dual.const scale) mask Q K V).primal
      = (MultiHead.primal W).rows scale mask Q.primal K.primal V.primal := by
  rw [MultiHead.rows, MultiHead.attend, linear_primal, heads_primal, linear_primal, linear_primal,
    linear_primal]
  rfl

/-- **multi-head-backward**: the backward pass of multi-head attention with its projections gives
the rate that the gradient by its rows gives, at whatever rates the projections and the rows of
queries, keys and values change. -/
theorem multiHead_adjoint (W : MultiHead (Dual R) d_model num_heads d)
    (Q : Matrix (Dual R) q_len d_model) (K V : Matrix (Dual R) kv_len d_model)
    (dY : Matrix R q_len d_model) :
    let g := (MultiHead.primal W).rowsVjp scale mask Q.primal K.primal V.primal dY
    Matrix.rate dY (W.rows (Dual.const scale) mask Q K V)
      = MultiHead.rate g.parameters W + Matrix.rate g.dQ Q + Matrix.rate g.dK K
        + Matrix.rate g.dV V := by
  intro g
  let q := splitHeads ((Linear.primal W.query).rows Q.primal)
  let k := splitHeads ((Linear.primal W.key).rows K.primal)
  let v := splitHeads ((Linear.primal W.value).rows V.primal)
  let O := concatHeads (multiHead scale (fun _ => mask.toScoreMod) q k v)
  let dO := ((Linear.primal W.output).rowsVjp O dY).2
  let each : Vector (Gradients R q_len kv_len d d) num_heads := Vec.ofFn fun h =>
    vjp scale mask.toScoreMod ScoreSlope.one q[h] k[h] v[h] (fun x => x) (splitHeads dO)[h] Vec.zero
  have hO := heads_primal scale mask (W.query.rows Q) (W.key.rows K) (W.value.rows V)
  rw [linear_primal, linear_primal, linear_primal] at hO
  have h₁ := linear_adjoint W.output (concatHeads (multiHead (Dual.const scale)
    (fun _ => mask.toScoreMod) (splitHeads (W.query.rows Q)) (splitHeads (W.key.rows K))
    (splitHeads (W.value.rows V)))) dY
  dsimp only at h₁
  rw [hO, concatHeads_adjoint] at h₁
  have h₂ : ∀ h ∈ List.finRange num_heads, Matrix.rate (splitHeads dO)[h]
        (multiHead (Dual.const scale) (fun _ => mask.toScoreMod) (splitHeads (W.query.rows Q))
          (splitHeads (W.key.rows K)) (splitHeads (W.value.rows V)))[h]
      = Matrix.rate (Vec.ofFn fun h => each[h].dQ : Vector _ num_heads)[h]
          (splitHeads (W.query.rows Q))[h]
        + Matrix.rate (Vec.ofFn fun h => each[h].dK : Vector _ num_heads)[h]
          (splitHeads (W.key.rows K))[h]
        + Matrix.rate (Vec.ofFn fun h => each[h].dV : Vector _ num_heads)[h]
          (splitHeads (W.value.rows V))[h] := fun h _ => by
    have e := attention_adjoint scale mask (splitHeads (W.query.rows Q))[h]
      (splitHeads (W.key.rows K))[h] (splitHeads (W.value.rows V))[h] (splitHeads dO)[h]
    rw [splitHeads_primal, splitHeads_primal, splitHeads_primal, linear_primal, linear_primal,
      linear_primal] at e
    simpa only [multiHead, each, q, k, v, Fin.getElem_fin, Vec.getElem_ofFn] using e
  have h₃ := sumOver_congr h₂
  rw [sumOver_add, sumOver_add, splitHeads_adjoint, splitHeads_adjoint, splitHeads_adjoint,
    linear_adjoint W.query, linear_adjoint W.key, linear_adjoint W.value] at h₃
  refine h₁.trans ((congrArg (_ + ·) h₃).trans ?_)
  show _ = Linear.rate g.parameters.query W.query + Linear.rate g.parameters.key W.key
    + Linear.rate g.parameters.value W.value + Linear.rate g.parameters.output W.output
    + Matrix.rate g.dQ Q + Matrix.rate g.dK K + Matrix.rate g.dV V
  simp only [g, MultiHead.rowsVjp, MultiHead.primal, each, dO, O, q, k, v]
  grind

end Attention.Proof
