module

public import Attention.Vectors.Families
public import Attention.Vectors.Natural

public section

/-! # The families of vectors for the natural exponential

What the exact model cannot hold: the default scale 1 / √head_dim, and weights that are no powers of
two, so that a rounding of them shows. -/

namespace Attention.Vectors

open Spec

/-- Random Q, K, V with entries of Q and K that are multiples of 1/16 between −`bound` and
`bound`. -/
def naturalCase (reason : String) (q_len kv_len head_dim : Nat) (value_dim : Nat := head_dim)
    (scale : Option Rat := none) (mask : MaskKind := .none) (bound : Nat := 4) :
    Gen NaturalCase := do
  let rows (n : Nat) : Gen (List (List Rat)) :=
    draws (draws (return mkRat (← between (-(16 * bound)) (16 * bound)) 16) head_dim) n
  return { reason, scale, head_dim, value_dim, mask
           q := ← rows q_len, k := ← rows kv_len, v := ← valueRows kv_len value_dim }

/-- The default scale, at sizes with and without an exact root. -/
def defaultScale : Family NaturalCase where
  name := "default-scale"
  about := "The natural exponential with the scale 1/√head_dim, which the exact model cannot hold."
  theoremId := "enclosure-sound"
  cases :=
    let plain := each "plain" [1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 64] fun head_dim =>
      naturalCase ("default scale, " ++ sizes 2 9 head_dim) 2 9 head_dim 3
    let ragged := each "ragged" [15, 16, 17, 33] fun kv_len =>
      naturalCase ("default scale, " ++ sizes 3 kv_len 8) 3 kv_len 8
    let causal := each "causal" [4, 17] fun n =>
      naturalCase ("causal, " ++ sizes n n 4) n n 4 2 (mask := .causal)
    let holes := each "holes" [5, 18] fun kv_len => do
      naturalCase "masked holes, and a query that may attend to no key" 4 kv_len 4 2
        (mask := maskWhere 4 kv_len fun i j => i != 2 && (i + j) % 3 != 0)
    plain ++ ragged ++ causal ++ holes

/-- Scales that are given, of both signs, and scores of a large spread. -/
def naturalScores : Family NaturalCase where
  name := "natural-scores"
  about := "The natural exponential with given scales of both signs, and scores from -100 to 100."
  theoremId := "enclosure-sound"
  cases :=
    let scaled := each "scaled"
      [1, -1, (1 / 2 : Rat), (-1 / 8 : Rat), (3 / 4 : Rat), (5 / 64 : Rat), 0]
      fun scale =>
        naturalCase s!"scale {scale}" 3 12 6 (scale := some scale) (bound := 2)
    let spread := each "spread" [10, 30, 60, 100] fun (bound : Int) => do
      return { reason := s!"scores from -{bound} to {bound}", scale := some 1
               head_dim := 1, value_dim := 2, q := [[1], [-1]]
               k := (List.range 11).map fun (j : Nat) =>
                 [((bound * ((j : Int) - 5) / 5 : Int) : Rat)]
               v := ← valueRows 11 2 }
    let near := each "near" [1, 2, 3, 4] fun (e : Nat) => do
      return { reason := s!"scores that differ by 2^-{e}: weights that a coarse exponential merges"
               scale := some 1, head_dim := 1, value_dim := 2, q := [[1], [-2]]
               k := (List.range 16).map fun (j : Nat) => [mkRat j (2 ^ e)]
               v := ← valueRows 16 2 }
    scaled ++ spread ++ near

/-- Random numbers x / 8 with |x| ≤ 32; of 8 pairs `masked` are masked. -/
def biasRows (q_len kv_len masked : Nat) : Gen (List (List (Option Rat))) :=
  draws (draws (do
    let hidden ← below 8
    let x ← between (-32) 32
    return if hidden < masked then none else some (mkRat x 8)) kv_len) q_len

