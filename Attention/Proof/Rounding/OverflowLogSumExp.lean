module

public import Attention.Proof.Rounding.OverflowChanged
import Attention.Proof.Rounding.Dot
import Attention.Proof.Rounding.Sum

public section

/-! # Log-sum-exps that stay in the range

A denominator lies between two numbers that the Spec has, so its logarithm is no larger than the
one and the reciprocal of the other. -/

namespace Attention.Proof

open Spec Model Overflow Exponential Lean.Grind

universe u

attribute [local instance] Semiring.natCast

variable {R : Type u} [OrderedField R]

section
variable {p : Precision R} (hp : Precise p) (ha : p.accumulation < 1)
variable (base : 0 < (1 - p.exponential) * (1 - p.stored) - p.storedTiny)
include hp ha base

/-- More roundings and rescalings leave less. -/
theorem denominatorLeast_mono {n r n' r' : Nat} (hn : n ≤ n') (hr : r ≤ r') :
    denominatorLeast p n' r' ≤ denominatorLeast p n r := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  simp only [denominatorLeast, power_eq]
  have h₁ := OrderedField.pow_le_pow_of_le_one (x := 1 - p.accumulation) (by grind) (by grind) hn
  have h₂ := OrderedField.pow_le_pow_of_le_one (x := 1 - p.exponential) (by grind) (by grind) hr
  have p₁ := OrderedField.pow_pos (x := 1 - p.accumulation) (by grind) n'
  have p₂ := OrderedField.pow_pos (x := 1 - p.exponential) (by grind) r'
  exact OrderedRing.mul_le_mul_of_nonneg_right
    (OrderedField.mul_le_mul (Std.le_of_lt p₁) h₁ (Std.le_of_lt p₂) h₂) (Std.le_of_lt base)

omit base in
/-- The least weight of a score that attains the reference point. -/
theorem base_of_denominatorLeast {roundings rescalings : Nat}
    (least : 0 < denominatorLeast p roundings rescalings) :
    0 < (1 - p.exponential) * (1 - p.stored) - p.storedTiny := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  refine Classical.byContradiction fun hn => ?_
  simp only [denominatorLeast, power_eq] at least
  have p₁ := OrderedField.pow_pos (x := 1 - p.accumulation) (by grind) roundings
  have p₂ := OrderedField.pow_pos (x := 1 - p.exponential) (by grind) rescalings
  have p₃ := OrderedRing.mul_nonneg (Std.le_of_lt (OrderedRing.mul_pos p₁ p₂))
    (b := -((1 - p.exponential) * (1 - p.stored) - p.storedTiny)) (by grind)
  grind

private theorem denominatorLeast_nonneg (n r : Nat) : 0 ≤ denominatorLeast p n r := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  simp only [denominatorLeast, power_eq]
  have p₁ := OrderedField.pow_pos (x := 1 - p.accumulation) (by grind) n
  have p₂ := OrderedField.pow_pos (x := 1 - p.exponential) (by grind) r
  exact Std.le_of_lt (OrderedRing.mul_pos (OrderedRing.mul_pos p₁ p₂) base)

