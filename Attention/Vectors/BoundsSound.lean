module

public import Attention.Model.DyadicSound
public import Attention.Model.RootSound
public import Attention.Proof.Enclosure.LogSumExp
public import Attention.Proof.Enclosure.Vectors
public import Attention.Vectors.CaseSound
public import Attention.Vectors.Natural
public import Attention.Vectors.Rule

public section

/-! # What goes into the vectors by enclosure, and what comes out

Between the two stands `enclosure-sound` with its likes. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {number : Rat → R} {m n d : Nat}

/-! ## One number -/

/-- The interval of an input contains it: the number x with x · den = num, for a denominator that is
a power of two. -/
theorem contains_ofRat {q : Rat} (hq : q.den = 2 ^ q.den.log2) {x : R}
    (hx : x * ((q.den : Int) : R) = (q.num : R)) : (ofRat q).Contains x := by
  refine Interval.contains_ofDyadic ?_
  rw [← hx]
  congr 2
  exact_mod_cast hq.symm

/-- Published bounds are bounds of what the interval contains. -/
theorem contains_toBounds {I : Interval working} {lo hi : Int} {x : R}
    (h : toBounds I = .ok (lo, hi)) (hx : I.Contains x) :
    (Interval.between lo hi : Interval published).Contains x := by
  cases I with
  | all => simp [toBounds] at h
  | between a b =>
    simp only [toBounds, Except.ok.injEq, Prod.mk.injEq] at h
    obtain ⟨rfl, rfl⟩ := h
    exact Interval.contains_rounded (p := published) (q := working - published) hx

attribute [local irreducible] working

/-! ## What goes in -/

/-- The intervals of the numbers of a list contain them. -/
@[expose] def AllContain (number : Rat → R) (qs : List Rat) : Prop :=
  ∀ q ∈ qs, (ofRat q).Contains (number q)

theorem AllContain.left {as bs : List Rat} (h : AllContain number (as ++ bs)) :
    AllContain number as := fun q hq => h q (List.mem_append_left _ hq)

theorem AllContain.right {as bs : List Rat} (h : AllContain number (as ++ bs)) :
    AllContain number bs := fun q hq => h q (List.mem_append_right _ hq)

theorem AllContain.append {as bs : List Rat} (ha : AllContain number as)
    (hb : AllContain number bs) : AllContain number (as ++ bs) :=
  fun q hq => (List.mem_append.mp hq).elim (ha q) (hb q)

theorem AllContain.head {q : Rat} {bs : List Rat} (h : AllContain number (q :: bs)) :
    (ofRat q).Contains (number q) := h q (List.mem_cons_self ..)

theorem AllContain.tail {q : Rat} {bs : List Rat} (h : AllContain number (q :: bs)) :
    AllContain number bs := fun r hr => h r (List.mem_cons_of_mem _ hr)

theorem AllContain.vec {x : Vec Rat d} (h : AllContain number x.toList) :
    VecContains (Vec.map ofRat x) (Vec.map number x) := by
  intro i hi
  rw [Vec.getElem_map, Vec.getElem_map]
  exact h _ (by simp)

/-- The number of each fraction: x · den = num. -/
@[expose] def IsNumber (number : Rat → R) : Prop :=
  ∀ q : Rat, number q * ((q.den : Int) : R) = ((q.num : Int) : R)

private theorem eq_two_pow_of_dvd : ∀ (k : Nat) {d : Nat}, d ∣ 2 ^ k → ∃ j, d = 2 ^ j
  | 0, _, h => ⟨0, Nat.dvd_one.mp h⟩
  | k + 1, d, h => by
    rw [Nat.pow_succ] at h
    rcases Nat.mod_two_eq_zero_or_one d with h₂ | h₂
    · obtain ⟨c, rfl⟩ := Nat.dvd_of_mod_eq_zero h₂
      rw [Nat.mul_comm (2 ^ k)] at h
      obtain ⟨j, rfl⟩ := eq_two_pow_of_dvd k (Nat.dvd_of_mul_dvd_mul_left (by decide) h)
      exact ⟨j + 1, by rw [Nat.pow_succ, Nat.mul_comm]⟩
    · refine eq_two_pow_of_dvd k (Nat.Coprime.dvd_of_dvd_mul_right ?_ h)
      rw [Nat.Coprime, Nat.gcd_comm, Nat.gcd_rec, h₂]
      decide

/-- The denominator of a number over a power of two is one. -/
theorem den_eq_two_pow {q : Rat} {k : Nat} (h : q.den ∣ 2 ^ k) : q.den = 2 ^ q.den.log2 := by
  obtain ⟨j, hj⟩ := eq_two_pow_of_dvd k h
  rw [hj, Nat.log2_two_pow]

