module

public import Attention.Proof.Rounding.LogSumExp
public import Attention.Proof.Rounding.Underflow
public import Attention.Spec.UnderflowTolerance

public section

/-! # Costs of numbers that underflow, as shares of the sum of the weights

`Proof/Rounding/UnderflowCosts.lean` has the costs of the keys, by the largest weights that a run
may compute; here they are at most those that the tolerance counts, times the sum of the weights.
Source: docs/tolerances.md, section 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind Underflow

universe u

variable {R : Type u} [OrderedField R]

omit [OrderedField R] in
/-- The bounded key of a key of a list is among those of the list. -/
theorem toBounded_mem {keys : List (ComputedKey R)} {k : ComputedKey R} (h : k ∈ keys) :
    k.toBoundedKey ∈ keys.map (·.toBoundedKey) := List.mem_map_of_mem h

variable [Exponential R R] {p : Precision R} {ν m : R}

/-- What is known of a part: the sum of its weights, its denominator, and the largest weights that
its keys may have. -/
theorem shares_of_run (hp : Precise p) {part : Part R} (run : Run p m part)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m)
    {c : R} (close : ∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost key.error (key.computed - (s + c)))
    {roundings rescalings : Nat} (hr : part.rescalings ≤ rescalings)
    (ha : part.additions + part.rescalings ≤ roundings)
    (hu : p.unit ≤ 1) (hD : numeral (roundings + 1) * p.unit < 1) :
    ∃ (b : ComputedKey R → BoundedWeight R) (W : R),
      boundedWeights p rescalings (part.keys.map (·.toBoundedKey)) = part.keys.map b ∧
      (∀ k, (b k).value = k.value) ∧ (∀ k ∈ part.keys, 0 ≤ (b k).weight * (b k).factor) ∧
      0 < W ∧ 0 < lowTotal (part.keys.map b) ∧
      (denominatorError p roundings rescalings (part.keys.map b) < 1 →
        W * (1 - denominatorError p roundings rescalings (part.keys.map b)) ≤ part.l) ∧
      (∀ ν, 0 ≤ ν → ν / (1 - p.exponential) ^ part.rescalings
        ≤ W * underflowShare p ν rescalings (part.keys.map b)) ∧
      ∀ k ∈ part.keys, k.score ≠ none → most p m part.rescalings k
        ≤ W * ((b k).weight * (b k).factor / lowTotal (part.keys.map b)) := by
  obtain ⟨ws, hkeys, hmasked, hws, hstored, hl, -⟩ := run_weights hp run fun _ => hu
  have attained' := attained
  obtain ⟨top, htop, hscore, hm₀⟩ := attained
  have hmax : ∀ {key}, key ∈ part.keys →
      key.score ∈ (part.keys.map (·.toBoundedKey)).map (·.score) := fun h =>
    List.mem_map_of_mem (f := (·.score)) (toBounded_mem h)
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
      exact ⟨(close key hk s hs').nonneg, error_le_largestError (toBounded_mem hk) hs⟩
  generalize hΔ : largestError (part.keys.map (·.toBoundedKey)) = Δ at herror
  have hm : m ≤ M + c + Δ := by
    obtain ⟨s₀, hs₀⟩ := Option.ne_none_iff_exists'.mp hscore
    have h₁ := (close top htop s₀ hs₀).2
    have h₂ := hle top htop s₀ hs₀
    have h₃ := (herror top htop hscore).2
    clear hl hD
    grind
  let b : ComputedKey R → BoundedWeight R := fun k =>
    boundedWeight p rescalings (some M) Δ k.toBoundedKey
  have hrow : boundedWeights p rescalings (part.keys.map (·.toBoundedKey)) = part.keys.map b := by
    rw [boundedWeights_eq hM, hΔ, List.map_map]
    rfl
  have hmem : ∀ {k}, k ∈ ws → k.1 ∈ part.keys := fun hk => hkeys ▸ List.mem_map_of_mem hk
  have hoff : OffByFactors (exp (M + c - m)) (ws.map fun k => (b k.1, k.2.1)) :=
    offByFactors_of_stored hp hr ⟨top, htop, hscore⟩ hm hle herror close hkeys hmasked hws
  have hb : part.keys.map b = ws.map fun k => b k.1 := by
    rw [← hkeys, List.map_map]
    rfl
  have hlow := hoff.lowTotal_pos
  have htotal := hoff.lowTotal_le
  have hW := hoff.weights_pos
  simp only [List.map_map, Function.comp_def, sumOver_map] at hlow htotal hW
  have tiny : ∀ ν, 0 ≤ ν → ν / (1 - p.exponential) ^ part.rescalings
      ≤ sumOver (fun k => k.2.1) ws * underflowShare p ν rescalings (ws.map fun k => b k.1) :=
    fun ν hν => tiny_le (p := { p with storedTiny := ν })
      ⟨hp.unit, hp.accumulation, hp.exponential, hp.exponential_lt, hp.stored, hν⟩ hr
      (M := M) (Δ := Δ) hoff (fun k hk => hle k.1 (hmem hk)) (fun k hk => herror k.1 (hmem hk))
      (fun k hk => close k.1 (hmem hk)) (fun k hk hs => (hws k hk hs).2.2.2)
      (fun k hk => hoff.nonneg (b k.1, k.2.1)
        (List.mem_map_of_mem (f := fun k : ComputedKey R × R × R => (b k.1, k.2.1)) hk))
      (fun _ => by
        obtain ⟨key, hk, h⟩ := attained'
        rw [← hkeys] at hk
        obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
        exact ⟨k, hk', h⟩)
  have hweights : StoredWeights p rescalings (exp (M + c - m))
      (p.storedTiny / (1 - p.exponential) ^ part.rescalings) (ws.map fun k => (b k.1, k.2)) := ⟨by
      simp only [List.map_map]
      exact hoff, fun z hz => by
    obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hz
    exact hstored k hk, by
    simp only [List.map_map, sumOver_map]
    exact tiny p.storedTiny hp.storedTiny,
    tinyShare_nonneg hp rescalings (by simp only [List.map_map]; exact hlow)⟩
  have hzs : (ws.map fun k => (b k.1, k.2)).map (·.1) = part.keys.map b := by
    rw [hb, List.map_map]
    rfl
  have hden := fun hg => denominator_within hp hweights (by simpa only [sumOver_map] using hW)
    (gamma_nonneg hp.unit hD) (pow_sub_one_le_gamma hp.unit (Nat.le_succ_of_le ha) hD)
    hg (l := part.l) (by simpa only [sumOver_map] using hl)
  rw [hzs] at hden
  simp only [sumOver_map] at hden
  -- The largest weights are within the factors of the exact ones.
  let big : ComputedKey R → R := fun k => match k.score with
    | none => 0
    | some _ => most p m part.rescalings k
  have hbig : OffByFactors (exp (M + c - m))
      ((part.keys.map fun k => (k, big k)).map fun k => (b k.1, k.2)) := by
    refine offByFactors hp hr ⟨top, htop, hscore⟩ hm hle herror close ?_ (fun k hk hs => ?_)
      fun k hk hs => ?_
    · rw [List.map_map]
      exact List.map_id _
    · obtain ⟨k, hk, rfl⟩ := List.mem_map.mp hk
      have hs' : k.score = none := hs
      show big k = 0
      simp only [big, hs']
    · obtain ⟨k, hk₀, rfl⟩ := List.mem_map.mp hk
      have hs₁ : k.score ≠ none := hs
      obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs₁
      have e : big k = most p m part.rescalings k := by simp only [big, hs']
      show k.computed ≤ m ∧ 0 < big k ∧ big k ≤ exp (k.computed - m)
        * (exp (p.unit * (m - k.computed)) / (1 - p.exponential) ^ (part.rescalings + 1)) ∧
        exp (k.computed - m) ≤ big k
        * (exp (p.unit * (m - k.computed)) / (1 - p.exponential) ^ (part.rescalings + 1))
      rw [e]
      clear e
      rw [← hkeys] at hk₀
      obtain ⟨w, hw, rfl⟩ := List.mem_map.mp hk₀
      obtain ⟨i₁, i₂, i₃, i₄⟩ := hws w hw hs₁
      refine ⟨i₁, most_pos hp _, Std.le_refl _, Std.le_trans i₄ ?_⟩
      refine OrderedRing.mul_le_mul_of_nonneg_right i₃ (OrderedField.div_nonneg
        (Std.le_of_lt (exp_pos _)) (OrderedField.pow_pos ?_ _))
      have := hp.exponential_lt
      grind
  have hin : ∀ k ∈ part.keys,
      (b k, big k) ∈ (part.keys.map fun k => (k, big k)).map fun k => (b k.1, k.2) :=
    fun k hk => List.mem_map.mpr ⟨(k, big k), List.mem_map.mpr ⟨k, hk, rfl⟩, rfl⟩
  have hone : ∀ k ∈ part.keys, 0 ≤ (b k).weight * (b k).factor := fun k hk =>
    OrderedRing.mul_nonneg (hbig.weight_nonneg _ (hin k hk)) (Std.le_trans
      (Std.le_of_lt OrderedRing.zero_lt_one) (hbig.one_le_factor _ (hin k hk)))
  refine ⟨b, sumOver (fun k => k.2.1) ws, hrow, fun k => boundedWeight_value .., hone, hW, ?_, ?_,
    ?_, ?_⟩
  · rw [hb]
    exact hlow
  · exact fun hg => (hden hg).1
  · rw [hb]
    exact tiny
  · intro k hk hs
    obtain ⟨s, hs'⟩ := Option.ne_none_iff_exists'.mp hs
    have h₁ : big k ≤ exp (M + c - m) * ((b k).weight * (b k).factor) :=
      hbig.upper _ (hin k hk)
    rw [show big k = most p m part.rescalings k by simp only [big, hs']] at h₁
    refine Std.le_trans h₁ ?_
    rw [hb]
    have e := OrderedField.mul_div_cancel (b := lowTotal (ws.map fun k => b k.1))
      (by have := hlow; grind) ((b k).weight * (b k).factor)
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right htotal
      (OrderedField.div_nonneg (hone k hk) hlow)
    rwa [Semiring.mul_assoc, e] at h₂

/-- The costs of the keys, against the sum of the weights. -/
theorem cost_le (hp : Precise p) (hν : 0 ≤ ν) {keys : List (ComputedKey R)}
    {r rescalings : Nat} (hr : r ≤ rescalings) {b : ComputedKey R → BoundedWeight R} {W : R}
    (hrow : boundedWeights p rescalings (keys.map (·.toBoundedKey)) = keys.map b)
    (hpos : ∀ k ∈ keys, 0 ≤ (b k).weight * (b k).factor) (hW : 0 < W)
    (hlow : 0 < lowTotal (keys.map b))
    (tiny : ν / (1 - p.exponential) ^ r ≤ W * underflowShare p ν rescalings (keys.map b))
    (hmost : ∀ k ∈ keys, k.score ≠ none →
      most p m r k ≤ W * ((b k).weight * (b k).factor / lowTotal (keys.map b)))
    {f : ComputedKey R → R} {f' : BoundedWeight R → R} (hf : ∀ k, f k = f' (b k))
    (hf₀ : ∀ k, 0 ≤ f k) :
    sumOver (cost p ν m r f) keys
      ≤ W * underflowCost p ν rescalings (keys.map (·.toBoundedKey)) f' := by
  rw [underflowCost]
  simp only [hrow]
  rw [sumOver_map, sumOver_map, Semiring.left_distrib, ← sumOver_mul_left, ← sumOver_mul_left,
    ← sumOver_add]
  have hq : 0 < 1 - p.exponential := by have := hp.exponential_lt; grind
  have htiny₀ := OrderedField.div_nonneg hν (OrderedField.pow_pos hq r)
  have two : (numeral 2 : R) = 2 := by
    rw [numeral_succ, numeral_succ, numeral_eq, Semiring.natCast_zero]
    grind
  have three : (numeral 3 : R) = 3 := by
    rw [numeral_succ, two]
    grind
  generalize underflowShare p ν rescalings (keys.map b) = t at *
  generalize lowTotal (keys.map b) = low at *
  have ht : 0 ≤ t := by
    refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hW (b := -t) (by grind)
    grind
  refine sumOver_le_sumOver fun k hk => ?_
  have hn : (0 : R) ≤ numeral (rescalings + 2) := numeral_nonneg _
  have hshare := OrderedField.div_nonneg (hpos k hk) hlow
  have hpow := three_pow (R := R) (rescalings + 2)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  rw [lostShare, two, three, power_eq]
  have hf₁ : 0 ≤ f' (b k) := hf k ▸ hf₀ k
  have units : ∀ a : Nat, numeral (r + a) * (ν / (1 - p.exponential) ^ r)
      ≤ W * (numeral (rescalings + a) * t) := fun a => by
    have := OrderedField.mul_le_mul (numeral_nonneg (R := R) (r + a))
      (numeral_le_numeral (Nat.add_le_add_right hr a)) htiny₀ tiny
    grind
  unfold cost
  cases hs : k.score with
  | none =>
    have := OrderedRing.mul_nonneg (Std.le_of_lt hW) (OrderedRing.mul_nonneg (le_smaller
      (OrderedRing.mul_nonneg (a := (3 : R) ^ (rescalings + 2)) (by grind) hshare)
      (OrderedRing.mul_nonneg hn ht)) hf₁)
    simp only
    grind
  | some s =>
    have h₁ : (3 : R) ^ (r + 2) * most p m r k
        ≤ W * (3 ^ (rescalings + 2) * ((b k).weight * (b k).factor / low)) := by
      have := OrderedField.mul_le_mul (a := (3 : R) ^ (r + 2)) (by
        have := three_pow (R := R) (r + 2)
        grind) (OrderedField.pow_le_pow (x := (3 : R)) (by grind) (Nat.add_le_add_right hr 2))
        (Std.le_of_lt (most_pos hp k)) (hmost k hk (by simp [hs]))
      grind
    have h₂ : smaller ((3 : R) ^ (r + 2) * most p m r k)
        (numeral (r + 2) * (ν / (1 - p.exponential) ^ r))
        ≤ W * smaller (3 ^ (rescalings + 2) * ((b k).weight * (b k).factor / low))
          (numeral (rescalings + 2) * t) := by
      have least : ∀ {x y z : R}, z ≤ W * x → z ≤ W * y → z ≤ W * smaller x y :=
        fun h h' => by
          rw [smaller]
          split <;> assumption
      exact least (Std.le_trans (smaller_le _ _).1 h₁) (Std.le_trans (smaller_le _ _).2 (units 2))
    have h₃ := OrderedRing.mul_le_mul_of_nonneg_right h₂ hf₁
    have h₄ := units 6
    simp only [hf]
    generalize smaller ((3 : R) ^ (r + 2) * most p m r k)
        (numeral (r + 2) * (ν / (1 - p.exponential) ^ r)) = x at *
    generalize smaller (3 ^ (rescalings + 2) * ((b k).weight * (b k).factor / low))
          (numeral (rescalings + 2) * t) = y at *
    clear h₁ h₂ hmost tiny units
    grind

/-- A cost that bounds a number that is not negative is not negative. -/
theorem cost_nonneg_of {rescalings : Nat} {row : List (BoundedKey R)}
    {f : BoundedWeight R → R} {W s : R} (hW : 0 < W) (hs : 0 ≤ s)
    (h : s ≤ W * underflowCost p ν rescalings row f) :
    0 ≤ underflowCost p ν rescalings row f := by
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.mul_pos hW (b := -underflowCost p ν rescalings row f) (by grind)
  grind

end Attention.Proof
