module

public import Attention.Vectors.Random

public section

/-! # Inputs by rule

What is too large to be written down is drawn from a name, number by number, so that a reader in any
language can make it again: `docs/vectors.md` says how, and has an example. -/

namespace Attention.Vectors

/-- Numbers that are drawn from the hash of a name. -/
structure Rule where
  /-- The name. -/
  name : String
  /-- Numerators lie between −`bound` and `bound`. -/
  bound : Nat
  /-- About one number in so many is drawn; the others are 0. -/
  oneIn : Nat := 1
  /-- The divisor of the numerators, a power of two. -/
  over : Nat := 1

/-- How many numbers there are between −`bound` and `bound`. -/
@[expose] def Rule.kinds (r : Rule) : Nat := 2 * r.bound + 1

/-- The first `count` numerators. Each is made of the upper 31 bits of the next state of the
generator of `Random`, modulo `kinds · oneIn`: that number less `bound` if it is below `kinds`,
otherwise 0. -/
def Rule.numerators (r : Rule) (count : Nat) : Array Int := Id.run do
  let mut state := fnv1a r.name
  let mut found := Array.mkEmpty count
  for _ in [0:count] do
    state := 6364136223846793005 * state + 1442695040888963407
    let x := (state >>> 33).toNat % (r.kinds * r.oneIn)
    found := found.push (if x < r.kinds then (x : Int) - r.bound else 0)
  return found

/-- An error unless float32 holds every number, and each can be drawn. -/
@[expose] def Rule.check (r : Rule) : Except String Unit := do
  unless r.bound ≤ 2 ^ 24 ∧ 0 < r.oneIn ∧ r.kinds * r.oneIn ≤ 2 ^ 31 ∧ r.over ∣ 2 ^ 24 do
    throw s!"the rule of {r.name} is not one that readers know"

/-- `heads` matrices of `m` rows and `n` columns, one after another. -/
@[expose] def Rule.matrices (r : Rule) (heads m n : Nat) : List (List (List Rat)) :=
  let xs := r.numerators (heads * m * n)
  (List.range heads).map fun h => (List.range m).map fun i => (List.range n).map fun j =>
    mkRat xs[(h * m + i) * n + j]! r.over

/-- A matrix of `m` rows and `n` columns; an error for a rule that readers do not know. -/
@[expose] def Rule.rows (r : Rule) (m n : Nat) : Except String (List (List Rat)) := do
  r.check
  return (r.matrices 1 m n).flatten

/-- The same of integers; an error for numbers that are none. -/
@[expose] def Rule.integers (r : Rule) (m n : Nat) : Except String (List (List Int)) := do
  unless r.over = 1 do throw s!"the numbers of {r.name} have to be integers"
  return (← r.rows m n).map (·.map (·.num))

end Attention.Vectors
