module

public import Attention.Vectors.AlgorithmSound
public import Attention.Vectors.Case

public section

/-! # What runs is what is proved: a whole case of attention

`Case.run` makes the exact vectors of attention for one head: the output, and beside it the maximum
of each row, its denominator and its log-sum-exp. -/

namespace Attention.Vectors

open Spec Spec.Online Proof

variable {d : Nat}

/-- The numbers of a result say of a row of keys what they should, by the meaning of each and not
by the way in which it is computed. -/
structure RowResult.Describes (r : RowResult) (row : List (ScoredValue Int Rat d)) : Prop where
  /-- There is no maximum exactly when every key is masked. -/
  max_eq_none : r.max = none ↔ ∀ key ∈ row, key.score = none
  /-- The maximum is the score of one of the keys. -/
  max_mem : ∀ m, r.max = some m → ∃ key ∈ row, key.score = some m
  /-- No key has a larger score. -/
  le_max : ∀ m, r.max = some m → ∀ key ∈ row, ∀ s, key.score = some s → s ≤ m
  /-- The denominator is Σ exp (s − max) over the keys that are not masked. -/
  denominator_eq : r.denominator = sumOver (fun key => rescale key.score r.max) row
  /-- The log-sum-exp, where there is one, weighs as much as the row. -/
  logSumExp : ∀ L, r.logSumExp = some L → IsLogSumExp Rat (some L) (row.map (·.score))

/-! ## What the parts of the program give -/

/-- Behind a step that may fail: it has not. -/
theorem bind_ok {α β : Type} {x : Except String α} {f : α → Except String β} {y : β}
    (h : (x >>= f) = .ok y) : ∃ a, x = .ok a ∧ f a = .ok y := by
  cases x with
  | error e => cases h
  | ok a => exact ⟨a, rfl, h⟩

/-- Behind a check: it has let this through. -/
theorem check_ok {p : Prop} [Decidable p] {α : Type} {e : String} {f : PUnit → Except String α}
    {y : α} (h : (if p then pure PUnit.unit >>= f else throw e >>= f) = .ok y) :
    p ∧ f PUnit.unit = .ok y := by
  by_cases hp : p
  · rw [if_pos hp] at h
    exact ⟨hp, h⟩
  · rw [if_neg hp] at h
    cases h

