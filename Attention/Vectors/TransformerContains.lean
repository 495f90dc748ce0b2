module

public import Attention.Proof.Enclosure.TransformerCache
public import Attention.Vectors.BoundsSound
public import Attention.Vectors.TransformerCase

public section

/-! # What the transformer's vectors are made of contains what is true

The same definitions, over the intervals of the inputs and over the inputs themselves: the first
contain the second. -/

namespace Attention.Vectors

open Spec Model Proof

universe u

variable {R : Type u} [OrderedField R] {number : Rat → R}
variable {m n d d_in d_out d_model num_heads d_ff s_vocab t_vocab s t : Nat}

/-! ## Parameters -/

theorem AllContain.rows {X : Matrix Rat m n} (h : AllContain number (rowNumbers X)) :
    MatrixContains (mapRows ofRat X) (mapRows number X) := by
  intro i hi
  rw [mapRows, mapRows, Vec.getElem_map, Vec.getElem_map]
  exact AllContain.vec fun q hq => h q (List.mem_flatMap.mpr ⟨X[i], by simp, hq⟩)

theorem AllContain.linear {W : Linear Rat d_in d_out} (h : AllContain number (linearNumbers W)) :
    LinearContains (mapLinear ofRat W) (mapLinear number W) :=
  ⟨h.left.rows, h.right.vec⟩

theorem AllContain.layerNorm {N : LayerNorm Rat d} (h : AllContain number (layerNormNumbers N)) :
    LayerNormContains (mapLayerNorm ofRat N) (mapLayerNorm number N) :=
  ⟨h.left.vec, h.right.vec⟩

theorem AllContain.feedForward {F : FeedForward Rat d d_ff}
    (h : AllContain number (feedForwardNumbers F)) :
    FeedForwardContains (mapFeedForward ofRat F) (mapFeedForward number F) :=
  ⟨h.left.linear, h.right.linear⟩

theorem AllContain.multiHead {W : MultiHead Rat d_model num_heads d}
    (h : AllContain number (multiHeadNumbers W)) :
    MultiHeadContains (mapMultiHead ofRat W) (mapMultiHead number W) :=
  ⟨h.left.left.left.linear, h.left.left.right.linear, h.left.right.linear, h.right.linear⟩

theorem AllContain.encoder {L : EncoderLayer Rat d_model num_heads d d_ff}
    (h : AllContain number (encoderNumbers L)) :
    EncoderLayerContains (mapEncoder ofRat L) (mapEncoder number L) :=
  ⟨h.left.left.left.multiHead, h.left.left.right.layerNorm, h.left.right.feedForward,
    h.right.layerNorm⟩

theorem AllContain.decoder {L : DecoderLayer Rat d_model num_heads d d_ff}
    (h : AllContain number (decoderNumbers L)) :
    DecoderLayerContains (mapDecoder ofRat L) (mapDecoder number L) :=
  ⟨h.left.left.left.left.left.multiHead, h.left.left.left.left.right.layerNorm,
    h.left.left.left.right.multiHead, h.left.left.right.layerNorm, h.left.right.feedForward,
    h.right.layerNorm⟩

private theorem pointwise_map {α β γ : Type _} {P : β → γ → Prop} {f : α → β} {g : α → γ} :
    ∀ {xs : List α}, (∀ x ∈ xs, P (f x) (g x)) → Pointwise P (xs.map f) (xs.map g)
  | [], _ => trivial
  | _ :: _, h => ⟨h _ (List.mem_cons_self ..),
      pointwise_map fun x hx => h x (List.mem_cons_of_mem _ hx)⟩

theorem AllContain.encoders {layers : List (EncoderLayer Rat d_model num_heads d d_ff)}
    (h : AllContain number (layers.flatMap encoderNumbers)) :
    Pointwise EncoderLayerContains (layers.map (mapEncoder ofRat))
      (layers.map (mapEncoder number)) :=
  pointwise_map fun L hL => AllContain.encoder fun q hq =>
    h q (List.mem_flatMap.mpr ⟨L, hL, hq⟩)

