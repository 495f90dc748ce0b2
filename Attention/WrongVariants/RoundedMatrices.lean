module

public import Attention.Proof.Rounding.DroppedMatrices
public import Attention.WrongVariants.RoundingRules

public section

/-! # Wrong variants of attention of matrices with changed scores

A sink that has a value, softcap after the number that is added, and dropout's factor in the
denominator: what each part of a function says of itself is right, and the output is another in
exact arithmetic. Over every ordered field with the exponential of slope 1 at 0.
Source: docs/tolerances.md, section 1. -/

namespace Attention.WrongVariants

open Spec Model Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [NaturalExp R]

/-- The factor of a column's weight; 1 for the sink. -/
@[expose] def columnFactor (q : R) (keep : Mask 1 1) (col : Option (Fin 1)) : R :=
  match col with
  | none => 1
  | some j => dropoutFactor q (keep 0 j)

/-- The claim of `rounded_dropout_matrices` for one query and one key of one number each, of any
changes, any value of the sink and any divisor of the numerator: `factors` is what the function may
compute of the same weights, with their factors for values. -/
abbrev MatricesStayAllowed
    (change : Precision R → ScoreFormats R → ScoreChange R → R → R → Prop := ComputedChange)
    (sinkValue : R → Prop := fun x => x = 0)
    (divisor : Part R → Part R → R := fun part _ => part.l) : Prop :=
  ∀ (p : Precision R) (f : ScoreFormats R), Precise p → p.unit ≤ p.accumulation →
    p.unit ≤ 1 / 128 → PreciseFormats f → 0 ≤ f.scores → f.scores ≤ 1 / 32 →
    10 * (numeral (0 + 4) * p.accumulation) + 4 * (operandFactor p f - 1) ≤ 1 →
    ∀ scale σ₁ σ₂ σ : R, ScaledBy p f scale σ₁ σ₂ σ →
    ∀ changes : ScoreChanges R 1 1, (∀ cap, changes.cap = some cap → 0 < cap) →
    ∀ cols : List (Option (Fin 1)), cols.Perm changes.columns →
    ∀ (mask : Mask 1 1) (Q K V : Matrix R 1 1) (computed used : Option (Fin 1) → R),
    (∀ sink, changes.sink = some sink → ComputedSink p f sink (computed none)) →
    (∀ j, changes.score scale mask Q K 0 (some j) ≠ none →
      ∃ x, ComputedScore p f 0 σ₁ σ₂ σ Q[0] K[j] x ∧
        change p f (changes.pair 0 j) x (computed (some j))) →
    ∀ q z : R, 0 ≤ q → q < 1 → 0 ≤ z → ∀ keep : Mask 1 1, sinkValue (used none) →
    (∀ j, dropoutFactor q (keep 0 j) ≤ z ∧
      ComputedDropout p.accumulation q (keep 0 j) V[j][(0 : Fin 1)] (used (some j))) →
    ∀ (m : R) (part factors : Part R), Run p m part → Run p m factors →
    part.keys = computedChangedKeys p f 0 changes false scale mask Q K V 0 0 cols computed used →
    factors.keys = computedChangedKeys p f 0 changes false scale mask Q K V 0 0 cols computed
      (columnFactor q keep) →
    (∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) →
    ∀ roundings rescalings : Nat, part.rescalings ≤ rescalings →
    part.additions + part.rescalings ≤ roundings →
    (p.denominator = .rounded → 3 * storingErrors p rescalings (boundedWeights p rescalings
      (changedKeys p f 0 changes false scale mask Q K
        (droppedValues V (.dropout q keep) 0) 0 0 cols)) ≤ 1) →
    (numeral (roundings + 6) + (z + numeral 5)) * p.accumulation < 1 →
    2 * numeral roundings * p.unit < 1 →
    ∀ o : R, RoundedTimes p.accumulation 5 (part.o / divisor part factors) o →
    ∀ u η o' : R, StoredNear u η o o' → ∀ negligible : R,
    AtMost (storedTolerance (moreRoundings p (roundings + 6) (z + numeral 5)) u η roundings
        rescalings negligible (changedKeys p f 0 changes false scale mask Q K
          (droppedValues V (.dropout q keep) 0) 0 0 cols))
      (o' - (changes.attentionDropout scale mask Q K V (.dropout q keep))[0][0])

attribute [local instance] Semiring.natCast in
/-- Positive control: the functions of the theorem. -/
theorem computedMatrices_stayAllowed
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) : MatricesStayAllowed (R := R) :=
  fun _ _ hp hu hu' hf hf₀ hf₁ hd _ _ _ _ hσ _ hcap _ hcols _ _ _ _ _ _ sink scores _ _ hq hq₁ hz
      _ value factors _ _ _ run _ keys _ attained _ _ hr ha third hN hD _ result _ _ _ stored =>
    Proof.rounded_dropout_matrices archimedean hp hu hu' hf hf₀ hf₁ hd hσ hcap hcols ⟨sink, scores⟩
      hq hq₁ hz value factors run keys attained hr ha third hN hD result stored

