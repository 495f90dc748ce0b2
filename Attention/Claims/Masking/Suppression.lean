module

public import Attention.Claims.Masking.Deletion
public import Attention.Claims.Attention.Similarity
public import Attention.Proof.Softmax.Stability

public section

/-! # What a mask entry that tends to −∞ does

Claimed: if b_is → −∞, output i does not depend on key s and value s. False of a row with one key,
whose weight is 1 whatever b_is is; and false of every b_is that is a number. True: the output
differs from that with key s deleted by p_s (v_s − o'), and p_s ≤ exp (s_s − s_j) for every other
key j that is not masked. For the natural exponential this tends to 0, with an explicit b_is for
each bound. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {q_len kv_len n d d_v c_q c_k c_v c : Nat}

section
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-! ## Claimed -/

/-- The claim, of a row: whatever the other entries of the mask are, the outputs of keys and values
that differ at s alone come as close to each other as one likes once the entry of s is small enough.
-/
@[expose] def BiasSuppresses (scale : S) (R : Type v) [OrderedField R] [Exponential S R] : Prop :=
  ∀ (kv_len d d_v : Nat) (s : Fin kv_len) (Q : Matrix S 1 d) (K K' : Matrix S kv_len d)
    (V V' : Matrix R kv_len d_v) (B₀ : Matrix (Option S) 1 kv_len),
    (∀ j, j ≠ s → K[j] = K'[j] ∧ V[j] = V'[j]) →
    ∀ ε : R, 0 < ε → ∃ β : S, ∀ B : Matrix (Option S) 1 kv_len,
      (∀ j, j ≠ s → B[0][j] = B₀[0][j]) → (∃ b, B[0][s] = some b ∧ b ≤ β) → ∀ t : Fin d_v,
        AtMost ε ((maskedAttention scale B Q K V)[0][t] - (maskedAttention scale B Q K' V')[0][t])

/-- The claim of the number b itself: with it the output does not depend on value s. -/
@[expose] def FiniteBiasSuppresses (scale b : S) (R : Type v) [OrderedField R] [Exponential S R] :
    Prop :=
  ∀ (kv_len d d_v : Nat) (s : Fin kv_len) (Q : Matrix S 1 d) (K : Matrix S kv_len d)
    (V V' : Matrix R kv_len d_v) (B : Matrix (Option S) 1 kv_len),
    (∃ j, j ≠ s ∧ B[0][j] ≠ none) → (∀ j, j ≠ s → V[j] = V'[j]) → B[0][s] = some b →
      (maskedAttention scale B Q K V)[0] = (maskedAttention scale B Q K V')[0]

/-- And of self-attention: with the number b for s ≠ i, output i does not depend on input s. -/
@[expose] def FiniteBiasSuppressesInput (ι : S → R) (scale b : S) : Prop :=
  ∀ (n c d d_v : Nat) (W : Weights S R c c c d d_v) (i s : Fin n) (B : Matrix (Option S) n n)
    (X X' : Matrix S n c), i ≠ s → (∀ j, j ≠ s → X[j] = X'[j]) → B[i][s] = some b →
      (maskedSelfAttention ι scale B W X)[i] = (maskedSelfAttention ι scale B W X')[i]

/-- The claim of key-value deletion, of a row: the output comes as close as one likes to that
without key s, its value and the column of the mask. -/
@[expose] def KeyValueDeletion (scale : S) (R : Type v) [OrderedField R] [Exponential S R] : Prop :=
  ∀ (n d d_v : Nat) (s : Fin (n + 1)) (Q : Matrix S 1 d) (K : Matrix S (n + 1) d)
    (V : Matrix R (n + 1) d_v) (B₀ : Matrix (Option S) 1 (n + 1)) (ε : R), 0 < ε →
    ∃ β : S, ∀ B : Matrix (Option S) 1 (n + 1),
      (∀ j, j ≠ s → B[0][j] = B₀[0][j]) → (∃ b, B[0][s] = some b ∧ b ≤ β) → ∀ t : Fin d_v,
        AtMost ε ((maskedAttention scale B Q K V)[0][t]
          - (maskedAttention scale (Vec.map (deleteRow s) B₀) Q (deleteRow s K) (deleteRow s V)
              : Matrix R 1 d_v)[0][t])

/-- A row with one key gives its value, whatever number the mask has. -/
theorem maskedAttention_one_key (scale b : S) (Q : Matrix S 1 d) (K : Matrix S 1 d)
    (V : Matrix R 1 d_v) : (maskedAttention scale #v[#v[some b]] Q K V)[0] = V[0] := by
  refine Vector.ext fun t ht => ?_
  have h := Proof.attention_row (R := R) 1 (scaledBias scale #v[#v[some b]]) Q K V 0
  refine Eq.trans (congrArg (·[t]) h) ?_
  refine Proof.attend_constant
    ⟨⟨some (scale * ((1 : S) * Vec.dot Q[0] K[0] + b)), V[0]⟩, ?_, ?_⟩ ht ?_
  · exact List.mem_singleton.mpr rfl
  · exact Option.some_ne_none _
  · intro key hk _
    rw [List.mem_singleton.mp hk]
    rfl

/-- A mask entry that tends to −∞ does not suppress the only key: for every exponential and scale.
-/
theorem biasSuppresses_refuted (scale : S) : ¬ BiasSuppresses scale R := by
  intro h
  have h₁ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨β, h⟩ := h 1 1 1 0 #v[#v[0]] #v[#v[0]] #v[#v[0]] #v[#v[2]] #v[#v[0]] #v[#v[none]]
    (fun j hj => absurd (Subsingleton.elim j 0) hj) 1 h₁
  have e := (h #v[#v[some β]] (fun j hj => absurd (Subsingleton.elim j 0) hj)
    ⟨β, rfl, Std.le_refl _⟩ 0).2
  rw [maskedAttention_one_key, maskedAttention_one_key] at e
  have e : (2 : R) - 0 ≤ 1 := e
  grind

/-- Without its only key a row has output 0, which the output does not come close to. -/
theorem keyValueDeletion_refuted (scale : S) : ¬ KeyValueDeletion scale R := by
  intro h
  have h₁ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨β, h⟩ := h 0 1 1 0 #v[#v[0]] #v[#v[0]] #v[#v[2]] #v[#v[none]] 1 h₁
  have e := (h #v[#v[some β]] (fun j hj => absurd (Fin.ext (by omega)) hj)
    ⟨β, rfl, Std.le_refl _⟩ 0).2
  rw [maskedAttention_one_key] at e
  have e : (2 : R) - 0 ≤ 1 := e
  grind

/-- A mask entry that is a number suppresses no key, however small it is: for every exponential,
scale and number. -/
theorem finiteBiasSuppresses_refuted (scale b : S) : ¬ FiniteBiasSuppresses scale b R := by
  intro h
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have e := h 2 1 1 0 #v[#v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[0]] #v[#v[0], #v[0]]
    #v[#v[some b, some b]] ⟨1, by decide, Option.some_ne_none _⟩
    (fun j hj => by
      have : j = 1 := by omega
      subst this
      rfl) rfl
  refine attention_value_ne (R := R) 1 (scaledBias scale #v[#v[some b, some b]]) #v[#v[0]]
    #v[#v[0], #v[0]] (V := #v[#v[1], #v[0]]) (V' := #v[#v[0], #v[0]]) (j := 0) (i := 0) (c := 0)
    (fun j hj => ?_) (Option.some_ne_none _) (fun h : (1 : R) = 0 => ?_)
    (congrArg (fun o : Vec R 1 => o[(0 : Fin 1)]) e)
  · have : j = 1 := by omega
    subst this
    rfl
  · grind

/-- Nor does it suppress an input in self-attention: for every exponential, scale and number, and
every reading ι of inputs as values that tells 1 from 0. -/
theorem finiteBiasSuppressesInput_refuted {ι : S → R} (hι : ι 1 ≠ ι 0) (scale b : S) :
    ¬ FiniteBiasSuppressesInput ι scale b := by
  intro h
  have e := h 2 1 1 1 ⟨#v[#v[0]], #v[0], #v[#v[0]], #v[0], #v[#v[1]], #v[0]⟩ 0 1
    #v[#v[some b, some b], #v[some b, some b]] #v[#v[0], #v[1]] #v[#v[0], #v[0]] (by decide)
    (fun j hj => by
      have : j = 0 := by omega
      subst this
      rfl) rfl
  have zero : ∀ x y : S, Vec.map (affine #v[#v[0]] #v[0]) #v[#v[x], #v[y]]
      = (#v[#v[0], #v[0]] : Matrix S 2 1) := fun x y => by
    have : Vec.map (affine #v[#v[0]] #v[0]) #v[#v[x], #v[y]]
        = (#v[#v[x * 0 + 0 + 0], #v[y * 0 + 0 + 0]] : Matrix S 2 1) := rfl
    rw [this]
    simp only [Semiring.mul_zero, Semiring.add_zero]
  have one : ∀ x y : R, Vec.map (affine #v[#v[1]] #v[0]) #v[#v[x], #v[y]]
      = (#v[#v[x], #v[y]] : Matrix R 2 1) := fun x y => by
    have : Vec.map (affine #v[#v[1]] #v[0]) #v[#v[x], #v[y]]
        = (#v[#v[x * 1 + 0 + 0], #v[y * 1 + 0 + 0]] : Matrix R 2 1) := rfl
    rw [this]
    simp only [Semiring.mul_one, Semiring.add_zero]
  have read : ∀ x y : S, Vec.map (Vec.map ι) #v[#v[x], #v[y]]
      = (#v[#v[ι x], #v[ι y]] : Matrix R 2 1) := fun _ _ => rfl
  simp only [maskedSelfAttention, maskedWeightedAttention, Weights.queries, Weights.keys,
    Weights.values, zero, read, one] at e
  refine attention_value_ne (R := R) 1 (scaledBias scale #v[#v[some b, some b], #v[some b, some b]])
    #v[#v[0], #v[0]] #v[#v[0], #v[0]] (V := #v[#v[ι 0], #v[ι 1]]) (V' := #v[#v[ι 0], #v[ι 0]])
    (j := 1) (i := 0) (c := 0) (fun j hj => ?_) (Option.some_ne_none _) hι
    (congrArg (fun o : Vec R 1 => o[(0 : Fin 1)]) e)
  have : j = 0 := by omega
  subst this
  rfl

/-! ## True, for every exponential -/

/-- A sum over n + 1 numbers is the term of one and the sum over the others. -/
theorem sumOver_skip (f : Fin (n + 1) → R) (s : Fin (n + 1)) :
    sumOver f (List.finRange (n + 1))
      = f s + sumOver (fun t => f (skip s t)) (List.finRange n) := by
  have e : sumOver (fun j => if j = s then 0 else f j) (List.finRange (n + 1))
      = sumOver (fun t => f (skip s t)) (List.finRange n) := by
    rw [sumOver_reindex (skip_injective s) fun j hj => if_pos ((skip_ne_iff s j).mp hj)]
    exact sumOver_congr fun t _ => if_neg ((skip_ne_iff s s).mpr rfl t)
  rw [← e, ← sumOver_ite_eq f s, ← sumOver_add]
  refine sumOver_congr fun j _ => ?_
  by_cases h : j = s
  · rw [if_pos h, if_pos h, Semiring.add_zero]
  · rw [if_neg h, if_neg h, Semiring.add_comm, Semiring.add_zero]

omit [Exponential S R] [OrderedCommRing S] in
private theorem mean_without {w v a l : R} (h : l = 0 → a = 0) (hl : l ≠ 0 → w + l ≠ 0) :
    (w * v + a) / (w + l) - a / l = w / (w + l) * (v - a / l) := by
  by_cases h₀ : l = 0
  · have ha := h h₀
    subst ha h₀
    simp only [Field.div_eq_mul_inv, Semiring.zero_mul, Semiring.add_zero]
    grind
  · have h₁ := hl h₀
    have h₂ := OrderedField.mul_div_cancel h₀ a
    generalize a / l = x at *
    have h₃ : (w + l) * (w + l)⁻¹ = 1 := by grind
    simp only [Field.div_eq_mul_inv]
    generalize (w + l)⁻¹ = y at *
    subst h₂
    have : (w * v + l * x) * y - x * ((w + l) * y) = w * y * (v - x) := by grind
    rw [h₃] at this
    grind

/-- **key-deleted**: an output differs from that with key s deleted by the weight of s times what
value s differs from the latter. -/
theorem attention_key_deleted (scale : S) (modify : ScoreMod S q_len (n + 1)) (Q : Matrix S q_len d)
    (K : Matrix S (n + 1) d) (V : Matrix R (n + 1) d_v) (s : Fin (n + 1)) (i : Fin q_len)
    (t : Fin d_v) :
    let o : Matrix R q_len d_v := attention scale modify Q K V
    let o' : Matrix R q_len d_v :=
      attention scale (fun i j => modify i (skip s j)) Q (deleteRow s K) (deleteRow s V)
    o[i][t] - o'[i][t]
      = (probabilities scale modify Q K : Matrix R q_len (n + 1))[i][s] * (V[s][t] - o'[i][t]) := by
  intro o o'
  have e : ∀ j, score scale (fun i j => modify i (skip s j)) Q (deleteRow s K) i j
      = score scale modify Q K i (skip s j) := fun j => by
    simp only [score, deleteRow, Fin.getElem_fin, getElem_reindex]
  have ho : o[i][t] = _ := Proof.getElem_attention_eq_weights scale modify Q K V i t
  have ho' : o'[i][t] = _ := Proof.getElem_attention_eq_weights scale
    (fun i j => modify i (skip s j)) Q (deleteRow s K) (deleteRow s V) i t
  simp only [e] at ho'
  have v : ∀ j, (deleteRow s V)[j][t] = V[skip s j][t] := fun j => by
    simp only [deleteRow, Fin.getElem_fin, getElem_reindex]
  simp only [v] at ho'
  rw [ho, ho', Proof.getElem_probabilities, denominator, sumOver_map, sumOver_skip _ s,
    sumOver_skip _ s]
  have nonneg : ∀ j, (0 : R) ≤ weight (score scale modify Q K i j) := fun j =>
    Proof.weight_nonneg _
  refine mean_without (fun h₀ => sumOver_eq_zero fun j hj => ?_) fun h₀ => ?_
  · have h₁ := le_sumOver (fun j _ => nonneg (skip s j)) hj
    rw [h₀] at h₁
    rw [Std.le_antisymm h₁ (nonneg _), Semiring.zero_mul]
  · have h₁ := sumOver_nonneg (xs := List.finRange n) fun j _ => nonneg (skip s j)
    have h₂ := nonneg s
    grind

/-- The weight of a key is at most the exponential of its score minus that of any other key. -/
theorem probabilities_le_exp (scale : S) (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) {i : Fin q_len} {s j : Fin kv_len} {x y : S}
    (hs : score scale modify Q K i s = some x) (hj : score scale modify Q K i j = some y) :
    (probabilities scale modify Q K : Matrix R q_len kv_len)[i][s] ≤ exp (x - y) := by
  have hm : some y ∈ (List.finRange kv_len).map (score scale modify Q K i) :=
    List.mem_map.mpr ⟨j, List.mem_finRange j, hj⟩
  have pos := Proof.denominator_pos (R := R) hm
  have h := le_sumOver (R := R) (f := weight) (fun s _ => Proof.weight_nonneg s) hm
  rw [Proof.getElem_probabilities, OrderedField.div_le_iff pos, hs, weight, ← exp_sub_mul x y,
    CommSemiring.mul_comm]
  exact OrderedRing.mul_le_mul_of_nonneg_right h (Std.le_of_lt (exp_pos _))

/-- **key-suppressed**: if value s and those of the other unmasked keys lie between lo and hi, and
key j is one of these, an output differs from that with key s deleted by at most
exp (s_s − s_j) (hi − lo), with s_s and s_j the scores of s and j, mask included. -/
theorem attention_key_suppressed (scale : S) (modify : ScoreMod S q_len (n + 1))
    (Q : Matrix S q_len d) (K : Matrix S (n + 1) d) (V : Matrix R (n + 1) d_v) {i : Fin q_len}
    {s j : Fin (n + 1)} (hjs : j ≠ s) {x y : S} (hs : score scale modify Q K i s = some x)
    (hj : score scale modify Q K i j = some y) {t : Fin d_v} {lo hi : R}
    (hv : ∀ k, score scale modify Q K i k ≠ none → lo ≤ V[k][t] ∧ V[k][t] ≤ hi) :
    AtMost (exp (x - y) * (hi - lo)) ((attention scale modify Q K V)[i][t]
      - (attention scale (fun i j => modify i (skip s j)) Q (deleteRow s K) (deleteRow s V)
          : Matrix R q_len d_v)[i][t]) := by
  have e : ∀ j, score scale (fun i j => modify i (skip s j)) Q (deleteRow s K) i j
      = score scale modify Q K i (skip s j) := fun j => by
    simp only [score, deleteRow, Fin.getElem_fin, getElem_reindex]
  obtain ⟨j', rfl⟩ : ∃ j', skip s j' = j := Classical.byContradiction fun h =>
    hjs ((skip_ne_iff s j).mp fun i e => h ⟨i, e⟩)
  rw [attention_key_deleted]
  have mem : lo ≤ (attention scale (fun i j => modify i (skip s j)) Q (deleteRow s K)
        (deleteRow s V) : Matrix R q_len d_v)[i][t]
      ∧ (attention scale (fun i j => modify i (skip s j)) Q (deleteRow s K) (deleteRow s V)
        : Matrix R q_len d_v)[i][t] ≤ hi := by
    rw [Proof.attention_row]
    refine Proof.attend_mem_interval ⟨_, List.mem_map.mpr ⟨j', List.mem_finRange j', rfl⟩, ?_⟩
      t.isLt fun key hk hs => ?_
    · simp only [e, hj]
      exact Option.some_ne_none _
    · obtain ⟨k, -, rfl⟩ := List.mem_map.mp hk
      simp only [e] at hs
      have := hv _ hs
      simpa only [deleteRow, Fin.getElem_fin, getElem_reindex] using this
  have hvs := hv s (by rw [hs]; exact Option.some_ne_none _)
  have p := probabilities_le_exp (R := R) scale modify Q K hs hj
  have p₀ : (0 : R) ≤ (probabilities scale modify Q K : Matrix R q_len (n + 1))[i][s] := by
    rw [Proof.getElem_probabilities]
    exact OrderedField.div_nonneg (Proof.weight_nonneg _)
      (Proof.denominator_pos (List.mem_map.mpr ⟨s, List.mem_finRange s, hs⟩))
  exact AtMost.mul ⟨by grind, p⟩ ⟨by grind, by grind⟩

end

end Attention.Claims
