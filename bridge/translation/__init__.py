"""The Spec definitions turned into Python, mechanically, from Lean's own terms: `bridge/spec`."""
