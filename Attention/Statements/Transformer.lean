module

public import Attention.Model.Real.Logarithm
public import Attention.Spec.TransformerCache
import Attention.Claims.Approximation.TransformerReal
import Attention.Proof.Transformer.Basic
import Attention.Proof.Transformer.Cache
import Attention.Proof.Transformer.Causal

public section

/-! # The transformer -/

namespace Attention.Statements

open Spec Model

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

/-- Transformers approximate: for each continuous function f on a closed set of ℝⁿ that lies in a
box, and each ε > 0, there is a transformer's decoder, over a source that does not depend on x and
for a target of one row that is linear in x, whose output, read by a linear layer, is within ε of f
on the set. -/
theorem universal_approximation_transformer_real {n m : Nat} {S : Vec Real n → Prop} {a b : Real}
    (inside : ∀ x, S x → ∀ k : Fin n, a ≤ x[k] ∧ x[k] ≤ b)
    (closed : ∀ z, ¬ S z → ∃ δ, 0 < δ ∧ ∀ y, S y → ¬ ∀ k : Fin n, AtMost δ (y[k] - z[k]))
    {f : Vec Real n → Vec Real m}
    (continuous : ∀ x, S x → ∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ y, S y →
      (∀ k : Fin n, AtMost δ (x[k] - y[k])) → ∀ c : Fin m, AtMost η ((f x)[c] - (f y)[c]))
    {ε εnorm : Real} (hε : 0 < ε) (hnorm : 0 ≤ εnorm) :
    ∃ (s d_model num_heads d d_ff : Nat) (scale : Real) (source : Matrix Real s d_model)
      (target : Linear Real n d_model) (layers : List (DecoderLayer Real d_model num_heads d d_ff))
      (crossMask : Mask 1 s) (output : Linear Real d_model m),
      ∀ x, S x → ∀ c : Fin m, AtMost ε ((output.rows (decode Real.sqrt εnorm scale Mask.full
        crossMask layers source #v[target.row x]))[(0 : Fin 1)][c] - (f x)[c]) := by
  obtain ⟨T, ⟨s, d_model, num_heads, d, d_ff, scale, source, target, layers, crossMask, output, hT⟩,
    h⟩ := Claims.universal_approximation_decoder_real ⟨⟨a, b, inside⟩, closed⟩ continuous hε hnorm
  exact ⟨s, d_model, num_heads, d, d_ff, scale, source, target, layers, crossMask, output,
    fun x hx c => hT x ▸ h x hx c⟩

end Attention.Statements
