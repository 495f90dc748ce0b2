module

public import Attention.Model.Exact
public import Attention.Proof.Softmax.Attention
public import Attention.Spec.Masks

public section

/-! # Dot-product attention with any weights

The document of attention as a concept writes SoftMax without an exponential, xsᵢ / Σ xsⱼ, and means
the one with it. Its claims are therefore stated of any function from scores to weights, and what is
false of them is refuted of both softmaxes. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- SoftMax without the exponential: each number divided by the sum of all. -/
@[expose] def ratio [Add R] [Div R] [OfNat R 0] (xs : List R) : List R :=
  xs.map (· / sumOver id xs)

/-- Softmax of scores none of which is masked. -/
@[expose] def expSoftmax [Add R] [Div R] [OfNat R 0] [Exp S R] (xs : List S) : List R :=
  softmax (xs.map some)

/-- A list of weights is a distribution: they sum to 1, and each lies between 0 and 1. -/
@[expose] def IsDistribution [OrderedField R] (ps : List R) : Prop :=
  sumOver id ps = 1 ∧ ∀ p ∈ ps, 0 ≤ p ∧ p ≤ 1

section
variable [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [OfNat R 0]

/-- The scores of one query: scale · ⟨q, ksᵢ⟩ for each key. -/
@[expose] def scores (scale : S) (q : Vec S d) (ks : Matrix S kv_len d) : List S :=
  (List.finRange kv_len).map fun i => scale * Vec.dot q ks[i]

/-- Dot-product attention of one query with any weights: Σ αᵢ vsᵢ, where α are the weights of the
scores. -/
@[expose] def dotProduct (weights : List S → List R) (scale : S) (q : Vec S d)
    (ks : Matrix S kv_len d) (vs : Matrix R kv_len d_v) : Vec R d_v :=
  Vec.sumOver (fun (α, v) => Vec.smul α v) ((weights (scores scale q ks)).zip vs.toList)

/-- Dot-product attention of a sequence of queries with any weights. -/
@[expose] def dotProducts (weights : List S → List R) (scale : S) (qs : Matrix S q_len d)
    (ks : Matrix S kv_len d) (vs : Matrix R kv_len d_v) : Matrix R q_len d_v :=
  Vec.ofFn fun i => dotProduct weights scale qs[i] ks vs

end

/-- With the exponential it is attention, without a mask: what is claimed of one is claimed of the
other. -/
theorem dotProducts_eq_attention [OrderedCommRing S] [OrderedField R] [Exponential S R] (scale : S)
    (qs : Matrix S q_len d) (ks : Matrix S kv_len d) (vs : Matrix R kv_len d_v) :
    dotProducts expSoftmax scale qs ks vs
      = attention scale Mask.full.toScoreMod qs ks vs := by
  refine Vector.ext fun i hi => ?_
  have h : vs.toList = (List.finRange kv_len).map fun j : Fin kv_len => vs[j] :=
    List.ext_getElem (by simp) fun j h₁ h₂ => by simp
  simp only [dotProducts, attention, Vec.getElem_ofFn, dotProduct, attend, expSoftmax, scores,
    scored, List.map_map, h]
  rfl

/-! ## Two keys -/

section
variable [OrderedCommRing S] [OrderedField R]

/-- The inner product of vectors of one component. -/
theorem dot_one (a b : S) : Vec.dot #v[a] #v[b] = a * b := by
  have h : Vec.dot #v[a] #v[b] = a * b + 0 := rfl
  rw [h, Semiring.add_zero]

/-- The inner product of vectors of two components. -/
theorem dot_two (a a' b b' : S) : Vec.dot #v[a, a'] #v[b, b'] = a * b + a' * b' := by
  have h : Vec.dot #v[a, a'] #v[b, b'] = a * b + (a' * b' + 0) := rfl
  rw [h, Semiring.add_zero]

/-- The scores of two keys. -/
theorem scores_two {c : S} {q k k' : Vec S d} {x y : S} (h : c * Vec.dot q k = x)
    (h' : c * Vec.dot q k' = y) : scores c q #v[k, k'] = [x, y] := by
  rw [← h, ← h']
  rfl

/-- Attention over two keys with values of one component. -/
theorem dotProduct_two {weights : List S → List R} {c : S} {q : Vec S d} {ks : Matrix S 2 d}
    {a b z : R} (v v' : R) (h : weights (scores c q ks) = [a, b]) (hz : a * v + b * v' = z) :
    dotProduct weights c q ks (#v[#v[v], #v[v']] : Matrix R 2 1) = #v[z] := by
  have e : dotProduct weights c q ks (#v[#v[v], #v[v']] : Matrix R 2 1)
      = #v[a * v + (b * v' + 0)] := by
    rw [dotProduct, h]
    rfl
  rw [e, Semiring.add_zero, hz]

end

/-! ## Are the weights a distribution? -/

/-- With the exponential, the weights of one score or more are a distribution. -/
theorem expSoftmax_distribution [OrderedCommRing S] [OrderedField R] [Exponential S R] {xs : List S}
    (h : xs ≠ []) : IsDistribution (expSoftmax (R := R) xs) := by
  obtain ⟨x, xs, rfl⟩ := List.exists_cons_of_ne_nil h
  have hsum := (Proof.softmax_sum_one (R := R) ((x :: xs).map some)).1 ⟨x, by simp⟩
  refine ⟨hsum, fun p hp => ?_⟩
  have h₀ := Proof.softmax_nonneg (R := R) ((x :: xs).map some)
  refine ⟨h₀ p hp, ?_⟩
  have : p ≤ sumOver id (expSoftmax (x :: xs)) := le_sumOver (f := id) h₀ hp
  rwa [show sumOver id (expSoftmax (x :: xs)) = (1 : R) from hsum] at this

/-- Without it they need not lie between 0 and 1: of 2 and −1 they are 2 and −1. -/
theorem ratio_distribution_refuted : ¬ ∀ xs : List Rat, sumOver id xs ≠ 0 →
    IsDistribution (ratio xs) :=
  fun h => absurd ((h [2, -1] (by decide +kernel)).2 2 (by decide +kernel)).2 (by decide +kernel)

/-- Nor need they sum to 1: of 1 and −1 nothing can be divided by the sum. -/
theorem ratio_sum_refuted : ¬ ∀ xs : List Rat, xs ≠ [] → sumOver id (ratio xs) = 1 :=
  fun h => absurd (h [1, -1] (by simp)) (by decide +kernel)

/-- Where all numbers are positive, they are a distribution without it as well. -/
theorem ratio_distribution [OrderedField R] {xs : List R} (h : xs ≠ []) (hpos : ∀ x ∈ xs, 0 < x) :
    IsDistribution (ratio xs) := by
  have hle : ∀ x ∈ xs, 0 ≤ id x := fun x hx => Std.le_of_lt (hpos x hx)
  obtain ⟨y, ys, rfl⟩ := List.exists_cons_of_ne_nil h
  have hy := le_sumOver hle (List.mem_cons_self ..)
  have hl : (0 : R) < sumOver id (y :: ys) := Std.lt_of_lt_of_le (hpos y (by simp)) hy
  refine ⟨?_, fun p hp => ?_⟩
  · rw [ratio, sumOver_map]
    have e : sumOver (fun x : R => id (x / sumOver id (y :: ys))) (y :: ys)
        = sumOver (fun x => id x * (sumOver id (y :: ys))⁻¹) (y :: ys) :=
      sumOver_congr fun x _ => Field.div_eq_mul_inv _ _
    have e' : sumOver (fun x : R => id x * (sumOver id (y :: ys))⁻¹) (y :: ys)
        = (sumOver id (y :: ys))⁻¹ * sumOver id (y :: ys) := by
      rw [← sumOver_mul_left]
      exact sumOver_congr fun x _ => CommSemiring.mul_comm _ _
    rw [e, e']
    grind
  · obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hp
    refine ⟨OrderedField.div_nonneg (hle x hx) hl, ?_⟩
    rw [OrderedField.div_le_iff hl, Semiring.mul_one]
    exact le_sumOver hle hx

end Attention.Claims
