module

public import Attention.Claims.Attention.Rotation
public import Attention.Spec.Heads

public section

/-! # Multi-head attention with its projections, and what leaves it unchanged

Claimed: unitary maps of each head's queries, of the concatenation and of the output may all be put
in. True: what preserves inner products may be put after a head's projections of queries and keys,
both; an invertible linear map after that of its values, with its inverse before the output
projection; and the heads may change places, with the blocks of the output projection. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v w

variable {S : Type u} {R : Type v} {q_len kv_len num_heads d d_v d_query d_key d_value d_out : Nat}

/-! ## Claimed -/

/-- Multi-head attention as the document has it: heads, what puts their outputs together, and what
makes a value of that. -/
@[expose] def multihead {C : Type w}
    (heads : Fin num_heads → Vec S d → Matrix S kv_len d → Matrix R kv_len d_v → Vec R d_v)
    (concat : Vector (Vec R d_v) num_heads → C) (proj : C → Vec R d_v) (q : Vec S d)
    (ks : Matrix S kv_len d) (vs : Matrix R kv_len d_v) : Vec R d_v :=
  proj (concat (Vec.ofFn fun i => heads i q ks vs))

section
variable [OrderedCommRing S] [OrderedField R]

/-- The claim `MultiheadAttentionInvariance`, read as its proof reads it (a head's unitary map is
applied to the query), with nothing done to the concatenation. -/
@[expose] def MultiheadAttentionInvariance (weights : List S → List R) (scale : S) : Prop :=
  ∀ (num_heads kv_len d d_v : Nat) (proj : Vector (Vec R d_v) num_heads → Vec R d_v)
    (uHeads : Fin num_heads → Vec S d → Vec S d) (uProj : Vec R d_v → Vec R d_v),
    (∀ i, IsUnitary (uHeads i)) → IsUnitary uProj →
    ∀ (q : Vec S d) (ks : Matrix S kv_len d) (vs : Matrix R kv_len d_v),
      multihead (fun i q => dotProduct weights scale (uHeads i q)) id (fun x => uProj (proj x)) q ks
          vs
        = multihead (fun _ => dotProduct weights scale) id proj q ks vs

/-- Its part that speaks of the heads: nothing is done to the output either. -/
@[expose] def HeadsInvariance (weights : List S → List R) (scale : S) : Prop :=
  ∀ (num_heads kv_len d d_v : Nat) (proj : Vector (Vec R d_v) num_heads → Vec R d_v)
    (uHeads : Fin num_heads → Vec S d → Vec S d), (∀ i, IsUnitary (uHeads i)) →
    ∀ (q : Vec S d) (ks : Matrix S kv_len d) (vs : Matrix R kv_len d_v),
      multihead (fun i q => dotProduct weights scale (uHeads i q)) id proj q ks vs
        = multihead (fun _ => dotProduct weights scale) id proj q ks vs

private theorem negation_isUnitary : IsUnitary (Vec.smul (-1 : R) : Vec R d → Vec R d) := by
  refine ⟨fun x y => ?_, fun c x => ?_, fun y => ⟨Vec.smul (-1) y, ?_⟩, fun x y => ?_⟩
  · refine Vector.ext fun i hi => ?_
    simp only [Vec.getElem_add, Vec.getElem_smul]
    grind
  · refine Vector.ext fun i hi => ?_
    simp only [Vec.getElem_smul]
    grind
  · refine Vector.ext fun i hi => ?_
    simp only [Vec.getElem_smul]
    grind
  · rw [Vec.dot, Vec.dot]
    refine sumOver_congr fun i _ => ?_
    simp only [Fin.getElem_fin, Vec.getElem_smul]
    grind

private theorem id_isUnitary : IsUnitary (id : Vec S d → Vec S d) :=
  ⟨fun _ _ => rfl, fun _ _ => rfl, fun y => ⟨y, rfl⟩, fun _ _ => rfl⟩

/-- One head and one key, of value 1: the output is 1, and its negation −1. -/
private theorem MultiheadAttentionInvariance.refute {weights : List S → List R} {c : S}
    (h₁ : weights [c] = [1]) : ¬ MultiheadAttentionInvariance weights c := by
  intro h
  have e := h 1 1 1 1 (·[0]) (fun _ => id) (Vec.smul (-1)) (fun _ => id_isUnitary)
    negation_isUnitary #v[1] #v[#v[1]] #v[#v[1]]
  have s : scores c #v[1] (#v[#v[1]] : Matrix S 1 1) = [c] := by
    have s : scores c #v[1] (#v[#v[1]] : Matrix S 1 1) = [c * (1 * 1 + 0)] := rfl
    rw [s, Semiring.one_mul, Semiring.add_zero, Semiring.mul_one]
  have o : dotProduct weights c #v[1] #v[#v[1]] (#v[#v[1]] : Matrix R 1 1) = #v[1 * 1 + 0] := by
    rw [dotProduct, s, h₁]
    rfl
  simp only [multihead, id_eq, Vec.getElem_ofFn, o] at e
  have e : (-1 : R) * (1 * 1 + 0) = 1 * 1 + 0 := congrArg (fun o : Vec R 1 => o[0]) e
  grind

