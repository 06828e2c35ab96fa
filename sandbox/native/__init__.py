"""The kernel's primitives, called through ctypes: nothing to compile, nothing to install, no privilege needed."""
