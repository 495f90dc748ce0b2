module

public import Attention.Algebra.Magnitude

public section

/-! # Cauchy sequences of rational numbers

The real numbers are constructed in the files of this folder, one step each:

- `Cauchy`: sequences of rationals, when one is below another, and that sums and products of Cauchy
  sequences are Cauchy sequences;
- `Ring`: a real number is a Cauchy sequence, two of them being the same if each is below the
  other; sums and products;
- `Order`: the order is linear and agrees with sums and products;
- `Field`: inverses; `OrderedField Real`; every real number lies below a natural one;
- `Squarings`: the rational numbers (1 + q / 2^k)^(2^k), and how little they change with q and k;
- `Exponential`: exp x is their sequence, with x's k-th rational for q; `NaturalExp Real`.
  (1 + a/N)^N · (1 + b/N)^N = (1 + (a + b + ab/N)/N)^N, so sums become products because exp does
  not depend on the sequence that stands for a + b;
- `Supremum`: a set with an upper bound has a least one; `Logarithm`: so positive numbers have
  logarithms, and numbers that are not negative roots; `Compact`: what holds near each number of an
  interval holds of the interval;
- `Exact`: the exact model within the real numbers.

Nothing is run over this model: it shows that what is proved of every ordered field with a natural
exponential is proved of something. -/

namespace Attention.Model

open Lean.Grind

/-- From some index on. -/
@[expose] def Eventually (P : Nat → Prop) : Prop := ∃ N, ∀ n, N ≤ n → P n

namespace Eventually

variable {P Q : Nat → Prop}

/-- A consequence of a property that holds from some index on holds from some index on. -/
theorem mono (h : Eventually P) (hPQ : ∀ n, P n → Q n) : Eventually Q :=
  h.elim fun N hN => ⟨N, fun n hn => hPQ n (hN n hn)⟩

/-- Two things hold together from the larger of their indices on. -/
theorem and (hP : Eventually P) (hQ : Eventually Q) : Eventually fun n => P n ∧ Q n :=
  hP.elim fun N hN => hQ.elim fun M hM =>
    ⟨max N M, fun n hn => ⟨hN n (by omega), hM n (by omega)⟩⟩

/-- A property that always holds does so from some index on. -/
theorem of_forall (h : ∀ n, P n) : Eventually P := ⟨0, fun n _ => h n⟩

end Eventually

/-- A sequence whose members come as close to each other as one likes. -/
@[expose] def IsCauchy (f : Nat → Rat) : Prop :=
  ∀ ε, 0 < ε → ∃ N, ∀ m n, N ≤ m → N ≤ n → AtMost ε (f m - f n)

/-- `f` is below `g` but for as little as one likes. -/
@[expose] def Below (f g : Nat → Rat) : Prop := ∀ ε, 0 < ε → Eventually fun n => f n ≤ g n + ε

/-- The difference of `f` and `g` becomes as small as one likes. -/
@[expose] def Close (f g : Nat → Rat) : Prop :=
  ∀ ε, 0 < ε → Eventually fun n => AtMost ε (f n - g n)

/-- A product with a given factor is as small as one likes, if the other factor is small. -/
theorem exists_mul_le {C ε : Rat} (hC : 0 ≤ C) (hε : 0 < ε) : ∃ δ, 0 < δ ∧ C * δ ≤ ε := by
  have e := OrderedField.mul_div_cancel (b := C + 1) (by grind) ε
  have hδ : 0 < ε / (C + 1) := by
    refine Classical.byContradiction fun h => ?_
    have := OrderedRing.mul_nonneg (a := C + 1) (b := -(ε / (C + 1))) (by grind) (by grind)
    grind
  exact ⟨_, hδ, by grind⟩

/-- Every rational number is at most a natural one. -/
theorem exists_le_natCast (q : Rat) : ∃ N : Nat, q ≤ N := by
  refine ⟨(q.floor + 1).toNat, Std.le_trans (Std.le_of_lt (Rat.lt_floor_add_one q)) ?_⟩
  rw [← Rat.intCast_natCast]
  exact Rat.intCast_le_intCast.mpr (Int.self_le_toNat _)

