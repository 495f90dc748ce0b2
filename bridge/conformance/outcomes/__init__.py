"""What is judged, what became of it, and the likely causes of its failures."""
