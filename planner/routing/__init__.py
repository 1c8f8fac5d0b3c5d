"""The routing of a layer: how a problem states it, how files hold it, what it is in memory."""
