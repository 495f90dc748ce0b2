module

public import Attention.Proof.Enclosure.Basic
public import Attention.Spec.Sink

public section

/-! # Attention with a sink, run over intervals, contains the true one -/

namespace Attention.Proof

open Spec Model

universe u v

/-- A row with its sink is made of its keys and of one thing more. -/
theorem withSink_eq_map {α : Type} {S : Type u} {R : Type v} [OfNat R 0] {d : Nat}
    (sink : S) (f : α → ScoredValue S R d) (keys : List α) :
    withSink sink (keys.map f)
      = (none :: keys.map some).map fun k => k.elim ⟨some sink, Vec.zero⟩ f := by
  rw [withSink, List.map_cons, List.map_map]
  rfl

variable {R : Type u} [OrderedField R] [NaturalExp R] {p q_len kv_len d d_v : Nat}

/-- **sink-enclosed**: attention with a sink computed with intervals of any precision, over inputs,
a scale, a sink and a score transformation that contain the true ones, contains the true attention
with the sink. -/
theorem sink_enclosed {scale' sink' : Interval p} {scale sink : R}
    {modify' : ScoreMod (Interval p) q_len kv_len} {modify : ScoreMod R q_len kv_len}
    {Q' : Matrix (Interval p) q_len d} {Q : Matrix R q_len d}
    {K' : Matrix (Interval p) kv_len d} {K : Matrix R kv_len d}
    {V' : Matrix (Interval p) kv_len d_v} {V : Matrix R kv_len d_v}
    (hscale : scale'.Contains scale) (hmodify : ModContains modify' modify)
    (hsink : sink'.Contains sink)
    (hQ : MatrixContains Q' Q) (hK : MatrixContains K' K) (hV : MatrixContains V' V) :
    MatrixContains (attentionSink scale' modify' sink' Q' K' V')
      (attentionSink scale modify sink Q K V) := by
  intro i hi
  rw [attentionSink, attentionSink, Vec.getElem_ofFn, Vec.getElem_ofFn, scored, scored,
    withSink_eq_map, withSink_eq_map]
  refine contains_attend (fun k _ => ?_) (fun k _ => ?_)
  · cases k with
    | none => exact hsink
    | some k => exact hmodify _ _ _ _ (Interval.contains_mul hscale
        (contains_dot (hQ i hi) (hK k.val k.isLt)))
  · cases k with
    | none =>
      intro j hj
      show (Vec.zero : Vec (Interval p) d_v)[j].Contains (Vec.zero : Vec R d_v)[j]
      rw [Vec.getElem_zero, Vec.getElem_zero]
      exact contains_zero
    | some k => exact hV k.val k.isLt

end Attention.Proof
