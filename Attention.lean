module

public import Attention.Algebra.Exponential
public import Attention.Algebra.Ordered
public import Attention.Algebra.Sum
public import Attention.Algebra.Vector
public import Attention.Model.Exact
public import Attention.Proof.Attention
public import Attention.Proof.CausalPrefix
public import Attention.Proof.Flash
public import Attention.Proof.Intervals
public import Attention.Proof.Masks
public import Attention.Proof.Maximum
public import Attention.Proof.Online
public import Attention.Proof.OnlineAttention
public import Attention.Proof.OnlineInvariant
public import Attention.Proof.Schedule
public import Attention.Proof.ScoreMods
public import Attention.Proof.Segments
public import Attention.Proof.Sink
public import Attention.Proof.Softcap
public import Attention.Proof.Softmax
public import Attention.Proof.Tanh
public import Attention.Proof.TileBounds
public import Attention.Proof.Visible
public import Attention.Spec.Attention
public import Attention.Spec.Flash
public import Attention.Spec.Masks
public import Attention.Spec.Maximum
public import Attention.Spec.Online
public import Attention.Spec.Schedule
public import Attention.Spec.ScoreMods
public import Attention.Spec.Sink
public import Attention.Spec.Softmax
public import Attention.Spec.TileBounds
public import Attention.Twins.Flash
public import Attention.Twins.Masks
public import Attention.Twins.Online
public import Attention.Twins.ScoreMods
public import Attention.Twins.Softmax
public import Attention.Twins.TileBounds
public import Attention.Vectors.Main
public import Attention.Vectors.Sound

/-! # Attention: softmax, online softmax and FlashAttention, formalised -/