/-- One head whose query has its coordinates swapped, two keys, values 1 and 0. -/
private theorem HeadsInvariance.refute {weights : List S → List R} {c : S} {x y : R}
    (h₁ : weights [c, 0] = [x, y]) (h₂ : weights [0, c] = [y, x]) (hne : x ≠ y) :
    ¬ HeadsInvariance weights c := by
  intro h
  have e := h 1 2 2 1 (·[0]) (fun _ => swap) (fun _ => swap_isUnitary) #v[1, 0]
    #v[#v[1, 0], #v[0, 1]] #v[#v[1], #v[0]]
  have s₁ : scores c #v[1, 0] (#v[#v[1, 0], #v[0, 1]] : Matrix S 2 2) = [c, 0] :=
    scores_two (by rw [dot_two]; grind) (by rw [dot_two]; grind)
  have s₂ : scores c #v[0, 1] (#v[#v[1, 0], #v[0, 1]] : Matrix S 2 2) = [0, c] :=
    scores_two (by rw [dot_two]; grind) (by rw [dot_two]; grind)
  have hs : swap #v[1, 0] = (#v[0, 1] : Vec S 2) := rfl
  simp only [multihead, id_eq, Vec.getElem_ofFn, hs] at e
  rw [dotProduct_two 1 0 (s₂ ▸ h₂) (z := y) (by grind),
    dotProduct_two 1 0 (s₁ ▸ h₁) (z := x) (by grind)] at e
  exact hne (congrArg (fun o : Vec R 1 => o[0]) e).symm

end

/-- A unitary map of the output changes it: for every exponential and every scale. -/
theorem multiheadAttentionInvariance_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R]
    (scale : S) : ¬ MultiheadAttentionInvariance (expSoftmax : List S → List R) scale :=
  MultiheadAttentionInvariance.refute (by
    have h : expSoftmax [scale] = [(exp scale / (exp scale + 0) : R)] := rfl
    have := Exponential.exp_ne_zero (R := R) scale
    rw [h, Semiring.add_zero]
    congr 1
    grind)

/-- It does with the softmax that lacks the exponential, too. -/
theorem multiheadAttentionInvariance_ratio_refuted :
    ¬ MultiheadAttentionInvariance (ratio : List Rat → List Rat) 1 :=
  MultiheadAttentionInvariance.refute (by decide +kernel)

/-- A unitary map of a head's queries alone changes the output: for every exponential, and every
scale but 0. -/
theorem headsInvariance_refuted [OrderedCommRing S] [OrderedField R] [Exponential S R] {scale : S}
    (hs : scale ≠ 0) : ¬ HeadsInvariance (expSoftmax : List S → List R) scale :=
  have ⟨_, _, h₁, h₂, hne⟩ := expSoftmax_two (R := R) hs
  HeadsInvariance.refute h₁ h₂ hne

/-- It does with the softmax that lacks the exponential, too. -/
theorem headsInvariance_ratio_refuted : ¬ HeadsInvariance (ratio : List Rat → List Rat) 1 :=
  HeadsInvariance.refute (x := 1) (y := 0) (by decide +kernel) (by decide +kernel)
    (by decide +kernel)

/-! ## True -/

