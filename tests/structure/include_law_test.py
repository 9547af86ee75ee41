"""Plants breaches of the include law in a small source tree and expects each to be seen."""

import pathlib
import tempfile
import unittest

from include_law import breaches


class IncludeLaw(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for header in ["core/error.h", "attention/mask.h", "attention/steps.h", "trace/attention_trace.h",
                       "trace/trace_recorder.h", "checks/check.h", "checks/subject.h", "render/png.h", "cli/run.h"]:
            self.write(header, "#pragma once\n")

    def write(self, path, text):
        file = pathlib.Path(self.folder.name, path)
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def breaches_of(self, path, text):
        self.write(path, text)
        return breaches(self.folder.name)[0]

    def test_an_orderly_tree_has_no_breach(self):
        self.assertEqual(self.breaches_of("attention/mask.cpp", '#include <vector>\n#include <ATen/ATen.h>\n'
                                                                '#include "core/error.h"\n'), [])

    def test_an_upward_include_is_seen(self):
        self.assertEqual(self.breaches_of("attention/mask.cpp", '\n#include "trace/attention_trace.h"\n'),
                         ['attention/mask.cpp:2: "trace/attention_trace.h": attention may not include trace'])

    def test_trace_and_checks_do_not_know_each_other(self):
        self.assertEqual(len(self.breaches_of("trace/a.cpp", '#include "checks/check.h"\n')), 1)
        self.assertEqual(len(self.breaches_of("checks/b.cpp", '#include "trace/attention_trace.h"\n')), 2)

    def test_render_and_attention_do_not_know_each_other(self):
        self.assertEqual(len(self.breaches_of("render/a.cpp", '#include "attention/steps.h"\n')), 1)
        self.assertEqual(len(self.breaches_of("attention/b.cpp", '#include "render/png.h"\n')), 2)

    def test_report_sees_records_only(self):
        self.assertEqual(self.breaches_of("report/a.cpp", '#include "trace/attention_trace.h"\n'), [])
        self.assertEqual(len(self.breaches_of("report/a.cpp", '#include "trace/trace_recorder.h"\n')), 1)
        self.assertEqual(len(self.breaches_of("report/a.cpp", '#include "checks/subject.h"\n')), 1)

    def test_third_party_headers_stay_in_their_rooms(self):
        for path, header in [("core/a.cpp", "nlohmann/json.hpp"), ("config/a.cpp", "torch/torch.h"),
                             ("config/a.h", "nlohmann/json.hpp"), ("report/a.cpp", "ATen/ATen.h"),
                             ("render/image.cpp", "stb/stb_image_write.h"), ("cli/run.h", "CLI/CLI.hpp"),
                             ("cli/run.cpp", "c10/util/Exception.h"), ("trace/attention_trace.h", "ATen/core/Tensor.h"),
                             ("attention/mask.cpp", "boost/any.hpp"), ("core/a.h", "unistd.h")]:
            with self.subTest(path=path, header=header):
                self.assertEqual(len(self.breaches_of(path, f"  #  include <{header}>\n")), 1)
                self.write(path, "")

    def test_includes_name_the_room(self):
        for include in ['"mask.h"', '"../core/error.h"', '"core/missing.h"']:
            with self.subTest(include=include):
                self.assertEqual(len(self.breaches_of("attention/mask.cpp", f"#include {include}\n")), 1)

    def test_an_upward_link_is_seen(self):
        self.assertEqual(self.breaches_of("config/CMakeLists.txt", "attn_add_room(config PUBLIC attn_files)\n"), [])
        self.assertEqual(self.breaches_of("config/CMakeLists.txt", "attn_add_room(config PUBLIC attn_attention)\n"),
                         ["config/CMakeLists.txt:1: config may not link attention"])

    def test_a_room_outside_the_table_is_seen(self):
        self.assertEqual(self.breaches_of("extra/a.cpp", ""), ["extra/a.cpp:1: extra is no room of the table"])


if __name__ == "__main__":
    unittest.main()
