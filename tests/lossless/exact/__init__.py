"""Tests of specviz.lossless.exact."""
