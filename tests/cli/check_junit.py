"""Holds the JUnit XML that attn-cli really writes against schemas/junit.xsd, and reads it as a CI system would.

    check_junit.py --cli FILE --configs DIR --schema FILE

Each file must be valid, and invalid once a required attribute is gone: a schema that accepts anything proves nothing.
Then its counts must be those of its own cases, and those must be what the JSON of the same run says.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

ELEMENT_OF = {"fail": "failure", "error": "error", "n/a": "skipped", "pass": None}


def is_valid(schema, text):
    done = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", str(schema), "-"], input=text,
                          capture_output=True, check=False)
    return done.returncode == 0, done.stderr.decode()


def state(case):
    return next((child.tag for child in case), None)


def problems_of_counts(root):
    for suite in root:
        states = [state(case) for case in suite]
        for attribute, element in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            if int(suite.get(attribute)) != states.count(element):
                yield f"suite {suite.get('name')}: {attribute} is not the number of its cases"
        if int(suite.get("tests")) != len(states):
            yield f"suite {suite.get('name')}: tests is not the number of its cases"
    for attribute in ("tests", "failures", "errors"):
        if int(root.get(attribute)) != sum(int(suite.get(attribute)) for suite in root):
            yield f"testsuites: {attribute} is not the sum of its suites"


def problems_against_json(root, record):
    runs = record["runs"] if record["kind"] == "verify_runs" else [record]
    if len(runs) != len(root):
        yield "not a suite for each run"
    for suite, run in zip(root, runs):
        label = " ".join([run["source"], *run["sweep"]]).replace("\x01", "\\x01")
        if suite.get("name") != label:
            yield f"suite {suite.get('name')}: is not named by config and sweep"
        if "error" in run:
            if [state(case) for case in suite] != ["error"] or suite[0][0].get("message") != run["error"]:
                yield f"suite {suite.get('name')}: does not tell the error"
        elif run["kind"] == "verify":
            expected = [(check["name"], ELEMENT_OF[check["status"]]) for check in run["checks"]]
            if [(case.get("name"), state(case)) for case in suite] != expected:
                yield f"suite {suite.get('name')}: its cases are not the checks"


def main():
    parser = argparse.ArgumentParser()
    for name in ("cli", "configs", "schema"):
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    options = parser.parse_args()

    problems = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        odd = folder / "odd \"<&>\" \x01 α.json"
        odd.write_text((options.configs / "tiny.json").read_text())
        broken = folder / "broken.json"
        broken.write_text("{\"<&\x7f\": 1}")
        tiny, encoder = (options.configs / f"{name}.json" for name in ("tiny", "encoder"))
        for words in ([tiny], [tiny, "--fault", "scale-none"], [encoder, odd, broken, "--sweep", "T=1,4"],
                      [tiny, "--self-test"], [broken]):
            junit, record = folder / "report.xml", folder / "report.json"
            record.unlink(missing_ok=True)
            subprocess.run([options.cli, "verify", *words, "--junit", junit, "--json", record], capture_output=True,
                           check=False)
            what = " ".join(map(str, words))
            text = junit.read_bytes()
            valid, said = is_valid(options.schema, text)
            if not valid:
                problems.append(f"{what}: {said}")
                continue
            for attribute in ("tests", "failures", "errors", "time", "name", "classname", "message"):
                if f' {attribute}="'.encode() in text and \
                        is_valid(options.schema, text.replace(f' {attribute}="'.encode(), b' other="', 1))[0]:
                    problems.append(f"{what}: valid without {attribute}")
            root = tree.fromstring(text)
            problems += [f"{what}: {problem}" for problem in problems_of_counts(root)]
            if record.exists():
                problems += [f"{what}: {problem}"
                             for problem in problems_against_json(root, json.loads(record.read_bytes()))]
    print("\n".join(problems) or "the JUnit files are valid and say what the JSON says")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
