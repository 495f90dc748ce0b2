module

public import Attention.Claims.Heads.Suppression

public section

/-! # Masks of heads that tend to −∞ together

For the natural exponential: what tends to a limit in every head does so in the output of all, since
the output projection changes a difference by a bounded factor at most. So the limits of one head
are those of all heads. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedField R]
variable {m n q_len kv_len h c_q c_k c_v c d d_v d_o : Nat}

attribute [local instance] Semiring.natCast

/-- **The lifting lemma of limits.** If no entry of W_o is larger than ω, and the rows i and i' of
every head differ by at most δ, those of the output differ by at most h d_v δ ω. -/
theorem output_close {W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o} {ω δ : R}
    (hω : ∀ x : Fin (h * d_v), ∀ t : Fin d_o, AtMost ω W.w_o[x][t]) {heads : Fin h → Matrix R n d_v}
    {heads' : Fin h → Matrix R m d_v} {i : Fin n} {i' : Fin m}
    (hδ : ∀ κ, ∀ t : Fin d_v, AtMost δ ((heads κ)[i][t] - (heads' κ)[i'][t])) (t : Fin d_o) :
    AtMost (((h * d_v : Nat) : R) * (δ * ω))
      ((W.output (Vec.ofFn heads))[i][t] - (W.output (Vec.ofFn heads'))[i'][t]) := by
  have row : ∀ (p : Nat) (heads : Fin h → Matrix R p d_v) (i : Fin p),
      (W.output (Vec.ofFn heads))[i][t]
        = sumOver (fun x : Fin (h * d_v) =>
            (heads (Proof.headOf x))[i][Proof.componentOf x] * W.w_o[x][t])
            (List.finRange (h * d_v))
          + W.b_o[t] := fun p heads i => by
    rw [getElem_output]
    simp only [affine, joinRow, Fin.getElem_fin, Vec.getElem_ofFn]
  have e : (W.output (Vec.ofFn heads))[i][t] - (W.output (Vec.ofFn heads'))[i'][t]
      = Vec.dot (Vec.ofFn fun x : Fin (h * d_v) => (heads (Proof.headOf x))[i][Proof.componentOf x]
          - (heads' (Proof.headOf x))[i'][Proof.componentOf x])
        (Vec.ofFn fun x : Fin (h * d_v) => W.w_o[x][t]) := by
    rw [row, row, Vec.dot]
    have := sumOver_sub
      (fun x : Fin (h * d_v) => (heads (Proof.headOf x))[i][Proof.componentOf x] * W.w_o[x][t])
      (fun x : Fin (h * d_v) => (heads' (Proof.headOf x))[i'][Proof.componentOf x] * W.w_o[x][t])
      (List.finRange (h * d_v))
    refine Eq.trans ?_ (this.symm.trans (sumOver_congr fun x _ => ?_))
    · grind
    · simp only [Fin.getElem_fin, Vec.getElem_ofFn]
      grind
  rw [e]
  refine AtMost.dot (fun x => ?_) fun x => ?_
  · rw [Fin.getElem_fin, Vec.getElem_ofFn]
    exact hδ (Proof.headOf x) (Proof.componentOf x)
  · rw [Fin.getElem_fin, Vec.getElem_ofFn]
    exact hω x t

private theorem exists_atMost_all (f : Fin n → R) : ∃ ω : R, 0 ≤ ω ∧ ∀ i, AtMost ω (f i) := by
  suffices h : ∀ xs : List (Fin n), ∃ ω : R, 0 ≤ ω ∧ ∀ i ∈ xs, AtMost ω (f i) by
    obtain ⟨ω, h₀, hω⟩ := h (List.finRange n)
    exact ⟨ω, h₀, fun i => hω i (List.mem_finRange i)⟩
  intro xs
  induction xs with
  | nil => exact ⟨0, Std.le_refl _, by simp⟩
  | cons x xs ih =>
    obtain ⟨ω, h₀, hω⟩ := ih
    have one : ∃ a : R, 0 ≤ a ∧ AtMost a (f x) := by
      rcases Std.le_total (a := 0) (b := f x) with hx | hx
      · exact ⟨f x, hx, by grind, Std.le_refl _⟩
      · exact ⟨-f x, by grind, by grind, by grind⟩
    obtain ⟨a, ha, hx⟩ := one
    refine ⟨ω + a, by grind, ?_⟩
    simp only [List.mem_cons, forall_eq_or_imp]
    exact ⟨hx.mono (by grind), fun i hi => (hω i hi).mono (by grind)⟩

/-- For every ε there is a δ such that rows of the heads that differ by at most δ give outputs that
differ by at most ε. -/
theorem exists_output_close (W : MultiHeadWeights S R h c_q c_k c_v d d_v d_o) {ε : R}
    (hε : 0 < ε) : ∃ δ : R, 0 < δ ∧ ∀ (n m : Nat) (heads : Fin h → Matrix R n d_v)
      (heads' : Fin h → Matrix R m d_v) (i : Fin n) (i' : Fin m),
      (∀ κ, ∀ t : Fin d_v, AtMost δ ((heads κ)[i][t] - (heads' κ)[i'][t])) → ∀ t : Fin d_o,
        AtMost ε ((W.output (Vec.ofFn heads))[i][t] - (W.output (Vec.ofFn heads'))[i'][t]) := by
  obtain ⟨ω, hω₀, hω⟩ : ∃ ω : R, 0 ≤ ω ∧
      ∀ x : Fin (h * d_v), ∀ t : Fin d_o, AtMost ω W.w_o[x][t] := by
    have rows := fun x : Fin (h * d_v) => exists_atMost_all fun t : Fin d_o => W.w_o[x][t]
    obtain ⟨ω, h₀, hω⟩ := exists_atMost_all fun x => (rows x).choose
    exact ⟨ω, h₀, fun x t => ((rows x).choose_spec.2 t).mono (hω x).2⟩
  have count : (0 : R) ≤ ((h * d_v : Nat) : R) := by
    have := sumOver_const (1 : R) (List.finRange (h * d_v))
    rw [List.length_finRange, Semiring.mul_one] at this
    rw [← this]
    exact sumOver_nonneg fun _ _ => Std.le_of_lt OrderedRing.zero_lt_one
  have hN := OrderedRing.mul_nonneg count hω₀
  have h₁ := OrderedRing.zero_lt_one (R := R)
  generalize hN' : ((h * d_v : Nat) : R) * ω = N at hN
  have pos : (0 : R) < N + 1 := by grind
  have cancel := OrderedField.mul_div_cancel (b := N + 1) (by grind) ε
  have hδ : 0 < ε / (N + 1) := by
    have := Field.IsOrdered.inv_pos_iff (a := N + 1)
    rw [Field.div_eq_mul_inv]
    exact OrderedRing.mul_pos hε (this.mpr pos)
  refine ⟨ε / (N + 1), hδ, fun n m heads heads' i i' close t => ?_⟩
  refine (output_close hω close t).mono ?_
  generalize ε / (N + 1) = δ at *
  have : ((h * d_v : Nat) : R) * (δ * ω) = N * δ := by rw [← hN']; grind
  rw [this]
  grind

private theorem exists_below (f : Fin n → R) : ∃ a, ∀ i, a ≤ f i := by
  obtain ⟨ω, -, hω⟩ := exists_atMost_all f
  exact ⟨-ω, fun i => (hω i).1⟩

variable [NaturalExp R]

/-- **Key-value deletion in the limit**: as the entries of column s of every head's mask tend to −∞,
masked multi-head attention tends to that without key s, its value and the columns, in every row
where every head has a key beside s that is not masked. So output i does not depend on key s and
value s in the limit. -/
theorem maskedMultiHeadAttention_delete_key_limit {scale : R} (hscale : 0 < scale)
    (B₀ : Fin h → Matrix (Option R) q_len (n + 1))
    (W : MultiHeadWeights R R h c_q c_k c_v d d_v d_o) (s : Fin (n + 1)) (Q : Matrix R q_len c_q)
    (K : Matrix R (n + 1) c_k) (V : Matrix R (n + 1) c_v) {ε : R} (hε : 0 < ε) :
    ∃ β : R, ∀ B : Fin h → Matrix (Option R) q_len (n + 1), ∀ i : Fin q_len,
      (∀ κ, ∃ j : Fin (n + 1), j ≠ s ∧ (B₀ κ)[i][j] ≠ none) →
      (∀ κ, ∀ j : Fin (n + 1), j ≠ s → (B κ)[i][j] = (B₀ κ)[i][j]) →
      (∀ κ, ∃ b, (B κ)[i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_o, AtMost ε ((maskedMultiHeadAttention scale B W Q K V)[i][t]
        - (maskedMultiHeadAttention scale (fun κ => Vec.map (deleteRow s) (B₀ κ)) W Q
            (deleteRow s K) (deleteRow s V))[i][t]) := by
  obtain ⟨δ, hδ, close⟩ := exists_output_close W hε
  have one := fun κ =>
    maskedWeightedAttention_delete_key_limit hscale (B₀ κ) (W.head κ) s Q K V hδ
  obtain ⟨β, hβ⟩ := exists_below fun κ => (one κ).choose
  refine ⟨β, fun B i other same hs => close _ _ _ _ i i fun κ => ?_⟩
  obtain ⟨b, hb, hb'⟩ := hs κ
  exact (one κ).choose_spec (B κ) i (other κ) (same κ) ⟨b, hb, Std.le_trans hb' (hβ κ)⟩

/-- So it does not depend on key s and value s in the limit: as entry (i, s) of every head's mask
tends to −∞, outputs of keys and values that differ at s alone come as close as one likes. -/
theorem maskedMultiHeadAttention_suppressed_limit {scale : R} (hscale : 0 < scale)
    (B₀ : Fin h → Matrix (Option R) q_len (n + 1))
    (W : MultiHeadWeights R R h c_q c_k c_v d d_v d_o) (s : Fin (n + 1)) (Q : Matrix R q_len c_q)
    {K K' : Matrix R (n + 1) c_k} {V V' : Matrix R (n + 1) c_v}
    (hK : ∀ j, j ≠ s → K[j] = K'[j]) (hV : ∀ j, j ≠ s → V[j] = V'[j]) {ε : R} (hε : 0 < ε) :
    ∃ β : R, ∀ B : Fin h → Matrix (Option R) q_len (n + 1), ∀ i : Fin q_len,
      (∀ κ, ∃ j : Fin (n + 1), j ≠ s ∧ (B₀ κ)[i][j] ≠ none) →
      (∀ κ, ∀ j : Fin (n + 1), j ≠ s → (B κ)[i][j] = (B₀ κ)[i][j]) →
      (∀ κ, ∃ b, (B κ)[i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_o, AtMost ε ((maskedMultiHeadAttention scale B W Q K V)[i][t]
        - (maskedMultiHeadAttention scale B W Q K' V')[i][t]) := by
  have without : ∀ {m : Nat} {X X' : Matrix R (n + 1) m}, (∀ j, j ≠ s → X[j] = X'[j]) →
      deleteRow s X = deleteRow s X' := fun h => Vector.ext fun j hj => by
    rw [deleteRow, deleteRow, getElem_reindex, getElem_reindex]
    exact h _ ((skip_ne_iff s s).mpr rfl _)
  have half : 0 < ε / 2 ∧ ε / 2 + ε / 2 = ε := ⟨by grind, by grind⟩
  obtain ⟨β, hβ⟩ := maskedMultiHeadAttention_delete_key_limit hscale B₀ W s Q K V half.1
  obtain ⟨β', hβ'⟩ := maskedMultiHeadAttention_delete_key_limit hscale B₀ W s Q K' V' half.1
  obtain ⟨a, ha, ha'⟩ : ∃ a, a ≤ β ∧ a ≤ β' := by
    rcases Std.le_total (a := β) (b := β') with h | h
    · exact ⟨β, Std.le_refl _, h⟩
    · exact ⟨β', h, Std.le_refl _⟩
  refine ⟨a, fun B i other same hs t => ?_⟩
  have small : ∀ {γ : R}, a ≤ γ → ∀ κ, ∃ b, (B κ)[i][s] = some b ∧ b ≤ γ := fun h κ => by
    obtain ⟨b, hb, hb'⟩ := hs κ
    exact ⟨b, hb, Std.le_trans hb' h⟩
  have e := hβ B i other same (small ha) t
  have e' := hβ' B i other same (small ha') t
  rw [without hK, without hV] at e
  have difference := e.sub e'
  rw [half.2] at difference
  have common : ∀ x y z : R, x - z - (y - z) = x - y := fun x y z => by grind
  rwa [common] at difference

/-- In self-attention every head has that key, if each input may attend to itself: as entry (i, s)
of every head's mask tends to −∞, for an i ≠ s, output i tends to that without the key and the value
of input s. -/
theorem maskedMultiHeadSelfAttention_suppressed_limit (ι : R → R) {scale : R} (hscale : 0 < scale)
    (B₀ : Fin h → Matrix (Option R) (n + 1) (n + 1))
    (W : MultiHeadWeights R R h c c c d d_v d_o) (s : Fin (n + 1)) (X : Matrix R (n + 1) c) {ε : R}
    (hε : 0 < ε) :
    ∃ β : R, ∀ B : Fin h → Matrix (Option R) (n + 1) (n + 1), ∀ i : Fin (n + 1), i ≠ s →
      (∀ κ, (B₀ κ)[i][i] ≠ none) →
      (∀ κ, ∀ j : Fin (n + 1), j ≠ s → (B κ)[i][j] = (B₀ κ)[i][j]) →
      (∀ κ, ∃ b, (B κ)[i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_o, AtMost ε ((maskedMultiHeadSelfAttention ι scale B W X)[i][t]
        - (maskedMultiHeadAttention scale (fun κ => Vec.map (deleteRow s) (B₀ κ)) W X
            (deleteRow s X) (deleteRow s (Vec.map (Vec.map ι) X)))[i][t]) := by
  obtain ⟨β, hβ⟩ := maskedMultiHeadAttention_delete_key_limit hscale B₀ W s X X
    (Vec.map (Vec.map ι) X) hε
  exact ⟨β, fun B i his self => hβ B i fun κ => ⟨i, his, self κ⟩⟩

/-- **Input deletion in the limit**: as the entries of the other inputs for s tend to −∞ in every
head, masked multi-head self-attention without row s tends to that of the inputs without s, in every
row where every head has an input beside s that is not masked. -/
theorem maskedMultiHeadSelfAttention_delete_limit (ι : R → R) {scale : R} (hscale : 0 < scale)
    (B₀ : Fin h → Matrix (Option R) (n + 1) (n + 1))
    (W : MultiHeadWeights R R h c c c d d_v d_o) (s : Fin (n + 1)) (X : Matrix R (n + 1) c) {ε : R}
    (hε : 0 < ε) :
    ∃ β : R, ∀ B : Fin h → Matrix (Option R) (n + 1) (n + 1), ∀ i : Fin n,
      (∀ κ, ∃ j : Fin (n + 1), j ≠ s ∧ (B₀ κ)[skip s i][j] ≠ none) →
      (∀ κ, ∀ j : Fin (n + 1), j ≠ s → (B κ)[skip s i][j] = (B₀ κ)[skip s i][j]) →
      (∀ κ, ∃ b, (B κ)[skip s i][s] = some b ∧ b ≤ β) →
      ∀ t : Fin d_o, AtMost ε ((deleteRow s (maskedMultiHeadSelfAttention ι scale B W X))[i][t]
        - (maskedMultiHeadSelfAttention ι scale
            (fun κ => deleteRow s (Vec.map (deleteRow s) (B₀ κ))) W (deleteRow s X))[i][t]) := by
  obtain ⟨δ, hδ, close⟩ := exists_output_close W hε
  have one := fun κ => maskedSelfAttention_delete_limit ι hscale (B₀ κ) (W.head κ) s X hδ
  obtain ⟨β, hβ⟩ := exists_below fun κ => (one κ).choose
  refine ⟨β, fun B i other same hs => ?_⟩
  have h := close _ _ (fun κ => maskedSelfAttention ι scale (B κ) (W.head κ) X)
    (fun κ => maskedSelfAttention ι scale (deleteRow s (Vec.map (deleteRow s) (B₀ κ))) (W.head κ)
      (deleteRow s X)) (skip s i) i fun κ t => by
    obtain ⟨b, hb, hb'⟩ := hs κ
    have := (one κ).choose_spec (B κ) i (other κ) (same κ) ⟨b, hb, Std.le_trans hb' (hβ κ)⟩ t
    simpa only [deleteRow, Fin.getElem_fin, getElem_reindex] using this
  intro t
  have := h t
  simpa only [deleteRow, Fin.getElem_fin, getElem_reindex] using this

end Attention.Claims
