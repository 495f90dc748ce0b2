module

public import Attention.Vectors.NaturalSound
public import Attention.Vectors.TransformerContains

public section

/-! # The bounds in the transformer's vectors are bounds of the true numbers

From the program that is run to what is true: if it yields bounds, then over every ordered field
with a natural exponential and square roots the Spec's own outcome lies between them. -/

namespace Attention.Vectors

open Spec Model Proof Lean.Grind

universe u

attribute [local instance] Ring.intCast
attribute [local irreducible] working

variable {R : Type u} [OrderedField R]

/-! ## What goes in -/

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

private theorem dyadic {q : Rat} (h : exactInBf16 q = true) : q.den = 2 ^ q.den.log2 := by
  have h : (decide (_ < 256) && decide (q.den ∣ 2 ^ 64)) = true := h
  obtain ⟨j, hj⟩ := eq_two_pow_of_dvd 64 (of_decide_eq_true (Bool.and_eq_true _ _ ▸ h).2)
  rw [hj, Nat.log2_two_pow]

/-- What the program takes for exact has intervals that contain it. -/
theorem allContain_of_checkExact {number : Rat → R} (hnumber : IsNumber number) {qs : List Rat}
    (h : checkExact qs = .ok ()) : AllContain number qs := by
  intro q hq
  have hall : qs.all exactInBf16 = true := by
    by_cases ha : qs.all exactInBf16 = true
    · exact ha
    · simp [checkExact, ha] at h
  exact contains_ofRat (dyadic (List.all_eq_true.mp hall q hq)) (hnumber q)

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

/-! ## What comes out -/

/-- Bounds of a matrix: each row has as many as the matrix, and each entry lies between its two. -/
@[expose] def BoundsContain {m n : Nat} (B : RowBounds) (X : Matrix R m n) : Prop :=
  Pointwise (fun row (x : Vec R n) => Pointwise
    (fun b x => (Interval.between b.1 b.2 : Interval published).Contains x) row x.toList) B X.toList

/-- What a function that may fail makes of each element, if it fails of none. -/
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

private theorem contains_boundsOf {m n : Nat} {A : Matrix (Interval working) m n}
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

/-- **Published bounds of a matrix** are bounds of what the intervals contain, entry by entry. -/
theorem contains_narrowBounds {m n : Nat} {A : Matrix (Interval working) m n} {X : Matrix R m n}
    {B : RowBounds} (h : narrowBounds A = .ok B) (hA : MatrixContains A X) :
    BoundsContain B X := by
  rw [narrowBounds] at h
  cases hB : boundsOf A with
  | error e => simp [hB, bind, Except.bind] at h
  | ok B' =>
    simp only [hB, bind, Except.bind] at h
    split at h
    · cases h
      exact contains_boundsOf hB hA
    · cases h

/-! ## The program -/

variable [NaturalExp R] {root : R → R} (hroot : Interval.IsSqrt root) {number : Rat → R}
include hroot

/-- The outcome over the intervals of the inputs contains that over the inputs. -/
theorem contains_value {inputs : LayerInputs} (h : AllContain number inputs.numbers) :
    OutcomeContains (inputs.value Interval.sqrt ofRat scaleOf)
      (inputs.value root number (factorOf root number)) := by
  have hsqrt := rootContains_sqrt (p := working) hroot
  match inputs with
  | .linear W X => exact h.left.linear.rows h.right.rows
  | .layerNorm ε N X =>
    exact layerNorm_enclosed hsqrt h.left.head h.left.tail.layerNorm h.right.rows
  | .feedForward F X => exact feedForward_enclosed h.left.feedForward h.right.rows
  | .selfAttention (d := d) scale mask W X =>
    exact multiHead_enclosed (contains_factor hroot h.left.left d) h.left.right.multiHead _
      h.right.rows h.right.rows h.right.rows
  | .crossAttention (d := d) scale mask W X C V =>
    have hC := h.left.right.rows
    refine multiHead_enclosed (contains_factor hroot h.left.left.left.left d)
      h.left.left.left.right.multiHead _ h.left.left.right.rows hC ?_
    cases V with
    | none => exact hC
    | some V => exact AllContain.rows fun q hq => h.right q (by simpa using hq)
  | .encoder (d := d) options mask layers norm X =>
    exact contains_encoderValue hroot h.left.left.left.head
      (contains_factor hroot h.left.left.left.tail d) _ _ h.left.left.right.encoders
      h.left.right.norm h.right.rows
  | .decoder (d := d) options cached mask crossMask layers norm C X =>
    exact contains_decoderValue hroot h.left.left.left.left.head
      (contains_factor hroot h.left.left.left.left.tail d) _ _ _ _
      h.left.left.left.right.decoders h.left.left.right.norm h.left.right.rows h.right.rows

