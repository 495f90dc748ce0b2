module

public import Attention.Spec.Online
public import Attention.Spec.Rows

public section

/-! # Ring attention between devices that run by themselves

Each device has a few buffers and a program. It posts sends of buffers and receives into buffers, on
channels, takes buffers into its result, writes from it into buffers, and waits. A posted send reads
its buffer when its message leaves, a posted receive overwrites its buffer when a message arrives:
at any time after the post, in any order with the events of the devices. Messages are read and
written whole, and those of one channel keep their order. A device knows whose keys it should hold
by counting rounds; nothing but the payload is passed on.

The content of a buffer, and how a device computes with it, is left open. The forward pass has keys
and values in two buffers, on one channel; `RingNetBackward` has their gradients, too.
Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context", section 3; MPI 4.1, sections 3.4 and 3.7, for posted sends and receives. -/

namespace Attention.Spec

open Online

universe u v w

/-- An instruction of a device's program, of n devices with b buffers and c channels. -/
inductive Instruction (n b c : Nat) where
  /-- Post a send of a buffer on a channel. -/
  | send (channel : Fin c) (buffer : Fin b)
  /-- Post a receive from a channel into a buffer. -/
  | receive (channel : Fin c) (buffer : Fin b)
  /-- Take a buffer into the result, as the one that belongs to the device `source`. -/
  | consume (buffer : Fin b) (source : Fin n)
  /-- Write from the result into a buffer. -/
  | store (buffer : Fin b)
  /-- Wait until the messages of all posted sends on a channel have left. -/
  | waitSends (channel : Fin c)
  /-- Wait until the messages of all posted receives from a channel have arrived. -/
  | waitReceives (channel : Fin c)

/-- A device. Posted sends whose messages have not left, and posted receives whose messages have not
arrived, are listed for each channel by their buffers, oldest first. -/
structure Node (n b c : Nat) (α : Type u) (β : Type v) where
  /-- The rest of its program. -/
  rest : List (Instruction n b c)
  /-- Its buffers. -/
  buffers : Vector α b
  /-- The posted sends on each channel. -/
  sends : Vector (List (Fin b)) c
  /-- The posted receives from each channel. -/
  receives : Vector (List (Fin b)) c
  /-- Its result so far. -/
  result : β

/-- The devices of a ring, and the messages on their way to each on each channel, oldest first. -/
structure RingNet (n b c : Nat) (α : Type u) (β : Type v) where
  /-- The devices. -/
  nodes : Vector (Node n b c α β) n
  /-- The messages to each device, channel by channel. -/
  channels : Vector (Vector (List α) c) n

/-- An event of a ring. -/
inductive RingEvent (n c : Nat) where
  /-- The device does the next instruction of its program. -/
  | execute (i : Fin n)
  /-- The oldest posted send on the channel to the device reads its buffer. -/
  | leave (channel : Fin c) (i : Fin n)
  /-- The oldest message to the device overwrites the buffer of its oldest posted receive. -/
  | arrive (channel : Fin c) (i : Fin n)

/-- The rules of a ring. -/
structure RingRules (n c : Nat) (α : Type u) (β : Type v) where
  /-- The device whose messages a channel brings to a device. -/
  sender : Fin c → Fin n → Fin n
  /-- `take i source` takes a buffer into the result of device i. -/
  take : Fin n → Fin n → β → α → β
  /-- The content that a result writes into a buffer. -/
  give : β → α
  /-- The number of messages that a channel has room for, beside one for each posted receive. -/
  capacity : Nat

variable {n b c : Nat} {α : Type w} {β : Type v}

