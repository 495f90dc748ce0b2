module

public import Attention.Spec.Dropout
public import Attention.Spec.ScoreMods
public import Attention.Spec.ScoreTolerance
public import Attention.Spec.Sink

public section

/-! # Tolerances of scores that are changed

How far a score may be off after softcap, after a number is added to it, and that of a sink; and the
keys of a row whose scores are changed, as the tolerance of an output sees them.
`Proof/Rounding/Changes.lean` proves that no score of `Model/RoundedChanges.lean` exceeds it.
Source: docs/tolerances.md, section 1. -/

namespace Attention.Spec

universe u

/-- The changes of the score of a query and a key before the softmax, in this order. -/
structure ScoreChange (R : Type u) where
  /-- The score is squeezed into (−cap, cap) by softcap. -/
  cap : Option R
  /-- A number that is added, of a bias or of ALiBi. -/
  added : Option R

variable {R : Type u} [Add R] [Mul R] [Sub R] [Div R] [OfNat R 0] [OfNat R 1]

/-- The score after its changes. -/
@[expose] def ScoreChange.apply [Exp R R] (change : ScoreChange R) (s : R) : R :=
  let s := match change.cap with
    | none => s
    | some cap => cap * tanh (s / cap)
  match change.added with
  | none => s
  | some a => s + a

variable [Max R]

/-- How far a score may be off after softcap, where it is off by `error` before. The slope of tanh
is at most 1; a quotient by the cap, a tanh and a product with the cap are off by 8 roundings of the
cap together, and the result is stored, as a score is. -/
@[expose] def softcapError (p : Precision R) (f : ScoreFormats R) (cap error : R) : R :=
  error + (numeral 8 * p.unit + f.scores) * cap + f.scoresTiny

/-- How far a score may be off after `a` is added, where `s` is the exact score before and `error`
how far off that one is: both numbers, with their errors, and their sum are rounded twice and
stored, each by (1 + u)² (1 + u_s) at most and by η_s. -/
@[expose] def addedError (p : Precision R) (f : ScoreFormats R) (a s error : R) : R :=
  let growth := (1 + p.unit) * (1 + p.unit) * (1 + f.scores) - 1
  (error + growth * absolute a + f.scoresTiny) * (1 + growth) + growth * absolute (s + a)
    + f.scoresTiny

/-- How far the score of a sink may be off, a number that is given and rounded twice, with what
underflows of a score: ((1 + u)² − 1) |sink| + η_s. -/
@[expose] def sinkError (p : Precision R) (f : ScoreFormats R) (sink : R) : R :=
  ((1 + p.unit) * (1 + p.unit) - 1) * absolute sink + f.scoresTiny

/-- How far a score may be off after its changes, where `s` is the exact score before them and
`error` how far off that one is. -/
@[expose] def changedError [Exp R R] (p : Precision R) (f : ScoreFormats R)
    (change : ScoreChange R) (s error : R) : R :=
  let error := match change.cap with
    | none => error
    | some cap => softcapError p f cap error
  match change.added with
  | none => error
  | some a => addedError p f a ({ change with added := none }.apply s) error

/-! ## Whole matrices -/

/-- The changes of the scores of whole matrices before the softmax, in this order. -/
structure ScoreChanges (R : Type u) (q_len kv_len : Nat) where
  /-- Each score is squeezed into (−cap, cap) by softcap. -/
  cap : Option R
  /-- Numbers that are added, of a bias or of ALiBi; `none` masks the pair. -/
  added : Option (Matrix (Option R) q_len kv_len)
  /-- One more score in each row, the value of which is 0. -/
  sink : Option R

variable {q_len kv_len d d_v : Nat}

/-- The changes of the score of query `i` and key `j`. -/
@[expose] def ScoreChanges.pair (changes : ScoreChanges R q_len kv_len) (i : Fin q_len)
    (j : Fin kv_len) : ScoreChange R :=
  { cap := changes.cap
    added := match changes.added with
      | none => none
      | some B => B[i][j] }

/-- The changes and the mask as a transformation of scores. -/
@[expose] def ScoreChanges.modify [Exp R R] (changes : ScoreChanges R q_len kv_len)
    (mask : Mask q_len kv_len) : ScoreMod R q_len kv_len :=
  let capped := match changes.cap with
    | none => mask.toScoreMod
    | some cap => mask.toScoreMod.andThen (.softcap cap)
  match changes.added with
  | none => capped
  | some B => capped.andThen (.bias B)

