"""Linear DAEs: pencils, canonical forms, indices, exact solutions."""
