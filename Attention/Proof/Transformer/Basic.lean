module

public import Attention.Spec.Transformer
public import Attention.Proof.Softmax.Basic

public section

/-! # A transformer gives probabilities -/

namespace Attention.Proof

open Spec

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]
variable {n s t s_vocab t_vocab d_model num_heads d d_ff : Nat}

omit [Exponential R R] in
private theorem sumOver_finRange (x : Vec R n) :
    sumOver (fun i : Fin n => x[i]) (List.finRange n) = sumOver id x.toList := by
  have h : x.toList = (List.finRange n).map fun i => x[i] :=
    List.ext_getElem (by simp) fun i _ _ => by simp
  rw [h, sumOver_map]
  rfl

/-- The components of the softmax of a vector: exp xᵢ / Σ exp x. -/
theorem getElem_softmaxVec (x : Vec R n) (i : Fin n) :
    (softmaxVec x)[i] = exp x[i] / sumOver (fun j => exp x[j]) (List.finRange n) := by
  have h : x.toList = (List.finRange n).map fun i => x[i] :=
    List.ext_getElem (by simp) fun i _ _ => by simp
  have e : (denominator (x.toList.map some) : R)
      = sumOver (fun j => exp x[j]) (List.finRange n) := by
    rw [denominator, sumOver_map, h, sumOver_map]
    rfl
  simp [softmaxVec, softmax, e]

/-- The components of the softmax of a vector are positive, and sum to 1 if there is one. -/
theorem softmaxVec_isProb (x : Vec R n) :
    (∀ i : Fin n, 0 < (softmaxVec x)[i]) ∧
      (0 < n → sumOver (fun i => (softmaxVec x)[i]) (List.finRange n) = 1) := by
  constructor
  · intro i
    have h₁ := Exponential.exp_pos (R := R) x[i]
    have h₂ := le_sumOver (f := fun j : Fin n => (exp x[j] : R)) (xs := List.finRange n)
      (fun j _ => Std.le_of_lt (Exponential.exp_pos _)) (List.mem_finRange i)
    have h₃ := Std.lt_of_lt_of_le h₁ h₂
    rw [getElem_softmaxVec, Lean.Grind.Field.div_eq_mul_inv]
    exact Lean.Grind.OrderedRing.mul_pos h₁ (Lean.Grind.Field.IsOrdered.inv_pos_iff.mpr h₃)
  · intro hn
    rw [sumOver_finRange]
    exact (softmax_sum_one (R := R) (x.toList.map some)).1
      ⟨x[0], List.mem_map.mpr ⟨x[0], by simp, rfl⟩⟩

/-- **argmax-softmax**: the largest probability is where the largest logit is, ties included: greedy
decoding needs no softmax. -/
theorem argmax_softmaxVec (x : Vec R n) : argmax (softmaxVec x) = argmax x := by
  have le : ∀ i j : Fin n, (softmaxVec x)[i] ≤ (softmaxVec x)[j] ↔ x[i] ≤ x[j] := by
    intro i j
    have h₁ := Exponential.exp_pos (R := R) x[i]
    have h₂ := le_sumOver (f := fun j : Fin n => (exp x[j] : R)) (xs := List.finRange n)
      (fun j _ => Std.le_of_lt (Exponential.exp_pos _)) (List.mem_finRange i)
    have h₃ := Std.lt_of_lt_of_le h₁ h₂
    have e : sumOver (fun j : Fin n => (exp x[j] : R)) (List.finRange n)
        * (exp x[j] / sumOver (fun j : Fin n => (exp x[j] : R)) (List.finRange n)) = exp x[j] :=
      OrderedField.mul_div_cancel (by grind) _
    rw [getElem_softmaxVec, getElem_softmaxVec, OrderedField.div_le_iff h₃, e]
    refine ⟨fun h => ?_, fun h => Exponential.exp_le h⟩
    refine Classical.byContradiction fun hn => ?_
    have := Exponential.exp_lt (R := R) x[j] x[i] (Std.not_le.mp hn)
    exact Std.not_lt.mpr h this
  have step : ∀ (js : List (Fin n)) (best : Option (Fin n)),
      js.foldl (fun best j => match best with
        | none => some j
        | some b => if (softmaxVec x)[j] ≤ (softmaxVec x)[b] then some b else some j) best
      = js.foldl (fun best j => match best with
        | none => some j
        | some b => if x[j] ≤ x[b] then some b else some j) best := by
    intro js
    induction js with
    | nil => intro best; rfl
    | cons j js ih =>
      intro best
      rw [List.foldl_cons, List.foldl_cons, ih]
      cases best with
      | none => rfl
      | some b => simp only [le]
  exact step _ none

/-- **transformer-is-prob**: what a transformer gives for each place of the target are
probabilities: each is positive, and together they are 1. This holds for any number of layers, any
parameters, any masks and any function in place of the root. -/
theorem transformer_is_prob (sqrt : R → R) (ε scale : R) (position : Nat → Vec R d_model)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (i : Fin t) :
    let p :=
      (T.probabilities sqrt ε scale position sourceMask targetMask crossMask source target)[i]
    (∀ j : Fin t_vocab, 0 < p[j]) ∧ sumOver (fun j => p[j]) (List.finRange t_vocab) = 1 := by
  intro p
  have h := softmaxVec_isProb (T.logits sqrt ε scale position sourceMask targetMask crossMask source
    target)[i]
  have e : p = softmaxVec (T.logits sqrt ε scale position sourceMask targetMask crossMask source
      target)[i] := by
    simp only [p, Transformer.probabilities, Fin.getElem_fin, Vec.getElem_map]
  rw [e]
  exact ⟨h.1, h.2 (Nat.lt_of_le_of_lt (Nat.zero_le _) target[i].isLt)⟩

omit [Exponential R R] in
/-- The largest component is found, if there is one that exceeds all others. -/
theorem argmax_eq {x : Vec R n} {k : Fin n} (h : ∀ j, j ≠ k → x[j] < x[k]) :
    argmax x = some k := by
  let step : Option (Fin n) → Fin n → Option (Fin n) := fun best j =>
    match best with
    | none => some j
    | some b => if x[j] ≤ x[b] then some b else some j
  have stays : ∀ xs : List (Fin n), xs.foldl step (some k) = some k := fun xs => by
    induction xs with
    | nil => rfl
    | cons j xs ih =>
      have e : step (some k) j = some k := by
        by_cases hj : j = k
        · subst hj
          exact if_pos (Std.le_refl _)
        · exact if_pos (Std.le_of_lt (h j hj))
      rw [List.foldl_cons, e, ih]
  have found : ∀ xs : List (Fin n), k ∈ xs → ∀ best, xs.foldl step best = some k := fun xs => by
    induction xs with
    | nil => intro hk; cases hk
    | cons j xs ih =>
      intro hk best
      rw [List.foldl_cons]
      rcases List.mem_cons.mp hk with rfl | hk
      · have e : step best k = some k := by
          cases best with
          | none => rfl
          | some b =>
            by_cases hb : b = k
            · subst hb
              exact if_pos (Std.le_refl _)
            · exact if_neg (Std.not_le.mpr (h b hb))
        rw [e, stays]
      · exact ih hk _
  exact found _ (List.mem_finRange k) none

end Attention.Proof
