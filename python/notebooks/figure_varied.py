"""A figure of the CHD paper, varied: goodput under random loss. A marimo notebook."""

import marimo

app = marimo.App()


@app.cell
def _():
    from pathlib import Path

    import marimo as mo

    import knee

    return Path, knee, mo


@app.cell
def _(mo):
    mo.md("""
    # The CHD paper's figure 4, varied

    CHD tolerates random loss: it keeps its window at a loss when there was little delay. How
    much depends on the threshold `qth`.
    """)
    return


@app.cell
def _(Path, knee):
    file = Path(__file__).parents[2] / "scenarios/chd/single-flow.toml"
    losses = [0.0, 0.005, 0.01, 0.02]
    cases = [("newreno", None), ("chd", "20ms"), ("chd", "30ms")]
    goodput_mbit = {}
    for cc, qth in cases:
        params = {} if qth is None else {"flow.0.params.qth": qth}
        for loss in losses:
            changes = {"flow.0.cc": cc, "path.loss_forward": loss, **params}
            results = knee.run(file, repeat=3, set=changes)
            goodput_mbit[cc, qth, loss] = (results.goodput() or 0.0) / 1e6
    return cases, goodput_mbit, losses


@app.cell
def _(cases, goodput_mbit, losses, mo):
    rows = [
        {
            "algorithm": cc,
            "qth": qth or "",
            **{f"{100 * loss:g} %": round(goodput_mbit[cc, qth, loss], 2) for loss in losses},
        }
        for cc, qth in cases
    ]
    mo.vstack([mo.md("Median goodput, Mbit/s:"), mo.ui.table(rows, selection=None)])
    return


@app.cell
def _(goodput_mbit):
    # The paper's statement: at 1 % loss CHD has more than NewReno.
    assert goodput_mbit["chd", "20ms", 0.01] > goodput_mbit["newreno", None, 0.01]
    return


if __name__ == "__main__":
    app.run()
