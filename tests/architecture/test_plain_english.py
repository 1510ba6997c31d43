"""Docstrings, comments, texts and documents have none of the phrases that readers stumble over."""

from pathlib import Path

from tests.architecture.plain_english import checked_files, findings_in

ROOT = Path(__file__).parents[2]


def test_nothing_is_to_be_reworded() -> None:
    findings = [str(finding) for file in checked_files(ROOT, []) for finding in findings_in(file)]
    assert not findings


def test_a_riddle_and_an_idiom_are_found(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text('"""What waits."""\n\n# somebody reads it\n')
    assert [finding.phrase for finding in findings_in(file)] == ["What waits.", "somebody"]
