module

public import Attention.Kernel.Bounds
public import Attention.Kernel.Generated.Arguments

public section

/-! # What the forward kernel's operations have to keep to, once for all of its texts

Beside each text the translation lists its accesses, the arguments of its exponentials and its
operations on integers (`Full.Accesses`, `Full.Exponents`, `Full.NoOverflow`, …). `Problem` has the
same lists here, in the texts' order; that a text's are these is proved by unfolding
(`Attention.Kernel.Unfolding`), and only theorems about the texts' own are claimed.
Source: `bridge/ttir/obligations.py`. -/

namespace Attention.Kernel

open Flt

universe u

/-- All of these are true, written as the texts have it. -/
@[expose] def All : List Prop → Prop
  | [] => True
  | P :: rest =>
    match rest with
    | [] => P
    | _ :: _ => P ∧ All rest

/-- As a list of propositions that are true. -/
theorem all_iff : ∀ {l : List Prop}, All l ↔ ∀ P ∈ l, P
  | [] => by simp [All]
  | [P] => ⟨fun h Q hQ => List.mem_singleton.mp hQ ▸ h, fun h => h P (List.mem_singleton.mpr rfl)⟩
  | _ :: _ :: _ => (and_congr Iff.rfl all_iff).trans
      (List.forall_mem_cons (p := fun P => P)).symm

namespace Problem

variable {R : Type u} (p : Problem R) (pid t : Int)

/-- This, unless the program has returned, which programs of packed sequences do whose tile has no
query. -/
@[expose] def live (P : Prop) : Prop := (!decide (p.qLen ≤ p.rowFirst pid)) = true → P

