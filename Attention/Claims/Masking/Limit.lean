module

public import Attention.Claims.Masking.Suppression

public section

/-! # The limit of a mask entry that tends to −∞

For the natural exponential, and rows with another key that is not masked: the output tends to that
with the key deleted. For each ε the entries of the mask that suffice are given. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedField R] {q_len n d d_v c_q c_k c_v c : Nat}

/-- The output without key s, as the document writes it: component t of row i is
Σ_{j ≠ s} wⱼ vⱼₜ / Σ_{j ≠ s} wⱼ, with wⱼ the exponential of scale · (⟨qᵢ, kⱼ⟩ + bᵢⱼ). -/
theorem maskedAttention_deleted_formula [OrderedCommRing S] [Exponential S R] (scale : S)
    (B : Matrix (Option S) q_len (n + 1)) (s : Fin (n + 1)) (Q : Matrix S q_len d)
    (K : Matrix S (n + 1) d) (V : Matrix R (n + 1) d_v) (i : Fin q_len) (t : Fin d_v) :
    let w : Fin (n + 1) → R := fun j =>
      match B[i][j] with
      | none => 0
      | some b => exp (scale * (Vec.dot Q[i] K[j] + b))
    let others := (List.finRange (n + 1)).filter (· ≠ s)
    (maskedAttention scale (Vec.map (deleteRow s) B) Q (deleteRow s K) (deleteRow s V))[i][t]
      = sumOver (fun j => w j * V[j][t]) others / sumOver w others := by
  intro w others
  have kept : ∀ f : Fin (n + 1) → R,
      sumOver f others = sumOver (fun j => f (skip s j)) (List.finRange n) := fun f => by
    rw [sumOver_filter, sumOver_reindex (skip_injective s) fun j hj => by
      rw [(skip_ne_iff s j).mp hj]
      simp]
    refine sumOver_congr fun j _ => ?_
    have : skip s j ≠ s := (skip_ne_iff s s).mpr rfl j
    simp [this]
  have hw : ∀ j, (weight (score 1 (scaledBias scale (Vec.map (deleteRow s) B)) Q (deleteRow s K) i
      j) : R) = w (skip s j) := fun j => by
    rw [score_scaledBias]
    simp only [deleteRow, Fin.getElem_fin, getElem_reindex, Vec.getElem_map, w]
    cases B[i.val][(skip s j).val] <;> rfl
  rw [maskedAttention, Proof.getElem_attention_eq_weights, kept, kept]
  simp only [hw]
  simp only [deleteRow, Fin.getElem_fin, getElem_reindex]

variable [NaturalExp R]

private theorem exp_mul_le {z D ε : R} (hD : 0 ≤ D) (hε : 0 < ε) (hz : z ≤ -(D / ε)) :
    exp z * D ≤ ε := by
  have h₀ : (0 : R) < exp z := exp_pos z
  have h₁ := NaturalExp.one_add_le_exp (-z)
  have h₂ : (exp z : R) * exp (-z) = 1 := by
    rw [← exp_add, ← exp_zero (S := R) (R := R)]
    congr 1
    grind
  have h₃ := OrderedField.mul_div_cancel (b := ε) (by grind) D
  generalize D / ε = x at *
  subst h₃
  have h₄ := OrderedRing.mul_le_mul_of_nonneg_left (show x ≤ exp (-z) by grind) (Std.le_of_lt h₀)
  rw [h₂] at h₄
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_left h₄ (Std.le_of_lt hε)
  grind

