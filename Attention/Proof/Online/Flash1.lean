module

public import Attention.Spec.Flash1
public import Attention.Proof.Online.Attention

public section

/-! # FlashAttention-1 computes attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-- To merge with the state of a block is to take the block, for every state: its weights may be
taken against its own maximum first. -/
theorem merge_ofBlock (s : State S R d) (block : List (ScoredValue S R d)) :
    merge s (ofBlock block) = stepBlock s block := by
  have h := score_le_rowMax block
  refine state_ext rfl ?_ fun j hj => ?_
  · simp only [merge, stepBlock, ofBlock, rescale_sumOver' h]
  · simp only [merge, stepBlock, ofBlock, Vec.getElem_add, Vec.getElem_smul, Vec.getElem_sumOver,
      rescale_sumOver h]

/-- FlashAttention-1's update is that with all weights against the new maximum, of any state. -/
theorem stepBlockFlash1_eq_stepBlockDivided (s : State S R d) (block : List (ScoredValue S R d)) :
    stepBlockFlash1 s block = stepBlockDivided s block := by
  simp only [stepBlockFlash1, stepBlockDivided, merge_ofBlock]

/-- **flash-1**: FlashAttention-1's update as the paper has it, with the weights of a block against
the block's own maximum first and `o` divided after each block, computes attention, over any
partition of a row into consecutive blocks. -/
theorem flash1_any_blocks (blocks : List (List (ScoredValue S R d))) :
    (blocks.foldl stepBlockFlash1 empty).o = attend blocks.flatten := by
  have h : (stepBlockFlash1 : State S R d → List (ScoredValue S R d) → State S R d)
      = stepBlockDivided := funext fun s => funext (stepBlockFlash1_eq_stepBlockDivided s)
  rw [h, divided_any_blocks]

end Attention.Proof
