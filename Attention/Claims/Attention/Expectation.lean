module

public import Attention.Claims.Attention.Tensors
public import Attention.Proof.Softmax.Attention

public section

/-! # An output as an expected value

Claimed: the weight αᵢⱼ is the probability that the value of query i is vⱼ, and the output is its
expectation. The probability of a value is the sum of the weights of all keys that have it, so that
the first is false where two values are equal. Of a random key, taken with probability αᵢⱼ, both are
true: its value has the output for expectation. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len n d d_v : Nat}

/-- The probability that the value of a random key is v, where key j is taken with probability pⱼ.
-/
@[expose] def valueProbability [Add R] [OfNat R 0] [DecidableEq R] (p : Vec R n)
    (V : Matrix R n d_v) (v : Vec R d_v) : R :=
  sumOver (fun j : Fin n => if V[j].toList = v.toList then p[j] else 0) (List.finRange n)

/-- The claim: the probability of the value vⱼ is the weight αᵢⱼ. -/
@[expose] def WeightIsProbability [Add S] [Mul S] [OfNat S 0] (scale : S) (R : Type v) [Add R]
    [Div R] [OfNat R 0] [Exp S R] [DecidableEq R] : Prop :=
  ∀ (q_len kv_len d d_v : Nat) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) (i : Fin q_len) (j : Fin kv_len),
    let α : Matrix R q_len kv_len := probabilities scale Mask.full.toScoreMod Q K
    valueProbability α[i] V V[j] = α[i][j]

/-- Two keys of one value: its probability is 1, and each of their weights 1/2. -/
theorem weightIsProbability_refuted : ¬ WeightIsProbability (1 : Int) Rat := fun h =>
  absurd (h 1 2 1 1 #v[#v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[1]] 0 0) (by decide +kernel)

/-- Where the values are different, each has the probability of its key. -/
theorem valueProbability_distinct [OrderedField R] [DecidableEq R] (p : Vec R n)
    {V : Matrix R n d_v} (h : ∀ j k : Fin n, V[j] = V[k] → j = k) (j : Fin n) :
    valueProbability p V V[j] = p[j] := by
  refine Eq.trans (sumOver_congr fun k _ => ?_) (sumOver_ite_eq (fun k : Fin n => p[k]) j)
  by_cases hk : k = j
  · rw [if_pos hk, if_pos (by rw [hk])]
  · rw [if_neg hk, if_neg fun e => hk (h k j (Vector.toList_inj.mp e))]

private theorem sumOver_eq_one [OrderedField R] {α : Type u} [DecidableEq α] (f : α → R) {x : α} :
    ∀ {xs : List α}, xs.Nodup → x ∈ xs → sumOver (fun y => if x = y then f y else 0) xs = f x
  | [], _, h => nomatch h
  | y :: ys, hn, h => by
    obtain ⟨hy, hn⟩ := List.nodup_cons.mp hn
    rw [sumOver_cons]
    by_cases e : x = y
    · subst e
      rw [if_pos rfl, sumOver_eq_zero fun z hz => if_neg fun e : x = z => hy (e ▸ hz),
        Semiring.add_zero]
    · rw [if_neg e, sumOver_eq_one f hn ((List.mem_cons.mp h).resolve_left e), Semiring.add_comm,
        Semiring.add_zero]

/-- **expectation**: over the different values that there are, the sum of each times its probability
is the output: it is the expectation of the value of a random key, equal values or not. -/
theorem attention_eq_expectation [OrderedCommRing S] [OrderedField R] [Exponential S R]
    [DecidableEq R] (scale : S) (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len) (t : Fin d_v)
    {values : List (Vec R d_v)} (distinct : values.Nodup) (all : ∀ j : Fin kv_len, V[j] ∈ values) :
    let α : Matrix R q_len kv_len := probabilities scale modify Q K
    (attention scale modify Q K V)[i][t]
      = sumOver (fun v => valueProbability α[i] V v * v[t]) values := by
  intro α
  refine (Proof.attention_eq_probabilities scale modify Q K V i t).trans ?_
  have term : ∀ j : Fin kv_len, α[i][j] * V[j][t]
      = sumOver (fun v => if V[j] = v then α[i][j] * v[t] else 0) values := fun j =>
    (sumOver_eq_one (fun v : Vec R d_v => α[i][j] * v[t]) distinct (all j)).symm
  refine (sumOver_congr fun j _ => term j).trans ?_
  rw [sumOver_comm]
  refine sumOver_congr fun v _ => ?_
  rw [valueProbability, ← sumOver_mul_right]
  refine sumOver_congr fun j _ => ?_
  by_cases h : V[j] = v
  · rw [if_pos h, if_pos (by rw [h])]
  · rw [if_neg h, if_neg fun e => h (Vector.toList_inj.mp e), Semiring.zero_mul]

end Attention.Claims
