module

public import Attention.Model.FloatingPoint
public import Attention.Proof.Softmax.Maximum
public import Attention.Proof.Rounding.Masked
public import Attention.Proof.Rounding.Run
public import Attention.Spec.Online

public section

/-! # Online softmax over numbers that round

The Spec's own updates, taken over `FloatingPoint.Number`, compute parts that `Model.Run` allows. So
what is proved of every `Run` is proved of them. -/

namespace Attention.Proof

open Spec Spec.Online Model Model.FloatingPoint

universe u v

variable {R : Type u}

/-! ## Parts -/

/-- The computed score of a key; `none` when it is masked. -/
@[expose] def computedScore (key : ComputedKey R) : Option R := key.score.map fun _ => key.computed

theorem computedScore_eq_none {key : ComputedKey R} :
    computedScore key = none ↔ key.score = none := by
  simp [computedScore]

variable [OrderedField R]

section
variable [Exp R R] {p : Precision R} {m : R}

/-- Counts of roundings may be larger than they are. -/
theorem run_mono {part : Part R} (h : Run p m part) {a r : Nat}
    (ha : part.additions ≤ a) (hr : part.rescalings ≤ r) :
    Run p m ⟨part.keys, part.l, part.o, a, r⟩ := by
  simpa using Run.join (parts := [part]) (a := a) (k := 0) (r := r) (by simpa using h)
    (by simpa using ⟨ha, hr⟩) .one .one

end

/-! ## Numbers that round -/

variable [Exp R R] {F : FloatingPoint R} {d : Nat} {α : Type v} {m : R}

/-- A sum over a list, as the Spec adds it: from the right, 0 first. -/
theorem sumOver_roundedSum (h : α → F.Number) (xs : List α) :
    RoundedSum F.unit xs.length (xs.map fun x => (h x).val) (sumOver h xs).val := by
  induction xs with
  | nil => exact .nil
  | cons x xs ih => exact roundedSum_add (xs := [(h x).val]) .one ih (Number.add_rounded _ _)

/-- A sum of two numbers. -/
theorem number_roundedSum (a b : F.Number) : RoundedSum F.unit 1 [a.val, b.val] (a + b).val :=
  roundedSum_add (xs := [a.val]) .one .one (Number.add_rounded _ _)

