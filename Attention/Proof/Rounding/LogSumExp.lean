module

public import Attention.Model.RoundedLogSumExp
public import Attention.Proof.Softmax.LogSumExp
public import Attention.Proof.Rounding.Dot
public import Attention.Proof.Rounding.Basic

public section

/-! # No computed log-sum-exp exceeds its tolerance

The sum of the computed weights lies between Σ w exp (−ε) and Σ w exp ε, but for a factor that the
maximum takes up, and (Σ w)² ≤ (Σ w exp ε) (Σ w exp (−ε)); so one factor bounds it from either side.
What the logarithm and the sum round is in proportion to numbers that are known up to E and to the
largest error of a score. Source: docs/tolerances.md, "Log-sum-exp". -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## The sum of the weights -/

/-- (Σ w)² ≤ (Σ w F) (Σ w / F). -/
theorem sumOver_sq_le {α : Type v} {w F : α → R} {xs : List α} (hw : ∀ x ∈ xs, 0 ≤ w x)
    (hF : ∀ x ∈ xs, 0 < F x) (hA : 0 < sumOver (fun x => w x * F x) xs) :
    sumOver w xs * sumOver w xs
      ≤ sumOver (fun x => w x * F x) xs * sumOver (fun x => w x / F x) xs := by
  have key : ∀ t : R, 0 ≤ t * t * sumOver (fun x => w x * F x) xs - 2 * t * sumOver w xs
      + sumOver (fun x => w x / F x) xs := fun t => by
    have h : 0 ≤ sumOver (fun x => w x / F x * ((F x * t - 1) * (F x * t - 1))) xs :=
      sumOver_nonneg fun x hx => OrderedRing.mul_nonneg
        (OrderedField.div_nonneg (hw x hx) (hF x hx)) (mul_self_nonneg _)
    have e : ∀ x ∈ xs, w x / F x * ((F x * t - 1) * (F x * t - 1))
        = t * t * (w x * F x) - 2 * t * w x + w x / F x := fun x hx => by
      have := OrderedField.mul_div_cancel (b := F x) (by have := hF x hx; grind) (w x)
      generalize w x / F x = y at *
      grind
    rw [sumOver_congr e] at h
    have e₂ : ∀ ys : List α, sumOver (fun x => t * t * (w x * F x) - 2 * t * w x + w x / F x) ys
        = t * t * sumOver (fun x => w x * F x) ys - 2 * t * sumOver w ys
          + sumOver (fun x => w x / F x) ys := fun ys => by
      induction ys with
      | nil => simp only [sumOver_nil]; grind
      | cons y ys ih => simp only [sumOver_cons, ih]; grind
    rwa [e₂] at h
  have h := key (sumOver w xs / sumOver (fun x => w x * F x) xs)
  have e := OrderedField.mul_div_cancel (b := sumOver (fun x => w x * F x) xs) (by grind)
    (sumOver w xs)
  generalize sumOver (fun x => w x * F x) xs = A at *
  generalize sumOver (fun x => w x / F x) xs = B at *
  generalize sumOver w xs = S at *
  generalize S / A = t at *
  have h₁ := OrderedRing.mul_nonneg (Std.le_of_lt hA) h
  have e₁ : A * (t * t * A - 2 * t * S + B) = A * t * (A * t) - 2 * (A * t) * S + A * B := by grind
  have e₂ : A * t = S := by grind
  rw [e₁, e₂] at h₁
  grind

