module

public import Attention.Kernel.Forward
public import Attention.Kernel.Generated.Causal
public import Attention.Kernel.Generated.Full
public import Attention.Kernel.Generated.Window

public section

/-! # The texts of the forward kernel compute what `Problem` says

By unfolding; where Triton has folded a constant, such as 0 / n, by that. -/

namespace Attention.Kernel

open Flt

universe u

variable {R : Type u}

/-- What the text with no window is given. -/
@[expose] def Full.problem (a : Full.Args R) : Problem R where
  query := a.query_ptr; key := a.key_ptr; value := a.value_ptr
  qb := a.stride_qb; qh := a.stride_qh; qm := a.stride_qm
  kb := a.stride_kb; kh := a.stride_kh; kn := a.stride_kn
  vb := a.stride_vb; vh := a.stride_vh; vn := a.stride_vn
  ob := a.stride_ob; oh := a.stride_oh; om := a.stride_om
  lb := a.stride_lb; lh := a.stride_lh
  heads := a.num_heads; group := a.group; qLen := a.q_len; kvLen := a.kv_len
  dim := a.head_dim; valueDim := a.value_dim; scale := a.scale
  left := none; right := none; shift := a.shift; even := true
  BM := a.BLOCK_M; BN := a.BLOCK_N; BD := a.BLOCK_D; ln2 := a.ln2; ln := a.ln

/-- What the text with a right edge: causal, or a window that is open on the left is given. -/
@[expose] def Causal.problem (a : Causal.Args R) : Problem R where
  query := a.query_ptr; key := a.key_ptr; value := a.value_ptr
  qb := a.stride_qb; qh := a.stride_qh; qm := a.stride_qm
  kb := a.stride_kb; kh := a.stride_kh; kn := a.stride_kn
  vb := a.stride_vb; vh := a.stride_vh; vn := a.stride_vn
  ob := a.stride_ob; oh := a.stride_oh; om := a.stride_om
  lb := a.stride_lb; lh := a.stride_lh
  heads := a.num_heads; group := a.group; qLen := a.q_len; kvLen := a.kv_len
  dim := a.head_dim; valueDim := a.value_dim; scale := a.scale
  left := none; right := some a.right; shift := a.shift; even := true
  BM := a.BLOCK_M; BN := a.BLOCK_N; BD := a.BLOCK_D; ln2 := a.ln2; ln := a.ln

/-- What the text with a window is given. -/
@[expose] def Window.problem (a : Window.Args R) : Problem R where
  query := a.query_ptr; key := a.key_ptr; value := a.value_ptr
  qb := a.stride_qb; qh := a.stride_qh; qm := a.stride_qm
  kb := a.stride_kb; kh := a.stride_kh; kn := a.stride_kn
  vb := a.stride_vb; vh := a.stride_vh; vn := a.stride_vn
  ob := a.stride_ob; oh := a.stride_oh; om := a.stride_om
  lb := a.stride_lb; lh := a.stride_lh
  heads := a.num_heads; group := a.group; qLen := a.q_len; kvLen := a.kv_len
  dim := a.head_dim; valueDim := a.value_dim; scale := a.scale
  left := some a.left; right := some a.right; shift := a.shift; even := true
  BM := a.BLOCK_M; BN := a.BLOCK_N; BD := a.BLOCK_D; ln2 := a.ln2; ln := a.ln

theorem Full.first_eq (a : Full.Args R) (pid : Int) : (Full.problem a).first pid = 0 := by
  simp [Problem.first, Problem.firstKey, Full.problem]

theorem Full.wholeFirst_eq (a : Full.Args R) (pid : Int) :
    (Full.problem a).wholeFirst pid = Full.loop1.firstTile a pid := by
  rw [Problem.wholeFirst, Full.first_eq, Int.min_comm]
  rfl

theorem Full.wholeStop_eq (a : Full.Args R) (pid : Int) :
    (Full.problem a).wholeStop pid = Full.loop1.stopTile a pid := by
  rw [Problem.wholeStop, Full.wholeFirst_eq]
  rfl

theorem Causal.first_eq (a : Causal.Args R) (pid : Int) : (Causal.problem a).first pid = 0 := by
  simp [Problem.first, Problem.firstKey, Causal.problem]

