module

public import Attention.Proof.Backward.LayerNorm
public import Attention.Proof.Backward.MultiHead

public section

/-! # The backward passes of an encoder's and a decoder's layers, by composition -/

namespace Attention.Proof

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R] {n s t d d_model num_heads d_ff : Nat}
variable (sqrt : R → R) (ε scale : R)

/-- The numbers of an encoder layer that changes are the layer of the numbers. -/
theorem encoderLayer_primal (mask : Mask n n)
    (L : EncoderLayer (Dual R) d_model num_heads d d_ff) (X : Matrix (Dual R) n d_model) :
    (L.preNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask X).primal
      = (EncoderLayer.primal L).preNorm sqrt ε scale mask X.primal := by
  simp only [EncoderLayer.preNorm, addRows_primal, multiHead_primal, feedForward_primal,
    layerNorm_primal, EncoderLayer.primal]

/-- Self-attention on rows gets for them the sum of the gradients by queries, keys and values. -/
private theorem selfAttention_adjoint (mask : Mask n n) (W : MultiHead (Dual R) d_model num_heads d)
    (A : Matrix (Dual R) n d_model) (dY : Matrix R n d_model) :
    let g := (MultiHead.primal W).rowsVjp scale mask A.primal A.primal A.primal dY
    Matrix.rate dY (W.rows (Dual.const scale) mask A A A)
      = MultiHead.rate g.parameters W + Matrix.rate (addRows g.dQ (addRows g.dK g.dV)) A := by
  intro g
  rw [multiHead_adjoint, addRows_rate, addRows_rate, Semiring.add_assoc, Semiring.add_assoc]

omit [Exponential R R] in
/-- A part that is added to its normalised input: where it takes `dA` back from `dY`, its input gets
`dY` and the normalisation's share of `dA`. -/
private theorem residual_adjoint (N : LayerNorm (Dual R) d_model) (X P : Matrix (Dual R) n d_model)
    (dY dA : Matrix R n d_model) {r : R}
    (h : Matrix.rate dY P
      = r + Matrix.rate dA (N.rows (Dual.root sqrt) (Dual.const ε) X)) :
    let g := (LayerNorm.primal N).rowsVjp sqrt ε X.primal dA
    Matrix.rate dY (addRows X P) = r + LayerNorm.rate g.1 N + Matrix.rate (addRows dY g.2) X := by
  intro g
  rw [addRows_adjoint, h, layerNorm_adjoint, addRows_rate]
  grind

/-- Normalised after as well. -/
theorem encoderLayer_postNorm_primal (mask : Mask n n)
    (L : EncoderLayer (Dual R) d_model num_heads d d_ff) (X : Matrix (Dual R) n d_model) :
    (L.postNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask X).primal
      = (EncoderLayer.primal L).postNorm sqrt ε scale mask X.primal := by
  simp only [EncoderLayer.postNorm, addRows_primal, multiHead_primal, feedForward_primal,
    layerNorm_primal, EncoderLayer.primal]

/-- **encoder-layer-backward**: the backward pass of an encoder layer, normalised before, gives the
rate that the gradient by its rows gives, at whatever rates its parameters and its input change. -/
theorem encoderLayer_adjoint (mask : Mask n n)
    (L : EncoderLayer (Dual R) d_model num_heads d d_ff) (X : Matrix (Dual R) n d_model)
    (dY : Matrix R n d_model) :
    let g := (EncoderLayer.primal L).preNormVjp sqrt ε scale mask X.primal dY
    Matrix.rate dY (L.preNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask X)
      = EncoderLayer.rate g.1 L + Matrix.rate g.2 X := by
  intro g
  let A := L.attentionNorm.rows (Dual.root sqrt) (Dual.const ε) X
  let Y := addRows X (L.attention.rows (Dual.const scale) mask A A A)
  have h₁ := residual_adjoint sqrt ε L.feedForwardNorm Y _ dY _ (feedForward_adjoint L.feedForward
    (L.feedForwardNorm.rows (Dual.root sqrt) (Dual.const ε) Y) dY)
  have h₂ := fun dZ => residual_adjoint sqrt ε L.attentionNorm X _ dZ _
    (selfAttention_adjoint scale mask L.attention A dZ)
  dsimp only at h₁ h₂
  have e : L.preNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask X
    = addRows Y (L.feedForward.rows (L.feedForwardNorm.rows (Dual.root sqrt) (Dual.const ε) Y)) :=
    rfl
  rw [e, h₁, h₂]
  simp only [g, EncoderLayer.rate, EncoderLayer.preNormVjp, EncoderLayer.primal, A, Y,
    addRows_primal, multiHead_primal, layerNorm_primal]
  grind

