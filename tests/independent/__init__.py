"""Values of the reproduction book that no source prints, made without Daedal: mpmath and plain NumPy.

``python -m independent stability`` in ``tests`` prints the values of a document beside those of its data file;
``test_independent.py`` compares them.
"""
