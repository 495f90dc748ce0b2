module

public import Attention.Vectors.CaseSound

public section

/-! # Programs of the exact vectors of which the theorem on a whole case does not hold -/

namespace Attention.WrongVariants

open Spec Vectors

/-- The statement of `exact-vectors-sound`, for any program. -/
abbrev SoundProgram (run : Case → Except String (List RowResult)) : Prop :=
  ∀ (c : Case) (results : List RowResult), run c = .ok results →
    ∃ (Q : Matrix Int c.q.length c.head_dim) (K : Matrix Int c.k.length c.head_dim)
      (V : Matrix Rat c.k.length c.value_dim),
      rowsOf Q = c.q ∧ rowsOf K = c.k ∧ rowsOf V = c.v ∧
      results.map (·.output) = rowsOf (c.output Q K V) ∧
      ∀ (i : Fin c.q.length) (r : RowResult), results[i.val]? = some r →
        r.Describes (c.row Q K V i) ∧
        (c.exactLogSumExp → IsLogSumExp Rat r.logSumExp ((c.row Q K V i).map (·.score)))

/-- Positive control. -/
theorem run_soundProgram : SoundProgram Case.run := fun _ _ h => Case.run_sound h

/-- The program, with another check of the algorithm, other results of a row and another
log-sum-exp. -/
@[expose] def runWith (fits : Case → Bool)
    (rowResult : {d : Nat} → List (ScoredValue Int Rat d) → Vec Rat d → RowResult)
    (withLogSumExp : RowResult → List (Option Int) → Except String RowResult) (c : Case) :
    Except String (List RowResult) := do
  checkExact ((rats c.q).flatten ++ (rats c.k).flatten ++ c.v.flatten)
  let Q ← toMatrix c.q.length c.head_dim c.q
  let K ← toMatrix c.k.length c.head_dim c.k
  let V ← toMatrix c.k.length c.value_dim c.v
  unless fits c do throw "the algorithm does not fit"
  let outputs ← c.algorithm.run c.scale c.mask Q K V
  unless outputs.length = c.q.length do throw "not one output for each query"
  ((List.finRange c.q.length).zip outputs).mapM fun (i, output) =>
    let row := c.row Q K V i
    let result := rowResult row output
    if c.exactLogSumExp then withLogSumExp result (row.map (·.score)) else .ok result

/-- The program that does not ask whether tiles hold something. -/
@[expose] def runUnchecked : Case → Except String (List RowResult) :=
  runWith (fun _ => true) rowResult RowResult.withLogSumExp

/-- The denominator against 0, as softmax without its maximum has it. -/
@[expose] def plainDenominator {d : Nat} (row : List (ScoredValue Int Rat d)) (output : Vec Rat d) :
    RowResult :=
  { rowResult row output with denominator := denominator (row.map (·.score)) }

/-- The program that gives the denominator against 0. -/
@[expose] def runPlainDenominator : Case → Except String (List RowResult) :=
  runWith (fun c => c.algorithm.Fits c.q.length c.k.length) plainDenominator
    RowResult.withLogSumExp

/-- The maximum, and the logarithm of the denominator rounded down, without a check. -/
@[expose] def roundedLogSumExp (r : RowResult) (_ : List (Option Int)) : Except String RowResult :=
  .ok { r with logSumExp := r.max.map (· + (r.denominator.num.natAbs.log2 : Int)) }

/-- The program that does not check that a log-sum-exp is one. -/
@[expose] def runRoundedLogSumExp : Case → Except String (List RowResult) :=
  runWith (fun c => c.algorithm.Fits c.q.length c.k.length) rowResult roundedLogSumExp

/-- One query, two keys with score 1 or three with score 0. -/
@[expose] def smallCase (keys : Nat) (score : Int) (block_n : Nat) (exactLogSumExp : Bool) :
    Case :=
  { reason := "", head_dim := 1, value_dim := 1, q := [[1]], k := List.replicate keys [score]
    v := List.replicate keys [1], algorithm := .flash 1 block_n, exactLogSumExp }

