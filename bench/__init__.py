"""Benches: one command each, printing the figures that the README quotes."""
