module

public import Attention.Kernel.Sized
public import Attention.Kernel.Texts

public section

/-! # Every access of the forward kernel lies inside its tensor

About all accesses that a text makes, as the translation lists them (`Full.Accesses`, …): the load
of queries, those of keys and values in each loop, and both stores, by every lane and in every
iteration that is run. What is loaded goes through the `Access` that is listed. -/

namespace Attention.Kernel

open Spec

universe u

/-- If the access takes place, it is to an element of a tensor `[batches, heads, len, d]` with these
strides and 1 along vectors. -/
@[expose] def Access.Inside (batches heads len d : Nat) (sb sh sm : Int) (x : Access) : Prop :=
  x.active = true → ∃ (b : Fin batches) (h : Fin heads) (m : Fin len) (n : Fin d),
    x.offset = b * sb + h * sh + m * sm + n

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
  have := S.qLen
  refine ⟨⟨(p.batch pid).toNat, by omega⟩, ⟨(p.head pid).toNat, by omega⟩,
    ⟨(p.row pid i).toNat, by omega⟩, ⟨n, h₂⟩, ?_⟩
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
  have := S.kvLen
  refine ⟨⟨(p.batch pid).toNat, by omega⟩, ⟨(p.kvHead pid).toNat, by omega⟩,
    ⟨(p.keyAt t j).toNat, by omega⟩, ⟨n, h₃⟩, ?_⟩
  simp only [ho, Int.toNat_of_nonneg, hb.1, hh.1, h₁]

variable (S : p.Sized batches num_kv_heads group q_len kv_len d d_v)
variable (hp : p.Program batches (num_kv_heads * group) q_len pid)

include S hp

private theorem Sized.query (i n : Nat) :
    Access.Inside batches (num_kv_heads * group) q_len d p.qb p.qh p.qm
      ⟨decide (p.row pid i < p.qLen) && decide ((n : Int) < p.dim), p.queryAt pid i n⟩ := by
  refine S.row hp (i := i) (n := n) (fun h => ?_)
    (by simp only [queryAt, queryBase, S.packed]; omega)
  simp only [Bool.and_eq_true, decide_eq_true_eq] at h
  have := S.dim
  exact ⟨h.1, by omega⟩

private theorem Sized.out (i c : Nat) :
    Access.Inside batches (num_kv_heads * group) q_len d_v p.ob p.oh p.om
      ⟨decide (p.row pid i < p.qLen) && decide ((c : Int) < p.valueDim), p.outAt pid i c⟩ := by
  refine S.row hp (i := i) (n := c) (fun h => ?_) (by simp only [outAt, outBase, S.packed]; omega)
  simp only [Bool.and_eq_true, decide_eq_true_eq] at h
  have := S.valueDim
  exact ⟨h.1, by omega⟩

private theorem Sized.lse (i : Nat) :
    Access.Inside batches (num_kv_heads * group) q_len 1 p.lb p.lh 1
      ⟨decide (p.row pid i < p.qLen), p.lseAt pid i⟩ :=
  S.row hp (i := i) (n := 0) (fun h => ⟨of_decide_eq_true h, by omega⟩)
    (by simp only [lseAt, lseBase, S.packed]; omega)

private theorem Sized.wholeKeys (he : p.even = true) (hv : p.evenValue = true) {t : Int}
    (h₁ : p.wholeFirst pid ≤ t) (h₂ : t < p.wholeStop pid) :
    (∀ n < p.BD, ∀ j < p.BN, Access.Inside batches num_kv_heads kv_len d p.kb p.kh p.kn
      ⟨true, p.keyPtr pid t n j⟩) ∧
    (∀ j < p.BN, ∀ c < p.BV, Access.Inside batches num_kv_heads kv_len d_v p.vb p.vh p.vn
      ⟨true, p.valuePtr pid t j c⟩) := by
  have hd := S.even he
  have hd_v := S.evenValue hv
  have hk := fun j (hj : j < p.BN) =>
    p.whole_key pid S.BN (by have := S.kvLen; omega) h₁ h₂ (j := j) hj
  refine ⟨fun n hn j hj => S.key hp (t := t) (j := j) (n := n) (fun _ => ?_) ?_,
    fun j hj c hc => S.key hp (t := t) (j := j) (n := c) (fun _ => ?_) ?_⟩
  · exact ⟨(hk j hj).1, (hk j hj).2, by omega⟩
  · simp only [keyPtr, S.packed, keyAt, Int.add_mul]; omega
  · exact ⟨(hk j hj).1, (hk j hj).2, by omega⟩
  · simp only [valuePtr, S.packed, keyAt, Int.add_mul]; omega

private theorem Sized.checkedKeys (t : Int) :
    (∀ n j : Nat, Access.Inside batches num_kv_heads kv_len d p.kb p.kh p.kn
      ⟨decide ((n : Int) < p.dim) && p.inside pid t j, p.keyPtr pid t n j⟩) ∧
    (∀ j c : Nat, Access.Inside batches num_kv_heads kv_len d_v p.vb p.vh p.vn
      ⟨decide ((c : Int) < p.valueDim) && p.inside pid t j, p.valuePtr pid t j c⟩) := by
  have h₁ := S.dim
  have h₂ := S.valueDim
  refine ⟨fun n j => S.key hp (t := t) (j := j) (n := n) (fun h => ?_) ?_,
    fun j c => S.key hp (t := t) (j := j) (n := c) (fun h => ?_) ?_⟩
  · rw [Bool.and_eq_true, decide_eq_true_eq] at h
    exact ⟨(p.inside_key pid h.2).1, (p.inside_key pid h.2).2, by omega⟩
  · simp only [keyPtr, S.packed, keyAt, Int.add_mul]; omega
  · rw [Bool.and_eq_true, decide_eq_true_eq] at h
    exact ⟨(p.inside_key pid h.2).1, (p.inside_key pid h.2).2, by omega⟩
  · simp only [valuePtr, S.packed, keyAt, Int.add_mul]; omega

