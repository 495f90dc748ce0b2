"""Results from the mathematical definitions: a second derivation beside Lean's."""
