module

public import Attention.Vectors.Dropout
public import Attention.Vectors.LargeFamilies
public import Attention.Vectors.OperationFamilies

public section

/-! # The families of dropout and of its generator -/

namespace Attention.Vectors

open Spec

/-- A word of 32 bits. -/
def word : Gen Nat := do return (← below (2 ^ 16)) * 2 ^ 16 + (← below (2 ^ 16))

/-- Four words. -/
def words : Gen Words := do return ⟨← word, ← word, ← word, ← word⟩

/-- The generator. -/
def philoxes : Family PhiloxCase where
  name := "philox"
  about := "Random words from counter and key: words in another order, a key that is not moved on \
    from round to round, or moved once too often, and products cut off at 32 bits show."
  theoremId := "philox-injective"
  cases :=
    let known : List PhiloxCase := [
      { reason := "Random123's known answer for counter and key 0"
        key := ⟨0, 0⟩, counters := [⟨0, 0, 0, 0⟩] },
      { reason := "Random123's known answer for words of ones"
        key := ⟨0xffffffff, 0xffffffff⟩
        counters := [⟨0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff⟩] },
      { reason := "Random123's known answer for the digits of π"
        key := ⟨0xa4093822, 0x299f31d0⟩
        counters := [⟨0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344⟩] },
      { reason := "counters that differ in one word by 1", key := ⟨1, 0⟩
        counters := [⟨0, 0, 0, 0⟩, ⟨1, 0, 0, 0⟩, ⟨0, 1, 0, 0⟩, ⟨0, 0, 1, 0⟩, ⟨0, 0, 0, 1⟩] },
      { reason := "the halves of the key are not exchanged", key := ⟨0, 1⟩
        counters := [⟨0, 0, 0, 0⟩, ⟨1, 2, 3, 4⟩] },
      { reason := "the key's sum goes beyond 32 bits in the first round"
        key := ⟨0x61c88647, 0x4498517b⟩, counters := [⟨5, 6, 7, 8⟩] },
      { reason := "words of which only the highest bit is set", key := ⟨0x80000000, 0x80000000⟩
        counters := [⟨0x80000000, 0, 0x80000000, 0⟩, ⟨0, 0x80000000, 0, 0x80000000⟩] }]
    let drawn := each "drawn" [1, 4, 16] fun n => do
      let key : PhiloxKey := ⟨← word, ← word⟩
      return { reason := s!"drawn: {n} counters", key, counters := ← draws words n }
    known.map (fun c => ⟨c.reason, pure c⟩) ++ drawn

/-- Inputs of attention with dropout. -/
def dropoutCase (reason : String) (batch num_kv_heads group q_len kv_len head_dim value_dim : Nat)
    (mask : MaskKind) (p : Rat) (seed : Nat) (algorithm : DropoutAlgorithm) : Gen DropoutCase := do
  let num_kv_heads := batch * num_kv_heads
  let forward : HeadsCase :=
    { reason := s!"{reason}: p = {p}, {maskText mask}, {sizes q_len kv_len head_dim}"
      num_kv_heads, group, q_len, kv_len, head_dim, value_dim, mask, algorithm := .grouped
      q := ← headRows (num_kv_heads * group) q_len head_dim
      k := ← headRows num_kv_heads kv_len head_dim
      v := ← draws (valueRows kv_len value_dim) num_kv_heads }
  return { batch, forward, p, seed, algorithm }

