module

public import Attention.Vectors.ShardsSound

public section

/-! # The program of the vectors in shards, with what its theorem does not let through -/

namespace Attention.WrongVariants

open Spec Vectors

/-- The ring of one device with one query and one key. -/
abbrev ringOfOne : RingNet 1 2 1 (List (KeyValue Int Rat 1 1)) (List (Online.State Int Rat 1)) :=
  ringStart (ringProgram 1) #v[#v[0]] #v[#v[1]] (fun _ => List.finRange 1)
    (fun _ => List.finRange 1) fun _ => []

/-- The rules of that ring. -/
abbrev rulesOfOne :
    RingRules 1 1 (List (KeyValue Int Rat 1 1)) (List (Online.State Int Rat 1)) :=
  shardsRules (fun _ _ => true) 1 .none (#v[#v[0]] : Matrix Int 1 1) (fun _ => List.finRange 1)
    fun _ => List.finRange 1

/-- The program's result for that ring after so many events, without asking whether it has
come to its end, is attention. -/
abbrev GivesAttention (events : Nat) : Prop :=
  ((settle rulesOfOne events ringOfOne).outputs.map fun rows => rows.map (·.toList))
    = [[(attention (1 : Int) Mask.full.toScoreMod #v[#v[0]] #v[#v[0]]
        (#v[#v[1]] : Matrix Rat 1 1))[0].toList]]

/-- Positive control: after the one event that it has. -/
theorem ended_gives_attention : GivesAttention 1 := by decide +kernel

theorem notEnded_refuted : ¬ ∀ events, GivesAttention events :=
  fun h => absurd (h 0) (by decide +kernel)

/-- The statement of `shards-partials-sound` about the outputs, for any program. -/
abbrev SoundPartials (run : ShardsCase → Except String (List DeviceResult)) : Prop :=
  ∀ (c : ShardsCase) (results : List DeviceResult), run c = .ok results →
    ∃ (Q : Matrix Int c.q.length c.head_dim) (K : Matrix Int c.k.length c.head_dim)
      (V : Matrix Rat c.k.length c.value_dim),
      rowsOf Q = c.q ∧ rowsOf K = c.k ∧ rowsOf V = c.v ∧
      ∀ r ∈ results, ∀ (t j : Nat) (part : List RowResult), r.arrivals[t]? = some j →
        r.partials[t]? = some part → ∃ source : DeviceResult, results[j]? = some source ∧
          part.map (·.output) = ((indices c.q.length r.queries).map fun q =>
            (attend (scored c.scale c.mask.toMask.toScoreMod Q K V q
              (indices c.k.length source.keys))).toList)

/-- Positive control. -/
theorem run_soundPartials : SoundPartials ShardsCase.run := fun _ _ h =>
  let ⟨Q, K, V, hQ, hK, hV, each⟩ := ShardsCase.partials_sound h
  ⟨Q, K, V, hQ, hK, hV, fun r hr t j part hj hpart =>
    let ⟨source, hs, ho, _⟩ := (each r hr).2 t j part hj hpart
    ⟨source, hs, ho⟩⟩

/-- The program that gives for each arrival the result over all keys. -/
@[expose] def runMerged (c : ShardsCase) : Except String (List DeviceResult) :=
  c.run.map (·.map fun r => { r with partials := r.arrivals.map fun _ => r.merged })

/-- Two devices, each with a query and a key, of values 0 and 2. -/
@[expose] def twoDevices : ShardsCase :=
  { reason := "", head_dim := 1, value_dim := 1, q := [[0], [0]], k := [[0], [0]], v := [[0], [2]]
    devices := 2, layout := .contiguous }

theorem runMerged_refuted : ¬ SoundPartials runMerged := fun h => by
  have h₁ : (runMerged twoDevices).toOption.map (·.map (·.queries)) = some [[0], [1]] := by
    decide +kernel
  have h₂ : (runMerged twoDevices).toOption.map (·.map (·.keys)) = some [[0], [1]] := by
    decide +kernel
  have h₃ : (runMerged twoDevices).toOption.map (·.map (·.arrivals)) = some [[0, 1], [1, 0]] := by
    decide +kernel
  have h₄ : (runMerged twoDevices).toOption.map (·.map fun r => r.partials.map
      (·.map (·.output))) = some [[[[1]], [[1]]], [[[1]], [[1]]]] := by
    decide +kernel
  cases hr : runMerged twoDevices with
  | error e => rw [hr] at h₁; cases h₁
  | ok results =>
    rw [hr] at h₁ h₂ h₃ h₄
    simp only [Except.toOption, Option.map_some, Option.some.injEq] at h₁ h₂ h₃ h₄
    obtain ⟨Q, K, V, hQ, hK, hV, each⟩ := h _ _ hr
    obtain rfl := rowsOf_inj (B := (#v[#v[0], #v[0]] : Matrix Int 2 1)) hQ
    obtain rfl := rowsOf_inj (B := (#v[#v[0], #v[0]] : Matrix Int 2 1)) hK
    obtain rfl := rowsOf_inj (B := (#v[#v[0], #v[2]] : Matrix Rat 2 1)) hV
    match results, h₁, h₂, h₃, h₄, each with
    | r :: rest, h₁, h₂, h₃, h₄, each =>
      have q₁ : r.queries = [0] := (List.cons.inj h₁).1
      have k₁ : r.keys = [0] := (List.cons.inj h₂).1
      have a₁ : r.arrivals = [0, 1] := (List.cons.inj h₃).1
      have p₁ : r.partials.map (·.map (·.output)) = [[[1]], [[1]]] := (List.cons.inj h₄).1
      cases hp : r.partials with
      | nil => rw [hp] at p₁; cases p₁
      | cons part parts =>
        rw [hp] at p₁
        obtain ⟨source, hs, ho⟩ := each r List.mem_cons_self 0 0 part (by rw [a₁]; rfl)
          (by rw [hp]; rfl)
        obtain rfl : r = source := Option.some.inj hs
        have o₁ : part.map (·.output) = [[1]] := (List.cons.inj p₁).1
        rw [q₁, k₁, o₁] at ho
        exact absurd ho (by decide +kernel)

end Attention.WrongVariants
