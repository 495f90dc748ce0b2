module

public import Attention.Claims.Attention.DotProduct
public import Attention.Proof.Softmax.Attention

public section

/-! # What the order of queries and keys does

Claimed: the order of the queries does not matter, and that of the keys with their values permutes
the output. True is the reverse: the output goes with the queries, and does not depend on the order
of the keys. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v w

variable {S : Type u} {R : Type v} {m n q_len kv_len d d_v : Nat}

/-- The rows of a matrix (or elements of any vector) taken by number: row i is row σ i. -/
@[expose] def reindex {α : Type w} (σ : Fin m → Fin n) (X : Vector α n) : Vector α m :=
  ⟨((List.finRange m).map fun i => X[σ i]).toArray, by simp⟩

/-- σ is a permutation of 0, …, n − 1: it takes each number to one, and to each exactly once. -/
@[expose] def IsPermutation (σ : Fin n → Fin n) : Prop :=
  ((List.finRange n).map σ).Perm (List.finRange n)

@[simp] theorem getElem_reindex {α : Type w} (σ : Fin m → Fin n) (X : Vector α n) {i : Nat}
    (h : i < m) : (reindex σ X)[i] = X[σ ⟨i, h⟩] := by
  simp [reindex]

/-! ## Claimed -/

/-- The claim `IgnoreQueryOrder`. -/
@[expose] def IgnoreQueryOrder [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [OfNat R 0]
    (weights : List S → List R) (scale : S) : Prop :=
  ∀ (q_len kv_len d d_v : Nat) (σ : Fin q_len → Fin q_len), IsPermutation σ →
    ∀ (qs : Matrix S q_len d) (ks : Matrix S kv_len d) (vs : Matrix R kv_len d_v),
      dotProducts weights scale (reindex σ qs) ks vs = dotProducts weights scale qs ks vs

/-- The claim `IgnoreKeyValueOrder`; its two sides are of one size for as many queries as keys. -/
@[expose] def IgnoreKeyValueOrder [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [OfNat R 0]
    (weights : List S → List R) (scale : S) : Prop :=
  ∀ (n d d_v : Nat) (σ : Fin n → Fin n), IsPermutation σ →
    ∀ (qs ks : Matrix S n d) (vs : Matrix R n d_v),
      dotProducts weights scale qs (reindex σ ks) (reindex σ vs)
        = reindex σ (dotProducts weights scale qs ks vs)

section
variable [OrderedCommRing S] [OrderedField R] {weights : List S → List R} {c : S} {x y : R}

private theorem swap_isPermutation : IsPermutation (Fin.rev (n := 2)) := List.Perm.swap 0 1 []

/-- Two scores, c and 0, for the first query and 0 and c for the second: queries and keys (1, 0) and
(0, 1), values 1 and 0. -/
private theorem counterexample (h₁ : weights [c, 0] = [x, y]) (h₂ : weights [0, c] = [y, x]) :
    (dotProducts weights c #v[#v[1, 0], #v[0, 1]] #v[#v[1, 0], #v[0, 1]] #v[#v[1], #v[0]] :
      Matrix R 2 1) = #v[#v[x], #v[y]] ∧
    (dotProducts weights c #v[#v[0, 1], #v[1, 0]] #v[#v[1, 0], #v[0, 1]] #v[#v[1], #v[0]] :
      Matrix R 2 1) = #v[#v[y], #v[x]] ∧
    (dotProducts weights c #v[#v[1, 0], #v[0, 1]] #v[#v[0, 1], #v[1, 0]] #v[#v[0], #v[1]] :
      Matrix R 2 1) = #v[#v[x], #v[y]] := by
  have s₁ : scores c #v[1, 0] (#v[#v[1, 0], #v[0, 1]] : Matrix S 2 2) = [c, 0] :=
    scores_two (by rw [dot_two]; grind) (by rw [dot_two]; grind)
  have s₂ : scores c #v[0, 1] (#v[#v[1, 0], #v[0, 1]] : Matrix S 2 2) = [0, c] :=
    scores_two (by rw [dot_two]; grind) (by rw [dot_two]; grind)
  have s₃ : scores c #v[1, 0] (#v[#v[0, 1], #v[1, 0]] : Matrix S 2 2) = [0, c] :=
    scores_two (by rw [dot_two]; grind) (by rw [dot_two]; grind)
  have s₄ : scores c #v[0, 1] (#v[#v[0, 1], #v[1, 0]] : Matrix S 2 2) = [c, 0] :=
    scores_two (by rw [dot_two]; grind) (by rw [dot_two]; grind)
  have d : ∀ {q q' : Vec S 2} {ks : Matrix S 2 2} {vs : Matrix R 2 1},
      dotProducts weights c #v[q, q'] ks vs
        = #v[dotProduct weights c q ks vs, dotProduct weights c q' ks vs] := rfl
  refine ⟨?_, ?_, ?_⟩
  · rw [d, dotProduct_two 1 0 (s₁ ▸ h₁) (z := x) (by grind),
      dotProduct_two 1 0 (s₂ ▸ h₂) (z := y) (by grind)]
  · rw [d, dotProduct_two 1 0 (s₂ ▸ h₂) (z := y) (by grind),
      dotProduct_two 1 0 (s₁ ▸ h₁) (z := x) (by grind)]
  · rw [d, dotProduct_two 0 1 (s₃ ▸ h₂) (z := x) (by grind),
      dotProduct_two 0 1 (s₄ ▸ h₁) (z := y) (by grind)]

private theorem IgnoreQueryOrder.refute (h₁ : weights [c, 0] = [x, y])
    (h₂ : weights [0, c] = [y, x]) (hne : x ≠ y) : ¬ IgnoreQueryOrder weights c := by
  intro h
  have e := h 2 2 2 1 Fin.rev swap_isPermutation #v[#v[1, 0], #v[0, 1]] #v[#v[1, 0], #v[0, 1]]
    #v[#v[1], #v[0]]
  have r : reindex Fin.rev (#v[#v[1, 0], #v[0, 1]] : Matrix S 2 2) = #v[#v[0, 1], #v[1, 0]] := rfl
  obtain ⟨o₁, o₂, -⟩ := counterexample h₁ h₂
  rw [r, o₁, o₂] at e
  exact hne (congrArg (fun O : Matrix R 2 1 => O[0][0]) e).symm

private theorem IgnoreKeyValueOrder.refute (h₁ : weights [c, 0] = [x, y])
    (h₂ : weights [0, c] = [y, x]) (hne : x ≠ y) : ¬ IgnoreKeyValueOrder weights c := by
  intro h
  have e := h 2 2 1 Fin.rev swap_isPermutation #v[#v[1, 0], #v[0, 1]] #v[#v[1, 0], #v[0, 1]]
    #v[#v[1], #v[0]]
  have r : reindex Fin.rev (#v[#v[1, 0], #v[0, 1]] : Matrix S 2 2) = #v[#v[0, 1], #v[1, 0]] := rfl
  have r' : ∀ a b : Vec R 1, reindex Fin.rev (#v[a, b] : Matrix R 2 1) = #v[b, a] :=
    fun _ _ => rfl
  obtain ⟨o₁, -, o₃⟩ := counterexample h₁ h₂
  rw [r, r', o₁, o₃, r'] at e
  exact hne (congrArg (fun O : Matrix R 2 1 => O[0][0]) e)

end

/-- The weights of two scores, c and 0, differ unless c = 0. -/
theorem expSoftmax_two [OrderedCommRing S] [OrderedField R] [Exponential S R] {c : S}
    (hc : c ≠ 0) : ∃ x y : R, expSoftmax [c, 0] = [x, y] ∧ expSoftmax [0, c] = [y, x] ∧ x ≠ y := by
  refine ⟨exp c / (exp c + (exp (0 : S) + 0)), exp (0 : S) / (exp c + (exp (0 : S) + 0)), rfl, ?_,
    ?_⟩
  · have e : (exp c + (exp (0 : S) + 0) : R) = exp (0 : S) + (exp c + 0) := by grind
    rw [e]
    rfl
  · have h₁ := exp_pos (R := R) c
    have h₂ := exp_pos (R := R) (0 : S)
    have h₃ : (exp c : R) ≠ exp (0 : S) := fun h => hc (exp_inj.mp h)
    generalize (exp c : R) = a at *
    generalize (exp (0 : S) : R) = b at *
    intro h
    have h₄ : a + (b + 0) ≠ 0 := by grind
    grind

/-- The order of the queries does matter: for every exponential, and every scale but 0. -/
theorem ignoreQueryOrder_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R] {scale : S}
    (hs : scale ≠ 0) : ¬ IgnoreQueryOrder (expSoftmax : List S → List R) scale :=
  have ⟨_, _, h₁, h₂, hne⟩ := expSoftmax_two (R := R) hs
  IgnoreQueryOrder.refute h₁ h₂ hne

/-- It does with the softmax that lacks the exponential, too. -/
theorem ignoreQueryOrder_ratio_refuted : ¬ IgnoreQueryOrder (ratio : List Rat → List Rat) 1 :=
  IgnoreQueryOrder.refute (x := 1) (y := 0) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-- The order of the keys does not permute the output: for every exponential, and every scale but
0. -/
theorem ignoreKeyValueOrder_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R]
    {scale : S} (hs : scale ≠ 0) : ¬ IgnoreKeyValueOrder (expSoftmax : List S → List R) scale :=
  have ⟨_, _, h₁, h₂, hne⟩ := expSoftmax_two (R := R) hs
  IgnoreKeyValueOrder.refute h₁ h₂ hne

/-- Nor does it with the softmax that lacks the exponential. -/
theorem ignoreKeyValueOrder_ratio_refuted :
    ¬ IgnoreKeyValueOrder (ratio : List Rat → List Rat) 1 :=
  IgnoreKeyValueOrder.refute (x := 1) (y := 0) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-! ## True -/

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- The output goes with the queries: taken by any numbers, permuted, repeated or left out, they
give the rows with these numbers. The score transformation is taken along with them. -/
theorem attention_reindex_queries (scale : S) (modify : ScoreMod S n kv_len) (σ : Fin m → Fin n)
    (Q : Matrix S n d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    attention scale (fun i => modify (σ i)) (reindex σ Q) K V
      = reindex σ (attention scale modify Q K V) := by
  refine Vector.ext fun i hi => ?_
  rw [getElem_reindex]
  simp only [attention, Vec.getElem_ofFn, Fin.getElem_fin]
  simp only [scored, score, Fin.getElem_fin, getElem_reindex]

/-- The order of the keys does not matter, if their values and score transformations go with
them. -/
theorem attention_permute_keys (scale : S) (modify : ScoreMod S q_len kv_len)
    {σ : Fin kv_len → Fin kv_len} (hσ : IsPermutation σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) :
    attention scale (fun i j => modify i (σ j)) Q (reindex σ K) (reindex σ V)
      = attention scale modify Q K V := by
  refine Vector.ext fun i hi => ?_
  simp only [attention, Vec.getElem_ofFn]
  refine Eq.trans (congrArg attend ?_) (Proof.attend_perm (hσ.map _))
  simp only [scored, score, Fin.getElem_fin, getElem_reindex, List.map_map]
  rfl

end Attention.Claims
