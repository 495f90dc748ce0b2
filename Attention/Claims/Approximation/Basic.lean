module

public import Attention.Claims.Approximation.Net

public section

/-! # Attention approximates continuous functions

Claimed (`UniversalApproximation`): for each ε and each function f on a compact set, some
transformer is within ε of f, because the set has a finite cover. What is right in it: softmax
attention over the points of a net, with the values of f there, is within ε of f on a box. The
number of points and the inverse temperature are explicit, and f has to be uniformly continuous, as
continuous functions on a box of real numbers are. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe v

attribute [local instance] Semiring.natCast

variable {R : Type v} {n m N q_len : Nat}

/-- f attended to: for each of the points X, the attention by distance over the points of the net
and the values of f there. -/
@[expose] def attendNet [Add R] [Sub R] [Mul R] [Div R] [Neg R] [NatCast R] [OfNat R 0] [OfNat R 1]
    [OfNat R 2] [Exp R R] (f : Vec R n → Vec R m) (a b β : R) (N : Nat) (X : Matrix R q_len n) :
    Matrix R q_len m :=
  attendPoints β X (net a b N n) (Vec.map f (net a b N n))

section
variable [OrderedField R]

private theorem swap {e x y : R} (h : AtMost e (x - y)) : AtMost e (y - x) := by
  obtain ⟨h₁, h₂⟩ := h
  exact ⟨by grind, by grind⟩

private theorem sub_atMost {a b l x y : R} (h : b - a ≤ l) (hx : a ≤ x ∧ x ≤ b)
    (hy : a ≤ y ∧ y ≤ b) : AtMost l (y - x) :=
  ⟨by grind, by grind⟩

private theorem gap {d₀ d l : R} (h₀ : 4 * d₀ ≤ l) (h : ¬ d ≤ l) : d₀ + 3 / 4 * l ≤ d := by
  grind

private theorem scaled {M l e E : R} (h : M * l ≤ E) (he : 0 ≤ e) : M * (l * e) ≤ e * E := by
  have := OrderedRing.mul_le_mul_of_nonneg_right h he
  grind

/-- A step from x towards y of at most δ. -/
private theorem exists_step {x y δ s : R} (hδ : 0 ≤ δ) (hs : 0 ≤ s) (h : AtMost (s + δ) (y - x)) :
    ∃ z, AtMost δ (x - z) ∧ AtMost s (y - z) ∧ ((x ≤ z ∧ z ≤ y) ∨ (y ≤ z ∧ z ≤ x)) := by
  obtain ⟨h₁, h₂⟩ := h
  rcases Std.le_total (a := y - x) (b := δ) with h₃ | h₃
  · rcases Std.le_total (a := -δ) (b := y - x) with h₄ | h₄
    · refine ⟨y, ⟨by grind, by grind⟩, ⟨by grind, by grind⟩, ?_⟩
      rcases Std.le_total (a := x) (b := y) with h | h
      · exact .inl ⟨h, Std.le_refl _⟩
      · exact .inr ⟨Std.le_refl _, h⟩
    · exact ⟨x - δ, ⟨by grind, by grind⟩, ⟨by grind, by grind⟩, .inr ⟨by grind, by grind⟩⟩
  · exact ⟨x + δ, ⟨by grind, by grind⟩, ⟨by grind, by grind⟩, .inl ⟨by grind, by grind⟩⟩

private theorem sqDist_le {x z : Vec R n} {δ : R} (h : ∀ k : Fin n, AtMost δ (x[k] - z[k])) :
    sqDist x z ≤ (n : R) * (δ * δ) := by
  have : sqDist x z ≤ sumOver (fun _ => δ * δ) (List.finRange n) :=
    sumOver_le_sumOver fun k _ => by
      have := ((h k).mul (h k)).2
      exact this
  rwa [sumOver_const, List.length_finRange] at this

/-- A function that moves by at most e over distances of up to δ √n moves by at most s · e over s
steps of δ in each coordinate. -/
private theorem moved_far {a b δ e : R} (hδ : 0 ≤ δ) {g : Vec R n → R}
    (hg : ∀ x y, InBox a b x → InBox a b y → sqDist x y ≤ (n : R) * (δ * δ) →
      AtMost e (g x - g y)) :
    ∀ (s : Nat) (x y : Vec R n), InBox a b x → InBox a b y →
      (∀ k : Fin n, AtMost ((s : R) * δ) (y[k] - x[k])) → AtMost ((s : R) * e) (g x - g y)
  | 0, x, y, _, _, h => by
    have : x = y := Vector.ext fun k hk => by
      obtain ⟨h₁, h₂⟩ := h ⟨k, hk⟩
      rw [Semiring.natCast_zero, Semiring.zero_mul] at h₁ h₂
      simp only [Fin.getElem_fin] at h₁ h₂
      grind
    subst this
    rw [Semiring.natCast_zero, Semiring.zero_mul]
    exact ⟨by grind, by grind⟩
  | s + 1, x, y, hx, hy, h => by
    have e₁ : ((s + 1 : Nat) : R) = (s : R) + 1 := by
      rw [Semiring.natCast_add, Semiring.natCast_one]
    rw [e₁] at h ⊢
    have hs := OrderedRing.mul_nonneg (natCast_nonneg (R := R) s) hδ
    have step : ∀ k : Fin n, ∃ z, AtMost δ (x[k] - z) ∧ AtMost ((s : R) * δ) (y[k] - z)
        ∧ ((x[k] ≤ z ∧ z ≤ y[k]) ∨ (y[k] ≤ z ∧ z ≤ x[k])) := fun k =>
      exists_step hδ hs ((h k).mono (by grind))
    let z : Vec R n := Vec.ofFn fun k => (step k).choose
    have hz : ∀ k : Fin n, z[k] = (step k).choose := fun k => Vec.getElem_ofFn _ _
    have hb : InBox a b z := fun k => by
      rw [hz]
      have hxk := hx k
      have hyk := hy k
      rcases (step k).choose_spec.2.2 with h | h
      · exact ⟨Std.le_trans hxk.1 h.1, Std.le_trans h.2 hyk.2⟩
      · exact ⟨Std.le_trans hyk.1 h.1, Std.le_trans h.2 hxk.2⟩
    have h₁ := hg x z hx hb (sqDist_le fun k => by rw [hz]; exact (step k).choose_spec.1)
    have h₂ := moved_far hδ hg s z y hb hy fun k => by rw [hz]; exact (step k).choose_spec.2.1
    have h₃ := h₁.add h₂
    have e₂ : g x - g z + (g z - g y) = g x - g y := by grind
    rw [e₂] at h₃
    exact h₃.mono (by grind)

