"""Time the region detector at its full size, with random weights, on a picture of 800 x 1333.

Run as ``python -m tools.benchmarks.detector``. Prints one JSON record: seconds to load the files
and to read one picture (by the clock, and of all processors together, which other programs disturb
less), and the most memory that the process had taken after each. The weights are random, so what is
found means nothing; time and memory depend on shapes and on the number of proposals alone.
"""

import json
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import yaml

from biaslib import models
from biaslib.pictures.faster_rcnn import FasterRcnn, FasterRcnnConfig

SETTINGS = {
    "model": {
        "pixel_mean": [102.9801, 115.9465, 122.7717],
        "pixel_std": [1.0, 1.0, 1.0],
        "max_pool": True,
    },
    "input": {"format": "BGR", "min_size_test": 800, "max_size_test": 1333},
    "resnets": {
        "norm": "BN",
        "depth": 101,
        "num_groups": 1,
        "stem_out_channels": 64,
        "width_per_group": 64,
        "res2_out_channels": 256,
        "stride_in_1x1": True,
        "out_features": ["res4"],
    },
    "anchor_generator": {
        "sizes": [[32, 64, 128, 256, 512]],
        "aspect_ratios": [[0.5, 1.0, 2.0]],
        "offset": 0.0,
    },
    "proposal_generator": {"hidden_channels": 512, "min_size": 0},
    "rpn": {
        "in_features": ["res4"],
        "nms_thresh": 0.7,
        "bbox_reg_weights": [1.0, 1.0, 1.0, 1.0],
        "pre_nms_topk_test": 6000,
        "post_nms_topk_test": 300,
    },
    "roi_heads": {"in_features": ["res4"], "num_classes": 1600, "nms_thresh_test": [0.5, 0.6, 0.7]},
    "roi_box_head": {
        "cls_agnostic_bbox_reg": False,
        "attr": True,
        "num_attrs": 400,
        "pooler_resolution": 14,
        "res5halve": False,
        "bbox_reg_weights": [10.0, 10.0, 5.0, 5.0],
    },
    "min_detections": 36,
    "max_detections": 36,
}
"""The published detector's settings, as far as they are known; the thresholds are assumed."""


def peak_gb():
    """Return the most memory that this process has taken, in units of 10^9 bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def write_random(folder):
    """Write a detector of random weights in the layout of the published one."""
    torch.manual_seed(0)
    network = FasterRcnn(FasterRcnnConfig(SETTINGS))
    torch.save(network.state_dict(), Path(folder) / "pytorch_model.bin")
    (Path(folder) / "config.yaml").write_text(yaml.safe_dump(SETTINGS))


def main(height=800, width=1333):
    """Print the record; the files are written by another process, whose memory does not count."""
    picture = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as name:
        writer = multiprocessing.get_context("spawn").Process(target=write_random, args=(name,))
        writer.start()
        writer.join()
        started = time.perf_counter()
        loaded = models.load("detector", checkpoint=name, device="cpu")
        seconds_to_load, loaded_gb = time.perf_counter() - started, peak_gb()
    proposals = []
    loaded.network.roi_heads.box_predictor.register_forward_hook(
        lambda module, given, made: proposals.append(len(given[0]))
    )
    started, processor = time.perf_counter(), time.process_time()
    regions = loaded.regions([picture], words=None)
    record = {
        "measure": "size",
        "picture": f"{height} x {width}",
        "parameters": sum(each.numel() for each in loaded.network.parameters()),
        "proposals": proposals[0],
        "regions": int(regions.real.sum()),
        "numbers_a_region": regions.width,
        "threads": torch.get_num_threads(),
        "seconds_to_load": round(seconds_to_load, 1),
        "gb_loaded": round(loaded_gb, 2),
        "seconds_a_picture": round(time.perf_counter() - started, 1),
        "processor_seconds_a_picture": round(time.process_time() - processor, 1),
        "gb_at_most": round(peak_gb(), 2),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
