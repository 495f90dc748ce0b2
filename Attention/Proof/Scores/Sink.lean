module

public import Attention.Spec.Sink
public import Attention.Proof.Flash.Basic

public section

/-! # What a sink does to attention -/

namespace Attention.Proof

open Spec Spec.Online Exponential Lean.Grind

universe u v

variable {S : Type u} {R : Type v} [OrderedCommRing S] [OrderedField R] [Exponential S R]
variable {d d_v q_len kv_len : Nat}

private theorem denominator_sink (sink : S) (row : List (Option S)) :
    (denominator (some sink :: row) : R) = denominator row + exp sink := by
  rw [denominator, sumOver_cons, Semiring.add_comm]
  rfl

/-- With a sink, a component of a row's attention is its numerator divided by the denominator plus
exp sink. -/
theorem getElem_attend_withSink (sink : S) (row : List (ScoredValue S R d)) {j : Nat} (h : j < d) :
    (attend (withSink sink row))[j]
      = numerator row j h / (denominator (row.map (·.score)) + exp sink) := by
  rw [getElem_attend, withSink, List.map_cons, denominator_sink, numerator, sumOver_cons,
    Vec.getElem_zero, Semiring.mul_zero, AddCommMonoid.zero_add, numerator]

/-- **sink**: with a sink, component j of row i is Σₖ wₖ vₖⱼ / (Σₖ wₖ + exp sink), where wₖ is exp
of the score of i and k, and 0 if it is masked. -/
theorem attentionSink_formula (scale : S) (modify : ScoreMod S q_len kv_len) (sink : S)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (i : Fin q_len) (j : Fin d_v) :
    let w : Fin kv_len → R := fun k =>
      match modify i k (scale * sumOver (fun t => Q[i][t] * K[k][t]) (List.finRange d)) with
      | none => 0
      | some s => exp s
    (attentionSink scale modify sink Q K V)[i][j]
      = sumOver (fun k => w k * V[k][j]) (List.finRange kv_len)
        / (sumOver w (List.finRange kv_len) + exp sink) := by
  intro w
  have hw : ∀ k, weight (score scale modify Q K i k) = w k := fun k => rfl
  simp only [attentionSink, Fin.getElem_fin, Vec.getElem_ofFn, getElem_attend_withSink, numerator,
    denominator, scored, List.map_map, sumOver_map]
  exact congr (congrArg HDiv.hDiv (sumOver_congr fun k _ => congrArg (· * _) (hw k)))
    (congrArg (· + _) (sumOver_congr fun k _ => hw k))

/-- **sink-weights**: beside a sink the softmax weights of the keys sum to Σ w / (Σ w + exp sink),
which is less than 1. -/
theorem sink_weights (sink : S) (row : List (Option S)) :
    sumOver (fun p : R => p) (softmax (some sink :: row)).tail
        = denominator row / (denominator row + exp sink) ∧
      sumOver (fun p : R => p) (softmax (some sink :: row)).tail < 1 := by
  have h₁ := (softmax_sum_one (R := R) (some sink :: row)).1 ⟨sink, by simp⟩
  have h₂ := denominator_pos (R := R) (s := sink) (row := some sink :: row) (by simp)
  have h₃ : (0 : R) < exp sink / denominator (some sink :: row) := by
    rw [Field.div_eq_mul_inv]
    exact OrderedRing.mul_pos (exp_pos sink) (Field.IsOrdered.inv_pos_iff.mpr h₂)
  rw [softmax_eq, List.map_cons, sumOver_cons] at h₁
  rw [softmax_eq, List.map_cons, List.tail_cons, sumOver_map, ← denominator_sink]
  rw [sumOver_map] at h₁
  constructor
  · have h : ∀ s : Option S, (weight s : R) / denominator (some sink :: row)
        = (denominator (some sink :: row))⁻¹ * weight s := fun s => by
      rw [Field.div_eq_mul_inv, CommSemiring.mul_comm]
    simp only [h]
    rw [sumOver_mul_left, Field.div_eq_mul_inv, CommSemiring.mul_comm]
    rfl
  · change exp sink / denominator (some sink :: row) + _ = 1 at h₁
    generalize (exp sink / denominator (some sink :: row) : R) = x at h₁ h₃
    generalize sumOver _ row = y at h₁ ⊢
    grind

/-- A row with every key masked has attention 0 beside a sink. -/
theorem attend_withSink_masked (sink : S) {row : List (ScoredValue S R d)}
    (h : ∀ key ∈ row, key.score = none) : attend (withSink sink row) = Vec.zero := by
  refine Vector.ext fun j hj => ?_
  have h₀ : numerator row j hj = 0 := sumOver_eq_zero fun key hk => by
    rw [h key hk, weight, Semiring.zero_mul]
  rw [getElem_attend_withSink, h₀, Vec.getElem_zero, Field.div_eq_mul_inv, Semiring.zero_mul]

