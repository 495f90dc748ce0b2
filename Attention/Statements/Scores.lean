module

public import Attention.Spec.Dropout
public import Attention.Spec.ScoreMods
public import Attention.Spec.Sink
import Attention.Proof.Dropout.Basic
import Attention.Proof.Masks.CausalPrefix
import Attention.Proof.Masks.Visible
import Attention.Proof.Scores.Sink

public section

/-! # Masks, changes of the scores, sinks and dropout -/

namespace Attention.Statements

open Spec

universe u v

/-- A masked key is as good as absent. -/
theorem masked_keys_absent {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (mask : Mask q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) :
    (attention scale (modify.andThen mask.toScoreMod) Q K V)[i]
      = attend (scored scale modify Q K V i ((List.finRange kv_len).filter (mask i))) :=
  Proof.attention_mask scale modify mask Q K V i

/-- Under the causal mask a row at place p depends on its query and on the keys and values up to p:
on neither length and on no alignment. -/
theorem causal_lengths {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len q_len' kv_len kv_len' d d_v : Nat}
    {alignment alignment' : Alignment} {scale : S}
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
      = (attention scale (modify'.andThen (Mask.causal alignment').toScoreMod) Q' K' V')[i'] :=
  Proof.causal_lengths hp hp' hpk hpk' hQ hkeys

/-- The tile loop that starts from the state of a sink computes attention with the sink. -/
theorem flash_sink {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (sink : S) (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    flashSink scale modify sink Q K V block_m block_n
      = (attentionSink scale modify sink Q K V).toList :=
  Proof.flashSink_eq_attentionSink scale modify sink Q K V hm hn

/-- The tile loop may multiply each weight by its factor where it meets its value. -/
theorem flash_dropout {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (Z : WeightFactor R q_len kv_len) {block_m block_n : Nat}
    (hm : 0 < block_m) (hn : 0 < block_n) :
    flashDropout scale modify Q K V Z block_m block_n
      = (attentionDropout scale modify Q K V Z).toList :=
  Proof.flashDropout_eq_attentionDropout scale modify Q K V Z hm hn

/-- Each pair of tiles may draw for itself which weights are kept: the mask does not depend on the
tiles. -/
theorem dropout_replay {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R]
    [Exponential S R] {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (p : R) (threshold seed head : Nat) {block_m block_n : Nat}
    (hm : 0 < block_m) (hn : 0 < block_n) :
    flashDrawn scale modify Q K V p threshold seed head block_m block_n
      = (attentionDropout scale modify Q K V
          (.dropout p (keepMask threshold seed head))).toList :=
  Proof.flashDrawn_eq_attentionDropout scale modify Q K V p threshold seed head hm hn

end Attention.Statements
