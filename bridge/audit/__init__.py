"""What the library declares and proves, and whether that is what the documents say of it."""
