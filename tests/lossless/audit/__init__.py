"""Tests of specviz.lossless.audit."""
