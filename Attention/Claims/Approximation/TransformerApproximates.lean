module

public import Attention.Claims.Approximation.BoundedSet
public import Attention.Claims.Approximation.NetTransformer

public section

/-! # Transformers approximate uniformly continuous functions on bounded sets

`decoder_attends` has the inverse temperature scale / σ, where σ is the root in the normalisation of
the input. On a bounded set the root is bounded, so that a scale is large enough for all inputs. -/

namespace Attention.Claims

open Spec Lean.Grind

universe v

attribute [local instance] Semiring.natCast

variable {R : Type v} {n m : Nat}

section
variable [OrderedField R]

private theorem row_count_pos {k : Nat} (o : Fin k) :
    0 < sumOver (fun _ : Fin k => (1 : R)) (List.finRange k) := by
  have one := OrderedRing.zero_lt_one (R := R)
  exact Std.lt_of_lt_of_le one (le_sumOver (f := fun _ : Fin k => (1 : R))
    (fun _ _ => Std.le_of_lt one) (List.mem_finRange o))

private theorem variance_eq {k : Nat} (y : Vec R k) : variance y
    = sumOver (fun i : Fin k => (y[i] - mean y) * (y[i] - mean y)) (List.finRange k)
      / sumOver (fun _ : Fin k => (1 : R)) (List.finRange k) := by
  rw [variance, mean]
  congr 1
  refine sumOver_congr fun i _ => ?_
  simp only [Fin.getElem_fin, Vec.getElem_map, centred]

/-- The variance of a vector with two different components is positive. -/
private theorem row_variance_pos {k : Nat} {y : Vec R k} {i j : Fin k} (h : y[i] ≠ y[j]) :
    0 < variance y := by
  have term := fun i : Fin k => le_sumOver (fun (i : Fin k) _ => mul_self_nonneg (y[i] - mean y))
    (List.mem_finRange i)
  have h₁ := term i
  have h₂ := term j
  have h₃ := mul_self_pos (x := y[i] - y[j]) (by grind)
  have h₄ := mul_self_nonneg (y[i] - mean y + (y[j] - mean y))
  rw [variance_eq, Field.div_eq_mul_inv]
  exact OrderedRing.mul_pos (by grind) (Field.IsOrdered.inv_pos_iff.mpr (row_count_pos i))

/-- The variance is at most the largest square. -/
private theorem variance_le {k : Nat} {y : Vec R k} (o : Fin k) {B : R}
    (h : ∀ i : Fin k, AtMost B y[i]) : variance y ≤ B * B := by
  have pos := row_count_pos (R := R) o
  have sum : sumOver (fun _ : Fin k => (1 : R)) (List.finRange k) * mean y
      = sumOver (fun i : Fin k => y[i]) (List.finRange k) :=
    OrderedField.mul_div_cancel (by grind) _
  have e : sumOver (fun i : Fin k => (y[i] - mean y) * (y[i] - mean y)) (List.finRange k)
      = sumOver (fun i : Fin k => y[i] * y[i]) (List.finRange k)
        - 2 * mean y * sumOver (fun i : Fin k => y[i]) (List.finRange k)
        + mean y * mean y * sumOver (fun _ : Fin k => (1 : R)) (List.finRange k) := by
    rw [← sumOver_mul_left, ← sumOver_mul_left, ← sumOver_sub, ← sumOver_add]
    exact sumOver_congr fun i _ => by grind
  have squares : sumOver (fun i : Fin k => y[i] * y[i]) (List.finRange k)
      ≤ B * B * sumOver (fun _ : Fin k => (1 : R)) (List.finRange k) := by
    rw [← sumOver_mul_left]
    refine sumOver_le_sumOver fun i _ => ?_
    have := ((h i).mul (h i)).2
    grind
  have left := OrderedRing.mul_nonneg (mul_self_nonneg (mean y)) (Std.le_of_lt pos)
  rw [variance_eq, OrderedField.div_le_iff pos, e, ← sum]
  grind

/-- On a box the variance of the input's row is positive, and bounded. -/
private theorem exists_variance_le (n m : Nat) (a b : R) :
    ∃ u : R, ∀ x : Vec R n, InBox a b x →
      0 < variance ((inputRow n m).row x) ∧ variance ((inputRow n m).row x) ≤ u := by
  have one := OrderedRing.zero_lt_one (R := R)
  obtain ⟨B, h₁, ha, hb⟩ : ∃ B : R, 1 ≤ B ∧ -B ≤ a ∧ b ≤ B := by
    have ha := mul_self_nonneg (a + 1)
    have ha' := mul_self_nonneg a
    have hb := mul_self_nonneg (b - 1)
    have hb' := mul_self_nonneg b
    exact ⟨1 + a * a + b * b, by grind, by grind, by grind⟩
  refine ⟨B * B, fun x hx => ⟨row_variance_pos (i := ⟨n, by omega⟩) (j := ⟨n + 1 + m, by omega⟩) ?_,
    variance_le ⟨n, by omega⟩ fun i => ?_⟩⟩
  · have e₁ : ((inputRow n m).row x)[n] = 1 := by
      rw [inputRow_row, dif_neg (by omega), if_pos rfl]
    have e₂ : ((inputRow n m).row x)[n + 1 + m] = 0 := by
      rw [inputRow_row, dif_neg (by omega), if_neg (by omega)]
    simp only [Fin.getElem_fin, e₁, e₂]
    grind
  · simp only [Fin.getElem_fin, inputRow_row]
    split
    · rename_i h
      have := hx ⟨i.val, h⟩
      simp only [Fin.getElem_fin] at this
      exact ⟨by grind, by grind⟩
    · split <;> exact ⟨by grind, by grind⟩