omit ha base in
/-- The denominator adds, for a weight of 1, at least 1 less its errors. -/
private theorem added_least (hσ : p.stored < 1) {w w' : R} (hw : 1 - p.exponential ≤ w)
    (h : Stored p.stored p.storedTiny w w') :
    (1 - p.exponential) * (1 - p.stored) - p.storedTiny ≤ added p.denominator w w' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  obtain ⟨⟨h₁, -⟩, -⟩ := h
  have hw₀ : 0 ≤ w := by grind
  rw [absolute_of_nonneg hw₀] at h₁
  have h₂ : max (p.stored * w) p.storedTiny ≤ p.stored * w + p.storedTiny := by
    have := OrderedRing.mul_nonneg z₄ hw₀
    rw [OrderedField.max_def]
    split <;> grind
  have h₃ := OrderedRing.mul_le_mul_of_nonneg_right hw (c := 1 - p.stored) (by grind)
  have h₄ := OrderedRing.mul_nonneg z₄ hw₀
  cases p.denominator
  · show _ ≤ w
    grind
  · show _ ≤ w'
    grind

variable [Exponential R R]

/-- The denominator of a part in which a score attains the reference point. -/
theorem run_least (hu : p.unit ≤ p.accumulation) (hσ : p.stored < 1) {m : R} {part : Part R}
    (run : Run p m part) : 0 ≤ part.l ∧
      (∀ key ∈ part.keys, key.score ≠ none → key.computed ≤ m) ∧
      ((∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) →
        denominatorLeast p (part.additions + part.rescalings) part.rescalings ≤ part.l) := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  induction run with
  | masked h =>
    refine ⟨Std.le_refl _, fun key hk hs => ?_, fun ⟨key, hk, hs, _⟩ => ?_⟩ <;>
      rw [List.mem_singleton.mp hk] at hs <;> exact absurd h hs
  | @key m x w w' o key hs hm hx hw hw' _ =>
    have pos := (rounded_exp z₆ hm hx hw).1
    refine ⟨added_nonneg (Std.le_of_lt pos) hw', fun key' hk _ => ?_, fun ⟨key', hk, _, e⟩ => ?_⟩
    · rw [List.mem_singleton.mp hk]
      exact hm
    · rw [List.mem_singleton.mp hk] at e
      have hw₁ : 1 - p.exponential ≤ w := by
        obtain ⟨θ, -, rfl⟩ := hx
        obtain ⟨θ', ⟨hθ, -⟩, rfl⟩ := hw
        rw [e, show (m - m) * (1 + θ) = 0 by grind, exp_zero]
        grind
      have := added_least hp hσ hw₁ hw'
      simp only [denominatorLeast, power_eq, Semiring.pow_zero, Nat.add_zero]
      rwa [show (1 : R) * 1 * ((1 - p.exponential) * (1 - p.stored) - p.storedTiny)
        = (1 - p.exponential) * (1 - p.stored) - p.storedTiny by grind]
  | @join m l o parts a k r _ hbound hl _ ih =>
    have nonneg : ∀ x ∈ parts.map (·.l), 0 ≤ x := fun x hx => by
      obtain ⟨part, h, rfl⟩ := List.mem_map.mp hx
      exact (ih part h).1
    have low := le_roundedSum z₁ (by grind) hl nonneg
    have power := OrderedField.pow_pos (x := 1 - p.unit) (by grind) k
    have sum := sumOver_nonneg (f := id) nonneg
    refine ⟨Std.le_trans (OrderedRing.mul_nonneg (Std.le_of_lt power) sum) low,
      fun key hk hs => ?_, fun ⟨key, hk, hs, e⟩ => ?_⟩
    · obtain ⟨part, h, hk⟩ := List.mem_flatMap.mp hk
      exact (ih part h).2.1 key hk hs
    · obtain ⟨part, h, hk⟩ := List.mem_flatMap.mp hk
      have h₁ := (ih part h).2.2 ⟨key, hk, hs, e⟩
      have b := hbound part h
      have h₂ := denominatorLeast_mono hp ha base (n := part.additions + part.rescalings)
        (n' := a + r) (r := part.rescalings) (r' := r) (by omega) b.2
      have h₃ := le_sumOver (f := id) nonneg (List.mem_map_of_mem (f := (·.l)) h)
      have h₄ := Std.le_trans (Std.le_trans h₂ h₁) h₃
      have n₀ := denominatorLeast_nonneg hp ha base (a + r) r
      have h₅ := pow_le_left (x := 1 - p.accumulation) (y := 1 - p.unit) (by grind) (by grind) k
      have h₆ := OrderedField.mul_le_mul h₅.1 h₅.2 n₀ h₄
      have e : denominatorLeast p (a + k + r) r
          = (1 - p.accumulation) ^ k * denominatorLeast p (a + r) r := by
        simp only [denominatorLeast, power_eq]
        rw [show a + k + r = k + (a + r) by omega, Semiring.pow_add]
        grind
      show denominatorLeast p (a + k + r) r ≤ l
      rw [e]
      exact Std.le_trans h₆ low
  | @rescale m m' x α l o part _ hm hx hα hl _ ih =>
    obtain ⟨i₁, i₂, i₃⟩ := ih
    have pos := (rounded_exp z₆ hm hx hα).1
    have h₀ := OrderedRing.mul_nonneg (Std.le_of_lt pos) i₁
    have low : (1 - p.accumulation) * (α * part.l) ≤ l := by
      obtain ⟨θ, ⟨hθ, -⟩, rfl⟩ := hl
      have := OrderedRing.mul_le_mul_of_nonneg_left (a := 1 - p.accumulation) (b := 1 + θ)
        (by grind) h₀
      grind
    refine ⟨Std.le_trans (OrderedRing.mul_nonneg (by grind) h₀) low,
      fun key hk hs => Std.le_trans (i₂ key hk hs) hm, fun ⟨key, hk, hs, e⟩ => ?_⟩
    have e₁ : m = m' := Std.le_antisymm hm (by
      have := i₂ key hk hs
      grind)
    have hα₁ : 1 - p.exponential ≤ α := by
      obtain ⟨θ, -, rfl⟩ := hx
      obtain ⟨θ', ⟨hθ, -⟩, rfl⟩ := hα
      rw [e₁, show (m' - m') * (1 + θ) = 0 by grind, exp_zero]
      grind
    have h₁ := i₃ ⟨key, hk, hs, by grind⟩
    have n₀ := denominatorLeast_nonneg hp ha base (part.additions + part.rescalings)
      part.rescalings
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (OrderedField.mul_le_mul
      (show 0 ≤ 1 - p.exponential by grind) hα₁ n₀ h₁) (c := 1 - p.accumulation) (by grind)
    have e₂ : denominatorLeast p (part.additions + (part.rescalings + 1)) (part.rescalings + 1)
        = (1 - p.accumulation) * ((1 - p.exponential)
          * denominatorLeast p (part.additions + part.rescalings) part.rescalings) := by
      simp only [denominatorLeast, power_eq]
      rw [show part.additions + (part.rescalings + 1) = part.additions + part.rescalings + 1 by
        omega, Semiring.pow_succ, Semiring.pow_succ]
      generalize (1 - p.exponential) * (1 - p.stored) - p.storedTiny = x
      grind
    show denominatorLeast p (part.additions + (part.rescalings + 1)) (part.rescalings + 1) ≤ l
    rw [e₂]
    exact Std.le_trans h₂ low

end

/-! ## m + ln l -/

variable [NaturalExp R]

/-- A logarithm of a number between two others. -/
theorem log_atMost {least most l x : R} (h₀ : 0 < least) (h₁ : least ≤ l) (h₂ : l ≤ most)
    (e : exp x = l) : AtMost (max most (1 / least)) x := by
  have one := OrderedRing.zero_lt_one (R := R)
  obtain ⟨m₁, m₂⟩ := le_max most (1 / least)
  have k₁ := NaturalExp.one_add_le_exp x
  have k₂ := NaturalExp.one_add_le_exp (0 - x)
  have k₃ := exp_sub_mul (R := R) (0 : R) x
  rw [exp_zero, e] at k₃
  have k₄ : exp (0 - x) = 1 / l := by
    have : l ≠ 0 := by grind
    grind
  have k₅ := OrderedField.div_le_div_left (a := 1) (Std.le_of_lt one) h₀ h₁
  exact ⟨by grind, by grind⟩

/-- The numbers of which a log-sum-exp is made. -/
private theorem limited_logarithm {largest u B reference m l logl : R} {a b c k : Nat} (hu : 0 ≤ u)
    (hak : a + k + c ≤ 4) (hbc : b + c ≤ 4) (hlog : AtMost B logl) (hm : AtMost reference m)
    (e : exp logl = l)
    (fits : (1 + u) ^ 8 * (reference + (B + numeral 4 * u * (B + 1))) ≤ largest)
    {x y z L : Option R}
    (hy : Limited largest (fun exact y => AtMost (numeral a * u * (absolute exact + 1)) (y - exact))
      logl y)
    (hz : ∀ r ∈ y, LimitedTimes largest u k r z) (hx : LimitedTimes largest u b m x)
    (hL : ∀ r ∈ x, ∀ s ∈ z, LimitedTimes largest u c (r + s) L) :
    ∃ L', L = some L' ∧ ComputedLogSumExp u m l L' := by
  have one := OrderedRing.zero_lt_one (R := R)
  have n₄ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 4) hu
  have hB := hlog.nonneg
  have hR := hm.nonneg
  have hY := OrderedRing.mul_nonneg n₄ (b := B + 1) (by grind)
  have pow : ∀ n, 1 ≤ (1 + u) ^ n := fun n => OrderedField.one_le_pow (by grind) n
  have hau : numeral a * u * (absolute logl + 1) ≤ numeral 4 * u * (B + 1) := by
    have h₁ : (numeral a : R) ≤ numeral 4 := numeral_le_numeral (by omega)
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hu
    have h₃ := absolute_le hlog
    have h₄ := absolute_nonneg logl
    exact OrderedField.mul_le_mul (OrderedRing.mul_nonneg (numeral_nonneg a) hu) h₂ (by grind)
      (by grind)
  -- All is below the last.
  have below : ∀ n, n ≤ 8 → (1 + u) ^ n * (reference + (B + numeral 4 * u * (B + 1))) ≤ largest :=
    fun n hn => Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedField.pow_le_pow (by grind) hn) (by grind)) fits
  have total := below 0 (by omega)
  rw [Semiring.pow_zero, Semiring.one_mul] at total
  obtain ⟨y', rfl, r₁⟩ := hy (hlog.mono (by grind))
  have b₁ : AtMost (B + numeral 4 * u * (B + 1)) y' := by
    have := hlog.add (r₁.mono hau)
    rwa [show logl + (y' - logl) = y' by grind] at this
  generalize B + numeral 4 * u * (B + 1) = Y at *
  have scale : ∀ {n X}, n ≤ 4 → 0 ≤ X → (1 + u) ^ n * X ≤ (1 + u) ^ 4 * X := fun hn hX =>
    OrderedRing.mul_le_mul_of_nonneg_right (OrderedField.pow_le_pow (by grind) hn) hX
  have below₄ := below 4 (by omega)
  have p₄ := pow 4
  have q₁ := OrderedRing.mul_nonneg (a := (1 + u) ^ 4) (by grind) hR
  have q₂ := OrderedRing.mul_nonneg (a := (1 + u) ^ 4) (by grind) b₁.nonneg
  rw [Semiring.left_distrib] at below₄
  obtain ⟨z', rfl, r₂, b₂⟩ := limitedTimes hu (hz y' rfl) b₁
    (Std.le_trans (scale (by omega) b₁.nonneg) (by grind))
  obtain ⟨x', rfl, r₃, b₃⟩ := limitedTimes hu hx hm
    (Std.le_trans (scale (by omega) hR) (by grind))
  have b₄ := (b₃.mono (scale (by omega) hR)).add (b₂.mono (scale (by omega) b₁.nonneg))
  have e₈ : (1 + u) ^ 8 * (reference + Y) = (1 + u) ^ 4 * ((1 + u) ^ 4 * reference
      + (1 + u) ^ 4 * Y) := by
    rw [show (8 : Nat) = 4 + 4 from rfl, Semiring.pow_add]
    grind
  obtain ⟨L', rfl, r₄, -⟩ := limitedTimes hu (hL x' rfl z' rfl) b₄
    (Std.le_trans (scale (by omega) b₄.nonneg) (by rwa [← e₈]))
  exact ⟨L', rfl, a, b, c, k, logl, x', y', z', hak, hbc, e, r₁, r₂, r₃, r₄⟩

