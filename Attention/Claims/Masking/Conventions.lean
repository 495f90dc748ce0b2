module

public import Attention.Claims.Heads.Packed
public import Attention.Claims.Masking.Reductions

public section

/-! # A mask added before or after the scale

The document 003 adds its masks before it divides by √d_k, `torch.nn.MultiheadAttention` after, and
the document compares the outputs of the two for one mask of 0 and −∞. Claimed, with that: they are
equal. True of such masks, and of every mask once its entries are multiplied by √d_k; of other masks
it is false, for every exponential and every scale but 1. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len h c_q c_k c_v d d_v d_o : Nat}

/-! ## Claimed -/

/-- The claim that the document's code and PyTorch's are equal for every mask: PyTorch adds the mask
of a head to the scaled scores. -/
@[expose] def EqualsTorchForEveryMask [OrderedCommRing S] (scale : S) (R : Type v) [OrderedField R]
    [Exponential S R] : Prop :=
  ∀ (q_len kv_len h c_q c_k c_v d d_v d_o : Nat) (B : Fin h → Matrix (Option S) q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v),
    maskedMultiHeadAttention scale B W Q K V
      = multiHeadAttention scale (fun κ => .bias (B κ)) W Q K V

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

omit [OrderedField R] [Exponential S R] in
private theorem dot_zero : Vec.dot (#v[0] : Vec S 1) #v[0] = 0 := by
  have e : Vec.dot (#v[0] : Vec S 1) #v[0] = 0 * 0 + 0 := rfl
  rw [e]
  grind

private theorem weighted_two {modify : ScoreMod S 1 2} {scale x y : S}
    (hx : modify 0 0 (scale * Vec.dot (#v[0] : Vec S 1) #v[0]) = some x)
    (hy : modify 0 1 (scale * Vec.dot (#v[0] : Vec S 1) #v[0]) = some y) :
    (attention scale modify #v[#v[0]] #v[#v[0], #v[0]] (#v[#v[1], #v[0]] : Matrix R 2 1))[0][0]
      = exp x / (exp x + exp y) := by
  refine (Proof.getElem_attention_eq_weights scale modify #v[#v[0]] #v[#v[0], #v[0]]
    (#v[#v[1], #v[0]] : Matrix R 2 1) 0 0).trans ?_
  have l : List.finRange 2 = [0, 1] := rfl
  have e₀ : score scale modify #v[#v[0]] #v[#v[0], #v[0]] 0 0 = some x := hx
  have e₁ : score scale modify #v[#v[0]] #v[#v[0], #v[0]] 0 1 = some y := hy
  simp only [l, sumOver_cons, sumOver_nil, e₀, e₁, weight]
  have v₀ : (#v[#v[1], #v[0]] : Matrix R 2 1)[(0 : Fin 2)][(0 : Fin 1)] = 1 := rfl
  have v₁ : (#v[#v[1], #v[0]] : Matrix R 2 1)[(1 : Fin 2)][(0 : Fin 1)] = 0 := rfl
  rw [v₀, v₁, Semiring.mul_one, Semiring.mul_zero, Semiring.add_zero, Semiring.add_zero,
    Semiring.add_zero]

/-- One head without weights, two keys with score 0 and values 1 and 0, and the mask (1, 0): the
document gives the first key exp scale of exp scale + 1, PyTorch exp 1 of exp 1 + 1. -/
theorem equalsTorchForEveryMask_refuted {scale : S} (hs : scale ≠ 1) :
    ¬ EqualsTorchForEveryMask scale R := by
  intro claim
  have e := claim 1 2 1 1 1 1 1 1 1 (fun _ => #v[#v[some 1, some 0]]) Weights.identity.oneHead
    #v[#v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[0]]
  rw [← maskedAttention_eq_multiHead] at e
  have t : multiHeadAttention scale (fun _ => .bias #v[#v[some 1, some 0]])
      Weights.identity.oneHead (#v[#v[0]] : Matrix S 1 1) (#v[#v[0], #v[0]] : Matrix S 2 1)
      (#v[#v[1], #v[0]] : Matrix R 2 1)
      = attention scale (.bias #v[#v[some 1, some 0]]) #v[#v[0]] #v[#v[0], #v[0]]
        #v[#v[1], #v[0]] := by
    rw [multiHeadAttention, output_oneHead]
    simp only [Weights.oneHead, weightedAttention_identity]
  have l : (maskedAttention scale #v[#v[some 1, some 0]] #v[#v[0]] #v[#v[0], #v[0]]
      (#v[#v[1], #v[0]] : Matrix R 2 1))[0][0] = exp scale / (exp scale + exp (0 : S)) :=
    weighted_two (modify := scaledBias scale #v[#v[some 1, some 0]]) (scale := 1)
      (congrArg some (by rw [dot_zero]; grind)) (congrArg some (by rw [dot_zero]; grind))
  have r : (attention scale (.bias #v[#v[some 1, some 0]]) #v[#v[0]] #v[#v[0], #v[0]]
      (#v[#v[1], #v[0]] : Matrix R 2 1))[0][0] = exp (1 : S) / (exp (1 : S) + exp (0 : S)) :=
    weighted_two (modify := .bias #v[#v[some 1, some 0]]) (scale := scale)
      (congrArg some (by rw [dot_zero]; grind)) (congrArg some (by rw [dot_zero]; grind))
  rw [t] at e
  rw [e] at l
  have same := l.symm.trans r
  have h₁ := exp_pos (R := R) scale
  have h₂ := exp_pos (R := R) (1 : S)
  have h₃ : (exp scale : R) ≠ exp (1 : S) := fun h => hs (exp_inj.mp h)
  rw [exp_zero] at same
  generalize (exp scale : R) = a at *
  generalize (exp (1 : S) : R) = b at *
  have h₄ : a + 1 ≠ 0 := by have := OrderedRing.zero_lt_one (R := R); grind
  have h₅ : b + 1 ≠ 0 := by have := OrderedRing.zero_lt_one (R := R); grind
  grind

/-! ## True -/

/-- The document's masks are PyTorch's, their entries divided by √d_k. -/
theorem maskedMultiHeadAttention_eq_bias (scale : S) (B : Fin h → Matrix (Option S) q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    maskedMultiHeadAttention scale B W Q K V
      = multiHeadAttention scale (fun κ => .bias (scaleMask scale (B κ))) W Q K V := by
  simp only [maskedMultiHeadAttention, multiHeadAttention, maskedWeightedAttention,
    weightedAttention, maskedAttention_eq_bias]

/-- PyTorch's masks are the document's, their entries multiplied by √d_k. -/
theorem bias_eq_maskedMultiHeadAttention {scale a : S} (ha : scale * a = 1)
    (B : Fin h → Matrix (Option S) q_len kv_len)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    multiHeadAttention scale (fun κ => .bias (B κ)) W Q K V
      = maskedMultiHeadAttention scale (fun κ => scaleMask a (B κ)) W Q K V := by
  simp only [maskedMultiHeadAttention, multiHeadAttention, maskedWeightedAttention,
    weightedAttention, bias_eq_maskedAttention ha]

/-- Of masks of 0 and −∞ alone, as causal masks are, the two are equal. -/
theorem maskedMultiHeadAttention_eq_bias_of_zero_or_none (scale : S)
    {B : Fin h → Matrix (Option S) q_len kv_len}
    (hB : ∀ κ, ∀ i : Fin q_len, ∀ j : Fin kv_len, (B κ)[i][j] = some 0 ∨ (B κ)[i][j] = none)
    (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    maskedMultiHeadAttention scale B W Q K V
      = multiHeadAttention scale (fun κ => .bias (B κ)) W Q K V := by
  have same : ∀ κ, scaleMask scale (B κ) = B κ := fun κ => by
    refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
    refine (getElem_scaleMask scale (B κ) ⟨i, hi⟩ ⟨j, hj⟩).trans ?_
    rcases hB κ ⟨i, hi⟩ ⟨j, hj⟩ with e | e
    · rw [e]
      exact (congrArg some (Semiring.mul_zero scale)).trans e.symm
    · rw [e]
      exact e.symm
  rw [maskedMultiHeadAttention_eq_bias]
  simp only [same]

/-- The document's code: the inputs are projected once for all heads and cut into heads, the mask of
each is added to the products, and both are divided by √d_k. It is MMHAttn. -/
theorem maskedMultiHeadAttention_eq_packed (scale : S)
    (B : Fin h → Matrix (Option S) q_len kv_len)
    (P : PackedWeights S R h c_q c_k c_v d d_v d_o) (Q : Matrix S q_len c_q)
    (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v) :
    packedMultiHeadAttention 1 (fun κ => scaledBias scale (B κ)) P Q K V
      = maskedMultiHeadAttention scale B P.unpack Q K V :=
  packedMultiHeadAttention_eq 1 (fun κ => scaledBias scale (B κ)) P Q K V

end Attention.Claims
