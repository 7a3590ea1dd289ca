"""Speed, side by side in one run, as ratios: encoders, and decoding against the peer that a user has today."""

from cod3s.bench.encoders import EncoderSpeed, bench_encoders, bench_sentences

__all__ = ["EncoderSpeed", "bench_encoders", "bench_sentences"]
