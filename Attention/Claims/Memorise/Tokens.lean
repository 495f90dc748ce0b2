module

public import Attention.Claims.Memorise.Sparse

public section

/-! # Embedded tokens, and lists of all sequences

What enters a transformer that memorises: each token and each place is 1 at a place of its own. And
how many sequences there are. -/

namespace Attention.Claims

open Lean.Grind

universe u v w

variable {α : Type u} {β : Type w} {R : Type v} [OrderedField R] {n o a a' p p' : Nat}

/-! ## Embedded tokens -/

/-- Token a at place p: 1 at a and at o + p, where o is more than any token. -/
@[expose] def embedded (n o a p : Nat) : Vec R n := sparse n [(a, 1), (o + p, 1)]

/-- It is what the embeddings of the token and of the place come to. -/
theorem add_unit : Vec.add (unit n a) (unit n (o + p)) = (embedded n o a p : Vec R n) :=
  add_sparse _ _

section
variable (ha : a < o) (hp : o + p < n)
include ha hp

private theorem embedded_lt {x : Nat × R} (hx : x ∈ [(a, 1), (o + p, 1)]) : x.1 < n := by
  rcases List.mem_cons.mp hx with rfl | hx
  · show a < n
    omega
  · rcases List.mem_cons.mp hx with rfl | hx
    · exact hp
    · cases hx

/-- The sum of the components is the same for all tokens and places. -/
theorem sum_embedded :
    sumOver (fun i : Fin n => (embedded n o a p : Vec R n)[i]) (List.finRange n) = 2 := by
  rw [embedded, sum_sparse fun x hx => embedded_lt ha hp hx]
  simp only [sumOver_cons, sumOver_nil]
  grind

/-- So is the sum of their squares. -/
theorem dot_embedded : Vec.dot (embedded n o a p : Vec R n) (embedded n o a p) = 2 := by
  have h₁ : a ≠ o + p := by omega
  have h₂ : o + p ≠ a := by omega
  rw [embedded, dot_sparse _ fun x hx => embedded_lt ha hp hx]
  simp only [weightAt, sumOver_cons, sumOver_nil, if_neg h₁, if_neg h₂, if_true]
  grind

/-- Token and place can be told. -/
theorem embedded_inj (ha' : a' < o)
    (e : (embedded n o a p : Vec R n) = embedded n o a' p') : a = a' ∧ p = p' := by
  have one := OrderedRing.zero_lt_one (R := R)
  have at_ : ∀ i, i < n → weightAt [(a, (1 : R)), (o + p, 1)] i
      = weightAt [(a', (1 : R)), (o + p', 1)] i := fun i hi => by
    have := congrArg (fun x : Vec R n => x[i]) e
    simpa only [embedded, getElem_sparse] using this
  have h₁ := at_ a (by omega)
  have h₂ := at_ (o + p) hp
  have n₁ : a ≠ o + p := by omega
  have n₂ : a ≠ o + p' := by omega
  have n₃ : o + p ≠ a := by omega
  have n₄ : o + p ≠ a' := by omega
  simp only [weightAt, sumOver_cons, sumOver_nil, if_true, if_neg n₁, if_neg n₂] at h₁
  simp only [weightAt, sumOver_cons, sumOver_nil, if_true, if_neg n₃, if_neg n₄] at h₂
  refine ⟨?_, ?_⟩
  · split at h₁ <;> grind
  · split at h₂ <;> grind

end

/-! ## Lists of everything -/

/-- A list of all pairs. -/
theorem exists_pairs (xs : List α) (ys : List β) :
    ∃ zs : List (α × β), zs.length = xs.length * ys.length ∧ ∀ x ∈ xs, ∀ y ∈ ys, (x, y) ∈ zs := by
  refine ⟨xs.flatMap fun x => ys.map fun y => (x, y), ?_, fun x hx y hy => ?_⟩
  · simp [List.length_flatMap, List.map_const']
  · exact List.mem_flatMap.mpr ⟨x, hx, List.mem_map.mpr ⟨y, hy, rfl⟩⟩

/-- There are v ^ n sequences of n tokens. -/
theorem exists_sequences (v n : Nat) :
    ∃ xs : List (Vector (Fin v) n), xs.length = v ^ n ∧ ∀ x, x ∈ xs := by
  induction n with
  | zero => exact ⟨[#v[]], by simp, fun x => by simp [Vector.eq_empty]⟩
  | succ n ih =>
    obtain ⟨xs, len, all⟩ := ih
    obtain ⟨ps, plen, pall⟩ := exists_pairs xs (List.finRange v)
    refine ⟨ps.map fun p => p.1.push p.2, ?_, fun x => ?_⟩
    · rw [List.length_map, plen, len, List.length_finRange, Nat.pow_succ]
    · exact List.mem_map.mpr ⟨(x.pop, x.back), pall _ (all _) _ (List.mem_finRange _), by simp⟩

end Attention.Claims
