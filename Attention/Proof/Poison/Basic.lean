module

public import Attention.Model.Poison
public import Attention.Proof.Softmax.Maximum
public import Attention.Spec.Schedule

public section

/-! # The Spec among numbers with a poison: sums, maxima, weights and scores

Each part of the Spec, run over numbers with a poison and given proper ones, gives the proper number
that it should, and at most the weights ask for something. -/

namespace Attention.Proof

open Spec

universe u v w x

/-- A matrix of proper numbers. -/
@[expose] def mapMatrix {A : Type u} {B : Type v} {m n : Nat} (f : A → B) (M : Matrix A m n) :
    Matrix B m n :=
  Vec.map (Vec.map f) M

/-- A key with proper numbers. -/
@[expose] def mapKey {A : Type u} {B : Type v} {A' : Type w} {B' : Type x} {d : Nat} (σ : A → A')
    (ρ : B → B') (key : ScoredValue A B d) : ScoredValue A' B' d :=
  ⟨key.score.map σ, Vec.map ρ key.value⟩

/-- A mask after a score transformation that gives proper scores. -/
theorem mapped_andThen_mask {S : Type u} {S' : Type v} {σ : S → S'} {q_len kv_len : Nat}
    {mask : Mask q_len kv_len} {modify : ScoreMod S q_len kv_len}
    {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ)
    (i : Fin q_len) (j : Fin kv_len) (s : S) :
    (modify'.andThen mask.toScoreMod) i j (σ s)
      = ((modify.andThen mask.toScoreMod) i j s).map σ := by
  simp only [ScoreMod.andThen, hmodify]
  cases modify i j s with
  | none => rfl
  | some t =>
    simp only [Option.map_some, Option.bind_some, Mask.toScoreMod]
    cases mask i j <;> rfl

end Attention.Proof

namespace Attention.Model.Clean

open Spec Proof

universe u v w x y

variable {S : Type u} {R : Type v} {S' : Type w} {R' : Type x} {α : Type y}
variable [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable [Add S'] [Sub S'] [Mul S'] [OfNat S' 0] [LE S']
variable [Add R'] [Sub R'] [Mul R'] [Div R'] [OfNat R' 0] [OfNat R' 1] [Exp S' R']
variable {bound : S} {σ : S → S'} {ρ : R → R'} {d d_v q_len kv_len : Nat}
variable (h : Clean bound σ ρ)
include h

/-! ## Sums and vectors -/

/-- A sum of values. -/
theorem sumOver (f : α → R) (xs : List α) :
    ρ (Attention.sumOver f xs) = Attention.sumOver (fun x => ρ (f x)) xs := by
  induction xs with
  | nil => exact h.zero
  | cons x xs ih => rw [sumOver_cons, sumOver_cons, h.add, ih]

/-- A sum of scores. -/
theorem score_sumOver (f : α → S) (xs : List α) :
    σ (Attention.sumOver f xs) = Attention.sumOver (fun x => σ (f x)) xs := by
  induction xs with
  | nil => exact h.score_zero
  | cons x xs ih => rw [sumOver_cons, sumOver_cons, h.score_add, ih]

/-- The zero vector. -/
theorem zeroVec : (Vec.zero : Vec R' d) = Vec.map ρ Vec.zero :=
  Vector.ext fun j hj => by simp only [Vec.getElem_zero, Vec.getElem_map, h.zero]

/-- A sum of two vectors. -/
theorem addVec (a b : Vec R d) : Vec.map ρ (Vec.add a b) = Vec.add (Vec.map ρ a) (Vec.map ρ b) :=
  Vector.ext fun j hj => by simp only [Vec.getElem_add, Vec.getElem_map, h.add]

/-- A vector times a number. -/
theorem smulVec (c : R) (a : Vec R d) : Vec.map ρ (Vec.smul c a) = Vec.smul (ρ c) (Vec.map ρ a) :=
  Vector.ext fun j hj => by simp only [Vec.getElem_smul, Vec.getElem_map, h.mul]

/-- A sum of vectors. -/
theorem sumVec (f : α → Vec R d) (xs : List α) :
    Vec.map ρ (Vec.sumOver f xs) = Vec.sumOver (fun x => Vec.map ρ (f x)) xs :=
  Vector.ext fun j hj => by simp only [Vec.getElem_sumOver, Vec.getElem_map, h.sumOver]

/-- An inner product of values. -/
theorem dot (a b : Vec R d) : ρ (Vec.dot a b) = Vec.dot (Vec.map ρ a) (Vec.map ρ b) := by
  rw [Vec.dot, Vec.dot, h.sumOver]
  exact sumOver_congr fun i _ => by
    simp only [Fin.getElem_fin, Vec.getElem_map, h.mul]

/-- An inner product of scores. -/
theorem score_dot (a b : Vec S d) : σ (Vec.dot a b) = Vec.dot (Vec.map σ a) (Vec.map σ b) := by
  rw [Vec.dot, Vec.dot, h.score_sumOver]
  exact sumOver_congr fun i _ => by
    simp only [Fin.getElem_fin, Vec.getElem_map, h.score_mul]

/-! ## Weights and scores -/

/-- A weight against a reference point that the score exceeds by no more than the bound. -/
theorem rescale {s m : Option S} (hle : ∀ x y, s = some x → m = some y → x - y ≤ bound) :
    (Spec.rescale (s.map σ) (m.map σ) : R') = ρ (Spec.rescale s m) := by
  cases s with
  | none => exact h.zero.symm
  | some s =>
    cases m with
    | none => exact h.zero.symm
    | some m =>
      simp only [Spec.rescale, Option.map_some]
      rw [← h.score_sub, h.exp _ (hle s m rfl rfl)]

/-- A weight against a reference point that is not below the score. -/
theorem rescale_of_le (hb : 0 ≤ bound) {s m : Option S} (hle : ScoreLE s m) :
    (Spec.rescale (s.map σ) (m.map σ) : R') = ρ (Spec.rescale s m) :=
  h.rescale fun x y hs hm => by
    subst hs hm
    have : x ≤ y := hle
    grind

/-- A score, under transformations that agree on proper scores. -/
theorem score {scale : S} {modify : ScoreMod S q_len kv_len} {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (i : Fin q_len) (j : Fin kv_len) :
    Spec.score (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) i j
      = (Spec.score scale modify Q K i j).map σ := by
  simp only [Spec.score, mapMatrix, Fin.getElem_fin, Vec.getElem_map]
  rw [← h.score_dot, ← h.score_mul, hmodify]

/-- The keys as a query sees them. -/
theorem scored {scale : S} {modify : ScoreMod S q_len kv_len} {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (i : Fin q_len) (cols : List (Fin kv_len)) :
    Spec.scored (σ scale) modify' (mapMatrix σ Q) (mapMatrix σ K) (mapMatrix ρ V) i cols
      = (Spec.scored scale modify Q K V i cols).map (mapKey σ ρ) := by
  rw [Spec.scored, Spec.scored, List.map_map]
  refine List.map_congr_left fun j _ => ?_
  simp only [Function.comp, mapKey, h.score hmodify]
  simp only [mapMatrix, Fin.getElem_fin, Vec.getElem_map]

/-! ## Maxima -/

variable [DecidableLE S']

/-- The larger of two scores. -/
theorem maxScore (a b : Option S) :
    Spec.maxScore (a.map σ) (b.map σ) = (Spec.maxScore a b).map σ := by
  cases a <;> cases b <;> simp only [Spec.maxScore, Option.map_some, Option.map_none, h.score_le]
  split <;> rfl

/-- The largest score of a row. -/
theorem rowMax (row : List (Option S)) :
    Spec.rowMax (row.map (Option.map σ)) = (Spec.rowMax row).map σ := by
  induction row with
  | nil => rfl
  | cons s row ih => rw [List.map_cons, Spec.rowMax, Spec.rowMax, ih, h.maxScore]

end Attention.Model.Clean
