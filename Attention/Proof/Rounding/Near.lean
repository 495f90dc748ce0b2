module

public import Attention.Model.RoundedTangents
public import Attention.Proof.Rounding.Dot
public import Attention.Proof.Rounding.UnderflowNumbers

public section

/-! # Errors by sizes

A computed number is known by how large it is at most, M, and by the sum S of the sizes of the terms
of the exact one; it is off by at most M − S. Products, sums and roundings keep that form.
Source: Higham 2002, "Accuracy and Stability of Numerical Algorithms", section 3.3 (running error
analysis). -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}

/-- `z` is at most `M`, and off from `e`, whose terms are of sizes that sum to at most `S`, by at
most `M - S`. -/
structure Near (M S e z : R) : Prop where
  /-- Of the exact number. -/
  exact : AtMost S e
  /-- Of the computed number. -/
  most : AtMost M z
  /-- How far it is off. -/
  error : AtMost (M - S) (z - e)

namespace Near

variable {M M' S S' e e' z z' : R}

/-- A number that is off by `d`. -/
theorem of_error {d : R} (he : AtMost S e) (h : AtMost d (z - e)) : Near (S + d) S e z := by
  refine ⟨he, ?_, h.mono (by grind)⟩
  have := he.add h
  rwa [show e + (z - e) = z by grind] at this

/-- An exact number. -/
theorem refl (he : AtMost S e) : Near S S e e := by
  have h : AtMost 0 (e - e) := by
    rw [show e - e = 0 by grind]
    exact .zero (Std.le_refl _)
  have h₁ := of_error he h
  rwa [show S + 0 = S by grind] at h₁

