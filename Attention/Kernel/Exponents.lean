module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
public import Attention.Kernel.PackedSized
public import Attention.Kernel.Sized
public import Attention.Kernel.TextConditions

public section

/-! # No exponential of the forward kernel passes 1

Each argument of `exp2` is at most 0 or −∞: in every lane of every program, rows of a tile that are
no queries included, since their queries are read as 0. So no exponential is infinite, whatever the
scores. That it is a number or −∞, and not left open, is said too. -/

namespace Attention.Kernel

open Spec Proof Flt

universe u v

variable {R : Type u}

/-- At most 0: a number, or −∞. -/
@[expose] def Flt.AtMostZero [OrderedField R] : Flt R → Prop
  | ninf => True
  | num x => x ≤ 0
  | undef => False

variable [OrderedField R]

/-! ## One row -/

private theorem sub_atMostZero {s m : Option R} (h : ScoreLE s m) :
    (sub (ofScore s) (if oeq (ofScore m) ninf then num 0 else ofScore m)).AtMostZero := by
  cases m with
  | none => cases s with
    | none => trivial
    | some x => cases h
  | some y => cases s with
    | none => trivial
    | some x =>
      have h : x ≤ y := h
      show x - y ≤ 0
      grind

/-- A score less the new maximum, if that is not below it. -/
private theorem RowState.sub_reference {s : RowState R} {m l x : Option R} {largest : Flt R}
    (hm : s.m = ofScore m) (hl : largest = ofScore l) (hx : ScoreLE x (maxScore m l)) :
    (sub (ofScore x) (s.reference largest)).AtMostZero := by
  rw [RowState.reference, RowState.newMax, hm, hl, max_ofScore]
  exact sub_atMostZero hx

/-- The exponents of a row's step: of the old state, and of each key. -/
private theorem RowState.exponents {s : RowState R} {m : Option R} (hm : s.m = ofScore m) {n : Nat}
    {largest : Flt R} {score : Nat → Flt R} {x : Nat → Option R}
    (hs : ∀ j < n, score j = ofScore (x j))
    (hl : largest = ofScore (rowMax ((List.range n).map x))) :
    (sub s.m (s.reference largest)).AtMostZero ∧
      (∀ j < n, (sub (score j) (s.reference largest)).AtMostZero) ∧
      ∃ m', s.newMax largest = ofScore m' := by
  refine ⟨?_, fun j hj => ?_, maxScore m (rowMax ((List.range n).map x)), ?_⟩
  · have h := sub_reference hm hl (le_maxScore_left m (rowMax ((List.range n).map x)))
    rwa [← hm] at h
  · rw [hs j hj]
    refine sub_reference hm hl (ScoreLE.trans (le_rowMax ?_) (le_maxScore_right ..))
    exact List.mem_map_of_mem (List.mem_range.mpr hj)
  · rw [newMax, hm, hl, max_ofScore]

/-! ## One program -/

namespace Problem

/-- All maxima of a state are numbers or −∞. -/
private def Maxima (s : State R) : Prop := ∀ i, ∃ m : Option R, s.1 i = ofScore m

private theorem maxima_init : Maxima (init : State R) := fun _ => ⟨none, rfl⟩

omit [OrderedField R] in
private theorem maxima_forRange {lo hi : Int} {body : Int → State R → State R} {s : State R}
    (h₀ : Maxima s) (h : ∀ t, lo ≤ t → t < hi → ∀ s, Maxima s → Maxima (body t s)) :
    Maxima (forRange lo hi body s) :=
  forRange_fold (P := fun (_ : Unit) s => Maxima s) (f := fun _ _ => ()) (block := fun _ => ())
    (st := ()) h₀ fun t h₁ h₂ _ s => h t h₁ h₂ s

variable {d d_v q_len kv_len : Nat} {p : Problem R} {Q : Matrix R q_len d} {K : Matrix R kv_len d}
variable {V : Matrix R kv_len d_v} {sc : R} {pid : Int}

