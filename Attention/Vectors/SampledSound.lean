module

public import Attention.Proof.Dropout.Basic
public import Attention.Vectors.Sampled

public section

/-! # Some rows are rows of the whole

The vectors of real sizes are computed for some queries alone. -/

namespace Attention.Vectors

open Spec

/-- What is computed for some queries is what attention of all of them has in their rows, for every
mask and change of the scores. -/
theorem attend_pickRows {S R : Type} {q_len kv_len d d_v n : Nat} [Add S] [Mul S] [OfNat S 0]
    [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (rows : Vector (Fin q_len) n) (r : Fin n) :
    attend (scored scale (pickMod rows modify) (pickRows rows Q) K V r (List.finRange kv_len))
      = (attention scale modify Q K V)[rows[r]] := by
  simp [attention, scored, score, pickMod, pickRows]

/-- So it is with dropout, where the factors are those of the rows. -/
theorem attend_pickFactor {S R : Type} {q_len kv_len d d_v n : Nat} [OrderedCommRing S]
    [OrderedField R] [Exponential S R] (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (Z : WeightFactor R q_len kv_len) (rows : Vector (Fin q_len) n) (r : Fin n) :
    attend (scoredDropout scale (pickMod rows modify) (pickRows rows Q) K V (pickFactor rows Z) r
        (List.finRange kv_len))
      = (attentionDropout scale modify Q K V Z)[rows[r]] := by
  rw [← Proof.attend_scoredDropout]
  simp [scoredDropout, score, pickMod, pickRows, pickFactor]

end Attention.Vectors
