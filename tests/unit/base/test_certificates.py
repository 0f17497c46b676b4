"""Certificates are read once, and anew where the environment names others."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from cranfield.base.certificates import trusted_certificates


def test_every_client_of_a_protocol_has_the_same() -> None:
    assert trusted_certificates() is trusted_certificates()
    assert trusted_certificates() is not trusted_certificates(http2=True)
    assert trusted_certificates().verify_mode is ssl.CERT_REQUIRED


def test_those_that_the_environment_names_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = trusted_certificates()
    (tmp_path / "others.pem").write_text(ssl.DER_cert_to_PEM_cert(before.get_ca_certs(binary_form=True)[0]))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "others.pem"))
    assert len(trusted_certificates().get_ca_certs()) == 1
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    with pytest.raises(OSError, match="No such file"):
        trusted_certificates()
