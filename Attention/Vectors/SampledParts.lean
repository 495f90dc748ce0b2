module

public import Attention.Vectors.Dropout
public import Attention.Vectors.Varlen

public section

/-! # The parts of a case of real sizes that attention and its gradients share

Masks, packed sequences, temperatures and dropout. -/

namespace Attention.Vectors

open Spec

/-- The mask of a query head, by its number, from one for all heads or one for each. packed: as in
`SampledCase`. -/
@[expose] def maskOfHead (masks : List MaskKind) (packed : Option (List Nat × List Nat))
    (number : Nat) {q_len kv_len : Nat} : Mask q_len kv_len :=
  let mask := masks.getD (if masks.length = 1 then 0 else number) .none
  packed.elim mask.toMask fun (q_lens, kv_lens) => packedMask q_lens kv_lens mask

/-- An error unless packed sequences are as many by their queries as by their keys, come to all
rows, and have one mask. -/
@[expose] def checkPacked (q_len kv_len : Nat) (masks : List MaskKind) :
    Option (List Nat × List Nat) → Except String Unit
  | none => return
  | some (q_lens, kv_lens) =>
    unless q_lens.length = kv_lens.length ∧ q_lens.sum = q_len ∧ kv_lens.sum = kv_len
        ∧ masks.length = 1 do
      throw "the lengths of the sequences do not add up, or have several masks"

/-- An error unless there is one temperature for each head, and bfloat16 holds it, and the queries
times it, so that no function rounds them. -/
@[expose] def checkTemperatures (heads : Nat) (ts : List Rat) (q : Rule) : Except String Unit := do
  unless ts.length = heads do throw "not one temperature for each head"
  checkExact (ts ++ ts.map fun t => t * mkRat q.bound q.over)
  unless ts.all (fun t => q.bound * t.num.natAbs ≤ 256) do
    throw s!"a temperature times the queries of {q.name} needs more bits than bfloat16 has"

/-- The factors of the weights of a query head under dropout, from its number, over some numbers. -/
@[expose] def factorsOf {R : Type} [Sub R] [Div R] [OfNat R 0] [OfNat R 1] {q_len kv_len : Nat}
    (toNumber : Rat → R) : Option (Rat × Nat) →
      Except String (Option (Nat → WeightFactor R q_len kv_len))
  | none => return none
  | some (p, seed) => do
    let threshold ← thresholdOf p
    unless p < 1 ∧ seed < 2 ^ 63 do throw "no weight is kept, or a seed is not below 2 ^ 63"
    return some fun h => .dropout (toNumber p) (keepMask threshold seed h)

end Attention.Vectors
