module

public import Attention.Spec.Backward
public import Attention.Spec.BackwardLayers
public import Attention.Spec.Slopes
public import Attention.Spec.TransformerNorms

public section

/-! # The backward pass of a transformer

From the gradient of a loss by the logits back to all parameters, layer by layer, the last first:
each layer computes its intermediate rows again. Rows that are used twice get the sum of two
gradients: rows that a residual connection takes past a part, rows that self-attention has for
queries, keys and values, the encoder's output in each layer of the decoder, a token's embedding
wherever the token is.
Source: Rumelhart, Hinton and Williams 1986, "Learning representations by back-propagating errors";
Vaswani et al. 2017, "Attention Is All You Need", section 3, for the layers; PyTorch's autograd and
`embedding_dense_backward`. -/

namespace Attention.Spec

universe u

variable {R : Type u} {n s t vocab s_vocab t_vocab q_len kv_len d_model num_heads d d_ff : Nat}
variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Exp R R]

/-! ## The loss and the embeddings -/

omit [Mul R] in
/-- The gradient of the cross-entropy by a row of logits: softmax, less 1 at the token `y` that
comes next. -/
@[expose] def crossEntropyGradient (z : Vec R vocab) (y : Fin vocab) : Vec R vocab :=
  let p := softmaxVec z
  Vec.ofFn fun k => p[k] - if k = y then 1 else 0

/-- The backward pass of the cross-entropies of rows of logits: `dLoss` is the gradient by each
row's, 1 where the loss is their sum and one part in their number where it is their mean. -/
@[expose] def crossEntropyVjp (Z : Matrix R n vocab) (y : Vector (Fin vocab) n)
    (dLoss : Vec R n) : Matrix R n vocab :=
  Vec.ofFn fun i => Vec.smul dLoss[i] (crossEntropyGradient Z[i] y[i])

omit [Sub R] [Mul R] [Div R] [OfNat R 1] [Exp R R] in
/-- The gradient by a table of embeddings: row v is the sum of the gradients by the rows of the
places that have token v. -/
@[expose] def embedVjp (tokens : Vector (Fin vocab) n) (dX : Matrix R n d) : Matrix R vocab d :=
  Vec.ofFn fun v => Vec.sumOver (fun i : Fin n => dX[i])
    ((List.finRange n).filter fun i => tokens[i] == v)

/-! ## Layers -/

/-- The gradients of a loss by the inputs of multi-head attention with its projections. -/
structure MultiHeadGradients (R : Type u) (q_len kv_len d_model num_heads d : Nat) where
  /-- By the four projections. -/
  parameters : MultiHead R d_model num_heads d
  /-- By the rows that queries are made of. -/
  dQ : Matrix R q_len d_model
  /-- By those that keys are made of. -/
  dK : Matrix R kv_len d_model
  /-- By those that values are made of. -/
  dV : Matrix R kv_len d_model

/-- The backward pass of multi-head attention with its projections: of the output's projection, of
the attention of each head, of the projections of queries, keys and values. -/
@[expose] def MultiHead.rowsVjp (scale : R) (mask : Mask q_len kv_len)
    (W : MultiHead R d_model num_heads d) (Q : Matrix R q_len d_model)
    (K V : Matrix R kv_len d_model) (dY : Matrix R q_len d_model) :
    MultiHeadGradients R q_len kv_len d_model num_heads d :=
  let q := splitHeads (W.query.rows Q)
  let k := splitHeads (W.key.rows K)
  let v := splitHeads (W.value.rows V)
  let O := concatHeads (multiHead scale (fun _ => mask.toScoreMod) q k v)
  let output := W.output.rowsVjp O dY
  let dHeads := splitHeads output.2
  let each : Vector (Gradients R q_len kv_len d d) num_heads := Vec.ofFn fun h =>
    vjp scale mask.toScoreMod ScoreSlope.one q[h] k[h] v[h] (fun x => x) dHeads[h] Vec.zero
  let query := W.query.rowsVjp Q (concatHeads (Vec.ofFn fun h => each[h].dQ))
  let key := W.key.rowsVjp K (concatHeads (Vec.ofFn fun h => each[h].dK))
  let value := W.value.rowsVjp V (concatHeads (Vec.ofFn fun h => each[h].dV))
  { parameters := ⟨query.1, key.1, value.1, output.1⟩
    dQ := query.2
    dK := key.2
    dV := value.2 }

variable [Max R] [LE R] [DecidableLE R] (sqrt : R → R) (ε scale : R)

/-- The backward pass of an encoder layer, normalised before. -/
@[expose] def EncoderLayer.preNormVjp (mask : Mask n n)
    (L : EncoderLayer R d_model num_heads d d_ff) (X dY : Matrix R n d_model) :
    EncoderLayer R d_model num_heads d d_ff × Matrix R n d_model :=
  let A := L.attentionNorm.rows sqrt ε X
  let Y := addRows X (L.attention.rows scale mask A A A)
  let N := L.feedForwardNorm.rows sqrt ε Y
  let f := L.feedForward.rowsVjp N dY
  let fNorm := L.feedForwardNorm.rowsVjp sqrt ε Y f.2
  let dY := addRows dY fNorm.2
  let a := L.attention.rowsVjp scale mask A A A dY
  let aNorm := L.attentionNorm.rowsVjp sqrt ε X (addRows a.dQ (addRows a.dK a.dV))
  (⟨a.parameters, aNorm.1, f.1, fNorm.1⟩, addRows dY aNorm.2)

