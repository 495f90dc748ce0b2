module

public import Attention.Algebra.Exponential
public import Attention.Algebra.Ordered
public import Attention.Algebra.Sum
public import Attention.Algebra.Vector
public import Attention.Model.Exact
public import Attention.Model.ExpSound
public import Attention.Model.Interval
public import Attention.Model.IntervalSound
public import Attention.Proof.Attention
public import Attention.Proof.Enclosure
public import Attention.Proof.Combine
public import Attention.Proof.Flash
public import Attention.Proof.LogSumExp
public import Attention.Proof.Maximum
public import Attention.Proof.Merge
public import Attention.Proof.Online
public import Attention.Proof.OnlineAttention
public import Attention.Proof.OnlineInvariant
public import Attention.Proof.Ring
public import Attention.Proof.Softmax
public import Attention.Proof.Stability
public import Attention.Spec.Attention
public import Attention.Spec.Combine
public import Attention.Spec.Flash
public import Attention.Spec.LogSumExp
public import Attention.Spec.Maximum
public import Attention.Spec.Merge
public import Attention.Spec.Online
public import Attention.Spec.Ring
public import Attention.Spec.Softmax
public import Attention.Twins.Combine
public import Attention.Twins.Flash
public import Attention.Twins.LogSumExp
public import Attention.Twins.Merge
public import Attention.Twins.Online
public import Attention.Twins.Ring
public import Attention.Twins.Softmax
public import Attention.Twins.Stability
public import Attention.Vectors.Main
public import Attention.Vectors.Natural
public import Attention.Vectors.NaturalFamilies
public import Attention.Vectors.Sound

/-! # Attention: softmax, online softmax and FlashAttention, formalised -/
