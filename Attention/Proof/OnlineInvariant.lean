module

public import Attention.Proof.Online

public section

/-! # What the state of online softmax means, and that its output is attention -/

namespace Attention.Proof

open Spec Spec.Online Exponential

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d : Nat}

/-- What the three parts of a state are, for the keys `row` seen so far. -/
structure OnlineInvariant (s : State S R d) (row : List (ScoredValue S R d)) : Prop where
  /-- There is no maximum exactly when every key so far is masked. -/
  m_eq_none : s.m = none ↔ ∀ key ∈ row, key.score = none
  /-- The maximum is the score of one of the keys. -/
  m_mem : ∀ m, s.m = some m → ∃ key ∈ row, key.score = some m
  /-- No key has a larger score. -/
  le_m : ∀ m, s.m = some m → ∀ key ∈ row, ∀ x, key.score = some x → x ≤ m
  /-- l = Σ exp (s − m) over the unmasked keys. -/
  l_eq : ∀ m, s.m = some m → s.l = sumOver (fun key => match key.score with
    | none => 0
    | some x => exp (x - m)) row
  /-- o = Σ exp (s − m) · v over the unmasked keys. -/
  o_eq : ∀ m, s.m = some m → ∀ j (h : j < d), s.o[j] = sumOver (fun key => match key.score with
    | none => 0
    | some x => exp (x - m) * key.value[j]) row
  /-- With an unmasked key, l is at least 1. -/
  one_le_l : s.m ≠ none → 1 ≤ s.l
  /-- l is at most the number of unmasked keys. -/
  l_le : s.l ≤ sumOver (fun key => match key.score with
    | none => 0
    | some _ => 1) row
  /-- Before the first unmasked key the state is empty: −∞, 0, 0. -/
  eq_empty : s.m = none → s = empty

/-- The state of a row is what the invariant says. -/
theorem ofBlock_invariant (row : List (ScoredValue S R d)) : OnlineInvariant (ofBlock row) row where
  m_eq_none := by simp [ofBlock, rowMax_eq_none]
  m_mem m hm := by simpa using rowMax_mem hm
  le_m m hm key hk x hx := by
    have := score_le_rowMax row key hk
    simp only [ofBlock] at hm
    simpa [hm, hx, ScoreLE] using this
  l_eq m hm := by
    simp only [ofBlock] at hm ⊢
    rw [hm]
    exact sumOver_congr fun key _ => by cases key.score <;> rfl
  o_eq m hm j hj := by
    simp only [ofBlock] at hm
    rw [ofBlock_o, hm]
    refine sumOver_congr fun key _ => ?_
    cases key.score
    · simp only [rescale_none_left]; grind
    · rfl
  one_le_l hm := by
    obtain ⟨m, hm⟩ := Option.ne_none_iff_exists'.mp hm
    obtain ⟨key, hk, hs⟩ : ∃ key ∈ row, key.score = some m := by simpa using rowMax_mem hm
    simp only [ofBlock] at hm ⊢
    have h := le_sumOver (R := R) (f := fun key => rescale key.score (some m))
      (fun key _ => rescale_nonneg key.score (some m)) hk
    simp only [hs, rescale_self] at h
    rwa [hm]
  l_le := by
    have h := score_le_rowMax row
    simp only [ofBlock]
    generalize rowMax (row.map (·.score)) = m at h ⊢
    induction row with
    | nil => exact Std.le_refl _
    | cons key row ih =>
      have h₁ := ih fun key hk => h key (by simp [hk])
      have h₂ := h key (by simp)
      simp only [sumOver_cons]
      cases hs : key.score with
      | none => simp only [rescale_none_left]; grind
      | some x =>
        rw [hs] at h₂
        cases m with
        | none => cases h₂
        | some m => have := rescale_le_one (R := R) h₂; simp only; grind
  eq_empty hm := by
    simp only [ofBlock] at hm ⊢
    refine state_ext hm ?_ fun j hj => ?_
    · exact sumOver_eq_zero fun key _ => by rw [hm, rescale_none_right]
    · rw [Vec.getElem_sumOver]
      simp only [Vec.getElem_smul, hm, rescale_none_right, empty, Vec.getElem_zero]
      exact sumOver_eq_zero fun key _ => by grind

/-- **online-invariant**: after any blocks, m is the maximum of the unmasked scores so far, l = Σ
exp (s − m), o = Σ exp (s − m) · v; with an unmasked key 1 ≤ l ≤ their number, otherwise the state
is −∞, 0, 0. -/
theorem online_invariant (blocks : List (List (ScoredValue S R d))) :
    OnlineInvariant (online blocks) blocks.flatten :=
  online_eq_ofBlock blocks ▸ ofBlock_invariant blocks.flatten

/-! ## The finished output is attention -/

/-- The finished state of a row is its attention. -/
theorem finish_ofBlock (row : List (ScoredValue S R d)) : finish (ofBlock row) = attend row := by
  cases hm : (ofBlock row).m with
  | none =>
    have h := ((ofBlock_invariant row).m_eq_none).mp hm
    rw [attend_masked h, finish, hm]
  | some m =>
    refine Vector.ext fun j hj => ?_
    have hl : exp m * (ofBlock row).l = denominator (row.map (·.score)) := by
      simp only [ofBlock] at hm ⊢
      rw [denominator, sumOver_map, hm, ← sumOver_mul_left]
      exact sumOver_congr fun key _ => exp_mul_rescale key.score m
    have ho : exp m * (ofBlock row).o[j] = numerator row j hj := by
      simp only [ofBlock] at hm
      rw [ofBlock_o, numerator, hm, ← sumOver_mul_left]
      refine sumOver_congr fun key _ => ?_
      have := exp_mul_rescale (R := R) key.score m
      grind
    have := exp_ne_zero (R := R) m
    have := (ofBlock_invariant row).one_le_l (by simp [hm])
    rw [getElem_attend, ← hl, ← ho]
    simp only [finish, hm, Vec.getElem_map]
    grind

