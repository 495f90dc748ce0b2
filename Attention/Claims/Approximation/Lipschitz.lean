module

public import Attention.Algebra.Magnitude
public import Attention.Proof.Scores.ScoreMods
public import Attention.Spec.Masks

public section

/-! # How far an output moves when the queries do

For the natural exponential: if no score moves by more than ε, no component of the output moves by
more than 2 ε (b − a), where the values lie between a and b. So attention is Lipschitz in its
queries, with an explicit constant. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

attribute [local instance] Semiring.natCast

variable {R : Type v} [OrderedField R] [NaturalExp R] {q_len kv_len d d_v : Nat}

section Mean

variable {α : Type u} {ks : List α} {w w' v : α → R} {ε a b : R}

/-- Of two weighted means of one thing, with weights that differ by a factor of exp ε at most, the
one exceeds the other by at most 2 ε times its distance from a lower bound. -/
private theorem mean_sub_le (hw : ∀ k ∈ ks, 0 ≤ w k) (hw' : ∀ k ∈ ks, 0 ≤ w' k)
    (hle : ∀ k ∈ ks, w k ≤ exp ε * w' k) (hle' : ∀ k ∈ ks, w' k ≤ exp ε * w k)
    (hl : 0 < sumOver w ks) (hl' : 0 < sumOver w' ks) (ha : ∀ k ∈ ks, w k ≠ 0 → a ≤ v k) :
    sumOver (fun k => w k * v k) ks / sumOver w ks
        - sumOver (fun k => w' k * v k) ks / sumOver w' ks
      ≤ 2 * ε * (sumOver (fun k => w k * v k) ks / sumOver w ks - a) := by
  have above : ∀ u : α → R, sumOver (fun k => u k * (v k - a)) ks
      = sumOver (fun k => u k * v k) ks - sumOver u ks * a := fun u => by
    rw [← sumOver_mul_right, ← sumOver_sub]
    exact sumOver_congr fun k _ => by grind
  have term : ∀ k ∈ ks, 0 ≤ w k * (v k - a) ∧ w k * (v k - a) ≤ exp ε * (w' k * (v k - a)) :=
    fun k hk => by
      by_cases h : w k = 0
      · have := hle' k hk
        have := hw' k hk
        have h' : w' k = 0 := by
          rw [h, Semiring.mul_zero] at *
          grind
        rw [h, h', Semiring.zero_mul, Semiring.mul_zero]
        exact ⟨Std.le_refl _, Std.le_refl _⟩
      · have h₁ : 0 ≤ v k - a := by have := ha k hk h; grind
        have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (hle k hk) h₁
        exact ⟨OrderedRing.mul_nonneg (hw k hk) h₁, by rwa [Semiring.mul_assoc] at h₂⟩
  have hA : 0 ≤ sumOver (fun k => w k * (v k - a)) ks := sumOver_nonneg fun k hk => (term k hk).1
  have hA' : sumOver (fun k => w k * (v k - a)) ks
      ≤ exp ε * sumOver (fun k => w' k * (v k - a)) ks := by
    rw [← sumOver_mul_left]
    exact sumOver_le_sumOver fun k hk => (term k hk).2
  have hL : sumOver w' ks ≤ exp ε * sumOver w ks := by
    rw [← sumOver_mul_left]
    exact sumOver_le_sumOver hle'
  have hE : (0 : R) < exp ε := exp_pos ε
  have hEE : (1 - 2 * ε) * (exp ε * exp ε) ≤ 1 := by
    have h₁ := NaturalExp.one_add_le_exp (-(2 * ε))
    have h₂ : (exp (-(2 * ε)) : R) * (exp ε * exp ε) = 1 := by
      rw [← exp_add, ← exp_add, ← exp_zero (S := R) (R := R)]
      congr 1
      grind
    have := OrderedRing.mul_le_mul_of_nonneg_right h₁
      (Std.le_of_lt (OrderedRing.mul_pos hE hE))
    rw [h₂] at this
    grind
  rw [above] at hA
  rw [above, above] at hA'
  generalize sumOver (fun k => w k * v k) ks = n at *
  generalize sumOver (fun k => w' k * v k) ks = n' at *
  generalize sumOver w ks = l at *
  generalize sumOver w' ks = l' at *
  -- (1 − 2 ε) (n − l a) l' ≤ (n' − l' a) l
  have key : (1 - 2 * ε) * ((n - l * a) * l') ≤ (n' - l' * a) * l := by
    have h₁ : (n - l * a) * l' ≤ exp ε * exp ε * ((n' - l' * a) * l) := by
      have e₁ := OrderedRing.mul_le_mul_of_nonneg_right hA' (Std.le_of_lt hl')
      have hB : 0 ≤ exp ε * (n' - l' * a) := Std.le_trans hA hA'
      have e₂ := OrderedRing.mul_le_mul_of_nonneg_left hL hB
      grind
    have hB : 0 ≤ n' - l' * a := by
      refine Classical.byContradiction fun hn => ?_
      have := OrderedRing.mul_pos hE (show 0 < -(n' - l' * a) by grind)
      grind
    have hBl := OrderedRing.mul_nonneg hB (Std.le_of_lt hl)
    have hAl := OrderedRing.mul_nonneg hA (Std.le_of_lt hl')
    rcases Std.le_total (a := 0) (b := 1 - 2 * ε) with h | h
    · have e₁ := OrderedRing.mul_le_mul_of_nonneg_left h₁ h
      have e₂ := OrderedRing.mul_le_mul_of_nonneg_right hEE hBl
      grind
    · have := OrderedRing.mul_nonneg (show 0 ≤ -(1 - 2 * ε) by grind) hAl
      grind
  have o : n = l * (n / l) := by grind
  have o' : n' = l' * (n' / l') := by grind
  generalize n / l = x at *
  generalize n' / l' = y at *
  subst o o'
  have hll := OrderedRing.mul_pos hl hl'
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.mul_pos hll (show 0 < x - y - 2 * ε * (x - a) by grind)
  grind

omit [NaturalExp R] in
private theorem sub_le {x : R} (h : x ≤ b) : x - a ≤ b - a := by grind

omit [NaturalExp R] in
private theorem atMost_of_sub_le {x y : R} (h : x - y ≤ b) (h' : y - x ≤ b) : AtMost b (x - y) :=
  ⟨by grind, h⟩

omit [NaturalExp R] in
private theorem mean_le (hw : ∀ k ∈ ks, 0 ≤ w k) (hl : 0 < sumOver w ks)
    (hb : ∀ k ∈ ks, w k ≠ 0 → v k ≤ b) :
    sumOver (fun k => w k * v k) ks / sumOver w ks ≤ b := by
  rw [OrderedField.div_le_iff hl, ← sumOver_mul_right]
  refine sumOver_le_sumOver fun k hk => ?_
  by_cases h : w k = 0
  · rw [h, Semiring.zero_mul, Semiring.zero_mul]
    exact Std.le_refl _
  · exact OrderedRing.mul_le_mul_of_nonneg_left (hb k hk h) (hw k hk)

end Mean

/-- Two scores are both masked, or differ by at most ε. -/
@[expose] def ScoresWithin (ε : R) (s s' : Option R) : Prop :=
  (s = none ∧ s' = none) ∨ ∃ x x', s = some x ∧ s' = some x' ∧ AtMost ε (x - x')

omit [NaturalExp R] in
private theorem ScoresWithin.symm {ε : R} {s s' : Option R} (h : ScoresWithin ε s s') :
    ScoresWithin ε s' s := by
  rcases h with ⟨h, h'⟩ | ⟨x, x', h, h', h₁, h₂⟩
  · exact .inl ⟨h', h⟩
  · exact .inr ⟨x', x, h', h, by grind, by grind⟩

private theorem ScoresWithin.weight_le {ε : R} {s s' : Option R} (h : ScoresWithin ε s s') :
    (weight s : R) ≤ exp ε * weight s' := by
  rcases h with ⟨h, h'⟩ | ⟨x, x', h, h', h₁, h₂⟩
  · rw [h, h', weight, Semiring.mul_zero]
    exact Std.le_refl _
  · rw [h, h', weight, weight, ← exp_add]
    exact exp_le (by grind)

/-- If no score of a query moves by more than ε, no component of its output moves by more than
2 ε (b − a), where the values of the unmasked keys lie between a and b. -/
theorem attention_moved (scale : R) (modify : ScoreMod R q_len kv_len) (Q Q' : Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) {i : Fin q_len} (c : Fin d_v) {ε a b : R}
    (hs : ∀ k, ScoresWithin ε (score scale modify Q K i k) (score scale modify Q' K i k))
    (some_key : ∃ k, score scale modify Q K i k ≠ none)
    (hv : ∀ k, score scale modify Q K i k ≠ none → a ≤ V[k][c] ∧ V[k][c] ≤ b) :
    AtMost (2 * ε * (b - a))
      ((attention scale modify Q K V)[i][c] - (attention scale modify Q' K V)[i][c]) := by
  obtain ⟨k₀, h₀⟩ := some_key
  have hε : 0 ≤ ε := by
    rcases hs k₀ with ⟨h, -⟩ | ⟨_, _, -, -, h⟩
    · exact absurd h h₀
    · exact h.nonneg
  have other : ∀ k, score scale modify Q' K i k ≠ none → score scale modify Q K i k ≠ none :=
    fun k h h' => by
      rcases hs k with ⟨-, h''⟩ | ⟨x, _, h'', -⟩
      · exact h h''
      · rw [h''] at h'
        cases h'
  have pos : ∀ {X : Matrix R q_len d}, score scale modify X K i k₀ ≠ none →
      0 < sumOver (fun k => (weight (score scale modify X K i k) : R)) (List.finRange kv_len) :=
    fun {X} h => by
      obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp h
      have := Proof.denominator_pos (R := R) (s := s)
        (row := (List.finRange kv_len).map (score scale modify X K i))
        (List.mem_map.mpr ⟨k₀, List.mem_finRange k₀, hs⟩)
      rwa [denominator, sumOver_map] at this
  have h₀' : score scale modify Q' K i k₀ ≠ none := fun h => by
    rcases hs k₀ with ⟨h', -⟩ | ⟨_, x', -, h', -⟩
    · exact h₀ h'
    · rw [h'] at h
      cases h
  have counts : ∀ {s : Option R}, (weight s : R) ≠ 0 → s ≠ none :=
    fun h h' => h (by rw [h', weight])
  rw [Proof.getElem_attention_eq_weights, Proof.getElem_attention_eq_weights]
  have up := mean_sub_le (a := a) (v := fun k : Fin kv_len => V[k][c]) (ks := List.finRange kv_len)
    (fun k _ => Proof.weight_nonneg _) (fun k _ => Proof.weight_nonneg _)
    (fun k _ => (hs k).weight_le) (fun k _ => (hs k).symm.weight_le) (pos h₀) (pos h₀')
    fun k _ h => (hv k (counts h)).1
  have down := mean_sub_le (a := a) (v := fun k : Fin kv_len => V[k][c])
    (ks := List.finRange kv_len) (fun k _ => Proof.weight_nonneg _)
    (fun k _ => Proof.weight_nonneg _) (fun k _ => (hs k).symm.weight_le)
    (fun k _ => (hs k).weight_le) (pos h₀') (pos h₀) fun k _ h => (hv k (other k (counts h))).1
  have top := mean_le (b := b) (v := fun k : Fin kv_len => V[k][c]) (ks := List.finRange kv_len)
    (fun k _ => Proof.weight_nonneg _) (pos h₀) fun k _ h => (hv k (counts h)).2
  have top' := mean_le (b := b) (v := fun k : Fin kv_len => V[k][c]) (ks := List.finRange kv_len)
    (fun k _ => Proof.weight_nonneg _) (pos h₀') fun k _ h => (hv k (other k (counts h))).2
  have hε₂ : 0 ≤ 2 * ε := by grind
  have m := OrderedRing.mul_le_mul_of_nonneg_left (sub_le (a := a) top) hε₂
  have m' := OrderedRing.mul_le_mul_of_nonneg_left (sub_le (a := a) top') hε₂
  have r := Std.le_trans up m
  have r' := Std.le_trans down m'
  exact atMost_of_sub_le r r'

/-- **attention-lipschitz**: attention with a mask is Lipschitz in its queries. If no component of a
query moves by more than δ, keys are at most κ, the scale at most σ, and values lie between a and b,
no component of the output moves by more than 2 σ d δ κ (b − a). -/
theorem attention_lipschitz {scale σ δ κ a b : R} (hscale : AtMost σ scale)
    (mask : Mask q_len kv_len) (Q Q' : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) {i : Fin q_len} (c : Fin d_v) (some_key : ∃ k, mask i k = true)
    (hQ : ∀ t : Fin d, AtMost δ (Q[i][t] - Q'[i][t]))
    (hK : ∀ k : Fin kv_len, ∀ t : Fin d, AtMost κ K[k][t])
    (hV : ∀ k : Fin kv_len, a ≤ V[k][c] ∧ V[k][c] ≤ b) :
    AtMost (2 * (σ * ((d : R) * (δ * κ))) * (b - a))
      ((attention scale mask.toScoreMod Q K V)[i][c]
        - (attention scale mask.toScoreMod Q' K V)[i][c]) := by
  refine attention_moved scale mask.toScoreMod Q Q' K V c (fun k => ?_) ?_ fun k _ => hV k
  · cases h : mask i k
    · exact .inl ⟨by simp [score, Mask.toScoreMod, h], by simp [score, Mask.toScoreMod, h]⟩
    · refine .inr ⟨scale * Vec.dot Q[i] K[k], scale * Vec.dot Q'[i] K[k],
        by simp [score, Mask.toScoreMod, h], by simp [score, Mask.toScoreMod, h], ?_⟩
      have e : scale * Vec.dot Q[i] K[k] - scale * Vec.dot Q'[i] K[k]
          = scale * Vec.dot (Vec.ofFn fun t => Q[i][t] - Q'[i][t]) K[k] := by
        have e' : Vec.dot Q[i] K[k] - Vec.dot Q'[i] K[k]
            = Vec.dot (Vec.ofFn fun t => Q[i][t] - Q'[i][t]) K[k] := by
          rw [Vec.dot, Vec.dot, Vec.dot, ← sumOver_sub]
          refine sumOver_congr fun t _ => ?_
          simp only [Fin.getElem_fin, Vec.getElem_ofFn]
          grind
        rw [← e']
        grind
      rw [e]
      refine hscale.mul (AtMost.dot (fun t => ?_) (hK k))
      simp only [Fin.getElem_fin, Vec.getElem_ofFn]
      exact hQ t
  · obtain ⟨k, hk⟩ := some_key
    exact ⟨k, by simp [score, Mask.toScoreMod, hk]⟩

end Attention.Claims
