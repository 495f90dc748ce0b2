module

public import Attention.Model.Exact
public import Attention.Proof.Cache.Basic

public section

/-! # Wrong variants of the cache, and what no cache can do -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- The claim of `kv_delete` about the output, made of any deletion. -/
abbrev DeletesKey (delete : State Int Rat 1 → ScoredValue Int Rat 1 → State Int Rat 1) : Prop :=
  ∀ (xs ys : List (ScoredValue Int Rat 1)) (key : ScoredValue Int Rat 1),
    (∃ k ∈ xs ++ ys, k.score ≠ none) →
      finish (delete (ofBlock (xs ++ key :: ys)) key) = attend (xs ++ ys)

/-- Positive control: `delete` deletes. -/
theorem deletesKey_delete : DeletesKey delete :=
  fun xs ys key h => ((Proof.kv_delete xs ys key).2.2.1 h).2

/-- `o` keeps the deleted key's value. -/
@[expose] def deleteOnlyL (s : State Int Rat 1) (key : ScoredValue Int Rat 1) : State Int Rat 1 :=
  { delete s key with o := s.o }

theorem deleteOnlyL_refuted : ¬ DeletesKey deleteOnlyL :=
  fun h => absurd (congrArg Vector.toList
    (h [⟨some 0, #v[1]⟩] [] ⟨some 0, #v[3]⟩ ⟨_, .head _, by decide⟩)) (by decide +kernel)

/-- `l` keeps the deleted key's weight: the row is averaged with a zero value in its place. -/
@[expose] def deleteOnlyO (s : State Int Rat 1) (key : ScoredValue Int Rat 1) : State Int Rat 1 :=
  { delete s key with l := s.l }

theorem deleteOnlyO_refuted : ¬ DeletesKey deleteOnlyO :=
  fun h => absurd (congrArg Vector.toList
    (h [⟨some 0, #v[1]⟩] [] ⟨some 0, #v[3]⟩ ⟨_, .head _, by decide⟩)) (by decide +kernel)

/-- The key's weight is taken against its own score, not against the stored maximum. -/
@[expose] def deleteOwnMax (s : State Int Rat 1) (key : ScoredValue Int Rat 1) : State Int Rat 1 :=
  { delete { s with m := key.score } key with m := s.m }

theorem deleteOwnMax_refuted : ¬ DeletesKey deleteOwnMax :=
  fun h => absurd (congrArg Vector.toList
    (h [⟨some 1, #v[1]⟩] [] ⟨some 0, #v[3]⟩ ⟨_, .head _, by decide⟩)) (by decide +kernel)

/-- When the key with the largest score is deleted the maximum is lowered by one, and l and o are
left against the old one. The output is right (m cancels in it), so this is seen only by the sums
against m and by the next key. -/
@[expose] def deleteLowersMax (s : State Int Rat 1) (key : ScoredValue Int Rat 1) :
    State Int Rat 1 :=
  if key.score = s.m then { delete s key with m := s.m.map (· - 1) } else delete s key

theorem deleteLowersMax_refuted : ¬ ∀ (xs ys : List (ScoredValue Int Rat 1)) key m,
    (deleteLowersMax (ofBlock (xs ++ key :: ys)) key).m = some m →
      exp m * (deleteLowersMax (ofBlock (xs ++ key :: ys)) key).l
        = (denominator ((xs ++ ys).map (·.score)) : Rat) :=
  fun h => absurd (h [⟨some 0, #v[1]⟩] [] ⟨some 0, #v[3]⟩ (-1) (by decide +kernel))
    (by decide +kernel)

theorem deleteLowersMax_replace_refuted : ¬ ∀ (xs ys : List (ScoredValue Int Rat 1)) old new,
    (∃ k ∈ xs ++ new :: ys, k.score ≠ none) →
      finish (step (deleteLowersMax (ofBlock (xs ++ old :: ys)) old) new)
        = attend (xs ++ new :: ys) :=
  fun h => absurd (congrArg Vector.toList
    (h [⟨some 0, #v[1]⟩] [] ⟨some 0, #v[3]⟩ ⟨some 0, #v[5]⟩ ⟨_, .head _, by decide⟩))
    (by decide +kernel)

/-- A key replaced without taking the old one out. -/
theorem stepOnly_refuted : ¬ ∀ (xs ys : List (ScoredValue Int Rat 1)) old new,
    (∃ k ∈ xs ++ new :: ys, k.score ≠ none) →
      finish (step (ofBlock (xs ++ old :: ys)) new) = attend (xs ++ new :: ys) :=
  fun h => absurd (congrArg Vector.toList
    (h [⟨some 0, #v[1]⟩] [] ⟨some 0, #v[3]⟩ ⟨some 0, #v[7]⟩ ⟨_, .head _, by decide⟩))
    (by decide +kernel)

/-- A new key appended without rescaling. -/
@[expose] def appendNotRescaled (s : State Int Rat 1) (keys : List (ScoredValue Int Rat 1)) :
    State Int Rat 1 :=
  keys.foldl (fun s key => { step s key with l := s.l + rescale key.score (step s key).m }) s

theorem appendNotRescaled_refuted : ¬ ∀ row keys,
    appendNotRescaled (ofBlock row) keys = ofBlock (row ++ keys) :=
  fun h => absurd (congrArg State.l (h [⟨some 0, #v[1]⟩] [⟨some 1, #v[0]⟩])) (by decide +kernel)

/-- A sliding window that is one key too short. -/
theorem slideShort_refuted : ¬ ∀ (w : Nat) (keys : List (ScoredValue Int Rat 1)),
    (∃ k ∈ keys.drop (keys.length - w), k.score ≠ none) →
      finish (keys.foldl (slide (w - 1)) ([], empty)).2 = attend (keys.drop (keys.length - w)) :=
  fun h => absurd (congrArg Vector.toList
    (h 2 [⟨some 0, #v[1]⟩, ⟨some 0, #v[3]⟩] ⟨_, .head _, by decide⟩)) (by decide +kernel)

/-- A sliding window that deletes the newest of the old keys, not the oldest. -/
@[expose] def slideNewest (w : Nat) (c : List (ScoredValue Int Rat 1) × State Int Rat 1)
    (key : ScoredValue Int Rat 1) : List (ScoredValue Int Rat 1) × State Int Rat 1 :=
  if w < c.1.length + 1 then edit (edit c (.delete (w - 1))) (.append key)
  else edit c (.append key)

theorem slideNewest_refuted : ¬ ∀ (w : Nat) (keys : List (ScoredValue Int Rat 1)),
    (∃ k ∈ keys.drop (keys.length - w), k.score ≠ none) →
      finish (keys.foldl (slideNewest w) ([], empty)).2 = attend (keys.drop (keys.length - w)) :=
  fun h => absurd (congrArg Vector.toList
    (h 2 [⟨some 0, #v[1]⟩, ⟨some 0, #v[3]⟩, ⟨some 0, #v[7]⟩] ⟨_, .head _, by decide⟩))
    (by decide +kernel)

/-- A cache that never lets a key go, and computes its output from the last `w`: the output is
right, and what is kept is not. -/
@[expose] def slideKeepsAll (w : Nat) (c : List (ScoredValue Int Rat 1) × State Int Rat 1)
    (key : ScoredValue Int Rat 1) : List (ScoredValue Int Rat 1) × State Int Rat 1 :=
  let keys := c.1 ++ [key]
  (keys, ofBlock (keys.drop (keys.length - w)))

theorem slideKeepsAll_refuted : ¬ ∀ (w : Nat) (keys : List (ScoredValue Int Rat 1)),
    (keys.foldl (slideKeepsAll w) ([], empty)).1 = keys.drop (keys.length - w) :=
  fun h => absurd (congrArg List.length (h 1 [⟨some 0, #v[1]⟩, ⟨some 0, #v[3]⟩]))
    (by decide +kernel)

/-- After a deletion l may be as small as it likes: the bound 1 ≤ l of `online_invariant`, which
keeps the division safe, is lost. -/
theorem delete_one_le_l_refuted : ¬ ∀ (xs ys : List (ScoredValue Int Rat 1)) key,
    (∃ k ∈ xs ++ ys, k.score ≠ none) → 1 ≤ (delete (ofBlock (xs ++ key :: ys)) key).l :=
  fun h => absurd (h [⟨some 0, #v[1]⟩] [] ⟨some 40, #v[3]⟩ ⟨_, .head _, by decide⟩)
    (by decide +kernel)

/-- Two rows whose states with one more key are the same state, and whose states without it
differ. -/
theorem same_state_before_delete :
    let key : ScoredValue Int Rat 1 := ⟨some 0, #v[0]⟩
    let one : List (ScoredValue Int Rat 1) := [⟨some 0, #v[1]⟩]
    let two : List (ScoredValue Int Rat 1) := [⟨some (-1), #v[1]⟩, ⟨some (-1), #v[1]⟩]
    ofBlock (key :: one) = ofBlock (key :: two) ∧ (ofBlock one).m ≠ (ofBlock two).m := by
  refine ⟨Proof.state_ext (by decide +kernel) (by decide +kernel) fun j _ => ?_, by decide +kernel⟩
  exact congrArg (fun o : Vec Rat 1 => o[j]) (Vector.toList_inj.mp (by decide +kernel))

/-- **kv-delete-max**: the state that is left cannot be had from the stored state and the deleted
key, by this or any other deletion: when the largest key goes, the maximum of the rest is lost. -/
theorem delete_max_not_recoverable :
    ¬ ∃ f : State Int Rat 1 → ScoredValue Int Rat 1 → State Int Rat 1,
      ∀ (xs ys : List (ScoredValue Int Rat 1)) (key : ScoredValue Int Rat 1),
        f (ofBlock (xs ++ key :: ys)) key = ofBlock (xs ++ ys) := by
  intro ⟨f, h⟩
  have h₁ := same_state_before_delete
  exact h₁.2 (congrArg State.m ((h [] _ _).symm.trans ((congrArg (f · _) h₁.1).trans (h [] _ _))))

end Attention.WrongVariants
