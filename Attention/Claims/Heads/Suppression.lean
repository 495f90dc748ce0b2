module

public import Attention.Claims.Heads.Deletion
public import Attention.Claims.Masking.Reductions
public import Attention.Claims.Masking.Limit

public section

/-! # Masks that agree, with heads

Claimed: if entry (i, s) of the mask of every head tends to −∞, output i does not depend on key s
and value s; and key s may be deleted, if that is so for every i. As of one head it is false of a
row with one key, true of the others in the limit, and true of all if the entry is `none`. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {m n q_len kv_len h c_q c_k c_v c d d_v d_o : Nat}

/-! ## Masked in every head -/

section
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- The output of head κ for query i without key s: component t is Σ_{j ≠ s} wⱼ v̂ⱼₜ / Σ_{j ≠ s} wⱼ,
with wⱼ the exponential of scale · (⟨q̂ᵢ, k̂ⱼ⟩ + bᵢⱼ), and q̂, k̂, v̂ the rows that the head
projects. -/
@[expose] def headWithout (s : Fin kv_len) (scale : S) (B : Matrix (Option S) q_len kv_len)
    (W : Weights S R c_q c_k c_v d d_v) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) (i : Fin q_len) : Vec R d_v :=
  let w : Fin kv_len → R := fun j =>
    match B[i][j] with
    | none => 0
    | some b => exp (scale * (Vec.dot (affine W.w_q W.b_q Q[i]) (affine W.w_k W.b_k K[j]) + b))
  let others := (List.finRange kv_len).filter (· ≠ s)
  Vec.ofFn fun t => sumOver (fun j => w j * (affine W.w_v W.b_v V[j])[t]) others / sumOver w others

/-- A head's row with entry s of the mask `none`. -/
theorem maskedWeightedAttention_without (scale : S) {B : Matrix (Option S) q_len kv_len}
    (W : Weights S R c_q c_k c_v d d_v) {s : Fin kv_len} {i : Fin q_len} (hs : B[i][s] = none)
    (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    (maskedWeightedAttention scale B W Q K V)[i] = headWithout s scale B W Q K V i := by
  have kept : ∀ f : Fin kv_len → R, f s = 0 → sumOver f (List.finRange kv_len)
      = sumOver f ((List.finRange kv_len).filter (· ≠ s)) := fun f hf => by
    rw [sumOver_filter]
    refine sumOver_congr fun j _ => ?_
    by_cases hj : j = s
    · subst hj
      simp [hf]
    · simp [hj]
  have hw : ∀ j, (weight (score 1 (scaledBias scale B) (W.queries Q) (W.keys K) i j) : R)
      = match B[i][j] with
        | none => 0
        | some b => exp (scale * (Vec.dot (affine W.w_q W.b_q Q[i]) (affine W.w_k W.b_k K[j]) + b))
      := fun j => by
    rw [score_scaledBias]
    simp only [Weights.queries, Weights.keys, Fin.getElem_fin, Vec.getElem_map]
    cases B[i.val][j.val] <;> rfl
  refine Vector.ext fun t ht => ?_
  refine (Proof.getElem_attention_eq_weights 1 (scaledBias scale B) (W.queries Q) (W.keys K)
    (W.values V) i ⟨t, ht⟩).trans ?_
  simp only [hw]
  rw [headWithout, Vec.getElem_ofFn, kept, kept]
  · simp only [Weights.values, Fin.getElem_fin, Vec.getElem_map]
  · simp only [hs]
  · simp only [hs, Semiring.zero_mul]

/-- **Suppression.** With entry (i, s) of every head's mask `none`, output i is
W_oᵀ (oᵢ⁽¹⁾ | … | oᵢ⁽ʰ⁾)ᵀ + b_o with the heads' rows without key s. -/
theorem maskedMultiHeadAttention_without (scale : S) {B : Fin h → Matrix (Option S) q_len kv_len}
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) {s : Fin kv_len} {i : Fin q_len}
    (hs : ∀ κ, (B κ)[i][s] = none) (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) :
    (maskedMultiHeadAttention scale B W Q K V)[i]
      = affine W.w_o W.b_o (joinRow fun κ => headWithout s scale (B κ) (W.head κ) Q K V i) := by
  have e := getElem_output W
    (Vec.ofFn fun κ => maskedWeightedAttention scale (B κ) (W.head κ) Q K V) i
  have row := fun κ => maskedWeightedAttention_without scale (W.head κ) (hs κ) Q K V
  simp only [Fin.getElem_fin, Vec.getElem_ofFn] at e row ⊢
  rw [maskedMultiHeadAttention, e]
  simp only [row]

