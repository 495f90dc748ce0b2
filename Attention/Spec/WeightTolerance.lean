module

public import Attention.Spec.SoftcapTolerance

public section

/-! # How far off the scores are that the weights of derivatives come from

A row of changed scores as the log-sum-exp sees it from which a backward pass or a tangent computes
its weights again: each score with the error of `cappedChangeError`, and that of the sink.
`Proof/Rounding/UnderflowWeights.lean` proves how far the weights may be off.
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

end Attention.Spec
