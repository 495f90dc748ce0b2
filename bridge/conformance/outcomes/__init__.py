"""The subjects that are judged, their outcomes, and the likely causes of their failures."""
