module

public import Attention.Claims.Approximation.Continuous
public import Attention.Model.Real.Compact
public import Attention.Model.Real.Exponential

public section

/-! # Attention approximates every continuous function on a box of real numbers

A continuous function on a box of real numbers is uniformly continuous (Heine, Cantor). It is proved
coordinate by coordinate: what holds near each point, of sets of points, holds of the points of the
box whose coordinates from i on are near those of a given one, for i = 0, 1, …, n. -/

namespace Attention.Claims

open Spec Lean.Grind Model

variable {n m : Nat} {a b : Real}

/-- x and y differ by at most δ in each coordinate. -/
@[expose] def Within (δ : Real) (x y : Vec Real n) : Prop := ∀ k : Fin n, AtMost δ (x[k] - y[k])

/-- f is continuous at each point of the box [a, b]ⁿ, as a function on the box. -/
@[expose] def ContinuousOnBox (a b : Real) (f : Vec Real n → Vec Real m) : Prop :=
  ∀ x, InBox a b x → ∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ y, InBox a b y → Within δ x y →
    Within η (f x) (f y)

private theorem exists_min {x y : Real} (hx : 0 < x) (hy : 0 < y) :
    ∃ z, 0 < z ∧ z ≤ x ∧ z ≤ y := by
  rcases Std.le_total (a := x) (b := y) with h | h
  · exact ⟨x, hx, Std.le_refl x, h⟩
  · exact ⟨y, hy, h, Std.le_refl y⟩

