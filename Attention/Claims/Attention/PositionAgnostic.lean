module

public import Attention.Claims.Masking.Permutation
public import Attention.Model.Exact

public section

/-! # Attention that knows no positions

Claimed: attention applies to sequences of every length, and its parameters belong to no position;
with a mask that is lost, and what is left depends on the order inherently. Made precise: queries
taken by any numbers of a sequence of any length, and keys in any order, give the output taken by
the queries' numbers. Attention with weights does that; with masks of numbers it does if and only if
each row of each mask is one number. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {m n q_len kv_len d d_v c_q c_k c_v c : Nat}

/-- F, given for all numbers of queries and keys, is position-agnostic: of queries taken by any
numbers, and of keys with their values in any order, it makes the output of the queries' numbers. -/
@[expose] def PositionAgnostic (F : (q_len kv_len : Nat) → Matrix S q_len c_q →
    Matrix S kv_len c_k → Matrix R kv_len c_v → Matrix R q_len d_v) : Prop :=
  ∀ (m q_len kv_len : Nat) (τ : Fin m → Fin q_len) (σ : Fin kv_len → Fin kv_len), IsPermutation σ →
    ∀ (Q : Matrix S q_len c_q) (K : Matrix S kv_len c_k) (V : Matrix R kv_len c_v),
      F m kv_len (reindex τ Q) (reindex σ K) (reindex σ V) = reindex τ (F q_len kv_len Q K V)

/-- A mask of numbers, none of which is −∞. -/
@[expose] def numbers (B : Matrix S q_len kv_len) : Matrix (Option S) q_len kv_len :=
  Vec.map (Vec.map some) B

/-! ## Claimed -/

/-- The claim that equivariance survives a mask that stays where it is. -/
@[expose] def MaskedEquivariance [Add S] [Mul S] [OfNat S 0] [OfNat S 1] (scale : S) (R : Type v)
    [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] : Prop :=
  ∀ (q_len kv_len d d_v : Nat) (B : Matrix S q_len kv_len) (τ : Fin q_len → Fin q_len)
    (σ : Fin kv_len → Fin kv_len), IsPermutation τ → IsPermutation σ → ∀ (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v),
    maskedAttention scale (numbers B) (reindex τ Q) (reindex σ K) (reindex σ V)
      = reindex τ (maskedAttention scale (numbers B) Q K V)

/-- The same claim of self-attention. -/
@[expose] def MaskedSelfEquivariance [Add S] [Mul S] [OfNat S 0] [OfNat S 1] (ι : S → R) (scale : S)
    [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] : Prop :=
  ∀ (n c d d_v : Nat) (B : Matrix S n n) (W : Weights S R c c c d d_v) (σ : Fin n → Fin n),
    IsPermutation σ → ∀ X : Matrix S n c,
      maskedSelfAttention ι scale (numbers B) W (reindex σ X)
        = reindex σ (maskedSelfAttention ι scale (numbers B) W X)

/-- The claim that with masks attention depends on the order inherently: whatever masks there are
for each number of queries and keys. -/
@[expose] def MaskedOrderDependence [Add S] [Mul S] [OfNat S 0] [OfNat S 1] (scale : S) (R : Type v)
    [Add R] [Mul R] [Div R] [OfNat R 0] [Exp S R] : Prop :=
  ∀ (d d_v : Nat) (B : (q_len kv_len : Nat) → Matrix S q_len kv_len),
    ¬ PositionAgnostic fun q_len kv_len (Q : Matrix S q_len d) K (V : Matrix R kv_len d_v) =>
      maskedAttention scale (numbers (B q_len kv_len)) Q K V

