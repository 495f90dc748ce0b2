module

public import Attention.Proof.Cache.Basic
public import Attention.Proof.Cache.Window
public import Attention.Proof.Online.Merge
public import Attention.Vectors.CaseSound
public import Attention.Vectors.States

public section

/-! # What runs is what is proved: states that are merged, and the cache of a row

`MergeCase.run` and `CacheCase.run` make the exact vectors of states (m, l, o). -/

namespace Attention.Vectors

open Spec Spec.Online Proof

variable {d : Nat}

/-- A key of the Spec, as a case lists it. -/
@[expose] def Key.of (key : ScoredValue Int Rat d) : Key := ⟨key.score, key.value.toList⟩

/-- A key comes from the one that is listed. -/
theorem Key.toSpec_ok {key : Key} {k : ScoredValue Int Rat d} (h : key.toSpec d = .ok k) :
    Key.of k = key := by
  rw [Key.toSpec] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  have hrows := toMatrix_rows hV
  have h₀ := congrArg (·[0]?) hrows
  simp only [rowsOf, List.getElem?_map, Vector.getElem?_toList] at h₀
  obtain ⟨score, value⟩ := key
  simpa [Key.of] using h₀

/-- So do several. -/
theorem Key.mapM_toSpec_ok {keys : List Key} {ks : List (ScoredValue Int Rat d)}
    (h : keys.mapM (Key.toSpec d) = .ok ks) : ks.map Key.of = keys := by
  obtain ⟨hlen, each⟩ := mapM_ok h
  refine List.ext_getElem (by simpa using hlen) fun i hi _ => ?_
  rw [List.getElem_map]
  exact Key.toSpec_ok (each i (by simpa using hi))

/-! ## Merges -/

/-- The numbers at the leaves, from left to right. -/
@[expose] def Tree.leaves : Tree → List Nat
  | .leaf n => [n]
  | .node left right => left.leaves ++ right.leaves

private theorem MergeCase.toSpec_ok {c : MergeCase} : ∀ {tree : Tree}
    {t : MergeTree Int Rat c.value_dim}, c.toSpec tree = .ok t →
      ∃ blocks : List (List Key), tree.leaves.map (c.blocks[·]?) = blocks.map some ∧
        t.keys.map Key.of = blocks.flatten
  | .leaf n, t, h => by
    rw [toSpec] at h
    split at h
    case h_1 => cases h
    case h_2 block hb =>
      obtain ⟨keys, hk, h⟩ := bind_ok h
      obtain rfl := Except.ok.inj h
      exact ⟨[block], by simp [Tree.leaves, hb], by simp [MergeTree.keys, Key.mapM_toSpec_ok hk]⟩
  | .node left right, t, h => by
    rw [toSpec] at h
    obtain ⟨l, hl, h⟩ := bind_ok h
    obtain ⟨r, hr, h⟩ := bind_ok h
    obtain rfl := Except.ok.inj h
    obtain ⟨bl, hbl, hkl⟩ := toSpec_ok hl
    obtain ⟨br, hbr, hkr⟩ := toSpec_ok hr
    exact ⟨bl ++ br, by simp [Tree.leaves, hbl, hbr], by simp [MergeTree.keys, hkl, hkr]⟩

/-- **merge-vectors-sound**: if the program gives a result for a tree of merges, each leaf has its
block, the result is the state of the keys of all leaves, taken at once, and that state, finished,
is their attention. -/
theorem MergeCase.run_sound {c : MergeCase} {result : StateResult} (h : c.run = .ok result) :
    ∃ (blocks : List (List Key)) (keys : List (ScoredValue Int Rat c.value_dim)),
      c.tree.leaves.map (c.blocks[·]?) = blocks.map some ∧ keys.map Key.of = blocks.flatten ∧
      result = toResult (ofBlock keys) ∧ finish (ofBlock keys) = attend keys := by
  rw [run] at h
  obtain ⟨t, ht, h⟩ := bind_ok h
  obtain ⟨blocks, hb, hk⟩ := toSpec_ok ht
  refine ⟨blocks, t.keys, hb, hk, ?_, finish_ofBlock _⟩
  rw [← eval_eq_ofBlock t (.refl _)]
  exact (Except.ok.inj h).symm

