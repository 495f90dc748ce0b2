module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
public import Attention.Kernel.Launched
public import Attention.Kernel.PackedLaunch

public section

/-! # The forward kernel is attention, in its other texts

Those for packed sequences, and those for sizes of heads and values that do not fill their tiles.
As in `Attention.Kernel.Launched`; a theorem here is about several texts, of which the window says
which one is launched. -/

namespace Attention.Kernel

open Spec Flt

universe u

/-- The edges of the windows that there are texts for. -/
inductive Forward.Edges where
  /-- None. -/
  | full
  /-- A right edge: causal for 0. -/
  | causal (right : Nat)
  /-- Both. -/
  | window (left right : Nat)

namespace Forward.Edges

/-- How far a query sees to the left. -/
@[expose] def leftEdge : Edges → Option Nat
  | window left _ => some left
  | _ => none

/-- How far a query sees to the right. -/
@[expose] def rightEdge : Edges → Option Nat
  | full => none
  | causal right => some right
  | window _ right => some right

/-- The mask with these edges. -/
abbrev mask {q_len kv_len : Nat} (e : Edges) (alignment : Alignment) : Mask q_len kv_len :=
  Mask.window alignment e.leftEdge e.rightEdge

/-- The kernel is given the edges. -/
@[expose] def Given {R : Type u} (a : Forward.Args R) : Edges → Prop
  | full => True
  | causal right => a.right = right
  | window left right => a.left = left ∧ a.right = right

end Forward.Edges

variable {R : Type u} {d d_v num_kv_heads group : Nat} [OrderedField R]

omit [OrderedField R] in
private theorem mask_eq {q_len kv_len : Nat} {p : Problem R} {alignment : Alignment}
    {e : Forward.Edges} (hs : p.shift = alignment.shift q_len kv_len)
    (hl : p.left = e.leftEdge.map Int.ofNat) (hr : p.right = e.rightEdge.map Int.ofNat) :
    (p.mask : Mask q_len kv_len) = e.mask alignment :=
  Problem.mask_eq_window hs hl hr

/-! ## Packed sequences -/

namespace Packed

variable [Exp R R]

/-- The output that the text launched for this window stores. -/
@[expose] noncomputable def storeOut (a : Forward.Args R) (pid : Int) (i c : Nat) :
    Alignment → Forward.Edges → Store (Flt R)
  | _, .full => PackedFull.store_out_ptr a pid i c
  | .topLeft, .causal _ => PackedCausal.store_out_ptr a pid i c
  | .bottomRight, .causal _ => PackedCausalEnd.store_out_ptr a pid i c
  | .topLeft, .window _ _ => PackedWindow.store_out_ptr a pid i c
  | .bottomRight, .window _ _ => PackedWindowEnd.store_out_ptr a pid i c

/-- The log-sum-exp that this text stores. -/
@[expose] noncomputable def storeLse (a : Forward.Args R) (pid : Int) (i : Nat) :
    Alignment → Forward.Edges → Store (Flt R)
  | _, .full => PackedFull.store_lse_ptr a pid i
  | .topLeft, .causal _ => PackedCausal.store_lse_ptr a pid i
  | .bottomRight, .causal _ => PackedCausalEnd.store_lse_ptr a pid i
  | .topLeft, .window _ _ => PackedWindow.store_lse_ptr a pid i
  | .bottomRight, .window _ _ => PackedWindowEnd.store_lse_ptr a pid i

end Packed

/-- Whether a text for packed sequences aligns bottom-right. -/
@[expose] def Packed.atEnd : Alignment → Bool
  | .topLeft => false
  | .bottomRight => true

private theorem Packed.storeOut_eq [Exp R R] {a : Forward.Args R} {e : Forward.Edges}
    (he : e.Given a) (alignment : Alignment) (pid : Int) (i c : Nat) :
    storeOut a pid i c alignment e = (Forward.packed a (e.leftEdge.map Int.ofNat)
      (e.rightEdge.map Int.ofNat) (atEnd alignment)
      (Forward.sequence a pid)).storeOut pid i c := by
  cases e with
  | full => exact PackedFull.storeOut_eq ..
  | causal r =>
    have he : a.right = r := he
    cases alignment
    · rw [storeOut, PackedCausal.storeOut_eq, he]; rfl
    · rw [storeOut, PackedCausalEnd.storeOut_eq, he]; rfl
  | window l r =>
    obtain ⟨h₁, h₂⟩ : a.left = l ∧ a.right = r := he
    cases alignment
    · rw [storeOut, PackedWindow.storeOut_eq, h₁, h₂]; rfl
    · rw [storeOut, PackedWindowEnd.storeOut_eq, h₁, h₂]; rfl

