module

public import Attention.Model.RoundedTangents
public import Attention.Proof.Rounding.Dot

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

end Near

/-! ## Sums that are rescaled -/

private theorem near_one_le_power {a e : R} (ha : 0 ≤ a) (he : 0 ≤ e) (k r : Nat) :
    1 ≤ (1 + a) ^ k * (1 + e) ^ r := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.one_le_pow (x := 1 + a) (by grind) k
  have h₂ := OrderedField.one_le_pow (x := 1 + e) (by grind) r
  have := OrderedField.mul_le_mul (a := 1) (Std.le_of_lt h₀) h₁ (c := 1) (Std.le_of_lt h₀) h₂
  grind

private theorem near_absolute_mul (x y : R) : absolute (x * y) = absolute x * absolute y :=
  Std.le_antisymm (absolute_le ((atMost_absolute x).mul (atMost_absolute y)))
    (absolute_mul_le x y)

private theorem near_list (xs : List (R × R)) :
    AtMost (sumOver (fun x => absolute x.1) xs) (sumOver (·.1) xs) :=
  sumOver_atMost fun x _ => atMost_absolute x.1

private theorem near_absolute_zero : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

private theorem near_scaled {c : R} (xs : List (R × R)) (f : R × R → R × R)
    (hf : ∀ x, f x = (c * x.1, x.2)) :
    sumOver (fun x => absolute x.1) (xs.map f) = absolute c * sumOver (fun x => absolute x.1) xs ∧
      sumOver (·.1) (xs.map f) = c * sumOver (·.1) xs ∧
      sumOver (·.2) (xs.map f) = sumOver (·.2) xs := by
  rw [sumOver_map, sumOver_map, sumOver_map, ← sumOver_mul_left, ← sumOver_mul_left]
  exact ⟨sumOver_congr fun x _ => by rw [hf, near_absolute_mul],
    sumOver_congr fun x _ => by rw [hf], sumOver_congr fun x _ => by rw [hf]⟩

private theorem near_rescale_le {a e c T X Y m : R} (ha : 0 ≤ a) (he : 0 ≤ e) (hT : 1 ≤ T)
    (hc : c ≤ 1) (hY : 0 ≤ Y) (hm : 0 ≤ m) :
    (1 + a) * (c * ((1 + e) * (T * (X + m * Y)))) + Y
      ≤ T * (1 + a) * (1 + e) * (c * X + (m + 1) * Y) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) (b := 1 + a) (by grind)
    (c := 1) (Std.le_of_lt h₀) (d := 1 + e) (by grind)
  have h₂ := OrderedField.mul_le_mul (a := (1 * 1 : R)) (by grind) h₁ (c := 1)
    (Std.le_of_lt h₀) hT
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₂ hY
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right hc (OrderedRing.mul_nonneg hm hY)
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (c := (1 + a) * (1 + e) * T) (by grind)
  clear h₁ h₂ h₄
  grind

private theorem near_divide_le {c A T X Y m : R} (hA : 1 ≤ A) (hT : 1 ≤ T) (hc : c ≤ 2)
    (hY : 0 ≤ Y) (hm : 0 ≤ m) :
    A * (c * (T * (X + m * Y)) + 5 * Y) ≤ A * T * (c * X + (2 * m + 5) * Y) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hT (c := 5 * Y) (by grind)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hc (OrderedRing.mul_nonneg hm hY)
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := T) (by grind)
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left (a := 5 * Y + T * (c * (m * Y)))
    (b := T * (5 * Y) + T * (2 * (m * Y))) (c := A) (by grind) (by grind)
  clear h₁ h₂ h₃
  grind

private theorem near_numeral_add (m n : Nat) : (numeral (m + n) : R) = numeral m + numeral n := by
  induction n with
  | zero => rw [Nat.add_zero, show (numeral 0 : R) = 0 from rfl, Semiring.add_zero]
  | succ n ih =>
    rw [← Nat.add_assoc, numeral_succ, numeral_succ, ih]
    grind

private theorem near_numeral_five : (numeral 5 : R) = 5 := by
  rw [numeral_succ, numeral_succ, numeral_succ, numeral_succ, numeral_succ,
    show (numeral 0 : R) = 0 from rfl]
  grind

