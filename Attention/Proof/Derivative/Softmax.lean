module

public import Attention.Proof.Derivative.Exponential
public import Attention.Proof.Derivative.Tangent

public section

/-! # What softmax over dual numbers computes is the derivative of softmax -/

namespace Attention.Proof

open Spec Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R] [NaturalExp R] {α : Type v}

/-! ## Weights that sum to 1, and scores that move by at most ε -/

section Moved

variable {ks : List α} {p h : α → R} {ε : R}

private theorem two_mul_sq_le (hε : ε ≤ 1 / 2) {x : R} (hx : AtMost ε x) :
    AtMost (2 * (ε * ε)) (exp x - 1 - x) := by
  have h₀ := hx.nonneg
  obtain ⟨h₁, h₂⟩ := exp_sub_tangent (hx.mono (by grind))
  have h₃ := (hx.mul hx).2
  exact ⟨by have := mul_self_nonneg ε; grind, by grind⟩

/-- The sum of the moved weights is 1 + m + ρ, with m the mean of the moves and ρ ≤ 2 ε². -/
private theorem movedSum (hp : ∀ k ∈ ks, 0 ≤ p k) (hsum : sumOver p ks = 1) (hε : ε ≤ 1 / 2)
    (hh : ∀ k ∈ ks, AtMost ε (h k)) (h₀ : 0 ≤ ε) :
    AtMost ε (sumOver (fun k => p k * h k) ks)
      ∧ AtMost (2 * (ε * ε)) (sumOver (fun k => p k * exp (h k)) ks - 1
          - sumOver (fun k => p k * h k) ks)
      ∧ 1 / 2 ≤ sumOver (fun k => p k * exp (h k)) ks := by
  have hle : sumOver p ks ≤ 1 := by rw [hsum]; exact Std.le_refl _
  have hm := AtMost.mean hp hle h₀ hh
  have e : sumOver (fun k => p k * (exp (h k) - 1 - h k)) ks
      = sumOver (fun k => p k * exp (h k)) ks - 1 - sumOver (fun k => p k * h k) ks := by
    rw [← hsum, ← sumOver_sub, ← sumOver_sub]
    exact sumOver_congr fun k _ => by grind
  have hρ := AtMost.mean hp hle (c := 2 * (ε * ε)) (by have := mul_self_nonneg ε; grind)
    fun k hk => two_mul_sq_le hε (hh k hk)
  have hpos : 0 ≤ sumOver (fun k => p k * (exp (h k) - 1 - h k)) ks :=
    sumOver_nonneg fun k hk => OrderedRing.mul_nonneg (hp k hk)
      (exp_sub_tangent ((hh k hk).mono (by grind))).1
  rw [e] at hρ hpos
  refine ⟨hm, hρ, ?_⟩
  have := hm.1
  grind

/-- A moved weight, divided by the sum of all, differs from 1 + (move − mean move) by at most
16 ε². -/
theorem moved_weight (hp : ∀ k ∈ ks, 0 ≤ p k) (hsum : sumOver p ks = 1) (hε : ε ≤ 1 / 2)
    (hh : ∀ k ∈ ks, AtMost ε (h k)) {k : α} (hk : k ∈ ks) :
    AtMost (16 * (ε * ε)) (exp (h k) / sumOver (fun k => p k * exp (h k)) ks - 1
      - (h k - sumOver (fun k => p k * h k) ks)) := by
  have hk := hh k hk
  have h₀ := hk.nonneg
  obtain ⟨hm, hρ, hZ⟩ := movedSum hp hsum hε hh h₀
  have hr := two_mul_sq_le hε hk
  generalize sumOver (fun k => p k * exp (h k)) ks = Z at hρ hZ ⊢
  generalize sumOver (fun k => p k * h k) ks = m at hm hρ ⊢
  generalize h k = x at hk hr ⊢
  generalize (exp x : R) = e at hr ⊢
  have h₁ := hm.mul (hk.sub hm)
  have h₂ : AtMost 2 (1 + (x - m)) := by
    obtain ⟨h₃, h₄⟩ := hk.sub hm
    exact ⟨by grind, by grind⟩
  have hD := (hr.sub h₁).sub (hρ.mul h₂)
  have hD : AtMost (8 * (ε * ε)) (e - Z * (1 + (x - m))) := by
    have e₁ : e - 1 - x - m * (x - m) - (Z - 1 - m) * (1 + (x - m)) = e - Z * (1 + (x - m)) := by
      grind
    have e₂ : 2 * (ε * ε) + ε * (ε + ε) + 2 * (ε * ε) * 2 = 8 * (ε * ε) := by grind
    rwa [e₁, e₂] at hD
  have hpos : 0 < Z := by grind
  have hne : Z ≠ 0 := by grind
  have e₃ : e / Z - 1 - (x - m) = (e - Z * (1 + (x - m))) / Z := by grind
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_right hZ
    (OrderedRing.mul_nonneg (a := (16 : R)) (b := ε * ε) (by grind) (mul_self_nonneg ε))
  rw [e₃]
  generalize e - Z * (1 + (x - m)) = D at hD ⊢
  obtain ⟨h₆, h₇⟩ := hD
  refine ⟨(OrderedField.le_div_iff hpos).mpr ?_, (OrderedField.div_le_iff hpos).mpr ?_⟩
  · grind
  · grind

