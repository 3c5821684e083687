"""Reading and writing safetensors files (https://github.com/huggingface/safetensors), piece by piece."""

import ctypes
import json
import os
import struct

import torch

from .preflight import Refused

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
          "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


class File:
    """A file that is open to be read: only what is asked for is."""

    def __init__(self, path):
        self.path = path
        try:
            size = os.path.getsize(path)
            with open(path, "rb") as file:
                length = struct.unpack("<Q", file.read(8))[0]
                if length > size:
                    raise ValueError("its header is longer than the file")
                header = json.loads(file.read(length))
            self.metadata = header.pop("__metadata__", {})
            for name, entry in header.items():
                begin, end = entry["data_offsets"]
                if entry["dtype"] not in _TYPES or not 0 <= begin <= end <= size - 8 - length:
                    raise ValueError(f"'{name}' is {entry['dtype']} at {begin} to {end} of {size - 8 - length} bytes")
        except OSError as error:
            raise Refused(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, struct.error) as error:
            raise Refused(f"{path} is no safetensors file, or not all of one: {error}") from error
        self.start = 8 + length
        self.header = header

    def __contains__(self, name):
        return name in self.header

    def described(self):
        """{name: (shape, dtype)}"""
        return {name: (self.shape(name), self.dtype(name)) for name in self.header}

    def shape(self, name):
        return tuple(self.header[name]["shape"])

    def dtype(self, name):
        return _TYPES[self.header[name]["dtype"]]

    def whole(self, name):
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        if begin == end:
            return torch.empty(entry["shape"], dtype=self.dtype(name))
        mapped = torch.from_file(self.path, False, self.start + end, dtype=torch.uint8)
        return mapped[self.start + begin:].clone().view(self.dtype(name)).view(entry["shape"])


def write(path, tensors, metadata=None):
    """Whole or not at all."""
    header, offset = {"__metadata__": {"format": "pt", **(metadata or {})}}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    try:
        with open(path + ".part", "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for tensor in tensors.values():
                flat = tensor.detach().cpu().contiguous()
                file.write(ctypes.string_at(flat.data_ptr(), flat.numel() * flat.element_size()) if flat.numel() else b"")
            file.flush()
            os.fsync(file.fileno())
        os.replace(path + ".part", path)
    except OSError as error:
        if os.path.exists(path + ".part"):
            os.remove(path + ".part")
        raise Refused(f"{path} cannot be written: {error.strerror}") from error