/-- Numbers that are added to the scores. -/
def biases : Family NaturalCase where
  name := "bias"
  about := "A number is added to each score: before the scale or twice, or with its rows and \
    columns exchanged, it shows. Where it is null the pair is masked."
  theoremId := "bias-enclosed"
  cases :=
    let plain := each "plain" [(1, 1, 2), (2, 2, 3), (3, 5, 4), (4, 16, 4), (5, 17, 8), (17, 4, 2),
        (2, 33, 4), (2, 16, 16)] fun (q_len, kv_len, head_dim) => do
      let c ← naturalCase ("bias, " ++ sizes q_len kv_len head_dim) q_len kv_len head_dim 2
        (bound := 2)
      return { c with bias := some (← biasRows q_len kv_len 0) }
    let holes := each "holes" [(3, 6), (4, 18), (2, 20)] fun (q_len, kv_len) => do
      let c ← naturalCase ("bias with masked pairs, " ++ sizes q_len kv_len 4) q_len kv_len 4 2
        (scale := some (1 / 2)) (bound := 2)
      return { c with bias := some (← biasRows q_len kv_len 3) }
    let causal := each "causal" [(5, 5), (3, 18)] fun (q_len, kv_len) => do
      let c ← naturalCase ("bias and a causal mask, bottom-right, " ++ sizes q_len kv_len 4) q_len
        kv_len 4 2 (mask := .causalBottomRight) (bound := 2)
      return { c with bias := some (← biasRows q_len kv_len 0) }
    let nothing := each "nothing" [4, 17] fun kv_len => do
      let c ← naturalCase "a bias that masks every pair of the second query" 3 kv_len 4 2
        (bound := 2)
      let rows ← biasRows 3 kv_len 1
      return { c with bias := some (rows.set 1 (List.replicate kv_len none)) }
    plain ++ holes ++ causal ++ nothing

/-- Scores that fall with the distance of query and key. -/
def alibis : Family NaturalCase where
  name := "alibi"
  about := "ALiBi: a score loses a slope for each step between query and key, on both sides of the \
    query. With the wrong sign, the wrong alignment or one-sided distances it shows."
  theoremId := "alibi-enclosed"
  cases := each "slope"
    ([(.topLeft, 1, 4, 4, false), (.topLeft, 1 / 2, 5, 5, false),
     (.topLeft, 1 / 4, 6, 17, false), (.topLeft, 1 / 16, 17, 6, false),
     (.bottomRight, 1 / 2, 3, 18, true), (.topLeft, 1, 3, 9, true), (.bottomRight, 1, 1, 7, false),
     (.bottomRight, 1 / 2, 2, 18, false), (.bottomRight, 1 / 8, 5, 3, false),
     (.bottomRight, 3 / 4, 4, 33, false), (.bottomRight, 1 / 256, 3, 20, false),
     (.bottomRight, 0, 3, 5, false), (.bottomRight, 1 / 4, 1, 20, true)] :
      List (Alignment × Rat × Nat × Nat × Bool))
    fun (alignment, slope, q_len, kv_len, causal) => do
      let mask : MaskKind := if causal then
        match alignment with
        | .topLeft => .causal
        | .bottomRight => .causalBottomRight
        else .none
      let also := if causal then ", causal" else ""
      let c ← naturalCase s!"slope {slope}, {alignmentName alignment}{also}, \
        {sizes q_len kv_len 4}" q_len kv_len 4 2 (mask := mask) (bound := 2)
      return { c with alibi := some (alignment, slope) }