/-- A larger bound. -/
theorem mono (h : Near M S e z) (hM : M ≤ M') : Near M' S e z :=
  ⟨h.exact, h.most.mono hM, h.error.mono (by grind)⟩

/-- The bound is at least the size. -/
theorem le (h : Near M S e z) : S ≤ M := by
  have := h.error.nonneg
  grind

/-- The bound is not negative. -/
theorem nonneg (h : Near M S e z) : 0 ≤ M := h.most.nonneg

/-- A factor. -/
theorem factor {F t : R} (h : Near M S e z) (ht : AtMost (F - 1) (t - 1)) :
    Near (F * M) S e (z * t) := by
  have h₁ := (h.most.mul ht).add h.error
  have h₂ := (h.most.mul ht).add h.most
  rw [show z * (t - 1) + (z - e) = z * t - e by grind] at h₁
  rw [show z * (t - 1) + z = z * t by grind] at h₂
  exact ⟨h.exact, h₂.mono (by grind), h₁.mono (by grind)⟩

/-- One rounding. -/
theorem rounded {u : R} (h : Near M S e z) (hz : Rounded u z z') : Near ((1 + u) * M) S e z' := by
  obtain ⟨t, rfl, ht⟩ := rounded_factor hz
  exact h.factor ht

/-- A number that is off by `η` more. -/
theorem off {η : R} (h : Near M S e z) (hz : AtMost η (z' - z)) : Near (M + η) S e z' := by
  have h₁ := h.error.add hz
  have h₂ := h.most.add hz
  rw [show z - e + (z' - z) = z' - e by grind] at h₁
  rw [show z + (z' - z) = z' by grind] at h₂
  exact ⟨h.exact, h₂, h₁.mono (by grind)⟩

/-- A number that is stored, perhaps below the normal numbers. -/
theorem storedNear {u η : R} (h : Near M S e z) (hz : StoredNear u η z z') :
    Near ((1 + u) * M + η) S e z' := by
  obtain ⟨y, hy, hz⟩ := hz
  exact (h.rounded hy).off hz

/-- Numbers that are stored in a row. -/
theorem storedNearTimes {u η : R} (hu : 0 ≤ u) (hη : 0 ≤ η) {k : Nat} (h : Near M S e z)
    (hz : StoredNearTimes u η k z z') :
    Near ((1 + u) ^ k * (M + numeral k * η)) S e z' := by
  induction k generalizing z' with
  | zero =>
    rw [show z' = z from hz, Semiring.pow_zero, show (numeral 0 : R) = 0 from rfl]
    rwa [Semiring.zero_mul, Semiring.add_zero, Semiring.one_mul]
  | succ k ih =>
    obtain ⟨y, hy, hz⟩ := hz
    refine ((ih hy).storedNear hz).mono ?_
    have h₀ := OrderedRing.zero_lt_one (R := R)
    have h₁ := OrderedField.one_le_pow (x := 1 + u) (by grind) (k + 1)
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hη
    rw [Semiring.pow_succ] at h₂ ⊢
    rw [numeral_succ]
    generalize (1 + u) ^ k = U at *
    clear hz h ih hy h₁
    grind

/-- Roundings in a row. -/
theorem roundedTimes {u : R} {k : Nat} (h : Near M S e z) (hz : RoundedTimes u k z z') :
    Near ((1 + u) ^ k * M) S e z' := by
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor hz
  exact h.factor ht

/-- A number that is stored: as a whole, with what it is off by. -/
theorem stored {u : R} (h : Near M S e z) (hz : Rounded u z z') :
    Near (M + u * (absolute e + (M - S))) S e z' := by
  obtain ⟨θ, hθ, rfl⟩ := hz
  have h₁ := h.error.add (hθ.mul ((atMost_absolute e).add h.error))
  have e₁ : z - e + θ * (e + (z - e)) = z * (1 + θ) - e := by grind
  rw [e₁] at h₁
  have h₂ := of_error h.exact h₁
  rwa [show S + (M - S + u * (absolute e + (M - S))) = M + u * (absolute e + (M - S)) by grind]
    at h₂

/-- A product. -/
theorem mul (h : Near M S e z) (h' : Near M' S' e' z') :
    Near (M * M') (S * S') (e * e') (z * z') := by
  have h₁ := (h.most.mul h'.error).add (h.error.mul h'.exact)
  rw [show z * (z' - e') + (z - e) * e' = z * z' - e * e' by grind] at h₁
  exact ⟨h.exact.mul h'.exact, h.most.mul h'.most, h₁.mono (by grind)⟩

/-- A sum. -/
theorem add (h : Near M S e z) (h' : Near M' S' e' z') :
    Near (M + M') (S + S') (e + e') (z + z') := by
  have h₁ := h.error.add h'.error
  rw [show z - e + (z' - e') = z + z' - (e + e') by grind] at h₁
  exact ⟨h.exact.add h'.exact, h.most.add h'.most, h₁.mono (by grind)⟩

/-- The negative. -/
theorem neg (h : Near M S e z) : Near M S (-e) (-z) := by
  obtain ⟨⟨h₁, h₂⟩, ⟨h₃, h₄⟩, ⟨h₅, h₆⟩⟩ := h
  exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩

/-- A difference. -/
theorem sub (h : Near M S e z) (h' : Near M' S' e' z') :
    Near (M + M') (S + S') (e - e') (z - z') := by
  have h₁ := h.add h'.neg
  rwa [show e + -e' = e - e' by grind, show z + -z' = z - z' by grind] at h₁

/-- A sum over keys. -/
theorem sum {M S e z : α → R} {xs : List α} (h : ∀ x ∈ xs, Near (M x) (S x) (e x) (z x)) :
    Near (sumOver M xs) (sumOver S xs) (sumOver e xs) (sumOver z xs) := by
  refine ⟨sumOver_atMost fun x hx => (h x hx).exact, sumOver_atMost fun x hx => (h x hx).most, ?_⟩
  rw [← sumOver_sub]
  exact sumOver_error fun x hx => (h x hx).error

/-- A number near to one that is near. -/
theorem trans {T : R} (h : Near M S e z) (hz : AtMost ((T - 1) * M) (z' - z)) :
    Near (T * M) S e z' := by
  have h₁ := hz.add h.error
  have h₂ := hz.add h.most
  rw [show z' - z + (z - e) = z' - e by grind] at h₁
  rw [show z' - z + z = z' by grind] at h₂
  exact ⟨h.exact, h₂.mono (by grind), h₁.mono (by grind)⟩

/-- A rounded sum of numbers that are near to exact ones. -/
theorem roundedSum {u : R} (hu : 0 ≤ u) {k : Nat} {xs : List α} {M S y x : α → R}
    (h : ∀ j ∈ xs, Near (M j) (S j) (y j) (x j)) {z : R} (hz : RoundedSum u k (xs.map x) z) :
    Near ((1 + u) ^ k * sumOver M xs) (sumOver S xs) (sumOver y xs) z := by
  have h₁ := roundedSum_error hu hz
  rw [sumOver_map, sumOver_map] at h₁
  refine (Near.sum h).trans (h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left
    (sumOver_le_sumOver fun j hj => absolute_le (h j hj).most) ?_))
  have := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  grind

/-- The same where the sum of two numbers may be off by `ν`: so often as there are numbers, less
one. -/
theorem sumOf {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {k : Nat} {xs : List α} {M S y x : α → R}
    (h : ∀ j ∈ xs, Near (M j) (S j) (y j) (x j)) {z : R}
    (hz : SumOf u ν (fun _ => False) id k (xs.map x) z) :
    ∃ c, Near ((1 + u) ^ k * (sumOver M xs + c)) (sumOver S xs) (sumOver y xs) z ∧ 0 ≤ c ∧
      c ≤ sumOver (fun _ => ν) xs ∧ (xs ≠ [] → c + ν ≤ sumOver (fun _ => ν) xs) := by
  obtain ⟨z₀, c, h₁, h₂, h₃⟩ := sumOf_near hu hν hz fun _ _ h => h.elim
  rw [List.map_id] at h₁
  have h₄ := (Near.roundedSum hu h h₁).off h₃
  rw [← Semiring.left_distrib] at h₄
  refine ⟨c, h₄, h₂.nonneg, ?_, fun hne => ?_⟩
  · have := h₂.le hν (t := fun _ => ν) (fun _ _ => hν) fun _ _ _ => Std.le_refl _
    rwa [sumOver_map] at this
  · obtain ⟨j, hj⟩ := List.exists_mem_of_ne_nil xs hne
    have := h₂.counted ⟨x j, List.mem_map_of_mem hj, id⟩ (fun _ => ν) (fun _ _ => hν)
      fun _ _ _ => Std.le_refl _
    rwa [sumOver_map] at this

/-- The same where each number has room for what an addition may lose. -/
theorem sumOf_room {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {k : Nat} {xs : List α} {M S y x : α → R}
    (h : ∀ j ∈ xs, Near (M j - ν) (S j) (y j) (x j)) {z : R}
    (hz : SumOf u ν (fun _ => False) id k (xs.map x) z) :
    Near ((1 + u) ^ k * sumOver M xs) (sumOver S xs) (sumOver y xs) z := by
  obtain ⟨c, h₁, -, hc, -⟩ := Near.sumOf hu hν h hz
  refine h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left ?_ ?_)
  · rw [sumOver_sub]
    grind
  · have := OrderedField.one_le_pow (x := 1 + u) (by grind) k
    have := OrderedRing.zero_lt_one (R := R)
    grind

end Near

end Attention.Proof
