module

public import Attention.Algebra.Magnitude
public import Attention.Algebra.NaturalExp
public import Attention.Model.Real.Exponential
public import Attention.Spec.BackwardDropout
public import Attention.Spec.BackwardOneLoop
public import Attention.Spec.LogSumExp
public import Attention.Spec.Slopes
import Attention.Proof.Backward.OneLoop
import Attention.Proof.Backward.Tiles
import Attention.Proof.Derivative.Exists
import Attention.Proof.Real.Gradient

public section

/-! # The derivative of attention, and the backward pass -/

namespace Attention.Statements

open Spec Model

universe u v

/-- Attention run over dual numbers computes its derivative, under any mask and additive bias (where
`B` is `none`, the pair is masked): of inputs that are bounded and move at bounded rates, the output
moves in a short time t by t times its rate, up to a constant times t². One constant and one time
serve all such inputs. -/
theorem derivative_is_true {R : Type u} [OrderedField R] [NaturalExp R] {q_len kv_len d d_v : Nat}
    {c M G : R} (hM : 0 ≤ M) (hG : 0 ≤ G) :
    ∃ C τ : R, 0 < τ ∧ ∀ (scale : R) (B : Matrix (Option R) q_len kv_len)
      (δB : Matrix R q_len kv_len) (Q δQ : Matrix R q_len d) (K δK : Matrix R kv_len d)
      (V δV : Matrix R kv_len d_v), AtMost c scale →
      (∀ (i : Fin q_len) (k : Fin kv_len), AtMost G δB[i][k]) →
      (∀ (i : Fin q_len) (x : Fin d), AtMost M Q[i][x] ∧ AtMost G δQ[i][x]) →
      (∀ (k : Fin kv_len) (x : Fin d), AtMost M K[k][x] ∧ AtMost G δK[k][x]) →
      (∀ (k : Fin kv_len) (j : Fin d_v), AtMost M V[k][j] ∧ AtMost G δV[k][j]) →
      ∀ t : R, AtMost τ t → ∀ (i : Fin q_len) (j : Fin d_v),
        AtMost (C * (t * t))
          ((attention scale (ScoreMod.bias (biasMoved B t δB)) (Q.moved t δQ) (K.moved t δK)
              (V.moved t δV))[i][j]
            - (attention scale (ScoreMod.bias B) Q K V)[i][j]
            - t * (jvp scale (ScoreMod.bias (biasDual B δB)) Q δQ K δK V δV)[i][j]) :=
  Proof.exists_derivative hM hG

/-- The backward pass computes the derivative of any loss Σ dO · O + Σ dLse · L of attention's
output O and the log-sum-exps L of its rows, of which −∞ counts 0. Queries, keys, values and an
additive bias (where `B` is `none`, the pair is masked) move along straight lines; the loss moves in
a short time t by t times what the gradients give, up to a constant times t². -/
theorem gradient_is_derivative_lines {q_len kv_len d d_v : Nat} (scale : Real)
    (B : Matrix (Option Real) q_len kv_len) (δB : Matrix Real q_len kv_len)
    (Q δQ : Matrix Real q_len d) (K δK : Matrix Real kv_len d) (V δV : Matrix Real kv_len d_v)
    (dO : Matrix Real q_len d_v) (dLse : Vec Real q_len) :
    ∃ L : Real → Fin q_len → Option Real,
      (∀ t i, IsLogSumExp Real (L t i) ((List.finRange kv_len).map
        (score scale (ScoreMod.bias (biasMoved B t δB)) (Q.moved t δQ) (K.moved t δK) i))) ∧
      let loss := fun t => Matrix.inner dO (attention scale (ScoreMod.bias (biasMoved B t δB))
          (Q.moved t δQ) (K.moved t δK) (V.moved t δV))
        + sumOver (fun i : Fin q_len => dLse[i] * (L t i).getD 0) (List.finRange q_len)
      let g := vjp scale (ScoreMod.bias B) ScoreSlope.one Q K V (fun y => y) dO dLse
      ∃ C τ : Real, 0 < τ ∧ ∀ t, AtMost τ t → AtMost (C * (t * t)) (loss t - loss 0
        - t * (Matrix.inner g.dQ δQ + Matrix.inner g.dK δK + Matrix.inner g.dV δV
          + Matrix.inner g.dBias δB)) :=
  Proof.vjp_isDerivative_lines scale B δB Q δQ K δK V δV dO dLse

