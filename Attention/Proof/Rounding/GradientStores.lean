module

public import Attention.Proof.Rounding.GradientMatrices
public import Attention.Proof.Rounding.StoredGradients
public import Attention.Proof.Rounding.Temperature
public import Attention.Spec.GradientStoreTolerance

public section

/-! # Gradients that are stored at the end, within their tolerance

The last rounding is one of a number that is off already; of products that are all 0 nothing but 0
is made. Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {n : Nat}

/-! ## The last store -/

/-- **rounded-gradient-store**: a gradient that is computed up to an error and then stored is off by
no more than the bound of what is stored. -/
theorem rounded_gradientStore {u η exact error z z' : R} (hz : AtMost error (z - exact))
    (h : StoredBelow u η z z') :
    AtMost (storedGradientError u η exact error) (z' - exact) := by
  obtain ⟨w, ⟨θ, hθ, hw'⟩, hw, zero⟩ := h
  have hs := atMost_absolute exact
  rw [storedGradientError]
  split
  case isTrue h₀ =>
    have h₁ := hz.nonneg
    have h₂ := absolute_nonneg exact
    have hexact : exact = 0 := by
      obtain ⟨i₁, i₂⟩ := hs
      grind
    have hz₀ : z = 0 := by
      obtain ⟨i₁, i₂⟩ := hz
      grind
    rw [zero hz₀, hexact]
    exact ⟨by grind, by grind⟩
  case isFalse =>
    have h := (hz.add (hθ.mul (hs.add hz))).add hw
    rw [hw'] at h
    rwa [show z - exact + θ * (exact + (z - exact)) + (z' - z * (1 + θ)) = z' - exact by
      clear h hz hw; grind] at h

/-! ## Products of which all are 0 -/

private theorem rounded_nothing {u x y : R} (hx : x = 0) (h : Rounded u x y) : y = 0 := by
  obtain ⟨θ, -, rfl⟩ := h
  rw [hx, Semiring.zero_mul]

private theorem belowTimes_nothing {u η : R} : ∀ {k : Nat} {x y : R}, x = 0 →
    BelowTimes u η k x y → y = 0
  | 0, _, _, hx, h => h.trans hx
  | _ + 1, _, _, hx, ⟨_, h, _, _, _, h'⟩ => h' (belowTimes_nothing hx h)

private theorem storedSum_nothing {u ν σ η : R} {k m s : Nat} {xs : List R} {z : R}
    (h : StoredSum u ν σ η k m s xs z) : (∀ x ∈ xs, x = 0) → z = 0 := by
  induction h with
  | nil => exact fun _ => rfl
  | one => exact fun h₀ => h₀ _ (List.mem_singleton.mpr rfl)
  | store _ hz ih =>
    obtain ⟨_, _, _, hz⟩ := hz
    exact fun h₀ => hz (ih h₀)
  | add _ _ hx hy ihx ihy =>
    intro h₀
    rw [rounded_nothing (ihx fun x h => h₀ x (List.mem_append_left _ h)) hx,
      rounded_nothing (ihy fun x h => h₀ x (List.mem_append_right _ h)) hy, Semiring.add_zero]
  | tiny _ _ some =>
    intro h₀
    obtain ⟨x, hx, hn⟩ := some
    exact absurd (h₀ x (List.mem_append_left _ hx)) hn
  | permute _ hp ih => exact fun h₀ => ih fun x hx => h₀ x (hp.mem_iff.mp hx)

/-- Of a product of two numbers that is 0 one is 0. -/
private theorem product_nothing {x y : R} (h : x * y = 0) : x = 0 ∨ y = 0 := by
  refine Classical.byContradiction fun hn => ?_
  have hx : x ≠ 0 := fun e => hn (.inl e)
  have hy : y ≠ 0 := fun e => hn (.inr e)
  clear hn
  grind

/-- A sum over tiles of products of which all are 0. -/
private theorem tiled_nothing {p : GradientPrecision R} {roundings stores tiles : Nat}
    {scale reach z : R} {x y : Fin n → R} (h₀ : scale = 0 ∨ ∀ j, x j = 0 ∨ y j = 0)
    (h : ComputedTiledGradient p roundings stores tiles scale reach x y z) : z = 0 := by
  obtain ⟨parts, k, l, s, a, b, c, f, g, h⟩ := h
  obtain ⟨σ, σ', σ'', y', y'', products, sum, sum', added, whole, h⟩ := h
  obtain ⟨-, -, -, -, -, -, -, hσ, -, -, h⟩ := h
  obtain ⟨hy, hy', hproducts, hsum, hsum', hadded, hwhole, hz⟩ := h
  have last : σ'' = 0 ∨ whole = 0 → z = 0 := fun h => belowTimes_nothing (by
    cases h with
    | inl h => rw [h, Semiring.zero_mul]
    | inr h => rw [h, Semiring.mul_zero]) hz
  have tile : (∀ part ∈ parts, added part = 0) → z = 0 := fun h => last (.inr
    (storedSum_nothing hwhole fun x hx => by
      obtain ⟨part, hpart, rfl⟩ := List.mem_map.mp hx
      exact h part hpart))
  have product : (∀ j, x j = 0 ∨ y'' j = 0) → z = 0 := fun h => tile fun part hpart => by
    have h₁ : sum part = 0 := flushedSum_nothing (hsum part hpart) fun j _ => by
      obtain ⟨_, _, _, h₂⟩ := hproducts j
      refine h₂ ?_
      cases h j with
      | inl h => rw [h, Semiring.zero_mul]
      | inr h => rw [h, Semiring.mul_zero]
    exact belowTimes_nothing (by
      rw [belowTimes_nothing h₁ (hsum' part hpart), Semiring.mul_zero]) (hadded part hpart)
  cases h₀ with
  | inr h₀ =>
    refine product fun j => ?_
    cases h₀ j with
    | inl h => exact .inl h
    | inr h =>
      exact .inr (belowTimes_nothing (belowTimes_nothing (by rw [h, Semiring.mul_zero]) (hy j))
        (hy' j))
  | inl h₀ =>
    rw [h₀] at hσ
    cases product_nothing hσ with
    | inr h => exact last (.inl h)
    | inl h =>
      cases product_nothing h with
      | inl h =>
        exact product fun j => .inr (belowTimes_nothing (belowTimes_nothing (by
          rw [h, Semiring.zero_mul]) (hy j)) (hy' j))
      | inr h =>
        exact tile fun part hpart => belowTimes_nothing (by rw [h, Semiring.zero_mul])
          (hadded part hpart)

/-- What is computed for a number of which neither the size nor the error is anything. -/
private theorem number_nothing {t : GradientTerm R} {x e : R} (hx : AtMost t.error (x - e))
    (he : AtMost t.size e) (h : t.size + t.error ≤ 0) : x = 0 ∧ e = 0 := by
  have h₁ := hx.nonneg
  have h₂ := he.nonneg
  obtain ⟨i₁, i₂⟩ := hx
  obtain ⟨i₃, i₄⟩ := he
  exact ⟨by grind, by grind⟩

private theorem absolute_nothing {x : R} (h : absolute x = 0) : x = 0 := by
  obtain ⟨h₁, h₂⟩ := atMost_absolute x
  grind

/-- A sum of numbers that are not negative is 0 only if each is. -/
private theorem sum_nothing {α : Type v} {f : α → R} : ∀ {xs : List α}, (∀ x ∈ xs, 0 ≤ f x) →
    sumOver f xs ≤ 0 → ∀ x ∈ xs, f x = 0
  | [], _, _, _, h => nomatch h
  | y :: ys, h, hs, x, hx => by
    rw [sumOver_cons] at hs
    have h₁ := h y (List.mem_cons_self ..)
    have h₂ := sumOver_nonneg (f := f) (xs := ys) fun x hx => h x (List.mem_cons_of_mem _ hx)
    cases hx with
    | head => grind
    | tail _ hx =>
      exact sum_nothing (fun x hx => h x (List.mem_cons_of_mem _ hx)) (by grind) x hx

/-- Where all products are 0 by the sizes and errors, scale and numbers say so. -/
private theorem terms_nothing {α : Type v} {xs : List α} {scale : R} {x y e : α → R}
    {t : α → GradientTerm R}
    (ht : ∀ j ∈ xs, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : absolute scale * sumOver (fun t => (t.size + t.error) * absolute t.other) (xs.map t) ≤ 0) :
    scale = 0 ∨ ∀ j ∈ xs, (x j = 0 ∧ e j = 0) ∨ y j = 0 := by
  rw [sumOver_map] at h
  have n₁ : ∀ j ∈ xs, 0 ≤ ((t j).size + (t j).error) * absolute (t j).other := fun j hj => by
    have h₁ := (ht j hj).1.nonneg
    have h₂ := (ht j hj).2.1.nonneg
    exact OrderedRing.mul_nonneg (by grind) (absolute_nonneg _)
  have n₂ := OrderedRing.mul_nonneg (absolute_nonneg scale) (sumOver_nonneg n₁)
  cases product_nothing (Std.le_antisymm h n₂) with
  | inl h => exact .inl (absolute_nothing h)
  | inr h =>
    refine .inr fun j hj => ?_
    cases product_nothing (sum_nothing n₁ (h ▸ Std.le_refl _) j hj) with
    | inl h => exact .inl (number_nothing (ht j hj).1 (ht j hj).2.1 (h ▸ Std.le_refl _))
    | inr h => exact .inr ((ht j hj).2.2 ▸ absolute_nothing h)

private theorem exact_nothing {α : Type v} {xs : List α} {scale : R} {x y e : α → R}
    (h : scale = 0 ∨ ∀ j ∈ xs, (x j = 0 ∧ e j = 0) ∨ y j = 0) :
    scale * sumOver (fun j => e j * y j) xs = 0 := by
  cases h with
  | inl h => rw [h, Semiring.zero_mul]
  | inr h =>
    rw [sumOver_eq_zero fun j hj => ?_, Semiring.mul_zero]
    cases h j hj with
    | inl h => rw [h.2, Semiring.zero_mul]
    | inr h => rw [h, Semiring.mul_zero]

/-- A sum over tiles, of which nothing is off where all products are 0. -/
theorem rounded_presentGradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores tiles : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {scale reach z : R} (hg : 1 ≤ reach) {x y e : Fin n → R}
    {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles scale reach x y z) :
    AtMost (presentError scale
        (tiledGradientError p roundings stores tiles scale reach ((List.finRange n).map t))
        ((List.finRange n).map t))
      (z - scale * sumOver (fun j => e j * y j) (List.finRange n)) := by
  rw [presentError]
  split
  case isTrue h₀ =>
    have h₁ := terms_nothing (fun j _ => ht j) h₀
    rw [exact_nothing h₁, tiled_nothing (h₁.imp id fun h j => (h j (List.mem_finRange j)).imp
      And.left id) h]
    exact ⟨by grind, by grind⟩
  case isFalse => exact rounded_tiledGradient hp hc hu hg ht h

/-- A sum of numbers that are stored first, of which nothing is off where all products are 0. -/
theorem rounded_presentTotal {a u ν η : R} (ha : 0 ≤ a) (hu : 0 ≤ u) (hν : 0 ≤ ν) (hη : 0 ≤ η)
    {roundings : Nat} (hc : numeral roundings * a < 1) {z : R} {x y e : Fin n → R}
    {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTotal a u ν η roundings x y z) :
    AtMost (presentError 1 (totalError a u ν η roundings ((List.finRange n).map t))
        ((List.finRange n).map t))
      (z - sumOver (fun j => e j * y j) (List.finRange n)) := by
  rw [presentError]
  split
  case isTrue h₀ =>
    have h₁ := terms_nothing (fun j _ => ht j) h₀
    have h₂ := exact_nothing h₁
    rw [Semiring.one_mul] at h₂
    obtain ⟨k, x', products, -, -, hx', hproducts, hz⟩ := h
    have h₃ : z = 0 := flushedSum_nothing hz fun j _ => by
      obtain ⟨_, _, _, h₃⟩ := hproducts j
      obtain ⟨_, _, _, h₄⟩ := hx' j
      refine h₃ ?_
      have := OrderedRing.zero_lt_one (R := R)
      cases h₁.resolve_left (by grind) j (List.mem_finRange j) with
      | inl h => rw [h₄ h.1, Semiring.zero_mul]
      | inr h => rw [h, Semiring.mul_zero]
    rw [h₂, h₃]
    exact ⟨by grind, by grind⟩
  case isFalse => exact rounded_total ha hu hν hη hc ht h

/-- The same of a sum over a list of numbers as they are. -/
theorem rounded_presentSumOver {α : Type v} {a ν : R} (ha : 0 ≤ a) (hν : 0 ≤ ν) {roundings : Nat}
    (hc : numeral roundings * a < 1) {xs : List α} {z : R} {x y e : α → R}
    {t : α → GradientTerm R}
    (ht : ∀ i ∈ xs, AtMost (t i).error (x i - e i) ∧ AtMost (t i).size (e i) ∧ (t i).other = y i)
    (h : ComputedSumOver a ν roundings xs x y z) :
    AtMost (presentError 1 (totalError a 0 ν 0 roundings (xs.map t)) (xs.map t))
      (z - sumOver (fun i => e i * y i) xs) := by
  rw [presentError]
  split
  case isTrue h₀ =>
    have h₁ := terms_nothing ht h₀
    have h₂ := exact_nothing h₁
    rw [Semiring.one_mul] at h₂
    obtain ⟨k, products, -, -, hproducts, hz⟩ := h
    have h₃ : z = 0 := flushedSum_nothing hz fun j hj => by
      obtain ⟨_, _, _, h₃⟩ := hproducts j hj
      refine h₃ ?_
      have := OrderedRing.zero_lt_one (R := R)
      cases h₁.resolve_left (by grind) j hj with
      | inl h => rw [h.1, Semiring.zero_mul]
      | inr h => rw [h, Semiring.mul_zero]
    rw [h₂, h₃]
    exact ⟨by grind, by grind⟩
  case isFalse => exact rounded_sumOver ha hν hc ht h

/-- A sum of numbers that are off by an error each, over whatever a number
is broadcast over, each product with another number and each addition rounded in any order, is
within its bound once it is stored, also where numbers underflow; where all products are 0 it is 0.
-/
theorem rounded_totalStore {α : Type v} {a ν u η : R} (ha : 0 ≤ a) (hν : 0 ≤ ν) {roundings : Nat}
    (hc : numeral roundings * a < 1) {xs : List α} {z z' : R} {x y e : α → R}
    {t : α → GradientTerm R}
    (ht : ∀ i ∈ xs, AtMost (t i).error (x i - e i) ∧ AtMost (t i).size (e i) ∧ (t i).other = y i)
    (h : ComputedSumOver a ν roundings xs x y z) (hz : StoredBelow u η z z') :
    let exact := sumOver (fun i => e i * y i) xs
    AtMost (storedGradientError u η exact
      (presentError 1 (totalError a 0 ν 0 roundings (xs.map t)) (xs.map t))) (z' - exact) :=
  rounded_gradientStore (rounded_presentSumOver ha hν hc ht h) hz

/-! ## Whole matrices -/

/-- The size of a sum of products. -/
theorem sum_size {scale : R} {x y : Fin n → R} {term : Fin n → GradientTerm R}
    (h : ∀ j, AtMost (term j).size (x j) ∧ (term j).other = y j) :
    AtMost (absolute scale * sumOver (fun t => t.size * absolute t.other)
      ((List.finRange n).map term)) (scale * sumOver (fun j => x j * y j) (List.finRange n)) := by
  rw [sumOver_map]
  exact (atMost_absolute scale).mul (sumOver_atMost fun j _ =>
    (h j).1.mul ((h j).2 ▸ atMost_absolute (y j)))

/-- A sum over tiles, its error, and the size of the exact one. -/
private theorem present_gradient {p : GradientPrecision R} (hp : PreciseGradient p)
    {roundings stores tiles : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {scale reach z g : R} (hg : 1 ≤ reach) {x y e : Fin n → R}
    {t : Fin n → GradientTerm R}
    (ht : ∀ j, AtMost (t j).error (x j - e j) ∧ AtMost (t j).size (e j) ∧ (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles scale reach x y z)
    (exact : g = scale * sumOver (fun j => e j * y j) (List.finRange n)) :
    AtMost (presentGradientTerm p roundings stores tiles scale reach
        ((List.finRange n).map t)).error (z - g) ∧
      AtMost (presentGradientTerm p roundings stores tiles scale reach
        ((List.finRange n).map t)).size g := by
  rw [exact]
  exact ⟨rounded_presentGradient hp hc hu hg ht h, sum_size fun j => (ht j).2⟩

variable [Exponential R R] {q_len kv_len d d_v : Nat}

/-- The gradients of a head before they are stored at the end, with their sizes. -/
theorem rounded_presentGradients (scale : R) (modify : ScoreMod R q_len kv_len)
    (slope : ScoreSlope R R q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v)
    (dLse : Vec R q_len) {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hZ : ∀ i j, 0 ≤ Z i j)
    {error slopeError : Fin q_len → Fin kv_len → R} (he : ∀ i j, 0 ≤ error i j)
    {S X : Fin q_len → Fin kv_len → R} {reach : R} (hr : 1 ≤ reach)
    {roundings stores tiles : Nat} (hc : numeral roundings * p.accumulation < 1) {z : R} :
    let row := backwardRow scale modify slope Q K V Z dO dLse error slopeError
    let g := vjpDropout scale modify slope Q K V Z id dO dLse
    let dS := fun i j => scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j)
    let term := presentGradientTerm p roundings stores tiles
    ((∀ i, (row i).Computed p c (S i) (X i)) →
      (∀ (i : Fin q_len) (t : Fin d),
        ComputedTiledGradient p roundings stores tiles scale reach (X i) (fun j => K[j][t]) z →
        let whole := term scale reach ((List.finRange kv_len).map fun j => dS i j K[j][t])
        AtMost whole.error (z - g.dQ[i][t]) ∧ AtMost whole.size g.dQ[i][t])
      ∧ ∀ (j : Fin kv_len) (t : Fin d),
        ComputedTiledGradient p roundings stores tiles scale reach (fun i => X i j)
          (fun i => Q[i][t]) z →
        let whole := term scale reach ((List.finRange q_len).map fun i => dS i j Q[i][t])
        AtMost whole.error (z - g.dK[j][t]) ∧ AtMost whole.size g.dK[j][t])
    ∧ ∀ (j : Fin kv_len) (t : Fin d_v) (w : Fin q_len → R),
      (∀ i, (row i).ComputedWeight p j (w i)) →
      ComputedTiledGradient p roundings stores tiles 1 1 w (fun i => dO[i][t]) z →
      let whole := term 1 1 ((List.finRange q_len).map fun i => weightTerm p ((row i).key j)
        dO[i][t])
      AtMost whole.error (z - g.dV[j][t]) ∧ AtMost whole.size g.dV[j][t] := by
  intro row g dS term
  obtain ⟨-, -, hdQ, hdK⟩ := vjpDropout_formulas scale modify slope Q K V Z id dO dLse
  have valid : ∀ i, (row i).Valid :=
    backwardRow_valid scale modify slope Q K V Z dO dLse hZ he
  have exact : ∀ i j, (row i).scoreGradient j = g.dBias[i][j] :=
    scoreGradient_eq scale modify slope Q K V Z dO dLse id error slopeError
  refine ⟨fun computed => ⟨fun i t hz => ?_, fun j t hz => ?_⟩, fun j t w hw hz => ?_⟩
  · refine present_gradient hp hc hu hr (y := fun j => K[j][t])
      (e := fun j => (row i).scoreGradient j * (row i).slope j) (t := fun j => dS i j K[j][t])
      (fun j => ⟨(rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j K[j][t]).1,
        (rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j K[j][t]).2, rfl⟩) hz ?_
    simp only [exact]
    exact hdQ i t
  · refine present_gradient hp hc hu hr (y := fun i => Q[i][t])
      (e := fun i => (row i).scoreGradient j * (row i).slope j) (t := fun i => dS i j Q[i][t])
      (fun i => ⟨(rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j Q[i][t]).1,
        (rounded_scoreGradientTerm hp hc₁ hc₂ hu (valid i) (computed i) j Q[i][t]).2, rfl⟩) hz ?_
    simp only [exact]
    exact hdK j t
  · refine present_gradient hp hc hu (Std.le_refl 1) (y := fun i => dO[i][t])
      (e := fun i => (row i).factor j * (row i).weight j)
      (t := fun i => weightTerm p ((row i).key j) dO[i][t])
      (fun i => ⟨(rounded_weightTerm hp (valid i) (hw i) dO[i][t]).1,
        (rounded_weightTerm hp (valid i) (hw i) dO[i][t]).2, rfl⟩) hz ?_
    rw [Semiring.one_mul]
    exact valueGradient_eq scale modify slope Q K V Z dO dLse id error slopeError j t

omit [Exponential R R] in
/-- The sum over the heads that share a key. -/
theorem rounded_shared {heads : Nat} {p : GradientPrecision R} (hp : PreciseGradient p)
    {tiny : R} (ht : 0 ≤ tiny) {roundings : Nat} (hc : numeral roundings * p.accumulation < 1)
    {z e : Fin heads → R} {t : Fin heads → GradientTerm R} {w : R}
    (h : ∀ h, AtMost (t h).error (z h - e h) ∧ AtMost (t h).size (e h) ∧ (t h).other = 1)
    (hw : ComputedShared p tiny roundings z w) :
    AtMost (sharedGradientError p tiny roundings ((List.finRange heads).map t))
      (w - sumOver e (List.finRange heads)) := by
  by_cases one : heads = 1
  case pos =>
    subst one
    rw [ComputedShared, if_pos rfl] at hw
    show AtMost (t 0).error (w - (e 0 + 0))
    rw [hw 0, Semiring.add_zero]
    exact (h 0).1
  case neg =>
    rw [ComputedShared, if_neg one] at hw
    have h₁ := rounded_presentTotal hp.accumulation hp.output hp.tiny ht hc h hw
    simp only [Semiring.mul_one] at h₁
    have length : ((List.finRange heads).map t).length ≠ 1 := by
      rwa [List.length_map, List.length_finRange]
    generalize (List.finRange heads).map t = terms at *
    match terms, length with
    | [], _ => exact h₁
    | [_], h => exact absurd rfl h
    | _ :: _ :: _, _ => exact h₁

/-- **rounded-gradients-stored**: the gradients by queries, by keys and by values that heads share,
that a backward pass computes which rounds every operation, adds them up tile by tile and stores
what it likes of that, computes the weights again with a relative error each, and stores the
gradients at the end, are within their bounds, also where numbers underflow, and 0 where all
products are. -/
theorem rounded_gradients_stored {heads : Nat} (scale : R)
    (modify : Fin heads → ScoreMod R q_len kv_len)
    (slope : Fin heads → ScoreSlope R R q_len kv_len) (Q : Fin heads → Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (Z : Fin heads → WeightFactor R q_len kv_len)
    (dO : Fin heads → Matrix R q_len d_v) (dLse : Fin heads → Vec R q_len)
    {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hZ : ∀ h i j, 0 ≤ Z h i j)
    {error slopeError : Fin heads → Fin q_len → Fin kv_len → R} (he : ∀ h i j, 0 ≤ error h i j)
    {S X : Fin heads → Fin q_len → Fin kv_len → R} {reach : R} (hr : 1 ≤ reach)
    {roundings stores tiles totals : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hc' : numeral totals * p.accumulation < 1) {u η tiny : R} (ht : 0 ≤ tiny) :
    let row := fun h => backwardRow scale (modify h) (slope h) (Q h) K V (Z h) (dO h) (dLse h)
      (error h) (slopeError h)
    let g := fun h => vjpDropout scale (modify h) (slope h) (Q h) K V (Z h) id (dO h) (dLse h)
    let dS := fun h i j =>
      scoreGradientTerm p c (row h i).reach (dLse h)[i] (row h i).keys ((row h i).key j)
    let term := presentGradientTerm p roundings stores tiles
    ((∀ h i, (row h i).Computed p c (S h i) (X h i)) →
      (∀ (h : Fin heads) (i : Fin q_len) (t : Fin d) (z z' : R),
        ComputedTiledGradient p roundings stores tiles scale reach (X h i) (fun j => K[j][t]) z →
        StoredBelow u η z z' →
        let exact := (g h).dQ[i][t]
        AtMost (storedGradientError u η exact
          (term scale reach ((List.finRange kv_len).map fun j => dS h i j K[j][t])).error)
          (z' - exact))
      ∧ ∀ (j : Fin kv_len) (t : Fin d) (z : Fin heads → R) (w w' : R),
        (∀ h, ComputedTiledGradient p roundings stores tiles scale reach (fun i => X h i j)
          (fun i => (Q h)[i][t]) (z h)) →
        ComputedShared p tiny totals z w → StoredBelow u η w w' →
        let exact := sumOver (fun h => (g h).dK[j][t]) (List.finRange heads)
        AtMost (storedGradientError u η exact (sharedGradientError p tiny totals
          ((List.finRange heads).map fun h =>
            term scale reach ((List.finRange q_len).map fun i => dS h i j (Q h)[i][t]))))
          (w' - exact))
    ∧ ∀ (j : Fin kv_len) (t : Fin d_v) (x : Fin heads → Fin q_len → R) (z : Fin heads → R)
        (w w' : R), (∀ h i, (row h i).ComputedWeight p j (x h i)) →
      (∀ h, ComputedTiledGradient p roundings stores tiles 1 1 (x h) (fun i => (dO h)[i][t])
        (z h)) →
      ComputedShared p tiny totals z w → StoredBelow u η w w' →
      let exact := sumOver (fun h => (g h).dV[j][t]) (List.finRange heads)
      AtMost (storedGradientError u η exact (sharedGradientError p tiny totals
        ((List.finRange heads).map fun h => term 1 1 ((List.finRange q_len).map fun i =>
          weightTerm p ((row h i).key j) (dO h)[i][t])))) (w' - exact) := by
  intro row g dS term
  have head := fun h z => rounded_presentGradients (tiles := tiles) (stores := stores) (z := z)
    scale (modify h) (slope h) (Q h) K V (Z h) (dO h) (dLse h) hp hc₁ hc₂ hu (hZ h)
    (slopeError := slopeError h) (he h) (S := S h) (X := X h) hr hc
  refine ⟨fun computed => ⟨fun h i t z z' hz hz' => ?_, fun j t z w w' hz hw hw' => ?_⟩,
    fun j t x z w w' hx hz hw hw' => ?_⟩
  · exact rounded_gradientStore ((((head h z).1 (computed h)).1 i t hz).1) hz'
  · refine rounded_gradientStore (rounded_shared hp ht hc' (fun h => ?_) hw) hw'
    have := ((head h (z h)).1 (computed h)).2 j t (hz h)
    exact ⟨this.1, this.2, rfl⟩
  · refine rounded_gradientStore (rounded_shared hp ht hc' (fun h => ?_) hw) hw'
    have := (head h (z h)).2 j t (x h) (hx h) (hz h)
    exact ⟨this.1, this.2, rfl⟩

end Attention.Proof
