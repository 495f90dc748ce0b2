module

public import Attention.Algebra.Magnitude
public import Attention.Proof.Scores.ScoreMods
public import Attention.Spec.Masks

public section

/-! # Attention by distance

With a key (−|c|², c) for each point c and the query (1, 2 x), the score of c is −β |x − c|², up to
a term that does not depend on c: β is the scale, an inverse temperature. So the weights fall with
the distance of x from c, and the output lies where the values of the nearest points lie. -/

namespace Attention.Claims

open Spec Exponential Lean.Grind

universe u v

attribute [local instance] Semiring.natCast

variable {S : Type u} {R : Type v} {n m kv_len q_len : Nat}

section
variable [Add S] [Mul S] [OfNat S 0]

/-- The square of the Euclidean distance, Σ (xₖ − yₖ)². -/
@[expose] def sqDist [Sub S] (x y : Vec S n) : S :=
  sumOver (fun k => (x[k] - y[k]) * (x[k] - y[k])) (List.finRange n)

/-- The query of the point x: (1, 2 x). -/
@[expose] def pointQuery [OfNat S 1] [OfNat S 2] (x : Vec S n) : Vec S (n + 1) :=
  Vec.ofFn (Fin.cases 1 fun k => 2 * x[k])

/-- The key of the point c: (−|c|², c). -/
@[expose] def pointKey [Neg S] (c : Vec S n) : Vec S (n + 1) :=
  Vec.ofFn (Fin.cases (-Vec.dot c c) fun k => c[k])

/-- Attention by distance: for each of the points X, the mean of the values V of the points C, each
weighted with exp (−β · its squared distance). Plain attention: no mask, β for the scale. -/
@[expose] def attendPoints [Neg S] [OfNat S 1] [OfNat S 2] [Add R] [Mul R] [Div R] [OfNat R 0]
    [Exp S R] (β : S) (X : Matrix S q_len n) (C : Matrix S kv_len n) (V : Matrix R kv_len m) :
    Matrix R q_len m :=
  attention β Mask.full.toScoreMod (Vec.map pointQuery X) (Vec.map pointKey C) V

end

section
variable [OrderedCommRing S]

private theorem complete_square (f g : Fin n → S) (ks : List (Fin n)) :
    -sumOver (fun k => g k * g k) ks + sumOver (fun k => 2 * f k * g k) ks
      = sumOver (fun k => f k * f k) ks - sumOver (fun k => (f k - g k) * (f k - g k)) ks := by
  induction ks with
  | nil => simp only [sumOver_nil]; grind
  | cons k ks ih => simp only [sumOver_cons]; grind

/-- A point is at distance 0 from itself. -/
theorem sqDist_self (x : Vec S n) : sqDist x x = 0 := by
  rw [sqDist]
  induction List.finRange n with
  | nil => rfl
  | cons k ks ih => rw [sumOver_cons, ih]; grind

/-- |x − y|² = |x|² + |y|² − 2 ⟨y, x⟩. -/
theorem sqDist_eq (x y : Vec S n) :
    sqDist x y = Vec.dot x x + Vec.dot y y - 2 * Vec.dot y x := by
  rw [sqDist, Vec.dot, Vec.dot, Vec.dot]
  induction List.finRange n with
  | nil => simp only [sumOver_nil]; grind
  | cons k ks ih => simp only [sumOver_cons]; grind

/-- ⟨(1, 2 x), (−|c|², c)⟩ = |x|² − |x − c|². -/
theorem dot_pointQuery_pointKey (x c : Vec S n) :
    Vec.dot (pointQuery x) (pointKey c) = Vec.dot x x - sqDist x c := by
  have h := complete_square (fun k => x[k]) (fun k => c[k]) (List.finRange n)
  rw [Vec.dot, List.finRange_succ, sumOver_cons, sumOver_map, Vec.dot, sqDist, ← h]
  have e₀ : (pointQuery x)[(0 : Fin (n + 1))] = 1 := Vec.getElem_ofFn _ _
  have e₁ : (pointKey c)[(0 : Fin (n + 1))] = -Vec.dot c c := Vec.getElem_ofFn _ _
  have e₂ : ∀ k : Fin n, (pointQuery x)[k.succ] = 2 * x[k] := fun k => Vec.getElem_ofFn _ _
  have e₃ : ∀ k : Fin n, (pointKey c)[k.succ] = c[k] := fun k => Vec.getElem_ofFn _ _
  simp only [e₀, e₁, e₂, e₃, Vec.dot, Semiring.one_mul]

/-- A score is β |x|² − β |x − c|². -/
theorem score_points (β : S) (X : Matrix S q_len n) (C : Matrix S kv_len n) (i : Fin q_len)
    (k : Fin kv_len) :
    score β Mask.full.toScoreMod (Vec.map pointQuery X) (Vec.map pointKey C) i k
      = some (β * Vec.dot X[i] X[i] - β * sqDist X[i] C[k]) := by
  simp only [score, Mask.toScoreMod, Mask.full, if_true, Fin.getElem_fin, Vec.getElem_map,
    dot_pointQuery_pointKey]
  congr 1
  grind

end

/-! ## Where a mean lies -/

section
variable [OrderedField R]