/-- **What is published of a layer**: if the program yields bounds, the Spec's outcome for the
inputs lies between them, over every ordered field with a natural exponential and square roots. -/
theorem layer_vectors_sound (hnumber : IsNumber number) {inputs : LayerInputs} {B : RowBounds}
    (h : inputs.run = .ok B) :
    ∃ X, inputs.value root number (factorOf root number) = some X ∧ BoundsContain B X := by
  simp only [LayerInputs.run, bind, Except.bind] at h
  cases hx : checkExact inputs.numbers with
  | error e => simp [hx] at h
  | ok =>
    have hv := contains_value hroot (allContain_of_checkExact hnumber hx)
    simp only [hx] at h
    split at h
    · cases hI : inputs.value Interval.sqrt ofRat scaleOf with
      | none =>
        simp only [hI] at h
        cases h
      | some A =>
        simp only [hI] at h
        cases hX : inputs.value root number (factorOf root number) with
        | none =>
          rw [hI, hX] at hv
          exact hv.elim
        | some X =>
          rw [hI, hX] at hv
          exact ⟨X, rfl, contains_narrowBounds h hv⟩
    · cases h

omit [NaturalExp R] hroot in
private theorem contains_position {c : TransformerCase} (hnumber : IsNumber number)
    (h : AllContain number (c.positions.flatMap (·.toList))) (i : Nat) :
    VecContains (c.position ofRat i) (c.position number i) := by
  cases hi : c.positions[i]? with
  | some x =>
    rw [TransformerCase.position, TransformerCase.position, hi]
    exact AllContain.vec fun q hq =>
      h q (List.mem_flatMap.mpr ⟨x, List.mem_of_getElem? hi, hq⟩)
  | none =>
    rw [TransformerCase.position, TransformerCase.position, hi]
    refine AllContain.vec fun q hq => ?_
    have : q = 0 := by
      simp only [Option.getD_none, Vec.zero, Vector.toList_replicate, List.mem_replicate] at hq
      exact hq.2
    subst this
    exact contains_ofRat (by decide) (hnumber 0)

/-- **transformer-vectors-sound**: if the program yields bounds, the logits and the probabilities of
the transformer lie between them, over every ordered field with a natural exponential and square
roots. -/
theorem transformer_vectors_sound (hnumber : IsNumber number) {c : TransformerCase}
    {out : TransformerResult} (h : c.run = .ok out) :
    BoundsContain out.logits ((mapTransformer number c.tie).logits root (number c.ε)
        (factorOf root number c.scale c.d) (c.position number) c.sourceMask.toMask c.mask.toMask
        c.contextMask.toMask c.sourceTokens c.targetTokens)
      ∧ BoundsContain out.probabilities ((mapTransformer number c.tie).probabilities root
        (number c.ε) (factorOf root number c.scale c.d) (c.position number) c.sourceMask.toMask
        c.mask.toMask c.contextMask.toMask c.sourceTokens c.targetTokens) := by
  simp only [TransformerCase.run, bind, Except.bind] at h
  cases hx : checkExact c.numbers with
  | error e => simp [hx] at h
  | ok =>
    have hall := allContain_of_checkExact hnumber hx
    have hv := transformer_enclosed hroot hall.left.left.head
      (contains_factor hroot hall.left.left.tail c.d)
      (contains_position (c := c) hnumber hall.right) hall.left.right.transformer
      c.sourceMask.toMask c.mask.toMask c.contextMask.toMask c.sourceTokens c.targetTokens
    simp only [hx] at h
    cases hc : c.check with
    | error e => simp [hc] at h
    | ok =>
      simp only [hc] at h
      cases hl : narrowBounds (c.value Interval.sqrt ofRat scaleOf).1 with
      | error e => simp [hl] at h
      | ok logits =>
        simp only [hl] at h
        cases hp : narrowBounds (c.value Interval.sqrt ofRat scaleOf).2 with
        | error e => simp [hp] at h
        | ok probabilities =>
          simp only [hp] at h
          cases ht : logits.mapM largest with
          | error e => simp [ht] at h
          | ok tokens =>
            simp only [ht, pure, Except.pure, Except.ok.injEq] at h
            subst h
            exact ⟨contains_narrowBounds hl hv.1, contains_narrowBounds hp hv.2⟩

end Attention.Vectors
