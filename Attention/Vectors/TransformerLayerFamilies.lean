module

public import Attention.Vectors.NaturalGradientFamilies
public import Attention.Vectors.TransformerLayer

public section

/-! # The families of the parts of a transformer's layers -/

namespace Attention.Vectors

open Spec

/-- A matrix of the rows of a list. -/
def givenRows (n d : Nat) (xs : List (List Rat)) : Matrix Rat n d :=
  Vec.ofFn fun i => Vec.ofFn fun j => (xs[i.val]!)[j.val]!

/-! ## Linear layers -/

/-- A random linear layer on random rows. -/
def linearCase (reason : String) (n d_in d_out : Nat) : Gen LayerCase :=
  return { reason := s!"{reason}; {n} rows, from {d_in} to {d_out} numbers"
           inputs := .linear (← drawLinear d_in d_out) (← drawRows n d_in) }

/-- Linear layers. -/
def linears : Family LayerCase where
  name := "linear"
  about := "W x + b for each row: with W transposed, with b left out or added to another axis, it \
    shows."
  theoremId := "linear-enclosed"
  cases :=
    let sized := eachNamed [
      ("as many outputs as inputs: a transposed W fits and shows", 3, 4, 4),
      ("a transposed W fits and shows, and so does b added down the rows", 3, 3, 3),
      ("more outputs than inputs", 2, 2, 5), ("fewer outputs than inputs", 4, 6, 2),
      ("one input: each output is a multiple of it", 3, 1, 4),
      ("one output: a row of numbers, not a number", 5, 5, 1), ("one of each", 1, 1, 1),
      ("one row", 1, 8, 3)]
      fun (reason, n, d_in, d_out) => linearCase reason n d_in d_out
    let alone : Gen LayerCase := do
      let bias ← drawVec (fraction 6 4) 4
      return { reason := "W is 0: each row is b, whatever the input"
               inputs := .linear ⟨Vec.ofFn fun _ => Vec.zero, bias⟩ (← drawRows 3 3) }
    let cancelling : LayerCase :=
      { reason := "products of up to 2^14 that cancel in two of the four sums, all but the \
          smallest: sums in few bits show"
        inputs := .linear
          ⟨givenRows 2 4 [[128, -128, 1, 1 / 8], [64, 1, -64, -1 / 4]], Vec.ofFn fun _ => 0⟩
          (givenRows 2 4 [[128, 128, 1 / 2, 1], [127, 3, 127, 1 / 2]]) }
    sized ++ [⟨"W is 0", alone⟩, ⟨"products that cancel", pure cancelling⟩]

/-! ## Layer normalisation -/

/-- A random normalisation of given rows. -/
def normCase (reason : String) (ε : Rat) (d : Nat) (xs : List (List Rat)) : Gen LayerCase :=
  return { reason := s!"{reason}; {xs.length} rows of {d} numbers"
           inputs := .layerNorm ε (← drawLayerNorm d) (givenRows xs.length d xs) }

/-- `n` rows of `d` numbers near `mean`: multiples of 1 / `per`, at most 4 / `per` away. -/
def rowsNear (mean : Rat) (per n d : Nat) : Gen (List (List Rat)) :=
  draws (draws (return mean + (← fraction 4 per)) d) n

