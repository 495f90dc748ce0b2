module

public import Attention.Claims.Memorise.Norms
public import Attention.Claims.Memorise.Rows
public import Attention.Claims.Memorise.Tokens
public import Attention.Claims.Memorise.Units

public section

/-! # Feed-forward networks that encode and recall

One network gives each token at its place a component of its own. Another makes of each row of a
decoder any token, a function of what the row tells. -/

namespace Attention.Claims

open Spec Lean.Grind

universe u v

variable {R : Type v} [OrderedField R] {s t s_vocab t_vocab d_model d_ff : Nat}

/-! ## One component for each token at its place -/

/-- A feed-forward network that makes of each token a at each place p the row of few components
`code a p`. -/
theorem exists_coding {v n o : Nat} (k : Nat) (code : Fin v → Fin n → List (Nat × R))
    (units : v * n ≤ d_ff) (tokens : k + v ≤ o) (places : o + n ≤ d_model) :
    ∃ F : FeedForward R d_model d_ff, ∀ (a : Fin v) (p : Fin n),
      Vec.add (embedded d_model o (k + a.val) p.val) (F.row (embedded d_model o (k + a.val) p.val))
        = sparse d_model (code a p) := by
  obtain ⟨xs, len, all⟩ := exists_pairs (List.finRange v) (List.finRange n)
  have token : ∀ a : Fin v, k + a.val < o := fun a => by have := a.isLt; omega
  have place : ∀ p : Fin n, o + p.val < d_model := fun p => by have := p.isLt; omega
  have length := fun y : Fin v × Fin n => dot_embedded (R := R) (token y.1) (place y.2)
  obtain ⟨F, h⟩ := exists_residual (R := R) (n := d_model) (d_ff := d_ff) (xs := xs)
    (x := fun y => embedded d_model o (k + y.1.val) y.2.val)
    (z := fun y => sparse d_model (code y.1 y.2))
    (by rw [len, List.length_finRange, List.length_finRange]; exact units)
    (fun y _ => ⟨_, fun y' _ hne => by
      rw [length y]
      exact dot_lt (length y) (length y') hne⟩)
    fun y y' e => by
      obtain ⟨h₁, h₂⟩ := embedded_inj (token y.1) (place y.2) (token y'.1) e
      simp only [Fin.ext (Nat.add_left_cancel h₁), Fin.ext h₂]
  exact ⟨F, fun a p => h (a, p) (all a (List.mem_finRange a) p (List.mem_finRange p))⟩

/-! ## Recall -/

private theorem exists_upper {α : Type u} (f : α → R) (xs : List α) : ∃ θ, ∀ x ∈ xs, f x ≤ θ := by
  induction xs with
  | nil => exact ⟨0, fun x hx => by cases hx⟩
  | cons x xs ih =>
    obtain ⟨θ, h⟩ := ih
    by_cases hle : f x ≤ θ
    · exact ⟨θ, fun y hy => by
        rcases List.mem_cons.mp hy with rfl | hy
        · exact hle
        · exact h y hy⟩
    · exact ⟨f x, fun y hy => by
        rcases List.mem_cons.mp hy with rfl | hy
        · exact Std.le_refl _
        · exact Std.le_trans (h y hy) (Std.le_of_lt (Std.not_le.mp hle))⟩

/-- A source, a target and a place. -/
abbrev Query (s t s_vocab t_vocab : Nat) :=
  Vector (Fin s_vocab) s × Vector (Fin t_vocab) t × Fin t

variable {c : Fin t → Fin t → R} {c' : Fin t → Fin s → R} {α β : Fin t → R}

/-- The row of a decoder for a source, a target and a place p; c and c' are the weights of the
target's and the source's tokens in it, α and β what normalisation has made of it: all depend on p
only. -/
@[expose] def decoderRow (n : Nat) (c : Fin t → Fin t → R) (c' : Fin t → Fin s → R)
    (α β : Fin t → R) (y : Query s t s_vocab t_vocab) : Vec R n :=
  stretch (α y.2.2) (β y.2.2) (sparse n (decoderWeights (c y.2.2) (c' y.2.2) y.1 y.2.1 y.2.2))

section
variable (hα : ∀ p, 0 < α p) (width : slots s t s_vocab t_vocab + t < d_model)
include width

/-- The inner product with a row, as much again added for its place. -/
private theorem dot_exposing (M : R) (y z : Query s t s_vocab t_vocab) :
    Vec.dot (sparse d_model (decoderWeights (c y.2.2) (c' y.2.2) y.1 y.2.1 y.2.2
        ++ [(slots s t s_vocab t_vocab + y.2.2.val, M), (d_model - 1, -M)]))
      (decoderRow d_model c c' α β z)
    = α z.2.2 * (Vec.dot
        (sparse d_model (decoderWeights (c y.2.2) (c' y.2.2) y.1 y.2.1 y.2.2))
        (sparse d_model (decoderWeights (c z.2.2) (c' z.2.2) z.1 z.2.1 z.2.2))
        + if y.2.2 = z.2.2 then M else 0)
      + β z.2.2 * decoderSum (c y.2.2) (c' y.2.2) := by
  have lt : ∀ x ∈ decoderWeights (c y.2.2) (c' y.2.2) y.1 y.2.1 y.2.2, x.1 < d_model :=
    fun x hx => Nat.lt_trans (decoderWeights_lt hx) width
  have lt' : ∀ x ∈ decoderWeights (c y.2.2) (c' y.2.2) y.1 y.2.1 y.2.2
      ++ [(slots s t s_vocab t_vocab + y.2.2.val, M), (d_model - 1, -M)], x.1 < d_model :=
    fun x hx => by
      have := y.2.2.isLt
      rcases List.mem_append.mp hx with hx | hx
      · exact lt x hx
      rcases List.mem_cons.mp hx with rfl | hx
      · show slots s t s_vocab t_vocab + y.2.2.val < d_model
        omega
      · rw [List.mem_singleton.mp hx]
        show d_model - 1 < d_model
        omega
  have spare : weightAt (decoderWeights (c z.2.2) (c' z.2.2) z.1 z.2.1 z.2.2) (d_model - 1) = 0 :=
    sumOver_eq_zero fun x hx => if_neg (by have := decoderWeights_lt hx; omega)
  rw [decoderRow, dot_stretch, dot_sparse _ lt', dot_sparse _ lt, sum_sparse lt', sumOver_append,
    sumOver_append, sum_decoderWeights]
  simp only [sumOver_cons, sumOver_nil, weightAt_place, spare, Fin.ext_iff]
  split <;> grind

include hα

/-- Rows are equal only for the same place, the same token there, and the same tokens wherever the
weight is positive. -/
theorem decoderRow_inj (hc : ∀ p q, 0 ≤ c p q) {y z : Query s t s_vocab t_vocab}
    (e : decoderRow d_model c c' α β y = decoderRow d_model c c' α β z) :
    y.2.2 = z.2.2 ∧ y.2.1[y.2.2] = z.2.1[y.2.2] ∧
      (∀ q, 0 < c y.2.2 q → y.2.1[q] = z.2.1[q]) ∧ ∀ j, 0 < c' y.2.2 j → y.1[j] = z.1[j] := by
  obtain ⟨source, target, p⟩ := y
  obtain ⟨source', target', p'⟩ := z
  have at_ : ∀ i, i < d_model →
      α p * weightAt (decoderWeights (c p) (c' p) source target p) i + β p
        = α p' * weightAt (decoderWeights (c p') (c' p') source' target' p') i + β p' :=
    fun i hi => by
      have := congrArg (fun x : Vec R d_model => x[i]) e
      simpa only [decoderRow, stretch, Vec.getElem_map, getElem_sparse] using this
  have spare : ∀ (source : Vector (Fin s_vocab) s) (target : Vector (Fin t_vocab) t) (p : Fin t),
      weightAt (decoderWeights (c p) (c' p) source target p) (d_model - 1) = 0 :=
    fun source target p => sumOver_eq_zero fun x hx => if_neg (by
      have := decoderWeights_lt hx
      omega)
  have hp : p = p' := Classical.byContradiction fun hne => by
    have h₁ := at_ (slots s t s_vocab t_vocab + p.val) (by have := p.isLt; omega)
    have h₂ := at_ (d_model - 1) (by omega)
    rw [weightAt_place, weightAt_place, if_pos rfl, if_neg fun h => hne (Fin.ext h)] at h₁
    rw [spare, spare] at h₂
    have := hα p
    grind
  subst hp
  exact ⟨rfl, sparse_decoderWeights_inj (Nat.le_of_lt width) (hc p)
    (stretch_inj (by have := hα p; grind) e)⟩

/-- Each row is told from finitely many others by a linear function. -/
private theorem exists_exposing (y : Query s t s_vocab t_vocab)
    (xs : List (Query s t s_vocab t_vocab)) :
    ∃ w : Vec R d_model, ∀ z ∈ xs,
      decoderRow d_model c c' α β y ≠ decoderRow d_model c c' α β z →
      Vec.dot w (decoderRow d_model c c' α β z) < Vec.dot w (decoderRow d_model c c' α β y) := by
  have length := fun z : Query s t s_vocab t_vocab =>
    dot_sparse_decoderWeights (c := c z.2.2) (c' := c' z.2.2) (source := z.1) (target := z.2.1)
      (p := z.2.2) (Nat.le_of_lt width)
  obtain ⟨θ, hθ⟩ := exists_upper (fun z : Query s t s_vocab t_vocab => α z.2.2 * Vec.dot
      (sparse d_model (decoderWeights (c y.2.2) (c' y.2.2) y.1 y.2.1 y.2.2))
      (sparse d_model (decoderWeights (c z.2.2) (c' z.2.2) z.1 z.2.1 z.2.2))
    + β z.2.2 * decoderSum (c y.2.2) (c' y.2.2)) xs
  have pos := hα y.2.2
  have ⟨M, hM⟩ : ∃ M, α y.2.2 * (decoderSquares (c y.2.2) (c' y.2.2) y.2.2 + M)
      + β y.2.2 * decoderSum (c y.2.2) (c' y.2.2) = θ + 1 := by
    refine ⟨(θ + 1 - β y.2.2 * decoderSum (c y.2.2) (c' y.2.2)) / α y.2.2
      - decoderSquares (c y.2.2) (c' y.2.2) y.2.2, ?_⟩
    have := OrderedField.mul_div_cancel (b := α y.2.2) (by grind)
      (θ + 1 - β y.2.2 * decoderSum (c y.2.2) (c' y.2.2))
    grind
  refine ⟨sparse d_model (decoderWeights (c y.2.2) (c' y.2.2) y.1 y.2.1 y.2.2
    ++ [(slots s t s_vocab t_vocab + y.2.2.val, M), (d_model - 1, -M)]), fun z hz hne => ?_⟩
  rw [dot_exposing width, dot_exposing width, length y, if_pos rfl, hM]
  by_cases hp : y.2.2 = z.2.2
  · have lt := dot_lt (length y) (by rw [length z, ← hp]) fun h => hne (by
      rw [decoderRow, decoderRow, h, hp])
    rw [if_pos hp, ← hp, ← hM]
    rw [← hp] at lt
    have := OrderedRing.mul_lt_mul_of_pos_left lt pos
    grind
  · have := hθ z hz
    have one := OrderedRing.zero_lt_one (R := R)
    rw [if_neg hp]
    grind

/-- A feed-forward network that makes of each row the token asked for, which depends on what is
seen. -/
theorem exists_recall (hc : ∀ p q, 0 ≤ c p q) (units : s_vocab ^ s * (t_vocab ^ t * t) ≤ d_ff)
    (result : Query s t s_vocab t_vocab → Nat)
    (visible : ∀ y z : Query s t s_vocab t_vocab, y.2.2 = z.2.2 → y.2.1[y.2.2] = z.2.1[y.2.2] →
      (∀ q, 0 < c y.2.2 q → y.2.1[q] = z.2.1[q]) → (∀ j, 0 < c' y.2.2 j → y.1[j] = z.1[j]) →
      result y = result z) :
    ∃ F : FeedForward R d_model d_ff, ∀ y : Query s t s_vocab t_vocab,
      Vec.add (decoderRow d_model c c' α β y) (F.row (decoderRow d_model c c' α β y))
        = unit d_model (result y) := by
  obtain ⟨sources, len₁, all₁⟩ := exists_sequences s_vocab s
  obtain ⟨targets, len₂, all₂⟩ := exists_sequences t_vocab t
  obtain ⟨ys, len₃, all₃⟩ := exists_pairs targets (List.finRange t)
  obtain ⟨xs, len₄, all₄⟩ := exists_pairs sources ys
  obtain ⟨F, h⟩ := exists_residual (R := R) (n := d_model) (d_ff := d_ff) (xs := xs)
    (x := decoderRow d_model c c' α β) (z := fun y => unit d_model (result y))
    (by rw [len₄, len₃, len₂, len₁, List.length_finRange]; exact units)
    (fun y _ => exists_exposing hα width y xs)
    fun y z e => by
      obtain ⟨h₁, h₂, h₃, h₄⟩ := decoderRow_inj hα width hc e
      simp only [visible y z h₁ h₂ h₃ h₄]
  exact ⟨F, fun y => h y (all₄ _ (all₁ _) _ (all₃ _ (all₂ _) _ (List.mem_finRange _)))⟩

end

end Attention.Claims
