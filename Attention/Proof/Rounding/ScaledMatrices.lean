module

public import Attention.Proof.Rounding.LateFactors
public import Attention.Proof.Rounding.Temperature

public section

/-! # Gradients by matrices of numbers that are stored with a factor, within their tolerance

Source: docs/tolerances.md, "Gradients". -/

namespace Attention.Proof

open Spec Model Lean.Grind

universe u

variable {R : Type u} [OrderedField R]

/-- `scaled_sum`, and the size of the exact sum. -/
private theorem scaled_gradient {n : Nat} {p : GradientPrecision R} (hp : PreciseGradient p)
    {τ rest scale : R} (hτ : τ ≠ 0) {reach reach' : R} (hscale : τ * rest = scale)
    (one : 1 ≤ reach') (hreach : reach' ≤ reach) (hr : absolute τ * reach' ≤ reach)
    {roundings stores tiles : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) {t : Fin n → GradientTerm R} {x y e : Fin n → R} {z g : R}
    (ht : ∀ j, AtMost (t j).error (τ⁻¹ * x j - e j) ∧ AtMost (t j).size (e j) ∧
      (t j).other = y j)
    (h : ComputedTiledGradient p roundings stores tiles rest reach' x y z)
    (exact : g = scale * sumOver (fun j => e j * y j) (List.finRange n)) :
    AtMost (presentGradientTerm p roundings stores tiles scale reach
        ((List.finRange n).map t)).error (z - g) ∧
      AtMost (presentGradientTerm p roundings stores tiles scale reach
        ((List.finRange n).map t)).size g := by
  rw [exact]
  exact ⟨scaled_sum hp hτ hscale one hreach hr hc hu ht h, sum_size fun j => (ht j).2⟩

variable [Exponential R R] {q_len kv_len d d_v : Nat}

/-- **scaled-gradients**: the gradients by queries, and by keys and values that heads share, of a
backward pass that stores dS times a factor `τ`, as the scale is, or as dropout's is that it leaves
out of dP, for which it multiplies D and dL by it, and leaves the rest to the sums, or that stores
weights times `τ`, without a factor 1 / `τ` of dropout's by which it multiplies the sum of dV, are
within the bounds of one that stores dS and weights as they are, stored at the end, if what these
lose below the normal numbers counts as often as `τ` makes them smaller, growth · |τ| ≥ 1, and what
sums lose as often as what multiplies them makes it larger, which is `reach`. -/
theorem scaled_gradients {heads : Nat} (scale : R)
    (modify : Fin heads → ScoreMod R q_len kv_len)
    (slope : Fin heads → ScoreSlope R R q_len kv_len) (Q : Fin heads → Matrix R q_len d)
    (K : Matrix R kv_len d) (V : Matrix R kv_len d_v) (Z : Fin heads → WeightFactor R q_len kv_len)
    (dO : Fin heads → Matrix R q_len d_v) (dLse : Fin heads → Vec R q_len)
    {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hZ : ∀ h i j, 0 ≤ Z h i j)
    {error slopeError : Fin heads → Fin q_len → Fin kv_len → R} (he : ∀ h i j, 0 ≤ error h i j)
    {S X : Fin heads → Fin q_len → Fin kv_len → R} {τ rest reach reach' : R} (hτ : τ ≠ 0)
    (grows : 1 ≤ p.growth * absolute τ) (one : 1 ≤ reach') (hreach : reach' ≤ reach)
    (hr : absolute τ * reach' ≤ reach) {roundings stores tiles totals : Nat}
    (hc : numeral roundings * p.accumulation < 1) (hc' : numeral totals * p.accumulation < 1)
    {u η tiny : R} (ht : 0 ≤ tiny) :
    let row := fun h => backwardRow scale (modify h) (slope h) (Q h) K V (Z h) (dO h) (dLse h)
      (error h) (slopeError h)
    let g := fun h => vjpDropout scale (modify h) (slope h) (Q h) K V (Z h) id (dO h) (dLse h)
    let dS := fun h i j =>
      scoreGradientTerm p c (row h i).reach (dLse h)[i] (row h i).keys ((row h i).key j)
    let term := presentGradientTerm p roundings stores tiles
    (τ * rest = scale → (∀ h i, (row h i).Scaled p c τ (S h i) (X h i)) →
      (∀ (h : Fin heads) (i : Fin q_len) (t : Fin d) (z z' : R),
        ComputedTiledGradient p roundings stores tiles rest reach' (X h i) (fun j => K[j][t]) z →
        StoredBelow u η z z' →
        let exact := (g h).dQ[i][t]
        AtMost (storedGradientError u η exact
          (term scale reach ((List.finRange kv_len).map fun j => dS h i j K[j][t])).error)
          (z' - exact))
      ∧ ∀ (j : Fin kv_len) (t : Fin d) (z : Fin heads → R) (w w' : R),
        (∀ h, ComputedTiledGradient p roundings stores tiles rest reach' (fun i => X h i j)
          (fun i => (Q h)[i][t]) (z h)) →
        ComputedShared p tiny totals z w → StoredBelow u η w w' →
        let exact := sumOver (fun h => (g h).dK[j][t]) (List.finRange heads)
        AtMost (storedGradientError u η exact (sharedGradientError p tiny totals
          ((List.finRange heads).map fun h =>
            term scale reach ((List.finRange q_len).map fun i => dS h i j (Q h)[i][t]))))
          (w' - exact))
    ∧ (τ * rest = 1 → ∀ (j : Fin kv_len) (t : Fin d_v) (x : Fin heads → Fin q_len → R)
        (z : Fin heads → R) (w w' : R), (∀ h i, (row h i).ScaledWeight p τ j (x h i)) →
      (∀ h, ComputedTiledGradient p roundings stores tiles rest reach' (x h)
        (fun i => (dO h)[i][t]) (z h)) →
      ComputedShared p tiny totals z w → StoredBelow u η w w' →
      let exact := sumOver (fun h => (g h).dV[j][t]) (List.finRange heads)
      AtMost (storedGradientError u η exact (sharedGradientError p tiny totals
        ((List.finRange heads).map fun h => term 1 reach ((List.finRange q_len).map fun i =>
          weightTerm p ((row h i).key j) (dO h)[i][t])))) (w' - exact)) := by
  intro row g dS term
  have formulas := fun h =>
    vjpDropout_formulas scale (modify h) (slope h) (Q h) K V (Z h) id (dO h) (dLse h)
  have valid : ∀ h i, (row h i).Valid := fun h =>
    backwardRow_valid scale (modify h) (slope h) (Q h) K V (Z h) (dO h) (dLse h) (hZ h) (he h)
  have exact : ∀ h i j, (row h i).scoreGradient j = (g h).dBias[i][j] := fun h =>
    scoreGradient_eq scale (modify h) (slope h) (Q h) K V (Z h) (dO h) (dLse h) id (error h)
      (slopeError h)
  refine ⟨fun hscale rows => ?_, fun hone j t x z w w' hx hz hw hw' => ?_⟩
  · have one_term := fun h i j =>
      scaled_term hp hτ grows hc₁ hc₂ hu (valid h i) (rows h i) j
    refine ⟨fun h i t z z' hz hz' => ?_, fun j t z w w' hz hw hw' => ?_⟩
    · refine rounded_gradientStore (scaled_gradient hp hτ hscale one hreach hr hc hu
        (y := fun j => K[j][t])
        (e := fun j => (row h i).scoreGradient j * (row h i).slope j)
        (t := fun j => dS h i j K[j][t])
        (fun j => ⟨(one_term h i j K[j][t]).1, (one_term h i j K[j][t]).2, rfl⟩) hz ?_).1 hz'
      simp only [exact]
      exact (formulas h).2.2.1 i t
    · refine rounded_gradientStore (rounded_shared hp ht hc' (fun h => ?_) hw) hw'
      have := scaled_gradient hp hτ hscale one hreach hr hc hu (y := fun i => (Q h)[i][t])
        (e := fun i => (row h i).scoreGradient j * (row h i).slope j)
        (t := fun i => dS h i j (Q h)[i][t]) (g := (g h).dK[j][t])
        (fun i => ⟨(one_term h i j (Q h)[i][t]).1, (one_term h i j (Q h)[i][t]).2, rfl⟩) (hz h) (by
          simp only [exact]
          exact (formulas h).2.2.2 j t)
      exact ⟨this.1, this.2, rfl⟩
  · refine rounded_gradientStore (rounded_shared hp ht hc' (fun h => ?_) hw) hw'
    have one_term := fun i =>
      rounded_weightTerm hp (valid h i) (scaled_weight hτ grows hp (hx h i)) (dO h)[i][t]
    have := scaled_gradient hp hτ hone one hreach hr hc hu (y := fun i => (dO h)[i][t])
      (e := fun i => (row h i).factor j * (row h i).weight j) (g := (g h).dV[j][t])
      (t := fun i => weightTerm p ((row h i).key j) (dO h)[i][t])
      (fun i => ⟨(one_term i).1, (one_term i).2, rfl⟩) (hz h) (by
        rw [Semiring.one_mul]
        exact valueGradient_eq scale (modify h) (slope h) (Q h) K V (Z h) (dO h) (dLse h) id
          (error h) (slopeError h) j t)
    exact ⟨this.1, this.2, rfl⟩

/-! ## A temperature in the scale -/

omit [Exponential R R] in
private theorem absolute_pos {t : R} (ht : t ≠ 0) : 0 < absolute t := by
  have h₁ := absolute_nonneg t
  obtain ⟨i₁, i₂⟩ := atMost_absolute t
  by_cases h₀ : absolute t = 0
  · exact absurd (by grind) ht
  · grind

omit [Exponential R R] in
private theorem nonneg_of_absolute_mul {t x : R} (ht : t ≠ 0) (h : 0 ≤ absolute t * x) : 0 ≤ x := by
  by_cases h₀ : 0 ≤ x
  · exact h₀
  · have := OrderedRing.mul_pos (absolute_pos ht) (show 0 < -x by grind)
    grind

omit [Exponential R R] in
/-- A temperature makes the bound of a sum larger that multiplies it, where it makes the largest
part of the scale larger. -/
private theorem present_mul {p : GradientPrecision R} {roundings stores tiles : Nat}
    {scale t reach : R} (ht : t ≠ 0) (terms : List (GradientTerm R)) :
    (presentGradientTerm p roundings stores tiles (scale * t) (absolute t * reach) terms).error
      = absolute t * (presentGradientTerm p roundings stores tiles scale reach terms).error := by
  have pos := absolute_pos ht
  show presentError _ _ _ = _ * presentError _ _ _
  rw [presentError, presentError, absolute_mul, tiledGradientError, tiledGradientError,
    absolute_mul]
  generalize sumOver (fun t => (t.size + t.error) * absolute t.other) terms = A
  generalize sumOver _ terms = B
  by_cases h : absolute scale * A ≤ 0
  · rw [if_pos h, if_pos, Semiring.mul_zero]
    have := OrderedRing.mul_le_mul_of_nonneg_left h (Std.le_of_lt pos)
    grind
  · rw [if_neg h, if_neg]
    · grind
    · intro h₁
      refine h ?_
      have h₂ : 0 < absolute scale * A := by grind
      have h₃ := OrderedRing.mul_pos pos h₂
      grind

omit [Exponential R R] in
/-- A sum that a temperature multiplies, as a part of the scale, is off by no more than one that it
multiplies at the end, where the bound of that has room for what multiplies sums. -/
theorem temperature_sum {n : Nat} {p : GradientPrecision R} (hp : PreciseGradient p)
    {τ rest scale t : R} (hτ : τ ≠ 0) (ht : t ≠ 0) {reach reach' : R}
    (hscale : τ * rest = scale * t) (one : 1 ≤ reach') (hreach : reach' ≤ absolute t * reach)
    (hr : absolute τ * reach' ≤ absolute t * reach) {roundings stores tiles : Nat}
    (hc : numeral roundings * p.accumulation < 1) (hu : numeral 3 * p.unit < 1)
    {term : Fin n → GradientTerm R} {x y e : Fin n → R} {z : R}
    (h : ∀ j, AtMost (term j).error (τ⁻¹ * x j - e j) ∧ AtMost (term j).size (e j) ∧
      (term j).other = y j)
    (hz : ComputedTiledGradient p roundings stores tiles rest reach' x y z) :
    AtMost (absolute t * (presentGradientTerm p roundings stores tiles scale reach
      ((List.finRange n).map term)).error)
      (z - scale * t * sumOver (fun j => e j * y j) (List.finRange n)) := by
  have h₁ := scaled_sum hp hτ hscale one hreach hr hc hu h hz
  rwa [present_mul ht] at h₁

omit [Exponential R R] in
/-- In a sum over what it multiplies it may multiply the scale instead. -/
private theorem present_other {n : Nat} {p : GradientPrecision R} {roundings stores tiles : Nat}
    {scale t reach : R} {x y : Fin n → GradientTerm R}
    (h : ∀ j, y j = ⟨(x j).size, (x j).error, t * (x j).other⟩) :
    (presentGradientTerm p roundings stores tiles (scale * t) reach ((List.finRange n).map x)).error
      = (presentGradientTerm p roundings stores tiles scale reach
        ((List.finRange n).map y)).error := by
  have sum : ∀ f : GradientTerm R → R, (∀ s : GradientTerm R, ∀ o, f ⟨s.size, s.error, o⟩ = f s) →
      absolute (scale * t) * sumOver (fun s => f s * absolute s.other) ((List.finRange n).map x)
        = absolute scale * sumOver (fun s => f s * absolute s.other) ((List.finRange n).map y) :=
    fun f hf => by
      rw [sumOver_map, sumOver_map, sumOver_congr (f := fun j => f (y j) * absolute (y j).other)
        (g := fun j => absolute t * (f (x j) * absolute (x j).other)) fun j _ => by
          show f (y j) * absolute (y j).other = absolute t * (f (x j) * absolute (x j).other)
          rw [h j, hf, absolute_mul]
          grind, sumOver_mul_left, absolute_mul]
      grind
  have same : sumOver (fun s => s.size + s.error) ((List.finRange n).map y)
      = sumOver (fun s => s.size + s.error) ((List.finRange n).map x) := by
    rw [sumOver_map, sumOver_map]
    exact sumOver_congr fun j _ => by rw [h j]
  show presentError _ _ _ = presentError _ _ _
  rw [presentError, presentError, tiledGradientError, tiledGradientError,
    sum (fun s => s.size + s.error) fun _ _ => rfl, same,
    sum (fun s => s.error + _ * (s.size + s.error)) fun _ _ => rfl]

omit [Exponential R R] in
/-- Where a number is stored before the temperature multiplies it more is lost. -/
private theorem product_le_total {p : GradientPrecision R} (hp : PreciseGradient p) {totals : Nat}
    (hc : numeral totals * p.accumulation < 1) {η E s t exact : R} (hη : 0 ≤ η) (hE : 0 ≤ E)
    (hs : 0 ≤ s) : absolute t * E ≤ totalError p.accumulation 0 p.tiny 0 totals
      [storedGradientTerm p.output η exact s E t] := by
  have g₁ := gamma_nonneg (k := totals) hp.accumulation hc
  have n₀ := absolute_nonneg t
  have n₁ := OrderedRing.mul_nonneg (numeral_nonneg (2 * totals)) hp.tiny
  have n₂ := OrderedRing.mul_nonneg g₁ n₁
  have n₃ := OrderedRing.mul_nonneg hp.output (show 0 ≤ absolute exact + E by
    have := absolute_nonneg exact
    grind)
  have n₄ := OrderedRing.mul_nonneg g₁
    (show 0 ≤ s + (E + p.output * (absolute exact + E) + η) by grind)
  have i₁ := OrderedRing.mul_le_mul_of_nonneg_right (show E ≤ E + p.output * (absolute exact + E)
    + η + gamma totals p.accumulation * (s + (E + p.output * (absolute exact + E) + η)) by grind) n₀
  rw [totalError, storedGradientTerm, sumOver_cons, sumOver_nil]
  show absolute t * E ≤ (E + p.output * (absolute exact + E) + η
      + ((1 + 0) * (1 + gamma totals p.accumulation) - 1)
        * (s + (E + p.output * (absolute exact + E) + η))) * absolute t + 0
    + (1 + gamma totals p.accumulation) * (0 * _ + numeral (2 * totals) * p.tiny)
  rw [Semiring.zero_mul]
  generalize numeral (2 * totals) * p.tiny = m at *
  generalize gamma totals p.accumulation = g at *
  generalize E + p.output * (absolute exact + E) + η = e at *
  clear n₃ n₄
  grind

/-- **scale-times-temperature**: the gradients by queries and keys of a head of a backward pass that
multiplies the scale by its temperature `t`, in the place of the queries, are within the bounds of
one that multiplies the queries, that by queries stores and multiplies by `t` again, before they are
stored at the end, if `reachK` is at least as large as what multiplies sums, and |t| · `reachQ`. -/
theorem temperature_in_scale (scale t : R) (ht : t ≠ 0) (modify : ScoreMod R q_len kv_len)
    (slope : ScoreSlope R R q_len kv_len) (Q : Matrix R q_len d) (K : Matrix R kv_len d)
    (V : Matrix R kv_len d_v) (Z : WeightFactor R q_len kv_len) (dO : Matrix R q_len d_v)
    (dLse : Vec R q_len) {p : GradientPrecision R} (hp : PreciseGradient p) {c : GradientCounts}
    (hc₁ : numeral c.products * p.accumulation < 1) (hc₂ : numeral c.delta * p.accumulation < 1)
    (hu : numeral 3 * p.unit < 1) (hZ : ∀ i j, 0 ≤ Z i j)
    {error slopeError : Fin q_len → Fin kv_len → R} (he : ∀ i j, 0 ≤ error i j)
    {S X : Fin q_len → Fin kv_len → R} {τ rest reachQ reachK reach' : R} (hτ : τ ≠ 0)
    (hscale : τ * rest = scale * t) (grows : 1 ≤ p.growth * absolute τ) (one : 1 ≤ reach')
    (hQ : reach' ≤ absolute t * reachQ) (hQ' : absolute τ * reach' ≤ absolute t * reachQ)
    (hK : reach' ≤ reachK) (hK' : absolute τ * reach' ≤ reachK)
    {roundings stores tiles totals : Nat} (hc : numeral roundings * p.accumulation < 1)
    (hc' : numeral totals * p.accumulation < 1) {η : R} (hη : 0 ≤ η) {z : R} :
    let row := backwardRow scale modify slope (scaleRows t Q) K V Z dO dLse error slopeError
    let g := vjpDropout scale modify slope (scaleRows t Q) K V Z id dO dLse
    let dS := fun i j => scoreGradientTerm p c (row i).reach dLse[i] (row i).keys ((row i).key j)
    let term := presentGradientTerm p roundings stores tiles scale
    (∀ i, (row i).Scaled p c τ (S i) (X i)) →
      (∀ (i : Fin q_len) (a : Fin d),
        ComputedTiledGradient p roundings stores tiles rest reach' (X i) (fun j => K[j][a]) z →
        let whole := term reachQ ((List.finRange kv_len).map fun j => dS i j K[j][a])
        AtMost (totalError p.accumulation 0 p.tiny 0 totals
          [storedGradientTerm p.output η g.dQ[i][a] whole.size whole.error t])
          (z - t * g.dQ[i][a]))
      ∧ ∀ (j : Fin kv_len) (a : Fin d),
        ComputedTiledGradient p roundings stores tiles rest reach' (fun i => X i j)
          (fun i => Q[i][a]) z →
        AtMost (term reachK
          ((List.finRange q_len).map fun i => dS i j (scaleRows t Q)[i][a])).error
          (z - g.dK[j][a]) := by
  intro row g dS term rows
  obtain ⟨-, -, hdQ, hdK⟩ :=
    vjpDropout_formulas scale modify slope (scaleRows t Q) K V Z id dO dLse
  have valid : ∀ i, (row i).Valid :=
    backwardRow_valid scale modify slope (scaleRows t Q) K V Z dO dLse hZ he
  have exact : ∀ i j, (row i).scoreGradient j = g.dBias[i][j] :=
    scoreGradient_eq scale modify slope (scaleRows t Q) K V Z dO dLse id error slopeError
  have one_term := fun i j => scaled_term hp hτ grows hc₁ hc₂ hu (valid i) (rows i) j
  have component : ∀ (i : Fin q_len) (a : Fin d), (scaleRows t Q)[i][a] = t * Q[i][a] :=
    fun i a => by
      simp only [scaleRows, Vec.smul, Fin.getElem_fin, Vec.getElem_ofFn, Vec.getElem_map]
  refine ⟨fun i a hz => ?_, fun j a hz => ?_⟩
  · have h₁ := temperature_sum hp hτ ht hscale one hQ hQ' hc hu (y := fun j => K[j][a])
      (e := fun j => (row i).scoreGradient j * (row i).slope j) (term := fun j => dS i j K[j][a])
      (fun j => ⟨(one_term i j K[j][a]).1, (one_term i j K[j][a]).2, rfl⟩) hz
    simp only [exact] at h₁
    rw [show scale * t * _ = t * g.dQ[i][a] by
      rw [hdQ i a, CommSemiring.mul_comm scale t, Semiring.mul_assoc]
      rfl] at h₁
    refine h₁.mono (product_le_total hp hc' hη ?_ ?_)
    · exact nonneg_of_absolute_mul ht h₁.nonneg
    · refine OrderedRing.mul_nonneg (absolute_nonneg scale) (sumOver_nonneg fun x hx => ?_)
      obtain ⟨j, -, rfl⟩ := List.mem_map.mp hx
      exact OrderedRing.mul_nonneg (one_term i j K[j][a]).2.nonneg (absolute_nonneg _)
  · have h := scaled_gradient hp hτ hscale one hK hK' hc hu (y := fun i => Q[i][a])
      (e := fun i => (row i).scoreGradient j * (row i).slope j) (g := g.dK[j][a])
      (t := fun i => dS i j Q[i][a])
      (fun i => ⟨(one_term i j Q[i][a]).1, (one_term i j Q[i][a]).2, rfl⟩) hz (by
        simp only [exact]
        rw [hdK j a, Semiring.mul_assoc scale t]
        refine congrArg (scale * ·) ?_
        rw [← sumOver_mul_left]
        refine sumOver_congr fun i _ => ?_
        show _ * (scaleRows t Q)[i][a] = t * (_ * Q[i][a])
        rw [component i a]
        generalize Q[i][a] = q
        show g.dBias[i][j] * (row i).slope j * (t * q) = t * (g.dBias[i][j] * (row i).slope j * q)
        grind)
    have h₁ := h.1
    rwa [present_other (t := t) (y := fun i => dS i j (scaleRows t Q)[i][a]) fun i => by
      show dS i j (scaleRows t Q)[i][a]
        = ⟨(dS i j Q[i][a]).size, (dS i j Q[i][a]).error, t * Q[i][a]⟩
      rw [component i a]
      rfl] at h₁

end Attention.Proof
