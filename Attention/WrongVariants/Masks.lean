module

public import Attention.Model.Exact
public import Attention.Proof.Masks.CausalPrefix

public section

/-! # Wrong variants of masks -/

namespace Attention.WrongVariants

open Spec

variable {q_len kv_len : Nat}

/-- A window whose left bound is exclusive. -/
@[expose] def windowLeftExclusive (alignment : Alignment) (left right : Option Nat) :
    Mask q_len kv_len := fun i j =>
  let p : Int := i.val + alignment.shift q_len kv_len
  left.all (fun l => decide (p - (l : Nat) < (j.val : Int))) &&
    right.all (fun r => decide ((j.val : Int) ≤ p + (r : Nat)))

/-- A window whose right bound is exclusive. -/
@[expose] def windowRightExclusive (alignment : Alignment) (left right : Option Nat) :
    Mask q_len kv_len := fun i j =>
  let p : Int := i.val + alignment.shift q_len kv_len
  left.all (fun l => decide (p - (l : Nat) ≤ (j.val : Int))) &&
    right.all (fun r => decide ((j.val : Int) < p + (r : Nat)))

/-- The claim of `window_iff`, made of any window. -/
abbrev IsWindow (window : Alignment → Option Nat → Option Nat → Mask q_len kv_len) : Prop :=
  ∀ (i : Fin q_len) (j : Fin kv_len) (alignment : Alignment) (left right : Option Nat),
    window alignment left right i j = true ↔
      let shift : Int := match alignment with
        | .topLeft => 0
        | .bottomRight => (kv_len : Int) - q_len
      (∀ l, left = some l → (i.val : Int) + shift - (l : Nat) ≤ j.val) ∧
        (∀ r, right = some r → (j.val : Int) ≤ i.val + shift + (r : Nat))

theorem windowLeftExclusive_refuted : ¬ ∀ q_len kv_len : Nat,
    IsWindow (windowLeftExclusive (q_len := q_len) (kv_len := kv_len)) := fun h =>
  absurd ((h 2 2 1 0 .topLeft (some 1) none).mpr
    ((Proof.window_iff (1 : Fin 2) (0 : Fin 2) .topLeft (some 1) none).mp (by decide +kernel)))
    (by decide +kernel)

theorem windowRightExclusive_refuted : ¬ ∀ q_len kv_len : Nat,
    IsWindow (windowRightExclusive (q_len := q_len) (kv_len := kv_len)) := fun h =>
  absurd ((h 2 2 0 1 .topLeft none (some 1)).mpr
    ((Proof.window_iff (0 : Fin 2) (1 : Fin 2) .topLeft none (some 1)).mp (by decide +kernel)))
    (by decide +kernel)

/-- A window with its two alignments exchanged. -/
@[expose] def windowSwapped (alignment : Alignment) (left right : Option Nat) :
    Mask q_len kv_len :=
  Mask.window (match alignment with | .topLeft => .bottomRight | .bottomRight => .topLeft)
    left right

theorem windowSwapped_refuted : ¬ ∀ q_len kv_len : Nat,
    IsWindow (windowSwapped (q_len := q_len) (kv_len := kv_len)) := fun h =>
  absurd ((h 1 2 0 1 .bottomRight none (some 0)).mpr
    ((Proof.window_iff (0 : Fin 1) (1 : Fin 2) .bottomRight none (some 0)).mp
      (by decide +kernel))) (by decide +kernel)

/-- Top-left alignment where bottom-right is meant. -/
theorem causalTopLeft_refuted : ¬ ∀ (q_len kv_len : Nat) (i : Fin q_len) (j : Fin kv_len),
    Mask.causal .topLeft i j = true ↔ j.val + q_len ≤ i.val + kv_len :=
  fun h => absurd (h 1 2 0 1) (by decide +kernel)

/-- A document mask that lets through what it should not, and nothing else. -/
@[expose] def documentInverted (queries : Vector Nat q_len) (keys : Vector Nat kv_len) :
    Mask q_len kv_len := fun i j => queries[i] != keys[j]

theorem documentInverted_refuted : ¬ ∀ (queries keys : Vector Nat 2) (i j : Fin 2),
    documentInverted queries keys i j = true ↔ queries[i] = keys[j] :=
  fun h => absurd (h #v[0, 1] #v[0, 1] 0 1) (by decide +kernel)

/-- Key padding that leaves the last `length` keys, not the first. -/
@[expose] def keyLengthLast (length : Nat) : Mask q_len kv_len :=
  fun _ j => decide (kv_len ≤ j.val + length)

theorem keyLengthLast_refuted : ¬ ∀ (K : Matrix Int 2 1) (V : Matrix Rat 2 1),
    attention 1 (keyLengthLast 1).toScoreMod #v[#v[0]] K V
      = attention 1 Mask.full.toScoreMod (#v[#v[0]] : Matrix Int 1 1) (#v[K[0]] : Matrix Int 1 1)
          (#v[V[0]] : Matrix Rat 1 1) :=
  fun h => absurd (congrArg (fun O : Matrix Rat 1 1 => O.toList.map Vector.toList)
    (h #v[#v[0], #v[0]] #v[#v[1], #v[2]])) (by decide +kernel)

/-- A causal mask that lets the next key through. -/
@[expose] def causalAhead (alignment : Alignment) : Mask q_len kv_len := fun i j =>
  decide ((j.val : Int) ≤ i.val + alignment.shift q_len kv_len + 1)

theorem causalAhead_refuted : ¬ ∀ (Q K : Matrix Int 2 1) (V V' : Matrix Rat 2 1) (i : Fin 2),
    (∀ j : Fin 2, j.val ≤ i.val → V[j] = V'[j]) →
    (attention 1 (causalAhead .topLeft).toScoreMod Q K V)[i]
      = (attention 1 (causalAhead .topLeft).toScoreMod Q K V')[i] :=
  fun h => absurd (congrArg Vector.toList
    (h #v[#v[0], #v[0]] #v[#v[0], #v[0]] #v[#v[1], #v[2]] #v[#v[1], #v[3]] 0
      (fun j hj => match j, hj with
        | 0, _ => rfl
        | 1, hj => absurd hj (by decide)))) (by decide +kernel)

end Attention.WrongVariants