/-- A property of sets of points that goes over to subsets and to unions of two, and that each point
of a box has a neighbourhood in the box with, is one of the box. -/
theorem of_neighbourhoods {P : (Vec Real n → Prop) → Prop} (hab : a ≤ b)
    (subset : ∀ A B : Vec Real n → Prop, (∀ x, A x → B x) → P B → P A)
    (union : ∀ A B : Vec Real n → Prop, P A → P B → P fun x => A x ∨ B x)
    (near : ∀ z, InBox a b z → ∃ δ, 0 < δ ∧ P fun x => InBox a b x ∧ Within δ x z) :
    P (InBox a b) := by
  have step : ∀ i, i ≤ n → ∀ z, InBox a b z → ∃ δ, 0 < δ ∧
      P fun x => InBox a b x ∧ ∀ k : Fin n, i ≤ k.val → AtMost δ (x[k] - z[k]) := fun i => by
    induction i with
    | zero =>
      intro _ z hz
      obtain ⟨δ, hδ, h⟩ := near z hz
      exact ⟨δ, hδ, subset _ _ (fun x hx => ⟨hx.1, fun k => hx.2 k (Nat.zero_le _)⟩) h⟩
    | succ i ih =>
      intro hi z hz
      have h := Real.of_neighbourhoods (a := a) (b := b) (P := fun A => ∃ δ, 0 < δ ∧
        P fun x => InBox a b x ∧ A x[i] ∧ ∀ k : Fin n, i + 1 ≤ k.val → AtMost δ (x[k] - z[k]))
        hab
        (fun A B hAB ⟨δ, hδ, h⟩ => ⟨δ, hδ, subset _ _ (fun x hx => ⟨hx.1, hAB _ hx.2.1, hx.2.2⟩) h⟩)
        (fun A B ⟨δ, hδ, h⟩ ⟨δ', hδ', h'⟩ => by
          obtain ⟨δ₀, hδ₀, hle, hle'⟩ := exists_min hδ hδ'
          refine ⟨δ₀, hδ₀, subset _ _ (fun x hx => ?_) (union _ _ h h')⟩
          rcases hx.2.1 with hA | hB
          · exact .inl ⟨hx.1, hA, fun k hk => (hx.2.2 k hk).mono hle⟩
          · exact .inr ⟨hx.1, hB, fun k hk => (hx.2.2 k hk).mono hle'⟩)
        (fun t hat htb => by
          have hz' : InBox a b (z.set i t) := fun k => by
            rw [Fin.getElem_fin, Vector.getElem_set]
            split
            · exact ⟨hat, htb⟩
            · exact hz k
          obtain ⟨δ, hδ, h⟩ := ih (by omega) (z.set i t) hz'
          refine ⟨δ, hδ, δ, hδ, subset _ _ (fun x hx => ⟨hx.1, fun k hk => ?_⟩) h⟩
          rw [Fin.getElem_fin, Fin.getElem_fin, Vector.getElem_set]
          split
          · next e =>
            subst e
            exact hx.2.1
          · exact hx.2.2 k (by omega))
      obtain ⟨δ, hδ, h⟩ := h
      exact ⟨δ, hδ, subset _ _ (fun x hx => ⟨hx.1, hx.1 ⟨i, hi⟩, hx.2⟩) h⟩
  have ha : InBox a b (Vector.replicate n a) := fun k => by
    rw [Fin.getElem_fin, Vector.getElem_replicate]
    exact ⟨Std.le_refl a, hab⟩
  obtain ⟨δ, hδ, h⟩ := step n (Nat.le_refl n) _ ha
  exact subset _ _ (fun x hx => ⟨hx, fun k hk => absurd k.isLt (by omega)⟩) h

/-- **uniformly-continuous**: a continuous function on a box of real numbers is uniformly so. -/
theorem uniformlyContinuous (hab : a ≤ b) {f : Vec Real n → Vec Real m}
    (hf : ContinuousOnBox a b f) {η : Real} (hη : 0 < η) : ∃ δ, 0 < δ ∧ ∀ x y, InBox a b x →
      InBox a b y → Within δ x y → Within η (f x) (f y) := by
  have h := of_neighbourhoods (a := a) (b := b) (P := fun A => ∃ δ, 0 < δ ∧ ∀ x y, A x →
    InBox a b y → Within δ x y → Within η (f x) (f y)) hab
    (fun A B hAB ⟨δ, hδ, h⟩ => ⟨δ, hδ, fun x y hx => h x y (hAB x hx)⟩)
    (fun A B ⟨δ, hδ, h⟩ ⟨δ', hδ', h'⟩ => by
      obtain ⟨δ₀, hδ₀, hle, hle'⟩ := exists_min hδ hδ'
      refine ⟨δ₀, hδ₀, fun x y hx hy hxy => ?_⟩
      rcases hx with hA | hB
      · exact h x y hA hy fun k => (hxy k).mono hle
      · exact h' x y hB hy fun k => (hxy k).mono hle')
    (fun z hz => by
      obtain ⟨δ, hδ, h⟩ := hf z hz (η / 2) (by grind)
      refine ⟨δ / 2, by grind, δ / 2, by grind, fun x y ⟨hx, hxz⟩ hy hxy c => ?_⟩
      have h₁ := h x hx (fun k => by have := hxz k; exact ⟨by grind [AtMost], by grind [AtMost]⟩) c
      have h₂ := h y hy (fun k => by
        have h₁ := hxz k
        have h₂ := hxy k
        exact ⟨by grind [AtMost], by grind [AtMost]⟩) c
      exact ⟨by grind [AtMost], by grind [AtMost]⟩)
  obtain ⟨δ, hδ, h⟩ := h
  exact ⟨δ, hδ, fun x y hx => h x y hx⟩

/-- **universal-approximation-real**: each continuous function on a box of real numbers is
approximated there by softmax attention over a net: for each ε > 0 there are a number N and an
inverse temperature β such that the attention is within ε of the function. -/
theorem universal_approximation_real (hn : 0 < n) {ε : Real} (hε : 0 < ε)
    {f : Vec Real n → Vec Real m} (hf : ContinuousOnBox a b f) :
    ∃ (N : Nat) (β : Real), ∀ (q_len : Nat) (X : Matrix Real q_len n) (i : Fin q_len),
      InBox a b X[i] → Within ε
        (attention β Mask.full.toScoreMod (Vec.map pointQuery X) (Vec.map pointKey (net a b N n))
          (Vec.map f (net a b N n)))[i] (f X[i]) := by
  refine universal_approximation hn Real.archimedean hε f fun η hη => ?_
  by_cases hab : a ≤ b
  · exact uniformlyContinuous hab hf hη
  · refine ⟨1, OrderedRing.zero_lt_one, fun x y hx => ?_⟩
    have := hx ⟨0, hn⟩
    exact absurd (Std.le_trans this.1 this.2) hab

end Attention.Claims