/-- Attention of whole matrices with changed scores, and with a sink where there is one. -/
@[expose] def ScoreChanges.attention [Exp R R] (changes : ScoreChanges R q_len kv_len) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  match changes.sink with
  | none => Spec.attention scale (changes.modify mask) Q K V
  | some sink => attentionSink scale (changes.modify mask) sink Q K V

/-- The same with dropout: each row is that of the values times their factors. -/
@[expose] def ScoreChanges.attentionDropout [Exp R R] (changes : ScoreChanges R q_len kv_len)
    (scale : R) (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len) : Matrix R q_len d_v :=
  Vec.ofFn fun i => (changes.attention scale mask Q K (droppedValues V Z i))[i]

/-- The changed score of a column of query `i`: of a key, or (`none`) of the sink. -/
@[expose] def ScoreChanges.score [Exp R R] (changes : ScoreChanges R q_len kv_len) (scale : R)
    (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d) (i : Fin q_len)
    (col : Option (Fin kv_len)) : Option R :=
  match col with
  | none => changes.sink
  | some j => Spec.score scale (changes.modify mask) Q K i j

/-- One component of the value of a column; 0 is that of the sink. -/
@[expose] def columnValue (V : Matrix R kv_len d_v) (t : Fin d_v) (col : Option (Fin kv_len)) : R :=
  match col with
  | none => 0
  | some j => V[j][t]

/-- How far the computed score of a column may be off, where `m` is the largest score of the row. A
common relative error of the products shows in full (`whole`) in a log-sum-exp, and in an output
where scores are changed or a sink stands beside them. -/
@[expose] def ScoreChanges.error [Exp R R] (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (whole : Bool) (scale : R) (Q : Matrix R q_len d)
    (K : Matrix R kv_len d) (i : Fin q_len) (m : R) (col : Option (Fin kv_len)) : R :=
  match col with
  | none => match changes.sink with
    | none => 0
    | some sink => sinkError p f sink
  | some j =>
    let s := scale * Vec.dot Q[i] K[j]
    let below := match whole, changes.cap, changes.added, changes.sink with
      | false, none, none, none => m - s
      | _, _, _, _ => absolute s
    changedError p f (changes.pair i j) s
      (scoreError p f additions scale (magnitude Q[i] K[j])
        (operandUnderflow p f additions Q[i] K[j]) s below)

variable [LE R] [DecidableLE R]

/-- The formats of these scores where products and quotients in the accumulator may be below its
normal numbers too, each off by `ν` at most. -/
@[expose] def ScoreChanges.formats (changes : ScoreChanges R q_len kv_len) (p : Precision R)
    (f : ScoreFormats R) (ν : R) (additions d : Nat) (scale : R) : ScoreFormats R :=
  underflowFormats p f ν additions d scale (match changes.cap with
    | none => 0
    | some cap => cap)

/-- A column of query `i` as the tolerance of component `t` of its output sees it, where `m` is the
largest score of the row. -/
@[expose] def changedKey [Exp R R] (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (whole : Bool) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len)
    (t : Fin d_v) (m : Option R) (col : Option (Fin kv_len)) : BoundedKey R :=
  match changes.score scale mask Q K i col, m with
  | some s, some m =>
    { score := some s
      error := changes.error p f additions whole scale Q K i m col
      value := columnValue V t col }
  | _, _ => ⟨none, 0, columnValue V t col⟩

/-- The columns `cols` as the tolerance of component `t` of the output of query `i` sees them. -/
@[expose] def changedKeys [Exp R R] (p : Precision R) (f : ScoreFormats R) (additions : Nat)
    (changes : ScoreChanges R q_len kv_len) (whole : Bool) (scale : R) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len)
    (t : Fin d_v) (cols : List (Option (Fin kv_len))) : List (BoundedKey R) :=
  let m := rowMax (cols.map (changes.score scale mask Q K i))
  cols.map (changedKey p f additions changes whole scale mask Q K V i t m)

/-- All columns of a row: the sink, where there is one, and the keys. -/
@[expose] def ScoreChanges.columns (changes : ScoreChanges R q_len kv_len) :
    List (Option (Fin kv_len)) :=
  match changes.sink with
  | none => (List.finRange kv_len).map some
  | some _ => none :: (List.finRange kv_len).map some

end Attention.Spec
