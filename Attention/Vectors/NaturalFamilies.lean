module

public import Attention.Vectors.Families
public import Attention.Vectors.Natural

public section

/-! # The families of vectors for the natural exponential

What the exact model cannot hold: the default scale 1 / √head_dim, and weights that are no powers of
two, so that a rounding of them shows. -/

namespace Attention.Vectors

/-- Cases of the natural exponential that belong together. -/
structure NaturalFamily where
  /-- The name of the family and of its file. -/
  name : String
  /-- What the family is for. -/
  about : String
  /-- The cases, drawn from the family's own seed. -/
  cases : Gen (List NaturalCase)

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
def defaultScale : NaturalFamily where
  name := "default-scale"
  about := "The natural exponential with the scale 1/√head_dim, which the exact model cannot hold."
  cases := do
    let plain ← each [1, 2, 3, 4, 5, 8, 12, 16, 17, 32, 64] fun head_dim =>
      naturalCase ("default scale, " ++ sizes 2 9 head_dim) 2 9 head_dim 3
    let ragged ← each [15, 16, 17, 33] fun kv_len =>
      naturalCase ("default scale, " ++ sizes 3 kv_len 8) 3 kv_len 8
    let causal ← each [4, 17] fun n =>
      naturalCase ("causal, " ++ sizes n n 4) n n 4 2 (mask := .causal)
    let holes ← each [5, 18] fun kv_len => do
      naturalCase "masked holes, and a query that may attend to no key" 4 kv_len 4 2
        (mask := maskWhere 4 kv_len fun i j => i != 2 && (i + j) % 3 != 0)
    return plain ++ ragged ++ causal ++ holes

/-- Scales that are given, of both signs, and scores of a large spread. -/
def naturalScores : NaturalFamily where
  name := "natural-scores"
  about := "The natural exponential with given scales of both signs, and scores from -100 to 100."
  cases := do
    let scaled ← each [1, -1, (1 / 2 : Rat), (-1 / 8 : Rat), (3 / 4 : Rat), (5 / 64 : Rat), 0]
      fun scale =>
        naturalCase s!"scale {scale}" 3 12 6 (scale := some scale) (bound := 2)
    let spread ← each [10, 30, 60, 100] fun (bound : Int) => do
      return { reason := s!"scores from -{bound} to {bound}", scale := some 1
               head_dim := 1, value_dim := 2, q := [[1], [-1]]
               k := (List.range 11).map fun (j : Nat) =>
                 [((bound * ((j : Int) - 5) / 5 : Int) : Rat)]
               v := ← valueRows 11 2 }
    let near ← each [1, 2, 3, 4] fun (e : Nat) => do
      return { reason := s!"scores that differ by 2^-{e}: weights that a coarse exponential merges"
               scale := some 1, head_dim := 1, value_dim := 2, q := [[1], [-2]]
               k := (List.range 16).map fun (j : Nat) => [mkRat j (2 ^ e)]
               v := ← valueRows 16 2 }
    return scaled ++ spread ++ near

/-- Every family of the natural exponential. -/
def naturalFamilies : List NaturalFamily := [defaultScale, naturalScores]

end Attention.Vectors
