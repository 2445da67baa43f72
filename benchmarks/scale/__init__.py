"""The parts of `benchmarks/analysis_scale.py`: traces, and the contenders that read them."""