/-- Factors that are close have products that are. -/
theorem atMost_mul_sub {A B δ a a' b b' : Rat} (ha : AtMost A a) (hb : AtMost B b')
    (hab : AtMost δ (a - a')) (hab' : AtMost δ (b - b')) :
    AtMost ((A + B) * δ) (a * b - a' * b') := by
  have h := (ha.mul hab').add (hb.mul hab)
  have e₁ : A * δ + B * δ = (A + B) * δ := by grind
  have e₂ : a * (b - b') + b' * (a - a') = a * b - a' * b' := by grind
  rwa [e₁, e₂] at h

namespace Below

variable {f g h : Nat → Rat}

/-- A sequence that is nowhere above another is below it. -/
theorem of_le (hfg : ∀ n, f n ≤ g n) : Below f g := fun _ _ => .of_forall fun n => by
  have := hfg n
  grind

/-- To be below is transitive. -/
theorem trans (hfg : Below f g) (hgh : Below g h) : Below f h := fun ε hε =>
  ((hfg (ε / 2) (by grind)).and (hgh (ε / 2) (by grind))).mono fun n ⟨h₁, h₂⟩ => by grind

/-- The same may be added. -/
theorem add_right (hfg : Below f g) : Below (fun n => f n + h n) (fun n => g n + h n) :=
  fun ε hε => (hfg ε hε).mono fun n h₁ => by grind

/-- Each below the other: close to each other. -/
theorem close (hfg : Below f g) (hgf : Below g f) : Close f g := fun ε hε =>
  ((hfg ε hε).and (hgf ε hε)).mono fun n ⟨h₁, h₂⟩ => ⟨by grind, by grind⟩

/-- A sequence that is not below is above by some distance, if both are Cauchy sequences. -/
theorem exists_of_not (hf : IsCauchy f) (hg : IsCauchy g) (hn : ¬ Below g f) :
    ∃ ε, 0 < ε ∧ Eventually fun n => f n + ε ≤ g n := by
  refine Classical.byContradiction fun hc => hn fun ε hε => ?_
  obtain ⟨N, hN⟩ := hf (ε / 3) (by grind)
  obtain ⟨M, hM⟩ := hg (ε / 3) (by grind)
  refine Classical.byContradiction fun hc' => hc ⟨ε / 3, by grind, max N M, fun m hm => ?_⟩
  have ⟨n, hn⟩ : ∃ n, max N M ≤ n ∧ ¬ g n ≤ f n + ε := Classical.byContradiction fun h =>
    hc' ⟨max N M, fun n hn => Classical.byContradiction fun h' => h ⟨n, hn, h'⟩⟩
  have h₁ := (hN m n (by omega) (by omega)).2
  have h₂ := (hM m n (by omega) (by omega)).1
  grind

/-- A sequence that is above by some distance is not below. -/
theorem not_of_exists (h : ∃ ε, 0 < ε ∧ Eventually fun n => f n + ε ≤ g n) : ¬ Below g f := by
  obtain ⟨ε, hε, h⟩ := h
  intro hb
  obtain ⟨N, hN⟩ := h.and (hb (ε / 2) (by grind))
  have := hN N (Nat.le_refl N)
  grind

end Below

namespace Close

variable {f f' g g' : Nat → Rat}

/-- Close: below. -/
theorem below (h : Close f g) : Below f g := fun ε hε => (h ε hε).mono fun n h₁ => by
  have := h₁.2
  grind

/-- To be close is symmetric. -/
theorem symm (h : Close f g) : Close g f := fun ε hε => (h ε hε).mono fun n ⟨h₁, h₂⟩ =>
  ⟨by grind, by grind⟩

/-- Sequences that are the same are close. -/
theorem of_eq (h : ∀ n, f n = g n) : Close f g := fun ε hε => .of_forall fun n => by
  have := h n
  exact ⟨by grind, by grind⟩

/-- Sums of what is close are close. -/
theorem add (hf : Close f f') (hg : Close g g') :
    Close (fun n => f n + g n) (fun n => f' n + g' n) := fun ε hε =>
  ((hf (ε / 2) (by grind)).and (hg (ε / 2) (by grind))).mono fun n ⟨h₁, h₂⟩ => by
    have h := h₁.add h₂
    exact ⟨by have := h.1; grind, by have := h.2; grind⟩

/-- Negatives of what is close are close. -/
theorem neg (hf : Close f f') : Close (fun n => -f n) (fun n => -f' n) := fun ε hε =>
  (hf ε hε).mono fun n ⟨h₁, h₂⟩ => ⟨by grind, by grind⟩

end Close

namespace IsCauchy

variable {f f' g g' : Nat → Rat}

/-- A constant sequence. -/
theorem const (q : Rat) : IsCauchy fun _ => q := fun ε hε =>
  ⟨0, fun _ _ _ _ => ⟨by grind, by grind⟩⟩

/-- A Cauchy sequence is bounded from some index on. -/
theorem bounded (hf : IsCauchy f) : ∃ B, 0 < B ∧ Eventually fun n => AtMost B (f n) := by
  obtain ⟨N, hN⟩ := hf 1 (by grind)
  rcases Std.le_total (a := 0) (b := f N) with h₀ | h₀
  · refine ⟨f N + 1, by grind, N, fun n hn => ?_⟩
    have ⟨h₁, h₂⟩ := hN n N hn (Nat.le_refl N)
    exact ⟨by grind, by grind⟩
  · refine ⟨-f N + 1, by grind, N, fun n hn => ?_⟩
    have ⟨h₁, h₂⟩ := hN n N hn (Nat.le_refl N)
    exact ⟨by grind, by grind⟩

/-- A sum of Cauchy sequences. -/
theorem add (hf : IsCauchy f) (hg : IsCauchy g) : IsCauchy fun n => f n + g n := fun ε hε => by
  obtain ⟨N, hN⟩ := hf (ε / 2) (by grind)
  obtain ⟨M, hM⟩ := hg (ε / 2) (by grind)
  refine ⟨max N M, fun m n hm hn => ?_⟩
  have h := (hN m n (by omega) (by omega)).add (hM m n (by omega) (by omega))
  exact ⟨by have := h.1; grind, by have := h.2; grind⟩

/-- The negative of a Cauchy sequence. -/
theorem neg (hf : IsCauchy f) : IsCauchy fun n => -f n := fun ε hε => by
  obtain ⟨N, hN⟩ := hf ε hε
  refine ⟨N, fun m n hm hn => ?_⟩
  have h := hN m n hm hn
  exact ⟨by have := h.2; grind, by have := h.1; grind⟩

/-- A product of Cauchy sequences. -/
theorem mul (hf : IsCauchy f) (hg : IsCauchy g) : IsCauchy fun n => f n * g n := fun ε hε => by
  obtain ⟨A, hA, N₁, h₁⟩ := hf.bounded
  obtain ⟨B, hB, N₂, h₂⟩ := hg.bounded
  obtain ⟨δ, hδ, hle⟩ := exists_mul_le (C := A + B) (by grind) hε
  obtain ⟨N₃, h₃⟩ := hf δ hδ
  obtain ⟨N₄, h₄⟩ := hg δ hδ
  exact ⟨max (max N₁ N₂) (max N₃ N₄), fun m n hm hn =>
    (atMost_mul_sub (h₁ m (by omega)) (h₂ n (by omega)) (h₃ m n (by omega) (by omega))
      (h₄ m n (by omega) (by omega))).mono hle⟩

/-- A sequence close to a Cauchy sequence is one. -/
theorem of_close (hf : IsCauchy f) (h : Close g f) : IsCauchy g := fun ε hε => by
  obtain ⟨N, hN⟩ := hf (ε / 3) (by grind)
  obtain ⟨M, hM⟩ := h (ε / 3) (by grind)
  refine ⟨max N M, fun m n hm hn => ?_⟩
  have ⟨a₁, a₂⟩ := hN m n (by omega) (by omega)
  have ⟨b₁, b₂⟩ := hM m (by omega)
  have ⟨c₁, c₂⟩ := hM n (by omega)
  exact ⟨by grind, by grind⟩

end IsCauchy

/-- Products of what is close are close, if the factors are bounded from some index on. -/
theorem Close.mul {f f' g g' : Nat → Rat} (hf : IsCauchy f) (hg : IsCauchy g') (h : Close f f')
    (h' : Close g g') : Close (fun n => f n * g n) (fun n => f' n * g' n) := fun ε hε => by
  obtain ⟨A, hA, h₁⟩ := hf.bounded
  obtain ⟨B, hB, h₂⟩ := hg.bounded
  obtain ⟨δ, hδ, hle⟩ := exists_mul_le (C := A + B) (by grind) hε
  exact ((h₁.and h₂).and ((h δ hδ).and (h' δ hδ))).mono fun n ⟨⟨a, b⟩, c, d⟩ =>
    (atMost_mul_sub a b c d).mono hle

end Attention.Model
