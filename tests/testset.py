"""The problems of the Test Set for Initial Value Problem Solvers that the library has."""

# Names of problems of the library, with parameters where they are not the default ones
TESTSET = [
    ("hires", {}),
    ("oregonator", {}),
    ("van_der_pol", {}),
    ("ring_modulator", {}),
    ("ring_modulator", {"form": "index2"}),
    ("pollution", {}),
    ("chemical_akzo_nobel", {}),
    ("medical_akzo_nobel", {}),
    ("elastic_beam", {}),
    ("pleiades", {}),
]