/-- FlashAttention-2's backward pass in tiles, with P again from the saved log-sum-exps, which have
to be those of the scores under the mask, computes the gradients, with dropout (factors Z) and by
any schedule that the mask allows. -/
theorem flash_backward_dropout {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (toValue : S → R) (scale : S)
    (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
    (slope : ScoreSlope S R q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (Z : WeightFactor R q_len kv_len) (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v)
    {keys queries : TileLoop}
    (hk : 0 < keys.blockOuter) (hk' : 0 < keys.blockInner)
    (hq : 0 < queries.blockOuter) (hq' : 0 < queries.blockInner)
    (skipKeys : ∀ u t, (keys.visit u).contains t = false ∨ keys.kind u t = .skip →
      ∀ j ∈ tile keys.blockOuter (List.finRange kv_len) u,
        ∀ i ∈ tile keys.blockInner (List.finRange q_len) t, mask i j = false)
    (unmaskedKeys : ∀ u t, (keys.visit u).contains t = true → keys.kind u t = .unmasked →
      ∀ j ∈ tile keys.blockOuter (List.finRange kv_len) u,
        ∀ i ∈ tile keys.blockInner (List.finRange q_len) t, mask i j = true)
    (skipQueries : ∀ t u, (queries.visit t).contains u = false ∨ queries.kind t u = .skip →
      ∀ i ∈ tile queries.blockOuter (List.finRange q_len) t,
        ∀ j ∈ tile queries.blockInner (List.finRange kv_len) u, mask i j = false)
    (unmaskedQueries : ∀ t u, (queries.visit t).contains u = true →
      queries.kind t u = .unmasked → ∀ i ∈ tile queries.blockOuter (List.finRange q_len) t,
        ∀ j ∈ tile queries.blockInner (List.finRange kv_len) u, mask i j = true)
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    let g := vjpDropout scale forward slope Q K V Z toValue dO dLse
    flashBackward toValue scale modify mask slope Q K V Z L dO keys queries
        (attentionDropout scale forward Q K V Z) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) :=
  Proof.flashBackward_eq_vjpDropout toValue scale modify slope Q K V Z L dO hk hk' hq hq'
    ⟨skipKeys, unmaskedKeys⟩ ⟨skipQueries, unmaskedQueries⟩ hL dLse

/-- So does the one loop of the paper, which adds to dQ in memory. -/
theorem flash_backward_one_loop {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (toValue : S → R) (scale : S)
    (modify : ScoreMod S q_len kv_len) (mask : Mask q_len kv_len)
    (slope : ScoreSlope S R q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (Z : WeightFactor R q_len kv_len) (L : Vector (Option S) q_len) (dO : Matrix R q_len d_v)
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) {kind : Nat → Nat → TileKind}
    (hkind : ∀ u t, ∀ i ∈ tile block_m (List.finRange q_len) t,
      ∀ j ∈ tile block_n (List.finRange kv_len) u,
        (kind u t = .skip → mask i j = false) ∧ (kind u t = .unmasked → mask i j = true))
    (hL : ∀ i : Fin q_len, IsLogSumExp R L[i] ((List.finRange kv_len).map
      (score scale (modify.andThen mask.toScoreMod) Q K i))) (dLse : Vec R q_len) :
    let forward : ScoreMod S q_len kv_len := modify.andThen mask.toScoreMod
    let g := vjpDropout scale forward slope Q K V Z toValue dO dLse
    flashBackwardOneLoop toValue scale modify mask slope Q K V Z L dO block_m block_n kind
        (attentionDropout scale forward Q K V Z) dLse
      = (g.dQ.toList, g.dK.toList, g.dV.toList) :=
  Proof.flashBackwardOneLoop_eq_vjpDropout toValue scale modify slope Q K V Z L dO hm hn hkind hL
    dLse

end Attention.Statements
