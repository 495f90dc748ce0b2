module

public import Attention.Spec.Attention
public import Attention.Proof.Softmax

public section

/-! # Attention as numerator over denominator -/

namespace Attention.Proof

open Spec Exponential

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d d_v q_len kv_len : Nat}

/-- The numerator of component `j` of a row's attention: Σ exp s · vⱼ over the unmasked keys. -/
@[expose] def numerator (row : List (ScoredValue S R d)) (j : Nat) (h : j < d) : R :=
  sumOver (fun key => (weight key.score : R) * key.value[j]) row

private theorem sumOver_zip (row : List (ScoredValue S R d)) (l : R) {j : Nat} (h : j < d) :
    sumOver (fun x : R × Vec R d => (Vec.smul x.1 x.2)[j])
      (((row.map (·.score)).map fun s => weight s / l).zip (row.map (·.value)))
      = l⁻¹ * numerator row j h := by
  induction row with
  | nil => simp only [List.map_nil, List.zip_nil_left, numerator, sumOver_nil]; grind
  | cons key row ih =>
    simp only [List.map_cons, List.zip_cons_cons, numerator, sumOver_cons, Vec.getElem_smul] at ih ⊢
    rw [ih]
    grind

/-- Attention is the numerator divided by the softmax denominator. -/
theorem getElem_attend (row : List (ScoredValue S R d)) {j : Nat} (h : j < d) :
    (attend row)[j] = numerator row j h / denominator (row.map (·.score)) := by
  simp only [attend, softmax_eq, Vec.getElem_sumOver]
  rw [sumOver_zip]
  grind

/-- A row with every key masked has attention 0. -/
theorem attend_masked {row : List (ScoredValue S R d)} (h : ∀ key ∈ row, key.score = none) :
    attend row = Vec.zero := by
  refine Vector.ext fun j hj => ?_
  have h₀ : numerator row j hj = 0 := sumOver_eq_zero fun key hk => by
    rw [h key hk, weight]
    grind
  rw [getElem_attend, h₀, Vec.getElem_zero]
  grind

/-- The order of the keys, with their values, does not matter. -/
theorem attend_perm {row row' : List (ScoredValue S R d)} (h : row.Perm row') :
    attend row = attend row' := by
  refine Vector.ext fun j hj => ?_
  rw [getElem_attend, getElem_attend, numerator, numerator, sumOver_perm _ h, denominator,
    denominator, sumOver_perm _ (h.map _)]

end Attention.Proof
