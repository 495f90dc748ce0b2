module

public import Attention.Vectors.DropoutSound
public import Attention.Vectors.GradientSound

public section

/-! # Programs of several heads, of dropout and of gradients, with what their theorems do not let
through -/

namespace Attention.WrongVariants

open Spec Vectors

/-- The statement of `heads-vectors-sound` about the outputs, for any program. -/
abbrev SoundHeads (run : HeadsCase → Except String (List (List RowResult))) : Prop :=
  ∀ (c : HeadsCase) (results : List (List RowResult)), run c = .ok results →
    ∃ (Q : Vector (Matrix Int c.q_len c.head_dim) (c.num_kv_heads * c.group))
      (K : Vector (Matrix Int c.kv_len c.head_dim) c.num_kv_heads)
      (V : Vector (Matrix Rat c.kv_len c.value_dim) c.num_kv_heads),
      Q.toList.map rowsOf = c.q ∧ K.toList.map rowsOf = c.k ∧ V.toList.map rowsOf = c.v ∧
      results.map (·.map (·.output))
        = (groupedQuery c.scale (fun _ => c.mask.toMask.toScoreMod) Q K V).toList.map rowsOf

/-- Positive control. -/
theorem run_soundHeads : SoundHeads HeadsCase.run := fun _ _ h =>
  let ⟨Q, K, V, hQ, hK, hV, ho, _⟩ := HeadsCase.run_sound h
  ⟨Q, K, V, hQ, hK, hV, ho⟩

/-- The program that gives the heads from the last to the first. -/
@[expose] def runReversedHeads (c : HeadsCase) : Except String (List (List RowResult)) :=
  c.run.map (·.reverse)

/-- Two heads of one query and one key, with values 1 and 2. -/
@[expose] def twoHeads : HeadsCase :=
  { reason := "", num_kv_heads := 2, group := 1, q_len := 1, kv_len := 1, head_dim := 1
    value_dim := 1, q := [[[0]], [[0]]], k := [[[0]], [[0]]], v := [[[1]], [[2]]]
    algorithm := .grouped }

private theorem heads_inj {α : Type} {heads m n : Nat} {A B : Vector (Matrix α m n) heads}
    (h : A.toList.map rowsOf = B.toList.map rowsOf) : A = B :=
  Vector.toList_inj.mp ((List.map_inj_right fun _ _ => rowsOf_inj).mp h)

