module

public import Attention.Spec.LogSumExp
public import Attention.Proof.Online.Attention

public section

/-! # The log-sum-exp -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v w

/-! ## Another base

The two exponentials are passed by name; no law of either is needed, only 2 ^ x = exp (ln 2 · x). -/

section Base

variable {S : Type u} {R : Type v} {d : Nat} [Add R] [OfNat R 0] (base2 baseE : Exp S R) {ln2 : S}

omit [Add R] in
private theorem weight_base [Mul S] (h : ∀ x : S, base2.exp x = baseE.exp (ln2 * x))
    (s : Option S) : @weight S R _ base2 s = @weight S R _ baseE (s.map (ln2 * ·)) := by
  cases s with
  | none => rfl
  | some s => exact h s

private theorem denominator_base [Mul S] (h : ∀ x : S, base2.exp x = baseE.exp (ln2 * x))
    (row : List (Option S)) : @denominator S R _ _ base2 row
      = @denominator S R _ _ baseE (row.map (Option.map (ln2 * ·))) := by
  show sumOver _ row = sumOver _ (row.map _)
  rw [sumOver_map]
  exact sumOver_congr fun s _ => weight_base base2 baseE h s

/-- **lse-base**: if 2 ^ x = exp (ln 2 · x), then L is the log-sum-exp in base 2 of the scores x if
and only if ln 2 · L is the log-sum-exp in base e of the scores ln 2 · x. -/
theorem isLogSumExp_base [Mul S] (h : ∀ x : S, base2.exp x = baseE.exp (ln2 * x)) (L : Option S)
    (row : List (Option S)) :
    IsLogSumExp R (base := base2) L row
      ↔ IsLogSumExp R (base := baseE) (L.map (ln2 * ·)) (row.map (Option.map (ln2 * ·))) := by
  rw [IsLogSumExp, IsLogSumExp, weight_base base2 baseE h, denominator_base base2 baseE h]

