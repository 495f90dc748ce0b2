module

public import Attention.Spec.SoftcapTolerance
public import Attention.Spec.Slopes
public import Attention.Spec.UnderflowTolerance

public section

/-! # How far off the scores are that the weights of derivatives come from

A row of changed scores as the log-sum-exp sees it from which a backward pass or a tangent computes
its weights again: each score with the error of `cappedChangeError`, and that of the sink; how far
the weights may be off then, and the slopes of softcap.
`Proof/Rounding/UnderflowWeights.lean` proves it of weights, and `UnderflowGradients.lean` what
comes of both.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Spec

universe u

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [Max R] [OfNat R 0] [OfNat R 1] [Exp R R]
variable [LE R] [DecidableLE R] {q_len kv_len d : Nat}

/-- How far the computed score of a column may be off, of which nothing cancels, and softcap leaves
no more than it may. -/
@[expose] def ScoreChanges.cappedError (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) (col : Option (Fin kv_len)) : R :=
  match col with
  | none => match changes.sink with
    | none => 0
    | some sink => sinkError p f sink
  | some j =>
    let s := scale * Vec.dot Q[i] K[j]
    cappedChangeError p f (changes.pair i j) s
      (scoreError p f additions scale (magnitude Q[i] K[j])
        (operandUnderflow p f additions Q[i] K[j]) s (absolute s))

/-- A column of query `i` as the tolerance of its log-sum-exp sees it then, with any value. -/
@[expose] def cappedKey (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (value : R)
    (col : Option (Fin kv_len)) : BoundedKey R :=
  { score := changes.score scale mask Q K i col
    error := changes.cappedError p f additions scale Q K i col
    value := value }

/-- All columns of query `i` as that tolerance sees them where numbers underflow by `ν` and there
are at most `rescalings` rescalings. Their values do not matter to it. -/
@[expose] def weightRow (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (rescalings : Nat) :
    List (BoundedKey R) :=
  changes.columns.map fun col => (cappedKey p (changes.formats p f ν additions d scale) additions
    changes scale mask Q K i 0 col).flushed ν rescalings

/-- ε: how far the weight of a column may be off, as a share of itself, whether a forward pass
makes it for an output or another pass computes it again. The query has the log-sum-exp `L` and the
largest score `M`, and e^E is the factor of `underflowLogSumExpFactor`. -/
@[expose] def passWeightError (p : Precision R) (f : ScoreFormats R) (ν : R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len) (rescalings : Nat) (L M E : R)
    (col : Option (Fin kv_len)) : R :=
  match changes.score scale mask Q K i col with
  | none => 0
  | some s =>
    let row := weightRow p f ν additions changes scale mask Q K i rescalings
    recomputedError p.unit ν p.exponential s L
      (changes.cappedError p (changes.formats p f ν additions d scale) additions scale Q K i col
        + numeral (rescalings + 1) * ν)
      (underflowLogSumExpTolerance p ν E (L - M) M (largestError row))

/-- The slope of the changes: that of softcap. -/
@[expose] def ScoreChanges.slope (changes : ScoreChanges R q_len kv_len) :
    ScoreSlope R R q_len kv_len :=
  match changes.cap with
  | none => .one
  | some cap => .softcap cap

/-- How far the slope of query `i` and key `j` may be off. -/
@[expose] def ScoreChanges.slopeError (p : Precision R) (f : ScoreFormats R) (ν : R)
    (additions : Nat) (changes : ScoreChanges R q_len kv_len) (scale : R) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) (j : Fin kv_len) : R :=
  match changes.cap with
  | none => 0
  | some cap =>
    let f := changes.formats p f ν additions d scale
    let s := scale * Vec.dot Q[i] K[j]
    cappedSlopeError p.unit ν cap s (scoreError p f additions scale (magnitude Q[i] K[j])
      (operandUnderflow p f additions Q[i] K[j]) s (absolute s))

end Attention.Spec
