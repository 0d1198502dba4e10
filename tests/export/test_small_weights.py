"""A weight is never inline in a graph, not even one as small as a constant may be."""

from pathlib import Path

import onnx_ir as ir
import pytest
from safetensors.torch import save_file

from export.graph import ConversionError, check_graph, export_graph
from tests.export.least import LeastStep


def test_a_gain_of_a_few_units_is_refused_when_it_is_inline(tmp_path: Path) -> None:
    step, path = LeastStep(), tmp_path / "model.safetensors"
    save_file(step.model.state_dict(), path)
    graph = export_graph(step, path, scan=False)
    check_graph(graph, step)
    name, small = next((n, p) for n, p in step.model.named_parameters() if p.numel() == 6)
    graph.graph.initializers[name].const_value = ir.tensor(small.detach().numpy(), name=name)
    with pytest.raises(ConversionError, match=f"not the model's weights one to one: .*{name}"):
        check_graph(graph, step)
