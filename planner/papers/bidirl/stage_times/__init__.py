"""Stage times (page, section 3.2): one kind a file, over arrays of parts and of replicas."""
