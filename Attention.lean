module

public import Attention.Algebra.Block
public import Attention.Algebra.Exponential
public import Attention.Algebra.Ordered
public import Attention.Algebra.Sum
public import Attention.Algebra.Vector
public import Attention.Model.Exact
public import Attention.Proof.Attention
public import Attention.Proof.Cache
public import Attention.Proof.CacheInvariant
public import Attention.Proof.CuSeqlens
public import Attention.Proof.Flash
public import Attention.Proof.Heads
public import Attention.Proof.Maximum
public import Attention.Proof.Online
public import Attention.Proof.OnlineAttention
public import Attention.Proof.OnlineInvariant
public import Attention.Proof.Padding
public import Attention.Proof.Paged
public import Attention.Proof.Rows
public import Attention.Proof.Softmax
public import Attention.Proof.Varlen
public import Attention.Spec.Attention
public import Attention.Spec.Cache
public import Attention.Spec.Flash
public import Attention.Spec.Heads
public import Attention.Spec.Maximum
public import Attention.Spec.Online
public import Attention.Spec.Padding
public import Attention.Spec.Paged
public import Attention.Spec.Rows
public import Attention.Spec.Softmax
public import Attention.Spec.Varlen
public import Attention.Twins.Cache
public import Attention.Twins.Flash
public import Attention.Twins.Heads
public import Attention.Twins.Online
public import Attention.Twins.Padding
public import Attention.Twins.Softmax
public import Attention.Twins.Varlen
public import Attention.Vectors.Main
public import Attention.Vectors.Sound

/-! # Attention: softmax, online softmax and FlashAttention, formalised -/
