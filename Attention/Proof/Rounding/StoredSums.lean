module

public import Attention.Model.RoundedStoredGradients
public import Attention.Proof.Rounding.FlushedSums

public section

/-! # Sums that are stored on the way

Each store of a sum is one factor more of its error, and it and each addition lose a little below
the normal numbers.
Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-- What is stored of a number that is off by a factor. -/
theorem scaled_below {Φ a b x x' y u η : R} (hΦ : 1 ≤ Φ) (hu : 0 ≤ u) (hη : 0 ≤ η)
    (hx : Majorised (Φ * a) b x' x) (h : StoredBelow u η x' y) :
    Majorised (Φ * (1 + u) * (a + η)) b y x := by
  refine (hx.below h).mono ?_
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right
    (le_mul_of_one_le (nonneg_of_one_le hΦ) (Std.le_refl Φ) (one_le_one_plus hu)) hη
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hΦ hη
  clear hx h
  grind

/-- Two sums that are added, and what is lost of them. -/
private theorem stored_added {u a b l l' n s t v w x x' y y' z : R}
    (hu : 0 ≤ u) (hab : 1 ≤ a * b) (hn : 0 ≤ n) (hx : Majorised (a * b * (s + l)) s x v)
    (hy : Majorised (a * b * (t + l')) t y w) (hx' : Rounded u x x') (hy' : Rounded u y y')
    (hz : AtMost n (z - (x' + y'))) :
    Majorised (a * (1 + u) * b * (s + t + (l + l' + n))) (s + t) z (v + w) := by
  have h₁ := hx.rounded hx'
  have h₂ := hy.rounded hy'
  refine ⟨?_, hx.size.add hy.size⟩
  have h₃ := (h₁.error.add h₂.error).add hz
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_right
    (le_mul_of_one_le (Std.le_of_lt OrderedRing.zero_lt_one) hab (one_le_one_plus hu)) hn
  rw [show x' - v + (y' - w) + (z - (x' + y')) = z - (v + w) by
    clear h₃ h₄ h₁ h₂ hx hy hx' hy' hz hab; grind] at h₃
  refine h₃.mono ?_
  clear h₃ h₁ h₂ hx hy hx' hy' hz
  grind

/-- There are fewer additions than numbers. -/
private theorem fewer_additions {ν : R} (hν : 0 ≤ ν) {xs ys : List R} :
    numeral (xs.length - 1) * ν + numeral (ys.length - 1) * ν
      ≤ numeral ((xs ++ ys).length - 1) * ν := by
  rw [← Semiring.right_distrib, ← numeral_add]
  refine OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral ?_) hν
  rw [List.length_append]
  omega

private theorem one_addition {ν : R} (hν : 0 ≤ ν) {xs ys : List R} (hx : ∃ a ∈ xs, a ≠ 0)
    (hy : ∃ a ∈ ys, a ≠ 0) :
    numeral (xs.length - 1) * ν + numeral (ys.length - 1) * ν + ν
      ≤ numeral ((xs ++ ys).length - 1) * ν := by
  obtain ⟨_, hx, -⟩ := hx
  obtain ⟨_, hy, -⟩ := hy
  have h₁ := List.length_pos_of_mem hx
  have h₂ := List.length_pos_of_mem hy
  have h : (numeral (xs.length - 1 + (ys.length - 1) + 1) : R)
      ≤ numeral ((xs ++ ys).length - 1) := numeral_le_numeral (by
    rw [List.length_append]
    omega)
  have h := OrderedRing.mul_le_mul_of_nonneg_right h hν
  rw [numeral_succ, numeral_add] at h
  grind

/-- A sum that is stored on the way is off by the factors of its additions and stores, and by a
little for each store and each addition. -/
theorem storedSum_majorised {u ν σ η : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (hσ : 0 ≤ σ) (hη : 0 ≤ η)
    {k m s : Nat} {xs : List R} {z : R} (h : StoredSum u ν σ η k m s xs z) :
    Majorised ((1 + u) ^ k * (1 + σ) ^ m
        * (sumOver absolute xs + (numeral s * η + numeral (xs.length - 1) * ν)))
      (sumOver absolute xs) z (sumOver id xs) := by
  have growth := stored_growth hu hσ
  have product : ∀ {x : R}, 0 ≤ x → ∀ k : Nat, 0 ≤ numeral k * x := fun hx k =>
    OrderedRing.mul_nonneg (numeral_nonneg k) hx
  -- Two sums that are added, which lose `n`.
  have added : ∀ {k m s t : Nat} {xs ys : List R} {x x' y y' z n : R}, 0 ≤ n →
      Majorised ((1 + u) ^ k * (1 + σ) ^ m
          * (sumOver absolute xs + (numeral s * η + numeral (xs.length - 1) * ν)))
        (sumOver absolute xs) x (sumOver id xs) →
      Majorised ((1 + u) ^ k * (1 + σ) ^ m
          * (sumOver absolute ys + (numeral t * η + numeral (ys.length - 1) * ν)))
        (sumOver absolute ys) y (sumOver id ys) → Rounded u x x' → Rounded u y y' →
      AtMost n (z - (x' + y')) →
      numeral (xs.length - 1) * ν + numeral (ys.length - 1) * ν + n
        ≤ numeral ((xs ++ ys).length - 1) * ν →
      Majorised ((1 + u) ^ (k + 1) * (1 + σ) ^ m * (sumOver absolute (xs ++ ys)
          + (numeral (s + t) * η + numeral ((xs ++ ys).length - 1) * ν)))
        (sumOver absolute (xs ++ ys)) z (sumOver id (xs ++ ys)) := by
    intro k m s t xs ys x x' y y' z n hn hx hy hx' hy' hz h
    have h₁ := stored_added hu (growth k m) hn hx hy hx' hy' hz
    rw [sumOver_append, sumOver_append, Semiring.pow_succ, numeral_add]
    refine h₁.mono (OrderedRing.mul_le_mul_of_nonneg_left ?_ ?_)
    · clear hx hy hx' hy' hz h₁
      generalize (numeral s : R) = c at *
      generalize (numeral t : R) = d at *
      generalize (numeral (xs.length - 1) : R) * ν = e at *
      generalize (numeral (ys.length - 1) : R) * ν = f at *
      generalize (numeral ((xs ++ ys).length - 1) : R) * ν = g at *
      grind
    · have := growth (k + 1) m
      rw [Semiring.pow_succ] at this
      exact nonneg_of_one_le this
  induction h with
  | @nil k m =>
    rw [sumOver_nil, sumOver_nil, List.length_nil, show (numeral 0 : R) = 0 from rfl,
      Semiring.zero_mul, Semiring.zero_mul, Semiring.add_zero, Semiring.add_zero,
      Semiring.mul_zero]
    exact .exact (.zero (Std.le_refl _))
  | @one k m x =>
    have e : sumOver id [x] = x := by
      rw [sumOver_cons, sumOver_nil, id]
      grind
    rw [List.length_singleton, show (numeral 0 : R) = 0 from rfl, Semiring.zero_mul,
      Semiring.zero_mul, Semiring.add_zero, Semiring.add_zero]
    have h₁ := sum_absolute [x]
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (stored_growth hu hσ k m) h₁.nonneg
    rw [Semiring.one_mul] at h₂
    have h₃ := (Majorised.exact h₁).mono h₂
    rwa [e] at h₃ ⊢
  | @store k m s xs z z' _ hz ih =>
    have h₁ := scaled_below (growth k m) hσ hη ih hz
    rw [Semiring.pow_succ, numeral_succ]
    refine h₁.mono ?_
    generalize (numeral (xs.length - 1) : R) * ν = l
    generalize sumOver absolute xs = s'
    generalize (1 + u) ^ k = a
    generalize (1 + σ) ^ m = b
    generalize (numeral s : R) = c
    clear ih h₁
    grind
  | @add k m s t xs ys x x' y y' _ _ hx' hy' hx hy =>
    exact added (n := 0) (Std.le_refl _) hx hy hx' hy' ⟨by grind, by grind⟩ (by
      rw [Semiring.add_zero]
      exact fewer_additions hν)
  | @tiny k m s t xs ys x x' y y' z _ _ sx sy hx' hy' hz hx hy =>
    exact added hν hx hy hx' hy' hz (one_addition hν sx sy)
  | @permute k m s xs ys z _ hp ih => rwa [← sumOver_perm _ hp, ← sumOver_perm _ hp, ← hp.length_eq]

/-- The same of numbers that are off themselves. -/
theorem Majorised.storedSum {α : Type v} {u ν σ η z : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (hσ : 0 ≤ σ)
    (hη : 0 ≤ η) {k m s : Nat} {a b f g : α → R} {xs : List α}
    (hz : StoredSum u ν σ η k m s (xs.map f) z)
    (h : ∀ x ∈ xs, Majorised (a x) (b x) (f x) (g x)) :
    Majorised ((1 + u) ^ k * (1 + σ) ^ m
        * (sumOver a xs + (numeral s * η + numeral (xs.length - 1) * ν))) (sumOver b xs) z
      (sumOver g xs) := by
  have hs := Majorised.sum h
  refine ⟨?_, hs.size⟩
  have h₁ := (storedSum_majorised hu hν hσ hη hz).error
  rw [sumOver_map, sumOver_map, List.length_map] at h₁
  have h₂ : sumOver (fun x => absolute (f x)) xs ≤ sumOver a xs :=
    sumOver_le_sumOver fun x hx => absolute_le (h x hx).computed
  have h₃ := stored_growth hu hσ k m
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₂ (c := (1 + u) ^ k * (1 + σ) ^ m - 1)
    (by grind)
  generalize (1 + u) ^ k * (1 + σ) ^ m = F at *
  generalize sumOver (fun x => absolute (f x)) xs = S at *
  generalize (numeral s : R) * η + numeral (xs.length - 1) * ν = l at *
  have h₅ := (h₁.mono (b := (F - 1) * sumOver a xs + F * l) (by grind)).add hs.error
  simp only [id] at h₅
  generalize sumOver f xs = s at *
  generalize sumOver a xs = A at *
  rwa [show (F - 1) * A + F * l + (A - sumOver b xs) = F * (A + l) - sumOver b xs by grind,
    show z - s + (s - sumOver g xs) = z - sumOver g xs by grind] at h₅

end Attention.Proof
