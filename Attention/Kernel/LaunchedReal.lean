module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
public import Attention.Kernel.Launched
public import Attention.Model.Real.Logarithm
public import Attention.Proof.Softmax.LogSumExp

public section

/-! # The compiled forward kernel over the real numbers, with the scale that the user gave

The launcher multiplies the scale by log₂ e, and the kernel takes powers of 2. -/

namespace Attention.Kernel

open Spec Proof Lean.Grind

universe u

section Base

variable {R : Type u} [OrderedField R]

/-- The powers of 2, of the exponential and a logarithm of 2. -/
@[expose, reducible] def base2 (e : Exponential R R) {ln2 : R} (h : 0 < ln2) :
    Exponential R R where
  exp x := e.exp (ln2 * x)
  exp_add a b := by rw [Semiring.left_distrib]; exact e.exp_add _ _
  exp_pos a := e.exp_pos _
  exp_lt a b hab := e.exp_lt _ _ (OrderedRing.mul_lt_mul_of_pos_left hab h)

variable {d d_v q_len kv_len : Nat}

/-- Attention in powers of 2, with the scale times log₂ e, is attention. -/
theorem attention_base2 (e : Exponential R R) {ln2 log2e : R} (h : 0 < ln2) (hl : ln2 * log2e = 1)
    (scale : R) (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) :
    @attention R R q_len kv_len d d_v _ _ _ (scale * log2e) mask.toScoreMod _ _ _ _
        (base2 e h).toExp Q K V
      = @attention R R q_len kv_len d d_v _ _ _ scale mask.toScoreMod _ _ _ _ e.toExp Q K V := by
  refine Vector.ext fun i hi => ?_
  simp only [attention, Vec.getElem_ofFn]
  rw [attend_base (base2 e h).toExp e.toExp (ln2 := ln2) fun _ => rfl]
  congr 1
  simp only [scored, List.map_map]
  refine List.map_congr_left fun j _ => ?_
  simp only [Function.comp_apply, score, Mask.toScoreMod]
  split
  · simp only [Option.map_some, ScoredValue.mk.injEq, Option.some.injEq, and_true]
    grind
  · rfl

