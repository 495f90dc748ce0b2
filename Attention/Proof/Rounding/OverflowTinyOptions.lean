module

public import Attention.Proof.Rounding.OverflowTiny
public import Attention.Proof.Rounding.UnderflowLogSumExp
public import Attention.Spec.OverflowUnderflowOptions
import Attention.Proof.Rounding.Dot
import Attention.Proof.Rounding.OverflowDropout
import Attention.Proof.Rounding.OverflowLogSumExp
import Attention.Proof.Rounding.OverflowRun
import Attention.Proof.Rounding.Sum

public section

/-! # Log-sum-exps and dropout that underflow and stay in the range -/

namespace Attention.Proof

open Spec Model Overflow Exponential Lean.Grind

universe u

attribute [local instance] Ring.intCast Semiring.natCast

variable {R : Type u} [OrderedField R] [NaturalExp R]

omit [NaturalExp R] in
private theorem grow {u ν X Y : R} (hu : 0 ≤ u) {k n j : Nat} (hk : k ≤ n) (hj : k ≤ j)
    (hν : 0 ≤ ν) (hX : 0 ≤ X) (hY : X + numeral j * ν ≤ Y) :
    (1 + u) ^ k * (X + numeral k * ν) ≤ (1 + u) ^ n * Y := by
  have one := OrderedRing.zero_lt_one (R := R)
  have n₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) k) hν
  have n₂ := OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral (R := R) hj) hν
  exact OrderedField.mul_le_mul (Std.le_of_lt (OrderedField.pow_pos (by grind) k))
    (OrderedField.pow_le_pow (by grind) hk) (by grind) (by grind)

