module

public import Attention.Claims.Approximation.Nearest
public import Attention.Proof.Transformer.Basic

public section

/-! # What tied embeddings are good for

The logits of the document 001 are rows times the transpose of the table of embeddings. If all
embeddings have the same length, such logits order the tokens as the distances of their embeddings
from the row do, so that the greatest is that of the nearest embedding, and the embedding of a token
is told from all others. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u

variable {R : Type u} [OrderedField R] {n d vocab : Nat}

/-- The logit of a token is the inner product of its embedding and the row. -/
theorem getElem_tiedOutput (table : Matrix R vocab d) (x : Vec R d) (a : Fin vocab) :
    ((tiedOutput table).row x)[a] = Vec.dot table[a] x := by
  simp only [Linear.row, tiedOutput, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_zero]
  exact Semiring.add_zero _

/-- **tied-output-nearest**: with embeddings of one length, the logit of one token is at most that
of another if and only if its embedding is at least as far from the row. -/
theorem tiedOutput_le_iff (table : Matrix R vocab d)
    (length : ∀ a b : Fin vocab, Vec.dot table[a] table[a] = Vec.dot table[b] table[b])
    (x : Vec R d) (a b : Fin vocab) :
    ((tiedOutput table).row x)[a] ≤ ((tiedOutput table).row x)[b] ↔
      sqDist x table[b] ≤ sqDist x table[a] := by
  rw [getElem_tiedOutput, getElem_tiedOutput, sqDist_eq, sqDist_eq, length a b]
  constructor <;> intro h <;> grind

private theorem sqDist_pos {x y : Vec R d} (h : x ≠ y) : 0 < sqDist x y := by
  have ⟨k, hk⟩ : ∃ k : Fin d, x[k] ≠ y[k] := Classical.byContradiction fun hn =>
    h (Vector.ext fun k hk => Classical.byContradiction fun hne => hn ⟨⟨k, hk⟩, hne⟩)
  have le := le_sumOver (f := fun k => (x[k] - y[k]) * (x[k] - y[k]))
    (fun k _ => mul_self_nonneg (x[k] - y[k])) (List.mem_finRange k)
  exact Std.lt_of_lt_of_le (mul_self_pos fun e => hk (by grind)) le

/-- **tied-output-recovers**: with embeddings of one length, no two of them the same, the greatest
of the tied logits of a sequence's embeddings are those of its tokens. -/
theorem argmax_tiedOutput_embed (table : Matrix R vocab d)
    (length : ∀ a b : Fin vocab, Vec.dot table[a] table[a] = Vec.dot table[b] table[b])
    (different : ∀ a b : Fin vocab, table[a] = table[b] → a = b)
    (tokens : Vector (Fin vocab) n) :
    Vec.map argmax ((tiedOutput table).rows (embed table tokens)) = Vec.map some tokens := by
  refine Vector.ext fun i hi => ?_
  rw [Vec.getElem_map, Linear.rows, embed, Vec.getElem_map, Vec.getElem_map, Vec.getElem_map]
  refine Proof.argmax_eq fun a ha => ?_
  have far := sqDist_pos fun e => ha (different _ _ e).symm
  refine Classical.byContradiction fun hn => ?_
  have near := (tiedOutput_le_iff table length table[tokens[i]] tokens[i] a).mp (Std.not_lt.mp hn)
  rw [sqDist_self] at near
  exact absurd near (Std.not_le.mpr far)

end Attention.Claims
