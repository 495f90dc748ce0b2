module

public import Attention.Spec.Backward
public import Attention.Spec.BackwardLayers
public import Attention.Spec.Slopes
public import Attention.Spec.Transformer

public section

/-! # The backward pass of a transformer

From the gradient of a loss by the logits back to all parameters, layer by layer, the last first:
each layer computes its intermediate rows again. What is used twice gets the sum of two gradients:
rows that a residual connection takes past a part, rows that self-attention has for queries, keys
and values, the encoder's output in each layer of the decoder, a token's embedding wherever the
token is.
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

/-- The backward pass of the encoder: from the last layer to the first. -/
@[expose] def encodeVjp (mask : Mask n n) :
    List (EncoderLayer R d_model num_heads d d_ff) → (X dY : Matrix R n d_model) →
      List (EncoderLayer R d_model num_heads d d_ff) × Matrix R n d_model
  | [], _, dY => ([], dY)
  | L :: layers, X, dY =>
    let later := encodeVjp mask layers (L.preNorm sqrt ε scale mask X) dY
    let first := L.preNormVjp sqrt ε scale mask X later.2
    (first.1 :: later.1, first.2)

/-- The backward pass of the decoder: from the last layer to the first, the gradients by the
encoder's output summed. -/
@[expose] def decodeVjp (mask : Mask t t) (crossMask : Mask t s) (context : Matrix R s d_model) :
    List (DecoderLayer R d_model num_heads d d_ff) → (X dY : Matrix R t d_model) →
      DecoderGradients R (List (DecoderLayer R d_model num_heads d d_ff)) s t d_model
  | [], _, dY => { parameters := [], dContext := Vec.ofFn fun _ => Vec.zero, dX := dY }
  | L :: layers, X, dY =>
    let later := decodeVjp mask crossMask context layers
      (L.preNorm sqrt ε scale mask crossMask context X) dY
    let first := L.preNormVjp sqrt ε scale mask crossMask context X later.dX
    { parameters := first.parameters :: later.parameters
      dContext := addRows first.dContext later.dContext
      dX := first.dX }

/-- The gradients of a loss by all parameters of a transformer, from those by its logits. -/
@[expose] def Transformer.logitsVjp (position : Nat → Vec R d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t)
    (dZ : Matrix R t t_vocab) : Transformer R s_vocab t_vocab d_model num_heads d d_ff :=
  let X := addPositions position (embed T.source source)
  let context := Spec.encode sqrt ε scale sourceMask T.encoder X
  let Y := addPositions position (embed T.target target)
  let D := decode sqrt ε scale targetMask crossMask T.decoder context Y
  let output := T.output.rowsVjp D dZ
  let decoder := decodeVjp sqrt ε scale targetMask crossMask context T.decoder Y output.2
  let encoder := encodeVjp sqrt ε scale sourceMask T.encoder X decoder.dContext
  { source := embedVjp source encoder.2
    target := embedVjp target decoder.dX
    encoder := encoder.1
    decoder := decoder.parameters
    output := output.1 }

/-- The gradient of training: of the cross-entropies of a transformer's logits with the tokens `y`
that come next, weighted by `dLoss`, by all its parameters. -/
@[expose] def Transformer.lossVjp (position : Nat → Vec R d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (source : Vector (Fin s_vocab) s) (target y : Vector (Fin t_vocab) t)
    (dLoss : Vec R t) : Transformer R s_vocab t_vocab d_model num_heads d d_ff :=
  T.logitsVjp sqrt ε scale position sourceMask targetMask crossMask source target
    (crossEntropyVjp
      (T.logits sqrt ε scale position sourceMask targetMask crossMask source target) y dLoss)

end Attention.Spec
