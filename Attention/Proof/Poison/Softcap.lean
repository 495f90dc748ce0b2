module

public import Attention.Proof.Poison.Forward
public import Attention.Spec.SafeSoftcap

public section

/-! # Softcap meets no poison, where tanh takes the exponential of −2|x| -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u

variable {R : Type u} [OrderedField R] [Exponential R R]

/-- The tangent by exp (−2|x|) is the tangent. -/
theorem safeTanh_eq_tanh (x : R) : safeTanh x = tanh x := by
  have h₁ := exp_pos (R := R) (x + x)
  have h₂ : (exp (x + x) : R) * exp (0 - (x + x)) = 1 := by
    rw [← exp_add, ← exp_zero (S := R) (R := R)]
    congr 1
    grind
  have h₃ := exp_pos (R := R) (0 - (x + x))
  simp only [safeTanh, tanh]
  split
  · generalize (exp (x + x) : R) = e at *
    generalize (exp (0 - (x + x)) : R) = f at *
    have : e + 1 ≠ 0 := by grind
    have : 1 + f ≠ 0 := by grind
    grind
  · have h₄ : 0 - (0 - x + (0 - x)) = x + x := by grind
    rw [h₄]
    generalize (exp (x + x) : R) = e at *
    have : e + 1 ≠ 0 := by grind
    have : 1 + e ≠ 0 := by grind
    grind

/-- **safe-softcap**: softcap that takes exponentials of numbers ≤ 0 alone is softcap. -/
theorem safeSoftcap_eq_softcap {q_len kv_len : Nat} (cap : R) :
    (ScoreMod.safeSoftcap cap : ScoreMod R q_len kv_len) = ScoreMod.softcap cap := by
  funext i j s
  simp only [ScoreMod.safeSoftcap, ScoreMod.softcap, safeTanh_eq_tanh]

end Attention.Proof

namespace Attention.Model.Clean

open Spec Proof Exponential Lean.Grind

universe u v

variable {R : Type u} {P : Type v} [OrderedField R] [Exponential R R]
variable [Add P] [Sub P] [Mul P] [Div P] [OfNat P 0] [OfNat P 1] [LE P] [DecidableLE P] [Exp P P]
variable {bound : R} {ρ : R → P} {q_len kv_len d d_v : Nat}
variable (h : Clean bound ρ ρ)
include h

/-- The tangent by exp (−2|x|) of a proper number is a proper number. -/
theorem safeTanh (hb : 0 ≤ bound) (x : R) : Spec.safeTanh (ρ x) = ρ (Spec.safeTanh x) := by
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have e₀ : ∀ y : R, (0 : P) ≤ ρ y ↔ 0 ≤ y := fun y => by rw [← h.zero, h.score_le]
  have core : ∀ y : R, 0 ≤ y →
      (1 - (Attention.exp (0 - (ρ y + ρ y)) + Attention.exp (0 - (ρ y + ρ y)))
          / (1 + Attention.exp (0 - (ρ y + ρ y))) : P)
        = ρ (1 - (Attention.exp (0 - (y + y)) + Attention.exp (0 - (y + y)))
            / (1 + Attention.exp (0 - (y + y)))) := fun y hy => by
    have hpos := exp_pos (R := R) (0 - (y + y))
    have he : (Attention.exp (0 - (ρ y + ρ y)) : P) = ρ (Attention.exp (0 - (y + y))) := by
      rw [← h.exp _ (by grind), h.sub, h.add, h.zero]
    rw [h.sub, h.div _ _ (by grind), h.add, h.add, h.one, he]
  simp only [Spec.safeTanh, e₀]
  split
  · exact core x ‹_›
  · have hx := core (0 - x) (by grind)
    rw [h.sub, h.zero] at hx
    rw [hx, h.sub 0, h.zero]

/-- So softcap by this tangent is a score transformation that gives proper scores. -/
theorem safeSoftcap (hb : 0 ≤ bound) {cap : R} (hcap : cap ≠ 0) (i : Fin q_len) (j : Fin kv_len)
    (s : R) : ScoreMod.safeSoftcap (ρ cap) i j (ρ s)
      = (ScoreMod.safeSoftcap cap i j s).map ρ := by
  simp only [ScoreMod.safeSoftcap, Option.map_some, h.mul, ← h.safeTanh hb, h.div _ _ hcap]

/-- **no-poison-softcap**: over numbers in which exponentials of positive numbers and quotients by 0
may be anything, scores included, the tile loop with softcap by exp (−2|x|) gives the tile loop with
softcap. -/
theorem flash_softcap (hb : 0 ≤ bound) {scale cap : R} (hcap : cap ≠ 0) (mask : Mask q_len kv_len)
    (Q : Matrix R q_len d) (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) {block_m : Nat}
    (hm : 0 < block_m) (block_n : Nat) :
    Spec.flash (ρ scale) ((ScoreMod.safeSoftcap (ρ cap)).andThen mask.toScoreMod) (mapMatrix ρ Q)
        (mapMatrix ρ K) (mapMatrix ρ V) block_m block_n
      = (Spec.flash scale ((ScoreMod.softcap cap).andThen mask.toScoreMod) Q K V block_m
          block_n).map (Vec.map ρ) := by
  rw [← safeSoftcap_eq_softcap]
  refine h.flash hb (fun i j s => ?_) Q K V hm block_n
  simp only [ScoreMod.andThen, h.safeSoftcap hb hcap]
  cases ScoreMod.safeSoftcap cap i j s with
  | none => rfl
  | some t =>
    simp only [Option.map_some, Option.bind_some, Mask.toScoreMod]
    cases mask i j <;> rfl

end Attention.Model.Clean
