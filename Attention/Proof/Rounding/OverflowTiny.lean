module

public import Attention.Model.UnderflowOverflowScores
public import Attention.Proof.Rounding.Format
public import Attention.Proof.Rounding.OverflowTinyRun
public import Attention.Proof.Rounding.OverflowTinyScores
public import Attention.Proof.Rounding.UnderflowMatrices
import Attention.Proof.Rounding.Flushed
import Attention.Proof.Rounding.OverflowChanged
import Attention.Proof.Rounding.OverflowRun

public section

/-! # Attention whose numbers underflow and that overflows nowhere, from matrices to the tolerance
-/

namespace Attention.Proof

open Spec Model Overflow Lean.Grind

universe u

attribute [local instance] Ring.intCast Semiring.natCast

section
variable {R : Type u} [OrderedField R]

private theorem quotient_mono {g c L V W l : R} (hg : 0 ≤ g) (hL : 0 ≤ L) (hl : 0 < l)
    (h : V ≤ W) : g * (V + L * (2 * V + 1) / l + c) ≤ g * (W + L * (2 * W + 1) / l + c) := by
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left (show 2 * V + 1 ≤ 2 * W + 1 by grind) hL
  have h₂ : L * (2 * V + 1) / l ≤ L * (2 * W + 1) / l := by
    rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv]
    exact OrderedRing.mul_le_mul_of_nonneg_right h₁
      (Std.le_of_lt (Field.IsOrdered.inv_pos_iff.mpr hl))
  exact OrderedRing.mul_le_mul_of_nonneg_left (by grind) hg

/-- Of the keys it matters only which are masked. -/
theorem lostSize_eq {α : Type} {xs ys : List α} (perm : xs.Perm ys) {f g : α → BoundedKey R}
    (same : ∀ x ∈ xs, (f x).score = none ↔ (g x).score = none) (p : Precision R) (ν : R)
    (roundings rescalings : Nat) : lostSize p ν roundings rescalings (xs.map f)
      = lostSize p ν roundings rescalings (ys.map g) := by
  have e : sumOver (fun x => ofUnmasked (f x) (1 : R)) xs
      = sumOver (fun x => ofUnmasked (g x) 1) ys := by
    rw [← sumOver_perm _ perm]
    refine sumOver_congr fun x hx => ?_
    have := same x hx
    exact Std.le_antisymm (ofUnmasked_mono this fun _ => Std.le_refl _)
      (ofUnmasked_mono this.symm fun _ => Std.le_refl _)
  rw [lostSize, lostSize, sumOver_map, sumOver_map, e]

/-- Nor does the order for the largest value. -/
private theorem valueSize_mono {α : Type} {xs ys : List α} (perm : xs.Perm ys)
    {f g : α → BoundedKey R} (same : ∀ x ∈ xs, (f x).score = none ↔ (g x).score = none)
    (value : ∀ x ∈ xs, (g x).score ≠ none → absolute (f x).value ≤ absolute (g x).value) :
    valueSize (xs.map f) ≤ valueSize (ys.map g) := by
  refine valueSize_le (valueSize_spec _).1 fun key hk => ?_
  obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hk
  exact Std.le_trans (ofUnmasked_mono (same x hx) (value x hx))
    (ofUnmasked_le (ys.map g) (g x) (List.mem_map_of_mem (perm.mem_iff.mp hx)))

private theorem roomForValue_mono {ν : R} (hν : 0 ≤ ν) {rescalings : Nat} {a b : BoundedKey R}
    (h : absolute a.value ≤ absolute b.value) : absolute (roomForValue ν rescalings a).value
      ≤ absolute (roomForValue ν rescalings b).value := by
  have n := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (rescalings + 3)) hν
  have a₀ := absolute_nonneg a.value
  have b₀ := absolute_nonneg b.value
  simp only [roomForValue]
  rw [absolute_of_nonneg (show 0 ≤ absolute a.value + numeral (rescalings + 3) * ν by grind),
    absolute_of_nonneg (show 0 ≤ absolute b.value + numeral (rescalings + 3) * ν by grind)]
  grind

