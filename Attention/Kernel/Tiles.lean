module

public import Attention.Kernel.Row

public section

/-! # Loops over tiles of keys, and the row of attention that they make -/

namespace Attention.Kernel

open Spec Spec.Online Proof

universe u v

/-- A loop whose every iteration takes one block is a fold over the blocks. -/
theorem forRange_fold {σ : Type u} {τ β : Type v} {P : τ → σ → Prop} {lo hi : Int}
    {body : Int → σ → σ} {f : τ → β → τ} {block : Int → β} {st : τ} {init : σ} (h₀ : P st init)
    (h : ∀ t : Int, lo ≤ t → t < hi → ∀ st s, P st s → P (f st (block t)) (body t s)) :
    P (((List.range (hi - lo).toNat).map fun n : Nat => block (lo + n)).foldl f st)
      (forRange lo hi body init) := by
  suffices ∀ l : List Nat, (∀ n ∈ l, lo + n < hi) → ∀ st s, P st s →
      P ((l.map fun n : Nat => block (lo + n)).foldl f st)
        (l.foldl (fun s (n : Nat) => body (lo + (n : Int)) s) s) from
    this _ (fun n hn => by have := List.mem_range.mp hn; omega) _ _ h₀
  intro l
  induction l with
  | nil => intro _ st s hp; exact hp
  | cons n l ih =>
    intro hl st s hp
    exact ih (fun n' hn' => hl n' (List.mem_cons_of_mem _ hn')) _ _
      (h _ (by omega) (hl n (by simp)) _ _ hp)

variable {R : Type u} {d : Nat}

/-- Tile `t` of keys, n to a tile: `key y` is what a row sees of key number y. -/
@[expose] def tileOf (key : Nat → ScoredValue R R d) (n : Nat) (t : Int) :
    List (ScoredValue R R d) :=
  (List.range n).map fun j => key (t.toNat * n + j)

/-- The tiles from `lo` to `hi` − 1. -/
@[expose] def tilesOf (key : Nat → ScoredValue R R d) (n : Nat) (lo hi : Int) :
    List (List (ScoredValue R R d)) :=
  (List.range (hi - lo).toNat).map fun t : Nat => tileOf key n (lo + t)

theorem tilesOf_append (key : Nat → ScoredValue R R d) (n : Nat) {lo mid hi : Int} (h₁ : lo ≤ mid)
    (h₂ : mid ≤ hi) : tilesOf key n lo mid ++ tilesOf key n mid hi = tilesOf key n lo hi := by
  have e : (hi - lo).toNat = (mid - lo).toNat + (hi - mid).toNat := by omega
  simp only [tilesOf, e, List.range_add, List.map_append, List.map_map]
  congr 1
  refine List.map_congr_left fun t _ => ?_
  simp only [Function.comp_apply]
  congr 1
  omega

variable [OrderedField R] [Exponential R R]

/-- A loop over the tiles from `mid` to `hi` − 1 continues what was made of those before. -/
theorem is_forRange {σ : Type v} {row : σ → RowState R} {key : Nat → ScoredValue R R d} {n : Nat}
    {lo mid hi : Int} {body : Int → σ → σ} {init : σ} (h₁ : lo ≤ mid) (h₂ : mid ≤ hi)
    (h₀ : (row init).Is (online (tilesOf key n lo mid)))
    (h : ∀ t : Int, mid ≤ t → t < hi → ∀ (st : State R R d) s, (row s).Is st →
      (row (body t s)).Is (stepBlock st (tileOf key n t))) :
    (row (forRange mid hi body init)).Is (online (tilesOf key n lo hi)) := by
  rw [← tilesOf_append key n h₁ h₂, online, List.foldl_append]
  exact forRange_fold (P := fun (st : State R R d) s => (row s).Is st) (block := tileOf key n) h₀ h

/-! ## All keys -/

