module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
public import Attention.Kernel.Launch
public import Attention.Kernel.Texts
public import Attention.Proof.Masks.Basic

public section

/-! # The forward kernel is attention

About the text that Triton compiles and launches, translated by `bridge/ttir/lean.py` to
`Attention.Kernel.Generated`, for dense tensors whose sizes of heads and values fill their tiles,
without mask, bias, ALiBi, softcap, sinks and dropout; `Attention.Kernel.PackedLaunched` has the
others. `Given` has the hypotheses, `Attention.Kernel.Ops` the meaning of an operation: numbers
without rounding for floats, so the 16-bit texts, which differ in conversions only, are the same.
The values are numbers, for all sizes, tile sizes and strides; with `Ops`' meaning of `exp2` none of
them needed its value above 0. -/

namespace Attention.Kernel

open Spec Flt

universe u

variable {R : Type u} {d d_v q_len kv_len batches num_kv_heads group : Nat}

/-- The kernel's window is the Spec's. -/
theorem Problem.mask_eq_window {p : Problem R} {alignment : Alignment} {left right : Option Nat}
    (hs : p.shift = alignment.shift q_len kv_len) (hl : p.left = left.map Int.ofNat)
    (hr : p.right = right.map Int.ofNat) :
    (p.mask : Mask q_len kv_len) = Mask.window alignment left right := by
  funext x y
  simp only [Problem.mask, Mask.window, hs, hl, hr]
  cases left <;> cases right <;> rfl

variable [OrderedField R] [Exponential R R]
variable {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches} {sc : R}

