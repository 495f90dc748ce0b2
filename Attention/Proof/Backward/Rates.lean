module

public import Attention.Spec.BackwardTransformer
public import Attention.Spec.Tangent

public section

/-! # The rate of a loss, from its gradient and the rates of parameters

Numbers over dual numbers have a number each, `primal`, and a rate. A gradient G by what changes
says at which rate the loss does, Σ G · rate: `rate` of G and of what changes. A backward pass is
right where the rate from its gradients by parameters and input is the rate from the gradient by the
output. -/

namespace Attention

universe u

variable {R : Type u} {m n d d_in d_out d_ff s_vocab t_vocab d_model num_heads : Nat}

/-- The numbers of a vector that changes. -/
@[expose] def Vec.primal (a : Vec (Dual R) n) : Vec R n := Vec.map (·.val) a

/-- The numbers of a matrix that changes. -/
@[expose] def Matrix.primal (A : Matrix (Dual R) m n) : Matrix R m n := Vec.map Vec.primal A

/-- Σ gₖ aₖ′. -/
@[expose] def Vec.rate [Add R] [Mul R] [OfNat R 0] (g : Vec R n) (a : Vec (Dual R) n) : R :=
  Attention.sumOver (fun k : Fin n => g[k] * a[k].der) (List.finRange n)

/-- Σ Gᵢⱼ Aᵢⱼ′. -/
@[expose] def Matrix.rate [Add R] [Mul R] [OfNat R 0] (G : Matrix R m n) (A : Matrix (Dual R) m n) :
    R :=
  sumOver (fun i : Fin m => Vec.rate G[i] A[i]) (List.finRange m)

@[simp] theorem Vec.getElem_primal (a : Vec (Dual R) n) {i : Nat} (h : i < n) :
    a.primal[i] = a[i].val := Vec.getElem_map ..

@[simp] theorem Matrix.getElem_primal (A : Matrix (Dual R) m n) {i : Nat} (h : i < m) :
    A.primal[i] = A[i].primal := Vec.getElem_map ..

namespace Proof

open Spec

/-! ## Numbers -/

/-- The numbers of the parameters of a linear layer. -/
@[expose] def Linear.primal (W : Linear (Dual R) d_in d_out) : Linear R d_in d_out :=
  ⟨W.weight.primal, W.bias.primal⟩

/-- Those of a layer normalisation. -/
@[expose] def LayerNorm.primal (N : LayerNorm (Dual R) d) : LayerNorm R d :=
  ⟨N.gain.primal, N.bias.primal⟩

/-- Those of a feed-forward network. -/
@[expose] def FeedForward.primal (F : FeedForward (Dual R) d d_ff) : FeedForward R d d_ff :=
  ⟨Linear.primal F.hidden, Linear.primal F.output⟩

/-- Those of multi-head attention. -/
@[expose] def MultiHead.primal (W : MultiHead (Dual R) d_model num_heads d) :
    MultiHead R d_model num_heads d :=
  ⟨Linear.primal W.query, Linear.primal W.key, Linear.primal W.value, Linear.primal W.output⟩

/-- Those of an encoder layer. -/
@[expose] def EncoderLayer.primal (L : EncoderLayer (Dual R) d_model num_heads d d_ff) :
    EncoderLayer R d_model num_heads d d_ff :=
  ⟨MultiHead.primal L.attention, LayerNorm.primal L.attentionNorm,
    FeedForward.primal L.feedForward, LayerNorm.primal L.feedForwardNorm⟩

/-- Those of a decoder layer. -/
@[expose] def DecoderLayer.primal (L : DecoderLayer (Dual R) d_model num_heads d d_ff) :
    DecoderLayer R d_model num_heads d d_ff :=
  ⟨MultiHead.primal L.attention, LayerNorm.primal L.attentionNorm, MultiHead.primal L.cross,
    LayerNorm.primal L.crossNorm, FeedForward.primal L.feedForward,
    LayerNorm.primal L.feedForwardNorm⟩

