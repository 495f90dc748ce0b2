module

public import Attention.Vectors.TransformerLayerFamilies

public section

/-! # The families of a transformer's layers, and of stacks of them -/

namespace Attention.Vectors

open Spec

/-- Sizes of a layer: rows, heads, width of a head, hidden units; d_model is the width of all heads
together. -/
abbrev LayerSizes := Nat × Nat × Nat × Nat

/-- Sizes of a layer as text. -/
def layerSizesText : LayerSizes → String
  | (n, num_heads, d, d_ff) =>
    s!"{n} rows of {num_heads * d} numbers, {num_heads} heads, {d_ff} hidden units"

/-- Where a layer is normalised, as text. -/
def orderText (normFirst : Bool) : String := if normFirst then "pre-norm" else "post-norm"

/-- The causal mask, less the keys that are padding. -/
def causalPadded (valid : List Bool) : MaskKind :=
  maskWhere valid.length valid.length fun i j => j ≤ i && valid[j]!

/-- A drawn stack of `count` encoder layers on random rows; the normalisation at the end is there if
`final`. -/
def encoderCase (reason : String) (options : StackOptions) (final : Bool) (count : Nat)
    (sizes : LayerSizes) (mask : MaskKind := .none) : Gen LayerCase := do
  let (n, num_heads, d, d_ff) := sizes
  let layers ← draws (drawEncoder (num_heads * d) num_heads d d_ff) count
  let norm ← if final then some <$> drawLayerNorm (num_heads * d) else pure none
  return { reason := s!"{orderText options.normFirst}, {reason}; {maskText mask}; \
             {layerSizesText sizes}"
           inputs := .encoder options mask layers norm (← drawRows n (num_heads * d)) }

/-- A drawn stack of `count` decoder layers on random rows, with `s` rows of context. -/
def decoderCase (reason : String) (options : StackOptions) (cached final : Bool) (count s : Nat)
    (sizes : LayerSizes) (mask crossMask : MaskKind) : Gen LayerCase := do
  let (t, num_heads, d, d_ff) := sizes
  let layers ← draws (drawDecoder (num_heads * d) num_heads d d_ff) count
  let norm ← if final then some <$> drawLayerNorm (num_heads * d) else pure none
  let context ← drawRows s (num_heads * d)
  return { reason := s!"{orderText options.normFirst}, {reason}; to itself {maskText mask}, to \
             {s} rows of context {maskText crossMask}; {layerSizesText sizes}"
           inputs := .decoder options cached mask crossMask layers norm context
             (← drawRows t (num_heads * d)) }

/-! ## One layer -/

/-- Two cases for each entry, which begins with their name: normalised before, and after. -/
def bothOrders {α : Type} (entries : List (String × α)) (make : String × α → Bool → Gen LayerCase) :
    List (Named LayerCase) :=
  entries.flatMap fun entry => [true, false].map fun normFirst =>
    ⟨s!"{orderText normFirst}, {entry.1}", make entry normFirst⟩

/-- A post-norm layer whose parts add nothing to rows that hardly vary. -/
def flatEncoder (ε : Rat) : Gen LayerCase := do
  let L ← drawEncoder 4 2 2 3
  let L := { L with
    attention.output := ⟨Vec.ofFn fun _ => Vec.zero, Vec.zero⟩
    feedForward.output := ⟨Vec.ofFn fun _ => Vec.zero, Vec.zero⟩ }
  let X := givenRows 3 4 [[1, 1, 129 / 128, 1], [-1, -1, -1, -127 / 128], [2, 2, 2, 2]]
  return { reason := s!"post-norm, attention and feed-forward network add nothing: the row is \
             normalised twice, first with a variance near or below eps = {ε}, or of 0"
           inputs := .encoder { normFirst := false, ε } .none [L] none X }

/-- One encoder layer. -/
def encoderLayers : Family LayerCase where
  name := "encoder-layer"
  about := "An encoder layer, normalised before or after: the other order, a residual of the \
    normalised row, the two normalisations exchanged, or a mask that is dropped shows."
  theoremId := "encoder-layer-enclosed"
  cases :=
    let drawn := bothOrders [
      ("one row: it attends to itself alone", (1, 2, 2, 3), .none, none),
      ("the residual is of the input: of its normalisation it shows", (3, 2, 2, 4), .none, none),
      ("four heads of two numbers", (4, 4, 2, 5), .none, none),
      ("one head", (3, 1, 3, 4), .none, none),
      ("heads of one number, with a scale of their own", (2, 3, 1, 9), .none, some (1 / 2 : Rat)),
      ("padding: a mask that is dropped or inverted shows", (4, 2, 2, 3),
        .keyPadding [true, true, false, true], none),
      ("padding at the end", (6, 2, 3, 4), .keyLength 3, none),
      ("every key is padding: attention adds the bias of its output", (2, 2, 2, 3), .keyLength 0,
        none)]
      fun (reason, sizes, mask, scale) normFirst =>
        encoderCase reason { normFirst, scale } false 1 sizes mask
    drawn ++ each "flat" [1 / 65536, 1 / 1024] flatEncoder