private theorem Packed.storeLse_eq [Exp R R] {a : Forward.Args R} {e : Forward.Edges}
    (he : e.Given a) (alignment : Alignment) (pid : Int) (i : Nat) :
    storeLse a pid i alignment e = (Forward.packed a (e.leftEdge.map Int.ofNat)
      (e.rightEdge.map Int.ofNat) (atEnd alignment)
      (Forward.sequence a pid)).storeLse pid i := by
  cases e with
  | full => exact PackedFull.storeLse_eq ..
  | causal r =>
    have he : a.right = r := he
    cases alignment
    · rw [storeLse, PackedCausal.storeLse_eq, he]; rfl
    · rw [storeLse, PackedCausalEnd.storeLse_eq, he]; rfl
  | window l r =>
    obtain ⟨h₁, h₂⟩ : a.left = l ∧ a.right = r := he
    cases alignment
    · rw [storeLse, PackedWindow.storeLse_eq, h₁, h₂]; rfl
    · rw [storeLse, PackedWindowEnd.storeLse_eq, h₁, h₂]; rfl

section

variable [Exponential R R] {n max_q_len : Nat} {q_len kv_len : Fin n → Nat} {cu_q cu_k : Nat → Nat}
variable {Q : (b : Fin n) → Vector (Matrix R (q_len b) d) (num_kv_heads * group)}
variable {K : (b : Fin n) → Vector (Matrix R (kv_len b) d) num_kv_heads}
variable {V : (b : Fin n) → Vector (Matrix R (kv_len b) d_v) num_kv_heads} {sc : R}

omit [Exponential R R] in
private theorem Packed.mask_eq {a : Forward.Args R} (G : Given a cu_q cu_k max_q_len Q K V sc)
    (alignment : Alignment) (e : Forward.Edges) (hs : a.shift = 0) (b : Fin n) :
    ((Forward.packed a (e.leftEdge.map Int.ofNat) (e.rightEdge.map Int.ofNat) (atEnd alignment)
      b).mask : Mask (q_len b) (kv_len b)) = e.mask alignment := by
  have hq := G.qLen (e.leftEdge.map Int.ofNat) (e.rightEdge.map Int.ofNat) (atEnd alignment) b
  have hk := G.kvLen (e.leftEdge.map Int.ofNat) (e.rightEdge.map Int.ofNat) (atEnd alignment) b
  refine Kernel.mask_eq ?_ rfl rfl
  cases alignment
  · exact hs
  · simp only [Forward.packed, atEnd, Alignment.shift] at hq hk ⊢
    omega

