module

public section

/-! # Which keys a run of consecutive rows sees through a window

Integers only. The rows are A … B, the keys U … min U' kv − 1; row i sees the keys from i + s − l to
i + s + r. -/

namespace Attention.Proof.Intervals

/-- Without bounds every key is seen. -/
theorem bounds_none_none {A B U U' kv : Nat} (hA : A ≤ B) (hU : U < U') (hk : U < kv) :
    (0 < kv ∧ 0 < U' ∧ U < kv) ↔ ∃ i j : Nat, (A ≤ i ∧ i ≤ B) ∧ (U ≤ j ∧ j < U') ∧ j < kv :=
  ⟨fun _ => ⟨A, U, by omega⟩, fun _ => by omega⟩

/-- Bounded to the left: the keys from A + s − l on. -/
theorem bounds_some_none {A B U U' kv l : Nat} {s : Int} (hA : A ≤ B) (hU : U < U')
    (hk : U < kv) :
    (((A : Int) + s - l).toNat < kv ∧ ((A : Int) + s - l).toNat < U' ∧ U < kv) ↔
      ∃ i j : Nat, (A ≤ i ∧ i ≤ B) ∧ (U ≤ j ∧ j < U') ∧ j < kv ∧ (i : Int) + s - l ≤ j :=
  ⟨fun _ => ⟨A, max U ((A : Int) + s - l).toNat, by omega⟩, fun ⟨i, j, h⟩ => by omega⟩

/-- Bounded to the right: the keys up to B + s + r. -/
theorem bounds_none_some {A B U U' kv r : Nat} {s : Int} (hA : A ≤ B) (hU : U < U')
    (hk : U < kv) :
    (0 < min kv ((B : Int) + s + r + 1).toNat ∧ 0 < U' ∧ U < min kv ((B : Int) + s + r + 1).toNat) ↔
      ∃ i j : Nat, (A ≤ i ∧ i ≤ B) ∧ (U ≤ j ∧ j < U') ∧ j < kv ∧ (j : Int) ≤ i + s + r :=
  ⟨fun _ => ⟨B, U, by omega⟩, fun ⟨i, j, h⟩ => by omega⟩

/-- Bounded on both sides: the keys from A + s − l to B + s + r, without a gap. -/
theorem bounds_some_some {A B U U' kv l r : Nat} {s : Int} (hA : A ≤ B) (hU : U < U') :
    (((A : Int) + s - l).toNat < min kv ((B : Int) + s + r + 1).toNat ∧
      ((A : Int) + s - l).toNat < U' ∧ U < min kv ((B : Int) + s + r + 1).toNat) ↔
      ∃ i j : Nat, (A ≤ i ∧ i ≤ B) ∧ (U ≤ j ∧ j < U') ∧ j < kv ∧
        (i : Int) + s - l ≤ j ∧ (j : Int) ≤ i + s + r := by
  refine ⟨fun h => ?_, fun ⟨i, j, h⟩ => by omega⟩
  obtain ⟨j, hj, hl, hr⟩ : ∃ j : Nat, (U ≤ j ∧ j < U' ∧ j < kv) ∧
      (A : Int) + s - l ≤ j ∧ (j : Int) ≤ B + s + r :=
    ⟨max U ((A : Int) + s - l).toNat, by omega⟩
  clear h
  by_cases hi : (j : Int) ≤ A + s + r
  · exact ⟨A, j, by omega⟩
  · obtain ⟨i, hi⟩ : ∃ i : Nat, (i : Int) = j - s - r := ⟨(j - s - r).toNat, by omega⟩
    exact ⟨i, j, by omega⟩

/-- Every row sees every key to the left exactly when the last row sees the first key. -/
theorem all_left {A B U U' kv l : Nat} {s : Int} (hA : A ≤ B) (hU : U < U')
    (hk : U < kv) :
    ((B : Int) + s - l).toNat ≤ U ↔
      ∀ i j : Nat, A ≤ i ∧ i ≤ B → U ≤ j ∧ j < U' → j < kv → (i : Int) + s - l ≤ j :=
  ⟨fun h i j => by omega, fun h => by have := h B U; omega⟩

/-- Every row sees every key to the right exactly when the first row sees the last key. -/
theorem all_right {A B U U' kv r : Nat} {s : Int} (hA : A ≤ B) (hU : U < U')
    (hk : U < kv) :
    (kv ≤ ((A : Int) + s + r + 1).toNat ∨ U' ≤ ((A : Int) + s + r + 1).toNat) ↔
      ∀ i j : Nat, A ≤ i ∧ i ≤ B → U ≤ j ∧ j < U' → j < kv → (j : Int) ≤ i + s + r :=
  ⟨fun h i j => by omega, fun h => by have := h A (min U' kv - 1); omega⟩

end Attention.Proof.Intervals
