module

public import Attention.Claims.Memory.PlayTraffic

public section

/-! # Wrong variants of the pebble game and of its bound

What the game forbids, it must forbid: each rule that is more generous defeats the bound. -/

namespace Attention.WrongVariants

open Claims Model.Pebble

/-- Positive control: three queries and three keys, two to a tile, as in `flashRun_evaluated`: 18
elements are moved, 20 are room enough, and 19 are not. -/
theorem flashPlay_evaluated : transfers (flashPlay 3 3 1 1 2 2) = 18
    ∧ (run bySums 20 start (flashPlay 3 3 1 1 2 2)).isSome
    ∧ ¬ (run bySums 19 start (flashPlay 3 3 1 1 2 2)).isSome := by
  decide +kernel

/-- The bound for another rule of computing. -/
@[expose] def BoundFor (rule : ∀ {q_len kv_len d : Nat} {α : Type} [DecidableEq α],
    Rule q_len kv_len d α) : Prop :=
  ∀ (q_len kv_len d M : Nat) (play : List (Move q_len kv_len d Unit)), d * d ≤ M →
    (run rule M start play).isSome → (∀ i j, Forms rule M start play i j) →
    q_len * kv_len * (d * d) ≤ 6 * M * transfers play

/-- Positive control: the rule of the game. -/
theorem boundFor_bySums : BoundFor bySums :=
  fun _ _ _ _ _ hd legal forms => io_lower_bound hd legal forms

/-- A rule by which a sum can be computed while its operands lie in slow memory. -/
@[expose] def fromSlowMemory {q_len kv_len d : Nat} {α : Type} : Rule q_len kv_len d α :=
  fun _ _ => true

/-- With it nothing has to be moved. -/
theorem fromSlowMemory_refuted : ¬ BoundFor fromSlowMemory := fun h => by
  have := h 1 1 1 1 [.compute (.sum 0 0 (.product 0))] (by decide) (by decide +kernel) fun i j =>
    ⟨[.compute (.sum 0 0 (.product 0))], ⟨[.sum 0 0 (.product 0)], []⟩, .product 0,
      List.prefix_rfl, by decide +kernel, by decide +kernel, by
        rw [Fin.fin_one_eq_zero i, Fin.fin_one_eq_zero j]; exact List.mem_singleton.mpr rfl⟩
  exact absurd this (by decide +kernel)

/-! ## Several numbers in one element -/

variable {n : Nat}

/-- An input of queries and keys of one component. -/
inductive Input (n : Nat) where
  /-- The component of a query. -/
  | query (i : Fin n)
  /-- The component of a key. -/
  | key (j : Fin n)
  deriving DecidableEq

/-- All inputs. -/
@[expose] def inputs (n : Nat) : List (Input n) :=
  (List.finRange n).map .query ++ (List.finRange n).map .key

/-- Its element. -/
@[expose] def inputElement : Input n → Element n n 1 (List (Input n))
  | .query i => .query i 0
  | .key j => .key j 0

/-- Whether an input lies in fast memory, by itself or packed into an element with others. -/
@[expose] def unpacks (red : List (Element n n 1 (List (Input n)))) (x : Input n) : Bool :=
  decide (inputElement x ∈ red)
    || red.any fun | .other packed => decide (x ∈ packed) | _ => false

/-- A rule by which elements can be packed into one, and computed with there: that of a machine
whose `compute` takes any function, such as `Model.Program`. -/
@[expose] def packing : Rule n n 1 (List (Input n))
  | red, .other packed => packed.all (unpacks red)
  | red, .sum i j _ => unpacks red (.query i) && unpacks red (.key j)
  | _, _ => false

/-- Load inputs one after the other, and pack each with those before. -/
@[expose] def packPlay (packed : List (Input n)) :
    List (Input n) → List (Move n n 1 (List (Input n)))
  | [] => []
  | x :: xs => .load (inputElement x) :: .compute (.other (x :: packed))
      :: .delete (inputElement x) :: .delete (.other packed) :: packPlay (x :: packed) xs

