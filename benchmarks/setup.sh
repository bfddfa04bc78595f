#!/usr/bin/env bash
# Creates .venv-bench with Daedal and those peers of benchmarks/requirements.txt that install here.
# BENCH_PYTHON names the interpreter; by default python3.12, which the most peers support, or else python3.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=.venv-bench

find_python() {
    local candidate
    for candidate in "${BENCH_PYTHON:-}" python3.12 python3; do
        if [ -n "$candidate" ] && "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "benchmarks/setup.sh: no Python 3.11 to 3.13 found; name one with BENCH_PYTHON" >&2
    return 1
}

if [ -e "$environment/.complete" ] && [ "$environment/.complete" -nt benchmarks/requirements.txt ] \
    && [ "$environment/.complete" -nt pyproject.toml ]; then
    exit 0
fi
if [ ! -x "$environment/bin/python" ]; then
    python=$(find_python)
    echo "creating $environment with $("$python" --version)"
    "$python" -m venv "$environment"
fi
pip() { "$environment/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

echo "installing Daedal"
pip install -e '.[dask]'
# A peer must not change the NumPy, SciPy and Numba that Daedal runs with.
pip freeze --exclude-editable | grep -iE '^(numpy|scipy|numba|llvmlite)==' > "$environment/constraints.txt"
# The libraries of numbalsoda are called through ctypes: those of its wheel for Python 3.10 serve every Python.
packages=$("$environment/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
install() {
    case "$1" in
    numbalsoda) pip install --target "$packages" --python-version 3.10 --implementation cp --abi cp310 \
        --only-binary=:all: --no-deps "$1" ;;
    *) pip install -c "$environment/constraints.txt" "$1" ;;
    esac
}
while read -r peer _; do
    case "$peer" in '' | '#'*) continue ;; esac
    if install "$peer" > "$environment/pip.log" 2>&1 < /dev/null; then
        echo "installed $peer"
    else
        echo "left out $peer: $(grep -m1 ERROR "$environment/pip.log" || tail -n1 "$environment/pip.log")"
    fi
done < benchmarks/requirements.txt
touch "$environment/.complete"
