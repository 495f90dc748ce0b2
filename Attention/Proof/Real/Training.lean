module

public import Attention.Proof.Backward.Loss
public import Attention.Proof.Real.LogSumExp

public section

/-! # The gradient of training, over the real numbers

Roots and log-sum-exps are there, so that of the suppositions of `transformer_gradient` two remain:
that ε is positive and that no hidden unit is at 0 before it is rectified. -/

namespace Attention.Proof

open Spec Model

universe v

variable {ι : Type v} {s t d d_model num_heads d_ff s_vocab t_vocab : Nat}

private theorem exists_lse {n : Nat} (z : Vec Real n) (y : Fin n) :
    ∃ L : Real, IsLogSumExp Real (some L) (z.toList.map some) := by
  obtain ⟨L, hL, _⟩ := exists_isLogSumExp (z.toList.map some)
  cases L with
  | some L => exact ⟨L, hL⟩
  | none =>
    have h := isLogSumExp_none.mp hL (some z[y])
      (List.mem_map_of_mem (Vector.mem_toList_iff.mpr (Vector.getElem_mem y.isLt)))
    cases h

/-- **transformer-gradient-real**: over the real numbers the log-sum-exps of the logits exist, and
the loss changes at the rate that its gradient by all parameters gives. -/
theorem transformer_gradient_real {ε : Real} (hε : 0 < ε) {position : Nat → Vec Real d_model}
    {scale : Real} {T : ι → Real → Transformer Real s_vocab t_vocab d_model num_heads d d_ff}
    {T' : ι → Transformer (Dual Real) s_vocab t_vocab d_model num_heads d d_ff}
    (hT : TransformerTangent T T') {N : ι → Real → FinalNorms Real d_model}
    {N' : ι → FinalNorms (Dual Real) d_model} (hN : FinalNormsTangent N N') (normFirst : Bool)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (source : Vector (Fin s_vocab) s) (target y : Vector (Fin t_vocab) t) (dLoss : Vec Real t)
    {κ : Real} (hκ : 0 < κ)
    (hapart : ∀ x, TransformerApart κ Real.sqrt ε scale normFirst (N x 0) position sourceMask
      targetMask crossMask (T x 0) source target) :
    let Z := fun x τ => (T x τ).logitsNormed Real.sqrt ε scale normFirst (N x τ) position sourceMask
      targetMask crossMask source target
    ∃ L : ι → Real → Fin t → Real,
      (∀ x τ (i : Fin t), IsLogSumExp Real (some (L x τ i)) ((Z x τ)[i].toList.map some)) ∧
      let loss := fun x τ => sumOver (fun i : Fin t => dLoss[i] * (L x τ i - (Z x τ)[i][y[i]]))
        (List.finRange t)
      let g := fun x => (T x 0).lossVjp Real.sqrt ε scale normFirst (N x 0) position sourceMask
        targetMask crossMask source target y dLoss
      IsTangent loss fun x =>
        ⟨loss x 0, Transformer.rate (g x).1 (T' x) + FinalNorms.rate (g x).2 (N' x)⟩ := by
  intro Z
  have h := fun x τ (i : Fin t) => exists_lse (Z x τ)[i] y[i]
  exact ⟨fun x τ i => Classical.choose (h x τ i), fun x τ i => Classical.choose_spec (h x τ i),
    transformer_gradient (fun x hx => ⟨Real.sqrt_nonneg x, Real.sqrt_mul_self hx⟩) hε hT hN
      normFirst sourceMask targetMask crossMask source target y dLoss hκ hapart
      fun x τ i => Classical.choose_spec (h x τ i)⟩

end Attention.Proof
