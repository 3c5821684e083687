#!/usr/bin/env python3
"""How far predictions are from the measured runs of resources/runs, as the table of the README.

Prints it; --write puts it between the marks in README.md, --check says whether it stands there (status 1 if not).
"""
import json
import pathlib
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- results: tests/bench/results_table.py -->", "<!-- end of results -->"
NAMES = {
    "dgxc-benchmarking": "NVIDIA DGX Cloud: NeMo on H100",
    "llm-foundry-fsdp": "MosaicML: FSDP, A100 and H100",
    "mlperf-training": "MLPerf Training: up to 11,616 GPUs",
    "pytorch-fsdp": "torchtitan and IBM: FSDP",
    "simumax-b200": "SimuMax: Megatron-LM on eight B200",
    "training-recipes": "Megatron Bridge: mixtures among them",
}


def errors(rows, predicted, measured):
    """Percents by which predictions of the runs themselves are off."""
    return [
        abs(row[predicted] / row[measured] - 1) * 100
        for row in rows
        if not row.get("as") and row.get(predicted) and row.get(measured)
    ]


def cell(values):
    return f"{statistics.median(values):.1f} / {max(values):.1f} ({len(values)})" if values else ""


def table():
    lines = ["| measured by | step, % off: median / worst (runs) | peak memory |", "| --- | --- | --- |"]
    for path in sorted((ROOT / "resources/runs").glob("*.json")):
        rows = json.loads(path.read_text())["rows"]
        steps = cell(errors(rows, "predicted_seconds", "measured_seconds"))
        peaks = cell(errors(rows, "predicted_peak_bytes", "measured_peak_bytes"))
        lines.append(f"| {NAMES.get(path.stem, path.stem)} | {steps} | {peaks} |")
    return "\n".join(lines)


def main():
    text = table()
    readme = ROOT / "README.md"
    page = readme.read_text()
    begin, end = page.find(BEGIN), page.find(END)
    if sys.argv[1:] == ["--write"] and 0 <= begin < end:
        readme.write_text(page[:begin] + BEGIN + "\n" + text + "\n" + page[end:])
    elif sys.argv[1:] == ["--check"]:
        if page[begin + len(BEGIN) : end].strip() != text:
            sys.exit("the table in README.md is not that of resources/runs: tests/bench/results_table.py --write")
    else:
        print(text)


if __name__ == "__main__":
    main()
