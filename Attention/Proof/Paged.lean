module

public import Attention.Spec.Paged
public import Attention.Proof.OnlineAttention
public import Attention.Proof.Rows

public section

/-! # A cache in pages gives the same attention -/

namespace Attention.Proof

open Spec Spec.Online

universe u v w

end Attention.Proof
