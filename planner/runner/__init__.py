"""Plans executed by real processes: the operations that the prices are of, measured beside the prediction."""
