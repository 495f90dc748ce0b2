module

public import Attention.Proof.Backward.TransformerLayer
public import Attention.Proof.Derivative.CrossEntropy
public import Attention.Proof.Derivative.Transformer

public section

/-! # The backward pass of a transformer: what training computes

Layer by layer from the last to the first, and with the cross-entropy the gradient of the loss by
all parameters; where no hidden unit is 0 before it is rectified, it is the gradient. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]
variable {n s t d d_model num_heads d_ff vocab s_vocab t_vocab : Nat}

/-! ## Embeddings -/

private theorem embedded_primal {position : Nat → Vec R d} (E : Matrix (Dual R) vocab d)
    (tokens : Vector (Fin vocab) n) :
    Matrix.primal (addPositions (fun i => Vec.map Dual.const (position i)) (embed E tokens))
      = addPositions position (embed E.primal tokens) :=
  matrix_ext fun i j => by
    simp only [addPositions, embed, Fin.getElem_fin, Matrix.getElem_primal, Vec.getElem_primal,
      Vec.getElem_ofFn, Vec.getElem_add, Vec.getElem_map, Dual.val_add, Dual.val_const]

/-- **embedding-backward**: each row of a table of embeddings gets the sum of the gradients by the
rows of the places that have its token. -/
theorem embed_adjoint {position : Nat → Vec R d} (E : Matrix (Dual R) vocab d)
    (tokens : Vector (Fin vocab) n) (dX : Matrix R n d) :
    Matrix.rate dX (addPositions (fun i => Vec.map Dual.const (position i)) (embed E tokens))
      = Matrix.rate (embedVjp tokens dX) E := by
  have h : ∀ v : Fin vocab, Vec.rate (embedVjp tokens dX)[v] E[v] = sumOver (fun i : Fin n =>
      if v = tokens[i] then Vec.rate dX[i] E[v] else 0) (List.finRange n) := fun v => by
    have e : ∀ k ∈ List.finRange d, (embedVjp tokens dX)[v][k] * E[v][k].der
        = sumOver (fun i : Fin n => dX[i][k] * E[v][k].der)
          ((List.finRange n).filter fun i => tokens[i] == v) := fun k _ => by
      rw [sumOver_mul_right]
      simp only [embedVjp, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_sumOver]
    rw [Vec.rate, sumOver_congr e, sumOver_comm, sumOver_filter]
    refine sumOver_congr fun i _ => ?_
    by_cases hv : v = tokens[i]
    · rw [if_pos (by simp [hv]), if_pos hv]
      rfl
    · rw [if_neg (by simpa using Ne.symm hv), if_neg hv]
  rw [Matrix.rate, Matrix.rate, sumOver_congr fun v _ => h v, sumOver_comm]
  refine sumOver_congr fun i _ => ?_
  rw [sumOver_ite_eq (fun v => Vec.rate dX[i] E[v]) tokens[i]]
  refine sumOver_congr fun k _ => ?_
  simp only [addPositions, embed, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_add,
    Vec.getElem_map, Dual.der_add, Dual.der_const, Semiring.add_zero]

/-! ## Stacks of layers -/

section
variable (sqrt : R → R) (ε : R)

private theorem finalNorm_primal (N : Option (LayerNorm (Dual R) d)) (X : Matrix (Dual R) n d) :
    (finalNorm (Dual.root sqrt) (Dual.const ε) N X).primal
      = finalNorm sqrt ε (N.map LayerNorm.primal) X.primal := by
  cases N with
  | none => rfl
  | some N => exact layerNorm_primal ..

/-- The backward pass of a normalisation that may be there or not. -/
theorem finalNorm_adjoint (N : Option (LayerNorm (Dual R) d)) (X : Matrix (Dual R) n d)
    (dY : Matrix R n d) :
    let g := finalNormVjp sqrt ε (N.map LayerNorm.primal) X.primal dY
    Matrix.rate dY (finalNorm (Dual.root sqrt) (Dual.const ε) N X)
      = finalNormRate g.1 N + Matrix.rate g.2 X := by
  cases N with
  | none => exact (AddCommMonoid.zero_add _).symm
  | some N => exact layerNorm_adjoint ..

variable [Exponential R R] (scale : R) (normFirst : Bool)

private theorem encoderRows_primal (mask : Mask n n)
    (L : EncoderLayer (Dual R) d_model num_heads d d_ff) (X : Matrix (Dual R) n d_model) :
    (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask X).primal
      = (EncoderLayer.primal L).rows sqrt ε scale normFirst mask X.primal := by
  cases normFirst with
  | true => exact encoderLayer_primal ..
  | false => exact encoderLayer_postNorm_primal ..

