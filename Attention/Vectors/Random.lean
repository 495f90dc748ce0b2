module

public section

/-! # Reproducible random inputs

A 64-bit linear congruential generator (multiplier and increment of Knuth's MMIX), computed with
natural numbers, so the vectors are the same bytes on every machine. It starts from the hash of a
name. -/

namespace Attention.Vectors

/-- A computation that draws random numbers. -/
abbrev Gen := StateM Nat

/-- The 64-bit FNV-1a hash of the bytes of a text in UTF-8 (Fowler, Noll and Vo). -/
def fnv1a (text : String) : UInt64 :=
  text.toUTF8.foldl (fun hash byte => (hash ^^^ byte.toUInt64) * 0x100000001b3) 0xcbf29ce484222325

/-- The numbers drawn from the seed that is the hash of a name. -/
def Gen.drawFor {α : Type} (gen : Gen α) (name : String) : α := (gen.run (fnv1a name).toNat).1

/-- A natural number below `n`. -/
def below (n : Nat) : Gen Nat := do
  let s := (6364136223846793005 * (← get) + 1442695040888963407) % 2 ^ 64
  set s
  return s / 2 ^ 33 % n

/-- An integer from `lo` to `hi`, both included. -/
def between (lo hi : Int) : Gen Int := do
  return lo + (← below (hi - lo + 1).toNat)

/-- A list of `n` draws. -/
def draws {α : Type} (gen : Gen α) : Nat → Gen (List α)
  | 0 => return []
  | n + 1 => return (← gen) :: (← draws gen n)

/-- A matrix of `m` rows and `n` columns of integers between −`bound` and `bound`. -/
def intRows (bound : Nat) (m n : Nat) : Gen (List (List Int)) :=
  draws (draws (between (-bound) bound) n) m

/-- A matrix of values x / 2 ^ e with |x| ≤ 64 and e ≤ 3: exact in every floating-point format in
use. -/
def valueRows (m n : Nat) : Gen (List (List Rat)) :=
  draws (draws (do return mkRat (← between (-64) 64) (2 ^ (← below 4))) n) m

/-- The gradients of a loss by the log-sum-exps, or as many zeros: not every attention function
returns them. -/
def logSumExpGradients (byLse : Bool) (num_heads q_len : Nat) : Gen (List (List Rat)) :=
  if byLse then valueRows num_heads q_len
  else return List.replicate num_heads (List.replicate q_len 0)

end Attention.Vectors
