module

public import Attention.Proof.Backward.Basic
public import Attention.Proof.Derivative.Changes
public import Attention.Spec.Transformer

public section

/-! # The cross-entropy along any path of the logits

The loss of training: the log-sum-exp of a row of logits, less the logit of the token that comes
next. Its gradient is softmax less 1 at that token. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] [NaturalExp R] {ι : Type v} {n : Nat}

/-- A row of logits as scores. -/
theorem toList_map_some {N : Type u} (z : Vec N n) :
    z.toList.map some = (List.finRange n).map fun k => some z[k] := by
  refine List.ext_getElem (by simp) fun i h₁ h₂ => by simp

/-- **cross-entropy-derivative**: the cross-entropy of logits that change changes at the rate that
it has over dual numbers. -/
theorem crossEntropy_tangent {z : ι → R → Vec R n} {z' : ι → Vec (Dual R) n} (hz : VecTangent z z')
    (y : Fin n) {L : ι → R → R} {L' : ι → Dual R}
    (hL : ∀ x t, IsLogSumExp R (some (L x t)) ((z x t).toList.map some))
    (hL' : ∀ x, IsLogSumExp (Dual R) (some (L' x)) ((z' x).toList.map some)) :
    IsTangent (fun x t => L x t - (z x t)[y]) fun x => L' x - (z' x)[y] := by
  simp only [toList_map_some] at hL hL'
  have h := logSumExp_tangent (keys := List.finRange n) (s := fun k x t => some (z x t)[k])
    (s' := fun k x => some (z' x)[k])
    (fun k _ => .inr ⟨_, _, hz k.val k.isLt, fun _ => ⟨rfl, fun _ => rfl⟩⟩) hL hL'
  refine IsTangent.sub ?_ (hz y.val y.isLt)
  rcases h with h | ⟨f, a, hf, h⟩
  · exact ⟨0, 1, OrderedRing.zero_lt_one, fun x => nomatch (h x).1⟩
  · obtain rfl : L = f := funext fun x => funext fun t => Option.some.inj ((h x).2 t)
    obtain rfl : L' = a := funext fun x => Option.some.inj (h x).1
    exact hf

/-- **cross-entropy-gradient**: it changes at the rate Σ (pₖ − [k = y]) zₖ′, where p is the softmax
of the logits. -/
theorem crossEntropy_rate (z : Vec (Dual R) n) (y : Fin n) {L : Dual R}
    (hL : IsLogSumExp (Dual R) (some L) (z.toList.map some)) :
    (L - z[y]).der = sumOver (fun k =>
      ((softmaxVec (Vec.map (·.val) z))[k] - if k = y then 1 else 0) * z[k].der)
        (List.finRange n) := by
  have hp : ∀ k : Fin n, (softmaxVec (Vec.map (·.val) z))[k]
      = exp z[k].val / denominator ((z.toList.map some).map primal) := fun k => by
    have e : (Vec.map (·.val) z).toList.map some = (z.toList.map some).map primal := by
      simp [Vec.map, primal, List.map_map, Function.comp_def]
    simp only [softmaxVec, softmax, e, Fin.getElem_fin, Vector.getElem_mk, List.getElem_toArray,
      List.getElem_map, Vector.getElem_toList, primal, Option.map_some]
  have h : L.der = meanTangent (z.toList.map some) := scoreTangent_logSumExp hL
  have hy := sumOver_ite_eq (fun k => z[k].der) y
  have e : ∀ k : Fin n, ((softmaxVec (Vec.map (·.val) z))[k] - if k = y then 1 else 0) * z[k].der
      = exp z[k].val / denominator ((z.toList.map some).map primal) * z[k].der
        - if k = y then z[k].der else 0 := fun k => by
    rw [hp]
    split <;> grind
  rw [Dual.der_sub, h, sumOver_congr fun k _ => e k, sumOver_sub, hy, meanTangent]
  congr 1
  generalize (denominator ((z.toList.map some).map primal) : R) = D
  rw [toList_map_some, sumOver_map]
  rfl

end Attention.Proof
