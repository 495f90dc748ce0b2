module

public import Attention.Model.Real.Exact
public import Attention.Proof.Enclosure.Related

public section

/-! # The exact model's results are true of the real numbers

The exact vectors are made with exp k = 2^k, from integers to rationals. A kernel computes with e^x;
on these vectors its scale is multiplied by ln 2. That it should then compute the same is proved
here. Integers and rationals are taken for real numbers in one way each, scores multiplied by ln 2,
and the operations keep that: `Related` does the rest. -/

namespace Attention.Proof

open Spec Model

universe u v

/-- The second number is the image of the first. -/
@[expose] def IsImage {S : Type u} {R : Type v} (f : S → R) (s : S) (x : R) : Prop := x = f s

section
variable {S : Type u} {R : Type v} {f : S → R} {m n : Nat}

/-- A number is related to its image. -/
theorem isImage_apply {s : S} : IsImage f s (f s) := rfl

/-- A vector is related to that of the images. -/
theorem related_image {I : Vec S n} : VecRelated (IsImage f) I (Vec.map f I) :=
  fun _ hj => Vec.getElem_map f I hj

/-- A matrix is related to that of the images. -/
theorem related_image_matrix {M : Matrix S m n} :
    VecRelated (VecRelated (IsImage f)) M (Vec.map (Vec.map f) M) := fun i hi => by
  rw [Vec.getElem_map]
  exact related_image

/-- A score, masked or not, is related to its image. -/
theorem scoreRelated_image {s : Option S} : ScoreRelated (IsImage f) s (s.map f) := by
  cases s <;> trivial

/-- Only the vector of the images is related. -/
theorem VecRelated.eq_map {I : Vec S n} {x : Vec R n} (h : VecRelated (IsImage f) I x) :
    x = Vec.map f I := Vector.ext fun i hi => (h i hi).trans (Vec.getElem_map f I hi).symm

/-- Only the matrix of the images is related. -/
theorem VecRelated.eq_map_map {M : Matrix S m n} {X : Matrix R m n}
    (h : VecRelated (VecRelated (IsImage f)) M X) : X = Vec.map (Vec.map f) M :=
  Vector.ext fun i hi => (h i hi).eq_map.trans (Vec.getElem_map _ M hi).symm

end

/-- A score of the exact model as a real one, multiplied by ln 2. -/
@[expose] noncomputable def realScore (s : Int) : Real := Real.ofInt s * Real.log 2

/-- The scale of the exact model, multiplied by ln 2. -/
theorem isImage_scale {scale : Int} :
    IsImage realScore scale (Real.ofInt scale * Real.log 2) := rfl

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply related_image | apply related_image_matrix | apply scoreRelated_image
  | apply isImage_apply | apply isImage_scale)

/-! ## The operations keep the images -/

instance : KeptBySum (IsImage Real.ofInt) where
  zero := Real.zero_eq
  add hx hy := hx ▸ hy ▸ (Real.ofInt_add ..).symm

instance : KeptByMul (IsImage Real.ofInt) (IsImage Real.ofInt) (IsImage Real.ofInt) where
  mul hx hy := hx ▸ hy ▸ (Real.ofInt_mul ..).symm

instance : KeptBySum (IsImage realScore) where
  zero := (Lean.Grind.Semiring.zero_mul _).symm
  add {I J x y} hx hy := by
    rw [hx, hy, IsImage, realScore, realScore, realScore, Real.ofInt_add]
    exact (Lean.Grind.Semiring.right_distrib ..).symm

/-- Scores are multiplied by integers. -/
instance : KeptByMul (IsImage realScore) (IsImage Real.ofInt) (IsImage realScore) where
  mul {I J x y} hx hy := by
    rw [hx, hy, IsImage, realScore, realScore, Real.ofInt_mul]
    grind

instance : KeptByField (IsImage Real.ofRat) where
  zero := Real.zero_eq
  add hx hy := hx ▸ hy ▸ (Real.ofRat_add ..).symm
  mul hx hy := hx ▸ hy ▸ (Real.ofRat_mul ..).symm
  one := Real.one_eq
  sub hx hy := hx ▸ hy ▸ (Real.ofRat_sub ..).symm
  div hx hy := hx ▸ hy ▸ (Real.ofRat_div ..).symm

