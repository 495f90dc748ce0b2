module

public import Attention.Algebra.Magnitude
public import Attention.Claims.JoinedHeads

public section

/-! # Vectors of few components, and codes of sequences

The rows of a transformer that memorises are 0 but for a few components. Here: their sums and inner
products, and the rows of its decoder, which tell the source, the target and the place apart. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

variable {R : Type v} [OrderedField R] {n s t s_vocab t_vocab : Nat}

/-! ## Vectors of few components -/

/-- The sum of the weights that a list of places and weights has for place i. -/
@[expose] def weightAt (ps : List (Nat × R)) (i : Nat) : R :=
  sumOver (fun p => if i = p.1 then p.2 else 0) ps

/-- The vector with the components that a list of places and weights gives. -/
@[expose] def sparse (n : Nat) (ps : List (Nat × R)) : Vec R n := Vec.ofFn fun i => weightAt ps i.val

/-- The vector that is 1 at place k and 0 elsewhere. -/
@[expose] def unit (n k : Nat) : Vec R n := sparse n [(k, 1)]

theorem getElem_sparse (ps : List (Nat × R)) {i : Nat} (h : i < n) :
    (sparse n ps)[i] = weightAt ps i := by
  rw [sparse, Vec.getElem_ofFn]

/-- Lists that are put together give the sum. -/
theorem add_sparse (ps qs : List (Nat × R)) :
    Vec.add (sparse n ps) (sparse n qs) = sparse n (ps ++ qs) :=
  Vector.ext fun i hi => by
    rw [Vec.getElem_add, getElem_sparse, getElem_sparse, getElem_sparse, weightAt, weightAt,
      weightAt, sumOver_append]

private theorem sumOver_weightAt (f : Nat → R) {ps : List (Nat × R)} (h : ∀ p ∈ ps, p.1 < n) :
    sumOver (fun i : Fin n => weightAt ps i.val * f i.val) (List.finRange n)
      = sumOver (fun p => p.2 * f p.1) ps := by
  induction ps with
  | nil => exact sumOver_eq_zero fun i _ => by simp only [weightAt, sumOver_nil]; grind
  | cons p ps ih =>
    have hp : p.1 < n := h p (by simp)
    rw [sumOver_cons, ← ih fun q hq => h q (by simp [hq]),
      ← sumOver_ite_eq (fun i : Fin n => p.2 * f i.val) ⟨p.1, hp⟩, ← sumOver_add]
    refine sumOver_congr fun i _ => ?_
    simp only [weightAt, sumOver_cons, Fin.ext_iff]
    split <;> grind

/-- The sum of the components is the sum of the weights. -/
theorem sum_sparse {ps : List (Nat × R)} (h : ∀ p ∈ ps, p.1 < n) :
    sumOver (fun i : Fin n => (sparse n ps)[i]) (List.finRange n) = sumOver (fun p => p.2) ps := by
  have e := sumOver_weightAt (fun _ => (1 : R)) h
  simp only [Semiring.mul_one] at e
  rw [← e]
  exact sumOver_congr fun i _ => getElem_sparse ps i.isLt

/-- The inner product of two vectors of few components. -/
theorem dot_sparse {ps : List (Nat × R)} (qs : List (Nat × R)) (h : ∀ p ∈ ps, p.1 < n) :
    Vec.dot (sparse n ps) (sparse n qs) = sumOver (fun p => p.2 * weightAt qs p.1) ps := by
  rw [← sumOver_weightAt (weightAt qs) h, Vec.dot]
  refine sumOver_congr fun i _ => ?_
  rw [Fin.getElem_fin, Fin.getElem_fin, getElem_sparse, getElem_sparse]

/-- The inner product with a vector that is 1 at place k and 0 elsewhere is component k. -/
theorem dot_unit {k : Nat} (h : k < n) (x : Vec R n) : Vec.dot (unit n k) x = x[k] := by
  refine Eq.trans (sumOver_congr fun i _ => ?_)
    (sumOver_ite_eq (fun i : Fin n => x[i]) ⟨k, h⟩)
  rw [Fin.getElem_fin, unit, getElem_sparse]
  simp only [weightAt, sumOver_cons, sumOver_nil, Fin.ext_iff]
  split <;> grind

/-- A vector that would be 1 beyond its end is 0. -/
theorem dot_unit_beyond {k : Nat} (h : n ≤ k) (x : Vec R n) : Vec.dot (unit n k) x = 0 := by
  refine sumOver_eq_zero fun i _ => ?_
  have hi : i.val ≠ k := by have := i.isLt; omega
  rw [Fin.getElem_fin, unit, getElem_sparse]
  simp only [weightAt, sumOver_cons, sumOver_nil, if_neg hi]
  grind

