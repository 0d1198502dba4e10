"""The digit of the Lab tab: the page's own decoder beside the network whose weights it has."""

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch

from lab.tasks.draw.model import Draw, DrawConfig
from lab.tasks.draw.pictures import save_decoder
from lab.tasks.draw.task import Binary, DrawTask

_WEB = Path(__file__).parents[2] / "service" / "web"
_STEPS, _LATENT, _SIDE = 3, 2, 6
_DRAW = """
import { readFileSync } from "node:fs";
import { Drawing } from "./digit.js";
import { readSafetensors } from "./safetensors.js";
const { tensors } = readSafetensors(new Uint8Array(readFileSync("decoder.safetensors")));
const drawing = new Drawing(tensors);
const noise = JSON.parse(readFileSync("noise.json"));
console.log(JSON.stringify(noise.map((z) => drawing.step(z))));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_draws_what_the_network_does(tmp_path: Path) -> None:
    torch.manual_seed(0)
    network = Draw(DrawConfig(units=5, latent=_LATENT, steps=_STEPS, side=_SIDE, write=3))
    with torch.no_grad():
        for parameter in network.parameters():  # no bias is left at zero
            parameter.add_(0.2 * torch.randn_like(parameter))
    noise, blank = torch.randn(_STEPS, 1, _LATENT), torch.zeros(1, _SIDE**2)
    folder = tmp_path / "web"
    shutil.copytree(_WEB, folder)
    save_decoder(
        DrawTask(network, Binary(blank, blank, blank), 1, 0), folder / "decoder.safetensors"
    )
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "noise.json").write_text(json.dumps(noise[:, 0].tolist()))
    (folder / "draw.js").write_text(_DRAW)
    run = subprocess.run(
        ["node", "draw.js"], cwd=folder, capture_output=True, text=True, check=True
    )
    with torch.no_grad():
        pictures, frames, _ = network.double().draw(noise.double())
    for there, picture, frame in zip(json.loads(run.stdout), pictures, frames, strict=True):
        np.testing.assert_allclose(there["picture"], picture[0], atol=1e-9)
        np.testing.assert_allclose(there["frame"], frame[0], atol=1e-9)
