module

public import Attention.Model.Exact
public import Attention.Proof.Packed.Varlen

public section

/-! # Wrong variants of packed sequences -/

namespace Attention.WrongVariants

open Spec

/-- A causal mask whose last query sees the last key, as flash-attention aligns it: query `i` of
`q_len` sees key `j` of `kv_len` if j + q_len ≤ i + kv_len. -/
@[expose] def causalMods (lens : List (Nat × Nat)) : Nat → Nat → Nat → Int → Option Int :=
  fun b i j s =>
    let (q_len, kv_len) := lens.getD b (0, 0)
    if j + q_len ≤ i + kv_len then some s else none

/-- Two sequences, of one query and two keys and of two queries and one key, and an empty one
between them. -/
@[expose] def threeSequences : List (Sequence Int Rat 1 1) :=
  [⟨[#v[0]], [(#v[0], #v[1]), (#v[0], #v[2])]⟩, ⟨[], []⟩, ⟨[#v[0], #v[0]], [(#v[0], #v[5])]⟩]

/-- The claim of `varlen`, made of any score transformation of the packed batch. -/
abbrev PacksSequences
    (packedMod : List Nat → List Nat → (Nat → Nat → Nat → Int → Option Int) →
      Nat → Nat → Int → Option Int) : Prop :=
  ∀ (mods : Nat → Nat → Nat → Int → Option Int) (seqs : List (Sequence Int Rat 1 1)),
    attentionRows 1 (packedMod (cuSeqlens (seqs.map (·.queries.length)))
        (cuSeqlens (seqs.map (·.keyValues.length))) mods) (seqs.flatMap (·.queries))
        (seqs.flatMap (·.keyValues))
      = seqs.zipIdx.flatMap fun (s, b) => attentionRows 1 (mods b) s.queries s.keyValues

/-- Positive control: `packedMod` packs. -/
theorem packsSequences_packedMod : PacksSequences packedMod := Proof.varlen 1

/-- An output that differs on the three sequences, with the causal mask, refutes the claim. -/
theorem PacksSequences.refute {packedMod}
    (h : let seqs := threeSequences
      let mods := causalMods [(1, 2), (0, 0), (2, 1)]
      (attentionRows 1 (packedMod (cuSeqlens (seqs.map (·.queries.length)))
        (cuSeqlens (seqs.map (·.keyValues.length))) mods) (seqs.flatMap (·.queries))
        (seqs.flatMap (·.keyValues)) : List (Vec Rat 1)).map Vector.toList
      ≠ (seqs.zipIdx.flatMap fun (s, b) =>
          attentionRows 1 (mods b) s.queries s.keyValues).map Vector.toList) :
    ¬ PacksSequences packedMod :=
  fun claim => h (congrArg (List.map Vector.toList) (claim _ _))

/-- Queries and keys are located by the same prefix sums, those of the queries. -/
@[expose] def packedModSameCu (cu_q _cu_k : List Nat) (mods : Nat → Nat → Nat → Int → Option Int) :
    Nat → Nat → Int → Option Int :=
  packedMod cu_q cu_q mods

theorem packedModSameCu_refuted : ¬ PacksSequences packedModSameCu :=
  PacksSequences.refute (by decide +kernel)

/-- The mask of a sequence is applied in the positions of the packed batch. -/
@[expose] def packedModGlobal (cu_q cu_k : List Nat) (mods : Nat → Nat → Nat → Int → Option Int) :
    Nat → Nat → Int → Option Int :=
  fun i j s =>
    if sequenceOf cu_k j = sequenceOf cu_q i then mods (sequenceOf cu_q i) i j s else none

theorem packedModGlobal_refuted : ¬ PacksSequences packedModGlobal :=
  PacksSequences.refute (by decide +kernel)

/-- The first position of a sequence counted to the one before: `<` for `≤`. -/
@[expose] def packedModLate (cu_q cu_k : List Nat) (mods : Nat → Nat → Nat → Int → Option Int) :
    Nat → Nat → Int → Option Int :=
  fun i j s =>
    let b := sequenceOf cu_q i
    if (cu_k.tail.filter fun stop => decide (stop < j)).length = b then
      mods b (i - cu_q.getD b 0) (j - cu_k.getD b 0) s else none

theorem packedModLate_refuted : ¬ PacksSequences packedModLate :=
  PacksSequences.refute (by decide +kernel)

/-- Every query sees the keys of every sequence up to the end of its own. -/
@[expose] def packedModEarlier (cu_q cu_k : List Nat) (mods : Nat → Nat → Nat → Int → Option Int) :
    Nat → Nat → Int → Option Int :=
  fun i j s =>
    let b := sequenceOf cu_q i
    if sequenceOf cu_k j ≤ b then mods b (i - cu_q.getD b 0) (j - cu_k.getD b 0) s else none

theorem packedModEarlier_refuted : ¬ PacksSequences packedModEarlier :=
  PacksSequences.refute (by decide +kernel)

/-- A slice that takes the row at its end as well. -/
@[expose] def sliceInclusive {α : Type} (cu : List Nat) (b : Nat) (rows : List α) : List α :=
  (rows.drop (cu.getD b 0)).take (cu.getD (b + 1) 0 + 1 - cu.getD b 0)

theorem sliceInclusive_refuted :
    ¬ ∀ (mods : Nat → Nat → Nat → Int → Option Int) (seqs : List (Sequence Int Rat 1 1)),
      let cu_q := cuSeqlens (seqs.map (·.queries.length))
      let cu_k := cuSeqlens (seqs.map (·.keyValues.length))
      ((List.range (cu_q.length - 1)).flatMap fun b => attentionRows 1 (mods b)
          (slice cu_q b (seqs.flatMap (·.queries)))
          (sliceInclusive cu_k b (seqs.flatMap (·.keyValues))))
        = seqs.zipIdx.flatMap fun (s, b) => attentionRows 1 (mods b) s.queries s.keyValues :=
  fun h => absurd (congrArg (List.map Vector.toList) (h (fun _ _ _ s => some s) threeSequences))
    (by decide +kernel)

end Attention.WrongVariants
