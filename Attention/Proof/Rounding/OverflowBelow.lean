module

public import Attention.Model.RoundedOverflowGradients
public import Attention.Proof.Rounding.GradientProducts
public import Attention.Proof.Rounding.OverflowTinySums

public section

/-! # Numbers below the normal ones that stay in the range

What is rounded or stored, off by a little where it is below the normal numbers of a format, and
sums of such products. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {u η : R}

/-! ## Sizes -/

/-- No size is smaller after it. -/
theorem le_belowSize (hu : 0 ≤ u) (hη : 0 ≤ η) (k : Nat) {b : R} (hb : 0 ≤ b) :
    b ≤ belowSize u η k b := by
  have h₁ := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  have h₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) hη
  have h₃ := le_mul_of_one_le hb (b := b + numeral k * η) (by grind) h₁
  rw [belowSize, power_eq]
  generalize (1 + u) ^ k = g at *
  generalize (numeral k : R) * η = m at *
  clear h₁ h₂
  grind

/-- A larger size stays larger, and more often is larger, too. -/
theorem belowSize_mono (hu : 0 ≤ u) (hη : 0 ≤ η) {k m : Nat} (hk : k ≤ m) {b c : R} (hb : 0 ≤ b)
    (h : b ≤ c) : belowSize u η k b ≤ belowSize u η m c := by
  have h₁ := OrderedField.pow_le_pow (x := 1 + u) (by grind) hk
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral (R := R) hk) hη
  have h₃ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) hη
  have h₄ := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  rw [belowSize, belowSize, power_eq, power_eq]
  exact OrderedField.mul_le_mul (nonneg_of_one_le h₄) h₁ (by grind) (by grind)

/-- Not negative. -/
theorem belowSize_nonneg (hu : 0 ≤ u) (hη : 0 ≤ η) (k : Nat) {b : R} (hb : 0 ≤ b) :
    0 ≤ belowSize u η k b :=
  Std.le_trans hb (le_belowSize hu hη k hb)

/-- Once more. -/
private theorem belowSize_succ (hu : 0 ≤ u) (hη : 0 ≤ η) (k : Nat) {b : R} :
    (1 + u) * belowSize u η k b + η ≤ belowSize u η (k + 1) b := by
  have h₁ := OrderedField.one_le_pow (x := 1 + u) (by grind) k
  have h₂ := OrderedRing.mul_nonneg hu hη
  have h₃ := OrderedField.mul_le_mul (a := 1) (b := (1 + u) ^ k) (c := η) (d := (1 + u) * η)
    (Std.le_of_lt OrderedRing.zero_lt_one) h₁ hη (by grind)
  rw [belowSize, belowSize, power_eq, power_eq, Semiring.pow_succ, numeral_succ]
  generalize (1 + u) ^ k = g at *
  generalize (numeral k : R) = m at *
  clear h₁ h₂
  grind

/-- The size of what is rounded once. -/
theorem storedBelow_atMost {b x y : R} (hx : AtMost b x)
    (h : StoredBelow u η x y) : AtMost ((1 + u) * b + η) y := by
  obtain ⟨z, hz, hy, -⟩ := h
  have h₁ := hy.add (rounded_atMost hz hx)
  rw [show y - z + z = y by grind] at h₁
  exact h₁.mono (by grind)

/-- What is within the range is stored as it is without a largest number. -/
theorem limitedBelow (hu : 0 ≤ u) (hη : 0 ≤ η) {largest b x : R} {y : Option R}
    (h : Limited largest (StoredBelow u η) x y) (hx : AtMost b x) (hb : b ≤ largest) :
    ∃ z, y = some z ∧ StoredBelow u η x z ∧ AtMost (belowSize u η 1 b) z := by
  obtain ⟨z, e, hz⟩ := h (hx.mono hb)
  refine ⟨z, e, hz, (storedBelow_atMost hx hz).mono ?_⟩
  have h₁ := belowSize_succ hu hη 0 (b := b)
  have h₂ : belowSize u η 0 b = b := by
    rw [belowSize, power_eq, Semiring.pow_zero, show (numeral 0 : R) = 0 from rfl]
    grind
  rwa [h₂] at h₁

