module

public import Attention.Spec.Flash1
public import Attention.WrongVariants.Online

public section

/-! # Wrong variants of FlashAttention-1's update -/

namespace Attention.WrongVariants

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} {d : Nat}
variable [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]

/-- The block's own weights are not moved to the new maximum. -/
@[expose] def flash1BlockNotMoved (s : State S R d) (block : List (ScoredValue S R d)) :
    State S R d :=
  let b := ofBlock block
  let m := maxScore s.m b.m
  let α : R := rescale s.m m
  let s' : State S R d :=
    { m := m
      l := α * s.l + b.l
      o := Vec.add (Vec.smul α (Vec.smul s.l s.o)) b.o }
  { s' with o := finish s' }

theorem flash1BlockNotMoved_refuted : ¬ ∀ blocks : List (List (ScoredValue Int Rat 1)),
    (blocks.foldl flash1BlockNotMoved empty).o = attend blocks.flatten :=
  fun h => absurd (congrArg Vector.toList (h [[⟨some 1, #v[1]⟩], [⟨some 0, #v[0]⟩]]))
    (by decide +kernel)

/-- The old output is not multiplied back by l. -/
@[expose] def flash1NotMultipliedBack (s : State S R d) (block : List (ScoredValue S R d)) :
    State S R d :=
  let s' := merge s (ofBlock block)
  { s' with o := finish s' }

theorem flash1NotMultipliedBack_refuted : ¬ ∀ blocks : List (List (ScoredValue Int Rat 1)),
    (blocks.foldl flash1NotMultipliedBack empty).o = attend blocks.flatten :=
  fun h => absurd (congrArg Vector.toList
    (h [[⟨some 0, #v[1]⟩, ⟨some 0, #v[1]⟩], [⟨some 0, #v[0]⟩]])) (by decide +kernel)

end Attention.WrongVariants
