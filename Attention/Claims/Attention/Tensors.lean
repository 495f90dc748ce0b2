module

public import Attention.Model.Exact
public import Attention.Proof.Softmax.Basic
public import Attention.Spec.Backward
public import Attention.Spec.Masks
public import Attention.Spec.MultiHead

public section

/-! # Shapes, and what the weights sum to

Sizes are part of a type here, so that a product of matrices has the shape that it is said to have
or is none. What is left to say of shapes is how wide the concatenated heads are. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d num_heads : Nat}

/-- Heads of width hidden / num_heads, rounded down, are together as wide as `hidden` if and only if
num_heads divides it. -/
theorem concat_width_iff {hidden : Nat} :
    num_heads * (hidden / num_heads) = hidden ↔ num_heads ∣ hidden :=
  ⟨fun h => ⟨hidden / num_heads, h.symm⟩, Nat.mul_div_cancel'⟩

/-- They need not be: three heads of 10 / 3 are 9 wide. -/
theorem concat_width_refuted : ¬ ∀ num_heads hidden : Nat, 0 < num_heads →
    num_heads * (hidden / num_heads) = hidden :=
  fun h => absurd (h 3 10 (by decide)) (by decide)

/-- The weights of each query sum to 1 over the keys, if there is one and none is masked. -/
theorem probabilities_sum_one [OrderedCommRing S] [OrderedField R] [Exponential S R] (scale : S)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (hk : 0 < kv_len) (i : Fin q_len) :
    sumOver id (probabilities (R := R) scale Mask.full.toScoreMod Q K)[i].toList = 1 := by
  have h := (Proof.softmax_sum_one (R := R)
    ((List.finRange kv_len).map (score scale Mask.full.toScoreMod Q K i))).1
    ⟨scale * Vec.dot Q[i] K[(⟨0, hk⟩ : Fin kv_len)],
      List.mem_map.mpr ⟨⟨0, hk⟩, List.mem_finRange _, rfl⟩⟩
  simp only [probabilities, Fin.getElem_fin, Vec.getElem_ofFn]
  exact h

/-- Without a key there is nothing to sum. -/
theorem probabilities_no_key_refuted : ¬ ∀ (kv_len : Nat) (Q : Matrix Int 1 1)
    (K : Matrix Int kv_len 1),
    sumOver id (probabilities (R := Rat) 1 Mask.full.toScoreMod Q K)[0].toList = 1 :=
  fun h => absurd (h 0 #v[#v[0]] #v[]) (by decide +kernel)

end Attention.Claims