/-- So it is with key s deleted, which is what output i tends to where the entries are numbers. -/
theorem maskedMultiHeadAttention_deleted_formula (scale : S)
    (B : Fin h → Matrix (Option S) q_len (n + 1))
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (s : Fin (n + 1)) (Q : Matrix S q_len c_q)
    (K : Matrix S (n + 1) c_k) (V : Matrix R (n + 1) c_v) (i : Fin q_len) :
    (maskedMultiHeadAttention scale (fun κ => Vec.map (deleteRow s) (B κ)) W Q (deleteRow s K)
        (deleteRow s V))[i]
      = affine W.w_o W.b_o (joinRow fun κ => headWithout s scale (B κ) (W.head κ) Q K V i) := by
  have row : ∀ κ, (maskedWeightedAttention scale (Vec.map (deleteRow s) (B κ)) (W.head κ) Q
      (deleteRow s K) (deleteRow s V))[i] = headWithout s scale (B κ) (W.head κ) Q K V i := by
    refine fun κ => Vector.ext fun t ht => ?_
    have e := maskedAttention_deleted_formula scale (B κ) s ((W.head κ).queries Q)
      ((W.head κ).keys K) ((W.head κ).values V) i ⟨t, ht⟩
    simp only [maskedWeightedAttention, Weights.queries, Weights.keys, Weights.values, deleteRow,
      map_reindex, headWithout, Fin.getElem_fin, Vec.getElem_map, Vec.getElem_ofFn] at e ⊢
    exact e
  have e := getElem_output W (Vec.ofFn fun κ => maskedWeightedAttention scale
    (Vec.map (deleteRow s) (B κ)) (W.head κ) Q (deleteRow s K) (deleteRow s V)) i
  simp only [Fin.getElem_fin, Vec.getElem_ofFn] at e row ⊢
  rw [maskedMultiHeadAttention, e]
  simp only [row]

