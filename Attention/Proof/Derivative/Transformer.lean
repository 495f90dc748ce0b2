module

public import Attention.Proof.Derivative.Changes
public import Attention.Proof.Heads.MultiHead

public section

/-! # A transformer along any paths of its parameters

What training asks for: at which rates the logits change when all parameters do. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {ι : Type v}
variable {n s t d d_model num_heads d_ff q_len kv_len s_vocab t_vocab : Nat}

/-! ## Multi-head attention -/

/-- The columns of a matrix that changes, split to the heads. -/
theorem splitHeads_tangent {X : ι → R → Matrix R n (num_heads * d)}
    {X' : ι → Matrix (Dual R) n (num_heads * d)} (hX : MatrixTangent X X') (h : Fin num_heads) :
    MatrixTangent (fun x t => (splitHeads (X x t))[h]) fun x => (splitHeads (X' x))[h] := by
  intro i hi c hc
  simp only [splitHeads, Fin.getElem_fin, Vec.getElem_ofFn]
  exact hX i hi (headColumn h ⟨c, hc⟩).val (Fin.isLt _)

/-- Outputs of all heads that change, side by side. -/
theorem concatHeads_tangent {heads : ι → R → Vector (Matrix R n d) num_heads}
    {heads' : ι → Vector (Matrix (Dual R) n d) num_heads}
    (h : ∀ c : Fin num_heads, MatrixTangent (fun x t => (heads x t)[c]) fun x => (heads' x)[c]) :
    MatrixTangent (fun x t => concatHeads (heads x t)) fun x => concatHeads (heads' x) := by
  intro i hi j hj
  have e := fun x t => getElem_concatHeads_headOf (heads x t) ⟨i, hi⟩ ⟨j, hj⟩
  have e' := fun x => getElem_concatHeads_headOf (heads' x) ⟨i, hi⟩ ⟨j, hj⟩
  simp only [Fin.getElem_fin] at e e'
  simp only [e, e']
  exact h _ i hi _ _

variable [NaturalExp R]

/-- **multi-head-derivative**: multi-head attention with its projections. -/
theorem multiHead_tangent {scale : ι → R → R} {scale' : ι → Dual R}
    (hscale : IsTangent scale scale') (mask : Mask q_len kv_len)
    {W : ι → R → MultiHead R d_model num_heads d} {W' : ι → MultiHead (Dual R) d_model num_heads d}
    (hW : MultiHeadTangent W W') {Q : ι → R → Matrix R q_len d_model}
    {Q' : ι → Matrix (Dual R) q_len d_model} {K V : ι → R → Matrix R kv_len d_model}
    {K' V' : ι → Matrix (Dual R) kv_len d_model} (hQ : MatrixTangent Q Q')
    (hK : MatrixTangent K K') (hV : MatrixTangent V V') :
    MatrixTangent (fun x t => (W x t).rows (scale x t) mask (Q x t) (K x t) (V x t))
      fun x => (W' x).rows (scale' x) mask (Q' x) (K' x) (V' x) := by
  simp only [MultiHead.rows, MultiHead.attend]
  refine linear_tangent hW.output (concatHeads_tangent fun h => ?_)
  simp only [multiHead, Fin.getElem_fin, Vec.getElem_ofFn]
  exact attention_tangent hscale (mask_tangent mask)
    (splitHeads_tangent (linear_tangent hW.query hQ) h)
    (splitHeads_tangent (linear_tangent hW.key hK) h)
    (splitHeads_tangent (linear_tangent hW.value hV) h)

/-! ## Layers -/

variable {sqrt : R → R} (hsqrt : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) {ε : R} (hε : 0 < ε)
variable {scale : ι → R → R} {scale' : ι → Dual R} (hscale : IsTangent scale scale')
include hsqrt hε hscale

/-- The rows that enter the feed-forward network of an encoder layer. -/
private theorem encoder_summed_tangent {L : ι → R → EncoderLayer R d_model num_heads d d_ff}
    {L' : ι → EncoderLayer (Dual R) d_model num_heads d d_ff} (hL : EncoderLayerTangent L L')
    (mask : Mask n n) {X : ι → R → Matrix R n d_model} {X' : ι → Matrix (Dual R) n d_model}
    (hX : MatrixTangent X X') :
    MatrixTangent
      (fun x t =>
        let A := (L x t).attentionNorm.rows sqrt ε (X x t)
        addRows (X x t) ((L x t).attention.rows (scale x t) mask A A A))
      fun x =>
        let A := (L' x).attentionNorm.rows (Dual.root sqrt) (Dual.const ε) (X' x)
        addRows (X' x) ((L' x).attention.rows (scale' x) mask A A A) := by
  have hA := layerNorm_tangent hsqrt hε hL.attentionNorm hX
  exact addRows_tangent hX (multiHead_tangent hscale mask hL.attention hA hA hA)

/-- **encoder-layer-derivative**: an encoder layer, normalised before or after, no hidden unit of
which is less than κ away from 0 before it is rectified. -/
theorem encoderLayer_tangent {L : ι → R → EncoderLayer R d_model num_heads d d_ff}
    {L' : ι → EncoderLayer (Dual R) d_model num_heads d d_ff} (hL : EncoderLayerTangent L L')
    (mask : Mask n n) {X : ι → R → Matrix R n d_model} {X' : ι → Matrix (Dual R) n d_model}
    (hX : MatrixTangent X X') {κ : R} (hκ : 0 < κ)
    (normFirst : Bool)
    (hapart : ∀ x, EncoderLayerApart κ sqrt ε (scale x 0) normFirst mask (L x 0) (X x 0)) :
    MatrixTangent (fun x t => (L x t).rows sqrt ε (scale x t) normFirst mask (X x t))
      fun x => (L' x).rows (Dual.root sqrt) (Dual.const ε) (scale' x) normFirst mask (X' x) := by
  cases normFirst with
  | true =>
    have hS := encoder_summed_tangent hsqrt hε hscale hL mask hX
    exact addRows_tangent hS (feedForward_tangent hL.feedForward
      (layerNorm_tangent hsqrt hε hL.feedForwardNorm hS) hκ hapart)
  | false =>
    have hY := layerNorm_tangent hsqrt hε hL.attentionNorm
      (addRows_tangent hX (multiHead_tangent hscale mask hL.attention hX hX hX))
    exact layerNorm_tangent hsqrt hε hL.feedForwardNorm
      (addRows_tangent hY (feedForward_tangent hL.feedForward hY hκ hapart))

private theorem decoder_summed_tangent {L : ι → R → DecoderLayer R d_model num_heads d d_ff}
    {L' : ι → DecoderLayer (Dual R) d_model num_heads d d_ff} (hL : DecoderLayerTangent L L')
    (mask : Mask t t) (crossMask : Mask t s) {C : ι → R → Matrix R s d_model}
    {C' : ι → Matrix (Dual R) s d_model} (hC : MatrixTangent C C')
    {X : ι → R → Matrix R t d_model} {X' : ι → Matrix (Dual R) t d_model}
    (hX : MatrixTangent X X') :
    MatrixTangent
      (fun x τ =>
        let A := (L x τ).attentionNorm.rows sqrt ε (X x τ)
        let Y := addRows (X x τ) ((L x τ).attention.rows (scale x τ) mask A A A)
        addRows Y ((L x τ).cross.rows (scale x τ) crossMask ((L x τ).crossNorm.rows sqrt ε Y)
          (C x τ) (C x τ)))
      fun x =>
        let A := (L' x).attentionNorm.rows (Dual.root sqrt) (Dual.const ε) (X' x)
        let Y := addRows (X' x) ((L' x).attention.rows (scale' x) mask A A A)
        addRows Y ((L' x).cross.rows (scale' x) crossMask
          ((L' x).crossNorm.rows (Dual.root sqrt) (Dual.const ε) Y) (C' x) (C' x)) := by
  have hA := layerNorm_tangent hsqrt hε hL.attentionNorm hX
  have hS := addRows_tangent hX (multiHead_tangent hscale mask hL.attention hA hA hA)
  exact addRows_tangent hS (multiHead_tangent hscale crossMask hL.cross
    (layerNorm_tangent hsqrt hε hL.crossNorm hS) hC hC)

/-- **decoder-layer-derivative**: a decoder layer, normalised before or after. -/
theorem decoderLayer_tangent {L : ι → R → DecoderLayer R d_model num_heads d d_ff}
    {L' : ι → DecoderLayer (Dual R) d_model num_heads d d_ff} (hL : DecoderLayerTangent L L')
    (mask : Mask t t) (crossMask : Mask t s) {C : ι → R → Matrix R s d_model}
    {C' : ι → Matrix (Dual R) s d_model} (hC : MatrixTangent C C')
    {X : ι → R → Matrix R t d_model} {X' : ι → Matrix (Dual R) t d_model}
    (hX : MatrixTangent X X') {κ : R} (hκ : 0 < κ)
    (normFirst : Bool) (hapart : ∀ x, DecoderLayerApart κ sqrt ε (scale x 0) normFirst mask
      crossMask (L x 0) (C x 0) (X x 0)) :
    MatrixTangent
      (fun x τ => (L x τ).rows sqrt ε (scale x τ) normFirst mask crossMask (C x τ) (X x τ))
      fun x => (L' x).rows (Dual.root sqrt) (Dual.const ε) (scale' x) normFirst mask crossMask
        (C' x) (X' x) := by
  cases normFirst with
  | true =>
    have hS := decoder_summed_tangent hsqrt hε hscale hL mask crossMask hC hX
    exact addRows_tangent hS (feedForward_tangent hL.feedForward
      (layerNorm_tangent hsqrt hε hL.feedForwardNorm hS) hκ hapart)
  | false =>
    have hY := layerNorm_tangent hsqrt hε hL.attentionNorm
      (addRows_tangent hX (multiHead_tangent hscale mask hL.attention hX hX hX))
    have hZ := layerNorm_tangent hsqrt hε hL.crossNorm
      (addRows_tangent hY (multiHead_tangent hscale crossMask hL.cross hY hC hC))
    exact layerNorm_tangent hsqrt hε hL.feedForwardNorm
      (addRows_tangent hZ (feedForward_tangent hL.feedForward hZ hκ hapart))

/-! ## Stacks of layers -/

omit hscale [NaturalExp R] in
private theorem finalNorm_tangent {N : ι → R → Option (LayerNorm R d)}
    {N' : ι → Option (LayerNorm (Dual R) d)} (hN : FinalNormTangent N N')
    {X : ι → R → Matrix R n d} {X' : ι → Matrix (Dual R) n d} (hX : MatrixTangent X X') :
    MatrixTangent (fun x t => finalNorm sqrt ε (N x t) (X x t))
      fun x => finalNorm (Dual.root sqrt) (Dual.const ε) (N' x) (X' x) := by
  rcases hN with ⟨h, h'⟩ | ⟨M, M', hM, h, h'⟩
  · simp only [h, h']
    exact hX
  · simp only [h, h']
    exact layerNorm_tangent hsqrt hε hM hX

/-- The encoder. -/
theorem encode_tangent {layers : ι → R → List (EncoderLayer R d_model num_heads d d_ff)}
    {layers' : ι → List (EncoderLayer (Dual R) d_model num_heads d d_ff)}
    (hL : LayersTangent EncoderLayerTangent layers layers')
    {norm : ι → R → Option (LayerNorm R d_model)} {norm' : ι → Option (LayerNorm (Dual R) d_model)}
    (hN : FinalNormTangent norm norm') (mask : Mask n n) {κ : R} (hκ : 0 < κ) (normFirst : Bool)
    {X : ι → R → Matrix R n d_model} {X' : ι → Matrix (Dual R) n d_model} (hX : MatrixTangent X X')
    (hapart : ∀ x, EncodeApart κ sqrt ε (scale x 0) normFirst mask (layers x 0) (X x 0)) :
    MatrixTangent
      (fun x t => encodeNormed sqrt ε (scale x t) normFirst mask (layers x t) (norm x t) (X x t))
      fun x => encodeNormed (Dual.root sqrt) (Dual.const ε) (scale' x) normFirst mask (layers' x)
        (norm' x) (X' x) := by
  obtain ⟨Ls, hL, e, e'⟩ := hL
  obtain rfl : layers = fun x t => Ls.map fun L => L.1 x t := funext fun x => funext (e x)
  obtain rfl : layers' = fun x => Ls.map fun L => L.2 x := funext e'
  clear e e'
  induction Ls generalizing X X' with
  | nil => exact finalNorm_tangent hsqrt hε hN hX
  | cons L Ls ih =>
    have h := encoderLayer_tangent hsqrt hε hscale (hL L (by simp)) mask hX hκ normFirst
      fun x => (hapart x).1
    exact ih h (fun M hM => hL M (by simp [hM])) fun x => (hapart x).2

/-- The decoder. -/
theorem decode_tangent {layers : ι → R → List (DecoderLayer R d_model num_heads d d_ff)}
    {layers' : ι → List (DecoderLayer (Dual R) d_model num_heads d d_ff)}
    (hL : LayersTangent DecoderLayerTangent layers layers')
    {norm : ι → R → Option (LayerNorm R d_model)} {norm' : ι → Option (LayerNorm (Dual R) d_model)}
    (hN : FinalNormTangent norm norm') (mask : Mask t t)
    (crossMask : Mask t s) {κ : R} (hκ : 0 < κ) (normFirst : Bool) {C : ι → R → Matrix R s d_model}
    {C' : ι → Matrix (Dual R) s d_model} (hC : MatrixTangent C C')
    {X : ι → R → Matrix R t d_model} {X' : ι → Matrix (Dual R) t d_model} (hX : MatrixTangent X X')
    (hapart : ∀ x, DecodeApart κ sqrt ε (scale x 0) normFirst mask crossMask (C x 0) (layers x 0)
      (X x 0)) :
    MatrixTangent
      (fun x τ => decodeNormed sqrt ε (scale x τ) normFirst mask crossMask (layers x τ) (norm x τ)
        (C x τ) (X x τ))
      fun x => decodeNormed (Dual.root sqrt) (Dual.const ε) (scale' x) normFirst mask crossMask
        (layers' x) (norm' x) (C' x) (X' x) := by
  obtain ⟨Ls, hL, e, e'⟩ := hL
  obtain rfl : layers = fun x t => Ls.map fun L => L.1 x t := funext fun x => funext (e x)
  obtain rfl : layers' = fun x => Ls.map fun L => L.2 x := funext e'
  clear e e'
  induction Ls generalizing X X' with
  | nil => exact finalNorm_tangent hsqrt hε hN hX
  | cons L Ls ih =>
    have h := decoderLayer_tangent hsqrt hε hscale (hL L (by simp)) mask crossMask hC hX hκ
      normFirst fun x => (hapart x).1
    exact ih h (fun M hM => hL M (by simp [hM])) fun x => (hapart x).2

/-! ## The transformer -/

omit hsqrt hε hscale [NaturalExp R] in
private theorem embedded_tangent {vocab : Nat} {position : Nat → Vec R d_model}
    {E : ι → R → Matrix R vocab d_model} {E' : ι → Matrix (Dual R) vocab d_model}
    (hE : MatrixTangent E E') (tokens : Vector (Fin vocab) n) :
    MatrixTangent (fun x t => addPositions position (embed (E x t) tokens))
      fun x => addPositions (fun i => Vec.map Dual.const (position i)) (embed (E' x) tokens) := by
  intro i hi j hj
  simp only [addPositions, embed, Vec.getElem_ofFn, Vec.getElem_add, Vec.getElem_map,
    Fin.getElem_fin]
  exact (hE tokens[i].val tokens[i].isLt j hj).add (.const ((position i)[j]))

/-- **transformer-derivative**: the logits of a transformer all of whose parameters change, change,
wherever it normalises, at the rates that they have over dual numbers, where no hidden unit is less
than κ away from 0 before it is rectified. -/
theorem transformer_tangent {position : Nat → Vec R d_model}
    {T : ι → R → Transformer R s_vocab t_vocab d_model num_heads d d_ff}
    {T' : ι → Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff}
    (hT : TransformerTangent T T') {N : ι → R → FinalNorms R d_model}
    {N' : ι → FinalNorms (Dual R) d_model} (hN : FinalNormsTangent N N') (normFirst : Bool)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) {κ : R} (hκ : 0 < κ)
    (hapart : ∀ x, TransformerApart κ sqrt ε (scale x 0) normFirst (N x 0) position sourceMask
      targetMask crossMask (T x 0) source target) :
    MatrixTangent
      (fun x τ => (T x τ).logitsNormed sqrt ε (scale x τ) normFirst (N x τ) position sourceMask
        targetMask crossMask source target)
      fun x => (T' x).logitsNormed (Dual.root sqrt) (Dual.const ε) (scale' x) normFirst (N' x)
        (fun i => Vec.map Dual.const (position i)) sourceMask targetMask crossMask source
        target := by
  have hC := encode_tangent hsqrt hε hscale hT.encoder hN.encoder sourceMask hκ normFirst
    (embedded_tangent (position := position) hT.source source) fun x => (hapart x).1
  exact linear_tangent hT.output (decode_tangent hsqrt hε hscale hT.decoder hN.decoder
    targetMask crossMask hκ normFirst hC (embedded_tangent hT.target target) fun x => (hapart x).2)

end Attention.Proof
