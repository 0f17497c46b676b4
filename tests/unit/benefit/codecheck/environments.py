"""Environments and wheels that tests make of texts: no package index is asked."""

from __future__ import annotations

import sys
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from textwrap import dedent

THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"


def environment(folder: Path, files: Mapping[str, str], versions: Mapping[str, str] | None = None) -> str:
    """An environment of this Python with these files, and with packages that are named like their modules."""
    site = folder / "lib" / f"python{THIS}" / "site-packages"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (folder / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}\ninclude-system-site-packages = false\n")
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(dedent(text), encoding="utf-8")
    for name, version in (versions or {}).items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        own = [file for file in files if file.split("/")[0].partition(".")[0] == name.replace("-", "_")]
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in own))
    return str(folder)


def wheel(folder: Path, name: str, version: str, files: Mapping[str, str], requires: str = "") -> str:
    """Write a wheel, and return its SHA-256."""
    info = f"{name}-{version}.dist-info"
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    whole = {
        **{file: dedent(text) for file, text in files.items()},
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{file},sha256={_digest(text)},{len(text.encode())}" for file, text in whole.items()]
    whole[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in whole.items():
            archive.writestr(file, text)
    return sha256(path.read_bytes()).hexdigest()


def _digest(text: str) -> str:
    return urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode()
