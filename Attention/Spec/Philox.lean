module

public section

/-! # Philox: a counter-based random number generator

Philox4x32: from a counter of four 32-bit words and a key of two come four random words, by rounds
of multiplications and exclusive ors. It keeps no state, so any of its words can be drawn at any
time, and drawn again.
Source: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3", section 3.3 and table 2;
Random123, `philox.h`. -/

namespace Attention.Spec

/-- Four words, as numbers below 2 ^ 32. -/
structure Words where
  /-- Word 0. -/
  c0 : Nat
  /-- Word 1. -/
  c1 : Nat
  /-- Word 2. -/
  c2 : Nat
  /-- Word 3. -/
  c3 : Nat

/-- A key of two words, as numbers below 2 ^ 32. -/
structure PhiloxKey where
  /-- Word 0. -/
  k0 : Nat
  /-- Word 1. -/
  k1 : Nat

/-- One round: the low halves of two products replace two words, and their high halves, with the
other two words and the key, the others. -/
@[expose] def philoxRound (key : PhiloxKey) (counter : Words) : Words :=
  { c0 := (0xCD9E8D57 * counter.c2 / 2 ^ 32) ^^^ counter.c1 ^^^ key.k0
    c1 := 0xCD9E8D57 * counter.c2 % 2 ^ 32
    c2 := (0xD2511F53 * counter.c0 / 2 ^ 32) ^^^ counter.c3 ^^^ key.k1
    c3 := 0xD2511F53 * counter.c0 % 2 ^ 32 }

/-- The key of the next round: a Weyl sequence. -/
@[expose] def nextKey (key : PhiloxKey) : PhiloxKey :=
  { k0 := (key.k0 + 0x9E3779B9) % 2 ^ 32
    k1 := (key.k1 + 0xBB67AE85) % 2 ^ 32 }

/-- Some rounds of Philox4x32; 10 are usual. -/
@[expose] def philox (rounds : Nat) (key : PhiloxKey) (counter : Words) : Words :=
  match rounds with
  | 0 => counter
  | n + 1 => philox n (nextKey key) (philoxRound key counter)

end Attention.Spec
