module

public import Attention.Claims.Projections

public section

/-! # The examples SelfAttention(512, 8) and CrossAttention(512, 128, 512, 8)

That an output is of the type claimed is checked with the definitions. Beside that both are run, over
the exact model. Cross-attention needs projections, which the document lacks: the inner product of a
query of 128 components and a key of 512 is none. -/

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

end

/-- SelfAttention(512, 8) runs: scores 1 and 0, so weights 2/3 and 1/3, values t and 0 in component
t, and the sum of eight heads. -/
theorem selfAttention_runs :
    let unit : Vec Int 512 := Vec.ofFn fun t => if t.val = 0 then 1 else 0
    (selfAttention 512 8 (1 : Int) (fun heads => Vec.sumOver id heads.toList) unit
      #v[unit, Vec.zero] #v[Vec.ofFn fun t : Fin 512 => (t.val : Rat), Vec.zero]).toList.take 4
      = [0, 16/3, 32/3, 16] := by
  decide +kernel

/-- CrossAttention(512, 128, 512, 8) runs, with projections: scores 16 and 0 in each head, so weights
65536/65537 and 1/65537, values 65537 t and 0 in component t. -/
theorem crossAttention_runs :
    let ones : Vec Int 128 := Vec.ofFn fun _ => 1
    let ones' : Vec Int 512 := Vec.ofFn fun _ => 1
    ((crossAttention (num_heads := 8) 64 16 64 (by decide) (1 : Int) #v[ones] #v[ones', Vec.zero]
      #v[Vec.ofFn fun t : Fin 512 => (65537 * t.val : Rat), Vec.zero] :
        Matrix Rat 1 512).toList.map fun row => row.toList.drop 509)
      = [[33357824, 33423360, 33488896]] := by
  decide +kernel

end Attention.Claims