/-- **online-any-blocks**: online softmax over any partition of a row into consecutive blocks, of
any sizes and empty ones too, ends in the attention of the whole row. -/
theorem online_any_blocks (blocks : List (List (ScoredValue S R d))) :
    finish (online blocks) = attend blocks.flatten := by
  rw [online_eq_ofBlock, finish_ofBlock]

/-- Merging the states of two sequences of blocks is the state of both. -/
theorem merge_online (as bs : List (List (ScoredValue S R d))) :
    merge (online as) (online bs) = online (as ++ bs) := by
  simp only [online_eq_ofBlock, merge_homomorphism, List.flatten_append]

private theorem smul_l_attend (row : List (ScoredValue S R d)) :
    { ofBlock row with o := Vec.smul (ofBlock row).l (attend row) } = ofBlock row := by
  refine state_ext rfl rfl fun j hj => ?_
  have h := ofBlock_invariant row
  rw [Vec.getElem_smul, ← finish_ofBlock]
  cases hm : (ofBlock row).m with
  | none => simp only [h.eq_empty hm, finish, empty, Vec.getElem_zero]; grind
  | some m =>
    have := h.one_le_l (by simp [hm])
    simp only [finish, hm, Vec.getElem_map]
    grind

/-- FlashAttention-1, which divides inside the loop and multiplies back, computes attention too. -/
theorem divided_any_blocks (blocks : List (List (ScoredValue S R d))) :
    (blocks.foldl stepBlockDivided empty).o = attend blocks.flatten := by
  suffices h : ∀ pre : List (ScoredValue S R d),
      blocks.foldl stepBlockDivided { ofBlock pre with o := attend pre }
        = { ofBlock (pre ++ blocks.flatten) with o := attend (pre ++ blocks.flatten) } from by
    have h₀ : { (ofBlock [] : State S R d) with
        o := attend ([] : List (ScoredValue S R d)) } = empty := by
      rw [attend_masked (by simp)]; rfl
    simpa [h₀] using congrArg State.o (h [])
  induction blocks with
  | nil => intro pre; simp
  | cons block blocks ih =>
    intro pre
    have h : stepBlockDivided { ofBlock pre with o := attend pre } block
        = { ofBlock (pre ++ block) with o := attend (pre ++ block) } := by
      simp only [stepBlockDivided]
      rw [smul_l_attend, stepBlock_ofBlock, finish_ofBlock]
    rw [List.foldl_cons, h, ih]
    simp

/-! ## Log-sum-exp, and tiles that are masked entirely -/

/-- **online-logsumexp**: exp m · l = Σ exp s, so m + ln l is the log-sum-exp wherever there is a
logarithm. -/
theorem online_logsumexp (blocks : List (List (ScoredValue S R d))) {m : S}
    (hm : (online blocks).m = some m) :
    (exp m : R) * (online blocks).l = denominator (blocks.flatten.map (·.score)) := by
  rw [online_eq_ofBlock] at hm ⊢
  simp only [ofBlock] at hm ⊢
  rw [denominator, sumOver_map, hm, ← sumOver_mul_left]
  exact sumOver_congr fun key _ => exp_mul_rescale key.score m

/-- The same for any L with exp L = Σ exp s: exp (L - m) = l. -/
theorem online_logsumexp' (blocks : List (List (ScoredValue S R d))) {m L : S}
    (hm : (online blocks).m = some m)
    (hL : (exp L : R) = denominator (blocks.flatten.map (·.score))) :
    (exp (L - m) : R) = (online blocks).l := by
  have h₁ := online_logsumexp blocks hm
  have h₂ := exp_sub_mul (R := R) L m
  have h₃ := exp_ne_zero (R := R) m
  grind

/-- **masked-tile-skipped**: a block with every key masked changes nothing, so a kernel may
skip it. -/
theorem online_skip_masked (as bs : List (List (ScoredValue S R d)))
    {block : List (ScoredValue S R d)} (h : ∀ key ∈ block, key.score = none) :
    online (as ++ block :: bs) = online (as ++ bs) := by
  have h₀ : ofBlock block = (empty : State S R d) := (ofBlock_invariant block).eq_empty
    ((ofBlock_invariant block).m_eq_none.mpr h)
  have e : ∀ s : State S R d, online (as ++ block :: bs) = online ((as ++ [block]) ++ bs) := by
    intro s; simp
  have hs : stepBlock (online as) block = online as := by
    rw [online_eq_ofBlock, stepBlock_ofBlock, ← merge_homomorphism, h₀]
    have := merge_homomorphism as.flatten ([] : List (ScoredValue S R d))
    rwa [ofBlock_nil, List.append_nil] at this
  simp only [online, List.foldl_append, List.foldl_cons] at hs ⊢
  rw [hs]

end Attention.Proof