/-- A denominator l that is a rounded sum of stored weights, against the sum W of the computed
ones. -/
private theorem denominator_of_stored {W D l G g σ : R} (hW : 0 < W) (hg : 0 ≤ g) (hγ : G - 1 ≤ g)
    (hσ : 0 ≤ σ) (hlt : g + σ < 1) (hD : AtMost (σ * W) (D - W))
    (hl : AtMost ((G - 1) * D) (l - D)) :
    W * (1 - (g + σ)) ≤ l ∧ l * (1 - (g + σ)) ≤ W := by
  have hD₁ : W * (1 - σ) ≤ D := by have := hD.1; grind
  have hD₂ : D ≤ W * (1 + σ) := by have := hD.2; grind
  have hD₀ : 0 ≤ D := by
    have := OrderedRing.mul_pos hW (b := 1 - σ) (by grind)
    grind
  obtain ⟨hl₁, hl₂⟩ := hl.mono (OrderedRing.mul_le_mul_of_nonneg_right hγ hD₀)
  have h₀ := OrderedRing.mul_nonneg hg hσ
  have hW₀ := Std.le_of_lt hW
  constructor
  · have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hD₁ (c := 1 - g) (by grind)
    have h₂ := OrderedRing.mul_nonneg hW₀ h₀
    grind
  · -- (1 + g) (1 + σ) (1 − g − σ) ≤ (1 − g²) (1 − σ²) ≤ 1
    have h₁ := OrderedRing.mul_le_mul_of_nonneg_right (a := l) (b := D * (1 + g)) (by grind)
      (c := 1 - (g + σ)) (by grind)
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hD₂ (c := (1 + g) * (1 - (g + σ)))
      (OrderedRing.mul_nonneg (by grind) (by grind))
    have h₃ := OrderedRing.mul_nonneg (a := (1 + g) * (1 + σ)) (b := g * σ)
      (OrderedRing.mul_nonneg (by grind) (by grind)) h₀
    have h₄ := OrderedRing.mul_nonneg (mul_self_nonneg σ) (b := 1 - g * g) (by
      have := OrderedRing.mul_nonneg hg (b := 1 - g) (by grind)
      grind)
    have h₅ := mul_self_nonneg g
    have h₆ := OrderedRing.mul_nonneg hW₀ (b := 1 - (1 + σ) * ((1 + g) * (1 - (g + σ))))
      (by grind)
    grind

/-- Bounds of the sum W of the computed weights bound the denominator l, which is within g of
it. -/
private theorem denominator_close {em κ A B S W g l : R} (hm₁ : 0 < em) (hκ₀ : 0 < κ) (hS : 0 < S)
    (hA : S ≤ A) (hsq : S * S ≤ A * B) (hupper : W ≤ κ * A) (hlower : κ * B ≤ W) (hg : g < 1)
    (hl₃ : W * (1 - g) ≤ l) (hl₄ : l * (1 - g) ≤ W) :
    0 < l ∧ em * l ≤ em * κ * S * (A / S / (1 - g)) ∧ em * κ * S ≤ em * l * (A / S / (1 - g)) := by
  have hB : 0 < B := by
    refine Classical.byContradiction fun hn => ?_
    have h₁ := OrderedRing.mul_nonneg (a := A) (b := -B) (by grind) (by grind)
    have h₂ := OrderedRing.mul_pos hS hS
    grind
  have hW₀ : 0 < W := by
    have := OrderedRing.mul_pos hκ₀ hB
    grind
  have hg₁ : 0 < 1 - g := by grind
  have hl₀ : 0 < l := by
    have := OrderedRing.mul_pos hW₀ hg₁
    grind
  refine ⟨hl₀, ?_, ?_⟩
  · -- em l ≤ em W / (1 − g) ≤ em κ A / (1 − g)
    have e : em * κ * S * (A / S / (1 - g)) = em * (κ * A) / (1 - g) := by grind
    rw [e, OrderedField.le_div_iff hg₁]
    have h₃ := Std.le_trans hl₄ hupper
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_left h₃ (Std.le_of_lt hm₁)
    grind
  · have e : em * l * (A / S / (1 - g)) = em * (l * A) / (S * (1 - g)) := by grind
    rw [e, OrderedField.le_div_iff (OrderedRing.mul_pos hS hg₁)]
    -- κ S² ≤ κ A B ≤ A W, and W (1 − g) ≤ l
    have h₁ := OrderedRing.mul_le_mul_of_nonneg_left hsq (Std.le_of_lt hκ₀)
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_left hlower (c := A) (by grind)
    have h₃ : κ * (S * S) ≤ A * W := by grind
    have h₄ := OrderedRing.mul_le_mul_of_nonneg_right h₃ (Std.le_of_lt hg₁)
    have h₅ := OrderedRing.mul_le_mul_of_nonneg_left hl₃ (c := A) (by grind)
    have h₆ : κ * (S * S) * (1 - g) ≤ l * A := by grind
    have h₇ := OrderedRing.mul_le_mul_of_nonneg_left h₆ (Std.le_of_lt hm₁)
    grind

