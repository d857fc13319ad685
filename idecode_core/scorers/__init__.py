"""What users can make a detector of: merged detectors, their own networks, distances on features, softmax, ODIN, energy, ViM."""