/-- A sink shrinks attention by the share of the keys in the softmax. -/
theorem attend_withSink_eq_smul (sink : S) (row : List (ScoredValue S R d)) :
    attend (withSink sink row)
      = Vec.smul (denominator (row.map (·.score)) / (denominator (row.map (·.score)) + exp sink))
          (attend row) := by
  refine Vector.ext fun j hj => ?_
  by_cases h : ∀ key ∈ row, key.score = none
  · rw [attend_withSink_masked sink h, attend_masked h, Vec.getElem_smul, Vec.getElem_zero,
      Semiring.mul_zero]
  · obtain ⟨s, hs⟩ : ∃ s, some s ∈ row.map (·.score) := by
      obtain ⟨key, hk⟩ := Classical.not_forall.mp h
      obtain ⟨hk, hs⟩ := Classical.not_imp.mp hk
      obtain ⟨s, hs⟩ := Option.ne_none_iff_exists'.mp hs
      exact ⟨s, hs ▸ List.mem_map_of_mem hk⟩
    have := denominator_pos (R := R) hs
    rw [getElem_attend_withSink, Vec.getElem_smul, getElem_attend]
    generalize (denominator (row.map (·.score)) : R) = l at this
    generalize numerator row j hj = n
    have h₀ : l ≠ 0 := by grind
    rw [Field.div_eq_mul_inv, Field.div_eq_mul_inv, Field.div_eq_mul_inv]
    grind

/-- The state of a sink is that of a block: a key with score `sink` and value 0. -/
theorem sinkState_eq_ofBlock (sink : S) :
    (sinkState sink : State S R d) = ofBlock [⟨some sink, Vec.zero⟩] := by
  refine state_ext rfl ?_ fun j hj => ?_
  · simp only [sinkState, ofBlock, List.map_cons, List.map_nil, rowMax, maxScore_none_right,
      sumOver_cons, sumOver_nil, rescale_self, Semiring.add_zero]
  · simp only [sinkState, ofBlock_o, sumOver_cons, sumOver_nil, Vec.getElem_zero,
      Semiring.mul_zero, Semiring.add_zero]

/-- **sink-online**: online softmax that starts from (sink, 1, 0) computes attention with the sink,
over any partition of the row into consecutive blocks. -/
theorem onlineSink_any_blocks (sink : S) (blocks : List (List (ScoredValue S R d))) :
    finish (onlineSink sink blocks) = attend (withSink sink blocks.flatten) := by
  have h := online_any_blocks ([(⟨some sink, Vec.zero⟩ : ScoredValue S R d)] :: blocks)
  have h₀ : stepBlock empty [(⟨some sink, Vec.zero⟩ : ScoredValue S R d)] = sinkState sink := by
    rw [sinkState_eq_ofBlock, ← ofBlock_nil, stepBlock_ofBlock, List.nil_append]
  rw [online, List.foldl_cons, h₀] at h
  exact h

/-- The sink may as well be merged at the end. -/
theorem merge_sinkState (sink : S) (blocks : List (List (ScoredValue S R d))) :
    merge (online blocks) (sinkState sink) = onlineSink sink blocks := by
  have h : ∀ pre : List (ScoredValue S R d),
      blocks.foldl stepBlock (ofBlock pre) = merge (ofBlock pre) (online blocks) := by
    intro pre
    rw [online_eq_ofBlock, merge_homomorphism]
    induction blocks generalizing pre with
    | nil => simp
    | cons block blocks ih => simp [stepBlock_ofBlock, ih]
  rw [onlineSink, sinkState_eq_ofBlock, h, online_eq_ofBlock, merge_ofBlock_comm]

/-- **flash-sink**: for all sizes, tile sizes of at least 1 and score transformations, the tile loop
that starts each row from (sink, 1, 0) computes attention with the sink. -/
theorem flashSink_eq_attentionSink (scale : S) (modify : ScoreMod S q_len kv_len) (sink : S)
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    {block_m block_n : Nat} (hm : 0 < block_m) (hn : 0 < block_n) :
    flashSink scale modify sink Q K V block_m block_n
      = (attentionSink scale modify sink Q K V).toList := by
  rw [flashSink, tileLoop_eq _ _ hm, List.map_map]
  refine List.ext_getElem (by simp) fun i _ _ => ?_
  have := onlineSink_any_blocks sink
    ((tiles block_n (List.finRange kv_len)).map (scored scale modify Q K V ⟨i, by simp_all⟩))
  rw [flatten_map_scored, tiles_flatten hn, onlineSink] at this
  simpa [attentionSink] using this

end Attention.Proof
