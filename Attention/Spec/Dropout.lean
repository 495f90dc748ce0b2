module

public import Attention.Spec.Flash
public import Attention.Spec.KeepMask

public section

/-! # Attention with dropout

Each softmax weight is kept with probability 1 − p and then divided by 1 − p, or dropped:
O = (P ∘ Z) V, where Zᵢⱼ is 1 / (1 − p) or 0. The softmax is that of all scores, so the maximum, the
denominator and the log-sum-exp are those without dropout.
Source: Dao et al. 2022, "FlashAttention", algorithm 2, lines 14 and 15; Z is its dropout mask. -/

namespace Attention.Spec

open Online

universe u v

/-- The factor of each weight: Z. -/
abbrev WeightFactor (R : Type v) (q_len kv_len : Nat) := Fin q_len → Fin kv_len → R

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- The factor of a weight under dropout with probability `p`. -/
@[expose] def dropoutFactor [Sub R] [Div R] [OfNat R 0] [OfNat R 1] (p : R) (keep : Bool) : R :=
  if keep then 1 / (1 - p) else 0

/-- The factor of each weight under dropout with probability `p`, `keep` being those that it
keeps. -/
@[expose] def WeightFactor.dropout [Sub R] [Div R] [OfNat R 0] [OfNat R 1] (p : R)
    (keep : Mask q_len kv_len) : WeightFactor R q_len kv_len :=
  fun i j => dropoutFactor p (keep i j)

/-- The values as query `i` sees them under dropout. -/
@[expose] def droppedValues [Mul R] (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len)
    (i : Fin q_len) : Matrix R kv_len d_v :=
  Vec.ofFn fun j => Vec.smul (Z i j) V[j]

/-- A key whose weight is multiplied by `z` where it meets the value, and nowhere else: the same as
the value multiplied by `z`. -/
@[expose] def dropKey [Mul R] (z : R) (key : ScoredValue S R d_v) : ScoredValue S R d_v :=
  ⟨key.score, Vec.smul z key.value⟩

section
variable [Add S] [Mul S] [OfNat S 0] [Mul R]
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- Attention with dropout, O = (P ∘ Z) V with P the softmax weights, for any factors Z. -/
@[expose] def attentionDropout [Add R] [Div R] [OfNat R 0] [Exp S R]
    (Z : WeightFactor R q_len kv_len) : Matrix R q_len d_v :=
  let P : Matrix R q_len kv_len := probabilities scale modify Q K
  Vec.ofFn fun i =>
    Vec.sumOver (fun j => Vec.smul (P[i][j] * Z i j) V[j]) (List.finRange kv_len)

/-- The keys `cols` as query `i` sees them under dropout. -/
@[expose] def scoredDropout (Z : WeightFactor R q_len kv_len) (i : Fin q_len)
    (cols : List (Fin kv_len)) : List (ScoredValue S R d_v) :=
  cols.map fun j => dropKey (Z i j) ⟨score scale modify Q K i j, V[j]⟩

/-- The keys `cols`, which follow one another, as query `i` sees them under dropout; which of their
weights are kept is drawn for them alone. -/
@[expose] def scoredDrawn [Sub R] [Div R] [OfNat R 0] [OfNat R 1] (p : R)
    (threshold seed head : Nat) (i : Fin q_len) (cols : List (Fin kv_len)) :
    List (ScoredValue S R d_v) :=
  match cols with
  | [] => []
  | first :: _ =>
    List.zipWith (fun keep key => dropKey (dropoutFactor p keep) key)
      (keepsFrom threshold seed head i.val first.val cols.length)
      (scored scale modify Q K V i cols)

end

variable [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S]
variable [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- The tile loop with dropout, for any factors Z. -/
@[expose] def flashDropout (Z : WeightFactor R q_len kv_len) (block_m block_n : Nat) :
    List (Vec R d_v) :=
  (tileLoop empty (scoredDropout scale modify Q K V Z) block_m block_n).map finish

/-- The tile loop with dropout, where each pair of tiles draws for itself which weights are kept. -/
@[expose] def flashDrawn [Sub R] [OfNat R 1] (p : R) (threshold seed head block_m block_n : Nat) :
    List (Vec R d_v) :=
  (tileLoop empty (scoredDrawn scale modify Q K V p threshold seed head) block_m block_n).map finish

end Attention.Spec