/-- So it is up to `n` times. -/
theorem limitedBelowTimes (hu : 0 ≤ u) (hη : 0 ≤ η) {largest b x : R} {k n : Nat} (hk : k ≤ n)
    {y : Option R} (h : LimitedBelowTimes largest u η k x y) (hx : AtMost b x)
    (hb : belowSize u η n b ≤ largest) :
    ∃ z, y = some z ∧ BelowTimes u η k x z ∧ AtMost (belowSize u η n b) z := by
  have key : ∀ {k : Nat} {y : Option R}, k ≤ n → LimitedBelowTimes largest u η k x y →
      ∃ z, y = some z ∧ BelowTimes u η k x z ∧ AtMost (belowSize u η k b) z := by
    intro k
    induction k with
    | zero =>
      intro y _ h
      exact ⟨x, h, rfl, hx.mono (le_belowSize hu hη 0 hx.nonneg)⟩
    | succ k ih =>
      intro y hk h
      obtain ⟨w, hw, hy⟩ := h
      obtain ⟨w', rfl, h₁, h₂⟩ := ih (by omega) hw
      obtain ⟨z, e, h₃, -⟩ := limitedBelow hu hη (hy w' rfl) h₂ (Std.le_trans
        (belowSize_mono hu hη (by omega) hx.nonneg (Std.le_refl _)) hb)
      exact ⟨z, e, ⟨w', h₁, h₃⟩,
        (storedBelow_atMost h₂ h₃).mono (belowSize_succ hu hη k)⟩
  obtain ⟨z, e, h₁, h₂⟩ := key hk h
  exact ⟨z, e, h₁, h₂.mono (belowSize_mono hu hη hk hx.nonneg (Std.le_refl _))⟩

/-! ## Sums of products -/

/-- A sum is no larger than the sizes of its numbers, with what each addition may lose. -/
theorem flushedSum_atMost {α : Type v} (hu : 0 ≤ u) (hη : 0 ≤ η) {f b : α → R} {k : Nat}
    {xs : List α} {z : R} (h : FlushedSum u η f k xs z) (hf : ∀ x ∈ xs, AtMost (b x) (f x)) :
    AtMost ((1 + u) ^ k * sumOver (fun x => b x + η) xs) z :=
  (Majorised.flushedSum_each hu hη h fun x hx => .exact (hf x hx)).computed

/-- **flushed-sum-finite**: a sum, in whatever order, whose sizes stay within the range together as
they grow, and with what is lost, is a number, and one without a largest number. -/
theorem limitedFlushedSum {α : Type v} {largest : R} (hu : 0 ≤ u) (hη : 0 ≤ η) {f b : α → R}
    {k : Nat} {xs : List α} {z : Option R} (h : LimitedFlushedSum largest u η f k xs z)
    (hf : ∀ x ∈ xs, AtMost (b x) (f x))
    (fits : (1 + u) ^ k * sumOver (fun x => b x + η) xs ≤ largest) :
    ∃ y, z = some y ∧ FlushedSum u η f k xs y :=
  limitedSumOf hu hη h (fun _ _ h => h) (fun x hx => by
    have := (hf x hx).nonneg
    grind) (fun x hx _ => (hf x hx).mono (by grind)) fits

/-- A sum of numbers that are rounded first, in whatever order, where their sizes fit together. -/
theorem limitedProducts {n k : Nat} (hu : 0 ≤ u) (hη : 0 ≤ η) {largest B : R} {f b : Fin n → R}
    {products : Fin n → Option R} {sum : Option R}
    (hproducts : ∀ j, Limited largest (StoredBelow u η) (f j) (products j))
    (hsum : ∀ terms : Fin n → R, (∀ j, products j = some (terms j)) →
      LimitedFlushedSum largest u η terms k (List.finRange n) sum)
    (hf : ∀ j, AtMost (b j) (f j))
    (hB : (1 + u) ^ (k + 1) * (sumOver b (List.finRange n) + (numeral n * η + numeral n * η)) ≤ B)
    (fits : B ≤ largest) :
    ∃ (terms : Fin n → R) (s : R), (∀ j, StoredBelow u η (f j) (terms j)) ∧ sum = some s ∧
      FlushedSum u η terms k (List.finRange n) s ∧ AtMost B s := by
  have pos : ∀ j, 0 ≤ b j := fun j => (hf j).nonneg
  have h₀ := OrderedField.one_le_pow (x := 1 + u) (by grind) (k + 1)
  have h₁ := sumOver_nonneg (f := b) (xs := List.finRange n) fun j _ => pos j
  have h₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) n) hη
  have h₃ := le_mul_of_one_le (a := sumOver b (List.finRange n))
    (b := sumOver b (List.finRange n) + (numeral n * η + numeral n * η)) h₁ (by grind) h₀
  have each : ∀ j, b j ≤ largest := fun j => by
    have := le_sumOver (f := b) (xs := List.finRange n) (fun j _ => pos j) (List.mem_finRange j)
    grind
  have number : ∀ j, ∃ z, products j = some z ∧ StoredBelow u η (f j) z := fun j => by
    obtain ⟨z, e, h, -⟩ := limitedBelow hu hη (hproducts j) (hf j) (each j)
    exact ⟨z, e, h⟩
  let terms := fun j => (products j).getD 0
  have parts : ∀ j, products j = some (terms j) ∧ StoredBelow u η (f j) (terms j) := fun j => by
    obtain ⟨z, e, h⟩ := number j
    simp only [terms, e, Option.getD_some, true_and]
    exact h
  have size : ∀ j ∈ List.finRange n, AtMost ((1 + u) * (b j + η)) (terms j) := fun j _ =>
    (storedBelow_atMost (hf j) (parts j).2).mono (by
      have := OrderedRing.mul_nonneg hu hη
      grind)
  have total : (1 + u) ^ k * sumOver (fun j => (1 + u) * (b j + η) + η) (List.finRange n) ≤ B := by
    refine Std.le_trans ?_ hB
    have i₁ := OrderedRing.mul_nonneg hu h₂
    rw [sumOver_add, sumOver_mul_left, sumOver_add, sumOver_numeral, Semiring.pow_succ,
      Semiring.mul_assoc]
    refine OrderedRing.mul_le_mul_of_nonneg_left ?_
      (nonneg_of_one_le (OrderedField.one_le_pow (one_le_one_plus hu) k))
    generalize sumOver b (List.finRange n) = S
    generalize (numeral n : R) * η = N at *
    clear size parts number each h₃ hB fits hproducts hsum hf pos h₀ h₁ h₂
    grind
  obtain ⟨s, e, h₄⟩ := limitedFlushedSum hu hη (hsum terms fun j => (parts j).1) size
    (Std.le_trans total fits)
  exact ⟨terms, s, fun j => (parts j).2, e, h₄, (flushedSum_atMost hu hη h₄ size).mono total⟩

