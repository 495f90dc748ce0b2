module

public import Attention.Claims.Approximation.ContinuousReal
public import Attention.Proof.Softmax.Stability

public section

/-! # Attention over a net does not approximate every function

That the function is continuous is needed: 1 / x with 0⁻¹ = 0 is not bounded on [0, 1], and the
outputs of attention lie between the least and the greatest of its values at the net. -/

namespace Attention.WrongVariants

open Spec Lean.Grind Model Claims

/-- The claim of `universal_approximation_real` on [0, 1], made of the functions that `P` names. -/
abbrev ApproximatedOverNets (P : (Vec Real 1 → Vec Real 1) → Prop) : Prop :=
  ∀ (ε : Real) (f : Vec Real 1 → Vec Real 1), 0 < ε → P f →
    ∃ (N : Nat) (β : Real), ∀ (q_len : Nat) (X : Matrix Real q_len 1) (i : Fin q_len),
      InBox 0 1 X[i] → Within ε
        (attention β Mask.full.toScoreMod (Vec.map pointQuery X) (Vec.map pointKey (net 0 1 N 1))
          (Vec.map f (net 0 1 N 1)))[i] (f X[i])

/-- Positive control: continuous functions. -/
theorem continuous_approximated : ApproximatedOverNets (ContinuousOnBox 0 1) :=
  fun _ _ hε hf => universal_approximation_real (by decide) hε hf

private theorem exists_bound : ∀ {k : Nat} (g : Fin k → Real), ∃ B, 0 ≤ B ∧ ∀ j, AtMost B (g j)
  | 0, _ => ⟨0, Std.le_refl _, fun j => j.elim0⟩
  | k + 1, g => by
    obtain ⟨B, hB, h⟩ := exists_bound fun j : Fin k => g j.succ
    have ⟨C, hC, h₀⟩ : ∃ C, 0 ≤ C ∧ AtMost C (g 0) := by
      rcases Std.le_total (a := 0) (b := g 0) with h | h
      · exact ⟨g 0, h, by grind [AtMost]⟩
      · exact ⟨-g 0, by grind, by grind [AtMost]⟩
    refine ⟨B + C, by grind, fun j => ?_⟩
    cases j using Fin.cases with
    | zero => exact h₀.mono (by grind)
    | succ j => exact (h j).mono (by grind)

/-- Any function. -/
theorem any_approximated_refuted : ¬ ApproximatedOverNets fun _ => True := fun claim => by
  have h₁ := OrderedRing.zero_lt_one (R := Real)
  obtain ⟨N, β, h⟩ := claim 1 (fun x => #v[1 / x[0]]) h₁ trivial
  obtain ⟨B, hB, hb⟩ := exists_bound fun j => (Vec.map (fun x => #v[1 / x[0]]) (net 0 1 N 1) :
    Matrix Real ((N + 1) ^ 1) 1)[j][0]
  have hx : (B + 2) * (1 / (B + 2)) = 1 := OrderedField.mul_div_cancel (by grind) 1
  have hx₀ : 0 ≤ 1 / (B + 2) := OrderedField.div_nonneg (by grind) (by grind)
  have hx₁ : 1 / (B + 2) ≤ 1 := (OrderedField.div_le_iff (by grind)).mpr (by grind)
  have hf : 1 / (1 / (B + 2)) = B + 2 := by grind
  generalize 1 / (B + 2) = x at hx hx₀ hx₁ hf
  have near := h 1 #v[#v[x]] 0 (fun k => by
    obtain ⟨k, hk⟩ := k
    obtain rfl : k = 0 := by omega
    exact ⟨hx₀, hx₁⟩) 0
  generalize (Vec.map (fun x => #v[1 / x[0]]) (net 0 1 N 1) : Matrix Real ((N + 1) ^ 1) 1) = V
    at hb near
  -- Found at once where an index has to lie inside.
  have _inside := Nat.one_pos
  have e : (#v[1 / (#v[#v[x]] : Matrix Real 1 1)[(0 : Fin 1)][0]] : Vec Real 1)[(0 : Fin 1)]
      = B + 2 := hf
  have hull : (attention β Mask.full.toScoreMod (Vec.map pointQuery #v[#v[x]])
      (Vec.map pointKey (net (0 : Real) 1 N 1)) V)[(0 : Fin 1)][(0 : Fin 1)] ≤ B := by
    simp only [attention, Fin.getElem_fin, Vec.getElem_ofFn]
    refine (Proof.attend_mem_interval (a := -B) (b := B) ?_ _ fun key hkey _ => ?_).2
    · refine ⟨_, List.mem_map_of_mem (List.mem_finRange ⟨0, Nat.pow_pos (Nat.succ_pos N)⟩), ?_⟩
      simp [score, Mask.toScoreMod, Mask.full]
    · obtain ⟨j, _, rfl⟩ := List.mem_map.mp hkey
      exact hb j
  obtain ⟨l, _⟩ := near
  rw [e] at l
  grind

end Attention.WrongVariants
