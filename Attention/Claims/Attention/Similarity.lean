module

public import Attention.Claims.Attention.Linearity
public import Attention.Algebra.Magnitude

public section

/-! # Similar queries, similar keys

Claimed: queries whose cosine similarity is about 1 give outputs whose cosine similarity is about 1;
and with similar keys, different values give different outputs. Both are false. True: an output
moves by at most a constant times the largest move of a score; and with the same scores, values that
differ at one key that counts give different outputs. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-! ## Claimed -/

/-- A consequence of the claim that similar queries give similar outputs, however one reads ≈:
queries of cosine similarity 1 (one a positive multiple of the other) give outputs whose cosine
similarity is not negative. -/
@[expose] def SimilarQueries [OrderedCommRing S] [OrderedField R] (weights : List S → List R)
    (scale : S) : Prop :=
  ∀ (kv_len d d_v : Nat) (c : S), 0 < c → ∀ (q : Vec S d) (ks : Matrix S kv_len d)
    (vs : Matrix R kv_len d_v),
    0 ≤ Vec.dot (dotProduct weights scale q ks vs) (dotProduct weights scale (Vec.smul c q) ks vs)

/-- A consequence of the claim that different values give different outputs: with equal keys, the
output determines the values. -/
@[expose] def DifferentValues [OrderedCommRing S] [OrderedField R] (weights : List S → List R)
    (scale : S) : Prop :=
  ∀ (kv_len d d_v : Nat) (q : Vec S d) (ks : Matrix S kv_len d) (vs vs' : Matrix R kv_len d_v),
    vs ≠ vs' → dotProduct weights scale q ks vs ≠ dotProduct weights scale q ks vs'

section
variable [OrderedCommRing S] [OrderedField R]

/-- Queries 1 and 3, keys 1 and 0, values 1 and v. -/
private theorem SimilarQueries.refute {weights : List S → List R} {c : S} {x y z w v : R}
    (h₁ : weights [c, 0] = [x, y]) (h₃ : weights [c * 3, 0] = [z, w]) (hn : x + y * v < 0)
    (hp : 0 < z + w * v) : ¬ SimilarQueries weights c := by
  intro h
  have h₀ := OrderedRing.zero_lt_one (R := S)
  have e := h 2 1 1 3 (by grind) #v[1] #v[#v[1], #v[0]] #v[#v[1], #v[v]]
  have k : Vec.smul 3 #v[1] = (#v[3] : Vec S 1) := by
    have h : Vec.smul 3 #v[1] = (#v[3 * 1] : Vec S 1) := rfl
    rw [h, Semiring.mul_one]
  have s₁ : scores c #v[1] (#v[#v[1], #v[0]] : Matrix S 2 1) = [c, 0] :=
    scores_two (by rw [dot_one]; grind) (by rw [dot_one]; grind)
  have s₃ : scores c #v[3] (#v[#v[1], #v[0]] : Matrix S 2 1) = [c * 3, 0] :=
    scores_two (by rw [dot_one]; grind) (by rw [dot_one]; grind)
  rw [k, dotProduct_two 1 v (s₁ ▸ h₁) (z := x + y * v) (by grind),
    dotProduct_two 1 v (s₃ ▸ h₃) (z := z + w * v) (by grind), dot_one] at e
  have := OrderedRing.mul_pos (show 0 < -(x + y * v) by grind) hp
  grind

/-- Equal scores: values 1 and −1 give what 0 and 0 give. -/
private theorem DifferentValues.refute {weights : List S → List R} {c : S} {x : R}
    (h : weights [0, 0] = [x, x]) : ¬ DifferentValues weights c := by
  intro claim
  have s : scores c #v[1] (#v[#v[0], #v[0]] : Matrix S 2 1) = [0, 0] :=
    scores_two (by rw [dot_one]; grind) (by rw [dot_one]; grind)
  have h₁ := OrderedRing.zero_lt_one (R := R)
  refine claim 2 1 1 #v[1] #v[#v[0], #v[0]] #v[#v[1], #v[-1]] #v[#v[0], #v[0]] (fun h => ?_) ?_
  · have : (1 : R) = 0 := congrArg (fun V : Matrix R 2 1 => V[0][0]) h
    grind
  · rw [dotProduct_two 1 (-1) (s ▸ h) (z := 0) (by grind),
      dotProduct_two 0 0 (s ▸ h) (z := 0) (by grind)]

end

private theorem mul_sign [OrderedField R] {c x y : R} (hc : 0 < c) (h : c * x = y) :
    (y < 0 → x < 0) ∧ (0 < y → 0 < x) := by
  subst h
  refine ⟨fun h => Classical.byContradiction fun hn => ?_,
    fun h => Classical.byContradiction fun hn => ?_⟩
  · have := OrderedRing.mul_nonneg (Std.le_of_lt hc) (Std.not_lt.mp hn)
    grind
  · have := OrderedRing.mul_nonneg (Std.le_of_lt hc) (show 0 ≤ -x by grind)
    grind

/-- c (a / c + 1 / c · v) = a + v. -/
private theorem mul_mean [OrderedField R] {c : R} (hc : 0 < c) (a v : R) :
    c * (a / c + 1 / c * v) = a + v := by
  have h₁ := OrderedField.mul_div_cancel (b := c) (by grind) a
  have h₂ := OrderedField.mul_div_cancel (b := c) (by grind) 1
  rw [Semiring.left_distrib, h₁, ← Semiring.mul_assoc, h₂, Semiring.one_mul]

private theorem opposite [OrderedField R] {e : R} (h₁ : 1 < e) :
    e / (e + (1 + 0)) + 1 / (e + (1 + 0)) * -(e * e) < 0
      ∧ 0 < e * e * e / (e * e * e + (1 + 0)) + 1 / (e * e * e + (1 + 0)) * -(e * e) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hp : 0 < e := Std.lt_trans h₀ h₁
  have hpp := OrderedRing.mul_pos hp hp
  have hppp := OrderedRing.mul_pos hpp hp
  have d := OrderedRing.mul_pos hp (show 0 < e - 1 by grind)
  have d' := OrderedRing.mul_pos hpp (show 0 < e - 1 by grind)
  have pos : 0 < e + (1 + 0) := by grind
  have pos' : 0 < e * e * e + (1 + 0) := by grind
  exact ⟨(mul_sign pos (mul_mean pos e (-(e * e)))).1 (by grind),
    (mul_sign pos' (mul_mean pos' (e * e * e) (-(e * e)))).2 (by grind)⟩

