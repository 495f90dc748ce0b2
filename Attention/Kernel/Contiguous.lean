module

public import Attention.Kernel.PackedLaunch

public section

/-! # Contiguous tensors satisfy the hypotheses -/

namespace Attention.Kernel.Problem

open Spec Flt

universe u

variable {R : Type u} {batches heads q_len d : Nat}

private theorem digits_inj {a a' : Int} {n : Nat} {i i' : Fin n} (h : a * n + i = a' * n + i') :
    a = a' ∧ i = i' := by
  have hn : 0 < (n : Int) := by have := i.isLt; omega
  have e : ∀ (a : Int) (i : Fin n), (a * n + i) / n = a ∧ (a * n + i) % n = i := fun a i => by
    rw [Int.mul_comm, Int.mul_add_ediv_left _ _ (by omega),
      Int.ediv_eq_zero_of_lt (by omega) (by omega), Int.mul_add_emod_self_left,
      Int.emod_eq_of_lt (by omega) (by omega)]
    omega
  have h₁ := e a i
  have h₂ := e a' i'
  rw [h] at h₁
  exact ⟨by omega, by omega⟩

/-- The offset of an element of a contiguous tensor of these sizes. -/
@[expose] def contiguous (x : OutIndex batches heads q_len d) : Int :=
  x.1 * (heads * q_len * d : Nat) + x.2.1 * (q_len * d : Nat) + x.2.2.1 * d + x.2.2.2

