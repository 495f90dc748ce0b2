module

public import Attention.Spec.Online
public import Attention.Spec.Rows

public section

/-! # Ring attention between devices that run by themselves

Each device has two buffers and a program. It posts a send of one buffer and a receive into the
other, takes the keys and values that it holds into the states of its queries, and waits. A posted
send reads its buffer when its message leaves, a posted receive overwrites its buffer when a message
arrives: at any time after the post, in any order with what the devices do. Messages are read and
written whole. A device knows whose keys it should hold by counting rounds; nothing but keys and
values is passed on.
Source: Liu, Zaharia and Abbeel 2023, "Ring Attention with Blockwise Transformers for Near-Infinite
Context", section 3; MPI 4.1, sections 3.4 and 3.7, for posted sends and receives. -/

namespace Attention.Spec

open Online

universe u v w

/-- An instruction of a device's program. -/
inductive Instruction (n : Nat) where
  /-- Post a send of a buffer to the next device. -/
  | send (buffer : Fin 2)
  /-- Post a receive from the device before this one into a buffer. -/
  | receive (buffer : Fin 2)
  /-- Compute with a buffer, as the one that the device `source` held at first. -/
  | consume (buffer : Fin 2) (source : Fin n)
  /-- Wait until the messages of all posted sends have left. -/
  | waitSends
  /-- Wait until the messages of all posted receives have arrived. -/
  | waitReceives

/-- A device. Posted sends whose messages have not left, and posted receives whose messages have not
arrived, are listed by their buffers, oldest first. -/
structure Node (n : Nat) (α : Type u) (β : Type v) where
  /-- The rest of its program. -/
  rest : List (Instruction n)
  /-- Its two buffers. -/
  buffers : Vector α 2
  /-- The posted sends. -/
  sends : List (Fin 2)
  /-- The posted receives. -/
  receives : List (Fin 2)
  /-- Its result so far. -/
  result : β

/-- The devices of a ring, and the messages on their way to each from the one before it, oldest
first. -/
structure RingNet (n : Nat) (α : Type u) (β : Type v) where
  /-- The devices. -/
  nodes : Vector (Node n α β) n
  /-- The messages to each device. -/
  channels : Vector (List α) n

/-- An event of a ring. -/
inductive RingEvent (n : Nat) where
  /-- The device does the next instruction of its program. -/
  | execute (i : Fin n)
  /-- The oldest posted send to the device reads its buffer. -/
  | leave (i : Fin n)
  /-- The oldest message to the device overwrites the buffer of its oldest posted receive. -/
  | arrive (i : Fin n)

variable {n : Nat} {α : Type w} {β : Type v}

/-- The device before this one; before the first it is the last. -/
@[expose] def before (i : Fin n) : Fin n :=
  ⟨if i.val = 0 then n - 1 else i.val - 1, by split <;> omega⟩

/-- The device after its next instruction; `none` while it waits, and at the end. `take i source`
takes a buffer into the result of device i. -/
@[expose] def Node.execute (take : Fin n → Fin n → β → α → β) (i : Fin n) (node : Node n α β) :
    Option (Node n α β) :=
  match node.rest with
  | [] => none
  | next :: rest =>
    match next with
    | .send buffer => some { node with rest := rest, sends := node.sends ++ [buffer] }
    | .receive buffer => some { node with rest := rest, receives := node.receives ++ [buffer] }
    | .consume buffer source =>
      some { node with rest := rest, result := take i source node.result node.buffers[buffer] }
    | .waitSends => if node.sends.length = 0 then some { node with rest := rest } else none
    | .waitReceives => if node.receives.length = 0 then some { node with rest := rest } else none

/-- The ring after an event; `none` where it cannot happen. A channel has room for `capacity`
messages, and for one more for each posted receive; without room no message leaves. -/
@[expose] def RingNet.after (take : Fin n → Fin n → β → α → β) (capacity : Nat)
    (net : RingNet n α β) (event : RingEvent n) : Option (RingNet n α β) :=
  match event with
  | .execute i =>
    match net.nodes[i].execute take i with
    | none => none
    | some node => some { net with nodes := net.nodes.set i node }
  | .leave i =>
    let sender := net.nodes[before i]
    match sender.sends with
    | [] => none
    | buffer :: sends =>
      if net.channels[i].length < capacity + net.nodes[i].receives.length then
        some { nodes := net.nodes.set (before i) { sender with sends := sends }
               channels := net.channels.set i (net.channels[i] ++ [sender.buffers[buffer]]) }
      else none
  | .arrive i =>
    let node := net.nodes[i]
    match node.receives with
    | [] => none
    | buffer :: receives =>
      match net.channels[i] with
      | [] => none
      | message :: messages =>
        let buffers := node.buffers.set buffer message
        some { nodes := net.nodes.set i { node with receives := receives, buffers := buffers }
               channels := net.channels.set i messages }

/-- The ring after some events, one after the other; `none` if one cannot happen. -/
@[expose] def RingNet.run (take : Fin n → Fin n → β → α → β) (capacity : Nat) :
    List (RingEvent n) → RingNet n α β → Option (RingNet n α β)
  | [], net => some net
  | event :: events, net =>
    match net.after take capacity event with
    | none => none
    | some next => next.run take capacity events

/-! ## The program of ring attention -/

/-- The device whose keys device `i` holds in round `t`: itself at first, then the one before it,
and so on. -/
@[expose] def source (i : Fin n) : Nat → Fin n
  | 0 => i
  | t + 1 => source (before i) t

/-- The buffer that is held in round `t`. -/
@[expose] def slot (t : Nat) : Fin 2 := ⟨t % 2, Nat.mod_lt t (by decide)⟩

/-- Round `t` of device `i`. In the last nothing is passed on. -/
@[expose] def roundProgram (rounds : Nat) (i : Fin n) (t : Nat) : List (Instruction n) :=
  if t + 1 < rounds then
    [.send (slot t), .receive (slot (t + 1)), .consume (slot t) (source i t), .waitSends,
      .waitReceives]
  else [.consume (slot t) (source i t)]

/-- The program of device `i`. -/
@[expose] def ringProgram (rounds : Nat) (i : Fin n) : List (Instruction n) :=
  (List.range rounds).flatMap (roundProgram rounds i)

/-- A ring before any event: the programs, the buffer that each device holds, its other buffer, and
the result that it starts from. -/
@[expose] def RingNet.start (program : Fin n → List (Instruction n)) (held spare : Fin n → α)
    (result : Fin n → β) : RingNet n α β :=
  { nodes := Vec.ofFn fun i => ⟨program i, #v[held i, spare i], [], [], result i⟩
    channels := Vec.ofFn fun _ => [] }

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

/-- A ring in which device `i` has the queries `rows i` and holds the keys `cols i` with their
values, before any event. -/
@[expose] def ringStart [OfNat R 0] (program : Fin n → List (Instruction n))
    (K : Matrix S kv_len d) (V : Matrix R kv_len d_v) (rows : Fin n → List (Fin q_len))
    (cols : Fin n → List (Fin kv_len)) (spare : Fin n → List (KeyValue S R d d_v)) :
    RingNet n (List (KeyValue S R d d_v)) (List (State S R d_v)) :=
  RingNet.start program (fun i => shard K V (cols i)) spare fun i => (rows i).map fun _ => empty

/-- The outputs of each device, in the order of its queries. -/
@[expose] def RingNet.outputs [OfNat R 0] [Div R] (net : RingNet n α (List (State S R d_v))) :
    List (List (Vec R d_v)) :=
  net.nodes.toList.map fun node => node.result.map finish

end Attention.Spec