/-- The device after its next instruction; `none` while it waits, and at the end. -/
@[expose] def Node.execute (rules : RingRules n c α β) (i : Fin n) (node : Node n b c α β) :
    Option (Node n b c α β) :=
  match node.rest with
  | [] => none
  | next :: rest =>
    match next with
    | .send channel buffer => some { node with
        rest := rest, sends := node.sends.set channel (node.sends[channel] ++ [buffer]) }
    | .receive channel buffer => some { node with
        rest := rest, receives := node.receives.set channel (node.receives[channel] ++ [buffer]) }
    | .consume buffer source => some { node with
        rest := rest, result := rules.take i source node.result node.buffers[buffer] }
    | .store buffer => some { node with
        rest := rest, buffers := node.buffers.set buffer (rules.give node.result) }
    | .waitSends channel =>
      if node.sends[channel].length = 0 then some { node with rest := rest } else none
    | .waitReceives channel =>
      if node.receives[channel].length = 0 then some { node with rest := rest } else none

/-- The message of the oldest posted send on a channel, and the device after it has left. -/
@[expose] def Node.leave (channel : Fin c) (node : Node n b c α β) :
    Option (α × Node n b c α β) :=
  match node.sends[channel] with
  | [] => none
  | buffer :: sends =>
    some (node.buffers[buffer], { node with sends := node.sends.set channel sends })

/-- The device after a message has arrived from a channel; `none` without a posted receive. -/
@[expose] def Node.arrive (channel : Fin c) (message : α) (node : Node n b c α β) :
    Option (Node n b c α β) :=
  match node.receives[channel] with
  | [] => none
  | buffer :: receives => some { node with
      receives := node.receives.set channel receives
      buffers := node.buffers.set buffer message }

/-- The ring with another device i. -/
@[expose] def RingNet.setNode (net : RingNet n b c α β) (i : Fin n) (node : Node n b c α β) :
    RingNet n b c α β :=
  { net with nodes := net.nodes.set i node }

/-- The ring with other messages on a channel to device i. -/
@[expose] def RingNet.setChannel (net : RingNet n b c α β) (i : Fin n) (channel : Fin c)
    (messages : List α) : RingNet n b c α β :=
  { net with channels := net.channels.set i (net.channels[i].set channel messages) }

/-- The ring after an event; `none` where it cannot happen. A channel has room for `capacity`
messages, and for one more for each posted receive; without room no message leaves. -/
@[expose] def RingNet.after (rules : RingRules n c α β) (net : RingNet n b c α β)
    (event : RingEvent n c) : Option (RingNet n b c α β) :=
  match event with
  | .execute i =>
    match net.nodes[i].execute rules i with
    | none => none
    | some node => some (net.setNode i node)
  | .leave channel i =>
    let messages := net.channels[i][channel]
    if messages.length < rules.capacity + net.nodes[i].receives[channel].length then
      match net.nodes[rules.sender channel i].leave channel with
      | none => none
      | some (message, node) =>
        some ((net.setNode (rules.sender channel i) node).setChannel i channel
          (messages ++ [message]))
    else none
  | .arrive channel i =>
    match net.channels[i][channel] with
    | [] => none
    | message :: messages =>
      match net.nodes[i].arrive channel message with
      | none => none
      | some node => some ((net.setNode i node).setChannel i channel messages)

/-- The ring after some events, one after the other; `none` if one cannot happen. -/
@[expose] def RingNet.run (rules : RingRules n c α β) :
    List (RingEvent n c) → RingNet n b c α β → Option (RingNet n b c α β)
  | [], net => some net
  | event :: events, net =>
    match net.after rules event with
    | none => none
    | some next => next.run rules events

/-- A ring before any event: the programs, the buffers of each device, and the result that it starts
from. -/
@[expose] def RingNet.start (program : Fin n → List (Instruction n b c))
    (buffers : Fin n → Vector α b) (result : Fin n → β) : RingNet n b c α β :=
  { nodes := Vec.ofFn fun i =>
      ⟨program i, buffers i, Vec.ofFn fun _ => [], Vec.ofFn fun _ => [], result i⟩
    channels := Vec.ofFn fun _ => Vec.ofFn fun _ => [] }

/-! ## The program of ring attention -/

/-- The device before this one; before the first it is the last. -/
@[expose] def before (i : Fin n) : Fin n :=
  ⟨if i.val = 0 then n - 1 else i.val - 1, by split <;> omega⟩