private theorem dyadic {q : Rat} (h : exactInBf16 q = true) : q.den = 2 ^ q.den.log2 := by
  have h : (decide (_ < 256) && decide (q.den ∣ 2 ^ 64)) = true := h
  exact den_eq_two_pow (of_decide_eq_true (Bool.and_eq_true _ _ ▸ h).2)

/-- The numbers that the program takes for exact have intervals that contain them. -/
theorem allContain_of_checkExact {number : Rat → R} (hnumber : IsNumber number) {qs : List Rat}
    (h : checkExact qs = .ok ()) : AllContain number qs := by
  intro q hq
  have hall : qs.all exactInBf16 = true := by
    by_cases ha : qs.all exactInBf16 = true
    · exact ha
    · simp [checkExact, ha] at h
  exact contains_ofRat (dyadic (List.all_eq_true.mp hall q hq)) (hnumber q)

/-- The interval of a number of a rule that readers know contains it. -/
theorem contains_ofRule (hnumber : IsNumber number) {r : Rule} (h : r.check = .ok ()) (x : Int) :
    (ofRat (mkRat x r.over)).Contains (number (mkRat x r.over)) := by
  have known : r.over ∣ 2 ^ 24 := by
    rw [Rule.check] at h
    split at h
    case isTrue known => exact known.2.2.2
    case isFalse => cases h
  refine contains_ofRat (den_eq_two_pow (Nat.dvd_trans ?_ known)) (hnumber _)
  rw [Rat.den_mkRat]
  split
  · exact Nat.one_dvd _
  · exact Nat.div_dvd_of_dvd (Nat.gcd_dvd_left ..)

/-- So do those of its matrices. -/
theorem allContain_matrices (hnumber : IsNumber number) {r : Rule} (h : r.check = .ok ())
    (heads m n : Nat) : AllContain number (r.matrices heads m n).flatten.flatten := by
  intro q hq
  obtain ⟨row, hrow, hq⟩ := List.mem_flatten.mp hq
  obtain ⟨A, hA, hrow⟩ := List.mem_flatten.mp hrow
  obtain ⟨_, -, rfl⟩ := List.mem_map.mp hA
  obtain ⟨_, -, rfl⟩ := List.mem_map.mp hrow
  obtain ⟨_, -, rfl⟩ := List.mem_map.mp hq
  exact contains_ofRule hnumber h _

private theorem invSqrt_zero (p : Nat) : (Interval.invSqrt 0 : Interval p) = .all := by
  simp only [Interval.invSqrt]
  refine if_neg fun h => ?_
  have h₁ : (0 : Int) < 2 ^ p := Int.pow_pos (by decide)
  have h₂ := Int.mul_pos h₁ h₁
  have h₃ := h.2.2
  rw [Int.natCast_zero, Int.mul_zero] at h₃
  omega

private theorem contains_inverse {root : R → R} (hroot : Interval.IsSqrt root) (p d : Nat) :
    (Interval.invSqrt d : Interval p).Contains (1 / root ((d : Int) : R)) := by
  rcases Nat.eq_zero_or_pos d with rfl | hd
  · rw [invSqrt_zero]
    trivial
  · have hd : (0 : R) < ((d : Int) : R) := OrderedRing.pos_intCast_of_pos _ (by omega)
    obtain ⟨h₀, e⟩ := hroot _ (Std.le_of_lt hd)
    have hne : root ((d : Int) : R) ≠ 0 := fun h => by
      rw [h, Semiring.mul_zero] at e
      exact Std.not_lt.mpr (Std.le_refl _) (e ▸ hd)
    have hpos : 0 < root ((d : Int) : R) := Std.lt_of_le_of_ne h₀ (Ne.symm hne)
    refine Interval.contains_invSqrt ?_ ?_
    · exact OrderedField.div_nonneg (Std.le_of_lt OrderedRing.zero_lt_one) hpos
    · generalize root ((d : Int) : R) = r at e hne
      grind

/-- The factor of the scores: the one that is given, or 1 / √d. -/
@[expose] def factorOf (root : R → R) (number : Rat → R) (scale : Option Rat) (d : Nat) : R :=
  scale.elim (1 / root ((d : Int) : R)) number

/-- The interval of the factor contains it. -/
theorem contains_factor {root : R → R} (hroot : Interval.IsSqrt root) {number : Rat → R}
    {scale : Option Rat} (h : AllContain number scale.toList) (d : Nat) :
    (scaleOf scale d).Contains (factorOf root number scale d) := by
  cases scale with
  | some q => exact h q (by simp)
  | none =>
    rw [scaleOf, factorOf, Option.elim_none, Option.elim_none]
    exact contains_inverse hroot _ d

