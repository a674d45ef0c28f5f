"""How the program is changed, whatever is watched by it: wrappers, and the helper in C that they are made by."""