private theorem encoderRows_adjoint (mask : Mask n n)
    (L : EncoderLayer (Dual R) d_model num_heads d d_ff) (X : Matrix (Dual R) n d_model)
    (dY : Matrix R n d_model) :
    let g := (EncoderLayer.primal L).rowsVjp sqrt ε scale normFirst mask X.primal dY
    Matrix.rate dY (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask X)
      = EncoderLayer.rate g.1 L + Matrix.rate g.2 X := by
  cases normFirst with
  | true => exact encoderLayer_adjoint ..
  | false => exact encoderLayer_postNorm_adjoint ..

private theorem decoderRows_primal (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer (Dual R) d_model num_heads d d_ff) (C : Matrix (Dual R) s d_model)
    (X : Matrix (Dual R) t d_model) :
    (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask crossMask C X).primal
      = (DecoderLayer.primal L).rows sqrt ε scale normFirst mask crossMask C.primal X.primal := by
  cases normFirst with
  | true => exact decoderLayer_primal ..
  | false => exact decoderLayer_postNorm_primal ..

private theorem decoderRows_adjoint (mask : Mask t t) (crossMask : Mask t s)
    (L : DecoderLayer (Dual R) d_model num_heads d d_ff) (C : Matrix (Dual R) s d_model)
    (X : Matrix (Dual R) t d_model) (dY : Matrix R t d_model) :
    let g := (DecoderLayer.primal L).rowsVjp sqrt ε scale normFirst mask crossMask C.primal
      X.primal dY
    Matrix.rate dY
        (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask crossMask C X)
      = DecoderLayer.rate g.parameters L + Matrix.rate g.dContext C + Matrix.rate g.dX X := by
  cases normFirst with
  | true => exact decoderLayer_adjoint ..
  | false => exact decoderLayer_postNorm_adjoint ..