/-- **lse-base-2**: a kernel that multiplies its scores by log₂ e and computes in base 2 gets a
log-sum-exp that, multiplied by ln 2, is that of the scores in base e, and no other is. -/
theorem isLogSumExp_log2e [CommRing S] {log2e : S} (hc : ln2 * log2e = 1)
    (h : ∀ x : S, base2.exp x = baseE.exp (ln2 * x)) (L : Option S) (row : List (Option S)) :
    IsLogSumExp R (base := base2) L (row.map (Option.map (log2e * ·)))
      ↔ IsLogSumExp R (base := baseE) (L.map (ln2 * ·)) row := by
  have hs : ∀ s : Option S, (s.map (log2e * ·)).map (ln2 * ·) = s := fun s => by
    cases s with
    | none => rfl
    | some s => simp only [Option.map, ← Semiring.mul_assoc, hc, Semiring.one_mul]
  rw [isLogSumExp_base base2 baseE h, List.map_map]
  simp only [Function.comp_def, hs, List.map_id']

/-- **attention-base**: attention in base 2 of the scores x is attention in base e of the scores
ln 2 · x. -/
theorem attend_base [Mul S] [Mul R] [Div R] (h : ∀ x : S, base2.exp x = baseE.exp (ln2 * x))
    (row : List (ScoredValue S R d)) :
    @attend S R d _ _ _ _ base2 row
      = @attend S R d _ _ _ _ baseE
          (row.map fun key => { key with score := key.score.map (ln2 * ·) }) := by
  have hs : @softmax S R _ _ _ base2 (row.map (·.score)) = @softmax S R _ _ _ baseE
      (row.map fun key => key.score.map (ln2 * ·)) := by
    have hd := denominator_base base2 baseE h (row.map (·.score))
    rw [List.map_map] at hd
    simp only [softmax, List.map_map]
    refine List.map_congr_left fun key _ => ?_
    simp only [Function.comp_def] at hd ⊢
    rw [hd]
    cases key.score with
    | none => rfl
    | some s =>
      show base2.exp s / _ = baseE.exp (ln2 * s) / _
      rw [h s]
  simp only [attend, List.map_map, Function.comp_def, hs]

end Base

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-! ## What a log-sum-exp is -/

/-- **lse-unique**: a row has at most one log-sum-exp. -/
theorem isLogSumExp_unique {L L' : Option S} {row : List (Option S)}
    (h : IsLogSumExp R L row) (h' : IsLogSumExp R L' row) : L = L' := by
  have h : (weight L : R) = weight L' := h.trans h'.symm
  cases L <;> cases L' <;> simp only [weight] at h
  · rfl
  · exact absurd h.symm (exp_ne_zero _)
  · exact absurd h (exp_ne_zero _)
  · exact congrArg some (exp_inj.mp h)

/-- **lse-empty**: the log-sum-exp is −∞ if and only if every score is masked. -/
theorem isLogSumExp_none {row : List (Option S)} :
    IsLogSumExp R none row ↔ ∀ s ∈ row, s = none := by
  rw [← denominator_eq_zero (R := R)]
  exact eq_comm

/-- A number is the log-sum-exp if and only if a score is unmasked and exp L = Σ exp s. -/
theorem isLogSumExp_some {L : S} {row : List (Option S)} :
    IsLogSumExp R (some L) row ↔ (∃ s, some s ∈ row) ∧ (exp L : R) = denominator row := by
  refine ⟨fun h => ⟨?_, h⟩, And.right⟩
  refine Classical.byContradiction fun hn => ?_
  have h₀ : IsLogSumExp R none row := isLogSumExp_none.mpr fun s hs => by
    cases s with
    | none => rfl
    | some s => exact absurd ⟨s, hs⟩ hn
  exact nomatch isLogSumExp_unique h h₀

/-- **lse-shift**: adding one number to every unmasked score adds it to the log-sum-exp. -/
theorem isLogSumExp_shift (c : S) {L : Option S} {row : List (Option S)} :
    IsLogSumExp R (L.map (· + c)) (row.map (Option.map (· + c))) ↔ IsLogSumExp R L row := by
  have := exp_ne_zero (R := R) c
  rw [IsLogSumExp, IsLogSumExp, weight_shift, denominator_shift]
  grind

/-- **softmax-from-lse**: the softmax of a score is exp (s − L), with L the log-sum-exp of the row;
so the backward pass needs L alone. -/
theorem softmax_eq_rescale {L : Option S} {row : List (Option S)} (h : IsLogSumExp R L row) :
    softmax (R := R) row = row.map fun s => rescale s L := by
  rw [softmax_eq]
  refine List.map_congr_left fun s hs => ?_
  cases L with
  | none => rw [isLogSumExp_none.mp h s hs, weight, rescale_none_left, Field.div_eq_mul_inv,
      Semiring.zero_mul]
  | some L =>
    have h₀ := exp_ne_zero (R := R) L
    rw [← h, weight, ← exp_mul_rescale s L]
    grind

/-- The log-sum-exps of some splits weigh as much as all their scores. -/
theorem denominator_flatMap {α : Type w} {splits : List α} {lse : α → Option S}
    {row : α → List (Option S)} (h : ∀ x ∈ splits, IsLogSumExp R (lse x) (row x)) :
    (denominator (splits.map lse) : R) = denominator (splits.flatMap row) := by
  induction splits with
  | nil => rfl
  | cons x splits ih =>
    have hx := h x (by simp)
    have ih := ih fun y hy => h y (by simp [hy])
    simp only [denominator, List.map_cons, List.flatMap_cons, sumOver_cons, sumOver_append] at ih ⊢
    rw [ih, hx, denominator]

/-- **lse-of-lse**: the log-sum-exps of some splits have the log-sum-exp of all their scores. -/
theorem isLogSumExp_flatMap {α : Type w} {splits : List α} {lse : α → Option S}
    {row : α → List (Option S)} (h : ∀ x ∈ splits, IsLogSumExp R (lse x) (row x)) {L : Option S} :
    IsLogSumExp R L (splits.map lse) ↔ IsLogSumExp R L (splits.flatMap row) := by
  rw [IsLogSumExp, IsLogSumExp, denominator_flatMap h]

/-! ## The log-sum-exp of the state of online softmax -/

/-- **online-logsumexp**: exp m · l = Σ exp s, so m + ln l is the log-sum-exp wherever there is a
logarithm. -/
theorem online_logsumexp (blocks : List (List (ScoredValue S R d))) {m : S}
    (hm : (online blocks).m = some m) :
    (exp m : R) * (online blocks).l = denominator (blocks.flatten.map (·.score)) := by
  rw [online_eq_ofBlock] at hm ⊢
  simp only [ofBlock] at hm ⊢
  rw [denominator, sumOver_map, hm, ← sumOver_mul_left]
  exact sumOver_congr fun key _ => exp_mul_rescale key.score m

/-- **lse-spec**: after any blocks, what a kernel writes as m + ln l is the log-sum-exp of the
scores, and nothing else is; it is −∞ where every key is masked. -/
theorem online_hasLogSumExp (blocks : List (List (ScoredValue S R d))) {L : Option S} :
    (online blocks).HasLogSumExp L ↔ IsLogSumExp R L (blocks.flatten.map (·.score)) := by
  have h := online_invariant blocks
  cases hm : (online blocks).m with
  | none =>
    have h₀ : IsLogSumExp R none (blocks.flatten.map (·.score)) :=
      isLogSumExp_none.mpr (List.forall_mem_map.mpr (h.m_eq_none.mp hm))
    cases L with
    | none => simp only [State.HasLogSumExp, hm, h₀]
    | some L =>
      simp only [State.HasLogSumExp, hm, false_iff]
      exact fun hL => nomatch isLogSumExp_unique hL h₀
  | some m =>
    cases L with
    | none =>
      simp only [State.HasLogSumExp, hm, false_iff, isLogSumExp_none]
      intro h₀
      have := h.m_eq_none.mpr (List.forall_mem_map.mp h₀)
      simp [hm] at this
    | some L =>
      have h₁ := exp_sub_mul (R := R) L m
      have h₂ := exp_ne_zero (R := R) m
      simp only [State.HasLogSumExp, hm, IsLogSumExp, weight, ← online_logsumexp blocks hm, ← h₁]
      grind

/-- Of a state with a maximum: `L` is the log-sum-exp of the keys if and only if exp (L − m) = l. -/
theorem online_lse_iff (blocks : List (List (ScoredValue S R d))) {m L : S}
    (hm : (online blocks).m = some m) :
    IsLogSumExp R (some L) (blocks.flatten.map (·.score)) ↔ exp (L - m) = (online blocks).l := by
  simp only [← online_hasLogSumExp, State.HasLogSumExp, hm]

/-- **lse-bounds**: the log-sum-exp is at least the maximum, and exp (L − m) is at most the number
of unmasked keys. -/
theorem online_lse_bounds (blocks : List (List (ScoredValue S R d))) {m L : S}
    (hm : (online blocks).m = some m)
    (hL : IsLogSumExp R (some L) (blocks.flatten.map (·.score))) :
    m ≤ L ∧ (exp (L - m) : R) ≤ sumOver (fun key => match key.score with
      | none => 0
      | some _ => 1) blocks.flatten := by
  have h := online_invariant blocks
  have hl := (online_lse_iff blocks hm).mp hL
  refine ⟨?_, hl ▸ h.l_le⟩
  have h₁ := h.one_le_l (by simp [hm])
  rw [← hl, ← exp_zero (S := S)] at h₁
  have := exp_lt (R := R) (L - m) 0
  grind

end Attention.Proof