/-- The denominator of a part, against the sum of the computed weights. -/
theorem denominator_within {p : Precision R} (hp : Precise p) {roundings rescalings : Nat}
    {G l κ T : R} {zs : List (BoundedWeight R × R × R)} (h : StoredWeights p rescalings κ T zs)
    (hW : 0 < sumOver (fun z => z.2.1) zs)
    (hg₀ : 0 ≤ gamma (roundings + 1) p.unit) (hγ : G - 1 ≤ gamma (roundings + 1) p.unit)
    (hg : denominatorError p roundings rescalings (zs.map (·.1)) < 1)
    (hl : AtMost ((G - 1) * sumOver (fun z => added p.denominator z.2.1 z.2.2) zs)
      (l - sumOver (fun z => added p.denominator z.2.1 z.2.2) zs)) :
    sumOver (fun z => z.2.1) zs * (1 - denominatorError p roundings rescalings (zs.map (·.1))) ≤ l ∧
      l * (1 - denominatorError p roundings rescalings (zs.map (·.1)))
        ≤ sumOver (fun z => z.2.1) zs := by
  cases hd : p.denominator with
  | unrounded =>
    simp only [denominatorError, added, hd] at hg hl ⊢
    have h₁ : AtMost (0 * sumOver (fun z => z.2.1) zs)
        (sumOver (fun z => z.2.1) zs - sumOver (fun z => z.2.1) zs) := ⟨by grind, by grind⟩
    have := denominator_of_stored hW hg₀ hγ (Std.le_refl 0) (by rwa [Semiring.add_zero]) h₁ hl
    rwa [Semiring.add_zero] at this
  | rounded =>
    simp only [denominatorError, added, hd] at hg hl ⊢
    refine denominator_of_stored hW hg₀ hγ (h.storingErrors_nonneg hp) hg ?_ hl
    rw [CommSemiring.mul_comm]
    exact h.sum_sub hp

private theorem unit_le_one_of {u : R} {n : Nat} (h : numeral (n + 1) * u < 1) : u ≤ 1 := by
  have h₀ := numeral_nonneg (R := R) n
  rw [numeral_succ] at h
  generalize (numeral n : R) = x at *
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.zero_lt_one (R := R)
  have := OrderedRing.mul_nonneg (a := x) (b := u) h₀ (by grind)
  grind

variable [Exponential R R]

