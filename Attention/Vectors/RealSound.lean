module

public import Attention.Model.Real.Exact
public import Attention.Proof.Real.LogSumExp
public import Attention.Vectors.NaturalSampledSound
public import Attention.Vectors.SampledGradientSound
public import Attention.Vectors.TangentSound
public import Attention.Vectors.TransformerTokens

public section

/-! # The bounds in the vectors are bounds of real numbers

What `NaturalSound`, `NaturalSampledSound`, `NaturalGradientSound`, `SampledGradientSound`,
`TangentSound`, `TransformerSound` and `TransformerTokens` ask of a field, a square root and a
number for each fraction, the real numbers have: their theorems speak of something. -/

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

/-- **natural-vectors-real**: if the program yields bounds for a case of attention with the natural
exponential, the output over the real numbers lies between them, and every row has a log-sum-exp,
which does. -/
theorem natural_vectors_real {c : NaturalCase} {results : List EnclosedRow}
    (h : c.run = .ok results) :
    let scale := factorOf Real.sqrt Real.ofRat c.scale c.head_dim
    ∃ (Q : Matrix Real c.q.length c.head_dim) (K : Matrix Real c.k.length c.head_dim)
      (V : Matrix Real c.k.length c.value_dim),
      rowsOf Q = c.q.map (·.map Real.ofRat) ∧ rowsOf K = c.k.map (·.map Real.ofRat) ∧
      rowsOf V = c.v.map (·.map Real.ofRat) ∧ results.length = c.q.length ∧
      ∀ (i : Fin c.q.length) (r : EnclosedRow), results[i.val]? = some r →
        Proof.Pointwise BoundContains r.output (c.output Real.ofRat scale Q K V)[i].toList ∧
        ∃ L, IsLogSumExp Real L ((c.row Real.ofRat scale Q K V i).map (·.score)) ∧
          LseContains r.logSumExp L := by
  obtain ⟨Q, K, V, hQ, hK, hV, hlen, each⟩ := NaturalCase.run_sound isSqrt_real isNumber_real h
  refine ⟨Q, K, V, hQ, hK, hV, hlen, fun i r hr => ⟨(each i r hr).1, ?_⟩⟩
  obtain ⟨L, hL, _⟩ := Proof.exists_isLogSumExp
    ((c.row Real.ofRat (factorOf Real.sqrt Real.ofRat c.scale c.head_dim) Q K V i).map (·.score))
  exact ⟨L, hL, (each i r hr).2 L hL⟩

/-- **natural-sampled-vectors-real**: if the program yields bounds for a case of which some rows are
computed with the natural exponential, the rows of the output over the real numbers lie between
them, and every one has a log-sum-exp, which does. -/
theorem natural_sampled_vectors_real {given : NaturalSampledCase}
    {results : List (List EnclosedRow)} (h : given.run = .ok results) :
    let c := given.inputs
    let scale := factorOf Real.sqrt Real.ofRat c.scale c.head_dim
    ∀ (head : Nat) (i : Fin (indices c.q_len c.rows).length) (r : EnclosedRow),
      results[head]?.bind (·[i.val]?) = some r →
      let query := (indices c.q_len c.rows)[i]
      Proof.Pointwise BoundContains r.output
        (NaturalSampledCase.output Real.ofRat c scale head)[query].toList ∧
      ∃ L, IsLogSumExp Real L
          ((NaturalSampledCase.row Real.ofRat c scale head query).map (·.score)) ∧
        LseContains r.logSumExp L := by
  intro c scale head i r hr query
  have describes := (NaturalSampledCase.run_sound isSqrt_real isNumber_real h).2.2.2.2.2 head i r hr
  obtain ⟨L, hL, _⟩ := Proof.exists_isLogSumExp
    ((NaturalSampledCase.row Real.ofRat c scale head query).map (·.score))
  exact ⟨describes.1, L, hL, describes.2 L hL⟩

end Attention.Vectors
