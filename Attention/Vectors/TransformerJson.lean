module

public import Attention.Vectors.OperationJson
public import Attention.Vectors.TransformerCase

public section

/-! # Cases of the transformer and of its layers as JSON text -/

namespace Attention.Vectors.Json

open Spec

variable {m n d d_in d_out d_model num_heads d_ff : Nat}

/-- Fields as an object, a field to a line, `indent` spaces in. -/
def objectLines (indent : Nat) (fields : List (String × String)) : String :=
  let pad := "\n" ++ String.ofList (List.replicate indent ' ')
  "{" ++ pad ++ ("," ++ pad).intercalate (fields.map fun (name, value) =>
    str name ++ ": " ++ value) ++ "}"

/-- A vector of numbers. -/
def numbers (x : Vec Rat d) : String := array (x.toList.map rat)

/-- A matrix on one line. -/
def flatRows (X : Matrix Rat m n) : String := array (X.toList.map numbers)

/-- A matrix, a row to a line. -/
def rows (X : Matrix Rat m n) : String := matrix (X.toList.map (·.toList))

/-- A linear layer. -/
def linear (W : Linear Rat d_in d_out) : String :=
  object [("weight", flatRows W.weight), ("bias", numbers W.bias)]

/-- A normalisation. -/
def layerNorm (N : LayerNorm Rat d) : String :=
  object [("gain", numbers N.gain), ("bias", numbers N.bias)]

/-- A feed-forward network. -/
def feedForward (indent : Nat) (F : FeedForward Rat d d_ff) : String :=
  objectLines indent [("hidden", linear F.hidden), ("output", linear F.output)]

/-- Multi-head attention. -/
def multiHead (indent : Nat) (W : MultiHead Rat d_model num_heads d) : String :=
  objectLines indent [("query", linear W.query), ("key", linear W.key), ("value", linear W.value),
    ("output", linear W.output)]

/-- Encoder layers. -/
def encoderLayers (indent : Nat) (layers : List (EncoderLayer Rat d_model num_heads d d_ff)) :
    String :=
  lines indent <| layers.map fun L => objectLines (indent + 1) [
    ("attention", multiHead (indent + 2) L.attention),
    ("attention_norm", layerNorm L.attentionNorm),
    ("feed_forward", feedForward (indent + 2) L.feedForward),
    ("feed_forward_norm", layerNorm L.feedForwardNorm)]

/-- Decoder layers. -/
def decoderLayers (indent : Nat) (layers : List (DecoderLayer Rat d_model num_heads d d_ff)) :
    String :=
  lines indent <| layers.map fun L => objectLines (indent + 1) [
    ("attention", multiHead (indent + 2) L.attention),
    ("attention_norm", layerNorm L.attentionNorm), ("cross", multiHead (indent + 2) L.cross),
    ("cross_norm", layerNorm L.crossNorm),
    ("feed_forward", feedForward (indent + 2) L.feedForward),
    ("feed_forward_norm", layerNorm L.feedForwardNorm)]

/-- Bounds of a matrix, as integers over one power of two. -/
def enclosedMatrix (rows : RowBounds) : String :=
  let side (f : Int × Int → Int) : String :=
    lines 6 (rows.map fun row => array (row.map (rat <| f ·)))
  object [("lower", side (·.1)), ("upper", side (·.2))]

/-- A scale; none: that of the width of a head. -/
def scale : Option Rat → String
  | none => str "default"
  | some s => rat s

/-- The fields of a layer: its kind, its inputs and its parameters. -/
def layerFields : LayerInputs → List (String × String)
  | .linear W X => [("layer", str "linear"), ("x", rows X),
      ("parameters", objectLines 4 [("weight", flatRows W.weight), ("bias", numbers W.bias)])]
  | .layerNorm ε N X => [("layer", str "layer-norm"), ("eps", rat ε), ("x", rows X),
      ("parameters", objectLines 4 [("gain", numbers N.gain), ("bias", numbers N.bias)])]
  | .feedForward F X =>
    [("layer", str "feed-forward"), ("x", rows X), ("parameters", feedForward 4 F)]
  | .selfAttention (num_heads := num_heads) factor kind W X => [
      ("layer", str "multi-head"), ("num_heads", toString num_heads), ("scale", scale factor),
      ("x", rows X), ("mask", mask kind), ("parameters", multiHead 4 W)]
  | .crossAttention (num_heads := num_heads) factor kind W X C V => [
      ("layer", str "multi-head"), ("num_heads", toString num_heads), ("scale", scale factor),
      ("x", rows X), ("context", rows C)] ++ V.toList.map (fun V => ("values", rows V)) ++ [
      ("mask", mask kind), ("parameters", multiHead 4 W)]
  | .encoder (num_heads := num_heads) options kind layers norm X => [
      ("layer", str "encoder"), ("norm_first", toString options.normFirst),
      ("num_heads", toString num_heads), ("scale", scale options.scale), ("eps", rat options.ε),
      ("x", rows X), ("mask", mask kind), ("parameters", encoderLayers 4 layers)]
      ++ norm.toList.map fun N => ("norm", layerNorm N)
  | .decoder (num_heads := num_heads) options _ kind crossKind layers norm C X => [
      ("layer", str "decoder"), ("norm_first", toString options.normFirst),
      ("num_heads", toString num_heads), ("scale", scale options.scale), ("eps", rat options.ε),
      ("x", rows X), ("context", rows C), ("mask", mask kind), ("context_mask", mask crossKind),
      ("parameters", decoderLayers 4 layers)] ++ norm.toList.map fun N => ("norm", layerNorm N)

/-- A case of a layer, or of a stack of them. -/
def layer (id theoremId : String) (c : LayerCase) (out : RowBounds) : String :=
  vector id c.inputs.leanName theoremId c.reason
    (layerFields c.inputs ++ [("expected", enclosedMatrix out)])

/-- A case of a transformer. -/
def transformer (id theoremId : String) (c : TransformerCase) (out : TransformerResult) : String :=
  let T := c.tie
  vector id "Attention.Spec.Transformer.probabilities" theoremId c.reason <| [
    ("num_heads", toString c.num_heads), ("scale", scale c.scale), ("eps", rat c.ε),
    ("source_tokens", nats (c.sourceTokens.toList.map (·.val))),
    ("target_tokens", nats (c.targetTokens.toList.map (·.val))), ("tied", toString c.tied)]
    ++ c.quarterTurns.toList.map (fun turns =>
      ("quarter_turns", array (turns.map fun row => array (row.map toString)))) ++ [
    ("positions", lines 5 (c.positions.map numbers)),
    ("source_mask", mask c.sourceMask), ("mask", mask c.mask),
    ("context_mask", mask c.contextMask),
    ("parameters", objectLines 4 [
      ("source", flatRows T.source), ("target", flatRows T.target),
      ("encoder", encoderLayers 5 T.encoder), ("decoder", decoderLayers 5 T.decoder),
      ("output", linear T.output)]),
    ("expected_logits", enclosedMatrix out.logits),
    ("expected_probabilities", enclosedMatrix out.probabilities),
    ("expected_tokens", nats out.tokens)]

end Attention.Vectors.Json