/-- exp m · l as computed is the exact sum of exponentials but for `logSumExpFactor`. -/
theorem rounded_denominator {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (close : ∀ key ∈ part.keys, ∀ s, key.score = some s → AtMost key.error (key.computed - s))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (hg : denominatorError p roundings rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) < 1) :
    let factor := logSumExpFactor p roundings rescalings (part.keys.map (·.toBoundedKey))
    let exact : R := denominator (part.keys.map (·.score))
    0 < part.l ∧ exp m * part.l ≤ exact * factor ∧ exact ≤ exp m * part.l * factor := by
  intro factor exact
  obtain ⟨ws, hkeys, hmasked, hws, hstored, hl, -⟩ :=
    run_weights hp run fun _ => unit_le_one_of hD
  have attained' := attained
  obtain ⟨top, htop, hscore, hm₀⟩ := attained
  have hmax : ∀ {key}, key ∈ part.keys →
      key.score ∈ (part.keys.map (·.toBoundedKey)).map (·.score) := fun h =>
    List.mem_map_of_mem (f := (·.score)) (List.mem_map_of_mem (f := (·.toBoundedKey)) h)
  obtain ⟨M, hM⟩ : ∃ M, rowMax ((part.keys.map (·.toBoundedKey)).map (·.score)) = some M :=
    Option.ne_none_iff_exists'.mp fun h => hscore (rowMax_eq_none.mp h _ (hmax htop))
  have hle : ∀ key ∈ part.keys, ∀ s, key.score = some s → s ≤ M := fun key hk s hs => by
    have h := le_rowMax (hmax hk)
    rw [hM, hs] at h
    exact h
  have herror : ∀ key ∈ part.keys, key.score ≠ none →
      0 ≤ key.error ∧ key.error ≤ largestError (part.keys.map (·.toBoundedKey)) :=
    fun key hk hs => by
      obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs
      exact ⟨(close key hk s hs').nonneg, error_le_largestError (List.mem_map_of_mem hk) hs⟩
  have close₀ : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + 0)) := fun key hk s hs => by
    rw [Semiring.add_zero]
    exact close key hk s hs
  generalize hΔ : largestError (part.keys.map (·.toBoundedKey)) = Δ at herror
  have hm : m ≤ M + 0 + Δ := by
    obtain ⟨s₀, hs₀⟩ := Option.ne_none_iff_exists'.mp hscore
    have h₁ := (close top htop s₀ hs₀).2
    have h₂ := hle top htop s₀ hs₀
    have h₃ := (herror top htop hscore).2
    grind
  let b : ComputedKey R → BoundedWeight R := fun k =>
    boundedWeight p rescalings (some M) Δ k.toBoundedKey
  let xs : List (BoundedWeight R × R) := ws.map fun k => (b k.1, k.2.1)
  have hrow : boundedWeights p rescalings (part.keys.map (·.toBoundedKey)) = xs.map (·.1) := by
    rw [boundedWeights_eq hM, hΔ, ← hkeys]
    simp only [xs, b, List.map_map]
    rfl
  have hoff : OffByFactors (exp (M + 0 - m)) xs :=
    offByFactors_of_stored hp hr ⟨top, htop, hscore⟩ hm hle herror close₀ hkeys hmasked hws
  let zs : List (BoundedWeight R × R × R) := ws.map fun k => (b k.1, k.2)
  have hzs : zs.map (·.1) = xs.map (·.1) := by
    simp only [zs, xs, List.map_map]
    rfl
  have hmem : ∀ {k}, k ∈ ws → k.1 ∈ part.keys := fun hk => hkeys ▸ List.mem_map_of_mem hk
  have hlow := hoff.lowTotal_pos
  have tiny := tiny_le hp hr hoff (fun k hk => hle k.1 (hmem hk))
    (fun k hk => herror k.1 (hmem hk)) (fun k hk => close₀ k.1 (hmem hk))
    (fun k hk hs => (hws k hk hs).2.2.2)
    (fun k hk => hoff.nonneg (b k.1, k.2.1)
      (List.mem_map_of_mem (f := fun k : ComputedKey R × R × R => (b k.1, k.2.1)) hk))
    (fun _ => by
      obtain ⟨key, hk, h⟩ := attained'
      rw [← hkeys] at hk
      obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
      exact ⟨k, hk', h⟩)
  have hweights : StoredWeights p rescalings (exp (M + 0 - m))
      (p.storedTiny / (1 - p.exponential) ^ part.rescalings) zs := ⟨by
      simp only [zs, List.map_map]
      exact hoff, fun z hz => by
    obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hz
    exact hstored k hk, by
    simp only [zs, List.map_map, sumOver_map]
    exact tiny, tinyShare_nonneg hp rescalings (by rw [hzs]; exact hlow)⟩
  have hexact : exact = exp M * sumOver (fun x => x.1.weight) xs := by
    simp only [exact, denominator, xs, b]
    rw [← hkeys, sumOver_map, sumOver_map, sumOver_map, ← sumOver_mul_left]
    exact sumOver_congr fun k _ => (exp_mul_boundedWeight p rescalings M Δ _).symm
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hpos : ∀ x ∈ xs, 0 < x.1.factor := fun x hx => by
    have := hoff.one_le_factor x hx
    grind
  have hS : 0 < sumOver (fun x => x.1.weight) xs := by
    obtain ⟨x, h, hw⟩ := hoff.unmasked
    have := le_sumOver (f := fun x : BoundedWeight R × R => x.1.weight) hoff.weight_nonneg h
    grind
  have hA : sumOver (fun x => x.1.weight) xs ≤ sumOver (fun x => x.1.weight * x.1.factor) xs :=
    sumOver_le_sumOver fun x hx => by
      have := OrderedRing.mul_le_mul_of_nonneg_left (hoff.one_le_factor x hx)
        (hoff.weight_nonneg x hx)
      grind
  have hsq := sumOver_sq_le (F := fun x : BoundedWeight R × R => x.1.factor) hoff.weight_nonneg
    hpos (by grind)
  have hupper : sumOver (fun x => x.2) xs
      ≤ exp (M + 0 - m) * sumOver (fun x => x.1.weight * x.1.factor) xs := by
    rw [← sumOver_mul_left]
    exact sumOver_le_sumOver hoff.upper
  have hlower : exp (M + 0 - m) * sumOver (fun x => x.1.weight / x.1.factor) xs
      ≤ sumOver (fun x => x.2) xs := by
    rw [← sumOver_mul_left]
    refine sumOver_le_sumOver fun x hx => ?_
    have e : exp (M + 0 - m) * (x.1.weight / x.1.factor)
        = exp (M + 0 - m) * x.1.weight / x.1.factor := by
      rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Semiring.mul_assoc]
    rw [e, OrderedField.div_le_iff (hpos x hx)]
    have := hoff.lower x hx
    grind
  have hW : sumOver (fun x => x.2) xs = sumOver (fun k => k.2.1) ws := by
    simp only [xs, sumOver_map]
  rw [hW] at hupper hlower
  have hκ : exp m * (exp (M + 0 - m) : R) = exp M := by
    rw [← exp_add]
    congr 1
    grind
  have hg' : denominatorError p roundings rescalings (zs.map (·.1)) < 1 := by
    rw [hzs, ← hrow]
    exact hg
  have hg₀ := gamma_nonneg hp.unit hD
  have hγ := pow_sub_one_le_gamma hp.unit (Nat.le_succ_of_le ha) hD
  have hfactor : factor = sumOver (fun x => x.1.weight * x.1.factor) xs
      / sumOver (fun x => x.1.weight) xs
      / (1 - denominatorError p roundings rescalings (zs.map (·.1))) := by
    simp only [factor, logSumExpFactor, hrow, hzs, sumOver_map]
  rw [hexact, hfactor]
  have hW₀ : 0 < sumOver (fun k => k.2.1) ws := hW ▸ hoff.weights_pos
  have hclose := denominator_within hp hweights (by simpa only [zs, sumOver_map] using hW₀) hg₀ hγ
    hg' (l := part.l) (by simpa only [zs, sumOver_map] using hl)
  rw [show sumOver (fun z => z.2.1) zs = sumOver (fun k => k.2.1) ws by
    simp only [zs, sumOver_map]] at hclose
  clear hg tiny hweights hzs hlow
  clear_value xs zs factor exact
  have hκ₀ := exp_pos (R := R) (M + 0 - m)
  have hm₁ := exp_pos (R := R) m
  generalize (exp (M + 0 - m) : R) = κ at *
  generalize (exp m : R) = em at *
  generalize sumOver (fun x => x.1.weight * x.1.factor) xs = A at *
  generalize sumOver (fun x => x.1.weight / x.1.factor) xs = B at *
  generalize sumOver (fun x => x.1.weight) xs = S at *
  generalize sumOver (fun k => k.2.1) ws = W at *
  generalize denominatorError p roundings rescalings (zs.map (·.1)) = g at *
  rw [← hκ]
  clear hκ hfactor hexact hrow hW hD
  exact denominator_close hm₁ hκ₀ hS hA hsq hupper hlower hg' hclose.1 hclose.2