private theorem tinyQuotientSize_mono {p : Precision R} {ν : R} (hp : Precise p) (hν : 0 ≤ ν)
    (ha : p.accumulation < 1) {roundings rescalings : Nat} {xs ys : List (BoundedKey R)}
    (lost : lostSize p ν roundings rescalings xs = lostSize p ν roundings rescalings ys)
    (left : 0 < tinyDenominatorLeast p ν roundings rescalings ys)
    (most : valueSize xs ≤ valueSize ys) :
    tinyQuotientSize p ν roundings rescalings xs
      ≤ tinyQuotientSize p ν roundings rescalings ys := by
  have one := OrderedRing.zero_lt_one (R := R)
  have g : 0 ≤ 2 * ratio p ^ (roundings + 6) :=
    OrderedRing.mul_nonneg (by grind) (Std.le_of_lt (ratio_pos hp ha (roundings + 6)))
  have e : tinyDenominatorLeast p ν roundings rescalings xs
      = tinyDenominatorLeast p ν roundings rescalings ys := by
    rw [tinyDenominatorLeast, tinyDenominatorLeast, lost]
  simp only [tinyQuotientSize, e, lost, numeral_two, power_eq]
  exact quotient_mono g (lostSize_nonneg hp hν ys) left most

/-- Neither the order of the keys nor their scores matter, and smaller values fit too. -/
theorem tinySumsFit_mono {α : Type} {xs ys : List α} (perm : xs.Perm ys) {f g : α → BoundedKey R}
    (same : ∀ x ∈ xs, (f x).score = none ↔ (g x).score = none)
    (value : ∀ x ∈ xs, (g x).score ≠ none → absolute (f x).value ≤ absolute (g x).value)
    {p : Precision R} {ν : R} (hp : Precise p) (hν : 0 ≤ ν) (hν' : p.exponential + 2 * ν < 1)
    (ha : p.accumulation < 1) {largest : Largest R} {roundings rescalings : Nat} {reference : R}
    (h : tinySumsFit p ν largest roundings rescalings reference (ys.map g)) :
    tinySumsFit p ν largest roundings rescalings reference (xs.map f) := by
  have lost := lostSize_eq perm same p ν roundings rescalings
  have most := valueSize_mono perm same value
  simp only [tinySumsFit, Bool.and_eq_true, Bool.not_eq_true', decide_eq_true_eq,
    decide_eq_false_iff_not, List.map_map] at h ⊢
  obtain ⟨⟨h₁, h₂⟩, h₃⟩ := h
  have left := Std.not_le.mp h₂
  refine ⟨⟨sumsFit_mono (f := roomForValue ν rescalings ∘ f) (g := roomForValue ν rescalings ∘ g)
    perm same (fun x hx hs => roomForValue_mono hν (value x hx hs))
    (roomForWeights_precise hp hν hν') ha h₁, ?_⟩,
    Std.le_trans (tinyQuotientSize_mono hp hν ha lost left most) h₃⟩
  rw [tinyDenominatorLeast, lost]
  exact h₂

end

variable {R : Type u} [OrderedField R] [NaturalExp R] {q_len kv_len d d_v : Nat}
variable {p : Precision R} {f : ScoreFormats R} {ν : R} {largest : Largest R}
variable {additions roundings rescalings : Nat} {scale σ₁ σ₂ σ : R}
variable {changes : ScoreChanges R q_len kv_len} {mask : Mask q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v} {i : Fin q_len}
variable {t : Fin d_v} {cols : List (Option (Fin kv_len))}
variable {computed : Option (Fin kv_len) → Option R}

omit [NaturalExp R] in
/-- The size of the score of a column that is seen is no larger than the row's. -/
private theorem tinySize_le {col : Option (Fin kv_len)} (h : changes.sees mask i col = true) :
    changes.tinySize p f ν additions σ₁ σ₂ σ Q K i col
      ≤ changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i := by
  have k := (le_foldl (b := 0) (f := fun x col : _ => max x (if changes.sees mask i col
    then changes.tinySize p f ν additions σ₁ σ₂ σ Q K i col else 0)) (fun x col => (le_max _ _).1)
    changes.columns).2
    (fun col => if changes.sees mask i col
      then changes.tinySize p f ν additions σ₁ σ₂ σ Q K i col else 0)
    (fun x col => (le_max _ _).2) col (mem_columns h)
  simp only [h, if_true] at k
  exact k

/-- A column that is seen and whose numbers fit. -/
private theorem limited_tiny_column (hp : Precise p) (hf : PreciseFormats f) (hf' : 0 ≤ f.scores)
    (hf'' : 0 ≤ f.scoresTiny) (hν : 0 ≤ ν) (hcap : ∀ cap, changes.cap = some cap → 0 < cap)
    (scores : LimitedTinyScores p f ν largest additions σ₁ σ₂ σ changes mask Q K i computed)
    {col : Option (Fin kv_len)} (seen : changes.sees mask i col = true)
    (fits : changes.tinyFits p f ν largest additions σ₁ σ₂ σ Q K i col) :
    ∃ s, computed col = some s ∧
      AtMost (changes.tinySize p f ν additions σ₁ σ₂ σ Q K i col) s ∧
      (∀ sink, col = none → changes.sink = some sink → TinySink p f ν sink s) ∧
      ∀ j, col = some j → ∃ x, TinyScore p f ν additions σ₁ σ₂ σ Q[i] K[j] x ∧
        TinyChange p f ν (changes.pair i j) x s := by
  cases col with
  | none =>
    cases hs : changes.sink with
    | none => simp [ScoreChanges.sees, hs] at seen
    | some sink =>
      simp only [ScoreChanges.tinyFits, hs, decide_eq_true_eq] at fits
      obtain ⟨s, e, h₁, h₂⟩ := limitedTinySink hp.unit hf'' hν (scores.1 sink hs) fits
      refine ⟨s, e, ?_, fun sink' _ e' => ?_, nofun⟩
      · simpa only [ScoreChanges.tinySize, hs] using h₂
      · obtain rfl := Option.some.inj e'
        exact h₁
  | some j =>
    simp only [ScoreChanges.tinyFits, Bool.and_eq_true] at fits
    obtain ⟨x, hx, hy⟩ := scores.2 j seen
    obtain ⟨x', rfl, h₁, h₂⟩ := limitedTinyScore hp hf hf' hf'' hν fits.1 hx
    obtain ⟨s, e, h₃, h₄⟩ := limitedTinyChange hp.unit hf' hf'' hν (change := changes.pair i j)
      hcap fits.2 h₂ (hy x' rfl)
    refine ⟨s, e, h₄, nofun, fun j' e' => ?_⟩
    obtain rfl := Option.some.inj e'
    exact ⟨x', h₁, h₃⟩

/-- **tiny-row-finite**: where a row fits, with room for what underflows, every changed score and
that of the sink are numbers, and ones that a function without a largest number may compute; and so
are the parts of the row, its denominator, which lies between two positive bounds, and its quotient,
whatever values of no larger size the function uses, and whatever the errors of the scores are. -/
theorem limitedTinyRow (hp : Precise p) (hu : p.unit ≤ p.accumulation) (ha : p.accumulation < 1)
    (hstored : p.stored < 1) (hν : 0 ≤ ν) (hν' : p.exponential + 2 * ν < 1)
    (hf : PreciseFormats f) (hf' : 0 ≤ f.scores) (hf'' : 0 ≤ f.scoresTiny)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hσ' : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ)
    {value : Option (Fin kv_len) → R}
    (fits : changes.tinyRowFits p f ν largest additions roundings rescalings σ₁ σ₂ σ mask Q K i
      value)
    (scores : LimitedTinyScores p f ν largest additions σ₁ σ₂ σ changes mask Q K i computed) :
    (∀ col, changes.sees mask i col → ∃ s, computed col = some s ∧
      AtMost (changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i) s) ∧
      TinyScores p f ν additions changes scale mask Q K i (fun col => (computed col).getD 0) ∧
      ∀ {used : Option (Fin kv_len) → R},
        (∀ col, changes.sees mask i col → AtMost (absolute (value col)) (used col)) →
        cols.Perm changes.columns → ∀ {f' : ScoreFormats R} {whole : Bool} {μ m : R}
        {part : LimitedPart R}, 0 ≤ μ →
        LimitedTinyRun p ν μ largest (changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i) m
          part →
        (part.rescalings ≠ 0 → ν ≤ p.exponential) →
        part.keys = (computedChangedKeys p f' additions changes whole scale mask Q K V i t cols
          (fun col => (computed col).getD 0) used).map (·.flushed μ rescalings) →
        (∃ col, changes.sees mask i col ∧ computed col = some m) →
        part.rescalings ≤ rescalings → part.additions + part.rescalings ≤ roundings →
        ∃ l o, part.l = some l ∧ part.o = some o ∧
          TinyRun p ν μ m ⟨part.keys, l, o, part.additions, part.rescalings⟩ ∧
          (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) ∧
          0 < tinyDenominatorLeast p ν roundings rescalings
            (changes.boundedColumns mask i value) ∧
          tinyDenominatorLeast p ν roundings rescalings (changes.boundedColumns mask i value)
            ≤ l ∧
          l ≤ denominatorSize (roomForWeights p ν) roundings rescalings
            (changes.boundedColumns mask i value) ∧
          ∀ y, LimitedTinyQuotient p ν largest part y →
            ∃ z, y = some z ∧ TinyTimes p.accumulation ν 5 (o / l) z ∧
              AtMost largest.output z := by
  simp only [ScoreChanges.tinyRowFits, Bool.and_eq_true, List.all_eq_true, Bool.or_eq_true,
    Bool.not_eq_true'] at fits
  obtain ⟨fits₁, fits₂⟩ := fits
  have number := fun col (h : changes.sees mask i col = true) =>
    limited_tiny_column hp hf hf' hf'' hν hcap scores h (by
      rcases fits₁ col (mem_columns h) with h' | h'
      · rw [h] at h'
        cases h'
      · exact h')
  refine ⟨fun col h => ?_, ⟨fun sink hs => ?_, _, .split hσ hσ', fun j hj => ?_⟩,
    fun {used} small hcols {f' whole μ m part} hμ run hνq keys attained hr hd => ?_⟩
  · obtain ⟨s, e, h', -⟩ := number col h
    exact ⟨s, e, h'.mono (tinySize_le h)⟩
  · obtain ⟨s, e, -, h, -⟩ := number none (by simp [ScoreChanges.sees, hs])
    simp only [e, Option.getD_some]
    exact h sink rfl hs
  · obtain ⟨s, e, -, -, h⟩ := number (some j) (changed_sees_iff.mpr hj)
    simp only [e, Option.getD_some]
    exact h j rfl
  let key := fun col => { changedKey p f' additions changes whole scale mask Q K V i t
    (rowMax (cols.map (changes.score scale mask Q K i))) col with value := used col }
  have score : ∀ col ∈ cols, (key col).score = changes.score scale mask Q K i col :=
    fun col h => changedKey_score h
  have bounded : part.keys.map (·.toBoundedKey)
      = cols.map fun col => (key col).flushed μ rescalings := by
    rw [keys, flushed_toBoundedKey, computedChangedKeys, List.map_map, List.map_map]
    rfl
  have same : ∀ col ∈ cols, ((key col).flushed μ rescalings).score = none ↔
      (⟨if changes.sees mask i col then some 0 else none, 0, value col⟩ : BoundedKey R).score
        = none := fun col h => by
    show (key col).score = none ↔ _
    rw [score col h]
    have := changed_sees_iff (changes := changes) (scale := scale) (mask := mask) (Q := Q) (K := K)
      (i := i) (col := col)
    cases e : changes.sees mask i col <;> simp_all
  have fits₃ : tinySumsFit p ν largest roundings rescalings
      (changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i)
      (part.keys.map (·.toBoundedKey)) := by
    rw [bounded]
    refine tinySumsFit_mono hcols same (fun col h hs => ?_) hp hν hν' ha fits₂
    refine absolute_le (small col ?_)
    cases e : changes.sees mask i col
    · simp [e] at hs
    · rfl
  have seen : ∀ k ∈ part.keys, k.score ≠ none →
      ∃ col, changes.sees mask i col ∧ k.computed = (computed col).getD 0 := fun k hk hs => by
    rw [keys, computedChangedKeys, List.map_map] at hk
    obtain ⟨col, hcol, rfl⟩ := List.mem_map.mp hk
    have hs : (key col).score ≠ none := hs
    rw [score col hcol] at hs
    exact ⟨col, changed_sees_iff.mpr hs, rfl⟩
  have attained' : ∃ k ∈ part.keys, k.score ≠ none ∧ k.computed = m := by
    obtain ⟨col, hs, e⟩ := attained
    have hcol := hcols.mem_iff.mpr (mem_columns hs)
    rw [keys, computedChangedKeys, List.map_map]
    refine ⟨_, List.mem_map_of_mem hcol, ?_, ?_⟩
    · show (key col).score ≠ none
      rw [score col hcol]
      exact changed_sees_iff.mp hs
    · show (computed col).getD 0 = m
      rw [e, Option.getD_some]
  have lost : lostSize p ν roundings rescalings (part.keys.map (·.toBoundedKey))
      = lostSize p ν roundings rescalings (changes.boundedColumns mask i value) := by
    rw [bounded]
    exact lostSize_eq hcols same p ν roundings rescalings
  have size : denominatorSize (roomForWeights p ν) roundings rescalings
      (part.keys.map (·.toBoundedKey)) = denominatorSize (roomForWeights p ν) roundings rescalings
        (changes.boundedColumns mask i value) := by
    rw [bounded]
    exact denominatorSize_eq hcols same (roomForWeights p ν) roundings rescalings
  obtain ⟨l, o, h₁, h₂, h₃, h₄, h₅, h₆, h₇⟩ := limitedTinyRun hp hν hμ hν' hu ha hstored run hνq hr
    hd fits₃ (fun k hk hs => by
      obtain ⟨col, h, e⟩ := seen k hk hs
      obtain ⟨s, e', h', -⟩ := number col h
      rw [e, e']
      exact h'.mono (tinySize_le h)) attained'
  rw [tinyDenominatorLeast, lost] at h₄ h₅
  rw [size] at h₆
  exact ⟨l, o, h₁, h₂, h₃, attained', h₄, h₅, h₆, h₇⟩

/-- **tiny-overflow-excluded**: of inputs that fit, with room for what underflows, every changed
score and that of a sink is a number where its column is seen, of a scale that is split; and for a
query that sees a column, what a function with largest numbers computes of them, whose products,
quotients, exponentials, differences and sums may underflow, is a number, rounded to one of its
format and not to infinity, and within the tolerance of a function that has no largest number. -/
theorem limited_tiny_matrices {floor : R → Int} (hfloor : IsFloor floor) (format : Format)
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) (hp : Precise p)
    (hu : p.unit ≤ p.accumulation) (hu' : p.unit ≤ 1 / 128) (hstored : p.stored < 1)
    (hν : 0 ≤ ν) (hν' : p.exponential + 2 * ν < 1) (hf : PreciseFormats f)
    (hf₀ : 0 ≤ f.scores) (hf₁ : f.scores ≤ 1 / 32) (hf₂ : 0 ≤ f.scoresTiny)
    (hd : 10 * (numeral (additions + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1)
    (hσ : ScaledBy p f scale σ₁ σ₂ σ)
    (hσ' : AtMost ((1 + p.unit) ^ 3 * max 1 (absolute scale)) σ)
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) (hcols : cols.Perm changes.columns)
    (fits : changes.tinyOutputFits p f ν largest additions roundings rescalings σ₁ σ₂ σ mask Q K V
      i t)
    (hformat : 0 < format.precision ∧ format.least + format.precision ≤ format.top ∧
      largest.output ≤ format.largest R)
    (scores : LimitedTinyScores p f ν largest additions σ₁ σ₂ σ changes mask Q K i computed)
    (hN : numeral (roundings + 6) * p.accumulation < 1)
    (hD : 2 * numeral (roundings + 1) * p.unit < 1) (negligible : R) {row : List (BoundedKey R)}
    (hrow : row = (changedKeys p (changes.formats p f ν additions d scale) additions changes false
      scale mask Q K V i t cols).map (·.flushed ν rescalings))
    (third : p.denominator = .rounded →
      3 * storingErrors p rescalings (boundedWeights p rescalings row) ≤ 1)
    (left : 0 < underflowLeft p ν roundings rescalings row) :
    (∀ col, changes.sees mask i col → computed col ≠ none) ∧
      ∀ {m : R} {part : LimitedPart R},
        LimitedTinyRun p ν ν largest (changes.tinyRowSize p f ν additions σ₁ σ₂ σ mask Q K i) m
          part →
        (part.rescalings ≠ 0 → ν ≤ p.exponential) →
        part.keys = (computedChangedKeys p (changes.formats p f ν additions d scale) additions
          changes false scale mask Q K V i t cols (fun col => (computed col).getD 0)
          (columnValue V t)).map (·.flushed ν rescalings) →
        (∃ col, changes.sees mask i col ∧ computed col = some m) → part.rescalings ≤ rescalings →
        part.additions + part.rescalings ≤ roundings →
        ∀ {o : Option R}, LimitedTinyQuotient p ν largest part o →
          ∃ y, o = some y ∧ ¬ format.Overflows floor y ∧
            AtMost (outputTolerance p ν ((2 : R) ^ (-(format.precision : Int)))
                ((2 : R) ^ (format.least - 1)) roundings rescalings negligible row)
              (format.round floor y - (changes.attention scale mask Q K V)[i][t]) := by
  have small : p.accumulation < 1 := by
    have h₁ := OrderedRing.mul_nonneg (numeral_nonneg (R := R) (roundings + 5)) hp.accumulation
    rw [numeral_succ] at hN
    grind
  obtain ⟨h₁, h₂, h₃⟩ := limitedTinyRow (V := V) (t := t) (cols := cols) hp hu small hstored hν hν'
    hf hf₀ hf₂ hcap hσ hσ' fits scores
  refine ⟨fun col h e => ?_, fun {m part} run hνq keys attained hr ha o quotient => ?_⟩
  · obtain ⟨s, e', -⟩ := h₁ col h
    rw [e] at e'
    cases e'
  obtain ⟨l, o', -, -, h₄, h₅, -, -, -, h₆⟩ := h₃ (fun col _ => atMost_absolute _) hcols hν run
    hνq keys attained hr ha
  obtain ⟨y, rfl, h₇, h₈⟩ := h₆ o quotient
  refine ⟨y, rfl, not_overflows hfloor hformat.1 hformat.2.1
    (Std.le_trans (absolute_le h₈) hformat.2.2), ?_⟩
  exact tiny_changed_matrices archimedean hp hu hu' hf hf₀ hf₁ hν hd hcap hcols h₂ h₄ hνq keys h₅
    hr ha hrow third hN hD left h₇ (round_storedNear hfloor y) negligible

end Attention.Proof