/-! ## The cache of a row -/

/-- The keys of a case after a change. -/
@[expose] def CacheEdit.keys (row : List Key) : CacheEdit → List Key
  | .append key => row ++ [key]
  | .delete i => row.eraseIdx i
  | .replace i key => row.set i key
  | .slide w key => if w < (row ++ [key]).length then (row ++ [key]).drop 1 else row ++ [key]

/-- The key that a change brings. -/
@[expose] def CacheEdit.brings : CacheEdit → Option Key
  | .append key | .replace _ key | .slide _ key => some key
  | .delete _ => none

/-- The keys of a case after its first changes. -/
@[expose] def CacheCase.keysAfter (c : CacheCase) (changes : Nat) : List Key :=
  (c.edits.take changes).foldl CacheEdit.keys c.keys

/-- All keys that have been there until then, those that are gone too. -/
@[expose] def CacheCase.keysUntil (c : CacheCase) (changes : Nat) : List Key :=
  c.keys ++ (c.edits.take changes).filterMap CacheEdit.brings

/-- The kept state is right: the state stands for the keys that are there, and its reference point
is the largest score of all that have been. -/
private structure Kept (now : List (ScoredValue Int Rat d) × State Int Rat d)
    (row past : List Key) : Prop where
  keys : now.1.map Key.of = row
  represents : Represents now.2 now.1
  m : now.2.m = rowMax (past.map (·.score))

private theorem rowMax_concat (past : List (Option Int)) (s : Option Int) :
    rowMax (past ++ [s]) = maxScore (rowMax past) s := by
  simp [rowMax_append, rowMax]

private theorem map_eraseIdx {α β : Type} (f : α → β) : ∀ (xs : List α) (i : Nat),
    (xs.eraseIdx i).map f = (xs.map f).eraseIdx i
  | [], _ => rfl
  | _ :: _, 0 => rfl
  | _ :: xs, i + 1 => congrArg (f _ :: ·) (map_eraseIdx f xs i)

private theorem Kept.run {now next : List (ScoredValue Int Rat d) × State Int Rat d}
    {row past : List Key} (h : Kept now row past) {e : CacheEdit} (he : e.run now = .ok next) :
    Kept next (e.keys row) (past ++ e.brings.toList) := by
  obtain ⟨hk, hr, hm⟩ := h
  cases e with
  | append key =>
    obtain ⟨k, hkey, he⟩ := bind_ok he
    obtain rfl := Except.ok.inj he
    obtain rfl := Key.toSpec_ok hkey
    exact ⟨by simp [edit, CacheEdit.keys, hk], represents_edit hr _, by
      simp [edit, step, CacheEdit.brings, rowMax_concat, hm, Key.of]⟩
  | delete i =>
    simp only [CacheEdit.run, CacheEdit.check] at he
    split at he
    case isFalse => cases he
    case isTrue hi =>
      obtain rfl := Except.ok.inj he
      refine ⟨?_, represents_edit hr _, ?_⟩
      · simp [edit, CacheEdit.keys, ← hk, hi, map_eraseIdx]
      · simp [edit, delete, CacheEdit.brings, hi, hm]
  | replace i key =>
    obtain ⟨k, hkey, he⟩ := bind_ok he
    simp only [CacheEdit.check] at he
    split at he
    case isFalse => cases he
    case isTrue hi =>
      obtain rfl := Except.ok.inj he
      obtain rfl := Key.toSpec_ok hkey
      refine ⟨?_, represents_edit hr _, ?_⟩
      · simp [edit, CacheEdit.keys, ← hk, hi, List.map_set]
      · simp [edit, replace, delete, step, CacheEdit.brings, hi, rowMax_concat, hm, Key.of]
  | slide w key =>
    obtain ⟨k, hkey, he⟩ := bind_ok he
    obtain rfl := Except.ok.inj he
    obtain rfl := Key.toSpec_ok hkey
    have hlen : now.1.length = row.length := by rw [← hk, List.length_map]
    refine ⟨?_, represents_slide w hr k, ?_⟩
    · simp only [slide, edit, CacheEdit.keys, List.length_append, List.length_singleton, hlen]
      split
      · simp [hk]
      · simp [hk]
    · simp only [slide, edit]
      split <;> simp [delete, step, CacheEdit.brings, rowMax_concat, hm, Key.of]

