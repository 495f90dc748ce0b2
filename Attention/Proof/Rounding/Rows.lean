module

public import Attention.Proof.Rounding.Flash
public import Attention.Proof.Rounding.Basic

public section

/-! # The Spec's algorithms over numbers that round stay within the tolerance

`rounded_attention` speaks of all functions that round; here it is applied to the Spec's own: online
softmax, the tile loop and split keys, each taken over `FloatingPoint.Number`. Their scores may come
from anywhere, and be off by δ each and by a constant that all keys of a row share. -/

namespace Attention.Proof

open Spec Spec.Online Model Model.FloatingPoint

universe u v

variable {R : Type u} [OrderedField R] [Exponential R R] {F : FloatingPoint R}

/-! ## One row -/

omit [Exponential R R] in
/-- A number is itself rounded by nothing, any number of times. -/
private theorem roundedTimes_self {u : R} (hu : 0 ≤ u) (x : R) : ∀ k, RoundedTimes u k x x
  | 0 => rfl
  | k + 1 => ⟨x, roundedTimes_self hu x k, 0, .zero hu, by grind⟩

/-- The reference point of a state is the computed score of an unmasked key. -/
private theorem Carries.attained {d : Nat} {j : Fin d} {s : State F.Number F.Number d}
    {keys : List (ComputedKey R)} {a r : Nat} (h : Carries j s keys a r)
    (unmasked : ∃ key ∈ keys, key.score ≠ none) :
    ∃ x, s.m = some x ∧ ∃ key ∈ keys, key.score ≠ none ∧ key.computed = x.val := by
  have hmax := h.max
  cases hx : s.m with
  | none =>
    obtain ⟨key, hk, hs⟩ := unmasked
    rw [hx] at hmax
    have := rowMax_eq_none.mp hmax.symm _ (List.mem_map_of_mem hk)
    exact absurd (computedScore_eq_none.mp this) hs
  | some x =>
    rw [hx] at hmax
    obtain ⟨key, hk, hs⟩ := List.mem_map.mp (rowMax_mem hmax.symm)
    refine ⟨x, rfl, key, hk, ?_⟩
    cases hks : key.score with
    | none => simp [computedScore, hks] at hs
    | some _ => simpa [computedScore, hks] using hs

/-- A key as the bounds for component `j` need it: `key` has the score that the function sees, `e`
the exact score and value, and `δ` says how far off the score is. -/
@[expose] def computedKey {d : Nat} (j : Fin d) (key : ScoredValue F.Number F.Number d)
    (e : ScoredValue R R d) (δ : R) : ComputedKey R where
  score := e.score
  error := δ
  value := e.value[j]
  computed := match key.score with
    | some s => s.val
    | none => 0

/-- A function sees a key's value as it is and its score rounded, or masked. -/
structure Sees {d : Nat} (key : ScoredValue F.Number F.Number d) (e : ScoredValue R R d) :
    Prop where
  /-- Both are masked, or neither. -/
  masked : key.score = none ↔ e.score = none
  /-- The same value. -/
  values : ∀ j : Fin d, key.value[j].val = e.value[j]

theorem Sees.agrees {d : Nat} {key : ScoredValue F.Number F.Number d} {e : ScoredValue R R d}
    (h : Sees key e) (j : Fin d) (δ : R) : Agrees j key (computedKey j key e δ) where
  score := by
    have := h.masked
    cases hk : key.score <;> cases he : e.score <;> simp_all [computedScore, computedKey]
  value := (h.values j).symm

variable {d : Nat} {α : Type v} {f : α → ScoredValue F.Number F.Number d}
variable {e : α → ScoredValue R R d} {δ : α → R} {c : R} {j : Fin d} {xs : List α}
variable {s : State F.Number F.Number d} {a r roundings rescalings : Nat}

