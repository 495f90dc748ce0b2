module

public import Attention.Spec.Masks
public import Attention.Model.Exact
public import Attention.Proof.Heads.Basic

public section

/-! # Wrong variants of grouped-query attention -/

namespace Attention.WrongVariants

open Spec

/-- Attention of four query heads over two heads of keys and values, assigned by `kvHead`. -/
@[expose] def grouped (kvHead : Fin (2 * 2) → Fin 2) (Q : Vector (Matrix Int 1 1) (2 * 2))
    (K : Vector (Matrix Int 1 1) 2) (V : Vector (Matrix Rat 1 1) 2) :
    Vector (Matrix Rat 1 1) (2 * 2) :=
  Vec.ofFn fun h => attention 1 Mask.full.toScoreMod Q[h] K[kvHead h] V[kvHead h]

/-- The claim of `gqa_repeat`, made of any assignment of query heads to heads of keys and values,
and of any way to repeat these. -/
abbrev GroupsHeads (kvHead : Fin (2 * 2) → Fin 2)
    (repeatHeads : ∀ {α : Type}, Vector α 2 → Vector α (2 * 2)) : Prop :=
  ∀ Q K V, grouped kvHead Q K V
    = multiHead 1 (fun _ => Mask.full.toScoreMod) Q (repeatHeads K) (repeatHeads V)

/-- Positive control: query heads in a row share a head, and each head is repeated in a row. -/
theorem groupsHeads_kvHead : GroupsHeads kvHead (repeatHeads 2) :=
  Proof.gqa_repeat 1 fun _ => Mask.full.toScoreMod

/-- An output that differs refutes the claim: zero queries and keys, values 1 and 2. -/
theorem GroupsHeads.refute {kvHead : Fin (2 * 2) → Fin 2}
    {repeatHeads : ∀ {α : Type}, Vector α 2 → Vector α (2 * 2)}
    (h : let Q := Vector.replicate (2 * 2) #v[#v[0]]
      let K := #v[#v[#v[0]], #v[#v[0]]]
      let V := #v[#v[#v[1]], #v[#v[2]]]
      (grouped kvHead Q K V).toList.map (·.toList.map Vector.toList)
        ≠ (multiHead 1 (fun _ => Mask.full.toScoreMod) Q (repeatHeads K)
            (repeatHeads V)).toList.map (·.toList.map Vector.toList)) :
    ¬ GroupsHeads kvHead repeatHeads :=
  fun claim => h (congrArg (fun O => O.toList.map (·.toList.map Vector.toList)) (claim _ _ _))

/-- Query head h uses head h % num_kv_heads. -/
@[expose] def kvHeadModulo (h : Fin (2 * 2)) : Fin 2 := ⟨h.val % 2, Nat.mod_lt _ (by decide)⟩

theorem kvHeadModulo_refuted : ¬ GroupsHeads kvHeadModulo (repeatHeads 2) :=
  GroupsHeads.refute (by decide +kernel)

/-- The heads are repeated as a whole, as PyTorch's `repeat` does it: 0, 1, 0, 1. -/
@[expose] def repeatWhole {α : Type} (X : Vector α 2) : Vector α (2 * 2) :=
  ⟨(X.toList ++ X.toList).toArray, by simp⟩

theorem repeatWhole_refuted : ¬ GroupsHeads kvHead repeatWhole :=
  GroupsHeads.refute (by decide +kernel)

/-- The group's size and the number of heads mistaken for each other, with two key-value heads for
six query heads: head 2 uses head 1. -/
theorem kvHeadSwapped_refuted : ¬ ∀ h : Fin (2 * 3), h.val / 2 = (kvHead h).val :=
  fun h => absurd (h 2) (by decide)

/-- The packed rows are given back head by head, not query by query. -/
@[expose] def packedRowByHead (h : Fin (1 * 2)) (i : Fin 2) : Fin (2 * 2) :=
  ⟨h.val % 2 * 2 + i.val, by omega⟩

theorem packedRowByHead_refuted : ¬ ∀ (Q : Vector (Matrix Int 2 1) (1 * 2))
    (K : Vector (Matrix Int 2 1) 1) (V : Vector (Matrix Rat 2 1) 1),
    (Vec.ofFn fun h => Vec.ofFn fun i =>
        (attentionPackedHeads 1 (fun _ => Mask.full.toScoreMod) Q K V)[kvHead h][
          packedRowByHead h i] : Vector (Matrix Rat 2 1) (1 * 2))
      = groupedQuery 1 (fun _ => Mask.full.toScoreMod) Q K V :=
  fun h => absurd (congrArg (fun O => O.toList.map (·.toList.map Vector.toList))
    (h #v[#v[#v[0], #v[1]], #v[#v[2], #v[3]]] #v[#v[#v[0], #v[1]]] #v[#v[#v[0], #v[1]]]))
    (by decide +kernel)

end Attention.WrongVariants
