module

public import Attention.Proof.Rounding.Near

public section

/-! # Sums that are rescaled, by sizes

A sum in any order and by any parts, which are rescaled and divided; what it loses below the normal
numbers, its factors included.
Source: docs/tolerances.md, "Tangents". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {α : Type v}

/-- A factor that is stored, and may underflow, is no larger than one that is rounded. -/
theorem factor_of_stored {e ν c c' : R} (he : 0 ≤ e) (hν : 0 ≤ ν) (hνe : ν ≤ e) (hc : AtMost 1 c)
    (h : Stored e ν c c') : AtMost (1 + e) c' ∧ StoredNear e ν c c' := by
  obtain ⟨θ, hθ, h₁, -⟩ := stored_split he hν h
  refine ⟨?_, _, ⟨θ, hθ, rfl⟩, h₁⟩
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (absolute_le hc) he
  have h₃ : AtMost e (c' - c) := h.1.mono (by
    rw [OrderedField.max_def]
    split <;> grind)
  have := hc.add h₃
  rwa [show c + (c' - c) = c' by grind] at this

/-- A product of what is near with a factor that is off by a relative error `ε`, and by `ν`. -/
private theorem near_factor {T X L ε ν c c' e z : R} (hT : 1 ≤ T) (hX : 0 ≤ X) (hL : 0 ≤ L)
    (h : Near (T * (X + L)) X e z) (hc : AtMost (1 + ε) c') (hc' : StoredNear ε ν c c') :
    Near (T * ((1 + ε) * (absolute c * X) + (ν * X + (1 + ε) * L))) (absolute c * X) (c * e)
      (c' * z) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨y, ⟨θ, hθ, rfl⟩, hδ⟩ := hc'
  have i₁ := (atMost_absolute c).mul hθ
  have i₂ := i₁.add hδ
  rw [show c * θ + (c' - c * (1 + θ)) = c' - c by grind] at i₂
  have i₃ := (atMost_absolute c).add i₂
  rw [show c + (c' - c) = c' by grind] at i₃
  have a₁ := absolute_le hc
  have a₂ := absolute_le i₃
  have a₀ := absolute_nonneg c'
  have hx := absolute_nonneg c
  have j₁ := OrderedRing.mul_le_mul_of_nonneg_right a₂ (OrderedRing.mul_nonneg
    (a := T - 1) (by grind) hX)
  have j₂ := OrderedRing.mul_le_mul_of_nonneg_right a₁ (OrderedRing.mul_nonneg
    (a := T) (by grind) hL)
  have j₃ := OrderedRing.mul_le_mul_of_nonneg_right a₂ hX
  have e₁ : T * (X + L) - X = (T - 1) * X + T * L := by grind
  have h₁ := ((atMost_absolute c').mul h.error).add (i₂.mul h.exact)
  rw [show c' * (z - e) + (c' - c) * e = c' * z - c * e by grind] at h₁
  have h₂ := (atMost_absolute c').mul h.most
  clear i₁ i₂ i₃ hδ hθ a₁ a₂
  refine ⟨(atMost_absolute c).mul h.exact, h₂.mono ?_, h₁.mono ?_⟩
  all_goals
    clear h h₁ h₂
    generalize absolute c' = C' at *
    generalize absolute c = C at *
    grind

private theorem near_zero_add (x : R) : 0 + x = x := by grind

private theorem near_self (x : R) : AtMost 0 (x - x) := ⟨by grind, by grind⟩

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
  exact ⟨sumOver_congr fun x _ => by rw [hf, absolute_mul],
    sumOver_congr fun x _ => by rw [hf], sumOver_congr fun x _ => by rw [hf]⟩

private theorem near_rescale_le {a e c T X Y N L : R} (ha : 0 ≤ a) (he : 0 ≤ e) (hT : 1 ≤ T)
    (hN : N ≤ Y) (hY : 0 ≤ Y) :
    (1 + a) * (T * ((1 + e) * (c * X) + (N + (1 + e) * L))) + Y
      ≤ T * (1 + a) * (1 + e) * (c * X + (L + 2 * Y)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedField.mul_le_mul (a := (1 : R)) (Std.le_of_lt h₀) hT (c := 1)
    (Std.le_of_lt h₀) (d := 1 + a) (by grind)
  have h₂ := OrderedField.mul_le_mul (a := (1 * 1 : R)) (by grind) h₁ (c := 1)
    (Std.le_of_lt h₀) (d := 1 + e) (by grind)
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₂ hY
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left hN (c := T * (1 + a)) (by grind)
  have h₅ := OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (a := T * (1 + a)) (by grind) he) hY
  clear h₁ h₂ hN
  grind

private theorem near_divide_le {c A T X Y L : R} (hA : 1 ≤ A) (hT : 1 ≤ T) (hc : c ≤ 2)
    (hY : 0 ≤ Y) (hL : 0 ≤ L) :
    A * (c * (T * (X + L)) + 5 * Y) ≤ A * T * (c * X + (2 * L + 5 * Y)) := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hT (c := 5 * Y) (by grind)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hc hL
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := T) (by grind)
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left (a := 5 * Y + T * (c * L))
    (b := T * (5 * Y) + T * (2 * L)) (c := A) (by grind) (by grind)
  clear h₁ h₂ h₃
  grind

private theorem near_add_le {a T T' X X' L L' n : R} (hT : 1 ≤ T * (1 + a)) (hn : 0 ≤ n)
    (e : T' = T * (1 + a)) :
    (1 + a) * (T * (X + L)) + (1 + a) * (T * (X' + L')) + n ≤ T' * (X + X' + (L + L' + n)) := by
  subst e
  have := OrderedRing.mul_le_mul_of_nonneg_right hT hn
  clear hT
  grind

/-- What a sum loses below the normal numbers, of numbers that each lose `m + 1` times as much as
they say; as much as a sum of two loses is left over, but for masked keys. -/
structure SumLost (ν m : R) (xs : List (R × R)) (L : R) : Prop where
  /-- Not negative. -/
  nonneg : 0 ≤ L
  /-- All in all. -/
  whole : L ≤ (m + 1) * sumOver (·.2) xs
  /-- With what an addition loses. -/
  left : (∃ x ∈ xs, ν ≤ x.2) → L + ν ≤ (m + 1) * sumOver (·.2) xs

private theorem sumLost_add {ν m n L L' : R} {xs ys : List (R × R)} (h : SumLost ν m xs L)
    (h' : SumLost ν m ys L') (hn : 0 ≤ n) (hn' : n = 0 ∨ n ≤ ν ∧ (∃ x ∈ xs, ν ≤ x.2) ∧
      ∃ y ∈ ys, ν ≤ y.2) : SumLost ν m (xs ++ ys) (L + L' + n) := by
  obtain ⟨i₁, i₂, i₃⟩ := h
  obtain ⟨j₁, j₂, j₃⟩ := h'
  have e : (m + 1) * sumOver (·.2) (xs ++ ys)
      = (m + 1) * sumOver (·.2) xs + (m + 1) * sumOver (·.2) ys := by
    rw [sumOver_append, Semiring.left_distrib]
  refine ⟨by grind, ?_, ?_⟩
  · rw [e]
    rcases hn' with rfl | ⟨hn', hx, hy⟩
    · grind
    · have := i₃ hx
      grind
  · rintro ⟨x, hx, hν⟩
    rw [e]
    rcases hn' with rfl | ⟨hn', hx, hy⟩
    · rcases List.mem_append.mp hx with hx | hx
      · have := i₃ ⟨x, hx, hν⟩
        grind
      · have := j₃ ⟨x, hx, hν⟩
        grind
    · have := i₃ hx
      have := j₃ hy
      grind

private theorem sumLost_one {ν m x t : R} (hm : 0 ≤ m) (ht : 0 ≤ t) : SumLost ν m [(x, t)] 0 := by
  have h := OrderedRing.mul_nonneg hm ht
  have e : (m + 1) * sumOver (·.2) [(x, t)] = m * t + t := by
    rw [sumOver_cons, sumOver_nil]
    grind
  refine ⟨Std.le_refl _, ?_, ?_⟩
  · rw [e]
    grind
  · rintro ⟨y, hy, hν⟩
    rw [List.mem_singleton] at hy
    subst hy
    have hν : ν ≤ t := hν
    rw [e]
    grind

private theorem sumLost_zero {ν m t L : R} {xs : List (R × R)} (hm : 0 ≤ m) (ht : 0 ≤ t)
    (hL : SumLost ν m xs L) : SumLost ν m ((0, t) :: xs) L := by
  obtain ⟨i₁, i₂, i₃⟩ := hL
  have h := OrderedRing.mul_nonneg hm ht
  have e : (m + 1) * sumOver (·.2) ((0, t) :: xs) = m * t + t + (m + 1) * sumOver (·.2) xs := by
    rw [sumOver_cons]
    generalize sumOver (·.2) xs = Y
    clear i₂ i₃
    grind
  refine ⟨i₁, ?_, ?_⟩
  · rw [e]
    clear i₃
    grind
  · rintro ⟨x, hx, hν⟩
    rw [e]
    rcases List.mem_cons.mp hx with rfl | hx
    · have hν : ν ≤ t := hν
      clear i₃
      grind
    · have := i₃ ⟨x, hx, hν⟩
      clear i₃
      grind

private theorem near_two : (0 : R) ≤ 2 := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

private theorem near_one_two : (1 : R) ≤ 2 := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

private theorem near_five : (0 : R) ≤ 5 := by
  have := OrderedRing.zero_lt_one (R := R)
  grind

private theorem near_divided (m : Nat) :
    (numeral (2 * m + 6) : R) + 1 = 2 * (numeral m + 1) + 5 := by
  rw [show 2 * m + 6 = m + m + 5 + 1 by omega, numeral_succ, numeral_add, numeral_add,
    numeral_five]
  grind

/-- What is lost in one step more: `a` times what was, and `b` for each number. -/
private theorem sumLost_step {ν m m' a b L : R} {xs ys : List (R × R)} (hν : 0 ≤ ν) (ha : 1 ≤ a)
    (hb : 0 ≤ b) (hY : 0 ≤ sumOver (·.2) xs) (e : sumOver (·.2) ys = sumOver (·.2) xs)
    (hmem : (∃ y ∈ ys, ν ≤ y.2) → ∃ x ∈ xs, ν ≤ x.2) (hm : m' + 1 = a * (m + 1) + b)
    (h : SumLost ν m xs L) : SumLost ν m' ys (a * L + b * sumOver (·.2) xs) := by
  obtain ⟨i₁, i₂, i₃⟩ := h
  have h₀ := OrderedRing.zero_lt_one (R := R)
  generalize sumOver (·.2) xs = Y at *
  have h₁ := OrderedRing.mul_nonneg (a := a) (by grind) i₁
  have h₂ := OrderedRing.mul_nonneg hb hY
  refine ⟨by clear i₃ hmem; grind, ?_, fun hy => ?_⟩
  · have := OrderedRing.mul_le_mul_of_nonneg_left i₂ (c := a) (by grind)
    rw [hm, e]
    clear i₂ i₃ hmem h₁ h₂ e
    grind
  · have j := OrderedRing.mul_le_mul_of_nonneg_left (i₃ (hmem hy)) (c := a) (by grind)
    have k := OrderedRing.mul_le_mul_of_nonneg_right ha hν
    rw [hm, e]
    clear i₂ i₃ hmem h₁ h₂ e hy
    grind

/-- A sum in which each number goes through `k` roundings, `r` rescalings and `m` operations that
may underflow, and in which sums of two numbers may. -/
theorem rescaledSum_near {a e ν : R} (ha : 0 ≤ a) (he : 0 ≤ e) (hν : 0 ≤ ν) {k r m : Nat}
    {xs : List (R × R)} {z : R} (h : RescaledSum a e ν k r m xs z) (ht : ∀ x ∈ xs, 0 ≤ x.2) :
    ∃ L, SumLost ν (numeral m) xs L ∧
      Near ((1 + a) ^ k * (1 + e) ^ r * (sumOver (fun x => absolute x.1) xs + L))
        (sumOver (fun x => absolute x.1) xs) (sumOver (·.1) xs) z := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have size : ∀ xs : List (R × R), 0 ≤ sumOver (fun x => absolute x.1) xs :=
    fun xs => sumOver_nonneg fun x _ => absolute_nonneg _
  have least : ∀ (m : Nat) (xs : List (R × R)), (∀ x ∈ xs, 0 ≤ x.2) →
      0 ≤ (numeral m + 1) * sumOver (·.2) xs := fun m xs ht =>
    OrderedRing.mul_nonneg (by have := numeral_nonneg (R := R) m; grind) (sumOver_nonneg ht)
  have grown : ∀ (k r : Nat) (xs : List (R × R)),
      sumOver (fun x => absolute x.1) xs ≤ (1 + a) ^ k * (1 + e) ^ r
        * (sumOver (fun x => absolute x.1) xs + 0) := fun k r xs => by
    have := OrderedRing.mul_le_mul_of_nonneg_right (stored_growth ha he k r) (size xs)
    grind
  induction h with
  | @nil k r m =>
    refine ⟨0, ⟨Std.le_refl _, least m [] ht, ?_⟩, (Near.refl (near_list [])).mono (grown k r [])⟩
    rintro ⟨x, hx, -⟩
    simp at hx
  | @one k r m x t =>
    have e₁ : sumOver (fun x : R × R => x.1) [(x, t)] = x := by
      rw [sumOver_cons, sumOver_nil, Semiring.add_zero]
    have h := (Near.refl (near_list [(x, t)])).mono (grown k r [(x, t)])
    rw [e₁] at h ⊢
    exact ⟨0, sumLost_one (numeral_nonneg m) (ht (x, t) (List.mem_cons_self ..)), h⟩
  | @zero k r m xs t z _ ih =>
    obtain ⟨L, l, h⟩ := ih fun x hx => ht x (List.mem_cons_of_mem _ hx)
    have h₁ : 0 ≤ t := ht (0, t) (List.mem_cons_self ..)
    have e₂ : sumOver (fun x : R × R => absolute x.1) ((0, t) :: xs)
        = sumOver (fun x => absolute x.1) xs := by
      rw [sumOver_cons, near_absolute_zero]
      exact near_zero_add _
    have e₃ : sumOver (fun x : R × R => x.1) ((0, t) :: xs) = sumOver (·.1) xs := by
      rw [sumOver_cons]
      exact near_zero_add _
    rw [e₂, e₃]
    exact ⟨L, sumLost_zero (numeral_nonneg m) h₁ l, h⟩
  | @add k r m xs ys x x' y y' _ _ hx hy hx' hy' =>
    obtain ⟨L, l, h₁⟩ := hx' fun x hx => ht x (List.mem_append_left _ hx)
    obtain ⟨L', l', h₂⟩ := hy' fun x hx => ht x (List.mem_append_right _ hx)
    refine ⟨_, sumLost_add l l' (Std.le_refl _) (.inl rfl), ?_⟩
    have h := ((h₁.rounded hx).add (h₂.rounded hy)).off (η := 0) (z' := x' + y')
      (near_self _)
    rw [sumOver_append, sumOver_append]
    refine h.mono (near_add_le ?_ (Std.le_refl _) ?_)
    · have := stored_growth ha he (k + 1) r
      rwa [Semiring.pow_succ, Semiring.mul_assoc, CommSemiring.mul_comm (1 + a),
        ← Semiring.mul_assoc] at this
    · rw [Semiring.pow_succ, Semiring.mul_assoc, CommSemiring.mul_comm (1 + a), Semiring.mul_assoc]
  | @tiny k r m xs ys x x' y y' z _ _ sx sy hx hy hz hx' hy' =>
    obtain ⟨L, l, h₁⟩ := hx' fun x hx => ht x (List.mem_append_left _ hx)
    obtain ⟨L', l', h₂⟩ := hy' fun x hx => ht x (List.mem_append_right _ hx)
    refine ⟨_, sumLost_add l l' hν (.inr ⟨Std.le_refl _, sx, sy⟩), ?_⟩
    have h := ((h₁.rounded hx).add (h₂.rounded hy)).off hz
    rw [sumOver_append, sumOver_append]
    refine h.mono (near_add_le ?_ hν ?_)
    · have := stored_growth ha he (k + 1) r
      rwa [Semiring.pow_succ, Semiring.mul_assoc, CommSemiring.mul_comm (1 + a),
        ← Semiring.mul_assoc] at this
    · rw [Semiring.pow_succ, Semiring.mul_assoc, CommSemiring.mul_comm (1 + a), Semiring.mul_assoc]
  | @permute k r m xs ys z _ hp ih =>
    obtain ⟨L, ⟨i₁, i₂, i₃⟩, h⟩ := ih fun x hx => ht x (hp.subset hx)
    rw [← sumOver_perm _ hp, ← sumOver_perm _ hp]
    rw [sumOver_perm _ hp] at i₂ i₃
    exact ⟨L, ⟨i₁, i₂, fun ⟨x, hx, hν⟩ => i₃ ⟨x, hp.symm.subset hx, hν⟩⟩, h⟩
  | @rescale k r m xs c c' z z' _ hc₁ hc₂ hc' hs hz ih =>
    have hn : ∀ x ∈ xs, 0 ≤ x.2 := fun x hx =>
      ht (c * x.1, x.2) (List.mem_map.mpr ⟨x, hx, rfl⟩)
    obtain ⟨L, ⟨i₁, i₂, i₃⟩, h⟩ := ih hn
    obtain ⟨e₁, e₂, e₃⟩ := near_scaled (c := c) xs _ fun _ => rfl
    have hN : ν * sumOver (fun x => absolute x.1) xs ≤ sumOver (·.2) xs := by
      rw [← sumOver_mul_left]
      refine sumOver_le_sumOver fun x hx => ?_
      have := absolute_le (hs x hx)
      rwa [absolute_mul, absolute_of_nonneg hν] at this
    have hY := sumOver_nonneg hn
    have h := (near_factor (stored_growth ha he k r) (size xs) i₁ h hc₂ hc').storedNear hz
    have h₁ := near_rescale_le (c := absolute c) (X := sumOver (fun x => absolute x.1) xs) (L := L)
      ha he (stored_growth ha he k r) hN hY
    have l' : SumLost ν (numeral (m + 2)) (xs.map fun x => (c * x.1, x.2))
        (1 * L + 2 * sumOver (·.2) xs) := by
      refine sumLost_step hν (Std.le_refl _) near_two hY e₃ ?_ ?_ ⟨i₁, i₂, i₃⟩
      · rintro ⟨y, hy, hν⟩
        obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hy
        exact ⟨x, hx, hν⟩
      · rw [numeral_succ, numeral_succ]
        generalize (numeral m : R) = n
        clear i₂ i₃ h h₁ grown ih hn hN hY e₁ e₂ e₃
        grind
    rw [Semiring.one_mul] at l'
    refine ⟨L + 2 * sumOver (·.2) xs, l', ?_⟩
    · rw [e₁, e₂]
      refine h.mono (Std.le_trans h₁ ?_)
      rw [Semiring.pow_succ, Semiring.pow_succ]
      generalize (1 + a) ^ k = A
      generalize (1 + e) ^ r = E
      clear h₁ h ih hc' hc₂ hz grown i₂ i₃ hs ht hn least size hN l' e₁ e₂ e₃
      generalize sumOver (fun x : R × R => x.2) xs = Y
      generalize sumOver (fun x : R × R => absolute x.1) xs = X
      generalize absolute c = C
      clear hY i₁ hc₁ ha he hν h₀
      grind
  | @divide k r m xs l z z' _ hl hz ih =>
    have hn : ∀ x ∈ xs, 0 ≤ x.2 := fun x hx =>
      ht (x.1 / l, x.2) (List.mem_map.mpr ⟨x, hx, rfl⟩)
    obtain ⟨L, ⟨i₁, i₂, i₃⟩, h⟩ := ih hn
    obtain ⟨e₁, e₂, e₃⟩ := near_scaled (c := 1 / l) xs (fun x => (x.1 / l, x.2)) fun x => by
      show (x.1 / l, x.2) = (1 / l * x.1, x.2)
      rw [show x.1 / l = 1 / l * x.1 by
        rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]; grind]
    have hY := sumOver_nonneg hn
    have h := ((Near.refl (atMost_absolute (1 / l))).mul h).storedNearTimes ha
      hY (z' := z') (by
        rwa [show 1 / l * z = z / l by rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]; grind])
    have h₁ := near_divide_le (X := sumOver (fun x => absolute x.1) xs) (L := L)
      (OrderedField.one_le_pow (x := 1 + a) (by grind) 5)
      (stored_growth ha he k r) (absolute_le hl) hY i₁
    have l' : SumLost ν (numeral (2 * m + 6)) (xs.map fun x => (x.1 / l, x.2))
        (2 * L + 5 * sumOver (·.2) xs) := by
      refine sumLost_step hν near_one_two near_five hY e₃ ?_ (near_divided m) ⟨i₁, i₂, i₃⟩
      rintro ⟨y, hy, hν⟩
      obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hy
      exact ⟨x, hx, hν⟩
    refine ⟨2 * L + 5 * sumOver (·.2) xs, l', ?_⟩
    · rw [e₁, e₂]
      refine h.mono (Std.le_trans (le_of_eq ?_) (Std.le_trans h₁ (le_of_eq ?_)))
      · rw [numeral_five]
      rw [Semiring.pow_add]
      generalize (1 + a) ^ k = A
      generalize (1 + a) ^ 5 = A'
      generalize (1 + e) ^ r = E
      clear h₁ h ih hz grown i₂ i₃ ht hn least size l' e₁ e₂ e₃
      generalize sumOver (fun x : R × R => x.2) xs = Y
      generalize sumOver (fun x : R × R => absolute x.1) xs = X
      generalize absolute (1 / l) = C
      clear hY i₁ ha he hν h₀ hl
      grind

/-- The same of numbers that are near to exact ones. -/
theorem Near.rescaled {a e ν : R} (ha : 0 ≤ a) (he : 0 ≤ e) (hν : 0 ≤ ν) {k r m : Nat}
    {xs : List α} {M S y x t : α → R} (h : ∀ j ∈ xs, Near (M j) (S j) (y j) (x j))
    (ht : ∀ j ∈ xs, 0 ≤ t j) {z : R}
    (hz : RescaledSum a e ν k r m (xs.map fun j => (x j, t j)) z) :
    Near ((1 + a) ^ k * (1 + e) ^ r * sumOver (fun j => M j + (numeral m + 1) * t j) xs)
      (sumOver S xs) (sumOver y xs) z := by
  obtain ⟨L, l, h₁⟩ := rescaledSum_near ha he hν hz fun x hx => by
    obtain ⟨j, hj, rfl⟩ := List.mem_map.mp hx
    exact ht j hj
  have hL := l.whole
  have h₁ := h₁.error
  rw [sumOver_map] at hL
  rw [sumOver_map, sumOver_map] at h₁
  refine ((Near.sum h).off h₁).mono ?_
  rw [sumOver_add, sumOver_mul_left]
  have h₂ : sumOver (fun j => absolute (x j)) xs ≤ sumOver M xs :=
    sumOver_le_sumOver fun j hj => absolute_le (h j hj).most
  have h₃ := stored_growth ha he k r
  generalize (1 + a) ^ k * (1 + e) ^ r = T at *
  have := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := T - 1) (by grind)
  have := OrderedRing.mul_le_mul_of_nonneg_left hL (c := T) (by grind)
  generalize sumOver (fun j => absolute (x j)) xs = s at *
  generalize (numeral m + 1) * sumOver t xs = w at *
  clear h h₁ hz l hL
  grind

end Attention.Proof
