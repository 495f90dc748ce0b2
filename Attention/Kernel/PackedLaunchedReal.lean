module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
public import Attention.Kernel.LaunchedReal
public import Attention.Kernel.PackedLaunched

public section

/-! # The other texts of the compiled forward kernel over the real numbers -/

namespace Attention.Kernel

open Spec Model

variable {d d_v num_kv_heads group : Nat} {scale : Real}

section

variable {q_len kv_len batches : Nat}
variable {Q : Vector (Vector (Matrix Real q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix Real kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix Real kv_len d_v) num_kv_heads) batches}

/-- **The texts for padded heads over the real numbers**: given scale · log₂ e, as the launcher
gives it, and taking powers of 2, they store attention with the natural exponential and this
scale. -/
theorem Padded.output_real {a : Forward.Args Real} {e : Forward.Edges} (he : e.Given a)
    (G : (problem a e).Given Q K V (scale * log2e)) {alignment : Alignment}
    (hs : a.shift = alignment.shift q_len kv_len)
    (hinj : ∀ x y : Problem.OutIndex batches (num_kv_heads * group) q_len d_v,
      (problem a e).outOffset x = (problem a e).outOffset y → x = y) :
    Fills ((problem a e).outLane q_len (num_kv_heads * group) batches)
      (fun k => @storeOut Real _ realBase2.toExp a k.1 k.2.1 k.2.2 e) (problem a e).outOffset
      fun (x : Problem.OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = .num (groupedQuery scale (fun _ => (e.mask alignment).toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have h := @Padded.output Real d d_v num_kv_heads group _ realBase2 q_len kv_len batches Q K V
    (scale * log2e) a e he G alignment hs hinj
  simp only [groupedQuery, realBase2, attention_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- And what they store as log-sum-exp is the natural one, if the literals are ln 2 and log₂ e and
`math.log` is the natural logarithm. -/
theorem Padded.logSumExp_real {a : Forward.Args Real} {e : Forward.Edges} (he : e.Given a)
    (G : (problem a e).Given Q K V (scale * log2e)) {alignment : Alignment}
    (hs : a.shift = alignment.shift q_len kv_len)
    (h₁ : a.ln2 = Real.log 2) (h₂ : a.log2e = log2e) (h₃ : a.ln = Real.log)
    (hinj : ∀ x y : Problem.LseIndex batches (num_kv_heads * group) q_len,
      (problem a e).lseOffset x = (problem a e).lseOffset y → x = y) :
    Fills ((problem a e).lseLane q_len (num_kv_heads * group) batches)
      (fun k => @storeLse Real _ realBase2.toExp a k.1 k.2 e) (problem a e).lseOffset
      fun (x : Problem.LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option Real, v = Flt.ofScore L ∧ IsLogSumExp Real L
          ((List.finRange kv_len).map (Spec.score scale (e.mask alignment).toScoreMod
            Q[x.1][x.2.1] K[x.1][kvHead x.2.1] x.2.2)) := by
  have h := @Padded.logSumExp Real d d_v num_kv_heads group _ realBase2 q_len kv_len batches Q K V
    (scale * log2e) a e he G alignment hs (h₁ ▸ Real.log_two_pos)
    (by rw [h₁, h₂, log_two_mul_log2e])
    (fun x hx => by rw [h₂, h₃]; exact exp2_log hx) hinj
  simp only [h₂, realBase2, lse_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

end

variable {n max_q_len : Nat} {q_len kv_len : Fin n → Nat} {cu_q cu_k : Nat → Nat}
variable {Q : (b : Fin n) → Vector (Matrix Real (q_len b) d) (num_kv_heads * group)}
variable {K : (b : Fin n) → Vector (Matrix Real (kv_len b) d) num_kv_heads}
variable {V : (b : Fin n) → Vector (Matrix Real (kv_len b) d_v) num_kv_heads}

/-- **The texts for packed sequences over the real numbers**: given scale · log₂ e, as the launcher
gives it, and taking powers of 2, they store each sequence's attention with the natural exponential
and this scale. -/
theorem Packed.output_real {a : Forward.Args Real} {e : Forward.Edges} (he : e.Given a)
    (G : Given a cu_q cu_k max_q_len Q K V (scale * log2e)) (alignment : Alignment)
    (hs : a.shift = 0)
    (hinj : ∀ x y : OutIndex q_len (num_kv_heads * group) d_v,
      outOffset a cu_q x = outOffset a cu_q y → x = y) :
    Fills (outLane a max_q_len (num_kv_heads * group) n)
      (fun k => @storeOut Real _ realBase2.toExp a k.1 k.2.1 k.2.2 alignment e) (outOffset a cu_q)
      fun (x : OutIndex q_len (num_kv_heads * group) d_v) v =>
        v = .num (groupedQuery scale (fun _ => (e.mask alignment).toScoreMod)
          (Q x.1) (K x.1) (V x.1))[x.2.1][x.2.2.1][x.2.2.2] := by
  have h := @Packed.output Real d d_v num_kv_heads group _ realBase2 n max_q_len q_len kv_len cu_q
    cu_k Q K V (scale * log2e) a e he G alignment hs hinj
  simp only [groupedQuery, realBase2, attention_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

/-- And what they store as log-sum-exp is the natural one, if the literals are ln 2 and log₂ e and
`math.log` is the natural logarithm. -/
theorem Packed.logSumExp_real {a : Forward.Args Real} {e : Forward.Edges} (he : e.Given a)
    (G : Given a cu_q cu_k max_q_len Q K V (scale * log2e)) (alignment : Alignment)
    (hs : a.shift = 0)
    (h₁ : a.ln2 = Real.log 2) (h₂ : a.log2e = log2e) (h₃ : a.ln = Real.log)
    (hinj : ∀ x y : LseIndex q_len (num_kv_heads * group),
      lseOffset a cu_q x = lseOffset a cu_q y → x = y) :
    Fills (lseLane a max_q_len (num_kv_heads * group) n)
      (fun k => @storeLse Real _ realBase2.toExp a k.1 k.2 alignment e) (lseOffset a cu_q)
      fun (x : LseIndex q_len (num_kv_heads * group)) v =>
        ∃ L : Option Real, v = Flt.ofScore L ∧ IsLogSumExp Real L
          ((List.finRange (kv_len x.1)).map (Spec.score scale (e.mask alignment).toScoreMod
            (Q x.1)[x.2.1] (K x.1)[kvHead x.2.1] x.2.2)) := by
  have h := @Packed.logSumExp Real d d_v num_kv_heads group _ realBase2 n max_q_len q_len kv_len
    cu_q cu_k Q K V (scale * log2e) a e he G alignment hs (h₁ ▸ Real.log_two_pos)
    (by rw [h₁, h₂, log_two_mul_log2e]) (fun x hx => by rw [h₂, h₃]; exact exp2_log hx) hinj
  simp only [h₂, realBase2, lse_base2 _ Real.log_two_pos log_two_mul_log2e] at h ⊢
  exact h

end Attention.Kernel
