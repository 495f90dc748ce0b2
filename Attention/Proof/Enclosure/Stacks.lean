module

public import Attention.Proof.Enclosure.Transformer

public section

/-! # Stacks of layers, run over intervals, contain the true ones

For both orders of normalisation at once. -/

namespace Attention.Proof

open Spec Model

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R] {p n s t d_model num_heads d d_ff : Nat}
variable {root : R → R} (hroot : Interval.IsSqrt root)
variable {ε' scale' : Interval p} {ε scale : R}
variable (hε : ε'.Contains ε) (hscale : scale'.Contains scale)
include hroot hε hscale

/-- **encoder-enclosed**: an encoder of any number of layers computed with intervals, over rows,
parameters, ε and a scale that contain the true ones, contains the true rows; its layers normalised
before, and normalised after with a normalisation at its end. -/
theorem encoder_enclosed (mask : Mask n n)
    {layers' : List (EncoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (EncoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise EncoderLayerContains layers' layers)
    {norm' : LayerNorm (Interval p) d_model} {norm : LayerNorm R d_model}
    (hnorm : LayerNormContains norm' norm)
    {X' : Matrix (Interval p) n d_model} {X : Matrix R n d_model} (hX : MatrixContains X' X) :
    MatrixContains (encode Interval.sqrt ε' scale' mask layers' X')
        (encode root ε scale mask layers X)
      ∧ MatrixContains (encodePostNorm Interval.sqrt ε' scale' mask layers' norm' X')
        (encodePostNorm root ε scale mask layers norm X) :=
  ⟨contains_encode hroot hε hscale mask hL hX,
    contains_encodePostNorm hroot hε hscale mask hL hnorm hX⟩

/-- **decoder-enclosed**: so does a decoder of any number of layers, over an output of the encoder
that contains the true one. -/
theorem decoder_enclosed (mask : Mask t t) (crossMask : Mask t s)
    {layers' : List (DecoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (DecoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise DecoderLayerContains layers' layers)
    {norm' : LayerNorm (Interval p) d_model} {norm : LayerNorm R d_model}
    (hnorm : LayerNormContains norm' norm)
    {C' : Matrix (Interval p) s d_model} {C : Matrix R s d_model} (hC : MatrixContains C' C)
    {X' : Matrix (Interval p) t d_model} {X : Matrix R t d_model} (hX : MatrixContains X' X) :
    MatrixContains (decode Interval.sqrt ε' scale' mask crossMask layers' C' X')
        (decode root ε scale mask crossMask layers C X)
      ∧ MatrixContains (decodePostNorm Interval.sqrt ε' scale' mask crossMask layers' norm' C' X')
        (decodePostNorm root ε scale mask crossMask layers norm C X) :=
  ⟨contains_decode hroot hε hscale mask crossMask hL hC hX,
    contains_decodePostNorm hroot hε hscale mask crossMask hL hnorm hC hX⟩

end Attention.Proof
