"""``python -m independent DOCUMENT [TABLE ...]``: the independent values beside those of the data file."""

import sys

from independent.comparison import compared


def main(document: str, *tables: str) -> None:
    for table, row, column, text, value in compared(document, tables):
        print(f"{document}/{table}  {row}  {column}: {text}  {value:.6g}")


main(*sys.argv[1:])
