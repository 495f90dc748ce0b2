module

public import Attention.Claims.Attention.DotProduct
public import Attention.Proof.Softmax.Stability

public section

/-! # Standard attention and FlashAttention

The document that claims their equivalence states its two main theorems so that the first is true of
any algorithm and the second says nothing. Here are both under their names, of the online softmax of
`Spec.Online`; what the first says as it stands; and what the document says of stability and
precision. -/

namespace Attention.Claims

open Spec Spec.Online Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} {d : Nat}

/-! ## The first main theorem, as it stands -/

/-- `online_softmax_equivalence` as it stands: the result of the online algorithm is named, and then
not mentioned. -/
@[expose] def OnlineSoftmaxEquivalenceAsStated (onlineSoftmax : List Int → List Rat)
    (v : List Int) : Prop :=
  let standard : List Rat := expSoftmax v
  let _online_final := onlineSoftmax v
  ∃ result : List Rat, result = standard

/-- It is true of anything. -/
theorem onlineSoftmaxEquivalenceAsStated_of_anything (anything : List Int → List Rat)
    (v : List Int) : OnlineSoftmaxEquivalenceAsStated anything v :=
  ⟨_, rfl⟩

/-- So no algorithm is right because of it: it holds of one that returns nothing. -/
theorem onlineSoftmaxEquivalenceAsStated_refuted : ¬ ∀ onlineSoftmax : List Int → List Rat,
    (∀ v, OnlineSoftmaxEquivalenceAsStated onlineSoftmax v) →
      ∀ v, onlineSoftmax v = expSoftmax v :=
  fun h => absurd (h (fun _ => []) (onlineSoftmaxEquivalenceAsStated_of_anything _) [0])
    (by decide +kernel)

/-! ## Both main theorems, in their place -/

section
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- After any blocks of a row, online softmax has the maximum m and the sum l of standard softmax:
its weights are exp (s − m) / l, and 0 for a masked score. -/
theorem online_softmax_equivalence (blocks : List (List (ScoredValue S R d))) :
    softmax (blocks.flatten.map (·.score)) = (blocks.flatten.map (·.score)).map fun s =>
      match s with
      | none => (0 : R)
      | some s => rescale (some s) (online blocks).m / (online blocks).l := by
  rw [← Proof.safeSoftmax_eq_softmax, Proof.online_eq_ofBlock]
  simp only [safeSoftmax, ofBlock, sumOver_map]
  exact List.map_congr_left fun s _ => by cases s <;> rfl

/-- After any blocks of a row, the output of online softmax is Σ pⱼ vⱼ, with p the standard softmax
of the scores. -/
theorem attention_equivalence_principle (blocks : List (List (ScoredValue S R d))) {j : Nat}
    (hj : j < d) :
    (finish (online blocks))[j]
      = sumOver (fun (p, key) => p * key.value[j])
        ((softmax (blocks.flatten.map (·.score))).zip blocks.flatten) := by
  rw [Proof.online_any_blocks, attend, Vec.getElem_sumOver, List.zip_map_right, sumOver_map]
  exact sumOver_congr fun x _ => Vec.getElem_smul _ _ hj

/-! ## Stability: both subtract the maximum -/

/-- Standard softmax, the maximum subtracted, with any function in the place of the exponential. -/
@[expose] def safeSoftmaxUsing (f : S → R) (row : List (Option S)) : List R :=
  have : Exp S R := ⟨f⟩
  safeSoftmax row

/-- Standard softmax as the document writes it takes exponentials of numbers ≤ 0 only, too: in this
the tile loop improves nothing. -/
theorem safeSoftmaxUsing_eq {f : S → R} (hf : ∀ x : S, x ≤ 0 → f x = exp x)
    (row : List (Option S)) : safeSoftmaxUsing f row = safeSoftmax row := by
  have h : ∀ s ∈ row, @rescale S R _ _ ⟨f⟩ s (rowMax row) = rescale s (rowMax row) := fun s hs => by
    have hle := Proof.le_rowMax hs
    cases s with
    | none => rfl
    | some s =>
      cases hm : rowMax row with
      | none => rfl
      | some m =>
        rw [hm] at hle
        exact hf (s - m) (by have : s ≤ m := hle; grind)
  simp only [safeSoftmaxUsing, safeSoftmax]
  rw [sumOver_congr h]
  refine List.map_congr_left fun s hs => ?_
  cases s with
  | none => rfl
  | some s => exact congrArg (· / _) (h (some s) hs)

end

/-! ## Precision -/

/-- A number that is kept to quarters: what every operation gives is rounded to the nearest. -/
structure Quarters where
  /-- The number. -/
  value : Rat

namespace Quarters

/-- Rounded to the nearest quarter, halves up. -/
@[expose] def round (x : Rat) : Quarters := ⟨(4 * x + 1 / 2).floor / 4⟩

instance : OfNat Quarters 0 := ⟨⟨0⟩⟩
instance : Add Quarters := ⟨fun a b => round (a.value + b.value)⟩
instance : Mul Quarters := ⟨fun a b => round (a.value * b.value)⟩
instance : Div Quarters := ⟨fun a b => round (a.value / b.value)⟩
instance : Exp Int Quarters := ⟨fun k => round (2 ^ k)⟩

end Quarters

/-- That the order of computing does not affect the precision: with rounding too, keys taken one by
one give what all at once give. -/
@[expose] def PrecisionUnaffected : Prop :=
  ∀ row : List (ScoredValue Int Quarters 1),
    (finish (online (row.map fun key => [key]))).toList.map (·.value)
      = (finish (online [row])).toList.map (·.value)

/-- It does affect it: scores 0, 2 and 3 and values 3, 0 and 3 give 9/4 at once and 2 one by one. -/
theorem precisionUnaffected_refuted : ¬ PrecisionUnaffected :=
  fun h => absurd (h [⟨some 0, #v[⟨3⟩]⟩, ⟨some 2, #v[⟨0⟩]⟩, ⟨some 3, #v[⟨3⟩]⟩]) (by decide +kernel)

/-- The values of the two, and standard attention with the maximum subtracted. -/
theorem precision_values :
    let row : List (ScoredValue Int Quarters 1) :=
      [⟨some 0, #v[⟨3⟩]⟩, ⟨some 2, #v[⟨0⟩]⟩, ⟨some 3, #v[⟨3⟩]⟩]
    (finish (online (row.map fun key => [key]))).toList.map (·.value) = [2] ∧
    (finish (online [row])).toList.map (·.value) = [9/4] ∧
    (Vec.sumOver (fun (p, key) => Vec.smul p key.value)
      ((safeSoftmax (row.map (·.score))).zip row)).toList.map (·.value) = [9/4] := by
  decide +kernel

end Attention.Claims
