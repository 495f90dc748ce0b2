module

public import Attention.Kernel.Forward
public import Attention.Kernel.Generated.Causal
public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.Left
public import Attention.Kernel.Generated.Window

public section

/-! # The arguments of the forward kernel's texts, each as a `Problem` -/

namespace Attention.Kernel

universe u

variable {R : Type u}

/-- The arguments of a text for dense tensors, with a window of these bounds; even: the sizes of
heads and values fill their tiles. -/
@[expose] def Forward.dense (a : Forward.Args R) (left right : Option Int) (even : Bool) :
    Problem R where
  query := a.query_ptr; key := a.key_ptr; value := a.value_ptr
  qb := a.stride_qb; qh := a.stride_qh; qm := a.stride_qm
  kb := a.stride_kb; kh := a.stride_kh; kn := a.stride_kn
  vb := a.stride_vb; vh := a.stride_vh; vn := a.stride_vn
  ob := a.stride_ob; oh := a.stride_oh; om := a.stride_om
  lb := a.stride_lb; lh := a.stride_lh
  heads := a.num_heads; group := a.group; tilesLen := a.q_len; packed := none
  qLen := a.q_len; kvLen := a.kv_len
  dim := a.head_dim; valueDim := a.value_dim; scale := a.scale
  left := left; right := right; shift := a.shift; even := even; evenValue := even
  BM := a.BLOCK_M; BN := a.BLOCK_N; BD := a.BLOCK_D; BV := a.BLOCK_V; ln2 := a.ln2; ln := a.ln

/-- The first row of a packed sequence, of `total` rows, and one past its last. -/
@[expose] def Forward.firstRow (cu : Mem Int) (stride total b : Int) : Int :=
  min (max (cu (0 + b * stride)) 0) total

@[expose, inherit_doc Forward.firstRow] def Forward.stopRow (cu : Mem Int)
    (stride total b : Int) : Int :=
  min (max (cu (0 + (b + 1) * stride)) (Forward.firstRow cu stride total b)) total

/-- The arguments of a text for packed sequences for sequence b, with a window of these bounds;
atEnd: aligned bottom-right. The sizes of heads and values fill their tiles. -/
@[expose] def Forward.packed (a : Forward.Args R) (left right : Option Int) (atEnd : Bool)
    (b : Int) : Problem R where
  query := a.query_ptr; key := a.key_ptr; value := a.value_ptr
  qb := 0; qh := a.stride_qh; qm := a.stride_qm
  kb := 0; kh := a.stride_kh; kn := a.stride_kn
  vb := 0; vh := a.stride_vh; vn := a.stride_vn
  ob := 0; oh := a.stride_oh; om := a.stride_om
  lb := 0; lh := a.stride_lh
  heads := a.num_heads; group := a.group; tilesLen := a.max_q_len
  packed := some (Forward.firstRow a.cu_q_ptr a.stride_xb a.q_len b,
    Forward.firstRow a.cu_k_ptr a.stride_yb a.kv_len b)
  qLen := Forward.stopRow a.cu_q_ptr a.stride_xb a.q_len b -
    Forward.firstRow a.cu_q_ptr a.stride_xb a.q_len b
  kvLen := Forward.stopRow a.cu_k_ptr a.stride_yb a.kv_len b -
    Forward.firstRow a.cu_k_ptr a.stride_yb a.kv_len b
  dim := a.head_dim; valueDim := a.value_dim; scale := a.scale
  left := left; right := right
  shift := match atEnd with
    | false => a.shift
    | true => a.shift + (Forward.stopRow a.cu_k_ptr a.stride_yb a.kv_len b -
        Forward.firstRow a.cu_k_ptr a.stride_yb a.kv_len b) -
      (Forward.stopRow a.cu_q_ptr a.stride_xb a.q_len b -
        Forward.firstRow a.cu_q_ptr a.stride_xb a.q_len b)
  even := true; evenValue := true
  BM := a.BLOCK_M; BN := a.BLOCK_N; BD := a.BLOCK_D; BV := a.BLOCK_V; ln2 := a.ln2; ln := a.ln

/-- The sequence of program `pid`. -/
@[expose] def Forward.sequence (a : Forward.Args R) (pid : Int) : Int :=
  Int.tdiv (Int.tdiv pid (Int.tdiv (a.max_q_len + (a.BLOCK_M - 1 : Int)) a.BLOCK_M)) a.num_heads

/-- The arguments of a text for packed sequences, for the sequence of program `pid`. -/
abbrev Forward.inSequence (a : Forward.Args R) (left right : Option Int) (atEnd : Bool)
    (pid : Int) : Problem R :=
  Forward.packed a left right atEnd (Forward.sequence a pid)

/-- The arguments of the text without a window. -/
abbrev Full.problem (a : Full.Args R) : Problem R := Forward.dense a none none true

/-- The arguments of the text with a right edge (causal, or a window that is open on the left). -/
abbrev Causal.problem (a : Causal.Args R) : Problem R := Forward.dense a none (some a.right) true

/-- The arguments of the text with a left edge. -/
abbrev Left.problem (a : Left.Args R) : Problem R := Forward.dense a (some a.left) none true

/-- The arguments of the text with a window. -/
abbrev Window.problem (a : Window.Args R) : Problem R :=
  Forward.dense a (some a.left) (some a.right) true

end Attention.Kernel
