"""The systems that COD3S is compared with."""
