module

public import Attention.Claims.Memory.Tiles

public section

/-! # What standard attention computes, reads, writes and keeps -/

namespace Attention.Claims

open Spec Spec.Online Model Program

universe u

variable {S R : Type u} {q_len kv_len d d_v : Nat}

/-- A program for each tile of rows that writes one row of `c` elements for each row of the tile,
and reads `a` elements for each row and `b` for each tile. -/
theorem run_forEach_rows {Δ : List Row} {n a b c base : Nat}
    (body : List (Fin n) → Program S R Δ [] []) (slow : List (Fin n) → Memory S R Δ)
    (hsize : ∀ done, (slow done).size = base + done.length * c)
    (h : ∀ rows done counts, ∃ peak, (body rows).run ⟨slow done, .nil, counts⟩
      = ⟨slow (done ++ rows), .nil,
          { reads := counts.reads + (rows.length * a + b)
            writes := counts.writes + rows.length * c
            slowPeak := max counts.slowPeak (slow (done ++ rows)).size
            fastPeak := peak }⟩)
    (rowTiles : List (List (Fin n))) :
    ∀ (done : List (Fin n)) (counts : Counts), counts.slowPeak = base + done.length * c →
      ∃ peak, (forEach body rowTiles).run ⟨slow done, .nil, counts⟩
        = ⟨slow (done ++ rowTiles.flatten), .nil,
            { reads := counts.reads + (rowTiles.flatten.length * a + rowTiles.length * b)
              writes := counts.writes + rowTiles.flatten.length * c
              slowPeak := base + (done.length + rowTiles.flatten.length) * c
              fastPeak := peak }⟩ := by
  induction rowTiles with
  | nil =>
    intro done counts hs
    exact ⟨counts.fastPeak, by simp [forEach, run, ← hs]⟩
  | cons rows rowTiles ih =>
    intro done counts hs
    obtain ⟨peak, e⟩ := h rows done counts
    have hs' : max counts.slowPeak (slow (done ++ rows)).size
        = base + (done ++ rows).length * c := by
      rw [hsize, hs, List.length_append, Nat.add_mul]
      omega
    rw [hs'] at e
    obtain ⟨peak', e'⟩ := ih (done ++ rows)
      ⟨counts.reads + (rows.length * a + b), counts.writes + rows.length * c,
        base + (done ++ rows).length * c, peak⟩ rfl
    refine ⟨peak', ?_⟩
    have h₁ : counts.reads + (rows.length * a + b)
          + (rowTiles.flatten.length * a + rowTiles.length * b)
        = counts.reads + ((rows.length + rowTiles.flatten.length) * a
          + (rowTiles.length + 1) * b) := by
      rw [Nat.add_mul, Nat.add_mul]
      omega
    rw [forEach, run, e, e']
    simp only [List.flatten_cons, List.append_assoc, List.length_append, List.length_cons, h₁]
    simp only [Nat.add_mul, Nat.add_assoc]

variable [Add S] [Mul S] [OfNat S 0] (scale : S) (modify : ScoreMod S q_len kv_len)
variable (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)

/-- A row of the matrix of scores. -/
@[expose] def scoreRow (i : Fin q_len) : List (Option S) :=
  (List.finRange kv_len).map (score scale modify Q K i)

variable [Add R] [Mul R] [OfNat R 0] [Div R] [Exp S R]

/-- A row of the matrix of weights. -/
@[expose] def weightRow (i : Fin q_len) : List R := softmax (scoreRow scale modify Q K i)

/-- A row of the output. -/
@[expose] def outputRow (i : Fin q_len) : Vec R d_v :=
  attend (scored scale modify Q K V i (List.finRange kv_len))

/-- Slow memory with the output, scores and weights of some rows. -/
@[expose] def standardSlow (out scores weights : List (Fin q_len)) :
    Memory S R (standardArrays d d_v) :=
  standardMemory Q K V (out.map (outputRow scale modify Q K V))
    (scores.map (scoreRow scale modify Q K)) (weights.map (weightRow scale modify Q K))

/-- Its elements. -/
theorem size_standardSlow (out scores weights : List (Fin q_len)) :
    (standardSlow scale modify Q K V out scores weights).size
      = q_len * d + kv_len * (d + d_v) + out.length * d_v + scores.length * kv_len
        + weights.length * kv_len := by
  have h₁ : Row.sizes (S := S) (R := R) .masked
      (scores.map (scoreRow scale modify Q K) : List (List (Option S)))
        = scores.length * kv_len := by
    rw [sizes_of_size (n := kv_len) (by simp [Row.size, scoreRow])]
    simp
  have h₂ : Row.sizes (S := S) (R := R) .weights
      (weights.map (weightRow scale modify Q K) : List (List R)) = weights.length * kv_len := by
    rw [sizes_of_size (n := kv_len) (by simp [Row.size, weightRow, softmax, scoreRow])]
    simp
  simp only [standardSlow, standardMemory, Memory.size, sizes_scores, sizes_values, h₁, h₂,
    Vector.length_toList, List.length_map, Nat.mul_add]
  omega

/-- The first pass: Q is read, K once for each tile of queries, and the scores are written. -/
theorem run_standardScores (rows done : List (Fin q_len)) (counts : Counts) :
    ∃ peak, (standardScores scale modify rows).run
        ⟨standardSlow scale modify Q K V [] done [], .nil, counts⟩
      = ⟨standardSlow scale modify Q K V [] (done ++ rows) [], .nil,
          { reads := counts.reads + (rows.length * d + kv_len * d)
            writes := counts.writes + rows.length * kv_len
            slowPeak := max counts.slowPeak
              (standardSlow scale modify Q K V [] (done ++ rows) []).size
            fastPeak := peak }⟩ := by
  have h₀ : (standardSlow scale modify Q K V [] done []).get .here = Q.toList := rfl
  have h₁ : (standardSlow scale modify Q K V [] done []).get (.there .here) = K.toList := rfl
  have h₂ : Memory.append (ρ := .masked) (rows.map fun i =>
        (List.finRange kv_len).map (score scale modify Q K i) : List (List (Option S)))
      standardS (standardSlow scale modify Q K V [] done [])
      = standardSlow scale modify Q K V [] (done ++ rows) [] := by
    simp only [standardSlow, List.map_append]
    rfl
  apply Exists.intro
  simp only [standardScores, run, h₀, h₁, load_places, scoreTile_eq, h₂, sizes_scoreTile,
    sizes_scores, List.length_map, List.length_finRange, Nat.add_assoc]
  rfl

/-- Rows of a matrix that is kept as a list of rows, loaded by their numbers. -/
theorem load_places_map {α : Type u} {n : Nat} (g : Fin n → α) (rows : List (Fin n)) :
    ((places rows).filterMap fun i => ((List.finRange n).map g)[i]?) = rows.map g := by
  induction rows with
  | nil => rfl
  | cons i rows ih => simp_all [places]

/-- The second pass: the scores are read, and the weights are written. -/
theorem run_standardWeights (rows done : List (Fin q_len)) (counts : Counts) :
    ∃ peak, (standardWeights rows).run
        ⟨standardSlow scale modify Q K V [] (List.finRange q_len) done, .nil, counts⟩
      = ⟨standardSlow scale modify Q K V [] (List.finRange q_len) (done ++ rows), .nil,
          { reads := counts.reads + (rows.length * kv_len + 0)
            writes := counts.writes + rows.length * kv_len
            slowPeak := max counts.slowPeak
              (standardSlow scale modify Q K V [] (List.finRange q_len) (done ++ rows)).size
            fastPeak := peak }⟩ := by
  have h₀ : (standardSlow scale modify Q K V [] (List.finRange q_len) done).get standardS
      = (List.finRange q_len).map (scoreRow scale modify Q K) := rfl
  have h₁ : Row.sizes (S := S) (R := R) .masked
      (rows.map (scoreRow scale modify Q K) : List (List (Option S)))
        = rows.length * kv_len := by
    rw [sizes_of_size (n := kv_len) (by simp [Row.size, scoreRow])]
    simp
  have h₂ : ((rows.map (scoreRow scale modify Q K)).map softmax : List (List R))
      = rows.map (weightRow scale modify Q K) := by
    simp [weightRow]
  have h₃ : Row.sizes (S := S) (R := R) .weights
      (rows.map (weightRow scale modify Q K) : List (List R)) = rows.length * kv_len := by
    rw [sizes_of_size (n := kv_len) (by simp [Row.size, weightRow, softmax, scoreRow])]
    simp
  have h₄ : Memory.append (ρ := .weights) (rows.map (weightRow scale modify Q K) : List (List R))
      standardP (standardSlow scale modify Q K V [] (List.finRange q_len) done)
      = standardSlow scale modify Q K V [] (List.finRange q_len) (done ++ rows) := by
    simp only [standardSlow, List.map_append]
    rfl
  apply Exists.intro
  simp only [standardWeights, run, h₀, load_places_map, h₁, h₂, h₃, h₄, Nat.add_zero]
  rfl

/-- The third pass: the weights are read, V once for each tile of queries, and the output is
written. -/
theorem run_standardOutput (rows done : List (Fin q_len)) (counts : Counts) :
    ∃ peak, (standardOutput kv_len rows).run
        ⟨standardSlow scale modify Q K V done (List.finRange q_len) (List.finRange q_len), .nil,
          counts⟩
      = ⟨standardSlow scale modify Q K V (done ++ rows) (List.finRange q_len) (List.finRange q_len),
          .nil,
          { reads := counts.reads + (rows.length * kv_len + kv_len * d_v)
            writes := counts.writes + rows.length * d_v
            slowPeak := max counts.slowPeak (standardSlow scale modify Q K V (done ++ rows)
              (List.finRange q_len) (List.finRange q_len)).size
            fastPeak := peak }⟩ := by
  have h₀ : (standardSlow scale modify Q K V done (List.finRange q_len) (List.finRange q_len)).get
      standardP = (List.finRange q_len).map (weightRow scale modify Q K) := rfl
  have h₁ : (standardSlow scale modify Q K V done (List.finRange q_len) (List.finRange q_len)).get
      (.there (.there .here)) = V.toList := rfl
  have h₂ : Row.sizes (S := S) (R := R) .weights
      (rows.map (weightRow scale modify Q K) : List (List R)) = rows.length * kv_len := by
    rw [sizes_of_size (n := kv_len) (by simp [Row.size, weightRow, softmax, scoreRow])]
    simp
  have h₃ : (rows.map (weightRow scale modify Q K)).map
      (weigh ((List.finRange kv_len).map (V[·]))) = rows.map (outputRow scale modify Q K V) := by
    simp [weightRow, scoreRow, weigh, outputRow, attend, scored, Function.comp_def]
  have h₄ : Memory.append (ρ := .values d_v) (rows.map (outputRow scale modify Q K V))
      standardOut (standardSlow scale modify Q K V done (List.finRange q_len) (List.finRange q_len))
      = standardSlow scale modify Q K V (done ++ rows) (List.finRange q_len)
          (List.finRange q_len) := by
    simp only [standardSlow, List.map_append]
    rfl
  apply Exists.intro
  simp only [standardOutput, run, h₀, h₁, load_places, load_places_map, h₂, h₃, h₄, sizes_values,
    List.length_map, List.length_finRange, Nat.add_assoc]
  rfl

/-- **standard-counts**: the program computes attention, and this is what it reads and writes: what
the tile loop does, and four matrices of q_len · kv_len elements besides. In slow memory there are
two of them when it ends. -/
theorem run_standardProgram {block_m : Nat} (hm : 0 < block_m) :
    ∃ peak, (standardProgram scale modify block_m).run (.start (standardMemory Q K V [] [] []))
      = ⟨standardMemory Q K V (attention scale modify Q K V).toList
            ((List.finRange q_len).map (scoreRow scale modify Q K))
            ((List.finRange q_len).map (weightRow scale modify Q K)), .nil,
          { reads := q_len * d + numTiles q_len block_m * (kv_len * (d + d_v))
              + 2 * (q_len * kv_len)
            writes := q_len * d_v + 2 * (q_len * kv_len)
            slowPeak := q_len * d + kv_len * (d + d_v) + q_len * d_v + 2 * (q_len * kv_len)
            fastPeak := peak }⟩ := by
  have hf := Proof.tiles_flatten hm (List.finRange q_len)
  have hl := length_tiles block_m (List.finRange q_len)
  obtain ⟨p₁, e₁⟩ := run_forEach_rows (a := d) (b := kv_len * d) (c := kv_len)
    (base := q_len * d + kv_len * (d + d_v)) (standardScores scale modify)
    (fun done => standardSlow scale modify Q K V [] done [])
    (fun done => by simp [size_standardSlow])
    (run_standardScores scale modify Q K V) (tiles block_m (List.finRange q_len)) []
    ⟨0, 0, q_len * d + kv_len * (d + d_v), 0⟩ (by simp)
  obtain ⟨p₂, e₂⟩ := run_forEach_rows (a := kv_len) (b := 0) (c := kv_len)
    (base := q_len * d + kv_len * (d + d_v) + q_len * kv_len) standardWeights
    (fun done => standardSlow scale modify Q K V [] (List.finRange q_len) done)
    (fun done => by simp [size_standardSlow])
    (run_standardWeights scale modify Q K V) (tiles block_m (List.finRange q_len)) []
    ⟨q_len * d + numTiles q_len block_m * (kv_len * d), q_len * kv_len,
      q_len * d + kv_len * (d + d_v) + q_len * kv_len, p₁⟩ (by simp)
  obtain ⟨p₃, e₃⟩ := run_forEach_rows (a := kv_len) (b := kv_len * d_v) (c := d_v)
    (base := q_len * d + kv_len * (d + d_v) + q_len * kv_len + q_len * kv_len)
    (standardOutput kv_len)
    (fun done => standardSlow scale modify Q K V done (List.finRange q_len) (List.finRange q_len))
    (fun done => by simp only [size_standardSlow, List.length_finRange]; omega)
    (run_standardOutput scale modify Q K V) (tiles block_m (List.finRange q_len)) []
    ⟨q_len * d + numTiles q_len block_m * (kv_len * d) + q_len * kv_len,
      q_len * kv_len + q_len * kv_len,
      q_len * d + kv_len * (d + d_v) + q_len * kv_len + q_len * kv_len, p₂⟩ (by simp)
  simp only [hf, hl, List.length_finRange, List.nil_append, List.length_nil, Nat.zero_add,
    Nat.mul_zero, Nat.add_zero] at e₁ e₂ e₃
  have hstart : Machine.start (standardMemory Q K V [] [] [])
      = ⟨standardSlow scale modify Q K V [] [] [], .nil,
          ⟨0, 0, q_len * d + kv_len * (d + d_v), 0⟩⟩ := by
    have := size_standardSlow scale modify Q K V [] [] []
    simp only [standardSlow, List.map_nil, List.length_nil, Nat.zero_mul, Nat.add_zero] at this
    simp only [Machine.start, standardSlow, List.map_nil, this]
  have hout : (List.finRange q_len).map (outputRow scale modify Q K V)
      = (attention scale modify Q K V).toList := by
    refine List.ext_getElem (by simp) fun i _ _ => ?_
    simp [attention, outputRow]
  refine ⟨p₃, ?_⟩
  simp only [standardProgram, run, hstart, e₁, e₂, e₃]
  simp only [standardSlow, hout]
  congr 2
  · simp only [Nat.mul_add]
    omega
  · omega
  · omega

end Attention.Claims
