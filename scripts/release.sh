#!/usr/bin/env bash
# Make what a release consists of, in dist/: the sdist, the wheel of this platform, a software bill of materials, the built
# documentation, and their hashes.
# The wheel is tested as `make test-wheel` does, and installed by pip on every Python that it is for and that is there. Nothing is
# uploaded. PYTHONS names the interpreters; by default those of 3.11 to 3.14 on the PATH and of pyenv.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

version=$(.venv/bin/python -c 'from cranfield.base.version import __version__; print(__version__)')
grep -qF "## [$version]" CHANGELOG.md || die "CHANGELOG.md has no section [$version]"
if [ -z "${ALLOW_DIRTY:-}" ] && [ -n "$(git status --porcelain)" ]; then
    die "there are changes that are not committed; ALLOW_DIRTY=1 goes on all the same"
fi

rm -rf dist
mkdir dist
DIST=$PWD/dist scripts/test-wheel.sh "$@"
wheel=$(echo dist/*.whl)

pythons=${PYTHONS:-}
for minor in 11 12 13 14; do
    [ -z "${PYTHONS:-}" ] || break
    for found in "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
        [ -x "$found" ] && "$found" -c "import sys, venv; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null || continue
        pythons+=" $found"
        break
    done
done
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
printf 'q1 0 a 1\nq2 0 b 1\n' >"$place/shop.qrels"
printf 'q1 Q0 a 1 2 x\nq2 Q0 c 1 2 x\n' >"$place/shop.run"
tried=()
for python in $pythons; do
    name=$("$python" -c 'import sys; print("Python %d.%d.%d" % sys.version_info[:3])')
    say "$name: pip install $(basename "$wheel")"
    "$python" -m venv --clear "$place/venv"
    "$place/venv/bin/python" -m pip install -qq --disable-pip-version-check --no-input "$wheel"
    "$place/venv/bin/python" -m pip check >/dev/null
    (cd "$place" && venv/bin/cranfield evaluate shop.qrels shop.run -m RR --format json) | grep -q '"mean": 0.5' ||
        die "$name: RR of two queries, one of them found first, is not 0.5"
    [ "$("$place/venv/bin/python" -c 'from cranfield.ranking import c_reader; print(c_reader.available())')" = True ] ||
        die "$name: the wheel has no kernel"
    tried+=("$name")
done
[ ${#tried[@]} -gt 0 ] || die "no Python from 3.11 on was found to install the wheel on; PYTHONS names some"

say "software bill of materials"
# Of what pip installed last: the package and everything that it needs, without pip itself.
"$place/venv/bin/python" -m pip uninstall -qq --yes pip setuptools 2>/dev/null || true
sed "s/^dynamic = \\[\"version\"\\]/version = \"$version\"/" pyproject.toml >"$place/pyproject.toml"
.venv/bin/cyclonedx-py environment --pyproject "$place/pyproject.toml" --mc-type library --output-reproducible --of JSON -o "dist/cranfield-$version.cdx.json" "$place/venv/bin/python"
grep -q "\"version\": \"$version\"" "dist/cranfield-$version.cdx.json" || die "the bill of materials does not name the version"

say "documentation"
scripts/docs.sh
tar -C docs/_build -czf "dist/cranfield-$version-docs.tar.gz" html

(cd dist && sha256sum -- * >SHA256SUMS)
say "Cranfield $version, installed on ${tried[*]}"
cat dist/SHA256SUMS