/-- Form all scores from one element. -/
@[expose] def unpackPlay (n : Nat) : List (Move n n 1 (List (Input n))) :=
  (List.finRange n).flatMap fun i => (List.finRange n).flatMap fun j =>
    [.compute (.sum i j (.product 0)), .delete (.sum i j (.product 0))]

/-- Pack all, and form the scores. -/
@[expose] def packedPlay (n : Nat) : List (Move n n 1 (List (Input n))) :=
  .compute (.other []) :: (packPlay [] (inputs n) ++ unpackPlay n)

private theorem ends_packPlay (xs : List (Input n)) : ∀ packed,
    Ends packing 3 [.other packed] (packPlay packed xs) [.other (xs.reverse ++ packed)] := by
  induction xs with
  | nil => exact fun packed => .nil
  | cons x xs ih =>
    intro packed
    have h := ih (x :: packed)
    rw [show xs.reverse ++ x :: packed = (x :: xs).reverse ++ packed by simp] at h
    refine .cons (ends_load (by cases x <;> rfl) (by simp)) <|
      .cons (ends_compute (fun red hr => ?_) (by simp)) <|
      .cons (Y := [.other (x :: packed), .other packed]) (ends_delete.perm (.swap ..) (.refl _)) <|
      .cons (Y := [.other (x :: packed)]) (ends_delete.perm (.swap ..) (.refl _)) h
    have h₁ := hr (inputElement x) (by simp)
    have h₂ := hr (.other packed) (by simp)
    simp only [packing, List.all_cons, Bool.and_eq_true, List.all_eq_true]
    refine ⟨by simp [unpacks, h₁], fun y hy => ?_⟩
    simp only [unpacks, Bool.or_eq_true, List.any_eq_true]
    exact .inr ⟨_, h₂, by simp [hy]⟩

private theorem transfers_packPlay (xs : List (Input n)) :
    ∀ packed, transfers (packPlay packed xs) = xs.length := by
  induction xs with
  | nil => exact fun packed => rfl
  | cons x xs ih =>
    intro packed
    have := ih (x :: packed)
    simp_all [packPlay, transfers, Move.isTransfer]

private theorem transfers_unpackPlay : transfers (unpackPlay n) = 0 := by
  refine List.countP_eq_zero.mpr fun move h => ?_
  simp only [unpackPlay, List.mem_flatMap] at h
  obtain ⟨i, _, j, _, h⟩ := h
  rcases List.mem_cons.mp h with rfl | h
  · simp [Move.isTransfer]
  · rw [List.mem_singleton.mp h]
    simp [Move.isTransfer]

