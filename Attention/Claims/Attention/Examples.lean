module

public import Attention.Claims.Heads.Projections

public section

/-! # The examples SelfAttention(512, 8) and CrossAttention(512, 128, 512, 8)

That an output is of the type claimed is checked with the definitions. Beside that both are run,
over the exact model and with fewer components, for a proof by evaluation at 512 is too deep; at 512
they are run in Python. Cross-attention needs projections, which the document lacks: the inner
product of a query of 128 components and a key of 512 is none. -/

namespace Attention.Claims

open Spec

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len num_heads m d : Nat}

/-- The `m` components of a vector that belong to head `h`. -/
@[expose] def slice {α : Type u} (h : Fin num_heads) (x : Vector α (num_heads * m)) : Vector α m :=
  ⟨((x.toList.drop (h.val * m)).take m).toArray, by
    have := Nat.mul_le_mul_right m (Nat.succ_le_of_lt h.isLt)
    rw [Nat.succ_mul] at this
    simp
    omega⟩

/-- Zeros but for the components of head `h`, which are those of `x`. -/
@[expose] def place [OfNat R 0] (h : Fin num_heads) (x : Vec R m) : Vec R (num_heads * m) :=
  Vec.ofFn fun t => if t.val / m = h.val then x[t.val % m]?.getD 0 else 0

section
variable [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R]

/-- SelfAttention(d, h): keys, queries and values are vectors of d numbers. As in the document the
heads have no parameters, and how their outputs become one is left open. -/
@[expose] def selfAttention (d num_heads : Nat) (scale : S)
    (proj : Vector (Vec R d) num_heads → Vec R d) (q : Vec S d) (ks : Matrix S kv_len d)
    (vs : Matrix R kv_len d) : Vec R d :=
  multihead (fun _ : Fin num_heads => dotProduct expSoftmax scale) id proj q ks vs

/-- CrossAttention(d_k, d_q, d_v, h) with projections: each head takes its own d_q / h components of
the query, as many of its d_k / h of a key, and its d_v / h of a value, which go back to their
place. -/
@[expose] def crossAttention (m_k m_q m_v num_heads : Nat) (h_le : m_q ≤ m_k) (scale : S)
    (X : Matrix S q_len (num_heads * m_q)) (Y : Matrix S kv_len (num_heads * m_k))
    (Z : Matrix R kv_len (num_heads * m_v)) : Matrix R q_len (num_heads * m_v) :=
  projectedMultiHead scale (fun _ : Fin num_heads => Mask.full.toScoreMod) slice
    (fun h y => Vec.ofFn fun t : Fin m_q => (slice (m := m_k) h y)[t.val]'(by omega)) slice place
    X Y Z

/-- SelfAttention(512, 8) takes a query, keys and values of 512 components to a value of 512. -/
@[expose] def selfAttention512 (scale : S) (proj : Vector (Vec R 512) 8 → Vec R 512) :
    Vec S 512 → Matrix S kv_len 512 → Matrix R kv_len 512 → Vec R 512 :=
  selfAttention 512 8 scale proj

/-- CrossAttention(512, 128, 512, 8) takes queries of 128 components, and keys and values of 512, to
values of 512. -/
@[expose] def crossAttention512 (scale : S) :
    Matrix S q_len 128 → Matrix S kv_len 512 → Matrix R kv_len 512 → Matrix R q_len 512 :=
  crossAttention (num_heads := 8) 64 16 64 (by decide) scale

end

/-- SelfAttention(8, 4) runs: scores 1 and 0, so weights 2/3 and 1/3, values t and 0 in component t,
and the sum of four heads. -/
theorem selfAttention_runs :
    let unit : Vec Int 8 := Vec.ofFn fun t => if t.val = 0 then 1 else 0
    (selfAttention 8 4 (1 : Int) (fun heads => Vec.sumOver id heads.toList) unit
      #v[unit, Vec.zero] #v[Vec.ofFn fun t : Fin 8 => (t.val : Rat), Vec.zero]).toList
      = [0, 8/3, 16/3, 8, 32/3, 40/3, 16, 56/3] := by
  decide +kernel

/-- CrossAttention(8, 4, 8, 2) runs, with projections: scores 2 and 0 in the first head and 0 in the
second, so weights 4/5 and 1/5 there and 1/2 here, values t and 0 in component t. -/
theorem crossAttention_runs :
    let query : Vec Int 4 := Vec.ofFn fun t => if t.val < 2 then 1 else 0
    let key : Vec Int 8 := Vec.ofFn fun _ => 1
    (crossAttention (num_heads := 2) 4 2 4 (by decide) (1 : Int) #v[query] #v[key, Vec.zero]
      #v[Vec.ofFn fun t : Fin 8 => (t.val : Rat), Vec.zero] : Matrix Rat 1 8).toList.map
        Vector.toList = [[0, 4/5, 8/5, 12/5, 2, 5/2, 3, 7/2]] := by
  decide +kernel

end Attention.Claims