/-- By the formula. -/
def dropouts : Family DropoutCase where
  name := "dropout"
  about := "Dropped weights: the kept ones are divided by 1 − p, the softmax and its log-sum-exp \
    are those of all keys, and every sequence, head, query and key has a random number of its own."
  theoremId := "flash-dropout"
  cases := eachNamed
    [("nothing is dropped", 1, 1, 1, 3, 5, .none, 0, 7),
     ("everything is dropped", 1, 1, 1, 3, 5, .none, 1, 7),
     ("half is dropped", 1, 1, 1, 4, 9, .none, 1 / 2, 0),
     ("one of four is dropped", 1, 1, 1, 5, 8, .none, 1 / 4, 1),
     ("a probability that is no multiple of a power of two", 1, 1, 1, 6, 10, .none, 1 / 10, 2),
     ("most is dropped", 1, 1, 1, 4, 33, .none, 9 / 10, 3),
     ("a seed beyond 32 bits", 1, 1, 1, 3, 12, .none, 1 / 2, 2 ^ 32 + 5),
     ("the largest seed", 1, 1, 1, 3, 12, .none, 1 / 2, 2 ^ 63 - 1),
     ("seeds with equal lower halves draw differently", 1, 1, 1, 3, 12, .none, 1 / 2, 5),
     ("heads draw differently", 1, 3, 1, 3, 7, .none, 1 / 2, 11),
     ("query heads of a group draw differently", 1, 1, 3, 3, 7, .none, 1 / 2, 11),
     ("grouped heads", 1, 2, 2, 2, 9, .none, 3 / 8, 12),
     ("sequences draw differently", 3, 1, 1, 2, 6, .none, 1 / 2, 13),
     ("sequences of several heads", 2, 2, 1, 3, 5, .causal, 1 / 2, 14),
     ("sequences of grouped heads", 2, 1, 2, 2, 7, .none, 1 / 4, 15),
     ("causal", 1, 1, 1, 6, 6, .causal, 1 / 2, 16),
     ("causal, aligned at the end", 1, 1, 1, 3, 8, .causalBottomRight, 1 / 2, 17),
     ("queries that see no key", 1, 1, 1, 6, 3, .causalBottomRight, 1 / 2, 18),
     ("a window", 1, 1, 1, 5, 9, .window .bottomRight (some 2) (some 1), 1 / 2, 19),
     ("padding", 1, 1, 1, 3, 8, .keyLength 5, 1 / 2, 20),
     ("a Boolean mask", 1, 1, 1, 4, 6, maskWhere 4 6 fun i j => i != 2 && (i + j) % 3 != 0, 1 / 2,
      21),
     ("one query", 1, 1, 1, 1, 40, .none, 1 / 2, 22), ("one key", 1, 1, 1, 9, 1, .none, 1 / 2, 23)]
    fun (reason, batch, num_kv_heads, group, q_len, kv_len, mask, p, seed) =>
      dropoutCase reason batch num_kv_heads group q_len kv_len 3 2 mask p seed .formula

/-- By the tile loop. -/
def dropoutsTiled : Family DropoutCase where
  name := "dropout-tiles"
  about := "The tile loop with dropout: weights that are dropped from the denominator too, or \
    before the maximum, show."
  theoremId := "flash-dropout"
  cases := each "tiles"
    [(3, 5, .none, 1 / 2, 2, 2), (5, 9, .none, 1 / 4, 2, 4), (4, 4, .causal, 1 / 2, 3, 3),
     (2, 17, .none, 1 / 2, 16, 16), (17, 3, .causalBottomRight, 1 / 2, 16, 16),
     (3, 10, .keyLength 6, 3 / 4, 2, 3), (6, 7, .causal, 1 / 3, 1, 1),
     (4, 10, .window .topLeft none (some 3), 1 / 2, 4, 2), (7, 2, .none, 1 / 2, 8, 8),
     (3, 12, .causalBottomRight, 5 / 8, 2, 5)]
    fun (q_len, kv_len, mask, p, block_m, block_n) => do
      dropoutCase s!"tiles of {block_m} queries and {block_n} keys" 1 1 1 q_len kv_len 3 2 mask p
        (← below 1000) (.tiles block_m block_n)

/-- By the tile loop that draws in tiles. -/
def dropoutsDrawn : Family DropoutCase where
  name := "dropout-replay"
  about := "The mask is drawn tile by tile and does not depend on the tiles: columns counted from \
    the start of a tile, or tiles that start within a group of four keys, show."
  theoremId := "dropout-replay"
  cases := each "tiles"
    [(3, 8, .none, 1 / 2, 2, 4), (3, 8, .none, 1 / 2, 2, 3), (3, 8, .none, 1 / 2, 3, 1),
     (4, 11, .none, 1 / 4, 3, 5), (5, 13, .causal, 1 / 2, 2, 6), (2, 33, .none, 1 / 2, 16, 16),
     (18, 6, .causalBottomRight, 1 / 2, 16, 16), (3, 21, .keyLength 19, 1 / 2, 2, 7),
     (6, 6, .causal, 1 / 8, 4, 2), (2, 40, .window .bottomRight (some 20) (some 0), 1 / 2, 1, 9)]
    fun (q_len, kv_len, mask, p, block_m, block_n) => do
      let seed := (← word) * 2 ^ 31 + (← word)
      dropoutCase s!"tiles of {block_m} queries and {block_n} keys" 1 1 2 q_len kv_len 3 2 mask p
        seed (.drawn block_m block_n)

end Attention.Vectors