private theorem le_scaled {β σ r : R} (hβ : 0 ≤ β) (hr : 0 < r) (h : r ≤ σ) : β ≤ β * σ / r := by
  rw [OrderedField.le_div_iff hr]
  have := OrderedRing.mul_le_mul_of_nonneg_left h hβ
  grind

end

variable [OrderedField R] [NaturalExp R]

/-- Over an Archimedean field, for each ε > 0 and each
uniformly continuous function f on a bounded set there is a decoder within ε of f on the set, whose
source does not depend on x and whose target is one row, linear in x. Of the root in its
normalisations it is asked that it is positive above εnorm, and bounded from there up to each
number: square roots are, for εnorm ≥ 0. -/
theorem universal_approximation_decoder
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {sqrt : R → R} {εnorm : R}
    (root : ∀ z, εnorm < z → 0 < sqrt z)
    (bounded : ∀ u, ∃ σ, ∀ z, εnorm < z → z ≤ u → sqrt z ≤ σ)
    {S : Vec R n → Prop} {a b : R} (hS : ∀ x, S x → InBox a b x) {ε : R} (hε : 0 < ε)
    (f : Vec R n → Vec R m)
    (hf : ∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ x y, S x → S y →
      (∀ k : Fin n, AtMost δ (x[k] - y[k])) → ∀ c : Fin m, AtMost η ((f x)[c] - (f y)[c])) :
    ∃ T, DecoderComputes sqrt εnorm n m T ∧
      ∀ x, S x → ∀ c : Fin m, AtMost ε ((T x)[c] - (f x)[c]) := by
  obtain ⟨kv_len, C, β₀, hβ₀, -, h⟩ := attention_approximates_on_sets archimedean hS hε f hf
  obtain ⟨u, hu⟩ := exists_variance_le n m a b
  obtain ⟨σ, hσ⟩ := bounded (u + εnorm)
  refine ⟨_, ⟨kv_len, n + 1 + m + 1, 1, n + 1 + m + 1, 1, β₀ * σ,
    Vec.ofFn fun k : Fin kv_len => pointRow C[k] (Vec.map f C)[k], inputRow n m, [netLayer n m],
    Mask.full, valueLinear n m, fun x => rfl⟩, fun x hx c => ?_⟩
  have ⟨h₁, h₂⟩ := hu x (hS x hx)
  have hr := root (variance ((inputRow n m).row x) + εnorm) (by grind)
  have hr' := hσ (variance ((inputRow n m).row x) + εnorm) (by grind) (by grind)
  have e := h _ (le_scaled hβ₀ hr hr') 1 #v[x] 0 hx c
  rw [← decoder_attends] at e
  exact e

/-- The claim of universal approximation as far as it is
true: over an Archimedean field, for each ε > 0 and each uniformly continuous function on a bounded
set there is a transformer within ε of it on the set. -/
theorem universal_approximation_transformer
    (archimedean : ∀ x y : R, 0 < y → ∃ N : Nat, x ≤ (N : R) * y) {sqrt : R → R} {εnorm : R}
    (root : ∀ z, εnorm < z → 0 < sqrt z)
    (bounded : ∀ u, ∃ σ, ∀ z, εnorm < z → z ≤ u → sqrt z ≤ σ)
    {S : Vec R n → Prop} {a b : R} (hS : ∀ x, S x → InBox a b x) {ε : R} (hε : 0 < ε)
    (f : Vec R n → Vec R m)
    (hf : ∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ x y, S x → S y →
      (∀ k : Fin n, AtMost δ (x[k] - y[k])) → ∀ c : Fin m, AtMost η ((f x)[c] - (f y)[c])) :
    ∃ T, TransformerComputes sqrt εnorm n m T ∧
      ∀ x, S x → ∀ c : Fin m, AtMost ε ((T x)[c] - (f x)[c]) :=
  (universal_approximation_decoder archimedean root bounded hS hε f hf).imp
    fun _ h => ⟨h.1.transformerComputes, h.2⟩

end Attention.Claims
