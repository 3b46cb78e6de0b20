"""Tests of specviz.lossless.statistics."""
