module

public import Attention.Kernel.Launch
public import Attention.Kernel.Problems

public section

/-! # What all programs of a launch for packed sequences write -/

namespace Attention.Kernel.Packed

open Spec Flt

universe u

variable {R : Type u} {d d_v n num_kv_heads group : Nat} {q_len kv_len : Fin n → Nat}

/-- Of n packed sequences of these lengths `cu` says where each begins, and at n where the last one
ends, within `total` rows; this lies behind `ptr`. Rows before the first sequence and behind the
last one there may be. -/
structure Begins (cu : Nat → Nat) (len : Fin n → Nat) (ptr : Mem Int) (stride total : Int) :
    Prop where
  next : ∀ b : Fin n, cu (b + 1) = cu b + len b
  total : (cu n : Int) ≤ total
  memory : ∀ b : Nat, b ≤ n → ptr (b * stride) = (cu b : Nat)

theorem Begins.le {cu : Nat → Nat} {len : Fin n → Nat} {ptr : Mem Int} {stride total : Int}
    (B : Begins cu len ptr stride total) {b c : Nat} (h : b ≤ c) (hc : c ≤ n) : cu b ≤ cu c := by
  induction h with
  | refl => exact Nat.le_refl _
  | @step c _ ih =>
    have h₁ : cu (c + 1) = cu c + len ⟨c, hc⟩ := B.next ⟨c, hc⟩
    rw [h₁]
    exact Nat.le_trans (ih (Nat.le_of_succ_le hc)) (Nat.le_add_right _ _)

theorem Begins.firstRow {cu : Nat → Nat} {len : Fin n → Nat} {ptr : Mem Int} {stride total : Int}
    (B : Begins cu len ptr stride total) (b : Fin n) :
    Forward.firstRow ptr stride total b = (cu b : Nat) := by
  have hb := Nat.le_of_lt b.isLt
  have h := Int.le_trans (Int.ofNat_le.mpr (B.le hb (Nat.le_refl n))) B.total
  rw [Forward.firstRow, Int.zero_add, B.memory b hb, Int.max_eq_left (Int.natCast_nonneg _),
    Int.min_eq_left h]

theorem Begins.stopRow {cu : Nat → Nat} {len : Fin n → Nat} {ptr : Mem Int} {stride total : Int}
    (B : Begins cu len ptr stride total) (b : Fin n) :
    Forward.stopRow ptr stride total b = (cu b + len b : Nat) := by
  have h := B.memory (b + 1) b.isLt
  have h₁ := Int.ofNat_le.mpr (B.le (Nat.le_succ b) b.isLt)
  have h₂ := Int.le_trans (Int.ofNat_le.mpr (B.le b.isLt (Nat.le_refl n))) B.total
  rw [Int.natCast_add, Int.natCast_one] at h
  rw [Forward.stopRow, Int.zero_add, h, B.firstRow, Int.max_eq_left h₁, Int.min_eq_left h₂,
    B.next b]

variable [OrderedField R]

/-- The assumptions of the forward kernel for packed sequences, of which sequence b has the queries
`Q b`, the keys `K b` and the values `V b`: sizes are as given, the programs' tiles cover the
longest sequence, the scale is not negative, and the rows of each sequence lie one after another
where the sequence begins. Nothing is asked of other memory. -/
structure Given (a : Forward.Args R) (cu_q cu_k : Nat → Nat) (max_q_len : Nat)
    (Q : (b : Fin n) → Vector (Matrix R (q_len b) d) (num_kv_heads * group))
    (K : (b : Fin n) → Vector (Matrix R (kv_len b) d) num_kv_heads)
    (V : (b : Fin n) → Vector (Matrix R (kv_len b) d_v) num_kv_heads) (sc : R) : Prop where
  BM : 0 < a.BLOCK_M
  BN : 0 < a.BLOCK_N
  /-- Heads and values fill their tiles. -/
  even : a.BLOCK_D = d
  evenValue : a.BLOCK_V = d_v
  numHeads : a.num_heads = (num_kv_heads * group : Nat)
  perHead : a.group = group
  dim : a.head_dim = d
  valueDim : a.value_dim = d_v
  maxLen : a.max_q_len = max_q_len
  longest : ∀ b, q_len b ≤ max_q_len
  queries : Begins cu_q q_len a.cu_q_ptr a.stride_xb a.q_len
  keys : Begins cu_k kv_len a.cu_k_ptr a.stride_yb a.kv_len
  scale : a.scale = num sc
  scale_nonneg : 0 ≤ sc
  query : ∀ (b : Fin n) (h : Fin (num_kv_heads * group)) (x : Fin (q_len b)) (c : Fin d),
    a.query_ptr (h * a.stride_qh + (cu_q b + x : Nat) * a.stride_qm + c) = num (Q b)[h][x][c]
  key : ∀ (b : Fin n) (h : Fin num_kv_heads) (y : Fin (kv_len b)) (c : Fin d),
    a.key_ptr (h * a.stride_kh + (cu_k b + y : Nat) * a.stride_kn + c) = num (K b)[h][y][c]
  value : ∀ (b : Fin n) (h : Fin num_kv_heads) (y : Fin (kv_len b)) (c : Fin d_v),
    a.value_ptr (h * a.stride_vh + (cu_k b + y : Nat) * a.stride_vn + c) = num (V b)[h][y][c]

