module

public import Attention.Model.RoundedGradients
public import Attention.Model.UnderflowLogSumExp
public import Attention.Model.UnderflowScores
public import Attention.Spec.WeightTolerance

public section

/-! # Weights that are computed again, where numbers underflow

What a forward pass may write for the log-sum-exp of a query, what a pass over the derivatives may
compute again for its scores, and what for its weights. The two passes may have the scale in parts
of their own.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] [Exp R R] {q_len kv_len d : Nat}

/-- `L` is what a function may write for the log-sum-exp of the columns `cols` of query `i`, which
has `values` for them: any run of `TinyRun` in which a key's part goes through at most `roundings`
roundings of sums and rescalings, `rescalings` of the latter, and whose differences of scores of `ν`
at most may be flushed to 0. -/
@[expose] def TinyLogSumExpOf (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (values : Option (Fin kv_len) → R) (cols : List (Option (Fin kv_len)))
    (roundings rescalings : Nat) (L : R) : Prop :=
  ∃ (computed : Option (Fin kv_len) → R) (m : R) (part : Part R),
    TinyScores p f ν additions changes scale mask Q K i computed ∧
    TinyRun p ν ν m part ∧ (part.rescalings ≠ 0 → ν ≤ p.exponential) ∧
    part.keys = (cols.map fun col => ⟨(cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings, computed col⟩) ∧
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) ∧ part.rescalings ≤ rescalings ∧
    part.additions + part.rescalings ≤ roundings ∧ TinyLogSumExp p.unit ν m part.l L

/-- `P` is what a function may compute again for the weight of column `col` from such a log-sum-exp:
its exponential is off by `η` below the normal numbers. -/
@[expose] def TinyWeight (p : Precision R) (f : ScoreFormats R) (ν η : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (values : Option (Fin kv_len) → R) (cols : List (Option (Fin kv_len)))
    (roundings rescalings : Nat) (col : Option (Fin kv_len)) (P : R) : Prop :=
  ∃ (again : Option (Fin kv_len) → R) (L : R),
    TinyScores p f ν additions changes scale mask Q K i again ∧
    TinyLogSumExpOf p f ν additions changes scale mask Q K i values cols roundings rescalings L ∧
    RecomputedWeight p.unit ν p.exponential η (again col) L P

end Attention.Model