/-- Layer normalisations. -/
def layerNorms : Family LayerCase where
  name := "layer-norm"
  about := "((x - mean) / sqrt(variance + eps)) * gain + bias: the divisor d - 1, eps beside the \
    root, a variance by the difference of two large numbers, and statistics over another axis show."
  theoremId := "layer-norm-enclosed"
  cases :=
    let drawn := eachNamed [
      ("the mean is not 0: the root of the mean square alone shows", 3, 4),
      ("the divisor d - 1 shows most where d is 2", 4, 2),
      ("an odd number of components", 3, 7),
      ("as many rows as components: statistics over the rows show", 4, 4),
      ("one row", 1, 8)]
      fun (reason, n, d) => do
        normCase reason (1 / 65536) d ((← drawRows n d).toList.map (·.toList))
    let far := eachNamed [
      ("200: the mean of the squares less the square of the mean loses digits", (200 : Rat), 1),
      ("-100, with deviations of at most 4", -100, 1), ("16, in steps of 1/8", 16, 8)]
      fun (mean, at_, per) => do
        normCase s!"all near {mean}" (1 / 65536) 6 (← rowsNear at_ per 3 6)
    let equal := normCase "all components of a row are equal: only eps keeps 0 / 0 away, and each \
      row is the bias" (1 / 65536) 4 [[3, 3, 3, 3], [0, 0, 0, 0], [-5 / 8, -5 / 8, -5 / 8, -5 / 8]]
    let one := normCase "one component is its own mean: the bias, whatever it is" (1 / 65536) 1
      [[7], [-1 / 2], [0]]
    let large := eachNamed [("eps is 1, near the variance: added to the root it shows", (1 : Rat)),
        ("eps is 4, more than the variance: added twice or left out it shows", 4)]
      fun (reason, ε) => do normCase reason ε 5 (← rowsNear 0 4 3 5)
    let small := do
      normCase "deviations of at most 2^-8, so that the variance is near eps" (1 / 65536) 6
        (← rowsNear 0 1024 3 6)
    let scales := normCase "rows of very different sizes: each has its own mean and variance"
      (1 / 1024) 4 [[1 / 8, -1 / 8, 1 / 4, 0], [100, -120, 60, 4], [1, 2, 3, 5]]
    let bare (reason : String) (gain : Rat) (bias : Gen (Vec Rat 5)) : Gen LayerCase :=
      return { reason, inputs := .layerNorm (1 / 65536) ⟨Vec.ofFn fun _ => gain, ← bias⟩
                 (← drawRows 3 5) }
    drawn ++ far ++ [⟨"equal components", equal⟩, ⟨"one component", one⟩] ++ large ++ [
      ⟨"small deviations", small⟩, ⟨"rows of different sizes", scales⟩,
      ⟨"gain 0", bare "the gain is 0: each row is the bias" 0 (drawVec (fraction 6 8) 5)⟩,
      ⟨"gain -1",
        bare "the gain is -1 and there is no bias: the sign shows" (-1) (pure Vec.zero)⟩]

/-! ## Feed-forward networks -/

/-- The network with other biases of the hidden units that are on in all of these rows, or off in
all: such a unit is on in some and off in others then, if its sums are 1/4 apart. -/
def inBothStates {n d d_ff : Nat} (F : FeedForward Rat d d_ff) (X : Matrix Rat n d) :
    FeedForward Rat d d_ff :=
  let bias := Vec.ofFn fun j =>
    let sums := (F.hidden.rows X).toList.map fun row => row[j]
    match sums.min?, sums.max? with
    | some least, some most =>
      if least ≤ 0 ∧ 0 < most then F.hidden.bias[j]
      else F.hidden.bias[j] - mkRat ((least + most) * 4).floor 8
    | _, _ => F.hidden.bias[j]
  { F with hidden.bias := bias }

/-- A random feed-forward network on random rows, where there are two with each hidden unit on and
off; or with one bias for all of them. -/
def feedForwardCase (reason : String) (n d d_ff : Nat) (hiddenBias : Option Rat := none) :
    Gen LayerCase := do
  let F ← drawFeedForward d d_ff
  let X ← drawRows n d
  let F := match hiddenBias with
    | some b => { F with hidden.bias := Vec.ofFn fun _ => b }
    | none => if n < 2 then F else inBothStates F X
  return { reason := s!"{reason}; {n} rows of {d} numbers, {d_ff} hidden units"
           inputs := .feedForward F X }

/-- Feed-forward networks. -/
def feedForwards : Family LayerCase where
  name := "feed-forward"
  about := "W2 max(0, W1 x + b1) + b2: another function than the rectifier, one at another place, \
    a bias left out, or a matrix transposed shows."
  theoremId := "feed-forward-enclosed"
  cases :=
    let drawn := eachNamed [
      ("some units are on and some off: another activation shows", 3, 4, 6),
      ("as many hidden units as components: a transposed matrix fits and shows", 3, 4, 4),
      ("fewer hidden units than components", 2, 6, 3), ("one hidden unit", 4, 3, 1),
      ("one component", 3, 1, 5), ("many hidden units", 2, 5, 9), ("one row", 1, 8, 7)]
      fun (reason, n, d, d_ff) => feedForwardCase reason n d d_ff
    let dead := feedForwardCase "every unit is off: each row is the bias of the output, and a leak \
      shows" 3 4 5 (some (-40))
    let alive := feedForwardCase "every unit is on: an affine map; a rectifier after the output \
      shows" 3 4 5 (some 40)
    let kink : Gen LayerCase := do
      let F ← drawFeedForward 2 4
      return {
        reason := "sums that cancel: every unit is at exactly 0 and each row is the bias of the \
          output, so that softplus, or hidden biases left out, show"
        inputs := .feedForward
          { F with hidden := ⟨givenRows 4 2 [[1, 2], [-2, 1], [3, -1], [1 / 2, 1 / 4]],
                              givenRows 1 4 [[-4, 3, -5, -5 / 4]] |>.head⟩ }
          (givenRows 2 2 [[2, 1], [2, 1]]) }
    let small : Gen LayerCase := do
      let near ← drawFeedForward 3 8
      let near := { near with hidden.bias := ← drawVec (fraction 2 8) 8 }
      let rows ← drawVec (drawVec (fraction 4 8) 3) 4
      return { reason := "sums near 0, of both signs: GELU and the like show most"
               inputs := .feedForward (inBothStates near rows) rows }
    drawn ++ [⟨"every unit is off", dead⟩, ⟨"every unit is on", alive⟩,
      ⟨"sums that cancel", kink⟩, ⟨"sums near 0", small⟩]