/-- A weighted mean lies within ε + η of t, if the numbers that are farther than ε from t are still
within D of it, and each of their weights is at most 1/E of that of one number k₀, where
(how many) · D ≤ η E. -/
theorem mean_near {α : Type u} {ks : List α} {w v : α → R} {k₀ : α} {t ε η D E : R}
    (hw : ∀ k ∈ ks, 0 ≤ w k) (hk₀ : k₀ ∈ ks) (pos : 0 < w k₀) (hE : 0 < E) (hε : 0 ≤ ε)
    (hD : 0 ≤ D) (hη : (ks.length : R) * D ≤ η * E)
    (h : ∀ k ∈ ks, AtMost ε (v k - t) ∨ (AtMost D (v k - t) ∧ w k * E ≤ w k₀)) :
    AtMost (ε + η) (sumOver (fun k => w k * v k) ks / sumOver w ks - t) := by
  have term : ∀ k ∈ ks, AtMost (w k * E * ε + w k₀ * D) (w k * E * (v k - t)) := fun k hk => by
    have hwE := OrderedRing.mul_nonneg (hw k hk) (Std.le_of_lt hE)
    have h₀ := OrderedRing.mul_nonneg (Std.le_of_lt pos) hD
    have h₁ := OrderedRing.mul_nonneg hwE hε
    have self : AtMost (w k * E) (w k * E) := ⟨by grind, Std.le_refl _⟩
    rcases h k hk with h | ⟨h, hle⟩
    · exact (self.mul h).mono (by grind)
    · have := OrderedRing.mul_le_mul_of_nonneg_right hle hD
      exact (self.mul h).mono (by grind)
  have hl : 0 < sumOver w ks := Std.lt_of_lt_of_le pos (le_sumOver hw hk₀)
  have hle : w k₀ ≤ sumOver w ks := le_sumOver hw hk₀
  have up : sumOver (fun k => w k * E * (v k - t)) ks
      ≤ sumOver (fun k => w k * E * ε + w k₀ * D) ks :=
    sumOver_le_sumOver fun k hk => (term k hk).2
  have down : sumOver (fun k => -(w k * E * ε + w k₀ * D)) ks
      ≤ sumOver (fun k => w k * E * (v k - t)) ks :=
    sumOver_le_sumOver fun k hk => (term k hk).1
  have e : sumOver (fun k => w k * E * (v k - t)) ks
      = E * (sumOver (fun k => w k * v k) ks - sumOver w ks * t) := by
    rw [← sumOver_mul_right, ← sumOver_sub, ← sumOver_mul_left]
    exact sumOver_congr fun k _ => by grind
  have e' : sumOver (fun k => w k * E * ε + w k₀ * D) ks
      = sumOver w ks * (E * ε) + (ks.length : R) * (w k₀ * D) := by
    rw [sumOver_add, sumOver_const, ← sumOver_mul_right]
    exact congrArg (· + _) (sumOver_congr fun k _ => by grind)
  rw [sumOver_neg, e, e'] at down
  rw [e, e'] at up
  have hlen : 0 ≤ (ks.length : R) * D := by
    rw [← sumOver_const]
    exact sumOver_nonneg fun _ _ => hD
  generalize (ks.length : R) = len at *
  generalize sumOver (fun k => w k * v k) ks = num at *
  generalize sumOver w ks = l at *
  clear e e' term h hw
  have hη' : 0 ≤ η := Classical.byContradiction fun hn => by
    have := OrderedRing.mul_pos (show 0 < -η by grind) hE
    grind
  have h₁ := OrderedRing.mul_le_mul_of_nonneg_right hη (Std.le_of_lt pos)
  have h₂ := OrderedRing.mul_le_mul_of_nonneg_right hle
    (OrderedRing.mul_nonneg hη' (Std.le_of_lt hE))
  have o : num = l * (num / l) := by grind
  generalize num / l = y at *
  subst o
  have hlE := OrderedRing.mul_pos hl hE
  constructor
  · refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hlE (show 0 < -(y - t) - (ε + η) by grind)
    grind
  · refine Classical.byContradiction fun hn => ?_
    have := OrderedRing.mul_pos hlE (show 0 < y - t - (ε + η) by grind)
    grind

end

variable [OrderedCommRing S] [OrderedField R] [Exponential S R]

/-- Attention by distance gives, at a point, a number that lies within ε + η of t, if each point
whose value is farther than ε from t has a value within D of it, and its squared distance exceeds
that of the point k₀ by g, where kv_len · D ≤ η · exp (β g). -/
theorem attendPoints_near {β g : S} (hβ : 0 ≤ β) (X : Matrix S q_len n) (C : Matrix S kv_len n)
    (V : Matrix R kv_len m) {i : Fin q_len} {c : Fin m} {k₀ : Fin kv_len} {t ε η D : R}
    (hε : 0 ≤ ε) (hD : 0 ≤ D) (hη : (kv_len : R) * D ≤ η * exp (β * g))
    (h : ∀ k : Fin kv_len, AtMost ε (V[k][c] - t)
      ∨ (AtMost D (V[k][c] - t) ∧ sqDist X[i] C[k₀] + g ≤ sqDist X[i] C[k])) :
    AtMost (ε + η) ((attendPoints β X C V)[i][c] - t) := by
  rw [attendPoints, Proof.getElem_attention_eq_weights]
  refine mean_near (k₀ := k₀) (E := exp (β * g)) (D := D) (fun k _ => Proof.weight_nonneg _)
    (List.mem_finRange k₀) ?_ (exp_pos _) hε hD (by rwa [List.length_finRange]) fun k _ => ?_
  · rw [score_points]
    exact exp_pos _
  · refine (h k).imp_right fun ⟨h₁, h₂⟩ => ⟨h₁, ?_⟩
    rw [score_points, score_points, weight, weight, ← exp_add]
    refine exp_le ?_
    have := OrderedRing.mul_le_mul_of_nonneg_left h₂ hβ
    grind

end Attention.Claims
