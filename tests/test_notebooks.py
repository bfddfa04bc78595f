"""The notebooks of the manual run from top to bottom."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "notebooks"


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "notebooks are stored without their outputs"
    client = nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("text/html" in output["data"] for output in shown)
