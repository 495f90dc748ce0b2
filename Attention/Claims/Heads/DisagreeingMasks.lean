module

public import Attention.Claims.Heads.Basic
public import Attention.Model.Exact

public section

/-! # Masks that do not agree

The document 003 says that masks suppress a key if those of all heads do. That is needed: a key that
is masked in one head, and not in another, still counts. -/

namespace Attention.Claims

open Spec

/-- The claim of masks that do not agree: a key that some head masks for query i does not
count for output i. Over the exact model. -/
@[expose] def OneMaskSuppresses : Prop :=
  ∀ (q_len kv_len h c_q c_k c_v d d_v d_o : Nat) (scale : Int)
    (B : Fin h → Matrix (Option Int) q_len kv_len)
    (W : MultiHeadWeights Int Rat h c_q c_k c_v d d_v d_o) (Q : Matrix Int q_len c_q)
    (K : Matrix Int kv_len c_k) (V V' : Matrix Rat kv_len c_v) (i : Fin q_len) (s : Fin kv_len),
    (∃ κ, (B κ)[i][s] = none) → (∀ j, j ≠ s → V[j] = V'[j]) →
      (maskedMultiHeadAttention scale B W Q K V)[i]
        = (maskedMultiHeadAttention scale B W Q K V')[i]

/-- Two heads that add up their values, two keys with score 0, the first masked in the first head:
with its value 2 the output is 1, with 0 it is 0. -/
theorem oneMaskSuppresses_refuted : ¬ OneMaskSuppresses := by
  intro claim
  have e := claim 1 2 2 1 1 1 1 1 1 1
    (fun κ => if κ = 0 then #v[#v[none, some 0]] else #v[#v[some 0, some 0]])
    ⟨fun _ => ⟨#v[#v[1]], #v[0], #v[#v[1]], #v[0], #v[#v[1]], #v[0]⟩, #v[#v[1], #v[1]], #v[0]⟩
    #v[#v[0]] #v[#v[0], #v[0]] #v[#v[2], #v[0]] #v[#v[0], #v[0]] 0 0 ⟨0, rfl⟩
    fun j hj => by
      have : j = 1 := by omega
      subst this
      rfl
  exact absurd (congrArg Vector.toList e) (by decide +kernel)

end Attention.Claims
