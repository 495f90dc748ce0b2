module

public import Attention.Proof.Rounding.UnderflowTolerance
public import Attention.WrongVariants.RoundedUnderflow

public section

/-! # Wrong variants of products, quotients, exponentials and sums that underflow

Functions whose exponentials underflow further than they say, or sums, or products with a factor of
dropout.
Over every ordered field, for every exponential. Source: docs/tolerances.md, sections 3 and 4. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The claim of `rounded_attention_underflow`, made of any runs, of keys with any room in their
errors for differences that are flushed to 0. -/
abbrev StaysWithin (run : Precision R → R → R → R → Part R → Prop)
    (room : R → Nat → R := fun μ rescalings => numeral (rescalings + 1) * μ) : Prop :=
  ∀ p : Precision R, Precise p → ∀ ν : R, 0 ≤ ν → ∀ μ : R, 0 ≤ μ → ∀ (m : R) (part : Part R),
    run p ν μ m part →
    (part.rescalings ≠ 0 → ν ≤ p.exponential) → ∀ row : List (ScoredValue R R 1),
    part.keys.map (fun k => (k.score, k.value)) = row.map (fun k => (k.score, k.value[0])) →
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) → ∀ (c : R)
    (roundings rescalings : Nat), (∀ key ∈ part.keys, ∀ s, key.score = some s →
      AtMost (key.error - room μ rescalings) (key.computed - (s + c))) →
    part.rescalings ≤ rescalings →
    part.additions + part.rescalings ≤ roundings →
    (p.denominator = .rounded → 3 * storingErrors p rescalings
      (boundedWeights p rescalings (part.keys.map (·.toBoundedKey))) ≤ 1) →
    numeral (roundings + 6) * p.accumulation < 1 → 2 * numeral (roundings + 1) * p.unit < 1 →
    0 < underflowLeft p ν roundings rescalings (part.keys.map (·.toBoundedKey)) →
    ∀ o : R, TinyTimes p.accumulation ν 5 (part.o / part.l) o → ∀ negligible : R,
    AtMost (tolerance p roundings rescalings negligible (part.keys.map (·.toBoundedKey))
        + underflowError p ν roundings rescalings negligible (part.keys.map (·.toBoundedKey)))
      (o - (attend row)[0])

/-- Positive control: a run whose numbers underflow by no more than is said. -/
theorem tinyRun_staysWithin : StaysWithin (R := R) TinyRun :=
  fun _ hp _ hν _ hμ _ _ run hνq _ same attained _ _ _ close hr ha third hN hD left _ result =>
    Proof.rounded_attention_underflow hp hν hμ run hνq Nat.zero_lt_one same attained close hr ha
      third hN hD left result

/-- Exponentials a hundred times as large as is said are flushed to 0, and products. -/
@[expose] def underflowsHundredfold (p : Precision R) (ν μ : R) : R → Part R → Prop :=
  TinyRun p (100 * ν) μ

/-! ## What counterexamples are made of -/

omit [Exponential R R] in
private theorem itself {u ν : R} (hu : 0 ≤ u) (x : R) : Stored u ν x x := Proof.stored_refl hu x

