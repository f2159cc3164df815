"""A GGUF file with every number in float32, so that llama.cpp computes in float32 too.

    python to_float32.py MODEL.gguf MODEL-f32.gguf

The weights stay what the quantised file says they are: nothing is converted but their spelling.
"""

from __future__ import annotations

import sys

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType, quants

# What the writer states by itself.
_OWN = {"GGUF.version", "GGUF.tensor_count", "GGUF.kv_count", "general.architecture", "general.file_type"}


def main(source: str, target: str) -> None:
    """Copies metadata, and tensors one at a time."""
    reader = GGUFReader(source)
    architecture = reader.get_field("general.architecture")
    assert architecture is not None
    writer = GGUFWriter(target, architecture.contents())
    writer.add_file_type(LlamaFileType.ALL_F32)
    for name, field in reader.fields.items():
        if name not in _OWN:
            inner = field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)
    for tensor in reader.tensors:
        shape = [int(size) for size in reversed(tensor.shape)]
        size = 4 * int(np.prod(shape))
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), size, raw_dtype=GGMLQuantizationType.F32)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        plain = quants.dequantize(tensor.data, tensor.tensor_type)
        writer.write_tensor_data(np.ascontiguousarray(plain, dtype=np.float32))
    writer.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
