import Lake
open Lake DSL

package attention

@[default_target]
lean_lib Attention