/-- With that rule three elements of fast memory suffice to move each input once: the bound does not
hold. -/
theorem packing_refuted : ¬ ∀ (n : Nat) (play : List (Move n n 1 (List (Input n)))),
    (run packing 3 start play).isSome → (∀ i j, Forms packing 3 start play i j) →
    n * n * (1 * 1) ≤ 6 * 3 * transfers play := fun h => by
  have all : ∀ n : Nat, ∀ x : Input n, x ∈ (inputs n).reverse ++ [] := by
    rintro n (i | j) <;> simp [inputs]
  have packed : ∀ n : Nat, Ends packing 3 []
      (.compute (.other []) :: packPlay [] (inputs n)) [.other ((inputs n).reverse ++ [])] :=
    fun n => .cons (ends_compute (fun _ _ => rfl) (by simp)) (ends_packPlay _ [])
  have form : ∀ {n : Nat} (i j : Fin n) {names : List (Input n)}, (∀ x, x ∈ names) →
      Ends packing 3 [.other names] [.compute (.sum i j (.product 0))]
        [.sum i j (.product 0), .other names] := fun i j names hn =>
    ends_compute (fun red hr => by
      have h₁ : ∀ x, unpacks red x := fun x => by
        simp only [unpacks, Bool.or_eq_true, List.any_eq_true]
        exact .inr ⟨_, hr (.other names) (by simp), by simp [hn x]⟩
      simp [packing, h₁]) (by simp)
  have ends : ∀ {n : Nat} (i j : Fin n) {names : List (Input n)}, (∀ x, x ∈ names) →
      Ends packing 3 [.other names]
        [.compute (.sum i j (.product 0)), .delete (.sum i j (.product 0))] [.other names] :=
    fun i j _ hn => .cons (form i j hn) ends_delete
  have legal : (run packing 3 start (packedPlay 37)).isSome := by
    obtain ⟨s, e, _⟩ := (packed 37).append (ends_flatMap fun i _ => ends_flatMap fun j _ =>
      ends i j (all 37)) start (.refl _)
    exact Option.isSome_iff_exists.mpr ⟨s, e⟩
  have forms : ∀ i j, Forms packing 3 start (packedPlay 37) i j := fun i j =>
    Passes.forms (products := .product 0) ((packed 37).append_passes <|
      passes_flatMap (fun i _ => ends_flatMap fun j _ => ends i j (all 37)) (List.mem_finRange i) <|
      passes_flatMap (fun j _ => ends i j (all 37)) (List.mem_finRange j) <|
      ((form i j (all 37)).passes (List.mem_cons_self ..)).append) fun c => by
        simp [Model.Pebble.Sum.has, Fin.fin_one_eq_zero c]
  have moved : transfers (packedPlay 37) = 74 := by
    have h₁ := transfers_packPlay (inputs 37) []
    have h₂ := transfers_append (packPlay [] (inputs 37)) (unpackPlay 37)
    have h₃ := transfers_append [.compute (.other [])] (packPlay [] (inputs 37) ++ unpackPlay 37)
    rw [h₂, h₁, transfers_unpackPlay] at h₃
    simp only [inputs, List.length_append, List.length_map, List.length_finRange] at h₃
    exact h₃
  have := h 37 (packedPlay 37) legal forms
  rw [moved] at this
  omega

/-! ## A fast memory smaller than d² -/

/-- The next product of one query and one key is added to a sum, in its place. -/
@[expose] def addNext (s : Model.Pebble.Sum 37) (c : Fin 37) : List (Move 1 1 37 Unit) :=
  [.load (.query 0 c), .load (.key 0 c), .replace (.sum 0 0 (.add s (.product c))) (.sum 0 0 s),
    .delete (.query 0 c), .delete (.key 0 c)]

/-- One score of 37 products, with three elements of fast memory: what it has formed, and its
moves. -/
@[expose] def onePlay : Model.Pebble.Sum 37 × List (Move 1 1 37 Unit) :=
  ((List.finRange 37).drop 1).foldl
    (fun (s, moves) c => (.add s (.product c), moves ++ addNext s c))
    (.product 0, [.load (.query 0 0), .load (.key 0 0), .compute (.sum 0 0 (.product 0)),
      .delete (.query 0 0), .delete (.key 0 0)])

/-- The bound does not hold of every fast memory: with three elements, each score of d products
takes 2d moves, and d² / 18 is more where d is 37. -/
theorem smallMemory_refuted :
    ¬ ∀ (q_len kv_len d M : Nat) (play : List (Move q_len kv_len d Unit)),
      6 * M * M ≤ q_len * kv_len * (d * d) →
      (run bySums M start play).isSome → (∀ i j, Forms bySums M start play i j) →
      q_len * kv_len * (d * d) ≤ 6 * M * transfers play := fun h => by
  have hr : run bySums 3 start onePlay.2 = some ⟨[.sum 0 0 onePlay.1], []⟩ := by decide +kernel
  have := h 1 1 37 3 onePlay.2 (by decide) (by rw [hr]; rfl) fun i j =>
    ⟨onePlay.2, _, onePlay.1, List.prefix_rfl, hr, by decide +kernel, by
      rw [Fin.fin_one_eq_zero i, Fin.fin_one_eq_zero j]; exact List.mem_singleton.mpr rfl⟩
  exact absurd this (by decide +kernel)

end Attention.WrongVariants
