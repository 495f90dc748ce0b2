module

public import Attention.Model.Real.Supremum

public section

/-! # What holds near each number of an interval holds of the whole interval

For properties of sets that go over to subsets and to unions of two sets. The proof takes the least
upper bound of the t up to which it holds. -/

namespace Attention.Model.Real

open Lean.Grind

/-- **real-compact**: a property of sets that goes over to subsets and to unions of two, and that
each number of an interval has a neighbourhood with, is one of the interval. -/
theorem of_neighbourhoods {P : (Real → Prop) → Prop} {a b : Real} (hab : a ≤ b)
    (subset : ∀ A B : Real → Prop, (∀ s, A s → B s) → P B → P A)
    (union : ∀ A B : Real → Prop, P A → P B → P fun s => A s ∨ B s)
    (near : ∀ t, a ≤ t → t ≤ b → ∃ δ, 0 < δ ∧ P fun s => AtMost δ (s - t)) :
    P fun s => a ≤ s ∧ s ≤ b := by
  have start : a ≤ a ∧ a ≤ b ∧ P fun s => a ≤ s ∧ s ≤ a := by
    obtain ⟨δ, hδ, h⟩ := near a (Std.le_refl a) hab
    exact ⟨Std.le_refl a, hab, subset _ _ (fun s hs => ⟨by grind, by grind⟩) h⟩
  obtain ⟨c, hc, least⟩ := exists_supremum (S := fun t => a ≤ t ∧ t ≤ b ∧ P fun s => a ≤ s ∧ s ≤ t)
    ⟨a, start⟩ ⟨b, fun t ht => ht.2.1⟩
  have hac : a ≤ c := hc a start
  have hcb : c ≤ b := least b fun t ht => ht.2.1
  obtain ⟨δ, hδ, h⟩ := near c hac hcb
  have ⟨t, ht, htc⟩ : ∃ t, (a ≤ t ∧ t ≤ b ∧ P fun s => a ≤ s ∧ s ≤ t) ∧ c - δ ≤ t :=
    Classical.byContradiction fun hn => by
      have := least (c - δ) fun t ht => Classical.byContradiction fun ht' =>
        hn ⟨t, ht, by grind⟩
      grind
  have far := union _ _ ht.2.2 h
  refine subset _ _ (fun s hs => ?_) far
  by_cases hst : s ≤ t
  · exact .inl ⟨hs.1, hst⟩
  · refine .inr ⟨by grind, ?_⟩
    refine Classical.byContradiction fun hn => ?_
    have := hc (c + δ) ⟨by grind, by grind, subset _ _ (fun s' hs' => ?_) far⟩
    · grind
    · by_cases hst' : s' ≤ t
      · exact .inl ⟨hs'.1, hst'⟩
      · exact .inr ⟨by grind, by grind⟩

end Attention.Model.Real
