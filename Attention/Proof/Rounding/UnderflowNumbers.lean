module

public import Attention.Model.Underflow
public import Attention.Proof.Rounding.Run

public section

/-! # Numbers and sums that underflow, beside those that do not

A number that is stored is one that is rounded, and a small error; what is stored of it, and a sum
of such numbers, are off by little from what might have come of the others.
Source: docs/tolerances.md, section 4. -/

namespace Attention.Proof

open Spec Model Exponential Lean.Grind

universe u v

variable {R : Type u} [OrderedField R]

/-! ## One number -/

/-- The smaller of two numbers is at most either. -/
theorem smaller_le (x y : R) : smaller x y ≤ x ∧ smaller x y ≤ y := by
  rw [smaller]
  split
  · exact ⟨Std.le_refl _, by assumption⟩
  · exact ⟨by grind, Std.le_refl _⟩

/-- A number that is at most either is at most the smaller. -/
theorem le_smaller {x y z : R} (h₁ : z ≤ x) (h₂ : z ≤ y) : z ≤ smaller x y := by
  rw [smaller]
  split <;> assumption

/-- A difference of which nothing is flushed to 0 is rounded. -/
theorem rounded_of_difference {u x y : R} (hu : 0 ≤ u) (h : Difference u 0 x y) : Rounded u x y :=
  match h with
  | .inl h => h
  | .inr ⟨⟨h₁, h₂⟩, h₃⟩ => ⟨0, .zero hu, by grind⟩

/-- A number that is stored is one that is rounded, but for an error of `ν` at most. -/
theorem stored_split {u ν x y : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) (h : Stored u ν x y) :
    ∃ θ, AtMost u θ ∧ AtMost ν (y - x * (1 + θ)) ∧ AtMost (absolute x) (y - x * (1 + θ)) := by
  obtain ⟨h₁, h₂⟩ := h
  rw [OrderedField.max_def] at h₁
  have e₀ : y - x * (1 + 0) = y - x := by grind
  split at h₁
  · exact ⟨0, .zero hu, by rwa [e₀], by rwa [e₀]⟩
  have relative : ∀ θ, AtMost u θ → y = x * (1 + θ) →
      ∃ θ, AtMost u θ ∧ AtMost ν (y - x * (1 + θ)) ∧ AtMost (absolute x) (y - x * (1 + θ)) :=
    fun θ hθ e => by
      have e₁ : y - x * (1 + θ) = 0 := by grind
      exact ⟨θ, hθ, by rw [e₁]; exact .zero hν, by rw [e₁]; exact .zero (absolute_nonneg x)⟩
  have e₁ : absolute x = max x (0 - x) := rfl
  rw [OrderedField.max_def] at e₁
  obtain ⟨h₃, h₄⟩ := h₁
  by_cases hx : x = 0
  · refine relative 0 (.zero hu) ?_
    have e₂ : absolute x = 0 := by
      rw [hx]
      exact absolute_of_nonneg (Std.le_refl _)
    rw [e₂, Semiring.mul_zero] at h₃ h₄
    grind
  refine relative ((y - x) / x) ?_ ?_
  · by_cases pos : 0 < x
    · rw [absolute_of_nonneg (Std.le_of_lt pos)] at h₃ h₄
      refine ⟨?_, ?_⟩
      · rw [OrderedField.le_div_iff pos]
        grind
      · rw [OrderedField.div_le_iff pos]
        grind
    · have e₂ : absolute x = -x := by
        rw [e₁]
        split <;> grind
      have e₃ : (y - x) / x = (x - y) / -x := by
        rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Field.inv_neg]
        grind
      have neg : 0 < -x := by grind
      rw [e₂] at h₃ h₄
      rw [e₃]
      refine ⟨?_, ?_⟩
      · rw [OrderedField.le_div_iff neg]
        grind
      · rw [OrderedField.div_le_iff neg]
        grind
  · have := OrderedField.mul_div_cancel (b := x) hx (y - x)
    grind

