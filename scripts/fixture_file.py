"""What every fixture is made of: numbers from a seed that is the case's name, and one .safetensors file a case.

scripts/make_fixtures and model_layers.py beside this file use it. Needs PyTorch, nothing else.
"""

import json
import math
import random
import struct
import zlib

import torch

TORCH_VERSION = "2.13.0"
DTYPES = {"f32": (torch.float32, "float32"), "f64": (torch.float64, "float64")}
SAFETENSORS_NAMES = {torch.float32: "F32", torch.float64: "F64", torch.int64: "I64"}


def source_of(name):
    """The random numbers of one case."""
    return random.Random(zlib.crc32(name.encode()))  # str seeds depend on the Python version


def normal(source, shape, dtype, scale=1.0):
    """N(0, scale), exact in float32, so that the _f32 and the _f64 file of a case hold the same numbers."""
    numbers = [source.gauss(0.0, scale) for _ in range(math.prod(shape))]
    return torch.tensor(numbers, dtype=torch.float64).reshape(shape).float().to(dtype)


def write_safetensors(path, tensors, metadata):
    """8 bytes of header length, the header as JSON padded with spaces to 8 bytes, the data in the header's order."""
    header, data = {"__metadata__": metadata}, b""
    for name, tensor in tensors.items():
        flat = tensor.detach().contiguous().flatten().tolist()
        letter = {torch.float32: "f", torch.float64: "d", torch.int64: "q"}[tensor.dtype]
        raw = struct.pack(f"<{len(flat)}{letter}", *flat)
        header[name] = {
            "dtype": SAFETENSORS_NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header, separators=(",", ":"), sort_keys=False).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    print(f"{path}  {path.stat().st_size} bytes")


def metadata_of(config, also=""):
    return {
        "config": json.dumps(config),
        "made_by": f"scripts/make_fixtures, PyTorch {TORCH_VERSION}{also} in Python, CPU",
    }
