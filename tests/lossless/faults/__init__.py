"""Tests of specviz.lossless.faults."""
