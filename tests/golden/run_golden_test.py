"""Tests the runner of the golden transcripts with a stand-in for attn-cli: above all, that it can fail."""

import contextlib
import io
import pathlib
import tempfile
import unittest

import run_golden


class Runner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.cli = self.root / "stand-in"
        self.cli.write_text('#!/bin/sh\necho "seen $*"\n')
        self.cli.chmod(0o755)
        (self.root / "configs").mkdir()
        self.cases = self.root / "cases"
        self.case = self.cases / "one"
        self.case.mkdir(parents=True)

    def write(self, **files):
        for name, text in files.items():
            (self.case / name.replace("_", ".")).write_text(text)

    def run_cases(self, *more):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            status = run_golden.main([f"--cli={self.cli}", f"--configs={self.root / 'configs'}",
                                      f"--cases={self.cases}", *more])
        return status, output.getvalue()

    def test_what_is_as_written_passes(self):
        self.write(cmd="attn-cli trace\n", stdout_exact="seen trace\n")
        self.assertEqual(self.run_cases(), (0, "pass one\n1 passed, 0 failed\n"))

    def test_other_output_fails_and_is_shown(self):
        self.write(cmd="attn-cli trace\n", stdout_exact="seen verify\n")
        status, output = self.run_cases()
        self.assertEqual(status, 1)
        self.assertIn("-seen verify", output)
        self.assertIn("+seen trace", output)

    def test_output_where_none_is_expected_fails(self):
        for stream in ("1", "2"):
            self.write(cmd=f"echo surprise >&{stream}\n")
            self.assertEqual(self.run_cases()[0], 1)

    def test_another_exit_status_fails(self):
        self.write(cmd="exit 3\n", exit="2\n")
        status, output = self.run_cases()
        self.assertEqual(status, 1)
        self.assertIn("expected 2, got 3", output)
        self.write(exit="3\n")
        self.assertEqual(self.run_cases()[0], 0)

    def test_a_missing_last_newline_fails(self):
        self.write(cmd="printf text\n", stdout_exact="text\n")
        self.assertEqual(self.run_cases()[0], 1)

    def test_a_glob_bends_only_where_it_says_so(self):
        self.write(cmd="printf 'a 1 [x]\\nb\\nc\\nend\\n'\n")
        for glob, status in [("a * [x]\n...\nend\n", 0), ("...\n", 0), ("a * [x]\nb\nc\n...\nend\n", 0),
                             ("a * x\n...\nend\n", 1), ("a*\nend\n", 1), ("...\nb\n", 1), ("a ? [x]\n...\nend\n", 1)]:
            with self.subTest(glob=glob):
                self.write(stdout_glob=glob)
                self.assertEqual(self.run_cases()[0], status)

    def test_paths_of_the_machine_do_not_show(self):
        self.write(cmd='pwd; echo "$CONFIGS/tiny.json"\n', stdout_exact="$WORK\n$CONFIGS/tiny.json\n")
        self.assertEqual(self.run_cases()[0], 0)

    def test_each_case_has_its_files_and_a_fresh_folder(self):
        (self.case / "files").mkdir()
        (self.case / "files" / "a.txt").write_text("given\n")
        self.write(cmd="cat a.txt; ls; echo more >b.txt\n", stdout_exact="given\na.txt\n")
        self.assertEqual(self.run_cases()[0], 0)
        self.assertEqual(self.run_cases()[0], 0)

    def test_the_environment_is_clean(self):
        self.write(cmd='echo "$NO_COLOR $OMP_NUM_THREADS ${COLUMNS-none} ${USER-none}"\n', stdout_exact="1 1 none none\n")
        self.assertEqual(self.run_cases()[0], 0)

    def test_update_writes_exact_files_and_leaves_globs(self):
        self.write(cmd="echo new; echo bad >&2; exit 2\n", stdout_exact="old\n", stderr_glob="good\n")
        self.assertEqual(self.run_cases("--update")[0], 1)
        self.assertEqual((self.case / "stdout.exact").read_text(), "new\n")
        self.assertEqual((self.case / "exit").read_text(), "2\n")
        self.assertEqual((self.case / "stderr.glob").read_text(), "good\n")

    def test_a_case_with_a_misspelt_file_fails(self):
        self.write(cmd="exit 0\n", stdout_exat="text\n")
        self.assertEqual(self.run_cases()[0], 1)

    def test_no_case_at_all_fails(self):
        self.case.rmdir()
        self.assertEqual(self.run_cases()[0], 1)


if __name__ == "__main__":
    unittest.main()
