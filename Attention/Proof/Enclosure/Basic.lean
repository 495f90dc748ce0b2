module

public import Attention.Model.LogSound
public import Attention.Model.ProductSound
public import Attention.Model.QuotientSound
public import Attention.Spec.Attention

public section

/-! # The definitions of the Spec, run over intervals, contain what they give for numbers

Scores, softmax and attention ask for operations only, so the same definitions run over
`Attention.Model.Interval`. Whatever natural exponential there is, the result contains the true
one. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] {p : Nat}

/-- Both masked, or the interval contains the score. -/
@[expose] def ScoreContains : Option (Interval p) → Option R → Prop
  | none, none => True
  | some I, some x => I.Contains x
  | _, _ => False

/-- The score transformation of intervals makes, of what contains a score, what contains the
transformed score; and it masks the same pairs. -/
@[expose] def ModContains {q_len kv_len : Nat} (modify' : ScoreMod (Interval p) q_len kv_len)
    (modify : ScoreMod R q_len kv_len) : Prop :=
  ∀ i j I x, I.Contains x → ScoreContains (modify' i j I) (modify i j x)

/-- The vector of intervals contains the vector of numbers, component by component. -/
@[expose] def VecContains {d : Nat} (I : Vec (Interval p) d) (x : Vec R d) : Prop :=
  ∀ (j : Nat) (h : j < d), I[j].Contains x[j]

/-- 0 contains 0. -/
theorem contains_zero : (0 : Interval p).Contains (0 : R) :=
  Interval.contains_ofNat 0 Ring.intCast_zero.symm

/-- Sums of enclosed terms are enclosed. -/
theorem contains_sumOver {α : Type} {f' : α → Interval p} {f : α → R} {xs : List α}
    (h : ∀ x ∈ xs, (f' x).Contains (f x)) : (sumOver f' xs).Contains (sumOver f xs) := by
  induction xs with
  | nil => exact contains_zero
  | cons x xs ih =>
    exact Interval.contains_add (h x (by simp)) (ih fun y hy => h y (by simp [hy]))

/-- Inner products of enclosed vectors are enclosed. -/
theorem contains_dot {d : Nat} {I J : Vec (Interval p) d} {x y : Vec R d} (hx : VecContains I x)
    (hy : VecContains J y) : (Vec.dot I J).Contains (Vec.dot x y) :=
  contains_sumOver fun i _ => Interval.contains_mul (hx i.val i.isLt) (hy i.val i.isLt)

/-! ## Softmax and attention of one row -/

section
variable [NaturalExp R]

/-- The weight of an enclosed score is enclosed. -/
theorem contains_weight {s' : Option (Interval p)} {s : Option R} (h : ScoreContains s' s) :
    (weight s' : Interval p).Contains (weight s : R) := by
  cases s' <;> cases s
  · exact contains_zero
  · cases h
  · cases h
  · exact Interval.contains_exp h

/-- The weight of one score in a softmax with denominator l. -/
@[expose] def weightOver {S : Type u} {R : Type v} [Div R] [OfNat R 0] [Exp S R] (l : R) :
    Option S → R
  | none => 0
  | some s => exp s / l

/-- The softmax weight of an enclosed score is enclosed. -/
theorem contains_weightOver {l' : Interval p} {l : R} (hl : l'.Contains l)
    {s' : Option (Interval p)} {s : Option R} (h : ScoreContains s' s) :
    (weightOver l' s').Contains (weightOver l s) := by
  cases s' <;> cases s
  · exact contains_zero
  · cases h
  · cases h
  · exact Interval.contains_div (Interval.contains_exp h) hl

end

/-- A component of the attention of a row that is made of keys. -/
theorem getElem_attend_map {α : Type} {S : Type u} {R : Type v} [Add R] [Mul R] [Div R]
    [OfNat R 0] [Exp S R] {d : Nat}
    (f : α → ScoredValue S R d) (keys : List α) {j : Nat} (h : j < d) :
    (attend (keys.map f))[j] = sumOver (fun k => weightOver
      (denominator (keys.map fun k => (f k).score)) (f k).score * (f k).value[j]) keys := by
  have zipped : ∀ (g : α → R) (v : α → Vec R d) (keys : List α),
      (keys.map g).zip (keys.map v) = keys.map fun k => (g k, v k) := fun g v keys => by
    induction keys with
    | nil => rfl
    | cons k keys ih => simp [ih]
  simp only [attend, softmax, List.map_map, Function.comp_def, zipped, Vec.getElem_sumOver,
    Vec.getElem_smul, sumOver_map]
  exact sumOver_congr fun k _ => congrArg (· * _) (by cases (f k).score <;> rfl)

variable [NaturalExp R]

/-- The attention of a row of enclosed scores and values is enclosed. -/
theorem contains_attend {α : Type} {keys : List α} {d : Nat}
    {f' : α → ScoredValue (Interval p) (Interval p) d} {f : α → ScoredValue R R d}
    (hs : ∀ k ∈ keys, ScoreContains (f' k).score (f k).score)
    (hv : ∀ k ∈ keys, VecContains (f' k).value (f k).value) :
    VecContains (attend (keys.map f')) (attend (keys.map f)) := by
  intro j hj
  rw [getElem_attend_map, getElem_attend_map]
  have hl : (denominator (keys.map fun k => (f' k).score) : Interval p).Contains
      (denominator (keys.map fun k => (f k).score) : R) := by
    rw [denominator, denominator, sumOver_map, sumOver_map]
    exact contains_sumOver fun k hk => contains_weight (hs k hk)
  exact contains_sumOver fun k hk =>
    Interval.contains_mul (contains_weightOver hl (hs k hk)) (hv k hk j hj)

/-- The logarithm of the enclosed denominator contains every L with
exp L = Σ exp s. -/
theorem contains_log_denominator {α : Type} {keys : List α} {s' : α → Option (Interval p)}
    {s : α → Option R} (hs : ∀ k ∈ keys, ScoreContains (s' k) (s k)) {L : R}
    (hL : exp L = (denominator (keys.map s) : R)) :
    (Interval.log (denominator (keys.map s') : Interval p)).Contains L := by
  refine Interval.contains_log ?_
  rw [hL, denominator, denominator, sumOver_map, sumOver_map]
  exact contains_sumOver fun k hk => contains_weight (hs k hk)

/-! ## Attention of whole matrices -/

/-- The matrix of intervals contains the matrix of numbers, entry by entry. -/
@[expose] def MatrixContains {m n : Nat} (I : Matrix (Interval p) m n) (x : Matrix R m n) : Prop :=
  ∀ (i : Nat) (h : i < m), VecContains I[i] x[i]

/-- **enclosure-sound**: attention computed with intervals of any precision, over inputs, a scale
and a score transformation that contain the true ones, contains the true attention, whatever natural
exponential it is taken with. -/
theorem enclosure_sound {q_len kv_len d d_v : Nat} {scale' : Interval p} {scale : R}
    {modify' : ScoreMod (Interval p) q_len kv_len} {modify : ScoreMod R q_len kv_len}
    {Q' : Matrix (Interval p) q_len d} {Q : Matrix R q_len d}
    {K' : Matrix (Interval p) kv_len d} {K : Matrix R kv_len d}
    {V' : Matrix (Interval p) kv_len d_v} {V : Matrix R kv_len d_v}
    (hscale : scale'.Contains scale)
    (hmodify : ModContains modify' modify)
    (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K) (hV : MatrixContains V' V) :
    MatrixContains (attention scale' modify' Q' K' V') (attention scale modify Q K V) := by
  intro i hi
  rw [attention, attention, Vec.getElem_ofFn, Vec.getElem_ofFn, scored, scored]
  exact contains_attend
    (fun k _ => hmodify _ _ _ _ (Interval.contains_mul hscale
      (contains_dot (hQ i hi) (hK k.val k.isLt))))
    (fun k _ => hV k.val k.isLt)

end Attention.Proof
