module

public import Attention.Claims.Masking.Deletion
public import Attention.Proof.Backward.Masked
public import Attention.Proof.Packed.CuSeqlens

public section

/-! # The gradients of a part that sees nothing else, packed sequences among them -/

namespace Attention.Claims

open Spec Proof Lean.Grind

universe u v

variable {S : Type v} {R : Type u} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {m n q_len kv_len d d_v : Nat}

section
variable (toValue : S → R) (scale : S) (modify : ScoreMod S q_len kv_len)
variable (slope : ScoreSlope S R q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
variable (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v) (dLse : Vec R q_len)
variable {τ : Fin m → Fin q_len} {σ : Fin n → Fin kv_len}

omit [OrderedField R] [Exponential S R] in
private theorem score_part (i : Fin m) (t : Fin n) :
    score scale (fun i t => modify (τ i) (σ t)) (reindex τ Q) (reindex σ K) i t
      = score scale modify Q K (τ i) (σ t) := by
  simp only [score, Fin.getElem_fin, getElem_reindex]

private theorem probabilities_part (hσ : ∀ a b, σ a = σ b → a = b)
    (hkeys : ∀ i j, (∀ t, σ t ≠ j) → score scale modify Q K (τ i) j = none)
    (i : Fin m) (t : Fin n) :
    (probabilities scale (fun i t => modify (τ i) (σ t)) (reindex τ Q) (reindex σ K)
        : Matrix R m n)[i][t]
      = (probabilities scale modify Q K : Matrix R q_len kv_len)[τ i][σ t] := by
  have h : denominator (R := R) ((List.finRange kv_len).map (score scale modify Q K (τ i)))
      = denominator ((List.finRange n).map
          (score scale (fun i t => modify (τ i) (σ t)) (reindex τ Q) (reindex σ K) i)) := by
    rw [denominator, denominator, sumOver_map, sumOver_map, sumOver_reindex hσ fun j hj => by
      rw [hkeys i j hj, weight]]
    exact sumOver_congr fun t _ => by rw [score_part]
  rw [getElem_probabilities, getElem_probabilities, score_part, h]

private theorem output_part (hσ : ∀ a b, σ a = σ b → a = b)
    (hkeys : ∀ i j, (∀ t, σ t ≠ j) → score scale modify Q K (τ i) j = none) (i : Fin m) :
    (attentionDropout scale (fun i t => modify (τ i) (σ t)) (reindex τ Q) (reindex σ K)
        (reindex σ V) fun i t => Z (τ i) (σ t))[i]
      = (attentionDropout scale modify Q K V Z)[τ i] := by
  refine Vector.ext fun c hc => ?_
  refine (getElem_attentionDropout scale (fun i t => modify (τ i) (σ t)) (reindex τ Q)
    (reindex σ K) (reindex σ V) (fun i t => Z (τ i) (σ t)) i ⟨c, hc⟩).trans (Eq.trans ?_
    (getElem_attentionDropout scale modify Q K V Z (τ i) ⟨c, hc⟩).symm)
  refine Eq.trans ?_ (sumOver_reindex hσ fun j hj => by
    rw [probabilities_masked (hkeys i j hj), Semiring.zero_mul, Semiring.zero_mul]).symm
  refine sumOver_congr fun t _ => ?_
  rw [probabilities_part scale modify Q K hσ hkeys]
  simp only [Fin.getElem_fin, getElem_reindex]

/-- **gradients-reindex**: queries and keys are taken by numbers τ and σ, each at most once. If for
the queries that are taken every other key is masked, and the keys that are taken are masked for
every other query, then what is taken has the gradients that it has in the whole, with dropout or
not: by queries, keys, values and scores. -/
theorem vjpDropout_reindex (hτ : ∀ a b, τ a = τ b → a = b) (hσ : ∀ a b, σ a = σ b → a = b)
    (hkeys : ∀ i j, (∀ t, σ t ≠ j) → score scale modify Q K (τ i) j = none)
    (hqueries : ∀ i t, (∀ r, τ r ≠ i) → score scale modify Q K i (σ t) = none) :
    let g := vjpDropout scale modify slope Q K V Z toValue dO dLse
    let part := vjpDropout scale (fun i t => modify (τ i) (σ t)) (fun i t => slope (τ i) (σ t))
      (reindex τ Q) (reindex σ K) (reindex σ V) (fun i t => Z (τ i) (σ t)) toValue (reindex τ dO)
      (reindex τ dLse)
    part.dQ = reindex τ g.dQ ∧ part.dK = reindex σ g.dK ∧ part.dV = reindex σ g.dV
      ∧ part.dBias = reindex τ (Vec.map (reindex σ) g.dBias) := by
  intro g part
  obtain ⟨hB, hV, hQ, hK⟩ := vjpDropout_formulas scale modify slope Q K V Z toValue dO dLse
  obtain ⟨hB', hV', hQ', hK'⟩ := vjpDropout_formulas scale (fun i t => modify (τ i) (σ t))
    (fun i t => slope (τ i) (σ t)) (reindex τ Q) (reindex σ K) (reindex σ V)
    (fun i t => Z (τ i) (σ t)) toValue (reindex τ dO) (reindex τ dLse)
  have hP := probabilities_part (R := R) scale modify Q K hσ hkeys
  have hbias : ∀ (i : Fin m) (t : Fin n), part.dBias[i][t] = g.dBias[τ i][σ t] := fun i t => by
    refine (hB' i t).trans (Eq.trans ?_ (hB (τ i) (σ t)).symm)
    rw [hP]
    simp only [rowDelta, Fin.getElem_fin, Vec.getElem_ofFn, getElem_reindex]
    have ho := output_part scale modify Q K V Z hσ hkeys i
    simp only [Fin.getElem_fin] at ho
    rw [ho]
  have hraw : ∀ (i : Fin m) (t : Fin n), part.dBias[i][t]
        * slope (τ i) (σ t) (scale * Vec.dot (reindex τ Q)[i] (reindex σ K)[t])
      = g.dBias[τ i][σ t] * slope (τ i) (σ t) (scale * Vec.dot Q[τ i] K[σ t]) := fun i t => by
    rw [hbias]
    simp only [Fin.getElem_fin, getElem_reindex]
  have hzero : ∀ i j y, score scale modify Q K i j = none →
      g.dBias[i][j] * slope i j (scale * Vec.dot Q[i] K[j]) * y = 0 := fun i j y h => by
    have hz : g.dBias[i][j] = 0 := (hB i j).trans (by
      rw [probabilities_masked h, Semiring.zero_mul])
    rw [hz, Semiring.zero_mul, Semiring.zero_mul]
  refine ⟨Vector.ext fun i hi => Vector.ext fun c hc => ?_,
    Vector.ext fun t ht => Vector.ext fun c hc => ?_,
    Vector.ext fun t ht => Vector.ext fun c hc => ?_,
    Vector.ext fun i hi => Vector.ext fun t ht => ?_⟩
  · rw [getElem_reindex]
    refine (hQ' ⟨i, hi⟩ ⟨c, hc⟩).trans (Eq.trans ?_ (hQ (τ ⟨i, hi⟩) ⟨c, hc⟩).symm)
    refine congrArg (toValue scale * ·) (Eq.trans ?_
      (sumOver_reindex hσ fun j hj => hzero _ j _ (hkeys _ j hj)).symm)
    refine sumOver_congr fun t _ => congr (congrArg (· * ·) (hraw ⟨i, hi⟩ t)) ?_
    simp only [Fin.getElem_fin, getElem_reindex]
  · rw [getElem_reindex]
    refine (hK' ⟨t, ht⟩ ⟨c, hc⟩).trans (Eq.trans ?_ (hK (σ ⟨t, ht⟩) ⟨c, hc⟩).symm)
    refine congrArg (toValue scale * ·) (Eq.trans ?_
      (sumOver_reindex hτ fun i h => hzero i _ _ (hqueries i _ h)).symm)
    refine sumOver_congr fun i _ => congr (congrArg (· * ·) (hraw i ⟨t, ht⟩)) ?_
    simp only [Fin.getElem_fin, getElem_reindex]
  · rw [getElem_reindex]
    refine (hV' ⟨t, ht⟩ ⟨c, hc⟩).trans (Eq.trans ?_ (hV (σ ⟨t, ht⟩) ⟨c, hc⟩).symm)
    refine Eq.trans ?_ (sumOver_reindex hτ fun i h => by
      rw [probabilities_masked (hqueries i _ h), Semiring.zero_mul, Semiring.zero_mul]).symm
    refine sumOver_congr fun i _ => ?_
    rw [hP]
    simp only [Fin.getElem_fin, getElem_reindex]
  · simp only [getElem_reindex, Fin.getElem_fin, Vec.getElem_map]
    exact hbias ⟨i, hi⟩ ⟨t, ht⟩

end

/-! ## Packed sequences -/

/-- The packed place of element `i` of a sequence of `n` elements, after sequences of the lengths
`pre` and before those of the lengths `post`. -/
@[expose] def packedPlace (pre post : List Nat) (n : Nat) (i : Fin n) :
    Fin (pre ++ n :: post).sum :=
  ⟨pre.sum + i.val, by rw [List.sum_append_nat, List.sum_cons]; omega⟩

private theorem packedPlace_injective (pre post : List Nat) (a b : Fin n)
    (h : packedPlace pre post n a = packedPlace pre post n b) : a = b := by
  have := congrArg Fin.val h
  simp only [packedPlace] at this
  exact Fin.ext (by omega)

private theorem outside_of_ne {pre post : List Nat} {j : Fin (pre ++ n :: post).sum}
    (h : ∀ t, packedPlace pre post n t ≠ j) : j.val < pre.sum ∨ pre.sum + n ≤ j.val := by
  refine Classical.byContradiction fun hj => h ⟨j.val - pre.sum, by omega⟩ (Fin.ext ?_)
  simp only [packedPlace]
  omega

/-- **packed-gradients**: sequences of any lengths, empty ones too, packed one after another, with
the keys of other sequences masked by the prefix sums of the lengths: each sequence has the
gradients that it has by itself, with its own score transformation in its own positions, with
dropout or not. -/
theorem vjpDropout_packed (toValue : S → R) (scale : S) (mods : Nat → Nat → Nat → S → Option S)
    {pre_q post_q pre_k post_k : List Nat} (hpre : pre_q.length = pre_k.length)
    (slope : ScoreSlope S R (pre_q ++ m :: post_q).sum (pre_k ++ n :: post_k).sum)
    (Q : Matrix S (pre_q ++ m :: post_q).sum d) (K : Matrix S (pre_k ++ n :: post_k).sum d)
    (V : Matrix R (pre_k ++ n :: post_k).sum d_v)
    (Z : WeightFactor R (pre_q ++ m :: post_q).sum (pre_k ++ n :: post_k).sum)
    (dO : Matrix R (pre_q ++ m :: post_q).sum d_v) (dLse : Vec R (pre_q ++ m :: post_q).sum) :
    let packed := packedMod (cuSeqlens (pre_q ++ m :: post_q)) (cuSeqlens (pre_k ++ n :: post_k))
      mods
    let g := vjpDropout scale (fun i j => packed i.val j.val) slope Q K V Z toValue dO dLse
    let τ := packedPlace pre_q post_q m
    let σ := packedPlace pre_k post_k n
    let part := vjpDropout scale (fun i j => mods pre_q.length i.val j.val)
      (fun i t => slope (τ i) (σ t)) (reindex τ Q) (reindex σ K) (reindex σ V)
      (fun i t => Z (τ i) (σ t)) toValue (reindex τ dO) (reindex τ dLse)
    part.dQ = reindex τ g.dQ ∧ part.dK = reindex σ g.dK ∧ part.dV = reindex σ g.dV
      ∧ part.dBias = reindex τ (Vec.map (reindex σ) g.dBias) := by
  intro packed g τ σ part
  have h := vjpDropout_reindex (τ := τ) (σ := σ) toValue scale (fun i j => packed i.val j.val) slope
    Q K V Z dO dLse (packedPlace_injective _ _) (packedPlace_injective _ _)
    (fun i j hj => packedMod_other mods _ _ _ _ _ _ hpre i.isLt (outside_of_ne hj) _)
    (fun i t hi => packedMod_otherQuery mods _ _ _ _ _ _ hpre t.isLt (outside_of_ne hi) _)
  have hm : (fun (i : Fin m) (t : Fin n) => packed (τ i).val (σ t).val)
      = fun i j => mods pre_q.length i.val j.val := by
    funext i j s
    exact packedMod_own mods _ _ _ _ _ _ hpre i.isLt j.isLt s
  rwa [hm] at h

end Attention.Claims
