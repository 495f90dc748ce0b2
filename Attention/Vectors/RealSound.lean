module

public import Attention.Model.Real.Exact
public import Attention.Vectors.TransformerTokens

public section

/-! # The bounds in the transformer's vectors are bounds of real numbers

What `TransformerSound` and `TransformerTokens` ask of a field, a square root and a number for each
fraction, the real numbers have: their theorems speak of something. -/

namespace Attention.Vectors

open Spec Model Lean.Grind

attribute [local instance] Ring.intCast

/-- The real root is a square root. -/
theorem isSqrt_real : Interval.IsSqrt Real.sqrt := fun a ha =>
  ⟨Real.sqrt_nonneg a, Real.sqrt_mul_self ha⟩

/-- The real number of a fraction is its number. -/
theorem isNumber_real : IsNumber Real.ofRat := fun q => by
  show Real.ofRat q * Real.ofRat ((q.den : Int) : Rat) = Real.ofRat (q.num : Rat)
  rw [← Real.ofRat_mul]
  refine congrArg Real.ofRat ?_
  have h := Rat.num_divInt_den q
  have h₀ : ((q.den : Int) : Rat) ≠ 0 := fun h₀ =>
    q.den_nz (Int.natCast_eq_zero.mp (Rat.intCast_eq_zero_iff.mp h₀))
  rw [Rat.divInt_eq_div] at h
  grind

/-- **layer-vectors-real**: if the program yields bounds of a layer, the Spec's outcome over the
real numbers lies between them. -/
theorem layer_vectors_real {inputs : LayerInputs} {B : RowBounds} (h : inputs.run = .ok B) :
    ∃ X, inputs.value Real.sqrt Real.ofRat (factorOf Real.sqrt Real.ofRat) = some X
      ∧ BoundsContain B X :=
  layer_vectors_sound isSqrt_real isNumber_real h

/-- **transformer-vectors-real**: if the program yields bounds of a transformer, its logits and its
probabilities over the real numbers lie between them. -/
theorem transformer_vectors_real {c : TransformerCase} {out : TransformerResult}
    (h : c.run = .ok out) :
    BoundsContain out.logits ((mapTransformer Real.ofRat c.tie).logits Real.sqrt (Real.ofRat c.ε)
        (factorOf Real.sqrt Real.ofRat c.scale c.d) (c.position Real.ofRat) c.sourceMask.toMask
        c.mask.toMask c.contextMask.toMask c.sourceTokens c.targetTokens)
      ∧ BoundsContain out.probabilities ((mapTransformer Real.ofRat c.tie).probabilities Real.sqrt
        (Real.ofRat c.ε) (factorOf Real.sqrt Real.ofRat c.scale c.d) (c.position Real.ofRat)
        c.sourceMask.toMask c.mask.toMask c.contextMask.toMask c.sourceTokens c.targetTokens) :=
  transformer_vectors_sound isSqrt_real isNumber_real h

/-- **transformer-tokens-real**: if the program yields tokens, they are at each place that of the
largest logit over the real numbers. -/
theorem transformer_tokens_real {c : TransformerCase} {out : TransformerResult}
    (h : c.run = .ok out) :
    Proof.Pointwise (fun token x => ∃ j : Fin c.t_vocab, argmax x = some j ∧ j.val = token)
      out.tokens ((mapTransformer Real.ofRat c.tie).logits Real.sqrt (Real.ofRat c.ε)
        (factorOf Real.sqrt Real.ofRat c.scale c.d) (c.position Real.ofRat) c.sourceMask.toMask
        c.mask.toMask c.contextMask.toMask c.sourceTokens c.targetTokens).toList :=
  transformer_tokens_sound isSqrt_real isNumber_real h

end Attention.Vectors
