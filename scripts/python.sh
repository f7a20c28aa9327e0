# Sourced by the scripts beside it: goes to the root of the checkout and finds a fit Python as $python.
CDPATH='' cd -- "$(dirname -- "$0")/.."

fit='import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 14))'
seen=

find_python() { # tries its arguments in order
    for python; do
        "$python" -c "$fit" 2>/dev/null && return
        version=$("$python" -V 2>&1) && seen="${seen:+$seen, }$python is $version"
    done
    return 1
}

if [ -n "${PYTHON:-}" ]; then
    find_python "$PYTHON" || {
        echo "error: PYTHON=$PYTHON is no Python 3.10 to 3.14${seen:+ ($seen)}. Set PYTHON to one, or unset it" >&2
        exit 1
    }
elif ! find_python python3 python3.13 python3.12 python3.11 python3.10 python3.14 python; then
    mend="Install one from your system or python.org"
    command -v apt-get >/dev/null && mend="Install one: sudo apt-get install -y python3 python3-venv"
    command -v dnf >/dev/null && mend="Install one: sudo dnf install -y python3.12"
    command -v brew >/dev/null && mend="Install one: brew install python@3.13"
    echo "error: no Python 3.10 to 3.14 was found${seen:+ ($seen)}. $mend, or name yours with PYTHON=/path/to/python" >&2
    exit 1
fi