/-- The keys (0, 0) and (−1, 1), of which the second has a weight that underflows to 0. -/
private theorem run_flushed : TinyRun (tinyOnly (0 : R)) (exp (0 - 1 : R) : R) 0 0
    ⟨[exactKey 0 0, exactKey (0 - 1) 1], 1 + 0, 0 + 0, 1, 0⟩ := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have e₁ : ∀ x : R, x - 0 = x := fun x => by grind
  have flushed : Stored 0 (exp (0 - 1 : R)) (exp (0 - 1 : R) : R) 0 := by
    have pos := exp_pos (R := R) (0 - 1 : R)
    generalize (exp (0 - 1 : R) : R) = w at *
    rw [Stored, Proof.absolute_of_nonneg (Std.le_of_lt pos), Semiring.zero_mul,
      OrderedField.max_def, if_pos (Std.le_of_lt pos)]
    exact ⟨⟨by grind, by grind⟩, ⟨by grind, by grind⟩⟩
  have a : TinyRun (tinyOnly (0 : R)) (exp (0 - 1 : R) : R) 0 0 (singlePart 0 0 1 0) :=
    .key (x := 0 - 0) (w := 1) (w' := 1) (by simp [exactKey]) (Std.le_refl _)
      (.inl (rounded_refl (Std.le_refl _) _))
      (by rw [exp_sub_self]; exact itself (Std.le_refl _) _)
      (itself (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored (Std.le_of_lt (exp_pos _))
        (by rw [Semiring.one_mul]; exact itself (Std.le_refl _) _))
  have b : TinyRun (tinyOnly (0 : R)) (exp (0 - 1 : R) : R) 0 0 (singlePart (0 - 1) 1 0 0) :=
    .key (x := 0 - 1 - 0) (w := 0) (w' := 0) (by simp [exactKey])
      (by show (0 : R) - 1 ≤ 0; grind) (.inl (rounded_refl (Std.le_refl _) _))
      (by rw [e₁]; exact flushed) (itself (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored (Std.le_of_lt (exp_pos _))
        (by rw [Semiring.zero_mul]; exact itself (Std.le_refl _) _))
  exact .join (p := tinyOnly (0 : R)) (m := 0) (a := 0) (k := 1) (r := 0)
    (parts := [singlePart 0 0 1 0, singlePart (0 - 1) 1 0 0])
    (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl
      · exact a
      · exact b)
    (fun part hp => by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
      rcases hp with rfl | rfl <;> exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
    (.add (xs := [singlePart 0 0 1 0]) (ys := [singlePart (0 - 1) 1 0 0]) .one .one
      (rounded_refl (Std.le_refl _) _)
      (rounded_refl (Std.le_refl _) _))
    (.add (xs := [singlePart 0 0 1 0]) (ys := [singlePart (0 - 1) 1 0 0]) .one .one
      (rounded_refl (Std.le_refl _) _)
      (rounded_refl (Std.le_refl _) _))

private def flushedKeys : List (BoundedKey R) := [⟨some 0, 0, 0⟩, ⟨some (0 - 1), 0, 1⟩]

omit [Exponential R R] in
private theorem least (x y : R) : smaller x y ≤ x ∧ smaller x y ≤ y := by
  rw [smaller]
  split
  · exact ⟨Std.le_refl _, by assumption⟩
  · exact ⟨by grind, Std.le_refl _⟩

omit [Exponential R R] in
private theorem numerals : (numeral 1 : R) = 1 ∧ (numeral 2 : R) = 2 ∧ (numeral 5 : R) = 5 ∧
    (numeral 6 : R) = 6 := by
  simp only [Proof.numeral_succ, show (numeral 0 : R) = 0 from rfl]
  exact ⟨by grind, by grind, by grind, by grind⟩

/-- A cost of these keys, for numbers that are at most 1. -/
private theorem cost_two {ν : R} (hν : 0 ≤ ν) (f : BoundedWeight R → R)
    (hf : ∀ k, 0 ≤ f k) (h₁ : f ⟨1, 1, 0⟩ ≤ 1) (h₂ : f ⟨exp (0 - 1 : R), 1, 1⟩ ≤ 1) :
    0 ≤ underflowCost (tinyOnly 0) ν 0 flushedKeys f ∧
      underflowCost (tinyOnly 0) ν 0 flushedKeys f ≤ 20 * ν := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have pos := exp_pos (R := R) (0 - 1 : R)
  rw [underflowCost]
  simp only [flushedKeys, boundedWeights_two, sumOver_cons, sumOver_nil, Nat.zero_add,
    numerals.2.2.2]
  have hlow : 0 < lowTotal [(⟨1, 1, 0⟩ : BoundedWeight R), ⟨exp (0 - 1 : R), 1, 1⟩] := by
    simp only [lowTotal, sumOver_cons, sumOver_nil]
    generalize (exp (0 - 1 : R) : R) = w at *
    rw [show (1 : R) / 1 + (w / 1 + 0) = 1 + w by grind]
    grind
  have ht₀ : 0 ≤ underflowShare (tinyOnly 0) ν 0
      [(⟨1, 1, 0⟩ : BoundedWeight R), ⟨exp (0 - 1 : R), 1, 1⟩] :=
    Proof.tinyShare_nonneg (p := { (tinyOnly 0 : Precision R) with storedTiny := ν })
      (tinyOnly_precise hν) 0 hlow
  have ht : underflowShare (tinyOnly 0) ν 0
      [(⟨1, 1, 0⟩ : BoundedWeight R), ⟨exp (0 - 1 : R), 1, 1⟩] ≤ ν := by
    have e : (1 : R) / power (1 - 0) (2 * 0 + 1) = 1 := by
      rw [Proof.power_eq, show (1 : R) - 0 = 1 by grind, Semiring.one_pow]
      grind
    have := OrderedRing.mul_le_mul_of_nonneg_left (least (1 / power (1 - 0) (2 * 0 + 1))
      ([(⟨1, 1, 0⟩ : BoundedWeight R), ⟨exp (0 - 1 : R), 1, 1⟩].foldl
        (fun x k => max x (k.weight * k.factor)) 0
        / lowTotal [(⟨1, 1, 0⟩ : BoundedWeight R), ⟨exp (0 - 1 : R), 1, 1⟩])).1 hν
    rw [e, Semiring.mul_one] at this
    rw [underflowShare, tinyShare]
    simp only [tinyOnly, e]
    exact this
  generalize underflowShare (tinyOnly 0) ν 0
    [(⟨1, 1, 0⟩ : BoundedWeight R), ⟨exp (0 - 1 : R), 1, 1⟩] = t at *
  generalize lowTotal [(⟨1, 1, 0⟩ : BoundedWeight R), ⟨exp (0 - 1 : R), 1, 1⟩] = low at *
  have lost : ∀ k : BoundedWeight R, f k ≤ 1 → lostShare 0 low t k * f k ≤ 4 * t := fun k hk => by
    have i := (least (power (numeral 3) 2 * (k.weight * k.factor / low)) (2 * t)).2
    simp only [lostShare, Nat.zero_add, numerals.2.1]
    generalize smaller (power (numeral 3) 2 * (k.weight * k.factor / low)) (2 * t) = s at *
    have i₁ := OrderedRing.mul_le_mul_of_nonneg_right i (hf k)
    have i₂ := OrderedRing.mul_le_mul_of_nonneg_left hk ht₀
    grind
  have lost₀ : ∀ k : BoundedWeight R, 0 ≤ k.weight * k.factor →
      0 ≤ lostShare 0 low t k * f k := fun k hk => by
    have three := Proof.numeral_nonneg (R := R) 3
    simp only [lostShare, Nat.zero_add, numerals.2.1, Proof.power_eq, Semiring.pow_succ,
      Semiring.pow_zero, Semiring.one_mul]
    refine OrderedRing.mul_nonneg (OrderedRing.mul_nonneg (by grind) ?_) (hf k)
    rw [smaller]
    split
    · exact OrderedRing.mul_nonneg (OrderedRing.mul_nonneg three three)
        (OrderedField.div_nonneg hk hlow)
    · grind
  have j₁ := lost _ h₁
  have j₂ := lost _ h₂
  have j₃ := lost₀ ⟨1, 1, 0⟩ (by show (0 : R) ≤ 1 * 1; grind)
  have j₄ := lost₀ ⟨exp (0 - 1 : R), 1, 1⟩ (by show (0 : R) ≤ exp (0 - 1 : R) * 1; grind)
  clear lost lost₀ hf hlow
  exact ⟨by grind, by grind⟩

/-- The tolerance of them. -/
private theorem flushedKeys_allowed {ν : R} (hν : 0 ≤ ν) (h : 100 * ν ≤ 1) :
    0 < underflowLeft (tinyOnly 0) ν 1 0 (flushedKeys : List (BoundedKey R)) ∧
      tolerance (tinyOnly 0) 1 0 0 flushedKeys + underflowError (tinyOnly 0) ν 1 0 0 flushedKeys
        ≤ 43 * ν := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  obtain ⟨C₀, c₁⟩ := cost_two hν (fun _ => 1) (fun _ => Std.le_of_lt h₀) (Std.le_refl _)
    (Std.le_refl _)
  have cᵥ := (cost_two hν (fun k => absolute k.value) (fun k => Proof.absolute_nonneg _)
    (by
      show absolute (0 : R) ≤ 1
      rw [Proof.absolute_of_nonneg (Std.le_refl _)]
      exact Std.le_of_lt h₀) (by
      show absolute (1 : R) ≤ 1
      rw [absolute_one]
      exact Std.le_refl _)).2
  have allowed := (two_keys_allowed (R := R) (Std.le_refl 0)).1
  have output : absolute (exactOutput (boundedWeights (tinyOnly (0 : R)) 0 flushedKeys))
      ≤ 1 / 2 := by
    simp only [flushedKeys, boundedWeights_two, exactOutput, sumOver_cons, sumOver_nil]
    generalize (exp (0 - 1 : R) : R) = w at *
    rw [show (1 : R) * 0 + (w * 1 + 0) = w by grind, show (1 : R) + (w + 0) = 1 + w by grind,
      Proof.absolute_of_nonneg (OrderedField.div_nonneg (Std.le_of_lt hw) (by grind)),
      OrderedField.div_le_iff (by grind)]
    grind
  have left : underflowLeft (tinyOnly 0) ν 1 0 (flushedKeys : List (BoundedKey R))
      = 1 - underflowCost (tinyOnly 0) ν 0 flushedKeys (fun _ => 1) := by
    simp only [underflowLeft, denominatorError, tinyOnly, gamma_zero]
    grind
  have e : underflowError (tinyOnly 0) ν 1 0 0 (flushedKeys : List (BoundedKey R))
      = (underflowCost (tinyOnly 0) ν 0 flushedKeys (fun k => absolute k.value)
        + (absolute (exactOutput (boundedWeights (tinyOnly (0 : R)) 0 flushedKeys))
          + tolerance (tinyOnly 0) 1 0 0 flushedKeys)
          * underflowCost (tinyOnly 0) ν 0 flushedKeys (fun _ => 1))
        / underflowLeft (tinyOnly 0) ν 1 0 flushedKeys + 5 * ν := by
    rw [underflowError, numerals.2.2.1]
    simp only [show (tinyOnly (0 : R)).accumulation = 0 from rfl,
      show (tinyOnly (0 : R)).unit = 0 from rfl, gamma_zero]
    rw [Semiring.add_zero, Semiring.one_mul, Semiring.one_mul]
  rw [e]
  have allowed₀ : tolerance (tinyOnly 0) 1 0 0 (flushedKeys : List (BoundedKey R)) ≤ 0 := by
    have e₃ : ∀ a : R, 0 / a = 0 := fun a => by rw [Field.div_eq_mul_inv, Semiring.zero_mul]
    rw [e₃] at allowed
    exact allowed
  clear e allowed
  generalize tolerance (tinyOnly 0) 1 0 0 (flushedKeys : List (BoundedKey R)) = T at *
  generalize absolute (exactOutput (boundedWeights (tinyOnly (0 : R)) 0 flushedKeys)) = o at *
  generalize underflowLeft (tinyOnly 0) ν 1 0 (flushedKeys : List (BoundedKey R)) = L at *
  generalize underflowCost (tinyOnly 0) ν 0 (flushedKeys : List (BoundedKey R))
    (fun _ => 1) = C at *
  generalize underflowCost (tinyOnly 0) ν 0 (flushedKeys : List (BoundedKey R))
    (fun k => absolute k.value) = V at *
  have hL : 0 < L := by grind
  refine ⟨hL, ?_⟩
  have k₁ : (V + (o + T) * C) / L ≤ 38 * ν := by
    rw [OrderedField.div_le_iff hL]
    have k₂ := OrderedRing.mul_le_mul_of_nonneg_right (a := o + T) (b := 1 / 2) (by grind) C₀
    have k₃ := OrderedRing.mul_le_mul_of_nonneg_left (a := 4) (b := 5 * L) (by grind) hν
    grind
  grind

/-- Where the second key is lost from the numerator, the output is too far off. -/
private theorem loses {run : Precision R → R → R → R → Part R → Prop} (claim : StaysWithin run)
    {l o : R} (zero : o / l = 0) (h : run (tinyOnly (0 : R)) ((exp (0 - 1 : R) : R) / 100) 0 0
      ⟨[exactKey 0 0, exactKey (0 - 1) 1], l, o, 1, 0⟩) : False := by
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have small : ∀ w : R, 0 < w → w < 1 → 0 ≤ w / 100 ∧ 100 * (w / 100) ≤ 1 :=
    fun w _ _ => ⟨by grind, by grind⟩
  obtain ⟨hν, hν₁⟩ := small _ hw hw₁
  obtain ⟨left, allowed⟩ := flushedKeys_allowed hν hν₁
  have same := itself (R := R) (u := 0) (ν := (exp (0 - 1 : R) : R) / 100) (Std.le_refl 0)
  have h := claim _ (tinyOnly_precise (Std.le_refl 0)) _ hν 0 (Std.le_refl _) 0 _ h
    (fun h => absurd rfl h)
    [⟨some 0, #v[0]⟩, ⟨some (0 - 1), #v[1]⟩] rfl ⟨exactKey 0 0, by simp, by simp [exactKey], rfl⟩ 0
    1 0 (fun key hk s hs => Proof.room_zero (by
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hk
      rcases hk with rfl | rfl <;>
      · obtain rfl := Option.some.inj hs
        exact exactKey_close ..))
    (Nat.le_refl _) (Nat.le_refl _) nofun
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀) left _
    ⟨_, ⟨_, ⟨_, ⟨_, ⟨_, rfl, same _⟩, same _⟩, same _⟩, same _⟩, same _⟩ 0
  have h₁ : -(43 * ((exp (0 - 1 : R) : R) / 100)) ≤ o / l
      - exp (0 - 1 : R) / (1 + exp (0 - 1 : R)) := by
    have := (h.mono allowed).1
    rw [attend_two] at this
    exact this
  rw [zero] at h₁
  clear h claim same allowed left hν₁ zero
  generalize (exp (0 - 1 : R) : R) = w at *
  have e₂ := OrderedField.mul_div_cancel (b := 1 + w) (by grind) w
  generalize w / (1 + w) = q at *
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_left (a := q) (b := 43 * (w / 100)) (by grind)
    (c := 1 + w) (by grind)
  rw [e₂] at h₂
  have h₃ : (1 + w) * (43 * (w / 100)) ≤ 2 * (43 * (w / 100)) :=
    OrderedRing.mul_le_mul_of_nonneg_right (by grind) (by grind)
  grind

omit [Exponential R R] in
private theorem hundred (w : R) : 100 * (w / 100) = w := by grind

theorem underflowsHundredfold_refuted : ¬ StaysWithin (R := R) underflowsHundredfold :=
  fun claim => loses claim (l := 1 + 0) (o := 0 + 0)
    (by rw [Semiring.add_zero, Field.div_eq_mul_inv, Semiring.zero_mul]) (by
    show TinyRun _ (100 * ((exp (0 - 1 : R) : R) / 100)) 0 0 _
    rw [hundred]
    exact run_flushed)

/-- Weights of up to a hundred times `ν` are lost where a factor of dropout multiplies them: they
count in the denominator alone. -/
@[expose] def factorsLoseHundredfold (p : Precision R) (ν μ m : R) (part : Part R) : Prop :=
  ∃ a b : Part R, TinyRun p ν μ m a ∧ TinyRun p ν μ m b ∧ b.l ≤ 100 * ν ∧
    part = ⟨a.keys ++ b.keys, a.l + b.l, a.o, max a.additions b.additions + 1,
      max a.rescalings b.rescalings⟩

/-- The two keys, as they are where nothing underflows. -/
private theorem run_exact : 0 ≤ (exp (0 - 1 : R) : R) / 100 ∧
    TinyRun (tinyOnly (0 : R)) ((exp (0 - 1 : R) : R) / 100) 0 0 ⟨[exactKey 0 0], 1, 0, 0, 0⟩ ∧
    TinyRun (tinyOnly (0 : R)) ((exp (0 - 1 : R) : R) / 100) 0 0
      ⟨[exactKey (0 - 1) 1], exp (0 - 1 : R), exp (0 - 1 : R) * 1, 0, 0⟩ := by
  have hν : 0 ≤ (exp (0 - 1 : R) : R) / 100 := by
    have := exp_pos (R := R) (0 - 1 : R)
    generalize (exp (0 - 1 : R) : R) = w at *
    grind
  have e₁ : ∀ x : R, x - 0 = x := fun x => by grind
  refine ⟨hν, ?_, ?_⟩
  · exact .key (x := 0 - 0) (w := 1) (w' := 1) (by simp [exactKey]) (Std.le_refl _)
      (.inl (rounded_refl (Std.le_refl _) _))
      (by rw [exp_sub_self]; exact itself (Std.le_refl _) _) (itself (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored hν (by rw [Semiring.one_mul]; exact itself (Std.le_refl _) _))
  · exact .key (x := 0 - 1 - 0) (w := exp (0 - 1 : R)) (w' := exp (0 - 1 : R)) (by simp [exactKey])
      (by show (0 : R) - 1 ≤ 0; have := OrderedRing.zero_lt_one (R := R); grind)
      (.inl (rounded_refl (Std.le_refl _) _))
      (by rw [e₁]; exact itself (Std.le_refl _) _) (itself (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored hν (itself (Std.le_refl _) _))

theorem factorsLoseHundredfold_refuted : ¬ StaysWithin (R := R) factorsLoseHundredfold :=
  fun claim => by
  obtain ⟨-, a, b⟩ := run_exact (R := R)
  exact loses claim (l := 1 + exp (0 - 1 : R)) (o := 0)
    (by rw [Field.div_eq_mul_inv, Semiring.zero_mul])
    ⟨_, _, a, b, by rw [hundred]; exact Std.le_refl _, rfl⟩

/-- No error has room for differences that are flushed to 0. -/
@[expose] def noRoom (_ : R) (_ : Nat) : R := 0

theorem noRoom_refuted : ¬ StaysWithin (R := R) TinyRun noRoom := fun claim => by
  obtain ⟨hw, hw₁⟩ := small_weight (R := R)
  have h₀ := OrderedRing.zero_lt_one (R := R)
  obtain ⟨left, allowed⟩ := flushedKeys_allowed (R := R) (Std.le_refl 0) (by
    rw [Semiring.mul_zero]
    exact Std.le_of_lt h₀)
  have key : ∀ s v : R, s ≤ 0 → -1 ≤ s → TinyRun (tinyOnly (0 : R)) 0 1 0 (singlePart s v 1 v) :=
    fun s v hs hs' => .key (x := 0) (w := 1) (w' := 1) (by simp [exactKey]) hs
      (.inr ⟨⟨by show -1 ≤ s - 0; grind, by show s - 0 ≤ 1; grind⟩, rfl⟩)
      (by rw [exp_zero]; exact itself (Std.le_refl _) _) (itself (Std.le_refl _) _)
      (Proof.tinyProduct_of_stored (Std.le_refl _)
        (by rw [Semiring.one_mul]; exact itself (Std.le_refl _) _))
  have run : TinyRun (tinyOnly (0 : R)) 0 1 0
      ⟨[exactKey 0 0, exactKey (0 - 1) 1], 1 + 1, 0 + 1, 1, 0⟩ :=
    .join (p := tinyOnly (0 : R)) (m := 0) (a := 0) (k := 1) (r := 0)
      (parts := [singlePart 0 0 1 0, singlePart (0 - 1) 1 1 1])
      (fun part hp => by
        simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
        rcases hp with rfl | rfl
        · exact key 0 0 (Std.le_refl _) (by clear claim; grind)
        · exact key (0 - 1) 1 (by clear claim; grind) (by clear claim; grind))
      (fun part hp => by
        simp only [List.mem_cons, List.not_mem_nil, or_false] at hp
        rcases hp with rfl | rfl <;> exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
      (.add (xs := [singlePart 0 0 1 0]) (ys := [singlePart (0 - 1) 1 1 1]) .one .one
        (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _))
      (.add (xs := [singlePart 0 0 1 0]) (ys := [singlePart (0 - 1) 1 1 1]) .one .one
        (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _))
  have same := itself (R := R) (u := 0) (ν := 0) (Std.le_refl 0)
  have h := claim _ (tinyOnly_precise (Std.le_refl 0)) 0 (Std.le_refl _) 1 (Std.le_of_lt h₀) 0 _ run
    (fun h => absurd rfl h)
    [⟨some 0, #v[0]⟩, ⟨some (0 - 1), #v[1]⟩] rfl ⟨exactKey 0 0, by simp, by simp [exactKey], rfl⟩ 0
    1 0 (fun key hk s hs => by
      rw [noRoom, show ∀ e : R, e - 0 = e from fun e => by grind]
      simp only [List.mem_cons, List.not_mem_nil, or_false] at hk
      rcases hk with rfl | rfl <;>
      · obtain rfl := Option.some.inj hs
        exact exactKey_close ..)
    (Nat.le_refl _) (Nat.le_refl _) nofun
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀)
    (by simp only [tinyOnly, Semiring.mul_zero]; exact h₀) left _
    ⟨_, ⟨_, ⟨_, ⟨_, ⟨_, rfl, same _⟩, same _⟩, same _⟩, same _⟩, same _⟩ 0
  have h₁ : (0 + 1) / (1 + 1) - (exp (0 - 1 : R) : R) / (1 + exp (0 - 1 : R)) ≤ 43 * 0 := by
    have := (h.mono allowed).2
    rw [attend_two] at this
    exact this
  clear h claim same allowed left run key
  generalize (exp (0 - 1 : R) : R) = w at *
  have e₂ := OrderedField.mul_div_cancel (b := 1 + w) (by grind) w
  generalize w / (1 + w) = q at *
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right (a := 1 / 2) (b := q) (by grind)
    (c := 1 + w) (by grind)
  grind

/-- Sums of two numerators may be off by a hundred times `ν`. -/
@[expose] def sumsLoseHundredfold (p : Precision R) (ν μ m : R) (part : Part R) : Prop :=
  ∃ (a b : Part R) (l o : R), TinyRun p ν μ m a ∧ TinyRun p ν μ m b ∧
    PartSum p.unit ν (·.l) 1 [a, b] l ∧ PartSum p.accumulation (100 * ν) (·.o) 1 [a, b] o ∧
    part = ⟨a.keys ++ b.keys, l, o, max a.additions b.additions + 1,
      max a.rescalings b.rescalings⟩

theorem sumsLoseHundredfold_refuted : ¬ StaysWithin (R := R) sumsLoseHundredfold :=
  fun claim => by
  obtain ⟨-, a, b⟩ := run_exact (R := R)
  have l : PartSum (0 : R) ((exp (0 - 1 : R) : R) / 100) (fun part => part.l) 1
      [⟨[exactKey 0 0], 1, 0, 0, 0⟩,
        ⟨[exactKey (0 - 1) 1], exp (0 - 1 : R), exp (0 - 1 : R) * 1, 0, 0⟩]
      (1 + exp (0 - 1 : R)) :=
    SumOf.add (f := fun part : Part R => part.l) (xs := [⟨[exactKey 0 0], 1, 0, 0, 0⟩])
      (ys := [⟨[exactKey (0 - 1) 1], exp (0 - 1 : R), exp (0 - 1 : R) * 1, 0, 0⟩]) .one .one
      (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _)
  have o : PartSum (0 : R) (100 * ((exp (0 - 1 : R) : R) / 100)) (fun part => part.o) 1
      [⟨[exactKey 0 0], 1, 0, 0, 0⟩,
        ⟨[exactKey (0 - 1) 1], exp (0 - 1 : R), exp (0 - 1 : R) * 1, 0, 0⟩] 0 := by
    refine SumOf.tiny (f := fun part : Part R => part.o) (xs := [⟨[exactKey 0 0], 1, 0, 0, 0⟩])
      (ys := [⟨[exactKey (0 - 1) 1], exp (0 - 1 : R), exp (0 - 1 : R) * 1, 0, 0⟩]) .one .one
      ⟨_, List.mem_singleton.mpr rfl, by simp [exactKey]⟩
      ⟨_, List.mem_singleton.mpr rfl, by simp [exactKey]⟩
      (rounded_refl (Std.le_refl _) _) (rounded_refl (Std.le_refl _) _) ?_
    have pos := exp_pos (R := R) (0 - 1 : R)
    show AtMost (100 * ((exp (0 - 1 : R) : R) / 100)) (0 - (0 + exp (0 - 1 : R) * 1))
    rw [hundred]
    clear claim a b l
    generalize (exp (0 - 1 : R) : R) = w at *
    exact ⟨by grind, by grind⟩
  exact loses claim (l := 1 + exp (0 - 1 : R)) (o := 0)
    (by rw [Field.div_eq_mul_inv, Semiring.zero_mul]) ⟨_, _, _, _, a, b, l, o, rfl⟩

end Attention.WrongVariants
