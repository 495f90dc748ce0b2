module

public import Attention.Proof.Enclosure.Mods
public import Attention.Proof.Enclosure.RelatedGradients
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
abbrev SlopeContains (slope' : ScoreSlope (Interval p) (Interval p) q_len kv_len)
    (slope : ScoreSlope R R q_len kv_len) : Prop :=
  SlopeRelated Interval.Contains Interval.Contains slope' slope

/-- The intervals of all four gradients contain them, entry by entry. -/
abbrev GradientsContain (g' : Gradients (Interval p) q_len kv_len d d_v)
    (g : Gradients R q_len kv_len d d_v) : Prop :=
  GradientsRelated Interval.Contains Interval.Contains g' g

/-! ## Softcap -/

/-- The slope of softcap. -/
theorem slope_softcap_enclosed [NaturalExp R] {cap' : Interval p} {cap : R}
    (h : cap'.Contains cap) : SlopeContains (q_len := q_len) (kv_len := kv_len)
      (ScoreSlope.softcap cap') (ScoreSlope.softcap cap) := by
  enclose [SlopeContains, SlopeRelated, ScoreSlope.softcap]

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

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply contains_slopeGradient | apply contains_sumRows | apply related_sumMatrices
  | apply related_vjp | apply GradientsRelated.dQ | apply GradientsRelated.dK
  | apply GradientsRelated.dV | apply GradientsRelated.dBias)

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
