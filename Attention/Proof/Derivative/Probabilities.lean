module

public import Attention.Proof.Derivative.CrossEntropy
public import Attention.Proof.Derivative.Transformer
public import Attention.Spec.TransformerNorms

public section

/-! # The probabilities of a transformer along any paths of its parameters

They are the softmax of its logits. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] [NaturalExp R] {ι : Type v} {m n : Nat}

private theorem softmaxVec_weightOver {N : Type u} [Add N] [Div N] [OfNat N 0] [Exp N N]
    (z : Vec N n) {k : Nat} (hk : k < n) : (softmaxVec z)[k]
      = weightOver (denominator ((List.finRange n).map fun j => some z[j])) (some z[k]) := by
  simp [softmaxVec, softmax_eq_map, toList_map_some]

/-- **softmax-derivative**: the softmax of each row of numbers that change changes at the rate that
it has over dual numbers. -/
theorem softmaxRows_tangent {Z : ι → R → Matrix R m n} {Z' : ι → Matrix (Dual R) m n}
    (hZ : MatrixTangent Z Z') :
    MatrixTangent (fun x t => Vec.map softmaxVec (Z x t)) fun x => Vec.map softmaxVec (Z' x) := by
  intro i hi k hk
  simp only [Vec.getElem_map, softmaxVec_weightOver]
  exact weightOver_tangent (keys := List.finRange n) (s := fun j x t => some (Z x t)[i][j])
    (s' := fun j x => some (Z' x)[i][j])
    (fun j _ => .inr ⟨_, _, hZ i hi j.val j.isLt, fun _ => ⟨rfl, fun _ => rfl⟩⟩)
    (List.mem_finRange ⟨k, hk⟩)

/-- **probabilities-derivative**: so do the probabilities of a transformer all of whose parameters
change, wherever it normalises, where no hidden unit is less than κ away from 0 before it is
rectified. -/
theorem probabilities_tangent {s t d d_model num_heads d_ff s_vocab t_vocab : Nat} {sqrt : R → R}
    (hsqrt : ∀ x, 0 ≤ x → 0 ≤ sqrt x ∧ sqrt x * sqrt x = x) {ε : R} (hε : 0 < ε)
    {scale : ι → R → R} {scale' : ι → Dual R} (hscale : IsTangent scale scale')
    {position : Nat → Vec R d_model}
    {T : ι → R → Transformer R s_vocab t_vocab d_model num_heads d d_ff}
    {T' : ι → Transformer (Dual R) s_vocab t_vocab d_model num_heads d d_ff}
    (hT : TransformerTangent T T') {N : ι → R → FinalNorms R d_model}
    {N' : ι → FinalNorms (Dual R) d_model} (hN : FinalNormsTangent N N') (normFirst : Bool)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) {κ : R} (hκ : 0 < κ)
    (hapart : ∀ x, TransformerApart κ sqrt ε (scale x 0) normFirst (N x 0) position sourceMask
      targetMask crossMask (T x 0) source target) :
    MatrixTangent
      (fun x τ => Vec.map softmaxVec ((T x τ).logitsNormed sqrt ε (scale x τ) normFirst (N x τ)
        position sourceMask targetMask crossMask source target))
      fun x => Vec.map softmaxVec ((T' x).logitsNormed (Dual.root sqrt) (Dual.const ε) (scale' x)
        normFirst (N' x) (fun i => Vec.map Dual.const (position i)) sourceMask targetMask crossMask
        source target) :=
  softmaxRows_tangent (transformer_tangent hsqrt hε hscale hT hN normFirst sourceMask targetMask
    crossMask source target hκ hapart)

end Attention.Proof