/-- **The forward kernel's output is attention** where every query sees every key: a launch
stores each element of grouped-query attention by exactly one lane of one program, and nothing
else. -/
theorem Full.output {a : Full.Args R} (G : (Full.problem a).Given Q K V sc)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Full.problem a).outOffset x = (Full.problem a).outOffset y → x = y) :
    Fills ((Full.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => Full.store_out_ptr a k.1 k.2.1 k.2.2) (Full.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = num (groupedQuery sc (fun _ => Mask.full.toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have e : ((Full.problem a).mask : Mask q_len kv_len) = Mask.full := rfl
  simp only [Full.storeOut_eq, ← e]
  exact G.output hinj

/-- **The forward kernel's log-sum-exp is that of the scores** where every query sees every key: a
launch stores −∞ or a number L for each query by exactly one lane of one program, and nothing else.
L · log₂ e has the scores' sum of powers of 2 for its own, so it is the natural log-sum-exp of the
scores times ln 2. Of the logarithm nothing is used but 2 ^ (log₂ e · ln x) = x. -/
theorem Full.logSumExp {a : Full.Args R} (G : (Full.problem a).Given Q K V sc)
    (h₂ : 0 < a.ln2) (h : a.ln2 * a.log2e = 1)
    (hln : ∀ x, 0 < x → (exp (a.log2e * a.ln x) : R) = x)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Full.problem a).lseOffset x = (Full.problem a).lseOffset y → x = y) :
    Fills ((Full.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => Full.store_lse_ptr a k.1 k.2) (Full.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (a.log2e * ·))
          ((List.finRange kv_len).map (Spec.score sc Mask.full.toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have e : ((Full.problem a).mask : Mask q_len kv_len) = Mask.full := rfl
  simp only [Full.storeLse_eq, ← e]
  exact G.logSumExp h₂ h hln hinj

/-- **The forward kernel's output is attention** where a query sees the keys up to `right`
past its place, in either alignment: a launch stores each element of grouped-query attention by
exactly one lane of one program, and nothing else. -/
theorem Causal.output {a : Causal.Args R} (G : (Causal.problem a).Given Q K V sc)
    {alignment : Alignment} {right : Nat}
    (hs : a.shift = alignment.shift q_len kv_len) (hr : a.right = right)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Causal.problem a).outOffset x = (Causal.problem a).outOffset y → x = y) :
    Fills ((Causal.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => Causal.store_out_ptr a k.1 k.2.1 k.2.2) (Causal.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = num (groupedQuery sc (fun _ => (Mask.window alignment none (some right)).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have e : ((Causal.problem a).mask : Mask q_len kv_len)
      = Mask.window alignment none (some right) :=
    Problem.mask_eq_window hs rfl (congrArg some hr)
  simp only [Causal.storeOut_eq, ← e]
  exact G.output hinj

/-- **The forward kernel's log-sum-exp is that of the scores** where a query sees the keys
up to `right` past its place, in either alignment: a launch stores −∞ or a number L for each query
by exactly one lane of one program, and nothing else.
L · log₂ e has the scores' sum of powers of 2 for its own, so it is the natural log-sum-exp of the
scores times ln 2. Of the logarithm nothing is used but 2 ^ (log₂ e · ln x) = x. -/
theorem Causal.logSumExp {a : Causal.Args R} (G : (Causal.problem a).Given Q K V sc)
    {alignment : Alignment} {right : Nat}
    (hs : a.shift = alignment.shift q_len kv_len) (hr : a.right = right)
    (h₂ : 0 < a.ln2) (h : a.ln2 * a.log2e = 1)
    (hln : ∀ x, 0 < x → (exp (a.log2e * a.ln x) : R) = x)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Causal.problem a).lseOffset x = (Causal.problem a).lseOffset y → x = y) :
    Fills ((Causal.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => Causal.store_lse_ptr a k.1 k.2) (Causal.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (a.log2e * ·))
          ((List.finRange kv_len).map (Spec.score sc
            (Mask.window alignment none (some right)).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have e : ((Causal.problem a).mask : Mask q_len kv_len)
      = Mask.window alignment none (some right) :=
    Problem.mask_eq_window hs rfl (congrArg some hr)
  simp only [Causal.storeLse_eq, ← e]
  exact G.logSumExp h₂ h hln hinj

/-- **The forward kernel's output is attention** where a query sees the keys from `left`
before its place on, in either alignment: a launch stores each element of grouped-query attention by
exactly one lane of one program, and nothing else. -/
theorem Left.output {a : Left.Args R} (G : (Left.problem a).Given Q K V sc)
    {alignment : Alignment} {left : Nat}
    (hs : a.shift = alignment.shift q_len kv_len) (hl : a.left = left)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Left.problem a).outOffset x = (Left.problem a).outOffset y → x = y) :
    Fills ((Left.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => Left.store_out_ptr a k.1 k.2.1 k.2.2) (Left.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = num (groupedQuery sc (fun _ => (Mask.window alignment (some left) none).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have e : ((Left.problem a).mask : Mask q_len kv_len)
      = Mask.window alignment (some left) none :=
    Problem.mask_eq_window hs (congrArg some hl) rfl
  simp only [Left.storeOut_eq, ← e]
  exact G.output hinj

/-- **The forward kernel's log-sum-exp is that of the scores** where a query sees the keys from
`left` before its place on, in either alignment: a launch stores −∞ or a number L for each query by
exactly one lane of one program, and nothing else.
L · log₂ e has the scores' sum of powers of 2 for its own, so it is the natural log-sum-exp of the
scores times ln 2. Of the logarithm nothing is used but 2 ^ (log₂ e · ln x) = x. -/
theorem Left.logSumExp {a : Left.Args R} (G : (Left.problem a).Given Q K V sc)
    {alignment : Alignment} {left : Nat}
    (hs : a.shift = alignment.shift q_len kv_len) (hl : a.left = left)
    (h₂ : 0 < a.ln2) (h : a.ln2 * a.log2e = 1)
    (hln : ∀ x, 0 < x → (exp (a.log2e * a.ln x) : R) = x)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Left.problem a).lseOffset x = (Left.problem a).lseOffset y → x = y) :
    Fills ((Left.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => Left.store_lse_ptr a k.1 k.2) (Left.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (a.log2e * ·))
          ((List.finRange kv_len).map (Spec.score sc
            (Mask.window alignment (some left) none).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have e : ((Left.problem a).mask : Mask q_len kv_len)
      = Mask.window alignment (some left) none :=
    Problem.mask_eq_window hs (congrArg some hl) rfl
  simp only [Left.storeLse_eq, ← e]
  exact G.logSumExp h₂ h hln hinj

/-- **The forward kernel's output is attention** where a query sees the keys of a window, in
either alignment: a launch stores each element of grouped-query attention by exactly one lane of
one program, and nothing else. -/
theorem Window.output {a : Window.Args R} (G : (Window.problem a).Given Q K V sc)
    {alignment : Alignment} {left right : Nat}
    (hs : a.shift = alignment.shift q_len kv_len) (hl : a.left = left) (hr : a.right = right)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Window.problem a).outOffset x = (Window.problem a).outOffset y → x = y) :
    Fills ((Window.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => Window.store_out_ptr a k.1 k.2.1 k.2.2) (Window.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = num (groupedQuery sc
          (fun _ => (Mask.window alignment (some left) (some right)).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have e : ((Window.problem a).mask : Mask q_len kv_len)
      = Mask.window alignment (some left) (some right) :=
    Problem.mask_eq_window hs (congrArg some hl) (congrArg some hr)
  simp only [Window.storeOut_eq, ← e]
  exact G.output hinj

/-- **The forward kernel's log-sum-exp is that of the scores** where a query sees the keys
of a window, in either alignment: a launch stores −∞ or a number L for each query by exactly one
lane of one program, and nothing else.
L · log₂ e has the scores' sum of powers of 2 for its own, so it is the natural log-sum-exp of the
scores times ln 2. Of the logarithm nothing is used but 2 ^ (log₂ e · ln x) = x. -/
theorem Window.logSumExp {a : Window.Args R} (G : (Window.problem a).Given Q K V sc)
    {alignment : Alignment} {left right : Nat}
    (hs : a.shift = alignment.shift q_len kv_len) (hl : a.left = left) (hr : a.right = right)
    (h₂ : 0 < a.ln2) (h : a.ln2 * a.log2e = 1)
    (hln : ∀ x, 0 < x → (exp (a.log2e * a.ln x) : R) = x)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Window.problem a).lseOffset x = (Window.problem a).lseOffset y → x = y) :
    Fills ((Window.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => Window.store_lse_ptr a k.1 k.2) (Window.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (a.log2e * ·))
          ((List.finRange kv_len).map (Spec.score sc
            (Mask.window alignment (some left) (some right)).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have e : ((Window.problem a).mask : Mask q_len kv_len)
      = Mask.window alignment (some left) (some right) :=
    Problem.mask_eq_window hs (congrArg some hl) (congrArg some hr)
  simp only [Window.storeLse_eq, ← e]
  exact G.logSumExp h₂ h hln hinj

end Attention.Kernel