/-- An element of the output: sequence, head, query of the sequence, and component. -/
abbrev OutIndex (q_len : Fin n → Nat) (heads d_v : Nat) :=
  (b : Fin n) × Fin heads × Fin (q_len b) × Fin d_v

/-- An element of the log-sum-exp: sequence, head and query of the sequence. -/
abbrev LseIndex (q_len : Fin n → Nat) (heads : Nat) := (b : Fin n) × Fin heads × Fin (q_len b)

/-- Where an element of the output lies. -/
@[expose] def outOffset (a : Forward.Args R) (cu_q : Nat → Nat) {heads : Nat}
    (x : OutIndex q_len heads d_v) : Int :=
  x.2.1 * a.stride_oh + (cu_q x.1 + x.2.2.1 : Nat) * a.stride_om + x.2.2.2

/-- Where an element of the log-sum-exp lies. -/
@[expose] def lseOffset (a : Forward.Args R) (cu_q : Nat → Nat) {heads : Nat}
    (x : LseIndex q_len heads) : Int :=
  x.2.1 * a.stride_lh + (cu_q x.1 + x.2.2 : Nat)

/-- The lanes of a launch: program, row and column. There are as many programs as the launcher
starts, one for each tile of queries, of as many as the longest sequence has, of each head of each
sequence. -/
@[expose] def outLane (a : Forward.Args R) (max_q_len heads n : Nat) (k : Int × Nat × Nat) : Prop :=
  0 ≤ k.1 ∧ k.1 < (numTiles max_q_len a.BLOCK_M * (n * heads) : Nat) ∧ k.2.1 < a.BLOCK_M ∧
    k.2.2 < a.BLOCK_V

/-- The same of a tensor without components. -/
@[expose] def lseLane (a : Forward.Args R) (max_q_len heads n : Nat) (k : Int × Nat) : Prop :=
  0 ≤ k.1 ∧ k.1 < (numTiles max_q_len a.BLOCK_M * (n * heads) : Nat) ∧ k.2 < a.BLOCK_M

variable {a : Forward.Args R} {cu_q cu_k : Nat → Nat} {max_q_len : Nat} {sc : R}
variable {Q : (b : Fin n) → Vector (Matrix R (q_len b) d) (num_kv_heads * group)}
variable {K : (b : Fin n) → Vector (Matrix R (kv_len b) d) num_kv_heads}
variable {V : (b : Fin n) → Vector (Matrix R (kv_len b) d_v) num_kv_heads}
variable (left right : Option Int) (atEnd : Bool)

theorem Given.qLen (G : Given a cu_q cu_k max_q_len Q K V sc) (b : Fin n) :
    (Forward.packed a left right atEnd b).qLen = q_len b := by
  simp only [Forward.packed, G.queries.stopRow, G.queries.firstRow]
  omega

theorem Given.kvLen (G : Given a cu_q cu_k max_q_len Q K V sc) (b : Fin n) :
    (Forward.packed a left right atEnd b).kvLen = kv_len b := by
  simp only [Forward.packed, G.keys.stopRow, G.keys.firstRow]
  omega