private theorem headWithout_congr {s : Fin kv_len} {scale : S}
    {B : Matrix (Option S) q_len kv_len} {W : Weights S R c_q c_k c_v d d_v}
    {Q Q' : Matrix S q_len c_q} {K K' : Matrix S kv_len c_k} {V V' : Matrix R kv_len c_v}
    {i : Fin q_len} (hQ : Q[i] = Q'[i]) (hK : ∀ j, j ≠ s → K[j] = K'[j])
    (hV : ∀ j, j ≠ s → V[j] = V'[j]) :
    headWithout s scale B W Q K V i = headWithout s scale B W Q' K' V' i := by
  have off : ∀ j ∈ (List.finRange kv_len).filter (· ≠ s), j ≠ s := fun j hj => by
    simpa using (List.mem_filter.mp hj).2
  simp only [headWithout, hQ]
  refine Vector.ext fun t ht => ?_
  rw [Vec.getElem_ofFn, Vec.getElem_ofFn]
  exact congr (congrArg HDiv.hDiv (sumOver_congr fun j hj => by rw [hK j (off j hj),
    hV j (off j hj)])) (sumOver_congr fun j hj => by rw [hK j (off j hj)])

/-- Output i then does not depend on key s and value s. -/
theorem maskedMultiHeadAttention_suppressed (scale : S)
    {B : Fin h → Matrix (Option S) q_len kv_len}
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) {s : Fin kv_len} {i : Fin q_len}
    (hs : ∀ κ, (B κ)[i][s] = none) {Q Q' : Matrix S q_len c_q} {K K' : Matrix S kv_len c_k}
    {V V' : Matrix R kv_len c_v} (hQ : Q[i] = Q'[i]) (hK : ∀ j, j ≠ s → K[j] = K'[j])
    (hV : ∀ j, j ≠ s → V[j] = V'[j]) :
    (maskedMultiHeadAttention scale B W Q K V)[i]
      = (maskedMultiHeadAttention scale B W Q' K' V')[i] := by
  rw [maskedMultiHeadAttention_without scale W hs, maskedMultiHeadAttention_without scale W hs]
  simp only [fun κ => headWithout_congr (B := B κ) (W := W.head κ) (scale := scale) hQ hK hV]

/-- In self-attention output i then does not depend on input s, for any s but i. -/
theorem maskedMultiHeadSelfAttention_suppressed (ι : S → R) (scale : S)
    {B : Fin h → Matrix (Option S) n n} (W : MultiHeadWeights S R h c c c d d_v d_o) {s i : Fin n}
    (his : i ≠ s) (hs : ∀ κ, (B κ)[i][s] = none) {X X' : Matrix S n c}
    (hX : ∀ j, j ≠ s → X[j] = X'[j]) :
    (maskedMultiHeadSelfAttention ι scale B W X)[i]
      = (maskedMultiHeadSelfAttention ι scale B W X')[i] :=
  maskedMultiHeadAttention_suppressed scale W hs (hX i his) hX fun j hj => by
    have := hX j hj
    simp only [Fin.getElem_fin, Vec.getElem_map] at this ⊢
    rw [this]

/-! ## Claimed -/

/-- The claim, of the row of one query: whatever else the masks are, outputs of keys and values that
differ at s alone come as close to each other as one likes, once entry s of every mask is small
enough. -/
@[expose] def AgreeingMasksSuppress (scale : S) (R : Type v) [OrderedField R] [Exponential S R] :
    Prop :=
  ∀ (kv_len h c_q c_k c_v d d_v d_o : Nat) (s : Fin kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S 1 c_q)
    (K K' : Matrix S kv_len c_k) (V V' : Matrix R kv_len c_v)
    (B₀ : Fin h → Matrix (Option S) 1 kv_len),
    (∀ j, j ≠ s → K[j] = K'[j] ∧ V[j] = V'[j]) →
    ∀ ε : R, 0 < ε → ∃ β : S, ∀ B : Fin h → Matrix (Option S) 1 kv_len,
      (∀ κ j, j ≠ s → (B κ)[0][j] = (B₀ κ)[0][j]) →
      (∀ κ, ∃ b, (B κ)[0][s] = some b ∧ b ≤ β) → ∀ t : Fin d_o,
        AtMost ε ((maskedMultiHeadAttention scale B W Q K V)[0][t]
          - (maskedMultiHeadAttention scale B W Q K' V')[0][t])

/-- One head without weights is masked attention, of which it is false: of a row with one key. -/
theorem agreeingMasksSuppress_refuted (scale : S) : ¬ AgreeingMasksSuppress scale R := by
  intro claim
  refine biasSuppresses_refuted (R := R) scale
    fun kv_len d d_v s Q K K' V V' B₀ same ε hε => ?_
  obtain ⟨β, hβ⟩ := claim kv_len 1 d d d_v d d_v d_v s Weights.identity.oneHead Q K K' V V'
    (fun _ => B₀) same ε hε
  refine ⟨β, fun B hB hs t => ?_⟩
  have e := hβ (fun _ => B) (fun _ => hB) (fun _ => hs) t
  rwa [← maskedAttention_eq_multiHead, ← maskedAttention_eq_multiHead] at e

/-- The claim of the number b itself, of self-attention: with b at (i, s) in every mask
output i does not depend on input s. -/
@[expose] def FiniteMasksSuppressInput (ι : S → R) (scale b : S) : Prop :=
  ∀ (n h c d d_v d_o : Nat) (W : MultiHeadWeights S R h c c c d d_v d_o) (i s : Fin n)
    (B : Fin h → Matrix (Option S) n n) (X X' : Matrix S n c), i ≠ s →
    (∀ j, j ≠ s → X[j] = X'[j]) → (∀ κ, (B κ)[i][s] = some b) →
      (maskedMultiHeadSelfAttention ι scale B W X)[i]
        = (maskedMultiHeadSelfAttention ι scale B W X')[i]

/-- Masks whose entries are numbers suppress no input, however small they are: for every
exponential, scale and number, and every reading ι of inputs as values that tells 1 from 0. -/
theorem finiteMasksSuppressInput_refuted {ι : S → R} (hι : ι 1 ≠ ι 0) (scale b : S) :
    ¬ FiniteMasksSuppressInput ι scale b := by
  intro claim
  refine finiteBiasSuppressesInput_refuted hι scale b
    fun n c d d_v W i s B X X' his same hs => ?_
  have e := claim n 1 c d d_v d_v W.oneHead i s (fun _ => B) X X' his same fun _ => hs
  rw [maskedSelfAttention_eq_multiHead, maskedSelfAttention_eq_multiHead]
  exact e

end

end Attention.Claims
