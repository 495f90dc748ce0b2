module

public import Attention.Vectors.TransformerLayer

public section

/-! # One case of a transformer: tokens, and bounds of logits and probabilities -/

namespace Attention.Vectors

open Spec Model

universe u

/-- Inputs of a transformer, with the reason why they are worth testing. -/
structure TransformerCase where
  /-- Which fault this case shows. -/
  reason : String
  /-- The number of source tokens. -/
  s : Nat
  /-- The number of target tokens. -/
  t : Nat
  /-- The size of the source's vocabulary. -/
  s_vocab : Nat
  /-- The size of the target's vocabulary. -/
  t_vocab : Nat
  /-- The width of every layer. -/
  d_model : Nat
  /-- The number of heads. -/
  num_heads : Nat
  /-- The width of a head. -/
  d : Nat
  /-- The number of hidden units. -/
  d_ff : Nat
  /-- The factor of every score; none: 1 / √d. -/
  scale : Option Rat := none
  /-- The number that is added to a variance. -/
  ε : Rat := 1 / 65536
  /-- The parameters. -/
  parameters : Transformer Rat s_vocab t_vocab d_model num_heads d d_ff
  /-- The layer of the logits is that of the target's table of embeddings. -/
  tied : Bool := false
  /-- The tokens of the source. -/
  sourceTokens : Vector (Fin s_vocab) s
  /-- The tokens of the target. -/
  targetTokens : Vector (Fin t_vocab) t
  /-- The angles of each place in quarter turns, where sines and cosines of them encode it. -/
  quarterTurns : Option (List (List Int)) := none
  /-- The encoding of each place. -/
  positions : List (Vec Rat d_model)
  /-- Which source tokens may be attended to by the source. -/
  sourceMask : MaskKind := .none
  /-- Which target tokens each may attend to. -/
  mask : MaskKind := .causal
  /-- Which source tokens may be attended to by the target. -/
  contextMask : MaskKind := .none

/-- The enclosed outcome of a transformer. -/
structure TransformerResult where
  /-- Bounds of the logits. -/
  logits : RowBounds
  /-- Bounds of the probabilities. -/
  probabilities : RowBounds
  /-- For each place the token of the largest logit. -/
  tokens : List Nat

/-- The place of the largest of some numbers, from bounds of them; an error unless the bounds tell
which it is. -/
@[expose] def largest (row : List (Int × Int)) : Except String Nat := do
  let lower : Vec Int row.length := Vec.ofFn fun j => row[j].1
  let some best := argmax lower | throw "no logits"
  if (List.finRange row.length).all fun j => j == best || row[j].2 < row[best].1 then
    return best.val
  throw "the bounds of the two largest logits overlap"

namespace TransformerCase

/-- The parameters with the layer of the logits that they are run with. -/
@[expose] def tie (c : TransformerCase) :
    Transformer Rat c.s_vocab c.t_vocab c.d_model c.num_heads c.d c.d_ff :=
  if c.tied then { c.parameters with output := tiedOutput c.parameters.target } else c.parameters

/-- Every number that is given. -/
@[expose] def numbers (c : TransformerCase) : List Rat :=
  c.ε :: c.scale.toList ++ transformerNumbers c.tie ++ c.positions.flatMap (·.toList)

section
variable {R : Type u} [Add R] [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] [Max R] [Exp R R]
variable (sqrt : R → R) (number : Rat → R) (factor : Option Rat → Nat → R)

/-- The encoding of a place; 0 beyond the last. -/
@[expose] def position (c : TransformerCase) (p : Nat) : Vec R c.d_model :=
  Vec.map number (c.positions[p]?.getD Vec.zero)

/-- The results of the Spec for the inputs, over any numbers: logits and probabilities. `number` and
`factor`: as in `LayerInputs.value`. -/
@[expose] def value (c : TransformerCase) :
    Matrix R c.t c.t_vocab × Matrix R c.t c.t_vocab :=
  let T := mapTransformer number c.tie
  let scale := factor c.scale c.d
  (T.logits sqrt (number c.ε) scale (c.position number) c.sourceMask.toMask c.mask.toMask
      c.contextMask.toMask c.sourceTokens c.targetTokens,
    T.probabilities sqrt (number c.ε) scale (c.position number) c.sourceMask.toMask c.mask.toMask
      c.contextMask.toMask c.sourceTokens c.targetTokens)

end

/-- An error unless the inputs fit together. -/
@[expose] def check (c : TransformerCase) : Except String Unit := do
  if c.positions.length < max c.s c.t then throw "a place without an encoding"
  if (c.quarterTurns.getD []).any (2 * ·.length ≠ c.d_model) then
    throw "not two numbers of an encoding for each angle"
  if c.tied && (c.parameters.source.toList.map (·.toList) !=
      c.parameters.target.toList.map (·.toList)) then
    throw "tied embeddings that differ"

/-- Runs the Spec over intervals. -/
@[expose] def run (c : TransformerCase) : Except String TransformerResult := do
  checkExact c.numbers
  c.check
  let out := c.value Interval.sqrt ofRat scaleOf
  let logits ← narrowBounds out.1
  let probabilities ← narrowBounds out.2
  return { logits, probabilities, tokens := ← logits.mapM largest }

end TransformerCase

/-! ## Encodings of places by quarter turns

Sines and cosines of multiples of a right angle are 0, 1 and −1: of these encodings every number is
exact. -/

/-- The sine of x quarter turns, for an integer x. -/
def quarterSin (x : Rat) : Rat :=
  match x.num % 4 with
  | 1 => 1
  | 3 => -1
  | _ => 0

/-- The cosine of x quarter turns, for an integer x. -/
def quarterCos (x : Rat) : Rat := quarterSin (x + 1)

/-- The encodings of `n` places, whose angles are the place times `turns` quarter turns. -/
def quarterPositions (n : Nat) (turns : List Int) :
    List (Vec Rat (turns.length + turns.length)) :=
  (List.range n).map <| sinusoids quarterSin quarterCos fun p i => (p : Rat) * (turns[i] : Rat)

end Attention.Vectors
