module

public import Attention.Claims.Masking.Gradients
public import Attention.WrongVariants.Varlen

public section

/-! # Wrong variants of the gradients of packed sequences -/

namespace Attention.WrongVariants

open Spec Claims

/-- Two sequences of one element each. -/
abbrev twoLens : List Nat := [] ++ 1 :: [1]

/-- That the first of two sequences of one query and one key has the gradient by its value that it
has by itself: what `vjpDropout_packed` says, made of any score transformation of the packed
batch. -/
abbrev KeepsGradients
    (packedMod : List Nat → List Nat → (Nat → Nat → Nat → Int → Option Int) →
      Nat → Nat → Int → Option Int) : Prop :=
  ∀ (Q K : Matrix Int twoLens.sum 1) (V dO : Matrix Rat twoLens.sum 1) (dLse : Vec Rat twoLens.sum),
    let mods : Nat → Nat → Nat → Int → Option Int := fun _ _ _ s => some s
    let packed := packedMod (cuSeqlens twoLens) (cuSeqlens twoLens) mods
    let place := packedPlace [] [1] 1
    (vjpDropout 1 (fun i j => mods 0 i.val j.val) (fun _ _ _ => 1) (reindex place Q)
        (reindex place K) (reindex place V) (fun _ _ => 1) Int.cast (reindex place dO)
        (reindex place dLse)).dV
      = reindex place (vjpDropout 1 (fun i j => packed i.val j.val) (fun _ _ _ => 1) Q K V
        (fun _ _ => 1) Int.cast dO dLse).dV

/-- Positive control: `packedMod` keeps it. -/
theorem keepsGradients_packedMod : KeepsGradients packedMod := fun Q K V dO dLse =>
  (vjpDropout_packed (m := 1) (n := 1) (pre_q := []) (pre_k := []) Int.cast 1
    (fun _ _ _ s => some s) rfl (fun _ _ _ => 1) Q K V (fun _ _ => 1) dO dLse).2.2.1

/-- Queries that see the keys of sequences before their own: the output of the first sequence is
right, and the gradients by its keys and values are not. -/
theorem packedModEarlier_gradients_refuted : ¬ KeepsGradients packedModEarlier := fun h =>
  absurd (congrArg (fun dV => dV.toList.map Vector.toList)
    (h #v[#v[0], #v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]] #v[#v[1], #v[1]] #v[0, 0]))
    (by decide +kernel)

end Attention.WrongVariants