/-- A mask breaks equivariance: mask (0, 1), equal scores, values 1 and 0 in the one order and in
the other. -/
theorem maskedEquivariance_refuted : ¬ MaskedEquivariance (1 : Int) Rat := fun h =>
  absurd (congrArg (fun O : Matrix Rat 1 1 => O[0][0])
    (h 1 2 1 1 #v[#v[0, 1]] id Fin.rev (.refl _) (List.Perm.swap 0 1 []) #v[#v[0]]
      #v[#v[0], #v[0]] #v[#v[1], #v[0]])) (by decide +kernel)

/-- It breaks that of self-attention: mask 1 on the diagonal of input 0 alone, inputs 1 and 0. -/
theorem maskedSelfEquivariance_refuted :
    ¬ MaskedSelfEquivariance (fun x : Int => (x : Rat)) 1 := fun h =>
  absurd (congrArg (fun O : Matrix Rat 2 1 => O[0][0])
    (h 2 1 1 1 #v[#v[1, 0], #v[0, 0]]
      { w_q := #v[#v[0]], b_q := #v[0], w_k := #v[#v[0]], b_k := #v[0], w_v := #v[#v[1]],
        b_v := #v[0] } Fin.rev (List.Perm.swap 0 1 []) #v[#v[1], #v[0]])) (by decide +kernel)

section
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-! ## True -/

/-- Attention with weights, biases included, is position-agnostic. -/
theorem weightedAttention_positionAgnostic (scale : S) (W : Weights S R c_q c_k c_v d d_v) :
    PositionAgnostic fun _ _ Q K V => weightedAttention scale Mask.full.toScoreMod W Q K V :=
  fun _ _ _ τ _ hσ Q K V => weightedAttention_permute scale W τ hσ Q K V

omit [OrderedCommRing S] in
private theorem getElem_numbers (B : Matrix S q_len kv_len) (i : Fin q_len) (j : Fin kv_len) :
    (numbers B)[i][j] = some B[i][j] := by
  simp [numbers]

/-- Masked attention is position-agnostic if and only if each row of each
mask is one number, as when there is no mask. -/
theorem maskedAttention_positionAgnostic_iff {scale : S} (hscale : 0 < scale)
    (B : (q_len kv_len : Nat) → Matrix S q_len kv_len) :
    (∀ d d_v : Nat, PositionAgnostic fun q_len kv_len (Q : Matrix S q_len d) K
        (V : Matrix R kv_len d_v) => maskedAttention scale (numbers (B q_len kv_len)) Q K V)
      ↔ ∀ (q_len kv_len : Nat) (i : Fin q_len) (j j' : Fin kv_len),
        (B q_len kv_len)[i][j] = (B q_len kv_len)[i][j'] := by
  constructor
  · intro h q_len kv_len i j j'
    have order := (maskedAttention_order_iff (R := R) hscale (numbers (B q_len kv_len))).mp
      fun d d_v σ hσ Q K V => by
        have e := h d d_v q_len q_len kv_len id σ hσ Q K V
        have r : reindex id Q = Q := Vector.ext fun i hi => by simp
        have r' : reindex id (maskedAttention scale (numbers (B q_len kv_len)) Q K V)
            = maskedAttention scale (numbers (B q_len kv_len)) Q K V :=
          Vector.ext fun i hi => by simp
        simp only at e
        rwa [r, r'] at e
    have e := order i j j'
    rw [getElem_numbers, getElem_numbers] at e
    exact Option.some.inj e
  · intro h d d_v m q_len kv_len τ σ hσ Q K V
    have none_there : ∀ (q_len : Nat) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
        (V : Matrix R kv_len d_v), maskedAttention scale (numbers (B q_len kv_len)) Q K V
          = attention scale Mask.full.toScoreMod Q K V := fun q_len Q K V =>
      maskedAttention_const (b := fun i => if hk : 0 < kv_len then
        (B q_len kv_len)[i][(⟨0, hk⟩ : Fin kv_len)] else 0) (fun i j => by
          rw [getElem_numbers]
          simp only
          rw [dif_pos (Nat.lt_of_le_of_lt (Nat.zero_le _) j.isLt),
            h q_len kv_len i j]) Q K V
    simp only [none_there]
    exact attention_permute scale τ hσ Q K V

/-- Not every mask makes attention depend on the order: the mask 0 does not, for any exponential. -/
theorem maskedOrderDependence_refuted {scale : S} (hscale : 0 < scale) :
    ¬ MaskedOrderDependence scale R := fun h =>
  h 1 1 (fun _ _ => Vec.ofFn fun _ => Vec.ofFn fun _ => 0)
    ((maskedAttention_positionAgnostic_iff hscale _).mpr (fun _ _ i j j' => by simp) 1 1)

end

end Attention.Claims