end

variable [OrderedField R] [NaturalExp R]

/-- With M · N ≤ exp (¾ β n δ²), where M is the number of points of the net: a β of the order of a
logarithm is enough. -/
theorem attendNet_near {a b δ β ε : R} (hδ : 0 ≤ δ) (hβ : 0 ≤ β)
    (hbox : b - a ≤ (N : R) * δ) (f : Vec R n → Vec R m) (c : Fin m)
    (hf : ∀ x y, InBox a b x → InBox a b y → sqDist x y ≤ (n : R) * (δ * δ) →
      AtMost (ε / 2) ((f x)[c] - (f y)[c]))
    (hE : (((N + 1) ^ n : Nat) : R) * (N : R) ≤ exp (β * (3 / 4 * ((n : R) * (δ * δ)))))
    (X : Matrix R q_len n) (i : Fin q_len) (hX : InBox a b X[i]) :
    AtMost ε ((attendNet f a b β N X)[i][c] - (f X[i])[c]) := by
  have hδδ := OrderedRing.mul_nonneg (natCast_nonneg (R := R) n) (mul_self_nonneg δ)
  have self : sqDist X[i] X[i] = 0 := sumOver_eq_zero fun k _ => by grind
  have hε : 0 ≤ ε / 2 := (hf _ _ hX hX (self ▸ hδδ)).nonneg
  have values : ∀ k : Fin ((N + 1) ^ n),
      (Vec.map f (net a b N n))[k][c] = (f (net a b N n)[k])[c] := fun k => by
    simp only [Fin.getElem_fin, Vec.getElem_map]
  have inside : ∀ k : Fin ((N + 1) ^ n), InBox a b (net a b N n)[k] := fun k t =>
    net_inBox (Std.le_trans (hX t).1 (hX t).2) hδ hbox k t
  obtain ⟨k₀, hk₀⟩ := exists_net_near hδ hbox hX
  have total : ε / 2 + ε / 2 = ε := by grind
  rw [← total]
  refine attendPoints_near (D := (N : R) * (ε / 2)) (k₀ := k₀)
    (g := 3 / 4 * ((n : R) * (δ * δ))) hβ X _ _ hε
    (OrderedRing.mul_nonneg (natCast_nonneg N) hε) ?_ fun k => ?_
  · exact scaled hE hε
  · rw [values]
    by_cases h : sqDist X[i] (net a b N n)[k] ≤ (n : R) * (δ * δ)
    · exact .inl (swap (hf _ _ hX (inside k) h))
    · exact .inr ⟨swap (moved_far hδ (g := fun x => (f x)[c]) hf N _ _ hX (inside k) fun t =>
        sub_atMost hbox (hX t) (inside k t)), gap hk₀ h⟩

/-- **attention-approximates**: let f move by at most ε / 2 between points of the box [a, b]ⁿ whose
distance is at most δ √n, and let b − a ≤ N δ. Softmax attention over the (N + 1)ⁿ points of the
net, with the values of f there, without a mask, and with an inverse temperature β of at least
4 N (N + 1)ⁿ / (3 n δ²), is within ε of f at each point of the box. -/
theorem attention_approximates {a b δ β ε : R} (hδ : 0 ≤ δ) (hbox : b - a ≤ (N : R) * δ)
    (hβ₀ : 0 ≤ β) (hβ : 4 * (N : R) * (((N + 1) ^ n : Nat) : R) ≤ 3 * β * ((n : R) * (δ * δ)))
    (f : Vec R n → Vec R m) (c : Fin m)
    (hf : ∀ x y, InBox a b x → InBox a b y → sqDist x y ≤ (n : R) * (δ * δ) →
      AtMost (ε / 2) ((f x)[c] - (f y)[c]))
    (X : Matrix R q_len n) (i : Fin q_len) (hX : InBox a b X[i]) :
    AtMost ε ((attention β Mask.full.toScoreMod (Vec.map pointQuery X)
      (Vec.map pointKey (net a b N n)) (Vec.map f (net a b N n)))[i][c] - (f X[i])[c]) := by
  refine attendNet_near hδ hβ₀ hbox f c hf ?_ X i hX
  have := NaturalExp.one_add_le_exp (β * (3 / 4 * ((n : R) * (δ * δ))))
  have := OrderedRing.zero_lt_one (R := R)
  grind

end Attention.Claims