/-- Those of a transformer. -/
@[expose] def Transformer.primal
    (T : Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff) :
    Transformer R s_vocab t_vocab d_model num_heads d d_ff :=
  ⟨T.source.primal, T.target.primal, T.encoder.map EncoderLayer.primal,
    T.decoder.map DecoderLayer.primal, Linear.primal T.output⟩

/-- Those of the normalisations behind a transformer's encoder and decoder. -/
@[expose] def FinalNorms.primal (N : FinalNorms (Dual R) d_model) : FinalNorms R d_model :=
  ⟨N.encoder.map LayerNorm.primal, N.decoder.map LayerNorm.primal⟩

/-! ## Rates -/

variable [Add R] [Mul R] [OfNat R 0]

/-- The rate of a loss with the gradient `g` by the parameters of a linear layer. -/
@[expose] def Linear.rate (g : Linear R d_in d_out) (W : Linear (Dual R) d_in d_out) : R :=
  Matrix.rate g.weight W.weight + Vec.rate g.bias W.bias

/-- By those of a layer normalisation. -/
@[expose] def LayerNorm.rate (g : LayerNorm R d) (N : LayerNorm (Dual R) d) : R :=
  Vec.rate g.gain N.gain + Vec.rate g.bias N.bias

/-- By those of a feed-forward network. -/
@[expose] def FeedForward.rate (g : FeedForward R d d_ff) (F : FeedForward (Dual R) d d_ff) : R :=
  Linear.rate g.hidden F.hidden + Linear.rate g.output F.output

/-- By those of multi-head attention. -/
@[expose] def MultiHead.rate (g : MultiHead R d_model num_heads d)
    (W : MultiHead (Dual R) d_model num_heads d) : R :=
  Linear.rate g.query W.query + Linear.rate g.key W.key + Linear.rate g.value W.value
    + Linear.rate g.output W.output

/-- By those of an encoder layer. -/
@[expose] def EncoderLayer.rate (g : EncoderLayer R d_model num_heads d d_ff)
    (L : EncoderLayer (Dual R) d_model num_heads d d_ff) : R :=
  MultiHead.rate g.attention L.attention + LayerNorm.rate g.attentionNorm L.attentionNorm
    + FeedForward.rate g.feedForward L.feedForward
    + LayerNorm.rate g.feedForwardNorm L.feedForwardNorm

/-- By those of a decoder layer. -/
@[expose] def DecoderLayer.rate (g : DecoderLayer R d_model num_heads d d_ff)
    (L : DecoderLayer (Dual R) d_model num_heads d d_ff) : R :=
  MultiHead.rate g.attention L.attention + LayerNorm.rate g.attentionNorm L.attentionNorm
    + MultiHead.rate g.cross L.cross + LayerNorm.rate g.crossNorm L.crossNorm
    + FeedForward.rate g.feedForward L.feedForward
    + LayerNorm.rate g.feedForwardNorm L.feedForwardNorm

/-- By those of a list of layers, one gradient for each. -/
@[expose] def layersRate {A A' : Type u} (rate : A → A' → R) : List A → List A' → R
  | g :: gs, L :: Ls => rate g L + layersRate rate gs Ls
  | _, _ => 0

/-- By those of a normalisation that may be there or not. -/
@[expose] def finalNormRate : Option (LayerNorm R d) → Option (LayerNorm (Dual R) d) → R
  | some g, some N => LayerNorm.rate g N
  | _, _ => 0

/-- By those of the normalisations behind a transformer's encoder and decoder. -/
@[expose] def FinalNorms.rate (g : FinalNorms R d_model) (N : FinalNorms (Dual R) d_model) : R :=
  finalNormRate g.encoder N.encoder + finalNormRate g.decoder N.decoder

/-- By those of a transformer. -/
@[expose] def Transformer.rate (g : Transformer R s_vocab t_vocab d_model num_heads d d_ff)
    (T : Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff) : R :=
  Matrix.rate g.source T.source + Matrix.rate g.target T.target
    + layersRate EncoderLayer.rate g.encoder T.encoder
    + layersRate DecoderLayer.rate g.decoder T.decoder + Linear.rate g.output T.output

end Proof

end Attention
