module

public import Attention.Spec.TransformerCache
public import Attention.Vectors.NaturalGradient
public import Attention.Vectors.TransformerParameters

public section

/-! # One case of a transformer's layer, or of a stack of them: inputs, and bounds of the outcome

The Spec is run over intervals (`Attention.Model.Interval`), with the root of intervals. -/

namespace Attention.Vectors

open Spec Model

universe u

/-- The numbers that all layers of a stack share. -/
structure StackOptions where
  /-- Normalised before, not after. -/
  normFirst : Bool
  /-- The factor of every score; none: 1 / √head_dim. -/
  scale : Option Rat := none
  /-- The number that is added to a variance. -/
  ε : Rat := 1 / 65536

/-- A layer with its inputs. -/
inductive LayerInputs where
  /-- A linear layer. -/
  | linear {n d_in d_out : Nat} (W : Linear Rat d_in d_out) (X : Matrix Rat n d_in)
  /-- A layer normalisation. -/
  | layerNorm {n d : Nat} (ε : Rat) (N : LayerNorm Rat d) (X : Matrix Rat n d)
  /-- A feed-forward network. -/
  | feedForward {n d d_ff : Nat} (F : FeedForward Rat d d_ff) (X : Matrix Rat n d)
  /-- Multi-head attention of rows to themselves. -/
  | selfAttention {n d_model num_heads d : Nat} (scale : Option Rat) (mask : MaskKind)
      (W : MultiHead Rat d_model num_heads d) (X : Matrix Rat n d_model)
  /-- Multi-head attention to other rows; values: the rows that the values are made of, where they
  are not those of the keys. -/
  | crossAttention {n s d_model num_heads d : Nat} (scale : Option Rat) (mask : MaskKind)
      (W : MultiHead Rat d_model num_heads d) (X : Matrix Rat n d_model)
      (context : Matrix Rat s d_model) (values : Option (Matrix Rat s d_model))
  /-- A stack of encoder layers, and a normalisation at its end. -/
  | encoder {n d_model num_heads d d_ff : Nat} (options : StackOptions) (mask : MaskKind)
      (layers : List (EncoderLayer Rat d_model num_heads d d_ff))
      (norm : Option (LayerNorm Rat d_model)) (X : Matrix Rat n d_model)
  /-- A stack of decoder layers, and a normalisation at its end; cached: row by row. -/
  | decoder {s t d_model num_heads d d_ff : Nat} (options : StackOptions) (cached : Bool)
      (mask crossMask : MaskKind) (layers : List (DecoderLayer Rat d_model num_heads d d_ff))
      (norm : Option (LayerNorm Rat d_model)) (context : Matrix Rat s d_model)
      (X : Matrix Rat t d_model)

/-- Inputs of a layer, with the reason why they are worth testing. -/
structure LayerCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The layer and its inputs. -/
  inputs : LayerInputs

/-- Bounds of a matrix; an error if they are more than 2 ^ −90 apart. -/
@[expose] def narrowBounds {m n : Nat} (A : Matrix (Interval working) m n) :
    Except String RowBounds := do
  let rows ← boundsOf A
  if rows.all fun row => row.all fun (lo, hi) => hi - lo ≤ 2 ^ (published - 90) then return rows
  throw "bounds that are more than 2^-90 apart"

namespace LayerInputs

/-- Every number that is given. -/
@[expose] def numbers : LayerInputs → List Rat
  | linear W X => linearNumbers W ++ rowNumbers X
  | layerNorm ε N X => ε :: layerNormNumbers N ++ rowNumbers X
  | feedForward F X => feedForwardNumbers F ++ rowNumbers X
  | selfAttention scale _ W X => scale.toList ++ multiHeadNumbers W ++ rowNumbers X
  | crossAttention scale _ W X C V => scale.toList ++ multiHeadNumbers W ++ rowNumbers X
      ++ rowNumbers C ++ V.toList.flatMap rowNumbers
  | encoder options _ layers norm X => options.ε :: options.scale.toList
      ++ layers.flatMap encoderNumbers ++ norm.toList.flatMap layerNormNumbers ++ rowNumbers X
  | decoder options _ _ _ layers norm C X => options.ε :: options.scale.toList
      ++ layers.flatMap decoderNumbers ++ norm.toList.flatMap layerNormNumbers ++ rowNumbers C
      ++ rowNumbers X

/-- The name of the definition that is run. -/
def leanName (inputs : LayerInputs) : String :=
  "Attention.Spec." ++ match inputs with
    | linear .. => "Linear.rows"
    | layerNorm .. => "LayerNorm.rows"
    | feedForward .. => "FeedForward.rows"
    | selfAttention .. | crossAttention .. => "MultiHead.rows"
    | encoder options _ layers norm _ =>
      match options.normFirst, layers.length, norm with
      | true, 1, _ => "EncoderLayer.preNorm"
      | true, _, _ => "encode"
      | false, _, none => "EncoderLayer.postNorm"
      | false, _, some _ => "encodePostNorm"
    | decoder options cached _ _ layers norm _ _ =>
      match cached, options.normFirst, layers.length, norm with
      | true, _, _, _ => "decodeCached"
      | false, true, 1, _ => "DecoderLayer.preNorm"
      | false, true, _, _ => "decode"
      | false, false, _, none => "DecoderLayer.postNorm"
      | false, false, _, some _ => "decodePostNorm"

