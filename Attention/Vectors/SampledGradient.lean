module

public import Attention.Vectors.NaturalGradient
public import Attention.Vectors.Sampled

public section

/-! # Cases of the backward pass past the tiles, of whose gradients some are written down

The numbers are drawn by rule. All gradients are computed; those by some queries and keys are
kept. -/

namespace Attention.Vectors

open Spec Model

/-- Inputs of the backward pass whose numbers are drawn by rule, with the natural exponential. -/
structure SampledGradientCase where
  /-- The case, but for its numbers; its heads are those of all sequences. -/
  without : NaturalGradientCase
  /-- How many sequences. -/
  batch : Nat := 1
  /-- Which keys each query may attend to: one for all query heads of all sequences, or one for
  each. -/
  masks : List MaskKind := [.none]
  /-- Numbers to add to the scores, for each query head a matrix. -/
  bias : Option Rule := none
  /-- For each query head a factor of its scores. -/
  temperatures : Option (List Rat) := none
  /-- The probability to drop a weight, and the seed. -/
  dropout : Option (Rat × Nat) := none
  /-- Packed sequences, as in `SampledCase`. -/
  packed : Option (List Nat × List Nat) := none
  /-- The entries of Q, of all heads. -/
  q : Rule
  /-- The entries of K. -/
  k : Rule
  /-- The entries of V. -/
  v : Rule
  /-- The gradients of a loss by the entries of the output. -/
  dO : Rule
  /-- By the log-sum-exps. -/
  dLse : Rule
  /-- The queries by which gradients are wanted, of each head. -/
  rows : List Nat
  /-- The keys by which they are. -/
  keys : List Nat

namespace SampledGradientCase

/-- The case with its numbers. -/
@[expose] def inputs (c : SampledGradientCase) : NaturalGradientCase :=
  let f := c.without
  let heads := f.num_kv_heads * f.group
  { f with
    bias := c.bias.map fun rule =>
      (rule.matrices heads f.q_len f.kv_len).map (·.map (·.map some))
    q := c.q.matrices heads f.q_len f.head_dim
    k := c.k.matrices f.num_kv_heads f.kv_len f.head_dim
    v := c.v.matrices f.num_kv_heads f.kv_len f.value_dim
    dO := c.dO.matrices heads f.q_len f.value_dim
    dLse := (c.dLse.matrices heads f.q_len 1).map (·.flatten) }

/-- An error unless readers know each rule, and each number that is given has an interval that
contains it. -/
@[expose] def check (c : SampledGradientCase) : Except String Unit := do
  let f := c.without
  let _ ← ([c.q, c.k, c.v, c.dO, c.dLse] ++ c.bias.toList).mapM Rule.check
  checkExact (f.scale.toList ++ f.softcap.toList ++ (f.alibi.map (·.2)).getD []
    ++ f.sinks.getD [])
  unless ∀ p ∈ c.dropout.toList.map (·.1), p.den ∣ 2 ^ 64 do
    throw s!"the probability of dropout, {c.dropout.toList.map (·.1)}, has no exact interval: it \
      has to be a fraction over a power of two"

/-- The entries of a list at these places. -/
@[expose] def pick {α : Type} [Inhabited α] (places : List Nat) (xs : List α) : List α :=
  let all := xs.toArray
  places.map (all[·]!)

/-- The name of the definition that is run. -/
def leanName (c : SampledGradientCase) : String :=
  if c.dropout.isSome then "Attention.Spec.vjpDropout"
  else if c.temperatures.isSome then "Attention.Spec.temperatureVjp" else c.without.leanName

/-- The heads' numbers beside the formulas, over intervals. -/
@[expose] def variant (c : SampledGradientCase) :
    Except String (NaturalGradientCase.Variant (Interval working) c.inputs.q_len c.inputs.kv_len
      (c.inputs.num_kv_heads * c.inputs.group)) := do
  match ← factorsOf ofRat c.dropout, c.temperatures, c.inputs.sinks with
  | none, none, _ => c.inputs.sinkVariant
  | some factors, none, none => return .dropout factors
  | none, some ts, none => return .temperatures (← NaturalGradientCase.perHead _ ts)
  | _, _, _ => throw "there is no definition for two of dropout, temperatures and sinks"

/-- The gradients by the wanted queries and keys. -/
@[expose] def picked (c : SampledGradientCase) (g : EnclosedGradients) : EnclosedGradients :=
  { g with
    dQ := g.dQ.map (pick c.rows), dK := g.dK.map (pick c.keys), dV := g.dV.map (pick c.keys)
    dBias := g.dBias.map fun rows => (pick c.rows rows).map (pick c.keys) }

/-- Runs the Spec over intervals. The gradient by a bias is that of the kept queries and keys.
Several sequences are computed as heads, so what is given per head, and the same for all sequences,
is for one sequence alone. -/
@[expose] def run (c : SampledGradientCase) : Except String EnclosedGradients := do
  c.check
  let f := c.inputs
  unless (∀ i ∈ c.rows, i < f.q_len) ∧ ∀ j ∈ c.keys, j < f.kv_len do
    throw "rows or keys do not fit the sizes"
  unless c.masks.length = 1 ∨ c.masks.length = f.num_kv_heads * f.group do
    throw "masks do not fit the sizes"
  unless c.batch = 1 ∨ (c.batch ∣ f.num_kv_heads ∧ f.alibi.isNone ∧ f.sinks.isNone
      ∧ f.bias.isNone ∧ c.temperatures.isNone ∧ c.packed.isNone) do
    throw "sequences do not fit the heads, or share what is given for each head"
  checkPacked f.q_len f.kv_len c.masks c.packed
  (c.temperatures.map (checkTemperatures (f.num_kv_heads * f.group) · c.q)).getD (.ok ())
  let variant ← c.variant
  return c.picked (← f.compute (fun h => maskOfHead c.masks c.packed h) variant)

end SampledGradientCase

end Attention.Vectors
