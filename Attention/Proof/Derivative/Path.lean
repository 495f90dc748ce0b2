module

public import Attention.Proof.Derivative.Layers
public import Attention.Proof.Enclosure.Basic

public section

/-! # Attention along any paths

Scale, queries, keys, values and what changes the scores may all change. Attention run over dual
numbers then computes at which rates its output changes. -/

namespace Attention.Proof

open Spec Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {ι : Type v} {d d_v q_len kv_len : Nat}

/-- A score on each path of a family: masked on all of them and always, or a number that has at time
0 the number and the rate of `s'`. -/
@[expose] def ScoreTangent (s : ι → R → Option R) (s' : ι → Option (Dual R)) : Prop :=
  (∀ x, s' x = none ∧ ∀ t, s x t = none)
    ∨ ∃ f a, IsTangent f a ∧ ∀ x, s' x = some (a x) ∧ ∀ t, s x t = some (f x t)

/-- Score transformations that may change: of a score that changes they make one that changes at the
rate which `modify'` gives it. -/
@[expose] def ModTangent (modify : ι → R → ScoreMod R q_len kv_len)
    (modify' : ι → ScoreMod (Dual R) q_len kv_len) : Prop :=
  ∀ i j (f : ι → R → R) (a : ι → Dual R), IsTangent f a →
    ScoreTangent (fun x t => modify x t i j (f x t)) fun x => modify' x i j (a x)

variable [NaturalExp R]

/-- The weight of a score that changes. -/
theorem weight_tangent {s : ι → R → Option R} {s' : ι → Option (Dual R)}
    (h : ScoreTangent s s') :
    IsTangent (fun x t => (weight (s x t) : R)) (fun x => weight (s' x)) := by
  rcases h with h | ⟨f, a, hf, h⟩
  · have e : (fun x t => (Spec.weight (s x t) : R)) = fun _ _ => 0 :=
      funext fun x => funext fun t => by rw [(h x).2 t]; rfl
    have e' : (fun x => (Spec.weight (s' x) : Dual R)) = fun _ => 0 :=
      funext fun x => by rw [(h x).1]; rfl
    rw [e, e']
    exact .zero
  · have e : (fun x t => (Spec.weight (s x t) : R)) = fun x t => exp (f x t) :=
      funext fun x => funext fun t => by rw [(h x).2 t]; rfl
    have e' : (fun x => (Spec.weight (s' x) : Dual R)) = fun x => exp (a x) :=
      funext fun x => by rw [(h x).1]; rfl
    rw [e, e']
    exact hf.exp

private theorem weight_nonneg_dual (s : Option (Dual R)) : 0 ≤ (weight s : Dual R).val := by
  cases s with
  | none => exact Std.le_refl _
  | some a => exact Std.le_of_lt (Exponential.exp_pos a.val)

variable {α : Type} {keys : List α}

/-- A denominator that changes. -/
theorem denominator_tangent {s : α → ι → R → Option R} {s' : α → ι → Option (Dual R)}
    (h : ∀ k ∈ keys, ScoreTangent (s k) (s' k)) :
    IsTangent (fun x t => (denominator (keys.map fun k => s k x t) : R))
      (fun x => denominator (keys.map fun k => s' k x)) := by
  simp only [denominator, sumOver_map]
  exact IsTangent.sumOver fun k hk => weight_tangent (h k hk)

/-- With a key that is not masked it stays away from 0. -/
theorem denominator_apart {f : ι → R → R} {a : ι → Dual R} (hf : IsTangent f a)
    {s' : α → ι → Option (Dual R)} {k : α} (hk : k ∈ keys) (ha : ∀ x, s' k x = some (a x)) :
    ∃ m : R, 0 < m ∧ ∀ x, m ≤ (denominator (keys.map fun k => s' k x) : Dual R).val := by
  obtain ⟨B, τ, _, h⟩ := hf
  refine ⟨exp (-B), Exponential.exp_pos _, fun x => ?_⟩
  have h₁ : (exp (-B) : R) ≤ (Spec.weight (s' k x) : Dual R).val := by
    rw [ha]
    exact Exponential.exp_le (h x).1.1
  rw [denominator, sumOver_map, Dual.val_sumOver]
  exact Std.le_trans h₁ (le_sumOver (f := fun k => (Spec.weight (s' k x) : Dual R).val)
    (fun k _ => weight_nonneg_dual _) hk)

/-- A softmax weight that changes. -/
theorem weightOver_tangent {s : α → ι → R → Option R} {s' : α → ι → Option (Dual R)}
    (h : ∀ k ∈ keys, ScoreTangent (s k) (s' k)) {k : α} (hk : k ∈ keys) :
    IsTangent (fun x t => weightOver (R := R) (denominator (keys.map fun k => s k x t)) (s k x t))
      (fun x => weightOver (denominator (keys.map fun k => s' k x)) (s' k x)) := by
  have hl := denominator_tangent h
  rcases h k hk with h | ⟨f, a, hf, h⟩
  · simp only [fun x => (h x).1, fun x t => (h x).2 t, weightOver]
    exact .zero
  · obtain ⟨m, hm, hb⟩ := denominator_apart (R := R) (keys := keys) hf hk fun x => (h x).1
    simp only [fun x => (h x).1, fun x t => (h x).2 t, weightOver]
    exact hf.exp.div hl hm hb

/-- The attention of a row of scores and values that change. -/
theorem attend_tangent {f : α → ι → R → ScoredValue R R d}
    {f' : α → ι → ScoredValue (Dual R) (Dual R) d}
    (hs : ∀ k ∈ keys, ScoreTangent (fun x t => (f k x t).score) fun x => (f' k x).score)
    (hv : ∀ k ∈ keys, VecTangent (fun x t => (f k x t).value) fun x => (f' k x).value) :
    VecTangent (fun x t => attend (keys.map fun k => f k x t))
      fun x => attend (keys.map fun k => f' k x) := by
  intro j hj
  simp only [getElem_attend_map]
  exact IsTangent.sumOver fun k hk => (weightOver_tangent hs hk).mul (hv k hk j hj)

variable {scale : ι → R → R} {scale' : ι → Dual R}
variable {modify : ι → R → ScoreMod R q_len kv_len}
variable {modify' : ι → ScoreMod (Dual R) q_len kv_len}
variable {Q : ι → R → Matrix R q_len d} {Q' : ι → Matrix (Dual R) q_len d}
variable {K : ι → R → Matrix R kv_len d} {K' : ι → Matrix (Dual R) kv_len d}
variable {V : ι → R → Matrix R kv_len d_v} {V' : ι → Matrix (Dual R) kv_len d_v}

omit [NaturalExp R] in
/-- A score that changes. -/
theorem score_tangent (hscale : IsTangent scale scale') (hmodify : ModTangent modify modify')
    (hQ : MatrixTangent Q Q') (hK : MatrixTangent K K') (i : Fin q_len) (j : Fin kv_len) :
    ScoreTangent (fun x t => score (scale x t) (modify x t) (Q x t) (K x t) i j)
      fun x => score (scale' x) (modify' x) (Q' x) (K' x) i j :=
  hmodify i j _ _ (hscale.mul (dot_tangent (hQ i.val i.isLt) (hK j.val j.isLt)))

/-- **attention-derivative**: attention along any paths of its scale, queries, keys, values and of
what changes its scores changes at the rates that it has over dual numbers. -/
theorem attention_tangent (hscale : IsTangent scale scale') (hmodify : ModTangent modify modify')
    (hQ : MatrixTangent Q Q') (hK : MatrixTangent K K') (hV : MatrixTangent V V') :
    MatrixTangent (fun x t => attention (scale x t) (modify x t) (Q x t) (K x t) (V x t))
      fun x => attention (scale' x) (modify' x) (Q' x) (K' x) (V' x) := by
  intro i hi
  simp only [attention, Vec.getElem_ofFn, scored]
  exact attend_tangent (fun k _ => score_tangent hscale hmodify hQ hK ⟨i, hi⟩ k)
    fun k _ => hV k.val k.isLt

end Attention.Proof