/-- How many rows the outcome has. -/
@[expose] def height : LayerInputs → Nat
  | linear (n := n) .. | layerNorm (n := n) .. | feedForward (n := n) ..
  | selfAttention (n := n) .. | crossAttention (n := n) .. | encoder (n := n) ..
  | decoder (t := n) .. => n

/-- How many numbers each row of the outcome has. -/
@[expose] def width : LayerInputs → Nat
  | linear (d_out := d) .. | layerNorm (d := d) .. | feedForward (d := d) ..
  | selfAttention (d_model := d) .. | crossAttention (d_model := d) ..
  | encoder (d_model := d) .. | decoder (d_model := d) .. => d

section
variable {R : Type u} {n s t d_model num_heads d d_ff : Nat}
variable [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Max R] [Exp R R]
variable (sqrt : R → R) (ε scale : R)

/-- The outcome of a stack of encoder layers; none if no definition of the Spec is of its form. -/
@[expose] def encoderValue (normFirst : Bool) (mask : Mask n n)
    (layers : List (EncoderLayer R d_model num_heads d d_ff))
    (norm : Option (LayerNorm R d_model)) (X : Matrix R n d_model) :
    Option (Matrix R n d_model) :=
  match normFirst, layers, norm with
  | true, [L], none => some (L.preNorm sqrt ε scale mask X)
  | true, layers, none => some (encode sqrt ε scale mask layers X)
  | false, [L], none => some (L.postNorm sqrt ε scale mask X)
  | false, layers, some N => some (encodePostNorm sqrt ε scale mask layers N X)
  | _, _, _ => none

/-- The outcome of a stack of decoder layers; none if no definition of the Spec is of its form. -/
@[expose] def decoderValue (normFirst cached : Bool) (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer R d_model num_heads d d_ff))
    (norm : Option (LayerNorm R d_model)) (context : Matrix R s d_model)
    (X : Matrix R t d_model) : Option (Matrix R t d_model) :=
  match cached, normFirst, layers, norm with
  | true, true, layers, none =>
    let visible : Fin s → Bool := fun j => (List.finRange t).all fun i => crossMask i j
    let rows := decodeCached sqrt ε scale visible layers context X.toList
    if h : rows.length = t then some ⟨rows.toArray, by simpa using h⟩ else none
  | false, true, [L], none => some (L.preNorm sqrt ε scale mask crossMask context X)
  | false, true, layers, none => some (decode sqrt ε scale mask crossMask layers context X)
  | false, false, [L], none => some (L.postNorm sqrt ε scale mask crossMask context X)
  | false, false, layers, some N =>
    some (decodePostNorm sqrt ε scale mask crossMask layers N context X)
  | _, _, _, _ => none

variable (number : Rat → R) (factor : Option Rat → Nat → R)

/-- The results of the Spec for the inputs, over any numbers. `number`: a dyadic number among them;
`factor`: the factor of the scores that is given, or that of a width. -/
@[expose] def value : (inputs : LayerInputs) → Option (Matrix R inputs.height inputs.width)
  | linear W X => some ((mapLinear number W).rows (mapRows number X))
  | layerNorm ε N X => some ((mapLayerNorm number N).rows sqrt (number ε) (mapRows number X))
  | feedForward F X => some ((mapFeedForward number F).rows (mapRows number X))
  | selfAttention (d := d) scale mask W X =>
    let X := mapRows number X
    some ((mapMultiHead number W).rows (factor scale d) mask.toMask X X X)
  | crossAttention (d := d) scale mask W X C V =>
    some ((mapMultiHead number W).rows (factor scale d) mask.toMask (mapRows number X)
      (mapRows number C) (mapRows number (V.getD C)))
  | encoder (d := d) options mask layers norm X =>
    encoderValue sqrt (number options.ε) (factor options.scale d) options.normFirst mask.toMask
      (layers.map (mapEncoder number)) (norm.map (mapLayerNorm number)) (mapRows number X)
  | decoder (d := d) options cached mask crossMask layers norm C X =>
    decoderValue sqrt (number options.ε) (factor options.scale d) options.normFirst cached
      mask.toMask crossMask.toMask (layers.map (mapDecoder number))
      (norm.map (mapLayerNorm number)) (mapRows number C) (mapRows number X)

end

/-- A decoder with a cache is causal, whatever mask it is given; so no other may be. -/
@[expose] def causalIfCached : LayerInputs → Bool
  | decoder _ true .causal _ _ _ _ _ => true
  | decoder _ cached _ _ _ _ _ _ => !cached
  | _ => true

/-- Runs the Spec over intervals. -/
@[expose] def run (inputs : LayerInputs) : Except String RowBounds := do
  checkExact inputs.numbers
  unless inputs.causalIfCached do throw "a decoder with a cache is causal"
  match inputs.value Interval.sqrt ofRat scaleOf with
  | some out => narrowBounds out
  | none => throw "no definition of the Spec is of this form"

end LayerInputs

end Attention.Vectors
