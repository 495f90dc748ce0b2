module

public import Attention.Model.Exact
public import Attention.Proof.Poison.Backward
public import Attention.Spec.Merge
public import Attention.Spec.ScoreMods
public import Attention.Spec.SplitKV

public section

/-! # Wrong variants of what meets no poison

Each is right over numbers without a poison, or at least a program that one might write; over
numbers with one it gives the poison for proper inputs. `Attention` itself is among them. -/

namespace Attention.WrongVariants

open Spec Spec.Online Model Poisoned

universe u v

/-- A key with a proper score and value. -/
@[expose] def properKey (s : Int) (v : Rat) : ScoredValue (Poisoned Int) (Poisoned Rat) 1 :=
  ⟨some (ok s), #v[ok v]⟩

/-- The claim, made of any function of a row: of proper keys it makes proper numbers. -/
abbrev MeetsNoPoison
    (f : List (ScoredValue (Poisoned Int) (Poisoned Rat) 1) → Vec (Poisoned Rat) 1) : Prop :=
  ∀ row : List (Int × Rat), (f (row.map fun (s, v) => properKey s v))[0].val ≠ none

/-- Softmax without the maximum subtracted, as the Spec's own attention has it. -/
theorem attend_poison_refuted : ¬ MeetsNoPoison attend :=
  fun h => h [(1, 1)] (by decide +kernel)

section
variable {S : Type u} {R : Type v} {d : Nat}
variable [Add S] [Sub S] [OfNat S 0] [LE S] [DecidableLE S] [Add R] [Mul R] [OfNat R 0] [Exp S R]

/-- An update that takes weights against the maximum before the block. -/
@[expose] def staleMaximum (s : State S R d) (block : List (ScoredValue S R d)) : State S R d :=
  let m := rowMax (block.map (·.score))
  match s.m with
  | none => ofBlock block
  | some m₀ =>
    { m := maxScore s.m m
      l := s.l + sumOver (fun key => rescale key.score (some m₀)) block
      o := Vec.add s.o
        (Vec.sumOver (fun key => Vec.smul (rescale key.score (some m₀)) key.value) block) }

/-- A merge that multiplies the first part by exp (m₁ − m₂), and leaves the second as it is. -/
@[expose] def mergeToSecond (a b : State S R d) : State S R d :=
  let α := rescale a.m b.m
  { m := b.m
    l := α * a.l + b.l
    o := Vec.add (Vec.smul α a.o) b.o }

/-- The division, whether there is a maximum or not. -/
@[expose] def alwaysDivided [Div R] (s : State S R d) : Vec R d :=
  Vec.map (· / s.l) s.o

end

theorem staleMaximum_poison_refuted :
    ¬ MeetsNoPoison fun row => finish ((row.map ([·])).foldl staleMaximum empty) :=
  fun h => h [(0, 1), (1, 1)] (by decide +kernel)

theorem mergeToSecond_poison_refuted :
    ¬ MeetsNoPoison fun row => finish
      ((row.map fun key => ofBlock [key]).foldr mergeToSecond (ofBlock [properKey 0 1])) :=
  fun h => h [(1, 1)] (by decide +kernel)

/-- The right merge of these states meets none. -/
theorem merge_no_poison :
    (finish (merge (ofBlock [properKey 1 1]) (ofBlock [properKey 0 1])))[0].val = some 1 := by
  decide +kernel

/-- A row without a key that is not masked. -/
theorem alwaysDivided_poison_refuted :
    ¬ MeetsNoPoison fun row => alwaysDivided (online (row.map ([·]))) :=
  fun h => h [] (by decide +kernel)

/-- The tangent by exp 2x, whatever the exponential: softcap takes it of s / cap. -/
theorem tanh_poison_refuted [Exp Rat Rat] : ¬ ∀ x : Rat, (tanh (ok x)).val ≠ none :=
  fun h => h 1 (by
    have e : (exp (ok (1 : Rat) + ok 1) : Poisoned Rat) = ⟨none⟩ := by
      show (⟨if (1 : Rat) + 1 ≤ 0 then some (exp ((1 : Rat) + 1)) else none⟩ : Poisoned Rat) = _
      rw [if_neg (by decide +kernel)]
    simp only [tanh, e]
    rfl)

