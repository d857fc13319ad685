"""Detectors for other runtimes: `idecode export --onnx`."""
