module

public import Attention.Proof.Rounding.StoredShares
public import Attention.Proof.Rounding.Weights

public section

/-! # No attention function that rounds exceeds its tolerance

`rounded_attention`: whatever computes a row's attention as `Model.Run` may, by parts, in any order
and with every operation rounded, is within `Spec.tolerance` of the exact attention. Of the row it
takes two things from elsewhere, how far off the scores are and how often a key's part is rounded
and rescaled; `Proof/Rounding/Run.lean` and `Weights.lean` say what that makes of the weights and of
the sums, `Shares.lean` and `StoredShares.lean` what it makes of their quotient.
Source: docs/tolerances.md, sections 1 to 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- The numerator of a function, near that of its weights times the values it used, is near that of
the same weights times the exact values. -/
private theorem numerator_of_values {α : Type u} {w v v' : α → R} {xs : List α} {T G o : R}
    (hG : 1 ≤ G) (hw : ∀ x ∈ xs, 0 ≤ w x)
    (hvalues : ∀ x ∈ xs, AtMost ((T - 1) * absolute (v x)) (v' x - v x))
    (ho : AtMost ((G - 1) * sumOver (fun x => w x * absolute (v' x)) xs)
      (o - sumOver (fun x => w x * v' x) xs)) :
    AtMost ((G * T - 1) * sumOver (fun x => w x * absolute (v x)) xs)
      (o - sumOver (fun x => w x * v x) xs) := by
  have size : ∀ x ∈ xs, w x * absolute (v' x) ≤ T * (w x * absolute (v x)) := fun x hx => by
    have h₁ := (hvalues x hx).add (atMost_absolute (v x))
    have e₁ : v' x - v x + v x = v' x := by grind
    rw [e₁] at h₁
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (absolute_le h₁) (hw x hx)
    have e₂ : w x * ((T - 1) * absolute (v x) + absolute (v x)) = T * (w x * absolute (v x)) := by
      generalize absolute (v x) = y
      grind
    rwa [e₂] at h₂
  have sizes : sumOver (fun x => w x * absolute (v' x)) xs
      ≤ T * sumOver (fun x => w x * absolute (v x)) xs := by
    rw [← sumOver_mul_left]
    exact sumOver_le_sumOver size
  have other : AtMost ((T - 1) * sumOver (fun x => w x * absolute (v x)) xs)
      (sumOver (fun x => w x * v' x) xs - sumOver (fun x => w x * v x) xs) := by
    rw [← sumOver_mul_left]
    refine sumOver_error fun x hx => ?_
    have h₂ := atMost_mul_left (hw x hx) (hvalues x hx)
    have e₁ : w x * ((T - 1) * absolute (v x)) = (T - 1) * (w x * absolute (v x)) := by
      generalize absolute (v x) = y
      grind
    have e₂ : w x * (v' x - v x) = w x * v' x - w x * v x := by grind
    rwa [e₁, e₂] at h₂
  generalize sumOver (fun x => w x * absolute (v' x)) xs = S' at *
  generalize sumOver (fun x => w x * absolute (v x)) xs = S at *
  generalize sumOver (fun x => w x * v' x) xs = N' at *
  generalize sumOver (fun x => w x * v x) xs = N at *
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left sizes (c := G - 1) (by grind)
  have h₃ := (ho.mono h₂).add other
  have e₁ : o - N' + (N' - N) = o - N := by grind
  have e₂ : (G - 1) * (T * S) + (T - 1) * S = (G * T - 1) * S := by grind
  rwa [e₁, e₂] at h₃

/-- The numerator that is divided and rounded up to five times, against that of the weights. -/
private theorem numerator_of_result {p : Precision R} {α : Type u}
    {w v : α → R} {xs : List α} (hw : ∀ x ∈ xs, 0 ≤ w x) {A o t : R}
    (ho : AtMost ((A - 1) * sumOver (fun x => w x * absolute (v x)) xs)
      (o - sumOver (fun x => w x * v x) xs))
    (ht : AtMost ((1 + p.accumulation) ^ 5 - 1) (t - 1)) :
    AtMost ((A * (1 + p.accumulation) ^ 5 - 1) * sumOver (fun x => w x * absolute (v x)) xs)
      (o * t - sumOver (fun x => w x * v x) xs) :=
  atMost_mul_sub (sumOver_atMost fun x hx => stored_atMost (hw x hx)) ho ht

private theorem factors_le {A B C T : R} (hT : 1 ≤ T) (h : A * B ≤ C) :
    A * T * B - 1 ≤ C * T - 1 := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right h (c := T) (by grind)
  have e : A * T * B = A * B * T := by grind
  rw [e]
  grind

private theorem unit_le_one {u : R} {a r n : Nat} (h : a + r ≤ n) (hD : 2 * numeral n * u < 1) :
    r ≠ 0 → u ≤ 1 := fun hr => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨k, rfl⟩ : ∃ k, n = k + 1 := ⟨n - 1, by omega⟩
  rw [numeral_succ] at hD
  have hk := numeral_nonneg (R := R) k
  generalize (numeral k : R) = x at *
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.mul_nonneg (a := x) (b := u) hk (by grind)
  grind

private theorem div_mul (x y t : R) : x / y * t = x * t / y := by grind

omit [OrderedField R] in
private theorem exists_zip {α β γ : Type u} {f : α → γ} {g : β → γ} {xs : List α} {ys : List β}
    (h : xs.map f = ys.map g) : ∃ zs : List (α × β),
      zs.map (·.1) = xs ∧ zs.map (·.2) = ys ∧ ∀ z ∈ zs, f z.1 = g z.2 := by
  induction xs generalizing ys with
  | nil =>
    cases ys with
    | nil => exact ⟨[], rfl, rfl, fun z hz => nomatch hz⟩
    | cons y ys => simp at h
  | cons x xs ih =>
    cases ys with
    | nil => simp at h
    | cons y ys =>
      simp only [List.map_cons, List.cons.injEq] at h
      obtain ⟨zs, rfl, rfl, h₃⟩ := ih h.2
      refine ⟨(x, y) :: zs, rfl, rfl, fun z hz => ?_⟩
      rcases List.mem_cons.mp hz with rfl | hz
      · exact h.1
      · exact h₃ z hz

variable [Exponential R R]

/-- The common part of the theorems below: weights that are close to the exact ones, with those that
were stored, and a numerator and a denominator that are close to their sums. -/
private theorem quotient_of_weights {p : Precision R} (hp : Precise p) {m c : R}
    {ws : List (ComputedKey R × R × R)} {r rescalings : Nat} (hr : r ≤ rescalings)
    (masked : ∀ k ∈ ws, k.1.score = none → k.2.1 = 0)
    (bounds : ∀ k ∈ ws, k.1.score ≠ none → k.1.computed ≤ m ∧ 0 < k.2.1 ∧
      k.2.1 ≤ exp (k.1.computed - m) * (exp (p.unit * (m - k.1.computed))
        / (1 - p.exponential) ^ (r + 1)) ∧
      exp (k.1.computed - m) ≤ k.2.1 * (exp (p.unit * (m - k.1.computed))
        / (1 - p.exponential) ^ (r + 1)))
    (hstored : ∀ k ∈ ws, Stored p.stored (p.storedTiny / (1 - p.exponential) ^ r) k.2.1 k.2.2)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (ws.map (·.1.toBoundedKey))) ≤ 1)
    {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : ws.map (fun k => (k.1.score, k.1.value)) = row.map (fun k => (k.score, k.value[j])))
    (reached : ∃ k ∈ ws, ∃ s, k.1.score = some s ∧
      m ≤ s + c + largestError (ws.map (·.1.toBoundedKey)))
    (attained : 0 < p.storedTiny → ∃ k ∈ ws, k.1.score ≠ none ∧ k.1.computed = m)
    (close : ∀ k ∈ ws, ∀ s, k.1.score = some s → AtMost k.1.error (k.1.computed - (s + c)))
    {roundings n : Nat} (hn : n ≤ roundings) {A : R}
    (hA : A - 1 ≤ gamma (roundings + 6) p.accumulation)
    (hN : 0 ≤ gamma (roundings + 6) p.accumulation) (hD : 2 * numeral roundings * p.unit < 1)
    {N L : R}
    (numerator : AtMost ((A - 1) * sumOver (fun k => k.2.2 * absolute k.1.value) ws)
      (N - sumOver (fun k => k.2.2 * k.1.value) ws))
    (denominator : AtMost (((1 + p.unit) ^ n - 1)
        * sumOver (fun k => added p.denominator k.2.1 k.2.2) ws)
      (L - sumOver (fun k => added p.denominator k.2.1 k.2.2) ws)) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible (ws.map (·.1.toBoundedKey)))
      (N / L - (attend row)[j]) := by
  obtain ⟨top, htop, s₀, hs₀, hm₀⟩ := reached
  have hscore : top.1.score ≠ none := by simp [hs₀]
  have hmax : ∀ {k}, k ∈ ws → k.1.score ∈ (ws.map (·.1.toBoundedKey)).map (·.score) := fun h => by
    rw [List.map_map]
    exact List.mem_map_of_mem (f := fun k => k.1.score) h
  obtain ⟨M, hM⟩ : ∃ M, rowMax ((ws.map (·.1.toBoundedKey)).map (·.score)) = some M :=
    Option.ne_none_iff_exists'.mp fun h => hscore (rowMax_eq_none.mp h _ (hmax htop))
  have hle : ∀ k ∈ ws, ∀ s, k.1.score = some s → s ≤ M := fun k hk s hs => by
    have h := le_rowMax (hmax hk)
    rw [hM, hs] at h
    exact h
  have herror : ∀ k ∈ ws, k.1.score ≠ none →
      0 ≤ k.1.error ∧ k.1.error ≤ largestError (ws.map (·.1.toBoundedKey)) := fun k hk hs => by
    obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs
    exact ⟨(close k hk s hs').nonneg,
      error_le_largestError (List.mem_map_of_mem (f := (·.1.toBoundedKey)) hk) hs⟩
  generalize hΔ : largestError (ws.map (·.1.toBoundedKey)) = Δ at herror hm₀
  have hm : m ≤ M + c + Δ := by
    have h₂ := hle top htop s₀ hs₀
    clear numerator denominator hA hN hD
    grind
  let b : ComputedKey R → BoundedWeight R := fun k =>
    boundedWeight p rescalings (some M) Δ k.toBoundedKey
  let zs : List (BoundedWeight R × R × R) := ws.map fun k => (b k.1, k.2)
  have hrow : zs.map (·.1) = boundedWeights p rescalings (ws.map (·.1.toBoundedKey)) := by
    rw [boundedWeights_eq hM, hΔ]
    simp only [zs, b, List.map_map]
    rfl
  have hoff : OffByFactors (exp (M + c - m)) (zs.map fun z => (z.1, z.2.1)) := by
    rw [List.map_map]
    refine offByFactors_of_stored hp hr (keys := ws.map (·.1)) ⟨top.1, List.mem_map_of_mem htop,
      hscore⟩ hm ?_ ?_ ?_ rfl masked bounds
    · intro key hk s hs
      obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
      exact hle k hk' s hs
    · intro key hk hs
      obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
      exact herror k hk' hs
    · intro key hk s hs
      obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
      exact close k hk' s hs
  have e₁ : ∀ (f : R → R) (w : R × R → R), sumOver (fun z => w z.2 * f z.1.value) zs
      = sumOver (fun k => w k.2 * f k.1.value) ws := fun f w => by
    simp only [zs, b, sumOver_map, boundedWeight_value]
  have e₂ : sumOver (fun z => z.1.weight * z.1.value) zs / sumOver (fun z => z.1.weight) zs
      = (attend row)[j] := by
    rw [← sums_eq_attend (keys := ws.map (·.1)) hj (by rw [List.map_map]; exact same) p rescalings
      M Δ]
    simp only [zs, b, sumOver_map, boundedWeight_value]
  rw [← e₂]
  have hzs : (zs.map fun z => (z.1, z.2.1)) = ws.map fun k => (b k.1, k.2.1) := by
    simp only [zs, List.map_map]
    rfl
  have hkeys : zs.map (·.1) = ws.map fun k => b k.1 := by
    simp only [zs, List.map_map]
    rfl
  have hlow := hoff.lowTotal_pos
  have tiny := tiny_le hp hr (hzs ▸ hoff) hle herror close (fun k hk hs => (bounds k hk hs).2.2.2)
    (fun k hk => hoff.nonneg (b k.1, k.2.1) (hzs ▸ List.mem_map_of_mem hk)) attained
  have h : StoredWeights p rescalings (exp (M + c - m)) (p.storedTiny / (1 - p.exponential) ^ r)
      zs := ⟨hoff, fun z hz => by
    obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hz
    exact hstored k hk, by
    rw [hkeys]
    simp only [zs, sumOver_map]
    exact tiny, tinyShare_nonneg hp rescalings (by rwa [List.map_map] at hlow)⟩
  refine h.quotient hp hrow third hn hA hN hD ?_ ?_ negligible
  · rw [e₁ absolute (·.2), show sumOver (fun z => z.2.2 * z.1.value) zs = _ from e₁ id (·.2)]
    exact numerator
  · simp only [zs, sumOver_map]
    exact denominator

omit [Exponential R R] in
private theorem weights_nonneg {ws : List (ComputedKey R × R × R)}
    (masked : ∀ k ∈ ws, k.1.score = none → k.2.1 = 0)
    {P Q : ComputedKey R × R × R → Prop}
    (bounds : ∀ k ∈ ws, k.1.score ≠ none → P k ∧ 0 < k.2.1 ∧ Q k) : ∀ k ∈ ws, 0 ≤ k.2.1 :=
  fun k hk => by
    by_cases hs : k.1.score = none
    · rw [masked k hk hs]
      exact Std.le_refl _
    · exact Std.le_of_lt (bounds k hk hs).2.1

/-- `rounded_attention` of a reference point that lies above the score of some key by no more than
scores may be off: a function may round it, or multiply scores and reference point by the scale
apart, where no weight is too small for the format that it is stored in. -/
theorem rounded_attention_of_le {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    {c : R} (reached : ∃ key ∈ part.keys, ∃ s, key.score = some s ∧
      m ≤ s + c + largestError (part.keys.map (·.toBoundedKey)))
    (attained : 0 < p.storedTiny → ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[j]) := by
  obtain ⟨ws, hkeys, masked, bounds, hstored, hl, ho⟩ :=
    run_weights hp run (unit_le_one ha hD)
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor result
  have hnum := numerator_of_result
    (fun k hk => stored_nonneg (weights_nonneg masked bounds k hk) (hstored k hk)) ho ht
  rw [← Semiring.pow_add] at hnum
  rw [← hkeys, List.map_map] at same reached third ⊢
  rw [← hkeys] at attained
  rw [div_mul]
  refine quotient_of_weights hp hr masked bounds hstored third hj same ?_ (fun h => ?_)
    (fun k hk => close _ (hkeys ▸ List.mem_map_of_mem hk)) ha
    (pow_sub_one_le_gamma hp.accumulation (by omega) hN) (gamma_nonneg hp.accumulation hN) hD hnum
    hl negligible
  · obtain ⟨key, hk, s, hs, h⟩ := reached
    obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact ⟨k, hk', s, hs, h⟩
  · obtain ⟨key, hk, h⟩ := attained h
    obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact ⟨k, hk', h⟩

/-- `run_weights` of a part that has computed with other values than the exact ones, each off by a
relative error of `T - 1`. -/
private theorem run_weights_of_values {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) (hu : part.rescalings ≠ 0 → p.unit ≤ 1) {T : R}
    {keys : List (ComputedKey R × R)}
    (used : part.keys = keys.map fun k => { k.1 with value := k.2 })
    (values : ∀ k ∈ keys, AtMost ((T - 1) * absolute k.1.value) (k.2 - k.1.value)) :
    ∃ ws : List (ComputedKey R × R × R),
      ws.map (·.1) = keys.map (·.1) ∧
      (∀ k ∈ ws, k.1.score = none → k.2.1 = 0) ∧
      (∀ k ∈ ws, k.1.score ≠ none → k.1.computed ≤ m ∧ 0 < k.2.1 ∧
        k.2.1 ≤ exp (k.1.computed - m) * (exp (p.unit * (m - k.1.computed))
          / (1 - p.exponential) ^ (part.rescalings + 1)) ∧
        exp (k.1.computed - m) ≤ k.2.1 * (exp (p.unit * (m - k.1.computed))
          / (1 - p.exponential) ^ (part.rescalings + 1))) ∧
      (∀ k ∈ ws, Stored p.stored (p.storedTiny / (1 - p.exponential) ^ part.rescalings)
        k.2.1 k.2.2) ∧
      AtMost (((1 + p.unit) ^ (part.additions + part.rescalings) - 1)
          * sumOver (fun k => added p.denominator k.2.1 k.2.2) ws)
        (part.l - sumOver (fun k => added p.denominator k.2.1 k.2.2) ws) ∧
      AtMost (((1 + p.accumulation) ^ (part.additions + part.rescalings + 1) * T - 1)
          * sumOver (fun k => k.2.2 * absolute k.1.value) ws)
        (part.o - sumOver (fun k => k.2.2 * k.1.value) ws) := by
  obtain ⟨ws, hkeys, masked, bounds, hstored, hl, ho⟩ := run_weights hp run hu
  rw [used] at hkeys
  obtain ⟨zs, rfl, rfl, hzs⟩ := exists_zip hkeys.symm
  have hsnd : ∀ z ∈ zs, z.2 ∈ zs.map (·.2) := fun z hz => List.mem_map_of_mem hz
  have hkey : ∀ z ∈ zs, z.2.1 = { z.1.1 with value := z.1.2 } := fun z hz => (hzs z hz).symm
  have one : 1 ≤ 1 + p.accumulation := one_le_one_plus hp.accumulation
  refine ⟨zs.map fun z => (z.1.1, z.2.2), by rw [List.map_map, List.map_map]; rfl, ?_, ?_, ?_, ?_,
    ?_⟩
  · intro k hk hs
    obtain ⟨z, hz, rfl⟩ := List.mem_map.mp hk
    exact masked z.2 (hsnd z hz) (by rw [hkey z hz]; exact hs)
  · intro k hk hs
    obtain ⟨z, hz, rfl⟩ := List.mem_map.mp hk
    have h := bounds z.2 (hsnd z hz) (by rw [hkey z hz]; exact hs)
    rw [hkey z hz] at h
    exact h
  · intro k hk
    obtain ⟨z, hz, rfl⟩ := List.mem_map.mp hk
    exact hstored z.2 (hsnd z hz)
  · rw [sumOver_map] at hl ⊢
    exact hl
  · have f₁ : sumOver (fun k : ComputedKey R × R × R => k.2.2 * absolute k.1.value)
        (zs.map (·.2)) = sumOver (fun z => z.2.2.2 * absolute z.1.2) zs := by
      rw [sumOver_map]
      exact sumOver_congr fun z hz => by rw [hkey z hz]
    have f₂ : sumOver (fun k : ComputedKey R × R × R => k.2.2 * k.1.value) (zs.map (·.2))
        = sumOver (fun z => z.2.2.2 * z.1.2) zs := by
      rw [sumOver_map]
      exact sumOver_congr fun z hz => by rw [hkey z hz]
    rw [f₁, f₂] at ho
    rw [sumOver_map, sumOver_map]
    exact numerator_of_values (OrderedField.one_le_pow one _)
      (fun z hz => stored_nonneg (weights_nonneg masked bounds z.2 (hsnd z hz))
        (hstored z.2 (hsnd z hz))) (fun z hz => values z.1 (List.mem_map_of_mem hz)) ho

/-- The same of a part that has computed with other values than the exact ones, each off by a
relative error of T − 1 that comes to that of the numerator: `a` is a unit roundoff that covers
both. -/
theorem rounded_attention_of_values {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {a T : R} (hT : 1 ≤ T) {keys : List (ComputedKey R × R)}
    (used : part.keys = keys.map fun k => { k.1 with value := k.2 })
    (values : ∀ k ∈ keys, AtMost ((T - 1) * absolute k.1.value) (k.2 - k.1.value))
    {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : keys.map (fun k => (k.1.score, k.1.value))
      = row.map (fun k => (k.score, k.value[j])))
    {c : R} (reached : ∃ key ∈ keys, ∃ s, key.1.score = some s ∧
      m ≤ s + c + largestError (keys.map (·.1.toBoundedKey)))
    (attained : 0 < p.storedTiny → ∃ key ∈ keys, key.1.score ≠ none ∧ key.1.computed = m)
    (close : ∀ key ∈ keys, ∀ s, key.1.score = some s →
      AtMost key.1.error (key.1.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (keys.map (·.1.toBoundedKey))) ≤ 1)
    (hA : (1 + p.accumulation) ^ (roundings + 6) * T - 1 ≤ gamma (roundings + 6) a)
    (haN : 0 ≤ a ∧ 0 ≤ gamma (roundings + 6) a) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance { p with accumulation := a } roundings rescalings negligible
      (keys.map (·.1.toBoundedKey))) (o - (attend row)[j]) := by
  obtain ⟨ws, hkeys, masked, bounds, hstored, hl, ho⟩ :=
    run_weights_of_values hp run (unit_le_one ha hD) used values
  obtain ⟨t, rfl, ht⟩ := roundedTimes_factor result
  have hmap : ∀ {γ : Type u} (f : ComputedKey R → γ),
      keys.map (fun k => f k.1) = ws.map (fun k => f k.1) := fun f => by
    have h := congrArg (List.map f) hkeys
    rw [List.map_map, List.map_map] at h
    exact h.symm
  have hmem : ∀ k ∈ ws, ∃ key ∈ keys, key.1 = k.1 := fun k hk => by
    have h := List.mem_map_of_mem (f := (·.1)) hk
    rw [hkeys] at h
    exact List.mem_map.mp h
  have hnum := numerator_of_result
    (fun k hk => stored_nonneg (weights_nonneg masked bounds k hk) (hstored k hk)) ho ht
  have one : 1 ≤ 1 + p.accumulation := one_le_one_plus hp.accumulation
  have h₁ := OrderedField.pow_le_pow one
    (show part.additions + part.rescalings + 1 + 5 ≤ roundings + 6 by omega)
  rw [Semiring.pow_add] at h₁
  have hA' := Std.le_trans (factors_le hT h₁) hA
  rw [div_mul, hmap (·.toBoundedKey)]
  rw [hmap (·.toBoundedKey)] at reached third
  rw [hmap fun k => (k.score, k.value)] at same
  refine quotient_of_weights (p := { p with accumulation := a }) (c := c)
    ⟨hp.unit, haN.1, hp.exponential, hp.exponential_lt, hp.stored, hp.storedTiny⟩ hr masked
    bounds hstored third hj same ?_ (fun h => ?_) ?_ ha hA' haN.2 hD hnum hl negligible
  · obtain ⟨key, hk, s, hs, h⟩ := reached
    have hk' := List.mem_map_of_mem (f := (·.1)) hk
    rw [← hkeys] at hk'
    obtain ⟨k, hk', e⟩ := List.mem_map.mp hk'
    exact ⟨k, hk', s, by rw [e]; exact hs, h⟩
  · obtain ⟨key, hk, h₁, h₂⟩ := attained h
    have hk' := List.mem_map_of_mem (f := (·.1)) hk
    rw [← hkeys] at hk'
    obtain ⟨k, hk', e⟩ := List.mem_map.mp hk'
    exact ⟨k, hk', by rw [e]; exact h₁, by rw [e]; exact h₂⟩
  · intro k hk s hs
    obtain ⟨key, hkey, e⟩ := hmem k hk
    rw [← e] at hs ⊢
    exact close key hkey s hs

/-- **rounded-attention**: every function that computes a row's attention by parts, in any order,
with every operation rounded, is within the tolerance of the exact attention. The scores that it
computed may be off by δ each and by a constant `c` that all keys share, `m` is the largest of them,
a key's part is rescaled at most `rescalings` times and goes through at most `roundings` roundings
of sums and rescalings, and the quotient is rounded once, or up to five times. Where weights are
stored anew and the denominator adds them so, that takes a third of their sum at most. -/
theorem rounded_attention {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) (negligible : R) :
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[j]) := by
  refine rounded_attention_of_le hp run hj same ?_ (fun _ => attained) close hr ha third hN hD
    result negligible
  obtain ⟨top, htop, hscore, rfl⟩ := attained
  obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hscore
  have h₁ := (close top htop s hs).2
  have h₂ := error_le_largestError (List.mem_map_of_mem (f := (·.toBoundedKey)) htop) hscore
  exact ⟨top, htop, s, hs, by grind⟩

/-- `rounded_attention` of a result that is stored in a format of its own. -/
theorem rounded_output {p : Precision R} (hp : Precise p) {m : R} {part : Part R}
    (run : Run p m part) {d : Nat} {row : List (ScoredValue R R d)} {j : Nat} (hj : j < d)
    (same : part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[j])))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (third : p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1)
    (hN : numeral (roundings + 6) * p.accumulation < 1) (hD : 2 * numeral roundings * p.unit < 1)
    {o : R} (result : RoundedTimes p.accumulation 5 (part.o / part.l) o) 
    {u η o' : R} (stored : StoredNear u η o o') (negligible : R) :
    AtMost (storedTolerance p u η roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o' - (attend row)[j]) := by
  have h := rounded_attention hp run hj same attained close hr ha third hN hD result negligible
  obtain ⟨top, htop, hscore, -⟩ := attained
  rw [storedTolerance, exactOutput_eq_attend hj (by rwa [List.map_map])
    ⟨_, List.mem_map_of_mem htop, hscore⟩ p rescalings]
  obtain ⟨_, ⟨θ, hθ, rfl⟩, hη⟩ := stored
  have h₁ := (h.add (hθ.mul ((atMost_absolute (attend row)[j]).add h))).add hη
  have e : o - (attend row)[j] + θ * ((attend row)[j] + (o - (attend row)[j]))
      + (o' - o * (1 + θ)) = o' - (attend row)[j] := by grind
  rwa [e] at h₁

end Attention.Proof
