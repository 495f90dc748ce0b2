module

public import Attention.Claims.Approximation.Net
public import Attention.Proof.Heads.MultiHead
public import Attention.Proof.Softmax.Stability
public import Attention.Spec.Transformer

public section

/-! # A transformer is bounded

On a box of inputs every transformer is bounded, whatever its parameters: linear layers and sums
are, attention gives means of the values, a normalisation divides by a root that is at least a
positive number. So no transformer approximates a function that is not bounded. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

attribute [local instance] Semiring.natCast

variable {α : Type u} {R : Type v} {A : α → Prop} {n m p s t d d_model num_heads d_ff : Nat}

/-- The components of the matrices F x are bounded by one number, for all x with the property A. -/
@[expose] def Bounded [OrderedField R] (A : α → Prop) (F : α → Matrix R m n) : Prop :=
  ∃ c : R, ∀ x, A x → ∀ (i : Fin m) (j : Fin n), AtMost c (F x)[i][j]

section
variable [OrderedField R]

private theorem exists_atMost (x : R) : ∃ c, AtMost c x := by
  rcases Std.le_total (a := 0) (b := x) with h | h
  · exact ⟨x, by grind, Std.le_refl _⟩
  · exact ⟨-x, by grind, by grind⟩

private theorem exists_uniform {P : Fin n → R → Prop}
    (mono : ∀ i c c', P i c → c ≤ c' → P i c') (h : ∀ i, ∃ c, P i c) : ∃ c, ∀ i, P i c := by
  suffices h : ∀ xs : List (Fin n), ∃ c, ∀ i ∈ xs, P i c by
    obtain ⟨c, hc⟩ := h (List.finRange n)
    exact ⟨c, fun i => hc i (List.mem_finRange i)⟩
  intro xs
  induction xs with
  | nil => exact ⟨0, fun i hi => by cases hi⟩
  | cons k xs ih =>
    obtain ⟨c, hc⟩ := ih
    obtain ⟨c', hc'⟩ := h k
    rcases Std.le_total (a := c) (b := c') with hle | hle
    · refine ⟨c', fun i hi => ?_⟩
      rcases List.mem_cons.mp hi with rfl | hi
      · exact hc'
      · exact mono i c c' (hc i hi) hle
    · refine ⟨c, fun i hi => ?_⟩
      rcases List.mem_cons.mp hi with rfl | hi
      · exact mono i c' c hc' hle
      · exact hc i hi

namespace Bounded

variable {F G : α → Matrix R m n}

/-- Bounds for each component make one for all. -/
theorem of_entries (h : ∀ (i : Fin m) (j : Fin n), ∃ c, ∀ x, A x → AtMost c (F x)[i][j]) :
    Bounded A F :=
  (exists_uniform (P := fun i c => ∀ (j : Fin n), ∀ x, A x → AtMost c (F x)[i][j])
    (fun _ _ _ h h' j x hx => (h j x hx).mono h')
    fun i => exists_uniform (P := fun j c => ∀ x, A x → AtMost c (F x)[i][j])
      (fun _ _ _ h h' x hx => (h x hx).mono h') (h i)).imp
      fun _ h x hx i j => h i j x hx

private theorem nonneg (h : Bounded A F) :
    ∃ c : R, 0 ≤ c ∧ ∀ x, A x → ∀ (i : Fin m) (j : Fin n), AtMost c (F x)[i][j] := by
  obtain ⟨c, hc⟩ := h
  rcases Std.le_total (a := 0) (b := c) with h | h
  · exact ⟨c, h, hc⟩
  · exact ⟨0, Std.le_refl _, fun x hx i j => (hc x hx i j).mono h⟩

/-- A term that does not depend on x is bounded. -/
theorem const (X : Matrix R m n) : Bounded A fun _ => X :=
  of_entries fun i j => (exists_atMost X[i][j]).imp fun _ h _ _ => h

/-- Sums are bounded. -/
theorem add (hF : Bounded A F) (hG : Bounded A G) : Bounded A fun x => addRows (F x) (G x) := by
  obtain ⟨a, ha⟩ := hF
  obtain ⟨b, hb⟩ := hG
  refine ⟨a + b, fun x hx i j => ?_⟩
  have := (ha x hx i j).add (hb x hx i j)
  simpa [addRows] using this

/-- Linear layers are bounded. -/
theorem linear (W : Linear R n p) (hF : Bounded A F) : Bounded A fun x => W.rows (F x) := by
  obtain ⟨c, hc⟩ := hF
  refine of_entries fun i j => ?_
  obtain ⟨a, ha⟩ := exists_uniform (P := fun t a => AtMost a W.weight[j][t])
    (fun _ _ _ h h' => h.mono h') fun t => exists_atMost _
  obtain ⟨b, hb⟩ := exists_atMost W.bias[j]
  refine ⟨(n : R) * (a * c) + b, fun x hx => ?_⟩
  have e : (W.rows (F x))[i][j] = Vec.dot W.weight[j] (F x)[i] + W.bias[j] := by
    simp [Linear.rows, Linear.row]
  rw [e]
  exact (AtMost.dot ha (hc x hx i)).add hb

private theorem relu_atMost {c x : R} (h : AtMost c x) : AtMost c (relu x) := by
  rw [relu, OrderedField.max_def]
  split
  · exact h
  · exact AtMost.zero h.nonneg

/-- Feed-forward networks are bounded. -/
theorem feedForward (N : FeedForward R n d_ff) (hF : Bounded A F) :
    Bounded A fun x => N.rows (F x) := by
  have h : Bounded A fun x => Vec.map (Vec.map relu) (N.hidden.rows (F x)) := by
    obtain ⟨c, hc⟩ := hF.linear N.hidden
    refine ⟨c, fun x hx i j => ?_⟩
    have := relu_atMost (hc x hx i j)
    simpa using this
  obtain ⟨c, hc⟩ := h.linear N.output
  refine ⟨c, fun x hx i j => ?_⟩
  have := hc x hx i j
  simpa [FeedForward.rows, FeedForward.row, Linear.rows] using this

private theorem mean_atMost {x : Vec R n} {c a : R} (hx : ∀ i : Fin n, AtMost c x[i])
    (ha : AtMost a (sumOver (fun _ => (1 : R)) (List.finRange n))⁻¹) :
    AtMost ((n : R) * c * a) (mean x) := by
  rw [mean, Field.div_eq_mul_inv]
  refine AtMost.mul ⟨?_, ?_⟩ ha
  · have : sumOver (fun _ : Fin n => -c) (List.finRange n) ≤ sumOver (fun i => x[i])
        (List.finRange n) := sumOver_le_sumOver fun i _ => (hx i).1
    rw [sumOver_const, List.length_finRange, Ring.mul_neg] at this
    exact this
  · have : sumOver (fun i => x[i]) (List.finRange n) ≤ sumOver (fun _ : Fin n => c)
        (List.finRange n) := sumOver_le_sumOver fun i _ => (hx i).2
    rwa [sumOver_const, List.length_finRange] at this

private theorem variance_nonneg (x : Vec R n) : 0 ≤ variance x := by
  have h₁ : (0 : R) ≤ sumOver (fun i => (Vec.map (fun c => c * c) (centred x))[i])
      (List.finRange n) := sumOver_nonneg fun i _ => by
      simp only [Fin.getElem_fin, Vec.getElem_map]
      exact mul_self_nonneg _
  rw [variance, mean, Field.div_eq_mul_inv]
  refine OrderedRing.mul_nonneg h₁
    (Field.IsOrdered.inv_nonneg_iff.mpr (sumOver_nonneg fun _ _ => ?_))
  exact Std.le_of_lt OrderedRing.zero_lt_one

private theorem div_atMost {c σ₀ σ x : R} (h : AtMost c x) (h₀ : 0 < σ₀) (hσ : σ₀ ≤ σ) :
    AtMost (c * σ₀⁻¹) (x / σ) := by
  have pos : 0 < σ := Std.lt_of_lt_of_le h₀ hσ
  rw [Field.div_eq_mul_inv]
  refine h.mul ?_
  have h₁ : 0 ≤ σ⁻¹ := Field.IsOrdered.inv_nonneg_iff.mpr (Std.le_of_lt pos)
  have h₂ : 0 ≤ σ₀⁻¹ := Field.IsOrdered.inv_nonneg_iff.mpr (Std.le_of_lt h₀)
  have h₃ : σ₀⁻¹ * σ₀ = 1 := by grind
  have h₄ : σ⁻¹ * σ = 1 := by grind
  have h₅ := OrderedRing.mul_le_mul_of_nonneg_left hσ (OrderedRing.mul_nonneg h₁ h₂)
  have h₆ : σ⁻¹ * σ₀⁻¹ * σ₀ = σ⁻¹ := by grind
  have h₇ : σ⁻¹ * σ₀⁻¹ * σ = σ₀⁻¹ := by grind
  rw [h₆, h₇] at h₅
  exact ⟨by grind, h₅⟩

/-- Layer normalisations are bounded. -/
theorem layerNorm {sqrt : R → R} {ε σ₀ : R} (h₀ : 0 < σ₀) (hsqrt : ∀ z, ε ≤ z → σ₀ ≤ sqrt z)
    (N : LayerNorm R n) (hF : Bounded A F) : Bounded A fun x => N.rows sqrt ε (F x) := by
  obtain ⟨c, hc⟩ := hF
  refine of_entries fun i j => ?_
  obtain ⟨a, ha⟩ := exists_atMost (sumOver (fun _ => (1 : R)) (List.finRange n))⁻¹
  obtain ⟨g, hg⟩ := exists_atMost N.gain[j]
  obtain ⟨b, hb⟩ := exists_atMost N.bias[j]
  refine ⟨(c + (n : R) * c * a) * σ₀⁻¹ * g + b, fun x hx => ?_⟩
  have e : (N.rows sqrt ε (F x))[i][j]
      = ((F x)[i][j] - mean (F x)[i]) / sqrt (variance (F x)[i] + ε) * N.gain[j] + N.bias[j] := by
    simp [LayerNorm.rows, LayerNorm.row, centred]
  rw [e]
  have hv := variance_nonneg (F x)[i]
  exact ((div_atMost ((hc x hx i j).sub (mean_atMost (hc x hx i) ha)) h₀
    (hsqrt _ (by grind))).mul hg).add hb

end Bounded

end

variable [OrderedField R] [Exponential R R]

private theorem attention_atMost {c : R} (hc : 0 ≤ c) (scale : R) (modify : ScoreMod R m n)
    (Q : Matrix R m d) (K : Matrix R n d) {V : Matrix R n p}
    (hV : ∀ (k : Fin n) (j : Fin p), AtMost c V[k][j]) (i : Fin m) (j : Fin p) :
    AtMost c (attention scale modify Q K V)[i][j] := by
  simp only [attention, Fin.getElem_fin, Vec.getElem_ofFn]
  by_cases h : ∃ key ∈ scored scale modify Q K V i (List.finRange n), key.score ≠ none
  · refine Proof.attend_mem_interval h j.isLt fun key hk _ => ?_
    obtain ⟨k, -, rfl⟩ := List.mem_map.mp hk
    exact hV k j
  · have h' : ∀ key ∈ scored scale modify Q K V i (List.finRange n), key.score = none :=
      fun key hk => Classical.byContradiction fun hn => h ⟨key, hk, hn⟩
    have := Proof.attend_masked h'
    simp only [Fin.eta, this, Vec.getElem_zero]
    exact AtMost.zero hc

omit [Exponential R R] in
private theorem concatHeads_atMost {c : R} {heads : Vector (Matrix R n d) num_heads}
    (h : ∀ (k : Fin num_heads) (i : Fin n) (j : Fin d), AtMost c heads[k][i][j]) (i : Fin n)
    (j : Fin (num_heads * d)) : AtMost c (concatHeads heads)[i][j] := by
  rw [Proof.getElem_concatHeads_headOf]
  exact h _ _ _

namespace Bounded

/-- Multi-head attention is bounded where its values are. -/
theorem multiHead (scale : R) (mask : Mask m n) (W : MultiHead R d_model num_heads d)
    (Q : α → Matrix R m d_model) (K : α → Matrix R n d_model) {V : α → Matrix R n d_model}
    (hV : Bounded A V) : Bounded A fun x => W.rows scale mask (Q x) (K x) (V x) := by
  refine Bounded.linear W.output ?_
  obtain ⟨c, h₀, hc⟩ := (hV.linear W.value).nonneg
  refine ⟨c, fun x hx => concatHeads_atMost fun k i j => ?_⟩
  simp only [Spec.multiHead, Fin.getElem_fin, Vec.getElem_ofFn]
  refine attention_atMost h₀ _ _ _ _ (fun k' j' => ?_) i j
  have := hc x hx k' (headColumn k j')
  simpa [splitHeads] using this

variable {sqrt : R → R} {ε σ₀ : R} (h₀ : 0 < σ₀) (hsqrt : ∀ z, ε ≤ z → σ₀ ≤ sqrt z) (scale : R)
include h₀ hsqrt

/-- Encoders are bounded, with layers that are normalised before. -/
theorem encode (mask : Mask n n) (layers : List (EncoderLayer R d_model num_heads d d_ff))
    {F : α → Matrix R n d_model} (hF : Bounded A F) :
    Bounded A fun x => Spec.encode sqrt ε scale mask layers (F x) := by
  unfold Spec.encode
  induction layers generalizing F with
  | nil => exact hF
  | cons L layers ih =>
    have h := hF.add (multiHead scale mask L.attention (fun x => L.attentionNorm.rows sqrt ε (F x))
      (fun x => L.attentionNorm.rows sqrt ε (F x)) (hF.layerNorm h₀ hsqrt L.attentionNorm))
    exact ih (F := fun x => L.preNorm sqrt ε scale mask (F x))
      (h.add ((h.layerNorm h₀ hsqrt L.feedForwardNorm).feedForward L.feedForward))

/-- Decoders are bounded, with layers that are normalised before. -/
theorem decode (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) {G : α → Matrix R s d_model}
    (hG : Bounded A G) {F : α → Matrix R t d_model} (hF : Bounded A F) :
    Bounded A fun x => Spec.decode sqrt ε scale mask crossMask layers (G x) (F x) := by
  unfold Spec.decode
  induction layers generalizing F with
  | nil => exact hF
  | cons L layers ih =>
    have h := hF.add (multiHead scale mask L.attention (fun x => L.attentionNorm.rows sqrt ε (F x))
      (fun x => L.attentionNorm.rows sqrt ε (F x)) (hF.layerNorm h₀ hsqrt L.attentionNorm))
    let N : α → Matrix R t d_model := fun x => L.attentionNorm.rows sqrt ε (F x)
    let F' : α → Matrix R t d_model := fun x =>
      addRows (F x) (L.attention.rows scale mask (N x) (N x) (N x))
    have h' := h.add (multiHead scale crossMask L.cross
      (fun x => L.crossNorm.rows sqrt ε (F' x)) G hG)
    exact ih (F := fun x => L.preNorm sqrt ε scale mask crossMask (G x) (F x))
      (h'.add ((h'.layerNorm h₀ hsqrt L.feedForwardNorm).feedForward L.feedForward))

/-- **encoder-bounded**: encoders are bounded, with layers that are normalised after, if the root is
at least some σ₀ > 0 of all numbers from ε on. -/
theorem encodePostNorm (mask : Mask n n) (layers : List (EncoderLayer R d_model num_heads d d_ff))
    (norm : LayerNorm R d_model) {F : α → Matrix R n d_model} (hF : Bounded A F) :
    Bounded A fun x => Spec.encodePostNorm sqrt ε scale mask layers norm (F x) := by
  unfold Spec.encodePostNorm
  refine layerNorm h₀ hsqrt norm ?_
  induction layers generalizing F with
  | nil => exact hF
  | cons L layers ih =>
    have h := (hF.add (multiHead scale mask L.attention F F hF)).layerNorm h₀ hsqrt L.attentionNorm
    exact ih (F := fun x => L.postNorm sqrt ε scale mask (F x))
      ((h.add (h.feedForward L.feedForward)).layerNorm h₀ hsqrt L.feedForwardNorm)

/-- Decoders are bounded, with layers that are normalised after. -/
theorem decodePostNorm (mask : Mask t t) (crossMask : Mask t s)
    (layers : List (DecoderLayer R d_model num_heads d d_ff)) (norm : LayerNorm R d_model)
    {G : α → Matrix R s d_model} (hG : Bounded A G) {F : α → Matrix R t d_model}
    (hF : Bounded A F) :
    Bounded A fun x => Spec.decodePostNorm sqrt ε scale mask crossMask layers norm (G x) (F x) := by
  unfold Spec.decodePostNorm
  refine layerNorm h₀ hsqrt norm ?_
  induction layers generalizing F with
  | nil => exact hF
  | cons L layers ih =>
    have h := (hF.add (multiHead scale mask L.attention F F hF)).layerNorm h₀ hsqrt L.attentionNorm
    let F' : α → Matrix R t d_model := fun x =>
      L.attentionNorm.rows sqrt ε (addRows (F x) (L.attention.rows scale mask (F x) (F x) (F x)))
    have h' := (h.add (multiHead scale crossMask L.cross F' G hG)).layerNorm h₀ hsqrt L.crossNorm
    exact ih (F := fun x => L.postNorm sqrt ε scale mask crossMask (G x) (F x))
      ((h'.add (h'.feedForward L.feedForward)).layerNorm h₀ hsqrt L.feedForwardNorm)

end Bounded

end Attention.Claims
