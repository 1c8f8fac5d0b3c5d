"""Bytes on one device by cause and what moving them costs: the project's one memory and communication model.

Sections 3.1 to 3.6 of the memory page. Every function takes plain numbers or NumPy arrays of them (the arguments of
one call broadcast), so that a whole table of layouts or lengths is one call. Letters of the page: t = ``tensor_ranks``;
q = ``norm_ranks``, which is t with sequence parallelism and 1 without; e and u = ``expert_ranks`` and
``expert_tensor_ranks``; T = ``tokens`` of a micro-batch on one tensor group.
"""
