"""Runs golden transcripts: commands whose output, error text and exit status are pinned.

    run_golden.py [--cli FILE] [--configs DIR] [--cases DIR] [--update] [CASE...]

Each folder in --cases is one case and holds
    cmd             a shell script; attn-cli is on its PATH, $CONFIGS is the folder of configs
    exit            the exit status it must have; missing: 0
    stdout.exact    what it must print, byte for byte, or
    stdout.glob     the same with `*` for any text within a line, and a line `...` for any number of lines;
                    missing: nothing may be printed
    stderr.exact, stderr.glob      the same for the error stream
    files/          copied into the folder where cmd runs

A case runs in a fresh folder of its own with a clean environment: one thread, no colour, no terminal. In both streams
the path of that folder is written $WORK and that of the configs $CONFIGS, so that no transcript depends on a machine.
--update writes the .exact files and `exit` of the cases anew (never a .glob): read the diff before it is committed.
"""

import argparse
import concurrent.futures
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STREAMS = ("stdout", "stderr")
KNOWN = {"cmd", "exit", "files"} | {f"{stream}.{kind}" for stream in STREAMS for kind in ("exact", "glob")}
TIMEOUT_SECONDS = 120
REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def line_pattern(line):
    return ".*".join(re.escape(part) for part in line.split("*"))


def matches_glob(text, glob):
    """Whether the whole text fits: line by line, `...` standing for any number of lines."""
    pattern = "".join(r"(?:.*\n)*" if line == "..." else line_pattern(line) + r"\n" for line in glob.splitlines())
    return re.fullmatch(pattern, text if text.endswith("\n") or not text else text + "\n") is not None


def glob_diff(text, glob):
    """A diff in which a line that fits its pattern counts as equal to it."""
    patterns = [(re.compile(line_pattern(line)), line) for line in glob.splitlines() if line != "..."]
    shown = [next((line for pattern, line in patterns if pattern.fullmatch(actual)), actual)
             for actual in text.splitlines()]
    return diff(glob, "\n".join(shown) + "\n" if shown else "")


def diff(expected, actual):
    lines = difflib.unified_diff(expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm="")
    shown = "\n".join(lines)
    return shown or "(they differ in the end of the last line only)"


def run_case(case, cli, configs):
    """Runs the case's cmd. Returns its exit status and both streams as text."""
    with tempfile.TemporaryDirectory(prefix="golden.") as folder:
        work, tools, home = (pathlib.Path(folder).resolve() / name for name in ("work", "tools", "home"))
        for made in (work, tools, home):
            made.mkdir()
        if (case / "files").is_dir():
            shutil.copytree(case / "files", work, dirs_exist_ok=True)
        (tools / "attn-cli").symlink_to(cli)
        environment = {"PATH": f"{tools}:/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8",
                       "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "CONFIGS": str(configs)}
        environment.update({name: os.environ[name] for name in ("ASAN_OPTIONS", "LSAN_OPTIONS") if name in os.environ})
        try:
            done = subprocess.run(["sh", str(case / "cmd")], cwd=work, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=TIMEOUT_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"none after {TIMEOUT_SECONDS} seconds", {"stdout": "", "stderr": ""}
        streams = {}
        for stream in STREAMS:
            text = getattr(done, stream).decode("utf-8", "surrogateescape")
            streams[stream] = text.replace(str(work), "$WORK").replace(str(configs), "$CONFIGS")
        return done.returncode, streams


def read(file):
    return file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""


def complaints(case, status, streams):
    """What is not as the case says, as lines of text; empty when all is."""
    found = []
    wanted_status = read(case / "exit").strip() or "0"
    if str(status) != wanted_status:
        found.append(f"exit status: expected {wanted_status}, got {status}")
    for stream in STREAMS:
        text, glob = streams[stream], case / f"{stream}.glob"
        if glob.exists():
            if not matches_glob(text, read(glob)):
                found.append(f"{stream} (.glob):\n{glob_diff(text, read(glob))}")
        elif text != read(case / f"{stream}.exact"):
            found.append(f"{stream}:\n{diff(read(case / f'{stream}.exact'), text)}")
    return found


def malformed(case):
    """What is wrong with the case itself."""
    names = {entry.name for entry in case.iterdir()}
    found = [f"unknown file {name} (known: {', '.join(sorted(KNOWN))})" for name in sorted(names - KNOWN)]
    found += [f"{stream}.exact and {stream}.glob exclude each other" for stream in STREAMS
              if {f"{stream}.exact", f"{stream}.glob"} <= names]
    if "cmd" not in names:
        found.append("cmd is missing")
    return found


def update(case, status, streams):
    """Makes the case say what was just printed, where it says so exactly."""
    contents = {"exit": "" if status == 0 else f"{status}\n"}
    for stream in STREAMS:
        if not (case / f"{stream}.glob").exists():
            contents[f"{stream}.exact"] = streams[stream]
    for name, text in contents.items():
        if text:
            (case / name).write_text(text, encoding="utf-8", errors="surrogateescape")
        else:
            (case / name).unlink(missing_ok=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Runs golden transcripts of attn-cli.")
    parser.add_argument("--cli", type=pathlib.Path, default=REPOSITORY / "build" / "release" / "attn-cli")
    parser.add_argument("--configs", type=pathlib.Path, default=REPOSITORY / "configs")
    parser.add_argument("--cases", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    parser.add_argument("--update", action="store_true", help="write the .exact files anew")
    parser.add_argument("names", nargs="*", metavar="CASE", help="only these; by default all")
    options = parser.parse_args(arguments)

    cases = sorted(entry for entry in options.cases.iterdir() if entry.is_dir() and entry.name[0] not in "._")
    unknown = set(options.names) - {case.name for case in cases}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    cases = [case for case in cases if not options.names or case.name in options.names]

    def judge(case):
        wrong = malformed(case)
        if wrong:
            return wrong
        status, streams = run_case(case, options.cli.resolve(), options.configs.resolve())
        if options.update and isinstance(status, int):
            update(case, status, streams)
        return complaints(case, status, streams)

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        for case, wrong in zip(cases, pool.map(judge, cases)):
            failed += bool(wrong)
            print(f"{'FAIL' if wrong else 'pass'} {case.name}")
            for text in wrong:
                print("    " + text.encode("utf-8", "backslashreplace").decode().replace("\n", "\n    "))
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
