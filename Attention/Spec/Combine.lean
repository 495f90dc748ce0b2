module

public import Attention.Spec.LogSumExp

public section

/-! # Combining the outputs of splits

The keys are split; attention over each split gives an output and its log-sum-exp. From these alone
the attention over all keys is computed.
Source: Dao, Haziza, Massa and Sizov 2023, "Flash-Decoding for long-context inference"; Ye et al.
2025, "FlashInfer", section 2.2. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {d : Nat}

/-- The result of a split: its output and its log-sum-exp. -/
structure Partial (S : Type u) (R : Type v) (d : Nat) where
  /-- The attention over the keys of the split. -/
  o : Vec R d
  /-- The log-sum-exp of their scores; `none` (−∞) when all are masked. -/
  lse : Option S

/-- A split as one key: its log-sum-exp is the score, its output the value. -/
@[expose] def Partial.toKey (part : Partial S R d) : ScoredValue S R d := ⟨part.lse, part.o⟩

/-- The partial result is that of the keys `row`. -/
@[expose] def IsPartial [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] (part : Partial S R d)
    (row : List (ScoredValue S R d)) : Prop :=
  part.o = attend row ∧ IsLogSumExp R part.lse (row.map (·.score))

/-- The output over all splits from what each has written: Σ exp (Lₖ − L) · Oₖ, with `L` the
log-sum-exp of the Lₖ. -/
@[expose] def combine [Sub S] [Add R] [Mul R] [OfNat R 0] [Exp S R] (L : Option S)
    (parts : List (Partial S R d)) : Vec R d :=
  Vec.sumOver (fun part => Vec.smul (rescale part.lse L) part.o) parts

end Attention.Spec
