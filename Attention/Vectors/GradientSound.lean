module

public import Attention.Proof.Backward.OneLoop
public import Attention.Vectors.Gradient
public import Attention.Vectors.HeadsSound

public section

/-! # What runs is what is proved: the backward pass

`GradientCase.run` makes the exact vectors of gradients. -/

namespace Attention.Vectors

open Spec Proof

variable {q_len kv_len d d_v num_kv_heads group : Nat}

/-! ## One head -/

/-- The log-sum-exps that the program has found are those of the rows. -/
theorem logSumExps_ok {rows : List (List (Option Int))} {Ls : List (Option Int)}
    (h : GradientCase.logSumExps rows = .ok Ls) :
    ∃ hlen : Ls.length = rows.length, ∀ i (hi : i < Ls.length),
      IsLogSumExp Rat Ls[i] (rows[i]'(hlen ▸ hi)) := by
  obtain ⟨hlen, each⟩ := mapM_ok h
  refine ⟨hlen, fun i hi => ?_⟩
  have h := each i hi
  simp only at h
  split at h
  case isTrue isLse =>
    rw [← Except.ok.inj h]
    exact isLse
  case isFalse => cases h

/-- The gradients of the only head, as a result. -/
@[expose] def resultOfOne (g : Gradients Rat q_len kv_len d d_v) : GradientResult :=
  ⟨[rowsOf g.dQ], [rowsOf g.dK], [rowsOf g.dV], [rowsOf g.dBias], []⟩

/-- Tile loops that compute the gradients from the output and the log-sum-exp give them. -/
theorem runTiles_ok {scale : Int} {mask : Mask q_len kv_len} {Q : Matrix Int q_len d}
    {K : Matrix Int kv_len d} {V : Matrix Rat kv_len d_v} {Z : WeightFactor Rat q_len kv_len}
    {dO : Matrix Rat q_len d_v} {dLse : Vec Rat q_len}
    {loops : Vector (Option Int) q_len → Matrix Rat q_len d_v →
      List (Vec Rat d) × List (Vec Rat d) × List (Vec Rat d_v)} {result : GradientResult}
    (h : GradientCase.runTiles scale mask Q K V Z dO dLse loops = .ok result)
    (right : ∀ L : Vector (Option Int) q_len, (∀ i : Fin q_len, IsLogSumExp Rat L[i]
        ((List.finRange kv_len).map (score scale mask.toScoreMod Q K i))) →
      let g := vjpDropout scale mask.toScoreMod ScoreSlope.one Q K V Z
        (fun (x : Int) => (x : Rat)) dO dLse
      loops L (attentionDropout scale mask.toScoreMod Q K V Z)
        = (g.dQ.toList, g.dK.toList, g.dV.toList)) :
    result = resultOfOne (vjpDropout scale mask.toScoreMod ScoreSlope.one Q K V Z
      (fun (x : Int) => (x : Rat)) dO dLse) := by
  rw [GradientCase.runTiles] at h
  obtain ⟨Ls, hLs, h⟩ := bind_ok h
  obtain ⟨hlen, each⟩ := logSumExps_ok hLs
  have hL := right (Vec.ofFn fun i => Ls[i.val]!) fun i => by
    have hi : i.val < Ls.length := by simp [hlen]
    have := each i.val hi
    simpa [hi] using this
  simp only [hL] at h
  exact (Except.ok.inj h).symm

/-- The tile loops of the program. -/
theorem runTiles_flashBackward {scale : Int} {mask : Mask q_len kv_len} {Q : Matrix Int q_len d}
    {K : Matrix Int kv_len d} {V : Matrix Rat kv_len d_v} {Z : WeightFactor Rat q_len kv_len}
    {dO : Matrix Rat q_len d_v} {dLse : Vec Rat q_len} {keys queries : Nat × Nat}
    (hk : 0 < keys.1 ∧ 0 < keys.2) (hq : 0 < queries.1 ∧ 0 < queries.2) {result : GradientResult}
    (h : GradientCase.runTiles scale mask Q K V Z dO dLse (fun L O =>
      flashBackward (fun (x : Int) => (x : Rat)) scale (fun _ _ s => some s) mask
        ScoreSlope.one Q K V Z L dO
        (GradientCase.loopOf keys.1 keys.2 q_len fun u t => tileKind mask keys.2 keys.1 t u)
        (GradientCase.loopOf queries.1 queries.2 kv_len fun t u =>
          tileKind mask queries.1 queries.2 t u) O dLse) = .ok result) :
    result = resultOfOne (vjpDropout scale mask.toScoreMod ScoreSlope.one Q K V Z
      (fun (x : Int) => (x : Rat)) dO dLse) := by
  refine runTiles_ok h fun L hL => ?_
  refine flashBackward_eq_vjpDropout _ scale (fun _ _ s => some s) ScoreSlope.one Q K V Z L dO
    hk.1 hk.2 hq.1 hq.2 ⟨fun u t h j hj i hi => ?_, fun u t _ h j hj i hi => ?_⟩
    (sound_tileKind mask hq.2) hL dLse
  · rcases h with h | h
    · have ht : ¬ t < numTiles q_len keys.2 := by
        simpa [GradientCase.loopOf, TileRange.contains] using h
      have := (mem_tile.mp hi).1
      exact absurd ((lt_numTiles hk.2).mpr (Nat.lt_of_le_of_lt this i.isLt)) ht
    · exact (tileKind_sound mask hi hj).1 h
  · exact (tileKind_sound mask hi hj).2 h

/-- The one loop of the program. -/
theorem runTiles_oneLoop {scale : Int} {mask : Mask q_len kv_len} {Q : Matrix Int q_len d}
    {K : Matrix Int kv_len d} {V : Matrix Rat kv_len d_v} {Z : WeightFactor Rat q_len kv_len}
    {dO : Matrix Rat q_len d_v} {dLse : Vec Rat q_len} {block_m block_n : Nat}
    (hm : 0 < block_m) (hn : 0 < block_n) {result : GradientResult}
    (h : GradientCase.runTiles scale mask Q K V Z dO dLse (fun L O =>
      flashBackwardOneLoop (fun (x : Int) => (x : Rat)) scale (fun _ _ s => some s) mask
        ScoreSlope.one Q K V Z L dO block_m block_n
        (fun u t => tileKind mask block_m block_n t u) O dLse) = .ok result) :
    result = resultOfOne (vjpDropout scale mask.toScoreMod ScoreSlope.one Q K V Z
      (fun (x : Int) => (x : Rat)) dO dLse) := by
  refine runTiles_ok h fun L hL => ?_
  exact flashBackwardOneLoop_eq_vjpDropout _ scale (fun _ _ s => some s) ScoreSlope.one Q K V Z L dO
    hm hn (fun u t i hi j hj => tileKind_sound mask hi hj) hL dLse

/-! ## The only head among all -/

private theorem ofHeads_one (each : Vector (Gradients Rat q_len kv_len d d_v) (1 * 1)) :
    GradientResult.ofHeads (groupGradients (num_kv_heads := 1) (group := 1) each)
      = resultOfOne each[0] := by
  have only : ∀ c : Fin 1, groupHeads 1 c = [⟨0, Nat.one_pos⟩] := fun c => by
    obtain rfl : c = 0 := Subsingleton.elim _ _
    rfl
  have sum : ∀ {m n : Nat} (X : Fin (1 * 1) → Matrix Rat m n) (c : Fin 1),
      sumMatrices X (groupHeads 1 c) = X ⟨0, Nat.one_pos⟩ := fun X c => by
    rw [only]
    refine Vector.ext fun i hi => Vector.ext fun j hj => ?_
    simp [sumMatrices, Vec.getElem_sumOver, sumOver, Rat.add_zero]
  have one : ∀ {α : Type} (f : Fin 1 → α), (Vec.ofFn f).toList = [f 0] := fun f =>
    List.ext_getElem (by simp) fun i hi _ => by
      obtain rfl : i = 0 := by simpa using hi
      simp
  simp only [GradientResult.ofHeads, groupGradients, resultOfOne, sum, one]
  rfl

/-- The program for the only head: the grouped gradients are its. -/
theorem oneHead_ok {α β γ δ ε : Type} {Q : Vector α (num_kv_heads * group)}
    {K : Vector β num_kv_heads} {V : Vector γ num_kv_heads}
    {dO : Vector δ (num_kv_heads * group)} {dLse : Vector ε (num_kv_heads * group)}
    {run : α → β → γ → δ → ε → Except String GradientResult} {result : GradientResult}
    (h : GradientCase.oneHead Q K V dO dLse run = .ok result)
    {each : Fin (num_kv_heads * group) → Gradients Rat q_len kv_len d d_v}
    (right : ∀ (g : Fin (num_kv_heads * group)), g.val = 0 →
      run Q[g] K[kvHead g] V[kvHead g] dO[g] dLse[g] = .ok result → result = resultOfOne (each g)) :
    result = .ofHeads (groupGradients (Vec.ofFn each)) := by
  simp only [GradientCase.oneHead] at h
  split at h
  case h_2 => cases h
  case h_1 Q' K' V' dO' dLse' hQ hK hV hdO hdLse =>
    have hk := congrArg List.length hK
    have hq := congrArg List.length hQ
    simp only [Vector.length_toList, List.length_singleton] at hk hq
    subst hk
    obtain rfl : group = 1 := by omega
    have get : ∀ {α : Type} {A : Vector α (1 * 1)} {a : α}, A.toList = [a] → A[0] = a :=
      fun {α A a} h => by
        have := congrArg (·[0]?) h
        simpa using this
    have get' : ∀ {α : Type} {A : Vector α 1} {a : α}, A.toList = [a] → A[0] = a :=
      fun {α A a} h => by
        have := congrArg (·[0]?) h
        simpa using this
    rw [← get hQ, ← get' hK, ← get' hV, ← get hdO, ← get hdLse] at h
    rw [ofHeads_one, Vec.getElem_ofFn]
    exact right ⟨0, Nat.one_pos⟩ rfl h

/-! ## The program -/

namespace GradientCase

/-- The factors of the weights of a head: 1 without dropout. -/
@[expose] def factor (c : GradientCase) (head : Nat) :
    WeightFactor Rat c.forward.q_len c.forward.kv_len :=
  match c.dropout with
  | none => fun _ _ => 1
  | some (p, seed) => .dropout p (keepMask (keepThreshold p.num.toNat p.den) seed head)

/-- The factors that the program finds are these. -/
theorem factors_ok {c : GradientCase}
    {Z : Nat → WeightFactor Rat c.forward.q_len c.forward.kv_len} (h : c.factors = .ok Z) :
    Z = c.factor := by
  funext head
  rw [factors] at h
  rw [factor]
  split at h
  case h_1 hd =>
    rw [← Except.ok.inj h, hd]
  case h_2 p seed hd =>
    obtain ⟨threshold, ht, h⟩ := bind_ok h
    rw [thresholdOf] at ht
    split at ht
    case isTrue =>
      rw [← Except.ok.inj h, hd, ← Except.ok.inj ht]
    case isFalse => cases ht

/-- **gradient-vectors-sound**: if the program gives results for a case of the backward pass, its
matrices hold the rows of the case, and the gradients are those of each query head by the formulas,
with the factors of dropout if there is any, those by keys and values summed over the heads that
share them; where heads have temperatures, those of the formulas with temperatures. -/
theorem run_sound {c : GradientCase} {result : GradientResult} (h : c.run = .ok result) :
    let f := c.forward
    let heads := f.num_kv_heads * f.group
    let modify : ScoreMod Int f.q_len f.kv_len := f.mask.toMask.toScoreMod
    ∃ (Q : Vector (Matrix Int f.q_len f.head_dim) heads)
      (K : Vector (Matrix Int f.kv_len f.head_dim) f.num_kv_heads)
      (V : Vector (Matrix Rat f.kv_len f.value_dim) f.num_kv_heads)
      (dO : Vector (Matrix Rat f.q_len f.value_dim) heads) (dLse : Matrix Rat heads f.q_len),
      Q.toList.map rowsOf = f.q ∧ K.toList.map rowsOf = f.k ∧ V.toList.map rowsOf = f.v ∧
      dO.toList.map rowsOf = c.dO ∧ rowsOf dLse = c.dLse ∧
      match c.algorithm with
      | .temperatures temperatures => ∃ ts : Vec Int heads, ts.toList = temperatures ∧
          let each : Vector (TemperatureGradients Rat f.q_len f.kv_len f.head_dim f.value_dim)
              heads := Vec.ofFn fun h => temperatureVjp f.scale ts[h] modify ScoreSlope.one Q[h]
            K[kvHead h] V[kvHead h] (fun (x : Int) => (x : Rat)) dO[h] dLse[h]
          let inputs : Vector (Gradients Rat f.q_len f.kv_len f.head_dim f.value_dim) heads :=
            Vec.ofFn fun h => each[h].inputs
          result = { GradientResult.ofHeads (groupGradients inputs) with
            perHead := [("temperature", each.toList.map (·.dTemperature))] }
      | _ =>
          let each : Vector (Gradients Rat f.q_len f.kv_len f.head_dim f.value_dim) heads :=
            Vec.ofFn fun h => vjpDropout f.scale modify ScoreSlope.one Q[h] K[kvHead h]
              V[kvHead h] (c.factor h) (fun (x : Int) => (x : Rat)) dO[h] dLse[h]
          result = .ofHeads (groupGradients each) := by
  intro f heads modify
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain ⟨dO, hdO, h⟩ := bind_ok h
  obtain ⟨dLse, hdLse, h⟩ := bind_ok h
  obtain ⟨Z, hZ, h⟩ := bind_ok h
  obtain ⟨fits, h⟩ := check_ok h
  obtain rfl := factors_ok hZ
  refine ⟨Q, K, V, dO, dLse, toHeads_rows hQ, toHeads_rows hK, toHeads_rows hV, toHeads_rows hdO,
    toMatrix_rows hdLse, ?_⟩
  cases ha : c.algorithm <;> rw [ha] at h fits
  case formulas =>
    cases hd : c.dropout <;> rw [hd] at h
    case none =>
      have one : c.factor = fun _ _ _ => 1 := by
        funext head
        rw [factor, hd]
      obtain rfl := Except.ok.inj h
      refine congrArg GradientResult.ofHeads
        (congrArg groupGradients (congrArg Vec.ofFn (funext fun h => ?_)))
      rw [one]
      exact (vjpDropout_one ..).symm
    case some => exact (Except.ok.inj h).symm
  case tiles keys queries =>
    refine oneHead_ok h fun g hg h => ?_
    obtain ⟨g, _⟩ := g
    obtain rfl : g = 0 := hg
    exact runTiles_flashBackward fits.1 fits.2 h
  case oneLoop block_m block_n =>
    refine oneHead_ok h fun g hg h => ?_
    obtain ⟨g, _⟩ := g
    obtain rfl : g = 0 := hg
    exact runTiles_oneLoop fits.1 fits.2 h
  case temperatures temperatures =>
    cases hd : c.dropout <;> rw [hd] at h
    case some => cases h
    case none =>
      obtain ⟨rows, hts, h⟩ := bind_ok h
      split at h
      case h_2 => cases h
      case h_1 ts =>
        obtain ⟨_, -, h⟩ := bind_ok h
        obtain ⟨_, -, h⟩ := bind_ok h
        obtain ⟨A, hA, hrows⟩ : ∃ A, toMatrix 1 (f.num_kv_heads * f.group) [temperatures] = .ok A ∧
            A.toList = [ts] := by
          cases hA : toMatrix 1 (f.num_kv_heads * f.group) [temperatures] with
          | error e => rw [hA] at hts; cases hts
          | ok A => rw [hA] at hts; exact ⟨A, rfl, Except.ok.inj hts⟩
        have := toMatrix_rows hA
        rw [rowsOf, hrows] at this
        exact ⟨ts, by simpa using this, (Except.ok.inj h).symm⟩

end GradientCase

end Attention.Vectors