/-- Two parts are put together. -/
theorem run_add {x y x' y' : F.Number} {keys keys' : List (ComputedKey R)} {a r : Nat}
    (h : Run F.precision m ⟨keys, x.val, y.val, a, r⟩)
    (h' : Run F.precision m ⟨keys', x'.val, y'.val, a, r⟩) :
    Run F.precision m ⟨keys ++ keys', (x + x').val, (y + y').val, a + 1, r⟩ := by
  have := Run.join (parts := [⟨keys, x.val, y.val, a, r⟩, ⟨keys', x'.val, y'.val, a, r⟩])
    (a := a) (r := r) (by simpa using ⟨h, h'⟩) (by simp) (number_roundedSum x x')
    (number_roundedSum y y')
  simpa using this

/-- The larger of two scores, as numbers of `R`. -/
theorem maxScore_map_val (a b : Option F.Number) :
    (maxScore a b).map (·.val) = maxScore (a.map (·.val)) (b.map (·.val)) := by
  cases a <;> cases b <;> simp only [maxScore, Option.map]
  simp only [Number.le_def]
  split <;> rfl

/-- The largest score, as a number of `R`. -/
theorem rowMax_map_val (row : List (Option F.Number)) :
    (rowMax row).map (·.val) = rowMax (row.map fun s => s.map (·.val)) := by
  induction row with
  | nil => rfl
  | cons s row ih => simp only [rowMax, List.map_cons, maxScore_map_val, ih]

/-! ## Keys and states -/

/-- A key of the Spec over numbers that round, and what is to be known of it for component `j`. -/
structure Agrees (j : Fin d) (key : ScoredValue F.Number F.Number d) (k : ComputedKey R) :
    Prop where
  /-- The computed score is the score; both are masked, or neither. -/
  score : computedScore k = key.score.map (·.val)
  /-- The same value. -/
  value : k.value = key.value[j].val

/-- Component `j` of a state is a part of these keys, with at most so many roundings of sums and
rescalings, and its reference point is their largest computed score. -/
structure Carries (j : Fin d) (s : State F.Number F.Number d) (keys : List (ComputedKey R))
    (additions rescalings : Nat) : Prop where
  /-- The part; without a reference point, against any. -/
  run : ∀ m, (∀ x, s.m = some x → x.val = m) →
    Run F.precision m ⟨keys, s.l.val, s.o[j].val, additions, rescalings⟩
  /-- The reference point. -/
  max : s.m.map (·.val) = rowMax (keys.map computedScore)

variable {j : Fin d} {s : State F.Number F.Number d} {keys : List (ComputedKey R)} {a r : Nat}
variable {M : Option F.Number}

/-- The weight of a key, and its product with the value. -/
theorem Agrees.run {key : ScoredValue F.Number F.Number d} {k : ComputedKey R}
    (h : Agrees j key k) (hm : ∀ x, M = some x → x.val = m)
    (hle : ScoreLE (key.score.map (·.val)) (M.map (·.val))) :
    Run F.precision m ⟨[k], (rescale key.score M : F.Number).val,
      ((rescale key.score M : F.Number) * key.value[j]).val, 0, 0⟩ := by
  have hs := h.score
  cases hk : key.score with
  | none =>
    rw [hk] at hs
    have := Run.masked (p := F.precision) (m := m) (computedScore_eq_none.mp hs)
    simpa only [rescale, Number.zero_val, Number.zero_mul_val] using this
  | some s =>
    rw [hk] at hs hle
    cases M with
    | none => cases hle
    | some x =>
      have hc : k.score ≠ none := by simp [← computedScore_eq_none, hs]
      have hcs : k.computed = s.val := by
        cases hks : k.score with
        | none => exact absurd hks hc
        | some _ => simpa [computedScore, hks] using hs
      refine Run.key hc ?_ ?_ (F.exp_rounded _) (stored_refl (Std.le_refl _) _) ?_
      · exact hcs ▸ hm x rfl ▸ hle
      · rw [hcs, ← hm x rfl]
        exact Number.sub_rounded s x
      · rw [h.value]
        exact Number.mul_rounded _ _

variable {f : α → ScoredValue F.Number F.Number d} {g : α → ComputedKey R}

/-- The sums over a block of keys, against a reference point that none exceeds. -/
theorem block_run (hfg : ∀ x, Agrees j (f x) (g x)) (block : List α)
    (hm : ∀ x, M = some x → x.val = m)
    (hle : ∀ x ∈ block, ScoreLE ((f x).score.map (·.val)) (M.map (·.val))) :
    Run F.precision m ⟨block.map g,
      (sumOver (fun key => (rescale key.score M : F.Number)) (block.map f)).val,
      (Vec.sumOver (fun key => Vec.smul (rescale key.score M : F.Number) key.value)
        (block.map f))[j].val, block.length, 0⟩ := by
  have hl := sumOver_roundedSum (fun x => (rescale (f x).score M : F.Number)) block
  have ho := sumOver_roundedSum
    (fun x => (rescale (f x).score M : F.Number) * (f x).value[j]) block
  have := Run.join (p := F.precision) (m := m) (a := 0) (k := block.length) (r := 0)
    (parts := block.map fun x => ⟨[g x], (rescale (f x).score M : F.Number).val,
      ((rescale (f x).score M : F.Number) * (f x).value[j]).val, 0, 0⟩)
    (by
      intro part hp
      obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hp
      exact (hfg x).run hm (hle x hx))
    (by
      intro part hp
      obtain ⟨x, hx, rfl⟩ := List.mem_map.mp hp
      exact ⟨Nat.le_refl _, Nat.le_refl _⟩)
    (by simpa only [List.map_map] using hl) (by simpa only [List.map_map] using ho)
  simpa [List.flatMap_map, sumOver_map, ← List.map_eq_flatMap] using this

/-- A state whose part is multiplied by the factor that moves it to a later reference point. -/
theorem Carries.rescale (h : Carries j s keys a r) {r' : Nat} (hr : r ≤ r')
    (hr' : s.m ≠ none → r + 1 ≤ r') (hm : ∀ x, M = some x → x.val = m)
    (hle : ScoreLE (s.m.map (·.val)) (M.map (·.val))) :
    Run F.precision m ⟨keys, ((Spec.rescale s.m M : F.Number) * s.l).val,
      ((Spec.rescale s.m M : F.Number) * s.o[j]).val, a, r'⟩ := by
  cases hs : s.m with
  | none =>
    have hrun := h.run m (by simp [hs])
    have hmask := h.max
    rw [hs] at hmask
    obtain ⟨h₁, h₂⟩ := run_masked hrun fun key hk => computedScore_eq_none.mp
      (rowMax_eq_none.mp hmask.symm _ (List.mem_map_of_mem hk))
    simp only at h₁ h₂
    simp only [Spec.rescale, Number.zero_mul_val]
    rw [h₁, h₂] at hrun
    exact run_mono hrun (Nat.le_refl _) hr
  | some x =>
    rw [hs] at hle
    cases M with
    | none => cases hle
    | some y =>
      have hrun := h.run x.val (by simp [hs])
      have := Run.rescale hrun (hm y rfl ▸ hle) (hm y rfl ▸ Number.sub_rounded x y)
        (F.exp_rounded _) (Number.mul_rounded (exp (x - y)) s.l)
        (Number.mul_rounded (exp (x - y)) s.o[j])
      exact run_mono this (Nat.le_refl _) (hr' (by simp [hs]))

/-! ## The updates -/

/-- The computed scores of a block are the scores of the Spec's block. -/
theorem map_computedScore (hfg : ∀ x, Agrees j (f x) (g x)) (block : List α) :
    (block.map g).map computedScore
      = ((block.map f).map (·.score)).map fun s => s.map (·.val) := by
  simp only [List.map_map]
  exact List.map_congr_left fun x _ => (hfg x).score

/-- The largest computed score of a block is the largest score of the Spec's block. -/
theorem rowMax_computedScore (hfg : ∀ x, Agrees j (f x) (g x)) (block : List α) :
    rowMax ((block.map g).map computedScore)
      = (rowMax ((block.map f).map (·.score))).map (·.val) := by
  rw [map_computedScore hfg, rowMax_map_val]

/-- No score of a block exceeds the largest, nor what is larger than that. -/
theorem score_le_max {block : List α} (hM : ScoreLE ((rowMax ((block.map f).map (·.score))).map
      (·.val)) (M.map (·.val))) :
    ∀ x ∈ block, ScoreLE ((f x).score.map (·.val)) (M.map (·.val)) := by
  refine fun x hx => ScoreLE.trans ?_ hM
  rw [rowMax_map_val]
  exact le_rowMax (by simpa using ⟨x, hx, rfl⟩)

/-- The state of no keys. -/
theorem carries_empty : Carries j (empty : State F.Number F.Number d) [] 0 0 where
  run m _ := by
    simpa [empty] using Run.join (p := F.precision) (m := m) (parts := []) (a := 0) (k := 0)
      (r := 0) (by simp) (by simp) .nil .nil
  max := rfl

/-- The state of one block: as many additions as it has keys. -/
theorem carries_ofBlock (hfg : ∀ x, Agrees j (f x) (g x)) (block : List α) :
    Carries j (ofBlock (block.map f)) (block.map g) block.length 0 where
  run _ hm := block_run hfg block hm (score_le_max (ScoreLE.refl _))
  max := (rowMax_computedScore hfg block).symm

/-- One more block: one more addition, and one more rescaling unless there was no key before. -/
theorem Carries.stepBlock (h : Carries j s keys a r) (hfg : ∀ x, Agrees j (f x) (g x))
    (block : List α) {a' r' : Nat} (ha : a ≤ a') (ha' : block.length ≤ a') (hr : r ≤ r')
    (hr' : s.m ≠ none → r + 1 ≤ r') :
    Carries j (Online.stepBlock s (block.map f)) (keys ++ block.map g) (a' + 1) r' where
  run m hm := by
    have h₁ := h.rescale hr hr' hm (by rw [Online.stepBlock, maxScore_map_val]
                                       exact le_maxScore_left _ _)
    have h₂ := block_run hfg block hm (score_le_max (by
      rw [Online.stepBlock, maxScore_map_val]
      exact le_maxScore_right _ _))
    have := run_add (run_mono h₁ ha (Nat.le_refl _)) (run_mono h₂ ha' (Nat.zero_le _))
    simpa only [Online.stepBlock, Vec.getElem_add, Vec.getElem_smul, Fin.getElem_fin] using this
  max := by
    rw [List.map_append, rowMax_append, rowMax_computedScore hfg, ← h.max]
    exact maxScore_map_val _ _

/-- One more key: one more addition, and one more rescaling unless there was no key before. -/
theorem Carries.step (h : Carries j s keys a r) {key : ScoredValue F.Number F.Number d}
    {k : ComputedKey R} (hk : Agrees j key k) {r' : Nat} (hr : r ≤ r')
    (hr' : s.m ≠ none → r + 1 ≤ r') :
    Carries j (Online.step s key) (keys ++ [k]) (a + 1) r' where
  run m hm := by
    have h₁ := h.rescale hr hr' hm (by rw [Online.step, maxScore_map_val]
                                       exact le_maxScore_left _ _)
    have h₂ := hk.run hm (by rw [Online.step, maxScore_map_val]; exact le_maxScore_right _ _)
    have := run_add h₁ (run_mono h₂ (Nat.zero_le _) (Nat.zero_le _))
    simpa only [Online.step, Vec.getElem_add, Vec.getElem_smul, Fin.getElem_fin] using this
  max := by
    rw [List.map_append, rowMax_append, ← h.max, Online.step, maxScore_map_val, ← hk.score]
    simp [rowMax]

/-- Two states merged: one more addition, and one more rescaling. -/
theorem Carries.merge (h : Carries j s keys a r) {s' : State F.Number F.Number d}
    {keys' : List (ComputedKey R)} (h' : Carries j s' keys' a r) :
    Carries j (Online.merge s s') (keys ++ keys') (a + 1) (r + 1) where
  run m hm := by
    have h₁ := h.rescale (Nat.le_succ r) (fun _ => Nat.le_refl _) hm (by
      rw [Online.merge, maxScore_map_val]
      exact le_maxScore_left _ _)
    have h₂ := h'.rescale (Nat.le_succ r) (fun _ => Nat.le_refl _) hm (by
      rw [Online.merge, maxScore_map_val]
      exact le_maxScore_right _ _)
    simpa only [Online.merge, Vec.getElem_add, Vec.getElem_smul, Fin.getElem_fin]
      using run_add h₁ h₂
  max := by
    rw [List.map_append, rowMax_append, ← h.max, ← h'.max]
    exact maxScore_map_val _ _

/-- Counts may be larger than they are. -/
theorem Carries.mono (h : Carries j s keys a r) {a' r' : Nat} (ha : a ≤ a') (hr : r ≤ r') :
    Carries j s keys a' r' where
  run m hm := run_mono (h.run m hm) ha hr
  max := h.max

/-! ## The loop -/

/-- Some blocks of at most `n` keys each. -/
theorem Carries.foldl (hfg : ∀ x, Agrees j (f x) (g x)) {n : Nat} (blocks : List (List α))
    (hn : ∀ block ∈ blocks, block.length ≤ n) (h : Carries j s keys (n + a) r) :
    Carries j ((blocks.map (List.map f)).foldl Online.stepBlock s) (keys ++ blocks.flatten.map g)
      (n + (a + blocks.length)) (r + blocks.length) := by
  induction blocks generalizing s keys a r with
  | nil => simpa using h
  | cons block blocks ih =>
    have hlen : block.length ≤ n + a := Nat.le_trans (hn block (by simp)) (Nat.le_add_right _ _)
    have := ih (a := a + 1) (fun b hb => hn b (by simp [hb]))
      (h.stepBlock hfg block (Nat.le_refl _) hlen (Nat.le_succ r) fun _ => Nat.le_refl _)
    simpa [Nat.add_assoc, Nat.add_comm, Nat.add_left_comm] using this

/-- Online softmax over numbers that round computes, of blocks of at most `n`
keys, a part that `Model.Run` allows: no key's part goes through more than `n` additions and one for
each block, nor through more rescalings than there are blocks after the first. -/
theorem online_carries (hfg : ∀ x, Agrees j (f x) (g x)) {n : Nat} (blocks : List (List α))
    (hn : ∀ block ∈ blocks, block.length ≤ n) :
    Carries j (online (blocks.map (List.map f))) (blocks.flatten.map g) (n + blocks.length)
      (blocks.length - 1) := by
  cases blocks with
  | nil => exact carries_empty.mono (Nat.zero_le _) (Nat.zero_le _)
  | cons block blocks =>
    have h := (carries_empty (j := j) (F := F)).stepBlock hfg block (a' := n) (r' := 0)
      (Nat.zero_le _) (hn block (by simp)) (Nat.le_refl _) (by simp [empty])
    have := h.foldl hfg (n := n) blocks (fun b hb => hn b (by simp [hb]))
    simpa [online, Nat.add_comm 1] using this

/-- The loop with at least one unmasked key: its state is a `Run` against the largest computed score
of an unmasked key. -/
theorem online_run (hfg : ∀ x, Agrees j (f x) (g x)) {n : Nat} (blocks : List (List α))
    (hn : ∀ block ∈ blocks, block.length ≤ n) {x : F.Number}
    (hx : (online (blocks.map (List.map f))).m = some x) :
    Run F.precision x.val ⟨blocks.flatten.map g, (online (blocks.map (List.map f))).l.val,
        (online (blocks.map (List.map f))).o[j].val, n + blocks.length, blocks.length - 1⟩ ∧
      rowMax ((blocks.flatten.map g).map computedScore) = some x.val := by
  have h := online_carries hfg blocks hn
  refine ⟨h.run _ (by simp [hx]), ?_⟩
  rw [← h.max, hx]
  rfl

/-- The division at the end is rounded once. -/
theorem finish_rounded {x : F.Number} (hx : s.m = some x) (j : Fin d) :
    Rounded F.unit (s.o[j].val / s.l.val) (finish s)[j].val := by
  have : (finish s)[j] = s.o[j] / s.l := by simp [finish, hx]
  rw [this]
  exact Number.div_rounded _ _

/-- With every key masked the result is exactly 0. -/
theorem finish_masked (hs : s.m = none) (j : Fin d) : (finish s)[j].val = 0 := by
  simp [finish, hs]

end Attention.Proof
