module

public import Attention.Claims.Memory.Flash
public import Attention.Claims.Memory.Standard

public section

/-! # Memory and traffic, compared and bounded

Of the two programs of `Attention.Claims.Memory.Basic`, for every input, scale and score
transformation. -/

namespace Attention.Claims

open Spec Spec.Online Model Program

universe u

variable {S R : Type u} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {q_len kv_len d d_v : Nat} (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- **standard-memory**: standard attention ends with attention in its output, and has held
2·q_len·kv_len elements in slow memory besides inputs and output. -/
theorem standard_memory {block_m : Nat} (hm : 0 < block_m) :
    (standardRun scale modify Q K V block_m).slow.get standardOut
        = (attention scale modify Q K V).toList
      ∧ (standardRun scale modify Q K V block_m).counts.slowPeak
        = (q_len * d + kv_len * (d + d_v) + q_len * d_v) + 2 * (q_len * kv_len) := by
  obtain ⟨_, e⟩ := run_standardProgram scale modify Q K V hm
  rw [standardRun, e]
  exact ⟨rfl, rfl⟩

/-- **flash-memory**: FlashAttention ends with attention in its output, has held nothing in slow
memory besides inputs and output, and in fast memory no more than tiles of that size need: for given
tile sizes a number that does not depend on q_len and kv_len. -/
theorem flash_memory {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    (flashRun scale modify Q K V block_m block_n).slow.get flashOutput
        = (attention scale modify Q K V).toList
      ∧ (flashRun scale modify Q K V block_m block_n).counts.slowPeak
        = q_len * d + kv_len * (d + d_v) + q_len * d_v
      ∧ (flashRun scale modify Q K V block_m block_n).counts.fastPeak
        ≤ flashFast block_m block_n d d_v := by
  obtain ⟨_, hp, e⟩ := run_flashProgram scale modify Q K V hm hn
  rw [flashRun, e]
  exact ⟨Proof.flash_eq_attention scale modify Q K V hm hn, rfl, hp⟩

/-- FlashAttention reads Q once and K and V once for each tile of queries, and writes the output
once. -/
theorem flash_transfers {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    (flashRun scale modify Q K V block_m block_n).counts.transfers
      = q_len * (d + d_v) + numTiles q_len block_m * (kv_len * (d + d_v)) := by
  obtain ⟨_, _, e⟩ := run_flashProgram scale modify Q K V hm hn
  rw [flashRun, e]
  simp only [Counts.transfers, Nat.mul_add]
  omega

/-- Standard attention with the same tiles of queries moves what FlashAttention moves, and the
matrix of scores and that of weights, each written once and read once. -/
theorem standard_transfers {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    (standardRun scale modify Q K V block_m).counts.transfers
      = (flashRun scale modify Q K V block_m block_n).counts.transfers
        + 4 * (q_len * kv_len) := by
  obtain ⟨_, e⟩ := run_standardProgram scale modify Q K V hm
  rw [flash_transfers scale modify Q K V hm hn, standardRun, e]
  simp only [Counts.transfers, Nat.mul_add]
  omega

/-- How many tiles there are, from above and from below. -/
theorem numTiles_bounds {b : Nat} (hb : 0 < b) (n : Nat) :
    n ≤ numTiles n b * b ∧ numTiles n b * b < n + b := by
  have h₁ := Nat.div_add_mod (n + b - 1) b
  have h₂ := Nat.mod_lt (n + b - 1) hb
  rw [numTiles, Nat.mul_comm]
  omega

/-- Tiles of M / 9d queries and at most d keys fit a fast memory of M elements. -/
theorem flashFast_le {M block_n : Nat} (hd : 0 < d) (hn : block_n ≤ d)
    (hn' : block_n ≤ M / (9 * d)) : flashFast (M / (9 * d)) block_n d d ≤ M := by
  have h₀ : M / (9 * d) * (9 * d) ≤ M := Nat.div_mul_le_self _ _
  generalize M / (9 * d) = b at *
  have h₁ : b * (9 * d) = 9 * (b * d) := Nat.mul_left_comm _ _ _
  have h₂ : b * block_n ≤ b * d := Nat.mul_le_mul_left _ hn
  have h₃ : block_n * d ≤ b * d := Nat.mul_le_mul_right _ hn'
  have h₄ : b * 1 ≤ b * d := Nat.mul_le_mul_left _ hd
  simp only [flashFast, Nat.mul_add]
  omega

/-- The traffic of such tiles, from below and from above. -/
theorem traffic_bounds {M : Nat} (hd : 0 < d) (hM : 9 * d ≤ M) (hq : M ≤ q_len * d)
    (hk : M ≤ kv_len * d) :
    18 * (q_len * d) * (kv_len * d)
        ≤ (q_len * (d + d) + numTiles q_len (M / (9 * d)) * (kv_len * (d + d))) * M
      ∧ (q_len * (d + d) + numTiles q_len (M / (9 * d)) * (kv_len * (d + d))) * M
        ≤ 40 * (q_len * d) * (kv_len * d) := by
  have hb : 0 < M / (9 * d) := Nat.div_pos hM (by omega)
  obtain ⟨h₁, h₂⟩ := numTiles_bounds hb q_len
  have h₃ : M / (9 * d) * (9 * d) ≤ M := Nat.div_mul_le_self _ _
  have h₄ : M < M / (9 * d) * (9 * d) + 9 * d := by
    have := Nat.div_add_mod M (9 * d)
    have := Nat.mod_lt M (show 0 < 9 * d by omega)
    rw [Nat.mul_comm]
    omega
  generalize M / (9 * d) = b at *
  generalize numTiles q_len b = t at *
  have hM' : M ≤ 18 * (b * d) := by
    have h₅ : b * (9 * d) = 9 * (b * d) := Nat.mul_left_comm _ _ _
    have h₆ : 1 * d ≤ b * d := Nat.mul_le_mul_right _ hb
    omega
  have e : (q_len * (d + d) + t * (kv_len * (d + d))) * M
      = 2 * (q_len * d * M) + 2 * (t * M * (kv_len * d)) := by grind
  have e₁ : 18 * (q_len * d) * (kv_len * d) = 2 * (9 * (q_len * d) * (kv_len * d)) := by grind
  have e₂ : 40 * (q_len * d) * (kv_len * d)
      = 2 * (q_len * d * (kv_len * d)) + 2 * (19 * (q_len * d) * (kv_len * d)) := by grind
  rw [e, e₁, e₂]
  constructor
  · -- 9 · q_len · d ≤ t · b · 9d ≤ t · M
    have h₅ : 9 * (q_len * d) ≤ t * M := by
      have h₆ : q_len * (9 * d) ≤ t * b * (9 * d) := Nat.mul_le_mul_right _ h₁
      have h₇ : t * (b * (9 * d)) ≤ t * M := Nat.mul_le_mul_left _ h₃
      have h₈ : q_len * (9 * d) = 9 * (q_len * d) := Nat.mul_left_comm _ _ _
      have h₉ : t * b * (9 * d) = t * (b * (9 * d)) := Nat.mul_assoc _ _ _
      omega
    have := Nat.mul_le_mul_right (kv_len * d) h₅
    omega
  · -- (t − 1) · M ≤ (t − 1) · 18 · b · d ≤ 18 · q_len · d
    have h₅ : t * M ≤ 19 * (q_len * d) := by
      match t with
      | 0 => simp
      | s + 1 =>
        have h₆ : s * b ≤ q_len := by
          rw [Nat.add_mul] at h₂
          omega
        have h₇ : s * M ≤ s * (18 * (b * d)) := Nat.mul_le_mul_left _ hM'
        have h₈ : s * (18 * (b * d)) = 18 * (s * b * d) := by grind
        have h₉ : s * b * d ≤ q_len * d := Nat.mul_le_mul_right _ h₆
        rw [Nat.add_mul]
        omega
    have h₆ := Nat.mul_le_mul_right (kv_len * d) h₅
    have h₇ := Nat.mul_le_mul_left (q_len * d) hk
    omega

/-- **flash-traffic**: let fast memory have M elements, with 9·d ≤ M and M at most the size of Q and
of K. In tiles of M / 9d queries, and at most d keys and as many, FlashAttention fits it, and moves
between 18·q_len·kv_len·d² / M and 40·q_len·kv_len·d² / M elements. So with M given its traffic is
still quadratic in the lengths: what is linear is memory. -/
theorem flash_traffic (V : Matrix R kv_len d) {M block_n : Nat} (hd : 0 < d) (hM : 9 * d ≤ M)
    (hq : M ≤ q_len * d) (hk : M ≤ kv_len * d) (hn : 0 < block_n) (hn' : block_n ≤ d)
    (hn'' : block_n ≤ M / (9 * d)) :
    (flashRun scale modify Q K V (M / (9 * d)) block_n).slow.get flashOutput
        = (attention scale modify Q K V).toList
      ∧ (flashRun scale modify Q K V (M / (9 * d)) block_n).counts.fastPeak ≤ M
      ∧ 18 * (q_len * d) * (kv_len * d)
        ≤ (flashRun scale modify Q K V (M / (9 * d)) block_n).counts.transfers * M
      ∧ (flashRun scale modify Q K V (M / (9 * d)) block_n).counts.transfers * M
        ≤ 40 * (q_len * d) * (kv_len * d) := by
  have hb : 0 < M / (9 * d) := Nat.div_pos hM (by omega)
  obtain ⟨hv, _, hp⟩ := flash_memory scale modify Q K V hb hn
  refine ⟨hv, Nat.le_trans hp (flashFast_le hd hn' hn''), ?_⟩
  rw [flash_transfers scale modify Q K V hb hn]
  exact traffic_bounds hd hM hq hk

end Attention.Claims
