module

public import Attention.Spec.Online

public section

/-! # FlashAttention-1's update

The output is divided after each block, and a block's weights are taken against the maximum of the
block itself first.
Source: Dao et al. 2022, "FlashAttention", Algorithm 1, lines 10–12. -/

namespace Attention.Spec.Online

universe u v

variable {S : Type u} {R : Type v} {d : Nat}
variable [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]

/-- FlashAttention-1's update as the paper has it, where `o` is divided already: m̃, l̃ and P̃ V of
the block against its own maximum; m' = max (m, m̃), l' = exp (m − m') · l + exp (m̃ − m') · l̃ and
o' = (l · exp (m − m') · o + exp (m̃ − m') · P̃ V) / l'. -/
@[expose] def stepBlockFlash1 (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  let s' := merge { s with o := Vec.smul s.l s.o } (ofBlock block)
  { s' with o := finish s' }

end Attention.Spec.Online