/-- A log-sum-exp in powers of 2, times log₂ e, is the natural one. -/
theorem lse_base2 (e : Exponential R R) {ln2 log2e : R} (h : 0 < ln2) (hl : ln2 * log2e = 1)
    (scale : R) (mask : Mask q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (x : Fin q_len) (L : Option R) :
    @IsLogSumExp R R _ _ (base2 e h).toExp (L.map (log2e * ·))
        ((List.finRange kv_len).map (score (scale * log2e) mask.toScoreMod Q K x))
      ↔ @IsLogSumExp R R _ _ e.toExp L
        ((List.finRange kv_len).map (score scale mask.toScoreMod Q K x)) := by
  have hs : (List.finRange kv_len).map (score (scale * log2e) mask.toScoreMod Q K x)
      = ((List.finRange kv_len).map (score scale mask.toScoreMod Q K x)).map
        (Option.map (log2e * ·)) := by
    rw [List.map_map]
    refine List.map_congr_left fun y _ => ?_
    simp only [Function.comp_apply, score, Mask.toScoreMod]
    split
    · simp only [Option.map_some, Option.some.injEq]
      grind
    · rfl
  have hL : (L.map (log2e * ·)).map (ln2 * ·) = L := by
    cases L with
    | none => rfl
    | some L =>
      simp only [Option.map_some, Option.some.injEq]
      grind
  rw [hs, isLogSumExp_log2e (base2 e h).toExp e.toExp hl (fun _ => rfl), hL]

end Base

open Model

/-- The powers of 2 of real numbers. -/
@[expose, reducible] noncomputable def realBase2 : Exponential Real Real :=
  base2 (inferInstance : NaturalExp Real).toExponential Real.log_two_pos

/-- log₂ e. -/
@[expose] noncomputable def log2e : Real := 1 / Real.log 2

theorem log_two_mul_log2e : Real.log 2 * log2e = 1 := by
  have := Real.log_two_pos
  rw [log2e]
  grind

/-- The natural logarithm in powers of 2. -/
theorem exp2_log {x : Real} (hx : 0 < x) : realBase2.exp (log2e * Real.log x) = x := by
  show (Exp.exp (Real.log 2 * (log2e * Real.log x)) : Real) = x
  rw [← Semiring.mul_assoc, log_two_mul_log2e, Semiring.one_mul, Real.exp_log hx]

variable {d d_v q_len kv_len batches num_kv_heads group : Nat}
variable {Q : Vector (Vector (Matrix Real q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix Real kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix Real kv_len d_v) num_kv_heads) batches} {scale : Real}

/-- **The Full text over the real numbers**: given scale · log₂ e, as the launcher gives it, and
taking powers of 2, it stores attention with the natural exponential and this scale. -/
theorem Full.output_real {a : Full.Args Real} (G : (Full.problem a).Given Q K V (scale * log2e))
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Full.problem a).outOffset x = (Full.problem a).outOffset y → x = y) :
    Fills ((Full.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => @Full.store_out_ptr Real _ realBase2.toExp a k.1 k.2.1 k.2.2)
      (Full.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = .num (groupedQuery scale (fun _ => Mask.full.toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have h := @Full.output Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G hinj
  simp only [groupedQuery, realBase2, attention_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- **The Causal text over the real numbers**: given scale · log₂ e, as the launcher gives it, and
taking powers of 2, it stores attention with the natural exponential and this scale. -/
theorem Causal.output_real {a : Causal.Args Real}
    (G : (Causal.problem a).Given Q K V (scale * log2e))
    {alignment : Alignment} {right : Nat} (hs : a.shift = alignment.shift q_len kv_len)
    (hr : a.right = right)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Causal.problem a).outOffset x = (Causal.problem a).outOffset y → x = y) :
    Fills ((Causal.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => @Causal.store_out_ptr Real _ realBase2.toExp a k.1 k.2.1 k.2.2)
      (Causal.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = .num (groupedQuery scale (fun _ => (Mask.window alignment none (some right)).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have h := @Causal.output Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G _ _ hs hr hinj
  simp only [groupedQuery, realBase2, attention_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- **The Left text over the real numbers**: given scale · log₂ e, as the launcher gives it, and
taking powers of 2, it stores attention with the natural exponential and this scale. -/
theorem Left.output_real {a : Left.Args Real}
    (G : (Left.problem a).Given Q K V (scale * log2e))
    {alignment : Alignment} {left : Nat} (hs : a.shift = alignment.shift q_len kv_len)
    (hl : a.left = left)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Left.problem a).outOffset x = (Left.problem a).outOffset y → x = y) :
    Fills ((Left.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => @Left.store_out_ptr Real _ realBase2.toExp a k.1 k.2.1 k.2.2)
      (Left.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = .num (groupedQuery scale (fun _ => (Mask.window alignment (some left) none).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have h := @Left.output Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G _ _ hs hl hinj
  simp only [groupedQuery, realBase2, attention_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- **The Window text over the real numbers**: given scale · log₂ e, as the launcher gives it, and
taking powers of 2, it stores attention with the natural exponential and this scale. -/
theorem Window.output_real {a : Window.Args Real}
    (G : (Window.problem a).Given Q K V (scale * log2e))
    {alignment : Alignment} {left right : Nat} (hs : a.shift = alignment.shift q_len kv_len)
    (hl : a.left = left) (hr : a.right = right)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (Window.problem a).outOffset x = (Window.problem a).outOffset y → x = y) :
    Fills ((Window.problem a).outLane q_len (num_kv_heads * group) batches)
      (fun k => @Window.store_out_ptr Real _ realBase2.toExp a k.1 k.2.1 k.2.2)
      (Window.problem a).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = .num (groupedQuery scale
          (fun _ => (Mask.window alignment (some left) (some right)).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have h := @Window.output Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G _ _ _ hs hl hr hinj
  simp only [groupedQuery, realBase2, attention_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- And what it stores as log-sum-exp is the natural one, if the literals are ln 2 and log₂ e and
`math.log` is the natural logarithm. -/
theorem Full.logSumExp_real {a : Full.Args Real} (G : (Full.problem a).Given Q K V (scale * log2e))
    (h₁ : a.ln2 = Real.log 2) (h₂ : a.log2e = log2e) (h₃ : a.ln = Real.log)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Full.problem a).lseOffset x = (Full.problem a).lseOffset y → x = y) :
    Fills ((Full.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => @Full.store_lse_ptr Real _ realBase2.toExp a k.1 k.2) (Full.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option Real, v = Flt.ofScore L ∧ IsLogSumExp Real L
          ((List.finRange kv_len).map (Spec.score scale Mask.full.toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have h := @Full.logSumExp Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G (h₁ ▸ Real.log_two_pos) (by rw [h₁, h₂, log_two_mul_log2e])
    (fun x hx => by rw [h₂, h₃]; exact exp2_log hx) hinj
  simp only [h₂, realBase2, lse_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- And what it stores as log-sum-exp is the natural one, if the literals are ln 2 and log₂ e and
`math.log` is the natural logarithm. -/
theorem Causal.logSumExp_real {a : Causal.Args Real}
    (G : (Causal.problem a).Given Q K V (scale * log2e))
    {alignment : Alignment} {right : Nat} (hs : a.shift = alignment.shift q_len kv_len)
    (hr : a.right = right)
    (h₁ : a.ln2 = Real.log 2) (h₂ : a.log2e = log2e) (h₃ : a.ln = Real.log)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Causal.problem a).lseOffset x = (Causal.problem a).lseOffset y → x = y) :
    Fills ((Causal.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => @Causal.store_lse_ptr Real _ realBase2.toExp a k.1 k.2) (Causal.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option Real, v = Flt.ofScore L ∧ IsLogSumExp Real L
          ((List.finRange kv_len).map (Spec.score scale
            (Mask.window alignment none (some right)).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have h := @Causal.logSumExp Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G _ _ hs hr (h₁ ▸ Real.log_two_pos) (by rw [h₁, h₂, log_two_mul_log2e])
    (fun x hx => by rw [h₂, h₃]; exact exp2_log hx) hinj
  simp only [h₂, realBase2, lse_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- And what it stores as log-sum-exp is the natural one, if the literals are ln 2 and log₂ e and
`math.log` is the natural logarithm. -/
theorem Left.logSumExp_real {a : Left.Args Real}
    (G : (Left.problem a).Given Q K V (scale * log2e))
    {alignment : Alignment} {left : Nat} (hs : a.shift = alignment.shift q_len kv_len)
    (hl : a.left = left)
    (h₁ : a.ln2 = Real.log 2) (h₂ : a.log2e = log2e) (h₃ : a.ln = Real.log)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Left.problem a).lseOffset x = (Left.problem a).lseOffset y → x = y) :
    Fills ((Left.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => @Left.store_lse_ptr Real _ realBase2.toExp a k.1 k.2) (Left.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option Real, v = Flt.ofScore L ∧ IsLogSumExp Real L
          ((List.finRange kv_len).map (Spec.score scale
            (Mask.window alignment (some left) none).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have h := @Left.logSumExp Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G _ _ hs hl (h₁ ▸ Real.log_two_pos) (by rw [h₁, h₂, log_two_mul_log2e])
    (fun x hx => by rw [h₂, h₃]; exact exp2_log hx) hinj
  simp only [h₂, realBase2, lse_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- And what it stores as log-sum-exp is the natural one, if the literals are ln 2 and log₂ e and
`math.log` is the natural logarithm. -/
theorem Window.logSumExp_real {a : Window.Args Real}
    (G : (Window.problem a).Given Q K V (scale * log2e))
    {alignment : Alignment} {left right : Nat} (hs : a.shift = alignment.shift q_len kv_len)
    (hl : a.left = left) (hr : a.right = right)
    (h₁ : a.ln2 = Real.log 2) (h₂ : a.log2e = log2e) (h₃ : a.ln = Real.log)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (Window.problem a).lseOffset x = (Window.problem a).lseOffset y → x = y) :
    Fills ((Window.problem a).lseLane q_len (num_kv_heads * group) batches)
      (fun k => @Window.store_lse_ptr Real _ realBase2.toExp a k.1 k.2) (Window.problem a).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option Real, v = Flt.ofScore L ∧ IsLogSumExp Real L
          ((List.finRange kv_len).map (Spec.score scale
            (Mask.window alignment (some left) (some right)).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have h := @Window.logSumExp Real d d_v q_len kv_len batches num_kv_heads group _ realBase2 Q K V
    (scale * log2e) a G _ _ _ hs hl hr (h₁ ▸ Real.log_two_pos) (by rw [h₁, h₂, log_two_mul_log2e])
    (fun x hx => by rw [h₂, h₃]; exact exp2_log hx) hinj
  simp only [h₂, realBase2, lse_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

end Attention.Kernel