/-- The same where there are at most `N` numbers and roundings. -/
theorem limitedProducts_sumSize {p : GradientPrecision R} (hp : PreciseGradient p) {n k N : Nat}
    (hk : k + 1 ≤ N) (hn : n ≤ N) {largest total : R} {f b : Fin n → R}
    {products : Fin n → Option R} {sum : Option R}
    (hproducts : ∀ j, Limited largest (StoredBelow p.accumulation p.tiny) (f j) (products j))
    (hsum : ∀ terms : Fin n → R, (∀ j, products j = some (terms j)) →
      LimitedFlushedSum largest p.accumulation p.tiny terms k (List.finRange n) sum)
    (hf : ∀ j, AtMost (b j) (f j)) (hB : sumOver b (List.finRange n) ≤ total)
    (fits : sumSize p N total ≤ largest) :
    ∃ (terms : Fin n → R) (s : R), (∀ j, StoredBelow p.accumulation p.tiny (f j) (terms j)) ∧
      sum = some s ∧ FlushedSum p.accumulation p.tiny terms k (List.finRange n) s ∧
      AtMost (sumSize p N total) s := by
  refine limitedProducts hp.accumulation hp.tiny hproducts hsum hf ?_ fits
  have h₁ := sumOver_nonneg (f := b) (xs := List.finRange n) fun j _ => (hf j).nonneg
  have h₂ := twice_lost_le hn hp.tiny
  have h₃ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) n) hp.tiny
  have one := one_le_one_plus hp.accumulation
  have h₄ := OrderedField.one_le_pow one (k + 1)
  rw [sumSize, power_eq]
  exact OrderedField.mul_le_mul (nonneg_of_one_le h₄)
    (OrderedField.pow_le_pow one hk) (by grind) (by grind)

/-- No sum is smaller than its total. -/
theorem le_sumSize {p : GradientPrecision R} (hp : PreciseGradient p) (k : Nat) {b : R}
    (hb : 0 ≤ b) : b ≤ sumSize p k b := by
  have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (2 * k)) hp.tiny
  rw [sumSize, power_eq, CommSemiring.mul_comm]
  exact le_mul_of_one_le hb (by grind)
    (OrderedField.one_le_pow (one_le_one_plus hp.accumulation) k)

/-! ## dP and weights -/

variable {d : Nat} {p : GradientPrecision R} {largest : LargestGradient R} {c : GradientCounts}

