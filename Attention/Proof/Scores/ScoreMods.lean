module

public import Attention.Spec.ScoreMods
public import Attention.Proof.Masks.Visible

public section

/-! # What additive bias and ALiBi do to the weights -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

attribute [local instance] Ring.intCast

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d d_v q_len kv_len : Nat}
variable (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- A component of attention is Σ w v / Σ w with w the weights of the scores. -/
theorem getElem_attention_eq_weights (i : Fin q_len) (j : Fin d_v) :
    (attention scale modify Q K V)[i][j]
      = sumOver (fun k => (weight (score scale modify Q K i k) : R) * V[k][j])
          (List.finRange kv_len)
        / sumOver (fun k => (weight (score scale modify Q K i k) : R)) (List.finRange kv_len) := by
  simp only [attention, Fin.getElem_fin, Vec.getElem_ofFn, getElem_attend, numerator, denominator,
    scored, List.map_map, sumOver_map]
  rfl

/-- A common factor of all weights of a row does not change its attention. -/
theorem attention_weights {modify' : ScoreMod S q_len kv_len} {i : Fin q_len} {c : R} (hc : c ≠ 0)
    (h : ∀ k, (weight (score scale modify' Q K i k) : R)
      = c * weight (score scale modify Q K i k)) :
    (attention scale modify' Q K V)[i] = (attention scale modify Q K V)[i] := by
  refine Vector.ext fun j hj => ?_
  have h₁ := getElem_attention_eq_weights scale modify' Q K V i ⟨j, hj⟩
  have h₂ := getElem_attention_eq_weights scale modify Q K V i ⟨j, hj⟩
  simp only [h, Semiring.mul_assoc] at h₁
  rw [sumOver_mul_left, sumOver_mul_left, OrderedField.mul_div_mul_left hc] at h₁
  exact h₁.trans h₂.symm

private theorem weight_map_add (s : Option S) (b : S) :
    (weight (s.map (· + b)) : R) = weight s * exp b := by
  cases s with
  | none => rw [Option.map_none, weight, Semiring.zero_mul]
  | some s => exact exp_add s b

/-! ## Additive bias -/

/-- An additive bias multiplies each weight by the weight of its entry: exp b, or 0 for `none`. -/
theorem weight_bias (B : Matrix (Option S) q_len kv_len) (i : Fin q_len) (k : Fin kv_len) :
    (weight (score scale (modify.andThen (.bias B)) Q K i k) : R)
      = weight (score scale modify Q K i k) * weight B[i][k] := by
  simp only [score, ScoreMod.andThen]
  generalize modify i k _ = s
  cases s with
  | none => simp only [Option.bind_none, weight, Semiring.zero_mul]
  | some s =>
    simp only [Option.bind_some, ScoreMod.bias]
    cases B[i][k] with
    | none => simp only [Option.map_none, weight, Semiring.mul_zero]
    | some b => exact exp_add s b

/-- **additive-bias**: with an additive bias, component j of row i is Σₖ wₖ bₖ vₖⱼ / Σₖ wₖ bₖ, where
wₖ is the weight without the bias, and bₖ is exp of the bias of i and k, and 0 if that is `none`. -/
theorem attention_bias (B : Matrix (Option S) q_len kv_len) (i : Fin q_len) (j : Fin d_v) :
    let w : Fin kv_len → R := fun k => weight (score scale modify Q K i k)
    let b : Fin kv_len → R := fun k =>
      match B[i][k] with
      | none => 0
      | some b => exp b
    (attention scale (modify.andThen (.bias B)) Q K V)[i][j]
      = sumOver (fun k => w k * b k * V[k][j]) (List.finRange kv_len)
        / sumOver (fun k => w k * b k) (List.finRange kv_len) := by
  intro w b
  have hb : ∀ k, weight B[i][k] = b k := fun k => rfl
  rw [getElem_attention_eq_weights]
  simp only [weight_bias, hb]
  rfl

/-- A bias that is one number for a whole row does not change it. -/
theorem attention_bias_const {B : Matrix (Option S) q_len kv_len} {i : Fin q_len} {b : S}
    (h : ∀ k : Fin kv_len, B[i][k] = some b) :
    (attention scale (modify.andThen (.bias B)) Q K V)[i] = (attention scale modify Q K V)[i] :=
  attention_weights scale modify Q K V (exp_ne_zero (R := R) b) fun k => by
    rw [weight_bias, h k, CommSemiring.mul_comm]
    rfl

/-! ## Linear biases -/

private theorem exp_neg_mul (slope : S) (n : Nat) :
    (exp (slope * ((-(n : Int) : Int) : S)) : R) = exp (-slope) ^ n := by
  induction n with
  | zero =>
    have h : slope * ((-((0 : Nat) : Int) : Int) : S) = 0 := by
      simp only [Int.natCast_zero, Int.neg_zero, Ring.intCast_zero, Semiring.mul_zero]
    rw [h, exp_zero, Semiring.pow_zero]
  | succ n ih =>
    have h : slope * ((-((n + 1 : Nat) : Int) : Int) : S)
        = slope * ((-(n : Int) : Int) : S) + -slope := by
      rw [Int.natCast_succ, Int.neg_add, Ring.intCast_add, Ring.intCast_neg_one]
      grind
    rw [h, exp_add, ih, Semiring.pow_succ]

/-- **alibi**: with linear biases each step of distance between query and key multiplies the weight
by exp (−slope); query i stands at i when aligned top-left, at i + kv_len − q_len when aligned
bottom-right. -/
theorem weight_alibi (alignment : Alignment) (slope : S) (i : Fin q_len) (k : Fin kv_len) {n : Nat}
    (hn : let shift : Int := match alignment with
        | .topLeft => 0
        | .bottomRight => (kv_len : Int) - q_len
      (i.val : Int) + shift = k.val + n ∨ (k.val : Int) = i.val + shift + n) :
    (weight (score scale (modify.andThen (.alibi alignment slope)) Q K i k) : R)
      = weight (score scale modify Q K i k) * exp (-slope) ^ n := by
  have h : distance alignment i k = n := by
    cases alignment <;> simp only [distance, Alignment.shift] at hn ⊢ <;> omega
  simp only [score, ScoreMod.andThen]
  generalize modify i k _ = s
  cases s with
  | none => simp only [Option.bind_none, weight, Semiring.zero_mul]
  | some s => simp only [Option.bind_some, ScoreMod.alibi, weight, h, exp_add, exp_neg_mul]

/-- Slope 0 does nothing. -/
theorem alibi_zero (alignment : Alignment) :
    (ScoreMod.alibi alignment 0 : ScoreMod S q_len kv_len) = fun _ _ s => some s := by
  funext i j s
  simp only [ScoreMod.alibi, Semiring.zero_mul, Semiring.add_zero]

/-- Under the causal mask linear biases may be taken from the place of the key alone, as Press et
al. note: the rest is one number for the whole row. -/
theorem alibi_causal (alignment : Alignment) (slope : S) (i : Fin q_len) :
    let linear : ScoreMod S q_len kv_len := fun _ j s => some (s + slope * ((j.val : Int) : S))
    (attention scale ((modify.andThen (.alibi alignment slope)).andThen
        (Mask.causal alignment).toScoreMod) Q K V)[i]
      = (attention scale ((modify.andThen linear).andThen
          (Mask.causal alignment).toScoreMod) Q K V)[i] := by
  intro linear
  obtain ⟨p, hp⟩ : ∃ p, p = i.val + alignment.shift q_len kv_len := ⟨_, rfl⟩
  refine attention_weights scale _ Q K V
    (exp_ne_zero (R := R) (slope * ((-p : Int) : S))) fun k => ?_
  simp only [score_andThen_mask, Mask.causal, ← hp]
  by_cases hk : (k.val : Int) ≤ p
  · have h : (-(((p - k.val).natAbs : Nat) : Int)) = -p + k.val := by omega
    simp only [hk, decide_true, if_true, score, ScoreMod.andThen]
    generalize modify i k _ = s
    cases s with
    | none => simp only [Option.bind_none, weight, Semiring.mul_zero]
    | some s =>
      have h' : s + slope * ((-p + k.val : Int) : S)
          = slope * ((-p : Int) : S) + (s + slope * ((k.val : Int) : S)) := by
        rw [Ring.intCast_add]
        grind
      simp only [Option.bind_some, ScoreMod.alibi, distance, linear, ← hp, h, h', weight, exp_add]
  · simp only [hk, decide_false, Bool.false_eq_true, if_false, weight, Semiring.mul_zero]

end Attention.Proof
