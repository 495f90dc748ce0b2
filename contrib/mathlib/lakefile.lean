import Lake
open Lake DSL

package «attention-mathlib» where
  leanOptions := #[⟨`autoImplicit, false⟩]

require attention from "../.."

-- v4.28.0, made for the Lean of lean-toolchain.
require mathlib from git
  "https://github.com/leanprover-community/mathlib4" @ "8f9d9cff6bd728b17a24e163c9402775d9e6a365"

@[default_target]
lean_lib AttentionMathlib