/-! ## Codes of tokens and their places -/

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
    have h₁ := congrArg headOf h
    have h₂ := congrArg componentOf h
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

theorem targetCode_lt (a : Fin t_vocab) (p : Fin t) : targetCode a p < t_vocab * t :=
  (headColumn a p).isLt

theorem le_sourceCode (b : Fin s_vocab) (j : Fin s) : t_vocab * t ≤ sourceCode t_vocab t b j :=
  Nat.le_add_right _ _

theorem sourceCode_lt (b : Fin s_vocab) (j : Fin s) :
    sourceCode t_vocab t b j < t_vocab * t + s_vocab * s :=
  Nat.add_lt_add_left (headColumn b j).isLt _

/-! ## The rows of the decoder -/

/-- Row p of the decoder, as a list of places and weights: 1 for the token at place p, c for each
target token, c' for each source token. -/
@[expose] def decoderWeights (c c' : R) (source : Vector (Fin s_vocab) s)
    (target : Vector (Fin t_vocab) t) (p : Fin t) : List (Nat × R) :=
  (targetCode target[p] p, 1) :: (((List.finRange t).map fun q => (targetCode target[q] q, c)) ++
    (List.finRange s).map fun j => (sourceCode t_vocab t source[j] j, c'))

variable {c c' : R} {source source' : Vector (Fin s_vocab) s} {target target' : Vector (Fin t_vocab) t}
variable {p p' : Fin t}

theorem decoderWeights_lt {x : Nat × R} (h : x ∈ decoderWeights c c' source target p) :
    x.1 < t_vocab * t + s_vocab * s := by
  rcases List.mem_cons.mp h with rfl | h
  · exact Nat.lt_of_lt_of_le (targetCode_lt _ _) (Nat.le_add_right _ _)
  · rcases List.mem_append.mp h with h | h
    · obtain ⟨q, -, rfl⟩ := List.mem_map.mp h
      exact Nat.lt_of_lt_of_le (targetCode_lt _ _) (Nat.le_add_right _ _)
    · obtain ⟨j, -, rfl⟩ := List.mem_map.mp h
      exact sourceCode_lt _ _

private theorem sumOver_decoderWeights (f : Nat × R → R) :
    sumOver f (decoderWeights c c' source target p) = f (targetCode target[p] p, 1)
      + (sumOver (fun q => f (targetCode target[q] q, c)) (List.finRange t)
        + sumOver (fun j => f (sourceCode t_vocab t source[j] j, c')) (List.finRange s)) := by
  rw [decoderWeights, sumOver_cons, sumOver_append, sumOver_map, sumOver_map]

/-- A row's component at the number of a target token and a place. -/
theorem weightAt_target (a : Fin t_vocab) (r : Fin t) :
    weightAt (decoderWeights c c' source target p) (targetCode a r)
      = (if a = target[p] ∧ r = p then 1 else 0) + if a = target[r] then c else 0 := by
  rw [weightAt, sumOver_decoderWeights]
  simp only [targetCode_inj]
  have e₁ : sumOver (fun q : Fin t => if a = target[q] ∧ r = q then c else 0) (List.finRange t)
      = if a = target[r] then c else 0 := by
    rw [← sumOver_ite_eq (fun q : Fin t => if a = target[q] then c else 0) r]
    exact sumOver_congr fun q _ => by grind
  have e₂ : sumOver (fun j : Fin s =>
      if targetCode a r = sourceCode t_vocab t source[j] j then c' else 0) (List.finRange s) = 0 :=
    sumOver_eq_zero fun j _ => if_neg (Nat.ne_of_lt (Nat.lt_of_lt_of_le (targetCode_lt a r)
      (le_sourceCode _ _)))
  rw [e₁, e₂]
  grind

/-- A row's component at the number of a source token and a place. -/
theorem weightAt_source (b : Fin s_vocab) (j : Fin s) :
    weightAt (decoderWeights c c' source target p) (sourceCode t_vocab t b j)
      = if b = source[j] then c' else 0 := by
  have ne : ∀ (a : Fin t_vocab) (r : Fin t), sourceCode t_vocab t b j ≠ targetCode a r := fun a r =>
    (Nat.ne_of_lt (Nat.lt_of_lt_of_le (targetCode_lt a r) (le_sourceCode _ _))).symm
  rw [weightAt, sumOver_decoderWeights]
  simp only [sourceCode_inj, ne, if_false]
  have e₁ : sumOver (fun _ : Fin t => (0 : R)) (List.finRange t) = 0 :=
    sumOver_eq_zero fun _ _ => rfl
  have e₂ : sumOver (fun i : Fin s => if b = source[i] ∧ j = i then c' else 0) (List.finRange s)
      = if b = source[j] then c' else 0 := by
    rw [← sumOver_ite_eq (fun i : Fin s => if b = source[i] then c' else 0) j]
    exact sumOver_congr fun q _ => by grind
  rw [e₁, e₂]
  grind

/-- The sum of the components of a row is the same for all sequences and places. -/
@[expose] def decoderSum (s t : Nat) (c c' : R) : R :=
  1 + (sumOver (fun _ => c) (List.finRange t) + sumOver (fun _ => c') (List.finRange s))

/-- The sum of their squares is, too. -/
@[expose] def decoderSquares (s t : Nat) (c c' : R) : R :=
  1 + c + (c + sumOver (fun _ => c * c) (List.finRange t)
    + sumOver (fun _ => c' * c') (List.finRange s))

variable (h : t_vocab * t + s_vocab * s ≤ n)
include h

theorem sum_decoderRow : sumOver (fun i : Fin n => (sparse n (decoderWeights c c' source target p))[i])
    (List.finRange n) = decoderSum s t c c' := by
  rw [sum_sparse fun x hx => Nat.lt_of_lt_of_le (decoderWeights_lt hx) h, sumOver_decoderWeights,
    decoderSum]

theorem dot_decoderRow : Vec.dot (sparse n (decoderWeights c c' source target p))
    (sparse n (decoderWeights c c' source target p)) = decoderSquares s t c c' := by
  rw [dot_sparse _ fun x hx => Nat.lt_of_lt_of_le (decoderWeights_lt hx) h, sumOver_decoderWeights,
    decoderSquares]
  simp only [weightAt_target, weightAt_source, if_true, and_self]
  have e : sumOver (fun q : Fin t => c * ((if target[q] = target[p] ∧ q = p then 1 else 0) + c))
      (List.finRange t) = c + sumOver (fun _ => c * c) (List.finRange t) := by
    have e : sumOver (fun q : Fin t => if q = p then c else 0) (List.finRange t) = c :=
      sumOver_ite_eq (fun _ => c) p
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

/-- Rows of different sequences or places differ. -/
theorem decoderRow_inj (hc : 0 < c) (hc' : Fin s → 0 < c')
    (e : sparse n (decoderWeights c c' source target p)
      = sparse n (decoderWeights c c' source' target' p')) :
    source = source' ∧ target = target' ∧ p = p' := by
  have at_ : ∀ i, i < n → weightAt (decoderWeights c c' source target p) i
      = weightAt (decoderWeights c c' source' target' p') i := fun i hi => by
    have := congrArg (fun x : Vec R n => x[i]) e
    simpa only [getElem_sparse] using this
  have one := OrderedRing.zero_lt_one (R := R)
  have ht : ∀ a r, (if a = target[p] ∧ r = p then 1 else 0) + (if a = target[r] then c else 0)
      = (if a = target'[p'] ∧ r = p' then 1 else 0) + if a = target'[r] then c else 0 := fun a r => by
    rw [← weightAt_target, ← weightAt_target]
    exact at_ _ (by have := targetCode_lt a r; omega)
  have hs : ∀ (b : Fin s_vocab) (j : Fin s), (if b = source[j] then c' else 0) = if b = source'[j] then c' else 0 :=
    fun b j => by
      rw [← weightAt_source (t_vocab := t_vocab) (t := t), ← weightAt_source]
      exact at_ _ (by have := sourceCode_lt (t_vocab := t_vocab) (t := t) b j; omega)
  have place : p = p' := by
    have e := ht target[p] p
    by_cases hp : p = p'
    · exact hp
    · simp only [and_self, if_true, hp, and_false, if_false] at e
      split at e <;> grind
  subst place
  refine ⟨Vector.ext fun j hj => ?_, Vector.ext fun r hr => ?_, rfl⟩
  · have e := hs source[j] ⟨j, hj⟩
    have := hc' ⟨j, hj⟩
    simp only [Fin.getElem_fin, if_true] at e
    split at e <;> grind
  · have e := ht target[r] ⟨r, hr⟩
    by_cases hp : r = p.val
    · subst hp
      simp only [Fin.getElem_fin, and_self, if_true, and_true] at e
      split at e <;> grind
    · have hp' : (⟨r, hr⟩ : Fin t) ≠ p := fun h => hp (congrArg Fin.val h)
      simp only [Fin.getElem_fin, hp', and_false, if_false, if_true] at e
      split at e <;> grind

end Attention.Claims
