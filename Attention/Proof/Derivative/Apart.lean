module

public import Attention.Algebra.Sum
public import Attention.Proof.Derivative.Parameters

public section

/-! # Transformers that the derivatives are about

So that their suppositions are not idle: parameters may change at any rates, along straight lines;
and hidden units whose weights are 0 and whose biases are κ are κ away from 0 at every row, in
layers normalised before and after. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v w

variable {R : Type u} [OrderedField R] {ι : Type v}
variable {m n s t d d_in d_out s_vocab t_vocab d_model num_heads d_ff : Nat}

/-! ## Straight lines -/

/-- A number that changes at one rate. -/
theorem line_tangent (a : Dual R) :
    IsTangent (fun (_ : ι) t => a.val + t * a.der) fun _ => a := by
  have h := OrderedRing.zero_lt_one (R := R)
  have h₁ := mul_self_nonneg a.val
  have h₂ := mul_self_nonneg a.der
  have h₃ := mul_self_nonneg (a.val - 1)
  have h₄ := mul_self_nonneg (a.val + 1)
  have h₅ := mul_self_nonneg (a.der - 1)
  have h₆ := mul_self_nonneg (a.der + 1)
  have hB : 0 ≤ 1 + a.val * a.val + a.der * a.der := by grind
  refine ⟨1 + a.val * a.val + a.der * a.der, 1, h, fun _ => ⟨⟨by grind, by grind⟩,
    ⟨by grind, by grind⟩, fun t _ => ?_⟩⟩
  have e : a.val + t * a.der - a.val - t * a.der = 0 := by grind
  rw [e]
  exact AtMost.zero (OrderedRing.mul_nonneg hB (mul_self_nonneg t))

private theorem vec_line (a : Vec (Dual R) d) :
    ∃ v : R → Vec R d, VecTangent (fun (_ : ι) t => v t) fun _ => a :=
  ⟨fun t => Vec.map (fun c => c.val + t * c.der) a, fun j hj => by
    simp only [Vec.getElem_map]
    exact line_tangent _⟩

