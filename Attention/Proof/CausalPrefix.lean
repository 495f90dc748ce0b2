module

public import Attention.Proof.Masks
public import Attention.Proof.Visible

public section

/-! # Under the causal mask a row depends on its prefix only -/

namespace Attention.Proof

open Spec

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len q_len' kv_len kv_len' d d_v : Nat}

/-- **causal-prefix**: under the causal mask, in both alignments and with any score transformation
before it, row i of attention does not change when queries other than i, or keys and values after
place i + shift, are exchanged for others. -/
theorem causal_prefix (alignment : Alignment) (scale : S) (modify : ScoreMod S q_len kv_len)
    {Q Q' : Matrix S q_len d} {K K' : Matrix S kv_len d} {V V' : Matrix R kv_len d_v}
    {i : Fin q_len} (hQ : Q[i] = Q'[i])
    (hK : ∀ j : Fin kv_len, (j.val : Int) ≤ i.val + alignment.shift q_len kv_len → K[j] = K'[j])
    (hV : ∀ j : Fin kv_len, (j.val : Int) ≤ i.val + alignment.shift q_len kv_len → V[j] = V'[j]) :
    (attention scale (modify.andThen (Mask.causal alignment).toScoreMod) Q K V)[i]
      = (attention scale (modify.andThen (Mask.causal alignment).toScoreMod) Q' K' V')[i] :=
  attention_congr_visible scale modify _ Q K V hQ
    (fun j hj => hK j (by simpa [Mask.causal] using hj))
    (fun j hj => hV j (by simpa [Mask.causal] using hj))

/-- The numbers below k are the first k. -/
private theorem filter_finRange {n k : Nat} (p : Fin n → Bool) (hp : ∀ j, p j = true ↔ j.val < k) :
    (List.finRange n).filter p = (List.finRange n).take k := by
  have h := List.take_append_drop k (List.finRange n)
  rw [← h, List.filter_append, List.filter_eq_self.mpr, List.filter_eq_nil_iff.mpr]
  · simp
  · intro j hj
    obtain ⟨m, hm, rfl⟩ := List.mem_drop_iff_getElem.mp hj
    simp [hp]
  · intro j hj
    obtain ⟨m, hm, rfl⟩ := List.mem_take_iff_getElem.mp hj
    simp [hp]
    omega

omit [OrderedField R] [Exponential S R] in
private theorem scored_take {scale : S} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S q_len' kv_len'} {Q : Matrix S q_len d} {Q' : Matrix S q_len' d}
    {K : Matrix S kv_len d} {K' : Matrix S kv_len' d} {V : Matrix R kv_len d_v}
    {V' : Matrix R kv_len' d_v} {i : Fin q_len} {i' : Fin q_len'} {n : Nat} (hn : n ≤ kv_len)
    (hn' : n ≤ kv_len') (hQ : Q[i] = Q'[i'])
    (hkeys : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = j'.val → j.val < n →
      modify i j = modify' i' j' ∧ K[j] = K'[j'] ∧ V[j] = V'[j']) :
    scored scale modify Q K V i ((List.finRange kv_len).take n)
      = scored scale modify' Q' K' V' i' ((List.finRange kv_len').take n) := by
  have h : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = j'.val → j.val < n →
      (⟨score scale modify Q K i j, V[j]⟩ : ScoredValue S R d_v)
        = ⟨score scale modify' Q' K' i' j', V'[j']⟩ := by
    intro j j' hj hn
    obtain ⟨hm, hK, hV⟩ := hkeys j j' hj hn
    rw [score, score, hm, hQ, hK, hV]
  have hl : ((List.finRange kv_len).take n).length = n := by simp [hn]
  have hl' : ((List.finRange kv_len').take n).length = n := by simp [hn']
  refine List.ext_getElem (by simp only [scored, List.length_map, hl, hl']) fun j hj _ => ?_
  rw [scored, List.length_map, hl] at hj
  simp only [scored, List.getElem_map, List.getElem_take, List.getElem_finRange]
  exact h _ _ rfl hj

/-- **causal-lengths**: under the causal mask a row depends on nothing but its query, its place on
the axis of the keys, and what is up to there: not on the number of queries, the number
of keys, or the alignment. So the last rows can be computed with a cache of keys and values, from
the last queries aligned bottom-right; and a prefix of a sequence has a prefix of the output. -/
theorem causal_lengths {alignment alignment' : Alignment} {scale : S}
    {modify : ScoreMod S q_len kv_len} {modify' : ScoreMod S q_len' kv_len'}
    {Q : Matrix S q_len d} {Q' : Matrix S q_len' d}
    {K : Matrix S kv_len d} {K' : Matrix S kv_len' d} {V : Matrix R kv_len d_v}
    {V' : Matrix R kv_len' d_v} {i : Fin q_len} {i' : Fin q_len'} {p : Nat}
    (hp : i.val + alignment.shift q_len kv_len = (p : Int))
    (hp' : i'.val + alignment'.shift q_len' kv_len' = (p : Int))
    (hpk : p < kv_len) (hpk' : p < kv_len') (hQ : Q[i] = Q'[i'])
    (hkeys : ∀ (j : Fin kv_len) (j' : Fin kv_len'), j.val = j'.val → j.val ≤ p →
      modify i j = modify' i' j' ∧ K[j] = K'[j'] ∧ V[j] = V'[j']) :
    (attention scale (modify.andThen (Mask.causal alignment).toScoreMod) Q K V)[i]
      = (attention scale (modify'.andThen (Mask.causal alignment').toScoreMod) Q' K' V')[i'] := by
  have h : ∀ {q k : Nat} (i : Fin q) (a : Alignment), i.val + a.shift q k = (p : Int) →
      (List.finRange k).filter (Mask.causal a i) = (List.finRange k).take (p + 1) :=
    fun i a h => filter_finRange _ fun j => by
      simp only [Mask.causal, h, decide_eq_true_eq]
      omega
  rw [attention_mask, attention_mask, h i _ hp, h i' _ hp',
    scored_take hpk hpk' hQ fun j j' hj hp => hkeys j j' hj (by omega)]

end Attention.Proof
