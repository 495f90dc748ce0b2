module

public import Attention.Proof.Masks.Segments

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
      ∀ j : Fin k, Mask.causal a i j = true ↔ 0 ≤ j.val ∧ j.val < 0 + (p + 1) :=
    fun i a h j => by
      simp only [Mask.causal, h, decide_eq_true_eq]
      omega
  have hn : 0 + (p + 1) ≤ kv_len := by omega
  have hn' : 0 + (p + 1) ≤ kv_len' := by omega
  rw [attention_run scale modify _ Q K V hn (h i _ hp),
    attention_run scale modify' _ Q' K' V' hn' (h i' _ hp'), scored, scored, List.map_map,
    List.map_map]
  congr 1
  refine List.map_congr_left fun j _ => ?_
  obtain ⟨hm, hK, hV⟩ := hkeys ((j.natAdd 0).castLE hn) ((j.natAdd 0).castLE hn') rfl
    (by simp only [Fin.val_castLE, Fin.val_natAdd]; omega)
  rw [Function.comp, Function.comp, score, score, hm, hQ, hK, hV]

end Attention.Proof