private theorem follow_ok {now : List (ScoredValue Int Rat d) × State Int Rat d}
    {row past : List Key} (h : Kept now row past) {edits : List CacheEdit}
    {results : List (List (ScoredValue Int Rat d) × State Int Rat d)}
    (hf : CacheCase.follow now edits = .ok results) :
    results.length = edits.length + 1 ∧ ∀ n (hn : n < results.length),
      Kept results[n] ((edits.take n).foldl CacheEdit.keys row)
        (past ++ (edits.take n).filterMap CacheEdit.brings) := by
  induction edits generalizing now row past results with
  | nil =>
    obtain rfl := Except.ok.inj hf
    refine ⟨rfl, fun n hn => ?_⟩
    obtain rfl : n = 0 := by simpa using hn
    simpa using h
  | cons e edits ih =>
    rw [CacheCase.follow] at hf
    obtain ⟨next, he, hf⟩ := bind_ok hf
    obtain ⟨rest, hrest, hf⟩ := bind_ok hf
    obtain rfl := Except.ok.inj hf
    obtain ⟨hlen, each⟩ := ih (h.run he) hrest
    refine ⟨by simp [hlen], fun n hn => ?_⟩
    cases n with
    | zero => simpa using h
    | succ n =>
      have := each n (by simpa using hn)
      cases hb : e.brings <;> simpa [hb, List.filterMap_cons] using this

/-- **cache-vectors-sound**: if the program gives results for a cache that changes, they are one for
the beginning and one for each change. Each is the state of the keys that are there then: m is the
largest score of all keys that have been there, exp m · l is the denominator of those that are there
and exp m · o their numerator, and finished it is their attention. -/
theorem CacheCase.run_sound {c : CacheCase} {results : List StateResult}
    (h : c.run = .ok results) :
    results.length = c.edits.length + 1 ∧ ∀ n (hn : n < results.length),
      ∃ (row : List (ScoredValue Int Rat c.value_dim)) (s : State Int Rat c.value_dim),
        row.map Key.of = c.keysAfter n ∧ results[n] = toResult s ∧
        s.m = rowMax ((c.keysUntil n).map (·.score)) ∧ Represents s row ∧
        finish s = attend row := by
  rw [run] at h
  obtain ⟨keys, hk, h⟩ := bind_ok h
  obtain ⟨states, hs, h⟩ := bind_ok h
  obtain rfl := Except.ok.inj h
  have hkeys := Key.mapM_toSpec_ok hk
  have hstart : append empty keys = ofBlock keys := (kv_append [] keys).1
  have start : Kept (keys, append empty keys) c.keys c.keys := by
    refine ⟨hkeys, hstart ▸ represents_ofBlock keys, ?_⟩
    rw [hstart, ← hkeys, List.map_map]
    rfl
  obtain ⟨hlen, each⟩ := follow_ok start hs
  refine ⟨by simpa using hlen, fun n hn => ?_⟩
  have hn' : n < states.length := by simpa using hn
  obtain ⟨h₁, h₂, h₃⟩ := each n hn'
  exact ⟨states[n].1, states[n].2, h₁, by simp, h₃, h₂, h₂.finish_eq⟩

end Attention.Vectors
