# Sourced by the scripts beside it: makes the virtual environment in .venv, and makes it again when pyproject.toml changes.

# prepare ROOT GROUP: GROUP is empty for agentfn alone, or a dependency group of pyproject.toml.
prepare() {
  stamp=$1/.venv/agentfn-$( [ -n "$2" ] && echo "$2" || echo run ).stamp
  if [ -f "$stamp" ] && cmp -s "$1/pyproject.toml" "$stamp"; then
    return
  fi
  python=$(find_python)
  echo "setting up $1/.venv (once)" >&2
  # A half-made environment of an interrupted run is made again from nothing.
  [ -x "$1/.venv/bin/pip" ] || "$python" -m venv --clear "$1/.venv" >&2
  # --group needs pip 25.1; the pip that comes with Python may be older.
  "$1/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1" >&2
  # The dev group brings the package's own extras along with it.
  if [ -n "$2" ]; then
    (cd "$1" && .venv/bin/python -m pip install --quiet --disable-pip-version-check -e . --group "$2" >&2)
  else
    "$1/.venv/bin/python" -m pip install --quiet --disable-pip-version-check -e "$1" >&2
  fi
  cp "$1/pyproject.toml" "$stamp"
}

find_python() {
  for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
    if command -v "$name" >/dev/null 2>&1 &&
      "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  echo "agentfn needs Python 3.11 or newer, and none was found on PATH" >&2
  exit 1
}
