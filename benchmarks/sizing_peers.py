"""What other sizing tools say of a config.json: run by benchmarks/sizing_tools.py, with the interpreter that has them.

Each tool is asked through its own functions, offline. Where a tool would read the number of parameters off a hub, it is
given the true one, so that the rest of its answer can be compared. Prints JSON: tool → version, parameters and cache
bytes in 16 bits at a context, null where it offers none, or what it said instead.
"""

import contextlib
import io
import json
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

GIB = 2**30
Answer = tuple[float | None, float | None]
"""Parameters, and bytes of the cache."""


def hf_mem(config: dict[str, Any], _: Path, context: int, __: int) -> Answer:
    """Its formula for safetensors models; parameters it reads off the checkpoint."""
    from hf_mem.safetensors.kv_cache import compute_safetensors_kv_cache_size

    return None, compute_safetensors_kv_cache_size(config, "BF16", context)


def hf_vram_calc(config: dict[str, Any], folder: Path, context: int, _: int) -> Answer:
    """Its own parser and calculator on a local folder."""
    from hf_vram_calc.calculator import ParameterCalculator, VRAMCalculator
    from hf_vram_calc.config import ConfigManager
    from hf_vram_calc.parser import ConfigParser

    parsed = ConfigParser.load_and_parse_config(folder.name, str(folder))
    parameters = ParameterCalculator.calculate_transformer_params(parsed)
    calculator = VRAMCalculator(ConfigManager())
    return parameters, GIB * calculator.calculate_kv_cache_memory(parsed, "bf16", 1, context)


def modelinfo(config: dict[str, Any], folder: Path, context: int, _: int) -> Answer:
    """Its footprint, from the headers that the checkpoint would have; parameters it reads off these."""
    from modelinfo.calculator import calculate_footprint

    headers = json.loads((folder / "shapes.json").read_text(encoding="utf-8"))
    return None, calculate_footprint(headers, context, 1, config)["kv_cache_bytes"]


def ridgepoint(config: dict[str, Any], folder: Path, context: int, parameters: int) -> Answer:
    """Its adapter for hub repositories, pointed at the folder."""
    from ridgepoint import _core, hf

    hf._download_json = lambda _repo, name, _revision: json.loads((folder / name).read_text())
    hf._params_from_index = lambda *_: parameters
    s = hf.fetch_shape("local/model")
    sizes = (s.get("head_dim", 0), s.get("n_heads", 0), s.get("n_kv_heads", 0), s.get("d_c", 0), s.get("d_rope", 0))
    shape = (s["id"], s["layers"], s["kv_layers"], s["d_model"], s["n_params"], s["active_params"], s["geom"], *sizes)
    said = json.loads(_core.fit_shape(*shape, "h100-80gb", 64, "vllm", "fp16", "bf16", context, context, True))
    return None, said["capacity"]["bytes_per_seq"]


def vramscout(config: dict[str, Any], folder: Path, context: int, parameters: int) -> Answer:
    """Its planner, with no GPU and the hub's answer given."""
    from vramscout import modern_v06
    from vramscout.modern_v07 import plan_modern

    modern_v06._selected_hub_metadata = lambda *_: (parameters, 2 * parameters)
    types = {"weight_dtype": "bf16", "kv_dtype": "bf16", "calibration": "none"}
    parts = plan_modern(str(folder), context=context, vram_gib=1e6, **types).parts_gib
    beside = ("Model weights / rank", "CUDA / runtime", "Prefill scratch", "Safety reserve")
    return None, GIB * sum(size for name, size in parts.items() if name not in beside)


def vramcalc(config: dict[str, Any], folder: Path, context: int, _: int) -> Answer:
    """Its estimate for inference."""
    import vramcalc

    found = vramcalc.estimate(str(folder), mode="inference", dtype="bf16", batch=1, seq_len=context)
    return found.params.arch.param_count(), found.kv_cache


def llm_analysis(config: dict[str, Any], folder: Path, context: int, _: int) -> Answer:
    """Its formulas on what it takes from transformers' config."""
    from llm_analysis.analysis import LLMAnalysis
    from llm_analysis.config import get_gpu_config_by_name, get_model_config_from_hf

    model = get_model_config_from_hf(str(folder))
    analysis = LLMAnalysis(model, get_gpu_config_by_name("a100-sxm-80gb"))
    per_layer = analysis.get_memory_kv_cache_per_layer(1, context, kv_cache_dtype_bytes=2)
    return analysis.get_num_params_total(), per_layer * model.num_layers


def accelerate(config: dict[str, Any], folder: Path, _: int, __: int) -> Answer:
    """What `accelerate estimate-memory` does with a config: an empty AutoModel in float32, and the sum of its sizes."""
    import torch
    from accelerate import init_empty_weights
    from accelerate.utils import calculate_maximum_sizes
    from transformers import AutoConfig, AutoModel

    with init_empty_weights():
        model = AutoModel.from_config(AutoConfig.from_pretrained(folder), dtype=torch.float32)
    return calculate_maximum_sizes(model)[0] / 4, None


def torchinfo(config: dict[str, Any], folder: Path, _: int, __: int) -> Answer:
    """Its summary of the model on the meta device, without a forward pass."""
    import torch
    import torchinfo as peer
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    return peer.summary(model, verbose=0).total_params, None


def fvcore(config: dict[str, Any], folder: Path, _: int, __: int) -> Answer:
    """Its count of parameters of the model on the meta device."""
    import torch
    from fvcore.nn import parameter_count
    from transformers import AutoConfig, AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    return parameter_count(model)[""], None


TOOLS: dict[str, tuple[str, Callable[[dict[str, Any], Path, int, int], Answer]]] = {
    "hf-mem": ("hf-mem", hf_mem),
    "ridgepoint": ("ridgepoint", ridgepoint),
    "vramscout": ("vramscout", vramscout),
    "hf-vram-calc": ("hf-vram-calc", hf_vram_calc),
    "modelinfo": ("modelinfo-cli", modelinfo),
    "vramcalc": ("vramcalc", vramcalc),
    "llm-analysis": ("llm-analysis", llm_analysis),
    "accelerate": ("accelerate", accelerate),
    "torchinfo": ("torchinfo", torchinfo),
    "fvcore": ("fvcore", fvcore),
}


def ask(tool: Callable[..., Answer], folder: Path, context: int, parameters: int) -> dict[str, object]:
    """What one tool says of one model."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found, cache = tool(config, folder, context, parameters)
    except (Exception, SystemExit) as error:
        return {"parameters": None, "cache": None, "said": f"{type(error).__name__}: {error}"[:200]}
    return {"parameters": found, "cache": cache, "said": None}


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    place, tokens, total = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    answers = {
        name: {"version": version(package)} | ask(tool, place, tokens, total) for name, (package, tool) in TOOLS.items()
    }
    print(json.dumps(answers))