/-- A state that `Model.Run` allows, divided, is within the tolerance of the exact attention. -/
theorem Carries.finish_within
    (h : Carries j s (xs.map fun x => computedKey j (f x) (e x) (δ x)) a r)
    (hF : F.exponential < 1) (hfe : ∀ x, Sees (f x) (e x))
    (close : ∀ x s s', (e x).score = some s → (f x).score = some s' →
      AtMost (δ x) (s'.val - (s + c)))
    (unmasked : ∃ x ∈ xs, (e x).score ≠ none) (ha : a + r ≤ roundings) (hr : r ≤ rescalings)
    (hN : numeral (roundings + 6) * F.unit < 1) (hD : 2 * numeral roundings * F.unit < 1)
    (negligible : R) :
    AtMost (tolerance F.precision roundings rescalings negligible
        (xs.map fun x => ⟨(e x).score, δ x, (e x).value[j]⟩))
      ((finish s)[j].val - (attend (xs.map e))[j]) := by
  obtain ⟨y, hy, attained⟩ := h.attained (by
    obtain ⟨x, hx, hs⟩ := unmasked
    exact ⟨_, List.mem_map_of_mem hx, hs⟩)
  have := rounded_attention (F.precise hF) (h.run y.val fun z hz => by simp_all) j.isLt
    (row := xs.map e) (by simp [computedKey]) attained (c := c) (fun key hk s hs => by
      obtain ⟨x, -, rfl⟩ := List.mem_map.mp hk
      cases hf : (f x).score with
      | none =>
        have := (hfe x).masked.mp hf
        simp_all [computedKey]
      | some s' => simpa [computedKey, hf] using close x s s' hs hf)
    hr ha nofun hN hD ⟨_, roundedTimes_self F.unit_nonneg _ 4, finish_rounded hy j⟩ negligible
  simpa only [List.map_map] using this

/-- With every key masked the result is exactly 0, and so is attention. -/
theorem Carries.finish_masked
    (h : Carries j s (xs.map fun x => computedKey j (f x) (e x) (δ x)) a r)
    (masked : ∀ x ∈ xs, (e x).score = none) :
    (finish s)[j].val = 0 ∧ (attend (xs.map e))[j] = 0 := by
  refine ⟨Proof.finish_masked ?_ j, ?_⟩
  · have hmax := h.max
    rw [rowMax_eq_none.mpr fun s hs => ?_] at hmax
    · simpa using hmax
    · obtain ⟨key, hk, rfl⟩ := List.mem_map.mp hs
      obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hk
      exact computedScore_eq_none.mpr (masked x hx)
  · rw [attend_masked fun key hk => ?_]
    · simp
    · obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hk
      exact masked x hx

/-- Online softmax over numbers that round, in blocks of at most `n` keys, is
within the tolerance of the exact attention of the row. A key `x` is seen as `f x`; exact are its
score and value in `e x`, and the computed score is off by at most `δ x`, but for a constant `c`
that all keys share. -/
theorem online_rounded (hF : F.exponential < 1) (hfe : ∀ x, Sees (f x) (e x))
    (close : ∀ x s s', (e x).score = some s → (f x).score = some s' →
      AtMost (δ x) (s'.val - (s + c)))
    {blocks : List (List α)} {n : Nat} (hn : ∀ block ∈ blocks, block.length ≤ n)
    (unmasked : ∃ x ∈ blocks.flatten, (e x).score ≠ none)
    (ha : n + blocks.length + (blocks.length - 1) ≤ roundings) (hr : blocks.length - 1 ≤ rescalings)
    (hN : numeral (roundings + 6) * F.unit < 1) (hD : 2 * numeral roundings * F.unit < 1)
    (negligible : R) (j : Fin d) :
    AtMost (tolerance F.precision roundings rescalings negligible
        (blocks.flatten.map fun x => ⟨(e x).score, δ x, (e x).value[j]⟩))
      ((finish (online (blocks.map (List.map f))))[j].val - (attend (blocks.flatten.map e))[j]) :=
  (online_carries (fun x => (hfe x).agrees j (δ x)) blocks hn).finish_within hF hfe close unmasked
    ha hr hN hD negligible

/-! ## The tile loop and split keys -/

section
variable {q_len kv_len d d_v : Nat} {scale : R} {modify : ScoreMod R q_len kv_len}
variable {Q : Matrix R q_len d} {K : Matrix R kv_len d} {V : Matrix R kv_len d_v}
variable {scale' : F.Number} {modify' : ScoreMod F.Number q_len kv_len}
variable {Q' : Matrix F.Number q_len d} {K' : Matrix F.Number kv_len d}
variable {V' : Matrix F.Number kv_len d_v} {i : Fin q_len} {δ : Fin kv_len → R}
variable (hF : F.exponential < 1)
variable (masked : ∀ k, score scale' modify' Q' K' i k = none ↔ score scale modify Q K i k = none)
variable (values : ∀ (k : Fin kv_len) (t : Fin d_v), V'[k][t].val = V[k][t])
variable (close : ∀ k s s', score scale modify Q K i k = some s →
  score scale' modify' Q' K' i k = some s' → AtMost (δ k) (s'.val - (s + c)))
variable (unmasked : ∃ k, score scale modify Q K i k ≠ none)
variable (hN : numeral (roundings + 6) * F.unit < 1) (hD : 2 * numeral roundings * F.unit < 1)
variable {block_m block_n split_len : Nat} (hm : 0 < block_m) (hs : 0 < split_len)
variable (hn : 0 < block_n) (negligible : R)
include hF masked values close unmasked hN hD hn

include hm in
/-- The tile loop over numbers that round is within the tolerance of exact
attention, in each component of each row with an unmasked key, for all sizes, tile sizes and masks
or score transformations. The scores may come from any numbers: those of row `i` are off by at most
`δ k`, but for a constant `c`. With `T` tiles of keys it suffices that `roundings` is at least
block_n + 2T − 1 and `rescalings` at least T − 1. -/
theorem flash_rounded
    (ha : block_n + numTiles kv_len block_n + (numTiles kv_len block_n - 1) ≤ roundings)
    (hr : numTiles kv_len block_n - 1 ≤ rescalings) :
    ∃ o, (flash scale' modify' Q' K' V' block_m block_n)[i.val]? = some o ∧ ∀ t : Fin d_v,
      AtMost (tolerance F.precision roundings rescalings negligible
          ((List.finRange kv_len).map fun k => ⟨score scale modify Q K i k, δ k, V[k][t]⟩))
        (o[t].val - (attention scale modify Q K V)[i][t]) := by
  obtain ⟨s, hrow, h⟩ := flash_carries scale' modify' Q' K' V' i hm hn
  have hfe : ∀ k, Sees (⟨score scale' modify' Q' K' i k, V'[k]⟩ : ScoredValue F.Number F.Number d_v)
      ⟨score scale modify Q K i k, V[k]⟩ := fun k => ⟨masked k, values k⟩
  obtain ⟨k, hk⟩ := unmasked
  refine ⟨_, hrow, fun t => ?_⟩
  have := (h t _ fun k => (hfe k).agrees t (δ k)).finish_within hF hfe close
    ⟨k, List.mem_finRange k, hk⟩ ha hr hN hD negligible
  simpa [attention, scored] using this

include hs in
/-- Decoding with the keys split, over numbers that round, is within the
tolerance of exact attention, as the tile loop is. With `T` tiles in a split and `S` splits it
suffices that `roundings` is at least block_n + 2T − 1 + 2S and `rescalings` at least T − 1 + S. -/
theorem splitKV_rounded
    (ha : block_n + numTiles split_len block_n + numTiles kv_len split_len
      + (numTiles split_len block_n - 1 + numTiles kv_len split_len) ≤ roundings)
    (hr : numTiles split_len block_n - 1 + numTiles kv_len split_len ≤ rescalings) :
    ∃ o, (splitKV scale' modify' Q' K' V' split_len block_n)[i.val]? = some o ∧ ∀ t : Fin d_v,
      AtMost (tolerance F.precision roundings rescalings negligible
          ((List.finRange kv_len).map fun k => ⟨score scale modify Q K i k, δ k, V[k][t]⟩))
        (o[t].val - (attention scale modify Q K V)[i][t]) := by
  obtain ⟨s, hrow, h⟩ := splitKV_carries scale' modify' Q' K' V' i hs hn
  have hfe : ∀ k, Sees (⟨score scale' modify' Q' K' i k, V'[k]⟩ : ScoredValue F.Number F.Number d_v)
      ⟨score scale modify Q K i k, V[k]⟩ := fun k => ⟨masked k, values k⟩
  obtain ⟨k, hk⟩ := unmasked
  refine ⟨_, hrow, fun t => ?_⟩
  have := (h t _ fun k => (hfe k).agrees t (δ k)).finish_within hF hfe close
    ⟨k, List.mem_finRange k, hk⟩ ha hr hN hD negligible
  simpa [attention, scored] using this

end

end Attention.Proof
