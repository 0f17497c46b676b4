"""What is removed from production queries."""

import pytest

from cranfield.base.redaction import is_iban, is_luhn
from cranfield.workbench.config import Intake
from cranfield.workbench.service.intake import redaction
from cranfield.workbench.service.intake.redaction import PatternTimeoutError, QueryRedactor

CARD = "4111 1111 1111 1111"  # 4+1*15 doubled: 8+2*7 = 22, plus 8 ones = 30: a multiple of 10
IBAN = "DE89 3704 0044 0532 0130 00"  # the example of the standard


def redact(text, **config):
    redactor = QueryRedactor(Intake(**config))
    return redactor.redact(text), +redactor.found


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("mail john.doe+x@example.co.uk now", "mail <email> now"),
        ("john%40example.org", "<email>"),
        ("john\uff20example.org", "<email>"),  # fullwidth sign
        ("jo\u200bhn@exam\u200bple.org", "<email>"),
        ("<john@example.org>", "<<email>>"),
        (f"pay {CARD} now", "pay <card> now"),
        (CARD.replace(" ", "-") + " 123", "<card> 123"),
        (CARD.replace(" ", ""), "<card>"),
        ("12 " + CARD, "12 <card>"),
        ("\uff14\uff11\uff11\uff11" + CARD[4:], "<card>"),  # fullwidth digits
        (CARD.translate({48 + digit: 0x966 + digit for digit in range(10)}), "<card>"),
        (f"iban {IBAN} for rent", "iban <iban> for rent"),
        (f"{IBAN} {IBAN}", "<iban> <iban>"),
        (IBAN.replace(" ", "").lower(), "<iban>"),
        ("call +49 (171) 123-4567", "call <phone>"),
        ("0049 171 1234567", "<phone>"),
        ("0171 / 1234567", "<phone>"),
        ("(030) 12345678", "<phone>"),
        ("555-123-4567", "<phone>"),
        ("customer 123456789", "customer <digits>"),
        ("john%2540example.org", "<email>"),
        (r"john\u0040example.org", "<email>"),
        ("john&#64;example.org", "<email>"),
        ("john [at] example [dot] org", "<email>"),
        ('"jane roe"@example.org', "<email>"),
        ("jane@example.xn--p1ai", "<email>"),
        ("0171\u20119876543", "<phone>"),  # no-break hyphen
        ("8 (912) 345-67-89", "8 <phone>"),
        ("138 0013 8000", "<phone>"),
        ("(11) 91234-5678", "<phone>"),
        ("call 555 01 99", "call <phone>"),
        ("ssn 123-45-6789", "ssn <ssn>"),
        ("https://x.org/reset?user=jane&token=abc now", "https://x.org/reset?<url> now"),
        ("https://jane:secret@x.org/", "https://<url>@x.org/"),
        ("name=Jane+Roe&city=Bonn", "<url>"),
        ("login with password: hunter2", "login with password: <secret>"),
        ("key AKIAIOSFODNN7EXAMPLE", "key <secret>"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2ln", "<secret>"),
        ("two\tlines\x00 of\r\ntext", "two lines of text"),
    ],
)
def test_it_is_removed(text, redacted):
    assert redact(text)[0] == redacted


@pytest.mark.parametrize(
    "text",
    [
        "react@18.2.0",
        "aspirin 500 mg",
        "2026-11-23",
        "01.02.2026",
        "1990-2000",
        "ISO 27001:2022",
        "x² + y²",
        "DE12 model",
        "c++ @ home",
        "iPhone 15 128GB",
        "12345678",
        "CVE-2021-44228",
        "error 0x80070005",
        "ISBN 978-3-16-148410-0",
        "NDC 0002-8215-01",
        "1 000 000 000",
        "3.14159265358979",
        "550e8400-e29b-41d4-a716-446655440000",
        "a94a8fe5ccb19ba61c4c0873d391e987982fbbd3",
        "10.1038/s41586-020-2649-2",
        "version 10.0.19041.1237",
        "https://x.org/guide#install",
        "invalid token: unexpected end",
        "2024-01-15 12:30:45",
        "100% of caf%C3%A9",
        "\ufb01ne print",
    ],
)
def test_it_stays_as_it_is(text):
    assert redact(text) == (text, {})


def test_what_was_removed_is_counted_by_kind():
    redactor = QueryRedactor(Intake())
    for text in ("a@b.de and c@d.de", CARD, "aspirin"):
        redactor.redact(text)
    assert +redactor.found == {"email": 2, "card": 1}


def test_kinds_are_switched_off_one_by_one():
    assert redact("4006381333931 a@b.de", redact=["email", "card"])[0] == "4006381333931 <email>"  # an EAN, no card
    assert redact("1234567", min_digits=7)[0] == "<digits>"


def test_patterns_of_the_config_come_first():
    found = redact("order KD-123456789 and KD-123456789", patterns={"customer": r"KD-\d{9}"})
    assert found == ("order <customer> and <customer>", {"customer": 2})


def test_a_pattern_without_an_end_redacts_nothing_and_keeps_nothing(monkeypatch):
    monkeypatch.setattr(redaction, "SEARCH_S", 0.01)
    redactor = QueryRedactor(Intake(patterns={"slow": r"(a+)+$"}))
    with pytest.raises(PatternTimeoutError):
        redactor.redact("a" * 60 + "b")
    monkeypatch.setattr(redaction, "BATCH_SEARCH_S", 0.0)  # the time of the batch is over
    with pytest.raises(PatternTimeoutError):
        redactor.redact("aspirin")


def test_check_digits():
    assert is_luhn([7, 9, 9, 2, 7, 3, 9, 8, 7, 1, 3])  # the example of ISO/IEC 7812-1
    assert not is_luhn([7, 9, 9, 2, 7, 3, 9, 8, 7, 1, 4])
    assert is_iban("GB82WEST12345698765432")
    assert not is_iban("GB82WEST12345698765433")