instance : KeptByExp (IsImage realScore) (IsImage Real.ofRat) where
  exp hx := hx ▸ Real.exp_mul_log_two _

/-! ## Score transformations -/

/-- The score transformation of real numbers does to a score of the exact model, multiplied by ln 2,
the same as that of the exact model to the score itself. -/
abbrev ModIsReal {q_len kv_len : Nat} (modify : ScoreMod Int q_len kv_len)
    (modify' : ScoreMod Real q_len kv_len) : Prop :=
  ModRelated (IsImage realScore) modify modify'

/-- In other words: it takes s · ln 2 to the new score times ln 2, and masks the same pairs. -/
theorem modIsReal_iff {q_len kv_len : Nat} {modify : ScoreMod Int q_len kv_len}
    {modify' : ScoreMod Real q_len kv_len} : ModIsReal modify modify'
      ↔ ∀ i j s, modify' i j (realScore s) = (modify i j s).map realScore := by
  refine ⟨fun h i j s => ?_, fun h i j s x hx => hx ▸ h i j s ▸ scoreRelated_image⟩
  have hs := h i j s _ rfl
  cases h₀ : modify i j s <;> cases h₁ : modify' i j (realScore s) <;> rw [h₀, h₁] at hs
  · rfl
  · cases hs
  · cases hs
  · exact congrArg some hs

/-- A bias of the exact model is the same bias multiplied by ln 2. -/
theorem bias_isReal {q_len kv_len : Nat} (B : Matrix (Option Int) q_len kv_len) :
    ModIsReal (ScoreMod.bias B) (ScoreMod.bias (Vec.map (Vec.map (Option.map realScore)) B)) :=
  related_bias fun i j => by simpa only [Fin.getElem_fin, Vec.getElem_map] using scoreRelated_image

/-- ALiBi's slope is multiplied by ln 2. -/
theorem alibi_isReal {q_len kv_len : Nat} (alignment : Alignment) (slope : Int) :
    ModIsReal (ScoreMod.alibi (q_len := q_len) (kv_len := kv_len) alignment slope)
      (ScoreMod.alibi alignment (realScore slope)) :=
  related_alibi (N := IsImage Real.ofInt) (fun _ => rfl) alignment rfl

/-! ## Attention -/

/-- The attention of a row of the exact model, as real numbers, is that of the row with its scores
multiplied by ln 2. -/
theorem attend_real {α : Type} {d : Nat} (f : α → ScoredValue Int Rat d) (keys : List α) :
    attend (keys.map fun k => (⟨(f k).score.map realScore, Vec.map Real.ofRat (f k).value⟩ :
        ScoredValue Real Real d))
      = Vec.map Real.ofRat (attend (keys.map f)) := VecRelated.eq_map (by enclose)

section
variable {q_len kv_len d d_v : Nat} (scale sink : Int) {modify : ScoreMod Int q_len kv_len}
variable {modify' : ScoreMod Real q_len kv_len} (hmodify : ModIsReal modify modify')
variable (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v)
include hmodify

/-- **exact-is-real**: attention over the exact model, taken for real numbers, is attention with the
natural exponential and the scale multiplied by ln 2. -/
theorem attention_real :
    attention (Real.ofInt scale * Real.log 2) modify' (Vec.map (Vec.map Real.ofInt) Q)
        (Vec.map (Vec.map Real.ofInt) K) (Vec.map (Vec.map Real.ofRat) V)
      = Vec.map (Vec.map Real.ofRat) (attention scale modify Q K V) :=
  VecRelated.eq_map_map (by enclose)

/-- **exact-sink-is-real**: the same with a sink, which is multiplied by ln 2 too. -/
theorem attentionSink_real :
    attentionSink (Real.ofInt scale * Real.log 2) modify' (realScore sink)
        (Vec.map (Vec.map Real.ofInt) Q) (Vec.map (Vec.map Real.ofInt) K)
        (Vec.map (Vec.map Real.ofRat) V)
      = Vec.map (Vec.map Real.ofRat) (attentionSink scale modify sink Q K V) :=
  VecRelated.eq_map_map (by enclose)

end

end Attention.Proof