private theorem matrix_line (A' : Matrix (Dual R) m n) :
    ∃ A : R → Matrix R m n, MatrixTangent (fun (_ : ι) t => A t) fun _ => A' :=
  ⟨fun t => Vec.map (Vec.map fun c => c.val + t * c.der) A', fun i hi j hj => by
    simp only [Vec.getElem_map]
    exact line_tangent _⟩

private theorem linear_line (W' : Linear (Dual R) d_in d_out) :
    ∃ W : R → Linear R d_in d_out, LinearTangent (fun (_ : ι) t => W t) fun _ => W' :=
  have ⟨A, hA⟩ := matrix_line (ι := ι) W'.weight
  have ⟨b, hb⟩ := vec_line (ι := ι) W'.bias
  ⟨fun t => ⟨A t, b t⟩, hA, hb⟩

private theorem layerNorm_line (N' : LayerNorm (Dual R) d) :
    ∃ N : R → LayerNorm R d, LayerNormTangent (fun (_ : ι) t => N t) fun _ => N' :=
  have ⟨a, ha⟩ := vec_line (ι := ι) N'.gain
  have ⟨b, hb⟩ := vec_line (ι := ι) N'.bias
  ⟨fun t => ⟨a t, b t⟩, ha, hb⟩

private theorem feedForward_line (F' : FeedForward (Dual R) d d_ff) :
    ∃ F : R → FeedForward R d d_ff, FeedForwardTangent (fun (_ : ι) t => F t) fun _ => F' :=
  have ⟨A, hA⟩ := linear_line (ι := ι) F'.hidden
  have ⟨B, hB⟩ := linear_line (ι := ι) F'.output
  ⟨fun t => ⟨A t, B t⟩, hA, hB⟩

private theorem multiHead_line (W' : MultiHead (Dual R) d_model num_heads d) :
    ∃ W : R → MultiHead R d_model num_heads d,
      MultiHeadTangent (fun (_ : ι) t => W t) fun _ => W' :=
  have ⟨q, hq⟩ := linear_line (ι := ι) W'.query
  have ⟨k, hk⟩ := linear_line (ι := ι) W'.key
  have ⟨v, hv⟩ := linear_line (ι := ι) W'.value
  have ⟨o, ho⟩ := linear_line (ι := ι) W'.output
  ⟨fun t => ⟨q t, k t, v t, o t⟩, hq, hk, hv, ho⟩

private theorem encoderLayer_line (L' : EncoderLayer (Dual R) d_model num_heads d d_ff) :
    ∃ L : R → EncoderLayer R d_model num_heads d d_ff,
      EncoderLayerTangent (fun (_ : ι) t => L t) fun _ => L' :=
  have ⟨a, ha⟩ := multiHead_line (ι := ι) L'.attention
  have ⟨b, hb⟩ := layerNorm_line (ι := ι) L'.attentionNorm
  have ⟨f, hf⟩ := feedForward_line (ι := ι) L'.feedForward
  have ⟨g, hg⟩ := layerNorm_line (ι := ι) L'.feedForwardNorm
  ⟨fun t => ⟨a t, b t, f t, g t⟩, ha, hb, hf, hg⟩

private theorem decoderLayer_line (L' : DecoderLayer (Dual R) d_model num_heads d d_ff) :
    ∃ L : R → DecoderLayer R d_model num_heads d d_ff,
      DecoderLayerTangent (fun (_ : ι) t => L t) fun _ => L' :=
  have ⟨a, ha⟩ := multiHead_line (ι := ι) L'.attention
  have ⟨b, hb⟩ := layerNorm_line (ι := ι) L'.attentionNorm
  have ⟨c, hc⟩ := multiHead_line (ι := ι) L'.cross
  have ⟨e, he⟩ := layerNorm_line (ι := ι) L'.crossNorm
  have ⟨f, hf⟩ := feedForward_line (ι := ι) L'.feedForward
  have ⟨g, hg⟩ := layerNorm_line (ι := ι) L'.feedForwardNorm
  ⟨fun t => ⟨a t, b t, c t, e t, f t, g t⟩, ha, hb, hc, he, hf, hg⟩

omit [OrderedField R] in
private theorem layers_line {A A' : Type w} {P : (ι → R → A) → (ι → A') → Prop}
    (h : ∀ L', ∃ L : R → A, P (fun _ t => L t) fun _ => L') (layers' : List A') :
    ∃ layers : R → List A, LayersTangent P (fun _ t => layers t) fun _ => layers' := by
  let f := fun L' => Classical.choose (h L')
  refine ⟨fun t => layers'.map fun L' => f L' t,
    layers'.map fun L' => (fun _ t => f L' t, fun _ => L'), fun L hL => ?_, fun x t => ?_,
    fun x => ?_⟩
  · obtain ⟨L', _, rfl⟩ := List.mem_map.mp hL
    exact Classical.choose_spec (h L')
  · simp [List.map_map, Function.comp_def]
  · simp [List.map_map, Function.comp_def]

/-- Whatever numbers and rates the parameters of a transformer have, they change so on some path. -/
theorem exists_transformerTangent
    (T' : Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff) :
    ∃ T : R → Transformer R s_vocab t_vocab d_model num_heads d d_ff,
      TransformerTangent (fun (_ : ι) t => T t) fun _ => T' :=
  have ⟨a, ha⟩ := matrix_line (ι := ι) T'.source
  have ⟨b, hb⟩ := matrix_line (ι := ι) T'.target
  have ⟨e, he⟩ := layers_line (ι := ι) encoderLayer_line T'.encoder
  have ⟨f, hf⟩ := layers_line (ι := ι) decoderLayer_line T'.decoder
  have ⟨o, ho⟩ := linear_line (ι := ι) T'.output
  ⟨fun t => ⟨a t, b t, e t, f t, o t⟩, ha, hb, he, hf, ho⟩

private theorem finalNorm_line (N' : Option (LayerNorm (Dual R) d)) :
    ∃ N : R → Option (LayerNorm R d), FinalNormTangent (fun (_ : ι) t => N t) fun _ => N' := by
  cases N' with
  | none => exact ⟨fun _ => none, .inl ⟨fun _ _ => rfl, fun _ => rfl⟩⟩
  | some N' =>
    obtain ⟨N, hN⟩ := layerNorm_line (ι := ι) N'
    exact ⟨fun t => some (N t), .inr ⟨_, _, hN, fun _ _ => rfl, fun _ => rfl⟩⟩

/-- So do the normalisations behind encoder and decoder, if there are such. -/
theorem exists_finalNormsTangent (N' : FinalNorms (Dual R) d_model) :
    ∃ N : R → FinalNorms R d_model, FinalNormsTangent (fun (_ : ι) t => N t) fun _ => N' :=
  have ⟨a, ha⟩ := finalNorm_line (ι := ι) N'.encoder
  have ⟨b, hb⟩ := finalNorm_line (ι := ι) N'.decoder
  ⟨fun t => ⟨a t, b t⟩, ha, hb⟩

/-! ## Hidden units -/

/-- A network whose hidden units have weights 0 and biases κ. -/
theorem feedForwardApart_of_bias {κ : R} (F : FeedForward R d d_ff)
    (hw : ∀ (j : Fin d_ff) (k : Fin d), F.hidden.weight[j][k] = 0)
    (hb : ∀ j : Fin d_ff, F.hidden.bias[j] = κ) (r : Vec R d) : FeedForwardApart κ F r := by
  intro j
  have e : (F.hidden.row r)[j] = 0 + κ := by
    simp only [Linear.row, Fin.getElem_fin, Vec.getElem_ofFn]
    rw [show F.hidden.bias[j.val] = κ from hb j]
    refine congrArg (· + κ) (sumOver_eq_zero fun k _ => ?_)
    rw [show F.hidden.weight[j.val][k] = 0 from hw j k]
    grind
  rw [e]
  grind

variable [NaturalExp R] {κ : R} {sqrt : R → R} {ε scale : R} {normFirst : Bool}

/-- Layers that are away from 0 whatever the rows, one after another. -/
theorem encodeApart_of_layers {mask : Mask n n}
    {layers : List (EncoderLayer R d_model num_heads d d_ff)}
    (h : ∀ L ∈ layers, ∀ r, FeedForwardApart κ L.feedForward r) (X : Matrix R n d_model) :
    EncodeApart κ sqrt ε scale normFirst mask layers X := by
  induction layers generalizing X with
  | nil => trivial
  | cons L layers ih =>
    refine ⟨?_, ih (fun M hM => h M (by simp [hM])) _⟩
    cases normFirst <;> exact fun i => h L (by simp) _

/-- Those of a decoder. -/
theorem decodeApart_of_layers {mask : Mask t t} {crossMask : Mask t s} {C : Matrix R s d_model}
    {layers : List (DecoderLayer R d_model num_heads d d_ff)}
    (h : ∀ L ∈ layers, ∀ r, FeedForwardApart κ L.feedForward r) (X : Matrix R t d_model) :
    DecodeApart κ sqrt ε scale normFirst mask crossMask C layers X := by
  induction layers generalizing X with
  | nil => trivial
  | cons L layers ih =>
    refine ⟨?_, ih (fun M hM => h M (by simp [hM])) _⟩
    cases normFirst <;> exact fun i => h L (by simp) _

/-- A transformer of such layers, whatever else its parameters are. -/
theorem transformerApart_of_layers {norms : FinalNorms R d_model} {position : Nat → Vec R d_model}
    {sourceMask : Mask s s} {targetMask : Mask t t} {crossMask : Mask t s}
    {T : Transformer R s_vocab t_vocab d_model num_heads d d_ff}
    (hE : ∀ L ∈ T.encoder, ∀ r, FeedForwardApart κ L.feedForward r)
    (hD : ∀ L ∈ T.decoder, ∀ r, FeedForwardApart κ L.feedForward r)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) :
    TransformerApart κ sqrt ε scale normFirst norms position sourceMask targetMask crossMask T
      source target :=
  ⟨encodeApart_of_layers hE _, decodeApart_of_layers hD _⟩

end Attention.Proof
