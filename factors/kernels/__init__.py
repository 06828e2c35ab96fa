"""What the kernels of `operators` share: cells, the sorting of rows, and machine code that is kept on disk."""
