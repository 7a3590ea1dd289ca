"""Measure speed side by side in the same run, as ratios: encoders, decoding against transformers, training."""

from cod3s.bench.encoders import bench_encoders, bench_sentences

__all__ = ["bench_encoders", "bench_sentences"]