/-- The numbers of which a log-sum-exp is made. -/
private theorem limited_tiny_logarithm {largest u ν B reference m l logl : R} {a b c k : Nat}
    (hu : 0 ≤ u) (hν : 0 ≤ ν) (hak : a + k + c ≤ 4) (hbc : b + c ≤ 4) (hlog : AtMost B logl)
    (hm : AtMost reference m) (e : exp logl = l)
    (fits : (1 + u) ^ 8 * (reference + (B + numeral 4 * u * (B + 1)) + numeral 9 * ν) ≤ largest)
    {x y z s L : Option R}
    (hy : Limited largest (fun exact y => AtMost (numeral a * u * (absolute exact + 1)) (y - exact))
      logl y)
    (hz : ∀ r ∈ y, LimitedTinyTimes largest u ν k r z) (hx : LimitedTinyTimes largest u ν b m x)
    (hs : ∀ r ∈ x, ∀ t ∈ z, Limited largest (fun exact s => AtMost ν (s - exact)) (r + t) s)
    (hL : ∀ r ∈ s, LimitedTinyTimes largest u ν c r L) :
    ∃ L', L = some L' ∧ TinyLogSumExp u ν m l L' := by
  have one := OrderedRing.zero_lt_one (R := R)
  have n₄ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 4) hu
  have hB := hlog.nonneg
  have hR := hm.nonneg
  have hY := OrderedRing.mul_nonneg n₄ (b := B + 1) (by grind)
  have hau : numeral a * u * (absolute logl + 1) ≤ numeral 4 * u * (B + 1) := by
    have h₁ : (numeral a : R) ≤ numeral 4 := numeral_le_numeral (by omega)
    have h₂ := OrderedRing.mul_le_mul_of_nonneg_right h₁ hu
    have h₃ := absolute_le hlog
    have h₄ := absolute_nonneg logl
    exact OrderedField.mul_le_mul (OrderedRing.mul_nonneg (numeral_nonneg a) hu) h₂ (by grind)
      (by grind)
  have nine : (numeral 9 : R) * ν = numeral 4 * ν + numeral 4 * ν + ν := by
    rw [show 9 = 4 + 4 + 1 from rfl]
    simp only [numeral_eq, Semiring.natCast_add, Semiring.natCast_one]
    grind
  have n₅ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) 4) hν
  have whole : 0 ≤ reference + (B + numeral 4 * u * (B + 1)) + numeral 9 * ν := by grind
  have below : ∀ n, n ≤ 8 → (1 + u) ^ n
      * (reference + (B + numeral 4 * u * (B + 1)) + numeral 9 * ν) ≤ largest :=
    fun n hn => Std.le_trans (OrderedRing.mul_le_mul_of_nonneg_right
      (OrderedField.pow_le_pow (by grind) hn) whole) fits
  have total := below 0 (by omega)
  rw [Semiring.pow_zero, Semiring.one_mul] at total
  obtain ⟨y', rfl, r₁⟩ := hy (hlog.mono (by grind))
  have b₁ : AtMost (B + numeral 4 * u * (B + 1)) y' := by
    have := hlog.add (r₁.mono hau)
    rwa [show logl + (y' - logl) = y' by grind] at this
  generalize B + numeral 4 * u * (B + 1) = Y at *
  have b₀ := b₁.nonneg
  have pow : ∀ n, 1 ≤ (1 + u) ^ n := fun n => OrderedField.one_le_pow (by grind) n
  obtain ⟨z', rfl, r₂, b₂⟩ := limitedTinyTimes hu hν (hz y' rfl) b₁
    (Std.le_trans (grow (n := 4) (j := 4) hu (by omega) (by omega) hν b₀ (by grind))
      (below 4 (by omega)))
  obtain ⟨x', rfl, r₃, b₃⟩ := limitedTinyTimes hu hν hx hm
    (Std.le_trans (grow (n := 4) (j := 4) hu (by omega) (by omega) hν hR (by grind))
      (below 4 (by omega)))
  -- The sum, in which there are 4 − c roundings.
  have b₂' := b₂.mono (grow (n := 4 - c) (j := 4 - c) hu (by omega) (by omega) hν b₀
    (Std.le_refl _))
  have b₃' := b₃.mono (grow (n := 4 - c) (j := 4 - c) hu (by omega) (by omega) hν hR
    (Std.le_refl _))
  have four : (numeral 4 : R) * ν = numeral (4 - c) * ν + numeral c * ν := by
    have : 4 = (4 - c) + c := by omega
    rw [show (numeral 4 : R) = numeral ((4 - c) + c) by rw [← this]]
    simp only [numeral_eq, Semiring.natCast_add]
    grind
  have n₆ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (4 - c)) hν
  have n₇ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) c) hν
  have b₄ := b₃'.add b₂'
  have fit₄ := below (4 - c) (by omega)
  have p₄ := pow (4 - c)
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_left (a := reference + numeral (4 - c) * ν
    + (Y + numeral (4 - c) * ν) + (ν + numeral c * ν)) (b := reference + Y + numeral 9 * ν)
    (by grind) (show 0 ≤ (1 + u) ^ (4 - c) by grind)
  have i₂ := OrderedRing.mul_le_mul_of_nonneg_right p₄ (show 0 ≤ ν + numeral c * ν by grind)
  obtain ⟨s', rfl, r₄⟩ := hs x' rfl z' rfl (b₄.mono (by grind))
  have b₅ := b₄.add r₄
  rw [show x' + z' + (s' - (x' + z')) = s' by grind] at b₅
  have b₆ := b₅.nonneg
  have i₃ := OrderedRing.mul_le_mul_of_nonneg_left (a := (1 + u) ^ (4 - c)
    * (reference + numeral (4 - c) * ν) + (1 + u) ^ (4 - c) * (Y + numeral (4 - c) * ν) + ν
      + numeral c * ν) (b := (1 + u) ^ (4 - c) * (reference + Y + numeral 9 * ν)) (by grind)
    (show 0 ≤ (1 + u) ^ c by have := pow c; grind)
  rw [← Semiring.mul_assoc, ← Semiring.pow_add] at i₃
  obtain ⟨L', rfl, r₅, -⟩ := limitedTinyTimes hu hν (hL s' rfl) b₅
    (Std.le_trans i₃ (below (c + (4 - c)) (by omega)))
  exact ⟨L', rfl, a, b, c, k, logl, x', y', z', s', hak, hbc, e, r₁, r₂, r₃, r₄, r₅⟩

