module

public import Attention.Algebra.Block
public import Attention.Spec.Attention

public section

/-! # Padding

Kernels take sizes that are multiples of a tile: heads are widened with zero columns, the keys are
extended by masked ones, the queries by rows that are computed and thrown away. -/

namespace Attention.Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- The score transformation for `r` more queries and `p` more keys: whatever is beyond the end is
masked. -/
@[expose] def ScoreMod.pad (r p : Nat) (modify : ScoreMod S q_len kv_len) :
    ScoreMod S (q_len + r) (kv_len + p) :=
  fun i j s => if h : i < q_len ∧ j < kv_len then modify ⟨i, h.1⟩ ⟨j, h.2⟩ s else none

/-- Attention of queries, keys and values that are extended by the rows `Q'`, `K'` and `V'`: the
keys beyond the end are masked, the queries beyond the end are cut from the output. -/
@[expose] def attentionPadded {r p : Nat} [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R]
    [OfNat R 0] [Exp S R] (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (Q' : Matrix S r d) (K' : Matrix S p d) (V' : Matrix R p d_v) : Matrix R q_len d_v :=
  Vec.first q_len (attention scale (modify.pad r p) (Vec.append Q Q') (Vec.append K K')
    (Vec.append V V'))

end Attention.Spec
