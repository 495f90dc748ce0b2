module

public import Attention.Model.Exact
public import Attention.Proof.Online.Invariant

public section

/-! # Wrong variants of online softmax

Deliberately broken updates. Each is refuted: the statement that is a theorem of the right update is
false of the wrong variant, by a counterexample that Lean evaluates exactly. So the theorems can
tell a right algorithm from a wrong one. -/

namespace Attention.WrongVariants

open Spec Spec.Online

universe u v

variable {S : Type u} {R : Type v} {d : Nat}
variable [Sub S] [LE S] [DecidableLE S] [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]

/-- The claim of `online_any_blocks`, made of any update. -/
abbrev ComputesAttention
    (stepBlock : State Int Rat 1 → List (ScoredValue Int Rat 1) → State Int Rat 1)
    (finish : State Int Rat 1 → Vec Rat 1 := Online.finish) : Prop :=
  ∀ blocks : List (List (ScoredValue Int Rat 1)),
    finish (blocks.foldl stepBlock empty) = attend blocks.flatten

/-- One output that is not attention refutes the claim. -/
theorem ComputesAttention.refute {stepBlock finish}
    (blocks : List (List (ScoredValue Int Rat 1)))
    (h : (finish (blocks.foldl stepBlock empty)).toList ≠ (attend blocks.flatten).toList) :
    ¬ ComputesAttention stepBlock finish :=
  fun claim => h (congrArg Vector.toList (claim blocks))

/-- Two blocks of one key each; the second has the larger score. -/
@[expose] def rising : List (List (ScoredValue Int Rat 1)) :=
  [[⟨some 0, #v[1]⟩], [⟨some 1, #v[0]⟩]]

/-- `l` is not rescaled when the maximum rises. -/
@[expose] def lNotRescaled (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  { stepBlock s block with
    l := s.l + (stepBlock { s with l := 0 } block).l }

theorem lNotRescaled_refuted : ¬ ComputesAttention lNotRescaled :=
  ComputesAttention.refute rising (by decide +kernel)

/-- `o` is not rescaled when the maximum rises. -/
@[expose] def oNotRescaled (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  { stepBlock s block with
    o := Vec.add s.o (stepBlock { s with o := Vec.zero } block).o }

theorem oNotRescaled_refuted : ¬ ComputesAttention oNotRescaled :=
  ComputesAttention.refute rising (by decide +kernel)

/-- `o` is divided by `l` inside the loop and not multiplied back before the next update. -/
@[expose] def dividedInLoop (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  let s' := stepBlock s block
  { s' with o := Vec.map (· / s'.l) s'.o }

theorem dividedInLoop_refuted : ¬ ComputesAttention dividedInLoop (fun s => s.o) :=
  ComputesAttention.refute [[⟨some 0, #v[1]⟩, ⟨some 0, #v[1]⟩], [⟨some 0, #v[0]⟩]]
    (by decide +kernel)

/-- The weights in `l` are taken against the block's own maximum, those in `o` against the running
maximum. -/
@[expose] def otherMaxForL (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  { stepBlock s block with
    l := rescale s.m (maxScore s.m (rowMax (block.map (·.score)))) * s.l + (ofBlock block).l }

/-- Two blocks of one key each; the second has the smaller score. -/
@[expose] def falling : List (List (ScoredValue Int Rat 1)) := rising.reverse

theorem otherMaxForL_refuted : ¬ ComputesAttention otherMaxForL :=
  ComputesAttention.refute falling (by decide +kernel)

/-- The reference point is the latest block's maximum, in `l` and `o` alike. It cancels in the
output, exactly; a kernel with this fault overflows. Only the invariant sees it. -/
@[expose] def latestMax (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  match rowMax (block.map (·.score)) with
  | none => s
  | some m =>
    let α : R := rescale s.m (some m)
    { m := some m
      l := α * s.l + (ofBlock block).l
      o := Vec.add (Vec.smul α s.o) (ofBlock block).o }

/-- On the counterexample `latestMax` computes attention all the same. -/
theorem latestMax_cancels :
    (finish (falling.foldl latestMax empty)).toList = (attend falling.flatten).toList := by
  decide +kernel

theorem latestMax_refuted : ¬ ∀ blocks : List (List (ScoredValue Int Rat 1)),
    Proof.OnlineInvariant (blocks.foldl latestMax empty) blocks.flatten := by
  intro h
  have h₁ := (h falling).le_m 0 (by decide +kernel) ⟨some 1, #v[0]⟩
    (by simp [falling, rising]) 1 (by decide)
  exact absurd h₁ (by decide +kernel)

/-- A merge that keeps the first state's maximum and leaves the second state as it is. -/
@[expose] def mergeKeepsLeft (a b : State S R d) : State S R d :=
  { m := a.m, l := a.l + b.l, o := Vec.add a.o b.o }

theorem mergeKeepsLeft_refuted : ¬ ∀ xs ys : List (ScoredValue Int Rat 1),
    mergeKeepsLeft (ofBlock xs) (ofBlock ys) = ofBlock (xs ++ ys) :=
  fun h => absurd (congrArg State.l (h [⟨some 0, #v[1]⟩] [⟨some 1, #v[0]⟩])) (by decide +kernel)

/-- One more key, with `l` not rescaled. -/
@[expose] def stepNotRescaled (s : State S R d) (key : ScoredValue S R d) : State S R d :=
  { step s key with l := s.l + rescale key.score (maxScore s.m key.score) }

theorem stepNotRescaled_refuted : ¬ ∀ row : List (ScoredValue Int Rat 1),
    row.foldl stepNotRescaled empty = ofBlock row :=
  fun h => absurd (congrArg State.l (h [⟨some 0, #v[1]⟩, ⟨some 1, #v[0]⟩])) (by decide +kernel)

end Attention.WrongVariants
