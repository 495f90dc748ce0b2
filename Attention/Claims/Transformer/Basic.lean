module

public import Attention.Model.Exact
public import Attention.Proof.Transformer.Basic
public import Attention.Proof.Heads.MultiHead
public import Attention.Spec.Dropout

public section

/-! # The transformer, as the documents write it

What is claimed of a transformer and is not true as it stands: a reshape that is to make heads, a
softmax of a whole matrix, a mask on the weights, a softmax of probabilities. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u

variable {R : Type u} {n q_len kv_len num_heads d : Nat}

/-! ## Predicates -/

/-- The predicate `SelfAttention`: queries, keys and values are one sequence. -/
@[expose] def SelfAttention (Q K V : Matrix R n d) : Prop := Q = K ∧ K = V

/-- The predicate `CrossAttention`: keys and values are one sequence, the queries another. -/
@[expose] def CrossAttention (Q K V : Matrix R n d) : Prop := K = V ∧ Q ≠ K

/-- The predicate `IsProb`, the quantifier over both parts as it is written. -/
@[expose] def IsProb [Add R] [OfNat R 0] [OfNat R 1] [LE R] (x : Vec R n) : Prop :=
  ∀ i : Fin n, 0 ≤ x[i] ∧ sumOver (fun j => x[j]) (List.finRange n) = 1

