"""How parts are run side by side, kept, and turned into each experiment's outputs."""