/-- The device after this one; after the last it is the first. -/
@[expose] def following (i : Fin n) : Fin n :=
  ⟨if i.val + 1 = n then 0 else i.val + 1, by split <;> omega⟩

/-- The device whose keys device `i` holds in round `t`: itself at first, then the one before it,
and so on. -/
@[expose] def source (i : Fin n) : Nat → Fin n
  | 0 => i
  | t + 1 => source (before i) t

/-- The buffer that is held in round `t`. -/
@[expose] def slot (t : Nat) : Fin 2 := ⟨t % 2, Nat.mod_lt t (by decide)⟩

/-- Round `t` of device `i`. In the last nothing is passed on. -/
@[expose] def roundProgram (rounds : Nat) (i : Fin n) (t : Nat) : List (Instruction n 2 1) :=
  if t + 1 < rounds then
    [.send 0 (slot t), .receive 0 (slot (t + 1)), .consume (slot t) (source i t), .waitSends 0,
      .waitReceives 0]
  else [.consume (slot t) (source i t)]

/-- The program of device `i`. -/
@[expose] def ringProgram (rounds : Nat) (i : Fin n) : List (Instruction n 2 1) :=
  (List.range rounds).flatMap (roundProgram rounds i)

/-! ## Keys and values -/

variable {S : Type u} {R : Type v} {q_len kv_len d d_v : Nat}

/-- The keys `cols` with their values. -/
@[expose] def shard (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (cols : List (Fin kv_len)) :
    List (KeyValue S R d d_v) :=
  cols.map fun j => (K[j], V[j])

/-- Device `i` takes keys and values, as those at the places of device `source`, into the states of
its queries. -/
@[expose] def takeShard [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S] [Add R] [Mul R]
    [OfNat R 0] [Exp S R] (scale : S) (modify : ScoreMod S q_len kv_len) (Q : Matrix S q_len d)
    (rows : Fin n → List (Fin q_len)) (cols : Fin n → List (Fin kv_len)) (i source : Fin n)
    (states : List (State S R d_v)) (held : List (KeyValue S R d d_v)) : List (State S R d_v) :=
  List.zipWith
    (fun q s => stepBlock s
      (List.zipWith (fun j kv => ⟨modify q j (scale * Vec.dot Q[q] kv.1), kv.2⟩)
        (cols source) held))
    (rows i) states

/-- The rules of the forward pass: every device gets the keys of the one before it, and writes
nothing into its buffers itself. -/
@[expose] def forwardRules [Add S] [Sub S] [Mul S] [OfNat S 0] [LE S] [DecidableLE S] [Add R]
    [Mul R] [OfNat R 0] [Exp S R] (scale : S) (modify : ScoreMod S q_len kv_len)
    (Q : Matrix S q_len d) (rows : Fin n → List (Fin q_len)) (cols : Fin n → List (Fin kv_len))
    (capacity : Nat) : RingRules n 1 (List (KeyValue S R d d_v)) (List (State S R d_v)) :=
  { sender := fun _ i => before i
    take := takeShard scale modify Q rows cols
    give := fun _ => []
    capacity := capacity }

/-- A ring in which device `i` has the queries `rows i` and holds the keys `cols i` with their
values, before any event; `spare` is in its other buffer. -/
@[expose] def ringStart [OfNat R 0] (program : Fin n → List (Instruction n 2 1))
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (rows : Fin n → List (Fin q_len))
    (cols : Fin n → List (Fin kv_len)) (spare : Fin n → List (KeyValue S R d d_v)) :
    RingNet n 2 1 (List (KeyValue S R d d_v)) (List (State S R d_v)) :=
  RingNet.start program (fun i => #v[shard K V (cols i), spare i]) fun i =>
    (rows i).map fun _ => empty

/-- The outputs of each device, in the order of its queries. -/
@[expose] def RingNet.outputs [OfNat R 0] [Div R] (net : RingNet n b c α (List (State S R d_v))) :
    List (List (Vec R d_v)) :=
  net.nodes.toList.map fun node => node.result.map finish

end Attention.Spec
