module

public import Attention.Spec.BackwardDropout
public import Attention.Spec.BackwardOneLoop
public import Attention.Spec.Slopes
public import Attention.Spec.ScoreTemperature
public import Attention.Vectors.Dropout

public section

/-! # One case of the backward pass over the exact model

Where exp k = 2 ^ k, the gradients by values and by a bias are exact; those by queries and keys are
given divided by ln 2. -/

namespace Attention.Vectors

open Spec

/-- The definitions of the Spec that compute gradients. -/
inductive GradientAlgorithm where
  /-- The formulas. -/
  | formulas
  /-- The tile loops, for one head: the tile sizes of the loop for keys, then of that for queries,
  results first. -/
  | tiles (keys queries : Nat × Nat)
  /-- The paper's one loop, for one head: queries and keys to a tile. -/
  | oneLoop (block_m block_n : Nat)
  /-- The formulas, with a temperature for each query head. -/
  | temperatures (temperatures : List Int)

/-- The name of the definition. -/
def GradientAlgorithm.leanName : GradientAlgorithm → String
  | .formulas => "Attention.Spec.groupedQueryVjp"
  | .tiles .. => "Attention.Spec.flashBackward"
  | .oneLoop .. => "Attention.Spec.flashBackwardOneLoop"
  | .temperatures _ => "Attention.Spec.temperatureVjp"

/-- Tiles hold something. -/
@[expose] def GradientAlgorithm.Fits : GradientAlgorithm → Prop
  | .tiles keys queries => (0 < keys.1 ∧ 0 < keys.2) ∧ 0 < queries.1 ∧ 0 < queries.2
  | .oneLoop block_m block_n => 0 < block_m ∧ 0 < block_n
  | .formulas | .temperatures _ => True

instance (algorithm : GradientAlgorithm) : Decidable algorithm.Fits := by
  cases algorithm <;> dsimp only [GradientAlgorithm.Fits] <;> infer_instance

/-- Numbers that each query head has of its own, by the name of their field. -/
def GradientAlgorithm.perHead : GradientAlgorithm → List (String × List Int)
  | .temperatures ts => [("temperature", ts)]
  | _ => []

/-- Inputs of the backward pass: those of attention with several heads, and the gradients of a loss
by its outputs. -/
structure GradientCase where
  /-- The inputs of attention. -/
  forward : HeadsCase
  /-- By the output, head by head. -/
  dO : List (List (List Rat))
  /-- By the log-sum-exp in base e, head by head. -/
  dLse : List (List Rat)
  /-- The definition that computes the gradients. -/
  algorithm : GradientAlgorithm := .formulas
  /-- The probability to drop a weight, and the seed. -/
  dropout : Option (Rat × Nat) := none

/-- The definition that computes the gradients. -/
def GradientCase.leanName (c : GradientCase) : String :=
  match c.algorithm, c.dropout with
  | .formulas, some _ => "Attention.Spec.vjpDropout"
  | algorithm, _ => algorithm.leanName

/-- The kept weights, head by head, where weights are dropped. -/
def GradientCase.keep (c : GradientCase) (p : Rat) (seed : Nat) :
    Except String (List (List (List Bool))) := do
  let threshold ← thresholdOf p
  return (List.range (c.forward.num_kv_heads * c.forward.group)).map fun h =>
    keptRows c.forward.q_len c.forward.kv_len threshold seed h

/-- The factors of the weights of each head: 1 without dropout. -/
@[expose] def GradientCase.factors (c : GradientCase) :
    Except String (Nat → WeightFactor Rat c.forward.q_len c.forward.kv_len) :=
  match c.dropout with
  | none => .ok fun _ _ _ => 1
  | some (p, seed) => do
    let threshold ← thresholdOf p
    return fun h => .dropout p (keepMask threshold seed h)

/-- The gradients, head by head; by queries and keys divided by ln 2. -/
structure GradientResult where
  /-- By the queries. -/
  dQ : List (List (List Rat))
  /-- By the keys. -/
  dK : List (List (List Rat))
  /-- By the values. -/
  dV : List (List (List Rat))
  /-- By a bias of 0. -/
  dBias : List (List (List Rat))
  /-- By the numbers that each query head has of its own, divided by ln 2. -/
  perHead : List (String × List Rat)

/-- The result from the gradients of grouped heads. -/
@[expose] def GradientResult.ofHeads {q_len kv_len d d_v num_heads num_kv_heads : Nat}
    (g : GroupedGradients Rat q_len kv_len d d_v num_heads num_kv_heads) : GradientResult :=
  ⟨g.dQ.toList.map rowsOf, g.dK.toList.map rowsOf, g.dV.toList.map rowsOf,
    g.dBias.toList.map rowsOf, []⟩

namespace GradientCase

variable {q_len kv_len d d_v : Nat}

/-- The log-sum-exp of each row, where all denominators are powers of two. -/
@[expose] def logSumExps (rows : List (List (Option Int))) : Except String (List (Option Int)) :=
  rows.mapM fun row => do
    let m := rowMax row
    let l : Rat := sumOver (fun s => rescale s m) row
    let L := m.map (· + (l.num.natAbs.log2 : Int))
    if IsLogSumExp Rat L row then return L else throw "a denominator is no power of two"

/-- All tiles of terms are visited, each as the mask says. -/
@[expose] def loopOf (outer inner terms : Nat) (kind : Nat → Nat → TileKind) : TileLoop :=
  ⟨outer, inner, fun _ => ⟨0, numTiles terms inner⟩, kind⟩

