module

public import Attention.Claims.Heads.Basic
public import Attention.Claims.Attention.PositionAgnostic

public section

/-! # What multi-head attention inherits from its heads

Rows of the inputs are taken by number: permuted, repeated, deleted. What a single head does with
them, all heads together do, by the lifting lemma (`output_reindex`). Biases of the projections are
allowed everywhere: each row gets the same one. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {m n q_len kv_len h c_q c_k c_v c d d_v d_o : Nat}
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-! ## Queries -/

/-- A row of the output depends on its query, and on no other: not on how many there are, nor on
what they hold. -/
theorem multiHeadAttention_row_congr (scale : S) {modify : Fin h → ScoreMod S m kv_len}
    {modify' : Fin h → ScoreMod S n kv_len} (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o)
    {Q : Matrix S m c_q} {Q' : Matrix S n c_q} {i : Fin m} {i' : Fin n}
    (hm : ∀ κ, modify κ i = modify' κ i') (hQ : Q[i] = Q'[i']) (K : Matrix S kv_len c_k)
    (V : Matrix R kv_len c_v) :
    (multiHeadAttention scale modify W Q K V)[i]
      = (multiHeadAttention scale modify' W Q' K V)[i'] := by
  have e := getElem_output W (Vec.ofFn fun κ => weightedAttention scale (modify κ) (W.head κ) Q K V)
    i
  have e' := getElem_output W
    (Vec.ofFn fun κ => weightedAttention scale (modify' κ) (W.head κ) Q' K V) i'
  have row := fun κ => weightedAttention_row_congr scale (W.head κ) (hm κ) hQ K V
  simp only [Fin.getElem_fin, Vec.getElem_ofFn] at e e' row
  rw [multiHeadAttention, multiHeadAttention, Fin.getElem_fin, Fin.getElem_fin, e, e']
  simp only [row]

/-- Query deletion: without query s the output is without row s, and else the same. -/
theorem multiHeadAttention_delete_query (scale : S) (modify : Fin h → ScoreMod S (m + 1) kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (s : Fin (m + 1))
    (Q : Matrix S (m + 1) c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    multiHeadAttention scale (fun κ i => modify κ (skip s i)) W (deleteRow s Q) K V
      = deleteRow s (multiHeadAttention scale modify W Q K V) :=
  output_reindex (skip s) fun κ =>
    weightedAttention_delete_query scale (modify κ) (W.head κ) s Q K V

/-- Query deletion with masks, which lose their rows s. -/
theorem maskedMultiHeadAttention_delete_query (scale : S)
    (B : Fin h → Matrix (Option S) (m + 1) kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (s : Fin (m + 1))
    (Q : Matrix S (m + 1) c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    maskedMultiHeadAttention scale (fun κ => deleteRow s (B κ)) W (deleteRow s Q) K V
      = deleteRow s (maskedMultiHeadAttention scale B W Q K V) :=
  output_reindex (skip s) fun κ =>
    maskedWeightedAttention_delete_query scale (B κ) (W.head κ) s Q K V

/-! ## Queries and keys -/

/-- Queries are taken by any numbers τ, keys and values by numbers σ none of which occurs twice. If
for these queries every other key is masked in every head, the output has the rows τ of the whole
output. So a key masked in all heads may be deleted, queries may be, and both may be permuted. -/
theorem maskedMultiHeadAttention_reindex (scale : S) (B : Fin h → Matrix (Option S) q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (τ : Fin m → Fin q_len)
    {σ : Fin n → Fin kv_len} (hσ : ∀ a b, σ a = σ b → a = b) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v)
    (hB : ∀ κ i j, (∀ t, σ t ≠ j) → (B κ)[τ i][j] = none) :
    maskedMultiHeadAttention scale (fun κ => reindexMask τ σ (B κ)) W (reindex τ Q) (reindex σ K)
        (reindex σ V)
      = reindex τ (maskedMultiHeadAttention scale B W Q K V) :=
  output_reindex τ fun κ =>
    maskedWeightedAttention_reindex scale (B κ) (W.head κ) τ hσ Q K V (hB κ)

/-- **multi-head-reindex**: the same with any score transformations. -/
theorem multiHeadAttention_reindex (scale : S) (modify : Fin h → ScoreMod S q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (τ : Fin m → Fin q_len)
    {σ : Fin n → Fin kv_len} (hσ : ∀ a b, σ a = σ b → a = b) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v)
    (hm : ∀ κ i j, (∀ t, σ t ≠ j) → ∀ s, modify κ (τ i) j s = none) :
    multiHeadAttention scale (fun κ i t => modify κ (τ i) (σ t)) W (reindex τ Q) (reindex σ K)
        (reindex σ V)
      = reindex τ (multiHeadAttention scale modify W Q K V) :=
  output_reindex τ fun κ =>
    weightedAttention_reindex scale (modify κ) (W.head κ) τ hσ Q K V (hm κ)

/-- Key-value deletion: a key that is masked for every query in every head may be deleted, with its
value and its column of the masks. -/
theorem maskedMultiHeadAttention_delete_key (scale : S)
    {B : Fin h → Matrix (Option S) q_len (n + 1)}
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) {s : Fin (n + 1)}
    (hB : ∀ κ, ∀ i : Fin q_len, (B κ)[i][s] = none) (Q : Matrix S q_len c_q)
    (K : Matrix S (n + 1) c_k) (V : Matrix R (n + 1) c_v) :
    maskedMultiHeadAttention scale (fun κ => Vec.map (deleteRow s) (B κ)) W Q (deleteRow s K)
        (deleteRow s V)
      = maskedMultiHeadAttention scale B W Q K V := by
  simp only [maskedMultiHeadAttention, fun κ =>
    maskedWeightedAttention_delete_key scale (W.head κ) (hB κ) Q K V]

/-- Input deletion: an input that no other may attend to, in any head, may be deleted, with its row
and column of the masks; the output loses its row. -/
theorem maskedMultiHeadSelfAttention_delete (ι : S → R) (scale : S)
    {B : Fin h → Matrix (Option S) (n + 1) (n + 1)} (W : MultiHeadWeights S R h c c c d d_v d_o)
    {s : Fin (n + 1)} (hB : ∀ κ i, i ≠ s → (B κ)[i][s] = none) (X : Matrix S (n + 1) c) :
    maskedMultiHeadSelfAttention ι scale (fun κ => deleteRow s (Vec.map (deleteRow s) (B κ))) W
        (deleteRow s X)
      = deleteRow s (maskedMultiHeadSelfAttention ι scale B W X) :=
  output_reindex (skip s) fun κ => maskedSelfAttention_delete ι scale (W.head κ) (hB κ) X

/-! ## Permutations -/

/-- Permutation equivariance: the output goes with the queries, in any order, and the order of the
keys does not matter, if their values go with them. The projections may have biases. (τ may leave
queries out or repeat them, too.) -/
theorem multiHeadAttention_permute (scale : S) (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o)
    (τ : Fin m → Fin q_len) {σ : Fin kv_len → Fin kv_len} (hσ : IsPermutation σ)
    (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    multiHeadAttention scale (fun _ => Mask.full.toScoreMod) W (reindex τ Q) (reindex σ K)
        (reindex σ V)
      = reindex τ (multiHeadAttention scale (fun _ => Mask.full.toScoreMod) W Q K V) :=
  multiHeadAttention_reindex scale (fun _ => Mask.full.toScoreMod) W τ hσ.injective Q K V
    fun _ _ j hj => absurd (hσ.surjective j) fun ⟨t, ht⟩ => hj t ht

/-- The same weights apply to any numbers of queries and keys, and belong to no position. -/
theorem multiHeadAttention_positionAgnostic (scale : S)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) :
    PositionAgnostic fun _ _ Q K V =>
      multiHeadAttention scale (fun _ => Mask.full.toScoreMod) W Q K V :=
  fun _ _ _ τ _ hσ Q K V => multiHeadAttention_permute scale W τ hσ Q K V

/-- With masks too, if their rows go with the queries and their columns with the keys. -/
theorem maskedMultiHeadAttention_permute (scale : S)
    (B : Fin h → Matrix (Option S) q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (π : Fin q_len → Fin q_len)
    {σ : Fin kv_len → Fin kv_len} (hσ : IsPermutation σ) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    maskedMultiHeadAttention scale (fun κ => reindexMask π σ (B κ)) W (reindex π Q) (reindex σ K)
        (reindex σ V)
      = reindex π (maskedMultiHeadAttention scale B W Q K V) :=
  maskedMultiHeadAttention_reindex scale B W π hσ.injective Q K V
    fun _ _ j hj => absurd (hσ.surjective j) fun ⟨t, ht⟩ => hj t ht

/-- Permutation equivariance of self-attention: the output goes with the inputs. -/
theorem multiHeadSelfAttention_permute (ι : S → R) (scale : S)
    (W : MultiHeadWeights S R h c c c d d_v d_o) {π : Fin n → Fin n} (hπ : IsPermutation π)
    (X : Matrix S n c) :
    multiHeadSelfAttention ι scale (fun _ => Mask.full.toScoreMod) W (reindex π X)
      = reindex π (multiHeadSelfAttention ι scale (fun _ => Mask.full.toScoreMod) W X) := by
  simp only [multiHeadSelfAttention, map_reindex]
  exact multiHeadAttention_permute scale W π hπ X X _

end Attention.Claims