omit [Exponential R R] in
private theorem sum_adjoint (X P : Matrix (Dual R) n d_model) (dY dP : Matrix R n d_model) {r : R}
    (h : Matrix.rate dY P = r + Matrix.rate dP X) :
    Matrix.rate dY (addRows X P) = r + Matrix.rate (addRows dY dP) X := by
  rw [addRows_adjoint, h, addRows_rate]
  grind

/-- **encoder-layer-backward-after**: so does that of an encoder layer, normalised after. -/
theorem encoderLayer_postNorm_adjoint (mask : Mask n n)
    (L : EncoderLayer (Dual R) d_model num_heads d d_ff) (X : Matrix (Dual R) n d_model)
    (dY : Matrix R n d_model) :
    let g := (EncoderLayer.primal L).postNormVjp sqrt ε scale mask X.primal dY
    Matrix.rate dY (L.postNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask X)
      = EncoderLayer.rate g.1 L + Matrix.rate g.2 X := by
  intro g
  let S := addRows X (L.attention.rows (Dual.const scale) mask X X X)
  let Y := L.attentionNorm.rows (Dual.root sqrt) (Dual.const ε) S
  have h₁ := fun dT => sum_adjoint Y _ dT _ (feedForward_adjoint L.feedForward Y dT)
  have h₂ := fun dS => sum_adjoint X _ dS _ (selfAttention_adjoint scale mask L.attention X dS)
  have e : L.postNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask X
    = L.feedForwardNorm.rows (Dual.root sqrt) (Dual.const ε)
      (addRows Y (L.feedForward.rows Y)) := rfl
  rw [e, layerNorm_adjoint, h₁, layerNorm_adjoint, h₂]
  simp only [g, EncoderLayer.rate, EncoderLayer.postNormVjp, EncoderLayer.primal, S, Y,
    addRows_primal, multiHead_primal, layerNorm_primal, feedForward_primal]
  grind

/-! ## Decoder layers -/

/-- The numbers of a decoder layer that changes are the layer of the numbers. -/
theorem decoderLayer_primal (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer (Dual R) d_model num_heads d d_ff) (C : Matrix (Dual R) s d_model)
    (X : Matrix (Dual R) t d_model) :
    (L.preNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask crossMask C X).primal
      = (DecoderLayer.primal L).preNorm sqrt ε scale mask crossMask C.primal X.primal := by
  simp only [DecoderLayer.preNorm, addRows_primal, multiHead_primal, feedForward_primal,
    layerNorm_primal, DecoderLayer.primal]

/-- Normalised after as well. -/
theorem decoderLayer_postNorm_primal (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer (Dual R) d_model num_heads d d_ff) (C : Matrix (Dual R) s d_model)
    (X : Matrix (Dual R) t d_model) :
    (L.postNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask crossMask C X).primal
      = (DecoderLayer.primal L).postNorm sqrt ε scale mask crossMask C.primal X.primal := by
  simp only [DecoderLayer.postNorm, addRows_primal, multiHead_primal, feedForward_primal,
    layerNorm_primal, DecoderLayer.primal]

/-- Attention to the encoder's output, which gets the sum of the gradients by keys and values. -/
private theorem crossAttention_adjoint (mask : Mask t s)
    (W : MultiHead (Dual R) d_model num_heads d) (B : Matrix (Dual R) t d_model)
    (C : Matrix (Dual R) s d_model) (dY : Matrix R t d_model) :
    let g := (MultiHead.primal W).rowsVjp scale mask B.primal C.primal C.primal dY
    Matrix.rate dY (W.rows (Dual.const scale) mask B C C)
      = MultiHead.rate g.parameters W + Matrix.rate (addRows g.dK g.dV) C
        + Matrix.rate g.dQ B := by
  intro g
  rw [multiHead_adjoint, addRows_rate]
  grind

