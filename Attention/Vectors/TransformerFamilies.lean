module

public import Attention.Vectors.TransformerCase
public import Attention.Vectors.TransformerStackFamilies

public section

/-! # The families of whole transformers -/

namespace Attention.Vectors

open Spec

/-- Sizes of a transformer: heads, width of a head, hidden units, layers of encoder and decoder. -/
abbrev TransformerSizes := Nat × Nat × Nat × Nat × Nat

/-- How many tokens there are, and of which vocabulary: of the source, and of the target. -/
abbrev TokenSizes := (Nat × Nat) × (Nat × Nat)

/-- A random table of embeddings: multiples of 1/8 between −1 and 1. -/
def drawTable (vocab d : Nat) : Gen (Matrix Rat vocab d) := drawVec (drawVec (fraction 8 8) d) vocab

/-- Random parameters of a transformer. -/
def drawTransformer (s_vocab t_vocab : Nat) (sizes : TransformerSizes) :
    Gen (Transformer Rat s_vocab t_vocab (sizes.1 * sizes.2.1) sizes.1 sizes.2.1 sizes.2.2.1) := do
  let (num_heads, d, d_ff, encoders, decoders) := sizes
  let d_model := num_heads * d
  return ⟨← drawTable s_vocab d_model, ← drawTable t_vocab d_model,
    ← draws (drawEncoder d_model num_heads d d_ff) encoders,
    ← draws (drawDecoder d_model num_heads d d_ff) decoders, ← drawLinear d_model t_vocab 8⟩

/-- `n` random tokens of a vocabulary of `vocab + 1`, the last of them first. -/
def drawTokens (vocab n : Nat) : Gen (Vector (Fin (vocab + 1)) n) := do
  let tokens ← drawVec (below (vocab + 1)) n
  return Vec.ofFn fun i => if i.val = 0 then Fin.last vocab else Fin.ofNat (vocab + 1) tokens[i]

/-- A drawn transformer on drawn tokens, with drawn encodings of the places. -/
def transformerCase (reason : String) (tokens : TokenSizes) (sizes : TransformerSizes)
    (padding : MaskKind := .none) (mask : MaskKind := .causal) : Gen TransformerCase := do
  let ((s, s_vocab), (t, t_vocab)) := tokens
  let (num_heads, d, d_ff, encoders, decoders) := sizes
  let d_model := num_heads * d
  return { reason := s!"{reason}; source {maskText padding}, target {maskText mask}; {s} source \
             tokens of {s_vocab + 1}, {t} target tokens of {t_vocab + 1}, d_model {d_model}, \
             {num_heads} heads, {encoders} and {decoders} layers"
           s, t, s_vocab := s_vocab + 1, t_vocab := t_vocab + 1, d_model, num_heads, d, d_ff
           parameters := ← drawTransformer (s_vocab + 1) (t_vocab + 1)
             (num_heads, d, d_ff, encoders, decoders)
           sourceTokens := ← drawTokens s_vocab s, targetTokens := ← drawTokens t_vocab t
           positions := ← draws (drawVec (fraction 8 8) d_model) (max s t)
           sourceMask := padding, contextMask := padding, mask }