variable {q_len kv_len d d_v : Nat}
variable {p : Precision R} {f : ScoreFormats R} {ν : R} {largest : Largest R}
variable {additions roundings rescalings : Nat} {scale σ₁ σ₂ σ : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
variable {t : Fin d_v} {cols : List (Option (Fin kv_len))}
variable {computed : Option (Fin kv_len) → Option R}

/-- **tiny-lse-overflow-excluded**: so is the log-sum-exp that such a function writes beside a
component of its output, of all that the query sees and the sink: a number, and within its
tolerance. -/
theorem limited_tiny_logSumExp
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (ha : p.accumulation < 1)
    (hstored : p.stored < 1) (hν : 0 ≤ ν) (hν' : p.exponential + 2 * ν < 1)
    (hf : PreciseFormats f) (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hf₂ : 0 ≤ f.scoresTiny)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hσ' : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    (fits : changes.tinyOutputFits p f ν largest additions roundings rescalings σ₁ σ₂ σ mask Q K V
      i t)
    (fits' : changes.tinyLogSumExpFits p f ν largest additions roundings rescalings σ₁ σ₂ σ mask Q
      K i)
    (scores : LimitedTinyScores p f ν largest additions σ₁ σ₂ σ changes mask Q K i computed)
    {m : R} {part : LimitedPart R}
    (run : LimitedTinyRun p ν ν largest (changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i) m
      part)
    (hνq : part.rescalings ≠ 0 → ν ≤ p.exponential)
    (keys : part.keys = (computedChangedKeys p (changes.formats p f ν additions d scale) additions
      changes true scale mask Q K V i t cols (fun col => (computed col).getD 0)
      (columnValue V t)).map (·.flushed ν rescalings))
    (attained : ∃ col, changes.sees mask i col ∧ computed col = some m)
    (hr : part.rescalings ≤ rescalings) (ha' : part.additions + part.rescalings ≤ roundings)
    {row : List (BoundedKey R)}
    (hrow : row = (changedKeys p (changes.formats p f ν additions d scale) additions changes true
      scale mask Q K V i t cols).map (·.flushed ν rescalings))
    (hD : numeral (roundings + 1) * p.unit < 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) (h4 : numeral 4 * p.unit < 1)
    {L E M : R} (exact : IsLogSumExp R (some L) (cols.map (changes.score scale mask Q K i)))
    (maximum : rowMax (cols.map (changes.score scale mask Q K i)) = some M)
    (errors : underflowLogSumExpFactor p ν roundings rescalings row ≤ exp E)
    {result : Option R}
    (written : ∀ l ∈ part.l, LimitedTinyLogSumExp largest.accumulator p.unit ν m l result) :
    ∃ L', result = some L' ∧
      AtMost (underflowLogSumExpTolerance p ν E (L - M) M (largestError row)) (L' - L) := by
  obtain ⟨h₁, h₂, h₃⟩ := limitedTinyRow (V := V) (t := t) (cols := cols) hp hu ha hstored hν hν' hf
    hf₀ hf₂ hcap hσ hσ' fits scores
  obtain ⟨l, o, e, -, h₄, h₅, pos, low, most, -⟩ := h₃ (fun col _ => atMost_absolute _) hcols hν
    run hνq keys attained hr ha'
  have hm : AtMost (changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i) m := by
    obtain ⟨col, seen, e⟩ := attained
    obtain ⟨s, e', h⟩ := h₁ col seen
    rw [e] at e'
    obtain rfl := Option.some.inj e'
    exact h
  have same₁ : denominatorSize (roomForWeights p ν) roundings rescalings
      (changes.boundedColumns mask i (columnValue V t))
        = denominatorSize (roomForWeights p ν) roundings rescalings
          (changes.boundedColumns mask i fun _ => 0) :=
    denominatorSize_eq (xs := changes.columns) (.refl _)
      (f := fun col => ⟨if changes.sees mask i col then some 0 else none, 0, columnValue V t col⟩)
      (g := fun col => ⟨if changes.sees mask i col then some 0 else none, 0, 0⟩)
      (fun _ _ => .rfl) (roomForWeights p ν) roundings rescalings
  have same₂ : tinyDenominatorLeast p ν roundings rescalings
      (changes.boundedColumns mask i (columnValue V t))
        = tinyDenominatorLeast p ν roundings rescalings
          (changes.boundedColumns mask i fun _ => 0) :=
    congrArg (denominatorLeast p roundings rescalings - ·)
      (lostSize_eq (xs := changes.columns) (.refl _)
        (f := fun col => ⟨if changes.sees mask i col then some 0 else none, 0, columnValue V t col⟩)
        (g := fun col => ⟨if changes.sees mask i col then some 0 else none, 0, 0⟩)
        (fun _ _ => .rfl) p ν roundings rescalings)
  rw [same₁] at most
  rw [same₂] at pos low
  simp only [ScoreChanges.tinyLogSumExpFits, tinyLogSumExpSize, decide_eq_true_eq, power_eq]
    at fits'
  obtain ⟨a, b, c, k, logl, x, y, z, s, hak, hbc, e', hy, hz, hx, hs, hL⟩ := written l e
  obtain ⟨L', rfl, h₇⟩ := limited_tiny_logarithm hp.unit hν hak hbc (log_atMost pos low most e') hm
    e' fits' hy hz hx hs hL
  exact ⟨L', rfl, tiny_logSumExp_matrices archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap h₂ h₄ hνq keys
    h₅ hr ha' hrow hD left h4 exact maximum errors h₇⟩

/-- **tiny-dropout-overflow-excluded**: so it is with dropout, of a function that multiplies values
by their factors, the sink's being 0: the products are numbers, and so is the output. -/
theorem limited_tiny_dropout {floor : R → Int} (hfloor : IsFloor floor) (format : Format)
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hstored : p.stored < 1)
    (hν : 0 ≤ ν) (hν' : p.exponential + 2 * ν < 1) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hf₂ : 0 ≤ f.scoresTiny)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hσ' : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    {q z : R} (hq : 0 ≤ q) (hz : 0 ≤ z) {keep : Mask q_len kv_len}
    (hkeep : ∀ j, dropoutFactor q (keep i j) ≤ z)
    (fits : changes.tinyDroppedFits p f ν largest additions roundings rescalings σ₁ σ₂ σ mask Q K V
      q keep i t)
    (hformat : 0 < format.precision ∧ format.least + format.precision ≤ format.top ∧
      largest.output ≤ format.largest R)
    (scores : LimitedTinyScores p f ν largest additions σ₁ σ₂ σ changes mask Q K i computed)
    {used : Option (Fin kv_len) → Option R} (sink : used none = some 0)
    (factors : ∀ j, LimitedDropout largest.accumulator p.accumulation q (keep i j) V[j][t]
      (used (some j)))
    (hN : (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1)
    (hD : 2 * numeral (roundings + 1) * p.unit < 1) (negligible : R) {row : List (BoundedKey R)}
    (hrow : row = (changedKeys p (changes.formats p f ν additions d scale) additions changes false
      scale mask Q K (droppedValues V (.dropout q keep) i) i t cols).map (·.flushed ν rescalings))
    (third : p.denominator = .rounded →
      3 * storingErrors p rescalings (boundedWeights p rescalings row) ≤ 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) :
    (∀ col, changes.sees mask i col → computed col ≠ none) ∧ (∀ col, used col ≠ none) ∧
      ∀ {m : R} {part : LimitedPart R},
        LimitedTinyRun p ν ν largest (changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i) m
          part →
        (part.rescalings ≠ 0 → ν ≤ p.exponential) →
        part.keys = (computedChangedKeys p (changes.formats p f ν additions d scale) additions
          changes false scale mask Q K V i t cols (fun col => (computed col).getD 0)
          (fun col => (used col).getD 0)).map (·.flushed ν rescalings) →
        (∃ col, changes.sees mask i col ∧ computed col = some m) → part.rescalings ≤ rescalings →
        part.additions + part.rescalings ≤ roundings →
        ∀ {o : Option R}, LimitedTinyQuotient p ν largest part o →
          ∃ y, o = some y ∧ ¬ format.Overflows floor y ∧
            AtMost (outputTolerance (moreRoundings p (roundings + 6) (z + numeral 5)) ν
                ((2 : R) ^ (-(format.precision : Int))) ((2 : R) ^ (format.least - 1)) roundings
                rescalings negligible row)
              (format.round floor y
                - (changes.attentionDropout scale mask Q K V (.dropout q keep))[i][t]) := by
  have one := OrderedRing.zero_lt_one (R := R)
  have small : p.accumulation < 1 := by
    have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (roundings + 5)) hp.accumulation
    have h₂ := OrderedRing.mul_nonneg (a := z + numeral 5) (b := p.accumulation)
      (by have := numeral_nonneg (R := R) 5; grind) hp.accumulation
    rw [numeral_succ] at hN
    generalize z + numeral 5 = x at *
    grind
  simp only [ScoreChanges.tinyDroppedFits, Bool.and_eq_true, Bool.not_eq_true', decide_eq_true_eq,
    decide_eq_false_iff_not, List.all_eq_true] at fits
  obtain ⟨⟨⟨f₁, f₂⟩, f₃⟩, f₄⟩ := fits
  have hone : 1 ≤ largest.accumulator := by
    have h := f₄
    simp only [ScoreChanges.tinyRowFits, tinySumsFit, sumsFit, Bool.and_eq_true,
      decide_eq_true_eq] at h
    have h₁ := (le_of_le_smaller h.2.1.1.1.1.1.2).1
    have q := roomForWeights_precise hp hν hν'
    have h₂ := (one_add_le_weightSize q rescalings).1
    have := q.exponential
    grind
  have below : q * (1 + p.accumulation) < 1 := by grind
  have number : ∀ j, ∃ x, used (some j) = some x ∧
      ComputedDropout p.accumulation q (keep i j) V[j][t] x ∧
      AtMost (droppedSize p q (keep i j) V[j][t]) x := fun j =>
    limitedDropout hp small hq below hone f₂ (f₃ j (List.mem_finRange j)) (factors j)
  obtain ⟨h₁, h₂, h₃⟩ := limitedTinyRow (V := V) (t := t) (cols := cols) hp hu small hstored hν hν'
    hf hf₀ hf₂ hcap hσ hσ' f₄ scores
  refine ⟨fun col h e => ?_, fun col => ?_,
    fun {m part} run hνq keys attained hr ha o quotient => ?_⟩
  · obtain ⟨s, e', -⟩ := h₁ col h
    rw [e] at e'
    cases e'
  · cases col with
    | none => simp [sink]
    | some j =>
      obtain ⟨x, e, -⟩ := number j
      simp [e]
  obtain ⟨l, o', -, -, h₄, h₅, -, -, -, h₆⟩ := h₃ (used := fun col => (used col).getD 0)
    (fun col _ => by
      cases col with
      | none =>
        simp only [sink, Option.getD_some]
        exact .zero (absolute_nonneg _)
      | some j =>
        obtain ⟨x, e, -, h⟩ := number j
        simp only [e, Option.getD_some]
        exact h.mono (atMost_absolute _).2) hcols hν run hνq keys attained hr ha
  obtain ⟨y, rfl, h₇, h₈⟩ := h₆ o quotient
  refine ⟨y, rfl, not_overflows hfloor hformat.1 hformat.2.1
    (Std.le_trans (absolute_le h₈) hformat.2.2), ?_⟩
  have hq₁ : q < 1 := by
    have := OrderedRing.mul_nonneg hq hp.accumulation
    grind
  exact tiny_dropout_matrices archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hcols h₂ hq hq₁ hz
    (used := fun col => (used col).getD 0) (by simp only [sink, Option.getD_some])
    (fun j => ⟨hkeep j, by
      obtain ⟨x, e, h, -⟩ := number j
      simp only [e, Option.getD_some]
      exact h⟩) h₄ hνq keys h₅ hr ha hrow third hN hD left h₇ (round_storedNear hfloor y) negligible

end Attention.Proof
