module

public import Attention.Proof.Enclosure.Basic

public section

/-! # Attention with a sink, run over intervals, contains the true one -/

namespace Attention.Proof

open Spec Model

universe u

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
      (attentionSink scale modify sink Q K V) :=
  related_attentionSink hscale hmodify hQ hK hsink hV

end Attention.Proof