/-- One decoder layer. -/
def decoderLayers : Family LayerCase where
  name := "decoder-layer"
  about := "A decoder layer, normalised before or after: without the causal mask, with the two \
    masks exchanged, with a context that is normalised or attended to in another order, it shows."
  theoremId := "decoder-layer-enclosed"
  cases := bothOrders [
      ("one row and one row of context", 1, (1, 2, 2, 3), .causal, .none),
      ("the context is not normalised: normalised it shows", 3, (2, 2, 2, 3), .causal, .none),
      ("without the causal mask the first rows show it", 2, (5, 2, 2, 4), .causal, .none),
      ("as many rows as of context: attention to the wrong ones, or with the other mask, shows", 4,
        (4, 2, 2, 3), .causal, .keyPadding [false, true, true, false]),
      ("padding at the end of the context", 6, (3, 3, 2, 5), .causal, .keyLength 2),
      ("all of the context is padding: its attention adds the bias of its output", 3,
        (2, 1, 4, 3), .causal, .keyLength 0),
      ("padding among the targets: causal and padding hold together", 3, (4, 2, 2, 3),
        causalPadded [true, false, true, true], .none),
      ("padding before the targets: the first rows see nothing", 2, (4, 2, 2, 3),
        causalPadded [false, false, true, true], .keyPadding [true, false])]
    fun (reason, s, sizes, mask, crossMask) normFirst =>
      decoderCase reason { normFirst } false false 1 s sizes mask crossMask

/-! ## Stacks -/

/-- Stacks of encoder layers. -/
def encoderStacks : Family LayerCase where
  name := "encoder-stack"
  about := "Encoder layers one after another: with the parameters of another layer, one layer \
    left out, or the normalisation at the end left out or added, it shows."
  theoremId := "encoder-enclosed"
  cases :=
    let before := eachNamed [
      ("two layers: the first one's parameters twice show", 2, (3, 2, 2, 3), .none),
      ("two layers: a mask that only the first has shows", 2, (4, 1, 4, 2),
        .keyPadding [false, true, true, true]),
      ("three layers", 3, (2, 2, 2, 3), .keyLength 1)]
      fun (reason, count, sizes, mask) =>
        encoderCase reason { normFirst := true } false count sizes mask
    let after := eachNamed [
      ("one layer and a normalisation at the end", 1, (3, 2, 2, 3), .none),
      ("two layers and a normalisation at the end", 2, (4, 2, 2, 3), .none),
      ("two layers and a normalisation at the end, with padding", 2, (5, 2, 2, 2), .keyLength 3),
      ("three layers and a normalisation at the end, a large eps", 3, (2, 3, 1, 4), .none)]
      fun (reason, count, sizes, mask) =>
        encoderCase reason { normFirst := false, ε := if count = 3 then 1 / 64 else 1 / 65536 }
          true count sizes mask
    before ++ after

/-- Stacks of decoder layers. -/
def decoderStacks : Family LayerCase where
  name := "decoder-stack"
  about := "Decoder layers one after another, each with the same context: one that attends to \
    the rows of the layer before in the place of the context, or a mask that is used once, shows."
  theoremId := "decoder-enclosed"
  cases :=
    let before := eachNamed [
      ("two layers: the context is the same for both", 2, 3, (3, 2, 2, 3), .causal, .none),
      ("two layers: a mask that only the first has shows", 2, 4, (4, 2, 2, 2), .causal,
        .keyPadding [true, false, true, false]),
      ("three layers, padding before the targets", 3, 2, (3, 1, 3, 2),
        causalPadded [false, true, true], .keyLength 1)]
      fun (reason, count, s, sizes, mask, crossMask) =>
        decoderCase reason { normFirst := true } false false count s sizes mask crossMask
    let after := eachNamed [
      ("one layer and a normalisation at the end", 1, 2, (3, 2, 2, 3), .causal, .none),
      ("two layers and a normalisation at the end", 2, 3, (3, 2, 2, 3), .causal, .keyLength 2),
      ("two layers and a normalisation at the end, padding among the targets", 2, 2, (4, 2, 2, 3),
        causalPadded [true, false, true, true], .none)]
      fun (reason, count, s, sizes, mask, crossMask) =>
        decoderCase reason { normFirst := false } false true count s sizes mask crossMask
    before ++ after

/-- Decoding row by row. -/
def cachedDecoding : Family LayerCase where
  name := "cached-decoding"
  about := "Decoding row by row with a cache of keys and values in each layer: a row that is not \
    appended, or appended before it is normalised, a cache that two layers share, keys and values \
    of the context that are taken from the rows, or, from the second row on, a row before that is \
    forgotten, show."
  theoremId := "decode-cached-enclosed"
  cases := eachNamed [
      ("one row: the cache has its own key alone", 1, 2, (1, 2, 2, 3), .none),
      ("two rows", 1, 2, (2, 2, 2, 3), .none), ("six rows", 1, 3, (6, 2, 2, 2), .none),
      ("one head", 1, 1, (4, 1, 3, 4), .none),
      ("some of the context is padding, for every row alike", 1, 4, (3, 2, 2, 3),
        .keyPadding [false, true, false, true]),
      ("all of the context is padding", 1, 2, (3, 2, 2, 3), .keyLength 0),
      ("two layers, each with a cache of its own", 2, 2, (3, 2, 2, 3), .none),
      ("two layers, and padding at the end of the context", 2, 5, (4, 4, 1, 3), .keyLength 3),
      ("three layers", 3, 2, (3, 1, 2, 2), .none)]
    fun (reason, count, s, sizes, crossMask) =>
      decoderCase reason { normFirst := true } true false count s sizes .causal crossMask

end Attention.Vectors
