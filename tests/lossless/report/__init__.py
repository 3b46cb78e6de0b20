"""Tests of specviz.lossless.report."""
