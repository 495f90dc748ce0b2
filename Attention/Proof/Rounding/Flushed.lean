module

public import Attention.Model.Underflow
import Attention.Proof.Rounding.Dot
import Attention.Proof.Rounding.UnderflowNumbers

public section

/-! # Differences of scores that are flushed to 0

`flushed_run`: a run in which differences of `μ` at most are flushed to 0 is one in which they are
not, of keys whose computed scores are a little larger. A flushed difference of a score and the
reference point is that of a score that is the reference point; a flushed rise of the reference
point is none, of keys whose scores rise by as much.
Source: docs/tolerances.md, section 1. -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u v w

variable {R : Type u} [OrderedField R]

/-- A sum of the same numbers of other things. -/
theorem sumOf_map {α : Type v} {β : Type w} {u ν : R} {free : α → Prop} {free' : β → Prop}
    {f : α → R} {g : β → R} (c : α → β) {k : Nat} {xs : List α} {z : R}
    (h : SumOf u ν free f k xs z) (hf : ∀ a ∈ xs, g (c a) = f a)
    (hfree : ∀ a ∈ xs, free' (c a) ↔ free a) : SumOf u ν free' g k (xs.map c) z := by
  have some : ∀ {xs : List α}, (∀ a ∈ xs, free' (c a) ↔ free a) → (∃ a ∈ xs, ¬free a) →
      ∃ b ∈ xs.map c, ¬free' b := fun h ⟨a, ha, hn⟩ =>
    ⟨c a, List.mem_map_of_mem ha, fun h' => hn ((h a ha).mp h')⟩
  induction h with
  | nil => exact .nil
  | @one k a =>
    rw [← hf a (by simp)]
    exact .one
  | @free k a as z ha _ ih =>
    exact .free ((hfree a (by simp)).mpr ha)
      (ih (fun b hb => hf b (by simp [hb])) fun b hb => hfree b (by simp [hb]))
  | @add k xs ys x x' y y' _ _ hx hy ihx ihy =>
    rw [List.map_append]
    exact .add (ihx (fun b hb => hf b (by simp [hb])) fun b hb => hfree b (by simp [hb]))
      (ihy (fun b hb => hf b (by simp [hb])) fun b hb => hfree b (by simp [hb])) hx hy
  | @tiny k xs ys x x' y y' z _ _ sx sy hx hy hz ihx ihy =>
    rw [List.map_append]
    exact .tiny (ihx (fun b hb => hf b (by simp [hb])) fun b hb => hfree b (by simp [hb]))
      (ihy (fun b hb => hf b (by simp [hb])) fun b hb => hfree b (by simp [hb]))
      (some (fun b hb => hfree b (by simp [hb])) sx)
      (some (fun b hb => hfree b (by simp [hb])) sy) hx hy hz
  | permute _ hp ih =>
    exact .permute (ih (fun b hb => hf b (hp.mem_iff.mp hb)) fun b hb =>
      hfree b (hp.mem_iff.mp hb)) (hp.map c)

/-- A key whose computed score is larger by a number. -/
@[expose] def raised (k : ComputedKey R × R) : ComputedKey R :=
  { k.1 with computed := k.1.computed + k.2 }

/-- A part of other keys. -/
@[expose] def withKeys (part : Part R) (keys : List (ComputedKey R)) : Part R :=
  { part with keys := keys }

/-- The parts of a run, of keys whose computed scores are larger. -/
private theorem partSum_raised {u ν : R} {f : Part R → R} (hf : ∀ part ks, f (withKeys part ks)
    = f part) {moved : Part R → List (ComputedKey R × R)} {k : Nat} {parts : List (Part R)} {z : R}
    (h : PartSum u ν f k parts z) (keys : ∀ part ∈ parts, part.keys = (moved part).map (·.1)) :
    PartSum u ν f k (parts.map fun part => withKeys part ((moved part).map raised)) z := by
  refine sumOf_map _ h (fun part _ => hf _ _) fun part hp => ?_
  rw [keys part hp]
  simp only [withKeys, List.mem_map]
  constructor
  · rintro h' _ ⟨key, hk, rfl⟩
    exact h' (raised key) ⟨key, hk, rfl⟩
  · rintro h' _ ⟨key, hk, rfl⟩
    exact h' key.1 ⟨key, hk, rfl⟩

private theorem flatMap_raised {moved : Part R → List (ComputedKey R × R)} {parts : List (Part R)} :
    (parts.map fun part => withKeys part ((moved part).map raised)).flatMap (·.keys)
      = (parts.flatMap moved).map raised := by
  induction parts with
  | nil => rfl
  | cons part parts ih =>
    rw [List.map_cons, List.flatMap_cons, List.flatMap_cons, List.map_append, ih]
    rfl

omit [OrderedField R] in
private theorem flatMap_moved {moved : Part R → List (ComputedKey R × R)} {parts : List (Part R)}
    (keys : ∀ part ∈ parts, part.keys = (moved part).map (·.1)) :
    parts.flatMap (·.keys) = (parts.flatMap moved).map (·.1) := by
  induction parts with
  | nil => rfl
  | cons part parts ih =>
    rw [List.flatMap_cons, List.flatMap_cons, List.map_append, keys part (by simp),
      ih fun part hp => keys part (by simp [hp])]

variable [Exp R R] {p : Precision R} {ν μ m : R}

/-- All scores and the reference point may be larger by the same number: their differences are what
they were. -/
private theorem translated {part : Part R} (run : TinyRun p ν μ m part) (d : R) :
    TinyRun p ν μ (m + d) (withKeys part ((part.keys.map (·, d)).map raised)) := by
  induction run with
  | @masked m key hk => exact .masked (key := raised (key, d)) hk
  | @key m x w w' o key hk hm hx hw hw' ho =>
    refine .key (key := raised (key, d)) hk ?_ (x := x) ?_ hw hw' ho
    · show key.computed + d ≤ m + d
      grind
    · show Difference p.unit μ (key.computed + d - (m + d)) x
      rwa [show key.computed + d - (m + d) = key.computed - m by grind]
  | @join m l o parts a k r _ hr hl ho ih =>
    have keys : ∀ part ∈ parts, part.keys = (part.keys.map (·, d)).map (·.1) := fun part _ => by
      rw [List.map_map]
      exact (List.map_id _).symm
    have h := TinyRun.join (p := p) (ν := ν) (μ := μ) (m := m + d) (a := a) (r := r)
      (parts := parts.map fun part => withKeys part ((part.keys.map (·, d)).map raised))
      (fun part hp => by
        obtain ⟨one, hone, rfl⟩ := List.mem_map.mp hp
        exact ih one hone)
      (fun part hp => by
        obtain ⟨one, hone, rfl⟩ := List.mem_map.mp hp
        exact hr one hone)
      (partSum_raised (moved := fun part => part.keys.map (·, d)) (fun _ _ => rfl) hl keys)
      (partSum_raised (moved := fun part => part.keys.map (·, d)) (fun _ _ => rfl) ho keys)
    rw [flatMap_raised (moved := fun part => part.keys.map (·, d))] at h
    rw [show (parts.flatMap (·.keys)).map (·, d)
      = parts.flatMap fun part => part.keys.map (·, d) from List.map_flatMap ..]
    exact h
  | @rescale m m' x α l o part _ hm hx hα hl ho ih =>
    refine .rescale ih (x := x) (α := α) ?_ ?_ hα hl ho
    · grind
    · rwa [show m + d - (m' + d) = m - m' by grind]

/-- **flushed-run**: a run in which differences of scores of `μ` at most are flushed to 0 is one of
the same sums in which none is, of keys whose computed scores are larger: each by `μ` at most for
itself and for each of its rescalings, and by no more than the reference point is above it. So a
score that is the reference point is what it was. -/
theorem flushed_run (hu : 0 ≤ p.unit) (hμ : 0 ≤ μ) {part : Part R} (run : TinyRun p ν μ m part) :
    ∃ moved : List (ComputedKey R × R), part.keys = moved.map (·.1) ∧
      (∀ k ∈ moved, 0 ≤ k.2 ∧ k.2 ≤ numeral (part.rescalings + 1) * μ ∧
        (k.1.score ≠ none → k.1.computed + k.2 ≤ m)) ∧
      TinyRun p ν 0 m (withKeys part (moved.map raised)) := by
  have unmoved : ∀ key : ComputedKey R, raised (key, 0) = key := fun key => by
    rw [raised, Semiring.add_zero]
  have numeral_succ_le : ∀ {a b : Nat}, a ≤ b → numeral (a + 1) * μ ≤ numeral (b + 1) * μ :=
    fun h => OrderedRing.mul_le_mul_of_nonneg_right (numeral_le_numeral (Nat.succ_le_succ h)) hμ
  induction run with
  | @masked m key hk =>
    refine ⟨[(key, 0)], rfl, fun k h => ?_, ?_⟩
    · rw [List.mem_singleton] at h
      subst h
      exact ⟨Std.le_refl _, OrderedRing.mul_nonneg (numeral_nonneg _) hμ, fun h => absurd hk h⟩
    · rw [List.map_singleton, unmoved]
      exact .masked hk
  | @key m x w w' o key hk hm hx hw hw' ho =>
    rcases hx with hx | ⟨hd, rfl⟩
    · refine ⟨[(key, 0)], rfl, fun k h => ?_, ?_⟩
      · rw [List.mem_singleton] at h
        subst h
        exact ⟨Std.le_refl _, OrderedRing.mul_nonneg (numeral_nonneg _) hμ, fun _ => by
          rwa [Semiring.add_zero]⟩
      · rw [List.map_singleton, unmoved]
        exact .key hk hm (.inl hx) hw hw' ho
    · have one : (numeral (0 + 1) : R) = 1 := by
        rw [numeral_succ, show (numeral 0 : R) = 0 from rfl]
        grind
      refine ⟨[(key, m - key.computed)], rfl, fun k h => ?_, ?_⟩
      · rw [List.mem_singleton] at h
        subst h
        refine ⟨by show 0 ≤ m - key.computed; grind, ?_, fun _ => ?_⟩
        · show m - key.computed ≤ numeral (0 + 1) * μ
          rw [one]
          have := hd.1
          grind
        · show key.computed + (m - key.computed) ≤ m
          grind
      · rw [List.map_singleton]
        refine .key (key := raised (key, m - key.computed)) hk ?_ (.inl ?_) hw hw' ho
        · show key.computed + (m - key.computed) ≤ m
          grind
        · show Rounded p.unit (key.computed + (m - key.computed) - m) 0
          exact ⟨0, ⟨by grind, hu⟩, by grind⟩
  | @join m l o parts a k r _ hr hl ho ih =>
    have : ∀ part, ∃ moved : List (ComputedKey R × R), part ∈ parts →
        part.keys = moved.map (·.1) ∧
        (∀ k ∈ moved, 0 ≤ k.2 ∧ k.2 ≤ numeral (part.rescalings + 1) * μ ∧
          (k.1.score ≠ none → k.1.computed + k.2 ≤ m)) ∧
        TinyRun p ν 0 m (withKeys part (moved.map raised)) := fun part => by
      by_cases h : part ∈ parts
      · obtain ⟨moved, h'⟩ := ih part h
        exact ⟨moved, fun _ => h'⟩
      · exact ⟨[], fun h' => absurd h' h⟩
    obtain ⟨moved, hmoved⟩ := Classical.skolem.mp this
    refine ⟨parts.flatMap moved, flatMap_moved fun part hp => (hmoved part hp).1, fun key hk => ?_,
      ?_⟩
    · obtain ⟨part, hp, hk⟩ := List.mem_flatMap.mp hk
      obtain ⟨h₁, h₂, h₃⟩ := (hmoved part hp).2.1 key hk
      exact ⟨h₁, Std.le_trans h₂ (numeral_succ_le (hr part hp).2), h₃⟩
    · have h := TinyRun.join (p := p) (ν := ν) (μ := 0) (m := m) (a := a) (r := r)
        (parts := parts.map fun part => withKeys part ((moved part).map raised))
        (fun part hp => by
          obtain ⟨one, hone, rfl⟩ := List.mem_map.mp hp
          exact (hmoved one hone).2.2)
        (fun part hp => by
          obtain ⟨one, hone, rfl⟩ := List.mem_map.mp hp
          exact hr one hone)
        (partSum_raised (fun _ _ => rfl) hl fun part hp => (hmoved part hp).1)
        (partSum_raised (fun _ _ => rfl) ho fun part hp => (hmoved part hp).1)
      rw [flatMap_raised] at h
      exact h
  | @rescale m m' x α l o part _ hm hx hα hl ho ih =>
    obtain ⟨moved, h₁, h₂, h₃⟩ := ih
    rcases hx with hx | ⟨hd, rfl⟩
    · refine ⟨moved, h₁, fun k hk => ?_, .rescale h₃ hm (.inl hx) hα hl ho⟩
      obtain ⟨i₁, i₂, i₃⟩ := h₂ k hk
      exact ⟨i₁, Std.le_trans i₂ (numeral_succ_le (Nat.le_succ _)),
        fun hs => Std.le_trans (i₃ hs) hm⟩
    · refine ⟨moved.map fun k => (k.1, k.2 + (m' - m)), ?_, fun k hk => ?_, ?_⟩
      · rw [List.map_map]
        exact h₁
      · obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
        obtain ⟨i₁, i₂, i₃⟩ := h₂ k hk'
        refine ⟨?_, ?_, fun hs => ?_⟩
        · show 0 ≤ k.2 + (m' - m)
          grind
        · show k.2 + (m' - m) ≤ numeral (part.rescalings + 1 + 1) * μ
          rw [numeral_succ]
          have := hd.1
          grind
        · show k.1.computed + (k.2 + (m' - m)) ≤ m'
          have := i₃ hs
          grind
      · have h := translated h₃ (m' - m)
        rw [show m + (m' - m) = m' by grind] at h
        have e : ((moved.map raised).map (·, m' - m)).map raised
            = (moved.map fun k => (k.1, k.2 + (m' - m))).map raised := by
          rw [List.map_map, List.map_map, List.map_map]
          refine List.map_congr_left fun k _ => ?_
          simp only [Function.comp_def, raised, Semiring.add_assoc]
        have h' : TinyRun p ν 0 m' (withKeys part
            ((moved.map fun k => (k.1, k.2 + (m' - m))).map raised)) := e ▸ h
        exact .rescale (x := 0) h' (Std.le_refl _) (.inl ⟨0, ⟨by grind, hu⟩, by grind⟩) hα hl ho

/-- Two lists of the same keys, one by one. -/
private theorem zip_map {α : Type v} {β : Type w} {γ : Type u} {f : α → γ} {g : β → γ} :
    ∀ {xs : List α} {ys : List β}, xs.map f = ys.map g → ∃ zs : List (α × β),
      xs = zs.map (·.1) ∧ ys = zs.map (·.2) ∧ ∀ z ∈ zs, f z.1 = g z.2
  | [], [], _ => ⟨[], rfl, rfl, nofun⟩
  | x :: xs, y :: ys, h => by
    obtain ⟨zs, rfl, rfl, h'⟩ := zip_map (List.cons.inj h).2
    refine ⟨(x, y) :: zs, rfl, rfl, fun z hz => ?_⟩
    rcases List.mem_cons.mp hz with rfl | hz
    · exact (List.cons.inj h).1
    · exact h' z hz

/-- `flushed_run` of keys that are made of others, where each has room in its error: a part without
such differences, of keys as close to their scores, of which one is the reference point. -/
theorem flushed_row {α : Type v} {keys : List α} {g : α → ComputedKey R} (hu : 0 ≤ p.unit)
    (hμ : 0 ≤ μ) {part : Part R} (run : TinyRun p ν μ m part) (hkeys : part.keys = keys.map g)
    (attained : ∃ k ∈ keys, (g k).score ≠ none ∧ (g k).computed = m) {rescalings : Nat}
    (hr : part.rescalings ≤ rescalings) {c : R} (close : ∀ k ∈ keys, ∀ s, (g k).score = some s →
      AtMost ((g k).error - numeral (rescalings + 1) * μ) ((g k).computed - (s + c))) :
    ∃ moved : List (α × R), keys = moved.map (·.1) ∧
      TinyRun p ν 0 m (withKeys part (moved.map fun k => raised (g k.1, k.2))) ∧
      (∃ k ∈ moved, (g k.1).score ≠ none ∧ (g k.1).computed + k.2 = m) ∧
      ∀ k ∈ moved, ∀ s, (g k.1).score = some s →
        AtMost (g k.1).error ((g k.1).computed + k.2 - (s + c)) := by
  obtain ⟨moved, h₁, h₂, h₃⟩ := flushed_run hu hμ run
  obtain ⟨zs, rfl, rfl, e⟩ := zip_map (hkeys.symm.trans h₁)
  have small : ∀ z ∈ zs, 0 ≤ z.2.2 ∧ z.2.2 ≤ numeral (part.rescalings + 1) * μ ∧
      ((g z.1).score ≠ none → (g z.1).computed + z.2.2 ≤ m) := fun z hz => by
    rw [e z hz]
    exact h₂ z.2 (List.mem_map_of_mem hz)
  refine ⟨zs.map fun z => (z.1, z.2.2), ?_, ?_, ?_, fun k hk s hs => ?_⟩
  · rw [List.map_map]
    rfl
  · rw [List.map_map] at h₃ ⊢
    have : zs.map (raised ∘ fun z => z.2) = zs.map ((fun k : α × R => raised (g k.1, k.2)) ∘
        fun z => (z.1, z.2.2)) := List.map_congr_left fun z hz => by
      simp only [Function.comp_def, e z hz]
    rw [← this]
    exact h₃
  · obtain ⟨k, hk, hs, hm⟩ := attained
    obtain ⟨z, hz, rfl⟩ := List.mem_map.mp hk
    refine ⟨_, List.mem_map_of_mem hz, hs, ?_⟩
    obtain ⟨i₁, -, i₂⟩ := small z hz
    have := i₂ hs
    show (g z.1).computed + z.2.2 = m
    grind
  · obtain ⟨z, hz, rfl⟩ := List.mem_map.mp hk
    obtain ⟨i₁, i₂, -⟩ := small z hz
    have i₃ := OrderedRing.mul_le_mul_of_nonneg_right
      (numeral_le_numeral (R := R) (Nat.succ_le_succ hr)) hμ
    have i₄ := close z.1 (List.mem_map_of_mem hz) s hs
    have i₅ := i₄.1
    have i₆ := i₄.2
    show AtMost (g z.1).error ((g z.1).computed + z.2.2 - (s + c))
    exact ⟨by grind, by grind⟩

/-- A part with the same numbers, of keys with other computed scores. -/
structure SameNumbers (part part₀ : Part R) : Prop where
  /-- The keys are the same but for their computed scores. -/
  bounded : part₀.keys.map (·.toBoundedKey) = part.keys.map (·.toBoundedKey)
  /-- So are scores and values. -/
  scored : part₀.keys.map (fun k => (k.score, k.value)) = part.keys.map fun k => (k.score, k.value)
  /-- The denominator. -/
  l : part₀.l = part.l
  /-- The numerator. -/
  o : part₀.o = part.o
  /-- The roundings of sums. -/
  additions : part₀.additions = part.additions
  /-- The rescalings. -/
  rescalings : part₀.rescalings = part.rescalings

/-- `flushed_row` of the keys themselves. -/
theorem flushed_part (hu : 0 ≤ p.unit) (hμ : 0 ≤ μ) {part : Part R} (run : TinyRun p ν μ m part)
    (attained : ∃ k ∈ part.keys, k.score ≠ none ∧ k.computed = m) {rescalings : Nat}
    (hr : part.rescalings ≤ rescalings) {c : R} (close : ∀ k ∈ part.keys, ∀ s, k.score = some s →
      AtMost (k.error - numeral (rescalings + 1) * μ) (k.computed - (s + c))) :
    ∃ part₀ : Part R, SameNumbers part part₀ ∧ TinyRun p ν 0 m part₀ ∧
      (∃ k ∈ part₀.keys, k.score ≠ none ∧ k.computed = m) ∧
      ∀ k ∈ part₀.keys, ∀ s, k.score = some s → AtMost k.error (k.computed - (s + c)) := by
  obtain ⟨moved, h₁, h₂, ⟨k, hk, h₃⟩, h₄⟩ := flushed_row (g := id) hu hμ run (List.map_id _).symm
    attained hr close
  refine ⟨withKeys part (moved.map fun k => raised (id k.1, k.2)), ⟨?_, ?_, rfl, rfl, rfl, rfl⟩, h₂,
    ⟨raised (id k.1, k.2), List.mem_map.mpr ⟨k, hk, rfl⟩, h₃⟩, fun k hk => ?_⟩
  · rw [h₁, List.map_map]
    show List.map _ (List.map _ moved) = _
    rw [List.map_map]
    rfl
  · rw [h₁, List.map_map]
    show List.map _ (List.map _ moved) = _
    rw [List.map_map]
    rfl
  · obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
    exact h₄ k hk'

omit [Exp R R] in
/-- Keys that are further off than their computed scores are have room. -/
theorem flushed_room {ν : R} {keys flushed : List (ComputedKey R)} {rescalings : Nat}
    (hkeys : flushed = keys.map (·.flushed ν rescalings)) {c : R}
    (close : ∀ k ∈ keys, ∀ s, k.score = some s → AtMost k.error (k.computed - (s + c))) :
    ∀ k ∈ flushed, ∀ s, k.score = some s →
      AtMost (k.error - numeral (rescalings + 1) * ν) (k.computed - (s + c)) := by
  subst hkeys
  intro k hk s hs
  obtain ⟨k, hk', rfl⟩ := List.mem_map.mp hk
  show AtMost (k.error + numeral (rescalings + 1) * ν - numeral (rescalings + 1) * ν) _
  rw [show ∀ a b : R, a + b - b = a from fun a b => by grind]
  exact close k hk' s hs

omit [Exp R R] in
/-- What the tolerance sees of them. -/
theorem flushed_toBoundedKey {ν : R} {keys : List (ComputedKey R)} {rescalings : Nat} :
    (keys.map (·.flushed ν rescalings)).map (·.toBoundedKey)
      = (keys.map (·.toBoundedKey)).map (·.flushed ν rescalings) := by
  rw [List.map_map, List.map_map]
  rfl

omit [Exp R R] in
/-- No room is needed where no difference is flushed to 0. -/
theorem room_zero {e x : R} {n : Nat} (h : AtMost e x) : AtMost (e - numeral n * 0) x := by
  rwa [Semiring.mul_zero, show e - 0 = e by grind]

end Attention.Proof
