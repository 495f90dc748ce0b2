module

public import Attention.Kernel.Sized
public import Attention.Kernel.Texts

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

/-! ## A launch -/

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

variable {d d_v q_len kv_len batches num_kv_heads group : Nat} {p : Problem R}
variable {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches} {sc : R} {pid : Int}

private theorem dot_exists {n : Nat} {a b : Nat → Flt R} (ha : ∀ j < n, ∃ x, a j = num x)
    (hb : ∀ j < n, ∃ x, b j = num x) : ∃ z, dot n a b (num 0) = num z := by
  refine ⟨_, dot_num (x := fun j => if h : j < n then (ha j h).choose else 0)
    (y := fun j => if h : j < n then (hb j h).choose else 0) (fun j hj => ?_) (fun j hj => ?_) rfl⟩
  · simp only [hj, dif_pos]; exact (ha j hj).choose_spec
  · simp only [hj, dif_pos]; exact (hb j hj).choose_spec

/-- One program of a launch: its heads, and that its queries are numbers in every row. -/
private theorem Given.program (G : p.Given Q K V sc)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) :
    ∃ (b : Fin batches) (h : Fin (num_kv_heads * group)),
      p.Holds pid Q[b][h] K[b][Spec.kvHead h] V[b][Spec.kvHead h] sc ∧
      ∀ i n, ∃ x, p.queryTile pid i n = num x := by
  obtain ⟨b, h, hb, hh, hr⟩ := place_row G.BM G.tilesLen G.numHeads hp.1 hp.2
  have H := G.holds hb hh
  refine ⟨_, _, H, fun i n => ?_⟩
  by_cases hq : p.row pid i < p.qLen
  · have := hr i
    have := G.qLen
    exact ⟨_, H.queryTile (x := ⟨(p.row pid i).toNat, by omega⟩) (by simp only; omega) n⟩
  · exact ⟨0, by simp [Problem.queryTile, hq]⟩

variable [Exponential R R]

/-- In a tile without mask code. -/
private theorem Given.wholeExponents (G : p.Given Q K V sc)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) {t : Int}
    (ht : p.wholeFirst pid ≤ t) (ht' : t < p.wholeStop pid) {s : State R} (hs : Maxima s) :
    ∀ i, (sub (s.1 i) ((rowOf i s).reference
        (mul (maxOver p.BN fun j => p.wholeProduct pid t i j) p.scale))).AtMostZero ∧
      (∀ j < p.BN, (sub (mul (p.wholeProduct pid t i j) p.scale) ((rowOf i s).reference
        (mul (maxOver p.BN fun j => p.wholeProduct pid t i j) p.scale))).AtMostZero) ∧
      ∃ m', (p.wholeBody pid t s).1 i = ofScore m' := by
  obtain ⟨b, h, H, hq⟩ := G.program hp
  have h₂ : ∀ i, ∃ f : Nat → R, ∀ j < p.BN, p.wholeProduct pid t i j = num (f j) := by
    intro i
    have : ∀ j < p.BN, ∃ x, p.wholeProduct pid t i j = num x := fun j hj => by
      obtain ⟨a₁, a₂⟩ := p.whole_key pid G.BN (by have := G.kvLen; omega) ht ht' hj
      have := G.kvLen
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
      rw [hf j hj, G.scale]
      rfl)
    (G.scale ▸ mul_maxOver G.scale_nonneg G.BN hf)

/-- In a tile with mask code. -/
private theorem Given.checkedExponents (G : p.Given Q K V sc)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) {t : Int}
    {s : State R} (hs : Maxima s) :
    ∀ i, (sub (s.1 i) ((rowOf i s).reference
        (maxOver p.BN fun j => p.checkedScore pid t i j))).AtMostZero ∧
      (∀ j < p.BN, (sub (p.checkedScore pid t i j) ((rowOf i s).reference
        (maxOver p.BN fun j => p.checkedScore pid t i j))).AtMostZero) ∧
      ∃ m', (p.checkedBody pid t s).1 i = ofScore m' := by
  obtain ⟨b, h, H, hq⟩ := G.program hp
  have h₂ : ∀ i, ∃ f : Nat → Option R, ∀ j < p.BN, p.checkedScore pid t i j = ofScore (f j) := by
    intro i
    have : ∀ j, ∃ x, p.checkedScore pid t i j = ofScore x := fun j => by
      obtain ⟨z, hz⟩ : ∃ z, dot p.BD (fun n => p.queryTile pid i n)
          (fun n => p.checkedKey pid t n j) (num 0) = num z := by
        refine dot_exists (fun n _ => hq i n) fun n _ => ?_
        by_cases hin : p.inside pid t j = true
        · obtain ⟨a₁, a₂⟩ := p.inside_key pid hin
          have := G.kvLen
          exact ⟨_, H.checkedKey (y := ⟨(p.keyAt t j).toNat, by omega⟩) (by simp only; omega) hin n⟩
        · exact ⟨0, by simp [Problem.checkedKey, hin]⟩
      rw [checkedScore, hz, G.scale]
      split
      · exact ⟨some (z * sc), rfl⟩
      · exact ⟨none, rfl⟩
    exact ⟨fun j => (this j).choose, fun j _ => (this j).choose_spec⟩
  intro i
  obtain ⟨f, hf⟩ := h₂ i
  obtain ⟨m, hm⟩ := hs i
  exact RowState.exponents (s := rowOf i s) hm (n := p.BN)
    (score := fun j => p.checkedScore pid t i j) (x := f) hf (maxOver_ofScore hf)

