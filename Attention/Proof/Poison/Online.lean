module

public import Attention.Proof.Online.Invariant
public import Attention.Proof.Poison.Basic
public import Attention.Spec.Sink

public section

/-! # Online softmax and merging meet no poison

The state never takes the exponential of a positive number, and a state that has a maximum has a
denominator of at least 1 when it is divided by. -/

namespace Attention.Proof

open Spec Spec.Online

universe u v w x

variable {d : Nat}

/-- A state with proper numbers. -/
@[expose] def mapState {A : Type u} {B : Type v} {A' : Type w} {B' : Type x} (σ : A → A')
    (ρ : B → B') (s : State A B d) : State A' B' d :=
  ⟨s.m.map σ, ρ s.l, Vec.map ρ s.o⟩

end Attention.Proof

namespace Attention.Model.Clean

open Spec Spec.Online Proof Lean.Grind

universe u v w x

variable {S : Type u} {R : Type v} {S' : Type w} {R' : Type x}
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable [Add S'] [Sub S'] [Mul S'] [OfNat S' 0] [LE S']
variable [Add R'] [Sub R'] [Mul R'] [Div R'] [OfNat R' 0] [OfNat R' 1] [Exp S' R']
variable {bound : S} {σ : S → S'} {ρ : R → R'} {d : Nat}

variable (h : Clean bound σ ρ)
include h

/-- The state of no keys. -/
theorem empty : (Online.empty : State S' R' d) = mapState σ ρ Online.empty := by
  simp only [Online.empty, mapState, ← h.zero, ← h.zeroVec, Option.map_none]

/-- The state of a sink. -/
theorem sinkState (sink : S) :
    (Spec.sinkState (σ sink) : State S' R' d) = mapState σ ρ (Spec.sinkState sink) := by
  simp only [Spec.sinkState, mapState, ← h.one, ← h.zeroVec, Option.map_some]

/-- The division, of a state whose denominator is not 0 where it has a maximum. -/
theorem finish {s : State S R d} (hl : s.m ≠ none → s.l ≠ 0) :
    Online.finish (mapState σ ρ s) = Vec.map ρ (Online.finish s) := by
  cases hm : s.m with
  | none =>
    simp only [Online.finish, mapState, hm, Option.map_none]
    exact h.zeroVec
  | some m =>
    simp only [Online.finish, mapState, hm, Option.map_some]
    refine Vector.ext fun j hj => ?_
    simp only [Vec.getElem_map]
    exact (h.div _ _ (hl (by rw [hm]; simp))).symm

/-- The state of a row has such a denominator. -/
theorem finish_ofBlock (row : List (ScoredValue S R d)) :
    Online.finish (mapState σ ρ (ofBlock row)) = Vec.map ρ (Online.finish (ofBlock row)) :=
  h.finish fun hm => by
    have := (ofBlock_invariant row).one_le_l hm
    have := OrderedRing.zero_lt_one (R := R)
    grind

variable (hb : 0 ≤ bound)
include hb

/-- The sums of a block's weights, and of these with the values, against a reference point that no
score exceeds. -/
theorem weights {block : List (ScoredValue S R d)} {m : Option S}
    (hle : ∀ key ∈ block, ScoreLE key.score m) :
    Attention.sumOver (fun key => (Spec.rescale key.score (m.map σ) : R')) (block.map (mapKey σ ρ))
        = ρ (Attention.sumOver (fun key => Spec.rescale key.score m) block)
      ∧ Vec.sumOver (fun key => Vec.smul (Spec.rescale key.score (m.map σ) : R') key.value)
          (block.map (mapKey σ ρ))
        = Vec.map ρ
          (Vec.sumOver (fun key => Vec.smul (Spec.rescale key.score m) key.value) block) := by
  have hw : ∀ key ∈ block, (Spec.rescale (mapKey σ ρ key).score (m.map σ) : R')
      = ρ (Spec.rescale key.score m) := fun key hk => h.rescale_of_le hb (hle key hk)
  refine ⟨?_, Vector.ext fun j hj => ?_⟩
  · rw [sumOver_map, h.sumOver]
    exact sumOver_congr hw
  · simp only [Vec.getElem_map, Vec.getElem_sumOver, Vec.getElem_smul]
    rw [sumOver_map, h.sumOver]
    refine sumOver_congr fun key hk => ?_
    rw [hw key hk, h.mul]
    simp only [mapKey, Vec.getElem_map]

variable [DecidableLE S']

omit hb in
/-- The maximum of a block. -/
theorem scores (block : List (ScoredValue S R d)) :
    Spec.rowMax ((block.map (mapKey σ ρ)).map (·.score))
      = (Spec.rowMax (block.map (·.score))).map σ := by
  rw [← h.rowMax, List.map_map, List.map_map]
  rfl

/-- One more block. -/
theorem stepBlock (s : State S R d) (block : List (ScoredValue S R d)) :
    Online.stepBlock (mapState σ ρ s) (block.map (mapKey σ ρ))
      = mapState σ ρ (Online.stepBlock s block) := by
  have h₁ := le_maxScore_left s.m (Spec.rowMax (block.map (·.score)))
  have h₂ := h.weights hb fun key hk => (score_le_rowMax block key hk).trans
    (le_maxScore_right s.m (Spec.rowMax (block.map (·.score))))
  simp only [Online.stepBlock, mapState, h.scores, h.maxScore, h.rescale_of_le hb h₁, h₂.1, h₂.2,
    h.add, h.mul, h.addVec, h.smulVec]

/-- Several blocks. -/
theorem foldl_stepBlock (blocks : List (List (ScoredValue S R d))) : ∀ s : State S R d,
    (blocks.map (List.map (mapKey σ ρ))).foldl Online.stepBlock (mapState σ ρ s)
      = mapState σ ρ (blocks.foldl Online.stepBlock s) := by
  induction blocks with
  | nil => exact fun _ => rfl
  | cons block blocks ih =>
    intro s
    rw [List.map_cons, List.foldl_cons, List.foldl_cons, h.stepBlock hb, ih]

/-- All blocks, from the state of no keys on. -/
theorem online (blocks : List (List (ScoredValue S R d))) :
    Online.online (blocks.map (List.map (mapKey σ ρ))) = mapState σ ρ (Online.online blocks) := by
  rw [Online.online, Online.online, h.empty, h.foldl_stepBlock hb]

/-- Two states merged. -/
theorem merge (a b : State S R d) :
    Online.merge (mapState σ ρ a) (mapState σ ρ b) = mapState σ ρ (Online.merge a b) := by
  simp only [Online.merge, mapState, h.maxScore, h.rescale_of_le hb (le_maxScore_left a.m b.m),
    h.rescale_of_le hb (le_maxScore_right a.m b.m), h.add, h.mul, h.addVec, h.smulVec]

end Attention.Model.Clean
