module

public import Attention.Proof.Enclosure.Related
public import Attention.Spec.BackwardDropout
public import Attention.Spec.Slopes

public section

/-! # The backward pass makes related gradients of related numbers

As `Related` for attention. Gradients by queries and keys may have a relation `D` of their own: in
the exact model they are divided by ln 2. -/

namespace Attention.Proof

open Spec

universe u v w x

variable {S : Type u} {R : Type v} {T : Type w} {U : Type x} {q_len kv_len d d_v : Nat}
variable {N A : S → R → Prop} {C D : T → U → Prop}

/-- The slopes at related scores are related. -/
@[expose] def SlopeRelated (A : S → R → Prop) (C : T → U → Prop)
    (slope' : ScoreSlope S T q_len kv_len) (slope : ScoreSlope R U q_len kv_len) : Prop :=
  ∀ i j I x, A I x → C (slope' i j I) (slope i j x)

/-- All four gradients are related, entry by entry: those by queries and keys by `D`, those by
values and by the transformed scores by `C`. -/
structure GradientsRelated (D C : T → U → Prop) (g' : Gradients T q_len kv_len d d_v)
    (g : Gradients U q_len kv_len d d_v) : Prop where
  /-- By the queries. -/
  dQ : VecRelated (VecRelated D) g'.dQ g.dQ
  /-- By the keys. -/
  dK : VecRelated (VecRelated D) g'.dK g.dK
  /-- By the values. -/
  dV : VecRelated (VecRelated C) g'.dV g.dV
  /-- By the transformed scores. -/
  dBias : VecRelated (VecRelated C) g'.dBias g.dBias

/-- A sum of matrices. -/
theorem related_sumMatrices [Add T] [OfNat T 0] [Add U] [OfNat U 0] [KeptBySum C] {α : Type}
    {m n : Nat} {X' : α → Matrix T m n} {X : α → Matrix U m n} {xs : List α}
    (h : ∀ x ∈ xs, VecRelated (VecRelated C) (X' x) (X x)) :
    VecRelated (VecRelated C) (sumMatrices X' xs) (sumMatrices X xs) := by
  enclose [sumMatrices]

/-- The values as a query sees them under dropout. -/
theorem related_droppedValues [Mul T] [Mul U] [KeptByMul C C C] {V' : Matrix T kv_len d_v}
    {V : Matrix U kv_len d_v} {Z' : WeightFactor T q_len kv_len} {Z : WeightFactor U q_len kv_len}
    (hV : VecRelated (VecRelated C) V' V) (hZ : ∀ i j, C (Z' i j) (Z i j)) (i : Fin q_len) :
    VecRelated (VecRelated C) (droppedValues V' Z' i) (droppedValues V Z i) := by
  enclose [droppedValues]

/-- A slope at a score. -/
theorem SlopeRelated.slope {slope' : ScoreSlope S T q_len kv_len}
    {slope : ScoreSlope R U q_len kv_len} (h : SlopeRelated A C slope' slope) {I : S} {x : R}
    (hx : A I x) {i : Fin q_len} {j : Fin kv_len} : C (slope' i j I) (slope i j x) :=
  h i j I x hx

macro_rules | `(tactic| enclose_step) => `(tactic| (
  apply SlopeRelated.slope; first | assumption | apply_assumption))

variable {slope' slope₂' : ScoreSlope S T q_len kv_len}
variable {slope slope₂ : ScoreSlope R U q_len kv_len}

/-- The weight of query i and key j. -/
private theorem getElem_probabilities' [Add S] [Mul S] [OfNat S 0] [Add T] [Div T] [OfNat T 0]
    [Exp S T] (scale : S) (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) {i j : Nat} (hi : i < q_len) (hj : j < kv_len) :
    (probabilities scale modify Q K : Matrix T q_len kv_len)[i][j]
      = weightOver (denominator ((List.finRange kv_len).map (score scale modify Q K ⟨i, hi⟩)))
          (score scale modify Q K ⟨i, hi⟩ ⟨j, hj⟩) := by
  simp [probabilities, softmax_eq_map]

variable [OfNat T 0] [OfNat T 1] [Add T] [Sub T] [Mul T] [Div T]
variable [OfNat U 0] [OfNat U 1] [Add U] [Sub U] [Mul U] [Div U] [KeptByField C]

/-! ## Slopes of score transformations -/

/-- Masks and biases. -/
theorem related_slope_one : SlopeRelated (q_len := q_len) (kv_len := kv_len) A C ScoreSlope.one
    ScoreSlope.one :=
  fun _ _ _ _ _ => KeptByField.one

/-- One transformation after the other. -/
theorem related_slope_andThen {f' : ScoreMod S q_len kv_len} {f : ScoreMod R q_len kv_len}
    (hf : ModRelated A f' f) (h : SlopeRelated A C slope' slope)
    (h₂ : SlopeRelated A C slope₂' slope₂) :
    SlopeRelated A C (ScoreSlope.andThen f' slope' slope₂')
      (ScoreSlope.andThen f slope slope₂) := by
  intro i j I x hx
  have hm := hf i j I x hx
  rw [ScoreSlope.andThen, ScoreSlope.andThen]
  cases h' : f' i j I <;> cases h₀ : f i j x <;> rw [h', h₀] at hm
  · exact KeptBySum.zero
  · cases hm
  · cases hm
  · exact KeptByMul.mul (h₂ i j _ _ hm) (h i j I x hx)

/-! ## One head -/

variable [OfNat S 0] [Add S] [Mul S] [Exp S T] [OfNat R 0] [Add R] [Mul R] [Exp R U]
variable [KeptByMul A N A] [KeptBySum N] [KeptByMul N N N] [KeptByExp A C]
variable {scale' : S} {scale : R} {modify' : ScoreMod S q_len kv_len}
variable {modify : ScoreMod R q_len kv_len} {Q' : Matrix S q_len d} {Q : Matrix R q_len d}
variable {K' : Matrix S kv_len d} {K : Matrix R kv_len d} {V' : Matrix T kv_len d_v}
variable {V : Matrix U kv_len d_v} {dO' : Matrix T q_len d_v} {dO : Matrix U q_len d_v}
variable {dLse' : Vec T q_len} {dLse : Vec U q_len}
variable (hscale : A scale' scale) (hmodify : ModRelated A modify' modify)
variable (hQ : VecRelated (VecRelated N) Q' Q) (hK : VecRelated (VecRelated N) K' K)
include hscale hmodify hQ hK

/-- The softmax weights. -/
theorem related_probabilities : VecRelated (VecRelated C)
    (probabilities scale' modify' Q' K' : Matrix T q_len kv_len)
    (probabilities scale modify Q K : Matrix U q_len kv_len) := by
  intro i hi j hj
  rw [getElem_probabilities' scale' modify' Q' K' hi hj,
    getElem_probabilities' scale modify Q K hi hj]
  enclose

macro_rules | `(tactic| enclose_step) => `(tactic| apply related_probabilities)

variable (hV : VecRelated (VecRelated C) V' V) (hdO : VecRelated (VecRelated C) dO' dO)
variable (hdLse : VecRelated C dLse' dLse)
include hV hdO hdLse

/-- The gradients by the scores. -/
theorem related_scoreGradients :
    VecRelated (VecRelated C) (scoreGradients scale' modify' Q' K' V' dO' dLse')
      (scoreGradients scale modify Q K V dO dLse) := by
  enclose [scoreGradients, scoreGradient, rowDelta]

macro_rules | `(tactic| enclose_step) => `(tactic| apply related_scoreGradients)

/-- The backward pass of one head. -/
theorem related_vjp [KeptBySum D] [KeptByMul D C D] (hslope : SlopeRelated A C slope' slope)
    {toValue' : S → T} {toValue : R → U} (hinput : ∀ I x, N I x → C (toValue' I) (toValue x))
    (hfactor : ∀ I x, A I x → D (toValue' I) (toValue x)) :
    GradientsRelated D C (vjp scale' modify' slope' Q' K' V' toValue' dO' dLse')
      (vjp scale modify slope Q K V toValue dO dLse) := by
  enclose [vjp]

/-- The backward pass with dropout. -/
theorem related_vjpDropout [KeptBySum D] [KeptByMul D C D] {Z' : WeightFactor T q_len kv_len}
    {Z : WeightFactor U q_len kv_len} (hZ : ∀ i j, C (Z' i j) (Z i j))
    (hslope : SlopeRelated A C slope' slope) {toValue' : S → T} {toValue : R → U}
    (hinput : ∀ I x, N I x → C (toValue' I) (toValue x))
    (hfactor : ∀ I x, A I x → D (toValue' I) (toValue x)) :
    GradientsRelated D C (vjpDropout scale' modify' slope' Q' K' V' Z' toValue' dO' dLse')
      (vjpDropout scale modify slope Q K V Z toValue dO dLse) := by
  have each : VecRelated (GradientsRelated D C)
      (Vec.ofFn fun i => vjpRow scale' modify' slope' Q' K' V' Z' toValue' dO' dLse' i)
      (Vec.ofFn fun i => vjpRow scale modify slope Q K V Z toValue dO dLse i) :=
    related_ofFn fun i => related_vjp hscale (fun _ j => hmodify i j)
      (related_ofFn fun _ => hQ.component) hK (related_droppedValues hV hZ i)
      (related_ofFn fun _ => hdO.component) (related_ofFn fun _ => hdLse.component)
      (fun _ j => hslope i j) hinput hfactor
  exact ⟨related_ofFn fun _ => each.component.dQ.component,
    related_sumMatrices fun _ _ => each.component.dK,
    related_sumMatrices fun i _ => related_droppedValues each.component.dV hZ i,
    related_ofFn fun _ => each.component.dBias.component⟩

end Attention.Proof
