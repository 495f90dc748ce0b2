module

public import Attention.Model.Real.Exact
public import Attention.Proof.Softmax.Attention
public import Attention.Proof.Enclosure.Basic
public import Attention.Spec.ScoreMods

public section

/-! # What the exact model gives is true of the real numbers

The exact vectors are made with exp k = 2^k, from integers to rationals. A kernel computes with e^x;
on these vectors its scale is multiplied by ln 2. That it should then compute the same is proved
here. -/

namespace Attention.Proof

open Spec Model Lean.Grind Exponential

/-- A score of the exact model as a real one, multiplied by ln 2. -/
@[expose] noncomputable def realScore (s : Int) : Real := Real.ofInt s * Real.log 2

/-- The score transformation of real numbers does to a score of the exact model, multiplied by ln 2,
what that of the exact model does to the score itself. -/
@[expose] def ModIsReal {q_len kv_len : Nat} (modify : ScoreMod Int q_len kv_len)
    (modify' : ScoreMod Real q_len kv_len) : Prop :=
  ∀ i j s, modify' i j (realScore s) = (modify i j s).map realScore

/-- Masks are the same in both. -/
theorem toScoreMod_isReal {q_len kv_len : Nat} (mask : Mask q_len kv_len) :
    ModIsReal mask.toScoreMod mask.toScoreMod := fun i j s => by
  simp only [Mask.toScoreMod]
  split <;> rfl

/-- A bias of the exact model is the same bias multiplied by ln 2. -/
theorem bias_isReal {q_len kv_len : Nat} (B : Matrix (Option Int) q_len kv_len) :
    ModIsReal (ScoreMod.bias B) (ScoreMod.bias (Vec.map (Vec.map (Option.map realScore)) B)) :=
  fun i j s => by
    simp only [ScoreMod.bias, Fin.getElem_fin, Vec.getElem_map]
    cases B[i.val][j.val] with
    | none => rfl
    | some b =>
      simp only [Option.map_some, realScore, Real.ofInt_add]
      congr 1
      grind

/-- ALiBi's slope is multiplied by ln 2. -/
theorem alibi_isReal {q_len kv_len : Nat} (alignment : Alignment) (slope : Int) :
    ModIsReal (ScoreMod.alibi (q_len := q_len) (kv_len := kv_len) alignment slope)
      (ScoreMod.alibi alignment (realScore slope)) := fun i j s => by
  show some (realScore s + realScore slope * Real.ofInt (-(distance alignment i j : Int)))
    = some (realScore (s + slope * -(distance alignment i j : Int)))
  simp only [realScore, Real.ofInt_add, Real.ofInt_mul]
  congr 1
  grind

/-- One transformation after the other. -/
theorem ModIsReal.andThen {q_len kv_len : Nat} {f g : ScoreMod Int q_len kv_len}
    {f' g' : ScoreMod Real q_len kv_len} (hf : ModIsReal f f') (hg : ModIsReal g g') :
    ModIsReal (ScoreMod.andThen f g) (ScoreMod.andThen f' g') := fun i j s => by
  simp only [ScoreMod.andThen, hf i j s]
  cases f i j s with
  | none => rfl
  | some t => exact hg i j t

private theorem weight_real (s : Option Int) :
    (weight (s.map realScore) : Real) = Real.ofRat (weight s) := by
  cases s with
  | none => exact Real.zero_eq
  | some s => exact Real.exp_mul_log_two s

private theorem weightOver_real (l : Rat) (s : Option Int) :
    weightOver (Real.ofRat l) (s.map realScore) = Real.ofRat (weightOver l s) := by
  cases s with
  | none => exact Real.zero_eq
  | some s =>
    simp only [weightOver, Option.map_some, Real.ofRat_div]
    exact congrArg (· / _) (Real.exp_mul_log_two s)

private theorem denominator_real {α : Type} (f : α → Option Int) (keys : List α) :
    (denominator (keys.map fun k => (f k).map realScore) : Real)
      = Real.ofRat (denominator (keys.map f)) := by
  rw [denominator, denominator, sumOver_map, sumOver_map, Real.ofRat_sumOver]
  exact sumOver_congr fun k _ => weight_real _

/-- The attention of a row of the exact model, as real numbers, is that of the row with its scores
multiplied by ln 2. -/
theorem attend_real {α : Type} {d : Nat} (f : α → ScoredValue Int Rat d) (keys : List α) :
    attend (keys.map fun k => (⟨(f k).score.map realScore, Vec.map Real.ofRat (f k).value⟩ :
        ScoredValue Real Real d))
      = Vec.map Real.ofRat (attend (keys.map f)) := by
  have hl := denominator_real (fun k => (f k).score) keys
  refine Vector.ext fun j hj => ?_
  rw [Vec.getElem_map, getElem_attend_map, getElem_attend_map, Real.ofRat_sumOver]
  refine sumOver_congr fun k _ => ?_
  simp only [hl, weightOver_real, Vec.getElem_map, Real.ofRat_mul]

private theorem dot_real {d : Nat} (x y : Vec Int d) :
    Vec.dot (Vec.map Real.ofInt x) (Vec.map Real.ofInt y) = Real.ofInt (Vec.dot x y) := by
  rw [Vec.dot, Vec.dot, Real.ofInt_sumOver]
  refine sumOver_congr fun i _ => ?_
  simp only [Fin.getElem_fin, Vec.getElem_map, Real.ofInt_mul]

section
variable {q_len kv_len d d_v : Nat} (scale : Int) {modify : ScoreMod Int q_len kv_len}
variable {modify' : ScoreMod Real q_len kv_len} (hmodify : ModIsReal modify modify')
variable (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v)

/-- The scale times ln 2, and the inner product of real numbers. -/
theorem mul_dot_real (i : Fin q_len) (j : Fin kv_len) :
    Real.ofInt scale * Real.log 2
      * Vec.dot (Vec.map (Vec.map Real.ofInt) Q)[i] (Vec.map (Vec.map Real.ofInt) K)[j]
    = realScore (scale * Vec.dot Q[i] K[j]) := by
  simp only [Fin.getElem_fin, Vec.getElem_map, dot_real, realScore, Real.ofInt_mul]
  grind

include hmodify

/-- A score with the scale times ln 2 is the score of the exact model times ln 2. -/
theorem score_real (i : Fin q_len) (j : Fin kv_len) :
    score (Real.ofInt scale * Real.log 2) modify' (Vec.map (Vec.map Real.ofInt) Q)
        (Vec.map (Vec.map Real.ofInt) K) i j
      = (score scale modify Q K i j).map realScore := by
  rw [score, mul_dot_real, hmodify, score]

/-- **exact-is-real**: attention over the exact model, taken for real numbers, is attention with the
natural exponential and the scale multiplied by ln 2. -/
theorem attention_real :
    attention (Real.ofInt scale * Real.log 2) modify' (Vec.map (Vec.map Real.ofInt) Q)
        (Vec.map (Vec.map Real.ofInt) K) (Vec.map (Vec.map Real.ofRat) V)
      = Vec.map (Vec.map Real.ofRat) (attention scale modify Q K V) := by
  refine Vector.ext fun i hi => ?_
  rw [attention, attention, Vec.getElem_map, Vec.getElem_ofFn, Vec.getElem_ofFn, scored, scored,
    ← attend_real]
  congr 1
  refine List.map_congr_left fun k _ => ?_
  rw [score_real scale hmodify, Fin.getElem_fin, Vec.getElem_map]
  rfl

/-- The weights of the exact model, taken for real numbers, are those with e^x and the scale
multiplied by ln 2. -/
theorem probabilities_real :
    probabilities (Real.ofInt scale * Real.log 2) modify' (Vec.map (Vec.map Real.ofInt) Q)
        (Vec.map (Vec.map Real.ofInt) K)
      = Vec.map (Vec.map Real.ofRat) (probabilities scale modify Q K) := by
  refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
  have h := getElem_probabilities (R := Real) (Real.ofInt scale * Real.log 2) modify'
    (Vec.map (Vec.map Real.ofInt) Q) (Vec.map (Vec.map Real.ofInt) K) ⟨i, hi⟩ ⟨j, hj⟩
  have h' := getElem_probabilities (R := Rat) scale modify Q K ⟨i, hi⟩ ⟨j, hj⟩
  have hl : (denominator ((List.finRange kv_len).map fun j =>
      (score scale modify Q K ⟨i, hi⟩ j).map realScore) : Real)
      = Real.ofRat (denominator ((List.finRange kv_len).map (score scale modify Q K ⟨i, hi⟩))) :=
    denominator_real _ _
  simp only [Fin.getElem_fin] at h h'
  rw [h, Vec.getElem_map, Vec.getElem_map, h', Real.ofRat_div, score_real scale hmodify,
    weight_real, ← hl]
  congr 3
  exact funext fun j => score_real scale hmodify Q K _ j

end

end Attention.Proof
