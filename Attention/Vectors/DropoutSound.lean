module

public import Attention.Proof.Dropout.Basic
public import Attention.Vectors.Dropout
public import Attention.Vectors.HeadsSound

public section

/-! # What runs is what is proved: dropout

`DropoutCase.run` makes the exact vectors of attention with dropout. -/

namespace Attention.Vectors

open Spec Proof

/-- Whatever definition runs, it gives attention with the factors of the mask. -/
theorem DropoutAlgorithm.run_eq {q_len kv_len d d_v : Nat} {algorithm : DropoutAlgorithm}
    (fits : algorithm.Fits) (scale : Int) (modify : ScoreMod Int q_len kv_len)
    (Q : Matrix Int q_len d) (K : Matrix Int kv_len d) (V : Matrix Rat kv_len d_v) (p : Rat)
    (threshold seed head : Nat) :
    algorithm.run scale modify Q K V p threshold seed head = (attentionDropout scale modify Q K V
      (.dropout p (keepMask threshold seed head))).toList := by
  cases algorithm with
  | formula => rfl
  | tiles block_m block_n =>
    exact flashDropout_eq_attentionDropout scale modify Q K V _ fits.1 fits.2
  | drawn block_m block_n =>
    exact flashDrawn_eq_attentionDropout scale modify Q K V p threshold seed head fits.1 fits.2

private theorem map_zip_toList {α β : Type} {n : Nat} (f : Fin n × α → β) (A : Vector α n) :
    ((List.finRange n).zip A.toList).map f = (List.finRange n).map fun i => f (i, A[i]) :=
  List.ext_getElem (by simp) fun i _ _ => by simp

namespace DropoutCase

/-- Which weights of a head are kept. -/
@[expose] def mask (c : DropoutCase) (head : Nat) : Mask c.forward.q_len c.forward.kv_len :=
  keepMask (keepThreshold c.p.num.toNat c.p.den) c.seed head

/-- **dropout-vectors-sound**: if the program gives results for a case with dropout, Q, K and V are
heads of the rows of the case, it lists the weights that the generator keeps, the outputs are the
rows of attention with those weights alone, divided by 1 − p, and beside each are the largest score
of that row of keys and the denominator against it, without dropout. -/
theorem run_sound {c : DropoutCase} {result : DropoutResult} (h : c.run = .ok result) :
    let f := c.forward
    let heads := f.num_kv_heads * f.group
    let modify : ScoreMod Int f.q_len f.kv_len := f.mask.toMask.toScoreMod
    ∃ (Q : Vector (Matrix Int f.q_len f.head_dim) heads)
      (K : Vector (Matrix Int f.kv_len f.head_dim) f.num_kv_heads)
      (V : Vector (Matrix Rat f.kv_len f.value_dim) f.num_kv_heads),
      Q.toList.map rowsOf = f.q ∧ K.toList.map rowsOf = f.k ∧ V.toList.map rowsOf = f.v ∧
      result.keep = ((List.finRange heads).map fun (g : Fin heads) =>
        (List.finRange f.q_len).map fun i =>
        (List.finRange f.kv_len).map (c.mask g.val i)) ∧
      result.rows.map (·.map (·.output)) = ((List.finRange heads).map fun g => rowsOf
        (attentionDropout f.scale modify Q[g] K[kvHead g] V[kvHead g]
          (WeightFactor.dropout c.p (c.mask g.val)))) ∧
      ∀ (g : Fin heads) (i : Fin f.q_len) (r : RowResult),
        (result.rows[g.val]?.bind (·[i.val]?)) = some r →
        r.Describes (scored f.scale modify Q[g] K[kvHead g] V[kvHead g] i
          (List.finRange f.kv_len)) := by
  intro f heads modify
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain ⟨threshold, ht, h⟩ := bind_ok h
  obtain ⟨-, h⟩ := check_ok h
  obtain ⟨fits, h⟩ := check_ok h
  obtain ⟨-, h⟩ := check_ok h
  rw [thresholdOf] at ht
  split at ht
  case isFalse => cases ht
  case isTrue =>
  obtain rfl := Except.ok.inj ht
  obtain rfl := Except.ok.inj h
  refine ⟨Q, K, V, toHeads_rows hQ, toHeads_rows hK, toHeads_rows hV, rfl, ?_⟩
  simp only [c.algorithm.run_eq fits, map_zip_toList]
  refine ⟨?_, fun g i r hr => ?_⟩
  · rw [List.map_map]
    refine List.map_congr_left fun g _ => ?_
    refine List.ext_getElem (by simp [rowsOf, f]) fun i _ _ => ?_
    simp [rowResult, rowsOf, mask, f, modify]
    rfl
  · rw [List.getElem?_map] at hr
    obtain rfl : _ = r := by simpa [heads, f] using hr
    exact rowResult_describes _ _

end DropoutCase

end Attention.Vectors