omit [OrderedField R] in
theorem stored_iff {b pid : Int} {allowed : Bool} :
    (Forward.packed a left right atEnd b).stored pid allowed = true ↔
      (Forward.packed a left right atEnd b).rowFirst pid <
        (Forward.packed a left right atEnd b).qLen ∧ allowed = true := by
  show (!decide ((Forward.packed a left right atEnd b).qLen ≤
    (Forward.packed a left right atEnd b).rowFirst pid) && allowed) = true ↔ _
  rw [Bool.and_eq_true, Bool.not_eq_true', decide_eq_false_iff_not, Int.not_le]

/-- The assumptions of one program. -/
theorem Given.holds (G : Given a cu_q cu_k max_q_len Q K V sc) {pid : Int} (b : Fin n)
    {h : Fin (num_kv_heads * group)} (hh : (Forward.packed a left right atEnd b).head pid = h) :
    (Forward.packed a left right atEnd b).Holds pid (Q b)[h] (K b)[Spec.kvHead h]
      (V b)[Spec.kvHead h] sc := by
  have e : (Forward.packed a left right atEnd b).kvHead pid
      = (Spec.kvHead h : Fin num_kv_heads) := by
    rw [Problem.kvHead, hh, show (Forward.packed a left right atEnd b).group = group from G.perHead,
      Int.tdiv_eq_ediv_of_nonneg (by omega)]
    exact (Int.natCast_ediv _ _).symm
  refine { BM := G.BM, BN := G.BN, even := fun _ => G.even, fits := Nat.le_of_eq G.even.symm
           fitsValue := Nat.le_of_eq G.evenValue.symm, dim := G.dim, valueDim := G.valueDim
           qLen := G.qLen left right atEnd b, kvLen := G.kvLen left right atEnd b
           scale := G.scale, scale_nonneg := G.scale_nonneg
           query := fun x c => ?_, key := fun y c => ?_, value := fun y c => ?_ }
  · rw [← G.query b h x c]
    simp only [Problem.queryBase, hh]
    simp only [Forward.packed, G.queries.firstRow, Int.natCast_add, Int.add_mul, Int.add_assoc]
  · rw [← G.key b (Spec.kvHead h) y c]
    simp only [Problem.keyBase, e]
    simp only [Forward.packed, G.keys.firstRow, Int.natCast_add, Int.add_mul, Int.add_assoc]
  · rw [← G.value b (Spec.kvHead h) y c]
    simp only [Problem.valueBase, e]
    simp only [Forward.packed, G.keys.firstRow, Int.natCast_add, Int.add_mul, Int.add_assoc]

/-- A row that is stored belongs to one query of one head of one sequence. -/
theorem Given.place (G : Given a cu_q cu_k max_q_len Q K V sc) {pid : Int} (h₀ : 0 ≤ pid)
    (h₁ : pid < (numTiles max_q_len a.BLOCK_M * (n * (num_kv_heads * group)) : Nat)) :
    ∃ (b : Fin n) (h : Fin (num_kv_heads * group)), Forward.sequence a pid = b ∧
      (Forward.packed a left right atEnd b).head pid = h ∧
      ∀ i, (Forward.packed a left right atEnd b).row pid i <
        (Forward.packed a left right atEnd b).qLen →
        ∃ x : Fin (q_len b), (Forward.packed a left right atEnd b).row pid i = x := by
  obtain ⟨b, h, eb, eh, hr⟩ := Problem.place_row (p := Forward.packed a left right atEnd 0)
    (batches := n) G.BM G.maxLen G.numHeads h₀ h₁
  refine ⟨b, h, eb, eh, fun i hi => ?_⟩
  have hr : 0 ≤ (Forward.packed a left right atEnd b).row pid i := hr i
  have := G.qLen left right atEnd b
  exact ⟨⟨((Forward.packed a left right atEnd b).row pid i).toNat, by omega⟩, by simp only; omega⟩

variable [Exponential R R]

/-- The launch fills the output of each sequence with its attention. -/
theorem Given.output (G : Given a cu_q cu_k max_q_len Q K V sc)
    (hinj : ∀ x y : OutIndex q_len (num_kv_heads * group) d_v,
      outOffset a cu_q x = outOffset a cu_q y → x = y) :
    Fills (outLane a max_q_len (num_kv_heads * group) n)
      (fun k => (Forward.packed a left right atEnd (Forward.sequence a k.1)).storeOut
        k.1 k.2.1 k.2.2)
      (outOffset a cu_q) fun (x : OutIndex q_len (num_kv_heads * group) d_v) v =>
        v = num (groupedQuery sc
          (fun _ => (Forward.packed a left right atEnd x.1).mask.toScoreMod)
          (Q x.1) (K x.1) (V x.1))[x.2.1][x.2.2.1][x.2.2.2] := by
  have active : ∀ {pid : Int} {b : Fin n} {i c : Nat},
      ((Forward.packed a left right atEnd b).storeOut pid i c).active = true →
      (Forward.packed a left right atEnd b).row pid i <
        (Forward.packed a left right atEnd b).qLen ∧ c < d_v := by
    intro pid b i c h
    have hd : (Forward.packed a left right atEnd b).valueDim = d_v := G.valueDim
    simp only [Problem.storeOut, stored_iff, Bool.and_eq_true, decide_eq_true_eq] at h
    exact ⟨h.2.1, by omega⟩
  have offset : ∀ {pid : Int} {b : Fin n} {i c : Nat} {h : Fin (num_kv_heads * group)}
      {x : Fin (q_len b)}, (Forward.packed a left right atEnd b).head pid = h →
      (Forward.packed a left right atEnd b).row pid i = x → ∀ hc : c < d_v,
      ((Forward.packed a left right atEnd b).storeOut pid i c).offset
        = outOffset a cu_q (⟨b, h, x, ⟨c, hc⟩⟩ : OutIndex q_len (num_kv_heads * group) d_v) := by
    intro pid b i c h x eh ex hc
    simp only [Problem.storeOut, Problem.outAt, Problem.outBase, eh, ex, outOffset]
    simp only [Forward.packed, G.queries.firstRow, Int.natCast_add, Int.add_mul, Int.add_assoc,
      Int.zero_add]
  refine ⟨fun ⟨b, h, x, c⟩ => ?_, ?_, ?_⟩
  · have hx := G.longest b
    obtain ⟨pid, i, h₀, h₁, hi, eb, eh, ex⟩ := Problem.exists_row
      (p := Forward.packed a left right atEnd b) G.BM G.maxLen G.numHeads b h
      (x := x) (by omega)
    have hc := c.isLt
    have eb : Forward.sequence a pid = b := eb
    refine ⟨(pid, i, c), ⟨h₀, h₁, hi, by have := G.evenValue; simp only; omega⟩, ?_, ?_, ?_⟩
    · have hq := G.qLen left right atEnd b
      have hd : (Forward.packed a left right atEnd b).valueDim = d_v := G.valueDim
      have hr : (Forward.packed a left right atEnd b).rowFirst pid ≤
          (Forward.packed a left right atEnd b).row pid i := by simp only [Problem.row]; omega
      simp only [eb, Problem.storeOut, stored_iff, Bool.and_eq_true, decide_eq_true_eq]
      omega
    · simp only [eb]
      exact offset eh ex hc
    · simp only [eb, groupedQuery, Fin.getElem_fin, Vec.getElem_ofFn]
      exact (G.holds left right atEnd b eh).output hi ex hc
  · rintro ⟨pid, i, c⟩ ⟨pid', i', c'⟩ ⟨h₀, h₁, hi, hc⟩ ⟨h₀', h₁', hi', hc'⟩ s s' e
    obtain ⟨b, h, eb, eh, hr⟩ := G.place left right atEnd h₀ h₁
    obtain ⟨b', h', eb', eh', hr'⟩ := G.place left right atEnd h₀' h₁'
    simp only [eb, eb'] at s s' e
    obtain ⟨hq, hc⟩ := active s
    obtain ⟨hq', hc'⟩ := active s'
    obtain ⟨x, ex⟩ := hr _ hq
    obtain ⟨x', ex'⟩ := hr' _ hq'
    rw [offset eh ex hc, offset eh' ex' hc'] at e
    have e := hinj _ _ e
    obtain ⟨rfl, e⟩ := Sigma.mk.inj e
    simp only [heq_eq_eq, Prod.mk.injEq, Fin.mk.injEq] at e
    obtain ⟨e₂, e₃, e₄⟩ := e
    obtain ⟨e₅, e₆⟩ := Problem.row_unique (p := Forward.packed a left right atEnd b) G.BM G.maxLen
      G.numHeads h₀ h₁ h₀' h₁' hi hi' (eb.trans eb'.symm) (by rw [eh, eh', e₂])
      (by rw [ex, ex', e₃])
    simp only at e₄ e₅ e₆
    rw [e₄, e₅, e₆]
  · rintro ⟨pid, i, c⟩ ⟨h₀, h₁, hi, hc⟩ s
    obtain ⟨b, h, eb, eh, hr⟩ := G.place left right atEnd h₀ h₁
    simp only [eb] at s ⊢
    obtain ⟨hq, hc⟩ := active s
    obtain ⟨x, ex⟩ := hr _ hq
    exact ⟨_, offset eh ex hc⟩

/-- The launch fills the log-sum-exp of each sequence with that of its scores. -/
theorem Given.logSumExp (G : Given a cu_q cu_k max_q_len Q K V sc) {log2e : R} (h₂ : 0 < a.ln2)
    (hl : a.ln2 * log2e = 1) (hln : ∀ x, 0 < x → (exp (log2e * a.ln x) : R) = x)
    (hinj : ∀ x y : LseIndex q_len (num_kv_heads * group),
      lseOffset a cu_q x = lseOffset a cu_q y → x = y) :
    Fills (lseLane a max_q_len (num_kv_heads * group) n)
      (fun k => (Forward.packed a left right atEnd (Forward.sequence a k.1)).storeLse k.1 k.2)
      (lseOffset a cu_q) fun (x : LseIndex q_len (num_kv_heads * group)) v =>
        ∃ L : Option R, v = ofScore L ∧ IsLogSumExp R (L.map (log2e * ·))
          ((List.finRange (kv_len x.1)).map (Spec.score sc
            (Forward.packed a left right atEnd x.1).mask.toScoreMod (Q x.1)[x.2.1]
            (K x.1)[Spec.kvHead x.2.1] x.2.2)) := by
  have active : ∀ {pid : Int} {b : Fin n} {i : Nat},
      ((Forward.packed a left right atEnd b).storeLse pid i).active = true →
      (Forward.packed a left right atEnd b).row pid i <
        (Forward.packed a left right atEnd b).qLen := by
    intro pid b i h
    simp only [Problem.storeLse, stored_iff, decide_eq_true_eq] at h
    exact h.2
  have offset : ∀ {pid : Int} {b : Fin n} {i : Nat} {h : Fin (num_kv_heads * group)}
      {x : Fin (q_len b)}, (Forward.packed a left right atEnd b).head pid = h →
      (Forward.packed a left right atEnd b).row pid i = x →
      ((Forward.packed a left right atEnd b).storeLse pid i).offset
        = lseOffset a cu_q (⟨b, h, x⟩ : LseIndex q_len (num_kv_heads * group)) := by
    intro pid b i h x eh ex
    simp only [Problem.storeLse, Problem.lseAt, Problem.lseBase, eh, ex, lseOffset]
    simp only [Forward.packed, G.queries.firstRow, Int.natCast_add]
    omega
  refine ⟨fun ⟨b, h, x⟩ => ?_, ?_, ?_⟩
  · have hx := G.longest b
    obtain ⟨pid, i, h₀, h₁, hi, eb, eh, ex⟩ := Problem.exists_row
      (p := Forward.packed a left right atEnd b) G.BM G.maxLen G.numHeads b h
      (x := x) (by omega)
    have eb : Forward.sequence a pid = b := eb
    refine ⟨(pid, i), ⟨h₀, h₁, hi⟩, ?_, ?_, ?_⟩
    · have hq := G.qLen left right atEnd b
      have hr : (Forward.packed a left right atEnd b).rowFirst pid ≤
          (Forward.packed a left right atEnd b).row pid i := by simp only [Problem.row]; omega
      simp only [eb, Problem.storeLse, stored_iff, decide_eq_true_eq]
      omega
    · simp only [eb]
      exact offset eh ex
    · simp only [eb]
      exact (G.holds left right atEnd b eh).logSumExp h₂ hl hln hi ex
  · rintro ⟨pid, i⟩ ⟨pid', i'⟩ ⟨h₀, h₁, hi⟩ ⟨h₀', h₁', hi'⟩ s s' e
    obtain ⟨b, h, eb, eh, hr⟩ := G.place left right atEnd h₀ h₁
    obtain ⟨b', h', eb', eh', hr'⟩ := G.place left right atEnd h₀' h₁'
    simp only [eb, eb'] at s s' e
    obtain ⟨x, ex⟩ := hr _ (active s)
    obtain ⟨x', ex'⟩ := hr' _ (active s')
    rw [offset eh ex, offset eh' ex'] at e
    have e := hinj _ _ e
    obtain ⟨rfl, e⟩ := Sigma.mk.inj e
    simp only [heq_eq_eq, Prod.mk.injEq] at e
    obtain ⟨e₂, e₃⟩ := e
    obtain ⟨e₅, e₆⟩ := Problem.row_unique (p := Forward.packed a left right atEnd b) G.BM G.maxLen
      G.numHeads h₀ h₁ h₀' h₁' hi hi' (eb.trans eb'.symm) (by rw [eh, eh', e₂])
      (by rw [ex, ex', e₃])
    simp only at e₅ e₆
    rw [e₅, e₆]
  · rintro ⟨pid, i⟩ ⟨h₀, h₁, hi⟩ s
    obtain ⟨b, h, eb, eh, hr⟩ := G.place left right atEnd h₀ h₁
    simp only [eb] at s ⊢
    obtain ⟨x, ex⟩ := hr _ (active s)
    exact ⟨_, offset eh ex⟩

end Attention.Kernel.Packed