theorem AllContain.decoders {layers : List (DecoderLayer Rat d_model num_heads d d_ff)}
    (h : AllContain number (layers.flatMap decoderNumbers)) :
    Pointwise DecoderLayerContains (layers.map (mapDecoder ofRat))
      (layers.map (mapDecoder number)) :=
  pointwise_map fun L hL => AllContain.decoder fun q hq =>
    h q (List.mem_flatMap.mpr ⟨L, hL, hq⟩)

theorem AllContain.transformer
    {T : Transformer Rat s_vocab t_vocab d_model num_heads d d_ff}
    (h : AllContain number (transformerNumbers T)) :
    TransformerContains (mapTransformer ofRat T) (mapTransformer number T) :=
  ⟨h.left.left.left.left.rows, h.left.left.left.right.rows, h.left.left.right.encoders,
    h.left.right.decoders, h.right.linear⟩

/-! ## Outcomes -/

section
variable [NaturalExp R] {root : R → R} (hroot : Interval.IsSqrt root)
variable {ε' scale' : Interval working} {ε scale : R}
variable (hε : ε'.Contains ε) (hscale : scale'.Contains scale)

/-- Neither is there, or the matrix of intervals contains the matrix. -/
@[expose] def OutcomeContains :
    Option (Matrix (Interval working) m n) → Option (Matrix R m n) → Prop
  | none, none => True
  | some X', some X => MatrixContains X' X
  | _, _ => False

/-- Both normalisations are absent, or the one of intervals contains the other. -/
@[expose] def NormContains :
    Option (LayerNorm (Interval working) d) → Option (LayerNorm R d) → Prop
  | none, none => True
  | some N', some N => LayerNormContains N' N
  | _, _ => False