/-- **outer-finite**: a dP of inputs that fit is a number, and one that a function without a largest
number may compute. -/
theorem limitedProduct (hp : PreciseGradient p) {factor : R} (hf : 0 ≤ factor) {dO v : Vec R d}
    (fits : outerFits p largest c factor dO v) {x : Option R}
    (h : LimitedProduct p largest c factor dO v x) :
    ∃ y, x = some y ∧ ComputedProduct p c factor dO v y ∧
      AtMost (outerSize p c factor dO v) y := by
  obtain ⟨k, products, sum, y, hk, hd, hproducts, hsum, hy, hx⟩ := h
  simp only [outerFits, Bool.and_eq_true, decide_eq_true_eq] at fits
  obtain ⟨fits₁, fits₂⟩ := fits
  obtain ⟨terms, s, h₁, rfl, h₂, h₃⟩ := limitedProducts_sumSize hp hk hd hproducts hsum
    (fun i => (atMost_absolute dO[i]).mul (atMost_absolute v[i]))
    (by
      rw [magnitude_eq_sum]
      exact Std.le_refl _) fits₁
  obtain ⟨fits₃, fits₄⟩ := le_of_le_smaller fits₂
  have h₄ := (atMost_self hf).mul h₃
  have hF := nonneg_of_one_le (one_le_one_plus hp.factors)
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right (absolute_le h₄) hF
  have hν := hp.tiny
  change factor * sumSize p c.products (magnitude dO v) * (1 + p.factors) + p.tiny ≤ _
    at fits₃ fits₄
  obtain ⟨t, y', rfl, ht, hy'⟩ := hy s rfl (Std.le_trans h₅ (by grind))
  have h₆ : AtMost (factor * sumSize p c.products (magnitude dO v) * (1 + p.factors) + p.tiny)
      y' := by
    have h₇ : AtMost (1 + p.factors) t := ⟨by have := ht.1; grind, by have := ht.2; grind⟩
    have h₈ := (h₄.mul h₇).add hy'
    rwa [show factor * s * t + (y' - factor * s * t) = y' by grind] at h₈
  obtain ⟨z, e, h₉, i₁⟩ := limitedBelow hp.scores hp.scoresTiny (hx y' rfl) h₆ fits₄
  exact ⟨z, e, ⟨k, terms, s, t, y', hk, hd, h₁, h₂, ht, hy', h₉⟩, i₁⟩

/-- A computed weight is no larger. -/
private theorem weight_atMost {weight error e lost a : R} (hw : 0 ≤ weight) (he : error ≤ e)
    (hl : 0 ≤ lost) (ha : AtMost (error * weight + tinyOf weight lost) (a - weight)) :
    AtMost ((1 + e) * weight + lost) a := by
  have h₁ : tinyOf weight lost ≤ lost := by
    rw [tinyOf]
    split
    · exact hl
    · exact Std.le_refl _
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right he hw
  have h₃ := ha.add (atMost_self hw)
  rw [show a - weight + weight = a by grind] at h₃
  exact h₃.mono (by grind)

/-- Nor is one that is stored. -/
theorem storedWeight_atMost (hu : 0 ≤ u) (hη : 0 ≤ η) {weight error e lost w : R}
    (hw : 0 ≤ weight) (he : error ≤ e) (hl : 0 ≤ lost)
    (h : StoredWeight u η weight error lost w) :
    AtMost (belowSize u η 1 ((1 + e) * weight + lost)) w := by
  obtain ⟨a, ha, hy⟩ := h
  have h₁ := weight_atMost hw he hl ha
  obtain ⟨z, e', -, h₂⟩ := limitedBelow hu hη (largest := (1 + e) * weight + lost) (y := some w)
    (fun _ => ⟨w, rfl, hy⟩) h₁ (Std.le_refl _)
  obtain rfl := Option.some.inj e'
  exact h₂

/-- A weight that fits is a number, and one that a function without a largest number may compute. It
is larger for a larger exact weight, which is 1 at most. -/
theorem limitedWeight (hu : 0 ≤ u) (hη : 0 ≤ η) {accumulator most weight error e lost : R}
    (hw : 0 ≤ weight) (hw₁ : weight ≤ 1) (he₀ : 0 ≤ error) (he : error ≤ e) (hl : 0 ≤ lost)
    (fits : belowSize u η 1 ((1 + e) * 1 + lost) ≤ smaller accumulator most) {w : Option R}
    (h : LimitedWeight accumulator most u η weight error lost w) :
    ∃ y, w = some y ∧ StoredWeight u η weight error lost y ∧
      AtMost (belowSize u η 1 ((1 + e) * weight + lost)) y := by
  obtain ⟨x, hx, hy⟩ := h
  obtain ⟨fits₁, fits₂⟩ := le_of_le_smaller fits
  have h₁ : tinyOf weight lost ≤ lost := by
    rw [tinyOf]
    split
    · exact hl
    · exact Std.le_refl _
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right he hw
  have one := OrderedRing.zero_lt_one (R := R)
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_left hw₁ (c := 1 + e) (by grind)
  have h₅ := OrderedRing.mul_nonneg (show 0 ≤ e by grind) hw
  have h₆ := le_belowSize hu hη 1 (b := (1 + e) * 1 + lost) (by grind)
  obtain ⟨a, rfl, ha⟩ := hx (by grind)
  obtain ⟨z, e', h₉, i₁⟩ := limitedBelow hu hη (hy a rfl) (weight_atMost hw he hl ha) (by grind)
  exact ⟨z, e', ⟨a, ha, h₉⟩, i₁⟩

end Attention.Proof