private theorem whole_or_part {σ η d w w₀ e : R} (hσ : 0 ≤ σ) (hd₀ : 0 ≤ d) (hw : w ≤ w₀ + d)
    (hw₀ : 0 ≤ w₀) (h₁ : e ≤ max (σ * w) η) (h₂ : e ≤ w) :
    e ≤ smaller w₀ (max (σ * w₀) η) + d := by
  have i₁ : η ≤ max (σ * w₀) η ∧ σ * w₀ ≤ max (σ * w₀) η := by
    rw [OrderedField.max_def]
    split <;> exact ⟨by grind, by grind⟩
  have i₂ : e ≤ max (σ * w₀) η + d := by
    rw [OrderedField.max_def] at h₁
    split at h₁
    · grind
    by_cases h : σ ≤ 1
    · have j₁ := OrderedRing.mul_le_mul_of_nonneg_left hw hσ
      have j₂ := OrderedRing.mul_le_mul_of_nonneg_right h hd₀
      grind
    · have := OrderedRing.mul_le_mul_of_nonneg_right (a := 1) (b := σ) (by grind) hw₀
      grind
  generalize max (σ * w₀) η = a at *
  rw [smaller]
  split <;> grind

/-- Where a weight is off by `d` when it is stored, what is stored of it is off by 2 d from
something that might have been stored of the weight itself. -/
theorem stored_shift {σ η d w w₀ w' : R} (hσ : 0 ≤ σ) (hη : 0 ≤ η) (hw : 0 ≤ w) (hw₀ : 0 ≤ w₀)
    (hd : AtMost d (w - w₀)) (h : Stored σ η w w') :
    ∃ w₀', Stored σ η w₀ w₀' ∧ AtMost (2 * d) (w' - w₀') := by
  obtain ⟨h₁, h₂⟩ := h
  rw [absolute_of_nonneg hw] at h₁ h₂
  have hd₀ := hd.nonneg
  obtain ⟨hd₁, hd₂⟩ := hd
  have k₁ := whole_or_part (e := w' - w) hσ hd₀ (by grind) hw₀ h₁.2 h₂.2
  have neg : ∀ {a : R}, -a ≤ w' - w → -(w' - w) ≤ a := fun _ => by grind
  have k₂ := whole_or_part (w := w) hσ hd₀ (by grind) hw₀ (neg h₁.1) (neg h₂.1)
  obtain ⟨i₁, i₂⟩ := smaller_le w₀ (max (σ * w₀) η)
  have i₃ : 0 ≤ smaller w₀ (max (σ * w₀) η) := by
    refine le_smaller hw₀ ?_
    rw [OrderedField.max_def]
    split
    · exact hη
    · exact OrderedRing.mul_nonneg hσ hw₀
  have found : ∀ e₀ : R, AtMost (smaller w₀ (max (σ * w₀) η)) e₀ → AtMost d (w' - w - e₀) →
      ∃ w₀', Stored σ η w₀ w₀' ∧ AtMost (2 * d) (w' - w₀') := fun e₀ a₁ a₂ => by
    refine ⟨w₀ + e₀, ?_, ?_⟩
    · rw [Stored, absolute_of_nonneg hw₀, show w₀ + e₀ - w₀ = e₀ by grind]
      exact ⟨a₁.mono i₂, a₁.mono i₁⟩
    · have := a₂.add (⟨hd₁, hd₂⟩ : AtMost d (w - w₀))
      rw [show w' - w - e₀ + (w - w₀) = w' - (w₀ + e₀) by grind] at this
      exact this.mono (by grind)
  clear h₁ h₂
  generalize smaller w₀ (max (σ * w₀) η) = b at *
  by_cases c₁ : w' - w ≤ b
  · by_cases c₂ : -b ≤ w' - w
    · exact found (w' - w) ⟨c₂, c₁⟩ ⟨by grind, by grind⟩
    · exact found (-b) ⟨by grind, by grind⟩ ⟨by grind, by grind⟩
  · exact found b ⟨by grind, by grind⟩ ⟨by grind, by grind⟩

/-- A number is what five roundings may make of it. -/
theorem roundedTimes_itself {u x : R} (hu : 0 ≤ u) : RoundedTimes u 5 x x := by
  have rounded : Rounded u x x := ⟨0, .zero hu, by grind⟩
  exact ⟨_, ⟨_, ⟨_, ⟨_, ⟨_, rfl, rounded⟩, rounded⟩, rounded⟩, rounded⟩, rounded⟩

/-- A factor of what is not negative, where the other is at least 1. -/
theorem nonneg_of_mul {a T V : R} (ha : 0 ≤ a) (hT : 1 ≤ T) (h : a ≤ T * V) : 0 ≤ V := by
  refine Classical.byContradiction fun hn => ?_
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hT (c := -V) (by grind)
  have := OrderedRing.zero_lt_one (R := R)
  grind

/-! ## Sums -/

/-- `c` is what the additions of some things lose at most, of which each loses `ν`: one less than
there are things that are not free. -/
structure Flushed {α : Type v} (ν : R) (free : α → Prop) (parts : List α) (c : R) : Prop where
  /-- Not negative. -/
  nonneg : 0 ≤ c
  /-- Nothing is lost where all are free. -/
  nothing : (∀ part ∈ parts, free part) → c = 0
  /-- With `ν` more it is no larger than a sum that has `ν` for each that is not free. -/
  counted : (∃ part ∈ parts, ¬free part) → ∀ t : α → R, (∀ part ∈ parts, 0 ≤ t part) →
    (∀ part ∈ parts, ¬free part → ν ≤ t part) → c + ν ≤ sumOver t parts

/-- It is no larger than such a sum. -/
theorem Flushed.le {α : Type v} {ν c : R} {free : α → Prop} {parts : List α} (hν : 0 ≤ ν)
    (h : Flushed ν free parts c) {t : α → R} (ht : ∀ part ∈ parts, 0 ≤ t part)
    (ht' : ∀ part ∈ parts, ¬free part → ν ≤ t part) : c ≤ sumOver t parts := by
  by_cases some : ∃ part ∈ parts, ¬free part
  · have := h.counted some t ht ht'
    grind
  · rw [h.nothing fun part hp => Classical.byContradiction fun hn => some ⟨part, hp, hn⟩]
    exact sumOver_nonneg ht

/-- So it is where each loses more. -/
theorem Flushed.share {α : Type v} {ν s c : R} {free : α → Prop} {parts : List α} (hs : 0 < s)
    (hs' : s ≤ 1) (h : Flushed ν free parts c) : Flushed (ν / s) free parts c := by
  refine ⟨h.nonneg, h.nothing, fun some t ht ht' => ?_⟩
  have e := OrderedField.mul_div_cancel (b := s) (by grind) ν
  have hs₀ := Std.le_of_lt hs
  have h₁ := h.counted some (fun part => s * t part)
    (fun part hp => OrderedRing.mul_nonneg hs₀ (ht part hp)) fun part hp hf => by
      have := OrderedRing.mul_le_mul_of_nonneg_left (ht' part hp hf) hs₀
      rwa [e] at this
  rw [sumOver_mul_left] at h₁
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hs' h.nonneg
  generalize sumOver t parts = S at *
  generalize ν / s = T at *
  refine Classical.byContradiction fun hn => ?_
  have := OrderedRing.mul_pos hs (b := c + T - S) (by grind)
  grind

/-- Nothing is lost of additions that lose nothing. -/
theorem Flushed.eq_zero {α : Type v} {c : R} {free : α → Prop} {parts : List α}
    (h : Flushed 0 free parts c) : c = 0 := by
  have h₁ := h.le (t := fun _ => 0) (Std.le_refl _) (fun _ _ => Std.le_refl _)
    fun _ _ _ => Std.le_refl _
  rw [sumOver_const, Semiring.mul_zero] at h₁
  have := h.nonneg
  grind

/-- Of two lists of things together. -/
private theorem flushed_append {α : Type v} {ν cx cy n : R} {free : α → Prop} {xs ys : List α}
    (hx : Flushed ν free xs cx) (hy : Flushed ν free ys cy) (hn : 0 ≤ n)
    (hn' : (∃ a ∈ xs, ¬free a) → (∃ a ∈ ys, ¬free a) → n ≤ ν)
    (hn₀ : ¬((∃ a ∈ xs, ¬free a) ∧ ∃ a ∈ ys, ¬free a) → n = 0) :
    Flushed ν free (xs ++ ys) (cx + cy + n) := by
  have whole : ∀ zs : List α, (¬∃ a ∈ zs, ¬free a) → ∀ a ∈ zs, free a := fun zs h a ha =>
    Classical.byContradiction fun hn => h ⟨a, ha, hn⟩
  have i₁ := hx.nonneg
  have i₂ := hy.nonneg
  refine ⟨by grind, fun h => ?_, fun h t ht ht' => ?_⟩
  · have e₁ := hx.nothing fun a ha => h a (by simp [ha])
    have e₂ := hy.nothing fun a ha => h a (by simp [ha])
    have e₃ := hn₀ fun ⟨⟨a, ha, hf⟩, _⟩ => hf (h a (by simp [ha]))
    grind
  · rw [sumOver_append]
    have tx : ∀ a ∈ xs, 0 ≤ t a := fun a ha => ht a (by simp [ha])
    have ty : ∀ a ∈ ys, 0 ≤ t a := fun a ha => ht a (by simp [ha])
    by_cases sx : ∃ a ∈ xs, ¬free a
    · have j₁ := hx.counted sx t tx fun a ha => ht' a (by simp [ha])
      by_cases sy : ∃ a ∈ ys, ¬free a
      · have j₂ := hy.counted sy t ty fun a ha => ht' a (by simp [ha])
        have := hn' sx sy
        grind
      · have e₁ := hy.nothing (whole _ sy)
        have e₂ := hn₀ fun h => sy h.2
        have := sumOver_nonneg ty
        grind
    · have e₁ := hx.nothing (whole _ sx)
      have e₂ := hn₀ fun h => sx h.1
      have := sumOver_nonneg tx
      obtain ⟨a, ha, hf⟩ := h
      have ha' : a ∈ ys := (List.mem_append.mp ha).resolve_left fun h => sx ⟨a, h, hf⟩
      have j₂ := hy.counted ⟨a, ha', hf⟩ t ty fun a ha => ht' a (by simp [ha])
      grind

/-- The sum of other numbers of the same things, added in the same order with the same errors, but
for what is lost of sums below the normal numbers. -/
theorem sumOf_companion {α : Type v} {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {free : α → Prop}
    {f g e : α → R} {k : Nat} {parts : List α} {z : R} (h : SumOf u ν free f k parts z)
    (he : ∀ part ∈ parts, AtMost (e part) (f part - g part))
    (hm : ∀ part ∈ parts, free part → g part = 0) :
    ∃ z₀ c, RoundedSum u k (parts.map g) z₀ ∧ Flushed ν free parts c ∧
      AtMost ((1 + u) ^ k * (sumOver e parts + c)) (z - z₀) := by
  have grow : ∀ k : Nat, 1 ≤ (1 + u) ^ k := fun k => OrderedField.one_le_pow (by grind) k
  -- Two sums that are added.
  have added : ∀ {k : Nat} {xs ys : List α} {x x' y y' x₀ y₀ cx cy n z : R},
      RoundedSum u k (xs.map g) x₀ → RoundedSum u k (ys.map g) y₀ →
      AtMost ((1 + u) ^ k * (sumOver e xs + cx)) (x - x₀) →
      AtMost ((1 + u) ^ k * (sumOver e ys + cy)) (y - y₀) → Rounded u x x' → Rounded u y y' →
      AtMost n (z - (x' + y')) → ∃ z₀, RoundedSum u (k + 1) ((xs ++ ys).map g) z₀ ∧
        AtMost ((1 + u) ^ (k + 1) * (sumOver e (xs ++ ys) + (cx + cy + n))) (z - z₀) := by
    intro k xs ys x x' y y' x₀ y₀ cx cy n z hx₁ hy₁ hx₂ hy₂ hx' hy' hz
    obtain ⟨θ, hθ, rfl⟩ := hx'
    obtain ⟨τ, hτ, rfl⟩ := hy'
    refine ⟨x₀ * (1 + θ) + y₀ * (1 + τ), ?_, ?_⟩
    · rw [List.map_append]
      exact .add hx₁ hy₁ ⟨θ, hθ, rfl⟩ ⟨τ, hτ, rfl⟩
    · have hθ' : AtMost (1 + u) (1 + θ) := ⟨by have := hθ.1; grind, by have := hθ.2; grind⟩
      have hτ' : AtMost (1 + u) (1 + τ) := ⟨by have := hτ.1; grind, by have := hτ.2; grind⟩
      have h₃ := ((hx₂.mul hθ').add (hy₂.mul hτ')).add hz
      have i := OrderedRing.mul_le_mul_of_nonneg_right (grow (k + 1)) hz.nonneg
      rw [sumOver_append]
      rw [Semiring.pow_succ] at i ⊢
      have e₁ : (x - x₀) * (1 + θ) + (y - y₀) * (1 + τ) + (z - (x * (1 + θ) + y * (1 + τ)))
          = z - (x₀ * (1 + θ) + y₀ * (1 + τ)) := by grind
      rw [e₁] at h₃
      refine h₃.mono ?_
      generalize (1 + u) ^ k = G at *
      clear h₃ hx₂ hy₂ hz
      grind
  induction h with
  | @nil k =>
    refine ⟨0, 0, .nil, ⟨Std.le_refl _, fun _ => rfl, fun h => by simp at h⟩, ?_⟩
    rw [sumOver_nil, Semiring.add_zero, Semiring.mul_zero]
    exact ⟨by grind, by grind⟩
  | @one k part =>
    refine ⟨g part, 0, .one, ⟨Std.le_refl _, fun _ => rfl, fun h t _ ht => ?_⟩,
      (he part (by simp)).mono ?_⟩
    · obtain ⟨p, hp, hn⟩ := h
      rw [List.mem_singleton] at hp
      subst hp
      have := ht p (by simp) hn
      rw [sumOver_cons, sumOver_nil]
      grind
    · have := OrderedRing.mul_le_mul_of_nonneg_right (grow k) (he part (by simp)).nonneg
      rw [sumOver_cons, sumOver_nil]
      grind
  | @free k part parts z hpart _ ih =>
    obtain ⟨z₀, c, h₁, h₂, h₃⟩ := ih (fun x hx => he x (by simp [hx]))
      fun x hx => hm x (by simp [hx])
    refine ⟨z₀, c, ?_, ⟨h₂.nonneg, fun h => h₂.nothing fun x hx => h x (by simp [hx]), ?_⟩,
      h₃.mono ?_⟩
    · rw [List.map_cons, hm part (by simp) hpart]
      exact .zero h₁
    · intro h t ht ht'
      obtain ⟨p, hp, hn⟩ := h
      have hp' : p ∈ parts := (List.mem_cons.mp hp).resolve_left fun h => hn (h ▸ hpart)
      have := h₂.counted ⟨p, hp', hn⟩ t (fun x hx => ht x (by simp [hx]))
        fun x hx => ht' x (by simp [hx])
      have := ht part (by simp)
      rw [sumOver_cons]
      grind
    · rw [sumOver_cons]
      have := OrderedRing.mul_nonneg (a := (1 + u) ^ k) (by have := grow k; grind)
        (he part (by simp)).nonneg
      grind
  | @add k xs ys x x' y y' _ _ hx' hy' ihx ihy =>
    obtain ⟨x₀, cx, hx₁, fx, hx₂⟩ := ihx (fun x hx => he x (by simp [hx]))
      fun x hx => hm x (by simp [hx])
    obtain ⟨y₀, cy, hy₁, fy, hy₂⟩ := ihy (fun x hx => he x (by simp [hx]))
      fun x hx => hm x (by simp [hx])
    obtain ⟨z₀, h₁, h₂⟩ := added (n := 0) hx₁ hy₁ hx₂ hy₂ hx' hy' (z := x' + y')
      ⟨by grind, by grind⟩
    exact ⟨z₀, _, h₁, flushed_append fx fy (Std.le_refl _) (fun _ _ => hν) fun _ => rfl, h₂⟩
  | @tiny k xs ys x x' y y' z _ _ sx sy hx' hy' hz ihx ihy =>
    obtain ⟨x₀, cx, hx₁, fx, hx₂⟩ := ihx (fun x hx => he x (by simp [hx]))
      fun x hx => hm x (by simp [hx])
    obtain ⟨y₀, cy, hy₁, fy, hy₂⟩ := ihy (fun x hx => he x (by simp [hx]))
      fun x hx => hm x (by simp [hx])
    obtain ⟨z₀, h₁, h₂⟩ := added hx₁ hy₁ hx₂ hy₂ hx' hy' hz
    exact ⟨z₀, _, h₁, flushed_append fx fy hν (fun _ _ => Std.le_refl _)
      fun h => absurd ⟨sx, sy⟩ h, h₂⟩
  | @permute k xs ys z _ hp ih =>
    obtain ⟨z₀, c, h₁, h₂, h₃⟩ := ih (fun x hx => he x (hp.mem_iff.mp hx))
      fun x hx => hm x (hp.mem_iff.mp hx)
    exact ⟨z₀, c, .permute h₁ (hp.map g), ⟨h₂.nonneg,
      fun h => h₂.nothing fun x hx => h x (hp.mem_iff.mp hx), fun ⟨p, hp', hn⟩ t ht ht' => by
        rw [← sumOver_perm _ hp]
        exact h₂.counted ⟨p, hp.mem_iff.mpr hp', hn⟩ t (fun x hx => ht x (hp.mem_iff.mp hx))
          fun x hx => ht' x (hp.mem_iff.mp hx)⟩, by rwa [← sumOver_perm _ hp]⟩

/-- A sum that is rounded, with the numbers themselves, but for what is lost of it below the normal
numbers. -/
theorem sumOf_near {α : Type v} {u ν : R} (hu : 0 ≤ u) (hν : 0 ≤ ν) {free : α → Prop} {f : α → R}
    {k : Nat} {parts : List α} {z : R} (h : SumOf u ν free f k parts z)
    (hm : ∀ part ∈ parts, free part → f part = 0) :
    ∃ z₀ c, RoundedSum u k (parts.map f) z₀ ∧ Flushed ν free parts c ∧
      AtMost ((1 + u) ^ k * c) (z - z₀) := by
  obtain ⟨z₀, c, h₁, h₂, h₃⟩ := sumOf_companion (e := fun _ => 0) hu hν h
    (fun part _ => ⟨by grind, by grind⟩) hm
  rw [sumOver_const, Semiring.mul_zero, show (0 : R) + c = c by grind] at h₃
  exact ⟨z₀, c, h₁, h₂, h₃⟩

/-- A rounded sum is no larger than the sizes of its numbers, and its roundings. -/
theorem roundedSum_size {u : R} (hu : 0 ≤ u) {α : Type v} {g s : α → R} {k : Nat}
    {xs : List α} {z : R} (h : RoundedSum u k (xs.map g) z)
    (hs : ∀ x ∈ xs, AtMost (s x) (g x)) : AtMost ((1 + u) ^ k * sumOver s xs) z := by
  have h₁ := roundedSum_map_error (c := 0) (e := g) (b := s) hu h
    (fun x hx => by
      rw [show g x - g x = 0 by grind, Semiring.zero_mul]
      exact .zero (Std.le_refl _)) hs
  have h₂ := h₁.add (sumOver_atMost hs)
  rw [show z - sumOver g xs + sumOver g xs = z by grind] at h₂
  refine h₂.mono ?_
  generalize (1 + u) ^ k = G
  clear h₁ h₂
  grind

end Attention.Proof