/-- **The forward kernel's output is attention of each sequence** where sequences are packed,
without a window, with a right edge or with both edges, in either alignment: a launch stores each
element of grouped-query attention of a sequence's own queries and keys, at the sequence's rows, by
exactly one lane of one program, and nothing else. Sequences without queries get nothing, and
queries without a key 0. -/
theorem Packed.output {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (G : Given a cu_q cu_k max_q_len Q K V sc) (alignment : Alignment) (hs : a.shift = 0)
    (hinj : ∀ x y : OutIndex q_len (num_kv_heads * group) d_v,
      outOffset a cu_q x = outOffset a cu_q y → x = y) :
    Fills (outLane a max_q_len (num_kv_heads * group) n)
      (fun k => storeOut a k.1 k.2.1 k.2.2 alignment e) (outOffset a cu_q)
      fun (x : OutIndex q_len (num_kv_heads * group) d_v) v =>
        v = num (groupedQuery sc (fun _ => (e.mask alignment).toScoreMod)
          (Q x.1) (K x.1) (V x.1))[x.2.1][x.2.2.1][x.2.2.2] := by
  simp only [storeOut_eq he, ← mask_eq G alignment e hs]
  exact G.output _ _ _ hinj

/-- **The forward kernel's log-sum-exp is that of each sequence's scores** where sequences are
packed: a launch stores −∞ or a number L for each query of each sequence by exactly one lane of one
program, and nothing else. What L is, as in `Full.logSumExp`. -/
theorem Packed.logSumExp {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (G : Given a cu_q cu_k max_q_len Q K V sc) (alignment : Alignment) (hs : a.shift = 0)
    (h₂ : 0 < a.ln2) (h : a.ln2 * a.log2e = 1)
    (hln : ∀ x, 0 < x → (exp (a.log2e * a.ln x) : R) = x)
    (hinj : ∀ x y : LseIndex q_len (num_kv_heads * group),
      lseOffset a cu_q x = lseOffset a cu_q y → x = y) :
    Fills (lseLane a max_q_len (num_kv_heads * group) n)
      (fun k => storeLse a k.1 k.2 alignment e) (lseOffset a cu_q)
      fun (x : LseIndex q_len (num_kv_heads * group)) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (a.log2e * ·))
          ((List.finRange (kv_len x.1)).map (Spec.score sc (e.mask alignment).toScoreMod
            (Q x.1)[x.2.1] (K x.1)[kvHead x.2.1] x.2.2)) := by
  simp only [storeLse_eq he, ← mask_eq G alignment e hs]
  exact G.logSumExp _ _ _ h₂ h hln hinj

end

/-! ## Padded heads -/

namespace Padded

variable [Exp R R]

/-- The output that the text launched for a window with these edges stores. -/
@[expose] noncomputable def storeOut (a : Forward.Args R) (pid : Int) (i c : Nat) :
    Forward.Edges → Store (Flt R)
  | .full => PaddedFull.store_out_ptr a pid i c
  | .causal _ => PaddedCausal.store_out_ptr a pid i c
  | .window _ _ => PaddedWindow.store_out_ptr a pid i c

/-- The log-sum-exp that this text stores. -/
@[expose] noncomputable def storeLse (a : Forward.Args R) (pid : Int) (i : Nat) :
    Forward.Edges → Store (Flt R)
  | .full => PaddedFull.store_lse_ptr a pid i
  | .causal _ => PaddedCausal.store_lse_ptr a pid i
  | .window _ _ => PaddedWindow.store_lse_ptr a pid i

/-- The arguments of the text. -/
abbrev problem (a : Forward.Args R) (e : Forward.Edges) : Problem R :=
  Forward.dense a (e.leftEdge.map Int.ofNat) (e.rightEdge.map Int.ofNat) false

end Padded

/-- The text with its edges as they are given. -/
private theorem Padded.storeOut_eq [Exp R R] {a : Forward.Args R} {e : Forward.Edges}
    (he : e.Given a) (pid : Int) (i c : Nat) :
    storeOut a pid i c e = (problem a e).storeOut pid i c := by
  cases e with
  | full => exact PaddedFull.storeOut_eq ..
  | causal r =>
    have he : a.right = r := he
    rw [storeOut, PaddedCausal.storeOut_eq, he]; rfl
  | window l r =>
    obtain ⟨h₁, h₂⟩ : a.left = l ∧ a.right = r := he
    rw [storeOut, PaddedWindow.storeOut_eq, h₁, h₂]; rfl

private theorem Padded.storeLse_eq [Exp R R] {a : Forward.Args R} {e : Forward.Edges}
    (he : e.Given a) (pid : Int) (i : Nat) :
    storeLse a pid i e = (problem a e).storeLse pid i := by
  cases e with
  | full => exact PaddedFull.storeLse_eq ..
  | causal r =>
    have he : a.right = r := he
    rw [storeLse, PaddedCausal.storeLse_eq, he]; rfl
  | window l r =>
    obtain ⟨h₁, h₂⟩ : a.left = l ∧ a.right = r := he
    rw [storeLse, PaddedWindow.storeLse_eq, h₁, h₂]; rfl

section

variable [Exponential R R] {q_len kv_len batches : Nat}
variable {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches} {sc : R}

/-- **The forward kernel's output is attention** where heads and values are of sizes that do not
fill their tiles, without a window, with a right edge or with both edges, in either alignment: a
launch stores each element of grouped-query attention by exactly one lane of one program, and
nothing else. -/
theorem Padded.output {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (G : (problem a e).Given Q K V sc) {alignment : Alignment}
    (hs : a.shift = alignment.shift q_len kv_len)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (problem a e).outOffset x = (problem a e).outOffset y → x = y) :
    Fills ((problem a e).outLane q_len (num_kv_heads * group) batches)
      (fun k => storeOut a k.1 k.2.1 k.2.2 e) (problem a e).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = num (groupedQuery sc (fun _ => (e.mask alignment).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have h : ((problem a e).mask : Mask q_len kv_len) = e.mask alignment := mask_eq hs rfl rfl
  simp only [storeOut_eq he, ← h]
  exact G.output hinj

/-- **The forward kernel's log-sum-exp is that of the scores** where heads and values are of sizes
that do not fill their tiles: a launch stores −∞ or a number L for each query by exactly one lane of
one program, and nothing else. What L is, as in `Full.logSumExp`. -/
theorem Padded.logSumExp {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (G : (problem a e).Given Q K V sc) {alignment : Alignment}
    (hs : a.shift = alignment.shift q_len kv_len) (h₂ : 0 < a.ln2) (h : a.ln2 * a.log2e = 1)
    (hln : ∀ x, 0 < x → (exp (a.log2e * a.ln x) : R) = x)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (problem a e).lseOffset x = (problem a e).lseOffset y → x = y) :
    Fills ((problem a e).lseLane q_len (num_kv_heads * group) batches)
      (fun k => storeLse a k.1 k.2 e) (problem a e).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (a.log2e * ·))
          ((List.finRange kv_len).map (Spec.score sc (e.mask alignment).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have e : ((problem a e).mask : Mask q_len kv_len) = e.mask alignment := mask_eq hs rfl rfl
  simp only [storeLse_eq he, ← e]
  exact G.logSumExp h₂ h hln hinj

end

end Attention.Kernel
