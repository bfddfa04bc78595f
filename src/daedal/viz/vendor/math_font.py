"""Create the font for formulas, ``math.woff.txt``, from Latin Modern Math; run manually, see README.md.

    python math_font.py latinmodern-math.otf

Browsers render MathML well only with a font that has a table of mathematical sizes, which few systems provide. The
subset contains the characters that pages may use: Latin, Greek, upright and slanted, operators, accents and brackets of
all sizes.
"""

import base64
import sys
from pathlib import Path

from fontTools import subset

LETTERS = [(0x20, 0x7F), (0xA0, 0x100), (0x391, 0x3D7), (0x1D434, 0x1D468), (0x1D6E2, 0x1D71C), (0x210E, 0x210F)]
MARKS = [(0x2C6, 0x2C8), (0x2D8, 0x2DE), (0x302, 0x309), (0x2016, 0x2017), (0x2026, 0x2027), (0x2032, 0x2035)]
OPERATORS = [(0x2190, 0x2195), (0x21D2, 0x21D5), (0x2200, 0x2230), (0x2248, 0x2249), (0x2260, 0x226C), (0x2282, 0x2288)]
OTHERS = [(0x22A5, 0x22A6), (0x22C5, 0x22C6), (0x22EF, 0x22F0), (0x2308, 0x230C), (0x27C2, 0x27C3), (0x27E8, 0x27EA)]
MORE = [(0x3F0, 0x3F6), (0x2102, 0x2103), (0x211D, 0x211E), (0x2115, 0x2116)]


def main(source: str) -> None:
    """Write the subset, in base 64, next to this file."""
    options = subset.Options()
    options.layout_features = ["ssty", "dtls"]  # primes and indices, dotless letters
    options.flavor, options.hinting, options.glyph_names = "woff", False, False
    font = subset.load_font(source, options)
    cutter = subset.Subsetter(options)
    ranges = [*LETTERS, *MARKS, *OPERATORS, *OTHERS, *MORE]
    cutter.populate(unicodes={code for first, end in ranges for code in range(first, end)})
    cutter.subset(font)
    place = Path(__file__).with_name("math.woff")
    subset.save_font(font, str(place), options)
    place.with_suffix(".woff.txt").write_text(base64.b64encode(place.read_bytes()).decode() + "\n", encoding="ascii")
    place.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
