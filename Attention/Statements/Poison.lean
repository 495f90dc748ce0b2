module

public import Attention.Model.Poison
public import Attention.Spec.BackwardTiles
public import Attention.Spec.Flash
import Attention.Proof.Poison.Backward
import Attention.Proof.Poison.Forward

public section

/-! # No NaN but by overflow

Over numbers some of which mean nothing: exponentials above a bound, quotients by 0, and whatever is
computed from these (`Model.Clean`). No outcome depends on one. -/

namespace Attention.Statements

open Spec Model

universe u v w x

/-- The tile loop, run over numbers in which exponentials of positive numbers, quotients by 0 and
whatever is computed from these may be anything, gives for proper inputs what it gives over proper
numbers. -/
theorem no_poison {S : Type u} {R : Type v} {S' : Type w} {R' : Type x}
    [OrderedCommRing S] [OrderedField R] [Exponential S R]
    [Add S'] [Sub S'] [Mul S'] [OfNat S' 0] [LE S'] [DecidableLE S']
    [Add R'] [Sub R'] [Mul R'] [Div R'] [OfNat R' 0] [OfNat R' 1] [Exp S' R']
    {σ : S → S'} {ρ : R → R'} (h : Clean 0 σ ρ) {q_len kv_len d d_v : Nat} {scale : S}
    {modify : ScoreMod S q_len kv_len} {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) (Q : Matrix S q_len d)
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) {block_m : Nat} (hm : 0 < block_m)
    (block_n : Nat) :
    flash (σ scale) modify' (Vec.map (Vec.map σ) Q) (Vec.map (Vec.map σ) K)
        (Vec.map (Vec.map ρ) V) block_m block_n
      = (flash scale modify Q K V block_m block_n).map (Vec.map ρ) :=
  h.flash (Std.le_refl _) hmodify Q K V hm block_n

/-- So does the backward pass in tiles, where exponentials above a bound may be anything, if no
score that the mask lets through exceeds the saved log-sum-exp of its row by more than that: one
that was rounded may lie a little below. -/
theorem no_poison_backward {S : Type u} {R : Type v} {S' : Type w} {R' : Type x}
    [OrderedCommRing S] [OrderedField R] [Exponential S R]
    [Add S'] [Sub S'] [Mul S'] [OfNat S' 0] [LE S']
    [Add R'] [Sub R'] [Mul R'] [Div R'] [OfNat R' 0] [OfNat R' 1] [Exp S' R']
    {bound : S} {σ : S → S'} {ρ : R → R'} (h : Clean bound σ ρ) {q_len kv_len d d_v : Nat}
    {toValue : S → R} {toValue' : S' → R'} (hvalue : ∀ s, toValue' (σ s) = ρ (toValue s))
    {scale : S} {modify : ScoreMod S q_len kv_len} {modify' : ScoreMod S' q_len kv_len}
    (hmodify : ∀ i j s, modify' i j (σ s) = (modify i j s).map σ) {mask : Mask q_len kv_len}
    {slope : ScoreSlope S R q_len kv_len} {slope' : ScoreSlope S' R' q_len kv_len}
    (hslope : ∀ i j s, slope' i j (σ s) = ρ (slope i j s))
    (Q : Matrix S q_len d) (K : Matrix S kv_len d) (V : Matrix R kv_len d_v)
    (Z : WeightFactor R q_len kv_len) (L : Vector (Option S) q_len) (O dO : Matrix R q_len d_v)
    (dLse : Vec R q_len) {keys queries : TileLoop}
    (unmaskedKeys : ∀ u t, (keys.visit u).contains t = true → keys.kind u t = .unmasked →
      ∀ j ∈ tile keys.blockOuter (List.finRange kv_len) u,
        ∀ i ∈ tile keys.blockInner (List.finRange q_len) t, mask i j = true)
    (unmaskedQueries : ∀ t u, (queries.visit t).contains u = true →
      queries.kind t u = .unmasked → ∀ i ∈ tile queries.blockOuter (List.finRange q_len) t,
        ∀ j ∈ tile queries.blockInner (List.finRange kv_len) u, mask i j = true)
    (hL : ∀ i j s l, mask i j = true → score scale modify Q K i j = some s → L[i] = some l →
      s - l ≤ bound) :
    flashBackward toValue' (σ scale) modify' mask slope' (Vec.map (Vec.map σ) Q)
        (Vec.map (Vec.map σ) K) (Vec.map (Vec.map ρ) V) (fun i j => ρ (Z i j))
        (Vec.map (Option.map σ) L) (Vec.map (Vec.map ρ) dO) keys queries (Vec.map (Vec.map ρ) O)
        (Vec.map ρ dLse)
      = let g := flashBackward toValue scale modify mask slope Q K V Z L dO keys queries O dLse
        (g.1.map (Vec.map ρ), g.2.1.map (Vec.map ρ), g.2.2.map (Vec.map ρ)) :=
  h.flashBackward hvalue hmodify hslope unmaskedKeys unmaskedQueries hL O dLse

end Attention.Statements