omit [NaturalExp R] in
private theorem mean_algebra (p E h σ v γ : α → R) (t m μ : R) (k : α) :
    p k * (E k * v k + (h k - t * σ k - (m - t * μ)) * v k + (h k - m + E k) * (t * γ k))
      = p k * (E k + 1 + (h k - m)) * (v k + t * γ k) - p k * v k
        - t * (p k * (σ k - μ) * v k + p k * γ k) := by
  grind

/-- A mean of values by moved weights, the values moving too, differs from the mean plus `t` times
its derivative by what is of the second order: scores move by h, at most ε and up to `T` by t σ, and
values by t γ. -/
theorem moved_mean {σ v γ : α → R} {t τ T B G : R} (hp : ∀ k ∈ ks, 0 ≤ p k)
    (hsum : sumOver p ks = 1) (hε : ε ≤ 1 / 2) (hh : ∀ k ∈ ks, AtMost ε (h k)) (h₀ : 0 ≤ ε)
    (hσ : ∀ k ∈ ks, AtMost T (h k - t * σ k)) (hT : 0 ≤ T) (hv : ∀ k ∈ ks, AtMost B (v k))
    (hB : 0 ≤ B) (hγ : ∀ k ∈ ks, AtMost G (γ k)) (hG : 0 ≤ G) (ht : AtMost τ t) :
    AtMost (16 * (ε * ε) * B + (T + T) * B + (ε + ε + 16 * (ε * ε)) * (τ * G))
      (sumOver (fun k => p k * (exp (h k) / sumOver (fun k => p k * exp (h k)) ks)
          * (v k + t * γ k)) ks - sumOver (fun k => p k * v k) ks
        - t * sumOver (fun k => p k * (σ k - sumOver (fun k => p k * σ k) ks) * v k + p k * γ k)
          ks) := by
  have hle : sumOver p ks ≤ 1 := by rw [hsum]; exact Std.le_refl _
  let Z := sumOver (fun k => p k * exp (h k)) ks
  let m := sumOver (fun k => p k * h k) ks
  let μ := sumOver (fun k => p k * σ k) ks
  let E := fun k => exp (h k) / Z - 1 - (h k - m)
  have hE : ∀ k ∈ ks, AtMost (16 * (ε * ε)) (E k) := fun k hk => moved_weight hp hsum hε hh hk
  have hm : AtMost ε m := AtMost.mean hp hle h₀ hh
  have hμ : AtMost T (m - t * μ) := by
    have e : m - t * μ = sumOver (fun k => p k * (h k - t * σ k)) ks := by
      simp only [m, μ]
      rw [← sumOver_mul_left, ← sumOver_sub]
      exact sumOver_congr fun k _ => by grind
    rw [e]
    exact AtMost.mean hp hle hT hσ
  have hterm : ∀ k ∈ ks, AtMost
      (16 * (ε * ε) * B + (T + T) * B + (ε + ε + 16 * (ε * ε)) * (τ * G))
      (E k * v k + (h k - t * σ k - (m - t * μ)) * v k + (h k - m + E k) * (t * γ k)) :=
    fun k hk => (((hE k hk).mul (hv k hk)).add (((hσ k hk).sub hμ).mul (hv k hk))).add
      ((((hh k hk).sub hm).add (hE k hk)).mul (ht.mul (hγ k hk)))
  have hc : 0 ≤ 16 * (ε * ε) * B + (T + T) * B + (ε + ε + 16 * (ε * ε)) * (τ * G) := by
    have e := OrderedRing.mul_nonneg (a := (16 : R)) (by grind) (mul_self_nonneg ε)
    have hT := AtMost.zero hT
    have hB := AtMost.zero hB
    have h₀ := AtMost.zero h₀
    exact ((((AtMost.zero e).mul hB).add ((hT.add hT).mul hB)).add
      (((h₀.add h₀).add (AtMost.zero e)).mul (ht.mul (AtMost.zero hG)))).nonneg
  have hall := AtMost.mean hp hle hc hterm
  have e : sumOver (fun k => p k * (E k * v k + (h k - t * σ k - (m - t * μ)) * v k
        + (h k - m + E k) * (t * γ k))) ks
      = sumOver (fun k => p k * (exp (h k) / Z) * (v k + t * γ k)) ks
        - sumOver (fun k => p k * v k) ks
        - t * sumOver (fun k => p k * (σ k - μ) * v k + p k * γ k) ks := by
    rw [← sumOver_mul_left t fun k => p k * (σ k - μ) * v k + p k * γ k, ← sumOver_sub,
      ← sumOver_sub]
    refine sumOver_congr fun k _ => ?_
    rw [mean_algebra]
    have hEk : E k + 1 + (h k - m) = exp (h k) / Z := by
      simp only [E]
      generalize (exp (h k) / Z : R) = x
      grind
    rw [hEk]
  rwa [e] at hall

end Moved

end Attention.Proof
