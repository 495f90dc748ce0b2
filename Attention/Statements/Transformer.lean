module

public import Attention.Spec.TransformerCache
import Attention.Proof.Transformer.Basic
import Attention.Proof.Transformer.Cache
import Attention.Proof.Transformer.Causal

public section

/-! # The transformer -/

namespace Attention.Statements

open Spec

universe u

/-- A transformer gives probabilities, whatever function takes the place of the root. -/
theorem transformer_is_prob {R : Type u} [OrderedField R] [Exponential R R]
    {s t s_vocab t_vocab d_model num_heads d d_ff : Nat} (sqrt : R → R) (ε scale : R)
    (position : Nat → Vec R d_model) (sourceMask : Mask s s) (targetMask : Mask t t)
    (crossMask : Mask t s) (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) (i : Fin t) :
    let p :=
      (T.probabilities sqrt ε scale position sourceMask targetMask crossMask source target)[i]
    (∀ j : Fin t_vocab, 0 < p[j]) ∧ sumOver (fun j => p[j]) (List.finRange t_vocab) = 1 :=
  Proof.transformer_is_prob sqrt ε scale position sourceMask targetMask crossMask T source target i

/-- Under masks that let no query see a later key, rows of a decoder up to p depend on rows of its
input up to p alone: not on later rows, nor on how many there are. -/
theorem decoder_causal {R : Type u} [OrderedField R] [Exponential R R]
    {s t t' d_model num_heads d d_ff : Nat} {sqrt : R → R} {ε scale : R}
    {mask : Mask t t} {mask' : Mask t' t'} {crossMask : Mask t s} {crossMask' : Mask t' s}
    (h : ∀ i j, mask i j = true → j ≤ i) (h' : ∀ i j, mask' i j = true → j ≤ i)
    (hs : ∀ i i' j j', i.val = i'.val → j.val = j'.val → mask i j = mask' i' j')
    (hc : ∀ (i : Fin t) (i' : Fin t') (j j' : Fin s), i.val = i'.val → j.val = j'.val →
      crossMask i j = crossMask' i' j')
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (C : Matrix R s d_model) {p : Nat}
    {X : Matrix R t d_model} {X' : Matrix R t' d_model}
    (hX : ∀ (i : Fin t) (i' : Fin t'), i.val = i'.val → i.val ≤ p → X[i] = X'[i'])
    (i : Fin t) (i' : Fin t') (hi : i.val = i'.val) (hp : i.val ≤ p) :
    (decode sqrt ε scale mask crossMask layers C X)[i]
      = (decode sqrt ε scale mask' crossMask' layers C X')[i'] :=
  Proof.decoder_causal h h' hs hc layers C hX i i' hi hp

/-- Decoding row by row, with a cache of keys and values, gives the rows of the whole decoder. -/
theorem decode_cached {R : Type u} [OrderedField R] [Exponential R R]
    {s t d_model num_heads d d_ff : Nat} {sqrt : R → R} {ε scale : R} (visible : Fin s → Bool)
    (C : Matrix R s d_model) (layers : List (DecoderLayer R d_model num_heads d d_ff))
    (X : Matrix R t d_model) :
    decodeCached sqrt ε scale visible layers C X.toList
      = (decode sqrt ε scale (Mask.causal .topLeft) (fun _ j => visible j) layers C X).toList :=
  Proof.decode_cached visible C layers X

end Attention.Statements
