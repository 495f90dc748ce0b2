module

meta import Lean.Elab.Tactic.ElabTerm  -- For speed: see `Attention.Kernel.Unfolding`.
public import Attention.Kernel.PackedSized
public import Attention.Kernel.Sized
public import Attention.Kernel.TextConditions

public section

/-! # Every access of the forward kernel lies inside its tensor

About all accesses that a text makes, as the translation lists them (`Full.Accesses`, …): the load
of queries, those of keys and values in each loop, and both stores, by every lane and in every
iteration that is run; of packed sequences the loads of where they begin too. What is loaded goes
through the `Access` that is listed. -/

namespace Attention.Kernel

open Spec

universe u

/-- If the access takes place, it is to an element of a tensor `[batches, heads, len, d]` with these
strides and 1 along vectors. -/
@[expose] def Access.Inside (batches heads len d : Nat) (sb sh sm : Int) (x : Access) : Prop :=
  x.active = true → ∃ (b : Fin batches) (h : Fin heads) (m : Fin len) (n : Fin d),
    x.offset = b * sb + h * sh + m * sm + n

/-- If the access takes place, it is to one of the rows from `first` to `stop` − 1 of a tensor
`[heads, len, d]` with these strides and 1 along vectors. -/
@[expose] def Access.InRows (heads len d : Nat) (first stop sh sm : Int) (x : Access) : Prop :=
  x.active = true → ∃ (h : Fin heads) (m : Fin len) (n : Fin d), first ≤ m ∧ m < stop ∧
    x.offset = h * sh + m * sm + n

/-- The places that a launch on dense tensors of these sizes may access: their elements, and by the
pointers that are for packed sequences nothing. -/
@[expose] def Forward.tensors {R : Type u} (a : Forward.Args R)
    (batches num_kv_heads group q_len kv_len d d_v : Nat) : Forward.Pointers (Access → Prop) where
  query_ptr := Access.Inside batches (num_kv_heads * group) q_len d
    a.stride_qb a.stride_qh a.stride_qm
  key_ptr := Access.Inside batches num_kv_heads kv_len d a.stride_kb a.stride_kh a.stride_kn
  value_ptr := Access.Inside batches num_kv_heads kv_len d_v a.stride_vb a.stride_vh a.stride_vn
  cu_q_ptr _ := False
  cu_k_ptr _ := False
  out_ptr := Access.Inside batches (num_kv_heads * group) q_len d_v
    a.stride_ob a.stride_oh a.stride_om
  lse_ptr := Access.Inside batches (num_kv_heads * group) q_len 1 a.stride_lb a.stride_lh 1