/-- The backward pass of an encoder layer, normalised after. -/
@[expose] def EncoderLayer.postNormVjp (mask : Mask n n)
    (L : EncoderLayer R d_model num_heads d d_ff) (X dY : Matrix R n d_model) :
    EncoderLayer R d_model num_heads d d_ff × Matrix R n d_model :=
  let S := addRows X (L.attention.rows scale mask X X X)
  let Y := L.attentionNorm.rows sqrt ε S
  let T := addRows Y (L.feedForward.rows Y)
  let fNorm := L.feedForwardNorm.rowsVjp sqrt ε T dY
  let f := L.feedForward.rowsVjp Y fNorm.2
  let aNorm := L.attentionNorm.rowsVjp sqrt ε S (addRows fNorm.2 f.2)
  let a := L.attention.rowsVjp scale mask X X X aNorm.2
  (⟨a.parameters, aNorm.1, f.1, fNorm.1⟩, addRows aNorm.2 (addRows a.dQ (addRows a.dK a.dV)))

/-- The gradients of a loss by the inputs of decoder layers. -/
structure DecoderGradients (R : Type u) (P : Type u) (s t d_model : Nat) where
  /-- By the parameters. -/
  parameters : P
  /-- By the rows of the encoder's output. -/
  dContext : Matrix R s d_model
  /-- By the decoder's rows. -/
  dX : Matrix R t d_model