/-- **decoder-layer-backward**: so does that of a decoder layer, normalised before, at whatever
rates the encoder's output changes too. -/
theorem decoderLayer_adjoint (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer (Dual R) d_model num_heads d d_ff) (C : Matrix (Dual R) s d_model)
    (X : Matrix (Dual R) t d_model) (dY : Matrix R t d_model) :
    let g := (DecoderLayer.primal L).preNormVjp sqrt ε scale mask crossMask C.primal X.primal dY
    Matrix.rate dY
        (L.preNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask crossMask C X)
      = DecoderLayer.rate g.parameters L + Matrix.rate g.dContext C + Matrix.rate g.dX X := by
  intro g
  let A := L.attentionNorm.rows (Dual.root sqrt) (Dual.const ε) X
  let Y := addRows X (L.attention.rows (Dual.const scale) mask A A A)
  let B := L.crossNorm.rows (Dual.root sqrt) (Dual.const ε) Y
  let Z := addRows Y (L.cross.rows (Dual.const scale) crossMask B C C)
  have h₁ := residual_adjoint sqrt ε L.feedForwardNorm Z _ dY _ (feedForward_adjoint L.feedForward
    (L.feedForwardNorm.rows (Dual.root sqrt) (Dual.const ε) Z) dY)
  have h₂ := fun dZ => residual_adjoint sqrt ε L.crossNorm Y _ dZ _
    (crossAttention_adjoint scale crossMask L.cross B C dZ)
  have h₃ := fun dZ => residual_adjoint sqrt ε L.attentionNorm X _ dZ _
    (selfAttention_adjoint scale mask L.attention A dZ)
  dsimp only at h₁ h₂ h₃
  have e : L.preNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask crossMask C X
    = addRows Z (L.feedForward.rows (L.feedForwardNorm.rows (Dual.root sqrt) (Dual.const ε) Z)) :=
    rfl
  rw [e, h₁, h₂, h₃]
  simp only [g, DecoderLayer.rate, DecoderLayer.preNormVjp, DecoderLayer.primal, A, Y, B, Z,
    addRows_primal, multiHead_primal, layerNorm_primal]
  grind

/-- **decoder-layer-backward-after**: and that of a decoder layer, normalised after. -/
theorem decoderLayer_postNorm_adjoint (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer (Dual R) d_model num_heads d d_ff) (C : Matrix (Dual R) s d_model)
    (X : Matrix (Dual R) t d_model) (dY : Matrix R t d_model) :
    let g := (DecoderLayer.primal L).postNormVjp sqrt ε scale mask crossMask C.primal X.primal dY
    Matrix.rate dY
        (L.postNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask crossMask C X)
      = DecoderLayer.rate g.parameters L + Matrix.rate g.dContext C + Matrix.rate g.dX X := by
  intro g
  let S := addRows X (L.attention.rows (Dual.const scale) mask X X X)
  let Y := L.attentionNorm.rows (Dual.root sqrt) (Dual.const ε) S
  let T := addRows Y (L.cross.rows (Dual.const scale) crossMask Y C C)
  let Z := L.crossNorm.rows (Dual.root sqrt) (Dual.const ε) T
  have h₁ := fun dU => sum_adjoint Z _ dU _ (feedForward_adjoint L.feedForward Z dU)
  have h₂ := fun dT => sum_adjoint Y _ dT _ (crossAttention_adjoint scale crossMask L.cross Y C dT)
  have h₃ := fun dS => sum_adjoint X _ dS _ (selfAttention_adjoint scale mask L.attention X dS)
  have e : L.postNorm (Dual.root sqrt) (Dual.const ε) (Dual.const scale) mask crossMask C X
    = L.feedForwardNorm.rows (Dual.root sqrt) (Dual.const ε)
      (addRows Z (L.feedForward.rows Z)) := rfl
  rw [e, layerNorm_adjoint, h₁, layerNorm_adjoint, h₂, layerNorm_adjoint, h₃]
  simp only [g, DecoderLayer.rate, DecoderLayer.postNormVjp, DecoderLayer.primal, S, Y, T, Z,
    addRows_primal, multiHead_primal, layerNorm_primal, feedForward_primal]
  grind

end Attention.Proof
