module

public import Attention.Kernel.Grid
public import Attention.Kernel.Model
public import Attention.Spec.Heads

public section

/-! # What all programs of a launch of the forward kernel write -/

namespace Attention.Kernel

open Spec Flt

universe u v w

/-- The stores of some lanes, each of which may store once, fill a tensor: element x of it lies at
`at x`, and `want x` says which values it may get. -/
structure Fills {κ : Type u} {ι : Type v} {α : Type w} (lane : κ → Prop) (store : κ → Store α)
    (at_ : ι → Int) (want : ι → α → Prop) : Prop where
  /-- Every element is stored by some lane, with a value that is wanted. -/
  stored : ∀ x, ∃ k, lane k ∧ (store k).active = true ∧ (store k).offset = at_ x ∧
    want x (store k).value
  /-- No two lanes store to one place. -/
  once : ∀ k k', lane k → lane k' → (store k).active = true → (store k').active = true →
    (store k).offset = (store k').offset → k = k'
  /-- Nothing is stored elsewhere. -/
  nowhere : ∀ k, lane k → (store k).active = true → ∃ x, (store k).offset = at_ x

namespace Problem

variable {R : Type u} [OrderedField R] {d d_v q_len kv_len batches num_kv_heads group : Nat}

/-- The assumptions of the forward kernel: sizes are as given, the scale is not negative, and the
elements of `Q`, `K` and `V` lie where the strides say. Nothing is asked of other memory. -/
structure Given (p : Problem R)
    (Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches)
    (K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches)
    (V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches) (sc : R) : Prop where
  BM : 0 < p.BM
  BN : 0 < p.BN
  /-- The tile is as wide as a head, or wider; a text without masks for that is of equal widths. -/
  fits : d ≤ p.BD
  even : p.even = true → p.BD = d
  fitsValue : d_v ≤ p.BV
  numHeads : p.heads = (num_kv_heads * group : Nat)
  perHead : p.group = group
  dim : p.dim = d
  valueDim : p.valueDim = d_v
  packed : p.packed = none
  tilesLen : p.tilesLen = q_len
  qLen : p.qLen = q_len
  kvLen : p.kvLen = kv_len
  scale : p.scale = num sc
  scale_nonneg : 0 ≤ sc
  query : ∀ (b : Fin batches) (h : Fin (num_kv_heads * group)) (x : Fin q_len) (n : Fin d),
    p.query (b * p.qb + h * p.qh + x * p.qm + n) = num Q[b][h][x][n]
  key : ∀ (b : Fin batches) (h : Fin num_kv_heads) (y : Fin kv_len) (n : Fin d),
    p.key (b * p.kb + h * p.kh + y * p.kn + n) = num K[b][h][y][n]
  value : ∀ (b : Fin batches) (h : Fin num_kv_heads) (y : Fin kv_len) (c : Fin d_v),
    p.value (b * p.vb + h * p.vh + y * p.vn + c) = num V[b][h][y][c]

/-- An element of the output: batch, head, query and component. -/
abbrev OutIndex (batches heads q_len d_v : Nat) := Fin batches × Fin heads × Fin q_len × Fin d_v

/-- An element of the log-sum-exp: batch, head and query. -/
abbrev LseIndex (batches heads q_len : Nat) := Fin batches × Fin heads × Fin q_len

/-- Where an element of the output lies. -/
@[expose] def outOffset {heads : Nat} (p : Problem R) (x : OutIndex batches heads q_len d_v) :
    Int :=
  x.1 * p.ob + x.2.1 * p.oh + x.2.2.1 * p.om + x.2.2.2

/-- Where an element of the log-sum-exp lies. -/
@[expose] def lseOffset {heads : Nat} (p : Problem R) (x : LseIndex batches heads q_len) : Int :=
  x.1 * p.lb + x.2.1 * p.lh + x.2.2

/-- The lanes of a launch: program, row and column. There are as many programs as the launcher
starts, one for each tile of queries of each head. -/
@[expose] def outLane (p : Problem R) (q_len heads batches : Nat) (k : Int × Nat × Nat) : Prop :=
  0 ≤ k.1 ∧ k.1 < (numTiles q_len p.BM * (batches * heads) : Nat) ∧ k.2.1 < p.BM ∧ k.2.2 < p.BV

/-- The same of a tensor without components. -/
@[expose] def lseLane (p : Problem R) (q_len heads batches : Nat) (k : Int × Nat) : Prop :=
  0 ≤ k.1 ∧ k.1 < (numTiles q_len p.BM * (batches * heads) : Nat) ∧ k.2 < p.BM

variable {p : Problem R} {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
variable {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
variable {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches} {sc : R}

/-- The assumptions of one program. -/
theorem Given.holds (G : p.Given Q K V sc) {pid : Int} {b : Fin batches}
    {h : Fin (num_kv_heads * group)} (hb : p.batch pid = b) (hh : p.head pid = h) :
    p.Holds pid Q[b][h] K[b][Spec.kvHead h] V[b][Spec.kvHead h] sc := by
  have e : p.kvHead pid = (Spec.kvHead h : Fin num_kv_heads) := by
    rw [Problem.kvHead, hh, G.perHead, Int.tdiv_eq_ediv_of_nonneg (by omega)]
    exact (Int.natCast_ediv _ _).symm
  exact { BM := G.BM, BN := G.BN, even := G.even, fits := G.fits, fitsValue := G.fitsValue
          dim := G.dim, valueDim := G.valueDim, qLen := G.qLen, kvLen := G.kvLen
          scale := G.scale, scale_nonneg := G.scale_nonneg
          query := by simp only [queryBase, G.packed, hb, hh]; exact G.query b h
          key := by simp only [keyBase, G.packed, hb, e]; exact G.key b (Spec.kvHead h)
          value := by simp only [valueBase, G.packed, hb, e]; exact G.value b (Spec.kvHead h) }

/-- A row that is stored belongs to one query of one head. -/
theorem Given.place (G : p.Given Q K V sc) {pid : Int} (h₀ : 0 ≤ pid)
    (h₁ : pid < (numTiles q_len p.BM * (batches * (num_kv_heads * group)) : Nat)) {i : Nat}
    (hq : p.row pid i < p.qLen) : ∃ (b : Fin batches) (h : Fin (num_kv_heads * group))
      (x : Fin q_len), p.batch pid = b ∧ p.head pid = h ∧ p.row pid i = x := by
  obtain ⟨b, h, eb, eh, hr⟩ := place_row G.BM G.tilesLen G.numHeads h₀ h₁
  have := hr i
  have := G.qLen
  exact ⟨b, h, ⟨(p.row pid i).toNat, by omega⟩, eb, eh, by simp only; omega⟩

variable [Exponential R R]

/-- The launch fills the output with attention. -/
theorem Given.output (G : p.Given Q K V sc)
    (hinj : ∀ x y : OutIndex batches (num_kv_heads * group) q_len d_v,
      p.outOffset x = p.outOffset y → x = y) :
    Fills (p.outLane q_len (num_kv_heads * group) batches) (fun k => p.storeOut k.1 k.2.1 k.2.2)
      p.outOffset fun (x : OutIndex batches (num_kv_heads * group) q_len d_v) v =>
        v = num (groupedQuery sc (fun _ => p.mask.toScoreMod)
          Q[x.1] K[x.1] V[x.1])[x.2.1][x.2.2.1][x.2.2.2] := by
  have active : ∀ {pid : Int} {i c : Nat}, (p.storeOut pid i c).active = true ↔
      p.row pid i < p.qLen ∧ (c : Int) < p.valueDim := by
    intro pid i c
    simp only [storeOut, stored, G.packed, Bool.and_eq_true, decide_eq_true_eq]
  have offset : ∀ {pid : Int} {i c : Nat} {b : Fin batches} {h : Fin (num_kv_heads * group)}
      {x : Fin q_len}, p.batch pid = b → p.head pid = h → p.row pid i = x → ∀ hc : c < d_v,
      (p.storeOut pid i c).offset = p.outOffset (b, h, x, (⟨c, hc⟩ : Fin d_v)) := by
    intro pid i c b h x eb eh ex hc
    simp only [storeOut, outAt, outBase, G.packed, outOffset, eb, eh, ex, Int.zero_add]
  refine ⟨fun ⟨b, h, x, c⟩ => ?_, ?_, ?_⟩
  · obtain ⟨pid, i, h₀, h₁, hi, eb, eh, ex⟩ := exists_row G.BM G.tilesLen G.numHeads b h x.isLt
    have hc := c.isLt
    refine ⟨(pid, i, c), ⟨h₀, h₁, hi, by have := G.fitsValue; simp only; omega⟩,
      active.mpr ⟨?_, ?_⟩, offset eb eh ex hc, ?_⟩
    · show p.row pid i < p.qLen
      have := G.qLen
      omega
    · show (c : Int) < p.valueDim
      have := G.valueDim
      omega
    · simp only [groupedQuery, Fin.getElem_fin, Vec.getElem_ofFn]
      exact (G.holds eb eh).output hi ex hc
  · rintro ⟨pid, i, c⟩ ⟨pid', i', c'⟩ ⟨h₀, h₁, hi, hc⟩ ⟨h₀', h₁', hi', hc'⟩ a a' e
    obtain ⟨ha, hc⟩ := active.mp a
    obtain ⟨ha', hc'⟩ := active.mp a'
    obtain ⟨b, h, x, eb, eh, ex⟩ := G.place h₀ h₁ ha
    obtain ⟨b', h', x', eb', eh', ex'⟩ := G.place h₀' h₁' ha'
    have hd := G.valueDim
    rw [offset eb eh ex (by omega), offset eb' eh' ex' (by omega)] at e
    have e := hinj _ _ e
    simp only [Prod.mk.injEq, Fin.mk.injEq] at e
    obtain ⟨e₁, e₂, e₃, e₄⟩ := e
    obtain ⟨e₅, e₆⟩ := row_unique G.BM G.tilesLen G.numHeads h₀ h₁ h₀' h₁' hi hi'
      (by rw [eb, eb', e₁]) (by rw [eh, eh', e₂]) (by rw [ex, ex', e₃])
    simp only at e₄ e₅ e₆
    rw [e₄, e₅, e₆]
  · rintro ⟨pid, i, c⟩ ⟨h₀, h₁, hi, hc⟩ a
    obtain ⟨ha, hc⟩ := active.mp a
    obtain ⟨b, h, x, eb, eh, ex⟩ := G.place h₀ h₁ ha
    have hd := G.valueDim
    exact ⟨_, offset eb eh ex (by omega)⟩

/-- The launch fills the log-sum-exp with that of the scores. -/
theorem Given.logSumExp (G : p.Given Q K V sc) {log2e : R} (h₂ : 0 < p.ln2)
    (hl : p.ln2 * log2e = 1) (hln : ∀ x, 0 < x → (exp (log2e * p.ln x) : R) = x)
    (hinj : ∀ x y : LseIndex batches (num_kv_heads * group) q_len,
      p.lseOffset x = p.lseOffset y → x = y) :
    Fills (p.lseLane q_len (num_kv_heads * group) batches) (fun k => p.storeLse k.1 k.2)
      p.lseOffset fun (x : LseIndex batches (num_kv_heads * group) q_len) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (log2e * ·))
          ((List.finRange kv_len).map (Spec.score sc p.mask.toScoreMod Q[x.1][x.2.1]
            K[x.1][Spec.kvHead x.2.1] x.2.2)) := by
  have active : ∀ {pid : Int} {i : Nat}, (p.storeLse pid i).active = true ↔
      p.row pid i < p.qLen := by
    intro pid i
    simp only [storeLse, stored, G.packed, decide_eq_true_eq]
  have offset : ∀ {pid : Int} {i : Nat} {b : Fin batches} {h : Fin (num_kv_heads * group)}
      {x : Fin q_len}, p.batch pid = b → p.head pid = h → p.row pid i = x →
      (p.storeLse pid i).offset = p.lseOffset (b, h, x) := by
    intro pid i b h x eb eh ex
    simp only [storeLse, lseAt, lseBase, G.packed, lseOffset, eb, eh, ex, Int.zero_add]
  refine ⟨fun ⟨b, h, x⟩ => ?_, ?_, ?_⟩
  · obtain ⟨pid, i, h₀, h₁, hi, eb, eh, ex⟩ := exists_row G.BM G.tilesLen G.numHeads b h x.isLt
    refine ⟨(pid, i), ⟨h₀, h₁, hi⟩, active.mpr ?_, offset eb eh ex, ?_⟩
    · show p.row pid i < p.qLen
      have := G.qLen
      omega
    · exact (G.holds eb eh).logSumExp h₂ hl hln hi ex
  · rintro ⟨pid, i⟩ ⟨pid', i'⟩ ⟨h₀, h₁, hi⟩ ⟨h₀', h₁', hi'⟩ a a' e
    obtain ⟨b, h, x, eb, eh, ex⟩ := G.place h₀ h₁ (active.mp a)
    obtain ⟨b', h', x', eb', eh', ex'⟩ := G.place h₀' h₁' (active.mp a')
    rw [offset eb eh ex, offset eb' eh' ex'] at e
    have e := hinj _ _ e
    simp only [Prod.mk.injEq] at e
    obtain ⟨e₁, e₂, e₃⟩ := e
    obtain ⟨e₅, e₆⟩ := row_unique G.BM G.tilesLen G.numHeads h₀ h₁ h₀' h₁' hi hi'
      (by rw [eb, eb', e₁]) (by rw [eh, eh', e₂]) (by rw [ex, ex', e₃])
    simp only at e₅ e₆
    rw [e₅, e₆]
  · rintro ⟨pid, i⟩ ⟨h₀, h₁, hi⟩ a
    obtain ⟨b, h, x, eb, eh, ex⟩ := G.place h₀ h₁ (active.mp a)
    exact ⟨_, offset eb eh ex⟩

end Problem

end Attention.Kernel
