module

public import Attention.Claims.Approximation.Continuous
public import Attention.Model.Real.Compact
public import Attention.Model.Real.Exponential

public section

/-! # Attention approximates every continuous function on a box of real numbers

A continuous function on a compact set, as a box of real numbers is, is uniformly continuous (Heine,
Cantor). It is proved coordinate by coordinate: what holds near each point, of sets of points, holds
of the points of the box whose coordinates from i on are near those of a given one, for i = 0, 1, …,
n. -/

namespace Attention.Claims

open Spec Lean.Grind Model

variable {n m : Nat} {a b : Real}

/-- x and y differ by at most δ in each coordinate. -/
@[expose] def Within (δ : Real) (x y : Vec Real n) : Prop := ∀ k : Fin n, AtMost δ (x[k] - y[k])

/-- f is continuous at each point of S, as a function on S. -/
@[expose] def ContinuousOn (S : Vec Real n → Prop) (f : Vec Real n → Vec Real m) : Prop :=
  ∀ x, S x → ∀ η, 0 < η → ∃ δ, 0 < δ ∧ ∀ y, S y → Within δ x y → Within η (f x) (f y)

/-- f is continuous at each point of the box [a, b]ⁿ, as a function on the box. -/
abbrev ContinuousOnBox (a b : Real) (f : Vec Real n → Vec Real m) : Prop :=
  ContinuousOn (InBox a b) f

/-- S lies in a box, and is closed: each point outside has a neighbourhood outside. These are the
compact sets of ℝⁿ (Heine, Borel). -/
@[expose] def Compact (S : Vec Real n → Prop) : Prop :=
  (∃ a b, ∀ x, S x → InBox a b x) ∧ ∀ z, ¬ S z → ∃ δ, 0 < δ ∧ ∀ y, S y → ¬ Within δ y z

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

/-- A continuous function on a compact set is uniformly so. -/
theorem uniformlyContinuous_of_compact {S : Vec Real n → Prop} (hS : Compact S)
    {f : Vec Real n → Vec Real m} (hf : ContinuousOn S f) {η : Real} (hη : 0 < η) :
    ∃ δ, 0 < δ ∧ ∀ x y, S x → S y → Within δ x y → Within η (f x) (f y) := by
  obtain ⟨⟨a, b, inside⟩, closed⟩ := hS
  by_cases hab : a ≤ b
  case neg =>
    refine ⟨1, OrderedRing.zero_lt_one, fun x y hx hy _ => ?_⟩
    have e : x = y := Vector.ext fun k hk => by
      have := inside x hx ⟨k, hk⟩
      exact absurd (Std.le_trans this.1 this.2) hab
    subst e
    exact fun c => ⟨by grind, by grind⟩
  have h := of_neighbourhoods (a := a) (b := b) (P := fun A => ∃ δ, 0 < δ ∧ ∀ x y, A x → S x →
    S y → Within δ x y → Within η (f x) (f y)) hab
    (fun A B hAB ⟨δ, hδ, h⟩ => ⟨δ, hδ, fun x y hx => h x y (hAB x hx)⟩)
    (fun A B ⟨δ, hδ, h⟩ ⟨δ', hδ', h'⟩ => by
      obtain ⟨δ₀, hδ₀, hle, hle'⟩ := exists_min hδ hδ'
      refine ⟨δ₀, hδ₀, fun x y hx hSx hy hxy => ?_⟩
      rcases hx with hA | hB
      · exact h x y hA hSx hy fun k => (hxy k).mono hle
      · exact h' x y hB hSx hy fun k => (hxy k).mono hle')
    (fun z _ => by
      by_cases hz : S z
      · obtain ⟨δ, hδ, h⟩ := hf z hz (η / 2) (by grind)
        refine ⟨δ / 2, by grind, δ / 2, by grind, fun x y ⟨_, hxz⟩ hx hy hxy c => ?_⟩
        have h₁ := h x hx (fun k => by
          have := hxz k
          exact ⟨by grind [AtMost], by grind [AtMost]⟩) c
        have h₂ := h y hy (fun k => by
          have h₁ := hxz k
          have h₂ := hxy k
          exact ⟨by grind [AtMost], by grind [AtMost]⟩) c
        exact ⟨by grind [AtMost], by grind [AtMost]⟩
      · obtain ⟨δ, hδ, h⟩ := closed z hz
        exact ⟨δ, hδ, δ, hδ, fun x y hx hSx => absurd hx.2 (h x hSx)⟩)
  obtain ⟨δ, hδ, h⟩ := h
  exact ⟨δ, hδ, fun x y hx => h x y (inside x hx) hx⟩

/-- A box is compact. -/
theorem inBox_compact (a b : Real) : Compact (InBox (n := n) a b) := by
  refine ⟨⟨a, b, fun _ h => h⟩, fun z hz => ?_⟩
  have ⟨k, hk⟩ : ∃ k : Fin n, ¬ (a ≤ z[k] ∧ z[k] ≤ b) := Classical.byContradiction fun hn =>
    hz fun k => Classical.byContradiction fun h => hn ⟨k, h⟩
  by_cases ha : a ≤ z[k]
  · refine ⟨(z[k] - b) / 2, by grind, fun y hy h => ?_⟩
    have h₁ := (hy k).2
    have h₂ := (h k).1
    grind
  · refine ⟨(a - z[k]) / 2, by grind, fun y hy h => ?_⟩
    have h₁ := (hy k).1
    have h₂ := (h k).2
    grind

/-- **uniformly-continuous**: a continuous function on a box of real numbers is uniformly so. -/
theorem uniformlyContinuous {f : Vec Real n → Vec Real m} (hf : ContinuousOnBox a b f) {η : Real}
    (hη : 0 < η) : ∃ δ, 0 < δ ∧ ∀ x y, InBox a b x → InBox a b y → Within δ x y →
      Within η (f x) (f y) :=
  uniformlyContinuous_of_compact (inBox_compact a b) hf hη

/-- **universal-approximation-real**: each continuous function on a box of real numbers is
approximated there by softmax attention over a net: for each ε > 0 there are a number N and an
inverse temperature β such that the attention is within ε of the function. -/
theorem universal_approximation_real (hn : 0 < n) {ε : Real} (hε : 0 < ε)
    {f : Vec Real n → Vec Real m} (hf : ContinuousOnBox a b f) :
    ∃ (N : Nat) (β : Real), ∀ (q_len : Nat) (X : Matrix Real q_len n) (i : Fin q_len),
      InBox a b X[i] → Within ε
        (attention β Mask.full.toScoreMod (Vec.map pointQuery X) (Vec.map pointKey (net a b N n))
          (Vec.map f (net a b N n)))[i] (f X[i]) :=
  universal_approximation hn Real.archimedean hε f fun _ hη => uniformlyContinuous hf hη

end Attention.Claims