/-! ## A backward pass with a log-sum-exp that is too small -/

/-- One tile of one. -/
abbrev oneTile : TileLoop := ⟨1, 1, fun _ => ⟨0, 1⟩, fun _ _ => .masked⟩

/-- The backward pass in tiles of one query with one key of score `s`, where the log-sum-exp that
was saved, which should be `s`, is smaller by `short`, and exponentials above `bound` are the
poison. -/
@[expose] def backwardShort (bound short s : Int) : List (Vec (Poisoned Rat) 1) ×
    List (Vec (Poisoned Rat) 1) × List (Vec (Poisoned Rat) 1) :=
  letI : Exp (Poisoned Int) (Poisoned Rat) := expUpTo bound
  flashBackward (fun x => ⟨x.val.map fun (x : Int) => (x : Rat)⟩) (ok 1) (fun _ _ s => some s)
    Mask.full (fun _ _ _ => ok 1) #v[#v[ok s]] #v[#v[ok 1]] #v[#v[ok 1]] (fun _ _ => ok 1)
    #v[some (ok (s - short))] #v[#v[ok 1]] oneTile oneTile #v[#v[ok 1]] #v[ok 0]

/-- The claim, made of log-sum-exps that are smaller by `short`. -/
abbrev BackwardMeetsNoPoison (bound short : Int) : Prop :=
  ∀ s, let (dQ, dK, dV) := backwardShort bound short s
    ∀ x ∈ dQ ++ dK ++ dV, x[0].val ≠ none

/-- A log-sum-exp may be too small by the bound. -/
theorem backwardShort_no_poison {bound short : Int} (h : short ≤ bound) :
    BackwardMeetsNoPoison bound short := fun s => by
  letI : Exp (Poisoned Int) (Poisoned Rat) := expUpTo bound
  have e := (cleanUpTo (R := Rat) bound).flashBackward (q_len := 1) (kv_len := 1) (d := 1)
    (d_v := 1) (toValue := fun x => (x : Rat))
    (toValue' := fun x => ⟨x.val.map fun (x : Int) => (x : Rat)⟩) (fun _ => rfl)
    (scale := 1) (modify := fun _ _ s => some s) (modify' := fun _ _ s => some s)
    (fun _ _ _ => rfl) (slope := fun _ _ _ => 1) (slope' := fun _ _ _ => ok 1) (fun _ _ _ => rfl)
    (Q := #v[#v[s]]) (K := #v[#v[1]]) (V := #v[#v[1]]) (Z := fun _ _ => 1)
    (L := #v[some (s - short)]) (dO := #v[#v[1]]) (mask := Mask.full) (keys := oneTile)
    (queries := oneTile) (by simp) (by simp)
    (fun i j t l _ ht hl => by
      simp [Spec.score, Vec.dot, List.finRange_succ, sumOver] at ht hl
      omega) #v[#v[1]] #v[0]
  show ∀ x ∈ (backwardShort bound short s).1 ++ (backwardShort bound short s).2.1
    ++ (backwardShort bound short s).2.2, x[0].val ≠ none
  have proper : ∀ (ys : List (Vec Rat 1)), ∀ x ∈ ys.map (Vec.map ok), x[0].val ≠ none :=
    fun ys x hx => by
      obtain ⟨y, -, rfl⟩ := List.mem_map.mp hx
      simp [Vec.map, ok]
  rw [show backwardShort bound short s = _ from e]
  intro x hx
  simp only [List.mem_append] at hx
  rcases hx with (hx | hx) | hx
  · exact proper _ x hx
  · exact proper _ x hx
  · exact proper _ x hx

/-- The condition on the log-sum-exp is needed: one that is smaller by 1 makes an exponential of
1. -/
theorem backwardShort_refuted : ¬ BackwardMeetsNoPoison 0 1 :=
  fun h => absurd (h 0) (by decide +kernel)

/-- Under a bound above 0, too. -/
theorem backwardShort_bound_refuted : ¬ BackwardMeetsNoPoison 1 2 :=
  fun h => absurd (h 0) (by decide +kernel)

end Attention.WrongVariants
