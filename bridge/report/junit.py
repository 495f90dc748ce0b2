"""Results of a conformance run as JUnit XML, which continuous integration shows by test.

The format is a few elements, which the standard library writes and escapes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from xml.etree import ElementTree

from bridge.conformance.judging.judge import describe_failure, plain
from bridge.conformance.outcomes.outcome import NotJudged, Outcome

# XML has no way to write these, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _text(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)


def junit(outcomes: Sequence[Outcome], refused: Sequence[NotJudged] = ()) -> str:
    """The document: a suite for each implementation and dtype, a case for each vector, whose class
    is its family, and for each feature that is required and unsupported. Unsupported vectors are
    skipped. refused: functions that were not judged, each an error."""
    root = ElementTree.Element("testsuites", name="bridge conform")
    for outcome in outcomes:
        result = outcome.result
        states = [vector.status for vector in result.vectors]
        counts: dict[str, str] = {
            "tests": str(len(states) + len(outcome.lacking)),
            "failures": str(states.count("failed") + len(outcome.lacking)),
            "errors": "0",
            "skipped": str(states.count("unsupported")),
        }
        name = _text(f"{result.adapter} {result.dtype} {result.device}")
        suite = ElementTree.SubElement(root, "testsuite", {"name": name, **counts})
        told = [] if outcome.without_walls is None else [("without_sandbox", outcome.without_walls)]
        if outcome.likely is not None:
            told += [("likely_cause", sentence) for sentence in outcome.likely.sentences()]
        properties = ElementTree.SubElement(suite, "properties") if told else suite
        for key, value in told:
            named = {"name": key, "value": _text(value)}
            ElementTree.SubElement(properties, "property", named)
        for feature, why in outcome.lacking.items():
            case = ElementTree.SubElement(
                suite, "testcase", classname="required", name=feature, time="0"
            )
            sentence = _text(f"{feature} is required but unsupported: {why}")
            ElementTree.SubElement(case, "failure", message=sentence, type="unsupported")
        for vector in result.vectors:
            case = ElementTree.SubElement(
                suite, "testcase", classname=vector.family, name=vector.id, time="0"
            )
            if vector.status == "unsupported":
                ElementTree.SubElement(case, "skipped", message=_text(vector.reason or ""))
            elif vector.status == "failed":
                sentence = _text(describe_failure(plain(asdict(vector))))
                kind = "misbehaviour" if vector.reason is not None else "error above tolerance"
                failure = ElementTree.SubElement(case, "failure", message=sentence, type=kind)
                failure.text = f"{sentence}\ntheorem: {vector.theorem}"
    if refused:
        counts = dict.fromkeys(("tests", "errors"), str(len(refused)))
        counts |= {"failures": "0", "skipped": "0"}
        suite = ElementTree.SubElement(root, "testsuite", {"name": "not judged", **counts})
        for one in refused:
            case = ElementTree.SubElement(
                suite, "testcase", classname="not judged", name=_text(one.name), time="0"
            )
            ElementTree.SubElement(case, "error", message=_text(str(one)), type="not judged")
    for attribute in ("tests", "failures", "errors", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
