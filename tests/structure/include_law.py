"""Checks every #include and every linked room under src/ against the table of rooms (README, "The rooms").

    include_law.py SRC      prints each breach as `file:line: what is wrong`; exit status 1 when there is one
"""

import fnmatch
import pathlib
import re
import sys

# Each room and those it may include: everything further along the arrows of the README's picture.
MAY_INCLUDE = {
    "core": [],
    "files": ["core"],
    "config": ["files", "core"],
    "attention": ["config", "files", "core"],
    "experiment": ["attention", "config", "files", "core"],
    "trace": ["experiment", "attention", "config", "files", "core"],
    "checks": ["experiment", "attention", "config", "files", "core"],
    "render": ["files", "core"],
    "report": ["trace", "checks", "render", "experiment", "attention", "config", "files", "core"],
    "cli": ["report", "trace", "checks", "render", "experiment", "attention", "config", "files", "core"],
    "main.cpp": ["cli", "report", "trace", "checks", "render", "experiment", "attention", "config", "files", "core"],
}

# report turns records into text: of the rooms that compute it sees the records only.
REPORT_MAY_SEE = ["trace/attention_trace.h", "trace/attention_maps.h", "trace/trace_comparison.h",
                  "trace/symbolic_shapes.h", "checks/check.h", "checks/check_list.h", "checks/faults/faults.h",
                  "render/heatmap.h"]
COMPUTING_ROOMS = ["trace", "checks", "render"]

LIBTORCH = ["torch/*", "ATen/*", "c10/*"]
# Which third-party headers a file may include, by its path under src/. The first pattern that fits counts.
MAY_INCLUDE_THIRD_PARTY = [
    ("files/*.cpp", ["nlohmann/json.hpp"]),
    ("files/*.h", ["nlohmann/json_fwd.hpp"]),
    ("config/*.cpp", ["nlohmann/json.hpp"]),
    ("config/models/*.h", ["nlohmann/json.hpp"]),  # private to the room: they turn one JSON into another
    ("config/*.h", ["nlohmann/json_fwd.hpp"]),
    ("attention/steps.h", []),
    ("attention/*", LIBTORCH),
    ("experiment/memory_estimate.*", []),
    ("experiment/torch_guard.h", []),
    ("experiment/*", LIBTORCH),
    ("trace/attention_trace.h", []),
    ("trace/attention_maps.h", []),
    ("trace/trace_attention.h", []),
    ("trace/trace_comparison.h", []),
    ("trace/compare_traces.*", []),
    ("trace/gradient_scales.*", []),
    ("trace/pipeline_order.*", []),
    ("trace/stored_numbers.*", []),
    ("trace/*", LIBTORCH),
    ("checks/check.h", []),
    ("checks/check_list.h", []),
    ("checks/faults/faults.h", []),
    ("checks/ruled_out.*", []),
    ("checks/reference/reference_*", []),  # the loops of the judge share nothing with what they judge
    ("checks/reference/may_look.*", []),
    ("checks/*", LIBTORCH),
    ("render/png.cpp", ["stb/stb_image_write.h", "stb_image_write.h", "libdeflate.h"]),
    ("report/*.cpp", ["nlohmann/json.hpp"]),
    ("report/*.h", ["nlohmann/json_fwd.hpp"]),
    ("cli/*.cpp", ["CLI/*", "nlohmann/json.hpp"]),
]

# Headers of the operating system; those of the C++ library have neither a slash nor a `.h`.
SYSTEM = ["sys/*", "unistd.h", "fcntl.h", "signal.h", "stdio.h", "poll.h"]

INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
LINKED_ROOM = re.compile(r"\battn_([a-z]+)\b")
NO_ROOM = ["add", "warnings", "png"]  # attn_add_room, attn_warnings, attn_png_encoder


def fits(name, patterns):
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def breach_of_room(path, room, header, src):
    """What is wrong with `#include "header"` in the file `path` of `room`; None when nothing is."""
    target = header.split("/")[0]
    if "/" not in header or ".." in header or not (src / header).is_file():
        return f'"{header}": expected "room/header.h" of this source tree'
    if target != room and target not in MAY_INCLUDE[room]:
        return f'"{header}": {room} may not include {target}'
    if room == "report" and target in COMPUTING_ROOMS and header not in REPORT_MAY_SEE:
        return f'"{header}": report may include only the records of {target}'
    return None


def breach_of_third_party(path, header):
    """The same for `#include <header>`."""
    is_standard = "/" not in header and "." not in header
    if is_standard or (fits(header, SYSTEM) and path.endswith(".cpp")):
        return None
    allowed = next((headers for pattern, headers in MAY_INCLUDE_THIRD_PARTY if fnmatch.fnmatchcase(path, pattern)), [])
    return None if fits(header, allowed) else f"<{header}>: not allowed in {path}"


def breaches(src):
    """Every breach under the folder `src`, as lines of text, and the number of includes looked at."""
    src = pathlib.Path(src)
    found, seen = [], 0
    for file in sorted(src.rglob("*")):
        path = file.relative_to(src).as_posix()
        room = path.split("/")[0]
        if file.is_dir() or path == "CMakeLists.txt":
            continue
        if room not in MAY_INCLUDE:
            found.append(f"{path}:1: {room} is no room of the table")
        elif file.suffix in (".h", ".cpp"):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                if match is None:
                    continue
                seen += 1
                quote, header = match.groups()
                wrong = breach_of_room(path, room, header, src) if quote == '"' else breach_of_third_party(path, header)
                if wrong:
                    found.append(f"{path}:{number}: {wrong}")
        elif file.name == "CMakeLists.txt":
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                for linked in LINKED_ROOM.findall(line.split("#")[0]):
                    if linked not in NO_ROOM and linked != room and linked not in MAY_INCLUDE[room]:
                        found.append(f"{path}:{number}: {room} may not link {linked}")
    return found, seen


def main():
    found, seen = breaches(sys.argv[1])
    print("\n".join(found + [f"{seen} includes looked at, {len(found)} breaches"]))
    return 1 if found or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
