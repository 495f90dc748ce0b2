module

public import Attention.Vectors.StatesSound

public section

/-! # Programs of states, with what their theorems do not let through -/

namespace Attention.WrongVariants

open Spec Spec.Online Proof Vectors

private theorem keyOf_inj {d : Nat} {row row' : List (ScoredValue Int Rat d)}
    (h : row.map Key.of = row'.map Key.of) : row = row' := by
  refine (List.map_inj_right fun k k' e => ?_).mp h
  cases k
  cases k'
  simpa [Key.of, Vector.toList_inj] using e

/-- The statement of `merge-vectors-sound`, for any program. -/
abbrev SoundMerge (run : MergeCase → Except String StateResult) : Prop :=
  ∀ (c : MergeCase) (result : StateResult), run c = .ok result →
    ∃ (blocks : List (List Key)) (keys : List (ScoredValue Int Rat c.value_dim)),
      c.tree.leaves.map (c.blocks[·]?) = blocks.map some ∧ keys.map Key.of = blocks.flatten ∧
      result = toResult (ofBlock keys) ∧ finish (ofBlock keys) = attend keys

/-- Positive control. -/
theorem run_soundMerge : SoundMerge MergeCase.run := fun _ _ h => MergeCase.run_sound h

/-- The program that forgets the right side of the root. -/
@[expose] def runLeft (c : MergeCase) : Except String StateResult :=
  match c.tree with
  | .leaf _ => c.run
  | .node left _ => MergeCase.run { c with tree := left }

/-- Two blocks of a key with the score 0 and the value 1. -/
@[expose] def twoBlocks : MergeCase :=
  { reason := "", value_dim := 1, blocks := [[⟨some 0, [1]⟩], [⟨some 0, [1]⟩]]
    tree := .node (.leaf 0) (.leaf 1) }

/-- The forgotten term makes no difference to the output, only to the denominator. -/
theorem runLeft_refuted : ¬ SoundMerge runLeft := fun h => by
  have hf : (runLeft twoBlocks).toOption.map (·.l) = some 1 := by decide +kernel
  cases hr : runLeft twoBlocks with
  | error e => rw [hr] at hf; cases hf
  | ok result =>
    rw [hr] at hf
    obtain ⟨blocks, keys, hb, hk, rfl, _⟩ := h _ _ hr
    obtain rfl : [[⟨some 0, [1]⟩], [⟨some 0, [1]⟩]] = blocks :=
      (List.map_inj_right fun _ _ => Option.some.inj).mp hb
    obtain rfl := keyOf_inj (row' := [⟨some 0, #v[1]⟩, ⟨some 0, #v[1]⟩]) hk
    exact absurd hf (by decide +kernel)

/-- The statement of `cache-vectors-sound`, for any program. -/
abbrev SoundCache (run : CacheCase → Except String (List StateResult)) : Prop :=
  ∀ (c : CacheCase) (results : List StateResult), run c = .ok results →
    results.length = c.edits.length + 1 ∧ ∀ n (hn : n < results.length),
      ∃ (row : List (ScoredValue Int Rat c.value_dim)) (s : State Int Rat c.value_dim),
        row.map Key.of = c.keysAfter n ∧ results[n] = toResult s ∧
        s.m = rowMax ((c.keysUntil n).map (·.score)) ∧ Represents s row ∧
        finish s = attend row

/-- Positive control. -/
theorem run_soundCache : SoundCache CacheCase.run := fun _ _ h => CacheCase.run_sound h

/-- The program that computes each state anew, from the keys that are there: what it gives stands
for them, but its maximum falls with a key that is deleted. -/
@[expose] def runAnew (c : CacheCase) : Except String (List StateResult) := do
  let keys ← c.keys.mapM (Key.toSpec c.value_dim)
  return (← CacheCase.follow (keys, append empty keys) c.edits).map
    fun (row, _) => toResult (ofBlock row)

/-- A row of two keys, of which the larger is deleted. -/
@[expose] def largerDeleted : CacheCase :=
  { reason := "", value_dim := 1, keys := [⟨some 1, [1]⟩, ⟨some 0, [1]⟩], edits := [.delete 0] }

theorem runAnew_refuted : ¬ SoundCache runAnew := fun h => by
  have hf : (runAnew largerDeleted).toOption.map (·.map (·.m)) = some [some 1, some 0] := by
    decide +kernel
  cases hr : runAnew largerDeleted with
  | error e => rw [hr] at hf; cases hf
  | ok results =>
    rw [hr] at hf
    obtain ⟨hlen, each⟩ := h _ _ hr
    have hn : 1 < results.length := by rw [hlen]; decide
    obtain ⟨row, s, _, hs, hm, _⟩ := each 1 hn
    have h₁ := congrArg (·[1]?) (Option.some.inj hf)
    simp only [List.getElem?_map, List.getElem?_eq_getElem hn, hs] at h₁
    have h₂ : s.m = some 1 := hm
    have h₃ : s.m = some 0 := by simpa [toResult] using h₁
    exact absurd (h₂.symm.trans h₃) (by decide)

/-- The program that gives the state of the beginning after each change. -/
@[expose] def runForgetful (c : CacheCase) : Except String (List StateResult) :=
  c.run.map fun results => results.map fun _ => results.headD ⟨none, 0, []⟩

theorem runForgetful_refuted : ¬ SoundCache runForgetful := fun h => by
  have hf : (runForgetful largerDeleted).toOption.map (·.map (·.o))
      = some [[3 / 2], [3 / 2]] := by decide +kernel
  cases hr : runForgetful largerDeleted with
  | error e => rw [hr] at hf; cases hf
  | ok results =>
    rw [hr] at hf
    obtain ⟨hlen, each⟩ := h _ _ hr
    have hn : 1 < results.length := by rw [hlen]; decide
    obtain ⟨row, s, hrow, hs, hm, hrep, _⟩ := each 1 hn
    have h₁ := congrArg (·[1]?) (Option.some.inj hf)
    simp only [List.getElem?_map, List.getElem?_eq_getElem hn, hs] at h₁
    obtain rfl := keyOf_inj (row' := [⟨some 0, #v[1]⟩]) hrow
    have h₂ : s.m = some 1 := hm
    have h₃ := hrep.o_eq 0 (by decide)
    have h₄ : s.o[0] = 3 / 2 := by
      have h₄ : s.o.toList = [3 / 2] := by simpa [toResult] using h₁
      rw [show s.o = (#v[3 / 2] : Vec Rat 1) from Vector.toList_inj.mp h₄]
      rfl
    rw [h₂, h₄] at h₃
    exact absurd h₃ (by decide +kernel)

end Attention.WrongVariants
