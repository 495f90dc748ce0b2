module

public import Attention.Proof.Enclosure.Basic

public section

/-! # Lists, related place by place -/

namespace Attention.Proof

open Model

universe u v

variable {R : Type u} [OrderedField R] {p n : Nat}

/-- Two lists of one length, their elements related place by place. -/
@[expose] def Pointwise {α : Type u} {β : Type v} (P : α → β → Prop) : List α → List β → Prop
  | [], [] => True
  | a :: as, b :: bs => P a b ∧ Pointwise P as bs
  | _, _ => False

section
variable {α : Type u} {β : Type v} {P : α → β → Prop}

/-- Lists that are related place by place have one length. -/
theorem Pointwise.length_eq {as : List α} {bs : List β} (h : Pointwise P as bs) :
    as.length = bs.length := by
  induction as generalizing bs with
  | nil => cases bs with
    | nil => rfl
    | cons => exact h.elim
  | cons a as ih => cases bs with
    | nil => exact h.elim
    | cons b bs => rw [List.length_cons, List.length_cons, ih h.2]

/-- Elements at one place are related. -/
theorem Pointwise.getElem {as : List α} {bs : List β} (h : Pointwise P as bs) {i : Nat}
    (ha : i < as.length) (hb : i < bs.length) : P as[i] bs[i] := by
  induction as generalizing bs i with
  | nil => exact absurd ha (Nat.not_lt_zero _)
  | cons a as ih => cases bs with
    | nil => exact h.elim
    | cons b bs => cases i with
      | zero => exact h.1
      | succ i => exact ih h.2 _ _

/-- Lists of one length with related elements at each place. -/
theorem Pointwise.of_getElem {as : List α} {bs : List β} (hlen : as.length = bs.length)
    (h : ∀ (i : Nat) (ha : i < as.length) (hb : i < bs.length), P as[i] bs[i]) :
    Pointwise P as bs := by
  induction as generalizing bs with
  | nil => cases bs with
    | nil => trivial
    | cons => cases hlen
  | cons a as ih => cases bs with
    | nil => cases hlen
    | cons b bs =>
      exact ⟨h 0 (Nat.succ_pos _) (Nat.succ_pos _), ih (Nat.succ.inj hlen) fun i ha hb =>
        h (i + 1) (Nat.succ_lt_succ ha) (Nat.succ_lt_succ hb)⟩

/-- One list after the other. -/
theorem Pointwise.append {as as' : List α} {bs bs' : List β} (h : Pointwise P as bs)
    (h' : Pointwise P as' bs') : Pointwise P (as ++ as') (bs ++ bs') := by
  induction as generalizing bs with
  | nil => cases bs with
    | nil => exact h'
    | cons => exact h.elim
  | cons a as ih => cases bs with
    | nil => exact h.elim
    | cons b bs => exact ⟨h.1, ih h.2⟩

/-- One element more. -/
theorem Pointwise.concat {as : List α} {bs : List β} (h : Pointwise P as bs) {a : α} {b : β}
    (hab : P a b) : Pointwise P (as ++ [a]) (bs ++ [b]) :=
  h.append ⟨hab, trivial⟩

/-- The results for each element. -/
theorem Pointwise.map {γ : Type u} {δ : Type v} {Q : γ → δ → Prop} {f : α → γ} {g : β → δ}
    (hf : ∀ a b, P a b → Q (f a) (g b)) {as : List α} {bs : List β} (h : Pointwise P as bs) :
    Pointwise Q (as.map f) (bs.map g) := by
  induction as generalizing bs with
  | nil => cases bs with
    | nil => trivial
    | cons => exact h.elim
  | cons a as ih => cases bs with
    | nil => exact h.elim
    | cons b bs => exact ⟨hf a b h.1, ih h.2⟩

/-- Pairs of elements at one place. -/
theorem Pointwise.zip {γ : Type u} {δ : Type v} {Q : γ → δ → Prop} {as : List α} {bs : List β}
    {cs : List γ} {ds : List δ} (h : Pointwise P as bs) (h' : Pointwise Q cs ds) :
    Pointwise (fun a b => P a.1 b.1 ∧ Q a.2 b.2) (as.zip cs) (bs.zip ds) := by
  refine .of_getElem ?_ fun i ha hb => ?_
  · rw [List.length_zip, List.length_zip, h.length_eq, h'.length_eq]
  · rw [List.getElem_zip, List.getElem_zip]
    exact ⟨h.getElem _ _, h'.getElem _ _⟩

/-- Loops over related lists, whose steps keep their states related. -/
theorem Pointwise.foldl {γ : Type u} {δ : Type v} {Q : γ → δ → Prop} {f : γ → α → γ}
    {g : δ → β → δ} (hf : ∀ c d a b, Q c d → P a b → Q (f c a) (g d b)) {as : List α}
    {bs : List β} (h : Pointwise P as bs) {c : γ} {d : δ} (hc : Q c d) :
    Q (as.foldl f c) (bs.foldl g d) := by
  induction as generalizing bs c d with
  | nil => cases bs with
    | nil => exact hc
    | cons => exact h.elim
  | cons a as ih => cases bs with
    | nil => exact h.elim
    | cons b bs => exact ih h.2 (hf _ _ _ _ hc h.1)

end

/-- The components of an enclosed vector as a list. -/
theorem VecContains.toList {I : Vec (Interval p) n} {x : Vec R n} (h : VecContains I x) :
    Pointwise Interval.Contains I.toList x.toList := by
  refine .of_getElem (by simp) fun i ha hb => ?_
  rw [Vector.getElem_toList, Vector.getElem_toList]
  exact h i (by simpa using ha)

end Attention.Proof
