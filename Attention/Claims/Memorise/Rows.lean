module

public import Attention.Claims.Memorise.Sparse
public import Attention.Proof.Heads.MultiHead

public section

/-! # The rows of a decoder that memorises

Each token at its place has a number of its own, and so has each place. A row of the decoder has
weights at the numbers of its own token and place, of the target's tokens that it sees and of those
of the source, and tells them. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} [OrderedField R] {n s t s_vocab t_vocab : Nat}

/-! ## Codes of tokens and their places -/

/-- How many numbers there are of tokens at their places. -/
@[expose] def codes (s t s_vocab t_vocab : Nat) : Nat := t_vocab * t + s_vocab * s

/-- The first number of a place: tokens come between. -/
@[expose] def slots (s t s_vocab t_vocab : Nat) : Nat :=
  codes s t s_vocab t_vocab + (s_vocab + t_vocab)

/-- The number of a target token and its place. -/
@[expose] def targetCode (a : Fin t_vocab) (p : Fin t) : Nat := (headColumn a p).val

/-- The number of a source token and its place: they come after those of the target. -/
@[expose] def sourceCode (t_vocab t : Nat) (b : Fin s_vocab) (j : Fin s) : Nat :=
  t_vocab * t + (headColumn b j).val

private theorem headColumn_inj {a b : Fin t_vocab} {p q : Fin t} :
    (headColumn a p).val = (headColumn b q).val ↔ a = b ∧ p = q := by
  constructor
  · intro h
    have h : headColumn a p = headColumn b q := Fin.ext h
    have h₁ := congrArg Proof.headOf h
    have h₂ := congrArg Proof.componentOf h
    simpa using And.intro h₁ h₂
  · rintro ⟨rfl, rfl⟩
    rfl

/-- Token and place determine the number, and it them. -/
theorem targetCode_inj {a b : Fin t_vocab} {p q : Fin t} :
    targetCode a p = targetCode b q ↔ a = b ∧ p = q :=
  headColumn_inj

/-- Token and place determine the number, and it them. -/
theorem sourceCode_inj {a b : Fin s_vocab} {p q : Fin s} :
    sourceCode t_vocab t a p = sourceCode t_vocab t b q ↔ a = b ∧ p = q :=
  Nat.add_left_cancel_iff.trans headColumn_inj

/-- The numbers of the target come first. -/
theorem targetCode_lt (a : Fin t_vocab) (p : Fin t) : targetCode a p < t_vocab * t :=
  (headColumn a p).isLt

/-- The numbers of the source come after those of the target. -/
theorem le_sourceCode (b : Fin s_vocab) (j : Fin s) : t_vocab * t ≤ sourceCode t_vocab t b j :=
  Nat.le_add_right _ _

/-- And they end before `codes`. -/
theorem sourceCode_lt (b : Fin s_vocab) (j : Fin s) :
    sourceCode t_vocab t b j < t_vocab * t + s_vocab * s :=
  Nat.add_lt_add_left (headColumn b j).isLt _

/-! ## The rows of the decoder -/