/-- The places that program `pid` of a launch on packed tensors of these sizes may access: the rows
of its own sequence, and the n + 1 numbers that say where sequences begin. -/
@[expose] def Packed.tensors {R : Type u} (a : Forward.Args R) (pid : Int)
    (n num_kv_heads group q_len kv_len d d_v : Nat) : Forward.Pointers (Access → Prop) :=
  let b := Forward.sequence a pid
  let q := Forward.firstRow a.cu_q_ptr a.stride_xb q_len b
  let q' := Forward.stopRow a.cu_q_ptr a.stride_xb q_len b
  let k := Forward.firstRow a.cu_k_ptr a.stride_yb kv_len b
  let k' := Forward.stopRow a.cu_k_ptr a.stride_yb kv_len b
  { query_ptr := Access.InRows (num_kv_heads * group) q_len d q q' a.stride_qh a.stride_qm
    key_ptr := Access.InRows num_kv_heads kv_len d k k' a.stride_kh a.stride_kn
    value_ptr := Access.InRows num_kv_heads kv_len d_v k k' a.stride_vh a.stride_vn
    cu_q_ptr := Access.Inside 1 1 (n + 1) 1 0 0 a.stride_xb
    cu_k_ptr := Access.Inside 1 1 (n + 1) 1 0 0 a.stride_yb
    out_ptr := Access.InRows (num_kv_heads * group) q_len d_v q q' a.stride_oh a.stride_om
    lse_ptr := Access.InRows (num_kv_heads * group) q_len 1 q q' a.stride_lh 1 }

private theorem digit_lt {a A n i : Nat} (ha : a < A) (hi : i < n) : a * n + i < A * n := by
  have h : (a + 1) * n ≤ A * n := Nat.mul_le_mul_right n ha
  rw [Nat.succ_mul] at h
  omega

/-- Inside a contiguous tensor means between 0 and the number of its elements. -/
theorem Access.Inside.contiguous {batches heads len d : Nat} {x : Access}
    (hx : x.Inside batches heads len d (heads * len * d : Nat) (len * d : Nat) d)
    (ha : x.active = true) : 0 ≤ x.offset ∧ x.offset < (batches * heads * len * d : Nat) := by
  obtain ⟨b, h, m, n, e⟩ := hx ha
  have e' : x.offset = (((b.val * heads + h) * len + m) * d + n : Nat) := by
    rw [e]
    simp only [Int.natCast_mul, Int.natCast_add]
    grind
  have := digit_lt (digit_lt (digit_lt b.isLt h.isLt) m.isLt) n.isLt
  omega

namespace Problem

variable {R : Type u} {d d_v q_len kv_len batches num_kv_heads group : Nat}
variable {p : Problem R} {pid : Int}

/-- An access of a row of queries or of results. -/
private theorem Sized.row (S : p.Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) {i n width : Nat} {active : Bool}
    {sb sh sm offset : Int} (ha : active = true → p.row pid i < p.qLen ∧ n < width)
    (ho : offset = p.batch pid * sb + p.head pid * sh + p.row pid i * sm + n) :
    Access.Inside batches (num_kv_heads * group) q_len width sb sh sm ⟨active, offset⟩ := by
  intro h
  obtain ⟨_, hb, hh, _⟩ := S.place hp
  obtain ⟨h₁, h₂⟩ := ha h
  have hr := S.row_nonneg hp i
  refine ⟨⟨(p.batch pid).toNat, (Int.toNat_lt hb.1).mpr hb.2⟩,
    ⟨(p.head pid).toNat, (Int.toNat_lt hh.1).mpr hh.2⟩,
    ⟨(p.row pid i).toNat, (Int.toNat_lt hr).mpr (S.qLen ▸ h₁)⟩, ⟨n, h₂⟩, ?_⟩
  simp only [ho, Int.toNat_of_nonneg, hb.1, hh.1, hr]

/-- An access of a key or a value. -/
private theorem Sized.key (S : p.Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : p.Program batches (num_kv_heads * group) q_len pid) {j n width : Nat} {t : Int}
    {active : Bool} {sb sh sn offset : Int}
    (ha : active = true → 0 ≤ p.keyAt t j ∧ p.keyAt t j < p.kvLen ∧ n < width)
    (ho : offset = p.batch pid * sb + p.kvHead pid * sh + p.keyAt t j * sn + n) :
    Access.Inside batches num_kv_heads kv_len width sb sh sn ⟨active, offset⟩ := by
  intro h
  obtain ⟨_, hb, _, hh⟩ := S.place hp
  obtain ⟨h₁, h₂, h₃⟩ := ha h
  refine ⟨⟨(p.batch pid).toNat, (Int.toNat_lt hb.1).mpr hb.2⟩,
    ⟨(p.kvHead pid).toNat, (Int.toNat_lt hh.1).mpr hh.2⟩,
    ⟨(p.keyAt t j).toNat, (Int.toNat_lt h₁).mpr (S.kvLen ▸ h₂)⟩, ⟨n, h₃⟩, ?_⟩
  simp only [ho, Int.toNat_of_nonneg, hb.1, hh.1, h₁]

/-- All accesses after the early return, from what each needs. -/
private theorem all_accesses (hb : 0 < p.BN) (hkv : 0 ≤ p.kvLen) (hd : p.dim = d)
    (hd_v : p.valueDim = d_v) (even : p.even = true → p.BD = d)
    (evenValue : p.evenValue = true → p.BV = d_v) {P : Forward.Pointers (Access → Prop)}
    (query : ∀ {i n active}, (active = true → p.row pid i < p.qLen ∧ n < d) →
      P.query_ptr ⟨active, p.queryAt pid i n⟩)
    (key : ∀ {t j n active},
      (active = true → 0 ≤ p.keyAt t j ∧ p.keyAt t j < p.kvLen ∧ n < d) →
      P.key_ptr ⟨active, p.keyPtr pid t n j⟩)
    (value : ∀ {t j c active},
      (active = true → 0 ≤ p.keyAt t j ∧ p.keyAt t j < p.kvLen ∧ c < d_v) →
      P.value_ptr ⟨active, p.valuePtr pid t j c⟩)
    (out : ∀ {i c active}, (active = true → p.row pid i < p.qLen ∧ c < d_v) →
      P.out_ptr ⟨active, p.outAt pid i c⟩)
    (lse : ∀ {i active}, (active = true → p.row pid i < p.qLen) →
      P.lse_ptr ⟨active, p.lseAt pid i⟩) : ∀ Q ∈ p.accesses pid P, Q := by
  have both : ∀ {i n width : Nat} {size : Int}, size = width →
      (decide (p.row pid i < p.qLen) && decide ((n : Int) < size)) = true →
      p.row pid i < p.qLen ∧ n < width := fun e h => by
    simp only [Bool.and_eq_true, decide_eq_true_eq] at h
    exact ⟨h.1, by omega⟩
  have allowed : ∀ {x : Bool}, p.stored pid x = true → x = true := fun h => by
    unfold stored at h
    split at h
    · exact h
    · exact (Bool.and_eq_true_iff.mp h).2
  have column : ∀ {full : Bool} {n width tile : Nat} {size : Int}, size = width → n < tile →
      (full = true → tile = width) → (match full with
        | true => true
        | false => decide ((n : Int) < size)) = true → n < width :=
    fun {full _ _ _ _} e hn hw h => by
      cases full with
      | true => have := hw rfl; omega
      | false => have := of_decide_eq_true h; omega
  have inside : ∀ {t : Int} {j n width : Nat} {size : Int}, size = width →
      (decide ((n : Int) < size) && p.inside pid t j) = true →
      0 ≤ p.keyAt t j ∧ p.keyAt t j < p.kvLen ∧ n < width := fun e h => by
    rw [Bool.and_eq_true, decide_eq_true_eq] at h
    exact ⟨(p.inside_key pid h.2).1, (p.inside_key pid h.2).2, by omega⟩
  refine List.forall_mem_cons.mpr ⟨fun i _ n _ => query fun h => both hd h,
    List.forall_mem_append.mpr ⟨all_loops hb (fun t h₁ h₂ => ?_) fun t _ _ => ?_, ?_⟩⟩
  · have hk := fun j (hj : j < p.BN) => p.whole_key pid hb hkv h₁ h₂ hj
    exact ⟨fun n hn j hj => key fun h => ⟨(hk j hj).1, (hk j hj).2, column hd hn even h⟩,
      fun j hj c hc => value fun h => ⟨(hk j hj).1, (hk j hj).2, column hd_v hc evenValue h⟩⟩
  · exact ⟨fun n _ j _ => key fun h => inside hd h, fun j _ c _ => value fun h => inside hd_v h⟩
  · exact all_iff.mp (show _ ∧ _ from ⟨fun i _ c _ => out fun h => both hd_v (allowed h),
      fun i _ => lse fun h => of_decide_eq_true (allowed h)⟩)

/-- Those of a launch on dense tensors. -/
private theorem Sized.accesses (S : p.Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : p.Program batches (num_kv_heads * group) q_len pid)
    {P : Forward.Pointers (Access → Prop)}
    (query : P.query_ptr = Access.Inside batches (num_kv_heads * group) q_len d p.qb p.qh p.qm)
    (key : P.key_ptr = Access.Inside batches num_kv_heads kv_len d p.kb p.kh p.kn)
    (value : P.value_ptr = Access.Inside batches num_kv_heads kv_len d_v p.vb p.vh p.vn)
    (out : P.out_ptr = Access.Inside batches (num_kv_heads * group) q_len d_v p.ob p.oh p.om)
    (lse : P.lse_ptr = Access.Inside batches (num_kv_heads * group) q_len 1 p.lb p.lh 1) :
    All (p.accesses pid P) := by
  refine all_iff.mpr (all_accesses S.BN (S.kvLen ▸ Int.natCast_nonneg _) S.dim S.valueDim S.even
    S.evenValue (fun h => ?_) (fun h => ?_) (fun h => ?_) (fun h => ?_) fun h => ?_)
  · rw [query]
    exact S.row hp h (by simp only [queryAt, queryBase, S.packed]; omega)
  · rw [key]
    exact S.key hp h (by simp only [keyPtr, S.packed, keyAt, Int.add_mul]; omega)
  · rw [value]
    exact S.key hp h (by simp only [valuePtr, S.packed, keyAt, Int.add_mul]; omega)
  · rw [out]
    exact S.row hp h (by simp only [outAt, outBase, S.packed]; omega)
  · rw [lse]
    exact S.row hp (n := 0) (fun ha => ⟨h ha, by omega⟩)
      (by simp only [lseAt, lseBase, S.packed]; omega)

end Problem

namespace Packed

variable {R : Type u} {n num_kv_heads group max_q_len q_len kv_len d d_v : Nat}
variable {a : Forward.Args R} {pid : Int} {left right : Option Int} {atEnd : Bool}

/-- An access of row r of a sequence that begins with row `first`. -/
private theorem in_rows {heads len width m : Nat} {h first stop r sh sm : Int} {active : Bool}
    {offset : Int} (hh : 0 ≤ h ∧ h < heads)
    (hs : 0 ≤ first ∧ first ≤ stop ∧ stop ≤ len)
    (ha : active = true → (0 ≤ r ∧ r < stop - first) ∧ m < width)
    (ho : offset = h * sh + (first + r) * sm + m) :
    Access.InRows heads len width first stop sh sm ⟨active, offset⟩ := by
  intro x
  obtain ⟨h₁, h₂⟩ := ha x
  have hr : 0 ≤ first + r := Int.add_nonneg hs.1 h₁.1
  have hr' : first + r < stop := by have := h₁.2; clear ho ha hs hh; omega
  have e := Int.toNat_of_nonneg hr
  refine ⟨⟨h.toNat, (Int.toNat_lt hh.1).mpr hh.2⟩,
    ⟨(first + r).toNat, (Int.toNat_lt hr).mpr (Int.lt_of_lt_of_le hr' hs.2.2)⟩, ⟨m, h₂⟩, ?_, ?_, ?_⟩
  · exact e.symm ▸ Int.le_add_of_nonneg_right h₁.1
  · exact e.symm ▸ hr'
  · simp only [ho, Int.toNat_of_nonneg hh.1, e]

private theorem in_numbers {n : Nat} {b s offset : Int} (h : 0 ≤ b ∧ b < n + 1)
    (ho : offset = 0 + b * s) : Access.Inside 1 1 (n + 1) 1 0 0 s ⟨true, offset⟩ := fun _ =>
  ⟨0, 0, ⟨b.toNat, by omega⟩, 0, by
    simp only [ho, Int.toNat_of_nonneg h.1, Int.mul_zero, Int.zero_add, Fin.val_zero,
      Int.natCast_zero, Int.add_zero]⟩

private theorem regroup (a b c d e : Int) : a + (b + c) + (d + e) = a + (b + (c + e)) + d := by
  omega

private theorem regroup' (a b c d e : Int) : a + (b + c) + (e + d) = a + (b + (c + e)) + d := by
  omega

/-- Those of a launch on packed tensors. -/
private theorem Sized.accesses (S : Sized a n num_kv_heads group max_q_len q_len kv_len d d_v)
    (h₀ : 0 ≤ pid)
    (h₁ : pid < (numTiles max_q_len a.BLOCK_M * (n * (num_kv_heads * group)) : Nat)) :
    All (Problem.sequenceAccesses (Forward.sequence a pid) a.stride_xb a.stride_yb
        (tensors a pid n num_kv_heads group q_len kv_len d d_v) ++
      ((Forward.inSequence a left right atEnd pid).accesses pid
        (tensors a pid n num_kv_heads group q_len kv_len d d_v)).map
          ((Forward.inSequence a left right atEnd pid).live pid)) := by
  obtain ⟨hb, hh, hk, hr⟩ := S.place h₀ h₁ left right atEnd
  have rq := rows_inside (total := q_len) a.cu_q_ptr a.stride_xb (Forward.sequence a pid)
  have rk := rows_inside (total := kv_len) a.cu_k_ptr a.stride_yb (Forward.sequence a pid)
  have eq : (Forward.inSequence a left right atEnd pid).qLen =
      Forward.stopRow a.cu_q_ptr a.stride_xb q_len (Forward.sequence a pid) -
        Forward.firstRow a.cu_q_ptr a.stride_xb q_len (Forward.sequence a pid) := by
    rw [← S.qLen]; rfl
  have ek : (Forward.inSequence a left right atEnd pid).kvLen =
      Forward.stopRow a.cu_k_ptr a.stride_yb kv_len (Forward.sequence a pid) -
        Forward.firstRow a.cu_k_ptr a.stride_yb kv_len (Forward.sequence a pid) := by
    rw [← S.kvLen]; rfl
  have first : (Forward.inSequence a left right atEnd pid).packed =
      some (Forward.firstRow a.cu_q_ptr a.stride_xb q_len (Forward.sequence a pid),
        Forward.firstRow a.cu_k_ptr a.stride_yb kv_len (Forward.sequence a pid)) := by
    rw [← S.qLen, ← S.kvLen]; rfl
  have b₁ : 0 ≤ Forward.sequence a pid ∧ Forward.sequence a pid < n + 1 :=
    ⟨hb.1, Int.lt_trans hb.2 (Int.lt_succ _)⟩
  have b₂ : 0 ≤ Forward.sequence a pid + 1 ∧ Forward.sequence a pid + 1 < n + 1 :=
    ⟨Int.add_nonneg hb.1 (by decide), Int.add_lt_add_right hb.2 1⟩
  refine all_iff.mpr (List.forall_mem_append.mpr ⟨all_iff.mp (show _ ∧ _ ∧ _ ∧ _ from
    ⟨in_numbers b₁ rfl, in_numbers b₂ rfl, in_numbers b₁ rfl, in_numbers b₂ rfl⟩),
      Problem.all_live fun _ => ?_⟩)
  refine Problem.all_accesses S.BN (ek ▸ Int.sub_nonneg_of_le rk.2.1) S.dim S.valueDim
    (fun _ => S.even) (fun _ => S.evenValue) (fun {i m _} h => ?_) (fun {t j m _} h => ?_)
    (fun {t j m _} h => ?_) (fun {i m _} h => ?_) fun {i _} h => ?_
  · refine in_rows hh rq (fun x => ⟨⟨hr i, eq ▸ (h x).1⟩, (h x).2⟩) ?_
    simp only [Problem.queryAt, Problem.queryBase, first, Int.add_mul, Int.zero_add]
    exact congrArg (· + _) (Int.add_assoc _ _ _)
  · refine in_rows hk rk (fun x => ⟨⟨(h x).1, ek ▸ (h x).2.1⟩, (h x).2.2⟩) ?_
    simp only [Problem.keyPtr, first, Problem.keyAt, Int.add_mul, Int.zero_add]
    exact regroup _ _ _ _ _
  · refine in_rows hk rk (fun x => ⟨⟨(h x).1, ek ▸ (h x).2.1⟩, (h x).2.2⟩) ?_
    simp only [Problem.valuePtr, first, Problem.keyAt, Int.add_mul, Int.zero_add]
    exact regroup' _ _ _ _ _
  · refine in_rows hh rq (fun x => ⟨⟨hr i, eq ▸ (h x).1⟩, (h x).2⟩) ?_
    simp only [Problem.outAt, Problem.outBase, first, Int.add_mul, Int.zero_add]
    exact congrArg (· + _) (Int.add_assoc _ _ _)
  · refine in_rows (m := 0) hh rq (fun x => ⟨⟨hr i, eq ▸ h x⟩, Nat.one_pos⟩) ?_
    simp only [Problem.lseAt, Problem.lseBase, first, Int.zero_add]
    show _ * a.stride_lh + _ + _ = _
    omega

end Packed

/-! ## The texts -/

variable {R : Type u} [OrderedField R] [Exp R R]
variable {d d_v q_len kv_len batches num_kv_heads group : Nat} {pid : Int}

/-- **Every access lies inside its tensor** in the text without a window: whatever a program of a
launch loads or stores is an element of the tensor behind the pointer. -/
theorem Full.accesses {a : Full.Args R}
    (S : (Full.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Full.Accesses a pid (Forward.tensors a batches num_kv_heads group q_len kv_len d d_v) :=
  (congrFun (Prod.mk.inj (Full.conditions_eq a pid)).1 _).mpr (S.accesses hp rfl rfl rfl rfl rfl)

/-- **Every access lies inside its tensor** in the text with a right edge: whatever a program of a
launch loads or stores is an element of the tensor behind the pointer. -/
theorem Causal.accesses {a : Causal.Args R}
    (S : (Causal.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Causal.Accesses a pid (Forward.tensors a batches num_kv_heads group q_len kv_len d d_v) :=
  (congrFun (Prod.mk.inj (Causal.conditions_eq a pid)).1 _).mpr (S.accesses hp rfl rfl rfl rfl rfl)

/-- **Every access lies inside its tensor** in the text with a left edge: whatever a program of a
launch loads or stores is an element of the tensor behind the pointer. -/
theorem Left.accesses {a : Left.Args R}
    (S : (Left.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Left.Accesses a pid (Forward.tensors a batches num_kv_heads group q_len kv_len d d_v) :=
  (congrFun (Prod.mk.inj (Left.conditions_eq a pid)).1 _).mpr (S.accesses hp rfl rfl rfl rfl rfl)

/-- **Every access lies inside its tensor** in the text with both edges: whatever a program of a
launch loads or stores is an element of the tensor behind the pointer. -/
theorem Window.accesses {a : Window.Args R}
    (S : (Window.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Window.Accesses a pid (Forward.tensors a batches num_kv_heads group q_len kv_len d d_v) :=
  (congrFun (Prod.mk.inj (Window.conditions_eq a pid)).1 _).mpr (S.accesses hp rfl rfl rfl rfl rfl)

/-- **Every access lies inside its tensor** in the texts for sizes that do not fill their tiles:
whatever a program of a launch loads or stores is an element of the tensor behind the pointer. -/
theorem Padded.accesses {a : Forward.Args R} {e : Forward.Edges} (he : e.Given a)
    (S : (problem a e).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Accesses a pid (Forward.tensors a batches num_kv_heads group q_len kv_len d d_v) e :=
  (congrFun (Prod.mk.inj (conditions_eq he pid)).1 _).mpr (S.accesses hp rfl rfl rfl rfl rfl)

/-- **Every access lies within the program's own sequence** in the texts for packed sequences:
whatever a program of a launch loads or stores is an element, in one of the sequence's rows, of the
tensor behind the pointer, or one of the numbers that say where sequences begin. Of these numbers
nothing is supposed: a sequence's rows are the rows of the tensor from one of them to the next
(`Forward.firstRow`, `Forward.stopRow`), if these are in order (`Begins.firstRow`,
`Begins.stopRow`), and none outside of the tensor in any case (`Packed.rows_inside`). -/
theorem Packed.accesses {n max_q_len : Nat} {a : Forward.Args R} {e : Forward.Edges}
    (he : e.Given a) (S : Sized a n num_kv_heads group max_q_len q_len kv_len d d_v)
    (alignment : Alignment) (hp : 0 ≤ pid ∧
      pid < (numTiles max_q_len a.BLOCK_M * (n * (num_kv_heads * group)) : Nat)) :
    Accesses a pid (tensors a pid n num_kv_heads group q_len kv_len d d_v) alignment e :=
  (congrFun (Prod.mk.inj (conditions_eq he alignment pid)).1 _).mpr (S.accesses hp.1 hp.2)

end Attention.Kernel