/-- Transformers with a vocabulary for each side. -/
def transformers : Family TransformerCase where
  name := "transformer"
  about := "From tokens to probabilities: the tables of the two sides exchanged, a place that is \
    not encoded or is counted from 1, padding that is attended to, or a softmax over the other \
    axis shows."
  theoremId := "transformer-enclosed"
  cases :=
    let drawn := eachNamed [
      ("one token on each side", ((1, 2), (1, 2)), (2, 2, 3, 1, 1), .none, .causal),
      ("the vocabularies differ: the other side's table shows", ((3, 5), (2, 3)), (2, 2, 3, 1, 1),
        .none, .causal),
      ("as many tokens as words: a softmax over the places shows", ((2, 3), (4, 3)),
        (2, 2, 4, 1, 1), .none, .causal),
      ("padding at the end of the source, hidden from both sides", ((5, 6), (3, 4)),
        (2, 2, 3, 1, 1), .keyLength 3, .causal),
      ("padding within the source", ((4, 4), (2, 6)), (4, 2, 5, 1, 1),
        .keyPadding [true, false, true, false], .causal),
      ("padding among the targets", ((2, 3), (4, 4)), (2, 2, 3, 1, 1), .none,
        causalPadded [true, true, false, true]),
      ("two layers on each side", ((3, 4), (3, 4)), (2, 2, 3, 2, 2), .none, .causal),
      ("the decoder has more layers than the encoder: it gets the last one's output", ((2, 4),
        (2, 5)), (1, 4, 2, 1, 2), .none, .causal),
      ("the encoder has more layers than the decoder", ((4, 2), (3, 6)), (2, 3, 2, 2, 1),
        .keyLength 2, .causal),
      ("more targets than source tokens: their places are counted apart", ((1, 3), (6, 4)),
        (3, 2, 3, 1, 1), .none, .causal)]
      fun (reason, tokens, sizes, padding, mask) =>
        transformerCase reason tokens sizes padding mask
    let scaled := do
      let c ← transformerCase "a scale of its own, and a large eps" ((3, 3), (3, 3)) (2, 2, 3, 1, 1)
      return { c with scale := some (3 / 4), ε := 1 / 128 }
    let same := do
      let c ← transformerCase "the same token at each place: only the encodings of the places \
        tell them apart" ((3, 3), (4, 3)) (2, 2, 3, 1, 1)
      return { c with
        sourceTokens := Vec.ofFn fun i => c.sourceTokens[0]?.getD c.sourceTokens[i]
        targetTokens := Vec.ofFn fun i => c.targetTokens[0]?.getD c.targetTokens[i] }
    drawn ++ [⟨"a scale of its own", scaled⟩, ⟨"the same token at each place", same⟩]

/-- Transformers with one table for everything. -/
def transformersTied : Family TransformerCase where
  name := "transformer-tied"
  about := "One table embeds the tokens of both sides and makes the logits, without a bias: the \
    table transposed, multiplied by the root of d_model, or another one for the logits shows."
  theoremId := "transformer-enclosed"
  cases :=
    let drawn := eachNamed [
      ("one layer on each side", 3, 2, 4, (2, 2, 3, 1, 1), .none),
      ("as many words as components: the transposed table fits and shows", 2, 3, 3,
        (2, 2, 3, 1, 1), .none),
      ("more components than words", 2, 2, 2, (4, 2, 3, 1, 1), .none),
      ("two layers on each side", 3, 3, 5, (2, 2, 2, 2, 2), .none),
      ("padding at the end of the source", 5, 2, 4, (2, 2, 3, 1, 1), .keyLength 2)]
      fun (reason, s, t, vocab, sizes, padding) =>
        transformerCase reason ((s, vocab), (t, vocab)) sizes padding
    drawn.map <| Named.map fun c => { c with
      tied := true
      parameters.target :=
        givenRows c.t_vocab c.d_model (c.parameters.source.toList.map (·.toList)) }

/-- Transformers whose places are encoded by sines and cosines. -/
def transformersPositions : Family TransformerCase where
  name := "transformer-positions"
  about := "Places encoded by sines and cosines, here of quarter turns, so that they are 0, 1 and \
    -1: sines and cosines in turn or exchanged, or places that are counted from 1, show."
  theoremId := "transformer-enclosed"
  cases := eachNamed [
      ("one angle for each place: its sine, then its cosine", ((3, 3), (4, 3)), 2, 1,
        [(1 : Int)]),
      ("two angles: both sines come before both cosines", ((3, 4), (3, 3)), 2, 2, [1, 3]),
      ("as many places as a full turn has, and one more", ((5, 3), (2, 4)), 2, 2, [1, 2]),
      ("three angles, one of which never turns", ((3, 3), (5, 3)), 3, 2, [3, 1, 0]),
      ("four angles", ((4, 3), (3, 3)), 2, 4, [1, 2, 3, 5]),
      ("angles against each other", ((2, 3), (6, 3)), 4, 1, [1, -1])]
    fun (reason, tokens, num_heads, d, turns) => do
      let c ← transformerCase reason tokens (num_heads, d, 3, 1, 1)
      let places := max c.s c.t
      let positions := givenRows places c.d_model ((quarterPositions places turns).map (·.toList))
      return { c with
        positions := positions.toList
        quarterTurns := some ((List.range places).map fun (p : Nat) => turns.map (p * ·)) }

end Attention.Vectors