end Problem

/-! ## The texts -/

variable [Exponential R R]
variable {d d_v q_len kv_len batches num_kv_heads group : Nat}
variable {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches} {sc : R} {pid : Int}

open Problem

/-- **No argument of exp2 is above 0** in the text without a window: in every program, tile and
lane it is a number of at most 0, or −∞. -/
theorem Full.exponents {a : Full.Args R} (G : (Full.problem a).Given Q K V sc)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Full.Exponents a pid Flt.AtMostZero := by
  have first : (Full.problem a).wholeFirst pid = Full.loop1.firstTile a pid := rfl
  have stop : (Full.problem a).wholeStop pid = Full.loop1.stopTile a pid := rfl
  have k₁ : ∀ t ≤ Full.loop1.stopTile a pid, Maxima (Full.loop1.before a pid t) := fun t ht =>
    maxima_forRange maxima_init fun t' h h' s hs =>
      fun i => (G.wholeExponents hp (by omega) (by omega) hs i).2.2
  have k₂ : ∀ t, Maxima (Full.loop2.before a pid t) := fun t =>
    maxima_forRange (k₁ _ (Int.le_refl _)) fun t' _ _ s hs =>
      fun i => (G.checkedExponents (t := t') hp hs i).2.2
  refine ⟨fun t h h' => ?_, fun t _ _ => ?_⟩
  · have e := G.wholeExponents (t := t) hp (by omega) (by omega) (k₁ t (by omega))
    exact ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩
  · have e := G.checkedExponents (t := t) hp (k₂ t)
    exact ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩

/-- **No argument of exp2 is above 0** in the text with a right edge: in every program, tile and
lane it is a number of at most 0, or −∞. -/
theorem Causal.exponents {a : Causal.Args R} (G : (Causal.problem a).Given Q K V sc)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Causal.Exponents a pid Flt.AtMostZero := by
  have first : (Causal.problem a).wholeFirst pid = Causal.loop1.firstTile a pid := rfl
  have stop : (Causal.problem a).wholeStop pid = Causal.loop1.stopTile a pid := rfl
  have k₁ : ∀ t ≤ Causal.loop1.stopTile a pid, Maxima (Causal.loop1.before a pid t) := fun t ht =>
    maxima_forRange maxima_init fun t' h h' s hs =>
      fun i => (G.wholeExponents hp (by omega) (by omega) hs i).2.2
  have k₂ : ∀ t, Maxima (Causal.loop2.before a pid t) := fun t =>
    maxima_forRange (k₁ _ (Int.le_refl _)) fun t' _ _ s hs =>
      fun i => (G.checkedExponents (t := t') hp hs i).2.2
  refine ⟨fun t h h' => ?_, fun t _ _ => ?_⟩
  · have e := G.wholeExponents (t := t) hp (by omega) (by omega) (k₁ t (by omega))
    exact ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩
  · have e := G.checkedExponents (t := t) hp (k₂ t)
    exact ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩

/-- **No argument of exp2 is above 0** in the text with both edges: in every program, tile and lane
it is a number of at most 0, or −∞. -/
theorem Window.exponents {a : Window.Args R} (G : (Window.problem a).Given Q K V sc)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Window.Exponents a pid Flt.AtMostZero := by
  have k₁ : ∀ t, Maxima (Window.loop1.before a pid t) := fun t =>
    maxima_forRange maxima_init fun t' _ _ s hs i =>
      (G.checkedExponents (t := t') hp hs i).2.2
  have k₂ : ∀ t ≤ Window.loop2.stopTile a pid, Maxima (Window.loop2.before a pid t) := fun t ht =>
    maxima_forRange (k₁ _) fun t' h h' s hs =>
      fun i => (G.wholeExponents hp h (Int.lt_of_lt_of_le h' ht) hs i).2.2
  have k₃ : ∀ t, Maxima (Window.loop3.before a pid t) := fun t =>
    maxima_forRange (k₂ _ (Int.le_refl _)) fun t' _ _ s hs =>
      fun i => (G.checkedExponents (t := t') hp hs i).2.2
  refine ⟨fun t _ _ => ?_, fun t h h' => ?_, fun t _ _ => ?_⟩
  · have e := G.checkedExponents (t := t) hp (k₁ t)
    exact ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩
  · have e := G.wholeExponents hp h h' (k₂ t (Int.le_of_lt h'))
    exact ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩
  · have e := G.checkedExponents (t := t) hp (k₃ t)
    exact ⟨fun i _ => (e i).1, fun i _ => (e i).2.1⟩

end Attention.Kernel