/-- **log-sum-exp-finite**: a log-sum-exp whose numbers fit is a number, and one that a function
without a largest number may compute, of any part in which a score attains the reference point. -/
theorem limitedLogSumExp {p : Precision R} (hp : Precise p) (hu : p.unit ≤ p.accumulation)
    (ha : p.accumulation < 1) (hσ : p.stored < 1) {largest : Largest R} {reference : R}
    {roundings rescalings : Nat} {row : List (BoundedKey R)} {m : R} {part : Part R}
    (run : Run p m part) (hr : part.rescalings ≤ rescalings)
    (hd : part.additions + part.rescalings ≤ roundings)
    (most : part.l ≤ denominatorSize p roundings rescalings row)
    (fits : logSumExpFits p largest roundings rescalings reference row)
    (hm : AtMost reference m)
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) {L : Option R}
    (h : LimitedLogSumExp largest.accumulator p.unit m part.l L) :
    ∃ L', L = some L' ∧ ComputedLogSumExp p.unit m part.l L' := by
  obtain ⟨z₁, z₂, z₃, z₄, z₅, z₆, one⟩ := sizes hp
  simp only [logSumExpFits, Bool.and_eq_true, Bool.not_eq_true', decide_eq_false_iff_not,
    decide_eq_true_eq, logSumExpSize, power_eq] at fits
  obtain ⟨least, fits⟩ := fits
  have base := base_of_denominatorLeast hp ha (Std.not_le.mp least)
  have low := Std.le_trans (denominatorLeast_mono hp ha base hd hr)
    ((run_least hp ha base hu hσ run).2.2 attained)
  obtain ⟨a, b, c, k, logl, x, y, z, hak, hbc, e, hy, hz, hx, hL⟩ := h
  have hlog := log_atMost (by grind) low most e
  exact limited_logarithm hp.unit hak hbc hlog hm e fits hy hz hx hL