/-- The result of a sound program for that case. -/
private theorem gives {run : Case → Except String (List RowResult)} (h : SoundProgram run)
    {keys : Nat} {score : Int} {block_n : Nat} {lse : Bool} {α : Type} {f : RowResult → α} {a : α}
    (hf : (run (smallCase keys score block_n lse)).toOption.map (·.map f) = some [a]) :
    let c := smallCase keys score block_n lse
    ∃ (K : Matrix Int c.k.length 1) (V : Matrix Rat c.k.length 1) (r : RowResult),
      rowsOf K = c.k ∧ rowsOf V = c.v ∧ f r = a ∧
      [r.output] = rowsOf (c.output #v[#v[1]] K V) ∧
      let row := c.row #v[#v[1]] K V ⟨0, Nat.one_pos⟩
      r.Describes row ∧ (lse → IsLogSumExp Rat r.logSumExp (row.map (·.score))) := by
  intro c
  cases hr : run c with
  | error e => rw [hr] at hf; cases hf
  | ok results =>
    rw [hr] at hf
    obtain ⟨r, rfl, ha⟩ : ∃ r, results = [r] ∧ f r = a := by
      simpa [Except.toOption, List.map_eq_singleton_iff] using hf
    obtain ⟨Q, K, V, hQ, hK, hV, ho, each⟩ := h c _ hr
    obtain rfl := rowsOf_inj (hQ.trans (by rfl : c.q = rowsOf (#v[#v[1]] : Matrix Int 1 1)))
    have := each ⟨0, Nat.one_pos⟩ r rfl
    exact ⟨K, V, r, hK, hV, ha, ho, this.1, this.2⟩

/-- Tiles of no keys: the loop ends with 0. -/
theorem runUnchecked_refuted : ¬ SoundProgram runUnchecked := fun h => by
  obtain ⟨K, V, r, hK, hV, ha, ho, -⟩ := gives h
    (keys := 2) (score := 1) (block_n := 0) (lse := false) (f := (·.output)) (a := [0])
    (by decide +kernel)
  obtain rfl := rowsOf_inj (hK.trans (by rfl : _ = rowsOf (#v[#v[1], #v[1]] : Matrix Int 2 1)))
  obtain rfl := rowsOf_inj (hV.trans (by rfl : _ = rowsOf (#v[#v[1], #v[1]] : Matrix Rat 2 1)))
  rw [ha] at ho
  exact absurd ho (by decide +kernel)

theorem runPlainDenominator_refuted : ¬ SoundProgram runPlainDenominator := fun h => by
  obtain ⟨K, V, r, hK, hV, ha, -, describes, -⟩ := gives h
    (keys := 2) (score := 1) (block_n := 1) (lse := false) (f := fun r => (r.max, r.denominator))
    (a := (some 1, 4)) (by decide +kernel)
  obtain rfl := rowsOf_inj (hK.trans (by rfl : _ = rowsOf (#v[#v[1], #v[1]] : Matrix Int 2 1)))
  obtain rfl := rowsOf_inj (hV.trans (by rfl : _ = rowsOf (#v[#v[1], #v[1]] : Matrix Rat 2 1)))
  obtain ⟨hm, hl⟩ := Prod.mk.inj ha
  have e := describes.denominator_eq
  rw [hm, hl] at e
  exact absurd e (by decide +kernel)

/-- A denominator of 3, which is no power of 2. -/
theorem runRoundedLogSumExp_refuted : ¬ SoundProgram runRoundedLogSumExp := fun h => by
  obtain ⟨K, V, r, hK, hV, ha, -, -, hL⟩ := gives h
    (keys := 3) (score := 0) (block_n := 1) (lse := true) (f := (·.logSumExp))
    (a := some 1) (by decide +kernel)
  obtain rfl := rowsOf_inj
    (hK.trans (by rfl : _ = rowsOf (#v[#v[0], #v[0], #v[0]] : Matrix Int 3 1)))
  obtain rfl := rowsOf_inj
    (hV.trans (by rfl : _ = rowsOf (#v[#v[1], #v[1], #v[1]] : Matrix Rat 3 1)))
  have hL := hL rfl
  rw [ha] at hL
  exact absurd hL (by decide +kernel)

end Attention.WrongVariants
