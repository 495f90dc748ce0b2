module

public import Attention.Model.RoundedSoftcap
public import Attention.Model.UnderflowWeights

public section

/-! # Gradients, from the matrices on

A forward pass and a backward pass one after the other: the log-sum-exp that the first writes, the
scores, weights and slopes that the second computes again, D in either way, and the gradients.
Each relation of `Model/RoundedGradients.lean` supposes how far off weights, slopes and outputs are;
here they are any that the two passes may compute from queries, keys and values. Where a number is
used more than once, it may be another each time.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Model

open Spec

universe u

variable {R : Type u} [OrderedField R] [Exp R R] {q_len kv_len d d_v n : Nat}

/-- `w` is what a backward pass may compute again for the weight of column `col` of query `i` and
store in a format of unit roundoff `u` whose numbers below the normal ones are off by `η`: it has
one from a score and from the log-sum-exp that a forward pass wrote over all columns in some order.
A masked column has weight 0. -/
@[expose] def WeightAgain (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (roundings rescalings : Nat)
    (col : Option (Fin kv_len)) (u η w : R) : Prop :=
  match changes.score scale mask Q K i col with
  | none => w = 0
  | some _ => ∃ (values : Option (Fin kv_len) → R) (cols : List (Option (Fin kv_len))) (P : R),
    cols.Perm changes.columns ∧ TinyWeight p f ν ν additions changes scale mask Q K i values cols
      roundings rescalings col P ∧ StoredBelow u η P w

/-- `σ` is what a backward pass may compute for the slope of softcap of column `col`: from a score
of query and key that it computes. Without softcap it is 1, and that of a sink 0. -/
@[expose] def SlopeAgain (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) (col : Option (Fin kv_len)) (σ : R) : Prop :=
  match col with
  | none => σ = 0
  | some j => match changes.cap with
    | none => σ = 1
    | some cap => ∃ (product : Vec R d → Vec R d → R → Prop) (x : R),
      TinyProducts p f ν additions scale product ∧ product Q[i] K[j] x ∧
        ComputedSlope p.unit ν cap x σ

/-- `o` is what a forward pass may write for component `t` of the output of query `i`, whose columns
`col` have the values and the factors of dropout of `r`: each product of the two is off by a factor
of its own. It is stored in the format of `g`, where numbers below the normal ones are off by `η`. A
query that sees no column has the output 0. -/
@[expose] def WrittenComponent (p : Precision R) (f : ScoreFormats R) (ν η : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (roundings : Nat)
    (g : GradientPrecision R) (c : GradientCounts) (r : BackwardRow R n d_v)
    (col : Fin n → Option (Fin kv_len)) (t : Fin d_v) (o : R) : Prop :=
  (∀ j, changes.score scale mask Q K i (col j) = none) ∧ o = 0 ∨
    ∃ (used : Option (Fin kv_len) → R) (cols : List (Option (Fin kv_len))),
      (∀ j, ∃ φ, AtMost g.factors (φ - 1) ∧ used (col j) = r.factor j * (r.value j)[t] * φ) ∧
      cols.Perm changes.columns ∧ TinyOutputOf p f ν additions changes scale mask Q K i used cols
        roundings c.rescalings g.output η o

/-- What the bound of weights takes of query `i`, which sees a column: its log-sum-exp `L`, its
largest score `M`, and an `E` no less than the logarithm of the factor by which the sum of its
exponentials may be off, of which something is left. -/
structure QueryBounds (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (roundings rescalings : Nat)
    (L M E : R) : Prop where
  /-- The log-sum-exp of all columns. -/
  exact : IsLogSumExp R (some L) (changes.columns.map (changes.score scale mask Q K i))
  /-- The largest of their scores. -/
  maximum : rowMax (changes.columns.map (changes.score scale mask Q K i)) = some M
  /-- Underflow leaves some of the denominator. -/
  left : 0 < underflowLeft p ν roundings rescalings
    (weightRow p f ν additions changes scale mask Q K i rescalings)
  /-- e^E is no less than the factor. -/
  factor : underflowLogSumExpFactor p ν roundings rescalings
    (weightRow p f ν additions changes scale mask Q K i rescalings) ≤ exp E

/-- `S` and `X` are what the two passes may compute for a query row whose keys are the columns
`col`: dS, and what of it meets keys and queries, as `BackwardRow.Computed` has them. D comes from
weights that are computed again, or from the output that the forward pass wrote. -/
@[expose] def PassRow (p : Precision R) (f : ScoreFormats R) (ν η : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (roundings : Nat)
    (g : GradientPrecision R) (c : GradientCounts) (r : BackwardRow R n d_v)
    (col : Fin n → Option (Fin kv_len)) (S X : Fin n → R) : Prop :=
  let again := WeightAgain p f ν additions changes scale mask Q K i roundings c.rescalings
  ∃ D, MeanOf g c r (fun j => again (col j) g.stored g.storedTiny)
      (fun m t o => m = roundings + 6 ∧
        WrittenComponent p f ν η additions changes scale mask Q K i roundings g c r col t o) D ∧
    ∀ j, ScoreGradientOf g c r (again (col j) g.weights g.weightsTiny)
      (SlopeAgain p f ν additions changes scale Q K i (col j)) D j (S j) (X j)

/-- `w` is what they may compute for the weight of key `j` where it meets dO. -/
@[expose] def PassWeight (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (roundings : Nat)
    (g : GradientPrecision R) (c : GradientCounts) (r : BackwardRow R n d_v)
    (col : Fin n → Option (Fin kv_len)) (j : Fin n) (w : R) : Prop :=
  r.WeightOf g (WeightAgain p f ν additions changes scale mask Q K i roundings c.rescalings (col j)
    g.weights g.weightsTiny) j w

end Attention.Model
