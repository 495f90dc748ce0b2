module

public import Attention.Kernel.Ops

public section

/-! # What the texts of the forward kernel are given

Written by `python -m bridge translate --kernels`; not edited. -/

namespace Attention.Kernel

universe u

/-- The arguments of the kernel's texts, each of which has some of them; of a pointer what lies
behind it. The numbers that literals stand for and the tile sizes are among them. -/
structure Forward.Args (R : Type u) where
  query_ptr : Mem (Flt R)
  key_ptr : Mem (Flt R)
  value_ptr : Mem (Flt R)
  cu_q_ptr : Mem Int
  cu_k_ptr : Mem Int
  out_ptr : Mem (Flt R)
  lse_ptr : Mem (Flt R)
  stride_qb : Int
  stride_qh : Int
  stride_qm : Int
  stride_kb : Int
  stride_kh : Int
  stride_kn : Int
  stride_vb : Int
  stride_vh : Int
  stride_vn : Int
  stride_xb : Int
  stride_yb : Int
  stride_ob : Int
  stride_oh : Int
  stride_om : Int
  stride_lb : Int
  stride_lh : Int
  num_heads : Int
  group : Int
  q_len : Int
  kv_len : Int
  max_q_len : Int
  head_dim : Int
  value_dim : Int
  scale : Flt R
  left : Int
  right : Int
  shift : Int
  ln2 : R
  log2e : R
  ln : R → R
  BLOCK_M : Nat
  BLOCK_N : Nat
  BLOCK_D : Nat
  BLOCK_V : Nat

/-- One thing for each pointer. -/
structure Forward.Pointers (α : Type u) where
  query_ptr : α
  key_ptr : α
  value_ptr : α
  cu_q_ptr : α
  cu_k_ptr : α
  out_ptr : α
  lse_ptr : α

end Attention.Kernel
