module

public import Attention.Kernel.Launch

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
    simp only [contiguous, Int.natCast_mul]
    grind
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
    simp only [lseOffset, hb, hh, Int.natCast_mul]
    grind
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

variable [OrderedField R] {kv_len num_kv_heads group : Nat}

/-- A launch on contiguous tensors that are given as they are satisfies the hypotheses. -/
theorem given_contiguous {p : Problem R}
    {Q : Vector (Vector (Matrix R q_len d) (num_kv_heads * group)) batches}
    {K V : Vector (Vector (Matrix R kv_len d) num_kv_heads) batches} {sc : R} (hBM : 0 < p.BM)
    (hBN : 0 < p.BN) (hBD : p.BD = d) (hH : p.heads = (num_kv_heads * group : Nat))
    (hg : p.group = group) (hd : p.dim = d) (hv : p.valueDim = d) (hq : p.qLen = q_len)
    (hkv : p.kvLen = kv_len) (hs : p.scale = num sc) (h₀ : 0 ≤ sc)
    (hqb : p.qb = (num_kv_heads * group * q_len * d : Nat)) (hqh : p.qh = (q_len * d : Nat))
    (hqm : p.qm = d) (hkb : p.kb = (num_kv_heads * kv_len * d : Nat))
    (hkh : p.kh = (kv_len * d : Nat)) (hkn : p.kn = d)
    (hvb : p.vb = (num_kv_heads * kv_len * d : Nat)) (hvh : p.vh = (kv_len * d : Nat))
    (hvn : p.vn = d)
    (query : p.query = memory fun (x : OutIndex batches (num_kv_heads * group) q_len d) =>
      Q[x.1][x.2.1][x.2.2.1][x.2.2.2])
    (key : p.key = memory fun (x : OutIndex batches num_kv_heads kv_len d) =>
      K[x.1][x.2.1][x.2.2.1][x.2.2.2])
    (value : p.value = memory fun (x : OutIndex batches num_kv_heads kv_len d) =>
      V[x.1][x.2.1][x.2.2.1][x.2.2.2]) : p.Given Q K V sc where
  BM := hBM
  BN := hBN
  fits := Nat.le_of_eq hBD.symm
  even _ := hBD
  numHeads := hH
  perHead := hg
  dim := hd
  valueDim := hv
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
    exact memory_at (fun (x : OutIndex batches num_kv_heads kv_len d) =>
      V[x.1][x.2.1][x.2.2.1][x.2.2.2]) (b, h, y, n)

end Attention.Kernel.Problem
