module

public import Attention.Algebra.NaturalExp
public import Attention.Model.Real.Field
public import Attention.Model.Real.Squarings

public section

/-! # The exponential of a real number

If x stands for the sequence qₖ, then exp x stands for the sequence (1 + qₖ / 2^k)^(2^k). That this
is a Cauchy sequence, and is close to that of another sequence for x, are the bounds of `Squarings`.
Sums become products since (1 + p/N)^N · (1 + q/N)^N = (1 + r/N)^N with r = p + q + pq/N, which is
close to p + q. That exp x ≥ 1 + x is Bernoulli's inequality; all else follows from these two. -/

namespace Attention.Model

open Lean.Grind

/-! ## The sequence -/

/-- How much one step more changes. -/
private theorem expStep_succ_sub_le {k : Nat} {B C q : Rat} (hB : 0 ≤ B) (hk : B + 1 ≤ twoPow k)
    (hk' : B * B ≤ twoPow k) (hC : expStep k (B + 1) ≤ C) (hq : AtMost B q) :
    expStep (k + 1) q - expStep k q ≤ C * (B * B / twoPow k - B * B / twoPow (k + 1)) := by
  have hT := twoPow_pos k
  have hT₄ : 0 < 4 * twoPow k := by grind
  have hsq : q * q ≤ B * B := by
    have := OrderedRing.mul_nonneg (a := B - q) (b := B + q)
      (by have := hq.2; grind) (by have := hq.1; grind)
    grind
  have e : B * B / twoPow k - B * B / twoPow (k + 1) = B * B / (2 * twoPow k) := by
    rw [twoPow_succ]
    grind
  have h₀ : 0 ≤ q * q / (4 * twoPow k) := OrderedField.div_nonneg (mul_self_nonneg q) hT₄
  have h₁ : q * q / (4 * twoPow k) ≤ 1 := (OrderedField.div_le_iff hT₄).mpr (by grind)
  have h₂ : q * q / (4 * twoPow k) ≤ B * B / (2 * twoPow k) := by
    refine (OrderedField.div_le_iff hT₄).mpr ?_
    have e₁ : 4 * twoPow k * (B * B / (2 * twoPow k)) = 2 * (B * B) := by grind
    have := mul_self_nonneg B
    rw [e₁]
    grind
  obtain ⟨hq₁, hq₂⟩ := hq
  rw [expStep_succ, e]
  generalize q * q / (4 * twoPow k) = s at *
  exact expStep_sub_le (by grind) hk hC ⟨by grind, by grind⟩ ⟨by grind, by grind⟩
    (Std.le_trans h₀ h₂) (by grind)

/-- How much any number of steps more change. -/
private theorem expStep_sub_expStep_le {k n : Nat} (hkn : k ≤ n) {B C q : Rat} (hB : 0 ≤ B)
    (hk : B + 1 ≤ twoPow k) (hk' : B * B ≤ twoPow k) (hC₀ : 0 ≤ C)
    (hC : ∀ n, k ≤ n → expStep n (B + 1) ≤ C) (hq : AtMost B q) :
    expStep n q - expStep k q ≤ C * (B * B / twoPow k) := by
  have h : expStep n q - expStep k q ≤ C * (B * B / twoPow k - B * B / twoPow n) := by
    induction hkn with
    | refl => grind
    | @step n hkn ih =>
      have hT := twoPow_le hkn
      have := expStep_succ_sub_le hB (Std.le_trans hk hT) (Std.le_trans hk' hT) (hC n hkn) hq
      grind
  have := OrderedRing.mul_nonneg hC₀ (OrderedField.div_nonneg (mul_self_nonneg B) (twoPow_pos n))
  grind

/-- The steps of close sequences are close. -/
private theorem expStep_close {f g : Nat → Rat} (hf : IsCauchy f) (hg : IsCauchy g)
    (h : Close f g) : Close (fun n => expStep n (f n)) (fun n => expStep n (g n)) := fun ε hε => by
  obtain ⟨A, hA, hf⟩ := hf.bounded
  obtain ⟨B, hB, hg⟩ := hg.bounded
  obtain ⟨C, hC, hE⟩ := expStep_bounded (A + B)
  obtain ⟨δ, hδ, hle⟩ := exists_mul_le hC hε
  refine (((hf.and hg).and (h δ hδ)).and (hE.and (eventually_le_twoPow (A + B)))).mono
    fun n ⟨⟨⟨a, b⟩, c⟩, d, e⟩ => ?_
  have a := a.mono (b := A + B) (by grind)
  have b := b.mono (b := A + B) (by grind)
  have h₁ := expStep_sub_le (by grind) e d a b (Std.le_of_lt hδ) (by have := c.1; grind)
  have h₂ := expStep_sub_le (by grind) e d b a (Std.le_of_lt hδ) c.2
  exact ⟨by grind, by grind⟩

/-- The steps of a Cauchy sequence are one. -/
private theorem expStep_cauchy {f : Nat → Rat} (hf : IsCauchy f) :
    IsCauchy fun n => expStep n (f n) := fun ε hε => by
  obtain ⟨B, hB, N₁, h₁⟩ := hf.bounded
  obtain ⟨C, hC, N₂, h₂⟩ := expStep_bounded (B + 1)
  obtain ⟨δ, hδ, hle⟩ := exists_mul_le hC (show (0 : Rat) < ε / 2 by grind)
  obtain ⟨N₃, h₃⟩ := hf δ hδ
  obtain ⟨N₄, h₄⟩ := (eventually_le_twoPow (B + 1)).and
    ((eventually_le_twoPow (B * B)).and (eventually_div_twoPow_le (B * B) hδ))
  have main : ∀ m n, max (max N₁ N₂) (max N₃ N₄) ≤ m → m ≤ n →
      AtMost ε (expStep n (f n) - expStep m (f m)) := fun m n hm hmn => by
    have ⟨a, b, c⟩ := h₄ m (by omega)
    have a' := (h₄ n (by omega)).1
    have hfm := h₁ m (by omega)
    have hfn := h₁ n (by omega)
    have hd := h₃ n m (by omega) (by omega)
    have hCn := h₂ n (by omega)
    have far := expStep_sub_expStep_le hmn (Std.le_of_lt hB) a b hC
      (fun n hn => h₂ n (by omega)) hfm
    have up := expStep_le_expStep hmn (q := f m) (by have := hfm.1; grind)
    have near₁ := expStep_sub_le (by grind) a' hCn (hfm.mono (by grind)) (hfn.mono (by grind))
      (Std.le_of_lt hδ) hd.2
    have near₂ := expStep_sub_le (by grind) a' hCn (hfn.mono (by grind)) (hfm.mono (by grind))
      (Std.le_of_lt hδ) (by have := hd.1; grind)
    have hc := OrderedRing.mul_le_mul_of_nonneg_left c hC
    exact ⟨by grind, by grind⟩
  refine ⟨max (max N₁ N₂) (max N₃ N₄), fun m n hm hn => ?_⟩
  rcases Nat.le_total m n with h | h
  · have ⟨h₁, h₂⟩ := main m n hm h
    exact ⟨by grind, by grind⟩
  · exact main n m hn h

/-- f n · g n / 2^n becomes small. -/
private theorem add_mul_div_close {f g : Nat → Rat} (hf : IsCauchy f) (hg : IsCauchy g) :
    Close (fun n => f n + g n + f n * g n / twoPow n) (fun n => f n + g n) := fun ε hε => by
  obtain ⟨A, hA, hf⟩ := hf.bounded
  obtain ⟨B, hB, hg⟩ := hg.bounded
  refine ((hf.and hg).and (eventually_le_twoPow (A * B / ε))).mono fun n ⟨⟨a, b⟩, c⟩ => ?_
  have hT := twoPow_pos n
  have c := (OrderedField.div_le_iff hε).mp c
  have ⟨h₁, h₂⟩ := a.mul b
  have u : f n * g n / twoPow n ≤ ε := (OrderedField.div_le_iff hT).mpr (by grind)
  have l : -ε ≤ f n * g n / twoPow n := (OrderedField.le_div_iff hT).mpr (by grind)
  exact ⟨by grind, by grind⟩

namespace Real

/-! ## The function -/

/-- exp x. -/
def expo : Real → Real :=
  Quotient.lift (fun f => mk _ (expStep_cauchy f.isCauchy)) fun f g h =>
    mk_eq.mpr (expStep_close f.isCauchy g.isCauchy h)

private theorem expo_mk {f : Nat → Rat} (hf : IsCauchy f) :
    expo (mk f hf) = mk _ (expStep_cauchy hf) := (rfl)

private theorem expo_add (x y : Real) : expo (x + y) = expo x * expo y := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  obtain ⟨g, hg, rfl⟩ := exists_mk y
  rw [mk_add, expo_mk, expo_mk, expo_mk, mk_mul, mk_eq]
  have h := add_mul_div_close hf hg
  have h' := expStep_close ((hf.add hg).of_close h) (hf.add hg) h
  simpa only [expStep_mul] using h'.symm

private theorem one_add_le_expo (x : Real) : 1 + x ≤ expo x := by
  obtain ⟨f, hf, rfl⟩ := exists_mk x
  rw [expo_mk, one_eq, ofRat, mk_add, mk_le]
  exact fun ε hε => ⟨1, fun n hn => by
    have := one_add_le_expStep hn (f n)
    grind⟩

private theorem expo_zero : expo 0 = 1 := by
  rw [zero_eq, ofRat, expo_mk, one_eq, ofRat, mk_eq]
  exact .of_eq expStep_zero

private theorem expo_pos (x : Real) : 0 < expo x := by
  have h₁ := expo_add (x / 2) (x / 2)
  have h₂ := expo_add x (-x)
  have h₃ := mul_self_nonneg (expo (x / 2))
  have h₄ := OrderedRing.zero_lt_one (R := Real)
  have e₁ : x / 2 + x / 2 = x := by grind
  have e₂ : x + -x = 0 := by grind
  rw [e₁] at h₁
  rw [e₂, expo_zero] at h₂
  refine Classical.byContradiction fun h => ?_
  have h₅ : expo x = 0 := by grind
  rw [h₅, Semiring.zero_mul] at h₂
  grind

private theorem expo_lt (x y : Real) (h : x < y) : expo x < expo y := by
  have h₁ := expo_add x (y - x)
  have h₂ := one_add_le_expo (y - x)
  have e : x + (y - x) = y := by grind
  rw [e] at h₁
  have h₃ := OrderedRing.mul_lt_mul_of_pos_left (a := 1) (b := expo (y - x)) (by grind) (expo_pos x)
  grind

/-- **real-exponential**: the real numbers have a natural exponential. -/
noncomputable instance : NaturalExp Real where
  exp := expo
  exp_add := by exact expo_add
  exp_pos := by exact expo_pos
  exp_lt := by exact expo_lt
  one_add_le_exp := by exact one_add_le_expo

/-- **real-exponential-unique**: it is the only one. The right side names the function, since `exp`
would be that of `e`, an instance as well. -/
theorem exp_unique (e : NaturalExp Real) (x : Real) : e.exp x = expo x :=
  naturalExp_unique e instNaturalExp archimedean x

end Real

end Attention.Model