end Problem

variable {R : Type u} [OrderedField R] [Exp R R]
variable {d d_v q_len kv_len batches num_kv_heads group : Nat} {pid : Int}

/-- **Every access lies inside its tensor** in the text without a window: whatever a program of a
launch loads or stores is an element of the tensor behind the pointer. -/
theorem Full.accesses {a : Full.Args R}
    (S : (Full.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Full.Accesses a pid {
      query_ptr := Access.Inside batches (num_kv_heads * group) q_len d
        a.stride_qb a.stride_qh a.stride_qm
      key_ptr := Access.Inside batches num_kv_heads kv_len d a.stride_kb a.stride_kh a.stride_kn
      value_ptr := Access.Inside batches num_kv_heads kv_len d_v a.stride_vb a.stride_vh a.stride_vn
      out_ptr := Access.Inside batches (num_kv_heads * group) q_len d_v
        a.stride_ob a.stride_oh a.stride_om
      lse_ptr := Access.Inside batches (num_kv_heads * group) q_len 1 a.stride_lb a.stride_lh 1
    } := by
  have first : (Full.problem a).wholeFirst pid = Full.loop1.firstTile a pid := rfl
  have stop : (Full.problem a).wholeStop pid = Full.loop1.stopTile a pid := rfl
  refine ⟨fun i _ n _ => S.query hp i n,
    fun t h h' => S.wholeKeys hp rfl rfl (by omega) (by omega), fun t _ _ => ?_,
    fun i _ c _ => S.out hp i c, fun i _ => S.lse hp i⟩
  obtain ⟨key, value⟩ := S.checkedKeys hp t
  exact ⟨fun n _ j _ => key n j, fun j _ c _ => value j c⟩

/-- **Every access lies inside its tensor** in the text with a right edge: whatever a program of a
launch loads or stores is an element of the tensor behind the pointer. -/
theorem Causal.accesses {a : Causal.Args R}
    (S : (Causal.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Causal.Accesses a pid {
      query_ptr := Access.Inside batches (num_kv_heads * group) q_len d
        a.stride_qb a.stride_qh a.stride_qm
      key_ptr := Access.Inside batches num_kv_heads kv_len d a.stride_kb a.stride_kh a.stride_kn
      value_ptr := Access.Inside batches num_kv_heads kv_len d_v a.stride_vb a.stride_vh a.stride_vn
      out_ptr := Access.Inside batches (num_kv_heads * group) q_len d_v
        a.stride_ob a.stride_oh a.stride_om
      lse_ptr := Access.Inside batches (num_kv_heads * group) q_len 1 a.stride_lb a.stride_lh 1
    } := by
  have first : (Causal.problem a).wholeFirst pid = Causal.loop1.firstTile a pid := rfl
  have stop : (Causal.problem a).wholeStop pid = Causal.loop1.stopTile a pid := rfl
  refine ⟨fun i _ n _ => S.query hp i n,
    fun t h h' => S.wholeKeys hp rfl rfl (by omega) (by omega), fun t _ _ => ?_,
    fun i _ c _ => S.out hp i c, fun i _ => S.lse hp i⟩
  obtain ⟨key, value⟩ := S.checkedKeys hp t
  exact ⟨fun n _ j _ => key n j, fun j _ c _ => value j c⟩

/-- **Every access lies inside its tensor** in the text with both edges: whatever a program of a
launch loads or stores is an element of the tensor behind the pointer. -/
theorem Window.accesses {a : Window.Args R}
    (S : (Window.problem a).Sized batches num_kv_heads group q_len kv_len d d_v)
    (hp : 0 ≤ pid ∧
      pid < (numTiles q_len a.BLOCK_M * (batches * (num_kv_heads * group)) : Nat)) :
    Window.Accesses a pid {
      query_ptr := Access.Inside batches (num_kv_heads * group) q_len d
        a.stride_qb a.stride_qh a.stride_qm
      key_ptr := Access.Inside batches num_kv_heads kv_len d a.stride_kb a.stride_kh a.stride_kn
      value_ptr := Access.Inside batches num_kv_heads kv_len d_v a.stride_vb a.stride_vh a.stride_vn
      out_ptr := Access.Inside batches (num_kv_heads * group) q_len d_v
        a.stride_ob a.stride_oh a.stride_om
      lse_ptr := Access.Inside batches (num_kv_heads * group) q_len 1 a.stride_lb a.stride_lh 1
    } := by
  refine ⟨fun i _ n _ => S.query hp i n, fun t _ _ => ?_,
    fun t h h' => S.wholeKeys hp rfl rfl h h', fun t _ _ => ?_,
    fun i _ c _ => S.out hp i c, fun i _ => S.lse hp i⟩
  all_goals
    obtain ⟨key, value⟩ := S.checkedKeys hp t
    exact ⟨fun n _ j _ => key n j, fun j _ c _ => value j c⟩

end Attention.Kernel