/-! ## Multi-head attention -/

/-- Sizes of multi-head attention: queries, keys, width of the rows, heads, width of a head. -/
abbrev HeadSizes := Nat × Nat × Nat × Nat × Nat

/-- Sizes of multi-head attention as text. -/
def headSizesText : HeadSizes → String
  | (n, s, d_model, num_heads, d) =>
    s!"{num_heads} heads of width {d}, d_model {d_model}, q_len {n}, kv_len {s}"

/-- Random multi-head attention of random rows to themselves, or, where `cross`, to others. -/
def multiHeadCase (reason : String) (cross : Bool) (sizes : HeadSizes) (mask : MaskKind := .none)
    (scale : Option Rat := none) : Gen LayerCase := do
  let (n, s, d_model, num_heads, d) := sizes
  let reason := s!"{reason}; {maskText mask}; {headSizesText sizes}"
  let W ← drawMultiHead d_model num_heads d
  let X ← drawRows n d_model
  if cross then return ⟨reason, .crossAttention scale mask W X (← drawRows s d_model) none⟩
  return ⟨reason, .selfAttention scale mask W X⟩

/-- Multi-head attention with its projections. -/
def multiHeadLayers : Family LayerCase where
  name := "multi-head-layer"
  about := "Multi-head attention with its four projections: heads that are split or joined in \
    another order, projections that are exchanged or transposed, a scale of another width, and \
    masks that are dropped or turned around show."
  theoremId := "multi-head-enclosed"
  cases :=
    let self := eachNamed [
      ("one head: the projections alone", (3, 3, 2, 1, 2), .none, none),
      ("heads of interleaved columns show", (3, 3, 4, 2, 2), .none, none),
      ("heads split without transposing show, as does the scale of d_model", (4, 4, 8, 4, 2),
        .none, none),
      ("heads of one number", (2, 2, 3, 3, 1), .none, none),
      ("as many rows as heads as components: any two axes exchanged fit and show", (2, 2, 4, 2, 2),
        .none, none),
      ("one row: all weight on itself", (1, 1, 6, 2, 3), .none, none),
      ("a scale of its own", (3, 3, 4, 2, 2), .none, some (1 / 4)),
      ("a negative scale", (3, 3, 4, 1, 4), .none, some (-1 / 2)),
      ("the heads' width together is less than d_model", (3, 3, 5, 2, 1), .none, none),
      ("the heads' width together is more than d_model", (3, 3, 3, 2, 4), .none, none),
      ("off by one shows on the diagonal", (4, 4, 4, 2, 2), .causal, none),
      ("the first row and the last see other numbers of keys", (5, 5, 4, 2, 2),
        .window .topLeft (some 1) (some 2), none)]
      fun (reason, sizes, mask, scale) => multiHeadCase reason false sizes mask scale
    let cross := eachNamed [
      ("keys and values from other rows than the queries", (2, 5, 4, 2, 2), .none),
      ("as many rows as of context: keys or values from the wrong ones fit and show",
        (3, 3, 4, 2, 2), .none),
      ("one key: its value, whatever the query", (5, 1, 4, 2, 2), .none),
      ("the last query stands at the last key", (3, 5, 4, 2, 2), .causalBottomRight),
      ("a mask that is inverted shows", (3, 4, 4, 2, 2), .keyPadding [true, false, true, true]),
      ("the last keys are padding", (2, 6, 6, 3, 2), .keyLength 4),
      ("nothing to attend to: each row is the bias of the output", (3, 3, 4, 2, 2), .keyLength 0),
      ("a row without a key is the bias of the output, and no NaN", (4, 5, 4, 2, 2),
        oneBlind 4 5 2)]
      fun (reason, sizes, mask) => multiHeadCase reason true sizes mask
    let apart : Gen LayerCase :=
      return {
        reason := "keys and values from two different matrices: exchanged they show"
        inputs := .crossAttention none .none (← drawMultiHead 4 2 2) (← drawRows 3 4)
          (← drawRows 4 4) (some (← drawRows 4 4)) }
    self ++ cross ++ [⟨"keys and values apart", apart⟩]

end Attention.Vectors