/-- **suppression**: for the natural exponential, if value s and those of the other unmasked keys
lie between lo and hi, and key j is one of these, the output differs from that with key s deleted by
at most ε once s_s ≤ s_j − (hi − lo) / ε, with s_s and s_j the scores of s and j, mask included. -/
theorem attention_suppressed {ε : R} (hε : 0 < ε) (scale : R) (modify : ScoreMod R q_len (n + 1))
    (Q : Matrix R q_len d) (K : Matrix R (n + 1) d) (V : Matrix R (n + 1) d_v) {i : Fin q_len}
    {s j : Fin (n + 1)} (hjs : j ≠ s) {x y : R} (hs : score scale modify Q K i s = some x)
    (hj : score scale modify Q K i j = some y) {t : Fin d_v} {lo hi : R}
    (hv : ∀ k, score scale modify Q K i k ≠ none → lo ≤ V[k][t] ∧ V[k][t] ≤ hi)
    (h : x ≤ y - (hi - lo) / ε) :
    AtMost ε ((attention scale modify Q K V)[i][t]
      - (attention scale (fun i j => modify i (skip s j)) Q (deleteRow s K) (deleteRow s V)
          : Matrix R q_len d_v)[i][t]) := by
  refine (attention_key_suppressed (R := R) scale modify Q K V hjs hs hj hv).mono
    (exp_mul_le ?_ hε (by grind))
  have := hv s (by rw [hs]; exact Option.some_ne_none _)
  have := Std.le_trans this.1 this.2
  grind

