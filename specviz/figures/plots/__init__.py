"""The figures, one a file; ``specviz.figures`` hands them out."""
