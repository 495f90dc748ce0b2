module

public import Attention.Model.RoundedGradients
public import Attention.Model.UnderflowLogSumExp
public import Attention.Model.UnderflowScores
public import Attention.Spec.LogSumExp
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

/-- `o` is what a forward pass may write for a component of the output of query `i`, in which the
columns `cols` have `values`, with the factors of dropout: any run as of `TinyLogSumExpOf`, its
quotient stored up to five times in the accumulator, and then in a format of unit roundoff `u` whose
numbers below the normal ones are off by `η`. -/
@[expose] def TinyOutputOf (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (values : Option (Fin kv_len) → R) (cols : List (Option (Fin kv_len)))
    (roundings rescalings : Nat) (u η o : R) : Prop :=
  ∃ (computed : Option (Fin kv_len) → R) (m : R) (part : Part R) (y : R),
    TinyScores p f ν additions changes scale mask Q K i computed ∧
    TinyRun p ν ν m part ∧ (part.rescalings ≠ 0 → ν ≤ p.exponential) ∧
    part.keys = (cols.map fun col => ⟨(cappedKey p (changes.formats p f ν additions d scale)
      additions changes scale mask Q K i (values col) col).flushed ν rescalings, computed col⟩) ∧
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) ∧ part.rescalings ≤ rescalings ∧
    part.additions + part.rescalings ≤ roundings ∧
    TinyTimes p.accumulation ν 5 (part.o / part.l) y ∧ StoredBelow u η y o

/-- The keys of `r` are columns of query `i` that differ, and have the log-sum-exp `L` together: key
`j` has the weight exp (s − L) for the score s of `col j`, or 0 where that is masked. -/
structure BackwardRow.OfColumns {n d_v : Nat} (r : BackwardRow R n d_v)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (L : R)
    (col : Fin n → Option (Fin kv_len)) : Prop where
  /-- No column is that of two keys. -/
  different {j k : Fin n} : col j = col k → j = k
  /-- Their exponentials sum up to that of `L`. -/
  exact : IsLogSumExp R (some L)
    (((List.finRange n).map col).map (changes.score scale mask Q K i))
  /-- A masked one has no weight. -/
  masked {j : Fin n} : changes.score scale mask Q K i (col j) = none → r.weight j = 0
  /-- The weight of another. -/
  seen {j : Fin n} {s : R} : changes.score scale mask Q K i (col j) = some s →
    r.weight j = exp (s - L)

/-- `g` are the roundings of a backward pass whose output comes from a forward pass of precision
`p` that may lose `ν` where it stores in the accumulator. -/
structure OfForward (p : Precision R) (ν : R) (g : GradientPrecision R) : Prop where
  /-- Inside matrix products they are as coarse. -/
  accumulation : g.accumulation = p.accumulation
  /-- So are exponentials. -/
  exponential : g.exponential = p.exponential
  /-- So is the format in which weights meet values. -/
  stored : g.stored = p.stored
  /-- Also below its normal numbers. -/
  storedTiny : g.storedTiny = p.storedTiny
  /-- And so is the accumulator's there. -/
  tiny : g.tiny = ν

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
