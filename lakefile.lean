import Lake
open Lake DSL

package attention where
  leanOptions := #[⟨`autoImplicit, false⟩]

@[default_target]
lean_lib Attention