/-- Matrices hold the rows that they are made from. -/
theorem toMatrix_rows {α : Type} [Inhabited α] {m n : Nat} {rows : List (List α)}
    {A : Matrix α m n} (h : toMatrix m n rows = .ok A) : rowsOf A = rows := by
  rw [toMatrix] at h
  split at h
  case isFalse => cases h
  case isTrue hrows =>
    obtain ⟨hm, hn⟩ := hrows
    obtain rfl := Except.ok.inj h
    refine List.ext_getElem (by simp [rowsOf, hm]) fun i hi hi' => ?_
    have hlen : rows[i].length = n := by
      simpa using List.all_eq_true.mp hn rows[i] (List.getElem_mem hi')
    refine List.ext_getElem (by simp [rowsOf, hlen]) fun j hj hj' => ?_
    simp [rowsOf, hi', hj']

/-- A matrix is known by its rows. -/
theorem rowsOf_inj {α : Type} {m n : Nat} {A B : Matrix α m n} (h : rowsOf A = rowsOf B) :
    A = B :=
  Vector.toList_inj.mp ((List.map_inj_right fun _ _ => Vector.toList_inj.mp).mp h)

/-- A list of results, one for each entry. -/
theorem mapM_ok {α β : Type} {f : α → Except String β} {xs : List α} {ys : List β}
    (h : xs.mapM f = .ok ys) :
    ∃ hlen : ys.length = xs.length,
      ∀ i (hi : i < ys.length), f (xs[i]'(hlen ▸ hi)) = .ok ys[i] := by
  induction xs generalizing ys with
  | nil =>
    obtain rfl : ys = [] := by simpa [pure, Except.pure, eq_comm] using h
    exact ⟨rfl, fun i hi => absurd hi (by simp)⟩
  | cons x xs ih =>
    rw [List.mapM_cons] at h
    obtain ⟨y, hy, h⟩ := bind_ok h
    obtain ⟨ys', hys, h⟩ := bind_ok h
    obtain rfl : y :: ys' = ys := by simpa [pure, Except.pure] using h
    obtain ⟨hlen, each⟩ := ih hys
    refine ⟨by simp [hlen], fun i hi => ?_⟩
    cases i with
    | zero => exact hy
    | succ i => exact each i (by simpa using hi)

/-- Maximum and denominator of a row, beside whatever output. -/
theorem rowResult_describes (row : List (ScoredValue Int Rat d)) (output : Vec Rat d) :
    (rowResult row output).Describes row where
  max_eq_none := (ofBlock_invariant row).m_eq_none
  max_mem := (ofBlock_invariant row).m_mem
  le_max := (ofBlock_invariant row).le_m
  denominator_eq := rfl
  logSumExp _ h := by cases h

/-- A log-sum-exp that the check has let through is one. -/
theorem withLogSumExp_ok {r r' : RowResult} {row : List (ScoredValue Int Rat d)}
    (describes : r.Describes row) (h : r.withLogSumExp (row.map (·.score)) = .ok r') :
    r'.output = r.output ∧ r'.Describes row ∧
      IsLogSumExp Rat r'.logSumExp (row.map (·.score)) := by
  simp only [RowResult.withLogSumExp] at h
  split at h
  case isFalse => cases h
  case isTrue isLse =>
    obtain rfl := Except.ok.inj h
    exact ⟨rfl, { describes with logSumExp := fun L hL => hL ▸ isLse }, isLse⟩

/-! ## The program -/

namespace Case

/-- The output of a case: attention, or attention with the sink if there is one. -/
@[expose] def output (c : Case) (Q : Matrix Int c.q.length c.head_dim)
    (K : Matrix Int c.k.length c.head_dim) (V : Matrix Rat c.k.length c.value_dim) :
    Matrix Rat c.q.length c.value_dim :=
  match c.algorithm.sink with
  | none => attention c.scale c.mask.toMask.toScoreMod Q K V
  | some sink => attentionSink c.scale c.mask.toMask.toScoreMod sink Q K V

/-- **exact-vectors-sound**: if the program gives results for a case, Q, K and V are matrices of the
rows of the case, the outputs are the rows of attention (with the sink if there is one), and beside
each are the largest score of that row of keys, the denominator against it, and, where it is asked
for, the log-sum-exp. -/
theorem run_sound {c : Case} {results : List RowResult} (h : c.run = .ok results) :
    ∃ (Q : Matrix Int c.q.length c.head_dim) (K : Matrix Int c.k.length c.head_dim)
      (V : Matrix Rat c.k.length c.value_dim),
      rowsOf Q = c.q ∧ rowsOf K = c.k ∧ rowsOf V = c.v ∧
      results.map (·.output) = rowsOf (c.output Q K V) ∧
      ∀ (i : Fin c.q.length) (r : RowResult), results[i.val]? = some r →
        r.Describes (c.row Q K V i) ∧
        (c.exactLogSumExp → IsLogSumExp Rat r.logSumExp ((c.row Q K V i).map (·.score))) := by
  rw [run] at h
  obtain ⟨_, -, h⟩ := bind_ok h
  obtain ⟨Q, hQ, h⟩ := bind_ok h
  obtain ⟨K, hK, h⟩ := bind_ok h
  obtain ⟨V, hV, h⟩ := bind_ok h
  obtain ⟨fits, h⟩ := check_ok h
  obtain ⟨outputs, hO, h⟩ := bind_ok h
  obtain ⟨hlen, h⟩ := check_ok h
  refine ⟨Q, K, V, toMatrix_rows hQ, toMatrix_rows hK, toMatrix_rows hV, ?_⟩
  have hO := c.algorithm.run_sound fits hO
  obtain ⟨hresults, each⟩ := mapM_ok h
  have length : results.length = c.q.length := by simpa [hlen] using hresults
  have each : ∀ (i : Nat) (hi : i < results.length),
      results[i].output = (outputs[i]'(by omega)).toList ∧
      results[i].Describes (c.row Q K V ⟨i, length ▸ hi⟩) ∧
      (c.exactLogSumExp → IsLogSumExp Rat results[i].logSumExp
        ((c.row Q K V ⟨i, length ▸ hi⟩).map (·.score))) := fun i hi => by
    have hr := each i hi
    have entry : ((List.finRange c.q.length).zip outputs)[i]'(by simp; omega)
        = (⟨i, length ▸ hi⟩, outputs[i]'(by omega)) := by simp
    rw [entry] at hr
    dsimp only at hr
    split at hr
    case isTrue =>
      obtain ⟨ho, hd, hL⟩ := withLogSumExp_ok (rowResult_describes _ _) hr
      exact ⟨ho, hd, fun _ => hL⟩
    case isFalse exact =>
      obtain hr := Except.ok.inj hr
      rw [← hr]
      exact ⟨rfl, rowResult_describes _ _, fun h => absurd h exact⟩
  refine ⟨?_, fun i r hr => ?_⟩
  · have e : outputs = (c.output Q K V).toList := hO
    rw [rowsOf, ← e]
    refine List.ext_getElem (by simp [length, hlen]) fun i hi _ => ?_
    rw [List.getElem_map, List.getElem_map, (each i (by simpa using hi)).1]
  · obtain ⟨hi, rfl⟩ := List.getElem?_eq_some_iff.mp hr
    exact (each i.val hi).2

end Case

end Attention.Vectors