theorem Causal.wholeFirst_eq (a : Causal.Args R) (pid : Int) :
    (Causal.problem a).wholeFirst pid = Causal.loop1.firstTile a pid := by
  rw [Problem.wholeFirst, Causal.first_eq, Int.min_comm]
  rfl

theorem Causal.wholeStop_eq (a : Causal.Args R) (pid : Int) :
    (Causal.problem a).wholeStop pid = Causal.loop1.stopTile a pid := by
  rw [Problem.wholeStop, Causal.wholeFirst_eq]
  rfl

private theorem forRange_congr {σ : Type u} {lo lo' hi hi' : Int} {body body' : Int → σ → σ}
    {init init' : σ} (h₁ : lo = lo') (h₂ : hi = hi') (h₃ : ∀ t s, body t s = body' t s)
    (h₄ : init = init') : forRange lo hi body init = forRange lo' hi' body' init' := by
  rw [h₁, h₂, funext fun t => funext (h₃ t), h₄]

variable [OrderedField R] [Exp R R]

theorem Full.result_eq (a : Full.Args R) (pid : Int) :
    (Full.problem a).result pid = Full.loop2.result a pid :=
  forRange_congr (Full.wholeStop_eq a pid) rfl (fun _ _ => rfl)
    (forRange_congr (Full.wholeFirst_eq a pid) (Full.wholeStop_eq a pid) (fun _ _ => rfl) rfl)

/-- The text's stores of output. -/
theorem Full.storeOut_eq (a : Full.Args R) (pid : Int) (i c : Nat) :
    Full.store_out_ptr a pid i c = (Full.problem a).storeOut pid i c := by
  rw [Problem.storeOut, Full.result_eq]
  rfl

/-- The text's stores of log-sum-exps. -/
theorem Full.storeLse_eq (a : Full.Args R) (pid : Int) (i : Nat) :
    Full.store_lse_ptr a pid i = (Full.problem a).storeLse pid i := by
  rw [Problem.storeLse, Full.result_eq]
  rfl

theorem Causal.result_eq (a : Causal.Args R) (pid : Int) :
    (Causal.problem a).result pid = Causal.loop2.result a pid :=
  forRange_congr (Causal.wholeStop_eq a pid) rfl (fun _ _ => rfl)
    (forRange_congr (Causal.wholeFirst_eq a pid) (Causal.wholeStop_eq a pid) (fun _ _ => rfl) rfl)

/-- The text's stores of output. -/
theorem Causal.storeOut_eq (a : Causal.Args R) (pid : Int) (i c : Nat) :
    Causal.store_out_ptr a pid i c = (Causal.problem a).storeOut pid i c := by
  rw [Problem.storeOut, Causal.result_eq]
  rfl

/-- The text's stores of log-sum-exps. -/
theorem Causal.storeLse_eq (a : Causal.Args R) (pid : Int) (i : Nat) :
    Causal.store_lse_ptr a pid i = (Causal.problem a).storeLse pid i := by
  rw [Problem.storeLse, Causal.result_eq]
  rfl

theorem Window.result_eq (a : Window.Args R) (pid : Int) :
    (Window.problem a).result pid = Window.loop3.result a pid := by
  have h : forRange ((Window.problem a).first pid) ((Window.problem a).wholeFirst pid)
      (fun t => (Window.problem a).checkedBody pid t) Problem.init
        = forRange (Window.loop1.firstTile a pid) (Window.loop1.stopTile a pid)
          (Window.loop1.body a pid) (Window.loop1.start a pid) :=
    forRange_congr rfl rfl (fun _ _ => rfl) rfl
  exact forRange_congr rfl rfl (fun _ _ => rfl) (forRange_congr rfl rfl (fun _ _ => rfl) h)

/-- The text's stores of output. -/
theorem Window.storeOut_eq (a : Window.Args R) (pid : Int) (i c : Nat) :
    Window.store_out_ptr a pid i c = (Window.problem a).storeOut pid i c := by
  rw [Problem.storeOut, Window.result_eq]
  rfl

/-- The text's stores of log-sum-exps. -/
theorem Window.storeLse_eq (a : Window.Args R) (pid : Int) (i : Nat) :
    Window.store_lse_ptr a pid i = (Window.problem a).storeLse pid i := by
  rw [Problem.storeLse, Window.result_eq]
  rfl

end Attention.Kernel