variable {p pid} in
/-- Properties of a program that has a query. -/
theorem all_live {l : List Prop} (h : p.rowFirst pid < p.qLen → ∀ P ∈ l, P) :
    ∀ P ∈ l.map (p.live pid), P := by
  intro P hP
  obtain ⟨Q, hQ, rfl⟩ := List.mem_map.mp hP
  intro hl
  simp only [Bool.not_eq_true', decide_eq_false_iff_not, Int.not_le] at hl
  exact h hl Q hQ

/-! ## Accesses -/

/-- The loads of a tile of keys that is taken without mask code. -/
@[expose] def wholeLoads (key value : Access → Prop) : Prop :=
  (∀ n < p.BD, ∀ j < p.BN, key ⟨match p.even with
    | true => true
    | false => decide ((n : Int) < p.dim), p.keyPtr pid t n j⟩) ∧
  ∀ j < p.BN, ∀ c < p.BV, value ⟨match p.evenValue with
    | true => true
    | false => decide ((c : Int) < p.valueDim), p.valuePtr pid t j c⟩
/-- The loads of one with mask code. -/
@[expose] def checkedLoads (key value : Access → Prop) : Prop :=
  (∀ n < p.BD, ∀ j < p.BN,
    key ⟨decide ((n : Int) < p.dim) && p.inside pid t j, p.keyPtr pid t n j⟩) ∧
  ∀ j < p.BN, ∀ c < p.BV,
    value ⟨decide ((c : Int) < p.valueDim) && p.inside pid t j, p.valuePtr pid t j c⟩
/-- Properties of the tiles of each loop. -/
@[expose] def loops (whole checked : Int → Prop) : List Prop :=
  (match p.left with
    | none => []
    | some _ => [∀ t, p.first pid ≤ t → t < p.wholeFirst pid → checked t]) ++
  [∀ t, p.wholeFirst pid ≤ t → t < p.wholeStop pid → whole t,
    ∀ t, p.wholeStop pid ≤ t → t < p.stop pid → checked t]

variable {p pid} in
/-- A property of the tiles without mask code and of all tiles holds in each loop. -/
theorem all_loops {whole checked : Int → Prop} (hb : 0 < p.BN)
    (hw : ∀ t, p.wholeFirst pid ≤ t → t < p.wholeStop pid → whole t)
    (hc : ∀ t, p.first pid ≤ t → t < p.stop pid → checked t) :
    ∀ P ∈ p.loops pid whole checked, P := by
  obtain ⟨_, o₁, o₂, o₃⟩ := p.first_le pid hb
  refine List.forall_mem_append.mpr ⟨?_, all_iff.mp
    (show _ ∧ _ from ⟨hw, fun t h h' => hc t (by omega) h'⟩)⟩
  split
  · exact List.forall_mem_nil _
  · exact all_iff.mp fun t h h' => hc t h (by omega)

/-- All accesses but those to where sequences begin. -/
@[expose] def accesses (P : Forward.Pointers (Access → Prop)) : List Prop :=
  (∀ i < p.BM, ∀ n < p.BD, P.query_ptr
    ⟨decide (p.row pid i < p.qLen) && decide ((n : Int) < p.dim), p.queryAt pid i n⟩) ::
  (p.loops pid (fun t => p.wholeLoads pid t P.key_ptr P.value_ptr)
    (fun t => p.checkedLoads pid t P.key_ptr P.value_ptr) ++
  [∀ i < p.BM, ∀ c < p.BV, P.out_ptr
    ⟨p.stored pid (decide (p.row pid i < p.qLen) && decide ((c : Int) < p.valueDim)),
      p.outAt pid i c⟩,
    ∀ i < p.BM, P.lse_ptr ⟨p.stored pid (decide (p.row pid i < p.qLen)), p.lseAt pid i⟩])
/-- Those to where sequence b begins and ends, of these strides. -/
@[expose] def sequenceAccesses (b sx sy : Int) (P : Forward.Pointers (Access → Prop)) :
    List Prop :=
  [P.cu_q_ptr ⟨true, 0 + b * sx⟩, P.cu_q_ptr ⟨true, 0 + (b + 1) * sx⟩,
    P.cu_k_ptr ⟨true, 0 + b * sy⟩, P.cu_k_ptr ⟨true, 0 + (b + 1) * sy⟩]

/-! ## Integers -/

/-- Which tile, head and batch a program has. -/
@[expose] def programIntegers : List Prop :=
  [FitsI32 (p.tilesLen + (p.BM - 1 : Int)), FitsI32 p.tiles, (p.BM : Int) ≠ 0,
    FitsI32 (p.tiles - 1), FitsI32 (Int.tmod pid p.tiles), p.tiles ≠ 0,
    FitsI32 (Int.tdiv pid p.tiles), FitsI32 (p.tile pid), FitsI32 (Int.tdiv pid p.tiles),
    p.tiles ≠ 0, FitsI32 (p.batch pid), p.heads ≠ 0, FitsI32 (p.head pid), p.heads ≠ 0,
    FitsI32 (p.batch pid), FitsI64 (p.kvHead pid), p.group ≠ 0, FitsI32 (p.rowFirst pid)]
/-- Where sequence b begins and ends, of these strides, and its lengths. -/
@[expose] def sequenceIntegers (b sx sy : Int) : List Prop :=
  [FitsI64 (b * sx), FitsI64 (0 + b * sx), FitsI64 (b + 1), FitsI64 ((b + 1) * sx),
    FitsI64 (0 + (b + 1) * sx), FitsI32 p.qLen, FitsI64 (b * sy), FitsI64 (0 + b * sy),
    FitsI64 ((b + 1) * sy), FitsI64 (0 + (b + 1) * sy), FitsI32 p.kvLen]
/-- The shift of a sequence aligned bottom-right. -/
@[expose] def shiftIntegers (shift : Int) : List Prop :=
  [FitsI32 (shift + p.kvLen), FitsI32 (shift + p.kvLen - p.qLen)]
/-- The last query. -/
@[expose] def lastIntegers : List Prop :=
  [FitsI32 (p.tile pid + 1), FitsI32 ((p.tile pid + 1) * p.BM), FitsI32 (p.rowLast pid)]
/-- The queries. -/
@[expose] def rowIntegers : List Prop := [∀ i < p.BM, FitsI32 (p.row pid i)]
/-- The queries on the axis of the keys. -/
@[expose] def shiftedIntegers : List Prop := [∀ i < p.BM, FitsI32 (p.row pid i + p.shift)]
/-- The offsets of rows of this many components, where x times sx and y times sy is that of the
head. -/
@[expose] def rowOffsets (x sx y sy sm : Int) (width : Nat) : List Prop :=
  [FitsI64 (x * sx), FitsI64 (y * sy), FitsI64 (x * sx + y * sy), FitsI64 (0 + (x * sx + y * sy)),
    ∀ i < p.BM, FitsI64 (p.row pid i * sm),
    ∀ i < p.BM, ∀ j < (1 : Nat), FitsI64 (0 + (x * sx + y * sy) + p.row pid i * sm),
    ∀ i < p.BM, ∀ n < width, FitsI64 (0 + (x * sx + y * sy) + p.row pid i * sm + (n : Int))]
/-- The offsets of queries. -/
@[expose] def queryIntegers : List Prop :=
  match p.packed with
  | none => p.rowOffsets pid (p.batch pid) p.qb (p.head pid) p.qh p.qm p.BD
  | some (q, _) => p.rowOffsets pid (p.head pid) p.qh q p.qm p.qm p.BD
/-- The offsets of outputs. -/
@[expose] def outIntegers : List Prop :=
  match p.packed with
  | none => p.rowOffsets pid (p.batch pid) p.ob (p.head pid) p.oh p.om p.BV
  | some (q, _) => p.rowOffsets pid (p.head pid) p.oh q p.om p.om p.BV
/-- The offsets of log-sum-exps. -/
@[expose] def lseIntegers : List Prop :=
  match p.packed with
  | none => [FitsI64 (p.batch pid * p.lb), FitsI64 (p.head pid * p.lh),
      FitsI64 (p.batch pid * p.lb + p.head pid * p.lh),
      FitsI64 (0 + (p.batch pid * p.lb + p.head pid * p.lh)),
      ∀ i < p.BM, FitsI64 (0 + (p.batch pid * p.lb + p.head pid * p.lh) + p.row pid i)]
  | some (q, _) => [FitsI64 (p.head pid * p.lh), FitsI64 (p.head pid * p.lh + q),
      FitsI64 (0 + (p.head pid * p.lh + q)),
      ∀ i < p.BM, FitsI64 (0 + (p.head pid * p.lh + q) + p.row pid i)]
/-- The offsets of heads of keys and values. -/
@[expose] def headIntegers : List Prop :=
  match p.packed with
  | none => [FitsI64 (p.batch pid * p.kb), FitsI64 (p.kvHead pid * p.kh),
      FitsI64 (p.batch pid * p.vb), FitsI64 (p.kvHead pid * p.vh)]
  | some (_, k) => [FitsI64 (p.kvHead pid * p.kh), FitsI64 (k * p.kn),
      FitsI64 (p.kvHead pid * p.vh), FitsI64 (k * p.vn)]

/-- The number of tiles of x keys. -/
@[expose] def ceilIntegers (x : Int) : List Prop :=
  [FitsI32 (x + (p.BN - 1 : Int)), FitsI32 (Int.tdiv (x + (p.BN - 1 : Int)) p.BN),
    (p.BN : Int) ≠ 0]
/-- The number of whole tiles of x keys. -/
@[expose] def floorIntegers (x : Int) : List Prop := [FitsI32 (Int.tdiv x p.BN), (p.BN : Int) ≠ 0]
/-- The first key that the first query sees. -/
@[expose] def firstIntegers (l : Int) : List Prop :=
  [FitsI32 (p.rowFirst pid + p.shift), FitsI32 (p.rowFirst pid + p.shift - l)]
/-- One past the last key that the last query sees. -/
@[expose] def stopIntegers (r : Int) : List Prop :=
  [FitsI32 (p.rowLast pid + p.shift), FitsI32 (p.rowLast pid + p.shift + r),
    FitsI32 (p.rowLast pid + p.shift + r + 1)]
/-- Which tiles of keys are visited, and how. -/
@[expose] def tileIntegers : List Prop :=
  match p.left, p.right with
  | none, none => p.ceilIntegers p.kvLen ++ p.floorIntegers p.kvLen
  | none, some r =>
    p.stopIntegers pid r ++ p.ceilIntegers (p.stopKey pid) ++ p.ceilIntegers p.kvLen ++
    [FitsI32 (p.rowFirst pid + p.shift), FitsI32 (p.rowFirst pid + p.shift + r),
      FitsI32 (p.rowFirst pid + p.shift + r + 1)] ++
    p.floorIntegers (max (p.rowFirst pid + p.shift + r + 1) 0) ++ p.floorIntegers p.kvLen
  | some l, none =>
    p.firstIntegers pid l ++ p.floorIntegers (max (p.rowFirst pid + p.shift - l) 0) ++
    p.ceilIntegers p.kvLen ++
    [FitsI32 (p.rowLast pid + p.shift), FitsI32 (p.rowLast pid + p.shift - l)] ++
    p.ceilIntegers (max (p.rowLast pid + p.shift - l) 0) ++ p.floorIntegers p.kvLen
  | some l, some r =>
    p.firstIntegers pid l ++ p.stopIntegers pid r ++
    p.floorIntegers (max (p.rowFirst pid + p.shift - l) 0) ++ p.ceilIntegers (p.stopKey pid) ++
    p.ceilIntegers p.kvLen ++ [FitsI32 (p.rowLast pid + p.shift - l)] ++
    p.ceilIntegers (max (p.rowLast pid + p.shift - l) 0) ++
    [FitsI32 (p.rowFirst pid + p.shift + r), FitsI32 (p.rowFirst pid + p.shift + r + 1)] ++
    p.floorIntegers (max (p.rowFirst pid + p.shift + r + 1) 0) ++ p.floorIntegers p.kvLen

/-- The offsets of a tile of keys, or of values, up to where it begins; x times sx and y times sy
is that of the head. -/
@[expose] def tileOffsets (x sx y sy sn : Int) : List Prop :=
  [FitsI64 (t * p.BN * sn), FitsI64 (y * sy + t * p.BN * sn),
    FitsI64 (x * sx + (y * sy + t * p.BN * sn)), FitsI64 (0 + (x * sx + (y * sy + t * p.BN * sn)))]
/-- The same of keys and of values. -/
@[expose] def tileBases : List Prop :=
  match p.packed with
  | none => p.tileOffsets t (p.batch pid) p.kb (p.kvHead pid) p.kh p.kn ++
      p.tileOffsets t (p.batch pid) p.vb (p.kvHead pid) p.vh p.vn
  | some (_, k) => p.tileOffsets t (p.kvHead pid) p.kh k p.kn p.kn ++
      p.tileOffsets t (p.kvHead pid) p.vh k p.vn p.vn
/-- The offsets within a tile of keys and values, and of its elements. -/
@[expose] def laneIntegers : List Prop :=
  [∀ j < p.BN, FitsI32 ((j : Int) * p.kn), ∀ j < p.BN, FitsI32 ((j : Int) * p.vn),
    ∀ n < p.BD, ∀ j < p.BN, FitsI32 ((n : Int) + (j : Int) * p.kn),
    ∀ n < p.BD, ∀ j < p.BN, FitsI64 (p.keyPtr pid t n j),
    ∀ j < p.BN, ∀ c < p.BV, FitsI32 ((j : Int) * p.vn + (c : Int)),
    ∀ j < p.BN, ∀ c < p.BV, FitsI64 (p.valuePtr pid t j c)]
/-- A tile without mask code. -/
@[expose] def wholeIntegers : List Prop :=
  FitsI32 (t * p.BN) :: (p.tileBases pid t ++ p.laneIntegers pid t)
/-- The edges of the window for each query. -/
@[expose] def edgeIntegers : List Prop :=
  (match p.left with
    | none => []
    | some l => [∀ i < p.BM, ∀ j < (1 : Nat), FitsI32 (p.row pid i + p.shift - l)]) ++
  match p.right with
  | none => []
  | some r => [∀ i < p.BM, ∀ j < (1 : Nat), FitsI32 (p.row pid i + p.shift + r)]
/-- A tile with mask code. -/
@[expose] def checkedIntegers : List Prop :=
  FitsI32 (t * p.BN) :: (∀ j < p.BN, FitsI32 (t * p.BN + (j : Int))) ::
    (p.tileBases pid t ++ p.laneIntegers pid t ++ p.edgeIntegers pid)
/-- All operations on integers that come after the early return. -/
@[expose] def integers : List Prop :=
  (match p.left, p.right with
    | none, none => p.rowIntegers pid ++ p.queryIntegers pid
    | _, _ => p.lastIntegers pid ++ p.rowIntegers pid ++ p.queryIntegers pid ++
        p.shiftedIntegers pid) ++
  p.headIntegers pid ++ p.tileIntegers pid ++
  p.loops pid (fun t => All (p.wholeIntegers pid t)) (fun t => All (p.checkedIntegers pid t)) ++
  p.outIntegers pid ++ p.lseIntegers pid

/-! ## Exponents -/

variable [OrderedField R] [Exp R R]

/-- The arguments of exp2 in a tile without mask code. -/
@[expose] def wholeExponents (s : State R) (P : Flt R → Prop) : Prop :=
  (∀ i < p.BM, P (sub (s.1 i) ((rowOf i s).reference
    (mul (maxOver p.BN fun j => p.wholeProduct pid t i j) p.scale)))) ∧
  ∀ i < p.BM, ∀ j < p.BN, P (sub (mul (p.wholeProduct pid t i j) p.scale)
    ((rowOf i s).reference (mul (maxOver p.BN fun j => p.wholeProduct pid t i j) p.scale)))
/-- Those in a tile with mask code. -/
@[expose] def checkedExponents (s : State R) (P : Flt R → Prop) : Prop :=
  (∀ i < p.BM, P (sub (s.1 i) ((rowOf i s).reference
    (maxOver p.BN fun j => p.checkedScore pid t i j)))) ∧
  ∀ i < p.BM, ∀ j < p.BN, P (sub (p.checkedScore pid t i j)
    ((rowOf i s).reference (maxOver p.BN fun j => p.checkedScore pid t i j)))
/-- The state before tile t of the loop over the window's left edge. -/
@[expose] def beforeLeft : State R :=
  forRange (p.first pid) t (fun t => p.checkedBody pid t) init
/-- The state before tile t of the loop without mask code. -/
@[expose] def beforeWhole : State R :=
  forRange (p.wholeFirst pid) t (fun t => p.wholeBody pid t) (p.afterLeft pid)
/-- The state before tile t of the last loop. -/
@[expose] def beforeRight : State R :=
  forRange (p.wholeStop pid) t (fun t => p.checkedBody pid t) (p.beforeWhole pid (p.wholeStop pid))
/-- All arguments of exp2. -/
@[expose] def exponents (P : Flt R → Prop) : List Prop :=
  (match p.left with
    | none => []
    | some _ => [∀ t, p.first pid ≤ t → t < p.wholeFirst pid →
        p.checkedExponents pid t (p.beforeLeft pid t) P]) ++
  [∀ t, p.wholeFirst pid ≤ t → t < p.wholeStop pid →
      p.wholeExponents pid t (p.beforeWhole pid t) P,
    ∀ t, p.wholeStop pid ≤ t → t < p.stop pid →
      p.checkedExponents pid t (p.beforeRight pid t) P]

/-! ## A text's -/

/-- `Accesses`, `Exponents` and `NoOverflow` of a text for dense tensors. -/
@[expose] def conditions : (Forward.Pointers (Access → Prop) → Prop) × ((Flt R → Prop) → Prop) ×
    Prop :=
  (fun P => All (p.accesses pid P), fun P => All (p.exponents pid P),
    All (p.programIntegers pid ++ p.integers pid))

/-- The same of a text for packed sequences, of which this is sequence b, with strides sx and sy
between the numbers that say where they begin. shift: what else it computes, of integers. -/
@[expose] def packedConditions (b sx sy : Int) (shift : List Prop) :
    (Forward.Pointers (Access → Prop) → Prop) × ((Flt R → Prop) → Prop) × Prop :=
  (fun P => All (sequenceAccesses b sx sy P ++ (p.accesses pid P).map (p.live pid)),
    fun P => All ((p.exponents pid P).map (p.live pid)),
    All (p.programIntegers pid ++ p.sequenceIntegers b sx sy ++
      (shift ++ p.integers pid).map (p.live pid)))

end Problem

end Attention.Kernel