private theorem dot_exists {n : Nat} {a b : Nat → Flt R} (ha : ∀ j < n, ∃ x, a j = num x)
    (hb : ∀ j < n, ∃ x, b j = num x) : ∃ z, dot n a b (num 0) = num z := by
  refine ⟨_, dot_num (x := fun j => if h : j < n then (ha j h).choose else 0)
    (y := fun j => if h : j < n then (hb j h).choose else 0) (fun j hj => ?_) (fun j hj => ?_) rfl⟩
  · simp only [hj, dif_pos]; exact (ha j hj).choose_spec
  · simp only [hj, dif_pos]; exact (hb j hj).choose_spec

/-- Queries are numbers in every row. -/
private theorem Holds.queryExists (H : Holds p pid Q K V sc) (hr : ∀ i, 0 ≤ p.row pid i)
    (i n : Nat) : ∃ x, p.queryTile pid i n = num x := by
  by_cases hq : p.row pid i < p.qLen
  · have := hr i
    have := H.qLen
    exact ⟨_, H.queryTile (x := ⟨(p.row pid i).toNat, by omega⟩) (by simp only; omega) n⟩
  · exact ⟨0, by simp [Problem.queryTile, hq]⟩

variable [Exponential R R]

/-- In a tile without mask code. -/
private theorem Holds.wholeMaxima (H : Holds p pid Q K V sc) (hr : ∀ i, 0 ≤ p.row pid i)
    {t : Int}
    (ht : p.wholeFirst pid ≤ t) (ht' : t < p.wholeStop pid) {s : State R} (hs : Maxima s) :
    ∀ i, (sub (s.1 i) ((rowOf i s).reference
        (mul (maxOver p.BN fun j => p.wholeProduct pid t i j) p.scale))).AtMostZero ∧
      (∀ j < p.BN, (sub (mul (p.wholeProduct pid t i j) p.scale) ((rowOf i s).reference
        (mul (maxOver p.BN fun j => p.wholeProduct pid t i j) p.scale))).AtMostZero) ∧
      ∃ m', (p.wholeBody pid t s).1 i = ofScore m' := by
  have hq := H.queryExists hr
  have h₂ : ∀ i, ∃ f : Nat → R, ∀ j < p.BN, p.wholeProduct pid t i j = num (f j) := by
    intro i
    have : ∀ j < p.BN, ∃ x, p.wholeProduct pid t i j = num x := fun j hj => by
      obtain ⟨a₁, a₂⟩ := p.whole_key pid H.BN (by have := H.kvLen; omega) ht ht' hj
      have := H.kvLen
      exact dot_exists (fun n _ => hq i n) fun n hn =>
        ⟨_, H.wholeKey (y := ⟨(p.keyAt t j).toNat, by omega⟩) (by simp only; omega) hn⟩
    exact ⟨fun j => if h : j < p.BN then (this j h).choose else 0, fun j hj => by
      simp only [hj, dif_pos]; exact (this j hj).choose_spec⟩
  intro i
  obtain ⟨f, hf⟩ := h₂ i
  obtain ⟨m, hm⟩ := hs i
  exact RowState.exponents (s := rowOf i s) hm (n := p.BN)
    (score := fun j => mul (p.wholeProduct pid t i j) p.scale) (x := fun j => some (f j * sc))
    (fun j hj => by
      show mul (p.wholeProduct pid t i j) p.scale = _
      rw [hf j hj, H.scale]
      rfl)
    (H.scale ▸ mul_maxOver H.scale_nonneg H.BN hf)

/-- In a tile with mask code. -/
private theorem Holds.checkedMaxima (H : Holds p pid Q K V sc) (hr : ∀ i, 0 ≤ p.row pid i)
    {t : Int} {s : State R} (hs : Maxima s) :
    ∀ i, (sub (s.1 i) ((rowOf i s).reference
        (maxOver p.BN fun j => p.checkedScore pid t i j))).AtMostZero ∧
      (∀ j < p.BN, (sub (p.checkedScore pid t i j) ((rowOf i s).reference
        (maxOver p.BN fun j => p.checkedScore pid t i j))).AtMostZero) ∧
      ∃ m', (p.checkedBody pid t s).1 i = ofScore m' := by
  have hq := H.queryExists hr
  have h₂ : ∀ i, ∃ f : Nat → Option R, ∀ j < p.BN, p.checkedScore pid t i j = ofScore (f j) := by
    intro i
    have : ∀ j, ∃ x, p.checkedScore pid t i j = ofScore x := fun j => by
      obtain ⟨z, hz⟩ : ∃ z, dot p.BD (fun n => p.queryTile pid i n)
          (fun n => p.checkedKey pid t n j) (num 0) = num z := by
        refine dot_exists (fun n _ => hq i n) fun n _ => ?_
        by_cases hin : p.inside pid t j = true
        · obtain ⟨a₁, a₂⟩ := p.inside_key pid hin
          have := H.kvLen
          exact ⟨_, H.checkedKey (y := ⟨(p.keyAt t j).toNat, by omega⟩) (by simp only; omega) hin n⟩
        · exact ⟨0, by simp [Problem.checkedKey, hin]⟩
      rw [checkedScore, hz, H.scale]
      split
      · exact ⟨some (z * sc), rfl⟩
      · exact ⟨none, rfl⟩
    exact ⟨fun j => (this j).choose, fun j _ => (this j).choose_spec⟩
  intro i
  obtain ⟨f, hf⟩ := h₂ i
  obtain ⟨m, hm⟩ := hs i
  exact RowState.exponents (s := rowOf i s) hm (n := p.BN)
    (score := fun j => p.checkedScore pid t i j) (x := f) hf (maxOver_ofScore hf)

/-- All exponents of a program. -/
private theorem Holds.exponents (H : Holds p pid Q K V sc) (hr : ∀ i, 0 ≤ p.row pid i) :
    ∀ P ∈ p.exponents pid AtMostZero, P := by
  have k₀ : ∀ t, Maxima (p.beforeLeft pid t) := fun t =>
    maxima_forRange maxima_init fun t' _ _ s hs i => (H.checkedMaxima (t := t') hr hs i).2.2
  have k : Maxima (p.afterLeft pid) := by
    unfold afterLeft
    split
    · exact maxima_init
    · exact k₀ _
  have k₁ : ∀ t ≤ p.wholeStop pid, Maxima (p.beforeWhole pid t) := fun t ht =>
    maxima_forRange k fun t' h h' s hs i =>
      (H.wholeMaxima hr h (Int.lt_of_lt_of_le h' ht) hs i).2.2
  have k₂ : ∀ t, Maxima (p.beforeRight pid t) := fun t =>
    maxima_forRange (k₁ _ (Int.le_refl _)) fun t' _ _ s hs i =>
      (H.checkedMaxima (t := t') hr hs i).2.2
  have whole : ∀ t, p.wholeFirst pid ≤ t → t < p.wholeStop pid →
      p.wholeExponents pid t (p.beforeWhole pid t) AtMostZero := fun t h h' =>
    have e := H.wholeMaxima hr h h' (k₁ t (Int.le_of_lt h'))
    ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩
  have checked : ∀ t {s}, Maxima s → p.checkedExponents pid t s AtMostZero := fun t s hs =>
    have e := H.checkedMaxima (t := t) hr hs
    ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩
  refine List.forall_mem_append.mpr ⟨?_, all_iff.mp
    (show _ ∧ _ from ⟨whole, fun t _ _ => checked t (k₂ t)⟩)⟩
  split
  · exact List.forall_mem_nil _
  · exact all_iff.mp fun t _ _ => checked t (k₀ t)

/-! ## A launch -/

private theorem Given.exponents {batches num_kv_heads group : Nat}
    {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
    {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
    {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches} (G : p.Given Q K V sc)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) :
    All (p.exponents pid AtMostZero) := by
  obtain ⟨b, h, hb, hh, hr⟩ := place_row G.BM G.tilesLen G.numHeads hp.1 hp.2
  exact all_iff.mpr ((G.holds hb hh).exponents hr)

end Problem

/-! ## The texts -/

variable [Exponential R R] {d d_v num_kv_heads group : Nat} {sc : R} {pid : Int}

section

variable {q_len kv_len batches : Nat}
variable {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches}

/-- **No argument of exp2 is above 0** in the text without a window: in every program, tile and lane
it is a number of at most 0, or −∞. -/
theorem Full.exponents {a : Full.Args R} (G : (Full.problem a).Given Q K V sc)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Full.Exponents a pid Flt.AtMostZero :=
  (congrFun (Prod.mk.inj (Prod.mk.inj (Full.conditions_eq a pid)).2).1 _).mpr (G.exponents hp)

/-- **No argument of exp2 is above 0** in the text with a right edge: in every program, tile and
lane it is a number of at most 0, or −∞. -/
theorem Causal.exponents {a : Causal.Args R} (G : (Causal.problem a).Given Q K V sc)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Causal.Exponents a pid Flt.AtMostZero :=
  (congrFun (Prod.mk.inj (Prod.mk.inj (Causal.conditions_eq a pid)).2).1 _).mpr (G.exponents hp)

/-- **No argument of exp2 is above 0** in the text with a left edge: in every program, tile and lane
it is a number of at most 0, or −∞. -/
theorem Left.exponents {a : Left.Args R} (G : (Left.problem a).Given Q K V sc)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Left.Exponents a pid Flt.AtMostZero :=
  (congrFun (Prod.mk.inj (Prod.mk.inj (Left.conditions_eq a pid)).2).1 _).mpr (G.exponents hp)

/-- **No argument of exp2 is above 0** in the text with both edges: in every program, tile and lane
it is a number of at most 0, or −∞. -/
theorem Window.exponents {a : Window.Args R} (G : (Window.problem a).Given Q K V sc)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Window.Exponents a pid Flt.AtMostZero :=
  (congrFun (Prod.mk.inj (Prod.mk.inj (Window.conditions_eq a pid)).2).1 _).mpr (G.exponents hp)

/-- **No argument of exp2 is above 0** in the texts for sizes that do not fill their tiles: in every
program, tile and lane it is a number of at most 0, or −∞. -/
theorem Padded.exponents {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (G : (problem a e).Given Q K V sc) (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Exponents a pid Flt.AtMostZero e :=
  (congrFun (Prod.mk.inj (Prod.mk.inj (conditions_eq he pid)).2).1 _).mpr (G.exponents hp)

end

variable {n max_q_len : Nat} {q_len kv_len : Fin n → Nat} {cu_q cu_k : Nat → Nat}
variable {Q : (b : Fin n) → Vector (Matrix R (q_len b) d) (num_kv_heads * group)}
variable {K : (b : Fin n) → Vector (Matrix R (kv_len b) d) num_kv_heads}
variable {V : (b : Fin n) → Vector (Matrix R (kv_len b) d_v) num_kv_heads}

/-- **No argument of exp2 is above 0** in the texts for packed sequences: in every program, tile and
lane it is a number of at most 0, or −∞. -/
theorem Packed.exponents {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (G : Given a cu_q cu_k max_q_len Q K V sc) (alignment : Alignment) (hp : 0 ≤ pid ∧
      pid < (numTiles max_q_len a.BLOCK_M * (n * (num_kv_heads * group)) : Nat)) :
    Exponents a pid Flt.AtMostZero alignment e := by
  refine (congrFun (Prod.mk.inj (Prod.mk.inj (conditions_eq he alignment pid)).2).1 _).mpr
    (all_iff.mpr (Problem.all_live fun _ => ?_))
  obtain ⟨b, h, eb, eh, hr⟩ := Problem.place_row (p := problem a alignment e pid) (batches := n)
    G.BM G.maxLen G.numHeads hp.1 hp.2
  refine Problem.Holds.exponents (Q := (Q b)[h]) (K := (K b)[Spec.kvHead h])
    (V := (V b)[Spec.kvHead h]) (sc := sc) ?_ hr
  have eb : Forward.sequence a pid = b := eb
  have H := G.holds (e.leftEdge.map Int.ofNat) (e.rightEdge.map Int.ofNat) (atEnd alignment) b
    (pid := pid) (h := h) eh
  rwa [← eb] at H

end Attention.Kernel