/-- Queries of the same direction may give outputs of opposite directions: queries 1 and 3, keys 1
and 0, values 1 and −exp 2, for every exponential. -/
theorem similarQueries_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R] :
    ¬ SimilarQueries (expSoftmax : List S → List R) 1 := by
  have h₁ : (1 : R) < exp (1 : S) := by
    have := exp_lt (R := R) (0 : S) 1 OrderedRing.zero_lt_one
    rwa [exp_zero] at this
  have e₃ : (exp ((1 : S) * 3) : R) = exp (1 : S) * exp (1 : S) * exp (1 : S) := by
    rw [← exp_add, ← exp_add]
    congr 1
    grind
  have h := opposite h₁
  refine SimilarQueries.refute (v := -(exp (1 : S) * exp (1 : S))) rfl rfl ?_ ?_
  · simp only [denominator, List.map_cons, List.map_nil, sumOver_cons, sumOver_nil, weight,
      exp_zero]
    exact h.1
  · simp only [denominator, List.map_cons, List.map_nil, sumOver_cons, sumOver_nil, weight,
      exp_zero, e₃]
    exact h.2

/-- With exp k = 2 ^ k the values 1 and −3 do: the outputs are −1/3 and 5/9. -/
theorem similarQueries_values :
    (dotProduct expSoftmax (1 : Int) #v[1] #v[#v[1], #v[0]] #v[#v[1], #v[-3]] : Vec Rat 1).toList
      = [-1/3] ∧
    (dotProduct expSoftmax (1 : Int) #v[3] #v[#v[1], #v[0]] #v[#v[1], #v[-3]] : Vec Rat 1).toList
      = [5/9] := by
  decide +kernel

/-- Different values may give one output, with the same keys: for every exponential and every
scale. -/
theorem differentValues_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R] (scale : S) :
    ¬ DifferentValues (expSoftmax : List S → List R) scale :=
  DifferentValues.refute rfl

/-! ## True -/

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- With the same scores, and values that differ at key j alone, the outputs differ by the weight of
j times the difference of its values. -/
theorem attention_value_changed (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) {V V' : Matrix R kv_len d_v} {j : Fin kv_len}
    (h : ∀ k, k ≠ j → V[k] = V'[k]) (i : Fin q_len) (c : Fin d_v) :
    (attention scale modify Q K V)[i][c] - (attention scale modify Q K V')[i][c]
      = (weight (score scale modify Q K i j) : R)
          / denominator ((List.finRange kv_len).map (score scale modify Q K i))
        * (V[j][c] - V'[j][c]) := by
  rw [Proof.getElem_attention_eq_weights, Proof.getElem_attention_eq_weights, denominator,
    sumOver_map]
  generalize sumOver (fun k => (weight (score scale modify Q K i k) : R)) (List.finRange kv_len) = l
  have e : sumOver (fun k => (weight (score scale modify Q K i k) : R) * V[k][c])
        (List.finRange kv_len)
      - sumOver (fun k => (weight (score scale modify Q K i k) : R) * V'[k][c])
        (List.finRange kv_len)
      = (weight (score scale modify Q K i j) : R) * (V[j][c] - V'[j][c]) := by
    rw [← sumOver_sub, ← sumOver_ite_eq
      (fun k => (weight (score scale modify Q K i k) : R) * (V[k][c] - V'[k][c])) j]
    refine sumOver_congr fun k _ => ?_
    by_cases hk : k = j
    · rw [if_pos hk]
      grind
    · rw [if_neg hk, h k hk]
      grind
  simp only [Field.div_eq_mul_inv]
  grind

/-- So they do differ, if key j is not masked. -/
theorem attention_value_ne (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) {V V' : Matrix R kv_len d_v} {j : Fin kv_len}
    (h : ∀ k, k ≠ j → V[k] = V'[k]) {i : Fin q_len} (hj : score scale modify Q K i j ≠ none)
    {c : Fin d_v} (hc : V[j][c] ≠ V'[j][c]) :
    (attention scale modify Q K V)[i][c] ≠ (attention scale modify Q K V')[i][c] := by
  intro e
  have h' := attention_value_changed scale modify Q K h i c
  obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hj
  have hl : (0 : R) < denominator ((List.finRange kv_len).map (score scale modify Q K i)) :=
    Proof.denominator_pos (s := s) (List.mem_map.mpr ⟨j, List.mem_finRange j, hs⟩)
  have hw : (0 : R) < weight (score scale modify Q K i j) := by
    rw [hs]
    exact exp_pos s
  rw [e] at h'
  generalize (denominator ((List.finRange kv_len).map (score scale modify Q K i)) : R) = l at *
  generalize (weight (score scale modify Q K i j) : R) = w at *
  have h₁ : w / l ≠ 0 := by
    intro h₀
    have := OrderedField.mul_div_cancel (b := l) (by grind) w
    rw [h₀] at this
    grind
  have h₂ : V[j][c] - V'[j][c] ≠ 0 := by grind
  grind

end Attention.Claims