/-! ## Maximum, logarithm and sum -/

omit [Exponential R R] in
/-- The reference point is off by no more than the scores are. -/
private theorem maximum_close {m M : R} {keys : List (ComputedKey R)}
    (hM : rowMax (keys.map (·.score)) = some M)
    (attained : ∃ key ∈ keys, key.score ≠ none ∧ key.computed = m)
    (top : ∀ key ∈ keys, key.score ≠ none → key.computed ≤ m)
    (close : ∀ key ∈ keys, ∀ s, key.score = some s → AtMost key.error (key.computed - s)) :
    AtMost (largestError (keys.map (·.toBoundedKey))) (m - M) := by
  have herror : ∀ key ∈ keys, key.score ≠ none →
      key.error ≤ largestError (keys.map (·.toBoundedKey)) := fun key hk hs =>
    error_le_largestError (List.mem_map_of_mem (f := (·.toBoundedKey)) hk) hs
  obtain ⟨key, hk, hs, rfl⟩ := attained
  obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs
  have h₁ := le_rowMax (List.mem_map_of_mem (f := (·.score)) hk)
  have h₁ : ScoreLE key.score (some M) := hM ▸ h₁
  rw [hs'] at h₁
  have h₁ : s ≤ M := h₁
  obtain ⟨key', hk', hs''⟩ := List.mem_map.mp (rowMax_mem hM)
  have h₂ := close key hk s hs'
  have h₃ := close key' hk' M hs''
  have h₄ := top key' hk' (by simp [hs''])
  have h₅ := herror key hk hs
  have h₆ := herror key' hk' (by simp [hs''])
  exact ⟨by have := h₃.1; grind, by have := h₂.2; grind⟩

omit [Exponential R R] in
/-- (1 + a u) ≤ (1 + u)ᵃ. -/
private theorem one_add_mul_le_pow {u : R} (hu : 0 ≤ u) (a : Nat) :
    1 + numeral a * u ≤ (1 + u) ^ a := by
  induction a with
  | zero =>
    rw [Semiring.pow_zero, show (numeral 0 : R) = 0 from rfl]
    grind
  | succ a ih =>
    rw [Semiring.pow_succ, numeral_succ]
    have h₁ := OrderedRing.mul_le_mul_of_nonneg_right ih (c := 1 + u)
      (by have := OrderedRing.zero_lt_one (R := R); grind)
    have h₂ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) a) (mul_self_nonneg u)
    generalize numeral (R := R) a = n at *
    grind