/-! ## What counterexamples are made of -/

omit [NaturalExp R] in
private theorem absolute_zero : absolute (0 : R) = 0 := by
  rw [absolute, OrderedField.max_def]
  split <;> grind

/-- Where nothing is rounded, no score is allowed an error. -/
private theorem noError (changes : ScoreChanges R 1 1) (Q K : Matrix R 1 1) (i : Fin 1) (m : R)
    (col : Option (Fin 1)) :
    changes.error (unitOnly 0) inAccumulator 0 false 1 Q K i m col = 0 := by
  have e : ∀ A s b : R, scoreError (unitOnly 0) inAccumulator 0 1 A 0 s b = 0 := fun A s b => by
    simp only [scoreError, gamma, operandFactor, Proof.power_eq, inAccumulator, Semiring.pow_zero,
      unitOnly]
    grind
  have e' : ∀ q k : Vec R 1, operandUnderflow (unitOnly 0) inAccumulator 0 q k = 0 := fun q k => by
    simp only [operandUnderflow, inAccumulator, Semiring.mul_zero, Semiring.zero_mul]
  cases col with
  | none =>
    simp only [ScoreChanges.error]
    split
    · rfl
    · simp only [sinkError, unitOnly, inAccumulator]
      grind
  | some j =>
    simp only [ScoreChanges.error, e', e, changedError, softcapError, addedError]
    split <;> split <;> simp only [unitOnly, inAccumulator] <;> grind

private theorem keysClose {changes : ScoreChanges R 1 1} {mask : Mask 1 1} {Q K V : Matrix R 1 1}
    {cols : List (Option (Fin 1))} :
    ∀ key ∈ changedKeys (unitOnly 0) inAccumulator 0 changes false 1 mask Q K V 0 0 cols,
      key.score ≠ none → key.error = 0 := by
  intro key hkey _
  obtain ⟨col, -, rfl⟩ := List.mem_map.mp hkey
  unfold changedKey
  split
  · exact noError ..
  · rfl

omit [NaturalExp R] in
private theorem kept (x : R) : StoredNear 0 0 x x :=
  Proof.storedNear_of_rounded (rounded_refl (Std.le_refl _) x) (Std.le_refl _)

omit [NaturalExp R] in
private theorem scoreOf (x : R) :
    ComputedScore (unitOnly 0) inAccumulator 0 1 1 1 (#v[x] : Vec R 1) #v[1] x := by
  refine ⟨0, 0, fun _ => x, fun _ => 1, fun _ => x, x, x, Nat.le_refl _, fun i => ?_, fun i => ?_,
    fun i => ?_, .one, ?_, kept _⟩
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact (Semiring.one_mul x).symm
  · obtain rfl : i = 0 := Subsingleton.elim _ _
    exact (Semiring.one_mul 1).symm
  · rw [Semiring.mul_one]
    exact rounded_refl (Std.le_refl _) _
  · rw [Semiring.one_mul]
    exact roundedTimes_refl (Std.le_refl _) 2 _

private def columnsOf (a b : R) (col : Option (Fin 1)) : R :=
  match col with
  | none => a
  | some _ => b

private abbrev seen : Mask 1 1 := fun _ _ => true

/-- The claim for functions that round nothing: the output is the exact one. -/
private theorem exactly {change : Precision R → ScoreFormats R → ScoreChange R → R → R → Prop}
    {sinkValue : R → Prop} {divisor : Part R → Part R → R}
    (claim : MatricesStayAllowed change sinkValue divisor) {changes : ScoreChanges R 1 1}
    (hcap : ∀ cap, changes.cap = some cap → 0 < cap) {x v q z : R} {keep : Mask 1 1}
    {computed used : Option (Fin 1) → R}
    (sink : ∀ sink, changes.sink = some sink → computed none = sink)
    (changed : change (unitOnly 0) inAccumulator (changes.pair 0 0) x (computed (some 0)))
    (hq : 0 ≤ q) (hq₁ : q < 1) (hz : 0 ≤ z) (value : sinkValue (used none))
    (factor : dropoutFactor q (keep 0 0) ≤ z ∧
      ComputedDropout 0 q (keep 0 0) v (used (some 0)))
    {m : R} {part factors : Part R} (run : Run (unitOnly 0) m part)
    (run' : Run (unitOnly 0) m factors)
    (keys : part.keys = computedChangedKeys (unitOnly 0) inAccumulator 0 changes false 1 seen
      #v[#v[x]] #v[#v[1]] #v[#v[v]] 0 0 changes.columns computed used)
    (keys' : factors.keys = computedChangedKeys (unitOnly 0) inAccumulator 0 changes false 1 seen
      #v[#v[x]] #v[#v[1]] #v[#v[v]] 0 0 changes.columns computed (columnFactor q keep))
    (attained : ∃ key ∈ part.keys, key.score ≠ none ∧ key.computed = m) :
    part.o / divisor part factors = (attend (Proof.columnsScored changes 1 seen #v[#v[x]] #v[#v[1]]
      (droppedValues #v[#v[v]] (.dropout q keep) 0) 0 changes.columns))[0] := by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have none : ∀ y : R, y * (unitOnly 0 : Precision R).accumulation = 0 := fun y =>
    Semiring.mul_zero y
  have h := claim (unitOnly 0) inAccumulator (unitOnly_precise (Std.le_refl _)) (Std.le_refl _)
    (by show (0 : R) ≤ 1 / 128; grind) Proof.inAccumulator_precise (Std.le_refl _)
    (by show (0 : R) ≤ 1 / 32; grind) (by
      rw [none, operandFactor, Proof.power_eq, inAccumulator, Semiring.pow_zero]
      grind) 1 1 1 1 (Proof.scaledBy_normal rfl (by
      rw [Semiring.mul_one, Semiring.mul_one]
      exact roundedTimes_refl (Std.le_refl _) 3 1)) changes hcap changes.columns (.refl _) seen
    #v[#v[x]] #v[#v[1]] #v[#v[v]] computed used (fun s hs => by
      rw [sink s hs]
      exact ⟨s, roundedTimes_refl (Std.le_refl _) 2 s, atMost_sub_self s⟩) (fun j _ => by
      obtain rfl : j = 0 := Subsingleton.elim _ _
      exact ⟨x, scoreOf x, changed⟩) q z hq hq₁ hz keep value (fun j => by
      obtain rfl : j = 0 := Subsingleton.elim _ _
      exact factor) m part factors run run' keys keys' attained _ _ (Nat.le_refl _) (Nat.le_refl _)
    nofun (by rw [none]; exact h₀) (by
      show 2 * numeral _ * (0 : R) < 1
      rw [Semiring.mul_zero]
      exact h₀) _ (roundedTimes_refl (Std.le_refl _) 5 _) 0 0 _ (kept _) 0
  have e : moreRoundings (unitOnly 0 : Precision R) (part.additions + part.rescalings + 6)
      (z + numeral 5) = unitOnly 0 := by
    simp only [moreRoundings, unitOnly, Precision.mk.injEq, and_true, true_and]
    rw [Semiring.zero_mul, Field.div_eq_mul_inv, Semiring.zero_mul]
  rw [e, storedTolerance, Semiring.zero_mul, Semiring.add_zero, Semiring.add_zero] at h
  obtain ⟨h₁, h₂⟩ := h.mono (Proof.tolerance_exact_le keysClose _ _ _)
  have e' : (changes.attentionDropout 1 seen #v[#v[x]] #v[#v[1]] #v[#v[v]] (.dropout q keep))[0][0]
      = (attend (Proof.columnsScored changes 1 seen #v[#v[x]] #v[#v[1]]
      (droppedValues #v[#v[v]] (.dropout q keep) 0) 0 changes.columns))[0] := by
    rw [Proof.attend_columns (.refl _)]
    simp only [ScoreChanges.attentionDropout, Vec.getElem_ofFn]
    rfl
  rw [← e']
  generalize (changes.attentionDropout 1 seen #v[#v[x]] #v[#v[1]] #v[#v[v]]
    (.dropout q keep))[0][0] = y at *
  generalize part.o / divisor part factors = z at *
  clear claim h
  grind

/-- The keys of a row, of which nothing is rounded. -/
private theorem keysOf {changes : ScoreChanges R 1 1} {Q K V : Matrix R 1 1}
    {cols : List (Option (Fin 1))} {computed used : Option (Fin 1) → R} :
    computedChangedKeys (unitOnly 0) inAccumulator 0 changes false 1 seen Q K V 0 0 cols computed
        used
      = cols.map fun col => ⟨⟨changes.score 1 seen Q K 0 col, 0, used col⟩, computed col⟩ := by
  rw [computedChangedKeys]
  refine List.map_congr_left fun col hcol => ?_
  have h := Proof.changedKey_score (p := unitOnly 0) (f := inAccumulator) (additions := 0)
    (changes := changes) (whole := false) (scale := 1) (mask := seen) (Q := Q) (K := K) (V := V)
    (i := 0) (t := 0) hcol
  have e : (changedKey (unitOnly 0) inAccumulator 0 changes false 1 seen Q K V 0 0
      (rowMax (cols.map (changes.score 1 seen Q K 0))) col).error = 0 := by
    unfold changedKey
    split
    · exact noError ..
    · rfl
  simp only [h, e]

private theorem runKey {m : R} {key : ComputedKey R} (h : key.score ≠ none)
    (hm : key.computed ≤ m) : Run (unitOnly 0) m
      ⟨[key], exp (key.computed - m), exp (key.computed - m) * key.value, 0, 0⟩ :=
  .key (w' := exp (key.computed - m)) h hm (rounded_refl (Std.le_refl _) _)
    (rounded_refl (Std.le_refl _) _) (Proof.stored_refl (Std.le_refl _) _)
    (rounded_refl (Std.le_refl _) _)

private theorem runPair {m : R} {a b : ComputedKey R} (ha : a.score ≠ none) (hb : b.score ≠ none)
    (ham : a.computed ≤ m) (hbm : b.computed ≤ m) : Run (unitOnly 0) m
      ⟨[a, b], exp (a.computed - m) + exp (b.computed - m),
        exp (a.computed - m) * a.value + exp (b.computed - m) * b.value, 1, 0⟩ := by
  have h := Run.join (p := unitOnly 0) (m := m) (a := 0) (k := 1) (r := 0)
    (parts := [⟨[a], exp (a.computed - m), exp (a.computed - m) * a.value, 0, 0⟩,
      ⟨[b], exp (b.computed - m), exp (b.computed - m) * b.value, 0, 0⟩])
    (fun part hp => by
      rcases List.mem_cons.mp hp with rfl | hp
      · exact runKey ha ham
      · obtain rfl := List.mem_singleton.mp hp
        exact runKey hb hbm)
    (fun part hp => by
      rcases List.mem_cons.mp hp with rfl | hp
      · exact ⟨Nat.le_refl _, Nat.le_refl _⟩
      · obtain rfl := List.mem_singleton.mp hp
        exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
    (roundedSum_pair (Std.le_refl _) _ _) (roundedSum_pair (Std.le_refl _) _ _)
  exact h

omit [NaturalExp R] in
private theorem one_div_one : (1 : R) = 1 / 1 := by grind

omit [NaturalExp R] in
private theorem atMost_self_sub (x : R) : AtMost (numeral 4 * (unitOnly 0 : Precision R).unit)
    (x - x) := by
  show AtMost (numeral 4 * 0) (x - x)
  rw [Semiring.mul_zero]
  exact atMost_sub_self x

omit [NaturalExp R] in
private theorem factor_one : dropoutFactor (0 : R) true = 1 := by
  show 1 / (1 - 0) = (1 : R)
  grind

omit [NaturalExp R] in
private theorem dropoutOfNone (v : R) : ComputedDropout 0 0 true v v :=
  ⟨0, 1 - 0, 1 / (1 - 0), rounded_refl (Std.le_refl _) _, rounded_refl (Std.le_refl _) _,
    roundedTimes_refl (Std.le_refl _) 4 _, by
      rw [show 1 / (1 - 0) * v = v by grind]
      exact rounded_refl (Std.le_refl _) _⟩

/-- The attention of a sink of score 0 and a key of score `s`. -/
private theorem attendWithSink {cap : Option R} {added : Option (Matrix (Option R) 1 1)}
    {Q K V : Matrix R 1 1} {s : R}
    (hs : ScoreChanges.score ⟨cap, added, some 0⟩ 1 seen Q K 0 (some 0) = some s) :
    (attend (Proof.columnsScored ⟨cap, added, some 0⟩ 1 seen Q K V 0
      (⟨cap, added, some 0⟩ : ScoreChanges R 1 1).columns))[0] = exp s * V[0][0] / (1 + exp s) := by
  have e : Proof.columnsScored ⟨cap, added, some 0⟩ 1 seen Q K V 0
      (⟨cap, added, some 0⟩ : ScoreChanges R 1 1).columns
        = [⟨some 0, Vec.ofFn fun t => columnValue V t none⟩,
          ⟨some s, Vec.ofFn fun t => columnValue V t (some 0)⟩] := by
    rw [← hs]
    rfl
  rw [e, Proof.getElem_attend]
  simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
    sumOver_nil, Vec.getElem_ofFn, columnValue, exp_zero]
  show ((1 : R) * (0 : R) + (exp s * V[0][0] + 0)) / (1 + (exp s + 0)) = _
  generalize (exp s : R) = y
  generalize V[0][0] = v
  rw [show 1 * 0 + (y * v + 0) = y * v by grind, show 1 + (y + 0) = 1 + y by grind]

/-! ## Functions -/

theorem sinkHasValue_refuted :
    ¬ MatricesStayAllowed (R := R) (sinkValue := fun x => x = 1) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have hs : (⟨none, none, some 0⟩ : ScoreChanges R 1 1).score 1 seen #v[#v[0]] #v[#v[1]] 0 (some 0)
      = some 0 := by
    show some (1 * (0 * 1 + 0)) = some (0 : R)
    congr 1
    grind
  have run := fun a b : R => runPair (m := (0 : R)) (a := ⟨⟨some 0, 0, a⟩, 0⟩)
    (b := ⟨⟨some 0, 0, b⟩, 0⟩) nofun nofun (Std.le_refl _) (Std.le_refl _)
  have keys : ∀ used : Option (Fin 1) → R, ([⟨⟨some 0, 0, used none⟩, 0⟩,
      ⟨⟨some 0, 0, used (some 0)⟩, 0⟩] : List (ComputedKey R))
        = computedChangedKeys (unitOnly 0) inAccumulator 0 ⟨none, none, some 0⟩ false 1 seen
          #v[#v[0]] #v[#v[1]] #v[#v[0]] 0 0 (⟨none, none, some 0⟩ : ScoreChanges R 1 1).columns
          (fun _ => 0) used := fun used => by
    have e : (⟨none, none, some 0⟩ : ScoreChanges R 1 1).columns = [none, some 0] := rfl
    rw [keysOf, e]
    simp only [List.map_cons, List.map_nil, hs]
    rfl
  have h := exactly claim (changes := ⟨none, none, some 0⟩) nofun (x := 0) (v := 0) (q := 0)
    (z := 1) (keep := seen) (computed := fun _ => 0)
    (used := columnsOf 1 0)
    (fun s hs => Option.some.inj hs) ⟨0, rfl, rfl⟩ (Std.le_refl _) h₀ (Std.le_of_lt h₀) rfl
    ⟨by rw [factor_one]; exact Std.le_refl _, dropoutOfNone 0⟩ (run 1 0) (run _ _)
    (keys (columnsOf 1 0)) (keys (columnFactor 0 seen)) ⟨_, List.mem_cons_self, nofun, rfl⟩
  rw [attendWithSink hs] at h
  have e : (droppedValues (#v[#v[0]] : Matrix R 1 1) (.dropout 0 seen) 0)[0][0] = 0 := by
    show dropoutFactor 0 true * (0 : R) = 0
    rw [Semiring.mul_zero]
  simp only [e, exp_sub_self, exp_zero] at h
  clear claim keys run
  grind

/-- The number is added first, and the sum squeezed. -/
@[expose] def sumSqueezed (p : Precision R) (f : ScoreFormats R) (change : ScoreChange R)
    (x y : R) : Prop :=
  ∃ z, ComputedChange p f { change with cap := none } x z ∧
    ComputedChange p f { change with added := none } z y

theorem sumSqueezed_refuted : ¬ MatricesStayAllowed (R := R) sumSqueezed := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have ht := Proof.tanh_lt_one (1 : R)
  have ht₀ : 0 < tanh (1 : R) := by
    have h := Proof.tanh_lt h₀
    have e := Proof.tanh_neg (0 : R)
    rw [show (-0 : R) = 0 by grind] at e
    generalize (tanh (0 : R) : R) = a at *
    clear claim
    grind
  have hs : (⟨some 1, some #v[#v[some 1]], some 0⟩ : ScoreChanges R 1 1).score 1 seen #v[#v[0]]
      #v[#v[1]] 0 (some 0) = some 1 := by
    show some (1 * tanh (1 * (0 * 1 + 0) / 1) + 1) = some (1 : R)
    have e := Proof.tanh_neg (0 : R)
    rw [show (-0 : R) = 0 by grind] at e
    rw [show 1 * (0 * 1 + 0) / 1 = (0 : R) by grind]
    congr 1
    generalize (tanh (0 : R) : R) = a at *
    clear claim
    grind
  have run := fun a b : R => runPair (m := tanh (1 : R)) (a := ⟨⟨some 0, 0, a⟩, 0⟩)
    (b := ⟨⟨some 1, 0, b⟩, tanh 1⟩) nofun nofun (Std.le_of_lt ht₀) (Std.le_refl _)
  have keys : ∀ used : Option (Fin 1) → R, ([⟨⟨some 0, 0, used none⟩, 0⟩,
      ⟨⟨some 1, 0, used (some 0)⟩, tanh 1⟩] : List (ComputedKey R))
        = computedChangedKeys (unitOnly 0) inAccumulator 0
          ⟨some 1, some #v[#v[some 1]], some 0⟩ false 1 seen #v[#v[0]] #v[#v[1]] #v[#v[1]] 0 0
          (⟨some 1, some #v[#v[some 1]], some 0⟩ : ScoreChanges R 1 1).columns
          (columnsOf 0 (tanh 1)) used := fun used => by
    have e : (⟨some 1, some #v[#v[some 1]], some 0⟩ : ScoreChanges R 1 1).columns
      = [none, some 0] := rfl
    rw [keysOf, e]
    simp only [List.map_cons, List.map_nil, hs]
    rfl
  have h := exactly claim (changes := ⟨some 1, some #v[#v[some 1]], some 0⟩)
    (fun cap h => by cases h; exact h₀) (x := 0) (v := 1) (q := 0)
    (z := 1) (keep := seen) (computed := columnsOf 0 (tanh 1))
    (used := columnsOf 0 1)
    (fun s hs => Option.some.inj hs) ⟨1, ⟨0, rfl, 1, 1, 1,
      roundedTimes_refl (Std.le_refl _) 2 1, kept _, by
        rw [show (0 : R) + 1 = 1 by grind]
        exact roundedTimes_refl (Std.le_refl _) 2 1, kept _⟩,
      tanh 1, ⟨0, 0, 1, tanh 1, tanh 1, by omega, one_div_one, atMost_self_sub _, by
        show tanh (1 : R) = 1 * tanh 1
        rw [Semiring.one_mul], kept _⟩, rfl⟩
    (Std.le_refl _) h₀ (Std.le_of_lt h₀) rfl
    ⟨by rw [factor_one]; exact Std.le_refl _, dropoutOfNone 1⟩ (run 0 1) (run _ _)
    (keys (columnsOf 0 1)) (keys (columnFactor 0 seen))
    ⟨_, List.mem_cons_of_mem _ List.mem_cons_self, nofun, rfl⟩
  rw [attendWithSink hs] at h
  have e : (droppedValues (#v[#v[1]] : Matrix R 1 1) (.dropout 0 seen) 0)[0][0] = 1 := by
    show dropoutFactor 0 true * (1 : R) = 1
    rw [factor_one, Semiring.mul_one]
  simp only [e, exp_sub_self] at h
  have h₁ : (exp (1 - tanh (1 : R)) : R) = exp (1 : R) * exp (0 - tanh (1 : R)) := by
    rw [← exp_add]
    congr 1
    generalize (tanh (1 : R) : R) = a
    grind
  have h₂ := exp_lt (R := R) 0 (1 - tanh (1 : R)) (by
    generalize (tanh (1 : R) : R) = a at *
    clear claim keys run h h₁
    grind)
  rw [exp_zero, h₁] at h₂
  have h₃ := exp_pos (R := R) (1 : R)
  have h₄ := exp_pos (R := R) (0 - tanh (1 : R))
  generalize (exp (0 - tanh (1 : R)) : R) = a at *
  generalize (exp (1 : R) : R) = b at *
  clear claim keys run h₁
  have h₅ : (a + 1) * (b * 1) = 1 * (1 + b) := by
    have i₁ : (a * 0 + 1 * 1) / (a + 1) * (a + 1) = 1 := by grind
    have i₂ : b * 1 / (1 + b) * (1 + b) = b := by grind
    rw [h] at i₁
    grind
  grind

theorem factorInDenominator_refuted :
    ¬ MatricesStayAllowed (R := R) (divisor := fun _ factors => factors.o) := fun claim => by
  have h₀ := OrderedRing.zero_lt_one (R := R)
  have half : dropoutFactor (1 / 2 : R) true = 2 := by
    show 1 / (1 - 1 / 2) = (2 : R)
    clear claim
    grind
  have hs : (⟨none, none, none⟩ : ScoreChanges R 1 1).score 1 seen #v[#v[0]] #v[#v[1]] 0 (some 0)
      = some 0 := by
    show some (1 * (0 * 1 + 0)) = some (0 : R)
    congr 1
    grind
  have run := fun a : R => runKey (m := (0 : R)) (key := ⟨⟨some 0, 0, a⟩, 0⟩) nofun (Std.le_refl _)
  have keys : ∀ used : Option (Fin 1) → R,
      ([⟨⟨some 0, 0, used (some 0)⟩, 0⟩] : List (ComputedKey R))
        = computedChangedKeys (unitOnly 0) inAccumulator 0 ⟨none, none, none⟩ false 1 seen
          #v[#v[0]] #v[#v[1]] #v[#v[1]] 0 0 (⟨none, none, none⟩ : ScoreChanges R 1 1).columns
          (fun _ => 0) used := fun used => by
    have e : (⟨none, none, none⟩ : ScoreChanges R 1 1).columns = [some 0] := rfl
    rw [keysOf, e]
    simp only [List.map_cons, List.map_nil, hs]
  have h := exactly claim (changes := ⟨none, none, none⟩) nofun (x := 0) (v := 1) (q := 1 / 2)
    (z := 2) (keep := seen) (computed := fun _ => 0)
    (used := columnsOf 0 2)
    nofun ⟨0, rfl, rfl⟩ (by clear claim; grind) (by clear claim; grind) (by clear claim; grind) rfl
    ⟨by rw [half]; exact Std.le_refl _, 1 / 2, 1 - 1 / 2, 1 / (1 - 1 / 2),
      rounded_refl (Std.le_refl _) _, rounded_refl (Std.le_refl _) _,
      roundedTimes_refl (Std.le_refl _) 4 _, by
        show Rounded 0 (1 / (1 - 1 / 2) * 1) (2 : R)
        rw [show 1 / (1 - 1 / 2) * 1 = (2 : R) by clear claim; grind]
        exact rounded_refl (Std.le_refl _) _⟩ (run 2) (run _)
    (keys (columnsOf 0 2)) (keys (columnFactor (1 / 2) seen)) ⟨_, List.mem_cons_self, nofun, rfl⟩
  have e : Proof.columnsScored ⟨none, none, none⟩ 1 seen #v[#v[0]] #v[#v[1]]
      (droppedValues (#v[#v[1]] : Matrix R 1 1) (.dropout (1 / 2) seen) 0) 0
      (⟨none, none, none⟩ : ScoreChanges R 1 1).columns
        = [⟨some 0, Vec.ofFn fun t => columnValue
          (droppedValues (#v[#v[1]] : Matrix R 1 1) (.dropout (1 / 2) seen) 0) t (some 0)⟩] := by
    rw [← hs]
    rfl
  rw [e, Proof.getElem_attend] at h
  simp only [Proof.numerator, denominator, weight, List.map_cons, List.map_nil, sumOver_cons,
    sumOver_nil, Vec.getElem_ofFn, exp_zero, exp_sub_self] at h
  have e' : columnValue (droppedValues (#v[#v[1]] : Matrix R 1 1) (.dropout (1 / 2) seen) 0)
      (0 : Fin 1) (some 0) = 2 := by
    show dropoutFactor (1 / 2) true * (1 : R) = 2
    rw [half, Semiring.mul_one]
  have e'' : columnFactor (1 / 2 : R) seen (some 0) = 2 := half
  rw [e''] at h
  have h' : 1 * 2 / (1 * 2) = (1 * columnValue
      (droppedValues (#v[#v[1]] : Matrix R 1 1) (.dropout (1 / 2) seen) 0) (0 : Fin 1) (some 0) + 0)
        / ((1 : R) + 0) := h
  rw [e'] at h'
  clear claim keys run h
  grind

end Attention.WrongVariants
