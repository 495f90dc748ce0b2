module

public import Attention.Proof.Enclosure.Backward
public import Attention.Spec.BackwardDropout
public import Attention.Spec.ScoreTemperature

public section

/-! # The backward passes with dropout and with a temperature, run over intervals

They are the backward pass of attention at other values, and at other queries. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

attribute [local instance] Ring.intCast

variable {R : Type u} [OrderedField R] {p q_len kv_len d d_v : Nat}

/-- The intervals of the factors contain them. -/
abbrev FactorsContain (Z' : WeightFactor (Interval p) q_len kv_len)
    (Z : WeightFactor R q_len kv_len) : Prop :=
  ∀ i j, (Z' i j).Contains (Z i j)

/-- The factors of weights under dropout, with an interval for the probability. -/
theorem contains_dropout {prob' : Interval p} {prob : R} (h : prob'.Contains prob)
    (keep : Mask q_len kv_len) :
    FactorsContain (.dropout prob' keep) (.dropout prob keep) := by
  intro i j
  rw [WeightFactor.dropout, WeightFactor.dropout, dropoutFactor, dropoutFactor]
  cases keep i j
  · exact contains_zero
  · exact Interval.contains_div contains_one (Interval.contains_sub contains_one h)

/-- A temperature. -/
theorem temperature_enclosed {t' : Interval p} {t : R} (h : t'.Contains t) :
    ModContains (q_len := q_len) (kv_len := kv_len) (.temperature t') (.temperature t) := by
  enclose [ScoreMod.temperature]

/-- A matrix multiplied by a number. -/
theorem contains_scaleRows {m n : Nat} {t' : Interval p} {t : R} (h : t'.Contains t)
    {A' : Matrix (Interval p) m n} {A : Matrix R m n} (hA : MatrixContains A' A) :
    MatrixContains (scaleRows t' A') (scaleRows t A) := by
  enclose [scaleRows]

macro_rules | `(tactic| enclose_step) => `(tactic| first
  | apply related_droppedValues | apply contains_scaleRows)

variable [NaturalExp R] {scale' : Interval p} {scale : R}
variable {modify' : ScoreMod (Interval p) q_len kv_len} {modify : ScoreMod R q_len kv_len}
variable {slope' : ScoreSlope (Interval p) (Interval p) q_len kv_len}
variable {slope : ScoreSlope R R q_len kv_len}
variable {Q' : Matrix (Interval p) q_len d} {Q : Matrix R q_len d}
variable {K' : Matrix (Interval p) kv_len d} {K : Matrix R kv_len d}
variable {V' : Matrix (Interval p) kv_len d_v} {V : Matrix R kv_len d_v}
variable {dO' : Matrix (Interval p) q_len d_v} {dO : Matrix R q_len d_v}
variable {dLse' : Vec (Interval p) q_len} {dLse : Vec R q_len}

/-- **gradient-dropout-enclosed**: the backward pass with dropout computed with intervals, over
inputs and factors that contain the true ones, contains the true gradients. -/
theorem vjpDropout_enclosed {Z' : WeightFactor (Interval p) q_len kv_len}
    {Z : WeightFactor R q_len kv_len} (hZ : FactorsContain Z' Z)
    (hscale : scale'.Contains scale) (hmodify : ModContains modify' modify)
    (hslope : SlopeContains slope' slope) (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K)
    (hV : MatrixContains V' V) (hdO : MatrixContains dO' dO) (hdLse : VecContains dLse' dLse) :
    GradientsContain (vjpDropout scale' modify' slope' Q' K' V' Z' (fun x => x) dO' dLse')
      (vjpDropout scale modify slope Q K V Z (fun x => x) dO dLse) :=
  related_vjpDropout hscale hmodify hQ hK hV hdO hdLse hZ hslope (fun _ _ hx => hx) fun _ _ hx => hx

/-- **gradient-temperature-enclosed**: the backward pass with a temperature computed with intervals,
over inputs and a temperature that contain the true ones, contains the true gradients, that by the
temperature too. -/
theorem temperatureVjp_enclosed {t' : Interval p} {t : R} (ht : t'.Contains t)
    (hscale : scale'.Contains scale) (hmodify : ModContains modify' modify)
    (hslope : SlopeContains slope' slope) (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K)
    (hV : MatrixContains V' V) (hdO : MatrixContains dO' dO) (hdLse : VecContains dLse' dLse) :
    let g' := temperatureVjp scale' t' modify' slope' Q' K' V' (fun x => x) dO' dLse'
    let g := temperatureVjp scale t modify slope Q K V (fun x => x) dO dLse
    GradientsContain g'.inputs g.inputs ∧ g'.dTemperature.Contains g.dTemperature := by
  intro g' g
  have h := related_vjp hscale hmodify (contains_scaleRows ht hQ) hK hV hdO hdLse hslope
    (fun _ _ hx => hx) fun _ _ hx => hx
  exact ⟨⟨contains_scaleRows ht h.dQ, h.dK, h.dV, h.dBias⟩, related_sumOver fun _ _ => related_dot
    h.dQ.component (related_ofFn fun _ => related_map hQ.component fun _ _ hx => hx).component⟩

end Attention.Proof