/-- A sum in which each number goes through `k` roundings, `r` rescalings and `m` operations that
may underflow. -/
theorem rescaledSum_near {a e : R} (ha : 0 ≤ a) (he : 0 ≤ e) {k r m : Nat} {xs : List (R × R)}
    {z : R} (h : RescaledSum a e k r m xs z) (ht : ∀ x ∈ xs, 0 ≤ x.2) :
    Near ((1 + a) ^ k * (1 + e) ^ r
        * (sumOver (fun x => absolute x.1) xs + numeral m * sumOver (·.2) xs))
      (sumOver (fun x => absolute x.1) xs) (sumOver (·.1) xs) z := by
  have grown : ∀ (k r m : Nat) (xs : List (R × R)), (∀ x ∈ xs, 0 ≤ x.2) →
      sumOver (fun x => absolute x.1) xs ≤ (1 + a) ^ k * (1 + e) ^ r
        * (sumOver (fun x => absolute x.1) xs + numeral m * sumOver (·.2) xs) :=
    fun k r m xs ht => by
      have h₁ : 0 ≤ sumOver (fun x => absolute x.1) xs :=
        sumOver_nonneg fun x _ => absolute_nonneg _
      have h₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) m) (sumOver_nonneg ht)
      have := OrderedRing.mul_le_mul_of_nonneg_right (near_one_le_power ha he k r)
        (c := sumOver (fun x => absolute x.1) xs + numeral m * sumOver (·.2) xs) (by grind)
      grind
  induction h with
  | @nil k r m => exact (Near.refl (near_list [])).mono (grown k r m [] ht)
  | @one k r m x t =>
    have e₁ : sumOver (fun x : R × R => x.1) [(x, t)] = x := by
      rw [sumOver_cons, sumOver_nil, Semiring.add_zero]
    have h := (Near.refl (near_list [(x, t)])).mono (grown k r m [(x, t)] ht)
    rw [e₁] at h ⊢
    exact h
  | @zero k r m xs t z _ ih =>
    have h := ih fun x hx => ht x (List.mem_cons_of_mem _ hx)
    have h₁ : 0 ≤ t := ht (0, t) (List.mem_cons_self ..)
    have e₂ : sumOver (fun x : R × R => absolute x.1) ((0, t) :: xs)
        = sumOver (fun x => absolute x.1) xs := by
      rw [sumOver_cons, near_absolute_zero]
      grind
    have e₃ : sumOver (fun x : R × R => x.1) ((0, t) :: xs) = sumOver (·.1) xs := by
      rw [sumOver_cons]
      grind
    rw [e₂, e₃, sumOver_cons]
    refine h.mono ?_
    have h₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) m) h₁
    have h₃ := near_one_le_power ha he k r
    refine OrderedRing.mul_le_mul_of_nonneg_left (by grind) ?_
    have := OrderedRing.zero_lt_one (R := R)
    grind
  | @add k r m xs ys x x' y y' _ _ hx hy hx' hy' =>
    have h := ((hx' fun x hx => ht x (List.mem_append_left _ hx)).rounded hx).add
      ((hy' fun x hx => ht x (List.mem_append_right _ hx)).rounded hy)
    rw [sumOver_append, sumOver_append, sumOver_append]
    refine h.mono ?_
    rw [Semiring.pow_succ]
    generalize sumOver (fun x : R × R => absolute x.1) xs = s
    generalize sumOver (fun x : R × R => absolute x.1) ys = s'
    generalize sumOver (fun x : R × R => x.2) xs = w
    generalize sumOver (fun x : R × R => x.2) ys = w'
    generalize (1 + a) ^ k = A
    generalize (1 + e) ^ r = E
    clear h hx hy hx' hy' grown
    grind
  | @permute k r m xs ys z _ hp ih =>
    rw [← sumOver_perm _ hp, ← sumOver_perm _ hp, ← sumOver_perm _ hp]
    exact ih fun x hx => ht x (hp.subset hx)
  | @rescale k r m xs c c' z z' _ hc' hc hz ih =>
    obtain ⟨t, rfl, ht'⟩ := rounded_factor hc
    have hn : ∀ x ∈ xs, 0 ≤ x.2 := fun x hx =>
      ht (c * x.1, x.2) (List.mem_map.mpr ⟨x, hx, rfl⟩)
    obtain ⟨e₁, e₂, e₃⟩ := near_scaled (c := c) xs _ fun _ => rfl
    have h := ((Near.refl (atMost_absolute c)).mul ((ih hn).factor ht')).storedNear
      (z' := z') (by rwa [show c * (z * t) = c * t * z by grind])
    rw [e₁, e₂, e₃]
    refine h.mono ?_
    rw [Semiring.pow_succ, Semiring.pow_succ, numeral_succ]
    have h₁ := near_rescale_le ha he (near_one_le_power ha he k r) (absolute_le hc')
      (sumOver_nonneg hn) (numeral_nonneg (R := R) m)
      (X := sumOver (fun x => absolute x.1) xs)
    refine Std.le_trans h₁ ?_
    generalize (1 + a) ^ k = A
    generalize (1 + e) ^ r = E
    clear h₁ h ih hc hz ht' grown
    grind
  | @divide k r m xs l z z' _ hl hz ih =>
    have hn : ∀ x ∈ xs, 0 ≤ x.2 := fun x hx =>
      ht (x.1 / l, x.2) (List.mem_map.mpr ⟨x, hx, rfl⟩)
    obtain ⟨e₁, e₂, e₃⟩ := near_scaled (c := 1 / l) xs (fun x => (x.1 / l, x.2)) fun x => by
      show (x.1 / l, x.2) = (1 / l * x.1, x.2)
      rw [show x.1 / l = 1 / l * x.1 by
        rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]; grind]
    have h := ((Near.refl (atMost_absolute (1 / l))).mul (ih hn)).storedNearTimes ha
      (sumOver_nonneg hn) (z' := z') (by
        rwa [show 1 / l * z = z / l by rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]; grind])
    rw [e₁, e₂, e₃]
    refine h.mono ?_
    rw [near_numeral_five]
    have h₁ := near_divide_le (OrderedField.one_le_pow (x := 1 + a) (by grind) 5)
      (near_one_le_power ha he k r) (absolute_le hl) (sumOver_nonneg hn)
      (numeral_nonneg (R := R) m) (X := sumOver (fun x => absolute x.1) xs)
    refine Std.le_trans h₁ ?_
    rw [Semiring.pow_add, near_numeral_add, show 2 * m = m + m by omega, near_numeral_add,
      near_numeral_five]
    generalize (1 + a) ^ k = A
    generalize (1 + a) ^ 5 = A'
    generalize (1 + e) ^ r = E
    clear h₁ h ih hz grown
    grind

/-- The same of numbers that are near to exact ones. -/
theorem Near.rescaled {a e : R} (ha : 0 ≤ a) (he : 0 ≤ e) {k r m : Nat} {xs : List α}
    {M S y x t : α → R} (h : ∀ j ∈ xs, Near (M j) (S j) (y j) (x j)) (ht : ∀ j ∈ xs, 0 ≤ t j)
    {z : R} (hz : RescaledSum a e k r m (xs.map fun j => (x j, t j)) z) :
    Near ((1 + a) ^ k * (1 + e) ^ r * sumOver (fun j => M j + numeral m * t j) xs)
      (sumOver S xs) (sumOver y xs) z := by
  have h₁ := (rescaledSum_near ha he hz fun x hx => by
    obtain ⟨j, hj, rfl⟩ := List.mem_map.mp hx
    exact ht j hj).error
  rw [sumOver_map, sumOver_map, sumOver_map] at h₁
  refine ((Near.sum h).off h₁).mono ?_
  rw [sumOver_add, sumOver_mul_left]
  have h₂ : sumOver (fun j => absolute (x j)) xs ≤ sumOver M xs :=
    sumOver_le_sumOver fun j hj => absolute_le (h j hj).most
  have h₃ := near_one_le_power ha he k r
  generalize (1 + a) ^ k * (1 + e) ^ r = T at *
  have := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := T - 1) (by grind)
  generalize sumOver (fun j => absolute (x j)) xs = s at *
  generalize numeral m * sumOver t xs = w at *
  clear h h₁ hz
  grind

end Attention.Proof
