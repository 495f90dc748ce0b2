module

public import Attention.Proof.Enclosure.Layers
public import Attention.Spec.Transformer

public section

/-! # The transformer, run over intervals, contains the true one

Layers are enclosed for any root of intervals that contains the root; the transformer with
`Interval.sqrt`, which does that for every root that squares to its argument. -/

namespace Attention.Proof

open Spec Model

universe u

variable {R : Type u} [OrderedField R] {p n s t d_model num_heads d d_ff s_vocab t_vocab : Nat}

/-! ## Parameters -/

/-- The intervals of an encoder layer's parameters contain them. -/
structure EncoderLayerContains (L' : EncoderLayer (Interval p) d_model num_heads d d_ff)
    (L : EncoderLayer R d_model num_heads d d_ff) : Prop where
  /-- Self-attention. -/
  attention : MultiHeadContains L'.attention L.attention
  /-- The normalisation that goes with self-attention. -/
  attentionNorm : LayerNormContains L'.attentionNorm L.attentionNorm
  /-- The feed-forward network. -/
  feedForward : FeedForwardContains L'.feedForward L.feedForward
  /-- The normalisation that goes with the feed-forward network. -/
  feedForwardNorm : LayerNormContains L'.feedForwardNorm L.feedForwardNorm

/-- The intervals of a decoder layer's parameters contain them. -/
structure DecoderLayerContains (L' : DecoderLayer (Interval p) d_model num_heads d d_ff)
    (L : DecoderLayer R d_model num_heads d d_ff) : Prop where
  /-- Self-attention. -/
  attention : MultiHeadContains L'.attention L.attention
  /-- The normalisation that goes with self-attention. -/
  attentionNorm : LayerNormContains L'.attentionNorm L.attentionNorm
  /-- Attention to the output of the encoder. -/
  cross : MultiHeadContains L'.cross L.cross
  /-- The normalisation that goes with the attention to the output of the encoder. -/
  crossNorm : LayerNormContains L'.crossNorm L.crossNorm
  /-- The feed-forward network. -/
  feedForward : FeedForwardContains L'.feedForward L.feedForward
  /-- The normalisation that goes with the feed-forward network. -/
  feedForwardNorm : LayerNormContains L'.feedForwardNorm L.feedForwardNorm

/-- The intervals of a transformer's parameters contain them, layer by layer. -/
structure TransformerContains
    (T' : Transformer (Interval p) s_vocab t_vocab d_model num_heads d d_ff)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff) : Prop where
  /-- The embeddings of the source's tokens. -/
  source : MatrixContains T'.source T.source
  /-- The embeddings of the target's tokens. -/
  target : MatrixContains T'.target T.target
  /-- The encoder's layers. -/
  encoder : Pointwise EncoderLayerContains T'.encoder T.encoder
  /-- The decoder's layers. -/
  decoder : Pointwise DecoderLayerContains T'.decoder T.decoder
  /-- The layer of the logits. -/
  output : LinearContains T'.output T.output

/-! ## Probabilities -/

variable [NaturalExp R]

/-- The denominator of enclosed scores. -/
theorem contains_denominator {row' : List (Option (Interval p))} {row : List (Option R)}
    (h : Pointwise ScoreContains row' row) :
    (denominator row' : Interval p).Contains (denominator row : R) := by
  induction row' generalizing row with
  | nil => cases row with
    | nil => exact contains_zero
    | cons => exact h.elim
  | cons s' row' ih => cases row with
    | nil => exact h.elim
    | cons s row => exact Interval.contains_add (related_weight h.1) (ih h.2)

/-- The softmax of an enclosed vector. -/
theorem contains_softmaxVec {I : Vec (Interval p) n} {x : Vec R n} (hx : VecContains I x) :
    VecContains (softmaxVec I) (softmaxVec x) := by
  have scores : Pointwise ScoreContains (I.toList.map some) (x.toList.map some) :=
    hx.toList.map (f := some) (g := some) fun _ _ h => h
  have hl : (denominator (I.toList.map some) : Interval p).Contains
      (denominator (x.toList.map some) : R) := contains_denominator scores
  intro j hj
  simp only [softmaxVec, softmax, Vector.getElem_mk, List.getElem_toArray, List.getElem_map,
    Vector.getElem_toList]
  exact Interval.contains_div (Interval.contains_exp (hx j hj)) hl

/-! ## Layers -/

section
variable {root' : Interval p → Interval p} {root : R → R} (hroot : RootContains root' root)
variable {ε' scale' : Interval p} {ε scale : R}
variable (hε : ε'.Contains ε) (hscale : scale'.Contains scale)
include hroot hε hscale

/-- An encoder layer, normalised before. -/
theorem EncoderLayerContains.preNorm {L' : EncoderLayer (Interval p) d_model num_heads d d_ff}
    {L : EncoderLayer R d_model num_heads d d_ff} (hL : EncoderLayerContains L' L)
    (mask : Mask n n) {X' : Matrix (Interval p) n d_model} {X : Matrix R n d_model}
    (hX : MatrixContains X' X) :
    MatrixContains (L'.preNorm root' ε' scale' mask X') (L.preNorm root ε scale mask X) := by
  have hA := layerNorm_enclosed hroot hε hL.attentionNorm hX
  have hX := contains_addRows hX (multiHead_enclosed hscale hL.attention mask hA hA hA)
  exact contains_addRows hX (feedForward_enclosed hL.feedForward
    (layerNorm_enclosed hroot hε hL.feedForwardNorm hX))

/-- An encoder layer, normalised after. -/
theorem EncoderLayerContains.postNorm {L' : EncoderLayer (Interval p) d_model num_heads d d_ff}
    {L : EncoderLayer R d_model num_heads d d_ff} (hL : EncoderLayerContains L' L)
    (mask : Mask n n) {X' : Matrix (Interval p) n d_model} {X : Matrix R n d_model}
    (hX : MatrixContains X' X) :
    MatrixContains (L'.postNorm root' ε' scale' mask X') (L.postNorm root ε scale mask X) := by
  have hX := layerNorm_enclosed hroot hε hL.attentionNorm
    (contains_addRows hX (multiHead_enclosed hscale hL.attention mask hX hX hX))
  exact layerNorm_enclosed hroot hε hL.feedForwardNorm
    (contains_addRows hX (feedForward_enclosed hL.feedForward hX))

/-- A decoder layer, normalised before. -/
theorem DecoderLayerContains.preNorm {L' : DecoderLayer (Interval p) d_model num_heads d d_ff}
    {L : DecoderLayer R d_model num_heads d d_ff} (hL : DecoderLayerContains L' L)
    (mask : Mask t t) (crossMask : Mask t s) {C' : Matrix (Interval p) s d_model}
    {C : Matrix R s d_model} (hC : MatrixContains C' C) {X' : Matrix (Interval p) t d_model}
    {X : Matrix R t d_model} (hX : MatrixContains X' X) :
    MatrixContains (L'.preNorm root' ε' scale' mask crossMask C' X')
      (L.preNorm root ε scale mask crossMask C X) := by
  have hA := layerNorm_enclosed hroot hε hL.attentionNorm hX
  have hX := contains_addRows hX (multiHead_enclosed hscale hL.attention mask hA hA hA)
  have hX := contains_addRows hX (multiHead_enclosed hscale hL.cross crossMask
    (layerNorm_enclosed hroot hε hL.crossNorm hX) hC hC)
  exact contains_addRows hX (feedForward_enclosed hL.feedForward
    (layerNorm_enclosed hroot hε hL.feedForwardNorm hX))

/-- A decoder layer, normalised after. -/
theorem DecoderLayerContains.postNorm {L' : DecoderLayer (Interval p) d_model num_heads d d_ff}
    {L : DecoderLayer R d_model num_heads d d_ff} (hL : DecoderLayerContains L' L)
    (mask : Mask t t) (crossMask : Mask t s) {C' : Matrix (Interval p) s d_model}
    {C : Matrix R s d_model} (hC : MatrixContains C' C) {X' : Matrix (Interval p) t d_model}
    {X : Matrix R t d_model} (hX : MatrixContains X' X) :
    MatrixContains (L'.postNorm root' ε' scale' mask crossMask C' X')
      (L.postNorm root ε scale mask crossMask C X) := by
  have hX := layerNorm_enclosed hroot hε hL.attentionNorm
    (contains_addRows hX (multiHead_enclosed hscale hL.attention mask hX hX hX))
  have hX := layerNorm_enclosed hroot hε hL.crossNorm
    (contains_addRows hX (multiHead_enclosed hscale hL.cross crossMask hX hC hC))
  exact layerNorm_enclosed hroot hε hL.feedForwardNorm
    (contains_addRows hX (feedForward_enclosed hL.feedForward hX))

end

/-! ## Encoders and decoders -/

variable {root : R → R} {ε' scale' : Interval p} {ε scale : R}

/-- **encoder-layer-enclosed**: an encoder layer computed with intervals, over rows, parameters, ε
and a scale that contain the true ones, contains the true rows, whatever natural exponential and
whatever square root they are taken with; normalised before and normalised after. -/
theorem encoderLayer_enclosed (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    {L' : EncoderLayer (Interval p) d_model num_heads d d_ff}
    {L : EncoderLayer R d_model num_heads d d_ff} (hL : EncoderLayerContains L' L)
    (mask : Mask n n) {X' : Matrix (Interval p) n d_model} {X : Matrix R n d_model}
    (hX : MatrixContains X' X) :
    MatrixContains (L'.preNorm Interval.sqrt ε' scale' mask X') (L.preNorm root ε scale mask X)
      ∧ MatrixContains (L'.postNorm Interval.sqrt ε' scale' mask X')
        (L.postNorm root ε scale mask X) :=
  ⟨hL.preNorm (rootContains_sqrt hroot) hε hscale mask hX,
    hL.postNorm (rootContains_sqrt hroot) hε hscale mask hX⟩

/-- **decoder-layer-enclosed**: so does a decoder layer, over an output of the encoder that contains
the true one. -/
theorem decoderLayer_enclosed (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    {L' : DecoderLayer (Interval p) d_model num_heads d d_ff}
    {L : DecoderLayer R d_model num_heads d d_ff} (hL : DecoderLayerContains L' L)
    (mask : Mask t t) (crossMask : Mask t s) {C' : Matrix (Interval p) s d_model}
    {C : Matrix R s d_model} (hC : MatrixContains C' C) {X' : Matrix (Interval p) t d_model}
    {X : Matrix R t d_model} (hX : MatrixContains X' X) :
    MatrixContains (L'.preNorm Interval.sqrt ε' scale' mask crossMask C' X')
        (L.preNorm root ε scale mask crossMask C X)
      ∧ MatrixContains (L'.postNorm Interval.sqrt ε' scale' mask crossMask C' X')
        (L.postNorm root ε scale mask crossMask C X) :=
  ⟨hL.preNorm (rootContains_sqrt hroot) hε hscale mask crossMask hC hX,
    hL.postNorm (rootContains_sqrt hroot) hε hscale mask crossMask hC hX⟩

/-- The encoder, its layers normalised before. -/
theorem contains_encode (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    (mask : Mask n n)
    {layers' : List (EncoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (EncoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise EncoderLayerContains layers' layers)
    {X' : Matrix (Interval p) n d_model} {X : Matrix R n d_model} (hX : MatrixContains X' X) :
    MatrixContains (encode Interval.sqrt ε' scale' mask layers' X')
      (encode root ε scale mask layers X) :=
  hL.foldl (Q := MatrixContains)
    (fun _ _ _ _ hX hL => hL.preNorm (rootContains_sqrt hroot) hε hscale mask hX) hX

/-- The encoder, its layers normalised after. -/
theorem contains_encodePostNorm (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    (mask : Mask n n)
    {layers' : List (EncoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (EncoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise EncoderLayerContains layers' layers)
    {norm' : LayerNorm (Interval p) d_model} {norm : LayerNorm R d_model}
    (hnorm : LayerNormContains norm' norm)
    {X' : Matrix (Interval p) n d_model} {X : Matrix R n d_model} (hX : MatrixContains X' X) :
    MatrixContains (encodePostNorm Interval.sqrt ε' scale' mask layers' norm' X')
      (encodePostNorm root ε scale mask layers norm X) :=
  layerNorm_enclosed (rootContains_sqrt hroot) hε hnorm (hL.foldl (Q := MatrixContains)
    (fun _ _ _ _ hX hL => hL.postNorm (rootContains_sqrt hroot) hε hscale mask hX) hX)

/-- The decoder, its layers normalised before. -/
theorem contains_decode (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    (mask : Mask t t) (crossMask : Mask t s)
    {layers' : List (DecoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (DecoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise DecoderLayerContains layers' layers)
    {C' : Matrix (Interval p) s d_model} {C : Matrix R s d_model} (hC : MatrixContains C' C)
    {X' : Matrix (Interval p) t d_model} {X : Matrix R t d_model} (hX : MatrixContains X' X) :
    MatrixContains (decode Interval.sqrt ε' scale' mask crossMask layers' C' X')
      (decode root ε scale mask crossMask layers C X) :=
  hL.foldl (Q := MatrixContains)
    (fun _ _ _ _ hX hL => hL.preNorm (rootContains_sqrt hroot) hε hscale mask crossMask hC hX) hX

/-- The decoder, its layers normalised after. -/
theorem contains_decodePostNorm (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    (mask : Mask t t) (crossMask : Mask t s)
    {layers' : List (DecoderLayer (Interval p) d_model num_heads d d_ff)}
    {layers : List (DecoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise DecoderLayerContains layers' layers)
    {norm' : LayerNorm (Interval p) d_model} {norm : LayerNorm R d_model}
    (hnorm : LayerNormContains norm' norm)
    {C' : Matrix (Interval p) s d_model} {C : Matrix R s d_model} (hC : MatrixContains C' C)
    {X' : Matrix (Interval p) t d_model} {X : Matrix R t d_model} (hX : MatrixContains X' X) :
    MatrixContains (decodePostNorm Interval.sqrt ε' scale' mask crossMask layers' norm' C' X')
      (decodePostNorm root ε scale mask crossMask layers norm C X) :=
  layerNorm_enclosed (rootContains_sqrt hroot) hε hnorm (hL.foldl (Q := MatrixContains)
    (fun _ _ _ _ hX hL => hL.postNorm (rootContains_sqrt hroot) hε hscale mask crossMask hC hX) hX)

/-! ## The transformer -/

/-- The logits. -/
theorem contains_logits (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    {position' : Nat → Vec (Interval p) d_model} {position : Nat → Vec R d_model}
    (hposition : ∀ i, VecContains (position' i) (position i))
    {T' : Transformer (Interval p) s_vocab t_vocab d_model num_heads d d_ff}
    {T : Transformer R s_vocab t_vocab d_model num_heads d d_ff} (hT : TransformerContains T' T)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) :
    MatrixContains
      (T'.logits Interval.sqrt ε' scale' position' sourceMask targetMask crossMask source target)
      (T.logits root ε scale position sourceMask targetMask crossMask source target) :=
  hT.output.rows (contains_decode hroot hε hscale targetMask crossMask hT.decoder
    (contains_encode hroot hε hscale sourceMask hT.encoder
      (contains_addPositions hposition (contains_embed hT.source source)))
    (contains_addPositions hposition (contains_embed hT.target target)))

/-- **transformer-enclosed**: a transformer computed with intervals, with parameters, encodings of
the places, ε and a scale that contain the true ones, contains the true logits and the true
probabilities, whatever natural exponential and whatever square root they are taken with. -/
theorem transformer_enclosed (hroot : Interval.IsSqrt root) (hε : ε'.Contains ε)
    (hscale : scale'.Contains scale)
    {position' : Nat → Vec (Interval p) d_model} {position : Nat → Vec R d_model}
    (hposition : ∀ i, VecContains (position' i) (position i))
    {T' : Transformer (Interval p) s_vocab t_vocab d_model num_heads d d_ff}
    {T : Transformer R s_vocab t_vocab d_model num_heads d d_ff} (hT : TransformerContains T' T)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) :
    MatrixContains
        (T'.logits Interval.sqrt ε' scale' position' sourceMask targetMask crossMask source target)
        (T.logits root ε scale position sourceMask targetMask crossMask source target)
      ∧ MatrixContains
        (T'.probabilities Interval.sqrt ε' scale' position' sourceMask targetMask crossMask source
          target)
        (T.probabilities root ε scale position sourceMask targetMask crossMask source target) := by
  have h := contains_logits hroot hε hscale hposition hT sourceMask targetMask crossMask source
    target
  exact ⟨h, related_map h fun _ _ => contains_softmaxVec⟩

end Attention.Proof