/-- The backward pass of a decoder layer, normalised before. -/
@[expose] def DecoderLayer.preNormVjp (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (X dY : Matrix R t d_model) :
    DecoderGradients R (DecoderLayer R d_model num_heads d d_ff) s t d_model :=
  let A := L.attentionNorm.rows sqrt ε X
  let Y := addRows X (L.attention.rows scale mask A A A)
  let B := L.crossNorm.rows sqrt ε Y
  let Z := addRows Y (L.cross.rows scale crossMask B context context)
  let N := L.feedForwardNorm.rows sqrt ε Z
  let f := L.feedForward.rowsVjp N dY
  let fNorm := L.feedForwardNorm.rowsVjp sqrt ε Z f.2
  let dZ := addRows dY fNorm.2
  let c := L.cross.rowsVjp scale crossMask B context context dZ
  let cNorm := L.crossNorm.rowsVjp sqrt ε Y c.dQ
  let dY := addRows dZ cNorm.2
  let a := L.attention.rowsVjp scale mask A A A dY
  let aNorm := L.attentionNorm.rowsVjp sqrt ε X (addRows a.dQ (addRows a.dK a.dV))
  { parameters := ⟨a.parameters, aNorm.1, c.parameters, cNorm.1, f.1, fNorm.1⟩
    dContext := addRows c.dK c.dV
    dX := addRows dY aNorm.2 }

/-- The backward pass of a decoder layer, normalised after. -/
@[expose] def DecoderLayer.postNormVjp (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (X dY : Matrix R t d_model) :
    DecoderGradients R (DecoderLayer R d_model num_heads d d_ff) s t d_model :=
  let S := addRows X (L.attention.rows scale mask X X X)
  let Y := L.attentionNorm.rows sqrt ε S
  let T := addRows Y (L.cross.rows scale crossMask Y context context)
  let Z := L.crossNorm.rows sqrt ε T
  let U := addRows Z (L.feedForward.rows Z)
  let fNorm := L.feedForwardNorm.rowsVjp sqrt ε U dY
  let f := L.feedForward.rowsVjp Z fNorm.2
  let cNorm := L.crossNorm.rowsVjp sqrt ε T (addRows fNorm.2 f.2)
  let c := L.cross.rowsVjp scale crossMask Y context context cNorm.2
  let aNorm := L.attentionNorm.rowsVjp sqrt ε S (addRows cNorm.2 c.dQ)
  let a := L.attention.rowsVjp scale mask X X X aNorm.2
  { parameters := ⟨a.parameters, aNorm.1, c.parameters, cNorm.1, f.1, fNorm.1⟩
    dContext := addRows c.dK c.dV
    dX := addRows aNorm.2 (addRows a.dQ (addRows a.dK a.dV)) }

/-! ## Stacks of layers, and the whole -/

omit [Exp R R] [Max R] [LE R] [DecidableLE R] in
/-- The backward pass of a normalisation that may be there or not. -/
@[expose] def finalNormVjp (norm : Option (LayerNorm R d)) (X dY : Matrix R n d) :
    Option (LayerNorm R d) × Matrix R n d :=
  match norm with
  | none => (none, dY)
  | some N =>
    let g := N.rowsVjp sqrt ε X dY
    (some g.1, g.2)

variable (normFirst : Bool)

/-- The backward pass of an encoder layer, normalised before or, without `normFirst`, after. -/
@[expose] def EncoderLayer.rowsVjp (mask : Mask n n)
    (L : EncoderLayer R d_model num_heads d d_ff) (X dY : Matrix R n d_model) :
    EncoderLayer R d_model num_heads d d_ff × Matrix R n d_model :=
  if normFirst then L.preNormVjp sqrt ε scale mask X dY else L.postNormVjp sqrt ε scale mask X dY

/-- The backward pass of a decoder layer, normalised before or, without `normFirst`, after. -/
@[expose] def DecoderLayer.rowsVjp (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer R d_model num_heads d d_ff) (context : Matrix R s d_model)
    (X dY : Matrix R t d_model) :
    DecoderGradients R (DecoderLayer R d_model num_heads d d_ff) s t d_model :=
  if normFirst then L.preNormVjp sqrt ε scale mask crossMask context X dY
  else L.postNormVjp sqrt ε scale mask crossMask context X dY

/-- The backward pass of the encoder: of the normalisation at its end, then from the last layer to
the first. -/
@[expose] def encodeVjp (mask : Mask n n) (norm : Option (LayerNorm R d_model)) :
    List (EncoderLayer R d_model num_heads d d_ff) → (X dY : Matrix R n d_model) →
      (List (EncoderLayer R d_model num_heads d d_ff) × Option (LayerNorm R d_model))
        × Matrix R n d_model
  | [], X, dY =>
    let last := finalNormVjp sqrt ε norm X dY
    (([], last.1), last.2)
  | L :: layers, X, dY =>
    let later := encodeVjp mask norm layers (L.rows sqrt ε scale normFirst mask X) dY
    let first := L.rowsVjp sqrt ε scale normFirst mask X later.2
    ((first.1 :: later.1.1, later.1.2), first.2)

/-- The backward pass of the decoder: of the normalisation at its end, then from the last layer to
the first, the gradients by the encoder's output summed. -/
@[expose] def decodeVjp (mask : Mask t t) (crossMask : Mask t s)
    (norm : Option (LayerNorm R d_model)) (context : Matrix R s d_model) :
    List (DecoderLayer R d_model num_heads d d_ff) → (X dY : Matrix R t d_model) →
      DecoderGradients R
        (List (DecoderLayer R d_model num_heads d d_ff) × Option (LayerNorm R d_model)) s t d_model
  | [], X, dY =>
    let last := finalNormVjp sqrt ε norm X dY
    { parameters := ([], last.1), dContext := Vec.ofFn fun _ => Vec.zero, dX := last.2 }
  | L :: layers, X, dY =>
    let later := decodeVjp mask crossMask norm context layers
      (L.rows sqrt ε scale normFirst mask crossMask context X) dY
    let first := L.rowsVjp sqrt ε scale normFirst mask crossMask context X later.dX
    { parameters := (first.parameters :: later.parameters.1, later.parameters.2)
      dContext := addRows first.dContext later.dContext
      dX := first.dX }

/-- The gradients of a loss by all parameters of a transformer, those of the normalisations at the
ends of encoder and decoder among them, from those by its logits. -/
@[expose] def Transformer.logitsVjp (norms : FinalNorms R d_model)
    (position : Nat → Vec R d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t)
    (dZ : Matrix R t t_vocab) :
    Transformer R s_vocab t_vocab d_model num_heads d d_ff × FinalNorms R d_model :=
  let X := addPositions position (embed T.source source)
  let context := encodeNormed sqrt ε scale normFirst sourceMask T.encoder norms.encoder X
  let Y := addPositions position (embed T.target target)
  let D := decodeNormed sqrt ε scale normFirst targetMask crossMask T.decoder norms.decoder
    context Y
  let output := T.output.rowsVjp D dZ
  let decoder := decodeVjp sqrt ε scale normFirst targetMask crossMask norms.decoder context
    T.decoder Y output.2
  let encoder := encodeVjp sqrt ε scale normFirst sourceMask norms.encoder T.encoder X
    decoder.dContext
  ({ source := embedVjp source encoder.2
     target := embedVjp target decoder.dX
     encoder := encoder.1.1
     decoder := decoder.parameters.1
     output := output.1 }, ⟨encoder.1.2, decoder.parameters.2⟩)

/-- The gradient of training: of the cross-entropies of a transformer's logits with the tokens `y`
that come next, weighted by `dLoss`, by all its parameters. -/
@[expose] def Transformer.lossVjp (norms : FinalNorms R d_model)
    (position : Nat → Vec R d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target y : Vector (Fin t_vocab) t)
    (dLoss : Vec R t) :
    Transformer R s_vocab t_vocab d_model num_heads d d_ff × FinalNorms R d_model :=
  T.logitsVjp sqrt ε scale normFirst norms position sourceMask targetMask crossMask source target
    (crossEntropyVjp (T.logitsNormed sqrt ε scale normFirst norms position sourceMask targetMask
      crossMask source target) y dLoss)

end Attention.Spec
