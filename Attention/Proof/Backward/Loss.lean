module

public import Attention.Proof.Backward.Transformer

public section

/-! # The gradient of training

Parameters on any paths: the loss changes at the rate that its gradient gives. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v w

variable {R : Type u} [OrderedField R] {ι : Type v}
variable {n m s t d d_in d_out d_model num_heads d_ff s_vocab t_vocab : Nat}

/-! ## At time 0, parameters on paths are the numbers of their tangents -/

private theorem vec_start {v : ι → R → Vec R d} {a : ι → Vec (Dual R) d} (h : VecTangent v a)
    (x : ι) : (a x).primal = v x 0 :=
  Vector.ext fun j hj => (Vec.getElem_primal ..).trans ((h j hj).val_eq x).symm

private theorem matrix_start {A : ι → R → Matrix R m n} {A' : ι → Matrix (Dual R) m n}
    (h : MatrixTangent A A') (x : ι) : (A' x).primal = A x 0 :=
  Vector.ext fun i hi => (Matrix.getElem_primal ..).trans (vec_start (h i hi) x)

private theorem linear_start {W : ι → R → Linear R d_in d_out}
    {W' : ι → Linear (Dual R) d_in d_out} (h : LinearTangent W W') (x : ι) :
    Linear.primal (W' x) = W x 0 := by
  rw [Linear.primal, matrix_start h.1 x, vec_start h.2 x]

private theorem layerNorm_start {N : ι → R → LayerNorm R d} {N' : ι → LayerNorm (Dual R) d}
    (h : LayerNormTangent N N') (x : ι) : LayerNorm.primal (N' x) = N x 0 := by
  rw [LayerNorm.primal, vec_start h.1 x, vec_start h.2 x]

private theorem feedForward_start {F : ι → R → FeedForward R d d_ff}
    {F' : ι → FeedForward (Dual R) d d_ff} (h : FeedForwardTangent F F') (x : ι) :
    FeedForward.primal (F' x) = F x 0 := by
  rw [FeedForward.primal, linear_start h.1 x, linear_start h.2 x]

private theorem multiHead_start {W : ι → R → MultiHead R d_model num_heads d}
    {W' : ι → MultiHead (Dual R) d_model num_heads d} (h : MultiHeadTangent W W') (x : ι) :
    MultiHead.primal (W' x) = W x 0 := by
  rw [MultiHead.primal, linear_start h.query x, linear_start h.key x, linear_start h.value x,
    linear_start h.output x]

private theorem encoderLayer_start {L : ι → R → EncoderLayer R d_model num_heads d d_ff}
    {L' : ι → EncoderLayer (Dual R) d_model num_heads d d_ff} (h : EncoderLayerTangent L L')
    (x : ι) : EncoderLayer.primal (L' x) = L x 0 := by
  rw [EncoderLayer.primal, multiHead_start h.attention x, layerNorm_start h.attentionNorm x,
    feedForward_start h.feedForward x, layerNorm_start h.feedForwardNorm x]

private theorem decoderLayer_start {L : ι → R → DecoderLayer R d_model num_heads d d_ff}
    {L' : ι → DecoderLayer (Dual R) d_model num_heads d d_ff} (h : DecoderLayerTangent L L')
    (x : ι) : DecoderLayer.primal (L' x) = L x 0 := by
  rw [DecoderLayer.primal, multiHead_start h.attention x, layerNorm_start h.attentionNorm x,
    multiHead_start h.cross x, layerNorm_start h.crossNorm x, feedForward_start h.feedForward x,
    layerNorm_start h.feedForwardNorm x]

private theorem layers_start {A A' : Type w} {P : (ι → R → A) → (ι → A') → Prop} {f : A' → A}
    (hP : ∀ {L L'}, P L L' → ∀ x, f (L' x) = L x 0) {layers : ι → R → List A}
    {layers' : ι → List A'} (h : LayersTangent P layers layers') (x : ι) :
    (layers' x).map f = layers x 0 := by
  obtain ⟨Ls, h, e, e'⟩ := h
  rw [e, e', List.map_map]
  exact List.map_congr_left fun L hL => hP (h L hL) x

/-- The numbers of a transformer's parameters, which change, are its parameters at time 0. -/
theorem transformer_start
    {T : ι → R → Transformer R s_vocab t_vocab d_model num_heads d d_ff}
    {T' : ι → Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff}
    (h : TransformerTangent T T') (x : ι) : Transformer.primal (T' x) = T x 0 := by
  rw [Transformer.primal, matrix_start h.source x, matrix_start h.target x,
    layers_start encoderLayer_start h.encoder x, layers_start decoderLayer_start h.decoder x,
    linear_start h.output x]

private theorem finalNorm_start {N : ι → R → Option (LayerNorm R d)}
    {N' : ι → Option (LayerNorm (Dual R) d)} (h : FinalNormTangent N N') (x : ι) :
    (N' x).map LayerNorm.primal = N x 0 := by
  rcases h with ⟨h, h'⟩ | ⟨M, M', hM, h, h'⟩
  · rw [h, h']; rfl
  · rw [h, h', Option.map_some, layerNorm_start hM x]

/-- So are those of the normalisations at the ends of encoder and decoder. -/
theorem finalNorms_start {N : ι → R → FinalNorms R d_model} {N' : ι → FinalNorms (Dual R) d_model}
    (h : FinalNormsTangent N N') (x : ι) : FinalNorms.primal (N' x) = N x 0 := by
  rw [FinalNorms.primal, finalNorm_start h.encoder x, finalNorm_start h.decoder x]

/-! ## The loss -/

variable [NaturalExp R]
variable {sqrt : R → R} (hsqrt : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) {ε : R} (hε : 0 < ε)
include hsqrt hε

/-- **transformer-gradient**: where all parameters of a transformer change, layers normalised before
or after, and with or without normalisations behind encoder and decoder, the sum of the
cross-entropies of its logits with the tokens `y` that come next, weighted by `dLoss`, changes at
the rate that its gradient by all parameters gives, if no hidden unit is less than κ away from 0
before it is rectified. -/
theorem transformer_gradient {position : Nat → Vec R d_model} {scale : R}
    {T : ι → R → Transformer R s_vocab t_vocab d_model num_heads d d_ff}
    {T' : ι → Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff}
    (hT : TransformerTangent T T') {N : ι → R → FinalNorms R d_model}
    {N' : ι → FinalNorms (Dual R) d_model} (hN : FinalNormsTangent N N') (normFirst : Bool)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (source : Vector (Fin s_vocab) s) (target y : Vector (Fin t_vocab) t)
    (dLoss : Vec R t) {κ : R} (hκ : 0 < κ)
    (hapart : ∀ x, TransformerApart κ sqrt ε scale normFirst (N x 0) position sourceMask targetMask
      crossMask (T x 0) source target)
    {L : ι → R → Fin t → R} (hL : ∀ x τ (i : Fin t), IsLogSumExp R (some (L x τ i))
      (((T x τ).logitsNormed sqrt ε scale normFirst (N x τ) position sourceMask targetMask crossMask
        source target)[i].toList.map some)) :
    let loss := fun x τ => sumOver (fun i : Fin t => dLoss[i] * (L x τ i
      - ((T x τ).logitsNormed sqrt ε scale normFirst (N x τ) position sourceMask targetMask
        crossMask source target)[i][y[i]])) (List.finRange t)
    let g := fun x => (T x 0).lossVjp sqrt ε scale normFirst (N x 0) position sourceMask targetMask
      crossMask source target y dLoss
    IsTangent loss fun x =>
      ⟨loss x 0, Transformer.rate (g x).1 (T' x) + FinalNorms.rate (g x).2 (N' x)⟩ := by
  intro loss g
  let Z' := fun x => (T' x).logitsNormed (Dual.root sqrt) (Dual.const ε) (Dual.const scale)
    normFirst (N' x) (fun i => Vec.map Dual.const (position i)) sourceMask targetMask crossMask
    source target
  have hZ := transformer_tangent hsqrt hε (.const scale) hT hN normFirst sourceMask targetMask
    crossMask source target hκ hapart
  have hstart := fun x => matrix_start hZ x
  let L' := fun x (i : Fin t) => (⟨L x 0 i, meanTangent ((Z' x)[i].toList.map some)⟩ : Dual R)
  have hL' : ∀ x i, IsLogSumExp (Dual R) (some (L' x i)) ((Z' x)[i].toList.map some) :=
    fun x i => by
      refine isLogSumExp_dual (L := some (L x 0 i)) ?_
      have h := hL x 0 i
      rw [← hstart x, Fin.getElem_fin, Matrix.getElem_primal] at h
      have e : ((Z' x)[i].toList.map some).map primal
          = (Vec.primal (Z' x)[i]).toList.map some := by
        simp [Vec.primal, Vec.map, primal, List.map_map, Function.comp_def]
      rw [e]
      exact h
  have h : IsTangent loss fun x => sumOver (fun i : Fin t => Dual.const dLoss[i]
      * (L' x i - (Z' x)[i][y[i]])) (List.finRange t) :=
    IsTangent.sumOver fun i _ => (IsTangent.const dLoss[i]).mul
      (crossEntropy_tangent (hZ i.val i.isLt) y[i] (fun x τ => hL x τ i) fun x => hL' x i)
  have e : (fun x => (⟨loss x 0,
      Transformer.rate (g x).1 (T' x) + FinalNorms.rate (g x).2 (N' x)⟩ : Dual R))
      = fun x => sumOver (fun i : Fin t => Dual.const dLoss[i] * (L' x i - (Z' x)[i][y[i]]))
        (List.finRange t) := funext fun x => by
    refine Dual.ext (h.val_eq x) ?_
    have hce := crossEntropy_adjoint (Z' x) y dLoss (hL' x)
    rw [logits_adjoint, logits_primal, transformer_start hT x, finalNorms_start hN x] at hce
    rw [Dual.der_sumOver]
    refine hce.symm.trans (sumOver_congr fun i _ => ?_)
    rw [Dual.der_mul, Dual.der_const, Dual.val_const, Semiring.zero_mul, AddCommMonoid.zero_add]
  rw [e]
  exact h

end Attention.Proof