/-- Multi-head attention with its projections, each a function of one row: `wQ`, `wK` and `wV` make
the queries, keys and values of a head, `wO` takes a head's output to its part of the whole, which
is the sum over the heads (a head's block of rows of W_O). -/
@[expose] def projectedMultiHead [Add S] [Mul S] [OfNat S 0] [Add R] [Mul R] [Div R] [OfNat R 0]
    [Exp S R] (scale : S) (modify : Fin num_heads → ScoreMod S q_len kv_len)
    (wQ : Fin num_heads → Vec S d_query → Vec S d) (wK : Fin num_heads → Vec S d_key → Vec S d)
    (wV : Fin num_heads → Vec R d_value → Vec R d_v) (wO : Fin num_heads → Vec R d_v → Vec R d_out)
    (X : Matrix S q_len d_query) (Y : Matrix S kv_len d_key) (Z : Matrix R kv_len d_value) :
    Matrix R q_len d_out :=
  let heads := multiHead scale modify (Vec.ofFn fun h => Vec.map (wQ h) X)
    (Vec.ofFn fun h => Vec.map (wK h) Y) (Vec.ofFn fun h => Vec.map (wV h) Z)
  Vec.ofFn fun i => Vec.sumOver (fun h => wO h heads[h][i]) (List.finRange num_heads)

/-- W is linear, as every matrix is. -/
@[expose] def IsLinear [Add R] [Mul R] (W : Vec R d → Vec R d_v) : Prop :=
  (∀ x y, W (Vec.add x y) = Vec.add (W x) (W y)) ∧ ∀ c x, W (Vec.smul c x) = Vec.smul c (W x)

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

private theorem getElem_projectedMultiHead (scale : S)
    (modify : Fin num_heads → ScoreMod S q_len kv_len)
    (wQ : Fin num_heads → Vec S d_query → Vec S d) (wK : Fin num_heads → Vec S d_key → Vec S d)
    (wV : Fin num_heads → Vec R d_value → Vec R d_v) (wO : Fin num_heads → Vec R d_v → Vec R d_out)
    (X : Matrix S q_len d_query) (Y : Matrix S kv_len d_key) (Z : Matrix R kv_len d_value) :
    projectedMultiHead scale modify wQ wK wV wO X Y Z
      = Vec.ofFn fun i => Vec.sumOver (fun h => wO h (attention scale (modify h) (Vec.map (wQ h) X)
          (Vec.map (wK h) Y) (Vec.map (wV h) Z))[i]) (List.finRange num_heads) := by
  refine congrArg Vec.ofFn (funext fun i => congrArg (Vec.sumOver · _) (funext fun h => ?_))
  refine congrArg (fun A => wO h A[i]) ((Vec.getElem_ofFn _ h.isLt).trans ?_)
  simp only [Fin.getElem_fin, Vec.getElem_ofFn]

private theorem map_map {α : Type u} {β : Type v} {γ : Type w} {n : Nat} (f : β → γ) (g : α → β)
    (X : Vector α n) : Vec.map (fun x => f (g x)) X = Vec.map f (Vec.map g X) :=
  Vector.ext fun i hi => by rw [Vec.getElem_map, Vec.getElem_map, Vec.getElem_map]

/-- A map that preserves inner products may be put after a head's projections of queries and of
keys, one for each head. -/
theorem projectedMultiHead_rotate {U : Fin num_heads → Vec S d → Vec S d}
    (hU : ∀ h x y, Vec.dot (U h x) (U h y) = Vec.dot x y) (scale : S)
    (modify : Fin num_heads → ScoreMod S q_len kv_len)
    (wQ : Fin num_heads → Vec S d_query → Vec S d) (wK : Fin num_heads → Vec S d_key → Vec S d)
    (wV : Fin num_heads → Vec R d_value → Vec R d_v) (wO : Fin num_heads → Vec R d_v → Vec R d_out)
    (X : Matrix S q_len d_query) (Y : Matrix S kv_len d_key) (Z : Matrix R kv_len d_value) :
    projectedMultiHead scale modify (fun h x => U h (wQ h x)) (fun h y => U h (wK h y)) wV wO X Y Z
      = projectedMultiHead scale modify wQ wK wV wO X Y Z := by
  have rotated : ∀ h, attention scale (modify h) (Vec.map (fun x => U h (wQ h x)) X)
      (Vec.map (fun y => U h (wK h y)) Y) (Vec.map (wV h) Z)
      = attention scale (modify h) (Vec.map (wQ h) X) (Vec.map (wK h) Y) (Vec.map (wV h) Z) :=
    fun h => by rw [map_map (U h) (wQ h) X, map_map (U h) (wK h) Y, attention_rotate (hU h)]
  rw [getElem_projectedMultiHead, getElem_projectedMultiHead]
  simp only [rotated]

private theorem linear_sumOver {α : Type w} {W : Vec R d → Vec R d_v} (hW : IsLinear W)
    (f : α → Vec R d) (xs : List α) : W (Vec.sumOver f xs) = Vec.sumOver (fun x => W (f x)) xs := by
  induction xs with
  | nil =>
    have zero : ∀ {n : Nat} (x : Vec R n), Vec.smul 0 x = Vec.zero := fun x =>
      Vector.ext fun i hi => by rw [Vec.getElem_smul, Vec.getElem_zero, Semiring.zero_mul]
    rw [Vec.sumOver, Vec.sumOver, ← zero Vec.zero, hW.2, zero]
  | cons x xs ih => rw [Vec.sumOver, Vec.sumOver, hW.1, ih]

private theorem sumOver_map {α : Type u} {β : Type w} (f : β → Vec R d) (g : α → β) (xs : List α) :
    Vec.sumOver f (xs.map g) = Vec.sumOver (fun x => f (g x)) xs := by
  induction xs with
  | nil => rfl
  | cons x xs ih => rw [List.map_cons, Vec.sumOver, Vec.sumOver, ih]

private theorem attend_map_values {W : Vec R d → Vec R d_v} (hW : IsLinear W)
    (row : List (ScoredValue S R d)) :
    attend (row.map fun key => ⟨key.score, W key.value⟩) = W (attend row) := by
  have h : (row.map fun key => W key.value) = (row.map (·.value)).map W := by
    rw [List.map_map]
    rfl
  simp only [attend, List.map_map, Function.comp_def, linear_sumOver hW, hW.2]
  rw [h, List.zip_map_right, sumOver_map]
  rfl

/-- A linear map of the values is one of the output. -/
theorem attention_map_values {W : Vec R d_v → Vec R d_out} (hW : IsLinear W) (scale : S)
    (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d) (K : Matrix S kv_len d)
    (V : Matrix R kv_len d_v) :
    attention scale modify Q K (Vec.map W V) = Vec.map W (attention scale modify Q K V) := by
  refine Vector.ext fun i hi => ?_
  simp only [attention, Vec.getElem_ofFn, Vec.getElem_map]
  rw [← attend_map_values hW]
  simp only [scored, List.map_map, Function.comp_def, Fin.getElem_fin, Vec.getElem_map]

/-- A linear map may be put after a head's projection of values, and what undoes it before the
head's part of the output projection. -/
theorem projectedMultiHead_values {d_w : Nat} {A : Fin num_heads → Vec R d_v → Vec R d_w}
    {B : Fin num_heads → Vec R d_w → Vec R d_v} (hA : ∀ h, IsLinear (A h))
    (hB : ∀ h x, B h (A h x) = x) (scale : S) (modify : Fin num_heads → ScoreMod S q_len kv_len)
    (wQ : Fin num_heads → Vec S d_query → Vec S d) (wK : Fin num_heads → Vec S d_key → Vec S d)
    (wV : Fin num_heads → Vec R d_value → Vec R d_v) (wO : Fin num_heads → Vec R d_v → Vec R d_out)
    (X : Matrix S q_len d_query) (Y : Matrix S kv_len d_key) (Z : Matrix R kv_len d_value) :
    projectedMultiHead scale modify wQ wK (fun h z => A h (wV h z)) (fun h o => wO h (B h o)) X Y Z
      = projectedMultiHead scale modify wQ wK wV wO X Y Z := by
  have mapped : ∀ h, attention scale (modify h) (Vec.map (wQ h) X) (Vec.map (wK h) Y)
      (Vec.map (fun z => A h (wV h z)) Z) = Vec.map (A h) (attention scale (modify h)
        (Vec.map (wQ h) X) (Vec.map (wK h) Y) (Vec.map (wV h) Z)) :=
    fun h => by rw [map_map (A h) (wV h) Z, attention_map_values (hA h)]
  rw [getElem_projectedMultiHead, getElem_projectedMultiHead]
  simp only [mapped, Fin.getElem_fin, Vec.getElem_map, hB]

/-- The heads may change places, if the parts of the output projection go with them. -/
theorem projectedMultiHead_permute {σ : Fin num_heads → Fin num_heads} (hσ : IsPermutation σ)
    (scale : S) (modify : Fin num_heads → ScoreMod S q_len kv_len)
    (wQ : Fin num_heads → Vec S d_query → Vec S d) (wK : Fin num_heads → Vec S d_key → Vec S d)
    (wV : Fin num_heads → Vec R d_value → Vec R d_v) (wO : Fin num_heads → Vec R d_v → Vec R d_out)
    (X : Matrix S q_len d_query) (Y : Matrix S kv_len d_key) (Z : Matrix R kv_len d_value) :
    projectedMultiHead scale (fun h => modify (σ h)) (fun h => wQ (σ h)) (fun h => wK (σ h))
        (fun h => wV (σ h)) (fun h => wO (σ h)) X Y Z
      = projectedMultiHead scale modify wQ wK wV wO X Y Z := by
  refine Vector.ext fun i hi => Vector.ext fun c hc => ?_
  simp only [getElem_projectedMultiHead, Vec.getElem_ofFn, Vec.getElem_sumOver]
  refine Eq.trans ?_ (sumOver_perm _ hσ)
  rw [Attention.sumOver_map]

end Attention.Claims