private theorem encode_primal (mask : Mask n n)
    (layers : List (EncoderLayer (Dual R) d_model num_heads d d_ff))
    (norm : Option (LayerNorm (Dual R) d_model)) (X : Matrix (Dual R) n d_model) :
    (encodeNormed (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask layers norm
        X).primal
      = encodeNormed sqrt ε scale normFirst mask (layers.map EncoderLayer.primal)
        (norm.map LayerNorm.primal) X.primal := by
  induction layers generalizing X with
  | nil => exact finalNorm_primal ..
  | cons L layers ih =>
    have h := ih (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask X)
    rw [encoderRows_primal] at h
    exact h

/-- **encoder-backward**: the backward pass of the encoder, for any number of layers, normalised
before or after, with or without a normalisation behind them. -/
theorem encode_adjoint (mask : Mask n n)
    (layers : List (EncoderLayer (Dual R) d_model num_heads d d_ff))
    (norm : Option (LayerNorm (Dual R) d_model)) (X : Matrix (Dual R) n d_model)
    (dY : Matrix R n d_model) :
    let g := encodeVjp sqrt ε scale normFirst mask (norm.map LayerNorm.primal)
      (layers.map EncoderLayer.primal) X.primal dY
    Matrix.rate dY (encodeNormed (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask
        layers norm X)
      = layersRate EncoderLayer.rate g.1.1 layers + finalNormRate g.1.2 norm
        + Matrix.rate g.2 X := by
  induction layers generalizing X with
  | nil =>
    refine (finalNorm_adjoint sqrt ε norm X dY).trans ?_
    simp only [List.map_nil, encodeVjp, layersRate]
    grind
  | cons L layers ih =>
    intro g
    have h := ih (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask X)
    dsimp only at h
    rw [encoderRows_adjoint, encoderRows_primal] at h
    refine Eq.trans h ?_
    simp only [g, List.map_cons, encodeVjp, layersRate]
    grind

private theorem decode_primal (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer (Dual R) d_model num_heads d d_ff))
    (norm : Option (LayerNorm (Dual R) d_model))
    (C : Matrix (Dual R) s d_model) (X : Matrix (Dual R) t d_model) :
    (decodeNormed (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask crossMask
        layers norm C X).primal
      = decodeNormed sqrt ε scale normFirst mask crossMask (layers.map DecoderLayer.primal)
        (norm.map LayerNorm.primal) C.primal X.primal := by
  induction layers generalizing X with
  | nil => exact finalNorm_primal ..
  | cons L layers ih =>
    have h := ih
      (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask crossMask C X)
    rw [decoderRows_primal] at h
    exact h

/-- **decoder-backward**: the backward pass of the decoder, for any number of layers, normalised
before or after, each of which takes the encoder's output, with or without a normalisation behind
them. -/
theorem decode_adjoint (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer (Dual R) d_model num_heads d d_ff))
    (norm : Option (LayerNorm (Dual R) d_model))
    (C : Matrix (Dual R) s d_model) (X : Matrix (Dual R) t d_model) (dY : Matrix R t d_model) :
    let g := decodeVjp sqrt ε scale normFirst mask crossMask (norm.map LayerNorm.primal) C.primal
      (layers.map DecoderLayer.primal) X.primal dY
    Matrix.rate dY (decodeNormed (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask
        crossMask layers norm C X)
      = layersRate DecoderLayer.rate g.parameters.1 layers + finalNormRate g.parameters.2 norm
        + Matrix.rate g.dContext C + Matrix.rate g.dX X := by
  induction layers generalizing X with
  | nil =>
    intro g
    have h : Matrix.rate g.dContext C = 0 :=
      sumOver_eq_zero fun i _ => sumOver_eq_zero fun k _ => by
        simp only [g, List.map_nil, decodeVjp, Fin.getElem_fin, Vec.getElem_ofFn,
          Vec.getElem_zero, Semiring.zero_mul]
    rw [h]
    refine (finalNorm_adjoint sqrt ε norm X dY).trans ?_
    simp only [g, List.map_nil, decodeVjp, layersRate]
    grind
  | cons L layers ih =>
    intro g
    have h := ih
      (L.rows (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst mask crossMask C X)
    dsimp only at h
    rw [decoderRows_adjoint, decoderRows_primal] at h
    refine Eq.trans h ?_
    simp only [g, List.map_cons, decodeVjp, layersRate, addRows_rate]
    grind

/-! ## The whole -/

/-- The numbers of logits that change are the logits of the numbers. -/
theorem logits_primal {position : Nat → Vec R d_model}
    (T : Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff)
    (N : FinalNorms (Dual R) d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) :
    (T.logitsNormed (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst N
        (fun i => Vec.map Dual.const (position i)) sourceMask targetMask crossMask source
        target).primal
      = (Transformer.primal T).logitsNormed sqrt ε scale normFirst (FinalNorms.primal N) position
        sourceMask targetMask crossMask source target := by
  simp only [Spec.Transformer.logitsNormed, linear_primal, decode_primal,
    encode_primal, embedded_primal, Transformer.primal, FinalNorms.primal]

/-- **transformer-backward**: the backward pass of a transformer, wherever it normalises, gives the
rate that the gradient by its logits gives, at whatever rates all its parameters change. -/
theorem logits_adjoint {position : Nat → Vec R d_model}
    (T : Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff)
    (N : FinalNorms (Dual R) d_model) (sourceMask : Mask s s)
    (targetMask : Mask t t) (crossMask : Mask t s) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (dZ : Matrix R t t_vocab) :
    let g := (Transformer.primal T).logitsVjp sqrt ε scale normFirst (FinalNorms.primal N) position
      sourceMask targetMask crossMask source target dZ
    Matrix.rate dZ (T.logitsNormed (Dual.root sqrt) (Dual.const ε) (Dual.const scale) normFirst N
        (fun i => Vec.map Dual.const (position i)) sourceMask targetMask crossMask source target)
      = Transformer.rate g.1 T + FinalNorms.rate g.2 N := by
  intro g
  rw [Spec.Transformer.logitsNormed, linear_adjoint, decode_adjoint, encode_adjoint, embed_adjoint,
    embed_adjoint]
  simp only [g, Transformer.rate, FinalNorms.rate, Spec.Transformer.logitsVjp, Transformer.primal,
    FinalNorms.primal, decode_primal, encode_primal, embedded_primal]
  grind

end

/-! ## The loss of training -/

variable [NaturalExp R]

/-- **cross-entropy-backward**: softmax, less 1 at the token that comes next, weighted by the
gradients by the rows' losses. -/
theorem crossEntropy_adjoint (Z : Matrix (Dual R) n vocab) (y : Vector (Fin vocab) n)
    (dLoss : Vec R n) {L : Fin n → Dual R}
    (hL : ∀ i : Fin n, IsLogSumExp (Dual R) (some (L i)) (Z[i].toList.map some)) :
    sumOver (fun i : Fin n => dLoss[i] * (L i - Z[i][y[i]]).der) (List.finRange n)
      = Matrix.rate (crossEntropyVjp Z.primal y dLoss) Z := by
  refine sumOver_congr fun i _ => ?_
  have h := crossEntropy_rate Z[i] y[i] (hL i)
  rw [h, ← sumOver_mul_left]
  refine sumOver_congr fun k _ => ?_
  rw [← Semiring.mul_assoc]
  simp only [crossEntropyVjp, crossEntropyGradient, Fin.getElem_fin, Vec.getElem_ofFn,
    Vec.getElem_smul, Matrix.getElem_primal]
  rfl

end Attention.Proof