omit [Exponential R R] in
private theorem le_sub_one_of_le {x y z : R} (h : x ≤ y) (h' : y - 1 ≤ z) : x - 1 ≤ z := by grind

/-- The roundings of maximum, logarithm and their sum, at most. -/
private theorem computedLogSumExp_close {u m l L : R} (hu : 0 ≤ u) (h4 : numeral 4 * u < 1)
    (h : ComputedLogSumExp u m l L) : ∃ logl : R, exp logl = l ∧
      AtMost (gamma 4 u * (absolute logl + 1 + absolute m)) (L - (m + logl)) := by
  obtain ⟨a, b, c, k, logl, x, y, z, h₁, h₂, hexp, hy, hz, hx, hL⟩ := h
  refine ⟨logl, hexp, ?_⟩
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor hz
  obtain ⟨t', rfl, ht'⟩ := roundedTimes_factor hx
  obtain ⟨τ, rfl, hτ⟩ := roundedTimes_factor hL
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hbig : AtMost (absolute logl + 1) logl := (atMost_absolute logl).mono (by grind)
  have i₁ := atMost_mul_sub (A := 1 + numeral a * u) (s := absolute logl + 1) (e := y) hbig
    (by rw [show 1 + numeral a * u - 1 = numeral a * u by grind]; exact hy) (factor_mul ht hτ)
  have i₂ : AtMost (((1 + u) ^ (b + c) - 1) * absolute m) (m * t' * τ - m) := by
    have := (atMost_absolute m).mul (factor_mul ht' hτ)
    rw [← Semiring.pow_add] at this
    rw [show m * t' * τ - m = m * (t' * τ - 1) by grind,
      show ((1 + u) ^ (b + c) - 1) * absolute m = absolute m * ((1 + u) ^ (b + c) - 1) by grind]
    exact this
  have p₁ := pow_sub_one_le_gamma hu h₂ h4
  have p₂ := pow_sub_one_le_gamma hu h₁ h4
  have p₃ := OrderedRing.mul_le_mul_of_nonneg_right (one_add_mul_le_pow hu a)
    (Std.le_of_lt (OrderedField.pow_pos (x := 1 + u) (by grind) (k + c)))
  rw [← Semiring.pow_add, ← Nat.add_assoc] at p₃
  rw [← Semiring.pow_add] at i₁
  have i₃ := i₁.mono (OrderedRing.mul_le_mul_of_nonneg_right (le_sub_one_of_le p₃ p₂) hbig.nonneg)
  have i₄ := i₂.mono (OrderedRing.mul_le_mul_of_nonneg_right p₁ (absolute_nonneg m))
  have h := i₃.add i₄
  have e₁ : y * (t * τ) - logl + (m * t' * τ - m) = (m * t' + y * t) * τ - (m + logl) := by grind
  have e₂ : gamma 4 u * (absolute logl + 1) + gamma 4 u * absolute m
      = gamma 4 u * (absolute logl + 1 + absolute m) := by grind
  rwa [e₁, e₂] at h

/-- A log-sum-exp that is made of a maximum that computed scores attain, and of a denominator that
is that of the exact scores but for a factor of at most exp E. -/
theorem logSumExp_within {p : Precision R} (hp : Precise p) {m l F : R}
    {keys : List (ComputedKey R)} (attained : ∃ key ∈ keys, key.score ≠ none ∧ key.computed = m)
    (top : ∀ key ∈ keys, key.score ≠ none → key.computed ≤ m)
    (close : ∀ key ∈ keys, ∀ s, key.score = some s → AtMost key.error (key.computed - s))
    (h4 : numeral 4 * p.unit < 1) {L E M : R}
    (exact : IsLogSumExp R (some L) (keys.map (·.score)))
    (maximum : rowMax (keys.map (·.score)) = some M) (errors : F ≤ exp E)
    (h₁ : exp m * l ≤ denominator (keys.map (·.score)) * F)
    (h₂ : denominator (keys.map (·.score)) ≤ exp m * l * F)
    {L' : R} (result : ComputedLogSumExp p.unit m l L') :
    AtMost (logSumExpTolerance p E (L - M) M (largestError (keys.map (·.toBoundedKey))))
      (L' - L) := by
  obtain ⟨logl, hlog, hclose⟩ := computedLogSumExp_close hp.unit h4 result
  have hm := maximum_close maximum attained top close
  have hL : (exp L : R) = denominator (keys.map (·.score)) := exact
  rw [← hL] at h₁ h₂
  rw [← hlog, ← exp_add] at h₁ h₂
  have le : ∀ a b : R, (exp a : R) ≤ exp b → a ≤ b := fun a b h => by
    refine Classical.byContradiction fun hn => ?_
    have := exp_lt (R := R) b a (by grind)
    grind
  have i₁ : m + logl ≤ L + E := le _ _ (by
    rw [exp_add L]
    exact Std.le_trans h₁ (OrderedRing.mul_le_mul_of_nonneg_left errors (Std.le_of_lt (exp_pos L))))
  have i₂ : L ≤ m + logl + E := le _ _ (by
    rw [exp_add (m + logl)]
    exact Std.le_trans h₂ (OrderedRing.mul_le_mul_of_nonneg_left errors
      (Std.le_of_lt (exp_pos _))))
  have hML : M ≤ L := le _ _ (by
    rw [hL]
    exact le_sumOver (f := fun s => (weight s : R)) (fun s _ => weight_nonneg s)
      (rowMax_mem maximum))
  generalize largestError (keys.map (·.toBoundedKey)) = Δ at *
  have hΔ := hm.nonneg
  have e₂ : (numeral 2 : R) = 2 := by
    rw [numeral_succ, numeral_succ, show (numeral 0 : R) = 0 from rfl]
    grind
  have a₁ : absolute logl ≤ L - M + E + Δ := absolute_le ⟨by have := hm.2; grind, by
    have := hm.1; grind⟩
  have a₂ : absolute m ≤ absolute M + Δ := absolute_le (by
    have := (atMost_absolute M).add hm
    rwa [show M + (m - M) = m by grind] at this)
  have hg := gamma_nonneg hp.unit h4
  have i₃ : AtMost E (m + logl - L) := ⟨by grind, by grind⟩
  have h := (hclose.mono (OrderedRing.mul_le_mul_of_nonneg_left
    (show absolute logl + 1 + absolute m ≤ L - M + 1 + absolute M + E + numeral 2 * Δ by
      rw [e₂]; grind) hg)).add i₃
  rw [logSumExpTolerance]
  rw [show L' - (m + logl) + (m + logl - L) = L' - L by grind] at h
  exact h.mono (by grind)

/-- **rounded-lse**: every log-sum-exp that a function writes beside its output, made of the maximum
and of the denominator that it computed by parts in any order, with every operation rounded, is
within its tolerance: of the exact log-sum-exp `L` of the scores, for whatever `E` has the
exponential that the errors of the weights and of their sum come to. The scores may be off by δ
each, without a constant that all share. -/
theorem rounded_logSumExp {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (close : ∀ key ∈ part.keys, ∀ s, key.score = some s → AtMost key.error (key.computed - s))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (hg : denominatorError p roundings rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) < 1)
    (h4 : numeral 4 * p.unit < 1) {L E M : R}
    (exact : IsLogSumExp R (some L) (part.keys.map (·.score)))
    (maximum : rowMax (part.keys.map (·.score)) = some M)
    (errors : logSumExpFactor p roundings rescalings (part.keys.map (·.toBoundedKey)) ≤ exp E)
    {L' : R} (result : ComputedLogSumExp p.unit m part.l L') :
    AtMost (logSumExpTolerance p E (L - M) M (largestError (part.keys.map (·.toBoundedKey))))
      (L' - L) := by
  obtain ⟨-, h₁, h₂⟩ := rounded_denominator hp run attained close hr ha hD hg
  refine logSumExp_within hp attained (fun key hk hs => ?_) close h4 exact maximum errors h₁ h₂
    result
  obtain ⟨ws, hkeys, -, hws, -⟩ := run_weights hp run fun _ => unit_le_one_of hD
  rw [← hkeys] at hk
  obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
  exact (hws k hk' hs).1

end Attention.Proof