/-- A matrix of the intervals of numbers that are listed contains that of the numbers. -/
theorem toMatrix_contains {rows : List (List Rat)} {A : Matrix (Interval working) m n}
    (h : toMatrix m n (rows.map (·.map ofRat)) = .ok A) (hall : AllContain number rows.flatten) :
    ∃ X : Matrix R m n, rowsOf X = rows.map (·.map number) ∧ MatrixContains A X := by
  have hA := toMatrix_rows h
  obtain ⟨hm, hn⟩ : rows.length = m ∧ ∀ row ∈ rows, row.length = n := by
    rw [toMatrix] at h
    split at h
    case isFalse => cases h
    case isTrue hrows => simpa using hrows
  subst hm
  have hn' : ∀ i (hi : i < rows.length), rows[i].length = n := fun i hi =>
    hn _ (List.getElem_mem hi)
  refine ⟨Vec.ofFn fun i => Vec.ofFn fun j => number ((rows[i])[j.val]'(by simp [hn' i])), ?_,
    fun i hi j hj => ?_⟩
  · refine List.ext_getElem (by simp [rowsOf]) fun i hi hi' => ?_
    have hi : i < rows.length := by simpa using hi'
    exact List.ext_getElem (by simp [rowsOf, hn' i hi]) fun j hj hj' => by simp [rowsOf]
  · have entry : A[i][j] = ofRat (rows[i][j]'(by simpa [hn' i hi] using hj)) := by
      have h₁ := congrArg (fun l => (l[i]?.bind (·[j]?))) hA
      simpa [rowsOf, hi, hj, hn' i hi] using h₁
    rw [entry]
    simp only [Vec.getElem_ofFn]
    exact hall _ (List.mem_flatten.mpr ⟨rows[i], List.getElem_mem hi, List.getElem_mem _⟩)

/-! ## What comes out -/

/-- A number lies between its two bounds. -/
abbrev BoundContains (b : Int × Int) (x : R) : Prop :=
  (Interval.between b.1 b.2 : Interval published).Contains x

/-- Bounds of a matrix: each row has as many as the matrix, and each entry lies between its two. -/
@[expose] def BoundsContain {m n : Nat} (B : RowBounds) (X : Matrix R m n) : Prop :=
  Pointwise (fun row (x : Vec R n) => Pointwise BoundContains row x.toList) B X.toList

/-- The results of a function that may fail, of each element, if it fails of none. -/
theorem pointwise_of_mapM {α β : Type} {f : α → Except String β} :
    ∀ {xs : List α} {ys : List β}, xs.mapM f = .ok ys → Pointwise (fun y x => f x = .ok y) ys xs
  | [], ys, h => by
    simp only [List.mapM_nil, pure, Except.pure, Except.ok.injEq] at h
    subst h
    trivial
  | x :: xs, ys, h => by
    rw [List.mapM_cons] at h
    cases hx : f x with
    | error e => simp [hx, bind, Except.bind] at h
    | ok y =>
      cases hxs : xs.mapM f with
      | error e => simp [hx, hxs, bind, Except.bind] at h
      | ok zs =>
        simp only [hx, hxs, bind, Except.bind, pure, Except.pure, Except.ok.injEq] at h
        subst h
        exact ⟨hx, pointwise_of_mapM hxs⟩

/-- Bounds of a matrix are bounds of what the intervals contain, entry by entry. -/
theorem contains_boundsOf {m n : Nat} {A : Matrix (Interval working) m n}
    {X : Matrix R m n} {B : RowBounds} (h : boundsOf A = .ok B) (hA : MatrixContains A X) :
    BoundsContain B X := by
  have rows := pointwise_of_mapM h
  have len := rows.length_eq
  refine .of_getElem (by rw [len]; simp) fun i hi hi' => ?_
  have row := pointwise_of_mapM (rows.getElem hi (by rw [← len]; exact hi))
  have len' := row.length_eq
  refine .of_getElem (by rw [len']; simp) fun j hj hj' => ?_
  have entry := row.getElem hj (by rw [← len']; exact hj)
  simp only [Vector.getElem_toList] at entry ⊢
  exact contains_toBounds entry (hA i (by simpa using hi') j (by simpa using hj'))

/-- Bounds of several numbers. -/
theorem pointwise_toBounds {Is : List (Interval working)} {xs : List R} {bs : List (Int × Int)}
    (h : Is.mapM toBounds = .ok bs) (hx : Pointwise Interval.Contains Is xs) :
    Pointwise BoundContains bs xs := by
  have each := pointwise_of_mapM h
  have len := each.length_eq
  refine .of_getElem (len.trans hx.length_eq) fun i hi hi' => ?_
  exact contains_toBounds (each.getElem hi (len ▸ hi)) (hx.getElem (len ▸ hi) hi')

/-! ## A row -/

/-- The keys of a row over intervals contain those over numbers, key by key; the same are masked. -/
@[expose] def KeysContain (row' : List (ScoredValue (Interval working) (Interval working) d))
    (row : List (ScoredValue R R d)) : Prop :=
  Pointwise (fun k' k => ScoreContains k'.score k.score ∧ VecContains k'.value k.value) row' row

/-- The log-sum-exp is −∞, or lies between its bounds. -/
@[expose] def LseContains : Option (Int × Int) → Option R → Prop
  | none, none => True
  | some b, some L => BoundContains b L
  | _, _ => False

/-- The bounds of a row are right: those of the output, entry by entry, and those of the log-sum-exp
of the scores, which is −∞ if and only if they say so. -/
@[expose] def EnclosedRow.Describes [NaturalExp R] (r : EnclosedRow) (scores : List (Option R))
    (output : Vec R d) : Prop :=
  Pointwise BoundContains r.output output.toList ∧
    ∀ L, IsLogSumExp R L scores → LseContains r.logSumExp L

/-- Lists that are related place by place are made of the same places. -/
theorem pointwise_places {α β : Type _} {P : α → β → Prop} {as : List α} {bs : List β}
    (h : Pointwise P as bs) : ∃ (n : Nat) (f : Fin n → α) (g : Fin n → β),
      as = (List.finRange n).map f ∧ bs = (List.finRange n).map g ∧ ∀ i, P (f i) (g i) :=
  ⟨bs.length, fun i => as[i.val]'(Nat.lt_of_lt_of_eq i.isLt h.length_eq.symm), fun i => bs[i.val],
    List.ext_getElem (by simp [h.length_eq]) fun _ _ _ => by simp,
    List.ext_getElem (by simp) fun _ _ _ => by simp, fun i => h.getElem _ i.isLt⟩

section
variable [NaturalExp R] {row' : List (ScoredValue (Interval working) (Interval working) d)}
variable {row : List (ScoredValue R R d)} (hrow : KeysContain row' row)
include hrow

/-- The attention of a row of enclosed keys is enclosed. -/
theorem KeysContain.attend : VecContains (attend row') (attend row) := by
  obtain ⟨n, f, g, rfl, rfl, h⟩ := pointwise_places hrow
  exact related_attend (fun i _ => (h i).1) fun i _ => (h i).2

/-- The log-sum-exp of its scores is enclosed. -/
theorem KeysContain.logSumExp {L : Option R} (hL : IsLogSumExp R L (row.map (·.score))) :
    ScoreContains (Interval.logSumExp (row'.map (·.score))) L := by
  obtain ⟨n, f, g, rfl, rfl, h⟩ := pointwise_places hrow
  rw [List.map_map] at hL ⊢
  exact logsumexp_enclosed (fun i _ => (h i).1) hL

end

/-- The bounds that are written of a row are right, if its log-sum-exp and its output are
enclosed. -/
theorem enclosedRow_ok' [NaturalExp R] {scores' : List (Option (Interval working))}
    {scores : List (Option R)} {output' : Vec (Interval working) d} {output : Vec R d}
    {r : EnclosedRow} (h : enclosedRow scores' output' = .ok r)
    (hlse : ∀ L, IsLogSumExp R L scores → ScoreContains (Interval.logSumExp scores') L)
    (ho : VecContains output' output) : r.Describes scores output := by
  rw [enclosedRow] at h
  obtain ⟨lse, hl, h⟩ := bind_ok h
  obtain ⟨bs, hb, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  refine ⟨pointwise_toBounds hb ho.toList, fun L hL => ?_⟩
  have hL := hlse L hL
  cases hI : Interval.logSumExp scores' <;> rw [hI] at hl hL <;> cases L
  · obtain rfl := Except.ok.inj hl
    trivial
  · cases hL
  · cases hL
  · obtain ⟨b, hb, hl⟩ := bind_ok hl
    obtain rfl := Except.ok.inj hl
    exact contains_toBounds hb hL

/-- So are those of a row of enclosed keys. -/
theorem enclosedRow_ok [NaturalExp R]
    {row' : List (ScoredValue (Interval working) (Interval working) d)}
    {row : List (ScoredValue R R d)} {d_v : Nat} {output' : Vec (Interval working) d_v}
    {output : Vec R d_v} {r : EnclosedRow}
    (h : enclosedRow (row'.map (·.score)) output' = .ok r) (hrow : KeysContain row' row)
    (ho : VecContains output' output) : r.Describes (row.map (·.score)) output :=
  enclosedRow_ok' h (fun _ hL => hrow.logSumExp hL) ho

end Attention.Vectors
