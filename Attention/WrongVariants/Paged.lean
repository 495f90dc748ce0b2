module

public import Attention.Model.Exact
public import Attention.Proof.Packed.Paged

public section

/-! # Wrong variants of the cache in pages -/

namespace Attention.WrongVariants

open Spec Spec.Online

/-- Three pages of two slots, all of them with stale contents. -/
@[expose] def stalePool : Pool (KeyValue Int Rat 1 1) 2 3 :=
  Vector.replicate 3 (Vector.replicate 2 (#v[0], #v[100]))

/-- The claim of `paged` for one query, made of any attention over pages. -/
abbrev AttendsPages (attendPaged : (Nat → Int → Option Int) → Vec Int 1 →
    Pool (KeyValue Int Rat 1 1) 2 3 → List (Fin 3) → Nat → Vec Rat 1) : Prop :=
  ∀ (modify : Nat → Int → Option Int) (q : Vec Int 1) (pool : Pool (KeyValue Int Rat 1 1) 2 3)
    (table : List (Fin 3)) (kvs : List (KeyValue Int Rat 1 1)),
    table.Nodup → kvs.length ≤ table.length * 2 →
      attendPaged modify q (pool.store table 0 kvs) table kvs.length = attendRows 1 modify q kvs

/-- Positive control: `attendPaged` attends. -/
theorem attendsPages_attendPaged :
    AttendsPages fun modify q pool table len => attendPaged 1 modify q pool table len := by
  intro modify q pool table kvs hn hl
  have h := Proof.gather_store hn kvs pool 0 (by omega)
  rw [Nat.zero_add] at h
  show attendPaged 1 modify q _ _ _ = _
  rw [Proof.attendPaged_eq, h]
  simp [Pool.gather]

/-- Three keys of score 0 with values 1, 2 and 6, of which a causal query sees those before `n`, in
the pages 2 and 0: an output that is not attention refutes the claim. -/
theorem AttendsPages.refute {attendPaged} (n : Nat)
    (h : let kvs : List (KeyValue Int Rat 1 1) := [(#v[0], #v[1]), (#v[0], #v[2]), (#v[0], #v[6])]
      let modify := fun j s => if j < n then some s else none
      (attendPaged modify #v[0] (stalePool.store [2, 0] 0 kvs) [2, 0] kvs.length).toList
        ≠ (attendRows 1 modify #v[0] kvs : Vec Rat 1).toList) : ¬ AttendsPages attendPaged :=
  fun claim => h (congrArg Vector.toList (claim _ _ _ _ _ (by decide) (by decide)))

/-- The last page is read to its end. -/
@[expose] def attendWholePages (modify : Nat → Int → Option Int) (q : Vec Int 1)
    (pool : Pool (KeyValue Int Rat 1 1) 2 3) (table : List (Fin 3)) (_len : Nat) : Vec Rat 1 :=
  attendPaged 1 modify q pool table (table.length * 2)

theorem attendWholePages_refuted : ¬ AttendsPages attendWholePages :=
  AttendsPages.refute 4 (by decide +kernel)

/-- A last page that is not full is left out. -/
@[expose] def attendFullPages (modify : Nat → Int → Option Int) (q : Vec Int 1)
    (pool : Pool (KeyValue Int Rat 1 1) 2 3) (table : List (Fin 3)) (len : Nat) : Vec Rat 1 :=
  attendPaged 1 modify q pool table (len / 2 * 2)

theorem attendFullPages_refuted : ¬ AttendsPages attendFullPages :=
  AttendsPages.refute 4 (by decide +kernel)

/-- A last page that is not full is filled from its front: the tokens before it are read again, so
that they count twice. -/
@[expose] def attendShiftedPages (modify : Nat → Int → Option Int) (q : Vec Int 1)
    (pool : Pool (KeyValue Int Rat 1 1) 2 3) (table : List (Fin 3)) (len : Nat) : Vec Rat 1 :=
  let row := scoredRows 1 modify q (pool.gather table len)
  finish (online (row.take (len / 2 * 2) :: if len % 2 = 0 then [] else [row.drop (len - 2)]))

theorem attendShiftedPages_refuted : ¬ AttendsPages attendShiftedPages :=
  AttendsPages.refute 4 (by decide +kernel)

/-- A token's position is taken from the number of its page in the pool, not from the place of the
page in the table. -/
@[expose] def attendPhysical (modify : Nat → Int → Option Int) (q : Vec Int 1)
    (pool : Pool (KeyValue Int Rat 1 1) 2 3) (table : List (Fin 3)) (len : Nat) : Vec Rat 1 :=
  finish (online (table.map fun p : Fin 3 => scoredPage 1 modify q len p.val pool[p]))

theorem attendPhysical_refuted : ¬ AttendsPages attendPhysical :=
  AttendsPages.refute 4 (by decide +kernel)

/-- A mask by position is applied by the slot within the page. -/
@[expose] def attendSlots (modify : Nat → Int → Option Int) (q : Vec Int 1)
    (pool : Pool (KeyValue Int Rat 1 1) 2 3) (table : List (Fin 3)) (len : Nat) : Vec Rat 1 :=
  attendPaged 1 (fun j => modify (j % 2)) q pool table len

theorem attendSlots_refuted : ¬ AttendsPages attendSlots :=
  AttendsPages.refute 2 (by decide +kernel)

/-- With a page twice in the table, what is stored is not what is gathered: the condition of `paged`
is needed. -/
theorem store_twice_refuted : ¬ ∀ (pool : Pool Nat 1 1) (table : List (Fin 1)) (xs : List Nat),
    xs.length ≤ table.length * 1 → (pool.store table 0 xs).gather table xs.length = xs :=
  fun h => absurd (h #v[#v[0]] [0, 0] [1, 2] (by decide)) (by decide +kernel)

/-- Page and slot mistaken for each other: the page by the remainder, the slot by the quotient. -/
theorem read_swapped_refuted : ¬ ∀ (pool : Pool Nat 2 3) (table : List (Fin 3)) (len : Nat),
    (List.range len).filterMap (fun t => (table[t % 2]?).bind fun p => pool[p].toList[t / 2]?)
      = pool.gather table len :=
  fun h => absurd (h #v[#v[0, 1], #v[2, 3], #v[4, 5]] [0, 1] 4) (by decide +kernel)

end Attention.WrongVariants