/-- Row p of the decoder, as a list of numbers and weights: 1 for the token at place p and for the
place, c for the target's tokens, c' for those of the source. -/
@[expose] def decoderWeights (c : Fin t → R) (c' : Fin s → R) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (p : Fin t) : List (Nat × R) :=
  (targetCode target[p] p, 1) :: (slots s t s_vocab t_vocab + p.val, 1) ::
    (((List.finRange t).map fun q => (targetCode target[q] q, c q)) ++
      (List.finRange s).map fun j => (sourceCode t_vocab t source[j] j, c' j))

variable {c : Fin t → R} {c' : Fin s → R} {source source' : Vector (Fin s_vocab) s}
variable {target target' : Vector (Fin t_vocab) t} {p p' : Fin t}

/-- All numbers are below the last one of a place. -/
theorem decoderWeights_lt {x : Nat × R} (h : x ∈ decoderWeights c c' source target p) :
    x.1 < slots s t s_vocab t_vocab + t := by
  have ht := fun q : Fin t => targetCode_lt target[q] q
  have hs := fun j : Fin s => sourceCode_lt (t_vocab := t_vocab) (t := t) source[j] j
  simp only [slots, codes]
  rcases List.mem_cons.mp h with rfl | h
  · have := ht p
    show targetCode _ _ < _
    omega
  rcases List.mem_cons.mp h with rfl | h
  · have := p.isLt
    show slots s t s_vocab t_vocab + p.val < _
    simp only [slots, codes]
    omega
  rcases List.mem_append.mp h with h | h
  · obtain ⟨q, -, rfl⟩ := List.mem_map.mp h
    have := ht q
    show targetCode _ _ < _
    omega
  · obtain ⟨j, -, rfl⟩ := List.mem_map.mp h
    have := hs j
    show sourceCode _ _ _ _ < _
    omega

/-- A sum over the numbers and weights of a row. -/
theorem sumOver_decoderWeights (f : Nat × R → R) :
    sumOver f (decoderWeights c c' source target p) = f (targetCode target[p] p, 1)
      + (f (slots s t s_vocab t_vocab + p.val, 1)
        + (sumOver (fun q => f (targetCode target[q] q, c q)) (List.finRange t)
          + sumOver (fun j => f (sourceCode t_vocab t source[j] j, c' j)) (List.finRange s))) := by
  rw [decoderWeights, sumOver_cons, sumOver_cons, sumOver_append, sumOver_map, sumOver_map]

private theorem target_ne_place (a : Fin t_vocab) (r : Fin t) (k : Nat) :
    targetCode a r ≠ slots s t s_vocab t_vocab + k := by
  have := targetCode_lt a r
  simp only [slots, codes]
  omega

private theorem source_ne_place (b : Fin s_vocab) (j : Fin s) (k : Nat) :
    sourceCode t_vocab t b j ≠ slots s t s_vocab t_vocab + k := by
  have := sourceCode_lt (t_vocab := t_vocab) (t := t) b j
  simp only [slots, codes]
  omega

private theorem source_ne_target (b : Fin s_vocab) (j : Fin s) (a : Fin t_vocab) (r : Fin t) :
    sourceCode t_vocab t b j ≠ targetCode a r := by
  have := targetCode_lt a r
  have := le_sourceCode (t_vocab := t_vocab) (t := t) b j
  omega

private theorem sumOver_zero (n : Nat) : sumOver (fun _ : Fin n => (0 : R)) (List.finRange n) = 0 :=
  sumOver_eq_zero fun _ _ => rfl

/-- A row's component at the number of a target token and a place. -/
theorem weightAt_target (a : Fin t_vocab) (r : Fin t) :
    weightAt (decoderWeights c c' source target p) (targetCode a r)
      = (if a = target[p] ∧ r = p then 1 else 0) + if a = target[r] then c r else 0 := by
  rw [weightAt, sumOver_decoderWeights]
  simp only [targetCode_inj, target_ne_place, (source_ne_target _ _ _ _).symm, if_false,
    sumOver_zero]
  have e : sumOver (fun q : Fin t => if a = target[q] ∧ r = q then c q else 0) (List.finRange t)
      = if a = target[r] then c r else 0 := by
    rw [← sumOver_ite_eq (fun q : Fin t => if a = target[q] then c q else 0) r]
    exact sumOver_congr fun q _ => by grind
  rw [e]
  grind

/-- A row's component at the number of a source token and a place. -/
theorem weightAt_source (b : Fin s_vocab) (j : Fin s) :
    weightAt (decoderWeights c c' source target p) (sourceCode t_vocab t b j)
      = if b = source[j] then c' j else 0 := by
  rw [weightAt, sumOver_decoderWeights]
  simp only [sourceCode_inj, source_ne_target, source_ne_place, if_false, sumOver_zero]
  have e : sumOver (fun i : Fin s => if b = source[i] ∧ j = i then c' i else 0) (List.finRange s)
      = if b = source[j] then c' j else 0 := by
    rw [← sumOver_ite_eq (fun i : Fin s => if b = source[i] then c' i else 0) j]
    exact sumOver_congr fun q _ => by grind
  rw [e]
  grind

/-- A row's component at the number of a place. -/
theorem weightAt_place (k : Nat) :
    weightAt (decoderWeights c c' source target p) (slots s t s_vocab t_vocab + k)
      = if k = p.val then 1 else 0 := by
  rw [weightAt, sumOver_decoderWeights]
  simp only [(target_ne_place _ _ _).symm, (source_ne_place _ _ _).symm, if_false, sumOver_zero,
    Nat.add_left_cancel_iff]
  grind

/-- The sum of the components of a row depends on its weights only. -/
@[expose] def decoderSum (c : Fin t → R) (c' : Fin s → R) : R :=
  1 + (1 + (sumOver c (List.finRange t) + sumOver c' (List.finRange s)))

/-- The sum of their squares depends on these and on the place. -/
@[expose] def decoderSquares (c : Fin t → R) (c' : Fin s → R) (p : Fin t) : R :=
  1 + c p + (1 + (c p + sumOver (fun q => c q * c q) (List.finRange t)
    + sumOver (fun j => c' j * c' j) (List.finRange s)))

/-- The sum of the weights. -/
theorem sum_decoderWeights :
    sumOver (fun x => x.2) (decoderWeights c c' source target p) = decoderSum c c' := by
  rw [sumOver_decoderWeights, decoderSum]

variable (h : slots s t s_vocab t_vocab + t ≤ n)
include h

/-- The sum of the components of a row. -/
theorem sum_sparse_decoderWeights : sumOver (fun i : Fin n =>
    (sparse n (decoderWeights c c' source target p))[i]) (List.finRange n) = decoderSum c c' := by
  rw [sum_sparse fun x hx => Nat.lt_of_lt_of_le (decoderWeights_lt hx) h, sum_decoderWeights]

/-- The sum of their squares. -/
theorem dot_sparse_decoderWeights : Vec.dot (sparse n (decoderWeights c c' source target p))
    (sparse n (decoderWeights c c' source target p)) = decoderSquares c c' p := by
  rw [dot_sparse _ fun x hx => Nat.lt_of_lt_of_le (decoderWeights_lt hx) h, sumOver_decoderWeights,
    decoderSquares]
  simp only [weightAt_target, weightAt_source, weightAt_place, if_true, and_self]
  have e : sumOver (fun q : Fin t =>
      c q * ((if target[q] = target[p] ∧ q = p then 1 else 0) + c q)) (List.finRange t)
      = c p + sumOver (fun q => c q * c q) (List.finRange t) := by
    have e : sumOver (fun q : Fin t => if q = p then c q else 0) (List.finRange t) = c p :=
      sumOver_ite_eq c p
    conv => rhs; arg 1; rw [← e]
    rw [← sumOver_add]
    refine sumOver_congr fun q _ => ?_
    by_cases hq : q = p
    · subst hq
      simp only [and_self, if_true]
      grind
    · simp only [hq, and_false, if_false]
      grind
  rw [e]
  grind

/-- Rows that are equal are of the same place, of the same token there, and of the same tokens
wherever the weight is positive. -/
theorem sparse_decoderWeights_inj (hc : ∀ q, 0 ≤ c q)
    (e : sparse n (decoderWeights c c' source target p)
      = sparse n (decoderWeights c c' source' target' p)) :
    target[p] = target'[p] ∧ (∀ q, 0 < c q → target[q] = target'[q]) ∧
      ∀ j, 0 < c' j → source[j] = source'[j] := by
  have at_ : ∀ i, i < n → weightAt (decoderWeights c c' source target p) i
      = weightAt (decoderWeights c c' source' target' p) i := fun i hi => by
    have := congrArg (fun x : Vec R n => x[i]) e
    simpa only [getElem_sparse] using this
  simp only [slots, codes] at h
  have one := OrderedRing.zero_lt_one (R := R)
  have ht : ∀ r, (if target[r] = target[p] ∧ r = p then 1 else 0) + c r
      = (if target[r] = target'[p] ∧ r = p then 1 else 0)
        + if target[r] = target'[r] then c r else 0 := fun r => by
    have e := at_ (targetCode target[r] r) (by have := targetCode_lt target[r] r; omega)
    rw [weightAt_target, weightAt_target, if_pos rfl] at e
    exact e
  have hs : ∀ j, c' j = if source[j] = source'[j] then c' j else 0 := fun j => by
    have e := at_ (sourceCode t_vocab t source[j] j) (by
      have := sourceCode_lt (t_vocab := t_vocab) (t := t) source[j] j; omega)
    rw [weightAt_source, weightAt_source, if_pos rfl] at e
    exact e
  have hp : target[p] = target'[p] := Classical.byContradiction fun hne => by
    have e := ht p
    have := hc p
    simp only [hne, and_self, if_true, false_and, if_false] at e
    grind
  refine ⟨hp, fun q hq => Classical.byContradiction fun hne => ?_,
    fun j hj => Classical.byContradiction fun hne => ?_⟩
  · have e := ht q
    rw [if_neg hne, hp] at e
    grind
  · have e := hs j
    rw [if_neg hne] at e
    grind

end Attention.Claims
