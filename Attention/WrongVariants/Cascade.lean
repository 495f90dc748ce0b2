module

public import Attention.Model.Exact
public import Attention.Proof.Online.Cascade

public section

/-! # Wrong variants of the shared prefix -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- The inputs of `cascade` here: two queries, a prefix of two keys, and tiles of one key. -/
abbrev Cascade := (Fin 2 → Nat → Int → Option Int) → Matrix Int 2 1 → Matrix Int 2 1 →
  Matrix Rat 2 1 → (Fin 2 → List (KeyValue Int Rat 1 1)) → List (Vec Rat 1)

/-- The claim of `cascade_eq_attendRows`, made of any way to compute it. -/
abbrev SharesPrefix (cascade : Cascade) : Prop := ∀ modify Q K V suffix,
  cascade modify Q K V suffix = (List.finRange 2).map fun i =>
    attendRows 1 (modify i) Q[i] (keyValues K V ++ suffix i)

/-- Positive control: `cascade` shares the prefix. -/
theorem sharesPrefix_cascade :
    SharesPrefix fun modify Q K V suffix => cascade 1 modify Q K V suffix 1 :=
  fun modify Q K V suffix => Proof.cascade_eq_attendRows 1 modify Q K V suffix (by decide)

/-- Queries 0 and 1, a prefix with keys 0 and 1, one more key for the first query and two for the
second, and the mask that query i sees the keys from i on: an output that differs refutes the
claim. -/
theorem SharesPrefix.refute {cascade : Cascade}
    (h : let Q := #v[#v[0], #v[1]]
      let K := #v[#v[0], #v[1]]
      let V := #v[#v[1], #v[2]]
      let modify := fun (i : Fin 2) j s => if i.val ≤ j then some s else none
      let suffix := fun i : Fin 2 =>
        if i = 0 then [(#v[0], #v[4])] else [(#v[1], #v[8]), (#v[2], #v[16])]
      (cascade modify Q K V suffix).map Vector.toList
        ≠ ((List.finRange 2).map fun i =>
            attendRows 1 (modify i) Q[i] (keyValues K V ++ suffix i)).map Vector.toList) :
    ¬ SharesPrefix cascade :=
  fun claim => h (congrArg (List.map Vector.toList) (claim _ _ _ _ _))

/-- The prefix is computed for the first query, and its state given to every query. -/
@[expose] def cascadeFirstQuery : Cascade := fun modify Q K V suffix =>
  (List.finRange 2).map fun i =>
    finish (merge (ofBlock (scoredRows 1 (modify 0) Q[0] (keyValues K V)))
      (suffixState 1 modify Q 2 i (suffix i) 1))

theorem cascadeFirstQuery_refuted : ¬ SharesPrefix cascadeFirstQuery :=
  SharesPrefix.refute (by decide +kernel)

/-- The suffix is counted from position 0, not from the end of the prefix. -/
@[expose] def cascadeSuffixAtZero : Cascade := fun modify Q K V suffix =>
  List.zipWith (fun i s => finish (merge s (suffixState 1 modify Q 0 i (suffix i) 1)))
    (List.finRange 2) (prefixStates 1 modify Q K V 1)

theorem cascadeSuffixAtZero_refuted : ¬ SharesPrefix cascadeSuffixAtZero :=
  SharesPrefix.refute (by decide +kernel)

/-- The two outputs are averaged, whatever the weight of each part. -/
@[expose] def cascadeAveraged : Cascade := fun modify Q K V suffix =>
  List.zipWith (fun i s => Vec.smul (1 / 2) (Vec.add (finish s)
    (finish (suffixState 1 modify Q 2 i (suffix i) 1))))
    (List.finRange 2) (prefixStates 1 modify Q K V 1)

theorem cascadeAveraged_refuted : ¬ SharesPrefix cascadeAveraged :=
  SharesPrefix.refute (by decide +kernel)

/-- The suffix starts from the state of the prefix and is then merged with it: the prefix counts
twice. -/
@[expose] def cascadeTwice : Cascade := fun modify Q K V suffix =>
  List.zipWith (fun i s => finish (merge s
      (stepBlock s (scoredRows 1 (fun j => modify i (2 + j)) Q[i] (suffix i)))))
    (List.finRange 2) (prefixStates 1 modify Q K V 1)

theorem cascadeTwice_refuted : ¬ SharesPrefix cascadeTwice :=
  SharesPrefix.refute (by decide +kernel)

end Attention.WrongVariants