/-- Runs tile loops for one head, given what takes the log-sum-exp of each row and the output. -/
@[expose] def runTiles (scale : Int) (mask : Mask q_len kv_len) (Q : Matrix Int q_len d)
    (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v) (Z : WeightFactor Rat q_len kv_len)
    (dO : Matrix Rat q_len d_v) (dLse : Vec Rat q_len)
    (loops : Vector (Option Int) q_len → Matrix Rat q_len d_v →
      List (Vec Rat d) × List (Vec Rat d) × List (Vec Rat d_v)) : Except String GradientResult := do
  let modify : ScoreMod Int q_len kv_len := mask.toScoreMod
  let scores := (List.finRange q_len).map fun i =>
    (List.finRange kv_len).map (score scale modify Q K i)
  let Ls ← logSumExps scores
  let (dQ, dK, dV) := loops (Vec.ofFn fun i => Ls[i.val]!) (attentionDropout scale modify Q K V Z)
  let formulas :=
    vjpDropout scale modify ScoreSlope.one Q K V Z (fun (x : Int) => (x : Rat)) dO dLse
  return ⟨[dQ.map (·.toList)], [dK.map (·.toList)], [dV.map (·.toList)],
    [rowsOf formulas.dBias], []⟩

/-- The inputs of the only head. -/
@[expose] def oneHead {α β γ δ ε ζ : Type} {a b c d e : Nat} (Q : Vector α a) (K : Vector β b)
    (V : Vector γ c) (dO : Vector δ d) (dLse : Vector ε e)
    (run : α → β → γ → δ → ε → Except String ζ) : Except String ζ :=
  match Q.toList, K.toList, V.toList, dO.toList, dLse.toList with
  | [Q], [K], [V], [dO], [dLse] => run Q K V dO dLse
  | _, _, _, _, _ => throw "the tile loops are for one head"

/-- Runs the Spec over the exact model. -/
@[expose] def run (c : GradientCase) : Except String GradientResult := do
  let f := c.forward
  checkExact ((rats f.q.flatten).flatten ++ (rats f.k.flatten).flatten ++ f.v.flatten.flatten ++
    c.dO.flatten.flatten ++ c.dLse.flatten)
  let Q ← toHeads (f.num_kv_heads * f.group) f.q_len f.head_dim f.q
  let K ← toHeads f.num_kv_heads f.kv_len f.head_dim f.k
  let V ← toHeads f.num_kv_heads f.kv_len f.value_dim f.v
  let dO ← toHeads (f.num_kv_heads * f.group) f.q_len f.value_dim c.dO
  let dLse ← toMatrix (f.num_kv_heads * f.group) f.q_len c.dLse
  let mask : Mask f.q_len f.kv_len := f.mask.toMask
  let Z ← c.factors
  unless c.algorithm.Fits do throw "a tile holds nothing"
  match c.algorithm, c.dropout with
  | .formulas, none =>
    return .ofHeads (groupedQueryVjp f.scale (fun _ => mask.toScoreMod) (fun _ => ScoreSlope.one) Q
      K V (fun (x : Int) => (x : Rat)) dO dLse)
  | .formulas, some _ =>
    return .ofHeads <| groupGradients <| Vec.ofFn fun h : Fin (f.num_kv_heads * f.group) =>
      vjpDropout f.scale mask.toScoreMod ScoreSlope.one Q[h] K[kvHead h] V[kvHead h]
        (Z h.val) (fun (x : Int) => (x : Rat)) dO[h] dLse[h]
  | .temperatures _, some _ => throw "temperatures are without dropout"
  | .temperatures temperatures, none =>
    let heads := f.num_kv_heads * f.group
    let [ts] ← (·.toList) <$> toMatrix 1 heads [temperatures] | throw "no temperatures"
    -- The queries times their temperature too, so that no function rounds them.
    checkExact (rats [temperatures]).flatten
    for (t, rows) in temperatures.zip f.q do
      checkExact (rows.flatten.map fun x => ((t * x : Int) : Rat))
    let each : Vector (TemperatureGradients Rat f.q_len f.kv_len f.head_dim f.value_dim) heads :=
      Vec.ofFn fun h => temperatureVjp f.scale ts[h] mask.toScoreMod ScoreSlope.one Q[h]
        K[kvHead h] V[kvHead h] (fun (x : Int) => (x : Rat)) dO[h] dLse[h]
    let inputs : Vector (Gradients Rat f.q_len f.kv_len f.head_dim f.value_dim) heads :=
      Vec.ofFn fun h => each[h].inputs
    return { GradientResult.ofHeads (groupGradients inputs) with
      perHead := [("temperature", each.toList.map (·.dTemperature))] }
  | .tiles keys queries, _ =>
    oneHead Q K V dO dLse fun Q K V dO dLse =>
      runTiles f.scale mask Q K V (Z 0) dO dLse fun L O =>
        flashBackward (fun (x : Int) => (x : Rat)) f.scale (fun _ _ s => some s) mask
          ScoreSlope.one Q K V (Z 0) L dO
          (loopOf keys.1 keys.2 f.q_len fun u t => tileKind mask keys.2 keys.1 t u)
          (loopOf queries.1 queries.2 f.kv_len fun t u => tileKind mask queries.1 queries.2 t u)
          O dLse
  | .oneLoop block_m block_n, _ =>
    oneHead Q K V dO dLse fun Q K V dO dLse =>
      runTiles f.scale mask Q K V (Z 0) dO dLse fun L O =>
        flashBackwardOneLoop (fun (x : Int) => (x : Rat)) f.scale (fun _ _ s => some s) mask
          ScoreSlope.one Q K V (Z 0) L dO block_m block_n
          (fun u t => tileKind mask block_m block_n t u) O dLse

end GradientCase

end Attention.Vectors
