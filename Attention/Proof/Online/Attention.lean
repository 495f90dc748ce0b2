module

public import Attention.Proof.Online.Invariant

public section

/-! # What is made of the state of online softmax is attention -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-! ## The finished output is attention -/

/-- The finished state of a row is its attention. -/
theorem finish_ofBlock (row : List (ScoredValue S R d)) : finish (ofBlock row) = attend row := by
  cases hm : (ofBlock row).m with
  | none =>
    have h := ((ofBlock_invariant row).m_eq_none).mp hm
    rw [attend_masked h, finish, hm]
  | some m =>
    refine Vector.ext fun j hj => ?_
    have hl : exp m * (ofBlock row).l = denominator (row.map (·.score)) := by
      simp only [ofBlock] at hm ⊢
      rw [denominator, sumOver_map, hm, ← sumOver_mul_left]
      exact sumOver_congr fun key _ => exp_mul_rescale key.score m
    have ho : exp m * (ofBlock row).o[j] = numerator row j hj := by
      simp only [ofBlock] at hm
      rw [ofBlock_o, numerator, hm, ← sumOver_mul_left]
      exact sumOver_congr fun key _ => by rw [← Semiring.mul_assoc, exp_mul_rescale]
    rw [getElem_attend, ← hl, ← ho, OrderedField.mul_div_mul_left (exp_ne_zero m)]
    simp only [finish, hm, Vec.getElem_map]

/-- **online-any-blocks**: online softmax over any partition of a row into consecutive blocks, of
any sizes and empty ones too, ends in the attention of the whole row. -/
theorem online_any_blocks (blocks : List (List (ScoredValue S R d))) :
    finish (online blocks) = attend blocks.flatten := by
  rw [online_eq_ofBlock, finish_ofBlock]

/-- Merging the states of two sequences of blocks is the state of both. -/
theorem merge_online (as bs : List (List (ScoredValue S R d))) :
    merge (online as) (online bs) = online (as ++ bs) := by
  simp only [online_eq_ofBlock, merge_homomorphism, List.flatten_append]

private theorem smul_l_attend (row : List (ScoredValue S R d)) :
    { ofBlock row with o := Vec.smul (ofBlock row).l (attend row) } = ofBlock row := by
  refine state_ext rfl rfl fun j hj => ?_
  have h := ofBlock_invariant row
  rw [Vec.getElem_smul, ← finish_ofBlock]
  cases hm : (ofBlock row).m with
  | none => simp only [h.eq_empty hm, finish, empty, Vec.getElem_zero, Semiring.zero_mul]
  | some m =>
    have := h.one_le_l (by simp [hm])
    simp only [finish, hm, Vec.getElem_map]
    exact OrderedField.mul_div_cancel (by grind) _

/-- **flash-1-divided**: an update that divides inside the loop and multiplies back, as
FlashAttention-1's does, computes attention too. It is `stepBlockDivided`, which takes the weights
of a block against the new maximum; the paper takes them against the block's own maximum first. -/
theorem divided_any_blocks (blocks : List (List (ScoredValue S R d))) :
    (blocks.foldl stepBlockDivided empty).o = attend blocks.flatten := by
  suffices h : ∀ pre : List (ScoredValue S R d),
      blocks.foldl stepBlockDivided { ofBlock pre with o := attend pre }
        = { ofBlock (pre ++ blocks.flatten) with o := attend (pre ++ blocks.flatten) } from by
    have h₀ : { (ofBlock [] : State S R d) with
        o := attend ([] : List (ScoredValue S R d)) } = empty := by
      rw [attend_masked (by simp)]; rfl
    simpa [h₀] using congrArg State.o (h [])
  induction blocks with
  | nil => intro pre; simp
  | cons block blocks ih =>
    intro pre
    have h : stepBlockDivided { ofBlock pre with o := attend pre } block
        = { ofBlock (pre ++ block) with o := attend (pre ++ block) } := by
      simp only [stepBlockDivided]
      rw [smul_l_attend, stepBlock_ofBlock, finish_ofBlock]
    rw [List.foldl_cons, h, ih]
    simp

/-! ## Tiles that are masked entirely -/

/-- **masked-tile-skipped**: a block with every key masked changes nothing, so a kernel may
skip it. -/
theorem online_skip_masked (as bs : List (List (ScoredValue S R d)))
    {block : List (ScoredValue S R d)} (h : ∀ key ∈ block, key.score = none) :
    online (as ++ block :: bs) = online (as ++ bs) := by
  have h₀ : ofBlock block = (empty : State S R d) := (ofBlock_invariant block).eq_empty
    ((ofBlock_invariant block).m_eq_none.mpr h)
  have e : ∀ s : State S R d, online (as ++ block :: bs) = online ((as ++ [block]) ++ bs) := by
    intro s; simp
  have hs : stepBlock (online as) block = online as := by
    rw [online_eq_ofBlock, stepBlock_ofBlock, ← merge_homomorphism, h₀]
    have := merge_homomorphism as.flatten ([] : List (ScoredValue S R d))
    rwa [ofBlock_nil, List.append_nil] at this
  simp only [online, List.foldl_append, List.foldl_cons] at hs ⊢
  rw [hs]

end Attention.Proof