omit [OrderedField R] [Exponential R R] in
/-- The keys of consecutive tiles are consecutive keys. -/
theorem flatten_tilesOf (key : Nat → ScoredValue R R d) (n : Nat) {lo hi : Int} (h₀ : 0 ≤ lo) :
    (tilesOf key n lo hi).flatten
      = (List.range' (lo.toNat * n) ((hi - lo).toNat * n)).map key := by
  have e : ∀ t : Nat, tileOf key n (lo + t) = (List.range' ((lo.toNat + t) * n) n).map key := by
    intro t
    rw [tileOf, show (lo + (t : Int)).toNat = lo.toNat + t by omega, List.range'_eq_map_range,
      List.map_map]
    rfl
  simp only [tilesOf, e]
  induction (hi - lo).toNat with
  | zero => simp
  | succ k ih =>
    rw [List.range_succ, List.map_append, List.flatten_append, ih, Nat.succ_mul,
      ← List.range'_append_1, List.map_append]
    simp [Nat.add_mul]

private theorem filter_range' {p : Nat → Bool} {s k N : Nat} (h : ∀ y, p y → s ≤ y ∧ y < s + k)
    (hN : s + k ≤ N) : (List.range' s k).filter p = (List.range N).filter p := by
  obtain ⟨r, rfl⟩ := Nat.exists_eq_add_of_le hN
  rw [List.range_eq_range', Nat.add_assoc, ← List.range'_append_1, ← List.range'_append_1]
  simp only [List.filter_append, Nat.zero_add]
  have h₁ : (List.range' 0 s).filter p = [] := List.filter_eq_nil_iff.mpr fun y hy hp => by
    have := (h y hp).1
    have := (List.mem_range'_1.mp hy).2
    omega
  have h₂ : (List.range' (s + k) r).filter p = [] := List.filter_eq_nil_iff.mpr fun y hy hp => by
    have := (h y hp).2
    have := (List.mem_range'_1.mp hy).1
    omega
  rw [h₁, h₂, List.nil_append, List.append_nil]

omit [OrderedField R] [Exponential R R] in
/-- The tiles hold every key that is not masked. -/
theorem filter_tilesOf {key : Nat → ScoredValue R R d} {n len : Nat} {lo hi : Int} (h₀ : 0 ≤ lo)
    (h₁ : lo ≤ hi) (h : ∀ y : Nat, (key y).score ≠ none → y < len ∧ lo * n ≤ y ∧ y < hi * n) :
    (tilesOf key n lo hi).flatten.filter (·.score.isSome)
      = ((List.range len).map key).filter (·.score.isSome) := by
  have h' : ∀ y, (key y).score.isSome = true →
      y < len ∧ lo.toNat * n ≤ y ∧ y < lo.toNat * n + (hi - lo).toNat * n := by
    intro y hy
    obtain ⟨a, b, c⟩ := h y (by intro hn; simp [hn] at hy)
    refine ⟨a, ?_, ?_⟩
    · have : ((lo.toNat * n : Nat) : Int) ≤ y := by
        rw [Int.natCast_mul, Int.toNat_of_nonneg h₀]; exact b
      omega
    · rw [← Nat.add_mul]
      have : (y : Int) < (((lo.toNat + (hi - lo).toNat) * n : Nat) : Int) := by
        rw [Int.natCast_mul, show ((lo.toNat + (hi - lo).toNat : Nat) : Int) = hi by omega]
        exact c
      omega
  rw [flatten_tilesOf key n h₀, List.filter_map, List.filter_map]
  congr 1
  show List.filter (fun y => (key y).score.isSome) _ = List.filter (fun y => (key y).score.isSome) _
  rw [filter_range' (N := lo.toNat * n + (hi - lo).toNat * n + len)
      (fun y hy => (h' y hy).2) (by omega), List.range_eq_range' (n := len),
    filter_range' (N := lo.toNat * n + (hi - lo).toNat * n + len)
      (fun y hy => ⟨by omega, by have := (h' y hy).1; omega⟩) (by omega)]

/-- Leaving the masked keys out does not change the log-sum-exp. -/
theorem isLogSumExp_filter {L : Option R} (row : List (ScoredValue R R d)) :
    IsLogSumExp R L ((row.filter (·.score.isSome)).map (·.score))
      ↔ IsLogSumExp R L (row.map (·.score)) := by
  have h : (denominator ((row.filter (·.score.isSome)).map (·.score)) : R)
      = denominator (row.map (·.score)) := by
    induction row with
    | nil => rfl
    | cons key row ih =>
      simp only [denominator] at ih ⊢
      cases hs : key.score with
      | none =>
        rw [List.filter_cons_of_neg (by simp [hs]), ih, List.map_cons, sumOver_cons, hs]
        simp only [weight]
        grind
      | some s =>
        rw [List.filter_cons_of_pos (by simp [hs]), List.map_cons, List.map_cons, sumOver_cons,
          sumOver_cons, ih]
  rw [IsLogSumExp, IsLogSumExp, h]

/-! ## The keys of attention -/

variable {q_len kv_len d_qk : Nat} (scale : R) (modify : ScoreMod R q_len kv_len)
variable (Q : Matrix R q_len d_qk) (K : Matrix R kv_len d_qk) (V : Matrix R kv_len d)

/-- Key number y as query x sees it; beyond the last one keys are masked. -/
@[expose] def keyOf (x : Fin q_len) (y : Nat) : ScoredValue R R d :=
  if h : y < kv_len then ⟨score scale modify Q K x ⟨y, h⟩, V[y]⟩ else ⟨none, Vec.zero⟩

omit [Exponential R R] in
theorem map_keyOf (x : Fin q_len) : (List.range kv_len).map (keyOf scale modify Q K V x)
    = scored scale modify Q K V x (List.finRange kv_len) :=
  List.ext_getElem (by simp [scored]) fun y h₁ h₂ => by
    have h : y < kv_len := by simpa using h₁
    simp [scored, keyOf, h]

variable {scale modify Q K V}

/-- Tiles that hold every key that the query sees make its row of attention. -/
theorem attend_tilesOf {x : Fin q_len} {n : Nat} {lo hi : Int} (h₀ : 0 ≤ lo) (h₁ : lo ≤ hi)
    (h : ∀ y : Nat, (keyOf scale modify Q K V x y).score ≠ none → lo * n ≤ y ∧ y < hi * n) :
    attend (tilesOf (keyOf scale modify Q K V x) n lo hi).flatten
      = (attention scale modify Q K V)[x] := by
  rw [← attend_filter, filter_tilesOf (len := kv_len) h₀ h₁ fun y hy => ⟨?_, h y hy⟩, attend_filter,
    map_keyOf]
  · simp [attention]
  · refine Classical.byContradiction fun hn => hy ?_
    simp [keyOf, hn]

/-- The same of their log-sum-exp. -/
theorem lse_tilesOf {x : Fin q_len} {n : Nat} {lo hi : Int} (h₀ : 0 ≤ lo) (h₁ : lo ≤ hi)
    (h : ∀ y : Nat, (keyOf scale modify Q K V x y).score ≠ none → lo * n ≤ y ∧ y < hi * n)
    {L : Option R} :
    IsLogSumExp R L ((tilesOf (keyOf scale modify Q K V x) n lo hi).flatten.map (·.score))
      ↔ IsLogSumExp R L ((List.finRange kv_len).map (Spec.score scale modify Q K x)) := by
  rw [← isLogSumExp_filter, filter_tilesOf (len := kv_len) h₀ h₁ fun y hy => ⟨?_, h y hy⟩,
    isLogSumExp_filter, map_keyOf, scored, List.map_map]
  · rfl
  · refine Classical.byContradiction fun hn => hy ?_
    simp [keyOf, hn]

end Attention.Kernel
