module

public import Attention.Proof.Enclosure.Mods
public import Attention.Proof.Enclosure.Vectors
public import Attention.Spec.BackwardOptions

public section

/-! # The backward pass, run over intervals, contains the true gradients

As `enclosure_sound` for attention itself: the Spec's own backward pass asks for operations only. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v w

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p q_len kv_len d d_v num_kv_heads group : Nat}

/-- The slope over intervals contains the slope, for every score in the interval. -/
@[expose] def SlopeContains (slope' : ScoreSlope (Interval p) (Interval p) q_len kv_len)
    (slope : ScoreSlope R R q_len kv_len) : Prop :=
  ∀ i j I x, I.Contains x → (slope' i j I).Contains (slope i j x)

/-- The intervals of all four gradients contain them, entry by entry. -/
structure GradientsContain (g' : Gradients (Interval p) q_len kv_len d d_v)
    (g : Gradients R q_len kv_len d d_v) : Prop where
  /-- By the queries. -/
  dQ : MatrixContains g'.dQ g.dQ
  /-- By the keys. -/
  dK : MatrixContains g'.dK g.dK
  /-- By the values. -/
  dV : MatrixContains g'.dV g.dV
  /-- By the transformed scores. -/
  dBias : MatrixContains g'.dBias g.dBias

/-- A slope at a score. -/
theorem SlopeContains.slope {slope' : ScoreSlope (Interval p) (Interval p) q_len kv_len}
    {slope : ScoreSlope R R q_len kv_len} (h : SlopeContains slope' slope) {I : Interval p} {x : R}
    (hx : I.Contains x) {i : Fin q_len} {j : Fin kv_len} : (slope' i j I).Contains (slope i j x) :=
  h i j I x hx

macro_rules | `(tactic| enclose_step) => `(tactic| (
  apply SlopeContains.slope; first | assumption | apply_assumption))

/-! ## One head -/

section
variable [NaturalExp R] {scale' : Interval p} {scale : R}
variable {modify' : ScoreMod (Interval p) q_len kv_len} {modify : ScoreMod R q_len kv_len}
variable {slope' : ScoreSlope (Interval p) (Interval p) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len}
variable {Q' : Matrix (Interval p) q_len d} {Q : Matrix R q_len d}
variable {K' : Matrix (Interval p) kv_len d} {K : Matrix R kv_len d}
variable {V' : Matrix (Interval p) kv_len d_v} {V : Matrix R kv_len d_v}
variable {dO' : Matrix (Interval p) q_len d_v} {dO : Matrix R q_len d_v}
variable {dLse' : Vec (Interval p) q_len} {dLse : Vec R q_len}

/-- The weight of query i and key j, whatever numbers. -/
private theorem getElem_probabilities' {S T : Type u} [Add S] [Mul S] [OfNat S 0] [Add T] [Div T]
    [OfNat T 0] [Exp S T] (scale : S) (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) {i j : Nat} (hi : i < q_len) (hj : j < kv_len) :
    (probabilities scale modify Q K : Matrix T q_len kv_len)[i][j]
      = weightOver (denominator ((List.finRange kv_len).map (score scale modify Q K ⟨i, hi⟩)))
          (score scale modify Q K ⟨i, hi⟩ ⟨j, hj⟩) := by
  have h : ∀ row : List (Option S), softmax (R := T) row = row.map (weightOver (denominator row)) :=
    fun row => List.map_congr_left fun s _ => by cases s <;> rfl
  simp [probabilities, h]

/-- The softmax weights of enclosed scores are enclosed. -/
theorem contains_probabilities (hscale : scale'.Contains scale)
    (hmodify : ModContains modify' modify) (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K) :
    MatrixContains (probabilities scale' modify' Q' K' : Matrix (Interval p) q_len kv_len)
      (probabilities scale modify Q K : Matrix R q_len kv_len) := by
  intro i hi j hj
  rw [getElem_probabilities' scale' modify' Q' K' hi hj,
    getElem_probabilities' scale modify Q K hi hj]
  enclose

macro_rules | `(tactic| enclose_step) => `(tactic| apply contains_probabilities)

/-- The gradients by the scores. -/
theorem contains_scoreGradients (hscale : scale'.Contains scale)
    (hmodify : ModContains modify' modify) (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K)
    (hV : MatrixContains V' V) (hdO : MatrixContains dO' dO) (hdLse : VecContains dLse' dLse) :
    MatrixContains (scoreGradients scale' modify' Q' K' V' dO' dLse')
      (scoreGradients scale modify Q K V dO dLse) := by
  enclose [scoreGradients, scoreGradient, rowDelta]

macro_rules | `(tactic| enclose_step) => `(tactic| apply contains_scoreGradients)

/-- The backward pass of one head. -/
theorem contains_vjp (hscale : scale'.Contains scale) (hmodify : ModContains modify' modify)
    (hslope : SlopeContains slope' slope) (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K)
    (hV : MatrixContains V' V) (hdO : MatrixContains dO' dO) (hdLse : VecContains dLse' dLse) :
    GradientsContain (vjp scale' modify' slope' Q' K' V' (fun x => x) dO' dLse')
      (vjp scale modify slope Q K V (fun x => x) dO dLse) := by
  enclose [vjp]

end

/-! ## Slopes of score transformations -/

/-- Masks and biases. -/
theorem slope_one_enclosed : SlopeContains (p := p) (R := R) (q_len := q_len) (kv_len := kv_len)
    ScoreSlope.one ScoreSlope.one :=
  fun _ _ _ _ _ => contains_one

/-- One transformation after the other. -/
theorem slope_andThen_enclosed {f' : ScoreMod (Interval p) q_len kv_len}
    {f : ScoreMod R q_len kv_len}
    {slope' slope₂' : ScoreSlope (Interval p) (Interval p) q_len kv_len}
    {slope slope₂ : ScoreSlope R R q_len kv_len} (hf : ModContains f' f)
    (h : SlopeContains slope' slope) (h₂ : SlopeContains slope₂' slope₂) :
    SlopeContains (ScoreSlope.andThen f' slope' slope₂') (ScoreSlope.andThen f slope slope₂) := by
  intro i j I x hx
  have hm := hf i j I x hx
  rw [ScoreSlope.andThen, ScoreSlope.andThen]
  cases h' : f' i j I <;> cases h₀ : f i j x <;> rw [h', h₀] at hm
  · exact contains_zero
  · cases hm
  · cases hm
  · exact Interval.contains_mul (h₂ i j _ _ hm) (h i j I x hx)

/-- Softcap. -/
theorem slope_softcap_enclosed [NaturalExp R] {cap' : Interval p} {cap : R}
    (h : cap'.Contains cap) : SlopeContains (q_len := q_len) (kv_len := kv_len)
      (ScoreSlope.softcap cap') (ScoreSlope.softcap cap) := by
  enclose [SlopeContains, ScoreSlope.softcap]

/-! ## Slopes of linear biases, biases that are shared -/

/-- The gradient by ALiBi's slope of enclosed gradients by the scores is enclosed. -/
theorem contains_slopeGradient (alignment : Alignment) {dS' : Matrix (Interval p) q_len kv_len}
    {dS : Matrix R q_len kv_len} (h : MatrixContains dS' dS) :
    (slopeGradient alignment dS').Contains (slopeGradient alignment dS) := by
  have hn := Interval.contains_intCast (R := R) (p := p)
  enclose [slopeGradient]

/-- A sum over queries. -/
theorem contains_sumRows {m n : Nat} {A' : Matrix (Interval p) m n} {A : Matrix R m n}
    (h : MatrixContains A' A) : MatrixContains (sumRows A') (sumRows A) := by
  enclose [sumRows]

/-- A sum over heads. -/
theorem contains_sumMatrices {α : Type} {m n : Nat} {X' : α → Matrix (Interval p) m n}
    {X : α → Matrix R m n} {heads : List α} (h : ∀ x ∈ heads, MatrixContains (X' x) (X x)) :
    MatrixContains (sumMatrices X' heads) (sumMatrices X heads) := by
  enclose [sumMatrices]

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply contains_slopeGradient | apply contains_sumRows | apply contains_sumMatrices
  | apply contains_vjp | apply GradientsContain.dQ | apply GradientsContain.dK
  | apply GradientsContain.dV | apply GradientsContain.dBias)

/-! ## Several heads, sinks -/

/-- The matrices of all heads are enclosed. -/
abbrev HeadsContain {heads m n : Nat} (I : Vector (Matrix (Interval p) m n) heads)
    (x : Vector (Matrix R m n) heads) : Prop :=
  ∀ h : Fin heads, MatrixContains I[h] x[h]

/-- The intervals of the gradients of all heads contain them. -/
structure GroupedContain {num_heads : Nat}
    (g' : GroupedGradients (Interval p) q_len kv_len d d_v num_heads num_kv_heads)
    (g : GroupedGradients R q_len kv_len d d_v num_heads num_kv_heads) : Prop where
  /-- By the queries. -/
  dQ : HeadsContain g'.dQ g.dQ
  /-- By the keys. -/
  dK : HeadsContain g'.dK g.dK
  /-- By the values. -/
  dV : HeadsContain g'.dV g.dV
  /-- By the transformed scores. -/
  dBias : HeadsContain g'.dBias g.dBias

variable [NaturalExp R] {scale' : Interval p} {scale : R}
variable {modify' : Fin (num_kv_heads * group) → ScoreMod (Interval p) q_len kv_len}
variable {modify : Fin (num_kv_heads * group) → ScoreMod R q_len kv_len}
variable {slope' : Fin (num_kv_heads * group) → ScoreSlope (Interval p) (Interval p) q_len kv_len}
variable {slope : Fin (num_kv_heads * group) → ScoreSlope R R q_len kv_len}
variable {Q' : Vector (Matrix (Interval p) q_len d) (num_kv_heads * group)}
variable {Q : Vector (Matrix R q_len d) (num_kv_heads * group)}
variable {K' : Vector (Matrix (Interval p) kv_len d) num_kv_heads}
variable {K : Vector (Matrix R kv_len d) num_kv_heads}
variable {V' : Vector (Matrix (Interval p) kv_len d_v) num_kv_heads}
variable {V : Vector (Matrix R kv_len d_v) num_kv_heads}
variable {dO' : Vector (Matrix (Interval p) q_len d_v) (num_kv_heads * group)}
variable {dO : Vector (Matrix R q_len d_v) (num_kv_heads * group)}
variable {dLse' : Vector (Vec (Interval p) q_len) (num_kv_heads * group)}
variable {dLse : Vector (Vec R q_len) (num_kv_heads * group)}

omit [NaturalExp R] in
/-- The gradients of grouped heads, from those of each query head. -/
theorem groupGradients_enclosed
    {each' : Vector (Gradients (Interval p) q_len kv_len d d_v) (num_kv_heads * group)}
    {each : Vector (Gradients R q_len kv_len d d_v) (num_kv_heads * group)}
    (h : ∀ n : Fin (num_kv_heads * group), GradientsContain each'[n] each[n]) :
    GroupedContain (groupGradients each') (groupGradients each) := by
  enclose [groupGradients]

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply groupGradients_enclosed | apply GroupedContain.dQ | apply GroupedContain.dK
  | apply GroupedContain.dV | apply GroupedContain.dBias)

/-- **gradient-enclosed**: the backward pass of grouped-query attention computed with intervals of
any precision, over inputs, a scale, score transformations and their slopes, and gradients by the
outputs that contain the true ones, contains the true gradients by queries, keys, values and
transformed scores, whatever natural exponential they are taken with. -/
theorem groupedQueryVjp_enclosed (hscale : scale'.Contains scale)
    (hmodify : ∀ h, ModContains (modify' h) (modify h))
    (hslope : ∀ h, SlopeContains (slope' h) (slope h))
    (hQ : HeadsContain Q' Q) (hK : HeadsContain K' K) (hV : HeadsContain V' V)
    (hdO : HeadsContain dO' dO)
    (hdLse : ∀ h : Fin (num_kv_heads * group), VecContains dLse'[h] dLse[h]) :
    GroupedContain (groupedQueryVjp scale' modify' slope' Q' K' V' (fun x => x) dO' dLse')
      (groupedQueryVjp scale modify slope Q K V (fun x => x) dO dLse) := by
  enclose [groupedQueryVjp]

/-- A property of a sink and of every key is one of both. -/
private theorem forall_sinkFirst {α : Type v} {β : Type w} {P : α → β → Prop} {a : α} {b : β}
    {f : Fin kv_len → α} {g : Fin kv_len → β} (h₀ : P a b) (h : ∀ k, P (f k) (g k))
    (j : Fin (kv_len + 1)) : P (sinkFirst a f j) (sinkFirst b g j) := by
  rw [sinkFirst, sinkFirst]
  split
  · exact h₀
  · exact h _

omit [NaturalExp R] in
/-- Keys, or values, with a sink before them. -/
private theorem contains_rowsBehindSink {heads n : Nat}
    {A' : Vector (Matrix (Interval p) kv_len n) heads} {A : Vector (Matrix R kv_len n) heads}
    (h : HeadsContain A' A) : HeadsContain (Vec.ofFn fun c => rowsBehindSink A'[c])
      (Vec.ofFn fun c => rowsBehindSink A[c]) := fun _ => VecRelated.component <|
  related_ofFn fun c => related_ofFn (forall_sinkFirst related_zero fun _ => (h c).component)

omit [NaturalExp R] in
/-- And without it. -/
private theorem contains_rowsOfKeys {heads n : Nat}
    {A' : Vector (Matrix (Interval p) (kv_len + 1) n) heads}
    {A : Vector (Matrix R (kv_len + 1) n) heads} (h : HeadsContain A' A) :
    HeadsContain (Vec.ofFn fun c => rowsOfKeys A'[c]) (Vec.ofFn fun c => rowsOfKeys A[c]) :=
  fun _ => VecRelated.component <| related_ofFn fun c => related_ofFn fun _ => (h c).component

/-- **gradient-sink-enclosed**: the same with a sink for each query head, whose gradients are
contained too. -/
theorem sinkVjp_enclosed {sinks' : Vec (Interval p) (num_kv_heads * group)}
    {sinks : Vec R (num_kv_heads * group)} (hsinks : VecContains sinks' sinks)
    (hscale : scale'.Contains scale)
    (hmodify : ∀ h, ModContains (modify' h) (modify h))
    (hslope : ∀ h, SlopeContains (slope' h) (slope h))
    (hQ : HeadsContain Q' Q) (hK : HeadsContain K' K) (hV : HeadsContain V' V)
    (hdO : HeadsContain dO' dO)
    (hdLse : ∀ h : Fin (num_kv_heads * group), VecContains dLse'[h] dLse[h]) :
    let g' := sinkVjp scale' modify' slope' sinks' Q' K' V' (fun x => x) dO' dLse'
    let g := sinkVjp scale modify slope sinks Q K V (fun x => x) dO dLse
    GroupedContain g'.inputs g.inputs ∧ VecContains g'.dSinks g.dSinks := by
  have hm h : ModContains ((modify' h).behindSink sinks'[h]) ((modify h).behindSink sinks[h]) :=
    fun i j I x hx => forall_sinkFirst (related_some hsinks.component)
      (fun k => hmodify h i k I x hx) j
  have hs h : SlopeContains (slope' h).behindSink (slope h).behindSink := fun i j I x hx =>
    forall_sinkFirst contains_zero (fun k => hslope h i k I x hx) j
  have all := groupedQueryVjp_enclosed hscale hm hs hQ (contains_rowsBehindSink hK)
    (contains_rowsBehindSink hV) hdO hdLse
  exact ⟨⟨all.dQ, contains_rowsOfKeys all.dK, contains_rowsOfKeys all.dV, fun _ => (related_ofFn
    fun h => related_ofFn fun i => related_ofFn fun _ => (all.dBias h).component.component
    : VecRelated MatrixContains _ _).component⟩,
    related_ofFn fun h => related_sumOver fun i _ => (all.dBias h).component.component⟩

end Attention.Proof