omit [NaturalExp R] in
private theorem NormContains.cases {norm' : Option (LayerNorm (Interval working) d)}
    {norm : Option (LayerNorm R d)} (h : NormContains norm' norm) :
    norm' = none ∧ norm = none
      ∨ ∃ N' N, LayerNormContains N' N ∧ norm' = some N' ∧ norm = some N :=
  match norm', norm, h with
  | none, none, _ => .inl ⟨rfl, rfl⟩
  | some _, some _, h => .inr ⟨_, _, h, rfl, rfl⟩

private theorem pointwise_cases {α β : Type _} {P : α → β → Prop} {as : List α} {bs : List β}
    (h : Pointwise P as bs) :
    as = [] ∧ bs = [] ∨ (∃ a b, P a b ∧ as = [a] ∧ bs = [b])
      ∨ ∃ a a' as' b b' bs', as = a :: a' :: as' ∧ bs = b :: b' :: bs' :=
  match as, bs, h with
  | [], [], _ => .inl ⟨rfl, rfl⟩
  | [_], [_], h => .inr (.inl ⟨_, _, h.1, rfl, rfl⟩)
  | _ :: _ :: _, _ :: _ :: _, _ => .inr (.inr ⟨_, _, _, _, _, _, rfl, rfl⟩)

include hroot hε hscale

/-- The outcome of a stack of encoder layers. -/
theorem contains_encoderValue (normFirst : Bool) (mask : Mask n n)
    {layers' : List (EncoderLayer (Interval working) d_model num_heads d d_ff)}
    {layers : List (EncoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise EncoderLayerContains layers' layers)
    {norm' : Option (LayerNorm (Interval working) d_model)} {norm : Option (LayerNorm R d_model)}
    (hN : NormContains norm' norm)
    {X' : Matrix (Interval working) n d_model} {X : Matrix R n d_model}
    (hX : MatrixContains X' X) :
    OutcomeContains
      (LayerInputs.encoderValue Interval.sqrt ε' scale' normFirst mask layers' norm' X')
      (LayerInputs.encoderValue root ε scale normFirst mask layers norm X) := by
  have before := contains_encode hroot hε hscale mask hL hX
  have after := fun N' N (h : LayerNormContains N' N) =>
    contains_encodePostNorm hroot hε hscale mask hL h hX
  obtain ⟨rfl, rfl⟩ | ⟨_, _, hN, rfl, rfl⟩ := hN.cases
  · obtain ⟨rfl, rfl⟩ | ⟨_, _, h, rfl, rfl⟩ | ⟨_, _, _, _, _, _, rfl, rfl⟩ := pointwise_cases hL
    · cases normFirst with
      | true => exact before
      | false => trivial
    · have h := encoderLayer_enclosed hroot hε hscale h mask hX
      cases normFirst with
      | true => exact h.1
      | false => exact h.2
    · cases normFirst with
      | true => exact before
      | false => trivial
  · have after := after _ _ hN
    obtain ⟨rfl, rfl⟩ | ⟨_, _, _, rfl, rfl⟩ | ⟨_, _, _, _, _, _, rfl, rfl⟩ :=
      pointwise_cases hL <;>
      cases normFirst with
      | true => trivial
      | false => exact after

/-- The outcome of a stack of decoder layers. -/
theorem contains_decoderValue (normFirst cached : Bool) (mask : Mask t t) (crossMask : Mask t s)
    {layers' : List (DecoderLayer (Interval working) d_model num_heads d d_ff)}
    {layers : List (DecoderLayer R d_model num_heads d d_ff)}
    (hL : Pointwise DecoderLayerContains layers' layers)
    {norm' : Option (LayerNorm (Interval working) d_model)} {norm : Option (LayerNorm R d_model)}
    (hN : NormContains norm' norm)
    {C' : Matrix (Interval working) s d_model} {C : Matrix R s d_model} (hC : MatrixContains C' C)
    {X' : Matrix (Interval working) t d_model} {X : Matrix R t d_model}
    (hX : MatrixContains X' X) :
    OutcomeContains
      (LayerInputs.decoderValue Interval.sqrt ε' scale' normFirst cached mask crossMask layers'
        norm' C' X')
      (LayerInputs.decoderValue root ε scale normFirst cached mask crossMask layers norm C X) := by
  have before := contains_decode hroot hε hscale mask crossMask hL hC hX
  have after := fun N' N (h : LayerNormContains N' N) =>
    contains_decodePostNorm hroot hε hscale mask crossMask hL h hC hX
  match cached with
  | true =>
    match norm', norm, hN, normFirst with
    | none, none, _, true =>
      have h := decodeCached_enclosed hroot hε hscale
        (fun j => (List.finRange t).all fun i => crossMask i j) hL hC (rows' := X'.toList)
        (rows := X.toList) (.of_getElem (by simp) fun i hi _ => by
          rw [Vector.getElem_toList, Vector.getElem_toList]
          exact hX i (by simpa using hi))
      have len := h.length_eq
      simp only [LayerInputs.decoderValue]
      split
      · next ht =>
        rw [dif_pos (len.symm.trans ht)]
        intro i hi
        simp only [Vector.getElem_mk, List.getElem_toArray]
        exact h.getElem _ _
      · next ht =>
        rw [dif_neg fun e => ht (len.trans e)]
        trivial
    | none, none, _, false => trivial
    | some _, some _, _, true => trivial
    | some _, some _, _, false => trivial
  | false =>
    obtain ⟨rfl, rfl⟩ | ⟨_, _, hN, rfl, rfl⟩ := hN.cases
    · obtain ⟨rfl, rfl⟩ | ⟨_, _, h, rfl, rfl⟩ | ⟨_, _, _, _, _, _, rfl, rfl⟩ := pointwise_cases hL
      · cases normFirst with
        | true => exact before
        | false => trivial
      · have h := decoderLayer_enclosed hroot hε hscale h mask crossMask hC hX
        cases normFirst with
        | true => exact h.1
        | false => exact h.2
      · cases normFirst with
        | true => exact before
        | false => trivial
    · have after := after _ _ hN
      obtain ⟨rfl, rfl⟩ | ⟨_, _, _, rfl, rfl⟩ | ⟨_, _, _, _, _, _, rfl, rfl⟩ :=
        pointwise_cases hL <;>
        cases normFirst with
        | true => trivial
        | false => exact after

end

theorem AllContain.norm {norm : Option (LayerNorm Rat d)}
    (h : AllContain number (norm.toList.flatMap layerNormNumbers)) :
    NormContains (norm.map (mapLayerNorm ofRat)) (norm.map (mapLayerNorm number)) := by
  cases norm with
  | none => trivial
  | some N => exact AllContain.layerNorm (by simpa using h)

end Attention.Vectors