/-- Scores that are squeezed by the hyperbolic tangent. -/
def softcaps : Family NaturalCase where
  name := "softcap"
  about := "Scores squeezed into (-cap, cap) by cap·tanh(score / cap), before masks: left out, \
    applied after the mask, or before the scale, it shows."
  theoremId := "softcap-enclosed"
  cases :=
    let plain := each "plain" [(50, 3, 9), (30, 2, 17), (8, 4, 16), (2, 3, 20), (1, 5, 5),
        (1 / 2, 2, 33), (20, 17, 3)] fun ((cap : Rat), q_len, kv_len) => do
      let c ← naturalCase s!"cap {cap}, {sizes q_len kv_len 4}" q_len kv_len 4 2
      return { c with softcap := some cap }
    let large := each "large" [(50, 1), (15, 2), (4, 1)] fun ((cap : Rat), (scale : Rat)) => do
      let c ← naturalCase s!"cap {cap}, scores far beyond it" 2 12 8 2 (scale := some scale)
      return { c with softcap := some cap }
    let masked := each "masked" [(10, 5, 5), (2, 3, 18)] fun ((cap : Rat), q_len, kv_len) => do
      let c ← naturalCase s!"cap {cap} and a causal mask, bottom-right" q_len kv_len 4 2
        (mask := .causalBottomRight)
      return { c with softcap := some cap }
    let nothing := each "nothing" [5, 17] fun kv_len => do
      let c ← naturalCase "a cap, and a query that may attend to no key" 3 kv_len 4 2
        (mask := maskWhere 3 kv_len fun i _ => i != 1)
      return { c with softcap := some 4 }
    let tiny := each "tiny" [1, 2] fun _ => do
      let c ← naturalCase "scores near 0, where tanh is nearly straight" 2 8 4 2
        (scale := some (1 / 1024))
      return { c with softcap := some 30 }
    plain ++ large ++ masked ++ nothing ++ tiny

/-- One more score in every softmax. -/
def sinks : Family NaturalCase where
  name := "sink"
  about := "A sink takes part in every softmax without a value: the weights of the keys sum to \
    less than 1, and a query that may attend to no key has the sink for its log-sum-exp."
  theoremId := "sink-enclosed"
  cases :=
    let plain := each "plain" [(0, 1, 1), (0, 3, 5), (1, 2, 16), (-2, 4, 17), (4, 3, 33),
        (1 / 2, 17, 4), (-8, 2, 20)] fun ((sink : Rat), q_len, kv_len) => do
      let c ← naturalCase s!"sink {sink}, {sizes q_len kv_len 4}" q_len kv_len 4 2 (bound := 2)
      return { c with sink := some sink }
    let far := each "far" [(30, 3), (-40, 3), (40, 18)] fun ((sink : Rat), kv_len) => do
      let c ← naturalCase s!"sink {sink}, far from every score" 2 kv_len 4 2 (bound := 2)
      return { c with sink := some sink }
    let causal := each "causal" [(4, 4), (3, 18)] fun (q_len, kv_len) => do
      let c ← naturalCase s!"sink 1 and a causal mask, bottom-right, {sizes q_len kv_len 4}" q_len
        kv_len 4 2 (mask := .causalBottomRight) (bound := 2)
      return { c with sink := some 1 }
    let nothing := each "nothing" [(2, 5), (-1, 17)] fun ((sink : Rat), kv_len) => do
      let c ← naturalCase "a sink, and a query that may attend to no key" 3 kv_len 4 2
        (mask := maskWhere 3 kv_len fun i _ => i != 1) (bound := 2)
      return { c with sink := some sink }
    plain ++ far ++ causal ++ nothing

/-- Several changes of the scores at once. -/
def scoreMods : Family NaturalCase where
  name := "score-mods"
  about := "Softcap, ALiBi, bias, mask and sink together, in this order: in another order they \
    show."
  theoremId := "enclosure-sound"
  cases := each "lengths" [(3, 7), (4, 17), (5, 5), (2, 20), (3, 18), (3, 16), (1, 33), (8, 4),
      (3, 12), (2, 9)] fun (q_len, kv_len) => do
    let c ← naturalCase ("all together, " ++ sizes q_len kv_len 4) q_len kv_len 4 2
      (mask := maskWhere q_len kv_len fun i j => (i + 2 * j) % 5 != 0)
    let bias ← biasRows q_len kv_len 1
    return { c with softcap := some 4, alibi := some (.bottomRight, 1 / 8), bias := some bias
                    sink := some (1 / 2) }

end Attention.Vectors