theorem runReversedHeads_refuted : ¬ SoundHeads runReversedHeads := fun h => by
  have hf : (runReversedHeads twoHeads).toOption.map (·.map (·.map (·.output)))
      = some [[[2]], [[1]]] := by decide +kernel
  cases hr : runReversedHeads twoHeads with
  | error e => rw [hr] at hf; cases hf
  | ok results =>
    rw [hr] at hf
    obtain ⟨Q, K, V, hQ, hK, hV, ho⟩ := h _ _ hr
    obtain rfl := heads_inj (B := (#v[#v[#v[0]], #v[#v[0]]] : Vector (Matrix Int 1 1) 2)) hQ
    obtain rfl := heads_inj (B := (#v[#v[#v[0]], #v[#v[0]]] : Vector (Matrix Int 1 1) 2)) hK
    obtain rfl := heads_inj (B := (#v[#v[#v[1]], #v[#v[2]]] : Vector (Matrix Rat 1 1) 2)) hV
    simp only [Except.toOption, Option.map_some, Option.some.injEq] at hf
    rw [ho] at hf
    exact absurd hf (by decide +kernel)

/-- All pairs of one query and one key. -/
abbrev onePair : Mask 1 1 := Mask.full

/-- The tile loops of the program for one query with one key, whatever the tiles. -/
@[expose] def loopsOfOne (keys queries : Nat × Nat) : Except String GradientResult :=
  GradientCase.runTiles 1 onePair #v[#v[0]] #v[#v[0]] #v[#v[1]] (fun _ _ => 1) #v[#v[1]] #v[1]
    fun L O => flashBackward (fun (x : Int) => (x : Rat)) 1 (fun _ _ s => some s) onePair
      ScoreSlope.one #v[#v[0]] #v[#v[0]] #v[#v[1]] (fun _ _ => 1) L #v[#v[1]]
      (GradientCase.loopOf keys.1 keys.2 1 fun u t => tileKind onePair keys.2 keys.1 t u)
      (GradientCase.loopOf queries.1 queries.2 1 fun t u =>
        tileKind onePair queries.1 queries.2 t u) O #v[1]

/-- They give the gradient by the values. -/
abbrev GivesValueGradient (keys queries : Nat × Nat) : Prop :=
  (loopsOfOne keys queries).toOption.map (·.dV)
    = some [rowsOf (vjpDropout 1 onePair.toScoreMod ScoreSlope.one
      (#v[#v[0]] : Matrix Int 1 1) #v[#v[0]] (#v[#v[1]] : Matrix Rat 1 1) (fun _ _ => 1)
      (fun (x : Int) => (x : Rat)) #v[#v[1]] #v[1]).dV]

/-- Positive control: tiles of one. -/
theorem tilesOfOne_give_gradient : GivesValueGradient (1, 1) (1, 1) := by decide +kernel

/-- Tiles of no keys, which the program refuses: the gradient has no row. -/
theorem emptyTiles_loops_refuted : ¬ ∀ keys queries, GivesValueGradient keys queries :=
  fun h => absurd (h (0, 1) (1, 1)) (by decide +kernel)

/-! ## Dropout -/

/-- The statement of `dropout-vectors-sound` about the outputs, for any program. -/
abbrev SoundDropout (run : DropoutCase → Except String DropoutResult) : Prop :=
  ∀ (c : DropoutCase) (result : DropoutResult), run c = .ok result →
    let f := c.forward
    let heads := f.num_kv_heads * f.group
    ∃ (Q : Vector (Matrix Int f.q_len f.head_dim) heads)
      (K : Vector (Matrix Int f.kv_len f.head_dim) f.num_kv_heads)
      (V : Vector (Matrix Rat f.kv_len f.value_dim) f.num_kv_heads),
      Q.toList.map rowsOf = f.q ∧ K.toList.map rowsOf = f.k ∧ V.toList.map rowsOf = f.v ∧
      result.rows.map (·.map (·.output)) = ((List.finRange heads).map fun g => rowsOf
        (attentionDropout f.scale f.mask.toMask.toScoreMod Q[g] K[kvHead g] V[kvHead g]
          (WeightFactor.dropout c.p (c.mask g.val))))

/-- Positive control. -/
theorem run_soundDropout : SoundDropout DropoutCase.run := fun _ _ h =>
  let ⟨Q, K, V, hQ, hK, hV, _, ho, _⟩ := DropoutCase.run_sound h
  ⟨Q, K, V, hQ, hK, hV, ho⟩

/-- The program that drops nothing. -/
@[expose] def runWithoutDropout (c : DropoutCase) : Except String DropoutResult :=
  DropoutCase.run { c with p := 0 }

/-- One query and one key, whose weight is dropped with certainty. -/
@[expose] def allDropped : DropoutCase :=
  { forward := { reason := "", num_kv_heads := 1, group := 1, q_len := 1, kv_len := 1
                 head_dim := 1, value_dim := 1, q := [[[0]]], k := [[[0]]], v := [[[1]]]
                 algorithm := .grouped }
    p := 1, seed := 0, algorithm := .formula }

theorem runWithoutDropout_refuted : ¬ SoundDropout runWithoutDropout := fun h => by
  have hf : (runWithoutDropout allDropped).toOption.map (·.rows.map (·.map (·.output)))
      = some [[[1]]] := by decide +kernel
  cases hr : runWithoutDropout allDropped with
  | error e => rw [hr] at hf; cases hf
  | ok result =>
    rw [hr] at hf
    obtain ⟨Q, K, V, hQ, hK, hV, ho⟩ := h _ _ hr
    obtain rfl := heads_inj (B := (#v[#v[#v[0]]] : Vector (Matrix Int 1 1) 1)) hQ
    obtain rfl := heads_inj (B := (#v[#v[#v[0]]] : Vector (Matrix Int 1 1) 1)) hK
    obtain rfl := heads_inj (B := (#v[#v[#v[1]]] : Vector (Matrix Rat 1 1) 1)) hV
    simp only [Except.toOption, Option.map_some, Option.some.injEq] at hf
    rw [ho] at hf
    exact absurd hf (by decide +kernel)

end Attention.WrongVariants