variable {q_len kv_len d d_v : Nat} {p : Precision R} {f : ScoreFormats R} {largest : Largest R}
variable {additions roundings rescalings : Nat} {scale σ₁ σ₂ σ : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
variable {t : Fin d_v} {cols : List (Option (Fin kv_len))}
variable {computed : Option (Fin kv_len) → Option R}

/-- **lse-overflow-excluded**: so is the log-sum-exp that such a function writes beside a component
of its output, of all that the query sees and the sink: a number, and within its tolerance. -/
theorem limited_logSumExp_matrices
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (ha : p.accumulation < 1)
    (hstored : p.stored < 1) (htiny : p.storedTiny < 1 - p.exponential) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hf₂ : 0 ≤ f.scoresTiny)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    (fits : changes.outputFits p f largest additions roundings rescalings σ₁ σ₂ σ mask Q K V i t)
    (fits' : changes.logSumExpFits p f largest additions roundings rescalings σ₁ σ₂ σ mask Q K i)
    (scores : LimitedScores p f largest additions σ₁ σ₂ σ changes mask Q K i computed)
    {m : R} {part : LimitedPart R}
    (run : LimitedRun p largest (changes.rowSize p f additions σ₁ σ₂ σ mask Q K i) m part)
    (keys : part.keys = computedChangedKeys p f additions changes true scale mask Q K V i t cols
      (fun col => (computed col).getD 0) (columnValue V t))
    (attained : ∃ col, changes.sees mask i col ∧ computed col = some m)
    (hr : part.rescalings ≤ rescalings) (ha' : part.additions + part.rescalings ≤ roundings)
    (hD : numeral (roundings + 1) * p.unit < 1)
    (hg : denominatorError p roundings rescalings (boundedWeights p rescalings
      (changedKeys p f additions changes true scale mask Q K V i t cols)) < 1)
    (h4 : numeral 4 * p.unit < 1) {L E M : R}
    (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : logSumExpFactor p roundings rescalings
      (changedKeys p f additions changes true scale mask Q K V i t cols) ≤ exp E)
    {result : Option R}
    (written : ∀ l ∈ part.l, LimitedLogSumExp largest.accumulator p.unit m l result) :
    ∃ L', result = some L' ∧
      AtMost (logSumExpTolerance p E (L - M) M (largestError
          (changedKeys p f additions changes true scale mask Q K V i t cols)))
        (L' - L) := by
  obtain ⟨h₁, h₂, h₃⟩ := limitedRow (scale := scale) (V := V) (t := t) (cols := cols) hp hu ha
    hstored htiny hf hf₀ hf₂ hcap fits scores
  obtain ⟨l, o, e, -, h₄, h₅, -, h₆, -⟩ := h₃ (fun col _ => atMost_absolute _) hcols run keys
    attained hr ha'
  have hm : AtMost (changes.rowSize p f additions σ₁ σ₂ σ mask Q K i) m := by
    obtain ⟨col, seen, e⟩ := attained
    obtain ⟨s, e', h⟩ := h₁ col seen
    rw [e] at e'
    obtain rfl := Option.some.inj e'
    exact h
  have same : denominatorSize p roundings rescalings
      (changes.boundedColumns mask i (columnValue V t))
        = denominatorSize p roundings rescalings (changes.boundedColumns mask i fun _ => 0) :=
    denominatorSize_eq (xs := changes.columns) (.refl _)
      (f := fun col => ⟨if changes.sees mask i col then some 0 else none, 0, columnValue V t col⟩)
      (g := fun col => ⟨if changes.sees mask i col then some 0 else none, 0, 0⟩)
      (fun _ _ => .rfl) p roundings rescalings
  rw [same] at h₆
  obtain ⟨L', rfl, h₇⟩ := limitedLogSumExp hp hu ha hstored h₄ hr ha' h₆ fits' hm h₅
    (written l e)
  exact ⟨L', rfl, rounded_logSumExp_matrices archimedean hp hu hu' hf hf₀ hf₁ hd hσ hcap h₂ h₄ keys
    h₅ hr ha' hD hg h4 exact maximum errors h₇⟩

end Attention.Proof