/-- A vector without components obeys it, whose sum is 0. -/
theorem isProb_empty_refuted : ¬ ∀ (n : Nat) (x : Vec Rat n), IsProb x →
    sumOver (fun j => x[j]) (List.finRange n) = 1 :=
  fun h => absurd (h 0 #v[] fun i => i.elim0) (by decide +kernel)

/-- Each row of a transformer's output obeys `IsProb`. -/
theorem transformer_isProb [OrderedField R] [Exponential R R]
    {s t s_vocab t_vocab d_model d_ff : Nat}
    (sqrt : R → R) (ε scale : R) (position : Nat → Vec R d_model)
    (sourceMask : Mask s s) (targetMask : Mask t t) (crossMask : Mask t s)
    (T : Transformer R s_vocab t_vocab d_model num_heads d d_ff) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (i : Fin t) :
    IsProb (T.probabilities sqrt ε scale position sourceMask targetMask crossMask source
      target)[i] :=
  have h := Proof.transformer_is_prob sqrt ε scale position sourceMask targetMask crossMask T source
    target i
  fun j => ⟨Std.le_of_lt (h.1 j), h.2⟩

/-! ## Dropout -/

/-- Dropout of the entries of a matrix: each is multiplied by 1 / (1 − p) if it is kept, else by
0. -/
@[expose] def applyDropout [Sub R] [Mul R] [Div R] [OfNat R 0] [OfNat R 1] {m n : Nat} (p : R)
    (keep : Mask m n) (X : Matrix R m n) : Matrix R m n :=
  Vec.ofFn fun i => Vec.ofFn fun j => X[i][j] * dropoutFactor p (keep i j)

/-! ## Heads by a reshape -/

/-- Entry (i, j) of a matrix in the order in which its rows are stored. -/
@[expose] def stored (X : Matrix R n d) : List R := X.toList.flatMap Vector.toList

/-- The heads by a reshape to (num_heads, n, d) alone, without a transpose: head h has the entries
from h · n · d on, as they are stored. -/
@[expose] def reshapeHeads [OfNat R 0] (X : Matrix R n (num_heads * d)) :
    Vector (Matrix R n d) num_heads :=
  Vec.ofFn fun h => Vec.ofFn fun i => Vec.ofFn fun c =>
    (stored X).getD (h.val * (n * d) + i.val * d + c.val) 0

/-- Two positions, two heads of one component: the first head by a reshape has both heads'
components of the first position, and nothing of the second. -/
theorem reshapeHeads_refuted : ¬ ∀ (n num_heads d : Nat) (X : Matrix Int n (num_heads * d)),
    reshapeHeads X = splitHeads X :=
  fun h => absurd (congrArg (fun H => H.toList.map (·.toList.map Vector.toList))
    (h 2 2 1 #v[#v[1, 2], #v[3, 4]])) (by decide +kernel)

/-- The rows of one head in a linear layer of all heads. -/
@[expose] def headLinear (W : Linear R n (num_heads * d)) (h : Fin num_heads) : Linear R n d where
  weight := Vec.ofFn fun c => W.weight[headColumn h c]
  bias := Vec.ofFn fun c => W.bias[headColumn h c]

/-- Head h after the split is the projection by that head's rows of the weights, position by
position. -/
theorem splitHeads_linear [Add R] [Mul R] [OfNat R 0] {m : Nat} (W : Linear R n (num_heads * d))
    (X : Matrix R m n) (h : Fin num_heads) :
    (splitHeads (W.rows X))[h] = (headLinear W h).rows X := by
  refine Vector.ext fun i hi => ?_
  have e := Proof.getElem_splitHeads (W.rows X) h ⟨i, hi⟩
  rw [Proof.getElem_linear] at e
  have r := Proof.getElem_linear (headLinear W h) X ⟨i, hi⟩
  simp only [Fin.getElem_fin] at e r ⊢
  rw [e, r]
  refine Vector.ext fun c hc => ?_
  simp only [Linear.row, headLinear, Vec.getElem_ofFn, Fin.getElem_fin]

/-! ## Softmax -/

/-- The notation Softmax(X) = exp X / Σ exp X, read of a matrix: one sum over all entries. -/
@[expose] def softmaxAll (X : Matrix Int n d) : List (List Rat) :=
  let l := sumOver (fun x : Int => (exp x : Rat)) (stored X)
  X.toList.map fun row => row.toList.map fun x => exp x / l

/-- Its rows do not sum to 1: two rows of one entry. -/
theorem softmaxAll_refuted : ¬ ∀ (n d : Nat) (X : Matrix Int n (d + 1)), ∀ row ∈ softmaxAll X,
    sumOver id row = 1 :=
  fun h => absurd (h 2 0 #v[#v[0], #v[0]]) (by decide +kernel)

/-- A mask laid on the softmax weights, after the softmax. -/
@[expose] def maskWeights (mask : List Bool) (weights : List Rat) : List Rat :=
  List.zipWith (fun keep p => if keep then p else 0) mask weights

/-- It is another thing than a mask on the scores: two equal scores, one of them masked. -/
theorem maskWeights_refuted : ¬ ∀ (mask : List Bool) (scores : List Int),
    maskWeights mask (softmax (scores.map some))
      = softmax (List.zipWith (fun keep s => if keep then some s else none) mask scores) :=
  fun h => absurd (h [true, false] [0, 0]) (by decide +kernel)

/-- Attention between the columns of one head, as Qᵀ K comes out when positions are rows: the
weights are d × d, and mix components. -/
@[expose] def channelAttention (Q K : Matrix Int n d) (V : Matrix Rat n d) : Matrix Rat n d :=
  let columns {α : Type} (X : Matrix α n d) : Matrix α d n :=
    Vec.ofFn fun c => Vec.ofFn fun i => X[i][c]
  let O : Matrix Rat d n := attention 1 Mask.full.toScoreMod (columns Q) (columns K) (columns V)
  Vec.ofFn fun i => Vec.ofFn fun c => O[c][i]

/-- It is not attention: of one component, each position keeps its own value. -/
theorem channelAttention_refuted : ¬ ∀ (n d : Nat) (Q K : Matrix Int n d) (V : Matrix Rat n d),
    channelAttention Q K V = attention 1 Mask.full.toScoreMod Q K V :=
  fun h => absurd (congrArg (fun O => O.toList.map Vector.toList)
    (h 2 1 #v[#v[0], #v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]])) (by decide +kernel)

/-- A softmax of probabilities is not the softmax: of logits whose difference is 1, for every
exponential. -/
theorem softmaxVec_twice_refuted [OrderedField R] [Exponential R R] :
    ¬ ∀ x : Vec R 2, softmaxVec (softmaxVec x) = softmaxVec x := by
  intro h
  have e : ∀ x y : R, softmaxVec #v[x, y]
      = #v[exp x / (exp x + (exp y + 0)), exp y / (exp x + (exp y + 0))] := fun _ _ => rfl
  have h := h #v[1, 0]
  rw [e] at h
  generalize hp : (exp (1 : R) / (exp (1 : R) + (exp (0 : R) + 0)) : R) = p at h
  generalize hq : (exp (0 : R) / (exp (1 : R) + (exp (0 : R) + 0)) : R) = q at h
  rw [e] at h
  have h₀ : exp p / (exp p + (exp q + 0)) = p := congrArg (fun v : Vec R 2 => v[0]) h
  have h₁ : exp q / (exp p + (exp q + 0)) = q := congrArg (fun v : Vec R 2 => v[1]) h
  have a := Exponential.exp_pos (R := R) (1 : R)
  have b := Exponential.exp_pos (R := R) (0 : R)
  have c := Exponential.exp_pos (R := R) p
  have d := Exponential.exp_pos (R := R) q
  have n₁ : (exp (1 : R) + (exp (0 : R) + 0) : R) ≠ 0 := by grind
  have n₂ : (exp p + (exp q + 0) : R) ≠ 0 := by grind
  have ratio : (exp p * q : R) = exp q * p := by grind
  have ratio' : (exp (1 : R) * q : R) = exp (0 : R) * p := by grind
  have sum : p + q = 1 := by grind
  have qpos : 0 < q := by
    have := OrderedField.div_nonneg (Std.le_of_lt b)
      (show (0 : R) < exp (1 : R) + (exp (0 : R) + 0) by grind)
    have : q ≠ 0 := by grind
    grind
  have one : (exp (0 : R) : R) = 1 := Exponential.exp_zero
  have s := Exponential.exp_sub_mul (R := R) p q
  have k : (exp (p - q) * q : R) = exp (1 : R) * q := by grind
  have k : (exp (p - q) : R) = exp (1 : R) := by grind
  have := (Exponential.exp_inj (R := R)).mp k
  grind

end Attention.Claims
