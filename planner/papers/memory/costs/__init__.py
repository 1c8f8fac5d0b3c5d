"""The derived form of the memory paper: bytes of a rank, links of its data-parallel dimensions, recomputation."""