/-- The entry of a mask that is enough: with values between lo and hi, and j a key beside s that is
not masked, the output of masked attention differs from that with key s deleted by at most ε once
b_is ≤ ⟨q, k_j⟩ + b_ij − ⟨q, k_s⟩ − (hi − lo) / (ε · scale). -/
theorem maskedAttention_suppressed {scale ε : R} (hscale : 0 < scale) (hε : 0 < ε)
    (B : Matrix (Option R) q_len (n + 1)) (Q : Matrix R q_len d) (K : Matrix R (n + 1) d)
    (V : Matrix R (n + 1) d_v) {i : Fin q_len} {s j : Fin (n + 1)} (hjs : j ≠ s) {t : Fin d_v}
    {lo hi b b' : R} (hv : ∀ k : Fin (n + 1), B[i][k] ≠ none → lo ≤ V[k][t] ∧ V[k][t] ≤ hi)
    (hs : B[i][s] = some b) (hj : B[i][j] = some b')
    (hb : b ≤ Vec.dot Q[i] K[j] + b' - Vec.dot Q[i] K[s] - (hi - lo) / (ε * scale)) :
    AtMost ε ((maskedAttention scale B Q K V)[i][t]
      - (maskedAttention scale (Vec.map (deleteRow s) B) Q (deleteRow s K) (deleteRow s V)
          : Matrix R q_len d_v)[i][t]) := by
  have e : attention 1 (fun i j => scaledBias scale B i (skip s j)) Q (deleteRow s K)
        (deleteRow s V)
      = maskedAttention scale (Vec.map (deleteRow s) B) Q (deleteRow s K) (deleteRow s V) := by
    rw [maskedAttention]
    congr 1
    funext i j x
    simp only [scaledBias, deleteRow, Fin.getElem_fin, getElem_reindex, Vec.getElem_map]
  rw [← e]
  refine attention_suppressed hε 1 (scaledBias scale B) Q K V hjs
    (by rw [score_scaledBias, hs, Option.map_some]) (by rw [score_scaledBias, hj, Option.map_some])
    (fun k hk => hv k fun h => hk (by rw [score_scaledBias, h, Option.map_none])) ?_
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_left hb (Std.le_of_lt hscale)
  have h₂ : scale * ((hi - lo) / (ε * scale)) = (hi - lo) / ε := by
    have h₃ := OrderedField.mul_div_mul_left (c := scale) (by grind) ((hi - lo)) ε
    rw [← h₃, CommSemiring.mul_comm ε scale]
    simp only [Field.div_eq_mul_inv]
    grind
  rw [← h₂]
  generalize (hi - lo) / (ε * scale) = x at *
  grind

/-! ## For all rows and components at once -/

omit [NaturalExp R] in
private theorem exists_le (f : Fin n → R) : ∃ a, ∀ i, a ≤ f i := by
  suffices h : ∀ xs : List (Fin n), ∃ a, ∀ i ∈ xs, a ≤ f i by
    obtain ⟨a, ha⟩ := h (List.finRange n)
    exact ⟨a, fun i => ha i (List.mem_finRange i)⟩
  intro xs
  induction xs with
  | nil => exact ⟨0, by simp⟩
  | cons x xs ih =>
    obtain ⟨a, ha⟩ := ih
    rcases Std.le_total (a := a) (b := f x) with h | h
    · exact ⟨a, by simpa using ⟨h, ha⟩⟩
    · refine ⟨f x, ?_⟩
      simp only [List.mem_cons, forall_eq_or_imp]
      exact ⟨Std.le_refl _, fun i hi => Std.le_trans h (ha i hi)⟩

omit [NaturalExp R] in
private theorem exists_le_two {m : Nat} (f : Fin m → Fin n → R) : ∃ a, ∀ i j, a ≤ f i j := by
  obtain ⟨a, ha⟩ := exists_le fun i => (exists_le (f i)).choose
  exact ⟨a, fun i j => Std.le_trans (ha i) ((exists_le (f i)).choose_spec j)⟩

/-- Key-value deletion in the limit: as the entries of column s of the mask tend to −∞, masked
attention tends to that without key s, its value and the column, in every row where a key beside s
is not masked. -/
theorem maskedAttention_delete_key_limit {scale : R} (hscale : 0 < scale)
    (B₀ : Matrix (Option R) q_len (n + 1)) (s : Fin (n + 1)) (Q : Matrix R q_len d)
    (K : Matrix R (n + 1) d) (V : Matrix R (n + 1) d_v) {ε : R} (hε : 0 < ε) :
    ∃ β : R, ∀ B : Matrix (Option R) q_len (n + 1), ∀ i : Fin q_len,
      (∃ j : Fin (n + 1), j ≠ s ∧ B₀[i][j] ≠ none) →
      (∀ j : Fin (n + 1), j ≠ s → B[i][j] = B₀[i][j]) → (∃ b, B[i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_v, AtMost ε ((maskedAttention scale B Q K V)[i][t]
        - (maskedAttention scale (Vec.map (deleteRow s) B₀) Q (deleteRow s K) (deleteRow s V)
            : Matrix R q_len d_v)[i][t]) := by
  obtain ⟨lo, hlo⟩ := exists_le_two fun (k : Fin (n + 1)) (t : Fin d_v) => V[k][t]
  obtain ⟨hi, hhi⟩ := exists_le_two fun (k : Fin (n + 1)) (t : Fin d_v) => -V[k][t]
  have row : ∀ i : Fin q_len, ∃ β : R, ∀ j : Fin (n + 1), ∀ b', B₀[i][j] = some b' →
      β ≤ Vec.dot Q[i] K[j] + b' - Vec.dot Q[i] K[s] - (-hi - lo) / (ε * scale) := fun i => by
    obtain ⟨β, hβ⟩ := exists_le fun j : Fin (n + 1) =>
      Vec.dot Q[i] K[j] + B₀[i][j].getD 0 - Vec.dot Q[i] K[s] - (-hi - lo) / (ε * scale)
    refine ⟨β, fun j b' hb' => ?_⟩
    have := hβ j
    rwa [hb', Option.getD_some] at this
  obtain ⟨β, hβ⟩ := exists_le fun i => (row i).choose
  refine ⟨β, fun B i ⟨j, hj, hj'⟩ hB ⟨b, hs, hb⟩ t => ?_⟩
  obtain ⟨b', hj'⟩ := Option.ne_none_iff_exists'.mp hj'
  have e : (maskedAttention scale (Vec.map (deleteRow s) B₀) Q (deleteRow s K) (deleteRow s V)
      : Matrix R q_len d_v)[i]
      = (maskedAttention scale (Vec.map (deleteRow s) B) Q (deleteRow s K) (deleteRow s V)
      : Matrix R q_len d_v)[i] := maskedAttention_row_congr scale (by
    refine Vector.ext fun j hj => ?_
    have := hB (skip s ⟨j, hj⟩) ((skip_ne_iff s s).mpr rfl _)
    simp only [deleteRow, Fin.getElem_fin, getElem_reindex, Vec.getElem_map] at this ⊢
    exact this.symm) rfl _ _
  rw [e]
  refine maskedAttention_suppressed hscale hε B Q K V hj (lo := lo) (hi := -hi)
    (fun k _ => ⟨hlo k t, ?_⟩) hs ((hB _ hj).trans hj')
    (Std.le_trans hb (Std.le_trans (hβ i) ((row i).choose_spec j b' hj')))
  have := hhi k t
  grind

/-- So in the limit the output does not depend on key s and value s: the outputs with others in
their place, under the same mask, come as close to each other as one likes. -/
theorem maskedAttention_suppressed_limit {scale : R} (hscale : 0 < scale)
    (B₀ : Matrix (Option R) q_len (n + 1)) (s : Fin (n + 1)) (Q : Matrix R q_len d)
    {K K' : Matrix R (n + 1) d} {V V' : Matrix R (n + 1) d_v}
    (hK : ∀ j, j ≠ s → K[j] = K'[j]) (hV : ∀ j, j ≠ s → V[j] = V'[j]) {ε : R} (hε : 0 < ε) :
    ∃ β : R, ∀ B : Matrix (Option R) q_len (n + 1), ∀ i : Fin q_len,
      (∃ j : Fin (n + 1), j ≠ s ∧ B₀[i][j] ≠ none) →
      (∀ j : Fin (n + 1), j ≠ s → B[i][j] = B₀[i][j]) → (∃ b, B[i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_v, AtMost ε ((maskedAttention scale B Q K V)[i][t]
        - (maskedAttention scale B Q K' V')[i][t]) := by
  have without : ∀ {m : Nat} {X X' : Matrix R (n + 1) m}, (∀ j, j ≠ s → X[j] = X'[j]) →
      deleteRow s X = deleteRow s X' := fun h => Vector.ext fun j hj => by
    rw [deleteRow, deleteRow, getElem_reindex, getElem_reindex]
    exact h _ ((skip_ne_iff s s).mpr rfl _)
  have h₁ := OrderedRing.zero_lt_one (R := R)
  have two : ε / 2 + ε / 2 = ε := by
    have := OrderedField.mul_div_cancel (b := (2 : R)) (by grind) ε
    grind
  have half : 0 < ε / 2 := by grind
  obtain ⟨β, h⟩ := maskedAttention_delete_key_limit hscale B₀ s Q K V half
  obtain ⟨β', h'⟩ := maskedAttention_delete_key_limit hscale B₀ s Q K' V' half
  rw [← without hK, ← without hV] at h'
  refine ⟨if β ≤ β' then β else β', fun B i other hB ⟨b, hs, hb⟩ t => ?_⟩
  have low : b ≤ β ∧ b ≤ β' := by
    split at hb
    · exact ⟨hb, by grind⟩
    · exact ⟨by grind, hb⟩
  have e := (h B i other hB ⟨b, hs, low.1⟩ t).sub (h' B i other hB ⟨b, hs, low.2⟩ t)
  rw [two] at e
  generalize (maskedAttention scale (Vec.map (deleteRow s) B₀) Q (deleteRow s K) (deleteRow s V)
    : Matrix R q_len d_v)[i][t] = o' at e
  have : ∀ x y : R, x - o' - (y - o') = x - y := fun x y => by grind
  rwa [this] at e

/-- Key-value deletion in the limit, with weights. -/
theorem maskedWeightedAttention_delete_key_limit {scale : R} (hscale : 0 < scale)
    (B₀ : Matrix (Option R) q_len (n + 1)) (W : Weights R R c_q c_k c_v d d_v) (s : Fin (n + 1))
    (Q : Matrix R q_len c_q) (K : Matrix R (n + 1) c_k) (V : Matrix R (n + 1) c_v) {ε : R}
    (hε : 0 < ε) :
    ∃ β : R, ∀ B : Matrix (Option R) q_len (n + 1), ∀ i : Fin q_len,
      (∃ j : Fin (n + 1), j ≠ s ∧ B₀[i][j] ≠ none) →
      (∀ j : Fin (n + 1), j ≠ s → B[i][j] = B₀[i][j]) → (∃ b, B[i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_v, AtMost ε ((maskedWeightedAttention scale B W Q K V)[i][t]
        - (maskedWeightedAttention scale (Vec.map (deleteRow s) B₀) W Q (deleteRow s K)
            (deleteRow s V) : Matrix R q_len d_v)[i][t]) := by
  simp only [maskedWeightedAttention, Weights.keys, Weights.values, deleteRow, map_reindex]
  exact maskedAttention_delete_key_limit hscale B₀ s _ _ _ hε

/-- In masked self-attention the other key is there, if the input may attend to itself: as b_is
tends to −∞ for an i ≠ s, output i tends to that without the key and the value of input s. -/
theorem maskedSelfAttention_suppressed_limit (ι : R → R) {scale : R} (hscale : 0 < scale)
    (B₀ : Matrix (Option R) (n + 1) (n + 1)) (W : Weights R R c c c d d_v) (s : Fin (n + 1))
    (X : Matrix R (n + 1) c) {ε : R} (hε : 0 < ε) :
    ∃ β : R, ∀ B : Matrix (Option R) (n + 1) (n + 1), ∀ i, i ≠ s → B₀[i][i] ≠ none →
      (∀ j, j ≠ s → B[i][j] = B₀[i][j]) → (∃ b, B[i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_v, AtMost ε ((maskedSelfAttention ι scale B W X)[i][t]
        - (maskedWeightedAttention scale (Vec.map (deleteRow s) B₀) W X (deleteRow s X)
            (deleteRow s (Vec.map (Vec.map ι) X)) : Matrix R (n + 1) d_v)[i][t]) := by
  obtain ⟨β, h⟩ := maskedWeightedAttention_delete_key_limit hscale B₀ W s X X
    (Vec.map (Vec.map ι) X) hε
  exact ⟨β, fun B i hi hb => h B i ⟨i, hi, hb⟩⟩

/-- Input deletion in the limit: as the entries of the other inputs for s tend to −∞, masked
self-attention without row s tends to that of the inputs without s, in every row where an input
beside s is not masked, as when each input may attend to itself. -/
theorem maskedSelfAttention_delete_limit (ι : R → R) {scale : R} (hscale : 0 < scale)
    (B₀ : Matrix (Option R) (n + 1) (n + 1)) (W : Weights R R c c c d d_v) (s : Fin (n + 1))
    (X : Matrix R (n + 1) c) {ε : R} (hε : 0 < ε) :
    ∃ β : R, ∀ B : Matrix (Option R) (n + 1) (n + 1), ∀ i : Fin n,
      (∃ j : Fin (n + 1), j ≠ s ∧ B₀[skip s i][j] ≠ none) →
      (∀ j : Fin (n + 1), j ≠ s → B[skip s i][j] = B₀[skip s i][j]) →
      (∃ b, B[skip s i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_v, AtMost ε ((deleteRow s (maskedSelfAttention ι scale B W X))[i][t]
        - (maskedSelfAttention ι scale (deleteRow s (Vec.map (deleteRow s) B₀)) W (deleteRow s X)
            : Matrix R n d_v)[i][t]) := by
  have row : ∀ (B : Matrix (Option R) (n + 1) (n + 1)) (i : Fin n),
      (deleteRow s B)[i] = B[skip s i] := fun B i => by simp [deleteRow]
  obtain ⟨β, h⟩ := maskedWeightedAttention_delete_key_limit hscale (deleteRow s B₀) W s
    (deleteRow s X) X (Vec.map (Vec.map ι) X) hε
  refine ⟨β, fun B i other hB hb t => ?_⟩
  have := h (deleteRow s B) i (by rwa [row]) (by rwa [row, row]) (by rwa [row]) t
  rw [maskedWeightedAttention_delete_query] at this
  simpa only [maskedSelfAttention, deleteRow, map_reindex] using this

end Attention.Claims