theorem contiguous_inj {x y : OutIndex batches heads q_len d} (hxy : contiguous x = contiguous y) :
    x = y := by
  obtain ⟨b, h, i, c⟩ := x
  obtain ⟨b', h', i', c'⟩ := y
  have e : ∀ (b : Fin batches) (h : Fin heads) (i : Fin q_len) (c : Fin d),
      contiguous (b, h, i, c) = (((b : Int) * heads + h) * q_len + i) * d + c := by
    intro b h i c
    simp only [contiguous, Int.natCast_mul, Int.add_mul, Int.mul_assoc]
  rw [e, e] at hxy
  obtain ⟨h₁, rfl⟩ := digits_inj hxy
  obtain ⟨h₂, rfl⟩ := digits_inj h₁
  obtain ⟨h₃, rfl⟩ := digits_inj h₂
  rw [show b = b' by omega]

/-- No two elements of a contiguous output share a place. -/
theorem outOffset_inj {p : Problem R} (hb : p.ob = (heads * q_len * d : Nat))
    (hh : p.oh = (q_len * d : Nat)) (hm : p.om = d) (x y : OutIndex batches heads q_len d)
    (h : p.outOffset x = p.outOffset y) : x = y := by
  refine contiguous_inj ?_
  simpa only [outOffset, hb, hh, hm] using h

/-- No two elements of a contiguous log-sum-exp share a place. -/
theorem lseOffset_inj {p : Problem R} (hb : p.lb = (heads * q_len : Nat)) (hh : p.lh = q_len)
    (x y : LseIndex batches heads q_len) (h : p.lseOffset x = p.lseOffset y) : x = y := by
  obtain ⟨b, h₁, i⟩ := x
  obtain ⟨b', h₁', i'⟩ := y
  have e : ∀ (b : Fin batches) (h : Fin heads) (i : Fin q_len),
      p.lseOffset (b, h, i) = ((b : Int) * heads + h) * q_len + i := by
    intro b h i
    simp only [lseOffset, hb, hh, Int.natCast_mul, Int.add_mul, Int.mul_assoc]
  rw [e, e] at h
  obtain ⟨h₂, rfl⟩ := digits_inj h
  obtain ⟨h₃, rfl⟩ := digits_inj h₂
  rw [show b = b' by omega]

open Classical in
/-- A memory in which a contiguous tensor lies, and nothing else. -/
@[expose] noncomputable def memory (T : OutIndex batches heads q_len d → R) : Mem (Flt R) :=
  fun o => if h : ∃ x, contiguous x = o then num (T h.choose) else undef

theorem memory_at (T : OutIndex batches heads q_len d → R) (x : OutIndex batches heads q_len d) :
    memory T (contiguous x) = num (T x) := by
  have h : ∃ y : OutIndex batches heads q_len d, contiguous y = contiguous x := ⟨x, rfl⟩
  rw [memory, dif_pos h, contiguous_inj h.choose_spec]

variable [OrderedField R] {d_v kv_len num_kv_heads group : Nat}

/-- A launch on contiguous tensors that are given as they are satisfies the hypotheses. -/
theorem given_contiguous {p : Problem R}
    {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
    {K : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches}
    {V : Vector (Vector (Matrix R kv_len d_v) num_kv_heads) batches} {sc : R} (hBM : 0 < p.BM)
    (hBN : 0 < p.BN) (hBD : d ≤ p.BD) (he : p.even = true → p.BD = d) (hBV : d_v ≤ p.BV)
    (hH : p.heads = (num_kv_heads * group : Nat)) (hg : p.group = group) (hd : p.dim = d)
    (hv : p.valueDim = d_v) (hp : p.packed = none) (ht : p.tilesLen = q_len) (hq : p.qLen = q_len)
    (hkv : p.kvLen = kv_len) (hs : p.scale = num sc) (h₀ : 0 ≤ sc)
    (hqb : p.qb = (num_kv_heads * group * q_len * d : Nat)) (hqh : p.qh = (q_len * d : Nat))
    (hqm : p.qm = d) (hkb : p.kb = (num_kv_heads * kv_len * d : Nat))
    (hkh : p.kh = (kv_len * d : Nat)) (hkn : p.kn = d)
    (hvb : p.vb = (num_kv_heads * kv_len * d_v : Nat)) (hvh : p.vh = (kv_len * d_v : Nat))
    (hvn : p.vn = d_v)
    (query : p.query = memory fun (x : OutIndex batches (num_kv_heads * group) q_len d) =>
      Q[x.1][x.2.1][x.2.2.1][x.2.2.2])
    (key : p.key = memory fun (x : OutIndex batches num_kv_heads kv_len d) =>
      K[x.1][x.2.1][x.2.2.1][x.2.2.2])
    (value : p.value = memory fun (x : OutIndex batches num_kv_heads kv_len d_v) =>
      V[x.1][x.2.1][x.2.2.1][x.2.2.2]) : p.Given Q K V sc where
  BM := hBM
  BN := hBN
  fits := hBD
  even := he
  fitsValue := hBV
  numHeads := hH
  perHead := hg
  dim := hd
  valueDim := hv
  packed := hp
  tilesLen := ht
  qLen := hq
  kvLen := hkv
  scale := hs
  scale_nonneg := h₀
  query b h x n := by
    rw [query, hqb, hqh, hqm]
    exact memory_at (fun (x : OutIndex batches (num_kv_heads * group) q_len d) =>
      Q[x.1][x.2.1][x.2.2.1][x.2.2.2]) (b, h, x, n)
  key b h y n := by
    rw [key, hkb, hkh, hkn]
    exact memory_at (fun (x : OutIndex batches num_kv_heads kv_len d) =>
      K[x.1][x.2.1][x.2.2.1][x.2.2.2]) (b, h, y, n)
  value b h y n := by
    rw [value, hvb, hvh, hvn]
    exact memory_at (fun (x : OutIndex batches num_kv_heads kv_len d_v) =>
      V[x.1][x.2.1][x.2.2.1][x.2.2.2]) (b, h, y, n)

end Attention.Kernel.Problem

/-! ## Packed sequences -/

namespace Attention.Kernel.Packed

open Flt Problem

universe u

variable {R : Type u} {d d_v n heads total : Nat} {len : Fin n → Nat} {cu : Nat → Nat}
variable {ptr : Mem Int} {stride rows : Int}

/-- A row of packed tensors belongs to one sequence, and is one of its rows. -/
theorem Begins.row_inj (B : Begins cu len ptr stride rows) {b b' : Fin n} {x : Fin (len b)}
    {x' : Fin (len b')} (h : cu b + x = cu b' + x') :
    (⟨b, x⟩ : (b : Fin n) × Fin (len b)) = ⟨b', x'⟩ := by
  have lt : ∀ {b b' : Fin n} (x : Fin (len b)) (x' : Fin (len b')), b < b' →
      cu b + x < cu b' + x' := by
    intro b b' x x' hb
    have h₁ := B.next b
    have h₂ := B.le (b := b + 1) (c := b') (by omega) (by omega)
    omega
  rcases Nat.lt_trichotomy b b' with hb | hb | hb
  · have := lt x x' hb; omega
  · obtain rfl : b = b' := Fin.ext hb
    obtain rfl : x = x' := Fin.ext (by omega)
    rfl
  · have := lt x' x hb; omega

/-- No two elements of a contiguous output `[rows, heads, components]` share a place. -/
theorem outOffset_inj {a : Forward.Args R} (B : Begins cu len ptr stride rows)
    (hh : a.stride_oh = d_v) (hm : a.stride_om = (heads * d_v : Nat))
    (x y : OutIndex len heads d_v) (h : outOffset a cu x = outOffset a cu y) : x = y := by
  obtain ⟨b, h₁, i, c⟩ := x
  obtain ⟨b', h₁', i', c'⟩ := y
  have e : ∀ (b : Fin n) (h : Fin heads) (i : Fin (len b)) (c : Fin d_v),
      outOffset a cu (⟨b, h, i, c⟩ : OutIndex len heads d_v)
        = (((cu b + i : Nat) : Int) * heads + h) * d_v + c := by
    intro b h i c
    simp only [outOffset, hh, hm, Int.natCast_mul, Int.add_mul, Int.mul_assoc]
    omega
  rw [e, e] at h
  obtain ⟨h₂, rfl⟩ := digits_inj h
  obtain ⟨h₃, rfl⟩ := digits_inj h₂
  obtain ⟨rfl, h₄⟩ := Sigma.mk.inj (B.row_inj (Int.ofNat_inj.mp h₃))
  rw [eq_of_heq h₄]

/-- No two elements of a contiguous log-sum-exp `[heads, rows]` share a place. -/
theorem lseOffset_inj {a : Forward.Args R} (B : Begins cu len ptr stride total)
    (hh : a.stride_lh = total) (x y : LseIndex len heads)
    (h : lseOffset a cu x = lseOffset a cu y) : x = y := by
  obtain ⟨b, h₁, i⟩ := x
  obtain ⟨b', h₁', i'⟩ := y
  have lt : ∀ (b : Fin n) (i : Fin (len b)), cu b + i < total := by
    intro b i
    have := B.next b
    have := B.le (b := b + 1) (c := n) (by omega) (Nat.le_refl n)
    have := B.total
    omega
  simp only [lseOffset, hh] at h
  obtain ⟨h₂, h₃⟩ := digits_inj (i := ⟨cu b + i, lt b i⟩) (i' := ⟨cu b' + i', lt b' i'⟩) h
  obtain ⟨rfl, h₄⟩ := Sigma.mk.inj (B.row_inj (Fin.mk.inj h₃))
  rw [eq_of_heq h₄, Fin.ext (Int.ofNat_inj.mp h₂)]

/-- The rows of each sequence, of a packed tensor `[rows, heads, components]`. -/
@[expose] def slices (T : Vector (Vector (Vec R d) heads) total)
    (B : Begins cu len ptr stride total) (b : Fin n) : Vector (Matrix R (len b) d) heads :=
  Vector.ofFn fun h => Vector.ofFn fun x => (T[cu b + x]'(by
    have := B.next b
    have := B.le (b := b + 1) (c := n) (by omega) (Nat.le_refl n)
    have := B.total
    omega))[h]

variable [OrderedField R]

omit [OrderedField R] in
private theorem memory_slices {T : Vector (Vector (Vec R d) heads) total}
    (B : Begins cu len ptr stride total) {sh sm : Int} (hh : sh = d)
    (hm : sm = (heads * d : Nat)) (b : Fin n) (h : Fin heads) (x : Fin (len b)) (c : Fin d) :
    memory (fun (y : Problem.OutIndex 1 total heads d) => T[y.2.1][y.2.2.1][y.2.2.2])
      (h * sh + (cu b + x : Nat) * sm + c) = num (slices T B b)[h][x][c] := by
  have lt : cu b + x < total := by
    have := B.next b
    have := B.le (b := b + 1) (c := n) (by omega) (Nat.le_refl n)
    have := B.total
    omega
  have e := memory_at (fun (y : Problem.OutIndex 1 total heads d) => T[y.2.1][y.2.2.1][y.2.2.2])
    (0, ⟨cu b + x, lt⟩, h, c)
  have o : h * sh + (cu b + x : Nat) * sm + c
      = contiguous ((0, ⟨cu b + x, lt⟩, h, c) : Problem.OutIndex 1 total heads d) := by
    simp only [contiguous, hh, hm, Fin.val_zero]
    omega
  rw [o, e]
  simp only [slices, Fin.getElem_fin, Vector.getElem_ofFn]

variable {num_kv_heads group max_q_len total_q total_k : Nat} {q_len kv_len : Fin n → Nat}
variable {cu_q cu_k : Nat → Nat}

/-- A launch on contiguous packed tensors `[rows, heads, components]` satisfies the hypotheses, for
the sequences that are their slices. -/
theorem given_contiguous {a : Forward.Args R}
    {Q : Vector (Vector (Vec R d) (num_kv_heads * group)) total_q}
    {K : Vector (Vector (Vec R d) num_kv_heads) total_k}
    {V : Vector (Vector (Vec R d_v) num_kv_heads) total_k} {sc : R} (hBM : 0 < a.BLOCK_M)
    (hBN : 0 < a.BLOCK_N) (hBD : a.BLOCK_D = d) (hBV : a.BLOCK_V = d_v)
    (hH : a.num_heads = (num_kv_heads * group : Nat)) (hg : a.group = group)
    (hd : a.head_dim = d) (hv : a.value_dim = d_v) (hmax : a.max_q_len = max_q_len)
    (hlen : ∀ b, q_len b ≤ max_q_len) (hq : a.q_len = total_q) (hk : a.kv_len = total_k)
    (queries : Begins cu_q q_len a.cu_q_ptr a.stride_xb total_q)
    (keys : Begins cu_k kv_len a.cu_k_ptr a.stride_yb total_k) (hs : a.scale = num sc)
    (h₀ : 0 ≤ sc) (hqh : a.stride_qh = d) (hqm : a.stride_qm = (num_kv_heads * group * d : Nat))
    (hkh : a.stride_kh = d) (hkn : a.stride_kn = (num_kv_heads * d : Nat))
    (hvh : a.stride_vh = d_v) (hvn : a.stride_vn = (num_kv_heads * d_v : Nat))
    (query : a.query_ptr = memory fun (x : Problem.OutIndex 1 total_q (num_kv_heads * group) d) =>
      Q[x.2.1][x.2.2.1][x.2.2.2])
    (key : a.key_ptr = memory fun (x : Problem.OutIndex 1 total_k num_kv_heads d) =>
      K[x.2.1][x.2.2.1][x.2.2.2])
    (value : a.value_ptr = memory fun (x : Problem.OutIndex 1 total_k num_kv_heads d_v) =>
      V[x.2.1][x.2.2.1][x.2.2.2]) :
    Given a cu_q cu_k max_q_len (slices Q queries) (slices K keys) (slices V keys) sc where
  BM := hBM
  BN := hBN
  even := hBD
  evenValue := hBV
  numHeads := hH
  perHead := hg
  dim := hd
  valueDim := hv
  maxLen := hmax
  longest := hlen
  queries := hq ▸ queries
  keys := hk ▸ keys
  scale := hs
  scale_nonneg := h₀
  query b h x c := by rw [query]; exact memory_slices queries hqh hqm b h x c
  key b h y c := by rw [key]; exact memory_slices keys hkh hkn b h y c
  value b h y c := by rw [value]; exact memory_slices keys hvh hvn b h y c

end Attention.Kernel.Packed
